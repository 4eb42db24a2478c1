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
enum { SHOT = 1, MARK, RECEIVE, PROBE };

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
 * @probe: an RC QP that is connected to itself: binds windows, looks through them.
 * @other_pd: has a region over the same memory.
 * @read_only: region without rights.
 * @narrow: region that lacks the right that the operation needs.
 * @window: type 2, bound in between.
 */
struct side {
	struct ibv_cq *cq;
	struct ibv_qp *probe;
	struct ibv_pd *other_pd;
	struct ibv_mr *other;
	struct ibv_mr *read_only;
	struct ibv_mr *narrow;
	struct ibv_mr *bindable;
	struct ibv_mw *window;
	uint32_t rkey;
};

FIXTURE(matrix)
{
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

FIXTURE_VARIANT(matrix)
{
	enum sem_transport transport;
	enum ibv_qp_type type;
	const char *engine;
	int peer;
	bool srq;
};

#define MATRIX_VARIANT(name, t, qpt, how, fn, with_srq)			\
FIXTURE_VARIANT_ADD(matrix, name)					\
{									\
	.transport = t,							\
	.type = qpt,							\
	.engine = how,							\
	.peer = fn,							\
	.srq = with_srq,						\
}

MATRIX_VARIANT(rc, SEM_RC, IBV_QPT_RC, "inline", 0, false);
MATRIX_VARIANT(rc_far, SEM_RC, IBV_QPT_RC, "threaded", 1, false);

static void open_side(struct __test_metadata *_metadata, struct end *e, struct side *s,
		      const struct pair_opts *opts)
{
	struct pair_opts rc = *opts;

	rc.type = IBV_QPT_RC;
	s->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, s->cq);
	s->probe = make_qp(e->pd, s->cq, s->cq, &rc, NULL);
	ASSERT_NE(NULL, s->probe);
	qp_connect(_metadata, s->probe, &rc, e->lid, s->probe->qp_num);
	s->other_pd = ibv_alloc_pd(e->ctx);
	ASSERT_NE(NULL, s->other_pd);
	s->other = ibv_reg_mr(s->other_pd, e->buf, e->len, IBV_ACCESS_LOCAL_WRITE | rc.access);
	ASSERT_NE(NULL, s->other);
	s->read_only = ibv_reg_mr(e->pd, e->buf, e->len, 0);
	ASSERT_NE(NULL, s->read_only);
}

static void close_side(struct __test_metadata *_metadata, struct side *s)
{
	if (s->window)
		EXPECT_EQ(0, ibv_dealloc_mw(s->window));
	if (s->bindable)
		EXPECT_EQ(0, ibv_dereg_mr(s->bindable));
	EXPECT_EQ(0, ibv_dereg_mr(s->other));
	EXPECT_EQ(0, ibv_dereg_mr(s->read_only));
	EXPECT_EQ(0, ibv_dealloc_pd(s->other_pd));
	EXPECT_EQ(0, ibv_destroy_qp(s->probe));
	EXPECT_EQ(0, ibv_destroy_cq(s->cq));
}

FIXTURE_SETUP(matrix)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_port_attr port;
	int i;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = variant->type;
	opts.srq = variant->srq;
	opts.function[1] = variant->peer;
	opts.buf_len = BUF_LEN;
	self->opts = opts;
	self->t = variant->transport;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
	self->grh = self->t == SEM_UD ? GRH_LEN : 0;
	ASSERT_EQ(0, ibv_query_port(self->a->ctx, 1, &port));
	self->mtu = 128u << port.active_mtu;
	for (i = 0; i < 2; i++)
		open_side(_metadata, &self->p.end[i], &self->side[i], &opts);
}

FIXTURE_TEARDOWN(matrix)
{
	int i;

	if (_metadata->exit_code)
		TH_LOG("with %s", self->now);
	for (i = 0; i < 2; i++)
		close_side(_metadata, &self->side[i]);
	pair_close(_metadata, &self->p);
}

#define SELF	FIXTURE_DATA(matrix) *self

/*
 * Shots
 */
static struct shot good_shot(SELF, enum sem_op op)
{
	struct end *a = self->a, *b = self->b;
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

static struct ibv_send_wr shot_wr(SELF, uint64_t wr_id, struct shot *s)
{
	struct ibv_send_wr wr = op_wr(wr_id, &s->wr, s->sge, s->n);

	wr_to_peer(self->a, &wr);
	if (self->t == SEM_UD)
		wr.wr.ud.remote_qkey = s->qkey;
	if (self->t == SEM_XRC)
		wr.qp_type.xrc.remote_srqn = s->srqn;
	return wr;
}

static int shoot(SELF, uint64_t wr_id, struct shot *s)
{
	struct ibv_send_wr wr = shot_wr(self, wr_id, s), *bad;

	return ibv_post_send(self->a->qp, &wr, &bad);
}

/* A short SEND behind the shot: what becomes of it tells how it went. */
static int shoot_mark(SELF)
{
	struct shot s = good_shot(self, SEM_SEND);

	s.sge[0].length = MARK_LEN;
	return shoot(self, MARK, &s);
}

static void expect_receive(struct __test_metadata *_metadata, SELF, uint32_t len,
			   const struct sem_op_row *row, uint32_t imm)
{
	struct ibv_wc wc = expect_wc(_metadata, self->b->rcq, RECEIVE, IBV_WC_SUCCESS);

	EXPECT_EQ(row->recv, (int)wc.opcode);
	EXPECT_EQ(self->grh + len, wc.byte_len);
	EXPECT_EQ(row->recv_flags, wc.wc_flags);
	EXPECT_EQ(self->b->qp->qp_num, wc.qp_num);
	EXPECT_EQ(self->a->qp->qp_num, wc.src_qp);
	EXPECT_EQ(self->a->lid, wc.slid);
	if (wc.wc_flags & IBV_WC_WITH_IMM)
		EXPECT_EQ(imm, be32toh(wc.imm_data));
	if (wc.wc_flags & IBV_WC_WITH_INV)
		EXPECT_EQ(imm, wc.invalidated_rkey);
	self->waiting = false;
}

/* Both QPs anew, as p->opts says; no completion, no receive is left. */
static void start(struct __test_metadata *_metadata, SELF)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, qp_to(self->p.end[i].qp, IBV_QPS_RESET));
	for (i = 0; i < 2; i++) {
		while (ibv_poll_cq(self->p.end[i].scq, 1, &wc) > 0)
			;
		while (ibv_poll_cq(self->p.end[i].rcq, 1, &wc) > 0)
			;
	}
	pair_connect(_metadata, &self->p);
	if (self->waiting && self->b->srq) {
		ASSERT_EQ(0, shoot_mark(self));
		expect_wc(_metadata, self->a->scq, MARK, IBV_WC_SUCCESS);
		expect_receive(_metadata, self, MARK_LEN, &sem_ops[SEM_SEND], 0);
	}
	self->waiting = false;
	fill(self->a->buf, BUF_LEN, 1);
	memset(self->b->buf, 0x11, BUF_LEN);
}

static void post_receive(struct __test_metadata *_metadata, SELF, struct ibv_sge *sge)
{
	ASSERT_EQ(0, post_recv_end(self->b, RECEIVE, sge, 1));
	self->waiting = true;
}

/*
 * Well
 */
static void expect_data(struct __test_metadata *_metadata, SELF, const struct shot *s,
			uint64_t before, const uint8_t *source)
{
	struct end *a = self->a, *b = self->b;
	uint64_t *remote = word(b, REMOTE_AT), *local = word(a, LOCAL_AT);

	switch (s->op) {
	case SEM_SEND:
	case SEM_SEND_IMM:
	case SEM_SEND_INV:
		EXPECT_EQ(0, memcmp(b->buf + RECV_AT + self->grh, source, LEN));
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

static void goes_well(struct __test_metadata *_metadata, SELF, struct shot *s)
{
	const struct sem_op_row *row = &sem_ops[s->op];
	struct end *a = self->a, *b = self->b;
	uint64_t before = *word(b, REMOTE_AT);
	uint8_t source[LEN];
	struct ibv_wc wc;

	memcpy(source, a->buf + LOCAL_AT, LEN);
	if (row->recv != SEM_NONE)
		post_receive(_metadata, self, &s->recv);
	ASSERT_EQ(0, shoot(self, SHOT, s)) {
		TH_LOG("%s cannot be posted", row->name);
	}
	wc = expect_wc(_metadata, a->scq, SHOT, IBV_WC_SUCCESS);
	EXPECT_EQ(row->wc, wc.opcode);
	EXPECT_EQ(bytes_read(s), wc.byte_len);
	EXPECT_EQ(0, wc.wc_flags);
	EXPECT_EQ(a->qp->qp_num, wc.qp_num);
	if (row->recv != SEM_NONE)
		expect_receive(_metadata, self, bytes_read(s) ? 0 : LEN, row, s->wr.imm);
	expect_data(_metadata, self, s, before, source);
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(a->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(b->qp));
}

TEST_F(matrix, what_there_is_does_what_it_says)
{
	enum sem_op op;

	for (op = 0; op < SEM_LOCAL_INV; op++) {
		struct shot s = good_shot(self, op);

		if (!sem_legal(op, self->t) || op == SEM_SEND_INV)
			continue;
		snprintf(self->now, sizeof(self->now), "%s", sem_ops[op].name);
		start(_metadata, self);
		goes_well(_metadata, self, &s);
	}
	/* A swap that compares equal. */
	if (sem_legal(SEM_CAS, self->t)) {
		struct shot s = good_shot(self, SEM_CAS);

		start(_metadata, self);
		s.wr.compare_add = *word(self->b, REMOTE_AT);
		goes_well(_metadata, self, &s);
		EXPECT_EQ(s.wr.swap, *word(self->b, REMOTE_AT));
	}
}

/*
 * What there is not
 */
TEST_F(matrix, what_there_is_not_cannot_be_posted)
{
	enum sem_op op;

	for (op = 0; op < SEM_OP_COUNT; op++) {
		struct shot good = good_shot(self, SEM_SEND), s = good_shot(self, op);
		struct ibv_send_wr wr[3] = {
			shot_wr(self, SHOT, &good), shot_wr(self, MARK, &s),
			shot_wr(self, PROBE, &good),
		}, *bad = NULL;

		if (sem_legal(op, self->t))
			continue;
		start(_metadata, self);
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
		post_receive(_metadata, self, &good.recv);
		EXPECT_EQ(EINVAL, ibv_post_send(self->a->qp, wr, &bad));
		EXPECT_EQ(&wr[1], bad);
		/* What came before it was posted, what came behind it was not. */
		expect_wc(_metadata, self->a->scq, SHOT, IBV_WC_SUCCESS);
		expect_receive(_metadata, self, LEN, &sem_ops[SEM_SEND], 0);
		goes_well(_metadata, self, &good);
	}
}

/*
 * Faults
 */

/* Before the QPs connect. */
static void spoil_opts(SELF, enum sem_fault fault, enum sem_op op)
{
	static const int right[SEM_OP_COUNT] = {
		[SEM_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[SEM_WRITE_IMM] = IBV_ACCESS_REMOTE_WRITE,
		[SEM_READ] = IBV_ACCESS_REMOTE_READ,
		[SEM_CAS] = IBV_ACCESS_REMOTE_ATOMIC,
		[SEM_FAA] = IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct pair_opts *opts = &self->p.opts;
	struct end *b = self->b;
	int access = self->opts.access;

	*opts = self->opts;
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
		self->side[1].narrow = ibv_reg_mr(b->pd, b->buf, b->len,
						  access | IBV_ACCESS_LOCAL_WRITE);
		break;
	default:
		break;
	}
}

static void spoil_segment(SELF, struct shot *s, enum sem_fault fault)
{
	struct ibv_sge *sge = s->sge;

	switch (fault) {
	case SEM_LOCAL_KEY:
		sge->lkey ^= 1;
		break;
	case SEM_LOCAL_PD:
		sge->lkey = self->side[0].other->lkey;
		break;
	case SEM_LOCAL_BOUNDS:
		sge->addr = (uintptr_t)self->a->buf + BUF_LEN - sge->length + 1;
		break;
	case SEM_LOCAL_RIGHT:
		sge->lkey = self->side[0].read_only->lkey;
		break;
	case SEM_ATOMIC_LENGTH:
		sge->length = 16;
		break;
	case SEM_LENGTH:
		sge->length = self->t == SEM_UD ? self->mtu + 1 : HUGE;
		s->sge[1] = *sge;
		s->n = self->t == SEM_UD ? 1 : 2;
		break;
	default:
		break;
	}
}

static void spoil_address(SELF, struct shot *s, enum sem_fault fault)
{
	switch (fault) {
	case SEM_REMOTE_KEY:
		s->wr.rkey ^= 1;
		break;
	case SEM_REMOTE_PD:
		s->wr.rkey = self->side[1].other->rkey;
		break;
	case SEM_REMOTE_RIGHT:
	case SEM_REMOTE_DEAD:
		s->wr.rkey = self->side[1].narrow->rkey;
		break;
	case SEM_REMOTE_BOUNDS:
		s->wr.raddr = (uintptr_t)self->b->buf + BUF_LEN - (s->wr.len & ~7u) + 8;
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
		s->recv.length = self->grh + LEN - 1;
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

static void expect_events(struct __test_metadata *_metadata, SELF, const struct sem_result *r)
{
	struct ibv_async_event event;

	if (r->event != SEM_NONE) {
		ASSERT_TRUE(next_event(self->b->ctx, &event, true));
		EXPECT_EQ(r->event, (int)event.event_type);
		EXPECT_EQ(self->b->qp, event.element.qp);
	}
	EXPECT_FALSE(next_event(self->a->ctx, &event, false));
	EXPECT_FALSE(next_event(self->b->ctx, &event, false));
}

/* What the responder makes of the shot. */
static void expect_response(struct __test_metadata *_metadata, SELF, const struct sem_result *r)
{
	struct ibv_cq *cq = self->b->rcq;
	struct ibv_wc wc;

	if (r->resp != SEM_NONE) {
		wc = expect_wc(_metadata, cq, RECEIVE, r->resp);
		EXPECT_NE(0, wc.vendor_err);
		EXPECT_EQ(self->b->qp->qp_num, wc.qp_num);
		self->waiting = false;
	} else if (sem_resp_state(r) == IBV_QPS_ERR && !self->b->srq) {
		expect_wc(_metadata, cq, RECEIVE, IBV_WC_WR_FLUSH_ERR);
	} else if (r->req == IBV_WC_SUCCESS && r->fault != SEM_NO_PEER) {
		/* The receive was still there for the mark. */
		expect_receive(_metadata, self, MARK_LEN, &sem_ops[SEM_SEND], 0);
	}
	EXPECT_TRUE(cq_empty(cq));
	EXPECT_TRUE(wait_until(qp_state(self->b->qp) == sem_resp_state(r)));
	if (r->fault != SEM_REMOTE_INV_KEY)
		EXPECT_TRUE(all_are(self->b->buf + RECV_LEN, 0x11, BUF_LEN - RECV_LEN));
}

/* The mark tells whether the send queue goes on. */
static void expect_request(struct __test_metadata *_metadata, SELF, struct shot *s,
			   const struct sem_result *r)
{
	struct ibv_cq *cq = self->a->scq;
	struct ibv_wc wc;

	ASSERT_EQ(0, shoot(self, SHOT, s));
	wc = expect_wc(_metadata, cq, SHOT, r->req);
	EXPECT_EQ(self->a->qp->qp_num, wc.qp_num);
	EXPECT_EQ(r->req != IBV_WC_SUCCESS, wc.vendor_err != 0);
	if (r->fault == SEM_NO_RECV)
		post_receive(_metadata, self, &s->recv);
	ASSERT_EQ(0, shoot_mark(self));
	expect_wc(_metadata, cq, MARK, r->req == IBV_WC_SUCCESS ? IBV_WC_SUCCESS :
								   IBV_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(cq_empty(cq));
	EXPECT_EQ(sem_req_state(r, self->t), qp_state(self->a->qp));
}

/* SQE is left for RTS, and the peer has not noticed. */
static void resume(struct __test_metadata *_metadata, SELF)
{
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	ASSERT_EQ(0, shoot_mark(self));
	expect_wc(_metadata, self->a->scq, MARK, IBV_WC_SUCCESS);
	expect_receive(_metadata, self, MARK_LEN, &sem_ops[SEM_SEND], 0);
}

static void goes_wrong(struct __test_metadata *_metadata, SELF, enum sem_fault fault,
		       enum sem_op op)
{
	const struct sem_result *r = sem_find(fault, op, self->t);
	struct side *there = &self->side[1];
	struct shot s;

	snprintf(self->now, sizeof(self->now), "%s, %s", sem_ops[op].name, sem_fault_text[fault]);
	spoil_opts(self, fault, op);
	start(_metadata, self);
	s = good_shot(self, op);
	spoil_segment(self, &s, fault);
	spoil_address(self, &s, fault);
	if (fault == SEM_REMOTE_DEAD) {
		ASSERT_EQ(0, ibv_dereg_mr(there->narrow));
		there->narrow = NULL;
	}
	if (fault == SEM_FLUSH)
		ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_ERR));
	if (fault == SEM_NO_PEER) {
		ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	} else if (fault != SEM_NO_RECV) {
		post_receive(_metadata, self, &s.recv);
	}
	expect_request(_metadata, self, &s, r);
	expect_response(_metadata, self, r);
	expect_events(_metadata, self, r);
	if (sem_req_state(r, self->t) == IBV_QPS_SQE)
		resume(_metadata, self);
	if (there->narrow)
		ASSERT_EQ(0, ibv_dereg_mr(there->narrow));
	there->narrow = NULL;
}

static bool needs_window(enum sem_op op)
{
	return op == SEM_SEND_INV || op == SEM_LOCAL_INV || op == SEM_BIND_MW;
}

/* All faults from one to another, with all operations; ends with the first surprise. */
static void go_wrong(struct __test_metadata *_metadata, SELF, enum sem_fault first,
		     enum sem_fault last)
{
	enum sem_fault fault;
	enum sem_op op;
	int n = 0;

	for (fault = first; fault <= last; fault++)
		for (op = 0; op < SEM_OP_COUNT && !_metadata->exit_code; op++) {
			if (!sem_find(fault, op, self->t) || needs_window(op))
				continue;
			goes_wrong(_metadata, self, fault, op);
			n++;
		}
	EXPECT_LT(0, n);
}

TEST_F(matrix, faults_at_the_requester)
{
	go_wrong(_metadata, self, SEM_FLUSH, SEM_LOCAL_INV_KEY);
}

TEST_F(matrix, faults_on_the_way_and_at_the_responder)
{
	go_wrong(_metadata, self, SEM_NO_PEER, SEM_SRQN);
}

TEST_HARNESS_MAIN
