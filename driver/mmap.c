// SPDX-License-Identifier: GPL-2.0-only
/*
 * What user space maps: queue memory, and UAR pages and device memory of BAR2.
 *
 * An offset is a name, and only a mapping of the whole thing is accepted. Queue
 * memory is put in place at once; its pages live while they are mapped. A page of
 * the BAR is put in place by a fault, so that it can be taken away: when its object
 * or the device is gone, the fault finds a page of memory instead, whose doorbells
 * nobody watches.
 */
#include <linux/mm.h>

#include "vhca.h"

/**
 * vhca_offset_add() - give a buffer an mmap offset
 * @ctx: whose file it is mapped from.
 * @buf: buffer, or NULL. Memory of the user gets none: it is mapped already.
 */
int vhca_offset_add(struct vhca_ctx *ctx, struct vhca_buf *buf)
{
	if (!buf || buf->charge.mm)
		return 0;
	return xa_alloc(&ctx->bufs, &buf->offset, buf,
			XA_LIMIT(0, VHCA_PGOFF_BUF_MAX), GFP_KERNEL_ACCOUNT);
}

/** vhca_offset_del() - no more mappings from here; those that exist stay */
void vhca_offset_del(struct vhca_ctx *ctx, struct vhca_buf *buf)
{
	if (buf && buf->offset != VHCA_PGOFF_NONE)
		xa_erase(&ctx->bufs, buf->offset);
}

/**
 * vhca_bar_zap() - user space loses pages of the BAR, and finds the dummy there
 * @ctx: the context.
 * @gone: of their object; set here.
 * @pgoff: their mmap offset.
 * @npages: how many.
 */
void vhca_bar_zap(struct vhca_ctx *ctx, bool *gone, unsigned long pgoff, u32 npages)
{
	mutex_lock(&ctx->bar_lock);
	*gone = true;
	mutex_unlock(&ctx->bar_lock);
	/* A fault that saw it before has put the page where this finds it. */
	unmap_mapping_range(ctx->mapping, (loff_t)pgoff << PAGE_SHIFT,
			    (loff_t)npages << PAGE_SHIFT, 1);
}

/* The page of the BAR that an mmap offset stands for; false when there is none. */
static bool vhca_bar_page(struct vhca_ctx *ctx, unsigned long pgoff, u32 *page)
{
	struct vhca_uar *uar;
	struct vhca_dm *dm;
	u32 at;

	if (pgoff >= VHCA_PGOFF_DM) {
		dm = vhca_dm_at(ctx, pgoff - VHCA_PGOFF_DM, &at);
		if (dm)
			*page = dm->hw + at;
		return dm && !dm->gone;
	}
	uar = xa_load(&ctx->uars, pgoff - VHCA_PGOFF_UAR);
	if (uar)
		*page = uar->hw;
	return uar && !uar->gone;
}

static unsigned long vhca_bar_pfn(struct vhca_ctx *ctx, unsigned long pgoff)
{
	unsigned long pfn = page_to_pfn(ctx->dummy);
	u32 page;

	rcu_read_lock();
	if (vhca_bar_page(ctx, pgoff, &page))
		pfn = (pci_resource_start(ctx->vdev->pdev, VHCA_BAR_UAR) >>
		       PAGE_SHIFT) + page;
	rcu_read_unlock();
	return pfn;
}

static vm_fault_t vhca_bar_fault(struct vm_fault *vmf)
{
	struct vhca_ctx *ctx = vmf->vma->vm_file->private_data;
	vm_fault_t ret;

	mutex_lock(&ctx->bar_lock);
	ret = vmf_insert_pfn(vmf->vma, vmf->address, vhca_bar_pfn(ctx, vmf->pgoff));
	mutex_unlock(&ctx->bar_lock);
	return ret;
}

static const struct vm_operations_struct vhca_bar_vm_ops = {
	.fault = vhca_bar_fault,
};

/* Pages that begin at an mmap offset; 0 when nothing does. */
static unsigned long vhca_bar_npages(struct vhca_ctx *ctx, unsigned long pgoff)
{
	unsigned long npages = 0;
	struct vhca_dm *dm;
	u32 at;

	rcu_read_lock();
	if (pgoff >= VHCA_PGOFF_DM) {
		dm = vhca_dm_at(ctx, pgoff - VHCA_PGOFF_DM, &at);
		if (dm && !at)
			npages = dm->npages;
	} else if (xa_load(&ctx->uars, pgoff - VHCA_PGOFF_UAR)) {
		npages = 1;
	}
	rcu_read_unlock();
	return npages;
}

static int vhca_mmap_bar(struct vhca_ctx *ctx, struct vm_area_struct *vma)
{
	if (vma_pages(vma) != vhca_bar_npages(ctx, vma->vm_pgoff))
		return -EINVAL;
	/* A function in software has its BAR in RAM: one memory type. */
	if (!ctx->vdev->soft)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	vma->vm_ops = &vhca_bar_vm_ops;
	return 0;
}

static int vhca_mmap_buf(struct vhca_ctx *ctx, struct vm_area_struct *vma)
{
	struct vhca_buf *buf;
	unsigned long left;
	int ret = -EINVAL;

	xa_lock(&ctx->bufs);
	buf = xa_load(&ctx->bufs, vma->vm_pgoff);
	if (buf)
		kref_get(&buf->ref);
	xa_unlock(&ctx->bufs);
	if (!buf)
		return -EINVAL;

	left = buf->npages;
	if (vma_pages(vma) == left)
		ret = vm_insert_pages(vma, vma->vm_start, buf->pages, &left);
	vhca_buf_put(buf);
	return ret;
}

/** vhca_mmap() - mmap() of the device file */
int vhca_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vhca_ctx *ctx = file->private_data;
	int ret;

	if (vhca_dead(ctx->vdev))
		return -EIO;
	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC)) {
		vhca_dbg(ctx, "mmap: not shared, or executable\n");
		return -EINVAL;
	}
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	if (vma->vm_pgoff >= VHCA_PGOFF_UAR)
		ret = vhca_mmap_bar(ctx, vma);
	else
		ret = vhca_mmap_buf(ctx, vma);
	if (ret)
		vhca_dbg(ctx, "mmap: offset %#lx, %lu pages: %d\n",
			 vma->vm_pgoff, vma_pages(vma), ret);
	return ret;
}
