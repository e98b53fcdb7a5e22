# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
# Every target that needs it creates .venv from the hashed lock file first.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
LOADED := annotated_types pydantic pydantic_core rich sqlalchemy typer typing_extensions.py typing_inspection

# Modules that are compiled once make every later command start sooner.
unexport PYTHONDONTWRITEBYTECODE

# Several processes share the cores here: threads for small matrices would wait for one another.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help setup docs concepts demo picture example reproduce personal-budgets attribution lift test test-again test-all test-pythons test-integrations mutants check format bench bench-growth bench-spark wheel lock clean

help:
	@echo "make demo    make up a month of events, release every day of it, write demo/report.html"
	@echo "make test    the tests of every change (what needs Java 17 or Chromium says so if it is missing)"
	@echo "make test-again  what failed in the last run, once more"
	@echo "make test-all  all tests: kills at every line, all of Spark, every role, new examples"
	@echo "make test-pythons  the tests of every change on Python 3.12 and 3.13, where they are installed"
	@echo "make test-integrations  Airflow, Dagster and dbt release the demo's data, killed and retried"
	@echo "make mutants plant mistakes that would break the promise; each must make a test fail"
	@echo "make check   format, lint, types, import contracts"
	@echo "make bench   measure against a plain scan; prints one JSON object (2.7 GB of disk)"
	@echo "make bench-growth  personal budgets with 5 to 100 million conversions (3 GB of disk)"
	@echo "make bench-spark  days on a Spark cluster of two workers, against DuckDB (needs Java 17)"
	@echo "make docs    build the documentation site into site/, without the network"
	@echo "make concepts  pictures of docs/concepts"
	@echo "make picture take the picture of the report for the README (needs Chromium)"
	@echo "make example  figures and pictures of docs/example.md (needs Chromium)"
	@echo "make reproduce  the paper's evaluation again, into docs/reproduction.md"
	@echo "make personal-budgets  tables and picture of docs/personal-budgets.md"
	@echo "make attribution  table and pictures of docs/attribution.md"
	@echo "make lift    tables and picture of docs/lift.md"
	@echo "make format  format the code"
	@echo "make wheel   build a wheel into dist"
	@echo "make lock    refresh the lock files from pyproject.toml"
	@echo "make clean   remove .venv, caches and generated data"

setup: $(READY)

$(READY): requirements/dev.txt requirements/oracle.txt requirements/pipelinedp.txt requirements/uv.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "adsbpc needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@# An oracle of one test, which has to be compiled: without a compiler that test says so.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/oracle.txt \
		|| echo "ChannelAttribution cannot be built here, which needs a C++ compiler: one test is left out"
	@# What the lab compares with. Its pins fit ours, but it has wheels for few kinds of machine.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/pipelinedp.txt \
		|| echo "PipelineDP cannot be installed here: the lab's pipelinedp mechanisms are left out"
	@# What every command loads. Where Python may write nothing beside its modules, each command
	@# would compile them anew, which takes longer than adsbpc status.
	$(BIN)/python -m compileall -q src $(addprefix .venv/lib/python3*/site-packages/,$(LOADED))
	touch $(READY)

demo: setup
	$(BIN)/adsbpc demo --directory demo

# A warning is an error. Everything is read anew, because much of the reference comes from the code.
docs: setup
	rm -rf site
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --builder html docs site
	@echo "Open site/index.html"

concepts: setup
	$(BIN)/python docs/concepts.py

picture: demo
	$(BIN)/python docs/picture.py

example: setup
	$(BIN)/python docs/example.py

reproduce: setup
	$(BIN)/adsbpc lab reproduce --out docs/reproduction --page docs/reproduction.md --jobs 2

personal-budgets: setup
	$(BIN)/python docs/personal_budgets.py

attribution: setup
	$(BIN)/python docs/attribution.py

lift: setup
	$(BIN)/adsbpc lab lift --json --plot docs/lift | $(BIN)/python docs/lift.py

# Whole files to each process, and to one of them all that runs on Spark. In their order, because the
# longest files have few tests, and would come last. More processes than two cores: many tests
# wait for a server or a browser.
TOGETHER := --numprocesses 4 --dist loadfile --no-loadscope-reorder
PYTEST := $(BIN)/pytest $(TOGETHER)

test: setup
	$(PYTEST) -m "not slow"

# Exit code 5, which is an error, if no test is on record as failed.
test-again: setup
	@echo "Once more, what has failed:"
	$(BIN)/pytest --last-failed --last-failed-no-failures none -m "not slow"

test-all: setup
	@# Coverage here and not on every change, because counting lines makes Python slower.
	TEST_EFFORT=all $(PYTEST) --cov --cov-report=
	@echo "Branch coverage of src/adsbpc: $$($(BIN)/coverage report --format=total)%"

# In environments of their own; others than those on the path: make test-pythons PYTHONS=/path/to/python
PYTHONS ?= $(foreach version,3.12 3.13,$(shell command -v python$(version)))

test-pythons: setup
	@test -n "$(PYTHONS)" || echo "neither python3.12 nor python3.13 is on the path: nothing was tested"
	@set -e; for python in $(PYTHONS); do \
		$$python --version; \
		$(BIN)/uv venv --quiet --clear --python $$python .venv-other; \
		$(BIN)/uv pip install --quiet --python .venv-other/bin/python --require-hashes -r requirements/dev.txt; \
		$(BIN)/uv pip install --quiet --python .venv-other/bin/python --no-deps --no-build-isolation --editable .; \
		.venv-other/bin/pytest $(TOGETHER) -m "not slow"; \
	done

# Airflow, Dagster and dbt, in environments of their own: their pins and ours need not fit.
INTEGRATIONS := airflow dagster dbt

.venv-integrations/%/.ready: integrations/requirements/%.txt | setup
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) .venv-integrations/$*
	$(BIN)/uv pip install --quiet --python .venv-integrations/$*/bin/python --require-hashes -r $<
	touch $@

test-integrations: setup $(INTEGRATIONS:%=.venv-integrations/%/.ready)
	$(BIN)/pytest integrations/tests

mutants: setup
	$(BIN)/python -m tests.mutants

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	@$(BIN)/python -m bench

bench-growth: setup
	@$(BIN)/python -m bench.growth

bench-spark: setup
	@$(BIN)/python -m bench.on_spark

wheel: setup
	$(BIN)/python -m hatchling build --target wheel --directory dist

lock: setup
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" \
		pyproject.toml --extra dev --output-file requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" \
		requirements/uv.in --output-file requirements/uv.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" \
		--constraint requirements/dev.txt requirements/oracle.in --output-file requirements/oracle.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" \
		--constraint requirements/dev.txt requirements/pipelinedp.in --output-file requirements/pipelinedp.txt
	for tool in $(INTEGRATIONS); do $(BIN)/uv pip compile --quiet --universal --generate-hashes \
		--python-version 3.11 --no-emit-index-url --custom-compile-command "make lock" \
		integrations/requirements/$$tool.in --output-file integrations/requirements/$$tool.txt || exit 1; done

clean:
	rm -rf .venv .venv-other .venv-integrations .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .bench .coverage demo dist site test-artefacts
