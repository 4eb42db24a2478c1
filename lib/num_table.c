// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * num_table.c: find a QP or an SRQ by its number. Changed with the context's
 * num_lock held.
 */
#include <stdlib.h>

#include "vhca_verbs.h"

/* Leaves are never freed while the context is open: pollers read them unlocked. */
int vhca_num_add(struct vhca_num_table *table, uint32_t number, void *object)
{
	uint32_t top = (number & VHCA_QPN_MASK) >> VHCA_NUM_TABLE_SHIFT;
	void **leaf = table->leaves[top];

	if (!leaf) {
		leaf = calloc(VHCA_NUM_TABLE_SIZE, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		__atomic_store_n(&table->leaves[top], leaf, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&leaf[number & (VHCA_NUM_TABLE_SIZE - 1)], object, __ATOMIC_RELEASE);
	return 0;
}

/**
 * vhca_num_del - take an object out of its table
 * @table: table
 * @number: of an object that is in there, and that the kernel has destroyed
 *
 * The CQs that may have CQEs of it were cleaned under their locks before, so that no
 * poller can find its number in a CQE any more, or hold a pointer to it.
 */
void vhca_num_del(struct vhca_num_table *table, uint32_t number)
{
	void **leaf = table->leaves[(number & VHCA_QPN_MASK) >> VHCA_NUM_TABLE_SHIFT];

	__atomic_store_n(&leaf[number & (VHCA_NUM_TABLE_SIZE - 1)], NULL, __ATOMIC_RELEASE);
}

void vhca_num_free(struct vhca_num_table *table)
{
	size_t i;

	for (i = 0; i < VHCA_NUM_TABLE_SIZE; i++)
		free(table->leaves[i]);
}
