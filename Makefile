# Freshet's tasks. `make run` and `make test` do all the set-up on a fresh Debian 12 with Swift 6.3.
#
#   make run       install what is missing, build, and show the main job on loopback
#   make test      install what is missing, and run every test (what CI runs)
#   make setup     only install what is missing
#   make build     release binaries, in .build/release
#   make lint      format check, layer check, shell check, manual pages
#   make format    rewrite the sources in the house style
#   make bench     figures and ratios; judges nothing
#   make bench-network  the same, of events of the network and of rest
#   make bench-signals  the same, of the signals beside other libraries
#   make docs      the libraries' documentation, in .build/docs
#   make sanitize  unit tests and simulation under the thread and the address sanitizer
#   make install   DESTDIR= PREFIX=/usr; leaves configuration that is there alone
#   make uninstall leaves configuration and data
#   make clean     remove what was built

SHELL = /bin/bash
PREFIX ?= /usr
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
CATALOGDIR ?= $(PREFIX)/lib/systemd/catalog
DOCDIR ?= $(PREFIX)/share/doc/freshet
SWIFT ?= swift
RELEASE = $(SWIFT) build --configuration release --static-swift-stdlib -Xlinker --gc-sections
SOURCES = Package.swift Sources Examples Tests Benchmarks/Package.swift Benchmarks/Sources
PLACES = -e 's|/usr/sbin/freshetd|$(PREFIX)/sbin/freshetd|' -e 's|/usr/bin/freshetctl|$(PREFIX)/bin/freshetctl|' \
	-e 's|/usr/share/doc/freshet|$(DOCDIR)|'
# Each is there for the system and for users.
UNITS = freshetd.service freshetd.socket freshet-refresh@.service freshet-refresh@.timer \
	freshet-changed@.path freshet-changed@.service
# install-once MODE,SOURCE,TARGET
install-once = test -e $(3) -o -L $(3) || install -D -m $(1) $(2) $(3)

.DEFAULT_GOAL := help
.PHONY: help setup setup-test build run test lint format bench bench-network bench-signals docs sanitize install uninstall clean

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

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
	@Scripts/manual --lint
	@shellcheck --shell=bash --external-sources --source-path=SCRIPTDIR $$(Scripts/shell-files)

format:
	@$(SWIFT) format --in-place --recursive $(SOURCES)

bench: setup-test build
	@Benchmarks/run

bench-network: setup-test build
	@$(SWIFT) build --package-path Benchmarks --configuration release --static-swift-stdlib --product network-signal
	@Benchmarks/run network idle

bench-signals: setup
	@Benchmarks/signals

docs:
	@Scripts/docs

sanitize: setup-test
	@Scripts/sanitize

# Configuration that is there already is the administrator's, a link to nowhere included, and is left alone. The units
# name the programs where they are installed.
install:
	@test -x .build/release/freshetd || { echo "make install: build first: make build" >&2; exit 1; }
	install -D -s -m 0755 .build/release/freshetd $(DESTDIR)$(PREFIX)/sbin/freshetd
	install -D -s -m 0755 .build/release/freshetctl $(DESTDIR)$(PREFIX)/bin/freshetctl
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(USERUNITDIR)
	for unit in $(UNITS); do \
		sed $(PLACES) systemd/$$unit >$(DESTDIR)$(UNITDIR)/$$unit && \
		sed $(PLACES) systemd/user/$$unit >$(DESTDIR)$(USERUNITDIR)/$$unit && \
		chmod 0644 $(DESTDIR)$(UNITDIR)/$$unit $(DESTDIR)$(USERUNITDIR)/$$unit || exit 1; \
	done
	install -d $(DESTDIR)$(CATALOGDIR)
	sed $(PLACES) systemd/freshet.catalog >$(DESTDIR)$(CATALOGDIR)/freshet.catalog
	chmod 0644 $(DESTDIR)$(CATALOGDIR)/freshet.catalog
	install -D -m 0644 systemd/freshet.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf
	install -D -m 0644 systemd/freshet.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/freshet.conf
	install -D -m 0644 varlink/io.freshet.Control.varlink $(DESTDIR)$(PREFIX)/share/freshet/io.freshet.Control.varlink
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR) README.md LICENSE CHANGELOG.md
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/docs docs/*.md
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/examples etc/examples/freshet.yaml
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/examples/pipelines etc/examples/pipelines/*.yaml
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/examples/uses etc/examples/uses/*.yaml
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/examples/freshetd.service.d systemd/freshetd.service.d/*.conf
	install -d $(DESTDIR)$(SYSCONFDIR)/freshet/freshet.d $(DESTDIR)$(SYSCONFDIR)/freshet/pipelines
	$(call install-once,0644,etc/freshet/freshet.yaml,$(DESTDIR)$(SYSCONFDIR)/freshet/freshet.yaml)
	$(call install-once,0640,etc/default/freshetd,$(DESTDIR)$(SYSCONFDIR)/default/freshetd)

# Leaves configuration, copies, index and user.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/sbin/freshetd $(DESTDIR)$(PREFIX)/bin/freshetctl \
		$(addprefix $(DESTDIR)$(UNITDIR)/,$(UNITS)) $(addprefix $(DESTDIR)$(USERUNITDIR)/,$(UNITS)) \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/freshet.conf \
		$(DESTDIR)$(CATALOGDIR)/freshet.catalog
	rm -rf $(DESTDIR)$(PREFIX)/share/freshet $(DESTDIR)$(DOCDIR)

clean:
	@$(SWIFT) package clean
	@rm -rf run stage Benchmarks/.build
