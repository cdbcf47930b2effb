"""Folds for out-of-fold scores: every label as evenly spread over them as it can be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.utils import check_consistent_length, check_random_state

USUAL = 5  # folds where none are asked for, as everywhere in scikit-learn


def folds(
    cv: Any,
    columns: NDArray[np.bool_],
    target: NDArray[Any],
    random_state: Any,
    groups: Any = None,
) -> list[Any]:
    """Return the splits that `cv` asks for.

    A number asks for that many stratified folds, None for five, a share for one set of that part of
    the rows (see `held_out_part`); a splitter may leave rows out (`TimeSeriesSplit`), and a list of
    splits may keep groups of rows together. Rows of one of `groups` are never apart.
    """
    cv = USUAL if cv is None else cv
    if groups is not None:
        return _grouped(cv, columns, target, random_state, groups)
    if is_share(cv):
        return [held_out_part(cv, len(columns), random_state)]
    if isinstance(cv, int | np.integer):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}")
        fold = deal(columns, min(int(cv), len(columns)), random_state)
        return list(PredefinedSplit(fold).split())
    return list(check_cv(cv, target).split(np.zeros(len(target)), target))


def _grouped(
    cv: Any, columns: NDArray[np.bool_], target: NDArray[Any], random_state: Any, groups: Any
) -> list[Any]:
    """Return splits that keep the rows of each group together."""
    check_consistent_length(target, groups)
    classes = columns @ (1 << np.arange(columns.shape[1])) if columns.shape[1] < 8 else target
    if is_share(cv):
        cv = GroupShuffleSplit(1, test_size=cv, random_state=random_state)
    elif isinstance(cv, int | np.integer) and np.ndim(classes) == 1:
        cv = StratifiedGroupKFold(cv, shuffle=True, random_state=random_state)
    elif isinstance(cv, int | np.integer):
        cv = GroupKFold(cv)
    return list(check_cv(cv, target).split(np.zeros(len(target)), classes, groups))


def held_out_once(splits: list[Any], n: int) -> NDArray[np.int64]:
    """Return the rows that are held out, or say which is held out twice."""
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if (times > 1).any():
        raise ValueError(
            f"cv must hold out every row at most once, row {int(np.argmax(times > 1))} is held "
            f"out {times.max()} times"
        )
    return np.flatnonzero(times)


def lonely(columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which labels have one positive or one other row at most: no fold can learn and show them."""
    return np.asarray(np.minimum(columns.sum(axis=0), (~columns).sum(axis=0)) < 2)


def is_share(cv: Any) -> bool:
    """Whether `cv` is the share of rows to hold out, once, from the model that predicts.

    That model is trained on the other rows alone, so that what is learned on the rows held out, a
    threshold or a calibration, is about that very model.
    """
    return isinstance(cv, float | np.floating)


def held_out_part(part: float, n: int, random_state: Any) -> tuple[Any, Any]:
    """Return the rows to train on and a part to hold out, drawn at random without regard to y.

    A promise is about independent rows; folds that are dealt out by label are not.
    """
    if not 0.0 < part < 1.0:
        raise ValueError(f"cv as a part of the rows must lie strictly between 0 and 1, got {part}")
    splitter = ShuffleSplit(n_splits=1, test_size=part, random_state=random_state)
    split: tuple[Any, Any] = next(splitter.split(np.zeros(n)))
    return split


def deal(columns: NDArray[np.bool_], n_folds: int, random_state: Any) -> NDArray[np.int64]:
    """Return a fold for each row, the rarest label dealt out first (Sechidis et al. 2011).

    A row goes to the fold that has fewest rows of the label in hand, and of those to the smallest.
    """
    rng = check_random_state(random_state)
    fold = np.full(len(columns), -1)
    order = rng.permutation(len(columns))
    for column in columns[:, np.argsort(columns.sum(axis=0), kind="stable")].T:
        _spread(fold, order[column[order] & (fold[order] < 0)], column, n_folds)
    _spread(fold, order[fold[order] < 0], np.ones(len(columns), dtype=bool), n_folds)
    return fold


def _spread(fold: Any, rows: Any, column: NDArray[np.bool_], n_folds: int) -> None:
    """Give each of `rows` to a fold, keeping the folds' share of `column` level."""
    have = np.bincount(fold[column & (fold >= 0)], minlength=n_folds)
    size = np.bincount(fold[fold >= 0], minlength=n_folds)
    places = have[:, None] + np.arange(len(rows))  # how many each fold has before each place
    first = np.lexsort((np.repeat(size, len(rows)), places.ravel()))[: len(rows)]
    fold[rows] = first // len(rows) if len(rows) else 0
