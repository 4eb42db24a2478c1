// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: how many of each thing there are, who listens, and messages that are to be
 * lost.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "cm.h"

static struct dentry *cm_debugfs;

static int objects_show(struct seq_file *m, void *unused)
{
	mutex_lock(&cm_lock);
	seq_printf(m, "files %u\n", cm_files_count());
	seq_printf(m, "ids %u\n", cm_ids_count());
	seq_printf(m, "connections %u\n", cm_conns_count());
	seq_printf(m, "multicasts %u\n", cm_mcasts_count());
	seq_printf(m, "events %u\n", cm_events_count());
	seq_printf(m, "messages %u\n", cm_messages_count());
	mutex_unlock(&cm_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static int listeners_show(struct seq_file *m, void *unused)
{
	mutex_lock(&cm_lock);
	cm_ports_show(m);
	mutex_unlock(&cm_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(listeners);

static int drop_show(struct seq_file *m, void *unused)
{
	enum cm_msg_type type;

	mutex_lock(&cm_lock);
	for (type = 0; type < CM_MSG_TYPES; type++)
		if (cm_drops(type))
			seq_printf(m, "%s %u\n", cm_msg_names[type], cm_drops(type));
	mutex_unlock(&cm_lock);
	return 0;
}

static int drop_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, drop_show, NULL);
}

/* TYPE N */
static ssize_t drop_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos)
{
	char text[32], name[16], rest;
	unsigned int n;
	int ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "%15s %u %c", name, &n, &rest) != 2)
		return -EINVAL;
	mutex_lock(&cm_lock);
	ret = cm_drop(name, n);
	mutex_unlock(&cm_lock);
	return ret ?: len;
}

static const struct file_operations drop_fops = {
	.owner		= THIS_MODULE,
	.open		= drop_open,
	.read		= seq_read,
	.write		= drop_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

/** cm_debugfs_init() - the directory vhca_cm */
void cm_debugfs_init(void)
{
	cm_debugfs = debugfs_create_dir("vhca_cm", NULL);
	debugfs_create_file("objects", 0400, cm_debugfs, NULL, &objects_fops);
	debugfs_create_file("listeners", 0400, cm_debugfs, NULL, &listeners_fops);
	debugfs_create_file("drop", 0600, cm_debugfs, NULL, &drop_fops);
}

/** cm_debugfs_exit() - it goes */
void cm_debugfs_exit(void)
{
	debugfs_remove(cm_debugfs);
}
