// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRC domains. A domain on the device (struct vhca_domain) can be open in
 * several contexts, which find each other by an inode. What a context has of it is
 * struct vhca_xrcd, which the context's lock protects like its other objects.
 *
 * A domain is owned by those that have it open: it goes with the last of them. QPs
 * and SRQs use the struct vhca_xrcd of their own context, which cannot be closed
 * before them. So a domain outlives whatever is in it, also a QP that the context
 * that made it has left to others (see qp.c).
 *
 * vhca_dev.xrc_lock protects the list of domains and their counts of opens, so that
 * finding a domain and closing it for the last time exclude each other. Its path
 * keeps the inode, and with it the file system, which can take its time when it is
 * let go of: that is done with no lock of the device.
 */
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/path.h>

#include "vhca.h"

/** vhca_domain_free() - a domain that nobody has open any more, or NULL */
void vhca_domain_free(struct vhca_domain *dom)
{
	if (dom && dom->inode)
		path_put(&dom->path);
	kfree(dom);
}

static struct vhca_domain *vhca_domain_find(struct vhca_dev *vdev,
					    const struct inode *inode)
{
	struct vhca_domain *dom;

	lockdep_assert_held(&vdev->xrc_lock);
	list_for_each_entry(dom, &vdev->domains, node) {
		if (inode && dom->inode == inode)
			return dom;
	}
	return NULL;
}

static struct vhca_domain *vhca_domain_create(struct vhca_dev *vdev,
					      struct file *file)
{
	struct vhca_cmd_done done;
	struct vhca_cmd cmd = {};
	struct vhca_domain *dom;
	int ret;

	dom = kzalloc(sizeof(*dom), GFP_KERNEL_ACCOUNT);
	if (!dom)
		return ERR_PTR(-ENOMEM);
	ret = vhca_cmd(vdev, VHCA_CMD_ALLOC_XRCD, &cmd, &done);
	if (ret) {
		kfree(dom);
		return ERR_PTR(ret);
	}
	dom->number = be32_to_cpu(done.number);
	if (file) {
		dom->inode = file_inode(file);
		dom->path = file->f_path;
		path_get(&dom->path);
	}
	list_add_tail(&dom->node, &vdev->domains);
	return dom;
}

/* As open(2) goes about O_CREAT and O_EXCL. */
static struct vhca_domain *vhca_domain_open(struct vhca_dev *vdev,
					    struct file *file, u32 oflags)
{
	struct vhca_domain *dom;

	dom = vhca_domain_find(vdev, file ? file_inode(file) : NULL);
	if (dom && oflags & O_EXCL)
		return ERR_PTR(-EEXIST);
	if (!dom && file && !(oflags & O_CREAT))
		return ERR_PTR(-ENOENT);
	if (!dom)
		dom = vhca_domain_create(vdev, file);
	if (!IS_ERR(dom))
		dom->opens++;
	return dom;
}

/* The last one that leaves keeps the domain, to free it. May be repeated. */
static int vhca_xrcd_leave(struct vhca_dev *vdev, struct vhca_xrcd *xrcd, bool cmds)
{
	struct vhca_domain *dom = xrcd->domain;
	int ret = 0;

	mutex_lock(&vdev->xrc_lock);
	if (!dom || !dom->opens)
		goto out;
	if (dom->opens > 1) {
		xrcd->domain = NULL;
	} else {
		if (cmds)
			ret = vhca_cmd_number(vdev, VHCA_CMD_FREE_XRCD, dom->number);
		if (ret)
			goto out;
		list_del(&dom->node);
	}
	dom->opens--;
out:
	mutex_unlock(&vdev->xrc_lock);
	return ret;
}

static int vhca_xrcd_open(struct vhca_ctx *ctx, struct vhca_open_xrcd *arg,
			  struct file *file)
{
	struct vhca_dev *vdev = ctx->vdev;
	struct vhca_xrcd *xrcd;
	int ret;

	xrcd = kzalloc(sizeof(*xrcd), GFP_KERNEL_ACCOUNT);
	if (!xrcd)
		return -ENOMEM;
	ret = xa_alloc(&ctx->xrcds, &xrcd->number, xrcd, xa_limit_31b,
		       GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_free;

	mutex_lock(&vdev->xrc_lock);
	xrcd->domain = vhca_domain_open(vdev, file, arg->oflags);
	mutex_unlock(&vdev->xrc_lock);
	if (IS_ERR(xrcd->domain)) {
		ret = PTR_ERR(xrcd->domain);
		goto err_erase;
	}
	arg->xrcd = xrcd->number;
	return 0;

err_erase:
	xa_erase(&ctx->xrcds, xrcd->number);
err_free:
	kfree(xrcd);
	return ret;
}

/** vhca_open_xrcd() - VHCA_IOC_OPEN_XRCD */
int vhca_open_xrcd(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_open_xrcd *arg = &call->open_xrcd;
	struct file *file = NULL;
	int ret;

	if (arg->rsvd || arg->oflags & ~(O_CREAT | O_EXCL) ||
	    (arg->oflags & O_EXCL && !(arg->oflags & O_CREAT)))
		return -EINVAL;
	if (arg->fd != VHCA_INVALID_FD) {
		file = fget(arg->fd);
		if (!file)
			return -EBADF;
	}
	ret = vhca_xrcd_open(ctx, arg, file);
	if (file)
		fput(file);
	return ret;
}

/** vhca_close_xrcd() - VHCA_IOC_CLOSE_XRCD */
int vhca_close_xrcd(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_xrcd *xrcd = xa_load(&ctx->xrcds, call->object.number);
	int ret;

	if (!xrcd || call->object.rsvd)
		return -EINVAL;
	if (xrcd->users)
		return -EBUSY;
	ret = vhca_xrcd_leave(ctx->vdev, xrcd, true);
	if (ret)
		return ret;
	call->domain = xrcd->domain;
	xa_erase(&ctx->xrcds, xrcd->number);
	kfree(xrcd);
	return 0;
}

/** vhca_xrcds_destroy() - all of a context; see vhca_ctx_detach() */
int vhca_xrcds_destroy(struct vhca_ctx *ctx, bool cmds)
{
	struct vhca_xrcd *xrcd;
	unsigned long i;
	int ret;

	xa_for_each(&ctx->xrcds, i, xrcd) {
		ret = vhca_xrcd_leave(ctx->vdev, xrcd, cmds);
		if (ret)
			return ret;
	}
	return 0;
}

/** vhca_xrcds_free() - what is left of them */
void vhca_xrcds_free(struct vhca_ctx *ctx)
{
	struct vhca_xrcd *xrcd;
	unsigned long i;

	xa_for_each(&ctx->xrcds, i, xrcd) {
		vhca_domain_free(xrcd->domain);
		kfree(xrcd);
	}
	xa_destroy(&ctx->xrcds);
}
