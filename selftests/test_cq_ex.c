// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extended CQs: what they are made with, polling them, the clock; moderation by
 * the library.
 */
#include "pair.h"

struct bed {
	struct pair p;
	struct end *a;
	struct end *b;
	struct ibv_cq_ex *cq;
};

FIXTURE(ex) {
	struct bed bed;
};

FIXTURE_SETUP(ex)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	opts.no_connect = true;
	pair_open(_metadata, &self->bed.p, &opts);
	self->bed.a = &self->bed.p.end[0];
	self->bed.b = &self->bed.p.end[1];
}

FIXTURE_TEARDOWN(ex)
{
	pair_close(_metadata, &self->bed.p);
}

#define WC_ALL	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct ibv_cq_ex *make_cq(struct ibv_context *ctx, struct ibv_comp_channel *channel,
				 uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.channel = channel,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};

	return ibv_create_cq_ex(ctx, &attr);
}

/* The receiver's QP completes to an extended CQ from here on. */
static void use(struct __test_metadata *_metadata, struct bed *bed, uint64_t wc_flags,
		uint32_t flags)
{
	ASSERT_EQ(0, ibv_destroy_qp(bed->b->qp));
	ASSERT_EQ(0, ibv_destroy_cq(bed->b->rcq));
	bed->cq = make_cq(bed->b->ctx, bed->b->channel, wc_flags, flags);
	ASSERT_NE(NULL, bed->cq);
	bed->b->rcq = ibv_cq_ex_to_cq(bed->cq);
	ASSERT_EQ((void *)bed->cq, (void *)bed->b->rcq);
	bed->b->qp = make_qp(bed->b->pd, bed->b->scq, bed->b->rcq, &bed->p.opts,
			     &bed->b->cap);
	ASSERT_NE(NULL, bed->b->qp);
	pair_connect(_metadata, &bed->p);
}

/* Some messages to the receiver, with immediate data, all complete there. */
static void send_imm(struct __test_metadata *_metadata, struct bed *bed, int n)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < n; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)bed->a->buf, .length = 100 + i,
			.lkey = bed->a->mr->lkey,
		};
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(1000 + i),
		}, *bad;

		ASSERT_EQ(0, post_recv(bed->b, 500 + i, 0, 1000));
		ASSERT_EQ(0, ibv_post_send(bed->a->qp, &wr, &bad));
		ASSERT_TRUE(poll_wc(bed->a->scq, &wc));
	}
}

static int start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};

	return ibv_start_poll(cq, &attr);
}

TEST_F(ex, what_is_not_supported_is_refused)
{
	static const uint64_t bad[] = {
		IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO,
		1ull << 40,
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .comp_mask = 1 << 30 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		EXPECT_EQ(NULL, make_cq(self->bed.a->ctx, NULL, bad[i], 0));
		EXPECT_EQ(EOPNOTSUPP, errno);
	}
	errno = 0;
	EXPECT_EQ(NULL, make_cq(self->bed.a->ctx, NULL, 0, 1 << 5));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->bed.a->ctx, &attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
	attr = (struct ibv_cq_init_attr_ex) {};
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->bed.a->ctx, &attr));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ex, each_field_of_a_receive_is_read)
{
	int i;

	use(_metadata, &self->bed, WC_ALL, 0);
	send_imm(_metadata, &self->bed, 5);
	ASSERT_EQ(0, start(self->bed.cq));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(500 + i, self->bed.cq->wr_id);
		EXPECT_EQ(IBV_WC_SUCCESS, self->bed.cq->status);
		EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(self->bed.cq));
		EXPECT_EQ(0, ibv_wc_read_vendor_err(self->bed.cq));
		EXPECT_EQ(100 + i, ibv_wc_read_byte_len(self->bed.cq));
		EXPECT_EQ(htobe32(1000 + i), ibv_wc_read_imm_data(self->bed.cq));
		EXPECT_EQ(self->bed.b->qp->qp_num, ibv_wc_read_qp_num(self->bed.cq));
		EXPECT_EQ(self->bed.a->qp->qp_num, ibv_wc_read_src_qp(self->bed.cq));
		EXPECT_EQ(IBV_WC_WITH_IMM, ibv_wc_read_wc_flags(self->bed.cq));
		EXPECT_EQ(self->bed.a->lid, ibv_wc_read_slid(self->bed.cq));
		EXPECT_EQ(0, ibv_wc_read_sl(self->bed.cq));
		EXPECT_EQ(0, ibv_wc_read_dlid_path_bits(self->bed.cq));
		EXPECT_EQ(i < 4 ? 0 : ENOENT, ibv_next_poll(self->bed.cq));
	}
	ibv_end_poll(self->bed.cq);
	EXPECT_EQ(ENOENT, start(self->bed.cq));
}

TEST_F(ex, an_empty_cq_is_not_left_locked)
{
	struct ibv_poll_cq_attr bad = { .comp_mask = 1 };
	struct ibv_wc wc;

	use(_metadata, &self->bed, 0, 0);
	EXPECT_EQ(ENOENT, start(self->bed.cq));
	EXPECT_EQ(EINVAL, ibv_start_poll(self->bed.cq, &bad));
	send_imm(_metadata, &self->bed, 1);
	EXPECT_EQ(1, ibv_poll_cq(self->bed.b->rcq, 1, &wc));
}

TEST_F(ex, slots_are_given_back_at_the_end_of_each_poll)
{
	int i;

	use(_metadata, &self->bed, 0, 0);
	for (i = 0; i < 200; i++) {
		send_imm(_metadata, &self->bed, 1);
		ASSERT_EQ(0, start(self->bed.cq));
		ASSERT_EQ(IBV_WC_SUCCESS, self->bed.cq->status);
		ibv_end_poll(self->bed.cq);
	}
}

/* From its start to its end a poll has the lock that keeps others from polling. */
TEST_F_TIMEOUT(ex, a_cq_can_be_armed_while_it_is_polled, 60)
{
	struct bed *bed = &self->bed;
	int i;

	bed->b->channel = ibv_create_comp_channel(bed->b->ctx);
	ASSERT_NE(NULL, bed->b->channel);
	use(_metadata, bed, 0, 0);
	for (i = 0; i < 9; i++) {	/* more than the arm's sequence numbers */
		send_imm(_metadata, bed, 1);
		ASSERT_EQ(0, start(bed->cq));
		ASSERT_EQ(0, ibv_req_notify_cq(bed->b->rcq, 0));
		ASSERT_EQ(ENOENT, ibv_next_poll(bed->cq));
		ibv_end_poll(bed->cq);
		ASSERT_FALSE(readable(bed->b->channel->fd, 0));
		send_imm(_metadata, bed, 1);
		ASSERT_EQ(bed->b->rcq, comp_event(bed->b->channel));
		ASSERT_EQ(0, start(bed->cq));
		ibv_end_poll(bed->cq);
	}
}

TEST_F_TIMEOUT(ex, an_arm_while_it_is_polled_finds_what_is_still_unread, 60)
{
	struct bed *bed = &self->bed;

	bed->b->channel = ibv_create_comp_channel(bed->b->ctx);
	ASSERT_NE(NULL, bed->b->channel);
	use(_metadata, bed, 0, 0);
	send_imm(_metadata, bed, 2);
	ASSERT_EQ(0, start(bed->cq));
	ASSERT_EQ(0, ibv_req_notify_cq(bed->b->rcq, 0));
	EXPECT_EQ(bed->b->rcq, comp_event(bed->b->channel));
	ibv_end_poll(bed->cq);
}

TEST_F(ex, an_error_is_read_as_such)
{
	use(_metadata, &self->bed, WC_ALL, 0);
	ASSERT_EQ(0, post_recv(self->bed.b, 77, 0, 8));
	ASSERT_EQ(0, qp_to(self->bed.b->qp, IBV_QPS_ERR));
	ASSERT_TRUE(wait_until(!start(self->bed.cq)));
	EXPECT_EQ(77, self->bed.cq->wr_id);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, self->bed.cq->status);
	EXPECT_NE(0, ibv_wc_read_vendor_err(self->bed.cq));
	EXPECT_EQ(self->bed.b->qp->qp_num, ibv_wc_read_qp_num(self->bed.cq));
	ibv_end_poll(self->bed.cq);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

TEST_F(ex, timestamps_are_of_the_clock_that_can_be_queried)
{
	struct ibv_values_ex before = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_values_ex after = before;
	struct ibv_values_ex bad = { .comp_mask = 1 << 9 };
	struct ibv_device_attr_ex attr;
	uint64_t ts[3], wall[3], begin;
	int i;

	use(_metadata, &self->bed, WC_ALL, 0);
	ASSERT_EQ(0, ibv_query_device_ex(self->bed.b->ctx, NULL, &attr));
	EXPECT_EQ(UINT64_MAX, attr.completion_timestamp_mask);
	EXPECT_EQ(1000000, attr.hca_core_clock);
	EXPECT_EQ(EOPNOTSUPP, ibv_query_rt_values_ex(self->bed.b->ctx, &bad));

	begin = clock_ns(CLOCK_REALTIME);
	ASSERT_EQ(0, ibv_query_rt_values_ex(self->bed.b->ctx, &before));
	EXPECT_EQ(IBV_VALUES_MASK_RAW_CLOCK, before.comp_mask);
	send_imm(_metadata, &self->bed, 3);
	ASSERT_EQ(0, ibv_query_rt_values_ex(self->bed.b->ctx, &after));
	ASSERT_EQ(0, start(self->bed.cq));
	for (i = 0; i < 3; i++) {
		ts[i] = ibv_wc_read_completion_ts(self->bed.cq);
		wall[i] = ibv_wc_read_completion_wallclock_ns(self->bed.cq);
		ibv_next_poll(self->bed.cq);
	}
	ibv_end_poll(self->bed.cq);
	EXPECT_LE((uint64_t)before.raw_clock.tv_nsec, ts[0]);
	EXPECT_LE(ts[0], ts[1]);
	EXPECT_LE(ts[1], ts[2]);
	EXPECT_LE(ts[2], (uint64_t)after.raw_clock.tv_nsec);
	/* The two clocks are not read at once: as much earlier as that may take. */
	EXPECT_LE(begin, wall[0] + 1000000000);
	EXPECT_LE(wall[2], clock_ns(CLOCK_REALTIME) + 1000000000);
	EXPECT_LT(ts[2] + 1000000000000ull, wall[2]);
}

TEST_F(ex, a_single_threaded_cq_works)
{
	use(_metadata, &self->bed, WC_ALL, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	send_imm(_metadata, &self->bed, 2);
	ASSERT_EQ(0, start(self->bed.cq));
	EXPECT_EQ(500, self->bed.cq->wr_id);
	EXPECT_EQ(0, ibv_next_poll(self->bed.cq));
	EXPECT_EQ(501, self->bed.cq->wr_id);
	ibv_end_poll(self->bed.cq);
	EXPECT_EQ(0, ibv_resize_cq(self->bed.b->rcq, 500));
	send_imm(_metadata, &self->bed, 1);
	EXPECT_EQ(0, start(self->bed.cq));
	ibv_end_poll(self->bed.cq);
}

/* 64 CQEs, and the application says that it needs not be watched. */
TEST_F(ex, a_cq_that_ignores_overrun_stays_alive)
{
	struct ibv_wc wc;
	int i;

	use(_metadata, &self->bed, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, post_recv(self->bed.b, i, 0, 8));
		ASSERT_EQ(0, post_send(self->bed.a, i, 0, 8, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->bed.a->scq, i, IBV_WC_SUCCESS);
		if (i < 40)
			ASSERT_EQ(1, ibv_poll_cq(self->bed.b->rcq, 1, &wc));
	}
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->bed.b->qp));
}

TEST_F(ex, without_that_it_overruns)
{
	struct ibv_async_event event;
	struct ibv_wc wc;
	int i;

	use(_metadata, &self->bed, 0, 0);
	ASSERT_EQ(0, ibv_resize_cq(self->bed.b->rcq, 16));
	for (i = 0; i < 17; i++) {
		ASSERT_EQ(0, post_recv(self->bed.b, i, 0, 8));
		ASSERT_EQ(0, post_send(self->bed.a, i, 0, 8, IBV_SEND_SIGNALED));
		ASSERT_TRUE(poll_wc(self->bed.a->scq, &wc));
	}
	EXPECT_TRUE(wait_until(qp_state(self->bed.b->qp) == IBV_QPS_ERR));
	/* The QP says that it is in error, too; they come in any order. */
	do {
		ASSERT_TRUE(async_event(self->bed.b->ctx, &event));
	} while (event.event_type == IBV_EVENT_QP_FATAL);
	EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
	EXPECT_EQ(self->bed.b->rcq, event.element.cq);
}

TEST_F(ex, moderation_has_limits_and_is_set)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 8, .cq_period = 100 },
	};
	struct ibv_device_attr_ex dev;

	use(_metadata, &self->bed, 0, 0);
	ASSERT_EQ(0, ibv_query_device_ex(self->bed.b->ctx, NULL, &dev));
	EXPECT_EQ(65535, dev.cq_mod_caps.max_cq_count);
	EXPECT_EQ(65535, dev.cq_mod_caps.max_cq_period);
	EXPECT_EQ(0, ibv_modify_cq(self->bed.b->rcq, &attr));
	attr.attr_mask = 0;
	EXPECT_EQ(EINVAL, ibv_modify_cq(self->bed.b->rcq, &attr));
	attr.attr_mask = IBV_CQ_ATTR_MODERATE << 1;
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_cq(self->bed.b->rcq, &attr));
}

TEST_HARNESS_MAIN
