// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event queues, from the side that writes them.
 */
#include <linux/slab.h>

#include "vdev.h"

static struct vdev_eq *eq_get(struct vdev *dev, u32 eqn)
{
	if (eqn >= VDEV_MAX_EQ)
		return NULL;
	return rcu_dereference_protected(dev->eqs[eqn],
					 lockdep_is_held(&dev->admin_lock));
}

struct vdev_eq *vdev_eq_for_cq(struct vdev *dev, u32 eqn)
{
	return eqn ? eq_get(dev, eqn) : NULL;
}

static u8 eq_check(struct vdev *dev, const struct vhca_cmd_create_eq *in)
{
	u32 shift = be32_to_cpu(in->shift);

	if (be32_to_cpu(in->eqn) >= VDEV_MAX_EQ || in->rsvd ||
	    be32_to_cpu(in->vector) >= VHCA_MSIX_VECTORS ||
	    !shift || shift > VDEV_MAX_EQ_SHIFT)
		return VHCA_CMD_BAD_PARAM;
	if (eq_get(dev, be32_to_cpu(in->eqn)))
		return VHCA_CMD_BUSY;
	return VHCA_CMD_OK;
}

u8 vdev_create_eq(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_eq *in = &cmd->create_eq;
	u8 status = eq_check(dev, in);
	struct vdev_eq *eq;

	if (status)
		return status;
	eq = kzalloc(sizeof(*eq), GFP_KERNEL);
	if (!eq)
		return VHCA_CMD_NO_MEMORY;
	eq->dev = dev;
	spin_lock_init(&eq->lock);
	vdev_gate_init(&eq->gate);
	eq->eqn = be32_to_cpu(in->eqn);
	eq->vector = be32_to_cpu(in->vector);
	eq->shift = be32_to_cpu(in->shift);
	status = vdev_buf_map(&eq->buf, be64_to_cpu(in->pages),
			      sizeof(struct vhca_eqe) << eq->shift);
	if (status) {
		kfree(eq);
		return status;
	}
	vdev_reg_write(dev, VHCA_REG_EQ_DB(eq->eqn), 0);
	rcu_assign_pointer(dev->eqs[eq->eqn], eq);
	done->number = in->eqn;
	return VHCA_CMD_OK;
}

static void eq_free(struct vdev *dev, struct vdev_eq *eq)
{
	RCU_INIT_POINTER(dev->eqs[eq->eqn], NULL);
	vdev_wait_unused();
	vdev_gate_free_eq(eq);
	vdev_buf_unmap(&eq->buf);
	kfree(eq);
}

u8 vdev_destroy_eq(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	struct vdev_eq *eq = eq_get(dev, be32_to_cpu(cmd->object.number));

	if (!eq)
		return VHCA_CMD_BAD_OBJECT;
	if (eq->users)
		return VHCA_CMD_BUSY;
	eq_free(dev, eq);
	return VHCA_CMD_OK;
}

void vdev_forget_eqs(struct vdev *dev)
{
	u32 i;

	for (i = 0; i < VDEV_MAX_EQ; i++)
		if (eq_get(dev, i))
			eq_free(dev, eq_get(dev, i));
}

/*
 * Is the EQ armed at a consumer index for which it has not fired yet? The driver
 * may have consumed the newest EQE meanwhile and armed behind it: that arm waits
 * for the next one.
 */
static bool eq_fires(struct vdev_eq *eq)
{
	u32 db = vdev_reg_read(eq->dev, VHCA_REG_EQ_DB(eq->eqn));
	u32 ci = db & VHCA_EQ_DB_CI_MASK;

	if (!(db & VHCA_EQ_DB_ARM) || !((eq->pi - ci) & VHCA_EQ_DB_CI_MASK) ||
	    (eq->fired && ci == eq->fired_ci))
		return false;
	eq->fired = true;
	eq->fired_ci = ci;
	return true;
}

bool vdev_eq_post(struct vdev_eq *eq, u8 type, u32 number)
{
	struct vhca_eqe *ring = eq->buf.addr;
	u32 size = 1u << eq->shift;
	struct vhca_eqe *eqe;
	bool fires;
	u32 ci;

	spin_lock(&eq->lock);
	ci = vdev_reg_read(eq->dev, VHCA_REG_EQ_DB(eq->eqn)) & VHCA_EQ_DB_CI_MASK;
	if (((eq->pi - ci) & VHCA_EQ_DB_CI_MASK) >= size) {
		spin_unlock(&eq->lock);
		return false;
	}
	eqe = &ring[eq->pi & (size - 1)];
	eqe->number = cpu_to_be32(number);
	eqe->type = type;
	/* Owner bit last; pairs with the dma_rmb() in the driver's handler. */
	smp_wmb();
	WRITE_ONCE(eqe->owner, !(eq->pi & size));
	eq->pi++;
	vdev_count(eq->dev, VDEV_EQES);
	/*
	 * EQE before the look at the arm bit; pairs with the barrier between
	 * arming and the second look in the driver's handler.
	 */
	smp_mb();
	/* A message that was to merge with the next one has waited long enough. */
	fires = eq_fires(eq) || eq->msix.merge;
	spin_unlock(&eq->lock);

	if (fires && vdev_faults())
		vdev_gate_msix(eq);
	else if (fires)
		vdev_msix_send(eq->dev, eq->vector);
	return true;
}

void vdev_async_event(struct vdev *dev, u8 type, u32 number)
{
	int idx = srcu_read_lock(&vdev_srcu);
	struct vdev_eq *eq = srcu_dereference(dev->eqs[0], &vdev_srcu);

	if (eq && !vdev_eq_post(eq, type, number))
		dev_warn_ratelimited(&dev->pdev->dev,
				     "async EQ full, event %#x of %#x dropped\n",
				     type, number);
	srcu_read_unlock(&vdev_srcu, idx);
}
