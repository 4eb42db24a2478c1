#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# cm_reference.sh COMMAND...: run a test of RDMA CM on what vhca_cm is measured by: the
# kernel's own rdma_ucm over Soft-RoCE, with the distribution's libibverbs. As root, in
# a VM without vhca's modules:
#
#	selftests/vm --no-load -- selftests/cm_reference.sh selftests/test_cm
cd "$(dirname "$(readlink -f "$0")")" || exit 1
. ./rxe.sh

make_rxe && modprobe rdma_ucm && ip address add 2001:db8::1/64 dev veth0 nodad || {
	echo "cm_reference: no Soft-RoCE here" >&2
	exit 1
}
export VHCA_CM_REFERENCE=1 VHCA_CM_ADDRESS=192.0.2.1 VHCA_CM_ADDRESS6=2001:db8::1
LD_LIBRARY_PATH=$(dirname "$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -n 1)")
export LD_LIBRARY_PATH
exec "$@"
