// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * notify.c: arm a CQ.
 */
#include "vhca_verbs.h"

/*
 * An application that asks for any completion and then for a solicited one,
 * without an event in between, keeps the wider request: taking it back could
 * lose the wake-up that somebody waits for. And where unread CQEs have moved up over
 * those of a destroyed QP, the device does not know which of them are solicited: then it
 * is asked for any, and the event may be one too many.
 */
static uint32_t arm_mode(const struct vhca_cq *cq, uint32_t sn, uint32_t ci, int solicited_only)
{
	uint32_t moved = __atomic_load_n(&cq->moved, __ATOMIC_RELAXED);

	/* They are in the ring: what was moved long ago is not. */
	if (!solicited_only || moved - ci - 1 <= cq->mask)
		return 0;
	return (cq->armed >> VHCA_ARM_SN_SHIFT) == sn ? cq->armed & VHCA_ARM_SOLICITED :
							VHCA_ARM_SOLICITED;
}

static uint32_t arm_word(const struct vhca_cq *cq, int solicited_only)
{
	uint32_t sn = __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED);
	uint32_t ci = vhca_cq_ci(cq);

	return sn << VHCA_ARM_SN_SHIFT | arm_mode(cq, sn, ci, solicited_only) |
	       (ci & VHCA_CI_MASK);
}

/*
 * Store the arm word, then look at the next CQE. The device writes a CQE, then
 * looks at the arm word: one of the two sees the other. When it is us, the
 * doorbell asks the device to answer the arm at once.
 *
 * Others may poll meanwhile, so that the consumer index may be an old one, in the arm word
 * and when the CQE is looked at: then there is an event too many, or the device has gone
 * round the ring since the barrier, and has seen the arm word.
 *
 * Return: whether the doorbell was rung.
 */
static bool arm(struct vhca_cq *cq, int solicited_only)
{
	struct vhca_cq_dbr *dbr = cq->slot.record;

	cq->armed = arm_word(cq, solicited_only);
	__atomic_store_n(&dbr->arm, htobe32(cq->armed), __ATOMIC_RELAXED);
	vhca_barrier_full();
	if (!vhca_cq_look(cq, vhca_cq_ci(cq)))
		return false;
	vhca_barrier_doorbell();
	vhca_slot_ring(&cq->slot, (uint64_t)cq->armed << VHCA_DB_ARM_SHIFT |
				  (uint64_t)cq->ibv.handle << VHCA_DB_NUM_SHIFT);
	return true;
}

/**
 * vhca_cq_fired - an event of a CQ was read
 * @cq: CQ
 *
 * The next arm is a new one if the last has fired. It did not when the event came
 * by itself, or a second time.
 */
void vhca_cq_fired(struct vhca_cq *cq)
{
	const struct vhca_cq_dbr *dbr = cq->slot.record;
	uint32_t fired = be32toh(__atomic_load_n(&dbr->fired, __ATOMIC_RELAXED));

	__atomic_store_n(&cq->arm_sn, (fired + 1) & VHCA_ARM_SN_MASK, __ATOMIC_RELAXED);
}

int vhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vhca_cq *cq = to_vcq(ibcq);
	bool rung;

	vhca_lock(&cq->arm_lock);
	rung = arm(cq, solicited_only);
	vhca_unlock(&cq->arm_lock);
	return rung ? vhca_slot_kick(ibcq->context, &cq->slot) : 0;
}
