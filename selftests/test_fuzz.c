// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile process: random calls, mappings and descriptors, and nonsense in every
 * queue that user space can write, alone and in threads that race. Whatever it does,
 * its neighbour's messages arrive, no memory is written that was not registered, all
 * its objects go with it, and a new QP works. The kernel's log says the rest.
 *
 * A fuzzing process does a run: the objects to begin with, then some thousand steps.
 * Runs follow one another, each with a seed that repeats it.
 *
 * --seed N: begin with the run of that seed. --seconds N: all tests together.
 * --log FILE: the run in hand, step by step, written before each. --corpus PATH: a file
 * or folder of runs instead of corpus/. A log is a run; so are these lines:
 *   engine inline|threaded
 *   world SEED		the objects to begin with; then either
 *   run THREADS STEPS	as the fuzzer would, or
 *   step THREAD SEED	one step each
 */
#include "fuzz_steps.h"

#include <dirent.h>
#include <libgen.h>

#include "endings.h"
#include "fuzz_victim.h"

#include "harness.h"

#define STEPS		1500	/* of a thread in a run */
#define STALL_MS	60000

static struct {
	uint64_t	seed;
	uint64_t	seconds;
	const char	*log;
	const char	*corpus;
} args = { .seconds = 8 };

FIXTURE(fuzz) {
	struct victim *victim;
	struct end_objects before;
	uint64_t runs;
};

FIXTURE_VARIANT(fuzz) {
	const char *engine;
	unsigned int threads;
};

/* What failed once. */
FIXTURE_VARIANT_ADD(fuzz, corpus) {
	.threads = 0,
};

FIXTURE_VARIANT_ADD(fuzz, inline) {
	.engine = "inline",
	.threads = 1,
};

FIXTURE_VARIANT_ADD(fuzz, threaded) {
	.engine = "threaded",
	.threads = 1,
};

FIXTURE_VARIANT_ADD(fuzz, inline_racing) {
	.engine = "inline",
	.threads = 3,
};

FIXTURE_VARIANT_ADD(fuzz, threaded_racing) {
	.engine = "threaded",
	.threads = 3,
};

FIXTURE_SETUP(fuzz)
{
	world.log = -1;
	world.view = mmap(NULL, sizeof(*world.view), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)world.view);
	ASSERT_LE(0, raw_device_counter(0, "commands"));
	self->before = end_objects(0);
	self->victim = victim_start(&(struct victim) { .events = 4 });
	ASSERT_NE(NULL, self->victim);
}

/* A message by a pair that was not there before. */
static int fresh_pair(void)
{
	struct raw_bed bed;

	return raw_bed(&bed, 0) || raw_bed_message(&bed, 0);
}

FIXTURE_TEARDOWN(fuzz)
{
	static const char * const engines[] = { "threaded", "inline" };
	struct fuzz_view *v = world.view;
	int i;

	EXPECT_EQ(0, victim_stop(self->victim)) {
		TH_LOG("the neighbour: fuzz_victim.h:%llu after %llu messages",
		       (unsigned long long)self->victim->wrong,
		       (unsigned long long)self->victim->messages);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, raw_engine(engines[i]));
		EXPECT_EQ(0, RAW_CHILD(fresh_pair()));
	}
	EXPECT_TRUE(end_left_nothing(0, &self->before));
	printf("# %llu runs of %llu steps, %llu calls succeeded, %llu faults\n",
	       (unsigned long long)self->runs, (unsigned long long)v->steps,
	       (unsigned long long)v->done, (unsigned long long)v->faults);
	printf("# figure: %llu ioctls fuzzed\n", (unsigned long long)v->ioctls);
	printf("# figure: %llu WQEs fuzzed\n", (unsigned long long)v->wqes);
	printf("# figure: %llu queue scribbles\n", (unsigned long long)v->scribbles);
	printf("# figure: %llu messages moved\n", (unsigned long long)self->victim->messages);
}

/* The status of the fuzzing process; one that gets nowhere is killed, and is -2. */
static int watch(pid_t pid)
{
	uint64_t steps;

	do {
		siginfo_t info = {};
		long long end = raw_ms() + STALL_MS;

		steps = __atomic_load_n(&world.view->steps, __ATOMIC_RELAXED);
		while (steps == __atomic_load_n(&world.view->steps, __ATOMIC_RELAXED) &&
		       raw_ms() < end) {
			if (!waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
			    info.si_pid)
				return end_reap(pid, 0);
			usleep(2000);
		}
	} while (steps != __atomic_load_n(&world.view->steps, __ATOMIC_RELAXED));
	return end_reap(pid, 0);
}

static void begin_log(const struct fuzz_job *job)
{
	if (!args.log)
		return;
	world.log = fuzz_keep(open(args.log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), 100);
	dprintf(world.log, "engine %s\nworld %#llx\n", job->engine, (unsigned long long)job->seed);
}

static void say_where(struct __test_metadata *_metadata, const struct fuzz_job *job)
{
	unsigned int i;

	TH_LOG("--seed %#llx, engine %s, %u threads", (unsigned long long)job->seed, job->engine,
	       job->threads);
	for (i = 0; i < job->threads; i++)
		TH_LOG("thread %u at step %llu, %s, seed %#llx", i,
		       (unsigned long long)world.view->at[i].n, world.view->at[i].what,
		       (unsigned long long)world.view->at[i].seed);
}

static void run(struct __test_metadata *_metadata, const struct fuzz_job *job)
{
	pid_t pid;

	ASSERT_EQ(0, raw_engine(job->engine));
	begin_log(job);
	pid = fork();
	if (!pid)
		_exit(fuzz_run(job));
	EXPECT_EQ(0, watch(pid)) {
		say_where(_metadata, job);
	}
	EXPECT_EQ(0, world.view->wrong);
	if (world.log >= 0)
		close(world.log);
}

/* The corpus: what failed once */

static void job_free(struct fuzz_job *job)
{
	unsigned int i;

	for (i = 0; i < FUZZ_THREADS; i++)
		free(job->given[i]);
}

static void job_step(struct fuzz_job *job, unsigned int id, uint64_t seed)
{
	uint64_t **list = &job->given[id % FUZZ_THREADS];
	unsigned int *n = &job->steps[id % FUZZ_THREADS];

	*list = realloc(*list, (*n + 1) * sizeof(**list));
	(*list)[(*n)++] = seed;
	if (job->threads <= id % FUZZ_THREADS)
		job->threads = id % FUZZ_THREADS + 1;
}

static bool job_read(struct fuzz_job *job, FILE *f)
{
	unsigned int a, b, i;
	char line[256];
	uint64_t seed;

	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "world %li", (long *)&seed) == 1) {
			job->seed = seed;
		} else if (sscanf(line, "run %u %u", &a, &b) == 2) {
			job->threads = a <= FUZZ_THREADS ? a : FUZZ_THREADS;
			for (i = 0; i < FUZZ_THREADS; i++)
				job->steps[i] = b;
		} else if (sscanf(line, "step %u %li", &a, (long *)&seed) == 2) {
			job_step(job, a, seed);
		} else if (!strcmp(line, "engine threaded\n")) {
			job->engine = "threaded";
		} else if (strcmp(line, "engine inline\n")) {
			return false;
		}
	}
	return job->threads;
}

static void replay(struct __test_metadata *_metadata, const char *path)
{
	struct fuzz_job job = { .engine = "inline" };
	FILE *f = fopen(path, "r");

	ASSERT_NE(NULL, f);
	EXPECT_TRUE(job_read(&job, f)) {
		TH_LOG("%s: not understood", path);
	}
	fclose(f);
	TH_LOG("%s", path);
	run(_metadata, &job);
	job_free(&job);
}

/* Beside the program, unless said otherwise. */
static void corpus_path(char *path, size_t size)
{
	char exe[512];
	ssize_t n;

	if (args.corpus) {
		snprintf(path, size, "%s", args.corpus);
		return;
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = 0;
	snprintf(path, size, "%s/corpus", dirname(exe));
}

/* Each file in it, or the file that it is. */
static void replay_all(struct __test_metadata *_metadata, uint64_t *runs)
{
	char path[600], file[1024];
	struct dirent *e;
	DIR *dir;

	corpus_path(path, sizeof(path));
	dir = opendir(path);
	if (!dir) {
		replay(_metadata, path);
		++*runs;
		return;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		replay(_metadata, file);
		++*runs;
	}
	closedir(dir);
}

static uint64_t first_seed(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return args.seed ? args.seed : fuzz_mix(ts.tv_sec * 1000000000ull + ts.tv_nsec);
}

TEST_F_TIMEOUT(fuzz, neither_harms_nor_lasts, 100000)
{
	long long end = raw_ms() + args.seconds * 1000 / 4;
	struct fuzz_job job = {
		.engine = variant->engine, .threads = variant->threads, .seed = first_seed(),
		.steps = { STEPS, STEPS, STEPS, STEPS },
	};

	if (!job.threads) {
		replay_all(_metadata, &self->runs);
		return;
	}
	TH_LOG("--seed %#llx", (unsigned long long)job.seed);
	do {
		run(_metadata, &job);
		job.seed = fuzz_mix(job.seed);
		self->runs++;
	} while (raw_ms() < end && _metadata->exit_code == 0);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			args.seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seconds"))
			args.seconds = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--log"))
			args.log = argv[i + 1];
		else if (!strcmp(argv[i], "--corpus"))
			args.corpus = argv[i + 1];
		else
			break;
	}
	return test_harness_run(argc - i + 1, argv + i - 1);
}
