// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, and how many objects there are. Counters are exact: each is written
 * either under a lock, or by one writer, or for each CPU apart.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "vhca.h"

static struct dentry *vhca_debugfs_root;

static void vhca_stats_sum(struct vhca_dev *vdev, struct vhca_stats *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct vhca_stats *s = per_cpu_ptr(vdev->stats, cpu);

		sum->kicks += READ_ONCE(s->kicks);
		sum->tasklets += READ_ONCE(s->tasklets);
		sum->events += READ_ONCE(s->events);
		sum->merged += READ_ONCE(s->merged);
	}
}

static int counters_show(struct seq_file *m, void *unused)
{
	struct vhca_dev *vdev = m->private;
	u64 eqes = 0, comp = 0, async = 0, interrupts = 0;
	struct vhca_stats sum;
	unsigned int i;

	for (i = 0; i < vdev->num_vectors; i++)
		interrupts += READ_ONCE(vdev->vectors[i].interrupts);
	for (i = 0; i < vdev->num_eqs; i++) {
		struct vhca_eq *eq = &vdev->eqs[i];

		raw_spin_lock_irq(&eq->lock);
		eqes += eq->eqes;
		comp += eq->comp_eqes;
		async += eq->async_eqes;
		raw_spin_unlock_irq(&eq->lock);
	}
	vhca_stats_sum(vdev, &sum);

	seq_printf(m, "kicks %llu\n", sum.kicks);
	seq_printf(m, "interrupts %llu\n", interrupts);
	seq_printf(m, "eqes %llu\n", eqes);
	seq_printf(m, "comp_eqes %llu\n", comp);
	seq_printf(m, "async_eqes %llu\n", async);
	seq_printf(m, "tasklets %llu\n", sum.tasklets);
	seq_printf(m, "events %llu\n", sum.events);
	seq_printf(m, "merged %llu\n", sum.merged);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static void vhca_vector_show(struct seq_file *m, struct vhca_vector *vec)
{
	struct vhca_dev *vdev = vec->vdev;
	const char *sep = "";
	unsigned int i;
	u64 eqes = 0;

	seq_printf(m, "%u %u ", vec->index, vec->irq);
	for (i = 0; i < vdev->num_eqs; i++) {
		struct vhca_eq *eq = &vdev->eqs[i];

		if (eq->vector != vec)
			continue;
		raw_spin_lock_irq(&eq->lock);
		eqes += eq->eqes;
		raw_spin_unlock_irq(&eq->lock);
		seq_printf(m, "%s%u", sep, eq->eqn);
		sep = ",";
	}
	seq_printf(m, " %llu %llu\n", READ_ONCE(vec->interrupts), eqes);
}

static int vectors_show(struct seq_file *m, void *unused)
{
	struct vhca_dev *vdev = m->private;
	unsigned int i;

	seq_puts(m, "vector irq eqns interrupts eqes\n");
	for (i = 0; i < vdev->num_vectors; i++)
		vhca_vector_show(m, &vdev->vectors[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vectors);

/* The tables of a context, in the order of vhca_object_names[]. */
enum { VHCA_TABLES = 10 };

static const char * const vhca_object_names[VHCA_TABLES] = {
	"uars", "pds", "mrs", "mws", "dms", "cqs", "qps", "srqs", "xrcds", "buffers",
};

static void vhca_objects_count(struct vhca_ctx *ctx, unsigned int *count)
{
	struct xarray *table[VHCA_TABLES] = {
		&ctx->uars, &ctx->pds, &ctx->mrs, &ctx->mws, &ctx->dms,
		&ctx->cqs, &ctx->qps, &ctx->srqs, &ctx->xrcds, &ctx->bufs,
	};
	unsigned long i;
	unsigned int t;
	void *entry;

	for (t = 0; t < VHCA_TABLES; t++)
		xa_for_each(table[t], i, entry)
			count[t]++;
}

/* All contexts together: what files that are open have made. */
static int objects_show(struct seq_file *m, void *unused)
{
	unsigned int count[VHCA_TABLES] = {};
	unsigned int t, contexts = 0;
	struct vhca_dev *vdev = m->private;
	struct vhca_ctx *ctx;

	mutex_lock(&vdev->ctx_lock);
	list_for_each_entry(ctx, &vdev->ctxs, node) {
		mutex_lock(&ctx->lock);
		vhca_objects_count(ctx, count);
		mutex_unlock(&ctx->lock);
		contexts++;
	}
	mutex_unlock(&vdev->ctx_lock);
	seq_printf(m, "contexts %u\n", contexts);
	for (t = 0; t < VHCA_TABLES; t++)
		seq_printf(m, "%s %u\n", vhca_object_names[t], count[t]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static int limits_show(struct seq_file *m, void *unused)
{
	vhca_limits_show(m, m->private);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(limits);

/** vhca_debugfs_init() - the directory of the driver */
void vhca_debugfs_init(void)
{
	vhca_debugfs_root = debugfs_create_dir("vhca", NULL);
}

/** vhca_debugfs_exit() - it goes */
void vhca_debugfs_exit(void)
{
	debugfs_remove(vhca_debugfs_root);
}

/** vhca_debugfs_add() - the directory of a device that has started */
void vhca_debugfs_add(struct vhca_dev *vdev)
{
	vdev->debugfs = debugfs_create_dir(dev_name(&vdev->dev),
					   vhca_debugfs_root);
	debugfs_create_file("counters", 0400, vdev->debugfs, vdev,
			    &counters_fops);
	debugfs_create_file("vectors", 0400, vdev->debugfs, vdev,
			    &vectors_fops);
	debugfs_create_file("objects", 0400, vdev->debugfs, vdev,
			    &objects_fops);
	debugfs_create_file("limits", 0400, vdev->debugfs, vdev,
			    &limits_fops);
	vhca_show_add(vdev, vdev->debugfs);
}

/** vhca_debugfs_remove() - waits for readers; before the device stops */
void vhca_debugfs_remove(struct vhca_dev *vdev)
{
	debugfs_remove(vdev->debugfs);
}
