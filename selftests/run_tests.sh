#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run_tests.sh TEST...: run tests in this folder one after the other and print
# nested KTAP, as the kernel's own kselftest/runner.sh does. Inside the VM each
# test starts with the modules loaded, and what the kernel logs against a test
# makes that test fail.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
limit=$(sed -n 's/^timeout=//p' settings)
modules=${VHCA_MODULES-}

load_modules()
{
	[ -d /sys/module/vhca_device ] ||
		insmod "$modules/device/vhca_device.ko" functions=2
	[ -d /sys/module/vhca ] || insmod "$modules/driver/vhca.ko"
}

# What the kernel has logged against the test that runs, if anything.
kernel_report()
{
	[ -n "$modules" ] || return 1
	dmesg | awk '/ selftests: begin /{ s = "" } { s = s $0 "\n" } END { printf "%s", s }' |
		awk -f report.awk
}

# Run test $1, its output prefixed; its status is the result.
run_one()
{
	local prefix pid status i

	exec 4> >(exec sed -u 's/^/# /')
	prefix=$!
	timeout -k 10 "$limit" "./$1" </dev/null >&4 2>&1 4>&- &
	pid=$!
	wait $pid
	status=$?
	# timeout leads a process group: nothing of a test outlives it.
	kill -KILL -- -$pid 2>/dev/null
	exec 4>&-
	for ((i = 0; i < 100; i++)); do
		kill -0 $prefix 2>/dev/null || break
		sleep 0.02
	done
	kill $prefix 2>/dev/null
	return $status
}

verdict()
{
	case $2 in
	0)	echo "ok $3 selftests: vhca: $1" ;;
	4)	echo "ok $3 selftests: vhca: $1 # SKIP" ;;
	124)	echo "not ok $3 selftests: vhca: $1 # TIMEOUT $limit seconds" ;;
	*)	echo "not ok $3 selftests: vhca: $1 # exit=$2" ;;
	esac
}

echo "TAP version 13"
echo "1..$#"
n=0
for t; do
	n=$((n + 1))
	echo "# selftests: vhca: $t"
	if [ -n "$modules" ]; then
		echo "selftests: begin $t" >/dev/kmsg
		load_modules 2>&1 | sed 's/^/# /'
	fi
	run_one "$t"
	status=$?
	if report=$(kernel_report); then
		printf '%s\n' "$report" | sed 's/^/# /'
		echo "not ok $n selftests: vhca: $t # kernel report"
	else
		verdict "$t" $status $n
	fi
done
