// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of all kinds are made and ended, again and again: the memory that is in
 * use, the pages that are pinned and the counts of objects are then what they were
 * when everything had been made a few times.
 *
 * test_churn --objects N makes so many objects instead of 5000. Most of the time goes
 * into grace periods, a dozen a cycle.
 */
#define _GNU_SOURCE
#include "endings.h"
#include "slabs.h"

#include "harness.h"

#define WARM_UP		20
#define CYCLE_OBJECTS	25	/* see cycle() */

static int cycles = 200;

/* Cycles. Each takes what it has made away again. */

struct churn {
	struct raw_ctx	ctx;
	int		channel;
	int		dir;
	uint8_t		*mem;		/* 64 KiB */
	struct raw_cq	cq;		/* that QPs complete to */
	struct raw_qp	ud;
};

#define MEM_LEN	65536

static int churn_open(struct churn *c)
{
	int err = raw_open(&c->ctx, 0);

	if (err)
		return err;
	c->channel = raw_channel(c->ctx.fd);
	c->dir = open("/", O_RDONLY | O_CLOEXEC);
	c->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->channel < 0 || c->dir < 0 || c->mem == MAP_FAILED)
		return -ENOMEM;
	err = raw_cq(&c->ctx, &c->cq, 64, c->channel);
	return err ? err : raw_qp_of(&c->ctx, &c->ud, VHCA_QPT_UD, &c->cq, 0);
}

static void churn_close(struct churn *c)
{
	munmap(c->ud.buf, c->ud.made.buf_size);
	munmap(c->cq.ring, c->cq.made.buf_size);
	munmap(c->mem, MEM_LEN);
	close(c->dir);
	close(c->channel);
	raw_close(&c->ctx);
}

/* Two MRs and a window. */
static int churn_regions(struct churn *c)
{
	struct raw_mr mr = { .addr = c->mem, .len = MEM_LEN };
	struct vhca_rereg_mr rereg = {
		.flags = VHCA_REREG_TRANSLATION | VHCA_REREG_ACCESS,
		.addr = (uintptr_t)c->mem, .iova = (uintptr_t)c->mem, .length = 4096,
		.access = VHCA_ACCESS_LOCAL_WRITE,
	};
	struct vhca_reg_special_mr null = { .pd = c->ctx.pd };
	struct vhca_alloc_mw mw = { .pd = c->ctx.pd, .type = 2 };
	int err = raw_reg(&c->ctx, &mr, VHCA_ACCESS_LOCAL_WRITE);

	rereg.lkey = mr.lkey;
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_REREG_MR, &rereg);
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_REG_NULL_MR, &null);
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_ALLOC_MW, &mw);
	if (!err)
		err = raw_free(c->ctx.fd, VHCA_IOC_FREE_MW, mw.rkey);
	if (!err)
		err = raw_free(c->ctx.fd, VHCA_IOC_DEREG_MR, null.lkey);
	return err ? err : raw_free(c->ctx.fd, VHCA_IOC_DEREG_MR, rereg.lkey);
}

/* A piece, and an MR of it. */
static int churn_device_memory(struct churn *c)
{
	struct vhca_alloc_dm dm = { .length = 4096 };
	struct vhca_reg_special_mr r = { .pd = c->ctx.pd, .length = 4096 };
	uint8_t *p = NULL;
	int err = raw_ioctl(c->ctx.fd, VHCA_IOC_ALLOC_DM, &dm);

	r.dm = dm.dm;
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_REG_DM_MR, &r);
	if (!err)
		p = raw_map(c->ctx.fd, dm.map_offset, dm.map_size);
	if (!p)
		return err ? err : -ENOMEM;
	*p = 1;
	munmap(p, dm.map_size);
	err = raw_free(c->ctx.fd, VHCA_IOC_DEREG_MR, r.lkey);
	return err ? err : raw_free(c->ctx.fd, VHCA_IOC_FREE_DM, dm.dm);
}

/* A PD, an XRC domain, a UAR page, and a member of a multicast group. */
static int churn_domains(struct churn *c)
{
	struct vhca_mcast m = { .gid = { 0xff, 0x12, [15] = 3 }, .qpn = c->ud.made.qpn };
	struct vhca_alloc_uar uar = {};
	uint32_t pd, xrcd;
	int err = raw_alloc_pd(c->ctx.fd, &pd);

	if (!err)
		err = raw_open_xrcd(&c->ctx, c->dir, O_CREAT, &xrcd);
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_ALLOC_UAR, &uar);
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_ATTACH_MCAST, &m);
	if (!err)
		err = raw_ioctl(c->ctx.fd, VHCA_IOC_DETACH_MCAST, &m);
	if (!err)
		err = raw_free(c->ctx.fd, VHCA_IOC_FREE_UAR, uar.uar);
	if (!err)
		err = raw_free(c->ctx.fd, VHCA_IOC_CLOSE_XRCD, xrcd);
	return err ? err : raw_free(c->ctx.fd, VHCA_IOC_FREE_PD, pd);
}

/* A channel and an async event file. */
static int churn_files(struct churn *c)
{
	int channel = raw_channel(c->ctx.fd);
	int async = raw_event_file(c->ctx.fd, VHCA_IOC_OPEN_ASYNC);

	if (channel < 0 || async < 0)
		return -ENOMEM;
	close(async);
	return close(channel);
}

/*
 * A CQ, an SRQ and a QP: queues in memory of the kernel, and a QP that was on its way
 * through its states.
 */
static int churn_queues(struct churn *c)
{
	struct raw_cq cq;
	struct raw_qp qp;
	struct raw_srq srq;
	uint32_t slot = c->ctx.slot;
	int err = raw_cq(&c->ctx, &cq, 256, c->channel);

	if (!err)
		err = raw_resize_cq(&cq, 512);
	if (!err)
		err = raw_srq(&c->ctx, &srq, 0);
	if (!err)
		err = raw_qp_srq(&c->ctx, &qp, VHCA_QPT_RC, &cq, srq.made.srqn);
	if (!err)
		err = raw_climb(&qp, VHCA_QPS_RTS, raw_attr(c->ctx.lid, qp.made.qpn));
	if (!err)
		err = raw_destroy_qp(&qp);
	if (!err)
		err = raw_destroy_srq(&srq, NULL);
	if (!err)
		err = raw_destroy_cq(&cq, NULL);
	if (err)
		return err;
	munmap(qp.buf, qp.made.buf_size);
	munmap(srq.buf, srq.made.buf_size);
	munmap(cq.ring, cq.made.buf_size);
	c->ctx.slot = slot;
	return 0;
}

/*
 * A file with all in it is closed, traffic in its queues and events unread: its context,
 * a PD, a channel, an MR, three CQs and four QPs.
 */
static int churn_file(void)
{
	struct raw_bed bed;
	int err = raw_bed(&bed, 0);

	if (!err)
		err = raw_bed_fire(&bed);
	if (!err)
		err = raw_recv(&bed.p.b, &bed.mr, 0, 64);
	if (!err)
		err = raw_goto(&bed.mark.a, VHCA_QPS_ERR);
	if (err)
		return err;
	end_bed_close(&bed);
	return 0;
}

static int cycle(struct churn *c)
{
	int err = churn_regions(c);

	if (!err)
		err = churn_device_memory(c);
	if (!err)
		err = churn_domains(c);
	if (!err)
		err = churn_files(c);
	if (!err)
		err = churn_queues(c);
	return err ? err : churn_file();
}

FIXTURE(churn) {
	struct churn c;
	struct end_objects objects;
	struct memory before;
	struct memory now;
	char expedited[8];
};

/* Grace periods are not what is tested. */
FIXTURE_SETUP(churn)
{
	end_read("/sys/kernel/rcu_expedited", self->expedited, sizeof(self->expedited));
	end_write("/sys/kernel/rcu_expedited", "1");
	ASSERT_EQ(0, churn_open(&self->c));
	self->objects = end_objects(0);
}

FIXTURE_TEARDOWN(churn)
{
	churn_close(&self->c);
	end_write("/sys/kernel/rcu_expedited", self->expedited);
}

TEST_F_TIMEOUT(churn, nothing_is_left_of_what_comes_and_goes, 100000)
{
	const char *what = NULL;
	int i;

	for (i = 0; i < WARM_UP; i++)
		ASSERT_EQ(0, cycle(&self->c));
	memory_read(&self->before);
	for (i = 0; i < cycles; i++) {
		ASSERT_EQ(0, cycle(&self->c)) {
			TH_LOG("cycle %d", i);
		}
	}
	EXPECT_TRUE(end_left_nothing(0, &self->objects));
	/* What is freed late is not lost. */
	RAW_WAIT((memory_read(&self->now), !(what = more(&self->before, &self->now, cycles))));
	EXPECT_EQ(NULL, what) {
		TH_LOG("%s", what);
	}
	printf("# figure: %d objects made and ended\n", cycles * CYCLE_OBJECTS);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--objects")) {
		cycles = atoi(argv[2]) / CYCLE_OBJECTS;
		argc = 1;
	}
	return test_harness_run(argc, argv);
}
