// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * post_send.c: build send WQEs and ring the QP's doorbell.
 *
 * A WQE is a control segment, in UD and XRC QPs one that names the destination, and
 * what the opcode's builder puts behind. A further opcode is a line in send_ops[]
 * and, when it needs a segment of its own, a builder.
 */
#include "wqe.h"

#define SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
			 IBV_SEND_INLINE)

enum imm { IMM_NONE, IMM_DATA, IMM_RKEY };

struct send_op {
	uint8_t opcode;			/* enum vhca_wqe_opcode */
	uint8_t wc_opcode;		/* enum ibv_wc_opcode */
	uint8_t imm;			/* enum imm: what the WR carries there */
	uint16_t qp_types;		/* bit n: for QPs of type n */
	int (*build)(struct vhca_wqe *wqe, const struct ibv_send_wr *wr);
};

static int build_inline(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	struct vhca_inline inl;
	int i;

	vhca_inline_begin(&inl, wqe);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length && vhca_inline_add(&inl, wqe->sq, (void *)(uintptr_t)sge->addr,
						   sge->length))
			return EINVAL;
	}
	vhca_inline_end(&inl, wqe);
	return 0;
}

static int build_sges(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	return vhca_wqe_sges(wqe, wr->sg_list, (uint32_t)wr->num_sge);
}

static int build_payload(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE ? build_inline(wqe, wr) : build_sges(wqe, wr);
}

static int build_write(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	vhca_wqe_raddr(wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	return build_payload(wqe, wr);
}

static int build_read(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return EINVAL;
	vhca_wqe_raddr(wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	return build_sges(wqe, wr);
}

static int build_atomic(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	bool cas = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	/* More SGEs would not fit the WQE that the queue was laid out for. */
	if (wr->send_flags & IBV_SEND_INLINE || wr->num_sge != 1)
		return EINVAL;
	vhca_wqe_raddr(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
	vhca_wqe_atomic(wqe, cas ? wr->wr.atomic.swap : wr->wr.atomic.compare_add,
			cas ? wr->wr.atomic.compare_add : 0);
	return build_sges(wqe, wr);
}

/* Nothing is moved: what would have been is a mistake. */
static int build_nothing(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	(void)wqe;
	return wr->num_sge || wr->send_flags & IBV_SEND_INLINE ? EINVAL : 0;
}

static int build_bind(struct vhca_wqe *wqe, const struct ibv_send_wr *wr)
{
	return build_nothing(wqe, wr) ? EINVAL :
	       vhca_wqe_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

#define RELIABLE	(1 << IBV_QPT_RC | 1 << IBV_QPT_XRC_SEND)
#define CONNECTED	(RELIABLE | 1 << IBV_QPT_UC)
#define ALL		(CONNECTED | 1 << IBV_QPT_UD)

#define OP(op, wc, imm, types, build) \
	{ VHCA_OP_ ## op, IBV_WC_ ## wc, IMM_ ## imm, types, build_ ## build }

static const struct send_op send_ops[] = {
	[IBV_WR_SEND]			= OP(SEND, SEND, NONE, ALL, payload),
	[IBV_WR_SEND_WITH_IMM]		= OP(SEND_IMM, SEND, DATA, ALL, payload),
	[IBV_WR_SEND_WITH_INV]		= OP(SEND_INV, SEND, RKEY, CONNECTED, payload),
	[IBV_WR_RDMA_WRITE]		= OP(RDMA_WRITE, RDMA_WRITE, NONE, CONNECTED, write),
	[IBV_WR_RDMA_WRITE_WITH_IMM]	= OP(RDMA_WRITE_IMM, RDMA_WRITE, DATA, CONNECTED, write),
	[IBV_WR_RDMA_READ]		= OP(RDMA_READ, RDMA_READ, NONE, RELIABLE, read),
	[IBV_WR_ATOMIC_CMP_AND_SWP]	= OP(ATOMIC_CS, COMP_SWAP, NONE, RELIABLE, atomic),
	[IBV_WR_ATOMIC_FETCH_AND_ADD]	= OP(ATOMIC_FA, FETCH_ADD, NONE, RELIABLE, atomic),
	[IBV_WR_LOCAL_INV]		= OP(LOCAL_INV, LOCAL_INV, RKEY, CONNECTED, nothing),
	[IBV_WR_BIND_MW]		= OP(BIND_MW, BIND_MW, NONE, CONNECTED, bind),
};

/* Types of QPs that take no such opcode, or that there is none of, have no bit. */
static const struct send_op *find_op(const struct vhca_qp *qp, const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= ARRAY_SIZE(send_ops) ||
	    !(send_ops[wr->opcode].qp_types >> qp->ibv.qp_type & 1))
		return NULL;
	return &send_ops[wr->opcode];
}

static __be32 op_imm(const struct send_op *op, const struct ibv_send_wr *wr)
{
	switch (op->imm) {
	case IMM_DATA:
		return wr->imm_data;
	case IMM_RKEY:
		return htobe32(wr->invalidate_rkey);
	default:
		return 0;
	}
}

/* Where the message goes, in QPs that are not told when they are connected. */
static int build_dest(struct vhca_qp *qp, void *seg, const struct ibv_send_wr *wr)
{
	if (qp->ibv.qp_type == IBV_QPT_XRC_SEND) {
		vhca_seg_xrc(seg, wr->qp_type.xrc.remote_srqn);
		return 0;
	}
	if (!vhca_dgram_ok(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn))
		return EINVAL;
	vhca_seg_dgram(seg, to_vah(wr->wr.ud.ah), wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return 0;
}

/* Each type of windows is bound by its own call. */
static bool binds_other(const struct ibv_send_wr *wr, enum ibv_mw_type type)
{
	return wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw && wr->bind_mw.mw->type != type;
}

/* One WQE at the producer index. On an error nothing was posted. */
static int post_one(struct vhca_qp *qp, const struct ibv_send_wr *wr, enum ibv_mw_type type)
{
	const struct send_op *op = find_op(qp, wr);
	struct vhca_sq *sq = &qp->sq;
	struct vhca_wqe wqe;
	void *dest;
	int err;

	if (!op || binds_other(wr, type))
		return EINVAL;
	if (vhca_sq_full(sq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge ||
	    wr->send_flags & ~SEND_FLAGS)
		return EINVAL;
	dest = vhca_wqe_begin(&wqe, sq);
	err = sq->dest_segs ? build_dest(qp, dest, wr) : 0;
	/* The one that most WRs need is no call. */
	if (!err)
		err = op->build == build_payload ? build_payload(&wqe, wr) : op->build(&wqe, wr);
	if (err)
		return err;
	vhca_wqe_finish(&wqe, qp, op->opcode, op->wc_opcode, wr->wr_id, wr->send_flags,
			op_imm(op, wr));
	return 0;
}

/*
 * BlueFlame: a WQE in a doorbell line must not be found there when another is due that
 * begins like it. So there is none in either line when the one posted last was none.
 */
static void bf_clear(struct vhca_qp *qp)
{
	if (!qp->bf_used)
		return;
	vhca_slot_ring(&qp->bf, 0);
	qp->bf_used = false;
}

/* Nothing is announced any more. The SQ is locked. */
void vhca_qp_silence(struct vhca_qp *qp)
{
	bf_clear(qp);
	vhca_slot_ring(&qp->slot, 0);
}

/*
 * Store the WQE at @from, of one basic block, into the line whose turn it is, its first
 * eight bytes last. The device reads the record again when it has copied the line.
 */
static const struct vhca_slot *bf_store(struct vhca_qp *qp, uint32_t from)
{
	const struct vhca_slot *line = qp->bf_next ? &qp->bf : &qp->slot;
	const struct vhca_sq *sq = &qp->sq;
	const uint64_t *wqe = (void *)(sq->buf + ((from * VHCA_WQEBB_SIZE) & (sq->size - 1)));
	int i;

	vhca_barrier_doorbell();
	for (i = 1; i < VHCA_WQEBB_SIZE / (int)sizeof(*wqe); i++)
		__atomic_store_n(&line->doorbell[i], wqe[i], __ATOMIC_RELAXED);
	vhca_barrier_doorbell();
	__atomic_store_n(&line->doorbell[0], wqe[0], __ATOMIC_RELAXED);
	qp->bf_used |= qp->bf_next;
	qp->bf_next = !qp->bf_next;
	return line;
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
inline void vhca_qp_doorbell(struct vhca_qp *qp)
{
	const struct vhca_qp_dbr *dbr = qp->slot.record;
	uint64_t rq_pi = be32toh(__atomic_load_n(&dbr->rq_pi, __ATOMIC_RELAXED));
	uint64_t sq_pi = be32toh(__atomic_load_n(&dbr->sq_pi, __ATOMIC_RELAXED));

	vhca_barrier_doorbell();
	bf_clear(qp);
	vhca_slot_ring(&qp->slot, rq_pi << VHCA_DB_RQ_SHIFT | sq_pi << VHCA_DB_SQ_SHIFT |
				  (uint64_t)qp->ibv.qp_num << VHCA_DB_NUM_SHIFT);
}

/**
 * vhca_sq_publish - hand over what was posted
 * @qp: QP, its SQ locked
 * @from: producer index before the first of the WQEs
 *
 * Return: the slot that is to be kicked without the lock.
 */
inline const struct vhca_slot *vhca_sq_publish(struct vhca_qp *qp, uint32_t from)
{
	struct vhca_qp_dbr *dbr = qp->slot.record;

	vhca_barrier_record();
	__atomic_store_n(&dbr->sq_pi, htobe32(qp->sq.pi & 0xffff), __ATOMIC_RELAXED);
	if (qp->bf.uar && qp->sq.pi - from == 1)
		return bf_store(qp, from);
	vhca_qp_doorbell(qp);
	return &qp->slot;
}

/**
 * vhca_post_sends - post a list of WRs
 * @ibqp: QP
 * @wr: the first
 * @bad_wr: set to the first that was not posted, on an error
 * @type: of the windows that they may bind
 *
 * Return: 0 or an errno value.
 */
int vhca_post_sends(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		    enum ibv_mw_type type)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	const struct vhca_slot *slot = NULL;
	struct ibv_send_wr *first = wr;
	uint32_t from;
	int err = 0;

	if (!vhca_may_send(qp)) {
		*bad_wr = wr;
		return EINVAL;
	}
	vhca_lock(&qp->sq.lock);
	from = qp->sq.pi;
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr, type);
		if (err)
			break;
	}
	if (wr != first)
		slot = vhca_sq_publish(qp, from);
	vhca_unlock(&qp->sq.lock);

	if (err)
		*bad_wr = wr;
	if (vhca_qp_kick(qp, slot)) {
		/* The device is gone: none of them runs. */
		*bad_wr = first;
		return EIO;
	}
	return err;
}

int vhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return vhca_post_sends(ibqp, wr, bad_wr, IBV_MW_TYPE_2);
}

/* Segments that name the destination, behind the control segment. */
uint32_t vhca_send_dest_segs(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return VHCA_WQE_DGRAM_SEGS;
	case IBV_QPT_XRC_SEND:
		return sizeof(struct vhca_wqe_xrc) / VHCA_WQE_SEG_SIZE;
	default:
		return 0;
	}
}

/* Bytes before the SGEs or the inline payload, at most. */
uint32_t vhca_send_head_size(enum ibv_qp_type type)
{
	return sizeof(struct vhca_wqe_ctrl) + vhca_send_dest_segs(type) * VHCA_WQE_SEG_SIZE +
	       (type == IBV_QPT_UD ? 0 : sizeof(struct vhca_wqe_raddr));
}

/**
 * vhca_send_wqe_size - bytes of the largest send WQE of a queue
 * @type: of the QP
 * @max_sge: data segments in it
 * @max_inline: bytes of inline payload in it
 *
 * An atomic with its one SGE fits, too, and a bind.
 *
 * Return: a whole number of basic blocks.
 */
uint32_t vhca_send_wqe_size(enum ibv_qp_type type, uint32_t max_sge, uint32_t max_inline)
{
	uint32_t tail = sizeof(struct vhca_wqe_atomic) + sizeof(struct vhca_wqe_data);
	uint32_t size;

	tail = vhca_max(tail, max_sge * (uint32_t)sizeof(struct vhca_wqe_data));
	if (max_inline)
		tail = vhca_max(tail, (uint32_t)sizeof(struct vhca_wqe_inline) + max_inline);
	size = vhca_send_head_size(type) + tail;
	return (size + VHCA_WQEBB_SIZE - 1) & ~(VHCA_WQEBB_SIZE - 1u);
}
