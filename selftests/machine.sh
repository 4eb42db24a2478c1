#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# machine.sh: what the host must have. Packages are installed on Debian as
# root, and named with the install command elsewhere; kernel images and the
# kernel's own tools come from Debian's packages and are kept in a cache
# outside the tree. Sourced by other scripts, or run: machine.sh FUNCTION ARGS.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vhca

say()
{
	echo "${0##*/}: $*" >&2
}

die()
{
	say "$*"
	exit 1
}

# Is the thing here that package $1 is wanted for?
have()
{
	case $1 in
	busybox-static)
		command -v busybox >/dev/null &&
			! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
	gcc | make | cpio | kmod | sparse | strace | perl | shellcheck | dkms | bc)
		command -v "$1" >/dev/null ;;
	ibverbs-providers)	ldconfig -p | grep -q libmlx5 ;;
	ibverbs-utils)		command -v ibv_rc_pingpong >/dev/null ;;
	iproute2)		command -v ip >/dev/null ;;
	rdmacm-utils)		command -v rping >/dev/null ;;
	libc6-dev)		[ -e /usr/include/stdio.h ] ;;
	libelf-dev)		[ -e /usr/include/libelf.h ] ;;
	libibverbs-dev)		[ -e /usr/include/infiniband/verbs.h ] ;;
	linux-source-*)		[ -e "/usr/src/$1.tar.xz" ] ;;
	perftest)		command -v ib_send_lat >/dev/null ;;
	procps)			command -v ps >/dev/null ;;
	python3-pyverbs)	[ -e /usr/share/doc/rdma-core/tests/run_tests.py ] &&
					/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null ;;
	qemu-system-x86)	command -v qemu-system-x86_64 >/dev/null ;;
	rdma-core)		[ -e /usr/share/doc/rdma-core ] ;;
	ucx-utils)		command -v ucx_perftest >/dev/null ;;
	xz-utils)		command -v xz >/dev/null ;;
	*)			dpkg-query -W -f '${Status}' "$1" 2>/dev/null |
					grep -q ' installed$' ;;
	esac
}

is_debian_root()
{
	command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]
}

# apt-get $@, and once more with fresh lists when the lists turn out to be old.
apt()
{
	local log

	log=$(mktemp)
	if DEBIAN_FRONTEND=noninteractive apt-get -y "$@" >"$log" 2>&1 </dev/null ||
	   { apt-get update >>"$log" 2>&1 &&
	     DEBIAN_FRONTEND=noninteractive apt-get -y "$@" >"$log" 2>&1 </dev/null; }; then
		rm -f "$log"
		return 0
	fi
	cat "$log" >&2
	rm -f "$log"
	return 1
}

# Make sure of packages $@.
need()
{
	local p missing=()

	for p; do
		have "$p" || missing+=("$p")
	done
	[ ${#missing[@]} = 0 ] && return 0
	is_debian_root ||
		die "missing packages: apt-get install ${missing[*]}"
	say "installing ${missing[*]}"
	# One at a time across all that run now: dpkg has one lock.
	mkdir -p "$cache"
	(
		flock 9
		apt install --no-install-recommends "${missing[@]}"
	) 9>"$cache/.apt" || die "could not install ${missing[*]}"
}

# Debian's meta package of kernel $1, less its linux-image-/linux-headers-.
meta_of()
{
	case $1 in
	6.1)	echo amd64 ;;
	6.12)	echo 6.12-amd64 ;;
	*)	die "unknown kernel '$1': 6.1 and 6.12 are known" ;;
	esac
}

# Newest release of kernel $1 that has headers here, or nothing.
release_here()
{
	local d

	for d in "/usr/src/linux-headers-$1."*-amd64; do
		case ${d##*/linux-headers-} in
		*-rt-amd64 | *-cloud-amd64 | *'*'*) ;;
		*) [ -e "$d/Makefile" ] && echo "${d##*/linux-headers-}" ;;
		esac
	done | sort -V | tail -n 1
}

# Put the image of release $1 into directory $2.
unpack_image()
{
	apt download "linux-image-$1" >/dev/null || return
	dpkg -x linux-image-"$1"_*.deb "$2" || return
	rm -f linux-image-"$1"_*.deb
	depmod -b "$2" "$1"
}

# A directory that holds boot/vmlinuz-$1 and lib/modules/$1: the host's root
# when the image is installed, else the package taken apart in the cache.
kernel_root()
{
	local dir=$cache/image-$1 tmp

	if [ -r "/boot/vmlinuz-$1" ] && [ -e "/lib/modules/$1/modules.dep.bin" ]; then
		echo /
		return
	fi
	if [ ! -d "$dir" ]; then
		command -v apt-get >/dev/null ||
			die "no image of $1: install linux-image-$1"
		say "fetching linux-image-$1"
		mkdir -p "$cache" && tmp=$(mktemp -d "$cache/tmp.XXXXXX") || exit
		chmod 755 "$tmp"
		if ! (cd "$tmp" && unpack_image "$1" root) ||
		   ! { mv -T "$tmp/root" "$dir" 2>/dev/null || [ -d "$dir" ]; }; then
			rm -rf "$tmp"
			die "could not fetch linux-image-$1"
		fi
		rm -rf "$tmp"
	fi
	echo "$dir"
}

# The release that stands for kernel $1: the newest whose headers and image are
# both here or can be had. What is missing is brought.
kernel_release()
{
	local meta rel

	meta=$(meta_of "$1") || exit
	rel=$(release_here "$1")
	if [ -z "$rel" ] || ! (kernel_root "$rel") >/dev/null; then
		# None yet, or so old that its image is no longer on offer.
		is_debian_root ||
			die "no kernel $1: apt-get install linux-headers-$meta"
		say "installing linux-headers-$meta"
		apt install --no-install-recommends "linux-headers-$meta" || exit
		rel=$(release_here "$1")
		kernel_root "$rel" >/dev/null
	fi
	echo "$rel"
}

# The part of the kernel's source that is used here: checkpatch, kselftest.
kernel_source()
{
	local name=linux-source-6.12 dir tmp

	dir=$cache/$name
	if [ ! -d "$dir" ]; then
		need $name xz-utils
		say "unpacking $name"
		mkdir -p "$cache" && tmp=$(mktemp -d "$cache/tmp.XXXXXX") || exit
		chmod 755 "$tmp"
		if ! tar -C "$tmp" -xJf /usr/src/$name.tar.xz --wildcards \
			'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' \
			'*/scripts/const_structs.checkpatch' '*/scripts/kernel-doc' \
			'*/tools/testing/selftests/kselftest*' \
			'*/tools/testing/selftests/lib.mk' ||
		   ! { mv -T "$tmp/$name" "$dir" 2>/dev/null || [ -d "$dir" ]; }; then
			rm -rf "$tmp"
			die "could not unpack $name"
		fi
		rm -rf "$tmp"
	fi
	echo "$dir"
}

# Headers to build for when nobody says which: the running kernel's, else the
# newest of Debian's.
default_kdir()
{
	local rel

	if [ -e "/lib/modules/$(uname -r)/build/Makefile" ]; then
		echo "/lib/modules/$(uname -r)/build"
		return
	fi
	rel=$(release_here 6.12)
	[ -n "$rel" ] || rel=$(release_here 6.1)
	if [ -z "$rel" ]; then
		need linux-headers-6.12-amd64
		rel=$(release_here 6.12)
	fi
	echo "/usr/src/linux-headers-$rel"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	"$@"
fi
