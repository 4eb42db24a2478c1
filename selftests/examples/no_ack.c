// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * no_ack.c: acknowledges an event at the end of a function, which returns early when
 * something is wrong. ibv_destroy_cq() waits until all events are acknowledged.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "link.h"

static bool send_wrong(struct link *l)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;

	arm(l->a.scq);
	post_send(l, &l->a, 0);
	cq = get_event(l);
	need(ibv_poll_cq(cq, 1, &wc) == 1);
	if (wc.status != IBV_WC_SUCCESS)
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool send_fixed(struct link *l)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;

	arm(l->a.scq);
	post_send(l, &l->a, 0);
	cq = get_event(l);
	ibv_ack_cq_events(cq, 1);	/* before anything can go wrong */
	need(ibv_poll_cq(cq, 1, &wc) == 1);
	return wc.status == IBV_WC_SUCCESS;
}

static void plan(struct link *l)
{
	need(vhca_fault_add(l->f, "opcode=SEND complete status=RETRY_EXC_ERR") >= 0);
}

/*
 * The end of a CQ, in a thread that is watched. The device has it no more when the
 * library begins to wait.
 */
static pid_t destroyer;

static void *destroy(void *cq)
{
	__atomic_store_n(&destroyer, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	need(!ibv_destroy_cq((struct ibv_cq *)cq));
	return NULL;
}

static bool sleeps_on_futex(pid_t tid)
{
	long number = -1;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number == SYS_futex;
}

static bool has_ended(pthread_t thread, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !pthread_timedjoin_np(thread, NULL, &until);
}

static void destroy_cq(struct link *l, struct ibv_cq *cq)
{
	uint32_t cqn = vhca_cqn(cq);
	pthread_t thread;
	pid_t tid;

	need(!pthread_create(&thread, NULL, destroy, cq));
	while (!has_ended(thread, QUIET_MS)) {
		tid = __atomic_load_n(&destroyer, __ATOMIC_ACQUIRE);
		if (tid && vhca_fault_value(l->f, "cq", cqn, "cq") < 0 && sleeps_on_futex(tid))
			caught("CQ %u is gone, but ibv_destroy_cq() waits for its events", cqn);
	}
	destroyer = 0;
}

/* What programs do with a QP that failed: make it anew, with its CQs. */
static void replace(struct link *l, struct side *s)
{
	need(!ibv_destroy_qp(s->qp));
	destroy_cq(l, s->scq);
	need(!ibv_destroy_cq(s->rcq));
	side_open(l, s);
	link_connect(l);
}

static void one_round(struct link *l, bool fixed)
{
	post_recv(l, &l->b, 0);
	if (!(fixed ? send_fixed(l) : send_wrong(l)))
		replace(l, &l->a);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
