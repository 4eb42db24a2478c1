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

#endif
