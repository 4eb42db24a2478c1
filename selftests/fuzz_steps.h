/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of the fuzzer: objects to begin with, then threads that do steps, each step
 * drawn by its own seed and written to the log before it is done.
 */
#ifndef FUZZ_STEPS_H
#define FUZZ_STEPS_H

#include "fuzz_files.h"

/**
 * struct fuzz_job - a run
 * @seed: of the objects to begin with, and of the steps where none are given.
 * @steps: of each thread.
 * @given: seeds of steps by thread, or NULL.
 */
struct fuzz_job {
	const char	*engine;
	uint64_t	seed;
	unsigned int	threads;
	unsigned int	steps[FUZZ_THREADS];
	uint64_t	*given[FUZZ_THREADS];
};

/* Objects to begin with */

static inline void fuzz_make(struct fuzz_thread *t, int ctx, const char *call, int n)
{
	const struct fuzz_call *c = fuzz_call_named(call);
	int tries = 4 * n;

	while (n && tries--)
		n -= !fuzz_call(t, c, ctx);
}

static inline void fuzz_populate(struct fuzz_thread *t, int ctx)
{
	static const struct {
		const char *call;
		int n;
	} begin[] = {
		{ "ALLOC_UAR", 2 }, { "ALLOC_PD", 2 }, { "REG_MR", 4 }, { "REG_NULL_MR", 1 },
		{ "CREATE_CHANNEL", 2 }, { "OPEN_ASYNC", 1 }, { "CREATE_CQ", 4 },
		{ "OPEN_XRCD", 1 }, { "CREATE_SRQ", 3 }, { "CREATE_QP", 6 }, { "ALLOC_MW", 3 },
		{ "ALLOC_DM", 2 },
	};
	unsigned int i;

	t->good = true;
	for (i = 0; i < ARRAY_SIZE(begin); i++)
		fuzz_make(t, ctx, begin[i].call, begin[i].n);
	for (i = 0; i < 8; i++)
		do_connect(t);
	t->good = false;
}

static inline void do_populate(struct fuzz_thread *t)
{
	int i;

	for (i = 0; i < FUZZ_CTXS; i++)
		fuzz_populate(t, i);
}

/* Steps */

static inline void do_call(struct fuzz_thread *t)
{
	const struct fuzz_call *call = fz_call(t);

	fuzz_call(t, call, fz_below(t, FUZZ_CTXS));
}

/*
 * A file is closed with all that is in it, while others use it, and another is opened
 * under its number. What is mapped of it goes afterwards.
 */
static inline void do_reopen(struct fuzz_thread *t)
{
	int ctx = fz_below(t, FUZZ_CTXS), fd = raw_open_file(0);
	unsigned int i, kind;

	if (fd < 0)
		return;
	dup3(fd, world.fd[ctx], O_CLOEXEC);
	close(fd);
	for (kind = 0; kind < F_KINDS; kind++)
		for (i = 0; i < FUZZ_OBJS; i++)
			if (world.obj[kind][i].live && world.obj[kind][i].ctx == ctx &&
			    kind != F_CHANNEL && kind != F_ASYNC)
				fuzz_end(kind, &world.obj[kind][i]);
	for (i = 0; i < FUZZ_PLACES; i++)
		if (world.map[i].used && world.map[i].ctx == ctx)
			fuzz_unmap(i);
	fuzz_populate(t, ctx);
}

/* What is there often is lost as often. */
static inline void do_make_more(struct fuzz_thread *t)
{
	int ctx = fz_below(t, FUZZ_CTXS);

	fuzz_make(t, ctx, "CREATE_CQ", 1);
	fuzz_make(t, ctx, "REG_MR", 1);
	fuzz_make(t, ctx, "CREATE_QP", 2);
	do_connect(t);
}

#define STEP(name, often) { #name, often, do_##name }

static const struct fuzz_step {
	const char	*name;
	unsigned int	weight;
	void		(*fn)(struct fuzz_thread *t);
} fuzz_steps[] = {
	STEP(call, 400), STEP(make_more, 20), STEP(reopen, 1),
	STEP(post_send, 200), STEP(post_recv, 60), STEP(post_srq, 40), STEP(connect, 60),
	STEP(poll_cq, 50), STEP(arm_cq, 40), STEP(read_event, 40), STEP(kick, 20),
	STEP(scribble_map, 40), STEP(scribble_qp, 60), STEP(scribble_cq, 30),
	STEP(scribble_srq, 20), STEP(scribble_data, 10),
	STEP(mmap, 12), STEP(mremap, 8), STEP(protect, 8), STEP(unmap, 8), STEP(data_away, 4),
	STEP(close, 6), STEP(dup, 6), STEP(fcntl, 10),
};

static inline const struct fuzz_step *fz_step(struct fuzz_thread *t)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < ARRAY_SIZE(fuzz_steps); i++)
		sum += fuzz_steps[i].weight;
	at = fz_below(t, sum);
	for (i = 0; at >= fuzz_steps[i].weight; i++)
		at -= fuzz_steps[i].weight;
	return &fuzz_steps[i];
}

static inline void fuzz_guarded(struct fuzz_thread *t, void (*fn)(struct fuzz_thread *t))
{
	if (!sigsetjmp(t->env, 1)) {
		__atomic_store_n(&t->in_step, true, __ATOMIC_SEQ_CST);
		fn(t);
	}
	__atomic_store_n(&t->in_step, false, __ATOMIC_SEQ_CST);
	t->good = false;
}

static inline void fuzz_step(struct fuzz_thread *t, uint64_t n, uint64_t seed)
{
	const struct fuzz_step *step;

	t->rng = seed;
	step = fz_step(t);
	world.view->at[t->id].n = n;
	world.view->at[t->id].seed = seed;
	snprintf(world.view->at[t->id].what, sizeof(world.view->at[0].what), "%s", step->name);
	if (world.log >= 0)
		dprintf(world.log, "step %u %#llx %s\n", t->id, (unsigned long long)seed,
			step->name);
	fuzz_guarded(t, step->fn);
	fuzz_count(&world.view->steps, 1);
}

static inline uint64_t fuzz_seed(const struct fuzz_job *job, unsigned int id, unsigned int n)
{
	return job->given[id] ? job->given[id][n] :
				fuzz_mix(job->seed + ((uint64_t)id << 56) + n);
}

/* Threads */

struct fuzz_worker {
	struct fuzz_thread	t;
	const struct fuzz_job	*job;
	pthread_t		thread;
};

static inline uint8_t *fuzz_arg_memory(void)
{
	uint8_t *p = mmap(NULL, 10 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (p == MAP_FAILED || mprotect(p + 8 * 4096, 4096, PROT_READ) ||
	    mprotect(p + 9 * 4096, 4096, PROT_NONE))
		return NULL;
	return p;
}

static inline void *fuzz_work(void *arg)
{
	struct fuzz_worker *w = arg;
	unsigned int i;

	fuzz_self = &w->t;
	for (i = 0; i < w->job->steps[w->t.id]; i++)
		fuzz_step(&w->t, i, fuzz_seed(w->job, w->t.id, i));
	return NULL;
}

/* Signals come at odd times, and wake who sleeps in a read() that nothing ends. */
static inline void fuzz_join(struct fuzz_worker *w, unsigned int n)
{
	struct timespec end;
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		do {
			for (j = i; j < n; j++)
				pthread_kill(w[j].thread, SIGUSR1);
			clock_gettime(CLOCK_REALTIME, &end);
			end.tv_nsec += 20000000;
			end.tv_sec += end.tv_nsec / 1000000000;
			end.tv_nsec %= 1000000000;
		} while (pthread_timedjoin_np(w[i].thread, NULL, &end));
	}
}

static inline void fuzz_nothing(int sig)
{
}

static inline void fuzz_signals(void)
{
	struct sigaction fault = { .sa_handler = fuzz_fault };
	struct sigaction nothing = { .sa_handler = fuzz_nothing };

	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGUSR1, &nothing, NULL);
	signal(SIGIO, SIG_IGN);
}

static inline int fuzz_keep(int fd, int as)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, FUZZ_FD_KEPT + as);

	close(fd);
	return kept;
}

static inline int fuzz_open(void)
{
	struct vhca_query_port port = { .port = 1 };
	int i;

	for (i = 0; i < FUZZ_CTXS; i++)
		world.fd[i] = fuzz_keep(raw_open_file(0), 0);
	world.file = fuzz_keep(memfd_create("fuzz", MFD_CLOEXEC), 0);
	if (world.fd[0] < 0 || world.fd[1] < 0 || world.file < 0)
		return -1;
	if (raw_ioctl(world.fd[0], VHCA_IOC_QUERY_PORT, &port))
		return -1;
	world.lid = port.lid;
	return fuzz_make_memory();
}

/* Closed and unmapped, so that all objects are gone. */
static inline void fuzz_close(void)
{
	int fd;

	for (fd = 3; fd < FUZZ_FD_KEPT + 64; fd++)
		if (fd != world.log)
			close(fd);
	fuzz_fix(FUZZ_MAPS, FUZZ_PLACES * FUZZ_PLACE, PROT_NONE);
}

/* Memory that is registered no more is written no more, whatever the device does. */
static inline bool fuzz_data_rests(void)
{
	size_t i, size = FUZZ_CHUNKS * FUZZ_CHUNK;
	struct raw_bed bed;

	for (i = 0; i < FUZZ_CHUNKS; i++)
		memset(FUZZ_DATA + i * FUZZ_CHUNK, FUZZ_CANARY, FUZZ_CHUNK - 4096);
	if (raw_bed(&bed, 0) || raw_bed_message(&bed, 0))
		return false;
	raw_close(&bed.ctx);
	for (i = 0; i < size; i++)
		if (FUZZ_DATA[i] != FUZZ_CANARY)
			return false;
	return true;
}

/* The whole of a run, in a process of its own; 0 when all invariants held. */
static inline int fuzz_run(const struct fuzz_job *job)
{
	struct fuzz_worker w[FUZZ_THREADS] = {};
	unsigned int i;

	if (fuzz_open())
		return 1;
	fuzz_signals();
	for (i = 0; i < job->threads; i++) {
		w[i].job = job;
		w[i].t.id = i;
		w[i].t.mem = fuzz_arg_memory();
	}
	fuzz_self = &w[0].t;
	w[0].t.rng = job->seed;
	fuzz_guarded(&w[0].t, do_populate);
	for (i = 0; i < job->threads; i++)
		if (pthread_create(&w[i].thread, NULL, fuzz_work, &w[i]))
			return 2;
	fuzz_join(w, job->threads);
	if (!fuzz_canaries_whole())
		return 3;
	fuzz_close();
	if (!fuzz_canaries_whole())
		return 4;
	return fuzz_data_rests() ? 0 : 5;
}

#endif
