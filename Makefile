# Freshet's tasks. `make run` and `make test` do all the set-up on a fresh Debian 12 with Swift 6.3.
#
#   make run       install what is missing, build, and show the main job on loopback
#   make test      install what is missing, and run every test (what CI runs)
#   make setup     only install what is missing
#   make build     release binaries, in .build/release
#   make lint      format check, layer check, shell check
#   make format    rewrite the sources in the house style
#   make bench     figures and ratios; judges nothing
#   make docs      the libraries' documentation, in .build/docs
#   make sanitize  unit tests and simulation under the thread and the address sanitizer
#   make install   DESTDIR= PREFIX=/usr
#   make clean     remove what was built

SHELL = /bin/bash
PREFIX ?= /usr
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
SWIFT ?= swift
RELEASE = $(SWIFT) build --configuration release --static-swift-stdlib -Xlinker --gc-sections
SOURCES = Package.swift Sources Tests

.DEFAULT_GOAL := help
.PHONY: help setup setup-test build run test lint format bench docs sanitize install clean

help:
	@sed -n 's/^# \{0,1\}//; 1,/^$$/p' Makefile

setup:
	@Scripts/setup run

setup-test:
	@Scripts/setup test

build:
	@$(RELEASE) --product freshetd
	@$(RELEASE) --product freshetctl

run: setup build
	@Scripts/demo

test: setup-test
	@Scripts/test

lint:
	@Scripts/check-layers
	@$(SWIFT) format lint --strict --recursive $(SOURCES)
	@shellcheck --shell=bash --external-sources --source-path=SCRIPTDIR $$(Scripts/shell-files)

format:
	@$(SWIFT) format --in-place --recursive $(SOURCES)

bench: setup-test build
	@Benchmarks/run

docs:
	@Scripts/docs

sanitize: setup-test
	@Scripts/sanitize

install:
	@test -x .build/release/freshetd || { echo "make install: build first: make build" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSCONFDIR)/freshet/pipelines
	install -m 0755 -s .build/release/freshetd $(DESTDIR)$(PREFIX)/sbin/freshetd
	install -m 0755 -s .build/release/freshetctl $(DESTDIR)$(PREFIX)/bin/freshetctl
	install -m 0644 systemd/freshetd.service $(DESTDIR)$(UNITDIR)/freshetd.service
	install -D -m 0644 systemd/freshet.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf
	install -D -m 0644 varlink/io.freshet.Control.varlink $(DESTDIR)$(PREFIX)/share/freshet/io.freshet.Control.varlink
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/doc/freshet/examples/pipelines etc/examples/pipelines/*.yaml
	test -e $(DESTDIR)$(SYSCONFDIR)/freshet/freshet.yaml || install -m 0644 etc/freshet/freshet.yaml $(DESTDIR)$(SYSCONFDIR)/freshet/freshet.yaml

clean:
	@$(SWIFT) package clean
	@rm -rf run stage
