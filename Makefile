# What can be done here. Every target runs from a fresh clone with Go, git and
# make alone; the tools are Go modules pinned in go.mod and tools/go.mod, and
# what `make setup` installs: Debian packages, and OCI's clients in .build.

GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
BUF     := $(TOOL) buf
BUILD   := .build
OPENAPI := $(GO) run ./api/openapi/cmd/openapi -rules api/proto/queue/v1/gateway.yaml

# How long `make fuzz` spends on each target, and which benchmarks run.
FUZZTIME ?= 20s
BENCH    ?= .
# How often `make chaos` kills the server; how many runs `make crash` makes.
ROUNDS   ?= 50
# Which field case `make field` runs, and how long its load lasts; how long
# `make crash` begins new runs, if it is not told how many.
CASE     ?= Beats
MINUTES  ?= 30
# What `make breaking` compares with.
AGAINST  ?= .git\#ref=HEAD

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Without C a first build takes two thirds of the time.
.PHONY: run
run: export CGO_ENABLED := 0
run: build ## build the server and run it
	@bin/queued serve

.PHONY: build
build: ## build bin/queued
	$(GO) build -o bin/queued ./cmd/queued

.PHONY: setup
setup: ## check the Go version, download all modules, install the clients that tests run
	@scripts/setup.sh

.PHONY: test
test: setup lint drift unit e2e ## everything a change must pass: setup, lint, drift, unit, e2e

.PHONY: unit
unit: ## the tests of the root module
	$(GO) test ./...

.PHONY: e2e
e2e: ## the tests that drive the real binary
	@if [ -f e2e/go.mod ]; then echo "cd e2e && $(GO) test ./..."; cd e2e && $(GO) test ./...; else echo "e2e: no module yet"; fi

.PHONY: clients
clients: ## run the clients of OCI and of STOMP and write the tables of docs/clients.md
	cd e2e && WRITE=1 $(GO) test ./clients -count=1 -v

.PHONY: schemathesis
schemathesis: ## fuzz the REST API by its OpenAPI document for MINUTES
	cd e2e && MINUTES=$(MINUTES) $(GO) test ./openapi -count=1 -v -timeout 0

# It needs the Debian package rabbitmq-server (apt-get install rabbitmq-server),
# which make setup does not install. The package's own service need not run.
.PHONY: stomp-differential
stomp-differential: ## play the STOMP exchanges to a RabbitMQ on loopback and print where it differs from ours and why (WRITE=1: write it down)
	cd e2e && $(GO) vet -tags differential ./stompdiff && WRITE=$(WRITE) $(GO) test -tags differential ./stompdiff -run 'TestRabbitMQ|TestPage' -count=1 -v

.PHONY: chaos
chaos: ## kill the server ROUNDS times under load and judge what its clients saw (SEED=... repeats)
	cd e2e && ROUNDS=$(ROUNDS) SEED=$(SEED) $(GO) test ./chaos -run TestKill -count=1 -v -timeout 0

.PHONY: crash
crash: ## crash a disk at every write of random runs, for MINUTES or ROUNDS of them, and look at what is left (SEED=... repeats)
	$(GO) test ./broker -run '^TestCrash' -count=1 -v -timeout 0 \
		$(if $(filter file,$(origin ROUNDS)),-crash.for $(MINUTES)m,-crash.runs $(ROUNDS)) $(if $(SEED),-crash.seed $(SEED))

.PHONY: field
field: ## a field case that takes minutes (CASE=Beats: heart-beats; CASE=Head: a long load, MINUTES=...)
	cd e2e && $(GO) vet -tags field ./field && MINUTES=$(MINUTES) $(GO) test -tags field ./field -run 'Test$(CASE)' -count=1 -v -timeout 0

.PHONY: soak
soak: ## fill a queue to BACKLOG and drain it again for MINUTES; prints a table and plots
	cd e2e && $(GO) vet -tags field ./field && BACKLOG=$(BACKLOG) MINUTES=$(MINUTES) $(GO) test -tags field ./field -run TestSoak -count=1 -v -timeout 0

.PHONY: backlog
backlog: ## have MESSAGES wait, kill -9 and start again; prints a table (JSON=file: lines of it too)
	cd e2e && $(GO) vet -tags field ./field && MESSAGES=$(MESSAGES) JSON=$(abspath $(JSON)) $(GO) test -tags field ./field -run TestBacklog -count=1 -v -timeout 0

.PHONY: queue
queue: ## send MESSAGES through one queue in which BACKLOG wait, as fast as it goes or PER_MINUTE; prints a table and plots
	cd e2e && $(GO) vet -tags field ./field && MESSAGES=$(MESSAGES) BACKLOG=$(BACKLOG) PER_MINUTE=$(PER_MINUTE) EVERY=$(EVERY) JSON=$(abspath $(JSON)) $(GO) test -tags field ./field -run TestQueue -count=1 -v -timeout 0

.PHONY: race
race: ## the tests of the root module under the race detector
	$(GO) test -race ./...

.PHONY: lint
lint: vet fmt staticcheck buf-lint breaking ## vet, gofmt, staticcheck, buf lint, buf breaking

.PHONY: vet fmt staticcheck buf-lint
vet:
	$(GO) vet ./...
fmt:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
staticcheck:
	$(TOOL) staticcheck ./...
	@if [ -f e2e/go.mod ]; then cd e2e && $(GO) tool -modfile=../tools/go.mod staticcheck ./...; fi
buf-lint:
	$(BUF) lint
	$(BUF) format --diff --exit-code

.PHONY: breaking
breaking: ## compare the proto files with the last commit (AGAINST=...)
	@if [ -e .git ]; then $(BUF) breaking --against '$(AGAINST)'; else echo "breaking: no git history to compare with"; fi

.PHONY: generate
generate: ## make api/gen and the OpenAPI document anew from the proto files
	$(BUF) generate --clean
	@mkdir -p $(BUILD)
	$(BUF) build api/proto -o $(BUILD)/image.binpb
	$(OPENAPI) -image $(BUILD)/image.binpb -out api/openapi/openapi.json

.PHONY: drift
drift: ## fail if what is generated is not what is committed
	@rm -rf $(BUILD)/drift && mkdir -p $(BUILD)/drift
	$(BUF) generate -o $(BUILD)/drift
	diff -r $(BUILD)/drift/api/gen api/gen
	$(BUF) build api/proto -o $(BUILD)/drift/image.binpb
	$(OPENAPI) -image $(BUILD)/drift/image.binpb -out $(BUILD)/drift/openapi.json
	diff $(BUILD)/drift/openapi.json api/openapi/openapi.json

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME each
	@set -e; for pkg in $$($(GO) list ./...); do \
		all=$$($(GO) test -list '^Fuzz' $$pkg); \
		for f in $$(echo "$$all" | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: bench
bench: ## run the benchmarks, of the whole server too (BENCH=regexp)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...
	cd e2e && $(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 3s ./bench

.PHONY: clean
clean: ## remove what the targets above made
	rm -rf bin $(BUILD)
