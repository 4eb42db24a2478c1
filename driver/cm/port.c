// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports: which ids have which of a port space of a namespace, and which of them a
 * request is for.
 */
#include <linux/hashtable.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <net/ip.h>

#include "cm.h"

/* By port. cm_lock is held. */
static DEFINE_HASHTABLE(cm_ports, 12);

/* Of AF_IB the service id says which port space, as far as the program asked for it. */
static u16 cm_port_space(struct cm_id *id)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)&id->src;
	u64 mask, sid;

	if (id->src.ss_family != AF_IB)
		return id->ps;
	mask = be64_to_cpu(sib->sib_sid_mask) & RDMA_IB_IP_PS_MASK;
	sid = be64_to_cpu(sib->sib_sid) & mask;
	if (id->ps == RDMA_PS_IB && sid == (RDMA_IB_IP_PS_IB & mask))
		return RDMA_PS_IB;
	if (id->ps != RDMA_PS_UDP && sid == (RDMA_IB_IP_PS_TCP & mask))
		return RDMA_PS_TCP;
	if (id->ps != RDMA_PS_TCP && sid == (RDMA_IB_IP_PS_UDP & mask))
		return RDMA_PS_UDP;
	return 0;
}

/** cm_service_id() - what one asks a peer for who has that address */
u64 cm_service_id(const struct cm_id *id, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_IB)
		return be64_to_cpu(((const struct sockaddr_ib *)addr)->sib_sid);
	return (u64)id->ps << 16 | ntohs(cm_addr_port(addr));
}

/* May an id have a port beside those that have it? */
static int cm_port_check(const struct cm_id *id, __be16 port, u16 ps, bool reuse)
{
	struct cm_id *other;

	hash_for_each_possible(cm_ports, other, port_node, (__force u16)port) {
		if (other == id || other->port_ps != ps || !net_eq(other->net, id->net) ||
		    cm_addr_port(&other->src) != port)
			continue;
		if (reuse && other->reuse)
			continue;
		if (id->afonly && other->afonly && id->src.ss_family != other->src.ss_family)
			continue;
		if (cm_addr_any(&id->src) || cm_addr_any(&other->src))
			return -EADDRNOTAVAIL;
		if (cm_addr_equal(&id->src, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

/* Any that nobody of its address has. */
static int cm_port_choose(const struct cm_id *id, u16 ps, __be16 *port)
{
	int low, high, n, i, start;

	inet_get_local_port_range(id->net, &low, &high);
	n = high - low + 1;
	start = get_random_u32() % n;
	for (i = 0; i < n; i++) {
		*port = htons(low + (start + i) % n);
		if (!cm_port_check(id, *port, ps, false))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int cm_port_allowed(const struct cm_id *id, u16 ps, __be16 port)
{
	if (inet_port_requires_bind_service(id->net, ntohs(port)) &&
	    !ns_capable(id->net->user_ns, CAP_NET_BIND_SERVICE))
		return -EACCES;
	return cm_port_check(id, port, ps, id->reuse);
}

/**
 * cm_port_get() - the port of the id's address, or any if that is 0
 * @id: the id; it has none. cm_lock is held.
 *
 * Return: 0; -EPROTONOSUPPORT: its service id is not of its port space; -EACCES: the
 * port is for those with CAP_NET_BIND_SERVICE; -EADDRINUSE or -EADDRNOTAVAIL: others
 * have it, the latter if one of the addresses stands for every one.
 */
int cm_port_get(struct cm_id *id)
{
	__be16 port = cm_addr_port(&id->src);
	u16 ps = cm_port_space(id);
	int ret;

	if (!ps)
		return -EPROTONOSUPPORT;
	if (port)
		ret = cm_port_allowed(id, ps, port);
	else
		ret = cm_port_choose(id, ps, &port);
	if (ret)
		return ret;
	if (id->src.ss_family == AF_IB) {
		struct sockaddr_ib *sib = (struct sockaddr_ib *)&id->src;

		sib->sib_sid = cpu_to_be64((u64)ps << 16);
	}
	cm_addr_set_port(&id->src, port);
	id->port_ps = ps;
	hash_add(cm_ports, &id->port_node, (__force u16)port);
	return 0;
}

/** cm_port_keep() - a listener shares its port no more; errors as cm_port_get() */
int cm_port_keep(struct cm_id *id)
{
	int ret;

	if (!id->reuse)
		return 0;
	ret = cm_port_check(id, cm_addr_port(&id->src), id->port_ps, false);
	if (!ret)
		id->reuse = false;
	return ret;
}

/** cm_port_put() - an id gives back its port, if it has one; cm_lock is held */
void cm_port_put(struct cm_id *id)
{
	if (!id->port_ps)
		return;
	hash_del(&id->port_node);
	id->port_ps = 0;
}

static const char *cm_port_space_name(u16 ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return "tcp";
	case RDMA_PS_UDP:
		return "udp";
	default:
		return "ib";
	}
}

/** cm_ports_show() - who listens: port space and port, a line each; cm_lock is held */
void cm_ports_show(struct seq_file *m)
{
	struct cm_id *id;
	int bucket;

	hash_for_each(cm_ports, bucket, id, port_node)
		if (id->state == CM_LISTEN)
			seq_printf(m, "%s %u\n", cm_port_space_name(id->port_ps),
				   ntohs(cm_addr_port(&id->src)));
}

/* 0: no; else how well. */
static int cm_listener_fits(const struct cm_id *id, const struct cm_msg *msg,
			    const struct cm_fn *fn)
{
	bool any = cm_addr_any(&id->src);

	if (id->state != CM_LISTEN || !net_eq(id->net, msg->net) || (id->fn && id->fn != fn) ||
	    id->port_ps != (u16)(msg->service_id >> 16) ||
	    cm_addr_port(&id->src) != htons((u16)msg->service_id))
		return 0;
	if (id->src.ss_family == AF_IB || msg->dst.ss_family == AF_IB)
		return id->src.ss_family == msg->dst.ss_family ? 1 : 0;
	if (cm_addr_equal(&id->src, &msg->dst))
		return 3;
	if (any && id->src.ss_family == msg->dst.ss_family)
		return 2;
	return any && !id->afonly ? 1 : 0;
}

/**
 * cm_port_listener() - who listens for a request
 * @msg: the REQ or SIDR_REQ.
 * @fn: the function that it came to.
 *
 * Return: the listener that named the address, else one that listens on every one of
 * its family, else one that listens on every one, else NULL.
 */
struct cm_id *cm_port_listener(const struct cm_msg *msg, const struct cm_fn *fn)
{
	struct cm_id *id, *best = NULL;
	int fit, best_fit = 0;

	hash_for_each_possible(cm_ports, id, port_node,
			       (__force u16)htons((u16)msg->service_id)) {
		fit = cm_listener_fits(id, msg, fn);
		if (fit > best_fit) {
			best = id;
			best_fit = fit;
		}
	}
	return best;
}
