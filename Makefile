# Everything runs in the project's own environment, .venv; nothing is installed into the system.
PYTHON ?= python3
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check

# Tests of one file stay on one core, since they share what is slow to set up.
PYTEST := .venv/bin/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

.PHONY: demo test test-slow coverage lint bench results clean

demo: .venv/.demo  ## the main job: methods compared on real data, explained, with a report
	.venv/bin/argmaxf demo

test: .venv/.dev lint  ## style, types and the test suite
	$(PYTEST)

coverage: .venv/.dev lint  ## the same, and which lines and branches of the library it ran
	$(PYTEST) --cov --cov-report=term

test-slow: .venv/.dev  ## the checks that take minutes
	$(PYTEST) -m slow

lint: .venv/.dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv/.dev  ## speed, as ratios within one run
	.venv/bin/python -m benchmarks

results: .venv/.dev  ## the paper's experiments in full, and docs/results.md made from them
	.venv/bin/argmaxf reproduce all --out out
	rm -rf docs/results && cp -r out/results out/results.md docs/

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("argmaxf needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'

.venv/.demo: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[cli,report]'
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[all]' --group dev
	@touch $@ .venv/.demo

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis out argmaxf-demo.html
