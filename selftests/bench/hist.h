/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hist.h: a histogram of times, good to 1.6 % over all of 64 bits, in which adding
 * costs the same for every value.
 */
#ifndef HIST_H
#define HIST_H

#include "util.h"

#define HIST_BITS	6			/* of a value that are kept */
#define HIST_SUB	(1u << HIST_BITS)

struct hist {
	uint64_t count;
	uint64_t sum;
	uint64_t max;
	uint64_t bin[(64 - HIST_BITS + 1) * HIST_SUB];
};

static inline unsigned int hist_bin(uint64_t v)
{
	int shift = v < HIST_SUB ? 0 : 63 - __builtin_clzll(v) - HIST_BITS + 1;

	/* The bits kept of a shifted value begin with 1: half of each row is empty. */
	return (unsigned int)shift * HIST_SUB + (unsigned int)(v >> shift);
}

/* The middle of a bin. */
static inline double hist_value(unsigned int bin)
{
	unsigned int shift = bin / HIST_SUB;
	uint64_t low = (uint64_t)(bin % HIST_SUB) << shift;

	return (double)low + (double)((1ull << shift) - 1) / 2;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
	h->bin[hist_bin(v)]++;
	h->count++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
}

/* That which @share of all are at most. */
static inline double hist_quantile(const struct hist *h, double share)
{
	uint64_t rank = (uint64_t)(share * (double)h->count), seen = 0;
	unsigned int i;

	for (i = 0; i < sizeof(h->bin) / sizeof(h->bin[0]); i++) {
		seen += h->bin[i];
		if (seen > rank)
			return hist_value(i);
	}
	return (double)h->max;
}

static inline void hist_report(const struct hist *h)
{
	report("count", (double)h->count);
	report("mean_us", h->count ? (double)h->sum / (double)h->count / 1000 : 0);
	report("p50_us", hist_quantile(h, 0.50) / 1000);
	report("p90_us", hist_quantile(h, 0.90) / 1000);
	report("p99_us", hist_quantile(h, 0.99) / 1000);
	report("p99.9_us", hist_quantile(h, 0.999) / 1000);
	report("p99.99_us", hist_quantile(h, 0.9999) / 1000);
	report("max_us", (double)h->max / 1000);
}

/* Lines of microseconds and count. */
static inline void hist_dump(const struct hist *h, const char *path)
{
	unsigned int i;
	FILE *f;

	if (!path)
		return;
	f = fopen(path, "we");
	if (!f)
		die("%s", path);
	for (i = 0; i < sizeof(h->bin) / sizeof(h->bin[0]); i++)
		if (h->bin[i])
			fprintf(f, "%g %llu\n", hist_value(i) / 1000,
				(unsigned long long)h->bin[i]);
	fclose(f);
}

#endif
