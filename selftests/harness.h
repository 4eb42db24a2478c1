/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * harness.h: the kernel's harness, with time for kernels that watch themselves: on one
 * with KASAN a test takes ten times as long, and the harness gives each 30 seconds.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include "../kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#endif
