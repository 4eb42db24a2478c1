#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_pingpong_types.sh: rdma-core's ping-pong programs for UC, UD, SRQ and XRC,
# polled and with events, by both engines. The data is checked where they can.
. ./pingpong.sh

# xsrq CLIENTS OPTION...: one server and that many clients. They check lengths only.
xsrq()
{
	clients=$1
	shift
	port=$((port + 1))
	timeout $limit $run ibv_xsrq_pingpong -p $port -d vhca0 -c "$clients" "$@" \
		> "$tmp/xsrq.server" 2>&1 &
	pids=$!
	wait_until listens $port
	for i in $(seq "$clients"); do
		timeout $limit $run ibv_xsrq_pingpong -p $port -d vhca0 "$@" 127.0.0.1 \
			> "$tmp/xsrq.client$i" 2>&1 &
		pids="$pids $!"
	done
	ok=0
	for pid in $pids; do
		wait "$pid" || ok=1
	done
	[ $ok -eq 0 ] || show "$tmp"/xsrq.*
	result $ok "ibv_xsrq_pingpong $*, $clients clients, $(cat $engine)"
}

# test_types UC_SIZES UD_SIZES SRQ_SIZES
test_types()
{
	iters=$(iterations 4096)
	for size in $1; do
		twice uc $size "$iters" -c
	done
	for size in $2; do
		twice ud $size "$iters" -c
	done
	for type in uc ud; do
		between vhca0 vhca1 $type 2048 "$iters" -c -e
	done
	for size in $3; do
		twice srq $size "$iters" -c
	done
	twice srq 4096 "$iters" -c -q 1 -r 10
	between vhca1 vhca0 srq 4096 "$iters" -c -e
	for clients in 1 3; do
		xsrq $clients -s 4096 -n 100
		xsrq $clients -s 4096 -n 100 -e
	done
}

plan $((29 + 15))
echo inline > $engine
test_types "0 64 4096 65536" "0 64 2048 4096" "64 65536"
echo threaded > $engine
test_types 4096 2048 65536
exit $failed
