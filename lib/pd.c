// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pd.c: protection domains.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

static struct ibv_pd *pd_new(struct ibv_context *context)
{
	struct vhca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = context;
	return &pd->ibv;
}

VHCA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vhca_object cmd = { 0 };
	struct ibv_pd *pd = pd_new(context);
	int err;

	if (!pd)
		return NULL;
	err = vhca_ioctl(context, VHCA_IOC_ALLOC_PD, &cmd);
	if (err) {
		free(pd);
		return vhca_null(err);
	}
	pd->handle = cmd.number;
	return pd;
}

VHCA_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vhca_object cmd = { .number = ibpd->handle };
	struct vhca_pd *pd = to_vpd(ibpd);
	int err;

	if (__atomic_load_n(&pd->users, __ATOMIC_ACQUIRE))
		return EBUSY;
	if (pd->protection)
		return vhca_parent_domain_free(pd);
	err = vhca_ioctl(ibpd->context, VHCA_IOC_FREE_PD, &cmd);
	if (!err)
		free(pd);
	return err;
}

VHCA_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct vhca_object cmd = { .number = pd_handle };
	struct ibv_pd *pd = pd_new(context);
	int err;

	if (!pd)
		return NULL;
	err = vhca_ioctl(context, VHCA_IOC_QUERY_PD, &cmd);
	if (err) {
		free(pd);
		return vhca_null(err);
	}
	pd->handle = pd_handle;
	return pd;
}

VHCA_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	free(to_vpd(pd));
}
