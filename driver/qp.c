// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: create, modify, query, destroy. The state lives in the
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

static int vhca_qp_sizes(struct vhca_ctx *ctx, const struct vhca_create_qp *arg)
{
	const struct vhca_caps *caps = &ctx->vdev->caps;

	if (arg->rsvd)
		return -EINVAL;
	if (arg->type != VHCA_QPT_RC)
		return -EOPNOTSUPP;
	if (arg->sq_shift <= caps->max_sq_shift &&
	    arg->rq_shift <= caps->max_rq_shift &&
	    arg->rq_sge_shift <= VHCA_RQ_MAX_SGE_SHIFT &&
	    1u << arg->rq_sge_shift < 2 * caps->max_recv_sge)
		return 0;
	vhca_dbg(ctx, "QP of 2^%u SQ blocks, 2^%u RQ WQEs of 2^%u SGEs: refused\n",
		 arg->sq_shift, arg->rq_shift, arg->rq_sge_shift);
	return -EINVAL;
}

static int vhca_qp_lookup(struct vhca_ctx *ctx, struct vhca_qp *qp,
			  const struct vhca_create_qp *arg)
{
	qp->pd = xa_load(&ctx->pds, arg->pd);
	qp->send_cq = xa_load(&ctx->cqs, arg->send_cqn);
	qp->recv_cq = xa_load(&ctx->cqs, arg->recv_cqn);
	if (qp->pd && qp->send_cq && qp->recv_cq)
		return 0;
	vhca_dbg(ctx, "QP: no PD %u or CQ %u or CQ %u\n", arg->pd,
		 arg->send_cqn, arg->recv_cqn);
	return -EINVAL;
}

/* A QP that the device does not know yet. */
static struct vhca_qp *vhca_qp_alloc(struct vhca_ctx *ctx,
				     const struct vhca_create_qp *arg)
{
	size_t size = ((size_t)VHCA_WQEBB_SIZE << arg->sq_shift) +
		      ((size_t)VHCA_WQE_SEG_SIZE << arg->rq_sge_shift << arg->rq_shift);
	struct vhca_qp *qp;
	int ret;

	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->slot = arg->slot;
	ret = vhca_qp_lookup(ctx, qp, arg);
	if (ret)
		goto err_qp;
	ret = vhca_slot_get(ctx, arg->uar, arg->slot, &qp->uar);
	if (ret)
		goto err_qp;
	qp->buf = vhca_buf_alloc(ctx->vdev, size);
	if (IS_ERR(qp->buf)) {
		ret = PTR_ERR(qp->buf);
		goto err_slot;
	}
	qp->pd->users++;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	return qp;

err_slot:
	vhca_slot_put(qp->uar, qp->slot);
err_qp:
	kfree(qp);
	return ERR_PTR(ret);
}

/* What vhca_qp_alloc() made; the device does not know it any more. */
static void vhca_qp_free(struct vhca_ctx *ctx, struct vhca_qp *qp)
{
	qp->pd->users--;
	qp->send_cq->users--;
	qp->recv_cq->users--;
	vhca_buf_unmap(ctx->vdev, qp->buf);
	vhca_buf_put(qp->buf);
	vhca_slot_put(qp->uar, qp->slot);
	kfree(qp);
}

static int vhca_qp_cmd(struct vhca_ctx *ctx, struct vhca_qp *qp,
		       const struct vhca_create_qp *arg)
{
	struct vhca_cmd cmd = {
		.create_qp = {
			.type		= cpu_to_be32(VHCA_PRM_QPT_RC),
			.pd		= cpu_to_be32(qp->pd->number),
			.send_cqn	= cpu_to_be32(qp->send_cq->number),
			.recv_cqn	= cpu_to_be32(qp->recv_cq->number),
			.uar		= cpu_to_be32(qp->uar->hw),
			.slot		= cpu_to_be32(qp->slot),
			.sq_shift	= arg->sq_shift,
			.rq_shift	= arg->rq_shift,
			.rq_sge_shift	= arg->rq_sge_shift,
			.dbr = cpu_to_be64(vhca_slot_dma(qp->uar, qp->slot)),
		},
	};
	struct vhca_cmd_done done;
	struct vhca_plist pl;
	int ret;

	ret = vhca_plist_buf(ctx->vdev, &pl, qp->buf);
	if (ret)
		return ret;
	cmd.create_qp.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_QP, &cmd, &done);
	vhca_plist_free(ctx->vdev, &pl);
	if (!ret)
		qp->number = be32_to_cpu(done.number);
	return ret;
}

/* The QP exists on the device; now it gets its names. */
static int vhca_qp_insert(struct vhca_ctx *ctx, struct vhca_qp *qp, u64 cookie)
{
	int ret;

	vhca_async_init(&qp->async, ctx->async, cookie, qp->number);
	/* What a former QP of this number left in EQ 0 is not for this one. */
	vhca_eq_poll(&ctx->vdev->eqs[0]);

	ret = vhca_offset_add(ctx, qp->buf, &qp->offset);
	if (ret)
		return ret;
	ret = xa_insert(&ctx->qps, qp->number, qp, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_offset;
	/* A former QP of this number may be on its way out: it leaves ours. */
	ret = xa_err(xa_store(&ctx->vdev->qps, qp->number, qp, GFP_KERNEL_ACCOUNT));
	if (ret)
		goto err_ctx;
	return 0;

err_ctx:
	xa_erase(&ctx->qps, qp->number);
err_offset:
	vhca_offset_del(ctx, qp->offset);
	return ret;
}

/** vhca_create_qp() - VHCA_IOC_CREATE_QP */
int vhca_create_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_create_qp *arg = &call->create_qp;
	struct vhca_qp *qp;
	int ret;

	ret = vhca_qp_sizes(ctx, arg);
	if (ret)
		return ret;
	qp = vhca_qp_alloc(ctx, arg);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ret = vhca_qp_cmd(ctx, qp, arg);
	if (ret)
		goto err_free;
	ret = vhca_qp_insert(ctx, qp, arg->cookie);
	if (ret)
		goto err_cmd;
	arg->qpn = qp->number;
	arg->buf_offset = (u64)qp->offset << PAGE_SHIFT;
	arg->buf_size = (u64)qp->buf->npages << PAGE_SHIFT;
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_QP, qp->number);
err_free:
	vhca_qp_free(ctx, qp);
	return ret;
}

static int vhca_qp_query(struct vhca_ctx *ctx, struct vhca_qp *qp,
			 struct vhca_prm_qp *prm)
{
	struct vhca_cmd cmd = { .object.number = cpu_to_be32(qp->number) };
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
	struct vhca_cmd cmd = { .modify_qp.qpn = cpu_to_be32(qp->number) };
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
		ret = vhca_qp_check(ctx, arg, &now);
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

static int vhca_qp_destroy(struct vhca_ctx *ctx, struct vhca_qp *qp, bool cmds)
{
	int ret = 0;

	if (cmds)
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_QP, qp->number);
	if (!ret)
		xa_cmpxchg(&ctx->vdev->qps, qp->number, qp, NULL, 0);
	return ret;
}

static u32 vhca_qp_remove(struct vhca_ctx *ctx, struct vhca_qp *qp)
{
	u32 reads = vhca_event_purge(ctx->async, &qp->async.event);

	xa_erase(&ctx->qps, qp->number);
	vhca_offset_del(ctx, qp->offset);
	vhca_qp_free(ctx, qp);
	return reads;
}

/** vhca_destroy_qp() - VHCA_IOC_DESTROY_QP */
int vhca_destroy_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_destroy_qp *arg = &call->destroy_qp;
	struct vhca_qp *qp = xa_load(&ctx->qps, arg->qpn);
	int ret;

	if (!qp)
		return -EINVAL;
	ret = vhca_qp_destroy(ctx, qp, true);
	if (ret)
		return ret;
	/* No handler has it in hand; then no work item has. */
	synchronize_rcu();
	flush_work(&ctx->vdev->async_work);
	arg->async_events = vhca_qp_remove(ctx, qp);
	return 0;
}

/** vhca_qps_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_qps_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_qp *qp;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->qps, i, qp) {
		ret = vhca_qp_destroy(ctx, qp, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_qps_quiesce() - after vhca_qps_destroy() and synchronize_rcu() */
void vhca_qps_quiesce(struct vhca_ctx *ctx)
{
	struct vhca_qp *qp;
	unsigned long i;

	xa_for_each(&ctx->qps, i, qp)
		vhca_buf_unmap(ctx->vdev, qp->buf);
}

/** vhca_qps_free() - what is left of them */
void vhca_qps_free(struct vhca_ctx *ctx)
{
	struct vhca_qp *qp;
	unsigned long i;

	xa_for_each(&ctx->qps, i, qp)
		vhca_qp_remove(ctx, qp);
}
