#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# conformance.sh: rdma-core's own tests on vhca, by vhca's library, and on Soft-RoCE,
# by the distribution's: a table by family, and why tests were skipped. As root,
# modules loaded. Fails when a test fails on vhca.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
. ./rxe.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die()
{
	echo "conformance: $*" >&2
	exit 1
}

# Rows of the table; the results of both devices as $1 and $2.
table()
{
	awk -F '\t' '
	FNR == 1 { dev++ }
	!($2 in seen) { seen[$2]; family[++families] = $2 }
	{ n[$2, dev, $1]++; n["total", dev, $1]++ }
	function row(name,    d) {
		printf "%-18s", name
		for (d = 1; d <= 2; d++)
			printf "%7d%6d%6d%6d", n[name, d, "pass"], n[name, d, "fail"],
				n[name, d, "error"], n[name, d, "skip"]
		print ""
	}
	END {
		printf "%-18s%25s%25s\n%-18s", "", "vhca0", "rxe0 (Soft-RoCE)", "family"
		for (dev = 1; dev <= 2; dev++)
			printf "%7s%6s%6s%6s", "pass", "fail", "error", "skip"
		print ""
		for (f = 1; f <= families; f++)
			row(family[f])
		row("total")
	}' "$@"
}

# reasons OUTCOME FILE: tests of that outcome, together where family and reason are one.
reasons()
{
	awk -F '\t' -v outcome="$1" '
	$1 == outcome {
		what = $2 ": " (outcome == "skip" ? "" : $3 ": ") $5
		if (!n[what]++)
			list[++whats] = what
	}
	END { for (i = 1; i <= whats; i++) printf "  %3d %s\n", n[list[i]], list[i] }' "$2"
}

explain()
{
	local outcome

	for outcome in fail error skip; do
		grep -q "^$outcome" "$2" || continue
		printf '\n%s on %s\n' "$outcome" "$1"
		reasons $outcome "$2"
	done
}

# A test wants huge pages.
echo 16 >/proc/sys/vm/nr_hugepages
../lib/vhcarun ./conformance.py --dev vhca0 >"$work/vhca0" 2>"$work/vhca0.log"
make_rxe && modprobe rdma_ucm || die "no Soft-RoCE here"
./conformance.py --dev rxe0 --gid 1 >"$work/rxe0" 2>"$work/rxe0.log"

echo
echo "Tests of rdma-core $(dpkg-query -W -f '${Version}' python3-pyverbs), those of vendors'" \
	"providers left out, Linux $(uname -r)"
echo
table "$work/vhca0" "$work/rxe0"
explain vhca0 "$work/vhca0"
explain rxe0 "$work/rxe0"
if grep -q '^\(fail\|error\)' "$work/vhca0"; then
	cat "$work/vhca0.log" >&2
	exit 1
fi
[ -s "$work/vhca0" ]
