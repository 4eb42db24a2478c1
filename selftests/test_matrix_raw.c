// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_matrix_raw.c: WQEs of operations that a transport does not have, which no
 * library would write: what semantics.h says of them, and the way back.
 */
#include "raw.h"
#include "semantics.h"

#include "../kselftest_harness.h"

#define LEN	64

FIXTURE(wqe)
{
	struct raw_ctx ctx;
	struct raw_mr mr;
	struct raw_cq scq;
	struct raw_cq rcq;
	struct raw_pair p;
	enum sem_transport t;
};

FIXTURE_VARIANT(wqe)
{
	enum sem_transport transport;
	uint32_t type;
	const char *engine;
};

#define WQE_VARIANT(name, t, qpt, how)					\
FIXTURE_VARIANT_ADD(wqe, name)						\
{									\
	.transport = t,							\
	.type = qpt,							\
	.engine = how,							\
}

WQE_VARIANT(rc, SEM_RC, VHCA_QPT_RC, "inline");
WQE_VARIANT(rc_threaded, SEM_RC, VHCA_QPT_RC, "threaded");

FIXTURE_SETUP(wqe)
{
	struct raw_pair *p = &self->p;
	int i;

	ASSERT_EQ(0, raw_engine(variant->engine));
	ASSERT_EQ(0, raw_open(&self->ctx, 0));
	ASSERT_EQ(0, raw_mr(&self->ctx, &self->mr, 16384));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->scq, 64, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_cq(&self->ctx, &self->rcq, 64, VHCA_INVALID_FD));
	self->t = variant->transport;
	for (i = 0; i < 2; i++) {
		struct raw_qp *qp = i ? &p->b : &p->a;

		qp->made.type = variant->type;
		qp->made.sq_shift = RAW_SQ_SHIFT;
		qp->made.rq_shift = RAW_RQ_SHIFT;
		qp->made.rq_sge_shift = RAW_SGE_SHIFT;
		ASSERT_EQ(0, raw_make_qp(&self->ctx, qp, &self->scq, &self->rcq));
	}
	ASSERT_EQ(0, raw_connect(&p->a, &p->b));
}

FIXTURE_TEARDOWN(wqe)
{
	raw_close(&self->ctx);
	raw_engine("inline");
}

#define SELF	FIXTURE_DATA(wqe) *self

/* The segments that an opcode has, as if the transport had it; how many. */
static unsigned int build_segs(SELF, void *at, unsigned int opcode)
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
			.addr = htobe64((uintptr_t)self->mr.addr),
			.rkey = htobe32(self->mr.rkey),
		};
	if (opcode == VHCA_OP_ATOMIC_CS || opcode == VHCA_OP_ATOMIC_FA)
		memset(&raddr[n++], 0, VHCA_WQE_SEG_SIZE);
	data[n++] = raw_sge(&self->mr, 0, 8);
	return n;
}

static int post(SELF, unsigned int opcode)
{
	struct raw_qp *qp = &self->p.a;
	uint8_t wqe[4 * VHCA_WQEBB_SIZE] = {};
	struct vhca_wqe_ctrl *ctrl = (void *)wqe;
	struct vhca_wqe_dgram *dgram = (void *)(ctrl + 1);
	unsigned int blocks, i, n = 1;

	if (self->t == SEM_UD) {
		dgram->dest_qpn = htobe32(self->p.b.made.qpn);
		dgram->dlid = htobe16(self->ctx.lid);
		n += VHCA_WQE_DGRAM_SEGS;
	}
	n += build_segs(self, ctrl + n, opcode);
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
static void exchange(struct __test_metadata *_metadata, SELF)
{
	struct raw_wc wc;

	ASSERT_EQ(0, raw_recv(&self->p.b, &self->mr, 8192, 4096));
	ASSERT_EQ(0, post(self, VHCA_OP_SEND));
	ASSERT_EQ(0, raw_wait_wc(&self->scq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	ASSERT_EQ(0, raw_wait_wc(&self->rcq, &wc));
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(VHCA_CQE_RESP, wc.opcode);
}

static void recover(struct __test_metadata *_metadata, SELF)
{
	if (1u << self->t & UNREL) {
		ASSERT_EQ(0, raw_goto(&self->p.a, VHCA_QPS_RTS));
	} else {
		ASSERT_EQ(0, raw_reset_qp(&self->p.a));
		ASSERT_EQ(0, raw_reset_qp(&self->p.b));
		ASSERT_EQ(0, raw_connect(&self->p.a, &self->p.b));
	}
	exchange(_metadata, self);
}

static void refused(struct __test_metadata *_metadata, SELF, unsigned int opcode)
{
	struct raw_wc wc;

	ASSERT_EQ(0, post(self, opcode));
	ASSERT_EQ(0, raw_wait_wc(&self->scq, &wc));
	EXPECT_EQ(VHCA_CQE_LOC_QP_OP_ERR, wc.status) {
		TH_LOG("opcode %#x: status %u", opcode, wc.status);
	}
	EXPECT_EQ(VHCA_VERR_WQE_OPCODE, wc.vendor_err);
	EXPECT_EQ(VHCA_CQE_REQ, wc.opcode);
	EXPECT_EQ(1u << self->t & UNREL ? VHCA_QPS_SQE : VHCA_QPS_ERR, raw_state(&self->p.a));
	ASSERT_EQ(0, post(self, VHCA_OP_SEND));
	ASSERT_EQ(0, raw_wait_wc(&self->scq, &wc));
	EXPECT_EQ(VHCA_CQE_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(VHCA_QPS_RTS, raw_state(&self->p.b));
	EXPECT_FALSE(raw_poll(&self->rcq, &wc));
	recover(_metadata, self);
}

TEST_F(wqe, of_an_operation_that_the_transport_has_not_is_refused)
{
	enum sem_op op;
	int n = 0;

	exchange(_metadata, self);
	for (op = 0; op < SEM_OP_COUNT; op++) {
		if (sem_legal(op, self->t))
			continue;
		refused(_metadata, self, sem_ops[op].wqe);
		n++;
	}
	EXPECT_EQ(self->t == SEM_RC, n == 0);
}

TEST_F(wqe, of_an_opcode_that_there_is_not_is_refused)
{
	unsigned int opcode, i;

	for (opcode = 0; opcode < 0x100; opcode++) {
		for (i = 0; i < SEM_OP_COUNT && sem_ops[i].wqe != opcode; i++)
			;
		if (i == SEM_OP_COUNT)
			refused(_metadata, self, opcode);
	}
}

TEST_HARNESS_MAIN
