# SPDX-License-Identifier: GPL-2.0-only
#
# make            both modules for KDIR's kernel, the library, the selftests
# make lint       sparse and checkpatch
# make docs       the pages of Documentation/ that are generated
# make check      every selftest, on both Debian kernels, in a VM
# make soak       random traffic in a VM for ten minutes; SEED repeats a run
# make demo       ibv_rc_pingpong in a VM, and what it took
# make conformance  rdma-core's own tests on vhca and on Soft-RoCE, in a VM
# make load       insmod both modules into the running kernel; unload undoes it
# make install    modules, library, vhcarun, headers, udev rule; uninstall undoes it
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
MODDIR = /lib/modules/$(REL)/updates/vhca
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

rooms := driver device include uapi selftests/modules
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
		rdma-core rdmacm-utils strace ucx-utils

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

selftests: deps
	$(MAKE) -C selftests

lint:
	@bash selftests/lint.sh

check: testdeps
	@$(MAKE) -s lib selftests
	@bash selftests/check.sh $(TESTS)

# Made of the tables that the tests run.
docs: Documentation/semantics.rst

Documentation/semantics.rst: selftests/gen_semantics.c selftests/semantics.h
	@mkdir -p build
	$(CC) -O -Wall -Wextra -o build/gen_semantics $<
	build/gen_semantics > $@

SOAK_SECONDS ?= 600
soak: testdeps modules lib selftests
	@bash selftests/vm --kernel 6.12 --timeout $$(($(SOAK_SECONDS) * 3 + 300)) -- \
		selftests/test_traffic --seconds $(SOAK_SECONDS) $(if $(SEED),--seed $(SEED))

demo: testdeps
	@$(MAKE) -s lib
	@bash selftests/vm --kernel 6.12 -- bash selftests/demo.sh

conformance: testdeps
	@$(MAKE) -s lib
	@for k in 6.1 6.12; do \
		bash selftests/vm --kernel $$k --timeout 1200 -- \
			bash selftests/conformance.sh || exit; \
	done

load: B = build/$(shell uname -r)
load:
	insmod $(B)/device/vhca_device.ko
	insmod $(B)/driver/vhca.ko

unload:
	rmmod vhca
	rmmod vhca_device

install: modules lib
	install -d $(DESTDIR)$(MODDIR) $(DESTDIR)$(INCLUDEDIR)/vhca
	install -m 644 $(B)/driver/vhca.ko $(B)/device/vhca_device.ko $(DESTDIR)$(MODDIR)
	install -m 644 $(wildcard uapi/*.h) $(DESTDIR)$(INCLUDEDIR)/vhca
	$(MAKE) -C lib VERSION=$(VERSION) install
	$(if $(DESTDIR),,depmod $(REL))

uninstall:
	$(MAKE) -C lib uninstall
	rm -rf $(DESTDIR)$(MODDIR) $(DESTDIR)$(INCLUDEDIR)/vhca
	$(if $(DESTDIR),,depmod $(REL))

clean:
	rm -rf build
	$(MAKE) -C lib clean
	$(MAKE) -C selftests clean

.PHONY: all deps testdeps modules lib selftests lint docs check soak demo conformance load unload install uninstall clean
