// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive WQEs, of the QP's own queue or of a shared one: taken, completed,
 * flushed.
 *
 * A WQE is read once, into recv.wqe, and its slot is free from then on. It is in
 * hand until it is completed, which another message may do than the one that it was
 * taken for.
 */
#include "vdev.h"

/* The SRQ that WQEs come from; NULL when it is the RQ, or an SRQ of XRC that went away. */
static struct vdev_srq *recv_srq(struct vdev_qp *qp)
{
	struct vdev_srq *srq;

	if (qp->type != VHCA_PRM_QPT_XRC_RECV)
		return qp->srq;
	/* Another one may have its number by now. */
	srq = vdev_srq_find(qp->dev, qp->recv.srqn);
	return srq && srq->serial == qp->recv.srq_serial ? srq : NULL;
}

/* Receive WQEs posted and not taken; more than the ring has: -1. */
static int rq_posted(struct vdev_qp *qp)
{
	/* Index before WQE; pairs with the library's barrier between the two. */
	u16 pi = be32_to_cpu(smp_load_acquire(&qp->dbr->rq_pi));
	u16 n = pi - qp->recv.ci;

	return n <= 1 << qp->rq_shift ? n : -1;
}

static int rq_take(struct vdev_qp *qp)
{
	struct vdev_recv *recv = &qp->recv;
	u32 nsegs = 1u << qp->rq_sge_shift;
	u32 slot = recv->ci & ((1u << qp->rq_shift) - 1);
	int n = rq_posted(qp);

	if (n <= 0)
		return n;
	vdev_fetch_segs(recv->wqe, qp->buf.addr + ((size_t)VHCA_WQEBB_SIZE << qp->sq_shift) +
			(size_t)slot * nsegs * VHCA_WQE_SEG_SIZE, nsegs);
	recv->index = recv->ci++;
	return 1;
}

static int srq_take(struct vdev_qp *qp)
{
	struct vdev_recv *recv = &qp->recv;
	const struct vhca_wqe_recv_head *head = (const void *)recv->wqe;
	struct vdev_srq *srq = recv_srq(qp);
	int n = 0;

	/* There would be no completion. */
	if (srq && vdev_cq_failed(srq->cq))
		return -1;
	if (srq)
		n = vdev_srq_take(srq, recv->wqe);
	if (n > 0)
		recv->index = be16_to_cpu(head->tag);
	return n;
}

static noinline bool take_faulted(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_hit hit;

	return vdev_fault_recv(qp, VDEV_AT_RECV, req, &hit);
}

u8 vdev_recv_take(struct vdev_qp *qp, const struct vdev_request *req)
{
	int n;

	if (vdev_faults() && take_faulted(qp, req))
		return VDEV_RNR;
	if (qp->recv.held)
		return VDEV_ACK;
	n = vdev_qp_has_rq(qp) ? rq_take(qp) : srq_take(qp);
	if (n < 0) {
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
		return VDEV_NAK_OP;
	}
	qp->recv.held = n;
	return n ? VDEV_ACK : VDEV_RNR;
}

/* The list of the WQE in hand, behind its head; false when a segment is malformed. */
static inline bool recv_list(struct vdev_qp *qp, u32 pd, u32 heads, u32 nsegs)
{
	struct vdev_recv *recv = &qp->recv;

	recv->sgl = (struct vdev_sgl){
		.dev = qp->dev,
		.memo = &recv->lkeys,
		.pd = pd,
		.access = VHCA_MKEY_LOCAL_WRITE,
		.seg = recv->wqe + heads,
	};
	return vdev_sgl_measure(&recv->sgl, nsegs);
}

/* Where WQEs are signed the first segment is a head. */
static u8 rq_list(struct vdev_qp *qp)
{
	struct vdev_recv *recv = &qp->recv;
	const struct vhca_wqe_recv_head *head = (const void *)recv->wqe;
	u32 heads = qp->create_flags & VHCA_QPF_SIGNATURE ? 1 : 0;
	u32 nsegs = 1u << qp->rq_sge_shift;
	u32 used;

	if (!recv_list(qp, qp->pd, heads, nsegs - heads))
		return VHCA_VERR_WQE_SEG;
	if (!heads)
		return VHCA_VERR_NONE;
	vdev_count(qp->dev, VDEV_SIGNATURES);
	if (head->tag || head->rsvd0 || memchr_inv(head->rsvd, 0, sizeof(head->rsvd)))
		return VHCA_VERR_WQE_SEG;
	/* The sentinel, if there is one, is signed, what lies behind it is not. */
	used = min(heads + recv->sgl.nsegs + 1, nsegs);
	return vdev_xor(recv->wqe, used * VHCA_WQE_SEG_SIZE) == VDEV_SIGNED ?
	       VHCA_VERR_NONE : VHCA_VERR_WQE_SIGNATURE;
}

static u8 srq_list(struct vdev_qp *qp)
{
	struct vdev_recv *recv = &qp->recv;
	const struct vhca_wqe_recv_head *head = (const void *)recv->wqe;
	struct vdev_srq *srq = recv_srq(qp);

	if (!srq || head->rsvd0 || head->signature ||
	    memchr_inv(head->rsvd, 0, sizeof(head->rsvd)) ||
	    !recv_list(qp, srq->pd, 1, (1u << srq->sge_shift) - 1))
		return VHCA_VERR_WQE_SEG;
	return VHCA_VERR_NONE;
}

u8 vdev_recv_list(struct vdev_qp *qp)
{
	return vdev_qp_has_rq(qp) ? rq_list(qp) : srq_list(qp);
}

static u32 recv_flags(const struct vdev_request *req, u8 status)
{
	u32 flags = req->solicited ? VHCA_CQE_F_SOLICITED : 0;

	if (status)
		return flags;
	if (req->opcode == VHCA_OP_SEND_IMM || req->opcode == VHCA_OP_RDMA_WRITE_IMM)
		flags |= VHCA_CQE_F_IMM;
	if (req->opcode == VHCA_OP_SEND_INV)
		flags |= VHCA_CQE_F_INV;
	if (req->grh)
		flags |= VHCA_CQE_F_GRH;
	return flags;
}

/* What a CQE says of the message. */
static void cqe_of_request(struct vhca_cqe *cqe, const struct vdev_request *req, u8 status)
{
	cqe->src_qpn = cpu_to_be32(req->src_qpn | req->sl << VHCA_CQE_SL_SHIFT);
	cqe->slid = cpu_to_be16(req->slid);
	if (req->opcode == VHCA_OP_RDMA_WRITE_IMM)
		cqe->opcode = VHCA_CQE_RESP_WRITE;
	cqe->flags_qpn |= cpu_to_be32(recv_flags(req, status) << VHCA_CQE_FLAGS_SHIFT);
	cqe->imm = status ? 0 : req->imm;
}

void vdev_recv_complete(struct vdev_qp *qp, const struct vdev_request *req,
			u8 status, u8 verr)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_srq *srq = recv_srq(qp);
	struct vdev_cq *cq = srq && srq->cq ? srq->cq : qp->recv_cq;
	struct vhca_cqe cqe = {
		.byte_len = cpu_to_be32(status ? 0 : recv->offset),
		.flags_qpn = cpu_to_be32(qp->qpn),
		.wqe_index = cpu_to_be16(recv->index),
		.status = status,
		.vendor_err = verr,
		.opcode = VHCA_CQE_RESP,
	};

	if (req)
		cqe_of_request(&cqe, req, status);
	if (srq) {
		cqe.srqn = cpu_to_be32(srq->srqn);
		cqe.flags_qpn |= cpu_to_be32(VHCA_CQE_F_SRQ << VHCA_CQE_FLAGS_SHIFT);
	}
	if (recv->in_cqe && !status) {
		memcpy(cqe.payload, recv->payload, sizeof(cqe.payload));
		cqe.flags_qpn |= cpu_to_be32(VHCA_CQE_F_PAYLOAD << VHCA_CQE_FLAGS_SHIFT);
		vdev_count(qp->dev, VDEV_CQE_PAYLOADS);
	}
	recv->in_cqe = false;
	recv->held = false;
	recv->busy = false;
	vdev_count(qp->dev, VDEV_RECV_WQES);
	/* Without a CQ: of an SRQ of XRC that went away, and its CQ perhaps with it. */
	if (cq && !vdev_cq_post(cq, &cqe))
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
}

u8 vdev_recv_fail(struct vdev_qp *qp, const struct vdev_request *req,
		  u8 status, u8 verr, u8 answer)
{
	vdev_recv_complete(qp, req, status, verr);
	vdev_qp_fail(qp, 0);
	return answer;
}

/* What the requester is told of a receive that failed so, by a rule. */
static u8 recv_answer(u8 status)
{
	switch (status) {
	case VHCA_CQE_LOC_LEN_ERR:
	case VHCA_CQE_REM_INV_REQ_ERR:
		return VDEV_NAK_INVALID;
	case VHCA_CQE_REM_ACCESS_ERR:
		return VDEV_NAK_ACCESS;
	default:
		return VDEV_NAK_OP;
	}
}

/* The message is all there, and a rule may have its way with its completion. */
static noinline u8 done_faulted(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_hit hit = {};

	if (vdev_fault_recv(qp, VDEV_AT_RECV_END, req, &hit) && hit.status)
		return vdev_recv_fail(qp, req, hit.status, hit.verr, recv_answer(hit.status));
	vdev_recv_complete(qp, req, VHCA_CQE_SUCCESS, hit.verr);
	return VDEV_ACK;
}

u8 vdev_recv_done(struct vdev_qp *qp, const struct vdev_request *req)
{
	if (vdev_faults())
		return done_faulted(qp, req);
	vdev_recv_complete(qp, req, VHCA_CQE_SUCCESS, VHCA_VERR_NONE);
	return VDEV_ACK;
}

static void flush_one(struct vdev_qp *qp)
{
	vdev_recv_complete(qp, NULL, VHCA_CQE_WR_FLUSH_ERR, VHCA_VERR_STATE);
}

void vdev_recv_return(struct vdev_qp *qp)
{
	if (qp->recv.held && !vdev_qp_has_rq(qp))
		flush_one(qp);
}

/* The QP takes no further WQE from an SRQ: say so, once. */
static void last_wqe(struct vdev_qp *qp)
{
	if (!test_and_set_bit(VDEV_QP_LAST_WQE, &qp->flags))
		vdev_async_event(qp->dev, VHCA_EQE_QP_LAST_WQE, qp->qpn);
}

static bool flush_rq(struct vdev_qp *qp, struct vdev_budget *budget)
{
	int n;

	/*
	 * rq_watch (vdev_qp_fail()) before rq_pi; pairs with the library's
	 * barrier between rq_pi and its look at rq_watch.
	 */
	smp_mb();
	for (n = rq_posted(qp); n > 0; n--) {
		if (budget->wqes-- <= 0)
			return true;
		qp->recv.index = qp->recv.ci++;
		flush_one(qp);
	}
	return false;
}

bool vdev_recv_flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	if (qp->recv.held)
		flush_one(qp);
	if (vdev_qp_has_rq(qp))
		return flush_rq(qp, budget);
	if (qp->type != VHCA_PRM_QPT_XRC_SEND)
		last_wqe(qp);
	return false;
}
