// SPDX-License-Identifier: GPL-2.0-only
/*
 * vhca_bench: what programs that come with a distribution do not show of a verbs
 * device, and what the machine itself allows. Prints "name value" lines.
 *
 * It runs on the verbs library that it is given, so on other devices as well.
 */
#define _GNU_SOURCE
#include <stddef.h>

#include "connect.h"
#include "latency.h"
#include "limits.h"
#include "load.h"
#include "scale.h"

static const struct test {
	const char *name;
	void (*run)(const struct options *o);
	const char *help;
} tests[] = {
	{ "limits", test_limits, "memcpy, cache line, eventfd, futex, ioctl; no device" },
	{ "eventfd", test_eventfd, "of these the ping-pong by eventfd" },
	{ "pingpong", test_pingpong, "--count messages there and back" },
	{ "wake", test_wake, "--count posts that wake a reader of a channel with --qps CQs" },
	{ "load", test_load, "messages from one process to another for --seconds" },
	{ "beside", test_beside, "messages of a QP to itself beside --count idle QPs" },
	{ "connect", test_connect, "--count connections of RDMA CM to --address, as many at once" },
	{ "memory", test_memory, "of each of --count idle QPs with its CQ" },
	{ "idle", test_idle, "wake-ups of the device's threads in 10 s with --count QPs" },
};

#define TESTS	(sizeof(tests) / sizeof(tests[0]))

#define AT(field)	offsetof(struct options, field)

static const struct {
	const char *name;
	enum { WORD, INT, REAL, FLAG } kind;
	size_t at;
} opts[] = {
	{ "--dev", WORD, AT(dev) },
	{ "--gid", INT, AT(gid) },
	{ "--address", WORD, AT(address) },
	{ "--size", INT, AT(size) },
	{ "--count", INT, AT(count) },
	{ "--qps", INT, AT(qps) },
	{ "--mode", WORD, AT(mode) },
	{ "--against", WORD, AT(against) },
	{ "--rate", REAL, AT(rate) },
	{ "--seconds", REAL, AT(seconds) },
	{ "--batch", INT, AT(batch) },
	{ "--cqe", INT, AT(cqe) },
	{ "--workers", INT, AT(workers) },
	{ "--work", INT, AT(work) },
	{ "--moderate", INT, AT(moderate) },
	{ "--period", INT, AT(period) },
	{ "--solicited", INT, AT(solicited) },
	{ "--write", FLAG, AT(write) },
	{ "--epoll", FLAG, AT(epoll) },
	{ "--sender", INT, AT(cpu[0]) },
	{ "--receiver", INT, AT(cpu[1]) },
	{ "--dump", WORD, AT(dump) },
};

#define OPTS	(sizeof(opts) / sizeof(opts[0]))

static __attribute__((noreturn)) void usage(void)
{
	unsigned int i;

	fprintf(stderr, "usage: vhca_bench TEST [OPTION...]\n");
	for (i = 0; i < TESTS; i++)
		fprintf(stderr, "  %-10s %s\n", tests[i].name, tests[i].help);
	fprintf(stderr,
		"  --dev NAME (vhca0)   --gid INDEX          where it runs\n"
		"  --address IP (127.0.0.1)                  of the device, for RDMA CM\n"
		"  --size BYTES (64)    --batch WRS (1)      --write: not SEND\n"
		"  --count N (1000)     --qps N (1)          --seconds S (1)\n"
		"  --mode polling|events|hybrid  --epoll: channel non-blocking\n"
		"  --against MODE       both in turn under one load, the first as share of this one\n"
		"  --rate MESSAGES      a second, offered whatever becomes of them\n"
		"  --workers N --work NS  threads that messages are handed to, time of each\n"
		"  --moderate CQES --period US  an event for so many, or after so long\n"
		"  --solicited N        one message in N is solicited, and events only for these\n"
		"  --cqe N (512)        --sender CPU   --receiver CPU\n"
		"  --dump FILE          the histogram of times\n");
	exit(2);
}

/* Take an option and its value from @args; how many words that were. */
static int option(struct options *o, char **args)
{
	unsigned int i;
	char *field;

	for (i = 0; i < OPTS && strcmp(args[0], opts[i].name); i++)
		;
	if (i == OPTS || (opts[i].kind != FLAG && !args[1]))
		usage();
	field = (char *)o + opts[i].at;
	switch (opts[i].kind) {
	case WORD:
		*(const char **)field = args[1];
		return 2;
	case INT:
		*(int *)field = atoi(args[1]);
		return 2;
	case REAL:
		*(double *)field = atof(args[1]);
		return 2;
	default:
		*(bool *)field = true;
		return 1;
	}
}

/* Sixteen messages at least, 8 MiB of them at most, and few where there are many QPs. */
static void set_depth(struct options *o)
{
	o->depth = o->qps > 1 ? 16 : MAX_DEPTH;
	while (o->depth > 16 && (uint64_t)o->depth * (uint32_t)o->size > 8 << 20)
		o->depth /= 2;
	o->signal = o->depth / 8;
	if (o->batch > o->depth / 4)
		o->batch = o->depth / 4;
}

static void run(const char *name, const struct options *o)
{
	unsigned int i;

	for (i = 0; i < TESTS; i++)
		if (!strcmp(name, tests[i].name)) {
			tests[i].run(o);
			return;
		}
	usage();
}

int main(int argc, char **argv)
{
	struct options o = { .dev = "vhca0", .gid = -1, .address = "127.0.0.1",
			     .size = 64, .count = 1000, .qps = 1, .mode = "polling",
			     .seconds = 1, .batch = 1,
			     .cqe = 2 * MAX_DEPTH, .cpu = { -1, -1 } };
	int i;

	if (argc < 2)
		usage();
	for (i = 2; i < argc;)
		i += option(&o, argv + i);
	if (o.size < 1 || o.qps < 1 || o.count < 0 || o.batch < 1)
		usage();
	set_depth(&o);
	signal(SIGCHLD, on_child);
	run(argv[1], &o);
	return 0;
}
