// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of an id.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

/* As many paths as librdmacm gives, and no end of them. */
#define CM_MAX_OPTION		4096

static int cm_set_reuse(struct cm_id *id, bool reuse)
{
	if (id->state != CM_IDLE && (!reuse || id->state == CM_LISTEN))
		return -EINVAL;
	id->reuse = reuse;
	return 0;
}

static int cm_set_afonly(struct cm_id *id, bool afonly)
{
	if (id->state != CM_IDLE && id->state != CM_BOUND)
		return -EINVAL;
	id->afonly = afonly;
	id->afonly_set = true;
	return 0;
}

static int cm_set_ack_timeout(struct cm_id *id, u8 timeout)
{
	if (id->qp_type != IB_QPT_RC && id->qp_type != IB_QPT_XRC_INI)
		return -EINVAL;
	id->timeout = timeout;
	id->timeout_set = true;
	return 0;
}

static int cm_set_id_option(struct cm_id *id, u32 name, const void *value, size_t len)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(u8))
			return -EINVAL;
		id->tos = *(const u8 *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return len == sizeof(int) ? cm_set_reuse(id, *(const int *)value) : -EINVAL;
	case RDMA_OPTION_ID_AFONLY:
		return len == sizeof(int) ? cm_set_afonly(id, *(const int *)value) : -EINVAL;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return len == sizeof(u8) ? cm_set_ack_timeout(id, *(const u8 *)value) : -EINVAL;
	default:
		return -ENOSYS;
	}
}

/* A path that the program knows, so that the route need not be resolved. */
static int cm_set_path(struct cm_id *id, const struct ib_path_rec_data *data, size_t len)
{
	const u32 wanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	size_t i, n = len / sizeof(*data);
	struct cm_path path;
	int ret;

	if (len % sizeof(*data))
		return -EINVAL;
	for (i = 0; i < n && data[i].flags != wanted; i++)
		;
	if (i == n || !id->fn || id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	ret = cm_path_unpack(&path, &data[i]);
	if (ret)
		return ret;
	id->path = path;
	id->has_path = true;
	id->state = CM_ROUTE_RESOLVED;
	cm_event_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	return 0;
}

static int cm_set_ib_option(struct cm_id *id, u32 name, const void *value, size_t len)
{
	return name == RDMA_OPTION_IB_PATH ? cm_set_path(id, value, len) : -ENOSYS;
}

static int cm_set_option_locked(struct cm_file *file, const struct rdma_ucm_set_option *arg,
				const void *value)
{
	struct cm_id *id = cm_id_find(file, arg->id);

	if (IS_ERR(id))
		return PTR_ERR(id);
	if (id->state == CM_REMOVED)
		return -ENXIO;
	switch (arg->level) {
	case RDMA_OPTION_ID:
		return cm_set_id_option(id, arg->optname, value, arg->optlen);
	case RDMA_OPTION_IB:
		return cm_set_ib_option(id, arg->optname, value, arg->optlen);
	default:
		return -ENOSYS;
	}
}

/**
 * cm_set_option() - RDMA_USER_CM_CMD_SET_OPTION
 * @file: the event channel.
 * @arg: what user space gave.
 *
 * Return: 0; -ENOSYS: there is no such option; -EINVAL: it has another length, or the id
 * is in a state that it cannot be set in; or why the id or the value is not there.
 */
int cm_set_option(struct cm_file *file, const struct rdma_ucm_set_option *arg)
{
	void *value;
	int ret;

	if (arg->optlen > CM_MAX_OPTION)
		return -EINVAL;
	value = memdup_user(u64_to_user_ptr(arg->optval), arg->optlen);
	if (IS_ERR(value))
		return PTR_ERR(value);
	mutex_lock(&cm_lock);
	ret = cm_set_option_locked(file, arg, value);
	mutex_unlock(&cm_lock);
	kfree(value);
	return ret;
}
