// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * query.c: what the device and its ports are.
 */
#include <limits.h>
#include <stdio.h>

#include "vhca_verbs.h"

#undef ibv_query_port

#define PAGE_SIZES	0xfffff000u	/* 4 KiB and every larger power of two below 4 GiB */

static void fill_identity(struct ibv_device_attr *attr, const struct vhca_query_device *caps)
{
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%u",
		 (unsigned int)(caps->fw_ver >> 32),
		 (unsigned int)(caps->fw_ver >> 16) & 0xffff,
		 (unsigned int)caps->fw_ver & 0xffff);
	attr->node_guid = caps->node_guid;
	attr->sys_image_guid = caps->sys_image_guid;
	attr->vendor_id = caps->vendor_id;
	attr->vendor_part_id = caps->vendor_part_id;
	attr->hw_ver = caps->hw_ver;
}

static unsigned int device_cap_flags(const struct vhca_query_device *caps)
{
	unsigned int flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
			     IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
			     IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	return flags | (caps->max_xrcd ? IBV_DEVICE_XRC : 0);
}

static void fill_transport_attr(struct ibv_device_attr *attr,
				const struct vhca_query_device *caps)
{
	attr->max_ah = INT_MAX;		/* they live in user space */
	attr->max_srq = (int)caps->max_srq;
	attr->max_srq_wr = caps->max_srq ? 1 << caps->max_srq_shift : 0;
	attr->max_srq_sge = (int)caps->max_srq_sge;
	attr->max_mcast_grp = (int)caps->max_mcast_grp;
	attr->max_mcast_qp_attach = (int)caps->max_mcast_qp_attach;
	attr->max_total_mcast_qp_attach = (int)caps->max_mcast_attach;
}

/* What is not named is not there, and zero. */
static void fill_device_attr(struct ibv_device_attr *attr, const struct vhca_query_device *caps)
{
	memset(attr, 0, sizeof(*attr));
	fill_identity(attr, caps);
	attr->max_mr_size = caps->max_mr_size;
	attr->page_size_cap = PAGE_SIZES;
	attr->device_cap_flags = device_cap_flags(caps);
	attr->max_qp = (int)caps->max_qp;
	attr->max_qp_wr = 1 << vhca_min(caps->max_qp_send_shift, caps->max_qp_recv_shift);
	attr->max_sge = (int)vhca_min(caps->max_qp_send_sge, caps->max_qp_recv_sge);
	attr->max_sge_rd = (int)caps->max_qp_send_sge;
	attr->max_cq = (int)caps->max_cq;
	attr->max_cqe = (int)caps->max_cqe;
	attr->max_mr = (int)caps->max_mr;
	attr->max_mw = (int)caps->max_mw;
	attr->max_pd = (int)caps->max_pd;
	attr->max_qp_rd_atom = (int)caps->max_qp_rd_atom;
	attr->max_res_rd_atom = (int)(caps->max_qp * caps->max_qp_rd_atom);
	attr->max_qp_init_rd_atom = (int)caps->max_qp_init_rd_atom;
	attr->atomic_cap = IBV_ATOMIC_GLOB;	/* they are the CPU's own */
	attr->max_pkeys = (uint16_t)caps->max_pkeys;
	attr->local_ca_ack_delay = (uint8_t)caps->local_ca_ack_delay;
	attr->phys_port_cnt = (uint8_t)caps->num_ports;
	fill_transport_attr(attr, caps);
}

/* Where WQEs are signed, a segment of a receive WQE is its head. */
int vhca_query_caps(struct ibv_context *context, struct vhca_query_device *caps)
{
	int err;

	memset(caps, 0, sizeof(*caps));
	err = vhca_ioctl(context, VHCA_IOC_QUERY_DEVICE, caps);
	if (!err && to_vctx(context)->qp_flags & VHCA_QP_F_SIGNATURE)
		caps->max_qp_recv_sge--;
	return err;
}

VHCA_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct vhca_query_device caps;
	int err;

	err = vhca_query_caps(context, &caps);
	if (!err)
		fill_device_attr(attr, &caps);
	return err;
}

int vhca_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full = { 0 };
	struct vhca_query_device caps;
	int err;

	if ((input && input->comp_mask) || attr_size < sizeof(full.orig_attr))
		return EINVAL;
	err = vhca_query_caps(context, &caps);
	if (err)
		return err;
	fill_device_attr(&full.orig_attr, &caps);
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000;		/* kHz: the clock counts nanoseconds */
	full.cq_mod_caps.max_cq_count = (uint16_t)caps.max_cq_count;
	full.cq_mod_caps.max_cq_period = (uint16_t)caps.max_cq_period;
	full.max_dm_size = caps.dm_size;
	full.phys_port_cnt_ex = caps.num_ports;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	/* A program built against a later header knows more than we do. */
	memset(attr, 0, attr_size);
	memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

uint64_t vhca_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * The device's clock is the monotonic clock of the machine that it is part of. A raw
 * clock is a count in tv_nsec, whatever its unit; so programs read it.
 */
int vhca_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EOPNOTSUPP;
	if (values->comp_mask)
		values->raw_clock = (struct timespec) {
			.tv_nsec = (long)vhca_clock_ns(CLOCK_MONOTONIC),
		};
	return 0;
}

static void fill_port_attr(struct ibv_port_attr *attr, const struct vhca_query_port *port)
{
	*attr = (struct ibv_port_attr) {
		.state = (enum ibv_port_state)port->state,
		.max_mtu = (enum ibv_mtu)port->max_mtu,
		.active_mtu = (enum ibv_mtu)port->active_mtu,
		.gid_tbl_len = (int)port->gid_tbl_len,
		.port_cap_flags = port->port_cap_flags,
		.max_msg_sz = port->max_msg_sz,
		.bad_pkey_cntr = port->bad_pkey_cntr,
		.qkey_viol_cntr = port->qkey_viol_cntr,
		.pkey_tbl_len = port->pkey_tbl_len,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.lmc = port->lmc,
		.max_vl_num = port->max_vl_num,
		.sm_sl = port->sm_sl,
		.subnet_timeout = port->subnet_timeout,
		.init_type_reply = port->init_type_reply,
		.active_width = port->active_width,
		.active_speed = port->active_speed,
		.phys_state = port->phys_state,
		.link_layer = port->link_layer,
		.flags = port->flags,
	};
}

int vhca_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		    size_t attr_len)
{
	struct vhca_query_port cmd = { .port = port };
	struct ibv_port_attr full;
	int err;

	err = vhca_ioctl(context, VHCA_IOC_QUERY_PORT, &cmd);
	if (err)
		return err;
	fill_port_attr(&full, &cmd);
	memset(attr, 0, attr_len);
	memcpy(attr, &full, attr_len < sizeof(full) ? attr_len : sizeof(full));
	return 0;
}

/* The structure of old ends before port_cap_flags2. */
VHCA_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			       struct _compat_ibv_port_attr *port_attr)
{
	return vhca_query_port(context, port_num, (struct ibv_port_attr *)port_attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int query_gid(struct ibv_context *context, uint32_t port, uint32_t index,
		     union ibv_gid *gid)
{
	struct vhca_query_gid cmd = { .port = port, .index = index };
	int err;

	err = vhca_ioctl(context, VHCA_IOC_QUERY_GID, &cmd);
	if (!err)
		memcpy(gid->raw, cmd.gid, sizeof(gid->raw));
	return err;
}

VHCA_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			      union ibv_gid *gid)
{
	int err = index < 0 ? EINVAL : query_gid(context, port_num, (uint32_t)index, gid);

	return err ? vhca_minus(err) : 0;
}

static int query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
			   struct ibv_gid_entry *entry)
{
	static const union ibv_gid none;
	int err;

	memset(entry, 0, sizeof(*entry));
	err = query_gid(context, port, index, &entry->gid);
	if (err)
		return err;
	if (!memcmp(&entry->gid, &none, sizeof(none)))
		return ENODATA;
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = IBV_GID_TYPE_IB;
	return 0;
}

/* An entry of the caller's size, which may differ from that of our header. */
static void put_entry(void *to, const struct ibv_gid_entry *entry, size_t entry_size)
{
	memset(to, 0, entry_size);
	memcpy(to, entry, entry_size < sizeof(*entry) ? entry_size : sizeof(*entry));
}

static int check_gid_args(uint32_t flags, size_t entry_size)
{
	return flags || entry_size < sizeof(struct ibv_gid_entry) ? EINVAL : 0;
}

VHCA_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				  uint32_t gid_index, struct ibv_gid_entry *entry,
				  uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry full;
	int err;

	err = check_gid_args(flags, entry_size);
	if (!err)
		err = query_gid_entry(context, port_num, gid_index, &full);
	if (!err)
		put_entry(entry, &full, entry_size);
	return err;
}

/* Append a port's valid entries. Returns 0 or an errno value. */
static int append_port(struct ibv_context *context, uint32_t port, char *entries, size_t max,
		       size_t entry_size, size_t *count)
{
	struct ibv_gid_entry full;
	struct ibv_port_attr attr;
	uint32_t i;
	int err;

	err = vhca_query_port(context, (uint8_t)port, &attr, sizeof(attr));
	for (i = 0; !err && i < (uint32_t)attr.gid_tbl_len; i++) {
		err = query_gid_entry(context, port, i, &full);
		if (err == ENODATA) {
			err = 0;
			continue;
		}
		if (!err && *count == max)
			err = EINVAL;
		if (!err)
			put_entry(entries + (*count)++ * entry_size, &full, entry_size);
	}
	return err;
}

VHCA_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
					 struct ibv_gid_entry *entries, size_t max_entries,
					 uint32_t flags, size_t entry_size)
{
	size_t count = 0;
	uint32_t port;
	int err;

	err = check_gid_args(flags, entry_size);
	for (port = 1; !err && port <= to_vctx(context)->caps.num_ports; port++)
		err = append_port(context, port, (char *)entries, max_entries, entry_size,
				  &count);
	return err ? -err : (ssize_t)count;
}

/*
 * Private to rdma-core, but its tools use it: the kernel's name for the type of
 * a GID, of which an InfiniBand port has one, 0.
 */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);
VHCA_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
				   unsigned int index, int *type)
{
	union ibv_gid gid;
	int err;

	err = query_gid(context, port_num, index, &gid);
	if (err)
		return vhca_minus(err);
	*type = 0;
	return 0;
}

VHCA_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
			       __be16 *pkey)
{
	struct vhca_query_pkey cmd = { .port = port_num, .index = (uint32_t)index };
	int err;

	err = index < 0 ? EINVAL : vhca_ioctl(context, VHCA_IOC_QUERY_PKEY, &cmd);
	if (err)
		return vhca_minus(err);
	*pkey = cmd.pkey;
	return 0;
}

VHCA_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	__be16 entry;
	int i;

	/* The end of the table is the first index that does not exist. */
	for (i = 0; !ibv_query_pkey(context, port_num, i, &entry); i++)
		if (entry == pkey)
			return i;
	return -1;
}
