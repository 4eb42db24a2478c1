// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qp.c: queue pairs, their making, their attributes and their end.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

/* A QP's geometry, from the capabilities that were asked for. */
struct geometry {
	uint32_t wqe_size;	/* bytes of the largest send WQE */
	uint32_t sq_shift;
	uint32_t rq_shift;
	uint32_t rq_sge_shift;
};

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int check_cap(const struct vhca_query_device *dev, const struct ibv_qp_cap *cap)
{
	if (cap->max_send_sge > dev->max_qp_send_sge ||
	    cap->max_recv_sge > dev->max_qp_recv_sge ||
	    cap->max_inline_data > dev->max_qp_inline ||
	    cap->max_send_wr > 1u << dev->max_qp_send_shift ||
	    cap->max_recv_wr > 1u << dev->max_qp_recv_shift)
		return EINVAL;
	return 0;
}

static int geometry_from_cap(struct geometry *geo, const struct vhca_query_device *dev,
			     const struct ibv_qp_cap *cap)
{
	uint32_t blocks;

	if (check_cap(dev, cap))
		return EINVAL;
	geo->wqe_size = vhca_send_wqe_size(cap->max_send_sge, cap->max_inline_data);
	blocks = geo->wqe_size / VHCA_WQEBB_SIZE;
	if (cap->max_send_wr)
		blocks *= cap->max_send_wr;
	geo->sq_shift = vhca_log2_up(blocks);
	geo->rq_shift = vhca_log2_up(cap->max_recv_wr);
	geo->rq_sge_shift = vhca_log2_up(cap->max_recv_sge);
	return geo->sq_shift > dev->max_qp_send_shift ? EINVAL : 0;
}

static void sq_init(struct vhca_sq *sq, const struct geometry *geo,
		    const struct vhca_query_device *dev, const struct ibv_qp_cap *cap)
{
	sq->size = VHCA_WQEBB_SIZE << geo->sq_shift;
	sq->max_wr = cap->max_send_wr ? sq->size / geo->wqe_size : 0;
	sq->max_sge = min_u32(dev->max_qp_send_sge,
			      (geo->wqe_size - VHCA_SEND_HEAD_SIZE) /
			      sizeof(struct vhca_wqe_data));
	sq->max_inline = min_u32(dev->max_qp_inline,
				 geo->wqe_size - VHCA_SEND_HEAD_SIZE -
				 sizeof(struct vhca_wqe_inline));
}

static void rq_init(struct vhca_rq *rq, const struct geometry *geo,
		    const struct vhca_query_device *dev, const struct ibv_qp_cap *cap)
{
	rq->sge_shift = geo->rq_sge_shift;
	rq->mask = (1u << geo->rq_shift) - 1;
	rq->max_wr = cap->max_recv_wr ? 1u << geo->rq_shift : 0;
	rq->max_sge = min_u32(dev->max_qp_recv_sge, 1u << geo->rq_sge_shift);
}

static void qp_report_cap(const struct vhca_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_wr;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_recv_sge = qp->rq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
}

static struct vhca_qp *qp_alloc(const struct geometry *geo, const struct vhca_query_device *dev,
				const struct ibv_qp_cap *cap)
{
	struct vhca_qp *qp;

	if (posix_memalign((void **)&qp, __alignof__(*qp), sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	sq_init(&qp->sq, geo, dev, cap);
	rq_init(&qp->rq, geo, dev, cap);
	qp->sq.info = calloc(1u << geo->sq_shift, sizeof(*qp->sq.info));
	qp->rq.wr_id = calloc(1u << geo->rq_shift, sizeof(*qp->rq.wr_id));
	if (qp->sq.info && qp->rq.wr_id)
		return qp;
	free(qp->sq.info);
	free(qp->rq.wr_id);
	free(qp);
	return NULL;
}

static void qp_free(struct vhca_qp *qp)
{
	free(qp->sq.info);
	free(qp->rq.wr_id);
	free(qp);
}

static size_t qp_buf_size(const struct vhca_qp *qp)
{
	return qp->sq.size + (sizeof(struct vhca_wqe_data) << qp->rq.sge_shift) *
			     (qp->rq.mask + 1);
}

static int qp_map(struct vhca_qp *qp, struct ibv_context *context,
		  const struct vhca_create_qp *cmd)
{
	int err = vhca_buf_map(&qp->buf, context, cmd->buf_offset, cmd->buf_size);

	if (err)
		return err;
	qp->sq.buf = qp->buf.addr;
	qp->rq.buf = (void *)(qp->sq.buf + qp->sq.size);
	return 0;
}

static void qp_destroy_in_kernel(struct ibv_context *context, uint32_t qpn)
{
	struct vhca_destroy_qp cmd = { .qpn = qpn };

	vhca_ioctl(context, VHCA_IOC_DESTROY_QP, &cmd);
}

static void qp_init_ibv(struct vhca_qp *qp, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr, uint32_t qpn)
{
	qp->sig_all = attr->sq_sig_all;
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.handle = qpn;
	qp->ibv.qp_num = qpn;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = attr->qp_type;
}

/* The context's qp_lock is held. */
static int qp_setup(struct vhca_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
		    const struct geometry *geo)
{
	struct vhca_create_qp cmd = {
		.cookie = (uintptr_t)qp,
		.type = VHCA_QPT_RC,
		.pd = pd->handle,
		.send_cqn = attr->send_cq->handle,
		.recv_cqn = attr->recv_cq->handle,
		.uar = vhca_slot_uar(&qp->slot),
		.slot = qp->slot.index,
		.sq_shift = (uint8_t)geo->sq_shift,
		.rq_shift = (uint8_t)geo->rq_shift,
		.rq_sge_shift = (uint8_t)geo->rq_sge_shift,
		.buf_addr = (uintptr_t)qp->buf.addr,
	};
	int err;

	err = vhca_ioctl(pd->context, VHCA_IOC_CREATE_QP, &cmd);
	if (err)
		return err;
	err = qp_map(qp, pd->context, &cmd);
	if (err)
		goto err_destroy;
	qp_init_ibv(qp, pd, attr, cmd.qpn);
	err = vhca_qp_remember(to_vctx(pd->context), qp);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	qp_destroy_in_kernel(pd->context, cmd.qpn);
	return err;
}

static int check_init_attr(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (attr->qp_type != IBV_QPT_RC || attr->srq)
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context)
		return EINVAL;
	return 0;
}

VHCA_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct vhca_context *ctx = to_vctx(pd->context);
	struct geometry geo;
	struct vhca_qp *qp;
	int err;

	err = check_init_attr(pd, attr);
	if (!err)
		err = geometry_from_cap(&geo, &ctx->caps, &attr->cap);
	if (err)
		return vhca_null(err);
	qp = qp_alloc(&geo, &ctx->caps, &attr->cap);
	if (!qp)
		return vhca_null(ENOMEM);
	err = vhca_slot_alloc(ctx, &qp->slot);
	if (err)
		goto err_free;
	err = vhca_buf_ask(&qp->buf, pd, qp_buf_size(qp), VHCA_RESOURCE_QP);
	if (err)
		goto err_slot;
	qp->sq.lock.single = vhca_buf_single(&qp->buf);
	qp->rq.lock.single = vhca_buf_single(&qp->buf);
	pthread_mutex_lock(&ctx->qp_lock);
	err = qp_setup(qp, pd, attr, &geo);
	pthread_mutex_unlock(&ctx->qp_lock);
	if (err)
		goto err_buf;
	qp_report_cap(qp, &attr->cap);
	return &qp->ibv;

err_buf:
	vhca_buf_release(&qp->buf);
err_slot:
	vhca_slot_free(ctx, &qp->slot);
err_free:
	qp_free(qp);
	return vhca_null(err);
}

static void qp_clean_cqs(struct vhca_qp *qp)
{
	vhca_cq_clean(to_vcq(qp->ibv.send_cq), qp);
	if (qp->ibv.recv_cq != qp->ibv.send_cq)
		vhca_cq_clean(to_vcq(qp->ibv.recv_cq), qp);
}

VHCA_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct vhca_context *ctx = to_vctx(ibqp->context);
	struct vhca_destroy_qp cmd = { .qpn = ibqp->qp_num };
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	pthread_mutex_lock(&ctx->qp_lock);
	err = vhca_ioctl(ibqp->context, VHCA_IOC_DESTROY_QP, &cmd);
	if (!err) {
		qp_clean_cqs(qp);
		vhca_qp_forget(ctx, qp);
	}
	pthread_mutex_unlock(&ctx->qp_lock);
	if (err)
		return err;
	vhca_acks_wait(&qp->async_acks, cmd.async_events);
	vhca_buf_release(&qp->buf);
	vhca_slot_free(ctx, &qp->slot);
	qp_free(qp);
	return 0;
}

/* The device has forgotten all WRs; so does the library. */
static void qp_reset(struct vhca_qp *qp)
{
	struct vhca_qp_dbr *dbr = qp->slot.record;

	qp_clean_cqs(qp);
	vhca_lock(&qp->rq.lock);
	vhca_lock(&qp->sq.lock);
	qp->rq.pi = 0;
	qp->rq.ci = 0;
	qp->sq.pi = 0;
	qp->sq.posted = 0;
	qp->sq.done = 0;
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
	vhca_slot_ring(&qp->slot, 0);
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

VHCA_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vhca_modify_qp cmd = { .qpn = ibqp->qp_num, .mask = (uint32_t)attr_mask };
	bool reset = attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	err = check_modify(attr, attr_mask);
	if (err)
		return err;
	attr_to_kernel(&cmd.attr, attr, attr_mask);
	if (reset)
		qp_silence(qp);
	err = vhca_ioctl(ibqp->context, VHCA_IOC_MODIFY_QP, &cmd);
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
		.qp_type = qp->ibv.qp_type,
		.sq_sig_all = qp->sig_all,
	};
	qp_report_cap(qp, &init->cap);
}

/* All attributes are returned, whichever the mask asks for. */
VHCA_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
			     struct ibv_qp_init_attr *init_attr)
{
	struct vhca_modify_qp cmd = { .qpn = ibqp->qp_num };
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	(void)attr_mask;
	err = vhca_ioctl(ibqp->context, VHCA_IOC_QUERY_QP, &cmd);
	if (err)
		return err;
	attr_from_kernel(attr, &cmd.attr);
	qp_report_cap(qp, &attr->cap);
	fill_init_attr(qp, init_attr);
	__atomic_store_n(&ibqp->state, attr->qp_state, __ATOMIC_RELAXED);
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
