// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stepping: each stage between WQE and interrupt can be held, lets one thing pass at a
 * time, and all that is left in order; what is held is told, and goes with its objects.
 */
#include "rc.h"
#include "faults.h"

FIXTURE(stepping)
{
	struct pair p;
	struct end *a;
	struct end *b;
	uint32_t scqn;
	uint32_t rcqn;
	uint32_t eqn;
};

FIXTURE_SETUP(stepping)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, order(0, "faults", "clear"));
	ASSERT_EQ(0, order(0, "hold", "release all"));
	opts.channel = true;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->scqn = self->a->scq->handle;
	self->rcqn = self->b->rcq->handle;
	self->eqn = shown(0, "cq", self->rcqn, "eq");
}

FIXTURE_TEARDOWN(stepping)
{
	int waiting;

	EXPECT_EQ(0, order(0, "hold", "release all"));
	EXPECT_EQ(0, order(0, "faults", "clear"));
	pair_close(_metadata, &self->p);
	EXPECT_EQ(0, gates(0, "", &waiting));
}

/* Messages 0 to @n - 1, receives included. */
static void post_some(struct __test_metadata *_metadata, struct end *from, struct end *to, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, post_recv(to, i, 0, 64));
		ASSERT_EQ(0, post_send(from, i, 0, 64, IBV_SEND_SIGNALED));
	}
}

TEST_F(stepping, a_held_qp_takes_one_wqe_a_step)
{
	uint32_t qpn = self->a->qp->qp_num;

	ASSERT_EQ(0, orderf(0, "hold", "hold wqe qp=%u", qpn));
	EXPECT_EQ(-EAGAIN, orderf(0, "hold", "step wqe qp=%u", qpn));
	post_some(_metadata, self->a, self->b, 4);
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", qpn) == 4));
	EXPECT_EQ(4, shown(0, "qp", qpn, "sq_waiting"));
	EXPECT_TRUE(cq_empty(self->a->scq));
	ASSERT_EQ(0, orderf(0, "hold", "step wqe qp=%u", qpn));
	expect_wc(_metadata, self->a->scq, 0, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->a->scq));
	EXPECT_EQ(3, pending(0, "wqe qp=%u", qpn));
	ASSERT_EQ(0, order(0, "hold", "step wqe"));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->a->scq));
	ASSERT_EQ(0, orderf(0, "hold", "release wqe qp=%u", qpn));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	EXPECT_EQ(0, pending(0, "wqe qp=%u", qpn));
	exchange(_metadata, self->b, self->a, 300, 5);
}

TEST_F(stepping, a_held_cq_gets_one_cqe_a_step_in_order)
{
	int i;

	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->scqn));
	EXPECT_EQ(-EAGAIN, orderf(0, "hold", "step cqe cq=%u", self->scqn));
	post_some(_metadata, self->a, self->b, 5);
	for (i = 0; i < 5; i++)
		expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 5));
	EXPECT_EQ(0, shown(0, "cq", self->scqn, "unread"));
	EXPECT_TRUE(cq_empty(self->a->scq));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, orderf(0, "hold", "step cqe cq=%u", self->scqn));
		EXPECT_EQ(1, shown(0, "cq", self->scqn, "unread"));
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
		EXPECT_TRUE(cq_empty(self->a->scq));
	}
	ASSERT_EQ(0, orderf(0, "hold", "release cqe cq=%u", self->scqn));
	for (; i < 5; i++)
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
}

TEST_F(stepping, the_oldest_of_the_function_goes_first)
{
	ASSERT_EQ(0, order(0, "hold", "hold cqe"));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "cqe") == 2));
	/* The receive is complete before it is acknowledged. */
	ASSERT_EQ(0, order(0, "hold", "step cqe"));
	EXPECT_TRUE(cq_empty(self->a->scq));
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
	ASSERT_EQ(0, order(0, "hold", "step cqe"));
	expect_wc(_metadata, self->a->scq, 0, IBV_WC_SUCCESS);
	EXPECT_EQ(-EAGAIN, order(0, "hold", "step cqe"));
}

TEST_F(stepping, a_held_event_queue_gets_its_entry_at_the_step)
{
	ASSERT_EQ(0, orderf(0, "hold", "hold eqe cq=%u", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	post_some(_metadata, self->a, self->b, 1);
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
	EXPECT_TRUE(wait_until(pending(0, "eqe cq=%u", self->rcqn) == 1));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "hold", "step eqe cq=%u", self->rcqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	EXPECT_EQ(-EAGAIN, orderf(0, "hold", "step eqe eq=%u", self->eqn));
	/* By its EQ: the same. */
	ASSERT_EQ(0, orderf(0, "hold", "release eqe cq=%u", self->rcqn));
	ASSERT_EQ(0, orderf(0, "hold", "hold eqe eq=%u", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "eqe") == 1));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "hold", "release eqe eq=%u", self->eqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
}

TEST_F(stepping, a_held_interrupt_comes_at_the_step)
{
	ASSERT_EQ(0, orderf(0, "hold", "hold msix eq=%u", self->eqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "msix eq=%u", self->eqn) == 1));
	EXPECT_EQ(1, shown(0, "eq", self->eqn, "unread"));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "hold", "step msix eq=%u", self->eqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	EXPECT_EQ(-EAGAIN, orderf(0, "hold", "step msix eq=%u", self->eqn));
	ASSERT_EQ(0, order(0, "hold", "release msix"));
}

/* Where a program waits for ever if it is wrong. */
TEST_F(stepping, a_completion_can_come_between_the_last_poll_and_the_arm)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->rcqn));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->rcqn) == 1));
	ASSERT_EQ(0, ibv_poll_cq(self->b->rcq, 1, &wc));
	ASSERT_EQ(0, orderf(0, "hold", "step cqe cq=%u", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
}

TEST_F(stepping, a_completion_can_come_between_the_arm_and_the_wait)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->rcqn));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->rcqn) == 1));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	ASSERT_EQ(0, ibv_poll_cq(self->b->rcq, 1, &wc));
	EXPECT_FALSE(readable(self->b->channel->fd, 0));
	ASSERT_EQ(0, orderf(0, "hold", "step cqe cq=%u", self->rcqn));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
}

TEST_F(stepping, a_qp_in_error_is_flushed_past_the_held_wqes)
{
	uint32_t qpn = self->a->qp->qp_num;

	ASSERT_EQ(0, orderf(0, "hold", "hold wqe qp=%u\n", qpn));
	ASSERT_EQ(0, post_send(self->a, 7, 0, 64, 0));
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", qpn) == 1));
	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u\n", self->scqn));
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_ERR));
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 1));
	EXPECT_EQ(0, pending(0, "wqe qp=%u", qpn));
	ASSERT_EQ(0, orderf(0, "hold", "step cqe cq=%u", self->scqn));
	expect_wc(_metadata, self->a->scq, 7, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(stepping, what_a_destroyed_qp_has_held_does_not_come_later)
{
	struct ibv_qp *other = make_qp(self->a->pd, self->a->scq, self->a->rcq, &self->p.opts,
				       NULL);

	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->scqn));
	ASSERT_EQ(0, qp_to_init(other, &self->p.opts));
	ASSERT_EQ(0, qp_to(other, IBV_QPS_ERR));
	ASSERT_EQ(0, post_send_sges(other, 99, NULL, 0, 0));
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 1));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 2));
	ASSERT_EQ(0, ibv_destroy_qp(other));
	EXPECT_EQ(1, pending(0, "cqe cq=%u", self->scqn));
	EXPECT_TRUE(cq_empty(self->a->scq));
	ASSERT_EQ(0, orderf(0, "hold", "release cqe cq=%u", self->scqn));
	expect_wc(_metadata, self->a->scq, 0, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->a->scq));
}

TEST_F(stepping, a_reset_qp_begins_anew)
{
	uint32_t qpn = self->a->qp->qp_num;

	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->scqn));
	post_some(_metadata, self->a, self->b, 3);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 3));
	ASSERT_EQ(0, orderf(0, "hold", "hold wqe qp=%u", qpn));
	post_some(_metadata, self->a, self->b, 1);
	EXPECT_TRUE(wait_until(pending(0, "wqe qp=%u", qpn) == 1));
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RESET));
	EXPECT_EQ(0, pending(0, "wqe qp=%u", qpn));
	EXPECT_EQ(0, pending(0, "cqe cq=%u", self->scqn));
	ASSERT_EQ(0, order(0, "hold", "release all"));
	recover(_metadata, &self->p);
}

TEST_F(stepping, holds_go_with_their_objects)
{
	uint32_t qpn = self->a->qp->qp_num;
	int waiting;

	ASSERT_EQ(0, orderf(0, "hold", "hold wqe qp=%u", qpn));
	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->scqn));
	ASSERT_EQ(0, orderf(0, "hold", "hold eqe cq=%u", self->rcqn));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	post_some(_metadata, self->b, self->a, 1);
	post_some(_metadata, self->a, self->b, 2);
	EXPECT_EQ(3, gates(0, "", &waiting));
	pair_close(_metadata, &self->p);
	EXPECT_EQ(0, gates(0, "", &waiting));
	pair_open(_metadata, &self->p, &self->p.opts);
	exchange(_metadata, self->a, self->b, 100, 1);
}

TEST_F(stepping, a_process_that_dies_takes_what_is_held_with_it)
{
	int status, waiting;
	pid_t pid;

	pair_close(_metadata, &self->p);
	ASSERT_EQ(0, order(0, "hold", "hold cqe"));
	ASSERT_EQ(0, order(0, "hold", "hold eqe"));
	ASSERT_EQ(0, order(0, "hold", "hold msix"));
	pid = fork();
	if (!pid) {
		pair_open(_metadata, &self->p, &self->p.opts);
		ibv_req_notify_cq(self->a->scq, 0);
		post_some(_metadata, self->a, self->b, 9);
		_exit(pending(0, "cqe") == 18 ? 0 : 1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(3, gates(0, "", &waiting));
	EXPECT_EQ(0, waiting);
	ASSERT_EQ(0, order(0, "hold", "release all"));
	pair_open(_metadata, &self->p, &self->p.opts);
	exchange(_metadata, self->a, self->b, 100, 1);
}

TEST_F(stepping, a_wrong_order_is_refused)
{
	static const struct {
		const char *text;
		int err;
		const char *where;
	} wrong[] = {
		{ "hold", -EINVAL, "1:5:" },
		{ "hold srq", -EINVAL, "1:6:" },
		{ "stop cqe", -EINVAL, "1:1:" },
		{ "hold cqe qp=1", -EINVAL, "1:10:" },
		{ "hold eqe cq=1 eq=1", -EINVAL, "1:15:" },
		{ "hold cqe now", -EINVAL, "1:10:" },
		{ "hold cqe nth=1", -EINVAL, "1:10:" },
		{ "release", -EINVAL, "1:8:" },
		{ "step all", -EINVAL, "1:6:" },
		{ "hold wqe qp=16777215", -ENOENT, "1:10:" },
		{ "hold cqe cq=0x7fffffff", -ENOENT, "1:10:" },
		{ "hold msix eq=63", -ENOENT, "1:11:" },
		{ "step cqe", -EAGAIN, "1:1:" },
	};
	unsigned int i;
	int waiting;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		EXPECT_EQ(wrong[i].err, order(0, "hold", wrong[i].text)) {
			TH_LOG("%s", wrong[i].text);
		}
		EXPECT_EQ(0, strncmp(wrong[i].where, fault_error(0), strlen(wrong[i].where))) {
			TH_LOG("%s: %s", wrong[i].text, fault_error(0));
		}
	}
	EXPECT_EQ(0, gates(0, "", &waiting));
}

/* Whose time comes while it is held waits on. */
TEST_F(stepping, a_delayed_completion_is_held_like_others)
{
	ASSERT_LT(0, plan(0, "cq=%u nth=1 delay cqe", self->scqn));
	post_some(_metadata, self->a, self->b, 3);
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
	EXPECT_TRUE(wait_until(pending(0, "cqe cq=%u", self->scqn) == 3));
	ASSERT_EQ(0, orderf(0, "hold", "hold cqe cq=%u", self->scqn));
	ASSERT_EQ(0, order(0, "faults", "clear"));
	EXPECT_EQ(3, pending(0, "cqe cq=%u", self->scqn));
	ASSERT_EQ(0, order(0, "hold", "release cqe"));
	expect_wc(_metadata, self->a->scq, 0, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
}

TEST_HARNESS_MAIN
