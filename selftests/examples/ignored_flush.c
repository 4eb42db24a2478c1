// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ignored_flush.c: takes a flushed WR for one that is done, and sends only that again
 * which failed by itself. WRs behind an error complete with WR_FLUSH_ERR: they were not
 * executed.
 */
#include "link.h"

#define NR	8

/* Is the message to be sent again? */
static bool failed_wrong(const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR;
}

static bool failed_fixed(const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_SUCCESS;
}

/* Send those of @todo; what remains to be sent. */
static unsigned int send_some(struct link *l, unsigned int todo, bool fixed)
{
	unsigned int again = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < NR; i++)
		if (todo & 1u << i)
			post_recv(l, &l->b, i);
	for (i = 0; i < NR; i++)
		if (todo & 1u << i)
			post_send(l, &l->a, i);
	for (i = 0; i < NR; i++) {
		if (!(todo & 1u << i))
			continue;
		wc = wait_completion(l, l->a.scq);
		if (fixed ? failed_fixed(&wc) : failed_wrong(&wc))
			again |= 1u << wc.wr_id;
	}
	return again;
}

/* The third message of each round. */
static void plan(struct link *l)
{
	need(!vhca_fault_clear(l->f));
	need(vhca_fault_add(l->f, "qp=%u nth=3 complete status=RETRY_EXC_ERR",
			    l->a.qp->qp_num) >= 0);
}

static void one_round(struct link *l, bool fixed)
{
	unsigned int todo = (1 << NR) - 1;
	int i;

	plan(l);
	while ((todo = send_some(l, todo, fixed)))
		link_connect(l);
	take_all(l->b.rcq);
	for (i = 0; i < NR; i++)
		if (l->in[i] != l->out[i])
			caught("all messages are sent, but number %d has not arrived", i);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
