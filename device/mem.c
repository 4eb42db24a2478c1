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

/* A page list that is being read: its structure in hand, and the address in that. */
struct page_list {
	u64				next;
	const struct vhca_page_list	*now;
	unsigned int			at;
};

/* The next page; NULL when the list is at fault. */
static struct page *next_page(struct page_list *list)
{
	u64 addr;

	if (!list->at) {
		if (!IS_ALIGNED(list->next, VHCA_PAGE_SIZE))
			return NULL;
		list->now = vdev_dma(list->next, sizeof(*list->now));
		if (!list->now)
			return NULL;
		list->next = be64_to_cpu(list->now->next);
	}
	addr = be64_to_cpu(list->now->addr[list->at]);
	list->at = (list->at + 1) % VHCA_PAGE_LIST_ADDRS;
	return IS_ALIGNED(addr, VHCA_PAGE_SIZE) ? dma_page(addr) : NULL;
}

u8 vdev_read_pages(u64 at, unsigned int npages, unsigned long *pages)
{
	struct page_list list = { .next = at };
	struct page *page;
	unsigned int i;

	for (i = 0; i < npages; i++) {
		page = next_page(&list);
		if (!page)
			return VHCA_CMD_BAD_PARAM;
		pages[i] = (unsigned long)page_address(page);
	}
	return VHCA_CMD_OK;
}

/* Several pages as one; VHCA_CMD_BAD_PARAM when their list is at fault. */
static u8 buf_vmap(struct vdev_buf *buf, struct page_list *list, struct page **pages)
{
	unsigned int i;

	for (i = 0; i < buf->npages; i++) {
		pages[i] = next_page(list);
		if (!pages[i])
			return VHCA_CMD_BAD_PARAM;
	}
	buf->addr = vmap(pages, buf->npages, VM_MAP, PAGE_KERNEL);
	return buf->addr ? VHCA_CMD_OK : VHCA_CMD_NO_MEMORY;
}

u8 vdev_buf_map(struct vdev_buf *buf, u64 at, size_t size)
{
	struct page_list list = { .next = at };
	struct page **pages, *page;
	u8 status;

	buf->npages = DIV_ROUND_UP(size, VHCA_PAGE_SIZE);
	if (buf->npages == 1) {
		page = next_page(&list);
		buf->addr = page ? page_address(page) : NULL;
		return page ? VHCA_CMD_OK : VHCA_CMD_BAD_PARAM;
	}
	pages = kvmalloc_array(buf->npages, sizeof(*pages), VDEV_GFP_SIZED);
	if (!pages)
		return VHCA_CMD_NO_MEMORY;
	status = buf_vmap(buf, &list, pages);
	kvfree(pages);
	return status;
}

void vdev_buf_unmap(struct vdev_buf *buf)
{
	if (buf->npages > 1)
		vunmap(buf->addr);
	buf->addr = NULL;
}
