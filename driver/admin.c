// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admin queue: commands to the device and their answers.
 *
 * A caller waits on its own stack for the answer that carries its tag. Whoever
 * looks at the ring, the interrupt handler or a caller, hands out all answers
 * that are there.
 */
#include <linux/dma-mapping.h>

#include "vhca.h"

/** vhca_admin_init() - rings in DMA memory; the registers are not written */
int vhca_admin_init(struct vhca_dev *vdev)
{
	struct vhca_admin *adm = &vdev->admin;
	struct device *dma = &vdev->pdev->dev;

	raw_spin_lock_init(&adm->lock);
	mutex_init(&adm->caller);
	sema_init(&adm->slots, VHCA_ADMIN_ENTRIES);
	adm->sq = dma_alloc_coherent(dma, VHCA_ADMIN_ENTRIES * sizeof(*adm->sq),
				     &adm->sq_dma, GFP_KERNEL);
	adm->cq = dma_alloc_coherent(dma, VHCA_ADMIN_ENTRIES * sizeof(*adm->cq),
				     &adm->cq_dma, GFP_KERNEL);
	if (adm->sq && adm->cq)
		return 0;
	vhca_admin_free(vdev);
	return -ENOMEM;
}

/** vhca_admin_free() - the device is reset or was never started */
void vhca_admin_free(struct vhca_dev *vdev)
{
	struct vhca_admin *adm = &vdev->admin;
	struct device *dma = &vdev->pdev->dev;

	if (adm->sq)
		dma_free_coherent(dma, VHCA_ADMIN_ENTRIES * sizeof(*adm->sq),
				  adm->sq, adm->sq_dma);
	if (adm->cq)
		dma_free_coherent(dma, VHCA_ADMIN_ENTRIES * sizeof(*adm->cq),
				  adm->cq, adm->cq_dma);
	adm->sq = NULL;
	adm->cq = NULL;
}

static void vhca_admin_answer(struct vhca_dev *vdev,
			      const struct vhca_cmd_done *done)
{
	struct vhca_admin *adm = &vdev->admin;
	u32 tag = be32_to_cpu(done->tag);
	struct vhca_cmd_wait **slot = &adm->wait[tag % VHCA_ADMIN_ENTRIES];
	struct vhca_cmd_wait *wait = *slot;

	if (!wait || wait->tag != tag)
		return;		/* its caller gave up */
	*slot = NULL;
	wait->done = *done;
	complete(&wait->completion);
}

/** vhca_admin_poll() - hand out the answers that are there; any context */
void vhca_admin_poll(struct vhca_dev *vdev)
{
	struct vhca_admin *adm = &vdev->admin;
	struct vhca_cmd_done *done;
	unsigned long flags;
	u8 owner;

	raw_spin_lock_irqsave(&adm->lock, flags);
	for (;;) {
		done = &adm->cq[adm->ci % VHCA_ADMIN_ENTRIES];
		owner = ~(adm->ci >> VHCA_ADMIN_SHIFT) & 1;
		if ((READ_ONCE(done->owner) & 1) != owner)
			break;
		/* Pairs with the device's order of the entry, then its owner bit. */
		dma_rmb();
		vhca_admin_answer(vdev, done);
		adm->ci++;
	}
	raw_spin_unlock_irqrestore(&adm->lock, flags);
}

static void vhca_admin_post(struct vhca_dev *vdev, struct vhca_cmd *cmd,
			    struct vhca_cmd_wait *wait)
{
	struct vhca_admin *adm = &vdev->admin;
	unsigned long flags;

	raw_spin_lock_irqsave(&adm->lock, flags);
	wait->tag = adm->pi;
	cmd->tag = cpu_to_be32(wait->tag);
	adm->sq[adm->pi % VHCA_ADMIN_ENTRIES] = *cmd;
	adm->wait[adm->pi % VHCA_ADMIN_ENTRIES] = wait;
	adm->pi++;
	/* The command before the doorbell that makes the device read it. */
	dma_wmb();
	vhca_write(vdev, VHCA_REG_ASQ_DB, adm->pi);
	raw_spin_unlock_irqrestore(&adm->lock, flags);
}

/* No answer, and maybe never one: the stack that it would go to is leaving. */
static void vhca_admin_give_up(struct vhca_dev *vdev,
			       struct vhca_cmd_wait *wait)
{
	struct vhca_admin *adm = &vdev->admin;
	u32 i = wait->tag % VHCA_ADMIN_ENTRIES;
	unsigned long flags;

	raw_spin_lock_irqsave(&adm->lock, flags);
	if (adm->wait[i] == wait)
		adm->wait[i] = NULL;
	raw_spin_unlock_irqrestore(&adm->lock, flags);
}

/* Will it never answer? It failed, or was reset because it did not answer somebody else. */
static bool vhca_admin_hopeless(struct vhca_dev *vdev)
{
	u32 status = vhca_read(vdev, VHCA_REG_STATUS);

	return status & VHCA_STATUS_FATAL ||
	       (vhca_dead(vdev) && !(status & VHCA_STATUS_READY));
}

/*
 * The ring is looked at also without an interrupt: before EQ 0 exists nothing
 * else does, and later it makes a masked vector a delay and not a failure.
 */
static int vhca_admin_wait(struct vhca_dev *vdev, struct vhca_cmd_wait *wait)
{
	unsigned long deadline = jiffies + VHCA_TIMEOUT;
	unsigned long slice = READ_ONCE(vdev->admin.events) ? HZ : 1;

	for (;;) {
		vhca_admin_poll(vdev);
		if (wait_for_completion_timeout(&wait->completion, slice))
			return 0;
		if (time_after(jiffies, deadline) || vhca_admin_hopeless(vdev))
			break;
	}
	vhca_admin_give_up(vdev, wait);
	/* Answered between the last look and giving up? */
	return try_wait_for_completion(&wait->completion) ? 0 : -EIO;
}

static int vhca_cmd_errno(u8 status)
{
	switch (status) {
	case VHCA_CMD_OK:
		return 0;
	case VHCA_CMD_BAD_OPCODE:
		return -EOPNOTSUPP;
	case VHCA_CMD_BAD_PARAM:
	case VHCA_CMD_BAD_OBJECT:
	case VHCA_CMD_BAD_STATE:
		return -EINVAL;
	case VHCA_CMD_BUSY:
		return -EBUSY;
	case VHCA_CMD_NO_RESOURCE:
	case VHCA_CMD_NO_MEMORY:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

/**
 * vhca_cmd() - execute an admin command; sleeps
 * @vdev: device that is not reset while this runs.
 * @opcode: enum vhca_cmd_opcode.
 * @cmd: the command, filled in but for the opcode; the tag is written here.
 * @done: the answer, or NULL.
 *
 * A device that does not answer within VHCA_TIMEOUT is declared dead.
 *
 * Return: 0, an errno that stands for the status, or -EIO.
 */
int vhca_cmd(struct vhca_dev *vdev, u16 opcode, struct vhca_cmd *cmd,
	     struct vhca_cmd_done *done)
{
	struct vhca_cmd_wait wait;
	int ret;

	cmd->opcode = cpu_to_be16(opcode);
	memset(&wait.done, 0, sizeof(wait.done));
	init_completion(&wait.completion);

	down(&vdev->admin.slots);
	ret = -EIO;
	if (!vhca_dead(vdev)) {
		/*
		 * A device in software executes the command here, and charges what
		 * it allocates to the caller: to no other caller, then.
		 */
		mutex_lock(&vdev->admin.caller);
		vhca_admin_post(vdev, cmd, &wait);
		vhca_soft_registers(vdev);
		mutex_unlock(&vdev->admin.caller);
		ret = vhca_admin_wait(vdev, &wait);
		if (ret) {
			dev_err(&vdev->dev, "command %#x was not answered\n",
				opcode);
			vhca_set_dead(vdev);
			/* The caller is about to free what the command names. */
			vhca_hw_reset(vdev);
		}
	}
	up(&vdev->admin.slots);
	if (ret)
		return ret;

	if (done)
		*done = wait.done;
	ret = vhca_cmd_errno(wait.done.status);
	if (ret)
		dev_dbg_ratelimited(&vdev->dev, "command %#x: status %u\n",
				    opcode, wait.done.status);
	return ret;
}

/** vhca_cmd_number() - a command that names an object and says no more */
int vhca_cmd_number(struct vhca_dev *vdev, u16 opcode, u32 number)
{
	struct vhca_cmd cmd = { .object.number = cpu_to_be32(number) };

	return vhca_cmd(vdev, opcode, &cmd, NULL);
}

/**
 * vhca_cmd_undo() - take back an object whose creation goes no further
 * @vdev: the device.
 * @opcode: destroys it.
 * @number: of the object.
 *
 * The caller then frees what the object used. A device that does not let go of
 * it is reset.
 */
void vhca_cmd_undo(struct vhca_dev *vdev, u16 opcode, u32 number)
{
	if (!vhca_cmd_number(vdev, opcode, number))
		return;
	vhca_set_dead(vdev);
	vhca_hw_reset(vdev);
}
