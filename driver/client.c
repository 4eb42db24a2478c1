// SPDX-License-Identifier: GPL-2.0-only
/*
 * Other modules that work with vhca's functions: vhca_client.h.
 *
 * vhca_clients_lock is outermost. It is held while a client is called, so that each
 * client hears of each function once when it comes and once when it goes.
 */
#include <linux/module.h>

#include "vhca.h"
#include "vhca_client.h"

static DEFINE_MUTEX(vhca_clients_lock);
static LIST_HEAD(vhca_clients);
static LIST_HEAD(vhca_client_devs);	/* vhca_dev.client_node */

/** vhca_clients_add() - a function that works: tell all clients */
void vhca_clients_add(struct vhca_dev *vdev)
{
	struct vhca_client *client;

	mutex_lock(&vhca_clients_lock);
	list_add_tail(&vdev->client_node, &vhca_client_devs);
	list_for_each_entry(client, &vhca_clients, node)
		client->add(vdev);
	mutex_unlock(&vhca_clients_lock);
}

/** vhca_clients_remove() - a function goes: tell all clients; may be repeated */
void vhca_clients_remove(struct vhca_dev *vdev)
{
	struct vhca_client *client;

	mutex_lock(&vhca_clients_lock);
	if (!list_empty(&vdev->client_node)) {
		list_for_each_entry(client, &vhca_clients, node)
			client->remove(vdev);
		list_del_init(&vdev->client_node);
	}
	mutex_unlock(&vhca_clients_lock);
}

/**
 * vhca_client_register() - hear of functions from now on
 * @client: its @add is called for those that are there before this returns.
 */
void vhca_client_register(struct vhca_client *client)
{
	struct vhca_dev *vdev;

	mutex_lock(&vhca_clients_lock);
	list_add_tail(&client->node, &vhca_clients);
	list_for_each_entry(vdev, &vhca_client_devs, client_node)
		client->add(vdev);
	mutex_unlock(&vhca_clients_lock);
}
EXPORT_SYMBOL_GPL(vhca_client_register);

/**
 * vhca_client_unregister() - hear of no more functions
 * @client: its @remove is called for those that are there before this returns.
 */
void vhca_client_unregister(struct vhca_client *client)
{
	struct vhca_dev *vdev;

	mutex_lock(&vhca_clients_lock);
	list_for_each_entry(vdev, &vhca_client_devs, client_node)
		client->remove(vdev);
	list_del(&client->node);
	mutex_unlock(&vhca_clients_lock);
}
EXPORT_SYMBOL_GPL(vhca_client_unregister);

/**
 * vhca_client_query() - what a function is; this never changes
 * @vdev: the function, after its client's @add and before its @remove returns.
 * @attr: filled in.
 */
void vhca_client_query(struct vhca_dev *vdev, struct vhca_client_attr *attr)
{
	*attr = (struct vhca_client_attr) {
		.name		= dev_name(&vdev->dev),
		.index		= vdev->index,
		.node_guid	= cpu_to_be64(vdev->caps.node_guid),
		.max_rd_atom	= min_t(u32, vdev->caps.max_rd_atom, U8_MAX),
		.ack_delay	= vdev->caps.ack_delay,
	};
}
EXPORT_SYMBOL_GPL(vhca_client_query);

/* As vhca_cmd_query(), of a device that may fail meanwhile. */
static int vhca_client_ask(struct vhca_dev *vdev, u16 opcode, u8 port, u32 index,
			   struct vhca_cmd_done *done)
{
	int idx, ret = -EIO;

	idx = srcu_read_lock(&vdev->srcu);
	if (!vhca_dead(vdev))
		ret = vhca_cmd_query(vdev, opcode, port, index, done);
	srcu_read_unlock(&vdev->srcu, idx);
	return ret;
}

/**
 * vhca_client_query_port() - the state of a port
 * @vdev: the function, after its client's @add and before its @remove returns; likewise
 *	for the functions below.
 * @port: counted from 1.
 * @attr: filled in, if this succeeds.
 *
 * Return: 0; -EIO: the function failed; or another error: there is no such port.
 */
int vhca_client_query_port(struct vhca_dev *vdev, u8 port, struct vhca_client_port *attr)
{
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_client_ask(vdev, VHCA_CMD_QUERY_PORT, port, 0, &done);
	if (ret)
		return ret;
	*attr = (struct vhca_client_port) {
		.lid		= be16_to_cpu(done.port.lid),
		.state		= done.port.state,
		.active_mtu	= done.port.active_mtu,
	};
	return 0;
}
EXPORT_SYMBOL_GPL(vhca_client_query_port);

/**
 * vhca_client_query_gid() - an entry of a port's GID table
 * @vdev: the function.
 * @port: counted from 1.
 * @index: which entry.
 * @gid: filled in, if this succeeds.
 *
 * Return: 0; -EIO: the function failed; or another error: there is no such entry.
 */
int vhca_client_query_gid(struct vhca_dev *vdev, u8 port, u32 index, u8 gid[16])
{
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_client_ask(vdev, VHCA_CMD_QUERY_GID, port, index, &done);
	if (!ret)
		memcpy(gid, done.gid, sizeof(done.gid));
	return ret;
}
EXPORT_SYMBOL_GPL(vhca_client_query_gid);

/**
 * vhca_client_query_pkey() - an entry of a port's P_Key table
 * @vdev: the function.
 * @port: counted from 1.
 * @index: which entry.
 * @pkey: filled in, if this succeeds.
 *
 * Return: 0; -EIO: the function failed; or another error: there is no such entry.
 */
int vhca_client_query_pkey(struct vhca_dev *vdev, u8 port, u32 index, u16 *pkey)
{
	struct vhca_cmd_done done;
	int ret;

	ret = vhca_client_ask(vdev, VHCA_CMD_QUERY_PKEY, port, index, &done);
	if (!ret)
		*pkey = be16_to_cpu(done.pkey);
	return ret;
}
EXPORT_SYMBOL_GPL(vhca_client_query_pkey);
