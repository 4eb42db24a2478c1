// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pd.c: protection domains.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

VHCA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vhca_object cmd = { 0 };
	struct ibv_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = vhca_ioctl(context, VHCA_IOC_ALLOC_PD, &cmd);
	if (err) {
		free(pd);
		return vhca_null(err);
	}
	pd->context = context;
	pd->handle = cmd.number;
	return pd;
}

VHCA_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct vhca_object cmd = { .number = pd->handle };
	int err;

	err = vhca_ioctl(pd->context, VHCA_IOC_FREE_PD, &cmd);
	if (!err)
		free(pd);
	return err;
}
