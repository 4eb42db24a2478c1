// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sending half of a QP: sends the requests of send WQEs to the responder,
 * handles its answers, completes. UC and UD have no answers: what was sent is done.
 */
#include "vdev.h"

/* A long message goes in slices of this many bytes, so that others get a turn. */
#define SLICE		65536

/* A datagram is worth so many bytes at least, whoever takes it. */
#define OFFER		1024u

/* Responder's RNR timer, by its encoding, in units of 10 us. */
static const u32 rnr_time[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

static void send_wait_ns(struct vdev_qp *qp, u64 ns)
{
	set_bit(VDEV_QP_WAITING, &qp->flags);
	hrtimer_start(&qp->send.timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* The WQE in hand is done; write its CQE when there is to be one. */
static void send_complete(struct vdev_qp *qp, u8 status, u8 verr)
{
	struct vdev_send *send = &qp->send;
	struct vhca_cqe cqe = {
		.flags_qpn = cpu_to_be32(qp->qpn),
		.wqe_index = cpu_to_be16(send->ci),
		.status = status,
		.vendor_err = verr,
		.opcode = VHCA_CQE_REQ,
	};

	if (status == VHCA_CQE_SUCCESS && send->form & VDEV_FORM_IN)
		cqe.byte_len = cpu_to_be32(send->sgl.length);
	send->ci += send->nbb;
	send->busy = false;
	send->tries = 0;
	send->rnr_tries = 0;
	vdev_count(qp->dev, VDEV_WQES);
	if (status == VHCA_CQE_SUCCESS && !(send->flags & VHCA_WQE_SIGNALED))
		return;
	if (!vdev_cq_post(qp->send_cq, &cqe))
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
}

static void send_fail(struct vdev_qp *qp, u8 status, u8 verr)
{
	send_complete(qp, status, verr);
	vdev_qp_fail_send(qp);
}

/* Take the next WQE in hand; false when it is at fault and was completed so. */
static bool send_start(struct vdev_qp *qp, int posted)
{
	u8 verr = VHCA_VERR_NONE;
	u8 status = vdev_send_fetch(qp, posted, &verr);

	if (status) {
		send_fail(qp, status, verr);
		return false;
	}
	qp->send.busy = true;
	return true;
}

/*
 * A rule of the plan may have its way with the WQE in hand. False when it is to be
 * executed now, all the same.
 */
static bool send_faulted(struct vdev_qp *qp)
{
	struct vdev_hit hit;
	u64 now;

	if (!vdev_fault_wqe(qp, &hit))
		return false;
	switch (hit.action) {
	case VDEV_COMPLETE:
		send_complete(qp, hit.status, hit.verr);
		if (hit.status)
			vdev_qp_fail_send(qp);
		return true;
	case VDEV_FATAL:
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
		return true;
	case VDEV_DELAY:
	case VDEV_SLOW:
		now = ktime_get_ns();
		if (hit.until <= now)
			return false;
		vdev_gate_delay(qp, hit.rule);
		if (hit.until == VDEV_FOREVER)
			set_bit(VDEV_QP_WAITING, &qp->flags);
		else
			send_wait_ns(qp, hit.until - now);
		return true;
	default:
		return false;
	}
}

/* What concerns nobody but this QP takes effect before the next WQE is begun. */
static void send_local(struct vdev_qp *qp)
{
	struct vdev_send *send = &qp->send;
	u8 verr;

	if (send->form & VDEV_FORM_BIND)
		verr = vdev_mw_bind(qp, &send->bind);
	else
		verr = vdev_mw_invalidate(qp, qp->pd, be32_to_cpu(send->imm));
	if (verr)
		send_fail(qp, VHCA_CQE_MW_BIND_ERR, verr);
	else
		send_complete(qp, VHCA_CQE_SUCCESS, VHCA_VERR_NONE);
}

static void send_rnr(struct vdev_qp *qp, u8 timer)
{
	struct vdev_send *send = &qp->send;

	if (qp->attr.rnr_retry < 7 && send->rnr_tries >= qp->attr.rnr_retry) {
		send_fail(qp, VHCA_CQE_RNR_RETRY_EXC_ERR, VHCA_VERR_RNR);
		return;
	}
	send->tries = 0;
	if (send->rnr_tries < U8_MAX)
		send->rnr_tries++;
	send_wait_ns(qp, (u64)rnr_time[timer & 31] * 10 * NSEC_PER_USEC);
}

/* No answer. The next request waits for the timer; without one, for ever. */
static void send_silence(struct vdev_qp *qp)
{
	qp->send.tries++;
	if (qp->attr.timeout)
		send_wait_ns(qp, 4096ull << qp->attr.timeout);
	else
		set_bit(VDEV_QP_WAITING, &qp->flags);
}

static void send_acked(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_send *send = &qp->send;

	send->psn = (send->psn + req->packets) & VHCA_QPN_MASK;
	send->offset += req->length;
	send->tries = 0;
	send->rnr_tries = 0;
	if (send->offset == send->sgl.length)
		send_complete(qp, VHCA_CQE_SUCCESS, VHCA_VERR_NONE);
}

/* Does the responder answer? */
static bool send_reliable(const struct vdev_qp *qp)
{
	return qp->type == VHCA_PRM_QPT_RC || qp->type == VHCA_PRM_QPT_XRC_SEND;
}

static void send_answer(struct vdev_qp *qp, const struct vdev_request *req,
			const struct vdev_response *resp)
{
	u8 answer = resp->answer;

	/* What is wrong at this end, the requester knows without being told. */
	if (!send_reliable(qp) && answer != VDEV_LOCAL)
		answer = VDEV_ACK;
	switch (answer) {
	case VDEV_ACK:
		send_acked(qp, req);
		break;
	case VDEV_RNR:
		send_rnr(qp, resp->rnr_timer);
		break;
	case VDEV_NAK_INVALID:
		send_fail(qp, VHCA_CQE_REM_INV_REQ_ERR,
			  qp->send.form & VDEV_FORM_RADDR ? VHCA_VERR_REMOTE :
							    VHCA_VERR_RQ_SIZE);
		break;
	case VDEV_NAK_ACCESS:
		send_fail(qp, VHCA_CQE_REM_ACCESS_ERR, VHCA_VERR_REMOTE_KEY);
		break;
	case VDEV_NAK_OP:
		send_fail(qp, VHCA_CQE_REM_OP_ERR, VHCA_VERR_RQ_WQE);
		break;
	case VDEV_LOCAL:
		send_fail(qp, VHCA_CQE_LOC_PROT_ERR, qp->send.sgl.verr);
		break;
	case VDEV_SILENCE:
		send_silence(qp);
		break;
	}
}

/* The next slice of the message in hand, but for its address. */
static struct vdev_request send_request(struct vdev_qp *qp)
{
	struct vdev_send *send = &qp->send;
	u64 left = send->sgl.length - send->offset;
	bool in = send->form & VDEV_FORM_IN;

	return (struct vdev_request){
		.service = qp->type,
		.opcode = send->opcode,
		.first = in || !send->offset,
		.last = in || left <= SLICE,
		.solicited = send->flags & VHCA_WQE_SOLICITED,
		.slid = vdev_lid(qp->dev),
		.src_qpn = qp->qpn,
		.srqn = send->srqn,
		.psn = send->psn,
		.packets = 1,
		.length = min_t(u64, left, SLICE),
		.total = left,
		.payload = &send->sgl,
		.imm = send->imm,
		.rkey = send->rkey,
		.raddr = send->raddr + send->offset,
		.swap_add = send->swap_add,
		.compare = send->compare,
	};
}

static void send_datagram(struct vdev_qp *qp, struct vdev_budget *budget)
{
	struct vdev_response resp = { .answer = VDEV_SILENCE };
	struct vdev_request req = send_request(qp);

	if (vdev_faults())
		vdev_trip(qp, &req, &resp, vdev_send_datagram);
	else
		vdev_send_datagram(qp, &req, &resp);
	/* The many that hear it are worth as many messages. */
	budget->bytes -= max(resp.heard, 1u) * max(req.length, OFFER);
	send_answer(qp, &req, &resp);
}

static void send_to_peer(struct vdev_qp *qp, struct vdev_request *req,
			 struct vdev_response *resp)
{
	struct vdev *peer = vdev_by_lid(qp->peer_lid);

	if (peer)
		vdev_respond(peer, &qp->send.peer, req, resp);
}

/*
 * Send the next slice of the message in hand. Whether the one before has moved the position
 * in the payload is not known: its answer may have been lost, and what the responder takes
 * for a duplicate is only acknowledged.
 */
static inline void send_slice(struct vdev_qp *qp, struct vdev_budget *budget)
{
	struct vdev_send *send = &qp->send;
	struct vdev_response resp = { .answer = VDEV_SILENCE };
	u32 mtu_shift = 7 + qp->attr.path_mtu;		/* 1 is 256 bytes */
	struct vdev_request req = send_request(qp);
	bool again = send->tries || send->rnr_tries;

	req.sl = qp->attr.sl;
	req.dest_qpn = be32_to_cpu(qp->attr.dest_qpn);
	req.packets = req.length ? ((req.length - 1) >> mtu_shift) + 1 : 1;
	budget->bytes -= req.length;
	if (again)
		vdev_count(qp->dev, VDEV_RETRIES);
	if (again || send->offset)
		vdev_sgl_seek(&send->sgl, send->offset);
	if (vdev_faults())
		vdev_trip(qp, &req, &resp, send_to_peer);
	else
		send_to_peer(qp, &req, &resp);
	send_answer(qp, &req, &resp);
}

static void send_drained(struct vdev_qp *qp)
{
	if (test_and_clear_bit(VDEV_QP_DRAINING, &qp->flags) && qp->attr.sqd_notify)
		vdev_async_event(qp->dev, VHCA_EQE_SQ_DRAINED, qp->qpn);
}

bool vdev_requester_flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	int posted;

	while ((posted = vdev_send_posted(qp)) > 0) {
		if (budget->wqes-- <= 0)
			return true;
		vdev_send_measure(qp, posted);
		send_complete(qp, VHCA_CQE_WR_FLUSH_ERR, VHCA_VERR_STATE);
		cond_resched();
	}
	return false;
}

/* In error both queues are flushed, in the send queue error state the one. */
static bool flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	u8 state = READ_ONCE(qp->state);
	bool more = false;

	if (state == VHCA_QP_ERR || state == VHCA_QP_SQE)
		more = vdev_requester_flush(qp, budget);
	if (state == VHCA_QP_ERR) {
		mutex_lock(&qp->recv.lock);
		more |= vdev_recv_flush(qp, budget);
		mutex_unlock(&qp->recv.lock);
	}
	return more;
}

/* May the requester start a WQE, or go on with the one in hand? */
static bool send_may_go(struct vdev_qp *qp)
{
	u8 state = READ_ONCE(qp->state);

	if (state == VHCA_QP_SQD && !qp->send.busy)
		send_drained(qp);
	return state == VHCA_QP_RTS || (state == VHCA_QP_SQD && qp->send.busy);
}

static void send_check_cqs(struct vdev_qp *qp)
{
	if ((vdev_cq_failed(qp->send_cq) || vdev_cq_failed(qp->recv_cq)) &&
	    qp->state != VHCA_QP_RESET && qp->state != VHCA_QP_ERR)
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
}

bool vdev_requester_run(struct vdev_qp *qp, struct vdev_budget *budget)
{
	struct vdev_send *send = &qp->send;

	send_check_cqs(qp);
	if (send->busy)
		vdev_sgl_again(&send->sgl);
	while (send_may_go(qp) && !test_bit(VDEV_QP_WAITING, &qp->flags)) {
		if (!send->busy) {
			int posted = vdev_send_posted(qp);

			if (!posted)
				return false;
			if (posted < 0) {
				vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
				break;
			}
			if (budget->wqes-- <= 0)
				return true;
			if (vdev_faults() && !vdev_gate_wqe(qp))
				return false;
			if (!send_start(qp, posted))
				break;
			if (vdev_faults() && send_faulted(qp))
				continue;
		}
		/* What a rule delayed is a WQE like others now. */
		if (vdev_faults())
			send->delay_rule = 0;
		if (send->form & VDEV_FORM_LOCAL) {
			send_local(qp);
			continue;
		}
		if (send->tries > qp->attr.retry_cnt) {
			send_fail(qp, VHCA_CQE_RETRY_EXC_ERR, VHCA_VERR_NO_PEER);
			break;
		}
		if (budget->bytes <= 0)
			return true;
		if (send->form & VDEV_FORM_DGRAM)
			send_datagram(qp, budget);
		else
			send_slice(qp, budget);
		/* A call once a message, were it not asked for. */
		if (need_resched())
			cond_resched();
	}
	return flush(qp, budget);
}
