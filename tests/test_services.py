"""Recipes of docs/howto/services.md: each block runs where its packages are installed."""

import doctest
import re

import pytest

from tests import ROOT
from tests.test_docs import FLAGS

PAGE = (ROOT / "docs" / "howto" / "services.md").read_text(encoding="utf-8")
SETTING, *RECIPES = re.split(r"^## ", PAGE, flags=re.MULTILINE)
PACKAGES = {"MLflow": ["mlflow"], "FastAPI": ["fastapi", "httpx"]}


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text.split()[0])
def test_recipe_runs(recipe):
    for package in PACKAGES[recipe.split()[0]]:
        pytest.importorskip(package)
    names = {}
    for text in (SETTING, recipe, ">>> folder.cleanup()\n"):
        example = doctest.DocTestParser().get_doctest(text, names, "services.md", None, 0)
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        runner.run(example, clear_globs=False)
        names = example.globs
        assert runner.failures == 0
