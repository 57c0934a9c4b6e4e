# Freshet's tasks. `make run` and `make test` install all they need on a fresh Debian 12 with Swift 6.3.
#
#   make run       install missing packages, build, and demonstrate freshetd on loopback
#   make test      install missing packages, and run all tests, as CI does
#   make test-quick  run lint, unit tests, marbles and simulation: before each commit
#   make soak      repeat the tests that kill processes, and the simulation, for some hours
#   make setup     install missing packages
#   make build     build release binaries, in .build/release
#   make lint      check formatting, layers, words, shell scripts and manual pages
#   make format    format the sources
#   make bench     measure performance; has no pass or fail
#   make bench-network  measure network events and the idle daemon
#   make bench-signals  compare the signals with other libraries
#   make bench-scale  measure thousands of pipelines, beside curl, nginx, Redis and bare C
#   make bench-compare BASE=COMMIT  the same, beside another commit
#   make docs      build the documentation of the libraries, in .build/docs
#   make sanitize  run unit tests and simulation under the thread and the address sanitizer
#   make fuzz      SECONDS=60 TARGETS=: run the fuzzer on each parser of untrusted bytes (CONTRIBUTING.md)
#   make order     place the code that freshetd executes side by side, which saves memory and time (docs/packaging.md)
#   make deb       install missing packages, and build a Debian package, in .build/deb (docs/packaging.md)
#   make install   DESTDIR= PREFIX=/usr: install; keeps existing configuration
#   make uninstall uninstall; keeps configuration and data
#   make clean     remove build results

SHELL = /bin/bash
.SHELLFLAGS = -e -o pipefail -c
PREFIX ?= /usr
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
GENERATORDIR ?= $(PREFIX)/lib/systemd/system-generators
LIBEXECDIR ?= $(PREFIX)/libexec/freshet
CATALOGDIR ?= $(PREFIX)/lib/systemd/catalog
DOCDIR ?= $(PREFIX)/share/doc/freshet
DATADIR ?= $(PREFIX)/share/freshet
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
SWIFT ?= swift
# Further options, for a packager, such as --disable-automatic-resolution.
SWIFTFLAGS ?=
# The directory with the programs for `install` and `deb`.
BIN ?= .build/release
# Empty to keep the symbols, for dh_strip(1) for instance.
STRIP ?= -s
DEBDIR ?= .build/deb
# -disable-concrete-type-metadata-mangled-name-accessors: a generic type such as [String: Int] is made by calls, not by parsing
# its name and searching all conformances of the program, which was a quarter of a start and half of a `freshetctl status`.
# -z now: relocated data is read-only before the program reads its first byte from the network.
# -function-sections: the linker leaves out functions that nothing calls. --no-export-dynamic: no library calls the program.
# -gdwarf-4: Debian's valgrind(1), which counts instructions and makes the order, does not read the DWARF 5 of C code.
# --disable-local-rpath: no library is looked for beside the program.
RELEASE = $(SWIFT) build --configuration release --static-swift-stdlib --disable-local-rpath \
	-Xlinker --gc-sections -Xlinker -z -Xlinker now -Xswiftc -Xfrontend -Xswiftc -function-sections \
	-Xswiftc -Xfrontend -Xswiftc -disable-concrete-type-metadata-mangled-name-accessors \
	-Xcc -gdwarf-4 -Xlinker --no-export-dynamic -Xlinker "-L$(CURDIR)/$(STATIC)" $(SWIFTFLAGS)
# freshetctl is linked at a fixed address: to relocate 48,000 pointers was a fifth of a `freshetctl status`. It reads what the
# daemon and the administrator write; bytes of origins it only prints and compares, in Swift, which checks bounds. freshetd and
# its helpers pass what strangers write to libraries in C, so they have no fixed address.
FIXED = -Xlinker -no-pie
# Swift's library is linked statically, and so is the C++ library that it needs, if a static one is installed: resolving its
# symbols would take a seventh of the time of a `freshetctl status`.
STATIC = .build/static
# Which functions of freshetd the linker places side by side, if there is such a file: `make order` writes it.
ORDER ?= .build/order
ORDERED = $(if $(wildcard $(ORDER)),-Xlinker "--section-ordering-file=$(abspath $(ORDER))")
SOURCES = Package.swift Sources Examples Tests Benchmarks/Package.swift Benchmarks/Sources
PLACES = -e 's|/usr/sbin/freshetd|$(PREFIX)/sbin/freshetd|g' -e 's|/usr/bin/freshetctl|$(PREFIX)/bin/freshetctl|g' \
	-e 's|/usr/share/doc/freshet|$(DOCDIR)|g' -e 's|/usr/share/freshet/|$(DATADIR)/|g' \
	-e 's|/usr/libexec/freshet/|$(LIBEXECDIR)/|g'
# The project's home page, which the daemon's socket states; empty: packaging/identity has none (docs/packaging.md).
HOMEPAGE ?= $(shell Scripts/identify --print HOMEPAGE)
PLACES += $(if $(HOMEPAGE),-e 's|^Type=notify$$|&\nEnvironment=FRESHET_HOMEPAGE=$(subst &,\&,$(subst %,%%,$(HOMEPAGE)))|')
# Units for the system and for users.
UNITS = freshetd.service freshetd.socket freshet-refresh@.service freshet-refresh@.timer \
	freshet-changed@.path freshet-changed@.service freshet-missed@.service
# Units for the system only.
SYSTEMUNITS = $(UNITS) freshet-metrics.service freshet-metrics.timer freshet-reload@.path freshet-reload@.service \
	freshet-publish@.path freshet-publish@.service
MANPAGES = $(notdir $(wildcard man/*.[1-8]))
# files-below DIRECTORY
files-below = $$(cd $(1) && find . -type f -printf '%P\n' | LC_ALL=C sort)
# install-text SOURCE,TARGET[,MODE]: replaces the paths of programs and files in the text by the installed ones.
install-text = sed $(PLACES) $(1) | install -D -m $(or $(3),0644) /dev/stdin $(DESTDIR)$(2)
# install-once SOURCE,TARGET,MODE
install-once = test -e $(DESTDIR)$(2) -o -L $(DESTDIR)$(2) || $(install-text)
# install-completion SHELL,TARGET: runs freshetctl to write the completion script, unless freshetctl cannot run here.
install-completion = if $(BIN)/freshetctl completions $(1) >/dev/null; then \
	$(BIN)/freshetctl completions $(1) | install -D -m 0644 /dev/stdin $(DESTDIR)$(2); \
	else echo "make install: freshetctl does not run here; the completions for $(1) are not installed" >&2; fi

.DEFAULT_GOAL := help
.PHONY: help setup setup-deb setup-test static-library build order run test test-quick soak lint format bench bench-network bench-signals bench-scale bench-compare docs sanitize fuzz deb install uninstall clean
# A build uses all processors itself, and packages must be installed before it.
.NOTPARALLEL:

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

setup:
	@Scripts/setup run

setup-deb:
	@Scripts/setup deb

setup-test:
	@Scripts/setup test

# Made each time, for the current compiler.
static-library:
	@mkdir -p $(STATIC) && rm -f $(STATIC)/libstdc++.a
	@for compiler in "$$(dirname "$$(readlink -f "$$(command -v $(SWIFT))")")/clang" clang g++; do \
		library=$$("$$compiler" -print-file-name=libstdc++.a 2>/dev/null) && [ -e "$$library" ] && \
			ln -s "$$library" $(STATIC)/ && break; \
	done || echo 'make: libstdc++.a not found; the programs will need the shared library' >&2

build: static-library
	@$(RELEASE) $(ORDERED) --product freshetd
	@$(RELEASE) $(FIXED) --product freshetctl
	@$(RELEASE) --product freshet-template

order: build
	@Scripts/order .build/release $(ORDER)
	@$(MAKE) --no-print-directory build

run: setup build
	@Scripts/demo

test: setup-test
	@Scripts/test

test-quick: setup-test
	@Scripts/test quick

# 1,000 kills in each test that kills a process, and 100,000 new courses of the simulation.
soak: setup-test build
	@FRESHET_SCHEDULES=100000 Scripts/test only CourseTests
	@ROUNDS=1000 LIMIT=7200 Tests/System/run 610 632 643 672

lint:
	@Scripts/check-layers
	@Scripts/check-words
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

bench-scale: setup-test build
	@Benchmarks/scale

bench-compare: setup-test build
	@Benchmarks/compare '$(BASE)'

docs:
	@Scripts/docs

sanitize: setup-test
	@Scripts/sanitize

# SECONDS is a variable of bash, so only a value from make's command line is used.
fuzz: setup
	@Scripts/fuzz $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60) $(TARGETS)

# With BIN=DIRECTORY on the command line, it packages these programs, and neither installs packages nor builds.
ifneq ($(origin BIN),command line)
deb: setup-deb order
endif
deb:
	@Scripts/deb $(BIN) $(DEBDIR)

# The program for templates is installed if it was built: it is larger than everything else, and optional.
# Existing configuration, dangling links included, belongs to the administrator and is kept. Units, manual pages and examples
# get the paths of the installed programs and files.
install:
	@test -x $(BIN)/freshetd || { echo "make install: $(BIN)/freshetd does not exist; run: make build" >&2; exit 1; }
	install -D $(STRIP) -m 0755 $(BIN)/freshetd $(DESTDIR)$(PREFIX)/sbin/freshetd
	install -D $(STRIP) -m 0755 $(BIN)/freshetctl $(DESTDIR)$(PREFIX)/bin/freshetctl
	if [ -x $(BIN)/freshet-template ]; then \
		install -D $(STRIP) -m 0755 $(BIN)/freshet-template $(DESTDIR)$(LIBEXECDIR)/freshet-template; fi
	for unit in $(SYSTEMUNITS); do $(call install-text,systemd/$$unit,$(UNITDIR)/$$unit); done
	for unit in $(UNITS); do $(call install-text,systemd/user/$$unit,$(USERUNITDIR)/$$unit); done
	$(call install-text,systemd/freshet-reload-generator,$(GENERATORDIR)/freshet-reload-generator,0755)
	$(call install-text,systemd/freshet-publish,$(LIBEXECDIR)/publish,0755)
	$(call install-text,systemd/freshet-missed-change,$(LIBEXECDIR)/missed-change,0755)
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
	install -d $(DESTDIR)$(SYSCONFDIR)/freshet/freshet.d $(DESTDIR)$(SYSCONFDIR)/freshet/pipelines \
		$(DESTDIR)$(SYSCONFDIR)/freshet/hooks
	$(call install-once,etc/freshet/freshet.yaml,$(SYSCONFDIR)/freshet/freshet.yaml)
	$(call install-once,etc/default/freshetd,$(SYSCONFDIR)/default/freshetd,0640)

# Keeps configuration, copies, index and user.
uninstall:
	@case "$(DATADIR):$(DOCDIR)" in */freshet*:*/freshet*) ;; \
		*) echo "make uninstall: refused, since DATADIR and DOCDIR are not directories of freshet: $(DATADIR) $(DOCDIR)" >&2; \
			exit 1 ;; esac
	rm -f $(DESTDIR)$(PREFIX)/sbin/freshetd $(DESTDIR)$(PREFIX)/bin/freshetctl \
		$(addprefix $(DESTDIR)$(UNITDIR)/,$(SYSTEMUNITS)) $(addprefix $(DESTDIR)$(USERUNITDIR)/,$(UNITS)) \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/freshet.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/freshet.conf \
		$(DESTDIR)$(GENERATORDIR)/freshet-reload-generator $(DESTDIR)$(LIBEXECDIR)/publish $(DESTDIR)$(LIBEXECDIR)/missed-change \
		$(DESTDIR)$(LIBEXECDIR)/freshet-template \
		$(DESTDIR)$(CATALOGDIR)/freshet.catalog $(DESTDIR)$(BASHCOMPDIR)/freshetctl \
		$(DESTDIR)$(ZSHCOMPDIR)/_freshetctl $(DESTDIR)$(FISHCOMPDIR)/freshetctl.fish \
		$(foreach page,$(MANPAGES),$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page))
	rm -rf $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR)
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBEXECDIR)

clean:
	@$(SWIFT) package clean
	@rm -rf run stage Benchmarks/.build .build/order
