// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast: which UD QPs get what is sent to a group. The groups
 * live in the device, which also takes a QP out of them when it is destroyed.
 */
#include "vhca.h"

static int vhca_mcast(struct vhca_ctx *ctx, const struct vhca_mcast *arg, u16 opcode)
{
	struct vhca_qp *qp = xa_load(&ctx->qps, arg->qpn);
	struct vhca_cmd cmd = {
		.mcast = {
			.qpn	= cpu_to_be32(arg->qpn),
			.dlid	= cpu_to_be16(arg->dlid),
		},
	};
	struct vhca_cmd_done done;
	int ret;

	if (!qp || qp->hw->type != VHCA_QPT_UD || arg->gid[0] != 0xff || arg->rsvd)
		return -EINVAL;
	memcpy(cmd.mcast.gid, arg->gid, sizeof(cmd.mcast.gid));
	ret = vhca_cmd(ctx->vdev, opcode, &cmd, &done);
	if (ret == -ENOMEM && done.status == VHCA_CMD_NO_RESOURCE)
		ret = -ENOSPC;
	return ret;
}

/** vhca_attach_mcast() - VHCA_IOC_ATTACH_MCAST */
int vhca_attach_mcast(struct vhca_ctx *ctx, struct vhca_call *call)
{
	return vhca_mcast(ctx, &call->mcast, VHCA_CMD_ATTACH_MCAST);
}

/** vhca_detach_mcast() - VHCA_IOC_DETACH_MCAST */
int vhca_detach_mcast(struct vhca_ctx *ctx, struct vhca_call *call)
{
	return vhca_mcast(ctx, &call->mcast, VHCA_CMD_DETACH_MCAST);
}
