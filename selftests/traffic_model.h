/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_model.h: what random traffic must come to. A model of one direction of a
 * link: the work requests that are outstanding, the messages that are to be received,
 * the peer's memory as it must be, and the windows that it is reached through.
 *
 * It knows nothing of verbs' objects: it is told what was posted and what completed,
 * and says whether that may be.
 */
#ifndef TRAFFIC_MODEL_H
#define TRAFFIC_MODEL_H

#include "ops.h"

#define SLOTS		16	/* work requests of a direction */
#define SLOT		81920	/* bytes of the longest: more than one slice of the device */
#define INBOX		64	/* messages posted and not received */
#define WINDOWS		3	/* of an end */

enum window_state {
	WINDOW_FREE,		/* nothing goes through it */
	WINDOW_BINDING,		/* a bind is posted */
	WINDOW_BOUND,
	WINDOW_LEAVING,		/* an invalidation is posted, by either end */
};

/**
 * struct window - a memory window of type 2, as the requests have it so far
 * @key: of the last bind, or the first that it had.
 * @off: where it begins in its end's memory; @len: and what it is long.
 * @zero_based: addresses count from @off.
 */
struct window {
	enum window_state	state;
	uint32_t		key;
	uint32_t		off;
	uint32_t		len;
	bool			zero_based;
};

/**
 * struct request - a send work request
 * @id: number in its direction, and its wr_id.
 * @seed: of its payload.
 * @off: where in the peer's memory; @raddr, @rkey: what the request says of it.
 * @imm: immediate data, or the key that is bound or invalidated.
 * @window: 1 and up: one that it goes through, binds, or invalidates.
 * @fault: status that it must fail with; IBV_WC_SUCCESS when nothing is wrong with it.
 * @at_peer: status that its receive must fail with.
 * @lost: it succeeds, and the peer notices nothing of it.
 */
struct request {
	uint64_t		id;
	uint64_t		seed;
	enum ibv_wr_opcode	opcode;
	uint32_t		len;
	uint32_t		off;
	uint64_t		raddr;
	uint32_t		rkey;
	uint32_t		imm;
	int			window;
	uint64_t		compare_add;
	uint64_t		swap;
	bool			signaled;
	enum ibv_wc_status	fault;
	enum ibv_wc_status	at_peer;
	bool			lost;
};

/**
 * struct message - what is to be received
 * @cancelled: its request has failed.
 */
struct message {
	struct request		request;
	bool			cancelled;
};

/**
 * struct model - one direction
 * @head: requests posted.
 * @tail: of them completed.
 * @sent: messages posted; @received: of them received or known not to come.
 * @delivered: requests below this have been received.
 * @failed: a request has failed: those behind it are flushed.
 * @excused: something was done to the link: its requests may fail.
 * @lossy: of UC or UD: nobody answers.
 * @deaf: lossy, and the peer stopped receiving at an unknown moment: messages may be lost.
 * @broken: lossy, and the last message stops the peer, so that all behind it is lost.
 * @lost: requests of which the peer noticed nothing.
 * @through: requests that a window of the peer was used by.
 * @slots: memory of the requests' data segments, SLOT bytes each.
 * @memory: the peer's, as it must be.
 * @unknown: bytes that a failed request may have changed.
 * @window: the peer's; @own: this end's.
 * @wrong: what is not as it must be, NULL while all is well.
 */
struct model {
	struct request		request[SLOTS];
	uint64_t		head;
	uint64_t		tail;
	struct message		message[INBOX];
	uint64_t		sent;
	uint64_t		received;
	uint64_t		delivered;
	bool			failed;
	bool			excused;
	bool			lossy;
	bool			deaf;
	bool			broken;
	uint64_t		lost;
	uint64_t		through;
	const uint8_t		*slots;
	uint8_t			memory[SLOT];
	uint8_t			unknown[SLOT];
	struct window		window[WINDOWS];
	struct window		*own;
	const char		*wrong;
};

static inline struct request *model_request(struct model *m, uint64_t id)
{
	return &m->request[id % SLOTS];
}

static inline struct message *model_message(struct model *m, uint64_t number)
{
	return &m->message[number % INBOX];
}

static inline bool model_wrong(struct model *m, const char *what)
{
	if (!m->wrong)
		m->wrong = what;
	return false;
}

/* Messages that a receive must be there for. */
static inline uint32_t model_expected(struct model *m)
{
	uint32_t n = 0;
	uint64_t i;

	for (i = m->received; i != m->sent; i++)
		n += !model_message(m, i)->cancelled;
	return n;
}

/* It concerns this end alone. */
static inline bool is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

static inline bool is_write(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Windows
 */
static inline struct window *model_window(struct model *m, const struct request *r)
{
	return is_local(r->opcode) ? &m->own[r->window - 1] : &m->window[r->window - 1];
}

/* Is a request outstanding that the peer's window number @i must not change under? */
static inline bool model_uses_window(struct model *m, int i)
{
	uint64_t id;

	for (id = m->tail; id != m->head; id++) {
		const struct request *r = model_request(m, id);

		if (!is_local(r->opcode) && r->window == i + 1)
			return true;
	}
	return false;
}

static inline void model_post_window(struct model *m, const struct request *r)
{
	if (r->fault)
		return;
	if (r->opcode == IBV_WR_BIND_MW) {
		model_window(m, r)->state = WINDOW_BINDING;
		model_window(m, r)->key = r->imm;
	}
	if (r->opcode == IBV_WR_LOCAL_INV || r->opcode == IBV_WR_SEND_WITH_INV)
		model_window(m, r)->state = WINDOW_LEAVING;
}

/*
 * Requests
 */

/* The next request, which is about to be posted. */
static inline void model_post(struct model *m, const struct request *r)
{
	*model_request(m, m->head++) = *r;
	model_post_window(m, r);
	if (takes_receive(r->opcode) && !r->lost && (!r->fault || r->at_peer))
		*model_message(m, m->sent++) = (struct message) { .request = *r };
	if (m->lossy && r->at_peer)
		m->broken = true;
}

/* Whether a request wrote there is not known. */
static inline void model_forget(struct model *m, const struct request *r)
{
	if (is_write(r->opcode) || is_atomic(r->opcode))
		memset(m->unknown + r->off, 1, r->len);
}

static inline void model_cancel(struct model *m, const struct request *r)
{
	uint64_t i;

	if (takes_receive(r->opcode) && !r->lost && r->id < m->delivered)
		model_wrong(m, "a message was received, and its request failed");
	for (i = m->received; i != m->sent; i++)
		if (model_message(m, i)->request.id == r->id)
			model_message(m, i)->cancelled = true;
	model_forget(m, r);
}

static inline void model_atomic(struct model *m, const struct request *r, const void *local)
{
	uint64_t old, new;

	memcpy(&old, m->memory + r->off, sizeof(old));
	if (memcmp(local, &old, sizeof(old)))
		model_wrong(m, "an atomic brought another value");
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		new = old + r->compare_add;
	else
		new = old == r->compare_add ? r->swap : old;
	memcpy(m->memory + r->off, &new, sizeof(new));
}

/* A request was executed. */
static inline void model_done(struct model *m, const struct request *r)
{
	const uint8_t *local = m->slots + r->id % SLOTS * SLOT;

	m->through += r->window && !is_local(r->opcode);
	if (r->lost)
		m->lost++;
	else if (m->deaf)
		model_forget(m, r);
	else if (is_atomic(r->opcode))
		model_atomic(m, r, local);
	else if (r->opcode == IBV_WR_RDMA_READ && memcmp(local, m->memory + r->off, r->len))
		model_wrong(m, "a read brought other bytes");
	else if (is_write(r->opcode))
		fill(m->memory + r->off, r->len, r->seed);
	else if (is_local(r->opcode))
		model_window(m, r)->state = r->opcode == IBV_WR_BIND_MW ? WINDOW_BOUND :
									  WINDOW_FREE;
}

/* The request that a completion is for; those before it must have been unsignaled. */
static inline bool model_completes(struct model *m, uint64_t id)
{
	struct request *r;

	if (id < m->tail || id >= m->head)
		return model_wrong(m, "a completion of a request that is not outstanding");
	if (m->failed && id != m->tail)
		return model_wrong(m, "a flushed request has no completion");
	for (; m->tail != id; m->tail++) {
		r = model_request(m, m->tail);
		if (r->signaled || r->fault)
			return model_wrong(m, "a request has no completion");
		model_done(m, r);
	}
	return true;
}

static inline enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

static inline bool model_success(struct model *m, const struct request *r,
				 enum ibv_wc_opcode opcode)
{
	if (m->failed)
		return model_wrong(m, "a request succeeded behind one that failed");
	if (r->fault)
		return model_wrong(m, "a request succeeded that should not");
	if (opcode != completion_of(r->opcode))
		return model_wrong(m, "a completion of another operation");
	model_done(m, r);
	m->tail++;
	return true;
}

/* May the first request that fails fail so? */
static inline bool model_may_fail(struct model *m, const struct request *r,
				  enum ibv_wc_status status)
{
	if (r->fault && status == r->fault)
		return true;
	return m->excused && (status == IBV_WC_WR_FLUSH_ERR ||
			      status == IBV_WC_RETRY_EXC_ERR);
}

static inline bool model_failure(struct model *m, const struct request *r,
				 enum ibv_wc_status status)
{
	if (m->failed && status != IBV_WC_WR_FLUSH_ERR)
		return model_wrong(m, "a second failure");
	if (!m->failed && !model_may_fail(m, r, status))
		return model_wrong(m, "a request failed in another way than it should");
	m->failed = true;
	if (!r->fault || status != r->fault)
		model_cancel(m, r);
	m->tail++;
	return true;
}

/*
 * Messages
 */
static inline bool model_extra(struct model *m, const struct request *r, const struct ibv_wc *wc)
{
	struct window *w;

	if (r->opcode == IBV_WR_SEND)
		return !(wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) ||
		       model_wrong(m, "immediate data that was not sent was received");
	if (r->opcode != IBV_WR_SEND_WITH_INV)
		return (wc->wc_flags & IBV_WC_WITH_IMM && be32toh(wc->imm_data) == r->imm) ||
		       model_wrong(m, "other immediate data was received");
	if (!(wc->wc_flags & IBV_WC_WITH_INV) || wc->invalidated_rkey != r->imm)
		return model_wrong(m, "another key was invalidated");
	w = model_window(m, r);
	if (w->state == WINDOW_LEAVING && w->key == r->imm)
		w->state = WINDOW_FREE;
	return true;
}

/* What was received, into @at, is that message. */
static inline bool model_is_message(struct model *m, const struct request *r,
				    const struct ibv_wc *wc, const uint8_t *at)
{
	static uint8_t want[SLOT];
	bool write = is_write(r->opcode);

	if (wc->byte_len != r->len)
		return model_wrong(m, "a message of another length was received");
	if (wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return model_wrong(m, "a message of another kind was received");
	fill(want, r->len, r->seed);
	if (!write && memcmp(want, at, r->len))
		return model_wrong(m, "other data was received");
	return model_extra(m, r, wc);
}

/* A receive was taken and not flushed. */
static inline bool model_receive(struct model *m, const struct ibv_wc *wc, const uint8_t *at)
{
	const struct request *r;

	if (m->deaf)
		return true;
	while (m->received != m->sent && model_message(m, m->received)->cancelled)
		m->received++;
	if (m->received == m->sent)
		return model_wrong(m, "a message was received that was not sent");
	r = &model_message(m, m->received++)->request;
	if (r->at_peer != wc->status)
		return model_wrong(m, "a receive failed in another way than it should");
	m->delivered = r->id + 1;
	return wc->status || model_is_message(m, r, wc, at);
}

/* A receive was flushed: after all that comes, has come. */
static inline bool model_flush(struct model *m)
{
	return m->excused || (m->broken && !model_expected(m)) ||
	       model_wrong(m, "a receive was flushed");
}

/* The peer's memory, as it is; false when it is not as it must be. */
static inline bool model_memory(struct model *m, const uint8_t *is)
{
	uint32_t i;

	for (i = 0; i < SLOT; i++)
		if (is[i] != m->memory[i] && !m->unknown[i])
			return model_wrong(m, "memory is not as it must be");
	return true;
}

/* Nothing is outstanding any more: start anew from what is there. */
static inline void model_restart(struct model *m, const uint8_t *is)
{
	memcpy(m->memory, is, SLOT);
	memset(m->unknown, 0, SLOT);
	m->received = m->sent;
	m->failed = false;
	m->excused = false;
	m->deaf = false;
	m->broken = false;
}

#endif
