"""The paper's numbers: the only door to paper.json, used for comparison and never as a result."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


def published(experiment: str, row: str, column: str) -> float:
    """Return one printed number."""
    block = _paper()[experiment]
    return float(block["rows"][row][block["columns"].index(column)])


def rows(experiment: str) -> tuple[str, ...]:
    """Return the rows of a printed table."""
    return tuple(_paper()[experiment]["rows"])


def columns(experiment: str) -> tuple[str, ...]:
    """Return the columns of a printed table."""
    return tuple(_paper()[experiment]["columns"])


def place(experiment: str) -> str:
    """Return where in the paper the numbers stand."""
    return str(_paper()[experiment]["place"])


def topics() -> int:
    """Return the number of topics of Table 3 with a positive in both parts."""
    return int(_paper()["table3"]["topics"]["1"])


@cache
def _paper() -> dict[str, Any]:
    text = files("argmaxf.paper").joinpath("paper.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
