// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event channel: an open file, and the events that are read from it.
 *
 * What a program's own commands bring about is charged to it. What peers bring about is
 * bounded by the states that an id goes through, and by a listener's backlog.
 */
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "cm.h"

static unsigned int cm_events;

/** cm_events_count() - how many there are that were not read; cm_lock is held */
unsigned int cm_events_count(void)
{
	return cm_events;
}

static struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type,
				     int status)
{
	struct cm_event *ev = kzalloc(sizeof(*ev), GFP_KERNEL_ACCOUNT);

	if (!ev)
		return NULL;
	cm_events++;
	ev->id = id;
	ev->resp.uid = id->uid;
	ev->resp.id = id->handle;
	ev->resp.event = type;
	ev->resp.status = status;
	return ev;
}

static void cm_event_queue(struct cm_event *ev)
{
	list_add_tail(&ev->of_owner, ev->mcast ? &ev->mcast->events : &ev->id->events);
	list_add_tail(&ev->node, &ev->id->file->events);
	wake_up_interruptible_poll(&ev->id->file->wait, EPOLLIN | EPOLLRDNORM);
}

/* How long private data is in an event: as long as it can be in the message. */
static u8 cm_private_max(const struct cm_msg *msg)
{
	bool ip = msg->dst.ss_family != AF_IB;

	switch (msg->type) {
	case CM_MSG_REQ:
		return IB_CM_REQ_PRIVATE_DATA_SIZE - (ip ? CM_IP_HEADER : 0);
	case CM_MSG_SIDR_REQ:
		return IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE - (ip ? CM_IP_HEADER : 0);
	case CM_MSG_REP:
		return IB_CM_REP_PRIVATE_DATA_SIZE;
	case CM_MSG_SIDR_REP:
		return IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
	case CM_MSG_REJ:
		return IB_CM_REJ_PRIVATE_DATA_SIZE;
	default:
		return 0;
	}
}

/* What the peer can answer is what we can have outstanding, and the other way round. */
static void cm_event_conn(struct rdma_ucm_event_resp *resp, const struct cm_msg *msg)
{
	struct rdma_ucm_conn_param *param = &resp->param.conn;

	param->private_data_len = cm_private_max(msg);
	memcpy(param->private_data, msg->priv, param->private_data_len);
	param->qp_num = msg->qpn;
	param->responder_resources = msg->init_depth;
	param->initiator_depth = msg->resp_res;
	param->flow_control = msg->flow_control;
	param->retry_count = msg->retry;
	param->rnr_retry_count = msg->rnr_retry;
	param->srq = msg->srq;
	resp->ece.vendor_id = msg->ece_vendor;
	resp->ece.attr_mod = msg->ece_attr;
}

static void cm_event_ud(struct rdma_ucm_event_resp *resp, const struct cm_id *id,
			const struct cm_msg *msg)
{
	struct rdma_ucm_ud_param *param = &resp->param.ud;

	param->private_data_len = cm_private_max(msg);
	memcpy(param->private_data, msg->priv, param->private_data_len);
	if (resp->event != RDMA_CM_EVENT_ESTABLISHED)
		return;
	param->qp_num = msg->qpn;
	param->qkey = msg->qkey;
	cm_ah_attr(&id->path, &param->ah_attr);
}

static void cm_event_fill(struct cm_event *ev, const struct cm_id *id, const struct cm_msg *msg)
{
	if (id->qp_type == IB_QPT_UD)
		cm_event_ud(&ev->resp, id, msg);
	else
		cm_event_conn(&ev->resp, msg);
}

/**
 * cm_event_post() - something happened to an id
 * @id: the id. If user space has not seen it yet, it does not hear of it.
 * @type: what happened.
 * @status: 0, a negative error, or a reason that the peer gave.
 * @msg: the message that brought it about, if the event tells what is in it.
 *
 * cm_lock is held.
 */
void cm_event_post(struct cm_id *id, enum rdma_cm_event_type type, int status,
		   const struct cm_msg *msg)
{
	struct cm_event *ev;

	if (!id->uid)
		return;
	ev = cm_event_new(id, type, status);
	if (!ev)
		return;
	if (msg)
		cm_event_fill(ev, id, msg);
	cm_event_queue(ev);
}

/**
 * cm_event_request() - a listener has a request
 * @listener: the listener, which has room for it.
 * @child: the id for the connection.
 * @msg: the REQ or SIDR_REQ.
 *
 * Return: 0 or -ENOMEM. cm_lock is held.
 */
int cm_event_request(struct cm_id *listener, struct cm_id *child, const struct cm_msg *msg)
{
	struct cm_event *ev = cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	if (!ev)
		return -ENOMEM;
	ev->child = child;
	child->request = ev;
	ev->resp.id = child->handle;
	cm_event_fill(ev, child, msg);
	listener->backlog--;
	cm_event_queue(ev);
	return 0;
}

/** cm_event_mcast() - an id is in a multicast group, which one reaches by @ah */
void cm_event_mcast(struct cm_mcast *mcast, const struct ib_uverbs_ah_attr *ah)
{
	struct cm_event *ev = cm_event_new(mcast->id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);

	if (!ev)
		return;
	ev->mcast = mcast;
	ev->resp.uid = mcast->uid;
	ev->resp.id = mcast->handle;
	ev->resp.param.ud.qp_num = IB_MULTICAST_QPN;
	ev->resp.param.ud.qkey = mcast->id->qkey;
	ev->resp.param.ud.ah_attr = *ah;
	cm_event_queue(ev);
}

static void cm_event_free(struct cm_event *ev)
{
	if (ev->child)
		ev->child->request = NULL;
	list_del(&ev->of_owner);
	list_del(&ev->node);
	cm_events--;
	kfree(ev);
}

/**
 * cm_events_purge() - an id goes: drop what was not read
 * @id: the id.
 *
 * A request that nobody read goes with the id that it made, and takes that along when
 * the listener goes. cm_lock is held.
 */
void cm_events_purge(struct cm_id *id)
{
	struct cm_event *ev;

	if (id->request) {
		id->request->id->backlog++;
		cm_event_free(id->request);
	}
	while ((ev = list_first_entry_or_null(&id->events, struct cm_event, of_owner))) {
		if (ev->child)
			cm_id_destroy(ev->child);
		else
			cm_event_free(ev);
	}
}

/** cm_events_purge_mcast() - an id leaves a group; cm_lock is held */
void cm_events_purge_mcast(struct cm_mcast *mcast)
{
	struct cm_event *ev, *next;

	list_for_each_entry_safe(ev, next, &mcast->events, of_owner)
		cm_event_free(ev);
}

static void cm_id_move(struct cm_id *id, struct cm_file *to)
{
	list_move_tail(&id->of_file, &to->ids);
	id->file->ids_number--;
	to->ids_number++;
	id->file = to;
}

/**
 * cm_file_move() - an id goes to another channel, and what was not read with it
 * @id: the id. If it listens, those of unread requests come along.
 * @to: the channel.
 *
 * cm_lock is held.
 */
void cm_file_move(struct cm_id *id, struct cm_file *to)
{
	struct cm_event *ev, *next;
	struct cm_file *from = id->file;

	if (from == to)
		return;
	cm_id_move(id, to);
	list_for_each_entry_safe(ev, next, &from->events, node) {
		if (ev->id != id)
			continue;
		list_move_tail(&ev->node, &to->events);
		if (ev->child)
			cm_id_move(ev->child, to);
	}
	if (!list_empty(&to->events))
		wake_up_interruptible_poll(&to->wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * The event reaches user space and counts as read in one step: it is neither lost by a
 * bad buffer, nor read after its id went.
 */
static int cm_event_take(struct cm_file *file, void __user *response, size_t len)
{
	struct cm_event *ev;

	ev = list_first_entry_or_null(&file->events, struct cm_event, node);
	if (!ev)
		return -EAGAIN;
	if (copy_to_user_nofault(response, &ev->resp, min(len, sizeof(ev->resp))))
		return -EFAULT;
	ev->id->events_reported++;
	if (ev->mcast)
		ev->mcast->events_reported++;
	if (ev->resp.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		ev->id->backlog++;
	cm_event_free(ev);
	return 0;
}

/* Why no event was taken: mend it (0), or say so. */
static int cm_event_retry(struct file *filp, void __user *response, size_t len, int why)
{
	struct cm_file *file = filp->private_data;

	if (why == -EAGAIN) {
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		return wait_event_interruptible(file->wait, !list_empty(&file->events));
	}
	if (fault_in_writeable(response, len))
		return -EFAULT;
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/**
 * cm_get_event() - RDMA_USER_CM_CMD_GET_EVENT
 * @filp: the event channel.
 * @response: where the event goes.
 * @len: how much of it there is room for.
 *
 * Return: 0; -ENOSPC: there is too little; -EAGAIN: there is none, and the file does
 * not block; -EFAULT; -ERESTARTSYS.
 */
int cm_get_event(struct file *filp, void __user *response, size_t len)
{
	int ret;

	/* Old programs know nothing of what was added at the end. */
	if (len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	len = min(len, sizeof(struct rdma_ucm_event_resp));
	for (;;) {
		mutex_lock(&cm_lock);
		ret = cm_event_take(filp->private_data, response, len);
		mutex_unlock(&cm_lock);
		if (!ret)
			return 0;
		ret = cm_event_retry(filp, response, len, ret);
		if (ret)
			return ret;
	}
}

static __poll_t cm_poll(struct file *filp, struct poll_table_struct *table)
{
	struct cm_file *file = filp->private_data;

	poll_wait(filp, &file->wait, table);
	return list_empty(&file->events) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static unsigned int cm_files;

/** cm_files_count() - how many channels are open; cm_lock is held */
unsigned int cm_files_count(void)
{
	return cm_files;
}

static int cm_open(struct inode *inode, struct file *filp)
{
	struct cm_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	INIT_LIST_HEAD(&file->ids);
	INIT_LIST_HEAD(&file->events);
	init_waitqueue_head(&file->wait);
	file->net = get_net(current->nsproxy->net_ns);
	filp->private_data = file;
	mutex_lock(&cm_lock);
	cm_files++;
	mutex_unlock(&cm_lock);
	return stream_open(inode, filp);
}

static int cm_release(struct inode *inode, struct file *filp)
{
	struct cm_file *file = filp->private_data;

	mutex_lock(&cm_lock);
	while (!list_empty(&file->ids)) {
		cm_id_destroy(list_first_entry(&file->ids, struct cm_id, of_file));
		/* There may be many, and others wait. */
		mutex_unlock(&cm_lock);
		cond_resched();
		mutex_lock(&cm_lock);
	}
	cm_files--;
	mutex_unlock(&cm_lock);
	put_net(file->net);
	kfree(file);
	return 0;
}

const struct file_operations cm_fops = {
	.owner		= THIS_MODULE,
	.open		= cm_open,
	.release	= cm_release,
	.write		= cm_write,
	.poll		= cm_poll,
};
