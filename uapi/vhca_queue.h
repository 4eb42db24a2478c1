/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * What user space owns. The formats of work queues, completion
 * queues, doorbell records and the UAR page, which an application's verbs
 * library writes and reads by loads and stores alone.
 *
 * Everything is big-endian. The device trusts none of it: it reads a field
 * once, checks the copy and uses the copy.
 */
#ifndef VHCA_QUEUE_H
#define VHCA_QUEUE_H

#include <linux/types.h>

#ifdef __cplusplus
#define VHCA_ASSERT(expr)	static_assert(expr, #expr)
#else
#define VHCA_ASSERT(expr)	_Static_assert(expr, #expr)
#endif
#define VHCA_ASSERT_SIZE(type, size)	VHCA_ASSERT(sizeof(type) == (size))
#define VHCA_ASSERT_AT(type, field, offset) \
	VHCA_ASSERT(__builtin_offsetof(type, field) == (offset))

/*
 * Work queues
 *
 * A QP has one buffer: the SQ at offset 0, the RQ behind it.
 *
 * The SQ is a ring of 2^n basic blocks (WQEBB) of 64 bytes. A send WQE starts
 * at a basic block, is a control segment followed by further segments of 16
 * bytes each, and takes as many basic blocks as that needs. It may wrap from
 * the last byte of the ring to the first. The SQ's producer index counts basic
 * blocks, modulo 2^16.
 *
 * The RQ is a ring of 2^n WQEs of 2^m data segments each. A receive WQE with
 * fewer SGEs than that ends with a sentinel: byte_count 0, lkey
 * VHCA_INVALID_LKEY. The RQ's producer index counts WQEs, modulo 2^16.
 */
#define VHCA_WQEBB_SHIFT	6
#define VHCA_WQEBB_SIZE		(1 << VHCA_WQEBB_SHIFT)
#define VHCA_WQE_SEG_SHIFT	4
#define VHCA_WQE_SEG_SIZE	(1 << VHCA_WQE_SEG_SHIFT)
#define VHCA_WQE_MAX_SEGS	63	/* in one send WQE, control segment included */
#define VHCA_SQ_MAX_SHIFT	15	/* basic blocks */
#define VHCA_RQ_MAX_SHIFT	15	/* WQEs */
#define VHCA_RQ_MAX_SGE_SHIFT	5	/* data segments in a receive WQE */

#define VHCA_INVALID_LKEY	0x100

/*
 * What follows the control segment: R a remote address segment, A an atomic
 * segment, then the SGEs or, with I, the inline payload that may stand for them.
 */
enum vhca_wqe_opcode {
	VHCA_OP_RDMA_WRITE	= 0x08,		/* R I */
	VHCA_OP_RDMA_WRITE_IMM	= 0x09,		/* R I */
	VHCA_OP_SEND		= 0x0a,		/* I */
	VHCA_OP_SEND_IMM	= 0x0b,		/* I */
	VHCA_OP_RDMA_READ	= 0x10,		/* R */
	VHCA_OP_ATOMIC_CS	= 0x11,		/* R A: compare and swap */
	VHCA_OP_ATOMIC_FA	= 0x12,		/* R A: fetch and add */
};

enum vhca_wqe_flags {
	VHCA_WQE_SOLICITED	= 1 << 0,	/* the receiver's CQE is a solicited one */
	VHCA_WQE_SIGNALED	= 1 << 1,	/* write a CQE also on success */
	VHCA_WQE_FENCE		= 1 << 2,	/* earlier READs and atomics end first */
};

/**
 * struct vhca_wqe_ctrl - first segment of a send WQE
 * @idx_opcode: bits 23:8 the producer index of the WQE's first basic block,
 *	bits 7:0 enum vhca_wqe_opcode. Bits 31:24 are zero.
 * @qpn_ds: bits 31:8 the QPN, bits 7:0 the WQE's length in segments, this one
 *	included (1 to VHCA_WQE_MAX_SEGS).
 * @rsvd: zero.
 * @flags: enum vhca_wqe_flags; other bits are zero.
 * @imm: immediate data of the opcodes that end in _IMM; else zero.
 *
 * The device completes a WQE whose index, QPN or length is wrong with
 * VHCA_CQE_LOC_QP_OP_ERR.
 */
struct vhca_wqe_ctrl {
	__be32	idx_opcode;
	__be32	qpn_ds;
	__u8	rsvd[3];
	__u8	flags;
	__be32	imm;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_ctrl, 16);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, idx_opcode, 0);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, qpn_ds, 4);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, rsvd, 8);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, flags, 11);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, imm, 12);

#define VHCA_WQE_IDX_SHIFT	8
#define VHCA_WQE_QPN_SHIFT	8
#define VHCA_WQE_DS_MASK	0xff

/**
 * struct vhca_wqe_raddr - memory of the peer, behind the control segment
 * @addr: address of the first byte, in the region's address space. Of an atomic:
 *	a multiple of 8.
 * @rkey: key of the memory region. Not looked at when the message is empty.
 * @rsvd: zero.
 *
 * As many bytes are accessed as the SGEs or the inline payload have.
 */
struct vhca_wqe_raddr {
	__be64	addr;
	__be32	rkey;
	__be32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_raddr, 16);
VHCA_ASSERT_AT(struct vhca_wqe_raddr, addr, 0);
VHCA_ASSERT_AT(struct vhca_wqe_raddr, rkey, 8);
VHCA_ASSERT_AT(struct vhca_wqe_raddr, rsvd, 12);

/**
 * struct vhca_wqe_atomic - operands, behind the remote address segment
 * @swap_add: what is stored if it compares equal, or what is added.
 * @compare: what memory is compared with; zero for fetch and add.
 *
 * The SGEs have 8 bytes in all. They receive the old value. In memory, at either
 * end, the 64-bit word has the byte order of the host.
 */
struct vhca_wqe_atomic {
	__be64	swap_add;
	__be64	compare;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_atomic, 16);
VHCA_ASSERT_AT(struct vhca_wqe_atomic, swap_add, 0);
VHCA_ASSERT_AT(struct vhca_wqe_atomic, compare, 8);

#define VHCA_ATOMIC_SIZE	8	/* bytes that an atomic accesses */

/**
 * struct vhca_wqe_data - one SGE, of a send or a receive WQE
 * @byte_count: bits 30:0 the length in bytes; 0 is an empty SGE, skipped.
 * @lkey: key of the memory region; VHCA_INVALID_LKEY with length 0 ends the list.
 * @addr: address of the first byte, in the region's address space.
 */
struct vhca_wqe_data {
	__be32	byte_count;
	__be32	lkey;
	__be64	addr;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_data, 16);
VHCA_ASSERT_AT(struct vhca_wqe_data, byte_count, 0);
VHCA_ASSERT_AT(struct vhca_wqe_data, lkey, 4);
VHCA_ASSERT_AT(struct vhca_wqe_data, addr, 8);

/**
 * struct vhca_wqe_inline - head of an inline payload
 * @byte_count: bit 31 VHCA_WQE_INLINE, bits 30:0 the payload's length in bytes.
 *
 * The payload follows at once. Together they take a whole number of segments,
 * and nothing follows them in the WQE.
 */
struct vhca_wqe_inline {
	__be32	byte_count;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_inline, 4);
VHCA_ASSERT_AT(struct vhca_wqe_inline, byte_count, 0);

#define VHCA_WQE_INLINE		0x80000000u
#define VHCA_MAX_INLINE		896	/* bytes of payload in one WQE */

/*
 * Completion queue: a ring of 2^n CQEs. A CQE belongs to software when its
 * owner bit equals the parity of the consumer's lap: in lap 0 (consumer index
 * 0 to 2^n - 1) the device writes owner 1, in lap 1 owner 0, and so on. The
 * ring starts out zeroed, so that nothing is there in lap 0.
 */
enum vhca_cqe_opcode {
	VHCA_CQE_REQ		= 0,	/* requester: a send queue WQE */
	VHCA_CQE_RESP		= 1,	/* responder: a receive WQE, by SEND */
	VHCA_CQE_RESP_WRITE	= 2,	/* responder: by RDMA WRITE with immediate */
};

enum vhca_cqe_status {
	VHCA_CQE_SUCCESS		= 0,
	VHCA_CQE_LOC_LEN_ERR		= 1,
	VHCA_CQE_LOC_QP_OP_ERR		= 2,
	VHCA_CQE_LOC_PROT_ERR		= 4,
	VHCA_CQE_WR_FLUSH_ERR		= 5,
	VHCA_CQE_REM_INV_REQ_ERR	= 9,
	VHCA_CQE_REM_ACCESS_ERR		= 10,
	VHCA_CQE_REM_OP_ERR		= 11,
	VHCA_CQE_RETRY_EXC_ERR		= 12,
	VHCA_CQE_RNR_RETRY_EXC_ERR	= 13,
};

/* Why, in more detail than the status: the values of vendor_err. */
enum vhca_cqe_vendor_err {
	VHCA_VERR_NONE		= 0,
	VHCA_VERR_WQE_HEAD	= 0x01,	/* index, QPN, length, reserved bits */
	VHCA_VERR_WQE_OPCODE	= 0x02,
	VHCA_VERR_WQE_SEG	= 0x03,	/* segment list malformed */
	VHCA_VERR_KEY		= 0x10,	/* no such key */
	VHCA_VERR_KEY_PD	= 0x11,	/* key of another PD */
	VHCA_VERR_KEY_ACCESS	= 0x12,	/* access right missing */
	VHCA_VERR_KEY_BOUNDS	= 0x13,	/* outside of the region */
	VHCA_VERR_MSG_SIZE	= 0x20,	/* longer than a message may be; atomic: not 8 bytes */
	VHCA_VERR_RQ_SIZE	= 0x21,	/* longer than the receive WQE */
	VHCA_VERR_RQ_WQE	= 0x22,	/* the peer's receive WQE is at fault */
	VHCA_VERR_RD_ATOMIC	= 0x23,	/* max_rd_atomic of the QP is 0 */
	VHCA_VERR_REMOTE	= 0x24,	/* the peer's QP takes no such request */
	VHCA_VERR_REMOTE_KEY	= 0x25,	/* the peer refused access to its memory */
	VHCA_VERR_NO_PEER	= 0x30,	/* nobody answers at that address */
	VHCA_VERR_RNR		= 0x31,	/* receiver not ready, tries used up */
	VHCA_VERR_STATE		= 0x40,	/* flushed: the QP is in error */
};

enum vhca_cqe_flags {
	VHCA_CQE_F_SOLICITED	= 1 << 0,
	VHCA_CQE_F_IMM		= 1 << 1,	/* imm is valid */
};

/**
 * struct vhca_cqe - completion queue entry
 * @rsvd0: zero.
 * @imm: immediate data with VHCA_CQE_F_IMM; else zero.
 * @byte_len: receive: length of the message in bytes. RDMA READ and atomics: of
 *	what was read. Else zero.
 * @timestamp: device clock in nanoseconds when the CQE was written.
 * @flags_qpn: bits 31:24 enum vhca_cqe_flags, bits 23:0 the local QPN.
 * @wqe_index: send: producer index of the WQE's first basic block. Receive:
 *	producer index of the WQE.
 * @status: enum vhca_cqe_status.
 * @vendor_err: enum vhca_cqe_vendor_err.
 * @src_qpn: bits 23:0 the sender's QPN for a receive; else zero.
 * @slid: the sender's LID for a receive; else zero.
 * @opcode: enum vhca_cqe_opcode.
 * @owner: bit 0 is the owner bit, written last; other bits are zero.
 *
 * Software reads @owner, then (read barrier; its pair is the write barrier
 * with which the device orders @owner after the rest) the other fields.
 */
struct vhca_cqe {
	__u8	rsvd0[32];
	__be32	imm;
	__be32	byte_len;
	__be64	timestamp;
	__be32	flags_qpn;
	__be16	wqe_index;
	__u8	status;
	__u8	vendor_err;
	__be32	src_qpn;
	__be16	slid;
	__u8	opcode;
	__u8	owner;
};

VHCA_ASSERT_SIZE(struct vhca_cqe, 64);
VHCA_ASSERT_AT(struct vhca_cqe, rsvd0, 0);
VHCA_ASSERT_AT(struct vhca_cqe, imm, 32);
VHCA_ASSERT_AT(struct vhca_cqe, byte_len, 36);
VHCA_ASSERT_AT(struct vhca_cqe, timestamp, 40);
VHCA_ASSERT_AT(struct vhca_cqe, flags_qpn, 48);
VHCA_ASSERT_AT(struct vhca_cqe, wqe_index, 52);
VHCA_ASSERT_AT(struct vhca_cqe, status, 54);
VHCA_ASSERT_AT(struct vhca_cqe, vendor_err, 55);
VHCA_ASSERT_AT(struct vhca_cqe, src_qpn, 56);
VHCA_ASSERT_AT(struct vhca_cqe, slid, 60);
VHCA_ASSERT_AT(struct vhca_cqe, opcode, 62);
VHCA_ASSERT_AT(struct vhca_cqe, owner, 63);

#define VHCA_CQE_SIZE		64
#define VHCA_CQE_FLAGS_SHIFT	24
#define VHCA_CQE_OWNER		1
#define VHCA_CQ_MAX_SHIFT	22	/* CQEs */
#define VHCA_QPN_MASK		0xffffff

/*
 * Doorbell records and doorbells
 *
 * A UAR is a pair of pages with 64 lines of 64 bytes each: the UAR page, which
 * is device memory, and the page of doorbell records (DBR), which is host
 * memory. Line 0 of the UAR page is its head; line 0 of the DBR page is not
 * used. A QP or CQ has the line (slot) 1 to 63 that it was created with, in
 * both pages.
 *
 * The records are the truth; a doorbell only says that there is something to
 * look at.
 */
#define VHCA_UAR_PAGE_SIZE	4096
#define VHCA_UAR_SLOT_SIZE	64
#define VHCA_UAR_SLOTS		64
#define VHCA_UAR_FIRST_SLOT	1

/**
 * struct vhca_uar_head - line 0 of a UAR page
 * @kick_needed: written by the device. Non-zero: the device does not watch this
 *	page, so that a doorbell must be followed by a kick.
 * @rsvd: zero.
 *
 * Software: doorbell store, full barrier, load @kick_needed. Device, before it
 * stops watching: store @kick_needed, full barrier, look at every doorbell once
 * more. One of the two sees the other.
 */
struct vhca_uar_head {
	__be32	kick_needed;
	__u8	rsvd[60];
};

VHCA_ASSERT_SIZE(struct vhca_uar_head, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_uar_head, kick_needed, 0);
VHCA_ASSERT_AT(struct vhca_uar_head, rsvd, 4);

/**
 * struct vhca_uar_slot - doorbell of one QP or CQ
 *
 * Software stores zero before it creates the object and before it resets the
 * QP: what is stored next is then another value, which the device notices.
 *
 * @doorbell: one aligned 64-bit store.
 *	QP: bits 63:48 the RQ's and bits 47:32 the SQ's producer index,
 *	bits 31:8 the QPN, bits 7:0 zero.
 *	CQ: bits 63:32 the arm word (struct vhca_cq_dbr), bits 31:8 the CQN,
 *	bits 7:0 zero.
 * @rsvd: zero.
 */
struct vhca_uar_slot {
	__be64	doorbell;
	__u8	rsvd[56];
};

VHCA_ASSERT_SIZE(struct vhca_uar_slot, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_uar_slot, doorbell, 0);
VHCA_ASSERT_AT(struct vhca_uar_slot, rsvd, 8);

#define VHCA_DB_RQ_SHIFT	48
#define VHCA_DB_SQ_SHIFT	32
#define VHCA_DB_ARM_SHIFT	32
#define VHCA_DB_NUM_SHIFT	8

/**
 * struct vhca_qp_dbr - doorbell record of a QP
 * @rq_pi: written by software. Bits 15:0 the RQ's producer index, the rest zero.
 * @sq_pi: written by software. Bits 15:0 the SQ's producer index, the rest zero.
 * @rq_watch: written by the device. Non-zero: the device wants a doorbell also
 *	after receive WQEs were posted (the QP is in error and flushes them).
 *	Software: store @rq_pi, full barrier, load @rq_watch. Device: store
 *	@rq_watch, full barrier, load @rq_pi. One of the two sees the other.
 * @rsvd: zero.
 */
struct vhca_qp_dbr {
	__be32	rq_pi;
	__be32	sq_pi;
	__be32	rq_watch;
	__u8	rsvd[52];
};

VHCA_ASSERT_SIZE(struct vhca_qp_dbr, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_qp_dbr, rq_pi, 0);
VHCA_ASSERT_AT(struct vhca_qp_dbr, sq_pi, 4);
VHCA_ASSERT_AT(struct vhca_qp_dbr, rq_watch, 8);
VHCA_ASSERT_AT(struct vhca_qp_dbr, rsvd, 12);

/**
 * struct vhca_cq_dbr - doorbell record of a CQ
 * @ci: written by software. Bits 23:0 the consumer index: how many CQEs were
 *	consumed, modulo 2^24.
 * @arm: written by software, the arm word. Bits 29:28 the sequence number, bit
 *	24 VHCA_ARM_SOLICITED, bits 23:0 the consumer index when it was armed.
 * @rsvd: zero.
 *
 * The CQ is armed while the arm word's sequence number is one more (modulo 4)
 * than that of the arm that fired last. It starts at 0 on both sides, so that a
 * zeroed record is not armed; the first arm carries 1, and the number advances
 * with each event that software reads. An arm written twice, or found again
 * after it fired, therefore fires once.
 *
 * Software: store @arm, full barrier, look at the next CQE; when there is one,
 * ring the CQ's doorbell. Device: write the CQE, full barrier, load @arm. One
 * of the two sees the other. On the doorbell the device raises the event at
 * once when its producer index is beyond the arm word's consumer index.
 */
struct vhca_cq_dbr {
	__be32	ci;
	__be32	arm;
	__u8	rsvd[56];
};

VHCA_ASSERT_SIZE(struct vhca_cq_dbr, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_cq_dbr, ci, 0);
VHCA_ASSERT_AT(struct vhca_cq_dbr, arm, 4);
VHCA_ASSERT_AT(struct vhca_cq_dbr, rsvd, 8);

#define VHCA_CI_MASK		0xffffff
#define VHCA_ARM_SOLICITED	(1u << 24)
#define VHCA_ARM_SN_SHIFT	28
#define VHCA_ARM_SN_MASK	3

#endif
