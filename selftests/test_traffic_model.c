// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_traffic_model.c: that the model of random traffic notices what is wrong. The
 * traffic is that of test_traffic.c, but completions are falsified once before the model
 * sees them, or memory is changed behind its back. A link that then is found in order
 * would be one whose checks are worth nothing.
 */
#define _GNU_SOURCE
#include "traffic_round.h"

typedef int damage_fn(struct link *l, int d, bool receives, struct ibv_wc *wc, int n);

static struct round round_;

/* The first message of a batch that a payload was received with; -1: there is none. */
static int payload_in(const struct link *l, const struct ibv_wc *wc, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!wc[i].status && wc[i].opcode == IBV_WC_RECV &&
		    wc[i].byte_len > link_grh(l))
			return i;
	return -1;
}

/* Where the payload of completion number @i lies. */
static uint8_t *payload_of(struct link *l, int d, int i)
{
	return l->p.end[d].buf + (SLOTS + (l->taken[d] + i) % RECEIVES) * SLOT + link_grh(l);
}

/*
 * What is done: once, at the first occasion
 */
static int change_payload(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	int i = receives && !l->damaged ? payload_in(l, wc, n) : -1;

	if (i >= 0) {
		payload_of(l, d, i)[wc[i].byte_len - link_grh(l) - 1] ^= 0x40;
		l->damaged = true;
	}
	return n;
}

static int change_length(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	int i = receives && !l->damaged ? payload_in(l, wc, n) : -1;

	if (i >= 0) {
		wc[i].byte_len--;
		l->damaged = true;
	}
	return n;
}

/* The first of a batch that is so; the data that a completion carries is changed. */
static int change_data(struct link *l, bool receives, struct ibv_wc *wc, int n,
		       unsigned int flag)
{
	int i;

	for (i = 0; receives && !l->damaged && i < n; i++)
		if (!wc[i].status && wc[i].wc_flags & flag) {
			wc[i].imm_data ^= htobe32(1);
			l->damaged = true;
		}
	return n;
}

static int change_immediate(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return change_data(l, receives, wc, n, IBV_WC_WITH_IMM);
}

static int change_invalidated_key(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return change_data(l, receives, wc, n, IBV_WC_WITH_INV);
}

/* A byte that no request writes, as they all end before it. */
static int change_memory(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	if (receives && !l->damaged) {
		l->p.end[d].buf[TARGET_AT + SLOT - 1] ^= 1;
		l->damaged = true;
	}
	return n;
}

/* The first request of its kind brought something else. */
static int change_brought(struct link *l, int d, struct ibv_wc *wc, int n, enum ibv_wc_opcode op)
{
	int i;

	for (i = 0; !l->damaged && i < n; i++)
		if (!wc[i].status && wc[i].opcode == op && wc[i].byte_len) {
			l->p.end[d].buf[wc[i].wr_id % SLOTS * SLOT] ^= 1;
			l->damaged = true;
		}
	return n;
}

static int change_read(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : change_brought(l, d, wc, n, IBV_WC_RDMA_READ);
}

static int change_atomic(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : change_brought(l, d, wc, n, IBV_WC_FETCH_ADD);
}

static int swallow(struct link *l, struct ibv_wc *wc, int n)
{
	if (l->damaged)
		return n;
	l->damaged = true;
	memmove(wc, wc + 1, (n - 1) * sizeof(*wc));
	return n - 1;
}

static int swallow_send(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : swallow(l, wc, n);
}

static int swallow_receive(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? swallow(l, wc, n) : n;
}

static int repeat(struct link *l, struct ibv_wc *wc, int n)
{
	if (l->damaged)
		return n;
	l->damaged = true;
	wc[n] = wc[n - 1];
	return n + 1;
}

static int repeat_send(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : repeat(l, wc, n);
}

static int repeat_receive(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? repeat(l, wc, n) : n;
}

static int exchange_two(struct link *l, struct ibv_wc *wc, int n)
{
	struct ibv_wc first = wc[0];

	if (n < 2 || l->damaged)
		return n;
	l->damaged = true;
	wc[0] = wc[1];
	wc[1] = first;
	return n;
}

static int exchange_sends(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : exchange_two(l, wc, n);
}

static int exchange_receives(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? exchange_two(l, wc, n) : n;
}

/* Are the first two of a batch messages that can be told apart by their lengths? */
static bool two_messages(const struct link *l, bool receives, const struct ibv_wc *wc, int n)
{
	return receives && !l->damaged && n > 1 && !payload_in(l, wc, 1) &&
	       !payload_in(l, wc + 1, 1) && wc[0].byte_len != wc[1].byte_len;
}

/* Each with the other's receive: what was sent first, was received last. */
static int exchange_messages(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	static uint8_t mem[SLOT];
	uint64_t first = wc[0].wr_id;

	if (!two_messages(l, receives, wc, n))
		return n;
	exchange_two(l, wc, n);
	wc[1].wr_id = wc[0].wr_id;
	wc[0].wr_id = first;
	memcpy(mem, payload_of(l, d, 0), RECEIVE_LEN - GRH_LEN);
	memcpy(payload_of(l, d, 0), payload_of(l, d, 1), RECEIVE_LEN - GRH_LEN);
	memcpy(payload_of(l, d, 1), mem, RECEIVE_LEN - GRH_LEN);
	return n;
}

/* As if the first had never come: its receive was there for the second. */
static int lose_message(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	if (!two_messages(l, receives, wc, n))
		return n;
	memcpy(payload_of(l, d, 0), payload_of(l, d, 1), RECEIVE_LEN - GRH_LEN);
	wc[1].wr_id = wc[0].wr_id;
	return swallow(l, wc, n);
}

static int fail_one(struct link *l, struct ibv_wc *wc, int n)
{
	if (!l->damaged)
		wc[0].status = IBV_WC_REM_OP_ERR;
	l->damaged = true;
	return n;
}

static int fail_send(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? n : fail_one(l, wc, n);
}

static int fail_receive(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	return receives ? fail_one(l, wc, n) : n;
}

/* What cannot be done is said to have been done. */
static int hide_failure(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	int i;

	for (i = 0; !receives && !l->damaged && i < n; i++)
		if (wc[i].status && wc[i].status == model_request(&l->m[d], wc[i].wr_id)->fault) {
			wc[i].status = IBV_WC_SUCCESS;
			l->damaged = true;
		}
	return n;
}

/* Another operation than was asked for. */
static int change_operation(struct link *l, int d, bool receives, struct ibv_wc *wc, int n)
{
	if (!receives && !l->damaged) {
		wc[0].opcode = wc[0].opcode == IBV_WC_SEND ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
		l->damaged = true;
	}
	return n;
}

/*
 * One link at work
 */
static void one_link(struct __test_metadata *_metadata, struct round *r, enum ibv_qp_type type,
		     damage_fn *damage)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	memset(r, 0, sizeof(*r));
	r->seed = seed_of("VHCA_TEST_SEED");
	r->nlinks = 1;
	r->calm = damage != hide_failure;
	/* Enough for an occasion to be there. */
	r->most = r->calm ? ROUND : 20 * ROUND;
	round_map(_metadata, r);
	opts.type = type;
	opts.buf_len = LINK_BUF;
	r->link[0].p.opts = opts;
	r->link[0].damage = damage;
	round_open(_metadata, r);
}

/* What is said to be wrong; NULL when nothing is, at the end of the round. */
static const char *verdict(struct __test_metadata *_metadata, struct round *r)
{
	struct link *l = &r->link[0];
	int d;

	if (work(_metadata, r) && wait_until(all_come_to_end(_metadata, r)))
		for (d = 0; d < 2; d++)
			model_memory(&l->m[!d], l->p.end[d].buf + TARGET_AT);
	return link_wrong(l);
}

static void noticed(struct __test_metadata *_metadata, enum ibv_qp_type type, damage_fn *damage,
		    const char *how)
{
	struct round *r = &round_;

	one_link(_metadata, r, type, damage);
	EXPECT_STREQ(how, verdict(_metadata, r));
	EXPECT_TRUE(r->link[0].damaged);
	link_close(_metadata, &r->link[0]);
	round_unmap(r);
}

static const enum ibv_qp_type all_types[] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
};

static void noticed_in_all(struct __test_metadata *_metadata, damage_fn *damage, const char *how)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_types); i++)
		noticed(_metadata, all_types[i], damage, how);
}

TEST(without_damage_nothing_is_wrong)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_types); i++) {
		one_link(_metadata, &round_, all_types[i], NULL);
		EXPECT_EQ(NULL, verdict(_metadata, &round_));
		link_close(_metadata, &round_.link[0]);
		round_unmap(&round_);
	}
}

TEST(a_byte_of_a_payload_changes)
{
	noticed_in_all(_metadata, change_payload, "other data was received");
}

TEST(a_message_loses_a_byte)
{
	noticed_in_all(_metadata, change_length, "a message of another length was received");
}

TEST(immediate_data_changes)
{
	noticed_in_all(_metadata, change_immediate, "other immediate data was received");
}

TEST(another_key_is_said_to_be_invalidated)
{
	noticed(_metadata, IBV_QPT_RC, change_invalidated_key, "another key was invalidated");
	noticed(_metadata, IBV_QPT_XRC_SEND, change_invalidated_key,
		"another key was invalidated");
}

/* Not at once: at the end of the round. */
TEST(a_byte_of_memory_changes)
{
	noticed(_metadata, IBV_QPT_RC, change_memory, "memory is not as it must be");
	noticed(_metadata, IBV_QPT_UC, change_memory, "memory is not as it must be");
}

TEST(what_was_read_changes)
{
	noticed(_metadata, IBV_QPT_RC, change_read, "a read brought other bytes");
	noticed(_metadata, IBV_QPT_RC, change_atomic, "an atomic brought another value");
}

TEST(a_completion_is_missing)
{
	noticed_in_all(_metadata, swallow_send, "a request has no completion");
	noticed_in_all(_metadata, swallow_receive, "a receive out of turn");
}

TEST(a_completion_comes_twice)
{
	noticed_in_all(_metadata, repeat_send,
		       "a completion of a request that is not outstanding");
	noticed_in_all(_metadata, repeat_receive, "a receive out of turn");
}

TEST(two_completions_change_places)
{
	noticed_in_all(_metadata, exchange_sends, "a request has no completion");
	noticed_in_all(_metadata, exchange_receives, "a receive out of turn");
}

TEST(two_messages_change_places)
{
	noticed_in_all(_metadata, exchange_messages,
		       "a message of another length was received");
}

TEST(a_message_is_lost)
{
	noticed_in_all(_metadata, lose_message, "a message of another length was received");
}

TEST(a_request_fails_that_should_not)
{
	noticed_in_all(_metadata, fail_send, "a request failed in another way than it should");
	noticed_in_all(_metadata, fail_receive, "a receive failed in another way than it should");
}

TEST(a_request_does_not_fail_that_should)
{
	noticed(_metadata, IBV_QPT_RC, hide_failure, "a request succeeded that should not");
	noticed(_metadata, IBV_QPT_UC, hide_failure, "a request succeeded that should not");
}

TEST(a_completion_is_of_another_operation)
{
	noticed_in_all(_metadata, change_operation, "a completion of another operation");
}

TEST_HARNESS_MAIN
