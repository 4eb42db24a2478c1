// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion channels by raw ioctl: the file, its readers, its
 * CQs, its end.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "raw.h"

#include "harness.h"

FIXTURE(channel) {
	struct raw_bed bed;
};

FIXTURE_SETUP(channel)
{
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
}

FIXTURE_TEARDOWN(channel)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

/* read() of @len bytes: how many, or a negative errno. */
static int try_read(int fd, void *buf, size_t len)
{
	ssize_t n = read(fd, buf, len);

	return n < 0 ? -errno : n;
}

/* The file */

TEST_F(channel, is_an_anonymous_file_of_its_own)
{
	char path[32], name[64] = "";
	struct stat st;

	ASSERT_NE(self->bed.ctx.fd, self->bed.channel);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->bed.channel);
	ASSERT_LT(0, readlink(path, name, sizeof(name) - 1));
	EXPECT_EQ(0, strncmp(name, "anon_inode:", 11));
	ASSERT_EQ(0, fstat(self->bed.ctx.fd, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
}

TEST_F(channel, is_read_only)
{
	char buf[16] = {};

	EXPECT_EQ(O_RDONLY, fcntl(self->bed.channel, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(-1, write(self->bed.channel, buf, sizeof(buf)));
	EXPECT_EQ(EBADF, errno);
}

TEST_F(channel, is_close_on_exec)
{
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->bed.channel, F_GETFD));
}

TEST_F(channel, is_blocking_at_first)
{
	EXPECT_EQ(0, fcntl(self->bed.channel, F_GETFL) & O_NONBLOCK);
}

TEST_F(channel, there_may_be_any_number_of_them_and_no_eq_is_made)
{
	long long commands = raw_device_counter(0, "commands");
	int fd[300], i;

	ASSERT_LE(0, commands);
	for (i = 0; i < 300; i++) {
		fd[i] = raw_channel(self->bed.ctx.fd);
		ASSERT_LT(0, fd[i]);
	}
	/* An EQ would have taken an admin command. */
	EXPECT_EQ(commands, raw_device_counter(0, "commands"));
	for (i = 0; i < 300; i++)
		EXPECT_EQ(0, close(fd[i]));
}

TEST_F(channel, their_number_is_bounded_by_the_descriptor_limit)
{
	struct rlimit lim;
	int fd;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &lim));
	fd = dup(0);
	lim.rlim_cur = fd + 3;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &lim));
	do {
		fd = raw_channel(self->bed.ctx.fd);
	} while (fd >= 0);
	EXPECT_EQ(-EMFILE, fd);
}

/* Reading */

TEST_F(channel, a_record_names_the_cq)
{
	struct vhca_comp_event ev;

	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_EQ(0, raw_read_event(self->bed.channel, &ev));
	EXPECT_EQ(self->bed.rcq.made.cookie, ev.cookie);
	EXPECT_EQ(self->bed.rcq.made.cqn, ev.cqn);
	EXPECT_EQ(0u, ev.rsvd);
}

TEST_F(channel, read_is_eagain_when_non_blocking_and_empty)
{
	struct vhca_comp_event ev;

	ASSERT_EQ(0, raw_nonblock(self->bed.channel));
	EXPECT_EQ(-EAGAIN, try_read(self->bed.channel, &ev, sizeof(ev)));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(-EAGAIN, try_read(self->bed.channel, &ev, sizeof(ev)));
}

TEST_F(channel, read_blocks_while_there_is_none)
{
	struct vhca_comp_event ev;
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(try_read(self->bed.channel, &ev, sizeof(ev)));
	ASSERT_TRUE(RAW_WAIT(raw_sleeps(pid)));
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ((int)sizeof(ev), raw_wait_child(pid));
}

static void nothing(int sig)
{
	(void)sig;
}

/* SIGALRM again and again, so that none is missed by coming before the read. */
static void alarm_soon(void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	struct itimerval t = { { 0, 50000 }, { 0, 50000 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

TEST_F(channel, read_is_eintr_after_a_signal)
{
	struct vhca_comp_event ev;

	alarm_soon(nothing, 0);
	EXPECT_EQ(-EINTR, try_read(self->bed.channel, &ev, sizeof(ev)));
}

static struct raw_bed *the_bed;
static int alarms;

static void fire_at_third(int sig)
{
	(void)sig;
	if (++alarms == 3)
		raw_bed_fire(the_bed);
}

TEST_F(channel, read_goes_on_after_a_signal_with_sa_restart)
{
	struct vhca_comp_event ev;

	the_bed = &self->bed;
	alarm_soon(fire_at_third, SA_RESTART);
	EXPECT_EQ((int)sizeof(ev), try_read(self->bed.channel, &ev, sizeof(ev)));
	EXPECT_EQ(self->bed.rcq.made.cookie, ev.cookie);
	EXPECT_LE(3, alarms);
}

TEST_F(channel, a_blocked_reader_can_be_killed)
{
	struct vhca_comp_event ev;
	pid_t pid = fork();

	if (!pid)
		_exit(try_read(self->bed.channel, &ev, sizeof(ev)));
	ASSERT_TRUE(RAW_WAIT(raw_sleeps(pid)));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(pid));
}

TEST_F(channel, a_buffer_too_small_for_a_record_is_einval_and_loses_none)
{
	struct vhca_comp_event ev;

	/* Empty or not, blocking or not. */
	EXPECT_EQ(-EINVAL, try_read(self->bed.channel, &ev, sizeof(ev) - 1));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_TRUE(raw_readable(self->bed.channel, RAW_DEADLINE_MS));
	EXPECT_EQ(-EINVAL, try_read(self->bed.channel, &ev, sizeof(ev) - 1));
	EXPECT_EQ(-EINVAL, try_read(self->bed.channel, &ev, 1));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
}

TEST_F(channel, a_buffer_that_cannot_be_written_is_efault_and_loses_none)
{
	void *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, ro);
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_TRUE(raw_readable(self->bed.channel, RAW_DEADLINE_MS));
	EXPECT_EQ(-EFAULT, try_read(self->bed.channel, (void *)-4096L, 16));
	EXPECT_EQ(-EFAULT, try_read(self->bed.channel, ro, 16));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
}

/* Two records are queued: of rcq, then of the mark. */
static int fire_two(struct raw_bed *bed)
{
	struct raw_wc wc;
	int err = raw_bed_fire(bed);

	/* The second CQ's event comes behind the first's. */
	if (!err)
		err = raw_arm(&bed->mark_cq, false);
	if (!err)
		err = raw_message(&bed->mark, &bed->mr, 0, 64);
	if (!err)
		err = raw_wait_wc(&bed->mark_cq, &wc);
	return err;
}

/* How many records a read takes, once both are there; they are put in @ev. */
static int read_two(struct raw_bed *bed, void *buf, size_t len)
{
	/* The merge of two waits: EINVAL from a short read tells nothing, so count. */
	long long events = raw_driver_counter(0, "events");
	int err;

	err = fire_two(bed);
	if (err)
		return err;
	if (!RAW_WAIT(raw_driver_counter(0, "events") >= events + 2))
		return -ETIMEDOUT;
	return try_read(bed->channel, buf, len);
}

TEST_F(channel, one_read_takes_several_records)
{
	struct vhca_comp_event ev[4];

	ASSERT_EQ(2 * (int)sizeof(ev[0]), read_two(&self->bed, ev, sizeof(ev)));
	EXPECT_EQ(self->bed.rcq.made.cookie, ev[0].cookie);
	EXPECT_EQ(self->bed.mark_cq.made.cookie, ev[1].cookie);
}

TEST_F(channel, a_read_takes_whole_records_only)
{
	struct vhca_comp_event ev[2];

	ASSERT_EQ((int)sizeof(ev[0]), read_two(&self->bed, ev, sizeof(ev) - 1));
	EXPECT_EQ(self->bed.rcq.made.cookie, ev[0].cookie);
	EXPECT_EQ(0, raw_cq_event(&self->bed.mark_cq));
}

TEST_F(channel, a_buffer_that_ends_in_a_hole_loses_no_record)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vhca_comp_event ev;
	int n;

	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_EQ(0, munmap(p + 4096, 4096));
	n = read_two(&self->bed, p + 4096 - sizeof(ev), 2 * sizeof(ev));
	if (n == -EFAULT) {
		ASSERT_EQ(0, raw_read_event(self->bed.channel, &ev));
		EXPECT_EQ(self->bed.rcq.made.cookie, ev.cookie);
	} else {
		ASSERT_EQ((int)sizeof(ev), n);
	}
	EXPECT_EQ(0, raw_cq_event(&self->bed.mark_cq));
}

/* Waiting */

TEST_F(channel, poll_works)
{
	struct pollfd p = { .fd = self->bed.channel, .events = POLLIN | POLLOUT };

	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(1, poll(&p, 1, RAW_DEADLINE_MS));
	EXPECT_EQ(POLLIN, p.revents & (POLLIN | POLLOUT | POLLERR | POLLHUP));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(channel, poll_is_woken)
{
	pid_t pid = fork();

	if (!pid)
		_exit(raw_readable(self->bed.channel, RAW_DEADLINE_MS));
	ASSERT_TRUE(RAW_WAIT(raw_sleeps(pid)));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(1, raw_wait_child(pid));
}

TEST_F(channel, select_works)
{
	struct timeval none = {}, long_time = { RAW_DEADLINE_MS / 1000, 0 };
	int fd = self->bed.channel;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	EXPECT_EQ(0, select(fd + 1, &set, NULL, NULL, &none));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	EXPECT_EQ(1, select(fd + 1, &set, NULL, NULL, &long_time));
	EXPECT_TRUE(FD_ISSET(fd, &set));
}

static int epoll_on(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	return ep;
}

TEST_F(channel, epoll_tells_the_level)
{
	struct epoll_event ev;
	int ep = epoll_on(self->bed.channel, EPOLLIN);

	ASSERT_LE(0, ep);
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, RAW_DEADLINE_MS));
	EXPECT_EQ(self->bed.channel, ev.data.fd);
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
}

TEST_F(channel, epoll_tells_each_edge_once)
{
	struct epoll_event ev;
	int ep = epoll_on(self->bed.channel, EPOLLIN | EPOLLET);

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, RAW_DEADLINE_MS));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	/* Unread, and a second record comes: a new edge. */
	ASSERT_EQ(0, raw_bed_mark(&self->bed));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, RAW_DEADLINE_MS));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
}

TEST_F(channel, sigio_is_sent)
{
	struct timespec long_time = { RAW_DEADLINE_MS / 1000, 0 }, none = {};
	int fd = self->bed.channel;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
	EXPECT_EQ(-1, sigtimedwait(&set, NULL, &none));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(SIGIO, sigtimedwait(&set, NULL, &long_time));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	/* And no longer when it was turned off. */
	ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC));
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(-1, sigtimedwait(&set, NULL, &none));
}

TEST_F(channel, dup_shares_the_queue)
{
	struct vhca_comp_event ev;
	int fd = dup(self->bed.channel);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_EQ(0, raw_read_event(fd, &ev));
	EXPECT_EQ(self->bed.rcq.made.cookie, ev.cookie);
	ASSERT_EQ(0, raw_nonblock(fd));
	EXPECT_EQ(-EAGAIN, try_read(self->bed.channel, &ev, sizeof(ev)));
	/* And keeps it open. */
	self->bed.rcq.events++;
	close(self->bed.channel);
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(0, raw_read_event(fd, &ev));
}

/* CQs */

TEST_F(channel, many_cqs_may_share_it)
{
	struct vhca_comp_event ev;
	struct raw_cq cq[8];
	struct raw_pair p[8];
	int seen[8] = {}, i, n;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq[i], 16, self->bed.channel));
		ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p[i], &self->bed.scq, &cq[i]));
		ASSERT_EQ(0, raw_arm(&cq[i], false));
	}
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, raw_message(&p[i], &self->bed.mr, 0, 8));
	for (n = 0; n < 8; n++) {
		ASSERT_EQ(0, raw_read_event(self->bed.channel, &ev));
		for (i = 0; i < 8; i++)
			seen[i] += ev.cookie == cq[i].made.cookie && ev.cqn == cq[i].made.cqn;
	}
	for (i = 0; i < 8; i++)
		EXPECT_EQ(1, seen[i]);
	EXPECT_EQ(0, raw_bed_events(&self->bed));
}

TEST_F(channel, events_go_to_the_cqs_own_channel_only)
{
	int other = raw_channel(self->bed.ctx.fd);
	struct raw_cq cq;
	struct raw_pair p;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq, 16, other));
	ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.scq, &cq));
	ASSERT_EQ(0, raw_arm(&cq, false));
	ASSERT_EQ(0, raw_message(&p, &self->bed.mr, 0, 8));
	ASSERT_EQ(0, raw_cq_event(&cq));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	/* The mark did not go there, nor does what follows. */
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(0, raw_readable(other, 0));
}

TEST_F(channel, a_cq_without_one_is_only_polled)
{
	long long events;
	struct raw_cq cq;
	struct raw_pair p;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.scq, &cq));
	events = raw_driver_counter(0, "events");
	ASSERT_LE(0, events);
	ASSERT_EQ(0, raw_arm(&cq, false));
	ASSERT_EQ(0, raw_message(&p, &self->bed.mr, 0, 8));
	ASSERT_EQ(0, raw_wait_wc(&cq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	EXPECT_EQ(events + 1, raw_driver_counter(0, "events"));
}

TEST_F(channel, what_is_not_a_channel_of_this_file_is_refused)
{
	struct raw_ctx other;
	struct raw_cq cq;
	int async = raw_event_file(self->bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);

	ASSERT_LE(0, async);
	ASSERT_EQ(0, raw_open(&other, 0));
	EXPECT_EQ(-EINVAL, raw_cq(&other, &cq, 16, self->bed.channel));
	EXPECT_EQ(-EINVAL, raw_destroy_channel(other.fd, self->bed.channel));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, async));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, self->bed.ctx.fd));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, 0));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, -2));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, 1000));
	EXPECT_EQ(-EINVAL, raw_destroy_channel(self->bed.ctx.fd, async));
	EXPECT_EQ(-EINVAL, raw_destroy_channel(self->bed.ctx.fd, 1000));
	raw_close(&other);
	/* The refused slot is still free. */
	EXPECT_EQ(0, raw_cq(&self->bed.ctx, &cq, 16, self->bed.channel));
}

/* The end */

TEST_F(channel, destroying_it_is_ebusy_while_cqs_use_it)
{
	int ch = raw_channel(self->bed.ctx.fd);
	struct raw_cq cq[2];

	ASSERT_LE(0, ch);
	ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq[0], 16, ch));
	ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq[1], 16, ch));
	EXPECT_EQ(-EBUSY, raw_destroy_channel(self->bed.ctx.fd, ch));
	ASSERT_EQ(0, raw_destroy_cq(&cq[0], NULL));
	EXPECT_EQ(-EBUSY, raw_destroy_channel(self->bed.ctx.fd, ch));
	ASSERT_EQ(0, raw_destroy_cq(&cq[1], NULL));
	EXPECT_EQ(0, raw_destroy_channel(self->bed.ctx.fd, ch));
}

TEST_F(channel, a_destroyed_one_serves_no_cq_and_readers_get_eio)
{
	int ch = raw_channel(self->bed.ctx.fd);
	struct vhca_comp_event ev;
	struct raw_cq cq;

	ASSERT_LE(0, ch);
	ASSERT_EQ(0, raw_destroy_channel(self->bed.ctx.fd, ch));
	EXPECT_EQ(-EINVAL, raw_cq(&self->bed.ctx, &cq, 16, ch));
	EXPECT_EQ(-EINVAL, raw_destroy_channel(self->bed.ctx.fd, ch));
	EXPECT_EQ(-EIO, try_read(ch, &ev, sizeof(ev)));
	EXPECT_EQ(0, close(ch));
}

TEST_F(channel, destroying_it_wakes_a_blocked_reader)
{
	int ch = raw_channel(self->bed.ctx.fd);
	struct vhca_comp_event ev;
	pid_t pid;

	ASSERT_LE(0, ch);
	pid = fork();
	if (!pid)
		_exit(try_read(ch, &ev, sizeof(ev)) == -EIO ? 7 : 1);
	ASSERT_TRUE(RAW_WAIT(raw_sleeps(pid)));
	ASSERT_EQ(0, raw_destroy_channel(self->bed.ctx.fd, ch));
	EXPECT_EQ(7, raw_wait_child(pid));
}

TEST_F(channel, closing_it_while_cqs_use_it_does_no_harm)
{
	int i;

	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_EQ(0, close(self->bed.channel));
	for (i = 0; i < 10; i++) {
		self->bed.rcq.events++;
		ASSERT_EQ(0, raw_bed_fire(&self->bed));
	}
	EXPECT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	EXPECT_EQ(0, raw_destroy_qp(&self->bed.p.b));
	EXPECT_EQ(0, raw_destroy_cq(&self->bed.rcq, NULL));
}

TEST_F(channel, destroying_a_cq_drops_its_queued_events)
{
	struct vhca_destroy_cq d;
	struct vhca_comp_event ev;

	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_TRUE(raw_readable(self->bed.channel, RAW_DEADLINE_MS));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.b));
	ASSERT_EQ(0, raw_destroy_cq(&self->bed.rcq, &d));
	EXPECT_EQ(0u, d.comp_events);
	EXPECT_EQ(0, raw_readable(self->bed.channel, 0));
	ASSERT_EQ(0, raw_nonblock(self->bed.channel));
	EXPECT_EQ(-EAGAIN, try_read(self->bed.channel, &ev, sizeof(ev)));
}

TEST_F(channel, destroying_a_cq_drops_events_that_are_still_on_their_way)
{
	struct vhca_comp_event ev;
	struct raw_cq cq;
	struct raw_pair p;
	int i;

	ASSERT_EQ(0, raw_nonblock(self->bed.channel));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, raw_cq(&self->bed.ctx, &cq, 16, self->bed.channel));
		ASSERT_EQ(0, raw_pair(&self->bed.ctx, &p, &self->bed.scq, &cq));
		ASSERT_EQ(0, raw_arm(&cq, false));
		ASSERT_EQ(0, raw_message(&p, &self->bed.mr, 0, 8));
		ASSERT_EQ(0, raw_destroy_qp(&p.a));
		ASSERT_EQ(0, raw_destroy_qp(&p.b));
		ASSERT_EQ(0, raw_destroy_cq(&cq, NULL));
		ASSERT_EQ(-EAGAIN, try_read(self->bed.channel, &ev, sizeof(ev)));
		self->bed.ctx.slot -= 3;
	}
}

TEST_F(channel, destroying_a_cq_tells_how_many_events_were_read)
{
	struct vhca_destroy_cq d;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, raw_bed_fire(&self->bed));
		ASSERT_EQ(0, raw_cq_event(&self->bed.rcq));
	}
	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.b));
	ASSERT_EQ(0, raw_destroy_cq(&self->bed.rcq, &d));
	EXPECT_EQ(5u, d.comp_events);
	EXPECT_EQ(0u, d.async_events);
}

TEST_F(channel, other_cqs_events_survive_the_end_of_one)
{
	long long events = raw_driver_counter(0, "events");

	ASSERT_EQ(0, fire_two(&self->bed));
	ASSERT_TRUE(RAW_WAIT(raw_driver_counter(0, "events") >= events + 2));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.a));
	ASSERT_EQ(0, raw_destroy_qp(&self->bed.p.b));
	ASSERT_EQ(0, raw_destroy_cq(&self->bed.rcq, NULL));
	EXPECT_EQ(0, raw_cq_event(&self->bed.mark_cq));
	EXPECT_EQ(0, raw_readable(self->bed.channel, 0));
}

TEST_F(channel, a_child_inherits_it_and_can_read)
{
	struct vhca_comp_event ev;
	pid_t pid;

	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	pid = fork();
	if (!pid)
		_exit(raw_read_event(self->bed.channel, &ev) == 0 &&
		      ev.cookie == self->bed.rcq.made.cookie ? 7 : 1);
	EXPECT_EQ(7, raw_wait_child(pid));
	EXPECT_EQ(0, raw_readable(self->bed.channel, 0));
}

TEST_F(channel, it_outlives_the_command_descriptor)
{
	struct vhca_comp_event ev;
	int fd = dup(self->bed.channel), n;

	ASSERT_EQ(0, raw_bed_fire(&self->bed));
	munmap(self->bed.scq.ring, self->bed.scq.made.buf_size);
	munmap(self->bed.rcq.ring, self->bed.rcq.made.buf_size);
	munmap(self->bed.mark_cq.ring, self->bed.mark_cq.made.buf_size);
	munmap(self->bed.p.a.buf, self->bed.p.a.made.buf_size);
	munmap(self->bed.p.b.buf, self->bed.p.b.made.buf_size);
	munmap(self->bed.mark.a.buf, self->bed.mark.a.made.buf_size);
	munmap(self->bed.mark.b.buf, self->bed.mark.b.made.buf_size);
	raw_close(&self->bed.ctx);
	/* Its CQs are gone, and their records with them. */
	ASSERT_EQ(0, raw_nonblock(fd));
	n = try_read(fd, &ev, sizeof(ev));
	EXPECT_TRUE(n == -EAGAIN || n == -EIO);
	EXPECT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
