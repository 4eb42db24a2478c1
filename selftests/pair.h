/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pair.h: two queue pairs in one process that reach each other, by the verbs API,
 * and what tests do with them: post, poll with a deadline, read the counters.
 */
#ifndef PAIR_H
#define PAIR_H

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include "clock.h"
#include "harness.h"
#include "library.h"

#define ENGINE_FILE	"/sys/module/vhca_device/parameters/engine"

/* xorshift64; *state must not be zero. */
static inline uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One of 0 to @n - 1. */
static inline uint32_t rnd_below(uint64_t *state, uint32_t n)
{
	return (rnd(state) >> 16) % n;
}

/* From the environment variable @name, else from the clock; never zero. */
static inline uint64_t seed_of(const char *name)
{
	const char *given = getenv(name);

	return (given ? strtoull(given, NULL, 0) : now_ns()) | 1;
}

static inline void fill(void *mem, size_t len, uint64_t seed)
{
	uint8_t *p = mem;
	uint64_t word = 0;
	size_t i;

	seed = seed * 0x9e3779b97f4a7c15ull | 1;
	for (i = 0; i < len; i++) {
		if (i % 8 == 0)
			word = rnd(&seed);
		p[i] = word >> (i % 8 * 8);
	}
}

/*
 * The engine
 */
static inline const char *engine_get(void)
{
	static char mode[32];
	FILE *f = fopen(ENGINE_FILE, "re");

	mode[0] = 0;
	if (f) {
		if (fgets(mode, sizeof(mode), f))
			mode[strcspn(mode, "\n")] = 0;
		fclose(f);
	}
	return mode;
}

static inline int engine_set(const char *mode)
{
	int fd = open(ENGINE_FILE, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, mode, strlen(mode)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

static char engine_at_start[32];

/* Tests end with _exit(): this runs once, when the program ends. */
static inline void engine_restore(void)
{
	if (engine_at_start[0])
		engine_set(engine_at_start);
}

static __attribute__((constructor)) void engine_remember(void)
{
	snprintf(engine_at_start, sizeof(engine_at_start), "%s", engine_get());
	atexit(engine_restore);
}

/*
 * Counters: "name value" lines under debugfs
 */
static inline long long counter_in(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	long long value, found = -1;
	char word[64];

	while (f && found < 0 && fscanf(f, "%63s %lld", word, &value) == 2)
		if (!strcmp(word, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* Of the virtual HCA's function @index; -1 when there is no such counter. */
static inline long long device_counter(int index, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/counters", index);
	return counter_in(path, name);
}

/* Of the driver, for vhcaN. */
static inline long long driver_counter(int index, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca/vhca%d/counters", index);
	return counter_in(path, name);
}

/* State letter of a thread of this process, 0 when there is no such thread. */
static inline char thread_state(pid_t tid)
{
	char path[64], line[256], *paren;
	char state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f)) {
		paren = strrchr(line, ')');
		state = paren && paren[1] ? paren[2] : 0;
	}
	fclose(f);
	return state;
}

/*
 * The pair
 */

/**
 * struct pair_opts - how a pair is made
 * @type: of the QPs; zero is RC. Of XRC the first end sends and the second receives.
 * @srq: receives are posted to an SRQ. In an XRC pair they always are.
 * @send_ops: enum ibv_qp_create_send_ops_flags, for posting by calls.
 * @function: device of either end: vhcaN.
 * @channel: CQs have a completion channel.
 * @no_connect: leave the QPs in RESET.
 * @cqe: size of each of the four CQs.
 * @buf_len: bytes of registered memory at either end.
 * @access: IBV_ACCESS_REMOTE_*, of that memory and of the QPs.
 * @rd_atomic: max_rd_atomic.
 * @dest_rd_atomic: max_dest_rd_atomic.
 */
struct pair_opts {
	enum ibv_qp_type	type;
	bool			srq;
	uint64_t		send_ops;
	int			function[2];
	bool			channel;
	bool			no_connect;
	int			cqe;
	size_t			buf_len;
	int			access;
	uint8_t			rd_atomic;
	uint8_t			dest_rd_atomic;
	struct ibv_qp_cap	cap;
	int			sq_sig_all;
	enum ibv_mtu		mtu;
	uint8_t			timeout;
	uint8_t			retry_cnt;
	uint8_t			rnr_retry;
	uint8_t			min_rnr_timer;
};

#define PAIR_DEFAULTS {							\
	.cqe = 256,							\
	.buf_len = 64 * 1024,						\
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |	\
		  IBV_ACCESS_REMOTE_ATOMIC,				\
	.rd_atomic = 4,							\
	.dest_rd_atomic = 4,						\
	.cap = {							\
		.max_send_wr = 64, .max_recv_wr = 64,			\
		.max_send_sge = 4, .max_recv_sge = 4,			\
		.max_inline_data = 128,					\
	},								\
	.mtu = IBV_MTU_1024,						\
	.timeout = 14,							\
	.retry_cnt = 7,							\
	.rnr_retry = 7,							\
	.min_rnr_timer = 1,						\
}

#define PAIR_QKEY	0x11223344
#define GRH_LEN		40	/* what UD leaves in front of what it receives */

/**
 * struct end - one side: everything is its own, the context too
 * @srq: where receives are posted, if not to @qp.
 * @ah: UD: the way to the other end.
 * @peer_qpn: UD: its QP.
 * @peer_srqn: XRC: its SRQ.
 */
struct end {
	struct ibv_context	*ctx;
	struct ibv_pd		*pd;
	struct ibv_comp_channel	*channel;
	struct ibv_cq		*scq;
	struct ibv_cq		*rcq;
	struct ibv_qp		*qp;
	struct ibv_srq		*srq;
	struct ibv_xrcd		*xrcd;
	struct ibv_ah		*ah;
	uint32_t		peer_qpn;
	uint32_t		peer_srqn;
	struct ibv_mr		*mr;
	uint8_t			*buf;
	size_t			len;
	struct ibv_qp_cap	cap;	/* what was granted */
	uint16_t		lid;
};

struct pair {
	struct pair_opts	opts;
	struct end		end[2];
};

/* A piece of an end's memory. */
struct slice {
	uint32_t		off;
	uint32_t		len;
};

static inline struct ibv_context *open_vhca(struct __test_metadata *_metadata, int index)
{
	struct ibv_device **list;
	struct ibv_context *ctx = NULL;
	char name[16];
	int i, n;

	snprintf(name, sizeof(name), "vhca%d", index);
	list = ibv_get_device_list(&n);
	ASSERT_NE(NULL, list);
	for (i = 0; i < n && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	ASSERT_NE(NULL, ctx) {
		TH_LOG("%s cannot be opened: are both modules loaded?", name);
	}
	return ctx;
}

static inline uint16_t lid_of(struct ibv_context *ctx)
{
	struct ibv_port_attr port = {};

	return ibv_query_port(ctx, 1, &port) ? 0 : port.lid;
}

/* Waits for answers, and tries again. */
static inline bool asks(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
}

/* Answers. */
static inline bool answers(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV;
}

static inline int qp_to_init(struct ibv_qp *qp, const struct pair_opts *opts)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.qp_access_flags = opts->access,
		.qkey = PAIR_QKEY,
		.port_num = 1,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY :
								     IBV_QP_ACCESS_FLAGS));
}

static inline int qp_to_rtr(struct ibv_qp *qp, const struct pair_opts *opts,
			    uint16_t dlid, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = opts->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = dest_qpn & 0xffffff,
		.max_dest_rd_atomic = opts->dest_rd_atomic,
		.min_rnr_timer = opts->min_rnr_timer,
		.ah_attr = { .dlid = dlid, .port_num = 1 },
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (answers(qp))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

/* The first request is to have that PSN. */
static inline int qp_to_rts_at(struct ibv_qp *qp, const struct pair_opts *opts, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = opts->timeout,
		.retry_cnt = opts->retry_cnt,
		.rnr_retry = opts->rnr_retry,
		.sq_psn = psn & 0xffffff,
		.max_rd_atomic = opts->rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (asks(qp))
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (asks(qp) || answers(qp))
		mask |= IBV_QP_TIMEOUT;
	return ibv_modify_qp(qp, &attr, mask);
}

static inline int qp_to_rts(struct ibv_qp *qp, const struct pair_opts *opts)
{
	return qp_to_rts_at(qp, opts, qp->qp_num);
}

static inline int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* From RESET to RTS, towards another QP. Each starts at a PSN made of its QPN. */
static inline void qp_connect(struct __test_metadata *_metadata, struct ibv_qp *qp,
			      const struct pair_opts *opts, uint16_t dlid, uint32_t dest_qpn)
{
	ASSERT_EQ(0, qp_to_init(qp, opts));
	ASSERT_EQ(0, qp_to_rtr(qp, opts, dlid, dest_qpn));
	ASSERT_EQ(0, qp_to_rts(qp, opts));
}

/* What ibv_query_qp() says; IBV_QPS_UNKNOWN when it fails. */
static inline enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

static inline struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq,
				     const struct pair_opts *opts, struct ibv_qp_cap *granted)
{
	struct ibv_qp_init_attr init = {
		.send_cq = scq,
		.recv_cq = rcq,
		.cap = opts->cap,
		.qp_type = opts->type ? opts->type : IBV_QPT_RC,
		.sq_sig_all = opts->sq_sig_all,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (granted)
		*granted = init.cap;
	return qp;
}

/* The QP of one end: with its SRQ, and the kind that an XRC pair has there. */
static inline void end_make_qp(struct __test_metadata *_metadata, struct end *e,
			       const struct pair_opts *opts, int index)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = opts->type ? opts->type : IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.cap = opts->cap,
		.sq_sig_all = opts->sq_sig_all,
	};

	if (opts->type == IBV_QPT_XRC_SEND && index)
		init = (struct ibv_qp_init_attr_ex) {
			.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = e->xrcd,
		};
	else if (opts->type == IBV_QPT_XRC_SEND)
		init.recv_cq = NULL;
	if (opts->send_ops && init.qp_type != IBV_QPT_XRC_RECV) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = opts->send_ops;
	}
	if (!init.recv_cq || init.srq) {
		init.cap.max_recv_wr = 0;
		init.cap.max_recv_sge = 0;
	}
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	ASSERT_NE(NULL, e->qp) {
		TH_LOG("no QP of type %d: %s", init.qp_type, strerror(errno));
	}
	e->cap = init.cap;
}

static inline void end_make_srq(struct __test_metadata *_metadata, struct end *e,
				const struct pair_opts *opts)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = opts->cap.max_recv_wr, .max_sge = opts->cap.max_recv_sge },
	};

	e->srq = ibv_create_srq(e->pd, &init);
	ASSERT_NE(NULL, e->srq);
}

/* A domain of its own, and an SRQ in it that completes to the receive CQ. */
static inline void end_make_xrc(struct __test_metadata *_metadata, struct end *e,
				const struct pair_opts *opts)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = opts->cap.max_recv_wr, .max_sge = opts->cap.max_recv_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->pd,
		.cq = e->rcq,
	};

	e->xrcd = ibv_open_xrcd(e->ctx, &domain);
	ASSERT_NE(NULL, e->xrcd);
	init.xrcd = e->xrcd;
	e->srq = ibv_create_srq_ex(e->ctx, &init);
	ASSERT_NE(NULL, e->srq);
}

static inline void end_open(struct __test_metadata *_metadata, struct end *e,
			    const struct pair_opts *opts, int index)
{
	*e = (struct end){};
	e->ctx = open_vhca(_metadata, opts->function[index]);
	e->lid = lid_of(e->ctx);
	ASSERT_NE(0, e->lid);
	e->pd = ibv_alloc_pd(e->ctx);
	ASSERT_NE(NULL, e->pd);
	if (opts->channel) {
		e->channel = ibv_create_comp_channel(e->ctx);
		ASSERT_NE(NULL, e->channel);
	}
	e->scq = ibv_create_cq(e->ctx, opts->cqe, &e->scq, e->channel, 0);
	ASSERT_NE(NULL, e->scq);
	e->rcq = ibv_create_cq(e->ctx, opts->cqe, &e->rcq, e->channel, 0);
	ASSERT_NE(NULL, e->rcq);
	if (opts->type == IBV_QPT_XRC_SEND && index)
		end_make_xrc(_metadata, e, opts);
	else if (opts->type != IBV_QPT_XRC_SEND && opts->srq)
		end_make_srq(_metadata, e, opts);
	end_make_qp(_metadata, e, opts, index);

	e->len = opts->buf_len;
	e->buf = mmap(NULL, e->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)e->buf);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->len, IBV_ACCESS_LOCAL_WRITE | opts->access);
	ASSERT_NE(NULL, e->mr);
}

/* What a test has taken away itself is NULL. */
static inline void end_close(struct __test_metadata *_metadata, struct end *e)
{
	if (!e->ctx)
		return;
	if (e->qp)
		EXPECT_EQ(0, ibv_destroy_qp(e->qp));
	if (e->ah)
		EXPECT_EQ(0, ibv_destroy_ah(e->ah));
	if (e->srq)
		EXPECT_EQ(0, ibv_destroy_srq(e->srq));
	if (e->xrcd)
		EXPECT_EQ(0, ibv_close_xrcd(e->xrcd));
	if (e->scq)
		EXPECT_EQ(0, ibv_destroy_cq(e->scq));
	if (e->rcq)
		EXPECT_EQ(0, ibv_destroy_cq(e->rcq));
	if (e->channel)
		EXPECT_EQ(0, ibv_destroy_comp_channel(e->channel));
	if (e->mr)
		EXPECT_EQ(0, ibv_dereg_mr(e->mr));
	if (e->pd)
		EXPECT_EQ(0, ibv_dealloc_pd(e->pd));
	EXPECT_EQ(0, ibv_close_device(e->ctx));
	if (e->buf)
		munmap(e->buf, e->len);
}

/* What the other end must know of an end to reach it. */
struct address {
	uint16_t		lid;
	uint32_t		qpn;
	uint32_t		srqn;	/* XRC */
};

static inline struct address end_address(const struct end *e)
{
	struct address to = { .lid = e->lid, .qpn = e->qp->qp_num };

	if (e->qp->qp_type == IBV_QPT_XRC_RECV)
		ibv_get_srq_num(e->srq, &to.srqn);
	return to;
}

static inline void pair_connect(struct __test_metadata *_metadata, struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];

	qp_connect(_metadata, a->qp, &p->opts, b->lid, b->qp->qp_num);
	qp_connect(_metadata, b->qp, &p->opts, a->lid, a->qp->qp_num);
}

/* What a work request must say of where it goes; see wr_to_peer(). */
static inline void end_find_peer(struct __test_metadata *_metadata, struct end *e,
				 const struct address *peer)
{
	struct ibv_ah_attr attr = { .dlid = peer->lid, .port_num = 1 };

	e->peer_qpn = peer->qpn;
	e->peer_srqn = peer->srqn;
	if (e->qp->qp_type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->pd, &attr);
		ASSERT_NE(NULL, e->ah);
	}
}

static inline void pair_open(struct __test_metadata *_metadata, struct pair *p,
			     const struct pair_opts *opts)
{
	struct address address[2];
	int i;

	p->opts = *opts;
	for (i = 0; i < 2; i++) {
		end_open(_metadata, &p->end[i], opts, i);
		address[i] = end_address(&p->end[i]);
	}
	for (i = 0; i < 2; i++)
		end_find_peer(_metadata, &p->end[i], &address[!i]);
	if (!opts->no_connect)
		pair_connect(_metadata, p);
}

static inline void pair_close(struct __test_metadata *_metadata, struct pair *p)
{
	end_close(_metadata, &p->end[0]);
	end_close(_metadata, &p->end[1]);
	memset(p->end, 0, sizeof(p->end));
}

/* Through RESET to RTS again, with p->opts as they are now. */
static inline void pair_reconnect(struct __test_metadata *_metadata, struct pair *p)
{
	ASSERT_EQ(0, qp_to(p->end[0].qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to(p->end[1].qp, IBV_QPS_RESET));
	pair_connect(_metadata, p);
}

/*
 * Posting
 */
#define MAX_SLICES	32

static inline void slices_to_sges(const struct end *e, const struct slice *s, int n,
				  struct ibv_sge *sge)
{
	int i;

	for (i = 0; i < n; i++)
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)e->buf + s[i].off,
			.length = s[i].len,
			.lkey = e->mr->lkey,
		};
}

static inline struct ibv_send_wr send_wr(uint64_t wr_id, struct ibv_sge *sge, int n,
					 unsigned int flags)
{
	return (struct ibv_send_wr) {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = n,
		.opcode = IBV_WR_SEND,
		.send_flags = flags,
	};
}

static inline struct ibv_recv_wr recv_wr(uint64_t wr_id, struct ibv_sge *sge, int n)
{
	return (struct ibv_recv_wr) {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = n,
	};
}

/* Where a WR goes, in the transports in which each says so. */
static inline void wr_to_peer(const struct end *e, struct ibv_send_wr *wr)
{
	if (e->qp->qp_type == IBV_QPT_UD) {
		wr->wr.ud.ah = e->ah;
		wr->wr.ud.remote_qpn = e->peer_qpn;
		wr->wr.ud.remote_qkey = PAIR_QKEY;
	}
	if (e->qp->qp_type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = e->peer_srqn;
}

static inline int post_send_sges(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n,
				 unsigned int flags)
{
	struct ibv_send_wr wr = send_wr(wr_id, sge, n, flags), *bad = NULL;

	return ibv_post_send(qp, &wr, &bad);
}

static inline int post_recv_sges(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = recv_wr(wr_id, sge, n), *bad = NULL;

	return ibv_post_recv(qp, &wr, &bad);
}

/* To where the end takes its receives from. */
static inline int post_recv_end(const struct end *e, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = recv_wr(wr_id, sge, n), *bad = NULL;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) :
			ibv_post_recv(e->qp, &wr, &bad);
}

static inline int post_send_slices(struct end *e, uint64_t wr_id, const struct slice *s, int n,
				   unsigned int flags)
{
	struct ibv_sge sge[MAX_SLICES];
	struct ibv_send_wr wr = send_wr(wr_id, sge, n, flags), *bad = NULL;

	slices_to_sges(e, s, n, sge);
	wr_to_peer(e, &wr);
	return ibv_post_send(e->qp, &wr, &bad);
}

static inline int post_recv_slices(struct end *e, uint64_t wr_id, const struct slice *s, int n)
{
	struct ibv_sge sge[MAX_SLICES];

	slices_to_sges(e, s, n, sge);
	return post_recv_end(e, wr_id, sge, n);
}

static inline int post_send(struct end *e, uint64_t wr_id, uint32_t off, uint32_t len,
			    unsigned int flags)
{
	struct slice s = { off, len };

	return post_send_slices(e, wr_id, &s, 1, flags);
}

static inline int post_recv(struct end *e, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct slice s = { off, len };

	return post_recv_slices(e, wr_id, &s, 1);
}

/*
 * Completions and events
 */

/* Polls until there is one; false when the deadline is over. */
static inline bool poll_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = 0;

	memset(wc, 0, sizeof(*wc));
	return wait_until((n = ibv_poll_cq(cq, 1, wc)) != 0) && n == 1;
}

static inline bool cq_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc) == 0;
}

/* The next completion, which must be this one. */
static inline struct ibv_wc expect_wc(struct __test_metadata *_metadata, struct ibv_cq *cq,
				      uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	ASSERT_TRUE(poll_wc(cq, &wc)) {
		TH_LOG("no completion for wr_id %llu", (unsigned long long)wr_id);
	}
	ASSERT_EQ(status, wc.status) {
		TH_LOG("wr_id %llu: %s, vendor_err 0x%x", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status), wc.vendor_err);
	}
	ASSERT_EQ(wr_id, wc.wr_id);
	return wc;
}

/* A message of @len bytes from one end to the other, data checked. */
static inline void exchange(struct __test_metadata *_metadata, struct end *from, struct end *to,
			    uint32_t len, uint64_t seed)
{
	uint32_t grh = from->qp->qp_type == IBV_QPT_UD ? GRH_LEN : 0;
	struct ibv_wc wc;

	fill(from->buf, len, seed);
	memset(to->buf, 0, grh + len);
	ASSERT_EQ(0, post_recv(to, seed + 1, 0, grh + len));
	ASSERT_EQ(0, post_send(from, seed, 0, len, IBV_SEND_SIGNALED));
	expect_wc(_metadata, from->scq, seed, IBV_WC_SUCCESS);
	wc = expect_wc(_metadata, to->rcq, seed + 1, IBV_WC_SUCCESS);
	ASSERT_EQ(grh + len, wc.byte_len);
	ASSERT_EQ(0, memcmp(from->buf, to->buf + grh, len));
}

/* Readable before @ms are over. */
static inline bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

/* The next async event, acknowledged; false when none comes. */
static inline bool async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	if (!readable(ctx->async_fd, DEADLINE_NS / 1000000) || ibv_get_async_event(ctx, event))
		return false;
	ibv_ack_async_event(event);
	return true;
}

/* The next completion event, acknowledged; NULL when none comes. */
static inline struct ibv_cq *comp_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable(channel->fd, DEADLINE_NS / 1000000) ||
	    ibv_get_cq_event(channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

#endif
