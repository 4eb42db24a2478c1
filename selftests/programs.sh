# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# programs.sh: run programs of the distribution on vhca, mostly as pairs of a server
# and a client. Sourced; what programs say is in files of $tmp.
. ./ktap.sh

run=../lib/vhcarun
engine=/sys/module/vhca_device/parameters/engine
limit=100
port=18600
tmp=$(mktemp -d)
engine_at_start=$(cat $engine 2>/dev/null)
trap 'echo "$engine_at_start" > $engine; rm -rf "$tmp"' EXIT

# Does server TAG listen on PORT, or has it ended?
serves()
{
	[ -e "$1.server_status" ] || listens "$2"
}

# start TAG PORT SERVER_DEVICE CLIENT_DEVICE PROGRAM OPTION...: both processes, each
# of which leaves its status and output in files.
start()
{
	tag=$tmp/$1
	at=$2
	server_dev=$3
	client_dev=$4
	shift 4
	rm -f "$tag".*
	(
		timeout $limit $run "$@" -p "$at" -d "$server_dev" > "$tag.server" 2>&1
		echo $? > "$tag.server_status"
	) &
	(
		wait_until serves "$tag" "$at"
		timeout $limit $run "$@" -p "$at" -d "$client_dev" 127.0.0.1 \
			> "$tag.client" 2>&1
		echo $? > "$tag.client_status"
	) &
}

# pair SERVER_DEVICE CLIENT_DEVICE PROGRAM OPTION...: until both have ended
pair()
{
	port=$((port + 1))
	start one $port "$@"
	wait
}

# both TAG COMMAND...: does it hold of what the server said, and of the client's?
both()
{
	tag=$tmp/$1
	shift
	[ "$(cat "$tag.server_status")" = 0 ] && [ "$(cat "$tag.client_status")" = 0 ] &&
		"$@" "$tag.server" && "$@" "$tag.client"
}

# pair_result STATUS TAG NAME: the result, and what was said when it is bad
pair_result()
{
	[ "$1" -eq 0 ] || show "$tmp/$2.server" "$tmp/$2.client"
	result "$1" "$3, $(cat $engine)"
}
