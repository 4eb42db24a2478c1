// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mw.c: memory windows. Those of type 2 are bound by ibv_post_send().
 */
#include <stdlib.h>

#include "vhca_verbs.h"

struct ibv_mw *vhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vhca_alloc_mw cmd = { .pd = pd->handle, .type = type };
	struct ibv_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vhca_null(EINVAL);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	err = vhca_ioctl(pd->context, VHCA_IOC_ALLOC_MW, &cmd);
	if (err) {
		free(mw);
		return vhca_null(err);
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->rkey = cmd.rkey;
	mw->handle = cmd.rkey;
	mw->type = type;
	return mw;
}

int vhca_dealloc_mw(struct ibv_mw *mw)
{
	struct vhca_object cmd = { .number = mw->handle };
	int err;

	err = vhca_ioctl(mw->context, VHCA_IOC_FREE_MW, &cmd);
	if (!err)
		free(mw);
	return err;
}

/* The key of a window of type 1 is the library's to choose. */
int vhca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int err;

	err = vhca_post_sends(qp, &wr, &bad, IBV_MW_TYPE_1);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
