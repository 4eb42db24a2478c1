// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open file owns its objects. Another cannot name, destroy
 * or reach them; what is in use cannot be taken away.
 */
#define _GNU_SOURCE
#include <grp.h>

#include "raw.h"

#include "harness.h"

FIXTURE(isolation) {
	struct raw_bed bed;
	struct raw_ctx other;	/* another open file: a UAR, a PD and nothing else */
};

FIXTURE_SETUP(isolation)
{
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
	ASSERT_EQ(0, raw_open(&self->other, 0));
}

FIXTURE_TEARDOWN(isolation)
{
	raw_close(&self->other);
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

/* Numbers of another file */

TEST_F(isolation, another_file_cannot_destroy_objects)
{
	struct raw_bed *bed = &self->bed;
	struct vhca_destroy_qp dqp = { .qpn = bed->p.a.made.qpn };
	struct vhca_destroy_cq dcq = { .cqn = bed->rcq.made.cqn };
	struct vhca_object pd = {};
	int fd = raw_open_file(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_ALLOC_PD, &pd));
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_DESTROY_QP, &dqp));
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_DESTROY_CQ, &dcq));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_DEREG_MR, bed->mr.lkey));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_PD, pd.number));
	EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_UAR, bed->ctx.uar.uar));
	EXPECT_EQ(0, raw_bed_message(bed, 0));
	close(fd);
}

TEST_F(isolation, another_file_cannot_modify_or_query_a_qp)
{
	struct vhca_modify_qp m = { .qpn = self->bed.p.a.made.qpn };

	EXPECT_EQ(-EINVAL, raw_ioctl(self->other.fd, VHCA_IOC_QUERY_QP, &m));
	m.mask = VHCA_QP_STATE;
	m.attr.state = VHCA_QPS_ERR;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->other.fd, VHCA_IOC_MODIFY_QP, &m));
	EXPECT_EQ(VHCA_QPS_RTS, raw_state(&self->bed.p.a));
}

TEST_F(isolation, another_file_cannot_kick)
{
	int fd = raw_open_file(0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_KICK,
				     (void *)VHCA_KICK_ARG(self->bed.ctx.uar.uar, 1)));
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_KICK, (void *)~0ul));
	close(fd);
}

TEST_F(isolation, a_kick_of_a_slot_without_an_object_does_no_harm)
{
	uint32_t slot;

	for (slot = 0; slot < VHCA_UAR_SLOTS; slot++)
		EXPECT_EQ(0, raw_kick(&self->bed.ctx, slot));
}

TEST_F(isolation, another_file_cannot_build_on_objects)
{
	struct raw_bed *bed = &self->bed;
	struct vhca_create_qp good = {
		.type = VHCA_QPT_RC, .uar = self->other.uar.uar, .pd = self->other.pd,
	}, c;
	int fd = raw_open_file(0);
	struct raw_cq cq;
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)bed->mr.addr, .length = 4096,
		.iova = (uintptr_t)bed->mr.addr, .pd = bed->ctx.pd,
	};

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	good.slot = self->other.slot;
	good.send_cqn = cq.made.cqn;
	good.recv_cqn = cq.made.cqn;

	/* Numbers of the bed are nothing in a file without objects... */
	cq.made.uar = bed->ctx.uar.uar;
	cq.made.slot = 60;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_CQ, &cq.made));
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_REG_MR, &r));
	/* ...and CQs of the bed are nothing in one with its own. */
	c = good;
	c.send_cqn = bed->scq.made.cqn;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->other.fd, VHCA_IOC_CREATE_QP, &c));
	c = good;
	c.recv_cqn = bed->scq.made.cqn;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->other.fd, VHCA_IOC_CREATE_QP, &c));
	c = good;
	EXPECT_EQ(0, raw_ioctl(self->other.fd, VHCA_IOC_CREATE_QP, &c));
	close(fd);
}

TEST_F(isolation, numbers_that_name_nothing_are_einval)
{
	static const uint32_t wrong[] = { 0, 0x7fffff, 0xffffff, 0x1000000, 0xffffffff };
	int fd = raw_open_file(0);
	unsigned int i;

	ASSERT_LE(0, fd);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_destroy_qp dqp = { .qpn = wrong[i] };
		struct vhca_destroy_cq dcq = { .cqn = wrong[i] };
		struct vhca_modify_qp m = { .qpn = wrong[i] };

		EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_DESTROY_QP, &dqp));
		EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_DESTROY_CQ, &dcq));
		EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_QUERY_QP, &m));
		EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_DEREG_MR, wrong[i]));
		EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_PD, wrong[i]));
		EXPECT_EQ(-EINVAL, raw_free(fd, VHCA_IOC_FREE_UAR, wrong[i]));
	}
	close(fd);
}

/* Data of another file */

TEST_F(isolation, a_key_of_another_file_is_refused)
{
	struct raw_wc wc;
	struct raw_cq cq;
	struct raw_pair p;

	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_pair(&self->other, &p, &cq, &cq));
	ASSERT_EQ(0, raw_send(&p.a, 0, &self->bed.mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(VHCA_VERR_KEY_PD, wc.vendor_err);
}

TEST_F(isolation, a_qp_takes_no_message_from_one_it_is_not_connected_to)
{
	struct vhca_qp_attr attr = raw_attr(self->bed.ctx.lid, self->bed.p.b.made.qpn);
	struct raw_mr mr;
	struct raw_wc wc;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->other, &qp, &cq, &cq));
	ASSERT_EQ(0, raw_mr(&self->other, &mr, 4096));
	attr.timeout = 1;
	attr.retry_cnt = 1;
	ASSERT_EQ(0, raw_climb(&qp, VHCA_QPS_RTS, attr));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_send(&qp, 0, &mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
	EXPECT_EQ(VHCA_CQE_RETRY_EXC_ERR, wc.status);
	EXPECT_FALSE(raw_poll(&self->bed.rcq, &wc));
	/* The receive is still there for the right one. */
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
}

TEST_F(isolation, a_doorbell_can_name_what_it_likes_and_rings_its_own_slot)
{
	struct raw_bed *bed = &self->bed;
	struct raw_cq cq;
	struct raw_pair p;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_pair(&self->other, &p, &cq, &cq));
	/* Built and produced, not rung; the other rings in its name. */
	ASSERT_EQ(0, raw_recv(&bed->p.b, &bed->mr, 0, 64));
	raw_build_send(&bed->p.a, 0, NULL, 0);
	raw_produce(&bed->p.a, 1);
	ASSERT_EQ(0, raw_ring(&self->other, p.a.made.slot, raw_qp_doorbell(&bed->p.a)));
	/* What the other's own QP has to do is done, so the doorbell was seen. */
	ASSERT_EQ(0, raw_goto(&p.b, VHCA_QPS_ERR));
	ASSERT_EQ(0, raw_recv_sge(&p.b, (struct vhca_wqe_data) {}));
	ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
	EXPECT_EQ(p.b.made.qpn, wc.qpn);
	EXPECT_FALSE(raw_poll(&bed->rcq, &wc));
	ASSERT_EQ(0, raw_ring_qp(&bed->p.a));
	EXPECT_EQ(0, raw_wait_wc(&bed->rcq, &wc));
}

/* In use */

TEST_F(isolation, a_slot_in_use_is_ebusy)
{
	struct raw_ctx *ctx = &self->bed.ctx;
	struct raw_cq cq;
	struct raw_qp qp;

	ctx->slot = self->bed.rcq.made.slot;
	EXPECT_EQ(-EBUSY, raw_cq(ctx, &cq, 16, VHCA_INVALID_FD));
	EXPECT_EQ(-EBUSY, raw_qp(ctx, &qp, &self->bed.scq, &self->bed.scq));
	ctx->slot = self->bed.p.a.made.slot;
	EXPECT_EQ(-EBUSY, raw_cq(ctx, &cq, 16, VHCA_INVALID_FD));
	EXPECT_EQ(-EBUSY, raw_qp(ctx, &qp, &self->bed.scq, &self->bed.scq));
	/* And free again with the object. */
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	EXPECT_EQ(0, raw_qp(ctx, &qp, &self->bed.scq, &self->bed.scq));
}

TEST_F(isolation, a_slot_out_of_range_is_einval)
{
	static const uint32_t wrong[] = { 0, 64, 65, 0x10001, 0xffffffff };
	struct raw_cq cq;
	struct raw_qp qp;
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		self->bed.ctx.slot = wrong[i];
		EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, VHCA_INVALID_FD));
		EXPECT_EQ(-EINVAL, raw_qp(&self->bed.ctx, &qp, &self->bed.scq, &self->bed.scq));
	}
}

TEST_F(isolation, a_uar_is_ebusy_while_a_cq_or_qp_uses_it)
{
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->other, &qp, &cq, &cq));
	EXPECT_EQ(-EBUSY, raw_free(self->other.fd, VHCA_IOC_FREE_UAR, self->other.uar.uar));
	ASSERT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(-EBUSY, raw_free(self->other.fd, VHCA_IOC_FREE_UAR, self->other.uar.uar));
	ASSERT_EQ(0, raw_destroy_cq(&cq, NULL));
	EXPECT_EQ(0, raw_free(self->other.fd, VHCA_IOC_FREE_UAR, self->other.uar.uar));
}

TEST_F(isolation, a_pd_is_ebusy_while_an_mr_or_qp_uses_it)
{
	struct raw_cq cq;
	struct raw_qp qp;
	struct raw_mr mr;

	ASSERT_EQ(0, raw_cq(&self->other, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_mr(&self->other, &mr, 4096));
	EXPECT_EQ(-EBUSY, raw_free(self->other.fd, VHCA_IOC_FREE_PD, self->other.pd));
	ASSERT_EQ(0, raw_qp(&self->other, &qp, &cq, &cq));
	ASSERT_EQ(0, raw_dereg(&self->other, &mr));
	EXPECT_EQ(-EBUSY, raw_free(self->other.fd, VHCA_IOC_FREE_PD, self->other.pd));
	ASSERT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(0, raw_free(self->other.fd, VHCA_IOC_FREE_PD, self->other.pd));
}

TEST_F(isolation, a_cq_is_ebusy_while_a_qp_uses_it)
{
	struct raw_cq scq, rcq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_cq(&self->other, &scq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_cq(&self->other, &rcq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->other, &qp, &scq, &rcq));
	EXPECT_EQ(-EBUSY, raw_destroy_cq(&scq, NULL));
	EXPECT_EQ(-EBUSY, raw_destroy_cq(&rcq, NULL));
	ASSERT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(0, raw_destroy_cq(&scq, NULL));
	EXPECT_EQ(0, raw_destroy_cq(&rcq, NULL));
	EXPECT_EQ(-EINVAL, raw_destroy_cq(&rcq, NULL));
}

TEST_F(isolation, an_object_refused_as_busy_still_works)
{
	EXPECT_EQ(-EBUSY, raw_destroy_cq(&self->bed.rcq, NULL));
	EXPECT_EQ(-EBUSY, raw_destroy_cq(&self->bed.scq, NULL));
	EXPECT_EQ(-EBUSY, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_PD, self->bed.ctx.pd));
	EXPECT_EQ(-EBUSY, raw_free(self->bed.ctx.fd, VHCA_IOC_FREE_UAR, self->bed.ctx.uar.uar));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

/* Users */

static int as_nobody(void)
{
	struct raw_bed bed;

	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return 1;
	if (raw_bed(&bed, 0))
		return 2;
	if (raw_bed_fire(&bed))
		return 3;
	return raw_bed_events(&bed) == 1 ? 0 : 4;
}

TEST_F(isolation, any_user_may_use_the_device)
{
	EXPECT_EQ(0, RAW_CHILD(as_nobody()));
}

TEST_F(isolation, counters_are_for_root)
{
	EXPECT_EQ(0, RAW_CHILD(setuid(65534) ||
			       access("/sys/kernel/debug/vhca/vhca0/counters", R_OK) == 0 ||
			       access("/sys/kernel/debug/vhca_device/0/counters", R_OK) == 0));
}

TEST_HARNESS_MAIN
