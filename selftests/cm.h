/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cm.h: RDMA CM for tests in C. vhca_cm is loaded while the program runs, unless an RDMA
 * CM is there already; on the reference, see cm_reference.sh, it is the kernel's own.
 */
#ifndef CM_H
#define CM_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/ib.h>

#include "clock.h"

#define CM_DEVICE	"/dev/infiniband/rdma_cm"
#define CM_MODULE	"/driver/cm/vhca_cm.ko"
#define CM_DROP		"/sys/kernel/debug/vhca_cm/drop"
#define CM_PARAMETERS	"/sys/module/vhca_cm/parameters/"

/* Private data that fits beside the header of RDMA CM, or into a whole message. */
#define CM_REQ_DATA	56
#define CM_REP_DATA	196
#define CM_REJ_DATA	148
#define CM_SIDR_REQ_DATA 180
#define CM_SIDR_REP_DATA 136

/* Reasons of a rejection, of InfiniBand's specification. */
#define CM_REJ_TIMEOUT		4
#define CM_REJ_NO_SERVICE	8
#define CM_REJ_CONSUMER		28
#define CM_SIDR_NO_SERVICE	1
#define CM_SIDR_REJECT		2

union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
	struct sockaddr_storage ss;
};

static inline bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static inline bool set_parameter(const char *name, unsigned int value)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), CM_PARAMETERS "%s", name);
	snprintf(text, sizeof(text), "%u", value);
	return write_file(path, text);
}

static bool cm_loaded;

static inline bool on_reference(void)
{
	return getenv("VHCA_CM_REFERENCE");
}

static inline int cm_load(void)
{
	const char *modules = getenv("VHCA_MODULES");
	char path[PATH_MAX];
	int fd, ret;

	if (!access(CM_DEVICE, F_OK))
		return 0;
	if (!modules)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s" CM_MODULE, modules);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	cm_loaded = !ret;
	return ret;
}

/* What tests have left open is closed a moment after they have ended. */
static inline bool cm_unload(void)
{
	return wait_until(!syscall(SYS_delete_module, "vhca_cm", O_NONBLOCK));
}

/* Tests end with _exit(): this runs once, when the program ends. */
static inline void cm_restore(void)
{
	if (!cm_loaded || cm_unload())
		return;
	printf("# vhca_cm cannot be unloaded\n");
	fflush(stdout);
	_exit(1);
}

static __attribute__((constructor)) void cm_start(void)
{
	int err = cm_load();

	atexit(cm_restore);
	if (!err)
		return;
	printf("TAP version 13\nBail out! vhca_cm cannot be loaded: %s\n", strerror(-err));
	fflush(stdout);
	_exit(1);
}

/* An address of this machine that the first function answers for. */
static inline union cm_addr cm_address(int family, int port)
{
	const char *v4 = getenv("VHCA_CM_ADDRESS"), *v6 = getenv("VHCA_CM_ADDRESS6");
	union cm_addr a = { .sa.sa_family = family };

	if (family == AF_INET6) {
		inet_pton(AF_INET6, v6 ? v6 : "::1", &a.in6.sin6_addr);
		a.in6.sin6_port = htons(port);
	} else {
		inet_pton(AF_INET, v4 ? v4 : "127.0.0.1", &a.in.sin_addr);
		a.in.sin_port = htons(port);
	}
	return a;
}

static inline bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

#endif
