// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fault plan: its rules, which of them acts where, and the files under debugfs
 * that take it and what else is ordered: faults, faults_error, inject, hold.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "vdev.h"

#define MAX_TEXT	SZ_64K	/* bytes in one write */

DEFINE_STATIC_KEY_DEFERRED_FALSE(vdev_faults_key, 5 * HZ);

/* Matching */

static bool rule_spent(const struct vdev_rule *rule)
{
	return (vdev_rule_has(rule, VDEV_W_TIMES) && rule->hits >= rule->val[VDEV_W_TIMES]) ||
	       (vdev_rule_has(rule, VDEV_W_NTH) && rule->seen >= rule->val[VDEV_W_NTH]);
}

static bool word_is(const struct vdev_rule *rule, enum vdev_word word, u64 val)
{
	return !vdev_rule_has(rule, word) || rule->val[word] == val;
}

static bool rule_matches(const struct vdev_rule *rule, const struct vdev_place *place)
{
	u64 offset = rule->val[VDEV_W_OFFSET];

	if (!word_is(rule, VDEV_W_QP, place->qp) || !word_is(rule, VDEV_W_CQ, place->cq) ||
	    !word_is(rule, VDEV_W_EQ, place->eq) ||
	    !word_is(rule, VDEV_W_OPCODE, place->opcode))
		return false;
	/* Without EQ 0 a function can do little; who wants to see that says so. */
	if (rule->point == VDEV_AT_MSIX && !place->eq && !vdev_rule_has(rule, VDEV_W_EQ))
		return false;
	return rule->action != VDEV_CORRUPT ||
	       (offset >= place->from && offset - place->from < place->length);
}

/* One more match: is it one of those that count? */
static bool rule_fires(struct vdev_rule *rule)
{
	rule->seen++;
	if (vdev_rule_has(rule, VDEV_W_NTH))
		return rule->seen == rule->val[VDEV_W_NTH];
	if (vdev_rule_has(rule, VDEV_W_EVERY))
		return !(rule->seen % rule->val[VDEV_W_EVERY]);
	if (vdev_rule_has(rule, VDEV_W_PROB))
		return prandom_u32_state(&rule->rnd) <
		       (rule->val[VDEV_W_PROB] << 32) / USEC_PER_SEC;
	return true;
}

/* Until when what it acts on is to wait. */
static u64 rule_until(struct vdev_rule *rule)
{
	u64 now = ktime_get_ns();

	if (vdev_rule_has(rule, VDEV_W_TIME))
		return now + rule->val[VDEV_W_TIME] * NSEC_PER_USEC;
	if (vdev_rule_has(rule, VDEV_W_LATENCY))
		return now + rule->val[VDEV_W_LATENCY] * NSEC_PER_USEC;
	if (!vdev_rule_has(rule, VDEV_W_RATE))
		return VDEV_FOREVER;
	now = max(now, rule->next);
	rule->next = now + NSEC_PER_SEC / (u32)rule->val[VDEV_W_RATE];
	return now;
}

bool vdev_fault_at(struct vdev *dev, enum vdev_point point, const struct vdev_place *place,
		   struct vdev_hit *hit)
{
	struct vdev_faults *faults = &dev->faults;
	struct vdev_rule *rule;
	bool found = false;

	spin_lock(&faults->lock);
	list_for_each_entry(rule, &faults->rules, node) {
		if (rule->point != point || rule_spent(rule) || !rule_matches(rule, place) ||
		    !rule_fires(rule))
			continue;
		rule->hits++;
		*hit = (struct vdev_hit){
			.action = rule->action,
			.status = rule->val[VDEV_W_STATUS],
			.verr = rule->val[VDEV_W_VENDOR_ERR],
			.xor = rule->val[VDEV_W_XOR],
			.rule = rule->id,
			.until = rule_until(rule),
			.offset = rule->val[VDEV_W_OFFSET],
		};
		found = true;
		break;
	}
	spin_unlock(&faults->lock);
	return found;
}

bool vdev_fault_arm(struct vdev_cq *cq)
{
	struct vdev_place place = { .cq = cq->cqn };
	struct vdev_hit hit;

	return vdev_fault_at(cq->dev, VDEV_AT_ARM, &place, &hit);
}

/* What concerns the function happens here. The WQE then goes its way. */
static void function_fault(struct vdev *dev, const struct vdev_hit *hit)
{
	if (hit->action == VDEV_BREAK) {
		schedule_work(&dev->faults.breakdown);
	} else if (hit->action == VDEV_FLAP) {
		u64 now = ktime_get_ns();

		vdev_link_set(dev, false);
		mod_delayed_work(system_wq, &dev->faults.link_up,
				 nsecs_to_jiffies(hit->until > now ? hit->until - now : 0));
	}
}

bool vdev_fault_wqe(struct vdev_qp *qp, struct vdev_hit *hit)
{
	struct vdev_place place = { .qp = qp->qpn, .opcode = qp->send.opcode };

	if (!vdev_fault_at(qp->dev, VDEV_AT_WQE, &place, hit))
		return false;
	function_fault(qp->dev, hit);
	return true;
}

bool vdev_fault_recv(struct vdev_qp *qp, enum vdev_point point,
		     const struct vdev_request *req, struct vdev_hit *hit)
{
	struct vdev_place place = { .qp = qp->qpn, .opcode = req->opcode };

	return vdev_fault_at(qp->dev, point, &place, hit);
}

/* The plan */

/* Is there any reason to look at the plan or the gates? plan_lock held. */
static void faults_update(struct vdev *dev)
{
	struct vdev_faults *faults = &dev->faults;
	bool on = faults->nrules || atomic_read(&faults->reasons);
	unsigned int i;

	lockdep_assert_held(&faults->plan_lock);
	for (i = 0; i < VDEV_STAGES; i++)
		on |= faults->hold[i];
	if (on && !faults->on)
		static_branch_inc(&vdev_faults_key.key);
	else if (!on && faults->on)
		static_branch_slow_dec_deferred(&vdev_faults_key);
	faults->on = on;
}

/* Rules that are doomed go, those of @fresh come; plan_lock held. */
static void plan_change(struct vdev *dev, struct list_head *fresh)
{
	struct vdev_faults *faults = &dev->faults;
	struct vdev_rule *rule, *next;
	LIST_HEAD(old);

	list_for_each_entry(rule, fresh, node)
		rule->id = ++faults->last_id;
	spin_lock(&faults->lock);
	list_for_each_entry_safe(rule, next, &faults->rules, node)
		if (rule->doomed)
			list_move_tail(&rule->node, &old);
	list_splice_tail_init(fresh, &faults->rules);
	spin_unlock(&faults->lock);

	faults->nrules = 0;
	list_for_each_entry(rule, &faults->rules, node)
		faults->nrules++;
	/* On before off: the hooks see new rules at once, and old things in their gates. */
	faults_update(dev);
	list_for_each_entry_safe(rule, next, &old, node) {
		vdev_gate_free_rule(dev, rule->id);
		kfree(rule);
	}
	vdev_gate_run(dev);
	faults_update(dev);
}

static void rules_free(struct list_head *rules)
{
	struct vdev_rule *rule, *next;

	list_for_each_entry_safe(rule, next, rules, node)
		kfree(rule);
	INIT_LIST_HEAD(rules);
}

static int plan_clear(struct vdev *dev, struct vdev_line *line, struct list_head *fresh)
{
	struct vdev_rule *rule;
	u32 id = 0;

	if (line->has)
		return vdev_line_only(line, 0, 0);
	if (line->n > 2)
		return vdev_line_fail(line, line->column[2], "one word too many: %.32s",
				      line->word[2]);
	if (line->n == 2) {
		if (kstrtou32(line->word[1], 10, &id) || !id)
			return vdev_line_fail(line, line->column[1], "no number of a rule: %.32s",
					      line->word[1]);
	} else {
		rules_free(fresh);
	}
	list_for_each_entry(rule, &dev->faults.rules, node) {
		if (line->n == 2 && (rule->id != id || rule->doomed))
			continue;
		rule->doomed = true;
		if (line->n == 2)
			return 0;
	}
	if (line->n == 1)
		return 0;
	vdev_line_fail(line, line->column[1], "no rule %u", id);
	return -ENOENT;
}

static int plan_line(struct vdev *dev, struct vdev_line *line, struct list_head *fresh)
{
	struct vdev_rule *rule;
	int ret;

	if (!line->n && !line->has)
		return 0;
	if (line->n && !strcmp(line->word[0], "clear"))
		return plan_clear(dev, line, fresh);
	ret = vdev_rule_parse(line, &rule);
	if (!ret)
		list_add_tail(&rule->node, fresh);
	return ret;
}

/* Would there be too many? */
static int plan_room(struct vdev *dev, struct list_head *fresh, struct vdev_mistake *error)
{
	struct vdev_rule *rule;
	unsigned int n = 0;

	list_for_each_entry(rule, &dev->faults.rules, node)
		n += !rule->doomed;
	list_for_each_entry(rule, fresh, node)
		n++;
	if (n <= VDEV_MAX_RULES)
		return 0;
	error->column = 1;
	strscpy(error->what, "too many rules", sizeof(error->what));
	return -ENOSPC;
}

typedef int (*line_fn)(struct vdev *dev, struct vdev_line *line, void *arg);

/* Each line of a text, until one fails; *@error says which. */
static int each_line(struct vdev *dev, char *text, struct vdev_mistake *error, line_fn fn,
		     void *arg)
{
	struct vdev_line *line = kmalloc(sizeof(*line), GFP_KERNEL);
	char *next;
	int ret = 0;

	if (!line)
		return -ENOMEM;
	for (error->line = 1; !ret && text; error->line++, text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		ret = vdev_line_read(line, text, error);
		if (!ret)
			ret = fn(dev, line, arg);
	}
	error->line--;
	kfree(line);
	return ret;
}

static int plan_each(struct vdev *dev, struct vdev_line *line, void *fresh)
{
	return plan_line(dev, line, fresh);
}

/* A line was wrong: all is as it was. */
static void plan_keep(struct vdev *dev, struct list_head *fresh)
{
	struct vdev_rule *rule;

	rules_free(fresh);
	list_for_each_entry(rule, &dev->faults.rules, node)
		rule->doomed = false;
}

static int plan_write(struct vdev *dev, char *text, struct vdev_mistake *error)
{
	LIST_HEAD(fresh);
	int ret;

	mutex_lock(&dev->faults.plan_lock);
	ret = each_line(dev, text, error, plan_each, &fresh);
	if (!ret)
		ret = plan_room(dev, &fresh, error);
	if (ret)
		plan_keep(dev, &fresh);
	else
		plan_change(dev, &fresh);
	mutex_unlock(&dev->faults.plan_lock);
	return ret;
}

/* Orders that are obeyed at once, one a write. */
static int order_one(struct vdev *dev, struct vdev_line *line, void *fn)
{
	int (**order)(struct vdev *dev, struct vdev_line *line) = fn;

	return line->n || line->has ? (*order)(dev, line) : 0;
}

static int hold_order(struct vdev *dev, struct vdev_line *line)
{
	int ret = vdev_gate_command(dev, line);

	faults_update(dev);
	return ret;
}

static int hold_write(struct vdev *dev, char *text, struct vdev_mistake *error)
{
	int (*order)(struct vdev *dev, struct vdev_line *line) = hold_order;
	int ret;

	mutex_lock(&dev->faults.plan_lock);
	ret = each_line(dev, text, error, order_one, &order);
	mutex_unlock(&dev->faults.plan_lock);
	return ret;
}

static int inject_write(struct vdev *dev, char *text, struct vdev_mistake *error)
{
	int (*order)(struct vdev *dev, struct vdev_line *line) = vdev_inject;

	return each_line(dev, text, error, order_one, &order);
}

/* Files */

typedef int (*text_fn)(struct vdev *dev, char *text, struct vdev_mistake *error);

static void note_mistake(struct vdev *dev, const struct vdev_mistake *error)
{
	mutex_lock(&dev->faults.plan_lock);
	if (error->column)
		dev->faults.error = *error;
	mutex_unlock(&dev->faults.plan_lock);
}

/* Give a whole write to @fn. */
static ssize_t text_write(struct vdev *dev, const char __user *buf, size_t count, text_fn fn)
{
	struct vdev_mistake error = {};
	char *text;
	int ret;

	if (count > MAX_TEXT)
		return -E2BIG;
	text = memdup_user_nul(buf, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = fn(dev, text, &error);
	if (ret)
		note_mistake(dev, &error);
	kfree(text);
	return ret ?: count;
}

static int faults_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;
	struct vdev_faults *faults = &dev->faults;
	struct vdev_rule *rule;

	mutex_lock(&faults->plan_lock);
	spin_lock(&faults->lock);
	list_for_each_entry(rule, &faults->rules, node) {
		seq_printf(s, "id=%u hits=%llu%s", rule->id, rule->hits,
			   rule_spent(rule) ? " spent" : "");
		vdev_rule_show(s, rule);
		seq_putc(s, '\n');
	}
	spin_unlock(&faults->lock);
	mutex_unlock(&faults->plan_lock);
	return 0;
}

static int faults_error_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;
	struct vdev_mistake *error = &dev->faults.error;

	mutex_lock(&dev->faults.plan_lock);
	if (error->line)
		seq_printf(s, "%u:%u: %s\n", error->line, error->column, error->what);
	mutex_unlock(&dev->faults.plan_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(faults_error);

static int hold_show(struct seq_file *s, void *unused)
{
	struct vdev *dev = s->private;

	mutex_lock(&dev->faults.plan_lock);
	vdev_gate_show(s, dev);
	mutex_unlock(&dev->faults.plan_lock);
	return 0;
}

static struct vdev *file_dev(struct file *file)
{
	struct seq_file *s = file->private_data;

	return s->private;
}

static ssize_t faults_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	return text_write(file_dev(file), buf, count, plan_write);
}

static ssize_t hold_file_write(struct file *file, const char __user *buf, size_t count,
			       loff_t *pos)
{
	return text_write(file_dev(file), buf, count, hold_write);
}

static ssize_t inject_file_write(struct file *file, const char __user *buf, size_t count,
				 loff_t *pos)
{
	return text_write(file->private_data, buf, count, inject_write);
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, inode->i_private);
}

static int hold_open(struct inode *inode, struct file *file)
{
	return single_open(file, hold_show, inode->i_private);
}

static const struct file_operations faults_fops = {
	.owner		= THIS_MODULE,
	.open		= faults_open,
	.read		= seq_read,
	.write		= faults_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static const struct file_operations hold_fops = {
	.owner		= THIS_MODULE,
	.open		= hold_open,
	.read		= seq_read,
	.write		= hold_file_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static const struct file_operations inject_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= inject_file_write,
	.llseek	= noop_llseek,
};

void vdev_faults_add(struct vdev *dev, struct dentry *dir)
{
	debugfs_create_file("faults", 0600, dir, dev, &faults_fops);
	debugfs_create_file("faults_error", 0400, dir, dev, &faults_error_fops);
	debugfs_create_file("inject", 0200, dir, dev, &inject_fops);
	debugfs_create_file("hold", 0600, dir, dev, &hold_fops);
}

/* Beginning and end */

static void faults_work(struct work_struct *work)
{
	struct vdev *dev = container_of(work, struct vdev, faults.work);

	mutex_lock(&dev->faults.plan_lock);
	vdev_gate_run(dev);
	faults_update(dev);
	mutex_unlock(&dev->faults.plan_lock);
}

/* Softirq: the locks of what is held are not for it. */
static enum hrtimer_restart faults_timer(struct hrtimer *timer)
{
	struct vdev *dev = container_of(timer, struct vdev, faults.timer);

	queue_work(system_highpri_wq, &dev->faults.work);
	return HRTIMER_NORESTART;
}

static void faults_link_up(struct work_struct *work)
{
	vdev_link_set(container_of(work, struct vdev, faults.link_up.work), true);
}

static void faults_breakdown(struct work_struct *work)
{
	vdev_break(container_of(work, struct vdev, faults.breakdown));
}

void vdev_faults_init(struct vdev *dev)
{
	struct vdev_faults *faults = &dev->faults;

	mutex_init(&faults->plan_lock);
	spin_lock_init(&faults->lock);
	INIT_LIST_HEAD(&faults->rules);
	hrtimer_init(&faults->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	faults->timer.function = faults_timer;
	INIT_WORK(&faults->work, faults_work);
	INIT_DELAYED_WORK(&faults->link_up, faults_link_up);
	INIT_WORK(&faults->breakdown, faults_breakdown);
}

/* The function has no objects any more, and no files. */
void vdev_faults_exit(struct vdev *dev)
{
	struct vdev_faults *faults = &dev->faults;

	cancel_delayed_work_sync(&faults->link_up);
	cancel_work_sync(&faults->breakdown);
	hrtimer_cancel(&faults->timer);
	cancel_work_sync(&faults->work);
	mutex_lock(&faults->plan_lock);
	rules_free(&faults->rules);
	faults->nrules = 0;
	memset(faults->hold, 0, sizeof(faults->hold));
	faults_update(dev);
	mutex_unlock(&faults->plan_lock);
}

void vdev_faults_end(void)
{
	static_key_deferred_flush(&vdev_faults_key);
}
