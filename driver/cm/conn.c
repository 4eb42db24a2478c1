// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection, as both of its sides see it: its names, the message that an answer is
 * awaited to, the timer, and the end. cm_lock is held for all of it.
 *
 * A side names a connection by a number that comes again only when all others were
 * used, so that a late message finds its connection or none.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

static DEFINE_XARRAY_FLAGS(cm_conns, XA_FLAGS_ALLOC1);	/* by cm_id.local_id */
static DEFINE_HASHTABLE(cm_remotes, 12);		/* by cm_id.remote_id */
static u32 cm_conn_next;
static unsigned int cm_conns_number;

/** cm_conns_count() - how many there are, with those that are being made or ended */
unsigned int cm_conns_count(void)
{
	return cm_conns_number;
}

/** cm_msg_new() - a message to an id's peer, or NULL */
struct cm_msg *cm_msg_new(struct cm_id *id, enum cm_msg_type type)
{
	struct cm_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);

	if (!msg)
		return NULL;
	msg->type = type;
	msg->net = get_net(id->net);
	memcpy(msg->sgid, id->fn->gid, sizeof(msg->sgid));
	memcpy(msg->dgid, id->rgid, sizeof(msg->dgid));
	msg->local_id = id->local_id;
	msg->remote_id = id->remote_id;
	return msg;
}

/** cm_msg_private() - give it private data; the caller knows that there is room */
void cm_msg_private(struct cm_msg *msg, const void *data, u8 len)
{
	memcpy(msg->priv, data, len);
}

/** cm_msg_free() - the other end of cm_msg_new() */
void cm_msg_free(struct cm_msg *msg)
{
	if (msg)
		put_net(msg->net);
	kfree(msg);
}

/** cm_send() - a message that has nothing in it and awaits no answer */
void cm_send(struct cm_id *id, enum cm_msg_type type)
{
	struct cm_msg *msg = cm_msg_new(id, type);

	if (msg)
		cm_transport_send(msg);
}

/** cm_send_rej() - there will be no connection */
void cm_send_rej(struct cm_id *id, u8 reason, const void *data, u8 len)
{
	struct cm_msg *msg = cm_msg_new(id, CM_MSG_REJ);

	if (!msg)
		return;
	msg->reason = reason;
	cm_msg_private(msg, data, len);
	cm_transport_send(msg);
}

/** cm_timer_set() - cm_timer_work() does something in so many milliseconds */
void cm_timer_set(struct cm_id *id, unsigned int ms)
{
	unsigned long delay = msecs_to_jiffies(ms);

	id->armed = true;
	id->deadline = jiffies + delay;
	kref_get(&id->ref);
	/* If it was pending, it had a reference. */
	if (mod_delayed_work(cm_wq, &id->timer, delay))
		cm_id_put(id);
}

/* One that runs already finds that it is not armed. */
static void cm_timer_stop(struct cm_id *id)
{
	id->armed = false;
	if (cancel_delayed_work(&id->timer))
		cm_id_put(id);
}

/** cm_send_again() - the last message once more */
void cm_send_again(struct cm_id *id)
{
	struct cm_msg *msg = kmemdup(id->sent, sizeof(*msg), GFP_KERNEL);

	if (!msg)
		return;
	get_net(msg->net);
	cm_transport_send(msg);
}

/** cm_send_await() - a message that is sent again until cm_answered() */
void cm_send_await(struct cm_id *id, struct cm_msg *msg)
{
	cm_msg_free(id->sent);
	id->sent = msg;
	id->tries = READ_ONCE(cm_retries);
	cm_send_again(id);
	cm_timer_set(id, READ_ONCE(cm_response_timeout));
}

/** cm_answered() - no answer is awaited any more */
void cm_answered(struct cm_id *id)
{
	cm_timer_stop(id);
	cm_msg_free(id->sent);
	id->sent = NULL;
}

/**
 * cm_conn_open() - an id gets a connection, and a name for it
 * @id: the id, which has none.
 *
 * Return: 0 or -ENOMEM.
 */
int cm_conn_open(struct cm_id *id)
{
	if (xa_alloc_cyclic(&cm_conns, &id->local_id, id, XA_LIMIT(1, U32_MAX), &cm_conn_next,
			    GFP_KERNEL_ACCOUNT) < 0) {
		id->local_id = 0;
		return -ENOMEM;
	}
	cm_conns_number++;
	return 0;
}

/** cm_conn_know_remote() - how the peer names the connection */
void cm_conn_know_remote(struct cm_id *id, u32 remote_id)
{
	id->remote_id = remote_id;
	hash_add(cm_remotes, &id->remote_node, remote_id);
}

/** cm_conn_forget() - a connection, if there is one, has no names any more */
void cm_conn_forget(struct cm_id *id)
{
	if (!id->local_id)
		return;
	cm_answered(id);
	xa_erase(&cm_conns, id->local_id);
	hash_del(&id->remote_node);
	id->local_id = 0;
	id->remote_id = 0;
	cm_conns_number--;
}

/** cm_conn_end() - it is over: nothing more will come of it */
void cm_conn_end(struct cm_id *id)
{
	cm_conn_forget(id);
	id->state = CM_CLOSED;
}

/** cm_conn_timewait() - it was closed; when no packet is on its way it is over */
void cm_conn_timewait(struct cm_id *id)
{
	cm_answered(id);
	id->state = CM_TIMEWAIT;
	cm_timer_set(id, READ_ONCE(cm_timewait));
}

/** cm_conn_closed() - the peer agreed that it is closed, or does not answer */
void cm_conn_closed(struct cm_id *id, int status)
{
	cm_event_post(id, RDMA_CM_EVENT_DISCONNECTED, status, NULL);
	cm_conn_timewait(id);
}

/* What the peer is told when a program leaves without a word. */
static void cm_conn_leave(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		return cm_send_rej(id, IB_CM_REJ_TIMEOUT, NULL, 0);
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		return cm_send_rej(id, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0);
	case CM_ESTABLISHED:
		return cm_send(id, CM_MSG_DREQ);
	case CM_DREQ_RCVD:
		return cm_send(id, CM_MSG_DREP);
	case CM_SIDR_RCVD:
		cm_sidr_reject(id, NULL, 0);
		return;
	default:
		return;
	}
}

/** cm_conn_close() - end a connection, if there is one, and tell the peer */
void cm_conn_close(struct cm_id *id)
{
	if (!id->local_id)
		return;
	cm_conn_leave(id);
	cm_conn_end(id);
}

static bool cm_conn_is_with(const struct cm_id *id, const struct cm_msg *msg)
{
	return net_eq(id->net, msg->net) && !memcmp(id->rgid, msg->sgid, sizeof(id->rgid)) &&
	       !memcmp(id->fn->gid, msg->dgid, sizeof(msg->dgid));
}

/** cm_conn_find_remote() - the id whose peer names the connection as the message does */
struct cm_id *cm_conn_find_remote(const struct cm_msg *msg)
{
	struct cm_id *id;

	hash_for_each_possible(cm_remotes, id, remote_node, msg->local_id)
		if (id->remote_id == msg->local_id && cm_conn_is_with(id, msg))
			return id;
	return NULL;
}

/**
 * cm_conn_find() - the id that a message is for
 * @msg: the message. A peer that does not know our name says its own.
 *
 * Return: the id, or NULL.
 */
struct cm_id *cm_conn_find(const struct cm_msg *msg)
{
	struct cm_id *id;

	if (!msg->remote_id)
		return cm_conn_find_remote(msg);
	id = xa_load(&cm_conns, msg->remote_id);
	if (!id || !cm_conn_is_with(id, msg))
		return NULL;
	if (id->remote_id && msg->local_id && id->remote_id != msg->local_id)
		return NULL;
	return id;
}

/* Nobody answered, as often as it was sent. */
static void cm_give_up(struct cm_id *id)
{
	switch (id->state) {
	case CM_DREQ_SENT:
		return cm_conn_closed(id, -ETIMEDOUT);
	case CM_REQ_SENT:
	case CM_REP_SENT:
		cm_send_rej(id, IB_CM_REJ_TIMEOUT, NULL, 0);
		break;
	default:
		break;
	}
	cm_conn_end(id);
	cm_event_post(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
}

static void cm_timeout(struct cm_id *id)
{
	if (id->state == CM_TIMEWAIT) {
		cm_conn_end(id);
		cm_event_post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
	} else if (id->tries) {
		id->tries--;
		cm_send_again(id);
		cm_timer_set(id, READ_ONCE(cm_response_timeout));
	} else {
		cm_give_up(id);
	}
}

/** cm_timer_work() - the time of an id's timer has come */
void cm_timer_work(struct work_struct *work)
{
	struct cm_id *id = container_of(to_delayed_work(work), struct cm_id, timer);

	mutex_lock(&cm_lock);
	if (id->armed && time_after_eq(jiffies, id->deadline)) {
		id->armed = false;
		cm_timeout(id);
	}
	mutex_unlock(&cm_lock);
	cm_id_put(id);
}
