// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared receive queues. Any number of QPs take WQEs from one, in the order of
 * the ring, each a copy.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "vdev.h"

/* It has a slot for its record; nobody waits for its doorbell. */
static void srq_ring(struct vdev_db *db)
{
}

static u8 srq_init(struct vdev_srq *srq, const struct vhca_cmd_create_srq *in)
{
	u64 dbr = be64_to_cpu(in->dbr);

	srq->pd = be32_to_cpu(in->pd);
	srq->xrcd = be32_to_cpu(in->xrcd);
	srq->limit = be32_to_cpu(in->limit);
	srq->shift = in->shift;
	srq->sge_shift = in->sge_shift;
	if (in->shift > VHCA_RQ_MAX_SHIFT || srq->limit > 1u << in->shift ||
	    !in->sge_shift || in->sge_shift > VHCA_RQ_MAX_SGE_SHIFT ||
	    !srq->xrcd != !in->cqn || !IS_ALIGNED(dbr, VHCA_UAR_SLOT_SIZE) ||
	    memchr_inv(in->rsvd, 0, sizeof(in->rsvd)))
		return VHCA_CMD_BAD_PARAM;
	srq->dbr = vdev_dma(dbr, sizeof(*srq->dbr));
	if (!srq->dbr)
		return VHCA_CMD_BAD_PARAM;
	if (in->cqn) {
		srq->cq = xa_load(&srq->dev->cqs, be32_to_cpu(in->cqn));
		if (!srq->cq)
			return VHCA_CMD_BAD_OBJECT;
	}
	return vdev_buf_map(&srq->buf, be64_to_cpu(in->pages),
			    (size_t)VHCA_WQE_SEG_SIZE << srq->shift << srq->sge_shift);
}

static u8 srq_get_domains(struct vdev *dev, struct vdev_srq *srq)
{
	u8 status = vdev_pd_get(dev, srq->pd);

	if (status || !srq->xrcd)
		return status;
	status = vdev_xrcd_get(dev, srq->xrcd);
	if (status)
		vdev_pd_put(dev, srq->pd);
	return status;
}

static void srq_put_domains(struct vdev *dev, struct vdev_srq *srq)
{
	vdev_pd_put(dev, srq->pd);
	if (srq->xrcd)
		vdev_xrcd_put(dev, srq->xrcd);
}

u8 vdev_create_srq(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_srq *in = &cmd->create_srq;
	struct vdev_srq *srq = kzalloc(sizeof(*srq), GFP_KERNEL_ACCOUNT);
	u8 status;
	int err;

	if (!srq)
		return VHCA_CMD_NO_MEMORY;
	srq->dev = dev;
	srq->serial = ++dev->srq_serial;
	spin_lock_init(&srq->lock);
	srq->db.ring = srq_ring;
	status = srq_init(srq, in);
	if (status)
		goto err_free;
	status = srq_get_domains(dev, srq);
	if (status)
		goto err_buf;
	err = xa_alloc_cyclic(&dev->srqs, &srq->srqn, NULL, XA_LIMIT(1, VDEV_MAX_SRQ),
			      &dev->next_srqn, GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		status = err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
		goto err_domains;
	}
	status = vdev_uar_bind(dev, be32_to_cpu(in->uar), be32_to_cpu(in->slot),
			       &srq->db);
	if (status)
		goto err_erase;
	if (srq->cq)
		srq->cq->users++;
	xa_store(&dev->srqs, srq->srqn, srq, GFP_KERNEL);	/* replaces: no allocation */
	done->number = cpu_to_be32(srq->srqn);
	return VHCA_CMD_OK;

err_erase:
	xa_erase(&dev->srqs, srq->srqn);
err_domains:
	srq_put_domains(dev, srq);
err_buf:
	vdev_buf_unmap(&srq->buf);
err_free:
	kfree(srq);
	return status;
}

static void srq_free(struct vdev *dev, struct vdev_srq *srq)
{
	xa_erase(&dev->srqs, srq->srqn);
	vdev_uar_unbind(&srq->db);
	vdev_wait_unused();
	if (srq->cq) {
		if (vdev_faults())
			vdev_cq_flush(srq->cq, 0, srq->srqn);
		srq->cq->users--;
	}
	srq_put_domains(dev, srq);
	vdev_buf_unmap(&srq->buf);
	kfree(srq);
}

u8 vdev_destroy_srq(struct vdev *dev, const struct vhca_cmd *cmd,
		    struct vhca_cmd_done *done)
{
	struct vdev_srq *srq = vdev_srq_find(dev, be32_to_cpu(cmd->object.number));

	if (!srq)
		return VHCA_CMD_BAD_OBJECT;
	if (srq->users)
		return VHCA_CMD_BUSY;
	srq_free(dev, srq);
	return VHCA_CMD_OK;
}

void vdev_forget_srqs(struct vdev *dev)
{
	struct vdev_srq *srq;
	unsigned long i;

	xa_for_each(&dev->srqs, i, srq)
		srq_free(dev, srq);
}

/* WQEs that are left; more than the ring has: -1. srq->lock held. */
static int srq_left(struct vdev_srq *srq)
{
	/* Index before WQE; pairs with the library's barrier between the two. */
	u16 pi = be32_to_cpu(smp_load_acquire(&srq->dbr->pi));
	u16 n = pi - srq->ci;

	return n <= 1 << srq->shift ? n : -1;
}

/* The event to raise when so many are left, or 0. srq->lock held. */
static u8 srq_event(struct vdev_srq *srq, int left)
{
	if (srq->error)
		return 0;
	if (left < 0) {
		srq->error = true;
		return VHCA_EQE_SRQ_ERR;
	}
	if (left >= srq->limit)
		return 0;
	srq->limit = 0;
	return VHCA_EQE_SRQ_LIMIT;
}

int vdev_srq_take(struct vdev_srq *srq, struct vhca_wqe_data *wqe)
{
	size_t size = sizeof(*wqe) << srq->sge_shift;
	int left, taken = 0;
	u8 event;

	spin_lock(&srq->lock);
	left = srq_left(srq);
	if (left > 0 && !srq->error) {
		vdev_fetch(wqe, srq->buf.addr +
			   (srq->ci & ((1u << srq->shift) - 1)) * size, size);
		srq->ci++;
		left--;
		taken = 1;
	}
	event = srq_event(srq, left);
	if (srq->error)
		taken = -1;
	spin_unlock(&srq->lock);
	if (event)
		vdev_async_event(srq->dev, event, srq->srqn);
	return taken;
}

u8 vdev_modify_srq(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	struct vdev_srq *srq = vdev_srq_find(dev, be32_to_cpu(cmd->modify_srq.srqn));
	u32 limit = be32_to_cpu(cmd->modify_srq.limit);
	u8 event;

	if (!srq)
		return VHCA_CMD_BAD_OBJECT;
	if (limit > 1u << srq->shift)
		return VHCA_CMD_BAD_PARAM;
	spin_lock(&srq->lock);
	srq->limit = limit;
	event = srq_event(srq, srq_left(srq));
	spin_unlock(&srq->lock);
	if (event)
		vdev_async_event(dev, event, srq->srqn);
	return VHCA_CMD_OK;
}

u8 vdev_query_srq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	struct vdev_srq *srq = vdev_srq_find(dev, be32_to_cpu(cmd->object.number));

	if (!srq)
		return VHCA_CMD_BAD_OBJECT;
	spin_lock(&srq->lock);
	done->srq_limit = cpu_to_be32(srq->limit);
	spin_unlock(&srq->lock);
	return VHCA_CMD_OK;
}
