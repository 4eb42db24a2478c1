// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_services.c: UC, UD, XRC and SRQs towards a user who writes what no library
 * writes: WQEs of the wrong type, segments with wrong values, indices without sense.
 * What is wrong harms its own queue, which can be reset and works again.
 */
#include "raw.h"

#include "harness.h"

#define MR_LEN		16384
#define RECV_AT		8192	/* in the MR */
#define QKEY		0x1111

FIXTURE(services) {
	struct raw_ctx ctx;
	struct raw_cq scq;
	struct raw_cq rcq;
	struct raw_mr mr;
	int async;
};

FIXTURE_SETUP(services)
{
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->scq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->rcq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_mr(&self->ctx, &self->mr, MR_LEN));
	ASSERT_EQ(0, raw_dereg(&self->ctx, &self->mr));
	ASSERT_EQ(0, raw_reg(&self->ctx, &self->mr, VHCA_ACCESS_LOCAL_WRITE |
			     VHCA_ACCESS_REMOTE_WRITE | VHCA_ACCESS_REMOTE_READ |
			     VHCA_ACCESS_REMOTE_ATOMIC));
	self->async = raw_event_file(self->ctx.fd, VHCA_IOC_OPEN_ASYNC);
	ASSERT_LE(0, self->async);
}

FIXTURE_TEARDOWN(services)
{
	close(self->async);
	raw_close(&self->ctx);
}

static struct vhca_qp_attr attr_to(const struct raw_ctx *ctx, uint32_t qpn)
{
	struct vhca_qp_attr attr = raw_attr(ctx->lid, qpn);

	attr.qkey = QKEY;
	attr.access_flags = VHCA_ACCESS_REMOTE_WRITE | VHCA_ACCESS_REMOTE_READ |
			    VHCA_ACCESS_REMOTE_ATOMIC;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	return attr;
}

/* A QP that works with itself: UD, and UC connected to itself. */
static int self_qp(struct raw_ctx *ctx, struct raw_qp *qp, uint32_t type, struct raw_cq *scq,
		   struct raw_cq *rcq)
{
	int err;

	memset(qp, 0, sizeof(*qp));
	qp->made.type = type;
	qp->made.cookie = (uintptr_t)qp;
	qp->made.sq_shift = RAW_SQ_SHIFT;
	qp->made.rq_shift = RAW_RQ_SHIFT;
	qp->made.rq_sge_shift = RAW_SGE_SHIFT;
	err = raw_make_qp(ctx, qp, scq, rcq);
	return err ? err : raw_climb(qp, VHCA_QPS_RTS, attr_to(ctx, qp->made.qpn));
}

/*
 * A WQE of @opcode: @nsegs segments of any kind behind the control segment. The ring
 * must not end among them.
 */
static int post_wqe(struct raw_qp *qp, uint8_t opcode, const void *segs, unsigned int nsegs)
{
	struct vhca_wqe_ctrl *ctrl = raw_sq_block(qp, qp->sq_pi);
	unsigned int blocks = (nsegs + 4) / 4;

	*ctrl = (struct vhca_wqe_ctrl) {
		.idx_opcode = htobe32((uint32_t)qp->sq_pi << VHCA_WQE_IDX_SHIFT | opcode),
		.qpn_ds = htobe32(qp->made.qpn << VHCA_WQE_QPN_SHIFT | (1 + nsegs)),
		.flags = VHCA_WQE_SIGNALED,
	};
	memcpy(ctrl + 1, segs, nsegs * VHCA_WQE_SEG_SIZE);
	raw_produce(qp, blocks);
	return raw_ring_qp(qp);
}

static void expect_done(struct __test_metadata *_metadata, struct raw_cq *cq, uint8_t status,
			uint8_t verr)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_wait_wc(cq, &wc));
	EXPECT_EQ(status, wc.status);
	EXPECT_EQ(verr, wc.vendor_err);
}

static void expect_event(struct __test_metadata *_metadata, int async, uint32_t type,
			 uint32_t number)
{
	struct vhca_async_event ev;

	ASSERT_EQ(0, raw_read_async(async, &ev));
	EXPECT_EQ(type, ev.type);
	EXPECT_EQ(number, ev.number);
}

/* Events of different objects have no order: these three, of an SRQ and of a QP. */
static void expect_srq_and_qp(struct __test_metadata *_metadata, int async, uint32_t srqn,
			      uint32_t qpn)
{
	bool srq = false, fatal = false, last = false;
	struct vhca_async_event ev;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, raw_read_async(async, &ev));
		srq |= ev.type == VHCA_EVENT_SRQ_ERR && ev.number == srqn;
		fatal |= ev.type == VHCA_EVENT_QP_FATAL && ev.number == qpn;
		last |= ev.type == VHCA_EVENT_QP_LAST_WQE_REACHED && ev.number == qpn;
	}
	EXPECT_TRUE(srq && fatal && last);
}

/*
 * UC and UD: what a type does not have
 */
static void expect_not_there(struct __test_metadata *_metadata, struct raw_qp *qp,
			     struct raw_cq *cq, uint8_t opcode)
{
	static const uint8_t segs[6 * VHCA_WQE_SEG_SIZE];

	ASSERT_EQ(0, post_wqe(qp, opcode, segs, 6));
	expect_done(_metadata, cq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_OPCODE);
	ASSERT_TRUE(RAW_WAIT(raw_state(qp) == VHCA_QPS_SQE));
	ASSERT_EQ(0, raw_goto(qp, VHCA_QPS_RTS));
}

TEST_F(services, uc_has_no_read_and_no_atomics)
{
	static const uint8_t none[] = {
		0, 1, VHCA_OP_RDMA_READ, VHCA_OP_ATOMIC_CS, VHCA_OP_ATOMIC_FA, 0x1f, 0xff,
	};
	struct vhca_wqe_data sge = raw_sge(&self->mr, 0, 8);
	struct raw_qp qp;
	unsigned int i;

	ASSERT_EQ(0, self_qp(&self->ctx, &qp, VHCA_QPT_UC, &self->scq, &self->rcq));
	for (i = 0; i < sizeof(none); i++)
		expect_not_there(_metadata, &qp, &self->scq, none[i]);
	ASSERT_EQ(0, raw_recv(&qp, &self->mr, RECV_AT, 8));
	ASSERT_EQ(0, post_wqe(&qp, VHCA_OP_SEND, &sge, 1));
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	expect_done(_metadata, &self->rcq, VHCA_CQE_SUCCESS, 0);
}

struct dgram_wqe {
	struct vhca_wqe_dgram to;
	struct vhca_wqe_data sge;
};

static struct dgram_wqe dgram_to(const struct raw_qp *qp, const struct raw_mr *mr)
{
	return (struct dgram_wqe) {
		.to = {
			.dest_qpn = htobe32(qp->made.qpn),
			.qkey = htobe32(QKEY),
			.dlid = htobe16(qp->ctx->lid),
		},
		.sge = raw_sge(mr, 0, 8),
	};
}

#define DGRAM_SEGS	(sizeof(struct dgram_wqe) / VHCA_WQE_SEG_SIZE)

TEST_F(services, ud_has_nothing_but_sends)
{
	static const uint8_t none[] = {
		VHCA_OP_RDMA_WRITE, VHCA_OP_RDMA_WRITE_IMM, VHCA_OP_SEND_INV,
		VHCA_OP_RDMA_READ, VHCA_OP_ATOMIC_CS, VHCA_OP_ATOMIC_FA,
	};
	struct dgram_wqe wqe;
	struct raw_qp qp;
	unsigned int i;

	ASSERT_EQ(0, self_qp(&self->ctx, &qp, VHCA_QPT_UD, &self->scq, &self->rcq));
	for (i = 0; i < sizeof(none); i++)
		expect_not_there(_metadata, &qp, &self->scq, none[i]);
	wqe = dgram_to(&qp, &self->mr);
	ASSERT_EQ(0, raw_recv(&qp, &self->mr, RECV_AT, VHCA_GRH_SIZE + 8));
	ASSERT_EQ(0, post_wqe(&qp, VHCA_OP_SEND, &wqe, DGRAM_SEGS));
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	expect_done(_metadata, &self->rcq, VHCA_CQE_SUCCESS, 0);
}

static void expect_bad_dgram(struct __test_metadata *_metadata, struct raw_qp *qp,
			     struct raw_cq *cq, const struct dgram_wqe *wqe, unsigned int nsegs)
{
	ASSERT_EQ(0, post_wqe(qp, VHCA_OP_SEND, wqe, nsegs));
	expect_done(_metadata, cq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG);
	ASSERT_TRUE(RAW_WAIT(raw_state(qp) == VHCA_QPS_SQE));
	ASSERT_EQ(0, raw_goto(qp, VHCA_QPS_RTS));
}

TEST_F(services, a_datagram_segment_with_a_wrong_value)
{
	struct dgram_wqe good, bad[8];
	struct raw_qp qp;
	unsigned int i;

	ASSERT_EQ(0, self_qp(&self->ctx, &qp, VHCA_QPT_UD, &self->scq, &self->rcq));
	good = dgram_to(&qp, &self->mr);
	for (i = 0; i < 8; i++)
		bad[i] = good;
	bad[0].to.dest_qpn |= htobe32(1 << 24);
	bad[1].to.sl = 16;
	bad[2].to.is_global = 2;
	bad[3].to.flow_label = htobe32(1 << 20);
	bad[4].to.sgid_index = 1;
	bad[5].to.port = 2;
	bad[6].to.rsvd[0] = 1;
	bad[7].to.rsvd[9] = 1;
	for (i = 0; i < 8; i++)
		expect_bad_dgram(_metadata, &qp, &self->scq, &bad[i], DGRAM_SEGS);
	/* Cut off. */
	for (i = 0; i < VHCA_WQE_DGRAM_SEGS; i++)
		expect_bad_dgram(_metadata, &qp, &self->scq, &good, i);
	EXPECT_FALSE(raw_next_cqe(&self->rcq));
}

/*
 * SRQs
 */
static void srq_set_pi(struct raw_srq *srq, uint32_t pi)
{
	struct vhca_srq_dbr *dbr = (struct vhca_srq_dbr *)srq->ctx->dbr_page + srq->made.slot;

	raw_store32(&dbr->pi, pi);
}

/* An RC pair whose second half receives from the SRQ. */
static int srq_pair(struct raw_ctx *ctx, struct raw_qp *a, struct raw_qp *b, struct raw_cq *scq,
		    struct raw_cq *rcq, struct raw_srq *srq)
{
	int err = raw_qp(ctx, a, scq, rcq);

	if (!err)
		err = raw_qp_srq(ctx, b, VHCA_QPT_RC, rcq, srq->made.srqn);
	return err ? err : raw_connect(a, b);
}

TEST_F(services, an_srq_with_a_nonsense_index_gives_nothing_any_more)
{
	struct raw_qp a[2], b[2];
	struct raw_srq srq;
	int i;

	ASSERT_EQ(0, raw_srq(&self->ctx, &srq, 0));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, srq_pair(&self->ctx, &a[i], &b[i], &self->scq, &self->rcq, &srq));
	raw_srq_recv(&srq, &self->mr, RECV_AT, 64);
	srq_set_pi(&srq, (1 << RAW_SRQ_SHIFT) + 1);
	ASSERT_EQ(0, raw_send(&a[0], 0, &self->mr, 0, 8));
	expect_done(_metadata, &self->scq, VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE);
	expect_srq_and_qp(_metadata, self->async, srq.made.srqn, b[0].made.qpn);

	/* Nor when the index is mended; and it says so once. */
	srq_set_pi(&srq, 1);
	ASSERT_EQ(0, raw_send(&a[1], 0, &self->mr, 0, 8));
	expect_done(_metadata, &self->scq, VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE);
	expect_event(_metadata, self->async, VHCA_EVENT_QP_FATAL, b[1].made.qpn);
	expect_event(_metadata, self->async, VHCA_EVENT_QP_LAST_WQE_REACHED, b[1].made.qpn);
	EXPECT_FALSE(raw_next_cqe(&self->rcq));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, raw_destroy_qp(&b[i]));
	ASSERT_EQ(0, raw_destroy_srq(&srq, NULL));
}

TEST_F(services, a_receive_with_a_wrong_head_comes_back_with_its_tag)
{
	struct vhca_wqe_recv_head *head;
	struct raw_srq srq;
	struct raw_qp a, b;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_srq(&self->ctx, &srq, 0));
	ASSERT_EQ(0, srq_pair(&self->ctx, &a, &b, &self->scq, &self->rcq, &srq));
	head = (void *)srq.buf;
	raw_srq_recv(&srq, &self->mr, RECV_AT, 64);
	head->tag = htobe16(0xabcd);
	head->rsvd[2] = 1;
	ASSERT_EQ(0, raw_send(&a, 0, &self->mr, 0, 8));
	expect_done(_metadata, &self->scq, VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE);
	ASSERT_EQ(0, raw_wait_wc(&self->rcq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, wc.status);
	EXPECT_EQ(VHCA_VERR_WQE_SEG, wc.vendor_err);
	EXPECT_EQ(0xabcd, wc.wqe_index);
	EXPECT_EQ(VHCA_CQE_F_SRQ, wc.flags);
	expect_event(_metadata, self->async, VHCA_EVENT_QP_LAST_WQE_REACHED, b.made.qpn);
}

/*
 * XRC
 */
struct xrc_bed {
	uint32_t	xrcd;
	struct raw_srq	srq;
	struct raw_qp	send;
	struct raw_qp	recv;
};

static int xrc_connect(struct xrc_bed *x)
{
	struct raw_ctx *ctx = x->send.ctx;
	int err = raw_climb(&x->send, VHCA_QPS_RTS, attr_to(ctx, x->recv.made.qpn));

	return err ? err : raw_climb(&x->recv, VHCA_QPS_RTR, attr_to(ctx, x->send.made.qpn));
}

static int xrc_open(struct raw_ctx *ctx, struct xrc_bed *x, struct raw_cq *scq,
		    struct raw_cq *rcq)
{
	int err = raw_open_xrcd(ctx, VHCA_INVALID_FD, O_CREAT, &x->xrcd);

	if (!err)
		err = raw_xrc_srq(ctx, &x->srq, rcq, x->xrcd);
	if (!err)
		err = raw_qp_of(ctx, &x->send, VHCA_QPT_XRC_SEND, scq, 0);
	if (!err)
		err = raw_qp_of(ctx, &x->recv, VHCA_QPT_XRC_RECV, NULL, x->xrcd);
	return err ? err : xrc_connect(x);
}

/* XRC segment, remote address if @raddr, atomic if @atomic, one SGE. */
static int xrc_post(struct xrc_bed *x, uint8_t opcode, uint32_t srqn, const struct raw_mr *mr,
		    uint64_t raddr, bool atomic)
{
	struct vhca_wqe_xrc xrc = { .srqn = htobe32(srqn) };
	struct vhca_wqe_raddr remote = { .addr = htobe64(raddr), .rkey = htobe32(mr->lkey) };
	struct vhca_wqe_atomic operands = { .swap_add = htobe64(5) };
	struct vhca_wqe_data sge = raw_sge(mr, 0, 8);
	uint8_t segs[4 * VHCA_WQE_SEG_SIZE];
	unsigned int n = 0;

	memcpy(segs + VHCA_WQE_SEG_SIZE * n++, &xrc, sizeof(xrc));
	if (raddr)
		memcpy(segs + VHCA_WQE_SEG_SIZE * n++, &remote, sizeof(remote));
	if (atomic)
		memcpy(segs + VHCA_WQE_SEG_SIZE * n++, &operands, sizeof(operands));
	memcpy(segs + VHCA_WQE_SEG_SIZE * n++, &sge, sizeof(sge));
	return post_wqe(&x->send, opcode, segs, n);
}

/* What went wrong before is gone, and a message gets through. */
static void xrc_works(struct __test_metadata *_metadata, struct xrc_bed *x, struct raw_cq *scq,
		      struct raw_cq *rcq, struct raw_mr *mr)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_reset_qp(&x->send));
	ASSERT_EQ(0, raw_reset_qp(&x->recv));
	ASSERT_EQ(0, xrc_connect(x));
	raw_srq_recv(&x->srq, mr, RECV_AT, 64);
	ASSERT_EQ(0, xrc_post(x, VHCA_OP_SEND, x->srq.made.srqn, mr, 0, false));
	expect_done(_metadata, scq, VHCA_CQE_SUCCESS, 0);
	ASSERT_EQ(0, raw_wait_wc(rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(x->recv.made.qpn, wc.qpn);
	EXPECT_EQ(x->send.made.qpn, wc.src_qpn);
	EXPECT_EQ(8, wc.byte_len);
	EXPECT_EQ(VHCA_CQE_F_SRQ, wc.flags);
}

TEST_F(services, an_xrc_message_to_what_is_no_srq_of_the_domain)
{
	uint32_t wrong[4] = { 0, 0xfffff };
	struct raw_srq basic, other;
	struct xrc_bed x;
	uint32_t domain;
	unsigned int i;

	ASSERT_EQ(0, xrc_open(&self->ctx, &x, &self->scq, &self->rcq));
	ASSERT_EQ(0, raw_srq(&self->ctx, &basic, 0));
	ASSERT_EQ(0, raw_open_xrcd(&self->ctx, VHCA_INVALID_FD, O_CREAT, &domain));
	ASSERT_EQ(0, raw_xrc_srq(&self->ctx, &other, &self->rcq, domain));
	raw_srq_recv(&basic, &self->mr, RECV_AT, 64);
	raw_srq_recv(&other, &self->mr, RECV_AT, 64);
	wrong[2] = basic.made.srqn;
	wrong[3] = other.made.srqn;
	xrc_works(_metadata, &x, &self->scq, &self->rcq, &self->mr);
	for (i = 0; i < 4; i++) {
		expect_event(_metadata, self->async, VHCA_EVENT_COMM_EST, x.recv.made.qpn);
		ASSERT_EQ(0, xrc_post(&x, VHCA_OP_SEND, wrong[i], &self->mr, 0, false));
		expect_done(_metadata, &self->scq, VHCA_CQE_REM_INV_REQ_ERR, VHCA_VERR_RQ_SIZE);
		expect_event(_metadata, self->async, VHCA_EVENT_QP_REQ_ERR, x.recv.made.qpn);
		expect_event(_metadata, self->async, VHCA_EVENT_QP_LAST_WQE_REACHED,
			     x.recv.made.qpn);
		EXPECT_EQ(VHCA_QPS_ERR, raw_state(&x.recv));
		xrc_works(_metadata, &x, &self->scq, &self->rcq, &self->mr);
	}
}

TEST_F(services, xrc_writes_reads_and_does_atomics_with_keys_of_the_srqs_pd)
{
	uint64_t *word = (uint64_t *)(self->mr.addr + RECV_AT);
	uint64_t *local = (uint64_t *)self->mr.addr;
	uint64_t at = (uintptr_t)word;
	struct xrc_bed x;
	uint32_t srqn;

	ASSERT_EQ(0, xrc_open(&self->ctx, &x, &self->scq, &self->rcq));
	srqn = x.srq.made.srqn;
	*local = 0x1122334455667788;
	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_RDMA_WRITE, srqn, &self->mr, at, false));
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	EXPECT_EQ(0x1122334455667788, *word);
	expect_event(_metadata, self->async, VHCA_EVENT_COMM_EST, x.recv.made.qpn);

	*word = 37;
	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_RDMA_READ, srqn, &self->mr, at, false));
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	EXPECT_EQ(37, *local);

	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_ATOMIC_FA, srqn, &self->mr, at, true));
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	EXPECT_EQ(37, *local);
	EXPECT_EQ(42, *word);

	/* One byte too far. */
	at = (uintptr_t)self->mr.addr + MR_LEN - 7;
	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_RDMA_WRITE, srqn, &self->mr, at, false));
	expect_done(_metadata, &self->scq, VHCA_CQE_REM_ACCESS_ERR, VHCA_VERR_REMOTE_KEY);
	expect_event(_metadata, self->async, VHCA_EVENT_QP_ACCESS_ERR, x.recv.made.qpn);
	expect_event(_metadata, self->async, VHCA_EVENT_QP_LAST_WQE_REACHED, x.recv.made.qpn);
	xrc_works(_metadata, &x, &self->scq, &self->rcq, &self->mr);
}

TEST_F(services, an_xrc_segment_with_a_wrong_value)
{
	struct vhca_wqe_data segs[2] = { {}, raw_sge(&self->mr, 0, 8) };
	struct vhca_wqe_xrc xrc = { .rsvd[2] = 1 };
	struct xrc_bed x;

	ASSERT_EQ(0, xrc_open(&self->ctx, &x, &self->scq, &self->rcq));
	xrc.srqn = htobe32(x.srq.made.srqn);
	memcpy(segs, &xrc, sizeof(xrc));
	ASSERT_EQ(0, post_wqe(&x.send, VHCA_OP_SEND, segs, 2));
	expect_done(_metadata, &self->scq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG);
	/* Reliable: all of the QP is in error. */
	ASSERT_TRUE(RAW_WAIT(raw_state(&x.send) == VHCA_QPS_ERR));
	xrc_works(_metadata, &x, &self->scq, &self->rcq, &self->mr);
	ASSERT_EQ(0, post_wqe(&x.send, VHCA_OP_SEND, segs, 0));
	expect_done(_metadata, &self->scq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG);
}

TEST_F(services, an_xrc_sender_waits_for_a_receive)
{
	struct xrc_bed x;
	long long before = raw_device_counter(0, "rnr_naks");

	ASSERT_EQ(0, xrc_open(&self->ctx, &x, &self->scq, &self->rcq));
	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_SEND, x.srq.made.srqn, &self->mr, 0, false));
	ASSERT_TRUE(RAW_WAIT(raw_device_counter(0, "rnr_naks") > before));
	EXPECT_FALSE(raw_next_cqe(&self->scq));
	raw_srq_recv(&x.srq, &self->mr, RECV_AT, 64);
	expect_done(_metadata, &self->scq, VHCA_CQE_SUCCESS, 0);
	expect_done(_metadata, &self->rcq, VHCA_CQE_SUCCESS, 0);
}

TEST_F(services, an_xrc_srq_that_goes_is_named_no_more)
{
	struct xrc_bed x;

	ASSERT_EQ(0, xrc_open(&self->ctx, &x, &self->scq, &self->rcq));
	xrc_works(_metadata, &x, &self->scq, &self->rcq, &self->mr);
	ASSERT_EQ(0, raw_destroy_srq(&x.srq, NULL));
	ASSERT_EQ(0, xrc_post(&x, VHCA_OP_SEND, x.srq.made.srqn, &self->mr, 0, false));
	expect_done(_metadata, &self->scq, VHCA_CQE_REM_INV_REQ_ERR, VHCA_VERR_RQ_SIZE);
}

TEST_HARNESS_MAIN
