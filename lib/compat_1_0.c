// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * compat_1_0.c: the calls whose structures changed after version 1.0 of the
 * ABI, in that version. A program of that age starts, and finds no device: the
 * list of devices fails, so that nothing else can be reached with an object.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Defines NAME@VERSION, returning TYPE VALUE. Callers pass arguments, which
 * the calling conventions of all our architectures let us disregard.
 */
#define COMPAT_AT(version, type, name, value)					\
	__attribute__((visibility("default"))) type compat_1_0_##name(void);	\
	__attribute__((visibility("default"))) type compat_1_0_##name(void)	\
	{									\
		errno = EOPNOTSUPP;						\
		return value;							\
	}									\
	__asm__(".symver compat_1_0_" #name "," #name "@" version)

#define COMPAT(type, name, value)	COMPAT_AT("IBVERBS_1.0", type, name, value)

#define COMPAT_PTR(name)	COMPAT(void *, name, NULL)
#define COMPAT_ERR(name)	COMPAT(int, name, EOPNOTSUPP)
#define COMPAT_MINUS(name)	COMPAT(int, name, -1)
/* Void ones: what they return is not looked at. */
#define COMPAT_VOID(name)	COMPAT_ERR(name)

COMPAT_PTR(ibv_get_device_list);
COMPAT_VOID(ibv_free_device_list);
COMPAT_PTR(ibv_get_device_name);
COMPAT(uint64_t, ibv_get_device_guid, 0);
COMPAT_PTR(ibv_open_device);
COMPAT_MINUS(ibv_close_device);
COMPAT_MINUS(ibv_get_async_event);
COMPAT_VOID(ibv_ack_async_event);
COMPAT_ERR(ibv_query_device);
COMPAT_ERR(ibv_query_port);
COMPAT_MINUS(ibv_query_gid);
COMPAT_MINUS(ibv_query_pkey);
COMPAT_PTR(ibv_alloc_pd);
COMPAT_ERR(ibv_dealloc_pd);
COMPAT_PTR(ibv_reg_mr);
COMPAT_ERR(ibv_dereg_mr);
COMPAT_PTR(ibv_create_cq);
COMPAT_ERR(ibv_resize_cq);
COMPAT_ERR(ibv_destroy_cq);
COMPAT_MINUS(ibv_get_cq_event);
COMPAT_VOID(ibv_ack_cq_events);
COMPAT_PTR(ibv_create_srq);
COMPAT_ERR(ibv_modify_srq);
COMPAT_ERR(ibv_query_srq);
COMPAT_ERR(ibv_destroy_srq);
COMPAT_PTR(ibv_create_qp);
COMPAT_ERR(ibv_query_qp);
COMPAT_ERR(ibv_modify_qp);
COMPAT_ERR(ibv_destroy_qp);
COMPAT_PTR(ibv_create_ah);
COMPAT_ERR(ibv_destroy_ah);
COMPAT_ERR(ibv_attach_mcast);
COMPAT_ERR(ibv_detach_mcast);

/* Drivers registered themselves so once; here none is ever asked. */
COMPAT_AT("IBVERBS_1.1", int, ibv_register_driver, EOPNOTSUPP);
