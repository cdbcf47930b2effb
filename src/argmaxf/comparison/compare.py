"""`compare`: methods compared on rows of data, in arrays, frames or pipelines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from argmaxf._base.validation import as_weights, how_many
from argmaxf.comparison.auto_f import AutoFClassifier
from argmaxf.comparison.cross_validation import CrossValidation, Progress
from argmaxf.comparison.result import Comparison, rank
from argmaxf.constraints import Constraints
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.meta import route_fit_params
from argmaxf.estimators.scores import TrainingData
from argmaxf.measures import MeasureLike


def compare(
    X: Any,
    y: Any,
    estimator: Any,
    *,
    measure: MeasureLike = "f1",
    methods: Any = None,
    cv: Any = 5,
    test_set: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    constraints: Constraints | Mapping[str, float] | None = None,
    confidence_level: float | None = None,
    progress: Progress = False,
) -> Comparison:
    """Compare the ways to turn a classifier into predictions with a high F_β, and choose one.

    Every method is evaluated on the same rows: those of the test set, or those that `cv` holds out.
    No model is evaluated on rows on which it was trained. Thresholds are tuned on held-out scores
    of other rows.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, features)
        The rows to learn from, or whatever `estimator` takes.
    y : array-like of shape (n,) or (n, labels)
        Their target: two classes, several, or a 0/1 table of labels (compared by macro F).
    estimator : estimator
        The classifier that gives the scores, not fitted. Every method uses the preprocessing of a
        pipeline. For an `AutoFClassifier`, the comparison is the one that its `fit` makes, with all
        its options, such as `set_size`, `pos_label` and `deploy_rate`; set `measure`, `methods`,
        `cv` and constraints on it, too.
    measure : str, Measure or callable, default="f1"
        What to compare by: a name such as ``"f2"``, an object of `argmaxf.measures`, or a function.
        Methods that do not support it are left out; naming one of them is an error.
    methods : list of str and (str, classifier) pairs or dict of str to classifier, default=None
        What to compare, as in `AutoFClassifier`: keys of `argmaxf.comparison.METHODS` ("plain",
        "threshold", "expected", "soft", "blend"; "margin", "cost", "uncalibrated") and classifiers.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out, as in `ThresholdFClassifier`.
    test_set : tuple of array-like, default=None
        ``(X_test, y_test)``: rows to compare on. By default those that `cv` holds out.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows, in training and in F.
    constraints : dict of str to float, default=None
        What to guarantee, as in `AutoFClassifier`: `min_precision`, `min_recall` and
        `max_selected_rate`. Only methods that can guarantee it take part.
    confidence_level : float, default=None
        The probability with which they hold, as in `AutoFClassifier`.
    progress : bool or callable, default=False
        True prints a line for each model that is fitted. A function is called as ``progress(done,
        total, name)`` before each fit.

    Returns
    -------
    Comparison
        The result of each method, the one to use and why; it prints as a table.

    Notes
    -----
    Cost: for each fold, the classifier is fitted once, and so is each method that trains its own
    model. A test set needs one more fit of the classifier. Everything else is linear in the rows.
    Models are fitted in parallel inside ``joblib.parallel_config(n_jobs=4)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> found = compare(X, y, LogisticRegression())
    >>> print(f"{found.chosen}: {found.scores[found.chosen]:.2f}")
    blended F: 0.94
    """
    given = {
        "measure": measure,
        "methods": methods,
        "cv": cv,
        "constraints": constraints,
        "confidence_level": confidence_level,
    }
    if not isinstance(estimator, AutoFClassifier):
        estimator = AutoFClassifier(estimator, **given)
    elif list(given.values()) != ["f1", None, 5, None, None]:
        raise ValueError(
            f"{', '.join(given)} must be set on the AutoFClassifier, not passed to compare"
        )
    return compare_methods(X, y, estimator, test_set, sample_weight, progress=progress)


def compare_methods(
    X: Any,
    y: Any,
    auto: AutoFClassifier,
    test_set: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    names: tuple[str, str] = ("X", "X_test"),
    progress: Progress = False,
) -> Comparison:
    """Return the comparison that `auto` makes; `names` are those of the rows in messages."""
    labels = Labels.of(y, auto.pos_label)
    titles = labels.titles(y)
    if len(labels.classes) < 2:
        raise ValueError(
            f"target {titles[0]!r} of {names[0]} is always {labels.classes[0]}: nothing to learn"
        )
    check_consistent_length(X, y)
    target, weight = labels.target(y), as_weights(sample_weight, np.shape(y)[0])
    params = route_fit_params(auto, weight, {})
    rows = TrainingData(X, y, labels, target, labels.columns(target), weight, groups, params)
    cv = CrossValidation(auto, rows, _checked_test(test_set, labels, titles, names[1]))
    _check_enough(cv, titles, names[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cv.run(progress)
        comparison = rank(cv, names)
        if cv.test is not None:
            joint = comparison.method.method.joint
            cv.drift_detector.warn_if_unlike(cv.test[0], comparison.chosen, joint)
    warned = dict.fromkeys(str(w.message) for w in caught)
    return replace(comparison, notes=(*comparison.notes, *warned))


def _check_enough(cv: CrossValidation, titles: tuple[str, ...], rows: str) -> None:
    """Refuse rows with too few positives or negatives of some label for each fold to have one."""
    columns, asked = cv.rows.columns, cv.settings.cv
    n_folds = getattr(asked, "n_splits", asked)
    n_folds = n_folds if isinstance(n_folds, int) else len(cv.splits)
    if len(columns) < 2 * n_folds:
        raise ValueError(
            f"{rows} has {how_many(len(columns), 'row')}; {n_folds} folds need at least "
            f"{2 * n_folds}"
        )
    for name, positive in zip(titles, columns.sum(axis=0).tolist(), strict=True):
        for count, kind in [(positive, "positive"), (len(columns) - positive, "negative")]:
            if count < n_folds:
                raise ValueError(
                    f"{name!r} has {how_many(count, f'{kind} row')} in {rows}, too few for one in "
                    f"each of {n_folds} folds"
                )


def _checked_test(test_set: Any, labels: Labels, titles: tuple[str, ...], rows: str) -> Any:
    """Return the test set with its target as an array; it must have positives of each label."""
    if test_set is None:
        return None
    if not isinstance(test_set, tuple | list) or len(test_set) != 2:
        raise ValueError("test_set must be a pair (X_test, y_test)")
    X_test, y_test = test_set
    check_consistent_length(X_test, y_test)
    target = labels.target(y_test)
    unknown = set(np.unique(target).tolist()) - set(labels.classes.tolist())
    if target.ndim == 1 and unknown:
        value = sorted(map(str, unknown))[0]
        raise ValueError(f"target of {rows} has the class {value!r}, never seen in training")
    for name, positive in zip(titles, labels.columns(target).sum(axis=0).tolist(), strict=True):
        if not positive:
            raise ValueError(f"{rows} has no positive row of {name!r}: F is not defined there")
    return X_test, target
