// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sysfs.c: where sysfs is, and reading its files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vhca_verbs.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* SYSFS_PATH moves it, but not for programs with more rights than their user. */
VHCA_EXPORT const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

/* Returns the length without the newline at the end, or -1. */
VHCA_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX + IBV_SYSFS_NAME_MAX];
	ssize_t len;
	int fd;

	if (!size)
		return vhca_minus(EINVAL);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return vhca_minus(ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size - 1);
	close(fd);
	if (len < 0)
		return -1;
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return (int)len;
}
