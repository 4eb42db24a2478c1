#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh [TEST...]: run all tests, or those named: host_*.sh on this host, the
# others in a VM for each configuration: a kernel, with or without an IOMMU. Where
# nothing is named, each configuration has its part, see tests_of(). One boot runs
# them all; after a crash another boot runs those that are left. JOBS of them run at
# a time (2): a test waits more than it works. Ends with the last words of what failed,
# what the tests counted, over all configurations, and the line "N passed, N failed".
# CONFIGS names other configurations, e.g. CONFIGS="6.12 --iommu,rt", and leaves out the
# host. From the second UNTIL on, of date +%s, no test is begun, and those left are named.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
cd "$here" || exit 1

logs=$top/build/check
mkdir -p "$logs"
rm -f "$logs"/*

# failure WHAT: of the configuration whose files begin with $log.
failure()
{
	printf 'fail 1\nfailed %s\n' "$1" >>"$log.results"
}

fails()
{
	awk '$1 == "fail" { n += $2 } END { print n + 0 }' "$log.results"
}

# run CONFIG COMMAND...: run it, keep its log, and in $result what ktap.awk leaves.
run()
{
	local config=$1

	shift
	rm -f "$result"
	: >"$log.err"
	"$@" 2>"$log.err" | tee -a "$log.log" |
		awk -v config="$config" -v result="$result" -f ktap.awk
	status=${PIPESTATUS[0]}
	# A report that a test has been given is on the screen already.
	grep -q 'kernel report$' "$result" || sed 's/^/    /' "$log.err"
	cat "$result" >>"$log.results"
}

# Tests named in $@ that no result in $result tells of.
left_over()
{
	printf '%s\n' "$@" |
		grep -vxF -f <(sed -n 's/^\(done\|open\) //p' "$result")
}

run_host()
{
	local log=$logs/host result=$logs/host.run status

	run host bash ./run_tests.sh "$@"
	# shellcheck disable=SC2046
	set -- $(left_over "$@")
	[ $# = 0 ] || failure "host: not run: $*"
}

# run_vm CONFIG TEST...
run_vm()
{
	local config=$1 kernel=${1%% *} before faults=0 open status
	local log=$logs/${1// /}
	local result=$log.run

	shift
	: >"$log.results"
	while [ $# -gt 0 ]; do
		before=$(fails)
		# shellcheck disable=SC2086
		run "$config" ./vm --kernel $kernel ${config#"$kernel"} --timeout 6000 \
			-- bash ./run_tests.sh "$@"
		open=$(sed -n 's/^open //p' "$result")
		if [ "$status" != 0 ] && [ $faults -lt 3 ] &&
		   grep -q 'int3: 0000' "$log.err"; then
			# A fault of the emulated processor, not of the test.
			faults=$((faults + 1))
			echo "$config: emulator fault; $open again"
			# shellcheck disable=SC2046
			set -- $open $(left_over "$@")
			continue
		fi
		[ -z "$open" ] || failure "$config: $open: did not end"
		if [ "$status" != 0 ] && [ "$(fails)" = "$before" ]; then
			failure "$config: VM ended with status $status"
		fi
		if ! grep -q '^\(done\|open\) ' "$result"; then
			failure "$config: no test ran"
			return
		fi
		# shellcheck disable=SC2046
		set -- $(left_over "$@")
	done
}

# Minutes each, over paths that the other tests take as well: for 6.12 alone.
long_tests=(test_conformance.sh test_mistakes.sh test_perftest.sh test_pingpong_types.sh
	test_rdmacm_programs.sh test_sanitized.sh test_ucx.sh test_vhcactl.sh)
# Too long for a slow kernel; or about memory in use, of which such a one keeps some that
# was freed, to watch it. There kmemleak tells what is lost.
slow_tests=(test_churn test_pingpong.sh test_rdmacm_programs.sh test_symbols.sh)
# What a mapping or an interrupt matters to.
iommu_tests=(test_channel test_cq_resize test_dm test_dmabuf test_functions test_import
	test_irq test_isolation test_lifetime test_mmap test_mr test_mr_verbs test_ops
	test_removal_verbs test_reset.sh test_send test_srq test_traffic test_ud
	test_user_queues test_windows test_xrc)
# Minutes each on a kernel that watches itself: last there, where time may be short.
heavy_tests=(test_cm_bind.sh test_cm_load.sh test_cm_many test_events.sh
	test_lifetime test_programs.sh test_syscalls test_uc test_ud test_verbs_channel
	test_wr_api)

# Those of names in $@ that standard input has, or with -v has not.
among()
{
	local how=

	[ "$1" != -v ] || { how=-v; shift; }
	grep $how -xF -f <(printf '%s\n' "$@")
}

# Those of standard input for a kernel that watches itself.
watched_tests()
{
	local light

	mapfile -t light < <(among -v "${long_tests[@]}" "${slow_tests[@]}" "${heavy_tests[@]}")
	printf '%s\n' "${light[@]}" "${heavy_tests[@]}"
}

# The tests of $tests for configuration $1 when no test was named.
tests_of()
{
	case $1 in
	6.12)		cat ;;
	*--iommu)	among "${iommu_tests[@]}" ;;
	debug | race)	watched_tests ;;
	*)		among -v "${long_tests[@]}" ;;
	esac < <(printf '%s\n' "${tests[@]}")
}

# start COMMAND...: beside others, as soon as there is room.
start()
{
	while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do
		wait -n
	done
	"$@" &
}

# The sum of all results of $1.
sum()
{
	cat "$logs"/*.results | awk -v what="$1" '$1 == what { n += $2 } END { print n + 0 }'
}

all=
tests=()
host_tests=()
for t in "${@:-}"; do
	case $t in
	'')	all=1
		[ -n "${CONFIGS-}" ] || host_tests+=(host_*.sh)
		mapfile -t tests < <(printf '%s\n' test_*.c test_*.sh | sed 's/\.c$//') ;;
	host_*)	host_tests+=("$t") ;;
	*)	tests+=("$t") ;;
	esac
done

[ ${#host_tests[@]} = 0 ] || start run_host "${host_tests[@]}"
if [ ${#tests[@]} != 0 ]; then
	IFS=,
	for config in ${CONFIGS:-6.12,debug,6.1,6.12 --iommu}; do
		IFS=$' \t\n'
		some=("${tests[@]}")
		[ -z "$all" ] || mapfile -t some < <(tests_of "$config")
		start run_vm "$config" "${some[@]}"
	done
fi
wait

pass=$(sum pass) fail=$(sum fail) skip=$(sum skip)
echo
sed -n 's/^said //p' "$logs"/*.results
awk '$1 == "figure" { n = $2; sub(/^figure [0-9]+ /, ""); sum[$0] += n }
	END { for (what in sum) print what ": " sum[what] }' "$logs"/*.results | sort
sed -n 's/^late /no time left: /p; s/^failed /failed: /p' "$logs"/*.results
if [ "$skip" != 0 ]; then
	echo "$pass passed, $fail failed, $skip skipped"
else
	echo "$pass passed, $fail failed"
fi
[ "$fail" = 0 ] && [ "$pass" != 0 ]
