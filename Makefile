# Everything a user or CI calls; `make help` lists it. All set-up is inside.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

UV_VERSION := 0.13.8
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
BIN := .venv/bin

.PHONY: demo
demo: setup ## set up, run a short stability study, write and name the HTML report
	@scripts/deps-isolation.sh --quiet --demo || true
	@$(BIN)/steelyard run stability --quick

.PHONY: test
test: setup ## set up, run what finds faults quickly: minutes
	@$(BIN)/python scripts/lanes.py fast $(TEST_OPTIONS)

.PHONY: test-all
test-all: setup scheduler ## set up, run every test: also guests, whole studies, simulations, attacks by fuzzing
	@$(BIN)/python scripts/lanes.py all $(TEST_OPTIONS)

.PHONY: check
check: setup ## format, lint, types, layers, circles
	@cargo fmt --check
	@cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_layout.py
	@$(BIN)/python scripts/check_circles.py
	@$(BIN)/python scripts/notice.py --check
	@$(BIN)/python scripts/api_page.py --check
	@$(BIN)/python -m pytest --collect-only --quiet --check-durations --snapshot-warn-unused > /dev/null

.PHONY: bench
bench: setup ## print Steelyard's own error and speed as ratios against its peers
	@$(BIN)/python benches/outside_error.py
	@$(BIN)/python benches/resampling.py
	@$(BIN)/python benches/segmentation.py
	@$(BIN)/python benches/linear_model.py
	@$(BIN)/python benches/compare_power.py --pairs 10 --budget 2
	@$(BIN)/python benches/call_times.py
	@$(BIN)/python benches/sizes.py --scale 0.1 --only rows
	@$(BIN)/python benches/placing.py --short

.PHONY: bench-simulator
bench-simulator: ## print how many scheduling events are simulated per second of CPU time
	@cargo run --locked --quiet --release -p steelyard-sched --example events

.PHONY: bench-scheduler
bench-scheduler: setup scheduler ## print how many instructions each path of the best-effort class takes on 2 to 64 CPUs
	@$(BIN)/python benches/scheduler_paths.py

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: ## feed every parser of foreign bytes with damaged ones, FUZZ_SECONDS each
	@scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: verify-sync
verify-sync: ## check locks and queues under loom, Miri and ThreadSanitizer, with 1000 stress rounds
	@scripts/verify-sync.sh

.PHONY: bench-limits
bench-limits: ## end 200 runs of each tree that forks, alone and beside a load of twice the CPUs; an hour
	@cargo test --locked --quiet -p steelyard-launch --test hostile -- --ignored --test-threads=1

.PHONY: bench-communication
bench-communication: setup ## print how well communication is measured, modelled and simulated, beside the goals
	@status=0; \
	$(BIN)/python benches/communication_fit.py || status=1; \
	$(BIN)/python benches/communication_planted.py || status=1; \
	$(BIN)/python benches/simgrid_export.py || status=1; \
	$(BIN)/python benches/mpi_transports.py || status=1; \
	src/steelyard/_bin/steelyard-comm overhead; \
	exit $$status

.PHONY: bench-replication
bench-replication: setup deps-replication ## print what recording a call costs, beside what frameworks cost
	@$(BIN)/python benches/call_recording.py

.PHONY: truth
truth: setup ## compute the pages that say how often intervals, verdicts and gates are right
	@cd tests && ../$(BIN)/python -m statistical.truth --write ../docs/concepts/coverage.md
	@cd tests && ../$(BIN)/python -m statistical.gate --write ../docs/concepts/gate.md

.PHONY: sizes-page
sizes-page: setup ## record what large results take, beside polars and DuckDB, and write the page; 12 minutes, goes on
	@$(BIN)/python benches/sizes.py --record benches/sizes.json --place target/sizes --minutes 12 \
	    --page docs/concepts/sizes.md

.PHONY: simulated-page
simulated-page: setup ## compute the page that puts simulated numbers beside the source's
	@cd tests && ../$(BIN)/python -m simulated.page --write ../docs/guides/simulate-colocation.md

.PHONY: exit-cost-page
exit-cost-page: setup scheduler ## measure in a guest what the exit check costs, and write it into its page
	@cd tests && ../$(BIN)/python -m golden.exit_cost

.PHONY: format
format: setup ## rewrite the sources in the house style
	@cargo fmt
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

.PHONY: setup
setup: $(filter .tools/bin/uv,$(UV)) ## build everything into .venv
	@$(UV) sync --locked --all-extras --compile-bytecode --quiet

.PHONY: deps-isolation
deps-isolation: ## install the isolation technologies from packages (root, Debian-like)
	@scripts/deps-isolation.sh

.PHONY: deps-stability
deps-stability: deps-isolation ## what the stability study can use beyond the bare machine

.PHONY: deps-communication
deps-communication: ## install MPI, SimGrid and the tools for links from packages (root, Debian-like)
	@scripts/deps-communication.sh

.PHONY: scheduler
scheduler: ## build the best-effort scheduling class and its loader (clang, libelf, zlib; not part of setup)
	@scripts/build-scheduler.sh

.PHONY: deps-colocation
deps-colocation: ## install the best-effort class's compiler, fetch the guest it is shown in (root, Debian-like)
	@scripts/deps-colocation.sh

.PHONY: deps-replication
deps-replication: ## install Java, fetch JMH, Kieker and OpenTelemetry, build the benchmarks (root, Debian-like)
	@scripts/deps-replication.sh

.PHONY: deps-harnesses
deps-harnesses: ## install the benchmark harnesses whose drivers are tested (root, Debian-like)
	@scripts/deps-harnesses.sh

.PHONY: deps-fleet
deps-fleet: ## install the cluster software that tests start on this machine (root, Debian-like)
	@scripts/deps-fleet.sh

.PHONY: deps-packages
deps-packages: setup ## install the validators of others that replication packages are checked with
	@scripts/deps-packages.sh

.PHONY: wheel
wheel: $(filter .tools/bin/uv,$(UV)) ## build the wheel and the source distribution into dist/, and check both
	@scripts/wheel.sh

.PHONY: wheel-aarch64
wheel-aarch64: $(filter .tools/bin/uv,$(UV)) ## build the wheel for 64-bit ARM into dist/, and check it
	@scripts/aarch64.sh scripts/wheel.sh aarch64-unknown-linux-gnu

.PHONY: deps-aarch64
deps-aarch64: ## install what compiles for 64-bit ARM and emulates it (root, Debian-like)
	@scripts/deps-aarch64.sh

.PHONY: old-userland
old-userland: ## make the userland of Debian 11 in which the wheel is tried (root, debootstrap)
	@scripts/old-userland.sh

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf .venv .tools target dist src/steelyard/_bin src/steelyard/_workloads src/steelyard/*.so crates/py/README.md

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.tools/bin/uv:
	@python3 -m venv .tools || { echo "hint: apt-get install python3-venv" >&2; exit 1; }
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
