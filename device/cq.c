// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues, from the side that writes them, and their events.
 *
 * User space writes the ring, the consumer index and the arm word as it likes.
 * The device never reads a CQE; a wrong consumer index makes its own CQ
 * overrun, a wrong arm word gives or costs its own channel an event.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "vdev.h"

static void cq_ring(struct vdev_db *db);

static u8 cq_init(struct vdev_cq *cq, const struct vhca_cmd_create_cq *in)
{
	u64 dbr = be64_to_cpu(in->dbr);

	cq->shift = be32_to_cpu(in->shift);
	if (cq->shift > VHCA_CQ_MAX_SHIFT ||
	    !IS_ALIGNED(dbr, VHCA_UAR_SLOT_SIZE))
		return VHCA_CMD_BAD_PARAM;
	cq->dbr = vdev_dma(dbr, sizeof(*cq->dbr));
	if (!cq->dbr)
		return VHCA_CMD_BAD_PARAM;
	cq->eq = vdev_eq_for_cq(cq->dev, be32_to_cpu(in->eqn));
	if (!cq->eq)
		return VHCA_CMD_BAD_OBJECT;
	return vdev_buf_map(&cq->buf, be64_to_cpu(in->pages),
			    (size_t)VHCA_CQE_SIZE << cq->shift);
}

u8 vdev_create_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_cq *in = &cmd->create_cq;
	struct vdev_cq *cq;
	int err;
	u8 status;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return VHCA_CMD_NO_MEMORY;
	cq->dev = dev;
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->starved);
	cq->db.ring = cq_ring;
	status = cq_init(cq, in);
	if (status)
		goto err_free;
	err = xa_alloc_cyclic(&dev->cqs, &cq->cqn, cq, XA_LIMIT(1, VDEV_MAX_CQ),
			      &dev->next_cqn, GFP_KERNEL);
	if (err < 0) {
		status = err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
		goto err_buf;
	}
	status = vdev_uar_bind(dev, be32_to_cpu(in->uar), be32_to_cpu(in->slot),
			       &cq->db);
	if (status)
		goto err_erase;
	cq->eq->users++;
	done->number = cpu_to_be32(cq->cqn);
	return VHCA_CMD_OK;

err_erase:
	xa_erase(&dev->cqs, cq->cqn);
err_buf:
	vdev_buf_unmap(&cq->buf);
err_free:
	kfree(cq);
	return status;
}

static void cq_free(struct vdev *dev, struct vdev_cq *cq)
{
	xa_erase(&dev->cqs, cq->cqn);
	vdev_uar_unbind(&cq->db);
	vdev_engine_drop_cq(cq);
	synchronize_srcu_expedited(&vdev_srcu);
	cq->eq->users--;
	vdev_buf_unmap(&cq->buf);
	kfree(cq);
}

u8 vdev_destroy_cq(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	struct vdev_cq *cq = xa_load(&dev->cqs, be32_to_cpu(cmd->object.number));

	if (!cq)
		return VHCA_CMD_BAD_OBJECT;
	if (cq->users)
		return VHCA_CMD_BUSY;
	cq_free(dev, cq);
	return VHCA_CMD_OK;
}

void vdev_forget_cqs(struct vdev *dev)
{
	struct vdev_cq *cq;
	unsigned long i;

	xa_for_each(&dev->cqs, i, cq)
		cq_free(dev, cq);
}

/* CQEs written since consumer index @ci, modulo 2^24. */
static u32 cq_beyond(u32 pi, u32 ci)
{
	return (pi - ci) & VHCA_CI_MASK;
}

/*
 * Does the arm word wait for a CQE that is there? Then it has fired. cq->lock held.
 *
 * It carries the number that follows the arm which fired last, and a consumer
 * index that the newest CQE it waits for lies beyond. A CQE that was consumed
 * before the CQ was armed is none of those, however late we look.
 */
static bool cq_fires(struct vdev_cq *cq)
{
	u32 arm = be32_to_cpu(READ_ONCE(cq->dbr->arm));
	u8 sn = arm >> VHCA_ARM_SN_SHIFT & VHCA_ARM_SN_MASK;
	u8 next_sn = (cq->fired_sn + 1) & VHCA_ARM_SN_MASK;
	u32 newest = arm & VHCA_ARM_SOLICITED ? cq->solicited_pi : cq->pi;

	/* At most the ring's size is unread; more means that newest is behind it. */
	if (sn != next_sn || cq_beyond(newest, arm & VHCA_CI_MASK) - 1 >= 1u << cq->shift)
		return false;
	cq->fired_sn = next_sn;
	return true;
}

static void cq_event(struct vdev_cq *cq)
{
	if (!vdev_cq_retry_event(cq))
		vdev_engine_queue_cq(cq);
}

bool vdev_cq_retry_event(struct vdev_cq *cq)
{
	return vdev_eq_post(cq->eq, VHCA_EQE_COMP, cq->cqn);
}

/*
 * The CQ's doorbell: user space found a CQE when it armed. Raise the event now
 * if there is one that the arm waits for.
 */
static void cq_ring(struct vdev_db *db)
{
	struct vdev_cq *cq = container_of(db, struct vdev_cq, db);
	bool fires;

	spin_lock(&cq->lock);
	fires = cq_fires(cq);
	spin_unlock(&cq->lock);
	if (fires)
		cq_event(cq);
}

/* Write @cqe to the next slot, its last eight bytes, with the owner bit, last. */
static void cq_write(struct vdev_cq *cq, struct vhca_cqe *cqe)
{
	u32 size = 1u << cq->shift;
	u64 *to = cq->buf.addr + (size_t)(cq->pi & (size - 1)) * VHCA_CQE_SIZE;
	const u64 *from = (const u64 *)cqe;
	unsigned int i;

	cqe->timestamp = cpu_to_be64(ktime_get_ns());
	cqe->owner = !(cq->pi & size);
	for (i = 4; i < 7; i++)
		to[i] = from[i];
	/*
	 * Payload and CQE before the owner bit; pairs with the library's read
	 * barrier behind its look at the owner bit.
	 */
	smp_wmb();
	WRITE_ONCE(to[7], from[7]);
	cq->pi++;
}

static bool cq_full(struct vdev_cq *cq)
{
	u32 ci = be32_to_cpu(READ_ONCE(cq->dbr->ci)) & VHCA_CI_MASK;

	return cq_beyond(cq->pi, ci) >= 1u << cq->shift;
}

static void cq_overrun(struct vdev_cq *cq)
{
	vdev_count(cq->dev, VDEV_OVERRUNS);
	vdev_async_event(cq->dev, VHCA_EQE_CQ_ERR, cq->cqn);
	vdev_qp_fail_cq(cq);
}

bool vdev_cq_post(struct vdev_cq *cq, struct vhca_cqe *cqe)
{
	bool solicited = cqe->status != VHCA_CQE_SUCCESS ||
			 be32_to_cpu(cqe->flags_qpn) >> VHCA_CQE_FLAGS_SHIFT &
			 VHCA_CQE_F_SOLICITED;
	bool fires;

	spin_lock(&cq->lock);
	if (cq->error) {
		spin_unlock(&cq->lock);
		return false;
	}
	if (cq_full(cq)) {
		WRITE_ONCE(cq->error, true);
		spin_unlock(&cq->lock);
		cq_overrun(cq);
		return false;
	}
	cq_write(cq, cqe);
	if (solicited)
		cq->solicited_pi = cq->pi;
	vdev_count(cq->dev, VDEV_CQES);
	/*
	 * CQE before the look at the arm word; pairs with the library's barrier
	 * between the arm word and its look at the next CQE.
	 */
	smp_mb();
	fires = cq_fires(cq);
	spin_unlock(&cq->lock);
	if (fires)
		cq_event(cq);
	return true;
}
