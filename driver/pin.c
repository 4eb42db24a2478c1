// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinning user memory, and what it costs its owner. Nothing is
 * locked here: a page fault takes as long as user space pleases.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "vhca.h"

/**
 * vhca_pin_charge() - locked memory, as RLIMIT_MEMLOCK counts it
 * @charge: what vhca_pin_uncharge() gives back, in whatever process.
 * @npages: pages that the caller is about to pin.
 *
 * Return: 0, or -ENOMEM: the limit would be exceeded.
 */
int vhca_pin_charge(struct vhca_charge *charge, unsigned long npages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(npages, &mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(npages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	charge->mm = mm;
	charge->npages = npages;
	return 0;
}

/** vhca_pin_uncharge() - the pages are unpinned; may be repeated */
void vhca_pin_uncharge(struct vhca_charge *charge)
{
	if (!charge->mm)
		return;
	atomic64_sub(charge->npages, &charge->mm->pinned_vm);
	mmdrop(charge->mm);
	charge->mm = NULL;
}

/* Is it that nothing is there, or that it may not be written? */
static int vhca_pin_fault(unsigned long addr, bool write)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int ret = -EFAULT;

	mmap_read_lock(mm);
	vma = find_vma(mm, addr);
	if (vma && vma->vm_start <= addr && write &&
	    !(vma->vm_flags & VM_WRITE))
		ret = -EACCES;
	mmap_read_unlock(mm);
	return ret;
}

/**
 * vhca_pin() - pin pages for long, as many as go at once
 * @addr: of the caller's memory, page-aligned.
 * @n: pages wanted.
 * @write: the device may write them.
 * @pages: room for @n.
 *
 * Return: how many, at least one; -EFAULT: not mapped; -EACCES: not writable.
 */
int vhca_pin(unsigned long addr, unsigned long n, bool write, struct page **pages)
{
	int ret;

	if (write)
		ret = vhca_pin_for_writing(addr, n, pages);
	else
		ret = vhca_pin_for_reading(addr, n, pages);
	if (ret == -EFAULT)
		ret = vhca_pin_fault(addr, write);
	return ret ?: -EFAULT;
}
