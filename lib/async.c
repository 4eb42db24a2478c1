// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * async.c: asynchronous events of a context.
 */
#include <unistd.h>

#include "vhca_verbs.h"

enum element { ELEMENT_NONE, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ };

static enum element element_of(uint32_t type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	default:
		return ELEMENT_NONE;
	}
}

VHCA_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vhca_async_event rec;

	if (read(context->async_fd, &rec, sizeof(rec)) != sizeof(rec))
		return -1;
	event->event_type = (enum ibv_event_type)rec.type;
	switch (element_of(rec.type)) {
	case ELEMENT_CQ:
		event->element.cq = &((struct vhca_cq *)(uintptr_t)rec.cookie)->ibv;
		break;
	case ELEMENT_QP:
		event->element.qp = &((struct vhca_qp *)(uintptr_t)rec.cookie)->ibv;
		break;
	case ELEMENT_SRQ:
		event->element.srq = &((struct vhca_srq *)(uintptr_t)rec.cookie)->ibv;
		break;
	case ELEMENT_NONE:
		event->element.port_num = (int)rec.number;
		break;
	}
	return 0;
}

VHCA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (element_of(event->event_type)) {
	case ELEMENT_CQ:
		vhca_acks_add(&to_vcq(event->element.cq)->async_acks, 1);
		break;
	case ELEMENT_QP:
		vhca_acks_add(&to_vqp(event->element.qp)->async_acks, 1);
		break;
	case ELEMENT_SRQ:
		vhca_acks_add(&to_vsrq(event->element.srq)->async_acks, 1);
		break;
	case ELEMENT_NONE:
		break;
	}
}
