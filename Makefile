# make serve      set up .venv, fetch the sample models, serve them on :8080
# make test       set up .venv, run the test suite
# `make help` lists the rest. Needs Python 3.11 or newer with pip, and nothing else.

# The first interpreter that is new enough; choose another with `make PYTHON=/path/to/python`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STRICT := --no-build-isolation --config-settings editable_mode=strict
MODELS := examples/models
# Arguments for the program behind a target: make serve ARGS='--port 9000', make test ARGS='-k batch -x'.
ARGS ?=

# The editable install links every file of app/ into the environment, so it is renewed when the list of files changes.
FILES_ID := $(shell find app -type f -not -name '*.pyc' | LC_ALL=C sort | cksum | tr -d ' ')
PACKAGE := $(VENV)/stamps/package-$(FILES_ID)

.PHONY: help serve test test-all lint format bench models pins clean
.DEFAULT_GOAL := help
.NOTPARALLEL:

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

serve: $(VENV)/stamps/cpu $(PACKAGE) models ## serve the sample models on :8080
	$(BIN)/kernelport serve $(MODELS) $(ARGS)

models: $(VENV)/stamps/cpu $(PACKAGE) ## fetch the sample models into examples/models
	$(BIN)/python examples/fetch_models.py $(MODELS)

test: $(VENV)/stamps/dev $(PACKAGE) ## run the test suite
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-all: $(VENV)/stamps/dev $(PACKAGE) ## run the suite with soaks, full sweeps and peers
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/stamps/dev $(PACKAGE) ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports --no-logo

format: $(VENV)/stamps/dev ## let ruff fix and format everything
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/stamps/dev $(PACKAGE) models ## set up the peers and measure the table of docs/performance.md
	$(BIN)/python -m benchmarks install
	$(BIN)/python -m benchmarks table $(ARGS)

pins: ## write constraints.txt anew from the newest releases
	rm -rf build/pins && $(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip --quiet install '.[cpu,dev]' setuptools
	{ echo '# The versions that the tests ran with; written by `make pins`.'; \
	  build/pins/bin/python -m pip freeze --all --exclude kernelport --exclude pip; } > constraints.txt

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './benchmarks/envs/*' -prune -exec rm -rf {} +

# Debian's python3 without python3-venv cannot put pip into an environment; a pip from outside can.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --disable-pip-version-check --quiet --python $(BIN)/python install pip; }
	@mkdir -p $(VENV)/stamps

# Strict editable mode, because the default one hides the package from mypy. Each install covers the package too.
$(VENV)/stamps/cpu: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing kernelport[cpu] and what it needs"
	@$(PIP) install --constraint constraints.txt setuptools
	@$(PIP) install --constraint constraints.txt $(STRICT) --editable '.[cpu]' && touch $(PACKAGE)
	@touch $@

$(VENV)/stamps/dev: $(VENV)/stamps/cpu
	@echo "installing the development tools"
	@$(PIP) install --constraint constraints.txt $(STRICT) --editable '.[cpu,dev]' && touch $(PACKAGE)
	@touch $@

$(PACKAGE): | $(VENV)/stamps/cpu
	@rm -f $(filter-out $@,$(wildcard $(VENV)/stamps/package-*))
	@test -e $@ || $(PIP) install --no-deps $(STRICT) --editable .
	@touch $@
