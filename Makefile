# The commands of this project. Each does the set-up that it needs; a second call starts at once.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-fast faults soak check bench simulate docs lock clean

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MINUTES ?= 10
SEED ?= 0

help: ## Show these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or later is needed: make PYTHON=python3.12 …'; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo 'hint: on Debian, apt install python3-venv'; exit 2; }
	@echo 'Installing into .venv (about a minute; the Codex runtime is the largest part) …'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q cases evalfarm graders scheduler worker
	@touch $@

setup: $(READY) ## Install everything into .venv

demo: setup ## Run the BLS suite at all three levels, three repeats, and report
	@$(BIN)/evalfarm run bls --model sim-careful --repeats 3
	@echo 'The commands above are in .venv/bin. In this shell: export PATH="$(CURDIR)/.venv/bin:$$PATH"'

test: setup ## Run every test
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not faults'

test-fast: setup ## Run the tests that start no processes
	@$(BIN)/python -m pytest -q -m 'not slow'

faults: setup ## Break a farm of real processes in every known way, and hold that nothing is lost (minutes)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m faults

soak: setup ## Break it at random: make soak MINUTES=30 SEED=7
	@$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --seed $(SEED)

check: setup ## Check style, types, architecture and generated documents
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup ## Write the generated reference pages again
	@$(BIN)/python -m docs.generate

bench: setup ## Measure the farm beside its peers and its floors (20 minutes); writes docs/performance.md
	@$(BIN)/python -m bench.performance --page docs/performance.md

simulate: setup ## Measure how often the intervals hold (minutes); writes docs/statistics-coverage.md
	@$(BIN)/python -m bench.simulate docs/statistics-coverage.md

lock: setup ## Pin every dependency again, with hashes and without naming a host
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes --no-annotate --no-header --no-emit-index-url --output-file requirements.lock pyproject.toml

clean: ## Remove what the commands above made
	rm -rf .venv .evalfarm .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
