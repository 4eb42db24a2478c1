/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vhca_resource.h: what the allocator of a parent domain is asked for, i.e. the
 * resource_type of struct ibv_parent_domain_init_attr's callbacks.
 *
 * The upper half is the device's PCI identity, which no other provider's types
 * have there. All are asked for with the alignment of a page, in whole pages, and
 * are pinned until the object goes.
 */
#ifndef VHCA_RESOURCE_H
#define VHCA_RESOURCE_H

#define VHCA_RESOURCE_BASE	(0x12345643ull << 32)

#define VHCA_RESOURCE_QP	(VHCA_RESOURCE_BASE | 1)	/* SQ and RQ */
#define VHCA_RESOURCE_CQ	(VHCA_RESOURCE_BASE | 2)
#define VHCA_RESOURCE_SRQ	(VHCA_RESOURCE_BASE | 3)

#endif
