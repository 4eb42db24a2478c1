// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cq.c: completion queues, their making, their size, their end.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#define WC_FLAGS_TIMESTAMP	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_FLAGS_SUPPORTED	((uint64_t)IBV_WC_STANDARD_FLAGS | \
				 WC_FLAGS_TIMESTAMP)

/* enum ibv_create_cq_attr_flags, where they count. */
static uint32_t cq_flags(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
}

static uint32_t kernel_flags(const struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = 0;

	if (attr->wc_flags & WC_FLAGS_TIMESTAMP)
		flags |= VHCA_CQ_F_TIMESTAMP;
	if (cq_flags(attr) & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		flags |= VHCA_CQ_F_IGNORE_OVERRUN;
	return flags;
}

static struct vhca_cq *cq_alloc(void)
{
	struct vhca_cq *cq;

	if (posix_memalign((void **)&cq, __alignof__(*cq), sizeof(*cq)))
		return NULL;
	memset(cq, 0, sizeof(*cq));
	cq->arm_sn = 1;
	return cq;
}

static void cq_destroy_in_kernel(struct ibv_context *context, uint32_t cqn)
{
	struct vhca_destroy_cq cmd = { .cqn = cqn };

	vhca_ioctl(context, VHCA_IOC_DESTROY_CQ, &cmd);
}

/* A mapped ring of @cqe CQEs is in @cq->buf. */
static void cq_set_ring(struct vhca_cq *cq, uint32_t cqe)
{
	cq->ring = cq->buf.addr;
	cq->shift = vhca_log2_up(cqe);
	cq->mask = cqe - 1;
	cq->ibv.cqe = (int)cqe;
}

static int cq_setup(struct ibv_context *context, struct vhca_cq *cq,
		    const struct ibv_cq_init_attr_ex *attr)
{
	struct vhca_create_cq cmd = {
		.cookie = (uintptr_t)cq,
		.cqe = attr->cqe,
		.comp_vector = attr->comp_vector,
		.channel_fd = attr->channel ? attr->channel->fd : VHCA_INVALID_FD,
		.uar = vhca_slot_uar(&cq->slot),
		.slot = cq->slot.index,
		.buf_addr = (uintptr_t)cq->buf.addr,
		.flags = kernel_flags(attr),
		.async = to_vctx(context)->async,
	};
	int err;

	err = vhca_ioctl(context, VHCA_IOC_CREATE_CQ, &cmd);
	if (err)
		return err;
	err = vhca_buf_map(&cq->buf, context, cmd.buf_offset, cmd.buf_size);
	if (err) {
		cq_destroy_in_kernel(context, cmd.cqn);
		return err;
	}
	cq->ibv.context = context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	cq->ibv.handle = cmd.cqn;
	cq_set_ring(cq, cmd.cqe);
	return 0;
}

/* The parent domain that it is made with, or NULL. */
static struct ibv_pd *cq_domain(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
}

static int check_cq_attr(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const struct vhca_context *ctx = to_vctx(context);

	if (!attr->cqe || attr->cqe > ctx->caps.max_cqe)
		return EINVAL;
	if (attr->comp_vector >= ctx->caps.num_comp_vectors)
		return EINVAL;
	if (attr->channel && attr->channel->context != context)
		return EINVAL;
	if (cq_domain(attr) && cq_domain(attr)->context != context)
		return EINVAL;
	return 0;
}

static size_t ring_size(uint32_t cqe)
{
	return sizeof(struct vhca_cqe) << vhca_log2_up(cqe);
}

static int cq_ask_buf(struct vhca_context *ctx, struct vhca_cq *cq,
		      const struct ibv_cq_init_attr_ex *attr)
{
	int err = vhca_buf_ask(&cq->buf, cq_domain(attr), ring_size(attr->cqe),
			       VHCA_RESOURCE_CQ);

	cq->lock.single = vhca_buf_single(&cq->buf, ctx) ||
			  cq_flags(attr) & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->arm_lock.single = cq->lock.single;
	return err;
}

static struct vhca_cq *cq_create(struct ibv_context *context,
				 const struct ibv_cq_init_attr_ex *attr)
{
	struct vhca_cq *cq;
	int err;

	err = check_cq_attr(context, attr);
	if (err)
		return vhca_null(err);
	cq = cq_alloc();
	if (!cq)
		return vhca_null(ENOMEM);
	err = vhca_slot_alloc(to_vctx(context), &cq->slot);
	if (err)
		goto err_free;
	err = cq_ask_buf(to_vctx(context), cq, attr);
	if (err)
		goto err_slot;
	/* Before the CQ exists: a channel must not go while a CQ may use it. */
	vhca_channel_get(attr->channel);
	err = cq_setup(context, cq, attr);
	if (err)
		goto err_channel;
	return cq;

err_channel:
	vhca_channel_put(attr->channel);
	vhca_buf_release(&cq->buf);
err_slot:
	vhca_slot_free(to_vctx(context), &cq->slot);
err_free:
	free(cq);
	return vhca_null(err);
}

VHCA_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					 struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct vhca_cq *cq;

	if (cqe < 1 || comp_vector < 0)
		return vhca_null(EINVAL);
	cq = cq_create(context, &attr);
	return cq ? &cq->ibv : NULL;
}

static int check_cq_attr_ex(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || !to_vpd(attr->parent_domain)->protection))
		return EINVAL;
	if (attr->wc_flags & ~WC_FLAGS_SUPPORTED)
		return EOPNOTSUPP;
	if (cq_flags(attr) & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
					 IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return EOPNOTSUPP;
	return 0;
}

struct ibv_cq_ex *vhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct vhca_cq *cq;
	int err;

	err = check_cq_attr_ex(attr);
	if (err)
		return vhca_null(err);
	cq = cq_create(context, attr);
	if (!cq)
		return NULL;
	vhca_cq_init_poll_ex(cq, attr->wc_flags);
	return &cq->ex;
}

/*
 * The CQ's locks are held, so that nobody polls or arms. The new ring is memory that is here
 * already: were it the kernel's, mapping it could fail when there is no way back.
 */
static int cq_resize(struct vhca_cq *cq, uint32_t cqe, struct vhca_buf *buf)
{
	struct vhca_resize_cq cmd = {
		.cqn = cq->ibv.handle,
		.cqe = cqe,
		.buf_addr = (uintptr_t)buf->addr,
	};
	struct vhca_buf old = cq->buf;
	int err;

	err = vhca_ioctl(cq->ibv.context, VHCA_IOC_RESIZE_CQ, &cmd);
	if (err)
		return err;
	cq->buf = *buf;
	*buf = old;
	cq_set_ring(cq, cmd.cqe);
	return 0;
}

VHCA_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	const struct vhca_context *ctx = to_vctx(ibcq->context);
	struct vhca_cq *cq = to_vcq(ibcq);
	struct ibv_pd *pd = cq->buf.domain ? &cq->buf.domain->ibv : NULL;
	struct vhca_buf buf = { 0 };
	int err;

	if (cqe < 1 || (uint32_t)cqe > ctx->caps.max_cqe)
		return EINVAL;
	err = vhca_buf_ask(&buf, pd, ring_size((uint32_t)cqe), VHCA_RESOURCE_CQ);
	if (err)
		return err;
	err = vhca_buf_own(&buf, ring_size((uint32_t)cqe));
	if (!err) {
		vhca_lock(&cq->lock);
		vhca_lock(&cq->arm_lock);
		err = cq_resize(cq, (uint32_t)cqe, &buf);
		vhca_unlock(&cq->arm_lock);
		vhca_unlock(&cq->lock);
	}
	/* The old one, or the new one that did not do. */
	vhca_buf_release(&buf);
	return err;
}

int vhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct vhca_modify_cq cmd = {
		.cqn = ibcq->handle,
		.count = attr->moderate.cq_count,
		.period = attr->moderate.cq_period,
	};

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EOPNOTSUPP;
	if (!attr->attr_mask)
		return EINVAL;
	return vhca_ioctl(ibcq->context, VHCA_IOC_MODIFY_CQ, &cmd);
}

VHCA_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct vhca_destroy_cq cmd = { .cqn = ibcq->handle };
	struct vhca_cq *cq = to_vcq(ibcq);
	int err;

	err = vhca_ioctl(ibcq->context, VHCA_IOC_DESTROY_CQ, &cmd);
	if (err)
		return err;
	vhca_acks_wait(&cq->comp_acks, cmd.comp_events);
	vhca_acks_wait(&cq->async_acks, cmd.async_events);
	vhca_buf_release(&cq->buf);
	vhca_slot_free(to_vctx(ibcq->context), &cq->slot);
	vhca_channel_put(ibcq->channel);
	free(cq);
	return 0;
}

static struct vhca_cqe *cqe_at(struct vhca_cq *cq, uint32_t index)
{
	return &cq->ring[index & cq->mask];
}

/* Move a CQE to another slot, which keeps its own owner bit. */
static void cqe_move(struct vhca_cq *cq, uint32_t to, uint32_t from)
{
	struct vhca_cqe cqe = *cqe_at(cq, from);

	cqe.owner = cqe_at(cq, to)->owner;
	*cqe_at(cq, to) = cqe;
}

/* How far the device has come: the first index whose CQE is not there yet. */
static uint32_t cq_find_producer(const struct vhca_cq *cq)
{
	uint32_t pi = cq->ci;

	while (pi - cq->ci <= cq->mask && vhca_cq_look(cq, pi))
		pi++;
	return pi;
}

/* QPs without a queue or an SRQ of this context may have had the same number. */
static bool cqe_is_of(const struct vhca_cqe *cqe, const struct vhca_qp *qp,
		      const struct vhca_srq *srq)
{
	uint32_t qpn = be32toh(cqe->flags_qpn) & VHCA_QPN_MASK;
	bool from_srq = vhca_cqe_flags(cqe) & VHCA_CQE_F_SRQ;

	if (from_srq && (!srq || be32toh(cqe->srqn) != srq->ibv.handle))
		return false;
	return qp ? qpn == qp->ibv.qp_num : from_srq;
}

/* Nobody polls it; the tag of an SRQ's WQE is free all the same. */
static void cqe_drop(const struct vhca_cqe *cqe, struct vhca_srq *srq)
{
	if (vhca_cqe_flags(cqe) & VHCA_CQE_F_SRQ)
		vhca_srq_retire(srq, be16toh(cqe->wqe_index));
}

/**
 * vhca_cq_clean - remove the CQEs of a QP or an SRQ
 * @cq: CQ
 * @qp: QP of which the device writes no more CQEs, or NULL
 * @srq: the QP's SRQ or NULL; without a QP: SRQ of which the device writes no more
 *
 * From the newest to the oldest, those of others move up over the gaps.
 */
void vhca_cq_clean(struct vhca_cq *cq, const struct vhca_qp *qp, struct vhca_srq *srq)
{
	uint32_t pi, from, to;

	vhca_lock(&cq->lock);
	pi = cq_find_producer(cq);
	for (from = to = pi; from != cq->ci; ) {
		from--;
		if (cqe_is_of(cqe_at(cq, from), qp, srq)) {
			cqe_drop(cqe_at(cq, from), srq);
			continue;
		}
		to--;
		if (to == from)
			continue;
		cqe_move(cq, to, from);
		__atomic_store_n(&cq->moved, pi, __ATOMIC_RELAXED);
	}
	if (to != cq->ci) {
		vhca_cq_advance(cq, to);
		vhca_cq_consumed(cq);
	}
	if (cq->last_qp == qp)
		cq->last_qp = NULL;
	vhca_unlock(&cq->lock);
}
