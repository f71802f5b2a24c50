# Everything a person or CI runs here. `make help` lists it. Needs Python 3.11+ and nothing else.
PYTHON ?= python3
MINUTES ?= 30
SEEDS ?= 100000
# The default python3 lives in .venv; `make test PYTHON=/path/to/python3.12` has .venv-3.12, beside it.
PYVERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)
comma  := ,
VENV   := $(if $(filter file,$(origin PYTHON)),.venv,.venv-$(PYVERSION))
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed-$(PYVERSION)
# Tests start hundreds of processes and read every test file in each worker: compiled code has to be kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo up collect shells test test-long test-quick check test-peers simulate soak compatibility test-upstream incidents bench bench-peers bench-growth bench-storm bench-agent docs lock hooks wheel image release proto clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with the project and its tools (.venv-3.12 for PYTHON=python3.12)

$(STAMP): pyproject.toml constraints.txt
	@echo "==> setup: creating $(VENV) and installing maestropy with its tools (about half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maestropy needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != ($(subst .,$(comma) ,$(PYVERSION))))' 2> /dev/null \
		|| $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1,<27'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $(STAMP)

demo: setup  ## the main job on the embedded database, in under a minute
	@$(BIN)/python -m maestropy demo

up: setup  ## the whole system on this computer, until Ctrl-C; known to `maestro` as environment local
	@$(BIN)/python -m maestropy up --write-config || [ $$? -eq 130 ]

check: setup  ## format, lint, import contract, types
	@echo "==> check: ruff, import-linter, mypy --strict"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache > $(VENV)/lint-imports.log 2>&1 || { cat $(VENV)/lint-imports.log; exit 1; }
	@$(BIN)/mypy --no-error-summary

# Beside the checks, one process reads and compiles the test files; otherwise each of the workers would.
collect: setup
	@$(BIN)/pytest -q -m 'not peers and not long' --collect-only > $(VENV)/collect.log 2>&1 &

test: collect check shells  ## all tests that need no outside service
	@echo "==> test: unit, store and stack tests on an embedded PostgreSQL"
	@$(BIN)/pytest -q -m 'not peers and not long' -n 5 --dist loadfile

# Completion is tested in the shells themselves.
shells:
	@command -v zsh > /dev/null && command -v fish > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing zsh and fish" \
			&& DEBIAN_FRONTEND=noninteractive timeout 60 apt-get install -y -qq --no-install-recommends zsh fish > /dev/null 2>&1; } \
		|| echo "==> zsh and fish cannot be installed here; completion in the missing ones is not tested"

test-long: setup  ## the tests that need no outside service either, but some seconds each
	@echo "==> test-long: whole fleets, planted bugs, long pages"
	@$(BIN)/pytest -q -m 'long and not peers' -n 4 --dist loadfile

test-quick: setup  ## the unit tests only; with PYTHON=/path/to/python3.12 on another version
	@echo "==> test-quick: unit tests on Python $(PYVERSION)"
	@$(BIN)/pytest -q -n 5 --dist loadfile tests/unit

test-peers: setup  ## against the real Go Maestro; installs what it needs, says what it skips
	@echo "==> test-peers: side by side with the Go Maestro"
	@PATH="$$PATH:/usr/sbin" command -v mosquitto > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing Mosquitto" && apt-get update -qq \
			&& RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mosquitto > /dev/null; } \
		|| echo "==> Mosquitto cannot be installed here; the tests that need it are skipped"
	@PATH="$$PATH:/usr/sbin" command -v rabbitmq-server > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing RabbitMQ" && apt-get update -qq \
			&& RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rabbitmq-server > /dev/null; } \
		|| echo "==> RabbitMQ cannot be installed here; the tests that need it are skipped"
	@PATH="$$PATH:/usr/sbin" command -v pgbouncer > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing PgBouncer" && apt-get update -qq \
			&& RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer > /dev/null; } \
		|| echo "==> PgBouncer cannot be installed here; the tests that need it are skipped"
	@command -v prometheus > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing Prometheus" && apt-get update -qq \
			&& RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus > /dev/null; } \
		|| echo "==> Prometheus cannot be installed here; the tests that need it are skipped"
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing Chromium" && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; } \
		|| echo "==> Chromium cannot be installed here; the tests that need a browser are skipped"
	@command -v buildah > /dev/null && command -v mmdebstrap > /dev/null && command -v runc > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing buildah, mmdebstrap and runc" && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah mmdebstrap debian-archive-keyring runc > /dev/null; } \
		|| echo "==> buildah, mmdebstrap and runc cannot be installed here; the tests of the image are skipped"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group image
	@$(BIN)/pytest -q -m peers -n 2 --dist loadfile tests/peers
	@$(BIN)/pytest -q -m peers tests/faults

simulate: setup  ## play SEEDS (100000) fresh schedules of the simulation on all cores; docs/simulation.md
	@echo "==> simulate: $(SEEDS) schedules; Ctrl-C ends early"
	@$(BIN)/python -m tests.simulation --fresh --schedules $(SEEDS) --jobs $$(nproc 2> /dev/null || echo 2) --keep-going \
		--result $(VENV)/simulation.json $(SIMULATE)

soak: setup  ## kill everything in turn under load for MINUTES; SOAK='--broker mqtt' or '--seed N'
	@$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --result $(VENV)/soak.json $(SOAK)

compatibility: setup  ## write docs/compatibility.md from a run of every client, server, agent and broker together
	@MAESTROPY_WRITE_DOCS=1 $(BIN)/pytest -q -m peers tests/peers/matrix/test_matrix.py

# A shell may have its own COLUMNS, the width of the terminal: only one of the command line counts.
test-upstream: setup  ## Maestro's own suites on its charts, where its source is; COLUMNS=python-go-mqtt (default: missing), UPSTREAM='--suites e2e --jobs 2'
	@echo "==> test-upstream: Maestro's own suites on our programs and on Go's"
	@$(BIN)/python -m tests.upstream --columns $(if $(findstring command,$(origin COLUMNS)),$(COLUMNS),missing) $(UPSTREAM)

incidents: setup  ## make real incidents on the Go and our stack and score `maestro trace`; INCIDENTS='--stack go --scene mqtt2'
	@$(BIN)/python -m tests.peers.incidents.play $(INCIDENTS)

bench: setup  ## a quick look at the speed beside the Go Maestro, in about three minutes
	@$(BIN)/python -m bench --quick

bench-peers: setup  ## all measures beside the Go Maestro; BENCH='--only creates' or BENCH=--publish for the docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@$(BIN)/python -m bench $(BENCH)

bench-growth: setup  ## reads and creates with 10k, 100k and 1M resources; BENCH='--sizes 10000,100000' or BENCH=--publish for the docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@$(BIN)/python -m bench.growth $(BENCH)

bench-storm: setup  ## a thousand and ten thousand agents on two servers: memory, heartbeats, storm, replacement; BENCH=--publish for the docs
	@$(BIN)/python -m bench.storm $(BENCH)

bench-agent: setup  ## an agent of each kind with 200 to 10,000 works; BENCH='--sandbox --kinds python' needs no Go; BENCH=--publish for the docs
	@$(BIN)/python -m bench.agent_scale $(BENCH)

docs: setup  ## write the reference pages that are read from the code and the files of monitoring/, and build the site in build/site
	@$(BIN)/python scripts/generate_docs.py
	@$(BIN)/python scripts/generate_monitoring.py
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@$(BIN)/python scripts/build_site.py

lock: setup  ## write constraints.txt: every dependency with its version and hashes
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--all-extras --group dev --output-file constraints.txt pyproject.toml

hooks: setup  ## run the checks of `make check` before each commit
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group hooks
	@$(BIN)/pre-commit install

wheel: setup  ## build wheel and sdist into dist/, install the wheel in a fresh environment and run the demo from it
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	@$(BIN)/python scripts/release.py build

image: setup  ## build the container image into dist/image, without a daemon; IMAGE='--again' or '--extras server,agent'
	@command -v buildah > /dev/null && command -v mmdebstrap > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& echo "==> installing buildah and mmdebstrap" && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah mmdebstrap debian-archive-keyring > /dev/null; } \
		|| echo "==> buildah and mmdebstrap cannot be installed here: that needs root and apt-get"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group image
	@$(BIN)/python -m scripts.image $(IMAGE)

release: setup  ## check, build and tag a release; VERSION=0.3.0
	@test -n '$(VERSION)' || { echo 'give the version to release: make release VERSION=0.3.0'; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	@$(BIN)/python scripts/release.py tag '$(VERSION)'

proto: setup  ## regenerate the protobuf messages from proto/
	@$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/maestropy/wire/_pb --pyi_out=src/maestropy/wire/_pb proto/cloudevents.proto

clean:  ## remove .venv, those of other versions, and caches
	@rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
