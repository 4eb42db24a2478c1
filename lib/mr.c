// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mr.c: memory regions, and what fork means for them.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_SUPPORTED	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN		(ACCESS_SUPPORTED | IBV_ACCESS_MW_BIND | \
				 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | \
				 IBV_ACCESS_HUGETLB)

/* Optional flags are those that a device may disregard, by their definition. */
static int check_access(unsigned int access)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	return access & ~ACCESS_SUPPORTED ? EOPNOTSUPP : 0;
}

VHCA_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					    uint64_t iova, unsigned int access)
{
	struct vhca_reg_mr cmd = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
		.pd = pd->handle,
		.access = access & ACCESS_SUPPORTED,
	};
	struct ibv_mr *mr;
	int err;

	err = check_access(access);
	if (err)
		return vhca_null(err);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	err = vhca_ioctl(pd->context, VHCA_IOC_REG_MR, &cmd);
	if (err) {
		free(mr);
		return vhca_null(err);
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = cmd.lkey;
	mr->lkey = cmd.lkey;
	mr->rkey = cmd.rkey;
	return mr;
}

VHCA_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

VHCA_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					   uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

VHCA_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vhca_object cmd = { .number = mr->lkey };
	int err;

	err = vhca_ioctl(mr->context, VHCA_IOC_DEREG_MR, &cmd);
	if (!err)
		free(mr);
	return err;
}

/*
 * Fork. The kernels that the driver supports copy pages that are pinned for
 * long, as those of memory regions are, to the child at fork, so the parent keeps
 * the page that the device knows. Nothing need be prepared, and no range be kept
 * from the child. Mapped queues are not inherited; the driver sees to that.
 */
VHCA_EXPORT int ibv_fork_init(void)
{
	return 0;
}

VHCA_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
VHCA_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size);
VHCA_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
