// SPDX-License-Identifier: GPL-2.0-only
/*
 * What device and driver show of objects: each in a line, and one with its rings.
 */
#include "rc.h"
#include "faults.h"

FIXTURE(show)
{
	struct pair p;
	struct end *a;
	struct end *b;
	char text[65536];
};

FIXTURE_SETUP(show)
{
	struct pair_opts opts = PAIR_DEFAULTS;

	opts.channel = true;
	opts.cqe = 16;
	opts.cap.max_send_wr = 16;
	opts.cap.max_recv_wr = 16;
	pair_open(_metadata, &self->p, &opts);
	self->a = &self->p.end[0];
	self->b = &self->p.end[1];
}

FIXTURE_TEARDOWN(show)
{
	pair_close(_metadata, &self->p);
}

/* Read to the end; @number: of one object, or NULL. How many lines, or a negative errno. */
static int read_show(const char *dir, const char *kind, const char *number, char *text,
		     size_t size)
{
	size_t len = 0;
	char path[128];
	int fd, n = 0;
	ssize_t got;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/show/%s", dir, kind);
	fd = open(path, (number ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0 || (number && write(fd, number, strlen(number)) < 0))
		return -errno;
	while ((got = read(fd, text + len, size - 1 - len)) > 0)
		len += got;
	close(fd);
	text[len] = 0;
	for (; (text = strchr(text, '\n')); text++)
		n++;
	return got < 0 ? -errno : n;
}

static int device_show(const char *kind, const char *number, char *text, size_t size)
{
	return read_show("vhca_device/0", kind, number, text, size);
}

static int driver_show(const char *kind, const char *number, char *text, size_t size)
{
	return read_show("vhca/vhca0", kind, number, text, size);
}

/* Lines that have all of these, which are parted by '|'. */
static int count(const char *text, const char *parts)
{
	char all[256], line[2048], *part, *save;
	int n = 0, found;

	while (*text) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s ", (int)len, text);
		snprintf(all, sizeof(all), "%s", parts);
		found = 1;
		for (part = strtok_r(all, "|", &save); part; part = strtok_r(NULL, "|", &save))
			found &= !!strstr(line, part);
		n += found;
		text += len + !!text[len];
	}
	return n;
}

TEST_F(show, each_object_has_a_line_on_both_sides)
{
	static const char * const kinds[] = { "qp", "cq", "mr" };
	static const char * const seconds[] = { "type", "eq", "kind" };
	char head[64], other[65536];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		uint32_t number = i == 0 ? self->a->qp->qp_num :
				  i == 1 ? self->a->scq->handle : self->a->mr->lkey;

		snprintf(head, sizeof(head), i == 2 ? "%s=%#x %s=" : "%s=%u %s=", kinds[i], number,
			 seconds[i]);
		ASSERT_LE(2, device_show(kinds[i], NULL, self->text, sizeof(self->text)));
		EXPECT_EQ(1, count(self->text, head));
		ASSERT_LE(2, driver_show(kinds[i], NULL, other, sizeof(other)));
		snprintf(head, sizeof(head), i == 2 ? "%s=%#x uid=0 pid=%d" : "%s=%u uid=0 pid=%d",
			 kinds[i], number, getpid());
		EXPECT_EQ(1, count(other, head)) {
			TH_LOG("%s", other);
		}
	}
	ASSERT_LE(2, device_show("eq", NULL, self->text, sizeof(self->text)));
	EXPECT_EQ(1, count(self->text, "eq=0 vector=0 "));
	EXPECT_EQ(0, device_show("srq", NULL, self->text, sizeof(self->text)));
	EXPECT_EQ(2, driver_show("channel", NULL, self->text, sizeof(self->text)));
	EXPECT_EQ(2, count(self->text, "cqs=2|events_queued=0"));
}

TEST_F(show, an_object_that_is_not_there_has_none)
{
	EXPECT_EQ(0, device_show("qp", "16777215", self->text, sizeof(self->text)));
	EXPECT_EQ(0, device_show("mr", "0xffffff01", self->text, sizeof(self->text)));
	EXPECT_EQ(0, device_show("eq", "64", self->text, sizeof(self->text)));
	EXPECT_EQ(0, driver_show("cq", "16777215", self->text, sizeof(self->text)));
	EXPECT_EQ(-EINVAL, device_show("qp", "first", self->text, sizeof(self->text)));
	EXPECT_EQ(-EINVAL, driver_show("qp", "", self->text, sizeof(self->text)));
}

TEST_F(show, rings_tell_what_is_new_and_what_is_done)
{
	char number[16];
	int i;

	/* Two done, three that wait at the gate. */
	exchange(_metadata, self->a, self->b, 64, 1);
	exchange(_metadata, self->a, self->b, 64, 2);
	ASSERT_EQ(0, orderf(0, "hold", "hold wqe qp=%u", self->a->qp->qp_num));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, post_recv(self->b, i, 64, 128));
		ASSERT_EQ(0, post_send(self->a, i, 0, 99, IBV_SEND_SIGNALED));
	}
	snprintf(number, sizeof(number), "%u\n", self->a->qp->qp_num);
	ASSERT_LE(6, device_show("qp", number, self->text, sizeof(self->text)));
	EXPECT_EQ(1, count(self->text, "type=RC|state=RTS|sq_waiting=3|held=1"));
	EXPECT_EQ(2, count(self->text, "ring=sq|state=done|opcode=SEND|flags=signaled")) {
		TH_LOG("%s", self->text);
	}
	EXPECT_EQ(3, count(self->text, "ring=sq|state=new|opcode=SEND|,99,"));
	EXPECT_LT(0, count(self->text, "ring=sq|state=free"));
	snprintf(number, sizeof(number), "%u", self->b->qp->qp_num);
	ASSERT_LE(6, device_show("qp", number, self->text, sizeof(self->text)));
	EXPECT_EQ(3, count(self->text, "ring=rq|state=new|,128,"));
	EXPECT_EQ(2, count(self->text, "ring=rq|state=done|,64,"));
	ASSERT_EQ(0, order(0, "hold", "release all"));

	/* Two that were read, three that were not. */
	EXPECT_TRUE(wait_until(shown(0, "cq", self->b->rcq->handle, "unread") == 3));
	snprintf(number, sizeof(number), "%u", self->b->rcq->handle);
	ASSERT_LT(5, device_show("cq", number, self->text, sizeof(self->text)));
	EXPECT_EQ(1, count(self->text, "pi=5 ci=2 unread=3|arm=none|error=0"));
	EXPECT_EQ(3, count(self->text, "ring=cq|state=new|owner=sw|status=SUCCESS|opcode=RESP"));
	EXPECT_EQ(2, count(self->text, "ring=cq|state=done|owner=hw"));
	for (i = 0; i < 3; i++)
		expect_wc(_metadata, self->b->rcq, i, IBV_WC_SUCCESS);
}

TEST_F(show, an_arm_waits_until_it_fires)
{
	uint32_t cqn = self->b->rcq->handle;
	char number[16];

	snprintf(number, sizeof(number), "%u", cqn);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 1));
	device_show("cq", number, self->text, sizeof(self->text));
	EXPECT_EQ(1, count(self->text, "arm=solicited"));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b->rcq, 0));
	device_show("cq", number, self->text, sizeof(self->text));
	EXPECT_EQ(1, count(self->text, "arm=any"));
	exchange(_metadata, self->a, self->b, 64, 1);
	device_show("cq", number, self->text, sizeof(self->text));
	EXPECT_EQ(1, count(self->text, "arm=none"));
	EXPECT_TRUE(readable(self->b->channel->fd, 20000));
	driver_show("cq", number, self->text, sizeof(self->text));
	EXPECT_EQ(1, count(self->text, "events_queued=1|events_read=0"));
	EXPECT_EQ(self->b->rcq, comp_event(self->b->channel));
	driver_show("cq", number, self->text, sizeof(self->text));
	EXPECT_EQ(1, count(self->text, "events_queued=0|events_read=1"));
}

/* A page at a time, from one file for several objects. */
TEST_F(show, one_file_answers_for_many_numbers)
{
	char number[16], text[4096];
	int i, fd = open("/sys/kernel/debug/vhca_device/0/show/qp", O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		uint32_t qpn = self->p.end[i % 2].qp->qp_num;
		ssize_t len = snprintf(number, sizeof(number), "%u", qpn);
		char head[32];

		ASSERT_EQ(len, write(fd, number, len));
		len = read(fd, text, sizeof(text) - 1);
		ASSERT_LT(0, len);
		text[len] = 0;
		snprintf(head, sizeof(head), "qp=%u ", qpn);
		EXPECT_EQ(0, strncmp(head, text, strlen(head)));
	}
	close(fd);
}

TEST_HARNESS_MAIN
