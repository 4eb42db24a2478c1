// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory behind a region: pages of the user that are pinned for as long as
 * the region lasts, a part of a dma-buf, or of the device's own memory.
 *
 * Pinning is done without locks; mapping for DMA is using the device, see
 * vhca_dead().
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "vhca.h"

#define VHCA_PIN_PAGES	(PAGE_SIZE / sizeof(struct page *))

static enum dma_data_direction vhca_mem_dir(const struct vhca_mem *mem)
{
	return mem->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/**
 * vhca_mem_free() - undo what was done to get it, as far as that went
 * @vdev: the device, which does not access it any more. Unless it is pinned and not
 *	mapped yet, the caller holds the device and the context's lock.
 * @mem: the memory, or NULL.
 */
void vhca_mem_free(struct vhca_dev *vdev, struct vhca_mem *mem)
{
	struct scatterlist *sg;
	struct sg_table *sgt;
	unsigned int i;

	if (!mem)
		return;
	sgt = &mem->sgt.sgt;
	if (mem->mapped)
		dma_unmap_sgtable(&vdev->pdev->dev, sgt, vhca_mem_dir(mem), 0);
	for_each_sgtable_sg(sgt, sg, i)
		unpin_user_page_range_dirty_lock(sg_page(sg),
						 sg->length >> PAGE_SHIFT,
						 mem->writable);
	sg_free_append_table(&mem->sgt);
	vhca_pin_uncharge(&mem->charge);
	vhca_dmabuf_detach(mem);
	if (mem->dm)
		mem->dm->users--;
	kfree(mem);
}

static int vhca_mem_pin_all(struct vhca_mem *mem, unsigned long addr)
{
	unsigned long left = mem->npages;
	struct page **pages;
	int n, ret = 0;

	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	while (left && !ret) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		n = vhca_pin(addr, min(left, VHCA_PIN_PAGES), mem->writable, pages);
		if (n < 0) {
			ret = n;
			break;
		}
		left -= n;
		addr += (unsigned long)n << PAGE_SHIFT;
		ret = sg_alloc_append_table_from_pages(&mem->sgt, pages, n, 0,
						       (unsigned long)n << PAGE_SHIFT,
						       UINT_MAX, left, VHCA_GFP_SIZED);
		if (ret)
			unpin_user_pages(pages, n);
		cond_resched();
	}
	free_page((unsigned long)pages);
	return ret;
}

/**
 * vhca_mem_pin() - pin and charge memory of the calling process
 * @vdev: the device that it is for.
 * @addr: first byte; need not begin a page.
 * @length: bytes; none have no pages, wherever they are. The end must not wrap.
 * @writable: the device is going to write.
 *
 * No locks may be held. Return: the memory, or an error pointer.
 */
struct vhca_mem *vhca_mem_pin(struct vhca_dev *vdev, u64 addr, u64 length,
			      bool writable)
{
	struct vhca_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->writable = writable;
	if (length)
		mem->npages = DIV_ROUND_UP(offset_in_page(addr) + length, PAGE_SIZE);
	ret = vhca_pin_charge(&mem->charge, mem->npages);
	if (!ret)
		ret = vhca_mem_pin_all(mem, addr & PAGE_MASK);
	if (!ret)
		return mem;
	vhca_mem_free(vdev, mem);
	return ERR_PTR(ret);
}

/* A part of a dma-buf, as vhca_dmabuf_attach(). */
struct vhca_mem *vhca_mem_dmabuf(struct vhca_dev *vdev, int fd, u64 offset,
				 u64 length)
{
	struct vhca_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	ret = vhca_dmabuf_attach(vdev, mem, fd, offset, length);
	if (!ret)
		return mem;
	vhca_mem_free(vdev, mem);
	return ERR_PTR(ret);
}

/** vhca_mem_dm() - device memory; it counts as used. Return: or an error pointer */
struct vhca_mem *vhca_mem_dm(struct vhca_dm *dm)
{
	struct vhca_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);

	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->writable = true;
	mem->dm = dm;
	dm->users++;
	return mem;
}

/**
 * vhca_mem_plist() - the list of its pages, mapped for DMA
 * @vdev: the device, held by the caller.
 * @mem: the memory.
 * @pl: to fill in; on failure there is nothing to free.
 */
int vhca_mem_plist(struct vhca_dev *vdev, struct vhca_mem *mem, struct vhca_plist *pl)
{
	struct sg_table *sgt = &mem->sgt.sgt;
	struct sg_dma_page_iter iter;
	unsigned long i = 0;
	int ret = 0;

	if (mem->attach)
		return vhca_dmabuf_plist(vdev, mem, pl);
	if (!mem->mapped)
		ret = dma_map_sgtable(&vdev->pdev->dev, sgt, vhca_mem_dir(mem), 0);
	if (ret)
		return ret;
	mem->mapped = true;
	ret = vhca_plist_alloc(vdev, pl, mem->npages);
	if (ret)
		return ret;
	for_each_sgtable_dma_page(sgt, &iter, 0)
		vhca_plist_set(pl, i++, sg_page_iter_dma_address(&iter));
	return 0;
}
