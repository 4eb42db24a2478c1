#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# conformance.sh: rdma-core's own tests on vhca, by vhca's library, and on Soft-RoCE,
# by the distribution's: a table by family, and why tests were skipped. As root,
# modules loaded. Fails when a test fails on vhca.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die()
{
	echo "conformance: $*" >&2
	exit 1
}

listed()
{
	rdma link show rxe0/1 2>/dev/null | grep -q ACTIVE &&
		grep -q '0000:ffff:' /sys/class/infiniband/rxe0/ports/1/gids/1
}

# Soft-RoCE on one end of a veth; GID 1 is that of the IPv4 address.
make_rxe()
{
	local i

	modprobe -a crc32_generic ib_uverbs rdma_ucm rdma_rxe veth &&
		ip link add veth0 type veth peer name veth1 &&
		ip address add 192.0.2.1/24 dev veth0 &&
		ip link set veth1 up && ip link set veth0 up &&
		rdma link add rxe0 type rxe netdev veth0 || return
	for ((i = 0; i < 100; i++)); do
		listed 2>/dev/null && return
		sleep 0.1
	done
	return 1
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
make_rxe || die "no Soft-RoCE here"
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
