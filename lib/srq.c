// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * srq.c: shared receive queues.
 *
 * QPs take WQEs from the ring in order, but complete them in any. So a WQE has a tag
 * of its own, which its CQE brings back. There are as many tags as the ring has
 * WQEs; one is free again when the CQE was polled, so that the ring cannot overflow.
 */
#include <stdlib.h>

#include "wqe.h"

static struct vhca_srq *srq_alloc(uint32_t shift)
{
	uint32_t i, n = 1u << shift;
	struct vhca_srq *srq;

	if (posix_memalign((void **)&srq, __alignof__(*srq), sizeof(*srq)))
		return NULL;
	memset(srq, 0, sizeof(*srq));
	srq->wr_id = calloc(n, sizeof(*srq->wr_id));
	srq->free_tags = calloc(n, sizeof(*srq->free_tags));
	if (!srq->wr_id || !srq->free_tags) {
		free(srq->wr_id);
		free(srq->free_tags);
		free(srq);
		return NULL;
	}
	for (i = 0; i < n; i++)
		srq->free_tags[i] = (uint16_t)(n - 1 - i);
	srq->nr_free = n;
	srq->max_wr = n;
	return srq;
}

static void srq_free(struct vhca_srq *srq)
{
	free(srq->wr_id);
	free(srq->free_tags);
	free(srq);
}

static int srq_destroy_in_kernel(struct ibv_context *context, uint32_t srqn, uint32_t *events)
{
	struct vhca_destroy_srq cmd = { .srqn = srqn };
	int err = vhca_ioctl(context, VHCA_IOC_DESTROY_SRQ, &cmd);

	*events = cmd.async_events;
	return err;
}

/* The context's num_lock is held. */
static int srq_setup(struct vhca_srq *srq, struct ibv_context *context,
		     const struct ibv_srq_init_attr_ex *attr)
{
	bool xrc = attr->srq_type == IBV_SRQT_XRC;
	struct vhca_create_srq cmd = {
		.cookie = (uintptr_t)srq,
		.type = attr->srq_type,
		.pd = attr->pd->handle,
		.xrcd = xrc ? to_vxrcd(attr->xrcd)->number : 0,
		.cqn = xrc ? attr->cq->handle : 0,
		.uar = vhca_slot_uar(&srq->slot),
		.slot = srq->slot.index,
		.shift = (uint8_t)vhca_log2_up(srq->max_wr),
		.sge_shift = (uint8_t)srq->sge_shift,
		.buf_addr = (uintptr_t)srq->buf.addr,
		.async = to_vctx(context)->async,
	};
	uint32_t events;
	int err;

	err = vhca_ioctl(context, VHCA_IOC_CREATE_SRQ, &cmd);
	if (err)
		return err;
	err = vhca_buf_map(&srq->buf, context, cmd.buf_offset, cmd.buf_size);
	if (err)
		goto err_destroy;
	srq->ring = srq->buf.addr;
	srq->ibv.context = context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = attr->pd;
	srq->ibv.handle = cmd.srqn;
	srq->cq = xrc ? attr->cq : NULL;
	err = vhca_num_add(&to_vctx(context)->srqs, cmd.srqn, srq);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	srq_destroy_in_kernel(context, cmd.srqn, &events);
	return err;
}

static int check_type(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	switch (attr->srq_type) {
	case IBV_SRQT_BASIC:
		return 0;
	case IBV_SRQT_XRC:
		if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) ||
		    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) ||
		    attr->xrcd->context != context || attr->cq->context != context)
			return EINVAL;
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

static int check_init_attr(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const struct vhca_query_device *caps = &to_vctx(context)->caps;

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return EINVAL;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM || !caps->max_srq)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd->context != context)
		return EINVAL;
	if (!attr->attr.max_wr || attr->attr.max_wr > 1u << caps->max_srq_shift ||
	    attr->attr.max_sge > caps->max_srq_sge)
		return EINVAL;
	return check_type(context, attr);
}

static void report_attr(const struct vhca_srq *srq, struct ibv_srq_attr *attr)
{
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
}

static size_t srq_buf_size(const struct vhca_srq *srq)
{
	return (sizeof(struct vhca_wqe_data) << srq->sge_shift) * srq->max_wr;
}

static struct ibv_srq *srq_create(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct vhca_context *ctx = to_vctx(context);
	struct vhca_srq *srq;
	int err;

	err = check_init_attr(context, attr);
	if (err)
		return vhca_null(err);
	srq = srq_alloc(vhca_log2_up(attr->attr.max_wr));
	if (!srq)
		return vhca_null(ENOMEM);
	/* The head is a segment, too. */
	srq->sge_shift = vhca_max(1, vhca_log2_up(attr->attr.max_sge + 1));
	srq->max_sge = vhca_min(ctx->caps.max_srq_sge, (1u << srq->sge_shift) - 1);
	err = vhca_slot_alloc(ctx, &srq->slot);
	if (err)
		goto err_free;
	err = vhca_buf_ask(&srq->buf, attr->pd, srq_buf_size(srq), VHCA_RESOURCE_SRQ);
	if (err)
		goto err_slot;
	pthread_mutex_lock(&ctx->num_lock);
	err = srq_setup(srq, context, attr);
	pthread_mutex_unlock(&ctx->num_lock);
	if (err)
		goto err_buf;
	report_attr(srq, &attr->attr);
	return &srq->ibv;

err_buf:
	vhca_buf_release(&srq->buf);
err_slot:
	vhca_slot_free(ctx, &srq->slot);
err_free:
	srq_free(srq);
	return vhca_null(err);
}

VHCA_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = srq_create(pd->context, &ex);

	if (srq)
		attr->attr = ex.attr;
	return srq;
}

/* Fields that comp_mask does not name are not to be looked at. */
struct ibv_srq *vhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex ex = *attr;
	struct ibv_srq *srq;

	if (!(ex.comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		ex.srq_type = IBV_SRQT_BASIC;
	srq = srq_create(context, &ex);
	if (srq)
		attr->attr = ex.attr;
	return srq;
}

/* A limit is what can be changed; the size is not. */
VHCA_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct vhca_modify_srq cmd = { .srqn = ibsrq->handle, .limit = attr->srq_limit };

	if (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (attr_mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (!(attr_mask & IBV_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > to_vsrq(ibsrq)->max_wr)
		return EINVAL;
	return vhca_ioctl(ibsrq->context, VHCA_IOC_MODIFY_SRQ, &cmd);
}

VHCA_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct vhca_modify_srq cmd = { .srqn = ibsrq->handle };
	int err;

	err = vhca_ioctl(ibsrq->context, VHCA_IOC_QUERY_SRQ, &cmd);
	if (err)
		return err;
	report_attr(to_vsrq(ibsrq), attr);
	attr->srq_limit = cmd.limit;
	return 0;
}

int vhca_get_srq_num(struct ibv_srq *srq, uint32_t *srqn)
{
	*srqn = srq->handle;
	return 0;
}

VHCA_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct vhca_context *ctx = to_vctx(ibsrq->context);
	struct vhca_srq *srq = to_vsrq(ibsrq);
	uint32_t events;
	int err;

	pthread_mutex_lock(&ctx->num_lock);
	err = srq_destroy_in_kernel(ibsrq->context, ibsrq->handle, &events);
	if (!err) {
		/* Those of a basic one went with its QPs. */
		if (srq->cq)
			vhca_cq_clean(to_vcq(srq->cq), NULL, srq);
		vhca_num_del(&ctx->srqs, ibsrq->handle);
	}
	pthread_mutex_unlock(&ctx->num_lock);
	if (err)
		return err;
	vhca_acks_wait(&srq->async_acks, events);
	vhca_buf_release(&srq->buf);
	vhca_slot_free(ctx, &srq->slot);
	srq_free(srq);
	return 0;
}

static int post_one(struct vhca_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t at = (srq->pi & (srq->max_wr - 1)) << srq->sge_shift;
	struct vhca_wqe_data *segs = srq->ring + at;
	uint16_t tag;

	if (!srq->nr_free)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
		return EINVAL;
	if (vhca_wqe_recv(segs + 1, segs + (1 << srq->sge_shift), wr))
		return EINVAL;
	tag = srq->free_tags[--srq->nr_free];
	srq->wr_id[tag] = wr->wr_id;
	*(struct vhca_wqe_recv_head *)segs = (struct vhca_wqe_recv_head) {
		.tag = htobe16(tag),
	};
	srq->pi++;
	return 0;
}

/* The device finds the WQEs by the record, when a message comes. */
int vhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);
	struct vhca_srq_dbr *dbr = srq->slot.record;
	int err = 0;

	vhca_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		err = post_one(srq, wr);
		if (err)
			break;
	}
	vhca_barrier_record();
	__atomic_store_n(&dbr->pi, htobe32(srq->pi & 0xffff), __ATOMIC_RELAXED);
	vhca_unlock(&srq->lock);
	if (err)
		*bad_wr = wr;
	return err;
}

/**
 * vhca_srq_retire - the WQE of a tag is done
 * @srq: SRQ
 * @tag: as its CQE brings it
 *
 * Return: its wr_id.
 */
uint64_t vhca_srq_retire(struct vhca_srq *srq, uint16_t tag)
{
	uint64_t wr_id;

	vhca_lock(&srq->lock);
	wr_id = srq->wr_id[tag & (srq->max_wr - 1)];
	srq->free_tags[srq->nr_free++] = tag;
	vhca_unlock(&srq->lock);
	return wr_id;
}
