// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registering memory: what is refused, what is charged, what a region
 * then allows.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>

#include "raw.h"

#include "harness.h"

FIXTURE(mr) {
	struct raw_bed bed;
};

FIXTURE_SETUP(mr)
{
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
}

FIXTURE_TEARDOWN(mr)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

static int reg(struct raw_ctx *ctx, void *addr, uint64_t len, uint32_t access)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)addr, .length = len, .iova = (uintptr_t)addr,
		.pd = ctx->pd, .access = access,
	};
	int err = raw_ioctl(ctx->fd, VHCA_IOC_REG_MR, &r);

	if (!err)
		raw_free(ctx->fd, VHCA_IOC_DEREG_MR, r.lkey);
	return err;
}

static void *map(size_t len, int prot)
{
	return mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Connect the bed's pair anew after an error, with nothing left of before. */
static int renew(struct raw_bed *bed)
{
	struct raw_pair *p = &bed->p;
	int err = raw_goto(&p->b, VHCA_QPS_ERR);
	struct raw_wc wc;

	/* The receive that was not used. */
	if (!err)
		err = raw_wait_wc(&bed->rcq, &wc);
	if (!err)
		err = raw_reset_qp(&p->a);
	if (!err)
		err = raw_reset_qp(&p->b);
	return err ? err : raw_connect(&p->a, &p->b);
}

/*
 * Send @len bytes from where the key and the address say to @offset of the bed's
 * memory; the status of the send, or a negative errno.
 */
static int send_from(struct raw_bed *bed, uint32_t lkey, uint64_t addr, uint32_t len,
		     size_t offset)
{
	struct vhca_wqe_data sge = {
		.byte_count = htobe32(len), .lkey = htobe32(lkey), .addr = htobe64(addr),
	};
	int err = raw_recv(&bed->p.b, &bed->mr, offset, bed->mr.len - offset);
	struct raw_wc wc;

	raw_build_send(&bed->p.a, VHCA_WQE_SIGNALED, &sge, 1);
	if (!err)
		err = raw_post_built(&bed->p.a);
	if (!err)
		err = raw_wait_wc(&bed->scq, &wc);
	if (err)
		return err;
	if (wc.status)
		return renew(bed) ? -EPROTO : wc.status;
	err = raw_wait_wc(&bed->rcq, &wc);
	return err ? err : -wc.status;
}

/* Receive what the bed's memory begins with there; the status of the receive. */
static int receive_to(struct raw_bed *bed, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct vhca_wqe_data sge = {
		.byte_count = htobe32(len), .lkey = htobe32(lkey), .addr = htobe64(addr),
	};
	int err = raw_recv_sge(&bed->p.b, sge);
	struct raw_wc wc, swc;

	if (!err)
		err = raw_send(&bed->p.a, VHCA_WQE_SIGNALED, &bed->mr, 0, len);
	if (!err)
		err = raw_wait_wc(&bed->rcq, &wc);
	if (!err)
		err = raw_wait_wc(&bed->scq, &swc);
	if (!err && wc.status)
		err = raw_reset_qp(&bed->p.a) || raw_reset_qp(&bed->p.b) ||
		      raw_connect(&bed->p.a, &bed->p.b) ? -EPROTO : 0;
	return err ? err : wc.status;
}

#define RW (PROT_READ | PROT_WRITE)

TEST_F(mr, unmapped_memory_is_efault)
{
	char *p = map(3 * 4096, RW);

	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_EQ(0, munmap(p + 4096, 4096));
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p + 4096, 4096, VHCA_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p + 4096, 4096, 0));
	/* A hole in the middle, and one at the last byte. */
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p, 3 * 4096, 0));
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p, 4097, 0));
	EXPECT_EQ(0, reg(&self->bed.ctx, p, 4096, 0));
}

TEST_F(mr, memory_without_any_access_is_refused)
{
	void *p = map(4096, PROT_NONE);
	int err = reg(&self->bed.ctx, p, 4096, 0);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_TRUE(err == -EFAULT || err == -EACCES);
}

TEST_F(mr, write_access_to_read_only_memory_is_eacces)
{
	char *p = map(2 * 4096, RW);

	ASSERT_NE(MAP_FAILED, (void *)p);
	p[0] = 1;
	p[4096] = 1;
	ASSERT_EQ(0, mprotect(p + 4096, 4096, PROT_READ));
	EXPECT_EQ(-EACCES, reg(&self->bed.ctx, p + 4096, 4096, VHCA_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(-EACCES, reg(&self->bed.ctx, p, 2 * 4096, VHCA_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(-EACCES, reg(&self->bed.ctx, p + 4096, 100,
			       VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(0, reg(&self->bed.ctx, p + 4096, 4096, 0));
}

TEST_F(mr, a_file_that_is_open_read_only_is_eacces_for_write_access)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EACCES, reg(&self->bed.ctx, p, 4096, VHCA_ACCESS_LOCAL_WRITE));
}

/* A file system of which the kernel writes back what is mapped, on /mnt. */
static bool mount_disk(void)
{
	return !system("truncate -s 16M /tmp/disk && mkfs.ext4 -q /tmp/disk") &&
	       !system("modprobe -qa loop ext4; mount -o loop /tmp/disk /mnt 2>/dev/null");
}

/*
 * While a page of a file is written back it is locked, which may take as long as its owner
 * likes: nobody may have to wait for that to give it back.
 */
TEST_F(mr, what_a_file_system_writes_back_is_efault_for_write_access)
{
	void *p;
	int fd;

	if (!mount_disk())
		SKIP(return, "no ext4 here");
	fd = open("/mnt/file", O_RDWR | O_CREAT, 0600);
	ASSERT_EQ(0, ftruncate(fd, 8192));
	p = mmap(NULL, 8192, RW, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 1, 8192);
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p, 8192, VHCA_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(0, reg(&self->bed.ctx, p, 8192, 0));
	munmap(p, 8192);
	/* What is written to a private mapping is the process's own. */
	p = mmap(NULL, 8192, RW, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, reg(&self->bed.ctx, p, 8192, VHCA_ACCESS_LOCAL_WRITE));
	munmap(p, 8192);
	close(fd);
	EXPECT_EQ(0, system("umount /mnt"));
}

TEST_F(mr, length_zero_is_a_region_of_no_bytes)
{
	EXPECT_EQ(0, reg(&self->bed.ctx, self->bed.mr.addr, 0, 0));
	EXPECT_EQ(0, reg(&self->bed.ctx, (char *)self->bed.mr.addr + 1, 0, 0));
	EXPECT_EQ(0, reg(&self->bed.ctx, NULL, 0, VHCA_ACCESS_LOCAL_WRITE));
}

TEST_F(mr, a_huge_or_wrapping_length_is_refused)
{
	struct vhca_query_device q = {};
	void *p = self->bed.mr.addr;
	uint64_t to_end = -(uint64_t)(uintptr_t)p;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, q.max_mr_size + 1, 0));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, ~0ull, 0));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, ~0ull - 4095, 0));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, to_end, 0));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, to_end + 1, 0));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, 1ull << 63, 0));
	EXPECT_GT(0, reg(&self->bed.ctx, (void *)~0ul, 1, 0));
	EXPECT_GT(0, reg(&self->bed.ctx, (void *)(~0ul - 4095), 4096, 0));
	EXPECT_GT(0, reg(&self->bed.ctx, (void *)(~0ul - 4095), 8192, 0));
}

TEST_F(mr, the_largest_length_is_bounded_by_memory_not_by_the_kernels_patience)
{
	struct vhca_query_device q = {};
	int err;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	err = reg(&self->bed.ctx, self->bed.mr.addr, q.max_mr_size, 0);
	EXPECT_TRUE(err == -EFAULT || err == -ENOMEM);
}

TEST_F(mr, kernel_addresses_are_refused)
{
	EXPECT_GT(0, reg(&self->bed.ctx, (void *)0xffff888000000000ul, 4096, 0));
	EXPECT_GT(0, reg(&self->bed.ctx, (void *)0xffffffff81000000ul, 4096, 0));
}

TEST_F(mr, access_flags_that_make_no_sense_are_einval)
{
	void *p = self->bed.mr.addr;

	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, 4096, VHCA_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, 4096, VHCA_ACCESS_REMOTE_ATOMIC));
	EXPECT_EQ(-EINVAL, reg(&self->bed.ctx, p, 4096, 1u << 31));
	EXPECT_EQ(0, reg(&self->bed.ctx, p, 4096, VHCA_ACCESS_REMOTE_READ));
	EXPECT_EQ(0, reg(&self->bed.ctx, p, 4096, 0xf));
}

TEST_F(mr, the_iova_is_what_wqes_name)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->bed.mr.addr, .length = 4096, .iova = 0x10000,
		.pd = self->bed.ctx.pd,
	};
	struct vhca_wqe_data sge = { .byte_count = htobe32(4) };
	struct raw_wc wc;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
	sge.lkey = htobe32(r.lkey);
	sge.addr = htobe64(0x10000 + 4092);
	memcpy(self->bed.mr.addr + 4092, "tail", 4);
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 8192, 64));
	raw_build_send(&self->bed.p.a, 0, &sge, 1);
	ASSERT_EQ(0, raw_post_built(&self->bed.p.a));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(self->bed.mr.addr + 8192, "tail", 4));
}

TEST_F(mr, an_iova_that_wraps_is_einval)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->bed.mr.addr, .length = 8192, .iova = -4096ull,
		.pd = self->bed.ctx.pd,
	};

	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
}

TEST_F(mr, an_iova_may_have_any_offset_in_its_page)
{
	static const uint64_t iova[] = { 0, 1, 4095, 0x123456789abull, ~0ull - 9000 };
	char *p = map(4 * 4096, RW);
	unsigned int i;

	memset(p, 'x', 4 * 4096);
	memcpy(p + 2047, "head", 4);
	memcpy(p + 2047 + 7996, "tail", 4);
	for (i = 0; i < sizeof(iova) / sizeof(*iova); i++) {
		struct vhca_reg_mr r = {
			.addr = (uintptr_t)p + 2047, .length = 8000, .iova = iova[i],
			.pd = self->bed.ctx.pd,
		};

		ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
		ASSERT_EQ(0, send_from(&self->bed, r.lkey, iova[i], 8000, 0));
		EXPECT_EQ(0, memcmp(self->bed.mr.addr, p + 2047, 8000));
		ASSERT_EQ(0, send_from(&self->bed, r.lkey, iova[i] + 7996, 4, 0));
		EXPECT_EQ(0, memcmp(self->bed.mr.addr, "tail", 4));
		EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
			  send_from(&self->bed, r.lkey, iova[i] + 7996, 5, 0));
		EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
			  send_from(&self->bed, r.lkey, iova[i] - 1, 4, 0));
		EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, r.lkey));
	}
}

TEST_F(mr, zero_based_begins_at_address_zero)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->bed.mr.addr + 5, .length = 100,
		.pd = self->bed.ctx.pd, .access = VHCA_ACCESS_ZERO_BASED,
	};

	memcpy(self->bed.mr.addr + 5, "zero based", 10);
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, 0, 10, 8192));
	EXPECT_EQ(0, memcmp(self->bed.mr.addr + 8192, "zero based", 10));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, send_from(&self->bed, r.lkey, 99, 2, 8192));
	r.iova = 4096;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
}

TEST_F(mr, a_region_may_start_and_end_anywhere)
{
	struct raw_mr mr = { .addr = map(3 * 4096, RW), .len = 4099 };
	struct raw_wc wc;

	mr.addr += 4093;
	memset(mr.addr, 'x', mr.len);
	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 8192, 8192));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 4099));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(self->bed.mr.addr + 8192, mr.addr, 4099));
	/* One byte before and one behind are out of bounds. */
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 4100));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(VHCA_VERR_KEY_BOUNDS, wc.vendor_err);
	ASSERT_EQ(0, raw_send(&self->bed.mark.a, 0, &mr, -1, 10));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(VHCA_VERR_KEY_BOUNDS, wc.vendor_err);
}

TEST_F(mr, read_only_memory_can_be_sent_from)
{
	struct raw_mr mr = { .addr = map(4096, RW), .len = 4096 };
	struct raw_wc wc;

	memcpy(mr.addr, "constant", 8);
	ASSERT_EQ(0, mprotect(mr.addr, 4096, PROT_READ));
	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(self->bed.mr.addr, "constant", 8));
}

TEST_F(mr, memory_that_was_never_touched_is_seen_zeroed)
{
	struct raw_mr mr = { .addr = map(4096, RW), .len = 4096 };
	struct raw_wc wc;

	memset(self->bed.mr.addr, 0xff, 64);
	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(0, self->bed.mr.addr[7]);
}

TEST_F(mr, an_old_key_stops_working_at_once)
{
	struct raw_mr mr, again;
	struct raw_wc wc;
	int i;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 4096));
	ASSERT_EQ(0, raw_dereg(&self->bed.ctx, &mr));
	EXPECT_EQ(-EINVAL, raw_dereg(&self->bed.ctx, &mr));
	/* Nor does it name what was registered since. */
	for (i = 0; i < 100; i++) {
		again = mr;
		ASSERT_EQ(0, raw_reg(&self->bed.ctx, &again, VHCA_ACCESS_LOCAL_WRITE));
		ASSERT_NE(mr.lkey, again.lkey);
		ASSERT_EQ(0, raw_dereg(&self->bed.ctx, &again));
	}
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(VHCA_VERR_KEY, wc.vendor_err);
}

TEST_F(mr, the_same_memory_may_be_registered_many_times)
{
	struct raw_mr mr[50];
	int i, j;

	for (i = 0; i < 50; i++) {
		mr[i] = self->bed.mr;
		ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr[i], VHCA_ACCESS_LOCAL_WRITE));
		for (j = 0; j < i; j++)
			ASSERT_NE(mr[j].lkey, mr[i].lkey);
	}
	for (i = 0; i < 50; i++)
		EXPECT_EQ(0, raw_dereg(&self->bed.ctx, &mr[i]));
}

/* The pages stay those that were registered, whatever the process maps there. */
TEST_F(mr, a_region_outlives_its_mapping)
{
	struct raw_mr mr;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 4096));
	memcpy(mr.addr, "still here", 10);
	ASSERT_EQ(0, munmap(mr.addr, 4096));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &mr, 0, 10));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(self->bed.mr.addr, "still here", 10));
	EXPECT_EQ(0, raw_dereg(&self->bed.ctx, &mr));
}

/* The parent's pages stay the registered ones when a child exists. */
TEST_F(mr, a_fork_does_not_take_the_pages_away)
{
	struct raw_wc wc;
	int to_child[2];
	char c;
	pid_t pid;

	memset(self->bed.mr.addr, 1, 16384);
	ASSERT_EQ(0, pipe(to_child));
	pid = fork();
	if (!pid) {
		close(to_child[1]);
		_exit(read(to_child[0], &c, 1));
	}
	/* Written to by the parent while shared with the child: copied, if at all, there. */
	memset(self->bed.mr.addr, 2, 8192);
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 8192, 64));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(2, self->bed.mr.addr[8192]);
	close(to_child[1]);
	EXPECT_EQ(0, raw_wait_child(pid));
}

/* Null MRs */

static int reg_null(struct raw_ctx *ctx, struct vhca_reg_special_mr *r)
{
	*r = (struct vhca_reg_special_mr) { .pd = ctx->pd };
	return raw_ioctl(ctx->fd, VHCA_IOC_REG_NULL_MR, r);
}

TEST_F(mr, a_null_mr_reads_as_zeroes_at_any_address)
{
	static const uint64_t addr[] = { 0, 1, 0x7fffffffffff, ~0ull - 5000, ~0ull };
	struct vhca_reg_special_mr r;
	unsigned int i, j;

	ASSERT_EQ(0, reg_null(&self->bed.ctx, &r));
	EXPECT_EQ(0, r.rkey);
	for (i = 0; i < sizeof(addr) / sizeof(*addr); i++) {
		memset(self->bed.mr.addr, 0xff, 8192);
		ASSERT_EQ(0, send_from(&self->bed, r.lkey, addr[i], 5000, 0));
		for (j = 0; j < 5000; j++)
			ASSERT_EQ(0, self->bed.mr.addr[j]);
		EXPECT_EQ(0xff, self->bed.mr.addr[5000]);
	}
}

TEST_F(mr, what_is_written_to_a_null_mr_is_lost)
{
	struct vhca_reg_special_mr r;

	ASSERT_EQ(0, reg_null(&self->bed.ctx, &r));
	memset(self->bed.mr.addr, 'x', 8192);
	ASSERT_EQ(0, receive_to(&self->bed, r.lkey, 0x1000, 8192));
	/* It still reads as zeroes. */
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, 0x1000, 8, 0));
	EXPECT_EQ(0, self->bed.mr.addr[0]);
	EXPECT_EQ('x', self->bed.mr.addr[8]);
}

TEST_F(mr, a_null_mr_has_no_attributes)
{
	static const struct vhca_reg_special_mr wrong[] = {
		{ .offset = 1 }, { .length = 1 }, { .iova = 1 }, { .fd = 1 }, { .dm = 1 },
		{ .access = VHCA_ACCESS_LOCAL_WRITE }, { .access = VHCA_ACCESS_REMOTE_READ },
		{ .access = 1u << 31 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct vhca_reg_special_mr r = wrong[i];

		r.pd = self->bed.ctx.pd;
		EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_NULL_MR, &r));
	}
}

/* Registering anew */

static int rereg(struct raw_ctx *ctx, struct vhca_rereg_mr *r, uint32_t lkey, uint32_t flags)
{
	r->lkey = lkey;
	r->flags = flags;
	return raw_ioctl(ctx->fd, VHCA_IOC_REREG_MR, r);
}

TEST_F(mr, rereg_gives_and_takes_rights_and_keeps_the_keys)
{
	struct vhca_rereg_mr r = { .access = VHCA_ACCESS_LOCAL_WRITE };
	struct raw_mr mr = { .addr = map(4096, RW), .len = 4096 };
	uint32_t old;

	memset(self->bed.mr.addr, 'y', 64);
	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
		  receive_to(&self->bed, mr.lkey, (uintptr_t)mr.addr, 64));
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, mr.lkey, VHCA_REREG_ACCESS));
	EXPECT_EQ(mr.lkey, r.lkey);
	EXPECT_EQ(mr.lkey, r.rkey);
	ASSERT_EQ(0, receive_to(&self->bed, r.lkey, (uintptr_t)mr.addr, 64));
	EXPECT_EQ(0, memcmp(mr.addr, self->bed.mr.addr, 64));

	old = r.lkey;
	r = (struct vhca_rereg_mr) { .access = VHCA_ACCESS_REMOTE_READ };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, old, VHCA_REREG_ACCESS));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
		  receive_to(&self->bed, r.lkey, (uintptr_t)mr.addr, 64));
	EXPECT_EQ(0, send_from(&self->bed, r.lkey, (uintptr_t)mr.addr, 64, 0));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, r.lkey));
	EXPECT_EQ(-EINVAL, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, old));
}

TEST_F(mr, rereg_moves_to_another_pd)
{
	struct vhca_rereg_mr r = {};
	uint32_t pd, old;
	struct raw_mr mr;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 4096));
	ASSERT_EQ(0, raw_alloc_pd(self->bed.ctx.fd, &pd));
	r.pd = pd;
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, mr.lkey, VHCA_REREG_PD));
	/* Its memory is there, and not for the QPs of its former PD. */
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
		  send_from(&self->bed, r.lkey, (uintptr_t)mr.addr, 8, 0));
	EXPECT_EQ(-EBUSY, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_PD, pd));
	old = r.lkey;
	r = (struct vhca_rereg_mr) { .pd = self->bed.ctx.pd };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, old, VHCA_REREG_PD));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_PD, pd));
	memcpy(mr.addr, "returned", 8);
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, (uintptr_t)mr.addr, 8, 0));
	EXPECT_EQ(0, memcmp(self->bed.mr.addr, "returned", 8));
}

TEST_F(mr, rereg_of_memory_names_other_memory)
{
	char *p = map(8192, RW);
	struct vhca_rereg_mr r = {
		.addr = (uintptr_t)p + 100, .length = 5000, .iova = 0x1001,
	};
	struct raw_mr mr;

	memcpy(p + 100, "elsewhere", 10);
	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 4096));
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, mr.lkey, VHCA_REREG_TRANSLATION));
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, 0x1001, 5000, 0));
	EXPECT_STREQ("elsewhere", (char *)self->bed.mr.addr);
	EXPECT_EQ(0, receive_to(&self->bed, r.lkey, 0x1001, 5000));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR,
		  send_from(&self->bed, r.lkey, (uintptr_t)mr.addr, 8, 0));
}

TEST_F(mr, rereg_of_everything_at_once)
{
	char *p = map(4096, RW);
	struct vhca_rereg_mr r = {
		.addr = (uintptr_t)p, .length = 4096, .pd = self->bed.ctx.pd,
		.access = VHCA_ACCESS_ZERO_BASED | VHCA_ACCESS_LOCAL_WRITE,
	};
	struct vhca_query_mr q;
	uint32_t pd;
	struct vhca_reg_mr first = {
		.addr = (uintptr_t)self->bed.mr.addr, .length = 10, .iova = 77,
	};

	memcpy(p, "all of it", 10);
	ASSERT_EQ(0, raw_alloc_pd(self->bed.ctx.fd, &pd));
	first.pd = pd;
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &first));
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, first.lkey,
			   VHCA_REREG_TRANSLATION | VHCA_REREG_PD | VHCA_REREG_ACCESS));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_PD, pd));
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, 0, 10, 0));
	EXPECT_STREQ("all of it", (char *)self->bed.mr.addr);
	q = (struct vhca_query_mr) { .lkey = r.lkey };
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_MR, &q));
	EXPECT_EQ((uintptr_t)p, q.addr);
	EXPECT_EQ(4096, q.length);
	EXPECT_EQ(0, q.iova);
	EXPECT_EQ(self->bed.ctx.pd, q.pd);
	EXPECT_EQ(VHCA_ACCESS_ZERO_BASED | VHCA_ACCESS_LOCAL_WRITE, q.access);
}

TEST_F(mr, a_null_mr_becomes_memory_by_rereg)
{
	struct vhca_rereg_mr r = { .access = VHCA_ACCESS_LOCAL_WRITE };
	struct vhca_reg_special_mr null;

	ASSERT_EQ(0, reg_null(&self->bed.ctx, &null));
	EXPECT_EQ(-EINVAL, rereg(&self->bed.ctx, &r, null.lkey, VHCA_REREG_ACCESS));
	r = (struct vhca_rereg_mr) { .pd = self->bed.ctx.pd };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, null.lkey, VHCA_REREG_PD));
	EXPECT_EQ(0, r.rkey);
	null.lkey = r.lkey;
	memcpy((char *)self->bed.mr.addr + 8192, "something", 10);
	r = (struct vhca_rereg_mr) {
		.addr = (uintptr_t)self->bed.mr.addr, .length = 16384,
	};
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, null.lkey, VHCA_REREG_TRANSLATION));
	EXPECT_EQ(r.lkey, r.rkey);
	ASSERT_EQ(0, send_from(&self->bed, r.lkey, 8192, 10, 0));
	EXPECT_STREQ("something", (char *)self->bed.mr.addr);
}

TEST_F(mr, a_rereg_that_makes_no_sense_is_einval)
{
	static const struct vhca_rereg_mr wrong[] = {
		{ .flags = 0 },
		{ .flags = 8 },
		{ .flags = VHCA_REREG_TRANSLATION, .rsvd = 1 },
		{ .flags = VHCA_REREG_ACCESS, .addr = 4096 },
		{ .flags = VHCA_REREG_ACCESS, .length = 1 },
		{ .flags = VHCA_REREG_ACCESS, .iova = 1 },
		{ .flags = VHCA_REREG_ACCESS, .pd = 1 },
		{ .flags = VHCA_REREG_PD, .access = 1 },
		{ .flags = VHCA_REREG_PD, .pd = 0xffffff },
		{ .flags = VHCA_REREG_ACCESS, .access = VHCA_ACCESS_REMOTE_WRITE },
		{ .flags = VHCA_REREG_ACCESS, .access = 1u << 20 },
		/* Its iova is not zero. */
		{ .flags = VHCA_REREG_ACCESS, .access = VHCA_ACCESS_ZERO_BASED },
		{ .flags = VHCA_REREG_TRANSLATION, .length = ~0ull },
		{ .flags = VHCA_REREG_TRANSLATION, .iova = ~0ull, .length = 2 },
	};
	struct vhca_rereg_mr r;
	struct raw_mr mr;
	unsigned int i;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 4096));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		r = wrong[i];
		EXPECT_EQ(-EINVAL, rereg(&self->bed.ctx, &r, mr.lkey, wrong[i].flags)) {
			TH_LOG("number %u", i);
		}
	}
	r = (struct vhca_rereg_mr) {};
	EXPECT_EQ(-EINVAL, rereg(&self->bed.ctx, &r, mr.lkey ^ 1, VHCA_REREG_ACCESS));
	EXPECT_EQ(0, send_from(&self->bed, mr.lkey, (uintptr_t)mr.addr, 8, 0));
}

TEST_F(mr, a_region_that_is_gone_from_the_map_can_change_what_needs_no_memory)
{
	struct vhca_rereg_mr r = { .pd = self->bed.ctx.pd };
	struct raw_mr mr = { .addr = map(4096, RW), .len = 4096 };
	uint32_t lkey;

	memcpy((char *)mr.addr, "gone", 5);
	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	ASSERT_EQ(0, munmap(mr.addr, 4096));
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, mr.lkey, VHCA_REREG_PD));
	lkey = r.lkey;
	/* Pinned for reading only, and nothing there to be pinned for writing. */
	r = (struct vhca_rereg_mr) { .access = VHCA_ACCESS_LOCAL_WRITE };
	EXPECT_EQ(-EFAULT, rereg(&self->bed.ctx, &r, lkey, VHCA_REREG_ACCESS));
	ASSERT_EQ(0, send_from(&self->bed, lkey, (uintptr_t)mr.addr, 5, 0));
	EXPECT_STREQ("gone", (char *)self->bed.mr.addr);
}

TEST_F(mr, query_says_what_was_registered)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->bed.mr.addr + 3, .length = 99, .iova = 12345,
		.pd = self->bed.ctx.pd,
		.access = VHCA_ACCESS_REMOTE_READ | VHCA_ACCESS_MW_BIND,
	};
	struct vhca_query_mr q = {};

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
	q.lkey = r.lkey;
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_MR, &q));
	EXPECT_EQ(r.rkey, q.rkey);
	EXPECT_EQ(r.addr, q.addr);
	EXPECT_EQ(99, q.length);
	EXPECT_EQ(12345, q.iova);
	EXPECT_EQ(r.pd, q.pd);
	EXPECT_EQ(r.access, q.access);
	ASSERT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, r.lkey));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_MR, &q));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_QUERY_PD, self->bed.ctx.pd));
	EXPECT_EQ(-EINVAL, raw_free(self->bed.ctx.fd, VHCA_IOC_QUERY_PD, 0xffffff));
}

/* Accounting */

TEST_F(mr, pinned_memory_is_counted_until_deregistered)
{
	long long before = raw_pinned(getpid());
	struct raw_mr mr;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 1 << 20));
	EXPECT_EQ(before + 1024, raw_pinned(getpid()));
	ASSERT_EQ(0, raw_dereg(&self->bed.ctx, &mr));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_F(mr, a_refused_registration_is_not_counted)
{
	long long before = raw_pinned(getpid());
	char *p = map(8192, RW);

	ASSERT_EQ(0, munmap(p + 4096, 4096));
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p, 8192, 0));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_F(mr, closing_the_file_gives_everything_back)
{
	long long before = raw_pinned(getpid());
	struct raw_ctx ctx;
	struct raw_mr mr;
	int i;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, raw_mr(&ctx, &mr, 65536));
	EXPECT_EQ(before + 640, raw_pinned(getpid()));
	raw_close(&ctx);
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_F(mr, rereg_counts_pages_once)
{
	struct vhca_rereg_mr r = { .access = VHCA_ACCESS_LOCAL_WRITE };
	struct raw_mr mr = { .addr = map(1 << 20, RW), .len = 1 << 19 };
	long long before = raw_pinned(getpid());
	char *hole = map(8192, RW);
	uint32_t lkey;

	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &mr, 0));
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, mr.lkey, VHCA_REREG_ACCESS));
	EXPECT_EQ(before + 512, raw_pinned(getpid()));
	lkey = r.lkey;
	r = (struct vhca_rereg_mr) { .addr = (uintptr_t)mr.addr, .length = 1 << 20 };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, lkey, VHCA_REREG_TRANSLATION));
	EXPECT_EQ(before + 1024, raw_pinned(getpid()));
	lkey = r.lkey;
	r = (struct vhca_rereg_mr) { .addr = (uintptr_t)mr.addr, .length = 1 };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, lkey, VHCA_REREG_TRANSLATION));
	EXPECT_EQ(before + 4, raw_pinned(getpid()));
	lkey = r.lkey;
	r = (struct vhca_rereg_mr) { .pd = self->bed.ctx.pd };
	ASSERT_EQ(0, rereg(&self->bed.ctx, &r, lkey, VHCA_REREG_PD));
	EXPECT_EQ(before + 4, raw_pinned(getpid()));
	lkey = r.lkey;
	/* A failure neither adds nor takes. */
	ASSERT_EQ(0, munmap(hole + 4096, 4096));
	r = (struct vhca_rereg_mr) { .addr = (uintptr_t)hole, .length = 8192 };
	EXPECT_EQ(-EFAULT, rereg(&self->bed.ctx, &r, lkey, VHCA_REREG_TRANSLATION));
	EXPECT_EQ(before + 4, raw_pinned(getpid()));
	r = (struct vhca_rereg_mr) {
		.addr = (uintptr_t)mr.addr, .length = 8192, .pd = 0xffffff,
	};
	EXPECT_EQ(-EINVAL, rereg(&self->bed.ctx, &r, lkey,
				 VHCA_REREG_TRANSLATION | VHCA_REREG_PD));
	EXPECT_EQ(before + 4, raw_pinned(getpid()));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, lkey));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

static int limited(void)
{
	struct rlimit lim = { 64 << 10, 64 << 10 };
	struct raw_ctx ctx;
	struct raw_mr mr, more;

	if (setrlimit(RLIMIT_MEMLOCK, &lim) || setgroups(0, NULL) || setgid(65534) ||
	    setuid(65534))
		return 1;
	if (raw_open(&ctx, 0))
		return 2;
	if (raw_mr(&ctx, &mr, 65 << 10) != -ENOMEM)
		return 3;
	if (raw_mr(&ctx, &mr, 64 << 10))
		return 4;
	if (raw_mr(&ctx, &more, 4096) != -ENOMEM)
		return 5;
	if (raw_dereg(&ctx, &mr) || raw_pinned(getpid()) != 0)
		return 6;
	return raw_mr(&ctx, &more, 4096) ? 7 : 0;
}

TEST_F(mr, the_memlock_limit_holds_for_a_user)
{
	EXPECT_EQ(0, RAW_CHILD(limited()));
}

/* Another process than the one that registered may deregister: the first is uncharged. */
TEST_F(mr, a_child_that_deregisters_uncharges_the_parent)
{
	long long before = raw_pinned(getpid());
	struct raw_mr mr;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 65536));
	EXPECT_EQ(0, RAW_CHILD(raw_dereg(&self->bed.ctx, &mr)));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_HARNESS_MAIN
