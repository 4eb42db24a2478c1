// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * epoll.c: one thread, one epoll, all events of a program of RDMA CM: those of
 * connections, completions, asynchronous events of the device, and a timer. The server
 * sends back what comes; the client opens many connections at once, exchanges messages on
 * each, and closes them. Documentation/events.rst explains it.
 *
 *	epoll [-n CONNECTIONS] ADDRESS PORT	the server, until so many have come and gone
 *	epoll -c [-n CONNECTIONS] ADDRESS PORT	the client
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define ROUNDS		10	/* messages there and back on each connection */
#define MOST		1024	/* connections at a time */
#define WRS		2	/* of a connection: a receive and a send */
#define BUDGET		64	/* completions in one turn */
#define PATIENCE	20	/* seconds that a connection may do nothing */
#define RESOLVE_MS	2000

/**
 * struct conn - a connection
 * @wrs: WRs that were posted, and whose completions have not been seen: they keep it.
 * @round: messages that have come back to the client.
 * @quiet: seconds without a completion.
 * @heard: a message lies in @in that nothing was done about.
 * @sending: what lies in @out has not completed.
 * @open: ESTABLISHED has come and DISCONNECTED has not.
 * @closing: the QP is, or is on its way to be, in error.
 */
struct conn {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct conn *next, **at;
	int wrs;
	int round;
	int quiet;
	bool heard;
	bool sending;
	bool open;
	bool closing;
	char in[64];
	char out[64];
};

/**
 * struct loop - the program
 * @verbs: the device of the first connection, and of all.
 * @unacked: events of the CQ that are not acknowledged.
 * @polling: the CQ was not found empty, so that no event will come for what is in it.
 * @conns: those that are there; @count of them, @to_come in the future.
 * @good: connections that have ended as they should.
 */
struct loop {
	int epoll;
	int timer;
	bool client;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned int unacked;
	bool polling;
	struct conn *conns;
	int count;
	int to_come;
	int good;
};

static struct loop l;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Descriptors. None of them blocks: epoll does. */

static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	    epoll_ctl(l.epoll, EPOLL_CTL_ADD, fd, &e))
		die("watch");
}

/* The device is known when the first connection is: what all of them share. */
static bool use_device(struct ibv_context *verbs)
{
	if (l.verbs)
		return l.verbs == verbs;
	l.verbs = verbs;
	l.pd = ibv_alloc_pd(verbs);
	l.channel = ibv_create_comp_channel(verbs);
	if (!l.pd || !l.channel)
		die("device");
	/* Room for all that can complete: a CQ must not overflow. */
	l.cq = ibv_create_cq(verbs, MOST * WRS, NULL, l.channel, 0);
	if (!l.cq || ibv_req_notify_cq(l.cq, 0))
		die("CQ");
	watch(l.channel->fd);
	watch(verbs->async_fd);
	return true;
}

/* Connections */

static struct conn *conn_new(struct rdma_cm_id *id)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		die("memory");
	c->id = id;
	id->context = c;
	c->next = l.conns;
	c->at = &l.conns;
	if (c->next)
		c->next->at = &c->next;
	l.conns = c;
	l.count++;
	return c;
}

/*
 * The last of a connection. Nothing refers to it: no completion is to come, its events
 * have been acknowledged, and those that nobody has read go with the id.
 */
static void conn_free(struct conn *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	l.count--;
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	rdma_destroy_id(c->id);
	free(c);
}

static void conn_free_if_done(struct conn *c)
{
	if (c->closing && !c->open && !c->wrs)
		conn_free(c);
}

/* The QP goes to error, so that all that was posted completes; then the end can come. */
static void conn_close(struct conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	if (c->id->qp)
		rdma_disconnect(c->id);
}

static bool conn_qp(struct conn *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = c,
		.qp_type = IBV_QPT_RC,
		.send_cq = l.cq, .recv_cq = l.cq,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};

	if (rdma_create_qp(c->id, l.pd, &attr))
		return false;
	c->mr = ibv_reg_mr(l.pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE);
	return c->mr;
}

static bool conn_recv(struct conn *c)
{
	struct ibv_sge sge = { (uintptr_t)c->in, sizeof(c->in), c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)c, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		return false;
	c->wrs++;
	return true;
}

static bool conn_send(struct conn *c)
{
	struct ibv_sge sge = { (uintptr_t)c->out, sizeof(c->out), c->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)c, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		return false;
	c->wrs++;
	c->sending = true;
	return true;
}

/* Messages */

static bool say(struct conn *c)
{
	snprintf(c->out, sizeof(c->out), "message %d of %p", c->round, (void *)c);
	return conn_send(c);
}

/* The server: back it goes. There is room for the next before that is on its way. */
static bool answer(struct conn *c)
{
	memcpy(c->out, c->in, sizeof(c->out));
	return conn_recv(c) && conn_send(c);
}

/* The client: it is what was sent; another, or that was the last. */
static bool hear(struct conn *c)
{
	if (memcmp(c->in, c->out, sizeof(c->in))) {
		fprintf(stderr, "wrong data\n");
		return false;
	}
	if (++c->round < ROUNDS)
		return conn_recv(c) && say(c);
	l.good++;
	conn_close(c);
	return true;
}

/* Completions */

/*
 * A message may be told of before the completion of the one that it answers, whose place in
 * the queue and whose buffer are free then only: both have to be there.
 */
static bool go_on(struct conn *c, enum ibv_wc_opcode opcode)
{
	if (opcode == IBV_WC_RECV)
		c->heard = true;
	else
		c->sending = false;
	if (!c->heard || c->sending)
		return true;
	c->heard = false;
	return l.client ? hear(c) : answer(c);
}

static void completion(const struct ibv_wc *wc)
{
	struct conn *c = (void *)(uintptr_t)wc->wr_id;

	c->wrs--;
	c->quiet = 0;
	/* The opcode of what failed is not told, and of what is flushed nothing matters. */
	if (wc->status != IBV_WC_SUCCESS || !go_on(c, wc->opcode))
		conn_close(c);
	conn_free_if_done(c);
}

/* Some, so that the others have their turn, too. */
static void poll_some(void)
{
	struct ibv_wc wc[BUDGET];
	int i, n = ibv_poll_cq(l.cq, BUDGET, wc);

	if (n < 0)
		die("poll");
	l.polling = n == BUDGET;
	for (i = 0; i < n; i++)
		completion(&wc[i]);
}

/*
 * An event says: look at the CQ, which will raise no other until it is armed. So it is
 * armed first, and polled then: what comes in between raises an event, or is found. It is
 * armed once, when all events were read: where something is in it that may raise the next.
 */
static void completion_events(void)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(l.channel, &cq, &context))
		l.unacked++;
	if (ibv_req_notify_cq(l.cq, 0))
		die("arm");
	l.polling = true;
}

/* Events of connections */

/* The address is one of a device now, and what that device has can be made. */
static bool addr_resolved(struct conn *c)
{
	return use_device(c->id->verbs) && conn_qp(c) &&
	       !rdma_resolve_route(c->id, RESOLVE_MS);
}

/* Before the other side can send there is room for what it sends. */
static bool route_resolved(struct conn *c)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return conn_recv(c) && !rdma_connect(c->id, &param);
}

static void connect_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct conn *c;

	if (l.count == MOST || !use_device(id->verbs)) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	c = conn_new(id);
	l.to_come -= l.to_come > 0;
	if (!conn_qp(c) || !conn_recv(c) || rdma_accept(id, &param))
		conn_close(c);
	conn_free_if_done(c);
}

/* A server may have heard and answered before it is told. */
static bool established(struct conn *c)
{
	c->open = true;
	return !l.client || say(c);
}

/*
 * The last messages may lie in the CQ still: what was sent before the end is dealt with
 * before the end, and none of it is the last of @c. Whoever did not begin the end answers,
 * which conn_close() does.
 */
static void disconnected(struct conn *c)
{
	c->wrs++;
	do
		poll_some();
	while (l.polling);
	c->wrs--;
	c->open = false;
	if (!l.client && !c->closing)
		l.good++;
	conn_close(c);
}

static void connection_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct conn *c = id->context;
	bool good = true;

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		connect_request(id);
		return;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		good = addr_resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		good = route_resolved(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		good = established(c);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(c);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:	/* refused, unreachable, the device goes */
		fprintf(stderr, "%s, status %d\n", rdma_event_str(type), status);
		if (id == l.listener)
			exit(1);
		c->open = false;
		good = false;
	}
	if (!good)
		conn_close(c);
	conn_free_if_done(c);
}

/*
 * An event is acknowledged before its id can be destroyed, which would wait for that for
 * ever. Its private data is gone then; who wants it copies it first.
 */
static void connection_events(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int status;

	while (!rdma_get_cm_event(l.events, &event)) {
		id = event->id;
		type = event->event;
		status = event->status;
		rdma_ack_cm_event(event);
		connection_event(id, type, status);
	}
	if (errno != EAGAIN)
		die("events");
}

/* Events of the device, and the time */

static void device_events(void)
{
	struct ibv_async_event event;
	struct conn *c;

	while (!ibv_get_async_event(l.verbs, &event)) {
		fprintf(stderr, "%s\n", ibv_event_type_str(event.event_type));
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			exit(1);
		/* The peer's message has overtaken its last word of the handshake. */
		if (event.event_type == IBV_EVENT_COMM_EST) {
			c = event.element.qp->qp_context;
			rdma_notify(c->id, IBV_EVENT_COMM_EST);
		}
		ibv_ack_async_event(&event);
	}
}

/* A second has gone: who has done nothing for long is given up. */
static void tick(void)
{
	struct conn *c, *next;
	uint64_t times;

	if (read(l.timer, &times, sizeof(times)) != sizeof(times))
		return;
	for (c = l.conns; c; c = next) {
		next = c->next;
		if (++c->quiet <= PATIENCE)
			continue;
		fprintf(stderr, "a connection was given up\n");
		c->open = false;
		conn_close(c);
		conn_free_if_done(c);
	}
}

/* The loop */

static void turn(void)
{
	struct epoll_event e[4];
	int i, n;

	n = epoll_wait(l.epoll, e, 4, l.polling ? 0 : -1);
	if (n < 0 && errno != EINTR)
		die("epoll");
	for (i = 0; i < n; i++) {
		if (e[i].data.fd == l.events->fd)
			connection_events();
		else if (e[i].data.fd == l.timer)
			tick();
		else if (e[i].data.fd == l.channel->fd)
			completion_events();
		else
			device_events();
	}
	if (l.polling)
		poll_some();
}

static void start_server(const struct addrinfo *to)
{
	if (rdma_create_id(l.events, &l.listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(l.listener, to->ai_addr) || rdma_listen(l.listener, MOST))
		die("listen");
}

static void start_client(const struct addrinfo *to)
{
	struct rdma_cm_id *id;

	for (; l.to_come; l.to_come--) {
		if (rdma_create_id(l.events, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, to->ai_addr, RESOLVE_MS))
			die("resolve");
		conn_new(id);
	}
}

static void start(const char *host, const char *port)
{
	struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	struct addrinfo *to;

	if (getaddrinfo(host, port, NULL, &to))
		die(host);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	l.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	l.events = rdma_create_event_channel();
	if (l.epoll < 0 || l.timer < 0 || !l.events)
		die("start");
	timerfd_settime(l.timer, 0, &second, NULL);
	watch(l.timer);
	watch(l.events->fd);
	if (l.client)
		start_client(to);
	else
		start_server(to);
	freeaddrinfo(to);
}

/* A CQ waits for its events to be acknowledged: all at once is cheapest. */
static void stop(void)
{
	if (l.listener)
		rdma_destroy_id(l.listener);
	if (l.cq) {
		ibv_ack_cq_events(l.cq, l.unacked);
		ibv_destroy_cq(l.cq);
		ibv_destroy_comp_channel(l.channel);
		ibv_dealloc_pd(l.pd);
	}
	rdma_destroy_event_channel(l.events);
	close(l.timer);
	close(l.epoll);
}

static int complain(void)
{
	fprintf(stderr, "usage: epoll [-c] [-n CONNECTIONS] ADDRESS PORT\n");
	return 2;
}

int main(int argc, char **argv)
{
	int all = 200, opt;

	while ((opt = getopt(argc, argv, "cn:")) != -1) {
		if (opt == 'c')
			l.client = true;
		else if (opt == 'n')
			all = atoi(optarg);
		else
			return complain();
	}
	if (argc - optind != 2 || all < 1 || all > MOST)
		return complain();
	l.to_come = all;
	start(argv[optind], argv[optind + 1]);
	while (l.count || l.to_come)
		turn();
	stop();
	printf("%d of %d connections\n", l.good, all);
	return l.good == all ? 0 : 1;
}
