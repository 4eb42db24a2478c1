#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# test_vhcactl.sh: vhcactl, from a device at rest to programs that hang: what it changes,
# what it shows, what it says of mistakes, and what its completion offers.
cd "$(dirname "$(readlink -f "$0")")" || exit 1
. ./programs.sh

[ ! -x ../lib/build/vhcactl ] || PATH=$(readlink -f ../lib/build):$PATH
trap 'vhcactl fault clear; vhcactl release all; echo "$engine_at_start" > $engine; rm -rf "$tmp"' EXIT

# passes NAME COMMAND...: its status is the result, and what it said is shown if bad.
passes()
{
	local name=$1 status

	shift
	"$@" > "$tmp/said" 2>&1
	status=$?
	[ $status = 0 ] || show "$tmp/said"
	result $status "$name"
}

# status N COMMAND...: does it end with N? Its words are in $tmp/out and $tmp/err.
status()
{
	local want=$1 got

	shift
	"$@" > "$tmp/out" 2> "$tmp/err"
	got=$?
	[ $got = "$want" ] || { echo "status $got: $*"; cat "$tmp/err"; return 1; }
}

# The values of key $1 in JSON, of which each object has a line, less quotation marks.
field()
{
	sed -nE "s/.*\"$1\": (\"[^\"]*\"|[^,}]*).*/\1/p" | tr -d '"'
}

# is WANTED KEY COMMAND...: is it so in the first object of the command's JSON?
is()
{
	local want=$1 key=$2 got

	shift 2
	got=$(vhcactl --json "$@" | field "$key" | head -n 1)
	[ "$got" = "$want" ] || { echo "$key of $*: $got, not $want"; return 1; }
}

# Are there so many rules?
rules()
{
	[ "$(vhcactl --json fault list | grep -c '"id"')" = "$1" ]
}

rules_are_listed()
{
	local id next

	id=$(vhcactl fault add qp=4660 nth=3 lose request) &&
		is "qp=4660 nth=3 lose request" rule fault list && is 0 hits fault list &&
		is "$id" id fault list &&
		vhcactl fault list | grep -E "^$id +0 +.*qp=4660 nth=3 lose request$" &&
		next=$(vhcactl --json fault add cq=4660 overrun | field id) && [ "$next" -gt "$id" ]
}

rules_are_cleared()
{
	local id

	vhcactl fault clear && id=$(vhcactl fault add stall) && rules 1 &&
		vhcactl fault clear "$id" && rules 0 && vhcactl fault add stall &&
		vhcactl fault clear && rules 0 && status 1 vhcactl fault clear "$id"
}

plans_are_loaded_whole()
{
	printf '# a plan\n\nqp=1 lose request\n  cq=2 overrun\n' > "$tmp/good"
	printf 'qp=1 lose request\nqp=1 nth=2 every=3 stall\n' > "$tmp/bad"
	vhcactl fault clear && vhcactl fault load "$tmp/good" && rules 2 &&
		status 1 vhcactl fault load "$tmp/bad" && rules 2 &&
		grep -q "^vhcactl: $tmp/bad:2: " "$tmp/err" &&
		grep -qxF 'qp=1 nth=2 every=3 stall' "$tmp/err" &&
		vhcactl fault load - < "$tmp/good" && rules 4 &&
		status 1 vhcactl fault load "$tmp/none" && vhcactl fault clear
}

plans_that_ship_are_good()
{
	local plan

	for plan in examples/*.plan; do
		vhcactl fault load "$plan" && vhcactl fault clear || return
	done
}

# The line, a caret under the word at fault, and words about it.
mistakes_are_pointed_at()
{
	status 1 vhcactl fault add qp=17 nht=3 lose request &&
		[ "$(sed -n 1p "$tmp/err")" = "qp=17 nht=3 lose request" ] &&
		[ "$(sed -n 2p "$tmp/err")" = "      ^" ] &&
		sed -n 3p "$tmp/err" | grep '^vhcactl: .' &&
		status 1 vhcactl inject event type=NONE &&
		[ "$(sed -n 2p "$tmp/err")" = "      ^" ] &&
		status 1 vhcactl hold here
}

usage_errors_are_2()
{
	local words

	for words in "" "foo" "fault" "fault add" "fault load" "fault foo" "hold" "state foo" \
		     "inject" "show" "show foo" "show qp x" "show qp 1 2" "--foo state"; do
		# shellcheck disable=SC2086
		status 2 vhcactl $words && grep -q '^usage: vhcactl' "$tmp/err" || return
	done
	status 0 vhcactl --help && grep -q '^usage: vhcactl' "$tmp/out"
}

errors_are_1()
{
	status 1 vhcactl -d vhca99 state && grep -q vhca99 "$tmp/err" &&
		status 1 vhcactl -d /etc fault list && status 1 vhcactl show qp 4660 &&
		grep -q 4660 "$tmp/err" && status 1 vhcactl step cqe cq=4660 &&
		status 1 vhcactl inject eqe eq=99 cq=1
}

devices_are_apart()
{
	vhcactl -d vhca1 fault add stall && rules 0 && is stall rule -d vhca1 fault list &&
		vhcactl -d vhca1 fault clear
}

events_are_injected()
{
	local watcher ok

	stdbuf -oL $run ibv_asyncwatch -d vhca0 > "$tmp/watch" 2>&1 &
	watcher=$!
	wait_until has_vhca $watcher && vhcactl inject event type=SM_CHANGE number=1 &&
		wait_until grep -qi 'sm.change' "$tmp/watch"
	ok=$?
	kill $watcher
	wait $watcher 2>/dev/null
	return $ok
}

has_vhca()
{
	readlink /proc/"$1"/fd/* 2>/dev/null | grep -q anon_inode
}

# Has stage $1 something at $2 CQs?
kept()
{
	[ "$(vhcactl state | awk -v stage="$1" '
		NR == 1	{ for (i = 1; i <= NF; i++) if ($i == "pending") col = i }
		$1 == stage && $col > 0	{ n++ }
		END	{ print n + 0 }')" -ge "$2" ]
}

pingpong_ends()
{
	[ -e "$tmp/one.server_status" ] && [ -e "$tmp/one.client_status" ]
}

# Nothing passes; one thing passes; all passes, and the programs end well.
stages_are_stepped()
{
	local cq before

	vhcactl hold cqe
	start one 18690 vhca0 vhca0 ibv_rc_pingpong -n 20 -e
	wait_until kept cqe 1 || return
	vhcactl state
	cq=$(vhcactl --json state | grep -v '"pending": 0' | field cq | head -n 1)
	before=$(vhcactl --json show cq "$cq" | field pi)
	vhcactl step cqe "cq=$cq" && is $((before + 1)) pi show cq "$cq" &&
		vhcactl release all && wait_until pingpong_ends && both one true
}

# The programs of which objects are shown below: an SRQ has many QPs.
start_held()
{
	vhcactl hold cqe
	start one 18691 vhca0 vhca0 ibv_srq_pingpong -n 20 -q 2 -e
	wait_until kept cqe 1
}

# Every kind has lines of the running programs, as a table and as JSON, and in detail.
kinds_are_shown()
{
	local kind number

	for kind in qp cq srq eq mr channel; do
		vhcactl show $kind > "$tmp/table" &&
			head -n 1 "$tmp/table" | grep -q "^$kind " &&
			vhcactl --json show $kind > "$tmp/$kind.json" &&
			[ "$(grep -c "\"$kind\": " "$tmp/$kind.json")" = \
				$(($(wc -l < "$tmp/table") - 1)) ] &&
			number=$(field $kind < "$tmp/$kind.json" | tail -n 1) &&
			vhcactl --json show $kind "$number" > "$tmp/$kind-one.json" &&
			[ "$(field $kind < "$tmp/$kind-one.json" | head -n 1)" = "$number" ] &&
			vhcactl show $kind "$number" | head -n 1 | grep -q "^$kind  " ||
			{ echo "kind $kind"; cat "$tmp/table"; return 1; }
	done
}

# All that was just shown: numbers are numbers, rings are arrays, and both sides are there.
json_is_good()
{
	vhcactl --json state > "$tmp/state.json" &&
		vhcactl --json fault list > "$tmp/faults.json" &&
		python3 - "$tmp" <<-'P'
	import glob, json, os, sys
	of = {os.path.basename(f)[:-5]: json.load(open(f)) for f in glob.glob(sys.argv[1] + '/*.json')}
	assert len(of) == 14, of.keys()
	programs = {c['context']: c['comm'] for c in of['channel']}
	assert set(programs.values()) == {'ibv_srq_pingpon'}, programs
	for qp in of['qp']:
	    assert qp['type'] == 'RC' and qp['state'] == 'RTS' and qp['srq'] > 0, qp
	    assert qp['comm'] == 'ibv_srq_pingpon' and qp['pid'] > 1, qp
	for cq in of['cq']:
	    assert cq['channel'] in [c['channel'] for c in of['channel']], cq
	    assert cq['eq'] in [e['eq'] for e in of['eq']], cq
	assert 'sq' in [e['ring'] for e in of['qp-one']['entries']], of['qp-one']
	for kind in 'qp', 'cq', 'srq', 'eq':
	    for entry in of[kind + '-one']['entries']:
	        assert type(entry['index']) is int, entry
	        for sge in entry.get('sge', []):
	            assert len(sge) >= 2, entry
	P
}

held_programs_end()
{
	vhcactl release all && wait_until pingpong_ends && both one true
}

# An event is lost: the programs wait, and the CQ with something unread tells why.
hang()
{
	vhcactl fault add drop eqe nth=20 &&
		start one 18692 vhca0 vhca0 ibv_rc_pingpong -n 50 -e &&
		wait_until is 1 hits fault list && wait_until unread_cq
}

unread_cq()
{
	cq=$(vhcactl --json show cq | grep '"unread": [1-9]' | field cq)
	[ -n "$cq" ]
}

hang_is_understood()
{
	vhcactl --json show cq "$cq" > "$tmp/hang"
	[ "$(head -n 1 "$tmp/hang" | field comm)" = ibv_rc_pingpong ] &&
		[ "$(head -n 1 "$tmp/hang" | field arm)" = none ] &&
		[ "$(head -n 1 "$tmp/hang" | field events_queued)" = 0 ] &&
		grep '"state": "new".*"status": "SUCCESS"' "$tmp/hang" && ! kept wqe 1 &&
		! kept cqe 1 && ! kept eqe 1 || { cat "$tmp/hang"; return 1; }
}

lost_event_is_made_good()
{
	local eq

	eq=$(head -n 1 "$tmp/hang" | field eq)
	vhcactl fault clear && vhcactl inject eqe "eq=$eq" "cq=$cq" &&
		wait_until pingpong_ends && both one true
}

# offers WANTED WORD...: what completion makes of the last word of a command line.
offers()
{
	local want=$1

	shift
	COMP_WORDS=(vhcactl "$@") COMP_CWORD=$# COMPREPLY=()
	_vhcactl
	[ "${COMPREPLY[*]}" = "$want" ] || { echo "$*: ${COMPREPLY[*]}, not $want"; return 1; }
}

completion()
{
	. ../lib/vhcactl.bash
	offers "fault" f && offers "add" fault a && offers "wqe" hold w && offers "all" release a &&
		offers "hold" -d vhca0 ho && offers "vhca0 vhca1" -d v && offers "--json" --j &&
		offers "status= side=" fault add complete s && offers "request response" fault add lose "" &&
		offers "RETRY_EXC_ERR" fault add complete status = RET &&
		offers "ATOMIC_CS ATOMIC_FA" fault add opcode = AT &&
		offers "send recv" fault add side = && offers "qp=" hold wqe "" &&
		offers "SRQ_ERR SRQ_LIMIT_REACHED" inject event type = SRQ &&
		offers "srq" show s && offers "examples/ci.sh" fault load examples/ci
}

# Whatever completion knows of, the device takes.
completion_is_right()
{
	local word

	. ../lib/vhcactl.bash
	for word in $_vhcactl_statuses; do
		echo "complete status=$word"
	done > "$tmp/all"
	for word in $_vhcactl_opcodes; do
		echo "opcode=$word stall"
	done >> "$tmp/all"
	vhcactl fault load "$tmp/all" && vhcactl fault clear
}

# A program of two processes, as CI would have it. The port is waited for in the state
# LISTEN: connections of the run before linger on it.
pingpong_pair()
{
	cat > "$tmp/pair.sh" <<-'S'
	lib/vhcarun ibv_rc_pingpong -d vhca0 -p 18693 -n 100 -e -c &
	until grep -q ':4905 [0-9A-F:]* 0A' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
	lib/vhcarun ibv_rc_pingpong -d vhca0 -p 18693 -n 100 -e -c localhost && wait $!
	S
	(cd .. && selftests/examples/ci.sh "$@" -- sh "$tmp/pair.sh")
}

ci_passes()
{
	pingpong_pair selftests/examples/retry.plan selftests/examples/events.plan > "$tmp/tap" &&
		[ "$(grep -c '^ok ' "$tmp/tap")" = 2 ] || { cat "$tmp/tap"; return 1; }
}

# Nothing of the pair is left: whoever has a device open holds the driver.
nobody_left()
{
	wait_until eval '[ "$(cat /sys/module/vhca/refcnt)" = 0 ]'
}

ci_tells_of_errors()
{
	echo 'nth=30 complete status=REM_OP_ERR' > "$tmp/error.plan"
	! pingpong_pair -t 20 "$tmp/error.plan" > "$tmp/tap" && nobody_left && grep -q '^not ok 1' "$tmp/tap" &&
		grep -q '^# .*remote operation error' "$tmp/tap" || { cat "$tmp/tap"; return 1; }
}

ci_tells_of_hangs()
{
	echo 'nth=30 drop eqe' > "$tmp/hang.plan"
	! pingpong_pair -t 10 "$tmp/hang.plan" > "$tmp/tap" && grep -q '^not ok 1' "$tmp/tap" &&
		grep -q '^# vhcactl show cq' "$tmp/tap" &&
		rules 0 || { cat "$tmp/tap"; return 1; }
}

plan 22
vhcactl fault clear
passes "a rule is added and listed" rules_are_listed
passes "one rule is cleared, all are" rules_are_cleared
passes "a file of rules is loaded whole or not at all" plans_are_loaded_whole
passes "the plans of the examples are right" plans_that_ship_are_good
passes "a mistake is shown with a caret under it" mistakes_are_pointed_at
passes "wrong use ends with 2" usage_errors_are_2
passes "what is not there ends with 1" errors_are_1
passes "devices have plans of their own" devices_are_apart
passes "an async event is injected" events_are_injected
passes "held programs are stepped and released" stages_are_stepped
passes "programs are held" start_held
passes "each kind of object is shown" kinds_are_shown
passes "JSON has numbers, lists, and what both sides know" json_is_good
passes "held programs end well" held_programs_end
passes "a lost event makes a program hang" hang
passes "show tells why it hangs" hang_is_understood
passes "with the event it goes on" lost_event_is_made_good
passes "completion" completion
passes "completion knows the device's names" completion_is_right
passes "ci.sh: a good program survives" ci_passes
passes "ci.sh: a program with an error" ci_tells_of_errors
passes "ci.sh: a program that hangs" ci_tells_of_hangs
exit $failed
