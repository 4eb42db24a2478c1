// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows. Binding them is between user space and the device; the driver
 * knows of no more than their existence, and them by the index of their keys, as
 * the rest of a key changes without it.
 */
#include "vhca.h"

static unsigned long vhca_mw_index(u32 rkey)
{
	return rkey >> 8;
}

static int vhca_mw_cmd(struct vhca_ctx *ctx, struct vhca_mw *mw, u32 type)
{
	struct vhca_cmd cmd = {
		.create_mkey = {
			.pd	= cpu_to_be32(mw->pd->number),
			.kind	= cpu_to_be32(type == 1 ? VHCA_MKEY_MW1 : VHCA_MKEY_MW2),
		},
	};
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_cmd(ctx->vdev, VHCA_CMD_CREATE_MKEY, &cmd, &done);
	if (!ret)
		mw->rkey = be32_to_cpu(done.number);
	return ret;
}

/** vhca_alloc_mw() - VHCA_IOC_ALLOC_MW */
int vhca_alloc_mw(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_alloc_mw *arg = &call->alloc_mw;
	struct vhca_pd *pd = xa_load(&ctx->pds, arg->pd);
	struct vhca_mw *mw;
	int ret;

	if (!pd || (arg->type != 1 && arg->type != 2) || arg->rsvd)
		return -EINVAL;
	mw = kzalloc(sizeof(*mw), GFP_KERNEL_ACCOUNT);
	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	ret = vhca_mw_cmd(ctx, mw, arg->type);
	if (ret)
		goto err_free;
	ret = xa_insert(&ctx->mws, vhca_mw_index(mw->rkey), mw, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_cmd;
	pd->users++;
	arg->rkey = mw->rkey;
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mw->rkey);
err_free:
	kfree(mw);
	return ret;
}

/** vhca_free_mw() - VHCA_IOC_FREE_MW; bound or not */
int vhca_free_mw(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_mw *mw = xa_load(&ctx->mws, vhca_mw_index(call->object.number));
	int ret;

	if (!mw || call->object.rsvd)
		return -EINVAL;
	ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mw->rkey);
	if (ret)
		return ret;
	xa_erase(&ctx->mws, vhca_mw_index(mw->rkey));
	mw->pd->users--;
	kfree(mw);
	return 0;
}

/** vhca_mws_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_mws_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_mw *mw;
	unsigned long i;
	int ret;

	if (!cmds)
		return 0;
	xa_for_each(&ctx->mws, i, mw) {
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_DESTROY_MKEY, mw->rkey);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_mws_free() - what is left of them */
void vhca_mws_free(struct vhca_ctx *ctx)
{
	struct vhca_mw *mw;
	unsigned long i;

	xa_for_each(&ctx->mws, i, mw)
		kfree(mw);
	xa_destroy(&ctx->mws);
}
