/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels that vhca is built for, 6.1 and
 * 6.12, and only here. The code is written for the newer; what the older lacks
 * is given here under the newer's name.
 */
#ifndef VHCA_COMPAT_H
#define VHCA_COMPAT_H

#include <linux/version.h>
#include <linux/device/class.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
/* struct class.devnode takes a device that it could change. */
#define VHCA_DEVNODE_CONST

/*
 * A long-term pin for reading does not break copy-on-write by itself, so it is
 * forced to. Force would also take what cannot be read, hence the look at it,
 * and does not take what is shared, which has no copy to break.
 */
static inline int vhca_pin_for_reading(unsigned long addr, int n,
				       struct page **pages)
{
	int ret;

	if (fault_in_readable((const char __user *)addr, (size_t)n << PAGE_SHIFT))
		return -EFAULT;
	ret = pin_user_pages_fast(addr, n, FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE,
				  pages);
	if (ret == -EFAULT)
		ret = pin_user_pages_fast(addr, n, FOLL_LONGTERM, pages);
	return ret;
}
#else
#define VHCA_DEVNODE_CONST	const

static inline int vhca_pin_for_reading(unsigned long addr, int n,
				       struct page **pages)
{
	return pin_user_pages_fast(addr, n, FOLL_LONGTERM, pages);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
/*
 * A page that a file system writes back is locked for as long as it likes, and would be
 * waited for when it is unpinned. Anonymous and shared memory is in files, if at all, that
 * nobody writes back.
 */
static inline bool vhca_is_of_file(struct page *page)
{
	page = compound_head(page);
	return READ_ONCE(page->mapping) && !PageSwapBacked(page) && !PageHuge(page);
}

static inline int vhca_pin_for_writing(unsigned long addr, int n,
				       struct page **pages)
{
	int ret = pin_user_pages_fast(addr, n, FOLL_LONGTERM | FOLL_WRITE, pages);
	int i;

	for (i = 0; i < ret; i++) {
		if (!vhca_is_of_file(pages[i]))
			continue;
		unpin_user_pages(pages, ret);
		return -EFAULT;
	}
	return ret;
}
#else
static inline int vhca_pin_for_writing(unsigned long addr, int n,
				       struct page **pages)
{
	return pin_user_pages_fast(addr, n, FOLL_LONGTERM | FOLL_WRITE, pages);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define dma_buf_map_attachment_unlocked		dma_buf_map_attachment
#define dma_buf_unmap_attachment_unlocked	dma_buf_unmap_attachment
#endif

/* A namespace is a string since 6.13. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define VHCA_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#else
#define VHCA_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#undef class_create
#define class_create(name) ({			\
	static struct lock_class_key __key;	\
						\
	__class_create(THIS_MODULE, name, &__key); \
})
#endif

#endif
