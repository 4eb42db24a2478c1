/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_flow.h: what goes over a link: requests and receives are posted, completions
 * taken and told to the model, and a link that has failed is brought back.
 */
#ifndef TRAFFIC_FLOW_H
#define TRAFFIC_FLOW_H

#include "traffic_link.h"

#define BATCH	8	/* completions polled at once */

/*
 * Posting
 */

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

/* A receive of @len bytes, and in UD the GRH in front of them. */
static inline void link_post_recv(struct __test_metadata *_metadata, struct link *l, int d,
				  uint32_t len, uint64_t *seed)
{
	uint32_t slot = l->posted[d] % RECEIVES;
	struct end *e = &l->p.end[d];
	struct ibv_sge sge[4];
	int n = cut(seed, sge, e->buf + (SLOTS + slot) * SLOT, len, e->mr->lkey);

	l->room[d][slot] = len;
	ASSERT_EQ(0, post_recv_end(e, l->posted[d], sge, n));
	l->posted[d]++;
}

static inline struct op request_op(struct link *l, int d, const struct request *r)
{
	struct op op = {
		.opcode = r->opcode,
		.raddr = r->raddr,
		.rkey = r->rkey,
		.imm = r->imm,
		.compare_add = r->compare_add,
		.swap = r->swap,
	};

	if (r->opcode == IBV_WR_BIND_MW) {
		const struct window *w = model_window(&l->m[d], r);

		op.mw = l->mw[d][r->window - 1];
		op.new_rkey = r->imm;
		op.bind = (struct ibv_mw_bind_info) {
			.mr = l->bindable[d],
			.addr = l->place[d].target + w->off,
			.length = r->fault ? SLOT + 1 : w->len,
			.mw_access_flags = l->p.opts.access |
					   (w->zero_based ? IBV_ACCESS_ZERO_BASED : 0),
		};
	}
	return op;
}

/* The segments of what is sent, or of where it goes to. */
static inline int request_sges(struct link *l, int d, const struct request *r,
			       struct ibv_sge *sge, uint64_t *seed)
{
	struct end *e = &l->p.end[d];
	uint8_t *slot = e->buf + r->id % SLOTS * SLOT;
	int n = 1;

	if (is_local(r->opcode))
		return 0;
	fill(slot, r->len, r->seed);
	if (is_atomic(r->opcode))
		sge[0] = (struct ibv_sge){ (uintptr_t)slot, 8, e->mr->lkey };
	else
		n = cut(seed, sge, slot, r->len, e->mr->lkey);
	if (r->fault == IBV_WC_LOC_PROT_ERR)
		sge[n - 1] = (struct ibv_sge){ (uintptr_t)slot, 8, e->mr->lkey ^ 1 };
	return n;
}

/* Post what the model was told of by link_promise(). */
static inline void link_post_send(struct __test_metadata *_metadata, struct link *l, int d,
				  const struct request *r, unsigned int flags, uint64_t *seed)
{
	struct op op = request_op(l, d, r);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge[4];
	int n = request_sges(l, d, r, sge, seed);

	op.flags = flags | (r->signaled ? IBV_SEND_SIGNALED : 0);
	wr = op_wr(r->id, &op, sge, n);
	wr_to_peer(&l->p.end[d], &wr);
	ASSERT_EQ(0, ibv_post_send(l->sq[d], &wr, &bad));
	if (r->opcode == IBV_WR_BIND_MW && !r->fault)
		l->mw[d][r->window - 1]->rkey = r->imm;
	if (flags & IBV_SEND_INLINE)
		memset(l->p.end[d].buf + r->id % SLOTS * SLOT, 0xff, r->len);
}

/* A request will be posted next. The link is locked. */
static inline void link_promise(struct link *l, int d, const struct request *r)
{
	link_expect(l, d, r);
	model_post(&l->m[d], r);
}

/* Of a last request, which has a completion, behind others that may have none. */
static inline struct request link_promise_last(struct link *l, int d)
{
	struct request r = {
		.id = l->m[d].head,
		.opcode = IBV_WR_SEND,
		.signaled = true,
	};

	link_promise(l, d, &r);
	return r;
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
	return wc->status ? model_failure(m, r, wc->status) : model_success(m, r, wc->opcode);
}

static inline bool link_received(struct link *l, int d, struct ibv_wc *wc)
{
	struct model *m = &l->m[!d];
	const uint8_t *at;

	if (wc->wr_id != l->taken[d])
		return model_wrong(m, "a receive out of turn");
	at = l->p.end[d].buf + (SLOTS + l->taken[d]++ % RECEIVES) * SLOT + link_grh(l);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return model_flush(m);
	wc->byte_len -= link_grh(l);
	return model_receive(m, wc, at);
}

/* Until a CQ is empty; false when something is wrong. */
static inline bool link_poll(struct link *l, int d, bool receives)
{
	struct end *e = &l->p.end[d];
	struct ibv_wc wc[BATCH + 1];
	bool ok = true;
	int i, n;

	while (ok && (n = ibv_poll_cq(receives ? e->rcq : e->scq, BATCH, wc)) > 0) {
		link_lock(l);
		l->completions += n;
		if (l->damage)
			n = l->damage(l, d, receives, wc, n);
		for (i = 0; ok && i < n; i++)
			ok = receives ? link_received(l, d, &wc[i]) : link_sent(l, d, &wc[i]);
		link_unlock(l);
	}
	return ok && (!n || model_wrong(&l->m[d], "a CQ cannot be polled"));
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

/* Take what there is. */
static inline bool link_reap(struct link *l)
{
	bool ok = true;
	int d;

	for (d = ends.from; d <= ends.to; d++)
		ok = ok && (l->p.end[d].channel ? link_events(l, d) :
			    link_poll(l, d, false) && link_poll(l, d, true));
	return ok && !link_wrong(l);
}

/*
 * Failure and return
 */

/* Nothing is outstanding. While it is brought back, receives neither, but those in SRQs. */
static inline bool link_is_idle(struct link *l)
{
	bool idle = true;
	int d;

	link_lock(l);
	for (d = 0; d < 2; d++)
		idle &= l->m[d].tail == l->m[d].head &&
			(l->m[d].deaf || !model_expected(&l->m[d])) &&
			(!l->returning || l->p.end[d].srq || l->taken[d] == l->posted[d]);
	link_unlock(l);
	return idle;
}

/* Memory is what the requests made of it. */
static inline void link_check(struct link *l)
{
	int d;

	for (d = ends.from; d <= ends.to; d++)
		if (link_talks(l, !d))
			model_memory(&l->m[!d], l->p.end[d].buf + TARGET_AT);
}

static inline void link_log(struct __test_metadata *_metadata, struct link *l)
{
	int d;

	for (d = 0; d < 2; d++)
		TH_LOG("type %d, end %d: %llu of %llu requests, %llu of %llu receives, %u expected",
		       l->p.opts.type, d, (unsigned long long)l->m[d].tail,
		       (unsigned long long)l->m[d].head, (unsigned long long)l->taken[d],
		       (unsigned long long)l->posted[d], model_expected(&l->m[!d]));
}

/* Until nothing is outstanding at either end, or something is wrong. */
static inline void link_drain(struct __test_metadata *_metadata, struct link *l)
{
	ASSERT_TRUE(wait_until(!link_reap(l) || link_is_idle(l))) {
		TH_LOG("stalled");
		link_log(_metadata, l);
	}
	link_check(l);
}

static inline void drop_async_events(struct ibv_context *ctx)
{
	struct ibv_async_event event;

	while (readable(ctx->async_fd, 0) && async_event(ctx, &event))
		;
}

static inline void link_flush(struct __test_metadata *_metadata, struct link *l, uint64_t *seed)
{
	struct request last;
	int d;

	for (d = ends.from; d <= ends.to; d++) {
		link_to(_metadata, l, d, IBV_QPS_ERR);
		if (!link_talks(l, d))
			continue;
		link_lock(l);
		last = link_promise_last(l, d);
		link_unlock(l);
		link_post_send(_metadata, l, d, &last, 0, seed);
	}
	link_drain(_metadata, l);
}

static inline void link_restart(struct __test_metadata *_metadata, struct link *l, int d)
{
	model_restart(&l->m[!d], l->p.end[d].buf + TARGET_AT);
	drop_async_events(l->p.end[d].ctx);
	link_make_windows(_metadata, l, d);
	link_to(_metadata, l, d, IBV_QPS_RESET);
	l->hold[d] = 0;
	l->last[d] = false;
	l->returns += !d;
}

/*
 * Through ERR, in which everything outstanding completes, and RESET. A link with which
 * something is wrong stays as it is, for the one who asks for the verdict.
 */
static inline void link_return(struct __test_metadata *_metadata, struct link *l, uint64_t *seed)
{
	int d;

	link_lock(l);
	l->returning = true;
	link_excuse(l);
	link_unlock(l);
	ASSERT_TRUE(link_meet(l));
	link_flush(_metadata, l, seed);
	if (link_wrong(l))
		return;
	ASSERT_TRUE(link_meet(l));
	for (d = ends.from; d <= ends.to; d++)
		link_restart(_metadata, l, d);
	l->returning = false;
	ASSERT_TRUE(link_meet(l));
	for (d = ends.from; d <= ends.to; d++)
		link_connect(_metadata, l, d);
	ASSERT_TRUE(link_meet(l));
}

#endif
