// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * unsupported.c: calls of the public ABI for which there is nothing yet. Each
 * fails in its own manner: NULL, an errno value, or -1, with errno EOPNOTSUPP.
 */
#include "vhca_verbs.h"

/* Queue pairs */

VHCA_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

VHCA_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

/* Addresses of Ethernet */

VHCA_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
					    struct ibv_ah_attr *attr,
					    uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return EOPNOTSUPP;
}
