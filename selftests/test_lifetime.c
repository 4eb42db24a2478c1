// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is left when a process, a file or a module goes: nothing.
 *
 * Unloads and loads the modules; leaves them loaded with two functions.
 */
#define _GNU_SOURCE
#include "endings.h"

#include "harness.h"

/* Modules */

static bool loaded(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/module/%s/initstate", name);
	return access(path, F_OK) == 0;
}

static int load_device(void)
{
	return raw_module_load("device", "vhca_device", "functions=2");
}

static int load_driver(void)
{
	return raw_module_load("driver", "vhca", "");
}

static int load_both(void)
{
	int err = loaded("vhca_device") ? 0 : load_device();

	return err || loaded("vhca") ? err : load_driver();
}

/* Both; the end of a file may take its time to be over. */
static int unload_both(void)
{
	int err = RAW_WAIT(end_refs() == 0) ? raw_module_unload("vhca") : -EBUSY;

	return err ? err : raw_module_unload("vhca_device");
}

/* In use: the kernel's word for it differs with what holds the module. */
static bool refused(int err)
{
	return err == -EBUSY || err == -EWOULDBLOCK;
}

FIXTURE(lifetime) {
};

FIXTURE_SETUP(lifetime)
{
	ASSERT_EQ(0, load_both());
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
}

FIXTURE_TEARDOWN(lifetime)
{
	EXPECT_EQ(0, load_both());
}

/*
 * The device has forgotten all: every UAR is to be had, and a UAR is busy as long
 * as it has a QP or CQ.
 */
static int forgotten(void)
{
	struct vhca_query_device q = {};
	int fd = raw_open_file(0), err;
	unsigned int n = 0;

	if (fd < 0)
		return fd;
	err = raw_ioctl(fd, VHCA_IOC_QUERY_DEVICE, &q);
	while (!err && n <= q.max_uar) {
		struct vhca_alloc_uar uar = {};

		err = raw_ioctl(fd, VHCA_IOC_ALLOC_UAR, &uar);
		n += !err;
	}
	close(fd);
	return err == -ENOSPC && n == q.max_uar ? 0 : -EBUSY;
}

/* Modules and files */

TEST_F(lifetime, unload_is_refused_while_a_file_is_open_and_works_after)
{
	int fd = raw_open_file(0);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(refused(raw_module_unload("vhca")));
	EXPECT_TRUE(refused(raw_module_unload("vhca_device")));
	EXPECT_TRUE(loaded("vhca"));
	EXPECT_TRUE(loaded("vhca_device"));
	close(fd);
	EXPECT_EQ(0, unload_both());
	EXPECT_NE(0, access("/dev/vhca0", F_OK));
	ASSERT_EQ(0, load_both());
	EXPECT_EQ(0, access("/dev/vhca1", F_OK));
}

TEST_F(lifetime, unload_is_refused_while_a_channel_is_open)
{
	int fd = raw_open_file(0), ch;

	ASSERT_LE(0, fd);
	ch = raw_channel(fd);
	ASSERT_LE(0, ch);
	close(fd);
	EXPECT_TRUE(refused(raw_module_unload("vhca")));
	close(ch);
	EXPECT_EQ(0, unload_both());
}

TEST_F(lifetime, unload_is_refused_while_something_is_mapped)
{
	struct raw_ctx ctx;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	close(ctx.fd);
	munmap(ctx.dbr_page, VHCA_UAR_PAGE_SIZE);
	EXPECT_TRUE(refused(raw_module_unload("vhca")));
	EXPECT_TRUE(refused(raw_module_unload("vhca_device")));
	munmap(ctx.uar_page, VHCA_UAR_PAGE_SIZE);
	EXPECT_EQ(0, unload_both());
}

TEST_F(lifetime, either_module_may_come_and_go_first)
{
	struct raw_ctx ctx;

	/* The device goes and comes under the driver. */
	ASSERT_EQ(0, raw_module_unload("vhca_device"));
	EXPECT_NE(0, access("/dev/vhca0", F_OK));
	ASSERT_EQ(0, load_device());
	ASSERT_EQ(0, raw_open(&ctx, 1));
	raw_close(&ctx);
	/* The driver comes first. */
	ASSERT_EQ(0, unload_both());
	ASSERT_EQ(0, load_driver());
	ASSERT_EQ(0, load_device());
	ASSERT_EQ(0, raw_open(&ctx, 1));
	raw_close(&ctx);
}

TEST_F(lifetime, functions_is_a_number_from_1_to_32)
{
	ASSERT_EQ(0, unload_both());
	EXPECT_GT(0, raw_module_load("device", "vhca_device", "functions=0"));
	EXPECT_GT(0, raw_module_load("device", "vhca_device", "functions=33"));
	ASSERT_EQ(0, raw_module_load("device", "vhca_device", "functions=32"));
	ASSERT_EQ(0, load_driver());
	EXPECT_EQ(0, access("/dev/vhca31", F_OK));
	EXPECT_NE(0, access("/dev/vhca32", F_OK));
	EXPECT_EQ(0, unload_both());
}

/* Processes */

/* Traffic until the end; a child's life. */
static int traffic(int ready)
{
	struct raw_bed bed;

	if (raw_bed(&bed, 0))
		return 1;
	if (write(ready, "", 1) != 1)
		return 2;
	for (;;) {
		if (raw_bed_fire(&bed) || raw_bed_events(&bed) < 0)
			return 3;
	}
}

TEST_F(lifetime, a_process_killed_in_traffic_leaves_nothing_behind)
{
	int round, i, ready[2];
	pid_t pid[3];
	char c;

	ASSERT_EQ(0, pipe(ready));
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 3; i++) {
			pid[i] = fork();
			if (!pid[i])
				_exit(traffic(ready[1]));
		}
		for (i = 0; i < 3; i++)
			ASSERT_EQ(1, read(ready[0], &c, 1));
		usleep(rand() % 20000);
		for (i = 0; i < 3; i++)
			kill(pid[i], SIGKILL);
		for (i = 0; i < 3; i++)
			ASSERT_EQ(256 + SIGKILL, raw_wait_child(pid[i]));
		ASSERT_EQ(0, forgotten());
	}
}

/* What several files may share, and a queue in memory of the user. */
static int leave_shared(struct raw_ctx *ctx, struct raw_cq *cq)
{
	int dir = open("/", O_RDONLY | O_CLOEXEC);
	struct vhca_mcast mc = { .gid = { 0xff, 0x12, [15] = 1 } };
	struct vhca_open_qp open_qp = {};
	struct raw_qp qp, ud, mem;
	struct raw_ctx other;
	struct raw_srq srq;
	uint32_t xrcd;

	if (raw_open_xrcd(ctx, dir, O_CREAT, &xrcd) ||
	    raw_qp_of(ctx, &qp, VHCA_QPT_XRC_RECV, NULL, xrcd) ||
	    raw_xrc_srq(ctx, &srq, cq, xrcd) || raw_srq(ctx, &srq, 0) ||
	    raw_qp_srq(ctx, &ud, VHCA_QPT_UD, cq, srq.made.srqn))
		return 1;
	mc.qpn = ud.made.qpn;
	if (raw_ioctl(ctx->fd, VHCA_IOC_ATTACH_MCAST, &mc))
		return 1;
	mem = (struct raw_qp) { .made = { .buf_addr = (uintptr_t)mmap(NULL, 4096,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) } };
	if (raw_make_qp(ctx, &mem, cq, cq))
		return 1;
	open_qp.qpn = qp.made.qpn;
	return raw_open(&other, ctx->fn) || raw_open_xrcd(&other, dir, 0, &open_qp.xrcd) ||
	       raw_ioctl(other.fd, VHCA_IOC_OPEN_QP, &open_qp);
}

static int leave_all(void)
{
	struct raw_bed bed;

	if (raw_bed(&bed, 0) || raw_bed_fire(&bed) || leave_shared(&bed.ctx, &bed.rcq))
		return 1;
	/* Some of everything: unread events, waiting sends, posted receives. */
	raw_recv(&bed.p.b, &bed.mr, 0, 64);
	raw_send(&bed.p.b, 0, &bed.mr, 0, 64);
	raw_goto(&bed.mark.a, VHCA_QPS_ERR);
	return 0;
}

TEST_F(lifetime, exit_without_any_clean_up_leaves_nothing_behind)
{
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, RAW_CHILD(leave_all()));
	EXPECT_EQ(0, forgotten());
	EXPECT_TRUE(RAW_WAIT(end_refs() == 0));
}

/* A context of which the ends are let go in the order that @order's bits give. */
static int close_in_order(int order)
{
	struct raw_bed bed;
	int fd[3], async, i, n;

	if (raw_bed(&bed, 0))
		return 1;
	async = raw_event_file(bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
	if (async < 0 || raw_bed_fire(&bed))
		return 2;
	munmap(bed.scq.ring, bed.scq.made.buf_size);
	munmap(bed.mark_cq.ring, bed.mark_cq.made.buf_size);
	munmap(bed.p.a.buf, bed.p.a.made.buf_size);
	munmap(bed.p.b.buf, bed.p.b.made.buf_size);
	munmap(bed.mark.a.buf, bed.mark.a.made.buf_size);
	munmap(bed.mark.b.buf, bed.mark.b.made.buf_size);
	munmap(bed.ctx.dbr_page, VHCA_UAR_PAGE_SIZE);
	fd[0] = bed.ctx.fd;
	fd[1] = bed.channel;
	fd[2] = async;
	/* Three descriptors in one of six orders, the mappings before, between or after. */
	for (n = 0; n < 4; n++) {
		if (n == order / 6) {
			munmap(bed.rcq.ring, bed.rcq.made.buf_size);
			munmap(bed.ctx.uar_page, VHCA_UAR_PAGE_SIZE);
		}
		if (n == 3)
			break;
		i = n == 0 ? order % 3 : n == 1 ? (order % 3 + 1 + order % 6 / 3) % 3 :
		    (order % 3 + 2 - order % 6 / 3) % 3;
		if (close(fd[i]))
			return 3;
	}
	return 0;
}

TEST_F(lifetime, descriptors_and_mappings_go_in_any_order)
{
	int order;

	for (order = 0; order < 24; order++) {
		ASSERT_EQ(0, close_in_order(order));
		ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
		ASSERT_EQ(0, forgotten());
	}
}

TEST_F(lifetime, a_child_keeps_the_context_alive)
{
	struct raw_bed bed;
	int go[2];
	char c;
	pid_t pid;

	ASSERT_EQ(0, raw_bed(&bed, 0));
	ASSERT_EQ(0, pipe(go));
	pid = fork();
	if (!pid) {
		close(go[1]);
		if (read(go[0], &c, 1))
			_exit(1);
		_exit(raw_state(&bed.p.a));
	}
	munmap(bed.ctx.uar_page, VHCA_UAR_PAGE_SIZE);
	close(bed.ctx.fd);
	close(bed.channel);
	close(go[1]);
	EXPECT_EQ(VHCA_QPS_RTS, raw_wait_child(pid));
}

/* Removal in use */

TEST_F(lifetime, removal_in_use_is_told_and_kills_nobody)
{
	struct vhca_query_port port = { .port = 1 };
	struct vhca_alloc_dm dm = { .length = 8192 };
	struct vhca_reg_special_mr dm_mr = { .length = 8192 };
	struct vhca_async_event ev;
	struct raw_bed bed;
	char name[16];
	void *dm_map;
	int async;

	ASSERT_EQ(0, raw_bed(&bed, 1));
	ASSERT_EQ(0, raw_ioctl(bed.ctx.fd, VHCA_IOC_ALLOC_DM, &dm));
	dm_map = raw_map(bed.ctx.fd, dm.map_offset, dm.map_size);
	ASSERT_NE(NULL, dm_map);
	memset(dm_map, 1, 8192);
	dm_mr.dm = dm.dm;
	dm_mr.pd = bed.ctx.pd;
	ASSERT_EQ(0, raw_ioctl(bed.ctx.fd, VHCA_IOC_REG_DM_MR, &dm_mr));
	async = raw_event_file(bed.ctx.fd, VHCA_IOC_OPEN_ASYNC);
	ASSERT_LE(0, async);
	end_bdf(1, name, sizeof(name));
	ASSERT_EQ(0, end_driver("unbind", name));

	ASSERT_EQ(0, raw_read_async(async, &ev));
	EXPECT_EQ(VHCA_EVENT_DEVICE_FATAL, (int)ev.type);
	EXPECT_EQ(-EIO, raw_ioctl(bed.ctx.fd, VHCA_IOC_QUERY_PORT, &port));
	EXPECT_EQ(-EIO, raw_state(&bed.p.a));
	EXPECT_EQ(-EIO, raw_kick(&bed.ctx, 1));
	/* Doorbells, queues and device memory can still be written. */
	memset(dm_map, 0xff, 8192);
	memset(bed.p.a.buf, 0xff, bed.p.a.made.buf_size);
	memset(bed.ctx.uar_page, 0, VHCA_UAR_PAGE_SIZE);
	memset(bed.ctx.dbr_page, 0xff, VHCA_UAR_PAGE_SIZE);
	EXPECT_EQ(-1, read(bed.channel, &ev, sizeof(ev)));
	EXPECT_EQ(EIO, errno);

	ASSERT_EQ(0, end_driver("bind", name));
	/* The old file stays dead, a new one works. */
	EXPECT_EQ(-EIO, raw_state(&bed.p.a));
	{
		struct raw_bed fresh;
		int fn;

		/* Its number may be another as long as the old file is open. */
		for (fn = 1; fn < 4 && raw_bed(&fresh, fn); fn++)
			;
		ASSERT_GT(4, fn);
		EXPECT_EQ(0, raw_bed_fire(&fresh));
		EXPECT_EQ(1, raw_bed_events(&fresh));
	}
}

/* Two files share a domain and a QP in it; one closes before the device goes. */
TEST_F(lifetime, removal_ends_what_is_shared_and_what_is_pinned)
{
	int dir = open("/", O_RDONLY | O_CLOEXEC), fn;
	struct raw_bed bed, fresh;
	struct raw_ctx late;
	uint32_t xrcd;
	char name[16];

	/* A removal before this one may have left the number to nobody. */
	for (fn = 1; fn < 4 && raw_bed(&bed, fn); fn++)
		;
	ASSERT_GT(4, fn);
	ASSERT_EQ(0, leave_shared(&bed.ctx, &bed.rcq));
	ASSERT_EQ(0, leave_shared(&bed.ctx, &bed.rcq));
	ASSERT_EQ(0, raw_open(&late, fn));
	ASSERT_EQ(0, raw_open_xrcd(&late, dir, 0, &xrcd));
	EXPECT_LT(0, raw_pinned(getpid()));
	end_bdf(fn, name, sizeof(name));
	ASSERT_EQ(0, end_driver("unbind", name));
	EXPECT_EQ(0, raw_pinned(getpid()));
	EXPECT_EQ(-EIO, raw_open_xrcd(&late, dir, O_CREAT, &xrcd));
	EXPECT_EQ(-EIO, raw_free(late.fd, VHCA_IOC_CLOSE_XRCD, xrcd));
	raw_close(&bed.ctx);
	ASSERT_EQ(0, end_driver("bind", name));
	for (fn = 1; fn < 4 && raw_bed(&fresh, fn); fn++)
		;
	ASSERT_GT(4, fn);
	/* The domain of the old device is not that of the new. */
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&fresh.ctx, dir, 0, &xrcd));
	EXPECT_EQ(0, raw_open_xrcd(&fresh.ctx, dir, O_CREAT | O_EXCL, &xrcd));
	raw_close(&late);
	EXPECT_EQ(0, raw_open_xrcd(&fresh.ctx, dir, 0, &xrcd));
	close(dir);
}

/* Memory */

static long long mem_kib(const char *key)
{
	char line[128];
	long long kib = -1;
	size_t len = strlen(key);
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, len) && line[len] == ':')
			kib = atoll(line + len + 1);
	}
	if (f)
		fclose(f);
	return kib;
}

/* Memory in use that a leak would be found in, when all that can be given back was. */
static long long used(const char *key)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		return -1;
	close(fd);
	return strcmp(key, "MemAvailable") ? mem_kib(key) : -mem_kib(key);
}

static int cycle(void)
{
	int err = RAW_CHILD(leave_all());

	if (!err)
		err = unload_both();
	return err ? err : load_both();
}

TEST_F_TIMEOUT(lifetime, a_hundred_loads_and_unloads_leave_no_memory_behind, 900)
{
	/*
	 * Allowed growth in KiB: less than a hundred times a page, where noise is
	 * below that. MemAvailable also loses page tables: the kernel splits its
	 * mapping of memory where a function's BARs are, and does not join it again.
	 * Smaller leaks are for kmemleak.
	 */
	static const struct {
		const char *key;
		long long allowed;
	} watch[] = {
		{ "MemAvailable", 32768 }, { "SUnreclaim", 1024 }, { "VmallocUsed", 390 },
		{ "PageTables", 390 }, { "KernelStack", 390 }, { "Percpu", 390 },
	};
	long long before[6];
	int i, w;

	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, cycle());
	for (w = 0; w < 6; w++)
		before[w] = used(watch[w].key);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, cycle());
	for (w = 0; w < 6; w++) {
		long long grown;

		/* What is freed late is not lost. */
		RAW_WAIT((grown = used(watch[w].key) - before[w]) <= watch[w].allowed);
		TH_LOG("%s grew by %lld KiB", watch[w].key, grown);
		EXPECT_GE(watch[w].allowed, grown);
	}
}

TEST_HARNESS_MAIN
