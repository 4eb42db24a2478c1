// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands that user space writes to an event channel: a header, and what the
 * command takes. The answer goes to where that says.
 *
 * A command is copied in, then done under cm_lock, then its answer is copied out. That
 * the answer has a place is seen to before, so that a command that fails by a bad buffer
 * has done nothing.
 */
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "cm.h"

/**
 * struct cm_command - a command
 * @fn: what it does. Those that are about an id are given it.
 * @in: how much it takes; a program may give more.
 * @in_least: how much of that it needs.
 * @out: how much it answers at most.
 * @out_least: for how much of that there must be room.
 * @response: where in its argument it says where the answer goes.
 * @id: where it names the id, if it is about one.
 * @has_id: it is.
 * @bound: and that must have a function.
 * @gone: but that may have gone.
 */
struct cm_command {
	int (*fn)(struct cm_call *call, struct cm_id *id);
	u16 in;
	u16 in_least;
	u16 out;
	u16 out_least;
	u16 response;
	u16 id;
	bool has_id;
	bool bound;
	bool gone;
};

#define CM_IN(type)		.in = sizeof(struct type), .in_least = sizeof(struct type)
#define CM_IN_FROM(type, last)	.in = sizeof(struct type), \
				.in_least = offsetofend(struct type, last)
#define CM_OUT(size, least)	.out = (size), .out_least = (least)
#define CM_ID(type)		.has_id = true, .id = offsetof(struct type, id)
#define CM_BOUND_ID(type)	CM_ID(type), .bound = true

static const struct cm_command cm_commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {
		.fn = cm_cmd_create_id, CM_IN(rdma_ucm_create_id),
		CM_OUT(sizeof(struct rdma_ucm_create_id_resp),
		       sizeof(struct rdma_ucm_create_id_resp)),
		.response = offsetof(struct rdma_ucm_create_id, response),
	},
	[RDMA_USER_CM_CMD_DESTROY_ID] = {
		.fn = cm_cmd_destroy_id, CM_IN(rdma_ucm_destroy_id), CM_ID(rdma_ucm_destroy_id),
		CM_OUT(sizeof(struct rdma_ucm_destroy_id_resp),
		       sizeof(struct rdma_ucm_destroy_id_resp)),
		.gone = true,
	},
	[RDMA_USER_CM_CMD_BIND_IP] = {
		.fn = cm_cmd_bind_ip, CM_IN_FROM(rdma_ucm_bind_ip, id), CM_ID(rdma_ucm_bind_ip),
	},
	[RDMA_USER_CM_CMD_RESOLVE_IP] = {
		.fn = cm_cmd_resolve_ip, CM_IN(rdma_ucm_resolve_ip), CM_ID(rdma_ucm_resolve_ip),
	},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {
		.fn = cm_cmd_resolve_route, CM_IN(rdma_ucm_resolve_route),
		CM_BOUND_ID(rdma_ucm_resolve_route),
	},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {
		.fn = cm_cmd_query_route, CM_IN_FROM(rdma_ucm_query, id), CM_ID(rdma_ucm_query),
		CM_OUT(sizeof(struct rdma_ucm_query_route_resp),
		       offsetof(struct rdma_ucm_query_route_resp, ibdev_index)),
	},
	[RDMA_USER_CM_CMD_CONNECT] = {
		.fn = cm_cmd_connect, CM_IN_FROM(rdma_ucm_connect, reserved),
		CM_BOUND_ID(rdma_ucm_connect),
	},
	[RDMA_USER_CM_CMD_LISTEN] = {
		.fn = cm_cmd_listen, CM_IN(rdma_ucm_listen), CM_ID(rdma_ucm_listen),
	},
	[RDMA_USER_CM_CMD_ACCEPT] = {
		.fn = cm_cmd_accept, CM_IN_FROM(rdma_ucm_accept, reserved),
		CM_BOUND_ID(rdma_ucm_accept),
	},
	[RDMA_USER_CM_CMD_REJECT] = {
		.fn = cm_cmd_reject, CM_IN(rdma_ucm_reject), CM_BOUND_ID(rdma_ucm_reject),
	},
	[RDMA_USER_CM_CMD_DISCONNECT] = {
		.fn = cm_cmd_disconnect, CM_IN(rdma_ucm_disconnect),
		CM_BOUND_ID(rdma_ucm_disconnect),
	},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {
		.fn = cm_cmd_init_qp_attr, CM_IN(rdma_ucm_init_qp_attr),
		CM_OUT(sizeof(struct ib_uverbs_qp_attr), sizeof(struct ib_uverbs_qp_attr)),
		CM_BOUND_ID(rdma_ucm_init_qp_attr),
	},
	[RDMA_USER_CM_CMD_NOTIFY] = {
		.fn = cm_cmd_notify, CM_IN(rdma_ucm_notify), CM_BOUND_ID(rdma_ucm_notify),
	},
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {
		.fn = cm_cmd_join_ip_mcast, CM_IN_FROM(rdma_ucm_join_ip_mcast, id),
		CM_OUT(sizeof(struct rdma_ucm_create_id_resp),
		       sizeof(struct rdma_ucm_create_id_resp)),
		CM_BOUND_ID(rdma_ucm_join_ip_mcast),
	},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {
		.fn = cm_cmd_leave_mcast, CM_IN(rdma_ucm_destroy_id),
		CM_OUT(sizeof(struct rdma_ucm_destroy_id_resp),
		       sizeof(struct rdma_ucm_destroy_id_resp)),
	},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {
		.fn = cm_cmd_migrate_id, CM_IN(rdma_ucm_migrate_id),
		CM_OUT(sizeof(struct rdma_ucm_migrate_resp),
		       sizeof(struct rdma_ucm_migrate_resp)),
	},
	[RDMA_USER_CM_CMD_QUERY] = {
		.fn = cm_cmd_query, CM_IN(rdma_ucm_query), CM_ID(rdma_ucm_query),
		CM_OUT(sizeof_field(struct cm_call, out),
		       sizeof(struct rdma_ucm_query_path_resp)),
	},
	[RDMA_USER_CM_CMD_BIND] = {
		.fn = cm_cmd_bind, CM_IN(rdma_ucm_bind), CM_ID(rdma_ucm_bind),
	},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {
		.fn = cm_cmd_resolve_addr, CM_IN(rdma_ucm_resolve_addr),
		CM_ID(rdma_ucm_resolve_addr),
	},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {
		.fn = cm_cmd_join_mcast, CM_IN(rdma_ucm_join_mcast),
		CM_OUT(sizeof(struct rdma_ucm_create_id_resp),
		       sizeof(struct rdma_ucm_create_id_resp)),
		CM_BOUND_ID(rdma_ucm_join_mcast),
	},
};

/* The id that a command is about. */
static struct cm_id *cm_command_id(const struct cm_command *cmd, const struct cm_call *call)
{
	u32 handle = *(const u32 *)((const u8 *)&call->in + cmd->id);
	struct cm_id *id = cm_id_find(call->file, handle);

	if (IS_ERR(id) || cmd->gone)
		return id;
	if (id->state == CM_REMOVED)
		return ERR_PTR(-ENXIO);
	return cmd->bound && !id->fn ? ERR_PTR(-EINVAL) : id;
}

static int cm_command_run(const struct cm_command *cmd, struct cm_call *call)
{
	struct cm_id *id;
	int ret;

	mutex_lock(&cm_lock);
	id = cmd->has_id ? cm_command_id(cmd, call) : NULL;
	ret = IS_ERR(id) ? PTR_ERR(id) : cmd->fn(call, id);
	mutex_unlock(&cm_lock);
	return ret;
}

static int cm_command(const struct cm_command *cmd, struct file *filp, const char __user *in,
		      const struct rdma_ucm_cmd_hdr *hdr)
{
	void __user *response;
	struct cm_call call;
	int ret;

	memset(&call, 0, sizeof(call));
	call.file = filp->private_data;
	call.out_len = min(hdr->out, cmd->out);
	if (hdr->out < cmd->out_least)
		return -ENOSPC;
	if (hdr->in < cmd->in_least)
		return -EINVAL;
	if (copy_from_user(&call.in, in, min(hdr->in, cmd->in)))
		return -EFAULT;
	response = u64_to_user_ptr(*(u64 *)((u8 *)&call.in + cmd->response));
	if (cmd->out && fault_in_safe_writeable(response, call.out_len))
		return -EFAULT;
	ret = cm_command_run(cmd, &call);
	if (!ret && cmd->out && copy_to_user(response, &call.out, call.out_len))
		ret = -EFAULT;
	return ret;
}

static int cm_cmd_get_event(struct file *filp, const char __user *in,
			    const struct rdma_ucm_cmd_hdr *hdr)
{
	struct rdma_ucm_get_event arg;

	if (hdr->in < sizeof(arg))
		return -EINVAL;
	if (copy_from_user(&arg, in, sizeof(arg)))
		return -EFAULT;
	return cm_get_event(filp, u64_to_user_ptr(arg.response), hdr->out);
}

/* Its value may be long, so user memory is read before the lock is taken. */
static int cm_cmd_set_option(struct file *filp, const char __user *in,
			     const struct rdma_ucm_cmd_hdr *hdr)
{
	struct rdma_ucm_set_option arg;

	if (hdr->in < sizeof(arg))
		return -EINVAL;
	if (copy_from_user(&arg, in, sizeof(arg)))
		return -EFAULT;
	return cm_set_option(filp->private_data, &arg);
}

static int cm_dispatch(struct file *filp, const char __user *in,
		       const struct rdma_ucm_cmd_hdr *hdr)
{
	u32 n = hdr->cmd;

	if (n == RDMA_USER_CM_CMD_GET_EVENT)
		return cm_cmd_get_event(filp, in, hdr);
	if (n == RDMA_USER_CM_CMD_SET_OPTION)
		return cm_cmd_set_option(filp, in, hdr);
	if (n >= ARRAY_SIZE(cm_commands))
		return -EINVAL;
	n = array_index_nospec(n, ARRAY_SIZE(cm_commands));
	/* The ABI has a number for getting an option, and nothing else. */
	if (!cm_commands[n].fn)
		return -ENOSYS;
	return cm_command(&cm_commands[n], filp, in, hdr);
}

/**
 * cm_write() - write() to an event channel
 * @filp: the event channel.
 * @buf: one command.
 * @len: how long it is.
 * @pos: not used.
 *
 * Return: @len; -EACCES: who writes is not who opened; -EINVAL: no such command, or
 * there is less of it than it says; or what the command fails with.
 */
ssize_t cm_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos)
{
	struct rdma_ucm_cmd_hdr hdr;
	int ret;

	if (!ib_safe_file_access(filp))
		return -EACCES;
	if (len < sizeof(hdr))
		return -EINVAL;
	if (copy_from_user(&hdr, buf, sizeof(hdr)))
		return -EFAULT;
	if (hdr.in > len - sizeof(hdr))
		return -EINVAL;
	ret = cm_dispatch(filp, buf + sizeof(hdr), &hdr);
	return ret ?: len;
}
