/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of what keys open: a pair of QPs with every remote right, and work
 * requests that are run one at a time to their completion.
 */
#ifndef MEM_H
#define MEM_H

#include "raw.h"

#define MEM_REMOTE	(VHCA_ACCESS_REMOTE_WRITE | VHCA_ACCESS_REMOTE_READ | \
			 VHCA_ACCESS_REMOTE_ATOMIC)
#define MEM_ALL		(MEM_REMOTE | VHCA_ACCESS_LOCAL_WRITE | VHCA_ACCESS_MW_BIND)

/**
 * struct mem_bed - @p.a asks, @p.b has what is asked for
 * @mr: memory of either, local rights only.
 * @wc: of the work request that ran last.
 */
struct mem_bed {
	struct raw_ctx	ctx;
	struct raw_mr	mr;
	struct raw_cq	scq;
	struct raw_cq	rcq;
	struct raw_pair	p;
	struct raw_wc	wc;
};

static inline int mem_climb(struct raw_qp *qp, struct raw_qp *peer)
{
	struct vhca_qp_attr attr = raw_attr(peer->ctx->lid, peer->made.qpn);

	attr.access_flags = MEM_REMOTE;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	return raw_climb(qp, VHCA_QPS_RTS, attr);
}

static inline int mem_connect(struct raw_pair *p)
{
	int err = mem_climb(&p->a, &p->b);

	return err ? err : mem_climb(&p->b, &p->a);
}

static inline int mem_pair(struct mem_bed *bed, struct raw_pair *p)
{
	int err = raw_qp(&bed->ctx, &p->a, &bed->scq, &bed->rcq);

	if (!err)
		err = raw_qp(&bed->ctx, &p->b, &bed->scq, &bed->rcq);
	return err ? err : mem_connect(p);
}

static inline int mem_bed(struct mem_bed *bed)
{
	int err = raw_open(&bed->ctx, 0);

	if (!err)
		err = raw_mr(&bed->ctx, &bed->mr, 16384);
	if (!err)
		err = raw_cq(&bed->ctx, &bed->scq, 256, VHCA_INVALID_FD);
	if (!err)
		err = raw_cq(&bed->ctx, &bed->rcq, 256, VHCA_INVALID_FD);
	return err ? err : mem_pair(bed, &bed->p);
}

/* After an error: both QPs as if new, and nothing of before in the CQs. */
static inline int mem_renew(struct mem_bed *bed, struct raw_pair *p)
{
	int err = raw_reset_qp(&p->a);
	struct raw_wc wc;

	if (!err)
		err = raw_reset_qp(&p->b);
	while (raw_poll(&bed->scq, &wc) || raw_poll(&bed->rcq, &wc))
		;
	return err ? err : mem_connect(p);
}

/* A region of memory that is there, by any iova. */
static inline int mem_reg(struct mem_bed *bed, struct vhca_reg_mr *r)
{
	if (!r->pd)
		r->pd = bed->ctx.pd;
	return raw_ioctl(bed->ctx.fd, VHCA_IOC_REG_MR, r);
}

static inline struct vhca_wqe_data mem_sge(uint32_t lkey, uint64_t addr, uint32_t len)
{
	return (struct vhca_wqe_data) {
		.byte_count = htobe32(len), .lkey = htobe32(lkey), .addr = htobe64(addr),
	};
}

/* Build a signaled WQE of up to three segments behind its head; not posted yet. */
static inline void mem_build(struct raw_qp *qp, uint8_t opcode, uint32_t imm, const void *segs,
			     unsigned int nsegs)
{
	struct vhca_wqe_ctrl *ctrl = raw_build_send(qp, VHCA_WQE_SIGNALED, segs, nsegs);

	ctrl->idx_opcode = htobe32((uint32_t)qp->sq_pi << VHCA_WQE_IDX_SHIFT | opcode);
	ctrl->imm = htobe32(imm);
}

/* Post what was built and wait for it: its status, or a negative errno. */
static inline int mem_run(struct mem_bed *bed, struct raw_qp *qp)
{
	int err = raw_post_built(qp);

	if (!err)
		err = raw_wait_wc(&bed->scq, &bed->wc);
	return err ? err : bed->wc.status;
}

/* RDMA WRITE or READ of @len bytes at @offset of the bed's memory. */
static inline void mem_build_rdma(struct mem_bed *bed, struct raw_qp *qp, uint8_t opcode,
				  size_t offset, uint32_t len, uint32_t rkey, uint64_t raddr)
{
	struct {
		struct vhca_wqe_raddr raddr;
		struct vhca_wqe_data sge;
	} segs = {
		.raddr = { .addr = htobe64(raddr), .rkey = htobe32(rkey) },
		.sge = raw_sge(&bed->mr, offset, len),
	};

	mem_build(qp, opcode, 0, &segs, 2);
}

static inline int mem_rdma(struct mem_bed *bed, struct raw_pair *p, uint8_t opcode,
			   size_t offset, uint32_t len, uint32_t rkey, uint64_t raddr)
{
	int ret;

	mem_build_rdma(bed, &p->a, opcode, offset, len, rkey, raddr);
	ret = mem_run(bed, &p->a);
	if (ret > 0 && mem_renew(bed, p))
		return -EPROTO;
	return ret;
}

static inline int mem_write(struct mem_bed *bed, uint32_t len, uint32_t rkey, uint64_t raddr)
{
	return mem_rdma(bed, &bed->p, VHCA_OP_RDMA_WRITE, 0, len, rkey, raddr);
}

/* To the second half of the bed's memory. */
static inline int mem_read(struct mem_bed *bed, uint32_t len, uint32_t rkey, uint64_t raddr)
{
	return mem_rdma(bed, &bed->p, VHCA_OP_RDMA_READ, 8192, len, rkey, raddr);
}

/* Fetch and add; the old value to @offset of the bed's memory. */
static inline int mem_add(struct mem_bed *bed, size_t offset, uint64_t add, uint32_t rkey,
			  uint64_t raddr)
{
	struct {
		struct vhca_wqe_raddr raddr;
		struct vhca_wqe_atomic atomic;
		struct vhca_wqe_data sge;
	} segs = {
		.raddr = { .addr = htobe64(raddr), .rkey = htobe32(rkey) },
		.atomic = { .swap_add = htobe64(add) },
		.sge = raw_sge(&bed->mr, offset, 8),
	};
	int ret;

	mem_build(&bed->p.a, VHCA_OP_ATOMIC_FA, 0, &segs, 3);
	ret = mem_run(bed, &bed->p.a);
	if (ret > 0 && mem_renew(bed, &bed->p))
		return -EPROTO;
	return ret;
}

/* Windows */

static inline int mem_alloc_mw(struct mem_bed *bed, uint32_t type, uint32_t pd, uint32_t *rkey)
{
	struct vhca_alloc_mw mw = { .pd = pd, .type = type };
	int err = raw_ioctl(bed->ctx.fd, VHCA_IOC_ALLOC_MW, &mw);

	*rkey = mw.rkey;
	return err;
}

/* What a bind says, in host byte order. */
struct mem_bind {
	uint32_t	rkey;
	uint32_t	new_rkey;
	uint32_t	lkey;
	uint32_t	access;
	uint64_t	addr;
	uint64_t	length;
};

static inline void mem_build_bind(struct raw_qp *qp, const struct mem_bind *b)
{
	struct vhca_wqe_bind seg = {
		.rkey = htobe32(b->rkey), .new_rkey = htobe32(b->new_rkey),
		.lkey = htobe32(b->lkey), .access = htobe32(b->access),
		.addr = htobe64(b->addr), .length = htobe64(b->length),
	};

	mem_build(qp, VHCA_OP_BIND_MW, 0, &seg, 2);
}

static inline int mem_bind(struct mem_bed *bed, struct raw_pair *p, const struct mem_bind *b)
{
	int ret;

	mem_build_bind(&p->b, b);
	ret = mem_run(bed, &p->b);
	if (ret > 0 && mem_renew(bed, p))
		return -EPROTO;
	return ret;
}

static inline int mem_local_inv(struct mem_bed *bed, struct raw_pair *p, uint32_t rkey)
{
	int ret;

	mem_build(&p->b, VHCA_OP_LOCAL_INV, rkey, NULL, 0);
	ret = mem_run(bed, &p->b);
	if (ret > 0 && mem_renew(bed, p))
		return -EPROTO;
	return ret;
}

/* The same window by another key. */
static inline uint32_t mem_next_key(uint32_t rkey)
{
	return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

#endif
