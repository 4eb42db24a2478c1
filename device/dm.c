// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: the pages of BAR2 behind the UAR pages, given away in pieces.
 *
 * Users map a piece as they map UAR pages, and MKeys make it accessible to work
 * requests. A piece is known by its first page of the BAR.
 */
#include <linux/string.h>

#include "vdev.h"

void *vdev_dm_at(struct vdev *dev, u32 page)
{
	return dev->uar_base + (size_t)page * VHCA_PAGE_SIZE;
}

/* The piece that begins at a page of BAR2; NULL when there is none. */
static struct vdev_dm_piece *dm_find(struct vdev *dev, u64 page)
{
	struct vdev_dm_piece *piece;

	if (page < VDEV_DM_PAGE || page >= VDEV_DM_PAGE + VDEV_DM_PAGES)
		return NULL;
	piece = &dev->dm.piece[page - VDEV_DM_PAGE];
	return piece->npages ? piece : NULL;
}

u8 vdev_alloc_dm(struct vdev *dev, const struct vhca_cmd *cmd,
		 struct vhca_cmd_done *done)
{
	u32 npages = be32_to_cpu(cmd->alloc_dm.npages);
	unsigned long at;

	if (!npages)
		return VHCA_CMD_BAD_PARAM;
	if (npages > VDEV_DM_PAGES)
		return VHCA_CMD_NO_RESOURCE;
	at = bitmap_find_next_zero_area(dev->dm.used, VDEV_DM_PAGES, 0, npages, 0);
	if (at >= VDEV_DM_PAGES)
		return VHCA_CMD_NO_RESOURCE;
	bitmap_set(dev->dm.used, at, npages);
	dev->dm.piece[at].npages = npages;
	memset(vdev_dm_at(dev, VDEV_DM_PAGE + at), 0, (size_t)npages * VHCA_PAGE_SIZE);
	done->number = cpu_to_be32(VDEV_DM_PAGE + at);
	return VHCA_CMD_OK;
}

u8 vdev_free_dm(struct vdev *dev, const struct vhca_cmd *cmd,
		struct vhca_cmd_done *done)
{
	u32 page = be32_to_cpu(cmd->object.number);
	struct vdev_dm_piece *piece = dm_find(dev, page);

	if (!piece)
		return VHCA_CMD_BAD_OBJECT;
	if (piece->users)
		return VHCA_CMD_BUSY;
	bitmap_clear(dev->dm.used, page - VDEV_DM_PAGE, piece->npages);
	piece->npages = 0;
	return VHCA_CMD_OK;
}

void vdev_forget_dm(struct vdev *dev)
{
	memset(&dev->dm, 0, sizeof(dev->dm));
}

u8 vdev_dm_get(struct vdev *dev, u64 page, u64 offset, u64 length)
{
	struct vdev_dm_piece *piece = dm_find(dev, page);
	u64 size;

	if (!piece)
		return VHCA_CMD_BAD_OBJECT;
	size = (u64)piece->npages * VHCA_PAGE_SIZE;
	if (offset > size || length > size - offset)
		return VHCA_CMD_BAD_PARAM;
	piece->users++;
	return VHCA_CMD_OK;
}

void vdev_dm_put(struct vdev *dev, u32 page)
{
	dm_find(dev, page)->users--;
}
