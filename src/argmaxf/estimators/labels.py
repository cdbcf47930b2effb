"""Targets as 0/1 columns: one per label, and back again; folds that spread each label evenly.

A binary target is one column, a multilabel indicator one per label, a multiclass target one per
class (one-vs-rest). Everything else in this package works on columns only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    GroupShuffleSplit,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.lazy import cached_property
from argmaxf._base.validation import refuse_missing

Split = tuple[Ints, Ints]  # the rows to train on, and those held out


@dataclass(frozen=True)
class Labels:
    """The labels of one training target.

    Attributes
    ----------
    kind : "binary", "multiclass" or "multilabel-indicator"
    classes : the values to predict, sorted; the column numbers of an indicator
    positive : the class that F counts, for binary targets only
    is_sparse : whether the indicator is a sparse matrix; predictions are then sparse too
    """

    kind: str
    classes: NDArray[Any]
    positive: Any = None
    is_sparse: bool = False

    @classmethod
    def of(cls, y: Any, pos_label: Any = None) -> Labels:
        """Read the kind of target and its classes from `y`."""
        refuse_missing("y", y)
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            return cls(kind, np.arange(np.shape(y)[1]), is_sparse=sparse.issparse(y))
        if kind not in ("binary", "multiclass"):
            raise ValueError(
                "Unknown label type: y must be binary, multiclass or a multilabel indicator, "
                f"got a {kind} target"
            )
        classes = np.unique(column_or_1d(y, warn=True))
        positive = _positive_class(classes, pos_label) if kind == "binary" else None
        return cls(kind, classes, positive)

    @cached_property
    def is_binary(self) -> bool:
        """Whether there is one column."""
        return self.kind == "binary"

    @cached_property
    def is_multilabel(self) -> bool:
        """Whether the labels of a row do not exclude each other."""
        return self.kind == "multilabel-indicator"

    @cached_property
    def names(self) -> NDArray[Any]:
        """The value that each column stands for."""
        return np.asarray([self.positive]) if self.is_binary else self.classes

    def titles(self, y: Any) -> tuple[str, ...]:
        """Return the names of the labels: classes, columns of a frame, or the one target."""
        if not self.is_binary:
            named = getattr(y, "columns", self.classes) if self.is_multilabel else self.classes
            return tuple(map(str, named))
        name = getattr(y, "name", None)
        return (str(self.positive) if name is None else str(name),)

    def target(self, y: Any) -> NDArray[Any]:
        """Return `y` as the array that a scikit-learn classifier is trained on."""
        if self.is_multilabel:
            return np.asarray(y.toarray() if sparse.issparse(y) else y).astype(np.int64)
        return np.asarray(column_or_1d(y))

    def columns(self, y: Any) -> Bools:
        """Return `y` as booleans, one column per label: (n, n_columns)."""
        target = self.target(y)
        if self.is_multilabel:
            return np.asarray(target > 0)
        return np.asarray(target[:, None] == self.names)

    def decode(self, margin: Floats) -> Any:
        """Return the predicted labels; an entry is selected where its margin is not negative.

        A multiclass row gets the class of the largest margin, whatever its sign.
        """
        if self.kind == "multiclass":
            return self.classes[np.argmax(margin, axis=1)]
        selected = margin >= 0
        if self.is_binary:
            others = self.classes[self.classes != self.positive]
            negative = others[0] if len(others) else self.positive
            return np.where(selected[:, 0], self.positive, negative)
        return sparse.csr_matrix(selected.astype(np.int64)) if self.is_sparse else selected * 1

    @property
    def sign(self) -> int:
        """The direction of a binary `decision_function`: towards `classes[-1]`."""
        return 1 if self.positive == self.classes[-1] else -1

    def orient(self, margin: Floats) -> Floats:
        """Return margins as `decision_function` gives them: binary ones 1-D."""
        return self.sign * margin[:, 0] if self.is_binary else margin

    def margins(self, oriented: Any) -> Floats:
        """Return the output of `decision_function` as (n, n_columns) margins."""
        scores = np.asarray(oriented, dtype=np.float64)
        return self.sign * scores[:, None] if self.is_binary else scores

    def both(self, proba: Floats) -> Floats:
        """Return probabilities as `predict_proba` gives them: binary ones for each class."""
        if not self.is_binary:
            return proba
        both = np.column_stack([1 - proba, proba])[:, :: self.sign]
        return both[:, -len(self.classes) :]

    def one(self, both: Any) -> Floats:
        """Return the output of `predict_proba` as (n, n_columns) probabilities."""
        if not self.is_binary:
            return np.asarray(both)
        return np.asarray(np.sum(both, axis=1, where=self.classes == self.positive, keepdims=True))

    def warn_about_constants(self, columns: Bools) -> None:
        """Name the labels that have one value only in training; point to the caller of `fit`."""
        if len(self.classes) == 1 and not self.is_multilabel:
            only = str(self.classes[0])
            warnings.warn(f"y has one class only, {only}: it is always predicted", stacklevel=4)
            return
        for rule, found in [
            ("no positives in training: never predicted", ~columns.any(axis=0)),
            ("nothing but positives in training: always predicted", columns.all(axis=0)),
        ]:
            if found.any():
                names = ", ".join(map(str, self.names[found]))
                warnings.warn(f"labels with {rule}: {names}", stacklevel=4)


def counted(columns: Bools, weight: Floats | None) -> tuple[int, list[int]]:
    """Return how many rows count, and the positives of each label in them."""
    seen = columns if weight is None else columns[weight > 0]
    return len(seen), seen.sum(axis=0).tolist()


@contextmanager
def constants_silenced() -> Iterator[None]:
    """Suppress warnings about constant labels, where the caller has already given them."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="labels with|y has one class only|the tuned threshold"
        )
        yield


def _positive_class(classes: NDArray[Any], pos_label: Any) -> Any:
    """Return the class F counts: `pos_label`, or else the last in sorted order.

    A target of zeros, or of -1, has no positives: the class F counts is 1.
    """
    if pos_label is not None and pos_label not in classes and len(classes) == 2:
        raise ValueError(f"pos_label must be one of {classes.tolist()}, got {pos_label!r}")
    if pos_label is not None:
        return pos_label
    lacks_positives = len(classes) == 1 and classes.dtype.kind in "biuf" and classes[0] in (0, -1)
    return classes.dtype.type(1) if lacks_positives else classes[-1]


class MultilabelStratifiedKFold(BaseCrossValidator):
    """Stratified folds for binary, multiclass and multilabel targets.

    ``cv=5`` of a classifier stands for ``cv=MultilabelStratifiedKFold(5)``; pass the object itself
    to change the seed.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int or RandomState, default=0
        Seed of the order in which rows are assigned to folds.

    Examples
    --------
    >>> folds = MultilabelStratifiedKFold(3, random_state=1)
    >>> y = [0, 0, 0, 0, 0, 0, 1, 1, 1]
    >>> [len(test) for train, test in folds.split(y, y)]
    [3, 3, 3]
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Generate the rows to train on and those held out, for each fold; `groups` is ignored."""
        if self.n_splits < 2:
            raise ValueError(f"cv must be at least 2 folds, got {self.n_splits}")
        columns = Labels.of(y).columns(y)
        n_folds = min(int(self.n_splits), len(columns))
        yield from PredefinedSplit(assign_folds(columns, n_folds, self.random_state)).split()

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are ignored."""
        return self.n_splits


def make_splits(cv: Any, columns: Bools, target: NDArray[Any], groups: Any = None) -> list[Split]:
    """Return the splits that `cv` asks for; no row may be held out twice.

    A number is that many stratified folds, None is five, a share holds out that part of the rows
    once. A splitter may never hold out some rows (`TimeSeriesSplit`). Rows of one of `groups` are
    held out together.
    """
    cv = MultilabelStratifiedKFold() if cv is None else cv
    number = cv.n_splits if isinstance(cv, MultilabelStratifiedKFold) else cv
    y, seed = target, seed_of(cv)
    if groups is not None:
        check_consistent_length(target, groups)
        y = columns @ (1 << np.arange(columns.shape[1])) if columns.shape[1] < 8 else target
    if is_share(cv):
        if not 0.0 < cv < 1.0:
            raise ValueError(
                f"cv as a part of the rows must lie strictly between 0 and 1, got {cv}"
            )
        # The part is drawn without regard to y: a guarantee is about independent rows.
        splitter = ShuffleSplit if groups is None else GroupShuffleSplit
        cv = splitter(1, test_size=cv, random_state=seed)
    elif isinstance(number, int | np.integer):
        if groups is None:
            y = columns if columns.shape[1] > 1 else columns[:, 0]
            cv = MultilabelStratifiedKFold(int(number), random_state=getattr(cv, "random_state", 0))
        elif np.ndim(y) == 1:
            cv = StratifiedGroupKFold(number, shuffle=True, random_state=seed)
        else:
            cv = GroupKFold(number)
    splits = list(check_cv(cv, target).split(np.zeros(len(target)), y, groups))
    held_out_rows(splits, len(target))
    return splits


def is_share(cv: Any) -> bool:
    """Whether `cv` is the part of the rows to hold out."""
    return isinstance(cv, float | np.floating)


def seed_of(cv: Any) -> Any:
    """Return the seed of a splitter, for other random draws of the same fit; 0 without one."""
    return getattr(cv, "random_state", None) or 0


def held_out_rows(splits: list[Split], n: int) -> Ints:
    """Return the rows that are held out; refuse splits that hold out a row twice."""
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if (times > 1).any():
        raise ValueError(
            f"cv must hold out every row at most once, row {int(np.argmax(times > 1))} is held "
            f"out {times.max()} times"
        )
    return np.flatnonzero(times)


def too_rare(columns: Bools) -> Bools:
    """Which labels have at most one positive or one negative row, too few for folds."""
    return np.asarray(np.minimum(columns.sum(axis=0), (~columns).sum(axis=0)) < 2)


def assign_folds(columns: Bools, n_folds: int, random_state: Any) -> Ints:
    """Return a fold for each row, the rarest label assigned first (Sechidis et al. 2011).

    A row goes to the fold with the fewest rows of that label, and among those to the smallest.
    """
    rng = check_random_state(random_state)
    fold = np.full(len(columns), -1)
    order = rng.permutation(len(columns))
    for column in columns[:, np.argsort(columns.sum(axis=0), kind="stable")].T:
        _level(fold, order[column[order] & (fold[order] < 0)], column, n_folds)
    _level(fold, order[fold[order] < 0], np.ones(len(columns), dtype=bool), n_folds)
    return fold


def _level(fold: Ints, rows: Ints, column: Bools, n_folds: int) -> None:
    """Assign each of `rows` to a fold so that the folds' shares of `column` stay level."""
    have = np.bincount(fold[column & (fold >= 0)], minlength=n_folds)
    size = np.bincount(fold[fold >= 0], minlength=n_folds)
    places = have[:, None] + np.arange(len(rows))  # how many each fold has before each place
    first = np.lexsort((np.repeat(size, len(rows)), places.ravel()))[: len(rows)]
    fold[rows] = first // len(rows) if len(rows) else 0
