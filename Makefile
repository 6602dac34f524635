# SPDX-License-Identifier: GPL-2.0-only
#
# make prove            the proof suite: every property in every kernel release it speaks about
# make test             the tests of the checker itself
# make lint             style and types
# make bench            speed, as ratios
# make counterexamples  writes counterexamples/ anew
# make campaign-fuzz    the whole fuzz of the reader and of check (half an hour); goes on where it was broken off
# make campaign-edits   300 edits of real functions that keep their meaning: each has to be found equal
#
# Each needs nothing but make and Python 3.11 or newer: the first use creates .venv and installs into it.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first Python on the path that is new enough; "make PYTHON=/path/to/python" overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

.PHONY: prove test lint bench counterexamples campaign-fuzz campaign-edits

prove: $(STAMP)
	$(BIN)/python -m pytest -n auto properties/

test: $(STAMP)
	$(BIN)/python -m pytest -n auto tests/

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/checks.py

counterexamples: $(STAMP)
	$(BIN)/schedproof counterexamples

# Functions of real trees are damaged too when SCHEDPROOF_TREES names a folder with kernel trees.
campaign-fuzz: $(STAMP)
	nice $(BIN)/python -m tests.campaigns.fuzz_reader

campaign-edits: $(STAMP)
	nice $(BIN)/python -m tests.campaigns.equal_edits

# The stamp is written last: an installation that broke off half-way is done again from the start.
$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "schedproof needs Python 3.11 or newer: install it, or say make PYTHON=..." >&2; exit 2; }
	@test -e $(STAMP) && $(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)
