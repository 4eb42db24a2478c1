/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The neighbour of a hostile process: another process on the same function, whose
 * messages arrive as they were sent, whose events come, and whose memory nobody but
 * its own messages touches. It may be another user's.
 */
#ifndef FUZZ_VICTIM_H
#define FUZZ_VICTIM_H

#include "raw.h"

#include <grp.h>
#include <signal.h>

#define VICTIM_HALF	8192	/* messages go from the one to the other */
#define VICTIM_CANARY	0x3c
#define VICTIM_BATCH_SHIFT	8	/* messages of a batch, by one doorbell */
#define VICTIM_BATCH	(1u << VICTIM_BATCH_SHIFT)
#define VICTIM_SPACE	(VICTIM_HALF / VICTIM_BATCH)	/* half of it is a message */

/**
 * struct victim - shared with who started it
 * @uid: whose it is; 0: of who starts it.
 * @events: it waits for an event every so many messages; 0: never, nor does it yield.
 * @batches: it sends so many small messages at once that a kick does not do them all.
 * @messages: that arrived.
 * @wrong: line at which something was not as it must be.
 */
struct victim {
	uid_t		uid;
	uint32_t	events;
	bool		batches;
	uint64_t	messages;
	uint64_t	wrong;
	uint64_t	stop;
	pid_t		pid;
};

struct victim_bed {
	struct victim	*v;
	uint8_t		*page;		/* canary, registered memory, canary */
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	int		channel;
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_pair	p;
};

#define VICTIM_MUST(bed, cond) do {					\
	if (!(cond)) {							\
		__atomic_store_n(&(bed)->v->wrong, __LINE__, __ATOMIC_RELEASE);	\
		_exit(1);						\
	}								\
} while (0)

static inline int victim_pair(struct victim_bed *bed)
{
	struct raw_pair *p = &bed->p;
	int err;

	p->a.made.sq_shift = VICTIM_BATCH_SHIFT;
	p->b.made.rq_shift = VICTIM_BATCH_SHIFT;
	err = raw_make_qp(&bed->ctx, &p->a, &bed->scq, &bed->rcq);
	if (!err)
		err = raw_make_qp(&bed->ctx, &p->b, &bed->scq, &bed->rcq);
	return err ? err : raw_connect(&p->a, &p->b);
}

static inline void victim_open(struct victim_bed *bed)
{
	bed->page = mmap(NULL, 2 * VICTIM_HALF + 2 * 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	VICTIM_MUST(bed, bed->page != MAP_FAILED);
	memset(bed->page, VICTIM_CANARY, 2 * VICTIM_HALF + 2 * 4096);
	VICTIM_MUST(bed, !raw_open(&bed->ctx, 0));
	bed->mr = (struct raw_mr) { .addr = bed->page + 4096, .len = 2 * VICTIM_HALF };
	VICTIM_MUST(bed, !raw_reg(&bed->ctx, &bed->mr, VHCA_ACCESS_LOCAL_WRITE));
	bed->channel = raw_channel(bed->ctx.fd);
	VICTIM_MUST(bed, bed->channel >= 0);
	VICTIM_MUST(bed, !raw_cq(&bed->ctx, &bed->scq, VICTIM_BATCH, VHCA_INVALID_FD));
	VICTIM_MUST(bed, !raw_cq(&bed->ctx, &bed->rcq, VICTIM_BATCH, bed->channel));
	VICTIM_MUST(bed, !victim_pair(bed));
}

static inline uint8_t victim_byte(uint64_t n, uint32_t i)
{
	return (n * 0x9e3779b97f4a7c15ull >> 32) + i * 7;
}

static inline bool victim_spin(struct raw_cq *cq, struct raw_wc *wc)
{
	long long end = raw_ms() + RAW_DEADLINE_MS;
	uint32_t n;

	for (n = 1; !raw_poll(cq, wc); n++)
		if (n % 65536 == 0 && raw_ms() > end)
			return false;
	return true;
}

static inline void victim_wait(struct victim_bed *bed, struct raw_cq *cq, uint32_t len)
{
	struct raw_wc wc;

	if (bed->v->events)
		VICTIM_MUST(bed, !raw_wait_wc(cq, &wc));
	else
		VICTIM_MUST(bed, victim_spin(cq, &wc));
	VICTIM_MUST(bed, wc.status == VHCA_CQE_SUCCESS);
	VICTIM_MUST(bed, cq != &bed->rcq || wc.byte_len == len);
}

static inline void victim_look(struct victim_bed *bed, uint64_t n, uint32_t len)
{
	uint8_t *got = bed->mr.addr + VICTIM_HALF;
	uint32_t i;

	for (i = 0; i < len; i++)
		VICTIM_MUST(bed, got[i] == victim_byte(n, i));
	for (; i < len + 64 && i < VICTIM_HALF; i++)
		VICTIM_MUST(bed, got[i] == VICTIM_CANARY);
	memset(got, VICTIM_CANARY, len);
	for (i = 0; n % 32 == 0 && i < 4096; i++)
		VICTIM_MUST(bed, bed->page[i] == VICTIM_CANARY &&
			    bed->page[4096 + 2 * VICTIM_HALF + i] == VICTIM_CANARY);
}

static inline void victim_message(struct victim_bed *bed, uint64_t n)
{
	uint32_t len = n * 7919 % (n % 8 ? 300 : VICTIM_HALF) + 1, i;
	bool event = bed->v->events && n % bed->v->events == 0;

	for (i = 0; i < len; i++)
		bed->mr.addr[i] = victim_byte(n, i);
	if (event)
		VICTIM_MUST(bed, !raw_arm(&bed->rcq, false));
	VICTIM_MUST(bed, !raw_recv(&bed->p.b, &bed->mr, VICTIM_HALF, VICTIM_HALF));
	VICTIM_MUST(bed, !raw_send(&bed->p.a, VHCA_WQE_SIGNALED, &bed->mr, 0, len));
	if (event)
		VICTIM_MUST(bed, !raw_cq_event(&bed->rcq));
	victim_wait(bed, &bed->rcq, len);
	victim_wait(bed, &bed->scq, len);
	victim_look(bed, n, len);
}

static inline void victim_batch(struct victim_bed *bed, uint64_t n)
{
	const uint32_t len = VICTIM_SPACE / 2;
	struct vhca_wqe_data sge;
	uint8_t *got;
	uint32_t i, j;

	for (i = 0; i < VICTIM_BATCH; i++) {
		uint32_t at = i * VICTIM_SPACE;

		for (j = 0; j < len; j++)
			bed->mr.addr[at + j] = victim_byte(n + i, j);
		VICTIM_MUST(bed, !raw_recv(&bed->p.b, &bed->mr, VICTIM_HALF + at, len));
		sge = raw_sge(&bed->mr, at, len);
		raw_build_send(&bed->p.a, VHCA_WQE_SIGNALED, &sge, 1);
		raw_produce(&bed->p.a, 1);
	}
	VICTIM_MUST(bed, !raw_ring_qp(&bed->p.a));
	for (i = 0; i < VICTIM_BATCH; i++) {
		victim_wait(bed, &bed->rcq, len);
		victim_wait(bed, &bed->scq, len);
	}
	got = bed->mr.addr + VICTIM_HALF;
	for (i = 0; i < VICTIM_BATCH; i++, got += VICTIM_SPACE)
		for (j = 0; j < VICTIM_SPACE; j++)
			VICTIM_MUST(bed, got[j] == (j < len ? victim_byte(n + i, j) :
							      VICTIM_CANARY));
}

/* Logged in on his own: the scheduler shares processors between sessions, if at all. */
static inline int become_user(uid_t uid)
{
	setsid();
	return setgroups(0, NULL) || setgid(uid) || setuid(uid);
}

static inline void victim_work(struct victim *v)
{
	struct victim_bed bed = { .v = v };
	uint64_t n;

	VICTIM_MUST(&bed, !v->uid || !become_user(v->uid));
	victim_open(&bed);
	for (n = 1; !__atomic_load_n(&v->stop, __ATOMIC_ACQUIRE);) {
		if (v->batches)
			victim_batch(&bed, n);
		else
			victim_message(&bed, n);
		n += v->batches ? VICTIM_BATCH : 1;
		__atomic_store_n(&v->messages, n - 1, __ATOMIC_RELEASE);
	}
	_exit(0);
}

static inline bool victim_moves(const struct victim *v)
{
	return __atomic_load_n(&v->messages, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&v->wrong, __ATOMIC_ACQUIRE);
}

/* Started, and at work. */
static inline struct victim *victim_start(const struct victim *how)
{
	struct victim *v = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0);
	pid_t pid;

	if (v == MAP_FAILED)
		return NULL;
	*v = *how;
	pid = fork();
	if (!pid)
		victim_work(v);
	v->pid = pid;
	if (pid < 0 || !RAW_WAIT(victim_moves(v)))
		return NULL;
	return v;
}

/* 0 when nothing was wrong to its end, else the line. */
static inline int victim_stop(struct victim *v)
{
	int status;

	__atomic_store_n(&v->stop, 1, __ATOMIC_RELEASE);
	status = raw_wait_child(v->pid);
	return v->wrong ? (int)v->wrong : status;
}

#endif
