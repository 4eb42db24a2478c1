// SPDX-License-Identifier: GPL-2.0-only
/*
 * What user space maps: queue memory and UAR pages.
 *
 * An offset is a name, and only a mapping of the whole thing is accepted. Queue
 * memory is put in place at once; its pages live while they are mapped. A UAR
 * page is put in place by a fault, so that it can be taken away: when the UAR or
 * the device is gone, the fault finds a page of memory instead, whose doorbells
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

/** vhca_uar_zap() - user space loses the UAR page, and finds the dummy there */
void vhca_uar_zap(struct vhca_ctx *ctx, struct vhca_uar *uar)
{
	loff_t offset = (loff_t)(VHCA_PGOFF_UAR + uar->number) << PAGE_SHIFT;

	mutex_lock(&ctx->uar_lock);
	uar->gone = true;
	mutex_unlock(&ctx->uar_lock);
	/* A fault that saw it before has put the page where this finds it. */
	unmap_mapping_range(ctx->mapping, offset, VHCA_UAR_PAGE_SIZE, 1);
}

static unsigned long vhca_uar_pfn(struct vhca_ctx *ctx, unsigned long number)
{
	unsigned long pfn = page_to_pfn(ctx->dummy);
	struct vhca_uar *uar;

	rcu_read_lock();
	uar = xa_load(&ctx->uars, number);
	if (uar && !uar->gone)
		pfn = (pci_resource_start(ctx->vdev->pdev, VHCA_BAR_UAR) >>
		       PAGE_SHIFT) + uar->hw;
	rcu_read_unlock();
	return pfn;
}

static vm_fault_t vhca_uar_fault(struct vm_fault *vmf)
{
	struct vhca_ctx *ctx = vmf->vma->vm_file->private_data;
	vm_fault_t ret;

	mutex_lock(&ctx->uar_lock);
	ret = vmf_insert_pfn(vmf->vma, vmf->address,
			     vhca_uar_pfn(ctx, vmf->pgoff - VHCA_PGOFF_UAR));
	mutex_unlock(&ctx->uar_lock);
	return ret;
}

static const struct vm_operations_struct vhca_uar_vm_ops = {
	.fault = vhca_uar_fault,
};

static int vhca_mmap_uar(struct vhca_ctx *ctx, struct vm_area_struct *vma)
{
	if (!xa_load(&ctx->uars, vma->vm_pgoff - VHCA_PGOFF_UAR) ||
	    vma_pages(vma) != 1)
		return -EINVAL;
	/* A function in software has its UAR pages in RAM: one memory type. */
	if (!ctx->vdev->soft)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	vma->vm_ops = &vhca_uar_vm_ops;
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
		ret = vhca_mmap_uar(ctx, vma);
	else
		ret = vhca_mmap_buf(ctx, vma);
	if (ret)
		vhca_dbg(ctx, "mmap: offset %#lx, %lu pages: %d\n",
			 vma->vm_pgoff, vma_pages(vma), ret);
	return ret;
}
