/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.h: a lock small enough to inline into post and poll. Uncontended it is
 * two atomic instructions and no call; contended it spins for about as long as
 * a post takes, then sleeps on a futex, because on a small machine the holder
 * may have lost its CPU.
 *
 * 0: free, 1: held, 2: held and somebody may sleep.
 *
 * Of a queue that the application promises to use from one thread at a time it is
 * no lock at all. In a process of one thread there is nobody to exclude, either, and no
 * need for atomic instructions; but ibv_wr_start() and ibv_start_poll() come back with it
 * held, and there may be a second thread when it is given back. So the word says the same.
 */
#ifndef VHCA_LOCK_H
#define VHCA_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct vhca_lock {
	uint32_t word;
	bool single;
};

void vhca_lock_slow(struct vhca_lock *lock);
void vhca_unlock_slow(struct vhca_lock *lock);

static inline bool vhca_trylock(struct vhca_lock *lock)
{
	uint32_t free = 0;

	if (__libc_single_threaded) {
		free = lock->word;
		lock->word = 1;
		return !free;
	}
	return __atomic_compare_exchange_n(&lock->word, &free, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void vhca_lock(struct vhca_lock *lock)
{
	if (!lock->single && __builtin_expect(!vhca_trylock(lock), 0))
		vhca_lock_slow(lock);
}

static inline void vhca_unlock(struct vhca_lock *lock)
{
	if (lock->single)
		return;
	if (__libc_single_threaded)
		lock->word = 0;
	else if (__builtin_expect(__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2, 0))
		vhca_unlock_slow(lock);
}

#endif
