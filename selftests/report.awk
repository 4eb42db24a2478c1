#!/usr/bin/awk -f
# SPDX-License-Identifier: GPL-2.0-only
#
# report.awk: print what a kernel log says that must not be, from the first such
# line and what led up to it to 80 lines on. Fails when there is nothing.
#
# The kernel has data races of its own, also in what vhca calls, as wake_up(): one counts
# when vhca is among the three innermost functions of an access.

function bad(s)
{
	return s ~ /^(WARNING|BUG|UBSAN|KASAN|KFENCE|KCSAN|KMSAN)[: ]/ ||
		s ~ /^(Oops|kernel BUG at|Kernel panic|general protection fault)/ ||
		s ~ /^(stack segment|invalid opcode|divide error|double fault)/ ||
		s ~ /^(watchdog: BUG|INFO: task .* blocked|refcount_t:|list_(add|del))/ ||
		s ~ /^rcu: INFO: .*(stall|detected)/ ||
		s ~ /^kmemleak: [0-9]+ new suspected/ ||
		s ~ /^(irq|IRQ) .*nobody cared/ ||
		s ~ /^(workqueue lockup|BUG workqueue|page allocation failure)/ ||
		s ~ /DEBUG_LOCKS_WARN_ON|bad unlock balance|unable to handle/
}

function begin(i)
{
	found = NR
	for (i = NR > 3 ? NR - 3 : 1; i < NR; i++)
		print line[i % 4]
}

{
	text = $0
	sub(/^(<[0-9]+>)?\[ *[0-9]+\.[0-9]+\](\[ *[CT][0-9]+\])? /, "", text)
}

# A race, as far as the line of equals signs below it.
!found && text ~ /^BUG: KCSAN: data-race/ {
	race = $0
	ours = 0
	next
}

race != "" {
	race = race "\n" $0
	depth = text ~ /^ / ? depth + 1 : 0
	ours = ours || (depth <= 3 && text ~ /\[vhca/)
	if (text ~ /^=+$/) {
		if (ours) {
			begin()
			print race
		}
		race = ""
	}
	next
}

{
	if (!found && bad(text))
		begin()
	line[NR % 4] = $0
	if (found && NR < found + 80)
		print
}

END {
	if (race != "")
		print race
	exit !found && race == ""
}
