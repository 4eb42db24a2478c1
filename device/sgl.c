// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scatter/gather lists, walked by position, and the copy from one to
 * another: straight from the pages of the one to the pages of the other.
 *
 * The segments are the device's own copy, so they do not change; the regions
 * that they name may go away between two read sections of vdev_srcu, so a key is
 * looked up in each anew.
 */
#include <linux/minmax.h>
#include <linux/string.h>

#include "vdev.h"

void vdev_sgl_seek(struct vdev_sgl *sgl, u64 offset)
{
	sgl->cur = 0;
	sgl->mkey = NULL;
	if (sgl->seg)
		while (offset && offset > vdev_seg_len(&sgl->seg[sgl->cur]))
			offset -= vdev_seg_len(&sgl->seg[sgl->cur++]);
	sgl->off = offset;
}

/* The region of a segment. */
static struct vdev_mkey *sgl_region(struct vdev_sgl *sgl, const struct vhca_wqe_data *seg)
{
	return vdev_mkey_get(sgl->dev, sgl->memo, be32_to_cpu(seg->lkey), sgl->pd,
			     sgl->access, be64_to_cpu(seg->addr), vdev_seg_len(seg), &sgl->verr);
}

bool vdev_sgl_check(struct vdev_sgl *sgl)
{
	struct vdev_mkey *mkey, *first = NULL;
	unsigned int i;

	for (i = 0; i < sgl->nsegs; i++) {
		const struct vhca_wqe_data *seg = &sgl->seg[i];

		if (!vdev_seg_len(seg))
			continue;
		mkey = sgl_region(sgl, seg);
		if (!mkey)
			return false;
		if (!i)
			first = mkey;
	}
	/* Where the copy will begin. */
	sgl->mkey = first;
	return true;
}

/*
 * The memory at the position, NULL where none is behind it; *@len is cut to what
 * lies in one piece. Returns false when the key is at fault.
 */
static __always_inline bool sgl_at(struct vdev_sgl *sgl, void **at, u32 *len)
{
	const struct vhca_wqe_data *seg;

	if (sgl->inl) {
		*at = (void *)sgl->inl + sgl->off;
		return true;
	}
	if (!sgl->seg) {
		*at = vdev_mkey_at(sgl->mkey, sgl->raddr + sgl->off, len);
		return true;
	}
	seg = &sgl->seg[sgl->cur];
	while (sgl->off == vdev_seg_len(seg)) {
		seg = &sgl->seg[++sgl->cur];
		sgl->off = 0;
		sgl->mkey = NULL;
	}
	if (!sgl->mkey)
		sgl->mkey = sgl_region(sgl, seg);
	if (!sgl->mkey)
		return false;
	*len = min(*len, vdev_seg_len(seg) - sgl->off);
	*at = vdev_mkey_at(sgl->mkey, be64_to_cpu(seg->addr) + sgl->off, len);
	return true;
}

/*
 * What is written to a null MR is lost, what is read from it is zeroes. Users may map
 * one page twice, so source and target can overlap; memmove() allows for it, and is
 * the slower one.
 */
static void move(void *to, const void *from, u32 len)
{
	if (!to)
		return;
	if (!from)
		memset(to, 0, len);
	else if (to < from + len && from < to + len)
		memmove(to, from, len);
	else
		memcpy(to, from, len);
}

struct vdev_sgl *vdev_sgl_copy(struct vdev *dev, struct vdev_sgl *dst, struct vdev_sgl *src,
			       u32 len)
{
	struct vdev_sgl *bad = NULL;
	u32 left = len;

	while (left) {
		u32 n = left;
		void *from, *to;

		if (!sgl_at(src, &from, &n))
			bad = src;
		else if (!sgl_at(dst, &to, &n))
			bad = dst;
		if (bad)
			break;
		move(to, from, n);
		src->off += n;
		dst->off += n;
		left -= n;
	}
	vdev_count_by(dev, VDEV_COPIED, len - left);
	return bad;
}
