/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kick, the one thing that a software adapter needs and a card
 * does not. Stores to a BAR of the virtual function trap nowhere, so the driver
 * tells the device when it has stored something that a card would have seen.
 *
 * The device hangs one structure of these operations on its pci_dev as platform
 * data; a card has none, and the driver then makes no such call.
 */
#ifndef VHCA_SOFT_H
#define VHCA_SOFT_H

#include <linux/types.h>

struct module;
struct pci_dev;

/**
 * struct vhca_soft_ops - what the device does when it is told to look
 * @owner: module to hold while a file is open on the function.
 * @registers: look at BAR0: control register and admin doorbell. Process
 *	context; may sleep. Admin commands rung before the call have been
 *	executed when it returns.
 * @kick: look at the doorbell in slot @slot of UAR page @uar. Process context;
 *	may sleep, does not wait for others. The caller has checked that the
 *	page is the user's; a slot that is out of range or has no object is
 *	ignored.
 *
 * @registers may be called until the driver's remove callback returns, @kick as long as
 * @owner is held, and so long this structure stays: a kick for a function that was removed
 * or reset finds no object.
 */
struct vhca_soft_ops {
	struct module *owner;
	void (*registers)(struct pci_dev *pdev);
	void (*kick)(const struct vhca_soft_ops *soft, u32 uar, u32 slot);
};

#endif
