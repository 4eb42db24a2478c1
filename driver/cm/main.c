// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: /dev/infiniband/rdma_cm, where librdmacm looks for it.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/namei.h>

#include "cm.h"

unsigned int cm_response_timeout = 1000;
module_param_named(response_timeout, cm_response_timeout, uint, 0644);
MODULE_PARM_DESC(response_timeout, "milliseconds to wait for an answer before a message is sent again");

unsigned int cm_retries = 15;
module_param_named(retries, cm_retries, uint, 0644);
MODULE_PARM_DESC(retries, "how often a message is sent again");

unsigned int cm_timewait = 500;
module_param_named(timewait, cm_timewait, uint, 0644);
MODULE_PARM_DESC(timewait, "milliseconds from the end of a connection to RDMA_CM_EVENT_TIMEWAIT_EXIT");

/* All that is here; see cm.h. */
DEFINE_MUTEX(cm_lock);
struct workqueue_struct *cm_wq;

static ssize_t abi_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", RDMA_USER_CM_ABI_VERSION);
}
static DEVICE_ATTR_RO(abi_version);

static struct attribute *cm_attrs[] = {
	&dev_attr_abi_version.attr,
	&dev_attr_bind.attr,
	NULL
};
ATTRIBUTE_GROUPS(cm);

static struct miscdevice cm_misc = {
	.minor		= MISC_DYNAMIC_MINOR,
	.name		= "rdma_cm",
	.nodename	= "infiniband/rdma_cm",
	.mode		= 0666,
	.fops		= &cm_fops,
	.groups		= cm_groups,
};

/* Programs find one rdma_cm; a second of that name would be a mistake with a splat. */
static bool cm_name_taken(void)
{
	struct path path;

	if (kern_path("/sys/class/misc/rdma_cm", 0, &path))
		return false;
	path_put(&path);
	return true;
}

static int __init cm_init(void)
{
	int ret;

	if (cm_name_taken()) {
		pr_err("vhca_cm: there is an rdma_cm already: rmmod rdma_ucm first\n");
		return -EEXIST;
	}
	cm_wq = alloc_ordered_workqueue("vhca_cm", 0);
	if (!cm_wq)
		return -ENOMEM;
	ret = cm_bindings_init();
	if (ret)
		goto err_wq;
	vhca_client_register(&cm_client);
	cm_debugfs_init();
	ret = misc_register(&cm_misc);
	if (ret)
		goto err_client;
	return 0;

err_client:
	cm_debugfs_exit();
	vhca_client_unregister(&cm_client);
	cm_bindings_exit();
err_wq:
	destroy_workqueue(cm_wq);
	return ret;
}
module_init(cm_init);

/* No file is open, so no id is left; messages may be on their way. */
static void __exit cm_exit(void)
{
	misc_deregister(&cm_misc);
	cm_debugfs_exit();
	destroy_workqueue(cm_wq);
	vhca_client_unregister(&cm_client);
	cm_bindings_exit();
}
module_exit(cm_exit);

MODULE_DESCRIPTION("RDMA CM for the virtual RDMA host channel adapter");
MODULE_LICENSE("GPL");
