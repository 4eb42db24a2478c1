// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses: of which function they are, and binding and resolving them.
 *
 * All that answers is on this machine, so that it is known at once whether somebody
 * does. What comes of it is told by an event, as it is where one has to ask the network.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <rdma/ib_verbs.h>

#include "cm.h"

#define CM_RATE			IB_RATE_100_GBPS
#define CM_PACKET_LIFE		16	/* as an exponent: a quarter of a second */

static struct sockaddr_in *cm_in(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_in *)addr;
}

static struct sockaddr_in6 *cm_in6(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_in6 *)addr;
}

static struct sockaddr_ib *cm_ib(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_ib *)addr;
}

/** cm_addr_size() - how long an address is, by its family; 0: none of ours */
int cm_addr_size(const void *addr)
{
	switch (((const struct sockaddr *)addr)->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

/** cm_addr_any() - does it stand for every address? */
bool cm_addr_any(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ipv4_is_zeronet(cm_in(addr)->sin_addr.s_addr);
	case AF_INET6:
		return ipv6_addr_any(&cm_in6(addr)->sin6_addr);
	default:
		return !memchr_inv(&cm_ib(addr)->sib_addr, 0, sizeof(struct ib_addr));
	}
}

static bool cm_addr_multicast(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ipv4_is_multicast(cm_in(addr)->sin_addr.s_addr);
	case AF_INET6:
		return ipv6_addr_is_multicast(&cm_in6(addr)->sin6_addr);
	default:
		return cm_ib(addr)->sib_addr.sib_raw[0] == 0xff;
	}
}

/** cm_addr_equal() - are they the same, but for the port? */
bool cm_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	switch (a->ss_family) {
	case AF_INET:
		return cm_in(a)->sin_addr.s_addr == cm_in(b)->sin_addr.s_addr;
	case AF_INET6:
		return ipv6_addr_equal(&cm_in6(a)->sin6_addr, &cm_in6(b)->sin6_addr) &&
		       cm_in6(a)->sin6_scope_id == cm_in6(b)->sin6_scope_id;
	default:
		return !memcmp(&cm_ib(a)->sib_addr, &cm_ib(b)->sib_addr,
			       sizeof(struct ib_addr));
	}
}

/** cm_addr_port() - its port; of AF_IB the end of the service id */
__be16 cm_addr_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return cm_in(addr)->sin_port;
	case AF_INET6:
		return cm_in6(addr)->sin6_port;
	default:
		return htons((u16)(be64_to_cpu(cm_ib(addr)->sib_sid) &
				   be64_to_cpu(cm_ib(addr)->sib_sid_mask)));
	}
}

/** cm_addr_set_port() - change that */
void cm_addr_set_port(struct sockaddr_storage *addr, __be16 port)
{
	u64 sid;

	switch (addr->ss_family) {
	case AF_INET:
		cm_in(addr)->sin_port = port;
		break;
	case AF_INET6:
		cm_in6(addr)->sin6_port = port;
		break;
	default:
		sid = be64_to_cpu(cm_ib(addr)->sib_sid) & RDMA_IB_IP_PS_MASK;
		cm_ib(addr)->sib_sid = cpu_to_be64(sid | ntohs(port));
		cm_ib(addr)->sib_sid_mask = cpu_to_be64(U64_MAX);
	}
}

/* Under RCU. */
static struct net_device *cm_addr_netdev(struct net *net, const struct sockaddr_storage *addr)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct in6_addr *ip6 = &cm_in6(addr)->sin6_addr;
	struct net_device *dev;

	if (addr->ss_family == AF_INET6) {
		if (!(ipv6_addr_type(ip6) & IPV6_ADDR_LINKLOCAL))
			return ipv6_dev_find(net, ip6, NULL);
		dev = dev_get_by_index_rcu(net, cm_in6(addr)->sin6_scope_id);
		return dev && ipv6_chk_addr(net, ip6, dev, 0) ? dev : NULL;
	}
#endif
	if (addr->ss_family == AF_INET)
		return __ip_dev_find(net, cm_in(addr)->sin_addr.s_addr, false);
	return NULL;
}

/*
 * The function that answers for an address. -EADDRNOTAVAIL: it is not one of this
 * machine; -ENODEV: no function is bound to its network device.
 */
static struct cm_fn *cm_addr_fn(struct net *net, const struct sockaddr_storage *addr)
{
	struct net_device *dev;
	struct cm_fn *fn;

	if (addr->ss_family == AF_IB)
		return cm_fn_by_gid(cm_ib(addr)->sib_addr.sib_raw) ?: ERR_PTR(-ENODEV);
	rcu_read_lock();
	dev = cm_addr_netdev(net, addr);
	fn = dev ? cm_fn_of_netdev(dev) : NULL;
	rcu_read_unlock();
	if (!dev)
		return ERR_PTR(-EADDRNOTAVAIL);
	return fn ?: ERR_PTR(-ENODEV);
}

/* Which scope a link-local address is of must be said. */
static bool cm_addr_complete(const struct sockaddr_storage *addr)
{
	return addr->ss_family != AF_INET6 || cm_in6(addr)->sin6_scope_id ||
	       !(ipv6_addr_type(&cm_in6(addr)->sin6_addr) & IPV6_ADDR_LINKLOCAL);
}

static void cm_set_afonly(struct cm_id *id)
{
	if (id->afonly_set)
		return;
	id->afonly = id->src.ss_family == AF_INET;
#if IS_ENABLED(CONFIG_IPV6)
	if (id->src.ss_family == AF_INET6)
		id->afonly = id->net->ipv6.sysctl.bindv6only;
#endif
}

/**
 * cm_bind_addr() - give an id an address and a port
 * @id: it has none.
 * @addr: the address, of one of our families.
 *
 * Return: 0; -EINVAL: it has one; -EADDRNOTAVAIL, -ENODEV: nobody answers for it; or
 * that of cm_port_get().
 */
int cm_bind_addr(struct cm_id *id, const void *addr)
{
	struct cm_fn *fn = NULL;
	int ret;

	if (id->state != CM_IDLE)
		return -EINVAL;
	memset(&id->src, 0, sizeof(id->src));
	memcpy(&id->src, addr, cm_addr_size(addr));
	ret = -EINVAL;
	if (!cm_addr_complete(&id->src))
		goto err;
	if (!cm_addr_any(&id->src)) {
		fn = cm_addr_fn(id->net, &id->src);
		ret = PTR_ERR_OR_ZERO(fn);
		if (ret)
			goto err;
	}
	cm_set_afonly(id);
	ret = cm_port_get(id);
	if (ret)
		goto err;
	if (fn)
		cm_id_attach(id, fn);
	id->dst.ss_family = id->src.ss_family;
	id->state = CM_BOUND;
	return 0;

err:
	memset(&id->src, 0, sizeof(id->src));
	return ret;
}

/** cm_cmd_bind_ip() - RDMA_USER_CM_CMD_BIND_IP */
int cm_cmd_bind_ip(struct cm_call *call, struct cm_id *id)
{
	int size = cm_addr_size(&call->in.bind_ip.addr);

	if (!size || size > sizeof(call->in.bind_ip.addr))
		return -EINVAL;
	return cm_bind_addr(id, &call->in.bind_ip.addr);
}

/** cm_cmd_bind() - RDMA_USER_CM_CMD_BIND */
int cm_cmd_bind(struct cm_call *call, struct cm_id *id)
{
	struct rdma_ucm_bind *arg = &call->in.bind;

	if (arg->reserved || !arg->addr_size || arg->addr_size != cm_addr_size(&arg->addr))
		return -EINVAL;
	return cm_bind_addr(id, &arg->addr);
}

/* Who is spoken to when an address stands for every one: this machine. */
static void cm_addr_set_loopback(struct cm_id *id, struct sockaddr_storage *addr)
{
	struct cm_fn *fn = id->fn ?: list_first_entry_or_null(&cm_fns, struct cm_fn, node);

	switch (addr->ss_family) {
	case AF_INET:
		cm_in(addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		break;
	case AF_INET6:
		cm_in6(addr)->sin6_addr = in6addr_loopback;
		break;
	default:
		if (fn)
			memcpy(cm_ib(addr)->sib_addr.sib_raw, fn->gid, sizeof(fn->gid));
	}
}

/* The address that packets to an address of this machine have as their source. */
static int cm_source_ip4(struct net *net, const struct sockaddr_storage *dst,
			 struct sockaddr_storage *src)
{
	struct flowi4 fl4 = { .daddr = cm_in(dst)->sin_addr.s_addr };
	struct rtable *rt = ip_route_output_key(net, &fl4);

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	ip_rt_put(rt);
	cm_in(src)->sin_addr.s_addr = fl4.saddr;
	return 0;
}

static int cm_source(struct cm_id *id)
{
	if (id->dst.ss_family == AF_INET)
		return cm_source_ip4(id->net, &id->dst, &id->src);
	cm_in6(&id->src)->sin6_addr = cm_in6(&id->dst)->sin6_addr;
	cm_in6(&id->src)->sin6_scope_id = cm_in6(&id->dst)->sin6_scope_id;
	return 0;
}

/*
 * The id's own function, if it is not known by its address. A multicast group and a
 * GID belong to every function: the lowest is taken.
 */
static int cm_resolve_source(struct cm_id *id, bool multicast)
{
	struct sockaddr_storage old = id->src;
	struct cm_fn *fn;
	int ret;

	if (id->fn)
		return 0;
	if (multicast || id->dst.ss_family == AF_IB) {
		fn = list_first_entry_or_null(&cm_fns, struct cm_fn, node);
		if (!fn)
			return -ENODEV;
		if (id->dst.ss_family == AF_IB)
			memcpy(cm_ib(&id->src)->sib_addr.sib_raw, fn->gid, sizeof(fn->gid));
	} else {
		ret = cm_source(id);
		if (ret)
			return ret;
		fn = cm_addr_fn(id->net, &id->src);
		if (IS_ERR(fn)) {
			id->src = old;
			return PTR_ERR(fn);
		}
	}
	cm_id_attach(id, fn);
	return 0;
}

/* Who answers for the peer's address. The rest of an AF_IB address is a service. */
static int cm_resolve_peer(struct cm_id *id, bool multicast)
{
	struct cm_fn *fn;

	if (id->dst.ss_family == AF_IB) {
		memcpy(id->rgid, cm_ib(&id->dst)->sib_addr.sib_raw, sizeof(id->rgid));
		return 0;
	}
	if (multicast)
		return 0;
	fn = cm_addr_fn(id->net, &id->dst);
	if (IS_ERR(fn))
		return PTR_ERR(fn) == -EADDRNOTAVAIL ? -EHOSTUNREACH : PTR_ERR(fn);
	memcpy(id->rgid, fn->gid, sizeof(id->rgid));
	return 0;
}

static int cm_resolve(struct cm_id *id)
{
	bool multicast = cm_addr_multicast(&id->dst);
	int ret;

	ret = cm_resolve_peer(id, multicast);
	return ret ?: cm_resolve_source(id, multicast);
}

/* An id that has no address gets one that stands for every one. */
static int cm_bind_for(struct cm_id *id, const void *src, const struct sockaddr_storage *dst)
{
	struct sockaddr_storage any = { .ss_family = dst->ss_family };
	sa_family_t family = ((const struct sockaddr *)src)->sa_family;

	if (family)
		return family == dst->ss_family ? cm_bind_addr(id, src) : -EINVAL;
	if (dst->ss_family == AF_INET6)
		cm_in6(&any)->sin6_scope_id = cm_in6(dst)->sin6_scope_id;
	else if (dst->ss_family == AF_IB)
		cm_ib(&any)->sib_pkey = cm_ib(dst)->sib_pkey;
	return cm_bind_addr(id, &any);
}

static int cm_resolve_addr(struct cm_id *id, const void *src, const void *dst)
{
	struct sockaddr_storage to = {};
	int ret;

	memcpy(&to, dst, cm_addr_size(dst));
	if (id->state == CM_IDLE) {
		ret = cm_bind_for(id, src, &to);
		if (ret)
			return ret;
	}
	if (id->state != CM_BOUND || id->src.ss_family != to.ss_family)
		return -EINVAL;
	id->dst = to;
	if (cm_addr_any(&id->dst))
		cm_addr_set_loopback(id, &id->dst);
	ret = cm_resolve(id);
	if (!ret)
		id->state = CM_ADDR_RESOLVED;
	cm_event_post(id, ret ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, ret,
		      NULL);
	return 0;
}

/** cm_cmd_resolve_ip() - RDMA_USER_CM_CMD_RESOLVE_IP */
int cm_cmd_resolve_ip(struct cm_call *call, struct cm_id *id)
{
	struct rdma_ucm_resolve_ip *arg = &call->in.resolve_ip;
	int src = cm_addr_size(&arg->src_addr);
	int dst = cm_addr_size(&arg->dst_addr);

	if ((arg->src_addr.sin6_family && !src) || src > sizeof(arg->src_addr) ||
	    !dst || dst > sizeof(arg->dst_addr))
		return -EINVAL;
	return cm_resolve_addr(id, &arg->src_addr, &arg->dst_addr);
}

/** cm_cmd_resolve_addr() - RDMA_USER_CM_CMD_RESOLVE_ADDR */
int cm_cmd_resolve_addr(struct cm_call *call, struct cm_id *id)
{
	struct rdma_ucm_resolve_addr *arg = &call->in.resolve_addr;

	if (!arg->src_size)
		arg->src_addr.ss_family = AF_UNSPEC;
	if (arg->reserved ||
	    (arg->src_size && arg->src_size != cm_addr_size(&arg->src_addr)) ||
	    !arg->dst_size || arg->dst_size != cm_addr_size(&arg->dst_addr))
		return -EINVAL;
	return cm_resolve_addr(id, &arg->src_addr, &arg->dst_addr);
}

static int cm_resolve_path(struct cm_id *id)
{
	struct vhca_client_port near, far;
	struct cm_fn *peer = cm_fn_by_gid(id->rgid);
	struct cm_path *path = &id->path;

	if (!peer || !cm_fn_active(peer, &far) || !cm_fn_active(id->fn, &near))
		return -EHOSTUNREACH;
	*path = (struct cm_path) {
		.slid		= near.lid,
		.dlid		= far.lid,
		.pkey		= id->fn->pkey,
		.mtu		= min(near.active_mtu, far.active_mtu),
		.rate		= CM_RATE,
		.life		= CM_PACKET_LIFE,
		.tclass		= id->tos,
	};
	memcpy(path->sgid, id->fn->gid, sizeof(path->sgid));
	memcpy(path->dgid, id->rgid, sizeof(path->dgid));
	return 0;
}

/** cm_cmd_resolve_route() - RDMA_USER_CM_CMD_RESOLVE_ROUTE */
int cm_cmd_resolve_route(struct cm_call *call, struct cm_id *id)
{
	int ret;

	if (!call->in.resolve_route.timeout_ms || id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	ret = cm_resolve_path(id);
	if (!ret) {
		id->has_path = true;
		id->state = CM_ROUTE_RESOLVED;
	}
	cm_event_post(id, ret ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED,
		      ret, NULL);
	return 0;
}
