#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
conformance.py: run rdma-core's own tests, as python3-pyverbs installs them, on one
device, less those of a vendor's provider. Prints a line for each test:

    OUTCOME <tab> FAMILY <tab> CLASS.TEST <tab> SECONDS <tab> REASON

OUTCOME is pass, fail, error or skip; FAMILY is the test's module. Tracebacks go to
stderr. A test that crashes or hangs is an error, and the next one runs all the same.

usage: conformance.py --dev DEVICE [--gid INDEX] [--ip ADDRESS] [--families A,B...] [--seed N]

Tests of RDMA CM take an address from the network device that an RDMA device belongs to.
--ip names one for a device that belongs to none.
"""
import argparse
import gzip
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

INSTALLED = '/usr/share/doc/rdma-core/tests'
VENDOR = ('mlx5', 'efa')
LIMIT = 120     # seconds, for one test


class Result(unittest.TestResult):
    """Writes a line for each test as it ends."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def startTest(self, test):
        super().startTest(test)
        signal.alarm(LIMIT)
        self.outcome = ('pass', '')
        self.start = time.monotonic()

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)
        report(self.out, test, *self.outcome, time.monotonic() - self.start)

    def bad(self, outcome, test, err):
        if self.outcome[0] in ('fail', 'error'):
            return
        lines = str(err[1]).splitlines() or ['']
        self.outcome = (outcome, f'{err[0].__name__}: {lines[0]}')
        print(f'{test.id()}\n{self._exc_info_to_string(err, test)}', file=sys.stderr, flush=True)

    def addFailure(self, test, err):
        self.bad('fail', test, err)

    def addError(self, test, err):
        self.bad('error', test, err)

    def addSkip(self, test, reason):
        self.outcome = ('skip', reason)


def family(test):
    return type(test).__module__.split('.')[-1].removeprefix('test_')


def report(out, test, outcome, reason, seconds):
    name = '.'.join(test.id().split('.')[-2:])
    reason = ' '.join(reason.split())
    out.write(f'{outcome}\t{family(test)}\t{name}\t{seconds:.1f}\t{reason}\n'.encode())


def run_here(tests, out, seed):
    for test in tests:
        random.seed(f'{seed} {test.id()}')
        test.run(Result(out))


def run_in_child(tests, out, seed):
    """Run tests in a process of their own until it dies or all are done: how many were."""
    progress, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(progress)
        run_here(tests, os.fdopen(theirs, 'wb', buffering=0), seed)
        os._exit(0)
    os.close(theirs)
    done = 0
    with os.fdopen(progress, 'rb') as lines:
        for line in lines:
            out.write(line)
            done += 1
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if done < len(tests):
        how = f'signal {-status}' if status < 0 else f'status {status}'
        if status == -signal.SIGALRM:
            how = f'no end after {LIMIT} seconds'
        report(out, tests[done], 'error', f'the process ended: {how}', 0)
        done += 1
    return done


def unpack(where):
    """A copy of the tests in which Debian's compression is undone."""
    shutil.copytree(INSTALLED, where)
    for name in os.listdir(where):
        path = os.path.join(where, name)
        if name.endswith('.gz'):
            with gzip.open(path) as packed, open(path[:-3], 'wb') as plain:
                shutil.copyfileobj(packed, plain)


def give_address(ip):
    """The address of a device without a network device of its own."""
    def add(test, dev, port, gid):
        test.args.append([dev, port, gid, ip, None])
    sys.modules['tests.base'].RDMATestCase._get_ip_mac = add


def load(args, ip):
    """The tests by family. Their modules look for each other in tests and beside it."""
    with tempfile.TemporaryDirectory() as tmp:
        unpack(os.path.join(tmp, 'tests'))
        sys.path[:0] = [os.path.join(tmp, 'tests'), tmp]
        sys.argv[1:] = args
        importlib.import_module('args_parser').parser.parse_args()
        tests = importlib.import_module('tests')
    if ip:
        give_address(ip)
    suites = [unittest.defaultTestLoader.loadTestsFromModule(m) for m in tests.__test_modules__]
    families = {}
    for test in (t for module in suites for suite in module for t in suite):
        families.setdefault(family(test), []).append(test)
    return {name: tests for name, tests in families.items()
            if not name.startswith(VENDOR)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--dev', required=True)
    parser.add_argument('--gid')
    parser.add_argument('--ip')
    parser.add_argument('--families')
    parser.add_argument('--seed', default='0')
    args = parser.parse_args()
    results = os.fdopen(os.dup(1), 'wb', buffering=0)
    # What the tests themselves print is no result.
    os.dup2(2, 1)
    device = ['--dev', args.dev] + (['--gid', args.gid] if args.gid else [])
    for name, tests in load(device, args.ip).items():
        if args.families and name not in args.families.split(','):
            continue
        while tests:
            tests = tests[run_in_child(tests, results, args.seed):]


if __name__ == '__main__':
    main()
