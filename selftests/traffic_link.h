/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_link.h: a pair of QPs with a model of either direction: posts requests and
 * receives, takes completions, brings a link back that has failed.
 */
#ifndef TRAFFIC_LINK_H
#define TRAFFIC_LINK_H

#include "traffic_model.h"

#define RECEIVES	16
#define RECEIVE_LEN	(SLOT - 4096)	/* so that a message can be too long */
#define TARGET_AT	((SLOTS + RECEIVES) * SLOT)
#define LINK_BUF	(TARGET_AT + SLOT)

/**
 * struct link - two ends and what goes on between them; index 0 sends to 1
 * @target: region that the peer writes and reads; @dead_rkey: of its predecessor.
 * @posted: receives posted at an end; @taken: of them completed.
 * @strict: the requester does not wait long for a receive.
 * @withheld: no receives are posted until the link is brought back.
 * @armed: CQs that have been armed: send CQ of either end, then receive CQ.
 * @completions: taken, of all kinds.
 * @returns: how often it was brought back.
 */
struct link {
	struct pair		p;
	struct model		m[2];
	struct ibv_mr		*target[2];
	uint32_t		dead_rkey[2];
	uint64_t		posted[2];
	uint64_t		taken[2];
	bool			strict;
	bool			withheld;
	bool			armed[2][2];
	uint64_t		completions;
	uint64_t		returns;
};

static inline bool link_sends(const struct link *l, int d)
{
	return l->p.end[d].qp->qp_type != IBV_QPT_XRC_RECV;
}

static inline bool link_is(const struct link *l, enum ibv_qp_type type)
{
	return l->p.end[0].qp->qp_type == type;
}

static inline uint32_t link_grh(const struct link *l)
{
	return link_is(l, IBV_QPT_UD) ? GRH_LEN : 0;
}

static inline bool link_reliable(const struct link *l)
{
	return asks(l->p.end[0].qp);
}

static inline void link_excuse(struct link *l)
{
	l->m[0].excused = true;
	l->m[1].excused = true;
}

static inline const char *link_wrong(const struct link *l)
{
	return l->m[0].wrong ? l->m[0].wrong : l->m[1].wrong;
}

static inline void link_register(struct __test_metadata *_metadata, struct link *l, int d)
{
	struct end *e = &l->p.end[d];

	if (l->target[d]) {
		l->dead_rkey[d] = l->target[d]->rkey;
		ASSERT_EQ(0, ibv_dereg_mr(l->target[d]));
	}
	l->target[d] = ibv_reg_mr(e->pd, e->buf + TARGET_AT, SLOT, IBV_ACCESS_LOCAL_WRITE |
								    l->p.opts.access);
	ASSERT_NE(NULL, l->target[d]);
}

static inline void link_open(struct __test_metadata *_metadata, struct link *l,
			     struct pair_opts *opts)
{
	int d;

	memset(l, 0, sizeof(*l));
	opts->buf_len = LINK_BUF;
	l->strict = opts->rnr_retry != 7;
	pair_open(_metadata, &l->p, opts);
	for (d = 0; d < 2; d++) {
		link_register(_metadata, l, d);
		l->m[d].slots = l->p.end[d].buf;
		l->m[d].lossy = !link_reliable(l);
	}
}

static inline void link_close(struct __test_metadata *_metadata, struct link *l)
{
	int d;

	for (d = 0; d < 2; d++)
		EXPECT_EQ(0, ibv_dereg_mr(l->target[d]));
	pair_close(_metadata, &l->p);
}

/* Cut @len bytes at @at into one to four segments, some of them empty. */
static inline int cut(uint64_t *seed, struct ibv_sge *sge, const void *at, uint32_t len,
		      uint32_t lkey)
{
	int i, n = 1 + rnd_below(seed, 4);
	uint64_t addr = (uintptr_t)at;

	for (i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : rnd_below(seed, len + 1);

		sge[i] = (struct ibv_sge){ addr, part, lkey };
		addr += part;
		len -= part;
	}
	return n;
}

static inline void link_post_recv(struct __test_metadata *_metadata, struct link *l, int d,
				  uint64_t *seed)
{
	struct end *e = &l->p.end[d];
	struct ibv_sge sge[4];
	int n = cut(seed, sge, e->buf + (SLOTS + l->posted[d] % RECEIVES) * SLOT, RECEIVE_LEN,
		    e->mr->lkey);

	ASSERT_EQ(0, post_recv_end(e, l->posted[d], sge, n));
	l->posted[d]++;
}

/* Post what the model is told of. */
static inline void link_post_send(struct __test_metadata *_metadata, struct link *l, int d,
				  const struct request *r, unsigned int flags, uint64_t *seed)
{
	struct end *e = &l->p.end[d], *peer = &l->p.end[!d];
	uint8_t *slot = e->buf + r->id % SLOTS * SLOT;
	struct op op = remote_op(r->opcode, peer, TARGET_AT + r->off, r->len);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge[4];
	int n = 1;

	if (is_atomic(r->opcode))
		sge[0] = (struct ibv_sge){ (uintptr_t)slot, 8, e->mr->lkey };
	else
		n = cut(seed, sge, slot, r->len, e->mr->lkey);
	fill(slot, r->len, r->seed);
	op.rkey = l->target[!d]->rkey;
	if (r->fault == IBV_WC_REM_ACCESS_ERR)
		op.rkey = l->dead_rkey[!d] && r->seed % 2 ? l->dead_rkey[!d] : op.rkey ^ 1;
	if (r->fault == IBV_WC_LOC_PROT_ERR)
		sge[n - 1] = (struct ibv_sge){ (uintptr_t)slot, 8, e->mr->lkey ^ 1 };
	op.flags = flags | (r->signaled ? IBV_SEND_SIGNALED : 0);
	op.imm = r->imm;
	op.compare_add = r->compare_add;
	op.swap = r->swap;
	wr = op_wr(r->id, &op, sge, n);
	wr_to_peer(e, &wr);
	if (r->fault)
		link_excuse(l);
	model_post(&l->m[d], r);
	ASSERT_EQ(0, ibv_post_send(e->qp, &wr, &bad));
	if (flags & IBV_SEND_INLINE)
		memset(slot, 0xff, r->len);
}

/*
 * Completions
 */
static inline bool link_sent(struct link *l, int d, const struct ibv_wc *wc)
{
	struct model *m = &l->m[d];
	const struct request *r = model_request(m, wc->wr_id);

	if (!model_completes(m, wc->wr_id))
		return false;
	return wc->status ? model_failure(m, r, wc->status) : model_success(m, r);
}

static inline bool link_received(struct link *l, int d, struct ibv_wc *wc)
{
	struct model *m = &l->m[!d];
	const uint8_t *at;

	if (wc->wr_id != l->taken[d])
		return model_wrong(m, "a receive out of turn");
	at = l->p.end[d].buf + (SLOTS + l->taken[d]++ % RECEIVES) * SLOT + link_grh(l);
	wc->byte_len -= link_grh(l);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return m->excused || model_wrong(m, "a receive was flushed");
	return model_receive(m, wc, at);
}

/* Until a CQ is empty; false when something is wrong. */
static inline bool link_poll(struct link *l, int d, bool receives)
{
	struct end *e = &l->p.end[d];
	struct ibv_wc wc[8];
	int i, n;

	while ((n = ibv_poll_cq(receives ? e->rcq : e->scq, 8, wc)) > 0) {
		l->completions += n;
		for (i = 0; i < n; i++)
			if (!(receives ? link_received(l, d, &wc[i]) : link_sent(l, d, &wc[i])))
				return false;
	}
	return !n || model_wrong(&l->m[d], "a CQ cannot be polled");
}

/* As a program does that waits for events: arm, then poll until empty. */
static inline bool link_arm(struct link *l, int d)
{
	struct end *e = &l->p.end[d];
	bool ok = true;
	int r;

	for (r = 0; r < 2; r++) {
		if (l->armed[d][r])
			continue;
		ok &= !ibv_req_notify_cq(r ? e->rcq : e->scq, 0);
		l->armed[d][r] = true;
		ok &= link_poll(l, d, r);
	}
	return ok;
}

static inline bool link_events(struct link *l, int d)
{
	struct end *e = &l->p.end[d];
	struct ibv_cq *cq;

	while (readable(e->channel->fd, 0)) {
		cq = comp_event(e->channel);
		if (!cq)
			return model_wrong(&l->m[d], "an event of no CQ");
		l->armed[d][cq == e->rcq] = false;
	}
	return link_arm(l, d);
}

/* Take what there is at both ends. */
static inline bool link_reap(struct link *l)
{
	bool ok = true;
	int d;

	for (d = 0; d < 2 && ok; d++)
		ok = l->p.end[d].channel ? link_events(l, d) :
		     link_poll(l, d, false) && link_poll(l, d, true);
	return ok && !link_wrong(l);
}

/*
 * Failure and return
 */
static inline bool link_idle(struct link *l)
{
	int d;

	for (d = 0; d < 2; d++) {
		if (l->m[d].tail != l->m[d].head)
			return false;
		if (!(l->m[d].lossy && l->m[d].excused) && model_expected(&l->m[d]))
			return false;
		if (l->m[d].excused && !l->p.end[d].srq && l->taken[d] != l->posted[d])
			return false;
	}
	return true;
}

/* A last request that has a completion, behind others that may have none. */
static inline void link_post_last(struct __test_metadata *_metadata, struct link *l, int d,
				  uint64_t *seed)
{
	struct request r = {
		.id = l->m[d].head,
		.opcode = IBV_WR_SEND,
		.signaled = true,
	};

	link_post_send(_metadata, l, d, &r, 0, seed);
}

static inline void link_check_memory(struct link *l)
{
	int d;

	for (d = 0; d < 2; d++)
		if (link_sends(l, d))
			model_memory(&l->m[d], l->p.end[!d].buf + TARGET_AT);
}

/* Until nothing is outstanding. */
static inline void link_drain(struct __test_metadata *_metadata, struct link *l)
{
	ASSERT_TRUE(wait_until(!link_reap(l) || link_idle(l))) {
		TH_LOG("stalled: requests %llu/%llu, %llu/%llu; receives %llu/%llu, %llu/%llu",
		       (unsigned long long)l->m[0].tail, (unsigned long long)l->m[0].head,
		       (unsigned long long)l->m[1].tail, (unsigned long long)l->m[1].head,
		       (unsigned long long)l->taken[0], (unsigned long long)l->posted[0],
		       (unsigned long long)l->taken[1], (unsigned long long)l->posted[1]);
	}
	link_check_memory(l);
	ASSERT_EQ(NULL, link_wrong(l)) {
		TH_LOG("%s", link_wrong(l));
	}
}

static inline void drop_async_events(struct ibv_context *ctx)
{
	struct ibv_async_event event;

	while (readable(ctx->async_fd, 0) && async_event(ctx, &event))
		;
}

/* Through ERR, in which everything outstanding completes, and RESET. */
static inline void link_return(struct __test_metadata *_metadata, struct link *l, uint64_t *seed)
{
	int d;

	l->returns++;
	link_excuse(l);
	for (d = 0; d < 2; d++)
		ASSERT_EQ(0, qp_to(l->p.end[d].qp, IBV_QPS_ERR));
	for (d = 0; d < 2; d++)
		if (link_sends(l, d))
			link_post_last(_metadata, l, d, seed);
	link_drain(_metadata, l);
	for (d = 0; d < 2; d++) {
		model_restart(&l->m[d], l->p.end[!d].buf + TARGET_AT);
		drop_async_events(l->p.end[d].ctx);
	}
	l->withheld = false;
	pair_reconnect(_metadata, &l->p);
}

#endif
