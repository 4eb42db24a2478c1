// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every completion status and every async event can be had, and comes as it was ordered.
 */
#include "rc.h"
#include "faults.h"

FIXTURE(status)
{
	struct pair p;
	struct end *a;
	struct end *b;
};

FIXTURE_VARIANT(status)
{
	const char *name;
	enum ibv_wc_status status;
};

FIXTURE_VARIANT_ADD(status, SUCCESS) { "SUCCESS", IBV_WC_SUCCESS };
FIXTURE_VARIANT_ADD(status, LOC_LEN_ERR) { "LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR };
FIXTURE_VARIANT_ADD(status, LOC_QP_OP_ERR) { "LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR };
FIXTURE_VARIANT_ADD(status, LOC_EEC_OP_ERR) { "LOC_EEC_OP_ERR", IBV_WC_LOC_EEC_OP_ERR };
FIXTURE_VARIANT_ADD(status, LOC_PROT_ERR) { "LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR };
FIXTURE_VARIANT_ADD(status, WR_FLUSH_ERR) { "WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR };
FIXTURE_VARIANT_ADD(status, MW_BIND_ERR) { "MW_BIND_ERR", IBV_WC_MW_BIND_ERR };
FIXTURE_VARIANT_ADD(status, BAD_RESP_ERR) { "BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR };
FIXTURE_VARIANT_ADD(status, LOC_ACCESS_ERR) { "LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR };
FIXTURE_VARIANT_ADD(status, REM_INV_REQ_ERR) { "REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR };
FIXTURE_VARIANT_ADD(status, REM_ACCESS_ERR) { "REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR };
FIXTURE_VARIANT_ADD(status, REM_OP_ERR) { "REM_OP_ERR", IBV_WC_REM_OP_ERR };
FIXTURE_VARIANT_ADD(status, RETRY_EXC_ERR) { "RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR };
FIXTURE_VARIANT_ADD(status, RNR_RETRY_EXC_ERR) { "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR };
FIXTURE_VARIANT_ADD(status, LOC_RDD_VIOL_ERR) { "LOC_RDD_VIOL_ERR", IBV_WC_LOC_RDD_VIOL_ERR };
FIXTURE_VARIANT_ADD(status, REM_INV_RD_REQ_ERR) { "REM_INV_RD_REQ_ERR", IBV_WC_REM_INV_RD_REQ_ERR };
FIXTURE_VARIANT_ADD(status, REM_ABORT_ERR) { "REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR };
FIXTURE_VARIANT_ADD(status, INV_EECN_ERR) { "INV_EECN_ERR", IBV_WC_INV_EECN_ERR };
FIXTURE_VARIANT_ADD(status, INV_EEC_STATE_ERR) { "INV_EEC_STATE_ERR", IBV_WC_INV_EEC_STATE_ERR };
FIXTURE_VARIANT_ADD(status, FATAL_ERR) { "FATAL_ERR", IBV_WC_FATAL_ERR };
FIXTURE_VARIANT_ADD(status, RESP_TIMEOUT_ERR) { "RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR };
FIXTURE_VARIANT_ADD(status, GENERAL_ERR) { "GENERAL_ERR", IBV_WC_GENERAL_ERR };
FIXTURE_VARIANT_ADD(status, TM_ERR) { "TM_ERR", IBV_WC_TM_ERR };
FIXTURE_VARIANT_ADD(status, TM_RNDV_INCOMPLETE) { "TM_RNDV_INCOMPLETE", IBV_WC_TM_RNDV_INCOMPLETE };

FIXTURE_SETUP(status)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	ASSERT_EQ(0, order(0, "faults", "clear"));
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(status)
{
	EXPECT_EQ(0, order(0, "faults", "clear"));
	pair_close(_metadata, &self->p);
}

TEST_F(status, a_send_completes_so)
{
	struct ibv_wc wc;

	ASSERT_LT(0, plan(0, "qp=%u nth=1 complete status=%s vendor_err=%u",
			  self->a->qp->qp_num, variant->name, variant->status + 100));
	ASSERT_EQ(0, post_send(self->a, 11, 0, 64, IBV_SEND_SIGNALED));
	wc = expect_wc(_metadata, self->a->scq, 11, variant->status);
	EXPECT_EQ(variant->status + 100u, wc.vendor_err);
	EXPECT_EQ(self->a->qp->qp_num, wc.qp_num);
	EXPECT_TRUE(wait_until(qp_state(self->a->qp) ==
			       (variant->status ? IBV_QPS_ERR : IBV_QPS_RTS)));
	recover(_metadata, &self->p);
}

TEST_F(status, a_receive_completes_so)
{
	struct ibv_wc wc;

	ASSERT_LT(0, plan(0, "qp=%u nth=1 complete side=recv status=%s vendor_err=%u",
			  self->b->qp->qp_num, variant->name, variant->status + 100));
	ASSERT_EQ(0, post_recv(self->b, 12, 0, 64));
	ASSERT_EQ(0, post_send(self->a, 11, 0, 64, IBV_SEND_SIGNALED));
	wc = expect_wc(_metadata, self->b->rcq, 12, variant->status);
	EXPECT_EQ(variant->status + 100u, wc.vendor_err);
	ASSERT_TRUE(poll_wc(self->a->scq, &wc));
	if (variant->status != IBV_WC_SUCCESS) {
		EXPECT_NE(IBV_WC_SUCCESS, wc.status);
		EXPECT_TRUE(goes_to_error(self->b->qp));
	} else {
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	recover(_metadata, &self->p);
}

enum of { OF_QP, OF_CQ, OF_SRQ, OF_PORT };

FIXTURE(event)
{
	struct pair p;
	struct end *a;
};

FIXTURE_VARIANT(event)
{
	const char *name;
	enum ibv_event_type type;
	enum of of;
};

FIXTURE_VARIANT_ADD(event, CQ_ERR) { "CQ_ERR", IBV_EVENT_CQ_ERR, OF_CQ };
FIXTURE_VARIANT_ADD(event, QP_FATAL) { "QP_FATAL", IBV_EVENT_QP_FATAL, OF_QP };
FIXTURE_VARIANT_ADD(event, QP_REQ_ERR) { "QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR, OF_QP };
FIXTURE_VARIANT_ADD(event, QP_ACCESS_ERR) { "QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR, OF_QP };
FIXTURE_VARIANT_ADD(event, COMM_EST) { "COMM_EST", IBV_EVENT_COMM_EST, OF_QP };
FIXTURE_VARIANT_ADD(event, SQ_DRAINED) { "SQ_DRAINED", IBV_EVENT_SQ_DRAINED, OF_QP };
FIXTURE_VARIANT_ADD(event, PATH_MIG) { "PATH_MIG", IBV_EVENT_PATH_MIG, OF_QP };
FIXTURE_VARIANT_ADD(event, PATH_MIG_ERR) { "PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR, OF_QP };

FIXTURE_VARIANT_ADD(event, QP_LAST_WQE_REACHED) {
	"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED, OF_QP
};

FIXTURE_VARIANT_ADD(event, SRQ_ERR) { "SRQ_ERR", IBV_EVENT_SRQ_ERR, OF_SRQ };

FIXTURE_VARIANT_ADD(event, SRQ_LIMIT_REACHED) {
	"SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED, OF_SRQ
};

FIXTURE_VARIANT_ADD(event, PORT_ACTIVE) { "PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE, OF_PORT };
FIXTURE_VARIANT_ADD(event, PORT_ERR) { "PORT_ERR", IBV_EVENT_PORT_ERR, OF_PORT };
FIXTURE_VARIANT_ADD(event, LID_CHANGE) { "LID_CHANGE", IBV_EVENT_LID_CHANGE, OF_PORT };
FIXTURE_VARIANT_ADD(event, PKEY_CHANGE) { "PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE, OF_PORT };
FIXTURE_VARIANT_ADD(event, SM_CHANGE) { "SM_CHANGE", IBV_EVENT_SM_CHANGE, OF_PORT };

FIXTURE_VARIANT_ADD(event, CLIENT_REREGISTER) {
	"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER, OF_PORT
};

FIXTURE_VARIANT_ADD(event, GID_CHANGE) { "GID_CHANGE", IBV_EVENT_GID_CHANGE, OF_PORT };

FIXTURE_SETUP(event)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	opts.srq = true;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
}

FIXTURE_TEARDOWN(event)
{
	pair_close(_metadata, &self->p);
}

TEST_F(event, comes_as_it_was_injected)
{
	struct ibv_async_event event;
	struct end *a = self->a;

	switch (variant->of) {
	case OF_QP:
		ASSERT_EQ(0, orderf(0, "inject", "event type=%s number=%u", variant->name,
				    a->qp->qp_num));
		break;
	case OF_CQ:
		ASSERT_EQ(0, orderf(0, "inject", "event type=%s number=%u", variant->name,
				    a->scq->handle));
		break;
	case OF_SRQ:
		ASSERT_EQ(0, orderf(0, "inject", "event type=%s number=%u", variant->name,
				    a->srq->handle));
		break;
	case OF_PORT:
		ASSERT_EQ(0, orderf(0, "inject", "event type=%s", variant->name));
		break;
	}
	ASSERT_TRUE(async_event(a->ctx, &event));
	EXPECT_EQ(variant->type, event.event_type);
	switch (variant->of) {
	case OF_QP:
		EXPECT_EQ(a->qp, event.element.qp);
		break;
	case OF_CQ:
		EXPECT_EQ(a->scq, event.element.cq);
		break;
	case OF_SRQ:
		EXPECT_EQ(a->srq, event.element.srq);
		break;
	case OF_PORT:
		EXPECT_EQ(1, event.element.port_num);
		break;
	}
	EXPECT_FALSE(readable(a->ctx->async_fd, 0));
}

/* Whatever else is unread, of up and down the last is read last. */
TEST(other_events_of_a_port_do_not_change_the_order_of_up_and_down)
{
	struct ibv_context *ctx = open_vhca(_metadata, 0);
	struct ibv_async_event event;
	enum ibv_event_type last = IBV_EVENT_GID_CHANGE;
	int n = 0;

	ASSERT_EQ(0, order(0, "inject", "event type=PORT_ACTIVE"));
	ASSERT_EQ(0, order(0, "inject", "event type=PORT_ERR"));
	ASSERT_EQ(0, order(0, "inject", "event type=LID_CHANGE"));
	ASSERT_EQ(0, order(0, "inject", "event type=SM_CHANGE"));
	while (n < 4 && async_event(ctx, &event)) {
		n++;
		if (event.event_type == IBV_EVENT_PORT_ERR ||
		    event.event_type == IBV_EVENT_PORT_ACTIVE)
			last = event.event_type;
	}
	EXPECT_EQ(4, n);
	EXPECT_EQ(IBV_EVENT_PORT_ERR, last);
	EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST(the_device_says_that_it_is_dead)
{
	struct ibv_context *ctx = open_vhca(_metadata, 1);
	struct ibv_async_event event;

	ASSERT_EQ(0, order(1, "inject", "event type=DEVICE_FATAL"));
	ASSERT_TRUE(async_event(ctx, &event));
	EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
	EXPECT_EQ(0, ibv_close_device(ctx));
	ASSERT_TRUE(rebind(1));
}

/* With things held and delayed everywhere. */
static void break_by_rule(struct __test_metadata *_metadata, const struct pair_opts *opts)
{
	struct ibv_async_event event;
	struct pair p;
	int i;

	pair_open(_metadata, &p, opts);
	ASSERT_LT(0, plan(1, "qp=%u nth=3 break\nqp=%u nth=5 delay wqe\ndelay cqe",
			  p.end[0].qp->qp_num, p.end[0].qp->qp_num));
	ASSERT_EQ(0, order(1, "hold", "hold eqe"));
	ASSERT_EQ(0, order(1, "hold", "hold msix"));
	ASSERT_EQ(0, ibv_req_notify_cq(p.end[1].rcq, 0));
	for (i = 0; i < 8; i++) {
		/* Soon there is nobody any more who would take it. */
		post_recv(&p.end[1], i, 0, 64);
		post_send(&p.end[0], i, 0, 64, IBV_SEND_SIGNALED);
	}
	ASSERT_TRUE(async_event(p.end[0].ctx, &event));
	ASSERT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
}

TEST(a_rule_breaks_the_function_and_the_driver_binds_anew)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct pair p;
	int status;
	pid_t pid;

	opts.function[0] = 1;
	opts.function[1] = 1;
	ASSERT_EQ(0, order(1, "faults", "clear"));
	pid = fork();
	if (!pid) {
		break_by_rule(_metadata, &opts);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* Nothing of all that keeps the driver from a new start, and the plan stays. */
	ASSERT_TRUE(rebind(1));
	EXPECT_EQ(3, rules(1));
	ASSERT_EQ(0, order(1, "faults", "clear"));
	ASSERT_EQ(0, order(1, "hold", "release all"));
	pair_open(_metadata, &p, &opts);
	exchange(_metadata, &p.end[0], &p.end[1], 1000, 1);
	pair_close(_metadata, &p);
}

TEST_HARNESS_MAIN
