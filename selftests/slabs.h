/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slabs.h: the memory that the kernel has in use, and whether it has grown with work
 * that should have given all back.
 */
#ifndef SLABS_H
#define SLABS_H

#include <dirent.h>

#include "endings.h"

/*
 * Caches of small objects: their names and how many objects each has. A leak of one
 * object a cycle shows in the cache that it is from, where half of that is allowed
 * for what goes on elsewhere. Partly used slabs that a CPU keeps count as full: they
 * are given back first.
 */
#define CACHES	512

struct caches {
	int n;
	struct cache {
		char name[64];
		long long objects;
		long long size;
	} cache[CACHES];
};

static inline void give_back(void)
{
	DIR *dir = opendir("/sys/kernel/slab");
	struct dirent *d;
	char path[512];

	end_write("/proc/sys/vm/drop_caches", "3");
	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", d->d_name);
		end_write(path, "1");
	}
	if (dir)
		closedir(dir);
}

static inline void caches_read(struct caches *c)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	struct cache *k = c->cache;
	char line[512];

	c->n = 0;
	while (f && c->n < CACHES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lld %*d %lld", k->name, &k->objects, &k->size) == 3) {
			k++;
			c->n++;
		}
	}
	if (f)
		fclose(f);
}

/*
 * The kernel keeps the descriptions of what it has mapped for itself and unmapped again
 * for later, thousands of them, kmemleak its own of each, and debug objects a pool whose
 * size goes up and down: their caches say nothing.
 */
static inline bool is_lazy(const char *cache)
{
	static const char * const lazy[] = {
		"vmap_area", "kmemleak_object", "kmemleak_scan_area", "debug_objects_cache",
	};
	unsigned int i;

	for (i = 0; i < sizeof(lazy) / sizeof(lazy[0]); i++)
		if (!strcmp(cache, lazy[i]))
			return true;
	return false;
}

/* What the kernel has mapped for itself and not unmapped. */
static inline long long kernel_mappings(void)
{
	FILE *f = fopen("/proc/vmallocinfo", "r");
	char line[512];
	long long n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !strstr(line, "unpurged");
	if (f)
		fclose(f);
	return n;
}

/* The cache that has grown most, of those that had as many before; NULL: none has. */
static inline const struct cache *grown(const struct caches *before,
					const struct caches *now, long long *by)
{
	const struct cache *worst = NULL;
	int i, j;

	*by = 0;
	for (i = 0; i < now->n; i++) {
		for (j = 0; j < before->n; j++)
			if (!strcmp(before->cache[j].name, now->cache[i].name))
				break;
		if (j == before->n || is_lazy(now->cache[i].name))
			continue;
		if (now->cache[i].objects - before->cache[j].objects > *by) {
			*by = now->cache[i].objects - before->cache[j].objects;
			worst = &now->cache[i];
		}
	}
	return worst;
}

/*
 * Memory that is not in caches of objects, in KiB, and how much it may grow however
 * many cycles there were: less than a page a cycle even of the short run.
 */
static const struct {
	const char *key;
	long long allowed;
} amounts[] = {
	{ "VmallocUsed", 390 }, { "PageTables", 390 }, { "KernelStack", 390 },
	{ "Percpu", 390 }, { "SUnreclaim", 780 },
};

#define AMOUNTS	(sizeof(amounts) / sizeof(amounts[0]))

static inline long long amount_of(const char *key)
{
	char line[128];
	size_t len = strlen(key);
	long long kib = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ':')
			kib = atoll(line + len + 1);
	if (f)
		fclose(f);
	return kib;
}

struct memory {
	long long pages_pinned;
	long long mappings;
	long long amount[AMOUNTS];
	struct caches caches;
};

static inline void memory_read(struct memory *m)
{
	unsigned int i;

	give_back();
	m->pages_pinned = end_pages_pinned();
	m->mappings = kernel_mappings();
	for (i = 0; i < AMOUNTS; i++)
		m->amount[i] = amount_of(amounts[i].key);
	caches_read(&m->caches);
}

/* What has grown over @cycles of work, said once; NULL when nothing has. */
static inline const char *more(const struct memory *before, const struct memory *now,
			       int cycles)
{
	static char text[160];
	const struct cache *cache;
	unsigned int i;
	long long by;

	if (now->pages_pinned != before->pages_pinned) {
		snprintf(text, sizeof(text), "pages pinned: %lld, now %lld",
			 before->pages_pinned, now->pages_pinned);
		return text;
	}
	if (now->mappings - before->mappings >= cycles / 2) {
		snprintf(text, sizeof(text), "mappings of the kernel: %lld, now %lld",
			 before->mappings, now->mappings);
		return text;
	}
	for (i = 0; i < AMOUNTS; i++) {
		by = now->amount[i] - before->amount[i];
		if (by <= amounts[i].allowed)
			continue;
		snprintf(text, sizeof(text), "%s has grown by %lld KiB", amounts[i].key, by);
		return text;
	}
	cache = grown(&before->caches, &now->caches, &by);
	if (!cache || by < cycles / 2)
		return NULL;
	snprintf(text, sizeof(text), "%s has grown by %lld objects", cache->name, by);
	return text;
}

#endif
