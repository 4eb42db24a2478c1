#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_cm_load.sh: vhca_cm comes and goes; it does not come beside the kernel's own
# rdma_ucm, and does not go while it is used.
. ./cm.sh

times=3
port=7800

told()
{
	dmesg | grep -q "vhca_cm: .*$1"
}

# A conversation, and what was loaded for it is gone.
once()
{
	port=$((port + 1))
	cm_load && pair tcp $port "rping -s -C 2 -a $address -p $port" \
		"rping -c -C 2 -a $address -p $port" && cm_unload
}

test_again_and_again()
{
	for i in $(seq $times); do
		once || break
	done
	[ "$i" -eq $times ] && [ ! -e /dev/infiniband/rdma_cm ] &&
		[ ! -e /sys/kernel/debug/vhca_cm ]
	pair_result $? "it comes and goes $times times"
}

test_in_use()
{
	cm_load
	exec 3<> /dev/infiniband/rdma_cm
	! rmmod vhca_cm 2> /dev/null
	result $? "it stays while somebody has it open"
	exec 3>&-
	! rmmod vhca 2> /dev/null
	result $? "vhca stays while it is there"
	cm_unload
	[ ! -e /sys/module/vhca_cm ]
	result $? "it goes when nobody has it open"
}

test_beside_the_kernels()
{
	name="it does not come beside rdma_ucm, and says why"
	if ! modprobe -a rdma_ucm 2> /dev/null; then
		skip "$name" "no rdma_ucm here"
		skip "but when that has gone" "no rdma_ucm here"
		return
	fi
	! insmod "$VHCA_MODULES/driver/cm/vhca_cm.ko" 2> "$tmp/out" &&
		[ ! -e /sys/module/vhca_cm ] && told rdma_ucm
	ok=$?
	modprobe -r rdma_ucm
	[ $ok -eq 0 ] || show "$tmp/out"
	result $ok "$name"
	once
	pair_result $? "but when that has gone"
}

if on_reference; then
	echo "1..0 # SKIP a module of vhca"
	exit 4
fi
plan 6
test_again_and_again
test_in_use
test_beside_the_kernels
exit $failed
