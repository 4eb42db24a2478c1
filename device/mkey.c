// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions and their keys.
 *
 * A key is an index and a variant of 8 bits that changes with each use of the
 * index, so that a key which was given back is told from its successor.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "vdev.h"

/* A field that a kind has no use for must be zero. */
static u8 mkey_check(const struct vhca_cmd_create_mkey *in)
{
	u64 iova = be64_to_cpu(in->iova);
	u64 length = be64_to_cpu(in->length);

	if (length > VDEV_MAX_MR_SIZE || iova + length < iova)
		return VHCA_CMD_BAD_PARAM;
	if (be32_to_cpu(in->access) & ~(VHCA_MKEY_ACCESS | VHCA_MKEY_VIRTUAL))
		return VHCA_CMD_BAD_PARAM;
	switch (be32_to_cpu(in->kind)) {
	case VHCA_MKEY_PAGES:
		if (be32_to_cpu(in->offset) >= VHCA_PAGE_SIZE ||
		    (!length && (in->pages || in->offset)))
			return VHCA_CMD_BAD_PARAM;
		return VHCA_CMD_OK;
	case VHCA_MKEY_NULL:
		if (iova || length || in->access || in->pages || in->offset)
			return VHCA_CMD_BAD_PARAM;
		return VHCA_CMD_OK;
	default:
		return VHCA_CMD_BAD_PARAM;
	}
}

static unsigned int mkey_npages(const struct vhca_cmd_create_mkey *in)
{
	u64 length = be64_to_cpu(in->length);

	if (!length)
		return 0;
	return DIV_ROUND_UP(offset_in_page(be32_to_cpu(in->offset)) + length,
			    VHCA_PAGE_SIZE);
}

static struct vdev_mkey *mkey_alloc(const struct vhca_cmd_create_mkey *in, u8 *status)
{
	unsigned int npages = mkey_npages(in);
	struct vdev_mkey *mkey;

	mkey = kvzalloc(struct_size(mkey, pages, npages), GFP_KERNEL);
	if (!mkey) {
		*status = VHCA_CMD_NO_MEMORY;
		return NULL;
	}
	*status = vdev_read_pages(be64_to_cpu(in->pages), npages, mkey->pages);
	if (*status) {
		kvfree(mkey);
		return NULL;
	}
	mkey->kind = be32_to_cpu(in->kind);
	mkey->pd = be32_to_cpu(in->pd);
	mkey->access = be32_to_cpu(in->access);
	mkey->iova = be64_to_cpu(in->iova);
	mkey->length = be64_to_cpu(in->length);
	mkey->offset = offset_in_page(be32_to_cpu(in->offset));
	if (mkey->kind == VHCA_MKEY_NULL)
		mkey->access = VHCA_MKEY_LOCAL_WRITE;
	return mkey;
}

/* Make the region visible under a new key. */
static u8 mkey_publish(struct vdev *dev, struct vdev_mkey *mkey)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&dev->mkeys, &index, NULL,
			      XA_LIMIT(2, VDEV_MAX_MKEY + 1), &dev->next_mkey,
			      GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
	/* A lap of the indices takes a whole number of laps of the variant. */
	dev->mkey_variant += 1 + err;
	mkey->key = index << 8 | dev->mkey_variant;
	xa_store(&dev->mkeys, index, mkey, GFP_KERNEL);	/* replaces: no allocation */
	return VHCA_CMD_OK;
}

u8 vdev_create_mkey(struct vdev *dev, const struct vhca_cmd *cmd,
		    struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_mkey *in = &cmd->create_mkey;
	struct vdev_mkey *mkey;
	u8 status;

	status = mkey_check(in);
	if (status)
		return status;
	mkey = mkey_alloc(in, &status);
	if (!mkey)
		return status;
	status = vdev_pd_get(dev, mkey->pd);
	if (status)
		goto err_free;
	status = mkey_publish(dev, mkey);
	if (status)
		goto err_pd;
	done->number = cpu_to_be32(mkey->key);
	return VHCA_CMD_OK;

err_pd:
	vdev_pd_put(dev, mkey->pd);
err_free:
	kvfree(mkey);
	return status;
}

u8 vdev_destroy_mkey(struct vdev *dev, const struct vhca_cmd *cmd,
		     struct vhca_cmd_done *done)
{
	u32 key = be32_to_cpu(cmd->object.number);
	struct vdev_mkey *mkey = xa_load(&dev->mkeys, key >> 8);

	if (!mkey || mkey->key != key)
		return VHCA_CMD_BAD_OBJECT;
	xa_erase(&dev->mkeys, key >> 8);
	/* The driver gives the pages back when it has the answer. */
	synchronize_srcu_expedited(&vdev_srcu);
	vdev_pd_put(dev, mkey->pd);
	kvfree(mkey);
	return VHCA_CMD_OK;
}

void vdev_forget_mkeys(struct vdev *dev)
{
	struct vdev_mkey *mkey;
	unsigned long index;

	/* No QP is left that could use one. */
	xa_for_each(&dev->mkeys, index, mkey) {
		xa_erase(&dev->mkeys, index);
		kvfree(mkey);
	}
}

/* Anything lies in a null MR. */
static bool mkey_holds(const struct vdev_mkey *mkey, u64 addr, u64 len)
{
	if (mkey->kind == VHCA_MKEY_NULL)
		return true;
	return addr >= mkey->iova && len <= mkey->length &&
	       addr - mkey->iova <= mkey->length - len;
}

struct vdev_mkey *vdev_mkey_get(struct vdev *dev, u32 key, u32 pd, u32 access,
				u64 addr, u64 len, u8 *verr)
{
	struct vdev_mkey *mkey = xa_load(&dev->mkeys, key >> 8);

	if (!mkey || mkey->key != key)
		*verr = VHCA_VERR_KEY;
	else if (mkey->pd != pd)
		*verr = VHCA_VERR_KEY_PD;
	else if (access & ~mkey->access)
		*verr = VHCA_VERR_KEY_ACCESS;
	else if (!mkey_holds(mkey, addr, len))
		*verr = VHCA_VERR_KEY_BOUNDS;
	else
		return mkey;
	return NULL;
}

void *vdev_mkey_at(const struct vdev_mkey *mkey, u64 addr, u32 *len)
{
	u64 at = mkey->offset + (addr - mkey->iova);

	if (mkey->kind == VHCA_MKEY_NULL)
		return NULL;
	*len = min_t(u32, *len, VHCA_PAGE_SIZE - offset_in_page(at));
	return page_address(mkey->pages[at >> VHCA_PAGE_SHIFT]) + offset_in_page(at);
}
