#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# host_docs.sh: Documentation/ says what the headers and the code say. It cannot
# tell whether a sentence is true, but whether every name and number is.
#
# Needs no device and no modules.
. ./ktap.sh

top=..
doc=$top/Documentation
prm=$doc/prm.rst
uabi=$doc/uabi.rst
architecture=$doc/architecture.rst
security=$doc/security.rst
faults=$doc/faults.rst
manual=$doc/vhcactl.8
headers="$top/uapi/vhca_queue.h $top/uapi/vhca_abi.h $top/include/vhca_prm.h $top/include/vhca_soft.h"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Passes when the check that wrote $tmp/wrong found nothing wrong and looked at
# something: $tmp/seen has a line for each thing looked at.
found()
{
	show "$tmp/wrong"
	[ -s "$tmp/seen" ] && ! [ -s "$tmp/wrong" ]
	result $? "$1: $(wc -l < "$tmp/seen")"
	: > "$tmp/seen"
	: > "$tmp/wrong"
}

seen()
{
	echo "$*" >> "$tmp/seen"
}

wrong()
{
	echo "$*" >> "$tmp/wrong"
}

# A document in one line, so that what is wrapped is found.
in_one_line()
{
	tr '\n' ' ' < "$1" | tr -s ' '
}

literals()
{
	in_one_line "$1" | grep -oE '``[^`]+``' | tr -d '`' | sort -u
}

sources()
{
	find "$top/driver" "$top/device" "$top/lib" "$top/include" "$top/uapi" -name '*.[ch]' \
		! -name '*.mod.c'
}

# Definition, declaration or macro; a call is indented. Callbacks are members of
# structures.
has_function()
{
	name=$1
	shift
	grep -qE "^([A-Za-z_].*[ *])?$name\(|^#[ ]*define[ ]+$name\(|\(\*$name\)\(" "$@"
}

check_functions()
{
	for name in $(literals "$1" | sed -n 's/^\([a-z_0-9]*\)()$/\1/p'); do
		seen "$name"
		has_function "$name" "$tmp/sources" || wrong "$name(): not in the tree"
	done
}

# "``name()`` (``file``)" says where a function is.
check_function_places()
{
	in_one_line "$1" | grep -oE '``[a-z_0-9]+\(\)`` \(``[a-z_0-9./]+``\)' |
	tr -d '`()' | sort -u > "$tmp/places"
	while read -r name file; do
		seen "$name"
		has_function "$name" "$top/$file" 2> "$tmp/err" || wrong "$name(): not in $file"
	done < "$tmp/places"
}

# "``selftests/test_x.c`` (``name``, ``name``)" says which tests of a file are meant.
check_tests()
{
	in_one_line "$1" | grep -oE '``selftests/test_[a-z_]+\.c`` \(``[a-z_0-9]+``(, ``[a-z_0-9]+``)*\)' |
	tr -d '`(),' > "$tmp/tests"
	while read -r file names; do
		for name in $names; do
			seen "$name"
			grep -qE "^TEST(_F|_F_TIMEOUT)?\((.*, )?$name\b" "$top/$file" ||
				wrong "$name: no test of $file"
		done
	done < "$tmp/tests"
}

check_paths()
{
	for file in $(literals "$1" |
		      grep -E '^(driver|device|lib|include|uapi|selftests|Documentation)/[a-zA-Z0-9_./]*$'); do
		seen "$file"
		[ -e "$top/$file" ] || wrong "$file: does not exist"
	done
}

# Names that end with an underscore stand for a family.
check_constants()
{
	for name in $(grep -oE '\bVHCA_[A-Z0-9_]*[A-Z0-9]\b' "$1" | sort -u); do
		seen "$name"
		grep -qw "$name" $headers || wrong "$name: not in the headers"
	done
}

check_structures()
{
	for name in $(in_one_line "$1" | grep -oE 'struct (vhca|vdev)_[a-z0-9_]+' |
		      cut -d' ' -f2 | sort -u); do
		seen "$name"
		grep -qE "^struct $name \{" "$tmp/sources" || wrong "struct $name: not in the tree"
	done
}

check_documented()
{
	for name in $(grep -ohE "\b($1)[A-Z0-9_]+\b" $headers | sort -u); do
		seen "$name"
		grep -q "\`\`$name\`\`" "$2" || wrong "$name: not in $2"
	done
}

# Rows "offset ``VHCA_REG_...``" against the defines.
check_registers()
{
	sed -n 's/^#define \(VHCA_REG_[A-Z0-9_]*\)\((eqn)\)\{0,1\}[[:space:]]*(\{0,1\}\(0x[0-9a-f]*\).*/\1 \3/p' \
		$top/include/vhca_prm.h > "$tmp/registers"
	while read -r name offset; do
		seen "$name"
		grep -qE "^$offset +\`\`$name\`\`" $prm || wrong "$name: no row that puts it at $offset"
	done < "$tmp/registers"
}

# Rows "``NAME`` number" or "number ``NAME``" against the enums.
check_numbers()
{
	sed -nE "s/^[[:space:]]+((VHCA_CMD|VHCA_EQE|VHCA_CQE|VHCA_VERR|VHCA_OP)_[A-Z0-9_]+)[[:space:]]*= ([0-9a-fx]+),.*/\1 \3/p" \
		$top/include/vhca_prm.h $top/uapi/vhca_queue.h > "$tmp/numbers"
	while read -r name number; do
		case $name-$number in
		VHCA_VERR_NONE-0)
			number=0x00 ;;
		esac
		seen "$name"
		grep -qE "\`\`$name\`\` +$number\b|^$number +\`\`$name\`\`" $prm ||
			wrong "$name: no row that gives it $number"
	done < "$tmp/numbers"
}

# Rows "offset bytes ``field``" against the assertions in the headers. Structures
# whose few fields are told in prose have no rows.
check_offsets()
{
	sed -nE 's/^VHCA_ASSERT_AT\(struct ([a-z_]+), ([a-z_0-9]+), ([0-9]+)\);/\1 \2 \3/p' \
		$top/include/vhca_prm.h $top/uapi/vhca_queue.h |
	grep -vE ' (rsvd[0-9]?|bytes) |^vhca_(cmd_modify_qp|cmd_object|wqe_inline|uar_slot) ' \
		> "$tmp/offsets"
	while read -r type field offset; do
		seen "$type.$field"
		grep -qE "^$offset +[0-9]+ +([a-z]+ +)?\`\`$field\b" $prm ||
			wrong "struct $type: no row that puts $field at $offset"
	done < "$tmp/offsets"
}

# Each ioctl with its structure beside it.
check_ioctls()
{
	sed -nE 's/^#define (VHCA_IOC_[A-Z_]+)[[:space:]]+_IO(WR)?\(VHCA_IOC_MAGIC, 0x[0-9a-f]+(, struct ([a-z_]+))?\)/\1 \4/p' \
		$top/uapi/vhca_abi.h > "$tmp/ioctls"
	while read -r name type; do
		seen "$name"
		if [ "$type" ]; then
			want="\`\`$name\`\` (\`\`struct $type\`\`)"
		else
			want="\`\`$name\`\`"
		fi
		grep -qF "$want" $uabi || wrong "$want: not in uabi.rst"
	done < "$tmp/ioctls"
}

# Counters, by the strings of the code.
check_counters()
{
	for name in $(sed -nE 's/^[[:space:]]+\[[A-Z_]+\][[:space:]]*= "([a-z_]+)",.*/\1/p' "$@"); do
		seen "$name"
		grep -qE "^$name +[^ ]" $uabi || wrong "counter $name: not in uabi.rst"
	done
}

# Calls by their kernel-doc.
check_fault_calls()
{
	for name in $(sed -nE 's/^ \* (vhca_[a-z_]+)\(\) - .*/\1/p' $top/lib/vhca_fault.h); do
		seen "$name"
		grep -q "^\`\`$name()\`\`" $faults || wrong "$name(): no row in faults.rst"
	done
}

check_examples()
{
	for file in examples/*.c examples/*.plan examples/*.sh; do
		seen "$file"
		grep -q "\`\`selftests/$file\`\`" $doc/*.rst || wrong "$file: on no page"
	done
}

# Commands by the usage of vhcactl, as the page has them in bold.
check_commands()
{
	sed -nE 's/^"  ([a-z]+( [a-z]+)?) .*/\1/p' $top/lib/vhcactl.c > "$tmp/commands"
	while read -r name; do
		seen "$name"
		grep -qE "^\.(B|BI) \"?$name\b" $manual || wrong "$name: not in vhcactl.8"
	done < "$tmp/commands"
}

check_manual()
{
	seen $manual
	man --warnings -E UTF-8 -l -Tutf8 -Z $manual 2>> "$tmp/wrong" > /dev/null
}

check_markup()
{
	for file in "$doc"/*.rst; do
		seen "$file"
		"$rst" --halt=5 --report=1 "$file" "$tmp/html" 2>> "$tmp/wrong"
		[ "$(head -n 1 "$file")" = ".. SPDX-License-Identifier: GPL-2.0-only" ] ||
			wrong "$file: SPDX line"
	done
}

# In a kernel tree the folder is by itself.
if [ ! -e "$prm" ]; then
	echo "TAP version 13"
	echo "1..0 # SKIP no documents beside this folder"
	exit 4
fi

: > "$tmp/seen"
: > "$tmp/wrong"
sources | xargs cat > "$tmp/sources"
plan 20

check_functions $architecture
check_functions $security
check_functions $faults
found "functions of architecture.rst, security.rst and faults.rst exist"
check_function_places $architecture
check_function_places $security
found "functions of architecture.rst and security.rst are where they say"
check_tests $security
found "tests of security.rst are in the files that it names"
check_paths $architecture
check_paths $security
check_paths $prm
check_paths $uabi
check_paths $faults
found "files exist"
check_constants $prm
found "constants of prm.rst exist"
check_constants $uabi
found "constants of uabi.rst exist"
check_constants $architecture
check_constants $security
found "constants of architecture.rst and security.rst exist"
check_structures $prm
check_structures $uabi
check_structures $architecture
found "structures exist"
check_registers
found "registers have the offsets of prm.rst"
check_numbers
found "commands, types and statuses have the numbers of prm.rst"
check_offsets
found "fields have the offsets of prm.rst"
check_documented 'VHCA_REG_|VHCA_CMD_|VHCA_EQE_|VHCA_VERR_|VHCA_QPM_|VHCA_STATUS_|VHCA_CONTROL_' $prm
found "prm.rst leaves out none of the registers, commands, types, errors, attributes"
check_ioctls
found "uabi.rst describes each ioctl, with its structure"
check_documented 'VHCA_EVENT_' $uabi
found "uabi.rst describes each async event"
check_counters $top/device/*.c $top/driver/*.c
found "uabi.rst describes each counter"
check_fault_calls
found "faults.rst describes each call of vhca_fault.h"
check_examples
found "faults.rst names each example"
check_commands
found "vhcactl.8 describes each command"
if command -v man > "$tmp/which"; then
	check_manual
	found "vhcactl.8 is valid"
else
	skip "vhcactl.8 is valid" "no man; apt-get install man-db"
fi
if rst=$(command -v rst2html || command -v rst2html.py); then
	check_markup
	found "markup is valid"
else
	skip "markup is valid" "no rst2html; apt-get install python3-docutils"
fi
exit $failed
