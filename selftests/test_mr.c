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

#include "../kselftest_harness.h"

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

TEST_F(mr, an_iova_of_another_page_offset_is_einval)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)self->bed.mr.addr, .length = 4096,
		.iova = (uintptr_t)self->bed.mr.addr + 8, .pd = self->bed.ctx.pd,
	};

	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
	r.iova = -4096ull;
	r.length = 8192;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REG_MR, &r));
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

/* Accounting */

/* VmPin of this process in KiB. */
static long long pinned(void)
{
	char line[128];
	long long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %lld", &kib);
	if (f)
		fclose(f);
	return kib;
}

TEST_F(mr, pinned_memory_is_counted_until_deregistered)
{
	long long before = pinned();
	struct raw_mr mr;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 1 << 20));
	EXPECT_EQ(before + 1024, pinned());
	ASSERT_EQ(0, raw_dereg(&self->bed.ctx, &mr));
	EXPECT_EQ(before, pinned());
}

TEST_F(mr, a_refused_registration_is_not_counted)
{
	long long before = pinned();
	char *p = map(8192, RW);

	ASSERT_EQ(0, munmap(p + 4096, 4096));
	EXPECT_EQ(-EFAULT, reg(&self->bed.ctx, p, 8192, 0));
	EXPECT_EQ(before, pinned());
}

TEST_F(mr, closing_the_file_gives_everything_back)
{
	long long before = pinned();
	struct raw_ctx ctx;
	struct raw_mr mr;
	int i;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, raw_mr(&ctx, &mr, 65536));
	EXPECT_EQ(before + 640, pinned());
	raw_close(&ctx);
	EXPECT_EQ(before, pinned());
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
	if (raw_dereg(&ctx, &mr) || pinned() != 0)
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
	long long before = pinned();
	struct raw_mr mr;

	ASSERT_EQ(0, raw_mr(&self->bed.ctx, &mr, 65536));
	EXPECT_EQ(0, RAW_CHILD(raw_dereg(&self->bed.ctx, &mr)));
	EXPECT_EQ(before, pinned());
}

TEST_HARNESS_MAIN
