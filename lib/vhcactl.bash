# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# vhcactl.bash: completion of vhcactl's commands, and of the words of its rules.

_vhcactl_statuses="SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR
	MW_BIND_ERR BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR
	RETRY_EXC_ERR RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR
	INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR"
_vhcactl_events="CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG
	PATH_MIG_ERR DEVICE_FATAL PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR
	SRQ_LIMIT_REACHED QP_LAST_WQE_REACHED CLIENT_REREGISTER GID_CHANGE"
_vhcactl_opcodes="SEND SEND_IMM SEND_INV RDMA_WRITE RDMA_WRITE_IMM RDMA_READ ATOMIC_CS ATOMIC_FA
	BIND_MW LOCAL_INV"
_vhcactl_match="qp= cq= eq= opcode= side= nth= every= prob= seed= times="
_vhcactl_actions="complete delay slow fatal break flap lose corrupt rnr stall overrun drop repeat
	merge"

_vhcactl_devices()
{
	(cd /sys/class/vhca 2>/dev/null && compgen -G "*" | sort)
}

# What may stand behind "KEY=".
_vhcactl_values()
{
	case $1 in
	opcode)	echo "$_vhcactl_opcodes" ;;
	side)	echo "send recv" ;;
	status)	echo "$_vhcactl_statuses" ;;
	type)	echo "$_vhcactl_events" ;;
	esac
}

# What may follow word $1 of a rule.
_vhcactl_rule()
{
	case $1 in
	complete)	echo "status= vendor_err= side=" ;;
	delay)		echo "wqe cqe eqe msix" ;;
	slow)		echo "rate= latency=" ;;
	flap)		echo "time=" ;;
	lose)		echo "request response" ;;
	corrupt)	echo "offset= xor=" ;;
	drop)		echo "eqe msix arm" ;;
	repeat | merge)	echo "eqe msix" ;;
	wqe | cqe | eqe | msix)	echo "time=" ;;
	*)		echo "$_vhcactl_match $_vhcactl_actions" ;;
	esac
}

# What may follow the words of the command in $@, the last of which is complete.
_vhcactl_words()
{
	local last=${*: -1}

	case $# in
	0)	echo "fault hold step release state inject show bind unbind"
		return ;;
	1)	case $1 in
		fault)		echo "add load list clear" ;;
		hold | step)	echo "wqe cqe eqe msix" ;;
		release)	echo "wqe cqe eqe msix all" ;;
		inject)		echo "eqe msix event port break" ;;
		show)		echo "qp cq srq eq mr channel" ;;
		bind | unbind)	_vhcactl_devices ;;
		esac
		return ;;
	esac
	case "$1 $2" in
	"fault add")	_vhcactl_rule "$last" ;;
	"inject eqe")	echo "eq= cq=" ;;
	"inject msix")	echo "eq=" ;;
	"inject event")	echo "type= number=" ;;
	"inject port")	echo "up down" ;;
	"hold wqe" | "step wqe" | "release wqe")	echo "qp=" ;;
	"hold cqe" | "step cqe" | "release cqe")	echo "cq=" ;;
	"hold eqe" | "step eqe" | "release eqe")	echo "cq= eq=" ;;
	"hold msix" | "step msix" | "release msix")	echo "eq=" ;;
	"bind "*)	[ $# != 2 ] || (cd /sys/class/net && compgen -G "*") ;;
	"unbind "*)	[ $# != 2 ] || vhcactl bind 2>/dev/null |
				awk -v device="$2" '$1 == device { print $2 }' ;;
	"show "*)	[ $# != 2 ] || vhcactl show "$2" 2>/dev/null | awk 'NR > 1 { print $1 }' ;;
	esac
}

_vhcactl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=() i

	# Readline takes "=" for a word of its own.
	if [ "$cur" = = ] || [ "$prev" = = ]; then
		[ "$cur" = = ] && cur='' && i=1 || i=2
		mapfile -t COMPREPLY < <(compgen -W \
			"$(_vhcactl_values "${COMP_WORDS[COMP_CWORD - i]}")" -- "$cur")
		return
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-d | --device)	((i++)) ;;
		-*)		;;
		*)		words+=("${COMP_WORDS[i]}") ;;
		esac
	done
	case $prev in
	-d | --device)
		mapfile -t COMPREPLY < <(cd /sys/class/vhca 2>/dev/null && compgen -G "$cur*" | sort)
		return ;;
	load)	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	esac
	if [ ${#words[@]} = 0 ] && [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-d --device --json --help" -- "$cur")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$(_vhcactl_words "${words[@]}")" -- "$cur")
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _vhcactl vhcactl
