// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two users of one function. One scribbles in his queues and floods; the other's
 * messages arrive as they were sent, and he has more than half of his fair share, which
 * is half of the rate that he has beside busy loops of as many threads: what those take is
 * for the scheduler to say, what the flood takes beyond that is the function's.
 *
 * Where he leaves work to the function's thread, his share of that is half, too, and beside
 * the flood the thread is one more that is always busy, with a share of the processors like
 * the others, where beside busy loops it runs as soon as he wants it: half of a half.
 *
 * A third user does nothing but count. The polite one's messages are counted against his
 * ticks, so that it does not matter what the machine has to give in the meantime.
 */
#include <pthread.h>

#include "fuzz_victim.h"

#include "harness.h"

#define POLITE_UID	1001
#define FLOODER_UID	1002
#define RULER_UID	1003
#define ROUNDS		15
#define TRIES		4
#define WINDOW_US	60000
#define LANES		12	/* pairs that flood */
#define ROUGH_LANES	2	/* pairs that are scribbled on */
#define BATCH		(1u << RAW_SQ_SHIFT)
#define SMALL		64
#define LARGE		(1u << 20)
#define LARGE_BATCH	8
#define SCRIBBLES	64	/* until a lane is repaired */

enum order { REST, LOOP, FLOOD, ORDERS };

/**
 * struct flooder - shared with who started it
 * @order: what it is to do.
 * @resting: threads that do nothing and have left nothing to do.
 * @messages: that it sent.
 * @scribbles: pieces of random bytes.
 * @repairs: QPs that it brought back to life.
 * @wrong: line at which it could not go on.
 */
struct flooder {
	uint32_t	order;
	uint32_t	resting;
	uint64_t	messages;
	uint64_t	scribbles;
	uint64_t	repairs;
	uint64_t	wrong;
	pid_t		pid;
};

/* A pair that is kept busy. */
struct lane {
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_pair	p;
	uint32_t	len;
	uint32_t	batch;
	uint32_t	left;	/* of the batch that is under way */
	bool		broken;
};

/* One thread of the flooder, with a file of its own. */
struct gang {
	struct flooder	*f;
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	struct lane	lane[LANES];
	int		lanes;
	uint64_t	seed;
};

#define FLOODER_MUST(f, cond) do {					\
	if (!(cond)) {							\
		__atomic_store_n(&(f)->wrong, __LINE__, __ATOMIC_RELEASE);	\
		_exit(1);						\
	}								\
} while (0)

static uint32_t load(const uint32_t *what)
{
	return __atomic_load_n(what, __ATOMIC_ACQUIRE);
}

static void add(uint64_t *what, uint64_t n)
{
	__atomic_add_fetch(what, n, __ATOMIC_RELAXED);
}

static uint32_t below(struct gang *g, uint32_t n)
{
	g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (g->seed >> 33) % n;
}

static void lane_open(struct gang *g, struct lane *l, uint32_t len)
{
	l->len = len;
	l->batch = len == LARGE ? LARGE_BATCH : BATCH;
	FLOODER_MUST(g->f, !raw_cq(&g->ctx, &l->scq, 4 * BATCH, VHCA_INVALID_FD));
	FLOODER_MUST(g->f, !raw_cq(&g->ctx, &l->rcq, 4 * BATCH, VHCA_INVALID_FD));
	FLOODER_MUST(g->f, !raw_pair(&g->ctx, &l->p, &l->scq, &l->rcq));
}

/* Every second lane is for messages of @len bytes. */
static void gang_open(struct gang *g, int lanes, uint32_t len)
{
	int i;

	FLOODER_MUST(g->f, !raw_open(&g->ctx, 0));
	FLOODER_MUST(g->f, !raw_mr(&g->ctx, &g->mr, 2 * LARGE));
	for (g->lanes = lanes, i = 0; i < lanes; i++)
		lane_open(g, &g->lane[i], i % 2 ? len : SMALL);
}

static void lane_take(struct gang *g, struct lane *l)
{
	struct raw_wc wc;

	while (raw_poll(&l->scq, &wc)) {
		l->broken |= wc.status != VHCA_CQE_SUCCESS;
		l->left -= !!l->left;
		add(&g->f->messages, 1);
	}
	while (raw_poll(&l->rcq, &wc))
		;
}

static void lane_repair(struct gang *g, struct lane *l)
{
	FLOODER_MUST(g->f, !raw_reset_qp(&l->p.a) && !raw_reset_qp(&l->p.b));
	lane_take(g, l);
	FLOODER_MUST(g->f, !raw_connect(&l->p.a, &l->p.b));
	l->left = 0;
	l->broken = false;
	add(&g->f->repairs, 2);
}

/* More than a kick does, by one doorbell. */
static void lane_post(struct gang *g, struct lane *l)
{
	struct vhca_wqe_data sge = raw_sge(&g->mr, 0, l->len);

	for (l->left = 0; l->left < l->batch; l->left++) {
		raw_recv(&l->p.b, &g->mr, LARGE, l->len);
		raw_build_send(&l->p.a, VHCA_WQE_SIGNALED, &sge, 1);
		raw_produce(&l->p.a, 1);
	}
	raw_ring_qp(&l->p.a);
}

static void lane_flood(struct gang *g, struct lane *l)
{
	lane_take(g, l);
	if (l->broken)
		lane_repair(g, l);
	if (!l->left)
		lane_post(g, l);
	else
		raw_kick(&g->ctx, l->p.a.made.slot);
}

/* Random bytes somewhere in what the device reads of a lane. */
static void lane_scribble(struct gang *g, struct lane *l)
{
	struct raw_qp *qp = &l->p.a;
	uint8_t *at[] = {
		qp->buf, (uint8_t *)raw_rq_wqe(&l->p.b, 0), (uint8_t *)raw_qp_dbr(qp),
		(uint8_t *)raw_qp_dbr(&l->p.b), g->ctx.uar_page,
	};
	const uint32_t size[] = {
		VHCA_WQEBB_SIZE << RAW_SQ_SHIFT, 2 * VHCA_WQE_SEG_SIZE << RAW_RQ_SHIFT,
		VHCA_UAR_SLOT_SIZE, VHCA_UAR_SLOT_SIZE, VHCA_UAR_PAGE_SIZE,
	};
	uint32_t i = below(g, 5), from = below(g, size[i]), n = 1 + below(g, 16);

	for (; n && from < size[i]; n--, from++)
		at[i][from] = below(g, 256);
	raw_kick(&g->ctx, qp->made.slot);
	add(&g->f->scribbles, 1);
}

static void gang_flood(struct gang *g)
{
	int i;

	for (i = 0; i < g->lanes; i++)
		lane_flood(g, &g->lane[i]);
}

static void gang_scribble(struct gang *g)
{
	int i, n;

	for (i = 0; i < g->lanes; i++) {
		lane_post(g, &g->lane[i]);
		for (n = 0; n < SCRIBBLES; n++)
			lane_scribble(g, &g->lane[i]);
		lane_repair(g, &g->lane[i]);
	}
}

static void gang_drain(struct gang *g)
{
	struct lane *l;

	for (l = g->lane; l < g->lane + g->lanes; l++)
		if (l->left && !l->broken)
			RAW_WAIT((lane_take(g, l), !l->left || l->broken));
}

static void gang_rest(struct gang *g)
{
	gang_drain(g);
	__atomic_add_fetch(&g->f->resting, 1, __ATOMIC_ACQ_REL);
	while (load(&g->f->order) == REST)
		usleep(1000);
	__atomic_sub_fetch(&g->f->resting, 1, __ATOMIC_ACQ_REL);
}

static void gang_work(struct gang *g, void (*flood)(struct gang *g))
{
	for (;;) {
		uint32_t order = load(&g->f->order);

		if (order == FLOOD)
			flood(g);
		else if (order == REST)
			gang_rest(g);
	}
}

static void *scribbler(void *arg)
{
	struct gang g = { .f = arg, .seed = raw_ms() };

	gang_open(&g, ROUGH_LANES, SMALL);
	gang_work(&g, gang_scribble);
	return NULL;
}

static void flooder_work(struct flooder *f)
{
	struct gang g = { .f = f };
	pthread_t id;

	FLOODER_MUST(f, !become_user(FLOODER_UID));
	FLOODER_MUST(f, !pthread_create(&id, NULL, scribbler, f));
	gang_open(&g, LANES, LARGE);
	gang_work(&g, gang_flood);
}

static bool flooder_rests(const struct flooder *f)
{
	return load(&f->resting) == 2 || __atomic_load_n(&f->wrong, __ATOMIC_ACQUIRE);
}

static struct flooder *flooder_start(void)
{
	struct flooder *f = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);
	pid_t pid;

	if (f == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid)
		flooder_work(f);
	f->pid = pid;
	return pid < 0 || !RAW_WAIT(flooder_rests(f)) ? NULL : f;
}

/* Shared with who started it. */
struct ruler {
	uint64_t	ticks;
	pid_t		pid;
};

static void ruler_work(struct ruler *r)
{
	if (become_user(RULER_UID))
		_exit(1);
	for (;;)
		add(&r->ticks, 1);
}

static struct ruler *ruler_start(void)
{
	struct ruler *r = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	pid_t pid;

	if (r == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid)
		ruler_work(r);
	r->pid = pid;
	return pid < 0 || !RAW_WAIT(__atomic_load_n(&r->ticks, __ATOMIC_RELAXED)) ? NULL : r;
}

struct users {
	struct victim *polite;
	struct flooder *flooder;
	struct ruler *ruler;
};

FIXTURE(tenants) {
	struct users u;
};

FIXTURE_VARIANT(tenants) {
	const char *engine;
	struct victim polite;
	double fair;
};

FIXTURE_VARIANT_ADD(tenants, inline_spins) {
	.engine = "inline",
	.polite = { .uid = POLITE_UID },
	.fair = 0.5,
};

FIXTURE_VARIANT_ADD(tenants, inline_waits) {
	.engine = "inline",
	.polite = { .uid = POLITE_UID, .events = 1 },
	.fair = 0.5,
};

FIXTURE_VARIANT_ADD(tenants, inline_batches) {
	.engine = "inline",
	.polite = { .uid = POLITE_UID, .batches = true },
	.fair = 0.25,
};

FIXTURE_VARIANT_ADD(tenants, threaded_spins) {
	.engine = "threaded",
	.polite = { .uid = POLITE_UID },
	.fair = 0.5,
};

FIXTURE_VARIANT_ADD(tenants, threaded_waits) {
	.engine = "threaded",
	.polite = { .uid = POLITE_UID, .events = 1 },
	.fair = 0.5,
};

FIXTURE_VARIANT_ADD(tenants, threaded_batches) {
	.engine = "threaded",
	.polite = { .uid = POLITE_UID, .batches = true },
	.fair = 0.25,
};

FIXTURE_SETUP(tenants)
{
	ASSERT_EQ(0, raw_engine(variant->engine));
	self->u.polite = victim_start(&variant->polite);
	ASSERT_NE(NULL, self->u.polite);
	self->u.flooder = flooder_start();
	ASSERT_NE(NULL, self->u.flooder);
	self->u.ruler = ruler_start();
	ASSERT_NE(NULL, self->u.ruler);
}

FIXTURE_TEARDOWN(tenants)
{
	kill(self->u.ruler->pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(self->u.ruler->pid));
	kill(self->u.flooder->pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(self->u.flooder->pid)) {
		TH_LOG("the flooder stopped at line %llu",
		       (unsigned long long)self->u.flooder->wrong);
	}
	EXPECT_EQ(0, victim_stop(self->u.polite)) {
		TH_LOG("the polite one: fuzz_victim.h:%llu after %llu messages",
		       (unsigned long long)self->u.polite->wrong,
		       (unsigned long long)self->u.polite->messages);
	}
	EXPECT_EQ(0, raw_engine("inline"));
	printf("# figure: %llu messages moved\n", (unsigned long long)self->u.polite->messages);
	printf("# figure: %llu queue scribbles\n", (unsigned long long)self->u.flooder->scribbles);
	printf("# %llu messages flooded, %llu QPs repaired\n",
	       (unsigned long long)self->u.flooder->messages,
	       (unsigned long long)self->u.flooder->repairs);
}

/* What was counted under an order. */
struct count {
	uint64_t messages;
	uint64_t ticks;
	uint64_t us;
};

static void count(struct count *c, const struct users *u, int sign)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	c->messages += sign * __atomic_load_n(&u->polite->messages, __ATOMIC_ACQUIRE);
	c->ticks += sign * __atomic_load_n(&u->ruler->ticks, __ATOMIC_ACQUIRE);
	c->us += sign * (ts.tv_sec * 1000000ull + ts.tv_nsec / 1000);
}

static bool obeys(const struct flooder *f, uint32_t order)
{
	return load(&f->resting) == (order == REST ? 2 : 0) || f->wrong;
}

static void measure(struct __test_metadata *_metadata, const struct users *u, uint32_t order,
		    struct count *c)
{
	__atomic_store_n(&u->flooder->order, order, __ATOMIC_RELEASE);
	ASSERT_TRUE(RAW_WAIT(obeys(u->flooder, order)));
	count(c, u, -1);
	usleep(WINDOW_US);
	count(c, u, 1);
}

static double per_tick(const struct count *c)
{
	return (double)c->messages / c->ticks;
}

static double rate(const struct count *c)
{
	return c->messages * 1e6 / c->us;
}

/* Of what he has a tick beside busy loops, what he has beside the flood. */
static double share_of(struct __test_metadata *_metadata, const struct users *u)
{
	struct count c[ORDERS] = {};
	uint32_t order;
	double share;
	int i;

	for (i = 0; i < ROUNDS; i++)
		for (order = REST; order < ORDERS; order++)
			measure(_metadata, u, order, &c[order]);
	share = per_tick(&c[FLOOD]) / per_tick(&c[LOOP]);
	TH_LOG("of his messages a tick beside busy loops he has %.2f beside the flood", share);
	TH_LOG("messages a second: alone %.0f, beside busy loops %.0f, beside the flood %.0f",
	       rate(&c[REST]), rate(&c[LOOP]), rate(&c[FLOOD]));
	return share;
}

/* A host that has other work may take it from him: not several times. */
TEST_F_TIMEOUT(tenants, a_flood_leaves_the_other_more_than_half_of_his_share, 600)
{
	double share = 0;
	int try;

	for (try = 0; try < TRIES && share <= variant->fair / 2; try++)
		share = share_of(_metadata, &self->u);
	EXPECT_LT(variant->fair / 2, share);
	EXPECT_EQ(0, self->u.polite->wrong);
	EXPECT_EQ(0, self->u.flooder->wrong);
}

TEST_HARNESS_MAIN
