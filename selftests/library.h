/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * library.h: a program that includes this runs on vhca's verbs library: when the loader
 * chose another one, it starts itself again under vhcarun, once. With VHCA_CM_REFERENCE
 * in the environment, see cm_reference.sh, it takes the one that it finds.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RERUN_GUARD	"VHCA_TEST_RERUN"

static inline bool on_vhca_library(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/lib/build/libibverbs.so") ||
			strstr(line, "/vhca/libibverbs.so");
	if (maps)
		fclose(maps);
	return found;
}

static inline void run_under_vhcarun(int argc, char **argv)
{
	static char exe[4096], run[4096 + 32];
	char *args[argc + 2];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int i;

	if (n < 0)
		return;
	snprintf(run, sizeof(run), "%.*s/../lib/vhcarun",
		 (int)(strrchr(exe, '/') - exe), exe);
	args[0] = access(run, X_OK) ? "vhcarun" : run;
	args[1] = exe;
	for (i = 1; i < argc; i++)
		args[i + 1] = argv[i];
	args[argc + 1] = NULL;
	setenv(RERUN_GUARD, "1", 1);
	execvp(args[0], args);
}

static __attribute__((constructor)) void choose_library(int argc, char **argv)
{
	if (on_vhca_library() || getenv("VHCA_CM_REFERENCE"))
		return;
	if (!getenv(RERUN_GUARD))
		run_under_vhcarun(argc, argv);
	printf("TAP version 13\nBail out! not on vhca's libibverbs\n");
	fflush(stdout);
	_exit(1);
}

#endif
