// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * domain.c: thread domains and parent domains. Both live in the library alone: to
 * the kernel a parent domain is its protection domain.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#define ATTR_KNOWN	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
			 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static struct vhca_td *to_vtd(struct ibv_td *ibv)
{
	return container_of(ibv, struct vhca_td, ibv);
}

struct ibv_td *vhca_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vhca_td *td;

	if (attr->comp_mask)
		return vhca_null(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	return &td->ibv;
}

int vhca_dealloc_td(struct ibv_td *ibtd)
{
	struct vhca_td *td = to_vtd(ibtd);

	if (__atomic_load_n(&td->users, __ATOMIC_ACQUIRE))
		return EBUSY;
	free(td);
	return 0;
}

static int check_attr(const struct ibv_context *context,
		      const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~(uint32_t)ATTR_KNOWN)
		return EINVAL;
	if (!attr->pd || attr->pd->context != context || to_vpd(attr->pd)->protection)
		return EINVAL;
	if (attr->td && attr->td->context != context)
		return EINVAL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *vhca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct vhca_pd *pd;
	int err;

	err = check_attr(context, attr);
	if (err)
		return vhca_null(err);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->ibv.handle = attr->pd->handle;
	pd->protection = to_vpd(attr->pd);
	__atomic_fetch_add(&pd->protection->users, 1, __ATOMIC_RELAXED);
	if (attr->td) {
		pd->td = to_vtd(attr->td);
		__atomic_fetch_add(&pd->td->users, 1, __ATOMIC_RELAXED);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->ibv;
}

/**
 * vhca_parent_domain_free - the parent domain's part of ibv_dealloc_pd()
 * @pd: parent domain that no queue was made with
 *
 * Return: 0.
 */
int vhca_parent_domain_free(struct vhca_pd *pd)
{
	__atomic_fetch_sub(&pd->protection->users, 1, __ATOMIC_RELEASE);
	if (pd->td)
		__atomic_fetch_sub(&pd->td->users, 1, __ATOMIC_RELEASE);
	free(pd);
	return 0;
}
