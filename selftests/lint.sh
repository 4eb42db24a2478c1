#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lint.sh: what can be told without running anything. SPDX lines, shellcheck,
# the kernel's checkpatch, cppcheck on the library, then a build at W=1 with sparse
# (which also checks endianness and lock contexts) for both kernels, and the kernel's
# Coccinelle scripts. Any finding fails.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
cd "$top" || exit 1
need gcc make sparse perl shellcheck xz-utils libc6-dev cppcheck coccinelle

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

# compat.h is the one place for kernel versions; ENOSYS is in the ABI of RDMA CM.
check_modules()
{
	check_patch LINUX_VERSION_CODE,CONSTANT_COMPARISON,ENOSYS driver device include
}

# What the kernel asks of its own code only: its types, its macros, its way to
# return an errno and to declare.
check_user()
{
	local ignored=PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,STRCPY

	ignored+=,USE_NEGATIVE_ERRNO,ENOSYS,BIT_MACRO,AVOID_EXTERNS,ARRAY_SIZE,CAMELCASE,VOLATILE
	check_patch $ignored uapi lib selftests
}

check_library()
{
	cppcheck --quiet --error-exitcode=1 --std=c11 -j "$(nproc)" \
		--enable=warning,portability,performance --suppress=missingIncludeSystem \
		-Iuapi -Ilib -D_GNU_SOURCE -D__x86_64__ lib
}

# Run Coccinelle script $1 as the kernel's coccicheck does, on the files of $2, where an
# empty line is between any two: all together, some scripts never come to an end.
cocci_script()
{
	local options script=$1

	# It looks for paths through functions by recursion.
	ulimit -s "$(ulimit -H -s)"
	options=$(sed -n 's|^// Options: *||p' "$script" | head -n 1)
	# shellcheck disable=SC2086
	spatch -D report --very-quiet --no-show-diff $options --cocci-file "$script" \
		--file-groups "$2" 2>&1 |
		grep -v '^warning: .* should .* be a metavariable?$'
	return "${PIPESTATUS[0]}"
}

# All of them that report, but for those that want OCaml.
check_cocci()
{
	local source files status

	source=$(kernel_source) || return
	files=$(mktemp)
	printf '%s\n\n' device/*.c driver/*.c driver/cm/*.c >"$files"
	export -f cocci_script
	grep -rl 'virtual report' "$source/scripts/coccinelle" | xargs grep -L 'script:ocaml' |
		xargs -P "$(nproc)" -I '{}' bash -c 'cocci_script "$@"' - '{}' "$files"
	status=$?
	rm -f "$files"
	return $status
}

# The modules for kernel $1, all anew, with sparse.
check_build()
{
	local rel

	rel=$(kernel_release "$1") || return
	rm -f "build/$rel"/*/*.o "build/$rel"/*/*/*.o
	# Debian's headers have no vmlinux to take BTF from: no finding.
	make -s modules C=2 W=1 KDIR="/usr/src/linux-headers-$rel" 2>&1 |
		grep -v '^Skipping BTF generation'
	return "${PIPESTATUS[0]}"
}

# What is missing is brought here: whatever a check says is a finding.
kernel_release 6.1 >/dev/null && kernel_release 6.12 >/dev/null && kernel_source >/dev/null ||
	die "no kernels to build for"

check SPDX spdx
check shellcheck check_scripts
check "checkpatch, kernel" check_modules
check "checkpatch, user" check_user
check "cppcheck, library" check_library
check "sparse and W=1, 6.1" check_build 6.1
check "sparse and W=1, 6.12" check_build 6.12
check "Coccinelle" check_cocci
exit $bad
