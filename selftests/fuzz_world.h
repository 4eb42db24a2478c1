/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzer has in hands: the memory that it shows to the device, the objects
 * that it made, and threads that pick among them at random. Nothing here is locked:
 * threads that race get torn objects, which is as good as any other nonsense.
 *
 * All that a step does follows from its own 64-bit seed and what the steps before it
 * have left, so that one thread with the same seeds does the same again.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "raw.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	((unsigned int)(sizeof(a) / sizeof((a)[0])))
#endif

#define FUZZ_CTXS	2	/* open files */
#define FUZZ_OBJS	12	/* of a kind */
#define FUZZ_STALE	16
#define FUZZ_THREADS	4	/* at most */
#define FUZZ_FD_KEPT	500	/* descriptors from here on are not the fuzzer's toys */

/*
 * Addresses are fixed. Mappings of the device have places of their own, which nothing
 * else moves into. Data is in chunks, the last page of each a canary that is read
 * only: it cannot be registered for writing. Behind both lies nothing.
 */
#define FUZZ_PLACES	192
#define FUZZ_PLACE	0x20000ul
#define FUZZ_MAPS	((uint8_t *)0x200000000000ul)
#define FUZZ_CHUNKS	16
#define FUZZ_CHUNK	0x10000ul
#define FUZZ_DATA	((uint8_t *)0x210000000000ul)
#define FUZZ_NOWHERE	((uint8_t *)0x220000000000ul)
#define FUZZ_VOID	0x1000000ul
#define FUZZ_CANARY	0xc5

enum fuzz_kind {
	F_UAR, F_PD, F_MR, F_MW, F_DM, F_CHANNEL, F_ASYNC, F_CQ, F_QP, F_SRQ, F_XRCD, F_KINDS
};

/**
 * struct fuzz_obj - an object that a call made
 * @number: as calls name it; of a channel and an async event file the descriptor.
 * @ctx: file that made it.
 * @rkey: of an MR, a window.
 * @addr: of an MR: its iova; device memory: 0.
 * @len: of an MR, device memory.
 * @async: number of the async event file.
 * @pd: of an MR, a window, a QP.
 * @rc: of a UAR, and of what has a slot in one.
 */
struct fuzz_obj {
	bool		live;
	uint8_t		ctx;
	uint32_t	number;
	uint32_t	rkey;
	uint64_t	addr;
	uint64_t	len;
	uint32_t	async;
	uint32_t	pd;
	struct raw_ctx	*rc;
	struct raw_qp	qp;
	struct raw_cq	cq;
	struct raw_srq	srq;
};

struct fuzz_map {
	uint64_t	offset;
	uint64_t	size;
	uint8_t		ctx;
	bool		used;
};

/* Of all threads, and seen by the process that watches over them. */
struct fuzz_view {
	uint64_t	ioctls;
	uint64_t	done;		/* of them, those that succeeded */
	uint64_t	wqes;
	uint64_t	scribbles;	/* bits, bytes and words of nonsense */
	uint64_t	steps;
	uint64_t	faults;		/* on memory that was taken away */
	uint64_t	wrong;		/* line at which an invariant did not hold */
	struct {
		uint64_t	n;
		uint64_t	seed;
		char		what[32];
	} at[FUZZ_THREADS];
};

static struct {
	int		fd[FUZZ_CTXS];
	int		file;		/* names an XRC domain */
	int		log;
	uint16_t	lid;
	struct fuzz_obj	obj[F_KINDS][FUZZ_OBJS];
	struct raw_ctx	uar[FUZZ_OBJS];
	uint32_t	stale[F_KINDS][FUZZ_STALE];
	unsigned int	nstale[F_KINDS];
	struct fuzz_map	map[FUZZ_PLACES];
	struct fuzz_view *view;
} world;

/**
 * struct fuzz_thread - who does steps
 * @good: nothing but what is right, for the objects to begin with.
 * @mem: where the arguments of its calls are: eight pages, one that is read only, and
 *	nothing behind.
 * @in_step: a fault is no surprise, go to @env.
 */
struct fuzz_thread {
	uint64_t	rng;
	unsigned int	id;
	bool		good;
	uint8_t		*mem;
	sigjmp_buf	env;
	bool		in_step;
};

static __thread struct fuzz_thread *fuzz_self;

/* Random numbers */

static inline uint64_t fuzz_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t fz(struct fuzz_thread *t)
{
	return fuzz_mix(t->rng++);
}

static inline uint32_t fz_below(struct fuzz_thread *t, uint32_t n)
{
	return (fz(t) >> 8) % n;
}

/* Now and then; never while only what is right is wanted. */
static inline bool fz_odd(struct fuzz_thread *t, unsigned int percent)
{
	return !t->good && fz_below(t, 100) < percent;
}

/* Values at which code goes wrong. */
static inline uint64_t fz_edge(struct fuzz_thread *t)
{
	static const uint64_t edge[] = {
		0, 1, 2, 7, 8, 63, 64, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0x8000, 0xffff,
		0x10000, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000, 0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0xfffull,
	};

	switch (fz_below(t, 3)) {
	case 0:		return fz(t);
	case 1:		return edge[fz_below(t, ARRAY_SIZE(edge))] + fz_below(t, 3) - 1;
	default:	return edge[fz_below(t, ARRAY_SIZE(edge))];
	}
}

/* One of the things that a byte string may suffer. */
static inline void fz_hurt(struct fuzz_thread *t, void *mem, size_t size)
{
	uint64_t val = fz_edge(t);
	uint8_t *p = mem;
	size_t n;

	if (!size)
		return;
	switch (fz_below(t, 4)) {
	case 0:		/* a bit */
		p[fz_below(t, size)] ^= 1 << fz_below(t, 8);
		break;
	case 1:		/* a byte */
		p[fz_below(t, size)] = val;
		break;
	default:	/* a word, in either order */
		n = 1u << fz_below(t, 4);
		if (n > size)
			n = size;
		if (fz_below(t, 2))
			val = htobe64(val) >> (64 - 8 * n);
		memcpy(p + fz_below(t, (size - n) / n + 1) * n, &val, n);
	}
}

/* Memory that may be gone: a fault ends the step */

static inline void fuzz_count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static inline void fuzz_fault(int sig)
{
	if (fuzz_self && __atomic_load_n(&fuzz_self->in_step, __ATOMIC_RELAXED)) {
		fuzz_count(&world.view->faults, 1);
		siglongjmp(fuzz_self->env, 1);
	}
	signal(sig, SIG_DFL);	/* and once more, in earnest */
}

static inline void *fuzz_fix(void *addr, size_t size, int prot)
{
	return mmap(addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		    -1, 0);
}

static inline uint8_t *fuzz_canary(unsigned int chunk)
{
	return FUZZ_DATA + (chunk + 1) * FUZZ_CHUNK - 4096;
}

static inline bool fuzz_canaries_whole(void)
{
	unsigned int i, j;

	for (i = 0; i < FUZZ_CHUNKS; i++)
		for (j = 0; j < 4096; j++)
			if (fuzz_canary(i)[j] != FUZZ_CANARY)
				return false;
	return true;
}

static inline int fuzz_make_memory(void)
{
	unsigned int i;

	if (fuzz_fix(FUZZ_MAPS, FUZZ_PLACES * FUZZ_PLACE, PROT_NONE) == MAP_FAILED ||
	    fuzz_fix(FUZZ_NOWHERE, FUZZ_VOID, PROT_NONE) == MAP_FAILED ||
	    fuzz_fix(FUZZ_DATA, FUZZ_CHUNKS * FUZZ_CHUNK, PROT_READ | PROT_WRITE) == MAP_FAILED)
		return -errno;
	for (i = 0; i < FUZZ_CHUNKS; i++) {
		memset(fuzz_canary(i), FUZZ_CANARY, 4096);
		if (mprotect(fuzz_canary(i), 4096, PROT_READ))
			return -errno;
	}
	return 0;
}

/* Somewhere in a chunk, and no more than is left of it before the canary. */
static inline uint64_t fz_data(struct fuzz_thread *t, uint64_t *len)
{
	uint64_t off = fz_below(t, FUZZ_CHUNK - 4096);
	uint64_t left;

	if (fz_below(t, 2))
		off &= ~0xfffull;
	left = FUZZ_CHUNK - 4096 - off;
	*len = fz_below(t, 3) ? 1 + fz_below(t, left) : left;
	return (uintptr_t)FUZZ_DATA + fz_below(t, FUZZ_CHUNKS) * FUZZ_CHUNK + off;
}

/* Mappings */

static inline uint8_t *fuzz_place(unsigned int i)
{
	return FUZZ_MAPS + i * FUZZ_PLACE;
}

static inline void fuzz_unmap(unsigned int i)
{
	fuzz_fix(fuzz_place(i), FUZZ_PLACE, PROT_NONE);
	world.map[i].used = false;
}

/* A place that is free, or one that will be. */
static inline unsigned int fuzz_free_place(void)
{
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < FUZZ_PLACES; i++)
		if (!world.map[i].used)
			return i;
	return next++ % FUZZ_PLACES;
}

/* Map it in a place; what is too large is nowhere. */
static inline void *fuzz_map(int ctx, uint64_t offset, uint64_t size)
{
	unsigned int i = fuzz_free_place();

	if (!size || size > FUZZ_PLACE)
		return FUZZ_NOWHERE;
	if (mmap(fuzz_place(i), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 world.fd[ctx], offset) == MAP_FAILED)
		return FUZZ_NOWHERE;
	world.map[i] = (struct fuzz_map) {
		.offset = offset, .size = size, .ctx = ctx, .used = true,
	};
	return fuzz_place(i);
}

/* Objects */

/* One that is there, mostly one of few, so that threads meet; NULL: there is none. */
static inline struct fuzz_obj *fz_obj(struct fuzz_thread *t, enum fuzz_kind kind)
{
	unsigned int i = fz_below(t, fz_below(t, 2) ? 3 : FUZZ_OBJS), n;

	for (n = 0; n < FUZZ_OBJS; n++) {
		struct fuzz_obj *o = &world.obj[kind][(i + n) % FUZZ_OBJS];

		if (o->live)
			return o;
	}
	return NULL;
}

/* The same, in a file if that has one; @pd: in that PD if there is one. */
static inline struct fuzz_obj *fz_obj_in(struct fuzz_thread *t, enum fuzz_kind kind, int ctx,
					 const uint32_t *pd)
{
	unsigned int i = fz_below(t, fz_below(t, 2) ? 3 : FUZZ_OBJS), n;

	for (n = 0; n < FUZZ_OBJS; n++) {
		struct fuzz_obj *o = &world.obj[kind][(i + n) % FUZZ_OBJS];

		if (o->live && o->ctx == ctx && (!pd || o->pd == *pd))
			return o;
	}
	return fz_obj(t, kind);
}

static inline struct fuzz_obj *fz_obj_of(struct fuzz_thread *t, enum fuzz_kind kind, int ctx)
{
	return fz_obj_in(t, kind, ctx, NULL);
}

/* A number for a call: right, or stale, foreign, of another kind, or any. */
static inline uint32_t fz_number(struct fuzz_thread *t, enum fuzz_kind kind, int ctx)
{
	struct fuzz_obj *o;

	if (fz_odd(t, 4))
		return world.stale[kind][fz_below(t, FUZZ_STALE)];
	if (fz_odd(t, 1))
		return fz_edge(t);
	if (fz_odd(t, 2))
		kind = fz_below(t, F_KINDS);
	o = fz_odd(t, 2) ? fz_obj(t, kind) : fz_obj_of(t, kind, ctx);
	return o ? o->number : fz_below(t, 64);
}

static inline struct fuzz_obj *fuzz_free_obj(enum fuzz_kind kind)
{
	unsigned int i;

	for (i = 0; i < FUZZ_OBJS; i++)
		if (!world.obj[kind][i].live)
			return &world.obj[kind][i];
	return NULL;
}

static inline void fuzz_add(enum fuzz_kind kind, const struct fuzz_obj *made)
{
	struct fuzz_obj *o = fuzz_free_obj(kind);

	if (!o)
		return;
	*o = *made;
	if (kind == F_UAR) {
		struct raw_ctx *rc = &world.uar[o - world.obj[F_UAR]];

		*rc = *made->rc;
		o->rc = rc;
	}
	if (kind == F_CQ)
		o->cq.ctx = o->rc;
	if (kind == F_QP)
		o->qp.ctx = o->rc;
	if (kind == F_SRQ)
		o->srq.ctx = o->rc;
	o->live = true;
}

/* Every other queue stays mapped when it is gone. */
static inline void fuzz_unmap_queue(const uint8_t *buf)
{
	if (buf >= FUZZ_MAPS && buf < fuzz_place(FUZZ_PLACES))
		fuzz_unmap((buf - FUZZ_MAPS) / FUZZ_PLACE);
}

static inline void fuzz_end(enum fuzz_kind kind, struct fuzz_obj *o)
{
	o->live = false;
	world.stale[kind][world.nstale[kind]++ % FUZZ_STALE] = o->number;
	if (o->number & 1)
		return;
	if (kind == F_QP)
		fuzz_unmap_queue(o->qp.buf);
	if (kind == F_CQ)
		fuzz_unmap_queue((uint8_t *)o->cq.ring);
	if (kind == F_SRQ)
		fuzz_unmap_queue(o->srq.buf);
}

static inline void fuzz_gone(enum fuzz_kind kind, int ctx, uint32_t number)
{
	unsigned int i;

	for (i = 0; i < FUZZ_OBJS; i++) {
		struct fuzz_obj *o = &world.obj[kind][i];

		if (o->live && o->ctx == ctx && o->number == number)
			fuzz_end(kind, o);
	}
}

/* The pages of a UAR of a file, for what has a slot in it. */
static inline struct raw_ctx *fuzz_pages(int ctx, uint32_t uar)
{
	static struct raw_ctx nothing = {
		.uar_page = (void *)FUZZ_NOWHERE, .dbr_page = (void *)FUZZ_NOWHERE, .fd = -1,
	};
	unsigned int i;

	for (i = 0; i < FUZZ_OBJS; i++) {
		struct fuzz_obj *o = &world.obj[F_UAR][i];

		if (o->live && o->ctx == ctx && o->number == uar)
			return o->rc;
	}
	return &nothing;
}

#endif
