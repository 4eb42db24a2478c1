// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * channel.c: completion channels and the events that come through them.
 */
#include <stdlib.h>
#include <unistd.h>

#include "vhca_verbs.h"

VHCA_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vhca_create_event_file cmd = { .fd = VHCA_INVALID_FD };
	struct ibv_comp_channel *channel;
	int err;

	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	err = vhca_ioctl(context, VHCA_IOC_CREATE_CHANNEL, &cmd);
	if (err) {
		free(channel);
		return vhca_null(err);
	}
	channel->context = context;
	channel->fd = cmd.fd;
	return channel;
}

/* The context's mutex is held, so that no CQ is just coming to use it. */
static int channel_destroy(struct ibv_comp_channel *channel)
{
	struct vhca_destroy_channel cmd = { .fd = channel->fd };

	if (channel->refcnt)
		return EBUSY;
	return vhca_ioctl(channel->context, VHCA_IOC_DESTROY_CHANNEL, &cmd);
}

VHCA_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int err;

	pthread_mutex_lock(&context->mutex);
	err = channel_destroy(channel);
	pthread_mutex_unlock(&context->mutex);
	if (err)
		return err;
	close(channel->fd);
	free(channel);
	return 0;
}

/**
 * vhca_channel_get - a CQ comes to use a channel
 * @channel: channel, or NULL
 */
void vhca_channel_get(struct ibv_comp_channel *channel)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt++;
	pthread_mutex_unlock(&channel->context->mutex);
}

/**
 * vhca_channel_put - a CQ no longer uses a channel
 * @channel: channel, or NULL
 */
void vhca_channel_put(struct ibv_comp_channel *channel)
{
	struct ibv_context *context;

	if (!channel)
		return;
	/* Once the count is down the channel may be freed; the context stays. */
	context = channel->context;
	pthread_mutex_lock(&context->mutex);
	channel->refcnt--;
	pthread_mutex_unlock(&context->mutex);
}

VHCA_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ibcq,
				 void **cq_context)
{
	struct vhca_comp_event event;
	struct vhca_cq *cq;

	if (read(channel->fd, &event, sizeof(event)) != sizeof(event))
		return -1;
	/* The CQ cannot go before this event is acknowledged. */
	cq = (struct vhca_cq *)(uintptr_t)event.cookie;
	vhca_cq_fired(cq);
	*ibcq = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

VHCA_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		vhca_acks_add(&to_vcq(cq)->comp_acks, nevents);
}
