// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ud.c: datagrams: data and the GRH in front of it, Q_Keys, what is dropped,
 * what is too long, multicast, and the send queue error state.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/syscall.h>

#include "ops.h"

#define MTU		4096	/* of the port */
#define GROUP_LID	0xc001
#define OTHER_LID	0xc002
#define OWN_QKEY	0x80000000	/* the sender's QP says which */

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
	bool srq;
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

FIXTURE_VARIANT_ADD(ud, srq)
{
	.engine = "inline",
	.srq = true,
};

FIXTURE_SETUP(ud)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = IBV_QPT_UD;
	opts.function[1] = variant->peer;
	opts.srq = variant->srq;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(ud)
{
	pair_close(_metadata, &self->p);
}

/* A datagram from @off to wherever. */
static int post_dgram(struct end *e, uint64_t wr_id, uint32_t off, uint32_t len,
		      struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + off, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	}, *bad = NULL;

	return ibv_post_send(e->qp, &wr, &bad);
}

static struct ibv_ah *ah_global(struct end *e, const union ibv_gid *dgid, uint16_t dlid)
{
	struct ibv_ah_attr attr = {
		.dlid = dlid,
		.sl = 5,
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = *dgid,
			.flow_label = 0xabcde,
			.hop_limit = 33,
			.traffic_class = 0x42,
		},
	};

	return ibv_create_ah(e->pd, &attr);
}

static struct ibv_ah *ah_local(struct end *e, uint16_t dlid)
{
	struct ibv_ah_attr attr = { .dlid = dlid, .port_num = 1 };

	return ibv_create_ah(e->pd, &attr);
}

static int post_bad_key(struct end *e, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 8, ~e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	}, *bad = NULL;

	wr_to_peer(e, &wr);
	return ibv_post_send(e->qp, &wr, &bad);
}

TEST_F(ud, datagrams_of_all_sizes_arrive)
{
	static const uint32_t sizes[] = { 0, 1, 3, 255, 256, 1025, MTU - 1, MTU };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		exchange(_metadata, self->a, self->b, sizes[i], 2 * i + 1);
		exchange(_metadata, self->b, self->a, sizes[i], 2 * i + 101);
	}
}

TEST_F(ud, a_datagram_names_its_sender)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, 0));
	wc = expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_EQ(GRH_LEN + 8, wc.byte_len);
	EXPECT_EQ(self->b->qp->qp_num, wc.qp_num);
	EXPECT_EQ(self->a->qp->qp_num, wc.src_qp);
	EXPECT_EQ(self->a->lid, wc.slid);
	EXPECT_EQ(0, wc.sl);
	EXPECT_EQ(0, wc.wc_flags);
}

TEST_F(ud, immediate_data)
{
	struct ibv_sge sge = { (uintptr_t)self->a->buf, 8, self->a->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htobe32(0x12345678),
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	}, *bad = NULL;
	struct ibv_wc wc;

	fill(self->a->buf, 8, 3);
	wr_to_peer(self->a, &wr);
	ASSERT_EQ(0, post_recv(self->b, 2, 0, GRH_LEN + 8));
	ASSERT_EQ(0, ibv_post_send(self->a->qp, &wr, &bad));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_WITH_IMM, wc.wc_flags);
	EXPECT_EQ(htobe32(0x12345678), wc.imm_data);
	EXPECT_EQ(0, memcmp(self->a->buf, self->b->buf + GRH_LEN, 8));
}

/* Byte by byte, as it is on the wire. */
static void expect_grh(struct __test_metadata *_metadata, const uint8_t *grh,
		       const union ibv_gid *sgid, const union ibv_gid *dgid, uint16_t paylen)
{
	static const uint8_t head[] = { 0x64, 0x2a, 0xbc, 0xde };

	EXPECT_EQ(0, memcmp(grh, head, 4));
	EXPECT_EQ(paylen, grh[4] << 8 | grh[5]);
	EXPECT_EQ(0x1b, grh[6]);
	EXPECT_EQ(33, grh[7]);
	EXPECT_EQ(0, memcmp(grh + 8, sgid, 16));
	EXPECT_EQ(0, memcmp(grh + 24, dgid, 16));
}

TEST_F(ud, a_global_datagram_has_a_grh_that_leads_back)
{
	union ibv_gid sgid, dgid;
	struct ibv_ah *ah, *back;
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_query_gid(self->a->ctx, 1, 0, &sgid));
	ASSERT_EQ(0, ibv_query_gid(self->b->ctx, 1, 0, &dgid));
	ah = ah_global(self->a, &dgid, self->b->lid);
	ASSERT_NE(NULL, ah);
	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 10));
	ASSERT_EQ(0, post_dgram(self->a, 2, 0, 10, ah, self->b->qp->qp_num, PAIR_QKEY));
	wc = expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_GRH, wc.wc_flags);
	EXPECT_EQ(5, wc.sl);
	EXPECT_EQ(GRH_LEN + 10, wc.byte_len);
	/* Base and datagram header, payload padded to 12, checksum. */
	expect_grh(_metadata, self->b->buf, &sgid, &dgid, 12 + 8 + 12 + 4);
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);

	back = ibv_create_ah_from_wc(self->b->pd, &wc, (struct ibv_grh *)self->b->buf, 1);
	ASSERT_NE(NULL, back);
	ASSERT_EQ(0, post_recv(self->a, 3, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_dgram(self->b, 4, 0, 8, back, wc.src_qp, PAIR_QKEY));
	wc = expect_wc(_metadata, self->a->rcq, 3, IBV_WC_SUCCESS);
	EXPECT_EQ(IBV_WC_GRH, wc.wc_flags);
	EXPECT_EQ(self->b->qp->qp_num, wc.src_qp);
	EXPECT_EQ(0, ibv_destroy_ah(back));
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(ud, a_datagram_finds_its_way_by_gid_alone)
{
	union ibv_gid dgid;
	struct ibv_ah *ah;

	ASSERT_EQ(0, ibv_query_gid(self->b->ctx, 1, 0, &dgid));
	ah = ah_global(self->a, &dgid, 0);
	ASSERT_NE(NULL, ah);
	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_dgram(self->a, 2, 0, 8, ah, self->b->qp->qp_num, PAIR_QKEY));
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

/*
 * Nothing comes of it, except success at the sender. What comes next, comes.
 */
static void expect_dropped(struct __test_metadata *_metadata, struct end *a, struct end *b,
			   struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	ASSERT_NE(NULL, ah);
	ASSERT_EQ(0, post_dgram(a, 1, 0, 8, ah, qpn, qkey));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
	exchange(_metadata, a, b, 100, 77);
}

static uint32_t qkey_violations(struct ibv_context *ctx)
{
	struct ibv_port_attr port = {};

	return ibv_query_port(ctx, 1, &port) ? 0 : port.qkey_viol_cntr;
}

TEST_F(ud, another_qkey_is_dropped_and_counted)
{
	long long before = device_counter(variant->peer, "qkey_violations");
	uint32_t of_port = qkey_violations(self->b->ctx);

	expect_dropped(_metadata, self->a, self->b, self->a->ah, self->b->qp->qp_num,
		       PAIR_QKEY + 1);
	EXPECT_EQ(before + 1, device_counter(variant->peer, "qkey_violations"));
	EXPECT_EQ(of_port + 1, qkey_violations(self->b->ctx));
}

static int set_qkey(struct end *e, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = qkey };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY);
}

TEST_F(ud, the_own_qkey_instead_of_that_of_the_request)
{
	/* It is PAIR_QKEY on both sides. */
	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_dgram(self->a, 2, 0, 8, self->a->ah, self->b->qp->qp_num,
				OWN_QKEY | 1));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);

	ASSERT_EQ(0, set_qkey(self->a, PAIR_QKEY + 1));
	expect_dropped(_metadata, self->a, self->b, self->a->ah, self->b->qp->qp_num,
		       OWN_QKEY | PAIR_QKEY);
}

static uint32_t qkey_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	return ibv_query_qp(e->qp, &attr, IBV_QP_QKEY, &init) ? 0 : attr.qkey;
}

/* CAP_NET_RAW of this thread. */
static int set_net_raw(bool on)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, caps))
		return errno;
	caps[0].effective &= ~(1u << CAP_NET_RAW);
	if (on)
		caps[0].effective |= 1u << CAP_NET_RAW;
	return syscall(SYS_capset, &head, caps) ? errno : 0;
}

TEST_F(ud, a_controlled_qkey_needs_a_privilege)
{
	ASSERT_EQ(0, set_net_raw(false));
	EXPECT_EQ(EPERM, set_qkey(self->a, OWN_QKEY | 7));
	EXPECT_EQ(PAIR_QKEY, qkey_of(self->a));
	exchange(_metadata, self->a, self->b, 100, 1);
	/* Others do not. */
	EXPECT_EQ(0, set_qkey(self->a, ~OWN_QKEY));
	EXPECT_EQ(~OWN_QKEY, qkey_of(self->a));
	ASSERT_EQ(0, set_net_raw(true));
	EXPECT_EQ(0, set_qkey(self->a, OWN_QKEY | 7));
	EXPECT_EQ(OWN_QKEY | 7, qkey_of(self->a));
}

TEST_F(ud, only_who_has_a_controlled_qkey_reaches_it)
{
	struct end *a = self->a, *b = self->b;

	ASSERT_EQ(0, set_qkey(b, OWN_QKEY | 7));
	ASSERT_EQ(0, post_recv(b, 1, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_dgram(a, 2, 0, 8, a->ah, b->qp->qp_num, OWN_QKEY | 7));
	expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
	ASSERT_EQ(0, set_qkey(a, OWN_QKEY | 7));
	ASSERT_EQ(0, post_dgram(a, 3, 0, 8, a->ah, b->qp->qp_num, OWN_QKEY));
	expect_wc(_metadata, a->scq, 3, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 1, IBV_WC_SUCCESS);
}

TEST_F(ud, what_leads_nowhere_is_dropped)
{
	union ibv_gid gid;
	struct ibv_ah *ah;

	/* A LID, a QPN, a GID that nobody has, and a GID that is another port's. */
	ah = ah_local(self->a, 999);
	expect_dropped(_metadata, self->a, self->b, ah, self->b->qp->qp_num, PAIR_QKEY);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	expect_dropped(_metadata, self->a, self->b, self->a->ah, 0xfffffe, PAIR_QKEY);
	ASSERT_EQ(0, ibv_query_gid(self->b->ctx, 1, 0, &gid));
	gid.raw[8] ^= 1;
	ah = ah_global(self->a, &gid, self->b->lid);
	expect_dropped(_metadata, self->a, self->b, ah, self->b->qp->qp_num, PAIR_QKEY);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	gid.raw[8] ^= 1;
	ah = ah_global(self->a, &gid, self->b->lid == 1 ? 2 : 1);
	expect_dropped(_metadata, self->a, self->b, ah, self->b->qp->qp_num, PAIR_QKEY);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(ud, a_qp_of_another_type_takes_no_datagram)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct end *b = self->b;
	struct ibv_qp *rc;

	rc = make_qp(b->pd, b->scq, b->rcq, &opts, NULL);
	ASSERT_NE(NULL, rc);
	qp_connect(_metadata, rc, &opts, self->a->lid, self->a->qp->qp_num);
	expect_dropped(_metadata, self->a, b, self->a->ah, rc->qp_num, PAIR_QKEY);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(rc));
	EXPECT_EQ(0, ibv_destroy_qp(rc));
}

TEST_F(ud, without_a_receive_a_datagram_is_dropped)
{
	long long before = device_counter(variant->peer, "dropped");

	expect_dropped(_metadata, self->a, self->b, self->a->ah, self->b->qp->qp_num,
		       PAIR_QKEY);
	EXPECT_EQ(before + 1, device_counter(variant->peer, "dropped"));
}

TEST_F(ud, a_qp_receives_from_rtr_on)
{
	struct end *b = self->b;

	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to_init(b->qp, &self->p.opts));
	ASSERT_EQ(0, post_recv(b, 1, 0, GRH_LEN + 8));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RTR));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 1, IBV_WC_SUCCESS);
}

TEST_F(ud, a_receive_too_short_fails_there)
{
	/* The GRH's room counts, and one byte is missing. */
	ASSERT_EQ(0, post_recv(self->b, 1, 0, GRH_LEN + 7));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->b->qp) == IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->a->qp));
	ASSERT_EQ(0, post_send(self->a, 3, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 3, IBV_WC_SUCCESS);
}

TEST_F(ud, a_receive_into_memory_that_may_not_be_written_fails_there)
{
	struct ibv_sge sge = { (uintptr_t)self->b->buf, GRH_LEN + 8, ~self->b->mr->lkey };

	ASSERT_EQ(0, post_recv_end(self->b, 1, &sge, 1));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	EXPECT_TRUE(wait_until(qp_state(self->b->qp) == IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->a->qp));
}

static void expect_sqe(struct __test_metadata *_metadata, struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];

	EXPECT_TRUE(wait_until(qp_state(a->qp) == IBV_QPS_SQE));
	ASSERT_EQ(0, post_send(a, 2, 0, 8, 0));
	expect_wc(_metadata, a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(cq_empty(b->rcq));
	exchange(_metadata, b, a, 100, 5);
	EXPECT_EQ(IBV_QPS_SQE, qp_state(a->qp));
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RTS));
	exchange(_metadata, a, b, 100, 7);
}

TEST_F(ud, a_datagram_longer_than_the_mtu_stops_the_send_queue_alone)
{
	ASSERT_EQ(0, post_recv(self->b, 9, 0, GRH_LEN + 2 * MTU));
	ASSERT_EQ(0, post_send(self->a, 1, 0, MTU + 1, 0));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_LOC_LEN_ERR);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	EXPECT_TRUE(wait_until(qp_state(self->a->qp) == IBV_QPS_SQE));
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	ASSERT_EQ(0, post_send(self->a, 4, 0, MTU, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 4, IBV_WC_SUCCESS);
	expect_wc(_metadata, self->b->rcq, 9, IBV_WC_SUCCESS);
}

TEST_F(ud, a_send_that_fails_stops_the_send_queue_alone)
{
	ASSERT_EQ(0, post_bad_key(self->a, 1));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_LOC_PROT_ERR);
	expect_sqe(_metadata, &self->p);
}

TEST_F(ud, many_datagrams_arrive_in_order)
{
	struct ibv_wc wc;
	int i, round;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 32; i++) {
			*word(self->a, 8 * i) = round * 32 + i;
			ASSERT_EQ(0, post_recv(self->b, i, 64 * i, GRH_LEN + 8));
		}
		for (i = 0; i < 32; i++)
			ASSERT_EQ(0, post_send(self->a, i, 8 * i, 8, IBV_SEND_SIGNALED));
		for (i = 0; i < 32; i++) {
			expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
			wc = expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
			ASSERT_EQ(GRH_LEN + 8, wc.byte_len);
			ASSERT_EQ(round * 32 + i, *word(self->b, 64 * i + GRH_LEN));
		}
	}
}

/*
 * Multicast
 */
static const union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 1 } };
static const union ibv_gid other_group = { .raw = { 0xff, 0x12, [15] = 2 } };

/* A second receiver at an end, with a receive CQ of its own. */
struct hearer {
	struct ibv_cq	*cq;
	struct ibv_qp	*qp;
	struct end	*end;
};

static struct hearer hearer_open(struct __test_metadata *_metadata, struct end *e,
				 const struct pair_opts *opts, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
		.pd = e->pd,
		.cap = opts->cap,
		.create_flags = create_flags,
	};
	struct hearer h = { .end = e };

	h.cq = ibv_create_cq(e->ctx, 64, NULL, NULL, 0);
	ASSERT_NE(NULL, h.cq);
	init.send_cq = h.cq;
	init.recv_cq = h.cq;
	h.qp = ibv_create_qp_ex(e->ctx, &init);
	ASSERT_NE(NULL, h.qp) {
		TH_LOG("create_flags %#x: %s", create_flags, strerror(errno));
	}
	qp_connect(_metadata, h.qp, opts, 0, 0);
	return h;
}

static void hearer_close(struct __test_metadata *_metadata, struct hearer *h)
{
	EXPECT_EQ(0, ibv_destroy_qp(h->qp));
	EXPECT_EQ(0, ibv_destroy_cq(h->cq));
}

static int hearer_post(struct hearer *h, uint64_t wr_id, uint32_t off)
{
	struct ibv_sge sge = { (uintptr_t)h->end->buf + off, GRH_LEN + 64, h->end->mr->lkey };

	return post_recv_sges(h->qp, wr_id, &sge, 1);
}

static void send_to_group(struct __test_metadata *_metadata, struct end *e, struct ibv_ah *ah)
{
	fill(e->buf, 64, 13);
	ASSERT_EQ(0, post_dgram(e, 1, 0, 64, ah, 0xffffff, PAIR_QKEY));
	expect_wc(_metadata, e->scq, 1, IBV_WC_SUCCESS);
}

static void expect_heard(struct __test_metadata *_metadata, struct hearer *h, uint64_t wr_id,
			 uint32_t off, struct end *from)
{
	struct ibv_wc wc = expect_wc(_metadata, h->cq, wr_id, IBV_WC_SUCCESS);

	EXPECT_EQ(GRH_LEN + 64, wc.byte_len);
	EXPECT_EQ(IBV_WC_GRH, wc.wc_flags);
	EXPECT_EQ(from->qp->qp_num, wc.src_qp);
	EXPECT_EQ(from->lid, wc.slid);
	EXPECT_EQ(0, memcmp(h->end->buf + off + 24, &group, 16));
	EXPECT_EQ(0, memcmp(h->end->buf + off + GRH_LEN, from->buf, 64));
}

TEST_F(ud, a_group_is_heard_by_all_that_are_attached_and_by_no_other)
{
	struct hearer h[4];
	struct ibv_ah *ah = ah_global(self->a, &group, GROUP_LID);
	unsigned int i;

	ASSERT_NE(NULL, ah);
	for (i = 0; i < 4; i++) {
		h[i] = hearer_open(_metadata, i % 2 ? self->a : self->b, &self->p.opts, 0);
		ASSERT_EQ(0, hearer_post(&h[i], i, 1024 * (i + 1)));
	}
	/* Two that are, one that is in another group, one that is in none. */
	ASSERT_EQ(0, ibv_attach_mcast(h[0].qp, &group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(h[1].qp, &group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(h[2].qp, &other_group, 0));
	send_to_group(_metadata, self->a, ah);
	expect_heard(_metadata, &h[0], 0, 1024, self->a);
	expect_heard(_metadata, &h[1], 1, 2048, self->a);
	EXPECT_TRUE(cq_empty(h[2].cq));
	EXPECT_TRUE(cq_empty(h[3].cq));

	/* One leaves. */
	ASSERT_EQ(0, ibv_detach_mcast(h[0].qp, &group, 0));
	ASSERT_EQ(0, hearer_post(&h[0], 10, 1024));
	ASSERT_EQ(0, hearer_post(&h[1], 11, 2048));
	send_to_group(_metadata, self->a, ah);
	expect_heard(_metadata, &h[1], 11, 2048, self->a);
	EXPECT_TRUE(cq_empty(h[0].cq));
	ASSERT_EQ(0, ibv_detach_mcast(h[1].qp, &group, 0));
	ASSERT_EQ(0, ibv_detach_mcast(h[2].qp, &other_group, 0));

	/* To nobody at all. */
	send_to_group(_metadata, self->a, ah);
	for (i = 0; i < 4; i++) {
		EXPECT_TRUE(cq_empty(h[i].cq));
		hearer_close(_metadata, &h[i]);
	}
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(ud, who_hears_a_group_hears_each_message_once)
{
	struct hearer h = hearer_open(_metadata, self->b, &self->p.opts, 0);
	struct ibv_ah *ah = ah_global(self->a, &group, GROUP_LID);

	ASSERT_NE(NULL, ah);
	/* Attached twice, and by both of its names. */
	ASSERT_EQ(0, ibv_attach_mcast(h.qp, &group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(h.qp, &group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(h.qp, &group, GROUP_LID));
	ASSERT_EQ(0, hearer_post(&h, 1, 1024));
	ASSERT_EQ(0, hearer_post(&h, 2, 2048));
	send_to_group(_metadata, self->a, ah);
	expect_heard(_metadata, &h, 1, 1024, self->a);
	EXPECT_TRUE(cq_empty(h.cq));
	ASSERT_EQ(0, ibv_detach_mcast(h.qp, &group, 0));
	EXPECT_EQ(EINVAL, ibv_detach_mcast(h.qp, &group, 0));
	send_to_group(_metadata, self->a, ah);
	expect_heard(_metadata, &h, 2, 2048, self->a);
	ASSERT_EQ(0, ibv_detach_mcast(h.qp, &group, GROUP_LID));
	hearer_close(_metadata, &h);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(ud, a_group_with_a_lid_is_heard_at_that_lid)
{
	struct hearer h = hearer_open(_metadata, self->b, &self->p.opts, 0);
	struct ibv_ah *here = ah_global(self->a, &group, GROUP_LID);
	struct ibv_ah *elsewhere = ah_global(self->a, &group, OTHER_LID);

	ASSERT_NE(NULL, here);
	ASSERT_NE(NULL, elsewhere);
	ASSERT_EQ(0, ibv_attach_mcast(h.qp, &group, GROUP_LID));
	ASSERT_EQ(0, hearer_post(&h, 1, 1024));
	send_to_group(_metadata, self->a, elsewhere);
	EXPECT_TRUE(cq_empty(h.cq));
	send_to_group(_metadata, self->a, here);
	expect_heard(_metadata, &h, 1, 1024, self->a);
	ASSERT_EQ(0, ibv_detach_mcast(h.qp, &group, GROUP_LID));
	hearer_close(_metadata, &h);
	EXPECT_EQ(0, ibv_destroy_ah(here));
	EXPECT_EQ(0, ibv_destroy_ah(elsewhere));
}

TEST_F(ud, the_sender_hears_itself_unless_it_blocks_that)
{
	struct hearer plain = hearer_open(_metadata, self->a, &self->p.opts, 0);
	struct hearer deaf = hearer_open(_metadata, self->a, &self->p.opts,
					 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	struct ibv_ah *ah = ah_global(self->a, &group, GROUP_LID);
	struct end as_plain = *self->a, as_deaf = *self->a;

	ASSERT_NE(NULL, ah);
	as_plain.qp = plain.qp;
	as_plain.scq = plain.cq;
	as_deaf.qp = deaf.qp;
	as_deaf.scq = deaf.cq;
	ASSERT_EQ(0, ibv_attach_mcast(plain.qp, &group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(deaf.qp, &group, 0));

	/* The one speaks: both hear. Loopback comes before the send's completion. */
	ASSERT_EQ(0, hearer_post(&plain, 2, 1024));
	ASSERT_EQ(0, hearer_post(&deaf, 3, 2048));
	fill(self->a->buf, 64, 13);
	ASSERT_EQ(0, post_dgram(&as_plain, 1, 0, 64, ah, 0xffffff, PAIR_QKEY));
	expect_heard(_metadata, &plain, 2, 1024, &as_plain);
	expect_wc(_metadata, plain.cq, 1, IBV_WC_SUCCESS);
	expect_heard(_metadata, &deaf, 3, 2048, &as_plain);

	/* The other speaks: only the one hears. */
	ASSERT_EQ(0, hearer_post(&plain, 4, 1024));
	ASSERT_EQ(0, hearer_post(&deaf, 5, 2048));
	send_to_group(_metadata, &as_deaf, ah);
	expect_heard(_metadata, &plain, 4, 1024, &as_deaf);
	EXPECT_TRUE(cq_empty(deaf.cq));

	ASSERT_EQ(0, ibv_detach_mcast(plain.qp, &group, 0));
	ASSERT_EQ(0, ibv_detach_mcast(deaf.qp, &group, 0));
	hearer_close(_metadata, &plain);
	hearer_close(_metadata, &deaf);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

/*
 * Limits
 */
struct crowd {
	struct ibv_context	*ctx;
	struct ibv_device_attr	attr;
	struct ibv_pd		*pd;
	struct ibv_cq		*cq;
};

static struct ibv_qp *crowd_qp(struct __test_metadata *_metadata, struct crowd *c)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_qp *qp;

	opts.type = IBV_QPT_UD;
	qp = make_qp(c->pd, c->cq, c->cq, &opts, NULL);
	ASSERT_NE(NULL, qp);
	return qp;
}

static struct crowd crowd_open(struct __test_metadata *_metadata)
{
	struct crowd c = { .ctx = open_vhca(_metadata, 0) };

	ASSERT_EQ(0, ibv_query_device(c.ctx, &c.attr));
	c.pd = ibv_alloc_pd(c.ctx);
	ASSERT_NE(NULL, c.pd);
	c.cq = ibv_create_cq(c.ctx, 1, NULL, NULL, 0);
	ASSERT_NE(NULL, c.cq);
	return c;
}

static void crowd_close(struct __test_metadata *_metadata, struct crowd *c)
{
	EXPECT_EQ(0, ibv_destroy_cq(c->cq));
	EXPECT_EQ(0, ibv_dealloc_pd(c->pd));
	EXPECT_EQ(0, ibv_close_device(c->ctx));
}

static union ibv_gid numbered(int i)
{
	return (union ibv_gid) { .raw = { 0xff, 0x12, [14] = i >> 8, [15] = i } };
}

static int attach(struct ibv_qp *qp, int i)
{
	union ibv_gid gid = numbered(i);

	return ibv_attach_mcast(qp, &gid, 0);
}

static int detach(struct ibv_qp *qp, int i)
{
	union ibv_gid gid = numbered(i);

	return ibv_detach_mcast(qp, &gid, 0);
}

TEST(there_are_as_many_groups_as_the_device_says)
{
	struct crowd c = crowd_open(_metadata);
	struct ibv_qp *qp = crowd_qp(_metadata, &c), *other = crowd_qp(_metadata, &c);
	int i, most = c.attr.max_mcast_grp;

	for (i = 0; i < most; i++)
		ASSERT_EQ(0, attach(qp, i));
	EXPECT_EQ(ENOSPC, attach(qp, most));
	EXPECT_EQ(ENOSPC, attach(other, most));
	EXPECT_EQ(EINVAL, detach(qp, most));
	/* Those that there are take others. */
	EXPECT_EQ(0, attach(other, 0));
	/* Once nobody is in a group, another can be. */
	EXPECT_EQ(0, detach(qp, 0));
	EXPECT_EQ(ENOSPC, attach(qp, most));
	EXPECT_EQ(0, detach(other, 0));
	EXPECT_EQ(0, attach(other, most));
	EXPECT_EQ(ENOSPC, attach(qp, 0));
	/* A QP takes its groups along. */
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, attach(other, i));
	EXPECT_EQ(0, ibv_destroy_qp(other));
	crowd_close(_metadata, &c);
}

TEST(a_group_has_as_many_members_as_the_device_says)
{
	struct crowd c = crowd_open(_metadata);
	int i, most = c.attr.max_mcast_qp_attach;
	struct ibv_qp *qp[most + 1];

	EXPECT_GE((int64_t)c.attr.max_mcast_grp * most, c.attr.max_total_mcast_qp_attach);
	EXPECT_LT(c.attr.max_mcast_grp, c.attr.max_total_mcast_qp_attach);
	for (i = 0; i <= most; i++)
		qp[i] = crowd_qp(_metadata, &c);
	for (i = 0; i < most; i++)
		ASSERT_EQ(0, attach(qp[i], 1));
	EXPECT_EQ(ENOSPC, attach(qp[most], 1));
	EXPECT_EQ(EINVAL, detach(qp[most], 1));
	EXPECT_EQ(0, attach(qp[most], 2));
	/* Who is a member, is; one who leaves makes room. */
	EXPECT_EQ(0, attach(qp[0], 1));
	EXPECT_EQ(0, detach(qp[0], 1));
	EXPECT_EQ(0, attach(qp[most], 1));
	EXPECT_EQ(ENOSPC, attach(qp[0], 1));
	for (i = 0; i <= most; i++)
		EXPECT_EQ(0, ibv_destroy_qp(qp[i]));
	crowd_close(_metadata, &c);
}

TEST_F(ud, what_cannot_be_attached)
{
	union ibv_gid unicast;
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_qp *rc;

	ASSERT_EQ(0, ibv_query_gid(self->a->ctx, 1, 0, &unicast));
	EXPECT_EQ(EINVAL, ibv_attach_mcast(self->a->qp, &unicast, 0));
	EXPECT_EQ(EINVAL, ibv_attach_mcast(self->a->qp, &group, 1));
	EXPECT_EQ(EINVAL, ibv_attach_mcast(self->a->qp, &group, 0xffff));
	EXPECT_EQ(EINVAL, ibv_detach_mcast(self->a->qp, &group, 0));
	rc = make_qp(self->a->pd, self->a->scq, self->a->rcq, &opts, NULL);
	ASSERT_NE(NULL, rc);
	EXPECT_EQ(EINVAL, ibv_attach_mcast(rc, &group, 0));
	EXPECT_EQ(0, ibv_destroy_qp(rc));
}

TEST_HARNESS_MAIN
