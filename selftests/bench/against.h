/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * against.h: two ways to wait, in turn within one run, so that whatever else the
 * machine does meanwhile happens to both.
 */
#ifndef AGAINST_H
#define AGAINST_H

#include "wait.h"

#define TURN_NS		20000000

struct tally {
	uint64_t time, cpu, messages;
};

/**
 * struct against - a receiver's turns
 * @mode: the two ways; @now is which of them it is.
 * @start: what there was when the turn began.
 * @sum: of all turns of each that have ended.
 */
struct against {
	char mode[2];
	int now;
	struct tally start;
	struct tally sum[2];
};

static inline void against_begin(struct against *a, struct waiter *w, uint64_t messages)
{
	a->start = (struct tally){ now_ns(), cpu_ns(), messages };
	w->mode = a->mode[a->now];
	/* What came in the other's turn tells nothing of the time between two. */
	w->last = a->start.time;
}

/* The other's turn, when this one has had its time. */
static inline void against_turn(struct against *a, struct waiter *w, uint64_t messages)
{
	struct tally *sum = &a->sum[a->now];
	uint64_t now = now_ns();

	if (now - a->start.time < TURN_NS)
		return;
	sum->time += now - a->start.time;
	sum->cpu += cpu_ns() - a->start.cpu;
	sum->messages += messages - a->start.messages;
	a->now = !a->now;
	against_begin(a, w, messages);
}

/* The first way's figures, as shares of the second one's. */
static inline void against_report(const struct against *a)
{
	const struct tally *x = &a->sum[0], *y = &a->sum[1];
	double messages = (double)x->messages / (double)y->messages;

	report("rate_ratio", messages * (double)y->time / (double)x->time);
	report("cpu_ratio", (double)x->cpu / (double)y->cpu / messages);
}

#endif
