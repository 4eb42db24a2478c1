// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who executes a QP's work, and when.
 *
 * Inline: the kick does, in the caller's context, up to a budget. Threaded: the
 * function's kernel thread does; it watches UAR pages that were kicked as long as
 * work keeps coming and its CPU has nothing else to run, so that doorbells need
 * no kick meanwhile. In both cases the thread takes what was left over, retries
 * and flushes. With nothing to do it sleeps.
 *
 * A thread that several users want would make one wait for another: for a while
 * whoever kicks works for himself, then, as if inline. What is left over it does user
 * by user, one QP of each in turn.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nospec.h>
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

/* One go at a QP; shorter where others wait. A larger backlog waits for its next turn. */
#define BUDGET_WQES		64
#define BUDGET_BYTES		SZ_1M
#define BUDGET_TURN_BYTES	SZ_256K
#define BUDGET_WISHES		64

/* How long the thread watches UAR pages on which nothing happens. */
#define WATCH_NS		(50 * NSEC_PER_USEC)

/* How long kicks keep away from a thread that two users wanted. */
#define CROWD_TICKS		(HZ / 10)

static bool engine_crowded(const struct vdev_engine *engine)
{
	return time_before(jiffies, READ_ONCE(engine->crowd_end));
}

/* The thread is to work for a user; under lock. */
static void engine_claim(struct vdev_engine *engine, const struct vdev_user *user)
{
	if (!engine->user)
		engine->user = user;
	else if (engine->user != user)
		WRITE_ONCE(engine->crowd_end, jiffies + CROWD_TICKS);
}

/* One more QP, behind those of the same user. */
static void engine_add_qp(struct vdev_engine *engine, struct vdev_qp *qp)
{
	engine_claim(engine, qp->user);
	list_add_tail(&qp->work, &qp->user->qps);
	if (list_empty(&qp->user->turn))
		list_add_tail(&qp->user->turn, &engine->users);
}

static void engine_del_qp(struct vdev_qp *qp)
{
	list_del_init(&qp->work);
	if (list_empty(&qp->user->qps))
		list_del_init(&qp->user->turn);
}

void vdev_engine_queue_qp(struct vdev_qp *qp)
{
	struct vdev_engine *engine = &qp->dev->engine;

	spin_lock_bh(&engine->lock);
	if (!qp->dead && list_empty(&qp->work))
		engine_add_qp(engine, qp);
	spin_unlock_bh(&engine->lock);
	wake_up(&engine->wait);
}

void vdev_engine_drop_qp(struct vdev_qp *qp)
{
	struct vdev_engine *engine = &qp->dev->engine;

	spin_lock_bh(&engine->lock);
	qp->dead = true;
	engine_del_qp(qp);
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

static void qp_run(struct vdev_qp *qp, int bytes)
{
	struct vdev_budget budget = { .wqes = BUDGET_WQES, .bytes = bytes };
	unsigned int wishes = 0;

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
			more = vdev_requester_run(qp, &budget) ||
			       ++wishes == BUDGET_WISHES;
		mutex_unlock(&qp->send.lock);
		if (more) {
			vdev_engine_queue_qp(qp);
			return;
		}
		smp_mb();	/* unlock before the look, as said above */
	}
}

void vdev_qp_run(struct vdev_qp *qp)
{
	qp_run(qp, BUDGET_BYTES);
}

void vdev_qp_unlock_send(struct vdev_qp *qp)
{
	mutex_unlock(&qp->send.lock);
	smp_mb();	/* as in vdev_qp_run() */
	if (test_bit(VDEV_QP_WORK, &qp->flags))
		vdev_engine_queue_qp(qp);
}

/* Let the thread look at a page; false when its user is better off without it. */
static bool engine_hand_over(struct vdev_engine *engine, const struct vdev_uar *u, u32 uar)
{
	bool takes, wake;

	if (READ_ONCE(engine_mode) != ENGINE_THREADED)
		return false;
	spin_lock_bh(&engine->lock);
	engine_claim(engine, u->user);
	takes = !engine_crowded(engine);
	/* A full barrier; pairs with the one in engine_rest_at(). */
	wake = takes && !test_and_set_bit(uar, engine->hot);
	spin_unlock_bh(&engine->lock);
	if (wake)
		wake_up(&engine->wait);
	return takes;
}

void vdev_kick(struct pci_dev *pdev, u32 uar, u32 slot)
{
	struct vdev *dev = vdev_of(pdev);
	struct vdev_db *db = NULL;
	struct vdev_uar *u;
	int idx;

	if (uar >= VDEV_MAX_UAR || slot >= VHCA_UAR_SLOTS)
		return;
	slot = array_index_nospec(slot, VHCA_UAR_SLOTS);
	vdev_count(dev, VDEV_KICKS);
	idx = srcu_read_lock(&vdev_srcu);
	u = srcu_dereference(dev->uars[uar], &vdev_srcu);
	if (u && !engine_hand_over(&dev->engine, u, uar))
		db = srcu_dereference(u->db[slot], &vdev_srcu);
	if (db)
		vdev_db_kick(dev, db);
	srcu_read_unlock(&vdev_srcu, idx);
}

/* The user whose turn it is gets behind the others, unless this was his last QP. */
static struct vdev_qp *engine_next_qp(struct vdev_engine *engine)
{
	struct vdev_user *user;
	struct vdev_qp *qp = NULL;

	spin_lock_bh(&engine->lock);
	user = list_first_entry_or_null(&engine->users, struct vdev_user, turn);
	if (user) {
		qp = list_first_entry(&user->qps, struct vdev_qp, work);
		list_move_tail(&user->turn, &engine->users);
		engine_del_qp(qp);
	}
	spin_unlock_bh(&engine->lock);
	return qp;
}

/* In a read section of its own: what one QP has to do is how long others wait for one. */
static bool engine_run_qp(struct vdev_engine *engine)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_qp *qp = engine_next_qp(engine);

	if (qp)
		qp_run(qp, list_empty_careful(&engine->users) ? BUDGET_BYTES : BUDGET_TURN_BYTES);
	srcu_read_unlock(&vdev_srcu, idx);
	return qp;
}

/* The first of a list from which vdev_engine_drop_cq() takes, too; or NULL. */
static struct vdev_cq *engine_next_cq(struct vdev_engine *engine, struct list_head *list)
{
	struct vdev_cq *cq;

	spin_lock_bh(&engine->lock);
	cq = list_first_entry_or_null(list, struct vdev_cq, work);
	if (cq)
		list_del_init(&cq->work);
	spin_unlock_bh(&engine->lock);
	return cq;
}

/*
 * Look after each CQ that is queued now. Its user decides how soon it is queued again:
 * that one waits for the next turn.
 */
static void engine_run_cqs(struct vdev_engine *engine)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_cq *cq;
	LIST_HEAD(cqs);

	spin_lock_bh(&engine->lock);
	list_splice_init(&engine->cqs, &cqs);
	spin_unlock_bh(&engine->lock);
	while ((cq = engine_next_cq(engine, &cqs)))
		if (!vdev_cq_run(cq))
			vdev_engine_queue_cq(cq);
	srcu_read_unlock(&vdev_srcu, idx);
}

static bool engine_look_at(struct vdev *dev, u32 i)
{
	struct vdev_uar *uar = srcu_dereference(dev->uars[i], &vdev_srcu);

	if (!uar) {
		clear_bit(i, dev->engine.hot);
		return false;
	}
	if (!uar->watched) {
		uar->watched = true;
		vdev_uar_set_kick_needed(uar, false);
	}
	return vdev_uar_look(dev, uar);
}

/* Look at every page that was kicked; true when a doorbell had changed. */
static bool engine_look(struct vdev *dev)
{
	bool found = false;
	u32 i;

	for_each_set_bit(i, dev->engine.hot, VDEV_MAX_UAR) {
		int idx = srcu_read_lock(&vdev_srcu);

		found |= engine_look_at(dev, i);
		srcu_read_unlock(&vdev_srcu, idx);
	}
	return found;
}

static void engine_rest_at(struct vdev *dev, u32 i)
{
	struct vdev_uar *uar = srcu_dereference(dev->uars[i], &vdev_srcu);

	clear_bit(i, dev->engine.hot);
	if (!uar)
		return;
	uar->watched = false;
	vdev_uar_set_kick_needed(uar, true);
	/*
	 * kick_needed before the look at the doorbells; pairs with the library's
	 * barrier between doorbell and its look at kick_needed. And hot before the
	 * look; pairs with vdev_kick().
	 */
	smp_mb();
	vdev_uar_look(dev, uar);
}

/* Stop watching, with one last look. */
static void engine_rest(struct vdev *dev)
{
	u32 i;

	for_each_set_bit(i, dev->engine.hot, VDEV_MAX_UAR) {
		int idx = srcu_read_lock(&vdev_srcu);

		engine_rest_at(dev, i);
		srcu_read_unlock(&vdev_srcu, idx);
	}
}

static bool engine_turn(struct vdev *dev)
{
	bool found = engine_run_qp(&dev->engine);

	found |= engine_look(dev);
	engine_run_cqs(&dev->engine);
	return found;
}

static bool engine_has_work(struct vdev_engine *engine)
{
	return kthread_should_stop() || !list_empty_careful(&engine->users) ||
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

/* The next user is welcome when there is nothing left of this one. */
static void engine_unclaim(struct vdev_engine *engine)
{
	spin_lock_bh(&engine->lock);
	if (list_empty(&engine->users) && bitmap_empty(engine->hot, VDEV_MAX_UAR))
		engine->user = NULL;
	spin_unlock_bh(&engine->lock);
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
			 !engine_crowded(&dev->engine) &&
			 !bitmap_empty(dev->engine.hot, VDEV_MAX_UAR) &&
			 !kthread_should_stop());
		engine_rest(dev);
		engine_unclaim(&dev->engine);
	}
	return 0;
}

int vdev_engine_start(struct vdev *dev)
{
	struct vdev_engine *engine = &dev->engine;
	struct vdev_user *user;

	init_waitqueue_head(&engine->wait);
	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->users);
	INIT_LIST_HEAD(&engine->cqs);
	engine->crowd_end = jiffies;
	for (user = dev->users; user < dev->users + ARRAY_SIZE(dev->users); user++) {
		INIT_LIST_HEAD(&user->qps);
		INIT_LIST_HEAD(&user->turn);
	}
	engine->task = kthread_run(engine_thread, dev, "vhca_engine/%u", dev->index);
	return PTR_ERR_OR_ZERO(engine->task);
}

void vdev_engine_stop(struct vdev *dev)
{
	kthread_stop(dev->engine.task);
}
