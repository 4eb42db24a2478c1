// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * uar.c: UAR pages with their pages of doorbell records, and the slots in them.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vhca_verbs.h"

/**
 * struct vhca_uar - a UAR page and its page of records
 * @next: in the context's list.
 * @page: mapped UAR page.
 * @dbr: mapped page of records.
 * @number: the kernel's.
 * @owner: the process that has it mapped; a child does not inherit that.
 * @used: a bit a slot; the head counts as used.
 */
struct vhca_uar {
	struct vhca_uar *next;
	char *page;
	char *dbr;
	uint32_t number;
	pid_t owner;
	uint64_t used;
};

static void *map_page(struct ibv_context *ctx, uint64_t offset)
{
	return mmap(NULL, VHCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ctx->cmd_fd, (off_t)offset);
}

static int uar_map(struct ibv_context *ctx, struct vhca_uar *uar,
		   const struct vhca_alloc_uar *cmd)
{
	int err;

	uar->page = map_page(ctx, cmd->uar_offset);
	if (uar->page == MAP_FAILED)
		return errno;
	uar->dbr = map_page(ctx, cmd->dbr_offset);
	if (uar->dbr == MAP_FAILED) {
		err = errno;
		munmap(uar->page, VHCA_UAR_PAGE_SIZE);
		return err;
	}
	return 0;
}

static void uar_free_in_kernel(struct ibv_context *ctx, uint32_t number)
{
	struct vhca_object cmd = { .number = number };

	vhca_ioctl(ctx, VHCA_IOC_FREE_UAR, &cmd);
}

static int uar_add(struct vhca_context *ctx)
{
	struct ibv_context *ibv = &ctx->vctx.context;
	struct vhca_alloc_uar cmd = { 0 };
	struct vhca_uar *uar;
	int err;

	uar = calloc(1, sizeof(*uar));
	if (!uar)
		return ENOMEM;
	err = vhca_ioctl(ibv, VHCA_IOC_ALLOC_UAR, &cmd);
	if (err)
		goto err_free;
	err = uar_map(ibv, uar, &cmd);
	if (err)
		goto err_uar;
	uar->number = cmd.uar;
	uar->owner = getpid();
	uar->used = (1ull << VHCA_UAR_FIRST_SLOT) - 1;
	uar->next = ctx->uars;
	ctx->uars = uar;
	return 0;

err_uar:
	uar_free_in_kernel(ibv, cmd.uar);
err_free:
	free(uar);
	return err;
}

static void slot_take(struct vhca_uar *uar, struct vhca_slot *slot)
{
	uint32_t index = (uint32_t)__builtin_ctzll(~uar->used);
	struct vhca_uar_head *head = (void *)uar->page;

	uar->used |= 1ull << index;
	slot->uar = uar;
	slot->index = index;
	slot->doorbell = (void *)(uar->page + index * VHCA_UAR_SLOT_SIZE);
	slot->kick_needed = &head->kick_needed;
	slot->record = uar->dbr + index * VHCA_UAR_SLOT_SIZE;
	slot->kick_arg = VHCA_KICK_ARG(uar->number, index);
	/* What the last owner left would look like this one's. */
	memset(slot->record, 0, VHCA_UAR_SLOT_SIZE);
	vhca_barrier_doorbell();
	vhca_slot_ring(slot, 0);
}

/**
 * vhca_slot_alloc - take a slot, and a further UAR when all are full
 * @ctx: context
 * @slot: filled
 *
 * Return: 0 or an errno value.
 */
int vhca_slot_alloc(struct vhca_context *ctx, struct vhca_slot *slot)
{
	return vhca_slot_alloc_two(ctx, slot, NULL);
}

/**
 * vhca_slot_alloc_two - take two slots of one UAR
 * @ctx: context
 * @slot: filled
 * @second: filled; NULL: one is enough
 *
 * Return: 0 or an errno value.
 */
int vhca_slot_alloc_two(struct vhca_context *ctx, struct vhca_slot *slot,
			struct vhca_slot *second)
{
	int wanted = second ? 2 : 1;
	struct vhca_uar *uar;
	int err = 0;

	pthread_mutex_lock(&ctx->uar_lock);
	for (uar = ctx->uars; uar; uar = uar->next)
		if (__builtin_popcountll(~uar->used) >= wanted)
			break;
	if (!uar) {
		err = uar_add(ctx);
		uar = ctx->uars;
	}
	if (!err) {
		slot_take(uar, slot);
		if (second)
			slot_take(uar, second);
	}
	pthread_mutex_unlock(&ctx->uar_lock);
	return err;
}

/* A UAR stays with its context: the next QP will want it again. */
void vhca_slot_free(struct vhca_context *ctx, struct vhca_slot *slot)
{
	pthread_mutex_lock(&ctx->uar_lock);
	slot->uar->used &= ~(1ull << slot->index);
	pthread_mutex_unlock(&ctx->uar_lock);
}

uint32_t vhca_slot_uar(const struct vhca_slot *slot)
{
	return slot->uar->number;
}

static void uar_unmap(struct vhca_context *ctx, const struct vhca_uar *uar)
{
	munmap(uar->page, VHCA_UAR_PAGE_SIZE);
	munmap(uar->dbr, VHCA_UAR_PAGE_SIZE);
	uar_free_in_kernel(&ctx->vctx.context, uar->number);
}

/*
 * The file may be another process's, too, and live on. A child that closes what it has
 * got of its parent leaves the UARs to that one.
 */
void vhca_uar_free_all(struct vhca_context *ctx)
{
	struct vhca_uar *uar = ctx->uars;

	while (uar) {
		struct vhca_uar *next = uar->next;

		if (uar->owner == getpid())
			uar_unmap(ctx, uar);
		free(uar);
		uar = next;
	}
	ctx->uars = NULL;
}
