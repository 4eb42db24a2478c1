// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wr.c: post send work requests by calls, one for each piece: the builders of
 * struct ibv_qp_ex.
 *
 * A builder begins a WQE, setters add to it, and the next builder or wr_complete()
 * finishes it. The queue's lock is held from wr_start() on. Nobody but the library
 * sees the WQEs before wr_complete() publishes them all; what went wrong on the way
 * is told there, and the producer index is put back where it was.
 */
#include <stdlib.h>

#include "wqe.h"

#define WR_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
			 IBV_SEND_INLINE)

enum data {
	DATA_NONE,	/* none */
	DATA_ONE,	/* one SGE, which must be set */
	DATA_SGES,	/* SGEs */
	DATA_ANY,	/* SGEs or an inline payload */
};

struct wr_op {
	uint64_t flag;			/* enum ibv_qp_create_send_ops_flags */
	uint8_t opcode;			/* enum vhca_wqe_opcode */
	uint8_t wc_opcode;		/* enum ibv_wc_opcode */
	enum data data;
};

#define OP(bit, op, wc, what) \
	{ IBV_QP_EX_WITH_ ## bit, VHCA_OP_ ## op, IBV_WC_ ## wc, DATA_ ## what }

static const struct wr_op op_write = OP(RDMA_WRITE, RDMA_WRITE, RDMA_WRITE, ANY);
static const struct wr_op op_write_imm =
	OP(RDMA_WRITE_WITH_IMM, RDMA_WRITE_IMM, RDMA_WRITE, ANY);
static const struct wr_op op_send = OP(SEND, SEND, SEND, ANY);
static const struct wr_op op_send_imm = OP(SEND_WITH_IMM, SEND_IMM, SEND, ANY);
static const struct wr_op op_send_inv = OP(SEND_WITH_INV, SEND_INV, SEND, ANY);
static const struct wr_op op_read = OP(RDMA_READ, RDMA_READ, RDMA_READ, SGES);
static const struct wr_op op_cmp_swp = OP(ATOMIC_CMP_AND_SWP, ATOMIC_CS, COMP_SWAP, ONE);
static const struct wr_op op_fetch_add = OP(ATOMIC_FETCH_AND_ADD, ATOMIC_FA, FETCH_ADD, ONE);
static const struct wr_op op_local_inv = OP(LOCAL_INV, LOCAL_INV, LOCAL_INV, NONE);
static const struct wr_op op_bind = OP(BIND_MW, BIND_MW, BIND_MW, NONE);

#define DATAGRAM_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define CONNECTED_OPS	(DATAGRAM_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | \
			 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define RELIABLE_OPS	(CONNECTED_OPS | IBV_QP_EX_WITH_RDMA_READ | \
			 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/**
 * struct vhca_wr - a QP's work requests that are not published yet
 * @ops: what the QP was created for.
 * @pi: the SQ's producer index at the start.
 * @posted: and its count of WRs.
 * @err: first thing that went wrong.
 * @op: of the WQE that is being built; NULL: none is.
 * @wqe: that WQE.
 * @dest: its destination segment while that is not set; NULL.
 * @data: its data was set.
 * @flags: enum ibv_send_flags.
 * @wr_id: for its completion.
 * @imm: for its control segment.
 */
struct vhca_wr {
	uint64_t ops;
	uint32_t pi;
	uint32_t posted;
	int err;
	const struct wr_op *op;
	struct vhca_wqe wqe;
	void *dest;
	bool data;
	unsigned int flags;
	uint64_t wr_id;
	__be32 imm;
};

static struct vhca_qp *ex_to_vqp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct vhca_qp, ex);
}

static void wr_fail(struct vhca_wr *wr, int err)
{
	if (!wr->err)
		wr->err = err;
}

/* The WQE that is being built, if one is, has all that it needs, or something fails. */
static void wr_end(struct vhca_qp *qp)
{
	struct vhca_wr *wr = qp->wr;
	const struct wr_op *op = wr->op;

	if (!op || wr->err)
		return;
	wr->op = NULL;
	if (wr->dest || (op->data == DATA_ONE && !wr->data))
		wr_fail(wr, EINVAL);
	else
		vhca_wqe_finish(&wr->wqe, qp, op->opcode, op->wc_opcode, wr->wr_id, wr->flags,
				wr->imm);
}

static int check_begin(const struct vhca_qp *qp, const struct wr_op *op)
{
	if (!(qp->wr->ops & op->flag) || qp->ex.wr_flags & ~WR_FLAGS)
		return EINVAL;
	return vhca_sq_full(&qp->sq) ? ENOMEM : 0;
}

/*
 * Returns the WQE to which the builder adds its segments, or NULL. That the payload
 * is inline is told by its setter, whatever wr_flags say of it.
 */
static struct vhca_wqe *wr_begin(struct ibv_qp_ex *ex, const struct wr_op *op, __be32 imm)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	struct vhca_wr *wr = qp->wr;
	void *dest;

	wr_end(qp);
	if (!wr->err)
		wr->err = check_begin(qp, op);
	if (wr->err)
		return NULL;
	dest = vhca_wqe_begin(&wr->wqe, &qp->sq);
	wr->dest = qp->sq.dest_segs ? dest : NULL;
	wr->op = op;
	wr->data = false;
	wr->flags = ex->wr_flags;
	wr->wr_id = ex->wr_id;
	wr->imm = imm;
	return &wr->wqe;
}

static void wr_begin_rdma(struct ibv_qp_ex *ex, const struct wr_op *op, uint32_t rkey,
			  uint64_t addr, __be32 imm)
{
	struct vhca_wqe *wqe = wr_begin(ex, op, imm);

	if (wqe)
		vhca_wqe_raddr(wqe, addr, rkey);
}

static void wr_begin_atomic(struct ibv_qp_ex *ex, const struct wr_op *op, uint32_t rkey,
			    uint64_t addr, uint64_t swap_add, uint64_t compare)
{
	struct vhca_wqe *wqe = wr_begin(ex, op, 0);

	if (!wqe)
		return;
	vhca_wqe_raddr(wqe, addr, rkey);
	vhca_wqe_atomic(wqe, swap_add, compare);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, &op_send, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	wr_begin(ex, &op_send_imm, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, &op_send_inv, htobe32(rkey));
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	wr_begin_rdma(ex, &op_write, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	wr_begin_rdma(ex, &op_write_imm, rkey, addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	wr_begin_rdma(ex, &op_read, rkey, addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			      uint64_t compare, uint64_t swap)
{
	wr_begin_atomic(ex, &op_cmp_swp, rkey, addr, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	wr_begin_atomic(ex, &op_fetch_add, rkey, addr, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, &op_local_inv, htobe32(rkey));
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct vhca_wqe *wqe = wr_begin(ex, &op_bind, 0);

	if (!wqe)
		return;
	wr_fail(ex_to_vqp(ex)->wr, mw && mw->type != IBV_MW_TYPE_2 ?
				   EINVAL : vhca_wqe_bind(wqe, mw, rkey, info));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	wr_fail(ex_to_vqp(ex)->wr, EINVAL);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			    const void *value)
{
	(void)rkey;
	(void)addr;
	(void)value;
	wr_fail(ex_to_vqp(ex)->wr, EINVAL);
}

/* May data of this kind be set now, and is it the first? */
static bool wr_takes(struct vhca_wr *wr, bool ok)
{
	if (wr->err)
		return false;
	if (!wr->op || wr->data || !ok) {
		wr_fail(wr, EINVAL);
		return false;
	}
	wr->data = true;
	return true;
}

static bool takes_sges(const struct vhca_qp *qp, size_t n)
{
	const struct wr_op *op = qp->wr->op;

	if (!op || op->data == DATA_NONE)
		return false;
	return op->data == DATA_ONE ? n == 1 : n <= qp->sq.max_sge;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	struct vhca_wr *wr = qp->wr;

	if (wr_takes(wr, takes_sges(qp, n)))
		wr_fail(wr, vhca_wqe_sges(&wr->wqe, sge, (uint32_t)n));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n,
				    const struct ibv_data_buf *buf)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	struct vhca_wr *wr = qp->wr;
	struct vhca_inline inl;
	int err = 0;
	size_t i;

	if (!wr_takes(wr, wr->op && wr->op->data == DATA_ANY))
		return;
	vhca_inline_begin(&inl, &wr->wqe);
	for (i = 0; i < n && !err; i++)
		if (buf[i].length)
			err = vhca_inline_add(&inl, &qp->sq, buf[i].addr, buf[i].length);
	vhca_inline_end(&inl, &wr->wqe);
	wr_fail(wr, err);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* The destination segment, to be filled, once. */
static void *wr_take_dest(struct vhca_qp *qp, enum ibv_qp_type type, bool ok)
{
	struct vhca_wr *wr = qp->wr;
	void *dest = wr->dest;

	if (wr->err)
		return NULL;
	if (!wr->op || !dest || qp->ibv.qp_type != type || !ok) {
		wr_fail(wr, EINVAL);
		return NULL;
	}
	wr->dest = NULL;
	return dest;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	void *dest = wr_take_dest(qp, IBV_QPT_UD, vhca_dgram_ok(qp, ah, qpn));

	if (dest)
		vhca_seg_dgram(dest, to_vah(ah), qpn, qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	void *dest = wr_take_dest(ex_to_vqp(ex), IBV_QPT_XRC_SEND, true);

	if (dest)
		vhca_seg_xrc(dest, srqn);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	struct vhca_wr *wr = qp->wr;

	vhca_lock(&qp->sq.lock);
	wr->pi = qp->sq.pi;
	wr->posted = qp->sq.posted;
	wr->err = vhca_may_send(qp) ? 0 : EINVAL;
	wr->op = NULL;
}

static void wr_undo(struct vhca_qp *qp)
{
	qp->sq.pi = qp->wr->pi;
	qp->sq.posted = qp->wr->posted;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vhca_qp *qp = ex_to_vqp(ex);
	const struct vhca_slot *slot = NULL;
	struct vhca_wr *wr = qp->wr;
	int err;

	wr_end(qp);
	err = wr->err;
	if (err)
		wr_undo(qp);
	else if (qp->sq.pi != wr->pi)
		slot = vhca_sq_publish(qp, wr->pi);
	vhca_unlock(&qp->sq.lock);
	return vhca_qp_kick(qp, slot) ?: err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vhca_qp *qp = ex_to_vqp(ex);

	wr_undo(qp);
	vhca_unlock(&qp->sq.lock);
	vhca_qp_kick(qp, NULL);
}

static uint64_t ops_of_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return RELIABLE_OPS;
	case IBV_QPT_UC:
		return CONNECTED_OPS;
	case IBV_QPT_UD:
		return DATAGRAM_OPS;
	default:
		return 0;
	}
}

/**
 * vhca_wr_init - let a QP be posted to by calls
 * @qp: new QP
 * @type: of it
 * @ops: enum ibv_qp_create_send_ops_flags that it was asked to have
 *
 * A builder that it was not asked to have is there, and fails.
 *
 * Return: 0, ENOMEM, or EOPNOTSUPP: a QP of this type has no such operation.
 */
int vhca_wr_init(struct vhca_qp *qp, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if (ops & ~ops_of_type(type))
		return EOPNOTSUPP;
	qp->wr = calloc(1, sizeof(*qp->wr));
	if (!qp->wr)
		return ENOMEM;
	qp->wr->ops = ops;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	return 0;
}

VHCA_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct vhca_qp *qp = to_vqp(ibqp);

	return qp->wr ? &qp->ex : vhca_null(EOPNOTSUPP);
}
