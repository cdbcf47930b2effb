"""Numbers of text tables that are written with a decimal comma, as in much of Europe: 0,5."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import polars as pl
from polars import selectors

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2},\d{3}\s*$"


def decimal_commas(rows: pl.DataFrame, separator: str) -> list[str]:
    r"""Return the columns of text that are numbers once their commas are points.

    Between tabs 1,234 may be 1234, as in English: a column with no other commas stays text.

    >>> rows = {"p": ["0,5", "1"], "q": ["0.5", "1"], "t": ["0,5", "a"], "n": ["1,234", "12"]}
    >>> decimal_commas(pl.DataFrame(rows), ";"), decimal_commas(pl.DataFrame(rows), "\t")
    (['p', 'n'], ['p'])
    """
    found = [each for each in rows.select(selectors.string()) if has_commas(each)]
    sure = [each for each in found if separator != "\t" or not _may_be_thousands(each)]
    return [each.name for each in sure if _are_numbers(each)]


def has_commas(texts: pl.Series) -> bool:
    """Tell whether some text has a comma."""
    return bool(texts.str.contains(",", literal=True).any())


def _may_be_thousands(texts: pl.Series) -> bool:
    with_comma = texts.filter(texts.str.contains(",", literal=True))
    return bool(with_comma.str.contains(THOUSANDS).all())


def _are_numbers(texts: pl.Series) -> bool:
    numbers = pl.select(as_number(pl.lit(texts), comma=True)).to_series()
    return numbers.null_count() == texts.null_count()


def as_number(text: pl.Expr, *, comma: bool, strict: bool = False) -> pl.Expr:
    """Return texts as numbers; what is none is null, or an error if that is `strict`."""
    plain = text.str.strip_chars()
    plain = plain.str.replace(",", ".", literal=True) if comma else plain
    return plain.cast(pl.Float64, strict=strict)


def with_points(frame: Frame, names: Iterable[str]) -> Frame:
    """Return a table with columns of such text as numbers."""
    columns = (selectors.by_name(name).as_expr() for name in names)
    return frame.with_columns(as_number(each, comma=True, strict=True) for each in columns)
