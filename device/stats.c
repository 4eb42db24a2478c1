// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of a function and of its vectors, and how many objects it has, under
 * debugfs, one "name value" a line; the switch of its link, and one that breaks
 * it. For root only.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "show.h"

static struct dentry *stats_root;

static const char * const vdev_stat_names[VDEV_STATS] = {
	[VDEV_DOORBELLS]	= "doorbells",
	[VDEV_KICKS]		= "kicks",
	[VDEV_WQES]		= "wqes",
	[VDEV_RECV_WQES]	= "recv_wqes",
	[VDEV_CQES]		= "cqes",
	[VDEV_EQES]		= "eqes",
	[VDEV_MSIX]		= "msix",
	[VDEV_MSIX_PENDED]	= "msix_pended",
	[VDEV_COMMANDS]		= "commands",
	[VDEV_RNR_NAKS]		= "rnr_naks",
	[VDEV_RETRIES]		= "retries",
	[VDEV_OVERRUNS]		= "overruns",
	[VDEV_SIGNATURES]	= "signatures",
	[VDEV_CQE_PAYLOADS]	= "cqe_payloads",
	[VDEV_BLUEFLAMES]	= "blueflames",
	[VDEV_DROPPED]		= "dropped",
	[VDEV_QKEY_VIOLATIONS]	= "qkey_violations",
	[VDEV_COPIED]		= "copied",
};

u64 vdev_stat_sum(struct vdev *dev, enum vdev_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->stats, cpu)->count[stat]);
	return sum;
}

static int counters_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;
	enum vdev_stat stat;

	for (stat = 0; stat < VDEV_STATS; stat++)
		seq_printf(s, "%s %llu\n", vdev_stat_names[stat], vdev_stat_sum(dev, stat));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int vectors_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;
	unsigned int i;

	seq_puts(s, "vector sent pended pending masked cpu\n");
	for (i = 0; i < VHCA_MSIX_VECTORS; i++) {
		struct vdev_vector *vec = &dev->vector[i];

		seq_printf(s, "%u %lld %lld %d %d %u\n", i, atomic64_read(&vec->sent),
			   atomic64_read(&vec->pended), vdev_msix_pending(dev, i),
			   vdev_msix_blocked(dev, i), READ_ONCE(vec->cpu));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vectors);

static unsigned int objects_in(struct xarray *table)
{
	unsigned int n = 0;
	unsigned long i;
	void *entry;

	xa_for_each(table, i, entry)
		n++;
	return n;
}

static int objects_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;
	unsigned int i, uars = 0, eqs = 0;

	mutex_lock(&dev->admin_lock);
	for (i = 0; i < VDEV_MAX_UAR; i++)
		uars += !!rcu_access_pointer(dev->uars[i]);
	for (i = 0; i < VDEV_MAX_EQ; i++)
		eqs += !!rcu_access_pointer(dev->eqs[i]);
	seq_printf(s, "pds %u\nxrcds %u\nmkeys %u\ncqs %u\nsrqs %u\nqps %u\n",
		   objects_in(&dev->pds), objects_in(&dev->xrcds),
		   objects_in(&dev->mkeys), objects_in(&dev->cqs),
		   objects_in(&dev->srqs), objects_in(&dev->qps));
	seq_printf(s, "uars %u\neqs %u\nmcast_groups %u\ndm_pages %u\n", uars, eqs,
		   dev->mcast_groups, bitmap_weight(dev->dm.used, VDEV_DM_PAGES));
	mutex_unlock(&dev->admin_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static ssize_t link_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	struct vdev *dev = file->private_data;
	const char *state = READ_ONCE(dev->link_down) ? "down\n" : "up\n";

	return simple_read_from_buffer(buf, count, pos, state, strlen(state));
}

static ssize_t link_write(struct file *file, const char __user *buf, size_t count,
			  loff_t *pos)
{
	static const char * const states[] = { "down", "up" };
	char word[8] = {};
	int state;

	if (count >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, buf, count))
		return -EFAULT;
	state = sysfs_match_string(states, word);
	if (state < 0)
		return state;
	vdev_link_set(file->private_data, state);
	return count;
}

static const struct file_operations link_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= link_read,
	.write	= link_write,
	.llseek	= default_llseek,
};

static ssize_t break_write(struct file *file, const char __user *buf, size_t count,
			   loff_t *pos)
{
	vdev_break(file->private_data);
	return count;
}

static const struct file_operations break_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= break_write,
	.llseek	= noop_llseek,
};

void vdev_stats_init(void)
{
	stats_root = debugfs_create_dir("vhca_device", NULL);
}

void vdev_stats_exit(void)
{
	debugfs_remove(stats_root);
}

void vdev_stats_add(struct vdev *dev)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", dev->index);
	dev->debugfs = debugfs_create_dir(name, stats_root);
	debugfs_create_file("counters", 0400, dev->debugfs, dev, &counters_fops);
	debugfs_create_file("vectors", 0400, dev->debugfs, dev, &vectors_fops);
	debugfs_create_file("objects", 0400, dev->debugfs, dev, &objects_fops);
	debugfs_create_file("link", 0600, dev->debugfs, dev, &link_fops);
	debugfs_create_file("break", 0200, dev->debugfs, dev, &break_fops);
	vdev_faults_add(dev, dev->debugfs);
	vdev_show_add(dev, dev->debugfs);
}

void vdev_stats_remove(struct vdev *dev)
{
	debugfs_remove(dev->debugfs);
}
