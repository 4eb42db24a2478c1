/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rc.h: the fixture of the tests of RC: a connected pair, in both ways in which
 * the engine runs, and between two functions.
 */
#ifndef RC_H
#define RC_H

#include "pair.h"

FIXTURE(rc)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_VARIANT(rc)
{
	const char *engine;
	int peer;
	int soak;
};

FIXTURE_VARIANT_ADD(rc, inline)
{
	.engine = "inline",
	.soak = 100000,
};

FIXTURE_VARIANT_ADD(rc, threaded)
{
	.engine = "threaded",
	.soak = 100000,
};

FIXTURE_VARIANT_ADD(rc, other_function)
{
	.engine = "inline",
	.peer = 1,
	.soak = 20000,
};

FIXTURE_SETUP(rc)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.function[1] = variant->peer;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(rc)
{
	pair_close(_metadata, &self->p);
}

static inline void reopen(struct __test_metadata *_metadata, struct pair *p, struct pair_opts opts)
{
	pair_close(_metadata, p);
	pair_open(_metadata, p, &opts);
}

/* From whatever state, with whatever is in the CQs, to a pair that works. */
static inline void recover(struct __test_metadata *_metadata, struct pair *p)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, qp_to(p->end[i].qp, IBV_QPS_RESET));
	for (i = 0; i < 2; i++) {
		while (ibv_poll_cq(p->end[i].scq, 1, &wc) > 0)
			;
		while (ibv_poll_cq(p->end[i].rcq, 1, &wc) > 0)
			;
	}
	pair_connect(_metadata, p);
	exchange(_metadata, &p->end[0], &p->end[1], 3000, 77);
	exchange(_metadata, &p->end[1], &p->end[0], 3000, 78);
}

static inline bool goes_to_error(struct ibv_qp *qp)
{
	return wait_until(qp_state(qp) == IBV_QPS_ERR);
}

#endif
