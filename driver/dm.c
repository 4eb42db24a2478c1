// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: pieces of BAR2, which user space maps and regions are made of.
 */
#include "vhca.h"

/* Mmap offsets: as many pages for each as the device has in all. */
static u32 vhca_dm_stride(const struct vhca_dev *vdev)
{
	return vdev->caps.dm_pages;
}

static unsigned long vhca_dm_pgoff(struct vhca_ctx *ctx, const struct vhca_dm *dm)
{
	return VHCA_PGOFF_DM + (unsigned long)dm->number * vhca_dm_stride(ctx->vdev);
}

static int vhca_dm_cmd(struct vhca_ctx *ctx, struct vhca_dm *dm)
{
	struct vhca_cmd cmd = { .alloc_dm.npages = cpu_to_be32(dm->npages) };
	const struct vhca_caps *caps = &ctx->vdev->caps;
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_cmd(ctx->vdev, VHCA_CMD_ALLOC_DM, &cmd, &done);
	if (ret == -ENOMEM && done.status == VHCA_CMD_NO_RESOURCE)
		return -ENOSPC;
	if (ret)
		return ret;
	dm->hw = be32_to_cpu(done.number);
	/* The device's word decides what user space maps: keep it where it said. */
	if (dm->hw >= caps->dm_page &&
	    dm->hw - caps->dm_page <= caps->dm_pages - dm->npages)
		return 0;
	dev_err(&ctx->vdev->dev, "device memory at page %u is none\n", dm->hw);
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_FREE_DM, dm->hw);
	return -EIO;
}

/** vhca_alloc_dm() - VHCA_IOC_ALLOC_DM */
int vhca_alloc_dm(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_alloc_dm *arg = &call->alloc_dm;
	u32 stride = vhca_dm_stride(ctx->vdev);
	struct vhca_dm *dm;
	int ret;

	/* Whole pages have every alignment that can be asked for. */
	if (!arg->length || arg->log_align > VHCA_DM_MAX_LOG_ALIGN)
		return -EINVAL;
	if (arg->length > (u64)stride << PAGE_SHIFT)
		return -ENOSPC;
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return -ENOMEM;
	dm->length = arg->length;
	dm->npages = DIV_ROUND_UP(arg->length, PAGE_SIZE);
	ret = vhca_charge(ctx, VHCA_KIND_DM, dm->npages);
	if (ret)
		goto err_free;
	ret = vhca_dm_cmd(ctx, dm);
	if (ret)
		goto err_uncharge;
	ret = xa_alloc(&ctx->dms, &dm->number, dm,
		       XA_LIMIT(0, VHCA_PGOFF_DM_SIZE / stride - 1),
		       GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_cmd;
	arg->dm = dm->number;
	arg->map_offset = (u64)vhca_dm_pgoff(ctx, dm) << PAGE_SHIFT;
	arg->map_size = (u64)dm->npages << PAGE_SHIFT;
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_FREE_DM, dm->hw);
err_uncharge:
	vhca_uncharge(ctx, VHCA_KIND_DM, dm->npages);
err_free:
	kfree(dm);
	return ret;
}

/** vhca_query_dm() - VHCA_IOC_QUERY_DM */
int vhca_query_dm(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_alloc_dm *arg = &call->alloc_dm;
	struct vhca_dm *dm = xa_load(&ctx->dms, arg->dm);

	if (!dm || arg->log_align)
		return -EINVAL;
	arg->length = dm->length;
	arg->map_offset = (u64)vhca_dm_pgoff(ctx, dm) << PAGE_SHIFT;
	arg->map_size = (u64)dm->npages << PAGE_SHIFT;
	return 0;
}

static int vhca_dm_destroy(struct vhca_ctx *ctx, struct vhca_dm *dm, bool cmds)
{
	vhca_bar_zap(ctx, &dm->gone, vhca_dm_pgoff(ctx, dm), dm->npages);
	return cmds ? vhca_cmd_number(ctx->vdev, VHCA_CMD_FREE_DM, dm->hw) : 0;
}

/** vhca_free_dm() - VHCA_IOC_FREE_DM */
int vhca_free_dm(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_dm *dm = xa_load(&ctx->dms, call->object.number);
	int ret;

	if (!dm || call->object.rsvd)
		return -EINVAL;
	if (dm->users)
		return -EBUSY;
	ret = vhca_dm_destroy(ctx, dm, true);
	if (ret)
		return ret;
	xa_erase(&ctx->dms, dm->number);
	vhca_uncharge(ctx, VHCA_KIND_DM, dm->npages);
	/* A fault may be looking at it. */
	kfree_rcu(dm, rcu);
	return 0;
}

/**
 * vhca_dm_at() - what user space finds at an mmap offset
 * @ctx: the context; the caller is in a read section of RCU.
 * @pgoff: pages, from VHCA_PGOFF_DM on.
 * @page: of the piece.
 *
 * Return: the device memory that has this page, or NULL.
 */
struct vhca_dm *vhca_dm_at(struct vhca_ctx *ctx, unsigned long pgoff, u32 *page)
{
	u32 stride = vhca_dm_stride(ctx->vdev);
	struct vhca_dm *dm;

	if (!stride)
		return NULL;
	dm = xa_load(&ctx->dms, pgoff / stride);
	*page = pgoff % stride;
	return dm && *page < dm->npages ? dm : NULL;
}

/** vhca_dms_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_dms_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_dm *dm;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->dms, i, dm) {
		ret = vhca_dm_destroy(ctx, dm, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_dms_free() - what is left of them */
void vhca_dms_free(struct vhca_ctx *ctx)
{
	struct vhca_dm *dm;
	unsigned long i;

	xa_for_each(&ctx->dms, i, dm)
		kfree(dm);
	xa_destroy(&ctx->dms);
}
