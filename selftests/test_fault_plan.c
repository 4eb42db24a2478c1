// SPDX-License-Identifier: GPL-2.0-only
/*
 * The language of the fault plan: every form of a rule comes back as it was written,
 * each kind of mistake is refused where it stands and changes nothing; which of a rule's
 * matches count.
 */
#include "rc.h"
#include "faults.h"

FIXTURE(plan)
{
	int fn;
};

FIXTURE_SETUP(plan)
{
	ASSERT_EQ(0, order(0, "hold", "release all"));
	ASSERT_EQ(0, order(0, "faults", "clear"));
}

FIXTURE_TEARDOWN(plan)
{
	EXPECT_EQ(0, order(0, "faults", "clear"));
}

/* What is written, and how it reads; NULL: the same. */
static const char * const forms[][2] = {
	{ "complete status=SUCCESS" },
	{ "complete status=TM_ERR vendor_err=0x17", "complete status=TM_ERR vendor_err=23" },
	{ "side=send complete status=FATAL_ERR", "complete status=FATAL_ERR" },
	{ "complete side=recv status=TM_RNDV_INCOMPLETE vendor_err=255" },
	{ "side=recv status=TM_ERR complete", "complete side=recv status=TM_ERR" },
	{ "delay wqe" },
	{ "delay wqe time=0" },
	{ "delay cqe time=1500" },
	{ "delay eqe time=3600000000" },
	{ "delay msix time=0x10", "delay msix time=16" },
	{ "slow rate=1000000" },
	{ "slow latency=20" },
	{ "fatal" },
	{ "fatal side=recv" },
	{ "break" },
	{ "flap time=100000" },
	{ "lose request" },
	{ "lose response" },
	{ "corrupt" },
	{ "corrupt offset=0 xor=1" },
	{ "corrupt offset=2147483647 xor=0xff", "corrupt offset=2147483647 xor=255" },
	{ "rnr" },
	{ "side=recv stall", "stall" },
	{ "overrun" },
	{ "drop arm" },
	{ "cq=5 nth=2 drop arm" },
	{ "drop eqe" },
	{ "repeat eqe" },
	{ "merge eqe" },
	{ "drop msix" },
	{ "repeat msix" },
	{ "merge msix" },
	{ "qp=17 opcode=SEND nth=3 lose request" },
	{ "nth=0x3 opcode=SEND qp=0x11 lose request", "qp=17 opcode=SEND nth=3 lose request" },
	{ "lose request qp=17 every=2 times=010", "qp=17 every=2 times=10 lose request" },
	{ "qp=16777215 cq=4294967295 delay cqe" },
	{ "cq=5 eq=63 drop eqe" },
	{ "eq=0 drop msix" },
	{ "prob=1 rnr" },
	{ "prob=1.000000 rnr", "prob=1 rnr" },
	{ "prob=0.000001 seed=0 rnr" },
	{ "prob=0.5 seed=18446744073709551615 times=7 rnr" },
	{ "prob=.5 rnr", "" },
	{ "opcode=SEND_IMM rnr" },
	{ "opcode=SEND_INV rnr" },
	{ "opcode=RDMA_WRITE stall" },
	{ "opcode=RDMA_WRITE_IMM rnr" },
	{ "opcode=RDMA_READ stall" },
	{ "opcode=ATOMIC_CS stall" },
	{ "opcode=ATOMIC_FA stall" },
	{ "opcode=BIND_MW delay wqe" },
	{ "opcode=LOCAL_INV delay wqe" },
	{ "  \t drop   msix  # why not", "drop msix" },
};

TEST_F(plan, every_form_of_a_rule_comes_back_as_it_can_be_written_again)
{
	char line[256], again[256];
	unsigned int i;
	int id;

	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		const char *want = forms[i][1] ? forms[i][1] : forms[i][0];

		if (!*want) {
			EXPECT_EQ(-EINVAL, order(0, "faults", forms[i][0]));
			continue;
		}
		ASSERT_EQ(0, order(0, "faults", forms[i][0])) {
			TH_LOG("%s: %s", forms[i][0], fault_error(0));
		}
		id = last_rule(0, line, sizeof(line));
		ASSERT_LT(0, id);
		EXPECT_STREQ(want, line);
		ASSERT_EQ(0, order(0, "faults", line));
		EXPECT_EQ(id + 1, last_rule(0, again, sizeof(again)));
		EXPECT_STREQ(line, again);
		ASSERT_EQ(0, order(0, "faults", "clear"));
		EXPECT_EQ(0, rules(0));
	}
}

static const struct {
	const char *text;
	const char *where;
} mistakes[] = {
	{ "explode", "1:1:" },
	{ "  explode", "1:3:" },
	{ "qp=5", "1:5:" },
	{ "lose", "1:5:" },
	{ "lose patience", "1:6:" },
	{ "delay srq", "1:7:" },
	{ "drop eqe now", "1:10:" },
	{ "drop eqe now please", "1:14:" },
	{ "a b c d", "1:7:" },
	{ "colour=red drop eqe", "1:1:" },
	{ "qp=x stall", "1:1:" },
	{ "qp= stall", "1:1:" },
	{ "qp=0 stall", "1:1:" },
	{ "qp=-1 stall", "1:1:" },
	{ "qp=16777216 stall", "1:1:" },
	{ "qp=5 qp=5 stall", "1:6:" },
	{ "nth=0 stall", "1:1:" },
	{ "nth=1 every=2 stall", "1:7:" },
	{ "prob=0.5 nth=2 stall", "1:10:" },
	{ "prob=0 stall", "1:1:" },
	{ "prob=0.0000001 stall", "1:1:" },
	{ "prob=1.000001 stall", "1:1:" },
	{ "prob=2 stall", "1:1:" },
	{ "prob=0.5.5 stall", "1:1:" },
	{ "seed=3 stall", "1:1:" },
	{ "times=0 stall", "1:1:" },
	{ "times=99999999999999999999 stall", "1:1:" },
	{ "side=both fatal", "1:1:" },
	{ "side=send stall", "1:1:" },
	{ "lose request side=recv", "1:14:" },
	{ "side=send drop eqe", "1:1:" },
	{ "opcode=READ stall", "1:1:" },
	{ "opcode=SEND drop eqe", "1:1:" },
	{ "qp=3 drop eqe", "1:1:" },
	{ "cq=3 drop msix", "1:1:" },
	{ "eq=64 drop msix", "1:1:" },
	{ "eq=1 delay cqe", "1:1:" },
	{ "eq=1 drop arm", "1:1:" },
	{ "complete", "1:9:" },
	{ "complete status=OK", "1:10:" },
	{ "complete status=GENERAL_ERR vendor_err=256", "1:29:" },
	{ "stall status=SUCCESS", "1:7:" },
	{ "delay wqe time=-5", "1:11:" },
	{ "delay wqe time=3600000001", "1:11:" },
	{ "flap", "1:5:" },
	{ "slow", "1:5:" },
	{ "slow rate=1 latency=2", "1:13:" },
	{ "slow rate=0", "1:6:" },
	{ "corrupt xor=0", "1:9:" },
	{ "corrupt xor=256", "1:9:" },
	{ "corrupt offset=2147483648", "1:9:" },
	{ "type=CQ_ERR stall", "1:1:" },
	{ "stall\nrnr\n\nexplode", "4:1:" },
	{ "stall\n# fine\nclear 0", "3:7:" },
	{ "clear all of it", "1:14:" },
	{ "clear all it", "1:11:" },
	{ "clear x", "1:7:" },
	{ "clear qp=4", "1:7:" },
};

TEST_F(plan, a_mistake_is_refused_where_it_stands_and_changes_nothing)
{
	char before[256], after[256];
	unsigned int i;
	int id;

	ASSERT_EQ(0, order(0, "faults", "qp=77 every=3 stall"));
	id = last_rule(0, before, sizeof(before));
	for (i = 0; i < ARRAY_SIZE(mistakes); i++) {
		const char *error;

		EXPECT_EQ(-EINVAL, order(0, "faults", mistakes[i].text)) {
			TH_LOG("not refused: %s", mistakes[i].text);
		}
		error = fault_error(0);
		EXPECT_EQ(0, strncmp(mistakes[i].where, error, strlen(mistakes[i].where))) {
			TH_LOG("%s: %s, not %s", mistakes[i].text, error, mistakes[i].where);
		}
		ASSERT_EQ(1, rules(0));
		EXPECT_EQ(id, last_rule(0, after, sizeof(after)));
		EXPECT_STREQ(before, after);
	}
}

TEST_F(plan, a_write_of_several_lines_is_all_or_nothing)
{
	char line[256];
	int id;

	ASSERT_EQ(0, order(0, "faults", "# two\nstall\n\nqp=9 rnr # the second\n"));
	EXPECT_EQ(2, rules(0));
	id = last_rule(0, line, sizeof(line));
	EXPECT_EQ(-ENOENT, order(0, "faults", "stall\nclear\nclear 123456"));
	EXPECT_EQ(0, strncmp("3:7:", fault_error(0), 4));
	EXPECT_EQ(2, rules(0));
	ASSERT_EQ(0, order(0, "faults", "clear\nlose request"));
	EXPECT_EQ(1, rules(0));
	EXPECT_EQ(id + 1, last_rule(0, line, sizeof(line)));
	EXPECT_STREQ("lose request", line);
}

TEST_F(plan, one_rule_can_go_and_the_others_keep_their_order)
{
	char order_id[32], line[256];
	int id;

	ASSERT_EQ(0, order(0, "faults", "stall\nrnr\nlose request"));
	id = last_rule(0, line, sizeof(line));
	snprintf(order_id, sizeof(order_id), "clear %d", id - 1);
	ASSERT_EQ(0, order(0, "faults", order_id));
	EXPECT_EQ(-ENOENT, order(0, "faults", order_id));
	EXPECT_EQ(2, rules(0));
	EXPECT_EQ(0, rule_hits(0, id));
	EXPECT_EQ(-1, rule_hits(0, id - 1));
	EXPECT_EQ(0, rule_hits(0, id - 2));
}

TEST_F(plan, there_is_room_for_256_rules_and_no_more)
{
	char text[256 * 8 + 16] = "";
	int i;

	for (i = 0; i < 256; i++)
		strcat(text, "stall\n");
	ASSERT_EQ(0, order(0, "faults", text));
	EXPECT_EQ(256, rules(0));
	EXPECT_EQ(-ENOSPC, order(0, "faults", "stall"));
	EXPECT_EQ(256, rules(0));
	/* What goes in the same write makes room. */
	EXPECT_EQ(0, order(0, "faults", "clear\nstall"));
	EXPECT_EQ(1, rules(0));
}

/* One message after the other; which of them the plan completed, as bits. */
static uint64_t failed(struct __test_metadata *_metadata, struct pair *p, const char *rule,
		       int n, int *id)
{
	uint64_t bits = 0;
	char line[256];
	struct ibv_wc wc;
	int i;

	ASSERT_EQ(0, order(0, "faults", rule)) {
		TH_LOG("%s: %s", rule, fault_error(0));
	}
	*id = last_rule(0, line, sizeof(line));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, post_recv(&p->end[1], i, 0, 64));
		ASSERT_EQ(0, post_send(&p->end[0], i, 0, 64, IBV_SEND_SIGNALED));
		ASSERT_TRUE(poll_wc(p->end[0].scq, &wc));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		bits |= (uint64_t)(wc.vendor_err == 9) << i;
		/* A WQE that only completes leaves the receive where it is. */
		if (wc.vendor_err != 9)
			expect_wc(_metadata, p->end[1].rcq, i, IBV_WC_SUCCESS);
		else
			pair_reconnect(_metadata, p);
	}
	return bits;
}

FIXTURE(count)
{
	struct pair p;
	char rule[160];
	int id;
};

FIXTURE_SETUP(count)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, order(0, "faults", "clear"));
	pair_open(_metadata, &self->p, &opts);
}

FIXTURE_TEARDOWN(count)
{
	EXPECT_EQ(0, order(0, "faults", "clear"));
	pair_close(_metadata, &self->p);
}

#define COUNTED(match)	(snprintf(self->rule, sizeof(self->rule),		\
	"qp=%u %s complete status=SUCCESS vendor_err=9",			\
	self->p.end[0].qp->qp_num, match),					\
	failed(_metadata, &self->p, self->rule, 24, &self->id))

TEST_F(count, nth_is_one_match_and_then_the_rule_is_spent)
{
	EXPECT_EQ(1u << 4, COUNTED("nth=5"));
	EXPECT_EQ(1, rule_hits(0, self->id));
	EXPECT_TRUE(rule_spent(0, self->id));
}

TEST_F(count, every_is_each_nth_match)
{
	EXPECT_EQ(0x888888u, COUNTED("every=4"));
	EXPECT_EQ(6, rule_hits(0, self->id));
	EXPECT_FALSE(rule_spent(0, self->id));
}

TEST_F(count, times_ends_a_rule)
{
	EXPECT_EQ(0x2au, COUNTED("every=2 times=3"));
	EXPECT_EQ(3, rule_hits(0, self->id));
	EXPECT_TRUE(rule_spent(0, self->id));
}

TEST_F(count, a_rule_counts_only_what_matches)
{
	EXPECT_EQ(0u, COUNTED("opcode=RDMA_READ"));
	EXPECT_EQ(0, rule_hits(0, self->id));
}

TEST_F(count, prob_is_the_same_for_the_same_seed)
{
	uint64_t first = COUNTED("prob=0.5 seed=42");
	long hits = rule_hits(0, self->id);

	EXPECT_NE(0u, first);
	EXPECT_NE(0xffffffu, first);
	EXPECT_EQ(__builtin_popcountll(first), hits);
	ASSERT_EQ(0, order(0, "faults", "clear"));
	EXPECT_EQ(first, COUNTED("prob=0.5 seed=42"));
	ASSERT_EQ(0, order(0, "faults", "clear"));
	EXPECT_NE(first, COUNTED("prob=0.5 seed=43"));
	ASSERT_EQ(0, order(0, "faults", "clear"));
	EXPECT_EQ(0xffffffu, COUNTED("prob=1"));
}

TEST_F(count, the_first_rule_that_acts_wins)
{
	char both[256];
	char line[256];
	struct ibv_wc wc;
	uint32_t qpn = self->p.end[0].qp->qp_num;

	snprintf(both, sizeof(both), "qp=%u every=2 complete status=SUCCESS vendor_err=1\n"
		 "qp=%u complete status=SUCCESS vendor_err=2", qpn, qpn);
	ASSERT_EQ(0, order(0, "faults", both));
	self->id = last_rule(0, line, sizeof(line));
	ASSERT_EQ(0, post_send(&self->p.end[0], 1, 0, 8, IBV_SEND_SIGNALED));
	ASSERT_TRUE(poll_wc(self->p.end[0].scq, &wc));
	EXPECT_EQ(2, wc.vendor_err);
	ASSERT_EQ(0, post_send(&self->p.end[0], 2, 0, 8, IBV_SEND_SIGNALED));
	ASSERT_TRUE(poll_wc(self->p.end[0].scq, &wc));
	EXPECT_EQ(1, wc.vendor_err);
	EXPECT_EQ(1, rule_hits(0, self->id - 1));
	EXPECT_EQ(1, rule_hits(0, self->id));
}

TEST_HARNESS_MAIN
