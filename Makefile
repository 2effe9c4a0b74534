# make demo and make test do everything on a machine with python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
OLDEST ?= python3.11

# Real data sets for the tests and experiments that use them; those skip where there are none.
ifneq ($(wildcard ../shared/data/README.md),)
export POLYSIFT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-stress test-all test-wheel test-oldest lint format docs bench fuzz dist clean

demo: $(VENV)/.demo
	$(BIN)/polysift demo

# Two processes, so that BLAS takes one thread in each.
test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# Core tests once more: in the least memory, where state is spilled and features are computed again;
# then with other random numbers, by each of the seeds.
SEEDS ?= 1 2
STRESS = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow"
STRESSED = tests/test_losses.py tests/features tests/engine tests/solvers tests/training tests/estimators/test_classifier.py
test-stress: $(VENV)/.test
	$(STRESS) --least-memory $(STRESSED)
	@set -e; for seed in $(SEEDS); do \
	  echo "to repeat this run: make test-stress SEEDS=$$seed"; \
	  $(STRESS) --seed=$$seed --hypothesis-seed=$$seed $(STRESSED); \
	done

test-all: $(VENV)/.test
	$(BIN)/python -m pytest

# The built wheel in an empty environment, with the newest core dependencies; then with the oldest,
# on a Python that is as old as they are.
test-wheel: dist
	$(BIN)/python tools/core_tests.py dist

test-oldest: dist
	$(OLDEST) tools/core_tests.py dist --oldest

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(if $(wildcard .git),$(BIN)/reuse lint --quiet)

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, in docs/_build/html: the examples run while it is built, and warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -n -d docs/_build/doctrees docs docs/_build/html

# All benchmarks; ARGS=--quick in small, ARGS="gram sweep" some, ARGS=--list what there is.
bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(ARGS)

# Made-up and damaged inputs by a new seed, on all cores for SECONDS; ARGS="csv npy" some, ARGS="csv --seed 5 --case 17" one again.
SECONDS ?= 60
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) $(ARGS)

# An sdist and a wheel of polysift in dist/, and of polysift-paper in dist/paper/.
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist/paper paper
	$(BIN)/python -m twine check --strict dist/*.* dist/paper/*
	$(BIN)/python tools/check_dist.py dist dist/paper

clean:
	rm -rf $(VENV) build dist findings .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	  docs/_build docs/auto_examples docs/api/generated docs/api/backreferences docs/sg_execution_times.rst docs/tutorial.ipynb

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "polysift needs Python 3.11 or newer; set PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What users install has extras, what it takes to work on polysift has dependency groups, which pip knows since 25.1.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(VENV)/.demo: WHAT = --editable '.[cli]'
$(VENV)/.test: WHAT = --editable '.[all]' --group test
$(VENV)/.lint: WHAT = --editable . --group lint
$(VENV)/.docs: WHAT = --editable '.[cli,fast,onnx]' --group docs
$(VENV)/.release: WHAT = --editable . --group release
# The paper's experiments, which the tests, the types and the site know of, are a distribution of their own: polysift-paper.
# A checkout has it in paper/, an sdist of polysift does not; there, tests that need it skip.
PAPER_PROJECT := $(wildcard paper/pyproject.toml)
$(VENV)/.test $(VENV)/.lint $(VENV)/.docs: PAPER = $(if $(PAPER_PROJECT),--editable ./paper)
$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.release: NEWER = $(INSTALL) 'pip>=25.1'
$(VENV)/.demo $(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.release: $(VENV)/.%: pyproject.toml $(PAPER_PROJECT) | $(BIN)/python
	$(NEWER)
	$(INSTALL) $(WHAT) $(PAPER)
	@touch $@
