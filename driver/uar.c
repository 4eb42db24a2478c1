// SPDX-License-Identifier: GPL-2.0-only
/*
 * UARs: a page of doorbells on the device, a page of doorbell records in
 * memory, and the 63 slots in both, each of one QP, CQ or SRQ.
 */
#include "vhca.h"

static int vhca_uar_cmd(struct vhca_ctx *ctx, struct vhca_uar *uar)
{
	struct vhca_dev *vdev = ctx->vdev;
	struct vhca_cmd_done done;
	struct vhca_cmd cmd = {};
	int ret;

	/* The device shares its time between those who have another number. */
	cmd.object.number = cpu_to_be32(from_kuid(&init_user_ns, current_uid()));
	ret = vhca_cmd(vdev, VHCA_CMD_ALLOC_UAR, &cmd, &done);
	if (ret == -ENOMEM && done.status == VHCA_CMD_NO_RESOURCE)
		return -ENOSPC;
	if (ret)
		return ret;
	uar->hw = be32_to_cpu(done.number);
	/* The device's word decides what user space maps: keep it in the BAR. */
	if (uar->hw < vdev->num_uars)
		return 0;
	dev_err(&vdev->dev, "UAR %u lies outside of the BAR\n", uar->hw);
	vhca_cmd_undo(vdev, VHCA_CMD_FREE_UAR, uar->hw);
	return -EIO;
}

static int vhca_uar_insert(struct vhca_ctx *ctx, struct vhca_uar *uar)
{
	int ret;

	ret = vhca_offset_add(ctx, uar->dbr);
	if (ret)
		return ret;
	ret = xa_insert(&ctx->uars, uar->hw, uar, GFP_KERNEL_ACCOUNT);
	if (ret) {
		vhca_offset_del(ctx, uar->dbr);
		return ret == -EBUSY ? -EIO : ret;
	}
	WRITE_ONCE(ctx->vdev->uar_owner[uar->hw], ctx);
	return 0;
}

/** vhca_alloc_uar() - VHCA_IOC_ALLOC_UAR */
int vhca_alloc_uar(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_alloc_uar *arg = &call->alloc_uar;
	struct vhca_uar *uar;
	int ret;

	if (arg->rsvd)
		return -EINVAL;
	uar = kzalloc(sizeof(*uar), GFP_KERNEL_ACCOUNT);
	if (!uar)
		return -ENOMEM;
	uar->dbr = vhca_buf_alloc(ctx->vdev, VHCA_UAR_PAGE_SIZE);
	if (IS_ERR(uar->dbr)) {
		ret = PTR_ERR(uar->dbr);
		goto err_uar;
	}
	ret = vhca_uar_cmd(ctx, uar);
	if (ret)
		goto err_dbr;
	ret = vhca_uar_insert(ctx, uar);
	if (ret)
		goto err_cmd;
	arg->uar = uar->hw;
	arg->uar_offset = (u64)(VHCA_PGOFF_UAR + uar->hw) << PAGE_SHIFT;
	arg->dbr_offset = (u64)uar->dbr->offset << PAGE_SHIFT;
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_FREE_UAR, uar->hw);
err_dbr:
	vhca_buf_unmap(ctx->vdev, uar->dbr);
	vhca_buf_put(uar->dbr);
err_uar:
	kfree(uar);
	return ret;
}

static int vhca_uar_destroy(struct vhca_ctx *ctx, struct vhca_uar *uar,
			    bool cmds)
{
	int ret = 0;

	vhca_bar_zap(ctx, &uar->gone, VHCA_PGOFF_UAR + uar->hw, 1);
	/* Before another context can get it. */
	WRITE_ONCE(ctx->vdev->uar_owner[uar->hw], NULL);
	if (cmds)
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_FREE_UAR, uar->hw);
	if (!ret)
		vhca_buf_unmap(ctx->vdev, uar->dbr);
	return ret;
}

static void vhca_uar_free(struct vhca_ctx *ctx, struct vhca_uar *uar)
{
	xa_erase(&ctx->uars, uar->hw);
	vhca_offset_del(ctx, uar->dbr);
	vhca_buf_put(uar->dbr);
	/* A fault may be looking at it. */
	kfree_rcu(uar, rcu);
}

/** vhca_free_uar() - VHCA_IOC_FREE_UAR */
int vhca_free_uar(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_uar *uar = xa_load(&ctx->uars, call->object.number);
	int ret;

	if (!uar || call->object.rsvd)
		return -EINVAL;
	if (!bitmap_empty(uar->slots, VHCA_UAR_SLOTS))
		return -EBUSY;
	ret = vhca_uar_destroy(ctx, uar, true);
	if (ret)
		return ret;
	vhca_uar_free(ctx, uar);
	return 0;
}

/**
 * vhca_slot_get() - take a slot for a new object
 * @ctx: the context, locked.
 * @number: of the UAR in the file.
 * @slot: wanted.
 * @uar: the UAR.
 *
 * The record is zeroed, as the device expects; what user space writes to it in
 * between is its own loss.
 */
int vhca_slot_get(struct vhca_ctx *ctx, u32 number, u32 slot,
		  struct vhca_uar **uar)
{
	struct vhca_uar *u = xa_load(&ctx->uars, number);

	if (!u || slot < VHCA_UAR_FIRST_SLOT || slot >= VHCA_UAR_SLOTS) {
		vhca_dbg(ctx, "no slot %u in UAR %u\n", slot, number);
		return -EINVAL;
	}
	if (test_and_set_bit(slot, u->slots)) {
		vhca_dbg(ctx, "slot %u of UAR %u is taken\n", slot, number);
		return -EBUSY;
	}
	memset(page_address(u->dbr->pages[0]) + slot * VHCA_UAR_SLOT_SIZE, 0,
	       VHCA_UAR_SLOT_SIZE);
	*uar = u;
	return 0;
}

/** vhca_slot_put() - the object is gone from the device */
void vhca_slot_put(struct vhca_uar *uar, u32 slot)
{
	clear_bit(slot, uar->slots);
}

/** vhca_slot_dma() - where the device finds the doorbell record */
dma_addr_t vhca_slot_dma(struct vhca_uar *uar, u32 slot)
{
	return uar->dbr->dma[0] + slot * VHCA_UAR_SLOT_SIZE;
}

/** vhca_uars_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_uars_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_uar *uar;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->uars, i, uar) {
		ret = vhca_uar_destroy(ctx, uar, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_uars_free() - what is left of them */
void vhca_uars_free(struct vhca_ctx *ctx)
{
	struct vhca_uar *uar;
	unsigned long i;

	xa_for_each(&ctx->uars, i, uar)
		vhca_uar_free(ctx, uar);
}
