// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vhcactl.c: faults, stepping, the state of objects and network devices, from the
 * command line. The words of most commands become a line for one of the device's files in
 * debugfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vhca_fault.h"
#include "vhcactl.h"

#define EXIT_USAGE	2

static const char usage_text[] =
"usage: vhcactl [-d DEVICE] [--json] COMMAND\n"
"  fault add RULE                   e.g. fault add qp=17 nth=3 lose request\n"
"  fault load FILE                  a rule a line, all or none; - is the standard input\n"
"  fault list\n"
"  fault clear [ID]\n"
"  hold STAGE [qp=N|cq=N|eq=N]      STAGE: wqe, cqe, eqe, msix\n"
"  step STAGE [qp=N|cq=N|eq=N]\n"
"  release STAGE [qp=N|cq=N|eq=N]   or: release all\n"
"  state                            what is held and delayed\n"
"  inject WORDS                     e.g. inject event type=SM_CHANGE number=1\n"
"  show qp|cq|srq|eq|mr|channel [N]\n"
"  bind [DEVICE NETDEV]             answer for the addresses of a network device\n"
"  unbind DEVICE NETDEV\n"
"DEVICE is vhca0 unless named. See vhcactl(8).\n";

/**
 * struct request - what is asked for
 * @device: vhcaN
 * @json: for programs, not for people
 * @words: of the command, its name first
 * @nr: of words
 */
struct request {
	const char *device;
	bool json;
	char **words;
	int nr;
};

static int usage(void)
{
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}

/**
 * complain() - about a file or an object
 * @what: it is
 * @err: errno value
 *
 * Return: status of the program.
 */
int complain(const char *what, int err)
{
	if (err == ENOENT)
		fprintf(stderr, "vhcactl: %s: not there\n", what);
	else
		fprintf(stderr, "vhcactl: %s: %s\n", what, strerror(err));
	return 1;
}

/** read_fd() - all of a file, or NULL with errno; to be freed */
char *read_fd(int fd)
{
	size_t size = 4096, len = 0;
	char *text = NULL, *more;
	ssize_t n = 1;

	while (n > 0) {
		more = realloc(text, size);
		if (!more)
			break;
		text = more;
		n = read(fd, text + len, size - len - 1);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		if (len == size - 1)
			size *= 2;
	}
	if (!n)
		return text;
	free(text);
	return NULL;
}

static struct vhca_fault *device_open(const char *device)
{
	struct vhca_fault *f = vhca_fault_open_name(device);

	if (!f)
		complain(device, errno);
	return f;
}

/* Line @number of @text, from 1. */
static const char *line_of(const char *text, unsigned int number)
{
	while (text && --number) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text;
}

/* The line, and a caret under its column @col, from 1. */
static void print_caret(const char *line, unsigned int col)
{
	size_t len = strcspn(line, "\n"), i;

	fprintf(stderr, "%.*s\n", (int)len, line);
	for (i = 0; i + 1 < col; i++)
		fputc(i < len && line[i] == '\t' ? '\t' : ' ', stderr);
	fputs("^\n", stderr);
}

/*
 * Why the device refused @text: "LINE:COLUMN: what is wrong", or of other errors just
 * words. @name is that of the file with the rules, or NULL.
 */
static int complain_refused(const struct vhca_fault *f, const char *text, const char *name)
{
	unsigned int line, col;
	const char *at;
	int words = 0;

	if (sscanf(f->error, "%u:%u: %n", &line, &col, &words) != 2 || !words || !line) {
		fprintf(stderr, "vhcactl: %s\n", f->error);
		return 1;
	}
	at = line_of(text, line);
	if (at)
		print_caret(at, col);
	if (name)
		fprintf(stderr, "vhcactl: %s:%u: %s\n", name, line, f->error + words);
	else
		fprintf(stderr, "vhcactl: %s\n", f->error + words);
	return 1;
}

/* @words with a blank between; to be freed. */
static char *join_words(char **words, int nr)
{
	size_t size = 1;
	char *text, *end;
	int i;

	for (i = 0; i < nr; i++)
		size += strlen(words[i]) + 1;
	text = malloc(size);
	if (!text)
		return NULL;
	*text = '\0';
	for (i = 0, end = text; i < nr; i++)
		end += sprintf(end, "%s%s", i ? " " : "", words[i]);
	return text;
}

/* Write @text to a file of the device; returns the status of the program. */
static int write_text(struct vhca_fault *f, const char *file, const char *text, const char *name)
{
	int ret = vhca_fault_write(f, file, text, strlen(text));

	return ret ? complain_refused(f, text, name) : 0;
}

/* The words from @first on, as one line. */
static int write_words(const struct request *req, int first, const char *file)
{
	struct vhca_fault *f = device_open(req->device);
	char *text = join_words(req->words + first, req->nr - first);
	int status = 1;

	if (f && text)
		status = write_text(f, file, text, NULL);
	free(text);
	vhca_fault_close(f);
	return status;
}

static int do_fault_add(const struct request *req)
{
	struct vhca_fault *f;
	char *text;
	int id;

	if (req->nr < 3)
		return usage();
	f = device_open(req->device);
	if (!f)
		return 1;
	text = join_words(req->words + 2, req->nr - 2);
	if (!text || write_text(f, "faults", text, NULL)) {
		id = -1;
	} else {
		id = vhca_fault_newest(f);
		printf(req->json ? "{\"id\": %d}\n" : "%d\n", id);
	}
	free(text);
	vhca_fault_close(f);
	return id < 0;
}

static int do_fault_load(const struct request *req)
{
	const char *name = req->words[2];
	struct vhca_fault *f;
	int fd, status = 1;
	char *text;

	fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	text = fd < 0 ? NULL : read_fd(fd);
	if (!text)
		return complain(name, errno);
	f = device_open(req->device);
	if (f)
		status = write_text(f, "faults", text, name);
	vhca_fault_close(f);
	free(text);
	if (fd != STDIN_FILENO)
		close(fd);
	return status;
}

/* Each line "id=N hits=N [spent] RULE". */
static void parse_rules(struct records *records, char *text)
{
	char *save, *line, *rule;
	struct record *record;
	char id[16], hits[24];
	int head;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "id=%15s hits=%23s %n", id, hits, &head) != 2)
			continue;
		rule = line + head;
		record = records_add(records);
		record_add(record, "id", id, false);
		record_add(record, "hits", hits, false);
		if (!strncmp(rule, "spent ", 6)) {
			record_add(record, "spent", NULL, false);
			rule += 6;
		}
		record_add(record, "rule", rule, true);
	}
}

/* A file of the device, its text parsed and shown. */
static int print_file(const struct request *req, const char *name,
		      void (*parse)(struct records *records, char *text))
{
	struct vhca_fault *f = device_open(req->device);
	struct records records = {};
	char *text = NULL;
	int fd;

	if (!f)
		return 1;
	fd = openat(f->dir, name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		text = read_fd(fd);
	if (!text) {
		vhca_fault_close(f);
		return complain(name, errno);
	}
	parse(&records, text);
	if (req->json)
		print_json(&records);
	else
		print_table(&records, 0, records.nr);
	records_free(&records);
	free(text);
	close(fd);
	vhca_fault_close(f);
	return 0;
}

static int do_fault(const struct request *req)
{
	const char *what = req->nr > 1 ? req->words[1] : "";

	if (!strcmp(what, "add"))
		return do_fault_add(req);
	if (!strcmp(what, "load") && req->nr == 3)
		return do_fault_load(req);
	if (!strcmp(what, "list") && req->nr == 2)
		return print_file(req, "faults", parse_rules);
	if (!strcmp(what, "clear") && req->nr <= 3)
		return write_words(req, 1, "faults");
	return usage();
}

/* hold, step and release are the lines of the file "hold". */
static int do_hold(const struct request *req)
{
	return req->nr < 2 ? usage() : write_words(req, 0, "hold");
}

static int do_state(const struct request *req)
{
	return req->nr != 1 ? usage() : print_file(req, "hold", records_parse);
}

static int do_inject(const struct request *req)
{
	return req->nr < 2 ? usage() : write_words(req, 1, "inject");
}

static bool is_number(const char *text)
{
	char *end;

	strtoul(text, &end, 0);
	return *text && !*end;
}

static int do_show(const struct request *req)
{
	static const char * const kinds[] = { "qp", "cq", "srq", "eq", "mr", "channel" };
	const char *number = req->nr == 3 ? req->words[2] : NULL;
	size_t i;

	if (req->nr != 2 && !number)
		return usage();
	if (number && !is_number(number))
		return usage();
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(req->words[1], kinds[i]))
			return show(req->device, kinds[i], number, req->json);
	return usage();
}

/* The device is named, as it is what is bound, and not what is asked. */
static int do_bind(const struct request *req)
{
	if (req->nr == 1)
		return bind_list(req->json);
	return req->nr == 3 ? bind_change(req->words[1], req->words[2], true) : usage();
}

static int do_unbind(const struct request *req)
{
	return req->nr == 3 ? bind_change(req->words[1], req->words[2], false) : usage();
}

static const struct command {
	const char *name;
	int (*run)(const struct request *req);
} commands[] = {
	{ "fault", do_fault }, { "hold", do_hold }, { "step", do_hold },
	{ "release", do_hold }, { "state", do_state }, { "inject", do_inject },
	{ "show", do_show }, { "bind", do_bind }, { "unbind", do_unbind },
};

static int run(const struct request *req)
{
	size_t i;

	for (i = 0; req->nr && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(req->words[0], commands[i].name))
			return commands[i].run(req);
	return usage();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct request req = { .device = "vhca0" };
	int opt;

	while ((opt = getopt_long(argc, argv, "+d:jh", options, NULL)) >= 0) {
		if (opt == 'd') {
			req.device = optarg;
		} else if (opt == 'j') {
			req.json = true;
		} else if (opt == 'h') {
			fputs(usage_text, stdout);
			return 0;
		} else {
			return usage();
		}
	}
	req.words = argv + optind;
	req.nr = argc - optind;
	return run(&req);
}
