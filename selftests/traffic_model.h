/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traffic_model.h: what random traffic must come to. A model of one direction of a
 * link: the work requests that are outstanding, the messages that are to be received,
 * and the peer's memory as it must be.
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

/**
 * struct request - a send work request
 * @id: number in its direction, and its wr_id.
 * @seed: of its payload.
 * @off: where in the peer's memory.
 * @fault: status that it must fail with; IBV_WC_SUCCESS when nothing is wrong with it.
 */
struct request {
	uint64_t		id;
	uint64_t		seed;
	enum ibv_wr_opcode	opcode;
	uint32_t		len;
	uint32_t		off;
	uint32_t		imm;
	uint64_t		compare_add;
	uint64_t		swap;
	bool			signaled;
	enum ibv_wc_status	fault;
};

/**
 * struct message - what is to be received
 * @id: of its request.
 * @cancelled: its request has failed.
 * @status: of the receive.
 */
struct message {
	struct request		request;
	bool			cancelled;
	enum ibv_wc_status	status;
};

/**
 * struct model - one direction
 * @head: requests posted.
 * @tail: of them completed.
 * @sent: messages posted; @received: of them received or known not to come.
 * @delivered: requests below this have been received.
 * @failed: a request has failed: those behind it are flushed.
 * @excused: something was done to the link: its requests may fail and, where nobody
 *	answers, be lost.
 * @lossy: of UC or UD.
 * @slots: memory of the requests' data segments, SLOT bytes each.
 * @memory: the peer's, as it must be.
 * @unknown: bytes that a failed request may have changed.
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
	const uint8_t		*slots;
	uint8_t			memory[SLOT];
	uint8_t			unknown[SLOT];
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

/* The next request, which is about to be posted. */
static inline void model_post(struct model *m, const struct request *r)
{
	*model_request(m, m->head++) = *r;
	if (takes_receive(r->opcode) && (!r->fault || r->fault == IBV_WC_REM_INV_REQ_ERR))
		*model_message(m, m->sent++) = (struct message) {
			.request = *r,
			.status = r->fault ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS,
		};
}

/* Whether a request wrote there is not known. */
static inline void model_forget(struct model *m, const struct request *r)
{
	if (r->opcode == IBV_WR_RDMA_WRITE || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    is_atomic(r->opcode))
		memset(m->unknown + r->off, 1, r->len);
}

static inline void model_cancel(struct model *m, const struct request *r)
{
	uint64_t i;

	if (takes_receive(r->opcode) && r->id < m->delivered)
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

	if (m->lossy && m->excused)
		model_forget(m, r);
	else if (is_atomic(r->opcode))
		model_atomic(m, r, local);
	else if (r->opcode == IBV_WR_RDMA_READ && memcmp(local, m->memory + r->off, r->len))
		model_wrong(m, "a read brought other bytes");
	else if (r->opcode == IBV_WR_RDMA_WRITE || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		fill(m->memory + r->off, r->len, r->seed);
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

static inline bool model_success(struct model *m, const struct request *r)
{
	if (m->failed)
		return model_wrong(m, "a request succeeded behind one that failed");
	if (r->fault)
		return model_wrong(m, "a request succeeded that should not");
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

/* A message was received, into @at. */
static inline bool model_receive(struct model *m, const struct ibv_wc *wc, const uint8_t *at)
{
	static uint8_t want[SLOT];
	const struct request *r;
	bool is_write;

	if (m->lossy && m->excused)
		return true;
	while (m->received != m->sent && model_message(m, m->received)->cancelled)
		m->received++;
	if (m->received == m->sent)
		return model_wrong(m, "a message was received that was not sent");
	if (model_message(m, m->received)->status != wc->status)
		return model_wrong(m, "a receive failed in another way than it should");
	r = &model_message(m, m->received++)->request;
	m->delivered = r->id + 1;
	if (wc->status)
		return true;
	is_write = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	if (wc->byte_len != r->len)
		return model_wrong(m, "a message of another length was received");
	if (wc->opcode != (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return model_wrong(m, "a message of another kind was received");
	if (r->opcode != IBV_WR_SEND && (!(wc->wc_flags & IBV_WC_WITH_IMM) ||
					 be32toh(wc->imm_data) != r->imm))
		return model_wrong(m, "other immediate data was received");
	fill(want, r->len, r->seed);
	if (!is_write && memcmp(want, at, r->len))
		return model_wrong(m, "other data was received");
	return true;
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
}

#endif
