// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams by librdmacm: a service is looked up (SIDR) in place of a connection, and
 * multicast groups are joined and left.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "cm_id.h"

#define GRH_LEN	40

FIXTURE(ud)
{
	struct cm cm;
	struct cm_side *server;
	struct cm_side *client;
};

FIXTURE_VARIANT(ud)
{
	int family;
	const char *group;
};

FIXTURE_VARIANT_ADD(ud, ipv4)
{
	.family = AF_INET,
	.group = "239.1.2.3",
};

FIXTURE_VARIANT_ADD(ud, ipv6)
{
	.family = AF_INET6,
	.group = "ff15::1:2:3",
};

FIXTURE_SETUP(ud)
{
	cm_open(_metadata, &self->cm, RDMA_PS_UDP, cm_address(variant->family, 0));
	self->server = &self->cm.server;
	self->client = &self->cm.client;
}

FIXTURE_TEARDOWN(ud)
{
	cm_close(_metadata, &self->cm);
}

static const char data[256] = "private data of a datagram service, and zeroes";

static bool is_data(const struct rdma_cm_event *event, uint8_t fits)
{
	return event->param.ud.private_data_len == fits &&
	       !memcmp(event->param.ud.private_data, data, fits);
}

/* A datagram by an address handle, with what came before it. */
static void send_to(struct __test_metadata *_metadata, struct rdma_cm_id *from,
		    struct rdma_cm_id *to, struct rdma_ud_param *param)
{
	struct ibv_ah *ah = ibv_create_ah(from->pd, &param->ah_attr);
	char out[64] = "a datagram", in[GRH_LEN + 64] = "";
	struct ibv_mr *out_mr = rdma_reg_msgs(from, out, sizeof(out));
	struct ibv_mr *in_mr = rdma_reg_msgs(to, in, sizeof(in));
	struct ibv_wc wc = {};

	ASSERT_NE(NULL, ah);
	ASSERT_TRUE(out_mr && in_mr);
	ASSERT_EQ(0, rdma_post_recv(to, NULL, in, sizeof(in), in_mr));
	ASSERT_EQ(0, rdma_post_ud_send(from, NULL, out, sizeof(out), out_mr, 0, ah,
				       param->qp_num));
	ASSERT_EQ(1, rdma_get_send_comp(from, &wc));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(1, rdma_get_recv_comp(to, &wc));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ(from->qp->qp_num, wc.src_qp);
	EXPECT_STREQ(out, in + GRH_LEN);
	ASSERT_EQ(0, rdma_dereg_mr(out_mr));
	ASSERT_EQ(0, rdma_dereg_mr(in_mr));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(ud, a_service_answers_with_its_qp)
{
	struct rdma_cm_event *event;
	struct cm *cm = &self->cm;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	EXPECT_EQ(IBV_QPS_RTS, cm_qp_state(cm->client.id));
	EXPECT_EQ(-1, cm_connect(cm->client.id, data, CM_SIDR_REQ_DATA + 1));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, cm_connect(cm->client.id, data, CM_SIDR_REQ_DATA));
	event = cm_request(_metadata, cm);
	EXPECT_TRUE(is_data(event, CM_SIDR_REQ_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, data, CM_SIDR_REP_DATA));
	event = cm_event(_metadata, cm->client.channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(cm->client.id, event->id);
	EXPECT_EQ(0, event->status);
	EXPECT_TRUE(is_data(event, CM_SIDR_REP_DATA));
	EXPECT_EQ(cm->server.id->qp->qp_num, event->param.ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, event->param.ud.qkey);
	send_to(_metadata, cm->client.id, cm->server.id, &event->param.ud);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	/* There is no connection: the server learns no more, nor is there an end. */
	EXPECT_TRUE(cm_quiet(self->server));
	cm_destroy(_metadata, &cm->client.id);
	EXPECT_TRUE(cm_quiet(self->server));
}

TEST_F(ud, a_service_rejects)
{
	struct rdma_cm_event *event;

	cm_ask(_metadata, &self->cm);
	ASSERT_EQ(0, rdma_reject(self->server->id, data, CM_SIDR_REP_DATA));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT_EQ(CM_SIDR_REJECT, event->status);
	EXPECT_TRUE(is_data(event, CM_SIDR_REP_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_TRUE(cm_quiet(self->client));
}

TEST_F(ud, a_request_whose_id_is_destroyed_is_rejected)
{
	cm_ask(_metadata, &self->cm);
	cm_destroy(_metadata, &self->server->id);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_REJECT);
}

TEST_F(ud, nobody_listens)
{
	cm_destroy(_metadata, &self->cm.listener);
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_NO_SERVICE);
}

/* Groups */

static union cm_addr group_address(const FIXTURE_VARIANT(ud) * variant)
{
	union cm_addr a = { .sa.sa_family = variant->family };

	inet_pton(variant->family, variant->group,
		  variant->family == AF_INET ? (void *)&a.in.sin_addr :
					       (void *)&a.in6.sin6_addr);
	return a;
}

/* An id that is bound to the device, with a QP, as who joins must have it. */
static struct rdma_cm_id *member(struct __test_metadata *_metadata, struct cm_side *side,
				 int family)
{
	union cm_addr a = cm_address(family, 0);

	side->id = cm_id(_metadata, side->channel, RDMA_PS_UDP);
	ASSERT_EQ(0, rdma_bind_addr(side->id, &a.sa));
	cm_qp(_metadata, side->id);
	return side->id;
}

/* The kernel's own RDMA CM has no groups of IPv6 on Ethernet. */
static bool no_groups(int family)
{
	return on_reference() && family == AF_INET6;
}

static struct rdma_cm_event *join(struct __test_metadata *_metadata, struct cm_side *side,
				  union cm_addr *group)
{
	struct rdma_cm_event *event;

	ASSERT_EQ(0, rdma_join_multicast(side->id, &group->sa, side)) {
		TH_LOG("errno %d", errno);
	}
	event = cm_event(_metadata, side->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_EQ(side->id, event->id);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ((void *)side, event->param.ud.private_data);
	EXPECT_EQ(0xffffff, event->param.ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, event->param.ud.qkey);
	return event;
}

TEST_F(ud, members_of_a_group_hear_each_other)
{
	union cm_addr group = group_address(variant);
	struct rdma_cm_event *event;
	struct rdma_cm_id *a, *b;

	if (no_groups(variant->family))
		SKIP(return, "not of the reference");
	a = member(_metadata, self->server, variant->family);
	b = member(_metadata, self->client, variant->family);
	ASSERT_EQ(0, rdma_ack_cm_event(join(_metadata, self->server, &group)));
	event = join(_metadata, self->client, &group);
	send_to(_metadata, b, a, &event->param.ud);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	ASSERT_EQ(0, rdma_leave_multicast(a, &group.sa));
	ASSERT_EQ(0, rdma_leave_multicast(b, &group.sa));
	EXPECT_EQ(-1, rdma_leave_multicast(b, &group.sa));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
	EXPECT_TRUE(cm_quiet(self->server));
}

TEST_F(ud, who_left_may_join_again)
{
	union cm_addr group = group_address(variant);
	int i;

	if (no_groups(variant->family))
		SKIP(return, "not of the reference");
	member(_metadata, self->client, variant->family);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rdma_ack_cm_event(join(_metadata, self->client, &group)));
		ASSERT_EQ(0, rdma_leave_multicast(self->client->id, &group.sa));
	}
}

/* An id leaves its groups when it is destroyed. */
TEST_F(ud, an_id_may_be_in_many_groups)
{
	union cm_addr group = group_address(variant);
	uint8_t *last = variant->family == AF_INET ? (uint8_t *)&group.in.sin_addr + 3 :
						     &group.in6.sin6_addr.s6_addr[15];
	int i;

	if (no_groups(variant->family))
		SKIP(return, "not of the reference");
	member(_metadata, self->client, variant->family);
	for (i = 0; i < 8; i++) {
		*last = i + 1;
		ASSERT_EQ(0, rdma_ack_cm_event(join(_metadata, self->client, &group)));
	}
}

static void *leaves(void *arg)
{
	struct rdma_cm_id *id = arg;
	union cm_addr group = { .in.sin_family = AF_INET };

	inet_pton(AF_INET, "239.1.2.3", &group.in.sin_addr);
	return (void *)(intptr_t)rdma_leave_multicast(id, &group.sa);
}

TEST(leaving_waits_for_the_event_to_be_acknowledged)
{
	struct cm cm = { .ps = RDMA_PS_UDP };
	union cm_addr group = { .in.sin_family = AF_INET };
	struct rdma_cm_event *event;
	pthread_t thread;
	void *ret;

	inet_pton(AF_INET, "239.1.2.3", &group.in.sin_addr);
	cm.client.channel = cm_channel(_metadata);
	member(_metadata, &cm.client, AF_INET);
	event = join(_metadata, &cm.client, &group);
	ASSERT_EQ(0, pthread_create(&thread, NULL, leaves, cm.client.id));
	EXPECT_TRUE(cm_quiet(&cm.client));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, &ret));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	cm_destroy(_metadata, &cm.client.id);
	rdma_destroy_event_channel(cm.client.channel);
}

/* Groups are of datagrams, and of ids that have a device. */
TEST_F(ud, who_cannot_join)
{
	union cm_addr group = group_address(variant), a = cm_address(variant->family, 0);
	struct rdma_cm_id *id = cm_id(_metadata, self->client->channel, RDMA_PS_UDP);

	EXPECT_EQ(-1, rdma_join_multicast(id, &group.sa, NULL));
	EXPECT_EQ(EINVAL, errno);
	cm_destroy(_metadata, &id);
	id = cm_id(_metadata, self->client->channel, RDMA_PS_TCP);
	ASSERT_EQ(0, rdma_bind_addr(id, &a.sa));
	EXPECT_EQ(-1, rdma_join_multicast(id, &group.sa, NULL));
	EXPECT_EQ(EINVAL, errno);
	cm_destroy(_metadata, &id);
}

TEST_HARNESS_MAIN
