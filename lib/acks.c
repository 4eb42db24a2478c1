// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * acks.c: count acknowledged events, and wait for them.
 */
#include "acks.h"
#include "futex.h"

#define ACKS_WAITING	(1ull << 63)

/* The half that changes with every event acknowledged is what one sleeps on. */
static uint32_t *acks_futex(struct vhca_acks *acks)
{
	uint32_t *half = (uint32_t *)&acks->word;

	return half + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

void vhca_acks_add(struct vhca_acks *acks, unsigned int count)
{
	/* A wake on memory that was freed meanwhile wakes nobody; no harm. */
	if (__atomic_fetch_add(&acks->word, count, __ATOMIC_RELEASE) & ACKS_WAITING)
		vhca_futex_wake(acks_futex(acks), INT_MAX);
}

/**
 * vhca_acks_wait - wait until as many events were acknowledged as handed out
 * @acks: the object's count
 * @reported: events that the kernel handed out, modulo 2^32
 */
void vhca_acks_wait(struct vhca_acks *acks, uint32_t reported)
{
	uint32_t done;

	__atomic_fetch_or(&acks->word, ACKS_WAITING, __ATOMIC_RELAXED);
	for (;;) {
		done = (uint32_t)__atomic_load_n(&acks->word, __ATOMIC_ACQUIRE);
		if (done == reported)
			return;
		vhca_futex_wait(acks_futex(acks), done);
	}
}
