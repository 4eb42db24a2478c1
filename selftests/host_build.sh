#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# host_build.sh: DKMS, install and uninstall, rebuilds, and the selftests in a
# kernel tree, all on a copy of the sources. Runs on the host, loads nothing.
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
. "$here/machine.sh"
. "$here/ktap.sh"
need dkms
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# passes NAME COMMAND...: run the command, report on it under NAME.
passes()
{
	local name=$1 status

	shift
	"$@" >"$work/log" 2>&1
	status=$?
	[ $status = 0 ] || show "$work/log"
	result $status "$name"
}

# The sources alone, as a clone has them.
clone()
{
	mkdir "$work/tree" &&
		(cd "$top" && git ls-files -coz --exclude-standard |
			xargs -0 cp --parents -at "$work/tree")
}

in_dkms()
{
	local action=$1

	shift
	dkms "$action" --dkmstree "$work/dkms" --sourcetree "$work/src" \
		--installtree "$work/lib" -m vhca -v "$version" "$@"
}

dkms_add()
{
	mkdir -p "$work/dkms" "$work/lib" "$work/src" &&
		cp -a "$work/tree" "$work/src/vhca-$version" && in_dkms add
}

dkms_build()
{
	local rel

	rel=$(kernel_release "$1") && in_dkms build -k "$rel" \
		--kernelsourcedir "/usr/src/linux-headers-$rel"
}

dkms_install()
{
	local rel

	rel=$(kernel_release "$1") && mkdir -p "$work/lib/$rel" && in_dkms install -k "$rel" --no-depmod \
		--kernelsourcedir "/usr/src/linux-headers-$rel" &&
		ls "$work/lib/$rel"/updates/dkms/vhca{,_device,_cm}.ko*
}

dkms_remove()
{
	in_dkms remove --all && ! find "$work/lib" -type f | grep .
}

make_tree()
{
	make -s -C "$work/tree" "$@" DESTDIR="$work/dest"
}

install_all()
{
	make_tree install && cd "$work/dest" &&
		find . -name vhca.ko | grep . && find . -name vhca_device.ko | grep . &&
		find . -name vhca_cm.ko | grep . &&
		find . -path '*/vhca/libibverbs.so.1' | grep . &&
		find . -name 'vhca*.pc' | grep . && test -x usr/local/bin/vhcarun &&
		test -e usr/local/include/vhca/vhca_abi.h && test -x usr/local/bin/vhcactl &&
		test -e usr/local/share/man/man8/vhcactl.8 &&
		test -e usr/local/share/bash-completion/completions/vhcactl
}

# What is installed works from where it is: the C compiler finds the headers.
use_headers()
{
	printf '#include <%s>\n' vhca/vhca_abi.h vhca_fault.h |
		gcc -Wall -Werror -fsyntax-only -xc -I"$work/dest/usr/local/include" -
}

uninstall_all()
{
	make_tree uninstall && ! find "$work/dest" ! -type d | grep .
}

# A changed header rebuilds what includes it; nothing changed rebuilds nothing.
rebuild()
{
	make_tree modules >"$work/first" || return
	! grep -E '(CC|LD) \[M\]' "$work/first" || return
	touch "$work/tree/include/vhca_prm.h"
	make -C "$work/tree" modules | grep -E 'CC \[M\].*driver/' &&
		make -C "$work/tree" modules | { ! grep -E 'CC \[M\]'; }
}

# The selftests build where the kernel keeps its own, into the folder that its build
# names, and link the system's library.
in_kernel_tree()
{
	local source

	source=$(kernel_source) && cp -a "$source" "$work/linux" &&
		cp -a "$work/tree/selftests" "$work/linux/tools/testing/selftests/vhca" &&
		mkdir "$work/out" &&
		make -C "$work/linux/tools/testing/selftests/vhca" OUTPUT="$work/out" \
			CFLAGS="-I$work/tree/uapi -I$work/tree/lib" &&
		test -x "$work/out/bench/vhca_bench"
}

plan 12
passes "clone the sources" clone
passes "dkms add" dkms_add
for k in 6.1 6.12; do
	passes "dkms build, $k" dkms_build $k
	passes "dkms install, $k" dkms_install $k
done
passes "dkms remove leaves nothing" dkms_remove
passes "make install into DESTDIR" install_all
passes "installed headers compile" use_headers
passes "a rebuild is neither too much nor too little" rebuild
passes "make uninstall leaves nothing" uninstall_all
passes "selftests build in a kernel tree" in_kernel_tree
exit $failed
