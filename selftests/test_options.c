// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of queues that the environment switches on: signed WQEs, payload in the CQE,
 * BlueFlame. Each moves the same messages, and a counter of the device tells that it
 * was at work.
 */
#include "raw.h"
#include "pair.h"

#define SIGNATURE	"VHCA_WQE_SIGNATURE"
#define SCATTER		"VHCA_SCATTER_TO_CQE"
#define BLUEFLAME	"VHCA_BLUEFLAME"

static const char * const counters[] = { "signatures", "cqe_payloads", "blueflames" };
static const char * const names[] = { SIGNATURE, SCATTER, BLUEFLAME };
#define OPTIONS	3

struct bed {
	struct pair p;
	struct end *a;
	struct end *b;
	long long before[OPTIONS];
};

FIXTURE(options) {
	struct bed bed;
};

FIXTURE_VARIANT(options) {
	const char *engine;
	unsigned int on;	/* bits by the order of names[] */
};

FIXTURE_VARIANT_ADD(options, none) {
	.engine = "inline",
	.on = 0,
};

FIXTURE_VARIANT_ADD(options, none_threaded) {
	.engine = "threaded",
	.on = 0,
};

FIXTURE_VARIANT_ADD(options, signature) {
	.engine = "inline",
	.on = 1,
};

FIXTURE_VARIANT_ADD(options, signature_threaded) {
	.engine = "threaded",
	.on = 1,
};

FIXTURE_VARIANT_ADD(options, scatter) {
	.engine = "inline",
	.on = 2,
};

FIXTURE_VARIANT_ADD(options, scatter_threaded) {
	.engine = "threaded",
	.on = 2,
};

FIXTURE_VARIANT_ADD(options, blueflame) {
	.engine = "inline",
	.on = 4,
};

FIXTURE_VARIANT_ADD(options, blueflame_threaded) {
	.engine = "threaded",
	.on = 4,
};

FIXTURE_VARIANT_ADD(options, all) {
	.engine = "inline",
	.on = 7,
};

FIXTURE_VARIANT_ADD(options, all_threaded) {
	.engine = "threaded",
	.on = 7,
};

FIXTURE_SETUP(options)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	int i;

	ASSERT_EQ(0, engine_set(variant->engine));
	for (i = 0; i < OPTIONS; i++) {
		setenv(names[i], variant->on & 1 << i ? "1" : "0", 1);
		self->bed.before[i] = device_counter(0, counters[i]);
		ASSERT_LE(0, self->bed.before[i]);
	}
	pair_open(_metadata, &self->bed.p, &opts);
	self->bed.a = &self->bed.p.end[0];
	self->bed.b = &self->bed.p.end[1];
}

FIXTURE_TEARDOWN(options)
{
	pair_close(_metadata, &self->bed.p);
}

static long long moved(struct bed *bed, int option)
{
	return device_counter(0, counters[option]) - bed->before[option];
}

/* A message of @len bytes from three slices to three others, data checked. */
static void message(struct __test_metadata *_metadata, struct bed *bed,
		    uint32_t len, uint64_t id, unsigned int flags)
{
	struct end *a = bed->a, *b = bed->b;
	struct slice from[] = {
		{ 1, len / 3 }, { 9000, len / 4 }, { 20003, len - len / 3 - len / 4 },
	};
	struct slice to[] = { { 3, len / 2 }, { 9001, 0 }, { 20002, len - len / 2 } };
	uint8_t sent[8192], got[8192];
	struct ibv_wc wc;
	uint32_t at = 0;
	int i;

	fill(sent, len, id);
	memset(b->buf, 0xee, b->len);
	for (i = 0; i < 3; i++) {
		memcpy(a->buf + from[i].off, sent + at, from[i].len);
		at += from[i].len;
	}
	ASSERT_EQ(0, post_recv_slices(b, id, to, 3));
	ASSERT_EQ(0, post_send_slices(a, id, from, 3, flags | IBV_SEND_SIGNALED));
	wc = expect_wc(_metadata, b->rcq, id, IBV_WC_SUCCESS);
	ASSERT_EQ(len, wc.byte_len);
	expect_wc(_metadata, a->scq, id, IBV_WC_SUCCESS);
	memcpy(got, b->buf + to[0].off, to[0].len);
	memcpy(got + to[0].len, b->buf + to[2].off, to[2].len);
	ASSERT_EQ(0, memcmp(sent, got, len)) {
		TH_LOG("number %llu, %u bytes", (unsigned long long)id, len);
	}
	/* Nothing beside it. */
	ASSERT_EQ(0xee, b->buf[to[0].off - 1]);
	ASSERT_EQ(0xee, b->buf[to[0].off + to[0].len]);
	ASSERT_EQ(0xee, b->buf[to[2].off + to[2].len]);
}

TEST_F(options, messages_arrive_over_laps_of_the_rings)
{
	static const uint32_t lens[] = { 1, 8, 0, 31, 32, 33, 100, 2, 64, 5000, 12, 128, 7 };
	int i, n = 250;

	for (i = 0; i < n; i++) {
		uint32_t len = lens[i % ARRAY_SIZE(lens)];

		message(_metadata, &self->bed, len, 1000 + i,
			len <= 128 && i & 1 ? IBV_SEND_INLINE : 0);
	}
	/*
	 * Each WQE at both ends; small payloads; WQEs of one basic block. With a thread the
	 * device may come to a line when the next WQE is posted already.
	 */
	EXPECT_EQ(variant->on & 1 ? 2 * n : 0, moved(&self->bed, 0));
	EXPECT_LE(variant->on & 2 ? n / 3 : 0, moved(&self->bed, 1));
	EXPECT_LE(variant->on & 4 ? 1 : 0, moved(&self->bed, 2));
	if (!variant->on) {
		EXPECT_EQ(0, moved(&self->bed, 1));
		EXPECT_EQ(0, moved(&self->bed, 2));
	}
}

TEST_F(options, lists_of_work_requests_arrive)
{
	struct end *a = self->bed.a, *b = self->bed.b;
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8];
	uint64_t id = 0;
	int round, i;

	fill(a->buf, 4096, 5);
	for (round = 0; round < 40; round++) {
		/* Sometimes one, which may go in the doorbell, sometimes more. */
		int n = round % 3 ? 1 : 8;

		memset(b->buf, 0, 4096);
		for (i = 0; i < n; i++) {
			sge[i] = (struct ibv_sge) {
				(uintptr_t)a->buf + i * 40, 16 + i, a->mr->lkey,
			};
			wr[i] = (struct ibv_send_wr) {
				.wr_id = id + i, .sg_list = &sge[i], .num_sge = 1,
				.opcode = IBV_WR_SEND, .next = i < n - 1 ? &wr[i + 1] : NULL,
				.send_flags = i == n - 1 ? IBV_SEND_SIGNALED : 0,
			};
			ASSERT_EQ(0, post_recv(b, id + i, i * 40, 40));
		}
		ASSERT_EQ(0, ibv_post_send(a->qp, wr, &bad));
		for (i = 0; i < n; i++)
			expect_wc(_metadata, b->rcq, id + i, IBV_WC_SUCCESS);
		expect_wc(_metadata, a->scq, id + n - 1, IBV_WC_SUCCESS);
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, memcmp(a->buf + i * 40, b->buf + i * 40, 16 + i));
		id += n;
	}
}

TEST_F(options, rdma_and_atomics_work)
{
	struct end *a = self->bed.a, *b = self->bed.b;
	struct ibv_sge sge = { (uintptr_t)a->buf, 24, a->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)b->buf + 64, b->mr->rkey },
	}, *bad;
	uint64_t value = 40, old;
	int i;

	for (i = 0; i < 70; i++) {
		fill(a->buf, 24, i);
		wr.opcode = IBV_WR_RDMA_WRITE;
		sge.length = 24;
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		expect_wc(_metadata, a->scq, 0, IBV_WC_SUCCESS);
		ASSERT_EQ(0, memcmp(a->buf, b->buf + 64, 24));
		memset(a->buf, 0, 24);
		wr.opcode = IBV_WR_RDMA_READ;
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		expect_wc(_metadata, a->scq, 0, IBV_WC_SUCCESS);
		ASSERT_EQ(0, memcmp(a->buf, b->buf + 64, 24));
	}
	memcpy(b->buf + 64, &value, 8);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)b->buf + 64;
	wr.wr.atomic.rkey = b->mr->rkey;
	wr.wr.atomic.compare_add = 2;
	sge.length = 8;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	expect_wc(_metadata, a->scq, 0, IBV_WC_SUCCESS);
	memcpy(&old, a->buf, 8);
	memcpy(&value, b->buf + 64, 8);
	EXPECT_EQ(40, old);
	EXPECT_EQ(42, value);
}

TEST_F(options, a_receive_key_is_checked)
{
	struct ibv_sge bad = { (uintptr_t)self->bed.b->buf, 64, self->bed.b->mr->lkey ^ 0x5500 };
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv_sges(self->bed.b->qp, 7, &bad, 1));
	ASSERT_EQ(0, post_send(self->bed.a, 8, 0, 16, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->bed.b->rcq, 7, IBV_WC_LOC_PROT_ERR);
	ASSERT_TRUE(poll_wc(self->bed.a->scq, &wc));
	EXPECT_EQ(IBV_WC_REM_OP_ERR, wc.status);
}

TEST_F(options, a_message_too_long_is_refused)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->bed.b, 7, 0, 15));
	ASSERT_EQ(0, post_send(self->bed.a, 8, 0, 16, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->bed.b->rcq, 7, IBV_WC_LOC_LEN_ERR);
	ASSERT_TRUE(poll_wc(self->bed.a->scq, &wc));
	EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, wc.status);
}

/* Addresses of the region are not those of the memory: nothing to be copied there. */
TEST_F(options, a_region_at_other_addresses_receives_its_data)
{
	struct end *a = self->bed.a, *b = self->bed.b;
	uint64_t iova = 0x10000 + ((uintptr_t)b->buf & 4095);
	struct ibv_mr *mr = ibv_reg_mr_iova(b->pd, b->buf, b->len, iova,
					    IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .length = 32 };

	ASSERT_NE(NULL, mr);
	sge.addr = iova + 128;
	sge.lkey = mr->lkey;
	fill(a->buf, 16, 3);
	memset(b->buf, 0, 256);
	ASSERT_EQ(0, post_recv_sges(b->qp, 7, &sge, 1));
	ASSERT_EQ(0, post_send(a, 8, 0, 16, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 7, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(a->buf, b->buf + 128, 16));
	EXPECT_EQ(0, moved(&self->bed, 1));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(options, the_qp_works_again_after_a_reset)
{
	int i;

	for (i = 0; i < 3; i++) {
		message(_metadata, &self->bed, 20, 40 + i, 0);
		message(_metadata, &self->bed, 21, 50 + i, IBV_SEND_INLINE);
		pair_reconnect(_metadata, &self->bed.p);
	}
}

TEST_F(options, as_many_segments_as_were_granted_are_used)
{
	struct ibv_device_attr dev;
	struct pair_opts opts = PAIR_DEFAULTS;
	struct slice to[32];
	int i, n;

	ASSERT_EQ(0, ibv_query_device(self->bed.a->ctx, &dev));
	pair_close(_metadata, &self->bed.p);
	opts.cap.max_recv_sge = dev.max_sge;
	pair_open(_metadata, &self->bed.p, &opts);
	n = self->bed.b->cap.max_recv_sge;
	ASSERT_LE(dev.max_sge, n);
	for (i = 0; i < n; i++)
		to[i] = (struct slice) { i * 10, 1 };
	fill(self->bed.a->buf, n, 9);
	ASSERT_EQ(0, post_recv_slices(self->bed.b, 1, to, n));
	ASSERT_EQ(0, post_send(self->bed.a, 1, 0, n, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->bed.b->rcq, 1, IBV_WC_SUCCESS);
	for (i = 0; i < n; i++)
		ASSERT_EQ(self->bed.a->buf[i], self->bed.b->buf[i * 10]);
}

/* By hand */

FIXTURE(by_hand) {
	struct raw_bed bed;
	struct raw_qp a;
	struct raw_qp b;
};

FIXTURE_SETUP(by_hand)
{
	ASSERT_EQ(0, raw_engine("inline"));
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
}

FIXTURE_TEARDOWN(by_hand)
{
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

static int make(struct raw_bed *bed, struct raw_qp *qp, uint8_t flags)
{
	memset(qp, 0, sizeof(*qp));
	qp->made.sq_shift = RAW_SQ_SHIFT;
	qp->made.rq_shift = RAW_RQ_SHIFT;
	qp->made.rq_sge_shift = 2;
	qp->made.flags = flags;
	if (flags & VHCA_QP_F_BLUEFLAME)
		qp->made.bf_slot = 60 - 2 * (bed->ctx.slot & 15);
	return raw_make_qp(&bed->ctx, qp, &bed->scq, &bed->rcq);
}

static int make_pair(struct raw_bed *bed, struct raw_qp *a, struct raw_qp *b, uint8_t flags)
{
	int err = make(bed, a, flags);

	if (!err)
		err = make(bed, b, flags);
	return err ? err : raw_connect(a, b);
}

static uint8_t xor_of(const void *mem, size_t len)
{
	const uint8_t *p = mem;
	uint8_t sum = 0;

	while (len--)
		sum ^= *p++;
	return sum;
}

/* A receive of one SGE and the sentinel, signed. */
static struct vhca_wqe_recv_head *build_recv(struct raw_bed *bed, struct raw_qp *qp)
{
	struct vhca_wqe_data *wqe = raw_rq_wqe(qp, qp->rq_pi);
	struct vhca_wqe_recv_head *head = (void *)wqe;

	*head = (struct vhca_wqe_recv_head) {};
	wqe[1] = raw_sge(&bed->mr, 8192, 64);
	wqe[2] = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
	memset(&wqe[3], 0x5a, sizeof(wqe[3]));	/* is not signed */
	head->signature = ~xor_of(wqe, 48);
	return head;
}

static struct vhca_wqe_ctrl *build_signed(struct raw_bed *bed, struct raw_qp *qp)
{
	struct vhca_wqe_data sge = raw_sge(&bed->mr, 0, 16);
	struct vhca_wqe_ctrl *ctrl = raw_build_send(qp, VHCA_WQE_SIGNALED, &sge, 1);

	ctrl->signature = ~xor_of(ctrl, 32);
	return ctrl;
}

static int wants(struct raw_cq *cq, uint8_t status, uint8_t verr)
{
	struct raw_wc wc;
	int err = raw_wait_wc(cq, &wc);

	if (!err && (wc.status != status || wc.vendor_err != verr)) {
		fprintf(stderr, "# status %u vendor_err %#x\n", wc.status, wc.vendor_err);
		err = -EPROTO;
	}
	return err;
}

TEST_F(by_hand, wqes_that_are_signed_rightly_are_executed)
{
	int i;

	ASSERT_EQ(0, make_pair(&self->bed, &self->a, &self->b, VHCA_QP_F_SIGNATURE));
	for (i = 0; i < 200; i++) {
		build_recv(&self->bed, &self->b);
		ASSERT_EQ(0, raw_post_recv(&self->b));
		build_signed(&self->bed, &self->a);
		ASSERT_EQ(0, raw_post_built(&self->a));
		ASSERT_EQ(0, wants(&self->bed.scq, VHCA_CQE_SUCCESS, VHCA_VERR_NONE));
		ASSERT_EQ(0, wants(&self->bed.rcq, VHCA_CQE_SUCCESS, VHCA_VERR_NONE));
	}
}

TEST_F(by_hand, a_send_wqe_with_a_bad_signature_is_refused)
{
	int bit;

	ASSERT_EQ(0, make_pair(&self->bed, &self->a, &self->b, VHCA_QP_F_SIGNATURE));
	for (bit = 0; bit < 8; bit++) {
		build_signed(&self->bed, &self->a)->signature ^= 1 << bit;
		ASSERT_EQ(0, raw_post_built(&self->a));
		ASSERT_EQ(0, wants(&self->bed.scq, VHCA_CQE_LOC_QP_OP_ERR,
				   VHCA_VERR_WQE_SIGNATURE));
		EXPECT_EQ(VHCA_QPS_ERR, raw_state(&self->a));
		ASSERT_EQ(0, raw_reset_qp(&self->a));
		ASSERT_EQ(0, raw_reset_qp(&self->b));
		ASSERT_EQ(0, raw_connect(&self->a, &self->b));
	}
}

TEST_F(by_hand, a_changed_byte_of_a_signed_wqe_is_noticed)
{
	struct vhca_wqe_ctrl *ctrl;

	ASSERT_EQ(0, make_pair(&self->bed, &self->a, &self->b, VHCA_QP_F_SIGNATURE));
	ctrl = build_signed(&self->bed, &self->a);
	((uint8_t *)ctrl)[16 + 15] ^= 8;	/* of the address */
	ASSERT_EQ(0, raw_post_built(&self->a));
	EXPECT_EQ(0, wants(&self->bed.scq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SIGNATURE));
}

TEST_F(by_hand, a_receive_wqe_with_a_bad_signature_is_refused)
{
	ASSERT_EQ(0, make_pair(&self->bed, &self->a, &self->b, VHCA_QP_F_SIGNATURE));
	build_recv(&self->bed, &self->b)->signature ^= 1;
	ASSERT_EQ(0, raw_post_recv(&self->b));
	build_signed(&self->bed, &self->a);
	ASSERT_EQ(0, raw_post_built(&self->a));
	EXPECT_EQ(0, wants(&self->bed.rcq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SIGNATURE));
	EXPECT_EQ(0, wants(&self->bed.scq, VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE));
	EXPECT_EQ(VHCA_QPS_ERR, raw_state(&self->b));
}

TEST_F(by_hand, a_head_with_other_fields_is_refused)
{
	struct vhca_wqe_recv_head *head;

	ASSERT_EQ(0, make_pair(&self->bed, &self->a, &self->b, VHCA_QP_F_SIGNATURE));
	head = build_recv(&self->bed, &self->b);
	head->tag = htobe16(1);
	head->signature ^= 1;	/* right again */
	ASSERT_EQ(0, raw_post_recv(&self->b));
	build_signed(&self->bed, &self->a);
	ASSERT_EQ(0, raw_post_built(&self->a));
	EXPECT_EQ(0, wants(&self->bed.rcq, VHCA_CQE_LOC_QP_OP_ERR, VHCA_VERR_WQE_SEG));
}

/* A WQE that differs from that in the SQ by its immediate data. */
static void store_line(struct raw_qp *qp, uint32_t slot, uint16_t index, uint32_t imm)
{
	struct vhca_uar_slot *line = (struct vhca_uar_slot *)qp->ctx->uar_page + slot;
	struct vhca_wqe_ctrl ctrl = {
		.idx_opcode = htobe32((uint32_t)index << VHCA_WQE_IDX_SHIFT | VHCA_OP_SEND_IMM),
		.qpn_ds = htobe32(qp->made.qpn << VHCA_WQE_QPN_SHIFT | 1),
		.flags = VHCA_WQE_SIGNALED,
		.imm = htobe32(imm),
	};
	uint64_t first;

	memcpy(line->window, (char *)&ctrl + 8, 8);
	memcpy(&first, &ctrl, 8);
	__atomic_store_n(&line->doorbell, first, __ATOMIC_RELEASE);
}

static int send_imm(struct raw_qp *qp, uint32_t slot, uint16_t index, uint32_t imm)
{
	struct vhca_wqe_ctrl *ctrl = raw_build_send(qp, VHCA_WQE_SIGNALED, NULL, 0);

	ctrl->idx_opcode = htobe32((uint32_t)qp->sq_pi << VHCA_WQE_IDX_SHIFT | VHCA_OP_SEND_IMM);
	ctrl->imm = htobe32(1);		/* in the SQ */
	raw_produce(qp, 1);
	store_line(qp, slot, index, imm);
	return raw_kick(qp->ctx, slot);
}

/* Which of the two WQEs was executed? */
static int came(struct raw_bed *bed)
{
	struct raw_wc wc;
	int err = raw_wait_wc(&bed->rcq, &wc);

	return err ? err : (int)wc.imm;
}

TEST_F(by_hand, the_device_takes_the_wqe_from_either_line_or_the_queue)
{
	struct raw_bed *bed = &self->bed;
	struct raw_qp *a = &self->a, *b = &self->b;
	struct vhca_wqe_data none = { .lkey = htobe32(VHCA_INVALID_LKEY) };
	long long before = raw_device_counter(0, "blueflames");
	int i;

	ASSERT_EQ(0, make_pair(bed, a, b, VHCA_QP_F_BLUEFLAME));
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, raw_recv_sge(b, none));
	ASSERT_EQ(0, send_imm(a, a->made.slot, a->sq_pi, 2));
	EXPECT_EQ(2, came(bed));
	ASSERT_EQ(0, send_imm(a, a->made.bf_slot, a->sq_pi, 3));
	EXPECT_EQ(3, came(bed));
	ASSERT_EQ(0, send_imm(a, a->made.slot, a->sq_pi, 4));
	EXPECT_EQ(4, came(bed));
	EXPECT_EQ(3, raw_device_counter(0, "blueflames") - before);
	/* Of another index: it is not the one. */
	ASSERT_EQ(0, send_imm(a, a->made.bf_slot, a->sq_pi + 1, 5));
	EXPECT_EQ(1, came(bed));
	/* Likewise one that was executed already. */
	ASSERT_EQ(0, send_imm(a, a->made.bf_slot, a->sq_pi - 1, 6));
	EXPECT_EQ(1, came(bed));
	EXPECT_EQ(3, raw_device_counter(0, "blueflames") - before);
}

TEST_F(by_hand, a_line_is_left_alone_when_more_is_posted)
{
	struct raw_bed *bed = &self->bed;
	struct raw_qp *a = &self->a, *b = &self->b;
	struct vhca_wqe_data none = { .lkey = htobe32(VHCA_INVALID_LKEY) };
	struct vhca_wqe_ctrl *ctrl;

	ASSERT_EQ(0, make_pair(bed, a, b, VHCA_QP_F_BLUEFLAME));
	ASSERT_EQ(0, raw_recv_sge(b, none));
	ASSERT_EQ(0, raw_recv_sge(b, none));
	ctrl = raw_build_send(a, VHCA_WQE_SIGNALED, NULL, 0);
	ctrl->idx_opcode = htobe32(VHCA_OP_SEND_IMM);
	ctrl->imm = htobe32(7);
	store_line(a, a->made.bf_slot, 0, 9);
	raw_produce(a, 1);
	ASSERT_EQ(0, send_imm(a, a->made.slot, 1, 8));
	EXPECT_EQ(7, came(bed));
	EXPECT_EQ(8, came(bed));
}

TEST_F(by_hand, flags_that_such_a_qp_cannot_have_are_refused)
{
	struct vhca_create_qp good = {
		.type = VHCA_QPT_RC, .pd = self->bed.ctx.pd, .uar = self->bed.ctx.uar.uar,
		.send_cqn = self->bed.scq.made.cqn, .recv_cqn = self->bed.rcq.made.cqn,
		.slot = 40, .flags = VHCA_QP_F_BLUEFLAME, .bf_slot = 41,
	};
	struct vhca_create_qp q;
	int fd = self->bed.ctx.fd;

	q = good;
	q.flags = 0x80;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q = good;
	q.flags = 0;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q = good;
	q.bf_slot = 0;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q.bf_slot = 64;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q.bf_slot = q.slot;
	EXPECT_EQ(-EBUSY, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q = good;
	q.type = VHCA_QPT_UD;
	q.flags = VHCA_QP_F_SCATTER_CQE;
	q.bf_slot = 0;
	EXPECT_EQ(-EINVAL, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
	q = good;
	EXPECT_EQ(0, raw_ioctl(fd, VHCA_IOC_CREATE_QP, &q));
}

TEST_HARNESS_MAIN
