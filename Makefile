# 'make demo' and 'make test' set up everything they need in .venv, on a machine that has only Python and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: setup demo test lint bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/rrn demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv runs dist build site
