// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who executes a QP's work, and when.
 *
 * Inline: the kick does, in the caller's context, up to a budget. Threaded: the
 * function's kernel thread does; it watches UAR pages that were kicked as long as
 * work keeps coming and its CPU has nothing else to run, so that doorbells need
 * no kick meanwhile. In both cases the thread takes what was left over, retries
 * and flushes. With nothing to do it sleeps.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>
#include <linux/sizes.h>

#include "vdev.h"

enum {
	ENGINE_INLINE,
	ENGINE_THREADED,
};

static const char * const engine_names[] = { "inline", "threaded" };
static int engine_mode = ENGINE_INLINE;

static int engine_mode_set(const char *val, const struct kernel_param *kp)
{
	int mode = sysfs_match_string(engine_names, val);

	if (mode < 0)
		return mode;
	WRITE_ONCE(engine_mode, mode);
	return 0;
}

static int engine_mode_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", engine_names[READ_ONCE(engine_mode)]);
}

static const struct kernel_param_ops engine_mode_ops = {
	.set = engine_mode_set,
	.get = engine_mode_get,
};

module_param_cb(engine, &engine_mode_ops, NULL, 0644);
MODULE_PARM_DESC(engine, "who executes WQEs: inline (the kick), threaded (a thread)");

/* One go at a QP. A larger backlog waits for its next turn. */
#define BUDGET_WQES		64
#define BUDGET_BYTES		SZ_1M

/* How long the thread watches UAR pages on which nothing happens. */
#define WATCH_NS		(50 * NSEC_PER_USEC)

void vdev_engine_queue_qp(struct vdev_qp *qp)
{
	struct vdev_engine *engine = &qp->dev->engine;

	spin_lock_bh(&engine->lock);
	if (!qp->dead && list_empty(&qp->work))
		list_add_tail(&qp->work, &engine->qps);
	spin_unlock_bh(&engine->lock);
	wake_up(&engine->wait);
}

void vdev_engine_drop_qp(struct vdev_qp *qp)
{
	struct vdev_engine *engine = &qp->dev->engine;

	spin_lock_bh(&engine->lock);
	qp->dead = true;
	list_del_init(&qp->work);
	spin_unlock_bh(&engine->lock);
	hrtimer_cancel(&qp->send.timer);
}

void vdev_engine_queue_cq(struct vdev_cq *cq)
{
	struct vdev_engine *engine = &cq->dev->engine;

	spin_lock_bh(&engine->lock);
	if (!cq->dead && list_empty(&cq->work))
		list_add_tail(&cq->work, &engine->cqs);
	spin_unlock_bh(&engine->lock);
	wake_up(&engine->wait);
}

void vdev_engine_drop_cq(struct vdev_cq *cq)
{
	struct vdev_engine *engine = &cq->dev->engine;

	spin_lock_bh(&engine->lock);
	cq->dead = true;
	list_del_init(&cq->work);
	spin_unlock_bh(&engine->lock);
}

void vdev_qp_run(struct vdev_qp *qp)
{
	struct vdev_budget budget = { .wqes = BUDGET_WQES, .bytes = BUDGET_BYTES };

	set_bit(VDEV_QP_WORK, &qp->flags);
	/*
	 * Wish before trylock; pairs with the barrier between unlock and the
	 * look at the wish, below and in vdev_qp_unlock_send(): either we get
	 * the lock, or its holder finds the wish.
	 */
	smp_mb__after_atomic();
	while (test_bit(VDEV_QP_WORK, &qp->flags) &&
	       mutex_trylock(&qp->send.lock)) {
		bool more = false;

		/* A doorbell rung from here on leaves a new wish. */
		if (test_and_clear_bit(VDEV_QP_WORK, &qp->flags))
			more = vdev_requester_run(qp, &budget);
		mutex_unlock(&qp->send.lock);
		if (more) {
			vdev_engine_queue_qp(qp);
			return;
		}
		smp_mb();	/* unlock before the look, as said above */
	}
}

void vdev_qp_unlock_send(struct vdev_qp *qp)
{
	mutex_unlock(&qp->send.lock);
	smp_mb();	/* as in vdev_qp_run() */
	if (test_bit(VDEV_QP_WORK, &qp->flags))
		vdev_engine_queue_qp(qp);
}

void vdev_kick(struct pci_dev *pdev, u32 uar, u32 slot)
{
	struct vdev *dev = vdev_of(pdev);
	struct vdev_db *db = NULL;
	struct vdev_uar *u;
	int idx;

	if (uar >= VDEV_MAX_UAR || slot >= VHCA_UAR_SLOTS)
		return;
	vdev_count(dev, VDEV_KICKS);
	if (READ_ONCE(engine_mode) == ENGINE_THREADED) {
		/* A full barrier; pairs with the one in engine_rest(). */
		if (!test_and_set_bit(uar, dev->engine.hot))
			wake_up(&dev->engine.wait);
		return;
	}
	idx = srcu_read_lock(&vdev_srcu);
	u = srcu_dereference(dev->uars[uar], &vdev_srcu);
	if (u)
		db = srcu_dereference(u->db[slot], &vdev_srcu);
	if (db)
		vdev_db_kick(dev, db);
	srcu_read_unlock(&vdev_srcu, idx);
}

/* The first QP of a list that vdev_engine_drop_qp() may take QPs from. */
static struct vdev_qp *engine_next_qp(struct vdev_engine *engine, struct list_head *qps)
{
	struct vdev_qp *qp;

	spin_lock_bh(&engine->lock);
	qp = list_first_entry_or_null(qps, struct vdev_qp, work);
	if (qp)
		list_del_init(&qp->work);
	spin_unlock_bh(&engine->lock);
	return qp;
}

/* Run each QP that is queued now; true when there was one. */
static bool engine_run_qps(struct vdev_engine *engine)
{
	LIST_HEAD(qps);
	struct vdev_qp *qp;
	bool found = false;

	spin_lock_bh(&engine->lock);
	list_splice_init(&engine->qps, &qps);
	spin_unlock_bh(&engine->lock);
	while ((qp = engine_next_qp(engine, &qps))) {
		vdev_qp_run(qp);
		found = true;
	}
	return found;
}

static struct vdev_cq *engine_next_cq(struct vdev_engine *engine)
{
	struct vdev_cq *cq;

	spin_lock_bh(&engine->lock);
	cq = list_first_entry_or_null(&engine->cqs, struct vdev_cq, work);
	if (cq)
		list_del_init(&cq->work);
	spin_unlock_bh(&engine->lock);
	return cq;
}

static void engine_run_cqs(struct vdev *dev)
{
	struct vdev_cq *cq;

	while ((cq = engine_next_cq(&dev->engine))) {
		if (!vdev_cq_run(cq)) {
			vdev_engine_queue_cq(cq);
			return;
		}
	}
}

/* Look at every page that was kicked; true when a doorbell had changed. */
static bool engine_look(struct vdev *dev)
{
	bool found = false;
	u32 i;

	for_each_set_bit(i, dev->engine.hot, VDEV_MAX_UAR) {
		struct vdev_uar *uar = srcu_dereference(dev->uars[i], &vdev_srcu);

		if (!uar) {
			clear_bit(i, dev->engine.hot);
			continue;
		}
		if (!uar->watched) {
			uar->watched = true;
			vdev_uar_set_kick_needed(uar, false);
		}
		found |= vdev_uar_look(dev, uar);
	}
	return found;
}

/* Stop watching, with one last look. */
static void engine_rest(struct vdev *dev)
{
	int idx = srcu_read_lock(&vdev_srcu);
	u32 i;

	for_each_set_bit(i, dev->engine.hot, VDEV_MAX_UAR) {
		struct vdev_uar *uar = srcu_dereference(dev->uars[i], &vdev_srcu);

		clear_bit(i, dev->engine.hot);
		if (!uar)
			continue;
		uar->watched = false;
		vdev_uar_set_kick_needed(uar, true);
		/*
		 * kick_needed before the look at the doorbells; pairs with the
		 * library's barrier between doorbell and its look at
		 * kick_needed. And hot before the look; pairs with vdev_kick().
		 */
		smp_mb();
		vdev_uar_look(dev, uar);
	}
	srcu_read_unlock(&vdev_srcu, idx);
}

static bool engine_turn(struct vdev *dev)
{
	int idx = srcu_read_lock(&vdev_srcu);
	bool found;

	found = engine_run_qps(&dev->engine);
	found |= engine_look(dev);
	engine_run_cqs(dev);
	srcu_read_unlock(&vdev_srcu, idx);
	return found;
}

static bool engine_has_work(struct vdev_engine *engine)
{
	return kthread_should_stop() || !list_empty_careful(&engine->qps) ||
	       !bitmap_empty(engine->hot, VDEV_MAX_UAR);
}

/* Sleep until there is something to do; starved CQs are tried every tick. */
static void engine_sleep(struct vdev_engine *engine)
{
	long ticks = list_empty_careful(&engine->cqs) ? MAX_SCHEDULE_TIMEOUT : 1;

	wait_event_interruptible_timeout(engine->wait,
					 engine_has_work(engine) ||
					 (ticks > 1 && !list_empty_careful(&engine->cqs)),
					 ticks);
}

static int engine_thread(void *arg)
{
	struct vdev *dev = arg;
	u64 last;

	while (!kthread_should_stop()) {
		engine_sleep(&dev->engine);
		last = local_clock();
		do {
			if (engine_turn(dev))
				last = local_clock();
			cond_resched();
		} while (single_task_running() && local_clock() - last < WATCH_NS &&
			 !bitmap_empty(dev->engine.hot, VDEV_MAX_UAR) &&
			 !kthread_should_stop());
		engine_rest(dev);
	}
	return 0;
}

int vdev_engine_start(struct vdev *dev)
{
	struct vdev_engine *engine = &dev->engine;

	init_waitqueue_head(&engine->wait);
	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->qps);
	INIT_LIST_HEAD(&engine->cqs);
	engine->task = kthread_run(engine_thread, dev, "vhca_engine/%u", dev->index);
	return PTR_ERR_OR_ZERO(engine->task);
}

void vdev_engine_stop(struct vdev *dev)
{
	kthread_stop(dev->engine.task);
}
