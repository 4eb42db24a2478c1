/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scale.h: what QPs cost that do nothing: time of others, memory, wake-ups.
 */
#ifndef SCALE_H
#define SCALE_H

#include <dirent.h>

#include "hist.h"
#include "link.h"

#define IDLE_DEPTH	64
#define QPS_OF_A_FILE	4000	/* less than the slots that a file may have */

/* @n QPs, connected to themselves, each with a CQ of its own or all with one. */
static void open_idle(const struct options *o, int n, bool own_cq)
{
	struct ibv_context *ctx = NULL;
	struct address self = {};
	struct ibv_cq *cq = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < n; i++) {
		if (i % (own_cq ? QPS_OF_A_FILE / 2 : QPS_OF_A_FILE) == 0) {
			ctx = open_dev(o->dev);
			pd = ibv_alloc_pd(ctx);
			cq = NULL;
			port_address(ctx, o, &self);
		}
		if (!cq || own_cq)
			cq = ibv_create_cq(ctx, IDLE_DEPTH, NULL, NULL, 0);
		if (!pd || !cq)
			die("CQ %d", i);
		qp = make_qp(pd, cq, cq, IDLE_DEPTH);
		connect_qp(qp, o, &self, qp->qp_num);
	}
}

/* A message from a QP to itself, by one thread: all that it costs. */
static void message_to_self(struct link *l, uint64_t n)
{
	struct ibv_wc wc;
	int got;

	post_recvs(l, 0, n, 1);
	post_sends(l, 0, n, 1, 0);
	do
		got = ibv_poll_cq(l->rcq[0], 1, &wc);
	while (!got);
	if (got != 1 || wc.status)
		die("message to self");
	reap_sends(l);
}

/* The cost of a message beside idle QPs. */
static void test_beside(const struct options *o)
{
	struct address *self = calloc(1, address_size(o));
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t t, last, end, n = 0, begin;
	struct link l;

	pin(o->cpu[0]);
	link_open(&l, o, self);
	link_connect(&l, self);
	open_idle(o, o->count, false);
	for (t = now_ns(); now_ns() < t + (uint64_t)(o->seconds * 2e8);)
		message_to_self(&l, n++);
	n = 0;
	begin = now_ns();
	last = begin;
	for (end = begin + (uint64_t)(o->seconds * 1e9); last < end; last = t) {
		message_to_self(&l, n++);
		t = now_ns();
		hist_add(h, t - last);
	}
	report("message_us", (double)(last - begin) / (double)n / 1000);
	hist_report(h);
}

static double free_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	double kb = -1;
	char line[128];

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %lf", &kb);
	if (kb < 0)
		die("/proc/meminfo");
	fclose(f);
	return kb;
}

/* Memory of the machine that is gone for each QP with its CQ. */
static void test_memory(const struct options *o)
{
	double before;

	open_idle(o, 16, true);
	before = free_kb();
	open_idle(o, o->count, true);
	report("qp_kbytes", (before - free_kb()) / o->count);
}

/* How often the threads of the device have been given a CPU. */
static long switches(void)
{
	char path[300], line[128];
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long sum = 0, n;
	bool ours;
	FILE *f;

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/status", entry->d_name);
		f = fopen(path, "re");
		for (ours = false; f && fgets(line, sizeof(line), f);) {
			ours |= !strncmp(line, "Name:\tvhca_engine", 17);
			if (ours && (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
				     sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1))
				sum += n;
			if (!ours)
				break;
		}
		if (f)
			fclose(f);
	}
	if (proc)
		closedir(proc);
	return sum;
}

static void test_idle(const struct options *o)
{
	struct timespec pause = { .tv_sec = 10 };
	long before;

	open_idle(o, o->count, false);
	before = switches();
	if (!before)
		die("no thread of the device");
	nanosleep(&pause, NULL);
	report("wakeups", (double)(switches() - before));
}

#endif
