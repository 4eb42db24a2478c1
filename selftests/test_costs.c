// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_costs.c: what a message takes does not rise: system calls, CQEs, EQEs,
 * interrupts, tasklets, events, bytes moved. Times differ from machine to machine,
 * these do not, and they are what times are made of.
 *
 * The engine is inline, so that all of it has happened when a message is there.
 */
#define _GNU_SOURCE
#include "tracer.h"

#define UNIT	16	/* messages that a cost is given for, as some is shared by several */
#define UNITS	20
#define LARGE	(1 << 20)

enum cost { KICKS, CALLS, CQES, EQES, MSIX, INTERRUPTS, TASKLETS, EVENTS, COPIED, COSTS };

static const char * const cost_names[COSTS] = {
	"kicks", "other system calls", "CQEs", "EQEs", "MSI-X messages", "interrupts",
	"tasklets", "events", "bytes moved",
};

/* In shared memory, and how one unit of messages is sent. */
struct stage {
	struct view view;
	long long cost[COSTS];
	bool (*unit)(struct pair *p);
	bool channel;
};

static struct stage *stage;

static long long cost_now(enum cost cost)
{
	switch (cost) {
	case CQES:	return device_counter(0, "cqes");
	case EQES:	return device_counter(0, "eqes");
	case MSIX:	return device_counter(0, "msix");
	case COPIED:	return device_counter(0, "copied");
	case INTERRUPTS: return driver_counter(0, "interrupts");
	case TASKLETS:	return driver_counter(0, "tasklets");
	case EVENTS:	return driver_counter(0, "events");
	default:	return 0;
	}
}

static void program(struct __test_metadata *_metadata, struct view *view)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	long long before[COSTS];
	struct pair p;
	bool ok;
	int i;

	opts.channel = stage->channel;
	opts.buf_len = LARGE;
	pair_open(_metadata, &p, &opts);
	/* What happens but once. */
	ok = stage->unit(&p);
	for (i = 0; i < COSTS; i++)
		before[i] = cost_now(i);
	for (i = 0; i < UNITS && ok; i++) {
		enter(view, 1);
		ok = stage->unit(&p);
		enter(view, 0);
	}
	for (i = 0; i < COSTS; i++)
		stage->cost[i] = cost_now(i) - before[i];
	ASSERT_TRUE(ok);
	pair_close(_metadata, &p);
}

/*
 * Units of messages
 */
static bool polled(struct pair *p, unsigned int flags)
{
	struct end *a = &p->end[0], *b = &p->end[1];

	return !post_recv(b, 0, 0, 128) && !post_send(a, 0, 0, 128, flags) &&
	       poll_spinning(b->rcq) &&
	       (!(flags & IBV_SEND_SIGNALED) || poll_spinning(a->scq));
}

static bool unit_polled(struct pair *p)
{
	bool ok = true;
	int i;

	for (i = 0; i < UNIT && ok; i++)
		ok = polled(p, IBV_SEND_SIGNALED);
	return ok;
}

static bool unit_unsignaled(struct pair *p)
{
	bool ok = true;
	int i;

	for (i = 0; i < UNIT && ok; i++)
		ok = polled(p, i < UNIT - 1 ? 0 : IBV_SEND_SIGNALED);
	return ok;
}

static bool unit_inline(struct pair *p)
{
	bool ok = true;
	int i;

	for (i = 0; i < UNIT && ok; i++)
		ok = polled(p, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	return ok;
}

static bool unit_list(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge = { (uintptr_t)a->buf, 128, a->mr->lkey };
	struct ibv_send_wr wr[UNIT], *bad;
	bool ok = true;
	int i;

	for (i = 0; i < UNIT; i++) {
		ok &= !post_recv(b, 0, 0, 128);
		wr[i] = send_wr(0, &sge, 1, IBV_SEND_SIGNALED);
		wr[i].next = i < UNIT - 1 ? &wr[i + 1] : NULL;
	}
	ok &= !ibv_post_send(a->qp, wr, &bad);
	for (i = 0; i < UNIT && ok; i++)
		ok = poll_spinning(b->rcq) && poll_spinning(a->scq);
	return ok;
}

static bool unit_writes(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge = { (uintptr_t)a->buf, LARGE, a->mr->lkey };
	struct ibv_send_wr wr = send_wr(0, &sge, 1, IBV_SEND_SIGNALED), *bad;
	bool ok = true;
	int i;

	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = b->mr->rkey;
	for (i = 0; i < UNIT && ok; i++)
		ok = !ibv_post_send(a->qp, &wr, &bad) && poll_spinning(a->scq);
	return ok;
}

/* Armed, then empty, then slept upon. */
static bool sleeps_and_gets(struct end *e, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *context;

	if (ibv_get_cq_event(e->channel, &got, &context) || got != cq)
		return false;
	ibv_ack_cq_events(cq, 1);
	return poll_spinning(cq);
}

static bool unit_events(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	bool ok = true;
	int i;

	for (i = 0; i < UNIT && ok; i++)
		ok = !ibv_req_notify_cq(b->rcq, 0) && !post_recv(b, 0, 0, 128) &&
		     !post_send(a, 0, 0, 128, IBV_SEND_SIGNALED) &&
		     sleeps_and_gets(b, b->rcq) && poll_spinning(a->scq);
	return ok;
}

/* As a ping-pong that waits for its send completions by events, too. */
static bool unit_events_of_both(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	bool ok = true;
	int i;

	for (i = 0; i < UNIT && ok; i++)
		ok = !ibv_req_notify_cq(b->rcq, 0) && !ibv_req_notify_cq(a->scq, 0) &&
		     !post_recv(b, 0, 0, 128) &&
		     !post_send(a, 0, 0, 128, IBV_SEND_SIGNALED) &&
		     sleeps_and_gets(b, b->rcq) && sleeps_and_gets(a, a->scq);
	return ok;
}

/*
 * Tests
 */
FIXTURE(costs)
{
};

/* @most: of UNIT messages */
FIXTURE_VARIANT(costs)
{
	bool (*unit)(struct pair *p);
	bool channel;
	long long most[COSTS];
};

FIXTURE_VARIANT_ADD(costs, polled)
{
	.unit = unit_polled,
	.most = { [KICKS] = UNIT, [CQES] = 2 * UNIT, [COPIED] = 128 * UNIT },
};

FIXTURE_VARIANT_ADD(costs, unsignaled)
{
	.unit = unit_unsignaled,
	.most = { [KICKS] = UNIT, [CQES] = UNIT + 1, [COPIED] = 128 * UNIT },
};

FIXTURE_VARIANT_ADD(costs, inline_payload)
{
	.unit = unit_inline,
	.most = { [KICKS] = UNIT, [CQES] = 2 * UNIT, [COPIED] = 128 * UNIT },
};

FIXTURE_VARIANT_ADD(costs, list)
{
	.unit = unit_list,
	.most = { [KICKS] = 1, [CQES] = 2 * UNIT, [COPIED] = 128 * UNIT },
};

FIXTURE_VARIANT_ADD(costs, megabyte_writes)
{
	.unit = unit_writes,
	.most = { [KICKS] = UNIT, [CQES] = UNIT, [COPIED] = LARGE * UNIT },
};

FIXTURE_VARIANT_ADD(costs, events)
{
	.unit = unit_events,
	.channel = true,
	.most = {
		[KICKS] = UNIT, [CALLS] = UNIT, [CQES] = 2 * UNIT, [EQES] = UNIT,
		[MSIX] = UNIT, [INTERRUPTS] = UNIT, [TASKLETS] = UNIT, [EVENTS] = UNIT,
		[COPIED] = 128 * UNIT,
	},
};

FIXTURE_VARIANT_ADD(costs, events_of_both)
{
	.unit = unit_events_of_both,
	.channel = true,
	.most = {
		[KICKS] = UNIT, [CALLS] = 2 * UNIT, [CQES] = 2 * UNIT, [EQES] = 2 * UNIT,
		[MSIX] = 2 * UNIT, [INTERRUPTS] = 2 * UNIT, [TASKLETS] = 2 * UNIT,
		[EVENTS] = 2 * UNIT, [COPIED] = 128 * UNIT,
	},
};

FIXTURE_SETUP(costs)
{
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)stage);
	stage->unit = variant->unit;
	stage->channel = variant->channel;
	ASSERT_EQ(0, engine_set("inline"));
}

FIXTURE_TEARDOWN(costs)
{
	munmap(stage, sizeof(*stage));
}

TEST_F(costs, a_message_takes_no_more_than_it_did)
{
	int i;

	run_traced(_metadata, &stage->view, program);
	stage->cost[KICKS] = stage->view.kicks[1];
	stage->cost[CALLS] = stage->view.others[1];
	for (i = 0; i < COSTS; i++) {
		EXPECT_LE(stage->cost[i], UNITS * variant->most[i]) {
			TH_LOG("%s: %g a message, not %g", cost_names[i],
			       (double)stage->cost[i] / (UNIT * UNITS),
			       (double)variant->most[i] / UNIT);
		}
	}
	/* They are counted. */
	EXPECT_LT(0, stage->cost[KICKS]);
	EXPECT_LT(0, stage->cost[CQES]);
	EXPECT_EQ(UNITS * variant->most[COPIED], stage->cost[COPIED]);
}

TEST_HARNESS_MAIN
