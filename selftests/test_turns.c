// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose turn it is: when the device's thread looks after the CQs of several users, each
 * one's in turn, however many another one has; and when a command follows a doorbell that
 * the thread has not got to, the doorbell's.
 */
#include "cpu.h"
#include "raw.h"

#include "harness.h"

#define MODEST_UID	1001
#define FILES		10	/* of who has many CQs */
#define LANES		20	/* CQs of each file, with a pair of QPs each */
#define PERIOD_US	2000

/* A file with CQs whose moderation timers run. */
struct host {
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	int		channel;
	struct raw_cq	scq;
	struct raw_cq	cq[LANES];
	struct raw_pair	p[LANES];
	int		lanes;
	int		seen;	/* events */
};

static int host_lane(struct host *h, int i)
{
	int err = raw_cq(&h->ctx, &h->cq[i], 16, h->channel);

	if (!err)
		err = raw_pair(&h->ctx, &h->p[i], &h->scq, &h->cq[i]);
	return err ? err : raw_moderate(&h->cq[i], 100, PERIOD_US);
}

static int host_open(struct host *h, int lanes)
{
	int i, err = raw_open(&h->ctx, 0);

	if (err)
		return err;
	h->lanes = lanes;
	h->channel = raw_channel(h->ctx.fd);
	if (h->channel < 0)
		return h->channel;
	err = raw_mr(&h->ctx, &h->mr, 4096);
	if (!err)
		err = raw_cq(&h->ctx, &h->scq, 64, VHCA_INVALID_FD);
	for (i = 0; i < lanes && !err; i++)
		err = host_lane(h, i);
	return err;
}

/* Arm each CQ and give it a message: its timer runs from now on. */
static int host_start(struct host *h)
{
	int i, err = 0;

	for (i = 0; i < h->lanes && !err; i++) {
		err = raw_arm(&h->cq[i], false);
		if (!err)
			err = raw_message(&h->p[i], &h->mr, 0, 8);
	}
	return err;
}

/* Read the events that are there; how many there have been. */
static int host_events(struct host *h)
{
	struct vhca_comp_event ev;

	while (raw_readable(h->channel, 0) && !raw_read_event(h->channel, &ev))
		h->seen++;
	return h->seen;
}

static void host_close(struct host *h)
{
	close(h->channel);
	raw_close(&h->ctx);
}

static int run_before_all(void)
{
	struct sched_param param = { .sched_priority = 50 };

	return sched_setscheduler(0, SCHED_FIFO, &param);
}

FIXTURE(turns) {
	struct host many[FILES];
	struct host modest;
	cpu_set_t cpus;
	pid_t thread;
};

FIXTURE_SETUP(turns)
{
	int i;

	self->thread = engine_thread();
	ASSERT_NE(0, self->thread);
	ASSERT_EQ(0, sched_getaffinity(self->thread, sizeof(self->cpus), &self->cpus));
	for (i = 0; i < FILES; i++)
		ASSERT_EQ(0, host_open(&self->many[i], LANES));
	/* Who asks for the UAR is whom the device shares its time with. */
	ASSERT_EQ(0, setresuid(MODEST_UID, -1, -1));
	ASSERT_EQ(0, host_open(&self->modest, 1));
	ASSERT_EQ(0, setresuid(0, -1, -1));
}

FIXTURE_TEARDOWN(turns)
{
	int i;

	EXPECT_EQ(0, sched_setaffinity(self->thread, sizeof(self->cpus), &self->cpus));
	for (i = 0; i < FILES; i++)
		host_close(&self->many[i]);
	host_close(&self->modest);
}

/*
 * The thread shares a CPU with this program, which comes first: when all timers have run
 * out it has not looked at one of the CQs. Then it is let go, until the event is there.
 */
TEST_F(turns, two_hundred_cqs_of_one_user_do_not_hold_up_the_one_of_another)
{
	int i, seen = 0;
	long long until;

	ASSERT_EQ(0, stay_on(0, 0));
	ASSERT_EQ(0, stay_on(self->thread, 0));
	ASSERT_EQ(0, run_before_all());
	for (i = 0; i < FILES; i++)
		ASSERT_EQ(0, host_start(&self->many[i]));
	ASSERT_EQ(0, host_start(&self->modest));
	for (until = raw_ms() + 20; raw_ms() < until; )
		;
	ASSERT_EQ(1, raw_readable(self->modest.channel, 30000));
	for (i = 0; i < FILES; i++)
		seen += host_events(&self->many[i]);
	EXPECT_GT(FILES * LANES / 2, seen);

	/* The others' turns come, too. */
	for (i = 0; i < FILES; i++)
		while (host_events(&self->many[i]) < LANES)
			ASSERT_EQ(1, raw_readable(self->many[i].channel, 30000));
}

/*
 * The thread shares a CPU with this program, which comes first: it has no chance to see
 * the doorbell before the QP goes.
 */
FIXTURE(rung) {
	struct host h;
	cpu_set_t cpus;
	pid_t thread;
};

FIXTURE_SETUP(rung)
{
	self->thread = engine_thread();
	ASSERT_NE(0, self->thread);
	ASSERT_EQ(0, sched_getaffinity(self->thread, sizeof(self->cpus), &self->cpus));
	ASSERT_EQ(0, raw_engine("threaded"));
	ASSERT_EQ(0, host_open(&self->h, 1));
	ASSERT_EQ(0, stay_on(0, 0));
	ASSERT_EQ(0, stay_on(self->thread, 0));
	ASSERT_EQ(0, run_before_all());
	ASSERT_EQ(0, raw_message(&self->h.p[0], &self->h.mr, 0, 8));
}

FIXTURE_TEARDOWN(rung)
{
	host_close(&self->h);
	EXPECT_EQ(0, raw_engine("inline"));
	EXPECT_EQ(0, sched_setaffinity(self->thread, sizeof(self->cpus), &self->cpus));
}

TEST_F(rung, what_was_posted_before_the_qp_is_destroyed_arrives)
{
	struct raw_wc wc;

	ASSERT_FALSE(raw_poll(&self->h.cq[0], &wc));
	ASSERT_EQ(0, raw_destroy_qp(&self->h.p[0].a));
	ASSERT_TRUE(raw_poll(&self->h.cq[0], &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
}

TEST_F(rung, what_was_posted_before_the_qp_goes_to_error_arrives)
{
	struct raw_wc wc;

	ASSERT_FALSE(raw_poll(&self->h.cq[0], &wc));
	ASSERT_EQ(0, raw_goto(&self->h.p[0].a, VHCA_QPS_ERR));
	ASSERT_TRUE(raw_poll(&self->h.cq[0], &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
}

TEST_HARNESS_MAIN
