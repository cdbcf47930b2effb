"""The rows of files with their labels, written whole or not at all."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from argmaxf._base.atomic_write import temporary_file, written_whole
from argmaxf.files.column import Advance, Column, count_rows, phase, read_columns
from argmaxf.files.inputs import (
    BROKEN,
    COPIED,
    SEPARATORS,
    Input,
    first_line,
    is_zipped,
    kind_of,
    reading,
    refuse_names,
)


@dataclass(frozen=True)
class Output:
    """Where labelled rows go."""

    path: Path
    label: str  # the column to add
    items: Column

    @classmethod
    def checked(cls, path: Path, label: str, items: Column) -> Output:
        """Refuse an output that cannot be, before any work is done."""
        kind_of(path)
        refuse_names([path])
        if len({source.is_text for source in items.inputs}) > 1:
            raise ValueError(
                "the inputs must be all text files, or none of them, to write their rows"
            )
        _check_columns(items)
        for source in items.inputs:
            if label in items.scan(source).collect_schema():
                raise ValueError(
                    f"{source.name}: there is a column {label!r} already; choose another --label"
                )
        return cls(path, label, items)

    def frame(self) -> pl.LazyFrame:
        """Return the rows to write, and the probabilities as `items.p`.

        From text to text, values are copied as they are written.
        """
        texts = (source.is_text for source in self.items.inputs)
        return self.items.frame(typed=not (kind_of(self.path) in SEPARATORS and all(texts)))

    def write(self, frame: pl.LazyFrame) -> None:
        """Write labelled rows."""
        advance = phase(self.items.progress, "writing", count_rows(self.items.inputs))
        if self.items.progress is not False:
            frame = frame.with_columns(_counting(self.label, advance))
        with written_whole(self.path) as temporary:
            self._sink(frame.drop(self.items.p), temporary)

    def _sink(self, frame: pl.LazyFrame, temporary: Path) -> None:
        kind, inputs = kind_of(self.path), self.items.inputs
        separator = SEPARATORS.get(kind, "")
        if kind == "csv" and all(each.is_text and each.separator == ";" for each in inputs):
            separator = ";"
        try:
            write = _write_zipped if is_zipped(self.path) else _write
            write(frame, temporary, kind, separator)
        except BROKEN as error:
            if "os error" not in str(error):  # nothing wrong with the disk: an input, perhaps
                for source in inputs:
                    read_columns(source, _names(source))
            raise OSError(f"{self.path}: cannot be written: {first_line(error)}") from error


def _write(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream."""
    if kind == "parquet":
        frame.sink_parquet(path)
    elif kind == "arrow":
        frame.sink_ipc(path)
    else:
        frame.sink_csv(path, separator=separator)


def _write_zipped(frame: pl.LazyFrame, path: Path, kind: str, separator: str) -> None:
    """Write a frame as a stream, and zip what was written; nobody else can read the plain copy."""
    with temporary_file(path.parent, "argmaxf-unzipped", mode=0o600) as plain:
        _write(frame, plain, kind, separator)
        with (
            plain.open("rb") as source,
            path.open("wb") as target,
            gzip.GzipFile("", "wb", fileobj=target, mtime=0) as zipped,  # the same each time
        ):
            shutil.copyfileobj(source, zipped, COPIED)


def _check_columns(items: Column) -> None:
    """Refuse files that cannot be put one below the other."""
    first, *others = ((source, _names(source)) for source in items.inputs)
    for source, names in others:
        if names != first[1]:
            odd = sorted(set(names) ^ set(first[1])) or names
            raise ValueError(
                f"{source.name}: rows to write must have the columns of {first[0].name} "
                f"in the same order; see {odd[0]!r}"
            )


def _names(source: Input) -> list[str]:
    """Return the names of a file's columns."""
    with reading(source):
        return list(source.scan().collect_schema())


def _counting(label: str, advance: Advance) -> pl.Expr:
    """Pass labels through, and tell how many came by."""

    def passed(labels: pl.Series) -> pl.Series:
        advance(labels.len())
        return labels

    return pl.col(label).map_batches(passed, return_dtype=pl.Boolean, is_elementwise=True)
