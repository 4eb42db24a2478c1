// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CQ gets another ring: by hand, and under threads that poll and arm.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw.h"
#include "pair.h"

FIXTURE(resize) {
	struct raw_bed bed;
	struct raw_cq *cq;
	uint16_t next;
};

FIXTURE_SETUP(resize)
{
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
	self->cq = &self->bed.rcq;
}

FIXTURE_TEARDOWN(resize)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

/* Poll @n CQEs, which are the next: none lost, none twice. */
static int take(struct raw_cq *cq, uint16_t *next, int n)
{
	struct raw_wc wc;
	int err = 0;

	while (!err && n--) {
		err = raw_wait_wc(cq, &wc);
		if (!err && (wc.status || wc.wqe_index != (*next)++))
			err = -EPROTO;
	}
	return err;
}

TEST_F(resize, bad_arguments_are_refused)
{
	struct vhca_query_device q = {};
	uint32_t cqn = self->cq->made.cqn;
	unsigned int i;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	struct vhca_resize_cq bad[] = {
		{ .cqn = cqn, .cqe = 0 },
		{ .cqn = cqn, .cqe = q.max_cqe + 1 },
		{ .cqn = cqn + 1000, .cqe = 16 },
		{ .cqn = cqn, .cqe = 16, .buf_addr = 1 },
	};

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(-EINVAL, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_RESIZE_CQ, &bad[i]));
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
}

TEST_F(resize, the_size_is_rounded_up)
{
	ASSERT_EQ(0, raw_resize_cq(self->cq, 100));
	EXPECT_EQ(128, self->cq->made.cqe);
	EXPECT_EQ(128 * VHCA_CQE_SIZE, self->cq->made.buf_size);
	ASSERT_EQ(0, raw_bed_message(&self->bed, 0));
}

TEST_F(resize, what_is_unread_moves_to_the_same_indices_in_any_lap)
{
	static const uint32_t sizes[] = { 16, 256, 4, 64, 1024, 32, 4, 128, 4096, 8 };
	uint64_t state = seed_of("VHCA_SEED");
	unsigned int i, unread = 0;

	for (i = 0; i < 200; i++) {
		uint32_t size = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
		uint32_t n = rnd_below(&state, size - unread + 1);

		if (n > 60)
			n = 60;
		if (n)
			ASSERT_EQ(0, raw_bed_leave(&self->bed, n, 0));
		unread += n;
		n = rnd_below(&state, unread + 1);
		ASSERT_EQ(0, take(self->cq, &self->next, n));
		unread -= n;
		size = sizes[(i + 1) % (sizeof(sizes) / sizeof(sizes[0]))];
		if (unread > size) {
			ASSERT_EQ(-EINVAL, raw_resize_cq(self->cq, size));
			ASSERT_EQ(0, take(self->cq, &self->next, unread - size));
			unread = size;
		}
		ASSERT_EQ(0, raw_resize_cq(self->cq, size));
	}
	ASSERT_EQ(0, take(self->cq, &self->next, unread));
	EXPECT_EQ(NULL, raw_next_cqe(self->cq));
}

TEST_F(resize, a_ring_that_is_full_after_it_overruns_with_the_next)
{
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 16, 0));
	ASSERT_EQ(0, raw_resize_cq(self->cq, 16));
	ASSERT_EQ(0, raw_message(&self->bed.p, &self->bed.mr, 0, 8));
	EXPECT_TRUE(RAW_WAIT(raw_state(&self->bed.p.b) == VHCA_QPS_ERR));
	ASSERT_EQ(0, take(self->cq, &self->next, 16));
	/* In error: it stays as it is. */
	EXPECT_EQ(-EINVAL, raw_resize_cq(self->cq, 64));
}

TEST_F(resize, room_that_is_made_before_it_is_full_is_there)
{
	ASSERT_EQ(0, raw_resize_cq(self->cq, 4));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 4, 0));
	ASSERT_EQ(0, raw_resize_cq(self->cq, 32));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 28, 0));
	ASSERT_EQ(0, take(self->cq, &self->next, 32));
}

TEST_F(resize, a_ring_too_small_is_refused_and_nothing_changes)
{
	uint64_t offset = self->cq->made.buf_offset;

	ASSERT_EQ(0, raw_bed_leave(&self->bed, 33, 0));
	EXPECT_EQ(-EINVAL, raw_resize_cq(self->cq, 32));
	EXPECT_EQ(offset, self->cq->made.buf_offset);
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 20, 0));
	ASSERT_EQ(0, take(self->cq, &self->next, 53));
}

TEST_F(resize, the_old_ring_is_nobodys_but_lives_while_it_is_mapped)
{
	struct vhca_create_cq old = self->cq->made;
	struct vhca_cqe *ring = raw_map(self->bed.ctx.fd, old.buf_offset, old.buf_size);
	struct vhca_cqe copy;

	ASSERT_NE(NULL, ring);
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 3, 0));
	copy = ring[0];
	ASSERT_EQ(0, raw_resize_cq(self->cq, 512));
	EXPECT_EQ(NULL, raw_map(self->bed.ctx.fd, old.buf_offset, old.buf_size));
	/* Whatever is written there concerns nobody. */
	EXPECT_EQ(0, memcmp(&copy, &ring[0], sizeof(copy)));
	memset(ring, 0xff, old.buf_size);
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 3, 0));
	EXPECT_EQ(0xff, ring[3].opcode);
	ASSERT_EQ(0, take(self->cq, &self->next, 6));
	munmap(ring, old.buf_size);
}

TEST_F(resize, an_arm_stays)
{
	ASSERT_EQ(0, raw_moderate(self->cq, 3, 0));
	ASSERT_EQ(0, raw_arm(self->cq, true));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 2, VHCA_WQE_SOLICITED));
	ASSERT_EQ(0, raw_resize_cq(self->cq, 16));
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	ASSERT_EQ(0, raw_resize_cq(self->cq, 1024));
	ASSERT_EQ(0, raw_bed_leave(&self->bed, 1, VHCA_WQE_SOLICITED));
	EXPECT_EQ(1, raw_bed_events(&self->bed));
	/* An arm that comes after it finds which of the moved are solicited. */
	ASSERT_EQ(0, raw_resize_cq(self->cq, 8));
	ASSERT_EQ(0, raw_arm(self->cq, true));
	EXPECT_EQ(0, raw_cq_event(self->cq));
}

TEST_F(resize, nonsense_in_the_consumer_index_harms_nobody)
{
	uint32_t x = 99;
	int i, err;

	ASSERT_EQ(0, raw_bed_leave(&self->bed, 5, 0));
	for (i = 0; i < 300; i++) {
		x = x * 1103515245 + 12345;
		raw_store32(&raw_cq_dbr(self->cq)->ci, i & 1 ? x : x >> 26);
		err = raw_resize_cq(self->cq, 1 + (x >> 16) % 64);
		ASSERT_TRUE(!err || err == -EINVAL);
		/* Read as it comes: indices the library does not believe in. */
		self->cq->ci = raw_load32(&raw_cq_dbr(self->cq)->ci);
	}
	/* Another CQ goes on. */
	ASSERT_EQ(0, raw_bed_mark(&self->bed));
}

/* By the library */

#define MESSAGES	4000
#define WINDOW		32

struct traffic {
	struct pair p;
	struct ibv_cq *cq;
	uint64_t next;		/* wr_id to come */
	bool wrong;
	bool done;
	pthread_mutex_t lock;
};

FIXTURE(threads) {
	struct traffic t;
};

FIXTURE_VARIANT(threads) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(threads, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(threads, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(threads)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.channel = true;
	pair_open(_metadata, &self->t.p, &opts);
	self->t.cq = self->t.p.end[1].rcq;
	pthread_mutex_init(&self->t.lock, NULL);
}

FIXTURE_TEARDOWN(threads)
{
	pair_close(_metadata, &self->t.p);
}

/* Poll and count under one lock, so that the order of two pollers is known. */
static int drain(struct traffic *t)
{
	struct ibv_wc wc[8];
	int i, n;

	pthread_mutex_lock(&t->lock);
	n = ibv_poll_cq(t->cq, 8, wc);
	for (i = 0; i < n; i++)
		if (wc[i].status || wc[i].wr_id != t->next++)
			t->wrong = true;
	if (n < 0)
		t->wrong = true;
	if (t->next >= MESSAGES)
		t->done = true;
	pthread_mutex_unlock(&t->lock);
	return n;
}

static bool over(struct traffic *t)
{
	return __atomic_load_n(&t->done, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&t->wrong, __ATOMIC_RELAXED);
}

static uint64_t seen(struct traffic *t)
{
	return __atomic_load_n(&t->next, __ATOMIC_RELAXED);
}

static void *poller(void *arg)
{
	struct traffic *t = arg;

	while (!over(t))
		if (!drain(t))
			sched_yield();
	return NULL;
}

/* Arms, polls until empty, waits for the event. */
static void *waiter(void *arg)
{
	struct traffic *t = arg;
	struct ibv_comp_channel *channel = t->p.end[1].channel;
	struct ibv_cq *cq;
	void *context;

	while (!over(t)) {
		if (ibv_req_notify_cq(t->cq, 0))
			t->wrong = true;
		while (drain(t) > 0)
			;
		while (!over(t) && !readable(channel->fd, 10))
			;
		if (over(t))
			break;
		if (ibv_get_cq_event(channel, &cq, &context) || cq != t->cq)
			t->wrong = true;
		else
			ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

static void *sender(void *arg)
{
	struct traffic *t = arg;
	struct end *a = &t->p.end[0], *b = &t->p.end[1];
	uint64_t i;
	struct ibv_wc wc;

	for (i = 0; i < MESSAGES && !over(t); i++) {
		/* No more are out than the smallest of the rings may have to hold. */
		if (!wait_until(over(t) || i - seen(t) < WINDOW))
			t->wrong = true;
		if (post_recv(b, i, 0, 64) || post_send(a, i, 0, 16, IBV_SEND_SIGNALED) ||
		    !poll_wc(a->scq, &wc) || wc.status)
			t->wrong = true;
	}
	return NULL;
}

static void run(struct __test_metadata *_metadata, struct traffic *t,
		void *(*second)(void *))
{
	static const int sizes[] = { 64, 1000, 32, 5000, 33, 256, 40, 2048 };
	pthread_t thread[3];
	int i, n = 0, resized = 0;

	ASSERT_EQ(0, pthread_create(&thread[0], NULL, sender, t));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, poller, t));
	ASSERT_EQ(0, pthread_create(&thread[2], NULL, second, t));
	while (!over(t)) {
		int want = sizes[n++ % ARRAY_SIZE(sizes)];

		ASSERT_EQ(0, ibv_resize_cq(t->cq, want));
		ASSERT_LE(want, t->cq->cqe);
		resized++;
		sched_yield();
	}
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_FALSE(t->wrong);
	EXPECT_EQ(MESSAGES, t->next);
	EXPECT_TRUE(cq_empty(t->cq));
	EXPECT_LT(3, resized);
}

TEST_F(threads, two_pollers_lose_nothing)
{
	run(_metadata, &self->t, poller);
}

TEST_F(threads, one_who_waits_for_events_loses_nothing)
{
	run(_metadata, &self->t, waiter);
}

/* Receives that nobody polls for yet; wr_id from 0. */
static void deliver(struct __test_metadata *_metadata, struct pair *p, int n)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	int i;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, post_recv(b, i, 0, 64));
		ASSERT_EQ(0, post_send(a, i, 0, 16, IBV_SEND_SIGNALED));
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
	}
}

TEST_F(threads, a_cq_too_small_is_refused)
{
	struct end *b = &self->t.p.end[1];
	int i, cqe = b->rcq->cqe;

	deliver(_metadata, &self->t.p, 20);
	EXPECT_EQ(EINVAL, ibv_resize_cq(b->rcq, 0));
	EXPECT_EQ(EINVAL, ibv_resize_cq(b->rcq, -5));
	EXPECT_EQ(EINVAL, ibv_resize_cq(b->rcq, 16));
	EXPECT_EQ(cqe, b->rcq->cqe);
	ASSERT_EQ(0, ibv_resize_cq(b->rcq, 20));
	EXPECT_EQ(32, b->rcq->cqe);
	for (i = 0; i < 20; i++)
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
}

/* Which calls of mmap() fail; the library's are among them. */
static enum { NONE, OF_FILES, ALL } mmap_fails;

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (mmap_fails == ALL || (mmap_fails == OF_FILES && fd >= 0)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

TEST_F(threads, without_memory_for_the_ring_nothing_is_lost)
{
	struct end *a = &self->t.p.end[0], *b = &self->t.p.end[1];
	int i, cqe = b->rcq->cqe;

	deliver(_metadata, &self->t.p, 20);
	mmap_fails = ALL;
	EXPECT_EQ(ENOMEM, ibv_resize_cq(b->rcq, 64));
	mmap_fails = NONE;
	EXPECT_EQ(cqe, b->rcq->cqe);
	for (i = 0; i < 10; i++)
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	/* Nothing of the device has to be mapped behind the point of no return. */
	mmap_fails = OF_FILES;
	EXPECT_EQ(0, ibv_resize_cq(b->rcq, 64));
	mmap_fails = NONE;
	for (i = 10; i < 20; i++)
		expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
	exchange(_metadata, a, b, 100, 1);
}

TEST_HARNESS_MAIN
