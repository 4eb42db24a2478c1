# SPDX-License-Identifier: GPL-2.0-only
#
# make            both modules for KDIR's kernel, the library, the selftests
# make lint       sparse and checkpatch
# make docs       the pages of Documentation/ that are generated
# make check      every selftest, on both Debian kernels, in a VM
# make check-debug, check-race  the same on kernels made to find errors
# make soak       random traffic in a VM for ten minutes; SEED repeats a run
# make churn      a million objects, and ten thousand connections, made and ended in a VM,
#                 and nothing left of them
# make fuzz       random calls and nonsense in queues for an hour; SEED repeats a run
# make demo       ibv_rc_pingpong in a VM, and what it took
# make conformance  rdma-core's own tests on vhca and on Soft-RoCE, in a VM
# make bench      vhca, Soft-RoCE and the machine measured in a VM; OUT=DIR, ROUNDS=N
# make bench-compare A B  how two reports differ, and their noise
# make load       insmod both modules into the running kernel; unload undoes it
# make install    modules, library, vhcarun, vhcactl, headers, udev rule; uninstall undoes it
#
# Modules are built in build/<kernel release>/, where the sources are links, so
# that builds for several kernels stay out of each other's way.

machine := selftests/machine.sh

ifndef KDIR
KDIR := $(shell bash $(machine) default_kdir)
endif
# What uname -r says there; Debian's kernel.release differs from it.
REL := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
B = build/$(REL)
W ?= 1

DESTDIR ?=
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
MODPROBEDIR ?= /etc/modprobe.d
MODDIR = /lib/modules/$(REL)/updates/vhca
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

rooms := driver driver/cm device include uapi selftests/modules
sources = $(wildcard Kbuild $(foreach d,$(rooms),$(d)/*.c $(d)/*.h $(d)/Kbuild))
# Use all processors for the modules unless the caller said how many.
jobs = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

all: modules lib selftests

deps:
	@bash $(machine) need gcc libc6-dev libibverbs-dev

# The programs that vhca is tested with. The library looks at what is installed
# to know which of libibverbs' private symbols it is asked for.
testdeps: deps
	@bash $(machine) need ibverbs-providers ibverbs-utils perftest python3-pyverbs \
		qperf rdma-core rdmacm-utils strace ucx-utils

# The links are made anew each time, those of removed files go, and so every
# rebuild that a change of the tree needs is left to Kbuild.
modules:
	$(if $(REL),,$(error no built kernel headers in KDIR=$(KDIR)))
	@mkdir -p $(addprefix $(B)/,$(rooms))
	@flock $(B)/.lock sh -c 'find $(B) -xtype l -delete; \
		for f in $(sources); do ln -sfr $$f $(B)/$$f; done; \
		exec "$$@"' - $(MAKE) $(jobs) -C $(KDIR) M=$(CURDIR)/$(B) W=$(W) modules

lib: deps
	$(MAKE) -C lib VERSION=$(VERSION)

# The library that test_sanitized.sh runs on.
sanitized: deps
	$(MAKE) -C lib BUILD=build-sanitized CFLAGS="-O1 -g -fno-omit-frame-pointer \
		-fsanitize=address,undefined -fno-sanitize-recover=all"

selftests: deps
	@bash $(machine) need librdmacm-dev
	$(MAKE) -C selftests

lint:
	@bash selftests/lint.sh

check: testdeps
	@$(MAKE) -s lib sanitized selftests
	@bash selftests/check.sh $(TESTS)

# Slow kernels: the first watches memory, locks and lifetimes, the second data races.
check-debug: CONFIGS = debug
check-race: CONFIGS = race
check-debug check-race: testdeps
	@$(MAKE) -s lib selftests
	@CONFIGS=$(CONFIGS) bash selftests/check.sh $(TESTS)

# Made of the tables that the tests run.
docs: Documentation/semantics.rst

Documentation/semantics.rst: selftests/gen_semantics.c selftests/semantics.h
	@mkdir -p build
	$(CC) -O -Wall -Wextra -o build/gen_semantics $<
	build/gen_semantics > $@

# Three tests share the time.
SOAK_SECONDS ?= 600
soak: testdeps modules lib selftests
	@bash selftests/vm --kernel 6.12 --timeout $$(($(SOAK_SECONDS) * 2 + 300)) -- \
		selftests/test_traffic --seconds $$(($(SOAK_SECONDS) / 3)) $(if $(SEED),--seed $(SEED))

# On one processor, where grace periods are short.
CHURN_OBJECTS ?= 1000000
CHURN_CONNECTIONS ?= 10000
churn: testdeps modules lib selftests
	@bash selftests/vm --kernel 6.12 --cpus 1 --timeout $$(($(CHURN_OBJECTS) / 100)) -- \
		selftests/test_churn --objects $(CHURN_OBJECTS)
	@bash selftests/vm --kernel 6.12 --timeout $$(($(CHURN_CONNECTIONS) / 10)) -- \
		selftests/test_cm_many --connections $(CHURN_CONNECTIONS)

FUZZ_SECONDS ?= 3600
FUZZ_KERNEL ?= 6.12
fuzz: testdeps modules lib selftests
	@bash selftests/vm --kernel $(FUZZ_KERNEL) --timeout $$(($(FUZZ_SECONDS) * 2 + 300)) \
		--out build/fuzz -- selftests/test_fuzz --seconds $(FUZZ_SECONDS) \
		--log build/fuzz/log $(if $(SEED),--seed $(SEED))

demo: testdeps
	@$(MAKE) -s lib
	@bash selftests/vm --kernel 6.12 -- bash selftests/demo.sh

conformance: testdeps
	@$(MAKE) -s lib
	@for k in 6.1 6.12; do \
		bash selftests/vm --kernel $$k --timeout 1200 -- \
			bash selftests/conformance.sh || exit; \
	done

# About a quarter of an hour; ROUNDS=1 BESIDE=1000 to see that it works.
OUT ?= build/bench
bench: testdeps
	@bash $(machine) need gnuplot-nox python3
	@$(MAKE) -s lib selftests
	@bash selftests/vm --kernel 6.12 --cpus 2 --timeout 3000 --out $(OUT) -- \
		bash selftests/bench/bench.sh $(abspath $(OUT))
	@COUNT=1 bash selftests/vm --kernel 6.12 --icount --timeout 300 --out $(OUT) -- \
		bash selftests/bench/bench.sh $(abspath $(OUT))
	@python3 selftests/bench/report.py $(OUT)

# A=DIR B=DIR, or two words behind it, which are no targets then.
ifeq ($(firstword $(MAKECMDGOALS)),bench-compare)
words := $(wordlist 2,3,$(MAKECMDGOALS))
.PHONY: $(words)
$(words):
	@:
endif
bench-compare:
	@python3 selftests/bench/report.py $(if $(A),$(A) $(B),$(words))

load: B = build/$(shell uname -r)
load:
	insmod $(B)/device/vhca_device.ko
	insmod $(B)/driver/vhca.ko

unload:
	rmmod vhca
	rmmod vhca_device

install: modules lib
	install -d $(DESTDIR)$(MODDIR) $(DESTDIR)$(INCLUDEDIR)/vhca
	install -m 644 $(B)/driver/vhca.ko $(B)/driver/cm/vhca_cm.ko \
		$(B)/device/vhca_device.ko $(DESTDIR)$(MODDIR)
	install -m 644 $(wildcard uapi/*.h) $(DESTDIR)$(INCLUDEDIR)/vhca
	install -d $(DESTDIR)$(MODPROBEDIR)
	install -m 644 driver/cm/vhca_cm.conf $(DESTDIR)$(MODPROBEDIR)
	$(MAKE) -C lib VERSION=$(VERSION) install
	$(if $(DESTDIR),,depmod $(REL))

uninstall:
	$(MAKE) -C lib uninstall
	rm -rf $(DESTDIR)$(MODDIR) $(DESTDIR)$(INCLUDEDIR)/vhca
	rm -f $(DESTDIR)$(MODPROBEDIR)/vhca_cm.conf
	$(if $(DESTDIR),,depmod $(REL))

clean:
	rm -rf build
	$(MAKE) -C lib clean
	$(MAKE) -C selftests clean

.PHONY: all deps testdeps modules lib sanitized selftests lint docs check check-debug check-race soak churn fuzz demo conformance bench bench-compare load unload install uninstall clean
