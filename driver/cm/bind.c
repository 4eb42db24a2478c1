// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which network devices a function is bound to: it answers for their addresses. The
 * attribute "bind" of the misc device shows it and changes it.
 *
 * The RTNL is taken before cm_lock, so a device that is bound is one that is there, and
 * the notifier takes it off before it is not. A function is bound to the loopback
 * devices of all namespaces, or to none.
 */
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "cm.h"

struct cm_binding {
	struct list_head node;		/* in cm_fn.bindings */
	struct net_device *dev;
};

static struct cm_binding *cm_binding_find(struct cm_fn *fn, const struct net_device *dev)
{
	struct cm_binding *b;

	list_for_each_entry(b, &fn->bindings, node)
		if (b->dev == dev)
			return b;
	return NULL;
}

static bool cm_is_loopback(const struct net_device *dev)
{
	return dev->flags & IFF_LOOPBACK;
}

/** cm_fn_of_netdev() - the lowest function that is bound, or NULL; cm_lock is held */
struct cm_fn *cm_fn_of_netdev(struct net_device *dev)
{
	struct cm_fn *fn;

	list_for_each_entry(fn, &cm_fns, node)
		if (cm_is_loopback(dev) ? fn->loopback : !!cm_binding_find(fn, dev))
			return fn;
	return NULL;
}

static void cm_binding_free(struct cm_binding *b)
{
	list_del(&b->node);
	kfree(b);
}

/** cm_fn_unbind_all() - a function goes; cm_lock is held */
void cm_fn_unbind_all(struct cm_fn *fn)
{
	struct cm_binding *b, *next;

	list_for_each_entry_safe(b, next, &fn->bindings, node)
		cm_binding_free(b);
}

static int cm_bind_netdev(struct cm_fn *fn, struct net_device *dev)
{
	struct cm_binding *b;

	if (cm_is_loopback(dev)) {
		if (fn->loopback)
			return -EEXIST;
		fn->loopback = true;
		return 0;
	}
	if (cm_binding_find(fn, dev))
		return -EEXIST;
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->dev = dev;
	list_add_tail(&b->node, &fn->bindings);
	return 0;
}

static int cm_unbind_netdev(struct cm_fn *fn, struct net_device *dev)
{
	struct cm_binding *b;

	if (cm_is_loopback(dev)) {
		if (!fn->loopback)
			return -ENOENT;
		fn->loopback = false;
		return 0;
	}
	b = cm_binding_find(fn, dev);
	if (!b)
		return -ENOENT;
	cm_binding_free(b);
	return 0;
}

/* vhcaN +DEV or vhcaN -DEV, in the namespace of who writes. */
static int cm_binding_change(const char *name, const char *change)
{
	struct net_device *dev;
	struct cm_fn *fn;

	if (*change != '+' && *change != '-')
		return -EINVAL;
	fn = cm_fn_by_name(name);
	dev = __dev_get_by_name(current->nsproxy->net_ns, change + 1);
	if (!fn || !dev)
		return -ENODEV;
	return *change == '+' ? cm_bind_netdev(fn, dev) : cm_unbind_netdev(fn, dev);
}

static ssize_t bind_store(struct device *dev, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	char name[16], change[IFNAMSIZ + 1], rest;
	int ret;

	if (sscanf(buf, "%15s %16s %c", name, change, &rest) != 2)
		return -EINVAL;
	rtnl_lock();
	mutex_lock(&cm_lock);
	ret = cm_binding_change(name, change);
	mutex_unlock(&cm_lock);
	rtnl_unlock();
	return ret ?: count;
}

/* A namespace sees its own devices. */
static ssize_t bind_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct net *net = current->nsproxy->net_ns;
	struct cm_binding *b;
	struct cm_fn *fn;
	int at = 0;

	rtnl_lock();
	mutex_lock(&cm_lock);
	list_for_each_entry(fn, &cm_fns, node) {
		if (fn->loopback)
			at += sysfs_emit_at(buf, at, "%s lo\n", fn->attr.name);
		list_for_each_entry(b, &fn->bindings, node)
			if (net_eq(dev_net(b->dev), net))
				at += sysfs_emit_at(buf, at, "%s %s\n", fn->attr.name,
						    b->dev->name);
	}
	mutex_unlock(&cm_lock);
	rtnl_unlock();
	return at;
}
DEVICE_ATTR_RW(bind);

/* It goes, or it goes to another namespace. */
static int cm_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct cm_binding *b;
	struct cm_fn *fn;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	mutex_lock(&cm_lock);
	list_for_each_entry(fn, &cm_fns, node) {
		b = cm_binding_find(fn, dev);
		if (b)
			cm_binding_free(b);
	}
	mutex_unlock(&cm_lock);
	return NOTIFY_DONE;
}

static struct notifier_block cm_netdev_nb = {
	.notifier_call = cm_netdev_event,
};

/** cm_bindings_init() - hear of network devices that go */
int cm_bindings_init(void)
{
	return register_netdevice_notifier(&cm_netdev_nb);
}

/** cm_bindings_exit() - no more */
void cm_bindings_exit(void)
{
	unregister_netdevice_notifier(&cm_netdev_nb);
}
