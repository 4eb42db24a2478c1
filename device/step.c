// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stepping: the orders that hold a gate, let one thing pass or all, and what is told of
 * gates at which something is held.
 */
#include <linux/seq_file.h>
#include <linux/string.h>

#include "gate.h"

/* Whom an order is for: one object, of the kind that @word says, or all. */
struct target {
	enum vdev_stage		stage;
	bool			one;
	enum vdev_word		word;
	u32			number;
};

static int read_target(struct vdev_line *line, struct target *to)
{
	static const u32 words[VDEV_STAGES] = {
		[VDEV_STAGE_WQE]	= BIT(VDEV_W_QP),
		[VDEV_STAGE_CQE]	= BIT(VDEV_W_CQ),
		[VDEV_STAGE_EQE]	= BIT(VDEV_W_CQ) | BIT(VDEV_W_EQ),
		[VDEV_STAGE_MSIX]	= BIT(VDEV_W_EQ),
	};
	int stage, ret;

	if (line->n < 2)
		return vdev_line_fail(line, line->end, "wqe, cqe, eqe or msix?");
	stage = match_string(vdev_stage_names, VDEV_STAGES, line->word[1]);
	if (stage < 0)
		return vdev_line_fail(line, line->column[1], "no such stage: %.32s",
				      line->word[1]);
	if (line->n > 2)
		return vdev_line_fail(line, line->column[2], "one word too many: %.32s",
				      line->word[2]);
	ret = vdev_line_only(line, words[stage], 0);
	if (ret)
		return ret;
	if (hweight32(line->has) > 1)
		return vdev_line_fail(line, line->at[__fls(line->has)],
				      "cq= and eq= exclude each other");
	*to = (struct target){ .stage = stage, .one = line->has };
	if (to->one) {
		to->word = __ffs(line->has);
		to->number = line->val[to->word];
	}
	return 0;
}

/* Set or clear the hold of one gate; false when there is no such object. */
static bool hold_one(struct vdev *dev, const struct target *to, bool on)
{
	struct vdev_qp *qp = NULL;
	struct vdev_cq *cq = NULL;
	struct vdev_eq *eq = NULL;

	if (to->word == VDEV_W_QP) {
		qp = vdev_qp_find(dev, to->number);
		if (!qp)
			return false;
		vdev_qp_lock_send(qp);
		vdev_hold_set(dev, &qp->hold, on);
		vdev_qp_unlock_send(qp);
	} else if (to->word == VDEV_W_CQ) {
		cq = xa_load(&dev->cqs, to->number);
		if (!cq)
			return false;
		spin_lock(&cq->lock);
		vdev_hold_set(dev, to->stage == VDEV_STAGE_CQE ? &cq->gate.hold : &cq->hold_eqe,
			      on);
		spin_unlock(&cq->lock);
	} else {
		eq = vdev_eq_find(dev, to->number);
		if (!eq)
			return false;
		spin_lock(&eq->lock);
		vdev_hold_set(dev, to->stage == VDEV_STAGE_EQE ? &eq->gate.hold : &eq->msix.hold,
			      on);
		spin_unlock(&eq->lock);
	}
	return true;
}

static int no_object(struct vdev_line *line, const struct target *to)
{
	vdev_line_fail(line, line->at[to->word], "no object %u", to->number);
	return -ENOENT;
}

static int order_hold(struct vdev *dev, struct vdev_line *line, const struct target *to)
{
	if (!to->one) {
		WRITE_ONCE(dev->faults.hold[to->stage], true);
		return 0;
	}
	return hold_one(dev, to, true) ? 0 : no_object(line, to);
}

/* The oldest of what waits for a WQE to be let go. */
static bool step_wqe(struct vdev *dev, const struct target *to)
{
	struct vdev_qp *qp, *oldest = NULL;
	u64 order, first = U64_MAX;
	unsigned long i;

	if (to->one) {
		qp = vdev_qp_find(dev, to->number);
		return qp && vdev_wqe_pass(qp);
	}
	xa_for_each(&dev->qps, i, qp) {
		vdev_qp_lock_send(qp);
		order = vdev_wqe_waits(qp);
		vdev_qp_unlock_send(qp);
		if (order && order < first) {
			first = order;
			oldest = qp;
		}
	}
	return oldest && vdev_wqe_pass(oldest);
}

static u64 first_order(struct vdev_gate *gate)
{
	struct vdev_held *held;

	held = list_first_entry_or_null(&gate->pending, struct vdev_held, node);
	return held ? held->order : U64_MAX;
}

static bool step_cqe(struct vdev *dev, const struct target *to)
{
	struct vdev_cq *cq, *oldest = NULL;
	u64 order, first = U64_MAX;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq) {
		if (to->one && cq->cqn != to->number)
			continue;
		spin_lock(&cq->lock);
		order = first_order(&cq->gate);
		spin_unlock(&cq->lock);
		if (order < first) {
			first = order;
			oldest = cq;
		}
	}
	return oldest && vdev_cq_pass(oldest, true);
}

/* The order of what an EQ would let go first: an EQE, or its message. */
static u64 eq_order(struct vdev_eq *eq, const struct target *to)
{
	u64 order = U64_MAX;

	spin_lock(&eq->lock);
	if (to->stage == VDEV_STAGE_MSIX) {
		order = eq->msix.order ?: U64_MAX;
	} else if (!to->one || to->word == VDEV_W_EQ) {
		order = first_order(&eq->gate);
	} else {
		struct vdev_held *held = vdev_eqe_of(eq, to->number);

		if (held)
			order = held->order;
	}
	spin_unlock(&eq->lock);
	return order;
}

static bool step_eq(struct vdev *dev, const struct target *to)
{
	struct vdev_eq *eq, *oldest = NULL;
	u64 order, first = U64_MAX;
	struct vdev_held *held;
	u32 i, cqn = 0;

	for (i = 0; i < VDEV_MAX_EQ; i++) {
		eq = vdev_eq_find(dev, i);
		if (!eq || (to->one && to->word == VDEV_W_EQ && i != to->number))
			continue;
		order = eq_order(eq, to);
		if (order < first) {
			first = order;
			oldest = eq;
		}
	}
	if (!oldest)
		return false;
	if (to->stage == VDEV_STAGE_MSIX)
		return vdev_msix_pass(oldest, true);
	if (to->one && to->word == VDEV_W_CQ)
		cqn = to->number;
	held = vdev_eqe_next(oldest, cqn, true);
	return held && vdev_eqe_post(oldest, held);
}

static int order_step(struct vdev *dev, struct vdev_line *line, const struct target *to)
{
	bool passed;

	if (to->stage == VDEV_STAGE_WQE)
		passed = step_wqe(dev, to);
	else if (to->stage == VDEV_STAGE_CQE)
		passed = step_cqe(dev, to);
	else
		passed = step_eq(dev, to);
	if (passed)
		return 0;
	vdev_line_fail(line, line->column[0], "nothing is pending there");
	return -EAGAIN;
}

static void release_qps(struct vdev *dev, const struct target *to)
{
	struct vdev_qp *qp;
	unsigned long i;

	xa_for_each(&dev->qps, i, qp) {
		if (to->one && qp->qpn != to->number)
			continue;
		vdev_qp_lock_send(qp);
		vdev_hold_set(dev, &qp->hold, false);
		vdev_qp_unlock_send(qp);
		if (!vdev_wqe_pass(qp))
			vdev_qp_run(qp);
	}
}

static void release_cqes(struct vdev *dev, const struct target *to)
{
	struct vdev_cq *cq;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq) {
		if (to->one && cq->cqn != to->number)
			continue;
		spin_lock(&cq->lock);
		vdev_hold_set(dev, &cq->gate.hold, false);
		vdev_held_free(&cq->gate, 0, 0);
		spin_unlock(&cq->lock);
	}
}

/* Of all CQs, or of the one that is meant. */
static void release_cq_eqes(struct vdev *dev, const struct target *to)
{
	struct vdev_cq *cq;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq) {
		if (to->one && cq->cqn != to->number)
			continue;
		spin_lock(&cq->lock);
		vdev_hold_set(dev, &cq->hold_eqe, false);
		spin_unlock(&cq->lock);
		spin_lock(&cq->eq->lock);
		vdev_held_free(&cq->eq->gate, 0, cq->cqn);
		spin_unlock(&cq->eq->lock);
	}
}

static void release_eqs(struct vdev *dev, const struct target *to)
{
	struct vdev_eq *eq;
	u32 i;

	for (i = 0; i < VDEV_MAX_EQ; i++) {
		eq = vdev_eq_find(dev, i);
		if (!eq || (to->one && i != to->number))
			continue;
		spin_lock(&eq->lock);
		if (to->stage == VDEV_STAGE_EQE) {
			vdev_hold_set(dev, &eq->gate.hold, false);
			vdev_held_free(&eq->gate, 0, 0);
		} else {
			vdev_hold_set(dev, &eq->msix.hold, false);
			vdev_msix_free(eq, 0);
		}
		spin_unlock(&eq->lock);
	}
}

static void release(struct vdev *dev, const struct target *to)
{
	if (!to->one)
		WRITE_ONCE(dev->faults.hold[to->stage], false);
	switch (to->stage) {
	case VDEV_STAGE_WQE:
		release_qps(dev, to);
		break;
	case VDEV_STAGE_CQE:
		release_cqes(dev, to);
		break;
	case VDEV_STAGE_EQE:
		if (!to->one || to->word == VDEV_W_CQ)
			release_cq_eqes(dev, to);
		if (!to->one || to->word == VDEV_W_EQ)
			release_eqs(dev, to);
		break;
	default:
		release_eqs(dev, to);
	}
}

static int order_release(struct vdev *dev, struct vdev_line *line, const struct target *to)
{
	struct target one = {};

	if (to) {
		release(dev, to);
	} else {
		for (; one.stage < VDEV_STAGES; one.stage++)
			release(dev, &one);
	}
	return 0;
}

static int obey(struct vdev *dev, struct vdev_line *line)
{
	struct target to;
	int ret;

	if (!line->n)
		return vdev_line_fail(line, 1, "hold, step or release?");
	if (line->n == 2 && !line->has && !strcmp(line->word[0], "release") &&
	    !strcmp(line->word[1], "all"))
		return order_release(dev, line, NULL);
	if (strcmp(line->word[0], "hold") && strcmp(line->word[0], "step") &&
	    strcmp(line->word[0], "release"))
		return vdev_line_fail(line, line->column[0], "no such order: %.32s",
				      line->word[0]);
	ret = read_target(line, &to);
	if (ret)
		return ret;
	switch (line->word[0][0]) {
	case 'h':
		return order_hold(dev, line, &to);
	case 's':
		return order_step(dev, line, &to);
	default:
		return order_release(dev, line, &to);
	}
}

int vdev_gate_command(struct vdev *dev, struct vdev_line *line)
{
	int idx = srcu_read_lock(&vdev_srcu);
	int ret = obey(dev, line);

	srcu_read_unlock(&vdev_srcu, idx);
	if (!ret)
		vdev_gate_run(dev);
	return ret;
}

/* Reading */

/* The lines of a stage add up: what waits is in one of them. */
static void show_stages(struct seq_file *s, struct vdev *dev)
{
	enum vdev_stage stage;

	for (stage = 0; stage < VDEV_STAGES; stage++)
		if (vdev_stage_held(dev, stage))
			seq_printf(s, "stage=%s held=1 pending=0\n", vdev_stage_names[stage]);
}

static void show_qp(struct seq_file *s, struct vdev_qp *qp)
{
	u64 waits;

	vdev_qp_lock_send(qp);
	waits = vdev_wqe_waits(qp);
	if (qp->hold || waits) {
		seq_printf(s, "stage=wqe qp=%u held=%d pending=%u", qp->qpn, vdev_wqe_held(qp),
			   waits ? vdev_send_count(qp) : 0);
		if (waits)
			vdev_send_tell(s, qp);
		seq_putc(s, '\n');
	}
	vdev_qp_unlock_send(qp);
}

static void show_cqes(struct seq_file *s, struct vdev_cq *cq)
{
	struct vdev_held *held;

	spin_lock(&cq->lock);
	held = list_first_entry_or_null(&cq->gate.pending, struct vdev_held, node);
	if (cq->gate.hold || held) {
		seq_printf(s, "stage=cqe cq=%u held=%d pending=%u", cq->cqn, vdev_cqe_held(cq),
			   cq->gate.n);
		if (held)
			seq_printf(s, " next=\"qp=%u wqe_index=%u status=%s\"",
				   be32_to_cpu(held->cqe.flags_qpn) & VHCA_QPN_MASK,
				   be16_to_cpu(held->cqe.wqe_index),
				   vdev_name_of(VDEV_W_STATUS, held->cqe.status));
		seq_putc(s, '\n');
	}
	spin_unlock(&cq->lock);
}

static void show_cq_eqes(struct seq_file *s, struct vdev_cq *cq)
{
	struct vdev_eq *eq = cq->eq;
	struct vdev_held *held;
	unsigned int n = 0;

	spin_lock(&eq->lock);
	list_for_each_entry(held, &eq->gate.pending, node)
		n += held->cqn == cq->cqn;
	if (READ_ONCE(cq->hold_eqe) || n) {
		seq_printf(s, "stage=eqe cq=%u eq=%u held=%d pending=%u", cq->cqn, eq->eqn,
			   vdev_eqe_held(eq, cq), n);
		if (n)
			seq_printf(s, " next=\"cq=%u\"", cq->cqn);
		seq_putc(s, '\n');
	}
	spin_unlock(&eq->lock);
}

/* Its EQEs are in the lines of their CQs. */
static void show_eq(struct seq_file *s, struct vdev_eq *eq)
{
	spin_lock(&eq->lock);
	if (eq->gate.hold)
		seq_printf(s, "stage=eqe eq=%u held=1 pending=0\n", eq->eqn);
	if (eq->msix.hold || eq->msix.order) {
		seq_printf(s, "stage=msix eq=%u held=%d pending=%u", eq->eqn, vdev_msix_held(eq),
			   !!eq->msix.order);
		if (eq->msix.order)
			seq_printf(s, " next=\"vector=%u\"", eq->vector);
		seq_putc(s, '\n');
	}
	spin_unlock(&eq->lock);
}

void vdev_gate_show(struct seq_file *s, struct vdev *dev)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_qp *qp;
	struct vdev_cq *cq;
	struct vdev_eq *eq;
	unsigned long i;

	show_stages(s, dev);
	xa_for_each(&dev->qps, i, qp)
		show_qp(s, qp);
	xa_for_each(&dev->cqs, i, cq)
		show_cqes(s, cq);
	xa_for_each(&dev->cqs, i, cq)
		show_cq_eqes(s, cq);
	for (i = 0; i < VDEV_MAX_EQ; i++) {
		eq = vdev_eq_find(dev, i);
		if (eq)
			show_eq(s, eq);
	}
	srcu_read_unlock(&vdev_srcu, idx);
}
