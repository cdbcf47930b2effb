"""Thresholds as data: a small JSON file with a threshold, its calibration and where it is from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

import argmaxf
from argmaxf._base import saved
from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.shown import Shown
from argmaxf._base.validation import check_choice
from argmaxf.measures import MEASURES, MeasureLike, as_measure, measure_as_data, measure_of_data

INFINITE = {"always": -math.inf, "never": math.inf}  # of labels with one value in training
FORMS = {"isotonic": ("x", "y"), "sigmoid": ("slope", "intercept")}


@dataclass(frozen=True, repr=False)
class SavedThreshold(Shown):
    """Thresholds that were fitted, as data that need no model and no pickle.

    `of` makes one of a fitted classifier or of a result; `save` and `load` keep it as JSON, and
    ``argmaxf decide --threshold-from FILE`` applies it.

    Parameters
    ----------
    thresholds : list of float
        One for each label; a label is predicted where the score is at least its threshold.
    labels : list of str, default=["1"]
        The names of the labels: the positive class of a binary target.
    scale : {"probability", "score"}, default="probability"
        What the thresholds are on: ``predict_proba`` of the classifier, or the scores of the model
        inside it (``freeze().to_sklearn().decision_function``; those of the classifier itself are
        margins, whose threshold is 0).
    measure : str, Measure, callable or None, default=None
        What was maximized; None where it is not known, or a function of the user.
    value : list of float or None, default=None
        The measure on the rows on which the thresholds were tuned.
    expected : list of float or None, default=None
        The expected value of the measure.
    interval : list of three float or None, default=None
        Lower end, centre and upper end of the interval in which the measure will be.
    calibration : list or None, default=None
        For each label the curves that turned scores into its probability: a list of members with a
        list of curves each (docs/howto/deploying.md).
    provenance : dict, default={}
        Where the thresholds come from: `classifier`, `rows`, `positives` and versions.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from argmaxf import SavedThreshold, ThresholdFClassifier
    >>> X, y = make_classification(2000, weights=[0.9], random_state=0)
    >>> model = ThresholdFClassifier(LogisticRegression()).fit(X, y)
    >>> saved = SavedThreshold.of(model)
    >>> int((saved.select(model.predict_proba(X)[:, 1]) != model.predict(X)).sum())
    0
    >>> saved.provenance["rows"], saved.provenance["positives"]
    (2000, [208])
    """

    thresholds: list[float]
    labels: list[str] = field(default_factory=lambda: ["1"])
    scale: str = "probability"
    measure: MeasureLike | None = None
    value: list[float] | None = None
    expected: list[float] | None = None
    interval: list[float] | None = None
    calibration: list[list[list[dict[str, Any]]]] | None = field(default=None, repr=False)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("probability", "score"))
        n, cuts = len(self.thresholds), self.thresholds
        if not n or any(isinstance(t, bool) or math.isnan(t) for t in cuts):
            raise ValueError(f"thresholds must be numbers, got {cuts!r}")
        if self.scale != "score" and not all(0.0 <= t <= 1.0 or math.isinf(t) for t in cuts):
            raise ValueError(f"probabilities lie in [0, 1], got {cuts!r}")
        if len(self.labels) != n or not all(isinstance(name, str) for name in self.labels):
            raise ValueError(f"labels must be a name for each of {n} thresholds")
        if not isinstance(self.provenance, dict):
            raise ValueError(f"provenance must be an object, got {self.provenance!r}")
        numbers = [*(self.value or []), *(self.expected or []), *(self.interval or [])]
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"value, expected and interval must be numbers, got {numbers!r}")
        if self.interval is not None and len(self.interval) != 3:
            raise ValueError(f"interval must have three numbers, got {self.interval!r}")
        curves = self.calibration or []
        held = len(curves) == n and all(label and all(label) for label in curves)
        if self.calibration is not None and not held:
            raise ValueError(f"calibration must hold curves for each of {n} labels, got {curves!r}")
        for curve in chain.from_iterable(chain.from_iterable(curves)):
            if curve.get("scores") not in ("predict_proba", "decision_function", "log_odds"):
                raise ValueError(f"a curve must name the method of its scores, got {curve!r:.80}")
            _at(curve, np.zeros(1))

    @classmethod
    def of(cls, fitted: Any, *, measure: MeasureLike | None = None, **provenance: Any) -> Self:
        """Return the threshold of a fitted classifier, or of a result with `threshold`.

        Parameters
        ----------
        fitted : classifier, Threshold, Decision or float
            A classifier with fixed thresholds of a binary or multilabel target (what `freeze`
            returns, `ThresholdFClassifier`, `SoftFClassifier`), what `maximize_empirical_f` or
            `maximize_expected_f` return, or a number.
        measure : str, Measure or callable, default=None
            What was maximized, for a result; a classifier knows it.
        **provenance : object
            More about where it is from, such as ``rows=1000, positives=30``.

        Returns
        -------
        SavedThreshold
            The thresholds as data.
        """
        about: dict[str, Any] = {"argmaxf": argmaxf.__version__}
        if hasattr(fitted, "fixed_rule"):
            return cls(**_of_classifier(fitted, about | provenance))
        found = np.atleast_1d(np.asarray(getattr(fitted, "threshold", fitted), dtype=np.float64))
        inside = np.isinf(found) | ((found >= 0.0) & (found <= 1.0))
        return cls(
            found.tolist(),
            ["1"] if found.size == 1 else [str(i) for i in range(found.size)],
            "probability" if inside.all() else "score",
            measure,
            _listed(getattr(fitted, "value", None)),
            _listed(getattr(fitted, "expected", None)),
            provenance=about | provenance,
        )

    def select(self, p: ArrayLike) -> Bools:
        """Return which rows, or labels of rows, are predicted.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, n_labels)
            What the thresholds are on: probabilities, or scores.

        Returns
        -------
        ndarray of bool
            Of the shape of `p`.
        """
        numbers = np.asarray(p, dtype=np.float64)
        if numbers.ndim not in (1, 2) or (numbers.ndim == 1) != (len(self.thresholds) == 1):
            raise ValueError(
                f"p must have one column for each of {len(self.thresholds)} labels, got the shape "
                f"{numbers.shape}"
            )
        return np.asarray(numbers >= np.array(self.thresholds))

    def calibrate(self, scores: ArrayLike, label: int = 0) -> Floats:
        """Return the probability of a label from the scores of the models behind it.

        Parameters
        ----------
        scores : array-like of shape (n, n_models)
            The scores of each model, in the order of the curves in `calibration`.
        label : int, default=0
            Which label.

        Returns
        -------
        ndarray of shape (n,)
            The probabilities of the classifier, before `deploy_rate` moves them.
        """
        if self.calibration is None:
            raise ValueError("this threshold has no calibration: pass probabilities to select")
        from argmaxf.estimators.calibration import average_curves

        members, rows = self.calibration[label], np.asarray(scores, dtype=np.float64)
        n, each, first = sum(map(len, members)), [], 0
        if rows.ndim != 2 or rows.shape[1] != n:
            raise ValueError(f"scores must have a column for each of {n} models, got {rows.shape}")
        for member in members:
            own = rows[:, first : (first := first + len(member))].T
            curves = [
                None if "none" in curve else SimpleNamespace(predict=partial(_at, curve))
                for curve in member
            ]
            each.append(average_curves(curves, own, member[0]["scores"]))
        return np.asarray(np.mean(each, axis=0))

    def save(self, path: str | Path) -> None:
        """Write the threshold to a JSON file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        words = {number: word for word, number in INFINITE.items()}
        measure: Any = None if self.measure is None else as_measure(self.measure)
        known = type(measure) in MEASURES.values()
        changed = {
            "thresholds": [words.get(t, t) for t in self.thresholds],
            "measure": measure_as_data(measure) if known else None,
        }
        write_whole(Path(path), saved.to_json("threshold", vars(self) | changed))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote; what is damaged or newer is refused.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        SavedThreshold
            The thresholds.
        """
        return saved.from_file(Path(path), "threshold", cls._of_data)

    @classmethod
    def _of_data(cls, data: dict[str, Any]) -> Self:
        """Return the threshold of what the file holds."""
        thresholds = [INFINITE.get(t, t) for t in data["thresholds"]]
        measure = None if data["measure"] is None else measure_of_data(data["measure"])
        return cls(**data | {"thresholds": thresholds, "measure": measure})


def column_threshold(found: SavedThreshold, name: str | None) -> float:
    """Return the threshold in [0, 1] for a column, named as its label where there are several."""
    if found.scale != "probability":
        raise ValueError(
            "this is a threshold on scores of decision_function, which cannot be applied to "
            "probabilities; save that of a classifier with predict_proba"
        )
    if len(found.labels) > 1 and name not in found.labels:
        raise ValueError(
            "the column must have the name of one of the labels "
            f"{', '.join(map(repr, found.labels))}, got {name!r}"
        )
    threshold = found.thresholds[found.labels.index(str(name)) if len(found.labels) > 1 else 0]
    if threshold == math.inf:
        raise ValueError("this threshold selects no row: training had no positives")
    return max(threshold, 0.0)


def _at(curve: dict[str, Any], scores: NDArray[Any]) -> Floats:
    """Return the probabilities of scores by one curve of the file."""
    if "none" in curve:
        return scores
    (form,) = set(curve) & set(FORMS)
    first, second = (np.asarray(curve[form][key], dtype=np.float64) for key in FORMS[form])
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError(f"a curve must have finite numbers, got {curve!r}")
    if form == "sigmoid":
        return np.asarray(expit(first * scores + second))
    if first.ndim != 1 or first.shape != second.shape or not (np.diff(first) > 0).all():
        raise ValueError("a curve must have rising x, and a y for each")
    return np.asarray(np.interp(scores, first, second))


def _listed(values: Any) -> list[float] | None:
    """Return numbers as a list; None where they are not known."""
    numbers = np.atleast_1d(np.asarray(np.nan if values is None else values, dtype=np.float64))
    return numbers.tolist() if np.isfinite(numbers).all() else None


def _of_classifier(fitted: Any, about: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a fitted classifier."""
    import sklearn

    from argmaxf.estimators.calibration import curve_data

    rule = fitted.fixed_rule()
    if rule.labels.kind == "multiclass":
        raise ValueError(
            "classes compete for a row, so their thresholds do not decide alone; export the "
            "classifier by to_sklearn() or to ONNX"
        )
    inner = getattr(fitted, "estimator", fitted) if hasattr(fitted, "to_sklearn") else fitted
    about = {"classifier": repr(inner), **about, "scikit-learn": sklearn.__version__}
    if rule.seen is not None:
        about |= dict(zip(("rows", "positives"), rule.seen, strict=True))
    curves = [
        [
            [
                {"scores": s.method} | curve_data(curve)
                for s, curve in zip_longest(c.scores, c.curves)
            ]
            for c in label
        ]
        for label in zip(*rule.columns(), strict=True)
    ]
    calibrated = any(member.curves for member in rule.members)
    interval = getattr(fitted, "interval_", None)
    if interval is not None and not interval.reliable:
        about["interval"] = interval.caveat.strip(" ()")
    return {
        "thresholds": rule.threshold.tolist(),
        "labels": [str(name) for name in rule.labels.names],
        "scale": "score" if rule.on_scores else "probability",
        "measure": fitted.measure,
        "value": _listed(getattr(inner, "f_", None)),
        "expected": _listed(getattr(fitted, "expected_", None)),
        "interval": None if interval is None else [interval.low, interval.value, interval.high],
        "calibration": curves if calibrated else None,
        "provenance": about,
    }
