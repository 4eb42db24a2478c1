// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes that a program gives its QP on the way to a state.
 */
#include <rdma/ib_verbs.h>

#include "cm.h"

#define CM_MAX_ACK_TIMEOUT	31

/* Before there is a connection, and of UD. */
static void cm_attr_plain(struct ib_uverbs_qp_attr *attr, struct cm_id *id)
{
	attr->port_num = CM_PORT;
	attr->qp_attr_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;
	if (id->qp_type != IB_QPT_UD) {
		attr->qp_attr_mask |= IB_QP_ACCESS_FLAGS;
		return;
	}
	if (!id->qkey)
		id->qkey = RDMA_UDP_QKEY;
	attr->qkey = id->qkey;
	attr->qp_attr_mask |= IB_QP_QKEY;
}

static void cm_attr_init(struct ib_uverbs_qp_attr *attr, const struct cm_id *id)
{
	attr->port_num = CM_PORT;
	attr->qp_attr_mask = IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT;
	attr->qp_access_flags = IB_ACCESS_REMOTE_WRITE;
	if (id->resp_res)
		attr->qp_access_flags |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
}

static void cm_attr_rtr(struct ib_uverbs_qp_attr *attr, const struct cm_id *id)
{
	attr->qp_attr_mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			     IB_QP_RQ_PSN;
	cm_ah_attr(&id->path, &attr->ah_attr);
	attr->path_mtu = id->path.mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->local_psn;
	if (id->qp_type == IB_QPT_RC || id->qp_type == IB_QPT_XRC_TGT) {
		attr->qp_attr_mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = id->resp_res;
	}
}

/* There and back, and what the device takes for its answer, as an exponent. */
static u8 cm_ack_timeout(const struct cm_id *id)
{
	u8 trip = id->path.life + 1;
	u8 delay = id->fn->attr.ack_delay;
	u8 longer = max(trip, delay);

	if (id->timeout_set)
		return id->timeout;
	if (min(trip, delay) + 1 >= longer)
		longer++;
	return min_t(u8, longer, CM_MAX_ACK_TIMEOUT);
}

static void cm_attr_rts(struct ib_uverbs_qp_attr *attr, const struct cm_id *id)
{
	attr->qp_attr_mask = IB_QP_STATE | IB_QP_SQ_PSN;
	attr->sq_psn = id->remote_psn;
	if (id->qp_type == IB_QPT_RC || id->qp_type == IB_QPT_XRC_INI) {
		attr->qp_attr_mask |= IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
		attr->retry_cnt = id->retry;
		attr->rnr_retry = id->rnr_retry;
		attr->max_rd_atomic = id->init_depth;
	}
	if (id->qp_type != IB_QPT_UC) {
		attr->qp_attr_mask |= IB_QP_TIMEOUT;
		attr->timeout = cm_ack_timeout(id);
	}
}

/* Does the connection know what its QP needs, for this state? */
static bool cm_attr_known(const struct cm_id *id, u32 qp_state)
{
	switch (id->state) {
	case CM_REQ_SENT:
		return qp_state == IB_QPS_INIT;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
		return qp_state == IB_QPS_INIT || qp_state == IB_QPS_RTR ||
		       qp_state == IB_QPS_RTS;
	default:
		return false;
	}
}

/** cm_cmd_init_qp_attr() - RDMA_USER_CM_CMD_INIT_QP_ATTR */
int cm_cmd_init_qp_attr(struct cm_call *call, struct cm_id *id)
{
	struct ib_uverbs_qp_attr *attr = &call->out.qp_attr;
	u32 state = call->in.init_qp_attr.qp_state;

	if (state > IB_QPS_ERR)
		return -EINVAL;
	attr->qp_state = state;
	if (id->qp_type == IB_QPT_UD || id->state < CM_REQ_SENT) {
		cm_attr_plain(attr, id);
		return 0;
	}
	if (!cm_attr_known(id, state))
		return -EINVAL;
	if (state == IB_QPS_INIT)
		cm_attr_init(attr, id);
	else if (state == IB_QPS_RTR)
		cm_attr_rtr(attr, id);
	else
		cm_attr_rts(attr, id);
	return 0;
}
