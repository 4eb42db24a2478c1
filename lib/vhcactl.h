/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vhcactl.h: what the files of vhcactl offer each other.
 */
#ifndef VHCACTL_H
#define VHCACTL_H

#include <stdbool.h>
#include <stddef.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct word - "key=value" of a line; a word without "=" has no value
 * @quoted: the value was "in quotation marks": text, whatever it looks like.
 */
struct word {
	char *key;
	char *value;
	bool quoted;
};

/**
 * struct record - a line
 */
struct record {
	struct word *words;
	size_t nr;
};

/**
 * struct records - lines, in order
 */
struct records {
	struct record *records;
	size_t nr;
};

/* vhcactl_line.c */
void *grow(void *array, size_t nr, size_t size);
char *copy(const char *text);
void record_add(struct record *record, const char *key, const char *value, bool quoted);
const struct word *record_find(const struct record *record, const char *key);
struct record *records_add(struct records *records);
void record_parse(struct record *record, char *line);
void records_parse(struct records *records, char *text);
void records_free(struct records *records);

/* vhcactl_print.c */
void print_table(const struct records *records, size_t from, size_t to);
void print_list(const struct record *record);
void print_json(const struct records *records);
void print_json_record(const struct record *record, const struct records *entries, size_t from);

/* vhcactl_show.c */
int show(const char *device, const char *kind, const char *number, bool json);

/* vhcactl_bind.c */
int bind_change(const char *device, const char *netdev, bool bound);
int bind_list(bool json);

/* vhcactl.c */
char *read_fd(int fd);
int complain(const char *what, int err);

#endif
