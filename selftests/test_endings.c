// SPDX-License-Identifier: GPL-2.0-only
/*
 * How processes end, or do not: killed in traffic or in a call, replaced by exec,
 * forked, stopped, stormed by signals, their descriptors handed to others. Whoever
 * else uses the device goes on, and what the process had is freed.
 *
 * KILLS= kills more often, SEED= repeats a run.
 */
#define _GNU_SOURCE
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "endings.h"

#include "harness.h"

FIXTURE(endings) {
	struct end_objects before;
	long long pins;
};

FIXTURE_SETUP(endings)
{
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	self->before = end_objects(0);
	self->pins = end_pages_pinned();
}

/* All of it is freed, and every page that was pinned is not. */
FIXTURE_TEARDOWN(endings)
{
	EXPECT_TRUE(end_left_nothing(0, &self->before));
	EXPECT_TRUE(RAW_WAIT(end_refs() == 0));
	EXPECT_TRUE(RAW_WAIT(end_pages_pinned() == self->pins));
	EXPECT_EQ(0, raw_engine("inline"));
}

/* One end of a connection between two processes. */
struct side {
	struct raw_ctx	ctx;
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_qp	qp;
	struct raw_mr	mr;
	int		channel;
	int		sock;		/* to the other side */
};

static int side_open(struct side *s, int sock)
{
	int err = raw_open(&s->ctx, 0);

	s->sock = sock;
	if (err)
		return err;
	s->channel = raw_channel(s->ctx.fd);
	if (s->channel < 0)
		return s->channel;
	err = raw_cq(&s->ctx, &s->scq, 256, VHCA_INVALID_FD);
	if (!err)
		err = raw_cq(&s->ctx, &s->rcq, 256, s->channel);
	if (!err)
		err = raw_qp(&s->ctx, &s->qp, &s->scq, &s->rcq);
	return err ? err : raw_mr(&s->ctx, &s->mr, 1 << 16);
}

static void side_close(struct side *s)
{
	munmap(s->scq.ring, s->scq.made.buf_size);
	munmap(s->rcq.ring, s->rcq.made.buf_size);
	munmap(s->qp.buf, s->qp.made.buf_size);
	close(s->channel);
	raw_close(&s->ctx);
}

/* Connect to the process at the other end of the socket, which does the same. */
static int side_connect(struct side *s, uint8_t rnr_retry)
{
	uint32_t qpn = s->qp.made.qpn;
	struct vhca_qp_attr attr;
	char c = 0;
	int err;

	if (write(s->sock, &qpn, 4) != 4 || read(s->sock, &qpn, 4) != 4)
		return -EPIPE;
	attr = raw_attr(s->ctx.lid, qpn);
	attr.timeout = 10;	/* 4 ms */
	attr.rnr_retry = rnr_retry;
	err = raw_climb(&s->qp, VHCA_QPS_RTS, attr);
	if (err)
		return err;
	/* The other side is there, too. */
	return write(s->sock, &c, 1) == 1 && read(s->sock, &c, 1) == 1 ? 0 : -EPIPE;
}

static void drain(struct raw_cq *cq)
{
	struct raw_wc wc;

	while (raw_poll(cq, &wc))
		;
}

/* A process at the other end of @sock, which runs @live until it is killed. */
static pid_t peer(int sock, int closed, int (*live)(struct side *s))
{
	pid_t pid = fork();
	struct side s = {};

	if (pid)
		return pid;
	close(closed);
	if (side_open(&s, sock) || side_connect(&s, 7))
		_exit(1);
	_exit(live(&s));
}

/* Killed in traffic */

#define WINDOW	32

static int send_some(struct side *s, unsigned int *sent, unsigned int done)
{
	int err = 0;

	while (!err && *sent - done < WINDOW) {
		err = raw_send(&s->qp, VHCA_WQE_SIGNALED, &s->mr, 0, 1024);
		++*sent;
	}
	return err;
}

/* Receives, and sends as much itself. */
static int sends_and_polls(struct side *s)
{
	unsigned int sent = 0, done = 0, posted = 0, taken = 0;
	struct raw_wc wc;

	for (;;) {
		for (; posted - taken < WINDOW; posted++)
			raw_recv(&s->qp, &s->mr, 32768, 32768);
		if (send_some(s, &sent, done))
			return 2;
		while (raw_poll(&s->scq, &wc))
			done++;
		while (raw_poll(&s->rcq, &wc))
			taken++;
	}
}

/* Receives, asleep in between. */
static int waits_for_events(struct side *s)
{
	unsigned int posted = 0, taken = 0;
	struct raw_wc wc;

	for (;;) {
		for (; posted - taken < WINDOW; posted++)
			raw_recv(&s->qp, &s->mr, 32768, 32768);
		if (raw_arm(&s->rcq, false))
			return 2;
		if (raw_cq_event(&s->rcq))
			return 3;
		while (raw_poll(&s->rcq, &wc))
			taken++;
	}
}

/* Answers late or not at all: it never posts enough. */
static int starves(struct side *s)
{
	while (!raw_recv(&s->qp, &s->mr, 0, 32768)) {
		usleep(1000);
		drain(&s->rcq);
	}
	return 2;
}

static int (* const lives[])(struct side *s) = { sends_and_polls, waits_for_events, starves };

/*
 * Sends until the peer, which is killed at @at, does not answer any more. Then all
 * that is outstanding is flushed, each once and in order.
 */
static int send_to_the_end(struct side *s, pid_t pid, long long at)
{
	unsigned int sent = 0, done = 0;
	struct raw_wc wc = {};
	bool killed = false;
	int recvs = 0;

	while (!wc.status) {
		/* What the peer sends, too. */
		for (; recvs < WINDOW; recvs++)
			raw_recv(&s->qp, &s->mr, 32768, 32768);
		if (send_some(s, &sent, done))
			return 1;
		if (!killed && raw_ms() >= at)
			killed = !kill(pid, SIGKILL);
		while (!wc.status && raw_poll(&s->rcq, &wc))
			recvs -= !wc.status;
		/* The receives are flushed when the send has failed. */
		wc.status = 0;
		while (!wc.status && raw_poll(&s->scq, &wc))
			done += !wc.status;
		if (killed && raw_ms() > at + RAW_DEADLINE_MS)
			return 2;
	}
	if (!killed || wc.status != VHCA_CQE_RETRY_EXC_ERR)
		return 3;
	for (done++; done < sent; done++)
		if (raw_wait_wc(&s->scq, &wc) || wc.status != VHCA_CQE_WR_FLUSH_ERR ||
		    wc.wqe_index != (uint16_t)done)
			return 4;
	return raw_poll(&s->scq, &wc) || raw_state(&s->qp) != VHCA_QPS_ERR ? 5 : 0;
}

TEST_F_TIMEOUT(endings, a_peer_killed_in_traffic_is_missed_and_leaves_nothing, 600)
{
	int rounds = end_rounds("KILLS", 36), i, sock[2];
	struct end_objects alone;
	struct side s = {};
	uint64_t seed = end_seed();
	pid_t pid;

	ASSERT_EQ(0, side_open(&s, -1));
	alone = end_objects(0);
	for (i = 0; i < rounds; i++) {
		if (i % 6 == 0)
			ASSERT_EQ(0, raw_engine(i % 12 ? "threaded" : "inline"));
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		pid = peer(sock[1], sock[0], lives[i % 3]);
		ASSERT_LT(0, pid);
		close(sock[1]);
		s.sock = sock[0];
		ASSERT_EQ(0, side_connect(&s, 7));
		ASSERT_EQ(0, send_to_the_end(&s, pid, raw_ms() + end_below(20))) {
			TH_LOG("round %d, seed %#llx", i, (unsigned long long)seed);
		}
		ASSERT_EQ(256 + SIGKILL, end_reap(pid, RAW_DEADLINE_MS));
		ASSERT_TRUE(end_left_nothing(0, &alone));
		ASSERT_EQ(0, raw_reset_qp(&s.qp));
		drain(&s.scq);
		drain(&s.rcq);
		close(sock[0]);
	}
	printf("# seed %#llx\n# figure: %d kills\n", (unsigned long long)seed, rounds);
	side_close(&s);
}

/* Killed in a call that takes its time */

static int makes_large_things(struct side *s)
{
	struct raw_mr mr = { .len = 64 << 20 };
	struct raw_cq cq = {};

	mr.addr = mmap(NULL, mr.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (;;) {
		if (raw_reg(&s->ctx, &mr, VHCA_ACCESS_LOCAL_WRITE) || raw_dereg(&s->ctx, &mr))
			return 2;
		madvise(mr.addr, mr.len, MADV_DONTNEED);
		s->ctx.slot = 40;
		if (raw_cq(&s->ctx, &cq, 1 << 19, VHCA_INVALID_FD) || raw_resize_cq(&cq, 1 << 18) ||
		    raw_destroy_cq(&cq, NULL))
			return 3;
		munmap(cq.ring, cq.made.buf_size);
	}
}

TEST_F_TIMEOUT(endings, a_process_killed_in_a_long_call_leaves_nothing, 300)
{
	int rounds = end_rounds("KILLS", 12), i;
	uint64_t seed = end_seed();
	pid_t pid;

	for (i = 0; i < rounds; i++) {
		pid = fork();
		if (!pid) {
			struct side s = {};

			_exit(side_open(&s, -1) ? 1 : makes_large_things(&s));
		}
		usleep(end_below(200000));
		kill(pid, SIGKILL);
		ASSERT_EQ(256 + SIGKILL, end_reap(pid, RAW_DEADLINE_MS));
		ASSERT_TRUE(end_left_nothing(0, &self->before));
		ASSERT_TRUE(RAW_WAIT(end_pages_pinned() == self->pins));
	}
	printf("# seed %#llx\n# figure: %d kills\n", (unsigned long long)seed, rounds);
}

/* exec */

TEST_F(endings, exec_closes_all_and_frees_all)
{
	int async, ready[2];
	struct raw_bed bed;
	char c, path[64];
	pid_t pid;

	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		if (raw_bed(&bed, 0) || raw_bed_fire(&bed))
			_exit(1);
		async = raw_event_file(bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
		if (async < 0)
			_exit(1);
		/* The pipe has an end when it is another program. */
		execlp("sleep", "sleep", "60", NULL);
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(0, read(ready[0], &c, 1));
	EXPECT_TRUE(end_left_nothing(0, &self->before));
	EXPECT_TRUE(RAW_WAIT(end_refs() == 0));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	EXPECT_EQ(0, access(path, F_OK));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, end_reap(pid, RAW_DEADLINE_MS));
	close(ready[0]);
}

/* fork */

/* What the parent registered is its own: the child writes to a copy, then ends. */
static int child_of(struct raw_bed *bed, int how)
{
	memset(bed->mr.addr, 0xee, bed->mr.len);
	if (how % 3 == 1) {
		close(bed->channel);
		close(bed->ctx.fd);
	}
	if (how % 3 == 2)
		raise(SIGKILL);
	return 0;
}

TEST_F(endings, children_come_and_go_and_the_parents_traffic_goes_on)
{
	struct raw_bed bed;
	int i, n, forks = 60;
	pid_t pid[2] = {};

	ASSERT_EQ(0, raw_bed(&bed, 0));
	for (i = 0; i < forks; i++) {
		/* Two at a time: one is written to while the other one ends. */
		if (pid[i % 2])
			ASSERT_EQ(i % 3 == 1 ? 256 + SIGKILL : 0,
				  end_reap(pid[i % 2], RAW_DEADLINE_MS));
		for (n = 0; n < 5; n++) {
			ASSERT_EQ(0, raw_arm(&bed.rcq, false));
			ASSERT_EQ(0, end_message(&bed, i + n));
			ASSERT_EQ(0, raw_cq_event(&bed.rcq));
		}
		pid[i % 2] = fork();
		if (!pid[i % 2])
			_exit(child_of(&bed, i));
	}
	for (i = forks; i < forks + 2; i++)
		ASSERT_EQ(i % 3 == 1 ? 256 + SIGKILL : 0,
			  end_reap(pid[i % 2], RAW_DEADLINE_MS));
	printf("# %d forks\n", forks);
	end_bed_close(&bed);
}

/* Descriptors that are passed on */

#define FDS	3

static int fds_send(int sock, const int *fds)
{
	char ctl[CMSG_SPACE(FDS * sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			      .msg_controllen = sizeof(ctl) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(FDS * sizeof(int));
	memcpy(CMSG_DATA(c), fds, FDS * sizeof(int));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int fds_recv(int sock, int *fds)
{
	char ctl[CMSG_SPACE(FDS * sizeof(int))] = {}, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			      .msg_controllen = sizeof(ctl) };

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), FDS * sizeof(int));
	return 0;
}

/* Makes all, has an event of each kind unread, passes it on and is gone. */
static int gives(int sock)
{
	struct raw_bed bed;
	int fds[FDS], err = raw_bed(&bed, 0);

	if (err)
		return 1;
	fds[0] = bed.ctx.fd;
	fds[1] = bed.channel;
	fds[2] = raw_event_file(bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
	if (fds[2] < 0 || raw_bed_fire(&bed) || raw_reset_qp(&bed.p.b))
		return 2;
	/* A message to nobody: the QP fails, and says so to its file. */
	if (raw_goto(&bed.p.a, VHCA_QPS_SQD))
		return 3;
	return fds_send(sock, fds) ? 4 : 0;
}

/* Reads what is unread, uses the context, then lets go in the order of @order. */
static int takes(int sock, int order)
{
	static const int orders[6][FDS] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct vhca_query_port port = { .port = 1 };
	struct vhca_comp_event ev;
	int fds[FDS], i;

	if (fds_recv(sock, fds) || raw_read_event(fds[1], &ev) ||
	    raw_ioctl(fds[0], VHCA_IOC_QUERY_PORT, &port) || raw_channel(fds[0]) < 0)
		return 1;
	for (i = 0; i < FDS; i++) {
		int fd = fds[orders[order][i]];

		if (fd == fds[1] && raw_readable(fd, 0) && fds[0] >= 0)
			return 2;
		close(fd);
		if (fd == fds[0])
			fds[0] = -1;
	}
	return 0;
}

TEST_F(endings, descriptors_passed_on_live_and_end_with_who_has_them)
{
	int order, sock[2];
	pid_t pid;

	for (order = 0; order < 6; order++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		pid = fork();
		if (!pid)
			_exit(gives(sock[0]));
		ASSERT_EQ(0, raw_wait_child(pid));
		/* Nobody has it, and it is all there. */
		EXPECT_LT(0, end_refs());
		EXPECT_EQ(0, RAW_CHILD(takes(sock[1], order)));
		close(sock[0]);
		close(sock[1]);
		ASSERT_TRUE(end_left_nothing(0, &self->before));
		ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	}
}

TEST_F(endings, descriptors_that_nobody_takes_are_freed_with_the_socket)
{
	int i, sock[2];
	pid_t pid;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		pid = fork();
		if (!pid) {
			/* Also in a socket that is itself in flight, in a circle. */
			int circle[FDS] = { sock[0], sock[1], sock[0] };

			_exit(gives(sock[0]) || (i % 2 && fds_send(sock[0], circle)));
		}
		ASSERT_EQ(0, raw_wait_child(pid));
		EXPECT_LT(0, end_refs());
		close(sock[0]);
		close(sock[1]);
		/* A circle is looked for when a socket is closed for good. */
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		close(sock[0]);
		close(sock[1]);
		ASSERT_TRUE(end_left_nothing(0, &self->before));
		ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	}
}

/* Stopped */

/* Receives a few, then sleeps; goes on with the rest when it is woken. */
static int receives_when_it_runs(struct side *s)
{
	struct raw_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		raw_recv(&s->qp, &s->mr, 0, 4096);
	if (write(s->sock, "", 1) != 1)
		return 2;
	raise(SIGSTOP);
	for (i = 0; i < 12; i++)
		raw_recv(&s->qp, &s->mr, 0, 4096);
	for (i = 0; i < 16; i++)
		if (raw_wait_wc(&s->rcq, &wc) || wc.status)
			return 3;
	return 0;
}

static pid_t stopped_peer(struct side *s, uint8_t rnr_retry)
{
	int sock[2], status;
	pid_t pid;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return -1;
	pid = peer(sock[1], sock[0], receives_when_it_runs);
	close(sock[1]);
	s->sock = sock[0];
	if (pid < 0 || side_connect(s, rnr_retry) || read(sock[0], &c, 1) != 1 ||
	    waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return -1;
	close(sock[0]);
	return pid;
}

TEST_F(endings, a_stopped_receiver_keeps_its_sender_waiting_and_nobody_else)
{
	long long naks = raw_device_counter(0, "rnr_naks");
	struct side s = {};
	struct raw_bed bed;
	struct raw_wc wc;
	pid_t pid;
	int i;

	ASSERT_EQ(0, side_open(&s, -1));
	pid = stopped_peer(&s, 7);
	ASSERT_LT(0, pid);
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, raw_send(&s.qp, VHCA_WQE_SIGNALED, &s.mr, 0, 256));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, raw_wait_wc(&s.scq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	/* It is asked again and again, while others' messages and calls go on. */
	ASSERT_EQ(0, raw_bed(&bed, 0));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, end_message(&bed, i));
	EXPECT_TRUE(RAW_WAIT(raw_device_counter(0, "rnr_naks") > naks + 10));
	EXPECT_FALSE(raw_poll(&s.scq, &wc));
	kill(pid, SIGCONT);
	for (i = 4; i < 16; i++) {
		ASSERT_EQ(0, raw_wait_wc(&s.scq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	EXPECT_EQ(0, end_reap(pid, RAW_DEADLINE_MS));
	end_bed_close(&bed);
	side_close(&s);
}

TEST_F(endings, tries_for_a_stopped_receiver_are_counted)
{
	struct side s = {};
	struct raw_wc wc;
	pid_t pid;
	int i;

	ASSERT_EQ(0, side_open(&s, -1));
	pid = stopped_peer(&s, 2);
	ASSERT_LT(0, pid);
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, raw_send(&s.qp, VHCA_WQE_SIGNALED, &s.mr, 0, 256));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, raw_wait_wc(&s.scq, &wc));
		ASSERT_EQ(i < 4 ? VHCA_CQE_SUCCESS : i == 4 ? VHCA_CQE_RNR_RETRY_EXC_ERR :
			  VHCA_CQE_WR_FLUSH_ERR, wc.status);
	}
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, end_reap(pid, RAW_DEADLINE_MS));
	side_close(&s);
}

/* Traced */

/* Takes each message when its event has come, for which it waits in read(). */
static int receives_by_events(struct side *s)
{
	struct vhca_comp_event ev;
	struct raw_wc wc;
	int i;

	for (i = 0; i < 16; i++)
		raw_recv(&s->qp, &s->mr, 0, 4096);
	for (i = 0; i < 16; i++) {
		if (raw_arm(&s->rcq, false))
			return 2;
		if (read(s->channel, &ev, sizeof(ev)) != sizeof(ev))
			return 3;
		s->rcq.events++;
		if (!raw_poll(&s->rcq, &wc) || wc.status)
			return 4;
	}
	return 0;
}

/* Does it reach a stop that ptrace makes? Signals of its own it is given on the way. */
static bool reaches_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == (SIGTRAP | 0x80))
			return true;
		ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status));
	}
	return false;
}

TEST_F(endings, a_reader_stopped_by_its_tracer_loses_no_event)
{
	struct side s = {};
	struct raw_wc wc;
	int sock[2], i;
	pid_t pid;

	ASSERT_EQ(0, side_open(&s, -1));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = peer(sock[1], sock[0], receives_by_events);
	close(sock[1]);
	s.sock = sock[0];
	ASSERT_EQ(0, side_connect(&s, 7));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
		ASSERT_TRUE(reaches_stop(pid));
		ASSERT_EQ(0, raw_send(&s.qp, VHCA_WQE_SIGNALED, &s.mr, 0, 256));
		/* Not before it has posted its receives, which it may yet have to. */
		if (i)
			ASSERT_EQ(0, raw_wait_wc(&s.scq, &wc));
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, NULL, NULL));
		if (!i)
			ASSERT_EQ(0, raw_wait_wc(&s.scq, &wc));
		ASSERT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	EXPECT_EQ(0, end_reap(pid, RAW_DEADLINE_MS));
	close(sock[0]);
	side_close(&s);
}

/* A life of many calls, each of which stops twice. */
static int lives_briefly(void)
{
	struct raw_bed bed;
	int err;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 1;
	raise(SIGSTOP);
	err = raw_bed(&bed, 0);
	if (!err)
		err = end_message(&bed, 1);
	end_bed_close(&bed);
	return -err;
}

/* Let it pass @stops ends of calls, and kill it at the next; how many it came to. */
static int killed_at_stop(pid_t pid, int stops)
{
	int status, n = 0;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD))
		return -1;
	while (n < stops && !ptrace(PTRACE_SYSCALL, pid, NULL, NULL) &&
	       waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		n++;
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return WIFSIGNALED(status) || !WEXITSTATUS(status) ? n : -1;
}

TEST_F_TIMEOUT(endings, a_process_killed_at_either_end_of_a_call_leaves_nothing, 300)
{
	int stops = 0, came = 0, killed = 0;
	pid_t pid;

	/* Up to its last call of all. */
	while (came == stops) {
		stops += 3;
		pid = fork();
		if (!pid)
			_exit(lives_briefly());
		came = killed_at_stop(pid, stops);
		ASSERT_LT(0, came);
		ASSERT_TRUE(end_left_nothing(0, &self->before));
		killed += came == stops;
	}
	TH_LOG("killed at %d of %d stops", killed, came);
	EXPECT_LT(20, killed);
}

/* Signals */

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	signals++;
}

static int storm(bool on, int flags)
{
	struct sigaction act = { .sa_handler = count_signal, .sa_flags = flags };
	struct itimerval timer = {};

	if (on)
		timer = (struct itimerval) { { .tv_usec = 300 }, { .tv_usec = 300 } };
	sigaction(SIGALRM, &act, NULL);
	return setitimer(ITIMER_REAL, &timer, NULL);
}

/* Everything once; the first call that fails says why. */
static int make_all(struct side *s)
{
	struct vhca_reg_special_mr dm_mr = { .length = 4096, .pd = s->ctx.pd };
	struct vhca_rereg_mr rereg = { .flags = VHCA_REREG_ACCESS };
	struct vhca_alloc_dm dm = { .length = 4096 };
	struct raw_mr mr = { .addr = s->mr.addr, .len = s->mr.len };
	struct raw_cq cq = {};
	struct raw_qp qp = {};
	struct raw_srq srq = {};
	uint32_t pd, xrcd;
	int err;

	s->ctx.slot = 40;
	err = raw_alloc_pd(s->ctx.fd, &pd);
	if (!err)
		err = raw_reg(&s->ctx, &mr, VHCA_ACCESS_LOCAL_WRITE);
	rereg.lkey = mr.lkey;
	if (!err)
		err = raw_ioctl(s->ctx.fd, VHCA_IOC_REREG_MR, &rereg);
	mr.lkey = rereg.lkey;
	if (!err)
		err = raw_ioctl(s->ctx.fd, VHCA_IOC_ALLOC_DM, &dm);
	dm_mr.dm = dm.dm;
	if (!err)
		err = raw_ioctl(s->ctx.fd, VHCA_IOC_REG_DM_MR, &dm_mr);
	if (!err)
		err = raw_open_xrcd(&s->ctx, VHCA_INVALID_FD, 0, &xrcd);
	if (!err)
		err = raw_cq(&s->ctx, &cq, 1024, s->channel);
	if (!err)
		err = raw_resize_cq(&cq, 2048);
	if (!err)
		err = raw_srq(&s->ctx, &srq, 0);
	if (!err)
		err = raw_qp(&s->ctx, &qp, &cq, &cq);
	if (!err)
		err = raw_climb(&qp, VHCA_QPS_RTS, raw_attr(s->ctx.lid, qp.made.qpn));
	if (!err)
		err = raw_reset_qp(&qp);
	if (!err)
		err = raw_destroy_qp(&qp);
	if (!err)
		err = raw_destroy_srq(&srq, NULL);
	if (!err)
		err = raw_destroy_cq(&cq, NULL);
	if (!err)
		err = raw_free(s->ctx.fd, VHCA_IOC_CLOSE_XRCD, xrcd);
	if (!err)
		err = raw_free(s->ctx.fd, VHCA_IOC_DEREG_MR, dm_mr.lkey);
	if (!err)
		err = raw_free(s->ctx.fd, VHCA_IOC_FREE_DM, dm.dm);
	if (!err)
		err = raw_dereg(&s->ctx, &mr);
	if (!err)
		err = raw_free(s->ctx.fd, VHCA_IOC_FREE_PD, pd);
	if (qp.buf)
		munmap(qp.buf, qp.made.buf_size);
	if (srq.buf)
		munmap(srq.buf, srq.made.buf_size);
	if (cq.ring)
		munmap(cq.ring, cq.made.buf_size);
	return err;
}

/* Signals that are handled interrupt no call but those that wait for events. */
TEST_F_TIMEOUT(endings, a_storm_of_signals_leaves_no_call_half_done, 300)
{
	static const int flags[] = { 0, SA_RESTART };
	struct end_objects alone;
	struct side s = {};
	unsigned int f;
	int i;

	ASSERT_EQ(0, side_open(&s, -1));
	alone = end_objects(0);
	for (f = 0; f < 2; f++) {
		signals = 0;
		ASSERT_EQ(0, storm(true, flags[f]));
		for (i = 0; i < 40 || signals < 200; i++)
			ASSERT_EQ(0, make_all(&s));
		ASSERT_EQ(0, storm(false, flags[f]));
		printf("# %d signals in %d rounds of all calls\n", (int)signals, i);
		ASSERT_TRUE(end_left_nothing(0, &alone));
	}
	side_close(&s);
}

/* Waits are interrupted, or not; the event is there all the same. */
TEST_F(endings, a_storm_of_signals_loses_no_event)
{
	struct raw_bed bed;
	struct vhca_comp_event ev;
	int i, interrupted = 0;
	ssize_t n;

	ASSERT_EQ(0, raw_bed(&bed, 0));
	ASSERT_EQ(0, storm(true, 0));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, raw_arm(&bed.rcq, false));
		ASSERT_EQ(0, end_message(&bed, i));
		while ((n = read(bed.channel, &ev, sizeof(ev))) == -1 && errno == EINTR)
			interrupted++;
		ASSERT_EQ((ssize_t)sizeof(ev), n);
		ASSERT_EQ(bed.rcq.made.cookie, ev.cookie);
		bed.rcq.events++;
	}
	ASSERT_EQ(0, storm(false, 0));
	printf("# %d events, %d reads interrupted\n", i, interrupted);
	end_bed_close(&bed);
}

TEST_HARNESS_MAIN
