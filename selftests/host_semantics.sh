#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# host_semantics.sh: the generated pages of Documentation/ are those that `make docs` would
# make. Runs on the host, loads nothing.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
need gcc libibverbs-dev
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "TAP version 13"
echo "1..1"
if gcc -Wall -Wextra -o "$work/gen" "$here/gen_semantics.c" &&
   "$work/gen" >"$work/page" &&
   diff "$top/Documentation/semantics.rst" "$work/page" >"$work/diff" 2>&1; then
	echo "ok 1 semantics.rst is made of semantics.h"
else
	sed 's/^/# /' "$work/diff"
	echo "not ok 1 semantics.rst is made of semantics.h"
	exit 1
fi
