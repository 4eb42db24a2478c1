// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups: which of a function's QPs hear a multicast GID.
 *
 * A sender reads the groups of every function in its read section of vdev_srcu;
 * they are changed under their function's admin_lock.
 */
#include <linux/jhash.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "vdev.h"

#define GID_MULTICAST	0xff		/* its first byte */

/**
 * struct mcast_group - a GID that QPs are attached to
 * @node: in vdev.mcast.
 * @gid: the GID.
 * @members: those of one QP follow each other.
 * @count: how many.
 */
struct mcast_group {
	struct hlist_node	node;
	u8			gid[16];
	struct list_head	members;
	unsigned int		count;
};

/**
 * struct mcast_member - a QP in a group
 * @group: the group.
 * @qp: the QP.
 * @dlid: it hears only messages to this LID; 0: to any.
 * @in_group: in mcast_group.members.
 * @of_qp: in vdev_qp.mcast.
 * @last: it was the last of its group, which goes with it.
 */
struct mcast_member {
	struct mcast_group	*group;
	struct vdev_qp		*qp;
	u16			dlid;
	struct list_head	in_group;
	struct list_head	of_qp;
	bool			last;
};

static u32 gid_hash(const u8 *gid)
{
	return jhash(gid, sizeof_field(struct mcast_group, gid), 0);
}

/* The caller holds admin_lock, or is in a read section of vdev_srcu. */
static struct mcast_group *group_find(struct vdev *dev, const u8 *gid)
{
	struct mcast_group *group;

	hash_for_each_possible_rcu(dev->mcast, group, node, gid_hash(gid),
				   srcu_read_lock_held(&vdev_srcu) ||
				   lockdep_is_held(&dev->admin_lock))
		if (!memcmp(group->gid, gid, sizeof(group->gid)))
			return group;
	return NULL;
}

/* A new one is not in the table yet. */
static struct mcast_group *group_get(struct vdev *dev, const u8 *gid, u8 *status)
{
	struct mcast_group *group = group_find(dev, gid);

	*status = VHCA_CMD_NO_RESOURCE;
	if (group)
		return group->count < VDEV_MAX_MCAST_QP ? group : NULL;
	if (dev->mcast_groups == VDEV_MAX_MCAST_GRP)
		return NULL;
	*status = VHCA_CMD_NO_MEMORY;
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return NULL;
	memcpy(group->gid, gid, sizeof(group->gid));
	INIT_LIST_HEAD(&group->members);
	return group;
}

static struct mcast_member *member_find(struct vdev_qp *qp, const u8 *gid, u16 dlid)
{
	struct mcast_member *m;

	list_for_each_entry(m, &qp->mcast, of_qp)
		if (m->dlid == dlid && !memcmp(m->group->gid, gid, sizeof(m->group->gid)))
			return m;
	return NULL;
}

static void member_link(struct mcast_group *group, struct mcast_member *m)
{
	struct vdev *dev = m->qp->dev;
	struct list_head *behind = &group->members;
	struct mcast_member *other;

	m->group = group;
	list_for_each_entry(other, &group->members, in_group)
		if (other->qp == m->qp)
			behind = &other->in_group;
	list_add_rcu(&m->in_group, behind);
	list_add(&m->of_qp, &m->qp->mcast);
	if (!group->count++) {
		dev->mcast_groups++;
		hash_add_rcu(dev->mcast, &group->node, gid_hash(group->gid));
	}
}

/* Readers end with the next grace period; then member_free(). */
static void member_unlink(struct mcast_member *m)
{
	list_del_rcu(&m->in_group);
	m->last = !--m->group->count;
	if (m->last) {
		m->qp->dev->mcast_groups--;
		hash_del_rcu(&m->group->node);
	}
}

static void member_free(struct mcast_member *m)
{
	list_del(&m->of_qp);
	if (m->last)
		kfree(m->group);
	kfree(m);
}

/* The UD QP of a command whose values are in range. */
static struct vdev_qp *mcast_qp(struct vdev *dev, const struct vhca_cmd_mcast *in, u8 *status)
{
	struct vdev_qp *qp = vdev_qp_find(dev, be32_to_cpu(in->qpn));
	u16 dlid = be16_to_cpu(in->dlid);

	*status = VHCA_CMD_BAD_PARAM;
	if (in->gid[0] != GID_MULTICAST || in->rsvd ||
	    (dlid && !vdev_lid_is_multicast(dlid)))
		return NULL;
	*status = VHCA_CMD_BAD_OBJECT;
	return qp && qp->type == VHCA_PRM_QPT_UD ? qp : NULL;
}

u8 vdev_attach_mcast(struct vdev *dev, const struct vhca_cmd *cmd,
		     struct vhca_cmd_done *done)
{
	const struct vhca_cmd_mcast *in = &cmd->mcast;
	struct mcast_group *group;
	struct mcast_member *m;
	struct vdev_qp *qp;
	u8 status;

	qp = mcast_qp(dev, in, &status);
	if (!qp)
		return status;
	if (member_find(qp, in->gid, be16_to_cpu(in->dlid)))
		return VHCA_CMD_OK;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return VHCA_CMD_NO_MEMORY;
	group = group_get(dev, in->gid, &status);
	if (!group) {
		kfree(m);
		return status;
	}
	m->qp = qp;
	m->dlid = be16_to_cpu(in->dlid);
	member_link(group, m);
	done->number = cpu_to_be32(1);
	return VHCA_CMD_OK;
}

u8 vdev_detach_mcast(struct vdev *dev, const struct vhca_cmd *cmd,
		     struct vhca_cmd_done *done)
{
	const struct vhca_cmd_mcast *in = &cmd->mcast;
	struct mcast_member *m;
	struct vdev_qp *qp;
	u8 status;

	qp = mcast_qp(dev, in, &status);
	if (!qp)
		return status;
	m = member_find(qp, in->gid, be16_to_cpu(in->dlid));
	if (!m)
		return VHCA_CMD_BAD_OBJECT;
	member_unlink(m);
	vdev_wait_unused();
	member_free(m);
	return VHCA_CMD_OK;
}

void vdev_mcast_unlink_qp(struct vdev_qp *qp)
{
	struct mcast_member *m;

	list_for_each_entry(m, &qp->mcast, of_qp)
		member_unlink(m);
}

void vdev_mcast_free_qp(struct vdev_qp *qp)
{
	struct mcast_member *m, *next;

	list_for_each_entry_safe(m, next, &qp->mcast, of_qp)
		member_free(m);
}

/* To each member of a function's group, once a QP. */
static void deliver(struct vdev *dev, u16 dlid, const struct vdev_request *req,
		    struct vdev_response *resp)
{
	struct mcast_group *group = group_find(dev, req->grh->dgid);
	struct vdev_qp *done = NULL;
	struct mcast_member *m;

	if (!group)
		return;
	list_for_each_entry_srcu(m, &group->members, in_group,
				 srcu_read_lock_held(&vdev_srcu)) {
		struct vdev_sgl payload = *req->payload;
		struct vdev_request one = *req;

		if (m->qp == done || (m->dlid && m->dlid != dlid))
			continue;
		done = m->qp;
		one.payload = &payload;
		vdev_respond_qp(m->qp, &one, resp);
		resp->heard++;
		cond_resched();
		if (resp->answer == VDEV_LOCAL) {
			req->payload->verr = payload.verr;
			return;
		}
	}
}

void vdev_mcast_respond(u16 dlid, const struct vdev_request *req, struct vdev_response *resp)
{
	struct vdev *dev;
	u16 lid;

	resp->answer = VDEV_SILENCE;
	for (lid = 1; lid <= VDEV_MAX_FUNCTIONS && resp->answer != VDEV_LOCAL; lid++) {
		dev = vdev_by_lid(lid);
		if (dev)
			deliver(dev, dlid, req, resp);
	}
}
