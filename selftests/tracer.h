/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracer.h: which system calls a program makes, counted from outside.
 *
 * The program under test is a child that is traced with PTRACE_SYSCALL, so that it
 * stops at each system call it makes, whatever library makes it. It says by a word in
 * shared memory in which stretch of the test it is; the tracer reads the word at each
 * stop and counts. Nothing marks a stretch that would be a system call itself, so a
 * stretch without any runs undisturbed.
 */
#ifndef TRACER_H
#define TRACER_H

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "../uapi/vhca_abi.h"
#include "pair.h"

#define STRETCHES	100
#define PATIENCE	100000000u

/* In shared memory. */
struct view {
	int stretch;		/* 1 to STRETCHES; 0: not counted */
	unsigned int kicks[STRETCHES + 1];
	unsigned int others[STRETCHES + 1];
	long long other_nr;	/* one that was no kick */
	bool ended;
};

static inline void enter(struct view *view, int stretch)
{
	__atomic_store_n(&view->stretch, stretch, __ATOMIC_SEQ_CST);
}

/*
 * Tracer
 */
static inline void count_call(struct view *view, pid_t pid)
{
	struct __ptrace_syscall_info info;
	int stretch = __atomic_load_n(&view->stretch, __ATOMIC_SEQ_CST);

	if (!stretch || ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	if (info.entry.nr == SYS_ioctl && (uint32_t)info.entry.args[1] == VHCA_IOC_KICK) {
		view->kicks[stretch]++;
	} else {
		view->others[stretch]++;
		view->other_nr = info.entry.nr;
	}
}

/* Until the child is gone. */
static inline void trace(struct view *view, pid_t pid)
{
	int status, sig = 0;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (!ptrace(PTRACE_SYSCALL, pid, 0, sig) && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80)) {
			count_call(view, pid);
			sig = 0;
		}
	}
}

static inline void run_traced(struct __test_metadata *_metadata, struct view *view,
			      void (*program)(struct __test_metadata *_metadata,
					      struct view *view))
{
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		program(_metadata, view);
		view->ended = true;
		_exit(0);
	}
	ASSERT_LT(0, pid);
	trace(view, pid);
	ASSERT_TRUE(view->ended);
}

/* The next completion, without a look at the clock, which may be a call. */
static inline bool poll_spinning(struct ibv_cq *cq)
{
	unsigned int patience = PATIENCE;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && --patience)
		;
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

#endif
