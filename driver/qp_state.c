// SPDX-License-Identifier: GPL-2.0-only
/*
 * What may be asked of a QP of which type in which state: the
 * transitions, the attributes that each requires and allows, and the values of
 * attributes.
 */
#include <linux/capability.h>

#include "vhca.h"

/* A controlled Q_Key: a sender cannot name it, but have it. */
#define VHCA_QKEY_CONTROLLED	0x80000000u

struct vhca_transition {
	u8 from;
	u8 to;
	u32 required;
	u32 optional;
};

/* What all connected types need to be bound to a peer. */
#define VHCA_CONNECTED	(VHCA_QP_AV | VHCA_QP_PATH_MTU | VHCA_QP_DEST_QPN |	\
			 VHCA_QP_RQ_PSN)
/* What a reliable requester and a reliable responder need beyond that. */
#define VHCA_REQUESTER	(VHCA_QP_TIMEOUT | VHCA_QP_RETRY_CNT |			\
			 VHCA_QP_RNR_RETRY | VHCA_QP_MAX_QP_RD_ATOMIC)
#define VHCA_RESPONDER	(VHCA_QP_MAX_DEST_RD_ATOMIC | VHCA_QP_MIN_RNR_TIMER)

#define VHCA_INIT	(VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_ACCESS_FLAGS)
#define VHCA_INIT_UD	(VHCA_QP_PKEY_INDEX | VHCA_QP_PORT | VHCA_QP_QKEY)
#define VHCA_RTR	(VHCA_QP_PKEY_INDEX | VHCA_QP_ACCESS_FLAGS)
#define VHCA_RTR_UD	(VHCA_QP_PKEY_INDEX | VHCA_QP_QKEY)
#define VHCA_RTS	(VHCA_QP_CUR_STATE | VHCA_QP_ACCESS_FLAGS)
#define VHCA_RTS_RESP	(VHCA_RTS | VHCA_QP_MIN_RNR_TIMER)
#define VHCA_RTS_UD	(VHCA_QP_CUR_STATE | VHCA_QP_QKEY)
#define VHCA_SQD	(VHCA_QP_AV | VHCA_QP_ACCESS_FLAGS | VHCA_QP_PKEY_INDEX)

/*
 * Those to RESET and ERR are not listed: all types have them. Alternate paths are
 * refused before this is asked. Only unreliable types go to SQE; reliable ones go to
 * ERR instead.
 */
static const struct vhca_transition vhca_rc[] = {
	{ VHCA_QP_RESET, VHCA_QP_INIT, VHCA_INIT, 0 },
	{ VHCA_QP_INIT, VHCA_QP_INIT, 0, VHCA_INIT },
	{ VHCA_QP_INIT, VHCA_QP_RTR, VHCA_CONNECTED | VHCA_RESPONDER, VHCA_RTR },
	{ VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQ_PSN | VHCA_REQUESTER, VHCA_RTS_RESP },
	{ VHCA_QP_RTS, VHCA_QP_RTS, 0, VHCA_RTS_RESP },
	{ VHCA_QP_RTS, VHCA_QP_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QP_SQD, VHCA_QP_RTS, 0, VHCA_RTS_RESP },
	{ VHCA_QP_SQD, VHCA_QP_SQD, 0, VHCA_SQD | VHCA_QP_PORT | VHCA_REQUESTER |
				       VHCA_RESPONDER },
	{ }
};

static const struct vhca_transition vhca_uc[] = {
	{ VHCA_QP_RESET, VHCA_QP_INIT, VHCA_INIT, 0 },
	{ VHCA_QP_INIT, VHCA_QP_INIT, 0, VHCA_INIT },
	{ VHCA_QP_INIT, VHCA_QP_RTR, VHCA_CONNECTED, VHCA_RTR },
	{ VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQ_PSN, VHCA_RTS },
	{ VHCA_QP_RTS, VHCA_QP_RTS, 0, VHCA_RTS },
	{ VHCA_QP_RTS, VHCA_QP_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QP_SQD, VHCA_QP_RTS, 0, VHCA_RTS },
	{ VHCA_QP_SQD, VHCA_QP_SQD, 0, VHCA_SQD },
	{ VHCA_QP_SQE, VHCA_QP_RTS, 0, VHCA_RTS },
	{ }
};

static const struct vhca_transition vhca_ud[] = {
	{ VHCA_QP_RESET, VHCA_QP_INIT, VHCA_INIT_UD, 0 },
	{ VHCA_QP_INIT, VHCA_QP_INIT, 0, VHCA_INIT_UD },
	{ VHCA_QP_INIT, VHCA_QP_RTR, 0, VHCA_RTR_UD },
	{ VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQ_PSN, VHCA_RTS_UD },
	{ VHCA_QP_RTS, VHCA_QP_RTS, 0, VHCA_RTS_UD },
	{ VHCA_QP_RTS, VHCA_QP_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QP_SQD, VHCA_QP_RTS, 0, VHCA_RTS_UD },
	{ VHCA_QP_SQD, VHCA_QP_SQD, 0, VHCA_RTR_UD },
	{ VHCA_QP_SQE, VHCA_QP_RTS, 0, VHCA_RTS_UD },
	{ }
};

static const struct vhca_transition vhca_xrc_send[] = {
	{ VHCA_QP_RESET, VHCA_QP_INIT, VHCA_INIT, 0 },
	{ VHCA_QP_INIT, VHCA_QP_INIT, 0, VHCA_INIT },
	{ VHCA_QP_INIT, VHCA_QP_RTR, VHCA_CONNECTED, VHCA_RTR },
	{ VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQ_PSN | VHCA_REQUESTER, VHCA_RTS },
	{ VHCA_QP_RTS, VHCA_QP_RTS, 0, VHCA_RTS },
	{ VHCA_QP_RTS, VHCA_QP_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QP_SQD, VHCA_QP_RTS, 0, VHCA_RTS },
	{ VHCA_QP_SQD, VHCA_QP_SQD, 0, VHCA_SQD | VHCA_QP_PORT | VHCA_REQUESTER },
	{ }
};

static const struct vhca_transition vhca_xrc_recv[] = {
	{ VHCA_QP_RESET, VHCA_QP_INIT, VHCA_INIT, 0 },
	{ VHCA_QP_INIT, VHCA_QP_INIT, 0, VHCA_INIT },
	{ VHCA_QP_INIT, VHCA_QP_RTR, VHCA_CONNECTED | VHCA_RESPONDER, VHCA_RTR },
	{ VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQ_PSN | VHCA_QP_TIMEOUT, VHCA_RTS_RESP },
	{ VHCA_QP_RTS, VHCA_QP_RTS, 0, VHCA_RTS_RESP },
	{ VHCA_QP_RTS, VHCA_QP_SQD, 0, VHCA_QP_EN_SQD_ASYNC_NOTIFY },
	{ VHCA_QP_SQD, VHCA_QP_RTS, 0, VHCA_RTS_RESP },
	{ VHCA_QP_SQD, VHCA_QP_SQD, 0, VHCA_SQD | VHCA_QP_PORT | VHCA_QP_TIMEOUT |
				       VHCA_RESPONDER },
	{ }
};

static const struct vhca_transition *const vhca_transitions[] = {
	[VHCA_QPT_RC] = vhca_rc,
	[VHCA_QPT_UC] = vhca_uc,
	[VHCA_QPT_UD] = vhca_ud,
	[VHCA_QPT_XRC_SEND] = vhca_xrc_send,
	[VHCA_QPT_XRC_RECV] = vhca_xrc_recv,
};

static bool vhca_qp_listed(u8 type, u8 from, u8 to, u32 mask)
{
	const struct vhca_transition *t;

	/* No transition ends in RESET but those that are not listed. */
	for (t = vhca_transitions[type]; t->to; t++) {
		if (t->from == from && t->to == to)
			return !(t->required & ~mask ||
				 mask & ~(t->required | t->optional));
	}
	return false;
}

static bool vhca_qp_transition(const struct vhca_modify_qp *arg, u8 type, u8 from)
{
	u8 to = arg->mask & VHCA_QP_STATE ? arg->attr.state : from;
	u32 mask = arg->mask & ~VHCA_QP_STATE;

	if (mask & VHCA_QP_CUR_STATE && arg->attr.cur_state != from)
		return false;
	if (to == VHCA_QP_RESET || (to == VHCA_QP_ERR && from != VHCA_QP_RESET))
		return !mask;
	return vhca_qp_listed(type, from, to, mask);
}

static bool vhca_av_ok(const struct vhca_av *av, u8 port)
{
	return av->is_global <= 1 && av->sl <= 15 && av->port_num == port &&
	       !av->rsvd[0] && !av->rsvd[1];
}

static bool vhca_qp_values(const struct vhca_caps *caps, u32 mask,
			   const struct vhca_qp_attr *a, u8 port)
{
	if (mask & VHCA_QP_PORT) {
		port = a->port_num;
		if (!port || port > caps->num_ports)
			return false;
	}
	return !(a->rsvd[0] || a->rsvd[1] ||
		 (mask & VHCA_QP_EN_SQD_ASYNC_NOTIFY &&
		  a->en_sqd_async_notify > 1) ||
		 (mask & VHCA_QP_ACCESS_FLAGS &&
		  a->access_flags & ~VHCA_MKEY_ACCESS) ||
		 (mask & VHCA_QP_PKEY_INDEX &&
		  a->pkey_index >= caps->max_pkeys) ||
		 (mask & VHCA_QP_AV && !vhca_av_ok(&a->av, port)) ||
		 (mask & VHCA_QP_PATH_MTU &&
		  (a->path_mtu < 1 || a->path_mtu > 5)) ||
		 (mask & VHCA_QP_TIMEOUT && a->timeout > 31) ||
		 (mask & VHCA_QP_RETRY_CNT && a->retry_cnt > 7) ||
		 (mask & VHCA_QP_RNR_RETRY && a->rnr_retry > 7) ||
		 (mask & VHCA_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
		 (mask & VHCA_QP_DEST_QPN && a->dest_qpn & ~VHCA_QPN_MASK) ||
		 (mask & VHCA_QP_MAX_QP_RD_ATOMIC &&
		  a->max_rd_atomic > caps->max_rd_atom) ||
		 (mask & VHCA_QP_MAX_DEST_RD_ATOMIC &&
		  a->max_dest_rd_atomic > caps->max_rd_atom));
}

/**
 * vhca_qp_check() - may this be done to a QP in that state?
 * @ctx: for the device's limits.
 * @arg: what user space wants; fields that the mask does not name are ignored.
 * @type: of the QP.
 * @now: the QP as the device has it.
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP for alternate paths, or -EPERM for a controlled Q_Key
 * without CAP_NET_RAW, as in the kernel's InfiniBand stack.
 */
int vhca_qp_check(struct vhca_ctx *ctx, const struct vhca_modify_qp *arg, u8 type,
		  const struct vhca_prm_qp *now)
{
	if (arg->mask & (VHCA_QP_ALT_PATH | VHCA_QP_PATH_MIG_STATE))
		return -EOPNOTSUPP;
	if (!vhca_qp_transition(arg, type, now->state)) {
		vhca_dbg(ctx, "QP %u of type %u in state %u: mask %#x, state %u: refused\n",
			 arg->qpn, type, now->state, arg->mask, arg->attr.state);
		return -EINVAL;
	}
	if (!vhca_qp_values(&ctx->vdev->caps, arg->mask, &arg->attr, now->port)) {
		vhca_dbg(ctx, "QP %u: mask %#x: a value is out of range\n",
			 arg->qpn, arg->mask);
		return -EINVAL;
	}
	if (arg->mask & VHCA_QP_QKEY && arg->attr.qkey & VHCA_QKEY_CONTROLLED &&
	    !capable(CAP_NET_RAW))
		return -EPERM;
	return 0;
}
