// SPDX-License-Identifier: GPL-2.0-only
/*
 * A request on its way and its response, when the plan has them lost or corrupted.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "vdev.h"

/*
 * Let it go with a copy of the payload, corrupted on the side where it arrives. The
 * requester's own list is moved on as without, and its keys are looked at.
 */
static void trip_corrupt(struct vdev_qp *qp, struct vdev_request *req,
			 struct vdev_response *resp, vdev_carry_fn carry,
			 const struct vdev_hit *hit)
{
	bool in = qp->send.form & VDEV_FORM_IN;
	u8 *buf = kvzalloc(req->length, GFP_KERNEL_ACCOUNT);
	struct vdev_sgl copy = { .inl = buf, .length = req->length };
	struct vdev_sgl back = copy;

	if (!buf)
		return;		/* lost, then */
	if (!in && vdev_sgl_copy(qp->dev, &copy, req->payload, req->length)) {
		resp->answer = VDEV_LOCAL;
	} else {
		if (!in)
			buf[hit->offset - qp->send.offset] ^= hit->xor;
		copy = back;
		req->payload = &copy;
		carry(qp, req, resp);
		req->payload = &qp->send.sgl;
	}
	if (in && resp->answer == VDEV_ACK) {
		buf[hit->offset - qp->send.offset] ^= hit->xor;
		if (vdev_sgl_copy(qp->dev, req->payload, &back, req->length))
			resp->answer = VDEV_LOCAL;
	}
	kvfree(buf);
}

void vdev_trip(struct vdev_qp *qp, struct vdev_request *req, struct vdev_response *resp,
	       vdev_carry_fn carry)
{
	struct vdev_place place = {
		.qp = qp->qpn,
		.opcode = req->opcode,
		.from = qp->send.offset,
		.length = req->length,
	};
	struct vdev_hit hit;

	if (!vdev_fault_at(qp->dev, VDEV_AT_REQUEST, &place, &hit)) {
		carry(qp, req, resp);
		return;
	}
	switch (hit.action) {
	case VDEV_LOSE_REQUEST:
		break;
	case VDEV_LOSE_RESPONSE:
		carry(qp, req, resp);
		/* The requester knows by itself what is wrong at its end. */
		if (resp->answer != VDEV_LOCAL)
			resp->answer = VDEV_SILENCE;
		break;
	default:
		trip_corrupt(qp, req, resp, carry, &hit);
	}
}
