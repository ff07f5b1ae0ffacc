# Requires only Python 3.11 to 3.13, make and a package index.
# Each target creates or updates .venv when it is missing or when the requirements have changed.

SUPPORTED := import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KAFKA := .kafka
WORKERS ?= 4
ARGS ?=
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
SOURCES := src tests bench tools examples

# The tests start hundreds of processes; with it each of them would recompile the sources.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo up test test-long chaos soak check format bench kafka screenshots lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## create .venv with the dependencies of all targets

demo: $(READY) ## run a one-minute demo (ARGS="--seconds 30")
	@exec $(BIN)/queenspark demo $(ARGS)

up: $(READY) ## start the system on this machine (ARGS="--port 7000 --data-dir data")
	@exec $(BIN)/queenspark up $(ARGS)

test: $(READY) ## run the fast test suite (ARGS="tests/cli -k push")
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m 'not long' $(ARGS)

test-long: $(READY) ## run every test at full size
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --full-size $(ARGS)

chaos: $(READY) ## inject random faults and verify the result (ARGS="--minutes 60 --seed 7")
	@$(BIN)/python -m tests.chaos $(ARGS)

soak: $(READY) ## run a steady load for an hour and report growth (ARGS="--minutes 10 --rate 1000")
	@$(BIN)/python -m bench.soak $(ARGS)

check: $(READY) ## check format, lint, types and import contracts
	@$(BIN)/python tools/sync_client.py --check
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy $(SOURCES)
	@$(BIN)/lint-imports

format: $(READY) ## format the code, apply lint fixes, regenerate the sync client
	@$(BIN)/ruff check --fix-only $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/python tools/sync_client.py

bench: $(READY) ## benchmark this machine
	@$(BIN)/python -m bench $(ARGS)

kafka: $(KAFKA)/.ready ## download a Kafka broker for the tests into .kafka (needs Java 17 and mvn)

screenshots: $(READY) ## take the dashboard screenshots (ARGS=FOLDER for all)
	@$(BIN)/python -m tests.ui.screenshots $(ARGS)

lock: $(READY) ## re-resolve the dependencies and pin them with hashes
	@$(LOCK) --universal --upgrade --extra server --group dev pyproject.toml -o requirements/dev.txt
	@echo 'queen-mq==0.14.0' | $(LOCK) --universal --no-deps --no-annotate - -o requirements/queen-0.14.txt

clean: ## remove .venv, caches and build results (never data)
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/dev.txt requirements/queen-0.14.txt pyproject.toml
	@test -n '$(PYTHON)' || { echo 'No Python 3.11, 3.12 or 3.13 with the venv module found.' \
		'Install one, or pass its path: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@$(PYTHON) -c '$(SUPPORTED)' || { echo '$(PYTHON) is not usable: Python 3.11, 3.12 or 3.13 with the' \
		'venv module is required. Pass the path of one: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@test -x $(BIN)/python || { echo 'Creating $(VENV)'; $(PYTHON) -m venv $(VENV); }
	@echo 'Installing the requirements into $(VENV) (about a minute the first time)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -rf $(VENV)/queen-0.14
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		--target $(VENV)/queen-0.14 -r requirements/queen-0.14.txt
	@touch $@

$(KAFKA)/.ready: tests/kafka/pom.xml
	@command -v mvn >/dev/null || { \
		echo 'Maven (mvn) is not installed. Install it, or run the Kafka tests without it, against a mock cluster' >&2; exit 1; }
	@echo 'Downloading Kafka into $(KAFKA) (about 45 MB)'
	@rm -rf $(KAFKA)
	@mvn --batch-mode --quiet --no-transfer-progress --file tests/kafka/pom.xml dependency:copy-dependencies \
		-DoutputDirectory=$(CURDIR)/$(KAFKA)/libs
	@touch $@
