#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# host_report.sh: what of a kernel log counts as a report, and what does not.
. ./ktap.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Is there a report in the log that comes in?
reports()
{
	sed 's/^/[    1.500000] /' > "$log"
	awk -f report.awk "$log" > /dev/null
}

# race FRAME...: one of those that KCSAN tells of, with these above the innermost function
race()
{
	echo "=================================================================="
	echo "BUG: KCSAN: data-race in one / two"
	echo
	echo "write to 0xff110001002e9620 of 8 bytes by task 25 on cpu 1:"
	printf ' %s\n' "one+0x163/0x770" "$@"
	echo
	echo "read to 0xff110001002e9620 of 8 bytes by task 26 on cpu 0:"
	echo " two+0x163/0x770"
	echo "=================================================================="
}

plan 7
{ echo "vhca: up"; echo "BUG-free since 1991"; } | reports
result $((!$?)) "an ordinary log has none"
{ echo "vhca: up"; echo "WARNING: CPU: 0 PID: 1 at kernel/x.c:1"; } | reports
result $? "a warning is one"
race "worker_thread+0x2d0/0x530" | reports
result $((!$?)) "a race of the kernel's own is none"
race "vhca_irq+0x12/0x34 [vhca]" | reports
result $? "a race with vhca in it is one"
race "__wake_up_common+0x6d/0x90" "__wake_up+0x31/0x50" "vhca_event_post+0x110/0x230 [vhca]" | reports
result $((!$?)) "a race of a kernel's function that vhca calls from afar is none"
{ race "worker_thread+0x2d0/0x530"; race "vdev_kick+0x12/0x34 [vhca_device]"; } | reports
result $? "a race of ours behind one of the kernel's own is one"
{ race "worker_thread+0x2d0/0x530" | sed '$d'; echo "Oops: 0002"; } | reports
result $? "a race whose report breaks off is one"
exit $failed
