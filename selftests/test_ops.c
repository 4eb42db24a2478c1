// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ops.c: RDMA WRITE, RDMA READ, atomics and immediate data on RC: data, both
 * completions, order; and of each request that may not be the status at either
 * end, the states after it and the async event.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "rc.h"

#define SLICE	65536	/* the device moves long messages in such pieces */
#define BUF_LEN	(512 * 1024)

/* Around the MTU, around a slice, and several slices. */
static const uint32_t sizes[] = {
	1, 8, 255, 1023, 1024, 1025, 4095, 4096, 4097, SLICE - 1, SLICE, SLICE + 1,
	2 * SLICE, 2 * SLICE + 1, 3 * SLICE - 1, 5 * SLICE + 1234,
};

static void reopen_large(struct __test_metadata *_metadata, struct pair *p)
{
	struct pair_opts opts = p->opts;

	opts.buf_len = BUF_LEN;
	reopen(_metadata, p, opts);
}

/*
 * Completes at the poster, brings @len bytes of @from to @to and changes nothing
 * around them; the responder does not learn of it.
 */
static void one_sided(struct __test_metadata *_metadata, struct pair *p, const struct op *op,
		      enum ibv_wc_opcode opcode, uint32_t byte_len, const struct slice *from,
		      const struct slice *to)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	bool in = op->opcode == IBV_WR_RDMA_READ;
	struct end *source = in ? b : a, *sink = in ? a : b;
	struct ibv_wc wc;

	fill(source->buf, source->len, to->len);
	memset(sink->buf, 0xa5, sink->len);
	ASSERT_EQ(0, post_op(a, 1, op));
	wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(opcode, wc.opcode);
	EXPECT_EQ(a->qp->qp_num, wc.qp_num);
	EXPECT_EQ(byte_len, wc.byte_len);
	EXPECT_EQ(0, wc.wc_flags);
	ASSERT_EQ(0, memcmp(sink->buf + to->off, source->buf + from->off, to->len));
	EXPECT_TRUE(all_are(sink->buf, 0xa5, to->off));
	EXPECT_TRUE(all_are(sink->buf + to->off + to->len, 0xa5,
			    sink->len - to->off - to->len));
	EXPECT_TRUE(cq_empty(b->rcq));
}

/*
 * RDMA WRITE
 */
static void write_once(struct __test_metadata *_metadata, struct pair *p, uint32_t off,
		       uint32_t len)
{
	struct op op = remote_op(IBV_WR_RDMA_WRITE, &p->end[1], off, len);

	op.off = 77;
	one_sided(_metadata, p, &op, IBV_WC_RDMA_WRITE, 0, &(struct slice){ 77, len },
		  &(struct slice){ off, len });
}

TEST_F(rc, write_puts_data_where_it_is_told)
{
	unsigned int i;

	reopen_large(_metadata, &self->p);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		write_once(_metadata, &self->p, 0, sizes[i]);
		write_once(_metadata, &self->p, 4001, sizes[i]);
	}
	/* Up to the last byte. */
	write_once(_metadata, &self->p, BUF_LEN - SLICE - 100, SLICE + 100);
	exchange(_metadata, self->a, self->b, 1000, 1);
}

/* Segments here and there, an empty one among them; one piece at the other end. */
static void scattered(struct __test_metadata *_metadata, struct pair *p,
		      enum ibv_wr_opcode opcode, uint32_t byte_len)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct op op = remote_op(opcode, b, 5, 0);
	struct ibv_sge sge[] = {
		{ (uintptr_t)a->buf + 9000, 3, a->mr->lkey },
		{ 0, 0, 0 },
		{ (uintptr_t)a->buf + 100, 5000, a->mr->lkey },
		{ (uintptr_t)a->buf + 8, 1, a->mr->lkey },
	};
	struct ibv_wc wc;

	fill(a->buf, a->len, 2);
	fill(b->buf, b->len, 3);
	ASSERT_EQ(0, post_op_sges(a->qp, 1, &op, sge, 4));
	wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(byte_len, wc.byte_len);
	EXPECT_EQ(0, memcmp(b->buf + 5, a->buf + 9000, 3));
	EXPECT_EQ(0, memcmp(b->buf + 8, a->buf + 100, 5000));
	EXPECT_EQ(a->buf[8], b->buf[5008]);
}

TEST_F(rc, write_gathers)
{
	scattered(_metadata, &self->p, IBV_WR_RDMA_WRITE, 0);
}

TEST_F(rc, write_inline_needs_no_region_and_leaves_the_buffer_at_once)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_RDMA_WRITE, b, 0, 0);
	uint8_t mine[128], sent[128];
	struct ibv_sge sge = { (uintptr_t)mine, 0, 0xdead };
	uint32_t len;

	op.flags |= IBV_SEND_INLINE;
	for (len = 1; len <= 128; len++) {
		fill(mine, sizeof(mine), len);
		memcpy(sent, mine, sizeof(sent));
		memset(b->buf, 0, 256);
		sge.length = len;
		ASSERT_EQ(0, post_op_sges(a->qp, len, &op, &sge, 1));
		memset(mine, 0xff, sizeof(mine));
		expect_wc(_metadata, a->scq, len, IBV_WC_SUCCESS);
		ASSERT_EQ(0, memcmp(b->buf, sent, len));
		ASSERT_TRUE(all_are(b->buf + len, 0, 256 - len));
	}
	sge.length = a->cap.max_inline_data + 1;
	EXPECT_EQ(EINVAL, post_op_sges(a->qp, 1, &op, &sge, 1));
}

/*
 * Immediate data
 */
static void expect_imm(struct __test_metadata *_metadata, struct pair *p, uint64_t wr_id,
		       enum ibv_wc_opcode opcode, uint32_t len, uint32_t imm)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_wc wc = expect_wc(_metadata, b->rcq, wr_id, IBV_WC_SUCCESS);

	EXPECT_EQ(opcode, wc.opcode);
	EXPECT_EQ(len, wc.byte_len);
	EXPECT_EQ(IBV_WC_WITH_IMM, wc.wc_flags);
	EXPECT_EQ(imm, be32toh(wc.imm_data));
	EXPECT_EQ(b->qp->qp_num, wc.qp_num);
	EXPECT_EQ(a->qp->qp_num, wc.src_qp);
	EXPECT_EQ(a->lid, wc.slid);
}

TEST_F(rc, write_with_immediate_takes_a_receive_and_leaves_its_memory_alone)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	reopen_large(_metadata, &self->p);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct op op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, b, 1000, sizes[i]);
		struct ibv_wc wc;

		op.imm = 0x80000001 + i;
		fill(a->buf, a->len, i);
		memset(b->buf, 0, b->len);
		ASSERT_EQ(0, post_recv(b, 2, 0, 500));
		ASSERT_EQ(0, post_op(a, 1, &op));
		wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		EXPECT_EQ(IBV_WC_RDMA_WRITE, wc.opcode);
		EXPECT_EQ(0, wc.wc_flags);
		expect_imm(_metadata, &self->p, 2, IBV_WC_RECV_RDMA_WITH_IMM, sizes[i], op.imm);
		ASSERT_EQ(0, memcmp(b->buf + 1000, a->buf, sizes[i]));
		EXPECT_TRUE(all_are(b->buf, 0, 1000));
	}
	exchange(_metadata, a, b, 1000, 1);
}

TEST_F(rc, write_with_immediate_is_served_by_a_receive_without_sges_and_by_a_bad_one)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, b, 0, 100);
	struct ibv_sge bad = { 0, 1, 0 };

	op.imm = 0;
	ASSERT_EQ(0, post_recv_sges(b->qp, 2, NULL, 0));
	ASSERT_EQ(0, post_recv_sges(b->qp, 3, &bad, 1));
	ASSERT_EQ(0, post_op(a, 1, &op));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_imm(_metadata, &self->p, 2, IBV_WC_RECV_RDMA_WITH_IMM, 100, 0);
	ASSERT_EQ(0, post_op(a, 1, &op));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_imm(_metadata, &self->p, 3, IBV_WC_RECV_RDMA_WITH_IMM, 100, 0);
}

TEST_F(rc, send_with_immediate)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	reopen_large(_metadata, &self->p);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct op op = remote_op(IBV_WR_SEND_WITH_IMM, b, 0, sizes[i]);
		struct ibv_wc wc;

		op.imm = 0x12345678 * i;
		fill(a->buf, a->len, i);
		ASSERT_EQ(0, post_recv(b, 2, 0, b->len));
		ASSERT_EQ(0, post_op(a, 1, &op));
		wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		EXPECT_EQ(IBV_WC_SEND, wc.opcode);
		EXPECT_EQ(0, wc.wc_flags);
		expect_imm(_metadata, &self->p, 2, IBV_WC_RECV, sizes[i], op.imm);
		ASSERT_EQ(0, memcmp(b->buf, a->buf, sizes[i]));
	}
}

TEST_F(rc, immediate_data_is_only_for_the_opcodes_that_carry_it)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_SEND, b, 0, 10);
	struct ibv_wc wc;

	op.imm = 99;
	ASSERT_EQ(0, post_recv(b, 2, 0, 10));
	ASSERT_EQ(0, post_op(a, 1, &op));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_EQ(0, wc.wc_flags);
}

TEST_F(rc, write_with_immediate_waits_for_a_receive_before_it_writes)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, b, 0, 0);
	long long before;

	reopen_large(_metadata, &self->p);
	op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, b, 0, 3 * SLICE);
	before = device_counter(self->p.opts.function[1], "rnr_naks");
	fill(a->buf, a->len, 3);
	memset(b->buf, 0, b->len);
	ASSERT_EQ(0, post_op(a, 1, &op));
	ASSERT_TRUE(wait_until(device_counter(self->p.opts.function[1], "rnr_naks") > before));
	EXPECT_TRUE(all_are(b->buf, 0, b->len));
	ASSERT_EQ(0, post_recv_sges(b->qp, 2, NULL, 0));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_imm(_metadata, &self->p, 2, IBV_WC_RECV_RDMA_WITH_IMM, 3 * SLICE, 0);
	EXPECT_EQ(0, memcmp(a->buf, b->buf, 3 * SLICE));
}

TEST_F(rc, write_with_immediate_without_a_receive_is_rnr_retry_exc_err)
{
	struct end *a = self->a, *b = self->b;
	struct op op;

	self->p.opts.rnr_retry = 2;
	pair_reconnect(_metadata, &self->p);
	op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, b, 0, 100);
	fill(a->buf, a->len, 3);
	memset(b->buf, 0, b->len);
	ASSERT_EQ(0, post_op(a, 1, &op));
	expect_wc(_metadata, a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT_TRUE(goes_to_error(a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
	EXPECT_TRUE(all_are(b->buf, 0, b->len));
	recover(_metadata, &self->p);
}

/* Only what has a receive and says so wakes up who waits for solicited ones. */
TEST_F(rc, write_with_immediate_can_be_solicited)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct op op;

	opts.channel = true;
	reopen(_metadata, &self->p, opts);
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_recv(b, 3, 0, 100));
	op = remote_op(IBV_WR_RDMA_WRITE, b, 0, 100);
	op.flags |= IBV_SEND_SOLICITED;
	ASSERT_EQ(0, post_op(a, 1, &op));
	op.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	op.flags = IBV_SEND_SIGNALED;
	ASSERT_EQ(0, post_op(a, 2, &op));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_FALSE(readable(b->channel->fd, 20));
	op.flags |= IBV_SEND_SOLICITED;
	ASSERT_EQ(0, post_op(a, 3, &op));
	EXPECT_EQ(b->rcq, comp_event(b->channel));
	expect_wc(_metadata, a->scq, 3, IBV_WC_SUCCESS);
}

/*
 * RDMA READ
 */
static void read_once(struct __test_metadata *_metadata, struct pair *p, uint32_t off,
		      uint32_t len)
{
	struct op op = remote_op(IBV_WR_RDMA_READ, &p->end[1], 33, len);

	op.off = off;
	one_sided(_metadata, p, &op, IBV_WC_RDMA_READ, len, &(struct slice){ 33, len },
		  &(struct slice){ off, len });
}

TEST_F(rc, read_brings_data_from_where_it_is_told)
{
	unsigned int i;

	reopen_large(_metadata, &self->p);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		read_once(_metadata, &self->p, 0, sizes[i]);
		read_once(_metadata, &self->p, 4001, sizes[i]);
	}
	/* The PSNs of both sides still agree. */
	exchange(_metadata, self->a, self->b, 3000, 1);
	exchange(_metadata, self->b, self->a, 3000, 2);
}

TEST_F(rc, read_scatters)
{
	scattered(_metadata, &self->p, IBV_WR_RDMA_READ, 5004);
}

TEST_F(rc, empty_writes_and_reads_need_no_key)
{
	static const enum ibv_wr_opcode opcode[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct end *a = self->a, *b = self->b;
	struct op op = { .flags = IBV_SEND_SIGNALED, .raddr = ~0ull, .rkey = 0xdeadbeef };
	struct ibv_sge sge = { 0, 0, 0 };
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		op.opcode = opcode[i];
		ASSERT_EQ(0, post_op_sges(a->qp, 1, &op, NULL, 0));
		wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		EXPECT_EQ(0, wc.byte_len);
		ASSERT_EQ(0, post_op_sges(a->qp, 2, &op, &sge, 1));
		expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
	}
	op.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	op.imm = 5;
	ASSERT_EQ(0, post_recv_sges(b->qp, 3, NULL, 0));
	ASSERT_EQ(0, post_op_sges(a->qp, 4, &op, NULL, 0));
	expect_wc(_metadata, a->scq, 4, IBV_WC_SUCCESS);
	expect_imm(_metadata, &self->p, 3, IBV_WC_RECV_RDMA_WITH_IMM, 0, 5);
	exchange(_metadata, a, b, 1000, 1);
}

/*
 * Atomics
 */
static uint64_t atomic_once(struct __test_metadata *_metadata, struct end *a,
			    const struct op *op)
{
	struct ibv_wc wc;

	*word(a, op->off) = 0x5555555555555555;
	ASSERT_EQ(0, post_op(a, 1, op));
	wc = expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD,
		  wc.opcode);
	EXPECT_EQ(8, wc.byte_len);
	EXPECT_EQ(0, wc.wc_flags);
	return *word(a, op->off);
}

TEST_F(rc, compare_and_swap)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_ATOMIC_CMP_AND_SWP, b, 4088, 8);

	op.off = 13;	/* the result may lie anywhere */
	memset(b->buf, 0xa5, b->len);
	*word(b, 4088) = 0x0123456789abcdef;
	op.compare_add = 0x0123456789abcdef;
	op.swap = 0xfedcba9876543210;
	EXPECT_EQ(0x0123456789abcdef, atomic_once(_metadata, a, &op));
	EXPECT_EQ(0xfedcba9876543210, *word(b, 4088));
	/* It does not compare equal any more: as it was. */
	op.swap = 1;
	EXPECT_EQ(0xfedcba9876543210, atomic_once(_metadata, a, &op));
	EXPECT_EQ(0xfedcba9876543210, *word(b, 4088));
	EXPECT_TRUE(all_are(b->buf, 0xa5, 4088));
	EXPECT_TRUE(all_are(b->buf + 4096, 0xa5, b->len - 4096));
	EXPECT_TRUE(cq_empty(b->rcq));
	exchange(_metadata, a, b, 1000, 1);
}

TEST_F(rc, fetch_and_add)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_ATOMIC_FETCH_AND_ADD, b, 4096, 8);

	*word(b, 4088) = 7;
	*word(b, 4096) = 0xffffffffffff0000;
	*word(b, 4104) = 7;
	op.compare_add = 0x12345;
	op.swap = 0xdead;	/* means nothing here */
	EXPECT_EQ(0xffffffffffff0000, atomic_once(_metadata, a, &op));
	EXPECT_EQ(0x2345, *word(b, 4096));
	op.compare_add = -1ull;
	EXPECT_EQ(0x2345, atomic_once(_metadata, a, &op));
	EXPECT_EQ(0x2344, *word(b, 4096));
	EXPECT_EQ(7, *word(b, 4088));
	EXPECT_EQ(7, *word(b, 4104));
	exchange(_metadata, a, b, 1000, 1);
}

/* What counts is that the address is aligned, not where the region starts. */
TEST_F(rc, an_atomic_in_a_region_that_starts_anywhere)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf + 3, 100, IBV_ACCESS_LOCAL_WRITE |
							       IBV_ACCESS_REMOTE_ATOMIC);
	struct op op = remote_op(IBV_WR_ATOMIC_FETCH_AND_ADD, b, 8, 8);

	ASSERT_NE(NULL, mr);
	op.rkey = mr->rkey;
	op.compare_add = 5;
	*word(b, 8) = 10;
	EXPECT_EQ(10, atomic_once(_metadata, a, &op));
	EXPECT_EQ(15, *word(b, 8));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

struct adder {
	struct end *from;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	const struct op *op;
	uint32_t off;
	int rounds;
	int failed;
};

/* Adds by RDMA: one in two by fetch and add, the other by compare and swap. */
static void *add_by_rdma(void *arg)
{
	struct adder *t = arg;
	struct op op = *t->op;
	struct ibv_sge sge = { (uintptr_t)t->from->buf + t->off, 8, t->from->mr->lkey };
	uint64_t seen = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < t->rounds && !t->failed; i++) {
		op.opcode = i % 2 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
		op.compare_add = i % 2 ? seen : 1;
		op.swap = seen + 1;
		t->failed = post_op_sges(t->qp, i, &op, &sge, 1) || !poll_wc(t->cq, &wc) ||
			    wc.status;
		if (i % 2 && *word(t->from, t->off) != seen)
			i--;	/* somebody else was there: once more */
		seen = *word(t->from, t->off) + (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
	}
	return NULL;
}

TEST_F(rc, atomics_of_two_qps_and_of_the_cpu_lose_nothing)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_ATOMIC_FETCH_AND_ADD, b, 64, 8);
	struct ibv_cq *cq = ibv_create_cq(a->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *mine, *theirs;
	struct adder t[2] = {
		{ a, a->qp, a->scq, &op, 0, 3000, 0 },
		{ a, NULL, cq, &op, 8, 3000, 0 },
	};
	uint64_t by_cpu = 0, *at = word(b, 64);
	pthread_t thread[2];
	int i;

	ASSERT_NE(NULL, cq);
	mine = make_qp(a->pd, cq, cq, &self->p.opts, NULL);
	theirs = make_qp(b->pd, b->scq, b->rcq, &self->p.opts, NULL);
	ASSERT_NE(NULL, mine);
	ASSERT_NE(NULL, theirs);
	qp_connect(_metadata, theirs, &self->p.opts, a->lid, mine->qp_num);
	qp_connect(_metadata, mine, &self->p.opts, b->lid, theirs->qp_num);
	t[1].qp = mine;
	*at = 0;
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, add_by_rdma, &t[i]));
	for (i = 0; i < 200000; i++, by_cpu++)
		__atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
		EXPECT_FALSE(t[i].failed);
	}
	EXPECT_EQ(by_cpu + 6000, __atomic_load_n(at, __ATOMIC_SEQ_CST));
	EXPECT_EQ(0, ibv_destroy_qp(mine));
	EXPECT_EQ(0, ibv_destroy_qp(theirs));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/*
 * Order
 */
TEST_F(rc, a_fenced_write_sends_what_the_read_before_it_brought)
{
	struct end *a = self->a, *b = self->b;
	struct op rd = remote_op(IBV_WR_RDMA_READ, b, 0, 5000);
	struct op wr = remote_op(IBV_WR_RDMA_WRITE, b, 8192, 5000);
	int i;

	rd.flags = 0;
	wr.flags |= IBV_SEND_FENCE;
	for (i = 0; i < 50; i++) {
		fill(b->buf, 5000, i);
		memset(a->buf, 0, 5000);
		ASSERT_EQ(0, post_op(a, 1, &rd));
		ASSERT_EQ(0, post_op(a, 2, &wr));
		expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
		ASSERT_EQ(0, memcmp(b->buf, b->buf + 8192, 5000));
	}
}

static const enum ibv_wr_opcode all_ops[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static const enum ibv_wc_opcode all_wcs[] = {
	IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
	IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD,
};

TEST_F(rc, operations_of_all_kinds_complete_in_the_order_of_posting)
{
	struct end *a = self->a, *b = self->b;
	uint64_t seed = seed_of("VHCA_TEST_SEED");
	int round, i, n, recvs;

	TH_LOG("VHCA_TEST_SEED=%llu", (unsigned long long)seed);
	for (round = 0; round < 50; round++) {
		int kind[40];

		n = 1 + rnd_below(&seed, ARRAY_SIZE(kind));
		for (i = recvs = 0; i < n; i++) {
			struct op op;

			kind[i] = rnd_below(&seed, ARRAY_SIZE(all_ops));
			op = remote_op(all_ops[kind[i]], b, 8 * rnd_below(&seed, 100), 8);
			op.flags |= rnd_below(&seed, 2) ? IBV_SEND_FENCE : 0;
			if (!is_atomic(op.opcode))
				op.len = rnd_below(&seed, 5000);
			if (takes_receive(op.opcode))
				ASSERT_EQ(0, post_recv(b, 100 + recvs++, 0, 5000));
			ASSERT_EQ(0, post_op(a, i, &op));
		}
		for (i = 0; i < n; i++)
			EXPECT_EQ(all_wcs[kind[i]],
				  expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS).opcode);
		for (i = 0; i < recvs; i++)
			expect_wc(_metadata, b->rcq, 100 + i, IBV_WC_SUCCESS);
	}
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(b->rcq));
}

TEST_F(rc, more_reads_than_may_be_outstanding_wait_for_each_other)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	self->p.opts.rd_atomic = 1;
	self->p.opts.dest_rd_atomic = 1;
	pair_reconnect(_metadata, &self->p);
	fill(b->buf, b->len, 9);
	for (i = 0; i < 60; i++) {
		struct op op = remote_op(IBV_WR_RDMA_READ, b, i * 1000, 1000);

		op.off = i * 1000;
		ASSERT_EQ(0, post_op(a, i, &op));
	}
	for (i = 0; i < 60; i++)
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(a->buf, b->buf, 60000));
}

TEST_F(rc, extended_polling_tells_the_same)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN |
								      IBV_WC_EX_WITH_IMM };
	struct ibv_poll_cq_attr poll_attr = {};
	struct end *a = self->a, *b = self->b;
	struct ibv_cq_ex *cq = ibv_create_cq_ex(a->ctx, &cq_attr);
	struct ibv_qp *qp;
	struct op op;

	/* A QP that is connected to itself has both kinds of completion in one CQ. */
	ASSERT_NE(NULL, cq);
	qp = make_qp(a->pd, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), &self->p.opts, NULL);
	ASSERT_NE(NULL, qp);
	qp_connect(_metadata, qp, &self->p.opts, a->lid, qp->qp_num);

	op = remote_op(IBV_WR_RDMA_READ, a, 1000, 500);
	ASSERT_EQ(0, post_op_sges(qp, 1, &op, (struct ibv_sge[]) {
				{ (uintptr_t)a->buf, 500, a->mr->lkey } }, 1));
	ASSERT_TRUE(wait_until(!ibv_start_poll(cq, &poll_attr)));
	EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
	EXPECT_EQ(IBV_WC_RDMA_READ, ibv_wc_read_opcode(cq));
	EXPECT_EQ(500, ibv_wc_read_byte_len(cq));
	EXPECT_EQ(0, ibv_wc_read_wc_flags(cq));
	ibv_end_poll(cq);

	op = remote_op(IBV_WR_RDMA_WRITE_WITH_IMM, a, 1000, 0);
	op.flags = 0;
	op.imm = 0xabcdef01;
	ASSERT_EQ(0, post_recv_sges(qp, 2, NULL, 0));
	ASSERT_EQ(0, post_op_sges(qp, 3, &op, (struct ibv_sge[]) {
				{ (uintptr_t)a->buf, 600, a->mr->lkey } }, 1));
	ASSERT_TRUE(wait_until(!ibv_start_poll(cq, &poll_attr)));
	EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
	EXPECT_EQ(2, cq->wr_id);
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, ibv_wc_read_opcode(cq));
	EXPECT_EQ(600, ibv_wc_read_byte_len(cq));
	EXPECT_EQ(IBV_WC_WITH_IMM, ibv_wc_read_wc_flags(cq));
	EXPECT_EQ(0xabcdef01, be32toh(ibv_wc_read_imm_data(cq)));
	ibv_end_poll(cq);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	exchange(_metadata, a, b, 100, 1);
}

/*
 * What may not be. First what the library itself refuses.
 */
TEST_F(rc, posts_that_cannot_be_are_einval)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)a->buf, 8, a->mr->lkey }, { (uintptr_t)a->buf, 8, a->mr->lkey },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_ops); i++) {
		struct op op = remote_op(all_ops[i], b, 0, 8);

		if (is_atomic(op.opcode)) {
			EXPECT_EQ(EINVAL, post_op_sges(a->qp, 1, &op, sge, 0));
			EXPECT_EQ(EINVAL, post_op_sges(a->qp, 1, &op, sge, 2));
		}
		op.flags |= IBV_SEND_INLINE;
		if (is_atomic(op.opcode) || op.opcode == IBV_WR_RDMA_READ)
			EXPECT_EQ(EINVAL, post_op_sges(a->qp, 1, &op, sge, 1));
		op.flags = 0x100;
		EXPECT_EQ(EINVAL, post_op_sges(a->qp, 1, &op, sge, 1));
	}
	EXPECT_EQ(IBV_QPS_RTS, qp_state(a->qp));
	exchange(_metadata, a, b, 100, 1);
}

/* The poster's own fault: nothing leaves it, the peer goes on. */
static void bad_here(struct __test_metadata *_metadata, struct pair *p, const struct op *op,
		     uint32_t lkey, enum ibv_wc_status status)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge = { (uintptr_t)a->buf + op->off, op->len, lkey };
	struct ibv_wc wc;

	memset(b->buf, 0x11, 4096);
	ASSERT_EQ(0, post_op_sges(a->qp, 1, op, &sge, 1));
	ASSERT_EQ(0, post_op_sges(a->qp, 2, op, &sge, 1));
	wc = expect_wc(_metadata, a->scq, 1, status);
	EXPECT_NE(0, wc.vendor_err);
	expect_wc(_metadata, a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(goes_to_error(a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_TRUE(all_are(b->buf, 0x11, 4096));
	EXPECT_FALSE(readable(a->ctx->async_fd, 0));
	EXPECT_FALSE(readable(b->ctx->async_fd, 0));
	recover(_metadata, p);
}

TEST_F(rc, what_comes_back_needs_local_write)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_mr *mr = ibv_reg_mr(a->pd, a->buf, a->len, IBV_ACCESS_REMOTE_READ);
	unsigned int i;

	ASSERT_NE(NULL, mr);
	for (i = 0; i < ARRAY_SIZE(all_ops); i++) {
		struct op op = remote_op(all_ops[i], b, 8, 8);

		op.compare_add = 0x1111111111111111;
		if (is_atomic(op.opcode) || op.opcode == IBV_WR_RDMA_READ)
			bad_here(_metadata, &self->p, &op, mr->lkey, IBV_WC_LOC_PROT_ERR);
		bad_here(_metadata, &self->p, &op, a->mr->lkey ^ 1, IBV_WC_LOC_PROT_ERR);
	}
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(rc, an_atomic_is_of_eight_bytes)
{
	static const uint32_t wrong[] = { 0, 4, 7, 9, 16, 4096 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct op op = remote_op(IBV_WR_ATOMIC_FETCH_AND_ADD, self->b, 8, wrong[i]);

		op.compare_add = 1;
		bad_here(_metadata, &self->p, &op, self->a->mr->lkey, IBV_WC_LOC_LEN_ERR);
	}
}

TEST_F(rc, without_max_rd_atomic_no_read_and_no_atomic_is_begun)
{
	struct op op = remote_op(IBV_WR_RDMA_READ, self->b, 0, 8);

	self->p.opts.rd_atomic = 0;
	pair_reconnect(_metadata, &self->p);
	bad_here(_metadata, &self->p, &op, self->a->mr->lkey, IBV_WC_LOC_QP_OP_ERR);
	op.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	op.compare_add = 1;
	bad_here(_metadata, &self->p, &op, self->a->mr->lkey, IBV_WC_LOC_QP_OP_ERR);
}

/*
 * The peer refuses: status here, an async event and no completion there, both in
 * error, its memory as it was.
 */
static void refused(struct __test_metadata *_metadata, struct pair *p, const struct op *op,
		    enum ibv_wc_status status)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_async_event event;
	struct ibv_wc wc;

	memset(b->buf, 0x11, b->len);
	ASSERT_EQ(0, post_recv(b, 3, 0, 100));
	ASSERT_EQ(0, post_op(a, 1, op));
	ASSERT_EQ(0, post_op(a, 2, op));
	wc = expect_wc(_metadata, a->scq, 1, status);
	EXPECT_NE(0, wc.vendor_err);
	EXPECT_EQ(a->qp->qp_num, wc.qp_num);
	expect_wc(_metadata, a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, b->rcq, 3, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(goes_to_error(a->qp));
	EXPECT_TRUE(goes_to_error(b->qp));
	ASSERT_TRUE(async_event(b->ctx, &event));
	EXPECT_EQ(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR :
						    IBV_EVENT_QP_REQ_ERR, event.event_type);
	EXPECT_EQ(b->qp, event.element.qp);
	EXPECT_FALSE(readable(a->ctx->async_fd, 0));
	EXPECT_FALSE(readable(b->ctx->async_fd, 0));
	EXPECT_TRUE(all_are(b->buf, 0x11, b->len));
	recover(_metadata, p);
}

static const struct {
	enum ibv_wr_opcode opcode;
	int right;
} remote_ops[] = {
	{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_ACCESS_REMOTE_WRITE },
	{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
};

/* An operation that would change memory if it were executed. */
static struct op forbidden(unsigned int i, const struct end *b, uint32_t off)
{
	struct op op = remote_op(remote_ops[i].opcode, b, off, 8);

	op.compare_add = 0x1111111111111111;
	op.swap = 1;
	return op;
}

TEST_F(rc, a_remote_key_that_never_was)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct op op = forbidden(i, b, 8);

		op.rkey = b->mr->rkey ^ 1;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.rkey = 0xffffffff;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.rkey = a->mr->rkey;
		if (a->mr->rkey != b->mr->rkey)
			refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
	}
}

TEST_F(rc, a_remote_key_of_another_pd)
{
	struct end *b = self->b;
	struct ibv_pd *pd = ibv_alloc_pd(b->ctx);
	struct ibv_mr *mr;
	unsigned int i;

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, b->buf, b->len, IBV_ACCESS_LOCAL_WRITE | self->p.opts.access);
	ASSERT_NE(NULL, mr);
	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct op op = forbidden(i, b, 8);

		op.rkey = mr->rkey;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
	}
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(rc, each_operation_needs_its_own_right_of_the_key)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct ibv_mr *without = ibv_reg_mr(b->pd, b->buf, b->len,
						    IBV_ACCESS_LOCAL_WRITE |
						    (self->p.opts.access & ~remote_ops[i].right));
		struct ibv_mr *with = ibv_reg_mr(b->pd, b->buf, b->len,
						 IBV_ACCESS_LOCAL_WRITE | remote_ops[i].right);
		struct op op = forbidden(i, b, 8);

		ASSERT_NE(NULL, without);
		ASSERT_NE(NULL, with);
		op.rkey = without->rkey;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.rkey = with->rkey;
		if (takes_receive(op.opcode))
			ASSERT_EQ(0, post_recv(b, 2, 0, 0));
		ASSERT_EQ(0, post_op(a, 1, &op));
		expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		if (takes_receive(op.opcode))
			expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
		EXPECT_EQ(0, ibv_dereg_mr(without));
		EXPECT_EQ(0, ibv_dereg_mr(with));
	}
}

TEST_F(rc, remote_memory_outside_of_the_region)
{
	struct end *b = self->b;
	uint64_t end = (uintptr_t)b->buf + b->len;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct op op = forbidden(i, b, 8);

		op.raddr = (uintptr_t)b->buf - 8;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.raddr = end;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.raddr = -8ull;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		if (is_atomic(op.opcode))
			continue;
		op.raddr = end - 7;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		op.raddr = (uintptr_t)b->buf - 1;
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
	}
}

/* Its first slices would fit: none of them is written. */
TEST_F(rc, a_long_message_whose_end_is_outside_is_not_begun)
{
	struct end *a = self->a, *b = self->b;
	struct op op;
	int i;

	reopen_large(_metadata, &self->p);
	for (i = 0; i < 3; i++) {
		op = remote_op(remote_ops[i].opcode, b, BUF_LEN - 4 * SLICE + 1, 4 * SLICE);
		memset(a->buf, 0x22, a->len);
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
		/* recover() has used the start of it. */
		EXPECT_TRUE(all_are(a->buf + 4096, 0x22, a->len - 4096));
	}
}

TEST_F(rc, a_remote_key_is_dead_at_once_when_its_region_is_deregistered)
{
	struct end *a = self->a, *b = self->b;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf, b->len, IBV_ACCESS_LOCAL_WRITE |
								      self->p.opts.access);
		struct op op = forbidden(i, b, 8);

		ASSERT_NE(NULL, mr);
		op.rkey = mr->rkey;
		if (takes_receive(op.opcode))
			ASSERT_EQ(0, post_recv(b, 2, 0, 0));
		ASSERT_EQ(0, post_op(a, 1, &op));
		expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		if (takes_receive(op.opcode))
			expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
		EXPECT_EQ(0, ibv_dereg_mr(mr));
		refused(_metadata, &self->p, &op, IBV_WC_REM_ACCESS_ERR);
	}
}

/* Also for a message that was sent while the key was good and waits for a receive. */
TEST_F(rc, a_remote_key_is_dead_for_a_write_that_waits)
{
	struct end *a = self->a, *b = self->b;
	long long before = device_counter(self->p.opts.function[1], "rnr_naks");
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf, b->len, IBV_ACCESS_LOCAL_WRITE |
							      IBV_ACCESS_REMOTE_WRITE);
	struct op op = forbidden(1, b, 8);
	struct ibv_async_event event;

	ASSERT_NE(NULL, mr);
	op.rkey = mr->rkey;
	ASSERT_EQ(0, post_op(a, 1, &op));
	ASSERT_TRUE(wait_until(device_counter(self->p.opts.function[1], "rnr_naks") > before));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	ASSERT_TRUE(async_event(b->ctx, &event));
	EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR, event.event_type);
	recover(_metadata, &self->p);
}

/*
 * Regions come and go while long messages are moved: each ends well or with a
 * remote access error, and nothing is moved to where the region was.
 */
struct mover {
	struct end *a;
	struct op op;
	enum ibv_wc_status status;
};

static void *move(void *arg)
{
	struct mover *m = arg;
	struct ibv_wc wc;

	m->status = post_op(m->a, 1, &m->op) || !poll_wc(m->a->scq, &wc) ? IBV_WC_GENERAL_ERR :
									    wc.status;
	return NULL;
}

TEST_F(rc, deregistration_in_the_middle_of_a_transfer)
{
	struct end *a = self->a, *b = self->b;
	uint64_t seed = seed_of("VHCA_TEST_SEED");
	int i;

	TH_LOG("VHCA_TEST_SEED=%llu", (unsigned long long)seed);
	reopen_large(_metadata, &self->p);
	for (i = 0; i < 60; i++) {
		struct mover m = { .a = a };
		struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf, b->len, IBV_ACCESS_LOCAL_WRITE |
								      self->p.opts.access);
		pthread_t thread;
		uint64_t until;

		ASSERT_NE(NULL, mr);
		m.op = remote_op(i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, b, 0, BUF_LEN);
		m.op.rkey = mr->rkey;
		memset(a->buf, i, a->len);
		ASSERT_EQ(0, pthread_create(&thread, NULL, move, &m));
		until = now_ns() + rnd_below(&seed, 600000);
		while (now_ns() < until)
			;
		ASSERT_EQ(0, ibv_dereg_mr(mr));
		if (i % 2 == 0) {
			memset(b->buf, 0xee, b->len);
			ASSERT_EQ(0, pthread_join(thread, NULL));
			ASSERT_TRUE(all_are(b->buf, 0xee, b->len));
		} else {
			ASSERT_EQ(0, pthread_join(thread, NULL));
		}
		if (m.status) {
			struct ibv_async_event event;

			ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, m.status);
			ASSERT_TRUE(async_event(b->ctx, &event));
			EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR, event.event_type);
			recover(_metadata, &self->p);
		}
	}
}

TEST_F(rc, each_operation_needs_its_own_right_of_the_qp)
{
	int all = self->p.opts.access;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(remote_ops); i++) {
		struct op op = forbidden(i, self->b, 8);

		self->p.opts.access = all & ~remote_ops[i].right;
		pair_reconnect(_metadata, &self->p);
		refused(_metadata, &self->p, &op, IBV_WC_REM_INV_REQ_ERR);
	}
}

TEST_F(rc, an_atomic_that_is_not_aligned)
{
	unsigned int i;

	for (i = 1; i < 8; i++) {
		struct op op = forbidden(3 + i % 2, self->b, 8 + i);

		refused(_metadata, &self->p, &op, IBV_WC_REM_INV_REQ_ERR);
	}
}

TEST_F(rc, without_max_dest_rd_atomic_no_read_and_no_atomic_is_taken)
{
	unsigned int i;

	self->p.opts.dest_rd_atomic = 0;
	pair_reconnect(_metadata, &self->p);
	for (i = 2; i < ARRAY_SIZE(remote_ops); i++) {
		struct op op = forbidden(i, self->b, 8);

		refused(_metadata, &self->p, &op, IBV_WC_REM_INV_REQ_ERR);
	}
}

TEST_F(rc, a_send_with_immediate_too_long)
{
	struct end *a = self->a, *b = self->b;
	struct op op = remote_op(IBV_WR_SEND_WITH_IMM, b, 0, 101);
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_op(a, 1, &op));
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(0, wc.wc_flags);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	recover(_metadata, &self->p);
}

TEST_HARNESS_MAIN
