// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arming a CQ by hand, and which completions raise an event.
 */
#include "raw.h"

#include "harness.h"

FIXTURE(notify) {
	struct raw_bed bed;
};

/* Each test with both engines. */
FIXTURE_VARIANT(notify) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(notify, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(notify, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(notify)
{
	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
}

FIXTURE_TEARDOWN(notify)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
	raw_engine("inline");
}

TEST_F(notify, a_cq_that_was_not_armed_raises_none)
{
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_is_one_shot)
{
	int i;

	ASSERT_EQ(0, raw_arm(&self->bed.rcq, false));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(notify, each_arm_fires_once_and_the_sequence_number_wraps)
{
	int i;

	for (i = 1; i <= 20; i++) {
		ASSERT_EQ(0, raw_bed_fire(&self->bed));
		ASSERT_EQ(1, raw_bed_events(&self->bed));
		ASSERT_EQ(i & VHCA_ARM_SN_MASK,
			  raw_load32(&raw_cq_dbr(&self->bed.rcq)->fired));
	}
}

TEST_F(notify, a_solicited_arm_waits_for_a_solicited_message)
{
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_for_any_fires_on_a_solicited_message_too)
{
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, false));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, the_cqe_tells_that_the_message_was_solicited)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_message(&self->bed.p, &self->bed.mr, VHCA_WQE_SOLICITED, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_F_SOLICITED, wc.flags);
	ASSERT_EQ(0, raw_message(&self->bed.p, &self->bed.mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(0, wc.flags);
}

TEST_F(notify, a_completion_in_error_fires_a_solicited_arm)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	ASSERT_EQ(0, raw_goto(&self->bed.p.b, VHCA_QPS_ERR));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, a_send_completion_in_error_fires_a_solicited_arm)
{
	struct vhca_wqe_data sge = { .byte_count = htobe32(8) };
	struct raw_pair p;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.rcq, &self->bed.scq));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	raw_build_send(&p.a, 0, &sge, 1);
	ASSERT_EQ(0, raw_post_built(&p.a));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_on_a_cq_that_holds_cqes_fires_at_once)
{
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 3, 0));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, false));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
}

TEST_F(notify, a_solicited_arm_fires_at_once_only_on_a_solicited_cqe)
{
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 3, 0));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
}

TEST_F(notify, a_solicited_arm_outlives_laps_of_the_ring)
{
	unsigned int i;

	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	for (i = 0; i < 2 * self->bed.rcq.made.cqe; i++)
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, one_event_may_cover_many_cqes_or_none)
{
	struct raw_wc wc;
	int i;

	ASSERT_EQ(0, raw_arm(&self->bed.rcq, false));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 10, 0));
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(raw_poll(&self->bed.rcq, &wc));
	EXPECT_FALSE(raw_poll(&self->bed.rcq, &wc));
	/* It comes all the same; the CQ is found empty. */
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_word_found_again_after_it_fired_fires_no_more)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t arm = raw_arm_word(cq, cq->events + 1, cq->ci, false);

	ASSERT_EQ(0, raw_arm_with(cq, arm));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
	/* The same number, with another consumer index, another mode, a doorbell. */
	ASSERT_EQ(0, raw_arm_with(cq, arm));
	ASSERT_EQ(0, raw_ring_arm(cq, arm));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	arm = raw_arm_word(cq, 1, cq->ci, true);
	ASSERT_EQ(0, raw_arm_with(cq, arm));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	ASSERT_EQ(0, raw_ring_arm(cq, arm));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_repeated_before_it_fired_fires_once)
{
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
	ASSERT_EQ(0, raw_arm(&self->bed.rcq, false));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	ASSERT_EQ(0, raw_bed_message(&self->bed, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

TEST_F(notify, a_doorbell_that_repeats_an_arm_fires_once)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t arm = raw_arm_word(cq, 1, cq->ci, false);
	int i;

	ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, 0));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, raw_arm_with(cq, arm));
		ASSERT_EQ(0, raw_kick(cq->ctx, cq->made.slot));
	}
	EXPECT_EQ(0, raw_cq_event(cq));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(notify, a_number_that_is_not_the_next_does_not_arm)
{
	struct raw_cq *cq = &self->bed.rcq;
	int sn;

	for (sn = 2; sn < 5; sn++) {
		ASSERT_EQ(0, raw_arm_with(cq, raw_arm_word(cq, sn, cq->ci, false)));
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	}
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(notify, an_arm_with_an_old_consumer_index_fires_at_its_doorbell)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t arm = raw_arm_word(cq, 1, cq->ci, false);

	/* One CQE came and went behind the arm's back. */
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	raw_store32(&raw_cq_dbr(cq)->arm, arm);
	ASSERT_EQ(0, raw_ring_arm(cq, arm));
	EXPECT_EQ(0, raw_cq_event(cq));
}

/* Who arms has read the index, and others have polled more than a ring since. */
TEST_F(notify, an_arm_older_than_the_ring_fires_on_the_next_cqe)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t i, arm = raw_arm_word(cq, 1, cq->ci, false);

	for (i = 0; i <= cq->made.cqe; i++)
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	raw_store32(&raw_cq_dbr(cq)->arm, arm);
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(0, raw_cq_event(cq));
}

TEST_F(notify, a_doorbell_on_an_empty_cq_waits_for_the_next_cqe)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t arm;

	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	arm = raw_arm_word(cq, 1, cq->ci, false);
	raw_store32(&raw_cq_dbr(cq)->arm, arm);
	ASSERT_EQ(0, raw_ring_arm(cq, arm));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
}

/* It may cost or give the CQ's own channel an event, and nothing else. */
TEST_F(notify, nonsense_in_the_arm_word_harms_nobody)
{
	struct raw_cq *cq = &self->bed.rcq;
	uint32_t x = 12345;
	int i, n = 0;

	for (i = 0; i < 500; i++) {
		x = x * 1103515245 + 12345;
		raw_store32(&raw_cq_dbr(cq)->arm, x);
		ASSERT_EQ(0, raw_ring_arm(cq, x ^ x << 7));
		ASSERT_EQ(0, raw_bed_message(&self->bed, x >> 20 & VHCA_WQE_SOLICITED));
		if (i % 16)
			continue;
		n = raw_bed_events(&self->bed);
		ASSERT_LE(0, n);
		ASSERT_GE(17, n);
	}
	ASSERT_LE(0, raw_bed_events(&self->bed));
}

TEST_F(notify, an_event_reaches_every_vectors_cqs)
{
	struct vhca_query_device q = {};
	struct raw_cq cq;
	struct raw_pair p;
	uint32_t v;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	for (v = 0; v < q.num_comp_vectors; v++) {
		memset(&cq, 0, sizeof(cq));
		cq.made = (struct vhca_create_cq) {
			.cqe = 16, .channel_fd = self->bed.channel, .comp_vector = v,
			.cookie = 1000 + v,
		};
		self->bed.ctx.slot = 20;
		ASSERT_EQ(0, raw_make_cq(&self->bed.ctx, &cq));
		ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.scq, &cq));
		ASSERT_EQ(0, raw_arm(&cq, false));
		ASSERT_EQ(0, raw_message(&p, &self->bed.mr, 0, 8));
		ASSERT_EQ(0, raw_cq_event(&cq));
		ASSERT_EQ(0, raw_destroy_qp(&p.a));
		ASSERT_EQ(0, raw_destroy_qp(&p.b));
		ASSERT_EQ(0, raw_destroy_cq(&cq, NULL));
	}
}

TEST_HARNESS_MAIN
