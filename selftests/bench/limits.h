/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * limits.h: what the machine itself takes: copying, a cache line that goes to and fro,
 * waking somebody, a system call.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "latency.h"

static void limit_memcpy(double seconds)
{
	static const size_t sizes[] = { 64, 128, 1024, 4096, 65536, 1 << 20 };
	char *from = shared_page(8 << 20), *to = shared_page(8 << 20), name[32];
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t end, t, n, i, some;
	unsigned int s;

	memset(from, 1, 8 << 20);
	memset(to, 1, 8 << 20);
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		some = sizes[s] < 1 << 16 ? (1 << 20) / sizes[s] : 16;
		memset(h, 0, sizeof(*h));
		n = 0;
		/* As messages lie: one after the other, in a ring. */
		for (end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) {
			t = now_ns();
			for (i = 0; i < some; i++, n++) {
				size_t at = n * sizes[s] % (8 << 20);

				memcpy(to + at, from + at, sizes[s]);
				__asm__ volatile("" : : "r"(to) : "memory");
			}
			hist_add(h, now_ns() - t);
		}
		snprintf(name, sizeof(name), "memcpy_mbytes.%zu", sizes[s]);
		report(name, (double)(some * sizes[s]) * 1e3 / hist_quantile(h, 0.5));
	}
}

static void limit_ioctl(void)
{
	int i, n = 100000, fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t t = now_ns();

	for (i = 0; i < n; i++)
		ioctl(fd, FIONREAD, &fd);
	report("ioctl_us", (double)(now_ns() - t) / n / 1000);
}

/* Two processes take turns @n times each: mean and median of a round. */
static void take_turns(const char *name, int n, const int *cpu,
		       void (*turn)(void *shared, int me, uint32_t i), void *shared)
{
	struct hist *h = calloc(1, sizeof(*h));
	pthread_barrier_t *meet = meeting();
	uint64_t t, begin;
	char line[64];
	pid_t child;
	bool me;
	int i;

	me = fork_peer(&child);
	if (cpu)
		pin(cpu[me]);
	pthread_barrier_wait(meet);
	begin = now_ns();
	for (i = 0; i < n; i++) {
		t = now_ns();
		turn(shared, me, i);
		hist_add(h, now_ns() - t);
	}
	if (me)
		exit(0);
	snprintf(line, sizeof(line), "%s_us", name);
	report(line, (double)(now_ns() - begin) / n / 1000);
	snprintf(line, sizeof(line), "%s_p50_us", name);
	report(line, hist_quantile(h, 0.5) / 1000);
	join_peer(child);
}

static void turn_line(void *shared, int me, uint32_t i)
{
	uint32_t *line = shared;

	while (__atomic_load_n(line, __ATOMIC_ACQUIRE) != 2 * i + (uint32_t)me)
		;
	__atomic_store_n(line, 2 * i + (uint32_t)me + 1, __ATOMIC_RELEASE);
}

static void eventfd_signal(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die("eventfd");
}

static void eventfd_await(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		die("eventfd");
}

static void turn_eventfd(void *shared, int me, uint32_t i)
{
	int *fd = shared;

	(void)i;
	if (me)
		eventfd_await(fd[0]);
	eventfd_signal(fd[me]);
	if (!me)
		eventfd_await(fd[1]);
}

static void turn_futex(void *shared, int me, uint32_t i)
{
	uint32_t *word = shared, mine = 2 * i + (uint32_t)me, v;

	while ((v = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != mine)
		syscall(SYS_futex, word, FUTEX_WAIT, v, NULL, NULL, 0);
	__atomic_store_n(word, mine + 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* As test_wake() does with a post. */
static void limit_wake(const struct options *o)
{
	struct duo d = duo_new(o);
	int i, fd = eventfd(0, EFD_CLOEXEC);
	struct hist *h;
	pid_t child;

	if (fork_peer(&child)) {
		pin(o->cpu[1]);
		h = calloc(1, sizeof(*h));
		for (i = 0; i < o->count; i++) {
			go_to_sleep(&d, i);
			eventfd_await(fd);
			woken(&d, h);
		}
		report("wake_p50_us", hist_quantile(h, 0.5) / 1000);
		report("wake_p99_us", hist_quantile(h, 0.99) / 1000);
		exit(0);
	}
	pin(o->cpu[0]);
	for (i = 0; i < o->count; i++) {
		let_sleep(&d, i);
		eventfd_signal(fd);
	}
	join_peer(child);
	close(fd);
}

/* Alone, for where two that spin would wait for each other's turn. */
static void test_eventfd(const struct options *o)
{
	int fd[2] = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };

	take_turns("round", o->count, o->cpu, turn_eventfd, fd);
}

static void test_limits(const struct options *o)
{
	int two[2] = { 0, 1 };
	int fd[2] = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };

	limit_memcpy(o->seconds / 10);
	limit_ioctl();
	take_turns("line", 20000, two, turn_line, shared_page(4));
	take_turns("eventfd_round", o->count, NULL, turn_eventfd, fd);
	take_turns("eventfd_round_two_cpus", o->count, two, turn_eventfd, fd);
	take_turns("futex_round", o->count, NULL, turn_futex, shared_page(4));
	limit_wake(o);
}

#endif
