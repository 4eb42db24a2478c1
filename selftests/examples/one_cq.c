// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * one_cq.c: arms the CQs of sends and of receives, polls only the one of receives, and
 * waits on the channel of both. What was in the other before it was armed raises no
 * event.
 */
#include "link.h"

/* One message out and one in, by side a. */
static void exchange(struct link *l, bool fixed)
{
	int sent = 0, received = 0;

	post_recv(l, &l->a, 1);
	post_recv(l, &l->b, 0);
	post_send(l, &l->a, 0);
	post_send(l, &l->b, 1);
	while (1) {
		arm(l->a.scq);
		arm(l->a.rcq);
		received += take(l->a.rcq);
		if (fixed)
			sent += take(l->a.scq);
		if (sent && received)
			return;
		if (wait_event(l) == l->a.scq)
			sent += take(l->a.scq);
	}
}

/*
 * In every other round both messages go before the CQs are armed, in the rest when one
 * of the armed CQs was found empty.
 */
static bool before;

static int go_before_arm(struct ibv_cq *cq, int solicited_only)
{
	if (before)
		need(!vhca_release(link_.f, "wqe"));
	return real_req_notify_cq(cq, solicited_only);
}

static int go_behind_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int n = real_poll_cq(cq, num, wc);

	if (!n && !before)
		need(!vhca_release(link_.f, "wqe"));
	return n;
}

static void plan(struct link *l)
{
	need(vhca_fault_add(l->f, "drop arm") >= 0);
	watch_arms(l, go_before_arm);
	watch_polls(l, go_behind_poll);
}

static void one_round(struct link *l, bool fixed)
{
	before = !before;
	need(!vhca_hold(l->f, "wqe"));
	exchange(l, fixed);
	take_all(l->b.scq);
	take_all(l->b.rcq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
