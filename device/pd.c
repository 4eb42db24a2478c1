// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains. A PD is a number that MKeys and QPs carry, and a
 * count of those that do.
 */
#include "vdev.h"

u8 vdev_alloc_pd(struct vdev *dev, const struct vhca_cmd *cmd,
		 struct vhca_cmd_done *done)
{
	u32 pd;
	int err;

	err = xa_alloc(&dev->pds, &pd, xa_mk_value(0),
		       XA_LIMIT(1, VDEV_MAX_PD), GFP_KERNEL);
	if (err)
		return err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
	done->number = cpu_to_be32(pd);
	return VHCA_CMD_OK;
}

u8 vdev_free_pd(struct vdev *dev, const struct vhca_cmd *cmd,
		struct vhca_cmd_done *done)
{
	u32 pd = be32_to_cpu(cmd->object.number);
	void *users = xa_load(&dev->pds, pd);

	if (!users)
		return VHCA_CMD_BAD_OBJECT;
	if (xa_to_value(users))
		return VHCA_CMD_BUSY;
	xa_erase(&dev->pds, pd);
	return VHCA_CMD_OK;
}

u8 vdev_pd_get(struct vdev *dev, u32 pd)
{
	void *users = xa_load(&dev->pds, pd);

	if (!users)
		return VHCA_CMD_BAD_OBJECT;
	/* An entry that is there is replaced without allocation. */
	xa_store(&dev->pds, pd, xa_mk_value(xa_to_value(users) + 1), GFP_KERNEL);
	return VHCA_CMD_OK;
}

void vdev_pd_put(struct vdev *dev, u32 pd)
{
	unsigned long users = xa_to_value(xa_load(&dev->pds, pd));

	xa_store(&dev->pds, pd, xa_mk_value(users - 1), GFP_KERNEL);
}

void vdev_forget_pds(struct vdev *dev)
{
	xa_destroy(&dev->pds);
}
