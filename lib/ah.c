// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ah.c: address handles. They live in user space: a datagram's WQE carries all that
 * the device has to know. A handle is the segment of those WQEs.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#define MAX_SL			15
#define FLOW_MASK		0xfffff
#define TCLASS_SHIFT		20
#define TCLASS_MASK		0xff
#define ANSWER_HOP_LIMIT	0xff	/* as many as the way back may take */
#define MCAST_PREFIX		0xff

static int check_attr(const struct vhca_context *ctx, const struct ibv_ah_attr *attr)
{
	if (!attr->port_num || attr->port_num > ctx->caps.num_ports)
		return EINVAL;
	if (attr->sl > MAX_SL)
		return EINVAL;
	if (attr->is_global ? attr->grh.flow_label > FLOW_MASK : !attr->dlid)
		return EINVAL;
	return 0;
}

/* The table's length bounds the index; the kernel knows it. */
static int check_sgid(struct ibv_context *context, const struct ibv_ah_attr *attr)
{
	struct vhca_query_gid cmd = {
		.port = attr->port_num,
		.index = attr->grh.sgid_index,
	};

	return attr->is_global ? vhca_ioctl(context, VHCA_IOC_QUERY_GID, &cmd) : 0;
}

static void fill_dgram(struct vhca_wqe_dgram *dgram, const struct ibv_ah_attr *attr)
{
	*dgram = (struct vhca_wqe_dgram) {
		.dlid = htobe16(attr->dlid),
		.sl = attr->sl,
		.src_path_bits = attr->src_path_bits,
		.static_rate = attr->static_rate,
		.port = attr->port_num,
	};
	if (!attr->is_global)
		return;
	dgram->is_global = 1;
	dgram->flow_label = htobe32(attr->grh.flow_label);
	memcpy(dgram->dgid, attr->grh.dgid.raw, sizeof(dgram->dgid));
	dgram->hop_limit = attr->grh.hop_limit;
	dgram->traffic_class = attr->grh.traffic_class;
	dgram->sgid_index = attr->grh.sgid_index;
}

VHCA_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vhca_ah *ah;
	int err;

	err = check_attr(to_vctx(pd->context), attr);
	if (!err)
		err = check_sgid(pd->context, attr);
	if (err)
		return vhca_null(err);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	fill_dgram(&ah->dgram, attr);
	__atomic_fetch_add(&to_vpd(pd)->users, 1, __ATOMIC_RELAXED);
	return &ah->ibv;
}

/* What was posted with it has its address: that may still be on its way. */
VHCA_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	__atomic_fetch_sub(&to_vpd(ah->pd)->users, 1, __ATOMIC_RELEASE);
	free(to_vah(ah));
	return 0;
}

static int find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	union ibv_gid entry;
	int i;

	/* The end of the table is the first index that does not exist. */
	for (i = 0; !ibv_query_gid(context, port, i, &entry); i++)
		if (!memcmp(&entry, gid, sizeof(entry)))
			return i;
	return -1;
}

/* The way back of a message that came with this GRH. */
static int route_back(struct ibv_context *context, uint8_t port, const struct ibv_grh *grh,
		      struct ibv_global_route *route)
{
	uint32_t version_tclass_flow = be32toh(grh->version_tclass_flow);
	int index = 0;

	/* What came to a group is answered by one of its members. */
	if (grh->dgid.raw[0] != MCAST_PREFIX)
		index = find_gid(context, port, &grh->dgid);
	if (index < 0)
		return vhca_minus(EINVAL);
	*route = (struct ibv_global_route) {
		.dgid = grh->sgid,
		.flow_label = version_tclass_flow & FLOW_MASK,
		.sgid_index = (uint8_t)index,
		.hop_limit = ANSWER_HOP_LIMIT,
		.traffic_class = version_tclass_flow >> TCLASS_SHIFT & TCLASS_MASK,
	};
	return 0;
}

VHCA_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
				    struct ibv_wc *wc, struct ibv_grh *grh,
				    struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr) {
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	return route_back(context, port_num, grh, &attr->grh);
}

VHCA_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
						 struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
