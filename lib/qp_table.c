// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qp_table.c: find a QP by its number. The context's qp_lock is held.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

/* Leaves are never freed while the context is open: pollers read them unlocked. */
int vhca_qp_remember(struct vhca_context *ctx, struct vhca_qp *qp)
{
	uint32_t qpn = qp->ibv.qp_num & VHCA_QPN_MASK;
	struct vhca_qp **leaf = ctx->qps[qpn >> VHCA_QP_TABLE_SHIFT];

	if (!leaf) {
		leaf = calloc(VHCA_QP_TABLE_SIZE, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		__atomic_store_n(&ctx->qps[qpn >> VHCA_QP_TABLE_SHIFT], leaf, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&leaf[qpn & (VHCA_QP_TABLE_SIZE - 1)], qp, __ATOMIC_RELEASE);
	return 0;
}

/**
 * vhca_qp_forget - take a QP out of the table
 * @ctx: context
 * @qp: QP that the kernel has destroyed
 *
 * Both of its CQs were cleaned under their locks before, so that no poller can
 * find its number in a CQE any more, or hold a pointer to it.
 */
void vhca_qp_forget(struct vhca_context *ctx, struct vhca_qp *qp)
{
	uint32_t qpn = qp->ibv.qp_num & VHCA_QPN_MASK;
	struct vhca_qp **leaf = ctx->qps[qpn >> VHCA_QP_TABLE_SHIFT];

	__atomic_store_n(&leaf[qpn & (VHCA_QP_TABLE_SIZE - 1)], NULL, __ATOMIC_RELEASE);
}
