/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.h: who runs where: tests that share a CPU with the device's thread, or keep off it.
 */
#ifndef CPU_H
#define CPU_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The thread that executes function 0's work; 0 when there is none. */
static inline pid_t engine_thread(void)
{
	char path[64], comm[32];
	pid_t pid, found = 0;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	FILE *f;

	while (proc && !found && (entry = readdir(proc))) {
		pid = atoi(entry->d_name);
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		f = pid ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strcmp(comm, "vhca_engine/0\n"))
			found = pid;
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return found;
}

static inline int stay_on(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set);
}

#endif
