// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU leaves and comes back, and vectors move from CPU to CPU, all the time, while
 * event-driven traffic runs on every vector: no event and no message is lost.
 *
 * HOTPLUGS= does it more often.
 */
#define _GNU_SOURCE
#include "endings.h"

#include "harness.h"

#define CPU1	"/sys/devices/system/cpu/cpu1/online"
#define WORKERS	4	/* two for each vector of a machine of two CPUs */

static bool cpu_can_leave(void)
{
	return access(CPU1, W_OK) == 0;
}

/* Busy, for a moment, while another of its transitions is under way. */
static int cpu_set(const char *online)
{
	int err = -EBUSY;

	RAW_WAIT((err = end_write(CPU1, online)) != -EBUSY);
	return err;
}

/* Interrupts of the device: their numbers. */

#define IRQS	16

static int irqs_of(int fn, int *irq)
{
	char path[64], line[256];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca/vhca%d/vectors", fn);
	f = fopen(path, "r");
	while (f && n < IRQS && fgets(line, sizeof(line), f))
		n += sscanf(line, "%*u %d", &irq[n]) == 1;
	if (f)
		fclose(f);
	return n;
}

static int move(int irq, const char *cpus)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	return end_write(path, cpus);
}

/* An event-driven process: each message has its event, its completion, its contents */

struct worker {
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	int		channel;
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_pair	pair;
};

static int worker_open(struct worker *w, int vector)
{
	int err = raw_open(&w->ctx, 0);

	if (err)
		return err;
	w->channel = raw_channel(w->ctx.fd);
	if (w->channel < 0)
		return w->channel;
	err = raw_mr(&w->ctx, &w->mr, 16384);
	if (!err)
		err = raw_cq(&w->ctx, &w->scq, 64, VHCA_INVALID_FD);
	w->rcq.made = (struct vhca_create_cq) {
		.cqe = 64, .comp_vector = vector, .channel_fd = w->channel,
		.cookie = (uintptr_t)&w->rcq,
	};
	if (!err)
		err = raw_make_cq(&w->ctx, &w->rcq);
	return err ? err : raw_pair(&w->ctx, &w->pair, &w->scq, &w->rcq);
}

static int worker_message(struct worker *w, uint8_t seed)
{
	uint8_t *in = w->mr.addr + w->mr.len / 2;
	struct raw_wc wc;

	memset(w->mr.addr, seed, 128);
	if (raw_arm(&w->rcq, false) || raw_message(&w->pair, &w->mr, VHCA_WQE_SIGNALED, 128))
		return 2;
	if (raw_cq_event(&w->rcq))
		return 3;	/* the event is lost */
	if (!raw_poll(&w->rcq, &wc) || wc.status || wc.byte_len != 128)
		return 4;
	if (raw_wait_wc(&w->scq, &wc) || wc.status)
		return 5;
	return memcmp(w->mr.addr, in, 128) ? 6 : 0;
}

/* Until the pipe has an end; how many messages that were goes to @count. */
static int work(int stop, int vector, int count)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct worker w = {};
	long long n = 0;
	int err;

	if (worker_open(&w, vector))
		return 1;
	while (!poll(&p, 1, 0)) {
		err = worker_message(&w, ++n);
		if (err)
			return err;
	}
	return write(count, &n, sizeof(n)) == sizeof(n) ? 0 : 7;
}

/* Moves every vector somewhere else, as fast as it goes; so to a CPU that is away. */
static int shuffle(int stop, int count)
{
	static const char * const cpus[] = { "0", "1", "0-1" };
	struct pollfd p = { .fd = stop, .events = POLLIN };
	int irq[IRQS], n = irqs_of(0, irq), i;
	long long moves = 0;

	while (!poll(&p, 1, 0))
		for (i = 0; i < n; i++)
			moves += !move(irq[i], cpus[end_below(3)]);
	for (i = 0; i < n; i++)
		move(irq[i], "0-1");
	return write(count, &moves, sizeof(moves)) == sizeof(moves) ? 0 : 1;
}

FIXTURE(hotplug) {
	int stop[2];
	int count[2];		/* of messages */
	int moves[2];		/* of vectors */
	pid_t pid[WORKERS + 1];
	struct end_objects before;
};

FIXTURE_VARIANT(hotplug) {
	const char *engine;
};

FIXTURE_VARIANT_ADD(hotplug, inline) {
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(hotplug, threaded) {
	.engine = "threaded",
};

FIXTURE_SETUP(hotplug)
{
	if (!cpu_can_leave())
		SKIP(return, "CPU 1 cannot be taken offline");
	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	self->before = end_objects(0);
	ASSERT_EQ(0, pipe(self->stop));
	ASSERT_EQ(0, pipe(self->count));
	ASSERT_EQ(0, pipe(self->moves));
	end_seed();
}

/* Vectors stay where the absence of their CPU has put them until they are made anew. */
FIXTURE_TEARDOWN(hotplug)
{
	char bdf[16];
	int i;

	EXPECT_EQ(0, cpu_set("1"));
	EXPECT_EQ(0, raw_engine("inline"));
	for (i = 0; i < 2; i++) {
		end_bdf(i, bdf, sizeof(bdf));
		EXPECT_EQ(0, end_driver("unbind", bdf));
		EXPECT_EQ(0, end_driver("bind", bdf));
	}
}

TEST_F_TIMEOUT(hotplug, no_event_is_lost_while_a_cpu_comes_and_goes, 300)
{
	int rounds = end_rounds("HOTPLUGS", 12), i;
	long long n, messages = 0;

	for (i = 0; i <= WORKERS; i++) {
		self->pid[i] = fork();
		if (self->pid[i])
			continue;
		close(self->stop[1]);
		_exit(i < WORKERS ? work(self->stop[0], i % 2, self->count[1]) :
				    shuffle(self->stop[0], self->moves[1]));
	}
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, cpu_set("0"));
		usleep(end_below(20000));
		ASSERT_EQ(0, cpu_set("1"));
		usleep(end_below(20000));
	}
	close(self->stop[1]);
	for (i = 0; i <= WORKERS; i++)
		EXPECT_EQ(0, end_reap(self->pid[i], RAW_DEADLINE_MS + 5000));
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(1, raw_readable(self->count[0], 0));
		ASSERT_EQ((ssize_t)sizeof(n), read(self->count[0], &n, sizeof(n)));
		EXPECT_LT(0, n);
		messages += n;
	}
	ASSERT_EQ((ssize_t)sizeof(n), read(self->moves[0], &n, sizeof(n)));
	EXPECT_LT(rounds, n);
	printf("# figure: %d hotplugs\n# figure: %lld affinity changes\n"
	       "# figure: %lld messages moved\n", rounds, n, messages);
	EXPECT_TRUE(end_left_nothing(0, &self->before));
}

TEST_F_TIMEOUT(hotplug, a_function_that_comes_while_a_cpu_is_away_works, 120)
{
	char bdf[16];
	int i;

	end_bdf(1, bdf, sizeof(bdf));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, end_driver("unbind", bdf));
		ASSERT_EQ(0, cpu_set("0"));
		ASSERT_EQ(0, end_driver("bind", bdf));
		EXPECT_EQ(0, RAW_CHILD(end_works(1)));
		ASSERT_EQ(0, cpu_set("1"));
		EXPECT_EQ(0, RAW_CHILD(end_works(1)));
		/* And the other way: it goes while the CPU is away. */
		ASSERT_EQ(0, end_driver("unbind", bdf));
		ASSERT_EQ(0, end_driver("bind", bdf));
		ASSERT_EQ(0, cpu_set("0"));
		EXPECT_EQ(0, RAW_CHILD(end_works(1)));
		ASSERT_EQ(0, end_driver("unbind", bdf));
		ASSERT_EQ(0, cpu_set("1"));
		ASSERT_EQ(0, end_driver("bind", bdf));
		EXPECT_EQ(0, RAW_CHILD(end_works(1)));
	}
}

TEST_HARNESS_MAIN
