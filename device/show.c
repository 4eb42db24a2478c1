// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects, for reading, under debugfs in show/: without a number one a line; with the
 * number of one, written to the same open file, all about that one: its line, then a
 * line for each entry of its rings. Lines are words key=value.
 *
 * All of it is under admin_lock, so that no object comes or goes meanwhile. It is given
 * up between two pages: who reads slowly keeps nobody waiting, and sees what has changed.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "show.h"

static const char * const qp_types[] = {
	[VHCA_PRM_QPT_RC]	= "RC",
	[VHCA_PRM_QPT_UC]	= "UC",
	[VHCA_PRM_QPT_UD]	= "UD",
	[VHCA_PRM_QPT_XRC_SEND]	= "XRC_SEND",
	[VHCA_PRM_QPT_XRC_RECV]	= "XRC_RECV",
};

static const char * const qp_states[VHCA_QP_STATES] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

static const char * const mkey_kinds[VHCA_MKEY_KINDS] = {
	"memory", "null", "device", "window1", "window2",
};

/**
 * struct show_kind - objects of a kind
 * @name: of the file, and of the number.
 * @next: the first whose number is *@at or more, which is then *@at; or NULL.
 * @line: what its line says behind the number.
 * @entries: entries of all its rings, or NULL.
 * @entry: says one of them; it has a line of its own, or none.
 */
struct show_kind {
	const char		*name;
	void			*(*next)(struct vdev *dev, unsigned long *at);
	void			(*line)(struct seq_file *s, void *object);
	u32			(*entries)(void *object);
	void			(*entry)(struct seq_file *s, void *object, u32 i);
};

/**
 * struct show - an open file
 * @dev: function.
 * @kind: which objects.
 * @one: just this object.
 * @number: which.
 */
struct show {
	struct vdev		*dev;
	const struct show_kind	*kind;
	bool			one;
	unsigned long		number;
};

/* QPs */

static void *next_qp(struct vdev *dev, unsigned long *at)
{
	return xa_find(&dev->qps, at, ULONG_MAX, XA_PRESENT);
}

static u32 cqn_of(const struct vdev_cq *cq)
{
	return cq ? cq->cqn : 0;
}

static void show_sq(struct seq_file *s, const struct vdev_qp *qp)
{
	const struct vdev_send *send = &qp->send;
	u16 pi = vdev_sq_pi(qp);

	seq_printf(s, " sq_size=%u sq_pi=%u sq_ci=%u sq_waiting=%u sq_psn=%u busy=%d",
		   1u << qp->sq_shift, pi, send->ci, (u16)(pi - send->ci), send->psn,
		   send->busy);
	if (send->busy)
		seq_printf(s, " opcode=%s offset=%llu length=%llu",
			   vdev_name_of(VDEV_W_OPCODE, send->opcode), send->offset,
			   send->sgl.length);
	seq_printf(s, " tries=%u rnr_tries=%u timer=%d", send->tries, send->rnr_tries,
		   test_bit(VDEV_QP_WAITING, &qp->flags));
}

static void show_rq(struct seq_file *s, const struct vdev_qp *qp)
{
	u16 pi = vdev_rq_pi(qp);

	seq_printf(s, " rq_size=%u rq_pi=%u rq_ci=%u rq_waiting=%u", 1u << qp->rq_shift, pi,
		   qp->recv.ci, (u16)(pi - qp->recv.ci));
}

static void line_qp(struct seq_file *s, void *object)
{
	struct vdev_qp *qp = object;

	vdev_qp_lock_send(qp);
	mutex_lock(&qp->recv.lock);
	seq_printf(s, " type=%s state=%s pd=%u scq=%u rcq=%u srq=%u xrcd=%u",
		   qp_types[qp->type], qp_states[READ_ONCE(qp->state)], qp->pd,
		   cqn_of(qp->send_cq), cqn_of(qp->recv_cq), qp->srq ? qp->srq->srqn : 0,
		   qp->xrcd);
	seq_printf(s, " peer_lid=%u dest_qp=%u rq_psn=%u in_hand=%d", qp->peer_lid,
		   be32_to_cpu(qp->attr.dest_qpn), qp->recv.psn, qp->recv.held);
	if (vdev_qp_has_sq(qp))
		show_sq(s, qp);
	if (vdev_qp_has_rq(qp))
		show_rq(s, qp);
	seq_printf(s, " held=%d", qp->hold);
	mutex_unlock(&qp->recv.lock);
	vdev_qp_unlock_send(qp);
}

/* CQs */

static void *next_cq(struct vdev *dev, unsigned long *at)
{
	return xa_find(&dev->cqs, at, ULONG_MAX, XA_PRESENT);
}

static void show_arm(struct seq_file *s, const struct vdev_cq *cq)
{
	u32 arm = be32_to_cpu(READ_ONCE(cq->dbr->arm));
	u8 sn = arm >> VHCA_ARM_SN_SHIFT & VHCA_ARM_SN_MASK;
	bool waits = sn == ((cq->fired_sn + 1) & VHCA_ARM_SN_MASK);

	seq_printf(s, " arm=%s arm_seq=%u arm_ci=%u fired_seq=%u",
		   !waits ? "none" : arm & VHCA_ARM_SOLICITED ? "solicited" : "any", sn,
		   arm & VHCA_CI_MASK, cq->fired_sn);
}

static void line_cq(struct seq_file *s, void *object)
{
	struct vdev_cq *cq = object;
	u32 ci = be32_to_cpu(READ_ONCE(cq->dbr->ci)) & VHCA_CI_MASK;

	spin_lock(&cq->lock);
	seq_printf(s, " eq=%u size=%u pi=%u ci=%u unread=%u", cq->eq->eqn, 1u << cq->ring.shift,
		   (u32)cq->pi & VHCA_CI_MASK, ci, vdev_cq_unread(cq));
	show_arm(s, cq);
	seq_printf(s, " count=%u period=%u flags=%#x error=%d starved=%d held=%d pending=%u",
		   cq->count, cq->period, cq->flags, cq->error, READ_ONCE(cq->starved),
		   cq->gate.hold, cq->gate.n);
	spin_unlock(&cq->lock);
}

/* SRQs */

static void *next_srq(struct vdev *dev, unsigned long *at)
{
	return xa_find(&dev->srqs, at, ULONG_MAX, XA_PRESENT);
}

static void line_srq(struct seq_file *s, void *object)
{
	struct vdev_srq *srq = object;
	u16 pi = vdev_srq_pi(srq);

	spin_lock(&srq->lock);
	seq_printf(s, " pd=%u xrcd=%u cq=%u size=%u pi=%u ci=%u waiting=%u limit=%u error=%d",
		   srq->pd, srq->xrcd, cqn_of(srq->cq), 1u << srq->shift, pi, srq->ci,
		   (u16)(pi - srq->ci), srq->limit, srq->error);
	spin_unlock(&srq->lock);
}

/* EQs */

static void *next_eq(struct vdev *dev, unsigned long *at)
{
	struct vdev_eq *eq = NULL;

	for (; *at < VDEV_MAX_EQ && !eq; ++*at)
		eq = rcu_dereference_protected(dev->eqs[*at],
					       lockdep_is_held(&dev->admin_lock));
	if (eq)
		*at = eq->eqn;
	return eq;
}

static void line_eq(struct seq_file *s, void *object)
{
	struct vdev_eq *eq = object;
	u32 db = vdev_reg_read(eq->dev, VHCA_REG_EQ_DB(eq->eqn));
	u32 ci = db & VHCA_EQ_DB_CI_MASK;

	spin_lock(&eq->lock);
	seq_printf(s, " vector=%u size=%u pi=%u ci=%u unread=%u armed=%d", eq->vector,
		   1u << eq->shift, eq->pi & VHCA_EQ_DB_CI_MASK, ci, vdev_eq_unread(eq),
		   db & VHCA_EQ_DB_ARM && !(eq->fired && eq->fired_ci == ci));
	seq_printf(s, " held=%d pending=%u msix_held=%d msix_pending=%d", eq->gate.hold,
		   eq->gate.n, eq->msix.hold, !!eq->msix.order);
	spin_unlock(&eq->lock);
}

/* Memory regions and windows */

static void *next_mr(struct vdev *dev, unsigned long *at)
{
	unsigned long index = *at >> 8;
	struct vdev_mkey *mkey;

	mkey = xa_find(&dev->mkeys, &index, ULONG_MAX, XA_PRESENT);
	if (mkey && mkey->key < *at) {
		index++;
		mkey = xa_find(&dev->mkeys, &index, ULONG_MAX, XA_PRESENT);
	}
	if (mkey)
		*at = mkey->key;
	return mkey;
}

static void line_mr(struct seq_file *s, void *object)
{
	struct vdev_mkey *mkey = object;

	seq_printf(s, " kind=%s pd=%u access=%#x iova=%#llx length=%llu", mkey_kinds[mkey->kind],
		   mkey->pd, mkey->access, mkey->iova, mkey->length);
	if (vdev_mkey_is_window(mkey))
		seq_printf(s, " of=%#x", mkey->mr ? mkey->mr->key : 0);
	else
		seq_printf(s, " windows=%d", atomic_read(&mkey->windows));
}

static const struct show_kind kinds[] = {
	{ "qp", next_qp, line_qp, vdev_qp_entries, vdev_qp_entry_show },
	{ "cq", next_cq, line_cq, vdev_cq_entries, vdev_cq_entry_show },
	{ "srq", next_srq, line_srq, vdev_srq_entries, vdev_srq_entry_show },
	{ "eq", next_eq, line_eq, vdev_eq_entries, vdev_eq_entry_show },
	{ "mr", next_mr, line_mr },
};

/* Files */

/* What is at *@pos: an object, of which it is the number then, or of one object an entry. */
static void *show_find(struct show *show, loff_t *pos)
{
	const struct show_kind *kind = show->kind;
	unsigned long at = show->one ? show->number : *pos;
	void *object = kind->next(show->dev, &at);

	if (!object)
		return NULL;
	if (!show->one) {
		*pos = at;
		return object;
	}
	if (at != show->number || *pos > (kind->entries ? kind->entries(object) : 0))
		return NULL;
	return object;
}

static void *show_start(struct seq_file *s, loff_t *pos)
{
	struct show *show = s->private;

	mutex_lock(&show->dev->admin_lock);
	return show_find(show, pos);
}

static void *show_next(struct seq_file *s, void *object, loff_t *pos)
{
	++*pos;
	return show_find(s->private, pos);
}

static void show_stop(struct seq_file *s, void *object)
{
	struct show *show = s->private;

	mutex_unlock(&show->dev->admin_lock);
}

/* seq_file keeps in s->index where we are. */
static int show_show(struct seq_file *s, void *object)
{
	struct show *show = s->private;
	const struct show_kind *kind = show->kind;
	unsigned long number = show->one ? show->number : s->index;

	if (show->one && s->index) {
		kind->entry(s, object, s->index - 1);
		return 0;
	}
	seq_printf(s, kind->next == next_mr ? "%s=%#lx" : "%s=%lu", kind->name, number);
	kind->line(s, object);
	seq_putc(s, '\n');
	return 0;
}

static const struct seq_operations show_ops = {
	.start	= show_start,
	.next	= show_next,
	.stop	= show_stop,
	.show	= show_show,
};

static int show_open(struct inode *inode, struct file *file)
{
	/* The directory has the function, the file its kind. */
	const struct show_kind *kind = inode->i_private;
	struct vdev *dev = d_inode(file->f_path.dentry->d_parent)->i_private;
	struct show *show = __seq_open_private(file, &show_ops, sizeof(*show));

	if (!show)
		return -ENOMEM;
	show->dev = dev;
	show->kind = kind;
	return 0;
}

/* The number of an object. What is read next begins with it. */
static ssize_t show_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	struct seq_file *s = file->private_data;
	struct show *show = s->private;
	u32 number;
	int ret = kstrtou32_from_user(buf, count, 0, &number);

	if (ret)
		return ret;
	mutex_lock(&s->lock);
	show->one = true;
	show->number = number;
	mutex_unlock(&s->lock);
	*pos = 0;
	return count;
}

static const struct file_operations show_fops = {
	.owner		= THIS_MODULE,
	.open		= show_open,
	.read		= seq_read,
	.write		= show_write,
	.llseek		= seq_lseek,
	.release	= seq_release_private,
};

void vdev_show_add(struct vdev *dev, struct dentry *parent)
{
	struct dentry *dir = debugfs_create_dir("show", parent);
	unsigned int i;

	if (IS_ERR(dir))
		return;
	d_inode(dir)->i_private = dev;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		debugfs_create_file(kinds[i].name, 0600, dir, (void *)&kinds[i], &show_fops);
}
