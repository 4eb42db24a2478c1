// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ah.c: address handles and what is posted with them: which are refused, how
 * long they have to live, and how the way back is found in what was received.
 */
#define _GNU_SOURCE
#include "pair.h"

FIXTURE(ud)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_VARIANT(ud)
{
	const char *engine;
	int peer;
};

FIXTURE_VARIANT_ADD(ud, inline)
{
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(ud, threaded)
{
	.engine = "threaded",
};

FIXTURE_VARIANT_ADD(ud, other_function)
{
	.engine = "inline",
	.peer = 1,
};

FIXTURE_SETUP(ud)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = IBV_QPT_UD;
	opts.function[1] = variant->peer;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(ud)
{
	pair_close(_metadata, &self->p);
}

/* The way from @from to @to, by GID. */
static struct ibv_ah_attr global_attr(struct end *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.dlid = to->lid,
		.port_num = 1,
		.grh = {
			.flow_label = 0xabcde,
			.hop_limit = 3,
			.traffic_class = 0x5a,
		},
	};

	ibv_query_gid(to->ctx, 1, 0, &attr.grh.dgid);
	return attr;
}

/* Let @e send by another address handle. */
static void use_ah(struct __test_metadata *_metadata, struct end *e, struct ibv_ah *ah)
{
	ASSERT_NE(NULL, ah);
	ASSERT_EQ(0, ibv_destroy_ah(e->ah));
	e->ah = ah;
}

static void expect_refused(struct __test_metadata *_metadata, struct ibv_pd *pd,
			   struct ibv_ah_attr attr)
{
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_ah(pd, &attr));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ud, what_is_no_address_is_refused)
{
	const struct ibv_ah_attr good = { .dlid = self->b->lid, .port_num = 1 };
	const struct ibv_ah_attr global = global_attr(self->b);
	struct ibv_pd *pd = self->a->pd;
	struct ibv_ah_attr bad;

	bad = good;
	bad.port_num = 0;
	expect_refused(_metadata, pd, bad);
	bad.port_num = 2;
	expect_refused(_metadata, pd, bad);
	bad = good;
	bad.sl = 16;
	expect_refused(_metadata, pd, bad);
	bad = good;
	bad.dlid = 0;
	expect_refused(_metadata, pd, bad);
	bad = global;
	bad.grh.sgid_index = 250;
	expect_refused(_metadata, pd, bad);
	bad = global;
	bad.grh.flow_label = 1 << 20;
	expect_refused(_metadata, pd, bad);
	exchange(_metadata, self->a, self->b, 100, 1);
}

TEST_F(ud, a_pd_stays_while_it_has_one)
{
	struct ibv_ah_attr attr = { .dlid = self->b->lid, .port_num = 1 };
	struct ibv_pd *pd = ibv_alloc_pd(self->a->ctx);
	struct ibv_ah *ah[2];

	ASSERT_NE(NULL, pd);
	ah[0] = ibv_create_ah(pd, &attr);
	ah[1] = ibv_create_ah(pd, &attr);
	ASSERT_NE(NULL, ah[0]);
	ASSERT_NE(NULL, ah[1]);
	EXPECT_EQ(pd, ah[0]->pd);
	EXPECT_EQ(self->a->ctx, ah[0]->context);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_destroy_ah(ah[0]));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_destroy_ah(ah[1]));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(ud, the_device_sets_no_limit_to_them)
{
	struct ibv_ah_attr attr = { .dlid = self->b->lid, .port_num = 1 };
	struct ibv_device_attr dev;
	struct ibv_ah *ah[1000];
	unsigned int i;

	ASSERT_EQ(0, ibv_query_device(self->a->ctx, &dev));
	EXPECT_LE((int)ARRAY_SIZE(ah), dev.max_ah);
	for (i = 0; i < ARRAY_SIZE(ah); i++) {
		ah[i] = ibv_create_ah(self->a->pd, &attr);
		ASSERT_NE(NULL, ah[i]);
	}
	for (i = 0; i < ARRAY_SIZE(ah); i++)
		ASSERT_EQ(0, ibv_destroy_ah(ah[i]));
}

TEST_F(ud, it_is_needed_no_longer_than_the_post)
{
	struct ibv_ah_attr attr = { .dlid = self->b->lid, .port_num = 1 };
	int i;

	fill(self->a->buf, 64, 1);
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_recv(self->b, i, i * 256, 256));
	for (i = 0; i < 8; i++) {
		use_ah(_metadata, self->a, ibv_create_ah(self->a->pd, &attr));
		ASSERT_EQ(0, post_send(self->a, i, 0, 64, IBV_SEND_SIGNALED));
	}
	ASSERT_EQ(0, ibv_destroy_ah(self->a->ah));
	self->a->ah = NULL;
	for (i = 0; i < 8; i++) {
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
		expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
		EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + i * 256 + GRH_LEN, 64));
	}
}

static struct ibv_send_wr ud_wr(struct end *a, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	*sge = (struct ibv_sge) { (uintptr_t)a->buf, 8, a->mr->lkey };
	wr_to_peer(a, &wr);
	return wr;
}

static void expect_not_posted(struct __test_metadata *_metadata, struct end *a,
			      struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	EXPECT_EQ(EINVAL, ibv_post_send(a->qp, wr, &bad));
	EXPECT_EQ(wr, bad);
}

TEST_F(ud, a_datagram_needs_an_address_of_its_own_pd)
{
	struct ibv_ah_attr attr = { .dlid = self->b->lid, .port_num = 1 };
	struct ibv_pd *pd = ibv_alloc_pd(self->a->ctx);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(self->a, &sge);

	ASSERT_NE(NULL, ah);
	wr.wr.ud.ah = NULL;
	expect_not_posted(_metadata, self->a, &wr);
	wr.wr.ud.ah = ah;
	expect_not_posted(_metadata, self->a, &wr);
	wr.wr.ud.ah = self->b->ah;	/* of another context */
	expect_not_posted(_metadata, self->a, &wr);
	wr.wr.ud.ah = self->a->ah;
	wr.wr.ud.remote_qpn = 1 << 24;
	expect_not_posted(_metadata, self->a, &wr);
	EXPECT_TRUE(cq_empty(self->a->scq));
	exchange(_metadata, self->a, self->b, 100, 1);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(ud, operations_of_connections_are_refused)
{
	static const enum ibv_wr_opcode opcode[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
		IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_TSO,
	};
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(self->a, &sge);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		wr.opcode = opcode[i];
		expect_not_posted(_metadata, self->a, &wr);
	}
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM;
	expect_not_posted(_metadata, self->a, &wr);
	EXPECT_TRUE(cq_empty(self->a->scq));
	exchange(_metadata, self->a, self->b, 100, 1);
}

/* The receiver answers to where the completion says that the message came from. */
static void answer(struct __test_metadata *_metadata, struct end *b, struct end *a,
		   struct ibv_wc *wc)
{
	struct ibv_grh *grh = (struct ibv_grh *)b->buf;

	use_ah(_metadata, b, ibv_create_ah_from_wc(b->pd, wc, grh, 1));
	b->peer_qpn = wc->src_qp;
	exchange(_metadata, b, a, 200, 2);
}

static struct ibv_wc send_one(struct __test_metadata *_metadata, struct end *a, struct end *b)
{
	memset(b->buf, 0, 256);
	EXPECT_EQ(0, post_recv(b, 2, 0, 256));
	EXPECT_EQ(0, post_send(a, 1, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	return expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
}

TEST_F(ud, the_way_back_is_in_the_completion)
{
	struct ibv_ah_attr attr = { .dlid = self->b->lid, .port_num = 1, .sl = 5 };
	struct ibv_wc wc;

	use_ah(_metadata, self->a, ibv_create_ah(self->a->pd, &attr));
	wc = send_one(_metadata, self->a, self->b);
	EXPECT_EQ(0, wc.wc_flags & IBV_WC_GRH);
	EXPECT_EQ(5, wc.sl);
	EXPECT_EQ(self->a->lid, wc.slid);
	EXPECT_EQ(self->a->qp->qp_num, wc.src_qp);
	memset(&attr, 0xff, sizeof(attr));
	ASSERT_EQ(0, ibv_init_ah_from_wc(self->b->ctx, 1, &wc, NULL, &attr));
	EXPECT_EQ(0, attr.is_global);
	EXPECT_EQ(self->a->lid, attr.dlid);
	EXPECT_EQ(5, attr.sl);
	EXPECT_EQ(1, attr.port_num);
	answer(_metadata, self->b, self->a, &wc);
}

TEST_F(ud, the_way_back_is_in_the_grh)
{
	struct ibv_ah_attr attr = global_attr(self->b);
	struct ibv_grh *grh = (struct ibv_grh *)self->b->buf;
	union ibv_gid gid[2];
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_query_gid(self->a->ctx, 1, 0, &gid[0]));
	ASSERT_EQ(0, ibv_query_gid(self->b->ctx, 1, 0, &gid[1]));
	use_ah(_metadata, self->a, ibv_create_ah(self->a->pd, &attr));
	wc = send_one(_metadata, self->a, self->b);
	EXPECT_EQ(IBV_WC_GRH, wc.wc_flags & IBV_WC_GRH);
	EXPECT_EQ(48, wc.byte_len);
	EXPECT_EQ(6 << 28 | 0x5a << 20 | 0xabcde, be32toh(grh->version_tclass_flow));
	EXPECT_EQ(0x1b, grh->next_hdr);
	EXPECT_EQ(3, grh->hop_limit);
	EXPECT_EQ(0, memcmp(&gid[0], &grh->sgid, sizeof(gid[0])));
	EXPECT_EQ(0, memcmp(&gid[1], &grh->dgid, sizeof(gid[1])));

	memset(&attr, 0xff, sizeof(attr));
	ASSERT_EQ(0, ibv_init_ah_from_wc(self->b->ctx, 1, &wc, grh, &attr));
	EXPECT_EQ(1, attr.is_global);
	EXPECT_EQ(0, memcmp(&gid[0], &attr.grh.dgid, sizeof(gid[0])));
	EXPECT_EQ(0, attr.grh.sgid_index);
	EXPECT_EQ(0x5a, attr.grh.traffic_class);
	EXPECT_EQ(0xabcde, attr.grh.flow_label);
	EXPECT_LT(0, attr.grh.hop_limit);
	answer(_metadata, self->b, self->a, &wc);
}

TEST_F(ud, a_grh_to_a_gid_that_is_not_ours_gives_no_address)
{
	struct ibv_grh grh = { .dgid.raw = { 0xfe, 0x80, [15] = 1 } };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .slid = self->a->lid };
	struct ibv_ah_attr attr;

	errno = 0;
	EXPECT_EQ(-1, ibv_init_ah_from_wc(self->b->ctx, 1, &wc, &grh, &attr));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_create_ah_from_wc(self->b->pd, &wc, &grh, 1));
	/* To a group: whoever answers does it by its own GID. */
	grh.dgid.raw[0] = 0xff;
	EXPECT_EQ(0, ibv_init_ah_from_wc(self->b->ctx, 1, &wc, &grh, &attr));
	EXPECT_EQ(0, attr.grh.sgid_index);
}

TEST_HARNESS_MAIN
