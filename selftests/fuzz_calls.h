/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer's ioctls: for each how its argument looks when it is mostly right, what
 * is done to it before the call, and what is known afterwards.
 */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include "fuzz_world.h"

union fuzz_arg {
	struct vhca_query_device	query_device;
	struct vhca_query_port		query_port;
	struct vhca_query_gid		query_gid;
	struct vhca_query_pkey		query_pkey;
	struct vhca_create_event_file	event_file;
	struct vhca_destroy_channel	destroy_channel;
	struct vhca_alloc_uar		alloc_uar;
	struct vhca_object		object;
	struct vhca_reg_mr		reg_mr;
	struct vhca_rereg_mr		rereg_mr;
	struct vhca_reg_special_mr	special;
	struct vhca_query_mr		query_mr;
	struct vhca_alloc_mw		alloc_mw;
	struct vhca_alloc_dm		alloc_dm;
	struct vhca_create_cq		create_cq;
	struct vhca_resize_cq		resize_cq;
	struct vhca_modify_cq		modify_cq;
	struct vhca_destroy_cq		destroy_cq;
	struct vhca_create_qp		create_qp;
	struct vhca_open_qp		open_qp;
	struct vhca_modify_qp		modify_qp;
	struct vhca_destroy_qp		destroy_qp;
	struct vhca_open_xrcd		open_xrcd;
	struct vhca_create_srq		create_srq;
	struct vhca_modify_srq		modify_srq;
	struct vhca_destroy_srq		destroy_srq;
	struct vhca_mcast		mcast;
	uint8_t				bytes[16384];
};

/**
 * struct fuzz_call - an ioctl
 * @kind: what it makes, ends or is about.
 * @weight: how often it comes.
 * @fill: an argument that is mostly right.
 * @made: it succeeded and made something.
 * @ends: it succeeded and @kind's object of that number is no more.
 */
struct fuzz_call {
	const char	*name;
	unsigned long	cmd;
	enum fuzz_kind	kind;
	unsigned int	weight;
	void		(*fill)(struct fuzz_thread *t, int ctx, union fuzz_arg *a);
	void		(*made)(struct fuzz_thread *t, int ctx, const union fuzz_arg *a);
	bool		ends;
};

/* Queries */

static inline void fill_nothing(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
}

static inline void fill_port(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->query_gid.port = fz_odd(t, 10) ? fz_edge(t) : 1;
	if (fz_odd(t, 10))
		a->query_gid.index = fz_edge(t);
}

/* Files of events */

static inline void fuzz_add_file(enum fuzz_kind kind, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = { .ctx = ctx, .number = a->event_file.fd,
			      .async = a->event_file.number };

	fcntl(a->event_file.fd, F_SETFL, O_NONBLOCK);
	if (fuzz_free_obj(kind))
		fuzz_add(kind, &o);
	else
		close(a->event_file.fd);
}

static inline void made_channel(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	fuzz_add_file(F_CHANNEL, ctx, a);
}

static inline void made_async(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	fuzz_add_file(F_ASYNC, ctx, a);
}

static inline int fz_channel(struct fuzz_thread *t, int ctx)
{
	struct fuzz_obj *o = fz_obj_of(t, F_CHANNEL, ctx);

	if (fz_odd(t, 3))
		return fz_below(t, 64);
	return o && fz_below(t, 4) ? (int)o->number : VHCA_INVALID_FD;
}

static inline void fill_destroy_channel(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->destroy_channel.fd = fz_channel(t, ctx);
}

static inline uint32_t fz_async(struct fuzz_thread *t, int ctx)
{
	struct fuzz_obj *o = fz_obj_of(t, F_ASYNC, ctx);

	if (fz_odd(t, 3))
		return fz_edge(t);
	return o && fz_below(t, 2) && !t->good ? o->async : 0;
}

/* UARs */

static inline void made_uar(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct raw_ctx rc = { .fd = world.fd[ctx], .uar = a->alloc_uar, .lid = world.lid };
	struct fuzz_obj o = { .ctx = ctx, .number = a->alloc_uar.uar, .rc = &rc };

	rc.uar_page = fuzz_map(ctx, rc.uar.uar_offset, VHCA_UAR_PAGE_SIZE);
	rc.dbr_page = fuzz_map(ctx, rc.uar.dbr_offset, VHCA_UAR_PAGE_SIZE);
	fuzz_add(F_UAR, &o);
}

#define FILL_NUMBER(name, kind)						\
static inline void fill_##name(struct fuzz_thread *t, int ctx, union fuzz_arg *a)	\
{									\
	a->object.number = fz_number(t, kind, ctx);			\
}

#define MADE_NUMBER(name, kind)						\
static inline void made_##name(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)	\
{									\
	struct fuzz_obj o = { .ctx = ctx, .number = a->object.number };	\
									\
	fuzz_add(kind, &o);						\
}

FILL_NUMBER(uar, F_UAR)
FILL_NUMBER(pd, F_PD)
FILL_NUMBER(mr, F_MR)
FILL_NUMBER(dm, F_DM)
FILL_NUMBER(xrcd, F_XRCD)
FILL_NUMBER(cq, F_CQ)
FILL_NUMBER(qp, F_QP)
FILL_NUMBER(srq, F_SRQ)
FILL_NUMBER(mw, F_MW)
MADE_NUMBER(pd, F_PD)

/* Memory */

static inline uint32_t fz_access(struct fuzz_thread *t)
{
	static const uint32_t common[] = { 0x1, 0xf, 0x1f, 0x7, 0x0, 0x4, 0x10 };

	if (fz_odd(t, 5))
		return fz_edge(t);
	if (fz_odd(t, 15))
		return fz_below(t, 0x40);
	return common[t->good ? 2 : fz_below(t, ARRAY_SIZE(common))];
}

static inline void fill_reg_mr(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct vhca_reg_mr *r = &a->reg_mr;
	uint64_t len;

	r->addr = fz_data(t, &len);
	r->length = len;
	r->iova = fz_odd(t, 20) ? fz_edge(t) : r->addr;
	r->pd = fz_number(t, F_PD, ctx);
	r->access = fz_access(t);
	if (r->access & VHCA_ACCESS_ZERO_BASED && fz_below(t, 4))
		r->iova = 0;
}

static inline void made_mr(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = {
		.ctx = ctx, .number = a->reg_mr.lkey, .rkey = a->reg_mr.rkey,
		.addr = a->reg_mr.iova, .len = a->reg_mr.length, .pd = a->reg_mr.pd,
	};

	fuzz_add(F_MR, &o);
}

static inline void made_special(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = {
		.ctx = ctx, .number = a->special.lkey, .rkey = a->special.rkey,
		.addr = a->special.iova, .len = a->special.length ? a->special.length : 4096,
		.pd = a->special.pd,
	};

	fuzz_add(F_MR, &o);
}

static inline void fill_rereg_mr(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct vhca_rereg_mr *r = &a->rereg_mr;
	uint64_t len;

	r->lkey = fz_number(t, F_MR, ctx);
	r->flags = fz_odd(t, 5) ? fz_edge(t) : 1 + fz_below(t, 7);
	if (r->flags & VHCA_REREG_TRANSLATION) {
		r->addr = fz_data(t, &len);
		r->length = len;
		r->iova = r->addr;
	}
	if (r->flags & VHCA_REREG_PD)
		r->pd = fz_number(t, F_PD, ctx);
	if (r->flags & VHCA_REREG_ACCESS)
		r->access = fz_access(t);
}

static inline void made_rereg_mr(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	const struct vhca_rereg_mr *r = &a->rereg_mr;
	unsigned int i;

	for (i = 0; i < FUZZ_OBJS; i++) {
		struct fuzz_obj *o = &world.obj[F_MR][i];

		if (!o->live || o->number != r->lkey)
			continue;
		if (r->flags & VHCA_REREG_PD)
			o->pd = r->pd;
		if (!(r->flags & VHCA_REREG_TRANSLATION))
			continue;
		o->addr = r->iova;
		o->len = r->length;
	}
}

static inline void fill_dmabuf(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->special.fd = fz_below(t, 64);
	a->special.length = 4096;
	a->special.pd = fz_number(t, F_PD, ctx);
	a->special.access = fz_access(t);
}

static inline void fill_reg_dm(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct fuzz_obj *o = fz_obj_of(t, F_DM, ctx);
	uint64_t len = o && o->len ? o->len : 64;

	a->special.dm = fz_number(t, F_DM, ctx);
	if (o && fz_below(t, 8))
		a->special.dm = o->number;
	a->special.offset = fz_odd(t, 5) ? fz_edge(t) : fz_below(t, len);
	a->special.length = len - a->special.offset;
	a->special.iova = fz_odd(t, 20) ? fz_edge(t) : (uintptr_t)FUZZ_DATA;
	a->special.pd = fz_number(t, F_PD, ctx);
	a->special.access = fz_access(t);
}

static inline void fill_reg_null(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->special.pd = fz_number(t, F_PD, ctx);
}

static inline void fill_alloc_mw(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->alloc_mw.pd = fz_number(t, F_PD, ctx);
	a->alloc_mw.type = fz_odd(t, 5) ? fz_edge(t) : 1 + fz_below(t, 2);
}

static inline void made_mw(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = { .ctx = ctx, .number = a->alloc_mw.rkey, .rkey = a->alloc_mw.rkey,
			      .addr = (uintptr_t)FUZZ_DATA, .len = 4096,
			      .pd = a->alloc_mw.pd };

	fuzz_add(F_MW, &o);
}

static inline void fill_alloc_dm(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->alloc_dm.length = fz_odd(t, 5) ? fz_edge(t) : 1 + fz_below(t, 20000);
	a->alloc_dm.log_align = fz_odd(t, 5) ? fz_edge(t) : fz_below(t, 13);
}

static inline void fill_query_dm(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->alloc_dm.dm = fz_number(t, F_DM, ctx);
}

static inline void made_dm(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = { .ctx = ctx, .number = a->alloc_dm.dm, .len = a->alloc_dm.length };

	fuzz_map(ctx, a->alloc_dm.map_offset, a->alloc_dm.map_size);
	fuzz_add(F_DM, &o);
}

/* Queues */

/* Memory of the kernel, or of the user. */
static inline uint64_t fz_buf(struct fuzz_thread *t)
{
	uint64_t len;

	if (fz_odd(t, 2))
		return fz_edge(t);
	return fz_odd(t, 20) ? fz_data(t, &len) & ~0xfffull : 0;
}

static inline void *fuzz_buf(int ctx, uint64_t addr, uint64_t offset, uint64_t size)
{
	if (!addr)
		return fuzz_map(ctx, offset, size);
	return size <= FUZZ_PLACE ? (void *)(uintptr_t)addr : FUZZ_NOWHERE;
}

static inline uint32_t fz_slot(struct fuzz_thread *t)
{
	return fz_odd(t, 3) ? fz_edge(t) : 1 + fz_below(t, 63);
}

static inline uint32_t fz_shift(struct fuzz_thread *t, uint32_t usual)
{
	if (fz_odd(t, 2))
		return fz_below(t, 17);
	return fz_odd(t, 30) ? fz_below(t, usual + 1) : usual;
}

static inline uint32_t fz_cqe(struct fuzz_thread *t)
{
	if (fz_odd(t, 2))
		return fz_below(t, 2) ? 0x400001 + fz_below(t, 1 << 30) : fz_below(t, 70000);
	return 1 + fz_below(t, 256);
}

static inline void fill_create_cq(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct vhca_create_cq *c = &a->create_cq;

	c->cookie = fz(t);
	c->cqe = fz_cqe(t);
	c->comp_vector = fz_odd(t, 5) ? fz_edge(t) : fz_below(t, 2);
	c->channel_fd = fz_channel(t, ctx);
	c->uar = fz_number(t, F_UAR, ctx);
	c->slot = fz_slot(t);
	c->buf_addr = fz_buf(t);
	c->flags = fz_below(t, 4);
	c->async = fz_async(t, ctx);
}

static inline void made_cq(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	const struct vhca_create_cq *c = &a->create_cq;
	struct fuzz_obj o = { .ctx = ctx, .number = c->cqn, .rc = fuzz_pages(ctx, c->uar),
			      .cq.made = *c };

	o.cq.ring = fuzz_buf(ctx, c->buf_addr, c->buf_offset, c->buf_size);
	fuzz_add(F_CQ, &o);
}

static inline void fill_resize_cq(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->resize_cq.cqn = fz_number(t, F_CQ, ctx);
	a->resize_cq.cqe = fz_cqe(t);
	a->resize_cq.buf_addr = fz_buf(t);
}

static inline void made_resize_cq(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	const struct vhca_resize_cq *r = &a->resize_cq;
	unsigned int i;

	for (i = 0; i < FUZZ_OBJS; i++) {
		struct fuzz_obj *o = &world.obj[F_CQ][i];

		if (!o->live || o->number != r->cqn)
			continue;
		o->cq.made.cqe = r->cqe;
		o->cq.ring = fuzz_buf(ctx, r->buf_addr, r->buf_offset, r->buf_size);
	}
}

static inline void fill_modify_cq(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->modify_cq.cqn = fz_number(t, F_CQ, ctx);
	a->modify_cq.count = fz_odd(t, 10) ? fz_edge(t) : fz_below(t, 20);
	a->modify_cq.period = fz_odd(t, 10) ? fz_edge(t) : fz_below(t, 200);
}

static const uint32_t fuzz_types[] = {
	VHCA_QPT_RC, VHCA_QPT_RC, VHCA_QPT_RC, VHCA_QPT_UC, VHCA_QPT_UD,
	VHCA_QPT_XRC_SEND, VHCA_QPT_XRC_RECV,
};

static inline void fill_create_rq(struct fuzz_thread *t, int ctx, struct vhca_create_qp *c)
{
	if (!t->good && c->type != VHCA_QPT_XRC_SEND && fz_below(t, 3) == 0) {
		c->srqn = fz_number(t, F_SRQ, ctx);
		return;
	}
	if (c->type == VHCA_QPT_XRC_SEND)
		return;
	c->rq_shift = fz_shift(t, 6);
	c->rq_sge_shift = fz_shift(t, 1);
}

static inline void fill_create_qp(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct vhca_create_qp *c = &a->create_qp;

	c->cookie = fz(t);
	c->type = fz_odd(t, 2) ? fz_edge(t) : fuzz_types[fz_below(t, ARRAY_SIZE(fuzz_types))];
	c->async = fz_async(t, ctx);
	if (c->type == VHCA_QPT_XRC_RECV) {
		c->xrcd = fz_number(t, F_XRCD, ctx);
		return;
	}
	c->pd = fz_number(t, F_PD, ctx);
	c->send_cqn = fz_number(t, F_CQ, ctx);
	if (c->type != VHCA_QPT_XRC_SEND)
		c->recv_cqn = fz_number(t, F_CQ, ctx);
	c->uar = fz_number(t, F_UAR, ctx);
	c->slot = fz_slot(t);
	c->sq_shift = fz_shift(t, 6);
	c->flags = fz_odd(t, 40) ? fz_below(t, 16) : 0;
	if (c->type != VHCA_QPT_UD && fz_below(t, 8))
		c->flags &= ~VHCA_QP_F_BLOCK_LOOPBACK;
	if (c->flags & VHCA_QP_F_BLUEFLAME)
		c->bf_slot = fz_slot(t);
	c->buf_addr = fz_buf(t);
	fill_create_rq(t, ctx, c);
}

static inline void made_qp(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	const struct vhca_create_qp *c = &a->create_qp;
	struct fuzz_obj o = { .ctx = ctx, .number = c->qpn, .rc = fuzz_pages(ctx, c->uar),
			      .pd = c->pd, .qp.made = *c };

	o.qp.buf = c->buf_size ? fuzz_buf(ctx, c->buf_addr, c->buf_offset, c->buf_size) :
				 FUZZ_NOWHERE;
	fuzz_add(F_QP, &o);
}

static inline void fill_open_qp(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct fuzz_obj *o = fz_obj_of(t, F_QP, !ctx);

	a->open_qp.cookie = fz(t);
	a->open_qp.qpn = o ? o->number : fz_edge(t);
	a->open_qp.xrcd = fz_number(t, F_XRCD, ctx);
	a->open_qp.async = fz_async(t, ctx);
}

static inline void made_open_qp(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = {
		.ctx = ctx, .number = a->open_qp.qpn, .rc = fuzz_pages(ctx, ~0u),
		.qp = { .buf = FUZZ_NOWHERE, .made = {
			.type = VHCA_QPT_XRC_RECV, .qpn = a->open_qp.qpn } },
	};

	fuzz_add(F_QP, &o);
}

static inline struct vhca_qp_attr fz_attr(struct fuzz_thread *t, uint32_t peer)
{
	struct vhca_qp_attr attr = raw_attr(world.lid, peer);

	attr.access_flags = 0xf;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	attr.timeout = 1 + fz_below(t, 8);
	attr.retry_cnt = fz_below(t, 8);
	attr.rnr_retry = fz_below(t, 8);
	attr.min_rnr_timer = 1 + fz_below(t, 8);
	attr.path_mtu = 1 + fz_below(t, 5);
	attr.qkey = 0x1111;
	return attr;
}

static inline void fill_modify_qp(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct fuzz_obj *o = fz_obj_of(t, F_QP, ctx);
	uint8_t state = fz_below(t, 7);
	uint32_t type = o ? o->qp.made.type : VHCA_QPT_RC;

	a->modify_qp.qpn = o && fz_below(t, 8) ? o->number : fz_number(t, F_QP, ctx);
	a->modify_qp.attr = fz_attr(t, fz_number(t, F_QP, ctx));
	a->modify_qp.attr.state = state;
	a->modify_qp.mask = state >= VHCA_QPS_INIT && state <= VHCA_QPS_RTS ?
			    raw_step_mask(type, state) : VHCA_QP_STATE;
	if (fz_odd(t, 10))
		a->modify_qp.mask ^= 1u << fz_below(t, 22);
	if (fz_odd(t, 10))
		fz_hurt(t, &a->modify_qp.attr, sizeof(a->modify_qp.attr));
}

static inline void fill_open_xrcd(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->open_xrcd.fd = fz_below(t, 2) ? world.file : VHCA_INVALID_FD;
	a->open_xrcd.oflags = fz_odd(t, 20) ? O_EXCL | O_CREAT : O_CREAT;
	if (fz_odd(t, 5))
		a->open_xrcd.fd = fz_below(t, 64);
	if (fz_odd(t, 5))
		a->open_xrcd.oflags = fz_edge(t);
}

static inline void made_xrcd(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	struct fuzz_obj o = { .ctx = ctx, .number = a->open_xrcd.xrcd };

	fuzz_add(F_XRCD, &o);
}

static inline void fill_create_srq(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	struct vhca_create_srq *c = &a->create_srq;

	c->cookie = fz(t);
	c->type = fz_odd(t, 2) ? fz_edge(t) : fz_below(t, 2);
	c->pd = fz_number(t, F_PD, ctx);
	if (c->type) {
		c->xrcd = fz_number(t, F_XRCD, ctx);
		c->cqn = fz_number(t, F_CQ, ctx);
	}
	c->uar = fz_number(t, F_UAR, ctx);
	c->slot = fz_slot(t);
	c->shift = fz_shift(t, 5);
	c->sge_shift = 1 + fz_shift(t, 1);
	c->limit = fz_odd(t, 5) ? fz_edge(t) : fz_below(t, 4);
	c->async = fz_async(t, ctx);
	c->buf_addr = fz_buf(t);
}

static inline void made_srq(struct fuzz_thread *t, int ctx, const union fuzz_arg *a)
{
	const struct vhca_create_srq *c = &a->create_srq;
	struct fuzz_obj o = { .ctx = ctx, .number = c->srqn, .rc = fuzz_pages(ctx, c->uar),
			      .pd = c->pd, .srq.made = *c };

	o.srq.buf = fuzz_buf(ctx, c->buf_addr, c->buf_offset, c->buf_size);
	fuzz_add(F_SRQ, &o);
}

static inline void fill_modify_srq(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->modify_srq.srqn = fz_number(t, F_SRQ, ctx);
	a->modify_srq.limit = fz_odd(t, 5) ? fz_edge(t) : fz_below(t, 8);
}

static inline void fill_mcast(struct fuzz_thread *t, int ctx, union fuzz_arg *a)
{
	a->mcast.gid[0] = fz_odd(t, 5) ? 0xfe : 0xff;
	a->mcast.gid[15] = fz_below(t, 4);
	a->mcast.qpn = fz_number(t, F_QP, ctx);
	a->mcast.dlid = fz_below(t, 2) ? 0xc001 : 0;
}

#define CALL(op, what, often, how, ...)					\
	{ .name = #op, .cmd = VHCA_IOC_##op, .kind = what, .weight = often, .fill = how, \
	  ##__VA_ARGS__ }

static const struct fuzz_call fuzz_calls[] = {
	CALL(QUERY_DEVICE, F_KINDS, 1, fill_nothing),
	CALL(QUERY_PORT, F_KINDS, 1, fill_port),
	CALL(QUERY_GID, F_KINDS, 1, fill_port),
	CALL(QUERY_PKEY, F_KINDS, 1, fill_port),
	CALL(OPEN_ASYNC, F_ASYNC, 2, fill_nothing, .made = made_async),
	CALL(ALLOC_UAR, F_UAR, 2, fill_nothing, .made = made_uar),
	CALL(FREE_UAR, F_UAR, 2, fill_uar, .ends = true),
	CALL(ALLOC_PD, F_PD, 2, fill_nothing, .made = made_pd),
	CALL(FREE_PD, F_PD, 2, fill_pd, .ends = true),
	CALL(QUERY_PD, F_PD, 1, fill_pd),
	CALL(REG_MR, F_MR, 10, fill_reg_mr, .made = made_mr),
	CALL(DEREG_MR, F_MR, 8, fill_mr, .ends = true),
	CALL(REREG_MR, F_MR, 8, fill_rereg_mr, .made = made_rereg_mr),
	CALL(QUERY_MR, F_MR, 1, fill_mr),
	CALL(REG_DMABUF_MR, F_MR, 1, fill_dmabuf, .made = made_special),
	CALL(REG_DM_MR, F_MR, 4, fill_reg_dm, .made = made_special),
	CALL(REG_NULL_MR, F_MR, 2, fill_reg_null, .made = made_special),
	CALL(ALLOC_MW, F_MW, 4, fill_alloc_mw, .made = made_mw),
	CALL(FREE_MW, F_MW, 3, fill_mw, .ends = true),
	CALL(ALLOC_DM, F_DM, 3, fill_alloc_dm, .made = made_dm),
	CALL(QUERY_DM, F_DM, 1, fill_query_dm),
	CALL(FREE_DM, F_DM, 3, fill_dm, .ends = true),
	CALL(CREATE_CHANNEL, F_CHANNEL, 3, fill_nothing, .made = made_channel),
	CALL(DESTROY_CHANNEL, F_CHANNEL, 2, fill_destroy_channel),
	CALL(CREATE_CQ, F_CQ, 8, fill_create_cq, .made = made_cq),
	CALL(RESIZE_CQ, F_CQ, 6, fill_resize_cq, .made = made_resize_cq),
	CALL(MODIFY_CQ, F_CQ, 4, fill_modify_cq),
	CALL(DESTROY_CQ, F_CQ, 6, fill_cq, .ends = true),
	CALL(CREATE_QP, F_QP, 12, fill_create_qp, .made = made_qp),
	CALL(OPEN_QP, F_QP, 4, fill_open_qp, .made = made_open_qp),
	CALL(MODIFY_QP, F_QP, 14, fill_modify_qp),
	CALL(QUERY_QP, F_QP, 3, fill_qp),
	CALL(DESTROY_QP, F_QP, 8, fill_qp, .ends = true),
	CALL(OPEN_XRCD, F_XRCD, 3, fill_open_xrcd, .made = made_xrcd),
	CALL(CLOSE_XRCD, F_XRCD, 2, fill_xrcd, .ends = true),
	CALL(CREATE_SRQ, F_SRQ, 6, fill_create_srq, .made = made_srq),
	CALL(MODIFY_SRQ, F_SRQ, 3, fill_modify_srq),
	CALL(QUERY_SRQ, F_SRQ, 1, fill_srq),
	CALL(DESTROY_SRQ, F_SRQ, 4, fill_srq, .ends = true),
	CALL(ATTACH_MCAST, F_QP, 3, fill_mcast),
	CALL(DETACH_MCAST, F_QP, 3, fill_mcast),
};

/* Where the argument is: mostly across two pages, sometimes where it cannot be. */
static inline void *fz_pointer(struct fuzz_thread *t, size_t size)
{
	uint8_t *end = t->mem + 8 * 4096;	/* the page that is read only */

	if (!fz_odd(t, 6))
		return t->mem + fz_below(t, 8 * 4096 - size + 1);
	switch (fz_below(t, 6)) {
	case 0:		return NULL;
	case 1:		return (void *)fz_edge(t);
	case 2:		return end;				/* read only */
	case 3:		return end - size / 2;			/* half of it is */
	case 4:		return end + 4096 - size / 2;		/* half of it is not there */
	default:	return FUZZ_NOWHERE;
	}
}

static inline bool fuzz_writable(struct fuzz_thread *t, const uint8_t *p, size_t size)
{
	return p >= t->mem && p + size <= t->mem + 8 * 4096;
}

/* Direction, type, number: one of them wrong. */
static inline unsigned long fz_command(struct fuzz_thread *t, unsigned long cmd)
{
	return fz_below(t, 2) ? cmd ^ 1ul << fz_below(t, 32) :
				_IOC(fz_below(t, 4), VHCA_IOC_MAGIC, fz_below(t, 256),
				     fz_below(t, 200));
}

/* Short, long, huge, the long ones not always with zeroes behind. */
static inline size_t fz_size(struct fuzz_thread *t, size_t size)
{
	if (!fz_odd(t, 6))
		return size;
	switch (fz_below(t, 4)) {
	case 0:		return fz_below(t, size + 1);
	case 1:		return size + 8 * (1 + fz_below(t, 8));
	case 2:		return 16383;
	default:	return fz_below(t, 16384);
	}
}

static inline void fuzz_result(struct fuzz_thread *t, const struct fuzz_call *call, int ctx,
			       const void *p)
{
	union fuzz_arg arg = {};

	memcpy(&arg, p, _IOC_SIZE(call->cmd));
	if (call->made)
		call->made(t, ctx, &arg);
	if (call->ends)
		fuzz_gone(call->kind, ctx, arg.object.number);
}

static inline int fuzz_call(struct fuzz_thread *t, const struct fuzz_call *call, int ctx)
{
	size_t known = _IOC_SIZE(call->cmd), size = fz_size(t, known);
	unsigned long cmd = _IOC(_IOC_DIR(call->cmd), _IOC_TYPE(call->cmd),
				 _IOC_NR(call->cmd), size);
	union fuzz_arg arg = {};
	void *p;
	int err;

	call->fill(t, ctx, &arg);
	if (fz_odd(t, 12))
		fz_hurt(t, &arg, known);
	if (fz_odd(t, 2))
		fz_hurt(t, &arg, size);
	if (fz_odd(t, 2))
		cmd = fz_command(t, cmd);
	p = fz_pointer(t, size);
	if (fuzz_writable(t, p, size))
		memcpy(p, &arg, size);
	err = raw_ioctl(world.fd[fz_odd(t, 2) ? !ctx : ctx], cmd, p);
	fuzz_count(&world.view->ioctls, 1);
	if (err)
		return err;
	fuzz_count(&world.view->done, 1);
	if (_IOC_NR(cmd) == _IOC_NR(call->cmd) && fuzz_writable(t, p, size) && size >= known / 2)
		fuzz_result(t, call, ctx, p);
	return 0;
}

static inline const struct fuzz_call *fuzz_call_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fuzz_calls); i++)
		if (!strcmp(fuzz_calls[i].name, name))
			return &fuzz_calls[i];
	return NULL;
}

static inline const struct fuzz_call *fz_call(struct fuzz_thread *t)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < ARRAY_SIZE(fuzz_calls); i++)
		sum += fuzz_calls[i].weight;
	at = fz_below(t, sum);
	for (i = 0; at >= fuzz_calls[i].weight; i++)
		at -= fuzz_calls[i].weight;
	return &fuzz_calls[i];
}

#endif
