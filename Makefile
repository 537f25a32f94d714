# Two targets are for everyone: `make run` and `make test`. Both set up a virtual environment from the locked versions first.
# `make test` runs what is quick and proves the main job, `make test-slow` the rest, `make test-all` both. SHARE scales the examples of property tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-slow test-all slow-tests schema reference packaging site lint lock wheel clean

run: $(VENV)/.run-ready
	$(BIN)/kmem up --foreground

# Empty means off. The tests start hundreds of processes, and each of pytest's workers would compile every test file again.
export PYTHONDONTWRITEBYTECODE :=
SHARE ?= 0.2
PYTEST := $(BIN)/python -m pytest --dist worksteal

test: $(VENV)/.test-ready
	KMEM_TEST_SHARE=$(SHARE) $(PYTEST) -n 2 -m "not slow and not moonshot"

test-slow: $(VENV)/.test-ready
	KMEM_TEST_SHARE=0.25 $(PYTEST) -n 4 -m "slow and not moonshot"  # many wait for a real process: more workers than cores

test-all: $(VENV)/.test-ready
	$(PYTEST) -n 2

# Write tests/slow.txt anew from the times of a run of everything.
slow-tests: $(VENV)/.test-ready
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times.xml
	$(BIN)/python -m tests.slow .pytest_cache/times.xml

# Write docs/internals/schema.md anew from the databases that the code makes.
schema: $(VENV)/.test-ready
	$(BIN)/python -m tests.schema_page

# Write docs/reference/ anew from the commands, the settings and the declarations of the MCP tools.
reference: $(VENV)/.test-ready
	$(BIN)/python -m tests.reference_pages

# Write versions, hashes and the formula's packages into docs/packaging/.
packaging: $(VENV)/.test-ready
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m tests.packaging_files $(if $(SDIST),--sdist $(SDIST)) $(if $(ZIP),--zip $(ZIP))

# Build the documentation into site/. A dead link is an error.
site: $(VENV)/.test-ready
	$(BIN)/properdocs build --strict --quiet

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: $(VENV)/.test-ready
	$(BIN)/python -m build --wheel --no-isolation

# The lock files are made from pyproject.toml for every platform at once; commit both after a change there.
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet
lock:
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) pyproject.toml -o requirements.lock
	sed -nE 's/^([A-Za-z0-9_.-]+)(\[[^]]*\])?(==[^ \\]+)( ;[^\\]*[^\\ ])?.*/\1\3\4/p' requirements.lock > constraints.txt
	$(LOCK) --group build -o requirements-build.lock
	$(LOCK) pyproject.toml --extra age --extra team --extra voyage --group dev -o requirements-dev.lock

clean:
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: kite-memory needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: $(VENV)/bin/python requirements.lock requirements-build.lock pyproject.toml
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-build.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.test-ready: $(VENV)/.run-ready requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-compile -r requirements-dev.lock  # most of it is never imported
	touch $@
