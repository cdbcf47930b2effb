"""Every method of the study, worked out from the scores that were kept.

A method gives two sets of labels: of the test rows, and of the training rows while they were held
out. The second is all that a rule may look at when it chooses. That these functions do what the
estimators do is tested (tests/test_study.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.estimators.calibration import Sigmoid, average_curves
from benchmarks.choosing.scores import FOLDS, Scores

MODELS = ("logistic regression", "naive Bayes", "LightGBM", "random forest")
THEIRS = "TunedThresholdClassifierCV"
METHODS = (
    "threshold 0.5",
    "tuned threshold",
    "expected F, uncalibrated",
    "expected F, sigmoid",
    "expected F",
    "trained for F",
    "majority vote",
    "blended F",
)
VOTERS = ("tuned threshold", "expected F", "trained for F")
ROWWISE = "expected F, one row at a time"
SMOOTHED = "tuned threshold, smoothed"
Labels = tuple[np.ndarray, np.ndarray]  # of the rows held out, and of the test rows


def all_methods(kept: Scores, model: str) -> dict[str, Labels]:
    """Return the labels of each method with one model."""
    y, fold, best = kept["y"], kept["fold"], ranking(kept, model)
    proba, linear = of_model(kept, model), of_model(kept, "soft F")
    labels = {
        "threshold 0.5": (proba["held out"] > 0.5, proba["test"] > 0.5),
        "tuned threshold": _tuned(y, fold, best),
        "expected F, uncalibrated": _expected(fold, proba["held out"], proba["test"]),
        "trained for F": tuple(linear[part] >= 0 for part in ("held out", "test")),
        THEIRS: (np.zeros(len(y), bool), _theirs(y, fold, proba)),
        SMOOTHED: _tuned(y, fold, best, smoothing=50),
    }
    forms = {"expected F, sigmoid": (Sigmoid, proba), "expected F": (isotonic, best)}
    trained = calibrate(isotonic, y, fold, linear)
    for name, (form, scores) in forms.items():
        held_out, test = calibrate(form, y, fold, scores)
        labels[name] = _expected(fold, held_out, test)
        if name == "expected F":
            labels[ROWWISE] = _frozen(held_out, test)
            labels["blended F"] = _expected(fold, *_mean((held_out, test), trained))
    labels["majority vote"] = vote([labels[name] for name in VOTERS])
    return labels


def ranking(kept: Scores, model: str) -> Scores:
    """Return the scores that order rows best: log-odds where the probabilities saturate."""
    return of_model(kept, f"{model} log-odds" if f"{model} log-odds/test" in kept else model)


def of_model(kept: Scores, model: str) -> Scores:
    """Return the scores of one model by what they are of."""
    return {part: kept[f"{model}/{part}"] for part in ("held out", "test", "test by folds")}


def _tuned(y: Any, fold: Any, scores: Scores, smoothing: float = 0.0) -> Labels:
    def best(rows: Any) -> float:
        scored = scores["held out"][rows]
        return maximize_empirical_f(y[rows], scored, smoothing=smoothing).threshold

    held_out = np.zeros(len(y), dtype=bool)
    for k in range(FOLDS):
        rest = fold != k
        held_out[~rest] = scores["held out"][~rest] >= best(rest)
    return held_out, scores["test"] >= best(slice(None))


def _expected(fold: Any, held_out: Any, test: Any) -> Labels:
    """Decide each fold, and the test rows, for their own expected F."""
    selected = np.zeros(len(fold), dtype=bool)
    for k in range(FOLDS):
        selected[fold == k] = maximize_expected_f(held_out[fold == k]).selected
    return selected, np.asarray(maximize_expected_f(test).selected)


def calibrate(form: Any, y: Any, fold: Any, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Return calibrated probabilities of the rows held out and of the test rows."""
    parts = [fold == k for k in range(FOLDS)]
    curves = [form().fit(scores["held out"][p], y[p].astype(float)) for p in parts]
    held_out = np.empty(len(y))
    for k, part in enumerate(parts):
        others = [curve for i, curve in enumerate(curves) if i != k]
        held_out[part] = average_curves(others, [scores["held out"][part]] * len(others), "")
    return held_out, average_curves(curves, scores["test by folds"], "")


def _mean(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the mean of two models' probabilities, of the rows held out and of the test rows."""
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def isotonic() -> IsotonicRegression:
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")


def _frozen(held_out: Any, test: Any) -> Labels:
    """Cut the test rows by the threshold of the best decision about the rows held out."""
    selected = maximize_expected_f(held_out).selected
    low = held_out[selected].min(initial=1.0)
    cut = (low + held_out[~selected].max(initial=0.0)) / 2
    return selected, test >= cut


def vote(members: list[Labels]) -> Labels:
    """Return what more than half of the methods say, row by row."""
    held_out, test = (np.sum(part, axis=0) for part in zip(*members, strict=True))
    return held_out > len(members) / 2, test > len(members) / 2


def f1(y: Any, selected: Any) -> float:
    """Return F1, 0 where nothing is positive and nothing selected."""
    total = np.count_nonzero(y) + np.count_nonzero(selected)
    return 2.0 * np.count_nonzero(y & selected) / total if total else 0.0


class Kept(ClassifierMixin, BaseEstimator):
    """A classifier that was fitted before: it knows the scores of each fold's model and of all's.

    X holds row numbers. What it was trained on tells which model it is.
    """

    def __init__(self, fold: Any, scores: Any) -> None:
        self.fold = fold
        self.scores = scores

    def fit(self, X: Any, y: Any) -> Kept:
        self.classes_ = np.array([False, True])
        self.whole_ = len(X) == len(self.fold)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        p = self.scores["test" if self.whole_ else "held out"][X[:, 0]]
        return np.column_stack([1 - p, p])

    def __sklearn_clone__(self) -> Kept:
        return Kept(self.fold, self.scores)


def _theirs(y: Any, fold: Any, scores: Scores) -> np.ndarray:
    """Tune the threshold as scikit-learn does, with its defaults, on the same folds."""
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]
    scorer = make_scorer(f1)  # scoring="f1" gives the same, twenty times slower
    tuned = TunedThresholdClassifierCV(Kept(fold, scores), scoring=scorer, cv=splits)
    try:
        tuned.fit(np.arange(len(y))[:, None], y)
    except ValueError:  # it refuses a model whose scores are all equal, which is left as it is
        return scores["test"] > 0.5
    return tuned.predict(np.arange(len(scores["test"]))[:, None])
