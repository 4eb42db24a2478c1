/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * semantics.h: what each operation does on each transport, and what becomes of it
 * when something is wrong. The tests test_matrix and test_matrix_raw run these tables,
 * and Documentation/semantics.rst is made of them (`make docs`).
 */
#ifndef SEMANTICS_H
#define SEMANTICS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "../uapi/vhca_queue.h"

#define SEM_NONE	(-1)	/* no completion, no event */

enum sem_transport { SEM_RC, SEM_UC, SEM_UD, SEM_XRC, SEM_TRANSPORTS };

#define RC	(1u << SEM_RC)
#define UC	(1u << SEM_UC)
#define UD	(1u << SEM_UD)
#define XRC	(1u << SEM_XRC)
#define REL	(RC | XRC)		/* reliable: the responder answers */
#define UNREL	(UC | UD)
#define CONN	(RC | UC | XRC)
#define ANY	(REL | UNREL)

static const char * const sem_transport_name[] = { "RC", "UC", "UD", "XRC" };

enum sem_op {
	SEM_SEND,
	SEM_SEND_IMM,
	SEM_SEND_INV,
	SEM_WRITE,
	SEM_WRITE_IMM,
	SEM_READ,
	SEM_CAS,
	SEM_FAA,
	SEM_LOCAL_INV,
	SEM_BIND_MW,
	SEM_OP_COUNT
};

/**
 * struct sem_op_row - an operation
 * @wr: opcode of the WR; @wqe: of the WQE.
 * @transports: where it may be posted.
 * @wc: opcode of the requester's completion; @recv: of the responder's, and its flags.
 */
struct sem_op_row {
	const char *name;
	enum ibv_wr_opcode wr;
	unsigned int wqe;
	unsigned int transports;
	enum ibv_wc_opcode wc;
	const char *wc_name;
	int recv;
	const char *recv_name;
	unsigned int recv_flags;
	const char *recv_flags_name;
};

#define OPERATION(name, wr, wqe, transports, wc, recv, flags) {			\
	#name, IBV_WR_##wr, VHCA_OP_##wqe, transports, IBV_WC_##wc, "IBV_WC_" #wc,	\
	recv, #recv, flags, #flags						\
}

static const struct sem_op_row sem_ops[] = {
	[SEM_SEND] = OPERATION(SEND, SEND, SEND, ANY, SEND, IBV_WC_RECV, 0),
	[SEM_SEND_IMM] = OPERATION(SEND_IMM, SEND_WITH_IMM, SEND_IMM, ANY, SEND,
				  IBV_WC_RECV, IBV_WC_WITH_IMM),
	[SEM_SEND_INV] = OPERATION(SEND_INV, SEND_WITH_INV, SEND_INV, CONN, SEND,
				  IBV_WC_RECV, IBV_WC_WITH_INV),
	[SEM_WRITE] = OPERATION(WRITE, RDMA_WRITE, RDMA_WRITE, CONN, RDMA_WRITE, SEM_NONE, 0),
	[SEM_WRITE_IMM] = OPERATION(WRITE_IMM, RDMA_WRITE_WITH_IMM, RDMA_WRITE_IMM, CONN,
				  RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM),
	[SEM_READ] = OPERATION(READ, RDMA_READ, RDMA_READ, REL, RDMA_READ, SEM_NONE, 0),
	[SEM_CAS] = OPERATION(CAS, ATOMIC_CMP_AND_SWP, ATOMIC_CS, REL, COMP_SWAP, SEM_NONE, 0),
	[SEM_FAA] = OPERATION(FAA, ATOMIC_FETCH_AND_ADD, ATOMIC_FA, REL, FETCH_ADD, SEM_NONE, 0),
	[SEM_LOCAL_INV] = OPERATION(LOCAL_INV, LOCAL_INV, LOCAL_INV, CONN, LOCAL_INV,
				  SEM_NONE, 0),
	[SEM_BIND_MW] = OPERATION(BIND_MW, BIND_MW, BIND_MW, CONN, BIND_MW, SEM_NONE, 0),
};

/* What may be wrong, one thing at a time. */
enum sem_fault {
	SEM_FLUSH,
	SEM_LOCAL_KEY,
	SEM_LOCAL_PD,
	SEM_LOCAL_BOUNDS,
	SEM_LOCAL_RIGHT,
	SEM_LENGTH,
	SEM_ATOMIC_LENGTH,
	SEM_RD_ATOMIC,
	SEM_BIND_RIGHT,
	SEM_BIND_BOUNDS,
	SEM_LOCAL_INV_KEY,
	SEM_NO_PEER,
	SEM_NO_RECV,
	SEM_TOO_LONG,
	SEM_RECV_KEY,
	SEM_REMOTE_KEY,
	SEM_REMOTE_DEAD,
	SEM_REMOTE_PD,
	SEM_REMOTE_BOUNDS,
	SEM_REMOTE_RIGHT,
	SEM_QP_RIGHT,
	SEM_MISALIGNED,
	SEM_DEST_RD_ATOMIC,
	SEM_REMOTE_INV_KEY,
	SEM_QKEY,
	SEM_SRQN,
	SEM_FAULT_COUNT
};

static const char * const sem_fault_text[] = {
	[SEM_FLUSH] = "the QP is in error when the WR is posted",
	[SEM_LOCAL_KEY] = "data segment: no such key",
	[SEM_LOCAL_PD] = "data segment: key of another PD",
	[SEM_LOCAL_BOUNDS] = "data segment: not inside of the region",
	[SEM_LOCAL_RIGHT] = "data segment: data comes in, and the region has no local write",
	[SEM_LENGTH] = "longer than a message may be (2^31 bytes; UD: the port's MTU)",
	[SEM_ATOMIC_LENGTH] = "data segments have not 8 bytes in all",
	[SEM_RD_ATOMIC] = "``max_rd_atomic`` is 0",
	[SEM_BIND_RIGHT] = "the region may not be bound to",
	[SEM_BIND_BOUNDS] = "the window would not be inside of the region",
	[SEM_LOCAL_INV_KEY] = "no such key to invalidate",
	[SEM_NO_PEER] = "the peer's QP is not ready to receive",
	[SEM_NO_RECV] = "no receive is posted",
	[SEM_TOO_LONG] = "longer than the receive",
	[SEM_RECV_KEY] = "the receive has a bad key",
	[SEM_REMOTE_KEY] = "remote key: no such key",
	[SEM_REMOTE_DEAD] = "remote key: the region was deregistered",
	[SEM_REMOTE_PD] = "remote key: of another PD",
	[SEM_REMOTE_BOUNDS] = "remote address: not inside of the region",
	[SEM_REMOTE_RIGHT] = "remote key: does not give the right",
	[SEM_QP_RIGHT] = "the peer's QP does not give the right",
	[SEM_MISALIGNED] = "the remote address is no multiple of 8",
	[SEM_DEST_RD_ATOMIC] = "the peer's ``max_dest_rd_atomic`` is 0",
	[SEM_REMOTE_INV_KEY] = "the peer has no such key to invalidate",
	[SEM_QKEY] = "the Q_Key is not the peer's",
	[SEM_SRQN] = "the peer has no such SRQ",
};

#define OP(name)	(1u << SEM_##name)
#define SENDS		(OP(SEND) | OP(SEND_IMM) | OP(SEND_INV))
#define WRITES		(OP(WRITE) | OP(WRITE_IMM))
#define ATOMICS		(OP(CAS) | OP(FAA))
#define RD_ATOMICS	(OP(READ) | ATOMICS)
#define REMOTE		(WRITES | RD_ATOMICS)
#define DATA		(SENDS | REMOTE)
#define RECEIVED	(SENDS | OP(WRITE_IMM))
#define EVERY		((1u << SEM_OP_COUNT) - 1)

/**
 * struct sem_result - what a fault leads to
 * @ops: of these operations; @transports: on these.
 * @req: status at the requester.
 * @resp: of the responder's receive, or SEM_NONE.
 * @event: async event at the responder, or SEM_NONE.
 *
 * The states follow from it: see sem_req_state(), sem_resp_state(). Pairs of operation
 * and transport that do not exist do not count.
 */
struct sem_result {
	enum sem_fault fault;
	unsigned int ops;
	unsigned int transports;
	enum ibv_wc_status req;
	const char *req_name;
	int resp;
	const char *resp_name;
	int event;
	const char *event_name;
};

#define RESULT(fault, ops, transports, req, resp, event) {			\
	SEM_##fault, ops, transports, IBV_WC_##req, "IBV_WC_" #req, resp, #resp,	\
	event, #event								\
}

static const struct sem_result sem_results[] = {
	RESULT(FLUSH, EVERY, ANY, WR_FLUSH_ERR, SEM_NONE, SEM_NONE),
	RESULT(LOCAL_KEY, DATA, ANY, LOC_PROT_ERR, SEM_NONE, SEM_NONE),
	RESULT(LOCAL_PD, DATA, ANY, LOC_PROT_ERR, SEM_NONE, SEM_NONE),
	RESULT(LOCAL_BOUNDS, DATA, ANY, LOC_PROT_ERR, SEM_NONE, SEM_NONE),
	RESULT(LOCAL_RIGHT, RD_ATOMICS, ANY, LOC_PROT_ERR, SEM_NONE, SEM_NONE),
	RESULT(LENGTH, SENDS | WRITES | OP(READ), ANY, LOC_LEN_ERR, SEM_NONE, SEM_NONE),
	RESULT(ATOMIC_LENGTH, ATOMICS, ANY, LOC_LEN_ERR, SEM_NONE, SEM_NONE),
	RESULT(RD_ATOMIC, RD_ATOMICS, ANY, LOC_QP_OP_ERR, SEM_NONE, SEM_NONE),
	RESULT(BIND_RIGHT, OP(BIND_MW), ANY, MW_BIND_ERR, SEM_NONE, SEM_NONE),
	RESULT(BIND_BOUNDS, OP(BIND_MW), ANY, MW_BIND_ERR, SEM_NONE, SEM_NONE),
	RESULT(LOCAL_INV_KEY, OP(LOCAL_INV), ANY, MW_BIND_ERR, SEM_NONE, SEM_NONE),
	RESULT(NO_PEER, DATA, REL, RETRY_EXC_ERR, SEM_NONE, SEM_NONE),
	RESULT(NO_PEER, DATA, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(NO_RECV, RECEIVED, REL, RNR_RETRY_EXC_ERR, SEM_NONE, SEM_NONE),
	RESULT(NO_RECV, RECEIVED, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(TOO_LONG, SENDS, REL, REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, SEM_NONE),
	RESULT(TOO_LONG, SENDS, UNREL, SUCCESS, IBV_WC_LOC_LEN_ERR, SEM_NONE),
	RESULT(RECV_KEY, SENDS, REL, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, SEM_NONE),
	RESULT(RECV_KEY, SENDS, UNREL, SUCCESS, IBV_WC_LOC_PROT_ERR, SEM_NONE),
	RESULT(REMOTE_KEY, REMOTE, REL, REM_ACCESS_ERR, SEM_NONE, IBV_EVENT_QP_ACCESS_ERR),
	RESULT(REMOTE_KEY, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(REMOTE_DEAD, REMOTE, REL, REM_ACCESS_ERR, SEM_NONE, IBV_EVENT_QP_ACCESS_ERR),
	RESULT(REMOTE_DEAD, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(REMOTE_PD, REMOTE, REL, REM_ACCESS_ERR, SEM_NONE, IBV_EVENT_QP_ACCESS_ERR),
	RESULT(REMOTE_PD, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(REMOTE_BOUNDS, REMOTE, REL, REM_ACCESS_ERR, SEM_NONE, IBV_EVENT_QP_ACCESS_ERR),
	RESULT(REMOTE_BOUNDS, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(REMOTE_RIGHT, REMOTE, REL, REM_ACCESS_ERR, SEM_NONE, IBV_EVENT_QP_ACCESS_ERR),
	RESULT(REMOTE_RIGHT, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(QP_RIGHT, REMOTE, REL, REM_INV_REQ_ERR, SEM_NONE, IBV_EVENT_QP_REQ_ERR),
	RESULT(QP_RIGHT, REMOTE, UNREL, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(MISALIGNED, ATOMICS, REL, REM_INV_REQ_ERR, SEM_NONE, IBV_EVENT_QP_REQ_ERR),
	RESULT(DEST_RD_ATOMIC, RD_ATOMICS, REL, REM_INV_REQ_ERR, SEM_NONE, IBV_EVENT_QP_REQ_ERR),
	RESULT(REMOTE_INV_KEY, OP(SEND_INV), REL, REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR,
	       SEM_NONE),
	RESULT(REMOTE_INV_KEY, OP(SEND_INV), UC, SUCCESS, IBV_WC_REM_INV_REQ_ERR, SEM_NONE),
	RESULT(QKEY, SENDS, UD, SUCCESS, SEM_NONE, SEM_NONE),
	RESULT(SRQN, RECEIVED, XRC, REM_INV_REQ_ERR, SEM_NONE, IBV_EVENT_QP_REQ_ERR),
};

#define SEM_RESULT_COUNT	(sizeof(sem_results) / sizeof(sem_results[0]))

static inline bool sem_legal(enum sem_op op, enum sem_transport t)
{
	return sem_ops[op].transports & 1u << t;
}

/* What becomes of a legal operation with this fault; NULL: it cannot have it. */
static inline const struct sem_result *sem_find(enum sem_fault fault, enum sem_op op,
						enum sem_transport t)
{
	const struct sem_result *r;

	for (r = sem_results; r < sem_results + SEM_RESULT_COUNT; r++)
		if (r->fault == fault && r->ops & 1u << op && r->transports & 1u << t &&
		    sem_legal(op, t))
			return r;
	return NULL;
}

/* An error stops the requester: for good where others rely on what came before it. */
static inline enum ibv_qp_state sem_req_state(const struct sem_result *r, enum sem_transport t)
{
	if (r->req == IBV_WC_SUCCESS)
		return IBV_QPS_RTS;
	return 1u << t & REL || r->fault == SEM_FLUSH ? IBV_QPS_ERR : IBV_QPS_SQE;
}

/* So does an error of its own the responder. */
static inline enum ibv_qp_state sem_resp_state(const struct sem_result *r)
{
	if (r->fault == SEM_NO_PEER)
		return IBV_QPS_RESET;
	return r->resp == SEM_NONE && r->event == SEM_NONE ? IBV_QPS_RTS : IBV_QPS_ERR;
}

#endif
