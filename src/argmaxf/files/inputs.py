"""Which files there are to read, of which kind each is, and how Polars scans it."""

from __future__ import annotations

import glob
import gzip
import os
import re
import signal
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, cast
from urllib.parse import unquote

import polars as pl
from polars import selectors

from argmaxf._base.atomic_write import refuse_twice, spilling, temporary_file, write_all
from argmaxf.files.text_tables import (
    ARROW,
    PARQUET,
    SAVE_AS_UTF8,
    as_number,
    decimal_commas,
    first_ragged,
    header,
    separator_of,
    with_points,
)

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
SEPARATORS = {"csv": ",", "tsv": "\t"}
ZIPPED = ".gz"  # after any of these
ARROW_STREAM = b"\xff\xff\xff\xff"  # how an Arrow stream starts
COPIED = 1 << 20  # bytes copied at a time
INFERRED = 10_000  # rows of text from which the types of columns are guessed
NOT_UTF8 = "invalid utf-8"  # what Polars says of text in another encoding
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # the name of a folder of rows without a value

# What Polars may raise at a bad file.
BROKEN = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Input:
    """One file to read: where it is, of which kind, and what to call it in messages.

    `partition` has the columns that the names of folders say, as in city=A/rows.parquet.
    """

    path: Path
    kind: str
    name: str
    origin: Path  # the user's own file, where `path` is a copy of it
    partition: Mapping[str, str | int | None] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path, stack: ExitStack) -> Input:
        """Return a file by its name; a zipped one is unpacked until the stack is closed."""
        kind, place = kind_of(path), path
        refuse_names([path])
        if not path.is_file():  # a pipe without a writer would be waited for
            raise ValueError(f"{path}: must be a file, got a pipe or a device; - is standard input")
        if is_zipped(path):
            try:
                with gzip.open(path) as stream:
                    place = _copied(cast(IO[bytes], stream), stack)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{path} cannot be read: {error}") from None
        return cls(place, kind, str(path), path, _partition(path))

    def __post_init__(self) -> None:
        if self.kind == "arrow" and _start(self.path).startswith(ARROW_STREAM):
            raise ValueError(f"{self.name}: an Arrow stream; give it as an Arrow or Parquet file")

    @property
    def separator(self) -> str:
        """What stands between the fields of a text file; a CSV may have ; or tabs."""
        return separator_of(self.path) if self.kind == "csv" else SEPARATORS[self.kind]

    @property
    def is_text(self) -> bool:
        """Whether every value is text until it is parsed."""
        return self.kind in SEPARATORS

    def scan(
        self, *, typed: bool = False, text: Sequence[str] = (), **options: Any
    ) -> pl.LazyFrame:
        """Scan the file; values of text files stay text unless `typed`, and in columns `text`.

        With `options` of Polars for text files, numbers with decimal commas stay text too.
        """
        if self.kind == "parquet":
            return self.with_partition(pl.scan_parquet(self.path, glob=False))
        if self.kind == "arrow":
            return self.with_partition(pl.scan_ipc(self.path, glob=False))
        names, separator, commas = self.check_header(), self.separator, []
        if typed and not options and separator != ",":
            commas = decimal_commas(self.beginning().collect(), separator)
        given: dict[str, Any] = {"infer_schema": typed, "infer_schema_length": INFERRED} | options
        frame = pl.scan_csv(
            self.path,
            separator=separator,
            schema_overrides=dict.fromkeys({*text, *commas} & set(names), pl.String),
            new_columns=names or None,  # of doubled quotes Polars would leave both
            glob=False,
            **given,
        )
        frame = with_points(frame, [name for name in commas if name not in text])
        return self.with_partition(frame, text=not typed)

    def with_partition(self, frame: pl.LazyFrame, *, text: bool = False) -> pl.LazyFrame:
        """Add the columns that are in the names of folders only."""
        there = frame.collect_schema() if self.partition else ()
        columns = {
            name: pl.lit(str(value) if text and value is not None else value)
            for name, value in self.partition.items()
            if name not in there
        }
        return frame.with_columns(**columns)

    def beginning(self) -> pl.LazyFrame:
        """Return the first rows of a text file as text; rows may be too long."""
        return self.scan(truncate_ragged_lines=True).head(INFERRED)

    def number(self, name: str) -> pl.Expr:
        """Return a column as numbers, null where a text is none; a text may be 0,5."""
        (column,) = named(name)
        if not self.is_text:
            return column.cast(pl.Float64)
        commas = self.beginning().select(column.str.contains(",", literal=True).any())
        return as_number(column, comma=bool(commas.collect().item()))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        with reading(self):
            return list(self.scan().collect_schema())

    def refuse_absent(self, *names: str | None) -> None:
        """Refuse the names of columns that the file does not have."""
        there = self.columns
        for name in filter(None, names):
            if name not in there:
                raise ValueError(f"{self.name}: no column {name!r}; it has {there}")

    def refuse_ragged(self) -> None:
        """Refuse a text file with a row that has too few or too many fields."""
        ragged = first_ragged(self.path, self.separator)
        if ragged:
            raise ValueError(
                f"{self.name}, row {ragged.row}: a row must have {ragged.expected} fields "
                f"like the header, got {ragged.fields}"
            )

    def read(self, names: Iterable[str]) -> None:
        """Read columns on their own, to name the one that cannot be read."""
        for name in names:
            with reading(self, name):  # in batches, a panic of Polars would pass for the end
                (column,) = named(name)
                query = self.scan(typed=True).select(column.null_count())
                query.collect(engine="streaming")

    def check_header(self) -> list[str]:
        """Return the names of the columns of a text file; refuse what Polars would rename."""
        try:
            return header(self.path, self.separator)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None


@contextmanager
def reading(source: Input, column: str | None = None) -> Iterator[None]:
    """Say which file, and which column of it, could not be read."""
    try:
        yield
    except BROKEN as error:
        whole = column is None or NOT_UTF8 in str(error)  # of any column
        where = "" if whole else f", column {column!r}"
        raise ValueError(f"{source.name}{where}: cannot be read: {first_line(error)}") from error


def named(*names: str) -> list[pl.Expr]:
    """Return columns by their names, none of which is a pattern."""
    return [selectors.by_name(name).as_expr() for name in names]


def first_line(error: BaseException) -> str:
    """Return the first line of a message, and what to do about text in another encoding."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"{line}; {SAVE_AS_UTF8}" if NOT_UTF8 in line else line


def kind_of(path: Path) -> str:
    """Return the kind of a file by its extension, that before .gz where it is zipped."""
    kind = _known_kind(path)
    if kind is None:
        raise ValueError(f"{path}: the extension must be one of {', '.join(KINDS)}, or one and .gz")
    return kind


def _known_kind(path: Path) -> str | None:
    plain = path.with_suffix("") if is_zipped(path) else path
    return KINDS.get(plain.suffix.lower())


def is_zipped(path: Path) -> bool:
    """Whether a file is zipped, by its name."""
    return path.suffix.lower() == ZIPPED


def refuse_names(paths: Iterable[Path | str]) -> None:
    """Refuse the names of files that are not UTF-8: Polars cannot open them."""
    for path in paths:
        raw = os.fsencode(path)
        if raw.decode("utf-8", "replace") != str(path):
            raise ValueError(f"the name of a file must be UTF-8, got {raw!r}: rename it")


def find_inputs(names: Iterable[str], stack: ExitStack) -> list[Input]:
    """Return the files that names, folders, patterns and "-" (the standard input) stand for."""
    inputs = [each for name in names for each in _found(name, stack)]
    if not inputs:
        raise ValueError("give at least one file to read, got none")
    refuse_twice(each.origin for each in inputs)
    return _with_numbers(inputs)


def _found(name: str, stack: ExitStack) -> Iterator[Input]:
    if name == "-":
        if sys.stdin is None or getattr(sys.stdin, "closed", False):
            raise ValueError("the standard input must be open, got a closed one")
        yield standard_input(sys.stdin.buffer, stack)
        return
    if not name:  # Path takes it for the folder that one is in
        raise ValueError("a file must have a name, got ''")
    path = Path(name)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if _known_kind(p) and p.is_file())
        if not found:
            raise ValueError(f"{name}: the folder holds no file with {', '.join(KINDS)}")
    elif path.exists():
        found = [path]
    else:
        found = [Path(p) for p in sorted(glob.glob(name, recursive=True))]
        if not found:
            raise FileNotFoundError(f"{name}: there is no such file")
    yield from (Input.opened(each, stack) for each in found)


def _partition(path: Path) -> dict[str, str | int | None]:
    """Return the columns that the folders of a path name, as Hive writes them.

    >>> _partition(Path("part/city=A%2FB/day=2/rows.parquet"))
    {'city': 'A/B', 'day': '2'}
    """
    pairs = (part.partition("=") for part in path.parts[:-1])
    return {
        unquote(name): None if value == NO_VALUE else unquote(value)
        for name, equals, value in pairs
        if name and equals
    }


def _with_numbers(inputs: list[Input]) -> list[Input]:
    """Turn the columns of folders into numbers where each value is one as it is written."""
    pairs = [pair for each in inputs for pair in each.partition.items() if pair[1] is not None]
    texts = {n for n, value in pairs if not re.fullmatch(r"0|-?[1-9]\d{0,17}", str(value))}

    def typed(partition: Mapping[str, Any]) -> dict[str, Any]:
        return {n: v if v is None or n in texts else int(v) for n, v in partition.items()}

    return [replace(each, partition=typed(each.partition)) for each in inputs]


def standard_input(stream: IO[bytes], stack: ExitStack) -> Input:
    """Copy the standard input to a temporary file, since it can be read only once."""
    copy = _copied(stream, stack)
    line = _start(copy)
    kind = "tsv" if line.count(b"\t") > line.count(b",") else "csv"
    starts = {PARQUET: "parquet", ARROW: "arrow", ARROW_STREAM: "arrow"}
    kind = next((each for start, each in starts.items() if line.startswith(start)), kind)
    return Input(copy, kind, "standard input", Path("/dev/stdin"))


def _start(path: Path) -> bytes:
    """Return the first line of a file."""
    with path.open("rb") as file:
        return file.readline(COPIED)


def _copied(stream: IO[bytes], stack: ExitStack) -> Path:
    """Copy a stream to a temporary file, which is gone when the stack is closed."""
    # Ctrl-C ends a read that waits: with the handler that Polars installs, it would go on.
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
    with spilling():
        copy = stack.enter_context(temporary_file(Path(gettempdir()), "argmaxf-stdin", mode=0o600))
        file = stack.enter_context(copy.open("wb", buffering=0))
    while chunk := stream.read(COPIED):
        with spilling():
            write_all(file, chunk)
    return copy
