// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving half of a QP: checks a request, moves its payload to where the
 * receive WQE or the remote key says, or the other way, completes the receive.
 *
 * It knows the requester only by the request, which might as well have come from
 * another host.
 */
#include "vdev.h"

/* Is the request from the QP that this one is connected to? */
static bool recv_connected(const struct vdev_qp *qp, const struct vdev_request *req)
{
	return be32_to_cpu(qp->attr.dest_qpn) == req->src_qpn &&
	       qp->peer_lid == req->slid;
}

/* Is it what comes next? UC: a new message may, whatever came before it was lost. */
static bool recv_in_order(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;

	if (qp->type == VHCA_PRM_QPT_UC && req->first) {
		recv->psn = req->psn;
		recv->busy = false;
	}
	if (req->psn == recv->psn && req->first == !recv->busy)
		return true;
	if (qp->type == VHCA_PRM_QPT_UC)
		recv->busy = false;
	return false;
}

/* In a state in which a QP receives, and of the type that the requester's speaks with? */
static bool recv_serves(const struct vdev_qp *qp, const struct vdev_request *req)
{
	u8 service = req->service == VHCA_PRM_QPT_XRC_SEND ? VHCA_PRM_QPT_XRC_RECV :
							     req->service;

	switch (qp->state) {
	case VHCA_QP_RTR:
	case VHCA_QP_RTS:
	case VHCA_QP_SQD:
	case VHCA_QP_SQE:
		return qp->type == service;
	default:
		return false;
	}
}

/*
 * The peer asked for what it may not have, and no receive says so here. UC: the rest
 * of the message is dropped.
 */
static u8 recv_nak(struct vdev_qp *qp, u8 answer)
{
	if (qp->type == VHCA_PRM_QPT_UC) {
		qp->recv.busy = false;
		return VDEV_SILENCE;
	}
	vdev_qp_fail(qp, answer == VDEV_NAK_ACCESS ? VHCA_EQE_QP_ACCESS_ERR :
						     VHCA_EQE_QP_REQ_ERR);
	return answer;
}

/* A request was executed: on to the next PSN. */
static u8 recv_advance(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;

	recv->offset += req->length;
	recv->psn = (recv->psn + req->packets) & VHCA_QPN_MASK;
	recv->busy = !req->last;
	return VDEV_ACK;
}

/* A receive WQE for the message that begins; VDEV_ACK when there is one. */
static u8 recv_ready(struct vdev_qp *qp, const struct vdev_request *req,
		     struct vdev_response *resp)
{
	u8 answer = vdev_recv_take(qp, req);

	if (answer != VDEV_RNR)
		return answer;
	if (qp->type == VHCA_PRM_QPT_UC)
		return VDEV_SILENCE;
	vdev_count(qp->dev, VDEV_RNR_NAKS);
	resp->rnr_timer = qp->attr.min_rnr_timer;
	return VDEV_RNR;
}

/*
 * Does the CQE take the message along? Only a whole one, and only where software finds
 * the memory of every segment by its address, to copy it there.
 */
static bool recv_in_cqe(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_sgl sgl = qp->recv.sgl;

	if (!req->first || !req->last || !req->length || req->length > VHCA_CQE_PAYLOAD)
		return false;
	sgl.access |= VHCA_MKEY_VIRTUAL;
	return vdev_sgl_check(&sgl);
}

static struct vdev_sgl *recv_to_cqe(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl to = { .inl = recv->payload };
	struct vdev_sgl *bad;

	memset(recv->payload, 0, sizeof(recv->payload));
	bad = vdev_sgl_copy(qp->dev, &to, req->payload, req->length);
	recv->in_cqe = !bad;
	return bad;
}

/* To where the segments of the receive WQE say, or to its CQE. */
static struct vdev_sgl *recv_move(struct vdev_qp *qp, const struct vdev_request *req)
{
	if (qp->create_flags & VHCA_QPF_SCATTER_CQE && recv_in_cqe(qp, req))
		return recv_to_cqe(qp, req);
	return vdev_sgl_copy(qp->dev, &qp->recv.sgl, req->payload, req->length);
}

/* All of a SEND is there. What it invalidates is invalid before its completion is seen. */
static u8 recv_send_end(struct vdev_qp *qp, const struct vdev_request *req)
{
	u8 verr = VHCA_VERR_NONE;

	if (req->opcode == VHCA_OP_SEND_INV)
		verr = vdev_mw_invalidate(qp, qp->recv.pd, be32_to_cpu(req->imm));
	if (verr)
		return vdev_recv_fail(qp, req, VHCA_CQE_REM_INV_REQ_ERR, verr,
				      VDEV_NAK_ACCESS);
	return vdev_recv_done(qp, req);
}

/* Move the payload of a SEND; enum vdev_answer. */
static u8 recv_payload(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl *bad;

	if (recv->offset + req->length > recv->sgl.length)
		return vdev_recv_fail(qp, req, VHCA_CQE_LOC_LEN_ERR, VHCA_VERR_RQ_SIZE,
				      VDEV_NAK_INVALID);
	/*
	 * A request that failed by its sender's key may have moved the position, and not the
	 * offset, by which the length was checked.
	 */
	if (!req->first)
		vdev_sgl_seek(&recv->sgl, recv->offset);
	bad = recv_move(qp, req);
	if (bad == req->payload)
		return VDEV_LOCAL;
	if (bad)
		return vdev_recv_fail(qp, req, VHCA_CQE_LOC_PROT_ERR, bad->verr,
				      VDEV_NAK_OP);
	recv_advance(qp, req);
	return req->last ? recv_send_end(qp, req) : VDEV_ACK;
}

static u8 recv_send(struct vdev_qp *qp, const struct vdev_request *req,
		    struct vdev_response *resp)
{
	if (req->first) {
		u8 answer = recv_ready(qp, req, resp);
		u8 verr;

		if (answer != VDEV_ACK)
			return answer;
		verr = vdev_recv_list(qp);
		if (verr)
			return vdev_recv_fail(qp, req, VHCA_CQE_LOC_QP_OP_ERR, verr,
					      VDEV_NAK_OP);
	}
	return recv_payload(qp, req);
}

/* The right that a request needs: of the QP, and of the key that it brings. */
static u32 recv_right(u8 opcode)
{
	switch (opcode) {
	case VHCA_OP_RDMA_WRITE:
	case VHCA_OP_RDMA_WRITE_IMM:
		return VHCA_MKEY_REMOTE_WRITE;
	case VHCA_OP_RDMA_READ:
		return VHCA_MKEY_REMOTE_READ;
	case VHCA_OP_ATOMIC_CS:
	case VHCA_OP_ATOMIC_FA:
		return VHCA_MKEY_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

/* A list of what a remote key names; recv_remote_end() is due unless it gives no access. */
static bool recv_remote(struct vdev_qp *qp, u8 opcode, u32 rkey, u64 addr, u64 len,
			struct vdev_sgl *sgl)
{
	*sgl = (struct vdev_sgl){ .raddr = addr, .length = len };
	/* The key of nothing is not looked at. */
	if (!len)
		return true;
	sgl->mkey = vdev_mkey_enter(qp, rkey, recv_right(opcode), addr, len);
	return sgl->mkey;
}

static void recv_remote_end(struct vdev_sgl *sgl)
{
	if (sgl->mkey)
		vdev_mkey_leave(sgl->mkey);
}

/* All of the message is checked before any of it is written. */
static u8 recv_write_begin(struct vdev_qp *qp, const struct vdev_request *req,
			   struct vdev_response *resp)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl all;

	if (req->total > VDEV_MAX_MSG)
		return recv_nak(qp, VDEV_NAK_INVALID);
	if (!recv_remote(qp, req->opcode, req->rkey, req->raddr, req->total, &all))
		return recv_nak(qp, VDEV_NAK_ACCESS);
	recv_remote_end(&all);
	recv->rkey = req->rkey;
	recv->raddr = req->raddr;
	recv->left = req->total;
	return req->opcode == VHCA_OP_RDMA_WRITE_IMM ? recv_ready(qp, req, resp) : VDEV_ACK;
}

static u8 recv_write(struct vdev_qp *qp, const struct vdev_request *req,
		     struct vdev_response *resp)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_sgl to, *bad;

	if (req->first) {
		u8 answer = recv_write_begin(qp, req, resp);

		if (answer != VDEV_ACK)
			return answer;
	}
	if (req->length > recv->left || (req->last && req->length < recv->left))
		return recv_nak(qp, VDEV_NAK_INVALID);
	if (!recv_remote(qp, req->opcode, recv->rkey, recv->raddr, req->length, &to))
		return recv_nak(qp, VDEV_NAK_ACCESS);
	bad = vdev_sgl_copy(qp->dev, &to, req->payload, req->length);
	recv_remote_end(&to);
	if (bad)
		return VDEV_LOCAL;
	recv->raddr += req->length;
	recv->left -= req->length;
	recv_advance(qp, req);
	if (req->last && req->opcode == VHCA_OP_RDMA_WRITE_IMM)
		return vdev_recv_done(qp, req);
	return VDEV_ACK;
}

/* Each request names all that is still to be read, and gets the first of it. */
static u8 recv_read_data(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_sgl from, *bad;

	if (req->total > VDEV_MAX_MSG || req->length > req->total)
		return recv_nak(qp, VDEV_NAK_INVALID);
	if (!recv_remote(qp, req->opcode, req->rkey, req->raddr, req->total, &from))
		return recv_nak(qp, VDEV_NAK_ACCESS);
	bad = vdev_sgl_copy(qp->dev, req->payload, &from, req->length);
	recv_remote_end(&from);
	return bad ? VDEV_LOCAL : VDEV_ACK;
}

static u8 recv_read(struct vdev_qp *qp, const struct vdev_request *req)
{
	u8 answer = recv_read_data(qp, req);

	return answer == VDEV_ACK ? recv_advance(qp, req) : answer;
}

/*
 * The CPU's own instruction, so that it is atomic for every QP of every function,
 * and for programs that have the word mapped. It orders all accesses around it.
 */
static u64 recv_atomic_do(const struct vdev_request *req, void *word)
{
	if (req->opcode == VHCA_OP_ATOMIC_CS)
		return cmpxchg((u64 *)word, req->compare, req->swap_add);
	return atomic64_fetch_add(req->swap_add, (atomic64_t *)word);
}

/* Execute it, with the old value to *@value; enum vdev_answer. */
static u8 recv_atomic_at(struct vdev_qp *qp, const struct vdev_request *req, u64 *value)
{
	u32 len = VHCA_ATOMIC_SIZE;
	u8 answer = VDEV_ACK;
	struct vdev_sgl at;
	void *word;

	if (!recv_remote(qp, req->opcode, req->rkey, req->raddr, len, &at))
		return VDEV_NAK_ACCESS;
	word = vdev_mkey_at(at.mkey, req->raddr, &len);
	/* Its iova may be such that an aligned address is not aligned memory. */
	if (IS_ALIGNED((unsigned long)word, VHCA_ATOMIC_SIZE))
		*value = recv_atomic_do(req, word);
	else
		answer = VDEV_NAK_INVALID;
	recv_remote_end(&at);
	return answer;
}

/* The old value goes back. */
static u8 recv_atomic_answer(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_sgl old = { .inl = &qp->recv.atomic_old, .length = VHCA_ATOMIC_SIZE };
	struct vdev_sgl *bad = vdev_sgl_copy(qp->dev, req->payload, &old, VHCA_ATOMIC_SIZE);

	return bad ? VDEV_LOCAL : VDEV_ACK;
}

static u8 recv_atomic(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	u8 answer;

	if (!IS_ALIGNED(req->raddr, VHCA_ATOMIC_SIZE) || req->length != VHCA_ATOMIC_SIZE)
		return recv_nak(qp, VDEV_NAK_INVALID);
	answer = recv_atomic_at(qp, req, &recv->atomic_old);
	if (answer != VDEV_ACK)
		return recv_nak(qp, answer);
	recv->atomic = true;
	recv->atomic_psn = req->psn;
	answer = recv_atomic_answer(qp, req);
	return answer == VDEV_ACK ? recv_advance(qp, req) : answer;
}

/* Does the QP take such a request, now? */
static inline bool recv_allows(struct vdev_qp *qp, const struct vdev_request *req)
{
	u32 right = recv_right(req->opcode);

	if (!req->first && req->opcode != qp->recv.opcode)
		return false;
	if (right & (VHCA_MKEY_REMOTE_READ | VHCA_MKEY_REMOTE_ATOMIC) &&
	    (qp->type == VHCA_PRM_QPT_UC ||
	     !(req->first && req->last && qp->attr.max_dest_rd_atomic)))
		return false;
	return !(right & ~be32_to_cpu(qp->attr.access));
}

/*
 * Whose keys the message is about, and XRC's receives. The SRQ is looked up anew for
 * each request, as it may go away in between. A WQE in hand that a message has left
 * there is of the SRQ which that message named, and of no use for another one.
 */
static inline bool recv_domain(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_recv *recv = &qp->recv;
	struct vdev_srq *srq;

	recv->pd = qp->pd;
	if (qp->type != VHCA_PRM_QPT_XRC_RECV)
		return true;
	srq = vdev_srq_find(qp->dev, req->srqn);
	if (!srq || srq->xrcd != qp->xrcd ||
	    (!req->first && srq->serial != recv->srq_serial))
		return false;
	if (srq->serial != recv->srq_serial)
		vdev_recv_return(qp);
	recv->srqn = req->srqn;
	recv->srq_serial = srq->serial;
	recv->pd = srq->pd;
	return true;
}

static u8 recv_request(struct vdev_qp *qp, const struct vdev_request *req,
		       struct vdev_response *resp)
{
	if (!recv_allows(qp, req) || !recv_domain(qp, req))
		return recv_nak(qp, VDEV_NAK_INVALID);
	if (req->first) {
		qp->recv.opcode = req->opcode;
		qp->recv.offset = 0;
	}
	switch (req->opcode) {
	case VHCA_OP_SEND:
	case VHCA_OP_SEND_IMM:
	case VHCA_OP_SEND_INV:
		return recv_send(qp, req, resp);
	case VHCA_OP_RDMA_WRITE:
	case VHCA_OP_RDMA_WRITE_IMM:
		return recv_write(qp, req, resp);
	case VHCA_OP_RDMA_READ:
		return recv_read(qp, req);
	case VHCA_OP_ATOMIC_CS:
	case VHCA_OP_ATOMIC_FA:
		return recv_atomic(qp, req);
	default:
		return recv_nak(qp, VDEV_NAK_INVALID);
	}
}

/* Does the requester repeat what was executed, because it heard no answer? */
static bool recv_is_duplicate(const struct vdev_qp *qp, const struct vdev_request *req)
{
	u32 behind = (qp->recv.psn - req->psn) & VHCA_QPN_MASK;

	return qp->type != VHCA_PRM_QPT_UC && behind >= req->packets &&
	       behind <= VHCA_QPN_MASK / 2;
}

/*
 * What changes something is not executed again. A requester has one request out at a
 * time, so that an atomic can only be the last.
 */
static u8 recv_duplicate(struct vdev_qp *qp, const struct vdev_request *req)
{
	const struct vdev_recv *recv = &qp->recv;

	switch (req->opcode) {
	case VHCA_OP_RDMA_READ:
		if (!recv_allows(qp, req) || !recv_domain(qp, req))
			return recv_nak(qp, VDEV_NAK_INVALID);
		return recv_read_data(qp, req);
	case VHCA_OP_ATOMIC_CS:
	case VHCA_OP_ATOMIC_FA:
		if (!recv->atomic || recv->atomic_psn != req->psn)
			return VDEV_SILENCE;
		return recv_atomic_answer(qp, req);
	default:
		return VDEV_ACK;
	}
}

/* True: by a rule, there is no answer to a request that came in. */
static bool recv_faulted(struct vdev_qp *qp, const struct vdev_request *req)
{
	struct vdev_hit hit;

	if (!vdev_fault_recv(qp, VDEV_AT_ARRIVAL, req, &hit))
		return false;
	if (hit.action == VDEV_FATAL)
		vdev_qp_fail(qp, VHCA_EQE_QP_FATAL);
	return true;
}

static void recv_established(struct vdev_qp *qp)
{
	/* Once; and to look first keeps the line of each further message clean. */
	if (qp->state == VHCA_QP_RTR && !test_bit(VDEV_QP_ESTABLISHED, &qp->flags) &&
	    !test_and_set_bit(VDEV_QP_ESTABLISHED, &qp->flags))
		vdev_async_event(qp->dev, VHCA_EQE_COMM_EST, qp->qpn);
}

static u8 recv_message(struct vdev_qp *qp, const struct vdev_request *req,
		       struct vdev_response *resp)
{
	if (!recv_serves(qp, req) || (vdev_faults() && recv_faulted(qp, req)))
		return VDEV_SILENCE;
	if (qp->type == VHCA_PRM_QPT_UD)
		return vdev_recv_datagram(qp, req);
	if (!recv_connected(qp, req))
		return VDEV_SILENCE;
	if (!recv_in_order(qp, req))
		return recv_is_duplicate(qp, req) ? recv_duplicate(qp, req) : VDEV_SILENCE;
	recv_established(qp);
	return recv_request(qp, req, resp);
}

/* UC, UD: nobody will send it again. */
static void recv_dropped(struct vdev *dev, const struct vdev_request *req)
{
	if (req->service == VHCA_PRM_QPT_UC || req->service == VHCA_PRM_QPT_UD)
		vdev_count(dev, VDEV_DROPPED);
}

/* With a link down, at either end, nothing arrives. */
static bool recv_arrives(const struct vdev_qp *qp, const struct vdev_request *req)
{
	const struct vdev *from = vdev_by_lid(req->slid);

	return from && !READ_ONCE(from->link_down) && !READ_ONCE(qp->dev->link_down);
}

void vdev_respond_qp(struct vdev_qp *qp, const struct vdev_request *req,
		     struct vdev_response *resp)
{
	resp->answer = VDEV_SILENCE;
	if (recv_arrives(qp, req)) {
		mutex_lock(&qp->recv.lock);
		resp->answer = recv_message(qp, req, resp);
		mutex_unlock(&qp->recv.lock);
	}
	if (resp->answer == VDEV_SILENCE)
		recv_dropped(qp->dev, req);
}

void vdev_respond(struct vdev *dev, struct vdev_memo *memo, const struct vdev_request *req,
		  struct vdev_response *resp)
{
	struct vdev_qp *qp = vdev_recall(memo, &dev->qps, req->dest_qpn);

	if (qp) {
		vdev_respond_qp(qp, req, resp);
		return;
	}
	resp->answer = VDEV_SILENCE;
	recv_dropped(dev, req);
}
