// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mcast.c: join UD QPs to multicast groups.
 */
#include "vhca_verbs.h"

static int mcast(struct ibv_qp *qp, unsigned long call, const union ibv_gid *gid, uint16_t lid)
{
	struct vhca_mcast cmd = { .qpn = qp->qp_num, .dlid = lid };

	memcpy(cmd.gid, gid->raw, sizeof(cmd.gid));
	return vhca_ioctl(qp->context, call, &cmd);
}

VHCA_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return mcast(qp, VHCA_IOC_ATTACH_MCAST, gid, lid);
}

VHCA_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return mcast(qp, VHCA_IOC_DETACH_MCAST, gid, lid);
}
