#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_mistakes.sh: the classic mistakes of verbs programs, in examples/. Each is caught
# by its plan whenever it is run, and its corrected version survives the same plan a
# thousand times.
. ./ktap.sh

tries=20
run=../lib/vhcarun
[ -x $run ] || run=vhcarun
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Status 1 and a word about it, each time.
is_caught()
{
	for i in $(seq $tries); do
		timeout 60 $run "$1" > "$out" 2>&1
		[ $? -eq 1 ] && grep -q '^caught: ' "$out" || { echo "# run $i"; return 1; }
	done
}

survives()
{
	timeout 300 $run "$1" --fixed 1000 > "$out" 2>&1 &&
		grep -q '^survived 1000 rounds$' "$out"
}

# They all have what examples/link.h has for mistakes.
# shellcheck disable=SC2046
set -- $(grep -l '"link.h"' examples/*.c)
plan $(($# * 2))
for example; do
	example=${example%.c}
	is_caught "$example"
	status=$?
	show "$out"
	result $status "${example#*/}: caught $tries times"
	survives "$example"
	status=$?
	[ $status -eq 0 ] || show "$out"
	result $status "${example#*/}: corrected, survives 1000 rounds"
done
exit $failed
