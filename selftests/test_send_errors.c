// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_send_errors.c: what RC SEND does with bad work requests, absent peers and
 * QPs in error: status at both ends, flush, async events, recovery.
 */
#define _GNU_SOURCE
#include "rc.h"

/*
 * Length
 */
TEST_F(rc, a_message_too_long_is_loc_len_err_there_and_rem_inv_req_err_here)
{
	struct slice to[] = { { 0, 60 }, { 100, 39 } };
	struct end *a = self->a, *b = self->b;

	ASSERT_EQ(0, post_recv_slices(b, 2, to, 2));
	ASSERT_EQ(0, post_recv(b, 3, 0, 1000));
	ASSERT_EQ(0, post_send(a, 1, 0, 100, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(a, 4, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	expect_wc(_metadata, b->rcq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(_metadata, a->scq, 4, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(goes_to_error(a->qp));
	EXPECT_TRUE(goes_to_error(b->qp));
	recover(_metadata, &self->p);
}

/*
 * Keys: each of these is one send that cannot be done, and then recovery.
 */
static void bad_source(struct __test_metadata *_metadata, struct pair *p, uint64_t addr,
		       uint32_t len, uint32_t lkey, unsigned int flags)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge = { addr, len, lkey };
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(b, 2, 0, 8192));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, &sge, 1, flags));
	wc = expect_wc(_metadata, a->scq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(a->qp->qp_num, wc.qp_num);
	EXPECT_NE(0, wc.vendor_err);
	EXPECT_TRUE(goes_to_error(a->qp));
	/* Nothing left the sender. */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
	EXPECT_TRUE(cq_empty(b->rcq));
	recover(_metadata, p);
}

static void bad_target(struct __test_metadata *_metadata, struct pair *p, uint64_t addr,
		       uint32_t len, uint32_t lkey)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge = { addr, len, lkey };
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv_sges(b->qp, 2, &sge, 1));
	ASSERT_EQ(0, post_send(a, 1, 0, len, IBV_SEND_SIGNALED));
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(b->qp->qp_num, wc.qp_num);
	EXPECT_NE(0, wc.vendor_err);
	wc = expect_wc(_metadata, a->scq, 1, IBV_WC_REM_OP_ERR);
	EXPECT_NE(0, wc.vendor_err);
	EXPECT_TRUE(goes_to_error(a->qp));
	EXPECT_TRUE(goes_to_error(b->qp));
	recover(_metadata, p);
}

TEST_F(rc, a_key_that_never_was)
{
	struct end *a = self->a, *b = self->b;

	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, 0, IBV_SEND_SIGNALED);
	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, 0xffffffff, IBV_SEND_SIGNALED);
	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, a->mr->lkey ^ 1,
		   IBV_SEND_SIGNALED);
	bad_target(_metadata, &self->p, (uintptr_t)b->buf, 100, 0);
	bad_target(_metadata, &self->p, (uintptr_t)b->buf, 100, b->mr->lkey ^ 1);
}

TEST_F(rc, an_unsignaled_send_that_fails_has_a_completion)
{
	bad_source(_metadata, &self->p, (uintptr_t)self->a->buf, 100, 0, 0);
}

TEST_F(rc, memory_outside_of_the_region)
{
	struct end *a = self->a, *b = self->b;
	uint64_t first = (uintptr_t)a->buf, end = first + a->len;

	bad_source(_metadata, &self->p, first - 1, 100, a->mr->lkey, IBV_SEND_SIGNALED);
	bad_source(_metadata, &self->p, end - 99, 100, a->mr->lkey, IBV_SEND_SIGNALED);
	bad_source(_metadata, &self->p, end, 1, a->mr->lkey, IBV_SEND_SIGNALED);
	bad_source(_metadata, &self->p, -(uint64_t)50, 100, a->mr->lkey, IBV_SEND_SIGNALED);
	bad_target(_metadata, &self->p, (uintptr_t)b->buf - 1, 100, b->mr->lkey);
	bad_target(_metadata, &self->p, (uintptr_t)b->buf + b->len - 99, 100, b->mr->lkey);
	/* The last byte is inside. */
	ASSERT_EQ(0, post_recv(b, 2, b->len - 100, 100));
	ASSERT_EQ(0, post_send(a, 1, a->len - 100, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
}

TEST_F(rc, a_bad_key_behind_a_good_one)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge[] = {
		{ (uintptr_t)b->buf, 50, b->mr->lkey },
		{ (uintptr_t)b->buf + 50, 50, b->mr->lkey ^ 1 },
	};

	ASSERT_EQ(0, post_recv_sges(b->qp, 2, sge, 2));
	ASSERT_EQ(0, post_send(a, 1, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_OP_ERR);
	recover(_metadata, &self->p);

	sge[0] = (struct ibv_sge){ (uintptr_t)a->buf, 50, a->mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)a->buf + 50, 50, a->mr->lkey ^ 1 };
	ASSERT_EQ(0, post_recv(b, 2, 0, 8192));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, sge, 2, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_TRUE(cq_empty(b->rcq));
	recover(_metadata, &self->p);
}

TEST_F(rc, a_key_is_dead_at_once_when_its_region_is_deregistered)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	uint32_t key;

	mr = ibv_reg_mr(a->pd, a->buf, a->len, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	key = mr->lkey;
	sge = (struct ibv_sge){ (uintptr_t)a->buf, 100, key };
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, &sge, 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, key, IBV_SEND_SIGNALED);

	/* A new region over the same memory does not bring it back. */
	mr = ibv_reg_mr(a->pd, a->buf, a->len, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	EXPECT_NE(key, mr->lkey);
	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, key, IBV_SEND_SIGNALED);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* Also for a receive that was posted while the key was good. */
TEST_F(rc, a_key_is_dead_for_receives_that_wait)
{
	struct end *a = self->a, *b = self->b;

	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, ibv_dereg_mr(b->mr));
	ASSERT_EQ(0, post_send(a, 1, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_OP_ERR);
	b->mr = ibv_reg_mr(b->pd, b->buf, b->len, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, b->mr);
	recover(_metadata, &self->p);
}

TEST_F(rc, a_key_of_another_pd)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_pd *pd = ibv_alloc_pd(a->ctx);
	struct ibv_mr *mr;

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, a->buf, a->len, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	bad_source(_metadata, &self->p, (uintptr_t)a->buf, 100, mr->lkey, IBV_SEND_SIGNALED);
	/* And of another process's context, as it were. */
	bad_source(_metadata, &self->p, (uintptr_t)b->buf, 100, b->mr->lkey, IBV_SEND_SIGNALED);
	bad_target(_metadata, &self->p, (uintptr_t)a->buf, 100, a->mr->lkey);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(rc, receiving_needs_local_write_and_sending_does_not)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_mr *from = ibv_reg_mr(a->pd, a->buf, a->len, 0);
	struct ibv_mr *to = ibv_reg_mr(b->pd, b->buf, b->len, 0);
	struct ibv_sge sge;

	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	sge = (struct ibv_sge){ (uintptr_t)a->buf, 100, from->lkey };
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, &sge, 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	bad_target(_metadata, &self->p, (uintptr_t)b->buf, 100, to->lkey);
	EXPECT_EQ(0, ibv_dereg_mr(from));
	EXPECT_EQ(0, ibv_dereg_mr(to));
}

/*
 * Nobody there
 */
static void expect_no_answer(struct __test_metadata *_metadata, struct end *a)
{
	ASSERT_EQ(0, post_send(a, 1, 0, 100, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(a, 2, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect_wc(_metadata, a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(goes_to_error(a->qp));
}

TEST_F(rc, no_answer_is_retry_exc_err_after_timeout_and_retry_cnt)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;
	uint64_t start;

	opts->timeout = 12;	/* 16.8 ms */
	opts->retry_cnt = 2;
	pair_reconnect(_metadata, &self->p);
	ASSERT_EQ(0, ibv_destroy_qp(b->qp));
	b->qp = NULL;
	start = now_ns();
	expect_no_answer(_metadata, a);
	EXPECT_LE(2ull * (4096 << 12), now_ns() - start);
}

TEST_F(rc, a_peer_that_never_was)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;

	opts->timeout = 8;
	opts->retry_cnt = 1;
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	qp_connect(_metadata, a->qp, opts, b->lid, 0xfffff0);
	expect_no_answer(_metadata, a);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	qp_connect(_metadata, a->qp, opts, 0x1234, b->qp->qp_num);
	expect_no_answer(_metadata, a);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
}

TEST_F(rc, a_peer_that_is_not_connected_with_us)
{
	static const enum ibv_qp_state state[] = { IBV_QPS_RESET, IBV_QPS_ERR };
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct ibv_qp *other = make_qp(a->pd, a->scq, a->rcq, opts, NULL);
	unsigned int i;

	ASSERT_NE(NULL, other);
	opts->timeout = 8;
	opts->retry_cnt = 1;
	for (i = 0; i < ARRAY_SIZE(state); i++) {
		recover(_metadata, &self->p);
		ASSERT_EQ(0, qp_to(b->qp, state[i]));
		expect_no_answer(_metadata, a);
	}
	/* Somebody else sends to b, with the right PSN. */
	recover(_metadata, &self->p);
	qp_connect(_metadata, other, opts, b->lid, b->qp->qp_num);
	ASSERT_EQ(0, post_recv(b, 3, 0, 100));
	ASSERT_EQ(0, post_send_sges(other, 1, NULL, 0, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
	EXPECT_EQ(0, ibv_destroy_qp(other));
}

TEST_F(rc, a_peer_that_comes_late_is_reached_by_a_retry)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;

	opts->timeout = 17;	/* half a second, seven times */
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
	qp_connect(_metadata, a->qp, opts, b->lid, b->qp->qp_num);
	fill(a->buf, 5000, 20);
	ASSERT_EQ(0, post_send(a, 1, 0, 5000, IBV_SEND_SIGNALED));
	ASSERT_TRUE(cq_empty(a->scq));
	qp_connect(_metadata, b->qp, opts, a->lid, a->qp->qp_num);
	ASSERT_EQ(0, post_recv(b, 2, 0, 5000));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(a->buf, b->buf, 5000));
}

TEST_F(rc, timeout_zero_waits_for_ever)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;

	opts->timeout = 0;
	opts->retry_cnt = 0;
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	qp_connect(_metadata, a->qp, opts, b->lid, 0xfffff0);
	ASSERT_EQ(0, post_send(a, 1, 0, 10, IBV_SEND_SIGNALED));
	poll(NULL, 0, 50);
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(a->qp));
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_ERR));
	expect_wc(_metadata, a->scq, 1, IBV_WC_WR_FLUSH_ERR);
}

/*
 * Flush
 */
TEST_F(rc, in_error_every_wr_of_both_queues_is_flushed_once)
{
	struct end *a = self->a;
	unsigned int i, n = a->cap.max_send_wr, m = a->cap.max_recv_wr;

	/* The first send has been tried, the others wait behind it. */
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, post_send(a, i, 0, i, i % 2 ? IBV_SEND_SIGNALED : 0));
	for (i = 0; i < m; i++)
		ASSERT_EQ(0, post_recv(a, 1000 + i, 0, 10));
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(a->qp));
	for (i = 0; i < n; i++)
		expect_wc(_metadata, a->scq, i, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < m; i++)
		expect_wc(_metadata, a->rcq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(a->rcq));
}

TEST_F(rc, in_error_wrs_that_are_posted_are_flushed_and_their_slots_come_back)
{
	struct end *a = self->a;
	unsigned int i;

	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_ERR));
	for (i = 0; i < 4 * a->cap.max_send_wr; i++) {
		ASSERT_EQ(0, post_send(a, i, 0, 10, 0));
		expect_wc(_metadata, a->scq, i, IBV_WC_WR_FLUSH_ERR);
		ASSERT_EQ(0, post_recv(a, 5000 + i, 0, 10));
		expect_wc(_metadata, a->rcq, 5000 + i, IBV_WC_WR_FLUSH_ERR);
	}
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(a->rcq));
}

TEST_F(rc, completions_before_the_error_keep_their_status)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge bad = { (uintptr_t)a->buf, 10, a->mr->lkey ^ 1 };
	unsigned int i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_recv(b, i, 0, 10));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, post_send(a, i, 0, 10, 0));
	ASSERT_EQ(0, post_send(a, 5, 0, 10, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send_sges(a->qp, 6, &bad, 1, 0));
	ASSERT_EQ(0, post_send(a, 7, 0, 10, 0));
	expect_wc(_metadata, a->scq, 5, IBV_WC_SUCCESS);
	expect_wc(_metadata, a->scq, 6, IBV_WC_LOC_PROT_ERR);
	expect_wc(_metadata, a->scq, 7, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < 6; i++)
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
}

TEST_F(rc, an_error_that_has_a_completion_raises_no_async_event)
{
	struct end *a = self->a, *b = self->b;

	ASSERT_EQ(0, post_recv(b, 2, 0, 10));
	ASSERT_EQ(0, post_send(a, 1, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	EXPECT_FALSE(readable(a->ctx->async_fd, 50));
	EXPECT_FALSE(readable(b->ctx->async_fd, 0));
}

TEST_F(rc, a_qp_goes_from_error_to_reset_and_works_again)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, post_send(self->a, 1, 0, 10, 0));
		ASSERT_EQ(0, post_recv(self->a, 2, 0, 10));
		ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_ERR));
		recover(_metadata, &self->p);
	}
}

/*
 * States
 */
TEST_F(rc, a_first_message_in_rtr_is_reported_as_communication_established)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct ibv_async_event event;

	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to_init(b->qp, opts));
	ASSERT_EQ(0, post_recv(b, 2, 0, 10));
	ASSERT_EQ(0, post_recv(b, 3, 0, 10));
	ASSERT_EQ(0, qp_to_rtr(b->qp, opts, a->lid, a->qp->qp_num));
	qp_connect(_metadata, a->qp, opts, b->lid, b->qp->qp_num);
	ASSERT_EQ(0, post_send(a, 1, 0, 10, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_send(a, 4, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 3, IBV_WC_SUCCESS);
	ASSERT_TRUE(async_event(b->ctx, &event));
	EXPECT_EQ(IBV_EVENT_COMM_EST, event.event_type);
	EXPECT_EQ(b->qp, event.element.qp);
	EXPECT_FALSE(readable(b->ctx->async_fd, 20));
	ASSERT_EQ(0, qp_to_rts(b->qp, opts));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, a->scq, 4, IBV_WC_SUCCESS);
	exchange(_metadata, b, a, 10, 21);
}

static int to_sqd(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

TEST_F(rc, sqd_drains_what_was_begun_says_so_and_resumes)
{
	struct end *a = self->a, *b = self->b;
	long long before = device_counter(self->p.opts.function[1], "rnr_naks");
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_qp_attr attr;

	/* One send is begun and waits for a receive. */
	ASSERT_EQ(0, post_send(a, 1, 0, 10, IBV_SEND_SIGNALED));
	ASSERT_TRUE(wait_until(device_counter(self->p.opts.function[1], "rnr_naks") > before));
	ASSERT_EQ(0, to_sqd(a->qp));
	ASSERT_EQ(0, ibv_query_qp(a->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_SQD, attr.qp_state);
	EXPECT_EQ(1, attr.sq_draining);
	EXPECT_FALSE(readable(a->ctx->async_fd, 20));
	/* What is posted now waits for RTS. */
	ASSERT_EQ(0, post_send(a, 2, 0, 10, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, post_recv(b, 3, 0, 10));
	ASSERT_EQ(0, post_recv(b, 4, 0, 10));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_TRUE(async_event(a->ctx, &event));
	EXPECT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
	EXPECT_EQ(a->qp, event.element.qp);
	ASSERT_EQ(0, ibv_query_qp(a->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_SQD, attr.qp_state);
	EXPECT_EQ(0, attr.sq_draining);
	EXPECT_TRUE(cq_empty(a->scq));
	/* It still receives. */
	exchange(_metadata, b, a, 100, 22);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RTS));
	expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 3, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 4, IBV_WC_SUCCESS);
	exchange(_metadata, a, b, 100, 23);
}

TEST_F(rc, sqd_of_an_idle_queue_drains_at_once)
{
	struct ibv_async_event event;

	ASSERT_EQ(0, to_sqd(self->a->qp));
	ASSERT_TRUE(async_event(self->a->ctx, &event));
	EXPECT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	exchange(_metadata, self->a, self->b, 100, 24);
}

/*
 * CQ overrun: what was in the CQ stays as it was, the CQ and its QP go to error,
 * events say so, and all can be destroyed and built anew.
 */
TEST_F(rc, a_cq_overrun_overwrites_nothing_and_is_reported)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct ibv_async_event event;
	bool cq_err = false, qp_fatal = false;
	int i, n;

	opts.cqe = 8;
	opts.cap.max_send_wr = 1000;
	reopen(_metadata, &self->p, opts);
	n = a->scq->cqe;
	ASSERT_LT(n, 1000);
	for (i = 0; i <= n; i++) {
		ASSERT_EQ(0, post_recv(b, i, 0, 10));
		ASSERT_EQ(0, post_send(a, i, 0, 10, IBV_SEND_SIGNALED));
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(async_event(a->ctx, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			EXPECT_EQ(a->scq, event.element.cq);
			cq_err = true;
		} else {
			EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
			EXPECT_EQ(a->qp, event.element.qp);
			qp_fatal = true;
		}
	}
	EXPECT_TRUE(cq_err);
	EXPECT_TRUE(qp_fatal);
	EXPECT_TRUE(goes_to_error(a->qp));
	for (i = 0; i < n; i++)
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(a->scq));
	reopen(_metadata, &self->p, opts);
	exchange(_metadata, a, b, 1000, 25);
}

#define PART		65536			/* what a request carries at most */
#define PART_PACKETS	(PART / 1024)		/* of the pair's MTU */

/*
 * A message of two requests, of which the second ends in the middle, by a key of the
 * sender's. To be begun it needs good keys: one of them goes while it waits for a receive.
 * The PSN of the second is left in *@psn.
 */
static void break_off(struct __test_metadata *_metadata, struct end *a, struct end *b, int fn,
		      uint32_t *psn)
{
	struct ibv_mr *mr = ibv_reg_mr(a->pd, a->buf, a->len, IBV_ACCESS_LOCAL_WRITE);
	long long naks = device_counter(fn, "rnr_naks");
	struct ibv_qp_init_attr init;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)a->buf, PART + PART / 2, a->mr->lkey },
		{ (uintptr_t)a->buf, PART / 2, 0 },
	};
	struct ibv_qp_attr attr;

	ASSERT_NE(NULL, mr);
	sge[1].lkey = mr->lkey;
	ASSERT_EQ(0, post_send_sges(a->qp, 1, sge, 2, IBV_SEND_SIGNALED));
	ASSERT_TRUE(wait_until(device_counter(fn, "rnr_naks") > naks));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, post_recv(b, 2, 0, 2 * PART));
	expect_wc(_metadata, a->scq, 1, IBV_WC_LOC_PROT_ERR);
	ASSERT_EQ(0, ibv_query_qp(a->qp, &attr, IBV_QP_SQ_PSN, &init));
	*psn = attr.sq_psn;
}

/*
 * A sender that begins anew where it broke off goes on with the receive that is open, and
 * not beyond it: in the ring there are segments of an earlier one behind its own.
 */
TEST_F(rc, a_broken_message_that_goes_on_stays_in_its_receive)
{
	static const struct slice earlier[4] = {
		{ 0, 64 }, { 4 * PART, PART }, { 5 * PART, PART }, { 6 * PART, PART },
	};
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct ibv_wc wc;
	uint32_t psn, i;

	opts.buf_len = 7 * PART;
	opts.cap.max_recv_wr = 1;
	reopen(_metadata, &self->p, opts);
	ASSERT_EQ(0, post_recv_slices(b, 7, earlier, 4));
	ASSERT_EQ(0, post_send(a, 8, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 8, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 7, IBV_WC_SUCCESS);

	break_off(_metadata, a, b, variant->peer, &psn);
	memset(b->buf + 2 * PART, 0xee, 5 * PART);
	fill(a->buf, 2 * PART, 5);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to_init(a->qp, &opts));
	ASSERT_EQ(0, qp_to_rtr(a->qp, &opts, b->lid, b->qp->qp_num));
	ASSERT_EQ(0, qp_to_rts_at(a->qp, &opts, psn - PART_PACKETS));
	ASSERT_EQ(0, post_send(a, 3, 0, 2 * PART, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 3, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(2 * PART, wc.byte_len);
	EXPECT_EQ(0, memcmp(a->buf + PART, b->buf + PART, PART));
	for (i = 2 * PART; i < 7 * PART && b->buf[i] == 0xee; i++)
		;
	EXPECT_EQ(7 * PART, i);
}

/* Reset may come at any moment of a long transfer; what follows is not disturbed. */
TEST_F(rc, reset_in_the_middle_of_a_transfer)
{
	struct pair_opts opts = self->p.opts;
	uint64_t seed = seed_of("VHCA_TEST_SEED");
	int i;

	TH_LOG("VHCA_TEST_SEED=%llu", (unsigned long long)seed);
	opts.buf_len = 1 << 20;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i < 50; i++) {
		uint64_t until;
		int k;

		for (k = 0; k < 4; k++) {
			ASSERT_EQ(0, post_recv(self->b, k, 0, 1 << 20));
			ASSERT_EQ(0, post_send(self->a, k, 0, 1 << 20, IBV_SEND_SIGNALED));
		}
		until = now_ns() + rnd_below(&seed, 500000);
		while (now_ns() < until)
			;
		if (rnd_below(&seed, 2))
			ASSERT_EQ(0, qp_to(self->p.end[rnd_below(&seed, 2)].qp, IBV_QPS_ERR));
		recover(_metadata, &self->p);
	}
}

TEST_HARNESS_MAIN
