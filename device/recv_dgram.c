// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams, as a UD QP takes them: whole or not at all, and without an answer.
 */
#include "vdev.h"

/* Its own multicast message, which it does not want? */
static bool is_blocked(const struct vdev_qp *qp, const struct vdev_request *req)
{
	return qp->create_flags & VHCA_QPF_BLOCK_LOOPBACK &&
	       req->dest_qpn == VHCA_QPN_MASK && req->src_qpn == qp->qpn &&
	       req->slid == vdev_lid(qp->dev);
}

/* Room of a GRH first, zeroes when the message has none, then the payload. */
static struct vdev_sgl *copy(struct vdev_qp *qp, const struct vdev_request *req)
{
	static const struct vdev_grh none;
	struct vdev_sgl grh = {
		.inl = req->grh ? req->grh : &none,
		.length = VHCA_GRH_SIZE,
	};
	struct vdev_sgl *bad = vdev_sgl_copy(qp->dev, &qp->recv.sgl, &grh, VHCA_GRH_SIZE);

	return bad ? bad : vdev_sgl_copy(qp->dev, &qp->recv.sgl, req->payload, req->length);
}

u8 vdev_recv_datagram(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl *bad;
	u8 verr;

	if (req->qkey != be32_to_cpu(qp->attr.qkey)) {
		vdev_count(qp->dev, VDEV_QKEY_VIOLATIONS);
		return VDEV_SILENCE;
	}
	if (is_blocked(qp, req) || vdev_recv_take(qp, req) != VDEV_ACK)
		return VDEV_SILENCE;
	verr = vdev_recv_list(qp);
	if (verr)
		return vdev_recv_fail(qp, req, VHCA_CQE_LOC_QP_OP_ERR, verr, VDEV_NAK_OP);
	if (VHCA_GRH_SIZE + req->length > recv->sgl.length)
		return vdev_recv_fail(qp, req, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
				      VDEV_NAK_INVALID);
	bad = copy(qp, req);
	/* The WQE stays in hand, for the next. */
	if (bad == req->payload)
		return VDEV_LOCAL;
	if (bad)
		return vdev_recv_fail(qp, req, VHCA_CQE_LOC_PROT_ERR, bad->verr,
				      VDEV_NAK_OP);
	recv->offset = VHCA_GRH_SIZE + req->length;
	return vdev_recv_done(qp, req);
}
