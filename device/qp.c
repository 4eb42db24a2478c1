// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: their making, their states, their end.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "vdev.h"

static void qp_ring(struct vdev_db *db)
{
	vdev_qp_run(container_of(db, struct vdev_qp, db));
}

static void qp_ring_bf(struct vdev_db *db)
{
	vdev_qp_run(container_of(db, struct vdev_qp, bf_db));
}

static enum hrtimer_restart qp_timer(struct hrtimer *timer)
{
	struct vdev_qp *qp = container_of(timer, struct vdev_qp, send.timer);

	clear_bit(VDEV_QP_WAITING, &qp->flags);
	vdev_engine_queue_qp(qp);
	return HRTIMER_NORESTART;
}

#define QP_TYPES	(BIT(VHCA_PRM_QPT_RC) | BIT(VHCA_PRM_QPT_UC) | BIT(VHCA_PRM_QPT_UD) | \
			 BIT(VHCA_PRM_QPT_XRC_SEND) | BIT(VHCA_PRM_QPT_XRC_RECV))

/* Flags that such a QP may have. */
static u8 qp_flags(u32 type, bool rq)
{
	u8 flags = 0;

	if (type != VHCA_PRM_QPT_XRC_RECV)
		flags |= VHCA_QPF_SIGNATURE | VHCA_QPF_BLUEFLAME;
	if (type == VHCA_PRM_QPT_UD)
		flags |= VHCA_QPF_BLOCK_LOOPBACK;
	else if (rq)
		flags |= VHCA_QPF_SCATTER_CQE;
	return flags;
}

/* Are the fields in range, and those zero of what such a QP does not have? */
static bool qp_shape_ok(const struct vhca_cmd_create_qp *in)
{
	u32 type = be32_to_cpu(in->type);
	bool xrc_recv = type == VHCA_PRM_QPT_XRC_RECV;
	bool xrc = xrc_recv || type == VHCA_PRM_QPT_XRC_SEND;

	if (type > VHCA_PRM_QPT_XRC_RECV || !(BIT(type) & QP_TYPES) ||
	    in->flags & ~qp_flags(type, !xrc && !in->srqn) ||
	    (in->bf_slot && !(in->flags & VHCA_QPF_BLUEFLAME)) ||
	    in->sq_shift > VHCA_SQ_MAX_SHIFT || in->rq_shift > VHCA_RQ_MAX_SHIFT ||
	    in->rq_sge_shift > VHCA_RQ_MAX_SGE_SHIFT ||
	    memchr_inv(in->rsvd, 0, sizeof(in->rsvd)))
		return false;
	if ((xrc || in->srqn) && (in->rq_shift || in->rq_sge_shift))
		return false;
	if (xrc && (in->recv_cqn || in->srqn))
		return false;
	if (xrc_recv)
		return !(in->pd || in->send_cqn || in->sq_shift || in->pages ||
			 in->uar || in->slot || in->dbr);
	return !in->xrcd;
}

/* The objects that the QP works with; those that it is to have must be there. */
static u8 qp_find_objects(struct vdev_qp *qp, const struct vhca_cmd_create_qp *in)
{
	struct vdev *dev = qp->dev;

	qp->send_cq = xa_load(&dev->cqs, be32_to_cpu(in->send_cqn));
	qp->recv_cq = xa_load(&dev->cqs, be32_to_cpu(in->recv_cqn));
	if (vdev_qp_has_sq(qp) && !qp->send_cq)
		return VHCA_CMD_BAD_OBJECT;
	if (qp->type < VHCA_PRM_QPT_XRC_SEND && !qp->recv_cq)
		return VHCA_CMD_BAD_OBJECT;
	if (in->srqn) {
		qp->srq = vdev_srq_find(dev, be32_to_cpu(in->srqn));
		/* Those of XRC are named by the messages. */
		if (!qp->srq || qp->srq->xrcd)
			return VHCA_CMD_BAD_OBJECT;
	}
	return VHCA_CMD_OK;
}

static u8 qp_map(struct vdev_qp *qp, const struct vhca_cmd_create_qp *in)
{
	u64 dbr = be64_to_cpu(in->dbr);
	size_t size;

	if (!vdev_qp_has_sq(qp))
		return VHCA_CMD_OK;
	if (!IS_ALIGNED(dbr, VHCA_UAR_SLOT_SIZE))
		return VHCA_CMD_BAD_PARAM;
	qp->dbr = vdev_dma(dbr, sizeof(*qp->dbr));
	if (!qp->dbr)
		return VHCA_CMD_BAD_PARAM;
	size = (size_t)VHCA_WQEBB_SIZE << qp->sq_shift;
	if (vdev_qp_has_rq(qp))
		size += (size_t)VHCA_WQE_SEG_SIZE << qp->rq_shift << qp->rq_sge_shift;
	return vdev_buf_map(&qp->buf, be64_to_cpu(in->pages), size);
}

static u8 qp_init(struct vdev_qp *qp, const struct vhca_cmd_create_qp *in)
{
	u8 status;

	if (!qp_shape_ok(in))
		return VHCA_CMD_BAD_PARAM;
	qp->type = be32_to_cpu(in->type);
	qp->create_flags = in->flags;
	qp->sq_shift = in->sq_shift;
	qp->rq_shift = in->rq_shift;
	qp->rq_sge_shift = in->rq_sge_shift;
	qp->pd = be32_to_cpu(in->pd);
	qp->xrcd = be32_to_cpu(in->xrcd);
	status = qp_find_objects(qp, in);
	return status ?: qp_map(qp, in);
}

static u8 qp_get_domain(struct vdev_qp *qp)
{
	if (qp->type == VHCA_PRM_QPT_XRC_RECV)
		return vdev_xrcd_get(qp->dev, qp->xrcd);
	return vdev_pd_get(qp->dev, qp->pd);
}

static void qp_put_domain(struct vdev_qp *qp)
{
	if (qp->type == VHCA_PRM_QPT_XRC_RECV)
		vdev_xrcd_put(qp->dev, qp->xrcd);
	else
		vdev_pd_put(qp->dev, qp->pd);
}

/* One more user, or one less, of what qp_find_objects() found. */
static void qp_count_users(struct vdev_qp *qp, int n)
{
	if (qp->send_cq)
		qp->send_cq->users += n;
	if (qp->recv_cq)
		qp->recv_cq->users += n;
	if (qp->srq)
		qp->srq->users += n;
}

static struct vdev_qp *qp_alloc(struct vdev *dev)
{
	struct vdev_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);

	if (!qp)
		return NULL;
	qp->dev = dev;
	qp->serial = ++dev->qp_serial;
	qp->user = &dev->users[VDEV_MAX_UAR];
	mutex_init(&qp->send.lock);
	mutex_init(&qp->recv.lock);
	INIT_LIST_HEAD(&qp->work);
	INIT_LIST_HEAD(&qp->mcast);
	qp->db.ring = qp_ring;
	qp->bf_db.ring = qp_ring_bf;
	hrtimer_init(&qp->send.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	qp->send.timer.function = qp_timer;
	return qp;
}

static u8 qp_bind(struct vdev_qp *qp, const struct vhca_cmd_create_qp *in)
{
	u32 uar = be32_to_cpu(in->uar);
	u8 status;

	if (!qp->dbr)
		return VHCA_CMD_OK;
	status = vdev_uar_bind(qp->dev, uar, be32_to_cpu(in->slot), &qp->db);
	if (status)
		return status;
	qp->user = qp->db.uar->user;
	if (!(in->flags & VHCA_QPF_BLUEFLAME))
		return VHCA_CMD_OK;
	status = vdev_uar_bind(qp->dev, uar, in->bf_slot, &qp->bf_db);
	if (status) {
		vdev_uar_unbind(&qp->db);
		/* The thread may have found it. */
		vdev_wait_unused();
	}
	return status;
}

static void qp_unbind(struct vdev_qp *qp)
{
	if (qp->dbr)
		vdev_uar_unbind(&qp->db);
	if (qp->create_flags & VHCA_QPF_BLUEFLAME)
		vdev_uar_unbind(&qp->bf_db);
}

u8 vdev_create_qp(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_cmd_create_qp *in = &cmd->create_qp;
	struct vdev_qp *qp = qp_alloc(dev);
	u8 status;
	int err;

	if (!qp)
		return VHCA_CMD_NO_MEMORY;
	status = qp_init(qp, in);
	if (status)
		goto err_free;
	status = qp_get_domain(qp);
	if (status)
		goto err_buf;
	err = xa_alloc_cyclic(&dev->qps, &qp->qpn, NULL,
			      XA_LIMIT(2, VDEV_MAX_QP + 1), &dev->next_qpn,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		status = err == -EBUSY ? VHCA_CMD_NO_RESOURCE : VHCA_CMD_NO_MEMORY;
		goto err_domain;
	}
	status = qp_bind(qp, in);
	if (status)
		goto err_erase;
	qp_count_users(qp, 1);
	xa_store(&dev->qps, qp->qpn, qp, GFP_KERNEL);	/* replaces: no allocation */
	done->number = cpu_to_be32(qp->qpn);
	return VHCA_CMD_OK;

err_erase:
	xa_erase(&dev->qps, qp->qpn);
err_domain:
	qp_put_domain(qp);
err_buf:
	vdev_buf_unmap(&qp->buf);
err_free:
	kfree(qp);
	return status;
}

/* Both halves, for who changes the QP as a whole. */
static void qp_lock(struct vdev_qp *qp)
{
	vdev_qp_lock_send(qp);
	mutex_lock(&qp->recv.lock);
}

static void qp_unlock(struct vdev_qp *qp)
{
	mutex_unlock(&qp->recv.lock);
	vdev_qp_unlock_send(qp);
}

/* Software looks for the QP's CQEs when this has happened: none is held any longer. */
static void qp_flush_held(struct vdev_qp *qp)
{
	if (qp->send_cq)
		vdev_cq_flush(qp->send_cq, qp->qpn, 0);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		vdev_cq_flush(qp->recv_cq, qp->qpn, 0);
}

static void qp_reset(struct vdev_qp *qp)
{
	WRITE_ONCE(qp->state, VHCA_QP_RESET);
	if (vdev_faults())
		qp_flush_held(qp);
	hrtimer_cancel(&qp->send.timer);
	clear_bit(VDEV_QP_WAITING, &qp->flags);
	clear_bit(VDEV_QP_DRAINING, &qp->flags);
	clear_bit(VDEV_QP_ESTABLISHED, &qp->flags);
	clear_bit(VDEV_QP_LAST_WQE, &qp->flags);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->send.busy = false;
	qp->send.ci = 0;
	qp->send.rnr_tries = 0;
	qp->send.tries = 0;
	qp->send.step = false;
	qp->send.delay_rule = 0;
	qp->send.gated = 0;
	qp->recv.busy = false;
	qp->recv.atomic = false;
	qp->recv.held = false;
	qp->recv.ci = 0;
	if (qp->dbr) {
		WRITE_ONCE(qp->dbr->rq_watch, 0);
		vdev_db_forget(&qp->db);
	}
	if (qp->create_flags & VHCA_QPF_BLUEFLAME)
		vdev_db_forget(&qp->bf_db);
}

/* It is in RESET, so that it takes no WQE from an SRQ until it is out of reach. */
static void qp_free(struct vdev *dev, struct vdev_qp *qp)
{
	xa_erase(&dev->qps, qp->qpn);
	qp_unbind(qp);
	vdev_mcast_unlink_qp(qp);
	vdev_engine_drop_qp(qp);
	vdev_wait_unused();
	vdev_mcast_free_qp(qp);
	vdev_gate_free_qp(qp);
	qp_count_users(qp, -1);
	qp_put_domain(qp);
	vdev_buf_unmap(&qp->buf);
	kfree(qp);
}

u8 vdev_destroy_qp(struct vdev *dev, const struct vhca_cmd *cmd,
		   struct vhca_cmd_done *done)
{
	struct vdev_qp *qp = vdev_qp_find(dev, be32_to_cpu(cmd->object.number));
	int idx;

	if (!qp)
		return VHCA_CMD_BAD_OBJECT;
	/* Doorbells come before a command that follows them: the thread may be late. */
	idx = srcu_read_lock(&vdev_srcu);
	vdev_qp_run(qp);
	srcu_read_unlock(&vdev_srcu, idx);
	qp_lock(qp);
	vdev_recv_return(qp);
	qp_reset(qp);
	qp_unlock(qp);
	qp_free(dev, qp);
	return VHCA_CMD_OK;
}

void vdev_forget_qps(struct vdev *dev)
{
	struct vdev_qp *qp;
	unsigned long i;

	xa_for_each(&dev->qps, i, qp) {
		qp_lock(qp);
		qp_reset(qp);
		qp_unlock(qp);
		qp_free(dev, qp);
	}
}

/* To which states a QP may go from each; its own is a change of attributes. */
static const u8 qp_next[VHCA_QP_STATES] = {
	[VHCA_QP_RESET]	= BIT(VHCA_QP_INIT),
	[VHCA_QP_INIT]	= BIT(VHCA_QP_INIT) | BIT(VHCA_QP_RTR),
	[VHCA_QP_RTR]	= BIT(VHCA_QP_RTS),
	[VHCA_QP_RTS]	= BIT(VHCA_QP_RTS) | BIT(VHCA_QP_SQD),
	[VHCA_QP_SQD]	= BIT(VHCA_QP_SQD) | BIT(VHCA_QP_RTS),
	[VHCA_QP_SQE]	= BIT(VHCA_QP_RTS),
};

static u8 qp_check_state(const struct vdev_qp *qp, const struct vhca_prm_qp *in,
			 u32 mask)
{
	if (mask & VHCA_QPM_CUR_STATE && in->cur_state != qp->state)
		return VHCA_CMD_BAD_STATE;
	if (!(mask & VHCA_QPM_STATE))
		return in->state ? VHCA_CMD_BAD_PARAM : VHCA_CMD_OK;
	if (in->state == VHCA_QP_RESET || in->state == VHCA_QP_ERR)
		return VHCA_CMD_OK;
	if (in->state >= VHCA_QP_STATES || !(qp_next[qp->state] & BIT(in->state)))
		return VHCA_CMD_BAD_STATE;
	return VHCA_CMD_OK;
}

#define QPM_KNOWN (VHCA_QPM_STATE | VHCA_QPM_CUR_STATE | VHCA_QPM_SQD_NOTIFY | \
		   VHCA_QPM_ACCESS | VHCA_QPM_PKEY_INDEX | VHCA_QPM_PORT | \
		   VHCA_QPM_QKEY | VHCA_QPM_AV | VHCA_QPM_PATH_MTU | VHCA_QPM_TIMEOUT | \
		   VHCA_QPM_RETRY_CNT | VHCA_QPM_RNR_RETRY | VHCA_QPM_RQ_PSN | \
		   VHCA_QPM_MAX_RD_ATOMIC | VHCA_QPM_MIN_RNR_TIMER | \
		   VHCA_QPM_SQ_PSN | VHCA_QPM_MAX_DEST_RD_ATOMIC | \
		   VHCA_QPM_DEST_QPN)

/* Is every field that @mask names in its range? */
static bool qp_values_ok(const struct vhca_prm_qp *in, u32 mask)
{
	const u32 max24 = VHCA_QPN_MASK;

	if (mask & VHCA_QPM_ACCESS && be32_to_cpu(in->access) & ~VHCA_MKEY_ACCESS)
		return false;
	if (mask & VHCA_QPM_PKEY_INDEX && in->pkey_index)
		return false;
	if (mask & VHCA_QPM_PORT && (!in->port || in->port > VDEV_NUM_PORTS))
		return false;
	if (mask & VHCA_QPM_AV && (in->sl > 15 || in->sgid_index || in->is_global > 1))
		return false;
	if (mask & VHCA_QPM_PATH_MTU && (!in->path_mtu || in->path_mtu > 5))
		return false;
	if (mask & VHCA_QPM_TIMEOUT && in->timeout > 31)
		return false;
	if (mask & VHCA_QPM_RETRY_CNT && in->retry_cnt > 7)
		return false;
	if (mask & VHCA_QPM_RNR_RETRY && in->rnr_retry > 7)
		return false;
	if (mask & VHCA_QPM_MIN_RNR_TIMER && in->min_rnr_timer > 31)
		return false;
	if (mask & VHCA_QPM_MAX_RD_ATOMIC && in->max_rd_atomic > VDEV_MAX_RD_ATOM)
		return false;
	if (mask & VHCA_QPM_MAX_DEST_RD_ATOMIC &&
	    in->max_dest_rd_atomic > VDEV_MAX_RD_ATOM)
		return false;
	if (mask & VHCA_QPM_RQ_PSN && be32_to_cpu(in->rq_psn) > max24)
		return false;
	if (mask & VHCA_QPM_SQ_PSN && be32_to_cpu(in->sq_psn) > max24)
		return false;
	return !(mask & VHCA_QPM_DEST_QPN) || be32_to_cpu(in->dest_qpn) <= max24;
}

/* The LID that an address vector leads to; 0 when it leads nowhere. */
static u16 av_lid(const struct vhca_prm_qp *in)
{
	struct vdev *dev;

	if (in->dlid || !in->is_global)
		return be16_to_cpu(in->dlid);
	dev = vdev_by_gid(in->dgid);
	return dev ? vdev_lid(dev) : 0;
}

static void qp_set_av(struct vdev_qp *qp, const struct vhca_prm_qp *in)
{
	struct vhca_prm_qp *attr = &qp->attr;

	qp->peer_lid = av_lid(in);
	attr->dlid = in->dlid;
	memcpy(attr->dgid, in->dgid, sizeof(attr->dgid));
	attr->flow_label = in->flow_label;
	attr->is_global = in->is_global;
	attr->sgid_index = in->sgid_index;
	attr->hop_limit = in->hop_limit;
	attr->traffic_class = in->traffic_class;
	attr->sl = in->sl;
	attr->src_path_bits = in->src_path_bits;
	attr->static_rate = in->static_rate;
}

static void qp_set_attr(struct vdev_qp *qp, const struct vhca_prm_qp *in, u32 mask)
{
	struct vhca_prm_qp *attr = &qp->attr;

	if (mask & VHCA_QPM_SQD_NOTIFY)
		attr->sqd_notify = in->sqd_notify;
	if (mask & VHCA_QPM_ACCESS)
		attr->access = in->access;
	if (mask & VHCA_QPM_PORT)
		attr->port = in->port;
	if (mask & VHCA_QPM_QKEY)
		attr->qkey = in->qkey;
	if (mask & VHCA_QPM_AV)
		qp_set_av(qp, in);
	if (mask & VHCA_QPM_PATH_MTU)
		attr->path_mtu = in->path_mtu;
	if (mask & VHCA_QPM_TIMEOUT)
		attr->timeout = in->timeout;
	if (mask & VHCA_QPM_RETRY_CNT)
		attr->retry_cnt = in->retry_cnt;
	if (mask & VHCA_QPM_RNR_RETRY)
		attr->rnr_retry = in->rnr_retry;
	if (mask & VHCA_QPM_MIN_RNR_TIMER)
		attr->min_rnr_timer = in->min_rnr_timer;
	if (mask & VHCA_QPM_MAX_RD_ATOMIC)
		attr->max_rd_atomic = in->max_rd_atomic;
	if (mask & VHCA_QPM_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = in->max_dest_rd_atomic;
	if (mask & VHCA_QPM_DEST_QPN)
		attr->dest_qpn = in->dest_qpn;
	if (mask & VHCA_QPM_RQ_PSN) {
		qp->recv.psn = be32_to_cpu(in->rq_psn);
		qp->recv.atomic = false;
	}
	if (mask & VHCA_QPM_SQ_PSN)
		qp->send.psn = be32_to_cpu(in->sq_psn);
}

/*
 * What was posted before the way out of SQE is not executed behind it: a ring of WQEs
 * at most, however fast software posts more. False when there is no way out any more.
 */
static bool qp_flush_send(struct vdev_qp *qp)
{
	struct vdev_budget all = { .wqes = 1 << qp->sq_shift };

	vdev_requester_flush(qp, &all);
	return qp->state == VHCA_QP_SQE;
}

static void qp_set_state(struct vdev_qp *qp, u8 state)
{
	if (state == VHCA_QP_RESET) {
		vdev_recv_return(qp);
		qp_reset(qp);
		return;
	}
	if (state == VHCA_QP_ERR) {
		vdev_qp_fail(qp, 0);
		return;
	}
	if (qp->state == VHCA_QP_SQE && !qp_flush_send(qp))
		return;
	if (state != VHCA_QP_SQD)
		clear_bit(VDEV_QP_DRAINING, &qp->flags);
	else if (qp->state == VHCA_QP_RTS)
		set_bit(VDEV_QP_DRAINING, &qp->flags);
	WRITE_ONCE(qp->state, state);
}

/* A datagram brings its own address, and has no PSN. */
static u32 qp_rtr_needs(const struct vdev_qp *qp)
{
	if (qp->type == VHCA_PRM_QPT_UD)
		return 0;
	return VHCA_QPM_PATH_MTU | VHCA_QPM_AV | VHCA_QPM_DEST_QPN | VHCA_QPM_RQ_PSN;
}

u8 vdev_modify_qp(struct vdev *dev, const struct vhca_cmd *cmd,
		  struct vhca_cmd_done *done)
{
	const struct vhca_prm_qp *in = &cmd->modify_qp.qp;
	u32 mask = be32_to_cpu(in->mask);
	struct vdev_qp *qp = vdev_qp_find(dev, be32_to_cpu(cmd->modify_qp.qpn));
	u8 status = VHCA_CMD_BAD_PARAM;
	int idx;

	if (!qp)
		return VHCA_CMD_BAD_OBJECT;
	if (cmd->modify_qp.rsvd || in->rsvd || in->sq_draining ||
	    mask & ~QPM_KNOWN || !qp_values_ok(in, mask) ||
	    (mask & VHCA_QPM_QKEY && qp->type != VHCA_PRM_QPT_UD))
		return status;

	idx = srcu_read_lock(&vdev_srcu);
	vdev_qp_run(qp);	/* as in vdev_destroy_qp() */
	qp_lock(qp);
	status = qp_check_state(qp, in, mask);
	if (!status && mask & VHCA_QPM_STATE && in->state == VHCA_QP_RTR &&
	    qp_rtr_needs(qp) & ~mask)
		status = VHCA_CMD_BAD_PARAM;
	if (!status) {
		qp_set_attr(qp, in, mask);
		if (mask & VHCA_QPM_STATE)
			qp_set_state(qp, in->state);
	}
	qp_unlock(qp);
	if (!status)
		vdev_qp_run(qp);
	srcu_read_unlock(&vdev_srcu, idx);
	return status;
}

u8 vdev_query_qp(struct vdev *dev, const struct vhca_cmd *cmd,
		 struct vhca_cmd_done *done)
{
	struct vdev_qp *qp = vdev_qp_find(dev, be32_to_cpu(cmd->object.number));
	struct vhca_prm_qp *out = &done->qp;

	if (!qp)
		return VHCA_CMD_BAD_OBJECT;
	qp_lock(qp);
	*out = qp->attr;
	out->mask = cpu_to_be32(QPM_KNOWN);
	out->state = qp->state;
	out->cur_state = qp->state;
	out->sq_draining = qp->state == VHCA_QP_SQD &&
			   test_bit(VDEV_QP_DRAINING, &qp->flags);
	out->rq_psn = cpu_to_be32(qp->recv.psn);
	out->sq_psn = cpu_to_be32(qp->send.psn);
	qp_unlock(qp);
	return VHCA_CMD_OK;
}

void vdev_qp_fail(struct vdev_qp *qp, u8 event)
{
	u8 old = xchg(&qp->state, VHCA_QP_ERR);

	/*
	 * From now on receives are flushed as they are posted: ask for their
	 * doorbell. The flush looks at rq_pi behind a full barrier.
	 */
	if (qp->dbr)
		WRITE_ONCE(qp->dbr->rq_watch, cpu_to_be32(1));
	if (event && old != VHCA_QP_ERR)
		vdev_async_event(qp->dev, event, qp->qpn);
	vdev_engine_queue_qp(qp);
}

void vdev_qp_fail_send(struct vdev_qp *qp)
{
	u8 old = READ_ONCE(qp->state);

	if (qp->type != VHCA_PRM_QPT_UC && qp->type != VHCA_PRM_QPT_UD) {
		vdev_qp_fail(qp, 0);
		return;
	}
	clear_bit(VDEV_QP_DRAINING, &qp->flags);
	/* The responder may be taking it to error. */
	if (old != VHCA_QP_ERR)
		cmpxchg(&qp->state, old, VHCA_QP_SQE);
}

void vdev_qp_fail_cq(struct vdev_cq *cq)
{
	struct vdev_qp *qp;
	unsigned long i;

	/* The requester finds the CQ in error and fails its QP. */
	xa_for_each(&cq->dev->qps, i, qp)
		if (qp->send_cq == cq || qp->recv_cq == cq)
			vdev_engine_queue_qp(qp);
}
