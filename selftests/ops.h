/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops.h: send work requests of every operation, from one description.
 */
#ifndef OPS_H
#define OPS_H

#include "pair.h"

/**
 * struct op - one send WR
 * @off: first of the poster's bytes.
 * @len: how many.
 * @raddr: where in the peer's memory.
 * @swap: what compare and swap stores.
 * @imm: immediate data, or the rkey that is invalidated.
 * @mw: window to bind, as @bind says, to the key @new_rkey.
 */
struct op {
	enum ibv_wr_opcode		opcode;
	uint32_t			off;
	uint32_t			len;
	uint64_t			raddr;
	uint32_t			rkey;
	uint64_t			compare_add;
	uint64_t			swap;
	unsigned int			flags;
	uint32_t			imm;
	struct ibv_mw			*mw;
	uint32_t			new_rkey;
	struct ibv_mw_bind_info		bind;
};

static inline bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static inline struct ibv_send_wr op_wr(uint64_t wr_id, const struct op *op, struct ibv_sge *sge,
				       int n)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = n,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = htobe32(op->imm),
	};

	if (op->opcode == IBV_WR_SEND_WITH_INV || op->opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = op->imm;
	if (is_atomic(op->opcode)) {
		wr.wr.atomic.remote_addr = op->raddr;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
	} else {
		wr.wr.rdma.remote_addr = op->raddr;
		wr.wr.rdma.rkey = op->rkey;
	}
	if (op->opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = op->mw;
		wr.bind_mw.rkey = op->new_rkey;
		wr.bind_mw.bind_info = op->bind;
	}
	return wr;
}

static inline int post_op_sges(struct ibv_qp *qp, uint64_t wr_id, const struct op *op,
			       struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = op_wr(wr_id, op, sge, n), *bad = NULL;

	return ibv_post_send(qp, &wr, &bad);
}

static inline int post_op(struct end *e, uint64_t wr_id, const struct op *op)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + op->off, op->len, e->mr->lkey };
	struct ibv_send_wr wr = op_wr(wr_id, op, &sge, 1), *bad;

	wr_to_peer(e, &wr);
	return ibv_post_send(e->qp, &wr, &bad);
}

/* An operation on @to's memory at @off. */
static inline struct op remote_op(enum ibv_wr_opcode opcode, const struct end *to, uint32_t off,
				  uint32_t len)
{
	return (struct op) {
		.opcode = opcode,
		.len = len,
		.raddr = (uintptr_t)to->buf + off,
		.rkey = to->mr->rkey,
		.flags = IBV_SEND_SIGNALED,
	};
}

static inline uint64_t *word(struct end *e, uint32_t off)
{
	return (uint64_t *)(e->buf + off);
}

static inline bool all_are(const uint8_t *p, uint8_t value, size_t len)
{
	while (len--)
		if (*p++ != value)
			return false;
	return true;
}

#endif
