#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_events.sh: the epoll program of Documentation/events.rst: connections come, exchange
# messages and go, in one thread at either side; none is lost.
. ./cm.sh

port=7500

# epoll NAME CONNECTIONS
epoll()
{
	port=$((port + 1))
	pair tcp $port "examples/epoll -n $2 $address $port" \
		"examples/epoll -c -n $2 $address $port" &&
		grep -qx "$2 of $2 connections" "$tmp/server" &&
		grep -qx "$2 of $2 connections" "$tmp/client"
	pair_result $? "$1"
}

# Nobody is there.
alone()
{
	ask examples/epoll -c -n 3 "$address" 7499
	[ $? -eq 1 ] && [ "$(grep -c 'REJECTED, status 8' "$tmp/client")" -eq 3 ] &&
		grep -qx '0 of 3 connections' "$tmp/client"
	ok=$?
	: > "$tmp/server"
	pair_result $ok "three connections that nobody answers"
}

cm_load || {
	echo "Bail out! vhca_cm cannot be loaded"
	exit 1
}
plan 3
epoll "one connection" 1
epoll "200 connections" 200
alone
exit $failed
