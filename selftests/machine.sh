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
	gcc | make | qperf | cpio | kmod | sparse | strace | perl | python3 | shellcheck | dkms | bc | bison | flex | cppcheck)
		command -v "$1" >/dev/null ;;
	coccinelle)		command -v spatch >/dev/null ;;
	gnuplot-nox)		command -v gnuplot >/dev/null ;;
	ibverbs-providers)	ldconfig -p | grep -q libmlx5 ;;
	ibverbs-utils)		command -v ibv_rc_pingpong >/dev/null ;;
	iproute2)		command -v ip >/dev/null ;;
	rdmacm-utils)		command -v rping >/dev/null ;;
	libc6-dev)		[ -e /usr/include/stdio.h ] ;;
	libelf-dev)		[ -e /usr/include/libelf.h ] ;;
	libssl-dev)		[ -e /usr/include/openssl/ssl.h ] ;;
	libibverbs-dev)		[ -e /usr/include/infiniband/verbs.h ] ;;
	librdmacm-dev)		[ -e /usr/include/rdma/rdma_cma.h ] ;;
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

# apt-get $@, and once more with fresh lists when the lists turn out to be old. One at
# a time across all that run now: dpkg has one lock.
apt()
{
	mkdir -p "$cache"
	(
		flock 9
		apt_alone "$@"
	) 9>"$cache/.apt"
}

apt_alone()
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
	apt install --no-install-recommends "${missing[@]}" ||
		die "could not install ${missing[*]}"
}

# Debian's meta package of kernel $1, less its linux-image-/linux-headers-.
meta_of()
{
	case $1 in
	6.1)	echo amd64 ;;
	6.12)	echo 6.12-amd64 ;;
	rt)	echo rt-amd64 ;;
	*)	die "unknown kernel '$1': 6.1, 6.12, rt, debug and race are known" ;;
	esac
}

# Newest release of kernel $1 that has headers here, or nothing.
release_here()
{
	local d

	for d in /usr/src/linux-headers-*-amd64; do
		[ -e "$d/Makefile" ] || continue
		d=${d##*/linux-headers-}
		case $1:$d in
		rt:*-rt-amd64)	echo "$d" ;;
		*-rt-amd64 | *-cloud-amd64) ;;
		"$1:$1".*)	echo "$d" ;;
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

# Where the kernel named $1 is that is made here, of Debian's source and the
# fragments in kernels/: a directory of the cache for each version of these.
made_dir()
{
	local key

	need linux-source-6.12
	key=$(cd "$here/kernels" && {
		dpkg-query -W linux-source-6.12 gcc
		cat build.sh vm.config "$1.config"
	} | sha256sum)
	echo "$cache/made-$1-${key:0:16}"
}

# The whole of the kernel's source, once for each of Debian's versions.
whole_source()
{
	local dir

	dir=$cache/source-$(dpkg-query -W -f '${Version}' linux-source-6.12)
	if [ ! -d "$dir" ]; then
		say "unpacking all of linux-source-6.12"
		rm -rf "$cache"/source-*
		mkdir -p "$dir.part"
		tar -C "$dir.part" --strip-components 1 -xJf /usr/src/linux-source-6.12.tar.xz &&
			mv -T "$dir.part" "$dir" || return
	fi
	echo "$dir"
}

# Make the kernel named $1 unless it is there, which takes a quarter of an hour. Its
# release has the key of its directory, as kernels of other trees may be there too.
make_kernel()
{
	local dir tmp source

	dir=$(made_dir "$1") || exit
	[ ! -d "$dir" ] || return 0
	need bc bison flex gcc libelf-dev libssl-dev make kmod xz-utils
	(
		flock 9
		[ ! -d "$dir" ] || exit 0
		source=$(whole_source) || exit
		say "building the $1 kernel"
		tmp=$dir.part
		bash "$here/kernels/build.sh" "$source" "$tmp" \
			"-$1-${dir##*-}" "$here/kernels"/{vm,"$1"}.config && mv -T "$tmp" "$dir"
	) 9>"$cache/.make" || die "could not build the $1 kernel"
}

# A directory that holds boot/vmlinuz-$1 and lib/modules/$1: that of a kernel made
# here, the host's root when the image is installed, else the package taken apart
# in the cache.
kernel_root()
{
	local dir=$cache/image-$1 tmp made

	for made in "$cache"/made-*/"boot/vmlinuz-$1"; do
		if [ -e "$made" ]; then
			echo "${made%/boot/*}"
			return
		fi
	done
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

# What modules for release $1 are built against.
kernel_build()
{
	local root

	root=$(kernel_root "$1") || exit
	if [ -d "$root/build" ]; then
		echo "$root/build"
	else
		echo "/usr/src/linux-headers-$1"
	fi
}

# The release that stands for kernel $1: the newest whose headers and image are
# both here or can be had. What is missing is brought, or made.
kernel_release()
{
	local meta rel dir

	case $1 in
	debug | race)
		make_kernel "$1"
		dir=$(made_dir "$1")
		ls "$dir/lib/modules"
		return ;;
	esac
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

# The part of the kernel's source that any test uses: checkpatch, kselftest.
kernel_source()
{
	local name=linux-source-6.12 dir tmp
	local parts=('*/scripts/checkpatch.pl' '*/scripts/spelling.txt'
		'*/scripts/const_structs.checkpatch' '*/scripts/kernel-doc'
		'*/scripts/coccinelle' '*/tools/testing/selftests/kselftest*'
		'*/tools/testing/selftests/lib.mk')

	dir=$cache/$name-$(echo "${parts[@]}" | cksum | cut -d ' ' -f 1)
	if [ ! -d "$dir" ]; then
		need $name xz-utils
		say "unpacking $name"
		mkdir -p "$cache" && tmp=$(mktemp -d "$cache/tmp.XXXXXX") || exit
		chmod 755 "$tmp"
		if ! tar -C "$tmp" -xJf /usr/src/$name.tar.xz --wildcards "${parts[@]}" ||
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
