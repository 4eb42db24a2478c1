#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench.sh OUT: measure vhca, Soft-RoCE and the machine in turn, ROUNDS times (5), about
# SECONDS a run (1). To OUT go raw.tsv, lines of round, case, name, value, and the
# histograms. As root, modules loaded. BESIDE=N: idle QPs to measure beside (10000).
# COUNT=1, where a nanosecond is an instruction: add what is measured of those.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
. ../ktap.sh
. ../rxe.sh
out=$1
rounds=${ROUNDS:-5} seconds=${SECONDS_A_RUN:-1} beside=${BESIDE:-10000}
port=18700
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A lib=([vhca]=../../lib/vhcarun [rxe]="")
declare -A dev=([vhca]="vhca0" [rxe]="rxe0 --gid 1")
declare -A address=([vhca]=127.0.0.1 [rxe]=192.0.2.1)
declare -A pair_dev=([vhca]="-d vhca0" [rxe]="-d rxe0")
steps=0 step=0 round=0

die()
{
	echo "bench: $*" >&2
	exit 1
}

# keep CASE: the "name value" lines that come in, as this round's.
keep()
{
	awk -v round=$round -v case="$1" 'BEGIN { OFS = "\t" } NF == 2 { print round, case, $1, $2 }' \
		>>"$out/raw.tsv"
}

# A run begins: count it, and say so. False while they are only counted.
begins()
{
	step=$((step + 1))
	[ $steps != 0 ] || return
	printf '[%3d %%] round %d of %d: %s\n' $((step * 100 / steps)) $round "$rounds" "$1"
}

# measure DEVICE CASE TEST OPTION...: by vhca_bench
measure()
{
	local d=$1 case=$1.$2 test=$3

	shift 3
	begins "$case" || return 0
	# shellcheck disable=SC2086
	${lib[$d]} ./vhca_bench "$test" --dev ${dev[$d]} --dump "$out/$case.hist.$round" "$@" \
		>"$work/out" 2>"$work/err" || { cat "$work/err" >&2; die "$case failed"; }
	keep "$case" <"$work/out"
}

served()
{
	[ -e "$work/ended" ] || listens $port
}

# pair DEVICE CASE NAMES PROGRAM OPTION...: server and client of a program of the
# distribution; NAMES are those of the columns of figures that are kept, - of others.
pair()
{
	local d=$1 case=$1.$2 names=$3

	shift 3
	begins "$case" || return 0
	port=$((port + 1))
	rm -f "$work/ended"
	set -- "$@" -p $port
	# shellcheck disable=SC2086
	{
		timeout 60 ${lib[$d]} "$@" ${pair_dev[$d]} >"$work/server" 2>&1
		: >"$work/ended"
	} &
	wait_until served
	# shellcheck disable=SC2086
	timeout 60 ${lib[$d]} "$@" ${pair_dev[$d]} 127.0.0.1 >"$work/client" 2>&1 ||
		{ cat "$work/client" >&2; die "$case failed"; }
	wait
	awk -v names="$names" '
	/usec\/iter$/ { print "round_us", $(NF - 1) }
	/^ *[0-9]+ +[0-9]+ +[0-9.]+ / {
		n = split(names, name, ",")
		# Their megabytes have 2^20 bytes, ours 10^6.
		for (i = 1; i <= n; i++)
			if (name[i] != "-")
				print name[i], $(i + 2) * (name[i] == "mbytes" ? 1.048576 : 1)
	}' "$work/client" | keep "$case"
}

# Both devices, in turn, the first one in every other round.
both()
{
	local d devices="vhca rxe"

	[ $((round % 2)) = 1 ] || devices="rxe vhca"
	for d in $devices; do
		"$1" $d "${@:2}"
	done
}

ib_pingpong()
{
	local gid=()

	[ "$1" = vhca ] || gid=(-g 1)
	pair "$1" ib_pingpong "" ibv_rc_pingpong -s 64 -n 2000 "${gid[@]}"
	pair "$1" ib_pingpong_e "" ibv_rc_pingpong -e -s 64 -n 2000 "${gid[@]}"
}

# perftest DEVICE: as many iterations as make about a second.
perftest()
{
	local d=$1 gid=() more=1 lat=min_us,max_us,typical_us,mean_us,-,p99_us,p99.9_us
	local bw=-,mbytes,mrate

	[ "$d" = vhca ] && more=10
	[ "$d" = vhca ] || gid=(-x 1)
	pair "$d" ib_send_lat $lat ib_send_lat -F -s 64 -n 2000 "${gid[@]}"
	pair "$d" ib_send_bw.128 $bw ib_send_bw -F -s 128 -n $((15000 * more)) "${gid[@]}"
	pair "$d" ib_send_bw.128.list $bw ib_send_bw -F -s 128 -l 16 -n $((16000 * more)) "${gid[@]}"
	pair "$d" ib_send_bw.65536 $bw ib_send_bw -F -s 65536 -n $((500 * more)) "${gid[@]}"
	pair "$d" ib_write_bw.1048576 $bw ib_write_bw -F -s 1048576 -n $((40 * more)) "${gid[@]}"
}

pingpong_modes()
{
	local mode

	for mode in polling events hybrid; do
		measure "$1" pingpong.$mode pingpong --mode $mode --count 2000 \
			--sender 0 --receiver 1
	done
}

sizes()
{
	local size

	for size in 64 128 1024 4096 65536 1048576; do
		measure "$1" send.$size load --size $size --seconds "$seconds"
	done
	for size in 64 4096 65536 1048576; do
		measure "$1" write.$size load --write --size $size --seconds "$seconds"
	done
}

memory()
{
	measure "$1" memory memory --count 500
}

# Each by its own RDMA CM, of which there can be one at a time.
connect()
{
	local load unload

	case $1 in
	vhca)	load="insmod $VHCA_MODULES/driver/cm/vhca_cm.ko" unload="rmmod vhca_cm" ;;
	rxe)	load="modprobe rdma_ucm" unload="modprobe -r rdma_ucm" ;;
	esac
	[ $steps = 0 ] || $load || die "no RDMA CM for $1"
	measure "$1" connect connect --count 100 --address ${address[$1]}
	[ $steps = 0 ] || $unload || die "RDMA CM of $1 does not go"
}

# Share of the messages that the polling receiver takes at most.
rate_of()
{
	awk -v round=$round -v share="$1" '$1 == round && $2 == "vhca.full.polling" &&
		$3 == "rate" { print $4 * share }' "$out/raw.tsv" 2>/dev/null
}

mode_load()
{
	measure vhca "$1" load --size 128 --sender 0 --receiver 1 --seconds "$seconds" "${@:2}"
}

# Three ways to wait, under the same loads.
modes()
{
	local mode share

	for mode in polling events hybrid; do
		mode_load full.$mode --mode $mode
	done
	for share in 0.01 0.1 0.5 0.9; do
		for mode in polling events hybrid; do
			mode_load load$share.$mode --mode $mode --rate "$(rate_of $share)"
		done
	done
	mode_load against.full --mode hybrid --against polling
	mode_load against.0.01 --mode hybrid --against events --rate "$(rate_of 0.01)"
}

wakes()
{
	measure vhca wake.1 wake --sender 0 --receiver 1 --mode events
	measure vhca wake.1000 wake --sender 0 --receiver 1 --mode events --qps 1000
	measure rxe wake.1 wake --sender 0 --receiver 1 --mode events
}

# What Documentation/performance.rst advises on.
tuning()
{
	local n

	for n in 1 4 16 32; do
		mode_load batch.$n --batch $n
	done
	for n in 256 4096 65536; do
		mode_load cqe.$n --cqe $n
	done
	for n in 4 16 64; do
		mode_load moderate.$n --mode events --rate "$(rate_of 0.5)" --moderate $n --period 100
		mode_load solicited.$n --mode events --rate "$(rate_of 0.5)" --solicited $n
	done
	mode_load epoll --mode events --epoll --rate "$(rate_of 0.1)"
	mode_load workers.1 --mode events --rate "$(rate_of 0.1)" --workers 1
	mode_load workers.2 --mode events --rate "$(rate_of 0.1)" --workers 2
}

# Where the reader's CQ has its interrupts: here, or at the sender.
affinity()
{
	local irq

	irq=$(awk '$1 == 1 { print $2 }' /sys/kernel/debug/vhca/vhca0/vectors)
	for cpu in 0 1; do
		echo $cpu >/proc/irq/"$irq"/smp_affinity_list
		measure vhca irq_cpu.$cpu wake --sender 0 --receiver 1 --mode events
	done
	echo 0-1 >/proc/irq/"$irq"/smp_affinity_list
}

beside()
{
	local n

	for n in 0 100 "$beside"; do
		measure vhca beside.$n beside --count "$n" --sender 0 --receiver 1 --seconds "$seconds"
	done
}

a_round()
{
	measure machine limits limits --sender 0 --receiver 1 --seconds "$seconds" --count 2000
	both ib_pingpong
	both perftest
	both pingpong_modes
	both sizes
	modes
	wakes
	affinity
	tuning
	both memory
	both connect
	beside
	[ $round != 1 ] || measure vhca idle idle --count 1000
}

# One process, or two that sleep: whoever spins would take what he waits for.
counts()
{
	local n

	round=1 steps=5
	for n in 0 100 "$beside"; do
		measure vhca count.beside.$n beside --count "$n" --seconds 0.1
	done
	measure vhca count.pingpong.events pingpong --mode events --count 1000 \
		--sender 0 --receiver 1
	measure machine count.eventfd eventfd --count 1000 --sender 0 --receiver 1
}

all_rounds()
{
	step=0
	for ((round = 1; round <= rounds; round++)); do
		a_round
	done
}

# The limit for copying is that of a loop: an emulated CPU does rep movsb byte by byte.
lib[machine]='env GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x40000000' dev[machine]=none
if [ -n "${COUNT-}" ]; then
	counts
	exit
fi
: >"$out/raw.tsv" || die "cannot write to '$out'"
all_rounds
steps=$step
make_rxe || die "no Soft-RoCE here"
{
	echo "kernel $(uname -r)"
	echo "cpus $(nproc)"
	echo "cpu $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
	echo "engine $(cat /sys/module/vhca_device/parameters/engine)"
	echo "rounds $rounds"
	echo "seconds $seconds"
	echo "perftest $(dpkg-query -W -f '${Version}' perftest 2>/dev/null)"
} >"$out/machine"
all_rounds
