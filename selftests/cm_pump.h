/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cm_pump.h: many connections in one thread: what comes on the channels of both sides is
 * answered with the next step, until as many have come as far as they should.
 */
#ifndef CM_PUMP_H
#define CM_PUMP_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define PUMP_MS		20000	/* without an event: something is lost */

/**
 * struct pump - a listener, and the connections to it
 * @cq: of all QPs, made on the device of the first.
 * @clients: their ids; @n of them.
 * @servers: ids that came with requests; @asked of them.
 * @established: events of both sides.
 * @disconnected: events of both sides.
 * @bad: the first event that should not have come, or -1.
 */
struct pump {
	struct rdma_event_channel *server;
	struct rdma_event_channel *client;
	struct rdma_cm_id *listener;
	struct ibv_cq *cq;
	struct rdma_cm_id **clients;
	struct rdma_cm_id **servers;
	int n;
	int asked;
	int established;
	int disconnected;
	int bad;
};

static inline int pump_qp(struct pump *p, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	if (!p->cq)
		p->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = p->cq;
	attr.recv_cq = p->cq;
	return p->cq ? rdma_create_qp(id, NULL, &attr) : -1;
}

static inline int pump_connect(struct pump *p, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return pump_qp(p, id) || rdma_connect(id, &param);
}

static inline int pump_accept(struct pump *p, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };

	if (p->asked == p->n)
		return -1;
	p->servers[p->asked++] = id;
	return pump_qp(p, id) || rdma_accept(id, &param);
}

/* The step that follows an event; not 0 where there is none. */
static inline int pump_step(struct pump *p, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(event->id, PUMP_MS);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return pump_connect(p, event->id);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return pump_accept(p, event->id);
	case RDMA_CM_EVENT_ESTABLISHED:
		p->established++;
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		p->disconnected++;
		return rdma_disconnect(event->id);
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		return -1;
	}
}

static inline void pump_channel(struct pump *p, struct rdma_event_channel *c)
{
	struct rdma_cm_event *event, copy;

	if (rdma_get_cm_event(c, &event)) {
		p->bad = RDMA_CM_EVENT_CONNECT_ERROR;
		return;
	}
	copy = *event;
	rdma_ack_cm_event(event);
	if (!pump_step(p, &copy))
		return;
	p->bad = copy.event;
	fprintf(stderr, "# %s, status %d\n", rdma_event_str(copy.event), copy.status);
}

/* Until *@count has come to @to; false when something goes wrong, or no event comes. */
static inline bool pump_until(struct pump *p, const int *count, int to)
{
	struct pollfd fds[] = {
		{ .fd = p->server->fd, .events = POLLIN },
		{ .fd = p->client->fd, .events = POLLIN },
	};

	while (*count < to && p->bad < 0) {
		if (poll(fds, 2, PUMP_MS) <= 0)
			return false;
		if (fds[0].revents)
			pump_channel(p, p->server);
		if (fds[1].revents)
			pump_channel(p, p->client);
	}
	return p->bad < 0;
}

/* A listener at @addr, and room for @most connections at a time. */
static inline int pump_open(struct pump *p, const struct sockaddr *addr, int most)
{
	*p = (struct pump){ .bad = -1 };
	p->clients = calloc(most, sizeof(*p->clients));
	p->servers = calloc(most, sizeof(*p->servers));
	p->server = rdma_create_event_channel();
	p->client = rdma_create_event_channel();
	if (!p->clients || !p->servers || !p->server || !p->client)
		return -1;
	return rdma_create_id(p->server, &p->listener, NULL, RDMA_PS_TCP) ||
	       rdma_bind_addr(p->listener, (struct sockaddr *)addr) ||
	       rdma_listen(p->listener, 1024);
}

static inline void pump_close(struct pump *p)
{
	if (p->cq)
		ibv_destroy_cq(p->cq);
	rdma_destroy_id(p->listener);
	rdma_destroy_event_channel(p->client);
	rdma_destroy_event_channel(p->server);
	free(p->clients);
	free(p->servers);
}

/* @n connections at once, as far as ESTABLISHED on both sides of each. */
static inline bool pump_up(struct pump *p, int n)
{
	struct sockaddr_in6 addr = *(struct sockaddr_in6 *)&p->listener->route.addr.src_addr;

	p->asked = 0;
	p->established = 0;
	p->disconnected = 0;
	for (p->n = 0; p->n < n; p->n++) {
		if (rdma_create_id(p->client, &p->clients[p->n], NULL, RDMA_PS_TCP))
			return false;
		if (rdma_resolve_addr(p->clients[p->n], NULL, (struct sockaddr *)&addr,
				      PUMP_MS))
			return false;
	}
	return pump_until(p, &p->established, 2 * n) && p->asked == n;
}

static inline void pump_destroy(struct rdma_cm_id **ids, int n)
{
	while (n--) {
		rdma_destroy_qp(ids[n]);
		rdma_destroy_id(ids[n]);
	}
}

/* And all of them down, each side of each told, and nothing of them left. */
static inline bool pump_down(struct pump *p)
{
	int i;

	for (i = 0; i < p->n; i++)
		if (rdma_disconnect(p->clients[i]))
			return false;
	if (!pump_until(p, &p->disconnected, 2 * p->n))
		return false;
	pump_destroy(p->clients, p->n);
	pump_destroy(p->servers, p->asked);
	return true;
}

#endif
