// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * post_recv.c: build receive WQEs.
 */
#include "wqe.h"

/* The sentinel, if there is one, is signed, what lies behind it is not. */
static void sign_wqe(const struct vhca_rq *rq, struct vhca_wqe_recv_head *head)
{
	const struct vhca_wqe_data *data = (void *)head;
	uint32_t segs = rq->heads;

	while (segs < 1u << rq->sge_shift)
		if (!data[segs++].byte_count)
			break;
	*head = (struct vhca_wqe_recv_head) { 0 };
	head->signature = (uint8_t)~vhca_xor(head, segs * VHCA_WQE_SEG_SIZE);
}

static int build_wqe(const struct vhca_rq *rq, const struct ibv_recv_wr *wr)
{
	struct vhca_wqe_data *data = rq->buf + ((rq->pi & rq->mask) << rq->sge_shift);
	int err = vhca_wqe_recv(data + rq->heads, data + (1 << rq->sge_shift), wr);

	if (!err && rq->heads)
		sign_wqe(rq, (void *)data);
	return err;
}

static int post_one(struct vhca_rq *rq, const struct ibv_recv_wr *wr)
{
	uint16_t held = rq->pi - __atomic_load_n(&rq->ci, __ATOMIC_ACQUIRE);
	int err;

	if (held >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	err = build_wqe(rq, wr);
	if (err)
		return err;
	rq->wr_id[rq->pi & rq->mask] = wr->wr_id;
	rq->pi++;
	return 0;
}

static void publish(struct vhca_qp *qp)
{
	struct vhca_qp_dbr *dbr = qp->slot.record;

	vhca_barrier_record();
	__atomic_store_n(&dbr->rq_pi, htobe32(qp->rq.pi & 0xffff), __ATOMIC_RELAXED);
}

/**
 * vhca_qp_tell - ring the doorbell for receives
 * @qp: QP with an SQ
 *
 * Doorbells are stored under the SQ's lock. Who holds it may be this thread, between
 * ibv_wr_start() and ibv_wr_complete(), so that it is not waited for: its holder finds
 * the wish when he has given it back.
 *
 * Return: 0, or EIO when the device is gone.
 */
int vhca_qp_tell(struct vhca_qp *qp)
{
	struct vhca_lock *lock = &qp->sq.lock;

	__atomic_store_n(&qp->tell, true, __ATOMIC_RELAXED);
	vhca_barrier_full();
	do {
		if (!lock->single && !vhca_trylock(lock))
			return 0;
		__atomic_store_n(&qp->tell, false, __ATOMIC_RELAXED);
		vhca_barrier_full();
		vhca_qp_doorbell(qp);
		vhca_unlock(lock);
		vhca_barrier_full();
	} while (__atomic_load_n(&qp->tell, __ATOMIC_RELAXED));
	return vhca_kick_if_needed(qp->ibv.context, &qp->slot);
}

/*
 * The device finds receive WQEs by the record when a message comes. Only while
 * it flushes does it want to be told: it set rq_watch, then looked at rq_pi; we
 * stored rq_pi and now look at rq_watch. One of the two sees the other.
 */
static int tell_watcher(struct vhca_qp *qp)
{
	const struct vhca_qp_dbr *dbr = qp->slot.record;

	vhca_barrier_full();
	if (__builtin_expect(!__atomic_load_n(&dbr->rq_watch, __ATOMIC_RELAXED), 1))
		return 0;
	return vhca_qp_tell(qp);
}

int vhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct ibv_recv_wr *first = wr;
	int err = 0;

	if (!qp->rq.buf ||
	    __atomic_load_n(&ibqp->state, __ATOMIC_RELAXED) == IBV_QPS_RESET) {
		*bad_wr = wr;
		return EINVAL;
	}
	vhca_lock(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = post_one(&qp->rq, wr);
		if (err)
			break;
	}
	if (wr != first)
		publish(qp);
	vhca_unlock(&qp->rq.lock);

	if (err)
		*bad_wr = wr;
	if (wr != first && tell_watcher(qp)) {
		/* The device is gone: none of them is ever used. */
		*bad_wr = first;
		return EIO;
	}
	return err;
}
