/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vhca context without the library: ioctl and mmap on /dev/vhcaN,
 * queues built and read by hand. Functions that can fail return 0 or a negative
 * errno, so that a test compares the errno itself.
 */
#ifndef RAW_H
#define RAW_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../uapi/vhca_abi.h"

#define RAW_DEADLINE_MS	20000	/* for what must happen, on the slowest machine */
#define RAW_LID(fn)	((fn) + 1)

/**
 * struct raw_ctx - an open file with one UAR, one PD
 * @uar_page: mapped UAR page.
 * @dbr_page: mapped page of doorbell records.
 * @slot: next slot to give away.
 */
struct raw_ctx {
	int		fd;
	int		fn;
	uint32_t	pd;
	struct vhca_alloc_uar uar;
	void		*uar_page;
	void		*dbr_page;
	uint32_t	slot;
	uint16_t	lid;
};

struct raw_mr {
	uint8_t		*addr;
	size_t		len;
	uint32_t	lkey;
	uint32_t	rkey;
};

/**
 * struct raw_cq - a completion queue
 * @ci: CQEs consumed.
 * @events: events read; gives the arm's sequence number.
 */
struct raw_cq {
	struct raw_ctx	*ctx;
	struct vhca_create_cq made;
	struct vhca_cqe	*ring;
	uint32_t	ci;
	uint32_t	events;
};

struct raw_qp {
	struct raw_ctx	*ctx;
	struct vhca_create_qp made;
	uint8_t		*buf;
	uint16_t	sq_pi;
	uint16_t	rq_pi;
};

struct raw_srq {
	struct raw_ctx	*ctx;
	struct vhca_create_srq made;
	uint8_t		*buf;
	uint16_t	pi;
};

/* A completion in host byte order. */
struct raw_wc {
	uint32_t	imm;
	uint32_t	byte_len;
	uint32_t	qpn;
	uint32_t	src_qpn;
	uint16_t	wqe_index;
	uint16_t	slid;
	uint8_t		flags;
	uint8_t		status;
	uint8_t		vendor_err;
	uint8_t		opcode;
};

static inline int raw_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

/* Time */

static inline long long raw_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

/* Wait until a condition holds; false when the deadline passed before. */
#define RAW_WAIT(cond) ({						\
	long long end_ = raw_ms() + RAW_DEADLINE_MS;			\
	bool done_;							\
	while (!(done_ = (cond)) && raw_ms() < end_)			\
		sched_yield();						\
	done_;								\
})

/* Counters */

/* Value behind @name in a file of "name value" lines, or -1. */
static inline long long raw_counter(const char *path, const char *name)
{
	char line[256], key[64];
	long long val, found = -1;
	FILE *f = fopen(path, "r");

	if (!f) {
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
		f = fopen(path, "r");
	}
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lld", key, &val) == 2 && !strcmp(key, name))
			found = val;
	}
	fclose(f);
	return found;
}

static inline long long raw_device_counter(int fn, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/counters", fn);
	return raw_counter(path, name);
}

static inline long long raw_driver_counter(int fn, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca/vhca%d/counters", fn);
	return raw_counter(path, name);
}

/* Who executes WQEs: "inline" or "threaded". */
static inline int raw_engine(const char *mode)
{
	int fd = open("/sys/module/vhca_device/parameters/engine", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, mode, strlen(mode));
	close(fd);
	return n < 0 ? -EINVAL : 0;
}

/* Contexts */

static inline int raw_open_file(int fn)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/vhca%d", fn);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline void *raw_map(int fd, uint64_t offset, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

static inline int raw_alloc_pd(int fd, uint32_t *pd)
{
	struct vhca_object o = {};
	int err = raw_ioctl(fd, VHCA_IOC_ALLOC_PD, &o);

	*pd = o.number;
	return err;
}

static inline int raw_free(int fd, unsigned long cmd, uint32_t number)
{
	struct vhca_object o = { .number = number };

	return raw_ioctl(fd, cmd, &o);
}

static inline int raw_open_uar(struct raw_ctx *ctx)
{
	int err = raw_ioctl(ctx->fd, VHCA_IOC_ALLOC_UAR, &ctx->uar);

	if (err)
		return err;
	ctx->uar_page = raw_map(ctx->fd, ctx->uar.uar_offset, VHCA_UAR_PAGE_SIZE);
	ctx->dbr_page = raw_map(ctx->fd, ctx->uar.dbr_offset, VHCA_UAR_PAGE_SIZE);
	ctx->slot = VHCA_UAR_FIRST_SLOT;
	return ctx->uar_page && ctx->dbr_page ? 0 : -ENOMEM;
}

static inline int raw_open(struct raw_ctx *ctx, int fn)
{
	struct vhca_query_port port = { .port = 1 };
	int err;

	memset(ctx, 0, sizeof(*ctx));
	ctx->fn = fn;
	ctx->fd = raw_open_file(fn);
	if (ctx->fd < 0)
		return ctx->fd;
	err = raw_ioctl(ctx->fd, VHCA_IOC_QUERY_PORT, &port);
	ctx->lid = port.lid;
	if (!err)
		err = raw_alloc_pd(ctx->fd, &ctx->pd);
	return err ? err : raw_open_uar(ctx);
}

static inline void raw_close(struct raw_ctx *ctx)
{
	munmap(ctx->uar_page, VHCA_UAR_PAGE_SIZE);
	munmap(ctx->dbr_page, VHCA_UAR_PAGE_SIZE);
	close(ctx->fd);
}

/* Event files */

static inline int raw_event_file(int fd, unsigned long cmd)
{
	struct vhca_create_event_file e = { .fd = VHCA_INVALID_FD };
	int err = raw_ioctl(fd, cmd, &e);

	return err ? err : e.fd;
}

static inline int raw_channel(int fd)
{
	return raw_event_file(fd, VHCA_IOC_CREATE_CHANNEL);
}

static inline int raw_destroy_channel(int fd, int channel)
{
	struct vhca_destroy_channel d = { .fd = channel };

	return raw_ioctl(fd, VHCA_IOC_DESTROY_CHANNEL, &d);
}

/* 1 when the descriptor gets readable in time, else 0. */
static inline int raw_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

static inline int raw_read_event(int fd, struct vhca_comp_event *ev)
{
	ssize_t n;

	if (!raw_readable(fd, RAW_DEADLINE_MS))
		return -ETIMEDOUT;
	n = read(fd, ev, sizeof(*ev));
	if (n < 0)
		return -errno;
	return n == sizeof(*ev) ? 0 : -EPROTO;
}

static inline int raw_read_async(int fd, struct vhca_async_event *ev)
{
	ssize_t n;

	if (!raw_readable(fd, RAW_DEADLINE_MS))
		return -ETIMEDOUT;
	n = read(fd, ev, sizeof(*ev));
	if (n < 0)
		return -errno;
	return n == sizeof(*ev) ? 0 : -EPROTO;
}

static inline int raw_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Memory regions */

static inline int raw_reg(struct raw_ctx *ctx, struct raw_mr *mr, uint32_t access)
{
	struct vhca_reg_mr r = {
		.addr = (uintptr_t)mr->addr, .length = mr->len,
		.iova = (uintptr_t)mr->addr, .pd = ctx->pd, .access = access,
	};
	int err = raw_ioctl(ctx->fd, VHCA_IOC_REG_MR, &r);

	mr->lkey = r.lkey;
	mr->rkey = r.rkey;
	return err;
}

/* Fresh zeroed memory, registered for local write. */
static inline int raw_mr(struct raw_ctx *ctx, struct raw_mr *mr, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	mr->addr = p;
	mr->len = len;
	return raw_reg(ctx, mr, VHCA_ACCESS_LOCAL_WRITE);
}

static inline int raw_dereg(struct raw_ctx *ctx, struct raw_mr *mr)
{
	return raw_free(ctx->fd, VHCA_IOC_DEREG_MR, mr->lkey);
}

/* Doorbells */

static inline void raw_store32(__be32 *where, uint32_t val)
{
	__atomic_store_n(where, htobe32(val), __ATOMIC_RELEASE);
}

static inline uint32_t raw_load32(const __be32 *where)
{
	return be32toh(__atomic_load_n(where, __ATOMIC_ACQUIRE));
}

static inline void raw_full_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline int raw_kick(struct raw_ctx *ctx, uint32_t slot)
{
	return raw_ioctl(ctx->fd, VHCA_IOC_KICK, (void *)VHCA_KICK_ARG(ctx->uar.uar, slot));
}

/* Store a doorbell and kick when the device is not watching. */
static inline int raw_ring(struct raw_ctx *ctx, uint32_t slot, uint64_t doorbell)
{
	struct vhca_uar_head *head = ctx->uar_page;
	struct vhca_uar_slot *s = (struct vhca_uar_slot *)ctx->uar_page + slot;

	__atomic_store_n(&s->doorbell, htobe64(doorbell), __ATOMIC_RELEASE);
	raw_full_barrier();
	return raw_load32(&head->kick_needed) ? raw_kick(ctx, slot) : 0;
}

/* Completion queues */

static inline struct vhca_cq_dbr *raw_cq_dbr(struct raw_cq *cq)
{
	return (struct vhca_cq_dbr *)cq->ctx->dbr_page + cq->made.slot;
}

/* A queue is in memory of the user, or the kernel's to be mapped. */
static inline void *raw_queue(int fd, uint64_t addr, uint64_t offset, uint64_t size)
{
	return addr ? (void *)(uintptr_t)addr : raw_map(fd, offset, size);
}

/* The caller has filled in cqe, comp_vector, channel_fd and cookie of @made. */
static inline int raw_make_cq(struct raw_ctx *ctx, struct raw_cq *cq)
{
	int err;

	cq->ctx = ctx;
	cq->made.uar = ctx->uar.uar;
	cq->made.slot = ctx->slot;
	err = raw_ioctl(ctx->fd, VHCA_IOC_CREATE_CQ, &cq->made);
	if (err)
		return err;
	ctx->slot++;
	cq->ring = raw_queue(ctx->fd, cq->made.buf_addr, cq->made.buf_offset,
			     cq->made.buf_size);
	return cq->ring ? 0 : -ENOMEM;
}

static inline int raw_cq(struct raw_ctx *ctx, struct raw_cq *cq, uint32_t cqe, int channel)
{
	memset(cq, 0, sizeof(*cq));
	cq->made.cqe = cqe;
	cq->made.channel_fd = channel;
	cq->made.cookie = (uintptr_t)cq;
	return raw_make_cq(ctx, cq);
}

/* Room for @cqe CQEs; the ring in hand is the new one then. */
static inline int raw_resize_cq(struct raw_cq *cq, uint32_t cqe)
{
	struct vhca_resize_cq r = { .cqn = cq->made.cqn, .cqe = cqe };
	int err = raw_ioctl(cq->ctx->fd, VHCA_IOC_RESIZE_CQ, &r);

	if (err)
		return err;
	munmap(cq->ring, cq->made.buf_size);
	cq->made.cqe = r.cqe;
	cq->made.buf_offset = r.buf_offset;
	cq->made.buf_size = r.buf_size;
	cq->ring = raw_map(cq->ctx->fd, r.buf_offset, r.buf_size);
	return cq->ring ? 0 : -ENOMEM;
}

static inline int raw_moderate(struct raw_cq *cq, uint32_t count, uint32_t period)
{
	struct vhca_modify_cq m = { .cqn = cq->made.cqn, .count = count, .period = period };

	return raw_ioctl(cq->ctx->fd, VHCA_IOC_MODIFY_CQ, &m);
}

static inline int raw_destroy_cq(struct raw_cq *cq, struct vhca_destroy_cq *d)
{
	struct vhca_destroy_cq mine = {};

	if (!d)
		d = &mine;
	memset(d, 0, sizeof(*d));
	d->cqn = cq->made.cqn;
	return raw_ioctl(cq->ctx->fd, VHCA_IOC_DESTROY_CQ, d);
}

/* The CQE at the consumer index, or NULL while it is not ours. */
static inline struct vhca_cqe *raw_next_cqe(struct raw_cq *cq)
{
	struct vhca_cqe *cqe = &cq->ring[cq->ci & (cq->made.cqe - 1)];
	uint8_t owner = __atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE);
	uint8_t lap = (cq->ci / cq->made.cqe) & 1;

	return (owner & VHCA_CQE_OWNER) != lap ? cqe : NULL;
}

static inline bool raw_poll(struct raw_cq *cq, struct raw_wc *wc)
{
	struct vhca_cqe *cqe = raw_next_cqe(cq);

	if (!cqe)
		return false;
	wc->imm = be32toh(cqe->imm);
	wc->byte_len = be32toh(cqe->byte_len);
	wc->qpn = be32toh(cqe->flags_qpn) & VHCA_QPN_MASK;
	wc->flags = be32toh(cqe->flags_qpn) >> VHCA_CQE_FLAGS_SHIFT;
	wc->src_qpn = be32toh(cqe->src_qpn);
	wc->wqe_index = be16toh(cqe->wqe_index);
	wc->slid = be16toh(cqe->slid);
	wc->status = cqe->status;
	wc->vendor_err = cqe->vendor_err;
	wc->opcode = cqe->opcode;
	cq->ci++;
	raw_store32(&raw_cq_dbr(cq)->ci, cq->ci & VHCA_CI_MASK);
	return true;
}

static inline int raw_wait_wc(struct raw_cq *cq, struct raw_wc *wc)
{
	return RAW_WAIT(raw_poll(cq, wc)) ? 0 : -ETIMEDOUT;
}

static inline int raw_ring_arm(struct raw_cq *cq, uint32_t arm)
{
	return raw_ring(cq->ctx, cq->made.slot, (uint64_t)arm << VHCA_DB_ARM_SHIFT |
			(uint64_t)cq->made.cqn << VHCA_DB_NUM_SHIFT);
}

static inline uint32_t raw_arm_word(struct raw_cq *cq, uint32_t sn, uint32_t ci, bool solicited)
{
	(void)cq;
	return (sn & VHCA_ARM_SN_MASK) << VHCA_ARM_SN_SHIFT |
	       (solicited ? VHCA_ARM_SOLICITED : 0) | (ci & VHCA_CI_MASK);
}

/* Store an arm word; ring the doorbell when there is a CQE already. */
static inline int raw_arm_with(struct raw_cq *cq, uint32_t arm)
{
	raw_store32(&raw_cq_dbr(cq)->arm, arm);
	raw_full_barrier();
	return raw_next_cqe(cq) ? raw_ring_arm(cq, arm) : 0;
}

static inline int raw_arm(struct raw_cq *cq, bool solicited)
{
	return raw_arm_with(cq, raw_arm_word(cq, cq->events + 1, cq->ci, solicited));
}

/* Read one event, which must be this CQ's. */
static inline int raw_cq_event(struct raw_cq *cq)
{
	struct vhca_comp_event ev;
	int err = raw_read_event(cq->made.channel_fd, &ev);

	if (err)
		return err;
	if (ev.cookie != cq->made.cookie || ev.cqn != cq->made.cqn || ev.rsvd)
		return -EPROTO;
	cq->events++;
	return 0;
}

/* Queue pairs */

static inline struct vhca_qp_dbr *raw_qp_dbr(struct raw_qp *qp)
{
	return (struct vhca_qp_dbr *)qp->ctx->dbr_page + qp->made.slot;
}

/*
 * The caller has filled in shifts and cookie of @made, and type, srqn, xrcd where they
 * are not those of an RC QP with an RQ. No @rcq: it receives nothing.
 */
static inline int raw_make_qp(struct raw_ctx *ctx, struct raw_qp *qp, struct raw_cq *scq,
			      struct raw_cq *rcq)
{
	int err;

	qp->ctx = ctx;
	if (!qp->made.type)
		qp->made.type = VHCA_QPT_RC;
	if (qp->made.type == VHCA_QPT_XRC_RECV)
		return raw_ioctl(ctx->fd, VHCA_IOC_CREATE_QP, &qp->made);
	qp->made.pd = ctx->pd;
	qp->made.send_cqn = scq->made.cqn;
	qp->made.recv_cqn = rcq ? rcq->made.cqn : 0;
	qp->made.uar = ctx->uar.uar;
	qp->made.slot = ctx->slot;
	err = raw_ioctl(ctx->fd, VHCA_IOC_CREATE_QP, &qp->made);
	if (err)
		return err;
	ctx->slot++;
	qp->buf = raw_queue(ctx->fd, qp->made.buf_addr, qp->made.buf_offset,
			    qp->made.buf_size);
	return qp->buf ? 0 : -ENOMEM;
}

#define RAW_SQ_SHIFT	6
#define RAW_RQ_SHIFT	6
#define RAW_SGE_SHIFT	1

static inline int raw_qp(struct raw_ctx *ctx, struct raw_qp *qp, struct raw_cq *scq,
			 struct raw_cq *rcq)
{
	memset(qp, 0, sizeof(*qp));
	qp->made.sq_shift = RAW_SQ_SHIFT;
	qp->made.rq_shift = RAW_RQ_SHIFT;
	qp->made.rq_sge_shift = RAW_SGE_SHIFT;
	qp->made.cookie = (uintptr_t)qp;
	return raw_make_qp(ctx, qp, scq, rcq);
}

/* A QP of any type; an XRC_RECV QP in the domain @xrcd. */
static inline int raw_qp_of(struct raw_ctx *ctx, struct raw_qp *qp, uint32_t type,
			    struct raw_cq *cq, uint32_t xrcd)
{
	bool receives = type != VHCA_QPT_XRC_SEND && type != VHCA_QPT_XRC_RECV;

	memset(qp, 0, sizeof(*qp));
	qp->made.type = type;
	qp->made.xrcd = xrcd;
	qp->made.cookie = (uintptr_t)qp;
	if (type != VHCA_QPT_XRC_RECV)
		qp->made.sq_shift = RAW_SQ_SHIFT;
	if (receives) {
		qp->made.rq_shift = RAW_RQ_SHIFT;
		qp->made.rq_sge_shift = RAW_SGE_SHIFT;
	}
	return raw_make_qp(ctx, qp, cq, receives ? cq : NULL);
}

/* A QP of the type @type whose receives come from an SRQ. */
static inline int raw_qp_srq(struct raw_ctx *ctx, struct raw_qp *qp, uint32_t type,
			     struct raw_cq *cq, uint32_t srqn)
{
	memset(qp, 0, sizeof(*qp));
	qp->made.type = type;
	qp->made.srqn = srqn;
	qp->made.cookie = (uintptr_t)qp;
	qp->made.sq_shift = RAW_SQ_SHIFT;
	return raw_make_qp(ctx, qp, cq, cq);
}

static inline int raw_destroy_qp(struct raw_qp *qp)
{
	struct vhca_destroy_qp d = { .qpn = qp->made.qpn };

	return raw_ioctl(qp->ctx->fd, VHCA_IOC_DESTROY_QP, &d);
}

static inline int raw_query_qp(struct raw_qp *qp, struct vhca_modify_qp *q)
{
	memset(q, 0, sizeof(*q));
	q->qpn = qp->made.qpn;
	return raw_ioctl(qp->ctx->fd, VHCA_IOC_QUERY_QP, q);
}

/* enum vhca_qp_state, or a negative errno. */
static inline int raw_state(struct raw_qp *qp)
{
	struct vhca_modify_qp q;
	int err = raw_query_qp(qp, &q);

	return err ? err : q.attr.state;
}

static inline int raw_modify(struct raw_qp *qp, uint32_t mask, const struct vhca_qp_attr *attr)
{
	struct vhca_modify_qp m = { .qpn = qp->made.qpn, .mask = mask, .attr = *attr };

	return raw_ioctl(qp->ctx->fd, VHCA_IOC_MODIFY_QP, &m);
}

/* The attributes that each step to RTS requires. */
#define RAW_INIT_MASK	(VHCA_QP_STATE | VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_ACCESS_FLAGS)
#define RAW_RTR_MASK	(VHCA_QP_STATE | VHCA_QP_AV | VHCA_QP_PATH_MTU | VHCA_QP_DEST_QPN | \
			 VHCA_QP_RQ_PSN | VHCA_QP_MAX_DEST_RD_ATOMIC | VHCA_QP_MIN_RNR_TIMER)
#define RAW_RTS_MASK	(VHCA_QP_STATE | VHCA_QP_TIMEOUT | VHCA_QP_RETRY_CNT | VHCA_QP_RNR_RETRY | \
			 VHCA_QP_SQ_PSN | VHCA_QP_MAX_QP_RD_ATOMIC)

/* Attributes for all three steps; the state is still to be set. */
static inline struct vhca_qp_attr raw_attr(uint16_t dlid, uint32_t dest_qpn)
{
	return (struct vhca_qp_attr) {
		.rq_psn = 0x1234, .sq_psn = 0x1234, .dest_qpn = dest_qpn,
		.path_mtu = 3, .min_rnr_timer = 1, .port_num = 1,
		.timeout = 14, .retry_cnt = 3, .rnr_retry = 7,
		.av = { .dlid = dlid, .port_num = 1 },
	};
}

static inline int raw_goto(struct raw_qp *qp, uint8_t state)
{
	struct vhca_qp_attr attr = { .state = state };

	return raw_modify(qp, VHCA_QP_STATE, &attr);
}

/* What each type requires; for the steps that a QP climbs. */
static inline uint32_t raw_step_mask(uint32_t type, uint8_t state)
{
	const uint32_t responder = VHCA_QP_MAX_DEST_RD_ATOMIC | VHCA_QP_MIN_RNR_TIMER;
	const uint32_t psn = VHCA_QP_STATE | VHCA_QP_SQ_PSN;

	switch (state) {
	case VHCA_QPS_INIT:
		return type == VHCA_QPT_UD ? (RAW_INIT_MASK & ~VHCA_QP_ACCESS_FLAGS) |
					     VHCA_QP_QKEY : RAW_INIT_MASK;
	case VHCA_QPS_RTR:
		if (type == VHCA_QPT_UD)
			return VHCA_QP_STATE;
		return type == VHCA_QPT_UC || type == VHCA_QPT_XRC_SEND ?
		       RAW_RTR_MASK & ~responder : RAW_RTR_MASK;
	default:
		if (type == VHCA_QPT_XRC_RECV)
			return psn | VHCA_QP_TIMEOUT;
		return type == VHCA_QPT_UC || type == VHCA_QPT_UD ? psn : RAW_RTS_MASK;
	}
}

static inline int raw_step(struct raw_qp *qp, uint8_t state, struct vhca_qp_attr attr)
{
	attr.state = state;
	return raw_modify(qp, raw_step_mask(qp->made.type, state), &attr);
}

/* From RESET up to @state. */
static inline int raw_climb(struct raw_qp *qp, uint8_t state, struct vhca_qp_attr attr)
{
	uint8_t s;
	int err = 0;

	for (s = VHCA_QPS_INIT; !err && s <= state; s++)
		err = raw_step(qp, s, attr);
	return err;
}

static inline int raw_connect(struct raw_qp *a, struct raw_qp *b)
{
	int err = raw_climb(a, VHCA_QPS_RTS, raw_attr(b->ctx->lid, b->made.qpn));

	return err ? err : raw_climb(b, VHCA_QPS_RTS, raw_attr(a->ctx->lid, a->made.qpn));
}

/*
 * ERR or anything else to RESET; the records start from zero again. So will the
 * doorbells, and repeat values that the device has seen: an empty one in between
 * makes the next a change.
 */
static inline int raw_reset_qp(struct raw_qp *qp)
{
	struct vhca_uar_slot *slot = (struct vhca_uar_slot *)qp->ctx->uar_page + qp->made.slot;
	int err;

	if (!qp->made.slot)
		return raw_goto(qp, VHCA_QPS_RESET);
	__atomic_store_n(&slot->doorbell, 0, __ATOMIC_RELEASE);
	err = raw_goto(qp, VHCA_QPS_RESET);
	if (err)
		return err;
	raw_store32(&raw_qp_dbr(qp)->sq_pi, 0);
	raw_store32(&raw_qp_dbr(qp)->rq_pi, 0);
	qp->sq_pi = 0;
	qp->rq_pi = 0;
	return 0;
}

/* Work requests */

static inline struct vhca_wqe_data raw_sge(const struct raw_mr *mr, size_t offset, uint32_t len)
{
	return (struct vhca_wqe_data) {
		.byte_count = htobe32(len),
		.lkey = htobe32(mr->lkey),
		.addr = htobe64((uintptr_t)mr->addr + offset),
	};
}

/* The basic block of the SQ at an index. */
static inline void *raw_sq_block(struct raw_qp *qp, uint16_t index)
{
	return qp->buf + ((index & ((1u << qp->made.sq_shift) - 1)) << VHCA_WQEBB_SHIFT);
}

static inline struct vhca_wqe_data *raw_rq_wqe(struct raw_qp *qp, uint16_t index)
{
	size_t sq = (size_t)VHCA_WQEBB_SIZE << qp->made.sq_shift;
	unsigned int shift = VHCA_WQE_SEG_SHIFT + qp->made.rq_sge_shift;

	return (void *)(qp->buf + sq +
			((size_t)(index & ((1u << qp->made.rq_shift) - 1)) << shift));
}

/* A send WQE of up to three SGEs, which fits one basic block. */
static inline struct vhca_wqe_ctrl *raw_build_send(struct raw_qp *qp, uint8_t flags,
						   const struct vhca_wqe_data *sge,
						   unsigned int nsge)
{
	struct vhca_wqe_ctrl *ctrl = raw_sq_block(qp, qp->sq_pi);

	*ctrl = (struct vhca_wqe_ctrl) {
		.idx_opcode = htobe32((uint32_t)qp->sq_pi << VHCA_WQE_IDX_SHIFT | VHCA_OP_SEND),
		.qpn_ds = htobe32(qp->made.qpn << VHCA_WQE_QPN_SHIFT | (1 + nsge)),
		.flags = flags,
	};
	if (nsge)
		memcpy(ctrl + 1, sge, nsge * sizeof(*sge));
	return ctrl;
}

static inline uint64_t raw_qp_doorbell(struct raw_qp *qp)
{
	return (uint64_t)qp->rq_pi << VHCA_DB_RQ_SHIFT |
	       (uint64_t)qp->sq_pi << VHCA_DB_SQ_SHIFT |
	       (uint64_t)qp->made.qpn << VHCA_DB_NUM_SHIFT;
}

static inline int raw_ring_qp(struct raw_qp *qp)
{
	return raw_ring(qp->ctx, qp->made.slot, raw_qp_doorbell(qp));
}

/* Hand over @blocks basic blocks that were built, without a doorbell. */
static inline void raw_produce(struct raw_qp *qp, unsigned int blocks)
{
	qp->sq_pi += blocks;
	raw_store32(&raw_qp_dbr(qp)->sq_pi, qp->sq_pi);
}

static inline int raw_post_built(struct raw_qp *qp)
{
	raw_produce(qp, 1);
	return raw_ring_qp(qp);
}

static inline int raw_send(struct raw_qp *qp, uint8_t flags, const struct raw_mr *mr,
			   size_t offset, uint32_t len)
{
	struct vhca_wqe_data sge = raw_sge(mr, offset, len);

	raw_build_send(qp, flags, &sge, 1);
	return raw_post_built(qp);
}

static inline int raw_post_recv(struct raw_qp *qp)
{
	qp->rq_pi++;
	raw_store32(&raw_qp_dbr(qp)->rq_pi, qp->rq_pi);
	raw_full_barrier();
	return raw_load32(&raw_qp_dbr(qp)->rq_watch) ? raw_ring_qp(qp) : 0;
}

static inline int raw_recv_sge(struct raw_qp *qp, struct vhca_wqe_data sge)
{
	struct vhca_wqe_data *wqe = raw_rq_wqe(qp, qp->rq_pi);

	wqe[0] = sge;
	if (qp->made.rq_sge_shift)
		wqe[1] = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
	return raw_post_recv(qp);
}

static inline int raw_recv(struct raw_qp *qp, const struct raw_mr *mr, size_t offset, uint32_t len)
{
	return raw_recv_sge(qp, raw_sge(mr, offset, len));
}

/* Shared receive queues */

#define RAW_SRQ_SHIFT	4

/* The caller has filled in what is to be of another than a basic SRQ, and sizes. */
static inline int raw_make_srq(struct raw_ctx *ctx, struct raw_srq *srq)
{
	int err;

	srq->ctx = ctx;
	srq->made.pd = ctx->pd;
	srq->made.uar = ctx->uar.uar;
	srq->made.slot = ctx->slot;
	err = raw_ioctl(ctx->fd, VHCA_IOC_CREATE_SRQ, &srq->made);
	if (err)
		return err;
	ctx->slot++;
	srq->buf = raw_queue(ctx->fd, srq->made.buf_addr, srq->made.buf_offset,
			     srq->made.buf_size);
	return srq->buf ? 0 : -ENOMEM;
}

static inline int raw_srq(struct raw_ctx *ctx, struct raw_srq *srq, uint32_t limit)
{
	memset(srq, 0, sizeof(*srq));
	srq->made.shift = RAW_SRQ_SHIFT;
	srq->made.sge_shift = RAW_SGE_SHIFT;
	srq->made.limit = limit;
	srq->made.cookie = (uintptr_t)srq;
	return raw_make_srq(ctx, srq);
}

static inline int raw_xrc_srq(struct raw_ctx *ctx, struct raw_srq *srq, struct raw_cq *cq,
			      uint32_t xrcd)
{
	memset(srq, 0, sizeof(*srq));
	srq->made.type = 1;
	srq->made.xrcd = xrcd;
	srq->made.cqn = cq->made.cqn;
	srq->made.shift = RAW_SRQ_SHIFT;
	srq->made.sge_shift = RAW_SGE_SHIFT;
	srq->made.cookie = (uintptr_t)srq;
	return raw_make_srq(ctx, srq);
}

static inline int raw_destroy_srq(struct raw_srq *srq, struct vhca_destroy_srq *d)
{
	struct vhca_destroy_srq mine = {};

	if (!d)
		d = &mine;
	d->srqn = srq->made.srqn;
	return raw_ioctl(srq->ctx->fd, VHCA_IOC_DESTROY_SRQ, d);
}

/* One WQE of one SGE, tagged with its index in the ring. */
static inline void raw_srq_recv(struct raw_srq *srq, const struct raw_mr *mr, size_t offset,
				uint32_t len)
{
	uint16_t i = srq->pi & ((1u << srq->made.shift) - 1);
	struct vhca_wqe_recv_head *head = (void *)(srq->buf +
		((size_t)i << (VHCA_WQE_SEG_SHIFT + srq->made.sge_shift)));
	struct vhca_wqe_data *sge = (void *)(head + 1);
	struct vhca_srq_dbr *dbr = (struct vhca_srq_dbr *)srq->ctx->dbr_page + srq->made.slot;

	*head = (struct vhca_wqe_recv_head) { .tag = htobe16(i) };
	sge[0] = raw_sge(mr, offset, len);
	if (srq->made.sge_shift > 1)
		sge[1] = (struct vhca_wqe_data) { .lkey = htobe32(VHCA_INVALID_LKEY) };
	raw_store32(&dbr->pi, ++srq->pi);
}

/* XRC domains */

static inline int raw_open_xrcd(struct raw_ctx *ctx, int fd, uint32_t oflags, uint32_t *xrcd)
{
	struct vhca_open_xrcd o = { .fd = fd, .oflags = oflags };
	int err = raw_ioctl(ctx->fd, VHCA_IOC_OPEN_XRCD, &o);

	*xrcd = o.xrcd;
	return err;
}

/*
 * A connected pair of QPs: what most tests start from. Messages go from @a to
 * @b and, where a test wants it, back.
 */
struct raw_pair {
	struct raw_cq	*scq;	/* of both send queues */
	struct raw_cq	*rcq;	/* of both receive queues */
	struct raw_qp	a;
	struct raw_qp	b;
};

static inline int raw_pair(struct raw_ctx *ctx, struct raw_pair *p, struct raw_cq *scq,
			   struct raw_cq *rcq)
{
	int err;

	p->scq = scq;
	p->rcq = rcq;
	err = raw_qp(ctx, &p->a, scq, rcq);
	if (!err)
		err = raw_qp(ctx, &p->b, scq, rcq);
	return err ? err : raw_connect(&p->a, &p->b);
}

/* One message of @len bytes from a to b; the completion of neither is taken. */
static inline int raw_message(struct raw_pair *p, const struct raw_mr *mr, uint8_t flags,
			      uint32_t len)
{
	int err = raw_recv(&p->b, mr, mr->len / 2, mr->len / 2);

	return err ? err : raw_send(&p->a, flags, mr, 0, len);
}

/* Processes */

/* Memory that is pinned and counts in a process, in KiB; -1: no such process. */
static inline long long raw_pinned(pid_t pid)
{
	char path[32], line[128];
	long long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %lld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/*
 * Run the statements in a child, which leaves with the value of the last
 * expression; the value here is its exit status, or 256 + the signal that ended it.
 */
static inline int raw_wait_child(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

#define RAW_CHILD(expr) ({						\
	pid_t pid_ = fork();						\
	if (!pid_)							\
		_exit(expr);						\
	raw_wait_child(pid_);						\
})

/* Wait until a process sleeps, i.e. has come to block in its system call. */
static inline bool raw_sleeps(pid_t pid)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* Modules */

static inline int raw_module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

/* Load @room/@name.ko from where the modules that are tested were built. */
static inline int raw_module_load(const char *room, const char *name, const char *params)
{
	const char *dir = getenv("VHCA_MODULES");
	struct utsname u;
	char path[512];
	int fd, err;

	uname(&u);
	if (dir)
		snprintf(path, sizeof(path), "%s/%s/%s.ko", dir, room, name);
	else
		snprintf(path, sizeof(path), "../build/%s/%s/%s.ko", u.release, room, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/lib/modules/%s/updates/vhca/%s.ko", u.release,
			 name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, params, 0) ? -errno : 0;
	close(fd);
	return err;
}

/*
 * A bed for tests of events: a pair whose receives complete to @rcq, which is on
 * @channel. Cookies of CQs on the channel are their struct raw_cq.
 *
 * Events keep their order on the way through one EQ, so "no event came" is shown
 * by one that was caused later and is there: that of the pair @mark.
 */
struct raw_bed {
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	int		channel;
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_pair	p;
	struct raw_cq	mark_cq;
	struct raw_pair	mark;
};

static inline int raw_bed(struct raw_bed *bed, int fn)
{
	int err = raw_open(&bed->ctx, fn);

	if (err)
		return err;
	bed->channel = raw_channel(bed->ctx.fd);
	if (bed->channel < 0)
		return bed->channel;
	err = raw_mr(&bed->ctx, &bed->mr, 16384);
	if (!err)
		err = raw_cq(&bed->ctx, &bed->scq, 256, VHCA_INVALID_FD);
	if (!err)
		err = raw_cq(&bed->ctx, &bed->rcq, 256, bed->channel);
	if (!err)
		err = raw_cq(&bed->ctx, &bed->mark_cq, 256, bed->channel);
	if (!err)
		err = raw_pair(&bed->ctx, &bed->p, &bed->scq, &bed->rcq);
	if (!err)
		err = raw_pair(&bed->ctx, &bed->mark, &bed->scq, &bed->mark_cq);
	return err;
}

/* A message to @rcq, and its completion taken. */
static inline int raw_bed_message(struct raw_bed *bed, uint8_t flags)
{
	struct raw_wc wc;
	int err = raw_message(&bed->p, &bed->mr, flags, 64);

	if (!err)
		err = raw_wait_wc(&bed->rcq, &wc);
	return err ? err : wc.status;
}

/* @n messages to @rcq whose completions stay there. */
static inline int raw_bed_leave(struct raw_bed *bed, int n, uint8_t flags)
{
	struct raw_wc wc;
	int err = 0;

	while (!err && n--)
		err = raw_message(&bed->p, &bed->mr, n ? flags : flags | VHCA_WQE_SIGNALED, 64);
	/* In order: the last is done, so all are. */
	return err ? err : raw_wait_wc(&bed->scq, &wc);
}

/* Arm @rcq and make it fire; the event is on its way to the channel. */
static inline int raw_bed_fire(struct raw_bed *bed)
{
	int err = raw_arm(&bed->rcq, false);

	return err ? err : raw_bed_message(bed, 0);
}

/* The same with the mark. */
static inline int raw_bed_mark(struct raw_bed *bed)
{
	int err = raw_arm(&bed->mark_cq, false);
	struct raw_wc wc;

	if (!err)
		err = raw_message(&bed->mark, &bed->mr, 0, 64);
	return err ? err : raw_wait_wc(&bed->mark_cq, &wc);
}

/* Read what is on the channel before a mark; how many, or a negative errno. */
static inline int raw_bed_events(struct raw_bed *bed)
{
	struct vhca_comp_event ev;
	int n, err = raw_bed_mark(bed);

	for (n = 0; !err; n++) {
		err = raw_read_event(bed->channel, &ev);
		if (err)
			break;
		((struct raw_cq *)(uintptr_t)ev.cookie)->events++;
		if (ev.cookie == bed->mark_cq.made.cookie)
			return n;
	}
	return err;
}

#endif
