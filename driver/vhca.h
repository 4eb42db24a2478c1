/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the driver share.
 *
 * Locks, outermost first:
 *   vhca_clients_lock	calls of other modules that hear of functions
 *   vhca_dev.ctx_lock	opening, last close and disassociation
 *   vhca_dev.srcu	read side: an ioctl that may use the device; never held
 *			while user memory is touched
 *   vhca_ctx.lock	the objects of a context, their users and slots
 *   vhca_dev.xrc_lock	what contexts share: XRC domains, and who has which QP
 *   vhca_admin.caller	who has the device execute a command, if that is software
 *   vhca_ctx.bar_lock	a fault on a page of the BAR against its disappearance
 *   vhca_dev.list_lock	the list of contexts and their async event queues, for those
 *			who broadcast
 *   vhca_event_queue.wait.lock
 * The raw locks of the admin queue and of the EQs are innermost; they are taken
 * in hard interrupt context.
 */
#ifndef VHCA_DRIVER_H
#define VHCA_DRIVER_H

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/path.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/semaphore.h>
#include <linux/seq_file.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../include/compat.h"
#include "../include/vhca_prm.h"
#include "../include/vhca_soft.h"
#include "../uapi/vhca_abi.h"

/* The page of the programming model is the page that is mapped and pinned. */
static_assert(PAGE_SIZE == VHCA_PAGE_SIZE);

#define VHCA_PORT_EVENTS	3		/* of a port: down, up, all else */
#define VHCA_ADMIN_SHIFT	6
#define VHCA_ADMIN_ENTRIES	BIT(VHCA_ADMIN_SHIFT)
#define VHCA_EQ_SHIFT		12
#define VHCA_EQ_BATCH		64
#define VHCA_MAX_COMP_EQS	32
#define VHCA_MAX_DEVICES	64
#define VHCA_TIMEOUT		(60 * HZ)	/* for the device to answer */
#define VHCA_RESET_TIMEOUT	(5 * HZ)

/* Of a size that user space chose: that there is not as much is for its ears alone. */
#define VHCA_GFP_SIZED		(GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* mmap offsets, in pages: buffers by their number, then UAR pages, device memory. */
#define VHCA_PGOFF_BUF_MAX	0x00ffffff
#define VHCA_PGOFF_UAR		0x40000000
#define VHCA_PGOFF_NONE		0xffffffff	/* no such offset */
#define VHCA_PGOFF_DM		0x80000000
#define VHCA_PGOFF_DM_SIZE	0x40000000

struct vhca_caps {
	u64 fw_ver;
	u64 node_guid;
	u64 max_mr_size;
	u32 function;
	u32 max_qp;
	u32 max_cq;
	u32 max_eq;
	u32 max_mkey;
	u32 max_pd;
	u32 max_uar;
	u32 max_sq_shift;
	u32 max_rq_shift;
	u32 max_cq_shift;
	u32 max_eq_shift;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline;
	u32 max_rd_atom;
	u32 ack_delay;
	u32 num_ports;
	u32 max_pkeys;
	u32 max_srq;
	u32 max_srq_shift;
	u32 max_srq_sge;
	u32 max_xrcd;
	u32 max_mcast_grp;
	u32 max_mcast_qp;
	u32 max_cq_count;
	u32 max_cq_period;
	u32 dm_page;
	u32 dm_pages;
};

struct vhca_stats {
	u64 kicks;
	u64 tasklets;
	u64 events;
	u64 merged;
};

struct vhca_cmd_wait {
	struct completion completion;
	struct vhca_cmd_done done;
	u32 tag;
};

struct vhca_admin {
	raw_spinlock_t lock;		/* both rings and @wait */
	struct mutex caller;		/* from posting to the device's look */
	struct semaphore slots;		/* free entries */
	struct vhca_cmd *sq;
	struct vhca_cmd_done *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	u32 pi;
	u32 ci;
	bool events;			/* answers raise an interrupt */
	struct vhca_cmd_wait *wait[VHCA_ADMIN_ENTRIES];
};

struct vhca_vector {
	struct vhca_dev *vdev;
	unsigned int index;
	unsigned int irq;
	u64 interrupts;			/* written by the handler alone */
	struct atomic_notifier_head eqs;
	char name[32];
};

struct vhca_eq {
	struct notifier_block nb;	/* on the chain of @vector */
	struct vhca_dev *vdev;
	struct vhca_vector *vector;
	struct vhca_buf *buf;
	raw_spinlock_t lock;		/* all below */
	u32 eqn;
	u32 shift;
	u32 ci;
	u64 eqes;
	u64 comp_eqes;
	u64 async_eqes;
};

/* What is limited, see limit.c. */
enum vhca_kind {
	VHCA_KIND_NONE,
	VHCA_KIND_CONTEXT,
	VHCA_KIND_UAR,
	VHCA_KIND_PD,
	VHCA_KIND_MR,
	VHCA_KIND_MW,
	VHCA_KIND_DM,			/* pages */
	VHCA_KIND_CQ,
	VHCA_KIND_SRQ,
	VHCA_KIND_QP,
	VHCA_KIND_XRCD,
	VHCA_KIND_MCAST,		/* QPs in groups */
	VHCA_KIND_EVENT_FILE,
	VHCA_KINDS
};

struct vhca_dev {
	struct pci_dev *pdev;
	struct device dev;
	struct cdev cdev;
	const struct vhca_soft_ops *soft;
	u8 __iomem *regs;
	struct vhca_caps caps;
	struct vhca_admin admin;

	struct vhca_vector *vectors;
	struct vhca_eq *eqs;		/* EQ 0, then completion EQs */
	unsigned int num_vectors;
	unsigned int num_eqs;
	unsigned int num_comp;

	struct xarray cqs;		/* by number; read in interrupt context */
	struct xarray qps;		/* struct vhca_hw_qp; writers: @xrc_lock */
	struct xarray srqs;
	struct mutex xrc_lock;		/* @qps, @domains and what is in them */
	struct list_head domains;

	/* Who may kick which; written by who allocates and frees, compared by kicks. */
	struct vhca_ctx **uar_owner;
	u32 num_uars;

	struct srcu_struct srcu;
	bool dead;			/* set once; see vhca_dead() */
	bool disassociated;		/* under @ctx_lock */
	struct mutex ctx_lock;		/* open, last close, disassociation */
	u32 last_ctx;			/* under @ctx_lock */
	atomic_t last_channel;
	spinlock_t list_lock;		/* @ctxs and their asyncs, for broadcasts */
	struct list_head ctxs;		/* writers hold both locks */

	struct llist_head raised;	/* struct vhca_async with news */
	struct vhca_port_news *port_news;
	struct work_struct async_work;
	struct work_struct fatal_work;

	struct list_head client_node;	/* while clients know of it */
	u32 index;			/* N of vhcaN */

	atomic_t used[VHCA_KINDS];
	struct vhca_stats __percpu *stats;
	struct dentry *debugfs;
};

/* Pages counted against RLIMIT_MEMLOCK, and in whom. */
struct vhca_charge {
	struct mm_struct *mm;		/* NULL: nothing is charged */
	unsigned long npages;
};

/*
 * Pages of a queue, shared by user space and the device (DMA): the kernel's, which
 * user space maps, or the user's own, which are charged and pinned.
 */
struct vhca_buf {
	struct kref ref;
	struct vhca_charge charge;	/* of the user's */
	bool mapped;			/* for DMA */
	u32 offset;			/* for mmap, or VHCA_PGOFF_NONE */
	unsigned long npages;
	struct page **pages;
	dma_addr_t *dma;
};

/* A chained list of pages, as a command describes memory. */
struct vhca_plist {
	unsigned long chunks;
	struct vhca_plist_chunk {
		struct vhca_page_list *list;
		dma_addr_t dma;
	} *chunk;
};

/*
 * What an object may have to say, embedded in the object, so that nothing is
 * allocated when there is an event and what is unread is bounded.
 */
struct vhca_event {
	struct list_head node;
	u64 cookie;
	u32 number;
	u32 reads;			/* records that were read */
	unsigned long types;		/* bits by enum vhca_async_event_type */
};

/* What the interrupt handler heard of a port and the work item has not passed on. */
struct vhca_port_news {
	unsigned long raised;		/* bits by enum vhca_async_event_type */
	unsigned int last;		/* which of them came last */
};

/*
 * Records of an event file: read by whoever has the file. Async events have one for
 * each process that shares the context.
 */
struct vhca_event_queue {
	struct kref ref;
	wait_queue_head_t wait;		/* its lock: @pending, @closed, and the events' */
	struct list_head pending;
	bool closed;			/* nothing more is coming */
	bool comp;			/* completion channel, else async */
	struct fasync_struct *fasync;
	struct vhca_ctx *ctx;		/* valid while the file is open */
	struct list_head node;		/* in the context: under its lock */
	unsigned int users;		/* CQs; async: all objects, the file; likewise */
	u32 number;			/* async: in the file; channel: on the device */
	struct vhca_event device[];	/* async: that it is gone, then those of each port */
};

/* Async events of an object on their way from interrupt to process context. */
struct vhca_async {
	struct llist_node node;
	unsigned long raised;
	struct vhca_event_queue *queue;
	struct vhca_event event;
};

struct vhca_ctx {
	struct kref ref;		/* device file and event files */
	struct vhca_dev *vdev;
	struct address_space *mapping;
	u32 number;			/* as are those that follow: whose it is, for reading */
	kuid_t uid;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	struct page *dummy;		/* stands in for pages of BAR2 that are gone */
	struct list_head node;
	struct mutex lock;		/* objects, their users and slots */
	struct mutex bar_lock;		/* what is gone from BAR2 against faults */
	atomic_t used[VHCA_KINDS];
	struct list_head channels;
	struct list_head asyncs;	/* writers: vhca_dev.list_lock, too */
	bool async_opened;
	u32 last_async;
	struct xarray uars;
	struct xarray pds;
	struct xarray mrs;
	struct xarray mws;		/* by index of the rkey */
	struct xarray dms;
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct xarray xrcds;
	struct xarray bufs;		/* by mmap offset; xa_lock guards the refs */
};

struct vhca_uar {
	u32 hw;				/* its number; no two files share one */
	struct vhca_buf *dbr;
	bool gone;			/* under bar_lock: maps to the dummy */
	DECLARE_BITMAP(slots, VHCA_UAR_SLOTS);
	struct rcu_head rcu;
};

struct vhca_pd {
	u32 number;
	unsigned int users;
};

/* A piece of device memory. */
struct vhca_dm {
	u32 number;			/* in the file */
	u32 hw;				/* first page, in BAR2 */
	u32 npages;
	unsigned int users;		/* regions */
	u64 length;
	bool gone;			/* under bar_lock: maps to the dummy */
	struct rcu_head rcu;
};

/* What is behind a region: pinned memory, a dma-buf, or device memory. */
struct vhca_mem {
	bool writable;			/* by the device */
	unsigned long npages;

	struct vhca_charge charge;
	struct sg_append_table sgt;
	bool mapped;			/* for DMA */

	struct dma_buf_attachment *attach;
	struct sg_table *attach_sgt;
	unsigned long first;		/* page of the dma-buf */

	struct vhca_dm *dm;
};

/* A memory window; the device alone knows what it is bound to. */
struct vhca_mw {
	u32 rkey;			/* when it was made */
	struct vhca_pd *pd;
};

struct vhca_mr {
	u32 key;
	u8 kind;			/* enum vhca_mkey_kind */
	bool busy;			/* being registered anew; others keep off */
	u32 access;
	u64 addr;
	u64 length;
	u64 iova;
	struct vhca_pd *pd;
	struct vhca_mem *mem;		/* NULL: a null MR, or detached */
};

struct vhca_cq {
	u32 number;
	u32 slot;
	unsigned int users;		/* SRQs, and QPs for each side */
	struct vhca_dev *vdev;
	struct vhca_eq *eq;
	struct vhca_uar *uar;
	struct vhca_buf *buf;
	struct tasklet_struct tasklet;
	struct vhca_event_queue *channel;	/* or NULL */
	struct vhca_event event;
	struct vhca_async async;
};

/* An XRC domain on the device; see xrcd.c. */
struct vhca_domain {
	struct list_head node;
	u32 number;
	unsigned int opens;		/* struct vhca_xrcd */
	struct inode *inode;		/* NULL: nobody else can open it */
	struct path path;		/* keeps @inode */
};

/* An XRC domain in a file. */
struct vhca_xrcd {
	u32 number;
	unsigned int users;		/* QPs and SRQs */
	struct vhca_domain *domain;
};

struct vhca_srq {
	u32 number;
	u32 slot;
	u32 shift;
	unsigned int users;		/* QPs */
	struct vhca_pd *pd;
	struct vhca_xrcd *xrcd;		/* XRC, else NULL */
	struct vhca_cq *cq;		/* likewise */
	struct vhca_uar *uar;
	struct vhca_buf *buf;
	struct vhca_async async;
};

/* A QP on the device, and the files that have it; only XRC_RECV: more than one. */
struct vhca_hw_qp {
	struct kref ref;		/* those files, until they forget it */
	u32 number;
	u8 type;
	struct vhca_domain *domain;	/* of XRC_RECV, else NULL */
	struct hlist_head files;	/* struct vhca_qp; writers: xrc_lock */
};

/* A QP in a file. What it does not have is NULL. */
struct vhca_qp {
	struct hlist_node node;
	struct vhca_hw_qp *hw;
	u32 slot;
	u32 bf_slot;			/* or zero */
	unsigned int mcast;		/* groups that it is attached to */
	struct vhca_pd *pd;
	struct vhca_cq *send_cq;
	struct vhca_cq *recv_cq;
	struct vhca_srq *srq;
	struct vhca_xrcd *xrcd;
	struct vhca_uar *uar;
	struct vhca_buf *buf;
	struct vhca_async async;
};

/*
 * One ioctl: its argument, the file that it opens if it does, the memory of the user
 * that was pinned for it, and a domain to be freed when nothing is held any more.
 */
struct vhca_call {
	union {
		struct vhca_query_device	query_device;
		struct vhca_query_port		query_port;
		struct vhca_query_gid		query_gid;
		struct vhca_query_pkey		query_pkey;
		struct vhca_create_event_file	event_file;
		struct vhca_alloc_uar		alloc_uar;
		struct vhca_object		object;
		struct vhca_reg_mr		reg_mr;
		struct vhca_rereg_mr		rereg_mr;
		struct vhca_reg_special_mr	reg_special_mr;
		struct vhca_query_mr		query_mr;
		struct vhca_alloc_mw		alloc_mw;
		struct vhca_alloc_dm		alloc_dm;
		struct vhca_destroy_channel	destroy_channel;
		struct vhca_create_cq		create_cq;
		struct vhca_resize_cq		resize_cq;
		struct vhca_modify_cq		modify_cq;
		struct vhca_destroy_cq		destroy_cq;
		struct vhca_create_qp		create_qp;
		struct vhca_modify_qp		modify_qp;
		struct vhca_destroy_qp		destroy_qp;
		struct vhca_open_qp		open_qp;
		struct vhca_open_xrcd		open_xrcd;
		struct vhca_create_srq		create_srq;
		struct vhca_modify_srq		modify_srq;
		struct vhca_destroy_srq		destroy_srq;
		struct vhca_mcast		mcast;
	};
	struct file *file;
	struct vhca_buf *buf;
	struct vhca_domain *domain;
};

/* Why a call was refused. */
#define vhca_dbg(ctx, fmt, ...) \
	dev_dbg_ratelimited(&(ctx)->vdev->dev, fmt, ##__VA_ARGS__)

/* main.c */
extern const struct file_operations vhca_fops;
struct vhca_dev *vhca_dev_alloc(struct pci_dev *pdev);
int vhca_dev_register(struct vhca_dev *vdev);
void vhca_dev_unregister(struct vhca_dev *vdev);

/* pci.c */
extern struct pci_driver vhca_pci_driver;
void vhca_pci_set_ids(u16 vendor, u16 device);
u32 vhca_read(struct vhca_dev *vdev, u32 reg);
void vhca_write(struct vhca_dev *vdev, u32 reg, u32 value);
void vhca_soft_registers(struct vhca_dev *vdev);
void vhca_hw_reset(struct vhca_dev *vdev);

/* admin.c */
int vhca_admin_init(struct vhca_dev *vdev);
void vhca_admin_free(struct vhca_dev *vdev);
void vhca_admin_poll(struct vhca_dev *vdev);
int vhca_cmd(struct vhca_dev *vdev, u16 opcode, struct vhca_cmd *cmd,
	     struct vhca_cmd_done *done);
int vhca_cmd_number(struct vhca_dev *vdev, u16 opcode, u32 number);
void vhca_cmd_undo(struct vhca_dev *vdev, u16 opcode, u32 number);

/* eq.c */
int vhca_eqs_create(struct vhca_dev *vdev);
void vhca_eqs_free(struct vhca_dev *vdev);
void vhca_eq_poll(struct vhca_eq *eq);

/* async.c */
struct vhca_event_queue *vhca_async_add(struct vhca_ctx *ctx);
void vhca_async_unuse(struct vhca_ctx *ctx, struct vhca_event_queue *q);
int vhca_async_join(struct vhca_ctx *ctx, struct vhca_async *async, u32 file,
		    u64 cookie, u32 number);
u32 vhca_async_leave(struct vhca_ctx *ctx, struct vhca_async *async);
void vhca_async_eqe(struct vhca_dev *vdev, u8 type, u32 number);
void vhca_async_work(struct work_struct *work);

/* buf.c */
struct vhca_buf *vhca_buf_alloc(struct vhca_dev *vdev, size_t size);
int vhca_buf_pin(struct vhca_call *call, u64 addr, size_t size);
int vhca_buf_get(struct vhca_dev *vdev, struct vhca_call *call, size_t size,
		 struct vhca_buf **buf);
void vhca_buf_tell(const struct vhca_buf *buf, u64 *offset, u64 *size);
void vhca_buf_unmap(struct vhca_dev *vdev, struct vhca_buf *buf);
void vhca_buf_put(struct vhca_buf *buf);
int vhca_plist_alloc(struct vhca_dev *vdev, struct vhca_plist *pl,
		     unsigned long npages);
int vhca_plist_buf(struct vhca_dev *vdev, struct vhca_plist *pl,
		   struct vhca_buf *buf);
void vhca_plist_set(struct vhca_plist *pl, unsigned long i, dma_addr_t dma);
__be64 vhca_plist_addr(struct vhca_plist *pl);
void vhca_plist_free(struct vhca_dev *vdev, struct vhca_plist *pl);

/* ctx.c */
bool vhca_dead(struct vhca_dev *vdev);
void vhca_set_dead(struct vhca_dev *vdev);
void vhca_disassociate(struct vhca_dev *vdev);
void vhca_fatal_work(struct work_struct *work);
int vhca_open(struct inode *inode, struct file *file);
int vhca_release(struct inode *inode, struct file *file);
void vhca_ctx_get(struct vhca_ctx *ctx);
void vhca_ctx_put(struct vhca_ctx *ctx);

/* limit.c */
int vhca_charge(struct vhca_ctx *ctx, enum vhca_kind kind, unsigned int n);
void vhca_uncharge(struct vhca_ctx *ctx, enum vhca_kind kind, unsigned int n);
void vhca_uncharge_all(struct vhca_ctx *ctx);
u32 vhca_limit(enum vhca_kind kind, u32 device_max);
void vhca_limits_show(struct seq_file *m, struct vhca_dev *vdev);

/* mmap.c */
int vhca_mmap(struct file *file, struct vm_area_struct *vma);
int vhca_offset_add(struct vhca_ctx *ctx, struct vhca_buf *buf);
void vhca_offset_del(struct vhca_ctx *ctx, struct vhca_buf *buf);
void vhca_bar_zap(struct vhca_ctx *ctx, bool *gone, unsigned long pgoff, u32 npages);

/* event.c */
struct vhca_event_queue *vhca_event_queue_alloc(u32 device_events);
void vhca_event_queue_put(struct vhca_event_queue *q);
void vhca_event_queue_close(struct vhca_event_queue *q);
void vhca_event_init(struct vhca_event *ev, u64 cookie, u32 number);
bool vhca_event_post(struct vhca_event_queue *q, struct vhca_event *ev,
		     unsigned long types);
u32 vhca_event_purge(struct vhca_event_queue *q, struct vhca_event *ev);
ssize_t vhca_event_read(struct file *file, char __user *buf, size_t count,
			loff_t *pos);
__poll_t vhca_event_poll(struct file *file, struct poll_table_struct *table);
int vhca_event_fasync(int fd, struct file *file, int on);

/* channel.c */
int vhca_create_channel(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_destroy_channel(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_open_async(struct vhca_ctx *ctx, struct vhca_call *call);
struct vhca_event_queue *vhca_channel_get(struct vhca_ctx *ctx, int fd);

/* query.c */
int vhca_cmd_query(struct vhca_dev *vdev, u16 opcode, u32 port, u32 index,
		   struct vhca_cmd_done *done);
int vhca_query_pkeys(struct vhca_dev *vdev);
int vhca_query_device(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_port(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_gid(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_pkey(struct vhca_ctx *ctx, struct vhca_call *call);

/* uar.c */
int vhca_alloc_uar(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_free_uar(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_slot_get(struct vhca_ctx *ctx, u32 number, u32 slot,
		  struct vhca_uar **uar);
void vhca_slot_put(struct vhca_uar *uar, u32 slot);
dma_addr_t vhca_slot_dma(struct vhca_uar *uar, u32 slot);
int vhca_uars_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_uars_free(struct vhca_ctx *ctx);

/* pd.c */
int vhca_alloc_pd(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_free_pd(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_pd(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_pds_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_pds_free(struct vhca_ctx *ctx);

/* pin.c */
int vhca_pin_charge(struct vhca_charge *charge, unsigned long npages);
void vhca_pin_uncharge(struct vhca_charge *charge);
int vhca_pin(unsigned long addr, unsigned long n, bool write, struct page **pages);

/* mem.c */
struct vhca_mem *vhca_mem_pin(struct vhca_dev *vdev, u64 addr, u64 length,
			      bool writable);
struct vhca_mem *vhca_mem_dmabuf(struct vhca_dev *vdev, int fd, u64 offset,
				 u64 length);
struct vhca_mem *vhca_mem_dm(struct vhca_dm *dm);
int vhca_mem_plist(struct vhca_dev *vdev, struct vhca_mem *mem,
		   struct vhca_plist *pl);
void vhca_mem_free(struct vhca_dev *vdev, struct vhca_mem *mem);

/* dmabuf.c */
#ifdef CONFIG_DMA_SHARED_BUFFER
int vhca_dmabuf_attach(struct vhca_dev *vdev, struct vhca_mem *mem, int fd, u64 offset,
		       u64 length);
int vhca_dmabuf_plist(struct vhca_dev *vdev, struct vhca_mem *mem,
		      struct vhca_plist *pl);
void vhca_dmabuf_detach(struct vhca_mem *mem);
#else
static inline int vhca_dmabuf_attach(struct vhca_dev *vdev, struct vhca_mem *mem,
				     int fd, u64 offset, u64 length)
{
	return -EOPNOTSUPP;
}

static inline int vhca_dmabuf_plist(struct vhca_dev *vdev, struct vhca_mem *mem,
				    struct vhca_plist *pl)
{
	return -EOPNOTSUPP;
}

static inline void vhca_dmabuf_detach(struct vhca_mem *mem) { }
#endif

/* dm.c */
int vhca_alloc_dm(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_dm(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_free_dm(struct vhca_ctx *ctx, struct vhca_call *call);
struct vhca_dm *vhca_dm_at(struct vhca_ctx *ctx, unsigned long pgoff, u32 *page);
int vhca_dms_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_dms_free(struct vhca_ctx *ctx);

/* mw.c */
int vhca_alloc_mw(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_free_mw(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_mws_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_mws_free(struct vhca_ctx *ctx);

/* mr.c */
int vhca_reg_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_reg_dmabuf_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_reg_dm_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_reg_null_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_rereg_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_dereg_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_mr(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_mrs_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_mrs_free(struct vhca_ctx *ctx);

/* cq.c */
int vhca_prepare_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_create_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_prepare_resize_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_resize_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_modify_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_destroy_cq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_cqs_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_cqs_quiesce(struct vhca_ctx *ctx);
void vhca_cqs_free(struct vhca_ctx *ctx);

/* xrcd.c */
int vhca_open_xrcd(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_close_xrcd(struct vhca_ctx *ctx, struct vhca_call *call);
void vhca_domain_free(struct vhca_domain *dom);
int vhca_xrcds_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_xrcds_free(struct vhca_ctx *ctx);

/* srq.c */
int vhca_prepare_srq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_create_srq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_modify_srq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_srq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_destroy_srq(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_srqs_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_srqs_quiesce(struct vhca_ctx *ctx);
void vhca_srqs_free(struct vhca_ctx *ctx);

/* mcast.c */
int vhca_attach_mcast(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_detach_mcast(struct vhca_ctx *ctx, struct vhca_call *call);

/* qp.c */
int vhca_prepare_qp(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_create_qp(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_open_qp(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_destroy_qp(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_qps_destroy(struct vhca_ctx *ctx, bool cmds);
void vhca_qps_quiesce(struct vhca_ctx *ctx);
void vhca_qps_free(struct vhca_ctx *ctx);

/* qp_attr.c */
int vhca_modify_qp(struct vhca_ctx *ctx, struct vhca_call *call);
int vhca_query_qp(struct vhca_ctx *ctx, struct vhca_call *call);

/* qp_state.c */
int vhca_qp_check(struct vhca_ctx *ctx, const struct vhca_modify_qp *arg, u8 type,
		  const struct vhca_prm_qp *now);

/* show.c */
void vhca_show_add(struct vhca_dev *vdev, struct dentry *parent);

/* client.c */
void vhca_clients_add(struct vhca_dev *vdev);
void vhca_clients_remove(struct vhca_dev *vdev);

/* debugfs.c */
void vhca_debugfs_init(void);
void vhca_debugfs_exit(void);
void vhca_debugfs_add(struct vhca_dev *vdev);
void vhca_debugfs_remove(struct vhca_dev *vdev);

#endif
