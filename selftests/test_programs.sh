#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_programs.sh: programs as the distribution ships them, built against its
# libibverbs, run unchanged on vhca: ibv_devices, ibv_devinfo, ibv_asyncwatch,
# ibv_rc_pingpong in many forms, and perftest.

run=../lib/vhcarun
engine=/sys/module/vhca_device/parameters/engine
limit=100
port=18600
tmp=$(mktemp -d)
engine_at_start=$(cat $engine 2>/dev/null)
trap 'echo "$engine_at_start" > $engine; rm -rf "$tmp"' EXIT

count=0
failed=0

result()
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count $2"
	else
		echo "not ok $count $2"
		failed=1
	fi
}

# Show what a program said, as KTAP diagnostics.
say()
{
	sed 's/^/# /' "$@"
}

# Until a condition holds, 20 seconds at most.
wait_until()
{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || return 1
		sleep 0.05
	done
}

listens()
{
	grep -q "$(printf ':%04X [0-9A-F:]* 0A' "$1")" /proc/net/tcp /proc/net/tcp6
}

# start TAG PORT SERVER_DEVICE CLIENT_DEVICE OPTION...: a pair of ibv_rc_pingpong,
# whose client leaves its status and output in files.
start()
{
	tag=$tmp/$1
	at=$2
	server_dev=$3
	client_dev=$4
	shift 4
	rm -f "$tag".*
	(
		timeout $limit $run ibv_rc_pingpong -p "$at" -d "$server_dev" "$@" \
			> "$tag.server" 2>&1
		echo $? > "$tag.server_status"
	) &
	(
		wait_until listens "$at"
		timeout $limit $run ibv_rc_pingpong -p "$at" -d "$client_dev" "$@" 127.0.0.1 \
			> "$tag.client" 2>&1
		echo $? > "$tag.client_status"
	) &
}

# Both sides ended well, moved that many bytes and found no wrong data.
ended_well()
{
	[ "$(cat "$tmp/$1.server_status")" = 0 ] &&
	[ "$(cat "$tmp/$1.client_status")" = 0 ] &&
	grep -q "^$2 bytes in" "$tmp/$1.server" &&
	grep -q "^$2 bytes in" "$tmp/$1.client" &&
	! grep -qi "invalid data" "$tmp/$1.server" "$tmp/$1.client"
}

# pingpong NAME SIZE ITERATIONS OPTION...: on one function, as one test
pingpong()
{
	between vhca0 vhca0 "$@"
}

between()
{
	server=$1
	client=$2
	name=$3
	bytes=$(($4 * $5 * 2))
	size=$4
	iters=$5
	shift 5
	port=$((port + 1))
	start one $port "$server" "$client" -s "$size" -n "$iters" "$@"
	wait
	ended_well one $bytes
	ok=$?
	[ $ok -eq 0 ] || say "$tmp/one.server" "$tmp/one.client"
	result $ok "ibv_rc_pingpong $name, $(cat $engine)"
}

test_devices()
{
	$run ibv_devices > "$tmp/out" 2>&1
	ok=$?
	for dir in /sys/class/vhca/vhca*; do
		guid=$(tr -d : < "$dir/node_guid")
		grep -q "${dir##*/}[[:space:]]*$guid" "$tmp/out" || ok=1
	done
	[ $ok -eq 0 ] || say "$tmp/out"
	result $ok "ibv_devices lists every function with its GUID"
}

test_devinfo()
{
	$run ibv_devinfo -v > "$tmp/out" 2>&1
	ok=$?
	for what in 'hca_id:.*vhca0' 'hca_id:.*vhca1' 'transport:.*InfiniBand' \
		    'state:.*PORT_ACTIVE' 'max_mtu:.*4096' 'link_layer:.*InfiniBand' \
		    'GID\[ *0\]:.*fe80:'; do
		grep -q "$what" "$tmp/out" || { echo "# no $what"; ok=1; }
	done
	[ $ok -eq 0 ] || say "$tmp/out"
	result $ok "ibv_devinfo -v"
	$run ibv_devinfo -d vhca1 > "$tmp/out" 2>&1 && grep -q vhca1 "$tmp/out" &&
		! grep -q vhca0 "$tmp/out"
	result $? "ibv_devinfo -d vhca1"
	$run ibv_devinfo -l > "$tmp/out" 2>&1 && grep -q vhca0 "$tmp/out"
	result $? "ibv_devinfo -l"
	! $run ibv_devinfo -d vhca99 > "$tmp/out" 2>&1
	result $? "ibv_devinfo of a device that is not there fails"
}

# Has process $1 a file open whose name contains $2?
has_open()
{
	for fd in /proc/"$1"/fd/*; do
		case $(readlink "$fd") in
		*"$2"*) return 0 ;;
		esac
	done
	return 1
}

# Sleeps, with the device and an event file open.
watches()
{
	has_open "$1" /dev/vhca0 && has_open "$1" anon_inode &&
	grep -q '^State:.*S (sleeping)' /proc/"$1"/status
}

test_asyncwatch()
{
	$run ibv_asyncwatch -d vhca0 > "$tmp/out" 2>&1 &
	pid=$!
	wait_until watches $pid
	ok=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $ok -eq 0 ] || say "$tmp/out"
	result $ok "ibv_asyncwatch opens the device and waits for events"
}

# at_once NAME OPTION...: four pairs at the same time, two of them between functions
at_once()
{
	name=$1
	iters=$(iterations 4096)
	shift
	for i in 1 2 3 4; do
		port=$((port + 1))
		start "at_once$i" $port vhca$((i % 2)) vhca$((i / 3)) -n "$iters" "$@"
	done
	wait
	ok=0
	for i in 1 2 3 4; do
		ended_well "at_once$i" $((4096 * iters * 2)) || {
			say "$tmp/at_once$i.server" "$tmp/at_once$i.client"
			ok=1
		}
	done
	result $ok "$name, $(cat $engine)"
}

# perftest PROGRAM OPTION...: client and server of it, on one function
perftest()
{
	port=$((port + 1))
	name="$*, $(cat $engine)"
	timeout $limit $run "$@" -d vhca0 -F -p $port > "$tmp/server" 2>&1 &
	wait_until listens $port
	timeout $limit $run "$@" -d vhca0 -F -p $port 127.0.0.1 > "$tmp/client" 2>&1
	ok=$?
	wait $! || ok=1
	grep -q '#bytes' "$tmp/client" || ok=1
	[ $ok -eq 0 ] || say "$tmp/server" "$tmp/client"
	result $ok "$name"
}

test_perftest()
{
	for op in send write read; do
		perftest ib_${op}_lat -s 64 -n 100
		perftest ib_${op}_bw -s 65536 -n 100
	done
	perftest ib_send_bw -e -s 4096 -n 100
	perftest ib_write_bw -b -q 4 -s 4096 -n 100
	for type in CMP_AND_SWAP FETCH_AND_ADD; do
		perftest ib_atomic_lat -A $type -n 100
		perftest ib_atomic_bw -A $type -n 100
	done
}

# both NAME SIZE ITERATIONS OPTION...: polled, and with events
both()
{
	name=$1
	shift
	pingpong "$name" "$@"
	pingpong "$name -e" "$@" -e
}

# Two pollers and the engine's thread on two processors take turns by time slices.
iterations()
{
	[ "$(cat $engine)" = inline ] || { echo 40; return; }
	case $1 in
	65536) echo 300 ;;
	1048576) echo 40 ;;
	*) echo 1000 ;;
	esac
}

test_pingpong()
{
	for size in 0 1 64 4096 65536 1048576; do
		both "-c -s $size" $size "$(iterations $size)" -c
	done
	for mtu in 256 512 2048 4096; do
		pingpong "-c -m $mtu" 10000 200 -c -m $mtu
	done
	both "-r 1" 4096 200 -r 1
	between vhca0 vhca1 "between functions" 4096 "$(iterations 4096)" -c
	between vhca1 vhca0 "between functions -e" 4096 "$(iterations 4096)" -c -e
	at_once "four pairs of ibv_rc_pingpong at once"
	at_once "four pairs of ibv_rc_pingpong -e at once" -e
}

echo "TAP version 13"
echo "1..$((6 + 2 * (22 + 12) + 2))"

test_devices
test_devinfo
test_asyncwatch
for mode in inline threaded; do
	echo $mode > $engine
	test_pingpong
	test_perftest
done
echo inline > $engine
both "-n 20000" 4096 20000
exit $failed
