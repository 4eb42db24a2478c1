// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of dma-bufs, exported by the kernel's udmabuf (memory of a memfd) and its
 * system heap.
 */
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "mem.h"

#include "harness.h"

#define SIZE	(16 * 4096)

FIXTURE(dmabuf) {
	struct mem_bed bed;
	int fd;
	uint8_t *p;
};

/* A dma-buf of @size bytes of a memfd, which is mapped at @p; negative: errno. */
static int export(size_t size, uint8_t **p)
{
	int memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct udmabuf_create create = { .memfd = memfd, .flags = UDMABUF_FLAGS_CLOEXEC };
	int dev, fd = -EIO;

	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -errno;
	create.size = size;
	if (!ftruncate(memfd, size) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	if (fd < 0)
		fd = -errno;
	*p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	close(memfd);
	close(dev);
	return fd;
}

FIXTURE_SETUP(dmabuf)
{
	ASSERT_EQ(0, mem_bed(&self->bed));
	self->fd = export(SIZE, &self->p);
	if (self->fd == -ENOENT)
		SKIP(return, "no /dev/udmabuf");
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(dmabuf)
{
	raw_close(&self->bed.ctx);
}

static int reg(struct mem_bed *bed, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	       uint32_t access, struct vhca_reg_special_mr *r)
{
	*r = (struct vhca_reg_special_mr) {
		.fd = fd, .offset = offset, .length = length, .iova = iova,
		.pd = bed->ctx.pd, .access = access,
	};
	return raw_ioctl(bed->ctx.fd, VHCA_IOC_REG_DMABUF_MR, r);
}

static bool is(const uint8_t *p, uint8_t c, size_t len)
{
	size_t i;

	for (i = 0; i < len && p[i] == c; i++)
		;
	return i == len;
}

TEST_F(dmabuf, a_region_of_it_serves_rdma)
{
	struct vhca_reg_special_mr r;

	ASSERT_EQ(0, reg(&self->bed, self->fd, 0, SIZE, 0x1000, MEM_ALL, &r));
	memset(self->bed.mr.addr, 0x11, 8192);
	ASSERT_EQ(0, mem_write(&self->bed, 8192, r.rkey, 0x1000 + SIZE - 8192));
	EXPECT_TRUE(is(self->p, 0, SIZE - 8192));
	EXPECT_TRUE(is(self->p + SIZE - 8192, 0x11, 8192));
	memset(self->p, 0x22, 5000);
	ASSERT_EQ(0, mem_read(&self->bed, 5001, r.rkey, 0x1000));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192, 0x22, 5000));
	EXPECT_EQ(0, self->bed.mr.addr[8192 + 5000]);
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_read(&self->bed, 2, r.rkey, 0x1000 + SIZE - 1));
}

TEST_F(dmabuf, a_region_may_begin_and_end_anywhere_in_it)
{
	struct vhca_reg_special_mr r;

	ASSERT_EQ(0, reg(&self->bed, self->fd, 5001, 8000, 77, MEM_ALL, &r));
	memset(self->bed.mr.addr, 0x33, 8000);
	ASSERT_EQ(0, mem_write(&self->bed, 8000, r.rkey, 77));
	EXPECT_TRUE(is(self->p, 0, 5001));
	EXPECT_TRUE(is(self->p + 5001, 0x33, 8000));
	EXPECT_TRUE(is(self->p + 13001, 0, SIZE - 13001));
}

TEST_F(dmabuf, what_makes_no_sense_is_refused)
{
	struct vhca_reg_special_mr r;
	struct mem_bed *bed = &self->bed;

	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 0, 0, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 0, SIZE + 1, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, SIZE, 1, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, ~0ull, 2, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 1, ~0ull, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 0, 2, ~0ull, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 0, 1, 0, VHCA_ACCESS_REMOTE_WRITE, &r));
	EXPECT_EQ(-EINVAL, reg(bed, self->fd, 0, 1, 0, 1u << 31, &r));
	EXPECT_EQ(-EBADF, reg(bed, -1, 0, 1, 0, 0, &r));
	EXPECT_EQ(-EBADF, reg(bed, 9999, 0, 1, 0, 0, &r));
	EXPECT_EQ(-EINVAL, reg(bed, bed->ctx.fd, 0, 1, 0, 0, &r));
}

TEST_F(dmabuf, a_region_keeps_it)
{
	struct vhca_reg_special_mr r;

	memset(self->p, 0x44, SIZE);
	ASSERT_EQ(0, reg(&self->bed, self->fd, 0, SIZE, 0, MEM_ALL, &r));
	ASSERT_EQ(0, munmap(self->p, SIZE));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(0, mem_read(&self->bed, 8192, r.rkey, SIZE - 8192));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192, 0x44, 8192));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, r.lkey));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_read(&self->bed, 8, r.rkey, 0));
}

TEST_F(dmabuf, rereg_moves_it_to_the_new_region)
{
	struct vhca_reg_special_mr r;
	struct vhca_rereg_mr again = {
		.flags = VHCA_REREG_ACCESS, .access = VHCA_ACCESS_REMOTE_READ,
	};

	memset(self->p, 0x55, SIZE);
	ASSERT_EQ(0, reg(&self->bed, self->fd, 4096, 4096, 0, MEM_ALL, &r));
	again.lkey = r.lkey;
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REREG_MR, &again));
	ASSERT_EQ(0, mem_read(&self->bed, 4096, again.rkey, 0));
	EXPECT_TRUE(is(self->bed.mr.addr + 8192, 0x55, 4096));
	EXPECT_EQ(VHCA_CQE_REM_ACCESS_ERR, mem_write(&self->bed, 8, again.rkey, 0));
	again = (struct vhca_rereg_mr) {
		.lkey = again.lkey, .flags = VHCA_REREG_ACCESS, .access = MEM_ALL,
	};
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REREG_MR, &again));
	EXPECT_EQ(0, mem_write(&self->bed, 8, again.rkey, 0));
}

TEST_F(dmabuf, who_may_only_read_it_cannot_have_it_written)
{
	struct dma_heap_allocation_data data = { .len = SIZE, .fd_flags = O_RDONLY | O_CLOEXEC };
	struct vhca_rereg_mr again = {
		.flags = VHCA_REREG_ACCESS, .access = VHCA_ACCESS_LOCAL_WRITE,
	};
	struct vhca_reg_special_mr r;
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	if (heap < 0)
		SKIP(return, "no system heap");
	ASSERT_EQ(0, ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data));
	EXPECT_EQ(-EACCES, reg(&self->bed, data.fd, 0, SIZE, 0, MEM_ALL, &r));
	ASSERT_EQ(0, reg(&self->bed, data.fd, 0, SIZE, 0, VHCA_ACCESS_REMOTE_READ, &r));
	EXPECT_EQ(0, mem_read(&self->bed, 8192, r.rkey, SIZE - 8192));
	again.lkey = r.lkey;
	EXPECT_EQ(-EACCES, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REREG_MR, &again));
	EXPECT_EQ(0, mem_read(&self->bed, 8, r.rkey, 0));
}

static int registered_and_left(void)
{
	struct vhca_reg_special_mr r;
	struct mem_bed bed;
	uint8_t *p;
	int fd = export(SIZE, &p);

	return fd < 0 || mem_bed(&bed) || reg(&bed, fd, 0, SIZE, 0, MEM_ALL, &r);
}

TEST_F(dmabuf, a_file_can_be_closed_with_a_region_of_it)
{
	EXPECT_EQ(0, RAW_CHILD(registered_and_left()));
}

TEST_HARNESS_MAIN
