#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh [TEST...]: run all tests, or those named: host_*.sh on this host, the
# others in the VM, on each kernel and once with an IOMMU (there, unless tests are
# named, without the long runs of other people's programs). One boot runs them all;
# after a crash another boot runs those that are left. Ends with the line
# "N passed, N failed". CONFIGS names fewer kernels, e.g. CONFIGS=6.1.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
cd "$here" || exit 1

logs=$top/build/check
mkdir -p "$logs"
rm -f "$logs"/*
result=$logs/result
pass=0 fail=0 skip=0
failures=()

failure()
{
	fail=$((fail + 1))
	failures+=("$1")
}

# Add what ktap.awk left in $result to the totals.
add_result()
{
	local key value

	while read -r key value; do
		case $key in
		pass)	pass=$((pass + value)) ;;
		fail)	fail=$((fail + value)) ;;
		skip)	skip=$((skip + value)) ;;
		failed)	failures+=("$value") ;;
		esac
	done <"$result"
}

# run CONFIG COMMAND...: run it, keep its log, count its results.
run()
{
	local config=$1 log=$logs/${1// /}

	shift
	rm -f "$result"
	: >"$log.err"
	"$@" 2>"$log.err" | tee -a "$log.log" |
		awk -v config="$config" -v result="$result" -f ktap.awk
	status=${PIPESTATUS[0]}
	# A report that a test has been given is on the screen already.
	grep -q 'kernel report$' "$result" || sed 's/^/    /' "$log.err"
	add_result
}

# Tests named in $@ that no result in $result tells of.
left_over()
{
	printf '%s\n' "$@" |
		grep -vxF -f <(sed -n 's/^\(done\|open\) //p' "$result")
}

run_host()
{
	run host bash ./run_tests.sh "$@"
	# shellcheck disable=SC2046
	set -- $(left_over "$@")
	[ $# = 0 ] || failure "host: not run: $*"
}

# run_vm CONFIG TEST...
run_vm()
{
	local config=$1 kernel=${1%% *} before faults=0 open

	shift
	while [ $# -gt 0 ]; do
		before=$fail
		# shellcheck disable=SC2086
		run "$config" ./vm --kernel $kernel ${config#"$kernel"} --timeout 3000 \
			-- bash ./run_tests.sh "$@"
		open=$(sed -n 's/^open //p' "$result")
		if [ $status != 0 ] && [ $faults -lt 3 ] &&
		   grep -q 'int3: 0000' "$logs/${config// /}.err"; then
			# A fault of the emulated processor, not of the test.
			faults=$((faults + 1))
			echo "$config: emulator fault; $open again"
			# shellcheck disable=SC2046
			set -- $open $(left_over "$@")
			continue
		fi
		[ -z "$open" ] || failure "$config: $open: did not end"
		if [ $status != 0 ] && [ $fail = "$before" ]; then
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

# Minutes each, over paths that the other tests take as well: once a kernel is enough.
long_tests=(test_conformance.sh test_perftest.sh test_pingpong_types.sh test_ucx.sh)

all=
tests=()
host_tests=()
for t in "${@:-}"; do
	case $t in
	'')	all=1
		host_tests+=(host_*.sh)
		mapfile -t tests < <(printf '%s\n' test_*.c test_*.sh | sed 's/\.c$//') ;;
	host_*)	host_tests+=("$t") ;;
	*)	tests+=("$t") ;;
	esac
done

[ ${#host_tests[@]} = 0 ] || run_host "${host_tests[@]}"
if [ ${#tests[@]} != 0 ]; then
	IFS=,
	for config in ${CONFIGS:-6.1,6.12,6.12 --iommu}; do
		IFS=$' \t\n'
		case $all$config in
		1*--iommu)	mapfile -t some < <(printf '%s\n' "${tests[@]}" |
					grep -vxF -f <(printf '%s\n' "${long_tests[@]}"))
				run_vm "$config" "${some[@]}" ;;
		*)		run_vm "$config" "${tests[@]}" ;;
		esac
	done
fi

[ $((pass + fail)) != 0 ] || failure "no test ran"
if [ ${#failures[@]} != 0 ]; then
	echo
	printf 'failed: %s\n' "${failures[@]}"
fi
if [ $skip != 0 ]; then
	echo "$pass passed, $fail failed, $skip skipped"
else
	echo "$pass passed, $fail failed"
fi
[ $fail = 0 ]
