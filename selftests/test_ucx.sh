#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_ucx.sh: UCX as the distribution ships it, between two processes on vhca:
# messages with tags, over RC and over UD.
. ./programs.sh

# UCX looks for the device in /dev/infiniband. A udev rule puts it there (60-vhca.rules
# in lib/); where no udev runs, this does.
name_device()
{
	[ -e /dev/infiniband/vhca0 ] && return
	mkdir -p /dev/infiniband
	ln -s ../vhca0 /dev/infiniband/vhca0
}

# ucx TRANSPORT TEST SIZE ITERATIONS [OPTION...]
ucx()
{
	# RC connects itself over UD.
	export UCX_NET_DEVICES=vhca0:1 UCX_TLS="$1,ud_verbs:aux,self"
	name="ucx_perftest $*"
	set -- ucx_perftest -t "$2" -s "$3" -n "$4"
	port=$((port + 1))
	timeout $limit $run "$@" -p $port > "$tmp/ucx.server" 2>&1 &
	wait_until listens $port
	timeout $limit $run "$@" -p $port 127.0.0.1 > "$tmp/ucx.client" 2>&1
	ok=$?
	wait $! || ok=1
	grep -q '^Final: ' "$tmp/ucx.client" || ok=1
	! grep -q ' ERROR ' "$tmp/ucx.server" "$tmp/ucx.client" || ok=1
	pair_result $ok ucx "$name"
}

test_ucx()
{
	for tl in rc_verbs ud_verbs; do
		for size in 8 4096 262144; do
			ucx $tl tag_lat $size 200
			ucx $tl tag_bw $size 200
		done
	done
}

command -v ucx_perftest > /dev/null || {
	echo "1..0 # SKIP ucx_perftest is not installed"
	exit 4
}
plan $((2 * 12))
name_device
for mode in inline threaded; do
	echo $mode > $engine
	test_ucx
done
exit $failed
