# `make demo` and `make test` work as the first command in a fresh checkout.

PREFIX ?= /usr/local
DESTDIR ?=

# Everything that the compiled files depend on. Directories are listed too: their time changes when
# a file is removed. The /. tells the directory bench from the target of that name.
SOURCES := $(shell find src -path src/client/python -prune -o \( -name '*.ts' -o -type d \) -print 2>/dev/null)
PROGRAMS := $(shell find examples/. bench/. test/e2e/programs/. -name '*.ts' -o -type d 2>/dev/null)
SETTINGS := package-lock.json tsconfig.json
# What the Python wheel is made of, apart from the version in package.json.
WHEEL_SOURCES := $(shell find src/client/python include src/client/c -name __pycache__ -prune -o \
  -name tests -prune -o \( -type d -o -name '*.[ch]' -o -name '*.py' -o -name '*.typed' \) -print 2>/dev/null) \
  $(wildcard src/client/c/*.mk src/client/c/Makefile src/client/c/*.map) \
  $(addprefix src/client/python/,pyproject.toml CMakeLists.txt README.md)

.PHONY: help setup package libraries build wheel programs docs check test unit e2e demo bench bench-peers storm install release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

setup: ## check Node, install the packages, provide a broker (quick if nothing is missing)
	@scripts/setup.sh

build: package libraries ## compile the package into dist/ and the C libraries into build/lib

package: dist/.stamp

# The C libraries and their pkg-config files, usable from build/.
libraries:
	@scripts/setup-c.sh
	@$(MAKE) -s -j2 --no-print-directory -C src/client/c BUILD='$(CURDIR)/build'

dist/.stamp: $(SOURCES) $(SETTINGS) tsconfig.build.json scripts/compile.sh scripts/bundle.mjs \
  scripts/bundle-page.mjs scripts/licenses-of-bundle.mjs scripts/write-man-pages.mjs | setup
	@scripts/compile.sh package dist
	@touch $@

wheel: build/wheel/.stamp ## build the Python wheel into build/wheel/

build/wheel/.stamp: $(WHEEL_SOURCES) package.json LICENSE scripts/make-wheel.sh | libraries
	@scripts/setup-python.sh
	@scripts/make-wheel.sh
	@touch $@

# Examples, benchmarks and programs of tests, with the sources they import; run from build/programs/.
programs: build/programs/.stamp

build/programs/.stamp: $(SOURCES) $(PROGRAMS) $(SETTINGS) tsconfig.run.json scripts/compile.sh scripts/bundle.mjs \
  scripts/licenses-of-bundle.mjs | setup
	@scripts/compile.sh programs build/programs
	@touch $@

docs: build ## make pages of the documents and the reference in build/docs
	@scripts/setup-docs.sh
	@scripts/make-docs.sh build/docs

check: setup ## formatters and linters, type checks, house rules
	node_modules/.bin/biome ci --diagnostic-level=warn
	node_modules/.bin/tsc -p tsconfig.json
	node_modules/.bin/tsc -p src/page/tsconfig.json
	node_modules/.bin/knip
	node_modules/.bin/knip --production --no-tag-hints
	node_modules/.bin/vitest run test/tidy.test.ts
	@scripts/check-python.sh
	@scripts/release/build-wheel.sh --check-age

test: setup ## every test: unit and property tests, then real brokers and processes
	@scripts/setup-c.sh --for-tests
	@# Installing PyTorch takes a minute or more and little processor time: unit tests run meanwhile.
	@scripts/setup-python.sh --for-tests & provided=$$!; \
	  $(MAKE) --no-print-directory unit; passed=$$?; wait $$provided && exit $$passed
	@$(MAKE) --no-print-directory e2e

unit: setup ## unit and property tests only
	@scripts/setup-c.sh --for-tests
	node_modules/.bin/vitest run

e2e: build programs wheel ## end-to-end tests only
	@scripts/setup.sh --for-tests
	@scripts/setup-c.sh --for-tests
	@scripts/setup-python.sh --for-tests
	@scripts/setup-docs.sh
	@scripts/setup-slurm.sh
	@scripts/setup-browser.sh
	node_modules/.bin/vitest run --config vitest.e2e.config.ts

demo: package programs ## train handwritten digits on several processes, with a crash in between
	@node build/programs/examples/digits/main.js build/demo

bench: package programs ## measure throughput and latency on this machine
	@node build/programs/bench/main.js $(BENCH)

bench-peers: package programs ## compare training steps with those of Redis, Ray and others
	@scripts/setup-peers.sh
	@node build/programs/bench/peers/main.js $(PEERS)

storm: build programs ## train with learners, hosts and a broker that are killed, stopped and cut off; check what they were told
	@node build/programs/bench/storm/main.js $(STORM)

install: build ## install below $(DESTDIR)$(PREFIX), /usr/local by default
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh
	@$(MAKE) -s --no-print-directory -C src/client/c install BUILD='$(CURDIR)/build' \
	  PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'

release: ## make the files of a release in build/release: npm package, wheels, SBOM, checksums; uploads nothing
	@scripts/release/release.sh

clean: ## remove what was built; keeps node_modules and .tools
	rm -rf dist build coverage .dist-new
