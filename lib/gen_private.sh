#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# gen_private.sh: private symbols that installed programs and libraries want.
#
# Vendor libraries and some tools of rdma-core use symbols of libibverbs that
# are private to it, in version nodes that change with its releases. Programs
# that are linked with them (perftest is) start only when these symbols exist.
# This looks up what the installed ones need, and writes a stub for each that is
# not implemented, and the version nodes. Vendor libraries register their drivers
# when they are loaded, and get no further: the devices they see are none of
# theirs. Should one call another of these all the same, it fails.
#
# usage: gen_private.sh OUT.c OUT.map LIBDIRS BINDIRS [IMPLEMENTED...]

set -eu

out_c=$1
out_map=$2
libdirs=$3
bindirs=$4
shift 4
implemented=" $* "

lib=libibverbs.so.1

# Files of the given directories that name the library.
users()
{
	for dir in $libdirs; do
		find "$dir" -maxdepth 1 -name '*.so*' -type f 2>/dev/null
	done
	for dir in $bindirs; do
		find -L "$dir" -maxdepth 1 -type f 2>/dev/null
	done
}

# "NODE NAME" of each private symbol that is wanted.
wanted()
{
	users | sort -u | tr '\n' '\0' | xargs -0 -r grep -lsF -- $lib |
	while read -r file; do
		readelf --dyn-syms -W "$file" 2>/dev/null || :
	done |
	sed -n 's/.* UND \([A-Za-z0-9_]*\)@\(IBVERBS_PRIVATE_[A-Za-z0-9_]*\).*/\2 \1/p' |
	sort -u
}

# "NAME SIZE" of each variable of the installed library: no function stub will do.
variables()
{
	for dir in $libdirs; do
		[ -e "$dir/$lib" ] || continue
		readelf --dyn-syms -W "$dir/$lib" |
		awk '$4 == "OBJECT" && $7 != "UND" && $7 != "ABS" {
			sub(/@.*/, "", $8); print $8, $3 }'
		return 0
	done
}

stub()
{
	case $implemented in
	*" $1 "*)
		return 0
		;;
	esac
	size=$(echo "$vars" | sed -n "s/^$1 //p")
	if [ -n "$size" ]; then
		echo "VISIBLE char $1[$size];"
		return 0
	fi
	case $1 in
	verbs_open_device|*_alloc_context)
		function "void *" "$1" NULL
		;;
	*)
		function "int " "$1" EOPNOTSUPP
		;;
	esac
}

function()
{
	printf 'VISIBLE %s%s(void);\nVISIBLE %s%s(void)\n' "$1" "$2" "$1" "$2"
	printf '{\n\terrno = EOPNOTSUPP;\n\treturn %s;\n}\n' "$3"
}

list=$(wanted)
vars=$(variables)

{
	echo "/* Made by gen_private.sh. */"
	echo "#include <errno.h>"
	echo "#include <stddef.h>"
	echo "#define VISIBLE __attribute__((visibility(\"default\")))"
	echo "$list" | while read -r _ name; do
		[ -z "$name" ] || stub "$name"
	done
} > "$out_c"

echo "$list" | awk '
	NF == 2 && $1 != node {
		if (node) print "};"
		node = $1
		print node " {\n\tglobal:"
	}
	NF == 2 { print "\t\t" $2 ";" }
	END { if (node) print "};" }' > "$out_map"
