// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings, for reading: what stands in each slot, and whether it is new (not consumed by
 * whom it is for), done, or free (nothing was ever there).
 *
 * Most rings are memory of user space, which may write anything there at any time. It
 * is shown as it stands, from a copy.
 */
#include <linux/seq_file.h>
#include <linux/string.h>

#include "show.h"

static const char *state_name(bool is_new, const void *copy, size_t size)
{
	if (is_new)
		return "new";
	return memchr_inv(copy, 0, size) ? "done" : "free";
}

/* How far slot @slot is behind the one that comes next. */
static u32 slot_behind(u32 slot, u32 next, u32 size)
{
	return (slot - next) & (size - 1);
}

static void show_flags(struct seq_file *s, unsigned long flags, const char * const *names,
		       unsigned int n)
{
	const char *sep = "";
	unsigned int i;

	seq_puts(s, " flags=");
	for_each_set_bit(i, &flags, n) {
		seq_printf(s, "%s%s", sep, names[i]);
		sep = ",";
	}
	if (!*sep)
		seq_putc(s, '-');
}

/* SGEs up to the sentinel; or that there is inline payload. */
static void show_sges(struct seq_file *s, const struct vhca_wqe_data *sge, unsigned int n)
{
	const char *sep = "";

	seq_puts(s, " sge=");
	for (; n; n--, sge++) {
		u32 len = be32_to_cpu(sge->byte_count);

		if (len & VHCA_WQE_INLINE) {
			seq_printf(s, "inline,%u", len & ~VHCA_WQE_INLINE);
			return;
		}
		if (!len && sge->lkey == cpu_to_be32(VHCA_INVALID_LKEY))
			break;
		seq_printf(s, "%s%#llx,%u,%#x", sep, be64_to_cpu(sge->addr), len,
			   be32_to_cpu(sge->lkey));
		sep = ";";
	}
	if (!*sep)
		seq_putc(s, '-');
}

/* Send queues */

/* A block of the SQ, with what follows it around the end of the ring. */
static void sq_copy(const struct vdev_qp *qp, u32 slot, void *to, size_t size)
{
	u32 ring = VHCA_WQEBB_SIZE << qp->sq_shift;
	u32 at = slot << VHCA_WQEBB_SHIFT;
	u32 n = min_t(u32, size, ring - at);

	vdev_fetch(to, qp->buf.addr + at, n);
	vdev_fetch(to + n, qp->buf.addr, min_t(u32, size - n, ring - n));
}

/* Segments between control segment and SGEs. */
static unsigned int sq_heads(const struct vdev_qp *qp, u8 opcode)
{
	u16 form = vdev_send_form(qp, opcode);

	if (form & VDEV_FORM_BIND)
		return sizeof(struct vhca_wqe_bind) / VHCA_WQE_SEG_SIZE;
	return !!(form & VDEV_FORM_XRC) + !!(form & VDEV_FORM_RADDR) +
	       !!(form & VDEV_FORM_ATOMIC) +
	       (form & VDEV_FORM_DGRAM ? VHCA_WQE_DGRAM_SEGS : 0);
}

static void show_wqe(struct seq_file *s, const struct vdev_qp *qp, u32 slot,
		     const struct vhca_wqe_ctrl *ctrl, u32 ds)
{
	static const char * const flags[] = { "solicited", "signaled", "fence" };
	struct vhca_wqe_data segs[1 + VDEV_MAX_SGE];
	u8 opcode = be32_to_cpu(ctrl->idx_opcode);
	unsigned int heads = 1 + sq_heads(qp, opcode);

	seq_printf(s, " opcode=%s", vdev_name_of(VDEV_W_OPCODE, opcode));
	show_flags(s, ctrl->flags, flags, ARRAY_SIZE(flags));
	seq_printf(s, " imm=%#x segs=%u", be32_to_cpu(ctrl->imm), ds);
	if (ds <= heads) {
		show_sges(s, NULL, 0);
		return;
	}
	slot = (slot + heads / 4) & ((1u << qp->sq_shift) - 1);
	sq_copy(qp, slot, segs, sizeof(segs));
	show_sges(s, segs + heads % 4, min_t(u32, ds - heads, ARRAY_SIZE(segs) - heads % 4));
}

/*
 * A block at which no WQE begins has no line. That one does is told by its index, which
 * the blocks behind it have only if somebody wants to lead us astray.
 */
static void sq_show(struct seq_file *s, const struct vdev_qp *qp, u32 slot)
{
	u32 size = 1u << qp->sq_shift;
	struct vhca_wqe_ctrl ctrl;
	u32 index, ds;
	bool is_new;

	sq_copy(qp, slot, &ctrl, sizeof(ctrl));
	index = be32_to_cpu(ctrl.idx_opcode) >> VHCA_WQE_IDX_SHIFT & U16_MAX;
	ds = be32_to_cpu(ctrl.qpn_ds) & VHCA_WQE_DS_MASK;
	is_new = slot_behind(slot, qp->send.ci, size) < (u16)(vdev_sq_pi(qp) - qp->send.ci);
	if (memchr_inv(&ctrl, 0, sizeof(ctrl)) &&
	    (slot_behind(slot, index, size) || !ds || ds > VHCA_WQE_MAX_SEGS ||
	     be32_to_cpu(ctrl.qpn_ds) >> VHCA_WQE_QPN_SHIFT != qp->qpn))
		return;
	seq_printf(s, "ring=sq index=%u state=%s", slot,
		   state_name(is_new, &ctrl, sizeof(ctrl)));
	if (ds)
		show_wqe(s, qp, slot, &ctrl, ds);
	seq_putc(s, '\n');
}

/* Receive queues */

static void rq_show(struct seq_file *s, const struct vdev_qp *qp, u32 slot)
{
	size_t size = sizeof(struct vhca_wqe_data) << qp->rq_sge_shift;
	u32 heads = qp->create_flags & VHCA_QPF_SIGNATURE ? 1 : 0;
	struct vhca_wqe_data wqe[VDEV_MAX_SGE];
	u16 waiting = vdev_rq_pi(qp) - qp->recv.ci;

	vdev_fetch(wqe, qp->buf.addr + ((size_t)VHCA_WQEBB_SIZE << qp->sq_shift) + slot * size,
		   size);
	seq_printf(s, "ring=rq index=%u state=%s", slot,
		   state_name(slot_behind(slot, qp->recv.ci, 1u << qp->rq_shift) < waiting,
			      wqe, size));
	show_sges(s, wqe + heads, (1u << qp->rq_sge_shift) - heads);
	seq_putc(s, '\n');
}

u32 vdev_qp_entries(void *object)
{
	const struct vdev_qp *qp = object;

	return (vdev_qp_has_sq(qp) ? 1u << qp->sq_shift : 0) +
	       (vdev_qp_has_rq(qp) ? 1u << qp->rq_shift : 0);
}

void vdev_qp_entry_show(struct seq_file *s, void *object, u32 i)
{
	struct vdev_qp *qp = object;

	vdev_qp_lock_send(qp);
	mutex_lock(&qp->recv.lock);
	if (i < 1u << qp->sq_shift)
		sq_show(s, qp, i);
	else
		rq_show(s, qp, i - (1u << qp->sq_shift));
	mutex_unlock(&qp->recv.lock);
	vdev_qp_unlock_send(qp);
}

/* Shared receive queues */

u32 vdev_srq_entries(void *object)
{
	const struct vdev_srq *srq = object;

	return 1u << srq->shift;
}

void vdev_srq_entry_show(struct seq_file *s, void *object, u32 i)
{
	struct vdev_srq *srq = object;
	size_t size = sizeof(struct vhca_wqe_data) << srq->sge_shift;
	struct vhca_wqe_data wqe[VDEV_MAX_SGE];
	const struct vhca_wqe_recv_head *head = (const void *)wqe;
	bool is_new;

	vdev_fetch(wqe, srq->buf.addr + i * size, size);
	spin_lock(&srq->lock);
	is_new = slot_behind(i, srq->ci, 1u << srq->shift) < (u16)(vdev_srq_pi(srq) - srq->ci);
	spin_unlock(&srq->lock);
	seq_printf(s, "ring=srq index=%u state=%s tag=%u", i, state_name(is_new, wqe, size),
		   be16_to_cpu(head->tag));
	show_sges(s, wqe + 1, (1u << srq->sge_shift) - 1);
	seq_putc(s, '\n');
}

/* Completion queues */

u32 vdev_cq_entries(void *object)
{
	const struct vdev_cq *cq = object;

	return 1u << cq->ring.shift;
}

static void show_cqe(struct seq_file *s, const struct vhca_cqe *cqe)
{
	static const char * const opcodes[] = {
		[VHCA_CQE_REQ]		= "REQ",
		[VHCA_CQE_RESP]		= "RESP",
		[VHCA_CQE_RESP_WRITE]	= "RESP_WRITE",
	};
	static const char * const flags[] = {
		"solicited", "imm", "inv", "grh", "payload", "srq",
	};
	u32 flags_qpn = be32_to_cpu(cqe->flags_qpn);

	seq_printf(s, " status=%s vendor_err=%#x opcode=%s qp=%u wqe_index=%u",
		   vdev_name_of(VDEV_W_STATUS, cqe->status), cqe->vendor_err,
		   cqe->opcode < ARRAY_SIZE(opcodes) ? opcodes[cqe->opcode] : "?",
		   flags_qpn & VHCA_QPN_MASK, be16_to_cpu(cqe->wqe_index));
	show_flags(s, flags_qpn >> VHCA_CQE_FLAGS_SHIFT, flags, ARRAY_SIZE(flags));
	seq_printf(s, " byte_len=%u imm=%#x src_qp=%u slid=%u timestamp=%llu",
		   be32_to_cpu(cqe->byte_len), be32_to_cpu(cqe->imm),
		   be32_to_cpu(cqe->src_qpn) & VHCA_QPN_MASK, be16_to_cpu(cqe->slid),
		   be64_to_cpu(cqe->timestamp));
}

void vdev_cq_entry_show(struct seq_file *s, void *object, u32 i)
{
	struct vdev_cq *cq = object;
	u32 size = 1u << cq->ring.shift;
	struct vhca_cqe cqe;
	bool is_new;

	vdev_fetch(&cqe, cq->ring.buf.addr + i * sizeof(cqe), sizeof(cqe));
	spin_lock(&cq->lock);
	/* The newest is one before pi. */
	is_new = slot_behind(cq->pi - 1, i, size) < vdev_cq_unread(cq);
	spin_unlock(&cq->lock);
	/* Nobody but the owner bit was written to a slot that nothing was in. */
	seq_printf(s, "ring=cq index=%u state=%s owner=%s", i,
		   state_name(is_new, &cqe, offsetof(struct vhca_cqe, owner)),
		   is_new ? "sw" : "hw");
	if (is_new || cqe.flags_qpn)
		show_cqe(s, &cqe);
	seq_putc(s, '\n');
}

/* Event queues */

u32 vdev_eq_entries(void *object)
{
	const struct vdev_eq *eq = object;

	return 1u << eq->shift;
}

void vdev_eq_entry_show(struct seq_file *s, void *object, u32 i)
{
	struct vdev_eq *eq = object;
	const struct vhca_eqe *ring = eq->buf.addr;
	struct vhca_eqe eqe;
	bool is_new;

	vdev_fetch(&eqe, &ring[i], sizeof(eqe));
	spin_lock(&eq->lock);
	is_new = slot_behind(eq->pi - 1, i, 1u << eq->shift) < vdev_eq_unread(eq);
	spin_unlock(&eq->lock);
	seq_printf(s, "ring=eq index=%u state=%s owner=%s type=%s number=%u\n", i,
		   state_name(is_new, &eqe, sizeof(eqe)), is_new ? "sw" : "hw",
		   eqe.type == VHCA_EQE_COMP ? "COMP" : eqe.type == VHCA_EQE_CMD ? "CMD" :
		   vdev_name_of(VDEV_W_TYPE, eqe.type), be32_to_cpu(eqe.number));
}
