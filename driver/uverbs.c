// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file operations of /dev/vhcaN and the table of its ioctls.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "vhca.h"

/* What is held while a call runs. */
enum vhca_mode {
	VHCA_ALONE,	/* nothing: it sees to that itself */
	VHCA_DEVICE,	/* the device, by SRCU; see vhca_dead() */
	VHCA_OBJECTS,	/* that, and the context's lock */
};

/*
 * @prepare is called first, with nothing held: it looks at the argument and pins what
 * that names. @first is the size of a structure that has grown before it did. @makes
 * and @ends: which object there is one more of, or one less, when the call succeeds.
 */
struct vhca_ioctl {
	int (*prepare)(struct vhca_ctx *ctx, struct vhca_call *call);
	int (*call)(struct vhca_ctx *ctx, struct vhca_call *call);
	u16 size;
	u16 first;
	u8 mode;
	u8 makes;
	u8 ends;
};

#define MAKES(kind)	.makes = VHCA_KIND_##kind
#define ENDS(kind)	.ends = VHCA_KIND_##kind

#define VHCA_IOCTL(name, fn, what, ...)				\
	[_IOC_NR(VHCA_IOC_##name)] = {				\
		.call = fn,					\
		.size = _IOC_SIZE(VHCA_IOC_##name),		\
		.mode = what,					\
		##__VA_ARGS__					\
	}

static const struct vhca_ioctl vhca_ioctls[] = {
	VHCA_IOCTL(QUERY_DEVICE, vhca_query_device, VHCA_DEVICE, .first = 128),
	VHCA_IOCTL(QUERY_PORT, vhca_query_port, VHCA_DEVICE),
	VHCA_IOCTL(QUERY_GID, vhca_query_gid, VHCA_DEVICE),
	VHCA_IOCTL(QUERY_PKEY, vhca_query_pkey, VHCA_DEVICE),
	VHCA_IOCTL(OPEN_ASYNC, vhca_open_async, VHCA_OBJECTS, MAKES(EVENT_FILE)),
	VHCA_IOCTL(ALLOC_UAR, vhca_alloc_uar, VHCA_OBJECTS, MAKES(UAR)),
	VHCA_IOCTL(FREE_UAR, vhca_free_uar, VHCA_OBJECTS, ENDS(UAR)),
	VHCA_IOCTL(ALLOC_PD, vhca_alloc_pd, VHCA_OBJECTS, MAKES(PD)),
	VHCA_IOCTL(FREE_PD, vhca_free_pd, VHCA_OBJECTS, ENDS(PD)),
	VHCA_IOCTL(REG_MR, vhca_reg_mr, VHCA_ALONE, MAKES(MR)),
	VHCA_IOCTL(DEREG_MR, vhca_dereg_mr, VHCA_OBJECTS, ENDS(MR)),
	VHCA_IOCTL(CREATE_CHANNEL, vhca_create_channel, VHCA_OBJECTS, MAKES(EVENT_FILE)),
	VHCA_IOCTL(DESTROY_CHANNEL, vhca_destroy_channel, VHCA_OBJECTS),
	VHCA_IOCTL(CREATE_CQ, vhca_create_cq, VHCA_OBJECTS, MAKES(CQ),
		   .prepare = vhca_prepare_cq, .first = 48),
	VHCA_IOCTL(RESIZE_CQ, vhca_resize_cq, VHCA_OBJECTS,
		   .prepare = vhca_prepare_resize_cq),
	VHCA_IOCTL(MODIFY_CQ, vhca_modify_cq, VHCA_OBJECTS),
	VHCA_IOCTL(DESTROY_CQ, vhca_destroy_cq, VHCA_OBJECTS, ENDS(CQ)),
	VHCA_IOCTL(OPEN_XRCD, vhca_open_xrcd, VHCA_OBJECTS, MAKES(XRCD)),
	VHCA_IOCTL(CLOSE_XRCD, vhca_close_xrcd, VHCA_OBJECTS, ENDS(XRCD)),
	VHCA_IOCTL(CREATE_SRQ, vhca_create_srq, VHCA_OBJECTS, MAKES(SRQ),
		   .prepare = vhca_prepare_srq),
	VHCA_IOCTL(MODIFY_SRQ, vhca_modify_srq, VHCA_OBJECTS),
	VHCA_IOCTL(QUERY_SRQ, vhca_query_srq, VHCA_OBJECTS),
	VHCA_IOCTL(DESTROY_SRQ, vhca_destroy_srq, VHCA_OBJECTS, ENDS(SRQ)),
	VHCA_IOCTL(CREATE_QP, vhca_create_qp, VHCA_OBJECTS, MAKES(QP),
		   .prepare = vhca_prepare_qp, .first = 56),
	VHCA_IOCTL(OPEN_QP, vhca_open_qp, VHCA_OBJECTS, MAKES(QP)),
	VHCA_IOCTL(MODIFY_QP, vhca_modify_qp, VHCA_OBJECTS),
	VHCA_IOCTL(QUERY_QP, vhca_query_qp, VHCA_OBJECTS),
	VHCA_IOCTL(DESTROY_QP, vhca_destroy_qp, VHCA_OBJECTS, ENDS(QP)),
	VHCA_IOCTL(ATTACH_MCAST, vhca_attach_mcast, VHCA_OBJECTS),
	VHCA_IOCTL(DETACH_MCAST, vhca_detach_mcast, VHCA_OBJECTS),
	VHCA_IOCTL(QUERY_PD, vhca_query_pd, VHCA_OBJECTS),
	VHCA_IOCTL(QUERY_MR, vhca_query_mr, VHCA_OBJECTS),
	VHCA_IOCTL(REREG_MR, vhca_rereg_mr, VHCA_ALONE),
	VHCA_IOCTL(REG_DMABUF_MR, vhca_reg_dmabuf_mr, VHCA_OBJECTS, MAKES(MR)),
	VHCA_IOCTL(REG_DM_MR, vhca_reg_dm_mr, VHCA_OBJECTS, MAKES(MR)),
	VHCA_IOCTL(REG_NULL_MR, vhca_reg_null_mr, VHCA_OBJECTS, MAKES(MR)),
	VHCA_IOCTL(ALLOC_MW, vhca_alloc_mw, VHCA_OBJECTS, MAKES(MW)),
	VHCA_IOCTL(FREE_MW, vhca_free_mw, VHCA_OBJECTS, ENDS(MW)),
	VHCA_IOCTL(ALLOC_DM, vhca_alloc_dm, VHCA_OBJECTS),
	VHCA_IOCTL(QUERY_DM, vhca_query_dm, VHCA_OBJECTS),
	VHCA_IOCTL(FREE_DM, vhca_free_dm, VHCA_OBJECTS),
};

static const struct vhca_ioctl *vhca_ioctl_find(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	if (_IOC_TYPE(cmd) != VHCA_IOC_MAGIC ||
	    _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) ||
	    nr >= ARRAY_SIZE(vhca_ioctls))
		return NULL;
	nr = array_index_nospec(nr, ARRAY_SIZE(vhca_ioctls));
	return vhca_ioctls[nr].call ? &vhca_ioctls[nr] : NULL;
}

static int vhca_ioctl_locked(struct vhca_ctx *ctx, const struct vhca_ioctl *ioc,
			     struct vhca_call *call)
{
	int ret = mutex_lock_killable(&ctx->lock);

	if (ret)
		return ret;
	ret = ioc->call(ctx, call);
	mutex_unlock(&ctx->lock);
	return ret;
}

static int vhca_ioctl_held(struct vhca_ctx *ctx, const struct vhca_ioctl *ioc,
			   struct vhca_call *call)
{
	int idx, ret;

	if (ioc->mode == VHCA_ALONE)
		return ioc->call(ctx, call);

	idx = srcu_read_lock(&ctx->vdev->srcu);
	if (vhca_dead(ctx->vdev))
		ret = -EIO;
	else if (ioc->mode == VHCA_DEVICE)
		ret = ioc->call(ctx, call);
	else
		ret = vhca_ioctl_locked(ctx, ioc, call);
	srcu_read_unlock(&ctx->vdev->srcu, idx);
	return ret;
}

static int vhca_ioctl_run(struct vhca_ctx *ctx, const struct vhca_ioctl *ioc,
			  struct vhca_call *call)
{
	int ret = vhca_charge(ctx, ioc->makes, 1);

	if (ret)
		return ret;
	if (ioc->prepare)
		ret = vhca_dead(ctx->vdev) ? -EIO : ioc->prepare(ctx, call);
	if (!ret)
		ret = vhca_ioctl_held(ctx, ioc, call);
	vhca_uncharge(ctx, ret ? ioc->makes : ioc->ends, 1);
	/* An object that was made of it has a reference of its own. */
	vhca_buf_put(call->buf);
	vhca_domain_free(call->domain);
	return ret;
}

/* The file that a call made gets its descriptor when nothing can fail. */
static void vhca_ioctl_file(struct vhca_call *call, int ret)
{
	if (!call->file)
		return;
	if (!ret) {
		fd_install(call->event_file.fd, call->file);
		return;
	}
	put_unused_fd(call->event_file.fd);
	fput(call->file);
}

/*
 * User memory is touched outside of every lock. That the answer can be written
 * is tried first with what is there already, so that a bad pointer changes
 * nothing; who unmaps it meanwhile keeps an object without knowing its number.
 */
static long vhca_ioctl_call(struct vhca_ctx *ctx, const struct vhca_ioctl *ioc,
			    void __user *arg, size_t size)
{
	size_t known = min_t(size_t, size, ioc->size);
	struct vhca_call call;
	int ret;

	if (size < (ioc->first ?: ioc->size)) {
		vhca_dbg(ctx, "ioctl: structure of %zu bytes is too short\n",
			 size);
		return -EINVAL;
	}
	memset(&call, 0, sizeof(call));
	ret = copy_struct_from_user(&call, ioc->size, arg, size);
	if (ret)
		return ret;
	if (copy_to_user(arg, &call, known))
		return -EFAULT;

	ret = vhca_ioctl_run(ctx, ioc, &call);
	if (ret)
		return ret;
	if (copy_to_user(arg, &call, known))
		ret = -EFAULT;
	vhca_ioctl_file(&call, ret);
	return ret;
}

/*
 * Once a doorbell, so nothing here is written that CPUs share, and no read section is
 * entered. The UAR may be freed and its page given to another context between the look
 * and the kick: the device then looks at a doorbell of theirs, where there is nothing to
 * gain. The function may be removed: the file holds the device's module.
 */
static long vhca_kick(struct vhca_ctx *ctx, unsigned long arg)
{
	unsigned long uar = VHCA_KICK_UAR(arg);
	struct vhca_dev *vdev = ctx->vdev;

	if (vhca_dead(vdev))
		return -EIO;
	if (uar >= vdev->num_uars)
		return -EINVAL;
	uar = array_index_nospec(uar, vdev->num_uars);
	if (READ_ONCE(vdev->uar_owner[uar]) != ctx)
		return -EINVAL;
	this_cpu_inc(vdev->stats->kicks);
	if (vdev->soft)
		vdev->soft->kick(vdev->soft, uar, VHCA_KICK_SLOT(arg));
	return 0;
}

static long vhca_unlocked_ioctl(struct file *file, unsigned int cmd,
				unsigned long arg)
{
	struct vhca_ctx *ctx = file->private_data;
	const struct vhca_ioctl *ioc;

	if (cmd == VHCA_IOC_KICK)
		return vhca_kick(ctx, arg);
	ioc = vhca_ioctl_find(cmd);
	if (!ioc)
		return -ENOTTY;
	return vhca_ioctl_call(ctx, ioc, (void __user *)arg, _IOC_SIZE(cmd));
}

const struct file_operations vhca_fops = {
	.owner		= THIS_MODULE,
	.open		= vhca_open,
	.release	= vhca_release,
	.unlocked_ioctl	= vhca_unlocked_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= vhca_mmap,
};
