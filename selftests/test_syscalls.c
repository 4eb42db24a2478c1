// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_syscalls.c: posting and polling make no system call while the device is
 * watching, and at most one kick a post when it is not.
 */
#define _GNU_SOURCE
#include <sys/sysinfo.h>

#include "cpu.h"
#include "tracer.h"

#define MESSAGES	100	/* posts in a stretch */

FIXTURE(syscalls)
{
	struct view *view;
};

FIXTURE_SETUP(syscalls)
{
	self->view = mmap(NULL, sizeof(*self->view), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->view);
}

FIXTURE_TEARDOWN(syscalls)
{
	munmap(self->view, sizeof(*self->view));
}

/*
 * The programs under test. In a stretch they may not look at the clock either.
 */
static bool messages(struct pair *p, int n)
{
	struct end *a = &p->end[0], *b = &p->end[1];

	while (n--)
		if (post_recv(b, n, 0, 100) || post_send(a, n, 0, 64, IBV_SEND_SIGNALED) ||
		    !poll_spinning(b->rcq) || !poll_spinning(a->scq))
			return false;
	return true;
}

static void post_and_poll(struct __test_metadata *_metadata, struct view *view)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct pair p;
	bool ok = true;
	int i;

	pair_open(_metadata, &p, &opts);
	for (i = 1; i <= STRETCHES && ok; i++) {
		enter(view, i);
		ok = messages(&p, MESSAGES);
	}
	enter(view, 0);
	ASSERT_TRUE(ok);
	pair_close(_metadata, &p);
}

static void poll_and_arm_when_empty(struct __test_metadata *_metadata, struct view *view)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_wc wc;
	struct pair p;
	int i, err = 0;

	opts.channel = true;
	pair_open(_metadata, &p, &opts);
	enter(view, 1);
	for (i = 0; i < 10000 && !err; i++)
		err = ibv_poll_cq(p.end[0].scq, 1, &wc) |
		      ibv_req_notify_cq(p.end[0].scq, i & 1) |
		      ibv_req_notify_cq(p.end[1].rcq, i & 1);
	enter(view, 2);
	for (i = 0; i < (int)p.end[1].cap.max_recv_wr && !err; i++)
		err = post_recv(&p.end[1], i, 0, 100);
	enter(view, 0);
	ASSERT_EQ(0, err);
	pair_close(_metadata, &p);
}

static unsigned int total_kicks(struct __test_metadata *_metadata, const struct view *view)
{
	unsigned int sum = 0;
	int i;

	for (i = 1; i <= STRETCHES; i++) {
		EXPECT_EQ(0, view->others[i]) {
			TH_LOG("system call %lld in stretch %d", view->other_nr, i);
		}
		EXPECT_LE(view->kicks[i], MESSAGES);
		sum += view->kicks[i];
	}
	return sum;
}

TEST_F(syscalls, when_the_device_does_not_watch_a_post_is_one_kick_at_most)
{
	long long before = device_counter(0, "kicks");
	unsigned int kicks;

	ASSERT_EQ(0, engine_set("inline"));
	run_traced(_metadata, self->view, post_and_poll);
	kicks = total_kicks(_metadata, self->view);
	EXPECT_LT(0, kicks);
	/* The device was told as often as the tracer saw. */
	EXPECT_EQ(kicks, device_counter(0, "kicks") - before);
}

/*
 * The thread watches only while it is alone on its CPU, so it gets one that is
 * not ours. Where it runs after the test is the scheduler's business again.
 */
TEST_F(syscalls, while_the_device_watches_post_and_poll_make_no_system_call)
{
	long long before = device_counter(0, "kicks");
	unsigned int kicks, silent = 0;
	pid_t thread = engine_thread();
	cpu_set_t anywhere;
	int i;

	if (get_nprocs() < 2)
		SKIP(return, "with one CPU the device's thread never watches");
	ASSERT_NE(0, thread);
	ASSERT_EQ(0, sched_getaffinity(thread, sizeof(anywhere), &anywhere));
	ASSERT_EQ(0, stay_on(thread, 1));
	ASSERT_EQ(0, stay_on(0, 0));
	ASSERT_EQ(0, engine_set("threaded"));
	run_traced(_metadata, self->view, post_and_poll);
	EXPECT_EQ(0, sched_setaffinity(thread, sizeof(anywhere), &anywhere));
	kicks = total_kicks(_metadata, self->view);
	EXPECT_EQ(kicks, device_counter(0, "kicks") - before);
	for (i = 1; i <= STRETCHES; i++)
		silent += !self->view->kicks[i] && !self->view->others[i];
	TH_LOG("%u of %u stretches of %u messages without a system call, %u kicks in all",
	       silent, STRETCHES, MESSAGES, kicks);
	EXPECT_LT(0, silent);
}

TEST_F(syscalls, polling_and_arming_an_empty_cq_and_posting_a_receive_make_none)
{
	int i;

	ASSERT_EQ(0, engine_set("inline"));
	run_traced(_metadata, self->view, poll_and_arm_when_empty);
	for (i = 1; i <= 2; i++) {
		EXPECT_EQ(0, self->view->kicks[i]);
		EXPECT_EQ(0, self->view->others[i]);
	}
}

/* The tracer sees what it is to see: a kick, and a call that is none. */
static void known_calls(struct __test_metadata *_metadata, struct view *view)
{
	enter(view, 1);
	syscall(SYS_getppid);
	ioctl(-1, VHCA_IOC_KICK, 0);
	syscall(SYS_getppid);
	enter(view, 0);
}

TEST_F(syscalls, the_tracer_counts_right)
{
	run_traced(_metadata, self->view, known_calls);
	EXPECT_EQ(1, self->view->kicks[1]);
	EXPECT_EQ(2, self->view->others[1]);
	EXPECT_EQ(SYS_getppid, self->view->other_nr);
}

TEST_HARNESS_MAIN
