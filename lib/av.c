// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * av.c: address vectors, and address handles, which are no more than that: they
 * live in user space.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#define MAX_SL		15
#define FLOW_MASK	0xfffff

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

void vhca_av_from_attr(struct vhca_av *av, const struct ibv_ah_attr *attr)
{
	*av = (struct vhca_av) {
		.dlid = attr->dlid,
		.is_global = attr->is_global,
		.sl = attr->sl,
		.src_path_bits = attr->src_path_bits,
		.static_rate = attr->static_rate,
		.port_num = attr->port_num,
	};
	if (!attr->is_global)
		return;
	memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
	av->flow_label = attr->grh.flow_label;
	av->sgid_index = attr->grh.sgid_index;
	av->hop_limit = attr->grh.hop_limit;
	av->traffic_class = attr->grh.traffic_class;
}

void vhca_av_to_attr(const struct vhca_av *av, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr) {
		.grh.flow_label = av->flow_label,
		.grh.sgid_index = av->sgid_index,
		.grh.hop_limit = av->hop_limit,
		.grh.traffic_class = av->traffic_class,
		.dlid = av->dlid,
		.sl = av->sl,
		.src_path_bits = av->src_path_bits,
		.static_rate = av->static_rate,
		.is_global = av->is_global,
		.port_num = av->port_num,
	};
	memcpy(attr->grh.dgid.raw, av->dgid, sizeof(av->dgid));
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
	vhca_av_from_attr(&ah->av, attr);
	return &ah->ibv;
}

VHCA_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(container_of(ah, struct vhca_ah, ibv));
	return 0;
}
