/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * connect.h: connections by RDMA CM, of one thread to itself: all that both sides of each
 * cost, from its id to the end of it, with its QPs.
 */
#ifndef CONNECT_H
#define CONNECT_H

#include "../cm_pump.h"
#include "link.h"

#define CONNECT_WARM_UP	10

static void connections(struct pump *p, int n)
{
	if (!pump_up(p, n) || !pump_down(p))
		die("connections");
}

/* --count connections one after another, and as many at once. */
static void test_connect(const struct options *o)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct pump p;
	uint64_t begin;
	int i;

	if (inet_pton(AF_INET, o->address, &addr.sin_addr) != 1)
		die("address %s", o->address);
	if (pump_open(&p, (struct sockaddr *)&addr, o->count))
		die("listen");
	for (i = 0; i < CONNECT_WARM_UP; i++)
		connections(&p, 1);
	begin = now_ns();
	for (i = 0; i < o->count; i++)
		connections(&p, 1);
	report("connection_us", (double)(now_ns() - begin) / o->count / 1000);
	begin = now_ns();
	connections(&p, o->count);
	report("at_once_us", (double)(now_ns() - begin) / o->count / 1000);
	pump_close(&p);
}

#endif
