#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_symbols.sh: the library has every symbol of libibverbs that an installed
# program may want, and programs that are linked with it start.
#
# Needs no device and no modules.
. ./ktap.sh

lib=../lib/build/libibverbs.so.1
run=../lib/vhcarun
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

installed()
{
	for dir in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
		if [ -e "$dir/libibverbs.so.1" ]; then
			echo "$dir/libibverbs.so.1"
			return
		fi
	done
}

# Public symbols with their versions: "name@@V" the default, "name@V" another.
public()
{
	readelf --dyn-syms -W "$1" |
	awk '$7 != "UND" && $7 != "ABS" && $8 ~ /@IBVERBS_1|@@IBVERBS_1/ { print $8 }' |
	sort
}

# The library, and nothing but what the public ABI and private nodes name.
test_public()
{
	public "$1" > "$tmp/theirs"
	public $lib > "$tmp/ours"
	comm -23 "$tmp/theirs" "$tmp/ours" > "$tmp/missing"
	sed 's/^/# missing: /' "$tmp/missing"
	[ -s "$tmp/theirs" ] && ! [ -s "$tmp/missing" ]
	result $? "every public symbol of the installed libibverbs is there"
}

test_clean()
{
	readelf --dyn-syms -W $lib |
	awk '$5 != "LOCAL" && $1 ~ /^[0-9]+:/ && $8 != "" && $7 != "UND" && $7 != "ABS" && $8 !~ /@IBVERBS_/ { print $8 }' \
		> "$tmp/stray"
	sed 's/^/# stray: /' "$tmp/stray"
	! [ -s "$tmp/stray" ]
	result $? "no other symbol is visible"
}

test_soname()
{
	readelf -d $lib | grep -q 'SONAME.*\[libibverbs\.so\.1\]'
	result $? "SONAME is libibverbs.so.1"
}

# All symbols of a program and of its libraries are found.
test_resolves()
{
	path=$(command -v "$1") || { skip "$1 resolves" "not installed"; return; }
	# ldd executes the loader as vhcarun would.
	$run ldd -r "$path" > "$tmp/ldd" 2>&1
	grep -E 'undefined|not found|no version information' "$tmp/ldd" | sed 's/^/# /' > "$tmp/bad"
	cat "$tmp/bad"
	grep -q 'lib/build/libibverbs.so.1' "$tmp/ldd" && ! [ -s "$tmp/bad" ]
	result $? "$1 resolves"
}

test_starts()
{
	LD_BIND_NOW=1 $run ibv_devices > "$tmp/out" 2>&1
	result $? "ibv_devices runs with all symbols bound"
}

# vhcarun itself
test_vhcarun()
{
	$run > /dev/null 2> "$tmp/usage"
	[ $? -eq 2 ] && grep -q usage "$tmp/usage"
	result $? "vhcarun without a program says how it is used"
	$run sh -c 'exit 7'
	[ $? -eq 7 ]
	result $? "vhcarun passes the exit status on"
	[ "$(LD_LIBRARY_PATH=/nowhere $run printenv LD_LIBRARY_PATH)" = \
	  "$(readlink -f ../lib/build):/nowhere" ]
	result $? "vhcarun keeps the search path behind the library"
}

programs="ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
	  ibv_xsrq_pingpong ibv_asyncwatch ib_send_lat ib_send_bw ib_write_bw ib_read_lat
	  raw_ethernet_bw rping ucmatose"

set -- $programs
plan $((7 + $#))

theirs=$(installed)
if [ -n "$theirs" ]; then
	test_public "$theirs"
else
	skip "every public symbol of the installed libibverbs is there" "not installed"
fi
test_clean
test_soname
for program in $programs; do
	test_resolves "$program"
done
test_starts
test_vhcarun

exit $failed
