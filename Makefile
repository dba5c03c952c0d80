# `make demo`, `make test` and `make bench`; each makes the virtual environment that it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WITH_PEERS := $(VENV)/.peers-installed

.PHONY: demo test lint unit format bench attack docs clean

demo: $(STAMP)
	$(BIN)/ultr demo --out demo --overwrite

test: lint unit

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Some virtual machines offer bfloat16 by AMX and then fail at it; the limit lets its tests run there too.
unit: $(STAMP)
	OMP_NUM_THREADS=1 ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(WITH_PEERS)
	$(BIN)/python -m benchmarks $(if $(MQ2007),--mq2007 $(MQ2007))

# Fuzzers for all that is read; two minutes unless MINUTES says otherwise.
attack: $(STAMP)
	$(BIN)/python -m benchmarks.attack $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m benchmarks.siege $(if $(MINUTES),--minutes $(MINUTES))

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ultr needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(WITH_PEERS): $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) demo build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
