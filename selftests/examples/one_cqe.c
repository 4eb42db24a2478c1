// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * one_cqe.c: takes one completion for each event. There is one event for as many
 * completions as come before the CQ is armed again.
 */
#include "link.h"

static void receive(struct link *l, int want, bool fixed)
{
	int got = 0;

	while (got < want) {
		wait_event(l);
		arm(l->b.rcq);
		if (!fixed)
			got += take(l->b.rcq);
		else
			while (take(l->b.rcq))
				got++;
	}
}

static void plan(struct link *l)
{
	need(vhca_fault_add(l->f, "drop arm") >= 0);
}

static void one_round(struct link *l, bool fixed)
{
	int i;

	arm(l->b.rcq);
	for (i = 0; i < 2; i++) {
		post_recv(l, &l->b, i);
		post_send(l, &l->a, i);
	}
	receive(l, 2, fixed);
	take_all(l->a.scq);
}

int main(int argc, char **argv)
{
	return example_main(argc, argv, &(struct example){ .plan = plan, .round = one_round });
}
