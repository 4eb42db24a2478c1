// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues, from the side that writes them, and their events.
 *
 * User space writes the ring, the consumer index and the arm word as it likes.
 * The device never acts on a CQE that it reads back; a wrong consumer index makes
 * its own CQ overrun, a wrong arm word gives or costs its own channel an event.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "vdev.h"

static void cq_ring(struct vdev_db *db);
static enum hrtimer_restart cq_timer(struct hrtimer *timer);

static u32 ring_size(const struct vdev_cq_ring *ring)
{
	return 1u << ring->shift;
}

static struct vhca_cqe *ring_cqe(const struct vdev_cq_ring *ring, u32 index)
{
	return (struct vhca_cqe *)ring->buf.addr + (index & (ring_size(ring) - 1));
}

/* The owner bit of a CQE in the lap that an index lies in. */
static u8 ring_owner(const struct vdev_cq_ring *ring, u32 index)
{
	return !(index & ring_size(ring));
}

static u8 ring_map(struct vdev_cq_ring *ring, u32 shift, u64 pages)
{
	u8 status;

	if (shift > VHCA_CQ_MAX_SHIFT)
		return VHCA_CMD_BAD_PARAM;
	ring->shift = shift;
	ring->solicited = kvcalloc(BITS_TO_LONGS(ring_size(ring)), sizeof(long),
				   VDEV_GFP_SIZED);
	if (!ring->solicited)
		return VHCA_CMD_NO_MEMORY;
	status = vdev_buf_map(&ring->buf, pages, (size_t)VHCA_CQE_SIZE << shift);
	if (status)
		kvfree(ring->solicited);
	return status;
}

static void ring_unmap(struct vdev_cq_ring *ring)
{
	vdev_buf_unmap(&ring->buf);
	kvfree(ring->solicited);
}

static u8 cq_init(struct vdev_cq *cq, const struct vhca_cmd_create_cq *in)
{
	u64 dbr = be64_to_cpu(in->dbr);

	cq->flags = be32_to_cpu(in->flags);
	if (cq->flags & ~(VHCA_CQ_TIMESTAMP | VHCA_CQ_IGNORE_OVERRUN) || in->rsvd ||
	    !IS_ALIGNED(dbr, VHCA_UAR_SLOT_SIZE))
		return VHCA_CMD_BAD_PARAM;
	cq->dbr = vdev_dma(dbr, sizeof(*cq->dbr));
	if (!cq->dbr)
		return VHCA_CMD_BAD_PARAM;
	cq->eq = vdev_eq_for_cq(cq->dev, be32_to_cpu(in->eqn));
	if (!cq->eq)
		return VHCA_CMD_BAD_OBJECT;
	return ring_map(&cq->ring, be32_to_cpu(in->shift), be64_to_cpu(in->pages));
}

static struct vdev_cq *cq_alloc(struct vdev *dev)
{
	struct vdev_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL_ACCOUNT);

	if (!cq)
		return NULL;
	cq->dev = dev;
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->work);
	vdev_gate_init(&cq->gate);
	cq->db.ring = cq_ring;
	hrtimer_init(&cq->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	cq->timer.function = cq_timer;
	return cq;
}

u8 vdev_create_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_cq *in = &cmd->create_cq;
	struct vdev_cq *cq = cq_alloc(dev);
	int err;
	u8 status;

	if (!cq)
		return VHCA_CMD_NO_MEMORY;
	status = cq_init(cq, in);
	if (status)
		goto err_free;
	err = xa_alloc_cyclic(&dev->cqs, &cq->cqn, NULL, XA_LIMIT(1, VDEV_MAX_CQ),
			      &dev->next_cqn, GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		status = err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
		goto err_ring;
	}
	status = vdev_uar_bind(dev, be32_to_cpu(in->uar), be32_to_cpu(in->slot),
			       &cq->db);
	if (status)
		goto err_erase;
	cq->eq->users++;
	xa_store(&dev->cqs, cq->cqn, cq, GFP_KERNEL);	/* replaces: no allocation */
	done->number = cpu_to_be32(cq->cqn);
	return VHCA_CMD_OK;

err_erase:
	xa_erase(&dev->cqs, cq->cqn);
err_ring:
	ring_unmap(&cq->ring);
err_free:
	kfree(cq);
	return status;
}

static void cq_free(struct vdev *dev, struct vdev_cq *cq)
{
	xa_erase(&dev->cqs, cq->cqn);
	vdev_uar_unbind(&cq->db);
	vdev_engine_drop_cq(cq);
	vdev_wait_unused();
	/* Nobody is left who could start it. */
	hrtimer_cancel(&cq->timer);
	vdev_gate_free_cq(cq);
	cq->eq->users--;
	ring_unmap(&cq->ring);
	kfree(cq);
}

u8 vdev_destroy_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	struct vdev_cq *cq = xa_load(&dev->cqs, be32_to_cpu(cmd->object.number));

	if (!cq)
		return VHCA_CMD_BAD_OBJECT;
	if (cq->users)
		return VHCA_CMD_BUSY;
	cq_free(dev, cq);
	return VHCA_CMD_OK;
}

void vdev_forget_cqs(struct vdev *dev)
{
	struct vdev_cq *cq;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq)
		cq_free(dev, cq);
}

/* CQEs written since consumer index @ci, modulo 2^24. */
static u32 cq_beyond(const struct vdev_cq *cq, u32 ci)
{
	return (cq->pi - ci) & VHCA_CI_MASK;
}

/* Bits that are set from @first to before @end: whole words, but for those at the ends. */
static u32 bits_between(const unsigned long *bits, u32 first, u32 end)
{
	u32 word = round_down(first, BITS_PER_LONG);

	bits += BIT_WORD(first);
	return bitmap_weight(bits, end - word) - bitmap_weight(bits, first - word);
}

/* Of the newest @n CQEs those that a solicited arm waits for. */
static u32 cq_solicited(const struct vdev_cq *cq, u32 n)
{
	const unsigned long *bits = cq->ring.solicited;
	u32 size = ring_size(&cq->ring);
	u32 first = (cq->pi - n) & (size - 1);
	u32 end = first + n;

	return bits_between(bits, first, min(end, size)) +
	       (end > size ? bitmap_weight(bits, end - size) : 0);
}

/* So many CQEs are looked at: who completes to the CQ waits meanwhile. */
#define CQ_LOOK_BACK	4096

/*
 * An arm word that was not seen before: what it waits for begins at its consumer
 * index. Others may have polled since that was read, any number of CQEs: an index that
 * is too old gives an event too many, never one too few. And so does a solicited arm
 * before which so many are unread that it would take long to see what they are.
 */
static void cq_armed(struct vdev_cq *cq, u32 arm)
{
	u32 unread = min(cq_beyond(cq, arm & VHCA_CI_MASK), ring_size(&cq->ring));

	cq->armed = true;
	cq->arm = arm;
	cq->arm_pi = cq->pi - unread;
	cq->arm_solicited = cq->solicited;
	if (arm & VHCA_ARM_SOLICITED)
		cq->arm_solicited -= unread > CQ_LOOK_BACK ? unread :
							     cq_solicited(cq, unread);
	cq->timing = false;
}

/* CQEs that the arm has waited for and got. */
static u32 cq_waited(const struct vdev_cq *cq)
{
	return cq->arm & VHCA_ARM_SOLICITED ? cq->solicited - cq->arm_solicited :
					      cq->pi - cq->arm_pi;
}

/*
 * Are so many enough for an event? A completion in error is not made to wait: it
 * may be the last for long.
 */
static bool cq_enough(const struct vdev_cq *cq, u32 waited)
{
	return waited && (waited >= cq->count || cq->error_pi > cq->arm_pi);
}

/* The arm word carries the number that is due: does it wait for what is there? */
static noinline bool cq_arm_fires(struct vdev_cq *cq, u32 arm, u8 sn)
{
	u32 waited;

	if (!cq->armed || arm != cq->arm)
		cq_armed(cq, arm);
	waited = cq_waited(cq);
	/* Timing, and not queued: the time is over. */
	if (cq_enough(cq, waited) ||
	    (waited && cq->timing && !hrtimer_is_queued(&cq->timer))) {
		cq->fired_sn = sn;
		/* Seen by who reads the event: the EQE and its interrupt come after. */
		WRITE_ONCE(cq->dbr->fired, cpu_to_be32(sn));
		cq->armed = false;
		if (hrtimer_is_queued(&cq->timer))
			hrtimer_try_to_cancel(&cq->timer);
		return true;
	}
	if (waited && cq->period && !cq->timing) {
		cq->timing = true;
		hrtimer_start(&cq->timer, ns_to_ktime((u64)cq->period * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	}
	return false;
}

/*
 * Does the arm word wait for what is there? Then it has fired. cq->lock held.
 *
 * It carries the number that follows the arm which fired last, and counts CQEs
 * beyond its consumer index. A CQE that was consumed before the CQ was armed is
 * none of those, however late we look.
 */
static inline bool cq_fires(struct vdev_cq *cq)
{
	u32 arm = be32_to_cpu(READ_ONCE(cq->dbr->arm));
	u8 next_sn = (cq->fired_sn + 1) & VHCA_ARM_SN_MASK;

	return (arm >> VHCA_ARM_SN_SHIFT & VHCA_ARM_SN_MASK) == next_sn &&
	       cq_arm_fires(cq, arm, next_sn);
}

static void cq_event(struct vdev_cq *cq)
{
	unsigned int n = vdev_faults() ? vdev_gate_eqe(cq) : 1;

	for (; n; n--)
		if (!vdev_eq_post(cq->eq, VHCA_EQE_COMP, cq->cqn)) {
			WRITE_ONCE(cq->starved, true);
			vdev_engine_starve_cq(cq);
		}
}

/* Look at the arm word without a new CQE. */
static void cq_look(struct vdev_cq *cq)
{
	bool fires;

	spin_lock(&cq->lock);
	fires = cq_fires(cq);
	spin_unlock(&cq->lock);
	if (fires)
		cq_event(cq);
}

/*
 * The CQ's doorbell: user space found a CQE when it armed. Raise the event now
 * if there is one that the arm waits for.
 */
static void cq_ring(struct vdev_db *db)
{
	struct vdev_cq *cq = container_of(db, struct vdev_cq, db);

	if (vdev_faults() && vdev_fault_arm(cq))
		return;
	cq_look(cq);
}

/* The arm has waited long enough. The locks are not for softirqs: the thread looks. */
static enum hrtimer_restart cq_timer(struct hrtimer *timer)
{
	vdev_engine_queue_cq(container_of(timer, struct vdev_cq, timer));
	return HRTIMER_NORESTART;
}

void vdev_cq_run(struct vdev_cq *cq)
{
	if (xchg(&cq->starved, false) && !vdev_eq_post(cq->eq, VHCA_EQE_COMP, cq->cqn)) {
		WRITE_ONCE(cq->starved, true);
		vdev_engine_starve_cq(cq);
		return;
	}
	cq_look(cq);
}

/* Write @cqe to the next slot, its last eight bytes, with the owner bit, last. */
static inline void cq_write(struct vdev_cq *cq, struct vhca_cqe *cqe)
{
	u64 *to = (u64 *)ring_cqe(&cq->ring, cq->pi);
	const u64 *from = (const u64 *)cqe;
	unsigned int i;

	if (cq->flags & VHCA_CQ_TIMESTAMP)
		cqe->timestamp = cpu_to_be64(ktime_get_ns());
	cqe->owner = ring_owner(&cq->ring, cq->pi);
	for (i = 0; i < 7; i++)
		to[i] = from[i];
	/*
	 * Payload and CQE before the owner bit; pairs with the library's read
	 * barrier behind its look at the owner bit.
	 */
	smp_wmb();
	WRITE_ONCE(to[7], from[7]);
}

/* Count the CQE that was written. */
static inline void cq_wrote(struct vdev_cq *cq, const struct vhca_cqe *cqe)
{
	bool error = cqe->status != VHCA_CQE_SUCCESS;
	bool solicited = error || be32_to_cpu(cqe->flags_qpn) >> VHCA_CQE_FLAGS_SHIFT &
				  VHCA_CQE_F_SOLICITED;

	__assign_bit(cq->pi & (ring_size(&cq->ring) - 1), cq->ring.solicited, solicited);
	cq->pi++;
	cq->solicited += solicited;
	if (error)
		cq->error_pi = cq->pi;
	vdev_count(cq->dev, VDEV_CQES);
}

static bool cq_full(const struct vdev_cq *cq)
{
	u32 ci = be32_to_cpu(READ_ONCE(cq->dbr->ci)) & VHCA_CI_MASK;

	return !(cq->flags & VHCA_CQ_IGNORE_OVERRUN) &&
	       cq_beyond(cq, ci) >= ring_size(&cq->ring);
}

static void cq_overrun(struct vdev_cq *cq)
{
	vdev_count(cq->dev, VDEV_OVERRUNS);
	vdev_async_event(cq->dev, VHCA_EQE_CQ_ERR, cq->cqn);
	vdev_qp_fail_cq(cq);
}

/* What is due when cq->lock was given back. */
enum cq_due { CQ_NOTHING, CQ_EVENT, CQ_OVERRUN };

/* Write a CQE. cq->lock held; the CQ is not in error. */
static __always_inline enum cq_due cq_put(struct vdev_cq *cq, struct vhca_cqe *cqe, bool full)
{
	if (full || cq_full(cq)) {
		WRITE_ONCE(cq->error, true);
		return CQ_OVERRUN;
	}
	cq_write(cq, cqe);
	cq_wrote(cq, cqe);
	/*
	 * CQE before the look at the arm word; pairs with the library's barrier
	 * between the arm word and its look at the next CQE.
	 */
	smp_mb();
	return cq_fires(cq) ? CQ_EVENT : CQ_NOTHING;
}

static void cq_do(struct vdev_cq *cq, enum cq_due due)
{
	if (due == CQ_EVENT)
		cq_event(cq);
	else if (due == CQ_OVERRUN)
		cq_overrun(cq);
}

bool vdev_cq_post(struct vdev_cq *cq, struct vhca_cqe *cqe)
{
	enum vdev_gate_answer gate = VDEV_PASS;
	enum cq_due due;

	spin_lock(&cq->lock);
	if (vdev_faults() && !cq->error)
		gate = vdev_gate_cqe(cq, cqe);
	if (cq->error || gate == VDEV_HELD) {
		spin_unlock(&cq->lock);
		return gate == VDEV_HELD;
	}
	due = cq_put(cq, cqe, gate == VDEV_FULL);
	spin_unlock(&cq->lock);
	cq_do(cq, due);
	return due != CQ_OVERRUN;
}

/* What was held is written, unless it is too late for that. cq->lock held. */
static enum cq_due cq_put_held(struct vdev_cq *cq, struct vdev_held *held)
{
	enum cq_due due = cq->error ? CQ_NOTHING : cq_put(cq, &held->cqe, false);

	kfree(held);
	return due;
}

bool vdev_cq_pass(struct vdev_cq *cq, bool step)
{
	enum cq_due due = CQ_NOTHING;
	struct vdev_held *held;
	bool found;

	spin_lock(&cq->lock);
	held = vdev_gate_next(cq, step);
	found = held;
	if (found)
		due = cq_put_held(cq, held);
	spin_unlock(&cq->lock);
	cq_do(cq, due);
	return found;
}

static bool cq_flush_one(struct vdev_cq *cq, u32 qpn, u32 srqn)
{
	enum cq_due due = CQ_NOTHING;
	struct vdev_held *held;
	bool found;

	spin_lock(&cq->lock);
	held = vdev_gate_next_of(cq, qpn, srqn);
	found = held;
	if (found)
		due = cq_put_held(cq, held);
	spin_unlock(&cq->lock);
	cq_do(cq, due);
	return found;
}

void vdev_cq_flush(struct vdev_cq *cq, u32 qpn, u32 srqn)
{
	while (cq_flush_one(cq, qpn, srqn))
		;
}

u8 vdev_modify_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_modify_cq *in = &cmd->modify_cq;
	struct vdev_cq *cq = xa_load(&dev->cqs, be32_to_cpu(in->cqn));
	u32 count = be32_to_cpu(in->count);
	u32 period = be32_to_cpu(in->period);

	if (!cq)
		return VHCA_CMD_BAD_OBJECT;
	if (count > VDEV_MAX_CQ_COUNT || period > VDEV_MAX_CQ_PERIOD)
		return VHCA_CMD_BAD_PARAM;
	spin_lock(&cq->lock);
	cq->count = count;
	cq->period = period;
	/* An arm that waits goes on by the new values, its time from now. */
	cq->timing = false;
	spin_unlock(&cq->lock);
	cq_look(cq);
	return VHCA_CMD_OK;
}

/* No CQE of the ring is there yet, for a consumer at index @ci. */
static void ring_clear(struct vdev_cq_ring *ring, u32 ci)
{
	u32 i;

	for (i = ci; i != ci + ring_size(ring); i++) {
		ring_cqe(ring, i)->owner = !ring_owner(ring, i);
		cond_resched();
	}
}

static void ring_move(struct vdev_cq_ring *to, const struct vdev_cq_ring *from, u32 index)
{
	struct vhca_cqe *cqe = ring_cqe(to, index);

	*cqe = *ring_cqe(from, index);
	cqe->owner = ring_owner(to, index);
	__assign_bit(index & (ring_size(to) - 1), to->solicited,
		     test_bit(index & (ring_size(from) - 1), from->solicited));
}

/*
 * Unread CQEs, from consumer index @ci on; 2^32 - 1 when more than fit @ring or
 * than there can be. cq->lock held.
 */
static u32 cq_unread(const struct vdev_cq *cq, const struct vdev_cq_ring *ring, u32 ci)
{
	u32 n = cq_beyond(cq, ci);

	return cq->error || n > ring_size(ring) || n > ring_size(&cq->ring) ? U32_MAX : n;
}

static u64 cq_producer(struct vdev_cq *cq)
{
	u64 pi;

	spin_lock(&cq->lock);
	pi = cq->pi;
	spin_unlock(&cq->lock);
	return pi;
}

/* What is left for the locked part; less comes while that many are moved. */
#define RESIZE_REST	64
#define RESIZE_ROUNDS	16

/*
 * Move what is there from @from on, and what came meanwhile, until it is little. Returns
 * where to go on.
 */
static u64 cq_follow(struct vdev_cq *cq, struct vdev_cq_ring *ring, u64 from)
{
	u64 pi = cq_producer(cq);
	unsigned int round;

	for (round = 0; round < RESIZE_ROUNDS && pi - from > RESIZE_REST; round++) {
		if (pi - from > ring_size(ring))
			break;
		for (; from != pi; from++) {
			ring_move(ring, &cq->ring, from);
			cond_resched();
		}
		pi = cq_producer(cq);
	}
	return from;
}

/*
 * Fill the new ring and put it in place of the old one. What is unread stays as it
 * is while software consumes nothing, so most of it is moved without the lock; what
 * was written meanwhile follows with it. More than a ring is none that there can be.
 */
static u8 cq_resize(struct vdev_cq *cq, struct vdev_cq_ring *ring)
{
	u32 ci = be32_to_cpu(READ_ONCE(cq->dbr->ci)) & VHCA_CI_MASK;
	u32 unread;
	u64 from;

	spin_lock(&cq->lock);
	unread = cq_unread(cq, ring, ci);
	from = cq->pi - unread;
	spin_unlock(&cq->lock);
	if (unread == U32_MAX)
		return VHCA_CMD_BAD_STATE;

	ring_clear(ring, from);
	from = cq_follow(cq, ring, from);

	spin_lock(&cq->lock);
	unread = cq_unread(cq, ring, ci);
	if (unread == U32_MAX || cq->pi - from > ring_size(ring)) {
		spin_unlock(&cq->lock);
		return VHCA_CMD_BAD_STATE;
	}
	for (; from != cq->pi; from++)
		ring_move(ring, &cq->ring, from);
	swap(cq->ring, *ring);
	spin_unlock(&cq->lock);
	return VHCA_CMD_OK;
}

u8 vdev_resize_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_resize_cq *in = &cmd->resize_cq;
	struct vdev_cq *cq = xa_load(&dev->cqs, be32_to_cpu(in->cqn));
	struct vdev_cq_ring ring = {};
	u8 status;

	if (!cq)
		return VHCA_CMD_BAD_OBJECT;
	status = ring_map(&ring, be32_to_cpu(in->shift), be64_to_cpu(in->pages));
	if (status)
		return status;
	status = cq_resize(cq, &ring);
	/* The old one, or the new one that did not do. */
	ring_unmap(&ring);
	return status;
}
