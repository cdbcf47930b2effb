"""Folds for held-out scores: each label spread as evenly over them as possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    GroupShuffleSplit,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.utils import check_consistent_length, check_random_state

from argmaxf._base.arrays import Bools, Ints
from argmaxf.estimators.labels import Labels

Split = tuple[Ints, Ints]  # the rows to train on, and those held out


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
        yield from _stratified(self, Labels.of(y).columns(y))

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
    if isinstance(cv, int | np.integer) and groups is None:
        cv = MultilabelStratifiedKFold(int(cv))
    if is_share(cv) and not 0.0 < cv < 1.0:
        raise ValueError(f"cv as a part of the rows must lie strictly between 0 and 1, got {cv}")
    if groups is not None:
        splits = _grouped(cv, columns, target, groups)
    elif isinstance(cv, MultilabelStratifiedKFold):
        splits = _stratified(cv, columns)
    else:
        # The part is drawn without regard to y: a guarantee is about independent rows.
        cv = ShuffleSplit(1, test_size=cv, random_state=0) if is_share(cv) else cv
        splits = list(check_cv(cv, target).split(np.zeros(len(target)), target))
    held_out_rows(splits, len(target))
    return splits


def _stratified(cv: MultilabelStratifiedKFold, columns: Bools) -> list[Split]:
    if cv.n_splits < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv.n_splits}")
    fold = assign_folds(columns, min(int(cv.n_splits), len(columns)), cv.random_state)
    return list(PredefinedSplit(fold).split())


def _grouped(cv: Any, columns: Bools, target: NDArray[Any], groups: Any) -> list[Split]:
    """Return splits that keep the rows of each group together."""
    check_consistent_length(target, groups)
    classes = columns @ (1 << np.arange(columns.shape[1])) if columns.shape[1] < 8 else target
    seed, n_splits = seed_of(cv), cv
    if isinstance(cv, MultilabelStratifiedKFold):
        n_splits = cv.n_splits
    if is_share(cv):
        cv = GroupShuffleSplit(1, test_size=cv, random_state=seed)
    elif isinstance(n_splits, int | np.integer) and np.ndim(classes) == 1:
        cv = StratifiedGroupKFold(n_splits, shuffle=True, random_state=seed)
    elif isinstance(n_splits, int | np.integer):
        cv = GroupKFold(n_splits)
    return list(check_cv(cv, target).split(np.zeros(len(target)), classes, groups))


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
