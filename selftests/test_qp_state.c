// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state machine of QPs of all types by ioctl: which steps
 * exist, what each requires and allows, and that a refused one changes nothing.
 */
#include "raw.h"

#include <pthread.h>

#include "harness.h"

/* Attributes that a modification may name, for all states. */
#define ATTR_MASK	0x1fffff

/* Known, and not there: EOPNOTSUPP where the verbs allow them. */
#define PATH_MASK	(VHCA_QP_ALT_PATH | VHCA_QP_PATH_MIG_STATE)

struct step {
	uint8_t from;
	uint8_t to;
	uint32_t required;
	uint32_t allowed;
};

#define INIT	(VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_ACCESS_FLAGS)
#define INIT_UD	(VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_QKEY)
#define PEER	(VHCA_QP_AV | VHCA_QP_PATH_MTU | VHCA_QP_DEST_QPN | VHCA_QP_RQ_PSN)
#define RESP	(VHCA_QP_MAX_DEST_RD_ATOMIC | VHCA_QP_MIN_RNR_TIMER)
#define REQ	(VHCA_QP_TIMEOUT | VHCA_QP_RETRY_CNT | VHCA_QP_RNR_RETRY | \
		 VHCA_QP_MAX_QP_RD_ATOMIC)
#define RTR	(VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX | VHCA_QP_ALT_PATH)
#define RTR_UD	(VHCA_QP_PKEY_INDEX | VHCA_QP_QKEY)
#define RTS	(VHCA_QP_CUR_STATE | VHCA_QP_ACCESS_FLAGS | PATH_MASK)
#define RTS_RNR	(RTS | VHCA_QP_MIN_RNR_TIMER)
#define RTS_UD	(VHCA_QP_CUR_STATE | VHCA_QP_QKEY)
#define SQD	(VHCA_QP_AV | VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX | PATH_MASK)

#define MAX_STEPS	9

/* Without those to RESET and to ERR; SQE is not entered by ioctl. */
static const struct step rc_steps[MAX_STEPS] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, INIT, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0, INIT },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, PEER | RESP, RTR },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QP_SQ_PSN | REQ, RTS_RNR },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0, RTS_RNR },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0, RTS_RNR },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0, SQD | VHCA_QP_PORT | REQ | RESP },
};

static const struct step uc_steps[MAX_STEPS] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, INIT, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0, INIT },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, PEER, RTR },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QP_SQ_PSN, RTS },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0, RTS },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0, RTS },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0, SQD },
};

static const struct step ud_steps[MAX_STEPS] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, INIT_UD, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0, INIT_UD },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, 0, RTR_UD },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QP_SQ_PSN, RTS_UD },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0, RTS_UD },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0, RTS_UD },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0, RTR_UD },
};

static const struct step xrc_send_steps[MAX_STEPS] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, INIT, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0, INIT },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, PEER, RTR },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QP_SQ_PSN | REQ, RTS },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0, RTS },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0, RTS },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0, SQD | VHCA_QP_PORT | REQ },
};

static const struct step xrc_recv_steps[MAX_STEPS] = {
	{ VHCA_QPS_RESET, VHCA_QPS_INIT, INIT, 0 },
	{ VHCA_QPS_INIT, VHCA_QPS_INIT, 0, INIT },
	{ VHCA_QPS_INIT, VHCA_QPS_RTR, PEER | RESP, RTR },
	{ VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QP_SQ_PSN | VHCA_QP_TIMEOUT, RTS_RNR },
	{ VHCA_QPS_RTS, VHCA_QPS_RTS, 0, RTS_RNR },
	{ VHCA_QPS_RTS, VHCA_QPS_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QPS_SQD, VHCA_QPS_RTS, 0, RTS_RNR },
	{ VHCA_QPS_SQD, VHCA_QPS_SQD, 0, SQD | VHCA_QP_PORT | VHCA_QP_TIMEOUT | RESP },
};

/* The states that a QP can be brought to. */
static const uint8_t states[] = {
	VHCA_QPS_RESET, VHCA_QPS_INIT, VHCA_QPS_RTR, VHCA_QPS_RTS, VHCA_QPS_SQD, VHCA_QPS_ERR,
};

#define STATES	((int)sizeof(states))

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

static bool exists(const struct step *steps, uint8_t from, uint8_t to)
{
	for (; steps->to; steps++)
		if (steps->from == from && steps->to == to)
			return true;
	return false;
}

/* Every type: its table of steps, all of it and nothing else. */

FIXTURE(types) {
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;
	struct vhca_qp_attr attr;
};

FIXTURE_VARIANT(types) {
	uint32_t type;
	const struct step *steps;
};

FIXTURE_VARIANT_ADD(types, rc) { .type = VHCA_QPT_RC, .steps = rc_steps };
FIXTURE_VARIANT_ADD(types, uc) { .type = VHCA_QPT_UC, .steps = uc_steps };
FIXTURE_VARIANT_ADD(types, ud) { .type = VHCA_QPT_UD, .steps = ud_steps };
FIXTURE_VARIANT_ADD(types, xrc_send) { .type = VHCA_QPT_XRC_SEND, .steps = xrc_send_steps };
FIXTURE_VARIANT_ADD(types, xrc_recv) { .type = VHCA_QPT_XRC_RECV, .steps = xrc_recv_steps };

FIXTURE_SETUP(types)
{
	uint32_t xrcd = 0;

	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->cq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_open_xrcd(&self->ctx, VHCA_INVALID_FD, O_CREAT, &xrcd));
	if (variant->type != VHCA_QPT_XRC_RECV)
		xrcd = 0;
	ASSERT_EQ(0, raw_qp_of(&self->ctx, &self->qp, variant->type, &self->cq, xrcd));
	self->attr = raw_attr(self->ctx.lid, self->qp.made.qpn);
	self->attr.qkey = 0x12345;
}

FIXTURE_TEARDOWN(types)
{
	raw_close(&self->ctx);
}

TEST_F(types, a_new_qp_is_in_reset)
{
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&self->qp));
}

TEST_F(types, each_step_goes_with_what_it_requires)
{
	const struct step *s;

	for (s = variant->steps; s->to; s++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, s->from));
		EXPECT_EQ(0, step(&self->qp, self->attr, s, s->required));
		EXPECT_EQ(s->to, raw_state(&self->qp));
	}
}

TEST_F(types, each_step_goes_with_each_thing_that_it_allows)
{
	const struct step *s;
	uint32_t bit;
	int err;

	for (s = variant->steps; s->to; s++) {
		for (bit = 1; bit < ATTR_MASK; bit <<= 1) {
			if (!(s->allowed & bit))
				continue;
			ASSERT_EQ(0, bring(&self->qp, self->attr, s->from));
			err = step(&self->qp, self->attr, s, s->required | bit);
			EXPECT_EQ(bit & PATH_MASK ? -EOPNOTSUPP : 0, err) {
				TH_LOG("%u -> %u with %#x", s->from, s->to, bit);
			}
			EXPECT_EQ(err ? s->from : s->to, raw_state(&self->qp));
		}
	}
}

TEST_F(types, each_thing_required_that_is_missing_is_einval)
{
	const struct step *s;
	uint32_t bit;

	for (s = variant->steps; s->to; s++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, s->from));
		for (bit = VHCA_QP_STATE << 1; bit < ATTR_MASK; bit <<= 1) {
			if (!(s->required & bit))
				continue;
			EXPECT_EQ(-EINVAL, step(&self->qp, self->attr, s,
						s->required & ~bit)) {
				TH_LOG("%u -> %u without %#x", s->from, s->to, bit);
			}
			ASSERT_EQ(s->from, raw_state(&self->qp));
		}
	}
}

TEST_F(types, each_thing_that_is_not_allowed_is_einval)
{
	const struct step *s;
	uint32_t bit;
	int err;

	for (s = variant->steps; s->to; s++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, s->from));
		for (bit = VHCA_QP_STATE << 1; bit; bit <<= 1) {
			if ((s->required | s->allowed) & bit)
				continue;
			err = step(&self->qp, self->attr, s, s->required | bit);
			EXPECT_TRUE(err == -EINVAL || (bit & PATH_MASK && err == -EOPNOTSUPP)) {
				TH_LOG("%u -> %u with %#x: %d", s->from, s->to,
				       bit, err);
			}
			ASSERT_EQ(s->from, raw_state(&self->qp));
		}
	}
}

TEST_F(types, a_step_that_does_not_exist_is_einval)
{
	int i, to;

	for (i = 0; i < STATES; i++) {
		for (to = VHCA_QPS_INIT; to < 9; to++) {
			struct step s = { states[i], to, 0, 0 };

			if (to == VHCA_QPS_ERR || exists(variant->steps, states[i], to))
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

TEST_F(types, from_any_state_to_reset)
{
	int i;

	for (i = 0; i < STATES; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
		EXPECT_EQ(0, raw_goto(&self->qp, VHCA_QPS_RESET));
		EXPECT_EQ(VHCA_QPS_RESET, raw_state(&self->qp));
	}
}

TEST_F(types, from_any_state_but_reset_to_err)
{
	int i;

	for (i = 1; i < STATES; i++) {
		ASSERT_EQ(0, bring(&self->qp, self->attr, states[i]));
		EXPECT_EQ(0, raw_goto(&self->qp, VHCA_QPS_ERR));
		EXPECT_EQ(VHCA_QPS_ERR, raw_state(&self->qp));
	}
}

TEST_F(types, reset_and_err_take_no_other_attribute)
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

/* A WQE of zeroes is not one: the SQ, or the QP, is in error. */
TEST_F(types, a_send_error_stops_the_sq_of_unreliable_types_and_rts_goes_on)
{
	struct vhca_qp_attr attr = self->attr;
	bool unreliable = variant->type == VHCA_QPT_UC || variant->type == VHCA_QPT_UD;
	uint32_t own = variant->type == VHCA_QPT_UD ? VHCA_QP_QKEY : VHCA_QP_ACCESS_FLAGS;
	uint32_t other = own ^ VHCA_QP_QKEY ^ VHCA_QP_ACCESS_FLAGS;
	struct raw_wc wc;

	if (variant->type == VHCA_QPT_XRC_RECV)
		return;
	ASSERT_EQ(0, bring(&self->qp, self->attr, VHCA_QPS_RTS));
	ASSERT_EQ(0, raw_post_built(&self->qp));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, wc.status);
	ASSERT_EQ(unreliable ? VHCA_QPS_SQE : VHCA_QPS_ERR, raw_state(&self->qp));
	attr.state = VHCA_QPS_RTS;
	attr.cur_state = VHCA_QPS_SQE;
	if (!unreliable) {
		EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_STATE, &attr));
		return;
	}
	EXPECT_EQ(-EINVAL, raw_goto(&self->qp, VHCA_QPS_SQD));
	EXPECT_EQ(-EINVAL, raw_goto(&self->qp, VHCA_QPS_SQE));
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_STATE | other, &attr));
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, VHCA_QP_STATE | VHCA_QP_SQ_PSN, &attr));
	EXPECT_EQ(-EINVAL, raw_modify(&self->qp, own, &attr));
	ASSERT_EQ(VHCA_QPS_SQE, raw_state(&self->qp));
	EXPECT_EQ(0, raw_modify(&self->qp, VHCA_QP_STATE | VHCA_QP_CUR_STATE | own, &attr));
	EXPECT_EQ(VHCA_QPS_RTS, raw_state(&self->qp));
	ASSERT_EQ(0, raw_post_built(&self->qp));
	ASSERT_EQ(0, raw_wait_wc(&self->cq, &wc));
	ASSERT_EQ(VHCA_QPS_SQE, raw_state(&self->qp));
	EXPECT_EQ(0, raw_goto(&self->qp, VHCA_QPS_ERR));
}

TEST_F(types, query_returns_the_q_key_of_a_ud_qp)
{
	struct vhca_modify_qp q;

	if (variant->type != VHCA_QPT_UD)
		return;
	ASSERT_EQ(0, raw_climb(&self->qp, VHCA_QPS_RTS, self->attr));
	ASSERT_EQ(0, raw_query_qp(&self->qp, &q));
	EXPECT_EQ(self->attr.qkey, q.attr.qkey);
	EXPECT_EQ(VHCA_QP_QKEY, (int)(q.mask & VHCA_QP_QKEY));
	self->attr.qkey = 0x98765432;
	ASSERT_EQ(0, raw_modify(&self->qp, VHCA_QP_QKEY, &self->attr));
	ASSERT_EQ(0, raw_query_qp(&self->qp, &q));
	EXPECT_EQ(0x98765432u, q.attr.qkey);
}

/* RC: values, what a query says, and what the states mean for the queues. */

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

/*
 * Who posts as fast as the device flushes: in the ring is always something, until
 * many times the ring was posted.
 */
struct poster {
	struct raw_qp *qp;
	struct raw_cq *cq;
	unsigned int done;
	bool stop;
};

#define POSTER_SHIFT	VHCA_SQ_MAX_SHIFT
#define POSTER_AHEAD	(1u << (POSTER_SHIFT - 1))
#define POSTER_MOST	(16u << POSTER_SHIFT)

static void *post_for_ever(void *arg)
{
	struct poster *p = arg;
	struct raw_wc wc;

	while (p->done < POSTER_MOST && !__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		if (!raw_poll(p->cq, &wc))
			continue;
		raw_store32(&raw_qp_dbr(p->qp)->sq_pi,
			    (uint16_t)(wc.wqe_index + POSTER_AHEAD));
		__atomic_add_fetch(&p->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(qp_state, who_posts_on_and_on_does_not_hold_up_a_way_out_of_sqe)
{
	struct vhca_qp_attr attr = { .state = VHCA_QPS_RTS, .cur_state = VHCA_QPS_SQE };
	struct raw_qp qp = { .made = { .type = VHCA_QPT_UD, .sq_shift = POSTER_SHIFT } };
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct poster p = { .qp = &qp, .cq = &cq };
	struct raw_wc wc;
	pthread_t thread;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	ASSERT_EQ(0, raw_cq(&ctx, &cq, 4u << POSTER_SHIFT, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_make_qp(&ctx, &qp, &cq, &cq));
	ASSERT_EQ(0, raw_climb(&qp, VHCA_QPS_RTS, raw_attr(0, 0)));
	/* A WQE of zeroes is not one. */
	ASSERT_EQ(0, raw_post_built(&qp));
	ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
	ASSERT_EQ(VHCA_QPS_SQE, raw_state(&qp));
	raw_store32(&raw_qp_dbr(&qp)->sq_pi, POSTER_AHEAD);
	ASSERT_EQ(0, pthread_create(&thread, NULL, post_for_ever, &p));
	EXPECT_EQ(0, raw_modify(&qp, VHCA_QP_STATE | VHCA_QP_CUR_STATE, &attr));
	EXPECT_GT(POSTER_MOST / 2, __atomic_load_n(&p.done, __ATOMIC_RELAXED));
	__atomic_store_n(&p.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	raw_close(&ctx);
}

TEST_HARNESS_MAIN
