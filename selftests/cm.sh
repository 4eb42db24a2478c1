# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034
#
# cm.sh: RDMA CM for tests in shell: vhca_cm is loaded while the test runs, and programs
# run as pairs of a server and a client. On the reference, see cm_reference.sh, the RDMA
# CM is the kernel's own, and programs run on the distribution's library. Sourced; what
# programs say is in files of $tmp.
. ./ktap.sh

run=../lib/vhcarun
address=${VHCA_CM_ADDRESS-127.0.0.1}
limit=100
tmp=$(mktemp -d)
cm_loaded=
server=
trap cm_end EXIT

on_reference()
{
	[ -n "${VHCA_CM_REFERENCE-}" ]
}

# Load vhca_cm unless there is an RDMA CM; the answer is that of insmod.
cm_load()
{
	[ ! -e /dev/infiniband/rdma_cm ] || return 0
	insmod "$VHCA_MODULES/driver/cm/vhca_cm.ko" && cm_loaded=1
}

cm_gone()
{
	rmmod vhca_cm 2> /dev/null || [ ! -e /sys/module/vhca_cm ]
}

# What has been killed closes its files a moment later.
cm_unload()
{
	[ -z "$cm_loaded" ] || wait_until cm_gone
	cm_loaded=
}

cm_end()
{
	[ -z "$server" ] || kill "$server" 2> /dev/null
	cm_unload
	rm -rf "$tmp"
}

# cm_listens PORT_SPACE PORT: does anyone listen there? A space is tcp, udp, or ib.
cm_listens()
{
	if on_reference; then
		rdma resource show cm_id |
			grep -qi "state LISTEN ps $1 .*:$2 *"
	else
		grep -qx "$1 $2" /sys/kernel/debug/vhca_cm/listeners
	fi
}

# Has the server ended, or does this condition hold?
ended_or()
{
	! kill -0 "$server" 2> /dev/null || "$@"
}

# serve COMMAND...: a server in the background
serve()
{
	timeout $limit $run "$@" > "$tmp/server" 2>&1 &
	server=$!
}

# serve_at PORT_SPACE PORT COMMAND...: one that listens before this returns
serve_at()
{
	space=$1
	at=$2
	shift 2
	serve "$@"
	wait_until ended_or cm_listens "$space" "$at"
}

# ask COMMAND...: a client
ask()
{
	timeout $limit $run "$@" > "$tmp/client" 2>&1
}

# The server's status, when it ends by itself.
served()
{
	wait "$server"
	server_status=$?
	server=
	return $server_status
}

# End a server that goes on and on.
stop_server()
{
	kill "$server" 2> /dev/null
	wait "$server" 2> /dev/null
	server=
}

# pair PORT_SPACE PORT SERVER_COMMAND CLIENT_COMMAND: until both have ended well; the
# commands are split at blanks.
pair()
{
	# shellcheck disable=SC2086
	serve_at "$1" "$2" $3
	# shellcheck disable=SC2086
	ask $4
	client_status=$?
	[ $client_status -eq 0 ] || {
		stop_server
		return 1
	}
	served
}

# pair_result STATUS NAME: the result, and what was said when it is bad
pair_result()
{
	[ "$1" -eq 0 ] || show "$tmp/server" "$tmp/client"
	result "$1" "$2"
}

if on_reference; then
	run=
fi
