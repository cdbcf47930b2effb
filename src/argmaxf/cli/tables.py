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

from argmaxf.files.column import refuse_ragged
from argmaxf.files.inputs import BROKEN, Input, find_inputs, first_line, kind_of, names_to_give
from argmaxf.files.text_tables import as_number, decimal_commas, with_points
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
    names: list[str] = []
    if source.path.stat().st_size:  # of an empty file Polars says that it is
        names = source.check_header()
        refuse_ragged(source)
    frame = pl.read_csv(
        source.path,
        glob=False,
        separator=source.separator,
        infer_schema_length=None,  # all rows: a late text must not be cut off
        null_values=MISSING,
        try_parse_dates=True,
        new_columns=names_to_give(names),
    )
    if source.separator != ",":
        frame = with_points(frame, decimal_commas(frame, source.separator))
    return source.with_partition(frame.lazy()).collect()


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
    known, notes = _with_targets(frame, targets, name)
    frame, rows = frame.filter(known), known.arg_true() + 1
    X, groups = frame.drop(targets), None
    if group is not None:
        X, groups = X.drop(group, strict=False), _groups(X, group, name)
    X = _chosen(X, drop, only, name)
    empty = [column for column in X.columns if X[column].null_count() == X.height]
    X = X.drop(empty)
    _check_columns(X, rows, name)
    features = selectors.numeric() | selectors.boolean() | selectors.string()
    usable = X.select(features | selectors.categorical() | selectors.enum())
    others = [column for column in X.columns if column not in usable.columns]
    same = [c for c in usable.columns if c not in only and _identifies(usable[c])]
    if len(same) < usable.width:
        usable = usable.drop(same)
    if not usable.width:
        raise ValueError(f"{name} has no column besides the target that can be learned from")
    y = _target(frame, targets, name)
    left_out = {
        "Columns without values were left out: {}.": empty,
        "Columns that are neither numbers nor categories were left out: {}.": others,
        "Columns that only number or name the rows were left out: {}; --only names the columns to "
        "learn from.": same,
    }
    said = [text.format(", ".join(names)) for text, names in left_out.items() if names]
    notes = (*notes, *said, *_as_text(X), *leaks(usable, y, known=only))
    return LabelledTable(name, usable, y, tuple(targets), notes, groups)


def _groups(X: pl.DataFrame, group: str, name: str) -> pl.Series:
    """Return the column of groups; rows without one would not be held out together."""
    if group not in X.columns:
        raise ValueError(f"{name} has no column {group!r}{_hint(group, X.columns)}")
    if missing := X[group].null_count():
        raise ValueError(
            f"column {group!r} of {name} must have a value in every row, got {missing} without"
        )
    return X[group]


def _chosen(X: pl.DataFrame, drop: Sequence[str], only: Sequence[str], name: str) -> pl.DataFrame:
    """Return the columns to learn from."""
    if drop and only:
        raise ValueError("give either --drop or --only, got both")
    for column in (*drop, *only):
        if column not in X.columns:
            raise ValueError(f"{name} has no column {column!r}{_hint(column, X.columns)}")
    return X.select(only) if only else X.drop(drop)


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
            "with --drop, or hold out the rows of one together with --group."
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
    n = len(values)
    named = re.search(IDENTIFIER, values.name) is not None
    if n < FEWEST_IDENTIFIED or not values.dtype.is_integer():
        return named and values.n_unique() > 2
    different = values.n_unique()
    grows = different > FEWEST_IDENTIFIED and (
        values.is_sorted() or values.is_sorted(descending=True)
    )
    return (named and different > 2) or different >= NEARLY_UNIQUE * n or grows


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
        positive = pl.col("y") == each
        x = pl.col("x") if numeric else positive.mean().over("x")
        ranks = rows.select(x.rank("average").alias("rank"), positive.alias("is"))
        k, total = float(ranks["is"].sum()), float(ranks.filter("is")["rank"].sum())
        auc = (total - k * (k + 1) / 2) / (k * (rows.height - k))
        best = max(best, auc, 1.0 - auc)
    return best


def _as_text(X: pl.DataFrame) -> tuple[str, ...]:
    """Say which columns hold numbers that are written in a way that makes them text."""
    texts = X.select(selectors.string())
    adorned = [c.name for c in texts if _is_adorned(c.drop_nulls())]
    if not adorned:
        return ()
    columns = ", ".join(f"{name} ({texts[name].drop_nulls()[0]})" for name in adorned)
    return (
        f"Numbers written like these are text: {columns}; write them plainly to learn from them as "
        "numbers.",
    )


def _is_adorned(texts: pl.Series) -> bool:
    """Whether all are numbers, and some of them with signs: a text of digits alone is a name."""
    return bool(texts.str.contains(ADORNED).all() and texts.str.contains(r"[,%$€£¥]").any())


def split_like(frame: pl.DataFrame, train: LabelledTable, name: str) -> LabelledTable:
    """Return features and target of a test table with the columns of a training table."""
    missing = [c for c in train.X.columns if c not in frame.columns]
    if missing:
        raise ValueError(f"{name} lacks column {missing[0]!r} of {train.name}")
    known, notes = _with_targets(frame, train.targets, name)
    frame = frame.filter(known)
    X = frame.select(train.X.columns)
    for column, kind in train.X.schema.items():
        if wanted := _other_kind(kind, X.schema[column]):
            bad = X[column].drop_nulls()
            if len(bad):
                raise ValueError(
                    f"column {column!r} of {name} must hold {wanted}, as in {train.name}; "
                    f"got {bad[0]!r}"
                )
            empty = pl.lit(None, pl.Float64 if kind.is_numeric() else kind)
            X = X.with_columns(empty.alias(column))
    y = _target(frame, train.targets, name)
    return LabelledTable(name, X, y, train.targets, notes)


def _other_kind(wanted: pl.DataType, found: pl.DataType) -> str:
    """Return what a column should hold and does not, or nothing."""
    if wanted.is_numeric():
        return "" if found.is_numeric() else "numbers"
    if wanted == pl.String:
        return "text" if found.is_numeric() or found == pl.Boolean else ""
    return "true or false" if wanted == pl.Boolean and found == pl.String else ""


def _with_targets(
    frame: pl.DataFrame, targets: Sequence[str], name: str
) -> tuple[pl.Series, tuple[str, ...]]:
    """Return which rows have all targets, and a note of how many do not."""
    for target in targets:
        if target not in frame.columns:
            raise ValueError(f"{name} has no column {target!r}{_hint(target, frame.columns)}")
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
    return known, (said,) * (missing > 0)


def _hint(wrong: str, columns: Sequence[str]) -> str:
    close = get_close_matches(wrong, columns, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, columns[:10]))
    return f"; its columns are {shown}{' and others' if len(columns) > 10 else ''}"


def _check_columns(X: pl.DataFrame, rows: pl.Series, name: str) -> None:
    """Refuse cells that cannot be learned from; `rows` are the numbers of the rows in the file."""
    for column in X.columns:
        values = X[column]
        if values.dtype == pl.String:
            _check_text(values, rows, name)
        if values.dtype.is_float() and (bad := values.is_infinite().fill_null(False)).any():
            raise ValueError(
                f"column {column!r} of {name} must hold finite numbers, got "
                f"{values.filter(bad)[0]} in row {rows.filter(bad)[0]}"
            )


def _check_text(values: pl.Series, rows: pl.Series, name: str) -> None:
    """Refuse a column of numbers in which some cell is no number."""
    for comma in (True, False):
        is_number = pl.select(as_number(pl.lit(values), comma=comma).is_not_null()).to_series()
        bad = values.is_not_null() & ~is_number
        few = bad.any() and int(is_number.sum()) >= MOSTLY * values.count()
        if few and not (comma and _is_adorned(values.drop_nulls())):
            raise ValueError(
                f"column {values.name!r} of {name} holds numbers, but row {rows.filter(bad)[0]} "
                f"has {values.filter(bad)[0]!r}: correct it or leave it empty"
            )


def _target(frame: pl.DataFrame, targets: Sequence[str], name: str) -> pl.Series | pl.DataFrame:
    if len(targets) == 1:
        return _classes(frame[targets[0]], name)
    for target in targets:
        values = set(frame[target].unique().to_list())
        if not values <= {0, 1}:
            odd = sorted(map(str, values - {0, 1}))[0]
            raise ValueError(f"several targets must hold 0 and 1; {target!r} of {name} has {odd!r}")
    return frame.select(pl.col(list(targets)).cast(pl.Int64))


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
    y = train.y
    classes = [] if isinstance(y, pl.DataFrame) else y.unique().sort().to_list()
    if positive is None:
        return replace(train, notes=(*_class_taken(train, classes), *train.notes)), test, None
    named = [each for each in classes if str(each) == positive]
    if not named:
        rule = f"one of the classes {', '.join(map(str, classes))}" if classes else "left out"
        raise ValueError(f"--positive must be {rule}, got {positive!r}")
    if len(classes) == 2:
        return train, test, named[0]
    train = replace(
        _against_rest(train, named[0]),
        notes=(f"F counts {positive} against all other classes.", *train.notes),
    )
    return train, test and _against_rest(test, named[0]), positive


def _against_rest(table: LabelledTable, positive: Any) -> LabelledTable:
    assert isinstance(table.y, pl.Series)
    names = {True: str(positive), False: f"not {positive}"}
    y = (table.y == positive).replace_strict(names, return_dtype=pl.String)
    return replace(table, y=y.alias(table.y.name))


def _class_taken(table: LabelledTable, classes: Sequence[Any]) -> tuple[str, ...]:
    """Say which class F counts, where nobody said so and it is a word that most rows have."""
    y: Any = table.y
    if len(classes) != 2 or y.dtype != pl.String or (y == classes[1]).mean() <= 0.5:
        return ()
    return (
        f"F counts {classes[1]!r}, the last class in order, which most rows have; --positive "
        f"{classes[0]} counts the other.",
    )
