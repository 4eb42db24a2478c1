// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dm.c: device memory. It is mapped, so that copies to and from it need no call.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "vhca_verbs.h"

#define WORD	4	/* it is read and written in words of so many bytes */

/**
 * struct vhca_dm - device memory
 * @ibv: what the application sees.
 * @length: bytes of it.
 * @map: mapping of it, of whole pages.
 * @map_size: bytes of the mapping.
 */
struct vhca_dm {
	struct ibv_dm ibv;
	uint64_t length;
	char *map;
	size_t map_size;
};

static struct vhca_dm *to_vdm(struct ibv_dm *ibv)
{
	return container_of(ibv, struct vhca_dm, ibv);
}

static bool dm_has(const struct vhca_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int dm_check_copy(const struct vhca_dm *dm, uint64_t offset, size_t length)
{
	return offset % WORD || length % WORD || !dm_has(dm, offset, length) ? EINVAL : 0;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	struct vhca_dm *dm = to_vdm(ibdm);
	int err = dm_check_copy(dm, offset, length);

	if (!err)
		memcpy(dm->map + offset, from, length);
	return err;
}

static int memcpy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct vhca_dm *dm = to_vdm(ibdm);
	int err = dm_check_copy(dm, offset, length);

	if (!err)
		memcpy(to, dm->map + offset, length);
	return err;
}

static struct ibv_dm *dm_new(struct ibv_context *context, const struct vhca_alloc_dm *cmd)
{
	struct vhca_dm *dm = calloc(1, sizeof(*dm));
	int err;

	if (!dm)
		return NULL;
	dm->map = mmap(NULL, cmd->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       context->cmd_fd, (off_t)cmd->map_offset);
	if (dm->map == MAP_FAILED) {
		err = errno;
		free(dm);
		return vhca_null(err);
	}
	dm->map_size = cmd->map_size;
	dm->length = cmd->length;
	dm->ibv.context = context;
	dm->ibv.handle = cmd->dm;
	dm->ibv.memcpy_to_dm = memcpy_to_dm;
	dm->ibv.memcpy_from_dm = memcpy_from_dm;
	return &dm->ibv;
}

VHCA_EXPORT void ibv_unimport_dm(struct ibv_dm *ibdm)
{
	struct vhca_dm *dm = to_vdm(ibdm);

	munmap(dm->map, dm->map_size);
	free(dm);
}

static int dm_free_in_kernel(struct ibv_context *context, uint32_t number)
{
	struct vhca_object cmd = { .number = number };

	return vhca_ioctl(context, VHCA_IOC_FREE_DM, &cmd);
}

struct ibv_dm *vhca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vhca_alloc_dm cmd = { .length = attr->length, .log_align = attr->log_align_req };
	struct ibv_dm *dm;
	int err;

	if (attr->comp_mask)
		return vhca_null(EINVAL);
	err = vhca_ioctl(context, VHCA_IOC_ALLOC_DM, &cmd);
	if (err)
		return vhca_null(err);
	dm = dm_new(context, &cmd);
	if (!dm) {
		err = errno;
		dm_free_in_kernel(context, cmd.dm);
		return vhca_null(err);
	}
	return dm;
}

int vhca_free_dm(struct ibv_dm *dm)
{
	int err = dm_free_in_kernel(dm->context, dm->handle);

	if (!err)
		ibv_unimport_dm(dm);
	return err;
}

struct ibv_mr *vhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
			      size_t length, unsigned int access)
{
	struct vhca_reg_special_mr cmd = {
		.offset = offset,
		.length = length,
		.dm = dm->handle,
		.access = access & VHCA_MR_ACCESS,
	};
	struct ibv_mr *mr;
	int err;

	err = vhca_mr_check_access(access, VHCA_MR_ACCESS);
	if (!err && (!(access & IBV_ACCESS_ZERO_BASED) || dm->context != pd->context))
		err = EINVAL;
	if (err)
		return vhca_null(err);
	mr = vhca_reg_special_mr(pd, VHCA_IOC_REG_DM_MR, &cmd);
	if (mr)
		mr->length = length;
	return mr;
}

VHCA_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct vhca_alloc_dm cmd = { .dm = dm_handle };
	int err;

	err = vhca_ioctl(context, VHCA_IOC_QUERY_DM, &cmd);
	if (err)
		return vhca_null(err);
	return dm_new(context, &cmd);
}
