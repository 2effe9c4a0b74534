# make demo and make test do everything on a machine with python3 (3.11 to 3.14, with venv) and make.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

# Real data sets for the tests and experiments that use them; those skip where there are none.
ifneq ($(wildcard ../shared/data/README.md),)
export POLYSIFT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-all lint format bench clean

demo: $(VENV)/.demo
	$(BIN)/polysift demo

# Two processes, so that BLAS takes one thread in each.
test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: $(VENV)/.test
	$(BIN)/python -m pytest

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# All benchmarks; ARGS=--quick in small, ARGS="gram sweep" some, ARGS=--list what there is.
bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(ARGS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || \
	  { echo "polysift needs Python 3.11 to 3.14; set PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: EXTRAS = cli
$(VENV)/.test: EXTRAS = test
$(VENV)/.lint: EXTRAS = lint
$(VENV)/.demo $(VENV)/.test $(VENV)/.lint: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@
