#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run_tests.sh TEST...: run tests in this folder one after the other and print
# nested KTAP, as the kernel's own kselftest/runner.sh does. Inside the VM each
# test starts with the modules loaded, and what the kernel logs against a test
# makes that test fail. On a kernel with kmemleak the modules are unloaded at the
# end, and memory that nothing refers to then is a failure of its own. From the second
# UNTIL on, of date +%s, no test is begun: it is skipped, and says so.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
limit=$(sed -n 's/^timeout=//p' settings)
modules=${VHCA_MODULES-}

unload_modules()
{
	rmmod vhca_cm 2>/dev/null
	rmmod vhca 2>/dev/null
	rmmod vhca_device 2>/dev/null
}

# A test that loses a function does not lose it for those after it, nor does one that was
# killed leave them its engine.
load_modules()
{
	[ -c /dev/vhca0 ] && [ -c /dev/vhca1 ] || unload_modules
	[ -d /sys/module/vhca_device ] ||
		insmod "$modules/device/vhca_device.ko" functions=2
	[ -d /sys/module/vhca ] || insmod "$modules/driver/vhca.ko"
	echo inline >/sys/module/vhca_device/parameters/engine
}

# What the kernel has logged since the test that runs began.
kernel_log()
{
	dmesg | awk '/ selftests: begin /{ s = "" } { s = s $0 "\n" } END { printf "%s", s }'
}

# What of it is against the test, if anything.
kernel_report()
{
	[ -n "$modules" ] || return 1
	kernel_log | awk -f report.awk
}

# Where a program of a test that failed was killed by its own doing.
kernel_crashes()
{
	[ -z "$modules" ] || kernel_log | grep -E -A1 ' (segfault at|traps:|trap) '
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

kmemleak=/sys/kernel/debug/kmemleak

# Objects that nothing refers to after the modules have gone. The kernel calls an
# object leaked when it is five seconds old and did not change between two scans. A
# stale pointer somewhere hides what one load has left, not what several have.
leaks()
{
	local i

	unload_modules
	for i in 1 2 3 4 5 6 7 8; do
		load_modules >/dev/null 2>&1
		unload_modules
	done
	sleep 5
	echo scan >$kmemleak
	echo scan >$kmemleak
	cat $kmemleak
}

# What the tests left behind, as result number $1.
check_leaks()
{
	local found

	echo "# selftests: vhca: kmemleak"
	found=$(leaks)
	if [ -n "$found" ]; then
		printf '%s\n' "$found" | sed 's/^/# /'
		echo "not ok $1 selftests: vhca: kmemleak # objects leaked"
	else
		echo "ok $1 selftests: vhca: kmemleak"
	fi
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

scans=0
if [ -n "$modules" ] && [ -w $kmemleak ]; then
	scans=1
	# Not whenever the kernel likes: a test would be blamed for what another left.
	echo scan=off >$kmemleak
fi
# On a kernel that watches itself a message takes ten times as long.
if [ -e $kmemleak ] || [ -e /sys/kernel/debug/kcsan ]; then
	export VHCA_HUNT_MESSAGES="${VHCA_HUNT_MESSAGES:-20000}"
fi
echo "TAP version 13"
echo "1..$(($# + scans))"
n=0
for t; do
	n=$((n + 1))
	echo "# selftests: vhca: $t"
	if [ -n "${UNTIL-}" ] && [ "$(date +%s)" -ge "$UNTIL" ]; then
		echo "ok $n selftests: vhca: $t # SKIP no time left"
		continue
	fi
	if [ -n "$modules" ]; then
		echo "selftests: begin $t" >/dev/kmsg
		load_modules 2>&1 | sed 's/^/# /'
	fi
	SECONDS=0
	run_one "$t"
	status=$?
	echo "# selftests: took $SECONDS s"
	[ $status = 0 ] || kernel_crashes | sed 's/^/# crash: /'
	if report=$(kernel_report); then
		printf '%s\n' "$report" | sed 's/^/# /'
		echo "not ok $n selftests: vhca: $t # kernel report"
	else
		verdict "$t" $status $n
	fi
done
[ $scans = 0 ] || check_leaks $((n + 1))
