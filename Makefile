# Freshet's tasks. `make run` and `make test` do all the set-up on a fresh Debian 12 with Swift 6.3.
#
#   make run       install what is missing, build, and show the main job on loopback
#   make test      install what is missing, and run every test (what CI runs)
#   make test-quick  lint, unit tests, marbles and simulation: before each commit
#   make soak      the tests that kill and the simulation, many times as long: some hours
#   make setup     only install what is missing
#   make build     release binaries, in .build/release
#   make lint      format check, layer check, shell check, manual pages
#   make format    rewrite the sources in the house style
#   make bench     figures and ratios; judges nothing
#   make bench-network  the same, of events of the network and of rest
#   make bench-signals  the same, of the signals beside other libraries
#   make docs      the libraries' documentation, in .build/docs
#   make sanitize  unit tests and simulation under the thread and the address sanitizer
#   make fuzz      SECONDS=60 TARGETS=: the fuzzer on each reader of bytes from outside, so long each (CONTRIBUTING.md)
#   make deb       install what is missing, and build a Debian package, in .build/deb (docs/packaging.md)
#   make install   DESTDIR= PREFIX=/usr; leaves configuration that is there alone
#   make uninstall leaves configuration and data
#   make clean     remove what was built

SHELL = /bin/bash
.SHELLFLAGS = -e -o pipefail -c
PREFIX ?= /usr
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
CATALOGDIR ?= $(PREFIX)/lib/systemd/catalog
DOCDIR ?= $(PREFIX)/share/doc/freshet
DATADIR ?= $(PREFIX)/share/freshet
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
SWIFT ?= swift
# More of them for a packager, such as --disable-automatic-resolution.
SWIFTFLAGS ?=
# Where the programs are that `install` and `deb` take.
BIN ?= .build/release
# Empty to leave their symbols to somebody else, such as dh_strip(1).
STRIP ?= -s
DEBDIR ?= .build/deb
# -z now: what the linker fills in is read-only before the first byte of the network is read.
RELEASE = $(SWIFT) build --configuration release --static-swift-stdlib -Xlinker --gc-sections -Xlinker -z -Xlinker now \
	-Xlinker "-L$(CURDIR)/$(STATIC)" $(SWIFTFLAGS)
# Swift's library is linked statically, and so is the one of C++ that it needs, if there is one to be linked so: to fill in
# its symbols would take a seventh of the time of a `freshetctl status`.
STATIC = .build/static
SOURCES = Package.swift Sources Examples Tests Benchmarks/Package.swift Benchmarks/Sources
PLACES = -e 's|/usr/sbin/freshetd|$(PREFIX)/sbin/freshetd|g' -e 's|/usr/bin/freshetctl|$(PREFIX)/bin/freshetctl|g' \
	-e 's|/usr/share/doc/freshet|$(DOCDIR)|g' -e 's|/usr/share/freshet/|$(DATADIR)/|g'
# Each is there for the system and for users.
UNITS = freshetd.service freshetd.socket freshet-refresh@.service freshet-refresh@.timer \
	freshet-changed@.path freshet-changed@.service
# For the system alone.
SYSTEMUNITS = $(UNITS) freshet-metrics.service freshet-metrics.timer
MANPAGES = $(notdir $(wildcard man/*.[1-8]))
# files-below DIRECTORY
files-below = $$(cd $(1) && find . -type f -printf '%P\n' | LC_ALL=C sort)
# install-text SOURCE,TARGET[,MODE]: programs and files are named in it where they are installed.
install-text = sed $(PLACES) $(1) | install -D -m $(or $(3),0644) /dev/stdin $(DESTDIR)$(2)
# install-once SOURCE,TARGET,MODE
install-once = test -e $(DESTDIR)$(2) -o -L $(DESTDIR)$(2) || $(install-text)
# install-completion SHELL,TARGET: the program writes it, unless it cannot run here.
install-completion = if $(BIN)/freshetctl completions $(1) >/dev/null; then \
	$(BIN)/freshetctl completions $(1) | install -D -m 0644 /dev/stdin $(DESTDIR)$(2); \
	else echo "make install: no completions for $(1)" >&2; fi

.DEFAULT_GOAL := help
.PHONY: help setup setup-deb setup-test static-library build run test test-quick soak lint format bench bench-network bench-signals docs sanitize fuzz deb install uninstall clean
# What builds uses all processors by itself, and what installs comes before it.
.NOTPARALLEL:

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

setup:
	@Scripts/setup run

setup-deb:
	@Scripts/setup deb

setup-test:
	@Scripts/setup test

# Each time, for the compiler that is there now.
static-library:
	@mkdir -p $(STATIC) && rm -f $(STATIC)/libstdc++.a
	@for compiler in "$$(dirname "$$(readlink -f "$$(command -v $(SWIFT))")")/clang" clang g++; do \
		library=$$("$$compiler" -print-file-name=libstdc++.a 2>/dev/null) && [ -e "$$library" ] && \
			ln -s "$$library" $(STATIC)/ && break; \
	done || echo 'make: there is no libstdc++.a: the programs will need the shared library' >&2

build: static-library
	@$(RELEASE) --product freshetd
	@$(RELEASE) --product freshetctl

run: setup build
	@Scripts/demo

test: setup-test
	@Scripts/test

test-quick: setup-test
	@Scripts/test quick

# A thousand kills in each test that kills; 100,000 courses that nobody has tried.
soak: setup-test build
	@FRESHET_SCHEDULES=100000 Scripts/test only CourseTests
	@ROUNDS=1000 LIMIT=7200 Tests/System/run 610 632 643 672

lint:
	@Scripts/check-layers
	@$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)
	@Scripts/manual --lint
	@Scripts/shell-files | xargs --max-procs=$$(nproc) --max-args=12 \
		shellcheck --shell=bash --external-sources --source-path=SCRIPTDIR

format:
	@$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

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

# SECONDS is a variable of bash, and no default of ours.
fuzz: setup
	@Scripts/fuzz $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60) $(TARGETS)

# Given the programs (BIN=DIRECTORY on the command line), it takes them, and installs and builds nothing.
ifneq ($(origin BIN),command line)
deb: setup-deb build
endif
deb:
	@Scripts/deb $(BIN) $(DEBDIR)

# Configuration that is there already is the administrator's, a link to nowhere included, and is left alone. Units, pages
# and examples name programs and files where they are installed.
install:
	@test -x $(BIN)/freshetd || { echo "make install: build first: make build" >&2; exit 1; }
	install -D $(STRIP) -m 0755 $(BIN)/freshetd $(DESTDIR)$(PREFIX)/sbin/freshetd
	install -D $(STRIP) -m 0755 $(BIN)/freshetctl $(DESTDIR)$(PREFIX)/bin/freshetctl
	for unit in $(SYSTEMUNITS); do $(call install-text,systemd/$$unit,$(UNITDIR)/$$unit); done
	for unit in $(UNITS); do $(call install-text,systemd/user/$$unit,$(USERUNITDIR)/$$unit); done
	$(call install-text,systemd/freshet.catalog,$(CATALOGDIR)/freshet.catalog)
	install -D -m 0644 systemd/freshet.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf
	install -D -m 0644 systemd/freshet.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/freshet.conf
	install -D -m 0644 -t $(DESTDIR)$(DATADIR) varlink/io.freshet.Control.varlink
	install -D -m 0644 -t $(DESTDIR)$(DATADIR)/schema etc/schema/*.json
	install -D -m 0644 -t $(DESTDIR)$(DATADIR)/grafana etc/grafana/*.json
	install -D -m 0644 -t $(DESTDIR)$(DATADIR)/prometheus etc/prometheus/freshet.rules.yml
	for page in $(MANPAGES); do $(call install-text,man/$$page,$(MANDIR)/man$${page##*.}/$$page); done
	$(call install-completion,bash,$(BASHCOMPDIR)/freshetctl)
	$(call install-completion,zsh,$(ZSHCOMPDIR)/_freshetctl)
	$(call install-completion,fish,$(FISHCOMPDIR)/freshetctl.fish)
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR) README.md LICENSE CHANGELOG.md
	for file in $(call files-below,docs); do install -D -m 0644 docs/$$file $(DESTDIR)$(DOCDIR)/docs/$$file; done
	for file in $(call files-below,etc/examples); do \
		$(call install-text,etc/examples/$$file,$(DOCDIR)/examples/$$file); \
	done
	for file in $(call files-below,systemd/freshetd.service.d); do \
		$(call install-text,systemd/freshetd.service.d/$$file,$(DOCDIR)/examples/freshetd.service.d/$$file); \
	done
	install -d $(DESTDIR)$(SYSCONFDIR)/freshet/freshet.d $(DESTDIR)$(SYSCONFDIR)/freshet/pipelines
	$(call install-once,etc/freshet/freshet.yaml,$(SYSCONFDIR)/freshet/freshet.yaml)
	$(call install-once,etc/default/freshetd,$(SYSCONFDIR)/default/freshetd,0640)

# Leaves configuration, copies, index and user.
uninstall:
	@case "$(DATADIR):$(DOCDIR)" in */freshet*:*/freshet*) ;; \
		*) echo "make uninstall: not below directories of freshet: $(DATADIR) $(DOCDIR)" >&2; exit 1 ;; esac
	rm -f $(DESTDIR)$(PREFIX)/sbin/freshetd $(DESTDIR)$(PREFIX)/bin/freshetctl \
		$(addprefix $(DESTDIR)$(UNITDIR)/,$(SYSTEMUNITS)) $(addprefix $(DESTDIR)$(USERUNITDIR)/,$(UNITS)) \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/freshet.conf \
		$(DESTDIR)$(CATALOGDIR)/freshet.catalog $(DESTDIR)$(BASHCOMPDIR)/freshetctl \
		$(DESTDIR)$(ZSHCOMPDIR)/_freshetctl $(DESTDIR)$(FISHCOMPDIR)/freshetctl.fish \
		$(foreach page,$(MANPAGES),$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page))
	rm -rf $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR)

clean:
	@$(SWIFT) package clean
	@rm -rf run stage Benchmarks/.build
