// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * late_arm.c: polls until the CQ is empty, arms it, and waits. What came between the
 * last poll and the arm raises no event.
 */
#include "link.h"

static void receive_wrong(struct link *l)
{
	while (!take(l->b.rcq)) {
		arm(l->b.rcq);
		wait_event(l);
	}
}

static void receive_fixed(struct link *l)
{
	while (!take(l->b.rcq)) {
		arm(l->b.rcq);
		if (take(l->b.rcq))	/* once more, behind the arm */
			return;
		wait_event(l);
	}
}

/*
 * In every other round the message comes between poll and arm, in the rest when the
 * armed CQ was found empty.
 */
static bool before, behind;

static int come_before_arm(struct ibv_cq *cq, int solicited_only)
{
	if (before)
		step(&link_, "cqe cq=%u", vhca_cqn(cq));
	behind = !before;
	return real_req_notify_cq(cq, solicited_only);
}

static int come_behind_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int n = real_poll_cq(cq, num, wc);

	if (!n && behind)
		step(&link_, "cqe cq=%u", vhca_cqn(link_.b.rcq));
	return n;
}

static void plan(struct link *l)
{
	need(vhca_fault_add(l->f, "drop arm") >= 0);
	need(!vhca_hold(l->f, "cqe cq=%u", vhca_cqn(l->b.rcq)));
	watch_arms(l, come_before_arm);
	watch_polls(l, come_behind_poll);
}

static void one_round(struct link *l, bool fixed)
{
	before = !before;
	behind = false;
	post_recv(l, &l->b, 0);
	post_send(l, &l->a, 0);
	if (fixed)
		receive_fixed(l);
	else
		receive_wrong(l);
	take_all(l->a.scq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
