// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: allocated, mapped, accessed by keys, given back.
 */
#include "mem.h"

#include "harness.h"

FIXTURE(dm) {
	struct mem_bed bed;
	struct vhca_query_device dev;
};

FIXTURE_SETUP(dm)
{
	ASSERT_EQ(0, mem_bed(&self->bed));
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &self->dev));
	ASSERT_LE(65536, self->dev.dm_size);
}

FIXTURE_TEARDOWN(dm)
{
	raw_close(&self->bed.ctx);
}

static int alloc(int fd, struct vhca_alloc_dm *dm, uint64_t length)
{
	*dm = (struct vhca_alloc_dm) { .length = length };
	return raw_ioctl(fd, VHCA_IOC_ALLOC_DM, dm);
}

static int reg(struct mem_bed *bed, uint32_t dm, uint64_t offset, uint64_t length,
	       uint64_t iova, struct vhca_reg_special_mr *r)
{
	*r = (struct vhca_reg_special_mr) {
		.dm = dm, .offset = offset, .length = length, .iova = iova,
		.pd = bed->ctx.pd, .access = MEM_ALL,
	};
	return raw_ioctl(bed->ctx.fd, VHCA_IOC_REG_DM_MR, r);
}

static bool is(const uint8_t *p, uint8_t c, size_t len)
{
	size_t i;

	for (i = 0; i < len && p[i] == c; i++)
		;
	return i == len;
}

TEST_F(dm, mapped_it_is_zeroed_memory)
{
	struct vhca_alloc_dm dm;
	uint8_t *p;

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 10000));
	EXPECT_EQ(12288, dm.map_size);
	p = raw_map(self->bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, p);
	EXPECT_TRUE(is(p, 0, dm.map_size));
	memset(p, 0x77, dm.map_size);
	EXPECT_TRUE(is(p, 0x77, dm.map_size));
	munmap(p, dm.map_size);
	/* A piece that is freed keeps nothing for the next one. */
	ASSERT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_DM, dm.dm));
	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 10000));
	p = raw_map(self->bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, p);
	EXPECT_TRUE(is(p, 0, dm.map_size));
}

TEST_F(dm, it_is_mapped_as_a_whole_and_by_its_owner)
{
	int fd = self->bed.ctx.fd, other = raw_open_file(0);
	struct vhca_alloc_dm dm;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, alloc(fd, &dm, 8192));
	EXPECT_EQ(NULL, raw_map(other, dm.map_offset, 8192));
	EXPECT_EQ(NULL, raw_map(fd, dm.map_offset, 4096));
	EXPECT_EQ(NULL, raw_map(fd, dm.map_offset + 4096, 4096));
	EXPECT_EQ(NULL, raw_map(fd, dm.map_offset, 12288));
	EXPECT_EQ(NULL, raw_map(fd, dm.map_offset + 8192, 8192));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, dm.map_offset));
	EXPECT_NE(NULL, raw_map(fd, dm.map_offset, 8192));
	close(other);
}

TEST_F(dm, a_region_of_it_serves_rdma_and_atomics)
{
	struct vhca_reg_special_mr r;
	struct vhca_alloc_dm dm;
	uint64_t *word;
	uint8_t *p;

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 12288));
	p = raw_map(self->bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, p);
	/* From the middle of its first page to the middle of its last. */
	ASSERT_EQ(0, reg(&self->bed, dm.dm, 2048, 8192, 0x100000, &r));
	memset(self->bed.mr.addr, 0x11, 8192);
	ASSERT_EQ(0, mem_write(&self->bed, 8192, r.rkey, 0x100000));
	EXPECT_TRUE(is(p, 0, 2048));
	EXPECT_TRUE(is(p + 2048, 0x11, 8192));
	EXPECT_TRUE(is(p + 10240, 0, 2048));
	memset(p + 4096, 0x22, 4096);
	ASSERT_EQ(0, mem_read(&self->bed, 8192, r.rkey, 0x100000));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192, 0x11, 2048));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192 + 2048, 0x22, 4096));
	word = (uint64_t *)(p + 4096);
	*word = 40;
	ASSERT_EQ(0, mem_add(&self->bed, 0, 2, r.rkey, 0x100000 + 2048));
	EXPECT_EQ(40, *(uint64_t *)self->bed.mr.addr);
	EXPECT_EQ(42, *word);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_write(&self->bed, 8, r.rkey, 0x100000 + 8185));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_read(&self->bed, 8, r.rkey, 0x100000 - 1));
}

TEST_F(dm, a_region_lies_within_it)
{
	struct vhca_reg_special_mr r;
	struct vhca_alloc_dm dm, theirs;
	int other = raw_open_file(0);

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 1000));
	EXPECT_EQ(0, reg(&self->bed, dm.dm, 0, 1000, 0, &r));
	EXPECT_EQ(0, reg(&self->bed, dm.dm, 999, 1, 0, &r));
	EXPECT_EQ(-EINVAL, reg(&self->bed, dm.dm, 0, 1001, 0, &r));
	EXPECT_EQ(-EINVAL, reg(&self->bed, dm.dm, 1000, 1, 0, &r));
	EXPECT_EQ(-EINVAL, reg(&self->bed, dm.dm, ~0ull, 2, 0, &r));
	EXPECT_EQ(-EINVAL, reg(&self->bed, dm.dm, 0, 2, ~0ull, &r));
	EXPECT_EQ(-EINVAL, reg(&self->bed, dm.dm + 1, 0, 1, 0, &r));
	/* Another file's number is none of this one's. */
	ASSERT_EQ(0, alloc(other, &theirs, 1000));
	ASSERT_EQ(0, alloc(other, &theirs, 1000));
	EXPECT_EQ(-EINVAL, reg(&self->bed, theirs.dm, 0, 1, 0, &r));
	close(other);
}

TEST_F(dm, what_makes_no_sense_is_refused)
{
	struct vhca_alloc_dm dm = { .length = 4096, .log_align = VHCA_DM_MAX_LOG_ALIGN };
	int fd = self->bed.ctx.fd;

	EXPECT_EQ(0, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &dm));
	dm = (struct vhca_alloc_dm) { .length = 4096, .log_align = VHCA_DM_MAX_LOG_ALIGN + 1 };
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &dm));
	EXPECT_EQ(-EINVAL, alloc(fd, &dm, 0));
	EXPECT_EQ(-ENOSPC, alloc(fd, &dm, self->dev.dm_size + 1));
	EXPECT_EQ(-ENOSPC, alloc(fd, &dm, ~0ull));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_DM, 12345));
}

TEST_F(dm, query_says_what_was_allocated)
{
	struct vhca_alloc_dm dm, q = {};

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 5000));
	q.dm = dm.dm;
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DM, &q));
	EXPECT_EQ(5000, q.length);
	EXPECT_EQ(dm.map_offset, q.map_offset);
	EXPECT_EQ(dm.map_size, q.map_size);
	ASSERT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_DM, dm.dm));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DM, &q));
}

TEST_F(dm, it_stays_while_a_region_is_of_it)
{
	struct vhca_reg_special_mr r;
	struct vhca_rereg_mr again = { .access = VHCA_ACCESS_REMOTE_READ };
	struct vhca_alloc_dm dm;
	int fd = self->bed.ctx.fd;

	ASSERT_EQ(0, alloc(fd, &dm, 4096));
	ASSERT_EQ(0, reg(&self->bed, dm.dm, 0, 4096, 0, &r));
	EXPECT_EQ(-EBUSY, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	again.lkey = r.lkey;
	again.flags = VHCA_REREG_ACCESS;
	ASSERT_EQ(0, raw_ioctl(fd, VHCA_IOC_REREG_MR, &again));
	EXPECT_EQ(-EBUSY, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	EXPECT_EQ(0, mem_read(&self->bed, 8, again.rkey, 0));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_write(&self->bed, 8, again.rkey, 0));
	/* The region becomes one of memory: then it is free. */
	again = (struct vhca_rereg_mr) {
		.lkey = again.lkey, .flags = VHCA_REREG_TRANSLATION,
		.addr = (uintptr_t)self->bed.mr.addr, .length = 4096,
	};
	ASSERT_EQ(0, raw_ioctl(fd, VHCA_IOC_REREG_MR, &again));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	EXPECT_EQ(0, mem_read(&self->bed, 8, again.rkey, 0));
}

TEST_F(dm, all_of_it_can_be_had_and_no_more)
{
	struct vhca_alloc_dm dm, more;
	unsigned int i, n = self->dev.dm_size / 4096;
	int fd = self->bed.ctx.fd;

	ASSERT_EQ(0, alloc(fd, &dm, self->dev.dm_size));
	EXPECT_EQ(-ENOSPC, alloc(fd, &more, 1));
	ASSERT_EQ(0, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, alloc(fd, &dm, 1));
	EXPECT_EQ(-ENOSPC, alloc(fd, &more, 1));
	/* What is free is in two pieces of one page. */
	ASSERT_EQ(0, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	ASSERT_EQ(0, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm - 2));
	EXPECT_EQ(-ENOSPC, alloc(fd, &more, 4097));
	EXPECT_EQ(0, alloc(fd, &more, 4096));
}

static int take_all_and_leave(uint64_t size)
{
	struct vhca_reg_special_mr r;
	struct vhca_alloc_dm dm;
	struct mem_bed bed;

	if (mem_bed(&bed) || alloc(bed.ctx.fd, &dm, size))
		return 1;
	if (!raw_map(bed.ctx.fd, dm.map_offset, dm.map_size))
		return 2;
	return reg(&bed, dm.dm, 0, size, 0, &r) ? 3 : 0;
}

TEST_F(dm, it_is_free_again_when_the_file_is_closed)
{
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, RAW_CHILD(take_all_and_leave(self->dev.dm_size)));
}

TEST_F(dm, a_mapping_of_what_was_freed_is_harmless)
{
	struct vhca_alloc_dm dm, next;
	int other = raw_open_file(0);
	uint8_t *p, *q;

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, self->dev.dm_size));
	p = raw_map(self->bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, p);
	memset(p, 1, dm.map_size);
	ASSERT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_DM, dm.dm));
	ASSERT_EQ(0, alloc(other, &next, self->dev.dm_size));
	q = raw_map(other, next.map_offset, next.map_size);
	ASSERT_NE(NULL, q);
	memset(p, 2, dm.map_size);
	EXPECT_TRUE(is(q, 0, next.map_size));
	close(other);
}

TEST_F(dm, a_window_opens_a_part_of_it)
{
	struct vhca_reg_special_mr r;
	struct vhca_alloc_dm dm;
	struct mem_bind b;
	uint32_t rkey;
	uint8_t *p;

	ASSERT_EQ(0, alloc(self->bed.ctx.fd, &dm, 8192));
	p = raw_map(self->bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, reg(&self->bed, dm.dm, 100, 8000, 100, &r));
	ASSERT_EQ(0, mem_alloc_mw(&self->bed, 1, self->bed.ctx.pd, &rkey));
	b = (struct mem_bind) {
		.rkey = rkey, .new_rkey = mem_next_key(rkey), .lkey = r.lkey,
		.access = MEM_REMOTE, .addr = 4000, .length = 200,
	};
	ASSERT_EQ(0, mem_bind(&self->bed, &self->bed.p, &b));
	memset(self->bed.mr.addr, 0x33, 200);
	ASSERT_EQ(0, mem_write(&self->bed, 200, b.new_rkey, 4000));
	EXPECT_TRUE(is(p + 4000, 0x33, 200));
	EXPECT_EQ(0, p[3999]);
	EXPECT_EQ(0, p[4200]);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_write(&self->bed, 1, b.new_rkey, 4200));
}

TEST_HARNESS_MAIN
