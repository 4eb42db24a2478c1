// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making event files: completion channels, and async event files, of which
 * each process that shares the context has one.
 *
 * Such a file may outlive the device file. It holds the context's memory, by
 * which a channel is told from those of other contexts, and nothing more of it.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>

#include "vhca.h"

static int vhca_channel_release(struct inode *inode, struct file *file)
{
	struct vhca_event_queue *q = file->private_data;
	struct vhca_ctx *ctx = q->ctx;

	mutex_lock(&ctx->lock);
	list_del(&q->node);
	mutex_unlock(&ctx->lock);
	vhca_event_queue_put(q);
	vhca_uncharge(ctx, VHCA_KIND_EVENT_FILE, 1);
	vhca_ctx_put(ctx);
	return 0;
}

static int vhca_async_release(struct inode *inode, struct file *file)
{
	struct vhca_event_queue *q = file->private_data;
	struct vhca_ctx *ctx = q->ctx;

	mutex_lock(&ctx->lock);
	vhca_async_unuse(ctx, q);
	mutex_unlock(&ctx->lock);
	vhca_event_queue_put(q);
	vhca_uncharge(ctx, VHCA_KIND_EVENT_FILE, 1);
	vhca_ctx_put(ctx);
	return 0;
}

static const struct file_operations vhca_channel_fops = {
	.owner		= THIS_MODULE,
	.read		= vhca_event_read,
	.poll		= vhca_event_poll,
	.fasync		= vhca_event_fasync,
	.release	= vhca_channel_release,
};

static const struct file_operations vhca_async_fops = {
	.owner		= THIS_MODULE,
	.read		= vhca_event_read,
	.poll		= vhca_event_poll,
	.fasync		= vhca_event_fasync,
	.release	= vhca_async_release,
};

static int vhca_event_file(struct vhca_call *call, const char *name,
			   const struct file_operations *fops,
			   struct vhca_event_queue *q)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = anon_inode_getfile(name, fops, q, O_RDONLY);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	call->event_file.fd = fd;
	call->file = file;
	return 0;
}

/** vhca_create_channel() - VHCA_IOC_CREATE_CHANNEL */
int vhca_create_channel(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_event_queue *q;
	int ret;

	if (call->event_file.number)
		return -EINVAL;
	q = vhca_event_queue_alloc(0);
	if (!q)
		return -ENOMEM;
	q->ctx = ctx;
	q->number = atomic_inc_return(&ctx->vdev->last_channel);
	ret = vhca_event_file(call, "[vhca-comp]", &vhca_channel_fops, q);
	if (ret) {
		vhca_event_queue_put(q);
		return ret;
	}
	vhca_ctx_get(ctx);
	list_add_tail(&q->node, &ctx->channels);
	return 0;
}

/* The first file has what happened before it was there. The caller is a user. */
static struct vhca_event_queue *vhca_async_get(struct vhca_ctx *ctx)
{
	struct vhca_event_queue *q;

	if (ctx->async_opened)
		return vhca_async_add(ctx);
	q = list_first_entry(&ctx->asyncs, struct vhca_event_queue, node);
	q->users++;
	return q;
}

/** vhca_open_async() - VHCA_IOC_OPEN_ASYNC */
int vhca_open_async(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_event_queue *q;
	int ret;

	if (call->event_file.number)
		return -EINVAL;
	q = vhca_async_get(ctx);
	if (!q)
		return -ENOMEM;
	ret = vhca_event_file(call, "[vhca-async]", &vhca_async_fops, q);
	if (ret) {
		vhca_async_unuse(ctx, q);
		return ret;
	}
	kref_get(&q->ref);
	vhca_ctx_get(ctx);
	ctx->async_opened = true;
	call->event_file.number = q->number;
	return 0;
}

/**
 * vhca_channel_get() - the channel behind a descriptor
 * @ctx: the context, locked; the channel is its own or it is refused.
 * @fd: what user space gave.
 *
 * Return: the channel with a reference, or -EINVAL.
 */
struct vhca_event_queue *vhca_channel_get(struct vhca_ctx *ctx, int fd)
{
	struct vhca_event_queue *q = ERR_PTR(-EINVAL);
	struct vhca_event_queue *found;
	struct file *file = fget(fd);

	if (file && file->f_op == &vhca_channel_fops) {
		found = file->private_data;
		if (found->ctx == ctx && !found->closed) {
			kref_get(&found->ref);
			q = found;
		}
	}
	if (file)
		fput(file);
	if (IS_ERR(q))
		vhca_dbg(ctx, "descriptor %d is no channel of this file\n", fd);
	return q;
}

/** vhca_destroy_channel() - VHCA_IOC_DESTROY_CHANNEL */
int vhca_destroy_channel(struct vhca_ctx *ctx, struct vhca_call *call)
{
	struct vhca_event_queue *q;
	int ret = 0;

	if (call->destroy_channel.rsvd)
		return -EINVAL;
	q = vhca_channel_get(ctx, call->destroy_channel.fd);
	if (IS_ERR(q))
		return PTR_ERR(q);
	if (q->users)
		ret = -EBUSY;
	else
		vhca_event_queue_close(q);
	vhca_event_queue_put(q);
	return ret;
}
