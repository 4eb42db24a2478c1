// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state machine of an RC QP by ioctl: which steps exist,
 * what each requires and allows, and that a refused one changes nothing.
 */
#include "raw.h"

#include "../kselftest_harness.h"

/* Attributes that a modification may name, for all states. */
#define ATTR_MASK	0x1fffff

/* Known, and not there yet: EOPNOTSUPP where the verbs allow them. */
#define PATH_MASK	(VHCA_QP_ALT_PATH | VHCA_QP_PATH_MIG_STATE)

struct step {
	uint8_t from;
	uint8_t to;
	uint32_t required;
	uint32_t allowed;
};

static const struct step steps[] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, RAW_INIT_MASK, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0,
	  VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_ACCESS_FLAGS },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, RAW_RTR_MASK,
	  VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX | VHCA_QP_ALT_PATH },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, RAW_RTS_MASK,
	  VHCA_QP_CUR_STATE | VHCA_QP_ACCESS_FLAGS | VHCA_QP_MIN_RNR_TIMER | PATH_MASK },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0,
	  VHCA_QP_CUR_STATE | VHCA_QP_ACCESS_FLAGS | VHCA_QP_MIN_RNR_TIMER | PATH_MASK },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0,
	  VHCA_QP_CUR_STATE | VHCA_QP_ACCESS_FLAGS | VHCA_QP_MIN_RNR_TIMER | PATH_MASK },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0,
	  VHCA_QP_PORT | VHCA_QP_AV | VHCA_QP_TIMEOUT | VHCA_QP_RETRY_CNT |
	  VHCA_QP_RNR_RETRY | VHCA_QP_MAX_QP_RD_ATOMIC | VHCA_QP_MAX_DEST_RD_ATOMIC |
	  VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX | VHCA_QP_MIN_RNR_TIMER | PATH_MASK },
};

#define STEPS	((int)(sizeof(steps) / sizeof(steps[0])))

/* The states that an RC QP can be in. */
static const uint8_t states[] = {
	VHCA_QPS_RESET, VHCA_QPS_INIT, VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QPS_SQD, VHCA_QPS_ERR,
};

#define STATES	((int)sizeof(states))

FIXTURE(qp_state) {
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;
	struct vhca_qp_attr attr;
};

FIXTURE_SETUP(qp_state)
{
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->cq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp(&self->ctx, &self->qp, &self->cq, &self->cq));
	self->attr = raw_attr(self->ctx.lid, self->qp.made.qpn);
}

FIXTURE_TEARDOWN(qp_state)
{
	raw_close(&self->ctx);
}

/* Bring the QP to a state by the shortest way from RESET. */
static int bring(struct raw_qp *qp, struct vhca_qp_attr attr, uint8_t state)
{
	int err = raw_reset_qp(qp);
	uint8_t up = state == VHCA_QPS_SQD ? VHCA_QPS_RTS :
		     state == VHCA_QPS_ERR ? VHCA_QPS_INIT : state;

	if (!err && up != VHCA_QPS_RESET)
		err = raw_climb(qp, up, attr);
	if (!err && up != state)
		err = raw_goto(qp, state);
	return err;
}

static int step(struct raw_qp *qp, struct vhca_qp_attr attr, const struct step *s, uint32_t mask)
{
	attr.state = s->to;
	attr.cur_state = s->from;
	return raw_modify(qp, VHCA_QP_STATE | mask, &attr);
}

static const struct step *find(uint8_t from, uint8_t to)
{
	int i;

	for (i = 0; i < STEPS; i++)
		if (steps[i].from == from && steps[i].to == to)
			return &steps[i];
	return NULL;
}

TEST_F(qp_state, a_new_qp_is_in_reset)
{
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&self->qp));
}

TEST_F(qp_state, each_step_goes_with_what_it_requires)
{
	int i;

	for (i = 0; i < STEPS; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, steps[i].from));
		EXPECT_EQ(0, step(&self->qp, self->attr, &steps[i], steps[i].required));
		EXPECT_EQ(steps[i].to, raw_state(&self->qp));
	}
}

TEST_F(qp_state, each_step_goes_with_each_thing_that_it_allows)
{
	uint32_t bit;
	int i, err;

	for (i = 0; i < STEPS; i++) {
		for (bit = 1; bit < ATTR_MASK; bit <<= 1) {
			if (!(steps[i].allowed & bit))
				continue;
			ASSERT_EQ(0, bring(&self->qp, self->attr, steps[i].from));
			err = step(&self->qp, self->attr, &steps[i], steps[i].required | bit);
			EXPECT_EQ(bit & PATH_MASK ? -EOPNOTSUPP : 0, err) {
				TH_LOG("%u -> %u with %#x", steps[i].from, steps[i].to, bit);
			}
			EXPECT_EQ(err ? steps[i].from : steps[i].to, raw_state(&self->qp));
		}
	}
}

TEST_F(qp_state, each_thing_required_that_is_missing_is_einval)
{
	uint32_t bit;
	int i;

	for (i = 0; i < STEPS; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, steps[i].from));
		for (bit = VHCA_QP_STATE << 1; bit < ATTR_MASK; bit <<= 1) {
			if (!(steps[i].required & bit))
				continue;
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, &steps[i],
						steps[i].required & ~bit)) {
				TH_LOG("%u -> %u without %#x", steps[i].from, steps[i].to, bit);
			}
			ASSERT_EQ(steps[i].from, raw_state(&self->qp));
		}
	}
}

TEST_F(qp_state, each_thing_that_is_not_allowed_is_einval)
{
	uint32_t bit;
	int i, err;

	for (i = 0; i < STEPS; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, steps[i].from));
		for (bit = VHCA_QP_STATE << 1; bit; bit <<= 1) {
			if ((steps[i].required | steps[i].allowed) & bit)
				continue;
			err = step(&self->qp, self->attr, &steps[i], steps[i].required | bit);
			EXPECT_TRUE(err == -EINVAL || (bit & PATH_MASK && err == -EOPNOTSUPP)) {
				TH_LOG("%u -> %u with %#x: %d", steps[i].from, steps[i].to,
				       bit, err);
			}
			ASSERT_EQ(steps[i].from, raw_state(&self->qp));
		}
	}
}

TEST_F(qp_state, a_step_that_does_not_exist_is_einval)
{
	int i, to;

	for (i = 0; i < STATES; i++) {
		for (to = VHCA_QPS_INIT; to < 9; to++) {
			struct step s = { states[i], to, 0, 0 };

			if (to == VHCA_QPS_ERR || find(states[i], to))
				continue;
			ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, &s, 0));
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, &s, RAW_INIT_MASK));
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, &s, RAW_RTR_MASK));
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, &s, RAW_RTS_MASK));
			ASSERT_EQ(states[i], raw_state(&self->qp));
		}
	}
}

TEST_F(qp_state, from_any_state_to_reset)
{
	int i;

	for (i = 0; i < STATES; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
		EXPECT_EQ(0, raw_goto(&self->qp, VHCA_QPS_RESET));
		EXPECT_EQ(VHCA_QPS_RESET, raw_state(&self->qp));
	}
}

TEST_F(qp_state, from_any_state_but_reset_to_err)
{
	int i;

	for (i = 1; i < STATES; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
		EXPECT_EQ(0, raw_goto(&self->qp, VHCA_QPS_ERR));
		EXPECT_EQ(VHCA_QPS_ERR, raw_state(&self->qp));
	}
}

TEST_F(qp_state, reset_and_err_take_no_other_attribute)
{
	struct vhca_qp_attr attr = self->attr;
	int i;

	for (i = 1; i < STATES; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
		attr.state = VHCA_QPS_RESET;
		EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_STATE | VHCA_QP_PORT, &attr));
		attr.state = VHCA_QPS_ERR;
		EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_STATE | VHCA_QP_PORT, &attr));
		EXPECT_EQ(states[i], raw_state(&self->qp));
	}
}

TEST_F(qp_state, attributes_can_change_without_naming_a_state)
{
	struct vhca_qp_attr attr = self->attr;
	struct vhca_modify_qp q;

	ASSERT_EQ(0, bring(&self->qp, self->attr, VHCA_QPS_RTS));
	attr.min_rnr_timer = 17;
	ASSERT_EQ(0, raw_modify(&self->qp, VHCA_QP_MIN_RNR_TIMER, &attr));
	ASSERT_EQ(0, raw_query_qp(&self->qp, &q));
	EXPECT_EQ(17, q.attr.min_rnr_timer);
	EXPECT_EQ(VHCA_QPS_RTS, q.attr.state);
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_DEST_QPN, &attr));
}

TEST_F(qp_state, the_current_state_named_must_be_true)
{
	struct vhca_qp_attr attr = self->attr;

	ASSERT_EQ(0, bring(&self->qp, self->attr, VHCA_QPS_RTR));
	attr.state = VHCA_QPS_RTS;
	attr.cur_state = VHCA_QPS_RTS;
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, RAW_RTS_MASK | VHCA_QP_CUR_STATE, &attr));
	EXPECT_EQ(VHCA_QPS_RTR, raw_state(&self->qp));
	attr.cur_state = VHCA_QPS_RTR;
	EXPECT_EQ(0, raw_modify(&self->qp, RAW_RTS_MASK | VHCA_QP_CUR_STATE, &attr));
}

/* Try a step with one value changed: it is refused, and nothing changes. */
#define REFUSED(to, field, value) do {						\
	struct vhca_qp_attr attr_ = self->attr;					\
	uint8_t to_ = (to);							\
	attr_.field = (value);							\
	EXPECT_EQ(-EINVAL, raw_step(&self->qp, to_, attr_)) {			\
		TH_LOG(#field " = " #value);					\
	}									\
	EXPECT_EQ(to_ - 1, raw_state(&self->qp));				\
} while (0)

TEST_F(qp_state, values_out_of_range_are_einval)
{
	REFUSED(VHCA_QPS_INIT, port_num, 0);
	REFUSED(VHCA_QPS_INIT, port_num, 2);
	REFUSED(VHCA_QPS_INIT, pkey_index, 1);
	REFUSED(VHCA_QPS_INIT, access_flags, 0x10000000);
	REFUSED(VHCA_QPS_INIT, rsvd[0], 1);
	ASSERT_EQ(0, raw_step(&self->qp, VHCA_QPS_INIT, self->attr));
	REFUSED(VHCA_QPS_RTR, path_mtu, 0);
	REFUSED(VHCA_QPS_RTR, path_mtu, 6);
	REFUSED(VHCA_QPS_RTR, min_rnr_timer, 32);
	REFUSED(VHCA_QPS_RTR, max_dest_rd_atomic, 255);
	REFUSED(VHCA_QPS_RTR, dest_qpn, 0x1000000);
	REFUSED(VHCA_QPS_RTR, av.port_num, 2);
	REFUSED(VHCA_QPS_RTR, av.sl, 16);
	REFUSED(VHCA_QPS_RTR, av.rsvd[0], 1);
	ASSERT_EQ(0, raw_step(&self->qp, VHCA_QPS_RTR, self->attr));
	REFUSED(VHCA_QPS_RTS, timeout, 32);
	REFUSED(VHCA_QPS_RTS, retry_cnt, 8);
	REFUSED(VHCA_QPS_RTS, rnr_retry, 8);
	REFUSED(VHCA_QPS_RTS, max_rd_atomic, 255);
	ASSERT_EQ(0, raw_step(&self->qp, VHCA_QPS_RTS, self->attr));
}

TEST_F(qp_state, query_returns_what_was_set)
{
	struct vhca_qp_attr attr = {
		.rq_psn = 0x123456, .sq_psn = 0xabcdef, .dest_qpn = 0x654321,
		.access_flags = VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_REMOTE_READ,
		.path_mtu = 4, .max_rd_atomic = 3, .max_dest_rd_atomic = 5,
		.min_rnr_timer = 12, .port_num = 1, .timeout = 18, .retry_cnt = 6,
		.rnr_retry = 5,
		.av = { .dlid = 0x77, .sl = 3, .port_num = 1 },
	};
	struct vhca_modify_qp q;

	ASSERT_EQ(0, raw_climb(&self->qp, VHCA_QPS_RTS, attr));
	ASSERT_EQ(0, raw_query_qp(&self->qp, &q));
	EXPECT_EQ(RAW_INIT_MASK | RAW_RTR_MASK | RAW_RTS_MASK,
		  (int)(q.mask & (RAW_INIT_MASK | RAW_RTR_MASK | RAW_RTS_MASK)));
	EXPECT_EQ(VHCA_QPS_RTS, q.attr.state);
	EXPECT_EQ(VHCA_QPS_RTS, q.attr.cur_state);
	EXPECT_EQ(attr.rq_psn, q.attr.rq_psn);
	EXPECT_EQ(attr.sq_psn, q.attr.sq_psn);
	EXPECT_EQ(attr.dest_qpn, q.attr.dest_qpn);
	EXPECT_EQ(attr.access_flags, q.attr.access_flags);
	EXPECT_EQ(attr.path_mtu, q.attr.path_mtu);
	EXPECT_EQ(attr.max_rd_atomic, q.attr.max_rd_atomic);
	EXPECT_EQ(attr.max_dest_rd_atomic, q.attr.max_dest_rd_atomic);
	EXPECT_EQ(attr.min_rnr_timer, q.attr.min_rnr_timer);
	EXPECT_EQ(attr.port_num, q.attr.port_num);
	EXPECT_EQ(attr.timeout, q.attr.timeout);
	EXPECT_EQ(attr.retry_cnt, q.attr.retry_cnt);
	EXPECT_EQ(attr.rnr_retry, q.attr.rnr_retry);
	EXPECT_EQ(attr.av.dlid, q.attr.av.dlid);
	EXPECT_EQ(attr.av.sl, q.attr.av.sl);
	EXPECT_EQ(0, q.attr.sq_draining);
	EXPECT_EQ(0, q.attr.rsvd[0] | q.attr.rsvd[1]);
}

TEST_F(qp_state, query_takes_no_mask)
{
	struct vhca_modify_qp q = { .qpn = self->qp.made.qpn, .mask = VHCA_QP_STATE };

	EXPECT_EQ(-EINVAL, raw_ioctl(self->ctx.fd, VHCA_IOC_QUERY_QP, &q));
}

TEST_F(qp_state, unknown_mask_bits_are_einval)
{
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, RAW_INIT_MASK | 1u << 21, &self->attr));
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, RAW_INIT_MASK | 1u << 31, &self->attr));
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&self->qp));
}

/* What the states mean for the queues */

TEST_F(qp_state, in_sqd_no_new_send_starts_and_sq_drained_is_reported)
{
	struct vhca_qp_attr sqd = { .state = VHCA_QPS_SQD, .en_sqd_async_notify = 1 };
	int async = raw_event_file(self->ctx.fd, VHCA_IOC_OPEN_ASYNC);
	struct vhca_async_event ev;
	struct raw_pair p;
	struct raw_mr mr;
	struct raw_wc wc;

	ASSERT_LE(0, async);
	ASSERT_EQ(0, raw_mr(&self->ctx, &mr, 8192));
	ASSERT_EQ(0, raw_pair(&self->ctx, &p, &self->cq, &self->cq));
	ASSERT_EQ(0, raw_modify(&p.a, VHCA_QP_STATE | VHCA_QP_EN_SQD_ASYNC_NOTIFY, &sqd));
	ASSERT_EQ(0, raw_read_async(async, &ev));
	EXPECT_EQ(VHCA_EVENT_SQ_DRAINED, (int)ev.type);
	EXPECT_EQ(p.a.made.qpn, ev.number);
	EXPECT_EQ(p.a.made.cookie, ev.cookie);

	ASSERT_EQ(0, raw_message(&p, &mr, 0, 8));
	/* The other direction still goes: the receive side works in SQD. */
	ASSERT_EQ(0, raw_recv(&p.a, &mr, 4096, 64));
	ASSERT_EQ(0, raw_send(&p.b, 0, &mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	EXPECT_EQ(p.a.made.qpn, wc.qpn);
	EXPECT_FALSE(raw_poll(&self->cq, &wc));
	ASSERT_EQ(0, raw_goto(&p.a, VHCA_QPS_RTS));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	EXPECT_EQ(p.b.made.qpn, wc.qpn);
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
}

TEST_F(qp_state, the_first_message_in_rtr_reports_communication_established)
{
	int async = raw_event_file(self->ctx.fd, VHCA_IOC_OPEN_ASYNC);
	struct vhca_async_event ev;
	struct raw_qp a, b;
	struct raw_mr mr;
	struct raw_wc wc;

	ASSERT_LE(0, async);
	ASSERT_EQ(0, raw_mr(&self->ctx, &mr, 8192));
	ASSERT_EQ(0, raw_qp(&self->ctx, &a, &self->cq, &self->cq));
	ASSERT_EQ(0, raw_qp(&self->ctx, &b, &self->cq, &self->cq));
	ASSERT_EQ(0, raw_climb(&a, VHCA_QPS_RTS, raw_attr(self->ctx.lid, b.made.qpn)));
	ASSERT_EQ(0, raw_climb(&b, VHCA_QPS_RTR, raw_attr(self->ctx.lid, a.made.qpn)));
	ASSERT_EQ(0, raw_recv(&b, &mr, 0, 64));
	ASSERT_EQ(0, raw_recv(&b, &mr, 0, 64));
	ASSERT_EQ(0, raw_send(&a, 0, &mr, 4096, 8));
	ASSERT_EQ(0, raw_send(&a, 0, &mr, 4096, 8));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	ASSERT_EQ(0, raw_read_async(async, &ev));
	EXPECT_EQ(VHCA_EVENT_COMM_EST, (int)ev.type);
	EXPECT_EQ(b.made.qpn, ev.number);
	EXPECT_EQ(b.made.cookie, ev.cookie);
	EXPECT_EQ(0, raw_readable(async, 0));
}

TEST_F(qp_state, sends_posted_before_rts_wait_for_it)
{
	struct raw_qp a, b;
	struct raw_mr mr;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_mr(&self->ctx, &mr, 8192));
	ASSERT_EQ(0, raw_qp(&self->ctx, &a, &self->cq, &self->cq));
	ASSERT_EQ(0, raw_qp(&self->ctx, &b, &self->cq, &self->cq));
	ASSERT_EQ(0, raw_climb(&b, VHCA_QPS_RTS, raw_attr(self->ctx.lid, a.made.qpn)));
	ASSERT_EQ(0, raw_recv(&b, &mr, 0, 64));
	ASSERT_EQ(0, raw_climb(&a, VHCA_QPS_RTR, raw_attr(self->ctx.lid, b.made.qpn)));
	ASSERT_EQ(0, raw_send(&a, 0, &mr, 4096, 8));
	EXPECT_FALSE(raw_poll(&self->cq, &wc));
	ASSERT_EQ(0, raw_step(&a, VHCA_QPS_RTS, raw_attr(self->ctx.lid, b.made.qpn)));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
}

TEST_HARNESS_MAIN
