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

static u32 seg_len(const struct vhca_wqe_data *seg)
{
	return be32_to_cpu(seg->byte_count);
}

bool vdev_sgl_init(struct vdev_sgl *sgl, struct vdev *dev, u32 pd, u32 access,
		   const struct vhca_wqe_data *seg, unsigned int nsegs)
{
	unsigned int i;

	*sgl = (struct vdev_sgl){ .dev = dev, .pd = pd, .access = access, .seg = seg };
	for (i = 0; i < nsegs; i++) {
		u32 len = seg_len(&seg[i]);

		if (!len && seg[i].lkey == cpu_to_be32(VHCA_INVALID_LKEY))
			break;
		if (len & VHCA_WQE_INLINE)
			return false;
		sgl->length += len;
	}
	sgl->nsegs = i;
	return true;
}

void vdev_sgl_seek(struct vdev_sgl *sgl, u64 offset)
{
	sgl->cur = 0;
	sgl->mkey = NULL;
	if (sgl->seg)
		while (offset && offset > seg_len(&sgl->seg[sgl->cur]))
			offset -= seg_len(&sgl->seg[sgl->cur++]);
	sgl->off = offset;
}

/* Look up the region of the segment at the position. */
static bool sgl_lookup(struct vdev_sgl *sgl)
{
	const struct vhca_wqe_data *seg = &sgl->seg[sgl->cur];

	sgl->mkey = vdev_mkey_get(sgl->dev, be32_to_cpu(seg->lkey), sgl->pd,
				  sgl->access, be64_to_cpu(seg->addr),
				  seg_len(seg), &sgl->verr);
	return sgl->mkey;
}

bool vdev_sgl_check(struct vdev_sgl *sgl)
{
	unsigned int i;

	if (sgl->inl)
		return true;
	for (i = 0; i < sgl->nsegs; i++) {
		const struct vhca_wqe_data *seg = &sgl->seg[i];

		if (seg_len(seg) &&
		    !vdev_mkey_get(sgl->dev, be32_to_cpu(seg->lkey), sgl->pd,
				   sgl->access, be64_to_cpu(seg->addr),
				   seg_len(seg), &sgl->verr))
			return false;
	}
	return true;
}

/*
 * The memory at the position, NULL where none is behind it; *@len is cut to what
 * lies in one piece. Returns false when the key is at fault.
 */
static bool sgl_at(struct vdev_sgl *sgl, void **at, u32 *len)
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
	while (sgl->off == seg_len(seg)) {
		seg = &sgl->seg[++sgl->cur];
		sgl->off = 0;
		sgl->mkey = NULL;
	}
	if (!sgl->mkey && !sgl_lookup(sgl))
		return false;
	*len = min(*len, seg_len(seg) - sgl->off);
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
	/* Positions may come from an earlier read section. */
	if (dst->seg)
		dst->mkey = NULL;
	if (src->seg)
		src->mkey = NULL;
	while (len) {
		u32 n = len;
		void *from, *to;

		if (!sgl_at(src, &from, &n))
			return src;
		if (!sgl_at(dst, &to, &n))
			return dst;
		move(to, from, n);
		vdev_count_by(dev, VDEV_COPIED, n);
		src->off += n;
		dst->off += n;
		len -= n;
	}
	return NULL;
}
