# The two commands that matter: `make demo` shows the whole story, `make test` proves it.

CARGO ?= cargo
# Seconds for each fuzz target.
FUZZ_TIME ?= 60
# cargo-nextest where it is installed, else the runner that comes with Rust.
TEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo "nextest run" || echo "test")

# Where Debian's Node.js is too old, scripts/install-deps puts a newer one there.
NODE := PATH="$(CURDIR)/target/clients/agents/node/bin:$$PATH"

.DEFAULT_GOAL := help
.PHONY: help build console install demo test test-agents model fuzz bench lint clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: console ## the program, optimised: target/release/handover
	scripts/install-deps run
	$(CARGO) build --locked --release -p handover

console: console/dist/index.html ## the web console's app, which the program holds: console/dist

console/dist/index.html: $(shell find console -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/target/*')
	scripts/install-deps console
	$(NODE) npm run --silent build --prefix console
	@touch $@

install: build ## into ~/.cargo/bin
	$(CARGO) install --locked --path crates/handover

demo: console ## an agent gets stuck at a login, a person takes over, the agent goes on
	scripts/install-deps demo
	demo/run

test: console ## everything that must hold: unit, property, model, corpus and whole-program tests
	scripts/install-deps test
	$(NODE) npm run --silent check --prefix console
	$(NODE) npm test --silent --prefix console
	$(CARGO) $(TEST) --locked --workspace

test-agents: console ## the same promises about steers and aborts on every agent program that Handover drives (installs 1.1 GB)
	scripts/install-deps agents
	$(CARGO) $(TEST) --locked -p handover --test promises pi::
	$(CARGO) $(TEST) --locked -p handover --test agents

model: ## the larger exhaustive check of the arbiter
	HANDOVER_MODEL=large $(CARGO) test --locked --release -p handover-control --lib -- --nocapture model

fuzz: ## both directions of the RFB parser, and the relay, FUZZ_TIME seconds each (needs cargo-fuzz and a nightly toolchain)
	fuzz/run $(FUZZ_TIME)

bench: console ## a table of what each step costs
	scripts/install-deps bench
	bench/run

lint: ## formatting and lints, as a change must pass them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check; \
	else echo "cargo-deny is not installed: licences and advisories were not checked" >&2; fi

clean: ## what was built
	$(CARGO) clean
