// SPDX-License-Identifier: GPL-2.0-only
/*
 * Message-signalled interrupts, from the function that sends a message as its
 * MSI-X table says to the root complex that turns it into an interrupt.
 *
 * The bus has an interrupt domain of its own, so that delivery depends neither
 * on an IOMMU nor on its interrupt remapping. The data of a message is
 * function << 6 | vector. The driver can write anything into the table; a
 * message that is not one of the function's own is dropped.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/msi.h>

#include "vdev.h"

/* Where the virtual root complex takes messages. */
#define MSI_ADDRESS	0xfee00000u

/* Dwords of a table entry. */
enum {
	ENTRY_LOWER	= PCI_MSIX_ENTRY_LOWER_ADDR / 4,
	ENTRY_UPPER	= PCI_MSIX_ENTRY_UPPER_ADDR / 4,
	ENTRY_DATA	= PCI_MSIX_ENTRY_DATA / 4,
	ENTRY_CONTROL	= PCI_MSIX_ENTRY_VECTOR_CTRL / 4,
	ENTRY_DWORDS	= PCI_MSIX_ENTRY_SIZE / 4,
};

static __le32 *table_entry(struct vdev *dev, unsigned int vector)
{
	return dev->msix_base + VHCA_MSIX_TABLE + vector * PCI_MSIX_ENTRY_SIZE;
}

static void *pending_bits(struct vdev *dev)
{
	return dev->msix_base + VHCA_MSIX_PBA;
}

/**
 * vdev_msix_blocked() - true when a vector's message must be kept pending
 * @dev: function.
 * @vector: entry of the table.
 *
 * A function that may not master the bus cannot send either.
 */
bool vdev_msix_blocked(struct vdev *dev, unsigned int vector)
{
	u32 flags = vdev_config(dev, VDEV_CAP_MSIX) >> 16;
	u32 control;

	if (!(vdev_config(dev, PCI_COMMAND) & PCI_COMMAND_MASTER) ||
	    !(flags & PCI_MSIX_FLAGS_ENABLE) || (flags & PCI_MSIX_FLAGS_MASKALL))
		return true;
	control = le32_to_cpu(READ_ONCE(table_entry(dev, vector)[ENTRY_CONTROL]));
	return control & PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

bool vdev_msix_pending(struct vdev *dev, unsigned int vector)
{
	return test_bit_le(vector, pending_bits(dev));
}

bool vdev_msix_on_its_way(struct vdev *dev, unsigned int vector)
{
	return atomic_read(&dev->vector[vector].queued);
}

/*
 * Hard interrupt context on the vector's CPU, interrupts off.
 *
 * The exchange is a full barrier, with two pairs. vector_queue(): a message that
 * merged with this delivery was sent before @queued fell, and what the device
 * wrote before it is seen by the handler; a later one queues again. And
 * vector_drain(): it saw @running, or @irq is seen to be gone here.
 */
static void vector_deliver(struct vdev_vector *vec)
{
	struct irq_data *d;

	atomic_inc(&vec->running);
	atomic_xchg(&vec->queued, 0);
	d = READ_ONCE(vec->irq);
	if (d)
		generic_handle_irq_desc(irq_data_to_desc(d));
	atomic_dec(&vec->running);
}

static void vector_work(struct irq_work *work)
{
	vector_deliver(container_of(work, struct vdev_vector, work));
}

/*
 * An idle CPU that polls for work runs this from its idle task. What comes from
 * a bus comes as an interrupt: let the CPU interrupt itself.
 */
static void vector_csd(void *data)
{
	struct vdev_vector *vec = data;

	if (in_hardirq())
		vector_deliver(vec);
	else
		irq_work_queue(&vec->work);
}

/* By smp_affinity. @queued is ours, so that vector_drain() waits. */
static bool vector_may_go_to(struct vdev_vector *vec, unsigned int cpu)
{
	struct irq_data *d = READ_ONCE(vec->irq);

	return d && cpumask_test_cpu(cpu, irq_data_get_affinity_mask(d));
}

/*
 * Where the message goes whose delivery @queued has just made ours: here if it may,
 * so that what it wakes is woken from where the work is done, and no other CPU has
 * to be interrupted for it. A handler that runs is followed by the next one on its
 * own CPU: on another one it would be masked until the first is through.
 */
static unsigned int vector_choose(struct vdev_vector *vec, unsigned int here)
{
	if (atomic_read(&vec->running))
		return vec->last;
	vec->last = vector_may_go_to(vec, here) ? here : READ_ONCE(vec->cpu);
	return vec->last;
}

static void vector_send_to(struct vdev_vector *vec, unsigned int cpu, unsigned int here)
{
	if (cpu == here || !cpu_online(cpu) || smp_call_function_single_async(cpu, &vec->csd))
		irq_work_queue(&vec->work);
}

/*
 * Returns false when the message merged with one whose delivery has not begun.
 * @queued also makes sure that @last and @csd have one user at a time. While
 * preemption is off no CPU can leave, so that an online one will take the call; a
 * vector whose CPU has left is delivered here.
 */
static bool vector_queue(struct vdev_vector *vec)
{
	unsigned int here = get_cpu();
	bool queued;

	/*
	 * Full barrier; its pair is in vector_deliver(), where @running has risen
	 * before @queued falls.
	 */
	queued = !atomic_xchg(&vec->queued, 1);
	if (queued)
		vector_send_to(vec, vector_choose(vec, here), here);
	put_cpu();
	return queued;
}

/* The vector has no interrupt any more: wait for deliveries that know it. */
static void vector_drain(struct vdev_vector *vec)
{
	WRITE_ONCE(vec->irq, NULL);
	/* Its pair is the exchange in vector_deliver(). */
	smp_mb();
	while (atomic_read(&vec->queued) || atomic_read(&vec->running))
		cpu_relax();
	irq_work_sync(&vec->work);
}

/* The vector that the message in a table entry raises; NULL when it is none of ours. */
static struct vdev_vector *entry_vector(struct vdev *dev, unsigned int vector)
{
	__le32 *entry = table_entry(dev, vector);
	u32 data = le32_to_cpu(READ_ONCE(entry[ENTRY_DATA]));
	struct vdev_vector *vec;

	if (READ_ONCE(entry[ENTRY_LOWER]) != cpu_to_le32(MSI_ADDRESS) ||
	    READ_ONCE(entry[ENTRY_UPPER]) || data / VHCA_MSIX_VECTORS != dev->index)
		return NULL;
	vec = &dev->vector[data % VHCA_MSIX_VECTORS];
	return READ_ONCE(vec->irq) ? vec : NULL;
}

static void send_message(struct vdev *dev, unsigned int vector)
{
	struct vdev_vector *vec = entry_vector(dev, vector);

	if (!vec) {
		pr_debug_ratelimited("function %u: message of vector %u names no interrupt\n",
				     dev->index, vector);
		return;
	}
	if (!vector_queue(vec))
		return;
	atomic64_inc(&dev->vector[vector].sent);
	vdev_count(dev, VDEV_MSIX);
}

void vdev_msix_send(struct vdev *dev, unsigned int vector)
{
	if (vdev_msix_blocked(dev, vector)) {
		/*
		 * Full barrier, also when the bit was set; its pair is in
		 * vdev_msix_unmasked(): we see the mask gone, or it sees the bit.
		 */
		bool kept = !test_and_set_bit_le(vector, pending_bits(dev));

		if (vdev_msix_blocked(dev, vector)) {
			if (kept) {
				atomic64_inc(&dev->vector[vector].pended);
				vdev_count(dev, VDEV_MSIX_PENDED);
			}
			return;
		}
		if (!test_and_clear_bit_le(vector, pending_bits(dev)))
			return;
	}
	send_message(dev, vector);
}

void vdev_msix_unmasked(struct vdev *dev)
{
	unsigned int vector;
	u64 pending;

	/*
	 * The mask went before; a device register, hence not smp_mb(). Its pair
	 * is the setting of the bit in vdev_msix_send().
	 */
	mb();
	pending = le64_to_cpu(READ_ONCE(*(__le64 *)pending_bits(dev)));
	for (vector = 0; vector < VHCA_MSIX_VECTORS; vector++)
		if (pending & BIT_ULL(vector) && !vdev_msix_blocked(dev, vector) &&
		    test_and_clear_bit_le(vector, pending_bits(dev)))
			send_message(dev, vector);
}

void vdev_msix_drop(struct vdev *dev)
{
	memset(pending_bits(dev), 0, VHCA_MSIX_VECTORS / 8);
}

void vdev_msix_reset(struct vdev *dev)
{
	unsigned int vector;

	memset(table_entry(dev, 0), 0, VHCA_MSIX_VECTORS * PCI_MSIX_ENTRY_SIZE);
	for (vector = 0; vector < VHCA_MSIX_VECTORS; vector++)
		WRITE_ONCE(table_entry(dev, vector)[ENTRY_CONTROL],
			   cpu_to_le32(PCI_MSIX_ENTRY_CTRL_MASKBIT));
	vdev_msix_drop(dev);
}

void vdev_msix_init(struct vdev *dev)
{
	unsigned int i;

	for (i = 0; i < VHCA_MSIX_VECTORS; i++) {
		struct vdev_vector *vec = &dev->vector[i];

		vec->dev = dev;
		vec->index = i;
		vec->work = IRQ_WORK_INIT_HARD(vector_work);
		INIT_CSD(&vec->csd, vector_csd, vec);
	}
	vdev_msix_reset(dev);
}

/* Nobody sends any more. */
void vdev_msix_exit(struct vdev *dev)
{
	unsigned int i;

	for (i = 0; i < VHCA_MSIX_VECTORS; i++)
		vector_drain(&dev->vector[i]);
}

/* The root complex' interrupt controller. */

static void chip_mask(struct irq_data *d)
{
	pci_msi_mask_irq(d);
}

/*
 * Under the descriptor's lock, interrupts off: what is pending is only queued
 * here, and delivered when both are given back.
 */
static void chip_unmask(struct irq_data *d)
{
	struct vdev_vector *vec = irq_data_get_irq_chip_data(d);

	pci_msi_unmask_irq(d);
	vdev_msix_unmasked(vec->dev);
}

/* Messages are edges: there is nothing to acknowledge. */
static void chip_ack(struct irq_data *d)
{
}

static int chip_retrigger(struct irq_data *d)
{
	vector_queue(irq_data_get_irq_chip_data(d));
	return 1;
}

static int chip_set_affinity(struct irq_data *d, const struct cpumask *mask, bool force)
{
	struct vdev_vector *vec = irq_data_get_irq_chip_data(d);
	unsigned int cpu = vec->cpu;

	if (!cpu_online(cpu) || !cpumask_test_cpu(cpu, mask))
		cpu = cpumask_any_and_distribute(mask, cpu_online_mask);
	if (cpu >= nr_cpu_ids)
		return -EINVAL;
	WRITE_ONCE(vec->cpu, cpu);
	irq_data_update_effective_affinity(d, mask);
	return IRQ_SET_MASK_OK;
}

static void chip_compose(struct irq_data *d, struct msi_msg *msg)
{
	struct vdev_vector *vec = irq_data_get_irq_chip_data(d);

	msg->address_hi = 0;
	msg->address_lo = MSI_ADDRESS;
	msg->data = vec->dev->index * VHCA_MSIX_VECTORS + vec->index;
}

static struct irq_chip msix_chip = {
	.name			= "vhca-MSI-X",
	.irq_mask		= chip_mask,
	.irq_unmask		= chip_unmask,
	.irq_ack		= chip_ack,
	.irq_retrigger		= chip_retrigger,
	.irq_set_affinity	= chip_set_affinity,
	.irq_compose_msi_msg	= chip_compose,
};

static irq_hw_number_t domain_get_hwirq(struct msi_domain_info *info, msi_alloc_info_t *arg)
{
	return arg->hwirq;
}

static int domain_msi_init(struct irq_domain *domain, struct msi_domain_info *info,
			   unsigned int virq, irq_hw_number_t hwirq, msi_alloc_info_t *arg)
{
	struct vdev *dev = vdev_of(msi_desc_to_pci_dev(arg->desc));
	struct vdev_vector *vec;

	if (!dev || arg->desc->msi_index >= VHCA_MSIX_VECTORS)
		return -ENODEV;
	vec = &dev->vector[arg->desc->msi_index];
	vec->cpu = cpumask_local_spread(vec->index, NUMA_NO_NODE);
	irq_domain_set_info(domain, virq, hwirq, info->chip, vec, handle_edge_irq, NULL, "edge");
	/* A new CPU holds at once; else it would wait for an interrupt on the old one. */
	irq_set_status_flags(virq, IRQ_MOVE_PCNTXT);
	WRITE_ONCE(vec->irq, irq_domain_get_irq_data(domain, virq));
	return 0;
}

static void domain_msi_free(struct irq_domain *domain, struct msi_domain_info *info,
			    unsigned int virq)
{
	struct irq_data *d = irq_domain_get_irq_data(domain, virq);

	vector_drain(irq_data_get_irq_chip_data(d));
}

static struct msi_domain_ops msix_domain_ops = {
	.get_hwirq	= domain_get_hwirq,
	.msi_init	= domain_msi_init,
	.msi_free	= domain_msi_free,
};

static struct msi_domain_info msix_domain_info = {
	.flags	= MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS | MSI_FLAG_PCI_MSIX,
	.ops	= &msix_domain_ops,
	.chip	= &msix_chip,
};

/**
 * vdev_msix_domain_create() - interrupt domain for the vectors of all functions
 *
 * Its token must not be that of an ordinary PCI-MSI domain: 6.1's DMAR code
 * replaces those when it sees a new device.
 */
struct irq_domain *vdev_msix_domain_create(void)
{
	struct fwnode_handle *fwnode = irq_domain_alloc_named_fwnode("vhca_device");
	struct irq_domain *domain;

	if (!fwnode)
		return NULL;
	domain = pci_msi_create_irq_domain(fwnode, &msix_domain_info, NULL);
	if (!domain) {
		irq_domain_free_fwnode(fwnode);
		return NULL;
	}
	irq_domain_update_bus_token(domain, DOMAIN_BUS_VMD_MSI);
	return domain;
}

void vdev_msix_domain_remove(struct irq_domain *domain)
{
	struct fwnode_handle *fwnode = domain->fwnode;

	irq_domain_remove(domain);
	irq_domain_free_fwnode(fwnode);
}
