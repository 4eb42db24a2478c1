// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSI-X as the kernel sees it: where a vector's handler runs, what a
 * mask holds back, and that every count agrees with every other.
 */
#include "cpu.h"
#include "raw.h"

#include "harness.h"

#define DEVICE		"/sys/class/vhca/vhca0/device/"
#define TRACING		"/sys/kernel/tracing/"
#define COMP_VECTOR	1	/* entry of the MSI-X table that comp_vector 0 has */

FIXTURE(irq) {
	struct raw_bed bed;
	int irq;		/* Linux interrupt of COMP_VECTOR */
};

/* Column @col (from 0) of the line of a vector in one of the vectors files, or -1. */
static long long vector_value(const char *path, int vector, int col)
{
	char line[256], *tok, *save;
	long long val = -1;
	FILE *f = fopen(path, "r");
	int i;

	while (f && val < 0 && fgets(line, sizeof(line), f)) {
		tok = strtok_r(line, "\n ", &save);
		if (!tok || strcmp(tok, "vector") == 0 || atoi(tok) != vector)
			continue;
		for (i = 0; tok && i < col; i++)
			tok = strtok_r(NULL, "\n ", &save);
		val = tok ? atoll(tok) : -1;
	}
	if (f)
		fclose(f);
	return val;
}

#define DRIVER_VECTORS	"/sys/kernel/debug/vhca/vhca0/vectors"
#define DEVICE_VECTORS	"/sys/kernel/debug/vhca_device/0/vectors"

static long long drv_irq(int vector)
{
	return vector_value(DRIVER_VECTORS, vector, 1);
}

static long long drv_interrupts(int vector)
{
	return vector_value(DRIVER_VECTORS, vector, 3);
}

static long long drv_eqes(int vector)
{
	return vector_value(DRIVER_VECTORS, vector, 4);
}

static long long dev_sent(int vector)
{
	return vector_value(DEVICE_VECTORS, vector, 1);
}

static long long dev_pended(int vector)
{
	return vector_value(DEVICE_VECTORS, vector, 2);
}

static long long dev_pending(int vector)
{
	return vector_value(DEVICE_VECTORS, vector, 3);
}

static long long dev_masked(int vector)
{
	return vector_value(DEVICE_VECTORS, vector, 4);
}

/* What /proc/interrupts counts for an interrupt on all CPUs; -1 when it has no line. */
static long long proc_interrupts(int irq)
{
	char line[4096], *p, *end;
	long long sum = -1;
	FILE *f = fopen("/proc/interrupts", "r");

	while (f && sum < 0 && fgets(line, sizeof(line), f)) {
		if (strtol(line, &p, 10) != irq || *p != ':')
			continue;
		for (sum = 0, p++; ; p = end) {
			long long n = strtoll(p, &end, 10);

			if (end == p)
				break;
			sum += n;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

FIXTURE_SETUP(irq)
{
	ASSERT_EQ(0, raw_bed(&self->bed, 0));
	self->irq = drv_irq(COMP_VECTOR);
	ASSERT_LT(0, self->irq);
}

static int set_affinity_list(int irq, int first, int last)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	snprintf(text, sizeof(text), "%d-%d", first, last);
	return write_file(path, text);
}

static int set_affinity(int irq, int cpu)
{
	return set_affinity_list(irq, cpu, cpu);
}

FIXTURE_TEARDOWN(irq)
{
	set_affinity_list(self->irq, 0, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	close(self->bed.channel);
	raw_close(&self->bed.ctx);
}

static int fire_and_read(struct raw_bed *bed)
{
	int err = raw_bed_fire(bed);

	return err ? err : raw_cq_event(&bed->rcq);
}

TEST_F(irq, every_vector_has_an_interrupt_of_the_device_by_its_name)
{
	struct vhca_query_device q = {};
	char line[4096];
	uint32_t seen = 0;
	FILE *f;

	ASSERT_EQ(0, raw_ioctl(self->bed.ctx.fd, VHCA_IOC_QUERY_DEVICE, &q));
	f = fopen("/proc/interrupts", "r");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		seen += strstr(line, "vhca0-") && strstr(line, "MSI");
	fclose(f);
	EXPECT_EQ(1 + q.num_comp_vectors, seen);
}

/* Context and CPU, by the kernel's own trace */

static int effective_affinity(int irq)
{
	char path[64];
	int cpu = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/irq/%d/effective_affinity_list", irq);
	f = fopen(path, "r");
	if (f && fscanf(f, "%d", &cpu) != 1)
		cpu = -1;
	if (f)
		fclose(f);
	return cpu;
}

static int trace_start(int irq)
{
	char filter[32];
	int err;

	mount("tracefs", TRACING, "tracefs", 0, NULL);
	snprintf(filter, sizeof(filter), "irq == %d", irq);
	err = write_file(TRACING "events/irq/irq_handler_entry/filter", filter);
	if (!err)
		err = write_file(TRACING "trace", "");
	if (!err)
		err = write_file(TRACING "tracing_on", "1");
	return err ? err : write_file(TRACING "events/irq/irq_handler_entry/enable", "1");
}

static void trace_stop(void)
{
	write_file(TRACING "events/irq/irq_handler_entry/enable", "0");
	write_file(TRACING "events/irq/irq_handler_entry/filter", "0");
}

/*
 * Lines look like "  task-123  [001] d.h1.  12.345678: irq_handler_entry: ...".
 * How many there are; or -1 when one was not in hard interrupt context, -2 when
 * one was on another CPU.
 */
static int trace_lines(int cpu)
{
	char line[512], flags[16], *p;
	int n = 0, on;
	FILE *f = fopen(TRACING "trace", "r");

	while (f && n >= 0 && fgets(line, sizeof(line), f)) {
		p = strstr(line, " [");
		if (*line == '#' || !p || !strstr(line, "irq_handler_entry:"))
			continue;
		if (sscanf(p, " [%d] %15s", &on, flags) != 2)
			n = -3;
		else if (!strpbrk(flags, "hH"))
			n = -1;
		else if (on != cpu)
			n = -2;
		else
			n++;
	}
	if (f)
		fclose(f);
	return n;
}

TEST_F(irq, handlers_run_in_hard_interrupt_context_where_smp_affinity_says)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu, sender, i;
	long long before;

	for (cpu = 0; cpu < cpus; cpu++) {
		ASSERT_EQ(0, set_affinity(self->irq, cpu));
		ASSERT_EQ(cpu, effective_affinity(self->irq));
		/* What was under way when it moved. */
		ASSERT_EQ(0, fire_and_read(&self->bed));
		before = proc_interrupts(self->irq);
		ASSERT_EQ(0, trace_start(self->irq));
		for (sender = 0; sender < cpus; sender++) {
			stay_on(0, sender);
			for (i = 0; i < 5; i++)
				ASSERT_EQ(0, fire_and_read(&self->bed));
		}
		trace_stop();
		EXPECT_EQ((int)(proc_interrupts(self->irq) - before), trace_lines(cpu));
		EXPECT_LT(0, trace_lines(cpu));
	}
}

TEST_F(irq, a_vector_that_may_go_anywhere_goes_where_its_message_is_sent)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu, i;
	long long before;

	ASSERT_EQ(0, set_affinity_list(self->irq, 0, cpus - 1));
	for (cpu = 0; cpu < cpus; cpu++) {
		stay_on(0, cpu);
		/* What was under way elsewhere. */
		ASSERT_EQ(0, fire_and_read(&self->bed));
		before = proc_interrupts(self->irq);
		ASSERT_EQ(0, trace_start(self->irq));
		for (i = 0; i < 5; i++)
			ASSERT_EQ(0, fire_and_read(&self->bed));
		trace_stop();
		EXPECT_EQ(5, trace_lines(cpu));
		EXPECT_EQ(5, proc_interrupts(self->irq) - before);
	}
}

/* First CPU in the mask that the driver hints at. */
static int hinted_cpu(int irq)
{
	unsigned int word = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/irq/%d/affinity_hint", irq);
	f = fopen(path, "re");
	if (f) {
		/* The low word comes last. */
		while (fscanf(f, "%x%*[,]", &word) > 0)
			;
		fclose(f);
	}
	return word ? __builtin_ctz(word) : -1;
}

TEST_F(irq, vectors_hint_at_different_cpus)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long long a = drv_irq(1), b = drv_irq(2);

	if (cpus < 2 || b < 0)
		SKIP(return, "needs two CPUs");
	EXPECT_LE(0, hinted_cpu(a));
	EXPECT_LE(0, hinted_cpu(b));
	EXPECT_NE(hinted_cpu(a), hinted_cpu(b));
}

/* Masks */

#define CAP_MSIX	0x11
#define MSIX_MASKALL	(1 << 14)

/* Set or clear the function mask, as a driver does by configuration space. */
static int function_mask(bool set)
{
	uint8_t cfg[256];
	uint16_t control;
	int fd = open(DEVICE "config", O_RDWR), at;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, cfg, sizeof(cfg), 0);
	if (n != sizeof(cfg)) {
		close(fd);
		return -EIO;
	}
	for (at = cfg[0x34]; at && cfg[at] != CAP_MSIX; at = cfg[at + 1])
		;
	control = cfg[at + 2] | cfg[at + 3] << 8;
	control = set ? control | MSIX_MASKALL : control & ~MSIX_MASKALL;
	n = pwrite(fd, &control, 2, at + 2);
	close(fd);
	return at && n == 2 ? 0 : -EIO;
}

/* Fire under a mask: the message stays pending, and nothing else happens. */
static int fire_masked(struct raw_bed *bed)
{
	long long interrupts = drv_interrupts(COMP_VECTOR);
	long long pended = dev_pended(COMP_VECTOR);
	int err, i;

	err = raw_arm(&bed->rcq, false);
	for (i = 0; !err && i < 3; i++)
		err = raw_bed_message(bed, 0);
	if (err)
		return err;
	if (!RAW_WAIT(dev_pending(COMP_VECTOR) == 1))
		return -ETIMEDOUT;
	if (dev_masked(COMP_VECTOR) != 1 || dev_pended(COMP_VECTOR) != pended + 1)
		return -EPROTO;
	return drv_interrupts(COMP_VECTOR) == interrupts && !raw_readable(bed->channel, 100) ?
	       0 : -EEXIST;
}

TEST_F(irq, a_vector_under_the_function_mask_stays_pending_and_fires_on_unmask)
{
	long long interrupts = drv_interrupts(COMP_VECTOR);
	long long proc = proc_interrupts(self->irq), sent = dev_sent(COMP_VECTOR);
	int err;

	ASSERT_EQ(0, dev_masked(COMP_VECTOR));
	ASSERT_EQ(0, function_mask(true));
	err = fire_masked(&self->bed);
	/* Whatever came of it, the next test needs interrupts. */
	ASSERT_EQ(0, function_mask(false));
	ASSERT_EQ(0, err);
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(0, dev_pending(COMP_VECTOR));
	EXPECT_EQ(0, dev_masked(COMP_VECTOR));
	EXPECT_EQ(interrupts + 1, drv_interrupts(COMP_VECTOR));
	EXPECT_EQ(proc + 1, proc_interrupts(self->irq));
	EXPECT_TRUE(RAW_WAIT(dev_sent(COMP_VECTOR) == sent + 1));
	/* Once, and then as before. */
	EXPECT_EQ(0, raw_bed_events(&self->bed));
	EXPECT_EQ(0, fire_and_read(&self->bed));
}

TEST_F(irq, commands_are_answered_under_the_function_mask)
{
	int err;

	ASSERT_EQ(0, function_mask(true));
	err = raw_state(&self->bed.p.a);
	ASSERT_EQ(0, function_mask(false));
	EXPECT_EQ(VHCA_QPS_RTS, err);
	EXPECT_EQ(0, fire_and_read(&self->bed));
}

#define MASK	"/sys/module/vhca_mask/parameters/mask"

TEST_F(irq, a_masked_vector_stays_pending_while_others_go_and_fires_on_unmask)
{
	long long interrupts = drv_interrupts(COMP_VECTOR), async = drv_interrupts(0);
	char irq[16];
	int err;

	snprintf(irq, sizeof(irq), "irq=%d", self->irq);
	raw_module_unload("vhca_mask");
	err = raw_module_load("selftests/modules", "vhca_mask", irq);
	if (err == -ENOENT)
		SKIP(return, "vhca_mask.ko was not built");
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, write_file(MASK, "1"));
	err = fire_masked(&self->bed);
	if (!err && raw_state(&self->bed.p.a) != VHCA_QPS_RTS)
		err = -EIO;
	/* Before anything else: the next test needs it. */
	write_file(MASK, "0");
	EXPECT_EQ(0, raw_module_unload("vhca_mask"));
	ASSERT_EQ(0, err);
	EXPECT_LT(async, drv_interrupts(0));
	EXPECT_EQ(0, raw_cq_event(&self->bed.rcq));
	EXPECT_EQ(interrupts + 1, drv_interrupts(COMP_VECTOR));
	EXPECT_EQ(0, dev_pending(COMP_VECTOR));
	EXPECT_EQ(0, dev_masked(COMP_VECTOR));
	EXPECT_EQ(0, fire_and_read(&self->bed));
}

/* Counts */

struct counts {
	long long dev_msix, drv_interrupts;
	long long dev_eqes, drv_eqes;
	long long dev_kicks, drv_kicks;
	long long comp_eqes, tasklets, events;
	long long wqes, recv_wqes, cqes;
	long long sent[64], interrupts[64], proc[64], eqes[64];
	int vectors;
};

static void take(struct counts *c)
{
	int v;

	memset(c, 0, sizeof(*c));
	c->dev_msix = raw_device_counter(0, "msix");
	c->drv_interrupts = raw_driver_counter(0, "interrupts");
	c->dev_eqes = raw_device_counter(0, "eqes");
	c->drv_eqes = raw_driver_counter(0, "eqes");
	c->dev_kicks = raw_device_counter(0, "kicks");
	c->drv_kicks = raw_driver_counter(0, "kicks");
	c->comp_eqes = raw_driver_counter(0, "comp_eqes");
	c->tasklets = raw_driver_counter(0, "tasklets");
	c->events = raw_driver_counter(0, "events");
	c->wqes = raw_device_counter(0, "wqes");
	c->recv_wqes = raw_device_counter(0, "recv_wqes");
	c->cqes = raw_device_counter(0, "cqes");
	for (v = 0; v < 64 && drv_irq(v) > 0; v++) {
		c->sent[v] = dev_sent(v);
		c->interrupts[v] = drv_interrupts(v);
		c->proc[v] = proc_interrupts(drv_irq(v));
		c->eqes[v] = drv_eqes(v);
	}
	c->vectors = v;
}

/* Do the two sides of the wall agree on what happened between @a and now? */
static bool agree(const struct counts *a, struct counts *b)
{
	int v;

	take(b);
	if (b->dev_msix - a->dev_msix != b->drv_interrupts - a->drv_interrupts ||
	    b->dev_eqes - a->dev_eqes != b->drv_eqes - a->drv_eqes ||
	    b->dev_kicks - a->dev_kicks != b->drv_kicks - a->drv_kicks)
		return false;
	for (v = 0; v < b->vectors; v++)
		if (b->sent[v] - a->sent[v] != b->interrupts[v] - a->interrupts[v] ||
		    b->proc[v] - a->proc[v] != b->interrupts[v] - a->interrupts[v])
			return false;
	return true;
}

TEST_F(irq, counts_are_exact_for_a_known_number_of_messages)
{
	struct counts a, b;
	long long vector_eqes = 0;
	int i, v;

	ASSERT_EQ(0, fire_and_read(&self->bed));
	take(&a);
	ASSERT_LT(1, a.vectors);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, fire_and_read(&self->bed));
	ASSERT_TRUE(RAW_WAIT(agree(&a, &b)));
	EXPECT_EQ(100, b.wqes - a.wqes);
	EXPECT_EQ(100, b.recv_wqes - a.recv_wqes);
	EXPECT_EQ(100, b.cqes - a.cqes);
	EXPECT_EQ(100, b.dev_eqes - a.dev_eqes);
	EXPECT_EQ(100, b.comp_eqes - a.comp_eqes);
	EXPECT_EQ(100, b.tasklets - a.tasklets);
	EXPECT_EQ(100, b.events - a.events);
	EXPECT_EQ(100, b.interrupts[COMP_VECTOR] - a.interrupts[COMP_VECTOR]);
	for (v = 0; v < b.vectors; v++)
		vector_eqes += b.eqes[v] - a.eqes[v];
	EXPECT_EQ(100, vector_eqes);
}

TEST_F(irq, counts_agree_after_a_mixture)
{
	struct counts a, b;
	struct raw_wc wc;
	int i;

	take(&a);
	for (i = 0; i < 200; i++) {
		/* Commands, messages with and without events, completions in error. */
		ASSERT_LE(0, raw_bed_events(&self->bed));
		ASSERT_EQ(VHCA_QPS_RTS, raw_state(&self->bed.p.a));
		ASSERT_EQ(0, raw_message(&self->bed.p, &self->bed.mr, VHCA_WQE_SIGNALED, 64));
		ASSERT_EQ(0, raw_wait_wc(&self->bed.scq, &wc));
		ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
		if (i % 50)
			continue;
		ASSERT_EQ(0, raw_arm(&self->bed.rcq, true));
		ASSERT_EQ(0, raw_recv(&self->bed.p.b, &self->bed.mr, 0, 64));
		ASSERT_EQ(0, raw_goto(&self->bed.p.b, VHCA_QPS_ERR));
		ASSERT_EQ(0, raw_wait_wc(&self->bed.rcq, &wc));
		ASSERT_EQ(0, raw_reset_qp(&self->bed.p.a));
		ASSERT_EQ(0, raw_reset_qp(&self->bed.p.b));
		ASSERT_EQ(0, raw_connect(&self->bed.p.a, &self->bed.p.b));
	}
	EXPECT_TRUE(RAW_WAIT(agree(&a, &b)));
}

/* Messages are merged only in the handler's absence, never lost: nothing hangs. */
TEST_F(irq, counts_agree_when_the_vector_moves_all_the_time)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i;
	struct counts a, b;

	take(&a);
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, set_affinity(self->irq, i % cpus));
		ASSERT_EQ(0, fire_and_read(&self->bed));
	}
	EXPECT_TRUE(RAW_WAIT(agree(&a, &b)));
	EXPECT_EQ(200, b.comp_eqes - a.comp_eqes);
}

TEST_HARNESS_MAIN
