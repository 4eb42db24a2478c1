#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_conformance.sh: rdma-core's own tests on vhca, a result for each family of
# them: no test fails, and as many pass as are known to. The others are skipped
# for the reasons that are shown.
. ./ktap.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Families, and how many of their tests pass.
families="
addr 2
atomic 9
cq 4
cq_events 2
cqex 5
cuda_dmabuf 0
device 21
flow 0
fork 1
mr 17
odp 0
parent_domain 6
pd 4
qp 21
qpex 19
rdmacm 0
relaxed_ordering 3
rss_traffic 0
shared_pd 1
tag_matching 0
"

number()
{
	awk -F '\t' -v outcome="$1" -v family="$2" \
		'$1 == outcome && $2 == family { n++ } END { print n + 0 }' "$tmp/results"
}

# Tests that were skipped, by the reason that they gave.
say_skipped()
{
	awk -F '\t' -v family="$1" '$1 == "skip" && $2 == family { n[$5]++ }
		END { for (why in n) print "# " n[why] " skipped: " why }' "$tmp/results"
}

# check FAMILY PASSES
check()
{
	pass=$(number pass "$1")
	bad=$(($(number fail "$1") + $(number error "$1")))
	awk -F '\t' -v family="$1" '$1 ~ /fail|error/ && $2 == family {
		print "# " $1 ": " $3 ": " $5 }' "$tmp/results"
	[ "$pass" -ge "$2" ] && [ $bad -eq 0 ]
	ok=$?
	[ $ok -eq 0 ] || echo "# $pass of $2 passed"
	say_skipped "$1"
	result $ok "$1: $pass passed"
}

/usr/bin/python3 -c 'import pyverbs.device' 2> "$tmp/log" || {
	echo "1..0 # SKIP python3-pyverbs is not installed"
	exit 4
}
# A test wants huge pages.
echo 16 > /proc/sys/vm/nr_hugepages
plan "$(echo "$families" | grep -c .)"
../lib/vhcarun ./conformance.py --dev vhca0 > "$tmp/results" 2> "$tmp/log"
echo "$families" | grep . > "$tmp/families"
while read -r family passes; do
	check "$family" "$passes"
done < "$tmp/families"
[ $failed -eq 0 ] || show "$tmp/log"
exit $failed
