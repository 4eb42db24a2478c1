// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qp_attr.c: the attributes of queue pairs, changed and queried.
 */
#include "vhca_verbs.h"

/* The device has forgotten all WRs; so does the library. */
static void qp_reset(struct vhca_qp *qp)
{
	struct vhca_qp_dbr *dbr = qp->slot.record;

	vhca_qp_clean_cqs(qp);
	vhca_lock(&qp->rq.lock);
	vhca_lock(&qp->sq.lock);
	qp->rq.pi = 0;
	qp->rq.ci = 0;
	qp->sq.pi = 0;
	qp->sq.posted = 0;
	qp->sq.done = 0;
	__atomic_store_n(&qp->tell, false, __ATOMIC_RELAXED);
	__atomic_store_n(&dbr->rq_pi, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&dbr->sq_pi, 0, __ATOMIC_RELAXED);
	vhca_unlock(&qp->sq.lock);
	vhca_unlock(&qp->rq.lock);
}

/*
 * After a reset the indices start again and doorbells repeat values that the
 * device has seen. An empty one in between, before the device starts again too,
 * makes the next a change.
 */
static void qp_silence(struct vhca_qp *qp)
{
	vhca_lock(&qp->sq.lock);
	vhca_qp_silence(qp);
	vhca_unlock(&qp->sq.lock);
}

#define MODIFY_KNOWN	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | \
			 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | \
			 IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | \
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | \
			 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH | \
			 IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | \
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | \
			 IBV_QP_DEST_QPN)

/* What the kernel's narrower fields would cut off is refused here. */
static int check_modify(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_RATE_LIMIT)
		return EOPNOTSUPP;
	if (mask & ~MODIFY_KNOWN)
		return EINVAL;
	if (mask & IBV_QP_STATE && (unsigned int)attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && (unsigned int)attr->cur_qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU && (unsigned int)attr->path_mtu > IBV_MTU_4096)
		return EINVAL;
	return 0;
}

/* The kernel uses of this only what the mask names. */
static void attr_to_kernel(struct vhca_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	*to = (struct vhca_qp_attr) {
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qpn = from->dest_qp_num,
		.access_flags = from->qp_access_flags,
		.pkey_index = from->pkey_index,
		.state = (uint8_t)from->qp_state,
		.cur_state = (uint8_t)from->cur_qp_state,
		.path_mtu = (uint8_t)from->path_mtu,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.en_sqd_async_notify = from->en_sqd_async_notify,
	};
	if (mask & IBV_QP_AV)
		vhca_av_from_attr(&to->av, &from->ah_attr);
}

/*
 * Half of an XRC connection has no use for attributes of the other half. libibverbs
 * has always let users name them all the same, and perftest does.
 */
static int mask_for(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

VHCA_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vhca_modify_qp cmd = {
		.qpn = ibqp->qp_num,
		.mask = (uint32_t)mask_for(ibqp->qp_type, attr_mask),
	};
	bool reset = attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET &&
		     ibqp->qp_type != IBV_QPT_XRC_RECV;
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	err = check_modify(attr, attr_mask);
	if (err)
		return err;
	attr_to_kernel(&cmd.attr, attr, attr_mask);
	if (reset)
		qp_silence(qp);
	err = vhca_ioctl(ibqp->context, VHCA_IOC_MODIFY_QP, &cmd);
	/* There was no reset: a receive that met the silence is told of. */
	if (err && reset)
		vhca_qp_kick(qp, NULL);
	if (err)
		return err;
	if (attr_mask & IBV_QP_STATE)
		__atomic_store_n(&ibqp->state, attr->qp_state, __ATOMIC_RELAXED);
	if (reset)
		qp_reset(qp);
	return 0;
}

static void attr_from_kernel(struct ibv_qp_attr *to, const struct vhca_qp_attr *from)
{
	*to = (struct ibv_qp_attr) {
		.qp_state = (enum ibv_qp_state)from->state,
		.cur_qp_state = (enum ibv_qp_state)from->cur_state,
		.path_mtu = (enum ibv_mtu)from->path_mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qpn,
		.qp_access_flags = from->access_flags,
		.pkey_index = from->pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.sq_draining = from->sq_draining,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
	};
	vhca_av_to_attr(&from->av, &to->ah_attr);
}

static void fill_init_attr(const struct vhca_qp *qp, struct ibv_qp_init_attr *init)
{
	*init = (struct ibv_qp_init_attr) {
		.qp_context = qp->ibv.qp_context,
		.send_cq = qp->ibv.send_cq,
		.recv_cq = qp->ibv.recv_cq,
		.srq = qp->ibv.srq,
		.qp_type = qp->ibv.qp_type,
		.sq_sig_all = qp->sig_all,
	};
	vhca_qp_report_cap(qp, &init->cap);
}

/*
 * All attributes are returned, whichever the mask asks for. The state is what posting goes
 * by: one that another thread has changed meanwhile is newer than the kernel's answer.
 */
VHCA_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
			     struct ibv_qp_init_attr *init_attr)
{
	struct vhca_modify_qp cmd = { .qpn = ibqp->qp_num };
	enum ibv_qp_state state = __atomic_load_n(&ibqp->state, __ATOMIC_RELAXED);
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	(void)attr_mask;
	err = vhca_ioctl(ibqp->context, VHCA_IOC_QUERY_QP, &cmd);
	if (err)
		return err;
	attr_from_kernel(attr, &cmd.attr);
	vhca_qp_report_cap(qp, &attr->cap);
	fill_init_attr(qp, init_attr);
	__atomic_compare_exchange_n(&ibqp->state, &state, attr->qp_state, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return 0;
}

/* A payload is copied by memcpy(), which promises no order. */
VHCA_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
					   uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}
