#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh SOURCE DIR NAME CONFIG...: build a kernel of SOURCE's tree and the fragments
# CONFIG, on top of tinyconfig, whose release ends in NAME, so that DIR holds
#   build/                  what modules are built against
#   boot/vmlinuz-RELEASE
#   lib/modules/RELEASE/    no modules; all that is wanted is built in
# An option that the result does not have as a fragment names it is an error.
set -e
source=$1
dir=$2
name=$3
shift 3
build=$dir/build
mkdir -p "$build"

quietly()
{
	"$@" >"$dir/log" 2>&1 </dev/null && return
	tail -n 30 "$dir/log" >&2
	return 1
}

kernel()
{
	quietly make -C "$source" O="$build" LOCALVERSION="$name" "$@"
}

# Options of fragments $@ that .config does not have.
lost()
{
	cat "$@" | grep '^CONFIG_' | sed 's/^\(.*\)=n$/# \1 is not set/' |
		while read -r option; do
			case $option in
			'# '*)	! grep -q "^${option:2:-11}=" "$build/.config" || echo "$option" ;;
			*)	grep -qxF "$option" "$build/.config" || echo "$option" ;;
			esac
		done
}

kernel tinyconfig
quietly "$source/scripts/kconfig/merge_config.sh" -m -O "$build" "$build/.config" "$@"
kernel olddefconfig
lost=$(lost "$@")
if [ -n "$lost" ]; then
	printf 'not to be had:\n%s\n' "$lost" >&2
	exit 1
fi
kernel -j"$(nproc)" bzImage modules
release=$(make -s --no-print-directory -C "$source" O="$build" LOCALVERSION="$name" kernelrelease)
mkdir -p "$dir/boot" "$dir/lib/modules/$release"
cp "$build/arch/x86/boot/bzImage" "$dir/boot/vmlinuz-$release"
cp "$build"/modules.{order,builtin,builtin.modinfo} "$dir/lib/modules/$release/"
depmod -b "$dir" "$release"
# Modules are built against headers, symbols and host programs; the objects only
# fill the disk.
find "$build" \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \) -not -path '*/scripts/*' \
	-not -path '*/tools/*' -delete
rm -f "$build"/vmlinux "$build"/.tmp_vmlinux*
