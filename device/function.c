// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI functions that exist only in software, and the bus that they sit on.
 * Module init and exit.
 *
 * The bus is a root bus of its own, in a PCI domain of its own; function n is
 * function 0 of its device n. One physically contiguous piece of reserved pages
 * carries all BARs of a function and is a window of the bus, so that the PCI
 * core can claim the BARs as for any function.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <asm/set_memory.h>

#include "vdev.h"

/*
 * PCI domain: the highest one below this that has no bus. Not beyond 16 bits:
 * the IOMMU code cuts domains to that, and would take us for another's device.
 * Firmware counts up from 0.
 */
#define DOMAIN_LIMIT	0xf000

/* BARs in a function's pages, in the order of their alignment. */
#define UAR_SIZE	((VDEV_MAX_UAR + VDEV_DM_PAGES) * VHCA_UAR_PAGE_SIZE)
#define REGS_AT		UAR_SIZE
#define MSIX_AT		(REGS_AT + VHCA_REGS_SIZE)
#define PAGES_SIZE	(MSIX_AT + VHCA_MSIX_SIZE)

static unsigned int functions = 1;
module_param(functions, uint, 0444);
MODULE_PARM_DESC(functions, "number of functions, 1 to 32");

static ushort vendor = VHCA_PCI_VENDOR;
module_param(vendor, ushort, 0444);
MODULE_PARM_DESC(vendor, "PCI vendor id");

static ushort device = VHCA_PCI_DEVICE;
module_param(device, ushort, 0444);
MODULE_PARM_DESC(device, "PCI device id");

DEFINE_SRCU(vdev_srcu);
atomic64_t vdev_epoch __read_mostly = ATOMIC64_INIT(1);

/* Functions come before the bus and go after it. */
struct vdev __rcu *vdev_table[VDEV_MAX_FUNCTIONS] __read_mostly;

static struct irq_domain *msix_domain;
static struct pci_bus *root_bus;
static struct pci_sysdata root_sysdata = { .node = NUMA_NO_NODE };
static struct resource root_busn = {
	.name	= "vhca_device bus",
	.flags	= IORESOURCE_BUS,
};

void vdev_wait_unused(void)
{
	/* Tables before epoch: a full barrier; pairs with the acquire in vdev_recall(). */
	atomic64_inc_return(&vdev_epoch);
	synchronize_srcu_expedited(&vdev_srcu);
}

u64 vdev_guid(const struct vdev *dev)
{
	/* EUI-64 with the bit of local administration, then "VHCA". */
	return 0x0256484341000000ull | vdev_lid(dev);
}

/* Configuration space */

static void config_set_bar(struct vdev *dev, int bar, u64 addr)
{
	u32 *at = &dev->config[PCI_BASE_ADDRESS_0 / 4 + bar];

	at[0] = lower_32_bits(addr) | PCI_BASE_ADDRESS_SPACE_MEMORY |
		PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
	at[1] = upper_32_bits(addr);
}

/* What a reset leaves: identity and capabilities, BARs at zero. */
static void config_reset(struct vdev *dev)
{
	u32 *config = dev->config;

	memset(config, 0, sizeof(dev->config));
	config[PCI_VENDOR_ID / 4] = device << 16 | vendor;
	config[PCI_COMMAND / 4] = PCI_STATUS_CAP_LIST << 16;
	config[PCI_CLASS_REVISION / 4] = VHCA_PCI_CLASS << 8;
	config[PCI_SUBSYSTEM_VENDOR_ID / 4] = device << 16 | vendor;
	config[PCI_CAPABILITY_LIST / 4] = VDEV_CAP_EXP;
	config_set_bar(dev, VHCA_BAR_UAR, 0);
	config_set_bar(dev, VHCA_BAR_REGS, 0);
	config_set_bar(dev, VHCA_BAR_MSIX, 0);

	config[VDEV_CAP_EXP / 4] = PCI_CAP_ID_EXP | VDEV_CAP_MSIX << 8 |
		(2 | PCI_EXP_TYPE_RC_END << 4) << 16;
	config[(VDEV_CAP_EXP + PCI_EXP_DEVCAP) / 4] = PCI_EXP_DEVCAP_RBER |
		PCI_EXP_DEVCAP_FLR;

	config[VDEV_CAP_MSIX / 4] = PCI_CAP_ID_MSIX | (VHCA_MSIX_VECTORS - 1) << 16;
	config[(VDEV_CAP_MSIX + PCI_MSIX_TABLE) / 4] = VHCA_MSIX_TABLE | VHCA_BAR_MSIX;
	config[(VDEV_CAP_MSIX + PCI_MSIX_PBA) / 4] = VHCA_MSIX_PBA | VHCA_BAR_MSIX;
}

/* What firmware does at boot. */
static void config_place_bars(struct vdev *dev)
{
	config_set_bar(dev, VHCA_BAR_UAR, dev->window.start);
	config_set_bar(dev, VHCA_BAR_REGS, dev->window.start + REGS_AT);
	config_set_bar(dev, VHCA_BAR_MSIX, dev->window.start + MSIX_AT);
}

/* Bits that a write changes, in the dword at @where. */
static u32 config_writable(unsigned int where)
{
	switch (where) {
	case PCI_COMMAND:
		return PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
		       PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE;
	case PCI_CACHE_LINE_SIZE:
	case PCI_INTERRUPT_LINE:
		return 0xff;
	case PCI_BASE_ADDRESS_0 + 4 * VHCA_BAR_REGS:
		return ~(VHCA_REGS_SIZE - 1);
	case PCI_BASE_ADDRESS_0 + 4 * VHCA_BAR_UAR:
		return ~(UAR_SIZE - 1);
	case PCI_BASE_ADDRESS_0 + 4 * VHCA_BAR_MSIX:
		return ~(VHCA_MSIX_SIZE - 1);
	case PCI_BASE_ADDRESS_0 + 4 * (VHCA_BAR_REGS + 1):
	case PCI_BASE_ADDRESS_0 + 4 * (VHCA_BAR_UAR + 1):
	case PCI_BASE_ADDRESS_0 + 4 * (VHCA_BAR_MSIX + 1):
		return ~0;
	case VDEV_CAP_EXP + PCI_EXP_DEVCTL:
		return 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR;
	case VDEV_CAP_MSIX:
		return (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) << 16;
	}
	return 0;
}

/* The bus exists, hence the functions on it. */
static struct vdev *config_function(unsigned int devfn)
{
	if (PCI_FUNC(devfn) || PCI_SLOT(devfn) >= VDEV_MAX_FUNCTIONS)
		return NULL;
	return rcu_dereference_protected(vdev_table[PCI_SLOT(devfn)], true);
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *val)
{
	struct vdev *dev = config_function(devfn);

	PCI_SET_ERROR_RESPONSE(val);
	if (!dev)
		return PCIBIOS_DEVICE_NOT_FOUND;
	/* Pairs with the release in function_reset(). */
	if (smp_load_acquire(&dev->resetting))
		return PCIBIOS_SUCCESSFUL;
	/* Extended space is there, and empty. */
	*val = where < PCI_CFG_SPACE_SIZE ? vdev_config(dev, where) >> 8 * (where & 3) : 0;
	*val &= GENMASK(8 * size - 1, 0);
	return PCIBIOS_SUCCESSFUL;
}

/*
 * Under the PCI core's raw pci_lock, interrupts off: nothing here may sleep, and
 * nobody else writes.
 */
static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 val)
{
	struct vdev *dev = config_function(devfn);
	unsigned int dword = where & ~3;
	u32 mask = GENMASK(8 * size - 1, 0) << 8 * (where & 3);

	if (!dev)
		return PCIBIOS_DEVICE_NOT_FOUND;
	/* Pairs with the release in function_reset(). */
	if (where >= PCI_CFG_SPACE_SIZE || smp_load_acquire(&dev->resetting))
		return PCIBIOS_SUCCESSFUL;
	val = val << 8 * (where & 3) & mask;
	if (dword == VDEV_CAP_EXP + PCI_EXP_DEVCTL && val & PCI_EXP_DEVCTL_BCR_FLR) {
		WRITE_ONCE(dev->resetting, true);
		schedule_work(&dev->reset_work);
		return PCIBIOS_SUCCESSFUL;
	}
	mask &= config_writable(dword);
	WRITE_ONCE(dev->config[dword / 4], (vdev_config(dev, dword) & ~mask) | (val & mask));
	if (dword == PCI_COMMAND || dword == VDEV_CAP_MSIX)
		vdev_msix_unmasked(dev);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read	= config_read,
	.write	= config_write,
};

/* Function level reset. Configuration space answers again when it is over. */
static void function_reset(struct work_struct *work)
{
	struct vdev *dev = container_of(work, struct vdev, reset_work);

	vdev_reset(dev);
	vdev_msix_reset(dev);
	config_reset(dev);
	/* Pairs with the acquires in config_read() and config_write(). */
	smp_store_release(&dev->resetting, false);
}

/* A function's pages */

static int block_alloc(struct vdev *dev)
{
	void *block = alloc_pages_exact(PAGES_SIZE, GFP_KERNEL | __GFP_ZERO | __GFP_RETRY_MAYFAIL);
	unsigned long off;

	if (!block)
		return -ENOMEM;
	for (off = 0; off < PAGES_SIZE; off += PAGE_SIZE)
		SetPageReserved(virt_to_page(block + off));
	dev->uar_base = block;
	dev->regs = block + REGS_AT;
	dev->msix_base = block + MSIX_AT;
	dev->window.name = "vhca_device";
	dev->window.start = virt_to_phys(block);
	dev->window.end = dev->window.start + PAGES_SIZE - 1;
	dev->window.flags = IORESOURCE_MEM | IORESOURCE_MEM_64 | IORESOURCE_PREFETCH;
	return 0;
}

/*
 * Mapping a BAR for I/O made the kernel's own mapping of its pages uncached as
 * well, and unmapping did not undo that.
 */
static void block_free(struct vdev *dev)
{
	unsigned long off;

	set_memory_wb((unsigned long)dev->uar_base, PAGES_SIZE / PAGE_SIZE);
	for (off = 0; off < PAGES_SIZE; off += PAGE_SIZE)
		ClearPageReserved(virt_to_page(dev->uar_base + off));
	free_pages_exact(dev->uar_base, PAGES_SIZE);
}

/* Functions */

static struct vdev *function_alloc(unsigned int index)
{
	struct vdev *dev = kvzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	dev->index = index;
	dev->soft.owner = THIS_MODULE;
	dev->soft.registers = vdev_registers;
	dev->soft.kick = vdev_kick;
	INIT_WORK(&dev->reset_work, function_reset);
	mutex_init(&dev->admin_lock);
	vdev_faults_init(dev);
	hash_init(dev->mcast);
	xa_init_flags(&dev->pds, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->xrcds, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->mkeys, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	return dev;
}

static int function_create(unsigned int index)
{
	struct vdev *dev = function_alloc(index);
	int ret = -ENOMEM;

	if (!dev)
		return ret;
	dev->stats = alloc_percpu(struct vdev_stats);
	if (!dev->stats)
		goto err_free;
	ret = block_alloc(dev);
	if (ret)
		goto err_stats;
	config_reset(dev);
	config_place_bars(dev);
	vdev_regs_init(dev);
	vdev_msix_init(dev);
	ret = vdev_engine_start(dev);
	if (ret)
		goto err_block;
	vdev_stats_add(dev);
	rcu_assign_pointer(vdev_table[index], dev);
	return 0;

err_block:
	block_free(dev);
err_stats:
	free_percpu(dev->stats);
err_free:
	kvfree(dev);
	return ret;
}

/* The bus is gone, or never was. Other functions may still look for this one. */
static void function_destroy(unsigned int index)
{
	struct vdev *dev = rcu_dereference_protected(vdev_table[index], true);

	if (!dev)
		return;
	vdev_stats_remove(dev);
	cancel_work_sync(&dev->reset_work);
	vdev_reset(dev);
	RCU_INIT_POINTER(vdev_table[index], NULL);
	vdev_wait_unused();
	vdev_engine_stop(dev);
	vdev_faults_exit(dev);
	vdev_msix_exit(dev);
	xa_destroy(&dev->pds);
	xa_destroy(&dev->xrcds);
	xa_destroy(&dev->mkeys);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->qps);
	pci_dev_put(dev->pdev);
	block_free(dev);
	free_percpu(dev->stats);
	kvfree(dev);
}

static void functions_destroy(void)
{
	unsigned int i;

	for (i = 0; i < VDEV_MAX_FUNCTIONS; i++)
		function_destroy(i);
	vdev_faults_end();
}

static int functions_create(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < functions; i++) {
		ret = function_create(i);
		if (ret) {
			functions_destroy();
			return ret;
		}
	}
	return 0;
}

/*
 * The PCI core has found a function, at first or after somebody removed it
 * through sysfs and had the bus scanned again. No driver binds before this
 * returns. The reference to a removed one is kept until now, for messages.
 */
static void function_found(struct vdev *dev, struct pci_dev *pdev)
{
	static const int bars[] = { VHCA_BAR_REGS, VHCA_BAR_UAR, VHCA_BAR_MSIX };
	struct pci_dev *old = dev->pdev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bars); i++)
		if (pci_claim_resource(pdev, bars[i]))
			return;
	dev->pdev = pci_dev_get(pdev);
	pdev->dev.platform_data = &dev->soft;
	pci_dev_put(old);
}

static void function_removed(struct vdev *dev, struct pci_dev *pdev)
{
	pdev->dev.platform_data = NULL;
	vdev_reset(dev);
}

static int bus_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);
	struct vdev *dev;

	if (pdev->bus->ops != &config_ops)
		return NOTIFY_DONE;
	dev = config_function(pdev->devfn);
	if (event == BUS_NOTIFY_ADD_DEVICE)
		function_found(dev, pdev);
	else if (event == BUS_NOTIFY_REMOVED_DEVICE)
		function_removed(dev, pdev);
	return NOTIFY_OK;
}

static struct notifier_block bus_notifier = { .notifier_call = bus_event };

/* The bus */

static bool domain_in_use(int domain)
{
	struct pci_bus *bus = NULL;

	while ((bus = pci_find_next_bus(bus)))
		if (pci_domain_nr(bus) == domain)
			return true;
	return false;
}

static bool functions_found(void)
{
	unsigned int i;

	for (i = 0; i < functions; i++)
		if (!config_function(PCI_DEVFN(i, 0))->pdev)
			return false;
	return true;
}

/* The bridge that came with the bus does not go with it: that reference is ours. */
static void bus_remove(void)
{
	struct pci_host_bridge *bridge = to_pci_host_bridge(root_bus->bridge);

	pci_lock_rescan_remove();
	pci_stop_root_bus(root_bus);
	pci_remove_root_bus(root_bus);
	pci_unlock_rescan_remove();
	pci_free_host_bridge(bridge);
}

static int bus_create(void)
{
	LIST_HEAD(resources);
	unsigned int i;
	bool found;

	pci_add_resource(&resources, &root_busn);
	for (i = 0; i < functions; i++)
		pci_add_resource(&resources, &config_function(PCI_DEVFN(i, 0))->window);

	pci_lock_rescan_remove();
	root_sysdata.domain = DOMAIN_LIMIT - 1;
	while (domain_in_use(root_sysdata.domain))
		root_sysdata.domain--;
	root_bus = pci_create_root_bus(NULL, 0, &config_ops, &root_sysdata, &resources);
	if (!root_bus) {
		pci_unlock_rescan_remove();
		pci_free_resource_list(&resources);
		return -ENODEV;
	}
	dev_set_msi_domain(&root_bus->dev, msix_domain);
	pci_scan_child_bus(root_bus);
	found = functions_found();
	if (found)
		pci_bus_add_devices(root_bus);
	pci_unlock_rescan_remove();
	if (found)
		return 0;
	bus_remove();
	return -ENODEV;
}

static bool parameters_valid(void)
{
	return functions && functions <= VDEV_MAX_FUNCTIONS &&
	       vendor && vendor != U16_MAX && device != U16_MAX;
}

static int __init vdev_init(void)
{
	int ret;

	if (!parameters_valid()) {
		pr_err("vhca_device: functions, vendor or device out of range\n");
		return -EINVAL;
	}
	vdev_stats_init();
	ret = functions_create();
	if (ret)
		goto err_stats;
	ret = -ENOMEM;
	msix_domain = vdev_msix_domain_create();
	if (!msix_domain)
		goto err_functions;
	ret = bus_register_notifier(&pci_bus_type, &bus_notifier);
	if (ret)
		goto err_domain;
	ret = bus_create();
	if (ret)
		goto err_notifier;
	return 0;

err_notifier:
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
err_domain:
	vdev_msix_domain_remove(msix_domain);
err_functions:
	functions_destroy();
err_stats:
	vdev_stats_exit();
	return ret;
}

static void __exit vdev_exit(void)
{
	bus_remove();
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
	vdev_msix_domain_remove(msix_domain);
	functions_destroy();
	vdev_stats_exit();
}

module_init(vdev_init);
module_exit(vdev_exit);
MODULE_DESCRIPTION("Virtual RDMA host channel adapter");
MODULE_LICENSE("GPL");
