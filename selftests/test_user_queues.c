// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues in memory of the user: traffic over them, what is pinned
 * and charged and for how long, and memory that is refused or taken away.
 */
#include "raw.h"

#include <signal.h>
#include <sys/resource.h>

#include "harness.h"

#define CQE	64
#define CQ_SIZE	(CQE * VHCA_CQE_SIZE)
/* The SQ of raw_qp(), then its RQ. */
#define QP_SIZE	((VHCA_WQEBB_SIZE << RAW_SQ_SHIFT) + \
		 (VHCA_WQE_SEG_SIZE << RAW_SGE_SHIFT << RAW_RQ_SHIFT))
#define SRQ_SHIFT 8
#define SRQ_SIZE (VHCA_WQE_SEG_SIZE << RAW_SGE_SHIFT << SRQ_SHIFT)

static size_t pages(size_t size)
{
	return (size + 4095) & ~4095ul;
}

/* Memory that is not zeroes, with a page behind it that must stay as it is. */
static uint8_t *memory(size_t size)
{
	uint8_t *p = mmap(NULL, pages(size) + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memset(p, 0xee, pages(size) + 4096);
	return p;
}

static bool all(const uint8_t *p, size_t size, uint8_t val)
{
	while (size--)
		if (p[size] != val)
			return false;
	return true;
}

static int user_cq(struct raw_ctx *ctx, struct raw_cq *cq, void *addr)
{
	memset(cq, 0, sizeof(*cq));
	cq->made.cqe = CQE;
	cq->made.channel_fd = VHCA_INVALID_FD;
	cq->made.buf_addr = (uintptr_t)addr;
	return raw_make_cq(ctx, cq);
}

static int user_qp(struct raw_ctx *ctx, struct raw_qp *qp, struct raw_cq *cq, void *addr)
{
	memset(qp, 0, sizeof(*qp));
	qp->made.sq_shift = RAW_SQ_SHIFT;
	qp->made.rq_shift = RAW_RQ_SHIFT;
	qp->made.rq_sge_shift = RAW_SGE_SHIFT;
	qp->made.buf_addr = (uintptr_t)addr;
	return raw_make_qp(ctx, qp, cq, cq);
}

static int user_srq(struct raw_ctx *ctx, struct raw_srq *srq, void *addr)
{
	memset(srq, 0, sizeof(*srq));
	srq->made.shift = SRQ_SHIFT;
	srq->made.sge_shift = RAW_SGE_SHIFT;
	srq->made.buf_addr = (uintptr_t)addr;
	return raw_make_srq(ctx, srq);
}

FIXTURE(user_queues) {
	struct raw_ctx ctx;
	struct raw_mr mr;
	struct raw_cq cq;	/* of the kernel's */
	uint8_t *mem;
};

FIXTURE_SETUP(user_queues)
{
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_mr(&self->ctx, &self->mr, 8192));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->cq, 256, VHCA_INVALID_FD));
	self->mem = memory(QP_SIZE);
	ASSERT_NE(NULL, self->mem);
}

FIXTURE_TEARDOWN(user_queues)
{
	raw_close(&self->ctx);
}

TEST_F(user_queues, traffic_goes_over_cq_qp_and_srq)
{
	struct raw_qp a, b, c;
	struct raw_srq srq;
	struct raw_cq cq;
	struct raw_wc wc;
	int i;

	ASSERT_EQ(0, user_cq(&self->ctx, &cq, memory(CQ_SIZE)));
	ASSERT_EQ(0, user_qp(&self->ctx, &a, &cq, memory(QP_SIZE)));
	ASSERT_EQ(0, user_qp(&self->ctx, &b, &cq, memory(QP_SIZE)));
	ASSERT_EQ(0, raw_connect(&a, &b));
	/* More than any of the rings holds. */
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, raw_recv(&b, &self->mr, 4096, 64));
		self->mr.addr[0] = i;
		ASSERT_EQ(0, raw_send(&a, VHCA_WQE_SIGNALED, &self->mr, 0, 64));
		ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
		ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
		ASSERT_EQ((uint8_t)i, self->mr.addr[4096]);
	}
	ASSERT_EQ(0, user_srq(&self->ctx, &srq, memory(SRQ_SIZE)));
	ASSERT_EQ(0, raw_qp_srq(&self->ctx, &c, VHCA_QPT_RC, &cq, srq.made.srqn));
	ASSERT_EQ(0, raw_reset_qp(&a));
	ASSERT_EQ(0, raw_connect(&a, &c));
	for (i = 0; i < 300; i++) {
		raw_srq_recv(&srq, &self->mr, 4096, 64);
		ASSERT_EQ(0, raw_send(&a, 0, &self->mr, 0, 64));
		ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
		ASSERT_EQ(i % (1 << SRQ_SHIFT), wc.wqe_index);
	}
}

TEST_F(user_queues, the_memory_is_zeroed_and_no_more_than_that)
{
	uint8_t *cmem = memory(CQ_SIZE), *smem = memory(SRQ_SIZE);
	struct raw_srq srq;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, user_cq(&self->ctx, &cq, cmem));
	EXPECT_EQ(pages(CQ_SIZE), cq.made.buf_size);
	EXPECT_EQ(0u, cq.made.buf_offset);
	EXPECT_TRUE(all(cmem, pages(CQ_SIZE), 0));
	EXPECT_TRUE(all(cmem + pages(CQ_SIZE), 4096, 0xee));
	ASSERT_EQ(0, user_qp(&self->ctx, &qp, &cq, self->mem));
	EXPECT_EQ(pages(QP_SIZE), qp.made.buf_size);
	EXPECT_EQ(0u, qp.made.buf_offset);
	EXPECT_TRUE(all(self->mem, pages(QP_SIZE), 0));
	EXPECT_TRUE(all(self->mem + pages(QP_SIZE), 4096, 0xee));
	ASSERT_EQ(0, user_srq(&self->ctx, &srq, smem));
	EXPECT_EQ(pages(SRQ_SIZE), srq.made.buf_size);
	EXPECT_TRUE(all(smem, pages(SRQ_SIZE), 0));
	EXPECT_TRUE(all(smem + pages(SRQ_SIZE), 4096, 0xee));
}

TEST_F(user_queues, pages_are_charged_while_the_object_is_there)
{
	long kb = raw_pinned(getpid()), qkb = pages(QP_SIZE) / 1024, ckb = pages(CQ_SIZE) / 1024;
	uint8_t *cmem = memory(CQ_SIZE), *smem = memory(SRQ_SIZE);
	struct raw_srq srq;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_LE(0, kb);
	ASSERT_EQ(0, user_cq(&self->ctx, &cq, cmem));
	EXPECT_EQ(kb + ckb, raw_pinned(getpid()));
	ASSERT_EQ(0, user_qp(&self->ctx, &qp, &cq, self->mem));
	EXPECT_EQ(kb + ckb + qkb, raw_pinned(getpid()));
	ASSERT_EQ(0, user_srq(&self->ctx, &srq, smem));
	EXPECT_EQ(kb + ckb + qkb + (long)pages(SRQ_SIZE) / 1024, raw_pinned(getpid()));
	ASSERT_EQ(0, raw_destroy_srq(&srq, NULL));
	EXPECT_EQ(kb + ckb + qkb, raw_pinned(getpid()));
	ASSERT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(kb + ckb, raw_pinned(getpid()));
	ASSERT_EQ(0, raw_destroy_cq(&cq, NULL));
	EXPECT_EQ(kb, raw_pinned(getpid()));
}

TEST_F(user_queues, closing_unpins)
{
	long kb = raw_pinned(getpid());
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	ASSERT_EQ(0, user_cq(&ctx, &cq, memory(CQ_SIZE)));
	ASSERT_EQ(0, user_qp(&ctx, &qp, &cq, self->mem));
	EXPECT_LT(kb, raw_pinned(getpid()));
	raw_close(&ctx);
	EXPECT_EQ(kb, raw_pinned(getpid()));
}

/* Refused after it was pinned, or while it was: nothing stays so. */
TEST_F(user_queues, a_call_that_fails_leaves_nothing_pinned)
{
	long kb = raw_pinned(getpid());
	struct raw_srq srq;
	struct raw_cq cq;
	struct raw_qp qp;

	self->ctx.slot = self->cq.made.slot;
	EXPECT_EQ(-EBUSY, user_qp(&self->ctx, &qp, &self->cq, self->mem));
	EXPECT_EQ(-EBUSY, user_cq(&self->ctx, &cq, self->mem));
	EXPECT_EQ(-EBUSY, user_srq(&self->ctx, &srq, self->mem));
	self->ctx.slot++;
	self->ctx.pd += 0x10000;
	EXPECT_EQ(-EINVAL, user_qp(&self->ctx, &qp, &self->cq, self->mem));
	EXPECT_EQ(-EINVAL, user_srq(&self->ctx, &srq, self->mem));
	self->ctx.pd -= 0x10000;
	ASSERT_EQ(0, munmap(self->mem + 4096, pages(QP_SIZE)));
	EXPECT_EQ(-EFAULT, user_qp(&self->ctx, &qp, &self->cq, self->mem));
	EXPECT_EQ(kb, raw_pinned(getpid()));
	EXPECT_EQ(0, user_qp(&self->ctx, &qp, &self->cq, memory(QP_SIZE)));
}

TEST_F(user_queues, bad_addresses_are_refused)
{
	uint8_t *ro = mmap(NULL, pages(QP_SIZE), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw_cq cq;
	struct raw_qp qp;
	struct raw_srq srq;

	ASSERT_NE(MAP_FAILED, ro);
	EXPECT_EQ(-EINVAL, user_qp(&self->ctx, &qp, &self->cq, self->mem + 64));
	EXPECT_EQ(-EINVAL, user_cq(&self->ctx, &cq, self->mem + 1));
	EXPECT_EQ(-EINVAL, user_srq(&self->ctx, &srq, self->mem + 2048));
	EXPECT_EQ(-EINVAL, user_qp(&self->ctx, &qp, &self->cq, (void *)-4096l));
	EXPECT_EQ(-EFAULT, user_qp(&self->ctx, &qp, &self->cq, (void *)(1ul << 62)));
	EXPECT_EQ(-EFAULT, user_qp(&self->ctx, &qp, &self->cq, (void *)4096));
	EXPECT_EQ(-EFAULT, user_cq(&self->ctx, &cq, (void *)4096));
	EXPECT_EQ(-EFAULT, user_srq(&self->ctx, &srq, (void *)4096));
	EXPECT_EQ(-EACCES, user_qp(&self->ctx, &qp, &self->cq, ro));
	/* Neither is the device's own memory. */
	EXPECT_GT(0, user_cq(&self->ctx, &cq, self->ctx.uar_page));
	EXPECT_EQ(0, user_qp(&self->ctx, &qp, &self->cq, self->mem));
}

/* Without CAP_IPC_LOCK the limit counts. */
static int limited(uint8_t *mem)
{
	struct rlimit lim = { .rlim_cur = 4096, .rlim_max = 4096 };
	struct raw_ctx ctx;
	struct raw_cq cq, big = { .made = { .cqe = 2 * CQE, .channel_fd = VHCA_INVALID_FD,
					    .buf_addr = (uintptr_t)mem + 4096 } };

	if (setrlimit(RLIMIT_MEMLOCK, &lim) || setuid(65534) || raw_open(&ctx, 0))
		return 1;
	if (raw_make_cq(&ctx, &big) != -ENOMEM)
		return 2;
	if (user_cq(&ctx, &cq, mem))
		return 3;
	if (user_cq(&ctx, &big, mem + 4096) != -ENOMEM)
		return 4;
	if (raw_destroy_cq(&cq, NULL) || user_cq(&ctx, &big, mem + 4096))
		return 5;
	return 0;
}

TEST_F(user_queues, locked_memory_is_limited)
{
	EXPECT_EQ(0, RAW_CHILD(limited(memory(4 * 4096))));
}

/* The pages stay the device's; the process just cannot see them any more. */
TEST_F(user_queues, unmapping_them_is_harmless)
{
	uint8_t *cmem = memory(CQ_SIZE);
	struct raw_qp a, b;
	struct raw_cq cq;
	int i;

	ASSERT_EQ(0, user_cq(&self->ctx, &cq, cmem));
	ASSERT_EQ(0, user_qp(&self->ctx, &a, &self->cq, self->mem));
	ASSERT_EQ(0, raw_qp(&self->ctx, &b, &cq, &cq));
	ASSERT_EQ(0, raw_connect(&a, &b));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, raw_recv(&a, &self->mr, 4096, 64));
	ASSERT_EQ(0, munmap(cmem, pages(CQ_SIZE)));
	ASSERT_EQ(0, munmap(self->mem, pages(QP_SIZE)));
	/* What takes their place is not touched. */
	self->mem = mmap(self->mem, pages(QP_SIZE), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	for (i = 0; i < 4; i++) {
		struct raw_wc wc;

		/* Completes into the CQ that is not mapped, and out of the RQ. */
		ASSERT_EQ(0, raw_send(&b, VHCA_WQE_SIGNALED, &self->mr, 0, 8));
		ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
		EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	EXPECT_TRUE(all(self->mem, pages(QP_SIZE), 0));
	EXPECT_EQ(0, raw_destroy_qp(&a));
	EXPECT_EQ(0, raw_destroy_qp(&b));
	EXPECT_EQ(0, raw_destroy_cq(&cq, NULL));
}

TEST_F(user_queues, a_killed_owner_is_survived)
{
	int ready[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		struct raw_ctx ctx;
		struct raw_cq cq;
		struct raw_qp a, b;
		int i;

		if (raw_open(&ctx, 0) || user_cq(&ctx, &cq, memory(CQ_SIZE)) ||
		    user_qp(&ctx, &a, &cq, memory(QP_SIZE)) ||
		    user_qp(&ctx, &b, &cq, memory(QP_SIZE)) || raw_connect(&a, &b))
			_exit(1);
		for (i = 0; i < 8; i++)
			raw_send(&a, VHCA_WQE_SIGNALED, &self->mr, 0, 8);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	ASSERT_LT(0, pid);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &c, 1));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(pid));
	close(ready[0]);
}

TEST_HARNESS_MAIN
