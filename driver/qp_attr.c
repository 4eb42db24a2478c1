// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of a QP: modify and query. The state lives in the
 * device, which changes it on its own when something goes wrong.
 */
#include "vhca.h"

#define VHCA_QP_ATTRS	(VHCA_QP_STATE | VHCA_QP_CUR_STATE |		\
			 VHCA_QP_EN_SQD_ASYNC_NOTIFY |			\
			 VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX |	\
			 VHCA_QP_PORT | VHCA_QP_QKEY | VHCA_QP_AV |	\
			 VHCA_QP_PATH_MTU | VHCA_QP_TIMEOUT |		\
			 VHCA_QP_RETRY_CNT | VHCA_QP_RNR_RETRY |	\
			 VHCA_QP_RQ_PSN | VHCA_QP_MAX_QP_RD_ATOMIC |	\
			 VHCA_QP_MIN_RNR_TIMER | VHCA_QP_SQ_PSN |	\
			 VHCA_QP_MAX_DEST_RD_ATOMIC | VHCA_QP_DEST_QPN)

/* The masks are the same numbers on both sides; see vhca_qp_to_prm(). */
static_assert(VHCA_QP_STATE == VHCA_QPM_STATE);
static_assert(VHCA_QP_CUR_STATE == VHCA_QPM_CUR_STATE);
static_assert(VHCA_QP_EN_SQD_ASYNC_NOTIFY == VHCA_QPM_SQD_NOTIFY);
static_assert(VHCA_QP_ACCESS_FLAGS == VHCA_QPM_ACCESS);
static_assert(VHCA_QP_PKEY_INDEX == VHCA_QPM_PKEY_INDEX);
static_assert(VHCA_QP_PORT == VHCA_QPM_PORT);
static_assert(VHCA_QP_QKEY == VHCA_QPM_QKEY);
static_assert(VHCA_QP_AV == VHCA_QPM_AV);
static_assert(VHCA_QP_PATH_MTU == VHCA_QPM_PATH_MTU);
static_assert(VHCA_QP_TIMEOUT == VHCA_QPM_TIMEOUT);
static_assert(VHCA_QP_RETRY_CNT == VHCA_QPM_RETRY_CNT);
static_assert(VHCA_QP_RNR_RETRY == VHCA_QPM_RNR_RETRY);
static_assert(VHCA_QP_RQ_PSN == VHCA_QPM_RQ_PSN);
static_assert(VHCA_QP_MAX_QP_RD_ATOMIC == VHCA_QPM_MAX_RD_ATOMIC);
static_assert(VHCA_QP_MIN_RNR_TIMER == VHCA_QPM_MIN_RNR_TIMER);
static_assert(VHCA_QP_SQ_PSN == VHCA_QPM_SQ_PSN);
static_assert(VHCA_QP_MAX_DEST_RD_ATOMIC == VHCA_QPM_MAX_DEST_RD_ATOMIC);
static_assert(VHCA_QP_DEST_QPN == VHCA_QPM_DEST_QPN);

#define VHCA_PSN_MASK	0xffffff

static int vhca_qp_query(struct vhca_ctx *ctx, struct vhca_qp *qp,
			 struct vhca_prm_qp *prm)
{
	struct vhca_cmd cmd = { .object.number = cpu_to_be32(qp->hw->number) };
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_cmd(ctx->vdev, VHCA_CMD_QUERY_QP, &cmd, &done);
	if (!ret)
		*prm = done.qp;
	return ret;
}

static void vhca_av_to_prm(struct vhca_prm_qp *prm, const struct vhca_av *av)
{
	memcpy(prm->dgid, av->dgid, sizeof(prm->dgid));
	prm->flow_label = cpu_to_be32(av->flow_label);
	prm->dlid = cpu_to_be16(av->dlid);
	prm->is_global = av->is_global;
	prm->sgid_index = av->sgid_index;
	prm->hop_limit = av->hop_limit;
	prm->traffic_class = av->traffic_class;
	prm->sl = av->sl;
	prm->src_path_bits = av->src_path_bits;
	prm->static_rate = av->static_rate;
}

/* Only what the mask names: the device wants zeroes elsewhere. */
#define VHCA_SET(bit, field, value) do {	\
	if (mask & (bit))			\
		(field) = (value);		\
} while (0)

static void vhca_qp_to_prm(struct vhca_prm_qp *prm, u32 mask,
			   const struct vhca_qp_attr *a)
{
	VHCA_SET(VHCA_QP_STATE, prm->state, a->state);
	VHCA_SET(VHCA_QP_EN_SQD_ASYNC_NOTIFY, prm->sqd_notify, a->en_sqd_async_notify);
	VHCA_SET(VHCA_QP_ACCESS_FLAGS, prm->access, cpu_to_be32(a->access_flags));
	VHCA_SET(VHCA_QP_PKEY_INDEX, prm->pkey_index, cpu_to_be16(a->pkey_index));
	VHCA_SET(VHCA_QP_PORT, prm->port, a->port_num);
	VHCA_SET(VHCA_QP_QKEY, prm->qkey, cpu_to_be32(a->qkey));
	VHCA_SET(VHCA_QP_PATH_MTU, prm->path_mtu, a->path_mtu);
	VHCA_SET(VHCA_QP_TIMEOUT, prm->timeout, a->timeout);
	VHCA_SET(VHCA_QP_RETRY_CNT, prm->retry_cnt, a->retry_cnt);
	VHCA_SET(VHCA_QP_RNR_RETRY, prm->rnr_retry, a->rnr_retry);
	/* PSNs are numbers modulo 2^24. */
	VHCA_SET(VHCA_QP_RQ_PSN, prm->rq_psn, cpu_to_be32(a->rq_psn & VHCA_PSN_MASK));
	VHCA_SET(VHCA_QP_SQ_PSN, prm->sq_psn, cpu_to_be32(a->sq_psn & VHCA_PSN_MASK));
	VHCA_SET(VHCA_QP_MAX_QP_RD_ATOMIC, prm->max_rd_atomic, a->max_rd_atomic);
	VHCA_SET(VHCA_QP_MAX_DEST_RD_ATOMIC, prm->max_dest_rd_atomic,
		 a->max_dest_rd_atomic);
	VHCA_SET(VHCA_QP_MIN_RNR_TIMER, prm->min_rnr_timer, a->min_rnr_timer);
	VHCA_SET(VHCA_QP_DEST_QPN, prm->dest_qpn, cpu_to_be32(a->dest_qpn));
	if (mask & VHCA_QP_AV)
		vhca_av_to_prm(prm, &a->av);
}

static void vhca_qp_from_prm(struct vhca_qp_attr *a,
			     const struct vhca_prm_qp *prm)
{
	*a = (struct vhca_qp_attr) {
		.qkey			= be32_to_cpu(prm->qkey),
		.rq_psn			= be32_to_cpu(prm->rq_psn),
		.sq_psn			= be32_to_cpu(prm->sq_psn),
		.dest_qpn		= be32_to_cpu(prm->dest_qpn),
		.access_flags		= be32_to_cpu(prm->access),
		.pkey_index		= be16_to_cpu(prm->pkey_index),
		.state			= prm->state,
		.cur_state		= prm->state,
		.path_mtu		= prm->path_mtu,
		.sq_draining		= prm->sq_draining,
		.max_rd_atomic		= prm->max_rd_atomic,
		.max_dest_rd_atomic	= prm->max_dest_rd_atomic,
		.min_rnr_timer		= prm->min_rnr_timer,
		.port_num		= prm->port,
		.timeout		= prm->timeout,
		.retry_cnt		= prm->retry_cnt,
		.rnr_retry		= prm->rnr_retry,
		.en_sqd_async_notify	= prm->sqd_notify,
		.av = {
			.flow_label	= be32_to_cpu(prm->flow_label),
			.dlid		= be16_to_cpu(prm->dlid),
			.is_global	= prm->is_global,
			.sgid_index	= prm->sgid_index,
			.hop_limit	= prm->hop_limit,
			.traffic_class	= prm->traffic_class,
			.sl		= prm->sl,
			.src_path_bits	= prm->src_path_bits,
			.static_rate	= prm->static_rate,
			.port_num	= prm->port,
		},
	};
	memcpy(a->av.dgid, prm->dgid, sizeof(a->av.dgid));
}

/*
 * Checked against the state in which the device says the QP is, and done only
 * if it still is: in between the device may have moved it to the error state.
 */
static int vhca_qp_modify(struct vhca_ctx *ctx, struct vhca_qp *qp,
			  const struct vhca_modify_qp *arg)
{
	struct vhca_cmd cmd = { .modify_qp.qpn = cpu_to_be32(qp->hw->number) };
	struct vhca_prm_qp now, *prm = &cmd.modify_qp.qp;
	struct vhca_cmd_done done = {};
	int ret;

	do {
		ret = vhca_qp_query(ctx, qp, &now);
		if (ret)
			return ret;
		if (done.status == VHCA_CMD_BAD_STATE &&
		    prm->cur_state == now.state)
			return -EINVAL;		/* not a matter of timing */
		ret = vhca_qp_check(ctx, arg, qp->hw->type, &now);
		if (ret)
			return ret;
		memset(prm, 0, sizeof(*prm));
		prm->mask = cpu_to_be32(arg->mask | VHCA_QPM_CUR_STATE);
		prm->cur_state = now.state;
		vhca_qp_to_prm(prm, arg->mask, &arg->attr);
		ret = vhca_cmd(ctx->vdev, VHCA_CMD_MODIFY_QP, &cmd, &done);
	} while (ret == -EINVAL && done.status == VHCA_CMD_BAD_STATE);
	return ret;
}

/** vhca_modify_qp() - VHCA_IOC_MODIFY_QP */
int vhca_modify_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_qp *qp = xa_load(&ctx->qps, call->modify_qp.qpn);

	return qp ? vhca_qp_modify(ctx, qp, &call->modify_qp) : -EINVAL;
}

/** vhca_query_qp() - VHCA_IOC_QUERY_QP */
int vhca_query_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_modify_qp *arg = &call->modify_qp;
	struct vhca_qp *qp = xa_load(&ctx->qps, arg->qpn);
	struct vhca_prm_qp prm;
	int ret;

	if (!qp || arg->mask)
		return -EINVAL;
	ret = vhca_qp_query(ctx, qp, &prm);
	if (ret)
		return ret;
	vhca_qp_from_prm(&arg->attr, &prm);
	arg->mask = VHCA_QP_ATTRS;
	return 0;
}
