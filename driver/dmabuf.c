// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of another device, which it shares as a dma-buf. The attachment is a static
 * one: the exporter leaves the memory where it is while a region is of it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "vhca.h"

VHCA_IMPORT_NS_DMA_BUF;

static enum dma_data_direction vhca_dmabuf_dir(const struct vhca_mem *mem)
{
	return mem->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static int vhca_dmabuf_map(struct vhca_mem *mem)
{
	struct sg_table *sgt;

	sgt = dma_buf_map_attachment_unlocked(mem->attach, vhca_dmabuf_dir(mem));
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	mem->attach_sgt = sgt;
	return 0;
}

/**
 * vhca_dmabuf_attach() - memory that is a part of a dma-buf, mapped for DMA
 * @vdev: the device, held by the caller.
 * @mem: to fill in; on failure vhca_dmabuf_detach() is still due.
 * @fd: the dma-buf.
 * @offset: of the first byte.
 * @length: bytes, at least 1. The end must not wrap.
 */
int vhca_dmabuf_attach(struct vhca_dev *vdev, struct vhca_mem *mem, int fd, u64 offset,
		       u64 length)
{
	struct dma_buf_attachment *attach;
	struct dma_buf *dmabuf;

	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	attach = offset + length > dmabuf->size ? ERR_PTR(-EINVAL) :
		 dma_buf_attach(dmabuf, &vdev->pdev->dev);
	if (IS_ERR(attach)) {
		dma_buf_put(dmabuf);
		return PTR_ERR(attach);
	}
	mem->attach = attach;
	/* As with mmap(): who may not write to the file may not by the device. */
	mem->writable = dmabuf->file->f_mode & FMODE_WRITE;
	mem->first = offset >> PAGE_SHIFT;
	mem->npages = DIV_ROUND_UP(offset_in_page(offset) + length, PAGE_SIZE);
	return vhca_dmabuf_map(mem);
}

/** vhca_dmabuf_detach() - the other way, as far as it went */
void vhca_dmabuf_detach(struct vhca_mem *mem)
{
	struct dma_buf *dmabuf;

	if (!mem->attach)
		return;
	dmabuf = mem->attach->dmabuf;
	if (mem->attach_sgt)
		dma_buf_unmap_attachment_unlocked(mem->attach, mem->attach_sgt,
						  vhca_dmabuf_dir(mem));
	dma_buf_detach(dmabuf, mem->attach);
	dma_buf_put(dmabuf);
}

/*
 * vhca_dmabuf_plist() - the list of its pages
 *
 * Only the addresses count: the exporter need not have given pages. The device says
 * whether it can reach them.
 */
int vhca_dmabuf_plist(struct vhca_dev *vdev, struct vhca_mem *mem, struct vhca_plist *pl)
{
	unsigned long at = 0, end = mem->first + mem->npages;
	struct scatterlist *sg;
	dma_addr_t dma;
	int i, ret;

	ret = vhca_plist_alloc(vdev, pl, mem->npages);
	if (ret)
		return ret;
	for_each_sgtable_dma_sg(mem->attach_sgt, sg, i) {
		unsigned long n = sg_dma_len(sg) >> PAGE_SHIFT;

		if (offset_in_page(sg_dma_address(sg) | sg_dma_len(sg)))
			break;
		for (dma = sg_dma_address(sg); n && at < end; n--, at++) {
			if (at >= mem->first)
				vhca_plist_set(pl, at - mem->first, dma);
			dma += PAGE_SIZE;
		}
	}
	if (at == end)
		return 0;
	vhca_plist_free(vdev, pl);
	return -EINVAL;
}
