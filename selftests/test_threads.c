// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many threads at once: posting to one QP, polling one CQ, making and destroying
 * objects of the same context beside them. Every work request completes exactly once,
 * and every message arrives exactly once.
 */
#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "../uapi/vhca_abi.h"
#include "rc.h"

#define MESSAGES	4000
#define RECEIVES	64	/* posted at a time; also the slots of the buffer */
#define MOST_THREADS	4

/**
 * struct load - traffic from @a to @b
 * @sent: send completions, by wr_id.
 * @taken: receive completions, by wr_id.
 * @got: messages that arrived, by number.
 * @wrong: what else should not be.
 */
struct load {
	struct end *a;
	struct end *b;
	int posters;
	uint64_t end;
	uint32_t nsent;
	uint32_t ntaken;
	uint32_t wrong;
	uint8_t sent[MESSAGES];
	uint8_t taken[MESSAGES + RECEIVES];
	uint8_t got[MESSAGES];
};

struct thread {
	struct load *load;
	int index;
	pthread_t id;
	uint32_t turns;
};

static void count(uint32_t *n)
{
	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
}

static bool until(struct load *l, const uint32_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED) < MESSAGES && now_ns() < l->end;
}

/* One of @size marks; that there was one already is wrong. */
static void mark(struct load *l, uint8_t *marks, uint64_t i, uint64_t size)
{
	if (i >= size || __atomic_exchange_n(&marks[i], 1, __ATOMIC_RELAXED))
		count(&l->wrong);
}

/* The message is its number; there are as many slots as receives. */
static int post_receive(struct load *l, uint64_t wr_id)
{
	return post_recv(l->b, wr_id, wr_id % RECEIVES * sizeof(uint64_t), sizeof(uint64_t));
}

static int post_message(struct load *l, uint64_t number)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&number, .length = sizeof(number) };

	return post_send_sges(l->a->qp, number, &sge, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
}

static void *poster(void *arg)
{
	struct thread *t = arg;
	struct load *l = t->load;
	uint64_t i;
	int err;

	for (i = t->index; i < MESSAGES && now_ns() < l->end; i += l->posters) {
		while ((err = post_message(l, i)) == ENOMEM && now_ns() < l->end)
			sched_yield();
		if (err)
			count(&l->wrong);
	}
	return NULL;
}

static void *send_poller(void *arg)
{
	struct load *l = ((struct thread *)arg)->load;
	struct ibv_wc wc[4];
	int i, n;

	while (until(l, &l->nsent)) {
		n = ibv_poll_cq(l->a->scq, 4, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].status)
				count(&l->wrong);
			mark(l, l->sent, wc[i].wr_id, MESSAGES);
			count(&l->nsent);
		}
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* What was received, and a new receive for the slot that is free. */
static void take(struct load *l, const struct ibv_wc *wc)
{
	uint64_t number;

	memcpy(&number, l->b->buf + wc->wr_id % RECEIVES * sizeof(number), sizeof(number));
	if (wc->status || wc->byte_len != sizeof(number))
		count(&l->wrong);
	mark(l, l->taken, wc->wr_id, MESSAGES + RECEIVES);
	mark(l, l->got, number, MESSAGES);
	if (wc->wr_id + RECEIVES < MESSAGES + RECEIVES && post_receive(l, wc->wr_id + RECEIVES))
		count(&l->wrong);
	count(&l->ntaken);
}

static void *recv_poller(void *arg)
{
	struct load *l = ((struct thread *)arg)->load;
	struct ibv_wc wc[4];
	int i, n;

	while (until(l, &l->ntaken)) {
		n = ibv_poll_cq(l->b->rcq, 4, wc);
		for (i = 0; i < n; i++)
			take(l, &wc[i]);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* A QP that is its own peer, with a message under way; the CQ is polled by nobody. */
static int use_and_leave(struct end *e, struct ibv_qp *qp, struct ibv_mr *mr)
{
	const struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey };
	int err;

	err = qp_to_init(qp, &opts);
	if (!err)
		err = qp_to_rtr(qp, &opts, e->lid, qp->qp_num);
	if (!err)
		err = qp_to_rts(qp, &opts);
	if (!err)
		err = post_recv_sges(qp, 0, &sge, 1);
	return err ? err : post_send_sges(qp, 1, &sge, 1, IBV_SEND_SIGNALED);
}

static int come_and_go(struct end *e, uint8_t *mem)
{
	const struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = cq ? make_qp(e->pd, cq, cq, &opts, NULL) : NULL;
	struct ibv_mr *mr = ibv_reg_mr(e->pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	int err = qp && mr ? use_and_leave(e, qp, mr) : ENOMEM;

	if (mr && ibv_dereg_mr(mr))
		err = EBUSY;
	if (qp && ibv_destroy_qp(qp))
		err = EBUSY;
	if (cq && ibv_destroy_cq(cq))
		err = EBUSY;
	return err;
}

static void *churner(void *arg)
{
	struct thread *t = arg;
	struct load *l = t->load;
	uint8_t *mem = aligned_alloc(4096, 4096);

	while (until(l, &l->ntaken) || !t->turns) {
		if (!mem || come_and_go(t->index % 2 ? l->a : l->b, mem))
			count(&l->wrong);
		t->turns++;
	}
	free(mem);
	return NULL;
}

static int start(struct thread *t, int n, struct load *l, void *(*fn)(void *arg))
{
	int i, err = 0;

	for (i = 0; !err && i < n; i++) {
		t[i] = (struct thread) { .load = l, .index = i };
		err = pthread_create(&t[i].id, NULL, fn, &t[i]);
	}
	return err;
}

static void join(struct thread *t, int n)
{
	while (n--)
		pthread_join(t[n].id, NULL);
}

static void run(struct __test_metadata *_metadata, struct load *l, int posters, int pollers,
		int churners)
{
	struct thread post[MOST_THREADS], spoll[MOST_THREADS], rpoll[MOST_THREADS];
	struct thread churn[MOST_THREADS];
	struct ibv_wc wc;
	uint64_t i;

	l->posters = posters;
	l->end = now_ns() + 4 * DEADLINE_NS;
	for (i = 0; i < RECEIVES; i++)
		ASSERT_EQ(0, post_receive(l, i));
	ASSERT_EQ(0, start(spoll, pollers, l, send_poller));
	ASSERT_EQ(0, start(rpoll, pollers, l, recv_poller));
	ASSERT_EQ(0, start(churn, churners, l, churner));
	ASSERT_EQ(0, start(post, posters, l, poster));
	join(post, posters);
	join(spoll, pollers);
	join(rpoll, pollers);
	join(churn, churners);

	EXPECT_EQ(0u, l->wrong);
	EXPECT_EQ((uint32_t)MESSAGES, l->nsent);
	EXPECT_EQ((uint32_t)MESSAGES, l->ntaken);
	EXPECT_EQ(NULL, memchr(l->sent, 0, MESSAGES));
	EXPECT_EQ(NULL, memchr(l->got, 0, MESSAGES));
	EXPECT_EQ(0, ibv_poll_cq(l->a->scq, 1, &wc));
	EXPECT_EQ(0, ibv_poll_cq(l->b->rcq, 1, &wc));
	for (i = 0; i < (uint64_t)churners; i++)
		EXPECT_LT(0u, churn[i].turns);
}

TEST_F(rc, many_threads_post_to_one_qp)
{
	struct load l = { .a = self->a, .b = self->b };

	run(_metadata, &l, 4, 1, 0);
}

TEST_F(rc, many_threads_poll_one_cq)
{
	struct load l = { .a = self->a, .b = self->b };

	run(_metadata, &l, 1, 4, 0);
}

TEST_F(rc, objects_come_and_go_beside_the_traffic_of_others)
{
	struct load l = { .a = self->a, .b = self->b };

	run(_metadata, &l, 2, 2, 2);
}

/*
 * A query beside modifications
 */

/**
 * struct looker - a thread that queries a QP on and on
 * @held: answers of the kernel that it has got; with each it waits.
 * @let_go: answers that it may go on with.
 * @wrong: queries that failed.
 */
struct looker {
	struct ibv_qp *qp;
	pthread_t id;
	uint32_t held;
	uint32_t let_go;
	uint32_t wrong;
	bool stop;
};

static __thread struct looker *looking;

static bool stopped(struct looker *l)
{
	return __atomic_load_n(&l->stop, __ATOMIC_ACQUIRE);
}

static void hold(struct looker *l)
{
	uint32_t n = __atomic_add_fetch(&l->held, 1, __ATOMIC_RELEASE);

	while (__atomic_load_n(&l->let_go, __ATOMIC_ACQUIRE) < n && !stopped(l))
		sched_yield();
}

/* The library's, too: so the looker is held where it knows what the kernel knew. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	ret = syscall(SYS_ioctl, fd, request, arg);
	if (looking && request == VHCA_IOC_QUERY_QP)
		hold(looking);
	return ret;
}

static void *looker(void *arg)
{
	looking = arg;
	while (!stopped(looking))
		if (qp_state(looking->qp) == IBV_QPS_UNKNOWN)
			count(&looking->wrong);
	return NULL;
}

static int go(struct ibv_qp *qp, const struct end *e, enum ibv_qp_state to)
{
	const struct pair_opts opts = PAIR_DEFAULTS;

	switch (to) {
	case IBV_QPS_INIT:
		return qp_to_init(qp, &opts);
	case IBV_QPS_RTR:
		return qp_to_rtr(qp, &opts, e->lid, qp->qp_num);
	case IBV_QPS_RTS:
		return qp_to_rts(qp, &opts);
	default:
		return qp_to(qp, to);
	}
}

static bool has_answers(struct looker *l, uint32_t n)
{
	return __atomic_load_n(&l->held, __ATOMIC_ACQUIRE) == n;
}

/* Until the next answer is there: the query that was held is over. */
static bool stays(struct looker *l, enum ibv_qp_state state)
{
	uint64_t end = now_ns() + DEADLINE_NS;
	uint32_t next = l->let_go + 1;
	bool there;

	__atomic_store_n(&l->let_go, next, __ATOMIC_RELEASE);
	do {
		there = has_answers(l, next + 1);
		if (__atomic_load_n(&l->qp->state, __ATOMIC_RELAXED) != state)
			return false;
	} while (!there && now_ns() < end);
	return there;
}

TEST_F(rc, a_query_that_is_overtaken_does_not_set_the_state_back)
{
	static const enum ibv_qp_state way[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_RESET,
	};
	struct looker l = { .qp = self->a->qp };
	unsigned int i, late = 0, refused = 0, back = 0;

	ASSERT_EQ(0, qp_to(l.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, pthread_create(&l.id, NULL, looker, &l));
	for (i = 0; i < 100 * ARRAY_SIZE(way) && !(late || refused || back); i++) {
		enum ibv_qp_state to = way[i % ARRAY_SIZE(way)];

		late = !wait_until(has_answers(&l, i + 1));
		refused = go(l.qp, self->a, to) != 0;
		back = l.qp->state != to || !stays(&l, to);
	}
	__atomic_store_n(&l.stop, true, __ATOMIC_RELEASE);
	pthread_join(l.id, NULL);
	EXPECT_EQ(0u, late);
	EXPECT_EQ(0u, refused);
	EXPECT_EQ(0u, back) {
		TH_LOG("after %u steps", i);
	}
	EXPECT_EQ(0u, l.wrong);
}

TEST_HARNESS_MAIN
