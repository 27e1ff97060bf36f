# `make demo` and `make test` do all the set-up themselves. Needed beforehand: Python 3.11 to 3.13 with venv, git, a C compiler.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= .klineage-demo
JOBS   ?= 2
STAMP  := $(VENV)/.ready

.PHONY: demo test check bench wheel clean help

help:
	@echo "make demo   open the app on a ready workspace made from the shipped experts"
	@echo "make test   run the whole test suite"
	@echo "make check  ruff, mypy, import contracts"
	@echo "make bench  print the clocks (ratios matter, single times do not)"
	@echo "make wheel  build the wheel and try it in a clean environment"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] < (3,14) and "klineage needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[triton,dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/klineage demo $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest tests -n $(JOBS) --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python benchmarks/lineage_git.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/app.py

wheel: $(STAMP)
	sh tests/wheel_smoke.sh $(BIN)/python

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
