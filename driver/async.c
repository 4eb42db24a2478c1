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
 * vhca_async_init() - an object that may have async events
 * @async: embedded in the object.
 * @queue: that of the object's context.
 * @cookie: user space's name of the object.
 * @number: the device's.
 */
void vhca_async_init(struct vhca_async *async, struct vhca_event_queue *queue,
		     u64 cookie, u32 number)
{
	async->raised = 0;
	async->queue = queue;
	vhca_event_init(&async->event, cookie, number);
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
	if (!port || port > vdev->caps.num_ports)
		return;
	set_bit(type, &vdev->port_raised[port - 1]);
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
	case VHCA_EQE_DEVICE_FATAL:
		return vhca_set_dead(vdev);
	default:
		dev_dbg_ratelimited(&vdev->dev, "unknown event %#x\n", type);
	}
}

static void vhca_async_ports(struct vhca_dev *vdev)
{
	unsigned long types;
	struct vhca_ctx *ctx;
	u32 i;

	for (i = 0; i < vdev->caps.num_ports; i++) {
		types = xchg(&vdev->port_raised[i], 0);
		if (!types)
			continue;
		spin_lock(&vdev->list_lock);
		list_for_each_entry(ctx, &vdev->ctxs, node)
			vhca_event_post(ctx->async, &ctx->port_events[i], types);
		spin_unlock(&vdev->list_lock);
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
