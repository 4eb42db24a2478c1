// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects as the driver knows them, for reading, under debugfs in show/: one a line,
 * of words key=value; whose they are, and what of theirs is pinned or unread. After the
 * number of one was written to the open file, only that one.
 *
 * The files have the names of those that the virtual HCA shows of the same objects, and
 * begin with the same number.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "vhca.h"

/**
 * struct vhca_show_kind - objects of a kind
 * @name: of the file.
 * @number: how its line begins.
 * @show: those of a context, which is locked.
 */
struct vhca_show_kind {
	const char *name;
	const char *number;
	void (*show)(struct seq_file *m, struct vhca_ctx *ctx);
};

/**
 * struct vhca_show - an open file
 * @vdev: the device.
 * @kind: which objects.
 * @one: just this one.
 * @number: which.
 */
struct vhca_show {
	struct vhca_dev *vdev;
	const struct vhca_show_kind *kind;
	bool one;
	u32 number;
};

/* Is the object wanted? Then its line begins. */
static bool vhca_show_begin(struct seq_file *m, const struct vhca_ctx *ctx, u32 number)
{
	const struct vhca_show *show = m->private;
	const char *at;

	if (show->one && show->number != number)
		return false;
	seq_printf(m, show->kind->number, number);
	seq_printf(m, " uid=%u pid=%d comm=\"",
		   from_kuid(&init_user_ns, ctx->uid), ctx->pid);
	for (at = ctx->comm; *at; at++) {
		if (*at == '"' || *at == '\\')
			seq_putc(m, '\\');
		seq_putc(m, *at == '\n' ? ' ' : *at);
	}
	seq_printf(m, "\" context=%u", ctx->number);
	return true;
}

static unsigned long vhca_show_bytes(const struct vhca_charge *charge)
{
	return charge->mm ? charge->npages << PAGE_SHIFT : 0;
}

static void vhca_show_event(struct seq_file *m, const char *name, struct vhca_event_queue *q,
			    const struct vhca_event *ev)
{
	spin_lock_irq(&q->wait.lock);
	seq_printf(m, " %sevents_queued=%u %sevents_read=%u", name,
		   (unsigned int)hweight_long(ev->types), name, ev->reads);
	spin_unlock_irq(&q->wait.lock);
}

static u32 vhca_show_cqn(const struct vhca_cq *cq)
{
	return cq ? cq->number : 0;
}

static void vhca_show_qps(struct seq_file *m, struct vhca_ctx *ctx)
{
	struct vhca_qp *qp;
	unsigned long i;

	xa_for_each(&ctx->qps, i, qp) {
		if (!vhca_show_begin(m, ctx, qp->hw->number))
			continue;
		seq_printf(m, " cookie=%#llx pd=%u scq=%u rcq=%u srq=%u slot=%u mcast=%u",
			   qp->async.event.cookie, qp->pd ? qp->pd->number : 0,
			   vhca_show_cqn(qp->send_cq), vhca_show_cqn(qp->recv_cq),
			   qp->srq ? qp->srq->number : 0, qp->slot, qp->mcast);
		vhca_show_event(m, "async_", qp->async.queue, &qp->async.event);
		seq_printf(m, " pinned=%lu\n", qp->buf ? vhca_show_bytes(&qp->buf->charge) : 0);
	}
}

static void vhca_show_cqs(struct seq_file *m, struct vhca_ctx *ctx)
{
	struct vhca_cq *cq;
	unsigned long i;

	xa_for_each(&ctx->cqs, i, cq) {
		if (!vhca_show_begin(m, ctx, cq->number))
			continue;
		seq_printf(m, " cookie=%#llx eq=%u users=%u slot=%u channel=%u",
			   cq->event.cookie, cq->eq->eqn, cq->users, cq->slot,
			   cq->channel ? cq->channel->number : 0);
		if (cq->channel)
			vhca_show_event(m, "", cq->channel, &cq->event);
		vhca_show_event(m, "async_", cq->async.queue, &cq->async.event);
		seq_printf(m, " pinned=%lu\n", vhca_show_bytes(&cq->buf->charge));
	}
}

static void vhca_show_mrs(struct seq_file *m, struct vhca_ctx *ctx)
{
	struct vhca_mr *mr;
	unsigned long i;

	xa_for_each(&ctx->mrs, i, mr) {
		if (!vhca_show_begin(m, ctx, mr->key))
			continue;
		seq_printf(m, " pd=%u addr=%#llx length=%llu iova=%#llx access=%#x pinned=%lu\n",
			   mr->pd->number, mr->addr, mr->length, mr->iova, mr->access,
			   mr->mem ? vhca_show_bytes(&mr->mem->charge) : 0);
	}
}

static void vhca_show_channels(struct seq_file *m, struct vhca_ctx *ctx)
{
	struct vhca_event_queue *q;
	struct vhca_event *ev;
	unsigned int n;

	list_for_each_entry(q, &ctx->channels, node) {
		if (!vhca_show_begin(m, ctx, q->number))
			continue;
		n = 0;
		spin_lock_irq(&q->wait.lock);
		list_for_each_entry(ev, &q->pending, node)
			n++;
		spin_unlock_irq(&q->wait.lock);
		seq_printf(m, " cqs=%u events_queued=%u closed=%d\n", q->users, n,
			   READ_ONCE(q->closed));
	}
}

static const struct vhca_show_kind vhca_show_kinds[] = {
	{ "qp", "qp=%u", vhca_show_qps },
	{ "cq", "cq=%u", vhca_show_cqs },
	{ "mr", "mr=%#x", vhca_show_mrs },
	{ "channel", "channel=%u", vhca_show_channels },
};

static int vhca_show_all(struct seq_file *m, void *unused)
{
	struct vhca_show *show = m->private;
	struct vhca_ctx *ctx;

	mutex_lock(&show->vdev->ctx_lock);
	list_for_each_entry(ctx, &show->vdev->ctxs, node) {
		mutex_lock(&ctx->lock);
		/* Detached contexts have objects that are of no device. */
		if (!show->vdev->disassociated)
			show->kind->show(m, ctx);
		mutex_unlock(&ctx->lock);
	}
	mutex_unlock(&show->vdev->ctx_lock);
	return 0;
}

static int vhca_show_open(struct inode *inode, struct file *file)
{
	struct vhca_show *show = kzalloc(sizeof(*show), GFP_KERNEL);
	int ret;

	if (!show)
		return -ENOMEM;
	/* The directory has the device, the file its kind. */
	show->vdev = d_inode(file->f_path.dentry->d_parent)->i_private;
	show->kind = inode->i_private;
	ret = single_open(file, vhca_show_all, show);
	if (ret)
		kfree(show);
	return ret;
}

static int vhca_show_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	kfree(m->private);
	return single_release(inode, file);
}

/* The number of an object. What is read next begins with it. */
static ssize_t vhca_show_write(struct file *file, const char __user *buf, size_t count,
			       loff_t *pos)
{
	struct seq_file *m = file->private_data;
	struct vhca_show *show = m->private;
	u32 number;
	int ret = kstrtou32_from_user(buf, count, 0, &number);

	if (ret)
		return ret;
	mutex_lock(&m->lock);
	show->one = true;
	show->number = number;
	mutex_unlock(&m->lock);
	*pos = 0;
	return count;
}

static const struct file_operations vhca_show_fops = {
	.owner		= THIS_MODULE,
	.open		= vhca_show_open,
	.read		= seq_read,
	.write		= vhca_show_write,
	.llseek		= seq_lseek,
	.release	= vhca_show_release,
};

/** vhca_show_add() - the files in a device's directory */
void vhca_show_add(struct vhca_dev *vdev, struct dentry *parent)
{
	struct dentry *dir = debugfs_create_dir("show", parent);
	unsigned int i;

	if (IS_ERR(dir))
		return;
	d_inode(dir)->i_private = vdev;
	for (i = 0; i < ARRAY_SIZE(vhca_show_kinds); i++)
		debugfs_create_file(vhca_show_kinds[i].name, 0600, dir,
				    (void *)&vhca_show_kinds[i], &vhca_show_fops);
}
