/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the virtual HCA and what its files call of each other.
 *
 * Locks, outermost first:
 *   vdev.admin_lock	one admin command, one reset at a time; makes and frees
 *			every object
 *   vdev_qp.send.lock	the requester; taken with trylock by whoever wants the QP
 *			to work, see vdev_qp_run()
 *   vdev_qp.recv.lock	the responder; held by the peer's requester with its own
 *			send.lock
 *   vdev_srq.lock	one receive WQE at a time; nothing is taken under it
 *   vdev_mkey.lock	a window; for reading while an access goes through it
 *   vdev_cq.lock, vdev_eq.lock, vdev_engine.lock
 *			leaves, taken in this order
 * Those of vdev_faults: see fault.h.
 *
 * Lifetime: whoever works on objects holds a read section of vdev_srcu. An
 * object is freed after it was taken out of its table and vdev_wait_unused().
 */
#ifndef VDEV_H
#define VDEV_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/irqdomain.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/percpu.h>
#include <linux/rwsem.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../include/compat.h"
#include "../include/vhca_prm.h"
#include "../include/vhca_soft.h"
#include "fault.h"

#define VDEV_MAX_FUNCTIONS	32
#define VDEV_FW_VER		((u64)1 << 16)	/* 0.1.0 */

/* Limits that a function reports. */
#define VDEV_MAX_QP		65536
#define VDEV_MAX_CQ		65536
#define VDEV_MAX_EQ		64
#define VDEV_MAX_MKEY		BIT(20)
#define VDEV_MAX_PD		65536
#define VDEV_MAX_UAR		384		/* pages of BAR2 */
#define VDEV_DM_PAGE		VDEV_MAX_UAR	/* device memory lies behind them */
#define VDEV_DM_PAGES		128
#define VDEV_MAX_EQ_SHIFT	16
#define VDEV_MAX_SGE		BIT(VHCA_RQ_MAX_SGE_SHIFT)
#define VDEV_MAX_SRQ		65536
#define VDEV_MAX_SRQ_SGE	(VDEV_MAX_SGE - 1)	/* the head takes one segment */
#define VDEV_MAX_XRCD		65536
#define VDEV_MAX_RD_ATOM	16
#define VDEV_MAX_MR_SIZE	BIT_ULL(38)
#define VDEV_MAX_MSG		BIT(31)
#define VDEV_MAX_MCAST_GRP	4096
#define VDEV_MAX_MCAST_QP	256		/* in a group */
#define VDEV_MCAST_BITS		8		/* of the table of groups */
#define VDEV_FLOW_LABEL		0xfffff		/* its bits */
#define VDEV_OWN_QKEY		BIT(31)		/* in a datagram segment: the sender's own */
#define VDEV_MTU		4096		/* of the port: the longest datagram */
#define VDEV_MAX_CQ_COUNT	65535
#define VDEV_MAX_CQ_PERIOD	65535		/* microseconds */
#define VDEV_ACK_DELAY		15
#define VDEV_NUM_PORTS		1
#define VDEV_PKEY		0xffff

/* Counted per CPU, summed when read; the order is that of vdev_stat_names[]. */
enum vdev_stat {
	VDEV_DOORBELLS,		/* slots found changed */
	VDEV_KICKS,
	VDEV_WQES,		/* send WQEs executed to their end */
	VDEV_RECV_WQES,		/* receive WQEs consumed */
	VDEV_CQES,
	VDEV_EQES,
	VDEV_MSIX,		/* messages delivered */
	VDEV_MSIX_PENDED,	/* messages kept pending by a mask */
	VDEV_COMMANDS,
	VDEV_RNR_NAKS,
	VDEV_RETRIES,
	VDEV_OVERRUNS,
	VDEV_SIGNATURES,	/* WQEs whose signature was looked at */
	VDEV_CQE_PAYLOADS,	/* messages that a CQE took along */
	VDEV_BLUEFLAMES,	/* WQEs that a doorbell brought */
	VDEV_DROPPED,		/* messages of UC and UD that nobody took */
	VDEV_QKEY_VIOLATIONS,
	VDEV_COPIED,		/* bytes of messages that were moved */
	VDEV_STATS
};

struct vdev_stats {
	u64	count[VDEV_STATS];
};

struct vdev;
struct vdev_db;
struct vdev_qp;

/* msix.c */

/**
 * struct vdev_vector - one vector, as the virtual root complex sees it
 * @dev: its function.
 * @index: entry of the MSI-X table.
 * @irq: interrupt that the vector's message raises; NULL while none.
 * @cpu: where the message is delivered that may not be where it is sent; follows
 *	smp_affinity.
 * @last: where the last one was delivered.
 * @sent: messages delivered.
 * @pended: messages kept pending.
 * @queued: @work or @csd is on its way; a message sent meanwhile merges.
 * @running: deliveries that may use @irq.
 * @work: delivery on this CPU.
 * @csd: delivery on another CPU.
 */
struct vdev_vector {
	struct vdev		*dev;
	unsigned int		index;
	struct irq_data		*irq;
	unsigned int		cpu;
	unsigned int		last;
	atomic64_t		sent;
	atomic64_t		pended;
	atomic_t		queued;
	atomic_t		running;
	struct irq_work		work;
	call_single_data_t	csd;
};

/* Of the module: the interrupt domain of all functions' vectors. */
struct irq_domain *vdev_msix_domain_create(void);
void vdev_msix_domain_remove(struct irq_domain *domain);

void vdev_msix_init(struct vdev *dev);
void vdev_msix_exit(struct vdev *dev);

/** vdev_msix_reset() - mask every entry of the table, drop what is pending */
void vdev_msix_reset(struct vdev *dev);

/** vdev_msix_drop() - drop what is pending */
void vdev_msix_drop(struct vdev *dev);

bool vdev_msix_blocked(struct vdev *dev, unsigned int vector);
bool vdev_msix_pending(struct vdev *dev, unsigned int vector);

/** vdev_msix_on_its_way() - a message sent now would merge with one not delivered yet */
bool vdev_msix_on_its_way(struct vdev *dev, unsigned int vector);

/**
 * vdev_msix_send() - send a vector's message as its MSI-X table entry says
 * @dev: function.
 * @vector: entry of the table.
 *
 * A masked vector stays pending. Any context but NMI; the handler may run on
 * this CPU before the call returns.
 */
void vdev_msix_send(struct vdev *dev, unsigned int vector);

/** vdev_msix_unmasked() - send what is pending and no longer masked; any context */
void vdev_msix_unmasked(struct vdev *dev);

/* engine.c */

/**
 * struct vdev_user - who shares the engine with others, as ALLOC_UAR tells
 * @owner: the driver's number of him.
 * @uars: UARs that are his; under admin_lock.
 * @qps: his QPs that have work: left over by inline execution, timers, flushes.
 * @cqs: his CQs that are to be looked at: their moderation timer ran out.
 * @starved: his CQs whose EQE found the EQ full.
 * @turn: on vdev_engine.users while there are @qps or @cqs; under vdev_engine.lock, as
 *	all of these.
 */
struct vdev_user {
	u32			owner;
	unsigned int		uars;
	struct list_head	qps;
	struct list_head	cqs;
	struct list_head	starved;
	struct list_head	turn;
};

/**
 * struct vdev_engine - the function's kernel thread and its work
 * @task: the thread.
 * @wait: where it sleeps.
 * @lock: guards the lists; taken from softirq (timers).
 * @users: users for whom there is something to do, in the order of their turns.
 * @user: whom it works for; NULL: nobody. To compare, not to look at.
 * @crowd_end: until then kicks do not go to the thread.
 * @starving: somebody has starved CQs.
 * @hot: UAR pages that it watches or is to watch.
 */
struct vdev_engine {
	struct task_struct	*task;
	wait_queue_head_t	wait;
	spinlock_t		lock;		/* the lists, user */
	struct list_head	users;
	const struct vdev_user	*user;
	unsigned long		crowd_end;
	bool			starving;
	DECLARE_BITMAP(hot, VDEV_MAX_UAR);
};

/* uar.c */

/**
 * struct vdev_db - what is behind a doorbell slot; part of a QP or CQ
 * @ring: looks at the object. Caller is in a read section of vdev_srcu.
 * @uar: page that the slot is in.
 * @slot: line in the page.
 * @lock: @seen, against those who look at the same time.
 * @seen: the doorbell when it was looked at last.
 */
struct vdev_db {
	void			(*ring)(struct vdev_db *db);
	struct vdev_uar		*uar;
	u32			slot;
	spinlock_t		lock;		/* seen */
	__be64			seen;
};

/**
 * struct vdev_uar - a UAR page in use
 * @page: the page of BAR2. Users write all of it.
 * @db: objects by slot; written under admin_lock, read under vdev_srcu.
 * @bound: slots in use.
 * @user: whose it is.
 * @watched: kick_needed is zero; only the engine's thread knows.
 */
struct vdev_uar {
	void			*page;
	struct vdev_db __rcu	*db[VHCA_UAR_SLOTS];
	unsigned int		bound;
	struct vdev_user	*user;
	bool			watched;
};

/* dm.c */

/**
 * struct vdev_dm - device memory; under admin_lock
 * @used: its pages that belong to a piece.
 * @piece: by first page: how long the piece is that begins there, and how many MKeys
 *	are of it.
 */
struct vdev_dm {
	DECLARE_BITMAP(used, VDEV_DM_PAGES);
	struct vdev_dm_piece {
		u32		npages;
		u32		users;
	} piece[VDEV_DM_PAGES];
};

/**
 * struct vdev - one function
 * @index: of the function on the device; its LID is @index + 1.
 * @pdev: its pci_dev, the last one when it was removed; we hold a reference.
 * @config: configuration space; written under the PCI core's pci_lock.
 * @resetting: function level reset under way; configuration space is dead.
 * @window: the pages behind all BARs, as a window of the root bus.
 * @regs: BAR0, as the device sees it.
 * @uar_base: BAR2, as the device sees it.
 * @msix_base: BAR4, as the device sees it.
 * @reset_work: function level reset.
 * @enabled: objects may exist; under @admin_lock.
 * @users: as many as have UARs; and one who has QPs without a UAR.
 * @link_down: nothing that is sent to or from the port arrives.
 * @faults: what is planned to go wrong.
 */
struct vdev {
	unsigned int		index;
	struct pci_dev		*pdev;
	u32			config[PCI_CFG_SPACE_SIZE / 4];
	bool			resetting;
	struct resource		window;
	void			*regs;
	void			*uar_base;
	void			*msix_base;
	struct vdev_vector	vector[VHCA_MSIX_VECTORS];
	struct work_struct	reset_work;
	struct vhca_soft_ops	soft;

	struct mutex		admin_lock;	/* commands, resets; every table */
	bool			enabled;
	bool			link_down;
	u32			asq_ci;
	u32			acq_pi;
	u32			admin_shift;
	void			*asq;
	void			*acq;

	struct xarray		pds;
	struct xarray		xrcds;
	struct xarray		mkeys;
	struct xarray		cqs;
	struct xarray		srqs;
	struct xarray		qps;
	DECLARE_HASHTABLE(mcast, VDEV_MCAST_BITS);
	unsigned int		mcast_groups;
	struct vdev_dm		dm;
	struct vdev_eq __rcu	*eqs[VDEV_MAX_EQ];
	struct vdev_uar __rcu	*uars[VDEV_MAX_UAR];
	struct vdev_user	users[VDEV_MAX_UAR + 1];
	u32			next_mkey;
	u32			next_cqn;
	u32			next_srqn;
	u32			next_qpn;
	u64			qp_serial;
	u64			srq_serial;
	u8			mkey_variant;

	struct vdev_engine	engine;
	struct vdev_faults	faults;
	struct vdev_stats __percpu *stats;
	struct dentry		*debugfs;
};

extern struct srcu_struct vdev_srcu;

static inline void vdev_count(struct vdev *dev, enum vdev_stat stat)
{
	this_cpu_inc(dev->stats->count[stat]);
}

static inline void vdev_count_by(struct vdev *dev, enum vdev_stat stat, u32 n)
{
	this_cpu_add(dev->stats->count[stat], n);
}

/* function.c */

/* Functions, by LID; the first is 1. */
extern struct vdev __rcu *vdev_table[VDEV_MAX_FUNCTIONS];

/** vdev_by_lid() - function whose port has a LID; NULL when there is none */
static inline struct vdev *vdev_by_lid(u16 lid)
{
	if (!lid || lid > VDEV_MAX_FUNCTIONS)
		return NULL;
	return srcu_dereference(vdev_table[lid - 1], &vdev_srcu);
}

/* Advances whenever an object that a memo may lead to has left its table. */
extern atomic64_t vdev_epoch;

/**
 * struct vdev_memo - what was found in a table last, to find it again at once
 * @epoch: vdev_epoch before it was looked up; 0: nothing was found.
 * @table: where.
 * @index: what for.
 * @found: the object; good only as long as the epoch lasts.
 *
 * Whoever owns it holds a lock of its own.
 */
struct vdev_memo {
	u64			epoch;
	struct xarray		*table;
	unsigned long		index;
	void			*found;
};

/** vdev_recall() - xa_load() with a memory; the caller is in a read section of vdev_srcu */
static inline void *vdev_recall(struct vdev_memo *memo, struct xarray *table,
				unsigned long index)
{
	/* Epoch before the table; pairs with the full barrier in vdev_wait_unused(). */
	u64 epoch = atomic64_read_acquire(&vdev_epoch);

	if (memo->epoch != epoch || memo->index != index || memo->table != table) {
		memo->found = xa_load(table, index);
		memo->table = table;
		memo->index = index;
		memo->epoch = memo->found ? epoch : 0;
	}
	return memo->found;
}

/** vdev_wait_unused() - what has left its table is used no longer, nor found by a memo */
void vdev_wait_unused(void);

static inline bool vdev_lid_is_multicast(u16 lid)
{
	return lid >= 0xc000 && lid != 0xffff;	/* that one is the permissive LID */
}

static inline u16 vdev_lid(const struct vdev *dev)
{
	return dev->index + 1;
}

/** vdev_guid() - GUID of node and port: locally administered, from the index */
u64 vdev_guid(const struct vdev *dev);

/** vdev_of() - the function behind one of our pci_devs; NULL when it is another's */
static inline struct vdev *vdev_of(struct pci_dev *pdev)
{
	struct vhca_soft_ops *soft = dev_get_platdata(&pdev->dev);

	return soft ? container_of(soft, struct vdev, soft) : NULL;
}

/* port.c */

/** vdev_gid() - the GID of a function's port */
void vdev_gid(const struct vdev *dev, u8 *gid);

/** vdev_by_gid() - function whose port has a GID; NULL when there is none */
struct vdev *vdev_by_gid(const u8 *gid);

/* Capabilities in configuration space. */
#define VDEV_CAP_EXP		0x40
#define VDEV_CAP_MSIX		0x80

static inline u32 vdev_config(const struct vdev *dev, unsigned int where)
{
	return READ_ONCE(dev->config[where / 4]);
}

static inline __be32 *vdev_reg(struct vdev *dev, unsigned int offset)
{
	return dev->regs + offset;
}

static inline u32 vdev_reg_read(struct vdev *dev, unsigned int offset)
{
	return be32_to_cpu(READ_ONCE(*vdev_reg(dev, offset)));
}

static inline void vdev_reg_write(struct vdev *dev, unsigned int offset, u32 val)
{
	WRITE_ONCE(*vdev_reg(dev, offset), cpu_to_be32(val));
}

/* port.c */

/** vdev_link_set() - the cable is plugged or pulled */
void vdev_link_set(struct vdev *dev, bool up);

/* stats.c */
void vdev_stats_init(void);
void vdev_stats_exit(void);
void vdev_stats_add(struct vdev *dev);
void vdev_stats_remove(struct vdev *dev);
u64 vdev_stat_sum(struct vdev *dev, enum vdev_stat stat);

/* admin.c */

/** vdev_regs_init() - give BAR0 its values after reset: identity and limits */
void vdev_regs_init(struct vdev *dev);

/** vdev_registers() - look at BAR0: struct vhca_soft_ops.registers */
void vdev_registers(struct pci_dev *pdev);

/** vdev_break() - break down, as a card might: a test of those who use it */
void vdev_break(struct vdev *dev);

/** vdev_reset() - forget every object and give the registers their reset values */
void vdev_reset(struct vdev *dev);

/*
 * Admin commands, one file an object. Called under admin_lock, with a copy of
 * the command whose opcode and reserved head are checked; @done is zeroed. They
 * return enum vhca_cmd_status; unless it is VHCA_CMD_OK nothing has changed.
 * The *_forget() calls free all objects of a kind, in the order that vdev_reset()
 * gives: QPs, SRQs, CQs, MKeys, device memory, domains, UARs, EQs.
 */
typedef u8 (*vdev_cmd_fn)(struct vdev *dev, const struct vhca_cmd *cmd,
			  struct vhca_cmd_done *done);

u8 vdev_query_port(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_query_gid(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_query_pkey(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_create_eq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_destroy_eq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_alloc_uar(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_free_uar(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_alloc_pd(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_free_pd(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_alloc_xrcd(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_free_xrcd(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_create_mkey(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_destroy_mkey(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_alloc_dm(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_free_dm(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_create_cq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_destroy_cq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_create_srq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_modify_srq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_query_srq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_destroy_srq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_resize_cq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_modify_cq(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_create_qp(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_modify_qp(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_query_qp(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_destroy_qp(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_attach_mcast(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);
u8 vdev_detach_mcast(struct vdev *dev, const struct vhca_cmd *cmd, struct vhca_cmd_done *done);

void vdev_forget_qps(struct vdev *dev);
void vdev_forget_srqs(struct vdev *dev);
void vdev_forget_cqs(struct vdev *dev);
void vdev_forget_mkeys(struct vdev *dev);
void vdev_forget_dm(struct vdev *dev);
void vdev_forget_domains(struct vdev *dev);
void vdev_forget_uars(struct vdev *dev);
void vdev_forget_eqs(struct vdev *dev);

/* mem.c */

/* Of a size that a command names: the answer says that there is not as much. */
#define VDEV_GFP_SIZED	(GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/**
 * struct vdev_buf - a queue's pages in host memory, in one piece
 * @addr: where the device sees the first byte.
 * @npages: pages of VHCA_PAGE_SIZE.
 */
struct vdev_buf {
	void			*addr;
	unsigned int		npages;
};

/**
 * vdev_dma() - host memory at a DMA address
 * @addr: DMA address.
 * @len: bytes; must not cross a page.
 *
 * Returns where the device sees it, NULL when there is no memory there.
 */
void *vdev_dma(u64 addr, size_t len);

/**
 * vdev_read_pages() - read a page list
 * @list: DMA address of the first struct vhca_page_list.
 * @npages: addresses to read.
 * @pages: filled with where the pages are.
 *
 * Returns enum vhca_cmd_status.
 */
u8 vdev_read_pages(u64 list, unsigned int npages, unsigned long *pages);

/** vdev_buf_map() - see a queue of @size bytes; enum vhca_cmd_status */
u8 vdev_buf_map(struct vdev_buf *buf, u64 list, size_t size);
void vdev_buf_unmap(struct vdev_buf *buf);

/* domain.c */

/** vdev_pd_get() - one more object uses a PD; enum vhca_cmd_status; admin_lock held */
u8 vdev_pd_get(struct vdev *dev, u32 pd);
void vdev_pd_put(struct vdev *dev, u32 pd);
/** vdev_xrcd_get() - the same for an XRC domain */
u8 vdev_xrcd_get(struct vdev *dev, u32 xrcd);
void vdev_xrcd_put(struct vdev *dev, u32 xrcd);

/* dm.c */

/**
 * vdev_dm_get() - one more MKey is of a piece of device memory; admin_lock held
 * @dev: function.
 * @page: of BAR2, with which the piece begins.
 * @offset: of the MKey's first byte.
 * @length: bytes of the MKey.
 *
 * Returns enum vhca_cmd_status.
 */
u8 vdev_dm_get(struct vdev *dev, u64 page, u64 offset, u64 length);
void vdev_dm_put(struct vdev *dev, u32 page);

/** vdev_dm_at() - where a page of BAR2 is */
void *vdev_dm_at(struct vdev *dev, u32 page);

/* uar.c */

/** vdev_uar_bind() - give a slot to an object; enum vhca_cmd_status */
u8 vdev_uar_bind(struct vdev *dev, u32 uar, u32 slot, struct vdev_db *db);

/** vdev_uar_unbind() - the slot is free again; readers end with the next grace period */
void vdev_uar_unbind(struct vdev_db *db);

/** vdev_db_line() - a doorbell's line, of eight words, which its user writes */
const u64 *vdev_db_line(const struct vdev_db *db);

/** vdev_db_forget() - whatever the doorbell says now is old; its object starts anew */
void vdev_db_forget(struct vdev_db *db);

/** vdev_db_kick() - look at the object behind a slot, whatever its doorbell says */
void vdev_db_kick(struct vdev *dev, struct vdev_db *db);

/** vdev_uar_look() - look at every slot of a page; true when one had changed */
bool vdev_uar_look(struct vdev *dev, struct vdev_uar *uar);

static inline void vdev_uar_set_kick_needed(struct vdev_uar *uar, bool needed)
{
	struct vhca_uar_head *head = uar->page;

	WRITE_ONCE(head->kick_needed, cpu_to_be32(needed));
}

/* eq.c */

/**
 * struct vdev_eq - event queue
 * @pi: EQEs written.
 * @fired_ci: consumer index of the arm that sent the vector last.
 * @fired: @fired_ci is valid.
 * @gate: EQEs of completions that wait.
 * @msix: the message, when it waits.
 */
struct vdev_eq {
	struct vdev		*dev;
	spinlock_t		lock;		/* ring, pi, fired, gates */
	struct vdev_buf		buf;
	u32			eqn;
	u32			vector;
	u32			shift;
	u32			pi;
	u32			fired_ci;
	bool			fired;
	struct vdev_gate	gate;
	struct vdev_msix_gate	msix;
	unsigned int		users;	/* CQs; under admin_lock */
};

/**
 * vdev_eq_post() - write an EQE and send the vector when the EQ is armed
 *
 * Returns false when the EQ is full and nothing was written.
 */
bool vdev_eq_post(struct vdev_eq *eq, u8 type, u32 number);

/** vdev_eq_for_cq() - EQ that a CQ may use; NULL when there is none; admin_lock held */
struct vdev_eq *vdev_eq_for_cq(struct vdev *dev, u32 eqn);

/** vdev_async_event() - post to EQ 0, when there is one; a full EQ drops it, loudly */
void vdev_async_event(struct vdev *dev, u8 type, u32 number);

/* cq.c */

/**
 * struct vdev_cq_ring - where CQEs are written
 * @buf: the CQEs.
 * @shift: log2 of their number.
 * @solicited: a bit for each: a solicited arm waits for it.
 */
struct vdev_cq_ring {
	struct vdev_buf		buf;
	u32			shift;
	unsigned long		*solicited;
};

/**
 * struct vdev_cq - completion queue
 * @flags: VHCA_CQ_*.
 * @pi: CQEs written.
 * @solicited: of them those that a solicited arm waits for.
 * @error_pi: @pi behind the last in error.
 * @count: CQEs that an arm waits for; 0 and 1: one.
 * @period: microseconds that it waits for them at most; 0: for ever.
 * @fired_sn: sequence number of the arm that fired last.
 * @armed: @arm is an arm word that was seen and has not fired.
 * @arm_pi: @pi when none of the CQEs was there that @arm counts.
 * @arm_solicited: @solicited then.
 * @timing: @timer was started for @arm.
 * @error: overrun; nothing is written any more.
 * @starved: an EQE is to be written for which there was no room.
 * @dead: on its way out, never to be queued again; under vdev_engine.lock.
 * @gate: CQEs that wait to be written.
 * @hold_eqe: stepping: its EQEs wait, on the gate of the EQ.
 * @work: on vdev_user.cqs or vdev_user.starved, under vdev_engine.lock.
 * @users: queues that complete here; under admin_lock.
 */
struct vdev_cq {
	struct vdev		*dev;
	u32			cqn;
	u32			flags;
	spinlock_t		lock;		/* all to error, gate, hold_eqe */
	struct vdev_cq_ring	ring;
	u64			pi;
	u64			error_pi;
	u64			arm_pi;
	u32			solicited;
	u32			count;
	u32			period;
	u8			fired_sn;
	bool			armed;
	bool			timing;
	u32			arm;
	u32			arm_solicited;
	bool			error;
	bool			starved;
	bool			dead;
	bool			hold_eqe;
	struct vdev_gate	gate;
	struct hrtimer		timer;
	struct vhca_cq_dbr	*dbr;
	struct vdev_eq		*eq;
	struct list_head	work;
	struct vdev_db		db;
	unsigned int		users;
};

/* Did it overrun? NULL: there is none that could. */
static inline bool vdev_cq_failed(const struct vdev_cq *cq)
{
	return cq && READ_ONCE(cq->error);
}

/**
 * vdev_cq_post() - write a CQE and raise the event when the CQ is armed for it
 * @cq: where to.
 * @cqe: all but the owner bit and the timestamp.
 *
 * Returns false when the CQ is in error, now or before; the caller's QP must
 * then go to error.
 */
bool vdev_cq_post(struct vdev_cq *cq, struct vhca_cqe *cqe);

/** vdev_cq_pass() - write a CQE that waits, if it may pass or @step; false when none does */
bool vdev_cq_pass(struct vdev_cq *cq, bool step);

/**
 * vdev_cq_flush() - write what waits of a QP, or with @qpn 0 of an SRQ, out of turn
 *
 * It is about to be destroyed or reset: software then looks for all that is its own.
 */
void vdev_cq_flush(struct vdev_cq *cq, u32 qpn, u32 srqn);

/** vdev_cq_run() - write the EQE for which there was no room, or whose time has come */
void vdev_cq_run(struct vdev_cq *cq);

/* mkey.c */

/**
 * struct vdev_mkey - a memory region or window
 * @key: index << 8 | variant.
 * @kind: enum vhca_mkey_kind.
 * @pd: its PD.
 * @access: VHCA_MKEY_*.
 * @iova: address of the first byte.
 * @length: bytes.
 * @offset: of the first byte in the pages.
 * @page: what is behind it: where each page is, and in the bits that are zero in that,
 *	how many pages follow right behind it, as far as they can tell. A null MR has
 *	none. Those of a window are its MR's.
 * @dm: device memory: the piece that it is of.
 * @windows: region: windows that are bound to it; negative when it is on its way out.
 * @lock: window: key, access, iova, length, offset, page and all that follow, see mw.c.
 * @mr: window: what it is bound to, or NULL.
 * @owner: type 2: who has bound it.
 * @pages: room for the pages of a region.
 */
struct vdev_mkey {
	u32			key;
	u8			kind;
	u32			pd;
	u32			access;
	u64			iova;
	u64			length;
	u64			offset;
	const unsigned long	*page;
	u32			dm;
	atomic_t		windows;
	struct rw_semaphore	lock;
	struct vdev_mkey	*mr;
	u64			owner;
	unsigned long		pages[];
};

static inline bool vdev_mkey_is_window(const struct vdev_mkey *mkey)
{
	return mkey->kind == VHCA_MKEY_MW1 || mkey->kind == VHCA_MKEY_MW2;
}

/**
 * vdev_mkey_get() - find the region that a local key names, and check it
 * @dev: function.
 * @memo: of the MKeys that were used here before.
 * @key: lkey.
 * @pd: PD that it must be of.
 * @access: rights that it must give; 0 for local read.
 * @addr: first byte that is to be accessed.
 * @len: bytes; not zero.
 * @verr: why not, enum vhca_cqe_vendor_err.
 *
 * The region stays while the caller's read section of vdev_srcu lasts.
 */
struct vdev_mkey *vdev_mkey_get(struct vdev *dev, struct vdev_memo *memo, u32 key, u32 pd,
				u32 access, u64 addr, u64 len, u8 *verr);

/**
 * vdev_mkey_enter() - find the region or window that a remote key names, and check it
 * @qp: QP that the key came to; its recv.lock is held, recv.pd is what it must be of.
 * @rkey: the key.
 * @access: rights that it must give.
 * @addr: first byte that is to be accessed.
 * @len: bytes; not zero.
 *
 * Returns NULL when it gives no such access. Otherwise vdev_mkey_leave() is due in the
 * same read section of vdev_srcu; a bind waits for it.
 */
struct vdev_mkey *vdev_mkey_enter(struct vdev_qp *qp, u32 rkey, u32 access, u64 addr,
				  u64 len);
void vdev_mkey_leave(struct vdev_mkey *mkey);

/**
 * vdev_mkey_at() - memory at @addr of a checked region
 *
 * *@len is cut to what lies in one piece. NULL: nothing is behind it (null MR).
 */
static inline void *vdev_mkey_at(const struct vdev_mkey *mkey, u64 addr, u32 *len)
{
	u64 at = mkey->offset + (addr - mkey->iova);
	unsigned long page;

	if (mkey->kind == VHCA_MKEY_NULL)
		return NULL;
	page = mkey->page[at >> VHCA_PAGE_SHIFT];
	*len = min_t(u32, *len, ((page & ~PAGE_MASK) + 1) * VHCA_PAGE_SIZE - offset_in_page(at));
	return (void *)(page & PAGE_MASK) + offset_in_page(at);
}

/* mw.c */

/** struct vdev_bind - struct vhca_wqe_bind in the byte order of the host */
struct vdev_bind {
	u32			rkey;
	u32			new_rkey;
	u32			lkey;
	u32			access;
	u64			addr;
	u64			length;
};

/** vdev_mw_bind() - VHCA_OP_BIND_MW; enum vhca_cqe_vendor_err; send.lock held */
u8 vdev_mw_bind(struct vdev_qp *qp, const struct vdev_bind *bind);

/**
 * vdev_mw_invalidate() - the key of a window of type 2 is no longer valid
 * @qp: QP that asks for it, locally or on behalf of its peer; either of its locks is held.
 * @pd: PD that the window must be of.
 * @rkey: its key.
 *
 * Returns enum vhca_cqe_vendor_err.
 */
u8 vdev_mw_invalidate(struct vdev_qp *qp, u32 pd, u32 rkey);

/** vdev_mw_reachable() - is the window bound, and open to the peer of @qp? @mw->lock held */
bool vdev_mw_reachable(const struct vdev_mkey *mw, const struct vdev_qp *qp);

/** vdev_mr_kill() - no further window can be bound; false when one is */
bool vdev_mr_kill(struct vdev_mkey *mr);

/** vdev_mw_free() - the window is bound to nothing any more; it left the table */
void vdev_mw_free(struct vdev_mkey *mw);

/* sgl.c */

/**
 * struct vdev_sgl - a list of SGEs, or inline payload, and a position in it
 * @dev: function whose keys they are.
 * @memo: of their MKeys.
 * @pd: PD that they must be of.
 * @access: rights that they must give.
 * @seg: the copied segments.
 * @nsegs: how many.
 * @inl: inline payload instead of segments; NULL else.
 * @length: bytes in all.
 * @cur: segment that the position is in.
 * @off: bytes of it that are behind the position.
 * @mkey: its checked region, NULL when not looked up yet. Valid only while the
 *	read section of vdev_srcu lasts in which it was looked up: vdev_sgl_again() or
 *	vdev_sgl_seek() is due in another one. Without @seg and @inl: checked by the caller,
 *	as a whole, for one copy.
 * @raddr: address of the first byte in that @mkey.
 * @verr: why vdev_sgl_copy() failed, enum vhca_cqe_vendor_err.
 */
struct vdev_sgl {
	struct vdev		*dev;
	struct vdev_memo	*memo;
	u32			pd;
	u32			access;
	const struct vhca_wqe_data *seg;
	unsigned int		nsegs;
	const void		*inl;
	u64			length;
	unsigned int		cur;
	u32			off;
	struct vdev_mkey	*mkey;
	u64			raddr;
	u8			verr;
};

static inline u32 vdev_seg_len(const struct vhca_wqe_data *seg)
{
	return be32_to_cpu(seg->byte_count);
}

/**
 * vdev_sgl_measure() - find how long a list of copied segments is, up to a sentinel
 * @sgl: list, at its start, but for @nsegs and @length.
 * @nsegs: segments, at most.
 *
 * Returns false when a segment is malformed.
 */
static inline bool vdev_sgl_measure(struct vdev_sgl *sgl, unsigned int nsegs)
{
	const struct vhca_wqe_data *seg = sgl->seg;
	unsigned int i;

	for (i = 0; i < nsegs; i++, seg++) {
		u32 len = vdev_seg_len(seg);

		if (!len && seg->lkey == cpu_to_be32(VHCA_INVALID_LKEY))
			break;
		if (len & VHCA_WQE_INLINE)
			return false;
		sgl->length += len;
	}
	sgl->nsegs = i;
	return true;
}

/** vdev_sgl_again() - go on with a list in a read section that it was not begun in */
static inline void vdev_sgl_again(struct vdev_sgl *sgl)
{
	sgl->mkey = NULL;
}

/** vdev_sgl_seek() - move the position to behind @offset bytes, at most all of the list */
void vdev_sgl_seek(struct vdev_sgl *sgl, u64 offset);

/** vdev_sgl_check() - true when every segment's key is good; else @verr is set */
bool vdev_sgl_check(struct vdev_sgl *sgl);

/**
 * vdev_sgl_copy() - copy from one position to another and move both
 *
 * @dev counts it. Returns NULL, or the list at fault (its @verr says why).
 */
struct vdev_sgl *vdev_sgl_copy(struct vdev *dev, struct vdev_sgl *dst, struct vdev_sgl *src,
			       u32 len);

/* srq.c */

/**
 * struct vdev_srq - shared receive queue
 * @serial: no other SRQ of the function has or had it; not zero.
 * @pd: PD of its WQEs' keys; XRC: also of the remote keys that messages bring.
 * @xrcd: XRC domain; 0 when it is a basic one.
 * @cq: XRC: where its receives complete; else NULL.
 * @ci: WQEs taken.
 * @limit: raise the limit event, once, when fewer are left; 0: never.
 * @error: its producer index made no sense; it gives no WQE any more.
 * @users: QPs that take from it, XRC's not counted; under admin_lock.
 */
struct vdev_srq {
	struct vdev		*dev;
	u32			srqn;
	u64			serial;
	u32			pd;
	u32			xrcd;
	u8			shift;
	u8			sge_shift;
	struct vdev_cq		*cq;
	spinlock_t		lock;		/* ci, limit, error */
	struct vdev_buf		buf;
	struct vhca_srq_dbr	*dbr;
	u16			ci;
	u32			limit;
	bool			error;
	struct vdev_db		db;
	unsigned int		users;
};

/** vdev_srq_find() - SRQ by number; the caller is in a read section of vdev_srcu */
static inline struct vdev_srq *vdev_srq_find(struct vdev *dev, u32 srqn)
{
	return xa_load(&dev->srqs, srqn);
}

/**
 * vdev_srq_take() - copy the next WQE, whose slot is then free
 * @srq: SRQ.
 * @wqe: where to; has room for 1 << @srq->sge_shift segments.
 *
 * Returns 1, 0 when there is none, -1 when the SRQ is in error.
 */
int vdev_srq_take(struct vdev_srq *srq, struct vhca_wqe_data *wqe);

/* qp.c */

/**
 * struct vdev_send - requester's half of a QP; under @lock
 * @ci: basic block of the WQE that is executed next or now.
 * @psn: of its next packet.
 * @busy: @wqe holds a WQE in progress.
 * @rnr_tries: receiver-not-ready answers in a row.
 * @tries: unanswered requests in a row.
 * @step: stepping: one WQE may pass the gate.
 * @delay_rule: the rule by which the WQE in hand waits; 0: none.
 * @gated: when what waits at the gate came there, as others count; 0: nothing does.
 * @timer: runs while VDEV_QP_WAITING.
 * @offset: bytes of the message that were acknowledged.
 * @nbb: basic blocks of the WQE.
 * @form: what the WQE is made of, VDEV_FORM_*.
 * @imm: from the WQE, as are all that follow.
 * @bind: VHCA_OP_BIND_MW.
 * @dgram: in @wqe.
 */
struct vdev_send {
	struct mutex		lock;		/* all of it */
	struct vdev_memo	lkeys;
	struct vdev_memo	peer;
	u16			ci;
	u16			nbb;
	u32			psn;
	bool			busy;
	u8			rnr_tries;
	u8			tries;
	u8			flags;
	u8			opcode;
	u16			form;
	bool			step;
	u32			delay_rule;
	u64			gated;
	u64			offset;
	struct hrtimer		timer;
	__be32			imm;
	u32			srqn;
	u32			rkey;
	u64			raddr;
	u64			swap_add;
	u64			compare;
	struct vdev_bind	bind;
	const struct vhca_wqe_dgram *dgram;
	struct vdev_sgl		sgl;
	u8			wqe[VHCA_WQE_MAX_SEGS * VHCA_WQE_SEG_SIZE] __aligned(16);
};

/**
 * struct vdev_recv - responder's half of a QP; under @lock
 * @lkeys: MKeys of its receive WQEs.
 * @rkeys: MKeys that requests name.
 * @ci: RQ: WQEs taken.
 * @psn: expected next.
 * @busy: a message of several requests is under way.
 * @opcode: its opcode.
 * @srqn: XRC: SRQ that it names, and that a WQE in hand is from.
 * @srq_serial: XRC: of that SRQ.
 * @pd: PD that its remote key must be of.
 * @rkey: RDMA WRITE: where the next byte goes.
 * @raddr: and at which address.
 * @left: RDMA WRITE: bytes still to come.
 * @offset: bytes of the message that were received.
 * @held: @wqe is a receive WQE that was taken and is not completed yet.
 * @index: its wqe_index.
 * @in_cqe: its CQE takes @payload along, the whole message.
 * @atomic_psn: of the atomic that was executed last.
 * @atomic_old: what it answered, should it be asked again.
 * @atomic: there was one.
 * @sgl: SEND: its list.
 */
struct vdev_recv {
	struct mutex		lock;		/* all of it */
	struct vdev_memo	lkeys;
	struct vdev_memo	rkeys;
	u16			ci;
	u32			psn;
	bool			busy;
	bool			held;
	bool			in_cqe;
	u8			opcode;
	u16			index;
	u32			srqn;
	u64			srq_serial;
	u32			pd;
	u32			rkey;
	u64			raddr;
	u64			left;
	u64			offset;
	u32			atomic_psn;
	u64			atomic_old;
	bool			atomic;
	struct vdev_sgl		sgl;
	struct vhca_wqe_data	wqe[VDEV_MAX_SGE];
	u8			payload[VHCA_CQE_PAYLOAD];
};

enum vdev_qp_flag {
	VDEV_QP_WORK,		/* somebody wants vdev_qp_run() to look */
	VDEV_QP_WAITING,	/* the requester waits for its timer */
	VDEV_QP_DRAINING,	/* SQD, and SQ_DRAINED is still to come */
	VDEV_QP_ESTABLISHED,	/* COMM_EST was reported */
	VDEV_QP_LAST_WQE,	/* QP_LAST_WQE was reported */
};

/**
 * struct vdev_qp - queue pair
 * @serial: no other QP of the function has or had it; not zero.
 * @type: VHCA_PRM_QPT_*.
 * @create_flags: VHCA_QPF_*.
 * @pd: 0 in an XRC_RECV QP, which has @xrcd instead, and neither queues, CQs nor
 *	a record.
 * @state: enum vhca_prm_qp_state. Changed under both locks, except that either
 *	half may go to VHCA_QP_ERR, see vdev_qp_fail(), and the requester to
 *	VHCA_QP_SQE, see vdev_qp_fail_send().
 * @dead: on its way out, never to be queued again; under vdev_engine.lock.
 * @peer_lid: LID of the port that @attr leads to; 0 when it leads nowhere.
 * @user: whose it is.
 * @hold: stepping: no WQE is taken in hand; under send.lock.
 * @mcast: its memberships in multicast groups; under admin_lock.
 * @attr: what MODIFY_QP set; under both locks. Its psn fields are not current.
 */
struct vdev_qp {
	struct vdev		*dev;
	u32			qpn;
	u64			serial;
	u32			pd;
	u32			xrcd;
	u8			type;
	u8			create_flags;
	u8			state;
	u8			sq_shift;
	u8			rq_shift;
	u8			rq_sge_shift;
	bool			dead;
	bool			hold;
	u16			peer_lid;
	unsigned long		flags;
	struct vdev_buf		buf;
	struct vhca_qp_dbr	*dbr;
	struct vdev_cq		*send_cq;
	struct vdev_cq		*recv_cq;
	struct vdev_srq		*srq;
	struct vdev_db		db;
	struct vdev_db		bf_db;	/* with VHCA_QPF_BLUEFLAME */
	struct vdev_user	*user;
	struct list_head	work;	/* on vdev_user.qps, under vdev_engine.lock */
	struct list_head	mcast;
	struct vhca_prm_qp	attr;
	/* Each half is written by its own CPU, as a rule: by who posts, by who sends to it. */
	struct vdev_send	send ____cacheline_aligned_in_smp;
	struct vdev_recv	recv ____cacheline_aligned_in_smp;
};

/**
 * vdev_fetch() - copy what user space may write at any time
 *
 * The copy is what is looked at from here on: the compiler must not look again.
 */
static inline void vdev_fetch(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	barrier_data(to);
}

/** vdev_fetch_segs() - the same of @n segments of WQEs, where they are few as a rule */
static inline void vdev_fetch_segs(void *to, const void *from, unsigned int n)
{
	const u64 *src = from;
	u64 *dst = to;

	for (n *= VHCA_WQE_SEG_SIZE / sizeof(*dst); n; n--)
		*dst++ = READ_ONCE(*src++);
}

/** vdev_xor() - exclusive-or of the bytes of whole segments, as signatures have it */
static inline u8 vdev_xor(const void *segs, size_t size)
{
	const u64 *word = segs;
	u64 sum = 0;

	for (; size; size -= sizeof(*word))
		sum ^= *word++;
	sum ^= sum >> 32;
	sum ^= sum >> 16;
	return sum ^ sum >> 8;
}

#define VDEV_SIGNED	0xff	/* what vdev_xor() finds when a signature is right */

/** vdev_qp_find() - QP by number; the caller is in a read section of vdev_srcu */
static inline struct vdev_qp *vdev_qp_find(struct vdev *dev, u32 qpn)
{
	return xa_load(&dev->qps, qpn);
}

static inline bool vdev_qp_has_sq(const struct vdev_qp *qp)
{
	return qp->type != VHCA_PRM_QPT_XRC_RECV;
}

/* An RQ of its own. */
static inline bool vdev_qp_has_rq(const struct vdev_qp *qp)
{
	return qp->type < VHCA_PRM_QPT_XRC_SEND && !qp->srq;
}

/**
 * vdev_qp_fail() - QP goes to error
 * @qp: QP; the caller holds one of its locks.
 * @event: VHCA_EQE_QP_*: async event to raise, unless it is in error already.
 *
 * Asks the engine to flush both queues.
 */
void vdev_qp_fail(struct vdev_qp *qp, u8 event);

/**
 * vdev_qp_fail_send() - a send WQE failed: QP goes where its type says
 *
 * RC and XRC: to error. UC and UD: to the send queue error state, in which receives go
 * on. The caller holds send.lock.
 */
void vdev_qp_fail_send(struct vdev_qp *qp);

/** vdev_qp_fail_cq() - every QP that completes to an overrun CQ is to go to error */
void vdev_qp_fail_cq(struct vdev_cq *cq);

/* engine.c */
int vdev_engine_start(struct vdev *dev);
void vdev_engine_stop(struct vdev *dev);

/** vdev_kick() - struct vhca_soft_ops.kick */
void vdev_kick(const struct vhca_soft_ops *soft, u32 uar, u32 slot);

/**
 * vdev_qp_run() - execute the QP's work, here and now
 * @qp: QP; the caller is in a read section of vdev_srcu and holds no lock.
 *
 * When another holds the QP, that one does the work. What exceeds the budget
 * goes to the engine's thread.
 */
void vdev_qp_run(struct vdev_qp *qp);

static inline void vdev_qp_lock_send(struct vdev_qp *qp)
{
	mutex_lock(&qp->send.lock);
}

/** vdev_qp_unlock_send() - give up send.lock; whoever wanted it meanwhile is served */
void vdev_qp_unlock_send(struct vdev_qp *qp);

/** vdev_engine_queue_qp() - let the thread run the QP; process or softirq context */
void vdev_engine_queue_qp(struct vdev_qp *qp);
/** vdev_engine_drop_qp() - the QP goes away */
void vdev_engine_drop_qp(struct vdev_qp *qp);
/** vdev_engine_queue_cq() - let the thread look at the CQ; as the above */
void vdev_engine_queue_cq(struct vdev_cq *cq);
/** vdev_engine_starve_cq() - let it do so when a tick has passed */
void vdev_engine_starve_cq(struct vdev_cq *cq);
void vdev_engine_drop_cq(struct vdev_cq *cq);

/* send_wqe.c */

/*
 * What a send WQE is made of, segments in this order; which way its data goes. It
 * follows from the opcode and the type of the QP.
 */
#define VDEV_FORM_XRC		BIT(0)	/* an XRC segment */
#define VDEV_FORM_DGRAM		BIT(1)	/* a datagram segment */
#define VDEV_FORM_RADDR		BIT(2)	/* a remote address segment */
#define VDEV_FORM_ATOMIC	BIT(3)	/* an atomic segment */
#define VDEV_FORM_OUT		BIT(4)	/* SGEs or inline payload: data goes out */
#define VDEV_FORM_IN		BIT(5)	/* SGEs that may be written: data comes in */
#define VDEV_FORM_IMM		BIT(6)	/* immediate data in the control segment */
#define VDEV_FORM_INV		BIT(7)	/* an rkey there */
#define VDEV_FORM_BIND		BIT(8)	/* a bind segment */
#define VDEV_FORM_LOCAL		BIT(9)	/* no payload, and not for the peer */

/** vdev_send_posted() - basic blocks posted and not completed; -1: more than the ring has */
static inline int vdev_send_posted(const struct vdev_qp *qp)
{
	u16 pi, n;

	if (!vdev_qp_has_sq(qp))
		return 0;
	/* Index before WQE; pairs with the library's barrier between the two. */
	pi = be32_to_cpu(smp_load_acquire(&qp->dbr->sq_pi));
	n = pi - qp->send.ci;
	return n <= 1 << qp->sq_shift ? n : -1;
}

/**
 * vdev_send_fetch() - copy the next WQE, parse and check the copy
 * @qp: QP; its send.lock is held.
 * @posted: basic blocks that are posted.
 * @verr: why not, enum vhca_cqe_vendor_err.
 *
 * Returns the status that the WQE is to complete with, VHCA_CQE_SUCCESS when it may be
 * executed. In any case send.nbb says how long it is.
 */
u8 vdev_send_fetch(struct vdev_qp *qp, int posted, u8 *verr);

/** vdev_send_measure() - set send.nbb of the next WQE, and no more */
void vdev_send_measure(struct vdev_qp *qp, int posted);

/** vdev_send_form() - the form of an opcode in such a QP, 0 when it has no such opcode */
u16 vdev_send_form(const struct vdev_qp *qp, u8 opcode);

/** vdev_send_count() - WQEs that are posted and not taken in hand, as far as they make sense */
unsigned int vdev_send_count(struct vdev_qp *qp);

/** vdev_send_tell() - which is the next, for reading */
void vdev_send_tell(struct seq_file *s, struct vdev_qp *qp);

/* requester.c */

/**
 * struct vdev_budget - what may be done in one go
 * @wqes: WQEs left.
 * @bytes: payload left; may be overdrawn by one slice.
 */
struct vdev_budget {
	int			wqes;
	int			bytes;
};

/**
 * vdev_requester_run() - execute send WQEs; in error, flush both queues
 *
 * The caller holds send.lock. Returns true when the budget ended it.
 */
bool vdev_requester_run(struct vdev_qp *qp, struct vdev_budget *budget);

/**
 * vdev_requester_flush() - complete the send WQEs of a QP in error
 *
 * The caller holds send.lock. Returns true when the budget ended it.
 */
bool vdev_requester_flush(struct vdev_qp *qp, struct vdev_budget *budget);

/* responder.c */

enum vdev_answer {
	VDEV_ACK,
	VDEV_RNR,		/* rnr_timer says how long to wait */
	VDEV_NAK_INVALID,	/* invalid request */
	VDEV_NAK_ACCESS,	/* remote access error */
	VDEV_NAK_OP,		/* remote operational error */
	VDEV_SILENCE,		/* dropped: no such QP, wrong state, not connected, PSN */
	VDEV_LOCAL,		/* the requester's own memory is at fault */
};

/** struct vdev_grh - global routing header, which comes in front of a datagram's payload */
struct vdev_grh {
	__be32			version_class_flow;
	__be16			paylen;
	u8			next_header;
	u8			hop_limit;
	u8			sgid[16];
	u8			dgid[16];
};

static_assert(sizeof(struct vdev_grh) == VHCA_GRH_SIZE);

/**
 * struct vdev_request - a run of packets of one message, as a requester sends it
 * @service: VHCA_PRM_QPT_* of the requester's QP.
 * @opcode: enum vhca_wqe_opcode.
 * @first: it starts the message. A long RDMA READ is several messages.
 * @last: it ends the message.
 * @solicited: of the message.
 * @sl: service level.
 * @slid: requester's LID.
 * @src_qpn: requester's QPN.
 * @dest_qpn: responder's QPN.
 * @srqn: XRC: SRQ that a receive WQE is to come from.
 * @qkey: of a datagram.
 * @grh: of a datagram; NULL when it has none.
 * @psn: of the first packet; of an RDMA READ, of the first response.
 * @packets: how many.
 * @length: bytes of payload, or wanted.
 * @total: RDMA: bytes that are to be accessed from @raddr on, @length and what
 *	further requests will bring or ask for.
 * @payload: where they come from or go to, positioned at the first.
 * @imm: immediate data, or the rkey to invalidate.
 * @rkey: RDMA and atomics: the responder's memory. RDMA WRITE: this, @raddr and
 *	@total count in the first request.
 * @raddr: address in it.
 * @swap_add: operand of an atomic.
 * @compare: operand of compare and swap.
 */
struct vdev_request {
	u8			service;
	u8			opcode;
	bool			first;
	bool			last;
	bool			solicited;
	u8			sl;
	u16			slid;
	u32			src_qpn;
	u32			dest_qpn;
	u32			srqn;
	u32			qkey;
	const struct vdev_grh	*grh;
	u32			psn;
	u32			packets;
	u32			length;
	u64			total;
	struct vdev_sgl		*payload;
	__be32			imm;
	u32			rkey;
	u64			raddr;
	u64			swap_add;
	u64			compare;
};

/**
 * struct vdev_response - what comes back
 * @answer: enum vdev_answer.
 * @rnr_timer: with VDEV_RNR the responder's timer, 0 to 31.
 * @heard: multicast: QPs that it was offered to.
 */
struct vdev_response {
	u8			answer;
	u8			rnr_timer;
	u32			heard;
};

/**
 * vdev_respond() - let a function's responder execute a request
 * @dev: function.
 * @memo: of the QPs that the requester spoke to before.
 * @req: request.
 * @resp: what comes back.
 */
void vdev_respond(struct vdev *dev, struct vdev_memo *memo, const struct vdev_request *req,
		  struct vdev_response *resp);

/** vdev_respond_qp() - the same, when the QP is known; the caller is in a read section */
void vdev_respond_qp(struct vdev_qp *qp, const struct vdev_request *req,
		     struct vdev_response *resp);

/* send_dgram.c */

/**
 * vdev_send_datagram() - send the message in hand of a UD QP
 * @qp: QP; its send.lock is held.
 * @req: the datagram, but for its addresses.
 * @resp: what comes back; not touched when nobody was there.
 */
void vdev_send_datagram(struct vdev_qp *qp, struct vdev_request *req,
			struct vdev_response *resp);

/* recv_dgram.c */

/** vdev_recv_datagram() - a UD QP takes a datagram; recv.lock is held; enum vdev_answer */
u8 vdev_recv_datagram(struct vdev_qp *qp, const struct vdev_request *req);

/* mcast.c */

/** vdev_mcast_respond() - let every QP of a group take a datagram; its GRH says which */
void vdev_mcast_respond(u16 dlid, const struct vdev_request *req, struct vdev_response *resp);

/**
 * vdev_mcast_unlink_qp() - no further datagram finds the QP in a group
 *
 * Under admin_lock. Behind the grace period: vdev_mcast_free_qp().
 */
void vdev_mcast_unlink_qp(struct vdev_qp *qp);
void vdev_mcast_free_qp(struct vdev_qp *qp);

/* recv_wqe.c */

/**
 * vdev_recv_take() - take a receive WQE in hand, unless one is there already
 * @qp: QP.
 * @req: the message that it is for.
 *
 * The caller holds recv.lock, as for all of recv_wqe.c. Returns VDEV_ACK; VDEV_RNR
 * when none is posted; VDEV_NAK_OP when the queue makes no sense, and the QP has failed.
 */
u8 vdev_recv_take(struct vdev_qp *qp, const struct vdev_request *req);

/**
 * vdev_recv_list() - list of the WQE in hand, from its start
 *
 * Returns enum vhca_cqe_vendor_err: what is wrong with the WQE.
 */
u8 vdev_recv_list(struct vdev_qp *qp);

/**
 * vdev_recv_complete() - complete the WQE in hand
 * @qp: QP.
 * @req: request that ends the message; NULL for a flush.
 * @status: enum vhca_cqe_status.
 * @verr: enum vhca_cqe_vendor_err.
 */
void vdev_recv_complete(struct vdev_qp *qp, const struct vdev_request *req,
			u8 status, u8 verr);

/** vdev_recv_done() - the message of the WQE in hand is all there; returns enum vdev_answer */
u8 vdev_recv_done(struct vdev_qp *qp, const struct vdev_request *req);

/** vdev_recv_fail() - complete it with an error and fail the QP; returns @answer */
u8 vdev_recv_fail(struct vdev_qp *qp, const struct vdev_request *req,
		  u8 status, u8 verr, u8 answer);

/**
 * vdev_recv_return() - flush the WQE that a QP has from an SRQ, if it has one, before
 *	it forgets it or goes to another
 *
 * Who posted it would not get it back otherwise. The caller holds recv.lock.
 */
void vdev_recv_return(struct vdev_qp *qp);

/**
 * vdev_recv_flush() - complete the receive WQEs of a QP in error
 *
 * Returns true when the budget ended it.
 */
bool vdev_recv_flush(struct vdev_qp *qp, struct vdev_budget *budget);

#endif
