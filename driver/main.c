// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, the class and the devices in it: /dev/vhcaN, numbered
 * by the lowest free N, and their attributes in sysfs.
 */
#include <linux/idr.h>
#include <linux/module.h>

#include "vhca.h"

static ushort vendor = VHCA_PCI_VENDOR;
module_param(vendor, ushort, 0444);
MODULE_PARM_DESC(vendor, "PCI vendor id to bind to");

static ushort device = VHCA_PCI_DEVICE;
module_param(device, ushort, 0444);
MODULE_PARM_DESC(device, "PCI device id to bind to");

static dev_t vhca_devt;
static DEFINE_IDA(vhca_ida);

static ssize_t abi_version_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", VHCA_ABI_VERSION);
}
static DEVICE_ATTR_RO(abi_version);

static ssize_t node_guid_show(struct device *dev,
			      struct device_attribute *attr, char *buf)
{
	struct vhca_dev *vdev = container_of(dev, struct vhca_dev, dev);
	u64 guid = vdev->caps.node_guid;

	return sysfs_emit(buf, "%04x:%04x:%04x:%04x\n", (u16)(guid >> 48),
			  (u16)(guid >> 32), (u16)(guid >> 16), (u16)guid);
}
static DEVICE_ATTR_RO(node_guid);

static ssize_t fw_ver_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	struct vhca_dev *vdev = container_of(dev, struct vhca_dev, dev);
	u64 ver = vdev->caps.fw_ver;

	return sysfs_emit(buf, "%u.%u.%u\n", (u32)(ver >> 32),
			  (u16)(ver >> 16), (u16)ver);
}
static DEVICE_ATTR_RO(fw_ver);

static struct attribute *vhca_attrs[] = {
	&dev_attr_abi_version.attr,
	&dev_attr_node_guid.attr,
	&dev_attr_fw_ver.attr,
	NULL
};
ATTRIBUTE_GROUPS(vhca);

/* Everybody may open it: what a context can do is bounded by its own objects. */
static char *vhca_devnode(VHCA_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static struct class vhca_class = {
	.name		= "vhca",
	.devnode	= vhca_devnode,
	.dev_groups	= vhca_groups,
};

/* The last reference is gone: that of the driver, or of the last file. */
static void vhca_dev_release(struct device *dev)
{
	struct vhca_dev *vdev = container_of(dev, struct vhca_dev, dev);

	ida_free(&vhca_ida, MINOR(dev->devt) - MINOR(vhca_devt));
	cleanup_srcu_struct(&vdev->srcu);
	xa_destroy(&vdev->cqs);
	xa_destroy(&vdev->qps);
	xa_destroy(&vdev->srqs);
	mutex_destroy(&vdev->xrc_lock);
	free_percpu(vdev->stats);
	kfree(vdev->port_news);
	kvfree(vdev->uar_owner);
	kfree(vdev);
}

static void vhca_dev_init(struct vhca_dev *vdev, struct pci_dev *pdev)
{
	vdev->pdev = pdev;
	vdev->soft = dev_get_platdata(&pdev->dev);
	xa_init_flags(&vdev->cqs, XA_FLAGS_ACCOUNT);
	xa_init_flags(&vdev->qps, XA_FLAGS_ACCOUNT);
	xa_init_flags(&vdev->srqs, XA_FLAGS_ACCOUNT);
	mutex_init(&vdev->xrc_lock);
	INIT_LIST_HEAD(&vdev->domains);
	mutex_init(&vdev->ctx_lock);
	spin_lock_init(&vdev->list_lock);
	INIT_LIST_HEAD(&vdev->ctxs);
	INIT_LIST_HEAD(&vdev->client_node);
	init_llist_head(&vdev->raised);
	INIT_WORK(&vdev->async_work, vhca_async_work);
	INIT_WORK(&vdev->fatal_work, vhca_fatal_work);

	device_initialize(&vdev->dev);
	vdev->dev.class = &vhca_class;
	vdev->dev.parent = &pdev->dev;
	vdev->dev.release = vhca_dev_release;
}

/* A UAR for each page of the BAR, as far as VHCA_KICK_ARG() can name them in 32 bits. */
static int vhca_dev_alloc_uars(struct vhca_dev *vdev, struct pci_dev *pdev)
{
	vdev->num_uars = min_t(u64, pci_resource_len(pdev, VHCA_BAR_UAR) >> PAGE_SHIFT,
			       VHCA_KICK_UAR(U32_MAX) + 1);
	vdev->uar_owner = kvcalloc(vdev->num_uars, sizeof(*vdev->uar_owner), GFP_KERNEL);
	return vdev->uar_owner ? 0 : -ENOMEM;
}

/**
 * vhca_dev_alloc() - a device that nobody sees yet
 * @pdev: its PCI function.
 *
 * Return: the device, to be given back by put_device() on its @dev, or an
 * error pointer.
 */
struct vhca_dev *vhca_dev_alloc(struct pci_dev *pdev)
{
	struct vhca_dev *vdev;
	int ret = -ENOMEM;
	int minor;

	vdev = kzalloc(sizeof(*vdev), GFP_KERNEL);
	if (!vdev)
		return ERR_PTR(-ENOMEM);

	vdev->stats = alloc_percpu(struct vhca_stats);
	if (!vdev->stats)
		goto err_free;
	ret = vhca_dev_alloc_uars(vdev, pdev);
	if (ret)
		goto err_stats;
	ret = init_srcu_struct(&vdev->srcu);
	if (ret)
		goto err_uars;
	minor = ida_alloc_max(&vhca_ida, VHCA_MAX_DEVICES - 1, GFP_KERNEL);
	if (minor < 0) {
		ret = minor;
		goto err_srcu;
	}

	vhca_dev_init(vdev, pdev);
	vdev->index = minor;
	vdev->dev.devt = vhca_devt + minor;
	ret = dev_set_name(&vdev->dev, "vhca%d", minor);
	if (ret) {
		put_device(&vdev->dev);
		return ERR_PTR(ret);
	}
	return vdev;

err_srcu:
	cleanup_srcu_struct(&vdev->srcu);
err_uars:
	kvfree(vdev->uar_owner);
err_stats:
	free_percpu(vdev->stats);
err_free:
	kfree(vdev);
	return ERR_PTR(ret);
}

/** vhca_dev_register() - show the device to user space */
int vhca_dev_register(struct vhca_dev *vdev)
{
	cdev_init(&vdev->cdev, &vhca_fops);
	vdev->cdev.owner = THIS_MODULE;
	return cdev_device_add(&vdev->cdev, &vdev->dev);
}

/** vhca_dev_unregister() - no new opens by name; open files stay */
void vhca_dev_unregister(struct vhca_dev *vdev)
{
	cdev_device_del(&vdev->cdev, &vdev->dev);
}

static int __init vhca_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&vhca_devt, 0, VHCA_MAX_DEVICES, "vhca");
	if (ret)
		return ret;
	ret = class_register(&vhca_class);
	if (ret)
		goto err_region;
	vhca_debugfs_init();
	vhca_pci_set_ids(vendor, device);
	ret = pci_register_driver(&vhca_pci_driver);
	if (ret)
		goto err_class;
	return 0;

err_class:
	vhca_debugfs_exit();
	class_unregister(&vhca_class);
err_region:
	unregister_chrdev_region(vhca_devt, VHCA_MAX_DEVICES);
	return ret;
}
module_init(vhca_init);

static void __exit vhca_exit_module(void)
{
	pci_unregister_driver(&vhca_pci_driver);
	vhca_debugfs_exit();
	class_unregister(&vhca_class);
	unregister_chrdev_region(vhca_devt, VHCA_MAX_DEVICES);
}
module_exit(vhca_exit_module);

MODULE_DESCRIPTION("Driver of the virtual RDMA host channel adapter");
MODULE_LICENSE("GPL");
