// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of connections by librdmacm: each event, its status and its private data, in
 * the order in which they must come; how connections are refused, end, and break.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "cm_id.h"

FIXTURE(cm)
{
	struct cm cm;
	struct cm_side *server;
	struct cm_side *client;
};

FIXTURE_VARIANT(cm)
{
	int family;
};

FIXTURE_VARIANT_ADD(cm, ipv4)
{
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(cm, ipv6)
{
	.family = AF_INET6,
};

FIXTURE_SETUP(cm)
{
	cm_open(_metadata, &self->cm, RDMA_PS_TCP, cm_address(variant->family, 0));
	self->server = &self->cm.server;
	self->client = &self->cm.client;
}

FIXTURE_TEARDOWN(cm)
{
	cm_close(_metadata, &self->cm);
}

/* The longest that anybody may give, all of it different. */
static const void *data(void)
{
	static uint8_t bytes[256];
	int i;

	for (i = 0; i < 256; i++)
		bytes[i] = 255 - i;
	return bytes;
}

/* Private data is padded with zeroes to what fits. */
static bool is_data(const struct rdma_cm_event *event, uint8_t given, uint8_t fits)
{
	const uint8_t *p = event->param.conn.private_data;
	int i;

	if (event->param.conn.private_data_len != fits || memcmp(p, data(), given))
		return false;
	for (i = given; i < fits; i++)
		if (p[i])
			return false;
	return true;
}

/* Both have the addresses of both: where one is, the other is connected to. */
static void expect_addresses(struct __test_metadata *_metadata, const struct cm *cm)
{
	struct rdma_addr *c = &cm->client.id->route.addr, *s = &cm->server.id->route.addr;

	EXPECT_EQ(cm->addr.sa.sa_family, s->src_addr.sa_family);
	EXPECT_EQ(cm->addr.sa.sa_family, c->dst_addr.sa_family);
	EXPECT_EQ(cm->addr.in.sin_port, rdma_get_dst_port(cm->client.id));
	EXPECT_EQ(cm->addr.in.sin_port, rdma_get_src_port(cm->server.id));
	EXPECT_NE(0, rdma_get_src_port(cm->client.id));
	EXPECT_EQ(rdma_get_src_port(cm->client.id), rdma_get_dst_port(cm->server.id));
	if (cm->addr.sa.sa_family == AF_INET) {
		EXPECT_EQ(cm->addr.in.sin_addr.s_addr, c->src_sin.sin_addr.s_addr);
		EXPECT_EQ(cm->addr.in.sin_addr.s_addr, s->src_sin.sin_addr.s_addr);
		EXPECT_EQ(cm->addr.in.sin_addr.s_addr, s->dst_sin.sin_addr.s_addr);
	} else {
		EXPECT_EQ(0, memcmp(&cm->addr.in6.sin6_addr, &c->src_sin6.sin6_addr, 16));
		EXPECT_EQ(0, memcmp(&cm->addr.in6.sin6_addr, &s->src_sin6.sin6_addr, 16));
		EXPECT_EQ(0, memcmp(&cm->addr.in6.sin6_addr, &s->dst_sin6.sin6_addr, 16));
	}
	EXPECT_EQ(1, cm->client.id->port_num);
	EXPECT_EQ(1, cm->server.id->port_num);
	EXPECT_EQ(1, cm->client.id->route.num_paths);
}

TEST_F(cm, all_events_of_a_life_come_in_order)
{
	struct cm *cm = &self->cm;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	EXPECT_EQ(IBV_QPS_INIT, cm_qp_state(cm->client.id));
	ASSERT_EQ(0, cm_connect(cm->client.id, NULL, 0));
	ASSERT_EQ(0, rdma_ack_cm_event(cm_request(_metadata, cm)));
	expect_addresses(_metadata, cm);
	EXPECT_TRUE(cm_quiet(self->client));
	cm_agree(_metadata, cm);
	EXPECT_EQ(IBV_QPS_RTS, cm_qp_state(cm->client.id));
	EXPECT_EQ(IBV_QPS_RTS, cm_qp_state(cm->server.id));
	cm_message(_metadata, cm->client.id, cm->server.id);
	cm_message(_metadata, cm->server.id, cm->client.id);
	cm_part(_metadata, self->client, self->server);
	EXPECT_EQ(IBV_QPS_ERR, cm_qp_state(cm->client.id));
	EXPECT_EQ(IBV_QPS_ERR, cm_qp_state(cm->server.id));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(self->client));
	EXPECT_TRUE(cm_quiet(self->server));
}

TEST_F(cm, the_server_can_be_the_one_to_part)
{
	cm_establish(_metadata, &self->cm);
	cm_part(_metadata, self->server, self->client);
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

/* What one can do as the responder, the other can ask for. */
TEST_F(cm, parameters_cross_over)
{
	struct rdma_conn_param asked = {
		.responder_resources = 4, .initiator_depth = 2, .flow_control = 1,
		.retry_count = 5, .rnr_retry_count = 6,
	};
	struct rdma_conn_param granted = {
		.responder_resources = 2, .initiator_depth = 4, .flow_control = 1,
		.rnr_retry_count = 4,
	};
	struct rdma_conn_param *c;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};
	struct rdma_cm_event *event;
	struct cm *cm = &self->cm;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	ASSERT_EQ(0, rdma_connect(cm->client.id, &asked));
	event = cm_request(_metadata, cm);
	c = &event->param.conn;
	EXPECT_EQ(2, c->responder_resources);
	EXPECT_EQ(4, c->initiator_depth);
	EXPECT_EQ(1, c->flow_control);
	EXPECT_EQ(5, c->retry_count);
	EXPECT_EQ(6, c->rnr_retry_count);
	EXPECT_EQ(0, c->srq);
	EXPECT_EQ(cm->client.id->qp->qp_num, c->qp_num);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, rdma_accept(cm->server.id, &granted));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_ESTABLISHED);
	c = &event->param.conn;
	EXPECT_EQ(4, c->responder_resources);
	EXPECT_EQ(2, c->initiator_depth);
	EXPECT_EQ(4, c->rnr_retry_count);
	EXPECT_EQ(cm->server.id->qp->qp_num, c->qp_num);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_ESTABLISHED, 0);

	ASSERT_EQ(0, ibv_query_qp(cm->client.id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(cm->server.id->qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(4, attr.rnr_retry);
	EXPECT_EQ(2, attr.max_rd_atomic);
	EXPECT_EQ(4, attr.max_dest_rd_atomic);
	ASSERT_EQ(0, ibv_query_qp(cm->server.id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(cm->client.id->qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(6, attr.rnr_retry);
	EXPECT_EQ(4, attr.max_rd_atomic);
	EXPECT_EQ(2, attr.max_dest_rd_atomic);
}

TEST_F(cm, private_data_goes_both_ways_up_to_its_limits)
{
	struct rdma_cm_event *event;
	struct cm *cm = &self->cm;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	EXPECT_EQ(-1, cm_connect(cm->client.id, data(), CM_REQ_DATA + 1));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, cm_connect(cm->client.id, data(), CM_REQ_DATA));
	event = cm_request(_metadata, cm);
	EXPECT_TRUE(is_data(event, CM_REQ_DATA, CM_REQ_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, data(), CM_REP_DATA));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_TRUE(is_data(event, CM_REP_DATA, CM_REP_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	event = cm_event(_metadata, self->server->channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(0, event->param.conn.private_data_len);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
}

TEST_F(cm, short_private_data_is_padded)
{
	struct rdma_cm_event *event;
	struct cm *cm = &self->cm;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	ASSERT_EQ(0, cm_connect(cm->client.id, data(), 5));
	event = cm_request(_metadata, cm);
	EXPECT_TRUE(is_data(event, 5, CM_REQ_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	ASSERT_EQ(0, rdma_reject(cm->server.id, data(), 7));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_TRUE(is_data(event, 7, CM_REJ_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
}

/* Nothing more comes, and the client may destroy its id. */
TEST_F(cm, a_rejection_carries_private_data)
{
	struct rdma_cm_event *event;

	cm_ask(_metadata, &self->cm);
	EXPECT_EQ(-1, rdma_reject(self->server->id, data(), CM_REJ_DATA + 1));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, rdma_reject(self->server->id, data(), CM_REJ_DATA));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(self->client->id, event->id);
	EXPECT_EQ(CM_REJ_CONSUMER, event->status);
	EXPECT_TRUE(is_data(event, CM_REJ_DATA, CM_REJ_DATA));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_TRUE(cm_quiet(self->client));
	EXPECT_TRUE(cm_quiet(self->server));
}

/* An acceptance that cannot be sent ends the connection. */
TEST_F(cm, accepting_with_too_much_private_data_rejects)
{
	cm_ask(_metadata, &self->cm);
	cm_qp(_metadata, self->server->id);
	EXPECT_EQ(-1, cm_accept(self->server->id, data(), CM_REP_DATA + 1));
	EXPECT_EQ(EINVAL, errno);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
}

TEST_F(cm, nobody_listens)
{
	cm_destroy(_metadata, &self->cm.listener);
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_NO_SERVICE);
}

/* A port of UDP is no port of TCP. */
TEST_F(cm, port_spaces_are_apart)
{
	self->cm.ps = RDMA_PS_UDP;
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_NO_SERVICE);
	EXPECT_TRUE(cm_quiet(self->server));
}

TEST_F(cm, a_request_whose_id_is_destroyed_is_rejected)
{
	cm_ask(_metadata, &self->cm);
	cm_destroy(_metadata, &self->server->id);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
}

TEST_F(cm, a_dying_listener_rejects_its_backlog)
{
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	ASSERT_TRUE(readable(self->server->channel->fd, 20000));
	cm_destroy(_metadata, &self->cm.listener);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	EXPECT_TRUE(cm_quiet(self->server));
}

/* Whoever was told of a request needs the listener no more. */
TEST_F(cm, a_request_outlives_its_listener)
{
	cm_ask(_metadata, &self->cm);
	cm_destroy(_metadata, &self->cm.listener);
	cm_agree(_metadata, &self->cm);
	cm_message(_metadata, self->client->id, self->server->id);
}

/* Ids that ask a listener with room for two, which is not read. */
#define ASKING	3

static void ask_many(struct __test_metadata *_metadata, struct cm *cm, struct rdma_cm_id **ids)
{
	int i;

	cm_destroy(_metadata, &cm->listener);
	cm->listener = cm_listen(_metadata, cm->server.channel, cm->ps, &cm->addr, ASKING - 1);
	for (i = 0; i < ASKING; i++) {
		cm_resolve(_metadata, cm);
		ids[i] = cm->client.id;
		cm_qp(_metadata, ids[i]);
		ASSERT_EQ(0, cm_connect(ids[i], NULL, 0));
	}
	cm->client.id = NULL;
}

/* Those that the backlog has no room for ask again, and are heard then. */
TEST_F(cm, a_full_backlog_turns_nobody_away)
{
	struct rdma_cm_id *ids[ASKING];
	struct cm *cm = &self->cm;
	int i;

	ask_many(_metadata, cm, ids);
	for (i = 0; i < ASKING; i++) {
		ASSERT_EQ(0, rdma_ack_cm_event(cm_request(_metadata, cm)));
		cm_destroy(_metadata, &cm->server.id);
		cm_expect(_metadata, &(struct cm_side){ self->client->channel, ids[i] },
			  RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	}
	for (i = 0; i < ASKING; i++)
		cm_destroy(_metadata, &ids[i]);
}

/* It has no room for more: they are not among those that the dying listener rejects. */
TEST_F(cm, a_backlog_holds_what_it_is_to_hold)
{
	struct rdma_cm_id *ids[ASKING];
	struct rdma_cm_event *event;
	int i;

	ask_many(_metadata, &self->cm, ids);
	EXPECT_TRUE(cm_quiet(self->client));
	cm_destroy(_metadata, &self->cm.listener);
	for (i = 0; i < ASKING; i++) {
		event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_REJECTED);
		EXPECT_EQ(i < ASKING - 1 ? CM_REJ_CONSUMER : CM_REJ_NO_SERVICE, event->status);
		ASSERT_EQ(0, rdma_ack_cm_event(event));
	}
	for (i = 0; i < ASKING; i++)
		cm_destroy(_metadata, &ids[i]);
}

TEST_F(cm, an_id_that_is_destroyed_disconnects)
{
	cm_establish(_metadata, &self->cm);
	cm_destroy(_metadata, &self->client->id);
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_DISCONNECTED, 0);
	EXPECT_EQ(0, rdma_disconnect(self->server->id));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

struct parting {
	struct rdma_cm_id *id;
	pthread_barrier_t *start;
};

static void *parts(void *arg)
{
	struct parting *p = arg;

	pthread_barrier_wait(p->start);
	return (void *)(intptr_t)rdma_disconnect(p->id);
}

/* However their messages cross, each side is told once. */
TEST_F(cm, both_part_at_once)
{
	pthread_barrier_t start;
	pthread_t thread;
	int round;
	void *ret;

	pthread_barrier_init(&start, NULL, 2);
	for (round = 0; round < 20; round++) {
		cm_establish(_metadata, &self->cm);
		ASSERT_EQ(0, pthread_create(&thread, NULL, parts,
					    &(struct parting){ self->server->id, &start }));
		pthread_barrier_wait(&start);
		EXPECT_EQ(0, rdma_disconnect(self->client->id));
		pthread_join(thread, &ret);
		EXPECT_EQ(NULL, ret);
		cm_expect(_metadata, self->client, RDMA_CM_EVENT_DISCONNECTED, 0);
		cm_expect(_metadata, self->server, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (round == 0) {
			/* Who is told answers, whatever it did before. */
			EXPECT_EQ(0, rdma_disconnect(self->client->id));
			EXPECT_EQ(0, rdma_disconnect(self->server->id));
			cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			cm_expect(_metadata, self->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		}
		cm_hang_up(_metadata, &self->cm);
	}
	pthread_barrier_destroy(&start);
}

/* A child connects to @addr, says so, and sleeps until it is killed. */
static void connect_and_wait(struct __test_metadata *_metadata, int from)
{
	struct cm cm = { .ps = RDMA_PS_TCP };

	if (read(from, &cm.addr, sizeof(cm.addr)) != sizeof(cm.addr))
		_exit(1);
	cm.client.channel = cm_channel(_metadata);
	cm_resolve(_metadata, &cm);
	cm_qp(_metadata, cm.client.id);
	if (cm_connect(cm.client.id, NULL, 0))
		_exit(1);
	cm_expect(_metadata, &cm.client, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (;;)
		pause();
}

/* The child is there before verbs are: what it inherits is of no device. */
TEST(a_killed_peer_disconnects)
{
	struct cm cm;
	int to[2], status;
	pid_t child;

	ASSERT_EQ(0, pipe2(to, O_CLOEXEC));
	child = fork();
	if (!child)
		connect_and_wait(_metadata, to[0]);
	cm_open(_metadata, &cm, RDMA_PS_TCP, cm_address(AF_INET, 0));
	ASSERT_EQ(sizeof(cm.addr), write(to[1], &cm.addr, sizeof(cm.addr)));
	ASSERT_EQ(0, rdma_ack_cm_event(cm_request(_metadata, &cm)));
	cm_qp(_metadata, cm.server.id);
	ASSERT_EQ(0, cm_accept(cm.server.id, NULL, 0));
	cm_expect(_metadata, &cm.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	EXPECT_TRUE(cm_quiet(&cm.server));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	cm_expect(_metadata, &cm.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_close(_metadata, &cm);
	close(to[0]);
	close(to[1]);
}

static void *destroys(void *id)
{
	return (void *)(intptr_t)rdma_destroy_id(id);
}

TEST_F(cm, an_id_waits_for_its_events_to_be_acknowledged)
{
	struct rdma_cm_event *event;
	pthread_t thread;
	void *ret;

	cm_establish(_metadata, &self->cm);
	ASSERT_EQ(0, rdma_disconnect(self->server->id));
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(self->client->id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroys, self->client->id));
	/* The other event of the connection cannot come before the id is at its end. */
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_DISCONNECTED, 0);
	ASSERT_EQ(EBUSY, pthread_tryjoin_np(thread, &ret));
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	self->client->id = NULL;
}

/* A connection without a QP of librdmacm: the program moves its own. */
static void move_qp(struct __test_metadata *_metadata, struct rdma_cm_id *id, struct ibv_qp *qp,
		    int state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	ASSERT_EQ(0, rdma_init_qp_attr(id, &attr, &mask));
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, mask));
}

static struct ibv_qp *own_qp(struct __test_metadata *_metadata, struct rdma_cm_id *id,
			     struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(id->pd, &init);

	ASSERT_NE(NULL, qp);
	move_qp(_metadata, id, qp, IBV_QPS_INIT);
	return qp;
}

TEST_F(cm, a_program_may_move_its_qps_itself)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct cm *cm = &self->cm;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp[2];
	struct ibv_cq *cq;
	int i;

	cm_resolve(_metadata, cm);
	cq = ibv_create_cq(cm->client.id->verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	qp[0] = own_qp(_metadata, cm->client.id, cq);
	param.qp_num = qp[0]->qp_num;
	ASSERT_EQ(0, rdma_connect(cm->client.id, &param));
	event = cm_request(_metadata, cm);
	EXPECT_EQ(qp[0]->qp_num, event->param.conn.qp_num);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	qp[1] = own_qp(_metadata, cm->server.id, cq);
	move_qp(_metadata, cm->server.id, qp[1], IBV_QPS_RTR);
	move_qp(_metadata, cm->server.id, qp[1], IBV_QPS_RTS);
	param.qp_num = qp[1]->qp_num;
	ASSERT_EQ(0, rdma_accept(cm->server.id, &param));
	/* Who has no QP is told of the answer, and says when it is ready. */
	event = cm_event(_metadata, cm->client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT_EQ(qp[1]->qp_num, event->param.conn.qp_num);
	EXPECT_EQ(CM_REP_DATA, event->param.conn.private_data_len);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_TRUE(cm_quiet(self->server));
	move_qp(_metadata, cm->client.id, qp[0], IBV_QPS_RTR);
	move_qp(_metadata, cm->client.id, qp[0], IBV_QPS_RTS);
	ASSERT_EQ(0, rdma_establish(cm->client.id));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_ESTABLISHED, 0);
	EXPECT_TRUE(cm_quiet(self->client));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_query_qp(qp[i], &attr, IBV_QP_STATE, &init));
		EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
		EXPECT_EQ(qp[!i]->qp_num, attr.dest_qp_num);
	}
	ASSERT_EQ(0, rdma_disconnect(cm->client.id));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ibv_destroy_qp(qp[i]));
	ASSERT_EQ(0, ibv_destroy_cq(cq));
}

/* Events that wait go along, and those that come later come to the new channel. */
TEST_F(cm, an_id_moves_to_another_channel)
{
	struct rdma_event_channel *other = cm_channel(_metadata), *old = self->client->channel;
	struct cm *cm = &self->cm;

	cm_ask(_metadata, cm);
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, NULL, 0));
	ASSERT_TRUE(readable(old->fd, 20000));
	ASSERT_EQ(0, rdma_migrate_id(cm->client.id, other));
	EXPECT_EQ(other, cm->client.id->channel);
	EXPECT_FALSE(readable(old->fd, 0));
	cm->client.channel = other;
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_ESTABLISHED, 0);
	ASSERT_EQ(0, rdma_disconnect(cm->server.id));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_DISCONNECTED, 0);
	EXPECT_FALSE(readable(old->fd, 0));
	cm_destroy(_metadata, &cm->client.id);
	cm->client.channel = old;
	rdma_destroy_event_channel(other);
}

/* Where a listener moves to, its requests come. */
TEST_F(cm, a_listener_moves_to_another_channel)
{
	struct rdma_event_channel *other = cm_channel(_metadata), *old = self->server->channel;

	ASSERT_EQ(0, rdma_migrate_id(self->cm.listener, other));
	self->server->channel = other;
	cm_establish(_metadata, &self->cm);
	EXPECT_FALSE(readable(old->fd, 0));
	EXPECT_EQ(other, self->server->id->channel);
	cm_hang_up(_metadata, &self->cm);
	ASSERT_EQ(0, rdma_migrate_id(self->cm.listener, old));
	self->server->channel = old;
	cm_establish(_metadata, &self->cm);
	rdma_destroy_event_channel(other);
}

/* Synchronous ids */

static struct rdma_addrinfo *address_info(const union cm_addr *addr, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	char host[INET6_ADDRSTRLEN], port[8];
	struct rdma_addrinfo *info = NULL;

	inet_ntop(addr->sa.sa_family,
		  addr->sa.sa_family == AF_INET ? (void *)&addr->in.sin_addr :
						  (void *)&addr->in6.sin6_addr,
		  host, sizeof(host));
	snprintf(port, sizeof(port), "%d", ntohs(addr->in.sin_port));
	return rdma_getaddrinfo(host, port, &hints, &info) ? NULL : info;
}

static struct rdma_cm_id *endpoint(const union cm_addr *addr, int flags)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo *info = address_info(addr, flags);
	struct rdma_cm_id *id = NULL;

	if (info && rdma_create_ep(&id, info, NULL, &attr))
		id = NULL;
	if (info)
		rdma_freeaddrinfo(info);
	return id;
}

static void *connects(void *id)
{
	return (void *)(intptr_t)(rdma_connect(id, NULL) ? errno : 0);
}

static void *parts_alone(void *id)
{
	return (void *)(intptr_t)(rdma_disconnect(id) ? errno : 0);
}

/* Without a channel a call returns when its event has come. */
TEST_F(cm, ids_without_a_channel_wait_in_the_call)
{
	struct rdma_cm_id *listener, *client, *server = NULL;
	union cm_addr addr = self->cm.addr;
	pthread_t thread;
	void *ret;

	cm_destroy(_metadata, &self->cm.listener);
	listener = endpoint(&addr, RAI_PASSIVE);
	ASSERT_NE(NULL, listener);
	ASSERT_EQ(0, rdma_listen(listener, 0));
	client = endpoint(&addr, 0);
	ASSERT_NE(NULL, client);
	ASSERT_EQ(0, pthread_create(&thread, NULL, connects, client));
	ASSERT_EQ(0, rdma_get_request(listener, &server));
	ASSERT_EQ(0, rdma_accept(server, NULL));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	ASSERT_EQ(NULL, ret);
	cm_message(_metadata, client, server);
	/* So does the end: it takes both. */
	ASSERT_EQ(0, pthread_create(&thread, NULL, parts_alone, client));
	ASSERT_EQ(0, rdma_disconnect(server));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	ASSERT_EQ(NULL, ret);
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);

	/* What fails, fails in the call. */
	rdma_destroy_ep(listener);
	client = endpoint(&addr, 0);
	ASSERT_NE(NULL, client);
	EXPECT_EQ(-1, rdma_connect(client, NULL));
	EXPECT_EQ(ECONNREFUSED, errno);
	rdma_destroy_ep(client);
}

/* Options */

TEST_F(cm, the_ack_timeout_goes_to_the_qp)
{
	struct cm *cm = &self->cm;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 17;

	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	ASSERT_EQ(0, rdma_set_option(cm->client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				     &timeout, sizeof(timeout)));
	ASSERT_EQ(0, cm_connect(cm->client.id, NULL, 0));
	ASSERT_EQ(0, rdma_ack_cm_event(cm_request(_metadata, cm)));
	cm_agree(_metadata, cm);
	ASSERT_EQ(0, ibv_query_qp(cm->client.id->qp, &attr, IBV_QP_TIMEOUT, &init));
	EXPECT_EQ(17, attr.timeout);
}

TEST_F(cm, a_port_has_one_owner_unless_both_share_it)
{
	struct rdma_event_channel *c = self->server->channel;
	struct rdma_cm_id *a = cm_id(_metadata, c, RDMA_PS_TCP);
	struct rdma_cm_id *b = cm_id(_metadata, c, RDMA_PS_TCP);
	union cm_addr addr = cm_address(variant->family, 0);
	int one = 1;

	EXPECT_EQ(-1, rdma_bind_addr(a, &self->cm.addr.sa));
	EXPECT_EQ(EADDRINUSE, errno);
	ASSERT_EQ(0, rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one,
				     sizeof(one)));
	ASSERT_EQ(0, rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one,
				     sizeof(one)));
	EXPECT_EQ(-1, rdma_bind_addr(a, &self->cm.addr.sa));
	EXPECT_EQ(EADDRINUSE, errno);
	ASSERT_EQ(0, rdma_bind_addr(a, &addr.sa));
	addr.in.sin_port = rdma_get_src_port(a);
	ASSERT_EQ(0, rdma_bind_addr(b, &addr.sa));
	/* Only one can listen there. */
	EXPECT_EQ(-1, rdma_listen(a, 1));
	EXPECT_EQ(EADDRINUSE, errno);
	cm_destroy(_metadata, &b);
	EXPECT_EQ(0, rdma_listen(a, 1));
	cm_destroy(_metadata, &a);
	/* And it is free again. */
	a = cm_listen(_metadata, c, RDMA_PS_TCP, &addr, 1);
	cm_destroy(_metadata, &a);
}

TEST_F(cm, families_share_a_port_when_asked_to)
{
	struct rdma_event_channel *c = self->server->channel;
	struct rdma_cm_id *four = cm_id(_metadata, c, RDMA_PS_TCP);
	struct rdma_cm_id *six = cm_id(_metadata, c, RDMA_PS_TCP);
	union cm_addr any4 = { .in.sin_family = AF_INET };
	union cm_addr any6 = { .in6.sin6_family = AF_INET6 };
	int one = 1;

	ASSERT_EQ(0, rdma_bind_addr(four, &any4.sa));
	any6.in6.sin6_port = rdma_get_src_port(four);
	EXPECT_EQ(-1, rdma_bind_addr(six, &any6.sa));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
	ASSERT_EQ(0, rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one,
				     sizeof(one)));
	EXPECT_EQ(0, rdma_bind_addr(six, &any6.sa));
	cm_destroy(_metadata, &four);
	cm_destroy(_metadata, &six);
}

TEST_F(cm, the_type_of_service_goes_into_the_route)
{
	struct cm *cm = &self->cm;
	uint8_t tos = 0x20;

	cm->client.id = cm_id(_metadata, cm->client.channel, RDMA_PS_TCP);
	ASSERT_EQ(0, rdma_set_option(cm->client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				     sizeof(tos)));
	ASSERT_EQ(0, rdma_resolve_addr(cm->client.id, NULL, &cm->addr.sa, CM_MS));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ASSERT_EQ(0, rdma_resolve_route(cm->client.id, CM_MS));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ASSERT_EQ(1, cm->client.id->route.num_paths);
	EXPECT_EQ(tos, cm->client.id->route.path_rec->traffic_class);
}

/* Wild cards */

TEST_F(cm, a_listener_of_no_address_hears_all)
{
	union cm_addr any = { .sa.sa_family = variant->family };
	struct cm *cm = &self->cm;

	cm_destroy(_metadata, &cm->listener);
	cm->listener = cm_listen(_metadata, self->server->channel, RDMA_PS_TCP, &any, 4);
	EXPECT_EQ(NULL, cm->listener->verbs);
	cm->addr.in.sin_port = any.in.sin_port;
	cm_establish(_metadata, cm);
	expect_addresses(_metadata, cm);
	cm_message(_metadata, cm->server.id, cm->client.id);
}

TEST_F(cm, an_address_of_nobody_is_no_address)
{
	union cm_addr far = { .sa.sa_family = variant->family };
	struct rdma_cm_event *event;

	/* Addresses for documentation: RFC 5737, RFC 3849. */
	if (variant->family == AF_INET)
		inet_pton(AF_INET, "203.0.113.1", &far.in.sin_addr);
	else
		inet_pton(AF_INET6, "2001:db8:ffff::1", &far.in6.sin6_addr);
	self->client->id = cm_id(_metadata, self->client->channel, RDMA_PS_TCP);
	EXPECT_EQ(-1, rdma_bind_addr(self->client->id, &far.sa));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
	/* Where no route leads, the call or an event says so. */
	far.in.sin_port = htons(7471);
	if (rdma_resolve_addr(self->client->id, NULL, &far.sa, 500)) {
		EXPECT_TRUE(errno == ENETUNREACH || errno == EHOSTUNREACH || errno == ENODEV);
		return;
	}
	event = cm_event(_metadata, self->client->channel, RDMA_CM_EVENT_ADDR_ERROR);
	EXPECT_GT(0, event->status);
	ASSERT_EQ(0, rdma_ack_cm_event(event));
}

TEST_HARNESS_MAIN
