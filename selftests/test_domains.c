// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_domains.c: thread domains, parent domains, and the queues whose memory comes
 * from a parent domain's allocator.
 */
#define _GNU_SOURCE
#include "ops.h"
#include "rc.h"

/* As lib/vhca_resource.h has them for applications. */
#define RESOURCE_BASE	0x12345643ull
#define RESOURCE_QP	(RESOURCE_BASE << 32 | 1)
#define RESOURCE_CQ	(RESOURCE_BASE << 32 | 2)
#define RESOURCE_SRQ	(RESOURCE_BASE << 32 | 3)

#define MAX_PIECES	64

/**
 * struct arena - an allocator, and what it was asked for
 * @mode: what it answers.
 * @domain: that it is to be called with.
 * @live: pieces that are out.
 * @calls: how often it was asked.
 * @faults: calls that were not as they should be.
 */
struct arena {
	enum { GIVE, DEFAULT, REFUSE, CROOKED } mode;
	struct ibv_pd *domain;
	struct {
		void *addr;
		size_t size;
		uint64_t type;
	} live[MAX_PIECES];
	int nr_live;
	int calls;
	int faults;
};

static void *arena_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			 uint64_t type)
{
	struct arena *arena = context;
	size_t page = sysconf(_SC_PAGESIZE);
	void *addr;

	arena->calls++;
	if (pd != arena->domain || !size || size % page || alignment != page ||
	    type >> 32 != RESOURCE_BASE)
		arena->faults++;
	if (arena->mode == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (arena->mode == REFUSE || arena->nr_live == MAX_PIECES)
		return NULL;
	addr = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	if (arena->mode == CROOKED)
		addr = (char *)addr + 64;
	arena->live[arena->nr_live].addr = addr;
	arena->live[arena->nr_live].size = size;
	arena->live[arena->nr_live++].type = type;
	return addr;
}

static void arena_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	struct arena *arena = context;
	size_t page = sysconf(_SC_PAGESIZE);
	int i;

	for (i = 0; i < arena->nr_live && arena->live[i].addr != ptr; i++)
		;
	if (pd != arena->domain || i == arena->nr_live || arena->live[i].type != type) {
		arena->faults++;
		return;
	}
	munmap((void *)((uintptr_t)ptr & ~(page - 1)), arena->live[i].size + page);
	arena->live[i] = arena->live[--arena->nr_live];
}

static int live_of(const struct arena *arena, uint64_t type)
{
	int i, n = 0;

	for (i = 0; i < arena->nr_live; i++)
		n += arena->live[i].type == type;
	return n;
}

FIXTURE(domain)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_td *td;
};

FIXTURE_SETUP(domain)
{
	struct ibv_td_init_attr attr = {};

	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
	self->td = ibv_alloc_td(self->ctx, &attr);
	ASSERT_NE(NULL, self->td);
}

FIXTURE_TEARDOWN(domain)
{
	EXPECT_EQ(0, ibv_dealloc_td(self->td));
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

static struct ibv_pd *parent(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_td *td,
			     struct arena *arena)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *domain;

	if (arena) {
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = arena_alloc;
		attr.free = arena_free;
		attr.pd_context = arena;
	}
	domain = ibv_alloc_parent_domain(ctx, &attr);
	if (arena)
		arena->domain = domain;
	return domain;
}

static struct ibv_cq *cq_in(struct ibv_context *ctx, struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

/*
 * Domains
 */
TEST_F(domain, a_parent_domain_keeps_what_it_is_made_of)
{
	struct ibv_pd *domain = parent(self->ctx, self->pd, self->td, NULL);

	ASSERT_NE(NULL, domain);
	EXPECT_NE(self->pd, domain);
	EXPECT_EQ(self->ctx, domain->context);
	EXPECT_EQ(self->pd->handle, domain->handle);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(EBUSY, ibv_dealloc_td(self->td));
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

TEST_F(domain, several_parent_domains_of_the_same)
{
	struct ibv_pd *domain[3];
	int i;

	for (i = 0; i < 3; i++) {
		domain[i] = parent(self->ctx, self->pd, i ? self->td : NULL, NULL);
		ASSERT_NE(NULL, domain[i]);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
		EXPECT_EQ(0, ibv_dealloc_pd(domain[i]));
	}
}

TEST_F(domain, attributes_that_make_no_domain_are_einval)
{
	struct ibv_context *other = open_vhca(_metadata, 0);
	struct ibv_td_init_attr bad_td = { .comp_mask = 1 }, td_attr = {};
	struct ibv_td *other_td = ibv_alloc_td(other, &td_attr);
	struct ibv_pd *other_pd = ibv_alloc_pd(other);
	struct ibv_pd *domain = parent(self->ctx, self->pd, NULL, NULL);
	struct ibv_parent_domain_init_attr bad[] = {
		{ .pd = NULL },
		{ .pd = other_pd },
		{ .pd = domain },
		{ .pd = self->pd, .td = other_td },
		{ .pd = self->pd, .comp_mask = 1 << 2 },
		{ .pd = self->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		  .alloc = arena_alloc },
		{ .pd = self->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		  .free = arena_free },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_alloc_parent_domain(self->ctx, &bad[i])) {
			TH_LOG("case %u", i);
		}
		EXPECT_EQ(EINVAL, errno);
	}
	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_td(self->ctx, &bad_td));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
	EXPECT_EQ(0, ibv_dealloc_pd(other_pd));
	EXPECT_EQ(0, ibv_dealloc_td(other_td));
	EXPECT_EQ(0, ibv_close_device(other));
}

TEST_F(domain, queues_keep_their_parent_domain)
{
	struct ibv_pd *domain = parent(self->ctx, self->pd, self->td, NULL);
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_cq *cq = cq_in(self->ctx, domain);
	struct ibv_qp *qp;

	ASSERT_NE(NULL, cq);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(domain));
	qp = make_qp(domain, cq, cq, &opts, NULL);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(domain, qp->pd);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(domain));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(domain));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

TEST_F(domain, a_cq_is_made_with_a_parent_domain_or_none)
{
	errno = 0;
	EXPECT_EQ(NULL, cq_in(self->ctx, NULL));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, cq_in(self->ctx, self->pd));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(domain, regions_and_windows_of_a_parent_domain_are_its_pds)
{
	struct ibv_pd *domain = parent(self->ctx, self->pd, NULL, NULL);
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(domain, p, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(domain, IBV_MW_TYPE_1);

	ASSERT_NE(NULL, mr);
	ASSERT_NE(NULL, mw);
	EXPECT_EQ(domain, mr->pd);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_mw(mw));
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
	munmap(p, 4096);
}

/*
 * Allocators
 */

/* Replace the queues of an end by some of a parent domain. */
static void end_move(struct __test_metadata *_metadata, struct end *e, struct ibv_pd *domain,
		     const struct pair_opts *opts)
{
	ASSERT_EQ(0, ibv_destroy_qp(e->qp));
	ASSERT_EQ(0, ibv_destroy_cq(e->scq));
	ASSERT_EQ(0, ibv_destroy_cq(e->rcq));
	e->scq = cq_in(e->ctx, domain);
	ASSERT_NE(NULL, e->scq);
	e->rcq = cq_in(e->ctx, domain);
	ASSERT_NE(NULL, e->rcq);
	e->qp = make_qp(domain, e->scq, e->rcq, opts, &e->cap);
	ASSERT_NE(NULL, e->qp);
}

static void end_clear(struct __test_metadata *_metadata, struct end *e)
{
	ASSERT_EQ(0, ibv_destroy_qp(e->qp));
	ASSERT_EQ(0, ibv_destroy_cq(e->scq));
	ASSERT_EQ(0, ibv_destroy_cq(e->rcq));
	e->qp = NULL;
	e->scq = NULL;
	e->rcq = NULL;
}

static void traffic(struct __test_metadata *_metadata, struct pair *p)
{
	int i;

	/* Some laps of every ring. */
	for (i = 0; i < 300; i++) {
		exchange(_metadata, &p->end[0], &p->end[1], 1 + i * 7, i);
		exchange(_metadata, &p->end[1], &p->end[0], 1 + i * 5, i + 1000);
	}
}

TEST_F(rc, queues_live_in_memory_of_the_application)
{
	struct arena arena[2] = {};
	struct ibv_pd *domain[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct end *e = &self->p.end[i];

		domain[i] = parent(e->ctx, e->pd, NULL, &arena[i]);
		ASSERT_NE(NULL, domain[i]);
		end_move(_metadata, e, domain[i], &self->p.opts);
		EXPECT_EQ(2, live_of(&arena[i], RESOURCE_CQ));
		EXPECT_EQ(1, live_of(&arena[i], RESOURCE_QP));
		EXPECT_EQ(3, arena[i].calls);
	}
	pair_connect(_metadata, &self->p);
	traffic(_metadata, &self->p);
	pair_reconnect(_metadata, &self->p);
	exchange(_metadata, self->a, self->b, 1000, 5);
	for (i = 0; i < 2; i++) {
		end_clear(_metadata, &self->p.end[i]);
		EXPECT_EQ(0, arena[i].nr_live);
		EXPECT_EQ(0, arena[i].faults);
		EXPECT_EQ(0, ibv_dealloc_pd(domain[i]));
	}
}

TEST_F(rc, an_allocator_may_leave_it_to_the_default)
{
	struct arena arena = { .mode = DEFAULT };
	struct ibv_pd *domain = parent(self->a->ctx, self->a->pd, NULL, &arena);

	ASSERT_NE(NULL, domain);
	end_move(_metadata, self->a, domain, &self->p.opts);
	EXPECT_EQ(3, arena.calls);
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	pair_connect(_metadata, &self->p);
	exchange(_metadata, self->a, self->b, 1000, 5);
	end_clear(_metadata, self->a);
	EXPECT_EQ(0, arena.faults);
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

TEST_F(rc, without_memory_there_is_no_queue)
{
	struct arena arena = { .mode = REFUSE };
	struct ibv_pd *domain = parent(self->a->ctx, self->a->pd, NULL, &arena);

	ASSERT_NE(NULL, domain);
	errno = 0;
	EXPECT_EQ(NULL, cq_in(self->a->ctx, domain));
	EXPECT_EQ(ENOMEM, errno);
	errno = 0;
	EXPECT_EQ(NULL, make_qp(domain, self->a->scq, self->a->rcq, &self->p.opts, NULL));
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_EQ(2, arena.calls);
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

TEST_F(rc, memory_that_the_kernel_refuses_is_given_back)
{
	struct arena arena = { .mode = CROOKED };
	struct ibv_pd *domain = parent(self->a->ctx, self->a->pd, NULL, &arena);

	ASSERT_NE(NULL, domain);
	errno = 0;
	EXPECT_EQ(NULL, cq_in(self->a->ctx, domain));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, make_qp(domain, self->a->scq, self->a->rcq, &self->p.opts, NULL));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(2, arena.calls);
	EXPECT_EQ(0, arena.nr_live);
	EXPECT_EQ(0, arena.faults);
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

TEST_F(rc, an_srq_lives_in_memory_of_the_application)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 } };
	struct arena arena = {};
	struct ibv_pd *domain = parent(self->b->ctx, self->b->pd, NULL, &arena);
	struct pair_opts opts = self->p.opts;

	ASSERT_NE(NULL, domain);
	self->b->srq = ibv_create_srq(domain, &init);
	ASSERT_NE(NULL, self->b->srq);
	EXPECT_EQ(1, live_of(&arena, RESOURCE_SRQ));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(domain));
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	end_make_qp(_metadata, self->b, &opts, 1);
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RESET));
	pair_connect(_metadata, &self->p);
	exchange(_metadata, self->a, self->b, 1000, 5);
	exchange(_metadata, self->a, self->b, 1000, 6);
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	ASSERT_EQ(0, ibv_destroy_srq(self->b->srq));
	self->b->qp = NULL;
	self->b->srq = NULL;
	EXPECT_EQ(0, arena.nr_live);
	EXPECT_EQ(0, arena.faults);
	EXPECT_EQ(0, ibv_dealloc_pd(domain));
}

/*
 * Threads
 */
TEST_F(rc, queues_of_a_thread_domain_carry_traffic)
{
	struct ibv_td_init_attr attr = {};
	struct ibv_pd *domain[2];
	struct ibv_td *td[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct end *e = &self->p.end[i];

		td[i] = ibv_alloc_td(e->ctx, &attr);
		ASSERT_NE(NULL, td[i]);
		domain[i] = parent(e->ctx, e->pd, td[i], NULL);
		ASSERT_NE(NULL, domain[i]);
		end_move(_metadata, e, domain[i], &self->p.opts);
	}
	pair_connect(_metadata, &self->p);
	traffic(_metadata, &self->p);
	recover(_metadata, &self->p);
	for (i = 0; i < 2; i++) {
		end_clear(_metadata, &self->p.end[i]);
		EXPECT_EQ(0, ibv_dealloc_pd(domain[i]));
		EXPECT_EQ(0, ibv_dealloc_td(td[i]));
	}
}

/* With a lock, the second call of the one thread would wait for itself. */
static void poll_in_a_poll(struct __test_metadata *_metadata, struct pair *p, uint32_t flags)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};
	struct ibv_poll_cq_attr poll_attr = {};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(a->ctx, &attr);

	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, ibv_destroy_qp(a->qp));
	ASSERT_EQ(0, ibv_destroy_cq(a->scq));
	a->scq = ibv_cq_ex_to_cq(cq);
	a->qp = make_qp(a->pd, a->scq, a->rcq, &p->opts, NULL);
	ASSERT_NE(NULL, a->qp);
	ASSERT_EQ(0, qp_to(b->qp, IBV_QPS_RESET));
	pair_connect(_metadata, p);
	ASSERT_EQ(0, post_recv(b, 2, 0, 10));
	ASSERT_EQ(0, post_send(a, 1, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, b->rcq, 2, IBV_WC_SUCCESS);
	ASSERT_TRUE(wait_until(!ibv_start_poll(cq, &poll_attr)));
	EXPECT_TRUE(cq_empty(a->scq));
	EXPECT_EQ(1, cq->wr_id);
	ibv_end_poll(cq);
}

TEST_F(rc, a_single_threaded_cq_has_no_lock)
{
	poll_in_a_poll(_metadata, &self->p, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

/* A list that was begun holds the lock of the send queue, if there is one. */
TEST_F(rc, in_a_program_that_promises_one_thread_no_queue_has_a_lock)
{
	struct pair_opts opts = self->p.opts;
	struct ibv_qp_ex *qpx;

	setenv("VHCA_SINGLE_THREADED", "1", 1);
	opts.send_ops = IBV_QP_EX_WITH_SEND;
	reopen(_metadata, &self->p, opts);
	unsetenv("VHCA_SINGLE_THREADED");
	qpx = ibv_qp_to_qp_ex(self->a->qp);
	ibv_wr_start(qpx);
	ibv_wr_start(qpx);
	ibv_wr_abort(qpx);
	poll_in_a_poll(_metadata, &self->p, 0);
}

TEST_HARNESS_MAIN
