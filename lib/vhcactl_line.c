// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vhcactl_line.c: lines of "key=value" words, as debugfs has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vhcactl.h"

static void *need(void *mem)
{
	if (!mem) {
		fputs("vhcactl: out of memory\n", stderr);
		exit(1);
	}
	return mem;
}

/**
 * grow() - room for one more element
 * @array: array
 * @nr: elements in it
 * @size: of one
 *
 * Return: the array, which has room for a power of two elements.
 */
void *grow(void *array, size_t nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	return need(realloc(array, (nr ? 2 * nr : 1) * size));
}

/** copy() - of a string, or NULL of NULL */
char *copy(const char *text)
{
	return text ? need(strdup(text)) : NULL;
}

/** record_add() - one more word, of copies */
void record_add(struct record *record, const char *key, const char *value, bool quoted)
{
	record->words = grow(record->words, record->nr, sizeof(*record->words));
	record->words[record->nr++] = (struct word) {
		.key = copy(key),
		.value = copy(value),
		.quoted = quoted,
	};
}

/** record_find() - the word with a key, or NULL */
const struct word *record_find(const struct record *record, const char *key)
{
	size_t i;

	for (i = 0; i < record->nr; i++)
		if (!strcmp(record->words[i].key, key))
			return &record->words[i];
	return NULL;
}

/** records_add() - one more, empty */
struct record *records_add(struct records *records)
{
	records->records = grow(records->records, records->nr, sizeof(*records->records));
	records->records[records->nr] = (struct record) {};
	return &records->records[records->nr++];
}

/* Up to the quotation mark that ends it; a backslash makes the next one plain. */
static char *take_quoted(char **at)
{
	char *from = *at, *to = from, *start = from;

	while (*from && *from != '"') {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from++;
	}
	*at = *from ? from + 1 : from;
	*to = '\0';
	return start;
}

static char *take_plain(char **at)
{
	char *start = *at;
	size_t len = strcspn(start, " \t");

	*at = start + len + !!start[len];
	start[len] = '\0';
	return start;
}

/**
 * record_parse() - the words of a line
 * @record: gets them
 * @line: without its end; is taken apart
 */
void record_parse(struct record *record, char *line)
{
	char *at = line + strspn(line, " \t");
	char *key, *value;
	size_t len;
	bool quoted;

	while (*at) {
		len = strcspn(at, "= \t");
		key = at;
		value = NULL;
		quoted = at[len] == '=' && at[len + 1] == '"';
		if (quoted) {
			at[len] = '\0';
			at += len + 2;
			value = take_quoted(&at);
		} else if (at[len] == '=') {
			at[len] = '\0';
			at += len + 1;
			value = take_plain(&at);
		} else {
			take_plain(&at);
		}
		record_add(record, key, value, quoted);
		at += strspn(at, " \t");
	}
}

/**
 * records_parse() - a record of each line
 * @records: gets them
 * @text: lines; is taken apart
 */
void records_parse(struct records *records, char *text)
{
	char *save, *line;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		record_parse(records_add(records), line);
}

/** records_free() - the end of all of them */
void records_free(struct records *records)
{
	size_t i, w;

	for (i = 0; i < records->nr; i++) {
		for (w = 0; w < records->records[i].nr; w++) {
			free(records->records[i].words[w].key);
			free(records->records[i].words[w].value);
		}
		free(records->records[i].words);
	}
	free(records->records);
	*records = (struct records) {};
}
