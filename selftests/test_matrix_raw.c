// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_matrix_raw.c: WQEs of operations that a transport does not have, which no
 * library would write: what semantics.h says of them, and the way back.
 */
#include "raw.h"
#include "semantics.h"

#include "harness.h"

#define LEN	64

/** struct bed - two QPs of a type */
struct bed {
	struct raw_ctx ctx;
	struct raw_mr mr;
	struct raw_cq scq;
	struct raw_cq rcq;
	struct raw_pair p;
	enum sem_transport t;
};

FIXTURE(wqe)
{
	struct bed bed;
};

FIXTURE_VARIANT(wqe)
{
	enum sem_transport transport;
	uint32_t type;
	const char *engine;
};

FIXTURE_VARIANT_ADD(wqe, rc)
{
	.transport = SEM_RC,
	.type = VHCA_QPT_RC,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(wqe, uc)
{
	.transport = SEM_UC,
	.type = VHCA_QPT_UC,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(wqe, uc_threaded)
{
	.transport = SEM_UC,
	.type = VHCA_QPT_UC,
	.engine = "threaded",
};

FIXTURE_VARIANT_ADD(wqe, ud)
{
	.transport = SEM_UD,
	.type = VHCA_QPT_UD,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(wqe, ud_threaded)
{
	.transport = SEM_UD,
	.type = VHCA_QPT_UD,
	.engine = "threaded",
};

FIXTURE_SETUP(wqe)
{
	struct bed *bed = &self->bed;
	struct raw_pair *p = &bed->p;
	int i;

	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_EQ(0, raw_open(&bed->ctx, 0));
	ASSERT_EQ(0, raw_mr(&bed->ctx, &bed->mr, 16384));
	ASSERT_EQ(0, raw_cq(&bed->ctx, &bed->scq, 64, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_cq(&bed->ctx, &bed->rcq, 64, VHCA_INVALID_FD));
	bed->t = variant->transport;
	for (i = 0; i < 2; i++) {
		struct raw_qp *qp = i ? &p->b : &p->a;

		qp->made.type = variant->type;
		qp->made.sq_shift = RAW_SQ_SHIFT;
		qp->made.rq_shift = RAW_RQ_SHIFT;
		qp->made.rq_sge_shift = RAW_SGE_SHIFT;
		ASSERT_EQ(0, raw_make_qp(&bed->ctx, qp, &bed->scq, &bed->rcq));
	}
	ASSERT_EQ(0, raw_connect(&p->a, &p->b));
}

FIXTURE_TEARDOWN(wqe)
{
	raw_close(&self->bed.ctx);
	raw_engine("inline");
}

/* The segments that an opcode has, as if the transport had it; how many. */
static unsigned int build_segs(struct bed *bed, void *at, unsigned int opcode)
{
	struct vhca_wqe_raddr *raddr = at;
	struct vhca_wqe_data *data = at;
	unsigned int n = 0;

	if (opcode == VHCA_OP_LOCAL_INV)
		return 0;
	if (opcode == VHCA_OP_BIND_MW) {
		memset(at, 0, sizeof(struct vhca_wqe_bind));
		return sizeof(struct vhca_wqe_bind) / VHCA_WQE_SEG_SIZE;
	}
	if (opcode != VHCA_OP_SEND && opcode != VHCA_OP_SEND_IMM && opcode != VHCA_OP_SEND_INV)
		raddr[n++] = (struct vhca_wqe_raddr) {
			.addr = htobe64((uintptr_t)bed->mr.addr),
			.rkey = htobe32(bed->mr.rkey),
		};
	if (opcode == VHCA_OP_ATOMIC_CS || opcode == VHCA_OP_ATOMIC_FA)
		memset(&raddr[n++], 0, VHCA_WQE_SEG_SIZE);
	data[n++] = raw_sge(&bed->mr, 0, 8);
	return n;
}

static int post(struct bed *bed, unsigned int opcode)
{
	struct raw_qp *qp = &bed->p.a;
	uint8_t wqe[4 * VHCA_WQEBB_SIZE] = {};
	struct vhca_wqe_ctrl *ctrl = (void *)wqe;
	struct vhca_wqe_dgram *dgram = (void *)(ctrl + 1);
	unsigned int blocks, i, n = 1;

	if (bed->t == SEM_UD) {
		dgram->dest_qpn = htobe32(bed->p.b.made.qpn);
		dgram->dlid = htobe16(bed->ctx.lid);
		n += VHCA_WQE_DGRAM_SEGS;
	}
	n += build_segs(bed, ctrl + n, opcode);
	ctrl->idx_opcode = htobe32((uint32_t)qp->sq_pi << VHCA_WQE_IDX_SHIFT | opcode);
	ctrl->qpn_ds = htobe32(qp->made.qpn << VHCA_WQE_QPN_SHIFT | n);
	ctrl->flags = VHCA_WQE_SIGNALED;
	blocks = (n * VHCA_WQE_SEG_SIZE + VHCA_WQEBB_SIZE - 1) / VHCA_WQEBB_SIZE;
	for (i = 0; i < blocks; i++)
		memcpy(raw_sq_block(qp, qp->sq_pi + i), wqe + i * VHCA_WQEBB_SIZE,
		       VHCA_WQEBB_SIZE);
	raw_produce(qp, blocks);
	return raw_ring_qp(qp);
}

/* A SEND that arrives. */
static void exchange(struct __test_metadata *_metadata, struct bed *bed)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_recv(&bed->p.b, &bed->mr, 8192, 4096));
	ASSERT_EQ(0, post(bed, VHCA_OP_SEND));
	ASSERT_EQ(0, raw_wait_wc(&bed->scq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	ASSERT_EQ(0, raw_wait_wc(&bed->rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(VHCA_CQE_RESP, wc.opcode);
}

static void recover(struct __test_metadata *_metadata, struct bed *bed)
{
	if (1u << bed->t & UNREL) {
		ASSERT_EQ(0, raw_goto(&bed->p.a, VHCA_QPS_RTS));
	} else {
		ASSERT_EQ(0, raw_reset_qp(&bed->p.a));
		ASSERT_EQ(0, raw_reset_qp(&bed->p.b));
		ASSERT_EQ(0, raw_connect(&bed->p.a, &bed->p.b));
	}
	exchange(_metadata, bed);
}

static void refused(struct __test_metadata *_metadata, struct bed *bed, unsigned int opcode)
{
	struct raw_wc wc;

	ASSERT_EQ(0, post(bed, opcode));
	ASSERT_EQ(0, raw_wait_wc(&bed->scq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, wc.status) {
		TH_LOG("opcode %#x: status %u", opcode, wc.status);
	}
	EXPECT_EQ(VHCA_VERR_WQE_OPCODE, wc.vendor_err);
	EXPECT_EQ(VHCA_CQE_REQ, wc.opcode);
	EXPECT_EQ(1u << bed->t & UNREL ? VHCA_QPS_SQE : VHCA_QPS_ERR, raw_state(&bed->p.a));
	ASSERT_EQ(0, post(bed, VHCA_OP_SEND));
	ASSERT_EQ(0, raw_wait_wc(&bed->scq, &wc));
	EXPECT_EQ(VHCA_CQE_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(VHCA_QPS_RTS, raw_state(&bed->p.b));
	EXPECT_FALSE(raw_poll(&bed->rcq, &wc));
	recover(_metadata, bed);
}

TEST_F(wqe, of_an_operation_that_the_transport_has_not_is_refused)
{
	struct bed *bed = &self->bed;
	enum sem_op op;
	int n = 0;

	exchange(_metadata, bed);
	for (op = 0; op < SEM_OP_COUNT; op++) {
		if (sem_legal(op, bed->t))
			continue;
		refused(_metadata, bed, sem_ops[op].wqe);
		n++;
	}
	EXPECT_EQ(bed->t == SEM_RC, n == 0);
}

TEST_F(wqe, of_an_opcode_that_there_is_not_is_refused)
{
	struct bed *bed = &self->bed;
	unsigned int opcode, i;

	for (opcode = 0; opcode < 0x100; opcode++) {
		for (i = 0; i < SEM_OP_COUNT && sem_ops[i].wqe != opcode; i++)
			;
		if (i == SEM_OP_COUNT)
			refused(_metadata, bed, opcode);
	}
}

TEST_HARNESS_MAIN
