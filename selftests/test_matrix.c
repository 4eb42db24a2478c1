// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_matrix.c: every operation on every transport, well and with each fault that it
 * can have: data, completions, states and events at both ends as semantics.h has them.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "semantics.h"

#define BUF_LEN		65536
#define REMOTE_AT	16384	/* what RDMA writes, reads, adds to */
#define LOCAL_AT	32768	/* what is sent; where what is read comes to */
#define RECV_AT		0
#define RECV_LEN	8192
#define LEN		1000
#define MARK_LEN	8
#define HUGE		0x60000000u
#define IMM		0x89abcdef

/* Numbers of work requests. */
enum { SHOT = 1, MARK, RECEIVE, BIND };

/**
 * struct shot - one operation, ready to be posted
 * @sge: its data segments, @n of them.
 * @recv: the receive that is posted for it.
 */
struct shot {
	enum sem_op op;
	struct op wr;
	struct ibv_sge sge[2];
	int n;
	uint32_t qkey;
	uint32_t srqn;
	struct ibv_sge recv;
};

/**
 * struct side - what one end has besides
 * @other_pd: has a region over the same memory.
 * @read_only: region without rights.
 * @bindable: region that windows may be bound to.
 * @narrow: region that lacks the right that the operation needs, or is dead.
 * @window: of type 2; a new one for each shot.
 * @binder: XRC: who binds it, where the end itself has no send queue.
 */
struct side {
	struct ibv_pd *other_pd;
	struct ibv_mr *other;
	struct ibv_mr *read_only;
	struct ibv_mr *bindable;
	struct ibv_mr *narrow;
	struct ibv_mw *window;
	struct ibv_qp *binder;
};

/** struct matrix - the two ends, and what is being tried */
struct matrix {
	struct pair p;
	struct pair_opts opts;
	struct end *a;
	struct end *b;
	struct side side[2];
	enum sem_transport t;
	uint32_t grh;
	uint32_t mtu;
	bool waiting;		/* a receive of an earlier shot is in the SRQ */
	char now[128];		/* what is being tried */
};

FIXTURE(matrix)
{
	struct matrix matrix;
};

FIXTURE_VARIANT(matrix)
{
	enum sem_transport transport;
	enum ibv_qp_type type;
	const char *engine;
	int peer;
	bool srq;
};

FIXTURE_VARIANT_ADD(matrix, rc)
{
	.transport = SEM_RC,
	.type = IBV_QPT_RC,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(matrix, rc_far)
{
	.transport = SEM_RC,
	.type = IBV_QPT_RC,
	.engine = "threaded",
	.peer = 1,
};

FIXTURE_VARIANT_ADD(matrix, rc_srq)
{
	.transport = SEM_RC,
	.type = IBV_QPT_RC,
	.engine = "inline",
	.srq = true,
};

FIXTURE_VARIANT_ADD(matrix, uc)
{
	.transport = SEM_UC,
	.type = IBV_QPT_UC,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(matrix, uc_far)
{
	.transport = SEM_UC,
	.type = IBV_QPT_UC,
	.engine = "threaded",
	.peer = 1,
};

FIXTURE_VARIANT_ADD(matrix, ud)
{
	.transport = SEM_UD,
	.type = IBV_QPT_UD,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(matrix, ud_far)
{
	.transport = SEM_UD,
	.type = IBV_QPT_UD,
	.engine = "threaded",
	.peer = 1,
};

FIXTURE_VARIANT_ADD(matrix, xrc)
{
	.transport = SEM_XRC,
	.type = IBV_QPT_XRC_SEND,
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(matrix, xrc_far)
{
	.transport = SEM_XRC,
	.type = IBV_QPT_XRC_SEND,
	.engine = "threaded",
	.peer = 1,
};

static void open_side(struct __test_metadata *_metadata, struct end *e, struct side *s,
		      const struct pair_opts *opts)
{
	int all = IBV_ACCESS_LOCAL_WRITE | opts->access;

	s->other_pd = ibv_alloc_pd(e->ctx);
	ASSERT_NE(NULL, s->other_pd);
	s->other = ibv_reg_mr(s->other_pd, e->buf, e->len, all);
	ASSERT_NE(NULL, s->other);
	s->read_only = ibv_reg_mr(e->pd, e->buf, e->len, 0);
	ASSERT_NE(NULL, s->read_only);
	s->bindable = ibv_reg_mr(e->pd, e->buf, e->len, all | IBV_ACCESS_MW_BIND);
	ASSERT_NE(NULL, s->bindable);
	if (opts->type == IBV_QPT_XRC_SEND) {
		s->binder = make_qp(e->pd, e->scq, NULL, opts, NULL);
		ASSERT_NE(NULL, s->binder);
		qp_connect(_metadata, s->binder, opts, e->lid, s->binder->qp_num);
	}
}

static void close_side(struct __test_metadata *_metadata, struct side *s)
{
	if (s->window)
		EXPECT_EQ(0, ibv_dealloc_mw(s->window));
	if (s->binder)
		EXPECT_EQ(0, ibv_destroy_qp(s->binder));
	EXPECT_EQ(0, ibv_dereg_mr(s->bindable));
	EXPECT_EQ(0, ibv_dereg_mr(s->other));
	EXPECT_EQ(0, ibv_dereg_mr(s->read_only));
	EXPECT_EQ(0, ibv_dealloc_pd(s->other_pd));
}

FIXTURE_SETUP(matrix)
{
	struct matrix *m = &self->matrix;
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_port_attr port;
	int i;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = variant->type;
	opts.srq = variant->srq;
	opts.function[1] = variant->peer;
	opts.buf_len = BUF_LEN;
	m->opts = opts;
	m->t = variant->transport;
	pair_open(_metadata, &m->p, &opts);
	m->a = &m->p.end[0];
	m->b = &m->p.end[1];
	m->grh = m->t == SEM_UD ? GRH_LEN : 0;
	ASSERT_EQ(0, ibv_query_port(m->a->ctx, 1, &port));
	m->mtu = 128u << port.active_mtu;
	for (i = 0; i < 2; i++)
		open_side(_metadata, &m->p.end[i], &m->side[i], &opts);
}

FIXTURE_TEARDOWN(matrix)
{
	struct matrix *m = &self->matrix;
	int i;

	if (_metadata->exit_code)
		TH_LOG("with %s", m->now);
	for (i = 0; i < 2; i++)
		close_side(_metadata, &m->side[i]);
	pair_close(_metadata, &m->p);
}

/*
 * Shots
 */
static struct shot good_shot(struct matrix *m, enum sem_op op)
{
	struct end *a = m->a, *b = m->b;
	uint32_t len = OP(LOCAL_INV) & 1u << op || OP(BIND_MW) & 1u << op ? 0 : LEN;
	struct shot s = {
		.op = op,
		.wr = remote_op(sem_ops[op].wr, b, REMOTE_AT, 0),
		.qkey = PAIR_QKEY,
		.srqn = a->peer_srqn,
		.recv = { (uintptr_t)b->buf + RECV_AT, RECV_LEN, b->mr->lkey },
	};

	if (ATOMICS & 1u << op)
		len = 8;
	s.sge[0] = (struct ibv_sge){ (uintptr_t)a->buf + LOCAL_AT, len, a->mr->lkey };
	s.n = len ? 1 : 0;
	s.wr.len = len;
	s.wr.imm = IMM;
	s.wr.compare_add = 0x1111111111111111;
	s.wr.swap = 0xfedcba9876543210;
	return s;
}

static struct ibv_send_wr shot_wr(struct matrix *m, uint64_t wr_id, struct shot *s)
{
	struct ibv_send_wr wr = op_wr(wr_id, &s->wr, s->sge, s->n);

	wr_to_peer(m->a, &wr);
	if (m->t == SEM_UD)
		wr.wr.ud.remote_qkey = s->qkey;
	if (m->t == SEM_XRC)
		wr.qp_type.xrc.remote_srqn = s->srqn;
	return wr;
}

static int shoot(struct matrix *m, uint64_t wr_id, struct shot *s)
{
	struct ibv_send_wr wr = shot_wr(m, wr_id, s), *bad;

	return ibv_post_send(m->a->qp, &wr, &bad);
}

/* A short SEND behind the shot: what becomes of it tells how it went. */
static int shoot_mark(struct matrix *m)
{
	struct shot s = good_shot(m, SEM_SEND);

	s.sge[0].length = MARK_LEN;
	return shoot(m, MARK, &s);
}

/* A fresh window of an end, not bound. */
static struct ibv_mw *fresh_window(struct __test_metadata *_metadata, struct matrix *m, int i)
{
	struct side *s = &m->side[i];

	if (s->window)
		ASSERT_EQ(0, ibv_dealloc_mw(s->window));
	s->window = ibv_alloc_mw(m->p.end[i].pd, IBV_MW_TYPE_2);
	ASSERT_NE(NULL, s->window) {
		TH_LOG("no window: %s", strerror(errno));
	}
	return s->window;
}

/* To open what is at REMOTE_AT of an end. */
static struct op bind_op(struct __test_metadata *_metadata, struct matrix *m, int i)
{
	struct op op = {
		.opcode = IBV_WR_BIND_MW,
		.flags = IBV_SEND_SIGNALED,
		.mw = fresh_window(_metadata, m, i),
		.bind = {
			.mr = m->side[i].bindable,
			.addr = (uintptr_t)m->p.end[i].buf + REMOTE_AT,
			.length = 4096,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};

	op.new_rkey = ibv_inc_rkey(op.mw->rkey);
	return op;
}

/* The key of a window that is bound there. */
static uint32_t bound(struct __test_metadata *_metadata, struct matrix *m, int i)
{
	struct op op = bind_op(_metadata, m, i);
	struct ibv_qp *qp = m->side[i].binder ? m->side[i].binder : m->p.end[i].qp;

	ASSERT_EQ(0, post_op_sges(qp, BIND, &op, NULL, 0));
	expect_wc(_metadata, m->p.end[i].scq, BIND, IBV_WC_SUCCESS);
	return op.new_rkey;
}

static void expect_receive(struct __test_metadata *_metadata, struct matrix *m, uint32_t len,
			   const struct sem_op_row *row, uint32_t imm)
{
	struct ibv_wc wc = expect_wc(_metadata, m->b->rcq, RECEIVE, IBV_WC_SUCCESS);

	EXPECT_EQ(row->recv, (int)wc.opcode);
	EXPECT_EQ(m->grh + len, wc.byte_len);
	EXPECT_EQ(row->recv_flags, wc.wc_flags);
	EXPECT_EQ(m->b->qp->qp_num, wc.qp_num);
	EXPECT_EQ(m->a->qp->qp_num, wc.src_qp);
	EXPECT_EQ(m->a->lid, wc.slid);
	if (wc.wc_flags & IBV_WC_WITH_IMM)
		EXPECT_EQ(imm, be32toh(wc.imm_data));
	if (wc.wc_flags & IBV_WC_WITH_INV)
		EXPECT_EQ(imm, wc.invalidated_rkey);
	m->waiting = false;
}

/* Both QPs anew, as p->opts says; no completion, no receive is left. */
static void start(struct __test_metadata *_metadata, struct matrix *m)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, qp_to(m->p.end[i].qp, IBV_QPS_RESET));
	for (i = 0; i < 2; i++) {
		while (ibv_poll_cq(m->p.end[i].scq, 1, &wc) > 0)
			;
		while (ibv_poll_cq(m->p.end[i].rcq, 1, &wc) > 0)
			;
	}
	pair_connect(_metadata, &m->p);
	if (m->waiting && m->b->srq) {
		ASSERT_EQ(0, shoot_mark(m));
		expect_wc(_metadata, m->a->scq, MARK, IBV_WC_SUCCESS);
		expect_receive(_metadata, m, MARK_LEN, &sem_ops[SEM_SEND], 0);
	}
	m->waiting = false;
	fill(m->a->buf, BUF_LEN, 1);
	memset(m->b->buf, 0x11, BUF_LEN);
}

static void post_receive(struct __test_metadata *_metadata, struct matrix *m, struct ibv_sge *sge)
{
	ASSERT_EQ(0, post_recv_end(m->b, RECEIVE, sge, 1));
	m->waiting = true;
}

/*
 * Well
 */
static void expect_data(struct __test_metadata *_metadata, struct matrix *m, const struct shot *s,
			uint64_t before, const uint8_t *source)
{
	struct end *a = m->a, *b = m->b;
	uint64_t *remote = word(b, REMOTE_AT), *local = word(a, LOCAL_AT);

	switch (s->op) {
	case SEM_SEND:
	case SEM_SEND_IMM:
	case SEM_SEND_INV:
		EXPECT_EQ(0, memcmp(b->buf + RECV_AT + m->grh, source, LEN));
		EXPECT_TRUE(all_are(b->buf + RECV_LEN, 0x11, BUF_LEN - RECV_LEN));
		break;
	case SEM_WRITE:
	case SEM_WRITE_IMM:
		EXPECT_EQ(0, memcmp(b->buf + REMOTE_AT, source, LEN));
		EXPECT_TRUE(all_are(b->buf, 0x11, REMOTE_AT));
		break;
	case SEM_READ:
		EXPECT_EQ(0, memcmp(a->buf + LOCAL_AT, b->buf + REMOTE_AT, LEN));
		break;
	case SEM_CAS:
		EXPECT_EQ(before, *local);
		EXPECT_EQ(before == s->wr.compare_add ? s->wr.swap : before, *remote);
		break;
	case SEM_FAA:
		EXPECT_EQ(before, *local);
		EXPECT_EQ(before + s->wr.compare_add, *remote);
		break;
	default:
		break;
	}
}

static uint32_t bytes_read(const struct shot *s)
{
	if (ATOMICS & 1u << s->op)
		return 8;
	return s->op == SEM_READ ? LEN : 0;
}

static void goes_well(struct __test_metadata *_metadata, struct matrix *m, struct shot *s)
{
	const struct sem_op_row *row = &sem_ops[s->op];
	struct end *a = m->a, *b = m->b;
	uint64_t before = *word(b, REMOTE_AT);
	uint8_t source[LEN];
	struct ibv_wc wc;

	memcpy(source, a->buf + LOCAL_AT, LEN);
	if (row->recv != SEM_NONE)
		post_receive(_metadata, m, &s->recv);
	ASSERT_EQ(0, shoot(m, SHOT, s)) {
		TH_LOG("%s cannot be posted", row->name);
	}
	wc = expect_wc(_metadata, a->scq, SHOT, IBV_WC_SUCCESS);
	EXPECT_EQ(row->wc, wc.opcode);
	EXPECT_EQ(bytes_read(s), wc.byte_len);
	EXPECT_EQ(0, wc.wc_flags);
	EXPECT_EQ(a->qp->qp_num, wc.qp_num);
	if (row->recv != SEM_NONE)
		expect_receive(_metadata, m, bytes_read(s) ? 0 : LEN, row, s->wr.imm);
	expect_data(_metadata, m, s, before, source);
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
}

TEST_F(matrix, what_there_is_does_what_it_says)
{
	struct matrix *m = &self->matrix;
	enum sem_op op;

	for (op = 0; op < SEM_LOCAL_INV; op++) {
		struct shot s = good_shot(m, op);

		if (!sem_legal(op, m->t) || op == SEM_SEND_INV)
			continue;
		snprintf(m->now, sizeof(m->now), "%s", sem_ops[op].name);
		start(_metadata, m);
		goes_well(_metadata, m, &s);
	}
	/* A swap that compares equal. */
	if (sem_legal(SEM_CAS, m->t)) {
		struct shot s = good_shot(m, SEM_CAS);

		start(_metadata, m);
		s.wr.compare_add = *word(m->b, REMOTE_AT);
		goes_well(_metadata, m, &s);
		EXPECT_EQ(s.wr.swap, *word(m->b, REMOTE_AT));
	}
}

/* Can the other end write to this one? In an XRC pair only the first end can. */
static bool link_back(const struct matrix *m, int i)
{
	return m->t != SEM_XRC || i == 1;
}

/* What is written through the window arrives, or nothing arrives any more. */
static void through_window(struct __test_metadata *_metadata, struct matrix *m, int i,
			   uint32_t rkey, bool open)
{
	struct end *here = &m->p.end[i], *there = &m->p.end[!i];
	struct op op = remote_op(IBV_WR_RDMA_WRITE, here, REMOTE_AT, 100);
	enum ibv_wc_status shut = m->t == SEM_UC ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
	bool same;

	if (!link_back(m, i))
		return;
	op.rkey = rkey;
	fill(there->buf, 100, 7);
	ASSERT_EQ(0, post_op(there, SHOT, &op));
	expect_wc(_metadata, there->scq, SHOT, open ? IBV_WC_SUCCESS : shut);
	same = !memcmp(here->buf + REMOTE_AT, there->buf, 100);
	EXPECT_EQ(open, same);
	memset(here->buf + REMOTE_AT, 0, 100);
}

TEST_F(matrix, windows_are_bound_and_invalidated)
{
	struct matrix *m = &self->matrix;
	struct shot bind = good_shot(m, SEM_BIND_MW), inv = good_shot(m, SEM_LOCAL_INV);
	struct shot send = good_shot(m, SEM_SEND_INV);
	struct ibv_async_event event;

	if (!sem_legal(SEM_BIND_MW, m->t))
		SKIP(return, "no windows");
	start(_metadata, m);
	bind.wr = bind_op(_metadata, m, 0);
	goes_well(_metadata, m, &bind);
	through_window(_metadata, m, 0, bind.wr.new_rkey, true);
	inv.wr.imm = bind.wr.new_rkey;
	goes_well(_metadata, m, &inv);
	through_window(_metadata, m, 0, bind.wr.new_rkey, false);

	while (readable(m->a->ctx->async_fd, 0) && async_event(m->a->ctx, &event))
		;
	start(_metadata, m);
	send.wr.imm = bound(_metadata, m, 1);
	through_window(_metadata, m, 1, send.wr.imm, true);
	memset(m->b->buf, 0x11, BUF_LEN);
	goes_well(_metadata, m, &send);
	through_window(_metadata, m, 1, send.wr.imm, false);
	while (readable(m->b->ctx->async_fd, 0) && async_event(m->b->ctx, &event))
		;
}

/*
 * What there is not
 */
TEST_F(matrix, what_there_is_not_cannot_be_posted)
{
	struct matrix *m = &self->matrix;
	enum sem_op op;

	for (op = 0; op < SEM_OP_COUNT; op++) {
		struct shot good = good_shot(m, SEM_SEND), s = good_shot(m, op);
		struct ibv_send_wr wr[3] = {
			shot_wr(m, SHOT, &good), shot_wr(m, MARK, &s),
			shot_wr(m, BIND, &good),
		}, *bad = NULL;

		if (sem_legal(op, m->t))
			continue;
		start(_metadata, m);
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
		post_receive(_metadata, m, &good.recv);
		EXPECT_EQ(EINVAL, ibv_post_send(m->a->qp, wr, &bad));
		EXPECT_EQ(&wr[1], bad);
		/* What came before it was posted, what came behind it was not. */
		expect_wc(_metadata, m->a->scq, SHOT, IBV_WC_SUCCESS);
		expect_receive(_metadata, m, LEN, &sem_ops[SEM_SEND], 0);
		goes_well(_metadata, m, &good);
	}
}

/*
 * Faults
 */

/* Before the QPs connect. */
static void spoil_opts(struct matrix *m, enum sem_fault fault, enum sem_op op)
{
	static const int right[SEM_OP_COUNT] = {
		[SEM_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[SEM_WRITE_IMM] = IBV_ACCESS_REMOTE_WRITE,
		[SEM_READ] = IBV_ACCESS_REMOTE_READ,
		[SEM_CAS] = IBV_ACCESS_REMOTE_ATOMIC,
		[SEM_FAA] = IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct pair_opts *opts = &m->p.opts;
	struct end *b = m->b;
	int access = m->opts.access;

	*opts = m->opts;
	switch (fault) {
	case SEM_RD_ATOMIC:
		opts->rd_atomic = 0;
		break;
	case SEM_DEST_RD_ATOMIC:
		opts->dest_rd_atomic = 0;
		break;
	case SEM_QP_RIGHT:
		opts->access &= ~right[op];
		break;
	case SEM_NO_RECV:
		opts->rnr_retry = 2;
		break;
	case SEM_NO_PEER:
		opts->timeout = 8;
		opts->retry_cnt = 1;
		break;
	case SEM_REMOTE_RIGHT:
	case SEM_REMOTE_DEAD:
		access &= fault == SEM_REMOTE_RIGHT ? ~right[op] : ~0;
		m->side[1].narrow = ibv_reg_mr(b->pd, b->buf, b->len,
					       access | IBV_ACCESS_LOCAL_WRITE);
		break;
	default:
		break;
	}
}

static void spoil_segment(struct matrix *m, struct shot *s, enum sem_fault fault)
{
	struct ibv_sge *sge = s->sge;

	switch (fault) {
	case SEM_LOCAL_KEY:
		sge->lkey ^= 1;
		break;
	case SEM_LOCAL_PD:
		sge->lkey = m->side[0].other->lkey;
		break;
	case SEM_LOCAL_BOUNDS:
		sge->addr = (uintptr_t)m->a->buf + BUF_LEN - sge->length + 1;
		break;
	case SEM_LOCAL_RIGHT:
		sge->lkey = m->side[0].read_only->lkey;
		break;
	case SEM_ATOMIC_LENGTH:
		sge->length = 16;
		break;
	case SEM_BIND_RIGHT:
		s->wr.bind.mr = m->a->mr;
		break;
	case SEM_BIND_BOUNDS:
		s->wr.bind.length = BUF_LEN;
		break;
	case SEM_LENGTH:
		sge->length = m->t == SEM_UD ? m->mtu + 1 : HUGE;
		s->sge[1] = *sge;
		s->n = m->t == SEM_UD ? 1 : 2;
		break;
	default:
		break;
	}
}

static void spoil_address(struct matrix *m, struct shot *s, enum sem_fault fault)
{
	switch (fault) {
	case SEM_REMOTE_KEY:
		s->wr.rkey ^= 1;
		break;
	case SEM_REMOTE_PD:
		s->wr.rkey = m->side[1].other->rkey;
		break;
	case SEM_REMOTE_RIGHT:
	case SEM_REMOTE_DEAD:
		s->wr.rkey = m->side[1].narrow->rkey;
		break;
	case SEM_REMOTE_BOUNDS:
		s->wr.raddr = (uintptr_t)m->b->buf + BUF_LEN - (s->wr.len & ~7u) + 8;
		break;
	case SEM_MISALIGNED:
		s->wr.raddr += 4;
		break;
	case SEM_QKEY:
		s->qkey ^= 1;
		break;
	case SEM_SRQN:
		s->srqn ^= 0x800000;
		break;
	case SEM_TOO_LONG:
		s->recv.length = m->grh + LEN - 1;
		break;
	case SEM_RECV_KEY:
		s->recv.lkey ^= 1;
		break;
	default:
		break;
	}
}

/* The next async event but LAST_WQE_REACHED, which test_srq is about. */
static bool next_event(struct ibv_context *ctx, struct ibv_async_event *event, bool wait)
{
	do {
		if (!readable(ctx->async_fd, wait ? DEADLINE_NS / 1000000 : 0) ||
		    !async_event(ctx, event))
			return false;
	} while (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	return true;
}

static void expect_events(struct __test_metadata *_metadata, struct matrix *m,
			  const struct sem_result *r)
{
	struct ibv_async_event event;

	if (r->event != SEM_NONE) {
		ASSERT_TRUE(next_event(m->b->ctx, &event, true));
		EXPECT_EQ(r->event, (int)event.event_type);
		EXPECT_EQ(m->b->qp, event.element.qp);
	}
	EXPECT_FALSE(next_event(m->a->ctx, &event, false));
	EXPECT_FALSE(next_event(m->b->ctx, &event, false));
}

/* What the responder makes of the shot. */
static void expect_response(struct __test_metadata *_metadata, struct matrix *m,
			    const struct sem_result *r)
{
	struct ibv_cq *cq = m->b->rcq;
	struct ibv_wc wc;

	if (r->resp != SEM_NONE) {
		wc = expect_wc(_metadata, cq, RECEIVE, r->resp);
		EXPECT_NE(0, wc.vendor_err);
		EXPECT_EQ(m->b->qp->qp_num, wc.qp_num);
		m->waiting = false;
	} else if (sem_resp_state(r) == IBV_QPS_ERR && !m->b->srq) {
		expect_wc(_metadata, cq, RECEIVE, IBV_WC_WR_FLUSH_ERR);
	} else if (r->req == IBV_WC_SUCCESS && r->fault != SEM_NO_PEER) {
		/* The receive was still there for the mark. */
		expect_receive(_metadata, m, MARK_LEN, &sem_ops[SEM_SEND], 0);
	}
	EXPECT_TRUE(cq_empty(cq));
	EXPECT_TRUE(wait_until(qp_state(m->b->qp) == sem_resp_state(r)));
	if (r->fault != SEM_REMOTE_INV_KEY)
		EXPECT_TRUE(all_are(m->b->buf + RECV_LEN, 0x11, BUF_LEN - RECV_LEN));
}

/* The mark tells whether the send queue goes on. */
static void expect_request(struct __test_metadata *_metadata, struct matrix *m, struct shot *s,
			   const struct sem_result *r)
{
	struct ibv_cq *cq = m->a->scq;
	struct ibv_wc wc;

	ASSERT_EQ(0, shoot(m, SHOT, s));
	wc = expect_wc(_metadata, cq, SHOT, r->req);
	EXPECT_EQ(m->a->qp->qp_num, wc.qp_num);
	EXPECT_EQ(r->req != IBV_WC_SUCCESS, wc.vendor_err != 0);
	if (r->fault == SEM_NO_RECV)
		post_receive(_metadata, m, &s->recv);
	ASSERT_EQ(0, shoot_mark(m));
	expect_wc(_metadata, cq, MARK, r->req == IBV_WC_SUCCESS ? IBV_WC_SUCCESS :
								   IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(cq_empty(cq));
	EXPECT_EQ(sem_req_state(r, m->t), qp_state(m->a->qp));
}

/* SQE is left for RTS, and the peer has not noticed. */
static void resume(struct __test_metadata *_metadata, struct matrix *m)
{
	ASSERT_EQ(0, qp_to(m->a->qp, IBV_QPS_RTS));
	ASSERT_EQ(0, shoot_mark(m));
	expect_wc(_metadata, m->a->scq, MARK, IBV_WC_SUCCESS);
	expect_receive(_metadata, m, MARK_LEN, &sem_ops[SEM_SEND], 0);
}

static void goes_wrong(struct __test_metadata *_metadata, struct matrix *m,
		       enum sem_fault fault, enum sem_op op)
{
	const struct sem_result *r = sem_find(fault, op, m->t);
	struct side *there = &m->side[1];
	struct shot s;

	snprintf(m->now, sizeof(m->now), "%s, %s", sem_ops[op].name, sem_fault_text[fault]);
	spoil_opts(m, fault, op);
	start(_metadata, m);
	s = good_shot(m, op);
	if (op == SEM_BIND_MW)
		s.wr = bind_op(_metadata, m, 0);
	spoil_segment(m, &s, fault);
	spoil_address(m, &s, fault);
	if (fault == SEM_REMOTE_DEAD) {
		ASSERT_EQ(0, ibv_dereg_mr(there->narrow));
		there->narrow = NULL;
	}
	if (fault == SEM_FLUSH)
		ASSERT_EQ(0, qp_to(m->a->qp, IBV_QPS_ERR));
	if (fault == SEM_NO_PEER)
		ASSERT_EQ(0, qp_to(m->b->qp, IBV_QPS_RESET));
	if (fault != SEM_NO_PEER && fault != SEM_NO_RECV)
		post_receive(_metadata, m, &s.recv);
	expect_request(_metadata, m, &s, r);
	expect_response(_metadata, m, r);
	expect_events(_metadata, m, r);
	if (sem_req_state(r, m->t) == IBV_QPS_SQE)
		resume(_metadata, m);
	if (there->narrow)
		ASSERT_EQ(0, ibv_dereg_mr(there->narrow));
	there->narrow = NULL;
}

/* All faults from one to another, with all operations; ends with the first surprise. */
static void go_wrong(struct __test_metadata *_metadata, struct matrix *m, enum sem_fault first,
		     enum sem_fault last)
{
	enum sem_fault fault;
	enum sem_op op;
	int n = 0;

	for (fault = first; fault <= last; fault++)
		for (op = 0; op < SEM_OP_COUNT && !_metadata->exit_code; op++) {
			if (!sem_find(fault, op, m->t))
				continue;
			goes_wrong(_metadata, m, fault, op);
			n++;
		}
	EXPECT_LT(0, n);
}

TEST_F(matrix, faults_at_the_requester)
{
	go_wrong(_metadata, &self->matrix, SEM_FLUSH, SEM_LOCAL_INV_KEY);
}

TEST_F(matrix, faults_on_the_way_and_at_the_responder)
{
	go_wrong(_metadata, &self->matrix, SEM_NO_PEER, SEM_SRQN);
}

TEST_HARNESS_MAIN
