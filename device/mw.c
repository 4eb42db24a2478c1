// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows: MKeys that a work request binds to a part of an MR and to a new
 * key, without the driver.
 *
 * What a bind changes is under the window's lock, a semaphore that every access
 * through the window holds for reading while it lasts. So a bind or an invalidation
 * is done when no access by the old key is under way: who sees it completed may use
 * the memory for something else. That is why the state is not merely published: an
 * access that has seen the old one would go on behind the completion.
 *
 * A bound window counts in its MR, which cannot be destroyed meanwhile. Windows and
 * MRs are freed a grace period of vdev_srcu after they left the table, so that who
 * has looked one up may lock it or count in it.
 */
#include "vdev.h"

#define MW_RIGHTS	(VHCA_MKEY_REMOTE_WRITE | VHCA_MKEY_REMOTE_READ | \
			 VHCA_MKEY_REMOTE_ATOMIC)
#define MW_ACCESS	(MW_RIGHTS | VHCA_ACCESS_ZERO_BASED)

/* Rights that need local write of the MR. */
#define MW_WRITES	(VHCA_MKEY_REMOTE_WRITE | VHCA_MKEY_REMOTE_ATOMIC)

/*
 * What a window of type 2 belongs to while it is bound. With XRC one QP sends and
 * another one receives, and which ones is not fixed: all of a PD share.
 */
static u64 mw_owner(const struct vdev_qp *qp)
{
	return qp->type < VHCA_PRM_QPT_XRC_SEND ? qp->serial : 0;
}

bool vdev_mw_reachable(const struct vdev_mkey *mw, const struct vdev_qp *qp)
{
	return mw->mr && (mw->kind == VHCA_MKEY_MW1 || mw->owner == mw_owner(qp));
}

/* Count in an MR, unless it is about to go. */
static bool mr_get(struct vdev_mkey *mr)
{
	return atomic_inc_unless_negative(&mr->windows);
}

static void mr_put(struct vdev_mkey *mr)
{
	if (mr)
		atomic_dec(&mr->windows);
}

bool vdev_mr_kill(struct vdev_mkey *mr)
{
	return !atomic_cmpxchg(&mr->windows, 0, -1);
}

void vdev_mw_free(struct vdev_mkey *mw)
{
	mr_put(mw->mr);
}

/* The window that a bind names; why not is in *@verr. The variant does not matter. */
static struct vdev_mkey *mw_find(struct vdev_qp *qp, u32 rkey, u8 *verr)
{
	struct vdev_mkey *mw = xa_load(&qp->dev->mkeys, rkey >> 8);

	if (!mw)
		*verr = VHCA_VERR_KEY;
	else if (!vdev_mkey_is_window(mw))
		*verr = VHCA_VERR_KEY_KIND;
	else if (mw->pd != qp->pd)
		*verr = VHCA_VERR_KEY_PD;
	else
		return mw;
	return NULL;
}

/* The MR that a bind names, counted in. */
static struct vdev_mkey *bind_mr(struct vdev_qp *qp, const struct vdev_bind *bind, u8 *verr)
{
	u32 need = VHCA_MKEY_MW_BIND;
	struct vdev_mkey *mr;

	if (bind->access & MW_WRITES)
		need |= VHCA_MKEY_LOCAL_WRITE;
	mr = vdev_mkey_get(qp->dev, &qp->send.lkeys, bind->lkey, qp->pd, need, bind->addr,
			   bind->length, verr);
	if (mr && !mr_get(mr)) {
		*verr = VHCA_VERR_KEY;
		mr = NULL;
	}
	return mr;
}

/* Give the window its new state; returns the MR that it is no longer bound to. */
static struct vdev_mkey *mw_set(struct vdev_mkey *mw, const struct vdev_qp *qp,
				const struct vdev_bind *bind, struct vdev_mkey *mr)
{
	struct vdev_mkey *old = mw->mr;

	mw->key = bind->new_rkey;
	mw->mr = mr;
	if (!mr)
		return old;
	mw->owner = mw_owner(qp);
	mw->access = bind->access & MW_RIGHTS;
	mw->iova = bind->access & VHCA_ACCESS_ZERO_BASED ? 0 : bind->addr;
	mw->length = bind->length;
	mw->offset = mr->offset + (bind->addr - mr->iova);
	mw->page = mr->page;
	return old;
}

u8 vdev_mw_bind(struct vdev_qp *qp, const struct vdev_bind *bind)
{
	struct vdev_mkey *mw, *mr = NULL;
	u8 verr = VHCA_VERR_NONE;

	mw = mw_find(qp, bind->rkey, &verr);
	if (!mw)
		return verr;
	if ((bind->rkey ^ bind->new_rkey) >> 8)
		return VHCA_VERR_KEY;
	if (bind->access & ~MW_ACCESS)
		return VHCA_VERR_KEY_ACCESS;
	if (!bind->length && mw->kind == VHCA_MKEY_MW2)
		return VHCA_VERR_KEY_BOUNDS;
	if (bind->length) {
		mr = bind_mr(qp, bind, &verr);
		if (!mr)
			return verr;
	}
	down_write(&mw->lock);
	if (mw->kind == VHCA_MKEY_MW2 && mw->mr)
		verr = VHCA_VERR_KEY_KIND;
	else
		mr = mw_set(mw, qp, bind, mr);
	up_write(&mw->lock);
	/* The one that it was bound to, or the one that it is not bound to after all. */
	mr_put(mr);
	return verr;
}

u8 vdev_mw_invalidate(struct vdev_qp *qp, u32 pd, u32 rkey)
{
	struct vdev_mkey *mw = xa_load(&qp->dev->mkeys, rkey >> 8);
	struct vdev_mkey *mr = NULL;
	u8 verr = VHCA_VERR_NONE;

	if (!mw)
		return VHCA_VERR_KEY;
	if (mw->kind != VHCA_MKEY_MW2)
		return VHCA_VERR_KEY_KIND;
	down_write(&mw->lock);
	if (!mw->mr || mw->key != rkey)
		verr = VHCA_VERR_KEY;
	else if (mw->pd != pd)
		verr = VHCA_VERR_KEY_PD;
	else if (!vdev_mw_reachable(mw, qp))
		verr = VHCA_VERR_KEY_ACCESS;
	else
		swap(mw->mr, mr);
	up_write(&mw->lock);
	mr_put(mr);
	return verr;
}
