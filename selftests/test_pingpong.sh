#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_pingpong.sh: ibv_rc_pingpong in many forms, polled and with events, by both
# engines; the data is checked.
. ./pingpong.sh

# at_once NAME OPTION...: four pairs at the same time, two of them between functions
at_once()
{
	name=$1
	iters=$(iterations 4096)
	shift
	for i in 1 2 3 4; do
		port=$((port + 1))
		start "at_once$i" $port vhca$((i % 2)) vhca$((i / 3)) \
			ibv_rc_pingpong -n "$iters" "$@"
	done
	wait
	ok=0
	for i in 1 2 3 4; do
		both "at_once$i" moved $((4096 * iters * 2)) || {
			show "$tmp/at_once$i.server" "$tmp/at_once$i.client"
			ok=1
		}
	done
	result $ok "$name, $(cat $engine)"
}

test_rc()
{
	for size in 0 1 64 4096 65536 1048576; do
		twice rc $size "$(iterations $size)" -c
	done
	for mtu in 256 512 2048 4096; do
		pingpong rc 10000 200 -c -m $mtu
	done
	twice rc 4096 200 -r 1
	twice rc 4096 200 -c -N
	# With -t -e the program would fail when an event finds the CQ empty.
	pingpong rc 4096 200 -c -t
	pingpong rc 4096 200 -c -j
	between vhca0 vhca1 rc 4096 "$(iterations 4096)" -c
	between vhca1 vhca0 rc 4096 "$(iterations 4096)" -c -e
	at_once "four pairs of ibv_rc_pingpong at once"
	at_once "four pairs of ibv_rc_pingpong -e at once" -e
}

plan $((2 * 26 + 2))
for mode in inline threaded; do
	echo $mode > $engine
	test_rc
done
echo inline > $engine
pingpong rc 4096 20000
# To sleep and to be woken takes milliseconds where processors are shared.
pingpong rc 4096 4000 -e
exit $failed
