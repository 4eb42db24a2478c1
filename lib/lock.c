// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lock.c: the contended path of the data path's lock.
 */
#include "barrier.h"
#include "futex.h"
#include "lock.h"

#define SPINS	200

void vhca_lock_slow(struct vhca_lock *lock)
{
	int i;

	for (i = 0; i < SPINS; i++) {
		if (!__atomic_load_n(&lock->word, __ATOMIC_RELAXED) && vhca_trylock(lock))
			return;
		vhca_cpu_relax();
	}
	/* From here on the word is 2 also when we get it: others may sleep. */
	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE))
		vhca_futex_wait(&lock->word, 2);
}

void vhca_unlock_slow(struct vhca_lock *lock)
{
	vhca_futex_wake(&lock->word, 1);
}
