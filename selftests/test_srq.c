// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared receive queues by ioctl: making and refusing them, whose
 * they are, who uses them, their limit and its event, and how they go.
 */
#include "raw.h"

#include "harness.h"

FIXTURE(srq) {
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_srq srq;
	struct raw_mr mr;
	int async;
};

FIXTURE_SETUP(srq)
{
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->cq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_mr(&self->ctx, &self->mr, 8192));
	ASSERT_EQ(0, raw_srq(&self->ctx, &self->srq, 0));
	self->async = raw_event_file(self->ctx.fd, VHCA_IOC_OPEN_ASYNC);
	ASSERT_LE(0, self->async);
}

FIXTURE_TEARDOWN(srq)
{
	close(self->async);
	raw_close(&self->ctx);
}

static int limit(struct raw_srq *srq, uint32_t val)
{
	struct vhca_modify_srq m = { .srqn = srq->made.srqn, .limit = val };

	return raw_ioctl(srq->ctx->fd, VHCA_IOC_MODIFY_SRQ, &m);
}

/* The limit, or a negative errno. */
static int query(struct raw_srq *srq)
{
	struct vhca_modify_srq m = { .srqn = srq->made.srqn, .limit = 77 };
	int err = raw_ioctl(srq->ctx->fd, VHCA_IOC_QUERY_SRQ, &m);

	return err ? err : (int)m.limit;
}

/* A pair that sends from @a to @b, which takes receives from the SRQ. */
static int pair(struct raw_ctx *ctx, struct raw_qp *a, struct raw_qp *b, struct raw_cq *cq,
		struct raw_srq *srq)
{
	int err = raw_qp(ctx, a, cq, cq);

	if (!err)
		err = raw_qp_srq(ctx, b, VHCA_QPT_RC, cq, srq->made.srqn);
	return err ? err : raw_connect(a, b);
}

/* Send @n messages, each of which takes a WQE of the SRQ, one after the other. */
static int messages(struct raw_qp *a, struct raw_cq *cq, const struct raw_mr *mr, int n)
{
	struct raw_wc wc;
	int err = 0;

	for (; !err && n; n--) {
		err = raw_send(a, 0, mr, 0, 8);
		if (!err)
			err = raw_wait_wc(cq, &wc);
		if (!err && wc.status)
			err = wc.status;
	}
	return err;
}

TEST_F(srq, its_receives_come_with_tag_and_number)
{
	struct raw_qp a, b;
	struct vhca_cqe *cqe;
	int i;

	ASSERT_EQ(0, pair(&self->ctx, &a, &b, &self->cq, &self->srq));
	for (i = 0; i < 4; i++)
		raw_srq_recv(&self->srq, &self->mr, 4096, 64);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, raw_send(&a, 0, &self->mr, 0, 8));
		ASSERT_TRUE(RAW_WAIT(raw_next_cqe(&self->cq)));
		cqe = raw_next_cqe(&self->cq);
		EXPECT_EQ(self->srq.made.srqn, be32toh(cqe->srqn));
		EXPECT_EQ(VHCA_CQE_F_SRQ, be32toh(cqe->flags_qpn) >> VHCA_CQE_FLAGS_SHIFT);
		EXPECT_EQ(b.made.qpn, be32toh(cqe->flags_qpn) & VHCA_QPN_MASK);
		EXPECT_EQ(i, be16toh(cqe->wqe_index));
		self->cq.ci++;
		raw_store32(&raw_cq_dbr(&self->cq)->ci, self->cq.ci);
	}
}

TEST_F(srq, fields_that_are_wrong_are_einval_and_leave_the_slot_free)
{
	static const struct vhca_create_srq wrong[] = {
		{ .type = 2, .sge_shift = 1 },
		{ .type = 0, .sge_shift = 0 },
		{ .type = 0, .sge_shift = 6 },
		{ .type = 0, .sge_shift = 1, .shift = 16 },
		{ .type = 0, .sge_shift = 1, .shift = 2, .limit = 5 },
		{ .type = 0, .sge_shift = 1, .rsvd[1] = 1 },
		{ .type = 0, .sge_shift = 1, .xrcd = 1 },
		{ .type = 0, .sge_shift = 1, .cqn = 1 },
		{ .type = 1, .sge_shift = 1 },
		{ .type = 1, .sge_shift = 1, .xrcd = 1000 },
		{ .type = 0, .sge_shift = 1, .buf_addr = 8 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct raw_srq srq = { .made = wrong[i] };

		EXPECT_EQ(-EINVAL, raw_make_srq(&self->ctx, &srq)) {
			TH_LOG("case %u", i);
		}
	}
	{
		struct raw_srq good = { .made = { .sge_shift = 1, .shift = 2, .limit = 4 } };

		EXPECT_EQ(0, raw_make_srq(&self->ctx, &good));
		EXPECT_EQ(4096u, good.made.buf_size);
	}
}

TEST_F(srq, a_pd_or_slot_that_is_not_there_or_taken_is_refused)
{
	struct vhca_create_srq s = {
		.sge_shift = 1, .pd = 0xfffff, .uar = self->ctx.uar.uar, .slot = self->ctx.slot,
	};

	EXPECT_EQ(-EINVAL, raw_ioctl(self->ctx.fd, VHCA_IOC_CREATE_SRQ, &s));
	s.pd = self->ctx.pd;
	s.slot = 0;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->ctx.fd, VHCA_IOC_CREATE_SRQ, &s));
	s.slot = VHCA_UAR_SLOTS;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->ctx.fd, VHCA_IOC_CREATE_SRQ, &s));
	s.slot = self->srq.made.slot;
	EXPECT_EQ(-EBUSY, raw_ioctl(self->ctx.fd, VHCA_IOC_CREATE_SRQ, &s));
}

TEST_F(srq, another_file_cannot_name_it)
{
	struct vhca_destroy_srq d = { .srqn = self->srq.made.srqn };
	struct raw_srq theirs = self->srq;
	struct raw_ctx other;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_open(&other, 0));
	ASSERT_EQ(0, raw_cq(&other, &cq, 16, VHCA_INVALID_FD));
	theirs.ctx = &other;
	EXPECT_EQ(-EINVAL, limit(&theirs, 1));
	EXPECT_EQ(-EINVAL, query(&theirs));
	EXPECT_EQ(-EINVAL, raw_ioctl(other.fd, VHCA_IOC_DESTROY_SRQ, &d));
	EXPECT_EQ(-EINVAL, raw_qp_srq(&other, &qp, VHCA_QPT_RC, &cq, self->srq.made.srqn));
	EXPECT_EQ(NULL, raw_map(other.fd, self->srq.made.buf_offset, 2 * 4096));
	raw_close(&other);
	EXPECT_EQ(0, query(&self->srq));
}

TEST_F(srq, it_is_busy_while_a_qp_uses_it)
{
	struct raw_qp qp[3];
	static const uint32_t types[3] = { VHCA_QPT_RC, VHCA_QPT_UC, VHCA_QPT_UD };
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, raw_qp_srq(&self->ctx, &qp[i], types[i], &self->cq,
					self->srq.made.srqn));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-EBUSY, raw_destroy_srq(&self->srq, NULL));
		ASSERT_EQ(0, raw_destroy_qp(&qp[i]));
	}
	EXPECT_EQ(0, raw_destroy_srq(&self->srq, NULL));
	EXPECT_EQ(-EINVAL, raw_destroy_srq(&self->srq, NULL));
}

TEST_F(srq, pd_and_uar_are_busy_while_it_is_there)
{
	EXPECT_EQ(0, raw_dereg(&self->ctx, &self->mr));
	EXPECT_EQ(-EBUSY, raw_free(self->ctx.fd, VHCA_IOC_FREE_PD, self->ctx.pd));
	EXPECT_EQ(0, raw_destroy_cq(&self->cq, NULL));
	EXPECT_EQ(-EBUSY, raw_free(self->ctx.fd, VHCA_IOC_FREE_UAR, self->ctx.uar.uar));
	EXPECT_EQ(0, raw_destroy_srq(&self->srq, NULL));
	EXPECT_EQ(0, raw_free(self->ctx.fd, VHCA_IOC_FREE_PD, self->ctx.pd));
	EXPECT_EQ(0, raw_free(self->ctx.fd, VHCA_IOC_FREE_UAR, self->ctx.uar.uar));
}

TEST_F(srq, a_qp_with_it_has_no_rq)
{
	struct raw_qp qp = { .made = { .srqn = self->srq.made.srqn, .rq_shift = 1 } };

	EXPECT_EQ(-EINVAL, raw_make_qp(&self->ctx, &qp, &self->cq, &self->cq));
	qp.made.rq_shift = 0;
	qp.made.rq_sge_shift = 1;
	EXPECT_EQ(-EINVAL, raw_make_qp(&self->ctx, &qp, &self->cq, &self->cq));
	qp.made.rq_sge_shift = 0;
	qp.made.sq_shift = 6;
	EXPECT_EQ(0, raw_make_qp(&self->ctx, &qp, &self->cq, &self->cq));
	EXPECT_EQ(4096u, qp.made.buf_size);
}

TEST_F(srq, the_limit_is_what_was_set_and_within_the_ring)
{
	int i;

	for (i = 0; i < 1 << RAW_SRQ_SHIFT; i++)
		raw_srq_recv(&self->srq, &self->mr, 4096, 64);
	EXPECT_EQ(0, query(&self->srq));
	EXPECT_EQ(0, limit(&self->srq, 1 << RAW_SRQ_SHIFT));
	EXPECT_EQ(1 << RAW_SRQ_SHIFT, query(&self->srq));
	EXPECT_EQ(-EINVAL, limit(&self->srq, (1 << RAW_SRQ_SHIFT) + 1));
	EXPECT_EQ(-EINVAL, limit(&self->srq, 0x80000000));
	EXPECT_EQ(1 << RAW_SRQ_SHIFT, query(&self->srq));
	EXPECT_EQ(0, limit(&self->srq, 0));
	EXPECT_EQ(0, query(&self->srq));
}

TEST_F(srq, a_limit_that_is_not_reached_when_it_is_set_is_an_event_at_once)
{
	struct vhca_async_event ev;
	struct raw_srq made;

	ASSERT_EQ(0, limit(&self->srq, 1));
	ASSERT_EQ(0, raw_read_async(self->async, &ev));
	EXPECT_EQ(VHCA_EVENT_SRQ_LIMIT_REACHED, (int)ev.type);
	EXPECT_EQ(self->srq.made.srqn, ev.number);
	EXPECT_EQ(0, query(&self->srq));
	/* A new one is empty, and waits for the first that is taken. */
	ASSERT_EQ(0, raw_srq(&self->ctx, &made, 3));
	EXPECT_EQ(3, query(&made));
}

TEST_F(srq, the_limit_event_comes_once_with_the_cookie_and_is_counted)
{
	struct vhca_destroy_srq d = {};
	struct vhca_async_event ev;
	struct raw_qp a, b;
	int i;

	ASSERT_EQ(0, pair(&self->ctx, &a, &b, &self->cq, &self->srq));
	for (i = 0; i < 8; i++)
		raw_srq_recv(&self->srq, &self->mr, 4096, 64);
	ASSERT_EQ(0, limit(&self->srq, 6));
	ASSERT_EQ(0, messages(&a, &self->cq, &self->mr, 2));
	EXPECT_EQ(0, raw_readable(self->async, 0));
	EXPECT_EQ(6, query(&self->srq));
	ASSERT_EQ(0, messages(&a, &self->cq, &self->mr, 3));
	ASSERT_EQ(0, raw_read_async(self->async, &ev));
	EXPECT_EQ(VHCA_EVENT_SRQ_LIMIT_REACHED, (int)ev.type);
	EXPECT_EQ(self->srq.made.srqn, ev.number);
	EXPECT_EQ(self->srq.made.cookie, ev.cookie);
	EXPECT_EQ(0, query(&self->srq));

	/* Armed again, it comes again; not before. */
	ASSERT_EQ(0, limit(&self->srq, 3));
	ASSERT_EQ(0, messages(&a, &self->cq, &self->mr, 1));
	ASSERT_EQ(0, raw_read_async(self->async, &ev));
	EXPECT_EQ(VHCA_EVENT_SRQ_LIMIT_REACHED, (int)ev.type);
	EXPECT_EQ(0, raw_readable(self->async, 0));
	ASSERT_EQ(0, raw_destroy_qp(&b));
	ASSERT_EQ(0, raw_destroy_srq(&self->srq, &d));
	EXPECT_EQ(2u, d.async_events);
}

TEST_F(srq, an_unread_event_goes_with_it)
{
	struct vhca_destroy_srq d = {};
	struct raw_qp a, b;

	ASSERT_EQ(0, pair(&self->ctx, &a, &b, &self->cq, &self->srq));
	raw_srq_recv(&self->srq, &self->mr, 4096, 64);
	ASSERT_EQ(0, limit(&self->srq, 1));
	ASSERT_EQ(0, messages(&a, &self->cq, &self->mr, 1));
	ASSERT_EQ(1, raw_readable(self->async, RAW_DEADLINE_MS));
	ASSERT_EQ(0, raw_destroy_qp(&b));
	ASSERT_EQ(0, raw_destroy_srq(&self->srq, &d));
	EXPECT_EQ(0u, d.async_events);
	EXPECT_EQ(0, raw_readable(self->async, 0));
}

/* Whatever is left is destroyed in the right order, and the numbers come back. */
TEST_F(srq, closing_gives_all_back)
{
	struct vhca_query_device q = {};
	uint32_t i, rounds;

	ASSERT_EQ(0, raw_ioctl(self->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	rounds = q.max_srq / 40 + 2;
	if (rounds > 200)
		rounds = 200;
	for (i = 0; i < rounds; i++) {
		struct raw_srq srq;
		struct raw_ctx ctx;
		struct raw_cq cq;
		struct raw_qp qp;
		int n;

		ASSERT_EQ(0, raw_open(&ctx, 0));
		ASSERT_EQ(0, raw_cq(&ctx, &cq, 16, VHCA_INVALID_FD));
		for (n = 0; n < 40; n++)
			ASSERT_EQ(0, raw_srq(&ctx, &srq, 0));
		ASSERT_EQ(0, raw_qp_srq(&ctx, &qp, VHCA_QPT_RC, &cq, srq.made.srqn));
		raw_close(&ctx);
	}
}

TEST_F(srq, a_killed_owner_leaves_nothing)
{
	int ready[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		struct raw_qp a, b;
		struct raw_srq srq;
		struct raw_ctx ctx;
		struct raw_cq cq;
		struct raw_mr mr;

		if (raw_open(&ctx, 0) || raw_cq(&ctx, &cq, 16, VHCA_INVALID_FD) ||
		    raw_mr(&ctx, &mr, 8192) || raw_srq(&ctx, &srq, 1) ||
		    pair(&ctx, &a, &b, &cq, &srq))
			_exit(1);
		raw_srq_recv(&srq, &mr, 4096, 64);
		raw_send(&a, 0, &mr, 0, 8);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	ASSERT_LT(0, pid);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &c, 1));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(pid));
	close(ready[0]);
	EXPECT_EQ(0, query(&self->srq));
}

TEST_HARNESS_MAIN
