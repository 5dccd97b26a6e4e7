# Needs Python >= 3.11 and make. Everything is installed into .venv and .venv-rllib, with the
# versions that constraints.txt pins; nothing is installed outside this folder.

VENV := .venv
PY := $(VENV)/bin/python
# Ray pins a Gymnasium of its own, so RLlib and its tests have an environment of their own.
RLLIB := .venv-rllib
RLLIB_PY := $(RLLIB)/bin/python

# The Python that makes .venv; `make train PYTHON=/path/to/python` chooses another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; \
	done)

# The package index that torch comes from; empty: the index that pip uses anyway. On Linux that one
# gives the build for CUDA, several gigabytes. To try a card game on a CPU, name the index of
# PyTorch's CPU builds (its address stands on pytorch.org under "Get Started"):
#     make train TORCH_INDEX=https://...
# It counts when .venv or .venv-rllib is made; run `make clean` before changing it.
TORCH_INDEX ?=
TORCH_VERSION := $(shell sed -n 's/^torch==//p' constraints.txt)

# Options passed on: make train ARGS="--seed 1"; make test PYTEST_ARGS="-k rules".
ARGS ?=
PYTEST_ARGS ?=
MINUTES ?= 4

CODE := $(wildcard src tests training examples benchmarks tools)
PIP_INSTALL := -m pip install --disable-pip-version-check
INSTALL := $(PY) $(PIP_INSTALL) -c constraints.txt

.PHONY: help train rllib test test-slow test-slow-rllib test-slow-rest faults lint format clean

help:
	@echo 'make train      set up, train a Valety agent by self-play for $(MINUTES) minutes, evaluate it'
	@echo 'make rllib      set up .venv-rllib, in which training/rllib_selfplay.py runs'
	@echo 'make test       set up, lint, check types and imports, run the tests that are not slow'
	@echo 'make test-slow  run the slow tests: RLlib in .venv-rllib, versions, training, soaks'
	@echo 'make faults     plant each fault of tests/faults/ and see that its test fails'
	@echo 'make lint       the checks of `make test` without the tests'
	@echo 'make format     put the code into the project format'
	@echo 'make clean      remove .venv, .venv-rllib and all caches'

train: $(VENV)/train.stamp
	$(PY) training/ppo_selfplay.py --minutes $(MINUTES) $(ARGS)

rllib: $(RLLIB)/rllib.stamp

test: lint
	$(PY) -m pytest -m 'not slow' $(PYTEST_ARGS)
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest -m 'plain and not slow' $(PYTEST_ARGS)

test-slow: test-slow-rllib test-slow-rest

# Those that are not slow too: where there is no Ray, that is in .venv, these files are skipped.
test-slow-rllib: $(RLLIB)/rllib.stamp
	$(RLLIB_PY) -m pytest $(PYTEST_ARGS) tests/test_*rllib*.py

# pytest ends with 5 when there is no slow test, which is no failure.
test-slow-rest: $(VENV)/test.stamp
	$(PY) -m pytest -m slow $(PYTEST_ARGS) || [ $$? -eq 5 ]

faults: $(VENV)/test.stamp $(RLLIB)/rllib.stamp
	$(PY) tools/faults.py $(ARGS)

lint: $(VENV)/test.stamp
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: $(VENV)/test.stamp
	$(PY) -m ruff check --fix $(CODE)
	$(PY) -m ruff format $(CODE)

clean:
	rm -rf $(VENV) $(RLLIB) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than what it was made from, so that a second run installs nothing.
$(VENV)/train.stamp: $(VENV)/venv.stamp pyproject.toml constraints.txt
	$(INSTALL) -e '.[train]'
	@touch $@

$(VENV)/test.stamp: $(VENV)/venv.stamp pyproject.toml constraints.txt
	$(INSTALL) -e '.[test]'
	@touch $@ $(VENV)/train.stamp

# All the pins but that of Gymnasium: Ray has one.
$(RLLIB)/rllib.stamp: $(RLLIB)/venv.stamp pyproject.toml constraints.txt
	sed '/^gymnasium==/d' constraints.txt > $(RLLIB)/constraints.txt
	$(RLLIB_PY) $(PIP_INSTALL) -c $(RLLIB)/constraints.txt -e '.[rllib]' pytest hypothesis
	@touch $@

$(VENV)/venv.stamp $(RLLIB)/venv.stamp:
	@[ -n '$(PYTHON)' ] || { echo 'No Python >= 3.11 found: install one, or name it: make PYTHON=...'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo '$(PYTHON) is not a Python >= 3.11: name another: make PYTHON=...'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "The venv module of $(PYTHON) is incomplete: install the Debian package python3-venv" \
		"(exactly: $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))"; exit 1; }
	$(PYTHON) -m venv $(@D)
ifneq ($(TORCH_INDEX),)
	$(@D)/bin/python $(PIP_INSTALL) torch==$(TORCH_VERSION) --index-url $(TORCH_INDEX)
endif
	@touch $@
