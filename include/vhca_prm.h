/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programming model between the driver and the device:
 * registers, admin queue, event queues, object contexts. What user space owns
 * is in vhca_queue.h; the prose is in Documentation/prm.rst.
 *
 * Everything is big-endian, registers included.
 */
#ifndef VHCA_PRM_H
#define VHCA_PRM_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>

#include "../uapi/vhca_queue.h"

#define VHCA_PCI_VENDOR		0x1234	/* assigned to nobody */
#define VHCA_PCI_DEVICE		0x5643	/* "VC" */
#define VHCA_PCI_CLASS		0x020700 /* InfiniBand controller */

#define VHCA_PAGE_SHIFT		12
#define VHCA_PAGE_SIZE		BIT(VHCA_PAGE_SHIFT)

/* BARs, all 64-bit and prefetchable. */
#define VHCA_BAR_REGS		0	/* registers */
#define VHCA_BAR_UAR		2	/* UAR pages */
#define VHCA_BAR_MSIX		4	/* MSI-X table and pending bits */
#define VHCA_REGS_SIZE		0x10000
#define VHCA_MSIX_VECTORS	64
#define VHCA_MSIX_TABLE		0x000
#define VHCA_MSIX_PBA		0x800
#define VHCA_MSIX_SIZE		0x1000

/*
 * BAR0. Offsets in bytes; registers are 32 bits wide, those with two words are
 * read and written high word first.
 */
#define VHCA_REG_MAGIC		0x000	/* VHCA_MAGIC */
#define VHCA_REG_VERSION	0x004	/* VHCA_PRM_VERSION */
#define VHCA_REG_STATUS		0x008	/* VHCA_STATUS_*; written by the device */
#define VHCA_REG_CONTROL	0x00c	/* VHCA_CONTROL_*; written by the driver */
#define VHCA_REG_FW_VER		0x010	/* two words: major << 32 | minor << 16 | patch */
#define VHCA_REG_NODE_GUID	0x018	/* two words */
#define VHCA_REG_FUNCTION	0x020	/* index of the function on its device */
#define VHCA_REG_MAX_QP		0x024
#define VHCA_REG_MAX_CQ		0x028
#define VHCA_REG_MAX_EQ		0x02c
#define VHCA_REG_MAX_MKEY	0x030
#define VHCA_REG_MAX_PD		0x034
#define VHCA_REG_MAX_UAR	0x038
#define VHCA_REG_MAX_SQ_SHIFT	0x03c	/* log2 of basic blocks */
#define VHCA_REG_MAX_RQ_SHIFT	0x040	/* log2 of WQEs */
#define VHCA_REG_MAX_CQ_SHIFT	0x044	/* log2 of CQEs */
#define VHCA_REG_MAX_EQ_SHIFT	0x048	/* log2 of EQEs */
#define VHCA_REG_MAX_SEND_SGE	0x04c
#define VHCA_REG_MAX_RECV_SGE	0x050
#define VHCA_REG_MAX_INLINE	0x054
#define VHCA_REG_MAX_RD_ATOM	0x058	/* per QP, either side */
#define VHCA_REG_MAX_MR_SIZE	0x05c	/* two words: bytes */
#define VHCA_REG_ACK_DELAY	0x064	/* 4.096 us * 2^n */
#define VHCA_REG_NUM_PORTS	0x068
#define VHCA_REG_MAX_SRQ	0x06c
#define VHCA_REG_MAX_SRQ_SHIFT	0x070	/* log2 of WQEs */
#define VHCA_REG_MAX_SRQ_SGE	0x074
#define VHCA_REG_MAX_XRCD	0x078
#define VHCA_REG_ASQ_BASE	0x080	/* two words: DMA address of the admin SQ */
#define VHCA_REG_ACQ_BASE	0x088	/* two words: DMA address of the admin CQ */
#define VHCA_REG_ADMIN_SHIFT	0x090	/* log2 of entries in both, 1 to VHCA_ADMIN_MAX_SHIFT */
#define VHCA_REG_ASQ_DB		0x094	/* producer index of the admin SQ, modulo 2^32 */
#define VHCA_REG_MAX_MCAST_GRP	0x098
#define VHCA_REG_MAX_MCAST_QP	0x09c	/* per group */
#define VHCA_REG_DM_PAGE	0x0a0	/* page of BAR2 with which device memory begins */
#define VHCA_REG_DM_PAGES	0x0a4
#define VHCA_REG_MAX_CQ_COUNT	0x0a8	/* of struct vhca_cmd_modify_cq */
#define VHCA_REG_MAX_CQ_PERIOD	0x0ac
#define VHCA_REG_EQ_DB(eqn)	(0x1000 + 4 * (eqn))	/* VHCA_EQ_DB_* */

#define VHCA_MAGIC		0x56484341	/* "VHCA" */
#define VHCA_PRM_VERSION	1

#define VHCA_STATUS_READY	BIT(0)	/* follows VHCA_CONTROL_ENABLE */
#define VHCA_STATUS_FATAL	BIT(1)	/* only a reset helps */
#define VHCA_CONTROL_ENABLE	BIT(0)	/* 0 resets: every object is forgotten */

/*
 * EQ doorbell: the consumer index (EQEs consumed, modulo 2^24) and the arm bit.
 * An armed EQ sends its vector once, when it holds an EQE at or behind the
 * consumer index of the doorbell; a doorbell with another consumer index arms it
 * again.
 */
#define VHCA_EQ_DB_CI_MASK	0xffffff
#define VHCA_EQ_DB_ARM		BIT(31)

/*
 * Admin queue
 *
 * The admin SQ is a ring of struct vhca_cmd, the admin CQ one of struct
 * vhca_cmd_done with an owner bit as in struct vhca_cqe. At most as many
 * commands may be outstanding as there are entries. Commands are executed in
 * order, each is answered once.
 */
#define VHCA_ADMIN_MAX_SHIFT	8

enum vhca_cmd_opcode {
	VHCA_CMD_QUERY_PORT	= 0x01,
	VHCA_CMD_QUERY_GID	= 0x02,
	VHCA_CMD_QUERY_PKEY	= 0x03,
	VHCA_CMD_CREATE_EQ	= 0x10,
	VHCA_CMD_DESTROY_EQ	= 0x11,
	VHCA_CMD_ALLOC_UAR	= 0x20,
	VHCA_CMD_FREE_UAR	= 0x21,
	VHCA_CMD_ALLOC_PD	= 0x22,
	VHCA_CMD_FREE_PD	= 0x23,
	VHCA_CMD_CREATE_MKEY	= 0x24,
	VHCA_CMD_DESTROY_MKEY	= 0x25,
	VHCA_CMD_CREATE_CQ	= 0x26,
	VHCA_CMD_DESTROY_CQ	= 0x27,
	VHCA_CMD_CREATE_QP	= 0x28,
	VHCA_CMD_MODIFY_QP	= 0x29,
	VHCA_CMD_QUERY_QP	= 0x2a,
	VHCA_CMD_DESTROY_QP	= 0x2b,
	VHCA_CMD_RESIZE_CQ	= 0x2c,
	VHCA_CMD_MODIFY_CQ	= 0x2d,
	VHCA_CMD_ALLOC_DM	= 0x2e,
	VHCA_CMD_FREE_DM	= 0x2f,
	VHCA_CMD_ALLOC_XRCD	= 0x30,
	VHCA_CMD_FREE_XRCD	= 0x31,
	VHCA_CMD_CREATE_SRQ	= 0x32,
	VHCA_CMD_MODIFY_SRQ	= 0x33,
	VHCA_CMD_QUERY_SRQ	= 0x34,
	VHCA_CMD_DESTROY_SRQ	= 0x35,
	VHCA_CMD_ATTACH_MCAST	= 0x36,
	VHCA_CMD_DETACH_MCAST	= 0x37,
};

enum vhca_cmd_status {
	VHCA_CMD_OK		= 0,
	VHCA_CMD_BAD_OPCODE	= 1,
	VHCA_CMD_BAD_PARAM	= 2,	/* a value out of range, a reserved field not zero */
	VHCA_CMD_BAD_OBJECT	= 3,	/* a number that names nothing */
	VHCA_CMD_BAD_STATE	= 4,	/* not in this state of the object */
	VHCA_CMD_BUSY		= 5,	/* another object uses it; slot taken */
	VHCA_CMD_NO_RESOURCE	= 6,	/* a limit is reached */
	VHCA_CMD_NO_MEMORY	= 7,
};

/**
 * struct vhca_page_list - page of a chained list of pages
 * @addr: DMA addresses of pages of 4096 bytes, aligned.
 * @next: DMA address of the next page of the list; zero in the last.
 *
 * The list is read while the command that names it is executed, not later.
 */
#define VHCA_PAGE_LIST_ADDRS	511
struct vhca_page_list {
	__be64	addr[VHCA_PAGE_LIST_ADDRS];
	__be64	next;
};

VHCA_ASSERT_SIZE(struct vhca_page_list, VHCA_PAGE_SIZE);
VHCA_ASSERT_AT(struct vhca_page_list, addr, 0);
VHCA_ASSERT_AT(struct vhca_page_list, next, 4088);

/** struct vhca_cmd_object - QUERY_* (index), all DESTROY_*, FREE_*; ALLOC_UAR: its owner */
struct vhca_cmd_object {
	__be32	number;		/* UAR, PD, MKey, EQN, CQN, QPN, SRQN ...; QUERY_*: port */
	__be32	index;		/* QUERY_GID, QUERY_PKEY; else zero */
};

VHCA_ASSERT_SIZE(struct vhca_cmd_object, 8);
VHCA_ASSERT_AT(struct vhca_cmd_object, number, 0);
VHCA_ASSERT_AT(struct vhca_cmd_object, index, 4);

/** struct vhca_cmd_create_eq - CREATE_EQ */
struct vhca_cmd_create_eq {
	__be32	eqn;		/* chosen by the driver; 0 is the async EQ */
	__be32	vector;		/* entry of the MSI-X table */
	__be32	shift;		/* log2 of EQEs */
	__be32	rsvd;
	__be64	pages;		/* struct vhca_page_list of the ring */
};

VHCA_ASSERT_SIZE(struct vhca_cmd_create_eq, 24);
VHCA_ASSERT_AT(struct vhca_cmd_create_eq, eqn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_create_eq, vector, 4);
VHCA_ASSERT_AT(struct vhca_cmd_create_eq, shift, 8);
VHCA_ASSERT_AT(struct vhca_cmd_create_eq, rsvd, 12);
VHCA_ASSERT_AT(struct vhca_cmd_create_eq, pages, 16);

enum vhca_mkey_kind {
	VHCA_MKEY_PAGES,	/* host memory */
	VHCA_MKEY_NULL,		/* reads as zeroes, loses what is written; all other fields 0 */
	VHCA_MKEY_DM,		/* device memory */
	VHCA_MKEY_MW1,		/* window of type 1, unbound; iova to access: 0 */
	VHCA_MKEY_MW2,		/* window of type 2 (2B), likewise */
	VHCA_MKEY_KINDS,
};

/** struct vhca_cmd_create_mkey - CREATE_MKEY */
struct vhca_cmd_create_mkey {
	__be32	pd;
	__be32	access;		/* VHCA_MKEY_* rights */
	__be64	iova;		/* address of the first byte */
	__be64	length;		/* bytes */
	__be64	pages;		/* struct vhca_page_list; 0 when length is; DM: its number */
	__be32	kind;		/* enum vhca_mkey_kind */
	__be32	offset;		/* of the first byte in the first page; DM: in the memory */
	__be32	key;		/* of the MR in whose place it is to be at once, or 0: a new key */
	__be32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_create_mkey, 48);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, pd, 0);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, access, 4);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, iova, 8);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, length, 16);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, pages, 24);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, kind, 32);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, offset, 36);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, key, 40);
VHCA_ASSERT_AT(struct vhca_cmd_create_mkey, rsvd, 44);

/* Local read is always granted. */
#define VHCA_MKEY_LOCAL_WRITE	BIT(0)
#define VHCA_MKEY_REMOTE_WRITE	BIT(1)
#define VHCA_MKEY_REMOTE_READ	BIT(2)
#define VHCA_MKEY_REMOTE_ATOMIC	BIT(3)
#define VHCA_MKEY_MW_BIND	BIT(4)
#define VHCA_MKEY_ACCESS	0x1f	/* those above, which QPs and windows have, too */
/* Software finds the memory at the addresses by which WQEs name it. */
#define VHCA_MKEY_VIRTUAL	BIT(5)

/** struct vhca_cmd_alloc_dm - ALLOC_DM; the answer's number is the first page */
struct vhca_cmd_alloc_dm {
	__be32	npages;		/* of VHCA_PAGE_SIZE, in one piece; zeroed */
};

VHCA_ASSERT_SIZE(struct vhca_cmd_alloc_dm, 4);
VHCA_ASSERT_AT(struct vhca_cmd_alloc_dm, npages, 0);

/** struct vhca_cmd_create_cq - CREATE_CQ; the ring must be zeroed */
struct vhca_cmd_create_cq {
	__be32	eqn;		/* EQ for its completion events; not 0 */
	__be32	uar;
	__be32	slot;		/* in the UAR page */
	__be32	shift;		/* log2 of CQEs */
	__be64	dbr;		/* DMA address of the record, 64-byte aligned, zeroed */
	__be64	pages;
	__be32	flags;		/* VHCA_CQ_* */
	__be32	rsvd;
};

#define VHCA_CQ_TIMESTAMP	BIT(0)	/* CQEs carry a timestamp */
#define VHCA_CQ_IGNORE_OVERRUN	BIT(1)	/* ci is not looked at */

VHCA_ASSERT_SIZE(struct vhca_cmd_create_cq, 40);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, eqn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, uar, 4);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, slot, 8);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, shift, 12);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, dbr, 16);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, pages, 24);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, flags, 32);
VHCA_ASSERT_AT(struct vhca_cmd_create_cq, rsvd, 36);

/**
 * struct vhca_cmd_resize_cq - RESIZE_CQ; the new ring must be zeroed
 *
 * CQEs between ci and the producer index are moved. BAD_STATE: they are more than the
 * new ring holds, or the CQ is in error. The old ring is the driver's again when the
 * answer is there.
 */
struct vhca_cmd_resize_cq {
	__be32	cqn;
	__be32	shift;		/* log2 of CQEs */
	__be64	pages;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_resize_cq, 16);
VHCA_ASSERT_AT(struct vhca_cmd_resize_cq, cqn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_resize_cq, shift, 4);
VHCA_ASSERT_AT(struct vhca_cmd_resize_cq, pages, 8);

/** struct vhca_cmd_modify_cq - MODIFY_CQ, as struct vhca_modify_cq */
struct vhca_cmd_modify_cq {
	__be32	cqn;
	__be32	count;
	__be32	period;		/* microseconds */
};

VHCA_ASSERT_SIZE(struct vhca_cmd_modify_cq, 12);
VHCA_ASSERT_AT(struct vhca_cmd_modify_cq, cqn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_modify_cq, count, 4);
VHCA_ASSERT_AT(struct vhca_cmd_modify_cq, period, 8);

/**
 * struct vhca_cmd_create_srq - CREATE_SRQ
 *
 * XRC: with a domain and a CQ for its receives; else both are zero.
 */
struct vhca_cmd_create_srq {
	__be32	pd;
	__be32	xrcd;
	__be32	cqn;
	__be32	uar;
	__be32	slot;
	__be32	limit;
	__u8	shift;		/* log2 of WQEs */
	__u8	sge_shift;	/* log2 of segments in a WQE, head included; 1 or more */
	__u8	rsvd[6];
	__be64	dbr;
	__be64	pages;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_create_srq, 48);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, pd, 0);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, xrcd, 4);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, cqn, 8);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, uar, 12);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, slot, 16);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, limit, 20);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, shift, 24);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, sge_shift, 25);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, rsvd, 26);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, dbr, 32);
VHCA_ASSERT_AT(struct vhca_cmd_create_srq, pages, 40);

/** struct vhca_cmd_modify_srq - MODIFY_SRQ: arm the limit event; zero: disarm */
struct vhca_cmd_modify_srq {
	__be32	srqn;
	__be32	limit;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_modify_srq, 8);
VHCA_ASSERT_AT(struct vhca_cmd_modify_srq, srqn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_modify_srq, limit, 4);

/** struct vhca_cmd_mcast - ATTACH_MCAST and DETACH_MCAST */
struct vhca_cmd_mcast {
	__be32	qpn;
	__be16	dlid;		/* zero: the GID alone names the group */
	__be16	rsvd;
	__u8	gid[16];
};

VHCA_ASSERT_SIZE(struct vhca_cmd_mcast, 24);
VHCA_ASSERT_AT(struct vhca_cmd_mcast, qpn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_mcast, dlid, 4);
VHCA_ASSERT_AT(struct vhca_cmd_mcast, rsvd, 6);
VHCA_ASSERT_AT(struct vhca_cmd_mcast, gid, 8);

#define VHCA_PRM_QPT_RC		2
#define VHCA_PRM_QPT_UC		3
#define VHCA_PRM_QPT_UD		4
#define VHCA_PRM_QPT_XRC_SEND	9
#define VHCA_PRM_QPT_XRC_RECV	10

/* Flags of a QP, as VHCA_QP_F_* of the user ABI. */
#define VHCA_QPF_SIGNATURE	BIT(0)
#define VHCA_QPF_SCATTER_CQE	BIT(1)
#define VHCA_QPF_BLUEFLAME	BIT(2)
#define VHCA_QPF_BLOCK_LOOPBACK	BIT(3)
#define VHCA_QPF_ALL		0xf

/**
 * struct vhca_cmd_create_qp - CREATE_QP
 *
 * XRC_SEND: no RQ and no CQ for it. XRC_RECV: no queue, no PD, no CQs, no slot and no
 * record. The fields of what is not there are zero.
 */
struct vhca_cmd_create_qp {
	__be32	type;		/* VHCA_PRM_QPT_* */
	__be32	pd;
	__be32	send_cqn;
	__be32	recv_cqn;
	__be32	uar;
	__be32	slot;
	__u8	sq_shift;	/* log2 of basic blocks */
	__u8	rq_shift;	/* log2 of receive WQEs */
	__u8	rq_sge_shift;	/* log2 of segments in a receive WQE */
	__u8	flags;		/* VHCA_QPF_* */
	__u8	bf_slot;	/* with VHCA_QPF_BLUEFLAME, else zero */
	__u8	rsvd[3];
	__be64	dbr;
	__be64	pages;		/* SQ, then RQ; zero when it has neither */
	__be32	srqn;		/* or zero */
	__be32	xrcd;		/* of an XRC_RECV QP, else zero */
};

VHCA_ASSERT_SIZE(struct vhca_cmd_create_qp, 56);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, type, 0);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, pd, 4);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, send_cqn, 8);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, recv_cqn, 12);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, uar, 16);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, slot, 20);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, sq_shift, 24);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, rq_shift, 25);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, rq_sge_shift, 26);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, flags, 27);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, bf_slot, 28);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, rsvd, 29);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, dbr, 32);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, pages, 40);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, srqn, 48);
VHCA_ASSERT_AT(struct vhca_cmd_create_qp, xrcd, 52);

/* States of a QP, numbered as in the verbs. */
enum vhca_prm_qp_state {
	VHCA_QP_RESET,
	VHCA_QP_INIT,
	VHCA_QP_RTR,
	VHCA_QP_RTS,
	VHCA_QP_SQD,
	VHCA_QP_SQE,
	VHCA_QP_ERR,
	VHCA_QP_STATES,
};

/**
 * struct vhca_prm_qp - context of a QP: MODIFY_QP in, QUERY_QP out
 * @mask: which fields MODIFY_QP sets; VHCA_QPM_*.
 * @state: state to go to with VHCA_QPM_STATE, else zero. Query: the state.
 * @cur_state: with VHCA_QPM_CUR_STATE the state that it must be in.
 * @sq_draining: query: SQD, and a WQE is still being executed.
 * @dlid: LID of the peer's port.
 * @dgid: GID of the peer's port; leads there when @is_global is 1 and @dlid is 0.
 */
struct vhca_prm_qp {
	__be32	mask;
	__u8	state;
	__u8	cur_state;
	__u8	sq_draining;
	__u8	sqd_notify;
	__be32	access;		/* VHCA_MKEY_* */
	__be32	qkey;
	__be32	rq_psn;
	__be32	sq_psn;
	__be32	dest_qpn;
	__be16	pkey_index;
	__be16	dlid;
	__u8	dgid[16];
	__be32	flow_label;
	__u8	is_global;
	__u8	sgid_index;
	__u8	hop_limit;
	__u8	traffic_class;
	__u8	sl;
	__u8	src_path_bits;
	__u8	static_rate;
	__u8	port;
	__u8	path_mtu;	/* 1 to 5: 256 to 4096 bytes */
	__u8	max_rd_atomic;
	__u8	max_dest_rd_atomic;
	__u8	min_rnr_timer;	/* 0 to 31 */
	__u8	timeout;	/* 4.096 us * 2^n; 0 is for ever */
	__u8	retry_cnt;	/* 0 to 7 */
	__u8	rnr_retry;	/* 0 to 7; 7 is for ever */
	__u8	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_prm_qp, 68);
VHCA_ASSERT_AT(struct vhca_prm_qp, mask, 0);
VHCA_ASSERT_AT(struct vhca_prm_qp, state, 4);
VHCA_ASSERT_AT(struct vhca_prm_qp, cur_state, 5);
VHCA_ASSERT_AT(struct vhca_prm_qp, sq_draining, 6);
VHCA_ASSERT_AT(struct vhca_prm_qp, sqd_notify, 7);
VHCA_ASSERT_AT(struct vhca_prm_qp, access, 8);
VHCA_ASSERT_AT(struct vhca_prm_qp, qkey, 12);
VHCA_ASSERT_AT(struct vhca_prm_qp, rq_psn, 16);
VHCA_ASSERT_AT(struct vhca_prm_qp, sq_psn, 20);
VHCA_ASSERT_AT(struct vhca_prm_qp, dest_qpn, 24);
VHCA_ASSERT_AT(struct vhca_prm_qp, pkey_index, 28);
VHCA_ASSERT_AT(struct vhca_prm_qp, dlid, 30);
VHCA_ASSERT_AT(struct vhca_prm_qp, dgid, 32);
VHCA_ASSERT_AT(struct vhca_prm_qp, flow_label, 48);
VHCA_ASSERT_AT(struct vhca_prm_qp, is_global, 52);
VHCA_ASSERT_AT(struct vhca_prm_qp, sgid_index, 53);
VHCA_ASSERT_AT(struct vhca_prm_qp, hop_limit, 54);
VHCA_ASSERT_AT(struct vhca_prm_qp, traffic_class, 55);
VHCA_ASSERT_AT(struct vhca_prm_qp, sl, 56);
VHCA_ASSERT_AT(struct vhca_prm_qp, src_path_bits, 57);
VHCA_ASSERT_AT(struct vhca_prm_qp, static_rate, 58);
VHCA_ASSERT_AT(struct vhca_prm_qp, port, 59);
VHCA_ASSERT_AT(struct vhca_prm_qp, path_mtu, 60);
VHCA_ASSERT_AT(struct vhca_prm_qp, max_rd_atomic, 61);
VHCA_ASSERT_AT(struct vhca_prm_qp, max_dest_rd_atomic, 62);
VHCA_ASSERT_AT(struct vhca_prm_qp, min_rnr_timer, 63);
VHCA_ASSERT_AT(struct vhca_prm_qp, timeout, 64);
VHCA_ASSERT_AT(struct vhca_prm_qp, retry_cnt, 65);
VHCA_ASSERT_AT(struct vhca_prm_qp, rnr_retry, 66);
VHCA_ASSERT_AT(struct vhca_prm_qp, rsvd, 67);

/* Fields of struct vhca_prm_qp; numbered as in the verbs. */
#define VHCA_QPM_STATE			BIT(0)
#define VHCA_QPM_CUR_STATE		BIT(1)
#define VHCA_QPM_SQD_NOTIFY		BIT(2)
#define VHCA_QPM_ACCESS			BIT(3)
#define VHCA_QPM_PKEY_INDEX		BIT(4)
#define VHCA_QPM_PORT			BIT(5)
#define VHCA_QPM_QKEY			BIT(6)
#define VHCA_QPM_AV			BIT(7)
#define VHCA_QPM_PATH_MTU		BIT(8)
#define VHCA_QPM_TIMEOUT		BIT(9)
#define VHCA_QPM_RETRY_CNT		BIT(10)
#define VHCA_QPM_RNR_RETRY		BIT(11)
#define VHCA_QPM_RQ_PSN			BIT(12)
#define VHCA_QPM_MAX_RD_ATOMIC		BIT(13)
#define VHCA_QPM_MIN_RNR_TIMER		BIT(15)
#define VHCA_QPM_SQ_PSN			BIT(16)
#define VHCA_QPM_MAX_DEST_RD_ATOMIC	BIT(17)
#define VHCA_QPM_DEST_QPN		BIT(20)

/** struct vhca_cmd_modify_qp - MODIFY_QP */
struct vhca_cmd_modify_qp {
	__be32	qpn;
	__be32	rsvd;
	struct vhca_prm_qp	qp;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_modify_qp, 76);
VHCA_ASSERT_AT(struct vhca_cmd_modify_qp, qpn, 0);
VHCA_ASSERT_AT(struct vhca_cmd_modify_qp, rsvd, 4);
VHCA_ASSERT_AT(struct vhca_cmd_modify_qp, qp, 8);

/**
 * struct vhca_cmd - entry of the admin SQ
 * @opcode: enum vhca_cmd_opcode.
 * @rsvd: zero.
 * @tag: chosen by the driver, returned with the answer.
 *
 * Bytes that the opcode's structure does not use are zero.
 */
struct vhca_cmd {
	__be16	opcode;
	__be16	rsvd;
	__be32	tag;
	union {
		struct vhca_cmd_object		object;
		struct vhca_cmd_create_eq	create_eq;
		struct vhca_cmd_create_mkey	create_mkey;
		struct vhca_cmd_create_cq	create_cq;
		struct vhca_cmd_create_qp	create_qp;
		struct vhca_cmd_modify_qp	modify_qp;
		struct vhca_cmd_resize_cq	resize_cq;
		struct vhca_cmd_modify_cq	modify_cq;
		struct vhca_cmd_alloc_dm	alloc_dm;
		struct vhca_cmd_create_srq	create_srq;
		struct vhca_cmd_modify_srq	modify_srq;
		struct vhca_cmd_mcast		mcast;
		__u8				bytes[120];
	};
};

VHCA_ASSERT_SIZE(struct vhca_cmd, 128);
VHCA_ASSERT_AT(struct vhca_cmd, opcode, 0);
VHCA_ASSERT_AT(struct vhca_cmd, rsvd, 2);
VHCA_ASSERT_AT(struct vhca_cmd, tag, 4);
VHCA_ASSERT_AT(struct vhca_cmd, bytes, 8);

/** struct vhca_prm_port - QUERY_PORT out; values as in the verbs */
struct vhca_prm_port {
	__be32	cap_flags;
	__be32	max_msg_sz;
	__be32	gid_tbl_len;
	__be16	pkey_tbl_len;
	__be16	lid;
	__be16	sm_lid;
	__u8	state;
	__u8	phys_state;
	__u8	max_mtu;
	__u8	active_mtu;
	__u8	max_vl_num;
	__u8	active_width;
	__u8	active_speed;
	__u8	link_layer;
	__u8	subnet_timeout;
	__u8	rsvd;
	__be32	qkey_viol_cntr;
};

VHCA_ASSERT_SIZE(struct vhca_prm_port, 32);
VHCA_ASSERT_AT(struct vhca_prm_port, cap_flags, 0);
VHCA_ASSERT_AT(struct vhca_prm_port, max_msg_sz, 4);
VHCA_ASSERT_AT(struct vhca_prm_port, gid_tbl_len, 8);
VHCA_ASSERT_AT(struct vhca_prm_port, pkey_tbl_len, 12);
VHCA_ASSERT_AT(struct vhca_prm_port, lid, 14);
VHCA_ASSERT_AT(struct vhca_prm_port, sm_lid, 16);
VHCA_ASSERT_AT(struct vhca_prm_port, state, 18);
VHCA_ASSERT_AT(struct vhca_prm_port, phys_state, 19);
VHCA_ASSERT_AT(struct vhca_prm_port, max_mtu, 20);
VHCA_ASSERT_AT(struct vhca_prm_port, active_mtu, 21);
VHCA_ASSERT_AT(struct vhca_prm_port, max_vl_num, 22);
VHCA_ASSERT_AT(struct vhca_prm_port, active_width, 23);
VHCA_ASSERT_AT(struct vhca_prm_port, active_speed, 24);
VHCA_ASSERT_AT(struct vhca_prm_port, link_layer, 25);
VHCA_ASSERT_AT(struct vhca_prm_port, subnet_timeout, 26);
VHCA_ASSERT_AT(struct vhca_prm_port, rsvd, 27);
VHCA_ASSERT_AT(struct vhca_prm_port, qkey_viol_cntr, 28);

/**
 * struct vhca_cmd_done - entry of the admin CQ
 * @tag: of the command.
 * @status: enum vhca_cmd_status; when it is not VHCA_CMD_OK the rest is zero.
 * @number: ALLOC_*, CREATE_*: number of the new object (CREATE_MKEY: the key).
 * @owner: bit 0 is the owner bit, written last.
 */
struct vhca_cmd_done {
	__be32	tag;
	__be32	number;
	__u8	status;
	__u8	rsvd[3];
	union {
		struct vhca_prm_port	port;
		struct vhca_prm_qp	qp;
		__u8			gid[16];
		__be16			pkey;
		__be32			srq_limit;	/* QUERY_SRQ */
		__u8			bytes[112];
	};
	__u8	rsvd2[3];
	__u8	owner;
};

VHCA_ASSERT_SIZE(struct vhca_cmd_done, 128);
VHCA_ASSERT_AT(struct vhca_cmd_done, tag, 0);
VHCA_ASSERT_AT(struct vhca_cmd_done, number, 4);
VHCA_ASSERT_AT(struct vhca_cmd_done, status, 8);
VHCA_ASSERT_AT(struct vhca_cmd_done, rsvd, 9);
VHCA_ASSERT_AT(struct vhca_cmd_done, bytes, 12);
VHCA_ASSERT_AT(struct vhca_cmd_done, rsvd2, 124);
VHCA_ASSERT_AT(struct vhca_cmd_done, owner, 127);

/* Event queues */
enum vhca_eqe_type {
	VHCA_EQE_COMP		= 0x00,	/* number: CQN; on the CQ's EQ, all others on EQ 0 */
	VHCA_EQE_CMD		= 0x01,	/* an admin command was answered; number: zero */
	VHCA_EQE_COMM_EST	= 0x10,	/* number: QPN */
	VHCA_EQE_SQ_DRAINED	= 0x11,	/* number: QPN */
	VHCA_EQE_QP_FATAL	= 0x12,	/* number: QPN */
	VHCA_EQE_QP_REQ_ERR	= 0x13,	/* number: QPN */
	VHCA_EQE_QP_ACCESS_ERR	= 0x14,	/* number: QPN */
	VHCA_EQE_QP_LAST_WQE	= 0x15,	/* number: QPN */
	VHCA_EQE_PATH_MIG	= 0x16,	/* number: QPN */
	VHCA_EQE_PATH_MIG_ERR	= 0x17,	/* number: QPN */
	VHCA_EQE_CQ_ERR		= 0x18,	/* number: CQN */
	VHCA_EQE_SRQ_LIMIT	= 0x1a,	/* number: SRQN */
	VHCA_EQE_SRQ_ERR	= 0x1b,	/* number: SRQN */
	VHCA_EQE_PORT_ACTIVE	= 0x20,	/* number: port */
	VHCA_EQE_PORT_ERR	= 0x21,	/* number: port */
	VHCA_EQE_LID_CHANGE	= 0x22,	/* number: port */
	VHCA_EQE_PKEY_CHANGE	= 0x23,	/* number: port */
	VHCA_EQE_SM_CHANGE	= 0x24,	/* number: port */
	VHCA_EQE_REREGISTER	= 0x25,	/* number: port */
	VHCA_EQE_GID_CHANGE	= 0x26,	/* number: port */
	VHCA_EQE_DEVICE_FATAL	= 0x28,	/* number: zero */
};

/**
 * struct vhca_eqe - event queue entry; owner bit as in struct vhca_cqe
 * @number: the object, as the type says.
 * @type: enum vhca_eqe_type.
 * @owner: bit 0 is the owner bit, written last.
 */
struct vhca_eqe {
	__be32	number;
	__be32	rsvd[2];
	__u8	type;
	__u8	rsvd2[2];
	__u8	owner;
};

VHCA_ASSERT_SIZE(struct vhca_eqe, 16);
VHCA_ASSERT_AT(struct vhca_eqe, number, 0);
VHCA_ASSERT_AT(struct vhca_eqe, rsvd, 4);
VHCA_ASSERT_AT(struct vhca_eqe, type, 12);
VHCA_ASSERT_AT(struct vhca_eqe, rsvd2, 13);
VHCA_ASSERT_AT(struct vhca_eqe, owner, 15);

#endif
