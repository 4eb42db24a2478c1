# SPDX-License-Identifier: GPL-2.0-only
#
# The plots of a report, of the plot.* that report.py left in this folder.
set terminal svg size 800,500 background "white"
set grid
set key left top
set style data linespoints

set output "latency.svg"
set title "64 B ping-pong: share of rounds that took longer"
set xlabel "microseconds"
set logscale xy
set format y "10^{%T}"
set key right top
plot for [m in "polling events hybrid"] "plot.vhca.".m with lines lw 2 title "vhca, ".m, \
     for [m in "polling events hybrid"] "plot.rxe.".m with lines dt 2 title "Soft-RoCE, ".m

set format y
set key left top
set xlabel "bytes of a message"
set logscale x 2

set output "rate.svg"
set title "SEND: messages a second"
set key right top
plot for [d in "vhca rxe"] "plot.".d.".rate" with yerrorlines title d

set output "bandwidth.svg"
set title "SEND: MB/s"
set key left top
plot for [d in "vhca rxe"] "plot.".d.".mbytes" with yerrorlines title d, \
     "plot.memcpy" dt 2 title "memcpy"

set output "cpu.svg"
set title "CPU of the machine for a message, microseconds"
plot for [d in "vhca rxe"] "plot.".d.".machine_cpu_us" with yerrorlines title d

set output "qps.svg"
set title "A message of a QP beside idle ones"
set xlabel "idle QPs + 1"
set ylabel "microseconds"
unset logscale
set logscale x 10
set yrange [0:*]
plot "plot.idle" using ($1+1):2:3:4 with yerrorlines title "vhca"
