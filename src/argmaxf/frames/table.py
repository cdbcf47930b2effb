"""A frame as a user gives it: checked, and its columns as numbers, read in batches.

What a batch holds is known by the names of its columns, which are the same for every frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.segments import Segments
from argmaxf._base.validation import (
    CHANGED,
    NotAProbability,
    Unusable,
    check_choice,
    check_same,
    how_many,
)
from argmaxf.frames.engines import (
    NOT_GROUPED,
    Dask,
    Frame,
    as_frame,
    engine_of,
    missing,
    unused,
)
from argmaxf.prior import check_fits, factor_of, move_odds

T = TypeVar("T")
Key = tuple[Any, ...]
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


class Rule(NamedTuple):
    """What a column must hold, in words and as what is wrong; None if any value will do."""

    column: str
    words: str = ""
    wrong: nw.Expr | None = None


@dataclass(frozen=True)
class Table:
    """A frame, its columns of probabilities, and the segments of its rows."""

    frame: Frame
    columns: tuple[str, ...]
    outputs: tuple[str, ...]  # the columns of labels, one for each of `columns`
    number: str | None = None  # the column of `frame` with the number of each row's segment
    keys: Frame | None = None  # of the segments, each with its number
    sizes: Ints | None = None  # of the segments
    factors: dict[str, float] | None = None  # what the odds of each column are multiplied by
    has_order: bool = False  # whether rows come in the same order each time
    reads_again: bool = True  # whether reading is as quick as from a temporary file
    begin: Callable[[], Callable[[int], None]] | None = None  # of a pass; told of rows read then

    @classmethod
    def of(
        cls,
        frame: Any,
        column: str | Sequence[str],
        by: str | Sequence[str] | None = None,
        nulls: str = "raise",
        output: str | None = None,
        prior: Any = None,
        *,
        has_order: bool = False,
        beside: Sequence[str] = (),
        begin: Callable[[], Callable[[int], None]] | None = None,
    ) -> Table:
        """Check what a user gave, and number the segments; eager frames always have an order.

        Columns `beside` the numbers may be of any type.
        """
        try:
            rows = nw.from_native(frame)
        except TypeError:
            path = isinstance(frame, str | PathLike)
            hint = "; for a file use the command `argmaxf decide`, or read it first" if path else ""
            kind = type(frame).__name__
            raise TypeError(f"frame must be a data frame, got {kind}{hint}") from None
        columns, names = names_of(column), names_of(by)
        has_order = has_order or isinstance(rows, nw.DataFrame)
        check_columns(rows, columns, names, beside)
        factors = number = keys = sizes = None
        if prior is not None:
            factor, shape = factor_of(prior), (len(columns),)
            check_fits(factor, "columns", shape)
            factors = dict(zip(columns, np.broadcast_to(factor, shape).tolist(), strict=True))
        outputs = () if output is None else _outputs(rows, columns, output)
        if check_choice("nulls", nulls, ("raise", "drop")) == "drop":
            rows = rows.filter(~missing(rows, (*columns, *beside)))
        if names:
            (number,) = unused([*rows.collect_schema(), *outputs], [SEGMENT])
            rows, keys, sizes = _numbered(rows, names, number)
        return cls(rows, columns, outputs, number, keys, sizes, factors, has_order, begin=begin)

    @property
    def is_eager(self) -> bool:
        """Whether the rows are in memory."""
        return isinstance(self.frame, nw.DataFrame)

    @property
    def segments(self) -> int:
        """How many segments the rows have."""
        return 1 if self.sizes is None else self.sizes.size

    def rows(self, j: int) -> Rows:
        """Return the probabilities of column j, and the numbers of their segments if there are any.

        Floats are as they are, other numbers and moved probabilities in double precision.
        """
        name = self.columns[j]
        is_float = self.frame.collect_schema()[name] in (nw.Float32, nw.Float64)
        p = nw.col(name) if is_float and self.factors is None else self.p(name)
        given = number(name)
        rule = Rule(name, "must be in [0, 1]", (given < 0.0) | (given > 1.0))
        items = self.frame.select(p.alias(P), *self.segment)
        return Rows(self, items, (rule,), "probability")

    @property
    def segment(self) -> list[nw.Expr]:
        """The numbers of the segments of rows, if there are any."""
        return [nw.col(self.number).alias(SEGMENT)] if self.number else []

    def p(self, column: str) -> nw.Expr:
        """Return a column of probabilities in double precision, its odds moved."""
        p: nw.Expr = number(column)
        return p if self.factors is None else move_odds(p, self.factors[column])

    def look_up(self, rows: Frame, values: dict[str, Floats]) -> tuple[Frame, dict[str, Any]]:
        """Return rows with the values of their segments as columns, and what these are."""
        if self.number is None:
            return rows, {name: float(each[0]) for name, each in values.items()}
        engine, numbers = engine_of(rows), {self.number: np.arange(self.segments)}
        small = engine.from_arrays(rows, numbers | values)
        return engine.join(rows, small, [self.number]), {name: nw.col(name) for name in values}

    def python_keys(self) -> list[Key]:
        """Return the key of each segment as Python values, each a tuple that is like no other."""
        if self.keys is None:
            return [()]
        names = [name for name in self.keys.collect_schema().names() if name != self.number]

        def read(keys: Frame, values: Callable[[Any], list[Any]]) -> list[Key]:
            table = engine_of(keys).run(keys).sort(str(self.number))
            return list(zip(*(values(table[name]) for name in names), strict=True))

        found = read(self.keys, _values)
        if len(set(found)) < len(found):
            text = self.keys.with_columns(nw.col(name).cast(nw.String) for name in names)
            found = read(text, nw.Series.to_list)
        return found


@dataclass(frozen=True)
class Rows:
    """The rows of a table as numbers."""

    table: Table
    items: Frame  # numbers, by the names of `LIMITS`; those of the segments last
    rules: tuple[Rule, ...]  # of the columns that were given
    what: str  # one number of the first column
    HELD: ClassVar[int] = 1 << 22  # rows that are held as arrays; more are read in batches

    def batches(self, *, ordered: bool = True, checked: bool = True) -> Iterator[Batch]:
        """Yield the columns in batches; raise Unusable at a row that cannot be used."""
        advance = self.table.begin() if self.table.begin else None
        for batch in batches_of(self.items, ordered=ordered):
            if advance:
                advance(size_of(batch))
            if checked:
                check_usable(batch)
            yield batch

    def name_of_segment(self, i: int) -> Any:
        """Return what a segment is called in messages: a value, or several."""
        several = len(self.table.columns) > 1
        return plain((*self.table.python_keys()[i], *[self.rules[0].column] * several))

    def each(
        self, work: Callable[[Iterator[Batch]], Iterable[T]], begun: Begun | None = None
    ) -> Iterator[T]:
        """Yield what some work on all batches gives; on Dask for each partition, where it is.

        Elsewhere reading may have begun.
        """
        engine = engine_of(self.items)
        if isinstance(engine, Dask):
            yield from chain.from_iterable(
                engine.on_partitions(self.items, partial(_on_partition, work))
            )
        else:
            yield from work(begun.batches() if begun else self.batches(checked=False))

    def begin(self, *, all_: bool = False) -> Begun:
        """Read HELD rows, if there are so many, or all; the others when they are asked for."""
        first, size, rest = [], 0, self.batches(checked=False)
        for batch in rest:
            check_usable(batch)
            first.append(batch)
            size += size_of(batch)
            if size > self.HELD and not all_:
                return Begun(first, rest)
        if not size:
            raise Unusable
        return Begun(first, None)

    def parts(self, most: int) -> Iterator[tuple[int, Ints, Batch | Self]]:
        """Yield all segments in their order, about `most` rows at a time, without the numbers.

        Segment first + i of a part has the rows of its columns from offsets[i] on. A segment of
        more rows is a part of its own: rows that are still to be read.
        """
        sizes, number = self.table.sizes, nw.col(SEGMENT)
        if sizes is None or not sizes.any():
            raise Unusable
        ends, large = np.cumsum(sizes), sizes > most
        begins = (np.diff(ends // most, prepend=-1) > 0) | large | np.append(False, large[:-1])
        several = ends[-1] > most
        firsts = np.flatnonzero(begins) if several else np.zeros(1, np.int64)
        if several:  # no part would see the rows in no segment
            query = self.items.select(number.min().alias(SEGMENT))
            if engine_of(query).run(query)[SEGMENT][0] < 0:
                raise Unusable
        for first, own in zip(firsts.tolist(), np.split(sizes, firsts[1:]), strict=True):
            own_rows = (number >= first) & (number < first + own.size)
            rows = replace(self, items=self.items.filter(own_rows)) if several else self
            if large[first]:
                alone = replace(self.table, number=None, keys=None, sizes=None)
                rows = replace(rows, table=alone, items=rows.items.drop(SEGMENT))
                yield first, np.append(0, own), rows
            else:
                yield first, *rows._gathered(own, first)

    def _gathered(self, sizes: Ints, first: int) -> tuple[Ints, Batch]:
        """Return the rows in memory, those of each segment one after another."""
        offsets = np.append(0, np.cumsum(sizes))
        following, n = offsets[:-1].copy(), int(offsets[-1])
        columns = {}
        for name, kind in self.items.drop(SEGMENT).collect_schema().items():
            single = kind == nw.Float32 and name in (SCORE, P)
            held: Any = np.int8 if name == LABEL else np.float32 if single else np.float64
            columns[name] = np.empty(n, held)
        for batch in self.batches(ordered=False):
            numbers = batch.pop(SEGMENT) - first
            parts = Segments.of_numbers(numbers, sizes.size)
            if parts.offsets.size > offsets.size:
                raise ValueError(f"{CHANGED}, got {sizes.size} segments and then more")
            ends = following + np.diff(parts.offsets)
            if (ends > offsets[1:]).any():
                check_same(sizes, ends - offsets[:-1])
            moved = np.repeat(following - parts.offsets[:-1], ends - following)
            places = np.arange(numbers.size) + moved
            for name, values in batch.items():
                columns[name][places] = parts.sorted(values)
            following = ends
        check_same(sizes, following - offsets[:-1])
        return offsets, columns

    def refusing(self, work: Callable[[], T]) -> T:
        """Do some work on the rows; name what cannot be used."""
        with suppress(Unusable, NotAProbability):
            return work()
        raise self._refusal()  # here, what was being read is closed

    def _refusal(self) -> ValueError:
        """Return the error about the first rule that some row breaks; found by one query."""
        frame, segment, terms = self.table.frame, self.table.number, [nw.len()]
        for column, _, wrong in self.rules:
            value = nw.when(nw.lit(False) if wrong is None else wrong).then(number(column))
            terms += [one(missing(frame, [column])).sum(), value.count(), value.min(), value.max()]
        terms += [one(nw.col(segment) < 0).sum()] if segment else []
        query = frame.select(*(term.alias(f"a{i}") for i, term in enumerate(terms)))
        n, *found = engine_of(frame).run(query).row(0)
        if not n:
            first = self.rules[0].column
            return ValueError(f"column {first!r} must hold at least one {self.what}, got none")
        for i, (column, words, _) in enumerate(self.rules):
            absent, count, low, high = found[4 * i : 4 * i + 4]
            if absent:
                return ValueError(
                    f"column {column!r} must have a value in every row, got {round(absent)} null "
                    "or NaN; nulls='drop' leaves such rows out"
                )
            if count:
                got, such = float(low if low < 0.0 else high), how_many(count, "such row")
                return ValueError(f"column {column!r} {words}, got {got!r} ({such})")
        if segment and found[-1]:
            such = how_many(found[-1], "such row")
            return ValueError(f"by must not be null or NaN, got {such}")
        return ValueError(f"{CHANGED}, got other ones the second time")


class Begun(NamedTuple):
    """Rows that are being read: batches in memory, checked, and those that follow, if there are."""

    first: list[Batch]
    rest: Iterator[Batch] | None

    def columns(self) -> Batch:
        """Return what is in memory as arrays."""
        return {name: np.concatenate([each[name] for each in self.first]) for name in self.first[0]}

    def batches(self) -> Iterator[Batch]:
        """Yield all batches, once; none of them stays in memory."""
        while self.first:
            yield self.first.pop(0)
        yield from self.rest or ()


def size_of(batch: Batch) -> int:
    """Return how many rows a batch has."""
    return next(iter(batch.values())).size


def check_usable(batch: Batch) -> None:
    """Raise Unusable if a row cannot be used."""
    for name, numbers in batch.items():
        low, high = LIMITS[name]
        if numbers.size and not (numbers.min() >= low and numbers.max() <= high):
            raise Unusable


def batches_of(items: Frame, *, ordered: bool = True) -> Iterator[Batch]:
    """Yield the columns of a frame by their names."""
    names = items.collect_schema().names()
    for arrays in engine_of(items).batches(items, ordered=ordered):
        batch = dict(zip(names, arrays, strict=True))
        if LABEL in batch:
            batch[LABEL] = batch[LABEL].astype(np.int8, copy=False)
        yield batch


def _on_partition(work: Callable[[Iterator[Batch]], Iterable[T]], part: Any) -> list[T]:
    """Do some work on the batches of a partition."""
    return list(work(batches_of(as_frame(part))))


def one(condition: nw.Expr) -> nw.Expr:
    """Return 1 where a condition holds, else 0."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def number(column: str) -> nw.Expr:
    """Return a column in double precision."""
    return nw.col(column).cast(nw.Float64)


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return a name, several or none as a tuple."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a column must be given by its name, a text, got {name!r}")
    return names


def check_columns(
    frame: Frame, columns: tuple[str, ...], by: tuple[str, ...], beside: Sequence[str] = ()
) -> None:
    """Refuse names that are no column, or several to the engine, and columns without numbers."""
    schema = frame.collect_schema()
    if not columns and not beside:
        raise ValueError("name at least one column of probabilities, got none")
    given = (*columns, *beside)
    for name in (*given, *by):
        if name not in schema:
            raise ValueError(f"the frame has no column {name!r}; it has {list(schema)}")
        if engine_of(frame).is_pattern(name):
            raise ValueError(
                f"column {name!r} must have another name: {frame.implementation.name} "
                "takes this one for a pattern"
            )
    for what, names in (("column", given), ("by", by)):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} must name each column once, got {list(names)}")
    if set(given) & set(by):
        raise ValueError(
            f"by must not hold a column of probabilities, scores or labels, got {list(by)}"
        )
    for name in columns:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise ValueError(f"column {name!r} must hold numbers, got {schema[name]}")


def _outputs(frame: Frame, columns: tuple[str, ...], output: str) -> tuple[str, ...]:
    """Return the names of the columns of labels; refuse those that the frame has already."""
    several = len(columns) > 1
    outputs = tuple(f"{column}_{output}" if several else output for column in columns)
    fold = str.lower if engine_of(frame).folds_case else str
    there = {fold(name) for name in frame.collect_schema().names()}
    for name in outputs:
        if fold(name) in there:
            raise ValueError(f"output must be the name of a new column, got {name!r}")
    return outputs


def _numbered(frame: Frame, by: tuple[str, ...], name: str) -> tuple[Frame, Frame, Ints]:
    """Number the segments, or say why the engine cannot."""
    engine, schema = engine_of(frame), frame.collect_schema()
    try:
        return engine.number(frame, by, name)
    except Exception as error:
        if not NOT_GROUPED & {kind.__name__ for kind in type(error).__mro__}:
            raise
        kinds = ", ".join(f"{each} ({schema[each]})" for each in by)
        kind = frame.implementation.value
        raise ValueError(f"by must be of types that {kind} can group, got {kinds}") from error


def plain(key: Key) -> Any:
    """Return the one value of a key, or its values."""
    return key[0] if len(key) == 1 else key


def sorted_by_key(keys: Sequence[Any], values: Sequence[T]) -> list[tuple[Any, T]]:
    """Return pairs of keys and values by rising key; keys of several types stay as they are."""
    pairs = list(zip(keys, values, strict=True))
    try:
        return sorted(pairs, key=lambda pair: pair[0])
    except TypeError:
        return pairs


def _values(column: nw.Series[Any]) -> list[Any]:
    """Return a column as Python values, or else in the first form that tells them apart."""
    forms: list[Callable[[], list[Any]]] = [
        lambda: _as_python(column),
        lambda: column.cast(nw.String).to_list(),
        lambda: column.cast(nw.Int64).to_list(),  # times finer than Python's
    ]
    for form in forms:
        with suppress(Exception):  # every engine has its own way to say that it cannot
            values = form()
            if len(set(values)) == column.n_unique():
                return values
    return [repr(value) for value in column.to_list()]


def _as_python(column: nw.Series[Any]) -> list[Any]:
    """Return time stamps in UTC, where no hour comes twice, and nanoseconds as NumPy's.

    NumPy has no time zones: zoned nanoseconds are text.
    """
    kind = column.dtype
    zone = kind.time_zone if isinstance(kind, nw.Datetime) else None
    if zone:
        column = column.dt.convert_time_zone("UTC")
    if isinstance(kind, nw.Datetime | nw.Duration) and kind.time_unit == "ns":
        code = "datetime64[ns]" if isinstance(kind, nw.Datetime) else "timedelta64[ns]"
        fine = list(column.to_numpy().astype(code))
        return [f"{each}+00:00" for each in fine] if zone else fine
    return column.to_list()
