// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_hunt.c: the hunt for a lost wake-up. A sender at a random pace, a receiver
 * that arms, polls until empty and waits without a time-out. If ever a completion
 * is neither seen by that poll nor followed by an event, the receiver waits for
 * ever: a watchdog in another process then says where everybody stood.
 *
 * VHCA_HUNT_MESSAGES: messages in all tests together, 200000 unless set.
 * VHCA_TEST_SEED: the seed of an earlier run, as it was printed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "pair.h"

#define MESSAGES	200000
#define DEPTH		512	/* receives posted */
#define WINDOW		400	/* messages under way */
#define BURST		8
#define STALL_S		20

enum phase { STARTING, ARMING, POLLING, WAITING, ENDED };

static const char * const phase_name[] = { "starting", "arming", "polling", "waiting", "ended" };

/* What the watchdog sees; shared between processes. */
struct view {
	long long posts;
	long long sent;
	long long received;
	long long waits;
	long long events;
	long long phase;
	long long wrong;		/* line at which something was not as expected */
};

struct hunt {
	struct view *view;
	struct pair p;
	uint64_t seed;
	long long target;
	bool solicited;
};

FIXTURE(hunt)
{
	struct hunt h;
};

FIXTURE_VARIANT(hunt)
{
	const char *engine;
	bool solicited;
	int percent;
};

FIXTURE_VARIANT_ADD(hunt, inline)
{
	.engine = "inline",
	.percent = 40,
};

FIXTURE_VARIANT_ADD(hunt, threaded)
{
	.engine = "threaded",
	.percent = 40,
};

FIXTURE_VARIANT_ADD(hunt, inline_solicited)
{
	.engine = "inline",
	.solicited = true,
	.percent = 10,
};

FIXTURE_VARIANT_ADD(hunt, threaded_solicited)
{
	.engine = "threaded",
	.solicited = true,
	.percent = 10,
};

FIXTURE_SETUP(hunt)
{
	const char *messages = getenv("VHCA_HUNT_MESSAGES");
	struct hunt *h = &self->h;

	ASSERT_EQ(0, engine_set(variant->engine));
	h->seed = seed_of("VHCA_TEST_SEED");
	h->target = (messages ? strtoull(messages, NULL, 0) : MESSAGES) / 100 * variant->percent;
	h->solicited = variant->solicited;
	h->view = mmap(NULL, sizeof(*h->view), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)h->view);
}

FIXTURE_TEARDOWN(hunt)
{
	munmap(self->h.view, sizeof(*self->h.view));
}

static void see(long long *field, long long value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static long long seen(const long long *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

/* In the threads of the hunt, where the harness has no say. */
#define MUST(cond) do {			\
	if (!(cond)) {			\
		see(&h->view->wrong, __LINE__);	\
		_exit(1);		\
	}				\
} while (0)

static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/*
 * Sender
 */
static void post_burst(struct hunt *h, uint64_t *seed, long long sent, int n)
{
	struct end *a = &h->p.end[0];
	struct ibv_send_wr wr[BURST], *bad;
	long long number[BURST];
	struct ibv_sge sge[BURST];
	struct ibv_wc wc;
	int i;

	for (i = 0; i < n; i++) {
		number[i] = sent + i;
		sge[i] = (struct ibv_sge){ (uintptr_t)&number[i], sizeof(number[i]), 0 };
		wr[i] = (struct ibv_send_wr) {
			.next = i < n - 1 ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE,
		};
	}
	wr[n - 1].send_flags |= IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	while (ibv_poll_cq(a->scq, 1, &wc) > 0)
		MUST(wc.status == IBV_WC_SUCCESS);
	/* The receiver may be faster than our poll: then the queue is still full. */
	for (bad = wr; bad;) {
		struct ibv_send_wr *first = bad;

		bad = NULL;
		i = ibv_post_send(a->qp, first, &bad);
		MUST(!i || i == ENOMEM);
		if (ibv_poll_cq(a->scq, 1, &wc) > 0)
			MUST(wc.status == IBV_WC_SUCCESS);
	}
	see(&h->view->posts, h->view->posts + 1);
}

/* Any CPU, or one of those there are. */
static void change_cpu(uint64_t *seed, const cpu_set_t *all)
{
	int cpu = rnd_below(seed, CPU_COUNT(all) * 2);
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CPU_AND(&one, &one, all);
	sched_setaffinity(0, sizeof(one), CPU_COUNT(&one) ? &one : all);
}

static void pace(struct hunt *h, uint64_t *seed, long long sent)
{
	switch (rnd_below(seed, 8)) {
	case 0:
	case 1:
		spin(rnd(seed) & ((256u << rnd_below(seed, 10)) - 1));
		break;
	case 2:
		sched_yield();
		break;
	case 3:		/* long enough for the device's thread to stop watching */
		usleep(rnd_below(seed, 200));
		break;
	case 4:
	case 5:		/* about when the receiver goes to sleep */
		while (seen(&h->view->received) < sent)
			sched_yield();
		spin(rnd_below(seed, 20000));
		break;
	default:
		break;
	}
}

static void *sender(void *arg)
{
	struct hunt *h = arg;
	uint64_t seed = h->seed;
	long long sent = 0;
	cpu_set_t all;
	int n;

	sched_getaffinity(0, sizeof(all), &all);
	while (sent < h->target) {
		n = rnd_below(&seed, 2) ? 1 : 1 + rnd_below(&seed, BURST);
		if (sent + n > h->target)
			n = h->target - sent;
		while (sent + n - seen(&h->view->received) > WINDOW)
			sched_yield();
		post_burst(h, &seed, sent, n);
		sent += n;
		see(&h->view->sent, sent);
		pace(h, &seed, sent);
		if (rnd_below(&seed, 1000) == 0)
			change_cpu(&seed, &all);
	}
	return NULL;
}

/*
 * Receiver
 */
static void repost(struct hunt *h, uint32_t slot)
{
	MUST(!post_recv(&h->p.end[1], slot, slot * sizeof(long long), sizeof(long long)));
}

static long long poll_until_empty(struct hunt *h, long long received)
{
	struct end *b = &h->p.end[1];
	struct ibv_wc wc[16];
	int n, i;

	while ((n = ibv_poll_cq(b->rcq, 16, wc)) > 0) {
		for (i = 0; i < n; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			MUST(wc[i].byte_len == sizeof(long long));
			MUST(((long long *)b->buf)[wc[i].wr_id] == received + i);
			repost(h, wc[i].wr_id);
		}
		received += n;
		see(&h->view->received, received);
	}
	MUST(!n);
	return received;
}

static void wait_for_event(struct hunt *h)
{
	struct end *b = &h->p.end[1];
	struct ibv_cq *cq;
	void *context;

	see(&h->view->phase, WAITING);
	see(&h->view->waits, h->view->waits + 1);
	MUST(!ibv_get_cq_event(b->channel, &cq, &context));
	MUST(cq == b->rcq);
	ibv_ack_cq_events(cq, 1);
	see(&h->view->events, h->view->events + 1);
}

static void receiver(struct hunt *h)
{
	struct ibv_cq *cq = h->p.end[1].rcq;
	uint64_t seed = ~h->seed | 1;
	long long received = 0;
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		repost(h, i);
	for (;;) {
		see(&h->view->phase, ARMING);
		MUST(!ibv_req_notify_cq(cq, h->solicited));
		if (rnd_below(&seed, 4) == 0)
			spin(rnd_below(&seed, 5000));
		see(&h->view->phase, POLLING);
		received = poll_until_empty(h, received);
		if (received == h->target)
			break;
		if (rnd_below(&seed, 4) == 0)
			spin(rnd_below(&seed, 5000));
		wait_for_event(h);
	}
	see(&h->view->phase, ENDED);
}

static void run_hunt(struct __test_metadata *_metadata, struct hunt *h)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	pthread_t thread;

	opts.channel = true;
	opts.cqe = 2 * DEPTH;
	opts.cap.max_send_wr = DEPTH;
	opts.cap.max_recv_wr = DEPTH;
	opts.buf_len = DEPTH * sizeof(long long);
	pair_open(_metadata, &h->p, &opts);
	ASSERT_EQ(0, pthread_create(&thread, NULL, sender, h));
	receiver(h);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	pair_close(_metadata, &h->p);
}

/*
 * Watchdog
 */
static void show(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[128];

	fprintf(TH_LOG_STREAM, "# %s:\n", path);
	while (f && fgets(line, sizeof(line), f))
		fprintf(TH_LOG_STREAM, "#   %s", line);
	if (f)
		fclose(f);
}

static void report(struct __test_metadata *_metadata, struct hunt *h)
{
	struct view *v = h->view;

	TH_LOG("receiver %s, sent %lld, received %lld of %lld, waits %lld, events %lld",
	       phase_name[seen(&v->phase)], seen(&v->sent), seen(&v->received), h->target,
	       seen(&v->waits), seen(&v->events));
	if (seen(&v->wrong))
		TH_LOG("not as expected: %s:%lld", __FILE__, seen(&v->wrong));
	show("/sys/kernel/debug/vhca_device/0/counters");
	show("/sys/kernel/debug/vhca_device/0/vectors");
	show("/sys/kernel/debug/vhca/vhca0/counters");
}

static long long progress(const struct hunt *h)
{
	return seen(&h->view->received) + seen(&h->view->sent);
}

/* True when the hunt ended well. */
static bool watch(struct __test_metadata *_metadata, struct hunt *h, pid_t pid)
{
	uint64_t since = now_ns();
	long long last = 0;
	int status;

	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid)
			return WIFEXITED(status) && !WEXITSTATUS(status) &&
			       seen(&h->view->phase) == ENDED;
		if (progress(h) != last)
			since = now_ns();
		last = progress(h);
		if (now_ns() - since > STALL_S * 1000000000ull) {
			TH_LOG("stalled");
			report(_metadata, h);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return false;
		}
		poll(NULL, 0, 50);
	}
}

TEST_F_TIMEOUT(hunt, no_wake_up_is_lost, 600)
{
	struct hunt *h = &self->h;
	long long kicks = device_counter(0, "kicks");
	pid_t pid;
	bool ok;

	TH_LOG("%s, %lld messages, VHCA_TEST_SEED=%llu", variant->engine,
	       h->target, (unsigned long long)h->seed);
	pid = fork();
	if (!pid) {
		run_hunt(_metadata, h);
		_exit(_metadata->exit_code);
	}
	ASSERT_LT(0, pid);
	ok = watch(_metadata, h, pid);
	ASSERT_TRUE(ok) {
		report(_metadata, h);
	}
	kicks = device_counter(0, "kicks") - kicks;
	TH_LOG("%lld posts, %lld kicks, %lld waits, %lld events", seen(&h->view->posts), kicks,
	       seen(&h->view->waits), seen(&h->view->events));
	/* It slept often, and the device had to be woken often but not always. */
	EXPECT_LT(h->target / 100, seen(&h->view->waits));
	EXPECT_LT(0, kicks);
	if (!strcmp(variant->engine, "threaded"))
		EXPECT_LT(kicks, h->target);
}

TEST_HARNESS_MAIN
