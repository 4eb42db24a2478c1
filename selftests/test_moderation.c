// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moderation of a CQ's events: by count, by time, and that none is lost.
 */
#include "raw.h"

#include "harness.h"

FIXTURE(moderation) {
	struct raw_bed bed;
	struct raw_cq *cq;
};

/* Each test with both engines. */
FIXTURE_VARIANT(moderation) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(moderation, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(moderation, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(moderation)
{
	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
	self->cq = &self->bed.rcq;
}

FIXTURE_TEARDOWN(moderation)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
	raw_engine("inline");
}

static int messages(struct raw_bed *bed, int n, uint8_t flags)
{
	int err = 0;

	while (!err && n--)
		err = raw_bed_message(bed, flags);
	return err;
}

TEST_F(moderation, the_device_tells_its_limits)
{
	struct vhca_query_device q = {};
	uint32_t cqn = self->cq->made.cqn;
	struct vhca_modify_cq bad[] = {
		{ .cqn = cqn, .count = 65536 },
		{ .cqn = cqn, .period = 65536 },
		{ .cqn = cqn, .rsvd = 1 },
		{ .cqn = cqn + 1000 },
	};
	unsigned int i;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(65535, q.max_cq_count);
	EXPECT_EQ(65535, q.max_cq_period);
	EXPECT_EQ(0, raw_moderate(self->cq, q.max_cq_count, q.max_cq_period));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_MODIFY_CQ, &bad[i]));
}

TEST_F(moderation, an_arm_fires_after_count_cqes)
{
	int round;

	ASSERT_EQ(0, raw_moderate(self->cq, 4, 0));
	for (round = 0; round < 6; round++) {
		ASSERT_EQ(0, raw_arm(self->cq, false));
		ASSERT_EQ(0, messages(&self->bed, 3, 0));
		ASSERT_EQ(0, raw_bed_events(&self->bed));
		ASSERT_EQ(0, messages(&self->bed, 1, 0));
		ASSERT_EQ(1, raw_bed_events(&self->bed));
		/* Fired: nothing more until it is armed. */
		ASSERT_EQ(0, messages(&self->bed, 4, 0));
		ASSERT_EQ(0, raw_bed_events(&self->bed));
	}
}

TEST_F(moderation, counts_of_0_and_1_mean_the_first)
{
	uint32_t count;

	for (count = 0; count < 2; count++) {
		ASSERT_EQ(0, raw_moderate(self->cq, count, 0));
		ASSERT_EQ(0, raw_bed_fire(&self->bed));
		EXPECT_EQ(1, raw_bed_events(&self->bed));
	}
}

TEST_F(moderation, a_count_may_be_larger_than_the_ring)
{
	uint32_t n = self->cq->made.cqe * 2;

	ASSERT_EQ(0, raw_moderate(self->cq, n, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, n - 1, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, messages(&self->bed, 1, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(moderation, a_solicited_arm_counts_solicited_cqes)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 3, 0));
	ASSERT_EQ(0, raw_arm(self->cq, true));
	ASSERT_EQ(0, messages(&self->bed, 2, VHCA_WQE_SOLICITED));
	ASSERT_EQ(0, messages(&self->bed, 10, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, messages(&self->bed, 1, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(moderation, cqes_that_are_there_when_it_is_armed_count)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 3, 0));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 2, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
	/* Now there are three. */
	ASSERT_EQ(0, raw_arm(self->cq, false));
	EXPECT_EQ(0, raw_cq_event(self->cq));
}

TEST_F(moderation, of_those_a_solicited_arm_counts_its_own)
{
	struct raw_wc wc;
	int i, lap;

	ASSERT_EQ(0, raw_moderate(self->cq, 3, 0));
	for (lap = 0; lap < 60; lap++) {
		ASSERT_EQ(0, raw_bed_leave(&self->bed, 4, 0));
		ASSERT_EQ(0, raw_bed_leave(&self->bed, 2, VHCA_WQE_SOLICITED));
		ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, 0));
		ASSERT_EQ(0, raw_arm(self->cq, true));
		ASSERT_EQ(0, raw_bed_events(&self->bed));
		ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, VHCA_WQE_SOLICITED));
		ASSERT_EQ(1, raw_bed_events(&self->bed));
		for (i = 0; i < 8; i++)
			ASSERT_TRUE(raw_poll(self->cq, &wc));
	}
}

TEST_F(moderation, a_repeated_arm_counts_what_is_unread)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 3, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, 2, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, 2, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, messages(&self->bed, 1, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(moderation, a_completion_in_error_does_not_wait)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_moderate(self->cq, 100, 0));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_arm(self->cq, true));
	ASSERT_EQ(0, raw_goto(&self->bed.p.b, VHCA_QPS_ERR));
	ASSERT_EQ(0, raw_wait_wc(self->cq, &wc));
	EXPECT_EQ(VHCA_CQE_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(moderation, when_the_period_is_over_fewer_are_enough)
{
	int round;

	ASSERT_EQ(0, raw_moderate(self->cq, 100, 500));
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, raw_arm(self->cq, round & 1));
		ASSERT_EQ(0, messages(&self->bed, 2, VHCA_WQE_SOLICITED));
		ASSERT_EQ(0, raw_cq_event(self->cq));
	}
	/* One each, and none for what was not armed. */
	ASSERT_EQ(0, messages(&self->bed, 2, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(moderation, the_period_runs_for_cqes_that_are_there_when_it_is_armed)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 100, 500));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	EXPECT_EQ(0, raw_cq_event(self->cq));
}

TEST_F(moderation, the_period_of_an_arm_that_fired_is_not_the_next_ones)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 2, 65535));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, 2, 0));
	ASSERT_EQ(0, raw_cq_event(self->cq));
	/* Armed, and nothing there: time alone raises no event. */
	ASSERT_EQ(0, raw_moderate(self->cq, 2, 1));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	EXPECT_EQ(0, raw_readable(self->bed.channel, 100));
}

TEST_F(moderation, an_arm_that_waits_goes_by_new_values)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 100, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, 5, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_moderate(self->cq, 5, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));

	ASSERT_EQ(0, raw_moderate(self->cq, 100, 0));
	ASSERT_EQ(0, raw_arm(self->cq, false));
	ASSERT_EQ(0, messages(&self->bed, 1, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_moderate(self->cq, 100, 300));
	EXPECT_EQ(0, raw_cq_event(self->cq));
}

TEST_F(moderation, a_cq_may_go_while_its_period_runs)
{
	struct raw_cq cq;
	struct raw_pair p;
	int i;

	for (i = 0; i < 10; i++) {
		self->bed.ctx.slot = 20;
		ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq, 16, self->bed.channel));
		ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.scq, &cq));
		ASSERT_EQ(0, raw_moderate(&cq, 100, i * 300 + 1));
		ASSERT_EQ(0, raw_arm(&cq, false));
		ASSERT_EQ(0, raw_message(&p, &self->bed.mr, 0, 8));
		ASSERT_EQ(0, raw_destroy_qp(&p.a));
		ASSERT_EQ(0, raw_destroy_qp(&p.b));
		ASSERT_EQ(0, raw_destroy_cq(&cq, NULL));
	}
}

#define IN_FLIGHT	32	/* at most, fewer than the queues hold */

/*
 * Arms, polls until empty, waits: each message is seen at last, whatever the load. An
 * event may come when a few of a burst are done: the others are still in the queues.
 */
TEST_F(moderation, with_a_period_no_wake_up_is_lost)
{
	unsigned int seen = 0, sent = 0, burst, i;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_moderate(self->cq, 7, 200));
	for (burst = 1; seen < 1500; burst = burst % 17 + 1) {
		ASSERT_EQ(0, raw_arm(self->cq, false));
		for (i = 0; i < burst && sent - seen < IN_FLIGHT; i++, sent++)
			ASSERT_EQ(0, raw_message(&self->bed.p, &self->bed.mr, 0, 8));
		while (raw_poll(self->cq, &wc))
			seen++;
		ASSERT_EQ(0, raw_cq_event(self->cq));
		while (raw_poll(self->cq, &wc))
			seen++;
	}
	for (; seen < sent; seen++)
		ASSERT_EQ(0, raw_wait_wc(self->cq, &wc));
	EXPECT_FALSE(raw_poll(self->cq, &wc));
}

TEST_HARNESS_MAIN
