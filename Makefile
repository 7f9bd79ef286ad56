# Every target works on a fresh clone with nothing but Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Touched after a successful install, so that a second run installs nothing.
STAMP := $(VENV)/.installed

.PHONY: test slow coverage lint docs benchmarks demo format clean

SCHEMA := $(BIN)/check-jsonschema --builtin-schema

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -q

coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q --cov --cov-report=term --cov-report=html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/typos
	$(BIN)/repo-review . --format rich
	$(BIN)/pre-commit validate-config
	$(BIN)/zizmor --offline --quiet .github
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff

docs: $(STAMP)
	rm -rf docs/api/generated  # pages of names that are gone would stay
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going -d build/doctrees docs build/docs

# What needs no data sets; those that do are described in the guides.
benchmarks: $(STAMP)
	$(BIN)/normeq bench --quick --model default -o runs/bench
	$(BIN)/normeq reproduce equivariance-table --out runs/table

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
