// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI function: its registers, bringing it up, taking it down.
 *
 * The regions are not requested: the BARs of a function that exists in software
 * lie in RAM, which the resource tree does not give away. BAR0 alone is mapped
 * here; the UAR pages of BAR2 are for user space, BAR4 is the PCI core's.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "vhca.h"

static struct pci_device_id vhca_pci_ids[] = {
	{ PCI_DEVICE(VHCA_PCI_VENDOR, VHCA_PCI_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, vhca_pci_ids);

/** vhca_pci_set_ids() - the ids to bind to; before the driver is registered */
void vhca_pci_set_ids(u16 vendor, u16 device)
{
	vhca_pci_ids[0].vendor = vendor;
	vhca_pci_ids[0].device = device;
}

/** vhca_read() - read a register of BAR0 */
u32 vhca_read(struct vhca_dev *vdev, u32 reg)
{
	return ioread32be(vdev->regs + reg);
}

/** vhca_write() - write a register of BAR0 */
void vhca_write(struct vhca_dev *vdev, u32 reg, u32 value)
{
	iowrite32be(value, vdev->regs + reg);
}

static u64 vhca_read64(struct vhca_dev *vdev, u32 reg)
{
	u64 high = vhca_read(vdev, reg);

	return high << 32 | vhca_read(vdev, reg + 4);
}

static void vhca_write64(struct vhca_dev *vdev, u32 reg, u64 value)
{
	vhca_write(vdev, reg, upper_32_bits(value));
	vhca_write(vdev, reg + 4, lower_32_bits(value));
}

/** vhca_soft_registers() - a store to BAR0 traps nowhere: tell the device */
void vhca_soft_registers(struct vhca_dev *vdev)
{
	if (vdev->soft)
		vdev->soft->registers(vdev->pdev);
}

/**
 * vhca_hw_reset() - the device forgets every object and leaves memory alone
 * @vdev: the device; it stays out of use until it is enabled.
 *
 * A status of zero says that it is done. So does one of all ones: nothing is
 * there any more.
 */
void vhca_hw_reset(struct vhca_dev *vdev)
{
	unsigned long deadline = jiffies + VHCA_RESET_TIMEOUT;
	u32 status;

	vhca_write(vdev, VHCA_REG_CONTROL, 0);
	vhca_soft_registers(vdev);
	for (;;) {
		status = vhca_read(vdev, VHCA_REG_STATUS);
		if (!status || status == ~0u)
			return;
		if (time_after(jiffies, deadline))
			break;
		usleep_range(500, 1000);
	}
	dev_err(&vdev->pdev->dev, "does not reset, status %#x\n", status);
}

static int vhca_hw_enable(struct vhca_dev *vdev)
{
	unsigned long deadline = jiffies + VHCA_TIMEOUT;
	u32 status;

	/* A predecessor may have left it running, on memory of its own. */
	vhca_hw_reset(vdev);
	vhca_write64(vdev, VHCA_REG_ASQ_BASE, vdev->admin.sq_dma);
	vhca_write64(vdev, VHCA_REG_ACQ_BASE, vdev->admin.cq_dma);
	vhca_write(vdev, VHCA_REG_ADMIN_SHIFT, VHCA_ADMIN_SHIFT);
	vhca_write(vdev, VHCA_REG_CONTROL, VHCA_CONTROL_ENABLE);
	vhca_soft_registers(vdev);

	for (;;) {
		status = vhca_read(vdev, VHCA_REG_STATUS);
		if (status & VHCA_STATUS_FATAL)
			break;
		if (status & VHCA_STATUS_READY)
			return 0;
		if (time_after(jiffies, deadline))
			break;
		usleep_range(500, 1000);
	}
	dev_err(&vdev->pdev->dev, "does not become ready, status %#x\n", status);
	return -EIO;
}

static void vhca_read_caps(struct vhca_dev *vdev)
{
	struct vhca_caps *caps = &vdev->caps;

	caps->fw_ver = vhca_read64(vdev, VHCA_REG_FW_VER);
	caps->node_guid = vhca_read64(vdev, VHCA_REG_NODE_GUID);
	caps->max_mr_size = vhca_read64(vdev, VHCA_REG_MAX_MR_SIZE);
	caps->function = vhca_read(vdev, VHCA_REG_FUNCTION);
	caps->max_qp = vhca_read(vdev, VHCA_REG_MAX_QP);
	caps->max_cq = vhca_read(vdev, VHCA_REG_MAX_CQ);
	caps->max_eq = vhca_read(vdev, VHCA_REG_MAX_EQ);
	caps->max_mkey = vhca_read(vdev, VHCA_REG_MAX_MKEY);
	caps->max_pd = vhca_read(vdev, VHCA_REG_MAX_PD);
	caps->max_uar = vhca_read(vdev, VHCA_REG_MAX_UAR);
	caps->max_sq_shift = vhca_read(vdev, VHCA_REG_MAX_SQ_SHIFT);
	caps->max_rq_shift = vhca_read(vdev, VHCA_REG_MAX_RQ_SHIFT);
	caps->max_cq_shift = vhca_read(vdev, VHCA_REG_MAX_CQ_SHIFT);
	caps->max_eq_shift = vhca_read(vdev, VHCA_REG_MAX_EQ_SHIFT);
	caps->max_send_sge = vhca_read(vdev, VHCA_REG_MAX_SEND_SGE);
	caps->max_recv_sge = vhca_read(vdev, VHCA_REG_MAX_RECV_SGE);
	caps->max_inline = vhca_read(vdev, VHCA_REG_MAX_INLINE);
	caps->max_rd_atom = vhca_read(vdev, VHCA_REG_MAX_RD_ATOM);
	caps->ack_delay = vhca_read(vdev, VHCA_REG_ACK_DELAY);
	caps->num_ports = vhca_read(vdev, VHCA_REG_NUM_PORTS);
	caps->max_srq = vhca_read(vdev, VHCA_REG_MAX_SRQ);
	caps->max_srq_shift = vhca_read(vdev, VHCA_REG_MAX_SRQ_SHIFT);
	caps->max_srq_sge = vhca_read(vdev, VHCA_REG_MAX_SRQ_SGE);
	caps->max_xrcd = vhca_read(vdev, VHCA_REG_MAX_XRCD);
	caps->max_mcast_grp = vhca_read(vdev, VHCA_REG_MAX_MCAST_GRP);
	caps->max_mcast_qp = vhca_read(vdev, VHCA_REG_MAX_MCAST_QP);
	caps->max_cq_count = vhca_read(vdev, VHCA_REG_MAX_CQ_COUNT);
	caps->max_cq_period = vhca_read(vdev, VHCA_REG_MAX_CQ_PERIOD);
	caps->dm_page = vhca_read(vdev, VHCA_REG_DM_PAGE);
	caps->dm_pages = vhca_read(vdev, VHCA_REG_DM_PAGES);
}

/* The driver's own arithmetic relies on these; the rest is the device's word. */
static int vhca_check_caps(struct vhca_dev *vdev)
{
	struct vhca_caps *caps = &vdev->caps;

	if (caps->max_sq_shift > VHCA_SQ_MAX_SHIFT ||
	    caps->max_rq_shift > VHCA_RQ_MAX_SHIFT ||
	    caps->max_srq_shift > VHCA_RQ_MAX_SHIFT ||
	    caps->max_cq_shift > VHCA_CQ_MAX_SHIFT ||
	    caps->max_eq_shift > 23 || caps->max_eq < 2 ||
	    !caps->max_recv_sge || !caps->num_ports || caps->num_ports > 255 ||
	    caps->dm_pages > U32_MAX >> PAGE_SHIFT ||
	    (u64)caps->dm_page + caps->dm_pages >
	    pci_resource_len(vdev->pdev, VHCA_BAR_UAR) >> PAGE_SHIFT) {
		dev_err(&vdev->pdev->dev, "capabilities make no sense\n");
		return -EINVAL;
	}
	vdev->port_news = kcalloc(caps->num_ports, sizeof(*vdev->port_news), GFP_KERNEL);
	return vdev->port_news ? 0 : -ENOMEM;
}

static int vhca_check_identity(struct vhca_dev *vdev)
{
	u32 magic = vhca_read(vdev, VHCA_REG_MAGIC);
	u32 version = vhca_read(vdev, VHCA_REG_VERSION);

	if (magic == VHCA_MAGIC && version == VHCA_PRM_VERSION)
		return 0;
	dev_err(&vdev->pdev->dev, "magic %#x version %u: not for this driver\n",
		magic, version);
	return -ENODEV;
}

static int vhca_pci_enable(struct vhca_dev *vdev)
{
	struct pci_dev *pdev = vdev->pdev;
	int ret;

	ret = pci_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto err_disable;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	ret = -ENODEV;
	if (pci_resource_len(pdev, VHCA_BAR_REGS) < VHCA_REGS_SIZE)
		goto err_disable;
	ret = -ENOMEM;
	vdev->regs = ioremap(pci_resource_start(pdev, VHCA_BAR_REGS),
			     VHCA_REGS_SIZE);
	if (!vdev->regs)
		goto err_disable;
	pci_set_master(pdev);
	return 0;

err_disable:
	pci_disable_device(pdev);
	return ret;
}

static void vhca_pci_disable(struct vhca_dev *vdev)
{
	pci_clear_master(vdev->pdev);
	iounmap(vdev->regs);
	pci_disable_device(vdev->pdev);
}

/* The device is reset and nobody sees it: what is left is memory. */
static void vhca_stop(struct vhca_dev *vdev)
{
	vhca_eqs_free(vdev);
	cancel_work_sync(&vdev->fatal_work);
	cancel_work_sync(&vdev->async_work);
	vhca_admin_free(vdev);
}

static int vhca_start(struct vhca_dev *vdev)
{
	int ret;

	ret = vhca_check_identity(vdev);
	if (ret)
		return ret;
	ret = vhca_admin_init(vdev);
	if (ret)
		return ret;
	ret = vhca_hw_enable(vdev);
	if (ret)
		goto err_reset;
	vhca_read_caps(vdev);
	ret = vhca_check_caps(vdev);
	if (ret)
		goto err_reset;
	ret = vhca_eqs_create(vdev);
	if (ret)
		goto err_reset;
	ret = vhca_query_pkeys(vdev);
	if (ret)
		goto err_reset;
	return 0;

err_reset:
	vhca_hw_reset(vdev);
	vhca_stop(vdev);
	return ret;
}

static int vhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vhca_dev *vdev;
	int ret;

	vdev = vhca_dev_alloc(pdev);
	if (IS_ERR(vdev))
		return PTR_ERR(vdev);
	ret = vhca_pci_enable(vdev);
	if (ret)
		goto err_put;
	ret = vhca_start(vdev);
	if (ret)
		goto err_disable;
	pci_set_drvdata(pdev, vdev);
	vhca_debugfs_add(vdev);
	ret = vhca_dev_register(vdev);
	if (ret)
		goto err_stop;
	vhca_clients_add(vdev);
	return 0;

err_stop:
	vhca_debugfs_remove(vdev);
	vhca_disassociate(vdev);
	vhca_stop(vdev);
err_disable:
	vhca_pci_disable(vdev);
err_put:
	put_device(&vdev->dev);
	return ret;
}

static void vhca_remove(struct pci_dev *pdev)
{
	struct vhca_dev *vdev = pci_get_drvdata(pdev);

	vhca_debugfs_remove(vdev);
	vhca_dev_unregister(vdev);
	vhca_disassociate(vdev);
	vhca_stop(vdev);
	vhca_pci_disable(vdev);
	put_device(&vdev->dev);
}

/* The next kernel must find nothing that writes to its memory. */
static void vhca_shutdown(struct pci_dev *pdev)
{
	vhca_disassociate(pci_get_drvdata(pdev));
	pci_clear_master(pdev);
}

/* A reset by others takes every object away, as if the device were gone. */
static void vhca_reset_prepare(struct pci_dev *pdev)
{
	vhca_disassociate(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers vhca_err_handlers = {
	.reset_prepare = vhca_reset_prepare,
};

struct pci_driver vhca_pci_driver = {
	.name		= "vhca",
	.id_table	= vhca_pci_ids,
	.probe		= vhca_probe,
	.remove		= vhca_remove,
	.shutdown	= vhca_shutdown,
	.err_handler	= &vhca_err_handlers,
};
