"""Files of rows: read, checked, and taken apart into features and target.

Every way in which a table cannot be used ends here, in one sentence that names the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors
from sklearn.metrics import roc_auc_score

from argmaxf.files.inputs import BROKEN, Input, find_inputs, first_line, kind_of
from argmaxf.files.text_tables import decimal_commas, numbers_in, with_points
from argmaxf.frames.engines import Polars

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"]
MOSTLY = 0.9  # a text column with so many numbers is a column of numbers with mistakes in it
MOST_CLASSES = 20
ADORNED = r"^[$€£¥]?\s*[+-]?\d{1,3}([.,]?\d{3})*([.,]\d+)?\s*[%$€£¥]?$"  # 1,234.50 or 5 % or $3
IDENTIFIER = r"(?i)(^|[_\s.-])(id|ids|uuid|guid|key|nr|index|idx|row|rownum)$|[a-z]Id$"
NEARLY_UNIQUE = 0.95  # part of the rows with a value of their own, in a column of integers
SEPARATES = 0.995  # AUC of a single column from which it is suspicious
FEWEST_SEPARATED = 10  # rows of a class from which its separation says something
ENOUGH_ROWS = 20_000  # to tell whether a column separates the classes
FEWEST_IDENTIFIED = 20  # rows from which values that never repeat are taken for names of rows


@dataclass(frozen=True)
class LabelledTable:
    """Features and target of a table.

    `X` has the columns that can be learned from, `y` the target: one column of classes, or a 0/1
    table with one column for each target. `notes` say what was left out, and what looks wrong;
    rows of one of `groups` are held out together.
    """

    name: str
    X: pl.DataFrame
    y: pl.Series | pl.DataFrame
    targets: tuple[str, ...]
    notes: tuple[str, ...] = ()
    groups: pl.Series | None = None


def read_table(path: Path) -> pl.DataFrame:
    """Read a CSV, TSV, Parquet or Arrow file, or a folder of them with the same columns."""
    if not path.is_dir():
        kind_of(path)
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    try:
        with ExitStack() as stack:
            frames = [_read(source) for source in find_inputs([str(path)], stack)]
            frame = pl.concat(frames, how="vertical_relaxed")
    except BROKEN as error:
        raise ValueError(f"{path} cannot be read: {first_line(error)}") from None
    if not frame.height:
        raise ValueError(f"{path} has no rows")
    for name in filter(Polars().is_pattern, frame.columns):
        raise ValueError(
            f"{path}: column {name!r} must have another name: Polars takes this one for a pattern"
        )
    return frame.with_columns(
        selectors.float().fill_nan(None),
        selectors.decimal().cast(pl.Float64),
        selectors.by_dtype(pl.Int128, pl.UInt128).cast(pl.String),  # names, not quantities
    )


def _read(source: Input) -> pl.DataFrame:
    if not source.is_text:
        return source.scan().collect()
    # types from all rows: a late text must not be cut off
    how: Any = {"infer_schema_length": None, "null_values": MISSING, "try_parse_dates": True}
    rows = source.scan(typed=True, **how)  # refuses odd headers
    source.refuse_ragged()
    frame = rows.collect()
    commas = decimal_commas(frame, source.separator) if source.separator != "," else []
    return with_points(frame, commas)


def split_table(
    frame: pl.DataFrame,
    targets: Sequence[str],
    name: str,
    *,
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    group: str | None = None,
) -> LabelledTable:
    """Return features and target of a training table, or say why it is none.

    `drop` names columns to leave out, `only` those to learn from, `group` the one whose equal
    values are held out together, which is not learned from.
    """
    frame, y, rows, notes = _labelled(frame, targets, name)
    X, grouped = frame.drop(targets), [] if group is None else [group]
    for column in (*drop, *only, *grouped):
        _check_has(X, column, name)
    if drop and only:
        raise ValueError("give either --drop or --only, got both")
    groups = X[group] if group else None
    if groups is not None and (missing := groups.null_count()):
        raise ValueError(
            f"column {group!r} of {name} must have a value in every row, got {missing} without"
        )
    X = (X.select(only) if only else X.drop(drop)).drop(grouped, strict=False)
    empty = [values.name for values in X if values.null_count() == X.height]
    X = X.drop(empty)
    adorned = _check_cells(X, rows, name)
    features = selectors.numeric() | selectors.boolean() | selectors.string()
    usable = X.select(features | selectors.categorical() | selectors.enum())
    others = [column for column in X.columns if column not in usable.columns]
    same = [values.name for values in usable if values.name not in only and _identifies(values)]
    if len(same) < usable.width:
        usable = usable.drop(same)
    if not usable.width:
        raise ValueError(f"{name} has no column besides the target that can be learned from")
    found = {
        "Columns without values were left out: {}.": empty,
        "Columns that are neither numbers nor categories were left out: {}.": others,
        "Columns that only number or name the rows were left out: {}; --only names the columns to "
        "learn from.": same,
        "Numbers written like these are text: {}; write them plainly to learn from them as "
        "numbers.": adorned,
    }
    said = [text.format(", ".join(names)) for text, names in found.items() if names]
    notes = (*notes, *said, *leaks(usable, y, known=only))
    return LabelledTable(name, usable, y, tuple(targets), notes, groups)


def _identifies(values: pl.Series) -> bool:
    """Whether a column only tells rows apart: texts that never repeat, or the rows' numbers."""
    n = len(values)
    if n < FEWEST_IDENTIFIED or values.null_count() or values.n_unique() < n:
        return False
    if values.dtype.is_integer():
        return int(values.max()) - int(values.min()) == n - 1  # type: ignore[arg-type]
    return values.dtype == pl.String


def leaks(X: pl.DataFrame, y: pl.Series | pl.DataFrame, known: Sequence[str] = ()) -> list[str]:
    """Say which columns may tell what is not known of new rows.

    Those that look like identifiers by their name, as integers that hardly ever repeat, or by
    growing with the row number, but for those `known` to be none; and those that separate the
    classes alone.

    >>> leaks(pl.DataFrame({"subject_id": [3, 5, 4] * 9}), pl.Series("y", [0, 1, 1] * 9))[0][:47]
    'Columns that look like identifiers: subject_id.'
    """
    said = []
    if names := [c.name for c in X if c.name not in known and _looks_like_identifier(c)]:
        said.append(
            f"Columns that look like identifiers: {', '.join(names)}. If they are, leave them out "
            "with --drop, or hold out rows with the same value together with --group."
        )
    targets = [y] if isinstance(y, pl.Series) else list(y)
    found = [(c.name, each.name, _separation(c, each)) for c in X for each in targets]
    return said + [
        f"Column {name!r} alone separates the classes of {target!r} (AUC {auc:.3f}): make sure "
        "that its value is known before the label."
        for name, target, auc in found
        if auc >= SEPARATES
    ]


def _looks_like_identifier(values: pl.Series) -> bool:
    named, different = re.search(IDENTIFIER, values.name) is not None, values.n_unique()
    if named and different > 2:
        return True
    if len(values) < FEWEST_IDENTIFIED or not values.dtype.is_integer():
        return False
    grows = values.is_sorted() or values.is_sorted(descending=True)
    return different >= NEARLY_UNIQUE * len(values) or (grows and different > FEWEST_IDENTIFIED)


def _separation(values: pl.Series, target: pl.Series) -> float:
    """Return the largest AUC of a column for one class against the others, in either direction.

    Categories count by their share of the class; columns with many of them are not looked at.
    """
    rows = pl.DataFrame({"x": values, "y": target}).drop_nulls()
    rows = rows.gather_every(1 + rows.height // ENOUGH_ROWS)
    classes = [c for c, count in rows["y"].value_counts().rows() if count >= FEWEST_SEPARATED]
    numeric = values.dtype.is_numeric()
    if len(classes) < 2 or not (numeric or rows["x"].n_unique() <= MOST_CLASSES):
        return 0.0
    best = 0.0
    for each in classes:
        positive = (pl.col("y") == each).cast(pl.Float64)
        x = pl.col("x") if numeric else positive.mean().over("x")
        auc = roc_auc_score(*rows.select(positive, x.cast(pl.Float64).alias("x")))
        best = max(best, auc, 1.0 - auc)
    return best


def split_like(frame: pl.DataFrame, train: LabelledTable, name: str) -> LabelledTable:
    """Return features and target of a test table with the columns of a training table."""
    if missing := [column for column in train.X.columns if column not in frame.columns]:
        raise ValueError(f"{name} lacks column {missing[0]!r} of {train.name}")
    frame, y, _, notes = _labelled(frame, train.targets, name)
    X = frame.select(train.X.columns)
    for column, kind in train.X.schema.items():
        if wanted := _other_kind(kind, X.schema[column]):
            if len(bad := X[column].drop_nulls()):
                raise ValueError(
                    f"column {column!r} of {name} must hold {wanted}, as in {train.name}; "
                    f"got {bad[0]!r}"
                )
            X = X.with_columns(
                pl.lit(None, pl.Float64 if kind.is_numeric() else kind).alias(column)
            )
    return LabelledTable(name, X, y, train.targets, notes)


def _other_kind(wanted: pl.DataType, found: pl.DataType) -> str:
    """Return what a column should hold and does not, or nothing."""
    if wanted.is_numeric():
        return "" if found.is_numeric() else "numbers"
    if wanted == pl.String:
        return "text" if found.is_numeric() or found == pl.Boolean else ""
    return "true or false" if wanted == pl.Boolean and found == pl.String else ""


def _labelled(
    frame: pl.DataFrame, targets: Sequence[str], name: str
) -> tuple[pl.DataFrame, pl.Series | pl.DataFrame, pl.Series, tuple[str, ...]]:
    """Return the rows that have all targets, these, their row numbers, and a note of the others."""
    for target in targets:
        _check_has(frame, target, name)
        if frame[target].null_count() == frame.height:
            raise ValueError(f"target {target!r} of {name} has no values")
    if len(set(targets)) < len(targets):
        raise ValueError(f"each target must be given once, got {', '.join(targets)}")
    known = frame.select(pl.all_horizontal(pl.col(targets).is_not_null())).to_series()
    missing = frame.height - int(known.sum())
    if missing == frame.height:
        raise ValueError(f"no row of {name} has all of its targets {', '.join(targets)}")
    lack = "has no target and was" if missing == 1 else "have no target and were"
    said = f"{missing:,} of {frame.height:,} rows of {name} {lack} left out."
    y: Any = frame.filter(known)[list(targets)]
    if len(targets) == 1:
        y = _classes(y[targets[0]], name)
    else:
        for values in y:
            if odd := sorted(map(str, set(values) - {0, 1})):
                raise ValueError(
                    f"several targets must hold 0 and 1; {values.name!r} of {name} has {odd[0]!r}"
                )
        y = y.cast(pl.Int64)
    return frame.filter(known), y, known.arg_true() + 1, (said,) * (missing > 0)


def _check_has(frame: pl.DataFrame, column: str, name: str) -> None:
    """Refuse a column that is not there, and name one that may be meant."""
    if column not in frame.columns:
        shown = ", ".join(map(repr, frame.columns[:10])) + " and others" * (frame.width > 10)
        close = get_close_matches(column, frame.columns, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"its columns are {shown}"
        raise ValueError(f"{name} has no column {column!r}; {hint}")


def _check_cells(X: pl.DataFrame, rows: pl.Series, name: str) -> list[str]:
    """Refuse cells that cannot be learned from; return the texts that are numbers with signs.

    `rows` are the numbers of the rows in the file. A text of digits alone is a name.
    """
    adorned = []
    for values in X:
        texts, column = values.drop_nulls(), f"column {values.name!r} of {name}"
        if values.dtype.is_float() and (bad := values.is_infinite().fill_null(False)).any():
            got = f"{values.filter(bad)[0]} in row {rows.filter(bad)[0]}"
            raise ValueError(f"{column} must hold finite numbers, got {got}")
        if values.dtype != pl.String:
            continue
        signs = texts.str.contains(ADORNED).all() and texts.str.contains(r"[,%$€£¥]").any()
        if signs:
            adorned.append(f"{values.name} ({texts[0]})")
        for comma in (False,) if signs else (True, False):
            number = numbers_in(values, comma=comma)
            bad = values.is_not_null() & number.is_null()
            if bad.any() and number.count() >= MOSTLY * len(texts):
                raise ValueError(
                    f"{column} holds numbers, but row {rows.filter(bad)[0]} has "
                    f"{values.filter(bad)[0]!r}: correct it or leave it empty"
                )
    return adorned


def _classes(values: pl.Series, name: str) -> pl.Series:
    if values.dtype.is_nested() or values.dtype == pl.Binary:
        kind = values.dtype
        raise ValueError(f"target {values.name!r} of {name} must hold classes, got {kind}")
    classes = values.n_unique()
    if classes > MOST_CLASSES:
        raise ValueError(
            f"target {values.name!r} of {name} has {classes} different values; "
            f"it must be a class, with at most {MOST_CLASSES}"
        )
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return values
    return values.cast(pl.String)


def with_positive(
    train: LabelledTable, test: LabelledTable | None, positive: str | None
) -> tuple[LabelledTable, LabelledTable | None, Any]:
    """Return both tables and the class that F counts; one of three or more is against the rest."""
    y: Any = train.y
    classes = [] if isinstance(y, pl.DataFrame) else y.unique().sort().to_list()
    if positive is None:
        words = len(classes) == 2 and y.dtype == pl.String
        if words and (y == classes[1]).mean() > 0.5:
            note = (
                f"F counts {classes[1]!r}, the last class in order, which most rows have; "
                f"--positive {classes[0]} counts the other."
            )
            train = replace(train, notes=(note, *train.notes))
        return train, test, None
    named = [each for each in classes if str(each) == positive]
    if not named:
        rule = f"one of the classes {', '.join(map(str, classes))}" if classes else "left out"
        raise ValueError(f"--positive must be {rule}, got {positive!r}")
    if len(classes) == 2:
        return train, test, named[0]

    def against_rest(table: LabelledTable) -> LabelledTable:
        names = {True: positive, False: f"not {positive}"}
        y: Any = table.y
        return replace(table, y=(y == named[0]).replace_strict(names, return_dtype=pl.String))

    note = f"F counts {positive} against all other classes."
    train = replace(against_rest(train), notes=(note, *train.notes))
    return train, test and against_rest(test), positive
