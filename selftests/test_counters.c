// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_counters.c: the counters are exact. After a workload that is known, those
 * of the device, those of the driver and /proc/interrupts say the same.
 */
#define _GNU_SOURCE
#include "rc.h"

#define MAX_VECTORS	64
#define N		1000

enum { DOORBELLS, KICKS, WQES, RECV_WQES, CQES, EQES, MSIX, MSIX_PENDED, COMMANDS, RNR_NAKS,
	RETRIES, OVERRUNS, DEVICE_COUNTERS };

static const char * const device_names[DEVICE_COUNTERS] = {
	"doorbells", "kicks", "wqes", "recv_wqes", "cqes", "eqes", "msix", "msix_pended",
	"commands", "rnr_naks", "retries", "overruns",
};

enum { D_KICKS, D_INTERRUPTS, D_EQES, D_COMP_EQES, D_ASYNC_EQES, D_TASKLETS, D_EVENTS, D_MERGED,
	DRIVER_COUNTERS };

static const char * const driver_names[DRIVER_COUNTERS] = {
	"kicks", "interrupts", "eqes", "comp_eqes", "async_eqes", "tasklets", "events", "merged",
};

/* Everything that is counted about function 0, at one time or as a difference. */
struct snapshot {
	long long device[DEVICE_COUNTERS];
	long long driver[DRIVER_COUNTERS];
	long long sent[MAX_VECTORS];		/* by the device */
	long long interrupts[MAX_VECTORS];	/* by the driver */
	long long proc[MAX_VECTORS];		/* by /proc/interrupts */
};

static void read_device_vectors(struct snapshot *s)
{
	FILE *f = fopen("/sys/kernel/debug/vhca_device/0/vectors", "re");
	char line[256];
	long long sent;
	int vector;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d %lld", &vector, &sent) == 2 && vector < MAX_VECTORS)
			s->sent[vector] = sent;
	if (f)
		fclose(f);
}

/* How often an interrupt came, on all CPUs. */
static long long proc_interrupts(int irq)
{
	FILE *f = fopen("/proc/interrupts", "re");
	char line[4096], *p, *end;
	long long sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (strtol(line, &p, 10) != irq || *p != ':')
			continue;
		for (p++;; p = end) {
			long long n = strtoll(p, &end, 10);

			if (end == p || (*end != ' ' && *end != '\n'))
				break;
			sum += n;
		}
		break;
	}
	if (f)
		fclose(f);
	return sum;
}

static void read_driver_vectors(struct snapshot *s)
{
	FILE *f = fopen("/sys/kernel/debug/vhca/vhca0/vectors", "re");
	char line[256], eqns[128];
	long long interrupts;
	int vector, irq;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d %d %127s %lld", &vector, &irq, eqns, &interrupts) == 4 &&
		    vector < MAX_VECTORS) {
			s->interrupts[vector] = interrupts;
			s->proc[vector] = proc_interrupts(irq);
		}
	if (f)
		fclose(f);
}

static void take_now(struct __test_metadata *_metadata, struct snapshot *s)
{
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < DEVICE_COUNTERS; i++) {
		s->device[i] = device_counter(0, device_names[i]);
		ASSERT_LE(0, s->device[i]) {
			TH_LOG("the device does not count %s", device_names[i]);
		}
	}
	for (i = 0; i < DRIVER_COUNTERS; i++) {
		s->driver[i] = driver_counter(0, driver_names[i]);
		ASSERT_LE(0, s->driver[i]) {
			TH_LOG("the driver does not count %s", driver_names[i]);
		}
	}
	read_device_vectors(s);
	read_driver_vectors(s);
}

/* Once nothing is on its way any more: twice the same. */
static void take(struct __test_metadata *_metadata, struct snapshot *s)
{
	struct snapshot again;

	take_now(_metadata, &again);
	ASSERT_TRUE(wait_until((*s = again, take_now(_metadata, &again),
				!memcmp(s, &again, sizeof(again)))));
}

/* What happened since @before. */
static struct snapshot since(struct __test_metadata *_metadata, const struct snapshot *before)
{
	struct snapshot s;
	int i;

	take(_metadata, &s);
	for (i = 0; i < DEVICE_COUNTERS; i++)
		s.device[i] -= before->device[i];
	for (i = 0; i < DRIVER_COUNTERS; i++)
		s.driver[i] -= before->driver[i];
	for (i = 0; i < MAX_VECTORS; i++) {
		s.sent[i] -= before->sent[i];
		s.interrupts[i] -= before->interrupts[i];
		s.proc[i] -= before->proc[i];
	}
	return s;
}

/* Both sides of the wall saw the same. */
static void expect_agreement(struct __test_metadata *_metadata, const struct snapshot *s)
{
	long long sent = 0;
	int i;

	EXPECT_EQ(s->device[KICKS], s->driver[D_KICKS]);
	EXPECT_EQ(s->device[EQES], s->driver[D_EQES]);
	EXPECT_EQ(s->driver[D_EQES], s->driver[D_COMP_EQES] + s->driver[D_ASYNC_EQES] +
		  s->device[COMMANDS]);
	EXPECT_EQ(s->device[MSIX], s->driver[D_INTERRUPTS]);
	EXPECT_EQ(s->driver[D_TASKLETS], s->driver[D_EVENTS] + s->driver[D_MERGED]);
	for (i = 0; i < MAX_VECTORS; i++) {
		EXPECT_EQ(s->sent[i], s->interrupts[i]);
		EXPECT_EQ(s->proc[i], s->interrupts[i]);
		sent += s->sent[i];
	}
	EXPECT_EQ(s->device[MSIX], sent);
}

static void expect_undisturbed(struct __test_metadata *_metadata, const struct snapshot *s)
{
	EXPECT_EQ(0, s->device[MSIX_PENDED]);
	EXPECT_EQ(0, s->device[COMMANDS]);
	EXPECT_EQ(0, s->device[RNR_NAKS]);
	EXPECT_EQ(0, s->device[RETRIES]);
	EXPECT_EQ(0, s->device[OVERRUNS]);
}

/* A thread that saw the record already may find two doorbells in one look. */
static void expect_doorbells(struct __test_metadata *_metadata, const struct snapshot *s,
			     const char *engine, uint64_t rung)
{
	EXPECT_LE(s->device[DOORBELLS], rung);
	EXPECT_LE(s->device[KICKS], rung);
	if (!strcmp(engine, "inline")) {
		EXPECT_EQ(rung, s->device[DOORBELLS]);
		EXPECT_EQ(rung, s->device[KICKS]);
	}
}

static void polled_message(struct __test_metadata *_metadata, struct end *a, struct end *b)
{
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_send(a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
}

/* An end on function 0 twice, or each function's own half: then the test is for 0. */
TEST_F(rc, polled_messages_are_counted_and_raise_no_event)
{
	bool both = !variant->peer;
	struct snapshot before, s;
	int i;

	take(_metadata, &before);
	for (i = 0; i < N; i++)
		polled_message(_metadata, self->a, self->b);
	s = since(_metadata, &before);
	EXPECT_EQ(N, s.device[WQES]);
	EXPECT_EQ(both ? N : 0, s.device[RECV_WQES]);
	EXPECT_EQ(both ? 2 * N : N, s.device[CQES]);
	EXPECT_EQ(0, s.device[EQES]);
	EXPECT_EQ(0, s.device[MSIX]);
	expect_doorbells(_metadata, &s, variant->engine, N);
	expect_undisturbed(_metadata, &s);
	expect_agreement(_metadata, &s);
}

TEST_F(rc, an_unsignaled_send_makes_one_cqe_less)
{
	struct snapshot before, s;
	int i;

	take(_metadata, &before);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, post_recv(self->b, i, 0, 100));
		ASSERT_EQ(0, post_send(self->a, i, 0, 64, i % 10 == 9 ? IBV_SEND_SIGNALED : 0));
		expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
		if (i % 10 == 9)
			expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
	}
	s = since(_metadata, &before);
	EXPECT_EQ(N, s.device[WQES]);
	EXPECT_EQ(N / 10 + (variant->peer ? 0 : N), s.device[CQES]);
	expect_undisturbed(_metadata, &s);
	expect_agreement(_metadata, &s);
}

TEST_F(rc, a_list_is_one_doorbell_and_one_kick)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge = { (uintptr_t)a->buf, 64, a->mr->lkey };
	struct ibv_send_wr wr[10], *bad;
	struct snapshot before, s;
	int i, k;

	for (k = 0; k < 10; k++)
		wr[k] = (struct ibv_send_wr) {
			.wr_id = k,
			.next = k < 9 ? &wr[k + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
	take(_metadata, &before);
	for (i = 0; i < N / 10; i++) {
		for (k = 0; k < 10; k++)
			ASSERT_EQ(0, post_recv(b, k, 0, 64));
		ASSERT_EQ(0, ibv_post_send(a->qp, wr, &bad));
		for (k = 0; k < 10; k++) {
			expect_wc(_metadata, b->rcq, k, IBV_WC_SUCCESS);
			expect_wc(_metadata, a->scq, k, IBV_WC_SUCCESS);
		}
	}
	s = since(_metadata, &before);
	EXPECT_EQ(N, s.device[WQES]);
	expect_doorbells(_metadata, &s, variant->engine, N / 10);
	expect_agreement(_metadata, &s);
}

/*
 * Each message finds the CQ armed and empty, and its event is read before the
 * next: one EQE, one message, one interrupt, one tasklet run, one record each.
 */
TEST_F(rc, each_step_of_an_event_is_counted_once)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct snapshot before, s;
	int i;

	opts.channel = true;
	reopen(_metadata, &self->p, opts);
	take(_metadata, &before);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(a->scq, 0));
		ASSERT_EQ(0, post_recv(b, 2, 0, 100));
		ASSERT_EQ(0, post_send(a, 1, 0, 64, IBV_SEND_SIGNALED));
		ASSERT_EQ(a->scq, comp_event(a->channel));
		expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	}
	s = since(_metadata, &before);
	EXPECT_EQ(N, s.device[EQES]);
	EXPECT_EQ(N, s.device[MSIX]);
	EXPECT_EQ(N, s.driver[D_COMP_EQES]);
	EXPECT_EQ(0, s.driver[D_ASYNC_EQES]);
	EXPECT_EQ(N, s.driver[D_TASKLETS]);
	EXPECT_EQ(N, s.driver[D_EVENTS]);
	EXPECT_EQ(0, s.driver[D_MERGED]);
	expect_undisturbed(_metadata, &s);
	expect_agreement(_metadata, &s);
}

/* With events in both directions at once, interrupts may serve several EQEs. */
TEST_F(rc, both_sides_agree_whatever_happens)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct snapshot before, s;
	int i, k, n;

	opts.channel = true;
	reopen(_metadata, &self->p, opts);
	take(_metadata, &before);
	for (i = 0; i < N / 10; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(a->scq, 0));
		ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 0));
		for (k = 0; k < 10; k++) {
			ASSERT_EQ(0, post_recv(b, k, 0, 100));
			ASSERT_EQ(0, post_send(a, k, 0, 64, IBV_SEND_SIGNALED));
		}
		for (n = 0; n < 2; n++)
			ASSERT_NE(NULL, comp_event(n ? a->channel : b->channel));
		for (k = 0; k < 10; k++) {
			expect_wc(_metadata, a->scq, k, IBV_WC_SUCCESS);
			expect_wc(_metadata, b->rcq, k, IBV_WC_SUCCESS);
		}
	}
	s = since(_metadata, &before);
	EXPECT_EQ(N, s.device[WQES]);
	EXPECT_EQ(variant->peer ? N / 10 : 2 * N / 10, s.driver[D_EVENTS]);
	EXPECT_EQ(s.driver[D_EVENTS], s.driver[D_COMP_EQES]);
	EXPECT_LE(s.device[MSIX], s.device[EQES]);
	expect_undisturbed(_metadata, &s);
	expect_agreement(_metadata, &s);
}

/* Commands are counted too, and each is answered by one async EQE or polled. */
TEST_F(rc, objects_cost_commands_and_both_sides_agree)
{
	struct snapshot before, s;

	take(_metadata, &before);
	reopen(_metadata, &self->p, self->p.opts);
	s = since(_metadata, &before);
	EXPECT_LT(0, s.device[COMMANDS]);
	EXPECT_EQ(0, s.device[WQES]);
	EXPECT_EQ(0, s.device[CQES]);
	expect_agreement(_metadata, &s);
}

TEST_HARNESS_MAIN
