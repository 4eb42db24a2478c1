/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzer does to descriptors and mappings: it maps, moves, splits, protects
 * and unmaps what the device maps, closes and duplicates descriptors.
 */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include "fuzz_queues.h"

/* Right offset and length, or one of them not, in a place of its own. */
static inline void do_mmap(struct fuzz_thread *t)
{
	struct fuzz_map *m = &world.map[fz_below(t, FUZZ_PLACES)];
	uint64_t offset = m->offset, size = m->size ? m->size : 4096;
	int prot = fz_odd(t, 20) ? fz_below(t, 8) : PROT_READ | PROT_WRITE;
	int flags = fz_odd(t, 10) ? MAP_PRIVATE : MAP_SHARED;
	unsigned int i = fz_below(t, FUZZ_PLACES);

	if (fz_odd(t, 30))
		offset = fz_edge(t) & ~0xfffull;
	if (fz_odd(t, 20))
		offset += 4096;
	if (fz_odd(t, 20))
		size += 4096;
	if (size > FUZZ_PLACE)
		size = FUZZ_PLACE;
	if (mmap(fuzz_place(i), size, prot, flags | MAP_FIXED, world.fd[m->ctx], offset) ==
	    MAP_FAILED) {
		/* The place may be a hole now. */
		fuzz_unmap(i);
		return;
	}
	world.map[i] = (struct fuzz_map) {
		.offset = offset, .size = size, .ctx = m->ctx, .used = true,
	};
}

static inline unsigned int fz_mapped(struct fuzz_thread *t)
{
	unsigned int i = fz_below(t, FUZZ_PLACES), n;

	for (n = 0; n < FUZZ_PLACES && !world.map[i].used; n++)
		i = (i + 1) % FUZZ_PLACES;
	return i;
}

/* In another place, and longer or shorter perhaps, which may not be. */
static inline void do_mremap(struct fuzz_thread *t)
{
	unsigned int from = fz_mapped(t), to = fz_below(t, FUZZ_PLACES);
	uint64_t size = world.map[from].size;
	uint64_t new = fz_odd(t, 30) ? 4096 * (1 + fz_below(t, 8)) : size;

	if (!world.map[from].used || from == to)
		return;
	if (mremap(fuzz_place(from), size, new, MREMAP_MAYMOVE | MREMAP_FIXED,
		   fuzz_place(to)) == MAP_FAILED)
		return;
	world.map[to] = world.map[from];
	world.map[to].size = new;
	fuzz_unmap(from);
}

static inline void do_protect(struct fuzz_thread *t)
{
	unsigned int i = fz_mapped(t);

	switch (fz_below(t, 4)) {
	case 0:
		mprotect(fuzz_place(i), 4096, fz_below(t, 8));
		break;
	case 1:
		madvise(fuzz_place(i), world.map[i].size, fz_below(t, 22));
		break;
	case 2:
		msync(fuzz_place(i), 4096, MS_SYNC);
		break;
	case 3:		/* a part of it */
		fuzz_fix(fuzz_place(i), 4096, PROT_NONE);
		break;
	}
}

static inline void do_unmap(struct fuzz_thread *t)
{
	fuzz_unmap(fz_mapped(t));
}

/* The device has the pages that it had; the process gets others. */
static inline void do_data_away(struct fuzz_thread *t)
{
	uint64_t len, at = fz_data(t, &len) & ~0xfffull;

	madvise((void *)(uintptr_t)at, 4096, MADV_DONTNEED);
}

static inline void do_close(struct fuzz_thread *t)
{
	enum fuzz_kind kind = fz_below(t, 2) ? F_CHANNEL : F_ASYNC;
	struct fuzz_obj *o = fz_obj(t, kind);

	if (!o || o->number >= FUZZ_FD_KEPT)
		return;
	o->live = false;
	close(o->number);
}

/* The copy is used, the original is closed. */
static inline void do_dup(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, fz_below(t, 2) ? F_CHANNEL : F_ASYNC);
	int fd;

	if (!o || o->number >= FUZZ_FD_KEPT)
		return;
	fd = dup(o->number);
	if (fd < 0)
		return;
	close(o->number);
	o->number = fd;
}

/* SIGIO for an event file, and other things that a descriptor takes or does not. */
static inline void do_fcntl(struct fuzz_thread *t)
{
	struct fuzz_obj *o = fz_obj(t, fz_below(t, 2) ? F_CHANNEL : F_ASYNC);
	int fd = o && fz_below(t, 2) ? (int)o->number : world.fd[fz_below(t, FUZZ_CTXS)];
	char c[16] = {};

	switch (fz_below(t, 5)) {
	case 0:
		fcntl(fd, F_SETFL, O_NONBLOCK | (fz_below(t, 2) ? O_ASYNC : 0));
		break;
	case 1:
		fcntl(fd, F_SETOWN, getpid());
		break;
	case 2:
		if (write(fd, c, fz_below(t, 16)) >= 0)
			fuzz_count(&world.view->wrong, __LINE__);
		break;
	case 3:
		lseek(fd, fz_edge(t), fz_below(t, 3));
		break;
	case 4:
		ioctl(fd, fz_edge(t), fz_edge(t));
		break;
	}
}

#endif
