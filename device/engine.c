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
 * by user, a QP and some CQs of each in turn.
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
#define BUDGET_CQS		16

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

/* There is something to do for a user; under lock. */
static void engine_add_user(struct vdev_engine *engine, struct vdev_user *user)
{
	if (list_empty(&user->turn))
		list_add_tail(&user->turn, &engine->users);
}

/* Something less to do; under lock. */
static void engine_del_work(struct vdev_user *user, struct list_head *work)
{
	list_del_init(work);
	if (list_empty(&user->qps) && list_empty(&user->cqs))
		list_del_init(&user->turn);
}

/* One more QP, behind those of the same user. */
static void engine_add_qp(struct vdev_engine *engine, struct vdev_qp *qp)
{
	engine_claim(engine, qp->user);
	list_add_tail(&qp->work, &qp->user->qps);
	engine_add_user(engine, qp->user);
}

static struct vdev_user *cq_user(const struct vdev_cq *cq)
{
	return cq->db.uar->user;
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
	engine_del_work(qp->user, &qp->work);
	spin_unlock_bh(&engine->lock);
	hrtimer_cancel(&qp->send.timer);
}

void vdev_engine_queue_cq(struct vdev_cq *cq)
{
	struct vdev_engine *engine = &cq->dev->engine;

	spin_lock_bh(&engine->lock);
	if (!cq->dead && list_empty(&cq->work)) {
		list_add_tail(&cq->work, &cq_user(cq)->cqs);
		engine_add_user(engine, cq_user(cq));
	}
	spin_unlock_bh(&engine->lock);
	wake_up(&engine->wait);
}

void vdev_engine_starve_cq(struct vdev_cq *cq)
{
	struct vdev_engine *engine = &cq->dev->engine;

	spin_lock_bh(&engine->lock);
	if (!cq->dead && list_empty(&cq->work)) {
		list_add_tail(&cq->work, &cq_user(cq)->starved);
		WRITE_ONCE(engine->starving, true);
	}
	spin_unlock_bh(&engine->lock);
	wake_up(&engine->wait);
}

void vdev_engine_drop_cq(struct vdev_cq *cq)
{
	struct vdev_engine *engine = &cq->dev->engine;

	spin_lock_bh(&engine->lock);
	cq->dead = true;
	engine_del_work(cq_user(cq), &cq->work);
	spin_unlock_bh(&engine->lock);
}

/*
 * Take the lock, or leave a wish to its holder, who looks for one when he has given it
 * back.
 */
static bool qp_trylock(struct vdev_qp *qp)
{
	if (mutex_trylock(&qp->send.lock))
		return true;
	set_bit(VDEV_QP_WORK, &qp->flags);
	/*
	 * Wish before trylock; pairs with the barrier between unlock and the look at the
	 * wish, in qp_run() and vdev_qp_unlock_send(): either we get the lock, or its
	 * holder finds the wish.
	 */
	smp_mb__after_atomic();
	return mutex_trylock(&qp->send.lock);
}

static void qp_run(struct vdev_qp *qp, int bytes)
{
	struct vdev_budget budget = { .wqes = BUDGET_WQES, .bytes = bytes };
	unsigned int wishes = 0;
	bool more;

	do {
		if (!qp_trylock(qp))
			return;
		/*
		 * A doorbell rung from here on leaves a new wish. To take one is a full
		 * barrier before the look at the record; pairs with that in qp_trylock().
		 */
		if (test_bit(VDEV_QP_WORK, &qp->flags))
			test_and_clear_bit(VDEV_QP_WORK, &qp->flags);
		more = vdev_requester_run(qp, &budget) || ++wishes == BUDGET_WISHES;
		mutex_unlock(&qp->send.lock);
		if (more) {
			vdev_engine_queue_qp(qp);
			return;
		}
		smp_mb();	/* unlock before the look, as said above */
	} while (test_bit(VDEV_QP_WORK, &qp->flags));
}

void vdev_qp_run(struct vdev_qp *qp)
{
	qp_run(qp, BUDGET_BYTES);
}

void vdev_qp_unlock_send(struct vdev_qp *qp)
{
	mutex_unlock(&qp->send.lock);
	smp_mb();	/* as in qp_run() */
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
	/* A full barrier; pairs with those behind clear_bit(). */
	wake = takes && !test_and_set_bit(uar, engine->hot);
	spin_unlock_bh(&engine->lock);
	if (wake)
		wake_up(&engine->wait);
	return takes;
}

void vdev_kick(const struct vhca_soft_ops *soft, u32 uar, u32 slot)
{
	struct vdev *dev = container_of(soft, struct vdev, soft);
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

/* Whose turn it is; he gets behind the others. NULL: nobody's. */
static struct vdev_user *engine_next_user(struct vdev_engine *engine)
{
	struct vdev_user *user;

	spin_lock_bh(&engine->lock);
	user = list_first_entry_or_null(&engine->users, struct vdev_user, turn);
	if (user)
		list_move_tail(&user->turn, &engine->users);
	spin_unlock_bh(&engine->lock);
	return user;
}

static struct vdev_qp *engine_next_qp(struct vdev_engine *engine, struct vdev_user *user)
{
	struct vdev_qp *qp;

	spin_lock_bh(&engine->lock);
	qp = list_first_entry_or_null(&user->qps, struct vdev_qp, work);
	if (qp)
		engine_del_work(user, &qp->work);
	spin_unlock_bh(&engine->lock);
	return qp;
}

static struct vdev_cq *engine_next_cq(struct vdev_engine *engine, struct vdev_user *user)
{
	struct vdev_cq *cq;

	spin_lock_bh(&engine->lock);
	cq = list_first_entry_or_null(&user->cqs, struct vdev_cq, work);
	if (cq)
		engine_del_work(user, &cq->work);
	spin_unlock_bh(&engine->lock);
	return cq;
}

/*
 * In a read section of its own: what one user has to have done is how long others wait
 * for one. His CQs are bounded, too: he decides how soon each of them is queued again.
 */
static bool engine_run_user(struct vdev_engine *engine)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_user *user = engine_next_user(engine);
	struct vdev_qp *qp = NULL;
	struct vdev_cq *cq;
	unsigned int n;

	if (user)
		qp = engine_next_qp(engine, user);
	if (qp)
		qp_run(qp, list_empty_careful(&engine->users) ? BUDGET_BYTES : BUDGET_TURN_BYTES);
	for (n = 0; user && n < BUDGET_CQS; n++) {
		cq = engine_next_cq(engine, user);
		if (!cq)
			break;
		vdev_cq_run(cq);
	}
	srcu_read_unlock(&vdev_srcu, idx);
	return qp;
}

/* The next page that was kicked. */
static u32 engine_next_hot(struct vdev_engine *engine, u32 from)
{
	/*
	 * Kicks set bits meanwhile, and wake the thread then: one that was not seen here
	 * is looked for again before it sleeps.
	 */
	return data_race(find_next_bit(engine->hot, VDEV_MAX_UAR, from));
}

static bool engine_hot(struct vdev_engine *engine)
{
	return engine_next_hot(engine, 0) < VDEV_MAX_UAR;
}

/* There is no such page; or there is, by now, and it was kicked. */
static bool engine_forget(struct vdev *dev, u32 i)
{
	clear_bit(i, dev->engine.hot);
	/* Hot before the page; pairs with the full barrier in engine_hand_over(). */
	smp_mb__after_atomic();
	if (rcu_access_pointer(dev->uars[i]))
		set_bit(i, dev->engine.hot);
	return false;
}

static bool engine_look_at(struct vdev *dev, u32 i)
{
	struct vdev_uar *uar = srcu_dereference(dev->uars[i], &vdev_srcu);

	if (!uar)
		return engine_forget(dev, i);
	if (!uar->watched) {
		uar->watched = true;
		vdev_uar_set_kick_needed(uar, false);
	}
	return vdev_uar_look(dev, uar);
}

/* Look at every page that was kicked; true when a doorbell had changed. */
static bool engine_look(struct vdev *dev)
{
	struct vdev_engine *engine = &dev->engine;
	bool found = false;
	u32 i;

	for (i = engine_next_hot(engine, 0); i < VDEV_MAX_UAR; i = engine_next_hot(engine, i + 1)) {
		int idx = srcu_read_lock(&vdev_srcu);

		found |= engine_look_at(dev, i);
		srcu_read_unlock(&vdev_srcu, idx);
	}
	return found;
}

static void engine_rest_at(struct vdev *dev, u32 i)
{
	struct vdev_uar *uar;

	clear_bit(i, dev->engine.hot);
	/* As in engine_forget(): who finds the bit set is served by this look. */
	smp_mb__after_atomic();
	uar = srcu_dereference(dev->uars[i], &vdev_srcu);
	if (!uar)
		return;
	uar->watched = false;
	vdev_uar_set_kick_needed(uar, true);
	/*
	 * kick_needed before the look at the doorbells; pairs with the library's
	 * barrier between doorbell and its look at kick_needed.
	 */
	smp_mb();
	vdev_uar_look(dev, uar);
}

/* Stop watching, with one last look. */
static void engine_rest(struct vdev *dev)
{
	struct vdev_engine *engine = &dev->engine;
	u32 i;

	for (i = engine_next_hot(engine, 0); i < VDEV_MAX_UAR; i = engine_next_hot(engine, i + 1)) {
		int idx = srcu_read_lock(&vdev_srcu);

		engine_rest_at(dev, i);
		srcu_read_unlock(&vdev_srcu, idx);
	}
}

/* Starved CQs are looked at once more. */
static void engine_feed(struct vdev *dev)
{
	struct vdev_engine *engine = &dev->engine;
	struct vdev_user *user;

	if (!READ_ONCE(engine->starving))
		return;
	spin_lock_bh(&engine->lock);
	for (user = dev->users; user < dev->users + ARRAY_SIZE(dev->users); user++) {
		list_splice_tail_init(&user->starved, &user->cqs);
		if (!list_empty(&user->cqs))
			engine_add_user(engine, user);
	}
	WRITE_ONCE(engine->starving, false);
	spin_unlock_bh(&engine->lock);
}

static bool engine_turn(struct vdev *dev)
{
	bool found;

	engine_feed(dev);
	found = engine_run_user(&dev->engine);
	return engine_look(dev) || found;
}

static bool engine_has_work(struct vdev_engine *engine)
{
	return kthread_should_stop() || !list_empty_careful(&engine->users) ||
	       engine_hot(engine);
}

/* Sleep until there is something to do; starved CQs are tried every tick. */
static void engine_sleep(struct vdev_engine *engine)
{
	long ticks = READ_ONCE(engine->starving) ? 1 : MAX_SCHEDULE_TIMEOUT;

	wait_event_interruptible_timeout(engine->wait,
					 engine_has_work(engine) ||
					 (ticks > 1 && READ_ONCE(engine->starving)),
					 ticks);
}

/* The next user is welcome when there is nothing left of this one. */
static void engine_unclaim(struct vdev_engine *engine)
{
	spin_lock_bh(&engine->lock);
	if (list_empty(&engine->users) && !engine_hot(engine))
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
			 engine_hot(&dev->engine) &&
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
	engine->crowd_end = jiffies;
	for (user = dev->users; user < dev->users + ARRAY_SIZE(dev->users); user++) {
		INIT_LIST_HEAD(&user->qps);
		INIT_LIST_HEAD(&user->cqs);
		INIT_LIST_HEAD(&user->starved);
		INIT_LIST_HEAD(&user->turn);
	}
	engine->task = kthread_run(engine_thread, dev, "vhca_engine/%u", dev->index);
	return PTR_ERR_OR_ZERO(engine->task);
}

void vdev_engine_stop(struct vdev *dev)
{
	kthread_stop(dev->engine.task);
}
