// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * no_poll.c: takes an event for a message, and arms again without having polled. A
 * completion that is still there may raise an event again, or may not.
 */
#include "link.h"

static void receive_wrong(struct link *l, int want)
{
	int got;

	for (got = 0; got < want; got++) {
		arm(l->b.rcq);
		wait_event(l);
	}
}

static void receive_fixed(struct link *l, int want)
{
	int got = 0;

	while (1) {
		arm(l->b.rcq);
		while (take(l->b.rcq))
			got++;
		if (got == want)
			return;
		wait_event(l);
	}
}

/* The next message goes when the application has found that there is none. */
static int go_at_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int n = real_poll_cq(cq, num, wc);

	if (!n)
		step(&link_, "wqe qp=%u", link_.a.qp->qp_num);
	return n;
}

static void plan(struct link *l)
{
	need(!vhca_hold(l->f, "wqe qp=%u", l->a.qp->qp_num));
	watch_polls(l, go_at_poll);
}

static void one_round(struct link *l, bool fixed)
{
	int i;

	for (i = 0; i < 2; i++) {
		post_recv(l, &l->b, i);
		post_send(l, &l->a, i);
	}
	step(l, "wqe qp=%u", l->a.qp->qp_num);
	if (fixed)
		receive_fixed(l, 2);
	else
		receive_wrong(l, 2);
	for (i = 0; i < 2; i++)
		if (l->in[i] != l->out[i])
			caught("two events, but message %d is not there", i);
	take_all(l->a.scq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
