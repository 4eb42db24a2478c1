// SPDX-License-Identifier: GPL-2.0-only
/*
 * The port. Its fabric is this machine, so it is up, unless an administrator says that
 * the link is down. It has one GID, made from its GUID, and one P_Key. Numbers are
 * those of the verbs.
 */
#include "vdev.h"

#define PORT_NUMBER		1
#define PORT_DOWN		1
#define PORT_ACTIVE		4
#define PORT_PHYS_POLLING	2
#define PORT_PHYS_LINK_UP	5
#define PORT_MTU_4096		5
#define PORT_VL0		1
#define PORT_WIDTH_4X		2
#define PORT_SPEED_EDR		32
#define PORT_LINK_INFINIBAND	1
#define PORT_SM_LID		1
#define PORT_GIDS		1
#define PORT_PKEYS		1

#define GID_PREFIX		0xfe80000000000000ull

static u8 check_port(const struct vhca_cmd *cmd, u32 entries)
{
	if (be32_to_cpu(cmd->object.number) != PORT_NUMBER)
		return VHCA_CMD_BAD_OBJECT;
	if (be32_to_cpu(cmd->object.index) >= entries)
		return VHCA_CMD_BAD_PARAM;
	return VHCA_CMD_OK;
}

u8 vdev_query_port(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done)
{
	struct vhca_prm_port *port = &done->port;
	bool down = READ_ONCE(dev->link_down);
	u8 status = check_port(cmd, 1);

	if (status)
		return status;
	port->max_msg_sz = cpu_to_be32(VDEV_MAX_MSG);
	port->gid_tbl_len = cpu_to_be32(PORT_GIDS);
	port->pkey_tbl_len = cpu_to_be16(PORT_PKEYS);
	port->lid = cpu_to_be16(vdev_lid(dev));
	port->sm_lid = cpu_to_be16(PORT_SM_LID);
	port->state = down ? PORT_DOWN : PORT_ACTIVE;
	port->phys_state = down ? PORT_PHYS_POLLING : PORT_PHYS_LINK_UP;
	port->max_mtu = PORT_MTU_4096;
	port->active_mtu = PORT_MTU_4096;
	port->max_vl_num = PORT_VL0;
	port->active_width = PORT_WIDTH_4X;
	port->active_speed = PORT_SPEED_EDR;
	port->link_layer = PORT_LINK_INFINIBAND;
	port->qkey_viol_cntr = cpu_to_be32(vdev_stat_sum(dev, VDEV_QKEY_VIOLATIONS));
	return VHCA_CMD_OK;
}

void vdev_gid(const struct vdev *dev, u8 *gid)
{
	__be64 words[2] = { cpu_to_be64(GID_PREFIX), cpu_to_be64(vdev_guid(dev)) };

	memcpy(gid, words, sizeof(words));
}

struct vdev *vdev_by_gid(const u8 *gid)
{
	/* The LID is the end of the GUID. */
	struct vdev *dev = vdev_by_lid(gid[14] << 8 | gid[15]);
	u8 its[16];

	if (!dev)
		return NULL;
	vdev_gid(dev, its);
	return memcmp(its, gid, sizeof(its)) ? NULL : dev;
}

void vdev_link_set(struct vdev *dev, bool up)
{
	/* The state before the event: who hears of it asks for the state. */
	if (xchg(&dev->link_down, !up) == up)
		vdev_async_event(dev, up ? VHCA_EQE_PORT_ACTIVE : VHCA_EQE_PORT_ERR,
				 PORT_NUMBER);
}

u8 vdev_query_gid(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done)
{
	u8 status = check_port(cmd, PORT_GIDS);

	if (!status)
		vdev_gid(dev, done->gid);
	return status;
}

u8 vdev_query_pkey(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done)
{
	u8 status = check_port(cmd, PORT_PKEYS);

	if (!status)
		done->pkey = cpu_to_be16(VDEV_PKEY);
	return status;
}
