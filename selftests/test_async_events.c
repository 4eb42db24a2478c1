// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every async event, made to happen and read; and that who destroys the object waits
 * until its events are acknowledged.
 */
#include <pthread.h>

#include "rc.h"

static int write_file(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, what, strlen(what)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* "up" or "down": the link of a function. */
static int link_set(int function, const char *state)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/vhca_device/%d/link", function);
	return write_file(path, state);
}

/* Tests end with _exit(): this runs once, when the program ends. */
static void links_up(void)
{
	link_set(0, "up");
	link_set(1, "up");
}

static __attribute__((constructor)) void restore_links(void)
{
	atexit(links_up);
}

/* The next event, which must be of this type. */
static struct ibv_async_event expect_event(struct __test_metadata *_metadata,
					   struct ibv_context *ctx, enum ibv_event_type type)
{
	struct ibv_async_event event = {};

	ASSERT_TRUE(async_event(ctx, &event)) {
		TH_LOG("no event, not %s", ibv_event_type_str(type));
	}
	ASSERT_EQ(type, event.event_type);
	return event;
}

static bool no_event(struct ibv_context *ctx)
{
	return !readable(ctx->async_fd, 0);
}

TEST_F(rc, communication_established)
{
	struct ibv_async_event event;

	/* The receiver stays in RTR. */
	ASSERT_EQ(0, qp_to(self->b->qp, IBV_QPS_RESET));
	ASSERT_EQ(0, qp_to_init(self->b->qp, &self->p.opts));
	ASSERT_EQ(0, qp_to_rtr(self->b->qp, &self->p.opts, self->a->lid, self->a->qp->qp_num));
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 64, IBV_SEND_SIGNALED));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_COMM_EST);
	EXPECT_EQ(self->b->qp, event.element.qp);
	EXPECT_TRUE(no_event(self->a->ctx));
}

TEST_F(rc, send_queue_drained)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct ibv_async_event event;

	ASSERT_EQ(0, ibv_modify_qp(self->a->qp, &attr,
				   IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	event = expect_event(_metadata, self->a->ctx, IBV_EVENT_SQ_DRAINED);
	EXPECT_EQ(self->a->qp, event.element.qp);
}

TEST_F(rc, a_request_that_the_qp_does_not_take)
{
	struct pair_opts opts = self->p.opts;
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	opts.access = 0;
	reopen(_metadata, &self->p, opts);
	sge = (struct ibv_sge) { (uintptr_t)self->a->buf, 8, self->a->mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)self->b->buf;
	wr.wr.rdma.rkey = self->b->mr->rkey;
	ASSERT_EQ(0, ibv_post_send(self->a->qp, &wr, &bad));
	ASSERT_TRUE(poll_wc(self->a->scq, &wc));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_QP_REQ_ERR);
	EXPECT_EQ(self->b->qp, event.element.qp);
}

TEST_F(rc, memory_that_may_not_be_accessed)
{
	struct ibv_async_event event;
	struct ibv_sge sge = { (uintptr_t)self->a->buf, 8, self->a->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)self->b->buf + self->b->len, self->b->mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_send(self->a->qp, &wr, &bad));
	ASSERT_TRUE(poll_wc(self->a->scq, &wc));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_QP_ACCESS_ERR);
	EXPECT_EQ(self->b->qp, event.element.qp);
}

TEST_F(rc, a_cq_overruns_and_takes_its_qp_along)
{
	struct pair_opts opts = self->p.opts;
	bool cq = false, qp = false;
	struct ibv_async_event event;
	struct ibv_wc wc;
	int i;

	opts.cqe = 4;
	reopen(_metadata, &self->p, opts);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, post_recv(self->b, i, 0, 8));
		ASSERT_EQ(0, post_send(self->a, i, 0, 8, IBV_SEND_SIGNALED));
		ASSERT_TRUE(poll_wc(self->a->scq, &wc));
	}
	/* In any order. */
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(async_event(self->b->ctx, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR)
			cq = event.element.cq == self->b->rcq;
		else if (event.event_type == IBV_EVENT_QP_FATAL)
			qp = event.element.qp == self->b->qp;
	}
	EXPECT_TRUE(cq);
	EXPECT_TRUE(qp);
}

/* A QP that takes its receives from an SRQ. */
static struct ibv_qp *make_srq_qp(struct end *e, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq, .recv_cq = e->rcq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};

	return ibv_create_qp(e->pd, &init);
}

static struct ibv_srq *make_srq(struct end *e)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };

	return ibv_create_srq(e->pd, &init);
}

static int post_srq(struct end *e, struct ibv_srq *srq, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 64, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

TEST_F(rc, the_last_wqe_is_reached)
{
	struct ibv_srq *srq = make_srq(self->b);
	struct ibv_async_event event;
	struct ibv_qp *qp;

	ASSERT_NE(NULL, srq);
	qp = make_srq_qp(self->b, srq);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to_init(qp, &self->p.opts));
	ASSERT_EQ(0, qp_to(qp, IBV_QPS_ERR));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
	EXPECT_EQ(qp, event.element.qp);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_destroy_srq(srq));
}

/* The second end receives from an SRQ. */
static struct ibv_srq *take_srq(struct __test_metadata *_metadata, struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_srq *srq = make_srq(b);

	ASSERT_NE(NULL, srq);
	ASSERT_EQ(0, ibv_destroy_qp(b->qp));
	b->qp = make_srq_qp(b, srq);
	ASSERT_NE(NULL, b->qp);
	ASSERT_EQ(0, qp_to(a->qp, IBV_QPS_RESET));
	pair_connect(_metadata, p);
	return srq;
}

TEST_F(rc, an_srq_falls_below_its_limit)
{
	struct ibv_srq *srq = take_srq(_metadata, &self->p);
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event event;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_srq(self->b, srq, self->b->mr->lkey));
	ASSERT_EQ(0, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, post_send(self->a, 1, 0, 8, IBV_SEND_SIGNALED));
	ASSERT_TRUE(poll_wc(self->b->rcq, &wc));
	EXPECT_TRUE(no_event(self->b->ctx));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 8, IBV_SEND_SIGNALED));
	ASSERT_TRUE(poll_wc(self->b->rcq, &wc));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
	EXPECT_EQ(srq, event.element.srq);
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	self->b->qp = NULL;
	ASSERT_EQ(0, ibv_destroy_srq(srq));
}

/*
 * Doorbell records lie in memory that user space maps, one every 64 bytes. The one of
 * an SRQ is found by what posting a receive makes of it.
 */
#define RECORD		64
#define MAX_RECORDS	4096

struct records {
	uint32_t	*at[MAX_RECORDS];
	int		n;
};

static uint32_t record(uint32_t *at)
{
	return be32toh(__atomic_load_n(at, __ATOMIC_RELAXED));
}

/* All that are zero, of mappings of a vhca that can be written. */
static struct records zero_records(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct records r = {};
	unsigned long from, to;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || !strstr(line, "/dev/vhca"))
			continue;
		for (; from < to && r.n < MAX_RECORDS; from += RECORD)
			if (!record((uint32_t *)from))
				r.at[r.n++] = (uint32_t *)from;
	}
	if (maps)
		fclose(maps);
	return r;
}

/* The index that the device takes from there makes no sense: its next receive shows it. */
static void break_srq(struct __test_metadata *_metadata, struct pair *p, struct ibv_srq *srq)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct records r = zero_records();
	int i, found = 0;

	ASSERT_EQ(0, post_srq(b, srq, b->mr->lkey));
	for (i = 0; i < r.n; i++)
		if (record(r.at[i]) == 1) {
			__atomic_store_n(r.at[i], htobe32(1000), __ATOMIC_RELAXED);
			found++;
		}
	ASSERT_EQ(1, found);
	ASSERT_EQ(0, post_send(a, 1, 0, 8, IBV_SEND_SIGNALED));
	expect_wc(_metadata, a->scq, 1, IBV_WC_REM_OP_ERR);
}

/* Of three events, in any order, the one of the SRQ. The others are acknowledged. */
static struct ibv_async_event srq_event_among(struct __test_metadata *_metadata,
					      struct ibv_context *ctx, struct ibv_qp *qp)
{
	struct ibv_async_event event, of_srq = {};
	int i, of_qp = 0;

	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(readable(ctx->async_fd, 20000));
		ASSERT_EQ(0, ibv_get_async_event(ctx, &event));
		if (event.event_type == IBV_EVENT_SRQ_ERR) {
			of_srq = event;
			continue;
		}
		of_qp += event.element.qp == qp &&
			 (event.event_type == IBV_EVENT_QP_FATAL ||
			  event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
		ibv_ack_async_event(&event);
	}
	EXPECT_EQ(2, of_qp);
	EXPECT_EQ(IBV_EVENT_SRQ_ERR, of_srq.event_type);
	return of_srq;
}

TEST_F(rc, an_srq_breaks)
{
	struct ibv_srq *srq = take_srq(_metadata, &self->p);
	struct ibv_async_event event;

	break_srq(_metadata, &self->p, srq);
	event = srq_event_among(_metadata, self->b->ctx, self->b->qp);
	EXPECT_EQ(srq, event.element.srq);
	ibv_ack_async_event(&event);
	EXPECT_TRUE(no_event(self->b->ctx));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(self->b->qp));
	EXPECT_TRUE(cq_empty(self->b->rcq));
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	self->b->qp = NULL;
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* Ports */

TEST_F(rc, a_port_goes_down_and_comes_up)
{
	int function = self->p.opts.function[1];
	struct ibv_async_event event;
	struct ibv_port_attr port;

	ASSERT_EQ(-EINVAL, link_set(function, "sideways"));
	ASSERT_EQ(0, link_set(function, "down"));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ERR);
	EXPECT_EQ(1, event.element.port_num);
	ASSERT_EQ(0, ibv_query_port(self->b->ctx, 1, &port));
	EXPECT_EQ(IBV_PORT_DOWN, port.state);
	EXPECT_NE(5, port.phys_state);
	/* It is down already. */
	ASSERT_EQ(0, link_set(function, "down\n"));
	ASSERT_EQ(0, link_set(function, "up\n"));
	event = expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ACTIVE);
	EXPECT_EQ(1, event.element.port_num);
	ASSERT_EQ(0, ibv_query_port(self->b->ctx, 1, &port));
	EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
	EXPECT_TRUE(no_event(self->b->ctx));
}

TEST_F(rc, a_message_waits_until_the_link_is_back)
{
	int function = self->p.opts.function[1];
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, link_set(function, "down"));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, link_set(function, "up"));
	ASSERT_TRUE(poll_wc(self->a->scq, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	expect_wc(_metadata, self->b->rcq, 1, IBV_WC_SUCCESS);
	expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ERR);
	expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ACTIVE);
}

TEST_F(rc, with_the_link_down_tries_are_used_up)
{
	int function = self->p.opts.function[1];
	struct pair_opts opts = self->p.opts;
	struct ibv_wc wc;

	opts.timeout = 8;
	opts.retry_cnt = 2;
	reopen(_metadata, &self->p, opts);
	ASSERT_EQ(0, post_recv(self->b, 1, 0, 64));
	ASSERT_EQ(0, link_set(function, "down"));
	ASSERT_EQ(0, post_send(self->a, 2, 0, 64, IBV_SEND_SIGNALED));
	EXPECT_TRUE(poll_wc(self->a->scq, &wc));
	EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, wc.status);
	EXPECT_TRUE(cq_empty(self->b->rcq));
	ASSERT_EQ(0, link_set(function, "up"));
}

TEST_F(rc, every_context_hears_of_its_port)
{
	struct ibv_context *other = open_vhca(_metadata, self->p.opts.function[1]);
	int function = self->p.opts.function[1];

	ASSERT_EQ(0, link_set(function, "down"));
	expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ERR);
	expect_event(_metadata, other, IBV_EVENT_PORT_ERR);
	ASSERT_EQ(0, link_set(function, "up"));
	expect_event(_metadata, self->b->ctx, IBV_EVENT_PORT_ACTIVE);
	expect_event(_metadata, other, IBV_EVENT_PORT_ACTIVE);
	ASSERT_EQ(0, ibv_close_device(other));
}

/* Acknowledging */

struct destroyer {
	struct ibv_qp *qp;
	struct ibv_srq *srq;	/* if it is not a QP */
	pid_t tid;
	bool done;
	pthread_t thread;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	__atomic_store_n(&d->tid, gettid(), __ATOMIC_RELEASE);
	if (d->srq ? ibv_destroy_srq(d->srq) : ibv_destroy_qp(d->qp))
		return arg;
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* It is begun, and waits. */
static void begin_to_destroy(struct __test_metadata *_metadata, struct destroyer *d)
{
	ASSERT_EQ(0, pthread_create(&d->thread, NULL, destroy, d));
	ASSERT_TRUE(wait_until(__atomic_load_n(&d->tid, __ATOMIC_ACQUIRE)));
	ASSERT_TRUE(wait_until(thread_state(d->tid) == 'S'));
}

static void expect_destroyed(struct __test_metadata *_metadata, struct destroyer *d)
{
	void *ret;

	ASSERT_EQ(0, pthread_join(d->thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_TRUE(d->done);
}

TEST_F(rc, destroying_an_srq_waits_until_its_event_is_acknowledged)
{
	struct destroyer d = { .srq = take_srq(_metadata, &self->p) };
	struct ibv_async_event event;

	break_srq(_metadata, &self->p, d.srq);
	event = srq_event_among(_metadata, self->b->ctx, self->b->qp);
	ASSERT_EQ(0, ibv_destroy_qp(self->b->qp));
	self->b->qp = NULL;
	begin_to_destroy(_metadata, &d);
	EXPECT_FALSE(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&event);
	expect_destroyed(_metadata, &d);
}

TEST_F(rc, destroying_waits_until_all_that_was_read_is_acknowledged)
{
	struct destroyer d = { .qp = self->a->qp };
	struct ibv_async_event event[2];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_modify_qp(self->a->qp, &attr,
					   IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
		ASSERT_TRUE(readable(self->a->ctx->async_fd, 20000));
		ASSERT_EQ(0, ibv_get_async_event(self->a->ctx, &event[i]));
		ASSERT_EQ(0, qp_to(self->a->qp, IBV_QPS_RTS));
	}
	begin_to_destroy(_metadata, &d);
	ibv_ack_async_event(&event[0]);
	ASSERT_TRUE(wait_until(thread_state(d.tid) == 'S'));
	EXPECT_FALSE(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&event[1]);
	expect_destroyed(_metadata, &d);
	self->a->qp = NULL;
}

TEST_F(rc, what_was_not_read_is_dropped_with_the_object)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};

	ASSERT_EQ(0, ibv_modify_qp(self->a->qp, &attr,
				   IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ASSERT_TRUE(readable(self->a->ctx->async_fd, 20000));
	ASSERT_EQ(0, ibv_destroy_qp(self->a->qp));
	self->a->qp = NULL;
	EXPECT_TRUE(no_event(self->a->ctx));
}

/* The device. Last: the driver has to be bound anew. */

static int driver_write(const char *what, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/vhca/%s", what);
	return write_file(path, name);
}

TEST(the_device_breaks)
{
	struct ibv_context *ctx = open_vhca(_metadata, 1);
	char link[256] = {}, *name;
	struct ibv_async_event event;

	ASSERT_LT(0, readlink("/sys/class/vhca/vhca1/device", link, sizeof(link) - 1));
	name = strrchr(link, '/') + 1;
	ASSERT_EQ(0, write_file("/sys/kernel/debug/vhca_device/1/break", "1"));
	event = expect_event(_metadata, ctx, IBV_EVENT_DEVICE_FATAL);
	EXPECT_EQ(NULL, ibv_alloc_pd(ctx));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, ibv_close_device(ctx));
	(void)event;

	/* The other function goes on, and this one when it is bound again. */
	ctx = open_vhca(_metadata, 0);
	EXPECT_EQ(0, ibv_close_device(ctx));
	ASSERT_EQ(0, driver_write("unbind", name));
	ASSERT_EQ(0, driver_write("bind", name));
	ASSERT_TRUE(wait_until(!access("/dev/vhca1", R_OK | W_OK)));
	ctx = open_vhca(_metadata, 1);
	EXPECT_NE(0, lid_of(ctx));
	EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST_HARNESS_MAIN
