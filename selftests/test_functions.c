// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two functions talk to each other by LID or GID; and what a
 * requester gets to hear when nobody answers.
 */
#include "raw.h"

#include "harness.h"

FIXTURE(functions) {
	struct raw_ctx ctx[2];
	struct raw_cq cq[2];
	struct raw_qp qp[2];
	struct raw_mr mr[2];
};

/* Each test with both engines. */
FIXTURE_VARIANT(functions) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(functions, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(functions, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(functions)
{
	int i;

	ASSERT_EQ(0, raw_engine(variant->engine));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, raw_open(&self->ctx[i], i));
		ASSERT_EQ(0, raw_cq(&self->ctx[i], &self->cq[i], 256, VHCA_INVALID_FD));
		ASSERT_EQ(0, raw_qp(&self->ctx[i], &self->qp[i], &self->cq[i], &self->cq[i]));
		ASSERT_EQ(0, raw_mr(&self->ctx[i], &self->mr[i], 1 << 20));
	}
}

FIXTURE_TEARDOWN(functions)
{
	raw_close(&self->ctx[0]);
	raw_close(&self->ctx[1]);
	raw_engine("inline");
}

/* A message from one function to the other; the statuses must be good. */
static int message(struct raw_qp *from, struct raw_mr *src, struct raw_qp *to,
		   struct raw_mr *dst, struct raw_cq *scq, struct raw_cq *rcq, uint32_t len)
{
	struct raw_wc wc;
	int err;

	memset(src->addr, len, len);
	memset(dst->addr, ~len, len);
	err = raw_recv(to, dst, 0, dst->len);
	if (!err)
		err = raw_send(from, VHCA_WQE_SIGNALED, src, 0, len);
	if (!err)
		err = raw_wait_wc(rcq, &wc);
	if (err || wc.status || wc.byte_len != len || wc.qpn != to->made.qpn ||
	    wc.src_qpn != from->made.qpn || wc.slid != from->ctx->lid ||
	    wc.opcode != VHCA_CQE_RESP)
		return err ? err : -EPROTO;
	err = raw_wait_wc(scq, &wc);
	if (err || wc.status || wc.qpn != from->made.qpn || wc.opcode != VHCA_CQE_REQ ||
	    wc.byte_len || wc.src_qpn || wc.slid)
		return err ? err : -EPROTO;
	return memcmp(src->addr, dst->addr, len) ? -EILSEQ : 0;
}

TEST_F(functions, have_lids_and_guids_of_their_own)
{
	struct vhca_query_device q[2] = {};
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, raw_ioctl(self->ctx[i].fd, VHCA_IOC_QUERY_DEVICE, &q[i]));
		EXPECT_EQ(i, (int)q[i].function);
	}
	EXPECT_NE(self->ctx[0].lid, self->ctx[1].lid);
	EXPECT_NE(q[0].node_guid, q[1].node_guid);
}

TEST_F(functions, talk_to_each_other_by_lid)
{
	static const uint32_t len[] = { 0, 1, 64, 4096, 65536, 65537, 1 << 20 };
	unsigned int i;

	ASSERT_EQ(0, raw_connect(&self->qp[0], &self->qp[1]));
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		EXPECT_EQ(0, message(&self->qp[0], &self->mr[0], &self->qp[1], &self->mr[1],
				     &self->cq[0], &self->cq[1], len[i]));
		EXPECT_EQ(0, message(&self->qp[1], &self->mr[1], &self->qp[0], &self->mr[0],
				     &self->cq[1], &self->cq[0], len[i]));
	}
}

TEST_F(functions, talk_to_each_other_by_gid)
{
	struct vhca_qp_attr attr;
	int i;

	for (i = 0; i < 2; i++) {
		struct vhca_query_gid gid = { .port = 1 };

		ASSERT_EQ(0, raw_ioctl(self->ctx[!i].fd, VHCA_IOC_QUERY_GID, &gid));
		attr = raw_attr(0, self->qp[!i].made.qpn);
		attr.av.is_global = 1;
		memcpy(attr.av.dgid, gid.gid, 16);
		ASSERT_EQ(0, raw_climb(&self->qp[i], VHCA_QPS_RTS, attr));
	}
	EXPECT_EQ(0, message(&self->qp[0], &self->mr[0], &self->qp[1], &self->mr[1],
			     &self->cq[0], &self->cq[1], 1000));
}

TEST_F(functions, count_for_themselves)
{
	long long wqes[2], recvs[2];
	int i;

	ASSERT_EQ(0, raw_connect(&self->qp[0], &self->qp[1]));
	for (i = 0; i < 2; i++) {
		wqes[i] = raw_device_counter(i, "wqes");
		recvs[i] = raw_device_counter(i, "recv_wqes");
	}
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, message(&self->qp[0], &self->mr[0], &self->qp[1], &self->mr[1],
				     &self->cq[0], &self->cq[1], 8));
	EXPECT_EQ(wqes[0] + 10, raw_device_counter(0, "wqes"));
	EXPECT_EQ(wqes[1], raw_device_counter(1, "wqes"));
	EXPECT_EQ(recvs[0], raw_device_counter(0, "recv_wqes"));
	EXPECT_EQ(recvs[1] + 10, raw_device_counter(1, "recv_wqes"));
}

/* Send to an address where nobody answers: tries are counted, then it fails. */
static int unanswered(struct raw_qp *qp, struct raw_cq *cq, const struct raw_mr *mr,
		      struct vhca_qp_attr attr)
{
	long long retries = raw_device_counter(0, "retries");
	struct raw_wc wc;
	int err;

	attr.timeout = 8;	/* 1 ms */
	attr.retry_cnt = 2;
	err = raw_climb(qp, VHCA_QPS_RTS, attr);
	if (!err)
		err = raw_send(qp, 0, mr, 0, 8);
	if (!err)
		err = raw_wait_wc(cq, &wc);
	if (err)
		return err;
	if (raw_device_counter(0, "retries") != retries + 2)
		return -EPROTO;
	if (wc.status != VHCA_CQE_RETRY_EXC_ERR || wc.vendor_err != VHCA_VERR_NO_PEER)
		return wc.status;
	return raw_state(qp) == VHCA_QPS_ERR ? 0 : -EBUSY;
}

TEST_F(functions, a_wrong_lid_is_not_answered)
{
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0],
				raw_attr(999, self->qp[1].made.qpn)));
}

TEST_F(functions, a_qpn_that_does_not_exist_is_not_answered)
{
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0],
				raw_attr(self->ctx[1].lid, 0xfffff0)));
}

TEST_F(functions, a_qp_of_the_wrong_function_is_not_answered)
{
	struct raw_qp b;

	/* The number exists, but it is b's peer only on function 1. */
	ASSERT_EQ(0, raw_qp(&self->ctx[1], &b, &self->cq[1], &self->cq[1]));
	ASSERT_EQ(0, raw_climb(&b, VHCA_QPS_RTS,
			       raw_attr(self->ctx[1].lid, self->qp[0].made.qpn)));
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0],
				raw_attr(self->ctx[1].lid, b.made.qpn)));
}

TEST_F(functions, a_peer_in_reset_or_init_or_err_does_not_answer)
{
	struct vhca_qp_attr to = raw_attr(self->ctx[1].lid, self->qp[1].made.qpn);
	struct vhca_qp_attr back = raw_attr(self->ctx[0].lid, self->qp[0].made.qpn);

	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0], to));
	ASSERT_EQ(0, raw_reset_qp(&self->qp[0]));
	ASSERT_EQ(0, raw_step(&self->qp[1], VHCA_QPS_INIT, back));
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0], to));
	ASSERT_EQ(0, raw_reset_qp(&self->qp[0]));
	ASSERT_EQ(0, raw_goto(&self->qp[1], VHCA_QPS_ERR));
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0], to));
}

TEST_F(functions, a_wrong_psn_is_not_answered)
{
	struct vhca_qp_attr to = raw_attr(self->ctx[1].lid, self->qp[1].made.qpn);
	struct raw_wc wc;

	ASSERT_EQ(0, raw_climb(&self->qp[1], VHCA_QPS_RTS,
			       raw_attr(self->ctx[0].lid, self->qp[0].made.qpn)));
	ASSERT_EQ(0, raw_recv(&self->qp[1], &self->mr[1], 0, 64));
	to.sq_psn++;
	EXPECT_EQ(0, unanswered(&self->qp[0], &self->cq[0], &self->mr[0], to));
	EXPECT_FALSE(raw_poll(&self->cq[1], &wc));
}

TEST_F(functions, a_peer_that_comes_late_is_still_reached)
{
	struct vhca_qp_attr to = raw_attr(self->ctx[1].lid, self->qp[1].made.qpn);
	long long retries = raw_device_counter(0, "retries");
	struct raw_wc wc;

	to.timeout = 10;	/* 4 ms */
	to.retry_cnt = 7;
	ASSERT_EQ(0, raw_recv(&self->qp[1], &self->mr[1], 0, 64));
	/* Everything is ready but the last step, so that seven tries suffice. */
	ASSERT_EQ(0, raw_step(&self->qp[1], VHCA_QPS_INIT,
			      raw_attr(self->ctx[0].lid, self->qp[0].made.qpn)));
	ASSERT_EQ(0, raw_climb(&self->qp[0], VHCA_QPS_RTS, to));
	ASSERT_EQ(0, raw_send(&self->qp[0], VHCA_WQE_SIGNALED, &self->mr[0], 0, 8));
	ASSERT_EQ(0, raw_step(&self->qp[1], VHCA_QPS_RTR,
			      raw_attr(self->ctx[0].lid, self->qp[0].made.qpn)));
	ASSERT_EQ(0, raw_wait_wc(&self->cq[0], &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(VHCA_CQE_SUCCESS, raw_wait_wc(&self->cq[1], &wc));
	EXPECT_LE(retries, raw_device_counter(0, "retries"));
}

TEST_F(functions, the_psn_wraps)
{
	struct vhca_qp_attr to = raw_attr(self->ctx[1].lid, self->qp[1].made.qpn);
	struct vhca_qp_attr back = raw_attr(self->ctx[0].lid, self->qp[0].made.qpn);
	int i;

	to.sq_psn = 0xfffffe;
	back.rq_psn = 0xfffffe;
	ASSERT_EQ(0, raw_climb(&self->qp[0], VHCA_QPS_RTS, to));
	ASSERT_EQ(0, raw_climb(&self->qp[1], VHCA_QPS_RTS, back));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, message(&self->qp[0], &self->mr[0], &self->qp[1], &self->mr[1],
				     &self->cq[0], &self->cq[1], 8));
}

TEST_F(functions, a_qp_may_be_its_own_peer)
{
	struct raw_qp *qp = &self->qp[0];

	ASSERT_EQ(0, raw_climb(qp, VHCA_QPS_RTS, raw_attr(self->ctx[0].lid, qp->made.qpn)));
	ASSERT_EQ(0, raw_recv(qp, &self->mr[0], 0, 64));
	ASSERT_EQ(0, raw_send(qp, 0, &self->mr[0], 4096, 8));
	{
		struct raw_wc wc;

		ASSERT_EQ(0, raw_wait_wc(&self->cq[0], &wc));
		EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
		EXPECT_EQ(qp->made.qpn, wc.src_qpn);
	}
}

TEST_HARNESS_MAIN
