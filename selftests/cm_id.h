/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cm_id.h: connections by librdmacm, a step at a time: an event is waited for, compared
 * with what must come, acknowledged. Both sides are in one thread, on channels of their
 * own.
 */
#ifndef CM_ID_H
#define CM_ID_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "harness.h"
#include "library.h"

#define CM_MS		5000	/* that resolving may take */
#define CM_SOON_MS	300	/* within which what must not come would have come */

/**
 * struct cm_side - what one side of a connection has
 * @id: the connection's; of a server, the one that came with the request.
 */
struct cm_side {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

/**
 * struct cm - a listener, and one connection to it
 * @addr: where the listener listens.
 */
struct cm {
	enum rdma_port_space ps;
	union cm_addr addr;
	struct rdma_cm_id *listener;
	struct cm_side server;
	struct cm_side client;
};

/* Events */

static inline struct rdma_cm_event *cm_event(struct __test_metadata *_metadata,
					     struct rdma_event_channel *c,
					     enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	ASSERT_TRUE(readable(c->fd, DEADLINE_NS / 1000000)) {
		TH_LOG("no event where %s should be", rdma_event_str(type));
	}
	ASSERT_EQ(0, rdma_get_cm_event(c, &event));
	ASSERT_EQ(type, event->event) {
		TH_LOG("%s with status %d where %s should be", rdma_event_str(event->event),
		       event->status, rdma_event_str(type));
	}
	return event;
}

/* The next event is this one, of this id. */
static inline void cm_expect(struct __test_metadata *_metadata, const struct cm_side *side,
			     enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = cm_event(_metadata, side->channel, type);

	EXPECT_EQ(side->id, event->id);
	EXPECT_EQ(status, event->status) {
		TH_LOG("%s", rdma_event_str(type));
	}
	ASSERT_EQ(0, rdma_ack_cm_event(event));
}

static inline bool cm_quiet(const struct cm_side *side)
{
	return !readable(side->channel->fd, CM_SOON_MS);
}

static inline struct rdma_event_channel *cm_channel(struct __test_metadata *_metadata)
{
	struct rdma_event_channel *c = rdma_create_event_channel();

	ASSERT_NE(NULL, c) {
		TH_LOG("errno %d", errno);
	}
	return c;
}

/* Ids */

static inline struct rdma_cm_id *cm_id(struct __test_metadata *_metadata,
				       struct rdma_event_channel *c, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	ASSERT_EQ(0, rdma_create_id(c, &id, NULL, ps)) {
		TH_LOG("errno %d", errno);
	}
	return id;
}

static inline int cm_qp_of(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.send_cq = cq, .recv_cq = cq,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};

	return rdma_create_qp(id, NULL, &attr);
}

static inline void cm_qp(struct __test_metadata *_metadata, struct rdma_cm_id *id)
{
	ASSERT_EQ(0, cm_qp_of(id, NULL)) {
		TH_LOG("errno %d", errno);
	}
}

static inline void cm_destroy(struct __test_metadata *_metadata, struct rdma_cm_id **id)
{
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	ASSERT_EQ(0, rdma_destroy_id(*id));
	*id = NULL;
}

/* A listener at @addr, and at a port that is free when none is named. */
static inline struct rdma_cm_id *cm_listen(struct __test_metadata *_metadata,
					   struct rdma_event_channel *c, enum rdma_port_space ps,
					   union cm_addr *addr, int backlog)
{
	struct rdma_cm_id *id = cm_id(_metadata, c, ps);

	ASSERT_EQ(0, rdma_bind_addr(id, &addr->sa)) {
		TH_LOG("errno %d", errno);
	}
	ASSERT_EQ(0, rdma_listen(id, backlog)) {
		TH_LOG("errno %d", errno);
	}
	ASSERT_NE(0, rdma_get_src_port(id));
	addr->in.sin_port = rdma_get_src_port(id);	/* where that of IPv6 is, too */
	return id;
}

/* The client's id, on its way to the listener as far as a route. */
static inline void cm_resolve(struct __test_metadata *_metadata, struct cm *cm)
{
	struct cm_side *client = &cm->client;

	client->id = cm_id(_metadata, client->channel, cm->ps);
	ASSERT_EQ(0, rdma_resolve_addr(client->id, NULL, &cm->addr.sa, CM_MS)) {
		TH_LOG("errno %d", errno);
	}
	cm_expect(_metadata, client, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ASSERT_EQ(0, rdma_resolve_route(client->id, CM_MS)) {
		TH_LOG("errno %d", errno);
	}
	cm_expect(_metadata, client, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static inline int cm_connect(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return rdma_connect(id, &(struct rdma_conn_param){
		.private_data = data, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7,
	});
}

static inline int cm_accept(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return rdma_accept(id, &(struct rdma_conn_param){
		.private_data = data, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7,
	});
}

/* The listener's next request becomes the server's id; its event is the caller's. */
static inline struct rdma_cm_event *cm_request(struct __test_metadata *_metadata, struct cm *cm)
{
	struct rdma_cm_event *event;

	event = cm_event(_metadata, cm->server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT_EQ(cm->listener, event->listen_id);
	EXPECT_EQ(0, event->status);
	EXPECT_NE(NULL, event->id->verbs);
	cm->server.id = event->id;
	return event;
}

/* A client that has asked, and a server that has been asked. */
static inline void cm_ask(struct __test_metadata *_metadata, struct cm *cm)
{
	cm_resolve(_metadata, cm);
	cm_qp(_metadata, cm->client.id);
	ASSERT_EQ(0, cm_connect(cm->client.id, NULL, 0)) {
		TH_LOG("errno %d", errno);
	}
	ASSERT_EQ(0, rdma_ack_cm_event(cm_request(_metadata, cm)));
}

/* From there to a connection. */
static inline void cm_agree(struct __test_metadata *_metadata, struct cm *cm)
{
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, NULL, 0)) {
		TH_LOG("errno %d", errno);
	}
	cm_expect(_metadata, &cm->client, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect(_metadata, &cm->server, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static inline void cm_establish(struct __test_metadata *_metadata, struct cm *cm)
{
	cm_ask(_metadata, cm);
	cm_agree(_metadata, cm);
}

/* One side goes, the other follows. */
static inline void cm_part(struct __test_metadata *_metadata, struct cm_side *first,
			   struct cm_side *second)
{
	ASSERT_EQ(0, rdma_disconnect(first->id));
	cm_expect(_metadata, second, RDMA_CM_EVENT_DISCONNECTED, 0);
	ASSERT_EQ(0, rdma_disconnect(second->id));
	cm_expect(_metadata, first, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static inline void cm_hang_up(struct __test_metadata *_metadata, struct cm *cm)
{
	cm_destroy(_metadata, &cm->client.id);
	cm_destroy(_metadata, &cm->server.id);
}

static inline void cm_open(struct __test_metadata *_metadata, struct cm *cm,
			   enum rdma_port_space ps, union cm_addr addr)
{
	*cm = (struct cm){ .ps = ps, .addr = addr };
	cm->server.channel = cm_channel(_metadata);
	cm->client.channel = cm_channel(_metadata);
	cm->listener = cm_listen(_metadata, cm->server.channel, ps, &cm->addr, 16);
}

static inline void cm_close(struct __test_metadata *_metadata, struct cm *cm)
{
	cm_hang_up(_metadata, cm);
	cm_destroy(_metadata, &cm->listener);
	rdma_destroy_event_channel(cm->client.channel);
	rdma_destroy_event_channel(cm->server.channel);
}

/* Messages */

/* From one side's QP to the other's, by the helpers of rdma_verbs.h. */
static inline void cm_message(struct __test_metadata *_metadata, struct rdma_cm_id *from,
			      struct rdma_cm_id *to)
{
	char out[64] = "a message", in[64] = "";
	struct ibv_mr *out_mr = rdma_reg_msgs(from, out, sizeof(out));
	struct ibv_mr *in_mr = rdma_reg_msgs(to, in, sizeof(in));
	struct ibv_wc wc = {};

	ASSERT_TRUE(out_mr && in_mr);
	ASSERT_EQ(0, rdma_post_recv(to, NULL, in, sizeof(in), in_mr));
	ASSERT_EQ(0, rdma_post_send(from, NULL, out, sizeof(out), out_mr, 0));
	ASSERT_EQ(1, rdma_get_send_comp(from, &wc));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(1, rdma_get_recv_comp(to, &wc));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_STREQ(out, in);
	ASSERT_EQ(0, rdma_dereg_mr(out_mr));
	ASSERT_EQ(0, rdma_dereg_mr(in_mr));
}

static inline enum ibv_qp_state cm_qp_state(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	return ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN :
								  attr.qp_state;
}

#endif
