// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user ABI of RDMA CM without the library: each command with ids that are nobody's or
 * another's, in wrong states, with buffers too short and addresses that lead nowhere. The
 * errno is that of the kernel's own rdma_ucm, and nothing has changed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>

#include "cm.h"
#include "harness.h"
#include "raw.h"

#define NOBODY		0x7fffff00	/* no id has this number */
#define UID		0x1122334455667788ull
#define CONNECT_REQUEST	4		/* events, as in <rdma/rdma_cma.h> */
#define ADDR_RESOLVED	0
#define ADDR_ERROR	1
#define ROUTE_RESOLVED	2
#define DISCONNECTED	10
#define CONNECT_RESPONSE 5
#define REJECTED	8
#define ESTABLISHED	9
#define MULTICAST_JOIN	12
#define TIMEWAIT_EXIT	15

static uint64_t ptr(const void *p)
{
	return (uintptr_t)p;
}

/* 0, or a negative errno. */
static int cm_cmd(int fd, uint32_t cmd, const void *in, size_t len, size_t out)
{
	char buf[1024];
	struct rdma_ucm_cmd_hdr hdr = { .cmd = cmd, .in = len, .out = out };
	ssize_t n;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), in, len);
	n = write(fd, buf, sizeof(hdr) + len);
	if (n < 0)
		return -errno;
	return n == (ssize_t)(sizeof(hdr) + len) ? 0 : -EPROTO;
}

#define CMD(fd, name, cmd, out)	\
	cm_cmd(fd, RDMA_USER_CM_CMD_ ## name, &(cmd), sizeof(cmd), out)

static int cm_open_file(void)
{
	return open(CM_DEVICE, O_RDWR | O_CLOEXEC);
}

static int create(int fd, int ps, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp = { .id = NOBODY };
	struct rdma_ucm_create_id cmd = {
		.uid = UID, .response = ptr(&resp), .ps = ps,
		.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
	};
	int err = CMD(fd, CREATE_ID, cmd, sizeof(resp));

	*id = resp.id;
	return err;
}

/* How many of its events were read, or a negative errno. */
static int destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = { .events_reported = 4711 };
	struct rdma_ucm_destroy_id cmd = { .response = ptr(&resp), .id = id };
	int err = CMD(fd, DESTROY_ID, cmd, sizeof(resp));

	return err ? err : (int)resp.events_reported;
}

static size_t size_of(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->in) :
	       a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->ib);
}

static int bind_at(int fd, uint32_t id, union cm_addr a)
{
	struct rdma_ucm_bind cmd = { .id = id, .addr_size = size_of(&a) };

	memcpy(&cmd.addr, &a, sizeof(a));
	return CMD(fd, BIND, cmd, 0);
}

static int bind_ip(int fd, uint32_t id, union cm_addr a)
{
	struct rdma_ucm_bind_ip cmd = { .id = id };

	memcpy(&cmd.addr, &a, sizeof(cmd.addr));
	return CMD(fd, BIND_IP, cmd, 0);
}

static int resolve_addr(int fd, uint32_t id, union cm_addr to)
{
	struct rdma_ucm_resolve_addr cmd = {
		.id = id, .timeout_ms = 2000, .dst_size = size_of(&to),
	};

	memcpy(&cmd.dst_addr, &to, sizeof(to));
	return CMD(fd, RESOLVE_ADDR, cmd, 0);
}

static int resolve_ip(int fd, uint32_t id, union cm_addr to)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id, .timeout_ms = 2000 };

	memcpy(&cmd.dst_addr, &to, sizeof(cmd.dst_addr));
	return CMD(fd, RESOLVE_IP, cmd, 0);
}

static int resolve_addr_from(int fd, uint32_t id, union cm_addr from, union cm_addr to)
{
	struct rdma_ucm_resolve_addr cmd = {
		.id = id, .timeout_ms = 2000, .src_size = size_of(&from), .dst_size = size_of(&to),
	};

	memcpy(&cmd.src_addr, &from, sizeof(from));
	memcpy(&cmd.dst_addr, &to, sizeof(to));
	return CMD(fd, RESOLVE_ADDR, cmd, 0);
}

static int resolve_ip_from(int fd, uint32_t id, union cm_addr from, union cm_addr to)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id, .timeout_ms = 2000 };

	memcpy(&cmd.src_addr, &from, sizeof(cmd.src_addr));
	memcpy(&cmd.dst_addr, &to, sizeof(cmd.dst_addr));
	return CMD(fd, RESOLVE_IP, cmd, 0);
}

/* To an address for documentation, of RFC 5737: the id stays bound, and has an ADDR_ERROR. */
static int resolve_nobody(int fd, uint32_t id)
{
	union cm_addr far = { .in.sin_family = AF_INET, .in.sin_port = htons(7471) };

	inet_pton(AF_INET, "203.0.113.1", &far.in.sin_addr);
	return resolve_addr(fd, id, far);
}

static int resolve_route(int fd, uint32_t id, uint32_t ms)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = ms };

	return CMD(fd, RESOLVE_ROUTE, cmd, 0);
}

static int listen_for(int fd, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = backlog };

	return CMD(fd, LISTEN, cmd, 0);
}

/* No number of a QP comes twice: that would be a connection from before. */
static struct rdma_ucm_conn_param param(void)
{
	static uint32_t made;

	return (struct rdma_ucm_conn_param){
		.qp_num = (getpid() << 8 | ++made) & 0xffffff,
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7, .valid = 1,
	};
}

static int do_connect(int fd, uint32_t id)
{
	struct rdma_ucm_connect cmd = { .conn_param = param(), .id = id };

	return CMD(fd, CONNECT, cmd, 0);
}

static int do_accept(int fd, uint32_t id, uint64_t uid)
{
	struct rdma_ucm_accept cmd = { .conn_param = param(), .uid = uid, .id = id };

	return CMD(fd, ACCEPT, cmd, 0);
}

/* The acceptance of an answer, by who connects. */
static int confirm(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return CMD(fd, ACCEPT, cmd, 0);
}

static int reject(int fd, uint32_t id)
{
	struct rdma_ucm_reject cmd = { .id = id };

	return CMD(fd, REJECT, cmd, 0);
}

static int disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return CMD(fd, DISCONNECT, cmd, 0);
}

static int init_qp_attr(int fd, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr resp = {};
	struct rdma_ucm_init_qp_attr cmd = {
		.response = ptr(&resp), .id = id, .qp_state = state,
	};

	return CMD(fd, INIT_QP_ATTR, cmd, sizeof(resp));
}

static int query(int fd, uint32_t id, uint32_t option, struct rdma_ucm_query_addr_resp *resp)
{
	struct rdma_ucm_query cmd = { .response = ptr(resp), .id = id, .option = option };

	return CMD(fd, QUERY, cmd, sizeof(*resp));
}

static int query_route(int fd, uint32_t id)
{
	struct rdma_ucm_query_route_resp resp;
	struct rdma_ucm_query cmd = { .response = ptr(&resp), .id = id };

	return CMD(fd, QUERY_ROUTE, cmd, sizeof(resp));
}

static int set_option(int fd, uint32_t id, uint32_t level, uint32_t name, const void *value,
		      uint32_t len)
{
	struct rdma_ucm_set_option cmd = {
		.optval = ptr(value), .id = id, .level = level, .optname = name, .optlen = len,
	};

	return CMD(fd, SET_OPTION, cmd, 0);
}

static int notify(int fd, uint32_t id)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = IBV_EVENT_COMM_EST };

	return CMD(fd, NOTIFY, cmd, 0);
}

static union cm_addr group(void)
{
	union cm_addr a = { .in.sin_family = AF_INET };

	inet_pton(AF_INET, "239.1.2.3", &a.in.sin_addr);
	return a;
}

/* The number of the membership, or a negative errno. */
static int join(int fd, uint32_t id, uint16_t flags)
{
	struct rdma_ucm_create_id_resp resp = {};
	union cm_addr a = group();
	struct rdma_ucm_join_mcast cmd = {
		.response = ptr(&resp), .uid = UID, .id = id,
		.addr_size = size_of(&a), .join_flags = flags,
	};
	int err;

	memcpy(&cmd.addr, &a, sizeof(a));
	err = CMD(fd, JOIN_MCAST, cmd, sizeof(resp));
	return err ? err : (int)resp.id;
}

static int join_ip(int fd, uint32_t id)
{
	struct rdma_ucm_create_id_resp resp = {};
	struct rdma_ucm_join_ip_mcast cmd = { .response = ptr(&resp), .uid = UID, .id = id };
	union cm_addr a = group();
	int err;

	memcpy(&cmd.addr, &a, sizeof(cmd.addr));
	err = CMD(fd, JOIN_IP_MCAST, cmd, sizeof(resp));
	return err ? err : (int)resp.id;
}

static int leave(int fd, uint32_t mc)
{
	struct rdma_ucm_destroy_id_resp resp = {};
	struct rdma_ucm_destroy_id cmd = { .response = ptr(&resp), .id = mc };
	int err = CMD(fd, LEAVE_MCAST, cmd, sizeof(resp));

	return err ? err : (int)resp.events_reported;
}

static int migrate(int to, int from, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp = {};
	struct rdma_ucm_migrate_id cmd = { .response = ptr(&resp), .id = id, .fd = from };
	int err = CMD(to, MIGRATE_ID, cmd, sizeof(resp));

	return err ? err : (int)resp.events_reported;
}

static int get_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = { .response = ptr(event) };

	memset(event, 0, sizeof(*event));
	return CMD(fd, GET_EVENT, cmd, sizeof(*event));
}

/* The next event is this one of this id; its uid is returned. */
static struct rdma_ucm_event_resp expect(struct __test_metadata *_metadata, int fd, uint32_t type,
					 uint32_t id)
{
	struct rdma_ucm_event_resp event;

	ASSERT_TRUE(readable(fd, DEADLINE_NS / 1000000)) {
		TH_LOG("no event %u", type);
	}
	ASSERT_EQ(0, get_event(fd, &event));
	ASSERT_EQ(type, event.event) {
		TH_LOG("status %d", (int)event.status);
	}
	EXPECT_EQ(id, event.id);
	return event;
}

/* Two files, and an id in each; that of the other file is bound. */
FIXTURE(abi)
{
	int fd;
	int other_fd;
	uint32_t id;
	uint32_t other;
	union cm_addr addr;	/* where the other one is */
};

static uint16_t port_of(int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp = {};

	return query(fd, id, RDMA_USER_CM_QUERY_ADDR, &resp) ? 0 :
	       ((union cm_addr *)&resp.src_addr)->in.sin_port;
}

FIXTURE_SETUP(abi)
{
	self->fd = cm_open_file();
	self->other_fd = cm_open_file();
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other_fd);
	ASSERT_EQ(0, create(self->fd, RDMA_PS_TCP, &self->id));
	ASSERT_EQ(0, create(self->other_fd, RDMA_PS_TCP, &self->other));
	self->addr = cm_address(AF_INET, 0);
	ASSERT_EQ(0, bind_at(self->other_fd, self->other, self->addr));
	self->addr.in.sin_port = port_of(self->other_fd, self->other);
	ASSERT_NE(0, self->addr.in.sin_port);
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
	close(self->other_fd);
}

/* Ids */

/* Every command that has an id in it, as far as the id is looked at. */
struct by_id {
	const char *name;
	int (*call)(int fd, uint32_t id);
};

#define BY_ID(name, ...)							\
static int with_ ## name(int fd, uint32_t id)					\
{										\
	return __VA_ARGS__;							\
}

static struct rdma_ucm_query_addr_resp ignored;
static const uint8_t byte;

BY_ID(bind, bind_at(fd, id, cm_address(AF_INET, 0)))
BY_ID(bind_ip, bind_ip(fd, id, cm_address(AF_INET, 0)))
BY_ID(resolve_addr, resolve_addr(fd, id, cm_address(AF_INET, 7471)))
BY_ID(resolve_ip, resolve_ip(fd, id, cm_address(AF_INET, 7471)))
BY_ID(resolve_route, resolve_route(fd, id, 2000))
BY_ID(listen, listen_for(fd, id, 1))
BY_ID(accept, do_accept(fd, id, UID))
BY_ID(init_qp_attr, init_qp_attr(fd, id, IBV_QPS_INIT))
BY_ID(query_addr, query(fd, id, RDMA_USER_CM_QUERY_ADDR, &ignored))
BY_ID(query_path, query(fd, id, RDMA_USER_CM_QUERY_PATH, &ignored))
BY_ID(query_gid, query(fd, id, RDMA_USER_CM_QUERY_GID, &ignored))
BY_ID(set_option, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1))
BY_ID(join, join(fd, id, RDMA_MC_JOIN_FLAG_FULLMEMBER))

static const struct by_id by_id[] = {
	{ "DESTROY_ID", destroy },
	{ "BIND", with_bind },
	{ "BIND_IP", with_bind_ip },
	{ "RESOLVE_ADDR", with_resolve_addr },
	{ "RESOLVE_IP", with_resolve_ip },
	{ "RESOLVE_ROUTE", with_resolve_route },
	{ "LISTEN", with_listen },
	{ "CONNECT", do_connect },
	{ "ACCEPT", with_accept },
	{ "ACCEPT of an answer", confirm },
	{ "REJECT", reject },
	{ "DISCONNECT", disconnect },
	{ "INIT_QP_ATTR", with_init_qp_attr },
	{ "QUERY_ROUTE", query_route },
	{ "QUERY, address", with_query_addr },
	{ "QUERY, path", with_query_path },
	{ "QUERY, GID", with_query_gid },
	{ "SET_OPTION", with_set_option },
	{ "NOTIFY", notify },
	{ "JOIN_MCAST", with_join },
	{ "JOIN_IP_MCAST", join_ip },
};

#define COMMANDS	(sizeof(by_id) / sizeof(by_id[0]))

TEST_F(abi, an_id_of_nobody_is_not_found)
{
	static const uint32_t ids[] = { NOBODY, 0xffffffff, 0x80000000 };
	unsigned int i, j;

	for (i = 0; i < COMMANDS; i++) {
		for (j = 0; j < 3; j++) {
			EXPECT_EQ(-ENOENT, by_id[i].call(self->fd, ids[j])) {
				TH_LOG("%s", by_id[i].name);
			}
		}
	}
	EXPECT_EQ(-ENOENT, leave(self->fd, NOBODY));
	EXPECT_EQ(-ENOENT, migrate(self->fd, self->other_fd, NOBODY));
}

TEST_F(abi, an_id_of_another_file_is_invalid)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++) {
		EXPECT_EQ(-EINVAL, by_id[i].call(self->fd, self->other)) {
			TH_LOG("%s", by_id[i].name);
		}
	}
	/* It is where it was: bound, and with no events. */
	EXPECT_EQ(self->addr.in.sin_port, port_of(self->other_fd, self->other));
	EXPECT_FALSE(readable(self->other_fd, 0));
	EXPECT_EQ(0, destroy(self->other_fd, self->other));
}

TEST_F(abi, an_id_is_gone_when_it_is_destroyed)
{
	unsigned int i;

	ASSERT_EQ(0, destroy(self->fd, self->id));
	for (i = 0; i < COMMANDS; i++) {
		EXPECT_EQ(-ENOENT, by_id[i].call(self->fd, self->id)) {
			TH_LOG("%s", by_id[i].name);
		}
	}
}

TEST_F(abi, an_id_moves_only_out_of_its_own_file)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	EXPECT_EQ(-EINVAL, migrate(self->fd, self->fd, self->other));
	EXPECT_EQ(-EINVAL, migrate(self->fd, null, self->other));
	EXPECT_EQ(-ENOENT, migrate(self->fd, -1, self->other));
	EXPECT_EQ(-ENOENT, migrate(self->fd, 1000000, self->other));
	EXPECT_NE(0, port_of(self->other_fd, self->other));
	EXPECT_EQ(0, migrate(self->fd, self->other_fd, self->other));
	EXPECT_EQ(self->addr.in.sin_port, port_of(self->fd, self->other));
	EXPECT_EQ(-EINVAL, destroy(self->other_fd, self->other));
	/* To where it is. */
	EXPECT_EQ(0, migrate(self->fd, self->fd, self->other));
	EXPECT_EQ(0, destroy(self->fd, self->other));
	close(null);
}

/* Limits */

TEST_F(abi, a_channel_has_so_many_ids)
{
	uint32_t id, more;

	if (on_reference())
		SKIP(return, "it has no limit");
	ASSERT_TRUE(set_parameter("file_max_id", 2));
	EXPECT_EQ(0, create(self->fd, RDMA_PS_TCP, &id));
	EXPECT_EQ(-ENOMEM, create(self->fd, RDMA_PS_TCP, &more));
	/* What goes away, or to another channel, makes room; another channel has its own. */
	EXPECT_EQ(0, destroy(self->fd, id));
	EXPECT_EQ(0, create(self->fd, RDMA_PS_TCP, &id));
	EXPECT_EQ(0, create(self->other_fd, RDMA_PS_TCP, &more));
	EXPECT_EQ(0, migrate(self->other_fd, self->fd, id));
	EXPECT_EQ(0, create(self->fd, RDMA_PS_TCP, &id));
	EXPECT_EQ(-ENOMEM, create(self->other_fd, RDMA_PS_TCP, &more));
	EXPECT_TRUE(set_parameter("file_max_id", 16384));
	EXPECT_EQ(0, create(self->fd, RDMA_PS_TCP, &id));
}

TEST_F(abi, there_are_so_many_ids)
{
	uint32_t id;

	if (on_reference())
		SKIP(return, "it has no limit");
	ASSERT_TRUE(set_parameter("max_id", 3));
	EXPECT_EQ(0, create(self->fd, RDMA_PS_TCP, &id));
	EXPECT_EQ(-ENOMEM, create(self->other_fd, RDMA_PS_TCP, &id));
	EXPECT_TRUE(set_parameter("max_id", 65536));
	EXPECT_EQ(0, create(self->other_fd, RDMA_PS_TCP, &id));
}

/* Commands and their buffers */

TEST_F(abi, a_command_has_a_header_and_a_number)
{
	struct rdma_ucm_cmd_hdr hdr = { .cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8 };
	void *volatile nowhere = (void *)8;
	char text[64] = "";
	uint32_t cmd;

	for (cmd = RDMA_USER_CM_CMD_JOIN_MCAST + 1; cmd < 64; cmd++)
		EXPECT_EQ(-EINVAL, cm_cmd(self->fd, cmd, text, sizeof(text), 64));
	EXPECT_EQ(-EINVAL, cm_cmd(self->fd, 0xffffffff, text, sizeof(text), 64));
	EXPECT_EQ(-ENOSYS, cm_cmd(self->fd, RDMA_USER_CM_CMD_GET_OPTION, text, sizeof(text), 64));
	EXPECT_EQ(-1, write(self->fd, &hdr, sizeof(hdr) - 1));
	EXPECT_EQ(EINVAL, errno);
	/* The header says more than there is. */
	EXPECT_EQ(-1, write(self->fd, &hdr, sizeof(hdr)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, nowhere, 64));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, read(self->fd, text, sizeof(text)));
	EXPECT_EQ(EINVAL, errno);
}

/* A whole command, and what there is room for in its answer. */
struct answered {
	const char *name;
	uint32_t cmd;
	size_t in;
	size_t out;		/* of the oldest answer that is known */
};

static const struct answered answered[] = {
	{ "CREATE_ID", RDMA_USER_CM_CMD_CREATE_ID, sizeof(struct rdma_ucm_create_id), 4 },
	{ "DESTROY_ID", RDMA_USER_CM_CMD_DESTROY_ID, sizeof(struct rdma_ucm_destroy_id), 4 },
	{ "LEAVE_MCAST", RDMA_USER_CM_CMD_LEAVE_MCAST, sizeof(struct rdma_ucm_destroy_id), 4 },
	{ "QUERY_ROUTE", RDMA_USER_CM_CMD_QUERY_ROUTE, sizeof(struct rdma_ucm_query),
	  offsetof(struct rdma_ucm_query_route_resp, ibdev_index) },
	{ "INIT_QP_ATTR", RDMA_USER_CM_CMD_INIT_QP_ATTR, sizeof(struct rdma_ucm_init_qp_attr),
	  sizeof(struct ib_uverbs_qp_attr) },
	{ "GET_EVENT", RDMA_USER_CM_CMD_GET_EVENT, sizeof(struct rdma_ucm_get_event),
	  offsetof(struct rdma_ucm_event_resp, reserved) },
};

TEST_F(abi, an_answer_needs_its_room)
{
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query cmd = { .response = ptr(&resp), .id = self->id };
	static char text[512];
	unsigned int i;

	for (i = 0; i < sizeof(answered) / sizeof(answered[0]); i++) {
		EXPECT_EQ(-ENOSPC, cm_cmd(self->fd, answered[i].cmd, text, answered[i].in,
					  answered[i].out - 1)) {
			TH_LOG("%s", answered[i].name);
		}
		EXPECT_EQ(-ENOSPC, cm_cmd(self->fd, answered[i].cmd, text, answered[i].in, 0)) {
			TH_LOG("%s", answered[i].name);
		}
	}
	for (cmd.option = 0; cmd.option < 3; cmd.option++) {
		size_t least = cmd.option == RDMA_USER_CM_QUERY_PATH ?
			sizeof(struct rdma_ucm_query_path_resp) :
			offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);

		EXPECT_EQ(-ENOSPC, CMD(self->fd, QUERY, cmd, least - 1));
		EXPECT_EQ(0, CMD(self->fd, QUERY, cmd, least));
	}
	EXPECT_EQ(-ENOSYS, CMD(self->fd, QUERY, cmd, sizeof(resp)));
	EXPECT_EQ(0, destroy(self->fd, self->id));
}

/* What is beyond the room given stays as it was. */
TEST_F(abi, an_answer_keeps_to_its_room)
{
	struct {
		struct rdma_ucm_query_addr_resp resp;
		char behind[64];
	} room;
	struct rdma_ucm_query cmd = { .response = ptr(&room), .id = self->id };
	size_t least = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index), i;

	memset(&room, 0x5a, sizeof(room));
	ASSERT_EQ(0, CMD(self->fd, QUERY, cmd, least));
	for (i = least; i < sizeof(room); i++)
		ASSERT_EQ(0x5a, ((uint8_t *)&room)[i]);
	ASSERT_EQ(0, CMD(self->fd, QUERY, cmd, sizeof(room)));
	for (i = sizeof(room.resp); i < sizeof(room); i++)
		ASSERT_EQ(0x5a, ((uint8_t *)&room)[i]);
}

TEST_F(abi, an_answer_that_cannot_be_given_is_a_fault)
{
	struct rdma_ucm_create_id create = { .response = 8, .ps = RDMA_PS_TCP };
	struct rdma_ucm_query q = { .response = 8, .id = self->id };
	struct rdma_ucm_init_qp_attr attr = {
		.response = 8, .id = self->other, .qp_state = IBV_QPS_INIT,
	};
	struct rdma_ucm_destroy_id d = { .response = 8, .id = self->other };

	EXPECT_EQ(-EFAULT, CMD(self->fd, CREATE_ID, create, 4));
	EXPECT_EQ(-EFAULT, CMD(self->fd, QUERY_ROUTE, q,
			       sizeof(struct rdma_ucm_query_route_resp)));
	for (q.option = 0; q.option < 3; q.option++)
		EXPECT_EQ(-EFAULT, CMD(self->fd, QUERY, q,
				       sizeof(struct rdma_ucm_query_addr_resp)));
	EXPECT_EQ(-EFAULT, CMD(self->other_fd, INIT_QP_ATTR, attr,
			       sizeof(struct ib_uverbs_qp_attr)));
	/* The kernel's own finds out when the id is gone. */
	EXPECT_EQ(-EFAULT, CMD(self->other_fd, DESTROY_ID, d, 4));
	EXPECT_EQ(on_reference() ? -ENOENT : 0, destroy(self->other_fd, self->other));
}

/*
 * A command that ends where memory ends, one byte early, is not carried out. The kernel's
 * own runs into the end; to have counted is as good.
 */
TEST_F(abi, a_command_needs_all_of_itself)
{
	static const size_t sizes[] = {
		[RDMA_USER_CM_CMD_CREATE_ID] = sizeof(struct rdma_ucm_create_id),
		[RDMA_USER_CM_CMD_DESTROY_ID] = sizeof(struct rdma_ucm_destroy_id),
		[RDMA_USER_CM_CMD_BIND_IP] = sizeof(struct rdma_ucm_bind_ip),
		[RDMA_USER_CM_CMD_RESOLVE_IP] = sizeof(struct rdma_ucm_resolve_ip),
		[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = sizeof(struct rdma_ucm_resolve_route),
		[RDMA_USER_CM_CMD_QUERY_ROUTE] = sizeof(struct rdma_ucm_query),
		[RDMA_USER_CM_CMD_CONNECT] = offsetof(struct rdma_ucm_connect, ece),
		[RDMA_USER_CM_CMD_LISTEN] = sizeof(struct rdma_ucm_listen),
		[RDMA_USER_CM_CMD_ACCEPT] = offsetof(struct rdma_ucm_accept, ece),
		[RDMA_USER_CM_CMD_REJECT] = sizeof(struct rdma_ucm_reject),
		[RDMA_USER_CM_CMD_DISCONNECT] = sizeof(struct rdma_ucm_disconnect),
		[RDMA_USER_CM_CMD_INIT_QP_ATTR] = sizeof(struct rdma_ucm_init_qp_attr),
		[RDMA_USER_CM_CMD_GET_EVENT] = sizeof(struct rdma_ucm_get_event),
		[RDMA_USER_CM_CMD_SET_OPTION] = sizeof(struct rdma_ucm_set_option),
		[RDMA_USER_CM_CMD_NOTIFY] = sizeof(struct rdma_ucm_notify),
		[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = sizeof(struct rdma_ucm_join_ip_mcast),
		[RDMA_USER_CM_CMD_LEAVE_MCAST] = sizeof(struct rdma_ucm_destroy_id),
		[RDMA_USER_CM_CMD_MIGRATE_ID] = sizeof(struct rdma_ucm_migrate_id),
		[RDMA_USER_CM_CMD_QUERY] = sizeof(struct rdma_ucm_query),
		[RDMA_USER_CM_CMD_BIND] = sizeof(struct rdma_ucm_bind),
		[RDMA_USER_CM_CMD_RESOLVE_ADDR] = sizeof(struct rdma_ucm_resolve_addr),
		[RDMA_USER_CM_CMD_JOIN_MCAST] = sizeof(struct rdma_ucm_join_mcast),
	};
	struct rdma_ucm_cmd_hdr hdr = { .out = 512 };
	char *page, *at;
	uint32_t cmd;

	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	for (cmd = 0; cmd < sizeof(sizes) / sizeof(sizes[0]); cmd++) {
		if (!sizes[cmd])
			continue;
		hdr.cmd = cmd;
		hdr.in = sizes[cmd] - 1;
		at = page + 4096 - sizeof(hdr) - hdr.in;
		memcpy(at, &hdr, sizeof(hdr));
		EXPECT_EQ(-1, write(self->fd, at, sizeof(hdr) + hdr.in));
		EXPECT_TRUE(errno == EFAULT || errno == EINVAL) {
			TH_LOG("command %u: errno %d", cmd, errno);
		}
	}
	munmap(page, 4096);
	EXPECT_EQ(0, destroy(self->fd, self->id));
}

/* What older and newer programs send. */
TEST_F(abi, a_command_may_be_longer_than_is_known)
{
	char long_one[sizeof(struct rdma_ucm_listen) + 64] = "";
	struct rdma_ucm_listen cmd = { .id = self->other, .backlog = 3 };

	memcpy(long_one, &cmd, sizeof(cmd));
	EXPECT_EQ(0, cm_cmd(self->other_fd, RDMA_USER_CM_CMD_LISTEN, long_one,
			    sizeof(long_one), 0));
}

/* States */

TEST_F(abi, port_spaces)
{
	uint32_t id;

	EXPECT_EQ(-EINVAL, create(self->fd, 0, &id));
	EXPECT_EQ(-EINVAL, create(self->fd, 0x9999, &id));
	EXPECT_EQ(NOBODY, id);
	ASSERT_EQ(0, create(self->fd, RDMA_PS_UDP, &id));
	EXPECT_EQ(0, destroy(self->fd, id));
	ASSERT_EQ(0, create(self->fd, RDMA_PS_IB, &id));
	EXPECT_EQ(0, destroy(self->fd, id));
}

/* Those for which an id must have a device. */
static int needs_device(const char *name)
{
	static const char * const needs[] = {
		"RESOLVE_ROUTE", "CONNECT", "ACCEPT", "ACCEPT of an answer", "REJECT",
		"DISCONNECT", "INIT_QP_ATTR", "NOTIFY", "JOIN_MCAST", "JOIN_IP_MCAST",
	};
	unsigned int i;

	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (!strcmp(needs[i], name))
			return 1;
	return 0;
}

TEST_F(abi, a_new_id_can_do_little)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++) {
		if (!needs_device(by_id[i].name))
			continue;
		EXPECT_EQ(-EINVAL, by_id[i].call(self->fd, self->id)) {
			TH_LOG("%s", by_id[i].name);
		}
	}
	EXPECT_EQ(0, port_of(self->fd, self->id));
	/* None of which has spoilt it. */
	EXPECT_EQ(0, bind_at(self->fd, self->id, cm_address(AF_INET, 0)));
	EXPECT_FALSE(readable(self->fd, 0));
}

TEST_F(abi, a_bound_id_cannot_connect)
{
	int fd = self->other_fd;
	uint32_t id = self->other;

	EXPECT_EQ(-EINVAL, bind_at(fd, id, cm_address(AF_INET, 0)));
	EXPECT_EQ(-EINVAL, bind_ip(fd, id, cm_address(AF_INET, 0)));
	EXPECT_EQ(-EINVAL, resolve_route(fd, id, 2000));
	EXPECT_EQ(-EINVAL, do_connect(fd, id));
	EXPECT_EQ(-EINVAL, do_accept(fd, id, UID));
	EXPECT_EQ(-EINVAL, confirm(fd, id));
	EXPECT_EQ(-EINVAL, reject(fd, id));
	EXPECT_EQ(-EINVAL, disconnect(fd, id));
	EXPECT_EQ(-EINVAL, notify(fd, id));
	EXPECT_EQ(-EINVAL, join(fd, id, RDMA_MC_JOIN_FLAG_FULLMEMBER));
	EXPECT_EQ(0, init_qp_attr(fd, id, IBV_QPS_INIT));
	EXPECT_EQ(-EINVAL, init_qp_attr(fd, id, IBV_QPS_ERR + 1));
	EXPECT_EQ(self->addr.in.sin_port, port_of(fd, id));
	EXPECT_FALSE(readable(fd, 0));
	EXPECT_EQ(0, listen_for(fd, id, 1));
}

TEST_F(abi, a_listener_listens_once)
{
	int fd = self->other_fd;
	uint32_t id = self->other;

	ASSERT_EQ(0, listen_for(fd, id, 1));
	EXPECT_EQ(-EINVAL, listen_for(fd, id, 1));
	EXPECT_EQ(-EINVAL, bind_at(fd, id, cm_address(AF_INET, 0)));
	EXPECT_EQ(-EINVAL, resolve_addr(fd, id, self->addr));
	EXPECT_EQ(-EINVAL, do_connect(fd, id));
	EXPECT_EQ(-EINVAL, do_accept(fd, id, UID));
	EXPECT_FALSE(readable(fd, 0));
}

/* An id that was given no address listens on all, at a port of its own. */
TEST_F(abi, a_new_id_may_listen)
{
	ASSERT_EQ(0, listen_for(self->fd, self->id, 0));
	EXPECT_NE(0, port_of(self->fd, self->id));
	EXPECT_EQ(-EINVAL, listen_for(self->fd, self->id, 1));
}

TEST_F(abi, a_route_comes_after_its_address_and_once)
{
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	EXPECT_EQ(UID, expect(_metadata, self->fd, ADDR_RESOLVED, self->id).uid);
	EXPECT_EQ(-EINVAL, do_connect(self->fd, self->id));
	EXPECT_EQ(-EINVAL, resolve_addr(self->fd, self->id, self->addr));
	EXPECT_EQ(-EINVAL, bind_at(self->fd, self->id, cm_address(AF_INET, 0)));
	EXPECT_EQ(-EINVAL, listen_for(self->fd, self->id, 1));
	EXPECT_EQ(-EINVAL, resolve_route(self->fd, self->id, 0));
	ASSERT_EQ(0, resolve_route(self->fd, self->id, 2000));
	expect(_metadata, self->fd, ROUTE_RESOLVED, self->id);
	EXPECT_EQ(-EINVAL, resolve_route(self->fd, self->id, 2000));
	EXPECT_EQ(-EINVAL, disconnect(self->fd, self->id));
	EXPECT_EQ(-EINVAL, reject(self->fd, self->id));
	EXPECT_FALSE(readable(self->fd, 0));
	/* The two were read. */
	EXPECT_EQ(2, destroy(self->fd, self->id));
}

/* The older form of the command does the same. */
TEST_F(abi, addresses_of_internet_have_commands_of_their_own)
{
	ASSERT_EQ(0, bind_ip(self->fd, self->id, cm_address(AF_INET, 0)));
	EXPECT_NE(0, port_of(self->fd, self->id));
	ASSERT_EQ(0, resolve_ip(self->fd, self->id, self->addr));
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
}

/* Addresses */

TEST_F(abi, an_address_must_be_one)
{
	union cm_addr good = cm_address(AF_INET, 0), bad = { .sa.sa_family = AF_UNIX };
	struct rdma_ucm_resolve_addr to = { .id = self->id, .timeout_ms = 1000 };
	struct rdma_ucm_bind cmd = { .id = self->id };

	memcpy(&cmd.addr, &good, sizeof(good));
	EXPECT_EQ(-EINVAL, CMD(self->fd, BIND, cmd, 0));
	cmd.addr_size = sizeof(good.in) - 1;
	EXPECT_EQ(-EINVAL, CMD(self->fd, BIND, cmd, 0));
	cmd.addr_size = 0xffff;
	EXPECT_EQ(-EINVAL, CMD(self->fd, BIND, cmd, 0));
	cmd.addr_size = sizeof(good.in);
	cmd.reserved = 1;
	EXPECT_EQ(-EINVAL, CMD(self->fd, BIND, cmd, 0));
	EXPECT_EQ(-EINVAL, bind_at(self->fd, self->id, bad));
	EXPECT_EQ(-EINVAL, bind_ip(self->fd, self->id, bad));
	EXPECT_EQ(-EINVAL, resolve_addr(self->fd, self->id, bad));
	EXPECT_EQ(-EINVAL, resolve_ip(self->fd, self->id, bad));

	memcpy(&to.dst_addr, &self->addr, sizeof(self->addr));
	EXPECT_EQ(-EINVAL, CMD(self->fd, RESOLVE_ADDR, to, 0));
	to.dst_size = sizeof(self->addr.in);
	to.reserved = 1;
	EXPECT_EQ(-EINVAL, CMD(self->fd, RESOLVE_ADDR, to, 0));
	to.reserved = 0;
	to.src_size = 3;
	EXPECT_EQ(-EINVAL, CMD(self->fd, RESOLVE_ADDR, to, 0));
	EXPECT_EQ(0, port_of(self->fd, self->id));
	EXPECT_FALSE(readable(self->fd, 0));
	EXPECT_EQ(0, bind_at(self->fd, self->id, good));
}

/* Who is bound to one family cannot go to the other. */
TEST_F(abi, families_do_not_mix)
{
	EXPECT_EQ(-EINVAL, resolve_addr(self->other_fd, self->other,
					cm_address(AF_INET6, 7471)));
	EXPECT_FALSE(readable(self->other_fd, 0));
	EXPECT_EQ(0, listen_for(self->other_fd, self->other, 1));
}

/* Nothing of a command that is refused stays: the id has no port, the port no id. */
TEST_F(abi, a_source_of_another_family_binds_nothing)
{
	union cm_addr four = self->addr, six = cm_address(AF_INET6, ntohs(four.in.sin_port));
	int fd = self->fd;
	uint32_t id = self->id;

	if (on_reference())
		SKIP(return, "it binds the id");
	ASSERT_EQ(0, destroy(self->other_fd, self->other));
	EXPECT_EQ(-EINVAL, resolve_addr_from(fd, id, four, six));
	EXPECT_EQ(0, port_of(fd, id));
	EXPECT_EQ(-EINVAL, resolve_addr_from(fd, id, six, four));
	EXPECT_EQ(0, port_of(fd, id));
	EXPECT_EQ(-EINVAL, resolve_ip_from(fd, id, four, six));
	EXPECT_EQ(-EINVAL, resolve_ip_from(fd, id, six, four));
	EXPECT_EQ(0, port_of(fd, id));
	EXPECT_FALSE(readable(fd, 0));
	ASSERT_EQ(0, create(self->other_fd, RDMA_PS_TCP, &self->other));
	EXPECT_EQ(0, bind_at(self->other_fd, self->other, four));
	EXPECT_EQ(0, resolve_addr_from(fd, id, cm_address(AF_INET, 0), four));
	expect(_metadata, fd, ADDR_RESOLVED, id);
}

TEST_F(abi, a_port_that_is_taken_is_in_use)
{
	uint32_t udp;

	EXPECT_EQ(-EADDRINUSE, bind_at(self->fd, self->id, self->addr));
	ASSERT_EQ(0, create(self->fd, RDMA_PS_UDP, &udp));
	EXPECT_EQ(0, bind_at(self->fd, udp, self->addr));
	ASSERT_EQ(0, destroy(self->other_fd, self->other));
	EXPECT_EQ(0, bind_at(self->fd, self->id, self->addr));
}

/* 0 when a child of no privilege is refused a low port. */
static int low_port_refused(void)
{
	uint32_t id;
	int fd, err;

	if (setgid(65534) || setuid(65534))
		return 1;
	fd = cm_open_file();
	if (fd < 0 || create(fd, RDMA_PS_TCP, &id))
		return 2;
	err = bind_at(fd, id, cm_address(AF_INET, 1023));
	if (err != -EACCES)
		return 3;
	return bind_at(fd, id, cm_address(AF_INET, 1024)) ? 4 : 0;
}

/* A file that changed hands does not do what its new owner writes. */
static int another_is_refused(int fd)
{
	uint32_t id;

	if (setgid(65534) || setuid(65534))
		return 1;
	return create(fd, RDMA_PS_TCP, &id) == -EACCES ? 0 : 2;
}

static int status_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(abi, low_ports_take_a_privilege)
{
	pid_t pid = fork();

	if (!pid)
		_exit(low_port_refused());
	EXPECT_EQ(0, status_of(pid));
	EXPECT_EQ(0, bind_at(self->fd, self->id, cm_address(AF_INET, 1023)));
}

TEST_F(abi, who_opened_the_file_writes_to_it)
{
	pid_t pid = fork();

	if (!pid)
		_exit(another_is_refused(self->fd));
	EXPECT_EQ(0, status_of(pid));
}

/* Options */

TEST_F(abi, options_have_their_sizes)
{
	uint8_t bytes[8] = { 1 };
	uint32_t udp;
	int fd = self->fd;
	uint32_t id = self->id;

	EXPECT_EQ(0, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes, 1));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes, 2));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes, 0));
	EXPECT_EQ(0, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, bytes, 4));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				      bytes, 1));
	EXPECT_EQ(0, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, bytes, 4));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, bytes, 8));
	EXPECT_EQ(0, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, bytes, 1));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				      bytes, 4));
	EXPECT_EQ(-ENOSYS, set_option(fd, id, RDMA_OPTION_ID, 77, bytes, 1));
	EXPECT_EQ(-ENOSYS, set_option(fd, id, RDMA_OPTION_IB, 77, bytes, 1));
	EXPECT_EQ(-ENOSYS, set_option(fd, id, 77, 0, bytes, 1));
	EXPECT_EQ(-EFAULT, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
				      (void *)8, 1));
	EXPECT_EQ(-EINVAL, set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes,
				      0xffffffff));
	/* Time-outs are of connections. */
	ASSERT_EQ(0, create(fd, RDMA_PS_UDP, &udp));
	EXPECT_EQ(-EINVAL, set_option(fd, udp, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				      bytes, 1));
}

TEST_F(abi, options_have_their_time)
{
	int one = 1;

	EXPECT_EQ(0, set_option(self->other_fd, self->other, RDMA_OPTION_ID,
				RDMA_OPTION_ID_AFONLY, &one, 4));
	ASSERT_EQ(0, listen_for(self->other_fd, self->other, 1));
	EXPECT_EQ(-EINVAL, set_option(self->other_fd, self->other, RDMA_OPTION_ID,
				      RDMA_OPTION_ID_AFONLY, &one, 4));
	EXPECT_EQ(-EINVAL, set_option(self->other_fd, self->other, RDMA_OPTION_ID,
				      RDMA_OPTION_ID_REUSEADDR, &one, 4));
}

/* Events */

TEST_F(abi, events_come_in_order)
{
	uint32_t ids[8], last;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, create(self->fd, RDMA_PS_TCP, &ids[i]));
		ASSERT_EQ(0, resolve_addr(self->fd, ids[i], self->addr));
		ASSERT_TRUE(readable(self->fd, 20000));
		expect(_metadata, self->fd, ADDR_RESOLVED, ids[i]);
	}
	/* Routes are left unread: the first that was asked for is the first to come. */
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, resolve_route(self->fd, ids[i], 2000));
		last = ids[i];
	}
	for (i = 0; i < 8; i++)
		expect(_metadata, self->fd, ROUTE_RESOLVED, ids[i]);
	EXPECT_EQ(ids[7], last);
	EXPECT_FALSE(readable(self->fd, 0));
}

TEST_F(abi, an_event_that_finds_no_room_stays)
{
	struct rdma_ucm_event_resp event;
	struct rdma_ucm_get_event cmd = { .response = 8 };

	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	ASSERT_TRUE(readable(self->fd, 20000));
	EXPECT_EQ(-EFAULT, CMD(self->fd, GET_EVENT, cmd, sizeof(event)));
	EXPECT_EQ(-ENOSPC, CMD(self->fd, GET_EVENT, cmd, 8));
	EXPECT_TRUE(readable(self->fd, 0));
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
	EXPECT_FALSE(readable(self->fd, 0));
	/* Only what was read is counted. */
	EXPECT_EQ(1, destroy(self->fd, self->id));
}

/* Programs of before ECE ask for less. */
TEST_F(abi, an_event_may_be_asked_for_in_its_old_length)
{
	struct rdma_ucm_event_resp event;
	struct rdma_ucm_get_event cmd = { .response = ptr(&event) };
	size_t old = offsetof(struct rdma_ucm_event_resp, reserved), i;

	memset(&event, 0x5a, sizeof(event));
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	ASSERT_EQ(0, CMD(self->fd, GET_EVENT, cmd, old));
	EXPECT_EQ(ADDR_RESOLVED, event.event);
	EXPECT_EQ(self->id, event.id);
	for (i = old; i < sizeof(event); i++)
		EXPECT_EQ(0x5a, ((uint8_t *)&event)[i]);
}

TEST_F(abi, events_go_with_their_id)
{
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	ASSERT_TRUE(readable(self->fd, 20000));
	EXPECT_EQ(0, destroy(self->fd, self->id));
	EXPECT_FALSE(readable(self->fd, 0));
}

/* How many of a kind there are. What tests before this one have left open goes. */
static bool there_are(const char *kind, long long n)
{
	return wait_until(raw_counter("/sys/kernel/debug/vhca_cm/objects", kind) == n);
}

TEST_F(abi, events_of_one_id_go_and_those_of_another_stay)
{
	uint32_t second;

	if (on_reference())
		SKIP(return, "it does not count");
	ASSERT_EQ(0, create(self->fd, RDMA_PS_TCP, &second));
	ASSERT_EQ(0, resolve_nobody(self->fd, second));
	ASSERT_EQ(0, resolve_nobody(self->fd, self->id));
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	ASSERT_EQ(0, resolve_addr(self->fd, second, self->addr));
	ASSERT_EQ(0, resolve_route(self->fd, second, 2000));
	ASSERT_EQ(0, resolve_route(self->fd, self->id, 2000));
	EXPECT_TRUE(there_are("events", 6));
	EXPECT_EQ(0, destroy(self->fd, second));
	EXPECT_TRUE(there_are("events", 3));
	expect(_metadata, self->fd, ADDR_ERROR, self->id);
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
	expect(_metadata, self->fd, ROUTE_RESOLVED, self->id);
	EXPECT_FALSE(readable(self->fd, 0));
	EXPECT_EQ(3, destroy(self->fd, self->id));
}

/* So many that one cannot look at all of them for each that goes. */
#define UNREAD	20000

/* The id that goes first is the one whose events came last. */
TEST_F(abi, a_closed_file_takes_its_unread_events_along)
{
	uint32_t second;
	int i;

	if (on_reference())
		SKIP(return, "it does not count");
	ASSERT_EQ(0, create(self->fd, RDMA_PS_TCP, &second));
	for (i = 0; i < UNREAD; i++)
		ASSERT_EQ(0, resolve_nobody(self->fd, second));
	for (i = 0; i < UNREAD; i++)
		ASSERT_EQ(0, resolve_nobody(self->fd, self->id));
	EXPECT_TRUE(there_are("events", 2 * UNREAD));
	EXPECT_TRUE(there_are("ids", 3));
	EXPECT_TRUE(there_are("files", 2));
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(there_are("events", 0));
	EXPECT_TRUE(there_are("ids", 1));
	EXPECT_TRUE(there_are("files", 1));
}

TEST_F(abi, unread_events_move_and_go_with_their_id)
{
	uint32_t moved;

	if (on_reference())
		SKIP(return, "it does not count");
	ASSERT_EQ(0, create(self->fd, RDMA_PS_UDP, &moved));
	ASSERT_EQ(0, bind_at(self->fd, moved, cm_address(AF_INET, 0)));
	ASSERT_EQ(0, resolve_nobody(self->fd, moved));
	ASSERT_EQ(0, resolve_nobody(self->fd, self->id));
	ASSERT_LE(0, join(self->fd, moved, RDMA_MC_JOIN_FLAG_FULLMEMBER));
	EXPECT_TRUE(there_are("events", 3));
	EXPECT_EQ(0, migrate(self->other_fd, self->fd, moved));
	EXPECT_TRUE(there_are("events", 3));
	EXPECT_TRUE(readable(self->other_fd, 0));
	EXPECT_EQ(0, destroy(self->other_fd, moved));
	EXPECT_FALSE(readable(self->other_fd, 0));
	EXPECT_TRUE(there_are("events", 1));
	EXPECT_TRUE(there_are("multicasts", 0));
	expect(_metadata, self->fd, ADDR_ERROR, self->id);
	EXPECT_FALSE(readable(self->fd, 0));
}

TEST_F(abi, a_file_without_events_can_be_left_at_once)
{
	struct rdma_ucm_event_resp event;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_FALSE(readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, get_event(self->fd, &event));
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
	EXPECT_EQ(-EAGAIN, get_event(self->fd, &event));
}

static void ignore(int sig)
{
}

static void *waits(void *fd)
{
	struct rdma_ucm_event_resp event;

	return (void *)(intptr_t)get_event((intptr_t)fd, &event);
}

static bool asleep(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

struct waiter {
	pthread_t thread;
	pid_t tid;
	int fd;
};

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	return waits((void *)(intptr_t)w->fd);
}

/* A thread that sleeps in the kernel until an event comes. */
static void waiter_start(struct __test_metadata *_metadata, struct waiter *w, int fd)
{
	*w = (struct waiter){ .fd = fd };
	ASSERT_EQ(0, pthread_create(&w->thread, NULL, waiter_main, w));
	ASSERT_TRUE(wait_until(__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) && asleep(w->tid)));
}

TEST_F(abi, who_waits_is_woken_by_an_event)
{
	struct waiter w;
	void *ret;

	waiter_start(_metadata, &w, self->fd);
	/* The file can be used meanwhile. */
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	ASSERT_EQ(0, pthread_join(w.thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_FALSE(readable(self->fd, 0));
}

TEST_F(abi, who_waits_is_woken_by_a_signal)
{
	struct sigaction act = { .sa_handler = ignore };
	struct waiter w;
	void *ret;

	ASSERT_EQ(0, sigaction(SIGUSR1, &act, NULL));
	waiter_start(_metadata, &w, self->fd);
	pthread_kill(w.thread, SIGUSR1);
	ASSERT_EQ(0, pthread_join(w.thread, &ret));
	EXPECT_EQ(-EINTR, (intptr_t)ret);
}

/* Connections, as far as the library hides them */

/* From one file's id to the listener of the other, which has not read it. */
static void request(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self)
{
	ASSERT_EQ(0, listen_for(self->other_fd, self->other, 4));
	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
	ASSERT_EQ(0, resolve_route(self->fd, self->id, 2000));
	expect(_metadata, self->fd, ROUTE_RESOLVED, self->id);
	ASSERT_EQ(0, do_connect(self->fd, self->id));
	ASSERT_TRUE(readable(self->other_fd, 20000));
}

/* That, and it was read; the request's number is returned. */
static uint32_t ask(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self)
{
	struct rdma_ucm_event_resp event;

	request(_metadata, self);
	ASSERT_EQ(0, get_event(self->other_fd, &event));
	ASSERT_EQ(CONNECT_REQUEST, event.event);
	/* The listener's program is told, of an id that it has not seen. */
	EXPECT_EQ(UID, event.uid);
	EXPECT_NE(self->other, event.id);
	EXPECT_NE(0, event.param.conn.qp_num);
	return event.id;
}

TEST_F(abi, a_connection_is_its_files)
{
	uint32_t asked = ask(_metadata, self);

	EXPECT_EQ(-EINVAL, do_accept(self->fd, asked, UID));
	EXPECT_EQ(-EINVAL, reject(self->fd, asked));
	EXPECT_EQ(-EINVAL, do_connect(self->fd, self->id));
	EXPECT_EQ(-EINVAL, do_connect(self->other_fd, asked));
	EXPECT_EQ(-EINVAL, listen_for(self->other_fd, asked, 1));
	EXPECT_EQ(-EINVAL, resolve_addr(self->other_fd, asked, self->addr));
	ASSERT_EQ(0, do_accept(self->other_fd, asked, UID + 1));
	expect(_metadata, self->fd, CONNECT_RESPONSE, self->id);
	ASSERT_EQ(0, init_qp_attr(self->fd, self->id, IBV_QPS_RTR));
	ASSERT_EQ(0, init_qp_attr(self->fd, self->id, IBV_QPS_RTS));
	ASSERT_EQ(0, confirm(self->fd, self->id));
	/* Events have the uid of the acceptance. */
	EXPECT_EQ(UID + 1, expect(_metadata, self->other_fd, ESTABLISHED, asked).uid);
	EXPECT_EQ(-EINVAL, do_accept(self->other_fd, asked, UID));
	ASSERT_EQ(0, disconnect(self->fd, self->id));
	EXPECT_EQ(UID + 1, expect(_metadata, self->other_fd, DISCONNECTED, asked).uid);
	ASSERT_EQ(0, disconnect(self->other_fd, asked));
	expect(_metadata, self->fd, DISCONNECTED, self->id);
	EXPECT_EQ(4, destroy(self->fd, self->id));
	EXPECT_EQ(2, destroy(self->other_fd, asked));
	EXPECT_EQ(1, destroy(self->other_fd, self->other));
}

/*
 * Who accepted has heard of its peer by data, and has a connection; who asked has not
 * confirmed it. The number of the former is returned.
 */
static uint32_t half_established(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self)
{
	uint32_t asked = ask(_metadata, self);

	ASSERT_EQ(0, do_accept(self->other_fd, asked, UID));
	expect(_metadata, self->fd, CONNECT_RESPONSE, self->id);
	ASSERT_EQ(0, notify(self->other_fd, asked));
	expect(_metadata, self->other_fd, ESTABLISHED, asked);
	return asked;
}

/* Who asked hears that it is over, and parts. */
static void parts_unconfirmed(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self)
{
	EXPECT_EQ(0, expect(_metadata, self->fd, DISCONNECTED, self->id).status);
	EXPECT_EQ(-EINVAL, confirm(self->fd, self->id));
	ASSERT_EQ(0, disconnect(self->fd, self->id));
}

TEST_F(abi, a_wish_to_part_reaches_who_has_not_confirmed)
{
	uint32_t asked;

	if (on_reference())
		SKIP(return, "it is not told");
	asked = half_established(_metadata, self);
	ASSERT_EQ(0, disconnect(self->other_fd, asked));
	parts_unconfirmed(_metadata, self);
	EXPECT_EQ(0, expect(_metadata, self->other_fd, DISCONNECTED, asked).status);
	expect(_metadata, self->fd, TIMEWAIT_EXIT, self->id);
	expect(_metadata, self->other_fd, TIMEWAIT_EXIT, asked);
}

TEST_F(abi, the_end_of_a_peer_reaches_who_has_not_confirmed)
{
	uint32_t asked;

	if (on_reference())
		SKIP(return, "it is not told");
	asked = half_established(_metadata, self);
	EXPECT_EQ(1, destroy(self->other_fd, asked));
	parts_unconfirmed(_metadata, self);
	expect(_metadata, self->fd, TIMEWAIT_EXIT, self->id);
}

TEST_F(abi, the_end_of_who_has_not_confirmed_reaches_its_peer)
{
	uint32_t asked = half_established(_metadata, self);

	EXPECT_EQ(3, destroy(self->fd, self->id));
	EXPECT_EQ(CM_REJ_CONSUMER, expect(_metadata, self->other_fd, REJECTED, asked).status);
	EXPECT_EQ(0, disconnect(self->other_fd, asked));
	/* That one does not say when it is over. */
	if (!on_reference())
		expect(_metadata, self->other_fd, TIMEWAIT_EXIT, asked);
}

/*
 * Numbers can be guessed. A request that was accepted before it was read would stay with
 * its listener's old file when the listener moves, and outlive it there.
 */
TEST_F(abi, a_request_that_was_not_read_has_no_number_yet)
{
	uint32_t last = (self->id > self->other ? self->id : self->other) + 8, guess;
	struct rdma_ucm_event_resp event;
	unsigned int i;

	request(_metadata, self);
	for (guess = 0; guess <= last; guess++) {
		for (i = 0; i < COMMANDS && guess != self->id && guess != self->other; i++)
			EXPECT_EQ(-ENOENT, by_id[i].call(self->other_fd, guess)) {
				TH_LOG("%s", by_id[i].name);
			}
	}
	ASSERT_EQ(0, migrate(self->fd, self->other_fd, self->other));
	EXPECT_FALSE(readable(self->other_fd, 0));
	ASSERT_EQ(0, get_event(self->fd, &event));
	ASSERT_EQ(CONNECT_REQUEST, event.event);
	EXPECT_LE(event.id, last);
	EXPECT_EQ(-EINVAL, do_accept(self->other_fd, event.id, UID));
	close(self->other_fd);
	ASSERT_EQ(0, do_accept(self->fd, event.id, UID));
	expect(_metadata, self->fd, CONNECT_RESPONSE, self->id);
	/* The request is an event of the listener. */
	EXPECT_EQ(0, destroy(self->fd, event.id));
	EXPECT_EQ(1, destroy(self->fd, self->other));
}

TEST_F(abi, a_rejection_has_a_reason_that_programs_may_give)
{
	uint32_t asked = ask(_metadata, self);
	struct rdma_ucm_reject cmd = { .id = asked, .reason = CM_REJ_NO_SERVICE };

	EXPECT_EQ(-EINVAL, CMD(self->other_fd, REJECT, cmd, 0));
	cmd.reason = 255;
	EXPECT_EQ(-EINVAL, CMD(self->other_fd, REJECT, cmd, 0));
	cmd.reason = CM_REJ_CONSUMER;
	EXPECT_EQ(0, CMD(self->other_fd, REJECT, cmd, 0));
}

TEST_F(abi, a_connection_wants_parameters)
{
	struct rdma_ucm_connect cmd = { .id = self->id };

	ASSERT_EQ(0, resolve_addr(self->fd, self->id, self->addr));
	expect(_metadata, self->fd, ADDR_RESOLVED, self->id);
	ASSERT_EQ(0, resolve_route(self->fd, self->id, 2000));
	expect(_metadata, self->fd, ROUTE_RESOLVED, self->id);
	EXPECT_EQ(-EINVAL, CMD(self->fd, CONNECT, cmd, 0));
	cmd.conn_param = param();
	cmd.conn_param.private_data_len = 255;
	EXPECT_EQ(-EINVAL, CMD(self->fd, CONNECT, cmd, 0));
	cmd.conn_param.private_data_len = 0;
	/* The ECE at its end came later. */
	ASSERT_EQ(0, listen_for(self->other_fd, self->other, 1));
	EXPECT_EQ(-EINVAL, cm_cmd(self->fd, RDMA_USER_CM_CMD_CONNECT, &cmd,
				  offsetof(struct rdma_ucm_connect, ece) - 1, 0));
	EXPECT_EQ(0, cm_cmd(self->fd, RDMA_USER_CM_CMD_CONNECT, &cmd,
			    offsetof(struct rdma_ucm_connect, ece), 0));
}

/* A file that is closed takes all of its ids along, in whatever state. */
TEST_F(abi, a_closed_file_ends_its_connections)
{
	uint32_t asked = ask(_metadata, self);

	ASSERT_EQ(0, do_accept(self->other_fd, asked, UID));
	expect(_metadata, self->fd, CONNECT_RESPONSE, self->id);
	ASSERT_EQ(0, confirm(self->fd, self->id));
	expect(_metadata, self->other_fd, ESTABLISHED, asked);
	close(self->fd);
	expect(_metadata, self->other_fd, DISCONNECTED, asked);
	self->fd = cm_open_file();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-EINVAL, destroy(self->fd, asked));
}

TEST_F(abi, a_closed_file_rejects_requests_that_were_not_read)
{
	request(_metadata, self);
	close(self->other_fd);
	self->other_fd = -1;
	EXPECT_EQ(CM_REJ_CONSUMER, expect(_metadata, self->fd, REJECTED, self->id).status);
	if (on_reference())
		return;
	EXPECT_TRUE(there_are("ids", 1));
	EXPECT_TRUE(there_are("connections", 0));
	EXPECT_TRUE(there_are("events", 0));
}

TEST_F(abi, memberships_are_their_files)
{
	struct rdma_ucm_event_resp event;
	uint32_t id;
	int mc;

	ASSERT_EQ(0, create(self->fd, RDMA_PS_UDP, &id));
	ASSERT_EQ(0, bind_at(self->fd, id, cm_address(AF_INET, 0)));
	EXPECT_EQ(-EINVAL, join(self->fd, id, RDMA_MC_JOIN_FLAG_RESERVED));
	mc = join(self->fd, id, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	ASSERT_LE(0, mc);
	EXPECT_EQ(-EINVAL, leave(self->other_fd, mc));
	ASSERT_TRUE(readable(self->fd, 20000));
	ASSERT_EQ(0, get_event(self->fd, &event));
	EXPECT_EQ((uint32_t)mc, event.id);
	EXPECT_EQ(UID, event.uid);
	EXPECT_EQ(1, leave(self->fd, mc));
	EXPECT_EQ(-ENOENT, leave(self->fd, mc));
	mc = join_ip(self->fd, id);
	ASSERT_LE(0, mc);
	/* The id counts the events of its memberships. */
	EXPECT_EQ(1, destroy(self->fd, id));
	EXPECT_EQ(-ENOENT, leave(self->fd, mc));
	EXPECT_FALSE(readable(self->fd, 0));
}

#define GROUPS	4

TEST_F(abi, a_group_that_is_left_takes_its_event_along)
{
	int mc[GROUPS], i;
	uint32_t id;

	if (on_reference())
		SKIP(return, "it does not count");
	ASSERT_EQ(0, create(self->fd, RDMA_PS_UDP, &id));
	ASSERT_EQ(0, bind_at(self->fd, id, cm_address(AF_INET, 0)));
	for (i = 0; i < GROUPS; i++) {
		mc[i] = join(self->fd, id, RDMA_MC_JOIN_FLAG_FULLMEMBER);
		ASSERT_LE(0, mc[i]);
		ASSERT_EQ(0, resolve_nobody(self->fd, id));
	}
	EXPECT_TRUE(there_are("events", 2 * GROUPS));
	EXPECT_EQ(0, leave(self->fd, mc[1]));
	EXPECT_TRUE(there_are("events", 2 * GROUPS - 1));
	EXPECT_TRUE(there_are("multicasts", GROUPS - 1));
	expect(_metadata, self->fd, MULTICAST_JOIN, mc[0]);
	expect(_metadata, self->fd, ADDR_ERROR, id);
	expect(_metadata, self->fd, ADDR_ERROR, id);
	expect(_metadata, self->fd, MULTICAST_JOIN, mc[2]);
	EXPECT_EQ(4, destroy(self->fd, id));
	EXPECT_TRUE(there_are("events", 0));
	EXPECT_TRUE(there_are("multicasts", 0));
	EXPECT_FALSE(readable(self->fd, 0));
}

/* Threads */

#define THREADS	6
#define ROUNDS	200

struct worker {
	pthread_t thread;
	int fd;
	union cm_addr to;
	unsigned int seed;
	int destroyed;
	int created;
	int bad;
};

/* Ids of all workers; anybody destroys anybody's. */
static uint32_t shared[THREADS];

static void work_once(struct worker *w)
{
	struct rdma_ucm_event_resp event;
	int other = rand_r(&w->seed) % THREADS, err;
	uint32_t id;

	if (create(w->fd, RDMA_PS_TCP, &id)) {
		w->bad++;
		return;
	}
	w->created++;
	/* Whoever destroys it, it may be at any of this. */
	id = __atomic_exchange_n(&shared[other], id, __ATOMIC_ACQ_REL);
	resolve_addr(w->fd, __atomic_load_n(&shared[other], __ATOMIC_ACQUIRE), w->to);
	resolve_route(w->fd, __atomic_load_n(&shared[other], __ATOMIC_ACQUIRE), 1000);
	do_connect(w->fd, __atomic_load_n(&shared[other], __ATOMIC_ACQUIRE));
	err = get_event(w->fd, &event);
	if (err && err != -EAGAIN)
		w->bad++;
	err = id == NOBODY ? -ENOENT : destroy(w->fd, id);
	if (err >= 0)
		w->destroyed++;
	else if (id != NOBODY)
		w->bad++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < ROUNDS; i++)
		work_once(w);
	return NULL;
}

TEST_F(abi, many_threads_share_a_file)
{
	struct worker w[THREADS] = {};
	int i, created = 0, destroyed = 0;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, listen_for(self->other_fd, self->other, 1));
	for (i = 0; i < THREADS; i++) {
		shared[i] = NOBODY;
		w[i] = (struct worker){ .fd = self->fd, .to = self->addr, .seed = i };
	}
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, work, &w[i]));
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		created += w[i].created;
		destroyed += w[i].destroyed;
		EXPECT_EQ(0, w[i].bad);
	}
	for (i = 0; i < THREADS; i++)
		if (shared[i] != NOBODY && destroy(self->fd, shared[i]) >= 0)
			destroyed++;
	EXPECT_EQ(THREADS * ROUNDS, created);
	EXPECT_EQ(created, destroyed);
	ASSERT_EQ(0, destroy(self->fd, self->id));
	EXPECT_FALSE(readable(self->fd, 0));
}

TEST_HARNESS_MAIN
