// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRC domains by ioctl, and the QPs in them that several files
 * share: who finds which domain, who owns what, and in which order it goes.
 */
#include "raw.h"

#include <signal.h>

#include "harness.h"

/* Two files of the same device that have the domain of the same inode open. */
FIXTURE(xrc) {
	struct raw_ctx a;
	struct raw_ctx b;
	struct raw_cq acq;
	struct raw_cq bcq;
	uint32_t axrcd;
	uint32_t bxrcd;
	char path[64];
	int fd;
};

FIXTURE_SETUP(xrc)
{
	strcpy(self->path, "/tmp/vhca-xrc-XXXXXX");
	self->fd = mkstemp(self->path);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, raw_open(&self->a, 0));
	ASSERT_EQ(0, raw_open(&self->b, 0));
	ASSERT_EQ(0, raw_cq(&self->a, &self->acq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_cq(&self->b, &self->bcq, 256, VHCA_INVALID_FD));
	ASSERT_EQ(0, raw_open_xrcd(&self->a, self->fd, O_CREAT | O_EXCL, &self->axrcd));
	ASSERT_EQ(0, raw_open_xrcd(&self->b, self->fd, 0, &self->bxrcd));
}

FIXTURE_TEARDOWN(xrc)
{
	raw_close(&self->a);
	raw_close(&self->b);
	close(self->fd);
	unlink(self->path);
}

static int close_xrcd(struct raw_ctx *ctx, uint32_t xrcd)
{
	return raw_free(ctx->fd, VHCA_IOC_CLOSE_XRCD, xrcd);
}

static int open_qp(struct raw_ctx *ctx, struct raw_qp *qp, uint32_t qpn, uint32_t xrcd)
{
	struct vhca_open_qp o = { .cookie = (uintptr_t)qp, .qpn = qpn, .xrcd = xrcd };
	int err = raw_ioctl(ctx->fd, VHCA_IOC_OPEN_QP, &o);

	memset(qp, 0, sizeof(*qp));
	qp->ctx = ctx;
	qp->made.type = VHCA_QPT_XRC_RECV;
	qp->made.qpn = qpn;
	qp->made.cookie = (uintptr_t)qp;
	return err;
}

static int destroy_qp(struct raw_qp *qp, uint32_t *events)
{
	struct vhca_destroy_qp d = { .qpn = qp->made.qpn };
	int err = raw_ioctl(qp->ctx->fd, VHCA_IOC_DESTROY_QP, &d);

	*events = d.async_events;
	return err;
}

/* A send of 8 bytes to an XRC SRQ: the XRC segment, then one SGE. */
static int xrc_send(struct raw_qp *qp, const struct raw_mr *mr, uint32_t srqn)
{
	struct vhca_wqe_data segs[2] = { {}, raw_sge(mr, 0, 8) };
	struct vhca_wqe_xrc xrc = { .srqn = htobe32(srqn) };

	memcpy(segs, &xrc, sizeof(xrc));
	raw_build_send(qp, VHCA_WQE_SIGNALED, segs, 2);
	return raw_post_built(qp);
}

/* Domains */

TEST_F(xrc, a_domain_is_found_by_the_inode_and_not_by_the_descriptor)
{
	int again = open(self->path, O_RDONLY | O_CLOEXEC);
	uint32_t xrcd, other;

	ASSERT_LE(0, again);
	EXPECT_EQ(0, raw_open_xrcd(&self->a, again, 0, &xrcd));
	EXPECT_NE(self->axrcd, xrcd);
	EXPECT_EQ(-EEXIST, raw_open_xrcd(&self->b, again, O_CREAT | O_EXCL, &other));
	EXPECT_EQ(0, raw_open_xrcd(&self->b, again, O_CREAT, &other));
	close(again);
}

TEST_F(xrc, a_file_without_a_domain_is_enoent_unless_it_is_to_be_made)
{
	int fd = open("/tmp", O_RDONLY | O_CLOEXEC);
	uint32_t xrcd;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&self->a, fd, 0, &xrcd));
	EXPECT_EQ(0, raw_open_xrcd(&self->a, fd, O_CREAT, &xrcd));
	EXPECT_EQ(0, close_xrcd(&self->a, xrcd));
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&self->a, fd, 0, &xrcd));
	close(fd);
}

TEST_F(xrc, a_descriptor_or_flag_that_is_none_is_refused)
{
	uint32_t xrcd;

	EXPECT_EQ(-EBADF, raw_open_xrcd(&self->a, 1000, O_CREAT, &xrcd));
	EXPECT_EQ(-EBADF, raw_open_xrcd(&self->a, -2, O_CREAT, &xrcd));
	EXPECT_EQ(-EINVAL, raw_open_xrcd(&self->a, self->fd, O_EXCL, &xrcd));
	EXPECT_EQ(-EINVAL, raw_open_xrcd(&self->a, self->fd, O_CREAT | O_TRUNC, &xrcd));
	EXPECT_EQ(-EINVAL, close_xrcd(&self->a, 0));
	EXPECT_EQ(-EINVAL, close_xrcd(&self->a, 1000));
}

TEST_F(xrc, a_domain_without_a_file_is_of_one_context)
{
	struct raw_qp qp, theirs;
	uint32_t one, two;

	ASSERT_EQ(0, raw_open_xrcd(&self->a, VHCA_INVALID_FD, O_CREAT | O_EXCL, &one));
	ASSERT_EQ(0, raw_open_xrcd(&self->b, VHCA_INVALID_FD, O_CREAT | O_EXCL, &two));
	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, one));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &theirs, qp.made.qpn, two));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &theirs, qp.made.qpn, self->bxrcd));
}

TEST_F(xrc, another_device_has_domains_of_its_own)
{
	struct raw_ctx other;
	uint32_t xrcd;

	ASSERT_EQ(0, raw_open(&other, 1));
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&other, self->fd, 0, &xrcd));
	EXPECT_EQ(0, raw_open_xrcd(&other, self->fd, O_CREAT | O_EXCL, &xrcd));
	raw_close(&other);
}

TEST_F(xrc, a_domain_lives_while_somebody_has_it_open)
{
	uint32_t xrcd;

	ASSERT_EQ(0, close_xrcd(&self->a, self->axrcd));
	EXPECT_EQ(-EINVAL, close_xrcd(&self->a, self->axrcd));
	EXPECT_EQ(0, raw_open_xrcd(&self->a, self->fd, 0, &xrcd));
	ASSERT_EQ(0, close_xrcd(&self->a, xrcd));
	ASSERT_EQ(0, close_xrcd(&self->b, self->bxrcd));
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&self->a, self->fd, 0, &xrcd));
}

TEST_F(xrc, a_file_system_is_busy_while_a_domain_names_a_file_of_it)
{
	uint32_t xrcd;
	int fd;

	ASSERT_EQ(0, mkdir("/tmp/vhca-xrc-mnt", 0700) && errno != EEXIST);
	ASSERT_EQ(0, mount("none", "/tmp/vhca-xrc-mnt", "tmpfs", 0, NULL));
	fd = open("/tmp/vhca-xrc-mnt/f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, raw_open_xrcd(&self->a, fd, O_CREAT, &xrcd));
	close(fd);
	EXPECT_EQ(-1, umount("/tmp/vhca-xrc-mnt"));
	EXPECT_EQ(EBUSY, errno);
	/* The name may go: the domain stays that of the inode. */
	EXPECT_EQ(0, unlink("/tmp/vhca-xrc-mnt/f"));
	EXPECT_EQ(0, close_xrcd(&self->a, xrcd));
	EXPECT_EQ(0, umount("/tmp/vhca-xrc-mnt"));
}

TEST_F(xrc, a_domain_is_busy_while_this_file_has_something_in_it)
{
	struct raw_srq srq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_xrc_srq(&self->a, &srq, &self->acq, self->axrcd));
	EXPECT_EQ(-EBUSY, close_xrcd(&self->a, self->axrcd));
	EXPECT_EQ(-EBUSY, raw_destroy_cq(&self->acq, NULL));
	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	ASSERT_EQ(0, raw_destroy_srq(&srq, NULL));
	EXPECT_EQ(-EBUSY, close_xrcd(&self->a, self->axrcd));
	ASSERT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(0, close_xrcd(&self->a, self->axrcd));
	EXPECT_EQ(0, raw_destroy_cq(&self->acq, NULL));
}

/* QPs */

TEST_F(xrc, an_xrc_recv_qp_has_a_domain_and_nothing_else)
{
	static const struct vhca_create_qp wrong[] = {
		{ .pd = 1 }, { .send_cqn = 1 }, { .recv_cqn = 1 }, { .uar = 1 },
		{ .slot = 5 }, { .sq_shift = 1 }, { .rq_shift = 1 },
		{ .rq_sge_shift = 1 }, { .flags = VHCA_QP_F_BLUEFLAME }, { .srqn = 1 },
		{ .bf_slot = 5 }, { .buf_addr = 4096 },
	};
	struct vhca_create_qp c;
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		c = wrong[i];
		c.type = VHCA_QPT_XRC_RECV;
		c.xrcd = self->axrcd;
		EXPECT_EQ(-EINVAL, raw_ioctl(self->a.fd, VHCA_IOC_CREATE_QP, &c)) {
			TH_LOG("case %u", i);
		}
	}
	c = (struct vhca_create_qp) { .type = VHCA_QPT_XRC_RECV };
	EXPECT_EQ(-EINVAL, raw_ioctl(self->a.fd, VHCA_IOC_CREATE_QP, &c));
	c.xrcd = self->axrcd;
	EXPECT_EQ(0, raw_ioctl(self->a.fd, VHCA_IOC_CREATE_QP, &c));
	EXPECT_EQ(0u, c.buf_size);
	EXPECT_EQ(0u, c.buf_offset);
}

TEST_F(xrc, an_xrc_send_qp_receives_nothing)
{
	struct raw_qp qp = { .made = { .type = VHCA_QPT_XRC_SEND, .sq_shift = 6 } };

	EXPECT_EQ(-EINVAL, raw_make_qp(&self->a, &qp, &self->acq, &self->bcq));
	qp.made.rq_shift = 1;
	EXPECT_EQ(-EINVAL, raw_make_qp(&self->a, &qp, &self->acq, NULL));
	qp.made.rq_shift = 0;
	qp.made.xrcd = self->axrcd;
	EXPECT_EQ(-EINVAL, raw_make_qp(&self->a, &qp, &self->acq, NULL));
	qp.made.xrcd = 0;
	EXPECT_EQ(0, raw_make_qp(&self->a, &qp, &self->acq, NULL));
	EXPECT_EQ(4096u, qp.made.buf_size);
}

TEST_F(xrc, an_xrc_srq_is_named_by_messages_and_not_by_a_qp)
{
	struct raw_srq srq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_xrc_srq(&self->a, &srq, &self->acq, self->axrcd));
	EXPECT_EQ(-EINVAL, raw_qp_srq(&self->a, &qp, VHCA_QPT_RC, &self->acq, srq.made.srqn));
}

TEST_F(xrc, a_qp_can_be_opened_once_in_each_file_that_has_its_domain)
{
	struct raw_qp qp, mine, rc;
	struct raw_ctx c;

	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	EXPECT_EQ(-EBUSY, open_qp(&self->a, &mine, qp.made.qpn, self->axrcd));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, qp.made.qpn, 0));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, qp.made.qpn, 1000));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, 0xffffff, self->bxrcd));
	ASSERT_EQ(0, raw_qp(&self->a, &rc, &self->acq, &self->acq));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, rc.made.qpn, self->bxrcd));
	EXPECT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	EXPECT_EQ(-EBUSY, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	EXPECT_EQ(-EBUSY, close_xrcd(&self->b, self->bxrcd));
	ASSERT_EQ(0, raw_open(&c, 0));
	EXPECT_EQ(-EINVAL, open_qp(&c, &mine, qp.made.qpn, self->bxrcd));
	raw_close(&c);
}

TEST_F(xrc, all_files_that_have_a_qp_can_use_it)
{
	struct raw_qp qp, mine, third;
	struct vhca_modify_qp q;
	struct raw_ctx c;

	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	third = qp;
	ASSERT_EQ(0, raw_open(&c, 0));
	third.ctx = &c;
	EXPECT_EQ(-EINVAL, raw_query_qp(&third, &q));
	ASSERT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	ASSERT_EQ(0, raw_climb(&mine, VHCA_QPS_RTR, raw_attr(self->a.lid, 77)));
	EXPECT_EQ(VHCA_QPS_RTR, raw_state(&qp));
	ASSERT_EQ(0, raw_query_qp(&qp, &q));
	EXPECT_EQ(77u, q.attr.dest_qpn);
	EXPECT_EQ(0, raw_goto(&qp, VHCA_QPS_ERR));
	EXPECT_EQ(VHCA_QPS_ERR, raw_state(&mine));
	raw_close(&c);
}

TEST_F(xrc, a_qp_goes_with_the_last_file_that_has_it)
{
	struct raw_qp qp, mine, again;
	uint32_t events;

	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	ASSERT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	ASSERT_EQ(0, destroy_qp(&qp, &events));
	EXPECT_EQ(-EINVAL, raw_state(&qp));
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&mine));
	EXPECT_EQ(0, close_xrcd(&self->a, self->axrcd));
	/* Who has left can come again, while it is there. */
	ASSERT_EQ(0, raw_open_xrcd(&self->a, self->fd, 0, &self->axrcd));
	ASSERT_EQ(0, open_qp(&self->a, &again, qp.made.qpn, self->axrcd));
	ASSERT_EQ(0, destroy_qp(&mine, &events));
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&again));
	ASSERT_EQ(0, destroy_qp(&again, &events));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
}

/* Make traffic from an XRC_SEND QP of @b through the QP that @a made to an SRQ of @b. */
TEST_F(xrc, a_qp_works_for_others_when_the_file_that_made_it_is_closed)
{
	struct raw_qp qp, mine, send;
	struct raw_ctx maker;
	struct raw_srq srq;
	struct raw_mr mr;
	struct raw_wc wc;
	uint32_t xrcd;
	int i;

	ASSERT_EQ(0, raw_open(&maker, 0));
	ASSERT_EQ(0, raw_open_xrcd(&maker, self->fd, 0, &xrcd));
	ASSERT_EQ(0, raw_qp_of(&maker, &qp, VHCA_QPT_XRC_RECV, NULL, xrcd));
	ASSERT_EQ(0, raw_mr(&self->b, &mr, 8192));
	ASSERT_EQ(0, raw_xrc_srq(&self->b, &srq, &self->bcq, self->bxrcd));
	ASSERT_EQ(0, raw_qp_of(&self->b, &send, VHCA_QPT_XRC_SEND, &self->bcq, 0));
	ASSERT_EQ(0, raw_climb(&send, VHCA_QPS_RTS, raw_attr(maker.lid, qp.made.qpn)));
	ASSERT_EQ(0, raw_climb(&qp, VHCA_QPS_RTR, raw_attr(self->b.lid, send.made.qpn)));
	ASSERT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	raw_close(&maker);
	raw_srq_recv(&srq, &mr, 4096, 64);
	memcpy(mr.addr, "xrc here", 8);
	ASSERT_EQ(0, xrc_send(&send, &mr, srq.made.srqn));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, raw_wait_wc(&self->bcq, &wc));
		EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	}
	EXPECT_EQ(0, memcmp(mr.addr + 4096, "xrc here", 8));
	ASSERT_EQ(0, raw_destroy_qp(&mine));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
}

/* The tag of the WQE that was posted last. */
static void retag(struct raw_srq *srq, uint16_t tag)
{
	uint16_t i = (srq->pi - 1) & ((1u << srq->made.shift) - 1);
	size_t size = (size_t)VHCA_WQE_SEG_SIZE << srq->made.sge_shift;

	((struct vhca_wqe_recv_head *)(srq->buf + i * size))->tag = htobe16(tag);
}

/*
 * A message waits for a receive of @a and cannot be read when there is one. The
 * receive, which the QP has taken by then, is neither that of the next message, which
 * is for @b, nor lost.
 */
TEST_F(xrc, a_receive_that_a_message_left_is_not_for_the_srq_of_the_next)
{
	struct vhca_qp_attr attr = raw_attr(self->b.lid, 0);
	struct raw_srq asrq, bsrq;
	struct raw_qp recv, send;
	struct raw_mr amr, mr, gone;
	struct raw_wc wc;

	ASSERT_EQ(0, raw_mr(&self->a, &amr, 4096));
	ASSERT_EQ(0, raw_mr(&self->b, &mr, 8192));
	ASSERT_EQ(0, raw_mr(&self->b, &gone, 4096));
	ASSERT_EQ(0, raw_xrc_srq(&self->a, &asrq, &self->acq, self->axrcd));
	ASSERT_EQ(0, raw_xrc_srq(&self->b, &bsrq, &self->bcq, self->bxrcd));
	ASSERT_EQ(0, raw_qp_of(&self->a, &recv, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	ASSERT_EQ(0, raw_qp_of(&self->b, &send, VHCA_QPT_XRC_SEND, &self->bcq, 0));
	attr.dest_qpn = recv.made.qpn;
	attr.min_rnr_timer = 20;
	ASSERT_EQ(0, raw_climb(&send, VHCA_QPS_RTS, attr));
	attr.dest_qpn = send.made.qpn;
	ASSERT_EQ(0, raw_climb(&recv, VHCA_QPS_RTR, attr));

	ASSERT_EQ(0, xrc_send(&send, &gone, asrq.made.srqn));
	ASSERT_EQ(0, raw_dereg(&self->b, &gone));
	raw_srq_recv(&asrq, &amr, 0, 64);
	retag(&asrq, 7);
	ASSERT_EQ(0, raw_wait_wc(&self->bcq, &wc));
	ASSERT_EQ(VHCA_CQE_LOC_PROT_ERR, wc.status);

	attr.dest_qpn = recv.made.qpn;
	ASSERT_EQ(0, raw_reset_qp(&send));
	ASSERT_EQ(0, raw_climb(&send, VHCA_QPS_RTS, attr));
	raw_srq_recv(&bsrq, &mr, 4096, 64);
	retag(&bsrq, 3);
	ASSERT_EQ(0, xrc_send(&send, &mr, bsrq.made.srqn));
	ASSERT_EQ(0, raw_wait_wc(&self->bcq, &wc));
	EXPECT_EQ(VHCA_CQE_RESP, wc.opcode);
	EXPECT_EQ(VHCA_CQE_SUCCESS, wc.status);
	EXPECT_EQ(3, wc.wqe_index);
	ASSERT_EQ(0, raw_wait_wc(&self->acq, &wc));
	EXPECT_EQ(VHCA_CQE_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(7, wc.wqe_index);
}

TEST_F(xrc, each_file_has_its_own_cookie_and_its_own_events)
{
	int afd = raw_event_file(self->a.fd, VHCA_IOC_OPEN_ASYNC);
	int bfd = raw_event_file(self->b.fd, VHCA_IOC_OPEN_ASYNC);
	struct raw_qp qp, mine, send;
	struct vhca_async_event ev;
	uint32_t events;
	struct raw_srq srq;
	struct raw_mr mr;
	struct raw_wc wc;

	ASSERT_LE(0, afd);
	ASSERT_LE(0, bfd);
	ASSERT_EQ(0, raw_mr(&self->b, &mr, 8192));
	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	ASSERT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
	ASSERT_EQ(0, raw_xrc_srq(&self->b, &srq, &self->bcq, self->bxrcd));
	ASSERT_EQ(0, raw_qp_of(&self->b, &send, VHCA_QPT_XRC_SEND, &self->bcq, 0));
	ASSERT_EQ(0, raw_climb(&send, VHCA_QPS_RTS, raw_attr(self->a.lid, qp.made.qpn)));
	ASSERT_EQ(0, raw_climb(&qp, VHCA_QPS_RTR, raw_attr(self->b.lid, send.made.qpn)));
	raw_srq_recv(&srq, &mr, 4096, 64);
	ASSERT_EQ(0, xrc_send(&send, &mr, srq.made.srqn));
	ASSERT_EQ(0, raw_wait_wc(&self->bcq, &wc));

	ASSERT_EQ(0, raw_read_async(afd, &ev));
	EXPECT_EQ(VHCA_EVENT_COMM_EST, (int)ev.type);
	EXPECT_EQ(qp.made.cookie, ev.cookie);
	EXPECT_EQ(qp.made.qpn, ev.number);
	/* Unread events of one file go with it, and leave those of the others. */
	ASSERT_EQ(1, raw_readable(bfd, RAW_DEADLINE_MS));
	ASSERT_EQ(0, destroy_qp(&qp, &events));
	EXPECT_EQ(1u, events);
	ASSERT_EQ(0, raw_read_async(bfd, &ev));
	EXPECT_EQ(VHCA_EVENT_COMM_EST, (int)ev.type);
	EXPECT_EQ(mine.made.cookie, ev.cookie);
	EXPECT_EQ(0, raw_readable(afd, 0));
	ASSERT_EQ(0, destroy_qp(&mine, &events));
	EXPECT_EQ(1u, events);
	close(afd);
	close(bfd);
}

TEST_F(xrc, a_killed_owner_leaves_the_qp_to_the_others)
{
	int tell[2];
	struct raw_qp mine;
	uint32_t qpn;
	pid_t pid;

	ASSERT_EQ(0, pipe(tell));
	pid = fork();
	if (!pid) {
		struct raw_ctx ctx;
		struct raw_qp qp;
		uint32_t xrcd;

		if (raw_open(&ctx, 0) || raw_open_xrcd(&ctx, self->fd, 0, &xrcd) ||
		    raw_qp_of(&ctx, &qp, VHCA_QPT_XRC_RECV, NULL, xrcd) ||
		    write(tell[1], &qp.made.qpn, 4) != 4)
			_exit(1);
		pause();
		_exit(0);
	}
	ASSERT_LT(0, pid);
	close(tell[1]);
	ASSERT_EQ(4, read(tell[0], &qpn, 4));
	close(tell[0]);
	ASSERT_EQ(0, open_qp(&self->b, &mine, qpn, self->bxrcd));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, raw_wait_child(pid));
	EXPECT_EQ(VHCA_QPS_RESET, raw_state(&mine));
	EXPECT_EQ(0, raw_climb(&mine, VHCA_QPS_RTR, raw_attr(self->a.lid, 1)));
	EXPECT_EQ(0, raw_destroy_qp(&mine));
	EXPECT_EQ(-EINVAL, open_qp(&self->b, &mine, qpn, self->bxrcd));
}

/* Two processes open and drop the same QP and domain; whoever is last ends it. */
TEST_F(xrc, opening_and_leaving_at_once_is_orderly)
{
	struct raw_qp qp, mine;
	int i, status;
	pid_t pid;

	ASSERT_EQ(0, raw_qp_of(&self->a, &qp, VHCA_QPT_XRC_RECV, NULL, self->axrcd));
	pid = fork();
	if (!pid) {
		struct raw_ctx ctx;
		uint32_t xrcd;
		int err = raw_open(&ctx, 0);

		for (i = 0; !err && i < 200; i++) {
			err = raw_open_xrcd(&ctx, self->fd, 0, &xrcd);
			if (err == -ENOENT)
				_exit(0);	/* the other end has finished */
			if (err)
				break;
			err = open_qp(&ctx, &mine, qp.made.qpn, xrcd);
			if (!err)
				err = raw_destroy_qp(&mine);
			else if (err == -EINVAL)
				err = 0;
			if (!err)
				err = close_xrcd(&ctx, xrcd);
		}
		_exit(err ? 1 : 0);
	}
	ASSERT_LT(0, pid);
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(0, open_qp(&self->b, &mine, qp.made.qpn, self->bxrcd));
		EXPECT_EQ(0, raw_destroy_qp(&mine));
	}
	EXPECT_EQ(0, raw_destroy_qp(&qp));
	EXPECT_EQ(0, close_xrcd(&self->a, self->axrcd));
	EXPECT_EQ(0, close_xrcd(&self->b, self->bxrcd));
	status = raw_wait_child(pid);
	EXPECT_EQ(0, status);
	EXPECT_EQ(-ENOENT, raw_open_xrcd(&self->a, self->fd, 0, &self->axrcd));
}

TEST_HARNESS_MAIN
