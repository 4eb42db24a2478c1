/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between the protocol and what carries its messages.
 *
 * A transport takes a message that cm_transport_send() is given and brings it to the
 * function that has the GID @dgid, on this machine or another, where cm_recv() gets a
 * message with the same contents. It may lose messages and change their order, but it
 * does not change or invent them. It never calls cm_recv() from within
 * cm_transport_send(): the protocol holds its lock then.
 */
#ifndef VHCA_CM_PROTO_H
#define VHCA_CM_PROTO_H

#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_user_cm.h>

/* In the order of cm_msg_names[]. */
enum cm_msg_type {
	CM_MSG_REQ,
	CM_MSG_MRA,
	CM_MSG_REJ,
	CM_MSG_REP,
	CM_MSG_RTU,
	CM_MSG_DREQ,
	CM_MSG_DREP,
	CM_MSG_SIDR_REQ,
	CM_MSG_SIDR_REP,
	CM_MSG_TYPES
};

/**
 * struct cm_path - a path between two ports
 * @sgid: the near one's.
 * @dgid: the far one's.
 * @slid: the near one's LID.
 * @dlid: the far one's.
 * @pkey: of both.
 * @mtu: as in the verbs.
 * @rate: likewise.
 * @life: the longest that a packet is on its way, as an exponent.
 * @sl: the service level.
 * @tclass: the traffic class.
 * @hop_limit: more than 1: packets carry a GRH.
 * @flow_label: for that.
 */
struct cm_path {
	u8 sgid[16];
	u8 dgid[16];
	u16 slid;
	u16 dlid;
	u16 pkey;
	u8 mtu;
	u8 rate;
	u8 life;
	u8 sl;
	u8 tclass;
	u8 hop_limit;
	u32 flow_label;
};

/* The most private data that a message has: that of a SIDR_REQ. */
#define CM_MAX_PRIVATE		IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE

/**
 * struct cm_msg - a message
 * @node: for the transport.
 * @type: what it is.
 * @net: the network namespace that it is for; the message has a reference.
 * @sgid: of the function that sends it.
 * @dgid: of the function that is to get it.
 * @local_id: the sender's name of the connection, 0: it has none.
 * @remote_id: the receiver's, 0: it is not known yet.
 * @service_id: REQ, SIDR_REQ: what is asked for.
 * @src: REQ, SIDR_REQ: the address of who asks.
 * @dst: REQ, SIDR_REQ: the address that is asked.
 * @path: REQ: as the sender sees it.
 * @qp_type: REQ: of the QP that is to be connected to.
 * @qpn: REQ, REP, SIDR_REP: the sender's QP.
 * @qkey: SIDR_REP: of that.
 * @psn: REQ, REP: of the first packet that the receiver's QP will send.
 * @resp_res: REQ, REP: READs and atomics that the sender's QP answers at a time.
 * @init_depth: REQ, REP: those that it wants to have outstanding.
 * @flow_control: REQ, REP: end to end.
 * @retry: REQ: retry counter.
 * @rnr_retry: REQ, REP: RNR retry counter.
 * @srq: REQ, REP: the QP has an SRQ.
 * @reason: REJ: why, SIDR_REP: status.
 * @ece_vendor: REQ, REP: vendor of enhanced connection establishment.
 * @ece_attr: REQ, REP: its options.
 * @priv: private data; what the program did not fill is zero.
 */
struct cm_msg {
	struct list_head node;
	enum cm_msg_type type;
	struct net *net;
	u8 sgid[16];
	u8 dgid[16];
	u32 local_id;
	u32 remote_id;

	u64 service_id;
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	struct cm_path path;
	u8 qp_type;

	u32 qpn;
	u32 qkey;
	u32 psn;
	u8 resp_res;
	u8 init_depth;
	u8 flow_control;
	u8 retry;
	u8 rnr_retry;
	u8 srq;
	u8 reason;
	u32 ece_vendor;
	u32 ece_attr;

	u8 priv[CM_MAX_PRIVATE];
};

extern const char * const cm_msg_names[CM_MSG_TYPES];

void cm_transport_send(struct cm_msg *msg);
void cm_recv(const struct cm_msg *msg);
void cm_msg_free(struct cm_msg *msg);

#endif
