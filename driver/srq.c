// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared receive queues, basic ones and those of XRC. The device
 * consumes the ring and keeps the limit; the driver's part is the object, and its
 * async events.
 */
#include "vhca.h"

#define VHCA_SRQ_BASIC	0
#define VHCA_SRQ_XRC	1

static size_t vhca_srq_size(const struct vhca_create_srq *arg)
{
	return (size_t)VHCA_WQE_SEG_SIZE << arg->sge_shift << arg->shift;
}

static bool vhca_srq_fields(const struct vhca_caps *caps,
			    const struct vhca_create_srq *arg)
{
	if (arg->rsvd[0] || arg->rsvd[1])
		return false;
	if (arg->type > VHCA_SRQ_XRC)
		return false;
	if (arg->type == VHCA_SRQ_BASIC && (arg->xrcd || arg->cqn))
		return false;
	/* One segment of a WQE is its head. */
	return arg->shift <= caps->max_srq_shift &&
	       arg->sge_shift && arg->sge_shift <= VHCA_RQ_MAX_SGE_SHIFT &&
	       1u << arg->sge_shift < 2 * (caps->max_srq_sge + 1) &&
	       arg->limit <= 1u << arg->shift;
}

/** vhca_prepare_srq() - what can be done without a lock */
int vhca_prepare_srq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_srq *arg = &call->create_srq;

	if (!ctx->vdev->caps.max_srq)
		return -EOPNOTSUPP;
	if (vhca_srq_fields(&ctx->vdev->caps, arg))
		return vhca_buf_pin(call, arg->buf_addr, vhca_srq_size(arg));
	vhca_dbg(ctx, "SRQ of type %u, 2^%u WQEs of 2^%u segments: refused\n",
		 arg->type, arg->shift, arg->sge_shift);
	return -EINVAL;
}

static int vhca_srq_lookup(struct vhca_ctx *ctx, struct vhca_srq *srq,
			   const struct vhca_create_srq *arg)
{
	bool xrc = arg->type == VHCA_SRQ_XRC;

	srq->pd = xa_load(&ctx->pds, arg->pd);
	if (xrc) {
		srq->xrcd = xa_load(&ctx->xrcds, arg->xrcd);
		srq->cq = xa_load(&ctx->cqs, arg->cqn);
	}
	if (srq->pd && !xrc == !srq->xrcd && !xrc == !srq->cq)
		return 0;
	vhca_dbg(ctx, "SRQ: no PD %u, or XRC domain %u, or CQ %u\n", arg->pd,
		 arg->xrcd, arg->cqn);
	return -EINVAL;
}

static void vhca_srq_use(struct vhca_srq *srq, int n)
{
	srq->pd->users += n;
	if (srq->xrcd)
		srq->xrcd->users += n;
	if (srq->cq)
		srq->cq->users += n;
}

/* An SRQ that the device does not know yet. */
static struct vhca_srq *vhca_srq_alloc(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_srq *arg = &call->create_srq;
	struct vhca_srq *srq;
	int ret;

	srq = kzalloc(sizeof(*srq), GFP_KERNEL_ACCOUNT);
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->slot = arg->slot;
	srq->shift = arg->shift;
	ret = vhca_srq_lookup(ctx, srq, arg);
	if (ret)
		goto err_srq;
	ret = vhca_slot_get(ctx, arg->uar, arg->slot, &srq->uar);
	if (ret)
		goto err_srq;
	ret = vhca_buf_get(ctx->vdev, call, vhca_srq_size(arg), &srq->buf);
	if (ret)
		goto err_slot;
	vhca_srq_use(srq, 1);
	return srq;

err_slot:
	vhca_slot_put(srq->uar, srq->slot);
err_srq:
	kfree(srq);
	return ERR_PTR(ret);
}

/* What vhca_srq_alloc() made; the device does not know it any more. */
static void vhca_srq_free(struct vhca_ctx *ctx, struct vhca_srq *srq)
{
	vhca_srq_use(srq, -1);
	vhca_buf_unmap(ctx->vdev, srq->buf);
	vhca_buf_put(srq->buf);
	vhca_slot_put(srq->uar, srq->slot);
	kfree(srq);
}

static int vhca_srq_cmd(struct vhca_ctx *ctx, struct vhca_srq *srq,
			const struct vhca_create_srq *arg)
{
	struct vhca_cmd cmd = {
		.create_srq = {
			.pd		= cpu_to_be32(srq->pd->number),
			.uar		= cpu_to_be32(srq->uar->hw),
			.slot		= cpu_to_be32(srq->slot),
			.limit		= cpu_to_be32(arg->limit),
			.shift		= arg->shift,
			.sge_shift	= arg->sge_shift,
			.dbr = cpu_to_be64(vhca_slot_dma(srq->uar, srq->slot)),
		},
	};
	struct vhca_cmd_done done;
	struct vhca_plist pl;
	int ret;

	if (srq->xrcd) {
		cmd.create_srq.xrcd = cpu_to_be32(srq->xrcd->domain->number);
		cmd.create_srq.cqn = cpu_to_be32(srq->cq->number);
	}
	ret = vhca_plist_buf(ctx->vdev, &pl, srq->buf);
	if (ret)
		return ret;
	cmd.create_srq.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_SRQ, &cmd, &done);
	vhca_plist_free(ctx->vdev, &pl);
	if (!ret)
		srq->number = be32_to_cpu(done.number);
	return ret;
}

/* The SRQ exists on the device; now it gets its names. */
static int vhca_srq_insert(struct vhca_ctx *ctx, struct vhca_srq *srq,
			   const struct vhca_create_srq *arg)
{
	int ret;

	ret = vhca_async_join(ctx, &srq->async, arg->async, arg->cookie, srq->number);
	if (ret)
		return ret;
	/* What a former SRQ of this number left in EQ 0 is not for this one. */
	vhca_eq_poll(&ctx->vdev->eqs[0]);

	ret = vhca_offset_add(ctx, srq->buf);
	if (ret)
		goto err_async;
	ret = xa_insert(&ctx->srqs, srq->number, srq, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_offset;
	/* A former SRQ of this number may be on its way out: it leaves ours. */
	ret = xa_err(xa_store(&ctx->vdev->srqs, srq->number, srq, GFP_KERNEL_ACCOUNT));
	if (ret)
		goto err_ctx;
	return 0;

err_ctx:
	xa_erase(&ctx->srqs, srq->number);
err_offset:
	vhca_offset_del(ctx, srq->buf);
err_async:
	vhca_async_leave(ctx, &srq->async);
	return ret;
}

/** vhca_create_srq() - VHCA_IOC_CREATE_SRQ */
int vhca_create_srq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_create_srq *arg = &call->create_srq;
	struct vhca_srq *srq;
	int ret;

	srq = vhca_srq_alloc(ctx, call);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	ret = vhca_srq_cmd(ctx, srq, arg);
	if (ret)
		goto err_free;
	ret = vhca_srq_insert(ctx, srq, arg);
	if (ret)
		goto err_cmd;
	arg->srqn = srq->number;
	vhca_buf_tell(srq->buf, &arg->buf_offset, &arg->buf_size);
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_SRQ, srq->number);
err_free:
	vhca_srq_free(ctx, srq);
	return ret;
}

/** vhca_modify_srq() - VHCA_IOC_MODIFY_SRQ */
int vhca_modify_srq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_modify_srq *arg = &call->modify_srq;
	struct vhca_srq *srq = xa_load(&ctx->srqs, arg->srqn);
	struct vhca_cmd cmd = {
		.modify_srq = {
			.srqn	= cpu_to_be32(arg->srqn),
			.limit	= cpu_to_be32(arg->limit),
		},
	};

	if (!srq || arg->limit > 1u << srq->shift)
		return -EINVAL;
	return vhca_cmd(ctx->vdev, VHCA_CMD_MODIFY_SRQ, &cmd, NULL);
}

/** vhca_query_srq() - VHCA_IOC_QUERY_SRQ */
int vhca_query_srq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_modify_srq *arg = &call->modify_srq;
	struct vhca_cmd cmd = { .object.number = cpu_to_be32(arg->srqn) };
	struct vhca_cmd_done done;
	int ret;

	if (!xa_load(&ctx->srqs, arg->srqn))
		return -EINVAL;
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_QUERY_SRQ, &cmd, &done);
	if (!ret)
		arg->limit = be32_to_cpu(done.srq_limit);
	return ret;
}

static int vhca_srq_destroy(struct vhca_ctx *ctx, struct vhca_srq *srq, bool cmds)
{
	int ret = 0;

	if (cmds)
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_SRQ, srq->number);
	if (!ret)
		xa_cmpxchg(&ctx->vdev->srqs, srq->number, srq, NULL, 0);
	return ret;
}

static u32 vhca_srq_remove(struct vhca_ctx *ctx, struct vhca_srq *srq)
{
	u32 reads = vhca_async_leave(ctx, &srq->async);

	xa_erase(&ctx->srqs, srq->number);
	vhca_offset_del(ctx, srq->buf);
	vhca_srq_free(ctx, srq);
	return reads;
}

/** vhca_destroy_srq() - VHCA_IOC_DESTROY_SRQ */
int vhca_destroy_srq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_destroy_srq *arg = &call->destroy_srq;
	struct vhca_srq *srq = xa_load(&ctx->srqs, arg->srqn);
	int ret;

	if (!srq)
		return -EINVAL;
	if (srq->users)
		return -EBUSY;
	ret = vhca_srq_destroy(ctx, srq, true);
	if (ret)
		return ret;
	/* No handler has it in hand; then no work item has. Connections come and go. */
	synchronize_rcu_expedited();
	flush_work(&ctx->vdev->async_work);
	arg->async_events = vhca_srq_remove(ctx, srq);
	return 0;
}

/** vhca_srqs_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_srqs_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_srq *srq;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->srqs, i, srq) {
		ret = vhca_srq_destroy(ctx, srq, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_srqs_quiesce() - after vhca_srqs_destroy() and a grace period */
void vhca_srqs_quiesce(struct vhca_ctx *ctx)
{
	struct vhca_srq *srq;
	unsigned long i;

	xa_for_each(&ctx->srqs, i, srq)
		vhca_buf_unmap(ctx->vdev, srq->buf);
}

/** vhca_srqs_free() - what is left of them */
void vhca_srqs_free(struct vhca_ctx *ctx)
{
	struct vhca_srq *srq;
	unsigned long i;

	xa_for_each(&ctx->srqs, i, srq)
		vhca_srq_remove(ctx, srq);
}
