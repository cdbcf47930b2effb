"""The first line of a text table: the names of its columns."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

SEEN = 1 << 16  # bytes of a file that tell what stands between its fields
PARQUET = b"PAR1\x15"  # how such files start; columns may be called PAR1
ARROW = b"ARROW1\0"
OTHERS = {  # how files that are no text start
    b"\x1f\x8b": "a zipped file must be named with .gz, or be unpacked first",
    PARQUET: "a Parquet file must be named with .parquet",
    ARROW: "an Arrow file must be named with .arrow",
}
LONGEST = 40  # bytes of a name to show
SAVE = "save the file as UTF-8"


def separator_of(path: Path) -> str:
    """Return what parts the first rows into equally many fields: a comma, a ; or a tab."""
    with path.open("rb") as file:
        start = file.read(SEEN)
    text = start.decode("utf-8-sig", "surrogateescape")
    fields = {each: _fields(text, each, whole=len(start) < SEEN) for each in (",", ";", "\t")}
    for separator, found in fields.items():
        if found[:1] > [1] and len(set(found)) == 1:
            return separator
    # of one column, rows without it: 0,5 is one field
    return max(fields, key=lambda each: (fields[each][:1], len(set(fields[each])) == 1))


def _fields(text: str, separator: str, whole: bool) -> list[int]:
    """How many fields each row of a text has; its last one may be cut off."""
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
        for other, rule in OTHERS.items():
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
        if not _is_text(name):
            raw = name.encode("utf-8", "surrogateescape")
            raise ValueError(f"the header must be UTF-8, got the name {raw[:LONGEST]!r}; {SAVE}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"each column must have a name of its own, got {twice[0]!r} twice")
    return names


def _is_text(name: str) -> bool:
    """Tell whether a name holds no bytes that UTF-8 does not know."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
