// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners: the requests that come to them, and the ids that they become.
 */
#include <rdma/ib_verbs.h>

#include "cm.h"

/** cm_cmd_listen() - RDMA_USER_CM_CMD_LISTEN */
int cm_cmd_listen(struct cm_call *call, struct cm_id *id)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	u32 backlog = call->in.listen.backlog;
	int ret;

	if (id->state == CM_IDLE) {
		ret = cm_bind_addr(id, &any);
		if (ret)
			return ret;
	}
	if (id->state != CM_BOUND)
		return -EINVAL;
	ret = cm_port_keep(id);
	if (ret)
		return ret;
	id->backlog = backlog && backlog <= CM_MAX_BACKLOG ? backlog : CM_MAX_BACKLOG;
	id->state = CM_LISTEN;
	return 0;
}

/* There is no room for it, or nobody whom it is for. */
static void cm_refuse(const struct cm_msg *msg, bool listens)
{
	if (msg->type == CM_MSG_SIDR_REQ)
		cm_reply(msg, CM_MSG_SIDR_REP, listens ? IB_SIDR_REJECT : IB_SIDR_UNSUPPORTED);
	else
		cm_reply(msg, CM_MSG_REJ, listens ? IB_CM_REJ_CONSUMER_DEFINED :
						    IB_CM_REJ_INVALID_SERVICE_ID);
}

/* The path, as it is from this end. */
static void cm_path_turn(struct cm_path *path, const struct cm_path *far)
{
	*path = *far;
	memcpy(path->sgid, far->dgid, sizeof(path->sgid));
	memcpy(path->dgid, far->sgid, sizeof(path->dgid));
	path->slid = far->dlid;
	path->dlid = far->slid;
}

static void cm_child_conn(struct cm_id *child, const struct cm_msg *msg)
{
	child->state = CM_REQ_RCVD;
	child->has_path = true;
	cm_path_turn(&child->path, &msg->path);
	child->remote_qpn = msg->qpn;
	child->remote_psn = msg->psn;
	child->init_depth = msg->resp_res;
	child->resp_res = msg->init_depth;
	child->retry = msg->retry;
	child->rnr_retry = msg->rnr_retry;
}

static void cm_child_fill(struct cm_id *child, struct cm_fn *fn, const struct cm_msg *msg)
{
	child->src = msg->dst;
	child->dst = msg->src;
	memcpy(child->rgid, msg->sgid, sizeof(child->rgid));
	cm_id_attach(child, fn);
	if (msg->type == CM_MSG_SIDR_REQ)
		child->state = CM_SIDR_RCVD;
	else
		cm_child_conn(child, msg);
}

/* What cannot be done for want of memory is as if the request had been lost. */
static void cm_child_new(struct cm_id *listener, struct cm_fn *fn, const struct cm_msg *msg)
{
	u8 qp_type = msg->type == CM_MSG_SIDR_REQ ? IB_QPT_UD : msg->qp_type;
	struct cm_id *child;

	child = cm_id_new(listener->file, listener->net, listener->ps, qp_type);
	if (!child)
		return;
	if (cm_conn_open(child))
		goto err;
	cm_child_fill(child, fn, msg);
	cm_conn_know_remote(child, msg->local_id);
	if (!cm_event_request(listener, child, msg))
		return;
	cm_conn_end(child);
err:
	cm_id_destroy(child);
}

/* A request that came before: its answer was lost, or is not there yet. */
static void cm_request_again(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_RCVD:
		return cm_send(id, CM_MSG_MRA);
	case CM_REP_SENT:
	case CM_SIDR_DONE:
		return cm_send_again(id);
	default:
		return;
	}
}

static bool cm_listener_takes(const struct cm_id *listener, const struct cm_msg *msg)
{
	u8 qp_type = msg->type == CM_MSG_SIDR_REQ ? IB_QPT_UD : msg->qp_type;

	return !listener->qp_type || listener->qp_type == qp_type;
}

/** cm_recv_request() - a REQ or SIDR_REQ came in; cm_lock is held */
void cm_recv_request(const struct cm_msg *msg)
{
	struct cm_fn *fn = cm_fn_by_gid(msg->dgid);
	struct cm_id *id = cm_conn_find_remote(msg);

	if (id)
		return cm_request_again(id);
	id = cm_port_listener(msg, fn);
	if (!id || !cm_listener_takes(id, msg))
		return cm_refuse(msg, id);
	/* A full backlog may have room when the request comes again. */
	if (id->backlog)
		cm_child_new(id, fn, msg);
}
