// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: pinned user memory and the MKey that names it.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>

#include "vhca.h"

#define VHCA_PIN_PAGES	(PAGE_SIZE / sizeof(struct page *))

static_assert(VHCA_ACCESS_LOCAL_WRITE == VHCA_MKEY_LOCAL_WRITE);
static_assert(VHCA_ACCESS_REMOTE_WRITE == VHCA_MKEY_REMOTE_WRITE);
static_assert(VHCA_ACCESS_REMOTE_READ == VHCA_MKEY_REMOTE_READ);
static_assert(VHCA_ACCESS_REMOTE_ATOMIC == VHCA_MKEY_REMOTE_ATOMIC);

static bool vhca_mr_writable(struct vhca_mr *mr)
{
	return mr->access & VHCA_ACCESS_LOCAL_WRITE;
}

/* Undo pin, charge and DMA mapping, as far as they went; may be repeated. */
static void vhca_mr_detach(struct vhca_dev *vdev, struct vhca_mr *mr)
{
	bool dirty = vhca_mr_writable(mr);
	struct sg_table *sgt = &mr->sgt.sgt;
	struct scatterlist *sg;
	unsigned int i;

	if (mr->mapped)
		dma_unmap_sgtable(&vdev->pdev->dev, sgt, dirty ?
				  DMA_BIDIRECTIONAL : DMA_TO_DEVICE, 0);
	mr->mapped = false;
	for_each_sgtable_sg(sgt, sg, i)
		unpin_user_page_range_dirty_lock(sg_page(sg),
						 sg->length >> PAGE_SHIFT, dirty);
	sg_free_append_table(&mr->sgt);
	memset(&mr->sgt, 0, sizeof(mr->sgt));
	vhca_pin_uncharge(&mr->charge);
}

static int vhca_mr_pin(struct vhca_mr *mr, unsigned long addr)
{
	unsigned long left = mr->npages;
	struct page **pages;
	int n, ret = 0;

	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	while (left && !ret) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		n = vhca_pin(addr, min(left, VHCA_PIN_PAGES),
			     vhca_mr_writable(mr), pages);
		if (n < 0) {
			ret = n;
			break;
		}
		left -= n;
		addr += (unsigned long)n << PAGE_SHIFT;
		ret = sg_alloc_append_table_from_pages(&mr->sgt, pages, n, 0,
						       (unsigned long)n << PAGE_SHIFT,
						       UINT_MAX, left,
						       GFP_KERNEL_ACCOUNT);
		if (ret)
			unpin_user_pages(pages, n);
		cond_resched();
	}
	free_page((unsigned long)pages);
	return ret;
}

static int vhca_mr_check(struct vhca_ctx *ctx, const struct vhca_reg_mr *arg)
{
	u64 end;

	if (arg->access & ~VHCA_MKEY_ACCESS)
		return -EINVAL;
	if (arg->access & (VHCA_ACCESS_REMOTE_WRITE | VHCA_ACCESS_REMOTE_ATOMIC) &&
	    !(arg->access & VHCA_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (arg->length > ctx->vdev->caps.max_mr_size)
		return -EINVAL;
	if (offset_in_page(arg->addr ^ arg->iova))
		return -EINVAL;
	if (check_add_overflow(arg->addr, arg->length, &end) ||
	    end > ULONG_MAX - PAGE_SIZE ||
	    check_add_overflow(arg->iova, arg->length, &end))
		return -EINVAL;
	/* The page count is handled as an unsigned int below here. */
	return arg->length >> PAGE_SHIFT >= INT_MAX ? -EINVAL : 0;
}

static int vhca_mr_map(struct vhca_dev *vdev, struct vhca_mr *mr,
		       struct vhca_plist *pl)
{
	struct sg_table *sgt = &mr->sgt.sgt;
	struct sg_dma_page_iter iter;
	unsigned long i = 0;
	int ret;

	ret = vhca_plist_alloc(vdev, pl, mr->npages);
	if (ret || !mr->npages)
		return ret;
	ret = dma_map_sgtable(&vdev->pdev->dev, sgt, vhca_mr_writable(mr) ?
			      DMA_BIDIRECTIONAL : DMA_TO_DEVICE, 0);
	if (ret) {
		vhca_plist_free(vdev, pl);
		return ret;
	}
	mr->mapped = true;
	for_each_sgtable_dma_page(sgt, &iter, 0)
		vhca_plist_set(pl, i++, sg_page_iter_dma_address(&iter));
	return 0;
}

static int vhca_mr_cmd(struct vhca_ctx *ctx, struct vhca_mr *mr,
		       const struct vhca_reg_mr *arg)
{
	struct vhca_cmd cmd = {
		.create_mkey = {
			.pd	= cpu_to_be32(arg->pd),
			.access	= cpu_to_be32(arg->access),
			.iova	= cpu_to_be64(arg->iova),
			.length	= cpu_to_be64(arg->length),
		},
	};
	struct vhca_cmd_done done;
	struct vhca_plist pl;
	int ret;

	ret = vhca_mr_map(ctx->vdev, mr, &pl);
	if (ret)
		return ret;
	cmd.create_mkey.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_MKEY, &cmd, &done);
	vhca_plist_free(ctx->vdev, &pl);
	if (!ret)
		mr->key = be32_to_cpu(done.number);
	return ret;
}

/* With the context's lock. */
static int vhca_mr_create(struct vhca_ctx *ctx, struct vhca_mr *mr,
			  struct vhca_reg_mr *arg)
{
	int ret;

	mr->pd = xa_load(&ctx->pds, arg->pd);
	if (!mr->pd) {
		vhca_dbg(ctx, "no PD %u\n", arg->pd);
		return -EINVAL;
	}
	ret = vhca_mr_cmd(ctx, mr, arg);
	if (ret)
		return ret;
	ret = xa_insert(&ctx->mrs, mr->key, mr, GFP_KERNEL_ACCOUNT);
	if (ret) {
		vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mr->key);
		return ret;
	}
	mr->pd->users++;
	arg->lkey = mr->key;
	arg->rkey = mr->key;
	return 0;
}

/* Pinned memory becomes a region, or no more than pinned memory. */
static int vhca_mr_enter(struct vhca_ctx *ctx, struct vhca_mr *mr,
			 struct vhca_reg_mr *arg)
{
	int idx, ret;

	idx = srcu_read_lock(&ctx->vdev->srcu);
	if (vhca_dead(ctx->vdev)) {
		ret = -EIO;
		goto out;
	}
	ret = mutex_lock_killable(&ctx->lock);
	if (ret)
		goto out;
	ret = vhca_mr_create(ctx, mr, arg);
	mutex_unlock(&ctx->lock);
	if (ret)
		vhca_mr_detach(ctx->vdev, mr);
out:
	srcu_read_unlock(&ctx->vdev->srcu, idx);
	return ret;
}

/* A region of no bytes has no pages, wherever it is. */
static unsigned long vhca_mr_npages(const struct vhca_reg_mr *arg)
{
	if (!arg->length)
		return 0;
	return DIV_ROUND_UP(offset_in_page(arg->addr) + arg->length, PAGE_SIZE);
}

/** vhca_reg_mr() - VHCA_IOC_REG_MR; no locks: pinning may take for ever */
int vhca_reg_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_reg_mr *arg = &call->reg_mr;
	struct vhca_mr *mr;
	int ret;

	if (vhca_dead(ctx->vdev))
		return -EIO;
	ret = vhca_mr_check(ctx, arg);
	if (ret) {
		vhca_dbg(ctx, "MR at %#llx, %#llx bytes, access %#x: refused\n",
			 arg->addr, arg->length, arg->access);
		return ret;
	}
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return -ENOMEM;
	mr->access = arg->access;
	mr->npages = vhca_mr_npages(arg);
	ret = vhca_pin_charge(&mr->charge, mr->npages);
	if (!ret)
		ret = vhca_mr_pin(mr, arg->addr & PAGE_MASK);
	if (!ret)
		ret = vhca_mr_enter(ctx, mr, arg);
	if (ret) {
		/* Not mapped for DMA, or not any more: this is host memory only. */
		vhca_mr_detach(ctx->vdev, mr);
		kfree(mr);
	}
	return ret;
}

static int vhca_mr_destroy(struct vhca_ctx *ctx, struct vhca_mr *mr, bool cmds)
{
	int ret = 0;

	if (cmds)
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mr->key);
	if (!ret)
		vhca_mr_detach(ctx->vdev, mr);
	return ret;
}

/** vhca_dereg_mr() - VHCA_IOC_DEREG_MR */
int vhca_dereg_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_mr *mr = xa_load(&ctx->mrs, call->object.number);
	int ret;

	if (!mr || call->object.rsvd)
		return -EINVAL;
	ret = vhca_mr_destroy(ctx, mr, true);
	if (ret)
		return ret;
	xa_erase(&ctx->mrs, mr->key);
	mr->pd->users--;
	kfree(mr);
	return 0;
}

/** vhca_mrs_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_mrs_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_mr *mr;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->mrs, i, mr) {
		ret = vhca_mr_destroy(ctx, mr, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_mrs_free() - what is left of them */
void vhca_mrs_free(struct vhca_ctx *ctx)
{
	struct vhca_mr *mr;
	unsigned long i;

	xa_for_each(&ctx->mrs, i, mr)
		kfree(mr);
	xa_destroy(&ctx->mrs);
}
