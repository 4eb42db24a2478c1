// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_dm_verbs.c: device memory: copies to and from it, regions of it, and
 * operations that have it at either end.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "rc.h"

#define LEN	20000u
#define ACCESS	(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_dm *alloc_dm(struct ibv_context *ctx, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(ctx, &attr);
}

static uint64_t max_dm_size(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr = {};

	return ibv_query_device_ex(ctx, NULL, &attr) ? 0 : attr.max_dm_size;
}

FIXTURE(ctx)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

FIXTURE_SETUP(ctx)
{
	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
}

FIXTURE_TEARDOWN(ctx)
{
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

TEST_F(ctx, device_memory_starts_as_zeroes_and_keeps_what_is_copied)
{
	struct ibv_dm *dm = alloc_dm(self->ctx, LEN);
	uint8_t *p = malloc(LEN), *q = malloc(LEN);

	ASSERT_NE(NULL, dm);
	EXPECT_EQ(self->ctx, dm->context);
	memset(q, 0xee, LEN);
	ASSERT_EQ(0, ibv_memcpy_from_dm(q, dm, 0, LEN));
	EXPECT_TRUE(all_are(q, 0, LEN));
	fill(p, LEN, 1);
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 0, p, LEN));
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 4096, p, 400));
	memcpy(p + 4096, p, 400);
	ASSERT_EQ(0, ibv_memcpy_from_dm(q, dm, 0, LEN));
	EXPECT_EQ(0, memcmp(p, q, LEN));
	EXPECT_EQ(0, ibv_free_dm(dm));

	/* The next owner does not see it. */
	dm = alloc_dm(self->ctx, LEN);
	ASSERT_NE(NULL, dm);
	ASSERT_EQ(0, ibv_memcpy_from_dm(q, dm, 0, LEN));
	EXPECT_TRUE(all_are(q, 0, LEN));
	EXPECT_EQ(0, ibv_free_dm(dm));
	free(p);
	free(q);
}

TEST_F(ctx, copies_are_of_words_and_inside)
{
	struct ibv_dm *dm = alloc_dm(self->ctx, 100);
	static const struct {
		uint64_t off;
		size_t len;
	} bad[] = {
		{ 3, 4 }, { 4, 3 }, { 104, 4 }, { 0, 104 }, { 100, 4 }, { UINT64_MAX - 3, 8 },
		{ 4, SIZE_MAX - 3 },
	};
	char p[128];
	unsigned int i;

	ASSERT_NE(NULL, dm);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(EINVAL, ibv_memcpy_to_dm(dm, bad[i].off, p, bad[i].len));
		EXPECT_EQ(EINVAL, ibv_memcpy_from_dm(p, dm, bad[i].off, bad[i].len));
	}
	EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 96, p, 4));
	EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 100, p, 0));
	EXPECT_EQ(0, ibv_free_dm(dm));
}

TEST_F(ctx, there_is_as_much_as_the_device_says)
{
	uint64_t max = max_dm_size(self->ctx);
	struct ibv_dm *dm[3] = {};
	unsigned int i;

	ASSERT_LT(0, max);
	errno = 0;
	EXPECT_EQ(NULL, alloc_dm(self->ctx, max + 1));
	EXPECT_TRUE(errno == ENOSPC || errno == ENOMEM || errno == EINVAL);
	dm[0] = alloc_dm(self->ctx, max);
	ASSERT_NE(NULL, dm[0]);
	errno = 0;
	EXPECT_EQ(NULL, alloc_dm(self->ctx, 1));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, ibv_free_dm(dm[0]));
	for (i = 0; i < 3; i++) {
		dm[i] = alloc_dm(self->ctx, 100 + i * 4000);
		ASSERT_NE(NULL, dm[i]);
	}
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, ibv_free_dm(dm[i]));
}

TEST_F(ctx, attributes_that_do_not_exist_are_refused)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096, .comp_mask = 1 };

	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_dm(self->ctx, &attr));
	EXPECT_EQ(EINVAL, errno);
	attr = (struct ibv_alloc_dm_attr) { .length = 0 };
	EXPECT_EQ(NULL, ibv_alloc_dm(self->ctx, &attr));
	EXPECT_EQ(EINVAL, errno);
	attr = (struct ibv_alloc_dm_attr) { .length = 4096, .log_align_req = 63 };
	EXPECT_EQ(NULL, ibv_alloc_dm(self->ctx, &attr));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ctx, a_region_is_zero_based_and_inside_and_keeps_the_memory)
{
	struct ibv_dm *dm = alloc_dm(self->ctx, 1000);
	struct ibv_mr *mr;

	ASSERT_NE(NULL, dm);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dm_mr(self->pd, dm, 0, 1000, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dm_mr(self->pd, dm, 4, 1000, ACCESS));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dm_mr(self->pd, dm, UINT64_MAX - 8, 16, ACCESS));
	EXPECT_EQ(EINVAL, errno);
	mr = ibv_reg_dm_mr(self->pd, dm, 500, 500, ACCESS);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(500, mr->length);
	EXPECT_EQ(EBUSY, ibv_free_dm(dm));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_free_dm(dm));
}

/* Device memory and a region of all of it, at an end. */
static struct ibv_dm *end_dm(struct __test_metadata *_metadata, struct end *e, size_t length,
			     struct ibv_mr **mr)
{
	struct ibv_dm *dm = alloc_dm(e->ctx, length);

	ASSERT_NE(NULL, dm);
	*mr = ibv_reg_dm_mr(e->pd, dm, 0, length, ACCESS);
	ASSERT_NE(NULL, *mr);
	return dm;
}

TEST_F(rc, operations_reach_device_memory_at_the_peer)
{
	uint8_t *copy = malloc(LEN);
	struct ibv_mr *mr;
	struct ibv_dm *dm = end_dm(_metadata, self->b, LEN, &mr);
	struct op op = {
		.opcode = IBV_WR_RDMA_WRITE, .len = LEN - 8, .raddr = 8, .rkey = mr->rkey,
		.flags = IBV_SEND_SIGNALED,
	};
	uint64_t word;

	fill(self->a->buf, LEN, 1);
	ASSERT_EQ(0, post_op(self->a, 1, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_EQ(0, ibv_memcpy_from_dm(copy, dm, 0, LEN));
	EXPECT_EQ(0, memcmp(copy + 8, self->a->buf, LEN - 8));

	op.opcode = IBV_WR_RDMA_READ;
	memset(self->a->buf, 0, LEN);
	ASSERT_EQ(0, post_op(self->a, 2, &op));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(copy + 8, self->a->buf, LEN - 8));

	op = (struct op) {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .raddr = 16, .rkey = mr->rkey,
		.compare_add = 5, .flags = IBV_SEND_SIGNALED,
	};
	ASSERT_EQ(0, post_op(self->a, 3, &op));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(copy + 16, self->a->buf, 8));
	ASSERT_EQ(0, ibv_memcpy_from_dm(&word, dm, 16, 8));
	EXPECT_EQ(*(uint64_t *)self->a->buf + 5, word);

	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_free_dm(dm));
	free(copy);
}

TEST_F(rc, messages_go_from_device_memory_to_device_memory)
{
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	struct ibv_mr *mr[2];
	struct ibv_dm *dm[2];
	struct ibv_sge sge[2];

	dm[0] = end_dm(_metadata, self->a, LEN, &mr[0]);
	dm[1] = end_dm(_metadata, self->b, LEN, &mr[1]);
	sge[0] = (struct ibv_sge) { 0, LEN, mr[0]->lkey };
	sge[1] = (struct ibv_sge) { 0, LEN, mr[1]->lkey };
	fill(p, LEN, 1);
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm[0], 0, p, LEN));
	ASSERT_EQ(0, post_recv_sges(self->b->qp, 2, &sge[1], 1));
	ASSERT_EQ(0, post_send_sges(self->a->qp, 1, &sge[0], 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(LEN, expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS).byte_len);
	ASSERT_EQ(0, ibv_memcpy_from_dm(q, dm[1], 0, LEN));
	EXPECT_EQ(0, memcmp(p, q, LEN));
	EXPECT_EQ(0, ibv_dereg_mr(mr[0]));
	EXPECT_EQ(0, ibv_dereg_mr(mr[1]));
	EXPECT_EQ(0, ibv_free_dm(dm[0]));
	EXPECT_EQ(0, ibv_free_dm(dm[1]));
	free(p);
	free(q);
}

TEST_F(rc, a_region_of_device_memory_ends_where_it_was_told)
{
	struct ibv_dm *dm = alloc_dm(self->b->ctx, LEN);
	struct op op = {
		.opcode = IBV_WR_RDMA_WRITE, .len = 8, .flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mr *mr;
	uint64_t word;

	ASSERT_NE(NULL, dm);
	mr = ibv_reg_dm_mr(self->b->pd, dm, 4000, 200, ACCESS);
	ASSERT_NE(NULL, mr);
	op.rkey = mr->rkey;
	op.raddr = 192;
	fill(self->a->buf, 8, 1);
	ASSERT_EQ(0, post_op(self->a, 1, &op));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_EQ(0, ibv_memcpy_from_dm(&word, dm, 4192, 8));
	EXPECT_EQ(0, memcmp(&word, self->a->buf, 8));
	op.raddr = 193;
	ASSERT_EQ(0, post_op(self->a, 2, &op));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	recover(_metadata, &self->p);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_free_dm(dm));
}

TEST_HARNESS_MAIN
