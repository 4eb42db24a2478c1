/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vhca_verbs.h: the library's objects, and what its files offer each other.
 */
#ifndef VHCA_VERBS_H
#define VHCA_VERBS_H

#include <endian.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <time.h>

#include "vhca_abi.h"

#include "acks.h"
#include "barrier.h"
#include "domain.h"
#include "lock.h"

/* Everything is hidden but what the public ABI names. */
#define VHCA_EXPORT		__attribute__((visibility("default")))

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/**
 * struct vhca_device - a device of the list
 * @ibv: what the application sees.
 * @provider_ops: NULL. Vendor libraries that ask whether a device is one of
 *	theirs compare the pointer behind struct ibv_device with their own.
 * @next: of those that the last scan found.
 * @inode: of its directory in sysfs.
 * @refs: device lists and contexts that refer to it, and that it is known.
 */
struct vhca_device {
	struct ibv_device ibv;
	const void *provider_ops;
	struct vhca_device *next;
	ino_t inode;
	uint32_t refs;
	int index;
	__be64 guid;
};

void vhca_device_get(struct vhca_device *dev);
void vhca_device_put(struct vhca_device *dev);
struct ibv_device *vhca_device_of_file(int fd);

struct vhca_uar;

/**
 * struct vhca_slot - doorbell and record of one QP, CQ or SRQ
 * @uar: the UAR that it is in.
 * @index: its line there.
 * @doorbell: where to store doorbells.
 * @kick_needed: word of the UAR page that asks for kicks.
 * @record: its struct vhca_qp_dbr, vhca_cq_dbr or vhca_srq_dbr.
 * @kick_arg: argument of the kick.
 */
struct vhca_slot {
	struct vhca_uar *uar;
	uint32_t index;
	uint64_t *doorbell;
	const uint32_t *kick_needed;
	void *record;
	unsigned long kick_arg;
};

#define VHCA_NUM_TABLE_SHIFT	12
#define VHCA_NUM_TABLE_SIZE	(1 << VHCA_NUM_TABLE_SHIFT)

/**
 * struct vhca_num_table - objects by their number
 * @leaves: two levels of VHCA_NUM_TABLE_SIZE entries.
 */
struct vhca_num_table {
	void **leaves[VHCA_NUM_TABLE_SIZE];
};

/**
 * struct vhca_context - an open device
 * @vctx: what the application sees; its context.mutex protects the channels'
 *	reference counts.
 * @async: by which queues name the async event file of this context.
 * @uar_lock: protects @uars and the slots in them.
 * @num_lock: held while a QP or an SRQ is created or destroyed, from the call to
 *	the kernel until its table agrees, so that a number that is used again
 *	never meets the CQEs of its former owner. Taken before a CQ's lock, which
 *	is taken before an SRQ's.
 * @qp_flags: VHCA_QP_F_* that QPs get by options of the environment.
 * @single_threaded: the environment promises that no queue is used by two threads at once.
 * @qps: QPs by number, but those that only receive for SRQs (XRC_RECV). Read by
 *	pollers under their CQ's lock; see vhca_num_del().
 * @srqs: SRQs by number, in the same way.
 */
struct vhca_context {
	struct verbs_context vctx;
	struct vhca_query_device caps;
	uint8_t qp_flags;
	bool single_threaded;
	uint32_t async;
	pthread_mutex_t uar_lock;
	struct vhca_uar *uars;
	pthread_mutex_t num_lock;
	struct vhca_num_table qps;
	struct vhca_num_table srqs;
};

/**
 * struct vhca_mr - memory region
 * @ibv: what the application sees.
 * @zero_based: WQEs name its first byte by 0.
 */
struct vhca_mr {
	struct ibv_mr ibv;
	bool zero_based;
};

#define VHCA_MR_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			 IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)

/**
 * struct vhca_ah - address handle
 * @ibv: what the application sees.
 * @dgram: the segment of the WQEs that use it, but for the fields of the peer's QP.
 */
struct vhca_ah {
	struct ibv_ah ibv;
	struct vhca_wqe_dgram dgram;
};

/**
 * struct vhca_cq - completion queue
 * @ibv: what the application sees.
 * @ex: the same, extended, for ibv_create_cq_ex().
 * @lock: protects @ci, @last_qp and the record of @ci. Extended polling keeps it from
 *	start to end.
 * @arm_lock: protects @armed, its record and the doorbell. With both locks, in that
 *	order, the ring is another one.
 * @ring: the CQEs.
 * @mask: their number less one; a power of two less one.
 * @shift: log2 of their number.
 * @ci: CQEs consumed.
 * @armed: last arm word stored, host byte order.
 * @arm_sn: sequence number for the next arm; set by each event read.
 * @moved: CQEs before this one are not where the device wrote them, see arm_mode().
 * @current: extended polling: the CQE being read.
 * @current_opcode: and its opcode.
 */
struct vhca_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct vhca_acks comp_acks;
	struct vhca_acks async_acks;
	struct vhca_buf buf;

	struct vhca_lock lock __attribute__((aligned(64)));
	uint32_t ci;
	uint32_t mask;
	uint32_t shift;
	struct vhca_cqe *ring;
	struct vhca_qp *last_qp;
	struct vhca_slot slot;
	struct vhca_lock arm_lock;
	uint32_t armed;
	uint32_t arm_sn;
	uint32_t moved;
	const struct vhca_cqe *current;
	enum ibv_wc_opcode current_opcode;
};

/**
 * struct vhca_send_info - what a completion needs to know of a send WQE
 * @wr_id: from the WR.
 * @seq: the WR's number in this queue.
 * @opcode: enum ibv_wc_opcode.
 */
struct vhca_send_info {
	uint64_t wr_id;
	uint32_t seq;
	uint32_t opcode;
};

/**
 * struct vhca_sq - send queue
 * @lock: one poster at a time. Also protects the QP's doorbell: see
 *	vhca_qp_doorbell().
 * @buf: ring of basic blocks.
 * @size: bytes of it, a power of two.
 * @pi: producer index in basic blocks.
 * @posted: WRs posted.
 * @done: WRs retired; stored by pollers, read by posters.
 * @max_wr: WRs that may be outstanding. So many of the largest size fit, so
 *	that no other check for room is needed.
 * @dest_segs: segments that name the destination, in each WQE.
 * @info: by basic block, valid at the first of a WQE.
 */
struct vhca_sq {
	struct vhca_lock lock;
	uint32_t pi;
	uint32_t posted;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t dest_segs;
	uint32_t size;
	uint8_t *buf;
	struct vhca_send_info *info;

	uint32_t done __attribute__((aligned(64)));
};

/**
 * struct vhca_rq - receive queue
 * @lock: one poster at a time.
 * @buf: ring of WQEs. NULL: the QP has no RQ.
 * @pi: WQEs posted.
 * @ci: WQEs completed; stored by pollers, read by posters.
 * @max_wr: WQEs that the ring holds, or 0 when none were asked for.
 * @mask: WQEs of the ring less one.
 * @sge_shift: log2 of the segments of a WQE.
 * @heads: of them head segments: 1 when WQEs are signed, else 0.
 * @wr_id: by WQE.
 */
struct vhca_rq {
	struct vhca_lock lock;
	uint32_t pi;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t mask;
	uint32_t sge_shift;
	uint32_t heads;
	struct vhca_wqe_data *buf;
	uint64_t *wr_id;

	uint32_t ci __attribute__((aligned(64)));
};

struct vhca_xrcd {
	struct ibv_xrcd ibv;
	uint32_t number;
};

/**
 * struct vhca_srq - shared receive queue
 * @ibv: what the application sees.
 * @cq: of an XRC SRQ: where its receives complete. Else NULL.
 * @lock: protects all that follows: posters take tags, pollers give them back.
 * @ring: WQEs.
 * @pi: WQEs posted.
 * @max_wr: WQEs of the ring, a power of two, and tags.
 * @sge_shift: log2 of the segments of a WQE.
 * @nr_free: tags that are in no WQE.
 * @free_tags: those tags.
 * @wr_id: by tag.
 */
struct vhca_srq {
	struct ibv_srq ibv;
	struct vhca_acks async_acks;
	struct ibv_cq *cq;
	struct vhca_buf buf;
	struct vhca_slot slot;

	struct vhca_lock lock __attribute__((aligned(64)));
	uint32_t pi;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t sge_shift;
	uint32_t nr_free;
	struct vhca_wqe_data *ring;
	uint16_t *free_tags;
	uint64_t *wr_id;
};

/**
 * struct vhca_qp - queue pair
 * @ibv: what the application sees; its state is what posting goes by.
 * @ex: the same, extended, for ibv_qp_to_qp_ex().
 * @wr: of those that can be posted to by calls; else NULL.
 * @flags: VHCA_QP_F_*.
 * @bf: BlueFlame: the second line; no UAR when there is none. Under the SQ's lock, as
 *	are the next two.
 * @bf_next: the next WQE goes there, and not to the line of @slot.
 * @bf_used: it holds a WQE.
 * @tell: whoever gives the SQ's lock back is to ring the doorbell; see vhca_qp_tell().
 */
struct vhca_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct vhca_wr *wr;
	struct vhca_acks async_acks;
	struct vhca_buf buf;
	bool sig_all;
	uint8_t flags;
	bool bf_next;
	bool bf_used;
	bool tell;
	struct vhca_slot slot;
	struct vhca_slot bf;
	struct vhca_sq sq __attribute__((aligned(64)));
	struct vhca_rq rq __attribute__((aligned(64)));
};

static inline struct vhca_context *to_vctx(struct ibv_context *ibv)
{
	return container_of(ibv, struct vhca_context, vctx.context);
}

/* Does the application promise that a queue is used by one thread at a time? */
static inline bool vhca_buf_single(const struct vhca_buf *buf, const struct vhca_context *ctx)
{
	return ctx->single_threaded || (buf->domain && buf->domain->td);
}

static inline struct vhca_device *to_vdev(struct ibv_device *ibv)
{
	return container_of(ibv, struct vhca_device, ibv);
}

static inline struct vhca_ah *to_vah(struct ibv_ah *ibv)
{
	return container_of(ibv, struct vhca_ah, ibv);
}

static inline struct vhca_cq *to_vcq(struct ibv_cq *ibv)
{
	return container_of(ibv, struct vhca_cq, ibv);
}

static inline struct vhca_qp *to_vqp(struct ibv_qp *ibv)
{
	return container_of(ibv, struct vhca_qp, ibv);
}

static inline struct vhca_srq *to_vsrq(struct ibv_srq *ibv)
{
	return container_of(ibv, struct vhca_srq, ibv);
}

static inline struct vhca_xrcd *to_vxrcd(struct ibv_xrcd *ibv)
{
	return container_of(ibv, struct vhca_xrcd, ibv);
}

/* Returns 0 or an errno value. */
static inline int vhca_ioctl(struct ibv_context *ctx, unsigned long cmd, void *arg)
{
	return ioctl(ctx->cmd_fd, cmd, arg) ? errno : 0;
}

/* What pointer-returning calls fail with. */
static inline void *vhca_null(int err)
{
	errno = err;
	return NULL;
}

/* What calls that return -1 fail with. */
static inline int vhca_minus(int err)
{
	errno = err;
	return -1;
}

static inline uint32_t vhca_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t vhca_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Log2 of the smallest power of two that is not less than @n, @n not 0. */
static inline unsigned int vhca_log2_up(uint32_t n)
{
	return n > 1 ? 32 - (unsigned int)__builtin_clz(n - 1) : 0;
}

/* uar.c */
int vhca_slot_alloc(struct vhca_context *ctx, struct vhca_slot *slot);
int vhca_slot_alloc_two(struct vhca_context *ctx, struct vhca_slot *slot,
			struct vhca_slot *second);
void vhca_slot_free(struct vhca_context *ctx, struct vhca_slot *slot);
void vhca_uar_free_all(struct vhca_context *ctx);
uint32_t vhca_slot_uar(const struct vhca_slot *slot);

/* The device must see one store: half a doorbell would be another doorbell. */
static inline void vhca_slot_ring(struct vhca_slot *slot, uint64_t value)
{
	__atomic_store_n(slot->doorbell, htobe64(value), __ATOMIC_RELAXED);
}

/* Behind a full barrier: kick when the device is not watching. */
static inline int vhca_kick_if_needed(struct ibv_context *ctx, const struct vhca_slot *slot)
{
	if (__builtin_expect(!__atomic_load_n(slot->kick_needed, __ATOMIC_RELAXED), 1))
		return 0;
	return ioctl(ctx->cmd_fd, VHCA_IOC_KICK, slot->kick_arg) ? errno : 0;
}

/**
 * vhca_slot_kick - tell the device of a doorbell when it is not watching
 * @ctx: the context
 * @slot: where the doorbell was stored
 *
 * The only system call of the data path. Called without locks: the device may
 * execute the queue in here.
 *
 * Return: 0, or EIO when the device is gone.
 */
static inline int vhca_slot_kick(struct ibv_context *ctx, const struct vhca_slot *slot)
{
	vhca_barrier_full();
	return vhca_kick_if_needed(ctx, slot);
}

/* query.c */
int vhca_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int vhca_query_caps(struct ibv_context *context, struct vhca_query_device *caps);
int vhca_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
uint64_t vhca_clock_ns(clockid_t clock);
int vhca_query_port(struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr, size_t attr_len);

/* mr.c */
int vhca_mr_check_access(unsigned int access, unsigned int supported);
struct ibv_mr *vhca_reg_special_mr(struct ibv_pd *pd, unsigned long ioc,
				   struct vhca_reg_special_mr *cmd);
struct ibv_mr *vhca_alloc_null_mr(struct ibv_pd *pd);

/* mw.c */
struct ibv_mw *vhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vhca_dealloc_mw(struct ibv_mw *mw);
int vhca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* dm.c */
struct ibv_dm *vhca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vhca_free_dm(struct ibv_dm *dm);
struct ibv_mr *vhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
			      size_t length, unsigned int access);

/* cq.c */
struct ibv_cq_ex *vhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int vhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
void vhca_cq_clean(struct vhca_cq *cq, const struct vhca_qp *qp, struct vhca_srq *srq);

/**
 * struct vhca_retired - the WR that a CQE completes
 * @wr_id: of the WR.
 * @opcode: for the work completion; counts only on success.
 */
struct vhca_retired {
	uint64_t wr_id;
	enum ibv_wc_opcode opcode;
};

static inline uint32_t vhca_cqe_flags(const struct vhca_cqe *cqe)
{
	return be32toh(cqe->flags_qpn) >> VHCA_CQE_FLAGS_SHIFT;
}

/* poll.c: the CQ's lock is held, but for vhca_poll_cq() */
struct vhca_cqe *vhca_cq_look(const struct vhca_cq *cq, uint32_t index);
struct vhca_cqe *vhca_cq_peek(struct vhca_cq *cq);
int vhca_cqe_retire(struct vhca_cq *cq, const struct vhca_cqe *cqe, struct vhca_retired *out);
enum ibv_wc_status vhca_cqe_status(const struct vhca_cqe *cqe);
unsigned int vhca_cqe_wc_flags(const struct vhca_cqe *cqe);
__be32 vhca_cqe_imm(const struct vhca_cqe *cqe);
uint8_t vhca_cqe_sl(const struct vhca_cqe *cqe);
void vhca_cq_consumed(struct vhca_cq *cq);

/*
 * Those who arm read the consumer index without the lock under which it is stored. Where
 * CQEs were moved, that is stored before; the two pair.
 */
static inline uint32_t vhca_cq_ci(const struct vhca_cq *cq)
{
	return __atomic_load_n(&cq->ci, __ATOMIC_ACQUIRE);
}

static inline void vhca_cq_advance(struct vhca_cq *cq, uint32_t ci)
{
	__atomic_store_n(&cq->ci, ci, __ATOMIC_RELEASE);
}

int vhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);

/* poll_ex.c */
void vhca_cq_init_poll_ex(struct vhca_cq *cq, uint64_t wc_flags);

/* notify.c */
int vhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void vhca_cq_fired(struct vhca_cq *cq);

/* channel.c */
void vhca_channel_get(struct ibv_comp_channel *channel);
void vhca_channel_put(struct ibv_comp_channel *channel);

/* num_table.c */
int vhca_num_add(struct vhca_num_table *table, uint32_t number, void *object);
void vhca_num_del(struct vhca_num_table *table, uint32_t number);
void vhca_num_free(struct vhca_num_table *table);

static inline void *vhca_num_find(struct vhca_num_table *table, uint32_t number)
{
	uint32_t top = (number & VHCA_QPN_MASK) >> VHCA_NUM_TABLE_SHIFT;
	void **leaf = __atomic_load_n(&table->leaves[top], __ATOMIC_ACQUIRE);

	return leaf ? __atomic_load_n(&leaf[number & (VHCA_NUM_TABLE_SIZE - 1)],
				      __ATOMIC_ACQUIRE) : NULL;
}

/* qp.c */
struct ibv_qp *vhca_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vhca_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
void vhca_qp_report_cap(const struct vhca_qp *qp, struct ibv_qp_cap *cap);
void vhca_qp_clean_cqs(struct vhca_qp *qp);

/* srq.c */
struct ibv_srq *vhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int vhca_get_srq_num(struct ibv_srq *srq, uint32_t *srqn);
int vhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
uint64_t vhca_srq_retire(struct vhca_srq *srq, uint16_t tag);

/* xrcd.c */
struct ibv_xrcd *vhca_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vhca_close_xrcd(struct ibv_xrcd *ibxrcd);

/* post_send.c, post_recv.c */
int vhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vhca_post_sends(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		    enum ibv_mw_type type);
int vhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
uint32_t vhca_send_dest_segs(enum ibv_qp_type type);
uint32_t vhca_send_head_size(enum ibv_qp_type type);
uint32_t vhca_send_wqe_size(enum ibv_qp_type type, uint32_t max_sge, uint32_t max_inline);
void vhca_qp_doorbell(struct vhca_qp *qp);
int vhca_qp_tell(struct vhca_qp *qp);
void vhca_qp_silence(struct vhca_qp *qp);
const struct vhca_slot *vhca_sq_publish(struct vhca_qp *qp, uint32_t from);

/**
 * vhca_qp_kick - after the SQ's lock was given back
 * @qp: QP; when the last of its WRs completes in here it may be destroyed, so nothing of it
 *	is looked at behind the kick
 * @slot: what vhca_sq_publish() returned, or NULL when nothing was
 *
 * Return: 0, or EIO when the device is gone.
 */
static inline int vhca_qp_kick(struct vhca_qp *qp, const struct vhca_slot *slot)
{
	struct ibv_context *ctx = qp->ibv.context;
	struct vhca_slot copy;
	int err = 0;

	vhca_barrier_full();
	if (__builtin_expect(__atomic_load_n(&qp->tell, __ATOMIC_RELAXED), 0)) {
		/* This may be a kick, too. */
		if (slot) {
			copy = *slot;
			slot = &copy;
		}
		err = vhca_qp_tell(qp);
	}
	return slot ? vhca_kick_if_needed(ctx, slot) ?: err : err;
}

static inline bool vhca_may_send(const struct vhca_qp *qp)
{
	enum ibv_qp_state state = __atomic_load_n(&qp->ibv.state, __ATOMIC_RELAXED);

	return state >= IBV_QPS_RTS && state <= IBV_QPS_ERR;
}

/* wr.c */
int vhca_wr_init(struct vhca_qp *qp, enum ibv_qp_type type, uint64_t ops);

/* Exclusive-or of the bytes of whole segments. */
static inline uint8_t vhca_xor(const void *segs, size_t size)
{
	uint64_t sum = 0, word;
	size_t i;

	for (i = 0; i < size; i += sizeof(word)) {
		memcpy(&word, (const char *)segs + i, sizeof(word));
		sum ^= word;
	}
	sum ^= sum >> 32;
	sum ^= sum >> 16;
	return (uint8_t)(sum ^ sum >> 8);
}

/* av.c */
void vhca_av_from_attr(struct vhca_av *av, const struct ibv_ah_attr *attr);
void vhca_av_to_attr(const struct vhca_av *av, struct ibv_ah_attr *attr);

#endif
