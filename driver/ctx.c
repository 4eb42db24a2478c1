// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a context: opening the device file, closing it, and what
 * happens to it when the device goes first.
 *
 * Taking a context down has two halves. Detaching ends what the device and
 * other memory owners know of it: objects on the device, DMA mappings, pins,
 * doorbell mappings. Freeing is what is left: memory, and unread events. The
 * last close does both; disassociation does the first half for every context,
 * so that removal waits for no process.
 */
#include <linux/module.h>

#include "vhca.h"

/**
 * vhca_dead() - must the device be left alone?
 * @vdev: the device.
 *
 * Whoever uses the device asks inside of a read-side section of @vdev->srcu and
 * stays in it: the device is not disassociated meanwhile. User memory must not
 * be touched there, as a page fault takes as long as user space pleases.
 */
bool vhca_dead(struct vhca_dev *vdev)
{
	return READ_ONCE(vdev->dead);
}

/** vhca_set_dead() - the device is past help; any context */
void vhca_set_dead(struct vhca_dev *vdev)
{
	WRITE_ONCE(vdev->dead, true);
	schedule_work(&vdev->fatal_work);
}

static void vhca_ctx_free(struct kref *ref)
{
	struct vhca_ctx *ctx = container_of(ref, struct vhca_ctx, ref);

	/* The first queue of async events is all that is left: it is the context's. */
	vhca_async_unuse(ctx, list_first_entry(&ctx->asyncs,
					       struct vhca_event_queue, node));
	put_device(&ctx->vdev->dev);
	mutex_destroy(&ctx->lock);
	mutex_destroy(&ctx->bar_lock);
	kfree(ctx);
}

/** vhca_ctx_get() - for an event file, which may outlive the device file */
void vhca_ctx_get(struct vhca_ctx *ctx)
{
	kref_get(&ctx->ref);
}

/** vhca_ctx_put() - the other end of vhca_ctx_get() */
void vhca_ctx_put(struct vhca_ctx *ctx)
{
	kref_put(&ctx->ref, vhca_ctx_free);
}

static void vhca_ctx_init(struct vhca_ctx *ctx, struct vhca_dev *vdev)
{
	ctx->vdev = vdev;
	ctx->uid = current_uid();
	ctx->pid = task_tgid_nr(current);
	get_task_comm(ctx->comm, current->group_leader);
	kref_init(&ctx->ref);
	mutex_init(&ctx->lock);
	mutex_init(&ctx->bar_lock);
	INIT_LIST_HEAD(&ctx->channels);
	INIT_LIST_HEAD(&ctx->asyncs);
	xa_init_flags(&ctx->uars, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->pds, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->mrs, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->mws, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->dms, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->cqs, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->qps, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->srqs, XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->xrcds, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&ctx->bufs, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
}

/* Doorbells there move nobody, and the kick that they ask for says EIO. */
static struct page *vhca_dummy_alloc(void)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	struct vhca_uar_head *head;

	if (page) {
		head = page_address(page);
		head->kick_needed = cpu_to_be32(1);
	}
	return page;
}

static struct vhca_ctx *vhca_ctx_alloc(struct vhca_dev *vdev)
{
	struct vhca_ctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return NULL;
	ctx->dummy = vhca_dummy_alloc();
	if (!ctx->dummy)
		goto err_ctx;
	vhca_ctx_init(ctx, vdev);
	if (!vhca_async_add(ctx))
		goto err_page;
	get_device(&vdev->dev);
	return ctx;

err_page:
	__free_page(ctx->dummy);
err_ctx:
	kfree(ctx);
	return NULL;
}

/* The device's module stays while there is a file. */
static int vhca_ctx_attach(struct vhca_ctx *ctx)
{
	struct vhca_dev *vdev = ctx->vdev;
	int ret = 0;

	mutex_lock(&vdev->ctx_lock);
	if (vhca_dead(vdev)) {
		ret = -EIO;
	} else if (vdev->soft && !try_module_get(vdev->soft->owner)) {
		ret = -ENODEV;
	} else {
		ctx->number = ++vdev->last_ctx;
		spin_lock(&vdev->list_lock);
		list_add_tail(&ctx->node, &vdev->ctxs);
		spin_unlock(&vdev->list_lock);
	}
	mutex_unlock(&vdev->ctx_lock);
	return ret;
}

/** vhca_open() - a new context */
int vhca_open(struct inode *inode, struct file *file)
{
	struct vhca_dev *vdev = container_of(inode->i_cdev, struct vhca_dev, cdev);
	struct vhca_ctx *ctx;
	int ret;

	ctx = vhca_ctx_alloc(vdev);
	if (!ctx)
		return -ENOMEM;
	ctx->mapping = file->f_mapping;
	ret = vhca_charge(ctx, VHCA_KIND_CONTEXT, 1);
	if (!ret)
		ret = vhca_ctx_attach(ctx);
	if (ret) {
		vhca_uncharge_all(ctx);
		__free_page(ctx->dummy);
		vhca_ctx_put(ctx);
		return ret;
	}
	file->private_data = ctx;
	return 0;
}

/*
 * With the context's lock held. May be repeated, with @cmds at most the first
 * time: after a failure only a device that was reset has forgotten everything.
 */
static int vhca_ctx_detach(struct vhca_ctx *ctx, bool cmds)
{
	bool events = !xa_empty(&ctx->qps) || !xa_empty(&ctx->srqs) ||
		      !xa_empty(&ctx->cqs);
	int ret;

	ret = vhca_qps_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_srqs_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_cqs_destroy(ctx, cmds);
	if (ret)
		return ret;
	if (events) {
		/* No handler has one of them in hand; then no work item has. */
		synchronize_rcu();
		flush_work(&ctx->vdev->async_work);
	}
	vhca_qps_quiesce(ctx);
	vhca_srqs_quiesce(ctx);
	vhca_cqs_quiesce(ctx);

	/* A region stays while windows are bound to it. */
	ret = vhca_mws_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_mrs_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_dms_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_xrcds_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_pds_destroy(ctx, cmds);
	if (!ret)
		ret = vhca_uars_destroy(ctx, cmds);
	return ret;
}

static void vhca_ctx_close_events(struct vhca_ctx *ctx)
{
	struct vhca_event_queue *q;

	list_for_each_entry(q, &ctx->channels, node)
		vhca_event_queue_close(q);
	list_for_each_entry(q, &ctx->asyncs, node)
		vhca_event_queue_close(q);
}

static void vhca_ctx_disassociate(struct vhca_ctx *ctx)
{
	struct vhca_event_queue *q;

	mutex_lock(&ctx->lock);
	vhca_ctx_detach(ctx, false);
	list_for_each_entry(q, &ctx->asyncs, node)
		vhca_event_post(q, &q->device[0], BIT(VHCA_EVENT_DEVICE_FATAL));
	vhca_ctx_close_events(ctx);
	mutex_unlock(&ctx->lock);
}

/**
 * vhca_disassociate() - part all contexts from the device; once, then a no-op
 * @vdev: the device; it is reset.
 *
 * Processes keep their files: what they call fails, what they mapped is memory
 * that nobody looks at, and they are told by a device-fatal event.
 */
void vhca_disassociate(struct vhca_dev *vdev)
{
	struct vhca_ctx *ctx;

	/* While the device still answers them. */
	vhca_clients_remove(vdev);
	mutex_lock(&vdev->ctx_lock);
	if (!vdev->disassociated) {
		WRITE_ONCE(vdev->dead, true);
		synchronize_srcu(&vdev->srcu);
		vhca_hw_reset(vdev);
		list_for_each_entry(ctx, &vdev->ctxs, node)
			vhca_ctx_disassociate(ctx);
		vdev->disassociated = true;
	}
	mutex_unlock(&vdev->ctx_lock);
}

/** vhca_fatal_work() - vhca_disassociate() for those who cannot call it */
void vhca_fatal_work(struct work_struct *work)
{
	vhca_disassociate(container_of(work, struct vhca_dev, fatal_work));
}

static void vhca_ctx_destroy(struct vhca_ctx *ctx)
{
	struct vhca_dev *vdev = ctx->vdev;
	int idx, ret;

	idx = srcu_read_lock(&vdev->srcu);
	if (!vhca_dead(vdev)) {
		mutex_lock(&ctx->lock);
		ret = vhca_ctx_detach(ctx, true);
		mutex_unlock(&ctx->lock);
		/* It may still use memory that is ours: reset it. */
		if (ret)
			vhca_set_dead(vdev);
	}
	srcu_read_unlock(&vdev->srcu, idx);
	if (vhca_dead(vdev))
		vhca_disassociate(vdev);

	mutex_lock(&vdev->ctx_lock);
	spin_lock(&vdev->list_lock);
	list_del(&ctx->node);
	spin_unlock(&vdev->list_lock);
	mutex_unlock(&vdev->ctx_lock);
}

/** vhca_release() - last close: everything that the context made goes */
int vhca_release(struct inode *inode, struct file *file)
{
	struct vhca_ctx *ctx = file->private_data;
	struct module *owner = NULL;

	vhca_ctx_destroy(ctx);
	mutex_lock(&ctx->lock);
	vhca_ctx_close_events(ctx);
	vhca_qps_free(ctx);
	vhca_srqs_free(ctx);
	vhca_cqs_free(ctx);
	vhca_mws_free(ctx);
	vhca_mrs_free(ctx);
	vhca_dms_free(ctx);
	vhca_xrcds_free(ctx);
	vhca_pds_free(ctx);
	vhca_uars_free(ctx);
	mutex_unlock(&ctx->lock);
	vhca_uncharge_all(ctx);
	xa_destroy(&ctx->bufs);
	__free_page(ctx->dummy);

	if (ctx->vdev->soft)
		owner = ctx->vdev->soft->owner;
	vhca_ctx_put(ctx);
	module_put(owner);
	return 0;
}
