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
 *
 * An SRQ is a ring like an RQ, in a buffer of its own. The first segment of its
 * WQEs is a head (struct vhca_wqe_recv_head), and so is it in the RQ of a QP whose
 * WQEs are signed; 2^m - 1 data segments are left then.
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

/* Access rights of MRs, windows and QPs: the values of enum ibv_access_flags. */
#define VHCA_ACCESS_LOCAL_WRITE		(1 << 0)
#define VHCA_ACCESS_REMOTE_WRITE	(1 << 1)
#define VHCA_ACCESS_REMOTE_READ		(1 << 2)
#define VHCA_ACCESS_REMOTE_ATOMIC	(1 << 3)
#define VHCA_ACCESS_MW_BIND		(1 << 4)
#define VHCA_ACCESS_ZERO_BASED		(1 << 5)

/*
 * What follows the control segment: in an XRC QP an XRC segment, in a UD QP a
 * datagram segment; then R a remote address segment, A an atomic segment, B a bind
 * segment; then the SGEs or, with I, the inline payload that may stand for them.
 */
enum vhca_wqe_opcode {
	VHCA_OP_RDMA_WRITE	= 0x08,		/* R I */
	VHCA_OP_RDMA_WRITE_IMM	= 0x09,		/* R I */
	VHCA_OP_SEND		= 0x0a,		/* I */
	VHCA_OP_SEND_IMM	= 0x0b,		/* I */
	VHCA_OP_SEND_INV	= 0x0c,		/* I */
	VHCA_OP_RDMA_READ	= 0x10,		/* R */
	VHCA_OP_ATOMIC_CS	= 0x11,		/* R A: compare and swap */
	VHCA_OP_ATOMIC_FA	= 0x12,		/* R A: fetch and add */
	VHCA_OP_BIND_MW		= 0x18,		/* B, no SGEs */
	VHCA_OP_LOCAL_INV	= 0x1b,		/* no SGEs */
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
 * @signature: of a QP that was created with VHCA_QP_F_SIGNATURE: makes the
 *	exclusive-or of all bytes of the WQE (its length in segments) 0xff. Else zero.
 * @rsvd: zero.
 * @flags: enum vhca_wqe_flags; other bits are zero.
 * @imm: immediate data of the opcodes that end in _IMM; of those that end in _INV
 *	the rkey to invalidate; else zero.
 *
 * The device completes a WQE whose index, QPN, length or signature is wrong with
 * VHCA_CQE_LOC_QP_OP_ERR.
 */
struct vhca_wqe_ctrl {
	__be32	idx_opcode;
	__be32	qpn_ds;
	__u8	signature;
	__u8	rsvd[2];
	__u8	flags;
	__be32	imm;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_ctrl, 16);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, idx_opcode, 0);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, qpn_ds, 4);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, signature, 8);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, rsvd, 9);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, flags, 11);
VHCA_ASSERT_AT(struct vhca_wqe_ctrl, imm, 12);

#define VHCA_WQE_IDX_SHIFT	8
#define VHCA_WQE_QPN_SHIFT	8
#define VHCA_WQE_DS_MASK	0xff

/**
 * struct vhca_wqe_xrc - where an XRC message goes, behind the control segment
 * @srqn: number of the XRC SRQ, in the domain of the target QP.
 * @rsvd: zero.
 */
struct vhca_wqe_xrc {
	__be32	srqn;
	__be32	rsvd[3];
};

VHCA_ASSERT_SIZE(struct vhca_wqe_xrc, 16);
VHCA_ASSERT_AT(struct vhca_wqe_xrc, srqn, 0);
VHCA_ASSERT_AT(struct vhca_wqe_xrc, rsvd, 4);

/**
 * struct vhca_wqe_dgram - where a datagram goes, behind the control segment
 * @dest_qpn: bits 23:0 the QPN; VHCA_QPN_MASK to a multicast group.
 * @qkey: Q_Key that the receiver must have. Bit 31 set: that of the sending QP.
 * @dlid: LID of the peer's port or of the multicast group.
 * @sl: service level, 0 to 15.
 * @is_global: 1: the message has a GRH, made of the fields that follow. Else 0.
 * @flow_label: bits 19:0.
 * @dgid: GID of the peer's port or of the multicast group.
 * @port: zero or the port of the QP.
 * @rsvd: zero.
 */
struct vhca_wqe_dgram {
	__be32	dest_qpn;
	__be32	qkey;
	__be16	dlid;
	__u8	sl;
	__u8	is_global;
	__be32	flow_label;
	__u8	dgid[16];
	__u8	hop_limit;
	__u8	traffic_class;
	__u8	sgid_index;
	__u8	src_path_bits;
	__u8	static_rate;
	__u8	port;
	__u8	rsvd[10];
};

VHCA_ASSERT_SIZE(struct vhca_wqe_dgram, 48);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, dest_qpn, 0);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, qkey, 4);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, dlid, 8);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, sl, 10);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, is_global, 11);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, flow_label, 12);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, dgid, 16);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, hop_limit, 32);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, traffic_class, 33);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, sgid_index, 34);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, src_path_bits, 35);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, static_rate, 36);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, port, 37);
VHCA_ASSERT_AT(struct vhca_wqe_dgram, rsvd, 38);

#define VHCA_WQE_DGRAM_SEGS	3
#define VHCA_GRH_SIZE		40	/* in front of the payload of each datagram received */

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
 * struct vhca_wqe_bind - what a memory window is bound to, behind the control segment
 * @rkey: key of the window; its variant (bits 7:0) is not looked at.
 * @new_rkey: key from now on: same index, whatever variant.
 * @lkey: MR that the window opens; not looked at when @length is zero.
 * @access: VHCA_ACCESS_REMOTE_*, VHCA_ACCESS_ZERO_BASED.
 * @addr: first byte, in the MR's address space.
 * @length: bytes; zero unbinds a window of type 1.
 */
struct vhca_wqe_bind {
	__be32	rkey;
	__be32	new_rkey;
	__be32	lkey;
	__be32	access;
	__be64	addr;
	__be64	length;
};

VHCA_ASSERT_SIZE(struct vhca_wqe_bind, 32);
VHCA_ASSERT_AT(struct vhca_wqe_bind, rkey, 0);
VHCA_ASSERT_AT(struct vhca_wqe_bind, new_rkey, 4);
VHCA_ASSERT_AT(struct vhca_wqe_bind, lkey, 8);
VHCA_ASSERT_AT(struct vhca_wqe_bind, access, 12);
VHCA_ASSERT_AT(struct vhca_wqe_bind, addr, 16);
VHCA_ASSERT_AT(struct vhca_wqe_bind, length, 24);

/**
 * struct vhca_wqe_recv_head - first segment of a receive WQE, where there is one
 * @tag: SRQ: chosen by software, returned as wqe_index. RQ: zero.
 * @signature: with VHCA_QP_F_SIGNATURE: makes the exclusive-or of all bytes of the
 *	WQE, sentinel included and what lies behind it not, 0xff. Else zero.
 * @rsvd: zero.
 */
struct vhca_wqe_recv_head {
	__be16	tag;
	__u8	rsvd0;
	__u8	signature;
	__be32	rsvd[3];
};

VHCA_ASSERT_SIZE(struct vhca_wqe_recv_head, 16);
VHCA_ASSERT_AT(struct vhca_wqe_recv_head, tag, 0);
VHCA_ASSERT_AT(struct vhca_wqe_recv_head, rsvd0, 2);
VHCA_ASSERT_AT(struct vhca_wqe_recv_head, signature, 3);
VHCA_ASSERT_AT(struct vhca_wqe_recv_head, rsvd, 4);

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

/*
 * The values of enum ibv_wc_status. Those marked * have no cause of their own in this
 * device: they come only when faults are ordered.
 */
enum vhca_cqe_status {
	VHCA_CQE_SUCCESS		= 0,
	VHCA_CQE_LOC_LEN_ERR		= 1,
	VHCA_CQE_LOC_QP_OP_ERR		= 2,
	VHCA_CQE_LOC_EEC_OP_ERR		= 3,	/* * */
	VHCA_CQE_LOC_PROT_ERR		= 4,
	VHCA_CQE_WR_FLUSH_ERR		= 5,
	VHCA_CQE_MW_BIND_ERR		= 6,
	VHCA_CQE_BAD_RESP_ERR		= 7,	/* * */
	VHCA_CQE_LOC_ACCESS_ERR		= 8,
	VHCA_CQE_REM_INV_REQ_ERR	= 9,
	VHCA_CQE_REM_ACCESS_ERR		= 10,
	VHCA_CQE_REM_OP_ERR		= 11,
	VHCA_CQE_RETRY_EXC_ERR		= 12,
	VHCA_CQE_RNR_RETRY_EXC_ERR	= 13,
	VHCA_CQE_LOC_RDD_VIOL_ERR	= 14,	/* * */
	VHCA_CQE_REM_INV_RD_REQ_ERR	= 15,	/* * */
	VHCA_CQE_REM_ABORT_ERR		= 16,	/* * */
	VHCA_CQE_INV_EECN_ERR		= 17,	/* * */
	VHCA_CQE_INV_EEC_STATE_ERR	= 18,	/* * */
	VHCA_CQE_FATAL_ERR		= 19,	/* * */
	VHCA_CQE_RESP_TIMEOUT_ERR	= 20,	/* * */
	VHCA_CQE_GENERAL_ERR		= 21,	/* * */
	VHCA_CQE_TM_ERR			= 22,	/* * */
	VHCA_CQE_TM_RNDV_INCOMPLETE	= 23,	/* * */
};

/* Why, in more detail than the status: the values of vendor_err. */
enum vhca_cqe_vendor_err {
	VHCA_VERR_NONE		= 0,
	VHCA_VERR_WQE_HEAD	= 0x01,	/* index, QPN, length, reserved bits */
	VHCA_VERR_WQE_OPCODE	= 0x02,
	VHCA_VERR_WQE_SEG	= 0x03,	/* segment list malformed */
	VHCA_VERR_WQE_SIGNATURE	= 0x04,
	VHCA_VERR_KEY		= 0x10,	/* no such key */
	VHCA_VERR_KEY_PD	= 0x11,	/* key of another PD */
	VHCA_VERR_KEY_ACCESS	= 0x12,	/* access right missing */
	VHCA_VERR_KEY_BOUNDS	= 0x13,	/* outside of the region */
	VHCA_VERR_KEY_KIND	= 0x14,	/* not a key of the kind that it takes, or not free */
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
	VHCA_CQE_F_IMM		= 1 << 1,	/* imm is immediate data */
	VHCA_CQE_F_INV		= 1 << 2,	/* imm is the rkey that was invalidated */
	VHCA_CQE_F_GRH		= 1 << 3,	/* a GRH is in the first 40 bytes received */
	VHCA_CQE_F_PAYLOAD	= 1 << 4,	/* payload holds the message */
	VHCA_CQE_F_SRQ		= 1 << 5,	/* receive from an SRQ */
};

/**
 * struct vhca_cqe - completion queue entry
 * @payload: with VHCA_CQE_F_PAYLOAD the message, which software copies to the SGEs of
 *	the receive WQE. Only QPs created with VHCA_QP_F_SCATTER_CQE, and only receives
 *	from their own RQ, of up to VHCA_CQE_PAYLOAD bytes.
 * @srqn: with VHCA_CQE_F_SRQ the number of the SRQ. Shares its bytes with @payload.
 * @imm: immediate data with VHCA_CQE_F_IMM, an rkey with VHCA_CQE_F_INV; else zero.
 * @byte_len: receive: length of the message in bytes. RDMA READ and atomics: of
 *	what was read. Else zero.
 * @timestamp: of a CQ created with VHCA_CQ_F_TIMESTAMP: device clock in nanoseconds
 *	when the CQE was written; else zero.
 * @flags_qpn: bits 31:24 enum vhca_cqe_flags, bits 23:0 the local QPN.
 * @wqe_index: send: producer index of the WQE's first basic block. Receive:
 *	producer index of the WQE; from an SRQ: its tag.
 * @status: enum vhca_cqe_status.
 * @vendor_err: enum vhca_cqe_vendor_err.
 * @src_qpn: receive: bits 23:0 the sender's QPN, 27:24 the service level; else zero.
 * @slid: the sender's LID for a receive; else zero.
 * @opcode: enum vhca_cqe_opcode.
 * @owner: bit 0 is the owner bit, written last; other bits are zero.
 *
 * Software reads @owner, then (read barrier; its pair is the write barrier
 * with which the device orders @owner after the rest) the other fields.
 */
struct vhca_cqe {
	union {
		__u8	payload[32];
		__be32	srqn;
	};
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
VHCA_ASSERT_AT(struct vhca_cqe, payload, 0);
VHCA_ASSERT_AT(struct vhca_cqe, srqn, 0);
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
#define VHCA_CQE_PAYLOAD	32	/* bytes */
#define VHCA_CQE_SL_SHIFT	24	/* in src_qpn */
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
 * used. A QP, CQ or SRQ has the line (slot) 1 to 63 that it was created with, in
 * both pages. An SRQ rings no doorbell. A QP with BlueFlame has a second line of the
 * UAR page.
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
 * @window: BlueFlame. When the one WQE posted takes one basic block, a QP that was
 *	created with VHCA_QP_F_BLUEFLAME stores it here instead of a doorbell: these 56
 *	bytes first, store barrier, then its first 8 bytes, which as a doorbell have
 *	bits 7:0 other than zero. Its two lines take turns. The WQE is in the SQ, too,
 *	and the record is up to date as ever: the device may take either. Before it
 *	rings a doorbell, software stores zero to the first 8 bytes of a WQE in the
 *	second line, so that none is found there when its index comes again. The device
 *	takes a WQE from a line only when it is the last that the record tells of, and
 *	still is when it was copied. Else zero.
 */
struct vhca_uar_slot {
	__be64	doorbell;
	__u8	window[56];
};

VHCA_ASSERT_SIZE(struct vhca_uar_slot, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_uar_slot, doorbell, 0);
VHCA_ASSERT_AT(struct vhca_uar_slot, window, 8);

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
 * struct vhca_srq_dbr - doorbell record of an SRQ
 * @pi: written by software. Bits 15:0 the producer index, the rest zero.
 * @rsvd: zero.
 */
struct vhca_srq_dbr {
	__be32	pi;
	__u8	rsvd[60];
};

VHCA_ASSERT_SIZE(struct vhca_srq_dbr, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_srq_dbr, pi, 0);
VHCA_ASSERT_AT(struct vhca_srq_dbr, rsvd, 4);

/**
 * struct vhca_cq_dbr - doorbell record of a CQ
 * @ci: written by software. Bits 23:0 the consumer index: how many CQEs were
 *	consumed, modulo 2^24.
 * @arm: written by software, the arm word. Bits 29:28 the sequence number, bit
 *	24 VHCA_ARM_SOLICITED, bits 23:0 the consumer index when it was armed.
 * @fired: written by the device. The sequence number of the arm that fired last.
 * @rsvd: zero.
 *
 * The CQ is armed while the arm word's sequence number is one more (modulo 4)
 * than that of the arm that fired last. It starts at 0 on both sides, so that a
 * zeroed record is not armed; the first arm carries 1. The device stores @fired
 * before the event; software that reads an event takes the number behind @fired
 * for its next arms. An arm written twice, or found again after it fired,
 * therefore fires once, and an event that no arm asked for changes nothing.
 *
 * Software: store @arm, full barrier, look at the next CQE; when there is one,
 * ring the CQ's doorbell. Device: write the CQE, full barrier, load @arm. One
 * of the two sees the other. On the doorbell the device raises the event at
 * once when its producer index is beyond the arm word's consumer index; a CQE
 * that was consumed before the CQ was armed raises none.
 */
struct vhca_cq_dbr {
	__be32	ci;
	__be32	arm;
	__be32	fired;
	__u8	rsvd[52];
};

VHCA_ASSERT_SIZE(struct vhca_cq_dbr, VHCA_UAR_SLOT_SIZE);
VHCA_ASSERT_AT(struct vhca_cq_dbr, ci, 0);
VHCA_ASSERT_AT(struct vhca_cq_dbr, arm, 4);
VHCA_ASSERT_AT(struct vhca_cq_dbr, fired, 8);
VHCA_ASSERT_AT(struct vhca_cq_dbr, rsvd, 12);

#define VHCA_CI_MASK		0xffffff
#define VHCA_ARM_SOLICITED	(1u << 24)
#define VHCA_ARM_SN_SHIFT	28
#define VHCA_ARM_SN_MASK	3

#endif
