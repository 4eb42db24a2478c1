/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * faults.h: orders to the virtual HCA to go wrong, or to wait, and what it says of
 * them, through its files under debugfs.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

static inline FILE *fault_file(int fn, const char *name, const char *mode)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/%s", fn, name);
	return fopen(path, mode);
}

/* Write a text, in one write, to a file of the function; 0 or a negative errno. */
static inline int order(int fn, const char *name, const char *text)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/%s", fn, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

static inline __attribute__((format(printf, 3, 4))) int orderf(int fn, const char *name,
							       const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return order(fn, name, text);
}

/* Of the last write that was refused. */
static inline char *fault_error(int fn)
{
	static char text[256];
	FILE *f = fault_file(fn, "faults_error", "re");

	text[0] = 0;
	if (f && fgets(text, sizeof(text), f))
		text[strcspn(text, "\n")] = 0;
	if (f)
		fclose(f);
	return text;
}

/* The line of a rule, or with @id 0 of the last; its id, or -1. */
static inline int rule_line(int fn, int id, char *line, size_t size)
{
	FILE *f = fault_file(fn, "faults", "re");
	char text[512];
	int this, found = -1;

	while (f && fgets(text, sizeof(text), f)) {
		if (sscanf(text, "id=%d", &this) != 1 || (id && this != id))
			continue;
		text[strcspn(text, "\n")] = 0;
		snprintf(line, size, "%s", text);
		found = this;
	}
	if (f)
		fclose(f);
	return found;
}

/* The last rule's id, and it as it could be written again. */
static inline int last_rule(int fn, char *rule, size_t size)
{
	char line[512], *at;
	int id = rule_line(fn, 0, line, sizeof(line));

	if (id < 0)
		return id;
	at = strchr(strstr(line, "hits="), ' ') + 1;
	if (!strncmp(at, "spent ", 6))
		at += 6;
	snprintf(rule, size, "%s", at);
	return id;
}

static inline long rule_hits(int fn, int id)
{
	char line[512];

	return rule_line(fn, id, line, sizeof(line)) < 0 ? -1 :
	       strtol(strstr(line, "hits=") + 5, NULL, 10);
}

static inline bool rule_spent(int fn, int id)
{
	char line[512];

	return rule_line(fn, id, line, sizeof(line)) >= 0 && strstr(line, " spent ");
}

/* How many rules there are. */
static inline int rules(int fn)
{
	FILE *f = fault_file(fn, "faults", "re");
	char text[512];
	int n = 0;

	while (f && fgets(text, sizeof(text), f))
		n++;
	if (f)
		fclose(f);
	return n;
}

/* Its id, or a negative errno. */
static inline __attribute__((format(printf, 2, 3))) int plan(int fn, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int err;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	err = order(fn, "faults", text);
	return err ? err : last_rule(fn, text, sizeof(text));
}

/* A number in the line of an object, such as "cq", 5, "pi"; -1: there is none. */
static inline long shown(int fn, const char *kind, unsigned int number, const char *key)
{
	char name[32], head[48], word[48], line[1024], *at;
	long val = -1;
	FILE *f;

	snprintf(name, sizeof(name), "show/%s", kind);
	snprintf(head, sizeof(head), "%s=%u ", kind, number);
	snprintf(word, sizeof(word), " %s=", key);
	f = fault_file(fn, name, "re");
	while (f && val < 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, head, strlen(head)))
			continue;
		at = strstr(line, word);
		if (at)
			val = strtol(at + strlen(word), NULL, 0);
	}
	if (f)
		fclose(f);
	return val;
}

/* Let the driver go from vhcaN, and come back; true when it did. */
static inline bool rebind(int index)
{
	static const char * const steps[] = { "unbind", "bind" };
	char path[96], link[256] = {}, *name;
	unsigned int i;
	int fd, tries;

	snprintf(path, sizeof(path), "/sys/class/vhca/vhca%d/device", index);
	if (readlink(path, link, sizeof(link) - 1) < 0)
		return false;
	name = strrchr(link, '/') + 1;
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		snprintf(path, sizeof(path), "/sys/bus/pci/drivers/vhca/%s", steps[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, name, strlen(name)) < 0)
			return false;
		close(fd);
	}
	snprintf(path, sizeof(path), "/dev/vhca%d", index);
	for (tries = 0; tries < 1000 && access(path, R_OK | W_OK); tries++)
		usleep(10000);
	return tries < 1000;
}

/* Lines of the file hold that begin so, how many; and how much waits there in all. */
static inline int gates(int fn, const char *begin, int *waiting)
{
	FILE *f = fault_file(fn, "hold", "re");
	char text[512], *at;
	int n = 0;

	*waiting = 0;
	while (f && fgets(text, sizeof(text), f)) {
		if (strncmp(text, begin, strlen(begin)))
			continue;
		at = strstr(text, " pending=");
		if (at)
			*waiting += atoi(at + 9);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

/* How much waits at a gate, such as "cqe cq=5". */
static inline __attribute__((format(printf, 2, 3))) int pending(int fn, const char *fmt, ...)
{
	char text[128] = "stage=";
	va_list args;
	int n;

	va_start(args, fmt);
	vsnprintf(text + 6, sizeof(text) - 7, fmt, args);
	va_end(args);
	strcat(text, " ");
	gates(fn, text, &n);
	return n;
}

#endif
