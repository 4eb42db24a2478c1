/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * util.h: clocks, CPUs, what a process used, two processes that share a page.
 */
#ifndef UTIL_H
#define UTIL_H

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS	1000000000ull

static inline __attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "vhca_bench: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, ": %s\n", strerror(errno));
	va_end(args);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS + ts.tv_nsec;
}

/* By the clock, as sleeping would make it late. */
static inline void spin_until(uint64_t t)
{
	while (now_ns() < t)
		;
}

/* This thread, to CPU @cpu; where there is none, the scheduler has its way. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0)
		sched_setaffinity(0, sizeof(set), &set);
}

static inline void report(const char *name, double value)
{
	printf("%s %.10g\n", name, value);
}

/* Of all threads of this process, in a VM of all that runs on their time. */
static inline uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ull;
}

/* Idle time of all CPUs: what it lacks, somebody has worked, kernel threads included. */
static inline uint64_t idle_ns(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long idle = 0, iowait = 0;

	if (!f || fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) != 2)
		die("/proc/stat");
	fclose(f);
	return (idle + iowait) * (NS / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* A counter of cycles of this process and its threads; -1 where there is none. */
static inline int cycles_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.inherit = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static inline uint64_t cycles_read(int fd)
{
	uint64_t value = 0;

	if (fd >= 0 && read(fd, &value, sizeof(value)) != sizeof(value))
		return 0;
	return value;
}

/* Zeroed memory that a child shares. */
static inline void *shared_page(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Two processes meet here. */
static inline pthread_barrier_t *meeting(void)
{
	pthread_barrier_t *b = shared_page(sizeof(*b));
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(b, &attr, 2);
	return b;
}

/* True in the child, which dies with its parent. */
static inline bool fork_peer(pid_t *child)
{
	fflush(stdout);
	*child = fork();
	if (*child < 0)
		die("fork");
	if (!*child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return !*child;
}

static inline void join_peer(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		die("the peer failed");
}

/*
 * A parent that waits for a child which has died would wait for ever: the child's
 * death, which comes before it is told to end, ends both.
 */
static inline void on_child(int sig)
{
	int status;

	(void)sig;
	if (waitpid(-1, &status, WNOHANG | WNOWAIT) > 0 && status)
		_exit(1);
}

#endif
