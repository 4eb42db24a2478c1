/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of vhca_cm.ko share.
 *
 * One lock, cm_lock, for all that is here: functions, ids, ports, connections, events.
 * Connections are made and ended, they are not what data waits for. User memory is
 * touched under it only where no page fault can follow.
 *
 * Around it: the RTNL, where network devices are bound; vhca.ko's lock of its clients.
 * Within it: commands that ask the device.
 */
#ifndef VHCA_CM_H
#define VHCA_CM_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>
#include <rdma/rdma_user_cm.h>

#include "../vhca_client.h"
#include "proto.h"

#define CM_PORT			1	/* a function has this one */
#define CM_MAX_BACKLOG		1024
#define CM_MRA_MS		67000	/* how long a peer that asks for time gets */

/* How much of the private data of a REQ or SIDR_REQ tells the IP addresses. */
#define CM_IP_HEADER		36

/**
 * struct cm_fn - a function of vhca
 * @node: in cm_fns, by @attr.index.
 * @vdev: to ask it.
 * @attr: what it is.
 * @gid: of its port.
 * @pkey: likewise.
 * @ids: cm_id.of_fn: those that use it.
 * @bindings: to network devices, but the loopback devices.
 * @loopback: it is bound to those of all namespaces.
 */
struct cm_fn {
	struct list_head node;
	struct vhca_dev *vdev;
	struct vhca_client_attr attr;
	u8 gid[16];
	u16 pkey;
	struct list_head ids;
	struct list_head bindings;
	bool loopback;
};

/**
 * struct cm_file - an event channel
 * @ids: cm_id.of_file.
 * @ids_number: how many.
 * @events: those that were not read.
 * @wait: for one to come.
 * @net: the namespace of who opened it.
 */
struct cm_file {
	struct list_head ids;
	unsigned int ids_number;
	struct list_head events;
	wait_queue_head_t wait;
	struct net *net;
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,		/* to an address */
	CM_LISTEN,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_SIDR_SENT,
	CM_SIDR_RCVD,
	CM_SIDR_DONE,
	CM_CLOSED,		/* there was a connection, or nearly */
	CM_REMOVED,		/* its function went */
};

/**
 * struct cm_id - what a program knows as struct rdma_cm_id
 * @ref: of the table, and of @timer while that is pending.
 * @handle: the number that user space names it by.
 * @uid: user space's own name of it; 0: it has not seen it yet.
 * @file: where its events are read.
 * @of_file: in cm_file.ids.
 * @request: the event by which user space is to hear of it, as long as that was not
 *	read; else NULL.
 * @net: the namespace of its addresses.
 * @state: where it is.
 * @ps: its port space.
 * @qp_type: of its QP; 0: a listener takes any.
 * @src: its address.
 * @dst: its peer's.
 * @fn: its function, or NULL.
 * @of_fn: in cm_fn.ids.
 * @rgid: its peer's GID.
 * @path: to the peer, if @has_path.
 * @port_node: among those that have a port of the same hash.
 * @port_ps: the port space of that port; 0: it has none.
 * @events: those that were not read, but its groups'.
 * @events_reported: events that were read.
 * @backlog: requests that a listener's channel still has room for.
 * @mcasts: cm_mcast.of_id.
 * @has_path: @path is known.
 * @reuse: the port may be shared with others that say so.
 * @afonly: the address is of its own family only.
 * @afonly_set: and the program said so.
 * @timeout_set: @timeout is what the program wants for its QP.
 * @timeout: likewise.
 * @tos: type of service, the traffic class of its path.
 * @qkey: of its UD QP.
 * @local_id: its name of the connection; 0: there is none.
 * @remote_id: the peer's.
 * @remote_node: among those whose peer's name has the same hash.
 * @local_psn: the first that its QP receives.
 * @remote_psn: the first that it sends.
 * @remote_qpn: the peer's QP.
 * @resp_res: READs and atomics that its QP is to answer at a time.
 * @init_depth: those that it may have outstanding.
 * @retry: for its QP.
 * @rnr_retry: likewise.
 * @sent: the message that an answer is awaited to, or that answers a repeated one.
 * @tries: how often @sent will be sent again.
 * @timer: for the next time, and the end of CM_TIMEWAIT.
 * @deadline: when the timer means something, if @armed.
 * @armed: likewise.
 */
struct cm_id {
	struct kref ref;
	u32 handle;
	u64 uid;
	struct cm_file *file;
	struct list_head of_file;
	struct cm_event *request;
	struct net *net;
	enum cm_state state;
	u16 ps;
	u8 qp_type;

	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	struct cm_fn *fn;
	struct list_head of_fn;
	u8 rgid[16];
	struct cm_path path;
	struct hlist_node port_node;
	u16 port_ps;

	struct list_head events;
	u32 events_reported;
	u32 backlog;
	struct list_head mcasts;

	bool has_path;
	bool reuse;
	bool afonly;
	bool afonly_set;
	bool timeout_set;
	u8 timeout;
	u8 tos;
	u32 qkey;

	u32 local_id;
	u32 remote_id;
	struct hlist_node remote_node;
	u32 local_psn;
	u32 remote_psn;
	u32 remote_qpn;
	u8 resp_res;
	u8 init_depth;
	u8 retry;
	u8 rnr_retry;

	struct cm_msg *sent;
	unsigned int tries;
	struct delayed_work timer;
	unsigned long deadline;
	bool armed;
};

/**
 * struct cm_mcast - an id in a multicast group
 * @of_id: in cm_id.mcasts.
 * @id: the id.
 * @handle: the number that user space names it by.
 * @uid: user space's own name of it.
 * @events: those that were not read.
 * @events_reported: events that were read.
 */
struct cm_mcast {
	struct list_head of_id;
	struct cm_id *id;
	u32 handle;
	u64 uid;
	struct list_head events;
	u32 events_reported;
};

/**
 * struct cm_event - an event that was not read
 * @node: in cm_file.events.
 * @of_owner: in cm_mcast.events if it is a group's, else in cm_id.events.
 * @id: whose it is; of a request: the listener.
 * @child: of a request: the id that it made, whose @request this is; else NULL.
 * @mcast: whose it is, or NULL.
 * @resp: what is read.
 */
struct cm_event {
	struct list_head node;
	struct list_head of_owner;
	struct cm_id *id;
	struct cm_id *child;
	struct cm_mcast *mcast;
	struct rdma_ucm_event_resp resp;
};

/**
 * struct cm_call - a command
 * @file: the event channel.
 * @out_len: how much of @out user space has room for, and how much is there for it.
 * @in: what user space gave.
 * @out: what it gets.
 */
struct cm_call {
	struct cm_file *file;
	u32 out_len;
	union {
		struct rdma_ucm_create_id	create_id;
		struct rdma_ucm_destroy_id	destroy_id;
		struct rdma_ucm_bind_ip		bind_ip;
		struct rdma_ucm_bind		bind;
		struct rdma_ucm_resolve_ip	resolve_ip;
		struct rdma_ucm_resolve_addr	resolve_addr;
		struct rdma_ucm_resolve_route	resolve_route;
		struct rdma_ucm_query		query;
		struct rdma_ucm_connect		connect;
		struct rdma_ucm_listen		listen;
		struct rdma_ucm_accept		accept;
		struct rdma_ucm_reject		reject;
		struct rdma_ucm_disconnect	disconnect;
		struct rdma_ucm_init_qp_attr	init_qp_attr;
		struct rdma_ucm_notify		notify;
		struct rdma_ucm_set_option	set_option;
		struct rdma_ucm_join_ip_mcast	join_ip_mcast;
		struct rdma_ucm_join_mcast	join_mcast;
		struct rdma_ucm_migrate_id	migrate_id;
	} in;
	union {
		struct rdma_ucm_create_id_resp	create_id;
		struct rdma_ucm_destroy_id_resp	destroy_id;
		struct rdma_ucm_query_route_resp query_route;
		struct rdma_ucm_query_addr_resp	query_addr;
		struct {
			struct rdma_ucm_query_path_resp head;
			struct ib_path_rec_data	path;
		} query_path;
		struct ib_uverbs_qp_attr	qp_attr;
		struct rdma_ucm_migrate_resp	migrate_id;
	} out;
};

extern struct mutex cm_lock;
extern struct workqueue_struct *cm_wq;
extern unsigned int cm_response_timeout;
extern unsigned int cm_retries;
extern unsigned int cm_timewait;

/* function.c */
extern struct list_head cm_fns;
extern struct vhca_client cm_client;
struct cm_fn *cm_fn_by_gid(const u8 *gid);
struct cm_fn *cm_fn_by_name(const char *name);
bool cm_fn_active(struct cm_fn *fn, struct vhca_client_port *port);
void cm_id_attach(struct cm_id *id, struct cm_fn *fn);
void cm_id_detach(struct cm_id *id);

/* bind.c */
extern struct device_attribute dev_attr_bind;
int cm_bindings_init(void);
void cm_bindings_exit(void);
struct cm_fn *cm_fn_of_netdev(struct net_device *dev);
void cm_fn_unbind_all(struct cm_fn *fn);

/* addr.c */
int cm_addr_size(const void *addr);
bool cm_addr_any(const struct sockaddr_storage *addr);
bool cm_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
__be16 cm_addr_port(const struct sockaddr_storage *addr);
void cm_addr_set_port(struct sockaddr_storage *addr, __be16 port);
int cm_bind_addr(struct cm_id *id, const void *addr);
int cm_cmd_bind_ip(struct cm_call *call, struct cm_id *id);
int cm_cmd_bind(struct cm_call *call, struct cm_id *id);
int cm_cmd_resolve_ip(struct cm_call *call, struct cm_id *id);
int cm_cmd_resolve_addr(struct cm_call *call, struct cm_id *id);
int cm_cmd_resolve_route(struct cm_call *call, struct cm_id *id);

/* port.c */
int cm_port_get(struct cm_id *id);
int cm_port_keep(struct cm_id *id);
void cm_port_put(struct cm_id *id);
void cm_ports_show(struct seq_file *m);
struct cm_id *cm_port_listener(const struct cm_msg *msg, const struct cm_fn *fn);
u64 cm_service_id(const struct cm_id *id, const struct sockaddr_storage *addr);

/* file.c */
extern const struct file_operations cm_fops;
void cm_event_post(struct cm_id *id, enum rdma_cm_event_type type, int status,
		   const struct cm_msg *msg);
int cm_event_request(struct cm_id *listener, struct cm_id *child, const struct cm_msg *msg);
void cm_event_mcast(struct cm_mcast *mcast, const struct ib_uverbs_ah_attr *ah);
void cm_events_purge(struct cm_id *id);
void cm_events_purge_mcast(struct cm_mcast *mcast);
void cm_file_move(struct cm_id *id, struct cm_file *to);
unsigned int cm_events_count(void);
unsigned int cm_files_count(void);

/* cmd.c */
ssize_t cm_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos);
int cm_get_event(struct file *filp, void __user *response, size_t len);

/* id.c */
struct cm_id *cm_id_new(struct cm_file *file, struct net *net, u16 ps, u8 qp_type);
struct cm_id *cm_id_find(struct cm_file *file, u32 handle);
void cm_id_put(struct cm_id *id);
void cm_id_destroy(struct cm_id *id);
void cm_id_removed(struct cm_id *id);
unsigned int cm_ids_count(void);
int cm_cmd_create_id(struct cm_call *call, struct cm_id *unused);
int cm_cmd_destroy_id(struct cm_call *call, struct cm_id *id);
int cm_cmd_migrate_id(struct cm_call *call, struct cm_id *unused);

/* option.c */
int cm_set_option(struct cm_file *file, const struct rdma_ucm_set_option *arg);

/* query.c */
void cm_ah_attr(const struct cm_path *path, struct ib_uverbs_ah_attr *ah);
int cm_path_unpack(struct cm_path *path, const struct ib_path_rec_data *data);
int cm_cmd_query_route(struct cm_call *call, struct cm_id *id);
int cm_cmd_query(struct cm_call *call, struct cm_id *id);

/* qp_attr.c */
int cm_cmd_init_qp_attr(struct cm_call *call, struct cm_id *id);

/* conn.c: what both sides of a connection do */
struct cm_msg *cm_msg_new(struct cm_id *id, enum cm_msg_type type);
void cm_msg_private(struct cm_msg *msg, const void *data, u8 len);
void cm_send(struct cm_id *id, enum cm_msg_type type);
void cm_send_rej(struct cm_id *id, u8 reason, const void *data, u8 len);
void cm_send_await(struct cm_id *id, struct cm_msg *msg);
void cm_send_again(struct cm_id *id);
void cm_answered(struct cm_id *id);
void cm_timer_set(struct cm_id *id, unsigned int ms);
void cm_timer_work(struct work_struct *work);
int cm_conn_open(struct cm_id *id);
void cm_conn_forget(struct cm_id *id);
void cm_conn_close(struct cm_id *id);
void cm_conn_end(struct cm_id *id);
void cm_conn_timewait(struct cm_id *id);
void cm_conn_closed(struct cm_id *id, int status);
void cm_conn_know_remote(struct cm_id *id, u32 remote_id);
struct cm_id *cm_conn_find(const struct cm_msg *msg);
struct cm_id *cm_conn_find_remote(const struct cm_msg *msg);
unsigned int cm_conns_count(void);

/* proto.c: what a program wants of its connection */
int cm_cmd_connect(struct cm_call *call, struct cm_id *id);
int cm_cmd_accept(struct cm_call *call, struct cm_id *id);
int cm_cmd_reject(struct cm_call *call, struct cm_id *id);
int cm_cmd_disconnect(struct cm_call *call, struct cm_id *id);
int cm_cmd_notify(struct cm_call *call, struct cm_id *id);

/* recv.c */
void cm_reply(const struct cm_msg *msg, enum cm_msg_type type, u8 reason);

/* listen.c */
int cm_cmd_listen(struct cm_call *call, struct cm_id *id);
void cm_recv_request(const struct cm_msg *msg);

/* datagram.c */
int cm_sidr_connect(struct cm_id *id, const struct rdma_ucm_conn_param *param);
int cm_sidr_accept(struct cm_id *id, const struct rdma_ucm_conn_param *param);
int cm_sidr_reject(struct cm_id *id, const void *data, size_t len);
void cm_recv_sidr_rep(struct cm_id *id, const struct cm_msg *msg);

/* mcast.c */
int cm_set_qkey(struct cm_id *id, u32 qkey);
int cm_cmd_join_ip_mcast(struct cm_call *call, struct cm_id *id);
int cm_cmd_join_mcast(struct cm_call *call, struct cm_id *id);
int cm_cmd_leave_mcast(struct cm_call *call, struct cm_id *unused);
void cm_mcasts_leave(struct cm_id *id);
unsigned int cm_mcasts_count(void);

/* local.c */
unsigned int cm_messages_count(void);
int cm_drop(const char *name, unsigned int n);
unsigned int cm_drops(enum cm_msg_type type);

/* debugfs.c */
void cm_debugfs_init(void);
void cm_debugfs_exit(void);

#endif
