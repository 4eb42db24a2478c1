/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wqe.h: write the segments of WQEs. What ibv_post_send() takes from a work request
 * and the calls of struct ibv_qp_ex get as arguments ends up here.
 *
 * A send WQE is begun at the queue's producer index, gets its segments one after
 * the other, and exists from vhca_wqe_finish() on: until then nothing has changed.
 * The SQ's lock is held.
 */
#ifndef VHCA_WQE_H
#define VHCA_WQE_H

#include "vhca_verbs.h"

#define VHCA_SEGS_PER_WQEBB	(VHCA_WQEBB_SIZE / VHCA_WQE_SEG_SIZE)

/**
 * struct vhca_wqe - a send WQE that is being written
 * @sq: queue.
 * @at: byte offset in the ring of the next segment.
 * @segs: segments so far.
 *
 * Segments of more than 16 bytes come where they cannot straddle the ring's end: in
 * the first basic block.
 */
struct vhca_wqe {
	struct vhca_sq *sq;
	uint32_t at;
	uint32_t segs;
};

/* The next @n segments. */
static inline void *vhca_wqe_take(struct vhca_wqe *wqe, uint32_t n)
{
	void *seg = wqe->sq->buf + wqe->at;

	wqe->at = (wqe->at + n * VHCA_WQE_SEG_SIZE) & (wqe->sq->size - 1);
	wqe->segs += n;
	return seg;
}

/* Where the WQE at the producer index starts. */
static inline uint32_t vhca_wqe_start(const struct vhca_sq *sq)
{
	return (sq->pi * VHCA_WQEBB_SIZE) & (sq->size - 1);
}

/**
 * vhca_wqe_begin - begin a WQE, with room for its control segment
 * @wqe: set up
 * @sq: queue, of which vhca_sq_full() is false
 *
 * Return: the segment that names the destination of a datagram or an XRC message,
 * for vhca_seg_dgram() or vhca_seg_xrc() to fill; of no use in other QPs.
 */
static inline void *vhca_wqe_begin(struct vhca_wqe *wqe, struct vhca_sq *sq)
{
	*wqe = (struct vhca_wqe) { .sq = sq, .at = vhca_wqe_start(sq) };
	vhca_wqe_take(wqe, 1);
	return vhca_wqe_take(wqe, sq->dest_segs);
}

static inline bool vhca_sq_full(const struct vhca_sq *sq)
{
	return sq->posted - __atomic_load_n(&sq->done, __ATOMIC_ACQUIRE) >= sq->max_wr;
}

static inline void vhca_seg_xrc(struct vhca_wqe_xrc *seg, uint32_t srqn)
{
	*seg = (struct vhca_wqe_xrc) { .srqn = htobe32(srqn) };
}

static inline void vhca_seg_dgram(struct vhca_wqe_dgram *seg, const struct vhca_ah *ah,
				  uint32_t qpn, uint32_t qkey)
{
	*seg = ah->dgram;
	seg->dest_qpn = htobe32(qpn);
	seg->qkey = htobe32(qkey);
}

/* May a datagram from @qp go to @qpn by @ibah? */
static inline bool vhca_dgram_ok(const struct vhca_qp *qp, const struct ibv_ah *ibah,
				 uint32_t qpn)
{
	return ibah && ibah->context == qp->ibv.context &&
	       ibah->pd->handle == qp->ibv.pd->handle && qpn <= VHCA_QPN_MASK;
}

static inline void vhca_wqe_raddr(struct vhca_wqe *wqe, uint64_t addr, uint32_t rkey)
{
	struct vhca_wqe_raddr *seg = vhca_wqe_take(wqe, 1);

	*seg = (struct vhca_wqe_raddr) {
		.addr = htobe64(addr),
		.rkey = htobe32(rkey),
	};
}

static inline void vhca_wqe_atomic(struct vhca_wqe *wqe, uint64_t swap_add, uint64_t compare)
{
	struct vhca_wqe_atomic *seg = vhca_wqe_take(wqe, 1);

	*seg = (struct vhca_wqe_atomic) {
		.swap_add = htobe64(swap_add),
		.compare = htobe64(compare),
	};
}

/**
 * vhca_wqe_bind - bind segment
 * @wqe: WQE
 * @mw: window
 * @new_rkey: its key from then on
 * @info: what it is bound to; no MR and no length: nothing
 *
 * Return: 0 or EINVAL.
 */
static inline int vhca_wqe_bind(struct vhca_wqe *wqe, const struct ibv_mw *mw, uint32_t new_rkey,
				const struct ibv_mw_bind_info *info)
{
	struct vhca_wqe_bind *seg;

	if (!mw || (!info->mr && info->length))
		return EINVAL;
	seg = vhca_wqe_take(wqe, sizeof(*seg) / VHCA_WQE_SEG_SIZE);
	*seg = (struct vhca_wqe_bind) {
		.rkey = htobe32(mw->rkey),
		.new_rkey = htobe32(new_rkey),
		.lkey = htobe32(info->mr ? info->mr->lkey : 0),
		/* Nobody is local to a window; programs say local write all the same. */
		.access = htobe32(info->mw_access_flags & ~(uint32_t)IBV_ACCESS_LOCAL_WRITE),
		.addr = htobe64(info->addr),
		.length = htobe64(info->length),
	};
	return 0;
}

/* One SGE that is not empty. EINVAL: it is too long. */
static inline int vhca_seg_data(struct vhca_wqe_data *seg, const struct ibv_sge *sge)
{
	if (sge->length & VHCA_WQE_INLINE)
		return EINVAL;
	seg->byte_count = htobe32(sge->length);
	seg->lkey = htobe32(sge->lkey);
	seg->addr = htobe64(sge->addr);
	return 0;
}

/* SGEs, without the empty ones. Returns 0 or EINVAL. */
static inline int vhca_wqe_sges(struct vhca_wqe *wqe, const struct ibv_sge *sge, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sge[i].length && vhca_seg_data(vhca_wqe_take(wqe, 1), &sge[i]))
			return EINVAL;
	return 0;
}

/**
 * struct vhca_inline - an inline payload that is being copied
 * @at: byte offset in the ring where the next byte goes
 * @total: bytes so far
 */
struct vhca_inline {
	uint32_t at;
	uint32_t total;
};

/* Behind the segments that there are. */
static inline void vhca_inline_begin(struct vhca_inline *inl, const struct vhca_wqe *wqe)
{
	*inl = (struct vhca_inline) { .at = wqe->at + sizeof(struct vhca_wqe_inline) };
}

/* Append bytes, wrapping at the ring's end. EINVAL: more than max_inline. */
static inline int vhca_inline_add(struct vhca_inline *inl, struct vhca_sq *sq, const void *from,
				  size_t len)
{
	uint32_t room = sq->size - inl->at;

	if (len > sq->max_inline - inl->total)
		return EINVAL;
	inl->total += (uint32_t)len;
	if (len >= room) {
		memcpy(sq->buf + inl->at, from, room);
		from = (const char *)from + room;
		len -= room;
		inl->at = 0;
	}
	memcpy(sq->buf + inl->at, from, len);
	inl->at += (uint32_t)len;
	return 0;
}

/* The head and the segments of the payload; there are none when it is empty. */
static inline void vhca_inline_end(const struct vhca_inline *inl, struct vhca_wqe *wqe)
{
	struct vhca_wqe_inline *head = (void *)(wqe->sq->buf + wqe->at);
	uint32_t len = sizeof(*head) + inl->total;

	if (!inl->total)
		return;
	head->byte_count = htobe32(VHCA_WQE_INLINE | inl->total);
	vhca_wqe_take(wqe, (len + VHCA_WQE_SEG_SIZE - 1) / VHCA_WQE_SEG_SIZE);
}

static inline uint8_t vhca_wqe_flags(const struct vhca_qp *qp, unsigned int send_flags)
{
	uint8_t flags = 0;

	if (qp->sig_all || send_flags & IBV_SEND_SIGNALED)
		flags |= VHCA_WQE_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= VHCA_WQE_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= VHCA_WQE_FENCE;
	return flags;
}

/* Sign a WQE that is complete but for that, around the end of the ring. */
static inline void vhca_wqe_sign(const struct vhca_wqe *wqe, struct vhca_wqe_ctrl *ctrl,
				 uint32_t at)
{
	uint32_t len = wqe->segs * VHCA_WQE_SEG_SIZE;
	uint32_t n = vhca_min(len, wqe->sq->size - at);

	ctrl->signature = (uint8_t)~(vhca_xor(ctrl, n) ^ vhca_xor(wqe->sq->buf, len - n));
}

/**
 * vhca_wqe_finish - write the control segment, count the WQE as posted
 * @wqe: WQE with all its segments
 * @qp: its QP
 * @opcode: enum vhca_wqe_opcode
 * @wc_opcode: enum ibv_wc_opcode of its completion
 * @wr_id: for its completion
 * @send_flags: enum ibv_send_flags
 * @imm: immediate data, or the rkey of the opcodes that end in _INV
 */
static inline void vhca_wqe_finish(const struct vhca_wqe *wqe, struct vhca_qp *qp,
				   uint32_t opcode, uint32_t wc_opcode, uint64_t wr_id,
				   unsigned int send_flags, __be32 imm)
{
	struct vhca_sq *sq = wqe->sq;
	uint32_t at = vhca_wqe_start(sq);
	struct vhca_wqe_ctrl *ctrl = (void *)(sq->buf + at);
	struct vhca_send_info *info = &sq->info[at / VHCA_WQEBB_SIZE];

	*ctrl = (struct vhca_wqe_ctrl) {
		.idx_opcode = htobe32((sq->pi & 0xffff) << VHCA_WQE_IDX_SHIFT | opcode),
		.qpn_ds = htobe32(qp->ibv.qp_num << VHCA_WQE_QPN_SHIFT | wqe->segs),
		.flags = vhca_wqe_flags(qp, send_flags),
		.imm = imm,
	};
	if (qp->flags & VHCA_QP_F_SIGNATURE)
		vhca_wqe_sign(wqe, ctrl, at);
	info->wr_id = wr_id;
	info->seq = sq->posted++;
	info->opcode = wc_opcode;
	sq->pi += (wqe->segs + VHCA_SEGS_PER_WQEBB - 1) / VHCA_SEGS_PER_WQEBB;
}

/**
 * vhca_wqe_recv - data segments of a receive WQE
 * @data: first data segment
 * @end: behind the last for which there is room
 * @wr: work request, with no more SGEs than that
 *
 * Return: 0 or EINVAL.
 */
static inline int vhca_wqe_recv(struct vhca_wqe_data *data, const struct vhca_wqe_data *end,
				const struct ibv_recv_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		if (vhca_seg_data(data++, &wr->sg_list[i]))
			return EINVAL;
	}
	if (data != end)
		*data = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
	return 0;
}

#endif
