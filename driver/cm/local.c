// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transport between functions of this machine: a list, and who works it off.
 *
 * A message goes from a port that is up to a port that is up, or it is lost. To show
 * what a lossy transport does, it loses some on demand.
 */
#include <linux/slab.h>

#include "cm.h"

const char * const cm_msg_names[CM_MSG_TYPES] = {
	"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP",
};

/* If that many wait, whoever sends is too fast: more are lost. */
#define CM_MAX_MESSAGES		16384

static void cm_deliver(struct work_struct *work);

/* cm_lock is held. */
static LIST_HEAD(cm_messages);
static unsigned int cm_messages_number;
static unsigned int cm_drops_left[CM_MSG_TYPES];
static DECLARE_WORK(cm_deliver_work, cm_deliver);

/** cm_messages_count() - how many are on their way; cm_lock is held */
unsigned int cm_messages_count(void)
{
	return cm_messages_number;
}

/** cm_drops() - how many messages of a type are still to be lost; cm_lock is held */
unsigned int cm_drops(enum cm_msg_type type)
{
	return cm_drops_left[type];
}

/** cm_drop() - lose the next @n messages of a type; -EINVAL: there is none of that name */
int cm_drop(const char *name, unsigned int n)
{
	int type = match_string(cm_msg_names, CM_MSG_TYPES, name);

	if (type < 0)
		return -EINVAL;
	cm_drops_left[type] = n;
	return 0;
}

static bool cm_lost(const struct cm_msg *msg)
{
	if (!cm_drops_left[msg->type])
		return false;
	cm_drops_left[msg->type]--;
	return true;
}

static bool cm_gid_active(const u8 *gid)
{
	struct cm_fn *fn = cm_fn_by_gid(gid);
	struct vhca_client_port port;

	return fn && cm_fn_active(fn, &port);
}

/**
 * cm_transport_send() - see proto.h
 * @msg: the message; it is the transport's now. cm_lock is held.
 */
void cm_transport_send(struct cm_msg *msg)
{
	if (cm_lost(msg) || cm_messages_number == CM_MAX_MESSAGES ||
	    !cm_gid_active(msg->sgid)) {
		cm_msg_free(msg);
		return;
	}
	list_add_tail(&msg->node, &cm_messages);
	cm_messages_number++;
	queue_work(cm_wq, &cm_deliver_work);
}

/* The lock is given back between messages. */
static bool cm_deliver_one(void)
{
	struct cm_msg *msg;

	mutex_lock(&cm_lock);
	msg = list_first_entry_or_null(&cm_messages, struct cm_msg, node);
	if (msg) {
		list_del(&msg->node);
		cm_messages_number--;
		if (cm_gid_active(msg->dgid))
			cm_recv(msg);
		cm_msg_free(msg);
	}
	mutex_unlock(&cm_lock);
	return msg;
}

static void cm_deliver(struct work_struct *work)
{
	while (cm_deliver_one())
		cond_resched();
}
