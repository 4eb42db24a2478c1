/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzer does to queues: work requests that are right, or wrong in one place,
 * rings and records and doorbells with nonsense in them, completions taken and CQs
 * armed, QPs brought back to life.
 */
#ifndef FUZZ_QUEUES_H
#define FUZZ_QUEUES_H

#include "fuzz_calls.h"

/* A send WQE while it is made. */
struct fuzz_wqe {
	union {
		struct vhca_wqe_ctrl ctrl;
		uint8_t		byte[VHCA_WQE_MAX_SEGS * VHCA_WQE_SEG_SIZE + 64];
	};
	size_t		size;
};

static inline void *wqe_add(struct fuzz_wqe *w, size_t size)
{
	void *at = w->byte + w->size;

	w->size += size;
	return at;
}

/* A key of the queue's PD and bytes in it, mostly. */
static inline void fz_region(struct fuzz_thread *t, const struct fuzz_obj *q, bool remote,
			     uint32_t *key, uint64_t *addr, uint64_t *len)
{
	enum fuzz_kind kind = remote && fz_below(t, 4) == 0 ? F_MW : F_MR;
	struct fuzz_obj *o = fz_obj_in(t, kind, q->ctx, fz_odd(t, 3) ? NULL : &q->pd);

	*key = fz_odd(t, 3) || !o ? fz_edge(t) : remote ? o->rkey : o->number;
	*len = fz_odd(t, 3) ? fz_edge(t) : fz_below(t, fz_below(t, 8) ? 300 : FUZZ_CHUNK);
	*addr = o ? o->addr : (uintptr_t)FUZZ_DATA;
	if (o && o->len > *len)
		*addr += fz_below(t, o->len - *len);
	if (fz_odd(t, 3))
		*addr += fz_edge(t);
}

static inline struct vhca_wqe_data fz_sge(struct fuzz_thread *t, const struct fuzz_obj *q)
{
	uint64_t addr, len;
	uint32_t key;

	fz_region(t, q, false, &key, &addr, &len);
	return (struct vhca_wqe_data) {
		.byte_count = htobe32(len), .lkey = htobe32(key), .addr = htobe64(addr),
	};
}

static inline void wqe_raddr(struct fuzz_thread *t, const struct fuzz_obj *q, struct fuzz_wqe *w,
			     bool atomic)
{
	struct vhca_wqe_raddr *r = wqe_add(w, sizeof(*r));
	uint64_t addr, len;
	uint32_t key;

	fz_region(t, q, true, &key, &addr, &len);
	if (atomic && !fz_odd(t, 10))
		addr &= ~7ull;
	*r = (struct vhca_wqe_raddr) { .addr = htobe64(addr), .rkey = htobe32(key) };
}

static inline void wqe_dgram(struct fuzz_thread *t, const struct fuzz_obj *q, struct fuzz_wqe *w)
{
	struct vhca_wqe_dgram *d = wqe_add(w, sizeof(*d));

	*d = (struct vhca_wqe_dgram) {
		.dest_qpn = htobe32(fz_number(t, F_QP, q->ctx)), .qkey = htobe32(0x1111),
		.dlid = htobe16(world.lid), .sl = fz_below(t, 16),
	};
	if (fz_below(t, 4))
		return;
	d->dest_qpn = htobe32(VHCA_QPN_MASK);	/* to a group */
	d->dlid = htobe16(0xc001);
	d->is_global = 1;
	d->dgid[0] = 0xff;
	d->dgid[15] = fz_below(t, 4);
}

static inline void wqe_bind(struct fuzz_thread *t, const struct fuzz_obj *q, struct fuzz_wqe *w)
{
	struct vhca_wqe_bind *b = wqe_add(w, sizeof(*b));
	struct fuzz_obj *o = fz_obj_in(t, F_MW, q->ctx, &q->pd);
	uint64_t addr, len;
	uint32_t key;

	fz_region(t, q, false, &key, &addr, &len);
	*b = (struct vhca_wqe_bind) {
		.rkey = htobe32(o ? o->rkey : 0), .lkey = htobe32(key),
		.new_rkey = htobe32(o ? (o->rkey & ~0xffu) | ((o->rkey + 1) & 0xff) : 0),
		.access = htobe32(fz_access(t) & 0x2e), .addr = htobe64(addr),
		.length = htobe64(fz_below(t, 8) ? len : 0),
	};
	if (o) {
		o->rkey = be32toh(b->new_rkey);
		o->addr = addr;
	}
}

static inline void wqe_inline(struct fuzz_thread *t, struct fuzz_wqe *w)
{
	uint32_t len = fz_below(t, fz_below(t, 4) ? 60 : VHCA_MAX_INLINE - 60);
	struct vhca_wqe_inline *i = wqe_add(w, (sizeof(*i) + len + 15) & ~15u);

	i->byte_count = htobe32(VHCA_WQE_INLINE | len);
	memset(i + 1, 0x11, len);
}

static inline void wqe_sges(struct fuzz_thread *t, const struct fuzz_obj *q, struct fuzz_wqe *w,
			    unsigned int n)
{
	while (n--)
		*(struct vhca_wqe_data *)wqe_add(w, VHCA_WQE_SEG_SIZE) = fz_sge(t, q);
}

static inline void wqe_payload(struct fuzz_thread *t, const struct fuzz_obj *q,
			       struct fuzz_wqe *w, bool in)
{
	if (!in && fz_below(t, 3) == 0)
		wqe_inline(t, w);
	else
		wqe_sges(t, q, w, fz_odd(t, 5) ? fz_below(t, 30) : 1 + fz_below(t, 3));
}

/* What the opcode has behind the head. */
static inline void wqe_body(struct fuzz_thread *t, const struct fuzz_obj *q, struct fuzz_wqe *w,
			    uint8_t opcode)
{
	switch (opcode) {
	case VHCA_OP_RDMA_WRITE:
	case VHCA_OP_RDMA_WRITE_IMM:
	case VHCA_OP_RDMA_READ:
		wqe_raddr(t, q, w, false);
		wqe_payload(t, q, w, opcode == VHCA_OP_RDMA_READ);
		break;
	case VHCA_OP_ATOMIC_CS:
	case VHCA_OP_ATOMIC_FA:
		wqe_raddr(t, q, w, true);
		memset(wqe_add(w, sizeof(struct vhca_wqe_atomic)), 0,
		       sizeof(struct vhca_wqe_atomic));
		wqe_sges(t, q, w, 1);
		((struct vhca_wqe_data *)(w->byte + w->size))[-1].byte_count = htobe32(8);
		break;
	case VHCA_OP_BIND_MW:
		wqe_bind(t, q, w);
		break;
	case VHCA_OP_LOCAL_INV:
		break;
	default:
		wqe_payload(t, q, w, false);
	}
}

static inline uint32_t fz_imm(struct fuzz_thread *t, int ctx, uint8_t opcode)
{
	struct fuzz_obj *o = fz_obj_of(t, F_MW, ctx);

	switch (opcode) {
	case VHCA_OP_SEND_INV:
	case VHCA_OP_LOCAL_INV:
		return o ? o->rkey : fz_edge(t);
	case VHCA_OP_SEND_IMM:
	case VHCA_OP_RDMA_WRITE_IMM:
		return fz(t);
	default:
		return 0;
	}
}

static inline void wqe_sign(struct fuzz_wqe *w)
{
	uint8_t sum = 0;
	size_t i;

	for (i = 0; i < w->size; i++)
		sum ^= w->byte[i];
	w->ctrl.signature = ~sum;
}

static inline void fz_wqe(struct fuzz_thread *t, struct fuzz_obj *o, struct fuzz_wqe *w)
{
	static const uint8_t opcodes[] = {
		VHCA_OP_SEND, VHCA_OP_SEND, VHCA_OP_SEND_IMM, VHCA_OP_RDMA_WRITE,
		VHCA_OP_RDMA_WRITE_IMM, VHCA_OP_RDMA_READ, VHCA_OP_ATOMIC_CS, VHCA_OP_ATOMIC_FA,
		VHCA_OP_SEND_INV, VHCA_OP_BIND_MW, VHCA_OP_LOCAL_INV,
	};
	uint32_t type = o->qp.made.type;
	uint8_t opcode = opcodes[fz_below(t, type == VHCA_QPT_UD ? 3 : ARRAY_SIZE(opcodes))];
	struct fuzz_obj *srq = fz_obj_of(t, F_SRQ, o->ctx);

	memset(w->byte, 0, sizeof(w->byte));
	w->size = sizeof(w->ctrl);
	if (type == VHCA_QPT_XRC_SEND)
		((struct vhca_wqe_xrc *)wqe_add(w, 16))->srqn = htobe32(srq ? srq->number : 0);
	if (type == VHCA_QPT_UD)
		wqe_dgram(t, o, w);
	wqe_body(t, o, w, opcode);
	w->ctrl.idx_opcode = htobe32((uint32_t)o->qp.sq_pi << VHCA_WQE_IDX_SHIFT | opcode);
	w->ctrl.qpn_ds = htobe32(o->number << VHCA_WQE_QPN_SHIFT | w->size / VHCA_WQE_SEG_SIZE);
	w->ctrl.flags = fz_below(t, 4) ? VHCA_WQE_SIGNALED : fz_below(t, 8);
	w->ctrl.imm = htobe32(fz_imm(t, o->ctx, opcode));
	if (fz_odd(t, 20))
		fz_hurt(t, w->byte, fz_below(t, 2) ? 16 : w->size);
	if (o->qp.made.flags & VHCA_QP_F_SIGNATURE && fz_below(t, 16))
		wqe_sign(w);
}

/* Into the ring, around its end. */
static inline void fuzz_put_wqe(struct raw_qp *qp, const struct fuzz_wqe *w)
{
	size_t at;

	for (at = 0; at < w->size; at += VHCA_WQEBB_SIZE)
		memcpy(raw_sq_block(qp, qp->sq_pi + at / VHCA_WQEBB_SIZE), w->byte + at,
		       w->size - at < VHCA_WQEBB_SIZE ? w->size - at : VHCA_WQEBB_SIZE);
}

static inline void fuzz_kick(struct fuzz_thread *t, const struct raw_ctx *rc, uint32_t slot)
{
	unsigned long arg = VHCA_KICK_ARG(rc->uar.uar, slot);

	if (fz_odd(t, 4))
		arg = fz_edge(t);
	ioctl(rc->fd, VHCA_IOC_KICK, arg);
}

/* Mostly kicked, whether the device asks for it or not. */
static inline void fuzz_ring(struct fuzz_thread *t, struct raw_qp *qp)
{
	struct vhca_uar_slot *s = (struct vhca_uar_slot *)qp->ctx->uar_page + qp->made.slot % 64;
	uint64_t db = raw_qp_doorbell(qp);

	s->doorbell = htobe64(fz_odd(t, 4) ? fz_edge(t) : db);
	if (fz_below(t, 8))
		fuzz_kick(t, qp->ctx, qp->made.slot);
}

static inline void fuzz_blueflame(struct fuzz_thread *t, struct raw_qp *qp,
				  const struct fuzz_wqe *w)
{
	uint32_t slot = fz_below(t, 2) ? qp->made.slot : qp->made.bf_slot;
	uint8_t *line = (uint8_t *)((struct vhca_uar_slot *)qp->ctx->uar_page + slot % 64);

	memcpy(line + 8, w->byte + 8, 56);
	raw_full_barrier();
	memcpy(line, w->byte, 8);
	fuzz_kick(t, qp->ctx, slot);
}

static inline void do_post_send(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_QP);
	unsigned int n = fz_odd(t, 5) ? fz_below(t, 64) : 1 + fz_below(t, 3);
	struct fuzz_wqe w;

	if (!o)
		return;
	while (n--) {
		fz_wqe(t, o, &w);
		fuzz_put_wqe(&o->qp, &w);
		raw_produce(&o->qp, (w.size + VHCA_WQEBB_SIZE - 1) / VHCA_WQEBB_SIZE);
		fuzz_count(&world.view->wqes, 1);
	}
	if (o->qp.made.flags & VHCA_QP_F_BLUEFLAME && fz_below(t, 2))
		fuzz_blueflame(t, &o->qp, &w);
	else
		fuzz_ring(t, &o->qp);
}

/* Segments of a receive WQE, at most @n, a sentinel where fewer. */
static inline void fz_recv_wqe(struct fuzz_thread *t, const struct fuzz_obj *q,
			       struct vhca_wqe_data *seg, unsigned int n)
{
	unsigned int used = fz_below(t, 4) ? n / 2 + 1 : fz_below(t, n + 1), i;

	if (used > n)
		used = n;
	for (i = 0; i < used; i++)
		seg[i] = fz_sge(t, q);
	if (used < n)
		seg[used] = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
}

static inline void fz_put_recv(struct fuzz_thread *t, const struct fuzz_obj *q, void *to,
			       unsigned int shift, bool head, uint16_t tag)
{
	union {
		struct vhca_wqe_recv_head head;
		struct vhca_wqe_data seg[32];
	} wqe = {};
	unsigned int n = 1u << (shift & 3);

	if (head)
		wqe.head.tag = htobe16(tag);
	if (n > head)
		fz_recv_wqe(t, q, wqe.seg + head, n - head);
	if (fz_odd(t, 10))
		fz_hurt(t, &wqe, n * sizeof(wqe.seg[0]));
	memcpy(to, &wqe, n * sizeof(wqe.seg[0]));
}

static inline void do_post_recv(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_QP);
	unsigned int n = 1 + fz_below(t, 4);

	if (!o)
		return;
	while (n--) {
		fz_put_recv(t, o, raw_rq_wqe(&o->qp, o->qp.rq_pi),
			    o->qp.made.rq_sge_shift, false, 0);
		raw_post_recv(&o->qp);
	}
}

static inline void do_post_srq(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_SRQ);
	unsigned int n = 1 + fz_below(t, 4), i, shift;
	struct vhca_srq_dbr *dbr;

	if (!o)
		return;
	shift = o->srq.made.sge_shift;
	dbr = (struct vhca_srq_dbr *)o->rc->dbr_page + o->srq.made.slot % 64;
	while (n--) {
		i = o->srq.pi & ((1u << o->srq.made.shift) - 1);
		fz_put_recv(t, o, o->srq.buf + ((size_t)i << (VHCA_WQE_SEG_SHIFT + shift)),
			    shift, true, i);
		raw_store32(&dbr->pi, ++o->srq.pi);
	}
}

/* Consumes what is there, which nobody counts. */
static inline void do_poll_cq(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_CQ);
	struct raw_wc wc;
	unsigned int n = 64;

	while (o && n-- && raw_poll(&o->cq, &wc))
		;
}

static inline void do_arm_cq(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_CQ);
	uint32_t arm;

	if (!o)
		return;
	arm = raw_arm_word(&o->cq, o->cq.events + fz_below(t, 3), o->cq.ci, fz_below(t, 2));
	if (fz_odd(t, 10))
		arm = fz_edge(t);
	raw_arm_with(&o->cq, arm);
	if (fz_below(t, 4) == 0)
		fuzz_kick(t, o->rc, o->cq.made.slot);
}

/* Events make the next arm's number; what is read may be anyone's. */
static inline void do_read_event(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, fz_below(t, 4) ? F_CHANNEL : F_ASYNC);
	static const uint16_t sizes[] = { 16, 16, 32, 0, 1, 15, 17, 31, 4096 };
	size_t size = sizes[fz_below(t, ARRAY_SIZE(sizes))];
	struct fuzz_obj *cq = fz_obj(t, F_CQ);
	struct pollfd p = { .events = POLLIN | POLLOUT };

	if (!o)
		return;
	p.fd = o->number;
	if (fz_below(t, 2))
		poll(&p, 1, 0);
	if (read(o->number, fz_pointer(t, 4096), size) > 0 && cq)
		cq->cq.events++;
}

/* Whatever they were, two QPs of a type that talk to each other. */
static inline void fuzz_connect(struct fuzz_thread *t, struct fuzz_obj *a, struct fuzz_obj *b)
{
	struct vhca_qp_attr attr = fz_attr(t, b->number);

	raw_reset_qp(&a->qp);
	a->qp.ctx = a->rc;
	raw_climb(&a->qp, fz_odd(t, 10) ? VHCA_QPS_RTR : VHCA_QPS_RTS, attr);
}

static inline bool fuzz_match(uint32_t a, uint32_t b)
{
	return a == b ? a < VHCA_QPT_XRC_SEND : a + b == VHCA_QPT_XRC_SEND + VHCA_QPT_XRC_RECV;
}

static inline void do_connect(struct fuzz_thread *t)
{
	struct fuzz_obj *a = fz_obj(t, F_QP), *b = NULL;
	int i;

	for (i = 0; a && i < 8; i++) {
		b = fz_obj(t, F_QP);
		if (b && fuzz_match(a->qp.made.type, b->qp.made.type))
			break;
	}
	if (!a || !b)
		return;
	fuzz_connect(t, a, b);
	fuzz_connect(t, b, a);
}

/* Nonsense */

static inline void fz_scribble(struct fuzz_thread *t, uint8_t *mem, size_t size)
{
	unsigned int n = 1 + fz_below(t, 16);

	while (n--) {
		fz_hurt(t, mem, size);
		fuzz_count(&world.view->scribbles, 1);
	}
}

static inline void do_scribble_map(struct fuzz_thread *t)
{
	struct fuzz_map *m = &world.map[fz_below(t, FUZZ_PLACES)];
	unsigned int i, n = 1 + fz_below(t, 12);

	for (i = 0; i < FUZZ_PLACES && !m->used; i++)
		m = &world.map[(m - world.map + 1) % FUZZ_PLACES];
	if (!m->used)
		return;
	while (n--) {
		fz_hurt(t, fuzz_place(m - world.map), m->size);
		fuzz_count(&world.view->scribbles, 1);
	}
}

/* The last WQEs posted, the records and the doorbells: where the device looks next. */
static inline void do_scribble_qp(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_QP);

	if (!o)
		return;
	switch (fz_below(t, 4)) {
	case 0:
		fz_scribble(t, raw_sq_block(&o->qp, o->qp.sq_pi - 1 - fz_below(t, 4)), 64);
		break;
	case 1:
		fz_scribble(t, (void *)raw_rq_wqe(&o->qp, o->qp.rq_pi - 1 - fz_below(t, 4)), 32);
		break;
	case 2:
		fz_scribble(t, (uint8_t *)o->rc->dbr_page + o->qp.made.slot % 64 * 64, 16);
		break;
	case 3:
		fz_scribble(t, (uint8_t *)o->rc->uar_page + o->qp.made.slot % 64 * 64, 64);
		break;
	}
	fuzz_ring(t, &o->qp);
}

static inline void do_scribble_cq(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_CQ);

	if (!o)
		return;
	if (fz_below(t, 2))
		fz_scribble(t, (uint8_t *)o->rc->dbr_page + o->cq.made.slot % 64 * 64, 8);
	else
		fz_scribble(t, (uint8_t *)(o->cq.ring + (o->cq.ci & (o->cq.made.cqe - 1))), 64);
	fuzz_kick(t, o->rc, o->cq.made.slot);
}

static inline void do_scribble_srq(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_SRQ);

	if (!o)
		return;
	if (fz_below(t, 2))
		fz_scribble(t, (uint8_t *)o->rc->dbr_page + o->srq.made.slot % 64 * 64, 8);
	else
		fz_scribble(t, o->srq.buf, 32ul << o->srq.made.shift % 8);
}

/* What lies in registered memory, queues of the user among it. */
static inline void do_scribble_data(struct fuzz_thread *t)
{
	uint64_t len, at = fz_data(t, &len);

	fz_scribble(t, (void *)(uintptr_t)at, len);
}

static inline void do_kick(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, F_UAR);
	unsigned int n = 1 + fz_below(t, 32);

	while (o && n--)
		fuzz_kick(t, o->rc, fz_below(t, 64));
}

#endif
