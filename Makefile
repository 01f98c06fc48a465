# What a person and CI call. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What is given on the command line is text, never make's own language: `MODEL_NAME='$(shell …)'` runs nothing.
$(foreach name,MODEL_NAME DATA REVISION REASON,$(if $(findstring command line,$(origin $(name))),$(eval override \
  $(name) := $$(value $(name)))$(eval export $(name))))

# Debian's own Python; uv downloads none. Only the package registries are asked for anything, and no one is told anything.
PYTHON ?= $(firstword $(foreach p,python3 python3.12 python3.11,$(shell \
  $(p) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null && command -v $(p))))
export UV_PYTHON_DOWNLOADS := never
export DO_NOT_TRACK := 1
export PYTHONUNBUFFERED := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

UV := .seatrial/uv/bin/uv
ENVIRONMENT := .venv/.locked
BIN := .venv/bin

.PHONY: help run test check render down bench bench-cluster lock clean programs test-cluster cluster-up cluster-down cluster-shell

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# The values reach the shell by the environment, quoted: no value is ever a part of a command.
run: $(ENVIRONMENT) ## Release a model: MODEL_NAME=cart_abandonment [DATA=file:///…] [REVISION=…] [REASON=…]
	@$(BIN)/seatrial release $${DATA:+--data="$$DATA"} $${REVISION:+--revision="$$REVISION"} \
	  $${REASON:+--reason="$$REASON"} $${MODEL_NAME+-- "$$MODEL_NAME"}

test: $(ENVIRONMENT) ## Every test that needs no cluster
	$(BIN)/pytest -n 2 -m "not integration and not cluster"
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m integration

check: $(ENVIRONMENT) ## Style, types, import rules, and whether the rendered files are fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/seatrial render --check

render: $(ENVIRONMENT) ## Write workflow_templates/ and the README's step table from pipelines/ and the contracts
	@$(BIN)/seatrial render

down: ## Stop the sandbox: no process and no port is left, what it stored stays
	@if [ -x $(BIN)/seatrial ]; then $(BIN)/seatrial down; else echo "nothing was running"; fi

# Debian packages that are missing are named; under CI they are installed.
programs: $(ENVIRONMENT) ## Build the test cluster's programs and all images; kept outside the clone by version and content
	@$(BIN)/python -m infra.cluster build $(if $(CI),--install)
	@$(BIN)/python -m infra.images build

cluster-up: programs ## A real Kubernetes with Argo, KServe and seatrial in a network of its own (root, Debian 12, Go 1.26)
	@$(BIN)/python -m infra.cluster up
	@for part in "infra.images push" infra.git_server infra.install; do \
	  $(BIN)/python -m infra.cluster exec -- $(BIN)/python -m $$part; done

# The host is as it was, whatever became of the tests.
test-cluster: $(ENVIRONMENT) ## Releases and failures on the real cluster, which is brought up and taken down
	@$(BIN)/python tests/cluster/downloads.py
	@trap '$(BIN)/python -m infra.cluster down' EXIT; $(MAKE) --no-print-directory cluster-up; \
	  $(BIN)/python -m infra.cluster exec -- $(BIN)/pytest -vv -p no:randomly -n 3 --dist loadfile --no-loadscope-reorder -m cluster tests/cluster

cluster-down: ## End the cluster: the host is as it was, what it stored stays
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m infra.cluster down; else echo "nothing was running"; fi

cluster-shell: ## A shell inside the cluster's network: kubectl, argo and ctr at hand
	@$(BIN)/python -m infra.cluster shell

bench: $(ENVIRONMENT) ## Measure, and write docs/benchmarks.md
	$(BIN)/python -m bench

bench-cluster: $(ENVIRONMENT) ## Our pipeline beside plain YAML, on the real cluster; writes docs/benchmarks-cluster.md
	@$(BIN)/python tests/cluster/downloads.py
	@trap '$(BIN)/python -m infra.cluster down' EXIT; $(MAKE) --no-print-directory cluster-up; \
	  PYTHONPATH=tests/cluster $(BIN)/python -m infra.cluster exec -- $(BIN)/python -m bench.in_cluster

lock: $(UV) ## Resolve the locks anew
	UV=$(UV) bash locks/compile.sh

clean: down cluster-down ## Remove the environment and all local state, with every model and image in it
	rm -rf .venv .seatrial

$(UV): locks/uv.txt
	@[ -n "$(PYTHON)" ] || { echo "python 3.11 or 3.12 is needed: apt-get install python3 python3-venv" >&2; exit 1; }
	@echo "installing uv" >&2
	@$(PYTHON) -m venv .seatrial/uv
	@.seatrial/uv/bin/pip install --quiet --require-hashes --requirement locks/uv.txt
	@touch $@

$(ENVIRONMENT): $(UV) locks/seatrial.txt pyproject.toml
	@echo "installing the locked environment" >&2
	@[ -x $(BIN)/python ] || $(UV) venv --quiet --python "$(PYTHON)" .venv
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes locks/seatrial.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
