// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions of vhca that connections are made between.
 */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

LIST_HEAD(cm_fns);

/** cm_fn_by_gid() - the function whose port has a GID, or NULL; cm_lock is held */
struct cm_fn *cm_fn_by_gid(const u8 *gid)
{
	struct cm_fn *fn;

	list_for_each_entry(fn, &cm_fns, node)
		if (!memcmp(fn->gid, gid, sizeof(fn->gid)))
			return fn;
	return NULL;
}

/** cm_fn_by_name() - the function of that name, or NULL; cm_lock is held */
struct cm_fn *cm_fn_by_name(const char *name)
{
	struct cm_fn *fn;

	list_for_each_entry(fn, &cm_fns, node)
		if (!strcmp(fn->attr.name, name))
			return fn;
	return NULL;
}

/**
 * cm_fn_active() - is its port up?
 * @fn: the function; cm_lock is held.
 * @port: what the port is, if this is true.
 */
bool cm_fn_active(struct cm_fn *fn, struct vhca_client_port *port)
{
	return !vhca_client_query_port(fn->vdev, CM_PORT, port) &&
	       port->state == IB_PORT_ACTIVE;
}

/** cm_id_attach() - an id without a function gets one; cm_lock is held */
void cm_id_attach(struct cm_id *id, struct cm_fn *fn)
{
	id->fn = fn;
	list_add_tail(&id->of_fn, &fn->ids);
}

/** cm_id_detach() - an id loses its function, if it has one; cm_lock is held */
void cm_id_detach(struct cm_id *id)
{
	list_del_init(&id->of_fn);
	id->fn = NULL;
}

/* In the order of their numbers, as an address belongs to the lowest that has it. */
static void cm_fn_insert(struct cm_fn *fn)
{
	struct list_head *before = &cm_fns;
	struct cm_fn *other;

	list_for_each_entry(other, &cm_fns, node) {
		if (other->attr.index > fn->attr.index) {
			before = &other->node;
			break;
		}
	}
	list_add_tail(&fn->node, before);
}

static struct cm_fn *cm_fn_new(struct vhca_dev *vdev)
{
	struct cm_fn *fn = kzalloc(sizeof(*fn), GFP_KERNEL);

	if (!fn)
		return NULL;
	fn->vdev = vdev;
	vhca_client_query(vdev, &fn->attr);
	INIT_LIST_HEAD(&fn->ids);
	INIT_LIST_HEAD(&fn->bindings);
	fn->loopback = true;
	if (vhca_client_query_gid(vdev, CM_PORT, 0, fn->gid) ||
	    vhca_client_query_pkey(vdev, CM_PORT, 0, &fn->pkey)) {
		kfree(fn);
		return NULL;
	}
	return fn;
}

/* One that fails already, or for which there is no memory, makes no connections. */
static void cm_fn_add(struct vhca_dev *vdev)
{
	struct cm_fn *fn = cm_fn_new(vdev);

	if (!fn)
		return;
	mutex_lock(&cm_lock);
	cm_fn_insert(fn);
	mutex_unlock(&cm_lock);
}

static void cm_fn_remove(struct vhca_dev *vdev)
{
	struct cm_fn *fn, *found = NULL;

	mutex_lock(&cm_lock);
	list_for_each_entry(fn, &cm_fns, node)
		if (fn->vdev == vdev)
			found = fn;
	if (found) {
		while (!list_empty(&found->ids))
			cm_id_removed(list_first_entry(&found->ids, struct cm_id, of_fn));
		cm_fn_unbind_all(found);
		list_del(&found->node);
	}
	mutex_unlock(&cm_lock);
	kfree(found);
}

struct vhca_client cm_client = {
	.add	= cm_fn_add,
	.remove	= cm_fn_remove,
};
