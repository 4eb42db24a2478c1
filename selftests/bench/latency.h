/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * latency.h: a message there and one back, and how long it takes until somebody who
 * sleeps runs again.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include "hist.h"
#include "wait.h"

struct duo {
	struct address *address[2];
	pthread_barrier_t *meet;
	uint64_t *stamp;	/* of the post that is to wake */
	uint64_t *asleep;	/* rounds for which the reader went to wait */
};

static struct duo duo_new(const struct options *o)
{
	return (struct duo){
		.address = { shared_page(address_size(o)), shared_page(address_size(o)) },
		.meet = meeting(),
		.stamp = shared_page(sizeof(uint64_t)),
		.asleep = shared_page(sizeof(uint64_t)),
	};
}

/* A connected link; the first receives are posted. */
static void duo_open(struct duo *d, const struct options *o, struct link *l, int me)
{
	int q;

	link_open(l, o, d->address[me]);
	for (q = 0; q < o->qps; q++)
		post_recvs(l, q, 0, 8);
	pthread_barrier_wait(d->meet);
	link_connect(l, d->address[!me]);
	pin(o->cpu[me]);
	pthread_barrier_wait(d->meet);
}

static void send_one(struct link *l, int q, uint64_t n)
{
	post_sends(l, q, n, 1, 0);
	reap_sends(l);
}

static void bounce(struct link *l, struct waiter *w, uint64_t n)
{
	struct ibv_wc wc;

	wait_wcs(w, &wc, 1);
	post_recvs(l, 0, n, 1);
}

static void pingpong(const struct options *o, struct duo *d, int me)
{
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t i, t, begin = 0, warm = o->count / 10;
	struct waiter w;
	struct link l;

	duo_open(d, o, &l, me);
	waiter_init(&w, &l);
	for (i = 0; i < warm + o->count; i++) {
		t = now_ns();
		if (i == warm)
			begin = t;
		if (me) {
			bounce(&l, &w, i);
			send_one(&l, 0, i);
		} else {
			send_one(&l, 0, i);
			bounce(&l, &w, i);
		}
		if (i >= warm)
			hist_add(h, now_ns() - t);
	}
	if (!me) {
		report("round_us", (double)(now_ns() - begin) / o->count / 1000);
		hist_report(h);
		hist_dump(h, o->dump);
	}
	ack(&w, 1);
	pthread_barrier_wait(d->meet);
	link_close(&l);
}

static void test_pingpong(const struct options *o)
{
	struct duo d = duo_new(o);
	pid_t child;

	if (fork_peer(&child)) {
		pingpong(o, &d, 1);
		exit(0);
	}
	pingpong(o, &d, 0);
	join_peer(child);
}

/*
 * Wake-up: from just before the post until the reader, which has slept, runs again.
 */
#define REST_NS		400000	/* until a reader that said it goes to wait does */

/* The reader says that it is about to sleep for round @i; the other one's turn. */
static void go_to_sleep(struct duo *d, uint64_t i)
{
	__atomic_store_n(d->asleep, i + 1, __ATOMIC_RELEASE);
}

static void let_sleep(struct duo *d, uint64_t i)
{
	while (__atomic_load_n(d->asleep, __ATOMIC_ACQUIRE) != i + 1)
		;
	spin_until(now_ns() + REST_NS);
	*d->stamp = now_ns();
}

static void woken(struct duo *d, struct hist *h)
{
	hist_add(h, now_ns() - *d->stamp);
}

static void arm(struct ibv_cq *cq)
{
	if (ibv_req_notify_cq(cq, 0))
		die("ibv_req_notify_cq");
}

static void wake_reader(const struct options *o, struct duo *d)
{
	struct hist *h = calloc(1, sizeof(*h));
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct link l;
	void *number;
	int i;

	duo_open(d, o, &l, 1);
	for (i = 0; i < o->qps; i++)
		arm(l.rcq[i]);
	for (i = 0; i < o->count; i++) {
		go_to_sleep(d, i);
		if (ibv_get_cq_event(l.channel, &cq, &number))
			die("ibv_get_cq_event");
		woken(d, h);
		if (ibv_poll_cq(cq, 1, &wc) != 1 || wc.status)
			die("completion");
		arm(cq);
		post_recvs(&l, (int)(intptr_t)number, i, 1);
		ibv_ack_cq_events(cq, 1);
	}
	hist_report(h);
	hist_dump(h, o->dump);
	pthread_barrier_wait(d->meet);
	link_close(&l);
}

static void test_wake(const struct options *o)
{
	struct duo d = duo_new(o);
	uint64_t state = 88172645463325252ull;
	struct link l;
	pid_t child;
	int i;

	if (fork_peer(&child)) {
		wake_reader(o, &d);
		exit(0);
	}
	duo_open(&d, o, &l, 0);
	for (i = 0; i < o->count; i++) {
		let_sleep(&d, i);
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		send_one(&l, (int)(state % o->qps), i);
	}
	pthread_barrier_wait(d.meet);
	join_peer(child);
	link_close(&l);
}

#endif
