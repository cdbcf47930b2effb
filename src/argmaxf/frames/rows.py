"""Columns of a frame as numbers: read in batches, checked, held, parted by segment.

What a batch holds is known by the names of its columns, which are the same for every frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Ints
from argmaxf._base.validation import NotAProbability, how_many
from argmaxf.empirical.bins import NotLabelled
from argmaxf.frames.batches import column_batches, on_partitions
from argmaxf.frames.engines import CHANGED, Dask, Frame, as_frame, engine_of, missing
from argmaxf.frames.spill import Part, by_segment

T = TypeVar("T")
Batch = dict[str, NDArray[Any]]
P, SEGMENT = "argmaxf_p", "argmaxf_segment"
SCORE, LABEL, WEIGHT = "argmaxf_score", "argmaxf_label", "argmaxf_weight"
# What numbers are at least and at most; NaN is neither.
LIMITS = {
    P: (0.0, 1.0),
    LABEL: (0, 1),
    SCORE: (-np.inf, np.inf),
    WEIGHT: (0.0, np.finfo(np.float64).max),
    SEGMENT: (0, np.inf),
}


class Unusable(Exception):
    """A row without a number that can be used, or in no segment; or there are no rows."""


class Rule(NamedTuple):
    """What a column must hold, in words and as what is wrong; None if any value will do."""

    column: str
    words: str = ""
    wrong: nw.Expr | None = None


@dataclass(frozen=True)
class Rows:
    """The rows of a frame as numbers."""

    frame: Frame  # as it was given
    items: Frame  # its numbers, by the names of `LIMITS`; those of the segments last
    rules: tuple[Rule, ...]  # of the columns that were given
    what: str  # one number of the first column
    number: str | None = None  # the column of `frame` with the number of each row's segment
    begin: Callable[[], Callable[[int], None]] | None = None  # of a pass; told of rows read then
    HELD: ClassVar[int] = 1 << 22  # rows that are held as arrays; more are read in batches

    def batches(self, *, ordered: bool = True, checked: bool = True) -> Iterator[Batch]:
        """Yield the columns in batches; raise Unusable at a row that cannot be used."""
        advance = self.begin() if self.begin else None
        for batch in batches_of(self.items, ordered=ordered):
            if advance:
                advance(next(iter(batch.values())).size)
            if checked:
                for name, numbers in batch.items():
                    low, high = LIMITS[name]
                    if numbers.size and not (numbers.min() >= low and numbers.max() <= high):
                        raise Unusable
            yield batch

    def where(self, chosen: nw.Expr) -> Self:
        """Return some of the rows."""
        return replace(self, items=self.items.filter(chosen))

    def each(self, work: Callable[[Iterator[Batch]], Iterable[T]]) -> Iterator[T]:
        """Yield what some work on all batches gives; on Dask for each partition, where it is."""
        if isinstance(engine_of(self.frame), Dask):
            done = on_partitions(self.items, partial(_on_partition, work), at_once=1 << 20)
            yield from chain.from_iterable(done)
        else:
            yield from work(self.batches(checked=False))

    def held(self, *, all_: bool = False) -> Batch | None:
        """Return the rows as arrays, or None if there are more than HELD and not all are asked."""
        parts, size = [], 0
        for batch in self.batches():
            parts.append(batch)
            size += next(iter(batch.values())).size
            if size > self.HELD and not all_:
                return None
        if not size:
            raise Unusable
        return {name: np.concatenate([batch[name] for batch in parts]) for name in parts[0]}

    def by_segment(self, sizes: Ints, most: int) -> AbstractContextManager[Iterator[Part]]:
        """Part the rows by segment, about `most` at a time, into columns without the numbers."""
        if not sizes.any():
            raise Unusable
        kinds: dict[str, Any] = {}
        for name, kind in self.items.drop(SEGMENT).collect_schema().items():
            single = name == SCORE and kind == nw.Float32
            kinds[name] = np.int8 if name == LABEL else np.float32 if single else np.float64
        read = (tuple(batch.values()) for batch in self.batches(ordered=False))
        return by_segment(sizes, kinds, read, most)

    def refusing(self, work: Callable[[], T]) -> T:
        """Do some work on the rows; name what cannot be used."""
        with suppress(Unusable, NotAProbability, NotLabelled):
            return work()
        # here, what was being read is closed
        raise refusal(self.frame, self.rules, self.number, self.what)


def batches_of(items: Frame, *, ordered: bool = True) -> Iterator[Batch]:
    """Yield the columns of a frame by their names."""
    names = items.collect_schema().names()
    for arrays in column_batches(items, names, ordered=ordered):
        batch = dict(zip(names, arrays, strict=True))
        if LABEL in batch:
            batch[LABEL] = batch[LABEL].astype(np.int8, copy=False)
        yield batch


def _on_partition(work: Callable[[Iterator[Batch]], Iterable[T]], part: Any) -> list[T]:
    """Do some work on the batches of a partition."""
    return list(work(batches_of(as_frame(part))))


def refusal(
    frame: Frame, rules: Sequence[Rule], segment: str | int | None, what: str
) -> ValueError:
    """Return the error about the first rule that some row breaks; found by one query.

    `segment` is the column with the numbers of the segments, or how many rows are in none; `what`
    is one value of the first column.
    """
    terms = [nw.len()]
    for column, _, wrong in rules:
        value = nw.when(nw.lit(False) if wrong is None else wrong).then(number(column))
        terms += [one(missing(frame, [column])).sum(), value.count(), value.min(), value.max()]
    terms += [one(nw.col(segment) < 0).sum()] if isinstance(segment, str) else []
    query = frame.select(*(term.alias(f"a{i}") for i, term in enumerate(terms)))
    n, *found = engine_of(frame).run(query).row(0)
    outside = found.pop() if isinstance(segment, str) else segment
    if not n:
        return ValueError(f"column {rules[0].column!r} must hold at least one {what}, got none")
    for i, (column, words, _) in enumerate(rules):
        absent, count, low, high = found[4 * i : 4 * i + 4]
        if absent:
            return ValueError(
                f"column {column!r} must have a value in every row, got {round(absent)} null or "
                "NaN; nulls='drop' leaves such rows out"
            )
        if count:
            got, such = float(low if low < 0.0 else high), how_many(count, "such row")
            return ValueError(f"column {column!r} {words}, got {got!r} ({such})")
    if outside:
        such = how_many(outside, "such row")
        return ValueError(f"by must not be null or NaN, got {such}")
    return ValueError(f"{CHANGED}, got other ones the second time")


def one(condition: nw.Expr) -> nw.Expr:
    """Return 1 where a condition holds, else 0."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def number(column: str) -> nw.Expr:
    """Return a column in double precision."""
    return nw.col(column).cast(nw.Float64)
