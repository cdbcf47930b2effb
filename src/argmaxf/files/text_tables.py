"""Text tables: what parts fields, names of columns, decimal commas, rows of the wrong length."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from polars import selectors

from argmaxf._base.compiled import kernel

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
SNIFFED = 1 << 16  # bytes of a file that tell what stands between its fields
SCANNED = 1 << 22  # bytes looked at at a time for rows of the wrong length
PARQUET = b"PAR1\x15"  # how such files start; columns may be called PAR1
ARROW = b"ARROW1\0"
NO_TEXT = {
    b"\x1f\x8b": "a zipped file must be named with .gz, or be unpacked first",
    PARQUET: "a Parquet file must be named with .parquet",
    ARROW: "an Arrow file must be named with .arrow",
}
SAVE_AS_UTF8 = "save the file as UTF-8"
THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2},\d{3}\s*$"
QUOTE, LINE_FEED, RETURN = ord('"'), ord("\n"), ord("\r")


def separator_of(path: Path) -> str:
    """Return what parts the first rows into equally many fields: a comma, a ; or a tab."""
    with path.open("rb") as file:
        start = file.read(SNIFFED)
    text = start.decode("utf-8-sig", "surrogateescape")
    fields = {each: _fields(text, each, whole=len(start) < SNIFFED) for each in (",", ";", "\t")}
    for separator, found in fields.items():
        if found[:1] > [1] and len(set(found)) == 1:
            return separator
    # of one column, rows without it: 0,5 is one field
    return max(fields, key=lambda each: (fields[each][:1], len(set(fields[each])) == 1))


def _fields(text: str, separator: str, whole: bool) -> list[int]:
    """Return how many fields each row of a text has; its last one may be cut off."""
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        found = [len(row) for row in rows if row]
    except csv.Error:
        return []
    return found if whole else found[:-1] or found


def header(path: Path, separator: str) -> list[str]:
    """Return the names of the columns; refuse what is not UTF-8, and names that come twice."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        start = file.read(len(ARROW)).encode("utf-8", "surrogateescape")
        for other, rule in NO_TEXT.items():
            if start.startswith(other):
                raise ValueError(rule)
        file.seek(0)
        try:
            names = next((row for row in csv.reader(file, delimiter=separator) if row), [])
        except csv.Error as error:
            raise ValueError(f"the header cannot be read: {error}") from None
        if file.newlines == "\r":
            raise ValueError("lines must end with a line feed, got carriage returns alone")
    for name in names:
        raw = name.encode("utf-8", "surrogateescape")
        if name != raw.decode("utf-8", "replace"):
            rule = f"the header must be UTF-8, got the name {raw[:40]!r}"
            raise ValueError(f"{rule}; {SAVE_AS_UTF8}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"each column must have a name of its own, got {twice[0]!r} twice")
    return names


def decimal_commas(rows: pl.DataFrame, separator: str) -> list[str]:
    r"""Return the columns of text that are numbers once their commas are points, as in 0,5.

    Between tabs 1,234 may be 1234, as in English: a column with no other commas stays text.

    >>> rows = {"p": ["0,5", "1"], "q": ["0.5", "1"], "t": ["0,5", "a"], "n": ["1,234", "12"]}
    >>> decimal_commas(pl.DataFrame(rows), ";"), decimal_commas(pl.DataFrame(rows), "\t")
    (['p', 'n'], ['p'])
    """
    found = []
    for texts in rows.select(selectors.string()):
        commas = texts.filter(texts.str.contains(",", literal=True))
        sure = separator != "\t" or not commas.str.contains(THOUSANDS).all()
        if len(commas) and sure and numbers_in(texts, comma=True).count() == texts.count():
            found.append(texts.name)
    return found


def numbers_in(texts: pl.Series, *, comma: bool) -> pl.Series:
    """Return texts as numbers, null where one is none."""
    return pl.select(as_number(pl.lit(texts), comma=comma)).to_series()


def as_number(text: pl.Expr, *, comma: bool, strict: bool = False) -> pl.Expr:
    """Return texts as numbers; what is none is null, or an error if that is `strict`."""
    plain = text.str.strip_chars()
    plain = plain.str.replace(",", ".", literal=True) if comma else plain
    return plain.cast(pl.Float64, strict=strict)


def with_points(frame: Frame, names: Iterable[str]) -> Frame:
    """Return a table with columns of numbers with commas as numbers."""
    columns = (selectors.by_name(name).as_expr() for name in names)
    return frame.with_columns(as_number(each, comma=True, strict=True) for each in columns)


class Ragged(NamedTuple):
    """A row with too few or too many fields; rows are counted from 1, without the header."""

    row: int
    fields: int
    expected: int


def first_ragged(path: Path, separator: str) -> Ragged | None:
    """Return the first row whose number of fields is not the header's, if there is one.

    Polars fills up short rows with nulls and does not say where a long one is.
    """
    # fields of the header, rows so far, separators in this row, inside quotes, bytes in this row
    state = np.zeros(5, np.int64)
    with path.open("rb") as file:
        found = False
        while not found and (chunk := file.read(SCANNED)):
            found = scan_records(np.frombuffer(chunk, np.uint8), ord(separator), state)
    if not found and state[4]:  # the last line does not end
        found = scan_records(np.array([LINE_FEED], np.uint8), ord(separator), state)
    return Ragged(int(state[1]), int(state[2]) + 1, int(state[0])) if found else None


@kernel
def scan_records(data: Any, separator: int, state: Any) -> bool:
    """Go through bytes; stop and return True at the end of a row with a wrong number of fields."""
    fields, row, separators, quoted, filled = state
    for byte in data:
        if byte == QUOTE:
            quoted = 1 - quoted
            filled += 1
        elif quoted:
            continue
        elif byte == LINE_FEED:
            if fields == 0:
                fields = separators + 1 if filled else 0
            else:  # an empty line is a row, though not a ragged one: Polars counts it
                row += 1
                if filled and separators + 1 != fields:
                    state[:] = (fields, row, separators, quoted, filled)
                    return True
            separators, filled = 0, 0
        elif byte == separator:
            separators += 1
            filled += 1
        elif byte != RETURN:
            filled += 1
    state[:] = (fields, row, separators, quoted, filled)
    return False
