// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event queues and the MSI-X vectors that say there is something in them.
 *
 * EQ 0 takes async events and answers of the admin queue, the others take
 * completion events, one EQ for each online CPU up to a limit. There is a vector
 * for each EQ while vectors last; an EQ hangs on the notifier chain of its
 * vector, so sharing one needs nothing else.
 *
 * The handler runs in hard interrupt context, on PREEMPT_RT too, so it takes raw
 * locks only.
 */
#include <linux/dma-mapping.h>

#include "vhca.h"

static struct vhca_eqe *vhca_eq_entry(struct vhca_eq *eq)
{
	u32 offset = (eq->ci & ((1 << eq->shift) - 1)) * sizeof(struct vhca_eqe);

	return page_address(eq->buf->pages[offset >> PAGE_SHIFT]) +
	       offset_in_page(offset);
}

/*
 * RCU: the caller is in a read-side section, which destroying a CQ waits for
 * before it kills the tasklet. A CQ that was destroyed is not found; its number
 * may have gone to a new CQ of another EQ, which this event does not concern.
 */
static void vhca_eq_comp(struct vhca_eq *eq, u32 cqn)
{
	struct vhca_cq *cq = xa_load(&eq->vdev->cqs, cqn);

	eq->comp_eqes++;
	if (cq && cq->eq == eq)
		tasklet_schedule(&cq->tasklet);
}

static void vhca_eq_dispatch(struct vhca_eq *eq, const struct vhca_eqe *eqe)
{
	u32 number = be32_to_cpu(eqe->number);

	eq->eqes++;
	switch (eqe->type) {
	case VHCA_EQE_COMP:
		vhca_eq_comp(eq, number);
		break;
	case VHCA_EQE_CMD:
		vhca_admin_poll(eq->vdev);
		break;
	default:
		eq->async_eqes++;
		vhca_async_eqe(eq->vdev, eqe->type, number);
	}
}

static bool vhca_eq_consume(struct vhca_eq *eq)
{
	u32 ci = eq->ci;

	for (;;) {
		struct vhca_eqe *eqe = vhca_eq_entry(eq);
		u8 owner = ~(eq->ci >> eq->shift) & 1;

		if ((READ_ONCE(eqe->owner) & 1) != owner)
			break;
		/* Pairs with the device's order of the entry, then its owner bit. */
		dma_rmb();
		vhca_eq_dispatch(eq, eqe);
		eq->ci++;
		/* Room for others, however long this goes on; not armed until it ends. */
		if (!(eq->ci % VHCA_EQ_BATCH))
			vhca_write(eq->vdev, VHCA_REG_EQ_DB(eq->eqn),
				   eq->ci & VHCA_EQ_DB_CI_MASK);
	}
	return eq->ci != ci;
}

static void vhca_eq_arm(struct vhca_eq *eq)
{
	vhca_write(eq->vdev, VHCA_REG_EQ_DB(eq->eqn),
		   (eq->ci & VHCA_EQ_DB_CI_MASK) | VHCA_EQ_DB_ARM);
	/*
	 * The doorbell before the next look at the ring. Pairs with the device's
	 * full barrier between writing an EQE and looking at the doorbell: one of
	 * the two sees the other.
	 */
	mb();
}

/**
 * vhca_eq_poll() - take and dispatch what is in an EQ, arm it behind that
 * @eq: the EQ.
 *
 * Any context. Ends with an armed EQ in which the last look found nothing.
 */
void vhca_eq_poll(struct vhca_eq *eq)
{
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&eq->lock, flags);
	while (vhca_eq_consume(eq))
		vhca_eq_arm(eq);
	raw_spin_unlock_irqrestore(&eq->lock, flags);
	rcu_read_unlock();
}

static int vhca_eq_notify(struct notifier_block *nb, unsigned long action,
			  void *data)
{
	vhca_eq_poll(container_of(nb, struct vhca_eq, nb));
	return NOTIFY_OK;
}

static irqreturn_t vhca_irq(int irq, void *data)
{
	struct vhca_vector *vec = data;

	WRITE_ONCE(vec->interrupts, vec->interrupts + 1);
	atomic_notifier_call_chain(&vec->eqs, 0, NULL);
	return IRQ_HANDLED;
}

/*
 * A hint, no more: a device may deliver each message where it is at work, as long as
 * nobody says where the vector is to be.
 */
static void vhca_vector_hint(struct vhca_vector *vec)
{
	struct vhca_dev *vdev = vec->vdev;
	unsigned int cpu;

	if (!vec->index)
		return;
	cpu = cpumask_local_spread(vec->index - 1, dev_to_node(&vdev->pdev->dev));
	irq_update_affinity_hint(vec->irq, cpumask_of(cpu));
}

static int vhca_vector_request(struct vhca_dev *vdev, unsigned int i)
{
	struct vhca_vector *vec = &vdev->vectors[i];
	int ret;

	vec->vdev = vdev;
	vec->index = i;
	vec->irq = pci_irq_vector(vdev->pdev, i);
	ATOMIC_INIT_NOTIFIER_HEAD(&vec->eqs);
	if (i)
		snprintf(vec->name, sizeof(vec->name), "%s-comp%u",
			 dev_name(&vdev->dev), i - 1);
	else
		snprintf(vec->name, sizeof(vec->name), "%s-async",
			 dev_name(&vdev->dev));
	ret = request_irq(vec->irq, vhca_irq, IRQF_NO_THREAD, vec->name, vec);
	if (ret)
		return ret;
	vhca_vector_hint(vec);
	return 0;
}

static int vhca_vectors_request(struct vhca_dev *vdev, unsigned int wanted)
{
	int got = pci_alloc_irq_vectors(vdev->pdev, 1, wanted, PCI_IRQ_MSIX);
	unsigned int i;
	int ret;

	if (got < 0)
		return got;
	vdev->vectors = kcalloc(got, sizeof(*vdev->vectors), GFP_KERNEL);
	if (!vdev->vectors) {
		ret = -ENOMEM;
		goto err_free;
	}
	for (i = 0; i < got; i++) {
		ret = vhca_vector_request(vdev, i);
		if (ret)
			goto err_free;
		vdev->num_vectors = i + 1;
	}
	return 0;

err_free:
	if (!vdev->num_vectors)
		pci_free_irq_vectors(vdev->pdev);
	return ret;
}

static int vhca_eq_cmd(struct vhca_eq *eq)
{
	struct vhca_dev *vdev = eq->vdev;
	struct vhca_plist pl;
	struct vhca_cmd cmd = {
		.create_eq = {
			.eqn	= cpu_to_be32(eq->eqn),
			.vector	= cpu_to_be32(eq->vector->index),
			.shift	= cpu_to_be32(eq->shift),
		},
	};
	int ret;

	ret = vhca_plist_buf(vdev, &pl, eq->buf);
	if (ret)
		return ret;
	cmd.create_eq.pages = vhca_plist_addr(&pl);
	ret = vhca_cmd(vdev, VHCA_CMD_CREATE_EQ, &cmd, NULL);
	vhca_plist_free(vdev, &pl);
	return ret;
}

static struct vhca_vector *vhca_eq_vector(struct vhca_dev *vdev, u32 eqn)
{
	unsigned int comp_vectors = vdev->num_vectors - 1;

	if (!eqn || !comp_vectors)
		return &vdev->vectors[0];
	return &vdev->vectors[1 + (eqn - 1) % comp_vectors];
}

static int vhca_eq_create(struct vhca_dev *vdev, u32 eqn)
{
	struct vhca_eq *eq = &vdev->eqs[eqn];
	int ret;

	raw_spin_lock_init(&eq->lock);
	eq->vdev = vdev;
	eq->eqn = eqn;
	eq->shift = min_t(u32, VHCA_EQ_SHIFT, vdev->caps.max_eq_shift);
	eq->vector = vhca_eq_vector(vdev, eqn);
	eq->nb.notifier_call = vhca_eq_notify;
	eq->buf = vhca_buf_alloc(vdev, sizeof(struct vhca_eqe) << eq->shift);
	if (IS_ERR(eq->buf))
		return PTR_ERR(eq->buf);
	/* From here on vhca_eqs_free() frees it, the device being reset. */
	vdev->num_eqs = eqn + 1;

	ret = vhca_eq_cmd(eq);
	if (ret)
		return ret;
	atomic_notifier_chain_register(&eq->vector->eqs, &eq->nb);
	raw_spin_lock_irq(&eq->lock);
	vhca_eq_arm(eq);
	raw_spin_unlock_irq(&eq->lock);
	vhca_eq_poll(eq);
	return 0;
}

/**
 * vhca_eqs_create() - vectors, EQ 0 and the completion EQs
 * @vdev: a device that is enabled.
 *
 * On failure the caller resets the device, then calls vhca_eqs_free().
 */
int vhca_eqs_create(struct vhca_dev *vdev)
{
	unsigned int comp = min3(num_online_cpus(), vdev->caps.max_eq - 1,
				 (unsigned int)VHCA_MAX_COMP_EQS);
	u32 eqn;
	int ret;

	ret = vhca_vectors_request(vdev, 1 + comp);
	if (ret)
		return ret;
	vdev->eqs = kcalloc(1 + comp, sizeof(*vdev->eqs), GFP_KERNEL);
	if (!vdev->eqs)
		return -ENOMEM;
	for (eqn = 0; eqn <= comp; eqn++) {
		ret = vhca_eq_create(vdev, eqn);
		if (ret)
			return ret;
		WRITE_ONCE(vdev->admin.events, true);
	}
	vdev->num_comp = comp;
	return 0;
}

/** vhca_eqs_free() - the device is reset: no handler runs after this */
void vhca_eqs_free(struct vhca_dev *vdev)
{
	unsigned int i;

	for (i = 0; i < vdev->num_vectors; i++) {
		irq_update_affinity_hint(vdev->vectors[i].irq, NULL);
		free_irq(vdev->vectors[i].irq, &vdev->vectors[i]);
	}
	if (vdev->num_vectors)
		pci_free_irq_vectors(vdev->pdev);
	for (i = 0; i < vdev->num_eqs; i++) {
		vhca_buf_unmap(vdev, vdev->eqs[i].buf);
		vhca_buf_put(vdev->eqs[i].buf);
	}
	kfree(vdev->eqs);
	kfree(vdev->vectors);
	vdev->eqs = NULL;
	vdev->vectors = NULL;
	vdev->num_vectors = 0;
	vdev->num_eqs = 0;
}
