// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process may map, and what becomes of the mapping.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "raw.h"

#include "harness.h"

enum { UAR, DBR, CQ, QP, MAPS };

FIXTURE(mmap) {
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;
	uint64_t offset[MAPS];
	size_t size[MAPS];
	void *map[MAPS];
};

FIXTURE_SETUP(mmap)
{
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->cq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->ctx, &self->qp, &self->cq, &self->cq));
	self->offset[UAR] = self->ctx.uar.uar_offset;
	self->offset[DBR] = self->ctx.uar.dbr_offset;
	self->offset[CQ] = self->cq.made.buf_offset;
	self->offset[QP] = self->qp.made.buf_offset;
	self->size[UAR] = VHCA_UAR_PAGE_SIZE;
	self->size[DBR] = VHCA_UAR_PAGE_SIZE;
	self->size[CQ] = self->cq.made.buf_size;
	self->size[QP] = self->qp.made.buf_size;
	self->map[UAR] = self->ctx.uar_page;
	self->map[DBR] = self->ctx.dbr_page;
	self->map[CQ] = self->cq.ring;
	self->map[QP] = self->qp.buf;
}

FIXTURE_TEARDOWN(mmap)
{
	raw_close(&self->ctx);
}

/* 0, or a negative errno; what was mapped is unmapped again. */
static int try_map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

#define RW (PROT_READ | PROT_WRITE)

TEST_F(mmap, the_size_made_is_the_size_to_map)
{
	int i;

	EXPECT_EQ(256u * VHCA_CQE_SIZE, self->size[CQ]);
	for (i = 0; i < MAPS; i++) {
		EXPECT_EQ(0, try_map(self->ctx.fd, self->offset[i], self->size[i], RW, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[i],
					   self->size[i] + 4096, RW, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[i],
					   2 * self->size[i], RW, MAP_SHARED));
		if (self->size[i] > 4096)
			EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[i],
						   self->size[i] - 4096, RW, MAP_SHARED));
	}
}

TEST_F(mmap, code_cannot_be_mapped)
{
	int i;

	for (i = 0; i < MAPS; i++) {
		EXPECT_GT(0, try_map(self->ctx.fd, self->offset[i], self->size[i],
				     RW | PROT_EXEC, MAP_SHARED));
		EXPECT_GT(0, try_map(self->ctx.fd, self->offset[i], self->size[i],
				     PROT_READ | PROT_EXEC, MAP_SHARED));
	}
}

TEST_F(mmap, a_mapping_cannot_be_made_code)
{
	int i;

	for (i = 0; i < MAPS; i++) {
		EXPECT_EQ(-1, mprotect(self->map[i], self->size[i], RW | PROT_EXEC));
		EXPECT_EQ(EACCES, errno);
	}
}

TEST_F(mmap, a_private_mapping_is_refused)
{
	int i;

	for (i = 0; i < MAPS; i++)
		EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[i], self->size[i], RW,
					   MAP_PRIVATE));
}

TEST_F(mmap, an_unknown_offset_is_einval)
{
	uint64_t bad[] = { 0x7fffffff000ull, 1ull << 40, 1ull << 62,
			   self->offset[CQ] + 4096, self->offset[QP] + 4096 };
	unsigned int i, j;
	bool known;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (j = 0, known = false; j < MAPS; j++)
			known |= bad[i] == self->offset[j];
		if (!known)
			EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, bad[i], 4096, RW, MAP_SHARED));
	}
}

TEST_F(mmap, another_files_offset_is_einval)
{
	int fd = raw_open_file(0), i;

	ASSERT_LE(0, fd);
	for (i = 0; i < MAPS; i++)
		EXPECT_EQ(-EINVAL, try_map(fd, self->offset[i], self->size[i], RW, MAP_SHARED));
	close(fd);
}

TEST_F(mmap, a_mapping_cannot_grow)
{
	int i;

	for (i = 0; i < MAPS; i++)
		EXPECT_EQ(MAP_FAILED, mremap(self->map[i], self->size[i], self->size[i] + 4096,
					     MREMAP_MAYMOVE));
}

TEST_F(mmap, a_child_does_not_inherit_it)
{
	int i;

	for (i = 0; i < MAPS; i++) {
		volatile char *p = self->map[i];

		(void)*p;
		EXPECT_EQ(256 + SIGSEGV, RAW_CHILD(*p));
	}
}

TEST_F(mmap, two_mappings_of_one_object_show_the_same)
{
	char *twice = raw_map(self->ctx.fd, self->offset[QP], self->size[QP]);

	ASSERT_NE(NULL, twice);
	self->qp.buf[100] = 0x5a;
	EXPECT_EQ(0x5a, twice[100]);
}

TEST_F(mmap, a_queue_starts_out_zeroed)
{
	const uint8_t *p;
	size_t i;
	int k;

	for (k = DBR; k < MAPS; k++) {
		p = self->map[k];
		for (i = 0; i < self->size[k] && !p[i]; i++)
			;
		EXPECT_EQ(self->size[k], i);
	}
}

TEST_F(mmap, a_mapping_stays_when_its_object_is_destroyed)
{
	ASSERT_EQ(0, raw_destroy_qp(&self->qp));
	ASSERT_EQ(0, raw_destroy_cq(&self->cq, NULL));
	memset(self->map[QP], 0xff, self->size[QP]);
	memset(self->map[CQ], 0xff, self->size[CQ]);
	EXPECT_EQ(0xff, self->qp.buf[self->size[QP] - 1]);
	/* Its doorbell leads nowhere. */
	EXPECT_EQ(0, raw_ring_qp(&self->qp));
	EXPECT_EQ(0, raw_kick(&self->ctx, self->qp.made.slot));
}

TEST_F(mmap, a_destroyed_object_cannot_be_mapped)
{
	ASSERT_EQ(0, raw_destroy_qp(&self->qp));
	ASSERT_EQ(0, raw_destroy_cq(&self->cq, NULL));
	EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[QP], self->size[QP], RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[CQ], self->size[CQ], RW, MAP_SHARED));
	ASSERT_EQ(0, raw_free(self->ctx.fd, VHCA_IOC_FREE_UAR, self->ctx.uar.uar));
	EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[UAR], 4096, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->ctx.fd, self->offset[DBR], 4096, RW, MAP_SHARED));
}

TEST_F(mmap, a_mapping_stays_when_the_file_is_closed)
{
	int i;

	close(self->ctx.fd);
	for (i = 0; i < MAPS; i++) {
		memset(self->map[i], 0xff, self->size[i]);
		EXPECT_EQ(0xff, *(uint8_t *)self->map[i]);
	}
	for (i = 0; i < MAPS; i++)
		EXPECT_EQ(0, munmap(self->map[i], self->size[i]));
}

/* What one process still has mapped must not be given to another. */
TEST_F(mmap, a_freed_uar_page_is_nobody_elses_while_it_is_mapped)
{
	struct vhca_query_device q = {};
	unsigned int i, n;
	uint64_t *p;
	int fd;

	ASSERT_EQ(0, raw_ioctl(self->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	ASSERT_EQ(0, raw_destroy_qp(&self->qp));
	ASSERT_EQ(0, raw_destroy_cq(&self->cq, NULL));
	ASSERT_EQ(0, raw_free(self->ctx.fd, VHCA_IOC_FREE_UAR, self->ctx.uar.uar));
	memset(self->map[UAR], 0xa5, VHCA_UAR_PAGE_SIZE);
	memset(self->map[DBR], 0xa5, VHCA_UAR_PAGE_SIZE);

	fd = raw_open_file(0);
	ASSERT_LE(0, fd);
	for (n = 0; n < q.max_uar; n++) {
		struct vhca_alloc_uar uar = {};

		if (raw_ioctl(fd, VHCA_IOC_ALLOC_UAR, &uar))
			break;
		memset(self->map[UAR], 0xa5, VHCA_UAR_PAGE_SIZE);
		memset(self->map[DBR], 0xa5, VHCA_UAR_PAGE_SIZE);
		for (i = 0; i < 2; i++) {
			p = raw_map(fd, i ? uar.uar_offset : uar.dbr_offset, VHCA_UAR_PAGE_SIZE);
			ASSERT_NE(NULL, p);
			ASSERT_NE(0xa5a5a5a5a5a5a5a5ull, p[100]);
			munmap(p, VHCA_UAR_PAGE_SIZE);
		}
	}
	EXPECT_LT(0u, n);
	close(fd);
}

/* Nor may what it wrote there be seen. */
TEST_F(mmap, a_uar_page_comes_without_what_another_wrote)
{
	struct vhca_query_device q = {};
	unsigned int i, n;
	uint64_t *p;
	int fd;

	ASSERT_EQ(0, raw_ioctl(self->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	memset(self->map[UAR], 0xa5, VHCA_UAR_PAGE_SIZE);
	for (i = 0; i < MAPS; i++)
		ASSERT_EQ(0, munmap(self->map[i], self->size[i]));
	close(self->ctx.fd);

	fd = raw_open_file(0);
	ASSERT_LE(0, fd);
	for (n = 0; n < q.max_uar; n++) {
		struct vhca_alloc_uar uar = {};

		if (raw_ioctl(fd, VHCA_IOC_ALLOC_UAR, &uar))
			break;
		p = raw_map(fd, uar.uar_offset, VHCA_UAR_PAGE_SIZE);
		ASSERT_NE(NULL, p);
		for (i = 8; i < VHCA_UAR_PAGE_SIZE / 8 && !p[i]; i++)
			;
		ASSERT_EQ((unsigned int)VHCA_UAR_PAGE_SIZE / 8, i);
		munmap(p, VHCA_UAR_PAGE_SIZE);
	}
	close(fd);
}

TEST_HARNESS_MAIN
