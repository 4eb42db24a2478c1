// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues. The ring belongs to user space and the device; the
 * driver's part is the tasklet that turns an event of the device into a record
 * on the completion channel.
 */
#include <linux/log2.h>

#include "vhca.h"

static void vhca_cq_tasklet(struct tasklet_struct *t)
{
	struct vhca_cq *cq = from_tasklet(cq, t, tasklet);

	this_cpu_inc(cq->vdev->stats->tasklets);
	if (!cq->channel)
		return;
	if (vhca_event_post(cq->channel, &cq->event, 1))
		this_cpu_inc(cq->vdev->stats->events);
	else
		this_cpu_inc(cq->vdev->stats->merged);
}

static size_t vhca_cq_size(u32 cqe)
{
	return (size_t)VHCA_CQE_SIZE << order_base_2(cqe);
}

static bool vhca_cq_size_ok(struct vhca_ctx *ctx, u32 cqe)
{
	return cqe && cqe <= 1u << ctx->vdev->caps.max_cq_shift;
}

/* The flags are the same numbers on both sides. */
static_assert(VHCA_CQ_F_TIMESTAMP == VHCA_CQ_TIMESTAMP);
static_assert(VHCA_CQ_F_IGNORE_OVERRUN == VHCA_CQ_IGNORE_OVERRUN);
#define VHCA_CQ_FLAGS	(VHCA_CQ_F_TIMESTAMP | VHCA_CQ_F_IGNORE_OVERRUN)

/** vhca_prepare_cq() - what can be done without a lock */
int vhca_prepare_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_cq *arg = &call->create_cq;

	if (vhca_cq_size_ok(ctx, arg->cqe) && arg->comp_vector < ctx->vdev->num_comp &&
	    !(arg->flags & ~VHCA_CQ_FLAGS))
		return vhca_buf_pin(call, arg->buf_addr, vhca_cq_size(arg->cqe));
	vhca_dbg(ctx, "CQ of %u entries on vector %u, flags %#x: refused\n", arg->cqe,
		 arg->comp_vector, arg->flags);
	return -EINVAL;
}

static int vhca_cq_cmd(struct vhca_cq *cq, u32 shift, u32 flags)
{
	struct vhca_dev *vdev = cq->vdev;
	struct vhca_cmd cmd = {
		.create_cq = {
			.eqn	= cpu_to_be32(cq->eq->eqn),
			.uar	= cpu_to_be32(cq->uar->hw),
			.slot	= cpu_to_be32(cq->slot),
			.shift	= cpu_to_be32(shift),
			.dbr	= cpu_to_be64(vhca_slot_dma(cq->uar, cq->slot)),
			.flags	= cpu_to_be32(flags),
		},
	};
	struct vhca_cmd_done done;
	struct vhca_plist pl;
	int ret;

	ret = vhca_plist_buf(vdev, &pl, cq->buf);
	if (ret)
		return ret;
	cmd.create_cq.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(vdev, VHCA_CMD_CREATE_CQ, &cmd, &done);
	vhca_plist_free(vdev, &pl);
	if (!ret)
		cq->number = be32_to_cpu(done.number);
	return ret;
}

/* The CQ exists on the device; now it gets its names. */
static int vhca_cq_insert(struct vhca_ctx *ctx, struct vhca_cq *cq,
			  const struct vhca_create_cq *arg)
{
	int ret;

	vhca_event_init(&cq->event, arg->cookie, cq->number);
	ret = vhca_async_join(ctx, &cq->async, arg->async, arg->cookie, cq->number);
	if (ret)
		return ret;
	/*
	 * What a former CQ of this number left in the EQs is not for this one:
	 * take it out while nothing is found under the number.
	 */
	vhca_eq_poll(cq->eq);
	vhca_eq_poll(&ctx->vdev->eqs[0]);

	ret = vhca_offset_add(ctx, cq->buf);
	if (ret)
		goto err_async;
	ret = xa_insert(&ctx->cqs, cq->number, cq, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_offset;
	/* A former CQ of this number may be on its way out: it leaves ours. */
	ret = xa_err(xa_store(&cq->vdev->cqs, cq->number, cq, GFP_KERNEL_ACCOUNT));
	if (ret)
		goto err_ctx;
	return 0;

err_ctx:
	xa_erase(&ctx->cqs, cq->number);
err_offset:
	vhca_offset_del(ctx, cq->buf);
err_async:
	vhca_async_leave(ctx, &cq->async);
	return ret;
}

/* A CQ that the device does not know yet. */
static struct vhca_cq *vhca_cq_alloc(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_create_cq *arg = &call->create_cq;
	struct vhca_cq *cq;
	int ret;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL_ACCOUNT);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->vdev = ctx->vdev;
	cq->slot = arg->slot;
	cq->eq = &ctx->vdev->eqs[1 + arg->comp_vector];
	tasklet_setup(&cq->tasklet, vhca_cq_tasklet);
	if (arg->channel_fd != VHCA_INVALID_FD) {
		cq->channel = vhca_channel_get(ctx, arg->channel_fd);
		if (IS_ERR(cq->channel)) {
			ret = PTR_ERR(cq->channel);
			goto err_cq;
		}
		cq->channel->users++;
	}
	ret = vhca_slot_get(ctx, arg->uar, arg->slot, &cq->uar);
	if (ret)
		goto err_channel;
	ret = vhca_buf_get(ctx->vdev, call, vhca_cq_size(arg->cqe), &cq->buf);
	if (ret)
		goto err_slot;
	return cq;

err_slot:
	vhca_slot_put(cq->uar, cq->slot);
err_channel:
	if (cq->channel) {
		cq->channel->users--;
		vhca_event_queue_put(cq->channel);
	}
err_cq:
	kfree(cq);
	return ERR_PTR(ret);
}

/* What vhca_cq_alloc() made; the device does not know it any more. */
static void vhca_cq_free(struct vhca_ctx *ctx, struct vhca_cq *cq)
{
	vhca_buf_unmap(ctx->vdev, cq->buf);
	vhca_buf_put(cq->buf);
	vhca_slot_put(cq->uar, cq->slot);
	if (cq->channel) {
		cq->channel->users--;
		vhca_event_queue_put(cq->channel);
	}
	kfree(cq);
}

/** vhca_create_cq() - VHCA_IOC_CREATE_CQ */
int vhca_create_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_create_cq *arg = &call->create_cq;
	struct vhca_cq *cq;
	u32 shift = order_base_2(arg->cqe);
	int ret;

	cq = vhca_cq_alloc(ctx, call);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ret = vhca_cq_cmd(cq, shift, arg->flags);
	if (ret)
		goto err_free;
	ret = vhca_cq_insert(ctx, cq, arg);
	if (ret)
		goto err_cmd;
	arg->cqe = 1 << shift;
	arg->cqn = cq->number;
	vhca_buf_tell(cq->buf, &arg->buf_offset, &arg->buf_size);
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_CQ, cq->number);
err_free:
	vhca_cq_free(ctx, cq);
	return ret;
}

static int vhca_cq_resize_cmd(struct vhca_cq *cq, struct vhca_buf *buf, u32 shift)
{
	struct vhca_cmd cmd = {
		.resize_cq = {
			.cqn	= cpu_to_be32(cq->number),
			.shift	= cpu_to_be32(shift),
		},
	};
	struct vhca_plist pl;
	int ret;

	ret = vhca_plist_buf(cq->vdev, &pl, buf);
	if (ret)
		return ret;
	cmd.resize_cq.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(cq->vdev, VHCA_CMD_RESIZE_CQ, &cmd, NULL);
	vhca_plist_free(cq->vdev, &pl);
	return ret;
}

/** vhca_prepare_resize_cq() - what can be done without a lock */
int vhca_prepare_resize_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_resize_cq *arg = &call->resize_cq;

	if (!vhca_cq_size_ok(ctx, arg->cqe))
		return -EINVAL;
	return vhca_buf_pin(call, arg->buf_addr, vhca_cq_size(arg->cqe));
}

/** vhca_resize_cq() - VHCA_IOC_RESIZE_CQ */
int vhca_resize_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_resize_cq *arg = &call->resize_cq;
	struct vhca_cq *cq = xa_load(&ctx->cqs, arg->cqn);
	u32 shift = order_base_2(arg->cqe);
	struct vhca_buf *buf;
	int ret;

	if (!cq)
		return -EINVAL;
	ret = vhca_buf_get(ctx->vdev, call, vhca_cq_size(arg->cqe), &buf);
	if (ret)
		return ret;
	ret = vhca_offset_add(ctx, buf);
	if (!ret)
		ret = vhca_cq_resize_cmd(cq, buf, shift);
	if (!ret) {
		swap(cq->buf, buf);
		arg->cqe = 1 << shift;
		vhca_buf_tell(cq->buf, &arg->buf_offset, &arg->buf_size);
	}
	/* The ring that the device does not know, or knows no more. */
	vhca_offset_del(ctx, buf);
	vhca_buf_unmap(ctx->vdev, buf);
	vhca_buf_put(buf);
	return ret;
}

/** vhca_modify_cq() - VHCA_IOC_MODIFY_CQ */
int vhca_modify_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	const struct vhca_modify_cq *arg = &call->modify_cq;
	struct vhca_cq *cq = xa_load(&ctx->cqs, arg->cqn);
	struct vhca_cmd cmd = {
		.modify_cq = {
			.cqn	= cpu_to_be32(arg->cqn),
			.count	= cpu_to_be32(arg->count),
			.period	= cpu_to_be32(arg->period),
		},
	};

	if (!cq || arg->rsvd || arg->count > ctx->vdev->caps.max_cq_count ||
	    arg->period > ctx->vdev->caps.max_cq_period)
		return -EINVAL;
	return vhca_cmd(ctx->vdev, VHCA_CMD_MODIFY_CQ, &cmd, NULL);
}

static int vhca_cq_destroy(struct vhca_cq *cq, bool cmds)
{
	int ret = 0;

	if (cmds)
		ret = vhca_cmd_number(cq->vdev, VHCA_CMD_DESTROY_CQ, cq->number);
	if (!ret)
		xa_cmpxchg(&cq->vdev->cqs, cq->number, cq, NULL, 0);
	return ret;
}

/* After a grace period: the tasklet is scheduled no more. */
static void vhca_cq_quiesce(struct vhca_cq *cq)
{
	tasklet_kill(&cq->tasklet);
	vhca_buf_unmap(cq->vdev, cq->buf);
}

static void vhca_cq_remove(struct vhca_ctx *ctx, struct vhca_cq *cq,
			   struct vhca_destroy_cq *arg)
{
	if (cq->channel)
		arg->comp_events = vhca_event_purge(cq->channel, &cq->event);
	arg->async_events = vhca_async_leave(ctx, &cq->async);
	xa_erase(&ctx->cqs, cq->number);
	vhca_offset_del(ctx, cq->buf);
	vhca_cq_free(ctx, cq);
}

/** vhca_destroy_cq() - VHCA_IOC_DESTROY_CQ */
int vhca_destroy_cq(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_destroy_cq *arg = &call->destroy_cq;
	struct vhca_cq *cq = xa_load(&ctx->cqs, arg->cqn);
	int ret;

	if (!cq || arg->rsvd)
		return -EINVAL;
	if (cq->users)
		return -EBUSY;
	ret = vhca_cq_destroy(cq, true);
	if (ret)
		return ret;
	/*
	 * The interrupt handler is a reader of RCU from look-up to tasklet, so
	 * this waits for it too, and then the work item of async events.
	 */
	synchronize_rcu_expedited();
	flush_work(&ctx->vdev->async_work);
	vhca_cq_quiesce(cq);
	arg->comp_events = 0;
	vhca_cq_remove(ctx, cq, arg);
	return 0;
}

/** vhca_cqs_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_cqs_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_cq *cq;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->cqs, i, cq) {
		ret = vhca_cq_destroy(cq, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_cqs_quiesce() - after vhca_cqs_destroy() and a grace period */
void vhca_cqs_quiesce(struct vhca_ctx *ctx)
{
	struct vhca_cq *cq;
	unsigned long i;

	xa_for_each(&ctx->cqs, i, cq)
		vhca_cq_quiesce(cq);
}

/** vhca_cqs_free() - what is left of them */
void vhca_cqs_free(struct vhca_ctx *ctx)
{
	struct vhca_destroy_cq unread;
	struct vhca_cq *cq;
	unsigned long i;

	xa_for_each(&ctx->cqs, i, cq)
		vhca_cq_remove(ctx, cq, &unread);
}
