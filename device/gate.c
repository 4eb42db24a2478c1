// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gates: what holds send WQEs, CQEs, EQEs of completions and MSI-X messages back, for a
 * time that a rule says or until somebody lets them go.
 *
 * What waits in a gate keeps its order, and what comes later waits behind it. At the
 * gate of a QP stands its next WQE, which was not taken in hand. One that a rule delays
 * is in hand, and its QP waits as it does for an answer.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "gate.h"

#define RETRY_NS	NSEC_PER_MSEC	/* an EQ is full, a message is on its way */

const char * const vdev_stage_names[VDEV_STAGES] = { "wqe", "cqe", "eqe", "msix" };

void vdev_gate_init(struct vdev_gate *gate)
{
	INIT_LIST_HEAD(&gate->pending);
}

void vdev_gate_wake(struct vdev *dev, u64 when)
{
	struct vdev_faults *faults = &dev->faults;

	if (!when || when == VDEV_FOREVER)
		return;
	spin_lock(&faults->lock);
	if (!faults->next || when < faults->next) {
		faults->next = when;
		hrtimer_start(&faults->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
	}
	spin_unlock(&faults->lock);
}

static u64 new_order(struct vdev *dev)
{
	return atomic64_inc_return(&dev->faults.order);
}

/* One thing less is held for a reason of its own: the last makes the hooks idle. */
static void reason_gone(struct vdev *dev)
{
	if (atomic_dec_and_test(&dev->faults.reasons))
		schedule_work(&dev->faults.work);
}

void vdev_hold_set(struct vdev *dev, bool *hold, bool on)
{
	if (*hold == on)
		return;
	WRITE_ONCE(*hold, on);
	if (on)
		atomic_inc(&dev->faults.reasons);
	else
		reason_gone(dev);
}

/* Send WQEs */

bool vdev_wqe_held(struct vdev_qp *qp)
{
	return READ_ONCE(qp->hold) || vdev_stage_held(qp->dev, VDEV_STAGE_WQE);
}

bool vdev_gate_wqe(struct vdev_qp *qp)
{
	struct vdev_send *send = &qp->send;

	send->delay_rule = 0;
	if (send->step || !vdev_wqe_held(qp)) {
		send->step = false;
		send->gated = 0;
		return true;
	}
	if (!send->gated)
		send->gated = new_order(qp->dev);
	return false;
}

void vdev_gate_delay(struct vdev_qp *qp, u32 rule)
{
	qp->send.delay_rule = rule;
	qp->send.gated = new_order(qp->dev);
}

/* Does a WQE wait at the QP's gate, or by a rule? When it came; 0: none. send.lock held. */
u64 vdev_wqe_waits(struct vdev_qp *qp)
{
	u8 state = READ_ONCE(qp->state);

	if (qp->send.busy)
		return qp->send.delay_rule && (state == VHCA_QP_RTS || state == VHCA_QP_SQD) ?
		       qp->send.gated : 0;
	return state == VHCA_QP_RTS && vdev_send_posted(qp) > 0 && !qp->send.step ?
	       qp->send.gated : 0;
}

/* Let the QP's WQE go, if it waits; false when it does not. */
bool vdev_wqe_pass(struct vdev_qp *qp)
{
	struct vdev_send *send = &qp->send;
	bool waits;

	vdev_qp_lock_send(qp);
	waits = vdev_wqe_waits(qp);
	if (waits && send->busy) {
		hrtimer_cancel(&send->timer);
		clear_bit(VDEV_QP_WAITING, &qp->flags);
		send->delay_rule = 0;
	} else if (waits) {
		send->step = vdev_wqe_held(qp);
	}
	send->gated = 0;
	vdev_qp_unlock_send(qp);
	if (waits)
		vdev_qp_run(qp);
	return waits;
}

/* CQEs */

bool vdev_cqe_held(struct vdev_cq *cq)
{
	return cq->gate.hold || vdev_stage_held(cq->dev, VDEV_STAGE_CQE);
}

static struct vdev_held *gate_add(struct vdev *dev, struct vdev_gate *gate,
				  const struct vdev_hit *hit)
{
	struct vdev_held *held = kzalloc(sizeof(*held), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	if (!held)
		return NULL;
	held->order = new_order(dev);
	if (hit) {
		held->until = hit->until;
		held->rule = hit->rule;
		held->merge = hit->action == VDEV_MERGE;
	}
	list_add_tail(&held->node, &gate->pending);
	gate->n++;
	atomic_inc(&dev->faults.reasons);
	vdev_gate_wake(dev, held->until);
	return held;
}

/* Out of the gate; the caller frees it. */
static void gate_del(struct vdev *dev, struct vdev_gate *gate, struct vdev_held *held)
{
	list_del(&held->node);
	gate->n--;
	reason_gone(dev);
}

enum vdev_gate_answer vdev_gate_cqe(struct vdev_cq *cq, const struct vhca_cqe *cqe)
{
	struct vdev_place place = {
		.qp = be32_to_cpu(cqe->flags_qpn) & VHCA_QPN_MASK,
		.cq = cq->cqn,
	};
	struct vdev_hit hit;
	bool found = vdev_fault_at(cq->dev, VDEV_AT_CQE, &place, &hit);
	struct vdev_held *held;

	if (found && hit.action == VDEV_OVERRUN)
		return VDEV_FULL;
	if (!found && !vdev_cqe_held(cq) && list_empty(&cq->gate.pending))
		return VDEV_PASS;
	/* Its user may go on for ever, what the kernel keeps for him may not. */
	if (cq->gate.n >> cq->ring.shift)
		return VDEV_FULL;
	held = gate_add(cq->dev, &cq->gate, found ? &hit : NULL);
	if (!held)
		return VDEV_FULL;
	held->cqe = *cqe;
	return VDEV_HELD;
}

struct vdev_held *vdev_gate_next(struct vdev_cq *cq, bool step)
{
	struct vdev_held *held;

	held = list_first_entry_or_null(&cq->gate.pending, struct vdev_held, node);
	if (!held || (!step && (vdev_cqe_held(cq) || held->until > ktime_get_ns())))
		return NULL;
	gate_del(cq->dev, &cq->gate, held);
	return held;
}

struct vdev_held *vdev_gate_next_of(struct vdev_cq *cq, u32 qpn, u32 srqn)
{
	struct vdev_held *held;

	list_for_each_entry(held, &cq->gate.pending, node) {
		u32 flags_qpn = be32_to_cpu(held->cqe.flags_qpn);
		bool of_srq = flags_qpn >> VHCA_CQE_FLAGS_SHIFT & VHCA_CQE_F_SRQ;

		if (qpn ? (flags_qpn & VHCA_QPN_MASK) == qpn :
			  of_srq && be32_to_cpu(held->cqe.srqn) == srqn) {
			gate_del(cq->dev, &cq->gate, held);
			return held;
		}
	}
	return NULL;
}

/* When the oldest CQE's time comes; 0: it has none. */
static u64 cqe_when(struct vdev_cq *cq)
{
	struct vdev_held *held;
	u64 when = 0;

	spin_lock(&cq->lock);
	held = list_first_entry_or_null(&cq->gate.pending, struct vdev_held, node);
	if (held && !vdev_cqe_held(cq))
		when = held->until;
	spin_unlock(&cq->lock);
	return when;
}

/* EQEs of completions, which are all alike but for the CQN */

bool vdev_eqe_held(struct vdev_eq *eq, struct vdev_cq *cq)
{
	return eq->gate.hold || (cq && READ_ONCE(cq->hold_eqe)) ||
	       vdev_stage_held(eq->dev, VDEV_STAGE_EQE);
}

/* The oldest that waits for a CQ. eq->lock held. */
struct vdev_held *vdev_eqe_of(struct vdev_eq *eq, u32 cqn)
{
	struct vdev_held *held;

	list_for_each_entry(held, &eq->gate.pending, node)
		if (held->cqn == cqn)
			return held;
	return NULL;
}

/* True: it waits now, or was merged. eq->lock held. */
static bool eqe_wait(struct vdev_eq *eq, struct vdev_cq *cq, const struct vdev_hit *hit)
{
	struct vdev_held *held = vdev_eqe_of(eq, cq->cqn);

	if (held && held->merge) {
		if (hit && hit->action == VDEV_MERGE)
			return true;
		gate_del(eq->dev, &eq->gate, held);
		kfree(held);
		held = vdev_eqe_of(eq, cq->cqn);
	}
	if (hit && hit->action == VDEV_REPEAT)
		hit = NULL;
	if (!hit && !held && !vdev_eqe_held(eq, cq))
		return false;
	/* More than there can be without somebody who arms without an event. */
	if (eq->gate.n >> eq->shift)
		return true;
	held = gate_add(eq->dev, &eq->gate, hit);
	if (held)
		held->cqn = cq->cqn;
	return held;
}

unsigned int vdev_gate_eqe(struct vdev_cq *cq)
{
	struct vdev_place place = { .cq = cq->cqn, .eq = cq->eq->eqn };
	unsigned int n = 1, now = 0;
	struct vdev_hit hit;
	bool found = vdev_fault_at(cq->dev, VDEV_AT_EQE, &place, &hit);

	if (found && hit.action == VDEV_DROP)
		return 0;
	if (found && hit.action == VDEV_REPEAT)
		n = 2;
	spin_lock(&cq->eq->lock);
	for (; n; n--)
		now += !eqe_wait(cq->eq, cq, found ? &hit : NULL);
	spin_unlock(&cq->eq->lock);
	return now;
}

/* Take out the oldest EQE that may pass, or with @step the oldest of @cqn, 0: of any. */
struct vdev_held *vdev_eqe_next(struct vdev_eq *eq, u32 cqn, bool step)
{
	u64 now = ktime_get_ns();
	struct vdev_held *held;

	spin_lock(&eq->lock);
	list_for_each_entry(held, &eq->gate.pending, node) {
		/* The CQ is there: it takes its EQEs with it. */
		struct vdev_cq *cq = xa_load(&eq->dev->cqs, held->cqn);

		if (step ? (!cqn || held->cqn == cqn) :
			   !held->merge && !vdev_eqe_held(eq, cq) && held->until <= now &&
			   vdev_eqe_of(eq, held->cqn) == held) {
			gate_del(eq->dev, &eq->gate, held);
			spin_unlock(&eq->lock);
			return held;
		}
	}
	spin_unlock(&eq->lock);
	return NULL;
}

/* Post it; with no room it is the oldest again, and tried again. False then. */
bool vdev_eqe_post(struct vdev_eq *eq, struct vdev_held *held)
{
	if (vdev_eq_post(eq, VHCA_EQE_COMP, held->cqn)) {
		kfree(held);
		return true;
	}
	spin_lock(&eq->lock);
	held->until = ktime_get_ns() + RETRY_NS;
	held->merge = false;
	list_add(&held->node, &eq->gate.pending);
	eq->gate.n++;
	atomic_inc(&eq->dev->faults.reasons);
	vdev_gate_wake(eq->dev, held->until);
	spin_unlock(&eq->lock);
	return false;
}

static u64 eqe_when(struct vdev_eq *eq)
{
	u64 when = VDEV_FOREVER;
	struct vdev_held *held;

	spin_lock(&eq->lock);
	list_for_each_entry(held, &eq->gate.pending, node)
		if (held->until && !vdev_eqe_held(eq, xa_load(&eq->dev->cqs, held->cqn)))
			when = min(when, held->until);
	spin_unlock(&eq->lock);
	return when;
}

/* MSI-X messages */

bool vdev_msix_held(struct vdev_eq *eq)
{
	return eq->msix.hold || (eq->eqn && vdev_stage_held(eq->dev, VDEV_STAGE_MSIX));
}

/* The message stays; one that is there already takes it along. eq->lock held. */
static void msix_keep(struct vdev_eq *eq, const struct vdev_hit *hit)
{
	struct vdev_msix_gate *gate = &eq->msix;

	if (gate->order)
		return;
	gate->order = new_order(eq->dev);
	gate->until = hit ? hit->until : 0;
	gate->rule = hit ? hit->rule : 0;
	gate->merge = hit && hit->action == VDEV_MERGE;
	gate->repeat = hit && hit->action == VDEV_REPEAT;
	if (gate->repeat)
		gate->until = ktime_get_ns();
	atomic_inc(&eq->dev->faults.reasons);
	vdev_gate_wake(eq->dev, gate->until);
}

static void msix_gone(struct vdev_eq *eq)
{
	if (!eq->msix.order)
		return;
	eq->msix.order = 0;
	eq->msix.merge = false;
	reason_gone(eq->dev);
}

/* Is it to be sent now? eq->lock held. */
static bool msix_goes(struct vdev_eq *eq, const struct vdev_hit *hit)
{
	if (!vdev_msix_held(eq) && eq->msix.merge) {
		/* Both go as one. */
		msix_gone(eq);
		return true;
	}
	if (hit && hit->action == VDEV_DROP)
		return false;
	if (vdev_msix_held(eq) || (eq->msix.order && !eq->msix.repeat)) {
		msix_keep(eq, NULL);
		return false;
	}
	if (!hit || hit->action == VDEV_REPEAT)
		return true;
	msix_keep(eq, hit);
	return false;
}

void vdev_gate_msix(struct vdev_eq *eq)
{
	struct vdev_place place = { .eq = eq->eqn };
	struct vdev_hit hit;
	bool found = vdev_fault_at(eq->dev, VDEV_AT_MSIX, &place, &hit);
	bool goes;

	spin_lock(&eq->lock);
	goes = msix_goes(eq, found ? &hit : NULL);
	spin_unlock(&eq->lock);
	if (!goes)
		return;
	vdev_msix_send(eq->dev, eq->vector);
	if (!found || hit.action != VDEV_REPEAT)
		return;
	/* Once more, behind the first, or the two would be one. */
	spin_lock(&eq->lock);
	msix_keep(eq, &hit);
	spin_unlock(&eq->lock);
}

/* Send the message that waits, when it may. */
bool vdev_msix_pass(struct vdev_eq *eq, bool step)
{
	struct vdev_msix_gate *gate = &eq->msix;
	u64 now = ktime_get_ns();
	bool goes;

	spin_lock(&eq->lock);
	goes = gate->order &&
	       (step || (!vdev_msix_held(eq) && !gate->merge && gate->until <= now));
	if (goes && gate->repeat && vdev_msix_on_its_way(eq->dev, eq->vector)) {
		/* The two would be one. */
		gate->until = now + RETRY_NS;
		goes = false;
	}
	if (goes)
		msix_gone(eq);
	spin_unlock(&eq->lock);
	if (goes)
		vdev_msix_send(eq->dev, eq->vector);
	return goes;
}

static u64 msix_when(struct vdev_eq *eq)
{
	u64 when = VDEV_FOREVER;

	spin_lock(&eq->lock);
	if (eq->msix.order && eq->msix.until && !vdev_msix_held(eq) && !eq->msix.merge)
		when = eq->msix.until;
	spin_unlock(&eq->lock);
	return when;
}

/* All of a function */

static u64 earlier(u64 a, u64 b)
{
	return min(a ?: VDEV_FOREVER, b ?: VDEV_FOREVER);
}

static u64 run_cqs(struct vdev *dev)
{
	u64 when = VDEV_FOREVER;
	struct vdev_cq *cq;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq) {
		while (vdev_cq_pass(cq, false))
			cond_resched();
		when = earlier(when, cqe_when(cq));
	}
	return when;
}

static u64 run_eqs(struct vdev *dev)
{
	u64 when = VDEV_FOREVER;
	struct vdev_held *held;
	struct vdev_eq *eq;
	u32 i;

	for (i = 0; i < VDEV_MAX_EQ; i++) {
		eq = vdev_eq_find(dev, i);
		if (!eq)
			continue;
		while ((held = vdev_eqe_next(eq, 0, false)) && vdev_eqe_post(eq, held))
			;
		vdev_msix_pass(eq, false);
		when = earlier(earlier(when, eqe_when(eq)), msix_when(eq));
	}
	return when;
}

void vdev_gate_run(struct vdev *dev)
{
	u64 when;
	int idx;

	lockdep_assert_held(&dev->faults.plan_lock);
	/* What is added from here on sets the timer itself. */
	spin_lock(&dev->faults.lock);
	dev->faults.next = 0;
	spin_unlock(&dev->faults.lock);
	idx = srcu_read_lock(&vdev_srcu);
	when = run_cqs(dev);
	when = earlier(when, run_eqs(dev));
	srcu_read_unlock(&vdev_srcu, idx);
	vdev_gate_wake(dev, when);
}

static void wqe_free_rule(struct vdev_qp *qp, u32 rule)
{
	bool waits;

	vdev_qp_lock_send(qp);
	waits = qp->send.delay_rule && (!rule || qp->send.delay_rule == rule);
	vdev_qp_unlock_send(qp);
	if (waits)
		vdev_wqe_pass(qp);
}

void vdev_held_free(struct vdev_gate *gate, u32 rule, u32 cqn)
{
	struct vdev_held *held;

	list_for_each_entry(held, &gate->pending, node)
		if ((!rule || held->rule == rule) && (!cqn || held->cqn == cqn)) {
			held->until = 0;
			held->merge = false;
		}
}

void vdev_msix_free(struct vdev_eq *eq, u32 rule)
{
	if (!rule || eq->msix.rule == rule) {
		eq->msix.until = 0;
		eq->msix.merge = false;
	}
}

void vdev_gate_free_rule(struct vdev *dev, u32 rule)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_qp *qp;
	struct vdev_cq *cq;
	struct vdev_eq *eq;
	unsigned long i;

	xa_for_each(&dev->qps, i, qp)
		wqe_free_rule(qp, rule);
	xa_for_each(&dev->cqs, i, cq) {
		spin_lock(&cq->lock);
		vdev_held_free(&cq->gate, rule, 0);
		spin_unlock(&cq->lock);
	}
	for (i = 0; i < VDEV_MAX_EQ; i++) {
		eq = vdev_eq_find(dev, i);
		if (!eq)
			continue;
		spin_lock(&eq->lock);
		vdev_held_free(&eq->gate, rule, 0);
		vdev_msix_free(eq, rule);
		spin_unlock(&eq->lock);
	}
	srcu_read_unlock(&vdev_srcu, idx);
}

/* Objects that go */

void vdev_gate_free_qp(struct vdev_qp *qp)
{
	vdev_hold_set(qp->dev, &qp->hold, false);
}

static void gate_empty(struct vdev *dev, struct vdev_gate *gate)
{
	struct vdev_held *held, *next;

	list_for_each_entry_safe(held, next, &gate->pending, node) {
		gate_del(dev, gate, held);
		kfree(held);
	}
	vdev_hold_set(dev, &gate->hold, false);
}

void vdev_gate_free_cq(struct vdev_cq *cq)
{
	struct vdev_held *held;

	gate_empty(cq->dev, &cq->gate);
	vdev_hold_set(cq->dev, &cq->hold_eqe, false);
	spin_lock(&cq->eq->lock);
	while ((held = vdev_eqe_of(cq->eq, cq->cqn))) {
		gate_del(cq->dev, &cq->eq->gate, held);
		kfree(held);
	}
	spin_unlock(&cq->eq->lock);
}

void vdev_gate_free_eq(struct vdev_eq *eq)
{
	gate_empty(eq->dev, &eq->gate);
	msix_gone(eq);
	vdev_hold_set(eq->dev, &eq->msix.hold, false);
}
