/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link.h: what the examples have in common, so that each is its mistake and little
 * else: two connected QPs in one process; what waits for completions, and knows from
 * the device when a wait will never end; rounds, and what is said of them.
 *
 * The device's engine is inline, as it is by default: what is posted has been executed
 * when the call returns, unless it is held.
 *
 * An example ends with 0 when its rounds were survived, with 1 when the mistake was
 * caught, with 2 when it could not be run.
 */
#ifndef LINK_H
#define LINK_H

#include <poll.h>
#include <stdbool.h>

#include "vhca_fault.h"

#define MESSAGES	16	/* that a link has room for */
#define QUIET_MS	50	/* a wait so long asks the device what is to come */

/**
 * struct side - a QP and its CQs
 * @waited: whether a CQ was ever armed, which is its cq_context.
 */
struct side {
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	bool waited[2];
};

/**
 * struct link - side @a sends and side @b receives, on device vhca0
 * @channel: of all CQs.
 * @out: messages of @a; any side may send from there.
 * @in: where they arrive.
 * @f: what the plan is made with.
 */
struct link {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	struct side a;
	struct side b;
	struct vhca_fault *f;
	uint64_t out[MESSAGES];
	uint64_t in[MESSAGES];
};

/**
 * struct example - a program with a mistake, and its corrected version
 * @plan: what the device is to do wrong, before the first round.
 * @round: does its work once, in the one way or the other.
 */
struct example {
	void (*plan)(struct link *l);
	void (*round)(struct link *l, bool fixed);
};

/* The link of the program, for what gets no argument. */
static struct link link_;

static inline void link_end(int status)
{
	if (link_.f) {
		vhca_fault_clear(link_.f);
		vhca_release(link_.f, "all");
	}
	fflush(NULL);
	_exit(status);
}

/* What must hold for the example to be run. */
#define need(holds) do {							\
	if (!(holds)) {								\
		fprintf(stderr, "%s:%d: not so: %s: %s (%s)\n", __FILE__,	\
			__LINE__, #holds, strerror(errno),			\
			link_.f ? vhca_fault_error(link_.f) : "");		\
		link_end(2);							\
	}									\
} while (0)

#define caught(...) do {							\
	printf("caught: " __VA_ARGS__);						\
	putchar('\n');								\
	link_end(1);								\
} while (0)

/*
 * Making it
 */
static inline void qp_modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	need(!ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE));
}

static inline void qp_connect(struct ibv_qp *qp, uint32_t peer, uint16_t lid)
{
	qp_modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, 0);
	qp_modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 },
		  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	qp_modify(qp, (struct ibv_qp_attr){
			.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
			.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
			.ah_attr = { .dlid = lid, .port_num = 1 },
		  },
		  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	qp_modify(qp, (struct ibv_qp_attr){
			.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
			.max_rd_atomic = 1,
		  },
		  IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Also after an error: nothing is left in the queues of the QPs. */
static inline void link_connect(struct link *l)
{
	struct ibv_port_attr port;

	need(!ibv_query_port(l->ctx, 1, &port));
	qp_connect(l->a.qp, l->b.qp->qp_num, port.lid);
	qp_connect(l->b.qp, l->a.qp->qp_num, port.lid);
}

static inline void side_open(struct link *l, struct side *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	s->scq = ibv_create_cq(l->ctx, MESSAGES, &s->waited[0], l->channel, 0);
	s->rcq = ibv_create_cq(l->ctx, MESSAGES, &s->waited[1], l->channel, 0);
	need(s->scq && s->rcq);
	init.send_cq = s->scq;
	init.recv_cq = s->rcq;
	s->qp = ibv_create_qp(l->pd, &init);
	need(s->qp);
}

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static inline void link_open(struct link *l)
{
	l->ctx = open_device("vhca0");
	need(l->ctx);
	l->f = vhca_fault_open(l->ctx);
	need(l->f);
	l->pd = ibv_alloc_pd(l->ctx);
	need(l->pd);
	l->channel = ibv_create_comp_channel(l->ctx);
	need(l->channel);
	l->mr = ibv_reg_mr(l->pd, l, sizeof(*l), IBV_ACCESS_LOCAL_WRITE);
	need(l->mr);
	side_open(l, &l->a);
	side_open(l, &l->b);
	link_connect(l);
}

static inline void side_close(struct side *s)
{
	need(!ibv_destroy_qp(s->qp));
	need(!ibv_destroy_cq(s->scq));
	need(!ibv_destroy_cq(s->rcq));
}

static inline void link_close(struct link *l)
{
	side_close(&l->a);
	side_close(&l->b);
	need(!ibv_dereg_mr(l->mr));
	need(!ibv_destroy_comp_channel(l->channel));
	need(!ibv_dealloc_pd(l->pd));
	vhca_fault_close(l->f);
	l->f = NULL;
	need(!ibv_close_device(l->ctx));
}

/*
 * Work
 */

/* Message @i of the link, from its memory with @mr. */
static inline void post_send_mr(struct link *l, struct side *s, int i, struct ibv_mr *mr,
				unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)&l->out[i], sizeof(l->out[i]), mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = flags,
	}, *bad;

	need(!ibv_post_send(s->qp, &wr, &bad));
}

static inline void post_send(struct link *l, struct side *s, int i)
{
	post_send_mr(l, s, i, l->mr, IBV_SEND_SIGNALED);
}

static inline void post_recv(struct link *l, struct side *s, int i)
{
	struct ibv_sge sge = { (uintptr_t)&l->in[i], sizeof(l->in[i]), l->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 }, *bad;

	need(!ibv_post_recv(s->qp, &wr, &bad));
}

static inline void arm(struct ibv_cq *cq)
{
	*(bool *)cq->cq_context = true;
	need(!ibv_req_notify_cq(cq, 0));
}

/* One completion, which must be a good one; false when there is none. */
static inline bool take(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	need(n >= 0);
	need(!n || wc.status == IBV_WC_SUCCESS);
	return n;
}

static inline void take_all(struct ibv_cq *cq)
{
	while (take(cq))
		;
}

/* A number that the device tells of an object. */
static inline long value(struct link *l, const char *kind, uint32_t number, const char *key)
{
	long n = vhca_fault_value(l->f, kind, number, key);

	need(n >= 0);
	return n;
}

static inline long unread(struct link *l, const struct ibv_cq *cq)
{
	return value(l, "cq", vhca_cqn(cq), "unread");
}

static inline bool pending(struct link *l, const char *stage)
{
	int n = vhca_fault_pending(l->f, "%s", stage);

	need(n >= 0);
	return n;
}

/* Is anything on its way through the device, or to the handler of its interrupt? */
static inline bool under_way(struct link *l)
{
	return pending(l, "wqe") || pending(l, "cqe") || pending(l, "eqe") ||
	       pending(l, "msix") || value(l, "qp", l->a.qp->qp_num, "sq_waiting") ||
	       value(l, "qp", l->b.qp->qp_num, "sq_waiting") ||
	       value(l, "eq", (uint32_t)vhca_eqn(l->f, l->b.rcq), "unread");
}

static inline bool event_there(struct link *l, int ms)
{
	struct pollfd p = { .fd = l->channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/*
 * As ibv_get_cq_event(), which would wait for ever: when nothing is under way, and no
 * event came for that long a time, there is nothing that could raise one.
 */
static inline struct ibv_cq *get_event(struct link *l)
{
	struct ibv_cq *cqs[] = { l->a.scq, l->a.rcq, l->b.scq, l->b.rcq }, *cq;
	unsigned int i;
	void *context;

	while (!event_there(l, QUIET_MS)) {
		if (under_way(l) || event_there(l, QUIET_MS))
			continue;
		for (i = 0; i < 4; i++)
			if (*(bool *)cqs[i]->cq_context && unread(l, cqs[i]))
				caught("waits for ever: CQ %u has %ld unread, and no event comes",
				       vhca_cqn(cqs[i]), unread(l, cqs[i]));
		caught("waits for ever: no completion is there, and none is on its way");
	}
	need(!ibv_get_cq_event(l->channel, &cq, &context));
	return cq;
}

/* An event, acknowledged at once. */
static inline struct ibv_cq *wait_event(struct link *l)
{
	struct ibv_cq *cq = get_event(l);

	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* Poll until a completion comes, or cannot come. */
static inline struct ibv_wc wait_completion(struct link *l, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	unsigned int tries = 0;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (++tries % 1024 == 0 && !under_way(l) && !unread(l, cq))
			caught("polls for ever: no completion is there, and none is on its way");
	need(n == 1);
	return wc;
}

/*
 * Steps: what is held passes at certain calls of the application, which stays as it is,
 * as verbs.h calls by pointers.
 */
static int (*real_poll_cq)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
static int (*real_req_notify_cq)(struct ibv_cq *cq, int solicited_only);

static inline void watch_polls(struct link *l,
			       int (*poll_cq)(struct ibv_cq *cq, int num, struct ibv_wc *wc))
{
	if (l->ctx->ops.poll_cq != poll_cq)
		real_poll_cq = l->ctx->ops.poll_cq;
	l->ctx->ops.poll_cq = poll_cq;
}

static inline void watch_arms(struct link *l,
			      int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only))
{
	if (l->ctx->ops.req_notify_cq != req_notify_cq)
		real_req_notify_cq = l->ctx->ops.req_notify_cq;
	l->ctx->ops.req_notify_cq = req_notify_cq;
}

/* The oldest that is held at a stage passes, if there is one. */
#define step(l, ...) do {							\
	int err_ = vhca_step((l)->f, __VA_ARGS__);				\
										\
	need(!err_ || err_ == -EAGAIN);						\
} while (0)

static inline void plan_end(struct link *l)
{
	need(!vhca_fault_clear(l->f));
	need(!vhca_release(l->f, "all"));
}

/*
 * Rounds: one, which should catch the mistake; or with "--fixed", and how many if not a
 * thousand, those of the corrected version.
 */
static inline int example_main(int argc, char **argv, const struct example *example)
{
	bool fixed = argc > 1 && !strcmp(argv[1], "--fixed");
	long rounds = !fixed ? 1 : argc > 2 ? atol(argv[2]) : 1000, n;
	struct link *l = &link_;

	link_open(l);
	plan_end(l);
	example->plan(l);
	for (n = 0; n < rounds; n++) {
		memset(l->in, 0, sizeof(l->in));
		memset(l->out, (int)(n % 255) + 1, sizeof(l->out));
		example->round(l, fixed);
	}
	plan_end(l);
	link_close(l);
	printf("survived %ld rounds\n", rounds);
	return 0;
}

#endif
