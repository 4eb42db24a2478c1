// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * xrcd.c: XRC domains.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

/* The file and how to open the domain must both be said. */
struct ibv_xrcd *vhca_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct vhca_open_xrcd cmd = {
		.fd = attr->fd,
		.oflags = (uint32_t)attr->oflags,
	};
	struct vhca_xrcd *xrcd;
	int err;

	if (!to_vctx(context)->caps.max_xrcd)
		return vhca_null(EOPNOTSUPP);
	if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS))
		return vhca_null(EINVAL);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	err = vhca_ioctl(context, VHCA_IOC_OPEN_XRCD, &cmd);
	if (err) {
		free(xrcd);
		return vhca_null(err);
	}
	xrcd->ibv.context = context;
	xrcd->number = cmd.xrcd;
	return &xrcd->ibv;
}

int vhca_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct vhca_xrcd *xrcd = to_vxrcd(ibxrcd);
	struct vhca_object cmd = { .number = xrcd->number };
	int err;

	err = vhca_ioctl(ibxrcd->context, VHCA_IOC_CLOSE_XRCD, &cmd);
	if (!err)
		free(xrcd);
	return err;
}
