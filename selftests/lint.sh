#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lint.sh: what can be told without running anything. SPDX lines, shellcheck,
# the kernel's checkpatch, then a build at W=1 with sparse for both kernels.
# Any finding fails.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
cd "$top" || exit 1
need gcc make sparse perl shellcheck xz-utils libc6-dev

bad=0

# check NAME COMMAND...: any output or a failure is a finding.
check()
{
	local name=$1 output status

	shift
	output=$("$@" 2>&1)
	status=$?
	if [ $status = 0 ] && [ -z "$output" ]; then
		echo "lint: $name: ok"
		return
	fi
	echo "lint: $name:"
	printf '%s\n' "$output"
	bad=1
}

files()
{
	git ls-files -co --exclude-standard -- "$@" | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done
}

spdx()
{
	local f

	files | while read -r f; do
		head -n 2 "$f" | grep -q 'SPDX-License-Identifier: ' ||
			echo "$f: no SPDX line"
	done
}

# Scripts by their first line, whatever they are called.
scripts()
{
	files | while read -r f; do
		head -n 1 "$f" | grep -Eq '^#!.*\b(ba|da)?sh\b' && echo "$f"
	done
}

check_scripts()
{
	scripts | xargs shellcheck -x -S warning -e SC1090,SC1091,SC2054,SC2154
}

# check_patch IGNORED PATH...
check_patch()
{
	local source ignored=$1

	shift
	source=$(kernel_source) || return
	files "$@" | grep '\.[ch]$' | xargs -r -n 8 -P "$(nproc)" perl "$source/scripts/checkpatch.pl" \
		--no-tree --no-summary --strict --terse --show-types \
		--ignore "$ignored" -f
}

# compat.h is the one place for kernel versions.
check_modules()
{
	check_patch LINUX_VERSION_CODE,CONSTANT_COMPARISON driver device include
}

# What the kernel asks of its own code only: its types, its macros, its way to
# return an errno and to declare.
check_user()
{
	local ignored=PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,STRCPY

	ignored+=,USE_NEGATIVE_ERRNO,ENOSYS,BIT_MACRO,AVOID_EXTERNS,ARRAY_SIZE,CAMELCASE,VOLATILE
	check_patch $ignored uapi lib selftests
}

# The modules for kernel $1, all anew, with sparse.
check_build()
{
	local rel

	rel=$(kernel_release "$1") || return
	rm -f "build/$rel"/*/*.o
	# Debian's headers have no vmlinux to take BTF from: no finding.
	make -s modules C=2 W=1 KDIR="/usr/src/linux-headers-$rel" 2>&1 |
		grep -v '^Skipping BTF generation'
	return "${PIPESTATUS[0]}"
}

check SPDX spdx
check shellcheck check_scripts
check "checkpatch, kernel" check_modules
check "checkpatch, user" check_user
check "sparse and W=1, 6.1" check_build 6.1
check "sparse and W=1, 6.12" check_build 6.12
exit $bad
