// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_windows.c: memory windows of both types: bind, access through them,
 * invalidation from either end, and what a window keeps from going.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "rc.h"

#define OFF	1000u
#define LEN	5000u
#define REMOTE	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * The second end has a region that remote access is allowed to by windows alone;
 * the first one writes and reads through them.
 */
FIXTURE(mw)
{
	struct pair p;
	struct end *a;
	struct end *b;
	struct ibv_mr *mr;
	struct ibv_mw *mw[2];
};

FIXTURE_VARIANT(mw)
{
	const char *engine;
	enum ibv_mw_type type;
};

FIXTURE_VARIANT_ADD(mw, type_1_inline)
{
	.engine = "inline",
	.type = IBV_MW_TYPE_1,
};

FIXTURE_VARIANT_ADD(mw, type_1_threaded)
{
	.engine = "threaded",
	.type = IBV_MW_TYPE_1,
};

FIXTURE_VARIANT_ADD(mw, type_2_inline)
{
	.engine = "inline",
	.type = IBV_MW_TYPE_2,
};

FIXTURE_VARIANT_ADD(mw, type_2_threaded)
{
	.engine = "threaded",
	.type = IBV_MW_TYPE_2,
};

FIXTURE_SETUP(mw)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	int i;

	ASSERT_EQ(0, engine_set(variant->engine));
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->mr = ibv_reg_mr(self->b->pd, self->b->buf, self->b->len,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	ASSERT_NE(NULL, self->mr);
	for (i = 0; i < 2; i++) {
		self->mw[i] = ibv_alloc_mw(self->b->pd, variant->type);
		ASSERT_NE(NULL, self->mw[i]);
	}
}

FIXTURE_TEARDOWN(mw)
{
	int i;

	for (i = 0; i < 2; i++)
		if (self->mw[i])
			EXPECT_EQ(0, ibv_dealloc_mw(self->mw[i]));
	if (self->mr)
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	pair_close(_metadata, &self->p);
}

static struct ibv_mw_bind_info window(struct ibv_mr *mr, const struct end *e, unsigned int access)
{
	return (struct ibv_mw_bind_info) {
		.mr = mr,
		.addr = (uintptr_t)e->buf + OFF,
		.length = LEN,
		.mw_access_flags = access,
	};
}

static int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info,
		     uint32_t rkey)
{
	struct op op = {
		.opcode = IBV_WR_BIND_MW, .flags = IBV_SEND_SIGNALED, .mw = mw,
		.new_rkey = rkey, .bind = info,
	};
	int err = post_op_sges(qp, 50, &op, NULL, 0);

	/* Of a window of type 2 the key is the application's to note. */
	if (!err)
		mw->rkey = rkey;
	return err;
}

/* Post a bind, as the window's type asks for. */
static int bind_any(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {
		.wr_id = 50, .send_flags = IBV_SEND_SIGNALED, .bind_info = info,
	};

	if (mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(qp, mw, &bind);
	return post_bind(qp, mw, info, ibv_inc_rkey(mw->rkey));
}

static void bind_ok(struct __test_metadata *_metadata, struct end *e, struct ibv_mw *mw,
		    struct ibv_mw_bind_info info)
{
	uint32_t old = mw->rkey;
	struct ibv_wc wc;

	ASSERT_EQ(0, bind_any(e->qp, mw, info));
	EXPECT_EQ(ibv_inc_rkey(old), mw->rkey);
	wc = expect_wc(_metadata, e->scq, 50, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_BIND_MW, wc.opcode);
}

/* Invalidate by the window's own means: an empty bind, or a WR. */
static void unbind(struct __test_metadata *_metadata, struct end *e, struct ibv_mw *mw)
{
	struct op op = {
		.opcode = IBV_WR_LOCAL_INV, .flags = IBV_SEND_SIGNALED, .imm = mw->rkey,
	};
	struct ibv_wc wc;

	if (mw->type == IBV_MW_TYPE_1) {
		bind_ok(_metadata, e, mw, (struct ibv_mw_bind_info) {});
		return;
	}
	ASSERT_EQ(0, post_op_sges(e->qp, 51, &op, NULL, 0));
	wc = expect_wc(_metadata, e->scq, 51, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_LOCAL_INV, wc.opcode);
}

/* The first end's operation at @raddr completes with @status. */
static void access_is(struct __test_metadata *_metadata, struct end *e, enum ibv_wr_opcode opcode,
		      uint64_t raddr, uint32_t rkey, uint32_t len, enum ibv_wc_status status)
{
	struct op op = {
		.opcode = opcode, .len = len, .raddr = raddr, .rkey = rkey,
		.flags = IBV_SEND_SIGNALED,
	};

	ASSERT_EQ(0, post_op(e, 1, &op));
	expect_wc(_metadata, e->scq, 1, status);
}

static void refused(struct __test_metadata *_metadata, struct pair *p, enum ibv_wr_opcode opcode,
		    uint64_t raddr, uint32_t rkey, uint32_t len)
{
	access_is(_metadata, &p->end[0], opcode, raddr, rkey, len, IBV_WC_REM_ACCESS_ERR);
	recover(_metadata, p);
}

TEST_F(mw, a_window_opens_a_part_of_a_region)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;
	struct ibv_mw *mw = self->mw[0];

	bind_ok(_metadata, self->b, mw, window(self->mr, self->b, REMOTE));
	fill(self->a->buf, LEN, 1);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, mw->rkey, LEN, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + OFF, LEN));
	memset(self->a->buf, 0, LEN);
	access_is(_metadata, self->a, IBV_WR_RDMA_READ, addr, mw->rkey, LEN, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + OFF, LEN));
	access_is(_metadata, self->a, IBV_WR_ATOMIC_FETCH_AND_ADD, addr, mw->rkey, 8,
		  IBV_WC_SUCCESS);

	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr - 1, mw->rkey, 8);
	refused(_metadata, &self->p, IBV_WR_RDMA_READ, addr + LEN - 7, mw->rkey, 8);
	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, self->mr->rkey, 8);
}

TEST_F(mw, a_window_gives_the_rights_that_it_was_bound_with)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;

	bind_ok(_metadata, self->b, self->mw[0],
		window(self->mr, self->b, IBV_ACCESS_REMOTE_READ));
	bind_ok(_metadata, self->b, self->mw[1],
		window(self->mr, self->b, IBV_ACCESS_REMOTE_WRITE));
	access_is(_metadata, self->a, IBV_WR_RDMA_READ, addr, self->mw[0]->rkey, 8,
		  IBV_WC_SUCCESS);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, self->mw[1]->rkey, 8,
		  IBV_WC_SUCCESS);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, self->mw[0]->rkey, 8,
		  IBV_WC_REM_ACCESS_ERR);
}

TEST_F(mw, a_zero_based_window)
{
	struct ibv_mw *mw = self->mw[0];

	bind_ok(_metadata, self->b, mw, window(self->mr, self->b, REMOTE | IBV_ACCESS_ZERO_BASED));
	fill(self->a->buf, LEN, 1);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, 0, mw->rkey, LEN, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + OFF, LEN));
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, LEN, mw->rkey, 1, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(mw, an_unbound_window_opens_nothing)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;
	struct ibv_mw *mw = self->mw[0];
	uint32_t bound;

	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8);
	bind_ok(_metadata, self->b, mw, window(self->mr, self->b, REMOTE));
	bound = mw->rkey;
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, bound, 8, IBV_WC_SUCCESS);
	unbind(_metadata, self->b, mw);
	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, bound, 8);
	if (mw->rkey != bound)
		refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8);

	/* And can be bound again. */
	bind_ok(_metadata, self->b, mw, window(self->mr, self->b, REMOTE));
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8, IBV_WC_SUCCESS);
}

TEST_F(mw, a_bind_takes_its_turn_in_the_queue)
{
	struct ibv_mw *mw = self->mw[0];
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_mw_bind_info info = window(self->mr, self->b, REMOTE);

	/* The peer learns the key from a message behind the bind, and uses it. */
	ASSERT_EQ(0, post_recv(self->a, 2, 0, 4));
	*(uint32_t *)(self->b->buf + 100) = rkey;
	ASSERT_EQ(0, bind_any(self->b->qp, mw, info));
	ASSERT_EQ(0, post_send(self->b, 3, 100, 4, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->rcq, 2, IBV_WC_SUCCESS);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, info.addr, *(uint32_t *)self->a->buf, 8,
		  IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->scq, 50, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->scq, 3, IBV_WC_SUCCESS);
}

TEST_F(mw, a_region_needs_the_right_to_be_bound_to)
{
	struct ibv_mr *mr = ibv_reg_mr(self->b->pd, self->b->buf, self->b->len,
				       IBV_ACCESS_LOCAL_WRITE);

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, bind_any(self->b->qp, self->mw[0], window(mr, self->b, REMOTE)));
	expect_wc(_metadata, self->b->scq, 50, IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_TRUE(goes_to_error(self->b->qp));
}

TEST_F(mw, a_window_is_no_larger_than_its_region)
{
	struct ibv_mw_bind_info info = window(self->mr, self->b, REMOTE);

	info.length = self->b->len - OFF + 1;
	ASSERT_EQ(0, bind_any(self->b->qp, self->mw[0], info));
	expect_wc(_metadata, self->b->scq, 50, IBV_WC_MW_BIND_ERR);
	EXPECT_TRUE(goes_to_error(self->b->qp));
}

TEST_F(mw, a_bound_region_stays_until_its_windows_are_unbound)
{
	bind_ok(_metadata, self->b, self->mw[0], window(self->mr, self->b, REMOTE));
	bind_ok(_metadata, self->b, self->mw[1], window(self->mr, self->b, REMOTE));
	EXPECT_EQ(EBUSY, ibv_dereg_mr(self->mr));
	errno = 0;
	EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
		  ibv_rereg_mr(self->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EBUSY, errno);
	/* One by its own means, the other by its end. */
	unbind(_metadata, self->b, self->mw[0]);
	EXPECT_EQ(EBUSY, ibv_dereg_mr(self->mr));
	ASSERT_EQ(0, ibv_dealloc_mw(self->mw[1]));
	self->mw[1] = NULL;
	EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
}

TEST_F(mw, a_window_that_is_gone_opens_nothing)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;
	uint32_t rkey;

	bind_ok(_metadata, self->b, self->mw[0], window(self->mr, self->b, REMOTE));
	rkey = self->mw[0]->rkey;
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, rkey, 8, IBV_WC_SUCCESS);
	ASSERT_EQ(0, ibv_dealloc_mw(self->mw[0]));
	self->mw[0] = NULL;
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, rkey, 8, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(mw, a_window_keeps_its_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->b->ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, variant->type);

	ASSERT_NE(NULL, mw);
	EXPECT_EQ(variant->type, mw->type);
	EXPECT_EQ(pd, mw->pd);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_dealloc_mw(mw));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(mw, a_window_of_another_pd_is_not_bound)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->b->ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, variant->type);

	ASSERT_NE(NULL, mw);
	if (variant->type == IBV_MW_TYPE_1) {
		EXPECT_EQ(EPERM, bind_any(self->b->qp, mw, window(self->mr, self->b, REMOTE)));
	} else {
		ASSERT_EQ(0, bind_any(self->b->qp, mw, window(self->mr, self->b, REMOTE)));
		expect_wc(_metadata, self->b->scq, 50, IBV_WC_MW_BIND_ERR);
	}
	EXPECT_EQ(0, ibv_dealloc_mw(mw));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* Type 1: by ibv_bind_mw(), which chooses the key; type 2: by a work request. */
TEST_F(mw, a_window_is_bound_by_the_call_of_its_type_alone)
{
	struct ibv_mw_bind_info info = window(self->mr, self->b, REMOTE);
	struct ibv_mw_bind bind = { .wr_id = 50, .bind_info = info };
	uint32_t rkey = self->mw[0]->rkey;

	EXPECT_EQ(EINVAL, variant->type == IBV_MW_TYPE_1 ?
			  post_bind(self->b->qp, self->mw[0], info, ibv_inc_rkey(rkey)) :
			  ibv_bind_mw(self->b->qp, self->mw[0], &bind));
	EXPECT_EQ(rkey, self->mw[0]->rkey);
	EXPECT_TRUE(cq_empty(self->b->scq));
	bind_ok(_metadata, self->b, self->mw[0], info);
}

TEST_F(mw, what_no_bind_can_be_is_einval_and_posts_nothing)
{
	struct ibv_mw_bind_info info = window(self->mr, self->b, REMOTE);
	struct ibv_mw_bind bind = { .wr_id = 50, .bind_info = info };
	uint32_t rkey = self->mw[0]->rkey;

	bind.send_flags = IBV_SEND_INLINE;
	EXPECT_EQ(EINVAL, ibv_bind_mw(self->b->qp, self->mw[0], &bind));
	info.mr = NULL;
	EXPECT_EQ(EINVAL, bind_any(self->b->qp, self->mw[0], info));
	EXPECT_EQ(rkey, self->mw[0]->rkey);
	EXPECT_TRUE(cq_empty(self->b->scq));
	exchange(_metadata, self->b, self->a, 100, 1);
}

TEST(a_window_has_a_type_that_exists)
{
	struct ibv_context *ctx = open_vhca(_metadata, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr attr;

	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_mw(pd, 3));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_alloc_mw(pd, 0));
	ASSERT_EQ(0, ibv_query_device(ctx, &attr));
	EXPECT_LT(0, attr.max_mw);
	EXPECT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	EXPECT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(ctx));
}

/*
 * Type 2 alone
 */
TEST_F(mw, a_message_invalidates_the_peers_window)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;
	struct ibv_mw *mw = self->mw[0];
	struct op op = {
		.opcode = IBV_WR_SEND_WITH_INV, .len = 100, .flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (variant->type == IBV_MW_TYPE_1)
		SKIP(return, "only type 2");
	bind_ok(_metadata, self->b, mw, window(self->mr, self->b, REMOTE));
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8, IBV_WC_SUCCESS);
	op.imm = mw->rkey;
	fill(self->a->buf, 100, 1);
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 100));
	ASSERT_EQ(0, post_op(self->a, 3, &op));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
	EXPECT_FALSE(wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(mw->rkey, wc.invalidated_rkey);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf, 100));
	EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8,
		  IBV_WC_REM_ACCESS_ERR);
}

TEST_F(mw, a_bound_window_of_type_2_is_not_bound_once_more)
{
	if (variant->type == IBV_MW_TYPE_1)
		SKIP(return, "only type 2");
	bind_ok(_metadata, self->b, self->mw[0], window(self->mr, self->b, REMOTE));
	ASSERT_EQ(0, bind_any(self->b->qp, self->mw[0], window(self->mr, self->b, REMOTE)));
	expect_wc(_metadata, self->b->scq, 50, IBV_WC_MW_BIND_ERR);
}

/*
 * Type 1 alone
 */
TEST_F(mw, a_window_of_type_1_moves_and_its_old_key_is_dead)
{
	uint64_t addr = (uintptr_t)self->b->buf + OFF;
	struct ibv_mw *mw = self->mw[0];
	struct ibv_mw_bind_info info = window(self->mr, self->b, REMOTE);
	uint32_t old;

	if (variant->type == IBV_MW_TYPE_2)
		SKIP(return, "only type 1");
	bind_ok(_metadata, self->b, mw, info);
	old = mw->rkey;
	info.addr += 2 * LEN;
	bind_ok(_metadata, self->b, mw, info);
	access_is(_metadata, self->a, IBV_WR_RDMA_WRITE, info.addr, mw->rkey, 8, IBV_WC_SUCCESS);
	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, mw->rkey, 8);
	refused(_metadata, &self->p, IBV_WR_RDMA_WRITE, addr, old, 8);
	EXPECT_EQ(EBUSY, ibv_dereg_mr(self->mr));
}

TEST_HARNESS_MAIN
