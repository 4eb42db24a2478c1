#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A function that is reset, unbound, removed and found again: each time it comes
# back as good as new, and programs that used it are told.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
. ./ktap.sh

run=../lib/vhcarun
bdf=$(basename "$(readlink -f /sys/class/vhca/vhca0/device)")
pci=/sys/bus/pci/devices/$bdf
driver=/sys/bus/pci/drivers/vhca

bound()
{
	[ -c /dev/vhca0 ] && [ -e /sys/class/vhca/vhca0 ]
}

unbound()
{
	! bound
}

watches()
{
	readlink /proc/$watcher/fd/* 2>/dev/null | grep -q anon_inode
}

# Do two processes get their messages through?
works()
{
	timeout 60 $run ibv_rc_pingpong -d vhca0 -p 18700 -n 200 -c -e > /dev/null &
	wait_until listens 18700
	timeout 60 $run ibv_rc_pingpong -d vhca0 -p 18700 -n 200 -c -e localhost > /dev/null
	ok=$?
	wait $! || ok=1
	return $ok
}

# The BARs as configuration space has them.
bars()
{
	dd if="$pci/config" bs=1 skip=16 count=24 2>/dev/null | od -An -tx4
}

plan 6

works
result $? "a function works before it is reset"

before=$(bars)
echo "$bdf" > "$driver/unbind" && wait_until unbound &&
	grep -q flr "$pci/reset_method" && echo 1 > "$pci/reset"
result $? "a function without a driver can be reset by FLR"

[ "$(bars)" = "$before" ]
result $? "its BARs are where they were"

echo "$bdf" > "$driver/bind" && wait_until bound && works
result $? "it works after FLR and a new bind"

# It is told by the event; the next read fails, and it ends of itself.
out=$(mktemp)
stdbuf -oL $run ibv_asyncwatch -d vhca0 > "$out" 2>&1 &
watcher=$!
wait_until watches
echo 1 > "$pci/remove" && wait_until unbound
ok=$?
timeout 20 tail --pid=$watcher -f /dev/null
wait $watcher
[ $? -lt 124 ] && grep -q 'DEVICE_FATAL\|catastrophic' "$out" || ok=1
[ $ok -eq 0 ] || show "$out"
rm -f "$out"
result $ok "a function in use can be removed: programs are told, not killed"

echo 1 > /sys/bus/pci/rescan
wait_until bound && works
result $? "a removed function is found again and works"
exit $failed
