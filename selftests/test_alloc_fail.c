// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation of every call fails once: the first, the second, and so on until
 * the call gets by without meeting the failure. Each time it says ENOMEM and nothing
 * has changed, or it did without. The same for a probe and for the driver's start.
 *
 * Needs a kernel that lets allocations fail (/proc/self/fail-nth, failslab,
 * fail_page_alloc). It also fails copies from and to user space, where it can: EFAULT.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/epoll.h>

#include "endings.h"

#include "harness.h"

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define NONE		100000	/* more than any call allocates */

/* The switch */

static int nth = -1;

static bool can_fail(void)
{
	return !access(FAIL_NTH, W_OK) && !access("/sys/kernel/debug/failslab", X_OK);
}

/*
 * Entries of /proc can be made at any time: the kernel's interrupt code, when it could not
 * make one, warns that it cannot take it away.
 */
static int choose_caches(void)
{
	DIR *dir = opendir("/sys/kernel/slab");
	struct dirent *d;
	char path[300];

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", d->d_name);
		end_write(path, strcmp(d->d_name, "proc_dir_entry") ? "1" : "0");
	}
	return dir ? closedir(dir) : -errno;
}

/* Allocations that may sleep fail, too, and single pages; the log is not told. */
static int let_fail(void)
{
	static const char * const settings[][2] = {
		{ "failslab/cache-filter", "Y" },
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[96];
	unsigned int i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", settings[i][0]);
		if (!access(path, W_OK) && end_write(path, settings[i][1]))
			return -EIO;
	}
	if (choose_caches())
		return -EIO;
	nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	return nth < 0 ? -errno : 0;
}

/* From now on the @n-th allocation of this thread fails. */
static void fail_at(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(nth, text, len, 0) != len)
		abort();
}

/* How many were still missing; 0: it has failed. The end of it. */
static int fail_left(void)
{
	char text[16] = {};
	int left = 1;

	/* The copy of the answer may be what fails. */
	if (pread(nth, text, sizeof(text) - 1, 0) > 0)
		left = atoi(text);
	while (pwrite(nth, "0", 1, 0) != 1)
		;
	return left;
}

/* What the calls are made on */

struct bed {
	struct raw_ctx	ctx;
	int		channel;
	int		fd;		/* that a call opened */
	int		dir;		/* for XRC */
	struct raw_cq	cq;
	struct raw_qp	qp;
	struct raw_qp	ud;
	struct raw_qp	xrc;
	struct raw_srq	srq;
	struct raw_mr	mr;
	struct raw_mr	big;		/* more pages than one list holds */
	uint32_t	xrcd;
	uint32_t	dm;
	uint32_t	number;		/* that a call gave */
	uint8_t		*mem;
	size_t		mem_len;
	struct raw_ctx	other;		/* another file of the same device */
	uint32_t	other_xrcd;
};

static void *memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int bed_open(struct bed *b)
{
	struct vhca_alloc_dm dm = { .length = 8192 };
	int err = raw_open(&b->ctx, 0);

	b->mem_len = 1 << 20;
	b->mem = memory(b->mem_len);
	b->big.len = 5 << 20;
	b->big.addr = memory(b->big.len);
	b->dir = open("/", O_RDONLY | O_CLOEXEC);
	b->channel = err ? err : raw_channel(b->ctx.fd);
	if (b->channel < 0 || b->dir < 0 || !b->mem || !b->big.addr)
		return -ENOMEM;
	err = raw_cq(&b->ctx, &b->cq, 64, b->channel);
	if (!err)
		err = raw_qp(&b->ctx, &b->qp, &b->cq, &b->cq);
	if (!err)
		err = raw_qp_of(&b->ctx, &b->ud, VHCA_QPT_UD, &b->cq, 0);
	if (!err)
		err = raw_open_xrcd(&b->ctx, b->dir, O_CREAT, &b->xrcd);
	if (!err)
		err = raw_qp_of(&b->ctx, &b->xrc, VHCA_QPT_XRC_RECV, NULL, b->xrcd);
	if (!err)
		err = raw_srq(&b->ctx, &b->srq, 0);
	if (!err)
		err = raw_mr(&b->ctx, &b->mr, 16384);
	if (!err)
		err = raw_ioctl(b->ctx.fd, VHCA_IOC_ALLOC_DM, &dm);
	b->dm = dm.dm;
	if (!err)
		err = raw_open(&b->other, 0);
	return err ? err : raw_open_xrcd(&b->other, b->dir, 0, &b->other_xrcd);
}

/* Calls; those that make something note its number, for those that end it. */

static int object(struct bed *b, unsigned long ioc)
{
	struct vhca_object o = {};
	int err = raw_ioctl(b->ctx.fd, ioc, &o);

	b->number = o.number;
	return err;
}

static int end_object(struct bed *b, unsigned long ioc)
{
	return raw_free(b->ctx.fd, ioc, b->number);
}

static int open_file(struct bed *b)
{
	b->fd = raw_open_file(0);
	return b->fd < 0 ? b->fd : 0;
}

/* Also the last close of a file: it cannot fail. */
static int close_file(struct bed *b)
{
	return close(b->fd) ? -errno : 0;
}

static int event_file(struct bed *b, unsigned long ioc)
{
	b->fd = raw_event_file(b->ctx.fd, ioc);
	return b->fd < 0 ? b->fd : 0;
}

static int make_channel(struct bed *b)
{
	return event_file(b, VHCA_IOC_CREATE_CHANNEL);
}

static int make_async(struct bed *b)
{
	return event_file(b, VHCA_IOC_OPEN_ASYNC);
}

static int make_pd(struct bed *b)
{
	return object(b, VHCA_IOC_ALLOC_PD);
}

static int end_pd(struct bed *b)
{
	return end_object(b, VHCA_IOC_FREE_PD);
}

static int make_uar(struct bed *b)
{
	struct vhca_alloc_uar u = {};
	int err = raw_ioctl(b->ctx.fd, VHCA_IOC_ALLOC_UAR, &u);

	b->number = u.uar;
	return err;
}

static int end_uar(struct bed *b)
{
	return end_object(b, VHCA_IOC_FREE_UAR);
}

static int reg(struct bed *b, struct raw_mr *mr)
{
	int err = raw_reg(&b->ctx, mr, VHCA_ACCESS_LOCAL_WRITE);

	b->number = mr->lkey;
	return err;
}

static int make_mr(struct bed *b)
{
	struct raw_mr mr = { .addr = b->mem, .len = 8192 };

	return reg(b, &mr);
}

static int make_big_mr(struct bed *b)
{
	struct raw_mr mr = b->big;

	return reg(b, &mr);
}

static int special_mr(struct bed *b, unsigned long ioc, uint32_t dm, uint64_t length)
{
	struct vhca_reg_special_mr r = { .pd = b->ctx.pd, .dm = dm, .length = length };
	int err = raw_ioctl(b->ctx.fd, ioc, &r);

	b->number = r.lkey;
	return err;
}

static int make_null_mr(struct bed *b)
{
	return special_mr(b, VHCA_IOC_REG_NULL_MR, 0, 0);
}

static int make_dm_mr(struct bed *b)
{
	return special_mr(b, VHCA_IOC_REG_DM_MR, b->dm, 4096);
}

static int end_mr(struct bed *b)
{
	return end_object(b, VHCA_IOC_DEREG_MR);
}

static int make_dm(struct bed *b)
{
	struct vhca_alloc_dm dm = { .length = 8192 };
	int err = raw_ioctl(b->ctx.fd, VHCA_IOC_ALLOC_DM, &dm);

	b->number = dm.dm;
	return err;
}

static int end_dm(struct bed *b)
{
	return end_object(b, VHCA_IOC_FREE_DM);
}

static int make_mw(struct bed *b)
{
	struct vhca_alloc_mw mw = { .pd = b->ctx.pd, .type = 2 };
	int err = raw_ioctl(b->ctx.fd, VHCA_IOC_ALLOC_MW, &mw);

	b->number = mw.rkey;
	return err;
}

static int end_mw(struct bed *b)
{
	return end_object(b, VHCA_IOC_FREE_MW);
}

static int create_cq(struct bed *b, uint32_t cqe, uint8_t *mem)
{
	struct vhca_create_cq c = {
		.cqe = cqe, .channel_fd = b->channel, .buf_addr = (uintptr_t)mem,
		.uar = b->ctx.uar.uar, .slot = b->ctx.slot,
	};
	int err = raw_ioctl(b->ctx.fd, VHCA_IOC_CREATE_CQ, &c);

	b->number = c.cqn;
	return err;
}

static int make_cq(struct bed *b)
{
	return create_cq(b, 16, NULL);
}

static int make_big_cq(struct bed *b)
{
	return create_cq(b, 1 << 13, NULL);
}

static int make_users_cq(struct bed *b)
{
	return create_cq(b, 256, b->mem);
}

static int end_cq(struct bed *b)
{
	struct vhca_destroy_cq d = { .cqn = b->number };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_DESTROY_CQ, &d);
}

static int create_srq(struct bed *b, struct vhca_create_srq c)
{
	int err;

	c.pd = b->ctx.pd;
	c.uar = b->ctx.uar.uar;
	c.slot = b->ctx.slot;
	c.shift = 8;
	c.sge_shift = 2;
	err = raw_ioctl(b->ctx.fd, VHCA_IOC_CREATE_SRQ, &c);
	b->number = c.srqn;
	return err;
}

static int make_srq(struct bed *b)
{
	return create_srq(b, (struct vhca_create_srq) {});
}

static int make_xrc_srq(struct bed *b)
{
	return create_srq(b, (struct vhca_create_srq) {
		.type = 1, .xrcd = b->xrcd, .cqn = b->cq.made.cqn,
	});
}

static int end_srq(struct bed *b)
{
	struct vhca_destroy_srq d = { .srqn = b->number };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_DESTROY_SRQ, &d);
}

static int create_qp(struct bed *b, uint32_t type, uint8_t *mem)
{
	struct vhca_create_qp c = {
		.type = type, .pd = b->ctx.pd, .send_cqn = b->cq.made.cqn,
		.recv_cqn = b->cq.made.cqn, .uar = b->ctx.uar.uar, .slot = b->ctx.slot,
		.sq_shift = 7, .rq_shift = 6, .rq_sge_shift = 2, .buf_addr = (uintptr_t)mem,
	};
	int err;

	if (type == VHCA_QPT_XRC_RECV)
		c = (struct vhca_create_qp) { .type = type, .xrcd = b->xrcd };
	err = raw_ioctl(b->ctx.fd, VHCA_IOC_CREATE_QP, &c);
	b->number = c.qpn;
	return err;
}

static int make_rc_qp(struct bed *b)
{
	return create_qp(b, VHCA_QPT_RC, NULL);
}

static int make_users_qp(struct bed *b)
{
	return create_qp(b, VHCA_QPT_UD, b->mem);
}

static int make_xrc_qp(struct bed *b)
{
	return create_qp(b, VHCA_QPT_XRC_RECV, NULL);
}

static int end_qp(struct bed *b)
{
	struct vhca_destroy_qp d = { .qpn = b->number };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_DESTROY_QP, &d);
}

static int open_others_qp(struct bed *b)
{
	struct vhca_open_qp o = { .qpn = b->xrc.made.qpn, .xrcd = b->other_xrcd };

	return raw_ioctl(b->other.fd, VHCA_IOC_OPEN_QP, &o);
}

static int end_others_qp(struct bed *b)
{
	struct vhca_destroy_qp d = { .qpn = b->xrc.made.qpn };

	return raw_ioctl(b->other.fd, VHCA_IOC_DESTROY_QP, &d);
}

static int make_xrcd(struct bed *b)
{
	return raw_open_xrcd(&b->ctx, VHCA_INVALID_FD, 0, &b->number);
}

static int end_xrcd(struct bed *b)
{
	return end_object(b, VHCA_IOC_CLOSE_XRCD);
}

static int mcast(struct bed *b, unsigned long ioc)
{
	struct vhca_mcast m = { .gid = { 0xff, 0x12, [15] = 7 }, .qpn = b->ud.made.qpn };

	return raw_ioctl(b->ctx.fd, ioc, &m);
}

static int attach(struct bed *b)
{
	return mcast(b, VHCA_IOC_ATTACH_MCAST);
}

static int detach(struct bed *b)
{
	return mcast(b, VHCA_IOC_DETACH_MCAST);
}

/* That takes memory, too. */
static void unmap(void *p, size_t len)
{
	while (munmap(p, len))
		;
}

static int map_ring(struct bed *b)
{
	void *p = raw_map(b->ctx.fd, b->cq.made.buf_offset, b->cq.made.buf_size);
	int err = p ? 0 : -errno;

	if (p) {
		((volatile uint8_t *)p)[0];
		unmap(p, b->cq.made.buf_size);
	}
	return err;
}

/* A fault that cannot get a page table is tried again. */
static int map_uar(struct bed *b)
{
	void *p = raw_map(b->ctx.fd, b->ctx.uar.uar_offset, VHCA_UAR_PAGE_SIZE);
	int err = p ? 0 : -errno;

	if (p) {
		((volatile uint8_t *)p)[VHCA_UAR_PAGE_SIZE - 1];
		unmap(p, VHCA_UAR_PAGE_SIZE);
	}
	return err;
}

/* Calls that change something and can be repeated. */

static int query_device(struct bed *b)
{
	struct vhca_query_device q = {};

	return raw_ioctl(b->ctx.fd, VHCA_IOC_QUERY_DEVICE, &q);
}

static int query_port(struct bed *b)
{
	struct vhca_query_port q = { .port = 1 };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_QUERY_PORT, &q);
}

static int query_gid(struct bed *b)
{
	struct vhca_query_gid q = { .port = 1 };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_QUERY_GID, &q);
}

static int query_mr(struct bed *b)
{
	struct vhca_query_mr q = { .lkey = b->mr.lkey };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_QUERY_MR, &q);
}

static int rereg_access(struct bed *b)
{
	struct vhca_rereg_mr r = {
		.lkey = b->mr.lkey, .flags = VHCA_REREG_ACCESS,
		.access = VHCA_ACCESS_LOCAL_WRITE,
	};

	return raw_ioctl(b->ctx.fd, VHCA_IOC_REREG_MR, &r);
}

static int rereg_memory(struct bed *b)
{
	struct vhca_rereg_mr r = {
		.lkey = b->mr.lkey, .flags = VHCA_REREG_TRANSLATION,
		.addr = (uintptr_t)b->mr.addr, .iova = (uintptr_t)b->mr.addr,
		.length = b->mr.len,
	};

	return raw_ioctl(b->ctx.fd, VHCA_IOC_REREG_MR, &r);
}

static int resize_cq(struct bed *b)
{
	struct vhca_resize_cq r = { .cqn = b->cq.made.cqn, .cqe = 4096 };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_RESIZE_CQ, &r);
}

static int modify_cq(struct bed *b)
{
	return raw_moderate(&b->cq, 0, 0);
}

static int modify_srq(struct bed *b)
{
	struct vhca_modify_srq m = { .srqn = b->srq.made.srqn, .limit = 1 };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_MODIFY_SRQ, &m);
}

static int query_srq(struct bed *b)
{
	struct vhca_modify_srq m = { .srqn = b->srq.made.srqn };

	return raw_ioctl(b->ctx.fd, VHCA_IOC_QUERY_SRQ, &m);
}

static int query_qp(struct bed *b)
{
	struct vhca_modify_qp q;

	return raw_query_qp(&b->qp, &q);
}

/* All steps; from wherever the last try has left it. */
static int modify_qp(struct bed *b)
{
	int err = raw_goto(&b->qp, VHCA_QPS_RESET);

	return err ? err : raw_climb(&b->qp, VHCA_QPS_RTS,
				     raw_attr(b->ctx.lid, b->qp.made.qpn));
}

static int kick(struct bed *b)
{
	return raw_kick(&b->ctx, b->qp.made.slot);
}

static int poll_channel(struct bed *b)
{
	struct pollfd p = { .fd = b->channel, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -errno : 0;
}

static int sigio(struct bed *b)
{
	int on = fcntl(b->channel, F_SETFL, O_ASYNC);
	int err = on ? -errno : 0;

	while (fcntl(b->channel, F_SETFL, 0))
		;
	return err;
}

/*
 * @end is what undoes @make; without it @make can be repeated. @known: also when
 * @make has not told what it made.
 */
static const struct call {
	const char *name;
	int (*make)(struct bed *b);
	int (*end)(struct bed *b);
	bool known;
} calls[] = {
	{ "open, close", open_file, close_file, false },
	{ "channel", make_channel, close_file, false },
	{ "async events", make_async, close_file, false },
	{ "PD", make_pd, end_pd, false },
	{ "UAR", make_uar, end_uar, false },
	{ "MR", make_mr, end_mr, false },
	{ "large MR", make_big_mr, end_mr, false },
	{ "null MR", make_null_mr, end_mr, false },
	{ "MR of device memory", make_dm_mr, end_mr, false },
	{ "device memory", make_dm, end_dm, false },
	{ "window", make_mw, end_mw, false },
	{ "CQ", make_cq, end_cq, false },
	{ "large CQ", make_big_cq, end_cq, false },
	{ "CQ in memory of the user", make_users_cq, end_cq, false },
	{ "SRQ", make_srq, end_srq, false },
	{ "XRC SRQ", make_xrc_srq, end_srq, false },
	{ "RC QP", make_rc_qp, end_qp, false },
	{ "UD QP in memory of the user", make_users_qp, end_qp, false },
	{ "XRC QP", make_xrc_qp, end_qp, false },
	{ "XRC QP of another file", open_others_qp, end_others_qp, true },
	{ "XRC domain", make_xrcd, end_xrcd, false },
	{ "multicast", attach, detach, true },
	{ "map a ring", map_ring, NULL, false },
	{ "map a UAR", map_uar, NULL, false },
	{ "query device", query_device, NULL, false },
	{ "query port", query_port, NULL, false },
	{ "query GID", query_gid, NULL, false },
	{ "query MR", query_mr, NULL, false },
	{ "rereg MR, access", rereg_access, NULL, false },
	{ "rereg MR, memory", rereg_memory, NULL, false },
	{ "modify CQ", modify_cq, NULL, false },
	{ "modify SRQ", modify_srq, NULL, false },
	{ "query SRQ", query_srq, NULL, false },
	{ "query QP", query_qp, NULL, false },
	{ "modify QP", modify_qp, NULL, false },
	{ "kick", kick, NULL, false },
	{ "poll", poll_channel, NULL, false },
	{ "SIGIO", sigio, NULL, false },
	{ "resize CQ", resize_cq, NULL, false },
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

FIXTURE(alloc_fail) {
	struct bed bed;
	struct end_objects alone;
	struct end_objects before;
	long long pins;
	int failed;		/* allocations */
	int copies;		/* of what is user space's */
	int without;		/* that a call did without */
};

FIXTURE_SETUP(alloc_fail)
{
	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	self->alone = end_objects(0);
	ASSERT_EQ(0, let_fail());
}

FIXTURE_TEARDOWN(alloc_fail)
{
	close(nth);
	EXPECT_EQ(0, RAW_CHILD(end_works(0)));
	EXPECT_TRUE(end_left_nothing(0, &self->alone));
}

struct sweep {
	const char *name;
	int (*call)(struct bed *b);
	int (*undo)(struct bed *b);
	bool known;		/* what there is to undo */
};

/*
 * One try, in which the @n-th allocation fails. Return: 1 when that was not reached
 * and the call did all it should; 0 after a failure; negative when it went wrong.
 */
static int try_one(struct __test_metadata *_metadata, struct bed *b, const struct sweep *s,
		   const struct end_objects *before, int n, int *err)
{
	struct end_objects now;
	bool same;
	int left;

	fail_at(n);
	*err = s->call(b);
	left = fail_left();
	if (*err && (left || (*err != -ENOMEM && *err != -EFAULT))) {
		TH_LOG("%s: try %d: %s", s->name, n, strerror(-*err));
		return -1;
	}
	now = end_objects(0);
	same = end_same(before, &now);
	if (*err == -ENOMEM && !same) {
		TH_LOG("%s: try %d failed, and left\n%s%s", s->name, n, now.device, now.driver);
		return -1;
	}
	/* Done, but for telling: what was made stays, nobody knows its number. */
	if (*err == -EFAULT && !same && !s->known && s->undo) {
		b->ctx.slot++;
		return 0;
	}
	if ((!*err || (*err == -EFAULT && !same)) && s->undo && s->undo(b)) {
		TH_LOG("%s: try %d cannot be undone", s->name, n);
		return -1;
	}
	return left ? 1 : 0;
}

static void sweep(struct __test_metadata *_metadata, FIXTURE_DATA(alloc_fail) * self,
		  struct sweep s)
{
	int n, done = 0, err;

	for (n = 1; !done && n < NONE; n++) {
		struct end_objects before = end_objects(0);

		done = try_one(_metadata, &self->bed, &s, &before, n, &err);
		ASSERT_LE(0, done);
		if (done)
			break;
		self->failed += err == -ENOMEM;
		self->copies += err == -EFAULT;
		self->without += !err;
	}
	TH_LOG("%s: %d", s.name, n - 1);
}

TEST_F_TIMEOUT(alloc_fail, each_call_fails_cleanly_at_each_allocation, 600)
{
	char name[64];
	unsigned int i;

	ASSERT_EQ(0, bed_open(&self->bed));
	for (i = 0; i < CALLS; i++) {
		const struct call *c = &calls[i];

		sweep(_metadata, self, (struct sweep) { c->name, c->make, c->end, c->known });
		ASSERT_EQ(0, c->make(&self->bed));
		if (!c->end)
			continue;
		snprintf(name, sizeof(name), "end of %s", c->name);
		sweep(_metadata, self, (struct sweep) { name, c->end, c->make, true });
		ASSERT_EQ(0, c->end(&self->bed));
	}
	printf("# figure: %d allocation failures injected\n"
	       "# %d copies failed, %d more failures that calls did without\n",
	       self->failed, self->copies, self->without);
	raw_close(&self->bed.other);
	close(self->bed.channel);
	munmap(self->bed.cq.ring, self->bed.cq.made.buf_size);
	munmap(self->bed.qp.buf, self->bed.qp.made.buf_size);
	munmap(self->bed.ud.buf, self->bed.ud.made.buf_size);
	munmap(self->bed.srq.buf, self->bed.srq.made.buf_size);
	raw_close(&self->bed.ctx);
	EXPECT_TRUE(end_left_nothing(0, &self->alone));
	EXPECT_EQ(0, raw_pinned(getpid()));
}

/* Messages and events have all the memory that they need. */
TEST_F_TIMEOUT(alloc_fail, no_message_is_lost, 120)
{
	struct vhca_comp_event ev;
	struct raw_bed bed;
	int n, err;

	ASSERT_EQ(0, raw_bed(&bed, 0));
	for (n = 1; n < 30; n++) {
		ASSERT_EQ(0, raw_arm(&bed.rcq, false));
		fail_at(n);
		err = raw_message(&bed.p, &bed.mr, VHCA_WQE_SIGNALED, 512);
		fail_left();
		ASSERT_EQ(0, err);
		{
			struct raw_wc wc;

			ASSERT_EQ(0, raw_wait_wc(&bed.scq, &wc));
			ASSERT_EQ(0, raw_wait_wc(&bed.rcq, &wc));
		}
		ASSERT_EQ(1, raw_readable(bed.channel, RAW_DEADLINE_MS));
		ASSERT_EQ((ssize_t)sizeof(ev), read(bed.channel, &ev, sizeof(ev)));
		bed.rcq.events++;
	}
	end_bed_close(&bed);
}

/*
 * As many tries as are worth their time, from the first to the last allocation of
 * something that makes hundreds; ALLOC_FAIL_TRIES= makes others.
 */
static int stride(int total)
{
	int tries = end_rounds("ALLOC_FAIL_TRIES", 20);

	return total > tries ? total / tries : 1;
}

/* Binds function 1, whose @n-th allocation fails; what is left of @n, or negative. */
static int bind_at(int n, const char *bdf, int *err)
{
	fail_at(n);
	*err = end_driver("bind", bdf);
	return fail_left();
}

TEST_F_TIMEOUT(alloc_fail, a_probe_fails_cleanly_at_each_allocation, 600)
{
	struct end_objects gone;
	int n, left, err, total, step, failed = 0;
	char bdf[16], now[256];

	end_bdf(1, bdf, sizeof(bdf));
	ASSERT_EQ(0, end_driver("unbind", bdf));
	gone = end_objects(1);
	left = bind_at(NONE, bdf, &err);
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, end_driver("unbind", bdf));
	total = NONE - left;
	step = stride(total);
	for (n = 1 + end_below(step); n <= total; n += step) {
		left = bind_at(n, bdf, &err);
		if (err) {
			failed++;
			EXPECT_EQ(0, left);
			EXPECT_NE(0, access("/dev/vhca1", F_OK));
			end_read("/sys/kernel/debug/vhca_device/1/objects", now, sizeof(now));
			EXPECT_STREQ(gone.device, now);
		} else {
			ASSERT_EQ(0, end_driver("unbind", bdf));
		}
	}
	ASSERT_EQ(0, end_driver("bind", bdf));
	EXPECT_EQ(0, RAW_CHILD(end_works(1)));
	printf("# a probe makes %d allocations\n# figure: %d allocation failures injected\n",
	       total, failed);
}

/* The same for the start of the driver; 1 when it started and is gone again. */
static int load_at(int n, int *left)
{
	int err;

	fail_at(n);
	err = raw_module_load("driver", "vhca", "");
	*left = fail_left();
	if (err)
		return 0;
	return raw_module_unload("vhca") ? -EBUSY : 1;
}

/*
 * Functions are probed meanwhile. One that is not does not keep the driver from
 * starting. The device's module has no such test: the kernel's pci_create_root_bus()
 * uses memory after it was freed when it fails half-way.
 */
TEST_F_TIMEOUT(alloc_fail, driver_fails_to_start_cleanly, 600)
{
	int n, left, ret, total, step, failed = 0;

	ASSERT_EQ(0, raw_module_unload("vhca"));
	ASSERT_EQ(1, load_at(NONE, &left));
	total = NONE - left;
	step = stride(total);
	for (n = 1 + end_below(step); n <= total; n += step) {
		ret = load_at(n, &left);
		ASSERT_LE(0, ret);
		failed += !ret;
	}
	printf("# the driver's start makes %d allocations\n"
	       "# figure: %d allocation failures injected\n", total, failed);
	ASSERT_EQ(0, raw_module_load("driver", "vhca", ""));
}

int main(int argc, char **argv)
{
	if (!can_fail()) {
		printf("TAP version 13\n1..0 # SKIP no allocation can be made to fail here\n");
		return KSFT_SKIP;
	}
	end_seed();
	return test_harness_run(argc, argv);
}
