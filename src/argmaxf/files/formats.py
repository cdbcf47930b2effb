"""Which files there are, how Polars scans each kind, and how it writes each kind."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir
from typing import IO

import polars as pl

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
COPY = 1 << 20  # bytes of the standard input taken at a time
INFERRED = 10_000  # rows of text from which the types of columns are guessed


@dataclass(frozen=True)
class Input:
    """One file to read: where it is, of which kind, and what to call it in messages."""

    path: Path
    kind: str
    name: str

    @property
    def is_text(self) -> bool:
        """Whether every value is text until it is parsed."""
        return self.kind in SEPARATORS

    def scan(self, *, typed: bool = False, text: str | None = None) -> pl.LazyFrame:
        """Scan the file; values of text files stay text unless `typed`, and in column `text`."""
        if self.kind == "parquet":
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == "arrow":
            return pl.scan_ipc(self.path)
        return pl.scan_csv(
            self.path,
            separator=SEPARATORS[self.kind],
            infer_schema=typed,
            infer_schema_length=INFERRED,
            schema_overrides={text: pl.String} if typed and text else None,
            glob=False,
        )


def kind_of(path: Path) -> str:
    """Return the kind of a file by its extension."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: the extension must be one of {', '.join(KINDS)}")
    return kind


def write(frame: pl.LazyFrame, path: Path, kind: str) -> None:
    """Write a frame as a stream."""
    if kind == "parquet":
        frame.sink_parquet(path)
    elif kind == "arrow":
        frame.sink_ipc(path)
    else:
        frame.sink_csv(path, separator=SEPARATORS[kind])


def find_inputs(names: Iterable[str], stack: ExitStack) -> list[Input]:
    """Return the files that names, folders, patterns and "-" (the standard input) stand for."""
    inputs = [each for name in names for each in _found(name, stack)]
    if not inputs:
        raise ValueError("give at least one file to read, got none")
    return inputs


def _found(name: str, stack: ExitStack) -> Iterator[Input]:
    if name == "-":
        yield spilled_input(sys.stdin.buffer, stack)
        return
    path = Path(name)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in KINDS and p.is_file())
        if not found:
            raise ValueError(f"{name}: the folder holds no file with {', '.join(KINDS)}")
    elif path.exists():
        found = [path]
    else:
        found = [Path(p) for p in sorted(glob.glob(name, recursive=True))]
        if not found:
            raise FileNotFoundError(f"{name}: there is no such file")
    yield from (Input(p, kind_of(p), str(p)) for p in found)


def spilled_input(stream: IO[bytes], stack: ExitStack) -> Input:
    """Copy a stream to a temporary file, since it can be read only once."""
    spill = NamedTemporaryFile(prefix="argmaxf-")  # noqa: SIM115 (the stack closes it)
    stack.enter_context(spill)
    with spilling():
        while chunk := stream.read(COPY):
            spill.write(chunk)
        spill.flush()
    path = Path(spill.name)
    with path.open("rb") as file:
        return Input(path, _sniffed(file.readline(COPY)), "standard input")


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
    if line.startswith(b"PAR1"):
        return "parquet"
    if line.startswith(b"ARROW1"):
        return "arrow"
    if line.startswith(b"\xff\xff\xff\xff"):
        raise ValueError("standard input: an Arrow stream; give it as an Arrow or Parquet file")
    return "tsv" if line.count(b"\t") > line.count(b",") else "csv"
