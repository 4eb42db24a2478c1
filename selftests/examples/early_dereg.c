// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * early_dereg.c: deregisters memory before the WR that uses it has completed. The
 * device reads it when it pleases, and again when it sends once more.
 */
#include "link.h"

static struct ibv_wc send_wrong(struct link *l, struct ibv_mr *mr)
{
	post_send_mr(l, &l->a, 0, mr, IBV_SEND_SIGNALED);
	need(!ibv_dereg_mr(mr));
	return wait_completion(l, l->a.scq);
}

static struct ibv_wc send_fixed(struct link *l, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	post_send_mr(l, &l->a, 0, mr, IBV_SEND_SIGNALED);
	wc = wait_completion(l, l->a.scq);
	need(!ibv_dereg_mr(mr));
	return wc;
}

/* The WR is executed when the application looks whether it has been. */
static int go_at_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	step(&link_, "wqe qp=%u", link_.a.qp->qp_num);
	return real_poll_cq(cq, num, wc);
}

static void plan(struct link *l)
{
	need(!vhca_hold(l->f, "wqe qp=%u", l->a.qp->qp_num));
	watch_polls(l, go_at_poll);
}

static void one_round(struct link *l, bool fixed)
{
	struct ibv_mr *mr = ibv_reg_mr(l->pd, l->out, sizeof(l->out), 0);
	struct ibv_wc wc;

	need(mr);
	post_recv(l, &l->b, 0);
	wc = fixed ? send_fixed(l, mr) : send_wrong(l, mr);
	if (wc.status != IBV_WC_SUCCESS)
		caught("the send completed with %s", ibv_wc_status_str(wc.status));
	take_all(l->b.rcq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
