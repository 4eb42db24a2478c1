/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * link.h: one process's half of some RC connections: QPs with a receive CQ each,
 * which share a send CQ, a channel and a piece of memory. For devices with LIDs and
 * such with GIDs.
 */
#ifndef LINK_H
#define LINK_H

#include <fcntl.h>
#include <infiniband/verbs.h>

#include "util.h"

#define MAX_DEPTH	256

/**
 * struct options - what is measured, as the command line says
 * @address: of the device, for RDMA CM
 * @size: of a message
 * @depth: of the queues of a QP, less for large messages
 * @signal: every how many sends is signaled
 * @qps: connections, of which one is busy at a time
 * @count: objects or rounds, by the test
 * @mode: how a receiver waits: polling, events or hybrid
 * @against: another way, that it takes in turn with that one
 * @rate: messages a second, offered whatever becomes of them; 0: as many as go
 * @batch: WRs in a list
 * @workers: threads that the receiver's I/O thread hands messages to
 * @work: nanoseconds that each message is worked on
 * @moderate: CQEs before an event, if not @period microseconds pass
 * @solicited: every how many messages is solicited, if any
 * @write: RDMA WRITEs in place of SENDs
 * @epoll: wait by epoll, the channel non-blocking
 * @cpu: of sender and receiver, -1: any
 */
struct options {
	const char *dev;
	int gid;
	const char *address;
	int size;
	int depth;
	int signal;
	int qps;
	int count;
	const char *mode;
	const char *against;
	double rate;
	double seconds;
	int batch;
	int cqe;
	int workers;
	int work;
	int moderate;
	int period;
	int solicited;
	bool write;
	bool epoll;
	int cpu[2];
	const char *dump;
};

/* What the peer must know. */
struct address {
	uint16_t lid;
	union ibv_gid gid;
	uint32_t rkey;
	uint64_t buf;
	uint32_t qpn[];
};

struct link {
	const struct options *o;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq;
	struct ibv_cq **rcq;
	struct ibv_qp **qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint32_t stride;	/* between the messages of buf */
	struct address *peer;
};

static inline struct ibv_context *open_dev(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("device %s", name);
	return ctx;
}

static inline struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq,
				     uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = scq,
		.recv_cq = rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = depth, .max_recv_wr = depth,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS))
		die("QP");
	return qp;
}

static inline void connect_qp(struct ibv_qp *qp, const struct options *o,
			      const struct address *to, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {
			.port_num = 1,
			.dlid = to->lid,
			.is_global = o->gid >= 0,
			.grh = {
				.dgid = to->gid, .hop_limit = 1,
				.sgid_index = o->gid >= 0 ? (uint8_t)o->gid : 0,
			},
		},
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("to RTS");
}

static inline void port_address(struct ibv_context *ctx, const struct options *o,
				struct address *a)
{
	struct ibv_port_attr port = {};

	if (ibv_query_port(ctx, 1, &port))
		die("port");
	a->lid = port.lid;
	if (o->gid >= 0 && ibv_query_gid(ctx, 1, o->gid, &a->gid))
		die("GID %d", o->gid);
}

static inline void moderate(struct ibv_cq *cq, const struct options *o)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = o->moderate, .cq_period = o->period },
	};

	if (o->moderate && ibv_modify_cq(cq, &attr))
		die("moderation");
}

static inline size_t address_size(const struct options *o)
{
	return sizeof(struct address) + (size_t)o->qps * sizeof(uint32_t);
}

/* Open the device and make it all; what the peer must know goes to @mine. */
static inline void link_open(struct link *l, const struct options *o, struct address *mine)
{
	size_t len;
	int i;

	*l = (struct link){ .o = o, .stride = o->size < 64 ? 64 : (uint32_t)o->size };
	len = (size_t)l->stride * o->depth;
	l->ctx = open_dev(o->dev);
	l->pd = ibv_alloc_pd(l->ctx);
	l->channel = ibv_create_comp_channel(l->ctx);
	l->scq = ibv_create_cq(l->ctx, 2 * MAX_DEPTH, NULL, NULL, 0);
	l->rcq = calloc(o->qps, sizeof(*l->rcq));
	l->qp = calloc(o->qps, sizeof(*l->qp));
	l->buf = shared_page(len);
	/* No page is to be found missing while we measure. */
	memset(l->buf, 1, len);
	if (!l->pd || !l->channel || !l->scq)
		die("objects");
	l->mr = ibv_reg_mr(l->pd, l->buf, len,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!l->mr)
		die("memory region");
	for (i = 0; i < o->qps; i++) {
		l->rcq[i] = ibv_create_cq(l->ctx, o->cqe, (void *)(intptr_t)i, l->channel, 0);
		if (!l->rcq[i])
			die("CQ %d", i);
		moderate(l->rcq[i], o);
		l->qp[i] = make_qp(l->pd, l->scq, l->rcq[i], o->depth);
		mine->qpn[i] = l->qp[i]->qp_num;
	}
	port_address(l->ctx, o, mine);
	mine->rkey = l->mr->rkey;
	mine->buf = (uintptr_t)l->buf;
}

static inline void link_connect(struct link *l, struct address *peer)
{
	int i;

	l->peer = peer;
	for (i = 0; i < l->o->qps; i++)
		connect_qp(l->qp[i], l->o, peer, peer->qpn[i]);
}

static inline void link_close(struct link *l)
{
	/* The end of the file takes the rest along. */
	ibv_close_device(l->ctx);
}

static inline uint8_t *message(const struct link *l, uint64_t n)
{
	return l->buf + (n % l->o->depth) * l->stride;
}

static inline void post_recvs(struct link *l, int q, uint64_t first, int n)
{
	struct ibv_recv_wr wr[MAX_DEPTH], *bad;
	struct ibv_sge sge[MAX_DEPTH];
	int i;

	if (!n)
		return;
	for (i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)message(l, first + i),
					   (uint32_t)l->o->size, l->mr->lkey };
		wr[i] = (struct ibv_recv_wr){ .wr_id = first + i, .next = &wr[i + 1],
					      .sg_list = &sge[i], .num_sge = 1 };
	}
	wr[n - 1].next = NULL;
	if (ibv_post_recv(l->qp[q], wr, &bad))
		die("ibv_post_recv");
}

/* Messages @first to @first + @n - 1, one in o->signal signaled. */
static inline void post_sends(struct link *l, int q, uint64_t first, int n, unsigned int flags)
{
	const struct options *o = l->o;
	struct ibv_send_wr wr[MAX_DEPTH], *bad;
	struct ibv_sge sge[MAX_DEPTH];
	uint64_t id;
	int i;

	for (i = 0; i < n; i++) {
		id = first + i;
		sge[i] = (struct ibv_sge){ (uintptr_t)message(l, id), (uint32_t)o->size,
					   l->mr->lkey };
		wr[i] = (struct ibv_send_wr){
			.wr_id = id,
			.next = &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = o->write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
			.send_flags = flags | (id % o->signal == (uint64_t)o->signal - 1 ?
					       IBV_SEND_SIGNALED : 0),
			.wr.rdma = { .rkey = l->peer->rkey,
				     .remote_addr = l->peer->buf + (id % o->depth) * l->stride },
		};
		if (o->solicited && id % o->solicited == (uint64_t)o->solicited - 1)
			wr[i].send_flags |= IBV_SEND_SOLICITED;
	}
	wr[n - 1].next = NULL;
	if (ibv_post_send(l->qp[q], wr, &bad))
		die("ibv_post_send");
}

/* Send completions that are there: messages which they say are done. */
static inline int reap_sends(struct link *l)
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(l->scq, 16, wc);

	for (i = 0; i < n; i++)
		if (wc[i].status)
			die("send %s", ibv_wc_status_str(wc[i].status));
	return n * l->o->signal;
}

#endif
