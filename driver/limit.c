// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many objects of each kind a device may have, and an open file of it: module
 * parameters, and what is counted against them.
 *
 * A call that makes an object is charged before it does anything, by the table of
 * calls (uverbs.c); what it did not make, or another call destroyed, is given back
 * there. Closing a file gives back all that it still has.
 */
#include <linux/module.h>

#include "vhca.h"

/* One file leaves something to others; event files are bounded by descriptors. */
static unsigned int max[VHCA_KINDS] = {
	[VHCA_KIND_CONTEXT]	= 1024,
	[VHCA_KIND_UAR]		= 384,
	[VHCA_KIND_PD]		= 65536,
	[VHCA_KIND_MR]		= 1048576,
	[VHCA_KIND_MW]		= 1048576,
	[VHCA_KIND_DM]		= 128,
	[VHCA_KIND_CQ]		= 65536,
	[VHCA_KIND_SRQ]		= 65536,
	[VHCA_KIND_QP]		= 65536,
	[VHCA_KIND_XRCD]	= 65536,
	[VHCA_KIND_MCAST]	= 65536,
	[VHCA_KIND_EVENT_FILE]	= UINT_MAX,
};

static unsigned int file_max[VHCA_KINDS] = {
	[VHCA_KIND_CONTEXT]	= 1,
	[VHCA_KIND_UAR]		= 96,
	[VHCA_KIND_PD]		= 16384,
	[VHCA_KIND_MR]		= 262144,
	[VHCA_KIND_MW]		= 262144,
	[VHCA_KIND_DM]		= 128,
	[VHCA_KIND_CQ]		= 16384,
	[VHCA_KIND_SRQ]		= 16384,
	[VHCA_KIND_QP]		= 16384,
	[VHCA_KIND_XRCD]	= 16384,
	[VHCA_KIND_MCAST]	= 16384,
	[VHCA_KIND_EVENT_FILE]	= UINT_MAX,
};

#define VHCA_MAX(name, kind, what)						\
	module_param_named(max_##name, max[VHCA_KIND_##kind], uint, 0644);	\
	MODULE_PARM_DESC(max_##name, "most " what " of a device")

#define VHCA_FILE_MAX(name, kind, what)						\
	module_param_named(file_max_##name, file_max[VHCA_KIND_##kind], uint, 0644); \
	MODULE_PARM_DESC(file_max_##name, "most " what " of an open file")

VHCA_MAX(context, CONTEXT, "open files");
VHCA_MAX(uar, UAR, "UARs, each of 63 QPs, CQs and SRQs,");
VHCA_MAX(pd, PD, "protection domains");
VHCA_MAX(mr, MR, "memory regions");
VHCA_MAX(mw, MW, "memory windows");
VHCA_MAX(dm, DM, "pages of device memory");
VHCA_MAX(cq, CQ, "CQs");
VHCA_MAX(srq, SRQ, "SRQs");
VHCA_MAX(qp, QP, "QPs");
VHCA_MAX(xrcd, XRCD, "XRC domains");
VHCA_MAX(mcast, MCAST, "QPs attached to multicast groups");
VHCA_MAX(event_file, EVENT_FILE, "completion channels and async event files");

VHCA_FILE_MAX(uar, UAR, "UARs, each of 63 QPs, CQs and SRQs,");
VHCA_FILE_MAX(pd, PD, "protection domains");
VHCA_FILE_MAX(mr, MR, "memory regions");
VHCA_FILE_MAX(mw, MW, "memory windows");
VHCA_FILE_MAX(dm, DM, "pages of device memory");
VHCA_FILE_MAX(cq, CQ, "CQs");
VHCA_FILE_MAX(srq, SRQ, "SRQs");
VHCA_FILE_MAX(qp, QP, "QPs");
VHCA_FILE_MAX(xrcd, XRCD, "XRC domains");
VHCA_FILE_MAX(mcast, MCAST, "QPs attached to multicast groups");
VHCA_FILE_MAX(event_file, EVENT_FILE, "completion channels and async event files");

/* Names of the counts, as debugfs has them. */
static const char * const names[VHCA_KINDS] = {
	[VHCA_KIND_CONTEXT]	= "context",
	[VHCA_KIND_UAR]		= "uar",
	[VHCA_KIND_PD]		= "pd",
	[VHCA_KIND_MR]		= "mr",
	[VHCA_KIND_MW]		= "mw",
	[VHCA_KIND_DM]		= "dm",
	[VHCA_KIND_CQ]		= "cq",
	[VHCA_KIND_SRQ]		= "srq",
	[VHCA_KIND_QP]		= "qp",
	[VHCA_KIND_XRCD]	= "xrcd",
	[VHCA_KIND_MCAST]	= "mcast",
	[VHCA_KIND_EVENT_FILE]	= "event_file",
};

/* A limit that was lowered is one for what is still to come. */
static bool limit_add(atomic_t *used, unsigned int n, unsigned int most)
{
	int old = atomic_read(used);

	do {
		if (n > most || (unsigned int)old > most - n)
			return false;
	} while (!atomic_try_cmpxchg(used, &old, old + n));
	return true;
}

/* As the device says it of its pages and groups, and of all else. */
static int limit_errno(enum vhca_kind kind)
{
	switch (kind) {
	case VHCA_KIND_UAR:
	case VHCA_KIND_DM:
	case VHCA_KIND_MCAST:
		return -ENOSPC;
	default:
		return -ENOMEM;
	}
}

/**
 * vhca_charge() - a file is about to have more
 * @ctx: the file.
 * @kind: of what; VHCA_KIND_NONE: of nothing that is counted.
 * @n: how many.
 *
 * Return: 0, or -ENOMEM or -ENOSPC: a limit would be exceeded.
 */
int vhca_charge(struct vhca_ctx *ctx, enum vhca_kind kind, unsigned int n)
{
	if (kind == VHCA_KIND_NONE)
		return 0;
	if (!limit_add(&ctx->used[kind], n, READ_ONCE(file_max[kind])))
		goto refused;
	if (limit_add(&ctx->vdev->used[kind], n, READ_ONCE(max[kind])))
		return 0;
	atomic_sub(n, &ctx->used[kind]);
refused:
	vhca_dbg(ctx, "%u more of %s: limit reached\n", n, names[kind]);
	return limit_errno(kind);
}

/** vhca_uncharge() - the other way; they are gone */
void vhca_uncharge(struct vhca_ctx *ctx, enum vhca_kind kind, unsigned int n)
{
	if (kind == VHCA_KIND_NONE)
		return;
	atomic_sub(n, &ctx->used[kind]);
	atomic_sub(n, &ctx->vdev->used[kind]);
}

/** vhca_uncharge_all() - the file is closed; its event files may outlive it */
void vhca_uncharge_all(struct vhca_ctx *ctx)
{
	enum vhca_kind kind;

	for (kind = 0; kind < VHCA_KINDS; kind++)
		if (kind != VHCA_KIND_EVENT_FILE)
			vhca_uncharge(ctx, kind, atomic_read(&ctx->used[kind]));
}

/** vhca_limit() - what a file may have of @device_max that the device has */
u32 vhca_limit(enum vhca_kind kind, u32 device_max)
{
	return min3(device_max, READ_ONCE(max[kind]), READ_ONCE(file_max[kind]));
}

/** vhca_limits_show() - a line for each kind: its name and how many there are */
void vhca_limits_show(struct seq_file *m, struct vhca_dev *vdev)
{
	enum vhca_kind kind;

	for (kind = VHCA_KIND_CONTEXT; kind < VHCA_KINDS; kind++)
		seq_printf(m, "%s %d\n", names[kind], atomic_read(&vdev->used[kind]));
}
