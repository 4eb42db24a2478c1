// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * context.c: open and close a device.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vhca_verbs.h"

/* For all that stays NULL the inline functions return EOPNOTSUPP themselves. */
static void set_ops(struct verbs_context *vctx)
{
	struct ibv_context_ops *ops = &vctx->context.ops;

	vctx->sz = sizeof(*vctx);
	vctx->context.abi_compat = __VERBS_ABI_IS_EXTENDED;

	ops->poll_cq = vhca_poll_cq;
	ops->req_notify_cq = vhca_req_notify_cq;
	ops->post_send = vhca_post_send;
	ops->post_recv = vhca_post_recv;
	ops->alloc_mw = vhca_alloc_mw;
	ops->bind_mw = vhca_bind_mw;
	ops->dealloc_mw = vhca_dealloc_mw;
	ops->post_srq_recv = vhca_post_srq_recv;

	vctx->query_port = vhca_query_port;
	vctx->query_device_ex = vhca_query_device_ex;
	vctx->query_rt_values = vhca_query_rt_values;
	vctx->create_cq_ex = vhca_create_cq_ex;
	vctx->alloc_td = vhca_alloc_td;
	vctx->dealloc_td = vhca_dealloc_td;
	vctx->alloc_parent_domain = vhca_alloc_parent_domain;
	vctx->alloc_null_mr = vhca_alloc_null_mr;
	vctx->alloc_dm = vhca_alloc_dm;
	vctx->free_dm = vhca_free_dm;
	vctx->reg_dm_mr = vhca_reg_dm_mr;
	vctx->modify_cq = vhca_modify_cq;
	vctx->create_qp_ex = vhca_create_qp_ex;
	vctx->open_qp = vhca_open_qp;
	vctx->create_srq_ex = vhca_create_srq_ex;
	vctx->get_srq_num = vhca_get_srq_num;
	vctx->open_xrcd = vhca_open_xrcd;
	vctx->close_xrcd = vhca_close_xrcd;
}

static int open_file(const struct ibv_device *device)
{
	char path[sizeof("/dev/") + IBV_SYSFS_NAME_MAX];

	snprintf(path, sizeof(path), "/dev/%s", device->dev_name);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int ask_kernel(struct vhca_context *ctx)
{
	struct vhca_create_event_file async = { .fd = VHCA_INVALID_FD };
	struct ibv_context *ibv = &ctx->vctx.context;
	int err;

	err = vhca_query_caps(ibv, &ctx->caps);
	if (err)
		return err;
	if (ctx->caps.abi_version != VHCA_ABI_VERSION)
		return ENOSYS;
	err = vhca_ioctl(ibv, VHCA_IOC_OPEN_ASYNC, &async);
	if (err)
		return err;
	ibv->async_fd = async.fd;
	ctx->async = async.number;
	ibv->num_comp_vectors = (int)ctx->caps.num_comp_vectors;
	return 0;
}

/* Options are off unless the environment says otherwise. */
static bool option(const char *name)
{
	const char *value = getenv(name);

	return value && !strcmp(value, "1");
}

static uint8_t qp_options(void)
{
	static const struct {
		const char *name;
		uint8_t flag;
	} known[] = {
		{ "VHCA_WQE_SIGNATURE", VHCA_QP_F_SIGNATURE },
		{ "VHCA_SCATTER_TO_CQE", VHCA_QP_F_SCATTER_CQE },
		{ "VHCA_BLUEFLAME", VHCA_QP_F_BLUEFLAME },
	};
	uint8_t flags = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (option(known[i].name))
			flags |= known[i].flag;
	return flags;
}

/* On success the descriptor is the context's. */
static struct ibv_context *context_new(struct ibv_device *device, int cmd_fd)
{
	struct vhca_context *ctx;
	struct ibv_context *ibv;
	int err;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ibv = &ctx->vctx.context;
	ibv->cmd_fd = cmd_fd;
	ctx->qp_flags = qp_options();
	ctx->single_threaded = option("VHCA_SINGLE_THREADED");
	err = ask_kernel(ctx);
	if (err) {
		free(ctx);
		return vhca_null(err);
	}
	set_ops(&ctx->vctx);
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_mutex_init(&ctx->uar_lock, NULL);
	pthread_mutex_init(&ctx->num_lock, NULL);
	ibv->device = device;
	vhca_device_get(to_vdev(device));
	return ibv;
}

VHCA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	int fd, err;

	fd = open_file(device);
	if (fd < 0)
		return NULL;
	context = context_new(device, fd);
	if (!context) {
		err = errno;
		close(fd);
		return vhca_null(err);
	}
	return context;
}

/*
 * The kernel's context is the one behind the descriptor, with all its objects. UARs,
 * queues and async events are this context's own.
 */
VHCA_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_device *device = vhca_device_of_file(cmd_fd);
	struct ibv_context *context;

	if (!device)
		return NULL;
	context = context_new(device, cmd_fd);
	/* Its regions may be another process's, who has them at other addresses. */
	if (context)
		to_vctx(context)->qp_flags &= (uint8_t)~VHCA_QP_F_SCATTER_CQE;
	vhca_device_put(to_vdev(device));
	return context;
}

VHCA_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct vhca_context *ctx = to_vctx(context);

	vhca_uar_free_all(ctx);
	close(context->async_fd);
	close(context->cmd_fd);
	vhca_device_put(to_vdev(context->device));
	vhca_num_free(&ctx->qps);
	vhca_num_free(&ctx->srqs);
	pthread_mutex_destroy(&ctx->num_lock);
	pthread_mutex_destroy(&ctx->uar_lock);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}
