# Everything a person or CI runs here. `make help` lists it. Needs Python 3.11+ and nothing else.
PYTHON ?= python3
MINUTES ?= 30
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# A test that fails among all others is run once more alone, in plain sight: hundreds of real processes share a machine.
ALONE  := test $$? -eq 1 && echo "==> once more, alone: what failed above" && $(BIN)/pytest -q --lf --lfnf=none

.DEFAULT_GOAL := help
.PHONY: help setup demo up test check test-peers soak compatibility bench bench-peers docs proto clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with the project and its tools

$(STAMP): pyproject.toml
	@echo "==> setup: creating $(VENV) and installing maestropy with its tools (about half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maestropy needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1,<27'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]' --group dev
	@touch $(STAMP)

demo: setup  ## the main job on the embedded database, in under a minute
	@$(BIN)/python -m maestropy.cli.main demo

up: setup  ## the whole system on this computer, until Ctrl-C; known to `maestro` as environment local
	@$(BIN)/python -m maestropy.cli.main up --write-config || [ $$? -eq 130 ]

check: setup  ## format, lint, import contract, types
	@echo "==> check: ruff, import-linter, mypy --strict"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache > $(VENV)/lint-imports.log 2>&1 || { cat $(VENV)/lint-imports.log; exit 1; }
	@$(BIN)/mypy --no-error-summary

test: check  ## all tests that need no outside service
	@echo "==> test: unit, store and stack tests on an embedded PostgreSQL"
	@$(BIN)/pytest -q -m 'not peers' -n 4 --dist loadfile || { $(ALONE) -m 'not peers'; }

test-peers: setup  ## against the real Go Maestro; installs what it needs, says what it skips
	@echo "==> test-peers: side by side with the Go Maestro"
	@PATH="$$PATH:/usr/sbin" command -v mosquitto > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing Mosquitto" && apt-get update -qq \
			&& RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mosquitto > /dev/null; } \
		|| echo "==> Mosquitto cannot be installed here; the tests that need it are skipped"
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing Chromium" && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; } \
		|| echo "==> Chromium cannot be installed here; the tests that need a browser are skipped"
	@$(BIN)/pytest -q -m peers tests/peers tests/faults || { $(ALONE) -m peers tests/peers tests/faults; }

soak: setup  ## kill everything in turn under load for MINUTES; SOAK='--broker mqtt' or '--seed N'
	@PYTHONPATH=tests $(BIN)/python tests/faults/soak.py --minutes $(MINUTES) --result $(VENV)/soak.json $(SOAK)

compatibility: setup  ## write docs/compatibility.md from a run of every client, server, agent and broker together
	@MAESTROPY_WRITE_DOCS=1 $(BIN)/pytest -q -m peers tests/peers/matrix/test_matrix.py

bench: setup  ## a quick look at the speed beside the Go Maestro, in about three minutes
	@$(BIN)/python -m bench --quick

bench-peers: setup  ## all measures beside the Go Maestro; BENCH='--only creates' or BENCH=--publish for the docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@$(BIN)/python -m bench $(BENCH)

docs: setup  ## write the reference pages that are read from the code
	@$(BIN)/python scripts/generate_docs.py

proto: setup  ## regenerate the protobuf messages from proto/
	@$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/maestropy/wire/_pb --pyi_out=src/maestropy/wire/_pb proto/cloudevents.proto

clean:  ## remove .venv and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
