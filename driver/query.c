// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a context may ask of the device, its ports and their tables.
 */
#include "vhca.h"

/**
 * vhca_cmd_query() - ask the device about a port
 * @vdev: the device.
 * @opcode: what is asked.
 * @port: of which port.
 * @index: which entry of the table.
 * @done: the answer.
 *
 * Return: as vhca_cmd().
 */
int vhca_cmd_query(struct vhca_dev *vdev, u16 opcode, u32 port, u32 index,
		   struct vhca_cmd_done *done)
{
	struct vhca_cmd cmd = {
		.object = {
			.number	= cpu_to_be32(port),
			.index	= cpu_to_be32(index),
		},
	};

	return vhca_cmd(vdev, opcode, &cmd, done);
}

/** vhca_query_pkeys() - learn the size of the P_Key table; at probe */
int vhca_query_pkeys(struct vhca_dev *vdev)
{
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_cmd_query(vdev, VHCA_CMD_QUERY_PORT, 1, 0, &done);
	if (!ret)
		vdev->caps.max_pkeys = be16_to_cpu(done.port.pkey_tbl_len);
	return ret;
}

/** vhca_query_device() - VHCA_IOC_QUERY_DEVICE; all fields are out */
int vhca_query_device(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_dev *vdev = ctx->vdev;
	const struct vhca_caps *caps = &vdev->caps;

	call->query_device = (struct vhca_query_device) {
		.abi_version		= VHCA_ABI_VERSION,
		.function		= caps->function,
		.node_guid		= cpu_to_be64(caps->node_guid),
		.sys_image_guid		= cpu_to_be64(caps->node_guid),
		.fw_ver			= caps->fw_ver,
		.max_mr_size		= caps->max_mr_size,
		.vendor_id		= vdev->pdev->vendor,
		.vendor_part_id		= vdev->pdev->device,
		.hw_ver			= vdev->pdev->revision,
		.max_qp			= vhca_limit(VHCA_KIND_QP, caps->max_qp),
		.max_cq			= vhca_limit(VHCA_KIND_CQ, caps->max_cq),
		.max_mr			= vhca_limit(VHCA_KIND_MR, caps->max_mkey),
		.max_pd			= vhca_limit(VHCA_KIND_PD, caps->max_pd),
		.max_uar		= vhca_limit(VHCA_KIND_UAR, caps->max_uar),
		.max_cqe		= 1 << caps->max_cq_shift,
		.max_qp_send_shift	= caps->max_sq_shift,
		.max_qp_recv_shift	= caps->max_rq_shift,
		.max_qp_send_sge	= caps->max_send_sge,
		.max_qp_recv_sge	= caps->max_recv_sge,
		.max_qp_inline		= caps->max_inline,
		.max_qp_rd_atom		= caps->max_rd_atom,
		.max_qp_init_rd_atom	= caps->max_rd_atom,
		.num_comp_vectors	= vdev->num_comp,
		.num_ports		= caps->num_ports,
		.max_pkeys		= caps->max_pkeys,
		.local_ca_ack_delay	= caps->ack_delay,
		.max_srq		= vhca_limit(VHCA_KIND_SRQ, caps->max_srq),
		.max_srq_shift		= caps->max_srq_shift,
		.max_srq_sge		= caps->max_srq_sge,
		.max_xrcd		= vhca_limit(VHCA_KIND_XRCD, caps->max_xrcd),
		.max_mcast_grp		= caps->max_mcast_grp,
		.max_mcast_qp_attach	= caps->max_mcast_qp,
		.max_cq_count		= caps->max_cq_count,
		.max_cq_period		= caps->max_cq_period,
		.dm_size		= (u64)vhca_limit(VHCA_KIND_DM, caps->dm_pages) <<
					  PAGE_SHIFT,
		.max_mw			= vhca_limit(VHCA_KIND_MW, caps->max_mkey),
		.max_mcast_attach	= vhca_limit(VHCA_KIND_MCAST,
						     caps->max_mcast_grp * caps->max_mcast_qp),
	};
	return 0;
}

/** vhca_query_port() - VHCA_IOC_QUERY_PORT */
int vhca_query_port(struct vhca_ctx *ctx, struct vhca_call *call)
{
	u32 port = call->query_port.port;
	const struct vhca_prm_port *prm;
	struct vhca_cmd_done done;
	int ret;

	if (memchr_inv(call->query_port.rsvd, 0, sizeof(call->query_port.rsvd)))
		return -EINVAL;
	ret = vhca_cmd_query(ctx->vdev, VHCA_CMD_QUERY_PORT, port, 0, &done);
	if (ret)
		return ret;
	prm = &done.port;
	call->query_port = (struct vhca_query_port) {
		.port		= port,
		.port_cap_flags	= be32_to_cpu(prm->cap_flags),
		.max_msg_sz	= be32_to_cpu(prm->max_msg_sz),
		.gid_tbl_len	= be32_to_cpu(prm->gid_tbl_len),
		.pkey_tbl_len	= be16_to_cpu(prm->pkey_tbl_len),
		.lid		= be16_to_cpu(prm->lid),
		.sm_lid		= be16_to_cpu(prm->sm_lid),
		.state		= prm->state,
		.max_mtu	= prm->max_mtu,
		.active_mtu	= prm->active_mtu,
		.max_vl_num	= prm->max_vl_num,
		.subnet_timeout	= prm->subnet_timeout,
		.active_width	= prm->active_width,
		.active_speed	= prm->active_speed,
		.qkey_viol_cntr	= be32_to_cpu(prm->qkey_viol_cntr),
		.phys_state	= prm->phys_state,
		.link_layer	= prm->link_layer,
	};
	return 0;
}

/** vhca_query_gid() - VHCA_IOC_QUERY_GID */
int vhca_query_gid(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_query_gid *arg = &call->query_gid;
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_cmd_query(ctx->vdev, VHCA_CMD_QUERY_GID, arg->port,
			     arg->index, &done);
	if (!ret)
		memcpy(arg->gid, done.gid, sizeof(arg->gid));
	return ret;
}

/** vhca_query_pkey() - VHCA_IOC_QUERY_PKEY */
int vhca_query_pkey(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_query_pkey *arg = &call->query_pkey;
	struct vhca_cmd_done done;
	int ret;

	if (memchr_inv(arg->rsvd, 0, sizeof(arg->rsvd)))
		return -EINVAL;
	ret = vhca_cmd_query(ctx->vdev, VHCA_CMD_QUERY_PKEY, arg->port,
			     arg->index, &done);
	if (!ret)
		arg->pkey = done.pkey;
	return ret;
}
