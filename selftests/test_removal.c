// SPDX-License-Identifier: GPL-2.0-only
/*
 * A function that goes while processes are busy with it, again and again at moments
 * of chance: unbound, removed, reset, broken, its modules unloaded. Whoever used it
 * is told, woken, and left alone; afterwards the function is as good as new.
 *
 * REMOVALS= does it more often, SEED= repeats a run.
 */
#define _GNU_SOURCE
#include "endings.h"

#include "harness.h"

#define FN	1	/* goes; the other function stays */

/* What each process has, once it is busy. */
struct job {
	struct raw_bed	bed;
	int		async;
	int		ready;
};

static int job_open(struct job *job, int ready)
{
	int err = raw_bed(&job->bed, FN);

	if (err)
		return err;
	job->async = raw_event_file(job->bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
	job->ready = ready;
	return job->async < 0 ? job->async : 0;
}

static int job_ready(struct job *job)
{
	return write(job->ready, "", 1) == 1 ? 0 : -errno;
}

/* The device is gone for whoever kicks it; a slot without an object is no harm. */
static bool gone(struct raw_bed *bed)
{
	return raw_kick(&bed->ctx, VHCA_UAR_SLOTS - 1) == -EIO;
}

/* After the end: which step went wrong, or 0. */

static int calls_fail(struct raw_bed *bed)
{
	struct vhca_query_device dev = {};
	struct vhca_query_port port = { .port = 1 };
	struct raw_mr mr = bed->mr;
	uint32_t pd;

	if (raw_ioctl(bed->ctx.fd, VHCA_IOC_QUERY_DEVICE, &dev) != -EIO ||
	    raw_ioctl(bed->ctx.fd, VHCA_IOC_QUERY_PORT, &port) != -EIO ||
	    raw_alloc_pd(bed->ctx.fd, &pd) != -EIO ||
	    raw_reg(&bed->ctx, &mr, VHCA_ACCESS_LOCAL_WRITE) != -EIO ||
	    raw_dereg(&bed->ctx, &bed->mr) != -EIO ||
	    raw_channel(bed->ctx.fd) != -EIO ||
	    raw_state(&bed->p.a) != -EIO ||
	    raw_goto(&bed->p.a, VHCA_QPS_ERR) != -EIO ||
	    raw_destroy_qp(&bed->p.a) != -EIO || raw_destroy_cq(&bed->scq, NULL) != -EIO)
		return 21;
	if (raw_map(bed->ctx.fd, bed->ctx.uar.uar_offset, VHCA_UAR_PAGE_SIZE) || errno != EIO)
		return 22;
	return 0;
}

static int told(struct job *job)
{
	struct vhca_async_event ev;

	do {
		if (raw_read_async(job->async, &ev))
			return 11;
	} while (ev.type != VHCA_EVENT_DEVICE_FATAL);
	if (read(job->async, &ev, sizeof(ev)) != -1 || errno != EIO)
		return 12;
	return 0;
}

static int channel_ends(struct raw_bed *bed)
{
	struct vhca_comp_event ev;
	ssize_t n;

	/* What was queued before may still be read. */
	while ((n = read(bed->channel, &ev, sizeof(ev))) == sizeof(ev))
		;
	return n == -1 && errno == EIO ? 0 : 13;
}

static int ended(struct job *job)
{
	struct raw_bed *bed = &job->bed;
	int err = told(job);

	if (!err)
		err = channel_ends(bed);
	if (!err)
		err = calls_fail(bed);
	if (!err && raw_pinned(getpid()))
		err = 14;
	/* The pages are still there, and nobody looks at them. */
	memset(bed->ctx.uar_page, 0xff, VHCA_UAR_PAGE_SIZE);
	memset(bed->ctx.dbr_page, 0xff, VHCA_UAR_PAGE_SIZE);
	memset(bed->p.a.buf, 0xff, bed->p.a.made.buf_size);
	memset(bed->rcq.ring, 0xff, bed->rcq.made.buf_size);
	munmap(bed->p.a.buf, bed->p.a.made.buf_size);
	if (!err && (close(bed->channel) || close(job->async)))
		err = 15;
	raw_close(&bed->ctx);
	return err;
}

/* Processes that are busy in one way each, until the function is gone. */

/* Take completions until both are there (1), or the function is gone (0). */
static int poll_both(struct raw_bed *bed, int status)
{
	bool sent = false, received = false;
	struct raw_wc wc;
	int i;

	for (i = 1; !sent || !received; i++) {
		wc.status = status;
		sent |= !sent && raw_poll(&bed->scq, &wc);
		received |= !received && raw_poll(&bed->rcq, &wc);
		if (i % 64 == 0 && gone(bed))
			return 0;
		if (wc.status != status)
			return -EPROTO;
	}
	return 1;
}

static int polls(struct job *job)
{
	struct raw_bed *bed = &job->bed;
	int i, err;

	for (i = 0; ; i++) {
		memset(bed->mr.addr, i, 256);
		err = raw_message(&bed->p, &bed->mr, VHCA_WQE_SIGNALED, 256);
		if (!err)
			err = poll_both(bed, VHCA_CQE_SUCCESS);
		if (!i)
			job_ready(job);
		if (!err || err == -EIO)
			return 0;
		if (err < 0)
			return 31;
		if (memcmp(bed->mr.addr, bed->mr.addr + bed->mr.len / 2, 256))
			return 32;
	}
}

/* Blocks in read() of the channel between messages. */
static int waits(struct job *job)
{
	struct raw_bed *bed = &job->bed;
	struct vhca_comp_event ev;
	struct raw_wc wc;
	int i, err;

	for (i = 0; ; i++) {
		err = raw_arm(&bed->rcq, false);
		if (!err)
			err = raw_message(&bed->p, &bed->mr, 0, 64);
		if (err)
			return err == -EIO ? 0 : 33;
		if (read(bed->channel, &ev, sizeof(ev)) < 0)
			return errno == EIO ? 0 : 34;
		bed->rcq.events++;
		while (raw_poll(&bed->rcq, &wc))
			if (wc.status)
				return 35;
		if (!i)
			job_ready(job);
	}
}

/* Blocks in read() of a channel on which nothing comes. */
static int blocks_on_channel(struct job *job)
{
	struct vhca_comp_event ev;

	if (raw_arm(&job->bed.rcq, false) || job_ready(job))
		return 36;
	return read(job->bed.channel, &ev, sizeof(ev)) == -1 && errno == EIO ? 0 : 37;
}

static int blocks_in_poll(struct job *job)
{
	struct pollfd p[2] = {
		{ .fd = job->bed.channel, .events = POLLIN },
		{ .fd = job->async, .events = POLLIN },
	};

	if (raw_arm(&job->bed.rcq, false) || job_ready(job))
		return 38;
	while (!p[0].revents || !p[1].revents)
		if (poll(p, 2, -1) < 1)
			return 39;
	return p[0].revents & POLLERR && p[1].revents & POLLIN ? 0 : 40;
}

static int blocks_on_async(struct job *job)
{
	struct pollfd p = { .fd = job->async, .events = POLLIN };

	return job_ready(job) || poll(&p, 1, -1) != 1;
}

/* Creates, changes and destroys. A call that fails must be one that came too late. */
static int make_and_end(struct raw_bed *bed)
{
	struct raw_mr mr = { .addr = bed->mr.addr, .len = bed->mr.len };
	struct raw_cq cq = {};
	struct raw_qp qp = {};
	int err;

	bed->ctx.slot = 40;
	err = raw_reg(&bed->ctx, &mr, VHCA_ACCESS_LOCAL_WRITE);
	if (!err)
		err = raw_cq(&bed->ctx, &cq, 16, bed->channel);
	if (!err)
		err = raw_qp(&bed->ctx, &qp, &cq, &cq);
	if (!err)
		err = raw_climb(&qp, VHCA_QPS_RTS, raw_attr(bed->ctx.lid, qp.made.qpn));
	if (!err)
		err = raw_resize_cq(&cq, 32);
	if (!err)
		err = raw_destroy_qp(&qp);
	if (!err)
		err = raw_destroy_cq(&cq, NULL);
	if (!err)
		err = raw_dereg(&bed->ctx, &mr);
	if (qp.buf)
		munmap(qp.buf, qp.made.buf_size);
	if (cq.ring)
		munmap(cq.ring, cq.made.buf_size);
	return err;
}

static int makes(struct job *job)
{
	int i, err;

	for (i = 0; ; i++) {
		err = make_and_end(&job->bed);
		if (!i)
			job_ready(job);
		/* A queue that cannot be mapped any more. */
		if (err == -ENOMEM && gone(&job->bed))
			return 0;
		if (err)
			return err == -EIO ? 0 : -err;
	}
}

/* Stores to every page that it has mapped, doorbells above all. */
static int scribbles(struct job *job)
{
	struct raw_bed *bed = &job->bed;
	int i;

	for (i = 0; !gone(bed); i++) {
		memset(bed->ctx.uar_page, i, VHCA_UAR_PAGE_SIZE);
		memset(bed->ctx.dbr_page, i, VHCA_UAR_PAGE_SIZE);
		memset(bed->p.a.buf, i, bed->p.a.made.buf_size);
		memset(bed->rcq.ring, i, bed->rcq.made.buf_size);
		if (!i)
			job_ready(job);
	}
	return 0;
}

/*
 * Sends from the function that stays to the one that goes, until tries are used up;
 * what it has there goes on.
 */
static int sends_across(struct job *job)
{
	struct raw_bed *bed = &job->bed;
	struct raw_ctx here;
	struct raw_mr mr = {};
	struct raw_wc wc;
	struct raw_cq cq;
	struct raw_qp qp;
	int i;

	if (raw_open(&here, !FN) || raw_cq(&here, &cq, 64, VHCA_INVALID_FD) ||
	    raw_qp(&here, &qp, &cq, &cq) || raw_mr(&here, &mr, 8192) ||
	    raw_reset_qp(&bed->p.b) || raw_connect(&qp, &bed->p.b))
		return 41;
	for (i = 0; ; i++) {
		/* The receiver may be gone before the sender hears of it. */
		raw_recv(&bed->p.b, &bed->mr, 0, 64);
		if (raw_send(&qp, VHCA_WQE_SIGNALED, &mr, 0, 64) || raw_wait_wc(&cq, &wc))
			return 42;
		if (wc.status)
			break;
		while (raw_poll(&bed->rcq, &wc))
			;
		if (!i)
			job_ready(job);
	}
	if (wc.status != VHCA_CQE_RETRY_EXC_ERR || !gone(bed))
		return 43;
	if (raw_state(&qp) != VHCA_QPS_ERR || raw_reset_qp(&qp) || raw_destroy_qp(&qp) ||
	    raw_dereg(&here, &mr))
		return 44;
	raw_close(&here);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct job *job);
} jobs[] = {
	{ "polls", polls },
	{ "waits for events", waits },
	{ "blocks on a channel", blocks_on_channel },
	{ "blocks in poll", blocks_in_poll },
	{ "blocks on async events", blocks_on_async },
	{ "makes objects", makes },
	{ "scribbles", scribbles },
	{ "sends across", sends_across },
};

#define JOBS	(sizeof(jobs) / sizeof(jobs[0]))

static int job_run(unsigned int i, int ready)
{
	struct job job = {};
	int err = job_open(&job, ready);

	if (err)
		return 1;
	err = jobs[i].run(&job);
	return err ? err : ended(&job);
}

/* Ways to go, and back */

static int goes_unbound(const char *bdf)
{
	return end_driver("unbind", bdf);
}

static int goes_from_the_bus(const char *bdf)
{
	return end_pci("remove", bdf);
}

static int is_reset(const char *bdf)
{
	return end_pci("reset", bdf);
}

static int breaks(const char *bdf)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/break", FN);
	return end_write(path, "1");
}

static int comes_bound(const char *bdf)
{
	return end_driver("bind", bdf);
}

static int comes_by_a_scan(const char *bdf)
{
	return end_write("/sys/bus/pci/rescan", "1");
}

/* It stays bound, and dead, until it is bound anew. */
static int comes_bound_anew(const char *bdf)
{
	int fd = raw_open_file(FN), err;

	if (fd != -EIO)
		return -EEXIST;
	err = end_driver("unbind", bdf);
	return err ? err : end_driver("bind", bdf);
}

static const struct {
	int (*go)(const char *bdf);
	int (*come)(const char *bdf);
} ways[] = {
	{ goes_unbound, comes_bound },
	{ goes_from_the_bus, comes_by_a_scan },
	{ is_reset, comes_bound_anew },
	{ breaks, comes_bound_anew },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

/* All of them at once. */
struct crowd {
	int ready[2];
	pid_t pid[JOBS];
	struct end_objects before[2];
};

FIXTURE(removal) {
	char bdf[16];
	struct crowd crowd;
};

FIXTURE_SETUP(removal)
{
	int i;

	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	end_bdf(FN, self->bdf, sizeof(self->bdf));
	ASSERT_NE(0, self->bdf[0]);
	ASSERT_EQ(0, pipe(self->crowd.ready));
	for (i = 0; i < 2; i++)
		self->crowd.before[i] = end_objects(i);
}

FIXTURE_TEARDOWN(removal)
{
	raw_engine("inline");
	close(self->crowd.ready[0]);
	close(self->crowd.ready[1]);
}

static void jobs_start(struct __test_metadata *_metadata, struct crowd *c)
{
	unsigned int i;
	char byte;

	for (i = 0; i < JOBS; i++) {
		c->pid[i] = fork();
		if (!c->pid[i])
			_exit(job_run(i, c->ready[1]));
		ASSERT_LT(0, c->pid[i]);
	}
	for (i = 0; i < JOBS; i++) {
		ASSERT_TRUE(raw_readable(c->ready[0], RAW_DEADLINE_MS));
		ASSERT_EQ(1, read(c->ready[0], &byte, 1));
	}
}

static void jobs_end(struct __test_metadata *_metadata, struct crowd *c, int round)
{
	unsigned int i;
	int status;

	for (i = 0; i < JOBS; i++) {
		status = end_reap(c->pid[i], RAW_DEADLINE_MS);
		EXPECT_EQ(0, status) {
			TH_LOG("round %d: one that %s ended with %d", round, jobs[i].name,
			       status);
		}
	}
}

static void function_is_as_new(struct __test_metadata *_metadata, struct crowd *c)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_TRUE(end_left_nothing(i, &c->before[i]));
		EXPECT_EQ(0, RAW_CHILD(end_works(i)));
	}
}

TEST_F_TIMEOUT(removal, all_who_are_busy_are_told_and_left_alone, 600)
{
	int rounds = end_rounds("REMOVALS", 16), i;
	uint64_t seed = end_seed();

	for (i = 0; i < rounds; i++) {
		unsigned int way = i % WAYS;

		ASSERT_EQ(0, raw_engine(i / WAYS % 2 ? "threaded" : "inline"));
		jobs_start(_metadata, &self->crowd);
		usleep(end_below(30000));
		ASSERT_EQ(0, ways[way].go(self->bdf));
		jobs_end(_metadata, &self->crowd, i);
		ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
		ASSERT_EQ(0, ways[way].come(self->bdf));
		ASSERT_TRUE(RAW_WAIT(access("/dev/vhca1", F_OK) == 0));
		function_is_as_new(_metadata, &self->crowd);
	}
	printf("# %d processes each, seed %#llx\n", (int)JOBS, (unsigned long long)seed);
	printf("# figure: %d removals\n", rounds);
}

TEST_F_TIMEOUT(removal, modules_in_use_stay_and_nothing_changes, 120)
{
	static const char * const modules[] = { "vhca", "vhca_device" };
	long long wqes;
	int i, err;

	jobs_start(_metadata, &self->crowd);
	for (i = 0; i < 20; i++) {
		wqes = raw_device_counter(FN, "wqes");
		err = raw_module_unload(modules[i % 2]);
		EXPECT_TRUE(err == -EBUSY || err == -EWOULDBLOCK);
		ASSERT_TRUE(RAW_WAIT(raw_device_counter(FN, "wqes") > wqes));
	}
	printf("# %d unloads refused\n", i);
	ASSERT_EQ(0, goes_unbound(self->bdf));
	jobs_end(_metadata, &self->crowd, 0);
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	ASSERT_EQ(0, comes_bound(self->bdf));
	function_is_as_new(_metadata, &self->crowd);
}

/* Opens and closes, and uses what it opened, until the pipe has an end. */
static int opens(int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct vhca_query_port port;
	int fd, fn = 0;
	uint32_t pd;

	while (!poll(&p, 1, 0)) {
		fd = raw_open_file(fn ^= 1);
		if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV || fd == -EIO)
			continue;
		if (fd < 0)
			return -fd;
		port = (struct vhca_query_port) { .port = 1 };
		if (raw_ioctl(fd, VHCA_IOC_QUERY_PORT, &port) || raw_alloc_pd(fd, &pd))
			return 1;
		close(fd);
	}
	return 0;
}

/* Whoever has a file keeps the module; all others find it there or not. */
TEST_F_TIMEOUT(removal, modules_go_and_come_while_others_open_files, 300)
{
	int rounds = end_rounds("UNLOADS", 6), i, stop[2];
	pid_t pid[3];
	char name[] = "vhca_device";

	ASSERT_EQ(0, pipe(stop));
	for (i = 0; i < 3; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			close(stop[1]);
			_exit(opens(stop[0]));
		}
	}
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(RAW_WAIT(raw_module_unload("vhca") == 0));
		if (i % 2) {
			ASSERT_TRUE(RAW_WAIT(raw_module_unload(name) == 0));
			ASSERT_EQ(0, raw_module_load("device", name, "functions=2"));
		}
		ASSERT_EQ(0, raw_module_load("driver", "vhca", ""));
	}
	close(stop[1]);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, end_reap(pid[i], RAW_DEADLINE_MS));
	printf("# %d unloads under three that open and close\n", rounds);
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	function_is_as_new(_metadata, &self->crowd);
}

TEST_HARNESS_MAIN
