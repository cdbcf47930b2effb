"""What the documentation shows is what happens: every snippet runs, every link leads somewhere."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import argmaxf

ROOT = Path(__file__).parent.parent
PAGES = sorted(p for place in ("*.md", "docs/**/*.md", "examples/*.md") for p in ROOT.glob(place))
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(argmaxf.__path__, "argmaxf.")
    if "kernels" not in m.name and "triton" not in m.name
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_of_a_page(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
