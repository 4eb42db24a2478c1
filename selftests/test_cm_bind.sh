#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# test_cm_bind.sh: functions answer for the addresses of the network devices that they are
# bound to, in the namespace that these are in: by vhcactl, and by sysfs beneath it.
. ./cm.sh

bind=/sys/class/misc/rdma_cm/bind
vhcactl=../lib/build/vhcactl
[ -x $vhcactl ] || vhcactl=vhcactl
port=7700
home=192.0.2.7

next_port()
{
	port=$((port + 1))
}

# Messages that function $1 has moved.
moved_by()
{
	sed -n 's/^wqes //p' "/sys/kernel/debug/vhca_device/$1/counters"
}

# A conversation at address $1 works.
talks()
{
	next_port
	pair tcp $port "rping -s -V -C 5 -a $1 -p $port" "rping -c -V -C 5 -a $1 -p $port"
}

# talks_by FUNCTION ADDRESS: and it is this function's, not the other's
talks_by()
{
	other=$((1 - $1))
	before=$(moved_by "$1")
	before_other=$(moved_by $other)
	talks "$2" && [ "$(moved_by "$1")" -gt "$before" ] &&
		[ "$(moved_by $other)" -eq "$before_other" ]
}

# Nobody answers for address $1.
unknown()
{
	next_port
	! timeout $limit $run rping -s -C 1 -a "$1" -p $port > "$tmp/server" 2>&1 &&
		grep -qE 'No such device|Cannot assign' "$tmp/server"
}

bound()
{
	grep -qx "$1 $2" $bind
}

# complains TEXT COMMAND...: a command fails, and says so
complains()
{
	text=$1
	shift
	! "$@" > "$tmp/client" 2>&1 && grep -q "$text" "$tmp/client"
}

writes()
{
	{ printf '%s' "$1" > $bind; } 2> /dev/null
}

refuses()
{
	for text; do
		! writes "$text" || { echo "# taken: '$text'"; return 1; }
	done
}

test_loopback()
{
	bound vhca0 lo && bound vhca1 lo
	result $? "each function is bound to lo when it comes"
	talks_by 0 127.0.0.1
	pair_result $? "of those that answer for an address the first does"
	$vhcactl unbind vhca0 lo && ! bound vhca0 lo && talks_by 1 127.0.0.1
	pair_result $? "when it does so no more, the next one does"
	$vhcactl bind vhca0 lo && talks_by 0 127.0.0.1
	pair_result $? "until it does so again"
}

test_device()
{
	ip address add $home/24 dev cm0
	ip -6 address add 2001:db8::7/64 dev cm0 nodad
	ip link set cm0 up
	unknown $home
	pair_result $? "an address of a device that nobody is bound to is no address"
	$vhcactl bind vhca1 cm0 && bound vhca1 cm0 && talks_by 1 $home
	pair_result $? "vhcactl bind"
	talks_by 1 2001:db8::7
	pair_result $? "its IPv6 address, too"
	$vhcactl bind | grep -q 'vhca1.*cm0'
	result $? "vhcactl bind tells what is bound"
	$vhcactl bind vhca0 cm0 && talks_by 0 $home && $vhcactl unbind vhca0 cm0 &&
		talks_by 1 $home
	pair_result $? "two on one device"
	ip address del $home/24 dev cm0
	unknown $home
	pair_result $? "an address that is taken away"
	ip address add $home/24 dev cm0
	talks_by 1 $home
	pair_result $? "an address that comes back"
	$vhcactl unbind vhca1 cm0 && ! bound vhca1 cm0 && unknown $home
	pair_result $? "vhcactl unbind"
}

test_mistakes()
{
	complains 'already' $vhcactl bind vhca0 lo && complains 'not bound' $vhcactl unbind vhca0 cm0 &&
		complains 'no vhca9' $vhcactl bind vhca9 lo &&
		complains 'no nowhere' $vhcactl bind vhca0 nowhere
	pair_result $? "what cannot be bound"
	before=$(cat $bind)
	refuses ' ' vhca0 'vhca0 lo' 'vhca0 +' 'vhca0 +lo +lo' '+lo vhca0' 'vhca0 ++lo' \
		"vhca0 +$(printf '%0200d' 0)" && [ "$(cat $bind)" = "$before" ]
	result $? "nonsense is refused, and changes nothing"
	writes 'vhca0 +cm0' && bound vhca0 cm0 && writes 'vhca0 -cm0' && ! bound vhca0 cm0
	result $? "the same by sysfs"
	setpriv --reuid 65534 --clear-groups cat $bind > "$tmp/out" && [ -s "$tmp/out" ] &&
		! setpriv --reuid 65534 --clear-groups sh -c "echo vhca0 -lo > $bind" 2> /dev/null &&
		bound vhca0 lo
	result $? "all may read, root may write"
}

no_cm0()
{
	! grep -q cm0 $bind
}

in_other()
{
	ip netns exec other "$@"
}

serve_in_other()
{
	ip netns exec other timeout $limit $run "$@" > "$tmp/server" 2>&1 &
	server=$!
}

# The loopback device of each namespace is one of its own.
test_namespaces()
{
	ip netns add other
	in_other ip link set lo up
	next_port
	serve_in_other rping -s -P -a 127.0.0.1 -p $port
	wait_until ended_or cm_listens tcp $port
	! ask rping -c -C 1 -a 127.0.0.1 -p $port && grep -q REJECTED "$tmp/client"
	pair_result $? "who listens in another namespace is not heard"
	in_other timeout $limit $run rping -c -V -C 5 -a 127.0.0.1 -p $port > "$tmp/client" 2>&1
	pair_result $? "but there"
	first=$server
	serve rping -s -P -a 127.0.0.1 -p $port
	wait_until ended_or ask rping -c -C 1 -a 127.0.0.1 -p $port
	kill -0 "$server"
	pair_result $? "one port in two namespaces"
	stop_server
	server=$first
	stop_server

	$vhcactl bind vhca1 cm0
	ip link set cm0 netns other
	! bound vhca1 cm0 && in_other sh -c "! grep -q cm0 $bind"
	result $? "a device that moves is bound no more"
	in_other ip address add $home/24 dev cm0
	in_other ip link set cm0 up
	in_other sh -c "echo vhca1 +cm0 > $bind" && ! bound vhca1 cm0 &&
		in_other grep -qx 'vhca1 cm0' $bind
	result $? "each namespace binds its own devices"
	next_port
	serve_in_other rping -s -P -a $home -p $port
	wait_until ended_or cm_listens tcp $port
	in_other timeout $limit $run rping -c -V -C 5 -a $home -p $port > "$tmp/client" 2>&1
	pair_result $? "and talks there"
	stop_server
	ip netns delete other
	wait_until no_cm0
	result $? "what goes with its namespace is bound no more"
}

if on_reference; then
	echo "1..0 # SKIP devices of vhca"
	exit 4
fi
if ! ip link add cm0 type dummy 2> /dev/null; then
	echo "1..0 # SKIP no dummy network devices here"
	exit 4
fi
cm_load || {
	echo "Bail out! vhca_cm cannot be loaded"
	exit 1
}
plan 23
test_loopback
test_device
test_mistakes
test_namespaces
exit $failed
