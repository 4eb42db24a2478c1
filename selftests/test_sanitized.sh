#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_sanitized.sh: the library's tests once more, on a build of it that
# watches its own memory accesses and undefined behaviour ("make sanitized").
. ./ktap.sh

lib=../lib/build-sanitized
asan=$(gcc -print-file-name=libasan.so)
[ -e $lib/libibverbs.so.1 ] || { echo "1..0 # SKIP no sanitized library"; exit 4; }

sanitized()
{
	LD_LIBRARY_PATH=$lib LD_PRELOAD=$asan UBSAN_OPTIONS=print_stacktrace=1 \
		ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 "./$1" 2>&1
}

# A sanitizer that was not there would find nothing.
is_sanitized()
{
	LD_LIBRARY_PATH=$lib LD_PRELOAD=$asan ldd ./test_verbs_abi |
		grep -q 'build-sanitized/libibverbs.so.1' &&
		nm -D $lib/libibverbs.so.1 | grep -q __asan_report_load
}

tests="test_verbs_abi test_verbs_channel test_options test_wr_api test_cq_ex test_cq_resize
	test_srq_verbs test_xrc_verbs test_mr_verbs test_dm_verbs test_windows test_domains
	test_import test_ah test_async_events test_traffic"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck disable=SC2086
set -- $tests
plan $(($# + 1))
is_sanitized
result $? "the library is the sanitized one"
for t; do
	sanitized "$t" > "$out"
	status=$?
	[ $status -eq 0 ] || show "$out"
	result $status "$t"
done
exit $failed
