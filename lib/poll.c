// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * poll.c: take CQEs from the ring and turn them into work completions.
 */
#include "vhca_verbs.h"

/* The numbers of the wire format are those of the verbs. */
_Static_assert((int)VHCA_CQE_LOC_PROT_ERR == (int)IBV_WC_LOC_PROT_ERR, "status");
_Static_assert((int)VHCA_CQE_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR, "status");
_Static_assert((int)VHCA_CQE_MW_BIND_ERR == (int)IBV_WC_MW_BIND_ERR, "status");
_Static_assert((int)VHCA_CQE_LOC_ACCESS_ERR == (int)IBV_WC_LOC_ACCESS_ERR, "status");
_Static_assert((int)VHCA_CQE_REM_INV_REQ_ERR == (int)IBV_WC_REM_INV_REQ_ERR, "status");
_Static_assert((int)VHCA_CQE_REM_ACCESS_ERR == (int)IBV_WC_REM_ACCESS_ERR, "status");
_Static_assert((int)VHCA_CQE_REM_OP_ERR == (int)IBV_WC_REM_OP_ERR, "status");
_Static_assert((int)VHCA_CQE_RNR_RETRY_EXC_ERR == (int)IBV_WC_RNR_RETRY_EXC_ERR, "status");
_Static_assert((int)VHCA_CQE_TM_RNDV_INCOMPLETE == (int)IBV_WC_TM_RNDV_INCOMPLETE, "status");

/**
 * vhca_cq_look - a CQE, when it is there
 * @cq: CQ, locked, or locked against another ring
 * @index: of the CQE, not before the consumer index
 *
 * Return: the CQE, whose fields may now be read, or NULL.
 */
inline struct vhca_cqe *vhca_cq_look(const struct vhca_cq *cq, uint32_t index)
{
	struct vhca_cqe *cqe = &cq->ring[index & cq->mask];
	uint8_t ours = ((index >> cq->shift) & 1) ^ VHCA_CQE_OWNER;

	if ((__atomic_load_n(&cqe->owner, __ATOMIC_RELAXED) & VHCA_CQE_OWNER) != ours)
		return NULL;
	vhca_barrier_owner();
	return cqe;
}

/**
 * vhca_cq_peek - the next CQE, when there is one
 * @cq: CQ, locked
 *
 * Return: the CQE, whose fields may now be read, or NULL.
 */
struct vhca_cqe *vhca_cq_peek(struct vhca_cq *cq)
{
	return vhca_cq_look(cq, cq->ci);
}

/* Give the slots of all CQEs up to the consumer index back to the device. */
void vhca_cq_consumed(struct vhca_cq *cq)
{
	struct vhca_cq_dbr *dbr = cq->slot.record;

	vhca_barrier_consumed();
	__atomic_store_n(&dbr->ci, htobe32(cq->ci & VHCA_CI_MASK), __ATOMIC_RELAXED);
}

static struct vhca_qp *cqe_qp(struct vhca_cq *cq, const struct vhca_cqe *cqe)
{
	uint32_t qpn = be32toh(cqe->flags_qpn) & VHCA_QPN_MASK;
	struct vhca_qp *qp = cq->last_qp;

	if (qp && qp->ibv.qp_num == qpn)
		return qp;
	qp = vhca_num_find(&to_vctx(cq->ibv.context)->qps, qpn);
	cq->last_qp = qp;
	return qp;
}

/*
 * The stores of done and ci hand the WQE's entry in the queue's own record back
 * to posters: they pair with the acquiring loads there, and come last.
 */
static void retire_send(struct vhca_sq *sq, uint16_t index, struct vhca_retired *out)
{
	const struct vhca_send_info *info;

	info = &sq->info[index & (sq->size / VHCA_WQEBB_SIZE - 1)];
	out->wr_id = info->wr_id;
	out->opcode = info->opcode;
	/* Retires the unsignaled ones before it as well. */
	__atomic_store_n(&sq->done, info->seq + 1, __ATOMIC_RELEASE);
}

static enum ibv_wc_opcode recv_opcode(const struct vhca_cqe *cqe)
{
	return cqe->opcode == VHCA_CQE_RESP_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
}

/*
 * The message came in the CQE: copy it to where the receive WQE says. The device has
 * looked at the keys, and leaves it here only where our addresses are theirs.
 */
static void copy_out(const struct vhca_rq *rq, const struct vhca_cqe *cqe)
{
	uint32_t slot = be16toh(cqe->wqe_index) & rq->mask;
	const struct vhca_wqe_data *data = rq->buf + (slot << rq->sge_shift) + rq->heads;
	uint32_t left = be32toh(cqe->byte_len);
	const uint8_t *from = cqe->payload;

	for (; left; data++) {
		uint32_t n = vhca_min(left, be32toh(data->byte_count));

		memcpy((void *)(uintptr_t)be64toh(data->addr), from, n);
		from += n;
		left -= n;
	}
}

static void retire_recv(struct vhca_rq *rq, const struct vhca_cqe *cqe,
			struct vhca_retired *out)
{
	uint16_t index = be16toh(cqe->wqe_index);

	if (vhca_cqe_flags(cqe) & VHCA_CQE_F_PAYLOAD)
		copy_out(rq, cqe);

	out->wr_id = rq->wr_id[index & rq->mask];
	out->opcode = recv_opcode(cqe);
	__atomic_store_n(&rq->ci, (uint16_t)(index + 1), __ATOMIC_RELEASE);
}

/* By its own number: the QP of an XRC message may be that of another process. */
static int retire_srq(struct vhca_context *ctx, const struct vhca_cqe *cqe,
		      struct vhca_retired *out)
{
	struct vhca_srq *srq = vhca_num_find(&ctx->srqs, be32toh(cqe->srqn));

	if (!srq)
		return EIO;
	out->wr_id = vhca_srq_retire(srq, be16toh(cqe->wqe_index));
	out->opcode = recv_opcode(cqe);
	return 0;
}

/**
 * vhca_cqe_retire - find a CQE's WR and move the tail of its queue past it
 * @cq: CQ, locked
 * @cqe: from vhca_cq_peek()
 * @out: the WR
 *
 * Return: 0, or EIO for a CQE that belongs to no queue of this context.
 */
inline int vhca_cqe_retire(struct vhca_cq *cq, const struct vhca_cqe *cqe,
			   struct vhca_retired *out)
{
	struct vhca_qp *qp;

	if (vhca_cqe_flags(cqe) & VHCA_CQE_F_SRQ)
		return retire_srq(to_vctx(cq->ibv.context), cqe, out);
	qp = cqe_qp(cq, cqe);
	if (!qp)
		return EIO;
	if (cqe->opcode == VHCA_CQE_REQ)
		retire_send(&qp->sq, be16toh(cqe->wqe_index), out);
	else
		retire_recv(&qp->rq, cqe, out);
	return 0;
}

enum ibv_wc_status vhca_cqe_status(const struct vhca_cqe *cqe)
{
	return cqe->status <= IBV_WC_TM_RNDV_INCOMPLETE ? (enum ibv_wc_status)cqe->status :
							  IBV_WC_GENERAL_ERR;
}

unsigned int vhca_cqe_wc_flags(const struct vhca_cqe *cqe)
{
	uint32_t flags = vhca_cqe_flags(cqe);

	return (flags & VHCA_CQE_F_GRH ? IBV_WC_GRH : 0) |
	       (flags & VHCA_CQE_F_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & VHCA_CQE_F_INV ? IBV_WC_WITH_INV : 0);
}

/* Immediate data stays as it came; an rkey is a number of the host. */
__be32 vhca_cqe_imm(const struct vhca_cqe *cqe)
{
	return vhca_cqe_flags(cqe) & VHCA_CQE_F_INV ? be32toh(cqe->imm) : cqe->imm;
}

uint8_t vhca_cqe_sl(const struct vhca_cqe *cqe)
{
	return be32toh(cqe->src_qpn) >> VHCA_CQE_SL_SHIFT;
}

static void fill_wc(struct ibv_wc *wc, const struct vhca_cqe *cqe,
		    const struct vhca_retired *retired)
{
	wc->wr_id = retired->wr_id;
	wc->status = vhca_cqe_status(cqe);
	wc->vendor_err = cqe->vendor_err;
	wc->qp_num = be32toh(cqe->flags_qpn) & VHCA_QPN_MASK;
	wc->wc_flags = 0;
	if (wc->status != IBV_WC_SUCCESS)
		return;

	wc->opcode = retired->opcode;
	wc->wc_flags = vhca_cqe_wc_flags(cqe);
	wc->byte_len = be32toh(cqe->byte_len);
	wc->imm_data = vhca_cqe_imm(cqe);
	wc->src_qp = be32toh(cqe->src_qpn) & VHCA_QPN_MASK;
	wc->slid = be16toh(cqe->slid);
	wc->pkey_index = 0;
	wc->sl = vhca_cqe_sl(cqe);
	wc->dlid_path_bits = 0;
}

/* Take CQEs; there is one. */
static __attribute__((noinline)) int take_cqes(struct vhca_cq *cq, int num_entries,
					       struct ibv_wc *wc)
{
	struct vhca_retired retired;
	struct vhca_cqe *cqe;
	int n, err = 0;

	for (n = 0; n < num_entries; n++) {
		cqe = vhca_cq_peek(cq);
		if (!cqe)
			break;
		err = vhca_cqe_retire(cq, cqe, &retired);
		if (err)
			break;
		fill_wc(&wc[n], cqe, &retired);
		vhca_cq_advance(cq, cq->ci + 1);
	}
	if (n)
		vhca_cq_consumed(cq);
	return n || !err ? n : -err;
}

int vhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct vhca_cq *cq = to_vcq(ibcq);
	int n = 0;

	/* Most polls of a poller find nothing: for those all the rest is out of the way. */
	vhca_lock(&cq->lock);
	if (vhca_cq_peek(cq))
		n = take_cqes(cq, num_entries, wc);
	vhca_unlock(&cq->lock);
	return n;
}
