// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an id is: its addresses, GIDs and paths, in the forms of the user ABI.
 */
#include <rdma/ib_verbs.h>

#include "cm.h"

#define CM_EXACTLY		2	/* the selector of a path record's value */

/* A path record, as the subnet administrator sends it. */
struct cm_path_wire {
	__be64 service_id;
	u8 dgid[16];
	u8 sgid[16];
	__be16 dlid;
	__be16 slid;
	__be32 flow_hop;		/* 4 raw_traffic etc., 20 flow label, 8 hop limit */
	u8 tclass;
	u8 reversible;			/* and how many paths */
	__be16 pkey;
	__be16 qos_sl;
	u8 mtu;				/* with a selector; so are those that follow */
	u8 rate;
	u8 life;
	u8 preference;
	u8 rsvd[6];
};

static_assert(sizeof(struct cm_path_wire) == sizeof_field(struct ib_path_rec_data, path_rec));

#define CM_REVERSIBLE		0x80
#define CM_SELECT(value)	(CM_EXACTLY << 6 | (value))
#define CM_SELECTED(field)	((field) & 0x3f)

static void cm_path_pack(struct ib_path_rec_data *data, const struct cm_path *path)
{
	struct cm_path_wire wire = {
		.dlid		= cpu_to_be16(path->dlid),
		.slid		= cpu_to_be16(path->slid),
		.flow_hop	= cpu_to_be32(path->flow_label << 8 | path->hop_limit),
		.tclass		= path->tclass,
		.reversible	= CM_REVERSIBLE | 1,
		.pkey		= cpu_to_be16(path->pkey),
		.qos_sl		= cpu_to_be16(path->sl),
		.mtu		= CM_SELECT(path->mtu),
		.rate		= CM_SELECT(path->rate),
		.life		= CM_SELECT(path->life),
	};

	memcpy(wire.dgid, path->dgid, sizeof(wire.dgid));
	memcpy(wire.sgid, path->sgid, sizeof(wire.sgid));
	data->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(data->path_rec, &wire, sizeof(wire));
}

/** cm_path_unpack() - a path that a program gives; -EINVAL: there is no such MTU */
int cm_path_unpack(struct cm_path *path, const struct ib_path_rec_data *data)
{
	struct cm_path_wire wire;

	memcpy(&wire, data->path_rec, sizeof(wire));
	*path = (struct cm_path) {
		.slid		= be16_to_cpu(wire.slid),
		.dlid		= be16_to_cpu(wire.dlid),
		.pkey		= be16_to_cpu(wire.pkey),
		.mtu		= CM_SELECTED(wire.mtu),
		.rate		= CM_SELECTED(wire.rate),
		.life		= CM_SELECTED(wire.life),
		.sl		= be16_to_cpu(wire.qos_sl) & 0xf,
		.tclass		= wire.tclass,
		.hop_limit	= be32_to_cpu(wire.flow_hop) & 0xff,
		.flow_label	= be32_to_cpu(wire.flow_hop) >> 8 & 0xfffff,
	};
	memcpy(path->sgid, wire.sgid, sizeof(path->sgid));
	memcpy(path->dgid, wire.dgid, sizeof(path->dgid));
	return path->mtu < IB_MTU_256 || path->mtu > IB_MTU_4096 ? -EINVAL : 0;
}

/** cm_ah_attr() - how a QP reaches the far end of a path */
void cm_ah_attr(const struct cm_path *path, struct ib_uverbs_ah_attr *ah)
{
	*ah = (struct ib_uverbs_ah_attr) {
		.grh = {
			.flow_label	= path->flow_label,
			.hop_limit	= path->hop_limit,
			.traffic_class	= path->tclass,
		},
		.dlid		= path->dlid,
		.sl		= path->sl,
		.is_global	= path->hop_limit > 1,
		.port_num	= CM_PORT,
	};
	memcpy(ah->grh.dgid, path->dgid, sizeof(ah->grh.dgid));
}

static void cm_user_path(struct ib_user_path_rec *rec, const struct cm_path *path)
{
	*rec = (struct ib_user_path_rec) {
		.dlid				= cpu_to_be16(path->dlid),
		.slid				= cpu_to_be16(path->slid),
		.flow_label			= cpu_to_be32(path->flow_label),
		.reversible			= 1,
		.mtu				= path->mtu,
		.pkey				= cpu_to_be16(path->pkey),
		.hop_limit			= path->hop_limit,
		.traffic_class			= path->tclass,
		.numb_path			= 1,
		.sl				= path->sl,
		.mtu_selector			= CM_EXACTLY,
		.rate_selector			= CM_EXACTLY,
		.rate				= path->rate,
		.packet_life_time_selector	= CM_EXACTLY,
		.packet_life_time		= path->life,
	};
	memcpy(rec->dgid, path->dgid, sizeof(rec->dgid));
	memcpy(rec->sgid, path->sgid, sizeof(rec->sgid));
}

/* Before there is a path, GIDs and P_Key stand where they would stand in it. */
static void cm_query_route_path(struct rdma_ucm_query_route_resp *out, const struct cm_id *id)
{
	if (id->has_path) {
		out->num_paths = 1;
		cm_user_path(&out->ib_route[0], &id->path);
		return;
	}
	memcpy(out->ib_route[0].dgid, id->rgid, sizeof(id->rgid));
	memcpy(out->ib_route[0].sgid, id->fn->gid, sizeof(id->fn->gid));
	out->ib_route[0].pkey = cpu_to_be16(id->fn->pkey);
}

/** cm_cmd_query_route() - RDMA_USER_CM_CMD_QUERY_ROUTE */
int cm_cmd_query_route(struct cm_call *call, struct cm_id *id)
{
	struct rdma_ucm_query_route_resp *out = &call->out.query_route;

	memcpy(&out->src_addr, &id->src, sizeof(out->src_addr));
	memcpy(&out->dst_addr, &id->dst, sizeof(out->dst_addr));
	if (!id->fn)
		return 0;
	out->node_guid = (__force u64)id->fn->attr.node_guid;
	out->ibdev_index = id->fn->attr.index;
	out->port_num = CM_PORT;
	cm_query_route_path(out, id);
	return 0;
}

static void cm_query_fn(struct rdma_ucm_query_addr_resp *out, const struct cm_id *id)
{
	if (!id->fn)
		return;
	out->node_guid = (__force u64)id->fn->attr.node_guid;
	out->ibdev_index = id->fn->attr.index;
	out->port_num = CM_PORT;
	out->pkey = (__force u16)cpu_to_be16(id->fn->pkey);
}

static void cm_query_addr(struct rdma_ucm_query_addr_resp *out, const struct cm_id *id)
{
	out->src_size = cm_addr_size(&id->src);
	memcpy(&out->src_addr, &id->src, out->src_size);
	out->dst_size = cm_addr_size(&id->dst);
	memcpy(&out->dst_addr, &id->dst, out->dst_size);
	cm_query_fn(out, id);
}

/* An address as one of AF_IB. */
static void cm_query_ib_addr(struct __kernel_sockaddr_storage *out, const struct cm_id *id,
			     const struct sockaddr_storage *addr, const u8 *gid)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)out;

	if (addr->ss_family == AF_IB) {
		memcpy(sib, addr, sizeof(*sib));
		return;
	}
	sib->sib_family = AF_IB;
	if (id->fn)
		sib->sib_pkey = cpu_to_be16(id->fn->pkey);
	if (gid)
		memcpy(sib->sib_addr.sib_raw, gid, sizeof(sib->sib_addr));
	if (addr->ss_family)
		sib->sib_sid = cpu_to_be64(cm_service_id(id, addr));
}

static void cm_query_gid(struct rdma_ucm_query_addr_resp *out, const struct cm_id *id)
{
	out->src_size = sizeof(struct sockaddr_ib);
	out->dst_size = sizeof(struct sockaddr_ib);
	cm_query_ib_addr(&out->src_addr, id, &id->src, id->fn ? id->fn->gid : NULL);
	cm_query_ib_addr(&out->dst_addr, id, &id->dst, id->rgid);
	cm_query_fn(out, id);
}

/* As many paths as there is room for, of those that there are. */
static void cm_query_path(struct cm_call *call, const struct cm_id *id)
{
	u32 room = call->out_len;

	call->out_len = sizeof(call->out.query_path.head);
	call->out.query_path.head.num_paths = id->has_path;
	if (!id->has_path || room < sizeof(call->out.query_path))
		return;
	cm_path_pack(&call->out.query_path.path, &id->path);
	call->out_len = sizeof(call->out.query_path);
}

/** cm_cmd_query() - RDMA_USER_CM_CMD_QUERY */
int cm_cmd_query(struct cm_call *call, struct cm_id *id)
{
	const u32 least = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
	u32 option = call->in.query.option;

	if (option == RDMA_USER_CM_QUERY_PATH) {
		cm_query_path(call, id);
		return 0;
	}
	if (option != RDMA_USER_CM_QUERY_ADDR && option != RDMA_USER_CM_QUERY_GID)
		return -ENOSYS;
	if (call->out_len < least)
		return -ENOSPC;
	call->out_len = min_t(u32, call->out_len, sizeof(call->out.query_addr));
	if (option == RDMA_USER_CM_QUERY_ADDR)
		cm_query_addr(&call->out.query_addr, id);
	else
		cm_query_gid(&call->out.query_addr, id);
	return 0;
}
