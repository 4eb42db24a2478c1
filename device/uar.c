// SPDX-License-Identifier: GPL-2.0-only
/*
 * UAR pages, their doorbell slots, and looking at them.
 *
 * A page is device memory that one process writes as it likes. A doorbell's
 * value is therefore only compared with what was seen before; where to look and
 * how far is in the doorbell record, which the object's own file checks.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "vdev.h"

static struct vdev_uar *uar_get(struct vdev *dev, u32 uar)
{
	if (uar >= VDEV_MAX_UAR)
		return NULL;
	return rcu_dereference_protected(dev->uars[uar],
					 lockdep_is_held(&dev->admin_lock));
}

/* A UAR at least is everybody's: one of @dev->users is his, or free. */
static struct vdev_user *user_get(struct vdev *dev, u32 owner)
{
	struct vdev_user *user = NULL, *u;

	for (u = dev->users; u < dev->users + VDEV_MAX_UAR; u++) {
		if (u->uars && u->owner == owner) {
			user = u;
			break;
		}
		if (!u->uars && !user)
			user = u;
	}
	user->owner = owner;
	user->uars++;
	return user;
}

u8 vdev_alloc_uar(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	struct vdev_uar *uar;
	u32 i;

	for (i = 0; i < VDEV_MAX_UAR && uar_get(dev, i); i++)
		;
	if (i == VDEV_MAX_UAR)
		return VHCA_CMD_NO_RESOURCE;
	uar = kzalloc(sizeof(*uar), GFP_KERNEL_ACCOUNT);
	if (!uar)
		return VHCA_CMD_NO_MEMORY;
	uar->page = dev->uar_base + i * VHCA_UAR_PAGE_SIZE;
	memset(uar->page, 0, VHCA_UAR_PAGE_SIZE);
	vdev_uar_set_kick_needed(uar, true);
	uar->user = user_get(dev, be32_to_cpu(cmd->object.number));
	rcu_assign_pointer(dev->uars[i], uar);
	done->number = cpu_to_be32(i);
	return VHCA_CMD_OK;
}

static void uar_free(struct vdev *dev, u32 i)
{
	struct vdev_uar *uar = uar_get(dev, i);

	RCU_INIT_POINTER(dev->uars[i], NULL);
	vdev_wait_unused();
	clear_bit(i, dev->engine.hot);
	uar->user->uars--;
	kfree(uar);
}

u8 vdev_free_uar(struct vdev *dev, const struct vhca_cmd *cmd,
		 struct vhca_cmd_done *done)
{
	u32 i = be32_to_cpu(cmd->object.number);
	struct vdev_uar *uar = uar_get(dev, i);

	if (!uar)
		return VHCA_CMD_BAD_OBJECT;
	if (uar->bound)
		return VHCA_CMD_BUSY;
	uar_free(dev, i);
	return VHCA_CMD_OK;
}

void vdev_forget_uars(struct vdev *dev)
{
	u32 i;

	for (i = 0; i < VDEV_MAX_UAR; i++)
		if (uar_get(dev, i))
			uar_free(dev, i);
}

static struct vhca_uar_slot *db_slot(const struct vdev_db *db)
{
	return db->uar->page + db->slot * VHCA_UAR_SLOT_SIZE;
}

const u64 *vdev_db_line(const struct vdev_db *db)
{
	return (const u64 *)db_slot(db);
}

void vdev_db_forget(struct vdev_db *db)
{
	spin_lock(&db->lock);
	WRITE_ONCE(db->seen, READ_ONCE(db_slot(db)->doorbell));
	spin_unlock(&db->lock);
}

u8 vdev_uar_bind(struct vdev *dev, u32 uar, u32 slot, struct vdev_db *db)
{
	struct vdev_uar *u = uar_get(dev, uar);

	if (!u)
		return VHCA_CMD_BAD_OBJECT;
	if (slot < VHCA_UAR_FIRST_SLOT || slot >= VHCA_UAR_SLOTS)
		return VHCA_CMD_BAD_PARAM;
	if (rcu_access_pointer(u->db[slot]))
		return VHCA_CMD_BUSY;
	db->uar = u;
	db->slot = slot;
	spin_lock_init(&db->lock);
	vdev_db_forget(db);
	rcu_assign_pointer(u->db[slot], db);
	u->bound++;
	return VHCA_CMD_OK;
}

void vdev_uar_unbind(struct vdev_db *db)
{
	RCU_INIT_POINTER(db->uar->db[db->slot], NULL);
	db->uar->bound--;
}

/* Note the doorbell's value; true when it is another than before. */
static bool db_changed(struct vdev *dev, struct vdev_db *db)
{
	bool changed;
	__be64 now;

	if (READ_ONCE(db_slot(db)->doorbell) == READ_ONCE(db->seen))
		return false;
	/*
	 * The kick and the thread may look at once: one of them counts it. And
	 * a value from before vdev_db_forget() must not be noted after it.
	 */
	spin_lock(&db->lock);
	now = READ_ONCE(db_slot(db)->doorbell);
	changed = now != db->seen;
	WRITE_ONCE(db->seen, now);
	spin_unlock(&db->lock);
	if (changed)
		vdev_count(dev, VDEV_DOORBELLS);
	return changed;
}

void vdev_db_kick(struct vdev *dev, struct vdev_db *db)
{
	db_changed(dev, db);
	/*
	 * Doorbell before doorbell record; pairs with the store barrier between
	 * the two in the library.
	 */
	smp_rmb();
	db->ring(db);
}

bool vdev_uar_look(struct vdev *dev, struct vdev_uar *uar)
{
	bool found = false;
	u32 slot;

	for (slot = VHCA_UAR_FIRST_SLOT; slot < VHCA_UAR_SLOTS; slot++) {
		struct vdev_db *db;

		db = srcu_dereference(uar->db[slot], &vdev_srcu);
		if (!db || !db_changed(dev, db))
			continue;
		smp_rmb();	/* as in vdev_db_kick() */
		db->ring(db);
		found = true;
	}
	return found;
}
