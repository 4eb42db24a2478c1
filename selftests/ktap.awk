#!/usr/bin/awk -f
# SPDX-License-Identifier: GPL-2.0-only
#
# ktap.awk: read what run_tests.sh prints, as it comes; print a line a test with
# the seconds that it took, and all of a test's output when it failed. Leaves in the file `result`, one a line:
#   pass N, fail N, skip N      results, of subtests where a test has any
#   done TEST                   tests that ended
#   open TEST                   the test that was running when the output ended
#   failed WHAT                 what failed
#   said TEXT                   what it said last, a line of it, and where it crashed
#   late TEST                   no time was left for it
#   figure N WHAT               sum of what tests say as "# figure: N WHAT"
# -v config=NAME -v result=FILE

# The words of a failure: 20 lines at most, and none from before the last result.
function fail(what,    i)
{
	failed++
	bad[++nbad] = config ": " test ": " what
	said[++nsaid] = bad[nbad]
	for (i = lines - 20 > last ? lines - 20 : last; i < lines; i++)
		said[++nsaid] = "    " line[i + 1]
	last = lines
}

function finish(ok, skip, why,    i)
{
	if (!passed && !failed && !skipped) {
		if (skip)
			skipped = 1
		else if (ok)
			passed = 1
	} else if (ok && plan > passed + failed + skipped) {
		fail("only " passed + failed + skipped " of " plan " results")
	}
	if (!ok && !failed)
		fail(why)
	printf "%-12s %-28s %4d s  %d passed, %d failed%s\n", config, test,
		seconds, passed, failed, skipped ? ", " skipped " skipped" : ""
	if (failed)
		for (i = 1; i <= lines; i++)
			print "    " line[i]
	fflush()
	pass += passed
	fails += failed
	skips += skipped
	done[++ndone] = test
	test = ""
}

/^# selftests: vhca: / {
	test = $4
	passed = seconds = failed = skipped = plan = lines = last = 0
	next
}

test == "" { next }

/^# selftests: took / {
	seconds = $4
	next
}

/^(not )?ok [0-9]+ selftests: vhca: / {
	line[++lines] = $0
	why = $0
	sub(/^.* # /, "", why)
	if (why == "SKIP no time left")
		late[++nlate] = config ": " test
	finish($1 == "ok", / # SKIP/, why)
	next
}

/^# crash: / { said[++nsaid] = "    " substr($0, 3) }

{ line[++lines] = substr($0, 3) }

/^# # figure: [0-9]+ / {
	what = $0
	sub(/^# # figure: [0-9]+ /, "", what)
	figure[what] += $4
}
/^# 1\.\.[0-9]+/ { plan = substr($2, 4) + 0 }
/^# ok [0-9]+/ {
	last = lines
	if (/# SKIP/)
		skipped++
	else
		passed++
}
/^# not ok [0-9]+/ {
	what = $0
	sub(/^# not ok [0-9]+ (- )?/, "", what)
	fail(what)
}

END {
	if (test != "") {
		printf "%-12s %-28s did not end\n", config, test
		for (i = 1; i <= lines; i++)
			print "    " line[i]
	}
	print "pass " pass + 0 >result
	print "fail " fails + 0 >result
	print "skip " skips + 0 >result
	for (i = 1; i <= ndone; i++)
		print "done " done[i] >result
	if (test != "")
		print "open " test >result
	for (what in figure)
		print "figure " figure[what] " " what >result
	for (i = 1; i <= nbad; i++)
		print "failed " bad[i] >result
	for (i = 1; i <= nsaid; i++)
		print "said " said[i] >result
	for (i = 1; i <= nlate; i++)
		print "late " late[i] >result
}
