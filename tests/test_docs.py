"""What the documentation shows is what happens: every snippet runs, every link leads somewhere."""

import doctest
import importlib
import os
import pkgutil
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import argmaxf
from tests import ROOT

PAGES = sorted({p for place in ("*.md", "docs/**/*.md", "*/*.md") for p in ROOT.glob(place)})
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(argmaxf.__path__, "argmaxf.")
    if "kernels" not in m.name and "triton" not in m.name
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SPARK = ROOT / "docs" / "howto" / "spark.md"
NEEDED = {  # by pages that others can do without
    "boosting.md": ("lightgbm", "xgboost"),
    "deploying.md": ("skl2onnx", "onnxruntime"),
    "record-linkage.md": ("recordlinkage",),
    "services.md": ("mlflow", "fastapi", "httpx"),  # its blocks run apart in test_services.py
}
NEEDED_BY_MODULES = {"argmaxf.torch.monai": ["monai"], "argmaxf.onnx": ["skl2onnx"]}
DATA = {"tagging.md": "enron", "retrieval.md": "reuters21578"}  # folders of ARGMAXF_DATA
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


def failures(page, **names):
    """Run the snippets of a page; return how many do something else than it says."""
    return doctest.testfile(
        str(page), module_relative=False, optionflags=FLAGS, extraglobs=names
    ).failed


@pytest.mark.filterwarnings("ignore::DeprecationWarning:recordlinkage")  # its use of pandas
@pytest.mark.parametrize("page", [p for p in PAGES if p != SPARK], ids=lambda page: page.name)
def test_snippets_of_a_page(page):
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package)
    folder = Path(os.environ.get("ARGMAXF_DATA", "data"), DATA.get(page.name, ""))
    if page.name in DATA and not folder.is_dir():
        pytest.skip(f"ARGMAXF_DATA has no {folder.name}")
    assert failures(page) == 0


def test_snippets_for_spark(spark):
    assert failures(SPARK, spark=spark) == 0


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_scripts_of_the_gallery_draw(script, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)
    plt.close("all")
    runpy.run_path(str(script))
    assert any(ax.has_data() for ax in plt.gcf().axes)
    plt.close("all")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    for package in NEEDED_BY_MODULES.get(name, ()):
        pytest.importorskip(package)
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_are_shown_as_code(page):
    """Outside of a fence Markdown takes >>> for a quotation, and runs its lines together."""
    outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"^ {0,3}>>>.*", outside, flags=re.M) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_warning_stands_in_the_table():
    """Each begins as the table says; a place that warns anew has to be added there, and here."""
    table = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8").split("## What a comp")[0]
    begins = re.findall(r"\| [^|]* \| (\"[^|]+) \|", table)
    source = "".join(
        path.read_text(encoding="utf-8") for path in Path(argmaxf.__file__).parent.rglob("*.py")
    )
    joined = re.sub(r'"\s*f?"', "", source)  # literals that stand one after the other
    for phrase in [quoted for cell in begins for quoted in re.findall(r'"([^"]+)"', cell)]:
        parts = re.split(r"[\d.]+|LinearDiscriminantAnalysis|(?<=labels with) ", phrase)
        assert all(part.strip() in joined for part in parts), phrase
    assert (
        len(begins) == source.count("warnings.warn(") + 4
    )  # a place that warns may have several reasons
