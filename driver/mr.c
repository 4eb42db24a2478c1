// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: memory, and the MKey that names it.
 *
 * To register a region anew is to put another MKey in the place of the old one; the
 * memory moves from one to the other where it stays the same.
 */
#include <linux/mm.h>
#include <linux/overflow.h>

#include "vhca.h"

static_assert(VHCA_ACCESS_LOCAL_WRITE == VHCA_MKEY_LOCAL_WRITE);
static_assert(VHCA_ACCESS_REMOTE_WRITE == VHCA_MKEY_REMOTE_WRITE);
static_assert(VHCA_ACCESS_REMOTE_READ == VHCA_MKEY_REMOTE_READ);
static_assert(VHCA_ACCESS_REMOTE_ATOMIC == VHCA_MKEY_REMOTE_ATOMIC);
static_assert(VHCA_ACCESS_MW_BIND == VHCA_MKEY_MW_BIND);

/* Writing is a right of the region that its memory must be able to give. */
static bool vhca_mr_writes(const struct vhca_mr *mr)
{
	return mr->access & VHCA_ACCESS_LOCAL_WRITE;
}

/* May the region be as it says? Its PD and its memory are looked at elsewhere. */
static int vhca_mr_check(struct vhca_ctx *ctx, const struct vhca_mr *mr)
{
	u32 access = mr->access;
	u64 end;

	if (access & ~(VHCA_MKEY_ACCESS | VHCA_ACCESS_ZERO_BASED))
		goto refused;
	if (access & (VHCA_ACCESS_REMOTE_WRITE | VHCA_ACCESS_REMOTE_ATOMIC) &&
	    !vhca_mr_writes(mr))
		goto refused;
	if (access & VHCA_ACCESS_ZERO_BASED && mr->iova)
		goto refused;
	if (mr->kind == VHCA_MKEY_NULL && (access || mr->iova || mr->length))
		goto refused;
	if (mr->length > ctx->vdev->caps.max_mr_size)
		goto refused;
	/* The page count is handled as an unsigned int below here. */
	if (mr->length >> PAGE_SHIFT >= INT_MAX)
		goto refused;
	if (check_add_overflow(mr->addr, mr->length, &end) ||
	    end > ULONG_MAX - PAGE_SIZE ||
	    check_add_overflow(mr->iova, mr->length, &end))
		goto refused;
	return 0;

refused:
	vhca_dbg(ctx, "MR at %#llx as %#llx, %#llx bytes, access %#x: refused\n",
		 mr->addr, mr->iova, mr->length, access);
	return -EINVAL;
}

/* MKeys; with the context's lock */

static u32 vhca_mr_rights(const struct vhca_mr *mr, const struct vhca_mem *mem)
{
	u32 rights = mr->access & VHCA_MKEY_ACCESS;

	/* Of a dma-buf the address is an offset. */
	if (mr->kind == VHCA_MKEY_PAGES && !mem->attach && mr->length &&
	    mr->iova == mr->addr)
		rights |= VHCA_MKEY_VIRTUAL;
	return rights;
}

static int vhca_mr_cmd(struct vhca_ctx *ctx, struct vhca_mr *mr, struct vhca_mem *mem)
{
	struct vhca_cmd cmd = {
		.create_mkey = {
			.pd	= cpu_to_be32(mr->pd->number),
			.access	= cpu_to_be32(vhca_mr_rights(mr, mem)),
			.iova	= cpu_to_be64(mr->iova),
			.length	= cpu_to_be64(mr->length),
			.kind	= cpu_to_be32(mr->kind),
			.key	= cpu_to_be32(mr->key),
		},
	};
	struct vhca_plist pl = {};
	struct vhca_cmd_done done;
	int ret = 0;

	/* A region of no bytes has no pages, wherever it is. */
	if (mr->kind == VHCA_MKEY_PAGES && mr->length) {
		cmd.create_mkey.offset = cpu_to_be32(offset_in_page(mr->addr));
		ret = vhca_mem_plist(ctx->vdev, mem, &pl);
		cmd.create_mkey.pages = vhca_plist_addr(&pl);
	}
	if (mr->kind == VHCA_MKEY_DM) {
		cmd.create_mkey.offset = cpu_to_be32(mr->addr);
		cmd.create_mkey.pages = cpu_to_be64(mem->dm->hw);
	}
	if (ret)
		return ret;
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_MKEY, &cmd, &done);
	vhca_plist_free(ctx->vdev, &pl);
	if (!ret)
		mr->key = be32_to_cpu(done.number);
	return ret;
}

/*
 * Enter a region in PD number @pd; its memory is @mem, and not yet its own. One that
 * has a key already takes the place of the region that has it.
 */
static int vhca_mr_create(struct vhca_ctx *ctx, struct vhca_mr *mr, u32 pd,
			  struct vhca_mem *mem)
{
	int ret;

	if (vhca_mr_writes(mr) && !mem->writable)
		return -EACCES;
	mr->pd = xa_load(&ctx->pds, pd);
	if (!mr->pd) {
		vhca_dbg(ctx, "no PD %u\n", pd);
		return -EINVAL;
	}
	ret = vhca_mr_cmd(ctx, mr, mem);
	if (ret)
		return ret;
	/*
	 * There is no way back: somebody who guessed the key may have bound a window to the
	 * region, so that it cannot be destroyed.
	 */
	xa_store(&ctx->mrs, mr->key, mr, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
	mr->pd->users++;
	return 0;
}

/* The other way; its MKey is destroyed. */
static void vhca_mr_remove(struct vhca_ctx *ctx, struct vhca_mr *mr)
{
	xa_erase(&ctx->mrs, mr->key);
	mr->pd->users--;
}

static int vhca_mr_destroy(struct vhca_ctx *ctx, struct vhca_mr *mr, bool cmds)
{
	int ret = 0;

	if (cmds)
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mr->key);
	if (ret)
		return ret;
	vhca_mem_free(ctx->vdev, mr->mem);
	mr->mem = NULL;
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

/* Calls */

/**
 * struct vhca_mr_call - a call that makes a region, in steps
 * @mr: the region.
 * @pd: number of its PD.
 * @mem: memory that was got for it; NULL when it is to have that of @old.
 * @rereg: what is to be new, or NULL.
 * @old: with @rereg the region that it replaces, busy.
 * @repin: that region's memory will not do.
 * @key: out.
 * @rkey: out.
 */
struct vhca_mr_call {
	struct vhca_mr *mr;
	u32 pd;
	struct vhca_mem *mem;
	const struct vhca_rereg_mr *rereg;
	struct vhca_mr *old;
	bool repin;
	u32 key;
	u32 rkey;
};

static struct vhca_mr *vhca_mr_alloc(u8 kind, u64 addr, u64 length, u64 iova,
				     u32 access)
{
	struct vhca_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);

	if (!mr)
		return NULL;
	mr->kind = kind;
	mr->addr = addr;
	mr->length = length;
	mr->iova = iova;
	mr->access = access;
	return mr;
}

/* A null MR is not for peers. */
static u32 vhca_mr_rkey(const struct vhca_mr *mr)
{
	return mr->kind == VHCA_MKEY_NULL ? 0 : mr->key;
}

/* What a region has replaced goes; its memory stays if the new one got no other. */
static void vhca_mr_retire(struct vhca_ctx *ctx, struct vhca_mr_call *c)
{
	if (c->mem)
		vhca_mem_free(ctx->vdev, c->old->mem);
	else
		c->mem = c->old->mem;
	c->old->pd->users--;
	kfree(c->old);
}

/*
 * With the device and the context's lock: it becomes a region, or loses what is
 * mapped while the device is there.
 */
static int vhca_mr_finish(struct vhca_ctx *ctx, struct vhca_mr_call *c)
{
	struct vhca_mem *mem = c->mem;
	int ret;

	if (c->old && !mem)
		mem = c->old->mem;
	ret = vhca_mr_create(ctx, c->mr, c->pd, mem);
	if (ret) {
		vhca_mem_free(ctx->vdev, c->mem);
		c->mem = NULL;
		return ret;
	}
	if (c->old)
		vhca_mr_retire(ctx, c);
	c->mr->mem = c->mem;
	c->key = c->mr->key;
	c->rkey = vhca_mr_rkey(c->mr);
	return 0;
}

/* One step of a call that pins, and so holds nothing in between. */
static int vhca_mr_step(struct vhca_ctx *ctx, struct vhca_mr_call *c,
			int (*step)(struct vhca_ctx *ctx, struct vhca_mr_call *c))
{
	int idx = srcu_read_lock(&ctx->vdev->srcu);
	int ret = -EIO;

	if (!vhca_dead(ctx->vdev)) {
		mutex_lock(&ctx->lock);
		ret = step(ctx, c);
		mutex_unlock(&ctx->lock);
	}
	srcu_read_unlock(&ctx->vdev->srcu, idx);
	return ret;
}

/* Get the memory and finish; on failure nothing is left but the region as asked for. */
static int vhca_mr_pin(struct vhca_ctx *ctx, struct vhca_mr_call *c)
{
	int ret;

	c->mem = vhca_mem_pin(ctx->vdev, c->mr->addr, c->mr->length,
			      vhca_mr_writes(c->mr));
	if (IS_ERR(c->mem))
		return PTR_ERR(c->mem);
	ret = vhca_mr_step(ctx, c, vhca_mr_finish);
	/* A device that is gone has nothing mapped: this is host memory only. */
	if (ret)
		vhca_mem_free(ctx->vdev, c->mem);
	return ret;
}

/** vhca_reg_mr() - VHCA_IOC_REG_MR; no locks: pinning may take for ever */
int vhca_reg_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_reg_mr *arg = &call->reg_mr;
	struct vhca_mr_call c = { .pd = arg->pd };
	int ret;

	if (vhca_dead(ctx->vdev))
		return -EIO;
	c.mr = vhca_mr_alloc(VHCA_MKEY_PAGES, arg->addr, arg->length, arg->iova,
			     arg->access);
	if (!c.mr)
		return -ENOMEM;
	ret = vhca_mr_check(ctx, c.mr);
	if (!ret)
		ret = vhca_mr_pin(ctx, &c);
	if (ret) {
		kfree(c.mr);
		return ret;
	}
	arg->lkey = c.key;
	arg->rkey = c.rkey;
	return 0;
}

/* A region of what is not pinned, with the context's lock. @mem is used up. */
static int vhca_reg_special(struct vhca_ctx *ctx, struct vhca_reg_special_mr *arg,
			    u8 kind, struct vhca_mem *mem)
{
	struct vhca_mr_call c = { .pd = arg->pd, .mem = mem };
	int ret;

	c.mr = vhca_mr_alloc(kind, arg->offset, arg->length, arg->iova, arg->access);
	if (!c.mr) {
		vhca_mem_free(ctx->vdev, mem);
		return -ENOMEM;
	}
	ret = vhca_mr_check(ctx, c.mr);
	if (ret)
		vhca_mem_free(ctx->vdev, mem);
	else
		ret = vhca_mr_finish(ctx, &c);
	if (ret) {
		kfree(c.mr);
		return ret;
	}
	arg->lkey = c.key;
	arg->rkey = c.rkey;
	return 0;
}

/** vhca_reg_null_mr() - VHCA_IOC_REG_NULL_MR */
int vhca_reg_null_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_reg_special_mr *arg = &call->reg_special_mr;

	if (arg->offset || arg->fd || arg->dm)
		return -EINVAL;
	return vhca_reg_special(ctx, arg, VHCA_MKEY_NULL, NULL);
}

/** vhca_reg_dm_mr() - VHCA_IOC_REG_DM_MR */
int vhca_reg_dm_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_reg_special_mr *arg = &call->reg_special_mr;
	struct vhca_dm *dm = xa_load(&ctx->dms, arg->dm);
	struct vhca_mem *mem;

	if (!dm || arg->fd)
		return -EINVAL;
	if (arg->offset > dm->length || arg->length > dm->length - arg->offset)
		return -EINVAL;
	mem = vhca_mem_dm(dm);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	return vhca_reg_special(ctx, arg, VHCA_MKEY_DM, mem);
}

/** vhca_reg_dmabuf_mr() - VHCA_IOC_REG_DMABUF_MR */
int vhca_reg_dmabuf_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_reg_special_mr *arg = &call->reg_special_mr;
	struct vhca_mem *mem;
	u64 end;

	if (arg->dm || !arg->length ||
	    check_add_overflow(arg->offset, arg->length, &end))
		return -EINVAL;
	mem = vhca_mem_dmabuf(ctx->vdev, arg->fd, arg->offset, arg->length);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	return vhca_reg_special(ctx, arg, VHCA_MKEY_PAGES, mem);
}

/** vhca_dereg_mr() - VHCA_IOC_DEREG_MR */
int vhca_dereg_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_mr *mr = xa_load(&ctx->mrs, call->object.number);
	int ret;

	if (!mr || call->object.rsvd)
		return -EINVAL;
	if (mr->busy)
		return -EBUSY;
	ret = vhca_mr_destroy(ctx, mr, true);
	if (ret)
		return ret;
	vhca_mr_remove(ctx, mr);
	kfree(mr);
	return 0;
}

/** vhca_query_mr() - VHCA_IOC_QUERY_MR */
int vhca_query_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_query_mr *arg = &call->query_mr;
	struct vhca_mr *mr = xa_load(&ctx->mrs, arg->lkey);

	if (!mr)
		return -EINVAL;
	arg->rkey = vhca_mr_rkey(mr);
	arg->addr = mr->addr;
	arg->length = mr->length;
	arg->iova = mr->iova;
	arg->pd = mr->pd->number;
	arg->access = mr->access;
	return 0;
}

/* Registering anew */

#define VHCA_REREG_ALL	(VHCA_REREG_TRANSLATION | VHCA_REREG_PD | VHCA_REREG_ACCESS)

static int vhca_rereg_check(const struct vhca_rereg_mr *arg)
{
	if (!arg->flags || arg->flags & ~VHCA_REREG_ALL || arg->rsvd)
		return -EINVAL;
	if (!(arg->flags & VHCA_REREG_TRANSLATION) &&
	    (arg->addr || arg->length || arg->iova))
		return -EINVAL;
	if (!(arg->flags & VHCA_REREG_PD) && arg->pd)
		return -EINVAL;
	return !(arg->flags & VHCA_REREG_ACCESS) && arg->access ? -EINVAL : 0;
}

/* The region that is asked for, from the old one and what is new. */
static void vhca_rereg_merge(struct vhca_mr_call *c, const struct vhca_mr *old)
{
	const struct vhca_rereg_mr *arg = c->rereg;
	struct vhca_mr *mr = c->mr;
	bool translation = arg->flags & VHCA_REREG_TRANSLATION;

	c->pd = arg->flags & VHCA_REREG_PD ? arg->pd : old->pd->number;
	mr->kind = translation ? VHCA_MKEY_PAGES : old->kind;
	mr->addr = translation ? arg->addr : old->addr;
	mr->length = translation ? arg->length : old->length;
	mr->iova = translation ? arg->iova : old->iova;
	mr->access = arg->flags & VHCA_REREG_ACCESS ? arg->access : old->access;
}

static int vhca_rereg_begin(struct vhca_ctx *ctx, struct vhca_mr_call *c)
{
	struct vhca_mr *old = xa_load(&ctx->mrs, c->rereg->lkey);
	int ret;

	if (!old)
		return -EINVAL;
	if (old->busy)
		return -EBUSY;
	vhca_rereg_merge(c, old);
	ret = vhca_mr_check(ctx, c->mr);
	if (ret)
		return ret;
	c->repin = c->rereg->flags & VHCA_REREG_TRANSLATION;
	/* Pinned for reading only; of a dma-buf, that is all that can be had. */
	if (!c->repin && vhca_mr_writes(c->mr) && !old->mem->writable)
		c->repin = !old->mem->attach;
	/* It is left as it is until all else is done, and is there then. */
	c->mr->key = old->key;
	old->busy = true;
	c->old = old;
	return 0;
}

static void vhca_rereg_abort(struct vhca_ctx *ctx, struct vhca_mr *old)
{
	mutex_lock(&ctx->lock);
	old->busy = false;
	mutex_unlock(&ctx->lock);
}

/** vhca_rereg_mr() - VHCA_IOC_REREG_MR; no locks while it pins */
int vhca_rereg_mr(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_rereg_mr *arg = &call->rereg_mr;
	struct vhca_mr_call c = { .rereg = arg };
	int ret;

	ret = vhca_rereg_check(arg);
	if (ret)
		return ret;
	c.mr = kzalloc(sizeof(*c.mr), GFP_KERNEL_ACCOUNT);
	if (!c.mr)
		return -ENOMEM;
	ret = vhca_mr_step(ctx, &c, vhca_rereg_begin);
	if (!ret) {
		ret = c.repin ? vhca_mr_pin(ctx, &c) :
				vhca_mr_step(ctx, &c, vhca_mr_finish);
		if (ret)
			vhca_rereg_abort(ctx, c.old);
	}
	if (ret) {
		kfree(c.mr);
		return ret;
	}
	arg->lkey = c.key;
	arg->rkey = c.rkey;
	return 0;
}
