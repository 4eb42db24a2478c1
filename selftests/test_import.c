// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_import.c: a process uses the device, the PD, the regions and the device memory
 * of another one, which passed it the command descriptor.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/wait.h>

#include "ops.h"
#include "rc.h"

/**
 * struct note - what the processes tell each other
 * @addr: of the region, in the process that registered it.
 */
struct note {
	uint32_t pd;
	uint32_t mr;
	uint32_t rkey;
	uint32_t dm;
	uint32_t qpn;
	uint16_t lid;
	uint64_t addr;
	uint64_t length;
};

static bool note_send(int sock, const struct note *note, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { (void *)note, sizeof(*note) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, 0) == sizeof(*note);
}

static bool note_recv(int sock, struct note *note, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { note, sizeof(*note) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (!readable(sock, DEADLINE_NS / 1000000) || recvmsg(sock, &msg, 0) != sizeof(*note))
		return false;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (fd && (!cmsg || cmsg->cmsg_type != SCM_RIGHTS))
		return false;
	if (fd)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return true;
}

/* In the other process: the line of what does not hold is its exit status. */
#define CHECK(cond) do {			\
	if (!(cond))				\
		_exit(__LINE__ & 0xff ?: 1);	\
} while (0)

/**
 * struct guest - what the other process has
 * @note: as the owner of the device sent it.
 */
struct guest {
	struct note note;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void guest_import(struct guest *g, int sock)
{
	uint32_t word;
	int fd;

	CHECK(note_recv(sock, &g->note, &fd));
	g->ctx = ibv_import_device(fd);
	CHECK(g->ctx);
	CHECK(g->ctx->cmd_fd == fd);
	CHECK(!strcmp(ibv_get_device_name(g->ctx->device), "vhca0"));
	g->pd = ibv_import_pd(g->ctx, g->note.pd);
	CHECK(g->pd && g->pd->handle == g->note.pd);
	g->mr = ibv_import_mr(g->pd, g->note.mr);
	CHECK(g->mr && g->mr->rkey == g->note.rkey && g->mr->length == g->note.length);
	CHECK(!g->mr->addr);
	g->dm = ibv_import_dm(g->ctx, g->note.dm);
	CHECK(g->dm);
	CHECK(!ibv_memcpy_from_dm(&word, g->dm, 4, 4) && word == 0x12345678);
	word = 0x87654321;
	CHECK(!ibv_memcpy_to_dm(g->dm, 8, &word, 4));
}

/* A QP in the imported PD, connected to one of the owner of the device. */
static void guest_connect(struct guest *g, int sock)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct note note = { .lid = lid_of(g->ctx) }, peer;

	g->cq = ibv_create_cq(g->ctx, 100, NULL, NULL, 0);
	CHECK(g->cq);
	g->qp = make_qp(g->pd, g->cq, g->cq, &opts, NULL);
	CHECK(g->qp);
	note.qpn = g->qp->qp_num;
	CHECK(note_send(sock, &note, -1));
	CHECK(note_recv(sock, &peer, NULL));
	CHECK(!qp_to_init(g->qp, &opts));
	CHECK(!qp_to_rtr(g->qp, &opts, peer.lid, peer.qpn));
	CHECK(!qp_to_rts(g->qp, &opts));
	CHECK(note_send(sock, &note, -1));
}

static void guest_leave(struct guest *g)
{
	CHECK(!ibv_destroy_qp(g->qp));
	CHECK(!ibv_destroy_cq(g->cq));
	ibv_unimport_dm(g->dm);
	ibv_unimport_mr(g->mr);
	ibv_unimport_pd(g->pd);
	CHECK(!ibv_close_device(g->ctx));
	_exit(0);
}

/* Sends from memory that it cannot see itself. */
static void guest_sends(int sock)
{
	struct guest g = {};
	struct ibv_sge sge;
	struct ibv_wc wc;

	guest_import(&g, sock);
	guest_connect(&g, sock);
	sge = (struct ibv_sge) { g.note.addr, 5000, g.mr->lkey };
	CHECK(!post_send_sges(g.qp, 1, &sge, 1, IBV_SEND_SIGNALED));
	CHECK(poll_wc(g.cq, &wc) && wc.status == IBV_WC_SUCCESS && wc.wr_id == 1);
	guest_leave(&g);
}

/* Hears of its own QP, on its own descriptor. */
static void guest_hears(int sock)
{
	struct ibv_async_event event;
	struct guest g = {};

	guest_import(&g, sock);
	guest_connect(&g, sock);
	CHECK(readable(g.ctx->async_fd, DEADLINE_NS / 1000000));
	CHECK(!ibv_get_async_event(g.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == g.qp);
	ibv_ack_async_event(&event);
	guest_leave(&g);
}

static void guest_destroys(int sock)
{
	struct guest g = {};

	guest_import(&g, sock);
	CHECK(!ibv_dereg_mr(g.mr));
	CHECK(!ibv_free_dm(g.dm));
	ibv_unimport_pd(g.pd);
	CHECK(!ibv_close_device(g.ctx));
	_exit(0);
}

/*
 * The first end's device, PD and region are imported by another process, which is
 * started before they are; its QP is connected to that of the second end.
 */
struct owner {
	struct pair p;
	struct end *a;
	struct end *b;
	struct ibv_dm *dm;
	int sock;
	pid_t pid;
};

FIXTURE(import)
{
	struct owner o;
};

FIXTURE_VARIANT(import)
{
	const char *engine;
};

FIXTURE_VARIANT_ADD(import, inline)
{
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(import, threaded)
{
	.engine = "threaded",
};

FIXTURE_SETUP(import)
{
	ASSERT_EQ(0, engine_set(variant->engine));
	self->o.a = &self->o.p.end[0];
	self->o.b = &self->o.p.end[1];
}

FIXTURE_TEARDOWN(import)
{
	if (self->o.dm)
		EXPECT_EQ(0, ibv_free_dm(self->o.dm));
	pair_close(_metadata, &self->o.p);
}

static void start(struct __test_metadata *_metadata, struct owner *o,
		  void (*guest)(int sock))
{
	struct ibv_alloc_dm_attr attr = { .length = 100 };
	struct pair_opts opts = PAIR_DEFAULTS;
	uint32_t word = 0x12345678;
	struct note note;
	int sock[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
	o->pid = fork();
	ASSERT_LE(0, o->pid);
	if (!o->pid) {
		close(sock[0]);
		guest(sock[1]);
	}
	close(sock[1]);
	o->sock = sock[0];
	opts.no_connect = true;
	pair_open(_metadata, &o->p, &opts);
	o->dm = ibv_alloc_dm(o->a->ctx, &attr);
	ASSERT_NE(NULL, o->dm);
	ASSERT_EQ(0, ibv_memcpy_to_dm(o->dm, 4, &word, 4));
	fill(o->a->buf, 5000, 1);
	note = (struct note) {
		.pd = o->a->pd->handle,
		.mr = o->a->mr->handle,
		.rkey = o->a->mr->rkey,
		.dm = o->dm->handle,
		.addr = (uintptr_t)o->a->buf,
		.length = o->a->mr->length,
	};
	ASSERT_TRUE(note_send(o->sock, &note, o->a->ctx->cmd_fd));
}

static void connect_guest(struct __test_metadata *_metadata, struct owner *o)
{
	struct note note = { .qpn = o->b->qp->qp_num, .lid = o->b->lid }, guest;

	ASSERT_TRUE(note_recv(o->sock, &guest, NULL));
	qp_connect(_metadata, o->b->qp, &o->p.opts, guest.lid, guest.qpn);
	ASSERT_EQ(0, post_recv(o->b, 2, 0, 5000));
	ASSERT_TRUE(note_send(o->sock, &note, -1));
	ASSERT_TRUE(note_recv(o->sock, &guest, NULL));
}

static void finish(struct __test_metadata *_metadata, struct owner *o)
{
	int status;

	ASSERT_EQ(o->pid, waitpid(o->pid, &status, 0));
	EXPECT_EQ(0, status) {
		TH_LOG("the other process ended with %#x: line %d, if there are few", status,
		       WEXITSTATUS(status));
	}
	close(o->sock);
}

TEST_F(import, another_process_sends_from_the_region)
{
	uint32_t word;

	start(_metadata, &self->o, guest_sends);
	connect_guest(_metadata, &self->o);
	EXPECT_EQ(5000, expect_wc(_metadata, self->o.b->rcq, 2, IBV_WC_SUCCESS).byte_len);
	EXPECT_EQ(0, memcmp(self->o.a->buf, self->o.b->buf, 5000));
	finish(_metadata, &self->o);
	ASSERT_EQ(0, ibv_memcpy_from_dm(&word, self->o.dm, 8, 4));
	EXPECT_EQ(0x87654321, word);

	/* What it leaves behind is all there. */
	ASSERT_EQ(0, qp_to(self->o.b->qp, IBV_QPS_RESET));
	pair_connect(_metadata, &self->o.p);
	exchange(_metadata, self->o.a, self->o.b, 5000, 2);
}

TEST_F(import, another_process_hears_of_its_own_queues)
{
	struct op op = {
		.opcode = IBV_WR_RDMA_WRITE, .len = 8, .raddr = 0x1000, .rkey = 0x1234567,
		.flags = IBV_SEND_SIGNALED,
	};

	start(_metadata, &self->o, guest_hears);
	connect_guest(_metadata, &self->o);
	ASSERT_EQ(0, post_op(self->o.b, 3, &op));
	expect_wc(_metadata, self->o.b->scq, 3, IBV_WC_REM_ACCESS_ERR);
	finish(_metadata, &self->o);
	EXPECT_FALSE(readable(self->o.a->ctx->async_fd, 0));
}

TEST_F(import, another_process_may_destroy_what_it_imported)
{
	start(_metadata, &self->o, guest_destroys);
	finish(_metadata, &self->o);
	EXPECT_EQ(EINVAL, ibv_dereg_mr(self->o.a->mr));
	EXPECT_EQ(EINVAL, ibv_free_dm(self->o.dm));
	ibv_unimport_mr(self->o.a->mr);
	ibv_unimport_dm(self->o.dm);
	self->o.a->mr = NULL;
	self->o.dm = NULL;
}

/*
 * In one process
 */
FIXTURE(ctx)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

FIXTURE_SETUP(ctx)
{
	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
}

FIXTURE_TEARDOWN(ctx)
{
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

TEST_F(ctx, a_descriptor_of_something_else_is_no_device)
{
	int fd[2];

	errno = 0;
	EXPECT_EQ(NULL, ibv_import_device(-1));
	EXPECT_EQ(EBADF, errno);
	ASSERT_EQ(0, pipe2(fd, O_CLOEXEC));
	EXPECT_EQ(NULL, ibv_import_device(fd[0]));
	EXPECT_EQ(ENODEV, errno);
	close(fd[0]);
	close(fd[1]);
	fd[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_device(fd[0]));
	EXPECT_EQ(ENODEV, errno);
	/* It is still the caller's. */
	EXPECT_EQ(0, close(fd[0]));
}

TEST_F(ctx, handles_that_name_nothing_are_einval)
{
	struct ibv_context *ctx = ibv_import_device(dup(self->ctx->cmd_fd));
	struct ibv_pd *pd, *other = ibv_alloc_pd(self->ctx);
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	ASSERT_NE(NULL, ctx);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_pd(ctx, 0x7fffff));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_dm(ctx, 0x7fffff));
	EXPECT_EQ(EINVAL, errno);
	pd = ibv_import_pd(ctx, self->pd->handle);
	ASSERT_NE(NULL, pd);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_mr(pd, 0x7fffff));
	EXPECT_EQ(EINVAL, errno);
	/* A region of another PD is none of this one. */
	mr = ibv_reg_mr(other, p, 4096, 0);
	ASSERT_NE(NULL, mr);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_mr(pd, mr->handle));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(other));
	ibv_unimport_pd(pd);
	EXPECT_EQ(0, ibv_close_device(ctx));
	munmap(p, 4096);
}

TEST_F(ctx, an_imported_pd_may_be_deallocated_by_either)
{
	struct ibv_context *ctx = ibv_import_device(dup(self->ctx->cmd_fd));
	struct ibv_pd *own = ibv_alloc_pd(self->ctx), *pd;

	ASSERT_NE(NULL, ctx);
	pd = ibv_import_pd(ctx, own->handle);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(EINVAL, ibv_dealloc_pd(own));
	ibv_unimport_pd(own);
	EXPECT_EQ(0, ibv_close_device(ctx));
}

static void import_and_use(struct __test_metadata *_metadata, struct ibv_context *owner,
			   uint32_t pd_handle)
{
	struct ibv_context *ctx = ibv_import_device(dup(owner->cmd_fd));
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	ASSERT_NE(NULL, ctx);
	pd = ibv_import_pd(ctx, pd_handle);
	ASSERT_NE(NULL, pd);
	cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	qp = make_qp(pd, cq, cq, &opts, NULL);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_destroy_cq(cq));
	ibv_unimport_pd(pd);
	ASSERT_EQ(0, ibv_close_device(ctx));
}

/* More often than the device has UARs. */
/* More of them than a function has UAR pages. */
TEST_F_TIMEOUT(ctx, a_closed_import_leaves_nothing_in_the_file, 300)
{
	int i, before, after;

	before = dup(0);
	close(before);
	for (i = 0; i < 400; i++)
		import_and_use(_metadata, self->ctx, self->pd->handle);
	after = dup(0);
	close(after);
	EXPECT_EQ(before, after);
}

TEST_HARNESS_MAIN
