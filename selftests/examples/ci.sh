#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ci.sh: run a program once under each of some plans, and say in TAP which of them it
# does not survive. For a program that never ends, it says where it is stuck.
#
#	ci.sh [-d DEVICE] [-t SECONDS] PLAN... -- COMMAND [ARGUMENT...]
#
# A PLAN is a file of rules. The program survives when it ends with status 0 in time.

device=vhca0
limit=60
failed=0

usage()
{
	sed -n 's/^#\t/usage: /p' "$0" >&2
	exit 2
}

ctl()
{
	vhcactl -d "$device" "$@"
}

clear_all()
{
	ctl fault clear
	ctl release all
}

# What one wants to know of a program that waits.
evidence()
{
	for what in "fault list" state "show qp" "show cq" "show eq" "show channel"; do
		echo "# vhcactl $what"
		# shellcheck disable=SC2086
		ctl $what 2>&1 | sed 's/^/#   /'
	done
}

# run COMMAND...: for so long as it may take; when the time is over, look. In any case
# kill what it has started: a server whose client failed waits, and keeps the device.
run()
{
	rm -f "$tmp/status"
	# shellcheck disable=SC2016
	setsid sh -c '"$@" > "$0/out" 2>&1; echo $? > "$0/status"' "$tmp" "$@" &
	end=$(($(date +%s) + limit))
	until [ -s "$tmp/status" ]; do
		if [ "$(date +%s)" -ge $end ]; then
			evidence > "$tmp/stuck"
			break
		fi
		sleep 0.1
	done
	kill -s KILL -- "-$!" 2>/dev/null
	[ "$(cat "$tmp/status" 2>/dev/null)" = 0 ]
}

while getopts d:t: opt; do
	case $opt in
	d)	device=$OPTARG ;;
	t)	limit=$OPTARG ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
plans=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	plans="$plans $1"
	shift
done
[ -n "$plans" ] && [ $# -gt 1 ] || usage
shift

tmp=$(mktemp -d)
trap 'clear_all; rm -rf "$tmp"' EXIT
# shellcheck disable=SC2086
echo "1..$(set -- $plans; echo $#)"
n=0
for plan in $plans; do
	n=$((n + 1))
	: > "$tmp/out"
	: > "$tmp/stuck"
	clear_all
	if ctl fault load "$plan" && run "$@"; then
		echo "ok $n $plan"
	else
		sed 's/^/# /' "$tmp/out"
		cat "$tmp/stuck"
		echo "not ok $n $plan"
		failed=1
	fi
done
exit $failed
