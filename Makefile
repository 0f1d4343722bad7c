# Forerun's build. Every target installs what it needs and the machine lacks; tools/need.sh says what that is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

include tools/versions.mk

export PATH := $(CURDIR)/.forerun/go/bin:$(CURDIR)/.forerun/tools:$(PATH)
export GOTOOLCHAIN ?= auto

venv := .forerun/venv
python := $(venv)/bin/python
packages := bin/runtimes/python/packages
node_packages := bin/runtimes/node/packages
java_runtime := bin/runtimes/java
offload := bin/runtimes/offload
console := internal/gateway/console/dist
# The interpreter that functions run on: the server takes the system's first, and which packages it needs depends on its version.
system_python = $(shell command -v /usr/bin/python3 || command -v python3)
sdk_python := $(wildcard sdk/python/openwhisk/*.py) sdk/python/openwhisk/py.typed
sdk_node := $(wildcard sdk/node/*.js) sdk/node/index.d.ts sdk/node/package.json
sources := go.mod go.sum $(shell find cmd internal runtimes -type f -not -name '*_test.go' -not -path '*/__pycache__/*')
# The version that the binary tells, from the tags of git. The file changes only with it.
version := $(shell tools/version.sh)
$(shell mkdir -p .forerun && [ "$$(cat .forerun/version 2>/dev/null)" = '$(version)' ] || echo '$(version)' > .forerun/version)

# Where `make install` puts things; DESTDIR is in front of all of it.
PREFIX ?= /usr/local

##@ To use it

.PHONY: run
run: build $(venv)/.data node_modules/.stamp ## start Forerun, deploy an example (EXAMPLE=smarthome or flightbook), compare it with and without speculation, serve until Ctrl-C (ONCE=1: end after that)
	@exec node examples/run.js

.PHONY: build
build: bin/forerun $(packages)/.stamp $(node_packages)/.stamp $(if $(shell command -v javac),$(java_runtime)/.stamp $(offload)/.stamp) ## build bin/forerun, and beside it what functions find at hand (for Java: if there is a JDK)

.PHONY: install
install: build ## install Forerun below PREFIX=/usr/local, with a systemd unit (DESTDIR=FOLDER: into the folder of a package); data stay
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' deploy/install.sh

.PHONY: uninstall
uninstall: ## remove what `make install` installed; data and settings stay
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' deploy/uninstall.sh

.PHONY: dist
dist: build sbom ## make dist/forerun-VERSION-linux-ARCH.tar.gz, which runs where it is unpacked
	@deploy/dist.sh '$(version)'

##@ To work on it

.PHONY: test
test: build $(java_runtime)/.stamp $(offload)/.stamp $(venv)/.stamp node_modules/.stamp .forerun/quic/.stamp sbom need-redis need-tools ## run all tests; needs no service, leaves nothing behind
	-@$(MAKE) --no-print-directory bin/examples/thumbs.jar
	-@$(MAKE) --no-print-directory .forerun/browser/.stamp
	@$(python) tools/run_tests.py

.PHONY: soak
soak: build need-redis .forerun/quic/.stamp ## attack the server with random clients, kills and failures of the power, each test for a time (SOAK=5m), squash what reaches for the outside (TIMES=100 each way), and play simulations of speculation and of the scheduler (SEEDS=1000000, other ones each time, or from SEED=N on)
	@FORERUN_SOAK=$(or $(SOAK),5m) go test -count=1 -v -p=1 -timeout=0 -run 'Histor|PowerLoss|TestCrash|DeathsInside|TestAhead(Clients|Server|Stages|Guard)|TestDifferential|TestSharedRecords|ThoseOfRedis|TestImagesAre|TestLivesOfAColumn|TestPages|TestTheOldestRows|TestOracle|TestQUICClients' ./internal/state/... ./internal/memo ./internal/service ./test
	@FORERUN_SOAK=$(or $(SOAK),5m) go test -count=1 -v -timeout=0 -run 'TestCurrent$$' ./internal/controller
	@FORERUN_SOAK_TIMES=$(or $(TIMES),100) go test -count=1 -v -p=1 -timeout=0 -run 'TestGuardMatrix|TestThousandSquashed|TestSuite/Hold|TestReplayedFlights' ./internal/sandbox/native ./internal/worker ./internal/gateway
	@FORERUN_SEED=$(or $(SEED),$$(date +%s)000000) FORERUN_SEEDS=$(or $(SEEDS),1000000) go test -count=1 -v -timeout=0 -run TestSeeds ./internal/speculate/simulation ./internal/schedule/simulation

.PHONY: check
check: need-go .forerun/tools/gofumpt .forerun/tools/golangci-lint .forerun/tools/govulncheck $(venv)/.stamp node_modules/.stamp ## check format, style, import rules, module files, known vulnerabilities
	@$(MAKE) -j2 -O check-lint check-javascript check-vulnerabilities check-python check-format check-modules check-comments

.PHONY: format
format: .forerun/tools/gofumpt $(venv)/.stamp ## format Go and Python
	@gofumpt -w cmd internal runtimes test tools bench examples
	@$(venv)/bin/ruff format --quiet .
	@$(venv)/bin/ruff check --quiet --fix .

.PHONY: sbom
sbom: bin/sbom.cdx.json ## write bin/sbom.cdx.json: what the binary and its packages contain, as CycloneDX

.PHONY: notice
notice: sbom ## write NOTICE: the licences of what the binary and its packages contain
	@go run ./tools/sbom -notice NOTICE bin/sbom.cdx.json

.PHONY: update-requirements
update-requirements: .forerun/uv/.stamp ## write each requirements.txt, with hashes, from the requirements.in beside it
	@for folder in runtimes/python tools examples test/python/quic; do \
	  .forerun/uv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --upgrade \
	    --custom-compile-command 'make update-requirements' $$([ $$folder = examples ] && echo --no-deps) \
	    $$folder/requirements.in -o $$folder/requirements.txt; done

.forerun/quic/.stamp: test/python/quic/requirements.txt | need-python
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# What drives a browser in the test of the console. Without it, or without the browser, that is skipped.
.forerun/browser/.stamp: test/browser/package.json test/browser/package-lock.json .npmrc | need-node need-browser
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-progress --loglevel=error
	@touch $@

.PHONY: bench-baseline
bench-baseline: build $(venv)/.stamp need-redis .forerun/bench .forerun/bench-native .forerun/fill .forerun/peers/.stamp ## measure Forerun without running ahead beside this machine's own echo, fdatasync and redis, and other systems (CASE=NAMES: some cases, QUICK=1: rough, OTHER=PATH: beside another binary too)
	@.forerun/bench baseline $(if $(CASE),--case '$(CASE)') $(if $(QUICK),--quick) $(if $(OTHER),--other '$(OTHER)')

.PHONY: bench-cache
bench-cache: build $(venv)/.stamp .forerun/bench .forerun/bench-native ## measure the result cache with the suites of HashCache's paper, on and off, interleaved, and single calls beside the echo (CASE=NAMES: some cases, QUICK=1: rough, ten minutes)
	@.forerun/bench cache $(if $(CASE),--case '$(CASE)') $(if $(QUICK),--quick)

.PHONY: bench-wire
bench-wire: build .forerun/bench .forerun/bench-native .forerun/quic/.stamp ## measure the protocols of the door beside plain HTTP/1.1, and new connections over a long way (CASE=door: all, or kept,rate,calls,fresh,cost; QUICK=1: rough, OTHER=PATH: beside another binary too); as root
	@.forerun/bench wire $(if $(CASE),--case '$(CASE)') $(if $(QUICK),--quick) $(if $(OTHER),--other '$(OTHER)')

.PHONY: bench-microtasks
bench-microtasks: build .forerun/bench ## measure the policies of the scheduler on a distributed sort, interleaved (QUICK=1: a third of the data, three rounds); as root
	@.forerun/bench microtasks $(if $(QUICK),--quick)

.PHONY: bench-workloads
bench-workloads: build .forerun/bench ## profile the applications of SpecFaaS: state, companies, branches, CPU, and how fast they could be at best (CASE=NAME: one, QUICK=1: rough); as root
	@.forerun/bench workloads $(if $(CASE),--case '$(CASE)') $(if $(QUICK),--quick)

.PHONY: bench-speculation
bench-speculation: build $(venv)/.stamp .forerun/bench ## measure applications with running ahead off and on (CASE=NAMES: some, with commas between, which writes files only where OUT=FOLDER says so, QUICK=1: rough)
	@.forerun/bench speculation $(if $(CASE),--case '$(CASE)') $(if $(QUICK),--quick) $(if $(OUT),--out '$(OUT)')

.PHONY: offload-demo
offload-demo: build bin/examples/thumbs.jar ## run a Spring Boot application with methods as functions, and show what comes of it (JAR=FILE, ROOTS='CLASS#METHOD;...', PATHS='/A /B', MODE=off: without functions, SECONDS=10)
	@$(system_python) tools/offload_demo.py $(if $(JAR),--jar '$(JAR)') $(if $(ROOTS),--roots '$(ROOTS)') $(if $(PATHS),--paths '$(PATHS)') $(if $(MODE),--mode '$(MODE)') $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: profile
profile: build .forerun/bench .forerun/bench-native need-redis ## profile the server under load, for the compiler: what it uses often gets faster with the next build
	@rm -rf .forerun/profiles && mkdir .forerun/profiles
	@FORERUN_CPU_PROFILE=.forerun/profiles .forerun/bench baseline --case native-throughput,python-throughput,python-sequence
	@FORERUN_CPU_PROFILE=.forerun/profiles .forerun/bench speculation --quick --case load,login,flightbook
	@go tool pprof -proto .forerun/profiles/*.pprof | gunzip | \
	  perl -0pe 's{\Q$(CURDIR)/\E}{"/" x length $$&}ge' | gzip -9n > cmd/forerun/default.pgo # names no folder of this machine

.PHONY: clean
clean: ## remove what the targets made in this folder
	rm -rf $(console)/*.* bin dist .forerun node_modules bench/out examples/flightbook/build

.PHONY: help
help: ## show this
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The programs that a bare machine lacks. Order-only where a file is made, so that it is not made anew each time.
.PHONY: need-go need-node need-python need-java need-redis need-tools need-browser
need-go need-node need-python need-java need-redis need-tools need-browser: need-%:
	@tools/need.sh $*

# What `make build` makes.
bin/forerun: $(sources) $(console)/main.js .forerun/version | need-go
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w -X main.stamped=$(version)' -o $@ ./cmd/forerun

# The console's page, which the binary has in itself.
$(console)/main.js: .forerun/console/.stamp $(wildcard console/src/*)
	rm -rf .forerun/console/src
	cp -R console/src console/tsconfig.json .forerun/console
	rm -f $(console)/*.*
	cd .forerun/console && node_modules/.bin/esbuild src/main.tsx src/main.css --bundle --minify --target=es2022 --jsx=automatic \
	  --jsx-import-source=preact --outdir=$(CURDIR)/$(console) --log-level=warning
	cp console/src/index.html console/src/icon.svg $(console)

.forerun/console/.stamp: console/package.json console/package-lock.json .npmrc | need-node
	rm -rf $(@D)
	mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-progress --loglevel=error
	@touch $@

$(packages)/.stamp: runtimes/python/requirements.txt $(sdk_python) | $(venv)/.stamp
	rm -rf $(packages)
	$(python) -m pip --python $(system_python) install --quiet --disable-pip-version-check --root-user-action=ignore --target $(packages) --require-hashes -r $<
	mkdir $(packages)/openwhisk
	cp $(sdk_python) $(packages)/openwhisk/
	$(system_python) -m compileall -q $(packages)
	@touch $@

$(node_packages)/.stamp: runtimes/node/packages/package.json runtimes/node/packages/package-lock.json $(sdk_node) | need-node
	rm -rf $(node_packages)
	mkdir -p $(node_packages)
	cp runtimes/node/packages/package*.json .npmrc $(node_packages)
	npm ci --prefix $(node_packages) --ignore-scripts --omit=dev --no-progress --loglevel=error
	mkdir $(node_packages)/node_modules/forerun
	cp $(sdk_node) $(node_packages)/node_modules/forerun/
	@touch $@

$(java_runtime)/.stamp: runtimes/java/pom.xml $(shell find runtimes/java/src -name '*.java') | need-java
	rm -rf $(java_runtime) bin/java-build
	mvn -q -B -f runtimes/java package
	@touch $@

# The agent's jar, which functions run too; its tests' classes stay in bin/offload-build for go test ./offload.
$(offload)/.stamp: offload/pom.xml $(shell find offload/src -name '*.java') | need-java
	rm -rf $(offload) bin/offload-build
	mvn -q -B -f offload package
	@touch $@

# A Spring Boot application, which tests of offloading run. Without it those are skipped.
bin/examples/thumbs.jar: examples/thumbs/pom.xml $(shell find examples/thumbs/src -type f) | need-java
	mvn -q -B -f examples/thumbs package
	@touch $@

# What tells which software that is.
bin/sbom.cdx.json: bin/forerun $(packages)/.stamp $(node_packages)/.stamp $(wildcard $(java_runtime)/.stamp $(offload)/.stamp) $(wildcard tools/sbom/*.go) tools/sbom.sh .forerun/tools/cyclonedx-gomod .forerun/sbom/.stamp $(venv)/.stamp
	@tools/sbom.sh '$(version)' '$(CYCLONEDX_MAVEN)'

.forerun/sbom/.stamp: tools/sbom/package.json tools/sbom/package-lock.json .npmrc | need-node
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --ignore-scripts --omit=optional --no-progress --loglevel=error
	@touch $@

.forerun/uv/.stamp: tools/versions.mk | $(venv)/.stamp
	$(python) -m pip install --quiet --disable-pip-version-check --upgrade --target $(@D) '$(UV)'
	@touch $@

# What the checks and tests use.
$(venv)/.stamp: tools/requirements.txt runtimes/python/requirements.txt | need-python
	rm -rf $(venv)
	python3 -m venv $(venv)
	$(python) -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/requirements.txt
	@touch $@

$(venv)/.data: examples/requirements.txt | $(venv)/.stamp
	$(python) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

node_modules/.stamp: package.json package-lock.json .npmrc | need-node
	npm ci --no-progress --loglevel=error
	@touch $@

.forerun/tools/golangci-lint: tool := $(GOLANGCI_LINT)
.forerun/tools/gofumpt: tool := $(GOFUMPT)
.forerun/tools/govulncheck: tool := $(GOVULNCHECK)
.forerun/tools/cyclonedx-gomod: tool := $(CYCLONEDX_GOMOD)
.forerun/tools/golangci-lint .forerun/tools/gofumpt .forerun/tools/govulncheck .forerun/tools/cyclonedx-gomod: tools/versions.mk | need-go
	GOBIN=$(CURDIR)/.forerun/tools CGO_ENABLED=0 go install $(tool)
	@touch $@

.forerun/bench: $(shell find bench -name '*.go' -o -path 'bench/workloads/apps/*' -type f -o -name sort.py -o -path bench/wire/client.py -o -path bench/go.mod -o -path bench/go.sum) | need-go
	cd bench && go build -o ../$@ .

.forerun/bench-native: bench/native/main.go bench/go.mod | need-go
	cd bench && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o ../$@ ./native

.forerun/fill: tools/fill/main.go $(sources) | need-go
	CGO_ENABLED=0 go build -o $@ ./tools/fill

# The systems that benchmarks compare with, and what they run.
.forerun/peers/.stamp: $(wildcard bench/peers/*) | need-node
	@mkdir -p $(@D)
	cp $^ .npmrc $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-progress --loglevel=error
	@touch $@

# The parts of `make check`; with -k it goes on after one that failed.
.PHONY: check-format check-modules check-lint check-comments check-vulnerabilities
check-format: .forerun/tools/gofumpt
	@echo gofumpt
	@bad=$$(gofumpt -l cmd internal runtimes test tools bench examples); if [ -n "$$bad" ]; then echo "not formatted (make format does it):"; echo "$$bad"; exit 1; fi

check-modules: need-go
	@echo 'go mod tidy'
	@go mod tidy -diff && cd bench && go mod tidy -diff

check-lint: .forerun/tools/golangci-lint
	@echo 'golangci-lint, with the checks of go vet'
	@golangci-lint run --allow-parallel-runners ./... && cd bench && golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...

check-comments: need-go
	@echo 'package comments'
	@go test ./tools/pkgdoc

check-vulnerabilities: .forerun/tools/govulncheck
	@tools/govulncheck.sh

.PHONY: check-python
check-python: $(venv)/.stamp
	@echo 'ruff'; $(venv)/bin/ruff format --check --quiet . && $(venv)/bin/ruff check --quiet .
	@echo 'mypy'; $(venv)/bin/mypy --no-error-summary

.PHONY: check-javascript
check-javascript: node_modules/.stamp $(console)/main.js
	@echo 'eslint'; npx --no-install eslint .
	@echo 'tsc'; npx --no-install tsc -p sdk/node && npx --no-install tsc -p .forerun/console
