// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vhcactl_show.c: objects as device and driver tell of them. Each has a line of words
 * for an object, the first of which is its number; lines of one number become one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vhca_fault.h"
#include "vhcactl.h"

#define DRIVER_ROOT	"/sys/kernel/debug/vhca"

static unsigned long long number_of(const struct record *record)
{
	return record->nr && record->words[0].value ?
	       strtoull(record->words[0].value, NULL, 0) : 0;
}

/* The words of the driver's line that the device's has not, or has otherwise. */
static void join(struct record *to, const struct record *from)
{
	const struct word *word, *other;
	char key[64];
	size_t w;

	for (w = 1; w < from->nr; w++) {
		word = &from->words[w];
		other = record_find(to, word->key);
		if (!other) {
			record_add(to, word->key, word->value, word->quoted);
		} else if (other->value && word->value && strcmp(other->value, word->value)) {
			snprintf(key, sizeof(key), "driver_%s", word->key);
			record_add(to, key, word->value, word->quoted);
		}
	}
}

static struct record *find_number(struct records *records, unsigned long long number)
{
	size_t i;

	for (i = 0; i < records->nr; i++)
		if (number_of(&records->records[i]) == number)
			return &records->records[i];
	return NULL;
}

static void append(struct records *to, const struct record *from)
{
	struct record *record = records_add(to);

	if (from->nr)
		record_add(record, from->words[0].key, from->words[0].value, false);
	join(record, from);
}

/*
 * The lines of @path, or with @number that object in detail. Returns 0, also when the
 * side has no such file, or an errno value.
 */
static int read_side(struct records *records, const char *path, const char *number)
{
	int fd = open(path, (number ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	char *text;
	int err;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno;
	if (number && write(fd, number, strlen(number)) < 0) {
		err = errno;
		close(fd);
		return err;
	}
	text = read_fd(fd);
	err = text ? 0 : errno;
	if (text)
		records_parse(records, text);
	free(text);
	close(fd);
	return err;
}

struct paths {
	char device[128];
	char driver[128];
};

static int find_paths(struct paths *paths, const char *device, const char *kind)
{
	int function = vhca_fault_function(device);

	if (function < 0)
		return -function;
	snprintf(paths->device, sizeof(paths->device), VHCA_FAULT_ROOT "/%d/show/%s",
		 function, kind);
	snprintf(paths->driver, sizeof(paths->driver), DRIVER_ROOT "/%s/show/%s", device, kind);
	if (access(paths->device, F_OK) && access(paths->driver, F_OK))
		return errno;
	return 0;
}

static int show_all(const struct paths *paths, bool json)
{
	struct records driver = {}, all = {};
	struct record *found;
	size_t i;
	int err;

	err = read_side(&all, paths->device, NULL);
	if (!err)
		err = read_side(&driver, paths->driver, NULL);
	for (i = 0; !err && i < driver.nr; i++) {
		found = find_number(&all, number_of(&driver.records[i]));
		if (found)
			join(found, &driver.records[i]);
		else
			append(&all, &driver.records[i]);
	}
	if (!err && json)
		print_json(&all);
	else if (!err)
		print_table(&all, 0, all.nr);
	records_free(&driver);
	records_free(&all);
	return err;
}

static const char *ring_of(const struct record *record)
{
	const struct word *ring = record_find(record, "ring");

	return ring && ring->value ? ring->value : "";
}

/* A table for each ring: lines of one ring are together. */
static void print_rings(const struct records *lines)
{
	size_t from, to;

	for (from = 1; from < lines->nr; from = to) {
		for (to = from + 1; to < lines->nr; to++)
			if (strcmp(ring_of(&lines->records[from]), ring_of(&lines->records[to])))
				break;
		putchar('\n');
		print_table(lines, from, to);
	}
}

static int show_one(const struct paths *paths, const char *number, bool json)
{
	struct records driver = {}, lines = {};
	const struct record *found;
	int err;

	err = read_side(&lines, paths->device, number);
	if (!err)
		err = read_side(&driver, paths->driver, NULL);
	found = err ? NULL : find_number(&driver, strtoull(number, NULL, 0));
	if (found && lines.nr)
		join(&lines.records[0], found);
	else if (found)
		append(&lines, found);
	if (!err && !lines.nr)
		err = ENOENT;
	if (!err && json) {
		print_json_record(&lines.records[0], &lines, 1);
	} else if (!err) {
		print_list(&lines.records[0]);
		print_rings(&lines);
	}
	records_free(&driver);
	records_free(&lines);
	return err;
}

/**
 * show() - objects of a kind, or one in detail
 * @device: vhcaN
 * @kind: qp, cq, srq, eq, mr, channel
 * @number: of the object, or NULL
 * @json: for programs, not for people
 *
 * Return: status of the program.
 */
int show(const char *device, const char *kind, const char *number, bool json)
{
	char what[128];
	struct paths paths;
	int err;

	err = find_paths(&paths, device, kind);
	if (!err)
		err = number ? show_one(&paths, number, json) : show_all(&paths, json);
	if (!err)
		return 0;
	snprintf(what, sizeof(what), "%s: %s%s%s", device, kind, number ? " " : "",
		 number ? number : "");
	return complain(what, err);
}
