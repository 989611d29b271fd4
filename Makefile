# Everything a person does with this project, each target usable in a fresh clone.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# Some environments forbid it: every operator that the tests start would compile the whole package anew.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that is new enough; PYTHON=... overrides.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11, 4))' 2>/dev/null && { echo $$p; break; }; done)
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
# A worker for each core; who has ended takes tests of others.
UNIT_TESTS := --quiet --numprocesses auto --dist worksteal tests/unit
# Integration tests mostly wait: more of them than cores go at once, each worker with a control plane of its own.
SIDE_BY_SIDE := --numprocesses 3 --dist worksteal

.PHONY: help demo test test-all check format unit mutants integration bench soak faults manifests reference lock audit image-test pin-images clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  \033[1mmake %-12s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements-dev.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.11.4 or newer with the venv module was found: install one, or name it with 'make PYTHON=/path/to/python3'." >&2; exit 1; fi
	@echo "==> Installing the locked dependencies into $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib operator > /dev/null || true # as pip would, but on all cores
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/addon-operator: $(STAMP)

demo: $(STAMP) ## Watch the operator at work on a local control plane
	@$(BIN)/python scripts/demo.py

check: $(STAMP) ## Formatting, lint, types and import direction
	@echo "==> ruff format --check"; $(BIN)/ruff format --check --quiet . || { echo "run 'make format'" >&2; exit 1; }
	@echo "==> ruff check"; $(BIN)/ruff check --quiet .
	@echo "==> mypy (strict)"; $(BIN)/mypy --no-error-summary
	@echo "==> import direction"; $(BIN)/lint-imports --no-cache > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }

format: $(STAMP) ## Rewrite the sources in the project's format
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

unit: $(STAMP) ## Unit tests: seconds, no cluster, no network
	@echo "==> unit tests"; $(PYTEST) $(UNIT_TESTS)

mutants: $(STAMP) ## Make mistakes in FILE=… that the unit tests of its room must notice (SAMPLE=60 SEED=1)
	@$(BIN)/python scripts/mutants.py $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(FILE)

integration: $(STAMP) ## Integration tests against a real local control plane
	@$(BIN)/addon-operator devcluster build
	@$(PYTEST) $(SIDE_BY_SIDE) tests/integration

test: $(STAMP) ## check and unit tests side by side, then integration tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check unit # mypy leaves all cores but one to others
	@echo "==> control plane binaries"
	@$(BIN)/addon-operator devcluster build
	@echo "==> integration tests"
	@$(PYTEST) $(SIDE_BY_SIDE) tests/integration

test-all: test ## test, and the tests that take long
	@$(PYTEST) $(SIDE_BY_SIDE) -m slow tests

image-test: $(BIN)/addon-operator ## Build the image and run it as its pod (needs root, buildah, debootstrap)
	@$(BIN)/python scripts/image_test.py $(if $(IF_POSSIBLE),--if-possible)

bench: $(STAMP) ## Benchmarks beside their baselines, or ONLY=scale; BEFORE=FILE compares; writes bench.html and bench.json
	@$(BIN)/python -m tests.benchmarks $(ONLY) --json bench.json --page bench.html $(if $(BEFORE),--before $(BEFORE))

soak: $(STAMP) ## Let an operator work for MINUTES=30, and name what grows; writes soak.html
	@$(BIN)/python -m tests.benchmarks.soak --minutes $(or $(MINUTES),30)

faults: $(STAMP) ## Make N=500 random faults from SEED=1 on, after which nothing may be lost; a failed seed replays
	@$(BIN)/python -m tests.trials.kept_objects --faults $(or $(N),500) --seed $(or $(SEED),1) $(if $(HELM),--helm $(HELM))

reference: $(STAMP) ## Write the tables of docs/reference/settings.md and metrics.md from the code
	@$(BIN)/python scripts/reference.py

manifests: $(STAMP) ## Render deploy/manifests from the chart
	@$(BIN)/python scripts/manifests.py

pin-images: $(STAMP) ## Write the digests of base images and of git-sync (needs their registries)
	@$(BIN)/python scripts/pin_images.py

lock: ## Resolve the dependencies anew (needs uv)
	@uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--custom-compile-command "make lock" --extra dev -o requirements-dev.lock pyproject.toml
	@uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--custom-compile-command "make lock" -o scripts/audit.lock scripts/audit.in
	@$(BIN)/python scripts/image_lock.py

audit: $(STAMP) ## Look for known vulnerabilities of the locked dependencies (needs the network)
	@scripts/audit

clean: ## Remove the environment and the tools' caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .demo
