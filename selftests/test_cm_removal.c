// SPDX-License-Identifier: GPL-2.0-only
/*
 * A function goes while ids are on it: each of them is told, each can be destroyed, and
 * when the last has been the function comes back and serves as before.
 */
#define _GNU_SOURCE
#include "cm_id.h"
#include "endings.h"

#define FN	0	/* it answers for lo */

FIXTURE(removal)
{
	char bdf[16];
};

FIXTURE_SETUP(removal)
{
	if (on_reference())
		SKIP(return, "a device of vhca goes");
	end_bdf(FN, self->bdf, sizeof(self->bdf));
	ASSERT_NE(0, self->bdf[0]);
}

/* It is back, under its name. */
FIXTURE_TEARDOWN(removal)
{
	if (!self->bdf[0])
		return;
	EXPECT_EQ(0, end_driver("bind", self->bdf));
	EXPECT_EQ(0, access("/sys/class/vhca/vhca0", F_OK));
}

/* DEVICE_REMOVAL comes to both, in any order. */
static void expect_both(struct __test_metadata *_metadata, struct rdma_event_channel *c,
			struct rdma_cm_id *a, struct rdma_cm_id *b)
{
	struct rdma_cm_id *ids[2];
	struct rdma_cm_event *event;
	int i;

	for (i = 0; i < 2; i++) {
		event = cm_event(_metadata, c, RDMA_CM_EVENT_DEVICE_REMOVAL);
		ids[i] = event->id;
		ASSERT_EQ(0, rdma_ack_cm_event(event));
	}
	EXPECT_TRUE((ids[0] == a && ids[1] == b) || (ids[0] == b && ids[1] == a));
}

/* Ids in all states, each told once. */
static void lose_device(struct __test_metadata *_metadata, char *bdf)
{
	struct rdma_event_channel *other = cm_channel(_metadata);
	union cm_addr addr = cm_address(AF_INET, 0);
	struct rdma_cm_id *idle, *bound, *resolved;
	struct cm cm;

	cm_open(_metadata, &cm, RDMA_PS_TCP, addr);
	cm_establish(_metadata, &cm);
	idle = cm_id(_metadata, other, RDMA_PS_TCP);
	bound = cm_id(_metadata, other, RDMA_PS_TCP);
	ASSERT_EQ(0, rdma_bind_addr(bound, &addr.sa));
	resolved = cm_id(_metadata, other, RDMA_PS_TCP);
	ASSERT_EQ(0, rdma_resolve_addr(resolved, NULL, &cm.addr.sa, CM_MS));
	ASSERT_EQ(0, rdma_ack_cm_event(cm_event(_metadata, other,
						RDMA_CM_EVENT_ADDR_RESOLVED)));

	ASSERT_EQ(0, end_driver("unbind", bdf));
	cm_expect(_metadata, &cm.client, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_both(_metadata, cm.server.channel, cm.server.id, cm.listener);
	expect_both(_metadata, other, bound, resolved);
	EXPECT_FALSE(readable(other->fd, CM_SOON_MS));
	EXPECT_FALSE(readable(cm.client.channel->fd, 0));
	EXPECT_FALSE(readable(cm.server.channel->fd, 0));

	EXPECT_EQ(0, rdma_destroy_id(idle));
	EXPECT_EQ(0, rdma_destroy_id(bound));
	EXPECT_EQ(0, rdma_destroy_id(resolved));
	cm_close(_metadata, &cm);
	rdma_destroy_event_channel(other);
}

/* Nobody is on it: it goes at once, and nobody is told. */
static void lose_unused(struct __test_metadata *_metadata, char *bdf)
{
	struct cm_side side = { .channel = cm_channel(_metadata) };

	side.id = cm_id(_metadata, side.channel, RDMA_PS_TCP);
	ASSERT_EQ(0, end_driver("unbind", bdf));
	EXPECT_TRUE(cm_quiet(&side));
	EXPECT_EQ(0, rdma_destroy_id(side.id));
}

/* All is left, and nobody destroys anything: the process ends. */
static void lose_and_end(struct __test_metadata *_metadata, char *bdf)
{
	struct cm cm;

	cm_open(_metadata, &cm, RDMA_PS_TCP, cm_address(AF_INET, 0));
	cm_establish(_metadata, &cm);
	ASSERT_EQ(0, end_driver("unbind", bdf));
	cm_expect(_metadata, &cm.client, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* In a process of its own: the device's name is free when its last file is closed. */
static int in_child(struct __test_metadata *_metadata,
		    void (*lose)(struct __test_metadata *m, char *bdf), char *bdf)
{
	pid_t pid = fork();

	if (!pid) {
		lose(_metadata, bdf);
		_exit(_metadata->exit_code);
	}
	return end_reap(pid, 100000);
}

TEST_F(removal, each_id_is_told)
{
	EXPECT_EQ(0, in_child(_metadata, lose_device, self->bdf));
}

TEST_F(removal, ids_without_a_device_are_not_told)
{
	EXPECT_EQ(0, in_child(_metadata, lose_unused, self->bdf));
}

TEST_F(removal, a_process_that_ends_leaves_nothing)
{
	EXPECT_EQ(0, in_child(_metadata, lose_and_end, self->bdf));
	ASSERT_TRUE(wait_until(access("/sys/class/vhca/vhca0", F_OK)));
}

TEST(works_again)
{
	struct cm cm;

	if (on_reference())
		SKIP(return, "a device of vhca goes");
	cm_open(_metadata, &cm, RDMA_PS_TCP, cm_address(AF_INET, 0));
	cm_establish(_metadata, &cm);
	cm_message(_metadata, cm.client.id, cm.server.id);
	cm_close(_metadata, &cm);
}

TEST_HARNESS_MAIN
