/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The ioctls of the character device /dev/vhcaN.
 *
 * An open file is a context: it owns every object made through it, and their
 * numbers mean something only to it. Structures may grow at the end; a caller
 * with a shorter structure gets the old behaviour, one with a longer structure
 * must have zeroes behind what the kernel knows (else E2BIG). Reserved fields
 * and flags that are not defined must be zero (else EINVAL). The layout is the
 * same for 32-bit and 64-bit callers. Values are in host byte order unless the
 * type says otherwise. A call that fails changes nothing.
 *
 * Errors common to all: EFAULT (bad pointer), EINVAL (a value out of range, or
 * a number that names no object of this file), ENOTTY (no such call), EIO (the
 * device is gone), ENOMEM.
 */
#ifndef VHCA_ABI_H
#define VHCA_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "vhca_queue.h"

#define VHCA_ABI_VERSION	1
#define VHCA_IOC_MAGIC		0xC8

#define VHCA_INVALID_FD		(-1)

/**
 * struct vhca_query_device - VHCA_IOC_QUERY_DEVICE
 *
 * Limits are of what this file can have, except those named max_qp_* (per QP) and
 * max_cqe (per CQ). GUIDs are in network byte order.
 */
struct vhca_query_device {
	__u32	abi_version;
	__u32	function;		/* index of the function on its device */
	__be64	node_guid;
	__be64	sys_image_guid;
	__u64	fw_ver;			/* major << 32 | minor << 16 | patch */
	__u64	max_mr_size;
	__u32	vendor_id;
	__u32	vendor_part_id;
	__u32	hw_ver;
	__u32	max_qp;
	__u32	max_cq;
	__u32	max_mr;
	__u32	max_pd;
	__u32	max_uar;
	__u32	max_cqe;
	__u32	max_qp_send_shift;	/* log2 of SQ basic blocks */
	__u32	max_qp_recv_shift;	/* log2 of RQ WQEs */
	__u32	max_qp_send_sge;
	__u32	max_qp_recv_sge;
	__u32	max_qp_inline;
	__u32	max_qp_rd_atom;		/* as target */
	__u32	max_qp_init_rd_atom;	/* as initiator */
	__u32	num_comp_vectors;
	__u32	num_ports;
	__u32	max_pkeys;
	__u32	local_ca_ack_delay;	/* 4.096 us * 2^n */
	__u32	max_srq;
	__u32	max_srq_shift;		/* log2 of WQEs */
	__u32	max_srq_sge;
	__u32	max_xrcd;
	__u32	max_mcast_grp;
	__u32	max_mcast_qp_attach;	/* per group */
	__u32	max_cq_count;		/* of struct vhca_modify_cq */
	__u32	max_cq_period;
	__u64	dm_size;		/* bytes of device memory */
	__u32	max_mw;
	__u32	max_mcast_attach;	/* QPs in all groups */
};

VHCA_ASSERT_SIZE(struct vhca_query_device, 168);
VHCA_ASSERT_AT(struct vhca_query_device, abi_version, 0);
VHCA_ASSERT_AT(struct vhca_query_device, function, 4);
VHCA_ASSERT_AT(struct vhca_query_device, node_guid, 8);
VHCA_ASSERT_AT(struct vhca_query_device, sys_image_guid, 16);
VHCA_ASSERT_AT(struct vhca_query_device, fw_ver, 24);
VHCA_ASSERT_AT(struct vhca_query_device, max_mr_size, 32);
VHCA_ASSERT_AT(struct vhca_query_device, vendor_id, 40);
VHCA_ASSERT_AT(struct vhca_query_device, vendor_part_id, 44);
VHCA_ASSERT_AT(struct vhca_query_device, hw_ver, 48);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp, 52);
VHCA_ASSERT_AT(struct vhca_query_device, max_cq, 56);
VHCA_ASSERT_AT(struct vhca_query_device, max_mr, 60);
VHCA_ASSERT_AT(struct vhca_query_device, max_pd, 64);
VHCA_ASSERT_AT(struct vhca_query_device, max_uar, 68);
VHCA_ASSERT_AT(struct vhca_query_device, max_cqe, 72);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_send_shift, 76);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_recv_shift, 80);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_send_sge, 84);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_recv_sge, 88);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_inline, 92);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_rd_atom, 96);
VHCA_ASSERT_AT(struct vhca_query_device, max_qp_init_rd_atom, 100);
VHCA_ASSERT_AT(struct vhca_query_device, num_comp_vectors, 104);
VHCA_ASSERT_AT(struct vhca_query_device, num_ports, 108);
VHCA_ASSERT_AT(struct vhca_query_device, max_pkeys, 112);
VHCA_ASSERT_AT(struct vhca_query_device, local_ca_ack_delay, 116);
VHCA_ASSERT_AT(struct vhca_query_device, max_srq, 120);
VHCA_ASSERT_AT(struct vhca_query_device, max_srq_shift, 124);
VHCA_ASSERT_AT(struct vhca_query_device, max_srq_sge, 128);
VHCA_ASSERT_AT(struct vhca_query_device, max_xrcd, 132);
VHCA_ASSERT_AT(struct vhca_query_device, max_mcast_grp, 136);
VHCA_ASSERT_AT(struct vhca_query_device, max_mcast_qp_attach, 140);
VHCA_ASSERT_AT(struct vhca_query_device, max_cq_count, 144);
VHCA_ASSERT_AT(struct vhca_query_device, max_cq_period, 148);
VHCA_ASSERT_AT(struct vhca_query_device, dm_size, 152);
VHCA_ASSERT_AT(struct vhca_query_device, max_mw, 160);
VHCA_ASSERT_AT(struct vhca_query_device, max_mcast_attach, 164);

/**
 * struct vhca_query_port - VHCA_IOC_QUERY_PORT
 * @port: in, from 1.
 *
 * Values as in struct ibv_port_attr.
 */
struct vhca_query_port {
	__u32	port;
	__u32	port_cap_flags;
	__u32	max_msg_sz;
	__u32	gid_tbl_len;
	__u32	bad_pkey_cntr;
	__u32	qkey_viol_cntr;
	__u16	pkey_tbl_len;
	__u16	lid;
	__u16	sm_lid;
	__u8	state;
	__u8	max_mtu;
	__u8	active_mtu;
	__u8	lmc;
	__u8	max_vl_num;
	__u8	sm_sl;
	__u8	subnet_timeout;
	__u8	init_type_reply;
	__u8	active_width;
	__u8	active_speed;
	__u8	phys_state;
	__u8	link_layer;
	__u8	flags;
	__u8	rsvd[5];
};

VHCA_ASSERT_SIZE(struct vhca_query_port, 48);
VHCA_ASSERT_AT(struct vhca_query_port, port, 0);
VHCA_ASSERT_AT(struct vhca_query_port, port_cap_flags, 4);
VHCA_ASSERT_AT(struct vhca_query_port, max_msg_sz, 8);
VHCA_ASSERT_AT(struct vhca_query_port, gid_tbl_len, 12);
VHCA_ASSERT_AT(struct vhca_query_port, bad_pkey_cntr, 16);
VHCA_ASSERT_AT(struct vhca_query_port, qkey_viol_cntr, 20);
VHCA_ASSERT_AT(struct vhca_query_port, pkey_tbl_len, 24);
VHCA_ASSERT_AT(struct vhca_query_port, lid, 26);
VHCA_ASSERT_AT(struct vhca_query_port, sm_lid, 28);
VHCA_ASSERT_AT(struct vhca_query_port, state, 30);
VHCA_ASSERT_AT(struct vhca_query_port, max_mtu, 31);
VHCA_ASSERT_AT(struct vhca_query_port, active_mtu, 32);
VHCA_ASSERT_AT(struct vhca_query_port, lmc, 33);
VHCA_ASSERT_AT(struct vhca_query_port, max_vl_num, 34);
VHCA_ASSERT_AT(struct vhca_query_port, sm_sl, 35);
VHCA_ASSERT_AT(struct vhca_query_port, subnet_timeout, 36);
VHCA_ASSERT_AT(struct vhca_query_port, init_type_reply, 37);
VHCA_ASSERT_AT(struct vhca_query_port, active_width, 38);
VHCA_ASSERT_AT(struct vhca_query_port, active_speed, 39);
VHCA_ASSERT_AT(struct vhca_query_port, phys_state, 40);
VHCA_ASSERT_AT(struct vhca_query_port, link_layer, 41);
VHCA_ASSERT_AT(struct vhca_query_port, flags, 42);
VHCA_ASSERT_AT(struct vhca_query_port, rsvd, 43);

/** struct vhca_query_gid - VHCA_IOC_QUERY_GID; @gid is in network byte order */
struct vhca_query_gid {
	__u32	port;
	__u32	index;
	__u8	gid[16];
};

VHCA_ASSERT_SIZE(struct vhca_query_gid, 24);
VHCA_ASSERT_AT(struct vhca_query_gid, port, 0);
VHCA_ASSERT_AT(struct vhca_query_gid, index, 4);
VHCA_ASSERT_AT(struct vhca_query_gid, gid, 8);

/** struct vhca_query_pkey - VHCA_IOC_QUERY_PKEY */
struct vhca_query_pkey {
	__u32	port;
	__u32	index;
	__be16	pkey;
	__u16	rsvd[3];
};

VHCA_ASSERT_SIZE(struct vhca_query_pkey, 16);
VHCA_ASSERT_AT(struct vhca_query_pkey, port, 0);
VHCA_ASSERT_AT(struct vhca_query_pkey, index, 4);
VHCA_ASSERT_AT(struct vhca_query_pkey, pkey, 8);
VHCA_ASSERT_AT(struct vhca_query_pkey, rsvd, 10);

/**
 * struct vhca_alloc_uar - VHCA_IOC_ALLOC_UAR
 * @uar: out: number of the UAR, which no UAR of another file has.
 * @rsvd: zero.
 * @uar_offset: out: mmap offset of the UAR page (VHCA_UAR_PAGE_SIZE bytes).
 * @dbr_offset: out: mmap offset of its DBR page (VHCA_UAR_PAGE_SIZE bytes).
 *
 * ENOSPC: the device has no UAR left.
 */
struct vhca_alloc_uar {
	__u32	uar;
	__u32	rsvd;
	__u64	uar_offset;
	__u64	dbr_offset;
};

VHCA_ASSERT_SIZE(struct vhca_alloc_uar, 24);
VHCA_ASSERT_AT(struct vhca_alloc_uar, uar, 0);
VHCA_ASSERT_AT(struct vhca_alloc_uar, rsvd, 4);
VHCA_ASSERT_AT(struct vhca_alloc_uar, uar_offset, 8);
VHCA_ASSERT_AT(struct vhca_alloc_uar, dbr_offset, 16);

/**
 * struct vhca_object - names an object in the calls that need no more
 * @number: UAR, PD, MKey (lkey; of a window its rkey), XRC domain or device memory,
 *	as the call says.
 * @rsvd: zero.
 *
 * VHCA_IOC_FREE_*, VHCA_IOC_CLOSE_XRCD, VHCA_IOC_DEREG_MR: EBUSY while another object
 * uses it. VHCA_IOC_ALLOC_PD: @number is out. VHCA_IOC_QUERY_PD: is there such a PD?
 */
struct vhca_object {
	__u32	number;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_object, 8);
VHCA_ASSERT_AT(struct vhca_object, number, 0);
VHCA_ASSERT_AT(struct vhca_object, rsvd, 4);

/**
 * struct vhca_reg_mr - VHCA_IOC_REG_MR
 * @addr: in: first byte of the user's memory.
 * @length: in: bytes; zero makes a region that nothing lies in.
 * @iova: in: address by which WQEs name @addr. Zero with VHCA_ACCESS_ZERO_BASED.
 * @pd: in.
 * @access: in: VHCA_ACCESS_*. Remote write and atomic need local write.
 * @lkey: out.
 * @rkey: out.
 *
 * ENOMEM: RLIMIT_MEMLOCK would be exceeded. EFAULT: not mapped. EACCES: write
 * access to memory that is mapped read only.
 */
struct vhca_reg_mr {
	__u64	addr;
	__u64	length;
	__u64	iova;
	__u32	pd;
	__u32	access;
	__u32	lkey;
	__u32	rkey;
};

VHCA_ASSERT_SIZE(struct vhca_reg_mr, 40);
VHCA_ASSERT_AT(struct vhca_reg_mr, addr, 0);
VHCA_ASSERT_AT(struct vhca_reg_mr, length, 8);
VHCA_ASSERT_AT(struct vhca_reg_mr, iova, 16);
VHCA_ASSERT_AT(struct vhca_reg_mr, pd, 24);
VHCA_ASSERT_AT(struct vhca_reg_mr, access, 28);
VHCA_ASSERT_AT(struct vhca_reg_mr, lkey, 32);
VHCA_ASSERT_AT(struct vhca_reg_mr, rkey, 36);

/**
 * struct vhca_rereg_mr - VHCA_IOC_REREG_MR
 * @lkey: an MR of this file. Its keys stay what they are.
 * @flags: in: VHCA_REREG_*, at least one: which of the fields below are new.
 * @rkey: out.
 * @rsvd: zero.
 *
 * The fields as in struct vhca_reg_mr; zero where @flags does not name them. Errors
 * as there; EBUSY: a window is bound to it. A call that fails changes nothing.
 */
struct vhca_rereg_mr {
	__u32	lkey;
	__u32	flags;
	__u64	addr;
	__u64	length;
	__u64	iova;
	__u32	pd;
	__u32	access;
	__u32	rkey;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_rereg_mr, 48);
VHCA_ASSERT_AT(struct vhca_rereg_mr, lkey, 0);
VHCA_ASSERT_AT(struct vhca_rereg_mr, flags, 4);
VHCA_ASSERT_AT(struct vhca_rereg_mr, addr, 8);
VHCA_ASSERT_AT(struct vhca_rereg_mr, length, 16);
VHCA_ASSERT_AT(struct vhca_rereg_mr, iova, 24);
VHCA_ASSERT_AT(struct vhca_rereg_mr, pd, 32);
VHCA_ASSERT_AT(struct vhca_rereg_mr, access, 36);
VHCA_ASSERT_AT(struct vhca_rereg_mr, rkey, 40);
VHCA_ASSERT_AT(struct vhca_rereg_mr, rsvd, 44);

/* The values of enum ibv_rereg_mr_flags. */
#define VHCA_REREG_TRANSLATION	(1 << 0)	/* addr, length, iova */
#define VHCA_REREG_PD		(1 << 1)
#define VHCA_REREG_ACCESS	(1 << 2)

/**
 * struct vhca_reg_special_mr - VHCA_IOC_REG_DMABUF_MR, REG_DM_MR, REG_NULL_MR
 * @offset: in: of the first byte in the dma-buf or the device memory. Null: zero.
 * @length: in: bytes; of a dma-buf at least 1. Null: zero; any address lies in it.
 * @iova: in: address by which WQEs name the first byte. Null: zero.
 * @fd: in: a dma-buf; else zero.
 * @dm: in: device memory; else zero.
 * @pd: in.
 * @access: in: VHCA_ACCESS_*. Null: zero; what is read is zeroes, writes are lost.
 * @lkey: out.
 * @rkey: out. Null: zero.
 *
 * EOPNOTSUPP: the kernel has no dma-buf. Other errors as in struct vhca_reg_mr.
 */
struct vhca_reg_special_mr {
	__u64	offset;
	__u64	length;
	__u64	iova;
	__s32	fd;
	__u32	dm;
	__u32	pd;
	__u32	access;
	__u32	lkey;
	__u32	rkey;
};

VHCA_ASSERT_SIZE(struct vhca_reg_special_mr, 48);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, offset, 0);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, length, 8);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, iova, 16);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, fd, 24);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, dm, 28);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, pd, 32);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, access, 36);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, lkey, 40);
VHCA_ASSERT_AT(struct vhca_reg_special_mr, rkey, 44);

/**
 * struct vhca_query_mr - VHCA_IOC_QUERY_MR
 * @lkey: in: an MR of this file.
 * @rkey: out.
 * @addr: out: as registered.
 * @length: out.
 * @iova: out.
 * @pd: out.
 * @access: out.
 */
struct vhca_query_mr {
	__u32	lkey;
	__u32	rkey;
	__u64	addr;
	__u64	length;
	__u64	iova;
	__u32	pd;
	__u32	access;
};

VHCA_ASSERT_SIZE(struct vhca_query_mr, 40);
VHCA_ASSERT_AT(struct vhca_query_mr, lkey, 0);
VHCA_ASSERT_AT(struct vhca_query_mr, rkey, 4);
VHCA_ASSERT_AT(struct vhca_query_mr, addr, 8);
VHCA_ASSERT_AT(struct vhca_query_mr, length, 16);
VHCA_ASSERT_AT(struct vhca_query_mr, iova, 24);
VHCA_ASSERT_AT(struct vhca_query_mr, pd, 32);
VHCA_ASSERT_AT(struct vhca_query_mr, access, 36);

/**
 * struct vhca_alloc_mw - VHCA_IOC_ALLOC_MW; VHCA_IOC_FREE_MW takes the rkey
 * @pd: in.
 * @type: in: 1 or 2, as in enum ibv_mw_type.
 * @rkey: out. Bits 31:8 stay, bits 7:0 change when it is bound, and VHCA_IOC_FREE_MW
 *	does not look at them.
 * @rsvd: zero.
 */
struct vhca_alloc_mw {
	__u32	pd;
	__u32	type;
	__u32	rkey;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_alloc_mw, 16);
VHCA_ASSERT_AT(struct vhca_alloc_mw, pd, 0);
VHCA_ASSERT_AT(struct vhca_alloc_mw, type, 4);
VHCA_ASSERT_AT(struct vhca_alloc_mw, rkey, 8);
VHCA_ASSERT_AT(struct vhca_alloc_mw, rsvd, 12);

/**
 * struct vhca_alloc_dm - VHCA_IOC_ALLOC_DM and VHCA_IOC_QUERY_DM
 * @length: in: bytes, at least 1. Query: out.
 * @log_align: in: log2 of the alignment in bytes; up to VHCA_DM_MAX_LOG_ALIGN. Query:
 *	zero.
 * @dm: out: its number in this file. Query: in.
 * @map_offset: out: mmap offset.
 * @map_size: out: bytes to map, whole pages; zeroed when it is allocated.
 *
 * ENOSPC: the device has not as much memory left.
 */
struct vhca_alloc_dm {
	__u64	length;
	__u32	log_align;
	__u32	dm;
	__u64	map_offset;
	__u64	map_size;
};

VHCA_ASSERT_SIZE(struct vhca_alloc_dm, 32);
VHCA_ASSERT_AT(struct vhca_alloc_dm, length, 0);
VHCA_ASSERT_AT(struct vhca_alloc_dm, log_align, 8);
VHCA_ASSERT_AT(struct vhca_alloc_dm, dm, 12);
VHCA_ASSERT_AT(struct vhca_alloc_dm, map_offset, 16);
VHCA_ASSERT_AT(struct vhca_alloc_dm, map_size, 24);

#define VHCA_DM_MAX_LOG_ALIGN	12

/**
 * struct vhca_create_event_file - VHCA_IOC_CREATE_CHANNEL, VHCA_IOC_OPEN_ASYNC
 * @fd: out: read only, close-on-exec.
 * @number: in: zero. Async event file: out: by which CQs, SRQs and QPs name it when
 *	they are created. The first is 0, which may be named before it is opened.
 *
 * A channel yields struct vhca_comp_event, an async event file struct
 * vhca_async_event: of the objects that name it, of the ports and the device. Each
 * process that shares the file opens one. read() returns whole records; EINVAL when
 * not one fits the buffer; EIO once the device is gone and nothing is queued any more.
 */
struct vhca_create_event_file {
	__s32	fd;
	__u32	number;
};

VHCA_ASSERT_SIZE(struct vhca_create_event_file, 8);
VHCA_ASSERT_AT(struct vhca_create_event_file, fd, 0);
VHCA_ASSERT_AT(struct vhca_create_event_file, number, 4);

/**
 * struct vhca_destroy_channel - VHCA_IOC_DESTROY_CHANNEL
 * @fd: in: a channel of this file.
 * @rsvd: zero.
 *
 * EBUSY while CQs use it. Afterwards it serves no CQ (EINVAL) and its readers
 * get EIO; the descriptor is still to be closed.
 */
struct vhca_destroy_channel {
	__s32	fd;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_destroy_channel, 8);
VHCA_ASSERT_AT(struct vhca_destroy_channel, fd, 0);
VHCA_ASSERT_AT(struct vhca_destroy_channel, rsvd, 4);

/** struct vhca_comp_event - what a completion channel yields */
struct vhca_comp_event {
	__u64	cookie;		/* of the CQ */
	__u32	cqn;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_comp_event, 16);
VHCA_ASSERT_AT(struct vhca_comp_event, cookie, 0);
VHCA_ASSERT_AT(struct vhca_comp_event, cqn, 8);
VHCA_ASSERT_AT(struct vhca_comp_event, rsvd, 12);

/* The values of enum ibv_event_type. */
enum vhca_async_event_type {
	VHCA_EVENT_CQ_ERR		= 0,
	VHCA_EVENT_QP_FATAL		= 1,
	VHCA_EVENT_QP_REQ_ERR		= 2,
	VHCA_EVENT_QP_ACCESS_ERR	= 3,
	VHCA_EVENT_COMM_EST		= 4,
	VHCA_EVENT_SQ_DRAINED		= 5,
	VHCA_EVENT_PATH_MIG		= 6,
	VHCA_EVENT_PATH_MIG_ERR		= 7,
	VHCA_EVENT_DEVICE_FATAL		= 8,
	VHCA_EVENT_PORT_ACTIVE		= 9,
	VHCA_EVENT_PORT_ERR		= 10,
	VHCA_EVENT_LID_CHANGE		= 11,
	VHCA_EVENT_PKEY_CHANGE		= 12,
	VHCA_EVENT_SM_CHANGE		= 13,
	VHCA_EVENT_SRQ_ERR		= 14,
	VHCA_EVENT_SRQ_LIMIT_REACHED	= 15,
	VHCA_EVENT_QP_LAST_WQE_REACHED	= 16,
	VHCA_EVENT_CLIENT_REREGISTER	= 17,
	VHCA_EVENT_GID_CHANGE		= 18,
};

/** struct vhca_async_event - what the async event file yields */
struct vhca_async_event {
	__u64	cookie;		/* of the CQ, QP or SRQ; of a port event: its number */
	__u32	type;		/* enum vhca_async_event_type */
	__u32	number;		/* CQN, QPN, SRQN or port */
};

VHCA_ASSERT_SIZE(struct vhca_async_event, 16);
VHCA_ASSERT_AT(struct vhca_async_event, cookie, 0);
VHCA_ASSERT_AT(struct vhca_async_event, type, 8);
VHCA_ASSERT_AT(struct vhca_async_event, number, 12);

/**
 * struct vhca_create_cq - VHCA_IOC_CREATE_CQ
 * @cookie: in: returned with the CQ's events.
 * @cqe: in: CQEs wanted, 1 or more. Out: CQEs that it holds.
 * @comp_vector: in: below num_comp_vectors.
 * @channel_fd: in: channel of this file, or VHCA_INVALID_FD.
 * @uar: in.
 * @slot: in: free slot of @uar for doorbell and record.
 * @cqn: out.
 * @buf_offset: out: mmap offset of the ring; zero with @buf_addr.
 * @buf_size: out: bytes to map, or used at @buf_addr.
 * @buf_addr: in: zero, or page-aligned memory of the user that is to be the ring. It
 *	is pinned, charged like an MR, and zeroed by the call.
 * @flags: in: VHCA_CQ_F_*.
 * @async: in: number of the async event file that its async events are read from.
 *
 * EBUSY: the slot is taken. Memory of the user: errors as in struct vhca_reg_mr.
 */
struct vhca_create_cq {
	__u64	cookie;
	__u32	cqe;
	__u32	comp_vector;
	__s32	channel_fd;
	__u32	uar;
	__u32	slot;
	__u32	cqn;
	__u64	buf_offset;
	__u64	buf_size;
	__u64	buf_addr;
	__u32	flags;
	__u32	async;
};

#define VHCA_CQ_F_TIMESTAMP	(1 << 0)	/* CQEs carry a timestamp */
#define VHCA_CQ_F_IGNORE_OVERRUN (1 << 1)	/* the device does not look at ci */

VHCA_ASSERT_SIZE(struct vhca_create_cq, 64);
VHCA_ASSERT_AT(struct vhca_create_cq, cookie, 0);
VHCA_ASSERT_AT(struct vhca_create_cq, cqe, 8);
VHCA_ASSERT_AT(struct vhca_create_cq, comp_vector, 12);
VHCA_ASSERT_AT(struct vhca_create_cq, channel_fd, 16);
VHCA_ASSERT_AT(struct vhca_create_cq, uar, 20);
VHCA_ASSERT_AT(struct vhca_create_cq, slot, 24);
VHCA_ASSERT_AT(struct vhca_create_cq, cqn, 28);
VHCA_ASSERT_AT(struct vhca_create_cq, buf_offset, 32);
VHCA_ASSERT_AT(struct vhca_create_cq, buf_size, 40);
VHCA_ASSERT_AT(struct vhca_create_cq, buf_addr, 48);
VHCA_ASSERT_AT(struct vhca_create_cq, flags, 56);
VHCA_ASSERT_AT(struct vhca_create_cq, async, 60);

/**
 * struct vhca_resize_cq - VHCA_IOC_RESIZE_CQ
 * @cqn: in.
 * @cqe: in: CQEs wanted, 1 or more. Out: CQEs that it holds.
 * @buf_offset: out: mmap offset of the new ring; zero with @buf_addr.
 * @buf_size: out: bytes to map, or used at @buf_addr.
 * @buf_addr: in: as in struct vhca_create_cq.
 *
 * Software consumes nothing during the call. The CQEs between the record's consumer
 * index and the producer index are moved to the new ring, where the same indices
 * find them; the old ring is written no more and its offset maps nothing any longer.
 * EINVAL: more CQEs are there than the new ring would hold, or the CQ is in error.
 */
struct vhca_resize_cq {
	__u32	cqn;
	__u32	cqe;
	__u64	buf_offset;
	__u64	buf_size;
	__u64	buf_addr;
};

VHCA_ASSERT_SIZE(struct vhca_resize_cq, 32);
VHCA_ASSERT_AT(struct vhca_resize_cq, cqn, 0);
VHCA_ASSERT_AT(struct vhca_resize_cq, cqe, 4);
VHCA_ASSERT_AT(struct vhca_resize_cq, buf_offset, 8);
VHCA_ASSERT_AT(struct vhca_resize_cq, buf_size, 16);
VHCA_ASSERT_AT(struct vhca_resize_cq, buf_addr, 24);

/**
 * struct vhca_modify_cq - VHCA_IOC_MODIFY_CQ: moderation
 * @cqn: in.
 * @count: in: an armed CQ fires after so many CQEs that its arm waits for; up to
 *	max_cq_count. 0 and 1: after the first.
 * @period: in: microseconds after the first of them it fires although they are fewer;
 *	up to max_cq_period. 0: it waits for @count.
 * @rsvd: zero.
 */
struct vhca_modify_cq {
	__u32	cqn;
	__u32	count;
	__u32	period;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_modify_cq, 16);
VHCA_ASSERT_AT(struct vhca_modify_cq, cqn, 0);
VHCA_ASSERT_AT(struct vhca_modify_cq, count, 4);
VHCA_ASSERT_AT(struct vhca_modify_cq, period, 8);
VHCA_ASSERT_AT(struct vhca_modify_cq, rsvd, 12);

/**
 * struct vhca_destroy_cq - VHCA_IOC_DESTROY_CQ
 * @cqn: in. EBUSY while a QP uses it.
 * @comp_events: out: how many of its completion events were read. No further
 *	one is coming; the library waits until as many were acknowledged.
 * @async_events: out: the same for its async events.
 * @rsvd: zero.
 */
struct vhca_destroy_cq {
	__u32	cqn;
	__u32	comp_events;
	__u32	async_events;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_destroy_cq, 16);
VHCA_ASSERT_AT(struct vhca_destroy_cq, cqn, 0);
VHCA_ASSERT_AT(struct vhca_destroy_cq, comp_events, 4);
VHCA_ASSERT_AT(struct vhca_destroy_cq, async_events, 8);
VHCA_ASSERT_AT(struct vhca_destroy_cq, rsvd, 12);

enum vhca_qp_type {			/* the values of enum ibv_qp_type */
	VHCA_QPT_RC		= 2,
	VHCA_QPT_UC		= 3,
	VHCA_QPT_UD		= 4,
	VHCA_QPT_XRC_SEND	= 9,
	VHCA_QPT_XRC_RECV	= 10,
};

#define VHCA_QP_F_SIGNATURE	(1 << 0)	/* WQEs of both queues are signed */
#define VHCA_QP_F_SCATTER_CQE	(1 << 1)	/* small receives come in the CQE */
#define VHCA_QP_F_BLUEFLAME	(1 << 2)	/* small WQEs may come in the doorbell */
#define VHCA_QP_F_BLOCK_LOOPBACK (1 << 3)	/* UD: not its own multicast messages */

/**
 * struct vhca_create_qp - VHCA_IOC_CREATE_QP
 * @cookie: in: returned with the QP's async events.
 * @type: in: enum vhca_qp_type.
 * @pd: in.
 * @send_cqn: in.
 * @recv_cqn: in.
 * @uar: in.
 * @slot: in: free slot of @uar for doorbell and record.
 * @sq_shift: in: log2 of the SQ's basic blocks, up to VHCA_SQ_MAX_SHIFT.
 * @rq_shift: in: log2 of the RQ's WQEs, up to VHCA_RQ_MAX_SHIFT.
 * @rq_sge_shift: in: log2 of the segments of a receive WQE.
 * @flags: in: VHCA_QP_F_*.
 * @qpn: out.
 * @buf_offset: out: mmap offset of the buffer, SQ first; zero with @buf_addr.
 * @buf_size: out: bytes to map, or used at @buf_addr. Zero when there is no queue.
 * @buf_addr: in: zero, or memory of the user, as in struct vhca_create_cq.
 * @srqn: in: SRQ that receives are taken from, or zero. An XRC SRQ is named by the
 *	messages: zero.
 * @xrcd: in: XRC domain of an XRC_RECV QP; else zero.
 * @bf_slot: in: second line with VHCA_QP_F_BLUEFLAME; else zero.
 * @async: in: as in struct vhca_create_cq.
 *
 * Fields of what the QP does not have are zero: with an SRQ those of the RQ; in XRC_SEND
 * QPs @recv_cqn, too; in XRC_RECV QPs those of the SQ, @pd, @send_cqn, @uar, @slot, too:
 * it rings no doorbell, and may outlive the file that made it.
 */
struct vhca_create_qp {
	__u64	cookie;
	__u32	type;
	__u32	pd;
	__u32	send_cqn;
	__u32	recv_cqn;
	__u32	uar;
	__u32	slot;
	__u8	sq_shift;
	__u8	rq_shift;
	__u8	rq_sge_shift;
	__u8	flags;
	__u32	qpn;
	__u64	buf_offset;
	__u64	buf_size;
	__u64	buf_addr;
	__u32	srqn;
	__u32	xrcd;
	__u32	bf_slot;
	__u32	async;
};

VHCA_ASSERT_SIZE(struct vhca_create_qp, 80);
VHCA_ASSERT_AT(struct vhca_create_qp, cookie, 0);
VHCA_ASSERT_AT(struct vhca_create_qp, type, 8);
VHCA_ASSERT_AT(struct vhca_create_qp, pd, 12);
VHCA_ASSERT_AT(struct vhca_create_qp, send_cqn, 16);
VHCA_ASSERT_AT(struct vhca_create_qp, recv_cqn, 20);
VHCA_ASSERT_AT(struct vhca_create_qp, uar, 24);
VHCA_ASSERT_AT(struct vhca_create_qp, slot, 28);
VHCA_ASSERT_AT(struct vhca_create_qp, sq_shift, 32);
VHCA_ASSERT_AT(struct vhca_create_qp, rq_shift, 33);
VHCA_ASSERT_AT(struct vhca_create_qp, rq_sge_shift, 34);
VHCA_ASSERT_AT(struct vhca_create_qp, flags, 35);
VHCA_ASSERT_AT(struct vhca_create_qp, qpn, 36);
VHCA_ASSERT_AT(struct vhca_create_qp, buf_offset, 40);
VHCA_ASSERT_AT(struct vhca_create_qp, buf_size, 48);
VHCA_ASSERT_AT(struct vhca_create_qp, buf_addr, 56);
VHCA_ASSERT_AT(struct vhca_create_qp, srqn, 64);
VHCA_ASSERT_AT(struct vhca_create_qp, xrcd, 68);
VHCA_ASSERT_AT(struct vhca_create_qp, bf_slot, 72);
VHCA_ASSERT_AT(struct vhca_create_qp, async, 76);

/**
 * struct vhca_open_qp - VHCA_IOC_OPEN_QP: use an XRC_RECV QP that another file made
 * @cookie: in: returned with the QP's async events.
 * @qpn: in.
 * @xrcd: in: the QP's domain, as this file opened it.
 * @async: in: as in struct vhca_create_cq.
 * @rsvd: zero.
 *
 * The QP can then be modified, queried, destroyed by @qpn in this file, too. It goes
 * when the last file that has it destroys it. EINVAL: no such QP in the domain.
 * EBUSY: this file has it already.
 */
struct vhca_open_qp {
	__u64	cookie;
	__u32	qpn;
	__u32	xrcd;
	__u32	async;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_open_qp, 24);
VHCA_ASSERT_AT(struct vhca_open_qp, cookie, 0);
VHCA_ASSERT_AT(struct vhca_open_qp, qpn, 8);
VHCA_ASSERT_AT(struct vhca_open_qp, xrcd, 12);
VHCA_ASSERT_AT(struct vhca_open_qp, async, 16);
VHCA_ASSERT_AT(struct vhca_open_qp, rsvd, 20);

/**
 * struct vhca_open_xrcd - VHCA_IOC_OPEN_XRCD
 * @fd: in: the file whose inode names the domain, or VHCA_INVALID_FD: a domain of its
 *	own that nobody else can open.
 * @oflags: in: 0, O_CREAT, O_CREAT | O_EXCL, as in open(2).
 * @xrcd: out: its number in this file, not zero.
 * @rsvd: zero.
 *
 * ENOENT: there is none for @fd and no O_CREAT. EEXIST: there is one and O_EXCL. EBADF:
 * @fd. VHCA_IOC_CLOSE_XRCD closes it; it goes with the last that has it open.
 */
struct vhca_open_xrcd {
	__s32	fd;
	__u32	oflags;
	__u32	xrcd;
	__u32	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_open_xrcd, 16);
VHCA_ASSERT_AT(struct vhca_open_xrcd, fd, 0);
VHCA_ASSERT_AT(struct vhca_open_xrcd, oflags, 4);
VHCA_ASSERT_AT(struct vhca_open_xrcd, xrcd, 8);
VHCA_ASSERT_AT(struct vhca_open_xrcd, rsvd, 12);

/**
 * struct vhca_create_srq - VHCA_IOC_CREATE_SRQ
 * @cookie: in: returned with the SRQ's async events.
 * @type: in: 0 basic, 1 XRC, as in enum ibv_srq_type.
 * @pd: in.
 * @xrcd: in: XRC domain; basic: zero.
 * @cqn: in: XRC: CQ of its receives; basic: zero.
 * @uar: in.
 * @slot: in: free slot of @uar for the record.
 * @shift: in: log2 of WQEs, up to max_srq_shift.
 * @sge_shift: in: log2 of the segments of a WQE, the head included; 1 or more.
 * @rsvd: zero.
 * @limit: in: as in struct vhca_modify_srq.
 * @srqn: out.
 * @async: in: as in struct vhca_create_cq.
 * @buf_offset: out: mmap offset of the ring; zero with @buf_addr.
 * @buf_size: out: bytes to map, or used at @buf_addr.
 * @buf_addr: in: zero, or memory of the user, as in struct vhca_create_cq.
 */
struct vhca_create_srq {
	__u64	cookie;
	__u32	type;
	__u32	pd;
	__u32	xrcd;
	__u32	cqn;
	__u32	uar;
	__u32	slot;
	__u8	shift;
	__u8	sge_shift;
	__u8	rsvd[2];
	__u32	limit;
	__u32	srqn;
	__u32	async;
	__u64	buf_offset;
	__u64	buf_size;
	__u64	buf_addr;
};

VHCA_ASSERT_SIZE(struct vhca_create_srq, 72);
VHCA_ASSERT_AT(struct vhca_create_srq, cookie, 0);
VHCA_ASSERT_AT(struct vhca_create_srq, type, 8);
VHCA_ASSERT_AT(struct vhca_create_srq, pd, 12);
VHCA_ASSERT_AT(struct vhca_create_srq, xrcd, 16);
VHCA_ASSERT_AT(struct vhca_create_srq, cqn, 20);
VHCA_ASSERT_AT(struct vhca_create_srq, uar, 24);
VHCA_ASSERT_AT(struct vhca_create_srq, slot, 28);
VHCA_ASSERT_AT(struct vhca_create_srq, shift, 32);
VHCA_ASSERT_AT(struct vhca_create_srq, sge_shift, 33);
VHCA_ASSERT_AT(struct vhca_create_srq, rsvd, 34);
VHCA_ASSERT_AT(struct vhca_create_srq, limit, 36);
VHCA_ASSERT_AT(struct vhca_create_srq, srqn, 40);
VHCA_ASSERT_AT(struct vhca_create_srq, async, 44);
VHCA_ASSERT_AT(struct vhca_create_srq, buf_offset, 48);
VHCA_ASSERT_AT(struct vhca_create_srq, buf_size, 56);
VHCA_ASSERT_AT(struct vhca_create_srq, buf_addr, 64);

/**
 * struct vhca_modify_srq - VHCA_IOC_MODIFY_SRQ and VHCA_IOC_QUERY_SRQ
 * @srqn: in.
 * @limit: modify: in: when fewer WQEs than this are left the limit event is raised,
 *	once, and the limit is zero again; zero: never. Up to the WQEs that the ring
 *	holds. Query: out.
 */
struct vhca_modify_srq {
	__u32	srqn;
	__u32	limit;
};

VHCA_ASSERT_SIZE(struct vhca_modify_srq, 8);
VHCA_ASSERT_AT(struct vhca_modify_srq, srqn, 0);
VHCA_ASSERT_AT(struct vhca_modify_srq, limit, 4);

/**
 * struct vhca_destroy_srq - VHCA_IOC_DESTROY_SRQ
 * @srqn: in. EBUSY while a QP uses it.
 * @async_events: out: how many of its async events were read.
 */
struct vhca_destroy_srq {
	__u32	srqn;
	__u32	async_events;
};

VHCA_ASSERT_SIZE(struct vhca_destroy_srq, 8);
VHCA_ASSERT_AT(struct vhca_destroy_srq, srqn, 0);
VHCA_ASSERT_AT(struct vhca_destroy_srq, async_events, 4);

/**
 * struct vhca_mcast - VHCA_IOC_ATTACH_MCAST and VHCA_IOC_DETACH_MCAST
 * @gid: in: multicast GID of the group.
 * @qpn: in: a UD QP.
 * @dlid: in: multicast LID of the group, or zero when the GID alone names it.
 * @rsvd: zero.
 *
 * Attached twice counts once. EINVAL: not a multicast GID, not a UD QP; detach: it is
 * not attached. ENOSPC: a limit is reached.
 */
struct vhca_mcast {
	__u8	gid[16];
	__u32	qpn;
	__u16	dlid;
	__u16	rsvd;
};

VHCA_ASSERT_SIZE(struct vhca_mcast, 24);
VHCA_ASSERT_AT(struct vhca_mcast, gid, 0);
VHCA_ASSERT_AT(struct vhca_mcast, qpn, 16);
VHCA_ASSERT_AT(struct vhca_mcast, dlid, 20);
VHCA_ASSERT_AT(struct vhca_mcast, rsvd, 22);

/* Attributes of a QP: the values of enum ibv_qp_attr_mask. */
#define VHCA_QP_STATE			(1 << 0)
#define VHCA_QP_CUR_STATE		(1 << 1)
#define VHCA_QP_EN_SQD_ASYNC_NOTIFY	(1 << 2)
#define VHCA_QP_ACCESS_FLAGS		(1 << 3)
#define VHCA_QP_PKEY_INDEX		(1 << 4)
#define VHCA_QP_PORT			(1 << 5)
#define VHCA_QP_QKEY			(1 << 6)
#define VHCA_QP_AV			(1 << 7)
#define VHCA_QP_PATH_MTU		(1 << 8)
#define VHCA_QP_TIMEOUT			(1 << 9)
#define VHCA_QP_RETRY_CNT		(1 << 10)
#define VHCA_QP_RNR_RETRY		(1 << 11)
#define VHCA_QP_RQ_PSN			(1 << 12)
#define VHCA_QP_MAX_QP_RD_ATOMIC	(1 << 13)
#define VHCA_QP_ALT_PATH		(1 << 14)
#define VHCA_QP_MIN_RNR_TIMER		(1 << 15)
#define VHCA_QP_SQ_PSN			(1 << 16)
#define VHCA_QP_MAX_DEST_RD_ATOMIC	(1 << 17)
#define VHCA_QP_PATH_MIG_STATE		(1 << 18)
#define VHCA_QP_CAP			(1 << 19)
#define VHCA_QP_DEST_QPN		(1 << 20)

/* The values of enum ibv_qp_state. */
enum vhca_qp_state {
	VHCA_QPS_RESET,
	VHCA_QPS_INIT,
	VHCA_QPS_RTR,
	VHCA_QPS_RTS,
	VHCA_QPS_SQD,
	VHCA_QPS_SQE,
	VHCA_QPS_ERR,
};

/** struct vhca_av - address vector, as struct ibv_ah_attr */
struct vhca_av {
	__u8	dgid[16];
	__u32	flow_label;
	__u16	dlid;
	__u8	is_global;
	__u8	sgid_index;
	__u8	hop_limit;
	__u8	traffic_class;
	__u8	sl;
	__u8	src_path_bits;
	__u8	static_rate;
	__u8	port_num;
	__u8	rsvd[2];
};

VHCA_ASSERT_SIZE(struct vhca_av, 32);
VHCA_ASSERT_AT(struct vhca_av, dgid, 0);
VHCA_ASSERT_AT(struct vhca_av, flow_label, 16);
VHCA_ASSERT_AT(struct vhca_av, dlid, 20);
VHCA_ASSERT_AT(struct vhca_av, is_global, 22);
VHCA_ASSERT_AT(struct vhca_av, sgid_index, 23);
VHCA_ASSERT_AT(struct vhca_av, hop_limit, 24);
VHCA_ASSERT_AT(struct vhca_av, traffic_class, 25);
VHCA_ASSERT_AT(struct vhca_av, sl, 26);
VHCA_ASSERT_AT(struct vhca_av, src_path_bits, 27);
VHCA_ASSERT_AT(struct vhca_av, static_rate, 28);
VHCA_ASSERT_AT(struct vhca_av, port_num, 29);
VHCA_ASSERT_AT(struct vhca_av, rsvd, 30);

/** struct vhca_qp_attr - attributes of a QP, as struct ibv_qp_attr */
struct vhca_qp_attr {
	__u32	qkey;
	__u32	rq_psn;
	__u32	sq_psn;
	__u32	dest_qpn;
	__u32	access_flags;
	__u16	pkey_index;
	__u8	state;
	__u8	cur_state;
	__u8	path_mtu;
	__u8	sq_draining;
	__u8	max_rd_atomic;
	__u8	max_dest_rd_atomic;
	__u8	min_rnr_timer;
	__u8	port_num;
	__u8	timeout;
	__u8	retry_cnt;
	__u8	rnr_retry;
	__u8	en_sqd_async_notify;
	__u8	rsvd[2];
	struct vhca_av	av;
};

VHCA_ASSERT_SIZE(struct vhca_qp_attr, 68);
VHCA_ASSERT_AT(struct vhca_qp_attr, qkey, 0);
VHCA_ASSERT_AT(struct vhca_qp_attr, rq_psn, 4);
VHCA_ASSERT_AT(struct vhca_qp_attr, sq_psn, 8);
VHCA_ASSERT_AT(struct vhca_qp_attr, dest_qpn, 12);
VHCA_ASSERT_AT(struct vhca_qp_attr, access_flags, 16);
VHCA_ASSERT_AT(struct vhca_qp_attr, pkey_index, 20);
VHCA_ASSERT_AT(struct vhca_qp_attr, state, 22);
VHCA_ASSERT_AT(struct vhca_qp_attr, cur_state, 23);
VHCA_ASSERT_AT(struct vhca_qp_attr, path_mtu, 24);
VHCA_ASSERT_AT(struct vhca_qp_attr, sq_draining, 25);
VHCA_ASSERT_AT(struct vhca_qp_attr, max_rd_atomic, 26);
VHCA_ASSERT_AT(struct vhca_qp_attr, max_dest_rd_atomic, 27);
VHCA_ASSERT_AT(struct vhca_qp_attr, min_rnr_timer, 28);
VHCA_ASSERT_AT(struct vhca_qp_attr, port_num, 29);
VHCA_ASSERT_AT(struct vhca_qp_attr, timeout, 30);
VHCA_ASSERT_AT(struct vhca_qp_attr, retry_cnt, 31);
VHCA_ASSERT_AT(struct vhca_qp_attr, rnr_retry, 32);
VHCA_ASSERT_AT(struct vhca_qp_attr, en_sqd_async_notify, 33);
VHCA_ASSERT_AT(struct vhca_qp_attr, rsvd, 34);
VHCA_ASSERT_AT(struct vhca_qp_attr, av, 36);

/**
 * struct vhca_modify_qp - VHCA_IOC_MODIFY_QP and VHCA_IOC_QUERY_QP
 * @qpn: in.
 * @mask: VHCA_QP_*. Modify: what to change. Query: zero in, and out all that is
 *	filled.
 * @attr: in for modify, out for query.
 *
 * Modify: EINVAL when the transition does not exist, or @mask lacks what it
 * requires or holds what it does not allow. EOPNOTSUPP: alternate paths.
 */
struct vhca_modify_qp {
	__u32	qpn;
	__u32	mask;
	struct vhca_qp_attr	attr;
};

VHCA_ASSERT_SIZE(struct vhca_modify_qp, 76);
VHCA_ASSERT_AT(struct vhca_modify_qp, qpn, 0);
VHCA_ASSERT_AT(struct vhca_modify_qp, mask, 4);
VHCA_ASSERT_AT(struct vhca_modify_qp, attr, 8);

/**
 * struct vhca_destroy_qp - VHCA_IOC_DESTROY_QP
 * @qpn: in.
 * @async_events: out: how many of its async events were read.
 */
struct vhca_destroy_qp {
	__u32	qpn;
	__u32	async_events;
};

VHCA_ASSERT_SIZE(struct vhca_destroy_qp, 8);
VHCA_ASSERT_AT(struct vhca_destroy_qp, qpn, 0);
VHCA_ASSERT_AT(struct vhca_destroy_qp, async_events, 4);

/**
 * VHCA_KICK_ARG - argument of VHCA_IOC_KICK, by value
 * @uar: number of a UAR of this file.
 * @slot: slot in which a doorbell was stored.
 *
 * VHCA_IOC_KICK returns 0, EINVAL when the file has no such UAR, EIO.
 */
#define VHCA_KICK_ARG(uar, slot)	((unsigned long)(uar) << 6 | (slot))
#define VHCA_KICK_UAR(arg)		((arg) >> 6)
#define VHCA_KICK_SLOT(arg)		((arg) & 63)

#define VHCA_IOC_QUERY_DEVICE	_IOWR(VHCA_IOC_MAGIC, 0x00, struct vhca_query_device)
#define VHCA_IOC_QUERY_PORT	_IOWR(VHCA_IOC_MAGIC, 0x01, struct vhca_query_port)
#define VHCA_IOC_QUERY_GID	_IOWR(VHCA_IOC_MAGIC, 0x02, struct vhca_query_gid)
#define VHCA_IOC_QUERY_PKEY	_IOWR(VHCA_IOC_MAGIC, 0x03, struct vhca_query_pkey)
#define VHCA_IOC_OPEN_ASYNC	_IOWR(VHCA_IOC_MAGIC, 0x04, struct vhca_create_event_file)
#define VHCA_IOC_ALLOC_UAR	_IOWR(VHCA_IOC_MAGIC, 0x10, struct vhca_alloc_uar)
#define VHCA_IOC_FREE_UAR	_IOWR(VHCA_IOC_MAGIC, 0x11, struct vhca_object)
#define VHCA_IOC_ALLOC_PD	_IOWR(VHCA_IOC_MAGIC, 0x12, struct vhca_object)
#define VHCA_IOC_FREE_PD	_IOWR(VHCA_IOC_MAGIC, 0x13, struct vhca_object)
#define VHCA_IOC_REG_MR		_IOWR(VHCA_IOC_MAGIC, 0x14, struct vhca_reg_mr)
#define VHCA_IOC_DEREG_MR	_IOWR(VHCA_IOC_MAGIC, 0x15, struct vhca_object)
#define VHCA_IOC_CREATE_CHANNEL	_IOWR(VHCA_IOC_MAGIC, 0x16, struct vhca_create_event_file)
#define VHCA_IOC_DESTROY_CHANNEL _IOWR(VHCA_IOC_MAGIC, 0x17, struct vhca_destroy_channel)
#define VHCA_IOC_CREATE_CQ	_IOWR(VHCA_IOC_MAGIC, 0x18, struct vhca_create_cq)
#define VHCA_IOC_DESTROY_CQ	_IOWR(VHCA_IOC_MAGIC, 0x19, struct vhca_destroy_cq)
#define VHCA_IOC_CREATE_QP	_IOWR(VHCA_IOC_MAGIC, 0x1a, struct vhca_create_qp)
#define VHCA_IOC_MODIFY_QP	_IOWR(VHCA_IOC_MAGIC, 0x1b, struct vhca_modify_qp)
#define VHCA_IOC_QUERY_QP	_IOWR(VHCA_IOC_MAGIC, 0x1c, struct vhca_modify_qp)
#define VHCA_IOC_DESTROY_QP	_IOWR(VHCA_IOC_MAGIC, 0x1d, struct vhca_destroy_qp)
#define VHCA_IOC_KICK		_IO(VHCA_IOC_MAGIC, 0x20)
#define VHCA_IOC_QUERY_PD	_IOWR(VHCA_IOC_MAGIC, 0x21, struct vhca_object)
#define VHCA_IOC_QUERY_MR	_IOWR(VHCA_IOC_MAGIC, 0x22, struct vhca_query_mr)
#define VHCA_IOC_REREG_MR	_IOWR(VHCA_IOC_MAGIC, 0x23, struct vhca_rereg_mr)
#define VHCA_IOC_REG_DMABUF_MR	_IOWR(VHCA_IOC_MAGIC, 0x24, struct vhca_reg_special_mr)
#define VHCA_IOC_REG_DM_MR	_IOWR(VHCA_IOC_MAGIC, 0x25, struct vhca_reg_special_mr)
#define VHCA_IOC_REG_NULL_MR	_IOWR(VHCA_IOC_MAGIC, 0x26, struct vhca_reg_special_mr)
#define VHCA_IOC_ALLOC_MW	_IOWR(VHCA_IOC_MAGIC, 0x27, struct vhca_alloc_mw)
#define VHCA_IOC_FREE_MW	_IOWR(VHCA_IOC_MAGIC, 0x28, struct vhca_object)
#define VHCA_IOC_ALLOC_DM	_IOWR(VHCA_IOC_MAGIC, 0x29, struct vhca_alloc_dm)
#define VHCA_IOC_QUERY_DM	_IOWR(VHCA_IOC_MAGIC, 0x2a, struct vhca_alloc_dm)
#define VHCA_IOC_FREE_DM	_IOWR(VHCA_IOC_MAGIC, 0x2b, struct vhca_object)
#define VHCA_IOC_RESIZE_CQ	_IOWR(VHCA_IOC_MAGIC, 0x2c, struct vhca_resize_cq)
#define VHCA_IOC_MODIFY_CQ	_IOWR(VHCA_IOC_MAGIC, 0x2d, struct vhca_modify_cq)
#define VHCA_IOC_OPEN_QP	_IOWR(VHCA_IOC_MAGIC, 0x2e, struct vhca_open_qp)
#define VHCA_IOC_OPEN_XRCD	_IOWR(VHCA_IOC_MAGIC, 0x2f, struct vhca_open_xrcd)
#define VHCA_IOC_CLOSE_XRCD	_IOWR(VHCA_IOC_MAGIC, 0x30, struct vhca_object)
#define VHCA_IOC_CREATE_SRQ	_IOWR(VHCA_IOC_MAGIC, 0x31, struct vhca_create_srq)
#define VHCA_IOC_MODIFY_SRQ	_IOWR(VHCA_IOC_MAGIC, 0x32, struct vhca_modify_srq)
#define VHCA_IOC_QUERY_SRQ	_IOWR(VHCA_IOC_MAGIC, 0x33, struct vhca_modify_srq)
#define VHCA_IOC_DESTROY_SRQ	_IOWR(VHCA_IOC_MAGIC, 0x34, struct vhca_destroy_srq)
#define VHCA_IOC_ATTACH_MCAST	_IOWR(VHCA_IOC_MAGIC, 0x35, struct vhca_mcast)
#define VHCA_IOC_DETACH_MCAST	_IOWR(VHCA_IOC_MAGIC, 0x36, struct vhca_mcast)

#endif
