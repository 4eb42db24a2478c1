// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mr_verbs.c: memory regions that are registered anew, zero based, elsewhere
 * than at their address, or of nothing at all.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "ops.h"
#include "rc.h"

#define LEN	8192
#define REMOTE	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The end writes @len bytes from the start of its buffer to where @raddr and @rkey say. */
static struct ibv_wc write_to(struct __test_metadata *_metadata, struct end *e, uint64_t raddr,
			      uint32_t rkey, uint32_t len)
{
	struct op op = {
		.opcode = IBV_WR_RDMA_WRITE, .len = len, .raddr = raddr, .rkey = rkey,
		.flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	EXPECT_EQ(0, post_op(e, 1, &op));
	EXPECT_TRUE(poll_wc(e->scq, &wc));
	return wc;
}

/* It arrives at @where. */
static void expect_write(struct __test_metadata *_metadata, struct end *e, uint64_t raddr,
			 uint32_t rkey, const uint8_t *where, uint32_t len)
{
	static uint64_t seed;

	fill(e->buf, len, ++seed);
	ASSERT_EQ(IBV_WC_SUCCESS, write_to(_metadata, e, raddr, rkey, len).status);
	ASSERT_EQ(0, memcmp(e->buf, where, len));
}

/* It is refused; the pair is connected again. */
static void expect_refusal(struct __test_metadata *_metadata, struct pair *p, struct end *e,
			   uint64_t raddr, uint32_t rkey)
{
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(_metadata, e, raddr, rkey, 8).status);
	recover(_metadata, p);
}

static uint8_t *pages(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/*
 * Registration anew
 */
TEST_F(rc, a_region_moves_and_keeps_its_keys)
{
	struct ibv_mr *mr = self->b->mr;
	uint32_t lkey = mr->lkey, rkey = mr->rkey;
	uint8_t *p = pages(LEN);

	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p, LEN, 0));
	EXPECT_EQ(p, mr->addr);
	EXPECT_EQ(LEN, mr->length);
	EXPECT_EQ(mr->lkey, mr->handle);
	EXPECT_EQ(lkey, mr->lkey);
	EXPECT_EQ(rkey, mr->rkey);
	expect_write(_metadata, self->a, (uintptr_t)p + 100, rkey, p + 100, 3000);
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR,
		  write_to(_metadata, self->a, (uintptr_t)self->b->buf, rkey, 8).status);

	/* Back, for the end to close. */
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, self->b->buf,
				  self->b->len, 0));
	recover(_metadata, &self->p);
	munmap(p, LEN);
}

TEST_F(rc, a_region_loses_and_gets_rights)
{
	struct ibv_mr *mr = self->b->mr;
	uint64_t addr = (uintptr_t)self->b->buf;

	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(self->b->buf, mr->addr);
	expect_refusal(_metadata, &self->p, self->a, addr, mr->rkey);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REMOTE));
	expect_write(_metadata, self->a, addr, mr->rkey, self->b->buf, 3000);
}

TEST_F(rc, a_region_goes_to_another_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->b->ctx);
	struct ibv_mr *mr = self->b->mr;
	uint64_t addr = (uintptr_t)self->b->buf;

	ASSERT_NE(NULL, pd);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	EXPECT_EQ(pd, mr->pd);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR,
		  write_to(_metadata, self->a, addr, mr->rkey, 8).status);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, self->b->pd, NULL, 0, 0));
	EXPECT_EQ(self->b->pd, mr->pd);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	recover(_metadata, &self->p);
	expect_write(_metadata, self->a, addr, mr->rkey, self->b->buf, 3000);
}

TEST_F(rc, a_region_changes_in_all_respects_at_once)
{
	uint8_t *p = pages(LEN), *q = pages(LEN);
	struct ibv_pd *pd = ibv_alloc_pd(self->b->ctx);
	struct ibv_mr *mr;

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, p, LEN, 0);
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_FLAGS_SUPPORTED, self->b->pd, q, LEN / 2,
				  REMOTE));
	EXPECT_EQ(self->b->pd, mr->pd);
	EXPECT_EQ(q, mr->addr);
	EXPECT_EQ(LEN / 2, mr->length);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	expect_write(_metadata, self->a, (uintptr_t)q, mr->rkey, q, LEN / 2);
	expect_refusal(_metadata, &self->p, self->a, (uintptr_t)q + LEN / 2, mr->rkey);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, LEN);
	munmap(q, LEN);
}

TEST_F(rc, what_rereg_does_not_take_leaves_the_region_as_it_was)
{
	const struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access;
	} bad[] = {
		{ .flags = 0 },
		{ .flags = 1 << 3 },
		{ .flags = IBV_REREG_MR_CHANGE_TRANSLATION, .length = 1 },
		{ .flags = IBV_REREG_MR_CHANGE_TRANSLATION, .addr = self->b->buf },
		{ .flags = IBV_REREG_MR_CHANGE_PD },
		{ .flags = IBV_REREG_MR_CHANGE_PD, .pd = self->a->pd },
		{ .flags = IBV_REREG_MR_CHANGE_PD, .pd = self->b->pd, .access = REMOTE },
		{ .flags = IBV_REREG_MR_CHANGE_ACCESS, .access = 1 << 19 },
	};
	struct ibv_mr *mr = self->b->mr;
	uint32_t rkey = mr->rkey;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
			  ibv_rereg_mr(mr, bad[i].flags, bad[i].pd, bad[i].addr, bad[i].length,
				       bad[i].access)) {
			TH_LOG("case %u", i);
		}
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
						       0, IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(rkey, mr->rkey);
	expect_write(_metadata, self->a, (uintptr_t)self->b->buf, rkey, self->b->buf, 100);
}

TEST_F(rc, what_the_kernel_refuses_to_rereg_is_a_command_error)
{
	struct ibv_mr *mr = self->b->mr;
	uint8_t *p = pages(LEN);

	munmap(p, LEN);
	errno = 0;
	EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
		  ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p, LEN, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(self->b->buf, mr->addr);
	EXPECT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
						     0, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(EINVAL, errno);
	/* The caller is told to use it no more; it can at least be deregistered. */
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	self->b->mr = NULL;
}

/*
 * Addresses
 */
TEST_F(rc, a_zero_based_region_counts_from_its_first_byte)
{
	uint8_t *p = pages(LEN);
	struct ibv_mr *mr;
	struct ibv_sge sge;

	mr = ibv_reg_mr(self->b->pd, p + 123, 5000, REMOTE | IBV_ACCESS_ZERO_BASED);
	ASSERT_NE(NULL, mr);
	expect_write(_metadata, self->a, 0, mr->rkey, p + 123, 5000);
	expect_write(_metadata, self->a, 4096, mr->rkey, p + 123 + 4096, 904);

	/* And locally. */
	sge = (struct ibv_sge) { 10, 300, mr->lkey };
	fill(p, LEN, 9);
	ASSERT_EQ(0, post_recv(self->a, 2, 0, 300));
	ASSERT_EQ(0, post_send_sges(self->b->qp, 3, &sge, 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->b->scq, 3, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(p + 133, self->a->buf, 300));

	expect_refusal(_metadata, &self->p, self->a, 4993, mr->rkey);
	expect_refusal(_metadata, &self->p, self->a, (uintptr_t)p + 123, mr->rkey);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, LEN);
}

TEST_F(rc, a_zero_based_region_stays_so_where_it_moves)
{
	uint8_t *p = pages(LEN), *q = pages(LEN);
	struct ibv_mr *mr;

	mr = ibv_reg_mr(self->b->pd, p, LEN, REMOTE | IBV_ACCESS_ZERO_BASED);
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, q + 77, 500, 0));
	expect_write(_metadata, self->a, 0, mr->rkey, q + 77, 500);
	ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION |
				  IBV_REREG_MR_CHANGE_ACCESS, NULL, p, LEN, REMOTE));
	expect_write(_metadata, self->a, (uintptr_t)p, mr->rkey, p, LEN);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, LEN);
	munmap(q, LEN);
}

TEST_F(rc, a_region_has_the_address_that_it_was_given)
{
	static const uint64_t iova[] = { 0, 0x1000, 0x123456789000ull };
	uint8_t *p = pages(LEN);
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iova); i++) {
		mr = ibv_reg_mr_iova(self->b->pd, p, LEN, iova[i], REMOTE);
		ASSERT_NE(NULL, mr);
		EXPECT_EQ(p, mr->addr);
		expect_write(_metadata, self->a, iova[i], mr->rkey, p, LEN);
		expect_refusal(_metadata, &self->p, self->a, iova[i] + LEN, mr->rkey);
		EXPECT_EQ(0, ibv_dereg_mr(mr));
	}
	munmap(p, LEN);
}

/*
 * The region of nothing
 */
TEST_F(rc, a_null_region_is_zeroes_and_loses_what_is_written)
{
	struct ibv_mr *null = ibv_alloc_null_mr(self->a->pd);
	struct ibv_sge sge[3];

	ASSERT_NE(NULL, null);
	EXPECT_EQ(SIZE_MAX, null->length);
	/* Between pieces of a real one, wherever it is said to be. */
	sge[0] = (struct ibv_sge) { (uintptr_t)self->a->buf, 100, self->a->mr->lkey };
	sge[1] = (struct ibv_sge) { 0x123456, 5000, null->lkey };
	sge[2] = (struct ibv_sge) { (uintptr_t)self->a->buf + 100, 100, self->a->mr->lkey };
	fill(self->a->buf, 200, 1);
	memset(self->b->buf, 0xee, 5200);
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 5200));
	ASSERT_EQ(0, post_send_sges(self->a->qp, 1, sge, 3, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(5200, expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS).byte_len);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf, 100));
	EXPECT_TRUE(all_are(self->b->buf + 100, 0, 5000));
	EXPECT_EQ(0, memcmp(self->a->buf + 100, self->b->buf + 5100, 100));

	fill(self->b->buf, 5200, 2);
	ASSERT_EQ(0, post_recv_sges(self->a->qp, 3, sge, 3));
	ASSERT_EQ(0, post_send(self->b, 4, 0, 5200, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->b->scq, 4, IBV_WC_SUCCESS);
	EXPECT_EQ(5200, expect_wc(_metadata, self->a->rcq, 3, IBV_WC_SUCCESS).byte_len);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf, 100));
	EXPECT_EQ(0, memcmp(self->a->buf + 100, self->b->buf + 5100, 100));
	EXPECT_EQ(0, ibv_dereg_mr(null));
}

TEST_F(rc, a_null_region_is_for_local_use)
{
	struct ibv_mr *null = ibv_alloc_null_mr(self->b->pd);

	ASSERT_NE(NULL, null);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->b->pd));
	EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
		  ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REMOTE));
	expect_refusal(_metadata, &self->p, self->a, 0x1000, null->lkey);
	EXPECT_EQ(0, ibv_dereg_mr(null));
}

/*
 * What is not there
 */
TEST_F(rc, no_advice_is_taken)
{
	struct ibv_sge sge = { (uintptr_t)self->a->buf, 100, self->a->mr->lkey };

	EXPECT_EQ(EOPNOTSUPP, ibv_advise_mr(self->a->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge,
					    1));
}

TEST_F(rc, what_is_no_dma_buf_is_refused)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->a->pd, 0, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->a->pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_TRUE(errno == EBADF || errno == EOPNOTSUPP);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->a->pd, 0, 4096, 0, fd, IBV_ACCESS_ZERO_BASED));
	EXPECT_EQ(EOPNOTSUPP, errno);
	close(fd);
}

TEST_HARNESS_MAIN
