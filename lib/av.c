// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * av.c: address vectors, as QPs that are connected have them.
 */
#include "vhca_verbs.h"

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
