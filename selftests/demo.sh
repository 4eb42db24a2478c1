#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# demo.sh: ibv_rc_pingpong between two processes, polled and with events, and a
# table of what that took on both sides of the PCI function. As root, modules
# loaded, nobody else at work on vhca0.
top=$(dirname "$(dirname "$(readlink -f "$0")")")
run=$top/lib/vhcarun
debug=/sys/kernel/debug
iters=5000 size=64 port=18515
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die()
{
	echo "demo: $*" >&2
	exit 1
}

# All counters as they stand: side.name value, and irq.N by /proc/interrupts.
snapshot()
{
	sed 's/^/device./' $debug/vhca_device/0/counters
	sed 's/^/driver./' $debug/vhca/vhca0/counters
	awk 'NR > 1 && $1 ~ /^[0-9]+:$/ {
		n = 0
		for (i = 2; $i ~ /^[0-9]+$/; i++)
			n += $i
		sub(":", "", $1)
		print "irq." $1, n
	}' /proc/interrupts
}

listening()
{
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		grep -qi ":$(printf %04x $port) [0-9a-f:]* 0a "
}

# pingpong NAME ARG...: one run; leaves NAME.{before,after,server,client} and the
# two processes' CPU seconds in NAME.{server,client}.cpu.
pingpong()
{
	local name=$work/$1 pid i
	local TIMEFORMAT='%U %S'

	shift
	snapshot >"$name.before"
	{ time "$run" ibv_rc_pingpong -n $iters -s $size -p $port "$@" \
		>"$name.server" 2>&1; } 2>"$name.server.cpu" &
	pid=$!
	for ((i = 0; i < 200; i++)); do
		if listening || ! kill -0 $pid 2>/dev/null; then
			break
		fi
		sleep 0.05
	done
	{ time "$run" ibv_rc_pingpong -n $iters -s $size -p $port "$@" localhost \
		>"$name.client" 2>&1; } 2>"$name.client.cpu" ||
		{ cat "$name.server" "$name.client" >&2; die "ibv_rc_pingpong $* failed"; }
	wait $pid || { cat "$name.server" >&2; die "the server of ibv_rc_pingpong $* failed"; }
	snapshot >"$name.after"
}

# difference NAME COUNTER
difference()
{
	awk -v key="$2" '$1 == key { v[++n] = $2 } END { print v[2] - v[1] }' \
		"$work/$1.before" "$work/$1.after"
}

row()
{
	printf '  %-34s %12s %12s\n' "$@"
}

counter()
{
	row "$1" "$(difference polled "$2")" "$(difference events "$2")"
}

usec()
{
	sed -n 's/.* = \([0-9.]*\) usec\/iter.*/\1/p' "$work/$1.client"
}

cpu()
{
	awk '{ printf "%.2f", $1 + $2 }' "$work/$1.cpu"
}

[ -r $debug/vhca/vhca0/counters ] ||
	die "no vhca0 here: load the modules, be root, mount debugfs"
command -v ibv_rc_pingpong >/dev/null || die "needs ibverbs-utils"
pingpong polled
pingpong events -e

echo
echo "$(command -v ibv_rc_pingpong) -n $iters -s $size, two processes on vhca0," \
	"Linux $(uname -r), engine $(cat /sys/module/vhca_device/parameters/engine)"
echo
row "" polled "events (-e)"
row "microseconds per iteration" "$(usec polled)" "$(usec events)"
row "CPU seconds, server" "$(cpu polled.server)" "$(cpu events.server)"
row "CPU seconds, client" "$(cpu polled.client)" "$(cpu events.client)"
echo " device"
counter "doorbells seen" device.doorbells
counter "kicks" device.kicks
counter "send WQEs executed" device.wqes
counter "receive WQEs consumed" device.recv_wqes
counter "CQEs written" device.cqes
counter "EQEs written" device.eqes
counter "MSI-X messages sent" device.msix
echo " driver"
counter "interrupts" driver.interrupts
counter "EQEs handled" driver.eqes
counter "CQ tasklet runs" driver.tasklets
counter "events queued on channels" driver.events
echo " /proc/interrupts"
tail -n +2 $debug/vhca/vhca0/vectors | while read -r vector irq _; do
	counter "vector $vector, irq $irq" "irq.$irq"
done
