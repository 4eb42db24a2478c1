/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * acks.h: how many events of an object the application has acknowledged.
 * Destroying the object waits until they are as many as were handed out.
 */
#ifndef VHCA_ACKS_H
#define VHCA_ACKS_H

#include <stdint.h>

/**
 * struct vhca_acks - count of acknowledged events
 * @word: bit 63: somebody waits. Below: the count.
 *
 * Flag and count share a word, so that whoever acknowledges learns from the
 * very store that may complete the count whether there is somebody to wake. It
 * must not look at the object again: that may be freed.
 */
struct vhca_acks {
	uint64_t word;
};

void vhca_acks_add(struct vhca_acks *acks, unsigned int count);
void vhca_acks_wait(struct vhca_acks *acks, uint32_t reported);

#endif
