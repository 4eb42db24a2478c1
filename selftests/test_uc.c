// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_uc.c: unreliable connections: data, what is dropped without a word to the
 * sender, what fails at the receiver alone, and the send queue error state.
 */
#define _GNU_SOURCE
#include "ops.h"

#define BUF_LEN		(512 * 1024)
#define SLICE		65536	/* the device moves long messages in such pieces */
#define HALF		(BUF_LEN / 2)

FIXTURE(uc)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_VARIANT(uc)
{
	const char *engine;
	int peer;
	bool srq;
};

FIXTURE_VARIANT_ADD(uc, inline)
{
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(uc, threaded)
{
	.engine = "threaded",
};

FIXTURE_VARIANT_ADD(uc, other_function)
{
	.engine = "inline",
	.peer = 1,
};

FIXTURE_VARIANT_ADD(uc, srq)
{
	.engine = "inline",
	.srq = true,
};

FIXTURE_SETUP(uc)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = IBV_QPT_UC;
	opts.access = IBV_ACCESS_REMOTE_WRITE;
	opts.function[1] = variant->peer;
	opts.srq = variant->srq;
	opts.buf_len = BUF_LEN;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(uc)
{
	pair_close(_metadata, &self->p);
}

/* Messages that the peer's function did not take, since the program began or before. */
static long long dropped(int peer)
{
	return device_counter(peer, "dropped");
}

static int post_bad_key(struct end *e, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 8, ~e->mr->lkey };

	return post_send_sges(e->qp, wr_id, &sge, 1, 0);
}

TEST_F(uc, messages_of_all_sizes_arrive)
{
	static const uint32_t sizes[] = {
		0, 1, 1023, 1024, 1025, 4097, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE + 5,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		exchange(_metadata, self->a, self->b, sizes[i], 2 * i + 1);
		exchange(_metadata, self->b, self->a, sizes[i], 2 * i + 101);
	}
}

TEST_F(uc, a_message_names_its_sender)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->b, 1, 0, 8));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, 0));
	wc = expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_EQ(self->b->qp->qp_num, wc.qp_num);
	EXPECT_EQ(self->a->qp->qp_num, wc.src_qp);
	EXPECT_EQ(self->a->lid, wc.slid);
	EXPECT_EQ(0, wc.wc_flags);
}

TEST_F(uc, writes_arrive_with_and_without_immediate)
{
	struct op op = remote_op(IBV_WR_RDMA_WRITE, self->b, HALF, 2 * SLICE + 7);
	struct ibv_wc wc;

	fill(self->a->buf, op.len, 5);
	ASSERT_EQ(0, post_op(self->a, 1, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_EQ(0, memcmp(self->a->buf, self->b->buf + HALF, op.len));

	op.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	op.imm = 0x12345678;
	fill(self->a->buf, op.len, 6);
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 0));
	ASSERT_EQ(0, post_op(self->a, 3, &op));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	EXPECT_EQ(htobe32(op.imm), wc.imm_data);
	EXPECT_EQ(op.len, wc.byte_len);
	ASSERT_EQ(0, memcmp(self->a->buf, self->b->buf + HALF, op.len));
}

TEST_F(uc, a_message_without_a_receive_is_dropped)
{
	struct op op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, self->b, HALF, 2 * SLICE);
	long long before = dropped(variant->peer);

	memset(self->b->buf, 0xa5, self->b->len);
	fill(self->a->buf, HALF, 1);
	ASSERT_EQ(0, post_send(self->a, 1, 0, 100, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 2 * SLICE + 1, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_op(self->a, 3, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	/* One piece, three, two. */
	EXPECT_EQ(before + 6, dropped(variant->peer));
	EXPECT_TRUE(all_are(self->b->buf, 0xa5, self->b->len));
	EXPECT_TRUE(cq_empty(self->b->rcq));
	/* And is no hindrance for the next. */
	exchange(_metadata, self->a, self->b, SLICE + 9, 1);
}

TEST_F(uc, a_write_that_may_not_be_is_dropped)
{
	struct op op = remote_op(IBV_WR_RDMA_WRITE, self->b, 0, 3 * SLICE);
	long long before = dropped(variant->peer);

	memset(self->b->buf, 0xa5, self->b->len);
	op.rkey = ~op.rkey;
	ASSERT_EQ(0, post_op(self->a, 1, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	op = remote_op(IBV_WR_RDMA_WRITE, self->b, BUF_LEN - 8, 9);
	ASSERT_EQ(0, post_op(self->a, 2, &op));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(before + 4, dropped(variant->peer));
	EXPECT_TRUE(all_are(self->b->buf, 0xa5, self->b->len));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp));
	exchange(_metadata, self->a, self->b, 100, 1);
}

/*
 * Messages that are broken off: so long that there is time to, while they are sent
 */
#define LONG_BUF	(32 * 1024 * 1024)
#define LONG_SGES	30	/* all the same memory */

static void open_for_long(struct __test_metadata *_metadata, struct pair *p)
{
	struct pair_opts opts = p->opts;

	pair_close(_metadata, p);
	opts.buf_len = LONG_BUF;
	opts.cap.max_send_sge = LONG_SGES;
	opts.cap.max_recv_sge = LONG_SGES;
	pair_open(_metadata, p, &opts);
}

static int long_list(const struct end *e, struct ibv_sge *sge)
{
	int i;

	for (i = 0; i < LONG_SGES; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)e->buf, LONG_BUF, e->mr->lkey };
	return LONG_SGES;
}

/* A message is on its way, and its beginning has arrived. Its receive has wr_id 1. */
static void begin_long(struct __test_metadata *_metadata, struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge[LONG_SGES];

	b->buf[0] = 0;
	a->buf[0] = 1;
	ASSERT_EQ(0, post_recv_end(b, 1, sge, long_list(b, sge)));
	ASSERT_EQ(0, post_send_sges(a->qp, 9, sge, long_list(a, sge), IBV_SEND_SIGNALED));
	ASSERT_TRUE(wait_until(__atomic_load_n(b->buf, __ATOMIC_ACQUIRE)));
}

/* The sender gives up in the middle, and is connected again. */
static void break_off(struct __test_metadata *_metadata, struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];

	begin_long(_metadata, p);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_ERR));
	expect_wc(_metadata, a->scq, 9, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	qp_connect(_metadata, a->qp, &p->opts, b->lid, b->qp->qp_num);
}

TEST_F(uc, a_message_that_is_broken_off_leaves_its_receive_to_the_next)
{
	struct ibv_wc wc;
	int i;

	open_for_long(_metadata, &self->p);
	break_off(_metadata, &self->p);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp));
	ASSERT_EQ(0, post_recv(self->b, 2, SLICE, 100));
	for (i = 0; i < 2; i++) {
		fill(self->a->buf, 100, i);
		ASSERT_EQ(0, post_send(self->a, 3, 0, 100, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
		wc = expect_wc(_metadata, self->b->rcq, 1 + i, IBV_WC_SUCCESS);
		EXPECT_EQ(100, wc.byte_len);
		EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + i * SLICE, 100));
	}
	EXPECT_TRUE(cq_empty(self->b->rcq));
}

TEST_F(uc, the_rest_of_a_message_without_its_beginning_is_dropped)
{
	struct end *a = self->a, *b = self->b;

	open_for_long(_metadata, &self->p);
	begin_long(_metadata, &self->p);
	/* The receiver starts anew in the middle. */
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
	ASSERT_TRUE(cq_empty(a->scq));
	ASSERT_EQ(0, qp_to_init(b->qp, &self->p.opts));
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, qp_to_rtr(b->qp, &self->p.opts, a->lid, a->qp->qp_num));
	expect_wc(_metadata, a->scq, 9, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
	ASSERT_EQ(0, post_send(a, 3, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
}

TEST_F(uc, a_receive_in_hand_is_flushed_once)
{
	open_for_long(_metadata, &self->p);
	break_off(_metadata, &self->p);
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 100));
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_ERR));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	/* What is in an SRQ stays there. */
	if (!variant->srq)
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	pair_reconnect(_metadata, &self->p);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	if (!variant->srq)
		ASSERT_EQ(0, post_recv(self->b, 2, 0, 100));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
}

static int post_all(struct end *e)
{
	int n = 0;

	while (!post_recv(e, n, 0, 8))
		n++;
	return n;
}

/* Who posts to an SRQ has to get its room back from a QP that forgets what it took. */
TEST_F(uc, a_receive_in_hand_is_not_lost_to_its_queue)
{
	struct end *b = self->b;
	int i, room;

	open_for_long(_metadata, &self->p);
	for (i = 0; i < 2; i++) {
		break_off(_metadata, &self->p);
		if (i) {
			ASSERT_EQ(0, ibv_destroy_qp(b->qp));
			end_make_qp(_metadata, b, &self->p.opts, 1);
			pair_reconnect(_metadata, &self->p);
		} else {
			ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
			qp_connect(_metadata, b->qp, &self->p.opts, self->a->lid,
				   self->a->qp->qp_num);
		}
	}
	/* Nor is it seen by who polls. */
	EXPECT_TRUE(cq_empty(b->rcq));
	room = post_all(b);
	for (i = 0; i < room; i++) {
		ASSERT_EQ(0, post_send(self->a, i, 0, 8, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	}
	EXPECT_EQ(self->p.opts.cap.max_recv_wr, room);
}

TEST_F(uc, a_qp_without_the_right_drops_writes)
{
	struct op op = remote_op(IBV_WR_RDMA_WRITE, self->b, 0, 8);
	struct pair_opts opts = self->p.opts;

	opts.access = 0;
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	qp_connect(_metadata, self->b->qp, &opts, self->a->lid, self->a->qp->qp_num);
	memset(self->b->buf, 0xa5, 8);
	ASSERT_EQ(0, post_op(self->a, 1, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(all_are(self->b->buf, 0xa5, 8));
	exchange(_metadata, self->a, self->b, 100, 1);
}

TEST_F(uc, without_anybody_there_a_message_completes)
{
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RESET));
	/* To a port that nobody has. */
	qp_connect(_metadata, self->a->qp, &self->p.opts, 999, self->b->qp->qp_num);
	ASSERT_EQ(0, post_send(self->a, 2, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
}

/* The receiver starts anew at another PSN than the sender is at. */
TEST_F(uc, a_new_message_is_taken_whatever_was_lost_before)
{
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, post_send(self->a, i, 0, 3000, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
	}
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	qp_connect(_metadata, self->b->qp, &self->p.opts, self->a->lid, self->a->qp->qp_num);
	exchange(_metadata, self->a, self->b, 2 * SLICE + 1, 1);
}

TEST_F(uc, a_message_longer_than_the_receive_fails_there)
{
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 99));
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 100));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->b->qp) == IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->a->qp));
	/* What is in an SRQ stays there. */
	if (!variant->srq)
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(0, post_send(self->a, 4, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 4, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->b->rcq));
}

TEST_F(uc, a_receive_into_memory_that_may_not_be_written_fails_there)
{
	struct ibv_sge sge = { (uintptr_t)self->b->buf, 100, ~self->b->mr->lkey };

	ASSERT_EQ(0, post_recv_end(self->b, 1, &sge, 1));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->b->qp) == IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->a->qp));
}

TEST_F(uc, a_send_that_fails_stops_the_send_queue_alone)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, post_bad_key(self->a, 1));
	wc = expect_wc(_metadata, self->a->scq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(self->a->qp->qp_num, wc.qp_num);
	EXPECT_TRUE(wait_until(qp_state(self->a->qp) == IBV_QPS_SQE));

	/* Sends are flushed, receives go on. */
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 8, 0));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	exchange(_metadata, self->b, self->a, SLICE + 3, 7);
	EXPECT_EQ(IBV_QPS_SQE, qp_state(self->a->qp));

	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	exchange(_metadata, self->a, self->b, 2 * SLICE, 9);
	exchange(_metadata, self->b, self->a, 100, 11);
}

TEST_F(uc, what_is_posted_with_the_send_that_fails_is_flushed)
{
	struct ibv_sge good = { (uintptr_t)self->a->buf, 8, self->a->mr->lkey };
	struct ibv_sge bad_key = { (uintptr_t)self->a->buf, 8, ~self->a->mr->lkey };
	struct ibv_send_wr *bad, wr[4];
	int i;

	for (i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.sg_list = i == 1 ? &bad_key : &good,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
		};
	ASSERT_EQ(0, post_recv(self->b, 10, 0, 8));
	ASSERT_EQ(0, ibv_post_send(self->a->qp, wr, &bad));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, self->b->rcq, 10, IBV_WC_SUCCESS);
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	exchange(_metadata, self->a, self->b, 100, 1);
}

TEST_F(uc, from_the_send_queue_error_state_to_error_and_reset)
{
	ASSERT_EQ(0, post_bad_key(self->a, 1));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->a->qp) == IBV_QPS_SQE));
	EXPECT_EQ(EINVAL, qp_to(self->a->qp, IBV_QPS_SQD));
	EXPECT_EQ(EINVAL, qp_to(self->a->qp, IBV_QPS_INIT));

	if (!variant->srq)
		ASSERT_EQ(0, post_recv(self->a, 2, 0, 8));
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_ERR));
	if (!variant->srq)
		expect_wc(_metadata, self->a->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	pair_reconnect(_metadata, &self->p);
	exchange(_metadata, self->a, self->b, 100, 1);
	exchange(_metadata, self->b, self->a, 100, 3);
}

TEST_F(uc, the_first_message_in_rtr_is_reported)
{
	struct ibv_async_event event;

	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to_init(self->b->qp, &self->p.opts));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 8));
	ASSERT_EQ(0, qp_to_rtr(self->b->qp, &self->p.opts, self->a->lid,
			       self->a->qp->qp_num));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, 0));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	ASSERT_TRUE(async_event(self->b->ctx, &event));
	EXPECT_EQ(IBV_EVENT_COMM_EST, event.event_type);
	EXPECT_EQ(self->b->qp, event.element.qp);
}

TEST_HARNESS_MAIN
