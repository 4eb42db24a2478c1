// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_srq_verbs.c: shared receive queues by the verbs API: who gets a receive, when
 * one may be posted again, and what the SRQ says of itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>

#include "pair.h"

#define QPS		6
#define SLOT		64
#define SRQ_WR		16

/**
 * struct srq - sender @a, receiver @b with an SRQ, QPS connections between them
 * @cq: receive CQs of the receiver: its QPs use them by turns
 */
FIXTURE(srq)
{
	struct pair p;
	struct end *a;
	struct end *b;
	struct ibv_cq *cq[2];
	struct ibv_qp *from[QPS];
	struct ibv_qp *to[QPS];
	uint32_t max_wr;
};

FIXTURE_VARIANT(srq)
{
	const char *engine;
	int peer;
	int messages;
};

FIXTURE_VARIANT_ADD(srq, inline)
{
	.engine = "inline",
	.messages = 5000,
};

FIXTURE_VARIANT_ADD(srq, threaded)
{
	.engine = "threaded",
	.messages = 1000,
};

FIXTURE_VARIANT_ADD(srq, other_function)
{
	.engine = "inline",
	.peer = 1,
	.messages = 1000,
};

static struct ibv_qp *srq_qp(struct end *e, struct ibv_cq *rcq, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = rcq,
		.srq = e->srq,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (cap)
		*cap = init.cap;
	return qp;
}

FIXTURE_SETUP(srq)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_srq_attr attr;
	int i;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.function[1] = variant->peer;
	opts.srq = true;
	opts.cap.max_recv_wr = SRQ_WR;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->cq[0] = self->b->rcq;
	self->cq[1] = ibv_create_cq(self->b->ctx, opts.cqe, NULL, NULL, 0);
	ASSERT_NE(NULL, self->cq[1]);
	self->from[0] = self->a->qp;
	self->to[0] = self->b->qp;
	for (i = 1; i < QPS; i++) {
		self->from[i] = srq_qp(self->a, self->a->rcq, NULL);
		ASSERT_NE(NULL, self->from[i]);
		self->to[i] = srq_qp(self->b, self->cq[i % 2], NULL);
		ASSERT_NE(NULL, self->to[i]);
		qp_connect(_metadata, self->from[i], &opts, self->b->lid, self->to[i]->qp_num);
		qp_connect(_metadata, self->to[i], &opts, self->a->lid, self->from[i]->qp_num);
	}
	ASSERT_EQ(0, ibv_query_srq(self->b->srq, &attr));
	self->max_wr = attr.max_wr;
}

FIXTURE_TEARDOWN(srq)
{
	int i;

	for (i = 1; i < QPS; i++) {
		if (self->from[i])
			EXPECT_EQ(0, ibv_destroy_qp(self->from[i]));
		if (self->to[i])
			EXPECT_EQ(0, ibv_destroy_qp(self->to[i]));
	}
	self->a->qp = self->from[0];
	self->b->qp = self->to[0];
	if (self->b->qp)
		EXPECT_EQ(0, ibv_destroy_qp(self->b->qp));
	self->b->qp = NULL;
	EXPECT_EQ(0, ibv_destroy_cq(self->cq[1]));
	pair_close(_metadata, &self->p);
}

/* A receive of @len bytes whose wr_id is the offset where it goes. */
static int give(struct end *b, uint32_t off, uint32_t len)
{
	return post_recv(b, off, off, len);
}

/* Fill it: receives into consecutive slots. */
static void give_all(struct __test_metadata *_metadata, struct end *b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, give(b, i * SLOT, SLOT));
}

/* @len bytes from a slot of the sender's memory. */
static int send_from(struct end *a, struct ibv_qp *qp, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)a->buf + off, len, a->mr->lkey };

	return post_send_sges(qp, off, &sge, 1, IBV_SEND_SIGNALED);
}

/* And its completion at the sender. */
static void send_and_wait(struct __test_metadata *_metadata, struct end *a, struct ibv_qp *qp,
			  uint32_t off, uint32_t len)
{
	ASSERT_EQ(0, send_from(a, qp, off, len));
	expect_wc(_metadata, a->scq, off, IBV_WC_SUCCESS);
}

static void expect_srq_event(struct __test_metadata *_metadata, struct end *b,
			     enum ibv_event_type type)
{
	struct ibv_async_event event;

	ASSERT_TRUE(async_event(b->ctx, &event));
	ASSERT_EQ(type, event.event_type) {
		TH_LOG("%s", ibv_event_type_str(event.event_type));
	}
	ASSERT_EQ(b->srq, event.element.srq);
}

static uint32_t limit_of(struct __test_metadata *_metadata, struct ibv_srq *srq)
{
	struct ibv_srq_attr attr = {};

	EXPECT_EQ(0, ibv_query_srq(srq, &attr));
	return attr.srq_limit;
}

static int set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

/*
 * Every message is stamped with its connection and number. CQs are polled at random,
 * so that WQEs are given back in another order than they were taken in.
 */
struct stamp {
	uint32_t qp;
	uint32_t seq;
};

static int connection_of(struct ibv_qp **to, uint32_t qp_num)
{
	int i;

	for (i = 0; i < QPS; i++)
		if (to[i]->qp_num == qp_num)
			return i;
	return -1;
}

/* What @cq gave must be a connection's next. Post its receive again. */
static void take(struct __test_metadata *_metadata, struct end *b, struct ibv_qp **to,
		 struct ibv_cq *cq, const struct ibv_wc *wc, uint32_t *next)
{
	struct stamp stamp;
	int i = connection_of(to, wc->qp_num);

	ASSERT_EQ(IBV_WC_SUCCESS, wc->status);
	ASSERT_LE(0, i);
	ASSERT_EQ(cq, to[i]->recv_cq);
	ASSERT_LT(wc->wr_id, b->len);
	ASSERT_EQ(sizeof(stamp), wc->byte_len);
	memcpy(&stamp, b->buf + wc->wr_id, sizeof(stamp));
	ASSERT_EQ((uint32_t)i, stamp.qp);
	ASSERT_EQ(next[i], stamp.seq);
	next[i]++;
	ASSERT_EQ(0, give(b, (uint32_t)wc->wr_id, SLOT));
}

TEST_F(srq, many_qps_share_it_for_many_laps)
{
	uint64_t seed = seed_of("VHCA_TEST_SEED");
	uint32_t sent[QPS] = {}, next[QPS] = {};
	int in_flight = 0, left = variant->messages;
	struct ibv_wc wc;
	uint64_t end = now_ns() + 3 * DEADLINE_NS;

	TH_LOG("VHCA_TEST_SEED=%llu", (unsigned long long)seed);
	give_all(_metadata, self->b, self->max_wr);
	while (left || in_flight) {
		uint32_t i = rnd_below(&seed, QPS);
		struct ibv_cq *cq = self->cq[rnd_below(&seed, 2)];
		struct stamp *stamp = (void *)(self->a->buf + i * SLOT);

		ASSERT_LT(now_ns(), end);
		if (left && in_flight < (int)self->max_wr && rnd_below(&seed, 2)) {
			*stamp = (struct stamp) { i, sent[i]++ };
			send_and_wait(_metadata, self->a, self->from[i], i * SLOT,
				      sizeof(*stamp));
			in_flight++;
			left--;
		} else if (ibv_poll_cq(cq, 1, &wc) == 1) {
			take(_metadata, self->b, self->to, cq, &wc, next);
			in_flight--;
		}
	}
	EXPECT_EQ(0, memcmp(sent, next, sizeof(sent)));
}

struct worker {
	struct end *b;
	struct ibv_cq *cq;
	int left;
	int wrong;
	uint32_t *taken;
};

/* Poll a CQ, post again what it took, until the count is reached. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t end = now_ns() + 3 * DEADLINE_NS;
	struct ibv_wc wc;

	while (__atomic_load_n(w->taken, __ATOMIC_RELAXED) < (uint32_t)w->left &&
	       now_ns() < end) {
		if (ibv_poll_cq(w->cq, 1, &wc) != 1) {
			sched_yield();
			continue;
		}
		if (wc.status || wc.wr_id % SLOT || w->b->buf[wc.wr_id] != 0x5a)
			w->wrong++;
		w->b->buf[wc.wr_id] = 0;
		if (give(w->b, (uint32_t)wc.wr_id, SLOT))
			w->wrong++;
		__atomic_fetch_add(w->taken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(srq, threads_post_and_poll_at_once)
{
	int i, messages = variant->messages / 2;
	struct worker w[2];
	pthread_t thread[2];
	uint32_t taken = 0;

	give_all(_metadata, self->b, self->max_wr);
	memset(self->a->buf, 0x5a, SLOT);
	for (i = 0; i < 2; i++) {
		w[i] = (struct worker) { self->b, self->cq[i], messages, 0, &taken };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, work, &w[i]));
	}
	for (i = 0; i < messages; i++)
		send_and_wait(_metadata, self->a, self->from[i % QPS], 0, 1);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
		EXPECT_EQ(0, w[i].wrong);
	}
	EXPECT_EQ((uint32_t)messages, taken);
}

TEST_F(srq, a_receive_is_free_when_its_completion_was_polled)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

	give_all(_metadata, self->b, self->max_wr);
	EXPECT_EQ(ENOMEM, ibv_post_srq_recv(self->b->srq, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	send_and_wait(_metadata, self->a, self->from[0], 0, 8);
	EXPECT_EQ(ENOMEM, give(self->b, 0, SLOT));
	expect_wc(_metadata, self->cq[0], 0, IBV_WC_SUCCESS);
	EXPECT_EQ(0, give(self->b, 0, SLOT));
	EXPECT_EQ(ENOMEM, give(self->b, 0, SLOT));
}

TEST_F(srq, a_list_is_posted_up_to_the_bad_one)
{
	struct ibv_sge sge[MAX_SLICES] = {};
	struct ibv_recv_wr wr[3] = {
		{ .wr_id = 1, .next = &wr[1] },
		{ .wr_id = 2, .next = &wr[2], .sg_list = sge, .num_sge = MAX_SLICES },
		{ .wr_id = 3 },
	};
	struct ibv_recv_wr *bad = NULL;

	EXPECT_EQ(EINVAL, ibv_post_srq_recv(self->b->srq, wr, &bad));
	EXPECT_EQ(&wr[1], bad);
	wr[1].num_sge = -1;
	EXPECT_EQ(EINVAL, ibv_post_srq_recv(self->b->srq, &wr[1], &bad));
	wr[1].num_sge = 0;
	EXPECT_EQ(0, ibv_post_srq_recv(self->b->srq, &wr[1], &bad));
	send_and_wait(_metadata, self->a, self->from[1], 0, 0);
	send_and_wait(_metadata, self->a, self->from[1], 0, 0);
	send_and_wait(_metadata, self->a, self->from[1], 0, 0);
	expect_wc(_metadata, self->cq[1], 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->cq[1], 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->cq[1], 3, IBV_WC_SUCCESS);
}

TEST_F(srq, what_comes_is_scattered_to_all_sges)
{
	const struct slice s[] = { { 100, 10 }, { 300, 0 }, { 500, 7 }, { 700, 100 } };
	struct ibv_wc wc;

	fill(self->a->buf, 117, 3);
	ASSERT_EQ(0, post_recv_slices(self->b, 9, s, ARRAY_SIZE(s)));
	send_and_wait(_metadata, self->a, self->from[2], 0, 117);
	wc = expect_wc(_metadata, self->cq[0], 9, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_EQ(117, wc.byte_len);
	EXPECT_EQ(self->to[2]->qp_num, wc.qp_num);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + 100, 10));
	EXPECT_EQ(0, memcmp(self->a->buf + 10, self->b->buf + 500, 7));
	EXPECT_EQ(0, memcmp(self->a->buf + 17, self->b->buf + 700, 100));
}

TEST_F(srq, a_write_with_immediate_takes_one)
{
	struct ibv_sge sge = { (uintptr_t)self->a->buf, 100, self->a->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0x12345678),
		.wr.rdma = { (uintptr_t)self->b->buf + 4096, self->b->mr->rkey },
	}, *bad = NULL;
	struct ibv_wc wc;

	fill(self->a->buf, 100, 4);
	ASSERT_EQ(0, give(self->b, SLOT, SLOT));
	ASSERT_EQ(0, ibv_post_send(self->from[3], &wr, &bad));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->cq[1], SLOT, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	EXPECT_EQ(IBV_WC_WITH_IMM, wc.wc_flags);
	EXPECT_EQ(htobe32(0x12345678), wc.imm_data);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + 4096, 100));
}

TEST_F(srq, a_sender_waits_for_a_receive)
{
	ASSERT_EQ(0, send_from(self->a, self->from[0], 0, 8));
	EXPECT_TRUE(cq_empty(self->a->scq));
	ASSERT_EQ(0, give(self->b, 0, SLOT));
	expect_wc(_metadata, self->a->scq, 0, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->cq[0], 0, IBV_WC_SUCCESS);
}

TEST_F(srq, the_limit_is_told_once)
{
	struct ibv_srq *srq = self->b->srq;
	uint32_t i;

	give_all(_metadata, self->b, 8);
	ASSERT_EQ(0, set_limit(srq, 5));
	EXPECT_EQ(5, limit_of(_metadata, srq));
	for (i = 0; i < 3; i++)
		send_and_wait(_metadata, self->a, self->from[i], 0, 8);
	EXPECT_FALSE(readable(self->b->ctx->async_fd, 0));
	EXPECT_EQ(5, limit_of(_metadata, srq));
	send_and_wait(_metadata, self->a, self->from[3], 0, 8);
	expect_srq_event(_metadata, self->b, IBV_EVENT_SRQ_LIMIT_REACHED);
	EXPECT_EQ(0, limit_of(_metadata, srq));
	send_and_wait(_metadata, self->a, self->from[4], 0, 8);
	EXPECT_FALSE(readable(self->b->ctx->async_fd, 0));
	/* Set again, it counts again. */
	ASSERT_EQ(0, set_limit(srq, 3));
	send_and_wait(_metadata, self->a, self->from[4], 0, 8);
	expect_srq_event(_metadata, self->b, IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_F(srq, a_limit_that_is_passed_already_is_told_at_once)
{
	give_all(_metadata, self->b, 2);
	ASSERT_EQ(0, set_limit(self->b->srq, 3));
	expect_srq_event(_metadata, self->b, IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_F(srq, a_qp_in_error_has_its_last_wqe_event_and_others_go_on)
{
	struct ibv_async_event event;

	give_all(_metadata, self->b, 4);
	send_and_wait(_metadata, self->a, self->from[2], 0, 8);
	ASSERT_EQ(0, qp_to(self->to[2], IBV_QPS_ERR));
	ASSERT_TRUE(async_event(self->b->ctx, &event));
	EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
	EXPECT_EQ(self->to[2], event.element.qp);
	expect_wc(_metadata, self->cq[0], 0, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->cq[0]));
	/* Receives of the SRQ are not the QP's to flush. */
	send_and_wait(_metadata, self->a, self->from[4], 0, 8);
	expect_wc(_metadata, self->cq[0], SLOT, IBV_WC_SUCCESS);
}

TEST_F(srq, receives_of_a_qp_that_goes_are_free_again)
{
	uint32_t i;

	give_all(_metadata, self->b, self->max_wr);
	for (i = 0; i < 4; i++)
		send_and_wait(_metadata, self->a, self->from[1], 0, 8);
	for (i = 0; i < 3; i++)
		send_and_wait(_metadata, self->a, self->from[3], 0, 8);
	for (i = 0; i < 2; i++)
		send_and_wait(_metadata, self->a, self->from[5], 0, 8);
	EXPECT_EQ(ENOMEM, give(self->b, 0, SLOT));
	ASSERT_EQ(0, ibv_destroy_qp(self->to[3]));
	self->to[3] = NULL;
	ASSERT_EQ(0, qp_to(self->to[1], IBV_QPS_RESET));
	for (i = 0; i < 7; i++)
		EXPECT_EQ(0, give(self->b, i * SLOT, SLOT));
	EXPECT_EQ(ENOMEM, give(self->b, 0, SLOT));
	/* What another QP has is there, and what was posted is of use. */
	expect_wc(_metadata, self->cq[1], 7 * SLOT, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->cq[1], 8 * SLOT, IBV_WC_SUCCESS);
	for (i = 0; i < self->max_wr - 2; i++)
		send_and_wait(_metadata, self->a, self->from[0], 0, 8);
	for (i = 9; i < self->max_wr; i++)
		expect_wc(_metadata, self->cq[0], i * SLOT, IBV_WC_SUCCESS);
	for (i = 0; i < 7; i++)
		expect_wc(_metadata, self->cq[0], i * SLOT, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(self->cq[0]));
}

TEST_F(srq, a_qp_that_has_one_has_no_receive_queue)
{
	struct ibv_qp_init_attr init = {};
	struct ibv_recv_wr wr = {}, *bad = NULL;
	struct ibv_qp_attr attr;

	EXPECT_EQ(EINVAL, ibv_post_recv(self->to[1], &wr, &bad));
	EXPECT_EQ(&wr, bad);
	EXPECT_EQ(self->b->srq, self->to[1]->srq);
	ASSERT_EQ(0, ibv_query_qp(self->to[1], &attr, IBV_QP_CAP, &init));
	EXPECT_EQ(self->b->srq, init.srq);
	EXPECT_EQ(0, init.cap.max_recv_wr);
	EXPECT_EQ(0, init.cap.max_recv_sge);
}

TEST_F(srq, it_stays_while_a_qp_uses_it)
{
	EXPECT_EQ(EBUSY, ibv_destroy_srq(self->b->srq));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->b->pd));
	ASSERT_EQ(0, give(self->b, 0, SLOT));
	send_and_wait(_metadata, self->a, self->from[0], 0, 8);
	expect_wc(_metadata, self->cq[0], 0, IBV_WC_SUCCESS);
}

struct end_of_srq {
	struct ibv_srq *srq;
	pid_t tid;
	int err;
	bool done;
};

static void *destroy(void *arg)
{
	struct end_of_srq *e = arg;

	__atomic_store_n(&e->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	e->err = ibv_destroy_srq(e->srq);
	__atomic_store_n(&e->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(srq, destroying_it_waits_until_its_events_are_acknowledged)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct end_of_srq e = { .srq = ibv_create_srq(self->b->pd, &init) };
	struct ibv_async_event event;
	pthread_t thread;

	ASSERT_NE(NULL, e.srq);
	ASSERT_EQ(0, set_limit(e.srq, 1));
	ASSERT_EQ(0, ibv_get_async_event(self->b->ctx, &event));
	ASSERT_EQ(e.srq, event.element.srq);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy, &e));
	ASSERT_TRUE(wait_until(__atomic_load_n(&e.tid, __ATOMIC_ACQUIRE) &&
			       thread_state(e.tid) == 'S'));
	EXPECT_FALSE(__atomic_load_n(&e.done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&event);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, e.err);
}

/*
 * Without traffic
 */
FIXTURE(ctx)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(ctx)
{
	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
	ASSERT_EQ(0, ibv_query_device(self->ctx, &self->attr));
}

FIXTURE_TEARDOWN(ctx)
{
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

static struct ibv_srq *try_srq(struct ibv_pd *pd, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = sge } };

	errno = 0;
	return ibv_create_srq(pd, &init);
}

TEST_F(ctx, the_device_says_how_large_they_may_be)
{
	const struct ibv_device_attr *attr = &self->attr;
	struct ibv_srq *srq;

	EXPECT_LT(0, attr->max_srq);
	EXPECT_LE(1024, attr->max_srq_wr);
	EXPECT_LE(4, attr->max_srq_sge);
	EXPECT_EQ(0, attr->device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	srq = try_srq(self->pd, attr->max_srq_wr, attr->max_srq_sge);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(NULL, try_srq(self->pd, attr->max_srq_wr + 1, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, try_srq(self->pd, 1, attr->max_srq_sge + 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, try_srq(self->pd, 0, 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ctx, it_has_what_was_asked_for_or_more)
{
	uint64_t seed = 7;
	int i;

	for (i = 0; i < 30; i++) {
		struct ibv_srq_init_attr init = {
			.srq_context = self,
			.attr = {
				.max_wr = 1 + rnd_below(&seed, 300),
				.max_sge = rnd_below(&seed, self->attr.max_srq_sge + 1),
				.srq_limit = 77,	/* not looked at */
			},
		};
		struct ibv_srq_attr asked = init.attr, attr;
		struct ibv_srq *srq = ibv_create_srq(self->pd, &init);

		ASSERT_NE(NULL, srq);
		EXPECT_LE(asked.max_wr, init.attr.max_wr);
		EXPECT_LE(asked.max_sge, init.attr.max_sge);
		EXPECT_EQ(self, srq->srq_context);
		EXPECT_EQ(self->pd, srq->pd);
		ASSERT_EQ(0, ibv_query_srq(srq, &attr));
		EXPECT_EQ(init.attr.max_wr, attr.max_wr);
		EXPECT_EQ(init.attr.max_sge, attr.max_sge);
		EXPECT_EQ(0, attr.srq_limit);
		EXPECT_EQ(0, ibv_destroy_srq(srq));
	}
}

TEST_F(ctx, only_the_limit_can_be_modified)
{
	struct ibv_srq_attr attr = { .max_wr = 32, .srq_limit = 1 };
	struct ibv_srq *srq = try_srq(self->pd, 16, 1);

	ASSERT_NE(NULL, srq);
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &attr, 1 << 5));
	attr.srq_limit = 17;
	EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	EXPECT_EQ(0, limit_of(_metadata, srq));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

TEST_F(ctx, types_that_are_not_there_give_eopnotsupp)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = self->pd,
	};

	errno = 0;
	EXPECT_EQ(NULL, ibv_create_srq_ex(self->ctx, &init));
	EXPECT_EQ(EOPNOTSUPP, errno);
	init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	init.srq_type = IBV_SRQT_BASIC;
	EXPECT_EQ(NULL, ibv_create_srq_ex(self->ctx, &init));
	EXPECT_EQ(EINVAL, errno);
}

TEST_HARNESS_MAIN
