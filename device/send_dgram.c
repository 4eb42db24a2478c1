// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams, as a UD QP sends them: each WQE says where its own goes.
 */
#include <linux/string.h>

#include "vdev.h"

#define GRH_VERSION		6
#define GRH_NEXT_HEADER		0x1b
/* What GRH's length counts besides the payload: BTH, DETH, invariant CRC. */
#define BTH_SIZE		12
#define DETH_SIZE		8
#define IMM_SIZE		4
#define ICRC_SIZE		4

static void make_grh(struct vdev_qp *qp, const struct vhca_wqe_dgram *dgram,
		     struct vdev_grh *grh)
{
	u32 len = BTH_SIZE + DETH_SIZE + ALIGN(qp->send.sgl.length, 4) + ICRC_SIZE;

	if (qp->send.form & VDEV_FORM_IMM)
		len += IMM_SIZE;
	grh->version_class_flow = cpu_to_be32(GRH_VERSION << 28 | dgram->traffic_class << 20) |
				  dgram->flow_label;
	grh->paylen = cpu_to_be16(len);
	grh->next_header = GRH_NEXT_HEADER;
	grh->hop_limit = dgram->hop_limit;
	vdev_gid(qp->dev, grh->sgid);
	memcpy(grh->dgid, dgram->dgid, sizeof(grh->dgid));
}

static bool is_multicast(const struct vhca_wqe_dgram *dgram)
{
	return be32_to_cpu(dgram->dest_qpn) == VHCA_QPN_MASK && dgram->is_global &&
	       vdev_lid_is_multicast(be16_to_cpu(dgram->dlid));
}

/* The function that a datagram goes to; NULL when it goes nowhere. */
static struct vdev *unicast_peer(const struct vhca_wqe_dgram *dgram)
{
	u16 dlid = be16_to_cpu(dgram->dlid);
	struct vdev *dev;

	if (!dgram->is_global)
		return vdev_by_lid(dlid);
	/* A port takes no GRH that is not for it. */
	dev = vdev_by_gid(dgram->dgid);
	return dev && (!dlid || dlid == vdev_lid(dev)) ? dev : NULL;
}

void vdev_send_datagram(struct vdev_qp *qp, struct vdev_request *req,
			struct vdev_response *resp)
{
	const struct vhca_wqe_dgram *dgram = qp->send.dgram;
	u32 qkey = be32_to_cpu(dgram->qkey);
	struct vdev_grh grh;
	struct vdev *peer;

	req->dest_qpn = be32_to_cpu(dgram->dest_qpn);
	req->qkey = qkey & VDEV_OWN_QKEY ? be32_to_cpu(qp->attr.qkey) : qkey;
	req->sl = dgram->sl;
	if (dgram->is_global) {
		make_grh(qp, dgram, &grh);
		req->grh = &grh;
	}
	if (is_multicast(dgram)) {
		vdev_mcast_respond(be16_to_cpu(dgram->dlid), req, resp);
		return;
	}
	peer = unicast_peer(dgram);
	if (peer)
		vdev_respond(peer, &qp->send.peer, req, resp);
}
