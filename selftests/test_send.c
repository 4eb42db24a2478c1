// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_send.c: what RC SEND does with good work requests: gather and scatter,
 * inline, sizes, signaling, posting rules, receiver not ready, many queues.
 * What it does with bad ones is in test_send_errors.c.
 */
#define _GNU_SOURCE
#include "rc.h"

static size_t total_of(const struct slice *s, int n)
{
	size_t total = 0;

	while (n--)
		total += s[n].len;
	return total;
}

/* The bytes of a list of slices, one behind the other. */
static void gather(const struct end *e, const struct slice *s, int n, uint8_t *out)
{
	int i;

	for (i = 0; i < n; i++) {
		memcpy(out, e->buf + s[i].off, s[i].len);
		out += s[i].len;
	}
}

/* One message between two lists of slices; data checked as far as it goes. */
static void send_slices(struct __test_metadata *_metadata, struct end *a, struct end *b,
			const struct slice *from, int nfrom, const struct slice *to, int nto)
{
	static uint8_t sent[65536], received[65536];
	size_t len = total_of(from, nfrom);
	struct ibv_wc wc;

	fill(a->buf, a->len, 1);
	memset(b->buf, 0xa5, b->len);
	ASSERT_EQ(0, post_recv_slices(b, 2, to, nto));
	ASSERT_EQ(0, post_send_slices(a, 1, from, nfrom, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	ASSERT_EQ(len, wc.byte_len);
	gather(a, from, nfrom, sent);
	gather(b, to, nto, received);
	ASSERT_EQ(0, memcmp(sent, received, len));
}

static bool all_are(const uint8_t *p, uint8_t value, size_t len)
{
	while (len--)
		if (*p++ != value)
			return false;
	return true;
}

/*
 * Gather and scatter
 */
TEST_F(rc, many_sges_are_gathered_and_scattered)
{
	struct slice from[] = { { 5000, 1 }, { 17, 100 }, { 9001, 7 }, { 20001, 4000 } };
	struct slice to[] = { { 30000, 3 }, { 11, 50 }, { 7001, 4000 }, { 2000, 55 } };

	send_slices(_metadata, self->a, self->b, from, 4, to, 4);
}

TEST_F(rc, zero_length_sges_are_skipped)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge from[] = {
		{ 0, 0, 0 },
		{ (uintptr_t)a->buf, 10, a->mr->lkey },
		{ (uintptr_t)a->buf + 5, 0, 0x100 },
		{ (uintptr_t)a->buf + 100, 20, a->mr->lkey },
	};
	struct ibv_sge to[] = {
		{ 1, 0, 0x100 },
		{ (uintptr_t)b->buf + 200, 15, b->mr->lkey },
		{ 0, 0, 0 },
		{ (uintptr_t)b->buf, 15, b->mr->lkey },
	};
	struct ibv_wc wc;

	fill(a->buf, 4096, 3);
	ASSERT_EQ(0, post_recv_sges(b->qp, 2, to, 4));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, from, 4, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(30, wc.byte_len);
	EXPECT_EQ(0, memcmp(b->buf + 200, a->buf, 10));
	EXPECT_EQ(0, memcmp(b->buf + 210, a->buf + 100, 5));
	EXPECT_EQ(0, memcmp(b->buf, a->buf + 105, 15));
}

TEST_F(rc, receive_sges_behind_the_message_are_not_touched)
{
	struct slice from = { 0, 1000 };
	struct slice to[] = { { 0, 600 }, { 1000, 600 }, { 2000, 600 }, { 3000, 600 } };

	send_slices(_metadata, self->a, self->b, &from, 1, to, 4);
	EXPECT_TRUE(all_are(self->b->buf + 1400, 0xa5, 200));
	EXPECT_TRUE(all_are(self->b->buf + 2000, 0xa5, 600));
	EXPECT_TRUE(all_are(self->b->buf + 3000, 0xa5, 600));
}

/* Goes around the RQ with full lists, then posts short ones into the same slots. */
TEST_F(rc, a_short_receive_list_hides_what_its_slot_held_before)
{
	struct end *a = self->a, *b = self->b;
	struct slice full[] = { { 0, 10 }, { 100, 10 }, { 200, 10 }, { 300, 10 } };
	unsigned int i;

	for (i = 0; i < b->cap.max_recv_wr * 2; i++)
		send_slices(_metadata, a, b, full, 4, full, 4);
	ASSERT_EQ(0, post_recv_slices(b, 2, full, 2));
	ASSERT_EQ(0, post_send(a, 1, 0, 21, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(rc, a_receive_without_sges_serves_an_empty_send)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv_sges(self->b->qp, 2, NULL, 0));
	ASSERT_EQ(0, post_send_sges(self->a->qp, 1, NULL, 0, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, wc.byte_len);
	exchange(_metadata, self->a, self->b, 100, 5);
}

TEST_F(rc, a_receive_without_sges_takes_a_slot)
{
	unsigned int n = 0;

	while (n <= self->b->cap.max_recv_wr && !post_recv_sges(self->b->qp, n, NULL, 0))
		n++;
	ASSERT_EQ(self->b->cap.max_recv_wr, n);
	EXPECT_EQ(ENOMEM, post_recv(self->b, n, 0, 10));
	ASSERT_EQ(0, post_send_sges(self->a->qp, 1, NULL, 0, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->b->rcq, 0, IBV_WC_SUCCESS);
	EXPECT_EQ(0, post_recv(self->b, n, 0, 10));
	EXPECT_EQ(ENOMEM, post_recv(self->b, n, 0, 10));
}

TEST_F(rc, a_receive_without_sges_gives_a_length_error_on_payload)
{
	ASSERT_EQ(0, post_recv_sges(self->b->qp, 2, NULL, 0));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 1, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(rc, as_many_sges_as_were_granted)
{
	struct slice from[MAX_SLICES], to[MAX_SLICES];
	struct pair_opts opts = self->p.opts;
	struct ibv_device_attr attr;
	int i, n;

	ASSERT_EQ(0, ibv_query_device(self->a->ctx, &attr));
	n = attr.max_sge < MAX_SLICES ? attr.max_sge : MAX_SLICES;
	opts.cap.max_send_sge = n;
	opts.cap.max_recv_sge = n;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i < n; i++) {
		from[i] = (struct slice){ i * 1000, 100 + i };
		to[i] = (struct slice){ (n - i) * 900, 100 + n - i };
	}
	send_slices(_metadata, self->a, self->b, from, n, to, n);
}

/*
 * Inline
 */
TEST_F(rc, inline_needs_no_mr)
{
	struct end *a = self->a, *b = self->b;
	char here[100];
	struct ibv_sge sge = { (uintptr_t)here, sizeof(here), 0xdeadbe00 };

	fill(here, sizeof(here), 4);
	ASSERT_EQ(0, post_recv(b, 2, 0, 1000));
	ASSERT_EQ(0, post_send_sges(a->qp, 1, &sge, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(100, expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS).byte_len);
	EXPECT_EQ(0, memcmp(b->buf, here, sizeof(here)));
}

/* No receive is there yet, so the message cannot have left before it is overwritten. */
TEST_F(rc, the_buffer_of_an_inline_send_may_be_reused_at_return)
{
	struct end *a = self->a, *b = self->b;
	uint8_t copy[128];

	fill(a->buf, 128, 5);
	memcpy(copy, a->buf, 128);
	ASSERT_EQ(0, post_send(a, 1, 0, 128, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	memset(a->buf, 0, 128);
	ASSERT_EQ(0, post_recv(b, 2, 0, 1000));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(b->buf, copy, 128));
}

TEST_F(rc, an_inline_payload_wraps_at_the_end_of_the_queue)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	uint64_t seed = 6;
	int i;

	opts.cap.max_send_wr = 3;
	opts.cap.max_inline_data = 700;
	reopen(_metadata, &self->p, opts);
	ASSERT_GE(a->cap.max_inline_data, 700);
	for (i = 0; i < 2000; i++) {
		uint32_t len = rnd_below(&seed, 701);
		struct slice from[] = { { i, len / 3 }, { 10000 + i, len - len / 3 } };
		uint8_t sent[700];

		fill(a->buf + i, 1000, i);
		gather(a, from, 2, sent);
		ASSERT_EQ(0, post_recv(b, i, 0, 700));
		ASSERT_EQ(0, post_send_slices(a, i, from, 2, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
		ASSERT_EQ(len, expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS).byte_len);
		ASSERT_EQ(0, memcmp(b->buf, sent, len));
	}
}

TEST_F(rc, an_inline_payload_that_is_too_long_is_refused)
{
	struct end *a = self->a;
	int err = post_send(a, 1, 0, a->cap.max_inline_data + 1, IBV_SEND_INLINE);

	EXPECT_TRUE(err == EINVAL || err == ENOMEM);
	exchange(_metadata, a, self->b, 100, 7);
}

TEST_F(rc, an_empty_inline_send)
{
	ASSERT_EQ(0, post_recv(self->b, 2, 0, 10));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(0, expect_wc(_metadata, self->b->rcq, 2, IBV_WC_SUCCESS).byte_len);
}

/*
 * Sizes
 */
TEST_F(rc, sizes_around_every_mtu)
{
	struct pair *p = &self->p;

	for (p->opts.mtu = IBV_MTU_256; p->opts.mtu <= IBV_MTU_4096; p->opts.mtu++) {
		uint32_t mtu = 128 << p->opts.mtu;
		uint32_t size[] = {
			0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1,
			3 * mtu - 1, 7 * mtu + 5, 65535,
		};
		unsigned int i;

		pair_reconnect(_metadata, p);
		for (i = 0; i < ARRAY_SIZE(size); i++)
			exchange(_metadata, self->a, self->b, size[i], 100 + i);
	}
}

TEST_F(rc, sizes_up_to_eight_mib)
{
	static const uint32_t size[] = {
		1 << 16, (1 << 17) + 1, 1 << 20, (1 << 20) + 1, (1 << 23) - 1, 1 << 23
	};
	struct pair_opts opts = self->p.opts;
	unsigned int i;

	opts.buf_len = 1 << 23;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i < ARRAY_SIZE(size); i++)
		exchange(_metadata, self->a, self->b, size[i], 200 + i);
}

TEST_F(rc, memory_may_start_and_end_anywhere_in_a_page)
{
	struct end *a = self->a, *b = self->b;
	int i;

	for (i = 1; i < 4096; i += 97) {
		struct slice from = { 4096 + i, 8200 - i };
		struct slice to[] = { { 8191 - i, i }, { 20480 + i, 8200 } };

		send_slices(_metadata, a, b, &from, 1, to, 2);
	}
}

/*
 * Completions
 */
TEST_F(rc, an_unsignaled_send_makes_no_completion_and_is_retired_by_the_next)
{
	struct end *a = self->a, *b = self->b;
	unsigned int round, i, n = a->cap.max_send_wr;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < n; i++) {
			ASSERT_EQ(0, post_recv(b, i, 0, 100));
			ASSERT_EQ(0, post_send(a, i, 0, 10, i == n - 1 ? IBV_SEND_SIGNALED : 0));
			expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
		}
		expect_wc(_metadata, a->scq, n - 1, IBV_WC_SUCCESS);
		ASSERT_TRUE(cq_empty(a->scq));
	}
}

TEST_F(rc, sq_sig_all_signals_every_send)
{
	struct pair_opts opts = self->p.opts;
	int i;

	opts.sq_sig_all = 1;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, post_recv(self->b, i, 0, 100));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, post_send(self->a, i, 0, 10, 0));
	for (i = 0; i < 5; i++)
		expect_wc(_metadata, self->a->scq, i, IBV_WC_SUCCESS);
}

TEST_F(rc, completions_come_in_posting_order_with_their_wr_ids)
{
	struct end *a = self->a, *b = self->b;
	uint64_t seed = 8, id[2][40];
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 40; i++) {
		id[0][i] = rnd(&seed);
		id[1][i] = rnd(&seed);
		ASSERT_EQ(0, post_recv(b, id[1][i], 0, 20000));
	}
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_send(a, id[0][i], 0, i % 3 ? i : 500 * i, IBV_SEND_SIGNALED));
	for (i = 0; i < 40; i++) {
		wc = expect_wc(_metadata, a->scq, id[0][i], IBV_WC_SUCCESS);
		EXPECT_EQ(IBV_WC_SEND, wc.opcode);
		EXPECT_EQ(a->qp->qp_num, wc.qp_num);
		EXPECT_EQ(0, wc.vendor_err);
		wc = expect_wc(_metadata, b->rcq, id[1][i], IBV_WC_SUCCESS);
		EXPECT_EQ(IBV_WC_RECV, wc.opcode);
		EXPECT_EQ(b->qp->qp_num, wc.qp_num);
		EXPECT_EQ(a->qp->qp_num, wc.src_qp);
		EXPECT_EQ(a->lid, wc.slid);
		EXPECT_EQ(i % 3 ? i : 500 * i, wc.byte_len);
	}
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_TRUE(cq_empty(b->rcq));
}

TEST_F(rc, poll_returns_up_to_as_many_as_asked_for)
{
	struct ibv_wc wc[20];
	int i, n;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_recv(self->b, i, 0, 100));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_send(self->a, i, 0, 10, i == 9 ? IBV_SEND_SIGNALED : 0));
	expect_wc(_metadata, self->a->scq, 9, IBV_WC_SUCCESS);
	EXPECT_EQ(0, ibv_poll_cq(self->b->rcq, 0, wc));
	ASSERT_EQ(4, ibv_poll_cq(self->b->rcq, 4, wc));
	for (n = 0; n < 4; n++)
		EXPECT_EQ(n, wc[n].wr_id);
	ASSERT_EQ(6, ibv_poll_cq(self->b->rcq, 20, wc));
	for (n = 0; n < 6; n++)
		EXPECT_EQ(n + 4, wc[n].wr_id);
	EXPECT_EQ(0, ibv_poll_cq(self->b->rcq, 20, wc));
}

/*
 * Posting
 */
TEST_F(rc, a_full_send_queue_is_enomem_and_drains)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge = { (uintptr_t)a->buf, 10, a->mr->lkey };
	struct ibv_send_wr wr[3], *bad = NULL;
	unsigned int round, i, n = a->cap.max_send_wr;

	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = n - 1 + i,
			.next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
	for (round = 0; round < 3; round++) {
		for (i = 0; i < n - 1; i++)
			ASSERT_EQ(0, post_send(a, i, 0, 10, IBV_SEND_SIGNALED));
		/* Room for one of three. */
		ASSERT_EQ(ENOMEM, ibv_post_send(a->qp, wr, &bad));
		ASSERT_EQ(&wr[1], bad);
		for (i = 0; i < n; i++) {
			ASSERT_EQ(0, post_recv(b, i, 0, 10));
			expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
			expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
		}
		ASSERT_TRUE(cq_empty(a->scq));
	}
}

TEST_F(rc, sends_before_the_failing_one_of_a_list_run)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge[MAX_SLICES + 1] = { { (uintptr_t)a->buf, 10, a->mr->lkey } };
	struct ibv_send_wr wr[5], *bad = NULL;
	int i, kind;

	ASSERT_LT(a->cap.max_send_sge, ARRAY_SIZE(sge));
	for (kind = 0; kind < 2; kind++) {
		for (i = 0; i < 5; i++) {
			wr[i] = (struct ibv_send_wr) {
				.wr_id = i,
				.next = i < 4 ? &wr[i + 1] : NULL,
				.sg_list = sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
			};
			ASSERT_EQ(0, post_recv(b, 100 + i, 0, 10));
		}
		if (kind)
			wr[2].opcode = (enum ibv_wr_opcode)77;
		else
			wr[2].num_sge = a->cap.max_send_sge + 1;
		ASSERT_EQ(EINVAL, ibv_post_send(a->qp, wr, &bad));
		EXPECT_EQ(&wr[2], bad);
		expect_wc(_metadata, a->scq, 0, IBV_WC_SUCCESS);
		expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
		/* The next completion is that of the next post. */
		wr[3].wr_id = 1000;
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr[3], &bad));
		expect_wc(_metadata, a->scq, 1000, IBV_WC_SUCCESS);
		expect_wc(_metadata, a->scq, 4, IBV_WC_SUCCESS);
		for (i = 0; i < 4; i++)
			expect_wc(_metadata, b->rcq, 100 + i, IBV_WC_SUCCESS);
		ASSERT_EQ(0, post_send(a, 5, 0, 10, IBV_SEND_SIGNALED));
		expect_wc(_metadata, b->rcq, 104, IBV_WC_SUCCESS);
		expect_wc(_metadata, a->scq, 5, IBV_WC_SUCCESS);
	}
}

TEST_F(rc, receives_before_the_failing_one_of_a_list_are_posted)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge[MAX_SLICES + 1] = { { (uintptr_t)b->buf, 10, b->mr->lkey } };
	struct ibv_recv_wr wr[4], *bad = NULL;
	int i;

	ASSERT_LT(b->cap.max_recv_sge, ARRAY_SIZE(sge));
	for (i = 0; i < 4; i++)
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = i,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.sg_list = sge,
			.num_sge = i == 2 ? b->cap.max_recv_sge + 1 : 1,
		};
	ASSERT_EQ(EINVAL, ibv_post_recv(b->qp, wr, &bad));
	EXPECT_EQ(&wr[2], bad);
	ASSERT_EQ(0, post_recv(b, 50, 0, 10));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_send(a, i, 0, 10, 0));
	expect_wc(_metadata, b->rcq, 0, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 50, IBV_WC_SUCCESS);
}

TEST_F(rc, posting_needs_a_state_that_allows_it)
{
	struct pair_opts *opts = &self->p.opts;
	struct end *a = self->a, *b = self->b;

	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	EXPECT_EQ(EINVAL, post_recv(a, 1, 0, 10));
	EXPECT_EQ(EINVAL, post_send(a, 1, 0, 10, 0));
	ASSERT_EQ(0, qp_to_init(a->qp, opts));
	EXPECT_EQ(0, post_recv(a, 1, 0, 10));
	EXPECT_EQ(EINVAL, post_send(a, 1, 0, 10, 0));
	ASSERT_EQ(0, qp_to_rtr(a->qp, opts, b->lid, b->qp->qp_num));
	EXPECT_EQ(0, post_recv(a, 2, 0, 10));
	EXPECT_EQ(EINVAL, post_send(a, 1, 0, 10, 0));
	ASSERT_EQ(0, qp_to_rts(a->qp, opts));
	EXPECT_EQ(0, post_send(a, 1, 0, 10, 0));
}

/*
 * Receiver not ready
 */
static long long rnr_naks(const struct pair *p)
{
	long long n = device_counter(p->opts.function[0], "rnr_naks");

	if (p->opts.function[1] != p->opts.function[0])
		n += device_counter(p->opts.function[1], "rnr_naks");
	return n;
}

TEST_F(rc, rnr_is_tried_again_rnr_retry_times)
{
	struct pair *p = &self->p;
	long long before;

	for (p->opts.rnr_retry = 0; p->opts.rnr_retry < 7; p->opts.rnr_retry += 3) {
		pair_reconnect(_metadata, p);
		before = rnr_naks(p);
		ASSERT_LE(0, before);
		ASSERT_EQ(0, post_send(self->a, 1, 0, 10, IBV_SEND_SIGNALED));
		expect_wc(_metadata, self->a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		EXPECT_EQ(1 + p->opts.rnr_retry, rnr_naks(p) - before);
		EXPECT_EQ(IBV_QPS_ERR, qp_state(self->a->qp));
		EXPECT_EQ(IBV_QPS_RTS, qp_state(self->b->qp));
	}
}

TEST_F(rc, rnr_waits_the_responders_timer)
{
	struct pair *p = &self->p;
	uint64_t start;

	p->opts.rnr_retry = 2;
	p->opts.min_rnr_timer = 20;	/* 10.24 ms */
	pair_reconnect(_metadata, p);
	start = now_ns();
	ASSERT_EQ(0, post_send(self->a, 1, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT_LE(2 * 10240000, now_ns() - start);
}

TEST_F(rc, rnr_retry_7_waits_for_ever_and_goes_through)
{
	struct end *a = self->a, *b = self->b;
	long long before = rnr_naks(&self->p);

	fill(a->buf, 5000, 9);
	ASSERT_EQ(0, post_send(a, 1, 0, 5000, IBV_SEND_SIGNALED));
	ASSERT_TRUE(wait_until(rnr_naks(&self->p) > before + 20));
	ASSERT_TRUE(cq_empty(a->scq));
	ASSERT_EQ(0, post_recv(b, 2, 0, 5000));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	EXPECT_EQ(0, memcmp(a->buf, b->buf, 5000));
	exchange(_metadata, a, b, 3000, 10);
}

/*
 * Other shapes of a fabric
 */
TEST_F(rc, both_directions_at_once)
{
	struct end *a = self->a, *b = self->b;
	int round, i;

	for (round = 0; round < 100; round++) {
		for (i = 0; i < 16; i++) {
			ASSERT_EQ(0, post_recv(a, i, 32768, 2000));
			ASSERT_EQ(0, post_recv(b, i, 32768, 2000));
		}
		for (i = 0; i < 16; i++) {
			ASSERT_EQ(0, post_send(a, i, 0, 1 + 100 * i, IBV_SEND_SIGNALED));
			ASSERT_EQ(0, post_send(b, i, 0, 2 + 100 * i, IBV_SEND_SIGNALED));
		}
		for (i = 0; i < 16; i++) {
			struct ibv_wc at_b = expect_wc(_metadata, b->rcq, i, IBV_WC_SUCCESS);
			struct ibv_wc at_a = expect_wc(_metadata, a->rcq, i, IBV_WC_SUCCESS);

			ASSERT_EQ(1 + 100 * i, at_b.byte_len);
			ASSERT_EQ(2 + 100 * i, at_a.byte_len);
			expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
			expect_wc(_metadata, b->scq, i, IBV_WC_SUCCESS);
		}
	}
}

TEST_F(rc, a_qp_connected_with_itself_on_one_cq)
{
	struct end *a = self->a;
	struct ibv_qp *qp = make_qp(a->pd, a->scq, a->scq, &self->p.opts, NULL);
	struct ibv_sge from = { (uintptr_t)a->buf, 3000, a->mr->lkey };
	struct ibv_sge to = { (uintptr_t)a->buf + 10000, 3000, a->mr->lkey };
	struct ibv_wc wc;
	int i, n;

	ASSERT_NE(NULL, qp);
	qp_connect(_metadata, qp, &self->p.opts, a->lid, qp->qp_num);
	for (i = 0; i < 200; i++) {
		fill(a->buf, 3000, i);
		ASSERT_EQ(0, post_recv_sges(qp, 2 * i, &to, 1));
		ASSERT_EQ(0, post_send_sges(qp, 2 * i + 1, &from, 1, IBV_SEND_SIGNALED));
		/* Both come, in either order. */
		for (n = 0; n < 2; n++) {
			ASSERT_TRUE(poll_wc(a->scq, &wc));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
			ASSERT_EQ(wc.opcode == IBV_WC_SEND ? 2 * i + 1 : 2 * i, wc.wr_id);
		}
		ASSERT_EQ(0, memcmp(a->buf, a->buf + 10000, 3000));
	}
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* Two QPs that share a CQ; the completions of the one that is destroyed are gone. */
TEST_F(rc, completions_of_a_destroyed_qp_are_gone)
{
	struct end *a = self->a;
	struct ibv_sge sge = { (uintptr_t)a->buf, 10, a->mr->lkey };
	long long before = device_counter(0, "cqes");
	struct ibv_qp *qp[2];
	struct ibv_wc wc;
	int i, n;

	for (n = 0; n < 2; n++) {
		qp[n] = make_qp(a->pd, a->scq, a->scq, &self->p.opts, NULL);
		ASSERT_NE(NULL, qp[n]);
		qp_connect(_metadata, qp[n], &self->p.opts, a->lid, qp[n]->qp_num);
	}
	for (i = 0; i < 10; i++)
		for (n = 0; n < 2; n++) {
			ASSERT_EQ(0, post_recv_sges(qp[n], i, &sge, 1));
			ASSERT_EQ(0, post_send_sges(qp[n], i, &sge, 1, IBV_SEND_SIGNALED));
		}
	ASSERT_TRUE(wait_until(device_counter(0, "cqes") == before + 40));
	ASSERT_EQ(0, ibv_destroy_qp(qp[0]));
	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(poll_wc(a->scq, &wc));
		ASSERT_EQ(qp[1]->qp_num, wc.qp_num);
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_EQ(0, ibv_destroy_qp(qp[1]));
}

#define NODES	128

struct ring {
	struct ibv_qp *left[NODES];	/* towards the node before */
	struct ibv_qp *right[NODES];	/* towards the next node */
};

static void ring_make(struct __test_metadata *_metadata, struct ring *ring, struct end *e,
		      const struct pair_opts *opts)
{
	int i;

	for (i = 0; i < NODES; i++) {
		ring->left[i] = make_qp(e->pd, e->rcq, e->rcq, opts, NULL);
		ring->right[i] = make_qp(e->pd, e->rcq, e->rcq, opts, NULL);
		ASSERT_NE(NULL, ring->left[i]);
		ASSERT_NE(NULL, ring->right[i]);
	}
	for (i = 0; i < NODES; i++) {
		struct ibv_qp *from = ring->right[i], *to = ring->left[(i + 1) % NODES];

		qp_connect(_metadata, from, opts, e->lid, to->qp_num);
		qp_connect(_metadata, to, opts, e->lid, from->qp_num);
	}
}

/* A token goes around, through 256 QPs that share one CQ. */
TEST_F(rc, a_ring_of_256_qps)
{
	struct end *a = self->a;
	struct ibv_sge from = { (uintptr_t)a->buf, 8, a->mr->lkey };
	struct ibv_sge to = { (uintptr_t)a->buf + 64, 8, a->mr->lkey };
	uint64_t *token = (uint64_t *)a->buf;
	struct pair_opts opts = self->p.opts;
	struct ring ring;
	int hop, i;

	opts.cap.max_send_wr = 4;
	opts.cap.max_recv_wr = 4;
	ring_make(_metadata, &ring, a, &opts);
	*token = 7;
	for (hop = 0; hop < 5 * NODES; hop++) {
		struct ibv_qp *next = ring.left[(hop + 1) % NODES];
		bool signaled = (hop + hop / NODES) % 4 == 0;

		ASSERT_EQ(0, post_recv_sges(next, hop, &to, 1));
		ASSERT_EQ(0, post_send_sges(ring.right[hop % NODES], 0, &from, 1,
					    IBV_SEND_INLINE | (signaled ? IBV_SEND_SIGNALED : 0)));
		for (i = signaled ? 0 : 1; i < 2; i++) {
			struct ibv_wc wc;

			ASSERT_TRUE(poll_wc(a->rcq, &wc));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
			if (wc.opcode == IBV_WC_RECV)
				ASSERT_EQ(next->qp_num, wc.qp_num);
		}
		ASSERT_EQ(*token, token[8]);
		++*token;
	}
	for (i = 0; i < NODES; i++) {
		EXPECT_EQ(0, ibv_destroy_qp(ring.left[i]));
		EXPECT_EQ(0, ibv_destroy_qp(ring.right[i]));
	}
}

/*
 * The soak: random lists of random pieces, inline or not, signaled or not, posted
 * in lists of random length, until all queues have wrapped many times.
 */
#define WINDOW	32
#define SLOT	2048

struct sent {
	struct slice s[4];
	int n;
};

struct soak {
	uint64_t seed;
	int target;
	int posted;
	int received;
	struct sent sent[WINDOW];
};

static void soak_cut(struct soak *soak, struct sent *m, uint32_t total, uint32_t off, bool spread)
{
	uint32_t len;
	int i;

	m->n = 1 + rnd_below(&soak->seed, 4);
	for (i = 0; i < m->n; i++) {
		len = i == m->n - 1 ? total : rnd_below(&soak->seed, total + 1);
		if (spread)
			off = rnd_below(&soak->seed, WINDOW * SLOT - len);
		m->s[i] = (struct slice){ off, len };
		off += len;
		total -= len;
	}
}

static void soak_post(struct __test_metadata *_metadata, struct soak *soak, struct end *a,
		      struct end *b, int batch)
{
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8][4];
	struct sent to;
	int i;

	for (i = 0; i < batch; i++, soak->posted++) {
		struct sent *m = &soak->sent[soak->posted % WINDOW];
		bool inl = rnd_below(&soak->seed, 2);

		soak_cut(soak, &to, SLOT, soak->posted % WINDOW * SLOT, false);
		ASSERT_EQ(0, post_recv_slices(b, soak->posted, to.s, to.n));
		soak_cut(soak, m, rnd_below(&soak->seed, inl ? 129 : SLOT + 1), 0, true);
		slices_to_sges(a, m->s, m->n, sge[i]);
		wr[i] = (struct ibv_send_wr) {
			.wr_id = soak->posted,
			.next = i < batch - 1 ? &wr[i + 1] : NULL,
			.sg_list = sge[i],
			.num_sge = m->n,
			.opcode = IBV_WR_SEND,
			.send_flags = (inl ? IBV_SEND_INLINE : 0) |
				      (soak->posted % 8 == 7 ? IBV_SEND_SIGNALED : 0),
		};
	}
	ASSERT_EQ(0, ibv_post_send(a->qp, wr, &bad));
}

static void soak_reap(struct __test_metadata *_metadata, struct soak *soak, struct end *a,
		      struct end *b)
{
	struct ibv_wc wc[16];
	uint8_t expected[SLOT];
	int i, n;

	n = ibv_poll_cq(a->scq, 16, wc);
	ASSERT_LE(0, n);
	for (i = 0; i < n; i++)
		ASSERT_EQ(IBV_WC_SUCCESS, wc[i].status);
	n = ibv_poll_cq(b->rcq, 16, wc);
	ASSERT_LE(0, n);
	for (i = 0; i < n; i++, soak->received++) {
		struct sent *m = &soak->sent[soak->received % WINDOW];

		ASSERT_EQ(IBV_WC_SUCCESS, wc[i].status);
		ASSERT_EQ(soak->received, wc[i].wr_id);
		ASSERT_EQ(total_of(m->s, m->n), wc[i].byte_len);
		gather(a, m->s, m->n, expected);
		ASSERT_EQ(0, memcmp(expected, b->buf + soak->received % WINDOW * SLOT,
				    wc[i].byte_len));
	}
	if (!n)
		sched_yield();
}

TEST_F(rc, data_stay_right_while_the_queues_wrap)
{
	struct soak soak = { .seed = seed_of("VHCA_TEST_SEED"), .target = variant->soak };
	uint64_t progress = now_ns();
	int room, batch, last = 0;

	TH_LOG("VHCA_TEST_SEED=%llu", (unsigned long long)soak.seed);
	fill(self->a->buf, WINDOW * SLOT, soak.seed);
	while (soak.received < soak.target) {
		room = WINDOW - (soak.posted - soak.received);
		batch = 1 + rnd_below(&soak.seed, 8);
		if (batch > room)
			batch = room;
		if (batch > soak.target - soak.posted)
			batch = soak.target - soak.posted;
		if (batch)
			soak_post(_metadata, &soak, self->a, self->b, batch);
		soak_reap(_metadata, &soak, self->a, self->b);
		if (soak.received != last)
			progress = now_ns();
		last = soak.received;
		ASSERT_LT(now_ns(), progress + DEADLINE_NS);
	}
}

TEST_HARNESS_MAIN
