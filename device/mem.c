// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory as the device sees it: DMA addresses, page lists, queues.
 *
 * For this function DMA addresses are physical addresses, and host memory is
 * all mapped, so that "DMA" is a load or store. What the driver gives is
 * checked to be memory; that it is the right memory is the driver's duty, as it
 * is towards a card.
 */
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "vdev.h"

/* The page of the programming model is the page that is mapped. */
static_assert(PAGE_SIZE == VHCA_PAGE_SIZE);

/*
 * Among the pages that are reserved are those of holes in memory and of other
 * devices, which the kernel has not all mapped.
 */
static struct page *dma_page(u64 addr)
{
	unsigned long pfn = addr >> PAGE_SHIFT;
	struct page *page;

	if (addr >> PAGE_SHIFT != pfn || !pfn_valid(pfn))
		return NULL;
	page = pfn_to_page(pfn);
	return !PageReserved(page) || page_is_ram(pfn) ? page : NULL;
}

void *vdev_dma(u64 addr, size_t len)
{
	struct page *page = dma_page(addr);

	if (!page || offset_in_page(addr) + len > PAGE_SIZE)
		return NULL;
	return page_address(page) + offset_in_page(addr);
}

u8 vdev_read_pages(u64 list, unsigned int npages, struct page **pages)
{
	const struct vhca_page_list *l = NULL;
	unsigned int i;

	for (i = 0; i < npages; i++) {
		unsigned int at = i % VHCA_PAGE_LIST_ADDRS;
		u64 addr;

		if (!at) {
			addr = l ? be64_to_cpu(l->next) : list;
			if (!IS_ALIGNED(addr, VHCA_PAGE_SIZE))
				return VHCA_CMD_BAD_PARAM;
			l = vdev_dma(addr, sizeof(*l));
			if (!l)
				return VHCA_CMD_BAD_PARAM;
		}
		addr = be64_to_cpu(l->addr[at]);
		if (!IS_ALIGNED(addr, VHCA_PAGE_SIZE))
			return VHCA_CMD_BAD_PARAM;
		pages[i] = dma_page(addr);
		if (!pages[i])
			return VHCA_CMD_BAD_PARAM;
	}
	return VHCA_CMD_OK;
}

u8 vdev_buf_map(struct vdev_buf *buf, u64 list, size_t size)
{
	unsigned int npages = DIV_ROUND_UP(size, VHCA_PAGE_SIZE);
	struct page **pages;
	u8 status;

	pages = kvmalloc_array(npages, sizeof(*pages), VDEV_GFP_SIZED);
	if (!pages)
		return VHCA_CMD_NO_MEMORY;
	status = vdev_read_pages(list, npages, pages);
	if (status)
		goto out;
	buf->npages = npages;
	if (npages == 1)
		buf->addr = page_address(pages[0]);
	else
		buf->addr = vmap(pages, npages, VM_MAP, PAGE_KERNEL);
	if (!buf->addr)
		status = VHCA_CMD_NO_MEMORY;
out:
	kvfree(pages);
	return status;
}

void vdev_buf_unmap(struct vdev_buf *buf)
{
	if (buf->npages > 1)
		vunmap(buf->addr);
	buf->addr = NULL;
}
