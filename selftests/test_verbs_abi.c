// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_verbs_abi.c: the verbs API around the data path: queries, strings, limits,
 * memory registration, what is not there yet. Values, errno and return codes are
 * those of the manual pages.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>

#include "pair.h"

FIXTURE(ctx)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(ctx)
{
	self->ctx = open_vhca(_metadata, 0);
	self->pd = ibv_alloc_pd(self->ctx);
	ASSERT_NE(NULL, self->pd);
	ASSERT_EQ(0, ibv_query_device(self->ctx, &self->attr));
}

FIXTURE_TEARDOWN(ctx)
{
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->ctx));
}

/* The call gave nothing, and errno is this one. */
#define EXPECT_NULL_ERRNO(err, call) do {		\
	errno = 0;					\
	EXPECT_EQ(NULL, (void *)(call));		\
	EXPECT_EQ(err, errno);				\
} while (0)

/*
 * Devices
 */
TEST(the_device_list_names_every_function_once)
{
	struct ibv_device **list;
	int n, i, k;

	list = ibv_get_device_list(&n);
	ASSERT_NE(NULL, list);
	EXPECT_LT(0, n);
	EXPECT_EQ(NULL, list[n]);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, strncmp(ibv_get_device_name(list[i]), "vhca", 4));
		EXPECT_NE(0, ibv_get_device_guid(list[i]));
		EXPECT_EQ(IBV_NODE_CA, list[i]->node_type);
		EXPECT_EQ(IBV_TRANSPORT_IB, list[i]->transport_type);
		for (k = 0; k < i; k++) {
			EXPECT_STRNE(ibv_get_device_name(list[k]), ibv_get_device_name(list[i]));
			EXPECT_NE(ibv_get_device_guid(list[k]), ibv_get_device_guid(list[i]));
		}
	}
	ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	EXPECT_NE(NULL, list);
	ibv_free_device_list(list);
}

static void expect_same_devices(struct __test_metadata *_metadata, struct ibv_device **known,
				int n)
{
	struct ibv_device **list;
	int i, now;

	list = ibv_get_device_list(&now);
	ASSERT_NE(NULL, list);
	ASSERT_EQ(n, now);
	for (i = 0; i < n; i++)
		EXPECT_EQ(known[i], list[i]);
	ibv_free_device_list(list);
}

TEST(a_device_is_the_same_object_in_each_list)
{
	struct ibv_device **list, *known[64];
	struct ibv_context *ctx;
	int n;

	list = ibv_get_device_list(&n);
	ASSERT_NE(NULL, list);
	ASSERT_LT(0, n);
	ASSERT_GE((int)ARRAY_SIZE(known), n);
	memcpy(known, list, n * sizeof(*list));
	expect_same_devices(_metadata, known, n);
	ctx = ibv_open_device(known[0]);
	ASSERT_NE(NULL, ctx);
	ibv_free_device_list(list);
	expect_same_devices(_metadata, known, n);
	EXPECT_EQ(known[0], ctx->device);
	EXPECT_EQ(0, ibv_close_device(ctx));
	expect_same_devices(_metadata, known, n);
}

/* To it, a device that is on no list any more is gone, and one that it has not seen is new. */
TEST(librdmacm_keeps_its_contexts_when_it_looks_for_devices_again)
{
	struct ibv_context **first, **second;
	char memory[4096];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int n, again, i;

	first = rdma_get_devices(&n);
	ASSERT_NE(NULL, first);
	ASSERT_LT(0, n);
	pd = ibv_alloc_pd(first[0]);
	ASSERT_NE(NULL, pd);
	second = rdma_get_devices(&again);
	ASSERT_NE(NULL, second);
	ASSERT_EQ(n, again);
	for (i = 0; i < n; i++)
		ASSERT_EQ(first[i], second[i]);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	rdma_free_devices(second);
	rdma_free_devices(first);
}

TEST(a_device_stays_good_after_its_list_is_freed_while_it_is_open)
{
	struct ibv_context *ctx = open_vhca(_metadata, 0);

	EXPECT_STREQ("vhca0", ibv_get_device_name(ctx->device));
	EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST(contexts_of_one_device_are_independent)
{
	struct ibv_context *ctx[3];
	struct ibv_device_attr attr;
	struct ibv_pd *pd;
	int i;

	for (i = 0; i < 3; i++)
		ctx[i] = open_vhca(_metadata, 0);
	EXPECT_NE(ctx[0], ctx[1]);
	EXPECT_NE(ctx[0]->cmd_fd, ctx[1]->cmd_fd);
	pd = ibv_alloc_pd(ctx[2]);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_close_device(ctx[0]));
	EXPECT_EQ(0, ibv_close_device(ctx[1]));
	EXPECT_EQ(0, ibv_query_device(ctx[2], &attr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(ctx[2]));
}

/* A CQ that has come and gone leaves a page of doorbells with the context. */
TEST_F(ctx, a_child_that_closes_the_device_takes_nothing_from_its_parent)
{
	struct ibv_cq *cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	const struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_qp *qp;
	int status;
	pid_t pid;

	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, ibv_destroy_cq(cq));
	pid = fork();
	if (!pid)
		_exit(ibv_close_device(self->ctx));
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	ASSERT_NE(NULL, cq) {
		TH_LOG("%s", strerror(errno));
	}
	qp = make_qp(self->pd, cq, cq, &opts, NULL);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST(opening_and_closing_leaves_no_file_open)
{
	int i, before, after;

	before = dup(0);
	close(before);
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, ibv_close_device(open_vhca(_metadata, i % 2)));
	after = dup(0);
	close(after);
	EXPECT_EQ(before, after);
}

TEST_F(ctx, query_device)
{
	const struct ibv_device_attr *attr = &self->attr;

	EXPECT_EQ(0x1234, attr->vendor_id);
	EXPECT_EQ(0x5643, attr->vendor_part_id);
	EXPECT_NE(0, attr->node_guid);
	EXPECT_NE(0, attr->sys_image_guid);
	EXPECT_EQ(ibv_get_device_guid(self->ctx->device), attr->node_guid);
	EXPECT_LT(0, strlen(attr->fw_ver));
	EXPECT_EQ(1, attr->phys_port_cnt);
	EXPECT_LE(1ull << 30, attr->max_mr_size);
	EXPECT_LE(256, attr->max_qp);
	EXPECT_LE(256, attr->max_cq);
	EXPECT_LE(256, attr->max_mr);
	EXPECT_LE(256, attr->max_pd);
	EXPECT_LE(1024, attr->max_qp_wr);
	EXPECT_LE(4096, attr->max_cqe);
	EXPECT_LE(4, attr->max_sge);
	EXPECT_LE(1, attr->max_pkeys);
	EXPECT_LE(1, self->ctx->num_comp_vectors);
	EXPECT_LE(256, attr->max_mw);
	EXPECT_EQ(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		  attr->device_cap_flags & (IBV_DEVICE_MEM_WINDOW |
					    IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					    IBV_DEVICE_MEM_WINDOW_TYPE_2B));
	/* What is not there, as fast registration, is not promised. */
	EXPECT_EQ(0, attr->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	/* The engine's atomics are the CPU's. */
	EXPECT_EQ(IBV_ATOMIC_GLOB, attr->atomic_cap);
	EXPECT_LE(1, attr->max_qp_rd_atom);
	EXPECT_LE(1, attr->max_qp_init_rd_atom);
}

TEST_F(ctx, query_device_ex_agrees)
{
	struct ibv_device_attr_ex ex = {};

	ASSERT_EQ(0, ibv_query_device_ex(self->ctx, NULL, &ex));
	EXPECT_EQ(0, memcmp(&ex.orig_attr, &self->attr, sizeof(self->attr)));
	EXPECT_EQ(0, ex.odp_caps.general_caps);
}

TEST_F(ctx, query_port)
{
	struct ibv_port_attr port = {};

	ASSERT_EQ(0, ibv_query_port(self->ctx, 1, &port));
	EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
	EXPECT_EQ(IBV_MTU_4096, port.max_mtu);
	EXPECT_LE(port.active_mtu, port.max_mtu);
	EXPECT_LE(IBV_MTU_256, port.active_mtu);
	EXPECT_EQ(IBV_LINK_LAYER_INFINIBAND, port.link_layer);
	EXPECT_NE(0, port.lid);
	EXPECT_LE(1, port.gid_tbl_len);
	EXPECT_LE(1, port.pkey_tbl_len);
	EXPECT_LE(1u << 30, port.max_msg_sz);
	EXPECT_EQ(5, port.phys_state);
}

TEST_F(ctx, a_port_that_is_not_there_is_einval)
{
	struct ibv_port_attr port = {};
	union ibv_gid gid;
	__be16 pkey;

	EXPECT_EQ(EINVAL, ibv_query_port(self->ctx, 0, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(self->ctx, 2, &port));
	EXPECT_NE(0, ibv_query_gid(self->ctx, 2, 0, &gid));
	EXPECT_NE(0, ibv_query_pkey(self->ctx, 2, 0, &pkey));
}

TEST_F(ctx, gid_and_pkey_tables)
{
	struct ibv_port_attr port = {};
	union ibv_gid gid, other;
	__be16 pkey;

	ASSERT_EQ(0, ibv_query_port(self->ctx, 1, &port));
	ASSERT_EQ(0, ibv_query_gid(self->ctx, 1, 0, &gid));
	EXPECT_EQ(0xfe80000000000000ull, be64toh(gid.global.subnet_prefix));
	EXPECT_NE(0, gid.global.interface_id);
	EXPECT_NE(0, ibv_query_gid(self->ctx, 1, port.gid_tbl_len, &other));
	EXPECT_NE(0, ibv_query_gid(self->ctx, 1, -1, &other));
	ASSERT_EQ(0, ibv_query_pkey(self->ctx, 1, 0, &pkey));
	EXPECT_EQ(0xffff, be16toh(pkey));
	EXPECT_NE(0, ibv_query_pkey(self->ctx, 1, port.pkey_tbl_len, &pkey));
	EXPECT_EQ(0, ibv_get_pkey_index(self->ctx, 1, htobe16(0xffff)));
	EXPECT_EQ(-1, ibv_get_pkey_index(self->ctx, 1, htobe16(0x1234)));
}

TEST_F(ctx, functions_differ_in_lid_gid_and_guid)
{
	struct ibv_context *other = open_vhca(_metadata, 1);
	struct ibv_device_attr attr;
	union ibv_gid gid[2];

	ASSERT_EQ(0, ibv_query_device(other, &attr));
	EXPECT_NE(self->attr.node_guid, attr.node_guid);
	EXPECT_NE(lid_of(self->ctx), lid_of(other));
	ASSERT_EQ(0, ibv_query_gid(self->ctx, 1, 0, &gid[0]));
	ASSERT_EQ(0, ibv_query_gid(other, 1, 0, &gid[1]));
	EXPECT_NE(0, memcmp(&gid[0], &gid[1], sizeof(gid[0])));
	EXPECT_EQ(0, ibv_close_device(other));
}

TEST(every_code_has_a_string)
{
	int i;

	for (i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		ASSERT_NE(NULL, ibv_wc_status_str(i));
		EXPECT_LT(0, strlen(ibv_wc_status_str(i)));
	}
	EXPECT_STREQ(ibv_wc_status_str(1000), ibv_wc_status_str(1001));
	/* Scripts look for these. */
	EXPECT_STREQ("success", ibv_wc_status_str(IBV_WC_SUCCESS));
	EXPECT_STREQ("Work Request Flushed Error", ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
	EXPECT_STREQ("transport retry counter exceeded", ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
	EXPECT_STREQ("local catastrophic error", ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
	EXPECT_STREQ("SRQ limit reached", ibv_event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED));
	EXPECT_STREQ("active", ibv_port_state_str(IBV_PORT_ACTIVE));
	EXPECT_STREQ("InfiniBand channel adapter", ibv_node_type_str(IBV_NODE_CA));
	EXPECT_STREQ("unknown", ibv_node_type_str(1000));
	for (i = IBV_NODE_CA; i <= IBV_NODE_RNIC; i++)
		ASSERT_NE(NULL, ibv_node_type_str(i));
	for (i = IBV_PORT_NOP; i <= IBV_PORT_ACTIVE_DEFER; i++)
		ASSERT_NE(NULL, ibv_port_state_str(i));
	for (i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_GID_CHANGE; i++)
		ASSERT_NE(NULL, ibv_event_type_str(i));
	EXPECT_NE(NULL, ibv_node_type_str(1000));
	EXPECT_NE(NULL, ibv_port_state_str(1000));
	EXPECT_NE(NULL, ibv_event_type_str(1000));
}

TEST(rates_and_mults_are_inverse)
{
	static const enum ibv_rate rate[] = {
		IBV_RATE_2_5_GBPS, IBV_RATE_5_GBPS, IBV_RATE_10_GBPS, IBV_RATE_20_GBPS,
		IBV_RATE_30_GBPS, IBV_RATE_40_GBPS, IBV_RATE_60_GBPS, IBV_RATE_80_GBPS,
		IBV_RATE_120_GBPS,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rate); i++)
		EXPECT_EQ(rate[i], mult_to_ibv_rate(ibv_rate_to_mult(rate[i])));
	EXPECT_EQ(-1, ibv_rate_to_mult(IBV_RATE_MAX));
	EXPECT_EQ(IBV_RATE_MAX, mult_to_ibv_rate(1000));
}

/*
 * Memory regions
 */
static void *map_pages(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

TEST_F(ctx, a_region_says_what_it_is)
{
	char *p = map_pages(65536, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(self->pd, p + 100, 5000, IBV_ACCESS_LOCAL_WRITE);

	ASSERT_NE(NULL, mr);
	EXPECT_EQ(p + 100, mr->addr);
	EXPECT_EQ(5000, mr->length);
	EXPECT_EQ(self->pd, mr->pd);
	EXPECT_EQ(self->ctx, mr->context);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, 65536);
}

TEST_F(ctx, a_region_may_have_no_bytes)
{
	char *p = map_pages(4096, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(self->pd, p, 0, IBV_ACCESS_LOCAL_WRITE);

	ASSERT_NE(NULL, mr);
	EXPECT_EQ(0, mr->length);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, 4096);
}

TEST_F(ctx, memory_that_is_not_mapped_is_efault)
{
	char *p = map_pages(16384, PROT_READ | PROT_WRITE);

	munmap(p + 4096, 4096);
	EXPECT_NULL_ERRNO(EFAULT, ibv_reg_mr(self->pd, p, 16384, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_NULL_ERRNO(EFAULT, ibv_reg_mr(self->pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
	munmap(p, 16384);
}

TEST_F(ctx, write_access_to_read_only_memory_is_eacces)
{
	char *p = map_pages(8192, PROT_READ);
	struct ibv_mr *mr;

	EXPECT_NULL_ERRNO(EACCES, ibv_reg_mr(self->pd, p, 8192, IBV_ACCESS_LOCAL_WRITE));
	mr = ibv_reg_mr(self->pd, p, 8192, 0);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, 8192);
}

TEST_F(ctx, a_huge_length_is_refused)
{
	static const size_t len[] = { SIZE_MAX, SIZE_MAX - 4095, 1ull << 63, 1ull << 50 };
	char *p = map_pages(4096, PROT_READ | PROT_WRITE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(len); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_reg_mr(self->pd, p, len[i], IBV_ACCESS_LOCAL_WRITE));
		EXPECT_TRUE(errno == EINVAL || errno == ENOMEM || errno == EFAULT);
	}
	munmap(p, 4096);
}

TEST_F(ctx, remote_write_and_atomic_need_local_write)
{
	char *p = map_pages(4096, PROT_READ | PROT_WRITE);

	EXPECT_NULL_ERRNO(EINVAL, ibv_reg_mr(self->pd, p, 4096, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_NULL_ERRNO(EINVAL, ibv_reg_mr(self->pd, p, 4096, IBV_ACCESS_REMOTE_ATOMIC));
	munmap(p, 4096);
}

TEST_F(ctx, access_flags_that_are_not_there_are_refused_unless_optional)
{
	static const int flag[] = {
		IBV_ACCESS_ON_DEMAND, IBV_ACCESS_HUGETLB, 1 << 19
	};
	char *p = map_pages(4096, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flag); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_reg_mr(self->pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | flag[i]));
		EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL);
	}
	mr = ibv_reg_mr(self->pd, p, 4096,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(p, 4096);
}

/* Without privileges: a fresh context of a user who may lock 256 KiB. */
TEST(registration_is_accounted_against_rlimit_memlock)
{
	struct rlimit limit = { 256 * 1024, 256 * 1024 };
	char *p = map_pages(1 << 20, PROT_READ | PROT_WRITE);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int i;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	ctx = open_vhca(_metadata, 0);
	pd = ibv_alloc_pd(ctx);
	ASSERT_NE(NULL, pd);
	EXPECT_NULL_ERRNO(ENOMEM, ibv_reg_mr(pd, p, 1 << 20, IBV_ACCESS_LOCAL_WRITE));
	/* What is deregistered is given back. */
	for (i = 0; i < 50; i++) {
		mr = ibv_reg_mr(pd, p, 64 * 1024, IBV_ACCESS_LOCAL_WRITE);
		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(ctx));
}

/*
 * CQs and QPs
 */
TEST_F(ctx, a_cq_has_as_many_entries_as_were_asked_for_or_more)
{
	static const int cqe[] = { 1, 2, 3, 100, 4096, 5000 };
	struct ibv_cq *cq;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cqe); i++) {
		cq = ibv_create_cq(self->ctx, cqe[i], self, NULL, 0);
		ASSERT_NE(NULL, cq);
		EXPECT_LE(cqe[i], cq->cqe);
		EXPECT_EQ(self, cq->cq_context);
		EXPECT_EQ(self->ctx, cq->context);
		EXPECT_EQ(0, ibv_destroy_cq(cq));
	}
}

TEST_F(ctx, cq_limits)
{
	int vectors = self->ctx->num_comp_vectors;

	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->ctx, 0, NULL, NULL, 0));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->ctx, -1, NULL, NULL, 0));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->ctx, self->attr.max_cqe + 1, NULL, NULL, 0));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->ctx, 10, NULL, NULL, vectors));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->ctx, 10, NULL, NULL, -1));
}

static struct ibv_qp *try_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

TEST_F(ctx, qp_limits)
{
	const struct ibv_qp_cap good = {
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ibv_cq *cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	struct ibv_qp_cap bad[5];
	unsigned int i;

	ASSERT_NE(NULL, cq);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].max_send_wr = self->attr.max_qp_wr + 1;
	bad[1].max_recv_wr = self->attr.max_qp_wr + 1;
	bad[2].max_send_sge = self->attr.max_sge + 1;
	bad[3].max_recv_sge = self->attr.max_sge + 1;
	bad[4].max_inline_data = 1 << 20;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		EXPECT_EQ(NULL, try_qp(self->pd, cq, bad[i])) {
			TH_LOG("limit %u", i);
		}
		EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);
	}
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(ctx, a_qp_has_what_was_asked_for_or_more)
{
	struct ibv_cq *cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	uint64_t seed = 5;
	int i;

	ASSERT_NE(NULL, cq);
	for (i = 0; i < 50; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = {
				.max_send_wr = rnd_below(&seed, 200),
				.max_recv_wr = rnd_below(&seed, 200),
				.max_send_sge = rnd_below(&seed, self->attr.max_sge + 1),
				.max_recv_sge = rnd_below(&seed, self->attr.max_sge + 1),
				.max_inline_data = rnd_below(&seed, 400),
			},
		};
		struct ibv_qp_cap asked = init.cap;
		struct ibv_qp *qp = ibv_create_qp(self->pd, &init);

		ASSERT_NE(NULL, qp);
		EXPECT_LE(asked.max_send_wr, init.cap.max_send_wr);
		EXPECT_LE(asked.max_recv_wr, init.cap.max_recv_wr);
		EXPECT_LE(asked.max_send_sge, init.cap.max_send_sge);
		EXPECT_LE(asked.max_recv_sge, init.cap.max_recv_sge);
		EXPECT_LE(asked.max_inline_data, init.cap.max_inline_data);
		EXPECT_EQ(IBV_QPS_RESET, qp->state);
		EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
		EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
		EXPECT_EQ(0, ibv_destroy_qp(qp));
	}
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST(query_qp_returns_what_was_set)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	struct ibv_qp *qp;
	struct pair p;

	opts.mtu = IBV_MTU_512;
	opts.timeout = 11;
	opts.retry_cnt = 5;
	opts.rnr_retry = 3;
	opts.min_rnr_timer = 9;
	opts.sq_sig_all = 1;
	pair_open(_metadata, &p, &opts);
	qp = p.end[0].qp;
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, 0x1fffff, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(IBV_QPS_RTS, qp->state);
	EXPECT_EQ(IBV_MTU_512, attr.path_mtu);
	EXPECT_EQ(11, attr.timeout);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(3, attr.rnr_retry);
	EXPECT_EQ(9, attr.min_rnr_timer);
	EXPECT_EQ(p.end[1].qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(p.end[1].lid, attr.ah_attr.dlid);
	EXPECT_EQ(1, attr.port_num);
	EXPECT_EQ(qp->qp_num, attr.sq_psn);
	EXPECT_EQ(0, attr.sq_draining);
	EXPECT_EQ(0, memcmp(&attr.cap, &p.end[0].cap, sizeof(attr.cap)));
	EXPECT_EQ(p.end[0].scq, init.send_cq);
	EXPECT_EQ(p.end[0].rcq, init.recv_cq);
	EXPECT_EQ(IBV_QPT_RC, init.qp_type);
	EXPECT_EQ(1, init.sq_sig_all);
	EXPECT_EQ(0, memcmp(&init.cap, &p.end[0].cap, sizeof(init.cap)));
	pair_close(_metadata, &p);
}

TEST(a_wrong_transition_is_einval_and_changes_nothing)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct pair p;
	struct ibv_qp *qp;

	opts.no_connect = true;
	pair_open(_metadata, &p, &opts);
	qp = p.end[0].qp;
	EXPECT_EQ(EINVAL, qp_to(qp, IBV_QPS_INIT));	/* lacks what it requires */
	EXPECT_EQ(EINVAL, qp_to_rts(qp, &opts));
	EXPECT_EQ(EINVAL, qp_to_rtr(qp, &opts, 1, 1));
	EXPECT_EQ(IBV_QPS_RESET, qp_state(qp));
	EXPECT_EQ(IBV_QPS_RESET, qp->state);
	pair_connect(_metadata, &p);
	EXPECT_EQ(EINVAL, qp_to_init(qp, &opts));
	EXPECT_EQ(EINVAL, qp_to_rtr(qp, &opts, p.end[1].lid, p.end[1].qp->qp_num));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(qp));
	EXPECT_EQ(IBV_QPS_RTS, qp->state);
	exchange(_metadata, &p.end[0], &p.end[1], 100, 1);
	pair_close(_metadata, &p);
}

TEST(a_pair_may_be_addressed_by_gid)
{
	struct pair_opts opts = PAIR_DEFAULTS;
	struct pair p;
	int i;

	opts.no_connect = true;
	opts.function[1] = 1;
	pair_open(_metadata, &p, &opts);
	for (i = 0; i < 2; i++) {
		struct end *e = &p.end[i], *peer = &p.end[!i];
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qp->qp_num,
			.rq_psn = peer->qp->qp_num,
			.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 1 },
		};

		ASSERT_EQ(0, ibv_query_gid(peer->ctx, 1, 0, &attr.ah_attr.grh.dgid));
		ASSERT_EQ(0, qp_to_init(e->qp, &opts));
		ASSERT_EQ(0, ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
				IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
		ASSERT_EQ(0, qp_to_rts(e->qp, &opts));
	}
	exchange(_metadata, &p.end[0], &p.end[1], 1000, 1);
	exchange(_metadata, &p.end[1], &p.end[0], 1000, 2);
	pair_close(_metadata, &p);
}

TEST_F(ctx, the_async_file_is_close_on_exec_and_may_be_non_blocking)
{
	struct ibv_async_event event;
	int fd = self->ctx->async_fd;

	EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_TRUE(fcntl(self->ctx->cmd_fd, F_GETFD) & FD_CLOEXEC);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	errno = 0;
	EXPECT_EQ(-1, ibv_get_async_event(self->ctx, &event));
	EXPECT_EQ(EAGAIN, errno);
}

/*
 * What is not there yet says so
 */
TEST_F(ctx, qp_types_that_are_not_there_give_eopnotsupp)
{
	static const enum ibv_qp_type type[] = { IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER };
	struct ibv_cq *cq = ibv_create_cq(self->ctx, 10, NULL, NULL, 0);
	unsigned int i;

	ASSERT_NE(NULL, cq);
	for (i = 0; i < ARRAY_SIZE(type); i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = type[i],
			.cap = { 1, 1, 1, 1, 0 },
		};

		EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_create_qp(self->pd, &init));
	}
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST(calls_and_opcodes_that_are_not_there_change_nothing)
{
	static const enum ibv_wr_opcode opcode[] = {
		IBV_WR_TSO, IBV_WR_DRIVER1, IBV_WR_ATOMIC_WRITE,
	};
	struct pair_opts opts = PAIR_DEFAULTS;
	struct pair p;
	struct end *a = &p.end[0];
	unsigned int i;
	int err;

	pair_open(_metadata, &p, &opts);
	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		struct ibv_sge sge = { (uintptr_t)a->buf, 8, a->mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode[i] };
		struct ibv_send_wr *bad = NULL;

		err = ibv_post_send(a->qp, &wr, &bad);
		EXPECT_TRUE(err == EOPNOTSUPP || err == EINVAL);
		EXPECT_EQ(&wr, bad);
	}
	exchange(_metadata, a, &p.end[1], 1000, 1);
	pair_close(_metadata, &p);
}

TEST_HARNESS_MAIN
