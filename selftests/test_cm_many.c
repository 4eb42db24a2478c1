// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many connections, at once and one after another: none is lost, and when they are gone
 * nothing is left of them, neither objects nor memory of the kernel.
 *
 * test_cm_many --connections N makes so many one after another in place of 2000.
 */
#define _GNU_SOURCE
#include "cm.h"
#include "cm_pump.h"
#include "library.h"
#include "slabs.h"

#include "harness.h"

#define AT_ONCE		1000
#define WARM_UP		100
#define OBJECTS		"/sys/kernel/debug/vhca/vhca0/objects"
#define CM_OBJECTS	"/sys/kernel/debug/vhca_cm/objects"

static int connections = 2000;

FIXTURE(many)
{
	struct pump p;
};

FIXTURE_SETUP(many)
{
	union cm_addr addr = cm_address(AF_INET, 0);

	ASSERT_EQ(0, pump_open(&self->p, &addr.sa, AT_ONCE));
}

/* The library keeps its context, and the context its pages, until the process ends. */
static const char * const gone[] = { "qps", "cqs", "mrs", "pds" };
static const char * const cm_gone[] = { "ids", "connections", "events", "messages" };

FIXTURE_TEARDOWN(many)
{
	unsigned int i;

	pump_close(&self->p);
	if (on_reference())
		return;
	for (i = 0; i < 4; i++) {
		EXPECT_TRUE(RAW_WAIT(raw_counter(OBJECTS, gone[i]) == 0)) {
			TH_LOG("%s: %lld", gone[i], raw_counter(OBJECTS, gone[i]));
		}
		EXPECT_TRUE(RAW_WAIT(raw_counter(CM_OBJECTS, cm_gone[i]) == 0)) {
			TH_LOG("%s: %lld", cm_gone[i], raw_counter(CM_OBJECTS, cm_gone[i]));
		}
	}
}

TEST_F(many, at_once)
{
	ASSERT_TRUE(pump_up(&self->p, AT_ONCE)) {
		TH_LOG("%d of %d", self->p.established / 2, AT_ONCE);
	}
	EXPECT_EQ(2 * AT_ONCE, self->p.established);
	EXPECT_FALSE(readable(self->p.server->fd, 0));
	EXPECT_FALSE(readable(self->p.client->fd, 0));
	ASSERT_TRUE(pump_down(&self->p)) {
		TH_LOG("%d of %d", self->p.disconnected / 2, AT_ONCE);
	}
	printf("# figure: %d connections open at once\n", AT_ONCE);
}

/* As many as were asked for, however long that takes. */
TEST_F_TIMEOUT(many, one_after_another, 3600)
{
	struct memory before, now;
	const char *what = NULL;
	uint64_t begin;
	int i;

	for (i = 0; i < WARM_UP; i++)
		ASSERT_TRUE(pump_up(&self->p, 1) && pump_down(&self->p));
	memory_read(&before);
	begin = now_ns();
	for (i = 0; i < connections; i++) {
		ASSERT_TRUE(pump_up(&self->p, 1) && pump_down(&self->p)) {
			TH_LOG("connection %d", i);
		}
	}
	printf("# %.0f us a connection\n", (now_ns() - begin) / 1e3 / connections);
	/* What is freed late is not lost. */
	RAW_WAIT((memory_read(&now), !(what = more(&before, &now, connections))));
	EXPECT_EQ(NULL, what) {
		TH_LOG("%s", what);
	}
	printf("# figure: %d connections made and closed\n", connections);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--connections")) {
		connections = atoi(argv[2]);
		argc = 1;
	}
	return test_harness_run(argc, argv);
}
