// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qp.c: queue pairs, their making and their end.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#define INIT_ATTR_KNOWN	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | \
			 IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* A QP's geometry, from the capabilities that were asked for. */
struct geometry {
	enum ibv_qp_type type;
	bool has_sq;
	bool has_rq;
	uint8_t flags;		/* VHCA_QP_F_* */
	uint32_t wqe_size;	/* bytes of the largest send WQE */
	uint32_t sq_shift;
	uint32_t rq_shift;
	uint32_t rq_sge_shift;
};

static int sq_geometry(struct geometry *geo, const struct vhca_query_device *dev,
		       const struct ibv_qp_cap *cap)
{
	uint32_t blocks;

	if (cap->max_send_sge > dev->max_qp_send_sge ||
	    cap->max_inline_data > dev->max_qp_inline ||
	    cap->max_send_wr > 1u << dev->max_qp_send_shift)
		return EINVAL;
	geo->wqe_size = vhca_send_wqe_size(geo->type, cap->max_send_sge, cap->max_inline_data);
	blocks = geo->wqe_size / VHCA_WQEBB_SIZE;
	if (cap->max_send_wr)
		blocks *= cap->max_send_wr;
	geo->sq_shift = vhca_log2_up(blocks);
	return geo->sq_shift > dev->max_qp_send_shift ? EINVAL : 0;
}

/* Where WQEs are signed, a receive WQE begins with a head. */
static uint32_t rq_heads(const struct geometry *geo)
{
	return geo->flags & VHCA_QP_F_SIGNATURE ? 1 : 0;
}

static int rq_geometry(struct geometry *geo, const struct vhca_query_device *dev,
		       const struct ibv_qp_cap *cap)
{
	if (cap->max_recv_sge > dev->max_qp_recv_sge ||
	    cap->max_recv_wr > 1u << dev->max_qp_recv_shift)
		return EINVAL;
	geo->rq_shift = vhca_log2_up(cap->max_recv_wr);
	geo->rq_sge_shift = vhca_log2_up(cap->max_recv_sge + rq_heads(geo));
	return 0;
}

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/* Of the options those that such a QP can have. */
static uint8_t option_flags(const struct geometry *geo, uint8_t flags)
{
	if (!geo->has_sq)
		return 0;
	/* Not datagrams: with their GRH they are too long. */
	if (!geo->has_rq || geo->type == IBV_QPT_UD)
		flags &= (uint8_t)~VHCA_QP_F_SCATTER_CQE;
	return flags;
}

/* What is asked for of a queue that the QP does not have is not looked at. */
static int geometry_from_attr(struct geometry *geo, const struct vhca_context *ctx,
			      const struct ibv_qp_init_attr_ex *attr)
{
	const struct vhca_query_device *dev = &ctx->caps;
	int err = 0;

	*geo = (struct geometry) {
		.type = attr->qp_type,
		.has_sq = attr->qp_type != IBV_QPT_XRC_RECV,
		.has_rq = !attr->srq && !is_xrc(attr->qp_type),
	};
	geo->flags = option_flags(geo, ctx->qp_flags);
	if (attr->create_flags)
		geo->flags |= VHCA_QP_F_BLOCK_LOOPBACK;
	if (geo->has_sq)
		err = sq_geometry(geo, dev, &attr->cap);
	if (!err && geo->has_rq)
		err = rq_geometry(geo, dev, &attr->cap);
	return err;
}

static int sq_init(struct vhca_sq *sq, const struct geometry *geo,
		   const struct vhca_query_device *dev, const struct ibv_qp_cap *cap)
{
	uint32_t head = vhca_send_head_size(geo->type);

	sq->size = VHCA_WQEBB_SIZE << geo->sq_shift;
	sq->max_wr = cap->max_send_wr ? sq->size / geo->wqe_size : 0;
	sq->max_sge = vhca_min(dev->max_qp_send_sge,
			       (geo->wqe_size - head) / sizeof(struct vhca_wqe_data));
	sq->max_inline = vhca_min(dev->max_qp_inline,
				  geo->wqe_size - head - sizeof(struct vhca_wqe_inline));
	sq->dest_segs = vhca_send_dest_segs(geo->type);
	sq->info = calloc(1u << geo->sq_shift, sizeof(*sq->info));
	return sq->info ? 0 : ENOMEM;
}

static int rq_init(struct vhca_rq *rq, const struct geometry *geo,
		   const struct vhca_query_device *dev, const struct ibv_qp_cap *cap)
{
	rq->sge_shift = geo->rq_sge_shift;
	rq->mask = (1u << geo->rq_shift) - 1;
	rq->max_wr = cap->max_recv_wr ? 1u << geo->rq_shift : 0;
	rq->heads = rq_heads(geo);
	rq->max_sge = vhca_min(dev->max_qp_recv_sge, (1u << geo->rq_sge_shift) - rq->heads);
	rq->wr_id = calloc(1u << geo->rq_shift, sizeof(*rq->wr_id));
	return rq->wr_id ? 0 : ENOMEM;
}

void vhca_qp_report_cap(const struct vhca_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_wr;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_recv_sge = qp->rq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
}

static void qp_free(struct vhca_qp *qp)
{
	free(qp->wr);
	free(qp->sq.info);
	free(qp->rq.wr_id);
	free(qp);
}

static struct vhca_qp *qp_alloc(const struct geometry *geo, const struct vhca_query_device *dev,
				const struct ibv_qp_cap *cap)
{
	struct vhca_qp *qp;
	int err = 0;

	if (posix_memalign((void **)&qp, __alignof__(*qp), sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	if (geo->has_sq)
		err = sq_init(&qp->sq, geo, dev, cap);
	if (!err && geo->has_rq)
		err = rq_init(&qp->rq, geo, dev, cap);
	if (!err)
		return qp;
	qp_free(qp);
	return NULL;
}

static size_t qp_buf_size(const struct vhca_qp *qp, const struct geometry *geo)
{
	size_t rq = (sizeof(struct vhca_wqe_data) << geo->rq_sge_shift) << geo->rq_shift;

	return qp->sq.size + (geo->has_rq ? rq : 0);
}

static int qp_map(struct vhca_qp *qp, struct ibv_context *context, const struct geometry *geo,
		  const struct vhca_create_qp *cmd)
{
	int err = vhca_buf_map(&qp->buf, context, cmd->buf_offset, cmd->buf_size);

	if (err)
		return err;
	if (geo->has_sq)
		qp->sq.buf = qp->buf.addr;
	if (geo->has_rq)
		qp->rq.buf = (void *)(qp->sq.buf + qp->sq.size);
	return 0;
}

static void qp_destroy_in_kernel(struct ibv_context *context, uint32_t qpn)
{
	struct vhca_destroy_qp cmd = { .qpn = qpn };

	vhca_ioctl(context, VHCA_IOC_DESTROY_QP, &cmd);
}

static void qp_init_ibv(struct vhca_qp *qp, struct ibv_context *context,
			const struct ibv_qp_init_attr_ex *attr, uint32_t qpn)
{
	qp->sig_all = attr->sq_sig_all;
	qp->ibv.context = context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.srq = attr->srq;
	qp->ibv.handle = qpn;
	qp->ibv.qp_num = qpn;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = attr->qp_type;
}

/* Pollers look for the QPs that have queues or a CQ of their own. */
static int qp_remember(struct vhca_qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_XRC_RECV ? 0 :
	       vhca_num_add(&to_vctx(qp->ibv.context)->qps, qp->ibv.qp_num, qp);
}

/* The context's num_lock is held. */
static int qp_setup(struct vhca_qp *qp, struct ibv_context *context,
		    const struct ibv_qp_init_attr_ex *attr, const struct geometry *geo)
{
	struct vhca_create_qp cmd = {
		.cookie = (uintptr_t)qp,
		.type = attr->qp_type,
		.pd = attr->pd ? attr->pd->handle : 0,
		.send_cqn = attr->send_cq ? attr->send_cq->handle : 0,
		.recv_cqn = attr->recv_cq ? attr->recv_cq->handle : 0,
		.uar = geo->has_sq ? vhca_slot_uar(&qp->slot) : 0,
		.slot = qp->slot.index,
		.sq_shift = (uint8_t)geo->sq_shift,
		.rq_shift = (uint8_t)geo->rq_shift,
		.rq_sge_shift = (uint8_t)geo->rq_sge_shift,
		.flags = geo->flags,
		.bf_slot = qp->bf.index,
		.buf_addr = (uintptr_t)qp->buf.addr,
		.srqn = attr->srq ? attr->srq->handle : 0,
		.xrcd = attr->xrcd ? to_vxrcd(attr->xrcd)->number : 0,
		.async = to_vctx(context)->async,
	};
	int err;

	err = vhca_ioctl(context, VHCA_IOC_CREATE_QP, &cmd);
	if (err)
		return err;
	err = qp_map(qp, context, geo, &cmd);
	if (err)
		goto err_destroy;
	qp_init_ibv(qp, context, attr, cmd.qpn);
	err = qp_remember(qp);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	qp_destroy_in_kernel(context, cmd.qpn);
	return err;
}

/* What is not named, and not needed, is NULL. */
static bool is_of(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	return (!attr->pd || attr->pd->context == context) &&
	       (!attr->send_cq || attr->send_cq->context == context) &&
	       (!attr->recv_cq || attr->recv_cq->context == context) &&
	       (!attr->srq || attr->srq->context == context) &&
	       (!attr->xrcd || attr->xrcd->context == context);
}

/* Datagrams have a flag; what it stops is multicast. */
static int check_create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		return EOPNOTSUPP;
	return attr->create_flags && attr->qp_type != IBV_QPT_UD ? EINVAL : 0;
}

static int check_srq(const struct ibv_qp_init_attr_ex *attr)
{
	if (!attr->srq)
		return 0;
	return is_xrc(attr->qp_type) || to_vsrq(attr->srq)->cq ? EINVAL : 0;
}

static int check_init_attr(const struct ibv_context *context,
			   const struct ibv_qp_init_attr_ex *attr)
{
	if (!is_of(context, attr))
		return EINVAL;
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (!attr->pd || !attr->send_cq || !attr->recv_cq)
			return EINVAL;
		break;
	case IBV_QPT_XRC_SEND:
		if (!attr->pd || !attr->send_cq)
			return EINVAL;
		break;
	case IBV_QPT_XRC_RECV:
		if (!attr->xrcd)
			return EINVAL;
		break;
	default:
		return EOPNOTSUPP;
	}
	return check_srq(attr) ?: check_create_flags(attr);
}

/* Attributes without those that comp_mask does not name or the type does not have. */
static int normalize(struct ibv_qp_init_attr_ex *to, const struct ibv_qp_init_attr_ex *from)
{
	if (from->comp_mask & ~(uint32_t)INIT_ATTR_KNOWN)
		return EOPNOTSUPP;
	*to = (struct ibv_qp_init_attr_ex) {
		.qp_context = from->qp_context,
		.send_cq = from->send_cq,
		.recv_cq = from->recv_cq,
		.srq = from->srq,
		.cap = from->cap,
		.qp_type = from->qp_type,
		.sq_sig_all = from->sq_sig_all,
		.pd = from->comp_mask & IBV_QP_INIT_ATTR_PD ? from->pd : NULL,
		.xrcd = from->comp_mask & IBV_QP_INIT_ATTR_XRCD ? from->xrcd : NULL,
		.comp_mask = from->comp_mask,
	};
	if (from->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		to->create_flags = from->create_flags;
	if (from->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		to->send_ops_flags = from->send_ops_flags;
	if (is_xrc(to->qp_type))
		to->recv_cq = NULL;
	if (to->qp_type == IBV_QPT_XRC_RECV) {
		to->send_cq = NULL;
		to->pd = NULL;
	} else {
		to->xrcd = NULL;
	}
	return 0;
}

static void slots_free(struct vhca_qp *qp, struct vhca_context *ctx)
{
	if (qp->slot.uar)
		vhca_slot_free(ctx, &qp->slot);
	if (qp->bf.uar)
		vhca_slot_free(ctx, &qp->bf);
}

/* What the QP needs before the kernel can make it. An XRC_RECV QP needs nothing. */
static int qp_prepare(struct vhca_qp *qp, struct vhca_context *ctx, struct ibv_pd *pd,
		      const struct geometry *geo)
{
	int err;

	if (!geo->has_sq)
		return 0;
	qp->flags = geo->flags;
	err = vhca_slot_alloc_two(ctx, &qp->slot,
				  geo->flags & VHCA_QP_F_BLUEFLAME ? &qp->bf : NULL);
	if (err)
		return err;
	err = vhca_buf_ask(&qp->buf, pd, qp_buf_size(qp, geo), VHCA_RESOURCE_QP);
	if (err) {
		slots_free(qp, ctx);
		return err;
	}
	qp->sq.lock.single = vhca_buf_single(&qp->buf, ctx);
	qp->rq.lock.single = vhca_buf_single(&qp->buf, ctx);
	return 0;
}

/* What qp_prepare() and the kernel gave. */
static void qp_release(struct vhca_qp *qp, struct vhca_context *ctx)
{
	vhca_buf_release(&qp->buf);
	slots_free(qp, ctx);
}

static struct ibv_qp *qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct vhca_context *ctx = to_vctx(context);
	struct geometry geo;
	struct vhca_qp *qp;
	int err;

	err = check_init_attr(context, attr);
	if (!err)
		err = geometry_from_attr(&geo, ctx, attr);
	if (err)
		return vhca_null(err);
	qp = qp_alloc(&geo, &ctx->caps, &attr->cap);
	if (!qp)
		return vhca_null(ENOMEM);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		err = vhca_wr_init(qp, attr->qp_type, attr->send_ops_flags);
	if (!err)
		err = qp_prepare(qp, ctx, attr->pd, &geo);
	if (err)
		goto err_free;
	pthread_mutex_lock(&ctx->num_lock);
	err = qp_setup(qp, context, attr, &geo);
	pthread_mutex_unlock(&ctx->num_lock);
	if (err)
		goto err_release;
	vhca_qp_report_cap(qp, &attr->cap);
	return &qp->ibv;

err_release:
	qp_release(qp, ctx);
err_free:
	qp_free(qp);
	return vhca_null(err);
}

struct ibv_qp *vhca_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex known;
	struct ibv_qp *qp;
	int err;

	err = normalize(&known, attr);
	if (err)
		return vhca_null(err);
	qp = qp_create(context, &known);
	if (!qp)
		return NULL;
	attr->cap = known.cap;
	/* To an XRC_RECV QP it is nothing, but who gave it finds it there. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		qp->pd = attr->pd;
	return qp;
}

VHCA_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = vhca_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

#define OPEN_ATTR_NEEDED	(IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | \
				 IBV_QP_OPEN_ATTR_TYPE)

static int check_open_attr(const struct ibv_context *context, const struct ibv_qp_open_attr *attr)
{
	if ((attr->comp_mask | IBV_QP_OPEN_ATTR_CONTEXT) !=
	    (OPEN_ATTR_NEEDED | IBV_QP_OPEN_ATTR_CONTEXT))
		return EINVAL;
	if (attr->qp_type != IBV_QPT_XRC_RECV || attr->xrcd->context != context)
		return EINVAL;
	return 0;
}

struct ibv_qp *vhca_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const struct geometry geo = { .type = IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV };
	struct vhca_open_qp cmd = { .qpn = attr->qp_num, .async = to_vctx(context)->async };
	struct ibv_qp_attr now;
	struct vhca_qp *qp;
	int err;

	err = check_open_attr(context, attr);
	if (err)
		return vhca_null(err);
	qp = qp_alloc(&geo, &to_vctx(context)->caps, &init.cap);
	if (!qp)
		return vhca_null(ENOMEM);
	cmd.cookie = (uintptr_t)qp;
	cmd.xrcd = to_vxrcd(attr->xrcd)->number;
	err = vhca_ioctl(context, VHCA_IOC_OPEN_QP, &cmd);
	if (err)
		goto err_free;
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	qp_init_ibv(qp, context, &init, attr->qp_num);
	/* Its state, which the query stores. */
	err = ibv_query_qp(&qp->ibv, &now, IBV_QP_STATE, (struct ibv_qp_init_attr *)&init);
	if (err)
		goto err_destroy;
	return &qp->ibv;

err_destroy:
	qp_destroy_in_kernel(context, attr->qp_num);
err_free:
	qp_free(qp);
	return vhca_null(err);
}

void vhca_qp_clean_cqs(struct vhca_qp *qp)
{
	struct vhca_srq *srq = qp->ibv.srq ? to_vsrq(qp->ibv.srq) : NULL;

	if (qp->ibv.send_cq)
		vhca_cq_clean(to_vcq(qp->ibv.send_cq), qp, srq);
	if (qp->ibv.recv_cq && qp->ibv.recv_cq != qp->ibv.send_cq)
		vhca_cq_clean(to_vcq(qp->ibv.recv_cq), qp, srq);
}

static void qp_forget(struct vhca_qp *qp)
{
	vhca_qp_clean_cqs(qp);
	if (qp->ibv.qp_type != IBV_QPT_XRC_RECV)
		vhca_num_del(&to_vctx(qp->ibv.context)->qps, qp->ibv.qp_num);
}

VHCA_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct vhca_context *ctx = to_vctx(ibqp->context);
	struct vhca_destroy_qp cmd = { .qpn = ibqp->qp_num };
	struct vhca_qp *qp = to_vqp(ibqp);
	int err;

	pthread_mutex_lock(&ctx->num_lock);
	err = vhca_ioctl(ibqp->context, VHCA_IOC_DESTROY_QP, &cmd);
	if (!err)
		qp_forget(qp);
	pthread_mutex_unlock(&ctx->num_lock);
	if (err)
		return err;
	vhca_acks_wait(&qp->async_acks, cmd.async_events);
	qp_release(qp, ctx);
	qp_free(qp);
	return 0;
}
