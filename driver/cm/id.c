// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ids: making and finding them, and their end.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

/* By handle. cm_lock is held. */
static DEFINE_XARRAY_ALLOC(cm_ids);
static unsigned int cm_ids_number;

/* One channel leaves something to others; listeners' requests count, too. */
static unsigned int cm_max_id = 65536;
module_param_named(max_id, cm_max_id, uint, 0644);
MODULE_PARM_DESC(max_id, "most ids");

static unsigned int cm_file_max_id = 16384;
module_param_named(file_max_id, cm_file_max_id, uint, 0644);
MODULE_PARM_DESC(file_max_id, "most ids of an event channel");

/** cm_ids_count() - how many there are; cm_lock is held */
unsigned int cm_ids_count(void)
{
	return cm_ids_number;
}

static void cm_id_free(struct kref *ref)
{
	struct cm_id *id = container_of(ref, struct cm_id, ref);

	put_net(id->net);
	kfree(id);
}

/** cm_id_put() - the timer, or the table, needs it no more */
void cm_id_put(struct cm_id *id)
{
	kref_put(&id->ref, cm_id_free);
}

static void cm_id_init(struct cm_id *id, struct cm_file *file, struct net *net)
{
	kref_init(&id->ref);
	id->file = file;
	id->net = get_net(net);
	INIT_LIST_HEAD(&id->of_fn);
	INIT_LIST_HEAD(&id->mcasts);
	INIT_LIST_HEAD(&id->events);
	INIT_HLIST_NODE(&id->remote_node);
	INIT_DELAYED_WORK(&id->timer, cm_timer_work);
	id->local_psn = get_random_u32() & 0xffffff;
	list_add_tail(&id->of_file, &file->ids);
	file->ids_number++;
}

/**
 * cm_id_new() - an id
 * @file: where its events are read.
 * @net: the namespace of its addresses.
 * @ps: its port space.
 * @qp_type: of its QP.
 *
 * Return: the id, or NULL: no memory, or as many as there may be. cm_lock is held.
 */
struct cm_id *cm_id_new(struct cm_file *file, struct net *net, u16 ps, u8 qp_type)
{
	struct cm_id *id;

	if (cm_ids_number >= READ_ONCE(cm_max_id) ||
	    file->ids_number >= READ_ONCE(cm_file_max_id))
		return NULL;
	id = kzalloc(sizeof(*id), GFP_KERNEL_ACCOUNT);
	if (!id)
		return NULL;
	id->ps = ps;
	id->qp_type = qp_type;
	if (xa_alloc(&cm_ids, &id->handle, id, xa_limit_31b, GFP_KERNEL_ACCOUNT)) {
		kfree(id);
		return NULL;
	}
	cm_ids_number++;
	cm_id_init(id, file, net);
	return id;
}

/**
 * cm_id_find() - the id that user space names
 * @file: by which event channel.
 * @handle: and how.
 *
 * Return: the id; -ENOENT: there is none; -EINVAL: it is another channel's. cm_lock is
 * held.
 */
struct cm_id *cm_id_find(struct cm_file *file, u32 handle)
{
	struct cm_id *id = xa_load(&cm_ids, handle);

	/* A request that nobody has read has no events of its own, and stays with it. */
	if (!id || id->request)
		return ERR_PTR(-ENOENT);
	return id->file == file ? id : ERR_PTR(-EINVAL);
}

/** cm_id_destroy() - the end of an id, its connection and its unread events; cm_lock is held */
void cm_id_destroy(struct cm_id *id)
{
	cm_conn_close(id);
	cm_mcasts_leave(id);
	cm_events_purge(id);
	cm_port_put(id);
	cm_id_detach(id);
	list_del(&id->of_file);
	id->file->ids_number--;
	xa_erase(&cm_ids, id->handle);
	cm_ids_number--;
	cm_id_put(id);
}

/** cm_id_removed() - its function goes; nothing but its end is left to it; cm_lock is held */
void cm_id_removed(struct cm_id *id)
{
	cm_conn_close(id);
	cm_port_put(id);
	cm_id_detach(id);
	id->state = CM_REMOVED;
	cm_event_post(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
}

static int cm_qp_type(u16 ps, u8 *qp_type)
{
	switch (ps) {
	case RDMA_PS_TCP:
		*qp_type = IB_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
		*qp_type = IB_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		return 0;
	case RDMA_PS_IPOIB:
		return -EPROTONOSUPPORT;
	default:
		return -EINVAL;
	}
}

/** cm_cmd_create_id() - RDMA_USER_CM_CMD_CREATE_ID */
int cm_cmd_create_id(struct cm_call *call, struct cm_id *unused)
{
	struct rdma_ucm_create_id *arg = &call->in.create_id;
	u8 qp_type = arg->qp_type;
	struct cm_id *id;
	int ret;

	ret = cm_qp_type(arg->ps, &qp_type);
	if (ret)
		return ret;
	id = cm_id_new(call->file, call->file->net, arg->ps, qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = arg->uid;
	call->out.create_id.id = id->handle;
	return 0;
}

/** cm_cmd_destroy_id() - RDMA_USER_CM_CMD_DESTROY_ID */
int cm_cmd_destroy_id(struct cm_call *call, struct cm_id *id)
{
	call->out.destroy_id.events_reported = id->events_reported;
	cm_id_destroy(id);
	return 0;
}

/* From the channel that @filp is, if it is one. */
static int cm_migrate_from(struct cm_call *call, struct file *filp)
{
	struct cm_id *id;

	if (filp->f_op != &cm_fops)
		return -EINVAL;
	id = cm_id_find(filp->private_data, call->in.migrate_id.id);
	if (IS_ERR(id))
		return PTR_ERR(id);
	call->out.migrate_id.events_reported = id->events_reported;
	cm_file_move(id, call->file);
	return 0;
}

/** cm_cmd_migrate_id() - RDMA_USER_CM_CMD_MIGRATE_ID */
int cm_cmd_migrate_id(struct cm_call *call, struct cm_id *unused)
{
	struct file *filp = fget(call->in.migrate_id.fd);
	int ret;

	if (!filp)
		return -ENOENT;
	ret = cm_migrate_from(call, filp);
	fput(filp);
	return ret;
}
