"""Which files there are, how Polars scans each kind, and how it writes each kind."""

from __future__ import annotations

import glob
import gzip
import shutil
import signal
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import IO, cast

import polars as pl
from polars import selectors

from argmaxf._base.atomic_write import refuse_twice, temporary_file
from argmaxf.files.commas import decimal_commas, with_points
from argmaxf.files.header import ARROW, PARQUET, header, separator_of

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
STREAM = b"\xff\xff\xff\xff"  # how an Arrow stream starts
COPY = 1 << 20  # bytes of the standard input taken at a time
INFERRED = 10_000  # rows of text from which the types of columns are guessed


@dataclass(frozen=True)
class Input:
    """One file to read: where it is, of which kind, and what to call it in messages."""

    path: Path
    kind: str
    name: str
    origin: Path  # the user's own file, where `path` is a copy of it

    @classmethod
    def opened(cls, path: Path, stack: ExitStack) -> Input:
        """Return a file by its name; a zipped one is unpacked until the stack is closed."""
        kind, place = kind_of(path), path
        if is_zipped(path):
            try:
                with gzip.open(path) as stream:
                    place = _spilled(cast(IO[bytes], stream), stack)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{path} cannot be read: {error}") from None
        if kind == "arrow":
            with place.open("rb") as file:
                _refuse_stream(file.read(len(STREAM)), str(path))
        return cls(place, kind, str(path), path)

    @property
    def separator(self) -> str:
        """What stands between the fields of a text file; a CSV may have ; or tabs."""
        if self.kind != "csv":
            return SEPARATORS[self.kind]
        return separator_of(self.path)

    @property
    def is_text(self) -> bool:
        """Whether every value is text until it is parsed."""
        return self.kind in SEPARATORS

    def scan(
        self, *, typed: bool = False, text: Sequence[str] = (), ragged: bool = False
    ) -> pl.LazyFrame:
        """Scan the file; values of text files stay text unless `typed`, and in columns `text`.

        With `ragged`, fields that a row has beyond the header are passed over.
        """
        if self.kind == "parquet":
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == "arrow":
            return pl.scan_ipc(self.path, glob=False)
        names, separator = self.check_header(), self.separator
        commas = decimal_commas(self.beginning(), separator) if typed and separator != "," else []
        as_text = {*text, *commas} & set(names)
        frame = pl.scan_csv(
            self.path,
            separator=separator,
            infer_schema=typed,
            infer_schema_length=INFERRED,
            schema_overrides=dict.fromkeys(as_text, pl.String),
            new_columns=names_to_give(names),
            truncate_ragged_lines=ragged,
            glob=False,
        )
        return with_points(frame, [name for name in commas if name not in text])

    def beginning(self, *names: str) -> pl.DataFrame:
        """Return the first rows of a text file as text, of some columns or all."""
        frame = self.scan(ragged=True).head(INFERRED)
        return (frame.select(selectors.by_name(*names)) if names else frame).collect()

    def check_header(self) -> list[str]:
        """Return the names of the columns of a text file; refuse what Polars would rename."""
        try:
            return header(self.path, self.separator)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None


def names_to_give(names: list[str]) -> list[str] | None:
    """Return the names of columns where Polars would read others: it leaves quotes doubled."""
    return names if any('"' in name for name in names) else None


def kind_of(path: Path) -> str:
    """Return the kind of a file by its extension, that before .gz where it is zipped."""
    kind = _known_kind(path)
    if kind is None:
        raise ValueError(f"{path}: the extension must be one of {', '.join(KINDS)}, or one and .gz")
    return kind


def is_zipped(path: Path) -> bool:
    """Tell whether a file is zipped, by its name."""
    return path.suffix.lower() == ZIPPED


def _known_kind(path: Path) -> str | None:
    plain = path.with_suffix("") if is_zipped(path) else path
    return KINDS.get(plain.suffix.lower())


def write(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream."""
    if kind == "parquet":
        frame.sink_parquet(path)
    elif kind == "arrow":
        frame.sink_ipc(path)
    else:
        frame.sink_csv(path, separator=separator)


def write_zipped(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream, and zip what was written."""
    with temporary_file(path.parent, "argmaxf-unzipped") as plain:
        write(frame, plain, kind, separator)
        with (
            plain.open("rb") as source,
            path.open("wb") as target,
            gzip.GzipFile("", "wb", fileobj=target, mtime=0) as zipped,  # the same each time
        ):
            shutil.copyfileobj(source, zipped, COPY)


def find_inputs(names: Iterable[str], stack: ExitStack) -> list[Input]:
    """Return the files that names, folders, patterns and "-" (the standard input) stand for."""
    inputs = [each for name in names for each in _found(name, stack)]
    if not inputs:
        raise ValueError("give at least one file to read, got none")
    refuse_twice(each.origin for each in inputs)
    return inputs


def _found(name: str, stack: ExitStack) -> Iterator[Input]:
    if name == "-":
        if sys.stdin is None or getattr(sys.stdin, "closed", False):
            raise ValueError("the standard input must be open, got a closed one")
        yield spilled_input(sys.stdin.buffer, stack)
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


def spilled_input(stream: IO[bytes], stack: ExitStack) -> Input:
    """Copy the standard input to a temporary file, since it can be read only once."""
    copy = _spilled(stream, stack)
    with copy.open("rb") as file:
        return Input(copy, _sniffed(file.readline(COPY)), "standard input", Path("/dev/stdin"))


def _heed_interrupts() -> None:
    """Let Ctrl-C end a read that waits: with the handler that Polars installs, it would go on."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _spilled(stream: IO[bytes], stack: ExitStack) -> Path:
    """Copy a stream to a temporary file, which is gone when the stack is closed."""
    _heed_interrupts()
    with spilling():
        copy = stack.enter_context(temporary_file(Path(gettempdir()), "argmaxf-stdin", mode=0o600))
        spill = stack.enter_context(copy.open("wb", buffering=0))
    while chunk := stream.read(COPY):
        with spilling():
            write_all(spill, chunk)
    return copy


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write some bytes to an unbuffered file, which may take them in parts."""
    rest = memoryview(data)
    while rest.nbytes:
        rest = rest[file.write(rest) :]


@contextmanager
def spilling() -> Iterator[None]:
    """Say which disk is full when a temporary file does not fit."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{gettempdir()}: no room for a temporary file: {error.strerror}; "
            "TMPDIR names another folder"
        ) from error


def _sniffed(line: bytes) -> str:
    """Tell the kind of a file by how it starts."""
    if line.startswith(PARQUET):
        return "parquet"
    if line.startswith(ARROW):
        return "arrow"
    _refuse_stream(line, "standard input")
    return "tsv" if line.count(b"\t") > line.count(b",") else "csv"


def _refuse_stream(start: bytes, name: str) -> None:
    if start.startswith(STREAM):
        raise ValueError(f"{name}: an Arrow stream; give it as an Arrow or Parquet file")
