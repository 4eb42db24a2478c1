/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * endings.h: how a function, a process or an object ends, and what is left of it:
 * sysfs of the function, counts of objects, pages that are pinned.
 */
#ifndef ENDINGS_H
#define ENDINGS_H

#include <signal.h>

#include "raw.h"

/* Numbers to choose moments by; the seed is printed so that a run can be repeated. */

static uint64_t end_state;

static inline uint64_t end_seed(void)
{
	const char *given = getenv("SEED");

	end_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 2654435761u;
	end_state |= 1;
	return end_state;
}

static inline unsigned int end_below(unsigned int n)
{
	end_state ^= end_state << 13;
	end_state ^= end_state >> 7;
	end_state ^= end_state << 17;
	return (end_state >> 16) % n;
}

/* How often a test does it: a number in the environment, or its own. */
static inline int end_rounds(const char *name, int dflt)
{
	const char *given = getenv(name);

	return given ? atoi(given) : dflt;
}

/* Files */

static inline int end_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/* All of a small file as a string; empty when there is none. */
static inline void end_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, all = 0;

	while (fd >= 0 && all < (ssize_t)size - 1 &&
	       (n = read(fd, buf + all, size - 1 - all)) > 0)
		all += n;
	buf[all] = 0;
	if (fd >= 0)
		close(fd);
}

/* The function */

/* The PCI address of a function that is bound. */
static inline void end_bdf(int fn, char *name, size_t size)
{
	char path[64], link[256] = "";

	snprintf(path, sizeof(path), "/sys/class/vhca/vhca%d/device", fn);
	if (readlink(path, link, sizeof(link) - 1) < 0 || !strrchr(link, '/'))
		*name = 0;
	else
		snprintf(name, size, "%.15s", strrchr(link, '/') + 1);
}

/* "unbind" or "bind". */
static inline int end_driver(const char *what, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/vhca/%s", what);
	return end_write(path, name);
}

/* "remove" or "reset". */
static inline int end_pci(const char *what, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", name, what);
	return end_write(path, "1");
}

/* References to the driver; -1 when it is not loaded. */
static inline int end_refs(void)
{
	char text[16];

	end_read("/sys/module/vhca/refcnt", text, sizeof(text));
	return *text ? atoi(text) : -1;
}

/* What is left */

struct end_objects {
	char	device[256];
	char	driver[256];
};

/* What the device and the driver have, of all processes. */
static inline struct end_objects end_objects(int fn)
{
	struct end_objects o;
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/objects", fn);
	end_read(path, o.device, sizeof(o.device));
	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca/vhca%d/objects", fn);
	end_read(path, o.driver, sizeof(o.driver));
	return o;
}

static inline bool end_same(const struct end_objects *a, const struct end_objects *b)
{
	return *a->device && *a->driver && !strcmp(a->device, b->device) &&
	       !strcmp(a->driver, b->driver);
}

/* Do the counts get back to what they were? What is closed last may take its time. */
static inline bool end_left_nothing(int fn, const struct end_objects *before)
{
	struct end_objects now;
	bool same = RAW_WAIT((now = end_objects(fn), end_same(before, &now)));

	if (!same)
		printf("# before:\n%s%s# now:\n%s%s", before->device, before->driver,
		       now.device, now.driver);
	return same;
}

/* Pages that the whole machine has pinned for DMA and not unpinned; -1: not counted. */
static inline long long end_pages_pinned(void)
{
	long long got, gone;
	char none[8];

	/* Each CPU keeps what it counted to itself for a while. */
	end_read("/proc/sys/vm/stat_refresh", none, sizeof(none));
	got = raw_counter("/proc/vmstat", "nr_foll_pin_acquired");
	gone = raw_counter("/proc/vmstat", "nr_foll_pin_released");
	return got < 0 || gone < 0 ? -1 : got - gone;
}

/* Processes */

/* As raw_wait_child(); one that does not end in time is shown, killed, and is -2. */
static inline int end_reap(pid_t pid, int ms)
{
	long long end = raw_ms() + ms;
	char path[64], stack[2048];
	int status;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG)) && raw_ms() < end)
		usleep(1000);
	if (got == pid)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	end_read(path, stack, sizeof(stack));
	printf("# process %d hangs in\n%s", pid, stack);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -2;
}

/* Traffic */

/* A message to rcq with contents of its own, both completions taken and checked. */
static inline int end_message(struct raw_bed *bed, uint8_t seed)
{
	const uint32_t len = 512;
	struct raw_wc wc;
	int err;

	memset(bed->mr.addr, seed, len);
	memset(bed->mr.addr + bed->mr.len / 2, ~seed, len);
	err = raw_message(&bed->p, &bed->mr, VHCA_WQE_SIGNALED, len);
	if (!err)
		err = raw_wait_wc(&bed->rcq, &wc);
	if (err || wc.status || wc.byte_len != len)
		return err ? err : -EPROTO;
	err = raw_wait_wc(&bed->scq, &wc);
	if (err || wc.status)
		return err ? err : -EPROTO;
	return memcmp(bed->mr.addr, bed->mr.addr + bed->mr.len / 2, len) ? -EILSEQ : 0;
}

/* A mapping keeps the file as much as a descriptor does. */
static inline void end_bed_close(struct raw_bed *bed)
{
	struct raw_cq *cq[] = { &bed->scq, &bed->rcq, &bed->mark_cq };
	struct raw_qp *qp[] = { &bed->p.a, &bed->p.b, &bed->mark.a, &bed->mark.b };
	int i;

	for (i = 0; i < 3; i++)
		munmap(cq[i]->ring, cq[i]->made.buf_size);
	for (i = 0; i < 4; i++)
		munmap(qp[i]->buf, qp[i]->made.buf_size);
	munmap(bed->mr.addr, bed->mr.len);
	close(bed->channel);
	raw_close(&bed->ctx);
}

/* Does a function carry messages and events? For a child: it leaves all open. */
static inline int end_works(int fn)
{
	struct raw_bed bed;
	int i, err = raw_bed(&bed, fn);

	for (i = 0; !err && i < 10; i++) {
		err = raw_arm(&bed.rcq, false);
		if (!err)
			err = end_message(&bed, i + 1);
		if (!err)
			err = raw_cq_event(&bed.rcq);
	}
	return -err;
}

#endif
