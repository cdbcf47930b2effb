"""The rows of files with their labels, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from argmaxf._base.atomic_write import refuse_inputs, written_whole
from argmaxf.files.column import BROKEN, Column, first_line, reading
from argmaxf.files.formats import SEPARATORS, Input, is_zipped, kind_of, write, write_zipped
from argmaxf.files.progress import Advance, Progress


@dataclass(frozen=True)
class Output:
    """Where labelled rows go."""

    path: Path
    label: str
    items: Column

    @classmethod
    def checked(cls, path: Path, label: str, items: Column) -> Output:
        """Refuse an output that cannot be, before any work is done."""
        kind_of(path)
        if len({source.is_text for source in items.inputs}) > 1:
            raise ValueError("rows to write must all come from text files, or none of them")
        refuse_inputs([path], [source.origin for source in items.inputs])
        _check_columns(items)
        for source in items.inputs:
            if label in items.scan(source).collect_schema():
                raise ValueError(
                    f"{source.name}: there is a column {label!r} already; choose another --label"
                )
        return cls(path, label, items)

    def frame(self) -> pl.LazyFrame:
        """Return the rows to write, and the probabilities in double precision as `items.p`."""
        return self.items.frame(typed=not self._all_text)

    @property
    def _all_text(self) -> bool:
        """Whether values can be copied as they are written, from text to text."""
        texts = (source.is_text for source in self.items.inputs)
        return kind_of(self.path) in SEPARATORS and all(texts)

    @property
    def _separator(self) -> str:
        """What stands between the fields of a text file; a CSV made of files with ; has it too."""
        kind, inputs = kind_of(self.path), self.items.inputs
        if kind == "csv" and all(each.is_text and each.separator == ";" for each in inputs):
            return ";"
        return SEPARATORS.get(kind, "")

    def write(self, frame: pl.LazyFrame, progress: Progress) -> None:
        """Write labelled rows."""
        with progress.phase("writing", self.items.rows()) as advance:
            if progress.active:
                frame = frame.with_columns(_counting(self.label, advance))
            frame = frame.drop(self.items.helpers, strict=False)
            with written_whole(self.path) as temporary:
                self._sink(frame, temporary)

    def _sink(self, frame: pl.LazyFrame, temporary: Path) -> None:
        try:
            sink = write_zipped if is_zipped(self.path) else write
            sink(frame, temporary, kind_of(self.path), self._separator)
        except BROKEN as error:
            if "os error" not in str(error):  # nothing wrong with the disk: an input, perhaps
                for source in self.items.inputs:
                    _read_all(source)
            raise OSError(f"{self.path}: cannot be written: {first_line(error)}") from error


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
    """The names of a file's columns."""
    with reading(source):
        return list(source.scan().collect_schema())


def _read_all(source: Input) -> None:
    """Read every column on its own, to name the one that cannot be read."""
    frame = source.scan(typed=True)
    for name in _names(source):
        with reading(source, name):  # in batches, a panic of Polars would pass for the end
            frame.select(pl.col(name).null_count()).collect(engine="streaming")


def _counting(label: str, advance: Advance) -> pl.Expr:
    """Pass labels through, and tell how many came by."""

    def passed(labels: pl.Series) -> pl.Series:
        advance(labels.len())
        return labels

    return pl.col(label).map_batches(passed, return_dtype=pl.Boolean, is_elementwise=True)
