// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving half of a QP: checks a request, moves its payload to
 * where the receive WQE says, completes the receive.
 *
 * It knows the requester only by the request, which might as well have come from
 * another host.
 */
#include "vdev.h"

static void recv_complete(struct vdev_qp *qp, const struct vdev_request *req,
			  u8 status, u8 verr)
{
	struct vdev_recv *recv = &qp->recv;
	struct vhca_cqe cqe = {
		.byte_len = cpu_to_be32(status ? 0 : recv->offset),
		.flags_qpn = cpu_to_be32(qp->qpn),
		.wqe_index = cpu_to_be16(recv->ci),
		.status = status,
		.vendor_err = verr,
		.opcode = VHCA_CQE_RESP,
	};

	if (req) {
		cqe.src_qpn = cpu_to_be32(req->src_qpn);
		cqe.slid = cpu_to_be16(req->slid);
		if (req->solicited)
			cqe.flags_qpn |= cpu_to_be32(VHCA_CQE_F_SOLICITED <<
						     VHCA_CQE_FLAGS_SHIFT);
	}
	recv->ci++;
	recv->busy = false;
	vdev_count(qp->dev, VDEV_RECV_WQES);
	if (!vdev_cq_post(qp->recv_cq, &cqe))
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
}

/* Receive WQEs posted and not consumed; more than the ring has: -1. */
static int recv_posted(struct vdev_qp *qp)
{
	/* Index before WQE; pairs with the library's barrier between the two. */
	u16 pi = be32_to_cpu(smp_load_acquire(&qp->dbr->rq_pi));
	u16 n = pi - qp->recv.ci;

	return n <= 1 << qp->rq_shift ? n : -1;
}

bool vdev_responder_flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	int n;

	/*
	 * rq_watch (vdev_qp_fail()) before rq_pi; pairs with the library's
	 * barrier between rq_pi and its look at rq_watch.
	 */
	smp_mb();
	for (n = recv_posted(qp); n > 0; n--) {
		if (budget->wqes-- <= 0)
			return true;
		recv_complete(qp, NULL, VHCA_CQE_WR_FLUSH_ERR, VHCA_VERR_STATE);
	}
	return false;
}

/* Copy the next receive WQE; the copy is what is checked and used. */
static bool recv_fetch(struct vdev_qp *qp)
{
	struct vdev_recv *recv = &qp->recv;
	unsigned int nsegs = 1u << qp->rq_sge_shift;
	size_t size = nsegs * sizeof(struct vhca_wqe_data);
	u32 slot = recv->ci & ((1u << qp->rq_shift) - 1);

	memcpy(recv->wqe, qp->buf.addr + ((size_t)VHCA_WQEBB_SIZE << qp->sq_shift) +
	       slot * size, size);
	recv->offset = 0;
	recv->busy = true;
	return vdev_sgl_init(&recv->sgl, qp->dev, qp->pd, VHCA_MKEY_LOCAL_WRITE,
			     recv->wqe, nsegs);
}

/* Is the request from the QP that this one is connected to? */
static bool recv_connected(const struct vdev_qp *qp, const struct vdev_request *req)
{
	return be32_to_cpu(qp->attr.dest_qpn) == req->src_qpn &&
	       qp->peer_lid == req->slid;
}

static bool recv_accepts(struct vdev_qp *qp, const struct vdev_request *req)
{
	switch (qp->state) {
	case VHCA_QP_RTR:
	case VHCA_QP_RTS:
	case VHCA_QP_SQD:
		break;
	default:
		return false;
	}
	return recv_connected(qp, req) && req->psn == qp->recv.psn &&
	       req->first == !qp->recv.busy;
}

/* The receive cannot be done: say so on both sides. */
static u8 recv_fail(struct vdev_qp *qp, const struct vdev_request *req,
		    u8 status, u8 verr, u8 answer)
{
	recv_complete(qp, req, status, verr);
	vdev_qp_fail(qp, 0);
	return answer;
}

/* Move the payload; enum vdev_answer. */
static u8 recv_payload(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl *bad;

	if (recv->offset + req->length > recv->sgl.length)
		return recv_fail(qp, req, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
				 VDEV_NAK_INVALID);
	bad = vdev_sgl_copy(&recv->sgl, req->payload, req->length);
	if (bad == req->payload)
		return VDEV_LOCAL;
	if (bad)
		return recv_fail(qp, req, VHCA_CQE_LOC_PROT_ERR, bad->verr,
				 VDEV_NAK_OP);
	recv->offset += req->length;
	recv->psn = (recv->psn + req->packets) & VHCA_QPN_MASK;
	if (req->last)
		recv_complete(qp, req, VHCA_CQE_SUCCESS, VHCA_VERR_NONE);
	return VDEV_ACK;
}

static u8 recv_send(struct vdev_qp *qp, const struct vdev_request *req,
		    struct vdev_response *resp)
{
	if (req->first) {
		int n = recv_posted(qp);

		if (n < 0) {
			vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
			return VDEV_NAK_OP;
		}
		if (!n) {
			vdev_count(qp->dev, VDEV_RNR_NAKS);
			resp->rnr_timer = qp->attr.min_rnr_timer;
			return VDEV_RNR;
		}
		if (!recv_fetch(qp))
			return recv_fail(qp, req, VHCA_CQE_LOC_QP_OP_ERR,
					 VHCA_VERR_WQE_SEG, VDEV_NAK_OP);
	}
	return recv_payload(qp, req);
}

static void recv_established(struct vdev_qp *qp)
{
	if (qp->state == VHCA_QP_RTR &&
	    !test_and_set_bit(VDEV_QP_ESTABLISHED, &qp->flags))
		vdev_async_event(qp->dev, VHCA_EQE_COMM_EST, qp->qpn);
}

void vdev_respond(struct vdev *dev, const struct vdev_request *req,
		  struct vdev_response *resp)
{
	struct vdev_qp *qp = vdev_qp_find(dev, req->dest_qpn);

	resp->answer = VDEV_SILENCE;
	if (!qp)
		return;
	mutex_lock(&qp->recv.lock);
	if (recv_accepts(qp, req)) {
		recv_established(qp);
		resp->answer = recv_send(qp, req, resp);
	}
	mutex_unlock(&qp->recv.lock);
}
