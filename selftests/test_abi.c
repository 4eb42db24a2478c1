// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls as such: sizes, reserved fields, pointers, unknown
 * calls; and the queries.
 */
#include "raw.h"

#include "harness.h"

/* A call with a structure of another size. */
#define RESIZED(cmd, size) \
	_IOC(_IOC_READ | _IOC_WRITE, VHCA_IOC_MAGIC, _IOC_NR(cmd), size)

FIXTURE(abi) {
	int fd;
};

FIXTURE_SETUP(abi)
{
	self->fd = raw_open_file(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

TEST_F(abi, a_structure_shorter_than_the_first_version_is_einval)
{
	char buf[256] = {};

	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, RESIZED(VHCA_IOC_ALLOC_PD, 4), buf));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, RESIZED(VHCA_IOC_ALLOC_PD, 0), buf));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, RESIZED(VHCA_IOC_QUERY_DEVICE, 127), buf));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, RESIZED(VHCA_IOC_MODIFY_QP, 8), buf));
}

/* The sizes that the structures had before they grew. */
#define QUERY_DEVICE_0	128
#define CREATE_CQ_0	48
#define CREATE_QP_0	56

TEST_F(abi, a_structure_from_before_it_grew_is_taken)
{
	struct vhca_query_device q;
	struct raw_ctx ctx;
	struct raw_cq cq = { .made = { .cqe = 16, .channel_fd = VHCA_INVALID_FD } };
	struct vhca_create_qp qp = { .type = VHCA_QPT_RC };

	memset(&q, 0xa5, sizeof(q));
	memset(&q, 0, QUERY_DEVICE_0);
	ASSERT_EQ(0, raw_ioctl(self->fd, RESIZED(VHCA_IOC_QUERY_DEVICE, QUERY_DEVICE_0), &q));
	EXPECT_NE(0u, q.max_qp);
	EXPECT_EQ(0xa5a5a5a5, q.max_srq_sge);
	EXPECT_EQ(0xa5a5a5a5a5a5a5a5ull, q.dm_size);

	ASSERT_EQ(0, raw_open(&ctx, 0));
	memset((char *)&cq.made + CREATE_CQ_0, 0xff, sizeof(cq.made) - CREATE_CQ_0);
	cq.made.uar = ctx.uar.uar;
	cq.made.slot = 1;
	ASSERT_EQ(0, raw_ioctl(ctx.fd, RESIZED(VHCA_IOC_CREATE_CQ, CREATE_CQ_0), &cq.made));
	EXPECT_EQ(16u, cq.made.cqe);
	EXPECT_EQ(~0ull, cq.made.buf_addr);

	memset((char *)&qp + CREATE_QP_0, 0xff, sizeof(qp) - CREATE_QP_0);
	qp.pd = ctx.pd;
	qp.send_cqn = cq.made.cqn;
	qp.recv_cqn = cq.made.cqn;
	qp.uar = ctx.uar.uar;
	qp.slot = 2;
	EXPECT_EQ(-EINVAL, raw_ioctl(ctx.fd, RESIZED(VHCA_IOC_CREATE_QP, CREATE_QP_0 - 1), &qp));
	ASSERT_EQ(0, raw_ioctl(ctx.fd, RESIZED(VHCA_IOC_CREATE_QP, CREATE_QP_0), &qp));
	EXPECT_NE(0u, qp.buf_size);
	EXPECT_EQ(~0u, qp.srqn);
	raw_close(&ctx);
}

TEST_F(abi, a_longer_structure_with_a_zero_tail_is_taken)
{
	struct {
		struct vhca_object o;
		uint8_t tail[200];
	} big = {};

	ASSERT_EQ(0, raw_ioctl(self->fd, RESIZED(VHCA_IOC_ALLOC_PD, sizeof(big)), &big));
	EXPECT_EQ(0, big.tail[0]);
	EXPECT_EQ(0, raw_free(self->fd, VHCA_IOC_FREE_PD, big.o.number));
}

TEST_F(abi, a_longer_structure_with_a_set_tail_is_e2big)
{
	struct {
		struct vhca_object o;
		uint8_t tail[200];
	} big = {};

	big.tail[199] = 1;
	EXPECT_EQ(-E2BIG, raw_ioctl(self->fd, RESIZED(VHCA_IOC_ALLOC_PD, sizeof(big)), &big));
	big.tail[199] = 0;
	big.tail[0] = 1;
	EXPECT_EQ(-E2BIG, raw_ioctl(self->fd, RESIZED(VHCA_IOC_ALLOC_PD, sizeof(big)), &big));
}

TEST_F(abi, the_largest_size_that_fits_a_call_does_no_harm)
{
	static uint8_t big[16383];

	EXPECT_EQ(0, raw_ioctl(self->fd, RESIZED(VHCA_IOC_QUERY_DEVICE, sizeof(big)), big));
	EXPECT_EQ(VHCA_ABI_VERSION, ((struct vhca_query_device *)big)->abi_version + 0);
}

TEST_F(abi, reserved_fields_must_be_zero)
{
	struct vhca_object o = { .rsvd = 1 };
	struct vhca_alloc_uar uar = { .rsvd = 1 };
	struct vhca_create_event_file e = { .number = 1 };
	struct vhca_destroy_cq dcq = { .rsvd = 1 };
	struct vhca_destroy_channel dch = { .rsvd = 1 };
	struct vhca_open_xrcd xrcd = { .fd = VHCA_INVALID_FD, .oflags = O_CREAT, .rsvd = 1 };
	struct vhca_mcast mc = { .gid[0] = 0xff, .rsvd = 1 };

	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_OPEN_XRCD, &xrcd));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_CLOSE_XRCD, &o));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_ATTACH_MCAST, &mc));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_DETACH_MCAST, &mc));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_ALLOC_PD, &o));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_FREE_PD, &o));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_FREE_UAR, &o));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_DEREG_MR, &o));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_ALLOC_UAR, &uar));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_CREATE_CHANNEL, &e));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_OPEN_ASYNC, &e));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_DESTROY_CQ, &dcq));
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_DESTROY_CHANNEL, &dch));
}

TEST_F(abi, reserved_fields_of_a_live_object_must_be_zero)
{
	struct vhca_object o = {};

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_ALLOC_PD, &o));
	o.rsvd = 1;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_FREE_PD, &o));
	o.rsvd = 0;
	EXPECT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_FREE_PD, &o));
}

TEST_F(abi, an_unknown_call_is_enotty)
{
	char buf[256] = {};

	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IOWR(VHCA_IOC_MAGIC, 0x0f, char[8]), buf));
	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IOWR(VHCA_IOC_MAGIC, 0xff, char[8]), buf));
	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IOWR(0xc9, 0x00, char[8]), buf));
	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IO(VHCA_IOC_MAGIC, 0x12), buf));
	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IOR(VHCA_IOC_MAGIC, 0x12, struct vhca_object),
				     buf));
	EXPECT_EQ(-ENOTTY, raw_ioctl(self->fd, _IOW(VHCA_IOC_MAGIC, 0x12, struct vhca_object),
				     buf));
}

TEST_F(abi, a_bad_pointer_is_efault)
{
	static const unsigned long calls[] = {
		VHCA_IOC_QUERY_DEVICE, VHCA_IOC_QUERY_PORT, VHCA_IOC_QUERY_GID,
		VHCA_IOC_QUERY_PKEY, VHCA_IOC_OPEN_ASYNC, VHCA_IOC_ALLOC_UAR,
		VHCA_IOC_FREE_UAR, VHCA_IOC_ALLOC_PD, VHCA_IOC_FREE_PD, VHCA_IOC_REG_MR,
		VHCA_IOC_DEREG_MR, VHCA_IOC_CREATE_CHANNEL, VHCA_IOC_DESTROY_CHANNEL,
		VHCA_IOC_CREATE_CQ, VHCA_IOC_DESTROY_CQ, VHCA_IOC_CREATE_QP,
		VHCA_IOC_MODIFY_QP, VHCA_IOC_QUERY_QP, VHCA_IOC_DESTROY_QP,
		VHCA_IOC_OPEN_QP, VHCA_IOC_OPEN_XRCD, VHCA_IOC_CLOSE_XRCD,
		VHCA_IOC_CREATE_SRQ, VHCA_IOC_MODIFY_SRQ, VHCA_IOC_QUERY_SRQ,
		VHCA_IOC_DESTROY_SRQ, VHCA_IOC_ATTACH_MCAST, VHCA_IOC_DETACH_MCAST,
	};
	unsigned int i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, calls[i], NULL));
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, calls[i], (void *)-4096L));
	}
}

/* The number of the next descriptor shows whether one was left open. */
TEST_F(abi, a_result_that_cannot_be_stored_leaves_nothing_behind)
{
	int before = dup(0), after, i;
	void *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, ro);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, VHCA_IOC_CREATE_CHANNEL, ro));
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, VHCA_IOC_OPEN_ASYNC, ro));
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, VHCA_IOC_ALLOC_PD, ro));
		EXPECT_EQ(-EFAULT, raw_ioctl(self->fd, VHCA_IOC_ALLOC_UAR, ro));
	}
	after = dup(0);
	EXPECT_EQ(before + 1, after);
	/* The one async event file was not used up either. */
	EXPECT_LE(0, raw_event_file(self->fd, VHCA_IOC_OPEN_ASYNC));
}

TEST_F(abi, a_uar_whose_number_cannot_be_stored_is_given_back)
{
	struct vhca_query_device q = {};
	void *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vhca_alloc_uar uar = {};
	unsigned int i;

	ASSERT_NE(MAP_FAILED, ro);
	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	for (i = 0; i < q.max_uar + 1; i++)
		ASSERT_EQ(-EFAULT, raw_ioctl(self->fd, VHCA_IOC_ALLOC_UAR, ro));
	EXPECT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_ALLOC_UAR, &uar));
}

TEST_F(abi, no_uar_left_is_enospc_and_all_come_back_with_close)
{
	struct vhca_query_device q = {};
	unsigned int i;
	int round;

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	for (round = 0; round < 2; round++) {
		int fd = raw_open_file(0), err = 0;

		ASSERT_LE(0, fd);
		for (i = 0; !err && i <= q.max_uar; i++) {
			struct vhca_alloc_uar uar = {};

			err = raw_ioctl(fd, VHCA_IOC_ALLOC_UAR, &uar);
		}
		EXPECT_EQ(-ENOSPC, err);
		EXPECT_LT(q.max_uar / 2, i);
		close(fd);
	}
}

TEST_F(abi, read_and_write_are_refused)
{
	char buf[64] = {};

	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(-1, write(self->fd, buf, sizeof(buf)));
}

TEST_F(abi, query_device_tells_the_limits)
{
	struct vhca_query_device q = {};

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	EXPECT_EQ(VHCA_ABI_VERSION, q.abi_version + 0);
	EXPECT_EQ(0u, q.function);
	EXPECT_NE(0u, q.node_guid);
	EXPECT_NE(0u, q.sys_image_guid);
	EXPECT_NE(0u, q.fw_ver);
	EXPECT_NE(0u, q.max_mr_size);
	EXPECT_EQ(0x1234u, q.vendor_id);
	EXPECT_EQ(0x5643u, q.vendor_part_id);
	EXPECT_LT(0u, q.max_qp);
	EXPECT_LT(0u, q.max_cq);
	EXPECT_LT(0u, q.max_mr);
	EXPECT_LT(0u, q.max_pd);
	EXPECT_LT(0u, q.max_uar);
	EXPECT_LT(0u, q.max_cqe);
	EXPECT_GE((unsigned int)VHCA_SQ_MAX_SHIFT, q.max_qp_send_shift);
	EXPECT_GE((unsigned int)VHCA_RQ_MAX_SHIFT, q.max_qp_recv_shift);
	EXPECT_LT(0u, q.max_qp_send_sge);
	EXPECT_LT(0u, q.max_qp_recv_sge);
	EXPECT_GE((unsigned int)VHCA_MAX_INLINE, q.max_qp_inline);
	EXPECT_LT(0u, q.num_comp_vectors);
	EXPECT_EQ(1u, q.num_ports);
	EXPECT_LT(0u, q.max_pkeys);
	EXPECT_LT(0u, q.max_srq);
	EXPECT_GE((unsigned int)VHCA_RQ_MAX_SHIFT, q.max_srq_shift);
	EXPECT_LT(0u, q.max_srq_sge);
	EXPECT_LT(0u, q.max_xrcd);
	EXPECT_LT(0u, q.max_mcast_grp);
	EXPECT_LT(0u, q.max_mcast_qp_attach);
}

TEST_F(abi, query_port_tells_an_active_infiniband_port)
{
	struct vhca_query_port q = { .port = 1 };

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_PORT, &q));
	EXPECT_EQ(4, q.state);		/* active */
	EXPECT_EQ(5, q.phys_state);	/* link up */
	EXPECT_EQ(1, q.link_layer);	/* InfiniBand */
	EXPECT_EQ(5, q.max_mtu);	/* 4096 */
	EXPECT_NE(0, q.lid);
	EXPECT_LT(0u, q.gid_tbl_len);
	EXPECT_LT(0, q.pkey_tbl_len);
	EXPECT_LT(0u, q.max_msg_sz);
}

TEST_F(abi, the_gid_holds_the_node_guid)
{
	struct vhca_query_gid gid = { .port = 1 };
	struct vhca_query_device q = {};
	static const uint8_t prefix[8] = { 0xfe, 0x80 };

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_GID, &gid));
	EXPECT_EQ(0, memcmp(gid.gid, prefix, 8));
	EXPECT_EQ(0, memcmp(gid.gid + 8, &q.node_guid, 8));
}

TEST_F(abi, pkey_0_is_the_default_partition)
{
	struct vhca_query_pkey q = { .port = 1 };

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_PKEY, &q));
	EXPECT_EQ(0xffff, q.pkey);
	q.rsvd[2] = 1;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_PKEY, &q));
}

TEST_F(abi, a_wrong_port_is_einval)
{
	static const uint32_t wrong[] = { 0, 2, 255, 257, 0xffffffff };
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vhca_query_port port = { .port = wrong[i] };
		struct vhca_query_gid gid = { .port = wrong[i] };
		struct vhca_query_pkey pkey = { .port = wrong[i] };

		EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_PORT, &port));
		EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_GID, &gid));
		EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_PKEY, &pkey));
	}
}

TEST_F(abi, an_index_beyond_the_table_is_einval)
{
	struct vhca_query_port port = { .port = 1 };
	struct vhca_query_gid gid = { .port = 1 };
	struct vhca_query_pkey pkey = { .port = 1 };

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_PORT, &port));
	gid.index = port.gid_tbl_len;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_GID, &gid));
	gid.index = 0xffffffff;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_GID, &gid));
	pkey.index = port.pkey_tbl_len;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_PKEY, &pkey));
	pkey.index = 0xffffffff;
	EXPECT_EQ(-EINVAL, raw_ioctl(self->fd, VHCA_IOC_QUERY_PKEY, &pkey));
}

TEST_F(abi, every_async_event_file_has_a_number_of_its_own)
{
	struct vhca_create_event_file e[4] = {};
	int i, k;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_OPEN_ASYNC, &e[i]));
		EXPECT_EQ(FD_CLOEXEC, fcntl(e[i].fd, F_GETFD));
		EXPECT_EQ(O_RDONLY, fcntl(e[i].fd, F_GETFL) & O_ACCMODE);
		for (k = 0; k < i; k++)
			EXPECT_NE(e[k].number, e[i].number);
		/* That of a closed one names nothing any more. */
		close(e[i].fd);
	}
	EXPECT_EQ(0, e[0].number);
}

TEST_F(abi, a_cq_names_an_async_event_file_that_is_there)
{
	struct vhca_create_event_file e = {};
	struct vhca_create_cq cq = {
		.cqe = 16, .channel_fd = VHCA_INVALID_FD, .slot = VHCA_UAR_FIRST_SLOT,
	};
	struct vhca_destroy_cq gone = {};
	struct raw_ctx ctx;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	cq.uar = ctx.uar.uar;
	ASSERT_EQ(0, raw_ioctl(ctx.fd, VHCA_IOC_OPEN_ASYNC, &e));
	close(e.fd);
	e.number = 0;
	ASSERT_EQ(0, raw_ioctl(ctx.fd, VHCA_IOC_OPEN_ASYNC, &e));
	ASSERT_NE(0, e.number);
	cq.async = e.number + 1;
	EXPECT_EQ(-EINVAL, raw_ioctl(ctx.fd, VHCA_IOC_CREATE_CQ, &cq));
	cq.async = e.number;
	ASSERT_EQ(0, raw_ioctl(ctx.fd, VHCA_IOC_CREATE_CQ, &cq));
	/* Its events have a place as long as the CQ is there. */
	close(e.fd);
	gone.cqn = cq.cqn;
	EXPECT_EQ(0, raw_ioctl(ctx.fd, VHCA_IOC_DESTROY_CQ, &gone));
	EXPECT_EQ(0u, gone.async_events);
	cq.cqn = 0;
	cq.buf_offset = 0;
	cq.buf_size = 0;
	EXPECT_EQ(-EINVAL, raw_ioctl(ctx.fd, VHCA_IOC_CREATE_CQ, &cq));
	raw_close(&ctx);
}

TEST_F(abi, the_async_event_file_is_empty_while_nothing_happens)
{
	struct vhca_async_event ev;
	int fd = raw_event_file(self->fd, VHCA_IOC_OPEN_ASYNC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, raw_nonblock(fd));
	EXPECT_EQ(-1, read(fd, &ev, sizeof(ev)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, read(fd, &ev, sizeof(ev) - 1));
	EXPECT_EQ(EINVAL, errno);
}

/* What sysfs says, without the newline. */
static void sysfs(const char *name, char *buf, int size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/vhca/vhca0/%s", name);
	f = fopen(path, "r");
	if (!f || !fgets(buf, size, f))
		*buf = 0;
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = 0;
}

TEST_F(abi, sysfs_says_the_same_as_query_device)
{
	struct vhca_query_device q = {};
	char want[64], have[64];
	uint64_t guid;

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	snprintf(want, sizeof(want), "%u", q.abi_version);
	sysfs("abi_version", have, sizeof(have));
	EXPECT_STREQ(want, have);
	guid = be64toh(q.node_guid);
	snprintf(want, sizeof(want), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		 (unsigned int)guid & 0xffff);
	sysfs("node_guid", have, sizeof(have));
	EXPECT_STREQ(want, have);
	snprintf(want, sizeof(want), "%u.%u.%u", (unsigned int)(q.fw_ver >> 32),
		 (unsigned int)(q.fw_ver >> 16) & 0xffff, (unsigned int)q.fw_ver & 0xffff);
	sysfs("fw_ver", have, sizeof(have));
	EXPECT_STREQ(want, have);
}

TEST_F(abi, creation_with_values_out_of_range_is_einval)
{
	struct vhca_query_device q = {};
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	ASSERT_EQ(0, raw_open(&ctx, 0));
	EXPECT_EQ(-EINVAL, raw_cq(&ctx, &cq, 0, VHCA_INVALID_FD));
	EXPECT_EQ(-EINVAL, raw_cq(&ctx, &cq, q.max_cqe + 1, VHCA_INVALID_FD));
	EXPECT_EQ(-EINVAL, raw_cq(&ctx, &cq, 0x80000001, VHCA_INVALID_FD));
	cq = (struct raw_cq) { .made = { .cqe = 1, .channel_fd = VHCA_INVALID_FD,
					 .comp_vector = q.num_comp_vectors } };
	EXPECT_EQ(-EINVAL, raw_make_cq(&ctx, &cq));
	ASSERT_EQ(0, raw_cq(&ctx, &cq, 100, VHCA_INVALID_FD));
	EXPECT_EQ(128u, cq.made.cqe);

	qp = (struct raw_qp) { .made = { .sq_shift = q.max_qp_send_shift + 1 } };
	EXPECT_EQ(-EINVAL, raw_make_qp(&ctx, &qp, &cq, &cq));
	qp = (struct raw_qp) { .made = { .rq_shift = q.max_qp_recv_shift + 1 } };
	EXPECT_EQ(-EINVAL, raw_make_qp(&ctx, &qp, &cq, &cq));
	qp = (struct raw_qp) { .made = { .rq_sge_shift = VHCA_RQ_MAX_SGE_SHIFT + 1 } };
	EXPECT_EQ(-EINVAL, raw_make_qp(&ctx, &qp, &cq, &cq));
	qp = (struct raw_qp) { .made = { .sq_shift = 255, .rq_shift = 255,
					 .rq_sge_shift = 255 } };
	EXPECT_EQ(-EINVAL, raw_make_qp(&ctx, &qp, &cq, &cq));
	qp = (struct raw_qp) { .made = { .async = 1 } };
	EXPECT_EQ(-EINVAL, raw_make_qp(&ctx, &qp, &cq, &cq));
	EXPECT_EQ(0, raw_qp(&ctx, &qp, &cq, &cq));
	raw_close(&ctx);
}

TEST_F(abi, a_qp_type_that_does_not_exist_is_refused)
{
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct vhca_create_qp c;
	int type, err;

	ASSERT_EQ(0, raw_open(&ctx, 0));
	ASSERT_EQ(0, raw_cq(&ctx, &cq, 16, VHCA_INVALID_FD));
	for (type = 0; type < 300; type++) {
		bool known = type == VHCA_QPT_RC || type == VHCA_QPT_UC || type == VHCA_QPT_UD;
		bool xrc = type == VHCA_QPT_XRC_SEND || type == VHCA_QPT_XRC_RECV;

		c = (struct vhca_create_qp) {
			.type = type, .pd = ctx.pd, .send_cqn = cq.made.cqn,
			.recv_cqn = cq.made.cqn, .uar = ctx.uar.uar, .slot = ctx.slot,
			.rq_sge_shift = 1,
		};
		err = raw_ioctl(ctx.fd, VHCA_IOC_CREATE_QP, &c);
		ctx.slot += !err;
		/* Those of XRC have no RQ, of which a field is set. */
		EXPECT_EQ(known ? 0 : xrc ? -EINVAL : -EOPNOTSUPP, err) {
			TH_LOG("type %u", type);
		}
	}
	raw_close(&ctx);
}

TEST_F(abi, the_smallest_and_the_largest_queues_can_be_made)
{
	struct vhca_query_device q = {};
	struct raw_ctx ctx;
	struct raw_cq cq;
	struct raw_qp qp;

	ASSERT_EQ(0, raw_ioctl(self->fd, VHCA_IOC_QUERY_DEVICE, &q));
	ASSERT_EQ(0, raw_open(&ctx, 0));
	ASSERT_EQ(0, raw_cq(&ctx, &cq, 1, VHCA_INVALID_FD));
	EXPECT_LE(1u, cq.made.cqe);
	memset(&qp, 0, sizeof(qp));
	EXPECT_EQ(0, raw_make_qp(&ctx, &qp, &cq, &cq));
	qp = (struct raw_qp) { .made = { .sq_shift = q.max_qp_send_shift,
					 .rq_shift = q.max_qp_recv_shift } };
	EXPECT_EQ(0, raw_make_qp(&ctx, &qp, &cq, &cq));
	EXPECT_EQ(0, raw_destroy_qp(&qp));
	raw_close(&ctx);
}

TEST_HARNESS_MAIN
