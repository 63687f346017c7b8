# 'make demo' and 'make test' set up everything they need in .venv, on a machine that has only Python and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: setup demo test lint bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/rrn ask ages "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 years younger than Bob. Dan is 31 years older than Cleo. Eve is 12 years younger than Dan. How old is Eve?"

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv runs dist build
