// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sending half of a QP: fetches send WQEs, checks them, sends
 * their requests to the responder, handles its answers, completes.
 *
 * A WQE is read once, into send.wqe; what user space writes to the ring
 * afterwards changes nothing.
 */
#include "vdev.h"

/* A long message goes in slices of this many bytes, so that others get a turn. */
#define SLICE		65536

/* What the WQE of an opcode is made of, and which way its data goes. */
#define FORM_OUT	BIT(0)	/* data goes out: SGEs or inline payload */
#define FORM_IN		BIT(1)	/* data comes in: SGEs that may be written */
#define FORM_IMM	BIT(2)	/* immediate data in the control segment */
#define FORM_RADDR	BIT(3)	/* a remote address segment */
#define FORM_ATOMIC	BIT(4)	/* an atomic segment */

static const u8 send_forms[] = {
	[VHCA_OP_RDMA_WRITE]	 = FORM_OUT | FORM_RADDR,
	[VHCA_OP_RDMA_WRITE_IMM] = FORM_OUT | FORM_RADDR | FORM_IMM,
	[VHCA_OP_SEND]		 = FORM_OUT,
	[VHCA_OP_SEND_IMM]	 = FORM_OUT | FORM_IMM,
	[VHCA_OP_RDMA_READ]	 = FORM_IN | FORM_RADDR,
	[VHCA_OP_ATOMIC_CS]	 = FORM_IN | FORM_RADDR | FORM_ATOMIC,
	[VHCA_OP_ATOMIC_FA]	 = FORM_IN | FORM_RADDR | FORM_ATOMIC,
};

/*
 * A WQE is begun when the one before it has ended, so that a fence has nothing to
 * wait for, and one RDMA READ or atomic at a time is within every limit but zero.
 */
#define WQE_FLAGS	(VHCA_WQE_SOLICITED | VHCA_WQE_SIGNALED | VHCA_WQE_FENCE)

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

	if (status == VHCA_CQE_SUCCESS && send->form & FORM_IN)
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
	vdev_qp_fail(qp, 0);
}

/* Basic blocks posted and not completed; more than the ring has: -1. */
static int send_posted(struct vdev_qp *qp)
{
	/* Index before WQE; pairs with the library's barrier between the two. */
	u16 pi = be32_to_cpu(smp_load_acquire(&qp->dbr->sq_pi));
	u16 n = pi - qp->send.ci;

	return n <= 1 << qp->sq_shift ? n : -1;
}

/* Copy the WQE's control segment, and take its length from the copy. */
static u32 send_fetch_ctrl(struct vdev_qp *qp, struct vhca_wqe_ctrl *ctrl, int posted)
{
	u32 slot = qp->send.ci & ((1u << qp->sq_shift) - 1);
	u32 ds;

	memcpy(ctrl, qp->buf.addr + ((size_t)slot << VHCA_WQEBB_SHIFT), sizeof(*ctrl));
	ds = be32_to_cpu(ctrl->qpn_ds) & VHCA_WQE_DS_MASK;
	/* The slot counts as one basic block when the length makes no sense. */
	if (!ds || ds > VHCA_WQE_MAX_SEGS || DIV_ROUND_UP(ds, 4) > posted)
		ds = 0;
	qp->send.nbb = max(DIV_ROUND_UP(ds, 4), 1u);
	return ds;
}

/* Copy what follows the control segment, around the end of the ring. */
static void send_fetch_segs(struct vdev_qp *qp, u32 nsegs)
{
	u32 ring = VHCA_WQEBB_SIZE << qp->sq_shift;
	u32 at = ((qp->send.ci << VHCA_WQEBB_SHIFT) & (ring - 1)) + VHCA_WQE_SEG_SIZE;
	u32 len = nsegs * VHCA_WQE_SEG_SIZE;
	u32 n = min(len, ring - at);

	memcpy(qp->send.wqe, qp->buf.addr + at, n);
	memcpy(qp->send.wqe + n, qp->buf.addr, len - n);
}

/* The form of an opcode, 0 when there is no such opcode. */
static u8 send_form(u8 opcode)
{
	return opcode < ARRAY_SIZE(send_forms) ? send_forms[opcode] : 0;
}

static bool send_head_ok(struct vdev_qp *qp, const struct vhca_wqe_ctrl *ctrl)
{
	return be32_to_cpu(ctrl->idx_opcode) >> VHCA_WQE_IDX_SHIFT == qp->send.ci &&
	       be32_to_cpu(ctrl->qpn_ds) >> VHCA_WQE_QPN_SHIFT == qp->qpn &&
	       !(ctrl->flags & ~WQE_FLAGS) &&
	       !ctrl->signature && !ctrl->rsvd[0] && !ctrl->rsvd[1] &&
	       (!ctrl->imm || qp->send.form & FORM_IMM);
}

/* Make a list of the segments, or of the inline payload that is there instead. */
static bool send_parse_payload(struct vdev_qp *qp, const void *at, u32 nsegs)
{
	struct vdev_send *send = &qp->send;
	const struct vhca_wqe_data *seg = at;
	u32 count = nsegs ? be32_to_cpu(seg->byte_count) : 0;

	if (!(count & VHCA_WQE_INLINE))
		return vdev_sgl_init(&send->sgl, qp->dev, qp->pd,
				     send->form & FORM_IN ? VHCA_MKEY_LOCAL_WRITE : 0,
				     seg, nsegs);
	count &= ~VHCA_WQE_INLINE;
	if (!(send->form & FORM_OUT) || count > VHCA_MAX_INLINE ||
	    DIV_ROUND_UP(count + sizeof(struct vhca_wqe_inline),
			 VHCA_WQE_SEG_SIZE) != nsegs)
		return false;
	send->sgl = (struct vdev_sgl){
		.inl = at + sizeof(struct vhca_wqe_inline),
		.length = count,
	};
	return true;
}

/* Read the copied segments, one after the other; false when they are malformed. */
static bool send_parse(struct vdev_qp *qp, u32 nsegs)
{
	struct vdev_send *send = &qp->send;
	const void *at = send->wqe;

	if (send->form & FORM_RADDR) {
		const struct vhca_wqe_raddr *raddr = at;

		if (!nsegs-- || raddr->rsvd)
			return false;
		send->raddr = be64_to_cpu(raddr->addr);
		send->rkey = be32_to_cpu(raddr->rkey);
		at += VHCA_WQE_SEG_SIZE;
	}
	if (send->form & FORM_ATOMIC) {
		const struct vhca_wqe_atomic *atomic = at;

		if (!nsegs-- || (send->opcode == VHCA_OP_ATOMIC_FA && atomic->compare))
			return false;
		send->swap_add = be64_to_cpu(atomic->swap_add);
		send->compare = be64_to_cpu(atomic->compare);
		at += VHCA_WQE_SEG_SIZE;
	}
	return send_parse_payload(qp, at, nsegs);
}

/* May the parsed WQE be executed? The status that says why not, and *@verr. */
static u8 send_check(struct vdev_qp *qp, u8 *verr)
{
	struct vdev_send *send = &qp->send;

	if (send->sgl.length > VDEV_MAX_MSG ||
	    (send->form & FORM_ATOMIC && send->sgl.length != VHCA_ATOMIC_SIZE)) {
		*verr = VHCA_VERR_MSG_SIZE;
		return VHCA_CQE_LOC_LEN_ERR;
	}
	if (send->form & FORM_IN && !qp->attr.max_rd_atomic) {
		*verr = VHCA_VERR_RD_ATOMIC;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	if (!vdev_sgl_check(&send->sgl)) {
		*verr = send->sgl.verr;
		return VHCA_CQE_LOC_PROT_ERR;
	}
	return VHCA_CQE_SUCCESS;
}

/* Take the next WQE in hand; false when it is at fault and was completed so. */
static bool send_start(struct vdev_qp *qp, int posted)
{
	struct vdev_send *send = &qp->send;
	struct vhca_wqe_ctrl ctrl;
	u32 ds = send_fetch_ctrl(qp, &ctrl, posted);
	u8 status = VHCA_CQE_LOC_QP_OP_ERR;
	u8 verr = VHCA_VERR_NONE;

	send->flags = ctrl.flags;
	send->imm = ctrl.imm;
	send->opcode = be32_to_cpu(ctrl.idx_opcode);
	send->form = send_form(send->opcode);
	send->offset = 0;
	if (!ds || !send_head_ok(qp, &ctrl)) {
		verr = VHCA_VERR_WQE_HEAD;
	} else if (!send->form) {
		verr = VHCA_VERR_WQE_OPCODE;
	} else {
		send_fetch_segs(qp, ds - 1);
		if (!send_parse(qp, ds - 1))
			verr = VHCA_VERR_WQE_SEG;
		else
			status = send_check(qp, &verr);
	}
	if (status) {
		send_fail(qp, status, verr);
		return false;
	}
	send->busy = true;
	return true;
}

static void send_rnr(struct vdev_qp *qp, u8 timer)
{
	struct vdev_send *send = &qp->send;

	if (qp->attr.rnr_retry < 7 && send->rnr_tries >= qp->attr.rnr_retry) {
		send_fail(qp, VHCA_CQE_RNR_RETRY_EXC_ERR, VHCA_VERR_RNR);
		return;
	}
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

static void send_answer(struct vdev_qp *qp, const struct vdev_request *req,
			const struct vdev_response *resp)
{
	switch (resp->answer) {
	case VDEV_ACK:
		send_acked(qp, req);
		break;
	case VDEV_RNR:
		send_rnr(qp, resp->rnr_timer);
		break;
	case VDEV_NAK_INVALID:
		send_fail(qp, VHCA_CQE_REM_INV_REQ_ERR,
			  qp->send.form & FORM_RADDR ? VHCA_VERR_REMOTE :
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

/* Send the next slice of the message in hand. */
static void send_slice(struct vdev_qp *qp, struct vdev_budget *budget)
{
	struct vdev_send *send = &qp->send;
	struct vdev_response resp = { .answer = VDEV_SILENCE };
	struct vdev *peer = vdev_by_lid(qp->peer_lid);
	u32 mtu = 128u << qp->attr.path_mtu;
	u64 left = send->sgl.length - send->offset;
	bool in = send->form & FORM_IN;
	struct vdev_request req = {
		.opcode = send->opcode,
		.first = in || !send->offset,
		.last = in || left <= SLICE,
		.solicited = send->flags & VHCA_WQE_SOLICITED,
		.slid = vdev_lid(qp->dev),
		.src_qpn = qp->qpn,
		.dest_qpn = be32_to_cpu(qp->attr.dest_qpn),
		.psn = send->psn,
		.length = min_t(u64, left, SLICE),
		.total = left,
		.payload = &send->sgl,
		.imm = send->imm,
		.rkey = send->rkey,
		.raddr = send->raddr + send->offset,
		.swap_add = send->swap_add,
		.compare = send->compare,
	};

	req.packets = max(DIV_ROUND_UP(req.length, mtu), 1u);
	budget->bytes -= req.length;
	if (send->tries || send->rnr_tries)
		vdev_count(qp->dev, VDEV_RETRIES);
	if (peer)
		vdev_respond(peer, &req, &resp);
	send_answer(qp, &req, &resp);
}

static void send_drained(struct vdev_qp *qp)
{
	if (test_and_clear_bit(VDEV_QP_DRAINING, &qp->flags) && qp->attr.sqd_notify)
		vdev_async_event(qp->dev, VHCA_EQE_SQ_DRAINED, qp->qpn);
}

/* Complete what is posted to a QP in error; true when the budget ended it. */
static bool send_flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	struct vhca_wqe_ctrl ctrl;
	int posted;

	while ((posted = send_posted(qp)) > 0) {
		if (budget->wqes-- <= 0)
			return true;
		send_fetch_ctrl(qp, &ctrl, posted);
		send_complete(qp, VHCA_CQE_WR_FLUSH_ERR, VHCA_VERR_STATE);
	}
	return false;
}

static bool flush(struct vdev_qp *qp, struct vdev_budget *budget)
{
	bool more = send_flush(qp, budget);

	mutex_lock(&qp->recv.lock);
	more |= vdev_responder_flush(qp, budget);
	mutex_unlock(&qp->recv.lock);
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
	if ((READ_ONCE(qp->send_cq->error) || READ_ONCE(qp->recv_cq->error)) &&
	    qp->state != VHCA_QP_RESET && qp->state != VHCA_QP_ERR)
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
}

bool vdev_requester_run(struct vdev_qp *qp, struct vdev_budget *budget)
{
	send_check_cqs(qp);
	while (send_may_go(qp) && !test_bit(VDEV_QP_WAITING, &qp->flags)) {
		if (!qp->send.busy) {
			int posted = send_posted(qp);

			if (!posted)
				return false;
			if (posted < 0) {
				vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
				break;
			}
			if (budget->wqes-- <= 0)
				return true;
			if (!send_start(qp, posted))
				break;
		}
		if (qp->send.tries > qp->attr.retry_cnt) {
			send_fail(qp, VHCA_CQE_RETRY_EXC_ERR, VHCA_VERR_NO_PEER);
			break;
		}
		if (budget->bytes <= 0)
			return true;
		send_slice(qp, budget);
		cond_resched();
	}
	if (READ_ONCE(qp->state) == VHCA_QP_ERR)
		return flush(qp, budget);
	return false;
}
