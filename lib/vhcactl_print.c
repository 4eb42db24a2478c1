// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vhcactl_print.c: records as a table for people, or as JSON.
 *
 * In JSON a value is a number, in decimal, when it is one; what is quoted is a string,
 * the values of some keys are lists, "-" is null, and a word without a value is true.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vhcactl.h"

/* Lists, whatever is in them but a mask; lists of lists when there are two separators. */
static const struct list_key {
	const char *key;
	const char *separators;
} list_keys[] = {
	{ "flags", "," }, { "sge", ";," },
};

/*
 * Tables
 */
struct columns {
	const char **keys;
	size_t *width;
	size_t nr;
};

static const char *shown(const struct word *word)
{
	if (!word)
		return "-";
	return word->value ? word->value : "yes";
}

static size_t column_of(struct columns *columns, const char *key)
{
	size_t i;

	for (i = 0; i < columns->nr; i++)
		if (!strcmp(columns->keys[i], key))
			return i;
	columns->keys = grow(columns->keys, i, sizeof(*columns->keys));
	columns->width = grow(columns->width, i, sizeof(*columns->width));
	columns->keys[i] = key;
	columns->width[i] = strlen(key);
	columns->nr++;
	return i;
}

static void measure(struct columns *columns, const struct record *record)
{
	size_t w, col, len;

	for (w = 0; w < record->nr; w++) {
		col = column_of(columns, record->words[w].key);
		len = strlen(shown(&record->words[w]));
		if (len > columns->width[col])
			columns->width[col] = len;
	}
}

/* A cell, with blanks behind it unless it is the last of its line. */
static void print_cell(const struct columns *columns, size_t col, const char *text)
{
	if (col + 1 == columns->nr)
		printf("%s\n", text);
	else
		printf("%-*s  ", (int)columns->width[col], text);
}

/**
 * print_table() - records as lines, keys as columns
 * @records: records
 * @from: the first of them
 * @to: behind the last
 */
void print_table(const struct records *records, size_t from, size_t to)
{
	struct columns columns = {};
	size_t i, col;

	for (i = from; i < to; i++)
		measure(&columns, &records->records[i]);
	for (col = 0; col < columns.nr; col++)
		print_cell(&columns, col, columns.keys[col]);
	for (i = from; i < to; i++)
		for (col = 0; col < columns.nr; col++)
			print_cell(&columns, col, shown(record_find(&records->records[i],
								    columns.keys[col])));
	free(columns.keys);
	free(columns.width);
}

/** print_list() - a record, a line each word */
void print_list(const struct record *record)
{
	size_t w, width = 0;

	for (w = 0; w < record->nr; w++)
		if (strlen(record->words[w].key) > width)
			width = strlen(record->words[w].key);
	for (w = 0; w < record->nr; w++)
		printf("%-*s  %s\n", (int)width, record->words[w].key, shown(&record->words[w]));
}

/*
 * JSON
 */
static void json_string(const char *text, size_t len)
{
	size_t i;

	putchar('"');
	for (i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			printf("\\%c", text[i]);
		else if ((unsigned char)text[i] < ' ')
			printf("\\u%04x", (unsigned int)text[i]);
		else
			putchar(text[i]);
	}
	putchar('"');
}

/* What is not a number as C has it, or is too large for 64 bits, is text. */
static bool json_number(const char *text, size_t len)
{
	size_t minus = text[0] == '-';
	unsigned long long value;
	char number[32], *end;

	if (len >= sizeof(number) || len <= minus || !isdigit((unsigned char)text[minus]))
		return false;
	memcpy(number, text + minus, len - minus);
	number[len - minus] = '\0';
	if (number[0] == '0' && isdigit((unsigned char)number[1]))
		return false;
	errno = 0;
	value = strtoull(number, &end, 0);
	if (errno || *end)
		return false;
	printf("%s%llu", minus ? "-" : "", value);
	return true;
}

static void json_scalar(const char *text, size_t len)
{
	if (!json_number(text, len))
		json_string(text, len);
}

static void json_list(const char *text, size_t len, const char *separators)
{
	const char *end = text + len;
	size_t part;

	putchar('[');
	while (text < end && strcmp(text, "-")) {
		for (part = 0; text + part < end && text[part] != separators[0]; part++)
			;
		if (separators[1])
			json_list(text, part, separators + 1);
		else
			json_scalar(text, part);
		text += part + 1;
		if (text < end)
			fputs(", ", stdout);
	}
	putchar(']');
}

/* Of a value that is a list, or NULL. */
static const char *separators_of(const struct word *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(list_keys); i++)
		if (!strcmp(list_keys[i].key, word->key) &&
		    (list_keys[i].separators[1] || !isdigit((unsigned char)*word->value)))
			return list_keys[i].separators;
	return NULL;
}

static void json_value(const struct word *word)
{
	if (!word->value)
		fputs("true", stdout);
	else if (word->quoted)
		json_string(word->value, strlen(word->value));
	else if (separators_of(word))
		json_list(word->value, strlen(word->value), separators_of(word));
	else if (!strcmp(word->value, "-"))
		fputs("null", stdout);
	else
		json_scalar(word->value, strlen(word->value));
}

static void json_words(const struct record *record)
{
	size_t w;

	for (w = 0; w < record->nr; w++) {
		if (w)
			fputs(", ", stdout);
		json_string(record->words[w].key, strlen(record->words[w].key));
		fputs(": ", stdout);
		json_value(&record->words[w]);
	}
}

static void json_array(const struct records *records, size_t from, const char *indent)
{
	size_t i;

	putchar('[');
	for (i = from; i < records->nr; i++) {
		printf("%s\n%s  {", i == from ? "" : ",", indent);
		json_words(&records->records[i]);
		putchar('}');
	}
	printf("\n%s]", indent);
}

/** print_json() - an array of objects, a line each */
void print_json(const struct records *records)
{
	json_array(records, 0, "");
	putchar('\n');
}

/**
 * print_json_record() - one object
 * @record: its members
 * @entries: records that become its array "entries", or NULL
 * @from: the first of them
 */
void print_json_record(const struct record *record, const struct records *entries, size_t from)
{
	putchar('{');
	json_words(record);
	if (entries) {
		fputs(",\n  \"entries\": ", stdout);
		json_array(entries, from, "  ");
	}
	puts("}");
}
