# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034
#
# ktap.sh: what test_*.sh have in common: results in KTAP and waiting for
# conditions. Sourced; a test ends with "exit $failed".

count=0
failed=0

# plan TESTS
plan()
{
	echo "TAP version 13"
	echo "1..$1"
}

# result STATUS NAME
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

# skip NAME WHY
skip()
{
	count=$((count + 1))
	echo "ok $count $1 # SKIP $2"
}

# Show what a program said, as diagnostics: show FILE...
show()
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

# Does anyone listen on TCP port $1?
listens()
{
	grep -q "$(printf ':%04X [0-9A-F:]* 0A' "$1")" /proc/net/tcp /proc/net/tcp6
}
