#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_programs.sh: programs as the distribution ships them, built against its
# libibverbs, run unchanged on vhca: ibv_devices, ibv_devinfo, ibv_asyncwatch. Those
# that move data have tests of their own: test_pingpong.sh, test_perftest.sh,
# test_ucx.sh, test_conformance.sh.
. ./programs.sh

test_devices()
{
	$run ibv_devices > "$tmp/out" 2>&1
	ok=$?
	for dir in /sys/class/vhca/vhca*; do
		guid=$(tr -d : < "$dir/node_guid")
		grep -q "${dir##*/}[[:space:]]*$guid" "$tmp/out" || ok=1
	done
	[ $ok -eq 0 ] || show "$tmp/out"
	result $ok "ibv_devices lists every function with its GUID"
}

test_devinfo()
{
	$run ibv_devinfo -v > "$tmp/out" 2>&1
	ok=$?
	for what in 'hca_id:.*vhca0' 'hca_id:.*vhca1' 'transport:.*InfiniBand' \
		    'state:.*PORT_ACTIVE' 'max_mtu:.*4096' 'link_layer:.*InfiniBand' \
		    'GID\[ *0\]:.*fe80:'; do
		grep -q "$what" "$tmp/out" || { echo "# no $what"; ok=1; }
	done
	[ $ok -eq 0 ] || show "$tmp/out"
	result $ok "ibv_devinfo -v"
	$run ibv_devinfo -d vhca1 > "$tmp/out" 2>&1 && grep -q vhca1 "$tmp/out" &&
		! grep -q vhca0 "$tmp/out"
	result $? "ibv_devinfo -d vhca1"
	$run ibv_devinfo -l > "$tmp/out" 2>&1 && grep -q vhca0 "$tmp/out"
	result $? "ibv_devinfo -l"
	! $run ibv_devinfo -d vhca99 > "$tmp/out" 2>&1
	result $? "ibv_devinfo of a device that is not there fails"
}

# Has process $1 a file open whose name contains $2?
has_open()
{
	for fd in /proc/"$1"/fd/*; do
		case $(readlink "$fd") in
		*"$2"*) return 0 ;;
		esac
	done
	return 1
}

# Sleeps, with the device and an event file open.
watches()
{
	has_open "$1" /dev/vhca0 && has_open "$1" anon_inode &&
	grep -q '^State:.*S (sleeping)' /proc/"$1"/status
}

test_asyncwatch()
{
	$run ibv_asyncwatch -d vhca0 > "$tmp/out" 2>&1 &
	pid=$!
	wait_until watches $pid
	ok=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $ok -eq 0 ] || show "$tmp/out"
	result $ok "ibv_asyncwatch opens the device and waits for events"
}

# pyverbs links librdmacm, and these modules of it the vendors' libraries.
test_pyverbs()
{
	LD_BIND_NOW=1 $run /usr/bin/python3 - > "$tmp/out" 2>&1 <<-P
	import pyverbs.cmid
	import pyverbs.device
	import pyverbs.providers.efa.efadv
	import pyverbs.providers.mlx5.mlx5dv
	print(*sorted(dev.name.decode() for dev in pyverbs.device.get_device_list()))
	P
	[ "$(cat "$tmp/out")" = "$(ls -x /sys/class/vhca | tr -s ' ')" ]
	ok=$?
	[ $ok -eq 0 ] || show "$tmp/out"
	result $ok "beside libmlx5, libefa and librdmacm, pyverbs sees vhca's devices and no other"
}

plan 7
test_devices
test_devinfo
test_asyncwatch
test_pyverbs
exit $failed
