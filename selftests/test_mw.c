// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows: binding, what a window opens, and invalidating it by a work
 * request of its own or by the peer's.
 */
#include <pthread.h>

#include "mem.h"

#include "harness.h"

#define IOVA	0x4000001
#define LENGTH	8000

/* A region of @addr by an odd address, and a window that is not bound. */
FIXTURE(mw) {
	struct mem_bed bed;
	uint8_t *addr;
	struct vhca_reg_mr mr;
	uint32_t rkey;
	uint32_t key;
};

FIXTURE_VARIANT(mw) {
	uint32_t type;
};

FIXTURE_VARIANT_ADD(mw, type_1) {
	.type = 1,
};

FIXTURE_VARIANT_ADD(mw, type_2) {
	.type = 2,
};

FIXTURE_SETUP(mw)
{
	ASSERT_EQ(0, mem_bed(&self->bed));
	self->addr = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->addr);
	self->addr += 9;
	self->mr = (struct vhca_reg_mr) {
		.addr = (uintptr_t)self->addr, .length = LENGTH, .iova = IOVA,
		.access = VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_MW_BIND,
	};
	ASSERT_EQ(0, mem_reg(&self->bed, &self->mr));
	ASSERT_EQ(0, mem_alloc_mw(&self->bed, variant->type, self->bed.ctx.pd, &self->rkey));
	self->key = mem_next_key(self->rkey);
	memset(self->bed.mr.addr, 0x11, 8192);
}

FIXTURE_TEARDOWN(mw)
{
	raw_close(&self->bed.ctx);
}

/* Bind the window, as it is named now, to @length bytes from @at of the region on. */
static int bind_at(struct mem_bed *bed, const struct vhca_reg_mr *mr, uint32_t rkey,
		   uint32_t new_rkey, uint64_t at, uint64_t length, uint32_t access)
{
	struct mem_bind b = {
		.rkey = rkey, .new_rkey = new_rkey, .lkey = mr->lkey, .access = access,
		.addr = mr->iova + at, .length = length,
	};

	return mem_bind(bed, &bed->p, &b);
}

static bool is(const uint8_t *p, uint8_t c, size_t len)
{
	size_t i;

	for (i = 0; i < len && p[i] == c; i++)
		;
	return i == len;
}

/* Does a key open @addr of the region for a write of its peer? */
static int opens(struct mem_bed *bed, uint32_t rkey, uint64_t addr)
{
	return mem_write(bed, 1, rkey, addr);
}

TEST_F(mw, a_window_opens_a_part_of_a_region)
{
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 3000, 2000,
			     MEM_REMOTE));
	ASSERT_EQ(0, mem_write(&self->bed, 2000, self->key, IOVA + 3000));
	EXPECT_TRUE(is(self->addr, 0, 3000));
	EXPECT_TRUE(is(self->addr + 3000, 0x11, 2000));
	EXPECT_TRUE(is(self->addr + 5000, 0, 3000));
	self->addr[4000] = 0x22;
	ASSERT_EQ(0, mem_read(&self->bed, 2000, self->key, IOVA + 3000));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192, 0x11, 1000));
	EXPECT_EQ(0x22, self->bed.mr.addr[8192 + 1000]);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA + 2999));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA + 5000));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_read(&self->bed, 2, self->key, IOVA + 4999));
	/* The region itself has no remote rights, and the window has one key only. */
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->mr.rkey, IOVA + 3000));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->rkey, IOVA + 3000));
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA + 3000));
}

TEST_F(mw, a_window_that_is_not_bound_opens_nothing)
{
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->rkey, 0));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->rkey, IOVA));
}

TEST_F(mw, a_window_has_the_rights_that_it_was_bound_with)
{
	uint64_t word = (IOVA + 7) & ~7ull;
	uint32_t key = self->key;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, key, 0, LENGTH,
			     VHCA_ACCESS_REMOTE_READ));
	EXPECT_EQ(0, mem_read(&self->bed, 8, key, IOVA));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_write(&self->bed, 8, key, IOVA));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_add(&self->bed, 0, 1, key, word));
	if (variant->type == 2)
		ASSERT_EQ(0, mem_local_inv(&self->bed, &self->bed.p, key));
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, key, mem_next_key(key), 0, LENGTH,
			     VHCA_ACCESS_REMOTE_WRITE));
	key = mem_next_key(key);
	EXPECT_EQ(0, mem_write(&self->bed, 8, key, IOVA));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_read(&self->bed, 8, key, IOVA));
}

TEST_F(mw, an_atomic_through_a_window)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->addr - 9, .length = 4096,
		.access = VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_MW_BIND,
	};
	uint64_t *word = (uint64_t *)(self->addr - 9 + 64);

	ASSERT_EQ(0, mem_reg(&self->bed, &r));
	ASSERT_EQ(0, bind_at(&self->bed, &r, self->rkey, self->key, 64, 8,
			     VHCA_ACCESS_REMOTE_ATOMIC));
	*word = 5;
	ASSERT_EQ(0, mem_add(&self->bed, 0, 3, self->key, 64));
	EXPECT_EQ(8, *word);
	EXPECT_EQ(5, *(uint64_t *)self->bed.mr.addr);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_add(&self->bed, 0, 3, self->key, 72));
}

/* An aligned address need not be aligned memory: neither a region's nor a window's. */
TEST_F(mw, an_atomic_on_a_word_that_is_not_aligned_is_refused)
{
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     VHCA_ACCESS_REMOTE_ATOMIC | VHCA_ACCESS_ZERO_BASED));
	EXPECT_EQ(VHCA_CQE_REM_INV_REQ_ERR, mem_add(&self->bed, 0, 1, self->key, 64));
	EXPECT_TRUE(is(self->addr, 0, LENGTH));
}

TEST_F(mw, zero_based_its_addresses_begin_at_zero)
{
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 3000, 2000,
			     MEM_REMOTE | VHCA_ACCESS_ZERO_BASED));
	ASSERT_EQ(0, mem_write(&self->bed, 2000, self->key, 0));
	EXPECT_TRUE(is(self->addr, 0, 3000));
	EXPECT_TRUE(is(self->addr + 3000, 0x11, 2000));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, 2000));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA + 3000));
}

/* Type 1: whoever has the PD. Type 2: the QP that bound it. */
TEST_F(mw, which_qps_a_window_is_open_to)
{
	struct raw_pair other;

	ASSERT_EQ(0, mem_pair(&self->bed, &other));
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
	EXPECT_EQ(variant->type == 1 ? 0 : VHCA_CQE_REM_ACCESS_ERR,
		  mem_rdma(&self->bed, &other, VHCA_OP_RDMA_WRITE, 0, 1, self->key, IOVA));
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
}

TEST_F(mw, a_key_is_good_for_remote_access_only)
{
	struct vhca_wqe_data sge;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	sge = mem_sge(self->key, IOVA, 8);
	raw_build_send(&self->bed.p.a, VHCA_WQE_SIGNALED, &sge, 1);
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, mem_run(&self->bed, &self->bed.p.a));
	EXPECT_EQ(VHCA_VERR_KEY_KIND, self->bed.wc.vendor_err);
}

TEST_F(mw, a_bind_that_is_not_allowed_fails_and_changes_nothing)
{
	struct vhca_reg_mr no_bind = self->mr, no_write = self->mr, other_pd = self->mr;
	struct mem_bind good = {
		.rkey = self->rkey, .new_rkey = self->key, .lkey = self->mr.lkey,
		.access = MEM_REMOTE, .addr = IOVA, .length = LENGTH,
	};
	uint32_t pd, foreign, null_key;
	struct vhca_reg_special_mr null;
	struct {
		struct mem_bind b;
		uint8_t verr;
	} bad[16];
	unsigned int i, n = 0;

	ASSERT_EQ(0, raw_alloc_pd(self->bed.ctx.fd, &pd));
	ASSERT_EQ(0, mem_alloc_mw(&self->bed, variant->type, pd, &foreign));
	no_bind.access = VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_REMOTE_WRITE;
	no_write.access = VHCA_ACCESS_MW_BIND;
	other_pd.pd = pd;
	ASSERT_EQ(0, mem_reg(&self->bed, &no_bind));
	ASSERT_EQ(0, mem_reg(&self->bed, &no_write));
	ASSERT_EQ(0, mem_reg(&self->bed, &other_pd));
	null = (struct vhca_reg_special_mr) { .pd = self->bed.ctx.pd };
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_NULL_MR, &null));
	null_key = null.lkey;

#define BAD(why, ...) do {						\
		bad[n].b = good;					\
		bad[n].verr = why;					\
		__VA_ARGS__;						\
		n++;							\
	} while (0)
	BAD(VHCA_VERR_KEY, bad[n].b.rkey = 0x7fffff00; bad[n].b.new_rkey = 0x7fffff01);
	BAD(VHCA_VERR_KEY_KIND, bad[n].b.rkey = self->mr.rkey;
	    bad[n].b.new_rkey = mem_next_key(self->mr.rkey));
	BAD(VHCA_VERR_KEY_PD, bad[n].b.rkey = foreign; bad[n].b.new_rkey = foreign);
	BAD(VHCA_VERR_KEY, bad[n].b.new_rkey = self->key ^ 0x100);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.access |= VHCA_ACCESS_LOCAL_WRITE);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.access |= VHCA_ACCESS_MW_BIND);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.access |= 1u << 31);
	BAD(VHCA_VERR_KEY, bad[n].b.lkey ^= 1);
	BAD(VHCA_VERR_KEY_KIND, bad[n].b.lkey = self->rkey);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.lkey = null_key);
	BAD(VHCA_VERR_KEY_PD, bad[n].b.lkey = other_pd.lkey);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.lkey = no_bind.lkey);
	BAD(VHCA_VERR_KEY_ACCESS, bad[n].b.lkey = no_write.lkey);
	BAD(VHCA_VERR_KEY_BOUNDS, bad[n].b.addr = IOVA + 1);
	BAD(VHCA_VERR_KEY_BOUNDS, bad[n].b.addr = IOVA - 1);
	BAD(VHCA_VERR_KEY_BOUNDS, bad[n].b.length = ~0ull);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(VHCA_CQE_MW_BIND_ERR, mem_bind(&self->bed, &self->bed.p, &bad[i].b)) {
			TH_LOG("number %u", i);
		}
		EXPECT_EQ(bad[i].verr, self->bed.wc.vendor_err) {
			TH_LOG("number %u", i);
		}
		EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR,
			  opens(&self->bed, bad[i].b.new_rkey, IOVA));
	}
	/* Reading needs no right to write. */
	good.lkey = no_write.lkey;
	good.access = VHCA_ACCESS_REMOTE_READ;
	EXPECT_EQ(0, mem_bind(&self->bed, &self->bed.p, &good));
}

TEST_F(mw, a_failed_bind_leaves_the_old_one)
{
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, 100, MEM_REMOTE));
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
		  bind_at(&self->bed, &self->mr, self->key, mem_next_key(self->key), 0,
			  LENGTH + 1, MEM_REMOTE));
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR,
		  opens(&self->bed, mem_next_key(self->key), IOVA));
}

TEST_F(mw, a_bind_with_sges_or_without_its_segment_is_malformed)
{
	struct vhca_wqe_data sge[3] = {};

	mem_build(&self->bed.p.b, VHCA_OP_BIND_MW, 0, sge, 3);
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, mem_run(&self->bed, &self->bed.p.b));
	EXPECT_EQ(VHCA_VERR_WQE_SEG, self->bed.wc.vendor_err);
	ASSERT_EQ(0, mem_renew(&self->bed, &self->bed.p));
	mem_build(&self->bed.p.b, VHCA_OP_BIND_MW, 0, sge, 1);
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, mem_run(&self->bed, &self->bed.p.b));
	ASSERT_EQ(0, mem_renew(&self->bed, &self->bed.p));
	mem_build(&self->bed.p.b, VHCA_OP_LOCAL_INV, self->rkey, sge, 1);
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, mem_run(&self->bed, &self->bed.p.b));
	EXPECT_EQ(VHCA_VERR_WQE_SEG, self->bed.wc.vendor_err);
}

/* Type 1 moves, and is unbound by length 0. */
TEST_F(mw, bound_again)
{
	uint32_t key = self->key, next = mem_next_key(self->key);
	int moved;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, key, 0, 100, MEM_REMOTE));
	moved = bind_at(&self->bed, &self->mr, key, next, 200, 100, MEM_REMOTE);
	if (variant->type == 2) {
		EXPECT_EQ(VHCA_CQE_MW_BIND_ERR, moved);
		EXPECT_EQ(VHCA_VERR_KEY_KIND, self->bed.wc.vendor_err);
		EXPECT_EQ(0, opens(&self->bed, key, IOVA));
		EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
			  bind_at(&self->bed, &self->mr, key, next, 0, 0, 0));
		return;
	}
	ASSERT_EQ(0, moved);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, key, IOVA));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, next, IOVA));
	EXPECT_EQ(0, opens(&self->bed, next, IOVA + 200));
	key = next;
	next = mem_next_key(key);
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, key, next, 0, 0, 0));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, key, IOVA + 200));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, next, IOVA + 200));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, self->mr.lkey));
}

TEST_F(mw, a_region_stays_while_a_window_is_bound_to_it)
{
	struct vhca_rereg_mr r = {
		.lkey = self->mr.lkey, .flags = VHCA_REREG_ACCESS, .access = 0,
	};
	int fd = self->bed.ctx.fd;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	EXPECT_EQ(-EBUSY, raw_free(fd, VHCA_IOC_DEREG_MR, self->mr.lkey));
	EXPECT_EQ(-EBUSY, raw_ioctl(fd, VHCA_IOC_REREG_MR, &r));
	/* Nothing has changed. */
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_FREE_MW, self->rkey));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA));
	ASSERT_EQ(0, raw_ioctl(fd, VHCA_IOC_REREG_MR, &r));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_DEREG_MR, r.lkey));
}

TEST_F(mw, a_window_is_freed_by_any_of_its_keys_and_holds_its_pd)
{
	int fd = self->bed.ctx.fd;
	uint32_t pd, rkey;

	ASSERT_EQ(0, raw_alloc_pd(fd, &pd));
	ASSERT_EQ(0, mem_alloc_mw(&self->bed, variant->type, pd, &rkey));
	EXPECT_EQ(-EBUSY, raw_free(fd, VHCA_IOC_FREE_PD, pd));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_DEREG_MR, rkey));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_MW, self->mr.lkey));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_FREE_MW, rkey ^ 0x5a));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_MW, rkey));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_FREE_PD, pd));
	EXPECT_EQ(-EINVAL, mem_alloc_mw(&self->bed, variant->type, pd, &rkey));
	EXPECT_EQ(-EINVAL, mem_alloc_mw(&self->bed, 0, self->bed.ctx.pd, &rkey));
	EXPECT_EQ(-EINVAL, mem_alloc_mw(&self->bed, 3, self->bed.ctx.pd, &rkey));
}

TEST_F(mw, local_invalidate)
{
	int ret;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	ret = mem_local_inv(&self->bed, &self->bed.p, self->key);
	if (variant->type == 1) {
		EXPECT_EQ(VHCA_CQE_MW_BIND_ERR, ret);
		EXPECT_EQ(VHCA_VERR_KEY_KIND, self->bed.wc.vendor_err);
		EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, self->mr.lkey));
	ASSERT_EQ(0, mem_reg(&self->bed, &self->mr));
	EXPECT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->rkey, 0, LENGTH,
			     MEM_REMOTE));
	EXPECT_EQ(0, opens(&self->bed, self->rkey, IOVA));
}

TEST_F(mw, what_cannot_be_invalidated)
{
	struct raw_pair other;

	/* Not bound; a region; nothing. */
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
		  mem_local_inv(&self->bed, &self->bed.p, self->rkey));
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
		  mem_local_inv(&self->bed, &self->bed.p, self->mr.rkey));
	EXPECT_EQ(VHCA_VERR_KEY_KIND, self->bed.wc.vendor_err);
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
		  mem_local_inv(&self->bed, &self->bed.p, 0x7fffff00));
	EXPECT_EQ(VHCA_VERR_KEY, self->bed.wc.vendor_err);
	/* By an old key, by another QP. */
	ASSERT_EQ(0, mem_pair(&self->bed, &other));
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR,
		  mem_local_inv(&self->bed, &self->bed.p, self->rkey));
	EXPECT_EQ(VHCA_CQE_MW_BIND_ERR, mem_local_inv(&self->bed, &other, self->key));
	EXPECT_EQ(variant->type == 1 ? VHCA_VERR_KEY_KIND : VHCA_VERR_KEY_ACCESS,
		  self->bed.wc.vendor_err);
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
}

/* Send @len bytes and invalidate; @wc is of the receive, and the send's is in the bed. */
static int send_inv(struct mem_bed *bed, struct raw_pair *p, uint32_t len, uint32_t rkey,
		    struct raw_wc *wc)
{
	struct vhca_wqe_data sge = raw_sge(&bed->mr, 0, len);
	int ret = raw_recv(&p->b, &bed->mr, 8192, 8192);

	if (ret)
		return ret;
	mem_build(&p->a, VHCA_OP_SEND_INV, rkey, &sge, 1);
	ret = mem_run(bed, &p->a);
	if (ret < 0 || raw_wait_wc(&bed->rcq, wc))
		return -ETIMEDOUT;
	if (ret > 0 && mem_renew(bed, p))
		return -EPROTO;
	return ret;
}

TEST_F(mw, send_with_invalidate)
{
	struct raw_wc wc;
	int ret;

	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	memcpy(self->bed.mr.addr, "done with it", 12);
	ret = send_inv(&self->bed, &self->bed.p, 12, self->key, &wc);
	if (variant->type == 1) {
		EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, ret);
		EXPECT_EQ(VHCA_CQE_REM_INV_REQ_ERR, wc.status);
		EXPECT_EQ(VHCA_VERR_KEY_KIND, wc.vendor_err);
		EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(VHCA_CQE_F_INV, wc.flags);
	EXPECT_EQ(self->key, wc.imm);
	EXPECT_EQ(12, wc.byte_len);
	EXPECT_EQ(0, memcmp(self->bed.mr.addr + 8192, "done with it", 12));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, opens(&self->bed, self->key, IOVA));
	EXPECT_EQ(0, bind_at(&self->bed, &self->mr, self->key, mem_next_key(self->key), 0,
			     LENGTH, MEM_REMOTE));
}

TEST_F(mw, a_peer_cannot_invalidate_what_is_not_its_own)
{
	struct raw_pair other;
	struct raw_wc wc;

	ASSERT_EQ(0, mem_pair(&self->bed, &other));
	ASSERT_EQ(0, bind_at(&self->bed, &self->mr, self->rkey, self->key, 0, LENGTH,
			     MEM_REMOTE));
	/* Through a QP that the window is not bound to; an old key; a region. */
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, send_inv(&self->bed, &other, 8, self->key, &wc));
	EXPECT_EQ(VHCA_CQE_REM_INV_REQ_ERR, wc.status);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR,
		  send_inv(&self->bed, &self->bed.p, 8, self->rkey, &wc));
	EXPECT_EQ(VHCA_CQE_REM_INV_REQ_ERR, wc.status);
	EXPECT_EQ(0, wc.flags);
	EXPECT_EQ(0, wc.imm);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR,
		  send_inv(&self->bed, &self->bed.p, 8, self->mr.rkey, &wc));
	EXPECT_EQ(0, opens(&self->bed, self->key, IOVA));
}

/* One WQE after the other: each finds what the one before it did. */
TEST_F(mw, work_requests_take_effect_in_order)
{
	struct mem_bind b = {
		.rkey = self->rkey, .new_rkey = self->key, .lkey = self->mr.lkey,
		.access = MEM_REMOTE, .addr = IOVA, .length = LENGTH,
	};
	struct raw_qp *qp = &self->bed.p.b;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		mem_build_bind(qp, &b);
		raw_produce(qp, 1);
		if (variant->type == 2) {
			mem_build(qp, VHCA_OP_LOCAL_INV, b.new_rkey, NULL, 0);
			raw_produce(qp, 1);
		}
		b.rkey = b.new_rkey;
		b.new_rkey = mem_next_key(b.rkey);
	}
	mem_build_bind(qp, &b);
	raw_produce(qp, 1);
	ASSERT_EQ(0, raw_ring_qp(qp));
	for (i = 0; i < (variant->type == 2 ? 21 : 11); i++) {
		ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &self->bed.wc));
		ASSERT_EQ(0, self->bed.wc.status);
	}
	EXPECT_EQ(0, opens(&self->bed, b.new_rkey, IOVA));
}

static int bound_and_left(uint32_t type)
{
	struct vhca_reg_mr mr = { .length = LENGTH, .access = MEM_ALL };
	struct mem_bed bed;
	uint32_t rkey;

	if (mem_bed(&bed))
		return 1;
	mr.addr = (uintptr_t)bed.mr.addr;
	if (mem_reg(&bed, &mr) || mem_alloc_mw(&bed, type, bed.ctx.pd, &rkey))
		return 2;
	return bind_at(&bed, &mr, rkey, rkey, 0, LENGTH, MEM_REMOTE);
}

TEST_F(mw, a_file_can_be_closed_with_windows_bound)
{
	EXPECT_EQ(0, RAW_CHILD(bound_and_left(variant->type)));
}

/*
 * Somebody writes through the window while it is unbound: when that is complete, so is
 * every access, and the memory is the owner's alone.
 */
#define RACE_SIZE	(1 << 20)

struct race {
	struct mem_bed	*bed;
	struct raw_cq	cq;
	struct raw_pair	p;
	uint32_t	lkey;
	uint64_t	from;
	uint32_t	rkey;
	uint64_t	to;
	int		ret;
};

static void *race_write(void *arg)
{
	struct race *r = arg;
	struct {
		struct vhca_wqe_raddr raddr;
		struct vhca_wqe_data sge;
	} segs = {
		.raddr = { .addr = htobe64(r->to), .rkey = htobe32(r->rkey) },
		.sge = mem_sge(r->lkey, r->from, RACE_SIZE),
	};
	struct raw_wc wc;

	mem_build(&r->p.a, VHCA_OP_RDMA_WRITE, 0, &segs, 2);
	r->ret = raw_post_built(&r->p.a);
	if (!r->ret)
		r->ret = raw_wait_wc(&r->cq, &wc);
	if (!r->ret)
		r->ret = wc.status;
	return NULL;
}

TEST_F(mw, no_access_lasts_longer_than_the_binding)
{
	struct race r = { .bed = &self->bed };
	struct raw_mr from, to;
	struct vhca_reg_mr mr = { .length = RACE_SIZE, .access = MEM_ALL };
	uint32_t key = self->rkey;
	unsigned int cut = 0, i;
	pthread_t thread;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &from, RACE_SIZE));
	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &to, RACE_SIZE));
	memset(from.addr, 0xee, RACE_SIZE);
	mr.addr = (uintptr_t)to.addr;
	mr.iova = mr.addr;
	ASSERT_EQ(0, mem_reg(&self->bed, &mr));
	ASSERT_EQ(0, raw_cq(&self->bed.ctx, &r.cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->bed.ctx, &r.p.a, &r.cq, &r.cq));
	ASSERT_EQ(0, raw_qp(&self->bed.ctx, &r.p.b, &self->bed.scq, &r.cq));
	ASSERT_EQ(0, mem_connect(&r.p));
	r.lkey = from.lkey;
	r.from = (uintptr_t)from.addr;
	r.to = mr.iova;
	for (i = 0; i < 40; i++) {
		struct mem_bind b = {
			.rkey = key, .new_rkey = mem_next_key(key), .lkey = mr.lkey,
			.access = MEM_REMOTE, .addr = mr.iova, .length = RACE_SIZE,
		};

		mem_build_bind(&r.p.b, &b);
		ASSERT_EQ(0, mem_run(&self->bed, &r.p.b));
		key = b.new_rkey;
		r.rkey = key;
		to.addr[0] = 0;
		ASSERT_EQ(0, pthread_create(&thread, NULL, race_write, &r));
		RAW_WAIT(__atomic_load_n(to.addr, __ATOMIC_RELAXED) == 0xee);
		if (variant->type == 2) {
			mem_build(&r.p.b, VHCA_OP_LOCAL_INV, key, NULL, 0);
		} else {
			b = (struct mem_bind) { .rkey = key, .new_rkey = key };
			mem_build_bind(&r.p.b, &b);
		}
		ASSERT_EQ(0, mem_run(&self->bed, &r.p.b));
		memset(to.addr, 0x5a, RACE_SIZE);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_TRUE(is(to.addr, 0x5a, RACE_SIZE));
		if (!r.ret)
			continue;
		ASSERT_EQ(VHCA_CQE_REM_ACCESS_ERR, r.ret);
		cut++;
		ASSERT_EQ(0, raw_reset_qp(&r.p.a));
		ASSERT_EQ(0, raw_reset_qp(&r.p.b));
		ASSERT_EQ(0, mem_connect(&r.p));
	}
	TH_LOG("%u of %u writes were cut short", cut, i);
}

TEST_HARNESS_MAIN
