// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: create, open, destroy. What they are like otherwise
 * is in qp_attr.c and qp_state.c.
 *
 * A QP on the device (struct vhca_hw_qp) is in the file that made it. One of type
 * XRC_RECV can be opened in other files that have its domain, each of which has a
 * struct vhca_qp for it, with a cookie and async events of its own. All files are
 * alike: the one that made it may leave first, and the last that leaves takes the QP
 * from the device.
 *
 * A struct vhca_qp is its context's and under the context's lock. The list of files
 * that have a QP is under vhca_dev.xrc_lock, which opening a QP, leaving it and
 * taking it from the device hold, and is read under RCU in interrupt context. The
 * struct vhca_hw_qp stays while a struct vhca_qp refers to it.
 */
#include <linux/rculist.h>

#include "vhca.h"

/* Types and flags are the same numbers on both sides. */
static_assert(VHCA_QPT_RC == VHCA_PRM_QPT_RC);
static_assert(VHCA_QPT_UC == VHCA_PRM_QPT_UC);
static_assert(VHCA_QPT_UD == VHCA_PRM_QPT_UD);
static_assert(VHCA_QPT_XRC_SEND == VHCA_PRM_QPT_XRC_SEND);
static_assert(VHCA_QPT_XRC_RECV == VHCA_PRM_QPT_XRC_RECV);
static_assert(VHCA_QP_F_SIGNATURE == VHCA_QPF_SIGNATURE);
static_assert(VHCA_QP_F_SCATTER_CQE == VHCA_QPF_SCATTER_CQE);
static_assert(VHCA_QP_F_BLUEFLAME == VHCA_QPF_BLUEFLAME);
static_assert(VHCA_QP_F_BLOCK_LOOPBACK == VHCA_QPF_BLOCK_LOOPBACK);

static bool vhca_qp_type_ok(u32 type)
{
	switch (type) {
	case VHCA_QPT_RC:
	case VHCA_QPT_UC:
	case VHCA_QPT_UD:
	case VHCA_QPT_XRC_SEND:
	case VHCA_QPT_XRC_RECV:
		return true;
	default:
		return false;
	}
}

/* Has it an SQ, a PD, a CQ for sends, a slot? */
static bool vhca_qp_sends(const struct vhca_create_qp *arg)
{
	return arg->type != VHCA_QPT_XRC_RECV;
}

/* Has it a CQ for receives? Those of an XRC_RECV QP go to that of an SRQ. */
static bool vhca_qp_receives(const struct vhca_create_qp *arg)
{
	return arg->type != VHCA_QPT_XRC_RECV && arg->type != VHCA_QPT_XRC_SEND;
}

static bool vhca_qp_has_rq(const struct vhca_create_qp *arg)
{
	return vhca_qp_receives(arg) && !arg->srqn;
}

static size_t vhca_qp_size(const struct vhca_create_qp *arg)
{
	size_t size = 0;

	if (vhca_qp_sends(arg))
		size += (size_t)VHCA_WQEBB_SIZE << arg->sq_shift;
	if (vhca_qp_has_rq(arg))
		size += (size_t)VHCA_WQE_SEG_SIZE << arg->rq_sge_shift << arg->rq_shift;
	return size;
}

static bool vhca_qp_sizes(const struct vhca_caps *caps,
			  const struct vhca_create_qp *arg)
{
	return arg->sq_shift <= caps->max_sq_shift &&
	       arg->rq_shift <= caps->max_rq_shift &&
	       arg->rq_sge_shift <= VHCA_RQ_MAX_SGE_SHIFT &&
	       1u << arg->rq_sge_shift < 2 * caps->max_recv_sge;
}

/* Fields of what the QP does not have are zero. */
static bool vhca_qp_fields(const struct vhca_create_qp *arg)
{
	if (arg->flags & ~VHCA_QPF_ALL)
		return false;
	if (!(arg->flags & VHCA_QP_F_BLUEFLAME) && arg->bf_slot)
		return false;
	if (arg->flags & VHCA_QP_F_BLOCK_LOOPBACK && arg->type != VHCA_QPT_UD)
		return false;
	/* A datagram and its GRH do not fit. */
	if (arg->flags & VHCA_QP_F_SCATTER_CQE &&
	    (!vhca_qp_has_rq(arg) || arg->type == VHCA_QPT_UD))
		return false;
	if (!vhca_qp_has_rq(arg) && (arg->rq_shift || arg->rq_sge_shift))
		return false;
	if (!vhca_qp_receives(arg) && (arg->recv_cqn || arg->srqn))
		return false;
	if (vhca_qp_sends(arg))
		return !arg->xrcd;
	return !(arg->pd || arg->send_cqn || arg->uar || arg->slot ||
		 arg->sq_shift || arg->flags || arg->buf_addr);
}

/** vhca_prepare_qp() - what can be done without a lock */
int vhca_prepare_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_qp *arg = &call->create_qp;

	if (!vhca_qp_type_ok(arg->type))
		return -EOPNOTSUPP;
	if (vhca_qp_fields(arg) && vhca_qp_sizes(&ctx->vdev->caps, arg))
		return vhca_buf_pin(call, arg->buf_addr, vhca_qp_size(arg));
	vhca_dbg(ctx, "QP of type %u, 2^%u SQ blocks, 2^%u RQ WQEs of 2^%u SGEs: refused\n",
		 arg->type, arg->sq_shift, arg->rq_shift, arg->rq_sge_shift);
	return -EINVAL;
}

static bool vhca_qp_found(struct vhca_ctx *ctx, struct vhca_qp *qp,
			  const struct vhca_create_qp *arg)
{
	if (!vhca_qp_sends(arg)) {
		qp->xrcd = xa_load(&ctx->xrcds, arg->xrcd);
		return qp->xrcd;
	}
	qp->pd = xa_load(&ctx->pds, arg->pd);
	qp->send_cq = xa_load(&ctx->cqs, arg->send_cqn);
	if (!qp->pd || !qp->send_cq)
		return false;
	if (!vhca_qp_receives(arg))
		return true;
	qp->recv_cq = xa_load(&ctx->cqs, arg->recv_cqn);
	if (!arg->srqn)
		return qp->recv_cq;
	/* An XRC SRQ is for XRC_RECV QPs, which find it by its number. */
	qp->srq = xa_load(&ctx->srqs, arg->srqn);
	return qp->recv_cq && qp->srq && !qp->srq->xrcd;
}

static void vhca_qp_use(struct vhca_qp *qp, int n)
{
	if (qp->pd)
		qp->pd->users += n;
	if (qp->send_cq)
		qp->send_cq->users += n;
	if (qp->recv_cq)
		qp->recv_cq->users += n;
	if (qp->srq)
		qp->srq->users += n;
	if (qp->xrcd)
		qp->xrcd->users += n;
}

static int vhca_qp_slots(struct vhca_ctx *ctx, struct vhca_qp *qp,
			 const struct vhca_create_qp *arg)
{
	int ret;

	if (!vhca_qp_sends(arg))
		return 0;
	ret = vhca_slot_get(ctx, arg->uar, arg->slot, &qp->uar);
	if (ret)
		return ret;
	qp->slot = arg->slot;
	if (!(arg->flags & VHCA_QP_F_BLUEFLAME))
		return 0;
	ret = vhca_slot_get(ctx, arg->uar, arg->bf_slot, &qp->uar);
	if (!ret)
		qp->bf_slot = arg->bf_slot;
	return ret;
}

static void vhca_hw_qp_free(struct kref *ref)
{
	kfree(container_of(ref, struct vhca_hw_qp, ref));
}

/* What was made so far; the device does not know it, or not any more. */
static void vhca_qp_free(struct vhca_ctx *ctx, struct vhca_qp *qp)
{
	vhca_qp_use(qp, -1);
	vhca_uncharge(ctx, VHCA_KIND_MCAST, qp->mcast);
	vhca_buf_unmap(ctx->vdev, qp->buf);
	vhca_buf_put(qp->buf);
	if (qp->slot)
		vhca_slot_put(qp->uar, qp->slot);
	if (qp->bf_slot)
		vhca_slot_put(qp->uar, qp->bf_slot);
	kref_put(&qp->hw->ref, vhca_hw_qp_free);
	kfree(qp);
}

static struct vhca_hw_qp *vhca_hw_qp_alloc(const struct vhca_create_qp *arg)
{
	struct vhca_hw_qp *hw = kzalloc(sizeof(*hw), GFP_KERNEL_ACCOUNT);

	if (!hw)
		return NULL;
	kref_init(&hw->ref);
	hw->type = arg->type;
	INIT_HLIST_HEAD(&hw->files);
	return hw;
}

/* A QP that the device does not know yet. */
static struct vhca_qp *vhca_qp_alloc(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_qp *arg = &call->create_qp;
	struct vhca_qp *qp;
	int ret = -ENOMEM;

	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->hw = vhca_hw_qp_alloc(arg);
	if (!qp->hw)
		goto err_qp;
	if (!vhca_qp_found(ctx, qp, arg)) {
		vhca_dbg(ctx, "QP: no such PD, CQ, SRQ or XRC domain\n");
		ret = -EINVAL;
		goto err_hw;
	}
	if (qp->xrcd)
		qp->hw->domain = qp->xrcd->domain;
	vhca_qp_use(qp, 1);
	ret = vhca_qp_slots(ctx, qp, arg);
	if (!ret)
		ret = vhca_buf_get(ctx->vdev, call, vhca_qp_size(arg), &qp->buf);
	if (!ret)
		return qp;
	vhca_qp_free(ctx, qp);
	return ERR_PTR(ret);

err_hw:
	kfree(qp->hw);
err_qp:
	kfree(qp);
	return ERR_PTR(ret);
}

static void vhca_qp_cmd_fill(struct vhca_cmd_create_qp *cmd, struct vhca_qp *qp,
			     const struct vhca_create_qp *arg)
{
	*cmd = (struct vhca_cmd_create_qp) {
		.type		= cpu_to_be32(arg->type),
		.slot		= cpu_to_be32(arg->slot),
		.sq_shift	= arg->sq_shift,
		.rq_shift	= arg->rq_shift,
		.rq_sge_shift	= arg->rq_sge_shift,
		.flags		= arg->flags,
		.bf_slot	= arg->bf_slot,
		.srqn		= cpu_to_be32(arg->srqn),
	};
	if (qp->xrcd)
		cmd->xrcd = cpu_to_be32(qp->xrcd->domain->number);
	if (qp->recv_cq)
		cmd->recv_cqn = cpu_to_be32(qp->recv_cq->number);
	if (!vhca_qp_sends(arg))
		return;
	cmd->pd = cpu_to_be32(qp->pd->number);
	cmd->send_cqn = cpu_to_be32(qp->send_cq->number);
	cmd->uar = cpu_to_be32(qp->uar->hw);
	cmd->dbr = cpu_to_be64(vhca_slot_dma(qp->uar, qp->slot));
}

static int vhca_qp_cmd(struct vhca_ctx *ctx, struct vhca_qp *qp,
		       const struct vhca_create_qp *arg)
{
	struct vhca_cmd_done done;
	struct vhca_cmd cmd = {};
	struct vhca_plist pl;
	int ret;

	vhca_qp_cmd_fill(&cmd.create_qp, qp, arg);
	ret = vhca_plist_buf(ctx->vdev, &pl, qp->buf);
	if (ret)
		return ret;
	cmd.create_qp.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_QP, &cmd, &done);
	vhca_plist_free(ctx->vdev, &pl);
	if (!ret)
		qp->hw->number = be32_to_cpu(done.number);
	return ret;
}

/* The QP exists on the device; now it gets its names. */
static int vhca_qp_insert(struct vhca_ctx *ctx, struct vhca_qp *qp,
			  const struct vhca_create_qp *arg)
{
	struct vhca_dev *vdev = ctx->vdev;
	struct vhca_hw_qp *hw = qp->hw;
	int ret;

	ret = vhca_async_join(ctx, &qp->async, arg->async, arg->cookie, hw->number);
	if (ret)
		return ret;
	hlist_add_head(&qp->node, &hw->files);
	/* What a former QP of this number left in EQ 0 is not for this one. */
	vhca_eq_poll(&vdev->eqs[0]);

	ret = vhca_offset_add(ctx, qp->buf);
	if (ret)
		goto err_async;
	ret = xa_insert(&ctx->qps, hw->number, qp, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_offset;
	/* A former QP of this number has left when who took it off unlocks. */
	mutex_lock(&vdev->xrc_lock);
	ret = xa_insert(&vdev->qps, hw->number, hw, GFP_KERNEL_ACCOUNT);
	mutex_unlock(&vdev->xrc_lock);
	if (ret)
		goto err_ctx;
	return 0;

err_ctx:
	xa_erase(&ctx->qps, hw->number);
err_offset:
	vhca_offset_del(ctx, qp->buf);
err_async:
	vhca_async_leave(ctx, &qp->async);
	return ret;
}

/** vhca_create_qp() - VHCA_IOC_CREATE_QP */
int vhca_create_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_create_qp *arg = &call->create_qp;
	struct vhca_qp *qp;
	int ret;

	qp = vhca_qp_alloc(ctx, call);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ret = vhca_qp_cmd(ctx, qp, arg);
	if (ret)
		goto err_free;
	ret = vhca_qp_insert(ctx, qp, arg);
	if (ret)
		goto err_cmd;
	arg->qpn = qp->hw->number;
	vhca_buf_tell(qp->buf, &arg->buf_offset, &arg->buf_size);
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_QP, qp->hw->number);
err_free:
	vhca_qp_free(ctx, qp);
	return ret;
}

/* Become one of the files that have the QP. */
static int vhca_qp_join(struct vhca_ctx *ctx, struct vhca_qp *qp,
			const struct vhca_open_qp *arg)
{
	struct vhca_hw_qp *hw = xa_load(&ctx->vdev->qps, arg->qpn);
	int ret;

	lockdep_assert_held(&ctx->vdev->xrc_lock);
	if (!hw || hw->domain != qp->xrcd->domain)
		return -EINVAL;
	ret = vhca_async_join(ctx, &qp->async, arg->async, arg->cookie, hw->number);
	if (ret)
		return ret;
	ret = xa_insert(&ctx->qps, hw->number, qp, GFP_KERNEL_ACCOUNT);
	if (ret) {
		vhca_async_leave(ctx, &qp->async);
		return ret;
	}
	kref_get(&hw->ref);
	qp->hw = hw;
	hlist_add_head_rcu(&qp->node, &hw->files);
	return 0;
}

/** vhca_open_qp() - VHCA_IOC_OPEN_QP */
int vhca_open_qp(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_open_qp *arg = &call->open_qp;
	struct vhca_qp *qp;
	int ret = -EINVAL;

	if (arg->rsvd)
		return -EINVAL;
	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return -ENOMEM;
	qp->xrcd = xa_load(&ctx->xrcds, arg->xrcd);
	if (qp->xrcd) {
		mutex_lock(&ctx->vdev->xrc_lock);
		ret = vhca_qp_join(ctx, qp, arg);
		mutex_unlock(&ctx->vdev->xrc_lock);
	}
	if (ret)
		kfree(qp);
	else
		vhca_qp_use(qp, 1);
	return ret;
}

/*
 * The file has the QP no longer; nor has the device when it was the last one. May be
 * repeated.
 */
static int vhca_qp_leave(struct vhca_dev *vdev, struct vhca_qp *qp, bool cmds)
{
	struct vhca_hw_qp *hw = qp->hw;
	int ret = 0;

	mutex_lock(&vdev->xrc_lock);
	if (hlist_unhashed(&qp->node))
		goto out;
	if (hlist_is_singular_node(&qp->node, &hw->files)) {
		if (cmds)
			ret = vhca_cmd_number(vdev, VHCA_CMD_DESTROY_QP, hw->number);
		if (ret)
			goto out;
		xa_erase(&vdev->qps, hw->number);
	}
	hlist_del_init_rcu(&qp->node);
out:
	mutex_unlock(&vdev->xrc_lock);
	return ret;
}

static u32 vhca_qp_remove(struct vhca_ctx *ctx, struct vhca_qp *qp)
{
	u32 reads = vhca_async_leave(ctx, &qp->async);

	xa_erase(&ctx->qps, qp->hw->number);
	vhca_offset_del(ctx, qp->buf);
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
	ret = vhca_qp_leave(ctx->vdev, qp, true);
	if (ret)
		return ret;
	/* No handler has it in hand; then no work item has. Connections come and go. */
	synchronize_rcu_expedited();
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
		ret = vhca_qp_leave(ctx->vdev, qp, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_qps_quiesce() - after vhca_qps_destroy() and a grace period */
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
