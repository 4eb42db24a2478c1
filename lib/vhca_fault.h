/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vhca_fault.h: faults on demand, stepping and the state of objects, for the tests
 * of applications: what a virtual HCA of vhca does wrong, when, and how far it may
 * go. Needs root, POSIX.1-2008 and nothing but libibverbs' own header; see faults.rst.
 *
 * Rules and commands are text, formatted as by printf():
 *
 *	f = vhca_fault_open(ctx);
 *	vhca_fault_add(f, "qp=%u nth=3 lose request", qp->qp_num);
 *
 * Calls that return int or long return -errno when they fail, and leave words about
 * it for vhca_fault_error(). A struct vhca_fault is for one thread at a time.
 */
#ifndef VHCA_FAULT_H
#define VHCA_FAULT_H

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VHCA_FAULT_ROOT		"/sys/kernel/debug/vhca_device"
#define VHCA_FAULT_TEXT		1024

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct vhca_fault - the control files of a device
 * @dir: their directory.
 * @error: why the last call failed that did.
 */
struct vhca_fault {
	int dir;
	char error[256];
};

/**
 * vhca_fault_function() - the number of the PCI function behind a device
 * @name: of the device: vhcaN
 *
 * Return: the number, which is its PCI slot and its directory in debugfs.
 */
static inline int vhca_fault_function(const char *name)
{
	char link[64 + sizeof("/sys/class/vhca//device")], target[PATH_MAX];
	const char *address;
	unsigned int slot;
	ssize_t n;

	if (strlen(name) >= 64 || strchr(name, '/'))
		return -ENODEV;
	snprintf(link, sizeof(link), "/sys/class/vhca/%s/device", name);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -ENODEV;
	target[n] = '\0';
	address = strrchr(target, '/');
	if (!address || sscanf(address, "/%*x:%*x:%x.", &slot) != 1)
		return -ENODEV;
	return (int)slot;
}

/**
 * vhca_fault_open_name() - vhca_fault_open() for who has no context
 * @name: of the device: vhcaN
 *
 * Return: handle, or NULL with errno: ENODEV when @name is no device of vhca.
 */
static inline struct vhca_fault *vhca_fault_open_name(const char *name)
{
	int function = vhca_fault_function(name);
	struct vhca_fault *f;
	char path[64];

	if (function < 0) {
		errno = -function;
		return NULL;
	}
	f = (struct vhca_fault *)calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	snprintf(path, sizeof(path), VHCA_FAULT_ROOT "/%d", function);
	f->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir < 0) {
		free(f);
		return NULL;
	}
	return f;
}

/**
 * vhca_fault_open() - begin to control a device
 * @ctx: the device, open
 *
 * Return: handle, or NULL with errno: ENODEV when it is no device of vhca, EACCES
 * without root.
 */
static inline struct vhca_fault *vhca_fault_open(struct ibv_context *ctx)
{
	return vhca_fault_open_name(ctx->device->name);
}

/**
 * vhca_fault_close() - the end of it; rules and what is held stay as they are
 * @f: handle, or NULL
 */
static inline void vhca_fault_close(struct vhca_fault *f)
{
	if (!f)
		return;
	close(f->dir);
	free(f);
}

/**
 * vhca_fault_error() - why the last call failed that did
 * @f: handle
 *
 * Return: of a line that was refused "LINE:COLUMN: what is wrong".
 */
static inline const char *vhca_fault_error(const struct vhca_fault *f)
{
	return f->error;
}

/* A file of the device from its start, or NULL with errno. */
static inline FILE *vhca_fault_read(struct vhca_fault *f, const char *name)
{
	int fd = openat(f->dir, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* Leave the words for @err. */
static inline int vhca_fault_fail(struct vhca_fault *f, int err)
{
	snprintf(f->error, sizeof(f->error), "%s", strerror(err));
	return -err;
}

/* Leave those of the device for what it has just refused with @err. */
static inline int vhca_fault_refused(struct vhca_fault *f, int err)
{
	FILE *file = vhca_fault_read(f, "faults_error");
	char line[sizeof(f->error)] = "";

	if (file) {
		if (fgets(line, sizeof(line), file))
			line[strcspn(line, "\n")] = '\0';
		fclose(file);
	}
	if (!line[0])
		return vhca_fault_fail(f, err);
	memcpy(f->error, line, sizeof(line));
	return -err;
}

/**
 * vhca_fault_write() - write to a file of the device, at once
 * @f: handle
 * @name: faults, inject or hold
 * @text: one line or, to faults, several
 * @len: bytes of it
 */
static inline int vhca_fault_write(struct vhca_fault *f, const char *name, const char *text,
				   size_t len)
{
	int fd = openat(f->dir, name, O_WRONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return vhca_fault_fail(f, errno);
	err = write(fd, text, len) < 0 ? errno : 0;
	close(fd);
	return err ? vhca_fault_refused(f, err) : 0;
}

static inline int vhca_fault_vwrite(struct vhca_fault *f, const char *name, const char *verb,
				    const char *fmt, va_list args)
{
	char text[VHCA_FAULT_TEXT];
	int at = snprintf(text, sizeof(text), "%s", verb);
	int n = vsnprintf(text + at, sizeof(text) - (size_t)at, fmt, args);

	if (n < 0 || at + n >= (int)sizeof(text))
		return vhca_fault_fail(f, E2BIG);
	return vhca_fault_write(f, name, text, (size_t)(at + n));
}

/* The newest rule: the last of the list. */
static inline int vhca_fault_newest(struct vhca_fault *f)
{
	FILE *file = vhca_fault_read(f, "faults");
	char line[VHCA_FAULT_TEXT];
	int id = -ENOENT;

	if (!file)
		return vhca_fault_fail(f, errno);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "id=%d", &id);
	fclose(file);
	return id;
}

/**
 * vhca_fault_add() - add a rule
 * @f: handle
 * @fmt: the rule; or several, a line each, and then all or none are taken
 *
 * Return: the rule's id, of several that of the last.
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_fault_add(struct vhca_fault *f, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = vhca_fault_vwrite(f, "faults", "", fmt, args);
	va_end(args);
	return err ? err : vhca_fault_newest(f);
}

/**
 * vhca_fault_clear() - all rules go
 * @f: handle
 */
static inline int vhca_fault_clear(struct vhca_fault *f)
{
	return vhca_fault_write(f, "faults", "clear", 5);
}

/**
 * vhca_fault_hits() - how often a rule has fired
 * @f: handle
 * @id: the rule
 */
static inline long vhca_fault_hits(struct vhca_fault *f, int id)
{
	FILE *file = vhca_fault_read(f, "faults");
	long hits, found = -ENOENT;
	char line[VHCA_FAULT_TEXT];
	int n;

	if (!file)
		return vhca_fault_fail(f, errno);
	while (found < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "id=%d hits=%ld", &n, &hits) == 2 && n == id)
			found = hits;
	fclose(file);
	return found < 0 ? vhca_fault_fail(f, ENOENT) : found;
}

/**
 * vhca_fault_inject() - let something happen now
 * @f: handle
 * @fmt: what: "eqe eq=N cq=N", "msix eq=N", "event type=NAME", "port down", ...
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_fault_inject(struct vhca_fault *f, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = vhca_fault_vwrite(f, "inject", "", fmt, args);
	va_end(args);
	return err;
}

/**
 * vhca_hold() - nothing passes a stage any more
 * @f: handle
 * @fmt: the stage (wqe, cqe, eqe, msix), and qp=N, cq=N or eq=N if not all
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_hold(struct vhca_fault *f, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = vhca_fault_vwrite(f, "hold", "hold ", fmt, args);
	va_end(args);
	return err;
}

/**
 * vhca_step() - let the oldest pass that is held
 * @f: handle
 * @fmt: as it was held
 *
 * Return: 0, and it has passed; -EAGAIN when nothing is there.
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_step(struct vhca_fault *f, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = vhca_fault_vwrite(f, "hold", "step ", fmt, args);
	va_end(args);
	return err;
}

/**
 * vhca_release() - let all pass, those to come as well
 * @f: handle
 * @fmt: as it was held, or "all"
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_release(struct vhca_fault *f, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = vhca_fault_vwrite(f, "hold", "release ", fmt, args);
	va_end(args);
	return err;
}

/* Has @line this word? What is behind a quotation mark does not count. */
static inline int vhca_fault_has(const char *line, const char *word)
{
	size_t end = strcspn(line, "\"\n"), len = strlen(word);
	const char *at = line;

	while ((at = strstr(at, word)) && at + len <= line + end) {
		if ((at == line || at[-1] == ' ') && strchr(" \"\n", at[len]))
			return 1;
		at += len;
	}
	return 0;
}

/* The number behind "@key=" in @line. */
static inline long vhca_fault_number(const char *line, const char *key)
{
	size_t len = strlen(key);
	const char *at = line;

	while ((at = strstr(at, key))) {
		if ((at == line || at[-1] == ' ') && at[len] == '=')
			return strtol(at + len + 1, NULL, 0);
		at += len;
	}
	return -ENOENT;
}

static inline int vhca_fault_has_all(const char *line, char *words)
{
	char *save, *word;

	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!vhca_fault_has(line, word))
			return 0;
	return 1;
}

/**
 * vhca_fault_pending() - how many are kept at a stage, by a hold or by a rule
 * @f: handle
 * @fmt: the stage, and qp=N, cq=N or eq=N if not all together
 */
static inline int __attribute__((format(printf, 2, 3)))
vhca_fault_pending(struct vhca_fault *f, const char *fmt, ...)
{
	char want[VHCA_FAULT_TEXT] = "stage=", words[VHCA_FAULT_TEXT], line[VHCA_FAULT_TEXT];
	FILE *file = vhca_fault_read(f, "hold");
	int pending = 0;
	va_list args;

	if (!file)
		return vhca_fault_fail(f, errno);
	va_start(args, fmt);
	vsnprintf(want + 6, sizeof(want) - 6, fmt, args);
	va_end(args);
	while (fgets(line, sizeof(line), file)) {
		memcpy(words, want, sizeof(words));
		if (vhca_fault_has_all(line, words))
			pending += (int)vhca_fault_number(line, "pending");
	}
	fclose(file);
	return pending;
}

/**
 * vhca_fault_value() - a number of an object's line, as "vhcactl show" has it
 * @f: handle
 * @kind: qp, cq, srq, eq or mr
 * @number: of the object
 * @key: of the value: vhca_fault_value(f, "cq", vhca_cqn(cq), "unread")
 *
 * Return: the value, or -ENOENT when there is no such object or key.
 */
static inline long vhca_fault_value(struct vhca_fault *f, const char *kind, uint32_t number,
				    const char *key)
{
	char name[32], line[4 * VHCA_FAULT_TEXT];
	long value = -ENOENT;
	FILE *file;

	snprintf(name, sizeof(name), "show/%s", kind);
	file = vhca_fault_read(f, name);
	if (!file)
		return vhca_fault_fail(f, errno);
	while (fgets(line, sizeof(line), file)) {
		if (vhca_fault_number(line, kind) == (long)number) {
			value = vhca_fault_number(line, key);
			break;
		}
	}
	fclose(file);
	return value < 0 ? vhca_fault_fail(f, ENOENT) : value;
}

/**
 * vhca_cqn() - the number of a CQ, as rules name it; a QP's is its qp_num
 * @cq: the CQ
 */
static inline uint32_t vhca_cqn(const struct ibv_cq *cq)
{
	return cq->handle;
}

/**
 * vhca_eqn() - the number of the EQ that tells of a CQ's completions
 * @f: handle
 * @cq: the CQ
 */
static inline int vhca_eqn(struct vhca_fault *f, const struct ibv_cq *cq)
{
	return (int)vhca_fault_value(f, "cq", vhca_cqn(cq), "eq");
}

#ifdef __cplusplus
}
#endif

#endif
