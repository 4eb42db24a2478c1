// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_xrc_verbs.c: XRC by the verbs API: domains and the files that name them, SRQs
 * that messages name, and QPs that more than one process has.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "pair.h"

FIXTURE(xrc)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_VARIANT(xrc)
{
	const char *engine;
	int peer;
};

FIXTURE_VARIANT_ADD(xrc, inline)
{
	.engine = "inline",
};

FIXTURE_VARIANT_ADD(xrc, threaded)
{
	.engine = "threaded",
};

FIXTURE_VARIANT_ADD(xrc, other_function)
{
	.engine = "inline",
	.peer = 1,
};

FIXTURE_SETUP(xrc)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, engine_set(variant->engine));
	opts.type = IBV_QPT_XRC_SEND;
	opts.function[1] = variant->peer;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(xrc)
{
	pair_close(_metadata, &self->p);
}

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(ctx, &init);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 16, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	errno = 0;
	return ibv_create_srq_ex(pd->context, &init);
}

static uint32_t srqn_of(struct __test_metadata *_metadata, struct ibv_srq *srq)
{
	uint32_t srqn = 0;

	EXPECT_EQ(0, ibv_get_srq_num(srq, &srqn));
	return srqn;
}

static int give(struct end *b, struct ibv_srq *srq, uint64_t wr_id, uint32_t off)
{
	struct ibv_sge sge = { (uintptr_t)b->buf + off, 64, b->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int send_to(struct end *a, uint32_t srqn, uint64_t wr_id, uint32_t len)
{
	a->peer_srqn = srqn;
	return post_send(a, wr_id, 0, len, IBV_SEND_SIGNALED);
}

TEST_F(xrc, messages_go_both_to_the_srq_that_they_name)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_cq *cq = ibv_create_cq(b->ctx, 16, NULL, NULL, 0);
	struct ibv_srq *other = make_srq(b->pd, b->xrcd, cq);
	uint32_t srqn[2] = { srqn_of(_metadata, b->srq), srqn_of(_metadata, other) };
	struct ibv_wc wc;
	uint32_t i;

	ASSERT_NE(NULL, other);
	EXPECT_NE(srqn[0], srqn[1]);
	for (i = 0; i < 40; i++) {
		fill(a->buf, 64, i);
		ASSERT_EQ(0, give(b, i % 2 ? other : b->srq, 100 + i, 0));
		ASSERT_EQ(0, send_to(a, srqn[i % 2], i, 64));
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
		wc = expect_wc(_metadata, i % 2 ? cq : b->rcq, 100 + i, IBV_WC_SUCCESS);
		EXPECT_EQ(IBV_WC_RECV, wc.opcode);
		EXPECT_EQ(b->qp->qp_num, wc.qp_num);
		EXPECT_EQ(64, wc.byte_len);
		EXPECT_EQ(0, memcmp(a->buf, b->buf, 64));
	}
	EXPECT_EQ(0, ibv_destroy_srq(other));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(xrc, read_write_and_atomics_work_as_in_rc)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_sge sge = { (uintptr_t)a->buf, 8, a->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	uint64_t *mine = (void *)a->buf, *theirs = (void *)b->buf;

	wr_to_peer(a, &wr);
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = b->mr->rkey;
	*mine = 0x1122334455667788;
	wr.opcode = IBV_WR_RDMA_WRITE;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(0x1122334455667788, *theirs);

	*theirs = 77;
	wr.opcode = IBV_WR_RDMA_READ;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(77, *mine);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)b->buf;
	wr.wr.atomic.rkey = b->mr->rkey;
	wr.wr.atomic.compare_add = 5;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(77, *mine);
	EXPECT_EQ(82, *theirs);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 82;
	wr.wr.atomic.swap = 1;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(82, *mine);
	EXPECT_EQ(1, *theirs);
}

TEST_F(xrc, an_srq_that_is_not_in_the_domain_is_not_found)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_xrcd *xrcd = open_domain(b->ctx, -1, O_CREAT);
	struct ibv_srq *srq = make_srq(b->pd, xrcd, b->rcq);
	struct ibv_wc wc;

	ASSERT_NE(NULL, xrcd);
	ASSERT_NE(NULL, srq);
	ASSERT_EQ(0, give(b, srq, 5, 0));
	ASSERT_EQ(0, send_to(a, srqn_of(_metadata, srq), 1, 8));
	ASSERT_TRUE(poll_wc(a->scq, &wc));
	EXPECT_NE(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_TRUE(cq_empty(b->rcq));
	EXPECT_EQ(EBUSY, ibv_close_xrcd(xrcd));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd));
}

TEST_F(xrc, completions_of_an_srq_go_with_it)
{
	struct end *a = self->a, *b = self->b;
	struct ibv_srq *other = make_srq(b->pd, b->xrcd, b->rcq);

	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, give(b, other, 1, 0));
	ASSERT_EQ(0, give(b, other, 2, 64));
	ASSERT_EQ(0, give(b, b->srq, 3, 128));
	ASSERT_EQ(0, send_to(a, srqn_of(_metadata, other), 1, 8));
	expect_wc(_metadata, a->scq, 1, IBV_WC_SUCCESS);
	ASSERT_EQ(0, send_to(a, srqn_of(_metadata, b->srq), 2, 8));
	expect_wc(_metadata, a->scq, 2, IBV_WC_SUCCESS);
	ASSERT_EQ(0, send_to(a, srqn_of(_metadata, other), 3, 8));
	expect_wc(_metadata, a->scq, 3, IBV_WC_SUCCESS);
	ASSERT_EQ(0, ibv_destroy_srq(other));
	expect_wc(_metadata, b->rcq, 3, IBV_WC_SUCCESS);
	EXPECT_TRUE(cq_empty(b->rcq));
}

/* A target has no CQ: it learns of it when a message is to complete there. */
TEST_F(xrc, no_target_takes_a_message_for_a_cq_that_overran)
{
	struct pair_opts opts = self->p.opts;
	struct end *a = self->a, *b = self->b;
	struct end other_a, other_b;
	struct ibv_async_event event;
	int i, n;

	pair_close(_metadata, &self->p);
	opts.cqe = 8;
	pair_open(_metadata, &self->p, &opts);
	other_a = *a;
	other_b = *b;
	end_make_qp(_metadata, &other_a, &opts, 0);
	end_make_qp(_metadata, &other_b, &opts, 1);
	qp_connect(_metadata, other_a.qp, &opts, b->lid, other_b.qp->qp_num);
	qp_connect(_metadata, other_b.qp, &opts, a->lid, other_a.qp->qp_num);

	n = b->rcq->cqe;
	for (i = 0; i <= n + 1; i++)
		ASSERT_EQ(0, post_recv(b, i, 0, 10));
	for (i = 0; i <= n; i++) {
		ASSERT_EQ(0, post_send(a, i, 0, 10, IBV_SEND_SIGNALED));
		expect_wc(_metadata, a->scq, i, IBV_WC_SUCCESS);
	}
	/* CQ_ERR, and of the target that met it QP_FATAL and LAST_WQE_REACHED. */
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(async_event(b->ctx, &event));
	ASSERT_EQ(IBV_QPS_RTS, qp_state(other_b.qp));

	ASSERT_EQ(0, post_send(&other_a, 50, 0, 10, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 50, IBV_WC_REM_OP_ERR);
	ASSERT_TRUE(async_event(b->ctx, &event));
	EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
	EXPECT_EQ(other_b.qp, event.element.qp);
	EXPECT_EQ(0, ibv_destroy_qp(other_a.qp));
	EXPECT_EQ(0, ibv_destroy_qp(other_b.qp));
}

TEST_F(xrc, each_end_has_half_of_the_queues)
{
	struct ibv_recv_wr recv = {}, *bad_recv = NULL;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr;

	EXPECT_EQ(EINVAL, ibv_post_recv(self->a->qp, &recv, &bad_recv));
	EXPECT_EQ(&recv, bad_recv);
	EXPECT_EQ(EINVAL, ibv_post_recv(self->b->qp, &recv, &bad_recv));
	EXPECT_EQ(EINVAL, ibv_post_send(self->b->qp, &send, &bad_send));
	EXPECT_EQ(&send, bad_send);
	ASSERT_EQ(0, ibv_query_qp(self->b->qp, &attr, IBV_QP_CAP, &init));
	EXPECT_EQ(IBV_QPT_XRC_RECV, init.qp_type);
	EXPECT_EQ(0, init.cap.max_send_wr);
	EXPECT_EQ(0, init.cap.max_recv_wr);
	exchange(_metadata, self->a, self->b, 3000, 1);
}

TEST_F(xrc, a_domain_stays_while_something_is_in_it)
{
	EXPECT_EQ(EBUSY, ibv_close_xrcd(self->b->xrcd));
	exchange(_metadata, self->a, self->b, 100, 1);
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	self->b->qp = NULL;
	EXPECT_EQ(EBUSY, ibv_close_xrcd(self->b->xrcd));
	ASSERT_EQ(0, ibv_destroy_srq(self->b->srq));
	self->b->srq = NULL;
	EXPECT_EQ(0, ibv_close_xrcd(self->b->xrcd));
	self->b->xrcd = NULL;
}

/*
 * A domain that a file names, two contexts of it, and a QP that both have
 */
static int temp_file(void)
{
	char name[] = "/tmp/vhca-xrcd-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	unlink(name);
	return fd;
}

TEST(a_file_names_one_domain)
{
	struct ibv_context *ctx = open_vhca(_metadata, 0), *other = open_vhca(_metadata, 0);
	int fd = temp_file(), fd2 = temp_file();
	struct ibv_xrcd *xrcd[3];

	ASSERT_LE(0, fd);
	EXPECT_EQ(NULL, open_domain(ctx, fd, 0));
	EXPECT_EQ(ENOENT, errno);
	xrcd[0] = open_domain(ctx, fd, O_CREAT | O_EXCL);
	ASSERT_NE(NULL, xrcd[0]);
	EXPECT_EQ(NULL, open_domain(other, fd, O_CREAT | O_EXCL));
	EXPECT_EQ(EEXIST, errno);
	xrcd[1] = open_domain(other, fd, 0);
	ASSERT_NE(NULL, xrcd[1]);
	EXPECT_EQ(NULL, open_domain(ctx, fd2, 0));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(NULL, open_domain(ctx, 9999, O_CREAT));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(0, ibv_close_xrcd(xrcd[0]));
	/* Until the last one closes it. */
	xrcd[2] = open_domain(ctx, fd, 0);
	ASSERT_NE(NULL, xrcd[2]);
	EXPECT_EQ(0, ibv_close_xrcd(xrcd[1]));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd[2]));
	EXPECT_EQ(NULL, open_domain(ctx, fd, 0));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(0, ibv_close_device(ctx));
	EXPECT_EQ(0, ibv_close_device(other));
	close(fd);
	close(fd2);
}

static struct ibv_qp *make_target(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(ctx, &init);
}

static struct ibv_qp *open_target(struct ibv_context *ctx, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_context = ctx,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	errno = 0;
	return ibv_open_qp(ctx, &attr);
}

TEST(a_qp_lives_until_the_last_that_has_it_destroys_it)
{
	struct ibv_context *ctx[2] = { open_vhca(_metadata, 0), open_vhca(_metadata, 0) };
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_xrcd *xrcd[2], *private;
	struct ibv_qp *qp[2];
	int fd = temp_file();

	xrcd[0] = open_domain(ctx[0], fd, O_CREAT);
	xrcd[1] = open_domain(ctx[1], fd, O_CREAT);
	private = open_domain(ctx[1], -1, O_CREAT);
	ASSERT_NE(NULL, xrcd[0]);
	ASSERT_NE(NULL, xrcd[1]);
	ASSERT_NE(NULL, private);
	qp[0] = make_target(ctx[0], xrcd[0]);
	ASSERT_NE(NULL, qp[0]);
	ASSERT_EQ(0, qp_to_init(qp[0], &opts));
	EXPECT_EQ(NULL, open_target(ctx[1], private, qp[0]->qp_num));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, open_target(ctx[1], xrcd[1], qp[0]->qp_num + 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, open_target(ctx[0], xrcd[0], qp[0]->qp_num));
	EXPECT_EQ(EBUSY, errno);
	qp[1] = open_target(ctx[1], xrcd[1], qp[0]->qp_num);
	ASSERT_NE(NULL, qp[1]);
	EXPECT_EQ(qp[0]->qp_num, qp[1]->qp_num);
	EXPECT_EQ(IBV_QPS_INIT, qp[1]->state);
	EXPECT_EQ(IBV_QPT_XRC_RECV, qp[1]->qp_type);
	EXPECT_EQ(ctx[1], qp[1]->qp_context);
	/* What one does the other sees. */
	ASSERT_EQ(0, qp_to(qp[1], IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(qp[0]));
	ASSERT_EQ(0, ibv_destroy_qp(qp[0]));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(qp[1]));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd[0]));
	EXPECT_EQ(0, ibv_close_device(ctx[0]));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(qp[1]));
	EXPECT_EQ(EBUSY, ibv_close_xrcd(xrcd[1]));
	EXPECT_EQ(0, ibv_destroy_qp(qp[1]));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd[1]));
	EXPECT_EQ(0, ibv_close_xrcd(private));
	EXPECT_EQ(0, ibv_close_device(ctx[1]));
	close(fd);
}

/*
 * The child has an SRQ in the domain of the parent's QP, and nothing else of it: it
 * says its SRQ's number, gets one message and says what it got.
 */
#define CHILD_LEN	48

static int child_receives(struct __test_metadata *_metadata, int function, int fd, int out)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_xrcd *xrcd;
	struct ibv_wc wc;
	uint32_t srqn;
	struct end e;

	opts.function[0] = function;
	end_open(_metadata, &e, &opts, 0);
	xrcd = open_domain(e.ctx, fd, 0);
	if (!xrcd)
		return 1;
	e.srq = make_srq(e.pd, xrcd, e.rcq);
	if (!e.srq || give(&e, e.srq, 7, 0) || ibv_get_srq_num(e.srq, &srqn))
		return 2;
	if (write(out, &srqn, sizeof(srqn)) != sizeof(srqn))
		return 3;
	if (!poll_wc(e.rcq, &wc) || wc.status || wc.wr_id != 7 || wc.byte_len != CHILD_LEN)
		return 4;
	if (write(out, &wc.qp_num, sizeof(wc.qp_num)) != sizeof(wc.qp_num) ||
	    write(out, e.buf, CHILD_LEN) != CHILD_LEN)
		return 5;
	return ibv_destroy_srq(e.srq) || ibv_close_xrcd(xrcd) ? 6 : 0;
}

TEST_F(xrc, a_message_reaches_the_srq_of_another_process)
{
	struct pair_opts opts = self->p.opts;
	uint32_t srqn = 0, qpn = 0;
	struct ibv_xrcd *xrcd;
	char got[CHILD_LEN];
	struct ibv_qp *qp;
	int fd = temp_file(), pipefd[2], status;
	pid_t pid;

	/* The target that the sender is to be connected to, in a domain with a file. */
	xrcd = open_domain(self->b->ctx, fd, O_CREAT);
	ASSERT_NE(NULL, xrcd);
	qp = make_target(self->b->ctx, xrcd);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RESET));
	qp_connect(_metadata, qp, &opts, self->a->lid, self->a->qp->qp_num);
	qp_connect(_metadata, self->a->qp, &opts, self->b->lid, qp->qp_num);

	ASSERT_EQ(0, pipe2(pipefd, O_CLOEXEC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		alarm(60);
		_exit(child_receives(_metadata, variant->peer, fd, pipefd[1]));
	}
	close(pipefd[1]);
	fill(self->a->buf, CHILD_LEN, 9);
	ASSERT_EQ(sizeof(srqn), read(pipefd[0], &srqn, sizeof(srqn)));
	ASSERT_EQ(0, send_to(self->a, srqn, 1, CHILD_LEN));
	expect_wc(_metadata, self->a->scq, 1, IBV_WC_SUCCESS);
	EXPECT_EQ(sizeof(qpn), read(pipefd[0], &qpn, sizeof(qpn)));
	EXPECT_EQ(qp->qp_num, qpn);
	EXPECT_EQ(CHILD_LEN, read(pipefd[0], got, CHILD_LEN));
	EXPECT_EQ(0, memcmp(self->a->buf, got, CHILD_LEN));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd));
	close(pipefd[0]);
	close(fd);
}

TEST(attributes_that_are_missing_are_refused)
{
	struct ibv_context *ctx = open_vhca(_metadata, 0);
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1 };
	struct ibv_xrcd *xrcd = open_domain(ctx, -1, O_CREAT);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM, .xrcd = xrcd };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr attr;
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC, .pd = pd, .xrcd = xrcd,
	};

	ASSERT_EQ(0, ibv_query_device(ctx, &attr));
	EXPECT_NE(0, attr.device_cap_flags & IBV_DEVICE_XRC);
	ASSERT_NE(NULL, xrcd);
	errno = 0;
	EXPECT_EQ(NULL, ibv_open_xrcd(ctx, &domain));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_srq_ex(ctx, &srq));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_open_qp(ctx, &open));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, make_target(ctx, NULL));
	EXPECT_EQ(EINVAL, errno);
	/* An SRQ of a domain is not one for connections of one's own. */
	init.srq = make_srq(pd, xrcd, cq);
	ASSERT_NE(NULL, init.srq);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_qp(pd, &init));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_destroy_srq(init.srq));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST_HARNESS_MAIN
