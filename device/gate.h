/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What gate.c and step.c share: who is held, and letting one thing go.
 */
#ifndef VDEV_GATE_H
#define VDEV_GATE_H

#include "vdev.h"

/** vdev_hold_set() - hold a gate, or not; the lock of what it belongs to is held */
void vdev_hold_set(struct vdev *dev, bool *hold, bool on);

/** vdev_stage_held() - is a stage held in all of the function? */
static inline bool vdev_stage_held(struct vdev *dev, enum vdev_stage stage)
{
	return READ_ONCE(dev->faults.hold[stage]);
}

/** vdev_eq_find() - EQ by number; the caller is in a read section of vdev_srcu */
static inline struct vdev_eq *vdev_eq_find(struct vdev *dev, u32 eqn)
{
	return eqn < VDEV_MAX_EQ ? srcu_dereference(dev->eqs[eqn], &vdev_srcu) : NULL;
}

/* Does a hold keep the next thing of it back? Its lock is held. */
bool vdev_wqe_held(struct vdev_qp *qp);
bool vdev_cqe_held(struct vdev_cq *cq);
bool vdev_eqe_held(struct vdev_eq *eq, struct vdev_cq *cq);
bool vdev_msix_held(struct vdev_eq *eq);

/**
 * vdev_wqe_waits() - when the WQE came that waits at the QP's gate, or by a rule
 *
 * As others count; 0: none. send.lock held.
 */
u64 vdev_wqe_waits(struct vdev_qp *qp);

/** vdev_wqe_pass() - let the QP's WQE go, if it waits; false when it does not */
bool vdev_wqe_pass(struct vdev_qp *qp);

/** vdev_eqe_of() - the oldest EQE that waits for a CQ; eq->lock held */
struct vdev_held *vdev_eqe_of(struct vdev_eq *eq, u32 cqn);

/** vdev_eqe_next() - take out the oldest that may pass; with @step that of @cqn, 0: of any */
struct vdev_held *vdev_eqe_next(struct vdev_eq *eq, u32 cqn, bool step);

/** vdev_eqe_post() - post it; false when there is no room, and it waits on */
bool vdev_eqe_post(struct vdev_eq *eq, struct vdev_held *held);

/** vdev_msix_pass() - send the message that waits, if it may or @step; false when not */
bool vdev_msix_pass(struct vdev_eq *eq, bool step);

/*
 * No rule, or not this one, is a reason to wait any longer; 0: no rule, of any CQ. The
 * lock is held.
 */
void vdev_held_free(struct vdev_gate *gate, u32 rule, u32 cqn);
void vdev_msix_free(struct vdev_eq *eq, u32 rule);

#endif
