// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event queues, read as files: completion channels and async files.
 *
 * Events are embedded in the objects that have them. An event is queued at most
 * once; what happens while it is unread adds to it.
 */
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "vhca.h"

union vhca_record {
	struct vhca_comp_event comp;
	struct vhca_async_event async;
};

static_assert(sizeof(struct vhca_comp_event) == sizeof(union vhca_record));
static_assert(sizeof(struct vhca_async_event) == sizeof(union vhca_record));

/**
 * vhca_event_queue_alloc() - an empty queue
 * @device_events: 0 for a channel; else those of the device that it has room for.
 */
struct vhca_event_queue *vhca_event_queue_alloc(u32 device_events)
{
	struct vhca_event_queue *q;

	q = kzalloc(struct_size(q, device, device_events), GFP_KERNEL_ACCOUNT);
	if (!q)
		return NULL;
	kref_init(&q->ref);
	init_waitqueue_head(&q->wait);
	INIT_LIST_HEAD(&q->pending);
	q->comp = !device_events;
	return q;
}

static void vhca_event_queue_free(struct kref *ref)
{
	kfree(container_of(ref, struct vhca_event_queue, ref));
}

/** vhca_event_queue_put() - drop a reference: a file's, a CQ's, a context's */
void vhca_event_queue_put(struct vhca_event_queue *q)
{
	kref_put(&q->ref, vhca_event_queue_free);
}

/** vhca_event_queue_close() - readers get what is there, then EIO */
void vhca_event_queue_close(struct vhca_event_queue *q)
{
	spin_lock_irq(&q->wait.lock);
	WRITE_ONCE(q->closed, true);
	wake_up_locked(&q->wait);
	spin_unlock_irq(&q->wait.lock);
	kill_fasync(&q->fasync, SIGIO, POLL_IN);
}

/** vhca_event_init() - an event that has not happened */
void vhca_event_init(struct vhca_event *ev, u64 cookie, u32 number)
{
	INIT_LIST_HEAD(&ev->node);
	ev->cookie = cookie;
	ev->number = number;
	ev->reads = 0;
	ev->types = 0;
}

/**
 * vhca_event_post() - something happened
 * @q: where it is read.
 * @ev: whom it happened to.
 * @types: bits by enum vhca_async_event_type; on a channel any.
 *
 * Process context or softirq.
 *
 * Return: whether there is a record more to read.
 */
bool vhca_event_post(struct vhca_event_queue *q, struct vhca_event *ev,
		     unsigned long types)
{
	unsigned long flags;
	bool more;

	spin_lock_irqsave(&q->wait.lock, flags);
	more = types & ~ev->types;
	/* A port's state follows from its last event: what came last is read last. */
	if (more || (types && !q->comp))
		list_move_tail(&ev->node, &q->pending);
	ev->types |= types;
	if (more)
		wake_up_locked_poll(&q->wait, EPOLLIN | EPOLLRDNORM);
	spin_unlock_irqrestore(&q->wait.lock, flags);

	if (more)
		kill_fasync(&q->fasync, SIGIO, POLL_IN);
	return more;
}

/**
 * vhca_event_purge() - drop what is unread; nothing is posted any more
 * @q: the queue.
 * @ev: the event of an object that goes.
 *
 * Return: how many records of it were read. No more will be.
 */
u32 vhca_event_purge(struct vhca_event_queue *q, struct vhca_event *ev)
{
	u32 reads;

	spin_lock_irq(&q->wait.lock);
	list_del_init(&ev->node);
	ev->types = 0;
	reads = ev->reads;
	spin_unlock_irq(&q->wait.lock);
	return reads;
}

static void vhca_event_record(struct vhca_event_queue *q, struct vhca_event *ev,
			      union vhca_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	if (q->comp) {
		rec->comp.cookie = ev->cookie;
		rec->comp.cqn = ev->number;
	} else {
		rec->async.cookie = ev->cookie;
		rec->async.type = __ffs(ev->types);
		rec->async.number = ev->number;
	}
}

/*
 * The record reaches user space and counts as read in one step, under the lock:
 * it is neither lost by a bad buffer, nor seen after the object's purge.
 */
static int vhca_event_take(struct vhca_event_queue *q, char __user *buf)
{
	union vhca_record rec;
	struct vhca_event *ev;
	int ret;

	ev = list_first_entry_or_null(&q->pending, struct vhca_event, node);
	if (!ev)
		return q->closed ? -EIO : -EAGAIN;
	vhca_event_record(q, ev, &rec);
	ret = copy_to_user_nofault(buf, &rec, sizeof(rec));
	if (ret)
		return ret;
	ev->reads++;
	ev->types &= ev->types - 1;
	if (ev->types)
		list_move_tail(&ev->node, &q->pending);
	else
		list_del_init(&ev->node);
	return 0;
}

static int vhca_event_fault_in(struct vhca_event_queue *q, char __user *buf)
{
	size_t left;

	spin_unlock_irq(&q->wait.lock);
	left = fault_in_writeable(buf, sizeof(union vhca_record));
	spin_lock_irq(&q->wait.lock);
	if (left)
		return -EFAULT;
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/* Why no record was taken: mend it (0), or say so. The lock is given up meanwhile. */
static int vhca_event_retry(struct vhca_event_queue *q, struct file *file,
			    char __user *buf, int why, bool some)
{
	switch (why) {
	case -EAGAIN:
		if (some || file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		return wait_event_interruptible_locked_irq(q->wait, q->closed ||
							   !list_empty(&q->pending));
	case -EFAULT:
		return vhca_event_fault_in(q, buf);
	default:
		return why;
	}
}

/* Interrupts are off while so many records are read, at most. */
#define VHCA_EVENT_BATCH	32

/** vhca_event_read() - read() of an event file: whole records, one or more */
ssize_t vhca_event_read(struct file *file, char __user *buf, size_t count,
			loff_t *pos)
{
	struct vhca_event_queue *q = file->private_data;
	size_t done = 0;
	int ret = 0;

	if (count < sizeof(union vhca_record))
		return -EINVAL;
	spin_lock_irq(&q->wait.lock);
	while (!ret && count - done >= sizeof(union vhca_record)) {
		ret = vhca_event_take(q, buf + done);
		if (ret) {
			ret = vhca_event_retry(q, file, buf + done, ret, done);
			continue;
		}
		done += sizeof(union vhca_record);
		if (done % (VHCA_EVENT_BATCH * sizeof(union vhca_record)))
			continue;
		spin_unlock_irq(&q->wait.lock);
		cond_resched();
		spin_lock_irq(&q->wait.lock);
	}
	spin_unlock_irq(&q->wait.lock);
	return done ?: ret;
}

/** vhca_event_poll() - poll() of an event file */
__poll_t vhca_event_poll(struct file *file, struct poll_table_struct *table)
{
	struct vhca_event_queue *q = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &q->wait, table);
	spin_lock_irq(&q->wait.lock);
	if (!list_empty(&q->pending))
		mask = EPOLLIN | EPOLLRDNORM;
	else if (q->closed)
		mask = EPOLLIN | EPOLLRDNORM | EPOLLERR;
	spin_unlock_irq(&q->wait.lock);
	return mask;
}

/** vhca_event_fasync() - SIGIO for an event file */
int vhca_event_fasync(int fd, struct file *file, int on)
{
	struct vhca_event_queue *q = file->private_data;

	return fasync_helper(fd, file, on, &q->fasync);
}
