// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program does with a connection: connect, accept, reject, disconnect, notify.
 * What its peer does is in recv.c.
 */
#include <rdma/ib_verbs.h>

#include "cm.h"

/* The most that the fields of a message hold: three bits. */
#define CM_MAX_RETRY		7

static u8 cm_req_private_max(const struct cm_id *id)
{
	return IB_CM_REQ_PRIVATE_DATA_SIZE - (id->dst.ss_family == AF_IB ? 0 : CM_IP_HEADER);
}

/* The type of the QP that one of this type is connected to. */
static int cm_peer_qp_type(u8 qp_type)
{
	switch (qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
		return qp_type;
	case IB_QPT_XRC_INI:
		return IB_QPT_XRC_TGT;
	default:
		return -EINVAL;
	}
}

/* What is in a REQ and in a REP. */
static void cm_msg_conn(struct cm_msg *msg, struct cm_id *id,
			const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece)
{
	id->resp_res = param->responder_resources;
	id->init_depth = param->initiator_depth;
	msg->qpn = param->qp_num & 0xffffff;
	msg->psn = id->local_psn;
	msg->resp_res = param->responder_resources;
	msg->init_depth = param->initiator_depth;
	msg->flow_control = param->flow_control;
	msg->rnr_retry = min_t(u8, param->rnr_retry_count, CM_MAX_RETRY);
	msg->srq = !!param->srq;
	msg->ece_vendor = ece->vendor_id;
	msg->ece_attr = ece->attr_mod;
	cm_msg_private(msg, param->private_data, param->private_data_len);
}

static void cm_send_req(struct cm_id *id, struct cm_msg *msg, const struct rdma_ucm_connect *arg)
{
	cm_msg_conn(msg, id, &arg->conn_param, &arg->ece);
	id->retry = min_t(u8, arg->conn_param.retry_count, CM_MAX_RETRY);
	id->rnr_retry = msg->rnr_retry;
	msg->retry = id->retry;
	msg->service_id = cm_service_id(id, &id->dst);
	msg->src = id->src;
	msg->dst = id->dst;
	msg->path = id->path;
	msg->qp_type = cm_peer_qp_type(id->qp_type);
	id->state = CM_REQ_SENT;
	cm_send_await(id, msg);
}

static int cm_connect(struct cm_id *id, const struct rdma_ucm_connect *arg)
{
	struct cm_msg *msg;
	int ret;

	ret = cm_peer_qp_type(id->qp_type);
	if (ret < 0 || arg->conn_param.private_data_len > cm_req_private_max(id))
		return -EINVAL;
	ret = cm_conn_open(id);
	if (ret)
		return ret;
	msg = cm_msg_new(id, CM_MSG_REQ);
	if (!msg) {
		cm_conn_forget(id);
		return -ENOMEM;
	}
	cm_send_req(id, msg, arg);
	return 0;
}

/** cm_cmd_connect() - RDMA_USER_CM_CMD_CONNECT */
int cm_cmd_connect(struct cm_call *call, struct cm_id *id)
{
	const struct rdma_ucm_connect *arg = &call->in.connect;

	if (!arg->conn_param.valid || id->state != CM_ROUTE_RESOLVED)
		return -EINVAL;
	if (id->qp_type == IB_QPT_UD)
		return cm_sidr_connect(id, &arg->conn_param);
	return cm_connect(id, arg);
}

/* The passive side. */
static int cm_accept(struct cm_id *id, const struct rdma_ucm_accept *arg)
{
	struct cm_msg *msg;

	if (id->state != CM_REQ_RCVD)
		return -EINVAL;
	/* Whoever accepts so can do nothing better, and the peer is not to wait. */
	if (arg->conn_param.private_data_len > IB_CM_REP_PRIVATE_DATA_SIZE) {
		cm_conn_close(id);
		return -EINVAL;
	}
	msg = cm_msg_new(id, CM_MSG_REP);
	if (!msg)
		return -ENOMEM;
	cm_msg_conn(msg, id, &arg->conn_param, &arg->ece);
	id->state = CM_REP_SENT;
	cm_send_await(id, msg);
	return 0;
}

/* The active side, which saw the REP. */
static int cm_confirm(struct cm_id *id)
{
	if (id->state != CM_REP_RCVD)
		return -EINVAL;
	id->state = CM_ESTABLISHED;
	cm_send(id, CM_MSG_RTU);
	return 0;
}

/** cm_cmd_accept() - RDMA_USER_CM_CMD_ACCEPT */
int cm_cmd_accept(struct cm_call *call, struct cm_id *id)
{
	const struct rdma_ucm_accept *arg = &call->in.accept;
	int ret;

	if (!arg->conn_param.valid)
		return cm_confirm(id);
	if (id->qp_type == IB_QPT_UD)
		ret = cm_sidr_accept(id, &arg->conn_param);
	else
		ret = cm_accept(id, arg);
	if (!ret)
		id->uid = arg->uid;
	return ret;
}

/** cm_cmd_reject() - RDMA_USER_CM_CMD_REJECT */
int cm_cmd_reject(struct cm_call *call, struct cm_id *id)
{
	const struct rdma_ucm_reject *arg = &call->in.reject;
	u8 reason = arg->reason ?: IB_CM_REJ_CONSUMER_DEFINED;

	if (reason != IB_CM_REJ_CONSUMER_DEFINED &&
	    reason != IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return -EINVAL;
	if (id->qp_type == IB_QPT_UD)
		return cm_sidr_reject(id, arg->private_data, arg->private_data_len);
	if (arg->private_data_len > IB_CM_REJ_PRIVATE_DATA_SIZE)
		return -EINVAL;
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_send_rej(id, reason, arg->private_data, arg->private_data_len);
		cm_conn_end(id);
		return 0;
	default:
		return -EINVAL;
	}
}

/**
 * cm_cmd_disconnect() - RDMA_USER_CM_CMD_DISCONNECT
 * @call: the command.
 * @id: the id.
 *
 * Either side may be first, or both at a time. Where there was a connection, or will be
 * one, and there is nothing to close, that is no error.
 *
 * Return: 0; -EINVAL: there was never a connection; or -ENOMEM.
 */
int cm_cmd_disconnect(struct cm_call *call, struct cm_id *id)
{
	struct cm_msg *msg;

	if (id->state < CM_REQ_SENT)
		return -EINVAL;
	if (id->state == CM_DREQ_RCVD) {
		cm_send(id, CM_MSG_DREP);
		cm_conn_timewait(id);
	} else if (id->state == CM_ESTABLISHED) {
		msg = cm_msg_new(id, CM_MSG_DREQ);
		if (!msg)
			return -ENOMEM;
		id->state = CM_DREQ_SENT;
		cm_send_await(id, msg);
	}
	return 0;
}

/** cm_cmd_notify() - RDMA_USER_CM_CMD_NOTIFY: the QP heard of its peer before we did */
int cm_cmd_notify(struct cm_call *call, struct cm_id *id)
{
	if (call->in.notify.event != IB_EVENT_COMM_EST)
		return -EINVAL;
	if (id->state == CM_ESTABLISHED)
		return -EISCONN;
	if (id->state != CM_REP_SENT)
		return -EINVAL;
	cm_answered(id);
	id->state = CM_ESTABLISHED;
	cm_event_post(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	return 0;
}
