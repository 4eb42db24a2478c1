/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What vhca.ko offers to other modules: to hear of its functions, and to ask what a
 * verbs program could ask. A connection manager needs no more.
 */
#ifndef VHCA_CLIENT_H
#define VHCA_CLIENT_H

#include <linux/list.h>
#include <linux/types.h>

struct vhca_dev;

/**
 * struct vhca_client - a module that wants to hear of functions
 * @node: in the list of clients; vhca.ko's.
 * @add: a function is there.
 * @remove: it goes: it was unbound, or it failed, perhaps without having gone yet.
 *	After this call it must not be asked any more.
 *
 * Both are called in process context, one at a time, and may sleep. Each function that
 * was added is removed once.
 */
struct vhca_client {
	struct list_head node;
	void (*add)(struct vhca_dev *vdev);
	void (*remove)(struct vhca_dev *vdev);
};

/**
 * struct vhca_client_attr - what a function is
 * @name: vhcaN.
 * @index: N.
 * @node_guid: its GUID.
 * @max_rd_atom: RDMA READs and atomics that a QP can have outstanding.
 * @ack_delay: its local ACK delay, as an exponent.
 */
struct vhca_client_attr {
	const char *name;
	u32 index;
	__be64 node_guid;
	u8 max_rd_atom;
	u8 ack_delay;
};

/**
 * struct vhca_client_port - the state of a port
 * @lid: its LID.
 * @state: as in the verbs: 4 is active.
 * @active_mtu: as in the verbs: 1 is 256 bytes, 5 is 4096.
 */
struct vhca_client_port {
	u16 lid;
	u8 state;
	u8 active_mtu;
};

void vhca_client_register(struct vhca_client *client);
void vhca_client_unregister(struct vhca_client *client);
void vhca_client_query(struct vhca_dev *vdev, struct vhca_client_attr *attr);
int vhca_client_query_port(struct vhca_dev *vdev, u8 port, struct vhca_client_port *attr);
int vhca_client_query_gid(struct vhca_dev *vdev, u8 port, u32 index, u8 gid[16]);
int vhca_client_query_pkey(struct vhca_dev *vdev, u8 port, u32 index, u16 *pkey);

#endif
