// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user can take: objects, against the module parameters of the driver;
 * pinned memory, against that of the process that pinned it; memory of the kernel,
 * against its control group.
 */
#include "mem.h"

#include <sys/socket.h>

#include "harness.h"

#define USED	"/sys/kernel/debug/vhca/vhca0/limits"

/* Files of one number, or of lines that begin with a name */

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static long long get(const char *path)
{
	long long val = -1;
	FILE *f = fopen(path, "r");

	if (f && fscanf(f, "%lld", &val) != 1)
		val = -1;
	if (f)
		fclose(f);
	return val;
}

static void param_path(char *path, size_t size, const char *prefix, const char *name)
{
	snprintf(path, size, "/sys/module/vhca/parameters/%s%s", prefix, name);
}

static long long param(const char *prefix, const char *name)
{
	char path[96];

	param_path(path, sizeof(path), prefix, name);
	return get(path);
}

static int set_param(const char *prefix, const char *name, long long val)
{
	char path[96], text[24];

	param_path(path, sizeof(path), prefix, name);
	snprintf(text, sizeof(text), "%lld", val);
	return put(path, text);
}

/* Objects */

/* Two files; what is made is made in the first. */
struct bed {
	struct raw_ctx ctx;
	struct raw_ctx other;
	struct raw_cq cq;
	struct raw_qp ud;
	struct raw_mr mr;
};

static int make_context(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	int fd = raw_open_file(0);

	(void)ctx;
	(void)bed;
	*n = fd;
	return fd < 0 ? fd : 0;
}

static int close_file(struct raw_ctx *ctx, struct bed *bed, uint32_t n)
{
	(void)ctx;
	(void)bed;
	return close(n);
}

static int make_uar(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct vhca_alloc_uar uar = {};
	int err = raw_ioctl(ctx->fd, VHCA_IOC_ALLOC_UAR, &uar);

	(void)bed;
	*n = uar.uar;
	return err;
}

static int make_pd(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	(void)bed;
	return raw_alloc_pd(ctx->fd, n);
}

static int make_mr(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct raw_mr mr = bed->mr;
	int err = raw_reg(ctx, &mr, VHCA_ACCESS_LOCAL_WRITE);

	*n = mr.lkey;
	return err;
}

static int make_mw(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct vhca_alloc_mw mw = { .pd = ctx->pd, .type = 2 };
	int err = raw_ioctl(ctx->fd, VHCA_IOC_ALLOC_MW, &mw);

	(void)bed;
	*n = mw.rkey;
	return err;
}

static int make_dm(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct vhca_alloc_dm dm = { .length = 1 };
	int err = raw_ioctl(ctx->fd, VHCA_IOC_ALLOC_DM, &dm);

	(void)bed;
	*n = dm.dm;
	return err;
}

static int make_cq(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct raw_cq cq;
	int err = raw_cq(ctx, &cq, 16, VHCA_INVALID_FD);

	(void)bed;
	*n = cq.made.cqn;
	return err;
}

static int end_cq(struct raw_ctx *ctx, struct bed *bed, uint32_t n)
{
	struct vhca_destroy_cq d = { .cqn = n };

	(void)bed;
	return raw_ioctl(ctx->fd, VHCA_IOC_DESTROY_CQ, &d);
}

static int make_srq(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct raw_srq srq;
	int err = raw_srq(ctx, &srq, 0);

	(void)bed;
	*n = srq.made.srqn;
	return err;
}

static int end_srq(struct raw_ctx *ctx, struct bed *bed, uint32_t n)
{
	struct vhca_destroy_srq d = { .srqn = n };

	(void)bed;
	return raw_ioctl(ctx->fd, VHCA_IOC_DESTROY_SRQ, &d);
}

/* Of the kind that needs no CQ, so that either file can make one. */
static int make_qp(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	struct raw_qp qp;
	uint32_t xrcd;
	int err = raw_open_xrcd(ctx, VHCA_INVALID_FD, O_CREAT, &xrcd);

	(void)bed;
	if (!err)
		err = raw_qp_of(ctx, &qp, VHCA_QPT_XRC_RECV, NULL, xrcd);
	*n = qp.made.qpn;
	return err;
}

static int end_qp(struct raw_ctx *ctx, struct bed *bed, uint32_t n)
{
	struct vhca_destroy_qp d = { .qpn = n };

	(void)bed;
	return raw_ioctl(ctx->fd, VHCA_IOC_DESTROY_QP, &d);
}

static int make_xrcd(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	(void)bed;
	return raw_open_xrcd(ctx, VHCA_INVALID_FD, O_CREAT, n);
}

static int mcast(struct bed *bed, unsigned long call, uint32_t n)
{
	struct vhca_mcast m = { .gid = { 0xff, [14] = n >> 8, n }, .qpn = bed->ud.made.qpn };

	return raw_ioctl(bed->ctx.fd, call, &m);
}

/* Only the first file has a QP for it. */
static int make_mcast(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	static uint32_t next;

	(void)ctx;
	*n = next++;
	return mcast(bed, VHCA_IOC_ATTACH_MCAST, *n);
}

static int end_mcast(struct raw_ctx *ctx, struct bed *bed, uint32_t n)
{
	(void)ctx;
	return mcast(bed, VHCA_IOC_DETACH_MCAST, n);
}

static int make_event_file(struct raw_ctx *ctx, struct bed *bed, uint32_t *n)
{
	int fd = raw_channel(ctx->fd);

	(void)bed;
	*n = fd;
	return fd < 0 ? fd : 0;
}

FIXTURE(limit) {
	struct bed bed;
	long long max;
	long long file_max;
};

/*
 * @end: destroys; or @call does, with the number.
 * @has: how many the first file has at the start; negative: it is limited by device only.
 * @err: what the calls say of the limit, when that is not ENOMEM.
 * @query: offset in struct vhca_query_device, or 0.
 */
FIXTURE_VARIANT(limit) {
	const char *name;
	int (*make)(struct raw_ctx *ctx, struct bed *bed, uint32_t *n);
	int (*end)(struct raw_ctx *ctx, struct bed *bed, uint32_t n);
	unsigned long call;
	int has;
	int err;
	size_t query;
};

#define QUERY(field)	.query = offsetof(struct vhca_query_device, field)

FIXTURE_VARIANT_ADD(limit, context) {
	.name = "context", .make = make_context, .end = close_file, .has = -1,
};

FIXTURE_VARIANT_ADD(limit, uar) {
	.name = "uar", .make = make_uar, .call = VHCA_IOC_FREE_UAR, .has = 1,
	.err = -ENOSPC, QUERY(max_uar),
};

FIXTURE_VARIANT_ADD(limit, pd) {
	.name = "pd", .make = make_pd, .call = VHCA_IOC_FREE_PD, .has = 1, QUERY(max_pd),
};

FIXTURE_VARIANT_ADD(limit, mr) {
	.name = "mr", .make = make_mr, .call = VHCA_IOC_DEREG_MR, .has = 1, QUERY(max_mr),
};

FIXTURE_VARIANT_ADD(limit, mw) {
	.name = "mw", .make = make_mw, .call = VHCA_IOC_FREE_MW, QUERY(max_mw),
};

FIXTURE_VARIANT_ADD(limit, dm) {
	.name = "dm", .make = make_dm, .call = VHCA_IOC_FREE_DM, .err = -ENOSPC,
};

FIXTURE_VARIANT_ADD(limit, cq) {
	.name = "cq", .make = make_cq, .end = end_cq, .has = 1, QUERY(max_cq),
};

FIXTURE_VARIANT_ADD(limit, srq) {
	.name = "srq", .make = make_srq, .end = end_srq, QUERY(max_srq),
};

FIXTURE_VARIANT_ADD(limit, qp) {
	.name = "qp", .make = make_qp, .end = end_qp, .has = 1, QUERY(max_qp),
};

FIXTURE_VARIANT_ADD(limit, xrcd) {
	.name = "xrcd", .make = make_xrcd, .call = VHCA_IOC_CLOSE_XRCD, QUERY(max_xrcd),
};

FIXTURE_VARIANT_ADD(limit, mcast) {
	.name = "mcast", .make = make_mcast, .end = end_mcast,
	.err = -ENOSPC, QUERY(max_mcast_attach),
};

FIXTURE_VARIANT_ADD(limit, event_file) {
	.name = "event_file", .make = make_event_file, .end = close_file,
};

FIXTURE_SETUP(limit)
{
	struct bed *bed = &self->bed;

	self->max = param("max_", variant->name);
	self->file_max = param("file_max_", variant->name);
	ASSERT_LE(0, self->max);
	ASSERT_EQ(0, raw_open(&bed->ctx, 0));
	ASSERT_EQ(0, raw_open(&bed->other, 0));
	ASSERT_EQ(0, raw_mr(&bed->ctx, &bed->mr, 8192));
	ASSERT_EQ(0, raw_cq(&bed->ctx, &bed->cq, 16, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_qp_of(&bed->ctx, &bed->ud, VHCA_QPT_UD, &bed->cq, 0));
}

FIXTURE_TEARDOWN(limit)
{
	set_param("max_", variant->name, self->max);
	set_param("file_max_", variant->name, self->file_max);
	raw_close(&self->bed.ctx);
	raw_close(&self->bed.other);
}

static int refusal(const struct _fixture_variant_limit *v)
{
	return v->err ? v->err : -ENOMEM;
}

static int end(const struct _fixture_variant_limit *v, struct raw_ctx *ctx, struct bed *bed,
	       uint32_t n)
{
	return v->end ? v->end(ctx, bed, n) : raw_free(ctx->fd, v->call, n);
}

static long long used(const struct _fixture_variant_limit *v)
{
	return raw_counter(USED, v->name);
}

TEST_F(limit, of_a_device_is_reached_and_one_that_goes_makes_room)
{
	struct bed *bed = &self->bed;
	long long before = used(variant);
	uint32_t n, more;
	int i;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, set_param("max_", variant->name, before + 1));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, variant->make(&bed->ctx, bed, &n));
		EXPECT_EQ(before + 1, used(variant));
		EXPECT_EQ(refusal(variant), variant->make(&bed->ctx, bed, &more));
		if (variant->make != make_mcast)
			EXPECT_EQ(refusal(variant), variant->make(&bed->other, bed, &more));
		EXPECT_EQ(before + 1, used(variant));
		EXPECT_EQ(0, end(variant, &bed->ctx, bed, n));
		EXPECT_EQ(before, used(variant));
	}
}

TEST_F(limit, of_a_file_is_reached_and_is_not_that_of_another)
{
	struct bed *bed = &self->bed;
	uint32_t n, more;
	int i;

	if (variant->has < 0)
		SKIP(return, "a file is one");
	ASSERT_EQ(0, set_param("file_max_", variant->name, variant->has + 1));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, variant->make(&bed->ctx, bed, &n));
		EXPECT_EQ(refusal(variant), variant->make(&bed->ctx, bed, &more));
		if (variant->make != make_mcast && variant->make != make_qp) {
			ASSERT_EQ(0, variant->make(&bed->other, bed, &more));
			EXPECT_EQ(0, end(variant, &bed->other, bed, more));
		}
		EXPECT_EQ(0, end(variant, &bed->ctx, bed, n));
	}
}

TEST_F(limit, below_what_there_is_takes_nothing_away)
{
	struct bed *bed = &self->bed;
	long long before = used(variant);
	uint32_t n, more;

	ASSERT_EQ(0, variant->make(&bed->ctx, bed, &n));
	ASSERT_EQ(0, set_param("max_", variant->name, 0));
	EXPECT_EQ(refusal(variant), variant->make(&bed->ctx, bed, &more));
	EXPECT_EQ(0, end(variant, &bed->ctx, bed, n));
	EXPECT_EQ(before, used(variant));
	EXPECT_EQ(refusal(variant), variant->make(&bed->ctx, bed, &more));
}

/* Two of them in a file of this process, which leaves without a word. */
static int make_and_leave(const struct _fixture_variant_limit *v)
{
	struct bed bed = {};
	uint32_t n;

	if (raw_open(&bed.ctx, 0) || raw_mr(&bed.ctx, &bed.mr, 8192) ||
	    raw_cq(&bed.ctx, &bed.cq, 16, VHCA_INVALID_FD) ||
	    raw_qp_of(&bed.ctx, &bed.ud, VHCA_QPT_UD, &bed.cq, 0))
		return 1;
	return v->make(&bed.ctx, &bed, &n) || v->make(&bed.ctx, &bed, &n) ? 2 : 0;
}

TEST_F(limit, counts_nothing_of_a_file_that_was_closed)
{
	long long before = used(variant);

	EXPECT_EQ(0, RAW_CHILD(make_and_leave(variant)));
	EXPECT_EQ(before, used(variant));
}

TEST_F(limit, is_what_query_device_tells)
{
	struct vhca_query_device q = {};
	struct bed *bed = &self->bed;

	if (!variant->query)
		SKIP(return, "it tells none of these");
	ASSERT_EQ(0, set_param("max_", variant->name, 3000000));
	ASSERT_EQ(0, set_param("file_max_", variant->name, 11));
	ASSERT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(11u, *(uint32_t *)((char *)&q + variant->query));
	ASSERT_EQ(0, set_param("max_", variant->name, 7));
	ASSERT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(7u, *(uint32_t *)((char *)&q + variant->query));
	/* More than the device has, there is not. */
	ASSERT_EQ(0, set_param("max_", variant->name, 3000000));
	ASSERT_EQ(0, set_param("file_max_", variant->name, 3000000));
	ASSERT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_GT(3000000u, *(uint32_t *)((char *)&q + variant->query));
}

/* One kind each, where it is another thing */

FIXTURE(limits) {
	struct mem_bed bed;
};

FIXTURE_SETUP(limits)
{
	ASSERT_EQ(0, mem_bed(&self->bed));
}

FIXTURE_TEARDOWN(limits)
{
	raw_close(&self->bed.ctx);
}

TEST_F(limits, device_memory_counts_by_its_pages)
{
	struct vhca_alloc_dm dm = { .length = 3 * 4096 + 1 }, more = { .length = 4097 };
	long long before = raw_counter(USED, "dm");
	long long max = param("file_max_", "dm");
	struct vhca_query_device q = {};
	int fd = self->bed.ctx.fd;

	ASSERT_EQ(0, set_param("file_max_", "dm", 5));
	EXPECT_EQ(0, raw_ioctl(fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(5u * 4096, q.dm_size);
	EXPECT_EQ(0, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &dm));
	EXPECT_EQ(before + 4, raw_counter(USED, "dm"));
	EXPECT_EQ(-ENOSPC, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &more));
	EXPECT_EQ(0, raw_free(fd, VHCA_IOC_FREE_DM, dm.dm));
	EXPECT_EQ(0, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &more));
	EXPECT_EQ(before + 2, raw_counter(USED, "dm"));
	set_param("file_max_", "dm", max);
}

TEST_F(limits, a_group_joined_twice_counts_once_and_goes_with_the_qp)
{
	struct vhca_mcast m = { .gid = { 0xff, 0x0e } };
	long long before = raw_counter(USED, "mcast");
	struct mem_bed *bed = &self->bed;
	struct raw_qp ud;
	int i;

	ASSERT_EQ(0, raw_qp_of(&bed->ctx, &ud, VHCA_QPT_UD, &bed->scq, 0));
	m.qpn = ud.made.qpn;
	for (i = 0; i < 6; i++) {
		m.gid[15] = i / 2;
		EXPECT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_ATTACH_MCAST, &m));
	}
	EXPECT_EQ(before + 3, raw_counter(USED, "mcast"));
	EXPECT_EQ(0, raw_ioctl(bed->ctx.fd, VHCA_IOC_DETACH_MCAST, &m));
	EXPECT_EQ(-EINVAL, raw_ioctl(bed->ctx.fd, VHCA_IOC_DETACH_MCAST, &m));
	EXPECT_EQ(before + 2, raw_counter(USED, "mcast"));
	EXPECT_EQ(0, raw_destroy_qp(&ud));
	EXPECT_EQ(before, raw_counter(USED, "mcast"));
}

TEST_F(limits, a_channel_that_outlives_its_file_counts_until_it_is_closed)
{
	long long before = raw_counter(USED, "event_file");
	struct raw_ctx ctx;
	int channel;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	channel = raw_channel(ctx.fd);
	ASSERT_LE(0, channel);
	raw_close(&ctx);
	EXPECT_EQ(before + 1, raw_counter(USED, "event_file"));
	close(channel);
	EXPECT_EQ(before, raw_counter(USED, "event_file"));
}

TEST_F(limits, a_call_that_fails_counts_nothing)
{
	struct vhca_reg_mr bad_mr = { .addr = 4096, .length = 4096, .pd = self->bed.ctx.pd };
	struct vhca_create_cq bad_cq = { .cqe = 16, .channel_fd = 12345 };
	long long mr = raw_counter(USED, "mr"), cq = raw_counter(USED, "cq");
	struct vhca_alloc_dm bad_dm = { .length = 1ull << 40 };
	long long dm = raw_counter(USED, "dm");
	int fd = self->bed.ctx.fd;

	EXPECT_EQ(-EFAULT, raw_ioctl(fd, VHCA_IOC_REG_MR, &bad_mr));
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_CQ, &bad_cq));
	EXPECT_EQ(-ENOSPC, raw_ioctl(fd, VHCA_IOC_ALLOC_DM, &bad_dm));
	EXPECT_EQ(mr, raw_counter(USED, "mr"));
	EXPECT_EQ(cq, raw_counter(USED, "cq"));
	EXPECT_EQ(dm, raw_counter(USED, "dm"));
}

TEST_F(limits, a_region_registered_anew_counts_once)
{
	struct vhca_rereg_mr r = {
		.lkey = self->bed.mr.lkey, .flags = VHCA_REREG_ACCESS, .access = MEM_ALL,
	};
	long long before = raw_counter(USED, "mr");

	EXPECT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_REREG_MR, &r));
	EXPECT_EQ(before, raw_counter(USED, "mr"));
	EXPECT_EQ(0, raw_free(self->bed.ctx.fd, VHCA_IOC_DEREG_MR, r.lkey));
	EXPECT_EQ(before - 1, raw_counter(USED, "mr"));
}

/* Pinned memory */

/*
 * A process that shares the file: it does @first, tells the number that came of it,
 * and leaves when the other end of its socket is closed.
 */
struct helper {
	pid_t pid;
	int sock;
};

static struct helper helper(struct raw_ctx *ctx, int64_t (*first)(struct raw_ctx *ctx),
			    int64_t *number)
{
	struct helper h = { .pid = -1, .sock = -1 };
	int pair[2];
	int64_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return h;
	h.pid = fork();
	if (!h.pid) {
		close(pair[0]);
		n = first(ctx);
		if (write(pair[1], &n, sizeof(n)) != sizeof(n))
			_exit(1);
		_exit(read(pair[1], &n, 1) != 0);
	}
	close(pair[1]);
	h.sock = pair[0];
	if (read(h.sock, number, sizeof(*number)) != sizeof(*number))
		*number = -EPROTO;
	return h;
}

static int helper_end(struct helper *h)
{
	close(h->sock);
	return raw_wait_child(h->pid);
}

#define MIB	1048576

static int64_t register_one_mib(struct raw_ctx *ctx)
{
	struct raw_mr mr = {};
	int err = raw_mr(ctx, &mr, MIB);

	return err ? err : (int64_t)mr.lkey;
}

static int64_t nothing(struct raw_ctx *ctx)
{
	return ctx->fd;
}

TEST_F(limits, memory_counts_in_the_process_that_pinned_it)
{
	long long before = raw_pinned(getpid());
	struct raw_ctx *ctx = &self->bed.ctx;
	struct helper h;
	int64_t lkey;

	h = helper(ctx, register_one_mib, &lkey);
	ASSERT_LT(0, lkey);
	EXPECT_EQ(1024, raw_pinned(h.pid));
	EXPECT_EQ(before, raw_pinned(getpid()));
	/* Another takes the region away: who had it pinned gets it back. */
	EXPECT_EQ(0, raw_free(ctx->fd, VHCA_IOC_DEREG_MR, lkey));
	EXPECT_EQ(0, raw_pinned(h.pid));
	EXPECT_EQ(before, raw_pinned(getpid()));
	EXPECT_EQ(0, helper_end(&h));
}

TEST_F(limits, memory_of_a_process_that_died_stays_pinned_and_counts_nowhere)
{
	long long before = raw_pinned(getpid()), mrs = raw_counter(USED, "mr");
	struct raw_ctx *ctx = &self->bed.ctx;
	struct helper h;
	int64_t lkey;

	h = helper(ctx, register_one_mib, &lkey);
	ASSERT_LT(0, lkey);
	EXPECT_EQ(0, helper_end(&h));
	EXPECT_EQ(before, raw_pinned(getpid()));
	EXPECT_EQ(mrs + 1, raw_counter(USED, "mr"));
	EXPECT_EQ(0, raw_free(ctx->fd, VHCA_IOC_DEREG_MR, lkey));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_F(limits, the_last_close_by_another_process_gives_it_back)
{
	long long before = raw_pinned(getpid());
	struct raw_ctx ctx;
	struct helper h;
	int64_t fd;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	h = helper(&ctx, nothing, &fd);
	ASSERT_EQ(ctx.fd, fd);
	ASSERT_LT(0, register_one_mib(&ctx));
	raw_close(&ctx);
	EXPECT_EQ(before + 1024, raw_pinned(getpid()));
	EXPECT_EQ(0, helper_end(&h));
	EXPECT_EQ(before, raw_pinned(getpid()));
}

TEST_F(limits, memory_pinned_before_an_exec_counts_no_more)
{
	struct raw_ctx *ctx = &self->bed.ctx;
	long long before = raw_pinned(getpid());
	char out[64] = {}, *argv[] = { "grep", "VmPin", "/proc/self/status", NULL };
	int64_t lkey = -1;
	int fds[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(0, fcntl(ctx->fd, F_SETFD, 0));
	pid = fork();
	if (!pid) {
		lkey = register_one_mib(ctx);
		if (write(fds[1], &lkey, sizeof(lkey)) != sizeof(lkey))
			_exit(1);
		dup2(fds[1], 1);
		execvp(argv[0], argv);
		_exit(2);
	}
	close(fds[1]);
	ASSERT_EQ((ssize_t)sizeof(lkey), read(fds[0], &lkey, sizeof(lkey)));
	ASSERT_LT(0, lkey);
	ASSERT_LT(0, read(fds[0], out, sizeof(out) - 1));
	EXPECT_EQ(0, atoi(strpbrk(out, "0123456789")));
	EXPECT_EQ(0, raw_wait_child(pid));
	EXPECT_EQ(0, raw_free(ctx->fd, VHCA_IOC_DEREG_MR, lkey));
	EXPECT_EQ(before, raw_pinned(getpid()));
	close(fds[0]);
}

static int64_t cq_of_own_memory(struct raw_ctx *ctx)
{
	void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw_cq cq = {
		.made = {
			.cqe = MIB / VHCA_CQE_SIZE, .channel_fd = VHCA_INVALID_FD,
			.buf_addr = (uintptr_t)p,
		},
	};
	int err = raw_make_cq(ctx, &cq);

	return err ? err : (int64_t)cq.made.cqn;
}

TEST_F(limits, a_queue_in_memory_of_the_user_counts_like_a_region)
{
	struct vhca_destroy_cq d = {};
	struct raw_ctx *ctx = &self->bed.ctx;
	long long before = raw_pinned(getpid());
	struct helper h;
	int64_t cqn;

	h = helper(ctx, cq_of_own_memory, &cqn);
	ASSERT_LT(0, cqn);
	EXPECT_EQ(1024, raw_pinned(h.pid));
	EXPECT_EQ(before, raw_pinned(getpid()));
	d.cqn = cqn;
	EXPECT_EQ(0, raw_ioctl(ctx->fd, VHCA_IOC_DESTROY_CQ, &d));
	EXPECT_EQ(0, raw_pinned(h.pid));
	EXPECT_EQ(before, raw_pinned(getpid()));
	EXPECT_EQ(0, helper_end(&h));
}

TEST_F(limits, a_region_beyond_the_limit_pins_nothing)
{
	long long before = raw_pinned(getpid()), max = param("file_max_", "mr");
	struct raw_mr mr;

	ASSERT_EQ(0, set_param("file_max_", "mr", 1));
	EXPECT_EQ(-ENOMEM, raw_mr(&self->bed.ctx, &mr, MIB));
	EXPECT_EQ(before, raw_pinned(getpid()));
	set_param("file_max_", "mr", max);
}

/* Memory of the kernel */

#define GROUP	"/sys/fs/cgroup/vhca-limits"

static long long charged(const char *what)
{
	return raw_counter(GROUP "/memory.stat", what);
}

/* What a group is charged for comes with some delay, and in batches. */
#define SLACK	(64 * 4096)

/* Is the growth since @before of what the group is charged for at least @bytes? */
static bool grew(long long before, long long bytes)
{
	return RAW_WAIT(charged("kernel") - before >= bytes);
}

static int in_group(void)
{
	long long before;
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;
	uint32_t xrcd;
	int i;

	if (put(GROUP "/cgroup.procs", "0") || raw_open(&ctx, 0))
		return 1;
	/* A ring of 8 MiB. */
	before = charged("kernel");
	if (raw_cq(&ctx, &cq, 131072, VHCA_INVALID_FD))
		return 2;
	if (!grew(before, 8 * MIB))
		return 3;
	munmap(cq.ring, cq.made.buf_size);
	if (raw_destroy_cq(&cq, NULL) ||
	    !RAW_WAIT(charged("kernel") - before < 8 * MIB - SLACK))
		return 4;
	/* The device's part of a QP alone is larger. */
	before = charged("kernel");
	if (raw_open_xrcd(&ctx, VHCA_INVALID_FD, O_CREAT, &xrcd))
		return 5;
	for (i = 0; i < 256; i++)
		if (raw_qp_of(&ctx, &qp, VHCA_QPT_XRC_RECV, NULL, xrcd))
			return 6;
	return grew(before, 256 * 2048) ? 0 : 7;
}

TEST(memory_of_the_kernel_is_charged_to_the_callers_control_group)
{
	if (put("/sys/fs/cgroup/cgroup.subtree_control", "+memory") || mkdir(GROUP, 0755))
		SKIP(return, "no memory control groups");
	EXPECT_EQ(0, RAW_CHILD(in_group()));
	EXPECT_TRUE(RAW_WAIT(!rmdir(GROUP)));
}

TEST_HARNESS_MAIN
