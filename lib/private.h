/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * private.h: what stands for a private symbol of libibverbs.
 *
 * Vendor libraries register their drivers when they are loaded, and get no
 * further: the devices they see are none of theirs. Should one of them call
 * another of these all the same, it fails.
 */
#ifndef VHCA_PRIVATE_H
#define VHCA_PRIVATE_H

#include <errno.h>
#include <stddef.h>

#define PRIVATE_EXPORT	__attribute__((visibility("default")))

#define PRIVATE_FUNCTION(name)			\
	PRIVATE_EXPORT int name(void);		\
	PRIVATE_EXPORT int name(void)		\
	{					\
		errno = EOPNOTSUPP;		\
		return EOPNOTSUPP;		\
	}

#define PRIVATE_POINTER(name)			\
	PRIVATE_EXPORT void *name(void);	\
	PRIVATE_EXPORT void *name(void)		\
	{					\
		errno = EOPNOTSUPP;		\
		return NULL;			\
	}

#define PRIVATE_VARIABLE(name, size)		\
	PRIVATE_EXPORT char name[size];

#endif
