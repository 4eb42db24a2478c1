// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_verbs_channel.c: completion channels and notification through the verbs
 * library, a test for each sentence of what they promise. The same by raw ioctl,
 * which sees more of the file's side, is in test_channel.c and test_notify.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "rc.h"

/* How long nothing must happen for a test to believe that nothing will. */
#define QUIET_MS	30

static void open_with_channels(struct __test_metadata *_metadata, struct pair *p)
{
	struct pair_opts opts = p->opts;

	opts.channel = true;
	reopen(_metadata, p, opts);
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* One message from a to b, which completes. */
static void message(struct __test_metadata *_metadata, struct end *a, struct end *b,
		    unsigned int flags)
{
	ASSERT_EQ(0, post_recv(b, 2, 0, 100));
	ASSERT_EQ(0, post_send(a, 1, 0, 10, flags | IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
}

static void expect_event(struct __test_metadata *_metadata, struct ibv_comp_channel *channel,
			 struct ibv_cq *cq)
{
	ASSERT_EQ(cq, comp_event(channel));
}

static void expect_quiet(struct __test_metadata *_metadata, struct ibv_comp_channel *channel)
{
	ASSERT_FALSE(readable(channel->fd, QUIET_MS));
}

/* A thread that waits for an event, for a CQ to be destroyed, ... */
struct waiter {
	pthread_t thread;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *context;
	pid_t tid;
	int ret;
	int err;
	bool done;
};

static void *get_event(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->ret = ibv_get_cq_event(w->channel, &w->cq, &w->context);
	w->err = errno;
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *destroy_cq(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->ret = ibv_destroy_cq(w->cq);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool sleeps(struct waiter *w)
{
	pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);

	return tid && thread_state(tid) == 'S';
}

/* Started, and asleep for good: it is seen asleep ten times in a row. */
static void start_and_see_it_sleep(struct __test_metadata *_metadata, struct waiter *w,
				   void *(*fn)(void *))
{
	int seen = 0;

	ASSERT_EQ(0, pthread_create(&w->thread, NULL, fn, w));
	while (seen < 10) {
		ASSERT_TRUE(wait_until(sleeps(w)));
		seen = sleeps(w) ? seen + 1 : 0;
		poll(NULL, 0, 1);
	}
	ASSERT_FALSE(__atomic_load_n(&w->done, __ATOMIC_ACQUIRE));
}

/*
 * The channel
 */
TEST_F(rc, a_channel_is_a_file_of_its_own_read_only_and_close_on_exec)
{
	struct ibv_context *ctx = self->a->ctx;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

	ASSERT_NE(NULL, channel);
	EXPECT_EQ(ctx, channel->context);
	EXPECT_NE(ctx->cmd_fd, channel->fd);
	EXPECT_NE(ctx->async_fd, channel->fd);
	EXPECT_EQ(O_RDONLY, fcntl(channel->fd, F_GETFL) & O_ACCMODE);
	EXPECT_TRUE(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

TEST_F(rc, any_number_of_channels)
{
	struct ibv_comp_channel *channel[100];
	int i;

	for (i = 0; i < 100; i++) {
		channel[i] = ibv_create_comp_channel(self->a->ctx);
		ASSERT_NE(NULL, channel[i]);
	}
	for (i = 0; i < 100; i++)
		EXPECT_EQ(0, ibv_destroy_comp_channel(channel[i]));
}

TEST_F(rc, destroying_a_channel_that_a_cq_uses_is_ebusy)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(self->a->ctx);
	struct ibv_cq *cq[2];
	int i;

	ASSERT_NE(NULL, channel);
	for (i = 0; i < 2; i++) {
		cq[i] = ibv_create_cq(self->a->ctx, 10, NULL, channel, 0);
		ASSERT_NE(NULL, cq[i]);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel));
		EXPECT_EQ(0, ibv_destroy_cq(cq[i]));
	}
	EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

TEST_F(rc, get_cq_event_blocks_until_there_is_one)
{
	struct waiter w = {};

	open_with_channels(_metadata, &self->p);
	w.channel = self->b->channel;
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	start_and_see_it_sleep(_metadata, &w, get_event);
	message(_metadata, self->a, self->b, 0);
	ASSERT_TRUE(wait_until(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE)));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(0, w.ret);
	EXPECT_EQ(self->b->rcq, w.cq);
	EXPECT_EQ(&self->b->rcq, w.context);
	ibv_ack_cq_events(w.cq, 1);
}

TEST_F(rc, a_non_blocking_channel_gives_eagain)
{
	struct ibv_cq *cq;
	void *context;

	open_with_channels(_metadata, &self->p);
	set_nonblocking(self->b->channel->fd);
	EXPECT_EQ(-1, ibv_get_cq_event(self->b->channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
	EXPECT_EQ(-1, ibv_get_cq_event(self->b->channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
}

static void on_signal(int sig)
{
}

TEST_F(rc, a_signal_interrupts_the_wait)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct waiter w = {};

	open_with_channels(_metadata, &self->p);
	w.channel = self->b->channel;
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	start_and_see_it_sleep(_metadata, &w, get_event);
	ASSERT_EQ(0, pthread_kill(w.thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-1, w.ret);
	EXPECT_EQ(EINTR, w.err);
	/* Nothing was lost by it. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
}

TEST_F(rc, several_cqs_on_one_channel_are_told_apart)
{
	struct end *a = self->a;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(a->ctx);
	struct ibv_sge sge = { (uintptr_t)a->buf, 10, a->mr->lkey };
	unsigned int seen = 0, i;
	struct ibv_cq *cq[5], *got;
	struct ibv_qp *qp[5];
	void *context;

	ASSERT_NE(NULL, channel);
	for (i = 0; i < 5; i++) {
		cq[i] = ibv_create_cq(a->ctx, 10, &cq[i], channel, 0);
		ASSERT_NE(NULL, cq[i]);
		qp[i] = make_qp(a->pd, a->scq, cq[i], &self->p.opts, NULL);
		ASSERT_NE(NULL, qp[i]);
		qp_connect(_metadata, qp[i], &self->p.opts, a->lid, qp[i]->qp_num);
		ASSERT_EQ(0, ibv_req_notify_cq(cq[i], 0));
		ASSERT_EQ(0, post_recv_sges(qp[i], i, &sge, 1));
	}
	/* All but one. */
	for (i = 0; i < 5; i++)
		if (i != 3)
			ASSERT_EQ(0, post_send_sges(qp[i], i, &sge, 1, 0));
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(readable(channel->fd, 10000));
		ASSERT_EQ(0, ibv_get_cq_event(channel, &got, &context));
		ASSERT_EQ(got, *(struct ibv_cq **)context);
		seen |= 1 << ((struct ibv_cq **)context - cq);
		ibv_ack_cq_events(got, 1);
	}
	EXPECT_EQ(0x17, seen);
	expect_quiet(_metadata, channel);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, ibv_destroy_qp(qp[i]));
		EXPECT_EQ(0, ibv_destroy_cq(cq[i]));
	}
	EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

TEST_F(rc, an_event_goes_to_its_own_channel_only)
{
	struct ibv_comp_channel *other;

	open_with_channels(_metadata, &self->p);
	other = ibv_create_comp_channel(self->b->ctx);
	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
	expect_quiet(_metadata, other);
	expect_quiet(_metadata, self->a->channel);
	EXPECT_EQ(0, ibv_destroy_comp_channel(other));
}

TEST_F(rc, a_cq_without_a_channel_is_only_polled)
{
	/* The fixture's CQs have none. */
	ibv_req_notify_cq(self->b->rcq, 0);
	exchange(_metadata, self->a, self->b, 100, 1);
	exchange(_metadata, self->a, self->b, 100, 2);
}

TEST_F(rc, dup_shares_the_queue)
{
	struct ibv_comp_channel *channel;
	int fd;

	open_with_channels(_metadata, &self->p);
	channel = self->b->channel;
	fd = dup(channel->fd);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	EXPECT_TRUE(readable(fd, 10000));
	expect_event(_metadata, channel, self->b->rcq);
	EXPECT_FALSE(readable(fd, QUIET_MS));
	close(fd);
}

/*
 * Notification
 */
TEST_F(rc, req_notify_is_one_shot)
{
	int i;

	open_with_channels(_metadata, &self->p);
	message(_metadata, self->a, self->b, 0);
	expect_quiet(_metadata, self->b->channel);
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	for (i = 0; i < 9; i++) {	/* more than the arm's sequence numbers */
		ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
		message(_metadata, self->a, self->b, 0);
		message(_metadata, self->a, self->b, 0);
		expect_event(_metadata, self->b->channel, self->b->rcq);
		message(_metadata, self->a, self->b, 0);
		expect_quiet(_metadata, self->b->channel);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	}
}

TEST_F(rc, any_completion_fires_an_arm_for_any)
{
	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(self->a->scq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->a->channel, self->a->scq);
}

TEST_F(rc, a_solicited_arm_waits_for_a_solicited_receive)
{
	struct end *a = self->a, *b = self->b;

	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	ASSERT_EQ(0, ibv_req_notify_cq(a->scq, 1));
	message(_metadata, a, b, 0);
	message(_metadata, a, b, 0);
	expect_quiet(_metadata, b->channel);
	message(_metadata, a, b, IBV_SEND_SOLICITED);
	expect_event(_metadata, b->channel, b->rcq);
	/* The sender's completion is not solicited by its own flag. */
	expect_quiet(_metadata, a->channel);
	message(_metadata, a, b, IBV_SEND_SOLICITED);
	expect_quiet(_metadata, b->channel);
}

TEST_F(rc, a_solicited_arm_fires_on_a_completion_in_error)
{
	struct end *a = self->a, *b = self->b;

	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, post_recv(b, 2, 0, 5));
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	ASSERT_EQ(0, ibv_req_notify_cq(a->scq, 1));
	ASSERT_EQ(0, post_send(a, 1, 0, 10, IBV_SEND_SIGNALED));
	expect_event(_metadata, b->channel, b->rcq);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	expect_event(_metadata, a->channel, a->scq);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(rc, a_flush_fires_a_solicited_arm)
{
	struct end *b = self->b;

	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, post_recv(b, 2, 0, 5));
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_ERR));
	expect_event(_metadata, b->channel, b->rcq);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(rc, an_arm_for_any_widens_a_solicited_one)
{
	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 1));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
}

TEST_F(rc, a_solicited_arm_does_not_narrow_one_for_any)
{
	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 1));
	message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
}

TEST_F(rc, a_repeated_arm_fires_once)
{
	int i, round;

	open_with_channels(_metadata, &self->p);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
		message(_metadata, self->a, self->b, 0);
		expect_event(_metadata, self->b->channel, self->b->rcq);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
		message(_metadata, self->a, self->b, 0);
		expect_quiet(_metadata, self->b->channel);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	}
}

TEST_F(rc, arming_a_cq_that_holds_completions_raises_an_event_at_once)
{
	int i;

	open_with_channels(_metadata, &self->p);
	for (i = 0; i < 9; i++) {
		message(_metadata, self->a, self->b, 0);
		expect_quiet(_metadata, self->b->channel);
		ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
		expect_event(_metadata, self->b->channel, self->b->rcq);
		expect_quiet(_metadata, self->b->channel);
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	}
	/* Emptied, and armed again: nothing is left over. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	expect_quiet(_metadata, self->b->channel);
}

TEST_F(rc, a_solicited_arm_on_a_cq_that_holds_a_solicited_completion)
{
	open_with_channels(_metadata, &self->p);
	message(_metadata, self->a, self->b, IBV_SEND_SOLICITED);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 1));
	expect_event(_metadata, self->b->channel, self->b->rcq);
}

/* A QP that is its own peer, with a receive that nobody has polled. */
static struct ibv_qp *qp_with_a_completion(struct __test_metadata *_metadata, struct end *e)
{
	const struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_qp *qp = make_qp(e->pd, e->scq, e->rcq, &opts, NULL);
	struct ibv_sge sge = { (uintptr_t)e->buf, 64, e->mr->lkey };

	ASSERT_NE(NULL, qp);
	qp_connect(_metadata, qp, &opts, e->lid, qp->qp_num);
	ASSERT_EQ(0, post_recv_sges(qp, 8, &sge, 1));
	ASSERT_EQ(0, post_send_sges(qp, 9, &sge, 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, e->scq, 9, IBV_WC_SUCCESS);
	return qp;
}

/* It moves up over the one of a QP that is destroyed, behind the device's back. */
TEST_F(rc, a_solicited_arm_on_a_cq_in_which_a_solicited_completion_has_moved)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_qp *other;

	open_with_channels(_metadata, &self->p);
	message(_metadata, a, b, IBV_SEND_SOLICITED);
	other = qp_with_a_completion(_metadata, b);
	ASSERT_EQ(0, ibv_destroy_qp(other));
	expect_quiet(_metadata, b->channel);
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	expect_event(_metadata, b->channel, b->rcq);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));

	/* What comes after it is as solicited as it was sent. */
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	message(_metadata, a, b, 0);
	expect_quiet(_metadata, b->channel);
	message(_metadata, a, b, IBV_SEND_SOLICITED);
	expect_event(_metadata, b->channel, b->rcq);
}

/*
 * To see whether one of very many is solicited takes time, which is the sender's: then the
 * arm fires.
 */
#define MANY	4096

TEST_F(rc, a_solicited_arm_with_very_many_unread_completions_fires_at_once)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	int i;

	opts.channel = true;
	opts.cqe = 2 * MANY;
	opts.cap.max_recv_wr = 2 * MANY;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i <= MANY; i++) {
		ASSERT_EQ(0, post_recv(b, i, 0, 1));
		ASSERT_EQ(0, post_send(a, i, 0, 1, IBV_SEND_SIGNALED));
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
	}
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 1));
	expect_event(_metadata, b->channel, b->rcq);
}

TEST_F(rc, one_event_covers_many_completions)
{
	int i;

	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	for (i = 0; i < 20; i++)
		message(_metadata, self->a, self->b, 0);
	expect_event(_metadata, self->b->channel, self->b->rcq);
	expect_quiet(_metadata, self->b->channel);
	for (i = 0; i < 20; i++)
		expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
}

TEST_F(rc, a_cq_may_be_found_empty_after_an_event)
{
	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	message(_metadata, self->a, self->b, 0);
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	expect_event(_metadata, self->b->channel, self->b->rcq);
	EXPECT_TRUE(cq_empty(self->b->rcq));
}

/*
 * Acknowledging and destroying
 */
static void close_qp_of(struct __test_metadata *_metadata, struct end *e)
{
	ASSERT_EQ(0, ibv_destroy_qp(e->qp));
	e->qp = NULL;
}

TEST_F(rc, destroying_a_cq_waits_until_its_events_are_acknowledged)
{
	struct end *b = self->b;
	struct waiter w = {};
	struct ibv_cq *cq;
	void *context;
	int i;

	open_with_channels(_metadata, &self->p);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 0));
		message(_metadata, self->a, b, 0);
		ASSERT_EQ(0, ibv_get_cq_event(b->channel, &cq, &context));
		expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	}
	ibv_ack_cq_events(b->rcq, 1);
	close_qp_of(_metadata, b);
	w.cq = b->rcq;
	b->rcq = NULL;
	start_and_see_it_sleep(_metadata, &w, destroy_cq);
	ibv_ack_cq_events(w.cq, 2);
	ASSERT_TRUE(wait_until(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE)));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(0, w.ret);
}

TEST_F(rc, destroying_a_cq_drops_its_queued_events)
{
	struct end *b = self->b;
	struct ibv_comp_channel *channel;

	open_with_channels(_metadata, &self->p);
	channel = b->channel;
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 0));
	message(_metadata, self->a, b, 0);
	ASSERT_TRUE(readable(channel->fd, 10000));
	close_qp_of(_metadata, b);
	ASSERT_EQ(0, ibv_destroy_cq(b->rcq));
	b->rcq = NULL;
	expect_quiet(_metadata, channel);
}

TEST_F(rc, a_cq_that_a_qp_uses_is_not_destroyed)
{
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->b->rcq));
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->b->scq));
	exchange(_metadata, self->a, self->b, 100, 1);
}

/*
 * With other files, other processes
 */
TEST_F(rc, epoll_over_channel_async_file_and_pipe)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_async_event async;
	struct epoll_event event;
	int ep = epoll_create1(EPOLL_CLOEXEC), pipes[2], fd[3], i;
	char c = 'x';

	open_with_channels(_metadata, &self->p);
	ASSERT_LE(0, ep);
	ASSERT_EQ(0, pipe(pipes));
	fd[0] = b->channel->fd;
	fd[1] = b->ctx->async_fd;
	fd[2] = pipes[0];
	for (i = 0; i < 3; i++) {
		event = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd[i] };
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &event));
	}
	ASSERT_EQ(0, epoll_wait(ep, &event, 1, QUIET_MS));

	ASSERT_EQ(1, write(pipes[1], &c, 1));
	ASSERT_EQ(1, epoll_wait(ep, &event, 1, 10000));
	EXPECT_EQ(fd[2], event.data.fd);
	ASSERT_EQ(1, read(pipes[0], &c, 1));

	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 0));
	message(_metadata, a, b, 0);
	ASSERT_EQ(1, epoll_wait(ep, &event, 1, 10000));
	EXPECT_EQ(fd[0], event.data.fd);
	expect_event(_metadata, b->channel, b->rcq);

	i = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &(struct ibv_qp_attr){
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 }, i));
	ASSERT_EQ(1, epoll_wait(ep, &event, 1, 10000));
	EXPECT_EQ(fd[1], event.data.fd);
	ASSERT_TRUE(async_event(b->ctx, &async));
	ASSERT_EQ(0, epoll_wait(ep, &event, 1, QUIET_MS));
	close(pipes[0]);
	close(pipes[1]);
	close(ep);
}

/* The child has the files, not the queues; its end takes nothing from the parent. */
TEST_F(rc, fork_leaves_everything_with_the_parent)
{
	struct end *a = self->a, *b = self->b;
	int status;
	pid_t pid;

	open_with_channels(_metadata, &self->p);
	ASSERT_EQ(0, ibv_req_notify_cq(b->rcq, 0));
	pid = fork();
	if (!pid) {
		close(b->channel->fd);
		close(b->ctx->async_fd);
		close(b->ctx->cmd_fd);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	message(_metadata, a, b, 0);
	expect_event(_metadata, b->channel, b->rcq);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	exchange(_metadata, b, a, 5000, 3);
}

/* Memory that was registered before the fork is the parent's, written or not. */
TEST_F(rc, registered_memory_stays_the_parents_after_fork)
{
	struct end *a = self->a, *b = self->b;
	int status, i;
	pid_t pid;

	for (i = 0; i < 5; i++) {
		pid = fork();
		if (!pid) {
			poll(NULL, 0, 100);
			_exit(0);
		}
		ASSERT_LT(0, pid);
		exchange(_metadata, a, b, 50000, 10 + i);
		exchange(_metadata, b, a, 50000, 20 + i);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
}

TEST_HARNESS_MAIN
