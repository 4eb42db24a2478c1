// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions and their keys.
 *
 * A key is an index and a variant of 8 bits that changes with each use of the
 * index, so that a key which was given back is told from its successor. Memory
 * windows are MKeys, too, and share the look-up; see mw.c.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "vdev.h"

/* A field that a kind has no use for must be zero. */
static u8 mkey_check(const struct vhca_cmd_create_mkey *in)
{
	u64 iova = be64_to_cpu(in->iova);
	u64 length = be64_to_cpu(in->length);
	u32 kind = be32_to_cpu(in->kind);

	if (length > VDEV_MAX_MR_SIZE || iova + length < iova || in->rsvd)
		return VHCA_CMD_BAD_PARAM;
	if (be32_to_cpu(in->access) & ~(VHCA_MKEY_ACCESS | VHCA_MKEY_VIRTUAL))
		return VHCA_CMD_BAD_PARAM;
	switch (kind) {
	case VHCA_MKEY_PAGES:
		if (be32_to_cpu(in->offset) >= VHCA_PAGE_SIZE ||
		    (!length && (in->pages || in->offset)))
			return VHCA_CMD_BAD_PARAM;
		return VHCA_CMD_OK;
	case VHCA_MKEY_DM:
		return VHCA_CMD_OK;
	case VHCA_MKEY_NULL:
	case VHCA_MKEY_MW1:
	case VHCA_MKEY_MW2:
		if (iova || length || in->access || in->pages || in->offset)
			return VHCA_CMD_BAD_PARAM;
		if (in->key && kind != VHCA_MKEY_NULL)
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

/* Say of each page how many follow it, so that a copy takes them as one piece. */
static void mkey_join(unsigned long *pages, unsigned int npages)
{
	unsigned int i;

	for (i = npages; i-- > 1; )
		if ((pages[i] & PAGE_MASK) == pages[i - 1] + PAGE_SIZE)
			pages[i - 1] |= min((pages[i] & ~PAGE_MASK) + 1, ~PAGE_MASK);
}

/* Find what is behind the region. */
static u8 mkey_find_pages(struct vdev *dev, struct vdev_mkey *mkey,
			  const struct vhca_cmd_create_mkey *in, unsigned int npages)
{
	u64 pages = be64_to_cpu(in->pages);
	u32 offset = be32_to_cpu(in->offset);
	unsigned int i;
	u8 status;

	mkey->offset = offset_in_page(offset);
	if (mkey->kind != VHCA_MKEY_DM)
		return vdev_read_pages(pages, npages, mkey->pages);
	status = vdev_dm_get(dev, pages, offset, mkey->length);
	if (status)
		return status;
	mkey->dm = pages;
	for (i = 0; i < npages; i++)
		mkey->pages[i] = (unsigned long)vdev_dm_at(dev, mkey->dm + i +
							   offset / VHCA_PAGE_SIZE);
	return VHCA_CMD_OK;
}

static u8 mkey_fill(struct vdev *dev, struct vdev_mkey *mkey,
		    const struct vhca_cmd_create_mkey *in, unsigned int npages)
{
	u8 status = mkey_find_pages(dev, mkey, in, npages);

	mkey_join(mkey->pages, status ? 0 : npages);
	mkey->page = mkey->pages;
	return status;
}

/* The other way; nobody uses it any more. */
static void mkey_free(struct vdev *dev, struct vdev_mkey *mkey)
{
	if (vdev_mkey_is_window(mkey))
		vdev_mw_free(mkey);
	if (mkey->kind == VHCA_MKEY_DM)
		vdev_dm_put(dev, mkey->dm);
	kvfree(mkey);
}

static struct vdev_mkey *mkey_alloc(struct vdev *dev, const struct vhca_cmd_create_mkey *in,
				    u8 *status)
{
	unsigned int npages = mkey_npages(in);
	struct vdev_mkey *mkey;

	mkey = kvzalloc(struct_size(mkey, pages, npages), VDEV_GFP_SIZED);
	if (!mkey) {
		*status = VHCA_CMD_NO_MEMORY;
		return NULL;
	}
	mkey->kind = be32_to_cpu(in->kind);
	mkey->pd = be32_to_cpu(in->pd);
	mkey->access = be32_to_cpu(in->access);
	mkey->iova = be64_to_cpu(in->iova);
	mkey->length = be64_to_cpu(in->length);
	init_rwsem(&mkey->lock);
	if (mkey->kind == VHCA_MKEY_NULL)
		mkey->access = VHCA_MKEY_LOCAL_WRITE;
	*status = mkey_fill(dev, mkey, in, npages);
	if (*status) {
		kvfree(mkey);
		return NULL;
	}
	return mkey;
}

/* Make the region visible under a new key. */
static u8 mkey_publish(struct vdev *dev, struct vdev_mkey *mkey)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&dev->mkeys, &index, NULL,
			      XA_LIMIT(2, VDEV_MAX_MKEY + 1), &dev->next_mkey,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
	/* A lap of the indices takes a whole number of laps of the variant. */
	dev->mkey_variant += 1 + err;
	mkey->key = index << 8 | dev->mkey_variant;
	xa_store(&dev->mkeys, index, mkey, GFP_KERNEL);	/* replaces: no allocation */
	return VHCA_CMD_OK;
}

/* The MKey that a command names. The variant of a window is not the driver's to know. */
static struct vdev_mkey *mkey_find(struct vdev *dev, u32 key)
{
	struct vdev_mkey *mkey = xa_load(&dev->mkeys, key >> 8);

	if (mkey && !vdev_mkey_is_window(mkey) && mkey->key != key)
		return NULL;
	return mkey;
}

/* What is no longer in the table. The driver gives the pages back when it has the answer. */
static void mkey_retire(struct vdev *dev, struct vdev_mkey *mkey)
{
	vdev_wait_unused();
	vdev_pd_put(dev, mkey->pd);
	mkey_free(dev, mkey);
}

/* Make the region visible in the place of another: under that key is one or the other. */
static u8 mkey_replace(struct vdev *dev, struct vdev_mkey *mkey, u32 key)
{
	struct vdev_mkey *old = mkey_find(dev, key);

	if (!old || vdev_mkey_is_window(old))
		return VHCA_CMD_BAD_OBJECT;
	if (!vdev_mr_kill(old))
		return VHCA_CMD_BUSY;
	mkey->key = key;
	xa_store(&dev->mkeys, key >> 8, mkey, GFP_KERNEL);	/* no allocation */
	mkey_retire(dev, old);
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
	mkey = mkey_alloc(dev, in, &status);
	if (!mkey)
		return status;
	status = vdev_pd_get(dev, mkey->pd);
	if (status)
		goto err_free;
	if (in->key)
		status = mkey_replace(dev, mkey, be32_to_cpu(in->key));
	else
		status = mkey_publish(dev, mkey);
	if (status)
		goto err_pd;
	done->number = cpu_to_be32(mkey->key);
	return VHCA_CMD_OK;

err_pd:
	vdev_pd_put(dev, mkey->pd);
err_free:
	mkey_free(dev, mkey);
	return status;
}

u8 vdev_destroy_mkey(struct vdev *dev, const struct vhca_cmd *cmd,
		     struct vhca_cmd_done *done)
{
	u32 key = be32_to_cpu(cmd->object.number);
	struct vdev_mkey *mkey = mkey_find(dev, key);

	if (!mkey)
		return VHCA_CMD_BAD_OBJECT;
	if (!vdev_mkey_is_window(mkey) && !vdev_mr_kill(mkey))
		return VHCA_CMD_BUSY;
	xa_erase(&dev->mkeys, key >> 8);
	mkey_retire(dev, mkey);
	return VHCA_CMD_OK;
}

void vdev_forget_mkeys(struct vdev *dev)
{
	struct vdev_mkey *mkey;
	unsigned long index;

	/* No QP is left that could use one; nor does one use another any more. */
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

/* Why a key gives no such access, or VHCA_VERR_NONE. */
static u8 mkey_verdict(const struct vdev_mkey *mkey, u32 key, u32 pd, u32 access,
		       u64 addr, u64 len)
{
	if (mkey->key != key)
		return VHCA_VERR_KEY;
	if (mkey->pd != pd)
		return VHCA_VERR_KEY_PD;
	if (access & ~mkey->access)
		return VHCA_VERR_KEY_ACCESS;
	return mkey_holds(mkey, addr, len) ? VHCA_VERR_NONE : VHCA_VERR_KEY_BOUNDS;
}

struct vdev_mkey *vdev_mkey_get(struct vdev *dev, struct vdev_memo *memo, u32 key, u32 pd,
				u32 access, u64 addr, u64 len, u8 *verr)
{
	struct vdev_mkey *mkey = vdev_recall(memo, &dev->mkeys, key >> 8);

	if (!mkey)
		*verr = VHCA_VERR_KEY;
	else if (vdev_mkey_is_window(mkey))
		*verr = VHCA_VERR_KEY_KIND;
	else
		*verr = mkey_verdict(mkey, key, pd, access, addr, len);
	return *verr ? NULL : mkey;
}

struct vdev_mkey *vdev_mkey_enter(struct vdev_qp *qp, u32 rkey, u32 access, u64 addr,
				  u64 len)
{
	struct vdev_mkey *mkey = vdev_recall(&qp->recv.rkeys, &qp->dev->mkeys, rkey >> 8);
	bool window = mkey && vdev_mkey_is_window(mkey);

	if (!mkey)
		return NULL;
	if (window)
		down_read(&mkey->lock);
	if ((!window || vdev_mw_reachable(mkey, qp)) &&
	    !mkey_verdict(mkey, rkey, qp->recv.pd, access, addr, len))
		return mkey;
	vdev_mkey_leave(mkey);
	return NULL;
}

void vdev_mkey_leave(struct vdev_mkey *mkey)
{
	if (vdev_mkey_is_window(mkey))
		up_read(&mkey->lock);
}
