# Every target works on a fresh clone with nothing but Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Touched after a successful install, so that a second run installs nothing.
STAMP := $(VENV)/.installed

.PHONY: test lint docs demo format clean

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	rm -rf docs/api/generated  # pages of names that are gone would stay
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going -d build/doctrees docs build/docs

demo: $(STAMP)
	$(BIN)/python -m normeq demo

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist docs/gallery docs/api/generated docs/commands.md .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)
