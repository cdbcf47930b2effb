"""How results are shown: the answer first, in a few lines; in a notebook as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

SHOWN = 6  # entries of an array, above which only the first and last two are shown


class Shown:
    """A result that is shown in a few lines: long arrays are cut, and what is None is left out."""

    def _parts(self) -> Mapping[str, Any]:
        """Return what is shown, the answer first."""
        record: Any = self
        return {f.name: getattr(self, f.name) for f in fields(record) if f.repr}

    def _texts(self) -> dict[str, str]:
        return {name: short(each) for name, each in self._parts().items() if each is not None}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text}" for name, text in self._texts().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """Return a table for a notebook, with everything in it escaped."""
        return html_table([(type(self).__name__, ""), *self._texts().items()])


def html_table(rows: list[tuple[str, ...]]) -> str:
    """Return rows of text as an HTML table; the first is its head."""
    head, *body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    inside = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{inside}</tbody></table>"


def short(value: Any) -> str:
    """Return a number to six digits, and of an array or list the first and last few.

    >>> short(1 / 3), short([3, 4, 5, 6]), short(np.arange(3)), short(np.zeros((2, 5)))
    ('0.333333', '[3, … 3 more]', '[0, 1, 2]', 'array of shape (2, 5)')
    """
    if isinstance(value, str):
        return value if len(value) <= 200 else f"{value[:199]}…"
    if isinstance(value, np.generic):
        return short(value.item())
    if getattr(value, "ndim", 0) > 1:
        return f"array of shape {tuple(value.shape)}"
    if getattr(value, "ndim", 0) == 1:
        style: Any = {"float_kind": lambda each: f"{each:.6g}"}
        array = np.asarray(value)
        return np.array2string(
            array, threshold=SHOWN, edgeitems=2, separator=", ", formatter=style
        ).replace("\n", "")
    if isinstance(value, list):
        more = f", … {len(value) - 1} more" if len(value) > 2 else ""
        return f"[{', '.join(map(short, value[:1] if more else value))}{more}]"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return f"({', '.join(map(short, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {short(each)}' for name, each in value.items())}}}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
