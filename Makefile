# Two commands: `make demo` and `make test`. Both set themselves up with Python >= 3.11, pip and nothing else.

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO ?= demo

.PHONY: demo test test-fast test-real test-matrix fuzz lint bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable . --group dev
	touch $(STAMP)

# Captures two real versions of llama.cpp, finds what moved, and proves the pin.
demo: $(VENV)/.engdiff
	@DEMO=$(DEMO) ENGDIFF=$(BIN)/engdiff sh scripts/demo.sh

$(VENV)/.engdiff:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $(VENV)/.engdiff

test: lint test-fast test-real

test-fast: $(STAMP)
	$(BIN)/python -m pytest -m "not real and not matrix"

test-real: $(STAMP)
	$(BIN)/python -m pytest -m "real and not matrix"

test-matrix: $(STAMP)
	-$(BIN)/python -m pytest -m "matrix"
	$(BIN)/python scripts/matrix_page.py .cache/matrix.jsonl docs/matrix.md

fuzz: $(STAMP)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m "not real and not matrix" -k "fuzz or property"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.logs
	$(BIN)/python -m benchmarks.patterns

clean:
	rm -rf $(VENV) .cache dist build $(DEMO)
