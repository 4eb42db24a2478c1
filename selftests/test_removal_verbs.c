// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each verb says when the device is gone: EIO. What was created stays until the
 * context is closed, which works; what was completed before can still be polled.
 */
#define _GNU_SOURCE
#include "pair.h"
#include "endings.h"

#define FN	1

/* The pair, and one object of each other kind; the function goes after that. */
FIXTURE(gone) {
	struct pair p;
	struct end *a;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_xrcd *xrcd;
	struct ibv_cq_ex *cq_ex;
	struct ibv_td *td;
	struct ibv_qp *ud;
	struct ibv_ah *ah;
	char bdf[16];
	struct end_objects before;
};

static void make_others(struct __test_metadata *_metadata, FIXTURE_DATA(gone) * self)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_cq_init_attr_ex cq = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr ud = {
		.send_cq = self->a->scq, .recv_cq = self->a->rcq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_ah_attr ah = { .dlid = self->a->lid, .port_num = 1 };

	self->srq = ibv_create_srq(self->a->pd, &srq);
	self->mw = ibv_alloc_mw(self->a->pd, IBV_MW_TYPE_2);
	self->dm = ibv_alloc_dm(self->a->ctx, &dm);
	self->xrcd = ibv_open_xrcd(self->a->ctx, &xrcd);
	self->cq_ex = ibv_create_cq_ex(self->a->ctx, &cq);
	self->ud = ibv_create_qp(self->a->pd, &ud);
	self->ah = ibv_create_ah(self->a->pd, &ah);
	ASSERT_TRUE(self->srq && self->mw && self->dm && self->xrcd && self->cq_ex &&
		    self->ud && self->ah);
}

FIXTURE_SETUP(gone)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	self->before = end_objects(FN);
	opts.function[0] = FN;
	opts.function[1] = FN;
	opts.channel = true;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	make_others(_metadata, self);
	/* One completion that nobody has polled. */
	ASSERT_EQ(0, post_recv(&self->p.end[1], 2, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->p.end[1].rcq, 2, IBV_WC_SUCCESS);
	end_bdf(FN, self->bdf, sizeof(self->bdf));
	ASSERT_EQ(0, end_driver("unbind", self->bdf));
}

/* Queues that cannot be destroyed stay mapped, and keep the file, until the process ends. */
static void end_of_process(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "/dev/vhca") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			munmap((void *)from, to - from);
	if (f)
		fclose(f);
}

/* Closing is all that is needed, and all that can be done. */
FIXTURE_TEARDOWN(gone)
{
	int i;

	for (i = 0; i < 2; i++)
		if (self->p.end[i].ctx)
			EXPECT_EQ(0, ibv_close_device(self->p.end[i].ctx));
	close(self->p.end[0].channel->fd);
	close(self->p.end[1].channel->fd);
	end_of_process();
	EXPECT_TRUE(RAW_WAIT(end_refs() == 0));
	EXPECT_EQ(0, raw_pinned(getpid()));
	EXPECT_EQ(0, end_driver("bind", self->bdf));
	EXPECT_TRUE(end_left_nothing(FN, &self->before));
	EXPECT_EQ(0, RAW_CHILD(end_works(FN)));
}

#define EXPECT_NULL_EIO(call)						\
do {									\
	errno = 0;							\
	EXPECT_EQ(NULL, (void *)(call));				\
	EXPECT_EQ(EIO, errno) {						\
		TH_LOG("%s", #call);					\
	}								\
} while (0)

/* The older calls say it by -1 and errno, the others by the error itself. */
#define EXPECT_EIO(call)						\
do {									\
	int ret_;							\
									\
	errno = 0;							\
	ret_ = (call);							\
	EXPECT_TRUE(ret_ == EIO || (ret_ == -1 && errno == EIO)) {	\
		TH_LOG("%s: %d, errno %d", #call, ret_, errno);		\
	}								\
} while (0)

TEST_F(gone, queries_are_eio)
{
	struct ibv_device_attr_ex attr_ex;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	EXPECT_EIO(ibv_query_device(self->a->ctx, &attr));
	EXPECT_EIO(ibv_query_device_ex(self->a->ctx, NULL, &attr_ex));
	EXPECT_EIO(ibv_query_port(self->a->ctx, 1, &port));
	EXPECT_EIO(ibv_query_gid(self->a->ctx, 1, 0, &gid));
	EXPECT_EIO(ibv_query_pkey(self->a->ctx, 1, 0, &pkey));
}

TEST_F(gone, nothing_can_be_made)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_ex = { .cqe = 16 };
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct end *a = self->a;

	EXPECT_NULL_EIO(ibv_alloc_pd(a->ctx));
	EXPECT_NULL_EIO(ibv_reg_mr(a->pd, a->buf, a->len, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_NULL_EIO(ibv_reg_dm_mr(a->pd, self->dm, 0, 4096, IBV_ACCESS_ZERO_BASED));
	EXPECT_NULL_EIO(ibv_alloc_null_mr(a->pd));
	EXPECT_NULL_EIO(ibv_alloc_mw(a->pd, IBV_MW_TYPE_2));
	EXPECT_NULL_EIO(ibv_alloc_dm(a->ctx, &dm));
	EXPECT_NULL_EIO(ibv_create_comp_channel(a->ctx));
	EXPECT_NULL_EIO(ibv_create_cq(a->ctx, 16, NULL, NULL, 0));
	EXPECT_NULL_EIO(ibv_create_cq_ex(a->ctx, &cq_ex));
	EXPECT_NULL_EIO(ibv_create_srq(a->pd, &srq));
	EXPECT_NULL_EIO(make_qp(a->pd, a->scq, a->rcq, &self->p.opts, NULL));
	EXPECT_NULL_EIO(ibv_open_xrcd(a->ctx, &xrcd));
	/* The device is on no list any more, and was not to be opened if it were. */
	EXPECT_EQ(-ENOENT, raw_open_file(FN));
}

TEST_F(gone, nothing_can_be_changed)
{
	struct ibv_moderate_cq moderate = { .cq_count = 1, .cq_period = 1 };
	struct ibv_modify_cq_attr cq = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = moderate };
	struct ibv_srq_attr srq = { .srq_limit = 1 };
	union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 1 } };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end *a = self->a;

	EXPECT_EIO(qp_to(a->qp, IBV_QPS_ERR));
	EXPECT_EIO(ibv_query_qp(a->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EIO(ibv_resize_cq(a->scq, 512));
	EXPECT_EIO(ibv_modify_cq(a->scq, &cq));
	EXPECT_EIO(ibv_modify_srq(self->srq, &srq, IBV_SRQ_LIMIT));
	EXPECT_EIO(ibv_query_srq(self->srq, &srq));
	EXPECT_EIO(ibv_attach_mcast(self->ud, &group, 0xc001));
	EXPECT_EIO(ibv_detach_mcast(self->ud, &group, 0xc001));
	EXPECT_NE(0, ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EIO, errno);
}

TEST_F(gone, nothing_can_be_ended_but_all_can_be_closed)
{
	struct end *a = self->a;

	EXPECT_EIO(ibv_destroy_qp(a->qp));
	EXPECT_EIO(ibv_destroy_srq(self->srq));
	EXPECT_EIO(ibv_destroy_cq(a->scq));
	EXPECT_EIO(ibv_dereg_mr(a->mr));
	EXPECT_EIO(ibv_dealloc_mw(self->mw));
	EXPECT_EIO(ibv_free_dm(self->dm));
	EXPECT_EIO(ibv_close_xrcd(self->xrcd));
	/* This one the device has never heard of; it counts in its PD. */
	EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	EXPECT_EIO(ibv_dealloc_pd(a->pd));
}

TEST_F(gone, posting_is_eio_and_polling_finds_what_was_there)
{
	struct end *a = self->a;
	struct ibv_sge sge = { .addr = (uintptr_t)a->buf, .length = 8, .lkey = a->mr->lkey };
	struct ibv_send_wr second = send_wr(12, &sge, 1, 0), first = send_wr(11, &sge, 1, 0);
	struct ibv_send_wr *bad = NULL;
	struct ibv_wc wc;
	int i;

	first.next = &second;
	EXPECT_EQ(EIO, ibv_post_send(a->qp, &first, &bad));
	EXPECT_EQ(&first, bad);
	/* The doorbell record is memory, in which nobody asks for a doorbell. */
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, post_recv(a, i, 0, 64));
	EXPECT_EQ(1, ibv_poll_cq(a->scq, 1, &wc));
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_EQ(0, ibv_poll_cq(a->scq, 1, &wc));
	EXPECT_EQ(0, ibv_req_notify_cq(a->scq, 0));
}

TEST_F(gone, who_waits_is_told)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, ibv_get_async_event(self->a->ctx, &event));
	EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
	ibv_ack_async_event(&event);
	EXPECT_EQ(-1, ibv_get_async_event(self->a->ctx, &event));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, ibv_get_cq_event(self->a->channel, &cq, &context));
	EXPECT_EQ(EIO, errno);
}

/* Device memory and queues can still be written, to no effect. */
TEST_F(gone, memory_of_the_device_can_be_written)
{
	uint8_t bytes[64];

	memset(bytes, 0x5a, sizeof(bytes));
	EXPECT_EQ(0, ibv_memcpy_to_dm(self->dm, 0, bytes, sizeof(bytes)));
	EXPECT_EQ(0, ibv_memcpy_from_dm(bytes, self->dm, 128, sizeof(bytes)));
}

/* In a list; NULL when it is not there. */
static struct ibv_device *find_device(struct ibv_device **list)
{
	for (; *list; list++)
		if (!strcmp("vhca1", ibv_get_device_name(*list)))
			return *list;
	return NULL;
}

/* Those who compare devices to see what has come and gone keep the lists meanwhile. */
TEST(a_device_that_came_back_is_another_object)
{
	struct ibv_device **list[4], *dev[4];
	char bdf[16];
	int i;

	ASSERT_TRUE(RAW_WAIT(end_refs() == 0));
	end_bdf(FN, bdf, sizeof(bdf));
	for (i = 0; i < 4; i++) {
		if (i == 2)
			ASSERT_EQ(0, end_driver("unbind", bdf));
		if (i == 3)
			ASSERT_EQ(0, end_driver("bind", bdf));
		list[i] = ibv_get_device_list(NULL);
		ASSERT_NE(NULL, list[i]);
		dev[i] = find_device(list[i]);
	}
	ASSERT_NE(NULL, dev[0]);
	EXPECT_EQ(dev[0], dev[1]);
	EXPECT_EQ(NULL, dev[2]);
	EXPECT_NE(NULL, dev[3]);
	EXPECT_NE(dev[0], dev[3]);
	for (i = 0; i < 4; i++)
		ibv_free_device_list(list[i]);
	EXPECT_EQ(0, RAW_CHILD(end_works(FN)));
}

TEST_HARNESS_MAIN
