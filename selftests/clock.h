/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clock.h: the time, and waiting for what must become so.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define DEADLINE_NS	(20 * 1000000000ull)

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Until a condition holds or the deadline is over; the value says which. */
#define wait_until(cond) ({						\
	uint64_t __end = now_ns() + DEADLINE_NS;			\
	bool __holds;							\
									\
	while (!(__holds = (cond)) && now_ns() < __end)			\
		sched_yield();						\
	__holds; })

#endif
