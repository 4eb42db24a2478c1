// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers of BAR0 and the admin queue.
 *
 * The driver can write anything to BAR0 and to the rings at any time. A command
 * is copied once, and the copy is checked and used.
 */
#include <linux/sched.h>

#include "vdev.h"

/**
 * struct admin_op - how a command is executed
 * @fn: does it.
 * @size: bytes of input that it takes; the rest of the command must be zero.
 */
struct admin_op {
	vdev_cmd_fn	fn;
	size_t		size;
};

/* Input of the commands that take a number and no index. */
#define NUMBER	offsetof(struct vhca_cmd_object, index)

static const struct admin_op admin_ops[] = {
	[VHCA_CMD_QUERY_PORT]	= { vdev_query_port, sizeof(struct vhca_cmd_object) },
	[VHCA_CMD_QUERY_GID]	= { vdev_query_gid, sizeof(struct vhca_cmd_object) },
	[VHCA_CMD_QUERY_PKEY]	= { vdev_query_pkey, sizeof(struct vhca_cmd_object) },
	[VHCA_CMD_CREATE_EQ]	= { vdev_create_eq, sizeof(struct vhca_cmd_create_eq) },
	[VHCA_CMD_DESTROY_EQ]	= { vdev_destroy_eq, NUMBER },
	[VHCA_CMD_ALLOC_UAR]	= { vdev_alloc_uar, NUMBER },
	[VHCA_CMD_FREE_UAR]	= { vdev_free_uar, NUMBER },
	[VHCA_CMD_ALLOC_PD]	= { vdev_alloc_pd, 0 },
	[VHCA_CMD_FREE_PD]	= { vdev_free_pd, NUMBER },
	[VHCA_CMD_CREATE_MKEY]	= { vdev_create_mkey, sizeof(struct vhca_cmd_create_mkey) },
	[VHCA_CMD_DESTROY_MKEY]	= { vdev_destroy_mkey, NUMBER },
	[VHCA_CMD_ALLOC_DM]	= { vdev_alloc_dm, sizeof(struct vhca_cmd_alloc_dm) },
	[VHCA_CMD_FREE_DM]	= { vdev_free_dm, NUMBER },
	[VHCA_CMD_CREATE_CQ]	= { vdev_create_cq, sizeof(struct vhca_cmd_create_cq) },
	[VHCA_CMD_DESTROY_CQ]	= { vdev_destroy_cq, NUMBER },
	[VHCA_CMD_RESIZE_CQ]	= { vdev_resize_cq, sizeof(struct vhca_cmd_resize_cq) },
	[VHCA_CMD_MODIFY_CQ]	= { vdev_modify_cq, sizeof(struct vhca_cmd_modify_cq) },
	[VHCA_CMD_CREATE_QP]	= { vdev_create_qp, sizeof(struct vhca_cmd_create_qp) },
	[VHCA_CMD_MODIFY_QP]	= { vdev_modify_qp, sizeof(struct vhca_cmd_modify_qp) },
	[VHCA_CMD_QUERY_QP]	= { vdev_query_qp, NUMBER },
	[VHCA_CMD_DESTROY_QP]	= { vdev_destroy_qp, NUMBER },
	[VHCA_CMD_ALLOC_XRCD]	= { vdev_alloc_xrcd, 0 },
	[VHCA_CMD_FREE_XRCD]	= { vdev_free_xrcd, NUMBER },
	[VHCA_CMD_CREATE_SRQ]	= { vdev_create_srq, sizeof(struct vhca_cmd_create_srq) },
	[VHCA_CMD_MODIFY_SRQ]	= { vdev_modify_srq, sizeof(struct vhca_cmd_modify_srq) },
	[VHCA_CMD_QUERY_SRQ]	= { vdev_query_srq, NUMBER },
	[VHCA_CMD_DESTROY_SRQ]	= { vdev_destroy_srq, NUMBER },
	[VHCA_CMD_ATTACH_MCAST]	= { vdev_attach_mcast, sizeof(struct vhca_cmd_mcast) },
	[VHCA_CMD_DETACH_MCAST]	= { vdev_detach_mcast, sizeof(struct vhca_cmd_mcast) },
};

/* Registers */

static void write_two(struct vdev *dev, unsigned int offset, u64 val)
{
	vdev_reg_write(dev, offset, upper_32_bits(val));
	vdev_reg_write(dev, offset + 4, lower_32_bits(val));
}

static u64 read_two(struct vdev *dev, unsigned int offset)
{
	u64 high = vdev_reg_read(dev, offset);

	return high << 32 | vdev_reg_read(dev, offset + 4);
}

void vdev_regs_init(struct vdev *dev)
{
	memset(dev->regs, 0, VHCA_REG_EQ_DB(VDEV_MAX_EQ));
	vdev_reg_write(dev, VHCA_REG_MAGIC, VHCA_MAGIC);
	vdev_reg_write(dev, VHCA_REG_VERSION, VHCA_PRM_VERSION);
	write_two(dev, VHCA_REG_FW_VER, VDEV_FW_VER);
	write_two(dev, VHCA_REG_NODE_GUID, vdev_guid(dev));
	vdev_reg_write(dev, VHCA_REG_FUNCTION, dev->index);
	vdev_reg_write(dev, VHCA_REG_MAX_QP, VDEV_MAX_QP);
	vdev_reg_write(dev, VHCA_REG_MAX_CQ, VDEV_MAX_CQ);
	vdev_reg_write(dev, VHCA_REG_MAX_EQ, VDEV_MAX_EQ);
	vdev_reg_write(dev, VHCA_REG_MAX_MKEY, VDEV_MAX_MKEY);
	vdev_reg_write(dev, VHCA_REG_MAX_PD, VDEV_MAX_PD);
	vdev_reg_write(dev, VHCA_REG_MAX_UAR, VDEV_MAX_UAR);
	vdev_reg_write(dev, VHCA_REG_DM_PAGE, VDEV_DM_PAGE);
	vdev_reg_write(dev, VHCA_REG_DM_PAGES, VDEV_DM_PAGES);
	vdev_reg_write(dev, VHCA_REG_MAX_SQ_SHIFT, VHCA_SQ_MAX_SHIFT);
	vdev_reg_write(dev, VHCA_REG_MAX_RQ_SHIFT, VHCA_RQ_MAX_SHIFT);
	vdev_reg_write(dev, VHCA_REG_MAX_CQ_SHIFT, VHCA_CQ_MAX_SHIFT);
	vdev_reg_write(dev, VHCA_REG_MAX_EQ_SHIFT, VDEV_MAX_EQ_SHIFT);
	vdev_reg_write(dev, VHCA_REG_MAX_SEND_SGE, VDEV_MAX_SGE);
	vdev_reg_write(dev, VHCA_REG_MAX_RECV_SGE, VDEV_MAX_SGE);
	vdev_reg_write(dev, VHCA_REG_MAX_INLINE, VHCA_MAX_INLINE);
	vdev_reg_write(dev, VHCA_REG_MAX_RD_ATOM, VDEV_MAX_RD_ATOM);
	write_two(dev, VHCA_REG_MAX_MR_SIZE, VDEV_MAX_MR_SIZE);
	vdev_reg_write(dev, VHCA_REG_MAX_CQ_COUNT, VDEV_MAX_CQ_COUNT);
	vdev_reg_write(dev, VHCA_REG_MAX_CQ_PERIOD, VDEV_MAX_CQ_PERIOD);
	vdev_reg_write(dev, VHCA_REG_ACK_DELAY, VDEV_ACK_DELAY);
	vdev_reg_write(dev, VHCA_REG_NUM_PORTS, VDEV_NUM_PORTS);
	vdev_reg_write(dev, VHCA_REG_MAX_SRQ, VDEV_MAX_SRQ);
	vdev_reg_write(dev, VHCA_REG_MAX_SRQ_SHIFT, VHCA_RQ_MAX_SHIFT);
	vdev_reg_write(dev, VHCA_REG_MAX_SRQ_SGE, VDEV_MAX_SRQ_SGE);
	vdev_reg_write(dev, VHCA_REG_MAX_XRCD, VDEV_MAX_XRCD);
	vdev_reg_write(dev, VHCA_REG_MAX_MCAST_GRP, VDEV_MAX_MCAST_GRP);
	vdev_reg_write(dev, VHCA_REG_MAX_MCAST_QP, VDEV_MAX_MCAST_QP);
}

/* Only a reset helps. Who has an async EQ is told there, too. */
static void admin_fatal(struct vdev *dev, const char *why)
{
	dev_dbg_ratelimited(&dev->pdev->dev, "admin queue: %s\n", why);
	dev->enabled = false;
	vdev_reg_write(dev, VHCA_REG_STATUS, VHCA_STATUS_FATAL);
	vdev_async_event(dev, VHCA_EQE_DEVICE_FATAL, 0);
}

void vdev_break(struct vdev *dev)
{
	mutex_lock(&dev->admin_lock);
	if (dev->enabled)
		admin_fatal(dev, "broken on request");
	mutex_unlock(&dev->admin_lock);
}

static void admin_reset(struct vdev *dev)
{
	lockdep_assert_held(&dev->admin_lock);
	vdev_forget_qps(dev);
	vdev_forget_srqs(dev);
	vdev_forget_cqs(dev);
	vdev_forget_mkeys(dev);
	vdev_forget_dm(dev);
	vdev_forget_domains(dev);
	vdev_forget_uars(dev);
	vdev_forget_eqs(dev);
	vdev_msix_drop(dev);
	dev->enabled = false;
	vdev_regs_init(dev);
}

void vdev_reset(struct vdev *dev)
{
	mutex_lock(&dev->admin_lock);
	admin_reset(dev);
	mutex_unlock(&dev->admin_lock);
}

/*
 * An admin ring must be in one piece, in DMA addresses and for the device, and
 * have its entries whole in pages.
 */
static void *ring_map(u64 base, size_t size)
{
	void *first = NULL;
	size_t off, len;

	if (!IS_ALIGNED(base, sizeof(struct vhca_cmd)))
		return NULL;
	for (off = 0; off < size; off += len) {
		void *at;

		len = min_t(size_t, size - off, PAGE_SIZE - offset_in_page(base + off));
		at = vdev_dma(base + off, len);
		if (!off)
			first = at;
		if (!at || at != first + off)
			return NULL;
	}
	return first;
}

static void admin_enable(struct vdev *dev)
{
	u32 shift = vdev_reg_read(dev, VHCA_REG_ADMIN_SHIFT);

	if (!shift || shift > VHCA_ADMIN_MAX_SHIFT)
		return admin_fatal(dev, "ring size out of range");
	dev->admin_shift = shift;
	dev->asq = ring_map(read_two(dev, VHCA_REG_ASQ_BASE),
			    sizeof(struct vhca_cmd) << shift);
	dev->acq = ring_map(read_two(dev, VHCA_REG_ACQ_BASE),
			    sizeof(struct vhca_cmd_done) << shift);
	if (!dev->asq || !dev->acq)
		return admin_fatal(dev, "ring not in memory, or not in one piece");
	dev->asq_ci = 0;
	dev->acq_pi = 0;
	dev->enabled = true;
	vdev_reg_write(dev, VHCA_REG_STATUS, VHCA_STATUS_READY);
}

/* Commands */

static u8 cmd_dispatch(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done)
{
	u16 opcode = be16_to_cpu(cmd->opcode);
	const struct admin_op *op;

	if (opcode >= ARRAY_SIZE(admin_ops) || !admin_ops[opcode].fn)
		return VHCA_CMD_BAD_OPCODE;
	op = &admin_ops[opcode];
	if (cmd->rsvd || memchr_inv(cmd->bytes + op->size, 0, sizeof(cmd->bytes) - op->size))
		return VHCA_CMD_BAD_PARAM;
	return op->fn(dev, cmd, done);
}

static void cmd_answer(struct vdev *dev, const struct vhca_cmd_done *done)
{
	u32 size = 1u << dev->admin_shift;
	struct vhca_cmd_done *ring = dev->acq;
	struct vhca_cmd_done *at = &ring[dev->acq_pi & (size - 1)];

	memcpy(at, done, offsetof(struct vhca_cmd_done, owner));
	/* Owner bit last; pairs with the driver's read barrier behind its look at it. */
	dma_wmb();
	WRITE_ONCE(at->owner, !(dev->acq_pi & size));
	dev->acq_pi++;
	vdev_count(dev, VDEV_COMMANDS);
	vdev_async_event(dev, VHCA_EQE_CMD, 0);
}

static void cmd_execute(struct vdev *dev)
{
	const struct vhca_cmd *ring = dev->asq;
	struct vhca_cmd cmd = ring[dev->asq_ci & ((1u << dev->admin_shift) - 1)];
	struct vhca_cmd_done done = {};
	u8 status;

	/* The copy is what counts from here on. */
	barrier_data(&cmd);
	status = cmd_dispatch(dev, &cmd, &done);
	if (status) {
		dev_dbg_ratelimited(&dev->pdev->dev, "command %#x: status %u\n",
				    be16_to_cpu(cmd.opcode), status);
		memset(&done, 0, sizeof(done));
	}
	done.tag = cmd.tag;
	done.status = status;
	dev->asq_ci++;
	cmd_answer(dev, &done);
}

static void admin_run(struct vdev *dev)
{
	u32 pi;

	while ((pi = vdev_reg_read(dev, VHCA_REG_ASQ_DB)) != dev->asq_ci) {
		if (pi - dev->asq_ci > 1u << dev->admin_shift) {
			admin_fatal(dev, "producer index beyond the ring");
			return;
		}
		/* Doorbell before commands; pairs with the driver's write barrier. */
		dma_rmb();
		cmd_execute(dev);
		cond_resched();
	}
}

void vdev_registers(struct pci_dev *pdev)
{
	struct vdev *dev = vdev_of(pdev);

	mutex_lock(&dev->admin_lock);
	if (!(vdev_reg_read(dev, VHCA_REG_CONTROL) & VHCA_CONTROL_ENABLE)) {
		if (dev->enabled || vdev_reg_read(dev, VHCA_REG_STATUS))
			admin_reset(dev);
	} else if (!dev->enabled && !vdev_reg_read(dev, VHCA_REG_STATUS)) {
		admin_enable(dev);
	}
	if (dev->enabled)
		admin_run(dev);
	mutex_unlock(&dev->admin_lock);
}
