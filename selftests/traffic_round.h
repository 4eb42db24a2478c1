/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_round.h: what is done at random. A round makes some links, lets them work,
 * drains them, and compares their memory. Its seed repeats it, but for what two
 * processes do at the same time.
 */
#ifndef TRAFFIC_ROUND_H
#define TRAFFIC_ROUND_H

#include "traffic_flow.h"

#define MAX_LINKS	4	/* of two QPs each */
#define ROUND		1000	/* requests */
#define UNSIGNALED	8	/* in a row */
#define DGRAM_LEN	4000	/* of UD, and it has a GRH */

/**
 * struct round - links that work at the same time
 * @link: in memory that processes share.
 * @most: requests that it ends with.
 * @calm: nothing goes wrong on purpose.
 * @unsignaled: requests since the last signaled one, by link and direction.
 * @progress: requests and completions at @since, which is when the last one came.
 */
struct round {
	uint64_t	seed;
	int		nlinks;
	struct link	*link;
	uint64_t	most;
	bool		calm;
	int		unsignaled[MAX_LINKS][2];
	uint64_t	progress;
	uint64_t	since;
};

static inline bool one_in(uint64_t *seed, uint32_t n)
{
	return rnd_below(seed, n) == 0;
}

/*
 * Requests
 */

/* The local ones last: an XRC pair's second end has them alone. */
static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW,
};

static inline enum ibv_wr_opcode random_opcode(const struct link *l, int d, uint64_t *seed)
{
	if (link_is(l, IBV_QPT_UD))
		return opcodes[rnd_below(seed, 2)];
	if (link_is(l, IBV_QPT_UC))
		return opcodes[rnd_below(seed, 4)];
	if (!link_talks(l, d))
		return opcodes[8 + rnd_below(seed, 2)];
	return opcodes[rnd_below(seed, ARRAY_SIZE(opcodes))];
}

static inline uint32_t random_len(uint64_t *seed, uint32_t most)
{
	static const uint32_t most_of[] = { 1, 64, 1024, 5000, SLOT, 128 };

	return rnd_below(seed, most_of[rnd_below(seed, ARRAY_SIZE(most_of))]) % (most + 1);
}

static inline bool reaches_memory(enum ibv_wr_opcode opcode)
{
	return is_write(opcode) || is_atomic(opcode) || opcode == IBV_WR_RDMA_READ;
}

static inline bool carries_payload(const struct request *q)
{
	return !is_local(q->opcode) && !is_atomic(q->opcode) && q->opcode != IBV_WR_RDMA_READ;
}

/* Is its payload what is received? */
static inline bool fills_receive(enum ibv_wr_opcode opcode)
{
	return takes_receive(opcode) && !is_write(opcode);
}

/* Through a window of the peer, if there is one that is large enough. */
static inline void go_through_window(struct link *l, int d, struct request *q, uint64_t *seed)
{
	int i = rnd_below(seed, WINDOWS);
	const struct window *w = &l->m[d].window[i];
	uint32_t first = (w->off + 7) & ~7u;

	if (w->state != WINDOW_BOUND || w->len < q->len + 8)
		return;
	if (is_atomic(q->opcode))
		q->off = first;
	else
		q->off = w->off + rnd_below(seed, w->len - q->len);
	q->window = i + 1;
	q->rkey = w->key;
	q->raddr = w->zero_based ? q->off - w->off : l->place[!d].target + q->off;
}

static inline void aim(struct link *l, int d, struct request *q, uint64_t *seed)
{
	q->off = rnd_below(seed, SLOT - q->len);
	if (is_atomic(q->opcode))
		q->off &= 0xf8;	/* a few words, so that swaps compare equal now and then */
	q->raddr = l->place[!d].target + q->off;
	q->rkey = l->place[!d].rkey;
	if (link_reliable(l) && rnd_below(seed, 2))
		go_through_window(l, d, q, seed);
	/* Atomics through a zero-based window: where the address is aligned, too. */
	if (is_atomic(q->opcode) && q->raddr % 8) {
		q->window = 0;
		q->raddr = l->place[!d].target + q->off;
		q->rkey = l->place[!d].rkey;
	}
}

/* Choose a window, when the request is about one; false when there is none for it. */
static inline bool choose_window(struct link *l, int d, struct request *q, uint64_t *seed)
{
	int i = rnd_below(seed, WINDOWS);
	struct window *own = &l->m[!d].window[i];
	const struct window *peers = &l->m[d].window[i];

	q->window = i + 1;
	switch (q->opcode) {
	case IBV_WR_BIND_MW:
		q->imm = ibv_inc_rkey(own->key);
		if (own->state != WINDOW_FREE)
			return false;
		own->off = rnd_below(seed, SLOT / 2);
		own->len = 1 + rnd_below(seed, SLOT - own->off);
		own->zero_based = rnd_below(seed, 2);
		return true;
	case IBV_WR_LOCAL_INV:
		q->imm = own->key;
		return own->state == WINDOW_BOUND && !model_uses_window(&l->m[!d], i);
	case IBV_WR_SEND_WITH_INV:
		q->imm = peers->key;
		return peers->state == WINDOW_BOUND;
	default:
		q->window = 0;
		return true;
	}
}

static inline bool random_request(struct round *r, int i, int d, struct request *q)
{
	struct link *l = &r->link[i];
	uint64_t *seed = &r->seed;

	*q = (struct request) {
		.id = l->m[d].head,
		.seed = rnd(seed),
		.opcode = random_opcode(l, d, seed),
		.imm = rnd(seed),
		.compare_add = rnd_below(seed, 3),
		.swap = rnd_below(seed, 3),
		.lost = l->m[d].broken,
	};
	if (!choose_window(l, d, q, seed))
		return false;
	if (is_atomic(q->opcode))
		q->len = 8;
	else if (!is_local(q->opcode))
		q->len = random_len(seed, link_is(l, IBV_QPT_UD) ? DGRAM_LEN :
							       RECEIVE_LEN - GRH_LEN);
	if (reaches_memory(q->opcode))
		aim(l, d, q, seed);
	q->signaled = !link_talks(l, d) || r->unsignaled[i][d] >= UNSIGNALED ||
		      rnd_below(seed, 2);
	return true;
}

/*
 * What goes wrong: one request in some hundred cannot be done.
 */
static inline void wrong_key(struct link *l, int d, struct request *q, uint64_t *seed)
{
	const struct window *w = &l->m[d].window[rnd_below(seed, WINDOWS)];

	if (!reaches_memory(q->opcode) || !q->len || q->window)
		return;
	switch (rnd_below(seed, 4)) {
	case 0:
		q->rkey ^= 1;
		break;
	case 1:
		q->rkey = l->place[!d].dead_rkey ? l->place[!d].dead_rkey : q->rkey ^ 1;
		break;
	case 2:		/* of a window that is not bound */
		if (w->state != WINDOW_FREE)
			return;
		q->rkey = w->key;
		break;
	case 3:		/* beyond what one is bound to */
		if (w->state != WINDOW_BOUND || is_atomic(q->opcode))
			return;
		q->rkey = w->key;
		q->raddr = (w->zero_based ? 0 : l->place[!d].target + w->off) + w->len -
			   rnd_below(seed, q->len);
		break;
	}
	if (link_reliable(l))
		q->fault = IBV_WC_REM_ACCESS_ERR;
	else
		q->lost = true;
}

static inline void too_long(struct link *l, int d, struct request *q, uint64_t *seed)
{
	uint32_t most = link_is(l, IBV_QPT_UD) ? DGRAM_LEN : SLOT;
	uint32_t room = link_room(l, d);

	if (!fills_receive(q->opcode) || q->window || room >= most || link_spare(l, d) <= 0)
		return;
	q->len = room + 1 + rnd_below(seed, most - room);
	q->at_peer = IBV_WC_LOC_LEN_ERR;
	if (link_reliable(l))
		q->fault = IBV_WC_REM_INV_REQ_ERR;
}

/* None is posted until the requester has given up, or has not noticed it. */
static inline void without_receive(struct link *l, int d, struct request *q)
{
	if (!takes_receive(q->opcode) || q->window || link_spare(l, d))
		return;
	if (!link_reliable(l)) {
		q->lost = true;
		q->signaled = true;
		l->hold[d] = q->id + 1;
	} else if (l->strict) {
		q->fault = IBV_WC_RNR_RETRY_EXC_ERR;
		l->hold[d] = ~0ull;
	}
}

/* Requests about windows that are not as they should be. */
static inline void wrong_window(struct link *l, int d, struct request *q)
{
	int i = q->id % WINDOWS;
	const struct window *own = &l->m[!d].window[i], *peers = &l->m[d].window[i];

	if (q->opcode == IBV_WR_BIND_MW) {
		q->fault = IBV_WC_MW_BIND_ERR;
	} else if (q->opcode == IBV_WR_LOCAL_INV && own->state == WINDOW_FREE) {
		q->fault = IBV_WC_MW_BIND_ERR;
		q->window = i + 1;
		q->imm = own->key;
	} else if (q->opcode == IBV_WR_SEND_WITH_INV && peers->state == WINDOW_FREE &&
		   link_spare(l, d) > 0) {
		q->fault = IBV_WC_REM_ACCESS_ERR;
		q->at_peer = IBV_WC_REM_INV_REQ_ERR;
		q->window = i + 1;
		q->imm = peers->key;
	}
}

static inline void spoil(struct link *l, int d, struct request *q, uint64_t *seed)
{
	if (link_is_excused(l) || q->lost)
		return;
	switch (rnd_below(seed, 5)) {
	case 0:
		if (!is_local(q->opcode) && !q->window)
			q->fault = IBV_WC_LOC_PROT_ERR;
		break;
	case 1:
		wrong_key(l, d, q, seed);
		break;
	case 2:
		too_long(l, d, q, seed);
		break;
	case 3:
		without_receive(l, d, q);
		break;
	case 4:
		wrong_window(l, d, q);
		break;
	}
}

static inline unsigned int random_flags(struct link *l, const struct request *q, uint64_t *seed)
{
	unsigned int flags = 0;

	if (one_in(seed, 4))
		flags |= IBV_SEND_SOLICITED;
	if (link_reliable(l) && one_in(seed, 4))
		flags |= IBV_SEND_FENCE;
	if (q->len <= l->p.opts.cap.max_inline_data && q->fault != IBV_WC_LOC_PROT_ERR &&
	    carries_payload(q) && rnd_below(seed, 2))
		flags |= IBV_SEND_INLINE;
	return flags;
}

/* A message without a receive waits where the requester does, if it may. */
static inline bool may_wait(struct link *l, uint64_t *seed)
{
	return link_reliable(l) && !l->strict && one_in(seed, 8);
}

/* Room for a message in the model. One slot is for link_promise_last(). */
static inline bool link_has_slot(const struct link *l, int d)
{
	const struct model *m = &l->m[d];

	return m->head - m->tail < SLOTS - 1 && m->sent - m->received < INBOX - 1;
}

/* The next request of a direction, as the link is now: it is locked. */
static inline bool choose_request(struct round *r, int i, int d, struct request *q)
{
	struct link *l = &r->link[i];

	if (!link_has_slot(l, d) || !random_request(r, i, d, q))
		return false;
	if (!r->calm && one_in(&r->seed, link_reliable(l) ? 200 : 50))
		spoil(l, d, q, &r->seed);
	if (fills_receive(q->opcode) && !q->at_peer && !q->lost && q->len > link_room(l, d))
		q->len = rnd_below(&r->seed, link_room(l, d) + 1);
	return !takes_receive(q->opcode) || q->lost || q->fault == IBV_WC_RNR_RETRY_EXC_ERR ||
	       link_spare(l, d) > 0 || may_wait(l, &r->seed);
}

static inline void post_request(struct __test_metadata *_metadata, struct round *r, int i, int d)
{
	struct link *l = &r->link[i];
	struct request q;
	bool chosen;

	link_lock(l);
	chosen = choose_request(r, i, d, &q);
	if (chosen)
		link_promise(l, d, &q);
	link_unlock(l);
	if (!chosen)
		return;
	link_post_send(_metadata, l, d, &q, random_flags(l, &q, &r->seed), &r->seed);
	r->unsignaled[i][d] = q.signaled ? 0 : r->unsignaled[i][d] + 1;
}

/* At end @d, for what the other one sends. A message that waits already must fit. */
static inline void post_receives(struct __test_metadata *_metadata, struct round *r,
				 struct link *l, int d, int n)
{
	uint32_t len;

	link_lock(l);
	while (n-- && link_talks(l, !d) && l->m[!d].tail >= l->hold[!d] &&
	       l->posted[d] - l->taken[d] < RECEIVES) {
		len = RECEIVE_LEN;
		if (!r->calm && link_spare(l, !d) >= 0 && one_in(&r->seed, 32))
			len = GRH_LEN + random_len(&r->seed, 3000);
		link_post_recv(_metadata, l, d, len, &r->seed);
	}
	link_unlock(l);
}

/*
 * A round
 */

/* Of two processes one begins, and the other joins it, so that they meet at one link. */
static inline bool may_return(const struct link *l)
{
	return !ends.from || l->returning;
}

/* What is rare. */
static inline void disturb(struct __test_metadata *_metadata, struct round *r, struct link *l,
			   int d)
{
	switch (rnd_below(&r->seed, 3)) {
	case 0:		/* at any moment */
		if (may_return(l))
			link_return(_metadata, l, &r->seed);
		break;
	case 1:
		link_lock(l);
		if (l->m[!d].head == l->m[!d].tail)
			link_register(_metadata, l, d);
		link_unlock(l);
		break;
	default:
		engine_set(rnd_below(&r->seed, 2) ? "inline" : "threaded");
		break;
	}
}

/* False when something is wrong with the link. */
static inline bool step(struct __test_metadata *_metadata, struct round *r, int i)
{
	int d = ends.from + rnd_below(&r->seed, ends.to - ends.from + 1);
	struct link *l = &r->link[i];

	if (may_return(l) && (l->returning || (link_is_down(l) && one_in(&r->seed, 8))))
		link_return(_metadata, l, &r->seed);
	if (link_wrong(l))
		return false;
	if (one_in(&r->seed, 3))
		post_receives(_metadata, r, l, d, 1 + rnd_below(&r->seed, 8));
	post_request(_metadata, r, i, d);
	if (!r->calm && one_in(&r->seed, 400))
		disturb(_metadata, r, l, d);
	return !rnd_below(&r->seed, 2) || link_reap(l);
}

static inline uint64_t requests(const struct round *r)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < r->nlinks; i++)
		n += r->link[i].m[0].head + r->link[i].m[1].head;
	return n;
}

/* When nothing completes for long although something is outstanding. */
static inline bool makes_progress(struct round *r)
{
	uint64_t n = requests(r);
	int i;

	for (i = 0; i < r->nlinks; i++)
		n += r->link[i].completions;
	if (n != r->progress)
		r->since = now_ns();
	r->progress = n;
	return now_ns() - r->since < DEADLINE_NS;
}

/* Steps until there have been enough requests, or something is wrong. */
static inline bool work(struct __test_metadata *_metadata, struct round *r)
{
	int i = 0;

	r->since = now_ns();
	while (requests(r) < r->most && !link_wrong(&r->link[i])) {
		i = rnd_below(&r->seed, r->nlinks);
		if (!step(_metadata, r, i))
			break;
		if (!makes_progress(r)) {
			link_log(_metadata, &r->link[i]);
			model_wrong(&r->link[i].m[0], "nothing completes any more");
		}
	}
	for (i = 0; i < r->nlinks; i++)
		if (link_wrong(&r->link[i])) {
			TH_LOG("link %d, of type %d: %s", i, r->link[i].p.opts.type,
			       link_wrong(&r->link[i]));
			return false;
		}
	return true;
}

static inline void post_last(struct __test_metadata *_metadata, struct round *r, struct link *l,
			     int d)
{
	struct request q;
	bool may;

	if (l->last[d] || !link_talks(l, d))
		return;
	link_lock(l);
	may = link_has_slot(l, d) && link_spare(l, d) > 0 && !link_is_excused(l);
	if (may) {
		q = link_promise_last(l, d);
		l->last[d] = true;
	}
	link_unlock(l);
	if (may)
		link_post_send(_metadata, l, d, &q, 0, &r->seed);
}

/* One more turn towards the end; true when nothing is outstanding, or something wrong. */
static inline bool come_to_end(struct __test_metadata *_metadata, struct round *r,
			       struct link *l)
{
	int d;

	if (may_return(l) && link_is_excused(l))
		link_return(_metadata, l, &r->seed);
	for (d = ends.from; d <= ends.to; d++) {
		if (link_spare(l, !d) <= 0)
			post_receives(_metadata, r, l, d, 1);
		post_last(_metadata, r, l, d);
	}
	if (!link_reap(l))
		return true;
	return (l->last[0] || !link_talks(l, 0)) && (l->last[1] || !link_talks(l, 1)) &&
	       link_is_idle(l);
}

/* All at once: the other process may be busy with any of them. */
static inline bool all_come_to_end(struct __test_metadata *_metadata, struct round *r)
{
	bool all = true;
	int i;

	for (i = 0; i < r->nlinks; i++)
		all &= come_to_end(_metadata, r, &r->link[i]);
	return all;
}

static inline void finish(struct __test_metadata *_metadata, struct round *r)
{
	bool all = wait_until(all_come_to_end(_metadata, r));
	int i;

	for (i = 0; !all && i < r->nlinks; i++)
		link_log(_metadata, &r->link[i]);
	ASSERT_TRUE(all);
	for (i = 0; i < r->nlinks; i++) {
		struct link *l = &r->link[i];

		link_drain(_metadata, l);
		ASSERT_EQ(NULL, link_wrong(l)) {
			TH_LOG("%s", link_wrong(l));
		}
		ASSERT_TRUE(link_meet(l));
	}
	for (i = 0; i < r->nlinks; i++)
		link_close(_metadata, &r->link[i]);
}

static const enum ibv_qp_type types[] = {
	IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
};

static inline struct pair_opts random_opts(uint64_t *seed)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	opts.type = types[rnd_below(seed, ARRAY_SIZE(types))];
	opts.function[0] = rnd_below(seed, 2);
	opts.function[1] = rnd_below(seed, 2);
	opts.srq = one_in(seed, 3);
	opts.channel = rnd_below(seed, 2);
	opts.mtu = IBV_MTU_256 + rnd_below(seed, 5);
	opts.rd_atomic = 1 + rnd_below(seed, 4);
	opts.dest_rd_atomic = opts.rd_atomic;
	opts.rnr_retry = one_in(seed, 3) ? 1 : 7;
	opts.timeout = 12;
	opts.buf_len = LINK_BUF;
	return opts;
}

static inline void round_map(struct __test_metadata *_metadata, struct round *r)
{
	r->link = mmap(NULL, MAX_LINKS * sizeof(*r->link), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)r->link);
}

/* Links with random options, which are not opened yet. */
static inline void round_init(struct __test_metadata *_metadata, struct round *r, uint64_t seed)
{
	int i;

	memset(r, 0, sizeof(*r));
	r->seed = seed;
	r->most = ROUND;
	r->nlinks = 1 + rnd_below(&r->seed, MAX_LINKS);
	round_map(_metadata, r);
	for (i = 0; i < r->nlinks; i++)
		r->link[i].p.opts = random_opts(&r->seed);
}

static inline void round_open(struct __test_metadata *_metadata, struct round *r)
{
	int i;

	for (i = 0; i < r->nlinks; i++)
		link_open(_metadata, &r->link[i]);
}

static inline void round_unmap(struct round *r)
{
	munmap(r->link, MAX_LINKS * sizeof(*r->link));
}

#endif
