// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * poll_ex.c: extended polling, i.e. one CQE at a time, of which the application
 * reads the fields that it wants. The CQ's lock is held from a successful start
 * to the end.
 */
#include "vhca_verbs.h"

static struct vhca_cq *ex_to_vcq(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct vhca_cq, ex);
}

static int take_cqe(struct vhca_cq *cq)
{
	struct vhca_retired retired;
	struct vhca_cqe *cqe = vhca_cq_peek(cq);
	int err;

	if (!cqe)
		return ENOENT;
	err = vhca_cqe_retire(cq, cqe, &retired);
	if (err)
		return err;
	cq->ex.wr_id = retired.wr_id;
	cq->ex.status = vhca_cqe_status(cqe);
	cq->current_opcode = retired.opcode;
	cq->current = cqe;
	/* The device gets the slot back at the end: the CQE is still read. */
	vhca_cq_advance(cq, cq->ci + 1);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vhca_cq *cq = ex_to_vcq(ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	vhca_lock(&cq->lock);
	err = take_cqe(cq);
	if (err)
		vhca_unlock(&cq->lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take_cqe(ex_to_vcq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct vhca_cq *cq = ex_to_vcq(ex);

	vhca_cq_consumed(cq);
	vhca_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return ex_to_vcq(ex)->current_opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return ex_to_vcq(ex)->current->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return be32toh(ex_to_vcq(ex)->current->byte_len);
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return vhca_cqe_imm(ex_to_vcq(ex)->current);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return be32toh(ex_to_vcq(ex)->current->flags_qpn) & VHCA_QPN_MASK;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return be32toh(ex_to_vcq(ex)->current->src_qpn) & VHCA_QPN_MASK;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return be16toh(ex_to_vcq(ex)->current->slid);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return be64toh(ex_to_vcq(ex)->current->timestamp);
}

/* The two clocks run alike but for what the host's administrator does to one. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return read_completion_ts(ex) + vhca_clock_ns(CLOCK_REALTIME) -
	       vhca_clock_ns(CLOCK_MONOTONIC);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return vhca_cqe_wc_flags(ex_to_vcq(ex)->current);
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return vhca_cqe_sl(ex_to_vcq(ex)->current);
}

/* Ports have one LID each. */
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

/**
 * vhca_cq_init_poll_ex - set the calls of extended polling
 * @cq: new CQ
 * @wc_flags: enum ibv_create_cq_wc_flags; only what is supported
 */
void vhca_cq_init_poll_ex(struct vhca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
