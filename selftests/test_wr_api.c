// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_wr_api.c: work requests posted by calls (struct ibv_qp_ex): each builder does
 * what ibv_post_send() does of the same description; a batch is one doorbell, or
 * none when something is wrong with it.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "rc.h"

#define DATAGRAM_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define CONNECTED_OPS	(DATAGRAM_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | \
			 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define RELIABLE_OPS	(CONNECTED_OPS | IBV_QP_EX_WITH_RDMA_READ | \
			 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static uint64_t ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return DATAGRAM_OPS;
	case IBV_QPT_UC:
		return CONNECTED_OPS;
	default:
		return RELIABLE_OPS;
	}
}

FIXTURE(wr)
{
	struct pair p;
	struct end *a;
	struct end *b;
	struct ibv_qp_ex *qpx;
};

FIXTURE_VARIANT(wr)
{
	const char *engine;
	enum ibv_qp_type type;
};

FIXTURE_VARIANT_ADD(wr, rc_inline)
{
	.engine = "inline",
	.type = IBV_QPT_RC,
};

FIXTURE_VARIANT_ADD(wr, rc_threaded)
{
	.engine = "threaded",
	.type = IBV_QPT_RC,
};

FIXTURE_VARIANT_ADD(wr, uc_inline)
{
	.engine = "inline",
	.type = IBV_QPT_UC,
};

FIXTURE_VARIANT_ADD(wr, ud_inline)
{
	.engine = "inline",
	.type = IBV_QPT_UD,
};

FIXTURE_VARIANT_ADD(wr, ud_threaded)
{
	.engine = "threaded",
	.type = IBV_QPT_UD,
};

FIXTURE_VARIANT_ADD(wr, xrc_inline)
{
	.engine = "inline",
	.type = IBV_QPT_XRC_SEND,
};

FIXTURE_SETUP(wr)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = variant->type;
	opts.send_ops = ops_of(variant->type);
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->qpx = ibv_qp_to_qp_ex(self->a->qp);
	ASSERT_NE(NULL, self->qpx);
}

FIXTURE_TEARDOWN(wr)
{
	pair_close(_metadata, &self->p);
}

/*
 * One description, two ways to post
 */
static void build_op(struct ibv_qp_ex *qpx, const struct op *op)
{
	switch (op->opcode) {
	case IBV_WR_RDMA_WRITE:
		return ibv_wr_rdma_write(qpx, op->rkey, op->raddr);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ibv_wr_rdma_write_imm(qpx, op->rkey, op->raddr, htobe32(op->imm));
	case IBV_WR_SEND:
		return ibv_wr_send(qpx);
	case IBV_WR_SEND_WITH_IMM:
		return ibv_wr_send_imm(qpx, htobe32(op->imm));
	case IBV_WR_SEND_WITH_INV:
		return ibv_wr_send_inv(qpx, op->imm);
	case IBV_WR_RDMA_READ:
		return ibv_wr_rdma_read(qpx, op->rkey, op->raddr);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ibv_wr_atomic_cmp_swp(qpx, op->rkey, op->raddr, op->compare_add, op->swap);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ibv_wr_atomic_fetch_add(qpx, op->rkey, op->raddr, op->compare_add);
	case IBV_WR_LOCAL_INV:
		return ibv_wr_local_inv(qpx, op->imm);
	case IBV_WR_BIND_MW:
		return ibv_wr_bind_mw(qpx, op->mw, op->new_rkey, &op->bind);
	default:
		abort();
	}
}

static void build_dest(const struct end *e, struct ibv_qp_ex *qpx)
{
	if (e->qp->qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qpx, e->ah, e->peer_qpn, PAIR_QKEY);
	if (e->qp->qp_type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qpx, e->peer_srqn);
}

static void build_data(struct ibv_qp_ex *qpx, const struct op *op, struct ibv_sge *sge, int n)
{
	struct ibv_data_buf buf[MAX_SLICES];
	int i;

	for (i = 0; i < n; i++)
		buf[i] = (struct ibv_data_buf) { (void *)(uintptr_t)sge[i].addr, sge[i].length };
	if (op->flags & IBV_SEND_INLINE && n == 1)
		ibv_wr_set_inline_data(qpx, buf[0].addr, buf[0].length);
	else if (op->flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(qpx, n, buf);
	else if (n == 1)
		ibv_wr_set_sge(qpx, sge->lkey, sge->addr, sge->length);
	else if (n)
		ibv_wr_set_sge_list(qpx, n, sge);
}

/* One WR of a batch. */
static void build(const struct end *e, uint64_t wr_id, const struct op *op, struct ibv_sge *sge,
		  int n)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(e->qp);

	qpx->wr_id = wr_id;
	qpx->wr_flags = op->flags & ~IBV_SEND_INLINE;
	build_op(qpx, op);
	/* Either may come first. */
	if (wr_id % 2)
		build_dest(e, qpx);
	build_data(qpx, op, sge, n);
	if (wr_id % 2 == 0)
		build_dest(e, qpx);
}

static int post_either(struct end *e, bool by_calls, uint64_t wr_id, const struct op *op,
		       struct ibv_sge *sge, int n)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(e->qp);
	struct ibv_send_wr wr = op_wr(wr_id, op, sge, n), *bad = NULL;

	if (!by_calls) {
		wr_to_peer(e, &wr);
		return ibv_post_send(e->qp, &wr, &bad);
	}
	ibv_wr_start(qpx);
	build(e, wr_id, op, sge, n);
	return ibv_wr_complete(qpx);
}

/*
 * Each builder
 */
#define ROOM	4096u

/* What one operation leaves behind at both ends. */
struct outcome {
	uint8_t a[ROOM];
	uint8_t b[ROOM];
	struct ibv_wc sent;
	struct ibv_wc received;
};

static void run_op(struct __test_metadata *_metadata, struct pair *p, bool by_calls,
		   const struct op *op, const struct slice *s, int n, struct outcome *out)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge sge[MAX_SLICES];

	memset(out, 0, sizeof(*out));
	fill(a->buf, ROOM, 1);
	fill(b->buf, ROOM, 2);
	slices_to_sges(a, s, n, sge);
	if (takes_receive(op->opcode))
		ASSERT_EQ(0, post_recv(b, 7, 1024, 2048));
	ASSERT_EQ(0, post_either(a, by_calls, 5 + n, op, sge, n));
	out->sent = expect_wc(_metadata, a->scq, 5 + n, IBV_WC_SUCCESS);
	if (takes_receive(op->opcode))
		out->received = expect_wc(_metadata, b->rcq, 7, IBV_WC_SUCCESS);
	memcpy(out->a, a->buf, ROOM);
	memcpy(out->b, b->buf, ROOM);
}

static void both_ways(struct __test_metadata *_metadata, struct pair *p, struct op what,
		      const struct slice *s, int n)
{
	static struct outcome out[2];
	unsigned int solicited;
	int i;

	for (solicited = 0; solicited < 2; solicited++) {
		what.flags |= solicited ? IBV_SEND_SOLICITED | IBV_SEND_FENCE : 0;
		for (i = 0; i < 2; i++)
			run_op(_metadata, p, i, &what, s, n, &out[i]);
		EXPECT_EQ(0, memcmp(out[0].a, out[1].a, ROOM));
		EXPECT_EQ(0, memcmp(out[0].b, out[1].b, ROOM));
		EXPECT_EQ(0, memcmp(&out[0].sent, &out[1].sent, sizeof(out[0].sent)));
		EXPECT_EQ(0, memcmp(&out[0].received, &out[1].received,
				    sizeof(out[0].received))) {
			TH_LOG("opcode %d, %d pieces, flags %#x", what.opcode, n, what.flags);
		}
	}
}

static struct op op_to(const struct end *peer, enum ibv_wr_opcode opcode)
{
	return (struct op) {
		.opcode = opcode,
		.raddr = (uintptr_t)peer->buf + 512,
		.rkey = peer->mr->rkey,
		.compare_add = 3,
		.swap = 0x1122334455667788ull,
		.imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
		       0xabcdef : 0,
		.flags = IBV_SEND_SIGNALED,
	};
}

static const struct slice pieces[] = { { 0, 300 }, { 2000, 1 }, { 100, 0 }, { 901, 99 } };
static const struct slice few[] = { { 0, 60 }, { 2000, 1 }, { 100, 0 }, { 901, 9 } };

TEST_F(wr, messages)
{
	static const enum ibv_wr_opcode opcode[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM };
	struct op op;
	unsigned int i;
	int n;

	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		for (n = 0; n <= (int)ARRAY_SIZE(pieces); n++) {
			op = op_to(self->b, opcode[i]);
			both_ways(_metadata, &self->p, op, pieces, n);
			if (!n)
				continue;
			op.flags |= IBV_SEND_INLINE;
			both_ways(_metadata, &self->p, op, few, n);
		}
	}
}

TEST_F(wr, writes)
{
	static const enum ibv_wr_opcode opcode[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM
	};
	struct op op;
	unsigned int i;
	int n;

	if (variant->type == IBV_QPT_UD)
		SKIP(return, "not with datagrams");
	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		for (n = 0; n <= (int)ARRAY_SIZE(pieces); n++) {
			op = op_to(self->b, opcode[i]);
			both_ways(_metadata, &self->p, op, pieces, n);
			if (!n)
				continue;
			op.flags |= IBV_SEND_INLINE;
			both_ways(_metadata, &self->p, op, few, n);
		}
	}
}

TEST_F(wr, reads_and_atomics)
{
	static const struct slice one = { 96, 8 };
	int n;

	if (!asks(self->a->qp))
		SKIP(return, "only where there are answers");
	for (n = 0; n <= (int)ARRAY_SIZE(pieces); n++)
		both_ways(_metadata, &self->p, op_to(self->b, IBV_WR_RDMA_READ), pieces, n);
	both_ways(_metadata, &self->p, op_to(self->b, IBV_WR_ATOMIC_FETCH_AND_ADD), &one, 1);
	both_ways(_metadata, &self->p, op_to(self->b, IBV_WR_ATOMIC_CMP_AND_SWP), &one, 1);
}

/* With what is there as the comparand the swap happens. */
TEST_F(wr, compare_and_swap_that_swaps)
{
	struct op op = op_to(self->b, IBV_WR_ATOMIC_CMP_AND_SWP);
	struct ibv_sge sge = { (uintptr_t)self->a->buf, 8, self->a->mr->lkey };

	if (!asks(self->a->qp))
		SKIP(return, "only where there are answers");
	*word(self->b, 512) = op.compare_add;
	ASSERT_EQ(0, post_either(self->a, true, 5, &op, &sge, 1));
	expect_wc(_metadata, self->a->scq, 5, IBV_WC_SUCCESS);
	EXPECT_EQ(op.compare_add, *word(self->a, 0));
	EXPECT_EQ(op.swap, *word(self->b, 512));
}

TEST_F(wr, windows_are_bound_and_invalidated)
{
	struct op bind = { .opcode = IBV_WR_BIND_MW, .flags = IBV_SEND_SIGNALED };
	struct op inv = { .opcode = IBV_WR_LOCAL_INV, .flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	if (variant->type == IBV_QPT_UD)
		SKIP(return, "not with datagrams");
	mr = ibv_reg_mr(self->a->pd, self->a->buf, self->a->len,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(self->a->pd, IBV_MW_TYPE_2);
	ASSERT_NE(NULL, mr);
	ASSERT_NE(NULL, mw);
	bind.mw = mw;
	bind.new_rkey = ibv_inc_rkey(mw->rkey);
	bind.bind = (struct ibv_mw_bind_info) {
		mr, (uintptr_t)self->a->buf, 100, IBV_ACCESS_REMOTE_WRITE,
	};
	ASSERT_EQ(0, post_either(self->a, true, 5, &bind, NULL, 0));
	wc = expect_wc(_metadata, self->a->scq, 5, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_BIND_MW, wc.opcode);
	EXPECT_EQ(EBUSY, ibv_dereg_mr(mr));
	inv.imm = bind.new_rkey;
	ASSERT_EQ(0, post_either(self->a, true, 6, &inv, NULL, 0));
	wc = expect_wc(_metadata, self->a->scq, 6, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_LOCAL_INV, wc.opcode);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

TEST_F(wr, a_message_invalidates_a_window_of_the_peer)
{
	struct op bind = { .opcode = IBV_WR_BIND_MW, .flags = IBV_SEND_SIGNALED };
	struct op op = { .opcode = IBV_WR_SEND_WITH_INV, .flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	/* The peer of an XRC pair posts no sends. */
	if (variant->type != IBV_QPT_RC && variant->type != IBV_QPT_UC)
		SKIP(return, "only where both ends send");
	mr = ibv_reg_mr(self->b->pd, self->b->buf, self->b->len,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(self->b->pd, IBV_MW_TYPE_2);
	ASSERT_NE(NULL, mr);
	ASSERT_NE(NULL, mw);
	bind.mw = mw;
	bind.new_rkey = ibv_inc_rkey(mw->rkey);
	bind.bind = (struct ibv_mw_bind_info) {
		mr, (uintptr_t)self->b->buf, 100, IBV_ACCESS_REMOTE_WRITE,
	};
	ASSERT_EQ(0, post_either(self->b, true, 5, &bind, NULL, 0));
	expect_wc(_metadata, self->b->scq, 5, IBV_WC_SUCCESS);
	op.imm = bind.new_rkey;
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 10));
	ASSERT_EQ(0, post_either(self->a, true, 6, &op, NULL, 0));
	expect_wc(_metadata, self->a->scq, 6, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
	EXPECT_EQ(bind.new_rkey, wc.invalidated_rkey);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

/*
 * Batches
 */
static void post_receives(struct __test_metadata *_metadata, struct end *e, int n)
{
	int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, post_recv(e, i, 1024, 1024));
}

static void build_sends(struct end *e, int first, int n, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 100, e->mr->lkey };
	struct op op = { .opcode = IBV_WR_SEND, .flags = flags };
	int i;

	for (i = 0; i < n; i++)
		build(e, first + i, &op, &sge, 1);
}

TEST_F(wr, a_batch_is_one_kick)
{
	long long before;
	int i;

	if (strcmp(variant->engine, "inline"))
		SKIP(return, "a thread that watches needs no kick");
	post_receives(_metadata, self->b, 20);
	before = driver_counter(0, "kicks");
	ASSERT_LE(0, before);
	ibv_wr_start(self->qpx);
	build_sends(self->a, 100, 20, IBV_SEND_SIGNALED);
	EXPECT_EQ(before, driver_counter(0, "kicks"));
	ASSERT_EQ(0, ibv_wr_complete(self->qpx));
	EXPECT_EQ(before + 1, driver_counter(0, "kicks"));
	for (i = 0; i < 20; i++) {
		expect_wc(_metadata, self->a->scq, 100 + i, IBV_WC_SUCCESS);
		expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
	}
}

TEST_F(wr, an_empty_batch_is_no_kick)
{
	long long before = driver_counter(0, "kicks");

	ibv_wr_start(self->qpx);
	EXPECT_EQ(0, ibv_wr_complete(self->qpx));
	EXPECT_EQ(before, driver_counter(0, "kicks"));
}

TEST_F(wr, only_what_is_signaled_completes)
{
	post_receives(_metadata, self->b, 6);
	ibv_wr_start(self->qpx);
	build_sends(self->a, 10, 3, 0);
	build_sends(self->a, 20, 1, IBV_SEND_SIGNALED);
	build_sends(self->a, 30, 1, 0);
	build_sends(self->a, 40, 1, IBV_SEND_SIGNALED);
	ASSERT_EQ(0, ibv_wr_complete(self->qpx));
	expect_wc(_metadata, self->a->scq, 20, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 40, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->a->scq));
}

TEST_F(wr, an_abort_leaves_no_trace)
{
	long long wqes = device_counter(0, "wqes"), kicks = driver_counter(0, "kicks");
	int i;

	post_receives(_metadata, self->b, 10);
	/* More than the queue holds, in all. */
	for (i = 0; i < 50; i++) {
		ibv_wr_start(self->qpx);
		build_sends(self->a, 1000, 5, IBV_SEND_SIGNALED);
		ibv_wr_abort(self->qpx);
	}
	EXPECT_EQ(kicks, driver_counter(0, "kicks"));
	EXPECT_EQ(wqes, device_counter(0, "wqes"));
	ibv_wr_start(self->qpx);
	build_sends(self->a, 100, 5, IBV_SEND_SIGNALED);
	ASSERT_EQ(0, ibv_wr_complete(self->qpx));
	for (i = 0; i < 5; i++)
		expect_wc(_metadata, self->a->scq, 100 + i, IBV_WC_SUCCESS);
	ASSERT_EQ(0, post_send(self->a, 200, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 200, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->a->scq));
}

TEST_F(wr, batches_and_lists_take_turns)
{
	struct ibv_wc wc;
	int i, k, n;

	/* Some laps of the ring, with WQEs of different sizes. */
	for (i = 0; i < 100; i++) {
		n = 1 + i % 3;
		post_receives(_metadata, self->b, n + 1);
		ibv_wr_start(self->qpx);
		build_sends(self->a, 10, n, i % 2 ? IBV_SEND_INLINE : 0);
		ASSERT_EQ(0, ibv_wr_complete(self->qpx));
		ASSERT_EQ(0, post_send(self->a, 20, 0, 100, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, 20, IBV_WC_SUCCESS);
		for (k = 0; k < n + 1; k++) {
			ASSERT_TRUE(poll_wc(self->b->rcq, &wc));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		}
	}
}

/*
 * Receives that are posted meanwhile. A QP in error wants a doorbell for each, and the
 * batch has the lock under which doorbells are rung.
 */
#define HANG_S	60

/* Nothing but a first receive tells that the device has come to want doorbells. */
static void to_error(struct __test_metadata *_metadata, struct end *e)
{
	ASSERT_EQ(0, post_recv(e, 1, 0, 64));
	ASSERT_EQ(0, qp_to(e->qp, IBV_QPS_ERR));
	expect_wc(_metadata, e->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(0, post_recv(e, 2, 0, 64));
	expect_wc(_metadata, e->rcq, 2, IBV_WC_WR_FLUSH_ERR);
}

/* A batch of @n sends between two receives, which is not ended yet. */
static void begin_batch(struct __test_metadata *_metadata, FIXTURE_DATA(wr) * self, int n)
{
	ibv_wr_start(self->qpx);
	ASSERT_EQ(0, post_recv(self->a, 10, 0, 64));
	build_sends(self->a, 20, n, IBV_SEND_SIGNALED);
	ASSERT_EQ(0, post_recv(self->a, 11, 0, 64));
}

static void expect_both_flushed(struct __test_metadata *_metadata, const struct end *e)
{
	expect_wc(_metadata, e->rcq, 10, IBV_WC_WR_FLUSH_ERR);
	expect_wc(_metadata, e->rcq, 11, IBV_WC_WR_FLUSH_ERR);
}

TEST_F_TIMEOUT(wr, receives_posted_within_a_batch_are_flushed_when_it_is_complete, HANG_S)
{
	struct end *a = self->a;
	int i, n;

	if (variant->type == IBV_QPT_XRC_SEND)
		SKIP(return, "it has no receives");
	to_error(_metadata, a);
	for (n = 0; n < 3; n++) {
		begin_batch(_metadata, self, n);
		ASSERT_EQ(0, ibv_wr_complete(self->qpx));
		expect_both_flushed(_metadata, a);
		for (i = 0; i < n; i++)
			expect_wc(_metadata, a->scq, 20 + i, IBV_WC_WR_FLUSH_ERR);
	}
}

TEST_F_TIMEOUT(wr, receives_posted_within_a_batch_are_flushed_when_it_is_aborted, HANG_S)
{
	struct end *a = self->a;
	int n;

	if (variant->type == IBV_QPT_XRC_SEND)
		SKIP(return, "it has no receives");
	to_error(_metadata, a);
	for (n = 0; n < 3; n++) {
		begin_batch(_metadata, self, n);
		ibv_wr_abort(self->qpx);
		expect_both_flushed(_metadata, a);
	}
	EXPECT_TRUE(cq_empty(a->scq));
}

/*
 * Errors
 */

/* Something wrong, between two WRs that are not. */
static void expect_bad(struct __test_metadata *_metadata, struct pair *p, int err,
		       void (*wrong)(struct end *e, struct ibv_qp_ex *qpx))
{
	struct end *e = &p->end[0];
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(e->qp);
	long long wqes = device_counter(0, "wqes");

	ibv_wr_start(qpx);
	build_sends(e, 1, 1, IBV_SEND_SIGNALED);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	wrong(e, qpx);
	build_sends(e, 3, 1, IBV_SEND_SIGNALED);
	EXPECT_EQ(err, ibv_wr_complete(qpx));
	EXPECT_EQ(wqes, device_counter(0, "wqes"));
	EXPECT_TRUE(cq_empty(e->scq));
}

static void too_many_sges(struct end *e, struct ibv_qp_ex *qpx)
{
	struct ibv_sge sge[300] = {};

	ibv_wr_send(qpx);
	build_dest(e, qpx);
	ibv_wr_set_sge_list(qpx, e->cap.max_send_sge + 1, sge);
}

static void too_long_inline(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send(qpx);
	build_dest(e, qpx);
	ibv_wr_set_inline_data(qpx, e->buf, e->cap.max_inline_data + 1);
}

static void too_long_inline_list(struct end *e, struct ibv_qp_ex *qpx)
{
	struct ibv_data_buf buf[2] = {
		{ e->buf, e->cap.max_inline_data }, { e->buf, SIZE_MAX },
	};

	ibv_wr_send(qpx);
	build_dest(e, qpx);
	ibv_wr_set_inline_data_list(qpx, 2, buf);
}

static void too_long_sge(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send(qpx);
	build_dest(e, qpx);
	ibv_wr_set_sge(qpx, e->mr->lkey, (uintptr_t)e->buf, 0x80000000u);
}

static void data_twice(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send(qpx);
	build_dest(e, qpx);
	ibv_wr_set_sge(qpx, e->mr->lkey, (uintptr_t)e->buf, 1);
	ibv_wr_set_sge(qpx, e->mr->lkey, (uintptr_t)e->buf, 1);
}

static void unknown_flags(struct end *e, struct ibv_qp_ex *qpx)
{
	qpx->wr_flags = 1 << 10;
	ibv_wr_send(qpx);
	build_dest(e, qpx);
}

static void tso(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send_tso(qpx, e->buf, 10, 100);
}

static void no_destination(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, e->mr->lkey, (uintptr_t)e->buf, 1);
}

static void destination_twice(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_send(qpx);
	build_dest(e, qpx);
	build_dest(e, qpx);
}

static void no_address(struct end *e, struct ibv_qp_ex *qpx)
{
	(void)e;
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, NULL, 1, PAIR_QKEY);
}

static void srqn(struct end *e, struct ibv_qp_ex *qpx)
{
	(void)e;
	ibv_wr_send(qpx);
	ibv_wr_set_xrc_srqn(qpx, 1);
}

static void more_than_fit(struct end *e, struct ibv_qp_ex *qpx)
{
	(void)qpx;
	build_sends(e, 1, e->cap.max_send_wr, IBV_SEND_SIGNALED);
}

TEST_F(wr, what_is_wrong_with_one_is_told_at_the_end_and_nothing_is_posted)
{
	struct pair *p = &self->p;
	bool dest = variant->type == IBV_QPT_UD || variant->type == IBV_QPT_XRC_SEND;

	expect_bad(_metadata, p, EINVAL, too_many_sges);
	expect_bad(_metadata, p, EINVAL, too_long_inline);
	expect_bad(_metadata, p, EINVAL, too_long_inline_list);
	expect_bad(_metadata, p, EINVAL, too_long_sge);
	expect_bad(_metadata, p, EINVAL, data_twice);
	expect_bad(_metadata, p, EINVAL, unknown_flags);
	expect_bad(_metadata, p, EINVAL, tso);
	expect_bad(_metadata, p, ENOMEM, more_than_fit);
	expect_bad(_metadata, p, EINVAL, no_address);
	if (variant->type != IBV_QPT_XRC_SEND)
		expect_bad(_metadata, p, EINVAL, srqn);
	if (dest) {
		expect_bad(_metadata, p, EINVAL, no_destination);
		expect_bad(_metadata, p, EINVAL, destination_twice);
	}
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 1024));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 100, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
}

static void setter_alone(struct end *e, struct ibv_qp_ex *qpx)
{
	(void)e;
	ibv_wr_abort(qpx);
	ibv_wr_start(qpx);
	ibv_wr_set_sge(qpx, 1, 1, 1);
}

static void inline_read(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_rdma_read(qpx, 1, 1);
	build_dest(e, qpx);
	ibv_wr_set_inline_data(qpx, e->buf, 8);
}

static void inline_atomic(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_atomic_fetch_add(qpx, 1, 8, 1);
	build_dest(e, qpx);
	ibv_wr_set_inline_data(qpx, e->buf, 8);
}

static void atomic_without_data(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_atomic_fetch_add(qpx, 1, 8, 1);
	build_dest(e, qpx);
}

static void atomic_of_two(struct end *e, struct ibv_qp_ex *qpx)
{
	struct ibv_sge sge[2] = { { 0, 4, 1 }, { 4, 4, 1 } };

	ibv_wr_atomic_fetch_add(qpx, 1, 8, 1);
	build_dest(e, qpx);
	ibv_wr_set_sge_list(qpx, 2, sge);
}

static void data_of_an_invalidation(struct end *e, struct ibv_qp_ex *qpx)
{
	ibv_wr_local_inv(qpx, 0x100);
	build_dest(e, qpx);
	ibv_wr_set_sge(qpx, e->mr->lkey, (uintptr_t)e->buf, 8);
}

static void bind_of_nothing(struct end *e, struct ibv_qp_ex *qpx)
{
	struct ibv_mw_bind_info info = { .length = 100 };

	ibv_wr_bind_mw(qpx, NULL, 0x100, &info);
	build_dest(e, qpx);
}

static void bind_of_type_1(struct end *e, struct ibv_qp_ex *qpx)
{
	struct ibv_mw mw = { .type = IBV_MW_TYPE_1, .rkey = 0x100 };
	struct ibv_mw_bind_info nothing = {};

	ibv_wr_bind_mw(qpx, &mw, 0x101, &nothing);
	build_dest(e, qpx);
}

TEST_F(wr, what_is_wrong_with_reads_atomics_and_windows)
{
	struct pair *p = &self->p;

	if (!asks(self->a->qp))
		SKIP(return, "only where there are answers");
	expect_bad(_metadata, p, EINVAL, setter_alone);
	expect_bad(_metadata, p, EINVAL, inline_read);
	expect_bad(_metadata, p, EINVAL, inline_atomic);
	expect_bad(_metadata, p, EINVAL, atomic_without_data);
	expect_bad(_metadata, p, EINVAL, atomic_of_two);
	expect_bad(_metadata, p, EINVAL, data_of_an_invalidation);
	expect_bad(_metadata, p, EINVAL, bind_of_nothing);
	expect_bad(_metadata, p, EINVAL, bind_of_type_1);
}

TEST_F(wr, a_qp_that_may_not_send_takes_no_batch)
{
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RESET));
	ibv_wr_start(self->qpx);
	build_sends(self->a, 1, 1, IBV_SEND_SIGNALED);
	EXPECT_EQ(EINVAL, ibv_wr_complete(self->qpx));
}

/*
 * Creation
 */
FIXTURE(ctx)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

FIXTURE_SETUP(ctx)
{
	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
	self->cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	ASSERT_NE(NULL, self->cq);
}

FIXTURE_TEARDOWN(ctx)
{
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
			     uint32_t comp_mask, uint64_t ops, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | comp_mask,
		.pd = pd,
		.send_ops_flags = ops,
		.create_flags = create_flags,
	};

	errno = 0;
	return ibv_create_qp_ex(pd->context, &attr);
}

TEST_F(ctx, a_qp_has_the_operations_of_its_type)
{
	static const enum ibv_qp_type type[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp *qp;
	unsigned int i, bit;

	for (i = 0; i < ARRAY_SIZE(type); i++) {
		for (bit = 0; bit < 20; bit++) {
			qp = create(self->pd, self->cq, type[i], IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				    1ull << bit, 0);
			if (ops_of(type[i]) >> bit & 1) {
				ASSERT_NE(NULL, qp) {
					TH_LOG("type %d, bit %u", type[i], bit);
				}
				EXPECT_NE(NULL, ibv_qp_to_qp_ex(qp));
				EXPECT_EQ(qp, &ibv_qp_to_qp_ex(qp)->qp_base);
				EXPECT_EQ(0, ibv_destroy_qp(qp));
			} else {
				EXPECT_EQ(NULL, qp) {
					TH_LOG("type %d, bit %u", type[i], bit);
				}
				EXPECT_EQ(EOPNOTSUPP, errno);
			}
		}
	}
}

TEST_F(ctx, a_qp_that_was_not_asked_to_has_no_calls)
{
	struct ibv_qp *qp = create(self->pd, self->cq, IBV_QPT_RC, 0, 0, 0);

	ASSERT_NE(NULL, qp);
	errno = 0;
	EXPECT_EQ(NULL, ibv_qp_to_qp_ex(qp));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(ctx, attributes_that_are_not_there_are_refused)
{
	static const uint32_t flag[] = {
		IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING,
		IBV_QP_CREATE_SOURCE_QPN, IBV_QP_CREATE_PCI_WRITE_END_PADDING, 1 << 0,
	};
	static const uint32_t mask[] = {
		IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE,
		IBV_QP_INIT_ATTR_RX_HASH, 1 << 7,
	};
	struct ibv_qp *qp;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flag); i++) {
		EXPECT_EQ(NULL, create(self->pd, self->cq, IBV_QPT_UD,
				       IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, flag[i]));
		EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL);
	}
	for (i = 0; i < ARRAY_SIZE(mask); i++) {
		EXPECT_EQ(NULL, create(self->pd, self->cq, IBV_QPT_UD, mask[i], 0, 0));
		EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL);
	}
	EXPECT_EQ(NULL, create(self->pd, self->cq, IBV_QPT_RC, IBV_QP_INIT_ATTR_CREATE_FLAGS, 0,
			       IBV_QP_CREATE_BLOCK_SELF_MCAST_LB));
	qp = create(self->pd, self->cq, IBV_QPT_UD, IBV_QP_INIT_ATTR_CREATE_FLAGS, 0,
		    IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* What was not asked for fails, as do all operations of another kind. */
TEST_F(rc, a_builder_that_was_not_asked_for_fails)
{
	struct pair_opts opts = self->p.opts;
	struct ibv_qp_ex *qpx;

	opts.send_ops = IBV_QP_EX_WITH_SEND;
	reopen(_metadata, &self->p, opts);
	qpx = ibv_qp_to_qp_ex(self->a->qp);
	ASSERT_NE(NULL, qpx);
	ibv_wr_start(qpx);
	ibv_wr_send_imm(qpx, 0);
	EXPECT_EQ(EINVAL, ibv_wr_complete(qpx));
	ibv_wr_start(qpx);
	ibv_wr_rdma_read(qpx, 1, 1);
	EXPECT_EQ(EINVAL, ibv_wr_complete(qpx));
	exchange(_metadata, self->a, self->b, 100, 1);
}

/* With a lock the second start of the one thread would wait for itself. */
TEST_F(rc, a_qp_of_a_thread_domain_has_no_lock)
{
	struct ibv_parent_domain_init_attr attr = { .pd = self->a->pd };
	struct ibv_td_init_attr td_attr = {};
	struct ibv_pd *domain, *pd = self->a->pd;
	struct pair_opts opts = self->p.opts;
	struct ibv_qp_ex *qpx;

	attr.td = ibv_alloc_td(self->a->ctx, &td_attr);
	ASSERT_NE(NULL, attr.td);
	domain = ibv_alloc_parent_domain(self->a->ctx, &attr);
	ASSERT_NE(NULL, domain);
	ASSERT_EQ(0, ibv_destroy_qp(self->a->qp));
	opts.send_ops = IBV_QP_EX_WITH_SEND;
	self->a->pd = domain;
	end_make_qp(_metadata, self->a, &opts, 0);
	self->a->pd = pd;
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	pair_connect(_metadata, &self->p);
	qpx = ibv_qp_to_qp_ex(self->a->qp);
	ibv_wr_start(qpx);
	ibv_wr_start(qpx);
	ibv_wr_abort(qpx);
	exchange(_metadata, self->a, self->b, 100, 1);
	ASSERT_EQ(0, ibv_destroy_qp(self->a->qp));
	self->a->qp = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
	EXPECT_EQ(0, ibv_dealloc_td(attr.td));
}

TEST_HARNESS_MAIN
