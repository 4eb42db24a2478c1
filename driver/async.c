// SPDX-License-Identifier: GPL-2.0-only
/*
 * Async events, from the interrupt handler to the event files.
 *
 * The handler marks what it heard in the object and leaves the rest to a work
 * item: the event queues' locks sleep on PREEMPT_RT, and ports concern every
 * context.
 */
#include "vhca.h"

/**
 * vhca_async_add() - a further queue of async events
 * @ctx: its context; the lock is held, but when it is new.
 *
 * It goes when its last user does; the caller is the first.
 *
 * Return: the queue, or NULL.
 */
struct vhca_event_queue *vhca_async_add(struct vhca_ctx *ctx)
{
	struct vhca_dev *vdev = ctx->vdev;
	struct vhca_event_queue *q;
	u32 i;

	q = vhca_event_queue_alloc(1 + VHCA_PORT_EVENTS * vdev->caps.num_ports);
	if (!q)
		return NULL;
	for (i = 0; i <= VHCA_PORT_EVENTS * vdev->caps.num_ports; i++)
		vhca_event_init(&q->device[i], DIV_ROUND_UP(i, VHCA_PORT_EVENTS),
				DIV_ROUND_UP(i, VHCA_PORT_EVENTS));
	q->ctx = ctx;
	q->users = 1;
	q->number = ctx->last_async++;
	spin_lock(&vdev->list_lock);
	list_add_tail(&q->node, &ctx->asyncs);
	spin_unlock(&vdev->list_lock);
	return q;
}

/** vhca_async_unuse() - a queue of async events loses a user */
void vhca_async_unuse(struct vhca_ctx *ctx, struct vhca_event_queue *q)
{
	if (--q->users)
		return;
	spin_lock(&ctx->vdev->list_lock);
	list_del(&q->node);
	spin_unlock(&ctx->vdev->list_lock);
	vhca_event_queue_put(q);
}

/**
 * vhca_async_join() - an object that may have async events
 * @ctx: its context, locked.
 * @async: embedded in the object.
 * @file: number of the async event file that they are read from.
 * @cookie: user space's name of the object.
 * @number: the device's.
 *
 * Return: 0, or -EINVAL: there is no such file.
 */
int vhca_async_join(struct vhca_ctx *ctx, struct vhca_async *async, u32 file,
		    u64 cookie, u32 number)
{
	struct vhca_event_queue *q;

	list_for_each_entry(q, &ctx->asyncs, node) {
		if (q->number != file)
			continue;
		q->users++;
		async->queue = q;
		async->raised = 0;
		vhca_event_init(&async->event, cookie, number);
		return 0;
	}
	vhca_dbg(ctx, "no async event file %u\n", file);
	return -EINVAL;
}

/**
 * vhca_async_leave() - an object that has no more async events
 * @ctx: its context, locked.
 * @async: from vhca_async_join().
 *
 * Return: how many records were read.
 */
u32 vhca_async_leave(struct vhca_ctx *ctx, struct vhca_async *async)
{
	u32 reads = vhca_event_purge(async->queue, &async->event);

	vhca_async_unuse(ctx, async->queue);
	return reads;
}

/* The object is alive: the caller found it under RCU and is still there. */
static void vhca_async_raise(struct vhca_dev *vdev, struct vhca_async *async,
			     unsigned int type)
{
	unsigned long old = READ_ONCE(async->raised);

	while (!try_cmpxchg(&async->raised, &old, old | BIT(type)))
		;
	/* Listed once: whoever takes it off the list takes all of @raised. */
	if (!old)
		llist_add(&async->node, &vdev->raised);
	schedule_work(&vdev->async_work);
}

/* Every file that has the QP hears of it. */
static void vhca_async_qp(struct vhca_dev *vdev, u32 qpn, unsigned int type)
{
	struct vhca_hw_qp *hw = xa_load(&vdev->qps, qpn);
	struct vhca_qp *qp;

	if (!hw)
		return;
	hlist_for_each_entry_rcu(qp, &hw->files, node)
		vhca_async_raise(vdev, &qp->async, type);
}

static void vhca_async_srq(struct vhca_dev *vdev, u32 srqn, unsigned int type)
{
	struct vhca_srq *srq = xa_load(&vdev->srqs, srqn);

	if (srq)
		vhca_async_raise(vdev, &srq->async, type);
}

static void vhca_async_cq(struct vhca_dev *vdev, u32 cqn, unsigned int type)
{
	struct vhca_cq *cq = xa_load(&vdev->cqs, cqn);

	if (cq)
		vhca_async_raise(vdev, &cq->async, type);
}

static void vhca_async_port(struct vhca_dev *vdev, u32 port, unsigned int type)
{
	struct vhca_port_news *news;

	if (!port || port > vdev->caps.num_ports)
		return;
	news = &vdev->port_news[port - 1];
	WRITE_ONCE(news->last, type);
	set_bit(type, &news->raised);
	schedule_work(&vdev->async_work);
}

/** vhca_async_eqe() - an async event came in; hard interrupt context */
void vhca_async_eqe(struct vhca_dev *vdev, u8 type, u32 number)
{
	switch (type) {
	case VHCA_EQE_COMM_EST:
		return vhca_async_qp(vdev, number, VHCA_EVENT_COMM_EST);
	case VHCA_EQE_SQ_DRAINED:
		return vhca_async_qp(vdev, number, VHCA_EVENT_SQ_DRAINED);
	case VHCA_EQE_QP_FATAL:
		return vhca_async_qp(vdev, number, VHCA_EVENT_QP_FATAL);
	case VHCA_EQE_QP_REQ_ERR:
		return vhca_async_qp(vdev, number, VHCA_EVENT_QP_REQ_ERR);
	case VHCA_EQE_QP_ACCESS_ERR:
		return vhca_async_qp(vdev, number, VHCA_EVENT_QP_ACCESS_ERR);
	case VHCA_EQE_QP_LAST_WQE:
		return vhca_async_qp(vdev, number, VHCA_EVENT_QP_LAST_WQE_REACHED);
	case VHCA_EQE_PATH_MIG:
		return vhca_async_qp(vdev, number, VHCA_EVENT_PATH_MIG);
	case VHCA_EQE_PATH_MIG_ERR:
		return vhca_async_qp(vdev, number, VHCA_EVENT_PATH_MIG_ERR);
	case VHCA_EQE_SRQ_LIMIT:
		return vhca_async_srq(vdev, number, VHCA_EVENT_SRQ_LIMIT_REACHED);
	case VHCA_EQE_SRQ_ERR:
		return vhca_async_srq(vdev, number, VHCA_EVENT_SRQ_ERR);
	case VHCA_EQE_CQ_ERR:
		return vhca_async_cq(vdev, number, VHCA_EVENT_CQ_ERR);
	case VHCA_EQE_PORT_ACTIVE:
		return vhca_async_port(vdev, number, VHCA_EVENT_PORT_ACTIVE);
	case VHCA_EQE_PORT_ERR:
		return vhca_async_port(vdev, number, VHCA_EVENT_PORT_ERR);
	case VHCA_EQE_LID_CHANGE:
		return vhca_async_port(vdev, number, VHCA_EVENT_LID_CHANGE);
	case VHCA_EQE_PKEY_CHANGE:
		return vhca_async_port(vdev, number, VHCA_EVENT_PKEY_CHANGE);
	case VHCA_EQE_SM_CHANGE:
		return vhca_async_port(vdev, number, VHCA_EVENT_SM_CHANGE);
	case VHCA_EQE_REREGISTER:
		return vhca_async_port(vdev, number, VHCA_EVENT_CLIENT_REREGISTER);
	case VHCA_EQE_GID_CHANGE:
		return vhca_async_port(vdev, number, VHCA_EVENT_GID_CHANGE);
	case VHCA_EQE_DEVICE_FATAL:
		return vhca_set_dead(vdev);
	default:
		dev_dbg_ratelimited(&vdev->dev, "unknown event %#x\n", type);
	}
}

/* Up and down have an event each, as their order counts; the rest has one together. */
static u32 vhca_async_slot(u32 port, unsigned int type)
{
	u32 last = VHCA_PORT_EVENTS * port;

	switch (type) {
	case VHCA_EVENT_PORT_ERR:
		return last - 2;
	case VHCA_EVENT_PORT_ACTIVE:
		return last - 1;
	default:
		return last;
	}
}

static void vhca_async_broadcast(struct vhca_dev *vdev, u32 port, unsigned int type)
{
	u32 i = vhca_async_slot(port, type);
	struct vhca_event_queue *q;
	struct vhca_ctx *ctx;

	spin_lock(&vdev->list_lock);
	list_for_each_entry(ctx, &vdev->ctxs, node)
		list_for_each_entry(q, &ctx->asyncs, node)
			vhca_event_post(q, &q->device[i], BIT(type));
	spin_unlock(&vdev->list_lock);
}

/* The event that came last goes last; one that comes meanwhile has the next turn. */
static void vhca_async_ports(struct vhca_dev *vdev)
{
	u32 i;

	for (i = 0; i < vdev->caps.num_ports; i++) {
		struct vhca_port_news *news = &vdev->port_news[i];
		unsigned long types = xchg(&news->raised, 0);
		unsigned int type, last = READ_ONCE(news->last);

		for_each_set_bit(type, &types, BITS_PER_LONG)
			if (type != last)
				vhca_async_broadcast(vdev, i + 1, type);
		if (types & BIT(last))
			vhca_async_broadcast(vdev, i + 1, last);
	}
}

/** vhca_async_work() - pass on what the handler marked */
void vhca_async_work(struct work_struct *work)
{
	struct vhca_dev *vdev = container_of(work, struct vhca_dev, async_work);
	struct llist_node *list = llist_del_all(&vdev->raised);
	struct vhca_async *async, *next;

	/* @next is read before xchg() lets the handler list @async again. */
	llist_for_each_entry_safe(async, next, list, node)
		vhca_event_post(async->queue, &async->event,
				xchg(&async->raised, 0));
	vhca_async_ports(vdev);
}
