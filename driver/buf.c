// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue memory, and the page lists by which a command describes memory.
 *
 * Queue memory is single pages: a ring of any size needs no contiguous memory,
 * and each page lives on by itself while user space has it mapped. Memory of the
 * user is pinned before anything is locked, and mapped for DMA when it is known that
 * the device is there.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/sched/signal.h>

#include "vhca.h"

/* Memory of the user is its own again. */
static void vhca_buf_unpin(struct vhca_buf *buf)
{
	unpin_user_pages_dirty_lock(buf->pages, buf->npages, true);
	buf->npages = 0;
	vhca_pin_uncharge(&buf->charge);
}

static void vhca_buf_free(struct kref *ref)
{
	struct vhca_buf *buf = container_of(ref, struct vhca_buf, ref);
	unsigned long i;

	WARN_ON_ONCE(buf->mapped);
	if (buf->charge.mm)
		vhca_buf_unpin(buf);
	for (i = 0; i < buf->npages; i++)
		put_page(buf->pages[i]);
	kvfree(buf->pages);
	kvfree(buf->dma);
	kfree(buf);
}

/** vhca_buf_put() - drop a reference; user mappings hold pages on their own */
void vhca_buf_put(struct vhca_buf *buf)
{
	if (buf)
		kref_put(&buf->ref, vhca_buf_free);
}

/* A buffer without pages yet. */
static struct vhca_buf *vhca_buf_new(unsigned long npages)
{
	struct vhca_buf *buf;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return NULL;
	kref_init(&buf->ref);
	buf->offset = VHCA_PGOFF_NONE;
	buf->pages = kvmalloc_array(npages, sizeof(*buf->pages), VHCA_GFP_SIZED);
	buf->dma = kvmalloc_array(npages, sizeof(*buf->dma), VHCA_GFP_SIZED);
	if (buf->pages && buf->dma)
		return buf;
	vhca_buf_put(buf);
	return NULL;
}

static int vhca_buf_pages(struct vhca_buf *buf, unsigned long npages)
{
	struct page *page;

	for (; buf->npages < npages; buf->npages++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		page = alloc_page(VHCA_GFP_SIZED | __GFP_ZERO);
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
	struct vhca_buf *buf = vhca_buf_new(npages);
	int ret;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	ret = vhca_buf_pages(buf, npages);
	if (!ret)
		ret = vhca_buf_map(vdev, buf);
	if (ret) {
		vhca_buf_put(buf);
		return ERR_PTR(ret);
	}
	return buf;
}

static int vhca_buf_pin_pages(struct vhca_buf *buf, unsigned long addr,
			      unsigned long npages)
{
	int n = 0;

	while (buf->npages < npages && n >= 0) {
		if (fatal_signal_pending(current))
			return -EINTR;
		n = vhca_pin(addr + (buf->npages << PAGE_SHIFT),
			     npages - buf->npages, true,
			     buf->pages + buf->npages);
		if (n > 0)
			buf->npages += n;
		cond_resched();
	}
	return min(n, 0);
}

/**
 * vhca_buf_pin() - pin the memory of the user for a queue that is to be made
 * @call: the call, which gets it; vhca_buf_get() takes it from there. No locks.
 * @addr: what user space gave; zero: the queue gets pages of the kernel.
 * @size: bytes; rounded up to pages.
 */
int vhca_buf_pin(struct vhca_call *call, u64 addr, size_t size)
{
	unsigned long npages = DIV_ROUND_UP(size, PAGE_SIZE);
	struct vhca_buf *buf;
	int ret;

	if (!addr)
		return 0;
	if (offset_in_page(addr) || addr > ULONG_MAX - (npages << PAGE_SHIFT))
		return -EINVAL;
	buf = vhca_buf_new(npages);
	if (!buf)
		return -ENOMEM;
	ret = vhca_pin_charge(&buf->charge, npages);
	if (!ret)
		ret = vhca_buf_pin_pages(buf, addr, npages);
	if (ret)
		vhca_buf_put(buf);
	else
		call->buf = buf;
	return ret;
}

/**
 * vhca_buf_get() - the memory of a new queue, zeroed and mapped for DMA
 * @vdev: the device that will use it.
 * @call: with what vhca_buf_pin() pinned, if it did.
 * @size: bytes; zero: there is no queue, and no buffer.
 * @buf: the buffer or NULL, to be given back like that of vhca_buf_alloc().
 */
int vhca_buf_get(struct vhca_dev *vdev, struct vhca_call *call, size_t size,
		 struct vhca_buf **buf)
{
	struct vhca_buf *b = call->buf;
	unsigned long i;
	int ret;

	*buf = NULL;
	if (!size)
		return 0;
	if (!b) {
		b = vhca_buf_alloc(vdev, size);
		if (IS_ERR(b))
			return PTR_ERR(b);
		*buf = b;
		return 0;
	}
	for (i = 0; i < b->npages; i++)
		clear_highpage(b->pages[i]);
	ret = vhca_buf_map(vdev, b);
	if (ret)
		return ret;
	kref_get(&b->ref);
	*buf = b;
	return 0;
}

/** vhca_buf_tell() - what a call that made a queue says of its memory */
void vhca_buf_tell(const struct vhca_buf *buf, u64 *offset, u64 *size)
{
	*offset = 0;
	*size = 0;
	if (!buf)
		return;
	if (buf->offset != VHCA_PGOFF_NONE)
		*offset = (u64)buf->offset << PAGE_SHIFT;
	*size = (u64)buf->npages << PAGE_SHIFT;
}

/**
 * vhca_buf_unmap() - the device does not use it any more
 * @vdev: the device.
 * @buf: buffer or NULL; may be repeated. Memory of the user is let go of.
 */
void vhca_buf_unmap(struct vhca_dev *vdev, struct vhca_buf *buf)
{
	unsigned long i;

	if (!buf || !buf->mapped)
		return;
	for (i = 0; i < buf->npages; i++)
		dma_unmap_page(&vdev->pdev->dev, buf->dma[i], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
	buf->mapped = false;
	if (buf->charge.mm)
		vhca_buf_unpin(buf);
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
	pl->chunk = kvmalloc_array(n, sizeof(*pl->chunk), VHCA_GFP_SIZED);
	if (!pl->chunk)
		return -ENOMEM;
	while (pl->chunks < n) {
		c = &pl->chunk[pl->chunks];
		c->list = dma_alloc_coherent(&vdev->pdev->dev, sizeof(*c->list),
					     &c->dma, VHCA_GFP_SIZED);
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

/** vhca_plist_buf() - the list of a buffer's pages; of no buffer it is empty */
int vhca_plist_buf(struct vhca_dev *vdev, struct vhca_plist *pl,
		   struct vhca_buf *buf)
{
	unsigned long npages = buf ? buf->npages : 0;
	unsigned long i;
	int ret;

	ret = vhca_plist_alloc(vdev, pl, npages);
	if (ret)
		return ret;
	for (i = 0; i < npages; i++)
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

/** vhca_plist_free() - the command that named it was answered; it is empty then */
void vhca_plist_free(struct vhca_dev *vdev, struct vhca_plist *pl)
{
	struct vhca_plist_chunk *c;

	while (pl->chunks) {
		c = &pl->chunk[--pl->chunks];
		dma_free_coherent(&vdev->pdev->dev, sizeof(*c->list), c->list, c->dma);
	}
	kvfree(pl->chunk);
	pl->chunk = NULL;
}
