/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * futex.h: the two futex calls that the lock and the acknowledgments need.
 */
#ifndef VHCA_FUTEX_H
#define VHCA_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Neither call changes errno: they run inside of calls that must not. */
static inline void vhca_futex_wait(uint32_t *word, uint32_t value)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
	errno = saved;
}

static inline void vhca_futex_wake(uint32_t *word, int count)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved;
}

#endif
