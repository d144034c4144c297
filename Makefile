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

.PHONY: install run test test-package check format bench explore mutate clean

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

# Through the environment: a prompt may hold whatever a shell would take for its own.
run: export COVEY_PROMPT = $(value PROMPT)
run: $(RUNTIME)
	@$(BIN)/python -m covey.cli.tour $(if $(filter 0,$(LOCAL)),--scripted,--install requirements-local.lock)

test: install
	$(BIN)/pytest -q -n 2

# What users install: built, installed where nothing else is, and run. Needs the package index.
test-package:
	$(PYTHON) tests/try_package.py

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

# Large bounds and random seeds, for as long as SECONDS says.
SECONDS ?= 300
explore: install
	$(BIN)/python -m tests.sim.explore --seconds $(SECONDS)

# Change the core in every small way and see whether a test notices.
MUTATE ?= lifecycle/runs.py
mutate: install
	$(BIN)/python -m tests.mutation $(MUTATE)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
