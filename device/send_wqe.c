// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send WQEs, from the ring to struct vdev_send: copied, parsed, checked.
 *
 * A WQE is read once, into send.wqe; what user space writes to the ring
 * afterwards changes nothing.
 */
#include <linux/prefetch.h>
#include <linux/seq_file.h>

#include "vdev.h"

/* Types of QPs. */
#define RC		BIT(VHCA_PRM_QPT_RC)
#define UC		BIT(VHCA_PRM_QPT_UC)
#define UD		BIT(VHCA_PRM_QPT_UD)
#define XRC		BIT(VHCA_PRM_QPT_XRC_SEND)
#define RELIABLE	(RC | XRC)
#define CONNECTED	(RELIABLE | UC)

#define OUT		VDEV_FORM_OUT
#define IN		VDEV_FORM_IN
#define IMM		VDEV_FORM_IMM
#define RADDR		VDEV_FORM_RADDR
#define ATOMIC		VDEV_FORM_ATOMIC
#define INV		VDEV_FORM_INV
#define BIND		VDEV_FORM_BIND
#define LOCAL		VDEV_FORM_LOCAL

/**
 * struct send_op - an opcode
 * @form: VDEV_FORM_* of its WQEs, in QPs of every type.
 * @types: QPs that have it.
 */
struct send_op {
	u16	form;
	u16	types;
};

static const struct send_op send_ops[] = {
	[VHCA_OP_RDMA_WRITE]	 = { RADDR | OUT, CONNECTED },
	[VHCA_OP_RDMA_WRITE_IMM] = { RADDR | OUT | IMM, CONNECTED },
	[VHCA_OP_SEND]		 = { OUT, CONNECTED | UD },
	[VHCA_OP_SEND_IMM]	 = { OUT | IMM, CONNECTED | UD },
	[VHCA_OP_SEND_INV]	 = { OUT | INV, CONNECTED },
	[VHCA_OP_RDMA_READ]	 = { RADDR | IN, RELIABLE },
	[VHCA_OP_ATOMIC_CS]	 = { RADDR | ATOMIC | IN, RELIABLE },
	[VHCA_OP_ATOMIC_FA]	 = { RADDR | ATOMIC | IN, RELIABLE },
	[VHCA_OP_BIND_MW]	 = { BIND | LOCAL, CONNECTED },
	[VHCA_OP_LOCAL_INV]	 = { INV | LOCAL, CONNECTED },
};

/* Segments that every WQE of such a QP has. */
static const u16 type_forms[] = {
	[VHCA_PRM_QPT_UD]	= VDEV_FORM_DGRAM,
	[VHCA_PRM_QPT_XRC_SEND]	= VDEV_FORM_XRC,
};

/*
 * A WQE is begun when the one before it has ended, so that a fence has nothing to
 * wait for, and one RDMA READ or atomic at a time is within every limit but zero.
 */
#define WQE_FLAGS	(VHCA_WQE_SOLICITED | VHCA_WQE_SIGNALED | VHCA_WQE_FENCE)

/* Copied segments that were not parsed yet. */
struct segs {
	const void	*at;
	u32		left;
};

/* The next @n segments; NULL when there are not so many. */
static const void *segs_next(struct segs *segs, u32 n)
{
	const void *at = segs->at;

	if (segs->left < n)
		return NULL;
	segs->at += n * VHCA_WQE_SEG_SIZE;
	segs->left -= n;
	return at;
}

/* Copy the control segment of the WQE at an index. */
static void copy_ctrl(struct vdev_qp *qp, u16 index, struct vhca_wqe_ctrl *ctrl)
{
	u32 slot = index & ((1u << qp->sq_shift) - 1);

	vdev_fetch(ctrl, qp->buf.addr + ((size_t)slot << VHCA_WQEBB_SHIFT), sizeof(*ctrl));
}

/* Copy the WQE's control segment, and take its length from the copy. */
static u32 fetch_ctrl(struct vdev_qp *qp, struct vhca_wqe_ctrl *ctrl, int posted)
{
	u32 ds;

	copy_ctrl(qp, qp->send.ci, ctrl);
	ds = be32_to_cpu(ctrl->qpn_ds) & VHCA_WQE_DS_MASK;
	/* The slot counts as one basic block when the length makes no sense. */
	if (!ds || ds > VHCA_WQE_MAX_SEGS || DIV_ROUND_UP(ds, 4) > posted)
		ds = 0;
	qp->send.nbb = max(DIV_ROUND_UP(ds, 4), 1u);
	return ds;
}

void vdev_send_measure(struct vdev_qp *qp, int posted)
{
	struct vhca_wqe_ctrl ctrl;

	fetch_ctrl(qp, &ctrl, posted);
}

unsigned int vdev_send_count(struct vdev_qp *qp)
{
	int posted = vdev_send_posted(qp), at = 0;
	struct vhca_wqe_ctrl ctrl;
	unsigned int n;

	for (n = 0; at < posted; n++) {
		copy_ctrl(qp, qp->send.ci + at, &ctrl);
		at += max(DIV_ROUND_UP(be32_to_cpu(ctrl.qpn_ds) & VHCA_WQE_DS_MASK, 4), 1u);
	}
	return n;
}

void vdev_send_tell(struct seq_file *s, struct vdev_qp *qp)
{
	struct vhca_wqe_ctrl ctrl;

	copy_ctrl(qp, qp->send.ci, &ctrl);
	seq_printf(s, " next=\"index=%u opcode=%s\"", qp->send.ci,
		   vdev_name_of(VDEV_W_OPCODE, be32_to_cpu(ctrl.idx_opcode) & 0xff));
}

/* Copy what follows the control segment, around the end of the ring. */
static void fetch_segs(struct vdev_qp *qp, u32 nsegs)
{
	u32 ring = VHCA_WQEBB_SIZE << qp->sq_shift;
	u32 at = ((qp->send.ci << VHCA_WQEBB_SHIFT) & (ring - 1)) + VHCA_WQE_SEG_SIZE;
	u32 n = min(nsegs, (ring - at) / VHCA_WQE_SEG_SIZE);

	vdev_fetch_segs(qp->send.wqe, qp->buf.addr + at, n);
	vdev_fetch_segs(qp->send.wqe + n * VHCA_WQE_SEG_SIZE, qp->buf.addr, nsegs - n);
}

/*
 * Copy the WQE from a doorbell line, if it is there. Software writes a line when the
 * record is up to date, from its end to its start: so when the line begins as it did
 * and nothing was posted behind the WQE, what was copied between is one piece.
 */
static u32 fetch_line(struct vdev_qp *qp, const struct vdev_db *db,
		      struct vhca_wqe_ctrl *ctrl)
{
	const u64 *line = vdev_db_line(db);
	u64 block[VHCA_WQEBB_SIZE / sizeof(u64)];
	u32 ds;

	block[0] = READ_ONCE(line[0]);
	smp_rmb();	/* pairs with software's store barrier between the two parts */
	vdev_fetch(block + 1, line + 1, sizeof(block) - sizeof(block[0]));
	smp_rmb();	/* pairs with software's store barrier between record and line */
	memcpy(ctrl, block, sizeof(*ctrl));
	ds = be32_to_cpu(ctrl->qpn_ds) & VHCA_WQE_DS_MASK;
	if (!ds || ds > VHCA_WQEBB_SIZE / VHCA_WQE_SEG_SIZE ||
	    be32_to_cpu(ctrl->qpn_ds) >> VHCA_WQE_QPN_SHIFT != qp->qpn ||
	    be32_to_cpu(ctrl->idx_opcode) >> VHCA_WQE_IDX_SHIFT != qp->send.ci ||
	    READ_ONCE(line[0]) != block[0] || vdev_send_posted(qp) != 1)
		return 0;
	memcpy(qp->send.wqe, block + 2, sizeof(block) - sizeof(*ctrl));
	qp->send.nbb = 1;
	vdev_count(qp->dev, VDEV_BLUEFLAMES);
	return ds;
}

/* The poster's cache has it, which takes as long as this WQE is executed. */
static void prefetch_next(const struct vdev_qp *qp)
{
	u32 slot = (qp->send.ci + qp->send.nbb) & ((1u << qp->sq_shift) - 1);

	prefetch(qp->buf.addr + ((size_t)slot << VHCA_WQEBB_SHIFT));
}

/* Copy the WQE; its length in segments, 0 when that makes no sense. */
static u32 fetch(struct vdev_qp *qp, struct vhca_wqe_ctrl *ctrl, int posted)
{
	u32 ds = 0;

	if (posted == 1 && qp->create_flags & VHCA_QPF_BLUEFLAME)
		ds = fetch_line(qp, &qp->db, ctrl) ?: fetch_line(qp, &qp->bf_db, ctrl);
	if (ds)
		return ds;
	ds = fetch_ctrl(qp, ctrl, posted);
	if (ds)
		fetch_segs(qp, ds - 1);
	if (posted > qp->send.nbb)
		prefetch_next(qp);
	return ds;
}

static bool signature_ok(const struct vdev_qp *qp, const struct vhca_wqe_ctrl *ctrl, u32 ds)
{
	if (!(qp->create_flags & VHCA_QPF_SIGNATURE))
		return true;
	vdev_count(qp->dev, VDEV_SIGNATURES);
	return (vdev_xor(ctrl, sizeof(*ctrl)) ^
		vdev_xor(qp->send.wqe, (ds - 1) * VHCA_WQE_SEG_SIZE)) == VDEV_SIGNED;
}

u16 vdev_send_form(const struct vdev_qp *qp, u8 opcode)
{
	if (opcode >= ARRAY_SIZE(send_ops) || !(send_ops[opcode].types & BIT(qp->type)))
		return 0;
	return send_ops[opcode].form | type_forms[qp->type];
}

static bool head_ok(struct vdev_qp *qp, const struct vhca_wqe_ctrl *ctrl)
{
	return be32_to_cpu(ctrl->idx_opcode) >> VHCA_WQE_IDX_SHIFT == qp->send.ci &&
	       be32_to_cpu(ctrl->qpn_ds) >> VHCA_WQE_QPN_SHIFT == qp->qpn &&
	       !(ctrl->flags & ~WQE_FLAGS) &&
	       (!ctrl->signature || qp->create_flags & VHCA_QPF_SIGNATURE) &&
	       !ctrl->rsvd[0] && !ctrl->rsvd[1] &&
	       (!ctrl->imm || qp->send.form & (IMM | INV));
}

static bool parse_xrc(struct vdev_send *send, struct segs *segs)
{
	const struct vhca_wqe_xrc *xrc = segs_next(segs, 1);

	if (!xrc || memchr_inv(xrc->rsvd, 0, sizeof(xrc->rsvd)))
		return false;
	send->srqn = be32_to_cpu(xrc->srqn);
	return true;
}

static bool parse_dgram(struct vdev_qp *qp, struct segs *segs)
{
	const struct vhca_wqe_dgram *dgram = segs_next(segs, VHCA_WQE_DGRAM_SEGS);

	if (!dgram || be32_to_cpu(dgram->dest_qpn) > VHCA_QPN_MASK ||
	    dgram->sl > 15 || dgram->is_global > 1 || dgram->sgid_index ||
	    be32_to_cpu(dgram->flow_label) > VDEV_FLOW_LABEL ||
	    (dgram->port && dgram->port != qp->attr.port) ||
	    memchr_inv(dgram->rsvd, 0, sizeof(dgram->rsvd)))
		return false;
	qp->send.dgram = dgram;
	return true;
}

static bool parse_raddr(struct vdev_send *send, struct segs *segs)
{
	const struct vhca_wqe_raddr *raddr = segs_next(segs, 1);

	if (!raddr || raddr->rsvd)
		return false;
	send->raddr = be64_to_cpu(raddr->addr);
	send->rkey = be32_to_cpu(raddr->rkey);
	return true;
}

static bool parse_atomic(struct vdev_send *send, struct segs *segs)
{
	const struct vhca_wqe_atomic *atomic = segs_next(segs, 1);

	if (!atomic || (send->opcode == VHCA_OP_ATOMIC_FA && atomic->compare))
		return false;
	send->swap_add = be64_to_cpu(atomic->swap_add);
	send->compare = be64_to_cpu(atomic->compare);
	return true;
}

static bool parse_bind(struct vdev_send *send, struct segs *segs)
{
	const struct vhca_wqe_bind *bind = segs_next(segs, sizeof(*bind) / VHCA_WQE_SEG_SIZE);

	if (!bind)
		return false;
	send->bind = (struct vdev_bind){
		.rkey = be32_to_cpu(bind->rkey),
		.new_rkey = be32_to_cpu(bind->new_rkey),
		.lkey = be32_to_cpu(bind->lkey),
		.access = be32_to_cpu(bind->access),
		.addr = be64_to_cpu(bind->addr),
		.length = be64_to_cpu(bind->length),
	};
	return true;
}

/* Make a list of the segments, or of the inline payload that is there instead. */
static bool parse_payload(struct vdev_qp *qp, const struct segs *segs)
{
	struct vdev_send *send = &qp->send;
	const struct vhca_wqe_data *seg = segs->at;
	u32 count = segs->left ? be32_to_cpu(seg->byte_count) : 0;

	if (!(count & VHCA_WQE_INLINE)) {
		send->sgl = (struct vdev_sgl){
			.dev = qp->dev,
			.memo = &send->lkeys,
			.pd = qp->pd,
			.access = send->form & IN ? VHCA_MKEY_LOCAL_WRITE : 0,
			.seg = seg,
		};
		return vdev_sgl_measure(&send->sgl, segs->left);
	}
	count &= ~VHCA_WQE_INLINE;
	if (!(send->form & OUT) || count > VHCA_MAX_INLINE ||
	    DIV_ROUND_UP(count + sizeof(struct vhca_wqe_inline),
			 VHCA_WQE_SEG_SIZE) != segs->left)
		return false;
	send->sgl = (struct vdev_sgl){
		.inl = segs->at + sizeof(struct vhca_wqe_inline),
		.length = count,
	};
	return true;
}

/* Read the copied segments, one after the other; false when they are malformed. */
static bool parse(struct vdev_qp *qp, u32 nsegs)
{
	struct vdev_send *send = &qp->send;
	struct segs segs = { .at = send->wqe, .left = nsegs };

	if (send->form & VDEV_FORM_XRC && !parse_xrc(send, &segs))
		return false;
	if (send->form & VDEV_FORM_DGRAM && !parse_dgram(qp, &segs))
		return false;
	if (send->form & RADDR && !parse_raddr(send, &segs))
		return false;
	if (send->form & ATOMIC && !parse_atomic(send, &segs))
		return false;
	if (send->form & BIND && !parse_bind(send, &segs))
		return false;
	if (send->form & LOCAL && segs.left)
		return false;
	return parse_payload(qp, &segs);
}

static bool length_ok(const struct vdev_qp *qp)
{
	u64 length = qp->send.sgl.length;

	if (qp->send.form & ATOMIC)
		return length == VHCA_ATOMIC_SIZE;
	return length <= (qp->type == VHCA_PRM_QPT_UD ? VDEV_MTU : VDEV_MAX_MSG);
}

/* May the parsed WQE be executed? The status that says why not, and *@verr. */
static u8 check(struct vdev_qp *qp, u8 *verr)
{
	struct vdev_send *send = &qp->send;

	if (!length_ok(qp)) {
		*verr = VHCA_VERR_MSG_SIZE;
		return VHCA_CQE_LOC_LEN_ERR;
	}
	if (send->form & IN && !qp->attr.max_rd_atomic) {
		*verr = VHCA_VERR_RD_ATOMIC;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	if (!vdev_sgl_check(&send->sgl)) {
		*verr = send->sgl.verr;
		return VHCA_CQE_LOC_PROT_ERR;
	}
	return VHCA_CQE_SUCCESS;
}

u8 vdev_send_fetch(struct vdev_qp *qp, int posted, u8 *verr)
{
	struct vdev_send *send = &qp->send;
	struct vhca_wqe_ctrl ctrl;
	u32 ds = fetch(qp, &ctrl, posted);

	send->flags = ctrl.flags;
	send->imm = ctrl.imm;
	send->opcode = be32_to_cpu(ctrl.idx_opcode);
	send->form = vdev_send_form(qp, send->opcode);
	send->offset = 0;
	if (!ds || !head_ok(qp, &ctrl)) {
		*verr = VHCA_VERR_WQE_HEAD;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	if (!signature_ok(qp, &ctrl, ds)) {
		*verr = VHCA_VERR_WQE_SIGNATURE;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	if (!send->form) {
		*verr = VHCA_VERR_WQE_OPCODE;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	if (!parse(qp, ds - 1)) {
		*verr = VHCA_VERR_WQE_SEG;
		return VHCA_CQE_LOC_QP_OP_ERR;
	}
	return check(qp, verr);
}
