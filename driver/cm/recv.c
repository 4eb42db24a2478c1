// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a peer does with a connection: its messages, each in every state that it can
 * come in. One that comes in another was sent twice, or is late, and means nothing.
 */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

/** cm_reply() - answer a message that is for no id of ours */
void cm_reply(const struct cm_msg *msg, enum cm_msg_type type, u8 reason)
{
	struct cm_msg *reply = kzalloc(sizeof(*reply), GFP_KERNEL);

	if (!reply)
		return;
	reply->type = type;
	reply->net = get_net(msg->net);
	memcpy(reply->sgid, msg->dgid, sizeof(reply->sgid));
	memcpy(reply->dgid, msg->sgid, sizeof(reply->dgid));
	reply->local_id = msg->remote_id;
	reply->remote_id = msg->local_id;
	reply->reason = reason;
	cm_transport_send(reply);
}

/* The program has it, and takes its time. */
static void cm_recv_mra(struct cm_id *id, const struct cm_msg *msg)
{
	if (id->state == CM_REQ_SENT || id->state == CM_REP_SENT)
		cm_timer_set(id, CM_MRA_MS);
}

static void cm_recv_rej(struct cm_id *id, const struct cm_msg *msg)
{
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_conn_end(id);
		cm_event_post(id, RDMA_CM_EVENT_REJECTED, msg->reason, msg);
		break;
	/* The peer went before it had our RTU. */
	case CM_ESTABLISHED:
		cm_event_post(id, RDMA_CM_EVENT_REJECTED, msg->reason, msg);
		cm_conn_timewait(id);
		break;
	case CM_DREQ_SENT:
		cm_conn_closed(id, 0);
		break;
	default:
		break;
	}
}

static void cm_take_rep(struct cm_id *id, const struct cm_msg *msg)
{
	cm_answered(id);
	cm_conn_know_remote(id, msg->local_id);
	id->remote_qpn = msg->qpn;
	id->remote_psn = msg->psn;
	id->init_depth = msg->resp_res;
	id->resp_res = msg->init_depth;
	id->rnr_retry = msg->rnr_retry;
	id->state = CM_REP_RCVD;
	cm_event_post(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, msg);
}

static void cm_recv_rep(struct cm_id *id, const struct cm_msg *msg)
{
	switch (id->state) {
	case CM_REQ_SENT:
		return cm_take_rep(id, msg);
	case CM_REP_RCVD:
		return cm_send(id, CM_MSG_MRA);
	case CM_ESTABLISHED:
		return cm_send(id, CM_MSG_RTU);
	default:
		return;
	}
}

static void cm_recv_rtu(struct cm_id *id, const struct cm_msg *msg)
{
	if (id->state != CM_REP_SENT)
		return;
	cm_answered(id);
	id->state = CM_ESTABLISHED;
	cm_event_post(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

/* It is answered when the program agrees; one that asked for the same has agreed. */
static void cm_recv_dreq(struct cm_id *id, const struct cm_msg *msg)
{
	switch (id->state) {
	case CM_REP_SENT:
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
		cm_answered(id);
		id->state = CM_DREQ_RCVD;
		cm_event_post(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
		break;
	case CM_DREQ_SENT:
		cm_send(id, CM_MSG_DREP);
		cm_conn_closed(id, 0);
		break;
	case CM_TIMEWAIT:
		cm_send(id, CM_MSG_DREP);
		break;
	default:
		break;
	}
}

static void cm_recv_drep(struct cm_id *id, const struct cm_msg *msg)
{
	if (id->state == CM_DREQ_SENT)
		cm_conn_closed(id, 0);
}

/* For a connection that is over here. */
static void cm_recv_stray(const struct cm_msg *msg)
{
	if (msg->type == CM_MSG_REP)
		cm_reply(msg, CM_MSG_REJ, IB_CM_REJ_INVALID_COMM_ID);
	else if (msg->type == CM_MSG_DREQ)
		cm_reply(msg, CM_MSG_DREP, 0);
}

static void (* const cm_recv_fns[CM_MSG_TYPES])(struct cm_id *id, const struct cm_msg *msg) = {
	[CM_MSG_MRA]		= cm_recv_mra,
	[CM_MSG_REJ]		= cm_recv_rej,
	[CM_MSG_REP]		= cm_recv_rep,
	[CM_MSG_RTU]		= cm_recv_rtu,
	[CM_MSG_DREQ]		= cm_recv_dreq,
	[CM_MSG_DREP]		= cm_recv_drep,
	[CM_MSG_SIDR_REP]	= cm_recv_sidr_rep,
};

/** cm_recv() - a message came in; cm_lock is held */
void cm_recv(const struct cm_msg *msg)
{
	struct cm_id *id;

	if (!cm_recv_fns[msg->type])
		return cm_recv_request(msg);
	id = cm_conn_find(msg);
	if (id)
		cm_recv_fns[msg->type](id, msg);
	else
		cm_recv_stray(msg);
}
