// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules and holds come and go under traffic, at random, and the device is well behind
 * that. And what is planned is repeatable: the same plan, seed and traffic have the same
 * completions.
 */
#include <pthread.h>

#include "rc.h"
#include "faults.h"

#define CHURN	10000		/* rules and orders */
#define WINDOW	16

FIXTURE(churn)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_SETUP(churn)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, order(0, "faults", "clear"));
	ASSERT_EQ(0, order(0, "hold", "release all"));
	opts.channel = true;
	opts.timeout = 8;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(churn)
{
	pair_close(_metadata, &self->p);
}

/* One end's traffic, which mends its pair when a fault broke it. */
struct traffic {
	struct pair *p;
	bool stop;
	unsigned long completions;
};

static void mend(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		qp_to(p->end[i].qp, IBV_QPS_RESET);
	for (i = 0; i < 2; i++) {
		struct end *e = &p->end[i], *o = &p->end[!i];

		if (qp_to_init(e->qp, &p->opts) ||
		    qp_to_rtr(e->qp, &p->opts, o->lid, o->qp->qp_num) ||
		    qp_to_rts(e->qp, &p->opts))
			return;
	}
}

static void *traffic(void *arg)
{
	struct traffic *t = arg;
	struct end *a = &t->p->end[0], *b = &t->p->end[1];
	unsigned int turn = 0;
	struct ibv_wc wc[8];
	int i, n;

	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < WINDOW; i++) {
			post_recv(b, i, 0, 2048);
			post_send(a, i, 0, 64 + (turn * 37 + i) % 1500, IBV_SEND_SIGNALED);
		}
		ibv_req_notify_cq(b->rcq, turn % 2);
		for (i = 0; i < 20; i++) {
			n = ibv_poll_cq(a->scq, 8, wc);
			if (n > 0)
				t->completions += n;
			n = ibv_poll_cq(b->rcq, 8, wc);
			if (n > 0)
				t->completions += n;
			sched_yield();
		}
		if (++turn % 4 == 0)
			mend(t->p);
	}
	return NULL;
}

static const char * const pieces[] = {
	"qp=%u complete status=SUCCESS", "qp=%u complete status=REM_OP_ERR",
	"qp=%u side=recv complete status=LOC_PROT_ERR", "qp=%u delay wqe",
	"qp=%u delay wqe time=100", "qp=%u slow rate=5000", "qp=%u slow latency=50",
	"qp=%u fatal", "qp=%u fatal side=recv", "qp=%u lose request", "qp=%u lose response",
	"qp=%u corrupt", "qp=%u rnr", "qp=%u stall", "qp=%u delay cqe", "qp=%u delay cqe time=30",
	"delay eqe", "delay eqe time=100", "drop eqe", "repeat eqe", "merge eqe", "drop arm",
	"delay msix", "delay msix time=70", "drop msix", "repeat msix", "merge msix",
};

static const char * const orders[] = {
	"hold wqe", "hold cqe", "hold eqe", "hold msix", "step wqe", "step cqe", "step eqe",
	"step msix", "release wqe", "release cqe", "release eqe", "release msix", "release all",
	"hold wqe qp=%u", "step wqe qp=%u", "release wqe qp=%u",
};

static void churn_once(struct pair *p, uint64_t *state)
{
	uint32_t qpn = p->end[rnd_below(state, 2)].qp->qp_num;
	char match[64], rule[160], text[256];

	switch (rnd_below(state, 8)) {
	case 0:
		order(0, "faults", "clear");
		break;
	case 1:
	case 2:
		orderf(0, "hold", orders[rnd_below(state, ARRAY_SIZE(orders))], qpn);
		break;
	case 3:
		orderf(0, "faults", "clear %d", last_rule(0, text, sizeof(text)));
		break;
	default:
		snprintf(match, sizeof(match), "every=%u times=%u ",
			 1 + rnd_below(state, 5), 1 + rnd_below(state, 20));
		snprintf(rule, sizeof(rule), pieces[rnd_below(state, ARRAY_SIZE(pieces))], qpn);
		snprintf(text, sizeof(text), "%s%s", match, rule);
		order(0, "faults", text);
	}
}

TEST_F_TIMEOUT(churn, rules_come_and_go_under_traffic_and_nothing_is_the_worse_for_it, 600)
{
	struct traffic t = { .p = &self->p };
	uint64_t seed = seed_of("SEED"), state = seed;
	pthread_t thread;
	int i, waiting;

	TH_LOG("SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, pthread_create(&thread, NULL, traffic, &t));
	for (i = 0; i < CHURN; i++)
		churn_once(&self->p, &state);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_NE(0, t.completions);
	ASSERT_EQ(0, order(0, "faults", "clear"));
	ASSERT_EQ(0, order(0, "hold", "release all"));
	EXPECT_EQ(0, gates(0, "", &waiting));
	EXPECT_EQ(0, rules(0));
	pair_close(_metadata, &self->p);
	pair_open(_metadata, &self->p, &self->p.opts);
	exchange(_metadata, self->a, self->b, 3000, 1);
	exchange(_metadata, self->b, self->a, 3000, 2);
	/* Interrupts that were lost left their EQs with something unread. */
	for (i = 1; shown(0, "eq", i, "vector") >= 0; i++)
		ASSERT_EQ(0, orderf(0, "inject", "msix eq=%d", i));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	exchange(_metadata, self->a, self->b, 3000, 3);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

static void start_again(struct __test_metadata *_metadata, struct pair *p)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, qp_to(p->end[i].qp, IBV_QPS_RESET));
	for (i = 0; i < 2; i++)
		while (ibv_poll_cq(p->end[i].scq, 1, &wc) > 0 ||
		       ibv_poll_cq(p->end[i].rcq, 1, &wc) > 0)
			;
	pair_connect(_metadata, p);
}

/* What came of each of @n messages, in the order of the completions. */
static void run(struct __test_metadata *_metadata, struct pair *p, uint8_t *seen, int n)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, post_recv(&p->end[1], i, 0, 64));
		ASSERT_EQ(0, post_send(&p->end[0], i, 0, 64, IBV_SEND_SIGNALED));
		ASSERT_TRUE(poll_wc(p->end[0].scq, &wc));
		seen[i] = wc.status ^ wc.vendor_err << 5;
		if (wc.status != IBV_WC_SUCCESS) {
			start_again(_metadata, p);
			continue;
		}
		/* The receive is complete before the send. */
		while (ibv_poll_cq(p->end[1].rcq, 1, &wc) > 0)
			seen[i] ^= 0x80 ^ wc.status;
	}
}

#define RUN	200

TEST_F(churn, the_same_plan_and_seed_have_the_same_completions)
{
	uint8_t seen[3][RUN] = {};
	char text[512];
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text),
			 "clear\nqp=%u prob=0.05 seed=%u complete status=FATAL_ERR vendor_err=1\n"
			 "qp=%u prob=0.1 seed=%u complete status=SUCCESS vendor_err=2\n"
			 "qp=%u prob=0.1 seed=3 complete side=recv status=LOC_PROT_ERR\n"
			 "qp=%u every=7 lose response\nqp=%u prob=0.2 seed=9 lose request\n"
			 "qp=%u prob=0.1 rnr\n",
			 self->a->qp->qp_num, i == 2 ? 100 : 7, self->a->qp->qp_num,
			 i == 2 ? 200 : 8, self->b->qp->qp_num, self->a->qp->qp_num,
			 self->a->qp->qp_num, self->b->qp->qp_num);
		ASSERT_EQ(0, order(0, "faults", text)) {
			TH_LOG("%s", fault_error(0));
		}
		start_again(_metadata, &self->p);
		run(_metadata, &self->p, seen[i], RUN);
	}
	ASSERT_EQ(0, order(0, "faults", "clear"));
	EXPECT_EQ(0, memcmp(seen[0], seen[1], RUN));
	EXPECT_NE(0, memcmp(seen[0], seen[2], RUN));
}

TEST_HARNESS_MAIN
