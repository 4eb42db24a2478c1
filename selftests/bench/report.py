#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# report.py DIR: make report.json, report.md and plots of what bench.sh left in DIR.
# report.py A B: how report B differs from A, and whether that is more than noise.
#
# A figure is the median over the rounds, its spread the lowest and the highest. What is
# compared is compared within each round, and the median is that of the ratios.
import json
import os
import subprocess
import sys
from statistics import median

HERE = os.path.dirname(os.path.realpath(__file__))
SIZES = (64, 128, 1024, 4096, 65536, 1048576)
MODES = ('polling', 'events', 'hybrid')


class Missing(Exception):
    pass


class Runs:
    """What was measured: case, name, round -> value."""

    def __init__(self, path):
        self.values = {}
        with open(path, encoding='ascii') as raw:
            for line in raw:
                rnd, case, name, value = line.split('\t')
                self.values.setdefault(case, {}).setdefault(name, {})[int(rnd)] = float(value)

    def of(self, what):
        case, name = what.split(':')
        try:
            return self.values[case][name]
        except KeyError:
            raise Missing(what) from None

    def figure(self, what):
        return spread(list(self.of(what).values()))

    def ratio(self, above, below):
        a, b = self.of(above), self.of(below)
        values = [a[r] / b[r] for r in a if r in b and b[r]]
        if not values:
            raise Missing(above)
        return spread(values)


def spread(values):
    return {'median': median(values), 'low': min(values), 'high': max(values),
            'rounds': len(values)}


def ratio(above, below):
    return lambda runs: runs.ratio(above, below)


def figure(what):
    return lambda runs: runs.figure(what)


LIMIT = 'machine.limits:'


def same_load(text, events, polling):
    """Events against polling at a share of what a polling receiver takes at most."""
    return (
        (f'{text}: throughput of polling', '>=', 0.983,
         ratio(f'vhca.{events}:rate', f'vhca.{polling}:rate')),
        (f'{text}: CPU of a polling receiver', '<=', 0.663,
         ratio(f'vhca.{events}:receiver_cpu_us', f'vhca.{polling}:receiver_cpu_us')),
        (f'{text}: 99th percentile of polling', '<=', 1.136,
         ratio(f'vhca.{events}:p99_us', f'vhca.{polling}:p99_us')))


# What is aimed at, as a ratio and its bound, which it is to reach (>=) or not to exceed.
GOALS = (
    ('64 B ping-pong, polling: times faster than Soft-RoCE', '>=', 10,
     ratio('rxe.ib_pingpong:round_us', 'vhca.ib_pingpong:round_us')),
    ('64 B ping-pong, events: times an eventfd ping-pong', '<=', 1.6,
     ratio('vhca.ib_pingpong_e:round_us', LIMIT + 'eventfd_round_us')),
    ('the same in instructions: times an eventfd ping-pong', '<=', 1.6,
     ratio('vhca.count.pingpong.events:p50_us', 'machine.count.eventfd:round_p50_us')),
    ('64 B ping-pong, events: times faster than Soft-RoCE', '>=', 1.5,
     ratio('rxe.ib_pingpong_e:round_us', 'vhca.ib_pingpong_e:round_us')),
    ('the same on a CPU each, medians: polling, times faster', '>=', 10,
     ratio('rxe.pingpong.polling:p50_us', 'vhca.pingpong.polling:p50_us')),
    ('the same on a CPU each, medians: events, times an eventfd', '<=', 1.6,
     ratio('vhca.pingpong.events:p50_us', LIMIT + 'eventfd_round_two_cpus_p50_us')),
    ('the same on a CPU each, medians: events, times faster', '>=', 1.5,
     ratio('rxe.pingpong.events:p50_us', 'vhca.pingpong.events:p50_us')),
    ('128 B SEND message rate: times Soft-RoCE', '>=', 10,
     ratio('vhca.ib_send_bw.128:mrate', 'rxe.ib_send_bw.128:mrate')),
    ('the same in lists of 16', '>=', 10,
     ratio('vhca.ib_send_bw.128.list:mrate', 'rxe.ib_send_bw.128.list:mrate')),
    ('64 KiB SEND bandwidth: times Soft-RoCE', '>=', 20,
     ratio('vhca.ib_send_bw.65536:mbytes', 'rxe.ib_send_bw.65536:mbytes')),
    ('64 KiB SEND bandwidth: of memcpy', '>=', 0.8,
     ratio('vhca.ib_send_bw.65536:mbytes', LIMIT + 'memcpy_mbytes.65536')),
    ('1 MiB WRITE bandwidth: times Soft-RoCE', '>=', 20,
     ratio('vhca.ib_write_bw.1048576:mbytes', 'rxe.ib_write_bw.1048576:mbytes')),
    ('1 MiB WRITE bandwidth: of memcpy', '>=', 0.8,
     ratio('vhca.ib_write_bw.1048576:mbytes', LIMIT + 'memcpy_mbytes.1048576')),
    *same_load('events, 128 B, half load', 'load0.5.events', 'load0.5.polling'),
    *same_load('the same moderated, 16 in 100 us', 'moderate.16', 'load0.5.polling'),
    *same_load('events, 128 B, 90 % load', 'load0.9.events', 'load0.9.polling'),
    ('hybrid at full load: throughput of polling', '>=', 0.99,
     figure('vhca.against.full:rate_ratio')),
    ('hybrid at 1 % load: CPU of an event-driven receiver', '<=', 1.05,
     figure('vhca.against.0.01:cpu_ratio')),
    ('wake-up by a SEND: times one by an eventfd', '<=', 1.6,
     ratio('vhca.wake.1:p50_us', LIMIT + 'wake_p50_us')),
    ('wake-ups of the device in 10 s, 1,000 QPs open', '<=', 0,
     figure('vhca.idle:wakeups')),
    ('a message beside 100 idle QPs: times one beside none', '<=', 1.1,
     ratio('vhca.beside.100:p50_us', 'vhca.beside.0:p50_us')),
    ('a message beside 10,000 idle QPs: times one beside none', '<=', 1.1,
     ratio('vhca.beside.10000:p50_us', 'vhca.beside.0:p50_us')),
    ('the same in instructions: times those beside none', '<=', 1.1,
     ratio('vhca.count.beside.10000:p50_us', 'vhca.count.beside.0:p50_us')),
    ('wake-up, 1,000 CQs on the channel: times with one', '<=', 1.2,
     ratio('vhca.wake.1000:p50_us', 'vhca.wake.1:p50_us')),
    ('memory of an idle QP with its CQ: times Soft-RoCE', '<=', 1,
     ratio('vhca.memory:qp_kbytes', 'rxe.memory:qp_kbytes')),
)


def goals(runs):
    for text, sense, bound, of in GOALS:
        goal = {'goal': text, 'sense': sense, 'bound': bound}
        try:
            goal.update(of(runs))
            value = goal['median']
            goal['met'] = value >= bound if sense == '>=' else value <= bound
        except Missing as what:
            goal['missing'] = str(what)
        yield goal


def number(value):
    if value == 0 or abs(value) >= 100:
        return f'{value:,.0f}'
    return f'{value:.3g}'


def cell(stat):
    """Median and, where there is one, the spread."""
    text = number(stat['median'])
    if stat['rounds'] > 1:
        text += f" ({number(stat['low'])} to {number(stat['high'])})"
    return text


def table(head, rows):
    yield '| ' + ' | '.join(head) + ' |'
    yield '|' + ' --- |' * len(head)
    for row in rows:
        yield '| ' + ' | '.join(row) + ' |'
    yield ''


def cells(runs, whats):
    for what in whats:
        try:
            yield cell(runs.figure(what))
        except Missing:
            yield '-'


def goal_rows(found):
    for g in found:
        aim = f"{'at least' if g['sense'] == '>=' else 'at most'} {g['bound']:g}"
        if 'missing' in g:
            yield g['goal'], aim, 'not measured', '-'
        else:
            yield g['goal'], aim, cell(g), 'met' if g['met'] else '**not met**'


def figure_rows(runs, rows):
    for text, *whats in rows:
        yield [text, *cells(runs, whats)]


def devices(case, name):
    return f'vhca.{case}:{name}', f'rxe.{case}:{name}'


def markdown(runs, machine, found):
    yield '# vhca, Soft-RoCE and the machine'
    yield ''
    for key, value in machine.items():
        yield f'- {key}: {value}'
    yield ''
    yield 'Medians over the rounds, in brackets the lowest and the highest.'
    yield ''
    yield '## Goals'
    yield ''
    yield from table(('goal', 'aim', 'measured', ''), goal_rows(found))
    yield '## The machine'
    yield ''
    limits = runs.values.get('machine.limits', {})
    yield from table(('limit', 'value'), ((n, cell(spread(list(v.values()))))
                                          for n, v in limits.items()))
    yield "## The distribution's programs"
    yield ''
    yield from table(('', 'vhca', 'Soft-RoCE'), figure_rows(runs, (
        ('ibv_rc_pingpong -s 64, us', *devices('ib_pingpong', 'round_us')),
        ('ibv_rc_pingpong -s 64 -e, us', *devices('ib_pingpong_e', 'round_us')),
        ('ib_send_lat -s 64, typical, us', *devices('ib_send_lat', 'typical_us')),
        ('ib_send_lat -s 64, 99 %, us', *devices('ib_send_lat', 'p99_us')),
        ('ib_send_bw -s 128, million messages/s', *devices('ib_send_bw.128', 'mrate')),
        ('ib_send_bw -s 128 -l 16', *devices('ib_send_bw.128.list', 'mrate')),
        ('ib_send_bw -s 65536, MB/s', *devices('ib_send_bw.65536', 'mbytes')),
        ('ib_write_bw -s 1048576, MB/s', *devices('ib_write_bw.1048576', 'mbytes')))))
    yield '## Ping-pong, 64 B, us'
    yield ''
    yield from table(('', 'vhca 50 %', '99 %', '99.9 %', 'Soft-RoCE 50 %', '99 %', '99.9 %'),
                     figure_rows(runs, ([m] + [f'{d}.pingpong.{m}:{p}' for d in ('vhca', 'rxe')
                                               for p in ('p50_us', 'p99_us', 'p99.9_us')]
                                        for m in MODES)))
    yield '## Connections by RDMA CM, us each'
    yield ''
    yield from table(('', 'vhca', 'Soft-RoCE'), figure_rows(runs, (
        ('one after another', *devices('connect', 'connection_us')),
        ('100 at once', *devices('connect', 'at_once_us')))))
    yield '## By size'
    yield ''
    yield from table(('', 'vhca messages/s', 'MB/s', 'CPU us a message',
                      'Soft-RoCE messages/s', 'MB/s', 'CPU us a message'),
                     figure_rows(runs, ([f'SEND {s}'] + [f'{d}.send.{s}:{n}'
                                         for d in ('vhca', 'rxe')
                                         for n in ('rate', 'mbytes', 'machine_cpu_us')]
                                        for s in SIZES)))
    yield '## Ways to wait, 128 B'
    yield ''
    yield from table(('load, mode', 'messages/s', '50 %, us', '99 %', '99.9 %', '99.99 %',
                      'receiver CPU us a message', 'events a message'),
                     figure_rows(runs, ([f'{load}, {m}'] + [f'vhca.{load}.{m}:{n}' for n in (
                         'rate', 'p50_us', 'p99_us', 'p99.9_us', 'p99.99_us',
                         'receiver_cpu_us', 'events')]
                         for load in ('load0.01', 'load0.1', 'load0.5', 'load0.9', 'full')
                         for m in MODES)))
    yield '## Thousands of instructions, counted once'
    yield ''
    yield from table(('', 'a message, or there and back'), figure_rows(runs, (
        *((f'64 B from a QP to itself, beside {n:,} idle QPs', f'vhca.count.beside.{n}:p50_us')
          for n in (0, 100, 10000)),
        ('64 B ping-pong with events', 'vhca.count.pingpong.events:p50_us'),
        ('eventfd ping-pong', 'machine.count.eventfd:round_p50_us'))))
    yield '## Other runs'
    yield ''
    known = ('send.', 'connect', 'ib_', 'pingpong.', 'full.', 'load0', 'count.')
    names = ('rate', 'message_us', 'p50_us', 'p99_us', 'receiver_cpu_us', 'events')
    yield from table(('run', *names), figure_rows(runs, (
        [case] + [f'{case}:{n}' for n in names] for case in runs.values
        if not case.split('.', 1)[1].startswith(known) and case.startswith('vhca'))))


def cumulated(path):
    """Pairs of a time and the share of all that took longer."""
    pairs = [tuple(map(float, line.split())) for line in open(path, encoding='ascii')]
    total, seen = sum(n for _, n in pairs), 0
    for time, n in pairs:
        seen += n
        yield time, max(1 - seen / total, 1e-6)


def write_data(out, name, rows):
    with open(os.path.join(out, name), 'w', encoding='ascii') as f:
        for row in rows:
            f.write(' '.join(map(str, row)) + '\n')


def by_size(runs, dev, name):
    for size in SIZES:
        try:
            s = runs.figure(f'{dev}.send.{size}:{name}')
        except Missing:
            continue
        yield size, s['median'], s['low'], s['high']


def idle_costs(runs):
    for case in runs.values:
        if case.startswith('vhca.beside.'):
            s = runs.figure(case + ':p50_us')
            yield int(case.rsplit('.', 1)[1]), s['median'], s['low'], s['high']


def plots(out, runs):
    for dev in ('vhca', 'rxe'):
        for mode in MODES:
            path = os.path.join(out, f'{dev}.pingpong.{mode}.hist.1')
            if os.path.exists(path):
                write_data(out, f'plot.{dev}.{mode}', cumulated(path))
        for name in ('rate', 'mbytes', 'machine_cpu_us'):
            write_data(out, f'plot.{dev}.{name}', by_size(runs, dev, name))
    limits = runs.values.get('machine.limits', {})
    write_data(out, 'plot.memcpy', ((n.split('.')[1], median(v.values()))
                                    for n, v in limits.items() if n.startswith('memcpy')))
    write_data(out, 'plot.idle', sorted(idle_costs(runs)))
    # A plot of what was not measured is left out.
    subprocess.run(['gnuplot', os.path.join(HERE, 'plots.gp')], cwd=out, check=False)


def make_report(out):
    runs = Runs(os.path.join(out, 'raw.tsv'))
    with open(os.path.join(out, 'machine'), encoding='utf-8') as f:
        machine = dict(line.rstrip('\n').split(' ', 1) for line in f)
    found = list(goals(runs))
    figures = {f'{case}:{name}': spread(list(v.values()))
               for case, names in runs.values.items() for name, v in names.items()}
    with open(os.path.join(out, 'report.json'), 'w', encoding='utf-8') as f:
        json.dump({'machine': machine, 'goals': found, 'figures': figures}, f, indent=1)
    with open(os.path.join(out, 'report.md'), 'w', encoding='utf-8') as f:
        f.write('\n'.join(markdown(runs, machine, found)))
    print('\n'.join(table(('goal', 'aim', 'measured', ''), goal_rows(found))))
    print(f'report: {out}/report.md, report.json, *.svg')
    plots(out, runs)


COMPARED = ('round_us', 'connection_us', 'at_once_us', 'rate', 'mrate', 'mbytes', 'p50_us',
            'p99_us', 'receiver_cpu_us', 'machine_cpu_us', 'message_us', 'qp_kbytes')


def noise(stat):
    return (stat['high'] - stat['low']) / 2 / stat['median'] if stat['median'] else 0


def differences(a, b):
    for what, old in a.items():
        if what not in b or what.split(':')[1] not in COMPARED or not old['median']:
            continue
        new = b[what]
        change = new['median'] / old['median'] - 1
        both = noise(old) + noise(new)
        yield (what, number(old['median']), number(new['median']), f'{change:+.1%}',
               f'{both:.1%}', 'differs' if abs(change) > both else '')


def compare(one, two):
    figures = []
    for path in (one, two):
        with open(os.path.join(path, 'report.json'), encoding='utf-8') as f:
            figures.append(json.load(f)['figures'])
    print('\n'.join(table(('figure', one, two, 'change', 'noise', ''), differences(*figures))))


if len(sys.argv) == 2:
    make_report(sys.argv[1])
elif len(sys.argv) == 3:
    compare(*sys.argv[1:])
else:
    sys.exit('usage: report.py DIR, or report.py A B')
