/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is shown of objects, and how their rings are read for it.
 */
#ifndef VDEV_SHOW_H
#define VDEV_SHOW_H

#include "vdev.h"

struct dentry;
struct seq_file;

/* show.c */

/** vdev_show_add() - the files of a function's directory */
void vdev_show_add(struct vdev *dev, struct dentry *parent);

/* show_ring.c */

/* Producer indices, as software has them. */
static inline u16 vdev_sq_pi(const struct vdev_qp *qp)
{
	return be32_to_cpu(READ_ONCE(qp->dbr->sq_pi));
}

static inline u16 vdev_rq_pi(const struct vdev_qp *qp)
{
	return be32_to_cpu(READ_ONCE(qp->dbr->rq_pi));
}

static inline u16 vdev_srq_pi(const struct vdev_srq *srq)
{
	return be32_to_cpu(READ_ONCE(srq->dbr->pi));
}

/* Written and not consumed by software, if it tells the truth. */
static inline u32 vdev_cq_unread(const struct vdev_cq *cq)
{
	return (cq->pi - be32_to_cpu(READ_ONCE(cq->dbr->ci))) & VHCA_CI_MASK;
}

static inline u32 vdev_eq_unread(struct vdev_eq *eq)
{
	return (eq->pi - vdev_reg_read(eq->dev, VHCA_REG_EQ_DB(eq->eqn))) & VHCA_EQ_DB_CI_MASK;
}

/*
 * How many entries the rings of an object have, and the line of one. The caller holds
 * admin_lock, and no other.
 */
u32 vdev_qp_entries(void *object);
void vdev_qp_entry_show(struct seq_file *s, void *object, u32 i);
u32 vdev_cq_entries(void *object);
void vdev_cq_entry_show(struct seq_file *s, void *object, u32 i);
u32 vdev_srq_entries(void *object);
void vdev_srq_entry_show(struct seq_file *s, void *object, u32 i);
u32 vdev_eq_entries(void *object);
void vdev_eq_entry_show(struct seq_file *s, void *object, u32 i);

#endif
