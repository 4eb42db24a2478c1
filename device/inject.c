// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens at once, because it was ordered: EQEs, interrupts, async events, the
 * port's link, a breakdown. It passes every gate.
 */
#include <linux/string.h>

#include "vdev.h"

#define PORT_NUMBER	1

static int no_object(struct vdev_line *line, enum vdev_word word)
{
	vdev_line_fail(line, line->at[word], "no object %llu", line->val[word]);
	return -ENOENT;
}

static int words_only(struct vdev_line *line, unsigned int n)
{
	if (line->n > n)
		return vdev_line_fail(line, line->column[n], "one word too many: %.32s",
				      line->word[n]);
	return 0;
}

/* An EQE of any CQN, or with @comp false just the message of the EQ. */
static int inject_eq(struct vdev *dev, struct vdev_line *line, bool comp)
{
	u32 words = BIT(VDEV_W_EQ) | (comp ? BIT(VDEV_W_CQ) : 0);
	int ret = words_only(line, 1) ?: vdev_line_only(line, words, words);
	struct vdev_eq *eq;
	int idx;

	if (ret)
		return ret;
	idx = srcu_read_lock(&vdev_srcu);
	eq = srcu_dereference(dev->eqs[line->val[VDEV_W_EQ]], &vdev_srcu);
	if (!eq) {
		ret = no_object(line, VDEV_W_EQ);
	} else if (!comp) {
		vdev_msix_send(dev, eq->vector);
	} else if (!vdev_eq_post(eq, VHCA_EQE_COMP, line->val[VDEV_W_CQ])) {
		vdev_line_fail(line, line->at[VDEV_W_EQ], "the EQ is full");
		ret = -EAGAIN;
	}
	srcu_read_unlock(&vdev_srcu, idx);
	return ret;
}

/* Is what an event is about there? */
static bool event_object(struct vdev *dev, u8 type, u32 number)
{
	switch (type) {
	case VHCA_EQE_CQ_ERR:
		return xa_load(&dev->cqs, number);
	case VHCA_EQE_SRQ_LIMIT:
	case VHCA_EQE_SRQ_ERR:
		return vdev_srq_find(dev, number);
	case VHCA_EQE_DEVICE_FATAL:
		return true;
	default:
		if (type >= VHCA_EQE_PORT_ACTIVE)
			return number == PORT_NUMBER;
		return vdev_qp_find(dev, number);
	}
}

static int inject_event(struct vdev *dev, struct vdev_line *line)
{
	u32 allowed = BIT(VDEV_W_TYPE) | BIT(VDEV_W_NUMBER);
	int ret = words_only(line, 1) ?: vdev_line_only(line, allowed, BIT(VDEV_W_TYPE));
	u8 type = line->val[VDEV_W_TYPE];
	u32 number = line->val[VDEV_W_NUMBER];
	bool found;
	int idx;

	if (ret)
		return ret;
	if (!(line->has & BIT(VDEV_W_NUMBER))) {
		if (type < VHCA_EQE_PORT_ACTIVE)
			return vdev_line_fail(line, line->end, "number= is missing");
		number = type == VHCA_EQE_DEVICE_FATAL ? 0 : PORT_NUMBER;
	}
	idx = srcu_read_lock(&vdev_srcu);
	found = event_object(dev, type, number);
	srcu_read_unlock(&vdev_srcu, idx);
	if (!found)
		return no_object(line, VDEV_W_NUMBER);
	vdev_async_event(dev, type, number);
	return 0;
}

static int inject_port(struct vdev *dev, struct vdev_line *line)
{
	int ret = words_only(line, 2) ?: vdev_line_only(line, 0, 0);
	bool up;

	if (ret)
		return ret;
	up = line->n == 2 && !strcmp(line->word[1], "up");
	if (line->n != 2 || (!up && strcmp(line->word[1], "down")))
		return vdev_line_fail(line, line->n == 2 ? line->column[1] : line->end,
				      "up or down?");
	vdev_link_set(dev, up);
	return 0;
}

static int inject_break(struct vdev *dev, struct vdev_line *line)
{
	int ret = words_only(line, 1) ?: vdev_line_only(line, 0, 0);

	if (!ret)
		vdev_break(dev);
	return ret;
}

int vdev_inject(struct vdev *dev, struct vdev_line *line)
{
	if (!line->n)
		return vdev_line_fail(line, 1, "eqe, msix, event, port or break?");
	if (!strcmp(line->word[0], "eqe"))
		return inject_eq(dev, line, true);
	if (!strcmp(line->word[0], "msix"))
		return inject_eq(dev, line, false);
	if (!strcmp(line->word[0], "event"))
		return inject_event(dev, line);
	if (!strcmp(line->word[0], "port"))
		return inject_port(dev, line);
	if (!strcmp(line->word[0], "break"))
		return inject_break(dev, line);
	return vdev_line_fail(line, line->column[0], "cannot inject %.32s", line->word[0]);
}
