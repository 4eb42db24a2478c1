// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains and XRC domains. A domain is a number that other objects
 * carry, and a count of those that do.
 */
#include "vdev.h"

static u8 domain_alloc(struct xarray *domains, u32 max, struct vhca_cmd_done *done)
{
	u32 number;
	int err;

	err = xa_alloc(domains, &number, xa_mk_value(0), XA_LIMIT(1, max),
		       GFP_KERNEL_ACCOUNT);
	if (err)
		return err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
	done->number = cpu_to_be32(number);
	return VHCA_CMD_OK;
}

static u8 domain_free(struct xarray *domains, const struct vhca_cmd *cmd)
{
	u32 number = be32_to_cpu(cmd->object.number);
	void *users = xa_load(domains, number);

	if (!users)
		return VHCA_CMD_BAD_OBJECT;
	if (xa_to_value(users))
		return VHCA_CMD_BUSY;
	xa_erase(domains, number);
	return VHCA_CMD_OK;
}

static u8 domain_get(struct xarray *domains, u32 number)
{
	void *users = xa_load(domains, number);

	if (!users)
		return VHCA_CMD_BAD_OBJECT;
	/* An entry that is there is replaced without allocation. */
	xa_store(domains, number, xa_mk_value(xa_to_value(users) + 1), GFP_KERNEL);
	return VHCA_CMD_OK;
}

static void domain_put(struct xarray *domains, u32 number)
{
	unsigned long users = xa_to_value(xa_load(domains, number));

	xa_store(domains, number, xa_mk_value(users - 1), GFP_KERNEL);
}

u8 vdev_alloc_pd(struct vdev *dev, const struct vhca_cmd *cmd,
		 struct vhca_cmd_done *done)
{
	return domain_alloc(&dev->pds, VDEV_MAX_PD, done);
}

u8 vdev_free_pd(struct vdev *dev, const struct vhca_cmd *cmd,
		struct vhca_cmd_done *done)
{
	return domain_free(&dev->pds, cmd);
}

u8 vdev_pd_get(struct vdev *dev, u32 pd)
{
	return domain_get(&dev->pds, pd);
}

void vdev_pd_put(struct vdev *dev, u32 pd)
{
	domain_put(&dev->pds, pd);
}

u8 vdev_alloc_xrcd(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	return domain_alloc(&dev->xrcds, VDEV_MAX_XRCD, done);
}

u8 vdev_free_xrcd(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	return domain_free(&dev->xrcds, cmd);
}

u8 vdev_xrcd_get(struct vdev *dev, u32 xrcd)
{
	return domain_get(&dev->xrcds, xrcd);
}

void vdev_xrcd_put(struct vdev *dev, u32 xrcd)
{
	domain_put(&dev->xrcds, xrcd);
}

void vdev_forget_domains(struct vdev *dev)
{
	xa_destroy(&dev->pds);
	xa_destroy(&dev->xrcds);
}
