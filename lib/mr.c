// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mr.c: memory regions, and what fork means for them.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_KNOWN	(VHCA_MR_ACCESS | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)

/**
 * vhca_mr_check_access - may a region have these access flags?
 * @access: enum ibv_access_flags. Optional ones are those that a device may
 *	disregard, by their definition.
 * @supported: those that it may have
 *
 * Return: 0, EINVAL for what does not exist, EOPNOTSUPP.
 */
int vhca_mr_check_access(unsigned int access, unsigned int supported)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	return access & ~supported ? EOPNOTSUPP : 0;
}

static void mr_set_keys(struct vhca_mr *mr, uint32_t lkey, uint32_t rkey)
{
	mr->ibv.handle = lkey;
	mr->ibv.lkey = lkey;
	mr->ibv.rkey = rkey;
}

static struct vhca_mr *mr_alloc(struct ibv_pd *pd)
{
	struct vhca_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	return mr;
}

VHCA_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					    uint64_t iova, unsigned int access)
{
	struct vhca_reg_mr cmd = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.pd = pd->handle,
		.access = access & VHCA_MR_ACCESS,
	};
	struct vhca_mr *mr;
	int err;

	err = vhca_mr_check_access(access, VHCA_MR_ACCESS);
	if (err)
		return vhca_null(err);
	mr = mr_alloc(pd);
	if (!mr)
		return NULL;
	err = vhca_ioctl(pd->context, VHCA_IOC_REG_MR, &cmd);
	if (err) {
		free(mr);
		return vhca_null(err);
	}
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->zero_based = access & IBV_ACCESS_ZERO_BASED;
	mr_set_keys(mr, cmd.lkey, cmd.rkey);
	return &mr->ibv;
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

/**
 * vhca_reg_special_mr - a region of other than the process's memory
 * @pd: PD
 * @ioc: the call that makes it
 * @cmd: its argument; the PD is filled in here
 *
 * Return: the MR, to which the caller gives address and length, or NULL with errno.
 */
struct ibv_mr *vhca_reg_special_mr(struct ibv_pd *pd, unsigned long ioc,
				   struct vhca_reg_special_mr *cmd)
{
	struct vhca_mr *mr = mr_alloc(pd);
	int err;

	if (!mr)
		return NULL;
	cmd->pd = pd->handle;
	err = vhca_ioctl(pd->context, ioc, cmd);
	if (err) {
		free(mr);
		return vhca_null(err);
	}
	mr_set_keys(mr, cmd->lkey, cmd->rkey);
	return &mr->ibv;
}

#define DMABUF_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

VHCA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					     uint64_t iova, int fd, int access)
{
	struct vhca_reg_special_mr cmd = {
		.offset = offset,
		.length = length,
		.iova = iova,
		.fd = fd,
		.access = (unsigned int)access & DMABUF_ACCESS,
	};
	struct ibv_mr *mr;
	int err;

	err = vhca_mr_check_access((unsigned int)access, DMABUF_ACCESS);
	if (err)
		return vhca_null(err);
	mr = vhca_reg_special_mr(pd, VHCA_IOC_REG_DMABUF_MR, &cmd);
	if (!mr)
		return NULL;
	mr->addr = (void *)(uintptr_t)iova;
	mr->length = length;
	return mr;
}

/* Any address lies in it. */
struct ibv_mr *vhca_alloc_null_mr(struct ibv_pd *pd)
{
	struct vhca_reg_special_mr cmd = { 0 };
	struct ibv_mr *mr = vhca_reg_special_mr(pd, VHCA_IOC_REG_NULL_MR, &cmd);

	if (mr)
		mr->length = SIZE_MAX;
	return mr;
}

static int check_rereg(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd,
		       const void *addr, size_t length, int access)
{
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->context))
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		return vhca_mr_check_access((unsigned int)access, VHCA_MR_ACCESS);
	return access ? EINVAL : 0;
}

VHCA_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
			     size_t length, int access)
{
	struct vhca_mr *mr = container_of(ibmr, struct vhca_mr, ibv);
	struct vhca_rereg_mr cmd = { .lkey = ibmr->lkey, .flags = (uint32_t)flags };
	bool zero_based = mr->zero_based;
	int err;

	err = check_rereg(ibmr, flags, pd, addr, length, access);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		cmd.access = (unsigned int)access & VHCA_MR_ACCESS;
		zero_based = access & IBV_ACCESS_ZERO_BASED;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		cmd.addr = (uintptr_t)addr;
		cmd.length = length;
		cmd.iova = zero_based ? 0 : cmd.addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		cmd.pd = pd->handle;
	err = vhca_ioctl(ibmr->context, VHCA_IOC_REREG_MR, &cmd);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}

	mr->zero_based = zero_based;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibmr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		ibmr->addr = addr;
		ibmr->length = length;
	}
	mr_set_keys(mr, cmd.lkey, cmd.rkey);
	return 0;
}

VHCA_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct vhca_query_mr cmd = { .lkey = mr_handle };
	struct vhca_mr *mr = mr_alloc(pd);
	int err;

	if (!mr)
		return NULL;
	err = vhca_ioctl(pd->context, VHCA_IOC_QUERY_MR, &cmd);
	if (!err && cmd.pd != pd->handle)
		err = EINVAL;
	if (err) {
		free(mr);
		return vhca_null(err);
	}
	/* The address is that of another process: NULL. */
	mr->ibv.length = cmd.length;
	mr->zero_based = cmd.access & VHCA_ACCESS_ZERO_BASED;
	mr_set_keys(mr, cmd.lkey, cmd.rkey);
	return &mr->ibv;
}

VHCA_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	free(container_of(mr, struct vhca_mr, ibv));
}

VHCA_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vhca_object cmd = { .number = mr->lkey };
	int err;

	err = vhca_ioctl(mr->context, VHCA_IOC_DEREG_MR, &cmd);
	if (!err)
		free(container_of(mr, struct vhca_mr, ibv));
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
