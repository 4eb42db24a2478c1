// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections on a transport that loses messages: one that is lost once is sent again,
 * one that is lost every time is given up in the end, and who thinks is waited for.
 */
#define _GNU_SOURCE
#include "cm_id.h"

#define TIMEOUT_MS	100	/* cm_quiet() is three of it */
#define RETRIES		50	/* programs may be slow */
#define FEW_RETRIES	3
#define SOME		3
#define ALL		1000

/* The next messages of a type are lost. */
static bool drop(const char *type, unsigned int n)
{
	char text[32];

	snprintf(text, sizeof(text), "%s %u", type, n);
	return write_file(CM_DROP, text);
}

static const char * const types[] = {
	"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP",
};

static bool drop_nothing(void)
{
	bool done = true;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		done &= drop(types[i], 0);
	return done;
}

/* All that was to be lost has been. */
static bool dropped(void)
{
	int fd = open(CM_DROP, O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return !n;
}

/* No message is on its way. */
static bool delivered(void)
{
	FILE *f = fopen("/sys/kernel/debug/vhca_cm/objects", "r");
	unsigned int n = 1;
	char line[64];

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "messages %u", &n);
	if (f)
		fclose(f);
	return !n;
}

FIXTURE(loss)
{
	struct cm cm;
	struct cm_side *server;
	struct cm_side *client;
};

FIXTURE_SETUP(loss)
{
	if (on_reference())
		SKIP(return, "it loses nothing on demand");
	ASSERT_TRUE(set_parameter("response_timeout", TIMEOUT_MS));
	ASSERT_TRUE(set_parameter("retries", RETRIES));
	ASSERT_TRUE(drop_nothing());
	cm_open(_metadata, &self->cm, RDMA_PS_TCP, cm_address(AF_INET, 0));
	self->server = &self->cm.server;
	self->client = &self->cm.client;
}

FIXTURE_TEARDOWN(loss)
{
	cm_close(_metadata, &self->cm);
	EXPECT_TRUE(drop_nothing());
	EXPECT_TRUE(set_parameter("response_timeout", 1000));
	EXPECT_TRUE(set_parameter("retries", 15));
}

/* A whole life without this one. */
static void live_without(struct __test_metadata *_metadata, struct cm *cm, const char *type,
			 unsigned int n)
{
	ASSERT_TRUE(drop(type, n));
	cm_establish(_metadata, cm);
	cm_message(_metadata, cm->client.id, cm->server.id);
	cm_part(_metadata, &cm->client, &cm->server);
	cm_expect(_metadata, &cm->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect(_metadata, &cm->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(&cm->server));
	EXPECT_TRUE(cm_quiet(&cm->client));
	EXPECT_TRUE(dropped()) {
		TH_LOG("%s", type);
	}
}

TEST_F(loss, a_lost_request_is_made_again)
{
	live_without(_metadata, &self->cm, "REQ", SOME);
}

TEST_F(loss, a_lost_reply_is_made_again)
{
	live_without(_metadata, &self->cm, "REP", SOME);
}

TEST_F(loss, a_lost_confirmation_is_made_again)
{
	live_without(_metadata, &self->cm, "RTU", SOME);
}

TEST_F(loss, a_lost_wish_to_part_is_made_again)
{
	live_without(_metadata, &self->cm, "DREQ", SOME);
}

TEST_F(loss, a_lost_agreement_to_part_is_made_again)
{
	live_without(_metadata, &self->cm, "DREP", SOME);
}

TEST_F(loss, a_lost_rejection_is_made_again)
{
	ASSERT_TRUE(drop("REJ", 1));
	cm_destroy(_metadata, &self->cm.listener);
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_NO_SERVICE);
	EXPECT_TRUE(dropped());
}

TEST_F(loss, a_request_that_nobody_answers_is_given_up)
{
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	ASSERT_TRUE(drop("REQ", ALL));
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	EXPECT_TRUE(cm_quiet(self->server));
	EXPECT_TRUE(cm_quiet(self->client));
}

/* The client waits long, as it was told that the server thinks. */
TEST_F(loss, a_reply_that_nobody_answers_is_given_up)
{
	cm_ask(_metadata, &self->cm);
	EXPECT_TRUE(cm_quiet(self->client));
	cm_qp(_metadata, self->server->id);
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	ASSERT_TRUE(drop("REP", ALL));
	ASSERT_EQ(0, cm_accept(self->server->id, NULL, 0));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_TIMEOUT);
	EXPECT_TRUE(cm_quiet(self->server));
	EXPECT_TRUE(cm_quiet(self->client));
}

TEST_F(loss, who_parts_from_nobody_has_parted)
{
	cm_establish(_metadata, &self->cm);
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	ASSERT_TRUE(drop("DREQ", ALL));
	ASSERT_EQ(0, rdma_disconnect(self->client->id));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(self->server));
}

/* It is told that the server thinks, and so waits longer than it would. */
TEST_F(loss, a_client_waits_for_a_server_that_thinks)
{
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	cm_ask(_metadata, &self->cm);
	EXPECT_TRUE(cm_quiet(self->client));
	EXPECT_TRUE(cm_quiet(self->client));
	cm_agree(_metadata, &self->cm);
}

TEST_F(loss, a_client_that_is_told_nothing_does_not_wait)
{
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	ASSERT_TRUE(drop("MRA", ALL));
	cm_ask(_metadata, &self->cm);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	ASSERT_TRUE(wait_until(delivered()));
	EXPECT_EQ(-1, cm_accept(self->server->id, NULL, 0));
	EXPECT_EQ(EINVAL, errno);
}

/* A server that hears data before it hears that its reply came may say so. */
TEST_F(loss, a_server_that_has_heard_of_its_peer_need_not_wait)
{
	ASSERT_TRUE(drop("RTU", ALL));
	cm_ask(_metadata, &self->cm);
	cm_qp(_metadata, self->server->id);
	EXPECT_EQ(-1, rdma_notify(self->server->id, IBV_EVENT_COMM_EST));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, cm_accept(self->server->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_ESTABLISHED, 0);
	EXPECT_EQ(-1, rdma_notify(self->server->id, IBV_EVENT_PATH_MIG));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, rdma_notify(self->server->id, IBV_EVENT_COMM_EST));
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_ESTABLISHED, 0);
	EXPECT_EQ(-1, rdma_notify(self->server->id, IBV_EVENT_COMM_EST));
	EXPECT_EQ(EISCONN, errno);
	EXPECT_TRUE(cm_quiet(self->server));
}

/* The client has a connection, and the server does not hear so. */
static void establish_unheard(struct __test_metadata *_metadata, struct cm *cm)
{
	ASSERT_TRUE(drop("RTU", ALL));
	cm_ask(_metadata, cm);
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, NULL, 0));
	cm_expect(_metadata, &cm->client, RDMA_CM_EVENT_ESTABLISHED, 0);
}

TEST_F(loss, a_server_that_ends_unconfirmed_rejects)
{
	establish_unheard(_metadata, &self->cm);
	cm_destroy(_metadata, &self->server->id);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	EXPECT_EQ(0, rdma_disconnect(self->client->id));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(self->client));
}

/* It has what it wanted, if not from who was asked. */
TEST_F(loss, who_parts_from_a_server_that_ends_unconfirmed_has_parted)
{
	establish_unheard(_metadata, &self->cm);
	ASSERT_TRUE(drop("DREQ", ALL));
	ASSERT_EQ(0, rdma_disconnect(self->client->id));
	cm_destroy(_metadata, &self->server->id);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(self->client));
}

/* The server is not told that its client thinks: it would wait longer. */
TEST_F(loss, a_connection_that_is_never_confirmed_is_given_up)
{
	ASSERT_TRUE(drop("MRA", ALL));
	establish_unheard(_metadata, &self->cm);
	cm_expect(_metadata, self->server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_REJECTED, CM_REJ_TIMEOUT);
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	EXPECT_TRUE(cm_quiet(self->server));
	EXPECT_TRUE(cm_quiet(self->client));
}

TEST_F(loss, an_unknown_type_cannot_be_lost)
{
	EXPECT_FALSE(drop("XYZ", 1));
	EXPECT_FALSE(write_file(CM_DROP, "REQ"));
	EXPECT_FALSE(write_file(CM_DROP, "REQ 1 2"));
	EXPECT_TRUE(dropped());
}

FIXTURE(datagrams)
{
	struct cm cm;
	struct cm_side *server;
	struct cm_side *client;
};

FIXTURE_SETUP(datagrams)
{
	if (on_reference())
		SKIP(return, "it loses nothing on demand");
	ASSERT_TRUE(set_parameter("response_timeout", TIMEOUT_MS));
	ASSERT_TRUE(set_parameter("retries", RETRIES));
	ASSERT_TRUE(drop_nothing());
	cm_open(_metadata, &self->cm, RDMA_PS_UDP, cm_address(AF_INET, 0));
	self->server = &self->cm.server;
	self->client = &self->cm.client;
}

FIXTURE_TEARDOWN(datagrams)
{
	cm_close(_metadata, &self->cm);
	EXPECT_TRUE(drop_nothing());
	EXPECT_TRUE(set_parameter("response_timeout", 1000));
	EXPECT_TRUE(set_parameter("retries", 15));
}

static void find_without(struct __test_metadata *_metadata, struct cm *cm, const char *type)
{
	ASSERT_TRUE(drop(type, 1));
	cm_ask(_metadata, cm);
	cm_qp(_metadata, cm->server.id);
	ASSERT_EQ(0, cm_accept(cm->server.id, NULL, 0));
	cm_expect(_metadata, &cm->client, RDMA_CM_EVENT_ESTABLISHED, 0);
	EXPECT_TRUE(cm_quiet(&cm->server));
	EXPECT_TRUE(cm_quiet(&cm->client));
	EXPECT_TRUE(dropped());
}

TEST_F(datagrams, a_lost_question_is_asked_again)
{
	find_without(_metadata, &self->cm, "SIDR_REQ");
}

TEST_F(datagrams, a_lost_answer_is_given_again)
{
	find_without(_metadata, &self->cm, "SIDR_REP");
}

TEST_F(datagrams, a_question_that_nobody_answers_is_given_up)
{
	ASSERT_TRUE(set_parameter("retries", FEW_RETRIES));
	ASSERT_TRUE(drop("SIDR_REQ", ALL));
	cm_resolve(_metadata, &self->cm);
	cm_qp(_metadata, self->client->id);
	ASSERT_EQ(0, cm_connect(self->client->id, NULL, 0));
	cm_expect(_metadata, self->client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	EXPECT_TRUE(cm_quiet(self->server));
}

TEST_HARNESS_MAIN
