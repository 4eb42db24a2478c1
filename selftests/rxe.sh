# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# rxe.sh: Soft-RoCE, to compare with. Sourced.

rxe_listed()
{
	rdma link show rxe0/1 2>/dev/null | grep -q ACTIVE &&
		grep -q '0000:ffff:' /sys/class/infiniband/rxe0/ports/1/gids/1
}

# rxe0 on one end of a veth; GID 1 is that of the IPv4 address.
make_rxe()
{
	local i

	modprobe -a crc32_generic ib_uverbs rdma_rxe veth &&
		ip link add veth0 type veth peer name veth1 &&
		ip address add 192.0.2.1/24 dev veth0 &&
		ip link set veth1 up && ip link set veth0 up &&
		rdma link add rxe0 type rxe netdev veth0 || return
	for ((i = 0; i < 100; i++)); do
		rxe_listed 2>/dev/null && return
		sleep 0.1
	done
	return 1
}
