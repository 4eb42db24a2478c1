/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_link.h: a pair of QPs with a model of either direction, its making and its
 * end. The link lies in memory that processes share: one has both ends, or each of two
 * has one. What belongs to an end only its process uses.
 */
#ifndef TRAFFIC_LINK_H
#define TRAFFIC_LINK_H

#include "traffic_model.h"

#define RECEIVES	16
#define RECEIVE_LEN	(SLOT - 4096)	/* so that a message can be too long */
#define TARGET_AT	((SLOTS + RECEIVES) * SLOT)
#define LINK_BUF	(TARGET_AT + SLOT)

/* Ends that this process has. */
static struct {
	int from;
	int to;
} ends = { 0, 1 };

/**
 * struct place - what the other end knows of an end
 * @address: of its QP.
 * @target: memory that the peer writes and reads, by a key of its own.
 * @rkey: that key; @dead_rkey: its predecessor.
 */
struct place {
	struct address		address;
	uint64_t		target;
	uint32_t		rkey;
	uint32_t		dead_rkey;
};

/**
 * struct link - two ends and what goes on between them; index 0 sends to 1
 * @locked: of what both processes look at.
 * @arrived: how often processes have been at link_meet().
 * @m: directions; the windows in them are of the end that does not send.
 * @sq: the QP that sends. That of an XRC pair's second end has nobody to talk to: it
 *	serves the windows that the first one's requests go through.
 * @target: region behind place.rkey; @bindable: the same, for windows alone.
 * @room: bytes of the receives posted at an end.
 * @posted: receives posted at an end; @taken: of them completed.
 * @hold: no receives are posted for a direction before so many of its requests are done.
 * @strict: the requester does not wait long for a receive.
 * @last: link_post_last() was done.
 * @returning: it is brought back, or is to be.
 * @armed: CQs that have been armed: send CQ of either end, then receive CQ.
 * @completions: taken, of all kinds.
 * @returns: how often it was brought back.
 * @damage: what a test does to completions before they are looked at; returns how many
 *	there are, at most one more. @damaged: it was done.
 */
struct link {
	int			locked;
	uint32_t		arrived;
	struct pair		p;
	struct model		m[2];
	struct place		place[2];
	struct ibv_qp		*sq[2];
	struct ibv_mr		*target[2];
	struct ibv_mr		*bindable[2];
	struct ibv_mw		*mw[2][WINDOWS];
	uint32_t		room[2][RECEIVES];
	uint64_t		posted[2];
	uint64_t		taken[2];
	uint64_t		hold[2];
	bool			strict;
	bool			last[2];
	bool			returning;
	bool			armed[2][2];
	uint64_t		completions;
	uint64_t		returns;
	int			(*damage)(struct link *l, int d, bool receives,
					  struct ibv_wc *wc, int n);
	bool			damaged;
};

static inline bool link_is(const struct link *l, enum ibv_qp_type type)
{
	return l->p.opts.type == type;
}

/* Has that end more to send than work requests of its own concern? */
static inline bool link_talks(const struct link *l, int d)
{
	return !(link_is(l, IBV_QPT_XRC_SEND) && d);
}

static inline uint32_t link_grh(const struct link *l)
{
	return link_is(l, IBV_QPT_UD) ? GRH_LEN : 0;
}

static inline bool link_reliable(const struct link *l)
{
	return link_is(l, IBV_QPT_RC) || link_is(l, IBV_QPT_XRC_SEND);
}

static inline const char *link_wrong(const struct link *l)
{
	return l->m[0].wrong ? l->m[0].wrong : l->m[1].wrong;
}

/* It will do nothing useful any more. */
static inline bool link_is_down(const struct link *l)
{
	return l->m[0].failed || l->m[1].failed || l->m[0].broken || l->m[1].broken;
}

static inline bool link_is_excused(const struct link *l)
{
	return l->m[0].excused || l->m[1].excused;
}

/* Either QP may have left its state at any time. */
static inline void link_excuse(struct link *l)
{
	int d;

	for (d = 0; d < 2; d++) {
		l->m[d].excused = true;
		l->m[d].deaf = l->m[d].lossy;
	}
}

/* What a request that goes wrong does to the link. */
static inline void link_expect(struct link *l, int d, const struct request *r)
{
	if (!r->fault && !r->at_peer)
		return;
	if (link_reliable(l) || r->fault)
		l->m[d].excused = true;
	if (link_reliable(l) || r->at_peer)
		l->m[!d].excused = true;
}

/* Receives that no message is expected for yet. */
static inline int link_spare(struct link *l, int d)
{
	return l->posted[!d] - l->taken[!d] - model_expected(&l->m[d]);
}

/* What the next message finds room for. */
static inline uint32_t link_room(struct link *l, int d)
{
	uint64_t next = l->taken[!d] + model_expected(&l->m[d]);
	uint32_t room = next < l->posted[!d] ? l->room[!d][next % RECEIVES] : RECEIVE_LEN;

	return room - link_grh(l);
}

/*
 * Two processes
 */
static inline void link_lock(struct link *l)
{
	if (!wait_until(!__atomic_exchange_n(&l->locked, 1, __ATOMIC_ACQUIRE)))
		model_wrong(&l->m[0], "the other process is gone");
}

static inline void link_unlock(struct link *l)
{
	__atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

/* Until the other process is here, too. */
static inline bool link_meet(struct link *l)
{
	uint32_t all;

	if (ends.from != ends.to)
		return true;
	all = (__atomic_fetch_add(&l->arrived, 1, __ATOMIC_ACQ_REL) / 2 + 1) * 2;
	return wait_until(__atomic_load_n(&l->arrived, __ATOMIC_ACQUIRE) >= all);
}

/*
 * The ends
 */
static inline void link_register(struct __test_metadata *_metadata, struct link *l, int d)
{
	struct end *e = &l->p.end[d];

	if (l->target[d]) {
		l->place[d].dead_rkey = l->target[d]->rkey;
		ASSERT_EQ(0, ibv_dereg_mr(l->target[d]));
	}
	l->target[d] = ibv_reg_mr(e->pd, e->buf + TARGET_AT, SLOT, IBV_ACCESS_LOCAL_WRITE |
								    l->p.opts.access);
	ASSERT_NE(NULL, l->target[d]);
	l->place[d].rkey = l->target[d]->rkey;
}

/* Other windows, which are not bound, instead of those that there may be. */
static inline void link_make_windows(struct __test_metadata *_metadata, struct link *l, int d)
{
	int i;

	for (i = 0; i < WINDOWS; i++) {
		if (l->mw[d][i])
			ASSERT_EQ(0, ibv_dealloc_mw(l->mw[d][i]));
		l->mw[d][i] = ibv_alloc_mw(l->p.end[d].pd, IBV_MW_TYPE_2);
		ASSERT_NE(NULL, l->mw[d][i]);
		l->m[!d].window[i] = (struct window) { .key = l->mw[d][i]->rkey };
	}
}

/* A QP that sends, at the end of an XRC pair that receives. */
static inline struct ibv_qp *make_binder(struct __test_metadata *_metadata, struct link *l)
{
	struct end as_sender = l->p.end[1];

	as_sender.srq = NULL;
	end_make_qp(_metadata, &as_sender, &l->p.opts, 0);
	return as_sender.qp;
}

static inline void link_open_end(struct __test_metadata *_metadata, struct link *l, int d)
{
	struct end *e = &l->p.end[d];

	end_open(_metadata, e, &l->p.opts, d);
	l->sq[d] = link_talks(l, d) ? e->qp : make_binder(_metadata, l);
	l->bindable[d] = ibv_reg_mr(e->pd, e->buf + TARGET_AT, SLOT,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	ASSERT_NE(NULL, l->bindable[d]);
	l->place[d].address = end_address(e);
	l->place[d].target = (uintptr_t)e->buf + TARGET_AT;
	link_register(_metadata, l, d);
	link_make_windows(_metadata, l, d);
	l->m[d].slots = e->buf;
	l->m[d].lossy = !link_reliable(l);
	l->m[d].own = l->m[!d].window;
}

static inline void link_connect(struct __test_metadata *_metadata, struct link *l, int d)
{
	const struct address *peer = &l->place[!d].address;

	qp_connect(_metadata, l->p.end[d].qp, &l->p.opts, peer->lid, peer->qpn);
	if (!link_talks(l, d))
		qp_connect(_metadata, l->sq[d], &l->p.opts, peer->lid, peer->qpn);
}

static inline void link_to(struct __test_metadata *_metadata, struct link *l, int d,
			   enum ibv_qp_state state)
{
	ASSERT_EQ(0, qp_to(l->p.end[d].qp, state));
	if (!link_talks(l, d))
		ASSERT_EQ(0, qp_to(l->sq[d], state));
}

/* A link of which there are only zeroes, and l->p.opts. */
static inline void link_open(struct __test_metadata *_metadata, struct link *l)
{
	int d;

	l->strict = l->p.opts.rnr_retry != 7;
	for (d = ends.from; d <= ends.to; d++)
		link_open_end(_metadata, l, d);
	ASSERT_TRUE(link_meet(l));
	for (d = ends.from; d <= ends.to; d++) {
		end_find_peer(_metadata, &l->p.end[d], &l->place[!d].address);
		link_connect(_metadata, l, d);
	}
	ASSERT_TRUE(link_meet(l));
}

static inline void link_close(struct __test_metadata *_metadata, struct link *l)
{
	int d, i;

	for (d = ends.from; d <= ends.to; d++) {
		for (i = 0; i < WINDOWS; i++)
			EXPECT_EQ(0, ibv_dealloc_mw(l->mw[d][i]));
		EXPECT_EQ(0, ibv_dereg_mr(l->bindable[d]));
		EXPECT_EQ(0, ibv_dereg_mr(l->target[d]));
		if (!link_talks(l, d))
			EXPECT_EQ(0, ibv_destroy_qp(l->sq[d]));
		end_close(_metadata, &l->p.end[d]);
	}
}

#endif
