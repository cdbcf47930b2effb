"""Every model fitted once on each half of each set, its scores kept in a file.

All methods of the study work on these scores (`remembered.py`), so that they see the same models
and folds, and a new method or rule costs no fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import SoftFClassifier
from argmaxf.estimators.labels import assign_folds
from benchmarks.choosing.sets import RealSet

SPLITS = 3
FOLDS = 5
Scores = dict[str, np.ndarray]


def models(seed: int) -> dict[str, Any]:
    """Return the four models of the study, as a user would write them down."""
    from lightgbm import LGBMClassifier

    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "naive Bayes": GaussianNB(),
        "LightGBM": LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed),
        "random forest": RandomForestClassifier(100, random_state=seed),
    }


def fit_scores(of: RealSet, seed: int) -> Scores:
    """Fit all models on one half; return labels, folds and scores of held-out and test rows."""
    halves = train_test_split(of.X, of.y, test_size=0.5, stratify=of.y, random_state=seed)
    X, X_test, y, y_test = halves
    fold = assign_folds(y[:, None] == 1, FOLDS, seed).astype(np.int8)
    kept: Scores = {"y": y == 1, "y_test": y_test == 1, "fold": fold}
    for name, model in models(seed).items():
        kept |= _scores(name, model, _proba, X, X_test, y, fold)
        if name == "naive Bayes":
            kept |= _scores(name + " log-odds", model, _log_odds, X, X_test, y, fold)
    soft = make_pipeline(StandardScaler(), SoftFClassifier())
    return kept | _scores("soft F", soft, _margin, X, X_test, y, fold)


def _scores(name: str, model: Any, read: Callable[..., Any], X: Any, X_test: Any, y: Any,
            fold: Any) -> Scores:  # fmt: skip
    """Return the scores of a model and of those of each fold, on held-out and on test rows."""
    held_out, from_folds = np.empty(len(y)), []
    for number in range(FOLDS):
        part = clone(model).fit(X[fold != number], y[fold != number])
        held_out[fold == number] = read(part, X[fold == number])
        from_folds.append(read(part, X_test))
    whole = clone(model).fit(X, y)
    return {
        f"{name}/held out": held_out,
        f"{name}/train": read(whole, X),
        f"{name}/test": read(whole, X_test),
        f"{name}/test by folds": np.array(from_folds),
    }


def _proba(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X)[:, 1]


def _log_odds(model: Any, X: Any) -> np.ndarray:
    return np.diff(model.predict_joint_log_proba(X), axis=1)[:, 0]


def _margin(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X)


def collect(
    sets: list[RealSet], folder: Path, say: Callable[[str], None], splits: int = SPLITS
) -> None:
    """Fit what is not in `folder` yet, one file for each set and split, each written whole."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(of, seed) for seed in range(splits) for of in sets]
    for done, (of, seed) in enumerate(wanted, start=1):
        path = folder / f"{of.name}-{seed}.npz"
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = fit_scores(of, seed)
        np.savez_compressed(path.with_suffix(".part.npz"), **scores)
        path.with_suffix(".part.npz").rename(path)
        say(f"{done}/{len(wanted)} {of.name}, split {seed + 1}")


def kept(sets: list[RealSet], folder: Path) -> Iterator[tuple[RealSet, int, Scores]]:
    """Give the scores that are in `folder`."""
    for of in sets:
        for seed in range(SPLITS):
            path = folder / f"{of.name}-{seed}.npz"
            if path.exists():
                with np.load(path) as scores:
                    yield of, seed, dict(scores)
