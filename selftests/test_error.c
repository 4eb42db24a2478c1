// SPDX-License-Identifier: GPL-2.0-only
/*
 * WQEs and indices that no library would write, and errors of
 * execution: the right status and reason, both queues flushed once, nobody else
 * hurt, and the way back.
 */
#include "raw.h"

#include "harness.h"

FIXTURE(error) {
	struct raw_bed bed;
	int async;
};

/* Each test with both engines. */
FIXTURE_VARIANT(error) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(error, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(error, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(error)
{
	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
	self->async = raw_event_file(self->bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
	ASSERT_LE(0, self->async);
}

FIXTURE_TEARDOWN(error)
{
	close(self->async);
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
	raw_engine("inline");
}

/* One completion; 0 when it is as given, else something to look at. */
static int wants(struct raw_cq *cq, struct raw_qp *qp, uint16_t index, uint8_t opcode,
		 uint8_t status, uint8_t verr)
{
	struct raw_wc wc;
	int err = raw_wait_wc(cq, &wc);

	if (err)
		return err;
	if (wc.qpn == qp->made.qpn && wc.wqe_index == index && wc.opcode == opcode &&
	    wc.status == status && wc.vendor_err == verr)
		return 0;
	fprintf(stderr, "# completion: qp %u index %u opcode %u status %u vendor_err %#x\n",
		wc.qpn, wc.wqe_index, wc.opcode, wc.status, wc.vendor_err);
	return -EPROTO;
}

static int wants_flush(struct raw_cq *cq, struct raw_qp *qp, uint16_t index, uint8_t opcode)
{
	return wants(cq, qp, index, opcode, VHCA_CQE_WR_FLUSH_ERR, VHCA_VERR_STATE);
}

/* Others go on, and what is done by then is all that was to come. */
static int quiet(struct raw_bed *bed)
{
	struct raw_wc wc;
	int err = raw_bed_mark(bed);

	if (err)
		return err;
	return raw_poll(&bed->scq, &wc) || raw_poll(&bed->rcq, &wc) ? -EEXIST : 0;
}

/*
 * The WQE at the SQ's producer index of a is at fault. Post it, with two good
 * ones behind it and a receive beside it, and see what comes.
 */
static int faulty(struct raw_bed *bed, uint8_t status, uint8_t verr)
{
	struct raw_qp *a = &bed->p.a;
	uint16_t at = a->sq_pi;
	int err = raw_recv(a, &bed->mr, 0, 64);

	raw_produce(a, 1);
	raw_build_send(a, VHCA_WQE_SIGNALED, NULL, 0);
	raw_produce(a, 1);
	raw_build_send(a, 0, NULL, 0);
	if (!err)
		err = raw_post_built(a);
	if (!err)
		err = wants(&bed->scq, a, at, VHCA_CQE_REQ, status, verr);
	if (!err)
		err = wants_flush(&bed->scq, a, at + 1, VHCA_CQE_REQ);
	if (!err)
		err = wants_flush(&bed->scq, a, at + 2, VHCA_CQE_REQ);
	if (!err)
		err = wants_flush(&bed->rcq, a, a->rq_pi - 1, VHCA_CQE_RESP);
	if (!err && raw_state(a) != VHCA_QPS_ERR)
		err = -EBUSY;
	return err ? err : quiet(bed);
}

/* Both sides from wherever they are back to RTS. */
static int reconnect(struct raw_pair *p)
{
	int err = raw_reset_qp(&p->a);

	if (!err)
		err = raw_reset_qp(&p->b);
	return err ? err : raw_connect(&p->a, &p->b);
}

/* The head of a WQE */

TEST_F(error, a_wrong_index_is_refused)
{
	struct vhca_wqe_ctrl *ctrl;
	static const uint32_t wrong[] = { 1, 64, 0xffff, 0x10000, 0x800000 };
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ctrl = raw_build_send(&self->bed.p.a, 0, NULL, 0);
		ctrl->idx_opcode = htobe32(wrong[i] << VHCA_WQE_IDX_SHIFT | VHCA_OP_SEND);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_HEAD));
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, a_wrong_qpn_is_refused)
{
	struct vhca_wqe_ctrl *ctrl = raw_build_send(&self->bed.p.a, 0, NULL, 0);

	ctrl->qpn_ds = htobe32(self->bed.p.b.made.qpn << VHCA_WQE_QPN_SHIFT | 1);
	EXPECT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_HEAD));
}

TEST_F(error, a_length_that_cannot_be_is_refused)
{
	/* None; more than are posted; more than there may be. */
	static const uint32_t wrong[] = { 0, 13, 63, 64, 128, 255 };
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_wqe_ctrl *ctrl = raw_build_send(&self->bed.p.a, 0, NULL, 0);

		ctrl->qpn_ds = htobe32(self->bed.p.a.made.qpn << VHCA_WQE_QPN_SHIFT | wrong[i]);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_HEAD)) {
			TH_LOG("%u segments", wrong[i]);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, an_opcode_that_does_not_exist_is_refused)
{
	int op;

	for (op = 0; op < 256; op += op < 0x14 ? 1 : 17) {
		struct vhca_wqe_ctrl *ctrl = raw_build_send(&self->bed.p.a, 0, NULL, 0);

		if ((op >= VHCA_OP_RDMA_WRITE && op <= VHCA_OP_SEND_IMM) ||
		    (op >= VHCA_OP_RDMA_READ && op <= VHCA_OP_ATOMIC_FA) ||
		    op == VHCA_OP_SEND_INV)
			continue;
		ctrl->idx_opcode = htobe32(self->bed.p.a.sq_pi << VHCA_WQE_IDX_SHIFT | op);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_OPCODE)) {
			TH_LOG("opcode %#x", op);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, reserved_bits_are_refused)
{
	int i;

	for (i = 0; i < 6; i++) {
		struct vhca_wqe_ctrl *ctrl = raw_build_send(&self->bed.p.a, 0, NULL, 0);

		if (i < 2)
			ctrl->rsvd[i] = 1 << i;
		else if (i == 2)
			ctrl->signature = 1;
		else if (i == 3)
			ctrl->flags = 0x80;
		else if (i == 4)
			ctrl->flags = 0x08;
		else
			ctrl->imm = htobe32(1);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_HEAD)) {
			TH_LOG("case %d", i);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

/* The segments of a WQE */

TEST_F(error, an_inline_payload_that_does_not_fit_its_length_is_refused)
{
	static const struct {
		uint32_t count;
		uint32_t segs;
	} wrong[] = { { 13, 1 }, { 12, 2 }, { 0, 2 }, { 0x7fffffff, 1 }, { 0x7ffffffc, 3 } };
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_wqe_data seg[3] = { {
			.byte_count = htobe32(VHCA_WQE_INLINE | wrong[i].count),
		} };

		raw_build_send(&self->bed.p.a, 0, seg, wrong[i].segs);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG)) {
			TH_LOG("%u bytes in %u segments", wrong[i].count, wrong[i].segs);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, an_inline_payload_behind_other_segments_is_refused)
{
	struct vhca_wqe_data seg[2] = { raw_sge(&self->bed.mr, 0, 8), {
		.byte_count = htobe32(VHCA_WQE_INLINE | 8),
	} };

	raw_build_send(&self->bed.p.a, 0, seg, 2);
	EXPECT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG));
}

TEST_F(error, a_remote_or_atomic_segment_that_cannot_be_is_refused)
{
	static const struct {
		uint8_t op;
		uint32_t segs;
		uint32_t rsvd;		/* of the first segment */
		uint64_t compare;	/* of the second */
		uint32_t count;		/* of the last */
	} wrong[] = {
		{ VHCA_OP_RDMA_WRITE, 0, 0, 0, 0 },
		{ VHCA_OP_RDMA_WRITE_IMM, 0, 0, 0, 0 },
		{ VHCA_OP_RDMA_READ, 0, 0, 0, 0 },
		{ VHCA_OP_ATOMIC_CS, 0, 0, 0, 0 },
		{ VHCA_OP_ATOMIC_CS, 1, 0, 0, 0 },
		{ VHCA_OP_ATOMIC_FA, 1, 0, 0, 0 },
		{ VHCA_OP_RDMA_WRITE, 1, 1, 0, 0 },
		{ VHCA_OP_RDMA_READ, 2, 0x80000000, 0, 8 },
		{ VHCA_OP_ATOMIC_FA, 3, 0, 1, 8 },
		{ VHCA_OP_RDMA_WRITE, 2, 0, 0, VHCA_WQE_INLINE | 13 },
		{ VHCA_OP_RDMA_READ, 2, 0, 0, VHCA_WQE_INLINE | 8 },
		{ VHCA_OP_ATOMIC_FA, 3, 0, 0, VHCA_WQE_INLINE | 8 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_wqe_data seg[3] = {};
		struct vhca_wqe_atomic atomic = { .compare = htobe64(wrong[i].compare) };
		struct vhca_wqe_raddr raddr = { .rsvd = htobe32(wrong[i].rsvd) };
		struct vhca_wqe_ctrl *ctrl;

		memcpy(&seg[0], &raddr, sizeof(raddr));
		memcpy(&seg[1], &atomic, sizeof(atomic));
		if (wrong[i].count)
			seg[wrong[i].segs - 1] = raw_sge(&self->bed.mr, 0, wrong[i].count);
		ctrl = raw_build_send(&self->bed.p.a, 0, seg, wrong[i].segs);
		ctrl->idx_opcode = htobe32((uint32_t)self->bed.p.a.sq_pi << VHCA_WQE_IDX_SHIFT |
					   wrong[i].op);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG)) {
			TH_LOG("case %u", i);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, an_inline_payload_may_be_of_any_length_up_to_the_limit)
{
	struct raw_qp *a = &self->bed.p.a;
	struct raw_wc wc;
	uint32_t len, segs, i;

	for (len = 0; len <= VHCA_MAX_INLINE; len += len < 70 ? 1 : 59) {
		struct vhca_wqe_ctrl *ctrl;
		uint8_t payload[1024] = {}, *at;

		segs = (len + 4 + 15) / 16;
		*(__be32 *)payload = htobe32(VHCA_WQE_INLINE | len);
		for (i = 0; i < len; i++)
			payload[4 + i] = len + i;
		ctrl = raw_build_send(a, VHCA_WQE_SIGNALED, NULL, 0);
		ctrl->qpn_ds = htobe32(a->made.qpn << VHCA_WQE_QPN_SHIFT | (1 + segs));
		/* Around the end of the ring, segment by segment. */
		for (i = 0; i < segs; i++) {
			at = raw_sq_block(a, a->sq_pi + (1 + i) / 4);
			memcpy(at + (1 + i) % 4 * 16, payload + i * 16, 16);
		}
		ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 1024));
		raw_produce(a, (1 + segs + 3) / 4);
		ASSERT_EQ(0, raw_ring_qp(a));
		ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status) {
			TH_LOG("%u bytes", len);
		}
		ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
		ASSERT_EQ(len, wc.byte_len);
		ASSERT_EQ(0, memcmp(self->bed.mr.addr, payload + 4, len));
	}
}

TEST_F(error, a_message_longer_than_allowed_is_refused)
{
	struct vhca_wqe_data sge[2] = {
		raw_sge(&self->bed.mr, 0, 0x7fffffff), raw_sge(&self->bed.mr, 0, 0x7fffffff),
	};

	raw_build_send(&self->bed.p.a, 0, sge, 2);
	EXPECT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_MSG_SIZE));
}

TEST_F(error, an_empty_segment_is_skipped_whatever_its_key)
{
	struct vhca_wqe_data sge[3] = {
		{ .lkey = htobe32(0xdeadbeef), .addr = htobe64(~0ull) },
		raw_sge(&self->bed.mr, 0, 8),
		{ .lkey = 0 },
	};
	struct raw_wc wc;

	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 8192, 64));
	raw_build_send(&self->bed.p.a, 0, sge, 3);
	ASSERT_EQ(0, raw_post_built(&self->bed.p.a));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(8u, wc.byte_len);
}

/* Keys */

TEST_F(error, a_key_that_does_not_exist_is_refused)
{
	static const uint32_t wrong[] = { 0, 1, VHCA_INVALID_LKEY, 0xffffffff, 0x7fffff00 };
	struct vhca_wqe_data sge = raw_sge(&self->bed.mr, 0, 8);
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		sge.lkey = htobe32(wrong[i]);
		raw_build_send(&self->bed.p.a, 0, &sge, 1);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY)) {
			TH_LOG("key %#x", wrong[i]);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, a_key_of_another_pd_is_refused)
{
	struct raw_ctx ctx = self->bed.ctx;
	struct raw_mr mr = self->bed.mr;
	struct vhca_wqe_data sge;

	ASSERT_EQ(0, raw_alloc_pd(ctx.fd, &ctx.pd));
	ASSERT_EQ(0, raw_reg(&ctx, &mr, VHCA_ACCESS_LOCAL_WRITE));
	sge = raw_sge(&mr, 0, 8);
	raw_build_send(&self->bed.p.a, 0, &sge, 1);
	EXPECT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY_PD));
}

TEST_F(error, a_segment_out_of_bounds_is_refused)
{
	struct {
		uint64_t offset;
		uint32_t len;
	} wrong[] = {
		{ self->bed.mr.len - 7, 8 }, { self->bed.mr.len, 1 }, { -1, 1 }, { -8, 16 },
		{ 0, self->bed.mr.len + 1 }, { 0, 0x7fffffff }, { 1ull << 63, 8 },
		{ -(uint64_t)(uintptr_t)self->bed.mr.addr - 4, 8 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_wqe_data sge = raw_sge(&self->bed.mr, wrong[i].offset, wrong[i].len);

		raw_build_send(&self->bed.p.a, 0, &sge, 1);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY_BOUNDS)) {
			TH_LOG("case %u", i);
		}
		ASSERT_EQ(0, reconnect(&self->bed.p));
	}
}

TEST_F(error, the_last_segment_is_checked_as_the_first)
{
	struct vhca_wqe_data sge[3] = {
		raw_sge(&self->bed.mr, 0, 8), raw_sge(&self->bed.mr, 0, 8),
		raw_sge(&self->bed.mr, self->bed.mr.len, 8),
	};

	raw_build_send(&self->bed.p.a, 0, sge, 3);
	EXPECT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY_BOUNDS));
}

/* The receive is at fault */

/* A message into the receive that was posted last; what both sides get. */
static int refused(struct raw_bed *bed, uint8_t status, uint8_t verr, uint8_t remote,
		   uint8_t remote_verr)
{
	struct raw_qp *a = &bed->p.a, *b = &bed->p.b;
	uint16_t at = b->rq_pi - 1, sent = a->sq_pi;
	int err = raw_recv(b, &bed->mr, 0, 64);

	if (!err)
		err = raw_send(a, 0, &bed->mr, 0, 64);
	if (!err)
		err = wants(&bed->rcq, b, at, VHCA_CQE_RESP, status, verr);
	if (!err)
		err = wants_flush(&bed->rcq, b, at + 1, VHCA_CQE_RESP);
	if (!err)
		err = wants(&bed->scq, a, sent, VHCA_CQE_REQ, remote, remote_verr);
	if (!err && (raw_state(a) != VHCA_QPS_ERR || raw_state(b) != VHCA_QPS_ERR))
		err = -EBUSY;
	return err ? err : quiet(bed);
}

TEST_F(error, a_receive_without_local_write_is_refused)
{
	struct raw_mr ro = self->bed.mr;

	ASSERT_EQ(0, raw_reg(&self->bed.ctx, &ro, 0));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &ro, 0, 64));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY_ACCESS,
			     VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE));
}

TEST_F(error, a_receive_with_a_bad_key_is_refused)
{
	struct vhca_wqe_data sge = raw_sge(&self->bed.mr, 0, 64);

	sge.lkey = htobe32(0xffffffff);
	ASSERT_EQ(0, raw_recv_sge(&self->bed.p.b, sge));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY,
			     VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE));
}

TEST_F(error, a_receive_out_of_bounds_is_refused)
{
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, self->bed.mr.len - 63, 64));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY_BOUNDS,
			     VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE));
}

TEST_F(error, a_message_longer_than_its_receive_is_refused_and_not_written)
{
	memset(self->bed.mr.addr, 1, 64);
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 12288, 63));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
			     VHCA_CQE_REM_INV_REQ_ERR, VHCA_VERR_RQ_SIZE));
	EXPECT_EQ(0, self->bed.mr.addr[12288 + 63]);
}

TEST_F(error, a_receive_without_segments_takes_an_empty_message_only)
{
	struct vhca_wqe_data end = { .lkey = htobe32(VHCA_INVALID_LKEY) };
	struct raw_wc wc;

	ASSERT_EQ(0, raw_recv_sge(&self->bed.p.b, end));
	raw_build_send(&self->bed.p.a, 0, NULL, 0);
	ASSERT_EQ(0, raw_post_built(&self->bed.p.a));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0u, wc.byte_len);
	ASSERT_EQ(0, raw_recv_sge(&self->bed.p.b, end));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
			     VHCA_CQE_REM_INV_REQ_ERR, VHCA_VERR_RQ_SIZE));
}

TEST_F(error, what_follows_the_sentinel_is_not_looked_at)
{
	struct vhca_wqe_data *wqe = raw_rq_wqe(&self->bed.p.b, 0);

	wqe[0] = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
	wqe[1] = raw_sge(&self->bed.mr, 8192, 64);
	ASSERT_EQ(0, raw_post_recv(&self->bed.p.b));
	EXPECT_EQ(0, refused(&self->bed, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
			     VHCA_CQE_REM_INV_REQ_ERR, VHCA_VERR_RQ_SIZE));
}

/* No receive */

TEST_F(error, no_receive_ends_after_the_tries_allowed)
{
	struct vhca_qp_attr attr = raw_attr(self->bed.ctx.lid, self->bed.p.b.made.qpn);
	long long naks = raw_device_counter(0, "rnr_naks");

	ASSERT_EQ(0, raw_reset_qp(&self->bed.p.a));
	attr.rnr_retry = 3;
	ASSERT_EQ(0, raw_climb(&self->bed.p.a, VHCA_QPS_RTS, attr));
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 8));
	EXPECT_EQ(0, wants(&self->bed.scq, &self->bed.p.a, 0, VHCA_CQE_REQ,
			   VHCA_CQE_RNR_RETRY_EXC_ERR, VHCA_VERR_RNR));
	EXPECT_EQ(naks + 4, raw_device_counter(0, "rnr_naks"));
	/* The responder is not at fault. */
	EXPECT_EQ(VHCA_QPS_RTS, raw_state(&self->bed.p.b));
	EXPECT_EQ(0, quiet(&self->bed));
}

TEST_F(error, with_seven_rnr_tries_it_waits_for_ever)
{
	long long naks = raw_device_counter(0, "rnr_naks");
	struct raw_wc wc;

	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 8));
	ASSERT_TRUE(RAW_WAIT(raw_device_counter(0, "rnr_naks") > naks + 20));
	EXPECT_FALSE(raw_poll(&self->bed.scq, &wc));
	ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 8192, 64));
	ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(8u, wc.byte_len);
}

/* Indices */

static int wants_async(int fd, uint32_t type, uint64_t cookie, uint32_t number)
{
	struct vhca_async_event ev;
	int err = raw_read_async(fd, &ev);

	if (err)
		return err;
	if (ev.type == type && ev.cookie == cookie && ev.number == number)
		return 0;
	fprintf(stderr, "# async event: type %u number %u\n", ev.type, ev.number);
	return -EPROTO;
}

TEST_F(error, a_send_index_beyond_the_ring_is_fatal_to_the_qp)
{
	static const uint16_t beyond[] = { 65, 1000, 0x8000, 0xffff };
	struct raw_qp *a = &self->bed.p.a;
	struct raw_wc wc;
	unsigned int i;

	for (i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		raw_produce(a, beyond[i]);
		ASSERT_EQ(0, raw_ring_qp(a));
		ASSERT_EQ(0, wants_async(self->async, VHCA_EVENT_QP_FATAL, a->made.cookie,
					 a->made.qpn));
		EXPECT_EQ(VHCA_QPS_ERR, raw_state(a));
		ASSERT_EQ(0, raw_bed_mark(&self->bed));
		while (raw_poll(&self->bed.scq, &wc))
			EXPECT_NE(VHCA_CQE_SUCCESS, wc.status);
		ASSERT_EQ(0, reconnect(&self->bed.p));
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	}
}

TEST_F(error, a_receive_index_beyond_the_ring_is_fatal_to_the_qp)
{
	struct raw_qp *b = &self->bed.p.b;

	raw_store32(&raw_qp_dbr(b)->rq_pi, 65);
	ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 8));
	EXPECT_EQ(0, wants_async(self->async, VHCA_EVENT_QP_FATAL, b->made.cookie, b->made.qpn));
	EXPECT_EQ(VHCA_QPS_ERR, raw_state(b));
	EXPECT_EQ(0, wants(&self->bed.scq, &self->bed.p.a, 0, VHCA_CQE_REQ, VHCA_CQE_REM_OP_ERR,
			   VHCA_VERR_RQ_WQE));
	EXPECT_EQ(0, quiet(&self->bed));
}

TEST_F(error, the_upper_bits_of_an_index_are_not_used)
{
	struct raw_qp *a = &self->bed.p.a;
	struct raw_wc wc;
	int i;

	/* Around the ring several times, so that the index is more than the ring. */
	for (i = 0; i < 300; i++)
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	EXPECT_EQ(300, a->sq_pi);
	EXPECT_FALSE(raw_poll(&self->bed.scq, &wc));
}

/* Flush */

TEST_F(error, everything_outstanding_is_flushed_once_and_in_order)
{
	struct raw_bed *bed = &self->bed;
	struct raw_qp *a = &bed->p.a;
	int i;

	/* In RTR the sends wait, so that all are outstanding. */
	ASSERT_EQ(0, raw_reset_qp(a));
	ASSERT_EQ(0, raw_climb(a, VHCA_QPS_RTR, raw_attr(bed->ctx.lid, bed->p.b.made.qpn)));
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, raw_recv(a, &bed->mr, 0, 64));
		ASSERT_EQ(0, raw_send(a, i % 3 ? 0 : VHCA_WQE_SIGNALED, &bed->mr, 0, 8));
	}
	ASSERT_EQ(0, raw_goto(a, VHCA_QPS_ERR));
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, wants_flush(&bed->scq, a, i, VHCA_CQE_REQ));
		ASSERT_EQ(0, wants_flush(&bed->rcq, a, i, VHCA_CQE_RESP));
	}
	EXPECT_EQ(0, quiet(bed));
}

TEST_F(error, what_is_posted_in_err_is_flushed)
{
	struct raw_qp *a = &self->bed.p.a;
	int i;

	ASSERT_EQ(0, raw_goto(a, VHCA_QPS_ERR));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, raw_recv(a, &self->bed.mr, 0, 64));
		ASSERT_EQ(0, wants_flush(&self->bed.rcq, a, i, VHCA_CQE_RESP));
		ASSERT_EQ(0, raw_send(a, 0, &self->bed.mr, 0, 8));
		ASSERT_EQ(0, wants_flush(&self->bed.scq, a, i, VHCA_CQE_REQ));
	}
	EXPECT_EQ(0, quiet(&self->bed));
}

TEST_F(error, the_device_asks_for_receive_doorbells_only_in_err)
{
	struct raw_qp *a = &self->bed.p.a;

	EXPECT_EQ(0u, raw_load32(&raw_qp_dbr(a)->rq_watch));
	ASSERT_EQ(0, raw_goto(a, VHCA_QPS_ERR));
	EXPECT_NE(0u, raw_load32(&raw_qp_dbr(a)->rq_watch));
	ASSERT_EQ(0, raw_reset_qp(a));
	EXPECT_EQ(0u, raw_load32(&raw_qp_dbr(a)->rq_watch));
}

TEST_F(error, reset_completes_nothing)
{
	struct raw_qp *a = &self->bed.p.a;
	int i;

	ASSERT_EQ(0, raw_reset_qp(a));
	ASSERT_EQ(0, raw_climb(a, VHCA_QPS_RTR,
			       raw_attr(self->bed.ctx.lid, self->bed.p.b.made.qpn)));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, raw_recv(a, &self->bed.mr, 0, 64));
		ASSERT_EQ(0, raw_send(a, 0, &self->bed.mr, 0, 8));
	}
	ASSERT_EQ(0, raw_reset_qp(a));
	EXPECT_EQ(0, quiet(&self->bed));
}

TEST_F(error, a_qp_in_err_can_be_reset_and_connected_again)
{
	struct vhca_wqe_data bad = { .byte_count = htobe32(8) };
	int i;

	for (i = 0; i < 10; i++) {
		raw_build_send(&self->bed.p.a, 0, &bad, 1);
		ASSERT_EQ(0, faulty(&self->bed, VHCA_CQE_LOC_PROT_ERR, VHCA_VERR_KEY));
		ASSERT_EQ(0, reconnect(&self->bed.p));
		ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
	}
}

TEST_F(error, the_end_of_a_qp_with_work_outstanding_does_no_harm)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, raw_recv(&self->bed.p.a, &self->bed.mr, 0, 64));
		/* Nobody receives: the first waits in its RNR timer. */
		ASSERT_EQ(0, raw_send(&self->bed.p.a, 0, &self->bed.mr, 0, 8));
	}
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.b));
	EXPECT_EQ(0, quiet(&self->bed));
}

/* Overrun */

TEST_F(error, an_overrun_overwrites_nothing_and_is_reported)
{
	struct raw_bed *bed = &self->bed;
	long long overruns = raw_device_counter(0, "overruns");
	int cq_err = 0, qp_fatal = 0, i;
	struct vhca_async_event ev;
	struct raw_cq cq;
	struct raw_pair p;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_cq(&bed->ctx, &cq, 4, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_pair(&bed->ctx, &p, &bed->scq, &cq));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, raw_message(&p, &bed->mr, 0, 8));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, raw_read_async(self->async, &ev));
		cq_err += ev.type == VHCA_EVENT_CQ_ERR && ev.number == cq.made.cqn &&
			  ev.cookie == cq.made.cookie;
		qp_fatal += ev.type == VHCA_EVENT_QP_FATAL &&
			    (ev.number == p.a.made.qpn || ev.number == p.b.made.qpn);
	}
	EXPECT_EQ(1, cq_err);
	EXPECT_EQ(2, qp_fatal);
	EXPECT_EQ(0, raw_readable(self->async, 0));
	EXPECT_EQ(overruns + 1, raw_device_counter(0, "overruns"));
	EXPECT_EQ(VHCA_QPS_ERR, raw_state(&p.a));
	EXPECT_EQ(VHCA_QPS_ERR, raw_state(&p.b));
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(raw_poll(&cq, &wc));
		EXPECT_EQ(i, wc.wqe_index);
		EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	/* It stays in error, room or not. */
	EXPECT_FALSE(raw_poll(&cq, &wc));
	ASSERT_EQ(0, raw_recv(&p.b, &bed->mr, 0, 64));
	ASSERT_EQ(0, raw_bed_mark(bed));
	EXPECT_FALSE(raw_poll(&cq, &wc));
}

TEST_F(error, after_an_overrun_all_can_be_built_anew)
{
	struct raw_bed *bed = &self->bed;
	uint32_t slot = bed->ctx.slot;
	struct raw_cq cq;
	struct raw_pair p;
	struct raw_wc wc;
	int round, i;

	for (round = 0; round < 5; round++) {
		struct vhca_destroy_cq d;
		struct vhca_async_event ev;

		bed->ctx.slot = slot;
		ASSERT_EQ(0, raw_cq(&bed->ctx, &cq, 4, VHCA_INVALID_FD));
		ASSERT_EQ(0, raw_pair(&bed->ctx, &p, &bed->scq, &cq));
		ASSERT_EQ(0, raw_message(&p, &bed->mr, 0, 8));
		ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
		for (i = 0; i < 5; i++)
			ASSERT_EQ(0, raw_message(&p, &bed->mr, 0, 8));
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, raw_read_async(self->async, &ev));
		ASSERT_EQ(0, raw_destroy_qp(&p.a));
		ASSERT_EQ(0, raw_destroy_qp(&p.b));
		ASSERT_EQ(0, raw_destroy_cq(&cq, &d));
		EXPECT_EQ(1u, d.async_events);
	}
}

TEST_F(error, async_events_that_were_not_read_go_with_their_object)
{
	struct raw_qp *a = &self->bed.p.a;
	struct vhca_destroy_qp d = { .qpn = a->made.qpn };

	raw_produce(a, 1000);
	ASSERT_EQ(0, raw_ring_qp(a));
	ASSERT_TRUE(raw_readable(self->async, RAW_DEADLINE_MS));
	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_DESTROY_QP, &d));
	EXPECT_EQ(0u, d.async_events);
	EXPECT_EQ(0, raw_readable(self->async, 0));
}

/* Anything */

static uint32_t seed = 1;

static uint32_t rnd(void)
{
	seed = seed * 1103515245 + 12345;
	return seed >> 8 ^ seed << 16;
}

static void rnd_fill(void *p, size_t len)
{
	uint8_t *b = p;

	while (len--)
		*b++ = rnd();
}

/* Sometimes noise, sometimes a good head with noise behind it. */
static void rnd_wqe(struct raw_qp *qp)
{
	struct vhca_wqe_data sge[3];

	rnd_fill(sge, sizeof(sge));
	if (rnd() % 4)
		raw_build_send(qp, rnd() & 3, sge, rnd() % 4);
	else
		rnd_fill(raw_sq_block(qp, qp->sq_pi), VHCA_WQEBB_SIZE);
}

TEST_F(error, noise_in_the_queues_hurts_nobody_else)
{
	struct raw_bed *bed = &self->bed;
	struct raw_wc wc;
	int i;

	for (i = 0; i < 300; i++) {
		struct raw_qp *qp = rnd() % 2 ? &bed->p.a : &bed->p.b;

		rnd_fill(raw_rq_wqe(qp, rnd()), 32);
		rnd_wqe(qp);
		raw_produce(qp, rnd() % 16 ? 1 : rnd());
		raw_store32(&raw_qp_dbr(qp)->rq_pi, rnd() % 16 ? qp->rq_pi++ : rnd());
		ASSERT_EQ(0, raw_ring(&bed->ctx, qp->made.slot,
				      rnd() % 2 ? raw_qp_doorbell(qp) : (uint64_t)rnd() << 32));
		while (raw_poll(&bed->scq, &wc) || raw_poll(&bed->rcq, &wc))
			;
		if (raw_state(&bed->p.a) == VHCA_QPS_ERR || raw_state(&bed->p.b) == VHCA_QPS_ERR)
			ASSERT_EQ(0, reconnect(&bed->p));
		if (i % 10 == 0)
			ASSERT_EQ(0, raw_bed_mark(bed));
	}
}

TEST_HARNESS_MAIN
