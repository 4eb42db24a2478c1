// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * unsignaled.c: waits for the completion of a WR that was posted without
 * IBV_SEND_SIGNALED, to a QP without sq_sig_all. There is none, unless it fails.
 */
#include "link.h"

static void send_three(struct link *l, bool fixed)
{
	int i;

	for (i = 0; i < 3; i++)
		post_send_mr(l, &l->a, i, l->mr, fixed && i == 2 ? IBV_SEND_SIGNALED : 0);
	need(wait_completion(l, l->a.scq).status == IBV_WC_SUCCESS);
}

/* Each poll that finds nothing lets one WR go. */
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

	for (i = 0; i < 3; i++)
		post_recv(l, &l->b, i);
	send_three(l, fixed);
	take_all(l->b.rcq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
