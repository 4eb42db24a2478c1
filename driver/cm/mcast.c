// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups: which GID and LID the group of an address has. The fabric delivers
 * to whoever is attached to the GID, so that there is nobody to ask whether an id may
 * join, and nothing to undo when it leaves.
 */
#include <linux/crc32.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

#define CM_MLID_FIRST		0xc000
#define CM_MLIDS		0x3ffe
#define CM_SCOPE_LINK		0x12	/* a transient group of this link */

/* By handle. cm_lock is held. */
static DEFINE_XARRAY_ALLOC(cm_mcasts);
static unsigned int cm_mcasts_number;
static u32 cm_mgid_next;

/** cm_mcasts_count() - how many memberships there are; cm_lock is held */
unsigned int cm_mcasts_count(void)
{
	return cm_mcasts_number;
}

/** cm_set_qkey() - the Q_Key of an id's QP; -EINVAL: it has another one */
int cm_set_qkey(struct cm_id *id, u32 qkey)
{
	if (!qkey || (id->qkey && id->qkey != qkey))
		return -EINVAL;
	id->qkey = qkey;
	return 0;
}

/* What begins the GIDs of groups of IP addresses; those of RDMA_PS_UDP are RDMA CM's own. */
static void cm_mgid_begin(const struct cm_id *id, u8 *mgid, u8 signature)
{
	mgid[0] = 0xff;
	mgid[1] = CM_SCOPE_LINK;
	mgid[2] = signature;
	mgid[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	mgid[4] = id->fn->pkey >> 8;
	mgid[5] = id->fn->pkey;
}

static void cm_mgid_ip4(const struct cm_id *id, const struct sockaddr_in *addr, u8 *mgid)
{
	__be32 group = addr->sin_addr.s_addr & htonl(0x0fffffff);

	cm_mgid_begin(id, mgid, 0x40);
	memcpy(mgid + 12, &group, sizeof(group));
}

static void cm_mgid_ip6(const struct cm_id *id, const struct sockaddr_in6 *addr, u8 *mgid)
{
	const u8 *ip = addr->sin6_addr.s6_addr;

	/* One that the subnet administrator has given is a GID already. */
	if (ip[0] == 0xff && (ip[1] & 0xf0) == 0x10 && ip[2] == 0xa0 && ip[3] == 0x1b) {
		memcpy(mgid, ip, 16);
		return;
	}
	cm_mgid_begin(id, mgid, 0x60);
	memcpy(mgid + 6, ip + 6, 10);
}

/* Who does not say which group gets one of its own. */
static void cm_mgid_new(u8 *mgid)
{
	__be32 number = cpu_to_be32(++cm_mgid_next);

	mgid[0] = 0xff;
	mgid[1] = CM_SCOPE_LINK;
	mgid[2] = 0xa0;
	mgid[3] = 0x1b;
	memcpy(mgid + 12, &number, sizeof(number));
}

static void cm_mgid(const struct cm_id *id, const struct sockaddr_storage *addr, u8 *mgid)
{
	memset(mgid, 0, 16);
	if (cm_addr_any(addr))
		cm_mgid_new(mgid);
	else if (addr->ss_family == AF_INET)
		cm_mgid_ip4(id, (const struct sockaddr_in *)addr, mgid);
	else if (addr->ss_family == AF_INET6)
		cm_mgid_ip6(id, (const struct sockaddr_in6 *)addr, mgid);
	else
		memcpy(mgid, ((const struct sockaddr_ib *)addr)->sib_addr.sib_raw, 16);
}

static void cm_mcast_ah(const struct cm_id *id, const struct sockaddr_storage *addr,
			struct ib_uverbs_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	cm_mgid(id, addr, ah->grh.dgid);
	ah->grh.hop_limit = 1;
	ah->dlid = CM_MLID_FIRST + crc32_le(~0, ah->grh.dgid, 16) % CM_MLIDS;
	ah->is_global = 1;
	ah->port_num = CM_PORT;
}

static struct cm_mcast *cm_mcast_new(struct cm_id *id, u64 uid)
{
	struct cm_mcast *mcast = kzalloc(sizeof(*mcast), GFP_KERNEL_ACCOUNT);

	if (!mcast)
		return NULL;
	mcast->id = id;
	mcast->uid = uid;
	INIT_LIST_HEAD(&mcast->events);
	if (xa_alloc(&cm_mcasts, &mcast->handle, mcast, xa_limit_31b, GFP_KERNEL_ACCOUNT)) {
		kfree(mcast);
		return NULL;
	}
	list_add_tail(&mcast->of_id, &id->mcasts);
	cm_mcasts_number++;
	return mcast;
}

static int cm_join(struct cm_call *call, struct cm_id *id, const void *addr, u64 uid)
{
	struct sockaddr_storage group = {};
	struct ib_uverbs_ah_attr ah;
	struct cm_mcast *mcast;

	if (id->qp_type != IB_QPT_UD ||
	    (id->state != CM_BOUND && id->state != CM_ADDR_RESOLVED))
		return -EINVAL;
	memcpy(&group, addr, cm_addr_size(addr));
	mcast = cm_mcast_new(id, uid);
	if (!mcast)
		return -ENOMEM;
	if (!id->qkey)
		id->qkey = RDMA_UDP_QKEY;
	cm_mcast_ah(id, &group, &ah);
	cm_event_mcast(mcast, &ah);
	call->out.create_id.id = mcast->handle;
	return 0;
}

/** cm_cmd_join_ip_mcast() - RDMA_USER_CM_CMD_JOIN_IP_MCAST */
int cm_cmd_join_ip_mcast(struct cm_call *call, struct cm_id *id)
{
	const struct rdma_ucm_join_ip_mcast *arg = &call->in.join_ip_mcast;
	int size = cm_addr_size(&arg->addr);

	if (!size || size > sizeof(arg->addr))
		return -EINVAL;
	return cm_join(call, id, &arg->addr, arg->uid);
}

/** cm_cmd_join_mcast() - RDMA_USER_CM_CMD_JOIN_MCAST */
int cm_cmd_join_mcast(struct cm_call *call, struct cm_id *id)
{
	const struct rdma_ucm_join_mcast *arg = &call->in.join_mcast;

	/* Who only sends joins like others: whether it receives is for its QP. */
	if (!arg->addr_size || arg->addr_size != cm_addr_size(&arg->addr) ||
	    arg->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return cm_join(call, id, &arg->addr, arg->uid);
}

static void cm_mcast_leave(struct cm_mcast *mcast)
{
	cm_events_purge_mcast(mcast);
	list_del(&mcast->of_id);
	xa_erase(&cm_mcasts, mcast->handle);
	cm_mcasts_number--;
	kfree(mcast);
}

/** cm_mcasts_leave() - an id goes; cm_lock is held */
void cm_mcasts_leave(struct cm_id *id)
{
	while (!list_empty(&id->mcasts))
		cm_mcast_leave(list_first_entry(&id->mcasts, struct cm_mcast, of_id));
}

/** cm_cmd_leave_mcast() - RDMA_USER_CM_CMD_LEAVE_MCAST: its id is a membership's */
int cm_cmd_leave_mcast(struct cm_call *call, struct cm_id *unused)
{
	struct cm_mcast *mcast = xa_load(&cm_mcasts, call->in.destroy_id.id);

	if (!mcast)
		return -ENOENT;
	if (mcast->id->file != call->file)
		return -EINVAL;
	call->out.destroy_id.events_reported = mcast->events_reported;
	cm_mcast_leave(mcast);
	return 0;
}
