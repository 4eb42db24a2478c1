/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults on demand: the plan of a function, whose rules act at certain points of its
 * way from WQE to interrupt, and the gates at four of them, where things wait.
 *
 * While no function has a rule or holds anything, each point costs a branch that is
 * not taken, see vdev_faults().
 *
 * Locks: vdev_faults.plan_lock is taken by whoever changes the plan or lets go what is
 * held, outside of the locks of QPs, CQs and EQs and never with vdev.admin_lock;
 * vdev_faults.lock is innermost. What is held is guarded by the lock of the CQ or EQ
 * that it belongs to. Who adds to it asks under that lock whether there is a reason, so
 * who takes the reason away and then that lock finds all that was added for it.
 */
#ifndef VDEV_FAULT_H
#define VDEV_FAULT_H

#include <linux/hrtimer.h>
#include <linux/jump_label_ratelimit.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../include/vhca_prm.h"

struct dentry;
struct seq_file;
struct vdev;
struct vdev_cq;
struct vdev_eq;
struct vdev_qp;
struct vdev_request;
struct vdev_response;

/*
 * Off only when it was idle for a while: whoever takes a rule away and adds another does
 * not have the code patched each time.
 */
extern struct static_key_false_deferred vdev_faults_key;

/** vdev_faults() - has a function anything planned or held? */
static inline bool vdev_faults(void)
{
	return static_branch_unlikely(&vdev_faults_key.key);
}

#define VDEV_FOREVER	U64_MAX		/* until somebody lets go */

/* fault_parse.c */

/* Words of the form name=value. The order is that in which they are written. */
enum vdev_word {
	VDEV_W_QP,
	VDEV_W_CQ,
	VDEV_W_EQ,
	VDEV_W_OPCODE,
	VDEV_W_SIDE,
	VDEV_W_NTH,
	VDEV_W_EVERY,
	VDEV_W_PROB,		/* millionths */
	VDEV_W_SEED,
	VDEV_W_TIMES,
	VDEV_W_MATCHES,		/* those before are of the match, those behind of the action */
	VDEV_W_STATUS = VDEV_W_MATCHES,
	VDEV_W_VENDOR_ERR,
	VDEV_W_TIME,		/* microseconds */
	VDEV_W_RATE,		/* a second */
	VDEV_W_LATENCY,		/* microseconds */
	VDEV_W_OFFSET,
	VDEV_W_XOR,
	VDEV_W_TYPE,
	VDEV_W_NUMBER,
	VDEV_WORDS
};

#define VDEV_LINE_WORDS	3

/**
 * struct vdev_line - a line that was read: plain words, and words with values
 * @error: where it is wrong.
 * @n: plain words.
 * @word: those.
 * @column: of each, from 1.
 * @end: column behind the line.
 * @has: bits by enum vdev_word.
 * @val: what they say.
 * @at: column of each.
 */
struct vdev_line {
	struct vdev_mistake	*error;
	unsigned int		n;
	char			*word[VDEV_LINE_WORDS];
	unsigned int		column[VDEV_LINE_WORDS];
	unsigned int		end;
	u32			has;
	u64			val[VDEV_WORDS];
	unsigned int		at[VDEV_WORDS];
};

/**
 * struct vdev_mistake - what is wrong with what was written
 * @line: from 1; 0 while nothing was.
 * @column: from 1, of the word at fault.
 */
struct vdev_mistake {
	unsigned int		line;
	unsigned int		column;
	char			what[88];
};

/** vdev_line_fail() - note a mistake; returns -EINVAL */
int vdev_line_fail(struct vdev_line *line, unsigned int column, const char *fmt, ...)
	__printf(3, 4);

/** vdev_line_read() - take a line apart; 0 or -EINVAL */
int vdev_line_read(struct vdev_line *line, char *text, struct vdev_mistake *error);

/** vdev_line_only() - refuse words with values that are not in @allowed, or lack of those in
 *	@needed
 */
int vdev_line_only(struct vdev_line *line, u32 allowed, u32 needed);

/** vdev_word_show() - name=value, as it is read */
void vdev_word_show(struct seq_file *s, enum vdev_word word, u64 val);

/** vdev_name_of() - name of a value of VDEV_W_OPCODE or VDEV_W_STATUS, for reading */
const char *vdev_name_of(enum vdev_word word, u64 val);

struct vdev_rule;

/** vdev_rule_parse() - a rule from a line; 0, -EINVAL, -ENOMEM */
int vdev_rule_parse(struct vdev_line *line, struct vdev_rule **rule);

/** vdev_rule_show() - the line that makes such a rule */
void vdev_rule_show(struct seq_file *s, const struct vdev_rule *rule);

/* fault.c */

/* Where rules act. */
enum vdev_point {
	VDEV_AT_WQE,		/* a send WQE was taken in hand */
	VDEV_AT_REQUEST,	/* a request goes out */
	VDEV_AT_ARRIVAL,	/* a request came in */
	VDEV_AT_RECV,		/* a message needs a receive WQE */
	VDEV_AT_RECV_END,	/* and is all there */
	VDEV_AT_CQE,
	VDEV_AT_ARM,		/* the doorbell of a CQ */
	VDEV_AT_EQE,		/* of a completion */
	VDEV_AT_MSIX,
};

enum vdev_action {
	VDEV_COMPLETE,
	VDEV_DELAY,
	VDEV_SLOW,
	VDEV_FATAL,
	VDEV_BREAK,
	VDEV_FLAP,
	VDEV_LOSE_REQUEST,
	VDEV_LOSE_RESPONSE,
	VDEV_CORRUPT,
	VDEV_RNR_NAK,
	VDEV_STALL,
	VDEV_OVERRUN,
	VDEV_DROP,
	VDEV_REPEAT,
	VDEV_MERGE,
};

/**
 * struct vdev_rule - a rule of the plan
 * @id: not zero.
 * @form: which of the rules' forms, for fault_parse.c.
 * @has: bits by enum vdev_word.
 * @val: what they say.
 * @seen: matches of all but nth, every and prob.
 * @hits: how often it acted.
 * @next: slow: when the next WQE may start.
 * @rnd: of prob.
 */
struct vdev_rule {
	struct list_head	node;
	u32			id;
	u8			form;
	u8			point;
	u8			action;
	bool			doomed;		/* under plan_lock */
	u32			has;
	u64			val[VDEV_WORDS];
	u64			seen;
	u64			hits;
	u64			next;
	struct rnd_state	rnd;
};

#define VDEV_MAX_RULES	256

static inline bool vdev_rule_has(const struct vdev_rule *rule, enum vdev_word word)
{
	return rule->has & BIT(word);
}

/* Where something stands, in numbers that rules name; 0 is no number. */
struct vdev_place {
	u32			qp;
	u32			cq;
	u32			eq;
	u8			opcode;
	u64			from;		/* of the payload: first byte in the message */
	u32			length;
};

/**
 * struct vdev_hit - what a rule wants
 * @action: enum vdev_action.
 * @rule: its id.
 * @until: delay, slow, in nanoseconds of ktime_get_ns().
 * @status: complete.
 * @verr: likewise.
 * @offset: corrupt: byte of the message.
 * @xor: likewise.
 */
struct vdev_hit {
	u8			action;
	u8			status;
	u8			verr;
	u8			xor;
	u32			rule;
	u64			until;
	u64			offset;
};

/** vdev_fault_at() - the first rule that wants to act at a point, and what; any lock held */
bool vdev_fault_at(struct vdev *dev, enum vdev_point point, const struct vdev_place *place,
		   struct vdev_hit *hit);

/** vdev_fault_arm() - is the CQ's doorbell not to be heard? */
bool vdev_fault_arm(struct vdev_cq *cq);

/** vdev_fault_wqe() - the same for the send WQE in hand; break and flap are done here */
bool vdev_fault_wqe(struct vdev_qp *qp, struct vdev_hit *hit);

/** vdev_fault_recv() - the same at the responder */
bool vdev_fault_recv(struct vdev_qp *qp, enum vdev_point point,
		     const struct vdev_request *req, struct vdev_hit *hit);

/* gate.c */

/* What can be held. */
enum vdev_stage {
	VDEV_STAGE_WQE,
	VDEV_STAGE_CQE,
	VDEV_STAGE_EQE,
	VDEV_STAGE_MSIX,
	VDEV_STAGES
};

extern const char * const vdev_stage_names[VDEV_STAGES];

/**
 * struct vdev_held - a CQE, or the EQE of a completion, that waits
 * @until: as in struct vdev_hit; 0 for what waits behind others, or for a held gate.
 * @rule: that delays it, or 0.
 * @merge: EQE: waits for the next of its CQ.
 * @order: when it came, as others count.
 * @cqn: EQE: of which CQ.
 */
struct vdev_held {
	struct list_head	node;
	u64			until;
	u32			rule;
	bool			merge;
	u32			cqn;
	u64			order;
	struct vhca_cqe		cqe;
};

/**
 * struct vdev_gate - where CQEs of a CQ, or EQEs of an EQ, wait
 * @hold: stepping: nothing passes by itself.
 * @n: how many wait.
 * @pending: struct vdev_held, oldest first.
 */
struct vdev_gate {
	bool			hold;
	unsigned int		n;
	struct list_head	pending;
};

/**
 * struct vdev_msix_gate - where the MSI-X message of an EQ waits, under the EQ's lock
 * @order: when it came, as others count; 0: no message.
 * @until, @rule, @merge: as in struct vdev_held; @merge waits for the EQ's next EQE.
 * @repeat: it was sent already, and goes when it was delivered.
 */
struct vdev_msix_gate {
	bool			hold;
	bool			merge;
	bool			repeat;
	u32			rule;
	u64			order;
	u64			until;
};

enum vdev_gate_answer {
	VDEV_PASS,
	VDEV_HELD,
	VDEV_FULL,		/* as if the CQ were full */
};

void vdev_gate_init(struct vdev_gate *gate);

/** vdev_gate_wqe() - may the requester take a WQE in hand? send.lock held */
bool vdev_gate_wqe(struct vdev_qp *qp);

/** vdev_gate_delay() - the WQE in hand waits, by a rule; send.lock held */
void vdev_gate_delay(struct vdev_qp *qp, u32 rule);

/** vdev_gate_cqe() - may a CQE be written now? cq->lock held */
enum vdev_gate_answer vdev_gate_cqe(struct vdev_cq *cq, const struct vhca_cqe *cqe);

/**
 * vdev_gate_next() - take the oldest CQE out, when it may pass
 * @cq: CQ; its lock is held.
 * @step: it may.
 */
struct vdev_held *vdev_gate_next(struct vdev_cq *cq, bool step);

/** vdev_gate_next_of() - take out the oldest CQE of a QP, or with @qpn 0 of an SRQ */
struct vdev_held *vdev_gate_next_of(struct vdev_cq *cq, u32 qpn, u32 srqn);

/** vdev_gate_eqe() - the CQ fires: how many EQEs to post now */
unsigned int vdev_gate_eqe(struct vdev_cq *cq);

/** vdev_gate_msix() - the EQ fires: send its message, unless it is to wait or be lost */
void vdev_gate_msix(struct vdev_eq *eq);

/* The object goes away; nobody reaches it any more. */
void vdev_gate_free_qp(struct vdev_qp *qp);
void vdev_gate_free_cq(struct vdev_cq *cq);
void vdev_gate_free_eq(struct vdev_eq *eq);

/** vdev_gate_free_rule() - let go what a rule delays; 0: any; plan_lock held */
void vdev_gate_free_rule(struct vdev *dev, u32 rule);

/** vdev_gate_run() - let go whose time has come; plan_lock held */
void vdev_gate_run(struct vdev *dev);

/** vdev_gate_wake() - call vdev_gate_run() at a time; any lock held */
void vdev_gate_wake(struct vdev *dev, u64 when);

/* step.c */

/** vdev_gate_command() - a line of the file hold; plan_lock held; 0 or an errno */
int vdev_gate_command(struct vdev *dev, struct vdev_line *line);

/** vdev_gate_show() - what is held; plan_lock held */
void vdev_gate_show(struct seq_file *s, struct vdev *dev);

/* inject.c */

/** vdev_inject() - a line of the file inject; 0 or an errno */
int vdev_inject(struct vdev *dev, struct vdev_line *line);

/* trip.c */

/**
 * typedef vdev_carry_fn - carry a request to the responder, and what comes back
 *
 * Does nothing when nobody is there.
 */
typedef void (*vdev_carry_fn)(struct vdev_qp *qp, struct vdev_request *req,
			      struct vdev_response *resp);

/** vdev_trip() - the same, on a way that the plan makes unsafe; send.lock held */
void vdev_trip(struct vdev_qp *qp, struct vdev_request *req, struct vdev_response *resp,
	       vdev_carry_fn carry);

/**
 * struct vdev_faults - what is planned for a function, and held in it
 * @plan_lock: who changes the plan, or lets something go.
 * @lock: rules and how far they are, @next.
 * @rules: struct vdev_rule, in order; changed under both locks.
 * @nrules: how many.
 * @last_id: of the newest rule.
 * @hold: stages that are held in all of the function.
 * @reasons: objects with a hold of their own, and things that are held.
 * @order: counts what comes to a gate.
 * @on: counted in vdev_faults_key; under @plan_lock.
 * @error: the last mistake; under @plan_lock.
 * @next: when @timer is to run; 0: it is not.
 * @work: vdev_gate_run().
 * @link_up: the end of a flap.
 * @breakdown: vdev_break(), which is not for who works on objects.
 */
struct vdev_faults {
	struct mutex		plan_lock;	/* see above */
	spinlock_t		lock;		/* likewise */
	struct list_head	rules;
	unsigned int		nrules;
	u32			last_id;
	bool			hold[VDEV_STAGES];
	atomic_t		reasons;
	atomic64_t		order;
	bool			on;
	struct vdev_mistake	error;
	u64			next;
	struct hrtimer		timer;
	struct work_struct	work;
	struct delayed_work	link_up;
	struct work_struct	breakdown;
};

void vdev_faults_init(struct vdev *dev);
void vdev_faults_exit(struct vdev *dev);

/** vdev_faults_end() - of the module: nothing is on its way to the key any more */
void vdev_faults_end(void);

/** vdev_faults_add() - files of a function's directory */
void vdev_faults_add(struct vdev *dev, struct dentry *dir);

#endif
