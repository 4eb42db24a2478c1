// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vhcactl_bind.c: for the addresses of which network devices a function answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vhcactl.h"

#define BIND_FILE	"/sys/class/misc/rdma_cm/bind"

static int bind_open(int flags)
{
	int fd = open(BIND_FILE, flags | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fprintf(stderr, "vhcactl: %s: not there; is vhca_cm loaded?\n", BIND_FILE);
	else if (fd < 0)
		complain(BIND_FILE, errno);
	return fd;
}

static int complain_bind(const char *device, const char *netdev, int err)
{
	switch (err) {
	case EEXIST:
		fprintf(stderr, "vhcactl: %s is bound to %s already\n", device, netdev);
		break;
	case ENOENT:
		fprintf(stderr, "vhcactl: %s is not bound to %s\n", device, netdev);
		break;
	case ENODEV:
		fprintf(stderr, "vhcactl: there is no %s or no %s\n", device, netdev);
		break;
	default:
		complain(BIND_FILE, err);
	}
	return 1;
}

/**
 * bind_change() - a function is to answer for a network device's addresses, or not to
 * @device: the function
 * @netdev: the network device
 * @bound: it is to
 *
 * Return: status of the program.
 */
int bind_change(const char *device, const char *netdev, bool bound)
{
	char text[64];
	int fd, len, err;
	ssize_t done;

	len = snprintf(text, sizeof(text), "%s %c%s", device, bound ? '+' : '-', netdev);
	if (len >= (int)sizeof(text))
		return complain_bind(device, netdev, ENODEV);
	fd = bind_open(O_WRONLY);
	if (fd < 0)
		return 1;
	done = write(fd, text, (size_t)len);
	err = errno;
	close(fd);
	return done == len ? 0 : complain_bind(device, netdev, err);
}

/* Each line "vhcaN NETDEV". */
static void parse_bindings(struct records *records, char *text)
{
	char *save, *line, device[32], netdev[32];
	struct record *record;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%31s %31s", device, netdev) != 2)
			continue;
		record = records_add(records);
		record_add(record, "device", device, true);
		record_add(record, "netdev", netdev, true);
	}
}

/**
 * bind_list() - which functions answer for which network devices
 * @json: for programs
 *
 * Return: status of the program.
 */
int bind_list(bool json)
{
	struct records records = {};
	char *text;
	int fd;

	fd = bind_open(O_RDONLY);
	if (fd < 0)
		return 1;
	text = read_fd(fd);
	close(fd);
	if (!text)
		return complain(BIND_FILE, errno);
	parse_bindings(&records, text);
	if (json)
		print_json(&records);
	else
		print_table(&records, 0, records.nr);
	records_free(&records);
	free(text);
	return 0;
}
