// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each action of a fault rule does, and that things are as ever behind it.
 */
#include "rc.h"
#include "faults.h"

FIXTURE(act)
{
	struct pair p;
	struct end *a;
	struct end *b;
	uint32_t aqp;
	uint32_t bqp;
	uint32_t scqn;
	uint32_t rcqn;
	uint32_t eqn;
	int fn;
};

FIXTURE_VARIANT(act)
{
	const char *engine;
};

FIXTURE_VARIANT_ADD(act, inline)
{
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(act, threaded)
{
	.engine = "threaded",
};

static void open_pair(struct __test_metadata *_metadata, FIXTURE_DATA(act) * self,
		      enum ibv_qp_type type)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	opts.type = type;
	opts.channel = true;
	opts.buf_len = 512 * 1024;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->aqp = self->a->qp->qp_num;
	self->bqp = self->b->qp->qp_num;
	self->scqn = self->a->scq->handle;
	self->rcqn = self->b->rcq->handle;
	self->eqn = shown(0, "cq", self->rcqn, "eq");
}

FIXTURE_SETUP(act)
{
	ASSERT_EQ(0, engine_set(variant->engine));
	ASSERT_EQ(0, order(0, "faults", "clear"));
	ASSERT_EQ(0, order(0, "hold", "release all"));
	open_pair(_metadata, self, IBV_QPT_RC);
}

FIXTURE_TEARDOWN(act)
{
	int waiting;

	EXPECT_EQ(0, order(0, "faults", "clear"));
	pair_close(_metadata, &self->p);
	EXPECT_EQ(0, gates(0, "", &waiting));
}

static int post_rdma(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t off,
		     uint32_t len, uint32_t raddr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->buf + off, .length = len, .lkey = from->mr->lkey,
	};
	struct ibv_send_wr wr = send_wr(opcode, &sge, 1, IBV_SEND_SIGNALED), *bad = NULL;

	wr.opcode = opcode;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->buf + raddr;
		wr.wr.atomic.rkey = to->mr->rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->buf + raddr;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	return ibv_post_send(from->qp, &wr, &bad);
}

/* Of the vector of an EQ, which it has for itself. */
static long interrupts_of(uint32_t eqn)
{
	FILE *f = fopen("/sys/kernel/debug/vhca/vhca0/vectors", "re");
	char line[256], eqns[64];
	long n, found = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*u %*u %63s %ld", eqns, &n) == 2 &&
		    strtoul(eqns, NULL, 10) == eqn)
			found = n;
	if (f)
		fclose(f);
	return found;
}

static bool next_event(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct ibv_async_event event;

	return async_event(ctx, &event) && event.event_type == type;
}

/* Send WQEs */

TEST_F(act, complete_says_success_and_sends_nothing)
{
	ASSERT_LT(0, plan(0, "qp=%u nth=1 complete status=SUCCESS", self->aqp));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
}

TEST_F(act, complete_takes_the_qp_to_where_an_error_would)
{
	struct ibv_wc wc;

	ASSERT_LT(0, plan(0, "qp=%u nth=1 complete status=REM_OP_ERR vendor_err=0xab",
			  self->aqp));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, 0));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, 0));
	wc = expect_wc(_metadata, self->a->scq, 1, IBV_WC_REM_OP_ERR);
	EXPECT_EQ(0xab, wc.vendor_err);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(goes_to_error(self->a->qp));
	recover(_metadata, &self->p);
}

TEST_F(act, complete_takes_a_ud_qp_to_sqe)
{
	pair_close(_metadata, &self->p);
	open_pair(_metadata, self, IBV_QPT_UD);
	ASSERT_LT(0, plan(0, "qp=%u nth=1 complete status=FATAL_ERR", self->aqp));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, 0));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_FATAL_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->a->qp) == IBV_QPS_SQE));
	exchange(_metadata, self->b, self->a, 100, 3);
}

TEST_F(act, complete_at_the_receiver_fails_both)
{
	ASSERT_LT(0, plan(0, "qp=%u nth=1 side=recv complete status=LOC_PROT_ERR", self->bqp));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, 0));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_REM_OP_ERR);
	EXPECT_TRUE(goes_to_error(self->b->qp));
	recover(_metadata, &self->p);
}

TEST_F(act, delay_holds_a_wqe_and_those_behind_it)
{
	int id = plan(0, "qp=%u nth=2 delay wqe", self->aqp);
	int i;

	ASSERT_LT(0, id);
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, post_recv(self->b, i, 0, 64));
		ASSERT_EQ(0, post_send(self->a, i, 0, 64, IBV_SEND_SIGNALED));
	}
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", self->aqp) == 2));
	EXPECT_TRUE(cq_empty(self->a->scq));
	ASSERT_EQ(0, orderf(0, "faults", "clear %d", id));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
}

TEST_F(act, delay_and_slow_take_as_long_as_they_say)
{
	static const char * const rules[] = {
		"qp=%u delay wqe time=3000", "qp=%u slow latency=3000", "qp=%u slow rate=200",
	};
	unsigned int i, n;
	uint64_t start;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		ASSERT_EQ(0, orderf(0, "faults", rules[i], self->aqp));
		start = now_ns();
		for (n = 0; n < 4; n++)
			exchange(_metadata, self->a, self->b, 100, 1 + n);
		/* Four times 3 ms; of a rate the first does not wait, the others 5. */
		EXPECT_LE(12000000, now_ns() - start);
		ASSERT_EQ(0, order(0, "faults", "clear"));
	}
}

TEST_F(act, delay_wqe_is_let_go_by_release_and_step)
{
	ASSERT_LT(0, plan(0, "qp=%u times=2 delay wqe", self->aqp));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 0, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 0, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 64));
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", self->aqp) == 2));
	ASSERT_EQ(0, orderf(0, "hold", "step wqe qp=%u", self->aqp));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", self->aqp) == 1));
	ASSERT_EQ(0, order(0, "hold", "release wqe"));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
}

TEST_F(act, fatal_takes_the_qp_to_error_with_an_event)
{
	ASSERT_LT(0, plan(0, "qp=%u nth=1 fatal", self->aqp));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, 0));
	EXPECT_TRUE(next_event(self->a->ctx, IBV_EVENT_QP_FATAL));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	recover(_metadata, &self->p);
	ASSERT_LT(0, plan(0, "qp=%u nth=1 fatal side=recv", self->bqp));
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, 0));
	EXPECT_TRUE(next_event(self->b->ctx, IBV_EVENT_QP_FATAL));
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_RETRY_EXC_ERR);
	recover(_metadata, &self->p);
}

TEST_F(act, flap_takes_the_link_down_and_up_again)
{
	ASSERT_LT(0, plan(0, "qp=%u nth=1 flap time=1000", self->aqp));
	exchange(_metadata, self->a, self->b, 3000, 1);
	EXPECT_TRUE(next_event(self->b->ctx, IBV_EVENT_PORT_ERR));
	EXPECT_TRUE(next_event(self->b->ctx, IBV_EVENT_PORT_ACTIVE));
}

/* Requests on their way */

TEST_F(act, a_lost_request_is_sent_again)
{
	long long retries = device_counter(0, "retries");
	int id = plan(0, "qp=%u times=2 lose request", self->aqp);

	ASSERT_LT(0, id);
	exchange(_metadata, self->a, self->b, 3000, 1);
	EXPECT_EQ(2, rule_hits(0, id));
	EXPECT_EQ(retries + 2, device_counter(0, "retries"));
	EXPECT_TRUE(cq_empty(self->b->rcq));
}

/* With one retry a request may be lost, and another one after an answer. */
TEST_F(act, a_receiver_that_is_not_ready_has_answered)
{
	long long naks = device_counter(0, "rnr_naks");
	int id;

	self->p.opts.retry_cnt = 1;
	self->p.opts.timeout = 8;
	pair_reconnect(_metadata, &self->p);
	ASSERT_LT(0, plan(0, "qp=%u nth=1 lose request", self->aqp));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	ASSERT_TRUE(wait_until(device_counter(0, "rnr_naks") > naks));
	id = plan(0, "qp=%u nth=1 lose request", self->aqp);
	ASSERT_LT(0, id);
	ASSERT_TRUE(wait_until(rule_hits(0, id) == 1));
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 64));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
}

/* Of a long message each request, once. */
static void lose_responses(struct __test_metadata *_metadata, uint32_t qpn)
{
	ASSERT_EQ(0, order(0, "faults", "clear"));
	ASSERT_LT(0, plan(0, "qp=%u every=2 lose request", qpn));
	ASSERT_LT(0, plan(0, "qp=%u every=2 lose response", qpn));
}

#define LONG	200000		/* four requests */

TEST_F(act, a_message_whose_response_is_lost_is_taken_once)
{
	lose_responses(_metadata, self->aqp);
	exchange(_metadata, self->a, self->b, LONG, 5);
	/* A receive is not taken by a duplicate, and so it is there for the next. */
	ASSERT_EQ(0, post_recv(self->b, 77, 0, LONG));
	ASSERT_EQ(0, post_send(self->a, 78, 0, LONG, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 78, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 77, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->b->rcq));
}

TEST_F(act, a_write_whose_response_is_lost_is_all_there)
{
	lose_responses(_metadata, self->aqp);
	fill(self->a->buf, LONG, 9);
	ASSERT_EQ(0, post_rdma(self->a, self->b, IBV_WR_RDMA_WRITE, 0, LONG, 100));
	expect_wc(_metadata, self->a->scq, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + 100, LONG));
}

TEST_F(act, a_read_whose_response_is_lost_is_read_again)
{
	lose_responses(_metadata, self->aqp);
	fill(self->b->buf, LONG, 11);
	memset(self->a->buf, 0, LONG);
	ASSERT_EQ(0, post_rdma(self->a, self->b, IBV_WR_RDMA_READ, 0, LONG, 0));
	expect_wc(_metadata, self->a->scq, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf, LONG));
}

TEST_F(act, an_atomic_whose_response_is_lost_is_done_once)
{
	uint64_t old, now, i;

	memset(self->b->buf, 0, 8);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, order(0, "faults", "clear"));
		ASSERT_LT(0, plan(0, "qp=%u times=%u lose response", self->aqp,
				  (unsigned int)i + 1));
		ASSERT_EQ(0, post_rdma(self->a, self->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, 0));
		expect_wc(_metadata, self->a->scq, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS);
		memcpy(&old, self->a->buf + 8, 8);
		memcpy(&now, self->b->buf, 8);
		EXPECT_EQ(5 * i, old);
		EXPECT_EQ(5 * i + 5, now);
	}
}

TEST_F(act, a_lost_response_to_a_refusal_is_no_success)
{
	ASSERT_LT(0, plan(0, "qp=%u nth=1 lose response", self->aqp));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 10));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, 0));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_RETRY_EXC_ERR);
	recover(_metadata, &self->p);
}

/* Where two buffers differ: the byte, when it is one; else -1. */
static long differs(const uint8_t *x, const uint8_t *y, uint32_t len)
{
	long at = -1;
	uint32_t i;

	for (i = 0; i < len; i++) {
		if (x[i] == y[i])
			continue;
		if (at >= 0)
			return -1;
		at = i;
	}
	return at;
}

TEST_F(act, corrupt_changes_one_byte_on_the_way)
{
	static const uint32_t offsets[] = { 0, 1, 65535, 65536, 150000, LONG - 1 };
	uint8_t *from = self->a->buf, *to = self->b->buf;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		uint32_t at = offsets[i];

		ASSERT_EQ(0, order(0, "faults", "clear"));
		ASSERT_LT(0, plan(0, "qp=%u corrupt offset=%u xor=0x81", self->aqp, at));
		fill(from, LONG, i + 1);
		ASSERT_EQ(0, post_recv(self->b, 1, 0, LONG));
		ASSERT_EQ(0, post_send(self->a, 1, 0, LONG, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
		EXPECT_EQ(at, differs(from, to, LONG));
		EXPECT_EQ(0x81, from[at] ^ to[at]);
		ASSERT_EQ(0, post_rdma(self->a, self->b, IBV_WR_RDMA_WRITE, 0, LONG, 0));
		expect_wc(_metadata, self->a->scq, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
		EXPECT_EQ(at, differs(from, to, LONG));
		memset(from, 0, LONG);
		ASSERT_EQ(0, post_rdma(self->a, self->b, IBV_WR_RDMA_READ, 0, LONG, 0));
		expect_wc(_metadata, self->a->scq, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
		EXPECT_EQ(at, differs(from, to, LONG));
	}
	/* What has no such byte is not corrupted. */
	exchange(_metadata, self->a, self->b, LONG - 1, 4);
}

TEST_F(act, corrupt_datagrams_and_lost_ones)
{
	int id;

	pair_close(_metadata, &self->p);
	open_pair(_metadata, self, IBV_QPT_UD);
	id = plan(0, "qp=%u nth=1 corrupt offset=3", self->aqp);
	ASSERT_LT(0, id);
	fill(self->a->buf, 64, 3);
	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(3, differs(self->a->buf, self->b->buf + GRH_LEN, 64));
	ASSERT_LT(0, plan(0, "qp=%u nth=1 lose request", self->aqp));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	exchange(_metadata, self->a, self->b, 64, 9);
}

/* The responder */

TEST_F(act, rnr_is_answered_though_a_receive_is_there)
{
	long long naks = device_counter(0, "rnr_naks");

	ASSERT_LT(0, plan(0, "qp=%u times=3 rnr", self->bqp));
	exchange(_metadata, self->a, self->b, 1000, 1);
	EXPECT_EQ(naks + 3, device_counter(0, "rnr_naks"));
}

TEST_F(act, a_stalled_responder_does_nothing)
{
	long long retries = device_counter(0, "retries");

	ASSERT_LT(0, plan(0, "qp=%u times=2 stall", self->bqp));
	exchange(_metadata, self->a, self->b, 1000, 1);
	EXPECT_EQ(retries + 2, device_counter(0, "retries"));
	ASSERT_LT(0, plan(0, "qp=%u stall", self->bqp));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 64, 0));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_RETRY_EXC_ERR);
	ASSERT_EQ(0, order(0, "faults", "clear"));
	recover(_metadata, &self->p);
}

/* CQEs */

TEST_F(act, a_delayed_cqe_keeps_its_place)
{
	int i;

	ASSERT_LT(0, plan(0, "cq=%u nth=2 delay cqe time=20000", self->scqn));
	for (i = 1; i <= 4; i++) {
		ASSERT_EQ(0, post_recv(self->b, i, 0, 64));
		ASSERT_EQ(0, post_send(self->a, i, 0, 64, IBV_SEND_SIGNALED));
	}
	for (i = 1; i <= 4; i++)
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
}

TEST_F(act, overrun_is_told_as_one)
{
	struct ibv_async_event event;
	int i, types = 0;

	ASSERT_LT(0, plan(0, "cq=%u nth=1 overrun", self->scqn));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(async_event(self->a->ctx, &event));
		types |= 1 << event.event_type;
	}
	EXPECT_EQ(1 << IBV_EVENT_CQ_ERR | 1 << IBV_EVENT_QP_FATAL, types);
	EXPECT_TRUE(goes_to_error(self->a->qp));
}

/* Events */

static void message(struct __test_metadata *_metadata, FIXTURE_DATA(act) * self)
{
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
}

TEST_F(act, a_dropped_event_never_comes)
{
	int id = plan(0, "cq=%u nth=1 drop eqe", self->rcqn);

	ASSERT_LT(0, id);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(1, rule_hits(0, id));
	EXPECT_FALSE(readable(self->b->channel->fd, 50));
	/* The EQE alone was lost: one that is made for it does. */
	ASSERT_EQ(0, orderf(0, "inject", "eqe eq=%u cq=%u", self->eqn, self->rcqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

/* Twice as often as the arm has numbers, which are four. */
TEST_F(act, events_that_no_arm_asked_for_leave_the_cq_to_be_armed)
{
	int i;

	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, orderf(0, "inject", "eqe eq=%u cq=%u", self->eqn, self->rcqn));
		ASSERT_EQ(self->b->rcq, comp_event(self->b->channel));
		ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
		if (i % 3)
			continue;
		message(_metadata, self);
		ASSERT_EQ(self->b->rcq, comp_event(self->b->channel));
		ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	}
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

TEST_F(act, a_repeated_event_is_written_twice)
{
	long pi = shown(0, "eq", self->eqn, "pi");

	ASSERT_LT(0, plan(0, "cq=%u nth=1 repeat eqe", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	EXPECT_EQ(pi + 2, shown(0, "eq", self->eqn, "pi"));
}

TEST_F(act, a_merged_event_waits_to_be_let_go)
{
	ASSERT_LT(0, plan(0, "cq=%u nth=1 merge eqe", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(1, pending(0, "eqe cq=%u", self->rcqn));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "hold", "release eqe cq=%u", self->rcqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

TEST_F(act, a_delayed_event_comes)
{
	ASSERT_LT(0, plan(0, "cq=%u nth=1 delay eqe time=2000", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

TEST_F(act, a_lost_doorbell_leaves_the_arm_for_the_next_completion)
{
	ASSERT_LT(0, plan(0, "cq=%u drop arm", self->rcqn));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	/* One is there: the doorbell says so, and nobody hears. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	EXPECT_FALSE(readable(self->b->channel->fd, 50));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

/* Interrupts */

TEST_F(act, a_lost_interrupt_is_made_up_by_any_other)
{
	ASSERT_LT(0, plan(0, "eq=%u nth=1 drop msix", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_FALSE(readable(self->b->channel->fd, 50));
	ASSERT_EQ(0, orderf(0, "inject", "msix eq=%u", self->eqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

TEST_F(act, a_repeated_interrupt_comes_twice)
{
	long before = interrupts_of(self->eqn);

	ASSERT_LT(0, plan(0, "eq=%u nth=1 repeat msix", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	EXPECT_TRUE(wait_until(interrupts_of(self->eqn) == before + 2));
}

TEST_F(act, a_merged_interrupt_goes_with_the_next_event)
{
	ASSERT_LT(0, plan(0, "eq=%u nth=1 merge msix", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(1, pending(0, "msix eq=%u", self->eqn));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "inject", "eqe eq=%u cq=77777", self->eqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	EXPECT_EQ(0, pending(0, "msix eq=%u", self->eqn));
}

TEST_F(act, a_delayed_interrupt_comes)
{
	ASSERT_LT(0, plan(0, "eq=%u nth=1 delay msix time=2000", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self);
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

/* At once */

TEST_F(act, what_is_injected_happens_at_once)
{
	long interrupts = interrupts_of(self->eqn);
	long long eqes = driver_counter(0, "comp_eqes");

	ASSERT_EQ(0, orderf(0, "inject", "eqe eq=%u cq=0xfffffff", self->eqn));
	EXPECT_TRUE(wait_until(driver_counter(0, "comp_eqes") == eqes + 1));
	EXPECT_TRUE(wait_until(interrupts_of(self->eqn) == interrupts + 1));
	ASSERT_EQ(0, orderf(0, "inject", "msix eq=%u", self->eqn));
	EXPECT_TRUE(wait_until(interrupts_of(self->eqn) == interrupts + 2));
	EXPECT_EQ(eqes + 1, driver_counter(0, "comp_eqes"));
	ASSERT_EQ(0, order(0, "inject", "port down"));
	EXPECT_TRUE(next_event(self->a->ctx, IBV_EVENT_PORT_ERR));
	ASSERT_EQ(0, order(0, "inject", "port up"));
	EXPECT_TRUE(next_event(self->a->ctx, IBV_EVENT_PORT_ACTIVE));
}

TEST_F(act, what_cannot_be_injected_is_refused)
{
	static const struct {
		const char *text;
		int err;
		const char *where;
	} wrong[] = {
		{ "eqe eq=1", -EINVAL, "1:9:" },
		{ "eqe eq=63 cq=1", -ENOENT, "1:5:" },
		{ "msix eq=1 cq=1", -EINVAL, "1:11:" },
		{ "msix", -EINVAL, "1:5:" },
		{ "msix eq=63", -ENOENT, "1:6:" },
		{ "event", -EINVAL, "1:6:" },
		{ "event type=WQ_FATAL", -EINVAL, "1:7:" },
		{ "event type=QP_FATAL", -EINVAL, "1:20:" },
		{ "event type=QP_FATAL number=0xffffff", -ENOENT, "1:21:" },
		{ "event type=CQ_ERR number=0x7fffffff", -ENOENT, "1:19:" },
		{ "event type=SRQ_ERR number=0x7fffffff", -ENOENT, "1:20:" },
		{ "event type=PORT_ERR number=2", -ENOENT, "1:21:" },
		{ "port", -EINVAL, "1:5:" },
		{ "port sideways", -EINVAL, "1:6:" },
		{ "break it", -EINVAL, "1:7:" },
		{ "peace", -EINVAL, "1:1:" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		EXPECT_EQ(wrong[i].err, order(0, "inject", wrong[i].text)) {
			TH_LOG("%s", wrong[i].text);
		}
		EXPECT_EQ(0, strncmp(wrong[i].where, fault_error(0), strlen(wrong[i].where))) {
			TH_LOG("%s: %s", wrong[i].text, fault_error(0));
		}
	}
}

TEST_HARNESS_MAIN
