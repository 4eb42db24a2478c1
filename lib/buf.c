// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * buf.c: the memory of queues: the kernel's, mapped, or that of a parent domain's
 * allocator or of the process, which the kernel is told of with the queue.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "vhca_verbs.h"

static int ask_allocator(struct vhca_buf *buf, size_t size, uint64_t type)
{
	struct vhca_pd *pd = buf->domain;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *addr;

	size = (size + page - 1) & ~(page - 1);
	addr = pd->alloc(&pd->ibv, pd->pd_context, size, page, type);
	if (addr == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if (!addr)
		return ENOMEM;
	buf->addr = addr;
	buf->size = size;
	buf->type = type;
	return 0;
}

/**
 * vhca_buf_ask - ask for a queue's memory before the kernel is
 * @buf: zeroed. Its address, zero where the kernel is to give the memory, goes into
 *	buf_addr of the call that creates the queue.
 * @pd: what the queue is made with, or NULL
 * @size: bytes; zero: there is no queue
 * @type: VHCA_RESOURCE_*
 *
 * The domain cannot go before vhca_buf_release().
 *
 * Return: 0, or an errno value, with nothing to release.
 */
int vhca_buf_ask(struct vhca_buf *buf, struct ibv_pd *pd, size_t size, uint64_t type)
{
	int err;

	if (!pd || !to_vpd(pd)->protection)
		return 0;
	buf->domain = to_vpd(pd);
	if (size && buf->domain->alloc) {
		err = ask_allocator(buf, size, type);
		if (err)
			return err;
	}
	__atomic_fetch_add(&buf->domain->users, 1, __ATOMIC_RELAXED);
	return 0;
}

/**
 * vhca_buf_own - memory of the process for a queue, unless an allocator gave it
 * @buf: from vhca_buf_ask(). The kernel is told its address, as with an allocator, and
 *	charges it to RLIMIT_MEMLOCK.
 * @size: bytes
 *
 * Return: 0 or an errno value.
 */
int vhca_buf_own(struct vhca_buf *buf, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *addr;

	if (buf->type)
		return 0;
	size = (size + page - 1) & ~(page - 1);
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return errno;
	buf->addr = addr;
	buf->size = size;
	/* Like a mapping of the kernel's; else a child's first write would part them. */
	return madvise(addr, size, MADV_DONTFORK) ? errno : 0;
}

/**
 * vhca_buf_map - map a queue's memory, unless an allocator gave it
 * @buf: from vhca_buf_ask()
 * @context: the context
 * @offset: the kernel's
 * @size: the kernel's; zero: there is no queue
 *
 * Return: 0 or an errno value.
 */
int vhca_buf_map(struct vhca_buf *buf, struct ibv_context *context, uint64_t offset,
		 uint64_t size)
{
	void *addr;

	if (buf->type || !size)
		return 0;
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, context->cmd_fd,
		    (off_t)offset);
	if (addr == MAP_FAILED)
		return errno;
	buf->addr = addr;
	buf->size = size;
	return 0;
}

/**
 * vhca_buf_release - give a queue's memory back
 * @buf: from vhca_buf_ask(), whatever came behind it; the device has let go of it
 */
void vhca_buf_release(struct vhca_buf *buf)
{
	struct vhca_pd *pd = buf->domain;

	if (buf->type)
		pd->free(&pd->ibv, pd->pd_context, buf->addr, buf->type);
	else if (buf->addr)
		munmap(buf->addr, buf->size);
	if (pd)
		__atomic_fetch_sub(&pd->users, 1, __ATOMIC_RELEASE);
	*buf = (struct vhca_buf) { 0 };
}
