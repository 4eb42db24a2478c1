// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mask an interrupt's vector, and unmask it, on behalf of a test:
 * insmod vhca_mask.ko irq=N; then write 1 or 0 to the parameter mask.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/module.h>

static unsigned int irq;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "Linux interrupt");

static bool masked;

/* Parameters are set one at a time. */
static int mask_set(const char *val, const struct kernel_param *kp)
{
	bool on;
	int ret = kstrtobool(val, &on);

	if (ret || on == masked)
		return ret;
	if (on)
		disable_irq(irq);
	else
		enable_irq(irq);
	masked = on;
	return 0;
}

static const struct kernel_param_ops mask_ops = {
	.set = mask_set,
	.get = param_get_bool,
};

module_param_cb(mask, &mask_ops, &masked, 0644);
MODULE_PARM_DESC(mask, "whether its vector is masked");

static int __init vhca_mask_init(void)
{
	if (!irq_has_action(irq))
		return -EINVAL;
	/* Else it would be masked only when its next message comes. */
	irq_set_status_flags(irq, IRQ_DISABLE_UNLAZY);
	return 0;
}

static void __exit vhca_mask_exit(void)
{
	if (masked)
		enable_irq(irq);
	irq_clear_status_flags(irq, IRQ_DISABLE_UNLAZY);
}

module_init(vhca_mask_init);
module_exit(vhca_mask_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("vhca selftests: mask a vector");
