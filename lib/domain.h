/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domain.h: protection domains, thread domains, the parent domains that join
 * them, and the queue memory that comes from a parent domain's allocator.
 */
#ifndef VHCA_DOMAIN_H
#define VHCA_DOMAIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "vhca_resource.h"

/**
 * struct vhca_td - thread domain
 * @ibv: what the application sees.
 * @users: parent domains that have it.
 */
struct vhca_td {
	struct ibv_td ibv;
	uint32_t users;
};

/**
 * struct vhca_pd - protection domain, or parent domain
 * @ibv: what the application sees; a parent domain has the handle of its
 *	protection domain.
 * @users: what keeps it from going and the kernel knows nothing of: parent domains of
 *	it, queues made with a parent domain, address handles.
 * @protection: parent domain: its protection domain; else NULL.
 * @td: parent domain: its thread domain, or NULL.
 * @alloc: allocator, or NULL. The mapped memory of the kernel is the default.
 * @free: takes back what @alloc gave.
 * @pd_context: argument of both.
 */
struct vhca_pd {
	struct ibv_pd ibv;
	uint32_t users;
	struct vhca_pd *protection;
	struct vhca_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

static inline struct vhca_pd *to_vpd(struct ibv_pd *ibv)
{
	return (struct vhca_pd *)ibv;
}

struct ibv_td *vhca_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vhca_dealloc_td(struct ibv_td *td);
struct ibv_pd *vhca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
int vhca_parent_domain_free(struct vhca_pd *pd);

/**
 * struct vhca_buf - memory of a queue
 * @addr: NULL until it is there.
 * @size: bytes.
 * @domain: parent domain that the queue was made with, or NULL.
 * @type: VHCA_RESOURCE_* when @domain's allocator gave it; 0: to be unmapped.
 */
struct vhca_buf {
	void *addr;
	size_t size;
	struct vhca_pd *domain;
	uint64_t type;
};

int vhca_buf_ask(struct vhca_buf *buf, struct ibv_pd *pd, size_t size, uint64_t type);
int vhca_buf_own(struct vhca_buf *buf, size_t size);
int vhca_buf_map(struct vhca_buf *buf, struct ibv_context *context, uint64_t offset,
		 uint64_t size);
void vhca_buf_release(struct vhca_buf *buf);

#endif
