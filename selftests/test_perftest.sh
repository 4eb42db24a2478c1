#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_perftest.sh: perftest as the distribution ships it, between two processes on
# one function. Each run ends by itself, without an error, and reports each of its
# sizes. This version of perftest does not look at the data that it moves.
. ./programs.sh

# Engines (i inline, t threaded), sizes that the report has, program, options. Multicast
# (-g) is not among them: on an InfiniBand port perftest joins by a subnet manager. Nor
# are datagrams to several QPs of one SRQ: it has receives for one of them, and a sender
# that is faster than the receiver for a moment loses some.
runs="
it 23 ib_send_lat  -a -n 5
i   1 ib_send_lat  -e -n 100 -s 64
i   1 ib_send_lat  -n 100 -s 64 -I 64 --use_old_post_send
i   1 ib_send_lat  -n 100 -s 1024 --use-srq
i   1 ib_send_lat  -n 100 -s 64 --inline_recv=64
it 12 ib_send_lat  -c UD -a -n 5
i   1 ib_send_lat  -c UD -e -n 100 -s 2048
i   1 ib_send_lat  -c UC -n 100 -s 4096
i   1 ib_send_lat  -c XRC -n 100 -s 4096
i  23 ib_write_lat -a -n 5
i   1 ib_write_lat -c UC -n 100 -s 4096
i   1 ib_write_lat -c XRC -n 100 -s 4096
t   1 ib_write_lat -n 100 -s 64
it 23 ib_read_lat  -a -n 5
i   1 ib_read_lat  -c XRC -n 100 -s 4096
i   1 ib_read_lat  -e -n 100 -s 64
it  1 ib_atomic_lat -A CMP_AND_SWAP -n 100
i   1 ib_atomic_lat -A FETCH_AND_ADD -n 100
i   1 ib_atomic_lat -A FETCH_AND_ADD -c XRC -n 100
i  23 ib_send_bw   -a -n 5
i  23 ib_send_bw   -a -n 5 -b -e
i   1 ib_send_bw   -n 500 -s 4096 --use_old_post_send
i   1 ib_send_bw   -n 200 -s 4096 -q 16
i   1 ib_send_bw   -n 200 -s 4096 -q 16 -b -e --use-srq
i   1 ib_send_bw   -n 512 -s 64 -I 128 -l 16
i   1 ib_send_bw   -n 512 -s 64 --recv_post_list=16 -r 64 -Q 1
i   1 ib_send_bw   -n 200 -s 10000 -m 256
i  23 ib_send_bw   -c UC -a -n 5
i  12 ib_send_bw   -c UD -a -n 50
i   1 ib_send_bw   -c UD -n 500 -s 512 -q 4
i   1 ib_send_bw   -c UD -n 500 -s 512 --use-srq
i   1 ib_send_bw   -c XRC -n 500 -s 4096 -e
it  1 ib_send_bw   -n 200 -s 65536
it 23 ib_write_bw  -a -n 5
i  23 ib_write_bw  -c UC -a -n 5
i   1 ib_write_bw  -n 200 -s 4096 -b -q 16
i   1 ib_write_bw  -n 512 -s 64 -I 64 -l 16
i   1 ib_write_bw  -c XRC -n 200 -s 4096
i   1 ib_write_bw  -n 200 -s 4096 --use_old_post_send
i  23 ib_read_bw   -a -n 5 -b
it  1 ib_read_bw   -n 200 -s 65536
i   1 ib_read_bw   -n 200 -s 4096 -q 16 -e
i   1 ib_read_bw   -c XRC -n 200 -s 4096 -o 2
it  1 ib_atomic_bw -A CMP_AND_SWAP -n 200
i   1 ib_atomic_bw -A FETCH_AND_ADD -n 200 -b -q 16
i   1 ib_atomic_bw -A FETCH_AND_ADD -c XRC -n 200
"

quiet()
{
	! grep -qiE "error|fail|couldn't|unable|mismatch" "$1"
}

# Lines of figures: size, iterations, times or rates.
sizes_in()
{
	grep -cE '^ *[0-9]+ +[0-9]+ +([0-9.]+|-?inf|-?nan) ' "$1"
}

# perftest SIZES PROGRAM OPTION...
perftest()
{
	sizes=$1
	shift
	pair vhca0 vhca0 "$@" -F
	# The server of a one-sided operation has nothing to report.
	both one quiet && [ "$(sizes_in "$tmp/one.client")" -eq "$sizes" ]
	pair_result $? one "$*"
}

echo "$runs" | grep . > "$tmp/runs"
plan $(($(grep -c '^[it]*i' "$tmp/runs") + $(grep -c '^[it]*t' "$tmp/runs")))
for mode in inline threaded; do
	echo $mode > $engine
	while read -r engines sizes command; do
		case $engines$mode in
		*i*inline | *tthreaded)
			# shellcheck disable=SC2086
			perftest "$sizes" $command ;;
		esac
	done < "$tmp/runs"
done
exit $failed
