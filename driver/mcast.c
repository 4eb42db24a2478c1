// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast: which UD QPs get what is sent to a group. The groups
 * live in the device, which also takes a QP out of them when it is destroyed.
 */
#include "vhca.h"

static int vhca_mcast_cmd(struct vhca_ctx *ctx, const struct vhca_mcast *arg, u16 opcode,
			  struct vhca_cmd_done *done)
{
	struct vhca_cmd cmd = {
		.mcast = {
			.qpn	= cpu_to_be32(arg->qpn),
			.dlid	= cpu_to_be16(arg->dlid),
		},
	};
	int ret;

	memcpy(cmd.mcast.gid, arg->gid, sizeof(cmd.mcast.gid));
	ret = vhca_cmd(ctx->vdev, opcode, &cmd, done);
	if (ret == -ENOMEM && done->status == VHCA_CMD_NO_RESOURCE)
		return -ENOSPC;
	return ret;
}

/* The UD QP that a call is about, or NULL. */
static struct vhca_qp *vhca_mcast_qp(struct vhca_ctx *ctx, const struct vhca_mcast *arg)
{
	struct vhca_qp *qp = xa_load(&ctx->qps, arg->qpn);

	if (!qp || qp->hw->type != VHCA_QPT_UD || arg->gid[0] != 0xff || arg->rsvd)
		return NULL;
	return qp;
}

/** vhca_attach_mcast() - VHCA_IOC_ATTACH_MCAST */
int vhca_attach_mcast(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_qp *qp = vhca_mcast_qp(ctx, &call->mcast);
	struct vhca_cmd_done done;
	int ret;

	if (!qp)
		return -EINVAL;
	ret = vhca_charge(ctx, VHCA_KIND_MCAST, 1);
	if (ret)
		return ret;
	ret = vhca_mcast_cmd(ctx, &call->mcast, VHCA_CMD_ATTACH_MCAST, &done);
	/* Unless it was attached already. */
	if (!ret && done.number)
		qp->mcast++;
	else
		vhca_uncharge(ctx, VHCA_KIND_MCAST, 1);
	return ret;
}

/** vhca_detach_mcast() - VHCA_IOC_DETACH_MCAST */
int vhca_detach_mcast(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_qp *qp = vhca_mcast_qp(ctx, &call->mcast);
	struct vhca_cmd_done done;
	int ret;

	if (!qp)
		return -EINVAL;
	ret = vhca_mcast_cmd(ctx, &call->mcast, VHCA_CMD_DETACH_MCAST, &done);
	if (ret)
		return ret;
	qp->mcast--;
	vhca_uncharge(ctx, VHCA_KIND_MCAST, 1);
	return 0;
}
