# 'make demo' and 'make test' set up what they need in .venv, on a machine that has only Python and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
SMALL := .venv/small
READY := .venv/ready

.PHONY: setup lock demo test test-oldest lint bench reproduce docs site wheel clean

setup: $(READY)

# What the library and its commands need, for 'make demo'. Where everything is installed, this is too.
$(SMALL): pyproject.toml constraints.txt
	@echo "== Setting up .venv: torch and some small packages, about 1 GB. Once, some minutes."
	$(PYTHON) -m venv .venv
	$(PIP) --constraint constraints.txt --editable .
	@touch $(SMALL)

# Everything: tests, linters, page, docs, ONNX, pictures. The versions and hashes are those of requirements.lock.
$(READY): pyproject.toml constraints.txt requirements.lock
	@echo "== Setting up .venv with everything that development needs, about 2.5 GB. Once, some minutes."
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes --no-deps --requirement requirements.lock
	$(PIP) --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $(SMALL) $(READY)

# requirements.lock with the newest versions in the ranges of pyproject.toml.
lock: $(READY)
	$(BIN)/uv pip compile --quiet --upgrade --constraint constraints.txt --output-file requirements.lock pyproject.toml

demo: $(SMALL)
	@$(BIN)/rrn demo

test: $(READY)
	@echo "== Running all tests."
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The oldest torch that pyproject.toml allows, in an environment of its own (5 GB: a build for GPUs, run on the CPU).
OLDEST := .venv-oldest/bin/python
OLDEST_NEEDS := torch==2.4.0 --editable '.[figures,fast,train,web]' pytest hypothesis httpx2 networkx scikit-learn \
    torch_geometric jsonschema-rs
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST) -m pip install --disable-pip-version-check $(OLDEST_NEEDS)
	$(OLDEST) -m pytest -m "not slow" tests/test_network.py tests/test_golden.py tests/test_compat.py tests/test_compile.py \
	    tests/nn tests/graphs tests/engines tests/inference tests/constraints tests/estimators tests/training/test_loop.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

# docs/reproduce.md from src/rrn/tasks/reproduce.json; a test compares the figures there with results/.
reproduce: $(READY)
	$(BIN)/python -m benchmarks.reproduce_page

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The page as static files that run the networks in the browser; needs npm, for onnxruntime-web.
site: $(READY)
	$(BIN)/python -m static_site.build

wheel: $(READY)
	$(BIN)/python -m hatchling build

clean:
	rm -rf .venv .venv-oldest runs dist build site
