// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains.
 */
#include "vhca.h"

/** vhca_alloc_pd() - VHCA_IOC_ALLOC_PD */
int vhca_alloc_pd(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_cmd_done done;
	struct vhca_cmd cmd = {};
	struct vhca_pd *pd;
	int ret;

	if (call->object.rsvd)
		return -EINVAL;
	pd = kzalloc(sizeof(*pd), GFP_KERNEL_ACCOUNT);
	if (!pd)
		return -ENOMEM;
	ret = vhca_cmd(ctx->vdev, VHCA_CMD_ALLOC_PD, &cmd, &done);
	if (ret)
		goto err_free;
	pd->number = be32_to_cpu(done.number);
	ret = xa_insert(&ctx->pds, pd->number, pd, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_cmd;
	call->object.number = pd->number;
	return 0;

err_cmd:
	vhca_cmd_undo(ctx->vdev, VHCA_CMD_FREE_PD, pd->number);
err_free:
	kfree(pd);
	return ret;
}

/** vhca_free_pd() - VHCA_IOC_FREE_PD */
int vhca_free_pd(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_pd *pd = xa_load(&ctx->pds, call->object.number);
	int ret;

	if (!pd || call->object.rsvd)
		return -EINVAL;
	if (pd->users)
		return -EBUSY;
	ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_FREE_PD, pd->number);
	if (ret)
		return ret;
	xa_erase(&ctx->pds, pd->number);
	kfree(pd);
	return 0;
}

/** vhca_query_pd() - VHCA_IOC_QUERY_PD */
int vhca_query_pd(struct vhca_ctx *ctx, struct vhca_call *call)
{
	if (!xa_load(&ctx->pds, call->object.number) || call->object.rsvd)
		return -EINVAL;
	return 0;
}

/** vhca_pds_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_pds_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_pd *pd;
	unsigned long i;
	int ret;

	if (!cmds)
		return 0;
	xa_for_each(&ctx->pds, i, pd) {
		ret = vhca_cmd_number(ctx->vdev, VHCA_CMD_FREE_PD, pd->number);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_pds_free() - what is left of them */
void vhca_pds_free(struct vhca_ctx *ctx)
{
	struct vhca_pd *pd;
	unsigned long i;

	xa_for_each(&ctx->pds, i, pd)
		kfree(pd);
	xa_destroy(&ctx->pds);
}
