// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * compat_1_0.c: the calls whose structures changed after version 1.0 of the
 * ABI, in that version. A program of that age starts, and finds no device: the
 * list of devices fails, so that nothing else can be reached with an object.
 */
#include <errno.h>
#include <stddef.h>

#define VISIBLE	__attribute__((visibility("default")))

/*
 * One function for each way to fail. Callers pass arguments, which the calling
 * conventions of all our architectures let us disregard.
 */
VISIBLE void *compat_null(void);
VISIBLE void *compat_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

VISIBLE int compat_errno(void);
VISIBLE int compat_errno(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

VISIBLE int compat_minus(void);
VISIBLE int compat_minus(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

#define OLD(name, function) \
	__asm__(".symver compat_" #function "," #name)

OLD(ibv_get_device_list@IBVERBS_1.0, null);
OLD(ibv_free_device_list@IBVERBS_1.0, errno);
OLD(ibv_get_device_name@IBVERBS_1.0, null);
OLD(ibv_get_device_guid@IBVERBS_1.0, null);
OLD(ibv_open_device@IBVERBS_1.0, null);
OLD(ibv_close_device@IBVERBS_1.0, minus);
OLD(ibv_get_async_event@IBVERBS_1.0, minus);
OLD(ibv_ack_async_event@IBVERBS_1.0, errno);
OLD(ibv_query_device@IBVERBS_1.0, errno);
OLD(ibv_query_port@IBVERBS_1.0, errno);
OLD(ibv_query_gid@IBVERBS_1.0, minus);
OLD(ibv_query_pkey@IBVERBS_1.0, minus);
OLD(ibv_alloc_pd@IBVERBS_1.0, null);
OLD(ibv_dealloc_pd@IBVERBS_1.0, errno);
OLD(ibv_reg_mr@IBVERBS_1.0, null);
OLD(ibv_dereg_mr@IBVERBS_1.0, errno);
OLD(ibv_create_cq@IBVERBS_1.0, null);
OLD(ibv_resize_cq@IBVERBS_1.0, errno);
OLD(ibv_destroy_cq@IBVERBS_1.0, errno);
OLD(ibv_get_cq_event@IBVERBS_1.0, minus);
OLD(ibv_ack_cq_events@IBVERBS_1.0, errno);
OLD(ibv_create_srq@IBVERBS_1.0, null);
OLD(ibv_modify_srq@IBVERBS_1.0, errno);
OLD(ibv_query_srq@IBVERBS_1.0, errno);
OLD(ibv_destroy_srq@IBVERBS_1.0, errno);
OLD(ibv_create_qp@IBVERBS_1.0, null);
OLD(ibv_query_qp@IBVERBS_1.0, errno);
OLD(ibv_modify_qp@IBVERBS_1.0, errno);
OLD(ibv_destroy_qp@IBVERBS_1.0, errno);
OLD(ibv_create_ah@IBVERBS_1.0, null);
OLD(ibv_destroy_ah@IBVERBS_1.0, errno);
OLD(ibv_attach_mcast@IBVERBS_1.0, errno);
OLD(ibv_detach_mcast@IBVERBS_1.0, errno);

/* Drivers registered themselves so once; here none is ever asked. */
OLD(ibv_register_driver@IBVERBS_1.1, errno);
