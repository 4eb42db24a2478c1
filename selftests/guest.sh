#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# guest.sh: the first process of the VM once the host's tree is its root. Makes
# the place habitable, loads the modules, runs the command, says how it ended.
# Started by vm, which left settings, environment and command in $VM_DIR.
. "$VM_DIR/settings"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The device of the virtio port named $1, which may take a moment to come up.
port()
{
	local f

	while :; do
		for f in /sys/class/virtio-ports/*/name; do
			[ "$(cat "$f" 2>/dev/null)" = "$1" ] || continue
			f=${f%/name}
			echo "/dev/${f##*/}"
			return
		done
		sleep 0.05
	done
}

furnish()
{
	mount -t tmpfs tmpfs /run
	mkdir -p /dev/shm /dev/pts
	mount -t tmpfs tmpfs /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	ln -sfn /proc/self/fd /dev/fd
	ln -sfn /proc/self/fd/0 /dev/stdin
	ln -sfn /proc/self/fd/1 /dev/stdout
	ln -sfn /proc/self/fd/2 /dev/stderr
	ip link set lo up
	mkdir -p /etc/modprobe.d
	cp "$vm_top/driver/cm/vhca_cm.conf" /etc/modprobe.d/
	if [ "$vm_root" != / ]; then
		mkdir -p "/lib/modules/$vm_rel"
		mount --bind "$vm_root/lib/modules/$vm_rel" "/lib/modules/$vm_rel"
	fi
	if [ -n "$vm_out" ]; then
		mkdir -p "$vm_out"
		mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=mmap \
			out "$vm_out"
	fi
}

# Hand the log and then status $1 to the host; the end.
finish()
{
	[ -z "$vm_out" ] || umount "$vm_out" || sync
	dmesg >"$log_port"
	echo "$1" >&3
	busybox poweroff -f
	sleep infinity
}

watch()
{
	sleep "$vm_timeout"
	: >/run/vm-timeout
	echo w >/proc/sysrq-trigger
	kill -KILL -- "-$1"
	# The first process goes on from here; should the command not even die,
	# this still ends the run.
	sleep 10
	finish timeout
}

furnish
log_port=$(port log)
exec 3>"$(port status)"
echo up >&3
output_port=$(port output)
exec 4> >(exec 3>&-; exec cat >"$output_port")
cat=$!

if [ -n "$vm_load" ]; then
	if ! insmod "$vm_modules/device/vhca_device.ko" functions=2 >&4 2>&4 ||
	   ! insmod "$vm_modules/driver/vhca.ko" >&4 2>&4; then
		dmesg | tail -n 20 >&4
		exec 4>&-
		wait $cat
		finish 98
	fi
fi

setsid bash -c '
	. "$1/environment"
	export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin VHCA_MODULES=$2
	unset VM_DIR
	. "$1/command"
' - "$VM_DIR" "$vm_modules" </dev/null >&4 2>&1 3>&- 4>&- &
command=$!
watch $command 4>&- &
watch=$!
wait $command
status=$?
[ ! -e /run/vm-timeout ] || status=timeout
kill $watch 2>/dev/null
exec 4>&-
# Processes left behind may hold the output open: they get two seconds.
for ((i = 0; i < 100; i++)); do
	kill -0 $cat 2>/dev/null || break
	sleep 0.02
done
finish $status
