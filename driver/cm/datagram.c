// SPDX-License-Identifier: GPL-2.0-only
/*
 * UD: a program asks which QP a service has, and with which Q_Key (SIDR). There is no
 * connection, but there are names to tell questions apart.
 */
#include <rdma/ib_verbs.h>

#include "cm.h"

static u8 cm_sidr_req_private_max(const struct cm_id *id)
{
	return IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE -
	       (id->dst.ss_family == AF_IB ? 0 : CM_IP_HEADER);
}

/** cm_sidr_connect() - ask; errors as cm_cmd_connect() */
int cm_sidr_connect(struct cm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct cm_msg *msg;
	int ret;

	if (param->private_data_len > cm_sidr_req_private_max(id))
		return -EINVAL;
	ret = cm_conn_open(id);
	if (ret)
		return ret;
	msg = cm_msg_new(id, CM_MSG_SIDR_REQ);
	if (!msg) {
		cm_conn_forget(id);
		return -ENOMEM;
	}
	msg->service_id = cm_service_id(id, &id->dst);
	msg->src = id->src;
	msg->dst = id->dst;
	cm_msg_private(msg, param->private_data, param->private_data_len);
	id->state = CM_SIDR_SENT;
	cm_send_await(id, msg);
	return 0;
}

/* It stays, for a question that is repeated as the answer was lost. */
static void cm_sidr_answer(struct cm_id *id, struct cm_msg *msg)
{
	id->sent = msg;
	id->state = CM_SIDR_DONE;
	cm_send_again(id);
}

static struct cm_msg *cm_sidr_rep(struct cm_id *id, u8 status, const void *data, size_t len)
{
	struct cm_msg *msg;

	if (id->state != CM_SIDR_RCVD || len > IB_CM_SIDR_REP_PRIVATE_DATA_SIZE)
		return ERR_PTR(-EINVAL);
	msg = cm_msg_new(id, CM_MSG_SIDR_REP);
	if (!msg)
		return ERR_PTR(-ENOMEM);
	msg->reason = status;
	cm_msg_private(msg, data, len);
	return msg;
}

/** cm_sidr_accept() - answer with a QP; errors as cm_cmd_accept() */
int cm_sidr_accept(struct cm_id *id, const struct rdma_ucm_conn_param *param)
{
	u32 qkey = id->src.ss_family == AF_IB && param->qkey ? param->qkey : RDMA_UDP_QKEY;
	struct cm_msg *msg;
	int ret;

	msg = cm_sidr_rep(id, IB_SIDR_SUCCESS, param->private_data, param->private_data_len);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	ret = cm_set_qkey(id, qkey);
	if (ret) {
		cm_msg_free(msg);
		return ret;
	}
	msg->qpn = param->qp_num & 0xffffff;
	msg->qkey = qkey;
	cm_sidr_answer(id, msg);
	return 0;
}

/** cm_sidr_reject() - answer without one; errors as cm_cmd_reject() */
int cm_sidr_reject(struct cm_id *id, const void *data, size_t len)
{
	struct cm_msg *msg = cm_sidr_rep(id, IB_SIDR_REJECT, data, len);

	if (IS_ERR(msg))
		return PTR_ERR(msg);
	cm_sidr_answer(id, msg);
	return 0;
}

/** cm_recv_sidr_rep() - the answer came in; cm_lock is held */
void cm_recv_sidr_rep(struct cm_id *id, const struct cm_msg *msg)
{
	enum rdma_cm_event_type type = RDMA_CM_EVENT_ESTABLISHED;
	int status = msg->reason;

	if (id->state != CM_SIDR_SENT)
		return;
	if (status) {
		type = RDMA_CM_EVENT_UNREACHABLE;
	} else {
		status = cm_set_qkey(id, msg->qkey);
		if (status)
			type = RDMA_CM_EVENT_ADDR_ERROR;
	}
	cm_conn_end(id);
	cm_event_post(id, type, status, msg);
}
