// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue memory, and the page lists by which a command describes memory.
 *
 * Queue memory is single pages: a ring of any size needs no contiguous memory,
 * and each page lives on by itself while user space has it mapped.
 */
#include <linux/dma-mapping.h>
#include <linux/sched/signal.h>

#include "vhca.h"

static void vhca_buf_free(struct kref *ref)
{
	struct vhca_buf *buf = container_of(ref, struct vhca_buf, ref);
	unsigned long i;

	WARN_ON_ONCE(buf->mapped);
	for (i = 0; i < buf->npages; i++)
		put_page(buf->pages[i]);
	kvfree(buf->pages);
	kvfree(buf->dma);
	kfree(buf);
}

/** vhca_buf_put() - drop a reference; user mappings hold pages on their own */
void vhca_buf_put(struct vhca_buf *buf)
{
	kref_put(&buf->ref, vhca_buf_free);
}

static int vhca_buf_pages(struct vhca_buf *buf, unsigned long npages)
{
	struct page *page;

	for (; buf->npages < npages; buf->npages++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		buf->pages[buf->npages] = page;
		cond_resched();
	}
	return 0;
}

static int vhca_buf_map(struct vhca_dev *vdev, struct vhca_buf *buf)
{
	struct device *dma = &vdev->pdev->dev;
	unsigned long i;

	for (i = 0; i < buf->npages; i++) {
		buf->dma[i] = dma_map_page(dma, buf->pages[i], 0, PAGE_SIZE,
					   DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dma, buf->dma[i]))
			goto err_unmap;
	}
	buf->mapped = true;
	return 0;

err_unmap:
	while (i--)
		dma_unmap_page(dma, buf->dma[i], PAGE_SIZE, DMA_BIDIRECTIONAL);
	return -ENOMEM;
}

/**
 * vhca_buf_alloc() - zeroed pages, mapped for DMA both ways
 * @vdev: the device that will use them.
 * @size: bytes; rounded up to pages.
 *
 * Charged to the caller's memory control group, as user space chose the size.
 *
 * Return: the buffer, to be given back by vhca_buf_unmap() and vhca_buf_put(),
 * or an error pointer.
 */
struct vhca_buf *vhca_buf_alloc(struct vhca_dev *vdev, size_t size)
{
	unsigned long npages = DIV_ROUND_UP(size, PAGE_SIZE);
	struct vhca_buf *buf;
	int ret = -ENOMEM;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	kref_init(&buf->ref);
	buf->pages = kvmalloc_array(npages, sizeof(*buf->pages),
				    GFP_KERNEL_ACCOUNT);
	buf->dma = kvmalloc_array(npages, sizeof(*buf->dma), GFP_KERNEL_ACCOUNT);
	if (buf->pages && buf->dma)
		ret = vhca_buf_pages(buf, npages);
	if (!ret)
		ret = vhca_buf_map(vdev, buf);
	if (ret) {
		vhca_buf_put(buf);
		return ERR_PTR(ret);
	}
	return buf;
}

/** vhca_buf_unmap() - the device does not use it any more; may be repeated */
void vhca_buf_unmap(struct vhca_dev *vdev, struct vhca_buf *buf)
{
	unsigned long i;

	if (!buf->mapped)
		return;
	for (i = 0; i < buf->npages; i++)
		dma_unmap_page(&vdev->pdev->dev, buf->dma[i], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
	buf->mapped = false;
}

/**
 * vhca_plist_alloc() - room for a list of pages
 * @vdev: the device that will read it.
 * @pl: to fill in; on failure there is nothing to free.
 * @npages: pages it will hold.
 */
int vhca_plist_alloc(struct vhca_dev *vdev, struct vhca_plist *pl,
		     unsigned long npages)
{
	unsigned long n = DIV_ROUND_UP(npages, VHCA_PAGE_LIST_ADDRS);
	struct vhca_plist_chunk *c;

	pl->chunks = 0;
	pl->chunk = kvmalloc_array(n, sizeof(*pl->chunk), GFP_KERNEL);
	if (!pl->chunk)
		return -ENOMEM;
	while (pl->chunks < n) {
		c = &pl->chunk[pl->chunks];
		c->list = dma_alloc_coherent(&vdev->pdev->dev, sizeof(*c->list),
					     &c->dma, GFP_KERNEL);
		if (!c->list) {
			vhca_plist_free(vdev, pl);
			return -ENOMEM;
		}
		if (pl->chunks)
			c[-1].list->next = cpu_to_be64(c->dma);
		pl->chunks++;
	}
	return 0;
}

/** vhca_plist_buf() - the list of a buffer's pages */
int vhca_plist_buf(struct vhca_dev *vdev, struct vhca_plist *pl,
		   struct vhca_buf *buf)
{
	unsigned long i;
	int ret;

	ret = vhca_plist_alloc(vdev, pl, buf->npages);
	if (ret)
		return ret;
	for (i = 0; i < buf->npages; i++)
		vhca_plist_set(pl, i, buf->dma[i]);
	return 0;
}

/** vhca_plist_set() - page @i of the list */
void vhca_plist_set(struct vhca_plist *pl, unsigned long i, dma_addr_t dma)
{
	struct vhca_plist_chunk *c = &pl->chunk[i / VHCA_PAGE_LIST_ADDRS];

	c->list->addr[i % VHCA_PAGE_LIST_ADDRS] = cpu_to_be64(dma);
}

/** vhca_plist_addr() - what a command calls the list by; 0 when it is empty */
__be64 vhca_plist_addr(struct vhca_plist *pl)
{
	return pl->chunks ? cpu_to_be64(pl->chunk[0].dma) : 0;
}

/** vhca_plist_free() - the command that named it was answered */
void vhca_plist_free(struct vhca_dev *vdev, struct vhca_plist *pl)
{
	while (pl->chunks--)
		dma_free_coherent(&vdev->pdev->dev, sizeof(*pl->chunk->list),
				  pl->chunk[pl->chunks].list,
				  pl->chunk[pl->chunks].dma);
	kvfree(pl->chunk);
}
