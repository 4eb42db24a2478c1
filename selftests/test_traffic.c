// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_traffic.c: random traffic on several links at once, checked against a model:
 * data, order, and that every request completes exactly once, with faults in between.
 * That the model would notice is shown by test_traffic_model.c.
 *
 * --seed N: of an earlier run, as it was printed. --seconds N, --messages N: how long.
 */
#define _GNU_SOURCE
#include "traffic_round.h"

static struct {
	uint64_t seed;
	uint64_t seconds;
	uint64_t messages;
} args = { .seconds = 3, .messages = ~0ull };

static struct round round_;

/**
 * struct run - rounds one after the other
 * @returns: of links from errors.
 * @lost: messages that nobody was to notice.
 * @through: requests that a window was used by.
 * @dropped: pieces that the functions dropped before.
 */
struct run {
	uint64_t	seed;
	uint64_t	requests;
	uint64_t	returns;
	uint64_t	lost;
	uint64_t	through;
	long long	dropped;
};

static long long dropped(void)
{
	return device_counter(0, "dropped") + device_counter(1, "dropped");
}

FIXTURE(traffic)
{
	struct run run;
};

FIXTURE_SETUP(traffic)
{
	self->run.seed = args.seed ? args.seed : seed_of("VHCA_TEST_SEED");
	self->run.dropped = dropped();
	TH_LOG("--seed %llu", (unsigned long long)self->run.seed);
}

FIXTURE_TEARDOWN(traffic)
{
	printf("# %llu requests through windows, %llu dropped, %llu times from error to work\n",
	       (unsigned long long)self->run.through, (unsigned long long)self->run.lost,
	       (unsigned long long)self->run.returns);
	printf("# figure: %llu messages moved\n", (unsigned long long)self->run.requests);
	if (_metadata->exit_code)
		TH_LOG("again with --seed %llu", (unsigned long long)self->run.seed);
}

static void run_round(struct __test_metadata *_metadata, struct round *r)
{
	round_open(_metadata, r);
	ASSERT_TRUE(work(_metadata, r));
	finish(_metadata, r);
}

/* A round with one end of each link in this process and the other in a child. */
static void run_divided_round(struct __test_metadata *_metadata, struct round *r)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	ends.from = !pid;
	ends.to = !pid;
	if (!pid)
		r->seed = ~r->seed | 1;
	run_round(_metadata, r);
	if (!pid)
		_exit(_metadata->exit_code);
	ends.from = 0;
	ends.to = 1;
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_EQ(0, WEXITSTATUS(status));
}

static void count(struct run *run, const struct round *r)
{
	int i;

	run->requests += requests(r);
	for (i = 0; i < r->nlinks; i++) {
		run->returns += r->link[i].returns;
		run->lost += r->link[i].m[0].lost + r->link[i].m[1].lost;
		run->through += r->link[i].m[0].through + r->link[i].m[1].through;
	}
}

/* Rounds until the time is over; each begins with a seed that repeats it alone. */
static void run_rounds(struct __test_metadata *_metadata, struct run *run,
		       void (*one)(struct __test_metadata *_metadata, struct round *r))
{
	uint64_t end = now_ns() + args.seconds * 1000000000ull;

	do {
		round_init(_metadata, &round_, run->seed);
		one(_metadata, &round_);
		count(run, &round_);
		round_unmap(&round_);
		run->seed = run->seed * 0x5851f42d4c957f2dull + 2;
		run->seed |= 1;
	} while (now_ns() < end && run->requests < args.messages);
	/* Each was dropped in one piece or more, and others may have been. */
	EXPECT_LE(run->lost, dropped() - run->dropped);
}

TEST_F_TIMEOUT(traffic, is_as_the_model_has_it, 100000)
{
	run_rounds(_metadata, &self->run, run_round);
}

TEST_F_TIMEOUT(traffic, of_two_processes_at_once, 100000)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	if (!pid)
		self->run.seed = ~self->run.seed | 1;
	run_rounds(_metadata, &self->run, run_round);
	if (!pid)
		_exit(_metadata->exit_code);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F_TIMEOUT(traffic, between_two_processes, 100000)
{
	run_rounds(_metadata, &self->run, run_divided_round);
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
