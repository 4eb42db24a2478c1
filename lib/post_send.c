// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * post_send.c: build send WQEs and ring the QP's doorbell.
 *
 * A WQE is a control segment and what the opcode's builder puts behind it. A
 * further opcode is a line in send_ops[] and, when it needs a segment of its
 * own, a builder.
 */
#include "vhca_verbs.h"

#define SEGS_PER_WQEBB	(VHCA_WQEBB_SIZE / VHCA_WQE_SEG_SIZE)

#define SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
			 IBV_SEND_INLINE)

/**
 * struct cursor - where the next segment of a WQE goes
 * @sq: queue
 * @at: byte offset in the ring; segments never straddle its end
 * @segs: segments written so far
 */
struct cursor {
	struct vhca_sq *sq;
	uint32_t at;
	uint32_t segs;
};

struct send_op {
	uint8_t opcode;			/* enum vhca_wqe_opcode, 0: no such operation */
	uint8_t wc_opcode;		/* enum ibv_wc_opcode */
	bool imm;			/* carries immediate data */
	int (*build)(struct cursor *cur, const struct ibv_send_wr *wr);
};

static void *next_seg(struct cursor *cur)
{
	void *seg = cur->sq->buf + cur->at;

	cur->at = (cur->at + VHCA_WQE_SEG_SIZE) & (cur->sq->size - 1);
	cur->segs++;
	return seg;
}

static int build_sges(struct cursor *cur, const struct ibv_send_wr *wr)
{
	struct vhca_wqe_data *data;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (sge->length & VHCA_WQE_INLINE)
			return EINVAL;
		data = next_seg(cur);
		data->byte_count = htobe32(sge->length);
		data->lkey = htobe32(sge->lkey);
		data->addr = htobe64(sge->addr);
	}
	return 0;
}

/* Copy into the ring from byte offset @at on, wrapping. Returns the offset behind. */
static uint32_t copy_in(struct vhca_sq *sq, uint32_t at, const void *from, uint32_t len)
{
	uint32_t room = sq->size - at;

	if (len >= room) {
		memcpy(sq->buf + at, from, room);
		from = (const char *)from + room;
		len -= room;
		at = 0;
	}
	memcpy(sq->buf + at, from, len);
	return at + len;
}

static int build_inline(struct cursor *cur, const struct ibv_send_wr *wr)
{
	struct vhca_wqe_inline *head = (void *)(cur->sq->buf + cur->at);
	uint32_t at = cur->at + sizeof(*head);
	uint32_t total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (sge->length > cur->sq->max_inline - total)
			return EINVAL;
		at = copy_in(cur->sq, at, (void *)(uintptr_t)sge->addr, sge->length);
		total += sge->length;
	}
	if (!total)
		return 0;
	head->byte_count = htobe32(VHCA_WQE_INLINE | total);
	cur->segs += (sizeof(*head) + total + VHCA_WQE_SEG_SIZE - 1) / VHCA_WQE_SEG_SIZE;
	return 0;
}

static int build_payload(struct cursor *cur, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE ? build_inline(cur, wr) : build_sges(cur, wr);
}

static void build_raddr(struct cursor *cur, uint64_t addr, uint32_t rkey)
{
	struct vhca_wqe_raddr *raddr = next_seg(cur);

	*raddr = (struct vhca_wqe_raddr) {
		.addr = htobe64(addr),
		.rkey = htobe32(rkey),
	};
}

static int build_write(struct cursor *cur, const struct ibv_send_wr *wr)
{
	build_raddr(cur, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	return build_payload(cur, wr);
}

static int build_read(struct cursor *cur, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return EINVAL;
	build_raddr(cur, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	return build_sges(cur, wr);
}

static int build_atomic(struct cursor *cur, const struct ibv_send_wr *wr)
{
	struct vhca_wqe_atomic *atomic;
	bool cas = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	/* More SGEs would not fit the WQE that the queue was laid out for. */
	if (wr->send_flags & IBV_SEND_INLINE || wr->num_sge != 1)
		return EINVAL;
	build_raddr(cur, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
	atomic = next_seg(cur);
	atomic->swap_add = htobe64(cas ? wr->wr.atomic.swap : wr->wr.atomic.compare_add);
	atomic->compare = htobe64(cas ? wr->wr.atomic.compare_add : 0);
	return build_sges(cur, wr);
}

#define OP(op, wc, imm, build)	{ VHCA_OP_ ## op, IBV_WC_ ## wc, imm, build_ ## build }

static const struct send_op send_ops[] = {
	[IBV_WR_SEND]			= OP(SEND, SEND, false, payload),
	[IBV_WR_SEND_WITH_IMM]		= OP(SEND_IMM, SEND, true, payload),
	[IBV_WR_RDMA_WRITE]		= OP(RDMA_WRITE, RDMA_WRITE, false, write),
	[IBV_WR_RDMA_WRITE_WITH_IMM]	= OP(RDMA_WRITE_IMM, RDMA_WRITE, true, write),
	[IBV_WR_RDMA_READ]		= OP(RDMA_READ, RDMA_READ, false, read),
	[IBV_WR_ATOMIC_CMP_AND_SWP]	= OP(ATOMIC_CS, COMP_SWAP, false, atomic),
	[IBV_WR_ATOMIC_FETCH_AND_ADD]	= OP(ATOMIC_FA, FETCH_ADD, false, atomic),
};

static const struct send_op *find_op(const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= ARRAY_SIZE(send_ops) || !send_ops[wr->opcode].opcode)
		return NULL;
	return &send_ops[wr->opcode];
}

static uint8_t wqe_flags(const struct vhca_qp *qp, const struct ibv_send_wr *wr)
{
	uint8_t flags = 0;

	if (qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED)
		flags |= VHCA_WQE_SIGNALED;
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= VHCA_WQE_SOLICITED;
	if (wr->send_flags & IBV_SEND_FENCE)
		flags |= VHCA_WQE_FENCE;
	return flags;
}

static int check_wr(const struct vhca_sq *sq, const struct ibv_send_wr *wr)
{
	if (sq->posted - __atomic_load_n(&sq->done, __ATOMIC_ACQUIRE) >= sq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge)
		return EINVAL;
	if (wr->send_flags & ~SEND_FLAGS)
		return EINVAL;
	return 0;
}

/* One WQE at the producer index. On an error nothing was posted. */
static int post_one(struct vhca_qp *qp, const struct ibv_send_wr *wr)
{
	struct vhca_sq *sq = &qp->sq;
	uint32_t at = (sq->pi * VHCA_WQEBB_SIZE) & (sq->size - 1);
	struct cursor cur = { .sq = sq, .at = at };
	const struct send_op *op = find_op(wr);
	struct vhca_send_info *info;
	struct vhca_wqe_ctrl *ctrl;
	int err;

	err = check_wr(sq, wr);
	if (err)
		return err;
	if (!op)
		return EINVAL;
	ctrl = next_seg(&cur);
	err = op->build(&cur, wr);
	if (err)
		return err;

	*ctrl = (struct vhca_wqe_ctrl) {
		.idx_opcode = htobe32((sq->pi & 0xffff) << VHCA_WQE_IDX_SHIFT | op->opcode),
		.qpn_ds = htobe32(qp->ibv.qp_num << VHCA_WQE_QPN_SHIFT | cur.segs),
		.flags = wqe_flags(qp, wr),
		.imm = op->imm ? wr->imm_data : 0,
	};
	info = &sq->info[at / VHCA_WQEBB_SIZE];
	info->wr_id = wr->wr_id;
	info->seq = sq->posted++;
	info->opcode = op->wc_opcode;
	sq->pi += (cur.segs + SEGS_PER_WQEBB - 1) / SEGS_PER_WQEBB;
	return 0;
}

/**
 * vhca_qp_doorbell - ring a QP's doorbell
 * @qp: QP, its SQ locked
 *
 * The doorbell carries both producer indices, and a device that watches it sees
 * only that it changed. So all doorbells of a QP are stored under one lock, and
 * carry what the records say at that moment: else a late store of older indices
 * could hide newer ones, or an index be announced before its record and then
 * not once more.
 */
void vhca_qp_doorbell(struct vhca_qp *qp)
{
	const struct vhca_qp_dbr *dbr = qp->slot.record;
	uint64_t rq_pi = be32toh(__atomic_load_n(&dbr->rq_pi, __ATOMIC_RELAXED));
	uint64_t sq_pi = be32toh(__atomic_load_n(&dbr->sq_pi, __ATOMIC_RELAXED));

	vhca_barrier_doorbell();
	vhca_slot_ring(&qp->slot, rq_pi << VHCA_DB_RQ_SHIFT | sq_pi << VHCA_DB_SQ_SHIFT |
				  (uint64_t)qp->ibv.qp_num << VHCA_DB_NUM_SHIFT);
}

static void publish(struct vhca_qp *qp)
{
	struct vhca_qp_dbr *dbr = qp->slot.record;

	vhca_barrier_record();
	__atomic_store_n(&dbr->sq_pi, htobe32(qp->sq.pi & 0xffff), __ATOMIC_RELAXED);
	vhca_qp_doorbell(qp);
}

static bool may_send(const struct vhca_qp *qp)
{
	enum ibv_qp_state state = __atomic_load_n(&qp->ibv.state, __ATOMIC_RELAXED);

	return state >= IBV_QPS_RTS && state <= IBV_QPS_ERR;
}

int vhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct ibv_send_wr *first = wr;
	int err = 0;

	if (!may_send(qp)) {
		*bad_wr = wr;
		return EINVAL;
	}
	vhca_lock(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (err)
			break;
	}
	if (wr != first)
		publish(qp);
	vhca_unlock(&qp->sq.lock);

	if (err)
		*bad_wr = wr;
	if (wr != first && vhca_slot_kick(ibqp->context, &qp->slot)) {
		/* The device is gone: none of them runs. */
		*bad_wr = first;
		return EIO;
	}
	return err;
}

/**
 * vhca_send_wqe_size - bytes of the largest send WQE of a queue
 * @max_sge: data segments in it
 * @max_inline: bytes of inline payload in it
 *
 * The largest is an RDMA WRITE or READ; an atomic with its one SGE fits a basic
 * block.
 *
 * Return: a whole number of basic blocks.
 */
uint32_t vhca_send_wqe_size(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t sges = max_sge * sizeof(struct vhca_wqe_data);
	uint32_t inl = max_inline ? sizeof(struct vhca_wqe_inline) + max_inline : 0;
	uint32_t size = VHCA_SEND_HEAD_SIZE + (sges > inl ? sges : inl);

	return (size + VHCA_WQEBB_SIZE - 1) & ~(VHCA_WQEBB_SIZE - 1u);
}
