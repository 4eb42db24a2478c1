#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_rdmacm_programs.sh: programs of RDMA CM as the distribution ships them, built
# against its librdmacm and libibverbs, run unchanged: those of rdmacm-utils, perftest and
# qperf over connections of RDMA CM, TCP programs by librspreload, rdma-core's own tests.
. ./cm.sh

preload=$(ldconfig -p | sed -n 's|.*=> \(.*\)/librdmacm\.so\.1$|\1|p' | head -n 1)
preload=$preload/rsocket/librspreload.so
port=7600

next_port()
{
	port=$((port + 1))
}

# Nothing was said that sounds like trouble.
quiet()
{
	! grep -qiE 'error|fail|unable|mismatch|reject|invalid|wrong|cannot' "$@"
}

# simple PORT_SPACE PORT NAME SERVER_COMMAND CLIENT_COMMAND: both end well and are quiet
simple()
{
	pair "$1" "$2" "$4" "$5" && quiet "$tmp/server" "$tmp/client"
	pair_result $? "$3"
}

test_rping()
{
	next_port
	simple tcp $port "rping -V -C 50 -S 4096" \
		"rping -s -V -C 50 -S 4096 -a $address -p $port" \
		"rping -c -V -C 50 -S 4096 -a $address -p $port"
	# One server and its clients, one after the other: it takes two requests that come
	# together for the second one twice. A client ends well without its data, too.
	next_port
	serve_at tcp $port rping -s -P -S 1000 -a "$address" -p $port
	ok=0
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		ask rping -c -V -C 20 -S 1000 -a "$address" -p $port &&
			quiet "$tmp/client" && ! grep -q 'wait for' "$tmp/client" && continue
		ok=1
		break
	done
	[ $ok -eq 0 ] || show "$tmp/client"
	stop_server
	pair_result $ok "rping -P, 12 clients"
}

test_ucmatose()
{
	next_port
	simple tcp $port "ucmatose -c 20 -C 10 -S 4096" \
		"ucmatose -c 20 -C 10 -S 4096 -b $address -p $port" \
		"ucmatose -c 20 -C 10 -S 4096 -s $address -p $port"
	next_port
	simple tcp $port "ucmatose -m, ids move between channels" \
		"ucmatose -m -c 5 -b $address -p $port" "ucmatose -m -c 5 -s $address -p $port"
	next_port
	simple tcp $port "ucmatose -t 32 -a 16" \
		"ucmatose -c 2 -b $address -p $port" \
		"ucmatose -c 2 -t 32 -a 16 -s $address -p $port"
}

# Addresses of InfiniBand, which Soft-RoCE has none of.
test_gids()
{
	if on_reference; then
		skip "ucmatose -f gid" "no addresses of InfiniBand on Ethernet"
		return
	fi
	next_port
	gid=$($run ibv_devinfo -d vhca0 -v | sed -n 's/.*GID\[ *0\]:[[:space:]]*//p' | head -n 1)
	simple tcp $port "ucmatose -f gid" "ucmatose -f gid -c 3 -b $gid -p $port" \
		"ucmatose -f gid -c 3 -s $gid -p $port"
}

test_udaddy()
{
	simple udp 7174 "udaddy -c 8 -C 10 -S 512" \
		"udaddy -c 8 -C 10 -S 512 -b $address" "udaddy -c 8 -C 10 -S 512 -s $address"
}

# The receiver says so when it has joined.
has_joined()
{
	grep -q joined "$tmp/server"
}

# mckey OPTION...: of the sender
mckey()
{
	if on_reference; then
		skip "mckey -C 10 -S 512 -s $*" "Soft-RoCE loses datagrams of groups"
		return
	fi
	serve stdbuf -oL mckey -m 239.192.7.4 -b "$address" -C 10 -S 512
	wait_until ended_or has_joined
	ask mckey -m 239.192.7.4 -b "$address" -C 10 -S 512 -s "$@"
	client_status=$?
	[ $client_status -eq 0 ] || stop_server
	[ -n "$server" ] && served && quiet "$tmp/server" "$tmp/client" &&
		grep -q 'data transfers complete' "$tmp/server"
	pair_result $? "mckey -C 10 -S 512 -s $*"
}

test_rdma_client_server()
{
	next_port
	simple tcp $port "rdma_server and rdma_client" \
		"rdma_server -s $address -p $port" "rdma_client -s $address -p $port"
	next_port
	simple tcp $port "rdma_xserver and rdma_xclient, RC" \
		"rdma_xserver -c r -p $port" "rdma_xclient -c r -s $address -p $port"
	next_port
	if on_reference; then
		skip "rdma_xserver and rdma_xclient, XRC" "Soft-RoCE has no XRC"
	else
		simple ib $port "rdma_xserver and rdma_xclient, XRC" \
			"rdma_xserver -c x -p $port" "rdma_xclient -c x -s $address -p $port"
	fi
}

test_cmtime()
{
	next_port
	serve_at tcp $port cmtime -b "$address" -p $port
	ask cmtime -c 1000 -s "$address" -b "$address" -p $port && quiet "$tmp/client" &&
		grep -q '^connect ' "$tmp/client"
	ok=$?
	stop_server
	show "$tmp/client"
	pair_result $ok "cmtime -c 1000"
}

# streams PROGRAM OPTION...
streams()
{
	next_port
	simple tcp $port "$*" "$* -b $address -p $port" "$* -s $address -p $port"
}

# Not -T a: there rstream takes the end of its peer for an error even when the last message
# has come with it.
test_rsockets()
{
	streams rstream -T v -S 16384 -C 50
	streams rstream -T r -S 65536 -C 50
	streams rstream -T n -S 65536 -C 50
	streams rstream -T b -S 64 -C 500
	streams riostream -T v -S 16384 -C 50
	streams riostream -T n -S 65536 -C 50
}

test_rcopy()
{
	next_port
	head -c 67108864 /dev/urandom > "$tmp/file"
	serve_at tcp $port rcopy -p $port
	ask rcopy "$tmp/file" "$address:$tmp/copy" -p $port &&
		[ "$(sha256sum < "$tmp/file")" = "$(sha256sum < "$tmp/copy")" ]
	ok=$?
	stop_server
	rm -f "$tmp/file" "$tmp/copy"
	pair_result $ok "rcopy of 64 MiB"
}

# Its client connects a second time when the server has said that it is ready, which it
# is a moment later: who comes before that is rejected, and begins again.
perftest_pair()
{
	for _ in 1 2 3; do
		next_port
		pair tcp $port "$* -R -F -p $port" "$* -R -F -p $port $address" && return
		grep -q 'EVENT_REJECTED; error: 8' "$tmp/client" || return
	done
	return 1
}

# perftest PROGRAM OPTION...: one row of figures
perftest()
{
	if on_reference; then
		device="-d rxe0 -x 1"
	else
		device="-d vhca0"
	fi
	# shellcheck disable=SC2086
	perftest_pair "$@" $device &&
		quiet "$tmp/server" "$tmp/client" &&
		grep -qE '^ *[0-9]+ +[0-9]+ +[0-9.]+' "$tmp/client"
	pair_result $? "$* -R"
}

test_perftest()
{
	perftest ib_send_bw -n 200 -s 4096
	perftest ib_send_lat -n 100 -s 64
	perftest ib_send_lat -n 100 -s 64 -c UD
	perftest ib_write_lat -n 100 -s 64
	perftest ib_write_bw -n 200 -s 65536 -q 4
	perftest ib_read_bw -n 200 -s 4096
	perftest ib_read_bw -n 200 -s 4096 -e
}

# qperf TEST OPTION...: of a second
qperf()
{
	ask qperf "$address" -lp $port -t 1 "$@" && grep -q ' = ' "$tmp/client" &&
		quiet "$tmp/client"
	pair_result $? "qperf $*"
}

# With connections by RDMA CM; datagrams find each other by themselves.
test_qperf()
{
	next_port
	serve qperf -lp $port
	wait_until ended_or listens $port
	for what in rc_lat rc_bw rc_bi_bw rc_rdma_read_bw rc_rdma_write_lat rc_compare_swap_mr; do
		qperf -cm 1 $what
	done
	for what in ud_lat ud_bw; do
		if on_reference; then
			skip "qperf $what" "it knows ports by their LIDs"
		else
			qperf $what
		fi
	done
	stop_server
}

# Ordinary programs: their sockets are of RDMA, not of TCP.
test_preload()
{
	next_port
	serve env LD_PRELOAD="$preload" ./tcp_peer "$address" $port
	wait_until ended_or cm_listens tcp $port
	! listens $port && cm_listens tcp $port &&
		ask env LD_PRELOAD="$preload" ./tcp_peer "$address" $port 1000000 &&
		served && grep -q '^1000000 bytes came back' "$tmp/client"
	ok=$?
	[ -z "$server" ] || stop_server
	pair_result $ok "a TCP server and client by librspreload"
}

# rdma-core's own, with the address that Soft-RoCE would have been asked for.
test_python()
{
	if on_reference; then
		set -- --dev rxe0 --gid 1
	else
		set -- --dev vhca0 --ip "$address"
	fi
	$run ./conformance.py "$@" --families rdmacm > "$tmp/results" 2> "$tmp/log"
	pass=$(grep -c '^pass' "$tmp/results")
	awk -F '\t' '$1 != "pass" { print "# " $1 ": " $3 ": " $5 }' "$tmp/results"
	[ "$pass" -ge "$python_tests" ] && ! grep -qE '^(fail|error)' "$tmp/results"
	ok=$?
	[ $ok -eq 0 ] || show "$tmp/log"
	result $ok "rdma-core's tests of RDMA CM: $pass pass"
}

python_tests=10
cm_load || {
	echo "Bail out! vhca_cm cannot be loaded"
	exit 1
}
plan 37
test_rping
test_ucmatose
test_gids
test_udaddy
mckey
mckey -o
test_rdma_client_server
test_cmtime
test_rsockets
test_rcopy
test_perftest
test_qperf
test_preload
test_python
exit $failed
