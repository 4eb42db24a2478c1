# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# pingpong.sh: rdma-core's ping-pong programs. Sourced.
. ./programs.sh

# Did a process move $1 bytes and find no wrong data? What it said is in file $2.
moved()
{
	grep -q "^$1 bytes in" "$2" && ! grep -qi "invalid data" "$2"
}

# between SERVER_DEVICE CLIENT_DEVICE TYPE SIZE ITERATIONS OPTION...
between()
{
	server=$1
	client=$2
	type=$3
	bytes=$(($4 * $5 * 2))
	shift 3
	size=$1
	iters=$2
	shift 2
	pair "$server" "$client" "ibv_${type}_pingpong" -s "$size" -n "$iters" "$@"
	both one moved $bytes
	pair_result $? one "ibv_${type}_pingpong -s $size $*, $server $client"
}

# pingpong TYPE SIZE ITERATIONS OPTION...: on one function
pingpong()
{
	between vhca0 vhca0 "$@"
}

# Polled, and with events.
twice()
{
	pingpong "$@"
	pingpong "$@" -e
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
