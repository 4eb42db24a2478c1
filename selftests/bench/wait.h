/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait.h: the three ways to wait for completions of a CQ.
 *
 * Polling looks without end. With events the CQ is armed when it is found empty,
 * looked at once more, and slept upon. The hybrid polls on for up to SPIN_NS as
 * long as messages come close together, and does as with events when they do not.
 * What decides is the mean time between them, in which each new one counts for an
 * eighth: while it is below BUSY_NS, less than it costs to sleep and be woken, the
 * next one is more likely to come during the spin than after it. A sender that is
 * kept from its CPU for a moment is waited for, and a pause of whatever length counts
 * as PAUSE_NS, so that after it a few messages are enough to be busy again.
 */
#ifndef WAIT_H
#define WAIT_H

#include <sys/epoll.h>

#include "link.h"

#define BUSY_NS		30000
#define SPIN_NS		300000
#define PAUSE_NS	300000
#define ACK_BATCH	256

struct waiter {
	struct link *l;
	struct ibv_cq *cq;
	char mode;
	bool armed;
	int epfd;
	unsigned int unacked;
	uint64_t events;
	uint64_t last;		/* when there was a message last */
	double gap;		/* nanoseconds between two, on the average */
};

static inline void waiter_init(struct waiter *w, struct link *l)
{
	struct epoll_event ev = { .events = EPOLLIN };

	*w = (struct waiter){ .l = l, .cq = l->rcq[0], .mode = l->o->mode[0], .gap = PAUSE_NS,
			      .last = now_ns(), .epfd = -1 };
	if (!l->o->epoll)
		return;
	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (fcntl(l->channel->fd, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(w->epfd, EPOLL_CTL_ADD, l->channel->fd, &ev))
		die("epoll");
}

static inline void ack(struct waiter *w, unsigned int at_least)
{
	if (w->unacked < at_least)
		return;
	ibv_ack_cq_events(w->cq, w->unacked);
	w->unacked = 0;
}

/* Until the channel has an event; its CQ is the only one. */
static inline void sleep_on_channel(struct waiter *w)
{
	struct epoll_event ev;
	struct ibv_cq *cq;
	void *context;

	while (w->epfd >= 0 && epoll_wait(w->epfd, &ev, 1, -1) < 0)
		if (errno != EINTR)
			die("epoll_wait");
	if (ibv_get_cq_event(w->l->channel, &cq, &context))
		die("ibv_get_cq_event");
	w->armed = false;
	w->events++;
	w->unacked++;
	ack(w, ACK_BATCH);
}

static inline void learn(struct waiter *w, int n)
{
	uint64_t now = now_ns();
	double gap = (double)(now - w->last) / n;

	if (gap > PAUSE_NS)
		gap = PAUSE_NS;
	w->gap += (gap - w->gap) * (n < 8 ? n / 8.0 : 1);
	w->last = now;
}

/* Poll on for a while; completions found. */
static inline int spin(struct waiter *w, struct ibv_wc *wc, int max)
{
	uint64_t end = now_ns() + SPIN_NS;
	int n;

	do
		n = ibv_poll_cq(w->cq, max, wc);
	while (!n && now_ns() < end);
	return n;
}

static inline int wait_by_events(struct waiter *w, struct ibv_wc *wc, int max)
{
	int n;

	for (;;) {
		if (!w->armed && ibv_req_notify_cq(w->cq, w->l->o->solicited))
			die("ibv_req_notify_cq");
		w->armed = true;
		n = ibv_poll_cq(w->cq, max, wc);
		if (n)
			return n;
		sleep_on_channel(w);
		n = ibv_poll_cq(w->cq, max, wc);
		if (n)
			return n;
	}
}

/* One to @max completions, however long that takes. */
static inline int wait_wcs(struct waiter *w, struct ibv_wc *wc, int max)
{
	int i, n;

	do
		n = ibv_poll_cq(w->cq, max, wc);
	while (!n && w->mode == 'p');
	if (!n && w->mode == 'h' && w->gap < BUSY_NS)
		n = spin(w, wc, max);
	if (!n)
		n = wait_by_events(w, wc, max);
	if (w->mode == 'h')
		learn(w, n);
	for (i = 0; i < n; i++)
		if (wc[i].status)
			die("receive %s", ibv_wc_status_str(wc[i].status));
	return n;
}

#endif
