/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * load.h: one process sends, another receives, at a rate or as fast as goes.
 *
 * A message carries the time at which it was due. At a set rate that time follows
 * from the rate alone: a message that the sender could not send in time counts as
 * late, so that what waits in a jam is not left out of the percentiles.
 *
 * The receiver says in shared memory how far it has come, and the sender stays less
 * than a queue ahead of it. Of RDMA WRITEs, which nobody receives, the sender's own
 * completions say so.
 */
#ifndef LOAD_H
#define LOAD_H

#include "against.h"
#include "hist.h"

#define WARM_UP		0.2	/* of the seconds, not counted */
#define LAST		UINT64_MAX

/* What both processes see. */
struct shared {
	uint64_t received __attribute__((aligned(64)));
	bool measuring __attribute__((aligned(64)));
};

/* What happened since the warm-up, or before a moment. */
struct usage {
	uint64_t time, cpu, idle, cycles, messages, events;
};

static struct usage usage_since(const struct usage *then, struct usage now)
{
	now.time -= then->time;
	now.cpu -= then->cpu;
	now.idle -= then->idle;
	now.cycles -= then->cycles;
	now.messages -= then->messages;
	now.events -= then->events;
	return now;
}

static struct usage usage_now(int cycles, uint64_t messages, uint64_t events)
{
	return (struct usage){ now_ns(), cpu_ns(), idle_ns(), cycles_read(cycles), messages,
			       events };
}

static void usage_report(const char *who, const struct usage *u)
{
	double n = u->messages ? (double)u->messages : 1;
	char name[64];

	snprintf(name, sizeof(name), "%s_cpu_us", who);
	report(name, (double)u->cpu / n / 1000);
	snprintf(name, sizeof(name), "%s_cpu_share", who);
	report(name, (double)u->cpu / (double)u->time);
	if (u->cycles) {
		snprintf(name, sizeof(name), "%s_cycles", who);
		report(name, (double)u->cycles / n);
	}
}

/*
 * Workers: what the I/O thread has received, it hands over here.
 */
#define JOBS	4096

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t some;
	uint64_t due[JOBS];
	unsigned int head, tail;
	bool end;
	int work;
	struct hist hist;
};

static void work_on(struct hist *h, uint64_t due, int work)
{
	uint64_t now = now_ns();

	hist_add(h, now > due ? now - due : 0);
	if (work)
		spin_until(now + work);
}

static void *worker(void *arg)
{
	struct pool *p = arg;
	struct hist *mine = calloc(1, sizeof(*mine));
	unsigned int i;
	uint64_t due;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->head == p->tail && !p->end)
			pthread_cond_wait(&p->some, &p->lock);
		if (p->head == p->tail)
			break;
		due = p->due[p->head++ % JOBS];
		pthread_mutex_unlock(&p->lock);
		work_on(mine, due, p->work);
		pthread_mutex_lock(&p->lock);
	}
	for (i = 0; i < sizeof(mine->bin) / sizeof(mine->bin[0]); i++)
		p->hist.bin[i] += mine->bin[i];
	p->hist.count += mine->count;
	p->hist.sum += mine->sum;
	p->hist.max = mine->max > p->hist.max ? mine->max : p->hist.max;
	pthread_mutex_unlock(&p->lock);
	free(mine);
	return NULL;
}

static void hand_over(struct pool *p, const uint64_t *due, int n)
{
	int i;

	pthread_mutex_lock(&p->lock);
	for (i = 0; i < n; i++) {
		/* A full queue is no place to wait in: the I/O thread gives way. */
		while (p->tail - p->head == JOBS) {
			pthread_mutex_unlock(&p->lock);
			sched_yield();
			pthread_mutex_lock(&p->lock);
		}
		p->due[p->tail++ % JOBS] = due[i];
		pthread_cond_signal(&p->some);
	}
	pthread_mutex_unlock(&p->lock);
}

/*
 * Receiver
 */
struct receiver {
	struct link link;
	struct waiter waiter;
	struct against against;
	struct shared *shared;
	struct pool pool;
	struct hist hist;
	int cycles;
	bool measuring;
	bool ended;
	uint64_t received;
	struct usage start;
};

static void receive(struct receiver *r)
{
	const struct options *o = r->link.o;
	struct ibv_wc wc[16];
	uint64_t due[16], now;
	int i, n = wait_wcs(&r->waiter, wc, 16);

	for (i = 0; i < n; i++) {
		memcpy(&due[i], message(&r->link, r->received + i), sizeof(due[i]));
		r->ended |= due[i] == LAST;
	}
	n -= r->ended;
	post_recvs(&r->link, 0, r->received + o->depth, n);
	r->received += n;
	__atomic_store_n(&r->shared->received, r->received, __ATOMIC_RELEASE);
	if (!r->measuring) {
		r->measuring = __atomic_load_n(&r->shared->measuring, __ATOMIC_ACQUIRE);
		if (r->measuring) {
			r->start = usage_now(r->cycles, r->received, r->waiter.events);
			if (o->against)
				against_begin(&r->against, &r->waiter, r->received);
		}
		return;
	}
	if (o->against)
		against_turn(&r->against, &r->waiter, r->received);
	if (o->workers) {
		hand_over(&r->pool, due, n);
		return;
	}
	for (now = now_ns(), i = 0; i < n; i++) {
		hist_add(&r->hist, now > due[i] ? now - due[i] : 0);
		if (o->work)
			spin_until(now_ns() + o->work);
	}
}

static void receiver_report(struct receiver *r)
{
	const struct options *o = r->link.o;
	struct usage u = usage_since(&r->start, usage_now(r->cycles, r->received,
							  r->waiter.events));
	double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

	report("rate", (double)u.messages * 1e9 / (double)u.time);
	report("mbytes", (double)u.messages * o->size * 1e3 / (double)u.time);
	report("events", u.messages ? (double)u.events / (double)u.messages : 0);
	report("machine_cpu_us", (cpus * (double)u.time - (double)u.idle) /
				 (u.messages ? (double)u.messages : 1) / 1000);
	usage_report("receiver", &u);
	if (o->against)
		against_report(&r->against);
	hist_report(&r->hist);
	hist_dump(&r->hist, o->dump);
}

static void run_receiver(const struct options *o, struct address *mine, struct address *peer,
			 struct shared *shared, pthread_barrier_t *meet)
{
	struct receiver *r = calloc(1, sizeof(*r));
	pthread_t *threads = calloc(o->workers + 1, sizeof(*threads));
	int i;

	/* Opened before there are workers, to count them, too. */
	r->cycles = cycles_open();
	r->shared = shared;
	link_open(&r->link, o, mine);
	post_recvs(&r->link, 0, 0, o->depth);
	pthread_mutex_init(&r->pool.lock, NULL);
	pthread_cond_init(&r->pool.some, NULL);
	r->pool.work = o->work;
	for (i = 0; i < o->workers; i++)
		pthread_create(&threads[i], NULL, worker, &r->pool);
	pin(o->cpu[1]);
	pthread_barrier_wait(meet);
	link_connect(&r->link, peer);
	waiter_init(&r->waiter, &r->link);
	if (o->against)
		r->against = (struct against){ .mode = { o->mode[0], o->against[0] } };
	pthread_barrier_wait(meet);
	while (!r->ended && !o->write)
		receive(r);
	pthread_mutex_lock(&r->pool.lock);
	r->pool.end = true;
	pthread_cond_broadcast(&r->pool.some);
	pthread_mutex_unlock(&r->pool.lock);
	for (i = 0; i < o->workers; i++)
		pthread_join(threads[i], NULL);
	if (o->workers)
		r->hist = r->pool.hist;
	if (!o->write)
		receiver_report(r);
	ack(&r->waiter, 1);
	/* The sender may still be waiting for its completions. */
	pthread_barrier_wait(meet);
	link_close(&r->link);
}

/*
 * Sender
 */
struct sender {
	struct link link;
	struct shared *shared;
	uint64_t sent;
	uint64_t done;		/* by completions of our own */
	double gap;		/* nanoseconds between two messages; 0: none */
	double due;
};

/* Messages for which there is room, in both queues. */
static uint64_t room(struct sender *s)
{
	uint64_t received = s->done;

	s->done += (uint64_t)reap_sends(&s->link);
	if (!s->link.o->write)
		received = __atomic_load_n(&s->shared->received, __ATOMIC_ACQUIRE);
	if (received > s->done)
		received = s->done;
	return s->link.o->depth - (s->sent - received);
}

/* Give @n messages the times at which they are due, and wait for that of the last. */
static void stamp(struct sender *s, int n)
{
	uint64_t due = 0;
	int i;

	for (i = 0; i < n; i++) {
		due = s->gap ? (uint64_t)s->due : now_ns();
		s->due += s->gap;
		memcpy(message(&s->link, s->sent + i), &due, sizeof(due));
	}
	if (s->gap)
		spin_until(due);
}

static void send_batch(struct sender *s)
{
	int n = s->link.o->batch;

	while (room(s) < (uint64_t)n)
		;
	stamp(s, n);
	post_sends(&s->link, 0, s->sent, n, 0);
	s->sent += n;
}

static void send_last(struct sender *s)
{
	uint64_t last = LAST;

	while (!room(s))
		;
	memcpy(message(&s->link, s->sent), &last, sizeof(last));
	post_sends(&s->link, 0, s->sent, 1, IBV_SEND_SOLICITED);
}

static void sender_report(struct sender *s, const struct usage *start, int cycles)
{
	struct usage u = usage_since(start, usage_now(cycles, s->sent, 0));

	if (s->link.o->write) {
		report("rate", (double)u.messages * 1e9 / (double)u.time);
		report("mbytes", (double)u.messages * s->link.o->size * 1e3 / (double)u.time);
	}
	usage_report("sender", &u);
	fflush(stdout);
}

static void run_sender(const struct options *o, struct address *mine, struct address *peer,
		       struct shared *shared, pthread_barrier_t *meet)
{
	struct sender *s = calloc(1, sizeof(*s));
	int cycles = cycles_open();
	struct usage start;
	uint64_t t;

	s->shared = shared;
	s->gap = o->rate ? 1e9 / o->rate : 0;
	link_open(&s->link, o, mine);
	pin(o->cpu[0]);
	pthread_barrier_wait(meet);
	link_connect(&s->link, peer);
	pthread_barrier_wait(meet);
	t = now_ns();
	s->due = (double)t;
	while (now_ns() < t + (uint64_t)(o->seconds * WARM_UP * 1e9))
		send_batch(s);
	start = usage_now(cycles, s->sent, 0);
	__atomic_store_n(&shared->measuring, true, __ATOMIC_RELEASE);
	while (now_ns() < start.time + (uint64_t)(o->seconds * 1e9))
		send_batch(s);
	sender_report(s, &start, cycles);
	if (!o->write)
		send_last(s);
	pthread_barrier_wait(meet);
	link_close(&s->link);
}

static void test_load(const struct options *o)
{
	struct address *a = shared_page(address_size(o)), *b = shared_page(address_size(o));
	struct shared *shared = shared_page(sizeof(*shared));
	pthread_barrier_t *meet = meeting();
	pid_t child;

	if (o->size < (int)sizeof(uint64_t))
		die("messages of %d bytes carry no time", o->size);
	if (fork_peer(&child)) {
		run_receiver(o, b, a, shared, meet);
		exit(0);
	}
	run_sender(o, a, b, shared, meet);
	join_peer(child);
}

#endif
