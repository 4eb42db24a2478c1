// SPDX-License-Identifier: GPL-2.0-only
/*
 * The language of faults: lines of words and name=value, the rules among them, and
 * where a line is wrong.
 */
#include <linux/ctype.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "vdev.h"

#define PROB_ONE	1000000u	/* millionths */
#define PROB_DIGITS	6
#define MAX_TIME	(3600 * (u64)USEC_PER_SEC)
#define MAX_RATE	USEC_PER_SEC

enum { SIDE_SEND, SIDE_RECV };

static const char * const opcode_names[] = {
	[VHCA_OP_SEND]			= "SEND",
	[VHCA_OP_SEND_IMM]		= "SEND_IMM",
	[VHCA_OP_SEND_INV]		= "SEND_INV",
	[VHCA_OP_RDMA_WRITE]		= "RDMA_WRITE",
	[VHCA_OP_RDMA_WRITE_IMM]	= "RDMA_WRITE_IMM",
	[VHCA_OP_RDMA_READ]		= "RDMA_READ",
	[VHCA_OP_ATOMIC_CS]		= "ATOMIC_CS",
	[VHCA_OP_ATOMIC_FA]		= "ATOMIC_FA",
	[VHCA_OP_BIND_MW]		= "BIND_MW",
	[VHCA_OP_LOCAL_INV]		= "LOCAL_INV",
};

static const char * const side_names[] = { "send", "recv" };

/* Those of the verbs, as are their numbers. */
static const char * const status_names[] = {
	[VHCA_CQE_SUCCESS]		= "SUCCESS",
	[VHCA_CQE_LOC_LEN_ERR]		= "LOC_LEN_ERR",
	[VHCA_CQE_LOC_QP_OP_ERR]	= "LOC_QP_OP_ERR",
	[VHCA_CQE_LOC_EEC_OP_ERR]	= "LOC_EEC_OP_ERR",
	[VHCA_CQE_LOC_PROT_ERR]		= "LOC_PROT_ERR",
	[VHCA_CQE_WR_FLUSH_ERR]		= "WR_FLUSH_ERR",
	[VHCA_CQE_MW_BIND_ERR]		= "MW_BIND_ERR",
	[VHCA_CQE_BAD_RESP_ERR]		= "BAD_RESP_ERR",
	[VHCA_CQE_LOC_ACCESS_ERR]	= "LOC_ACCESS_ERR",
	[VHCA_CQE_REM_INV_REQ_ERR]	= "REM_INV_REQ_ERR",
	[VHCA_CQE_REM_ACCESS_ERR]	= "REM_ACCESS_ERR",
	[VHCA_CQE_REM_OP_ERR]		= "REM_OP_ERR",
	[VHCA_CQE_RETRY_EXC_ERR]	= "RETRY_EXC_ERR",
	[VHCA_CQE_RNR_RETRY_EXC_ERR]	= "RNR_RETRY_EXC_ERR",
	[VHCA_CQE_LOC_RDD_VIOL_ERR]	= "LOC_RDD_VIOL_ERR",
	[VHCA_CQE_REM_INV_RD_REQ_ERR]	= "REM_INV_RD_REQ_ERR",
	[VHCA_CQE_REM_ABORT_ERR]	= "REM_ABORT_ERR",
	[VHCA_CQE_INV_EECN_ERR]		= "INV_EECN_ERR",
	[VHCA_CQE_INV_EEC_STATE_ERR]	= "INV_EEC_STATE_ERR",
	[VHCA_CQE_FATAL_ERR]		= "FATAL_ERR",
	[VHCA_CQE_RESP_TIMEOUT_ERR]	= "RESP_TIMEOUT_ERR",
	[VHCA_CQE_GENERAL_ERR]		= "GENERAL_ERR",
	[VHCA_CQE_TM_ERR]		= "TM_ERR",
	[VHCA_CQE_TM_RNDV_INCOMPLETE]	= "TM_RNDV_INCOMPLETE",
};

static const char * const event_names[] = {
	[VHCA_EQE_COMM_EST]		= "COMM_EST",
	[VHCA_EQE_SQ_DRAINED]		= "SQ_DRAINED",
	[VHCA_EQE_QP_FATAL]		= "QP_FATAL",
	[VHCA_EQE_QP_REQ_ERR]		= "QP_REQ_ERR",
	[VHCA_EQE_QP_ACCESS_ERR]	= "QP_ACCESS_ERR",
	[VHCA_EQE_QP_LAST_WQE]		= "QP_LAST_WQE_REACHED",
	[VHCA_EQE_PATH_MIG]		= "PATH_MIG",
	[VHCA_EQE_PATH_MIG_ERR]		= "PATH_MIG_ERR",
	[VHCA_EQE_CQ_ERR]		= "CQ_ERR",
	[VHCA_EQE_SRQ_LIMIT]		= "SRQ_LIMIT_REACHED",
	[VHCA_EQE_SRQ_ERR]		= "SRQ_ERR",
	[VHCA_EQE_PORT_ACTIVE]		= "PORT_ACTIVE",
	[VHCA_EQE_PORT_ERR]		= "PORT_ERR",
	[VHCA_EQE_LID_CHANGE]		= "LID_CHANGE",
	[VHCA_EQE_PKEY_CHANGE]		= "PKEY_CHANGE",
	[VHCA_EQE_SM_CHANGE]		= "SM_CHANGE",
	[VHCA_EQE_REREGISTER]	= "CLIENT_REREGISTER",
	[VHCA_EQE_GID_CHANGE]		= "GID_CHANGE",
	[VHCA_EQE_DEVICE_FATAL]		= "DEVICE_FATAL",
};

/**
 * struct word - what name=value may be
 * @name: its name.
 * @names: the values' names; NULL: they are numbers.
 * @min: smallest number.
 * @max: largest; of @names: how many.
 */
struct word {
	const char		*name;
	const char * const	*names;
	u64			min;
	u64			max;
};

static const struct word words[VDEV_WORDS] = {
	[VDEV_W_QP]		= { "qp", NULL, 1, VHCA_QPN_MASK },
	[VDEV_W_CQ]		= { "cq", NULL, 1, U32_MAX },
	[VDEV_W_EQ]		= { "eq", NULL, 0, VDEV_MAX_EQ - 1 },
	[VDEV_W_OPCODE]		= { "opcode", opcode_names, 0, ARRAY_SIZE(opcode_names) - 1 },
	[VDEV_W_SIDE]		= { "side", side_names, 0, ARRAY_SIZE(side_names) - 1 },
	[VDEV_W_NTH]		= { "nth", NULL, 1, U64_MAX },
	[VDEV_W_EVERY]		= { "every", NULL, 1, U64_MAX },
	[VDEV_W_PROB]		= { "prob", NULL, 1, PROB_ONE },
	[VDEV_W_SEED]		= { "seed", NULL, 0, U64_MAX },
	[VDEV_W_TIMES]		= { "times", NULL, 1, U64_MAX },
	[VDEV_W_STATUS]		= { "status", status_names, 0, ARRAY_SIZE(status_names) - 1 },
	[VDEV_W_VENDOR_ERR]	= { "vendor_err", NULL, 0, U8_MAX },
	[VDEV_W_TIME]		= { "time", NULL, 0, MAX_TIME },
	[VDEV_W_RATE]		= { "rate", NULL, 1, MAX_RATE },
	[VDEV_W_LATENCY]	= { "latency", NULL, 0, MAX_TIME },
	[VDEV_W_OFFSET]		= { "offset", NULL, 0, VDEV_MAX_MSG - 1 },
	[VDEV_W_XOR]		= { "xor", NULL, 1, U8_MAX },
	[VDEV_W_TYPE]		= { "type", event_names, 0, ARRAY_SIZE(event_names) - 1 },
	[VDEV_W_NUMBER]		= { "number", NULL, 0, U32_MAX },
};

const char *vdev_name_of(enum vdev_word word, u64 val)
{
	const struct word *w = &words[word];

	return w->names && val <= w->max && w->names[val] ? w->names[val] : "?";
}

/* Mistakes */

int vdev_line_fail(struct vdev_line *line, unsigned int column, const char *fmt, ...)
{
	struct vdev_mistake *error = line->error;
	va_list args;

	error->column = column;
	va_start(args, fmt);
	vscnprintf(error->what, sizeof(error->what), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Reading */

/* Decimal, or hexadecimal with 0x: a leading zero is no octal. */
static bool read_number(const char *text, u64 *val)
{
	if (text[0] == '0' && tolower(text[1]) == 'x')
		return isxdigit(text[2]) && !kstrtou64(text + 2, 16, val);
	return isdigit(text[0]) && !kstrtou64(text, 10, val);
}

/* A decimal fraction, in millionths. */
static bool read_prob(const char *text, u64 *val)
{
	unsigned int digits = 0;
	bool point = false;
	u64 n = 0;

	if (!isdigit(*text))
		return false;
	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit(*text) || n > PROB_ONE || (point && ++digits > PROB_DIGITS))
			return false;
		n = n * 10 + *text - '0';
	}
	while (digits++ < PROB_DIGITS)
		n *= 10;
	*val = n;
	return true;
}

static bool read_name(const struct word *w, const char *text, u64 *val)
{
	for (*val = 0; *val <= w->max; ++*val)
		if (w->names[*val] && !strcmp(w->names[*val], text))
			return true;
	return false;
}

static bool read_value(enum vdev_word word, const char *text, u64 *val)
{
	const struct word *w = &words[word];

	if (w->names)
		return read_name(w, text, val);
	if (!(word == VDEV_W_PROB ? read_prob(text, val) : read_number(text, val)))
		return false;
	return *val >= w->min && *val <= w->max;
}

static int read_pair(struct vdev_line *line, char *name, char *value, unsigned int column)
{
	enum vdev_word word;

	for (word = 0; word < VDEV_WORDS && strcmp(words[word].name, name); word++)
		;
	if (word == VDEV_WORDS)
		return vdev_line_fail(line, column, "no such word: %.32s=", name);
	if (line->has & BIT(word))
		return vdev_line_fail(line, column, "%s= is there twice", name);
	if (!read_value(word, value, &line->val[word]))
		return vdev_line_fail(line, column, "%s= cannot be %.32s", name,
				      *value ? value : "empty");
	line->has |= BIT(word);
	line->at[word] = column;
	return 0;
}

static int read_word(struct vdev_line *line, char *text, unsigned int column)
{
	char *value = strchr(text, '=');

	if (value) {
		*value++ = '\0';
		return read_pair(line, text, value, column);
	}
	if (line->n == VDEV_LINE_WORDS)
		return vdev_line_fail(line, column, "one word too many: %.32s", text);
	line->word[line->n] = text;
	line->column[line->n++] = column;
	return 0;
}

/* A line that only holds a comment has no words. */
int vdev_line_read(struct vdev_line *line, char *text, struct vdev_mistake *error)
{
	char *at = text;

	*line = (struct vdev_line){ .error = error };
	for (;;) {
		unsigned int column;
		char *word;
		int ret;

		at = skip_spaces(at);
		line->end = at - text + 1;
		if (!*at || *at == '#')
			return 0;
		word = at;
		column = line->end;
		while (*at && !isspace(*at))
			at++;
		if (*at)
			*at++ = '\0';
		ret = read_word(line, word, column);
		if (ret)
			return ret;
	}
}

int vdev_line_only(struct vdev_line *line, u32 allowed, u32 needed)
{
	unsigned long wrong = line->has & ~allowed;
	unsigned long missing = needed & ~line->has;
	unsigned int word;

	if (wrong) {
		word = __ffs(wrong);
		return vdev_line_fail(line, line->at[word], "%s= has no meaning here",
				      words[word].name);
	}
	if (missing)
		return vdev_line_fail(line, line->end, "%s= is missing",
				      words[__ffs(missing)].name);
	return 0;
}

/* Rules */

#define W(name)		BIT(VDEV_W_##name)
#define COUNTS		(W(NTH) | W(EVERY) | W(PROB) | W(SEED) | W(TIMES))
#define OF_WQE		(COUNTS | W(QP) | W(OPCODE))
#define OF_CQE		(COUNTS | W(QP) | W(CQ))
#define OF_EQE		(COUNTS | W(CQ) | W(EQ))
#define OF_MSIX		(COUNTS | W(EQ))
#define OF_ARM		(COUNTS | W(CQ))

/**
 * struct form - a form that rules have
 * @verb: first word.
 * @what: second, or NULL.
 * @action: enum vdev_action.
 * @point: enum vdev_point.
 * @side: 1 << SIDE_*: it may say so; where it may be one of both it is what it is without.
 * @allowed: words with values, but for side.
 * @needed: those that must be there.
 */
struct form {
	const char		*verb;
	const char		*what;
	u8			action;
	u8			point;
	u8			side;
	u32			allowed;
	u32			needed;
};

#define SEND		BIT(SIDE_SEND)
#define RECV		BIT(SIDE_RECV)
#define STATUS		(W(STATUS) | W(VENDOR_ERR))

static const struct form forms[] = {
	{ "complete", NULL, VDEV_COMPLETE, VDEV_AT_WQE, SEND, OF_WQE | STATUS, W(STATUS) },
	{ "complete", NULL, VDEV_COMPLETE, VDEV_AT_RECV_END, RECV, OF_WQE | STATUS, W(STATUS) },
	{ "delay", "wqe", VDEV_DELAY, VDEV_AT_WQE, SEND, OF_WQE | W(TIME) },
	{ "delay", "cqe", VDEV_DELAY, VDEV_AT_CQE, 0, OF_CQE | W(TIME) },
	{ "delay", "eqe", VDEV_DELAY, VDEV_AT_EQE, 0, OF_EQE | W(TIME) },
	{ "delay", "msix", VDEV_DELAY, VDEV_AT_MSIX, 0, OF_MSIX | W(TIME) },
	{ "slow", NULL, VDEV_SLOW, VDEV_AT_WQE, SEND, OF_WQE | W(RATE) | W(LATENCY) },
	{ "fatal", NULL, VDEV_FATAL, VDEV_AT_WQE, SEND, OF_WQE },
	{ "fatal", NULL, VDEV_FATAL, VDEV_AT_ARRIVAL, RECV, OF_WQE },
	{ "break", NULL, VDEV_BREAK, VDEV_AT_WQE, SEND, OF_WQE },
	{ "flap", NULL, VDEV_FLAP, VDEV_AT_WQE, SEND, OF_WQE | W(TIME), W(TIME) },
	{ "lose", "request", VDEV_LOSE_REQUEST, VDEV_AT_REQUEST, SEND, OF_WQE },
	{ "lose", "response", VDEV_LOSE_RESPONSE, VDEV_AT_REQUEST, SEND, OF_WQE },
	{ "corrupt", NULL, VDEV_CORRUPT, VDEV_AT_REQUEST, SEND, OF_WQE | W(OFFSET) | W(XOR) },
	{ "rnr", NULL, VDEV_RNR_NAK, VDEV_AT_RECV, RECV, OF_WQE },
	{ "stall", NULL, VDEV_STALL, VDEV_AT_ARRIVAL, RECV, OF_WQE },
	{ "overrun", NULL, VDEV_OVERRUN, VDEV_AT_CQE, 0, OF_CQE },
	{ "drop", "arm", VDEV_DROP, VDEV_AT_ARM, 0, OF_ARM },
	{ "drop", "eqe", VDEV_DROP, VDEV_AT_EQE, 0, OF_EQE },
	{ "repeat", "eqe", VDEV_REPEAT, VDEV_AT_EQE, 0, OF_EQE },
	{ "merge", "eqe", VDEV_MERGE, VDEV_AT_EQE, 0, OF_EQE },
	{ "drop", "msix", VDEV_DROP, VDEV_AT_MSIX, 0, OF_MSIX },
	{ "repeat", "msix", VDEV_REPEAT, VDEV_AT_MSIX, 0, OF_MSIX },
	{ "merge", "msix", VDEV_MERGE, VDEV_AT_MSIX, 0, OF_MSIX },
};

static bool is_verb(const struct form *form, const struct vdev_line *line)
{
	return !strcmp(form->verb, line->word[0]);
}

static bool is_form(const struct form *form, const struct vdev_line *line)
{
	if (!is_verb(form, line))
		return false;
	return !form->what || (line->n > 1 && !strcmp(form->what, line->word[1]));
}

/* No form has these words: which of them is wrong? */
static int no_form(struct vdev_line *line)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(forms); i++)
		if (is_verb(&forms[i], line))
			break;
	if (i == ARRAY_SIZE(forms))
		return vdev_line_fail(line, line->column[0], "no such action: %.32s",
				      line->word[0]);
	if (line->n < 2)
		return vdev_line_fail(line, line->end, "%s needs to know what", line->word[0]);
	return vdev_line_fail(line, line->column[1], "%s cannot be of %.32s", line->word[0],
			      line->word[1]);
}

/* The form of a line; where there are two, side says which. NULL: noted why not. */
static const struct form *find_form(struct vdev_line *line)
{
	const struct form *first = NULL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *form = &forms[i];

		if (!is_form(form, line))
			continue;
		first = first ?: form;
		if (!(line->has & W(SIDE)) || form->side & BIT(line->val[VDEV_W_SIDE]))
			return form;
	}
	if (first)
		vdev_line_fail(line, line->at[VDEV_W_SIDE], "%s does not stand at that side",
			       line->word[0]);
	else
		no_form(line);
	return NULL;
}

/* The second of two words that exclude each other is the one at fault. */
static int excluded(struct vdev_line *line, u32 group)
{
	unsigned long found = line->has & group;
	unsigned int column = 0, word;

	if (hweight_long(found) < 2)
		return 0;
	for_each_set_bit(word, &found, VDEV_WORDS)
		column = max(column, line->at[word]);
	return vdev_line_fail(line, column, "%s= and %s= exclude each other",
			      words[__ffs(found)].name, words[__fls(found)].name);
}

static int check_rule(struct vdev_line *line, const struct form *form)
{
	unsigned int n = form->what ? 2 : 1;
	int ret;

	if (line->n > n)
		return vdev_line_fail(line, line->column[n], "one word too many: %.32s",
				      line->word[n]);
	ret = vdev_line_only(line, form->allowed | (form->side ? W(SIDE) : 0), form->needed);
	if (!ret)
		ret = excluded(line, W(NTH) | W(EVERY) | W(PROB));
	if (!ret)
		ret = excluded(line, W(RATE) | W(LATENCY));
	if (ret)
		return ret;
	if (line->has & W(SEED) && !(line->has & W(PROB)))
		return vdev_line_fail(line, line->at[VDEV_W_SEED], "seed= without prob=");
	if (form->action == VDEV_SLOW && !(line->has & (W(RATE) | W(LATENCY))))
		return vdev_line_fail(line, line->end, "rate= or latency= is missing");
	return 0;
}

/* Values that a rule has without saying so. */
static void set_defaults(struct vdev_rule *rule)
{
	if (!vdev_rule_has(rule, VDEV_W_XOR))
		rule->val[VDEV_W_XOR] = U8_MAX;
	if (!vdev_rule_has(rule, VDEV_W_SEED))
		rule->val[VDEV_W_SEED] = 1;
}

int vdev_rule_parse(struct vdev_line *line, struct vdev_rule **rule)
{
	const struct form *form;
	int ret;

	if (!line->n)
		return vdev_line_fail(line, line->end, "no action");
	form = find_form(line);
	if (!form)
		return -EINVAL;
	ret = check_rule(line, form);
	if (ret)
		return ret;
	*rule = kzalloc(sizeof(**rule), GFP_KERNEL);
	if (!*rule)
		return -ENOMEM;
	(*rule)->form = form - forms;
	(*rule)->action = form->action;
	(*rule)->point = form->point;
	(*rule)->has = line->has & ~W(SIDE);
	memcpy((*rule)->val, line->val, sizeof(line->val));
	set_defaults(*rule);
	prandom_seed_state(&(*rule)->rnd, (*rule)->val[VDEV_W_SEED]);
	return 0;
}

/* Writing */

static void show_prob(struct seq_file *s, u64 prob)
{
	unsigned int digits = PROB_DIGITS;
	u32 part = prob % PROB_ONE;

	seq_printf(s, "%u", (u32)prob / PROB_ONE);
	if (!part)
		return;
	for (; !(part % 10); part /= 10)
		digits--;
	seq_printf(s, ".%0*u", digits, part);
}

void vdev_word_show(struct seq_file *s, enum vdev_word word, u64 val)
{
	seq_printf(s, "%s=", words[word].name);
	if (words[word].names)
		seq_puts(s, vdev_name_of(word, val));
	else if (word == VDEV_W_PROB)
		show_prob(s, val);
	else
		seq_printf(s, "%llu", val);
}

static void show_words(struct seq_file *s, const struct vdev_rule *rule, unsigned int from,
		       unsigned int to)
{
	unsigned long has = rule->has;
	unsigned int word = from;

	for_each_set_bit_from(word, &has, to) {
		seq_putc(s, ' ');
		vdev_word_show(s, word, rule->val[word]);
	}
}

/* Is there another form with these words, before this one? Then side tells them apart. */
static bool needs_side(const struct form *form)
{
	const struct form *other;

	for (other = forms; other < form; other++)
		if (!strcmp(other->verb, form->verb) && !other->what && !form->what)
			return true;
	return false;
}

void vdev_rule_show(struct seq_file *s, const struct vdev_rule *rule)
{
	const struct form *form = &forms[rule->form];

	show_words(s, rule, 0, VDEV_W_MATCHES);
	seq_printf(s, " %s", form->verb);
	if (form->what)
		seq_printf(s, " %s", form->what);
	if (needs_side(form))
		seq_puts(s, " side=recv");
	show_words(s, rule, VDEV_W_MATCHES, VDEV_WORDS);
}
