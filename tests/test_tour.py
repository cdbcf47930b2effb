"""The tour of the house names the files that its calls really visit."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import walk  # noqa: E402

PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
CALLS = {
    "Five numbers": walk.five_numbers,
    "Ten million numbers": lambda: walk.many_numbers(1_200_000),
    "Ten million numbers, few of them positive": lambda: walk.rare_numbers(1_200_000),
    "A map of pixels on a GPU": walk.a_map,
    "Choosing a method for your data": walk.auto_fit,
}
NOT_SEEN = {
    *("expected/row_kernels.py", "expected/summary/kernels.py", "expected/nodes.py"),  # compiled
    *("expected/flat_kernels.py", "expected/power_kernels.py"),
    *("expected/ties.py", "expected/large_kernels.py"),  # the page says: not here
    *("torch/triton_passes.py", "torch/triton_items.py", "torch/host_kernels.py"),  # a GPU's
    "measures/fbeta.py",  # asked before the walk: an answer that is kept
}


def named_files(title):
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([\w/]+\.py)`", section))


def test_every_walk_of_the_page_is_walked():
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == [*CALLS, "How long the walks are"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", CALLS)
def test_a_walk_visits_the_files_that_it_names(title):
    if CALLS[title] is walk.a_map:
        pytest.importorskip("torch")
    assert named_files(title) - NOT_SEEN
    assert all((ROOT / "src" / "argmaxf" / file).exists() for file in named_files(title))
    assert named_files(title) - NOT_SEEN <= set(walk.walk(CALLS[title]).modules)
