// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_traffic.c: random traffic on several links at once, checked against a model:
 * data, order, and that every request completes exactly once, with faults in between.
 * A round makes some links, lets them work, drains them, and compares their memory.
 *
 * --seed N: of an earlier run, as it was printed. --seconds N, --messages N: how long.
 */
#define _GNU_SOURCE
#include "traffic_link.h"

#define MAX_LINKS	4	/* of two QPs each */
#define ROUND		3000	/* requests */
#define UNSIGNALED	8	/* in a row */

static struct {
	uint64_t seed;
	uint64_t seconds;
	uint64_t messages;
} args = { .seconds = 4, .messages = ~0ull };

/**
 * struct round - links that work at the same time
 * @unsignaled: requests since the last signaled one, by link and direction.
 * @requests: posted; @returns: of links from errors.
 * @completions: seen at @since, which is when the last one came.
 */
struct round {
	uint64_t	seed;
	int		nlinks;
	struct link	link[MAX_LINKS];
	int		unsignaled[MAX_LINKS][2];
	uint64_t	requests;
	uint64_t	returns;
	uint64_t	completions;
	uint64_t	since;
};

static struct round round_;

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/* How many of them a transport has: the lists are each other's beginnings. */
static int opcode_count(const struct link *l)
{
	if (link_is(l, IBV_QPT_UD))
		return 2;
	return link_is(l, IBV_QPT_UC) ? 4 : ARRAY_SIZE(opcodes);
}

static const enum ibv_qp_type types[] = {
	IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
};

static bool one_in(uint64_t *seed, uint32_t n)
{
	return rnd_below(seed, n) == 0;
}

static void open_links(struct __test_metadata *_metadata, struct round *r)
{
	int i;

	r->nlinks = 1 + rnd_below(&r->seed, MAX_LINKS);
	for (i = 0; i < r->nlinks; i++) {
		struct pair_opts opts = PAIR_DEFAULTS;

		opts.type = types[rnd_below(&r->seed, ARRAY_SIZE(types))];
		opts.function[0] = rnd_below(&r->seed, 2);
		opts.function[1] = rnd_below(&r->seed, 2);
		opts.srq = one_in(&r->seed, 3);
		opts.channel = rnd_below(&r->seed, 2);
		opts.mtu = IBV_MTU_256 + rnd_below(&r->seed, 5);
		opts.rd_atomic = 1 + rnd_below(&r->seed, 4);
		opts.dest_rd_atomic = opts.rd_atomic;
		opts.rnr_retry = one_in(&r->seed, 3) ? 1 : 7;
		opts.timeout = 12;
		link_open(_metadata, &r->link[i], &opts);
	}
}

/*
 * Requests
 */
static uint32_t random_len(uint64_t *seed, uint32_t most)
{
	static const uint32_t most_of[] = { 1, 64, 1024, 5000, SLOT, 128 };

	return rnd_below(seed, most_of[rnd_below(seed, ARRAY_SIZE(most_of))]) % most;
}

/* Receives that no message is expected for yet. */
static int spare_receives(const struct link *l, int d)
{
	return l->posted[!d] - l->taken[!d] - model_expected((struct model *)&l->m[d]);
}

static struct request random_request(struct round *r, int i, int d)
{
	struct link *l = &r->link[i];
	uint64_t *seed = &r->seed;
	struct request q = {
		.id = l->m[d].head,
		.seed = rnd(seed),
		.opcode = opcodes[rnd_below(seed, opcode_count(l))],
		.imm = rnd(seed),
		.compare_add = rnd_below(seed, 3),
		.swap = rnd_below(seed, 3),
	};
	bool most = r->unsignaled[i][d] >= UNSIGNALED;

	q.len = random_len(seed, link_is(l, IBV_QPT_UD) ? 4000 : RECEIVE_LEN - GRH_LEN);
	q.off = rnd_below(seed, SLOT - q.len);
	if (is_atomic(q.opcode)) {
		q.len = 8;
		q.off &= 0xf8;	/* a few words, so that swaps compare equal now and then */
	}
	q.signaled = most || rnd_below(seed, 2);
	return q;
}

/* One request in some hundred cannot be done. */
static void spoil(struct round *r, struct link *l, int d, struct request *q)
{
	bool remote = !takes_receive(q->opcode) || q->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	switch (rnd_below(&r->seed, 4)) {
	case 0:
		q->fault = IBV_WC_LOC_PROT_ERR;
		break;
	case 1:
		if (link_reliable(l) && remote && q->len)
			q->fault = IBV_WC_REM_ACCESS_ERR;
		break;
	case 2:
		if (link_reliable(l) && q->opcode == IBV_WR_SEND && spare_receives(l, d) > 0) {
			q->fault = IBV_WC_REM_INV_REQ_ERR;
			q->len = RECEIVE_LEN + 1 + rnd_below(&r->seed, SLOT - RECEIVE_LEN);
		}
		break;
	case 3:
		if (l->strict && takes_receive(q->opcode) && link_reliable(l) &&
		    !spare_receives(l, d)) {
			q->fault = IBV_WC_RNR_RETRY_EXC_ERR;
			l->withheld = true;
		}
		break;
	}
}

static unsigned int random_flags(struct round *r, struct link *l, const struct request *q)
{
	unsigned int flags = 0;

	if (one_in(&r->seed, 4))
		flags |= IBV_SEND_SOLICITED;
	if (link_reliable(l) && one_in(&r->seed, 4))
		flags |= IBV_SEND_FENCE;
	if (q->len <= l->p.opts.cap.max_inline_data && !q->fault &&
	    q->opcode != IBV_WR_RDMA_READ && !is_atomic(q->opcode) && rnd_below(&r->seed, 2))
		flags |= IBV_SEND_INLINE;
	return flags;
}

/* A message without a receive waits where the requester does, if it may. */
static bool may_wait(struct round *r, const struct link *l)
{
	return link_reliable(l) && !l->strict && one_in(&r->seed, 8);
}

static void post_request(struct __test_metadata *_metadata, struct round *r, int i, int d)
{
	struct link *l = &r->link[i];
	struct model *m = &l->m[d];
	struct request q;

	/* One slot is for link_post_last(). */
	if (!link_sends(l, d) || m->head - m->tail >= SLOTS - 1 ||
	    m->sent - m->received >= INBOX - 1)
		return;
	q = random_request(r, i, d);
	if (one_in(&r->seed, 300))
		spoil(r, l, d, &q);
	if (takes_receive(q.opcode) && q.fault != IBV_WC_RNR_RETRY_EXC_ERR &&
	    spare_receives(l, d) <= 0 && !may_wait(r, l))
		return;
	link_post_send(_metadata, l, d, &q, random_flags(r, l, &q), &r->seed);
	r->unsignaled[i][d] = q.signaled ? 0 : r->unsignaled[i][d] + 1;
	r->requests++;
}

static void post_receives(struct __test_metadata *_metadata, struct round *r, struct link *l,
			  int d, int n)
{
	while (n-- && link_sends(l, !d) && !l->withheld && l->posted[d] - l->taken[d] < RECEIVES)
		link_post_recv(_metadata, l, d, &r->seed);
}

/*
 * A round
 */
static bool has_failed(const struct link *l)
{
	return l->m[0].failed || l->m[1].failed;
}

/* What is rare. */
static void disturb(struct __test_metadata *_metadata, struct round *r, int i)
{
	struct link *l = &r->link[i];
	int d = rnd_below(&r->seed, 2);

	switch (rnd_below(&r->seed, 3)) {
	case 0:		/* at any moment */
		link_return(_metadata, l, &r->seed);
		break;
	case 1:
		if (l->m[!d].head == l->m[!d].tail)
			link_register(_metadata, l, d);
		break;
	default:
		engine_set(rnd_below(&r->seed, 2) ? "inline" : "threaded");
		break;
	}
}

static void step(struct __test_metadata *_metadata, struct round *r)
{
	int i = rnd_below(&r->seed, r->nlinks), d = rnd_below(&r->seed, 2);
	struct link *l = &r->link[i];

	if (one_in(&r->seed, 3))
		post_receives(_metadata, r, l, d, 1 + rnd_below(&r->seed, 8));
	post_request(_metadata, r, i, d);
	if (one_in(&r->seed, 400))
		disturb(_metadata, r, i);
	if (rnd_below(&r->seed, 2))
		ASSERT_TRUE(link_reap(l)) {
			TH_LOG("link %d: %s", i, link_wrong(l));
		}
	if (has_failed(l) && one_in(&r->seed, 8))
		link_return(_metadata, l, &r->seed);
}

/* When nothing completes for long although something is outstanding. */
static void watch(struct __test_metadata *_metadata, struct round *r)
{
	uint64_t n = r->requests;
	int i;

	for (i = 0; i < r->nlinks; i++)
		n += r->link[i].completions;
	if (n != r->completions)
		r->since = now_ns();
	r->completions = n;
	ASSERT_GT(DEADLINE_NS, now_ns() - r->since) {
		TH_LOG("nothing completes any more");
	}
}

/* Room for one more request, and a receive for it. */
static bool has_room(struct __test_metadata *_metadata, struct round *r, struct link *l, int d)
{
	if (spare_receives(l, d) > 0 && l->m[d].head - l->m[d].tail < SLOTS)
		return true;
	post_receives(_metadata, r, l, !d, 1);
	return !link_reap(l);
}

static void finish(struct __test_metadata *_metadata, struct round *r)
{
	int i, d;

	for (i = 0; i < r->nlinks; i++) {
		struct link *l = &r->link[i];

		if (has_failed(l) || l->m[0].excused)
			link_return(_metadata, l, &r->seed);
		for (d = 0; d < 2; d++) {
			if (!link_sends(l, d))
				continue;
			ASSERT_TRUE(wait_until(has_room(_metadata, r, l, d)));
			link_post_last(_metadata, l, d, &r->seed);
		}
		link_drain(_metadata, l);
		r->returns += l->returns;
		link_close(_metadata, l);
	}
}

static void run_round(struct __test_metadata *_metadata, uint64_t seed)
{
	struct round *r = &round_;

	memset(r, 0, sizeof(*r));
	r->seed = seed;
	r->since = now_ns();
	open_links(_metadata, r);
	while (r->requests < ROUND) {
		step(_metadata, r);
		watch(_metadata, r);
	}
	finish(_metadata, r);
}

/** struct run - rounds one after the other */
struct run {
	uint64_t	seed;
	uint64_t	requests;
	uint64_t	returns;
};

FIXTURE(traffic)
{
	struct run run;
};

FIXTURE_SETUP(traffic)
{
	self->run.seed = args.seed ? args.seed : seed_of("VHCA_TEST_SEED");
	TH_LOG("--seed %llu", (unsigned long long)self->run.seed);
}

FIXTURE_TEARDOWN(traffic)
{
	TH_LOG("%llu requests, %llu times from error to work",
	       (unsigned long long)self->run.requests, (unsigned long long)self->run.returns);
	if (_metadata->exit_code)
		TH_LOG("again with --seed %llu", (unsigned long long)self->run.seed);
}

/* Rounds until the time is over; each begins with a seed that repeats it alone. */
static void run_rounds(struct __test_metadata *_metadata, struct run *run)
{
	uint64_t end = now_ns() + args.seconds * 1000000000ull;

	do {
		run_round(_metadata, run->seed);
		run->requests += round_.requests;
		run->returns += round_.returns;
		run->seed = run->seed * 0x5851f42d4c957f2dull + 2;
		run->seed |= 1;
	} while (now_ns() < end && run->requests < args.messages);
}

TEST_F_TIMEOUT(traffic, is_as_the_model_has_it, 100000)
{
	run_rounds(_metadata, &self->run);
}

TEST_F_TIMEOUT(traffic, of_two_processes_at_once, 100000)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	if (!pid)
		self->run.seed = ~self->run.seed | 1;
	run_rounds(_metadata, &self->run);
	if (!pid)
		_exit(_metadata->exit_code);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		uint64_t value = strtoull(argv[i + 1], NULL, 0);

		if (!strcmp(argv[i], "--seed"))
			args.seed = value;
		else if (!strcmp(argv[i], "--seconds"))
			args.seconds = value;
		else if (!strcmp(argv[i], "--messages"))
			args.messages = value;
		else
			break;
	}
	return test_harness_run(argc - i + 1, argv + i - 1);
}
