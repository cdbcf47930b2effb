"""The public door: compare methods on rows of data, in arrays, frames or pipelines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from argmaxf._base.messages import how_many
from argmaxf._base.validation import as_weights, check_count_if_given
from argmaxf.comparison.fits import Fit
from argmaxf.comparison.judge import NAMES, judge
from argmaxf.comparison.methods import taking_part
from argmaxf.comparison.recipe import Recipe
from argmaxf.comparison.result import Comparison
from argmaxf.comparison.trial import Trial
from argmaxf.constraints import Constraints
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.plain import PlainClassifier
from argmaxf.measures import MeasureLike


def compare(
    X: Any,
    y: Any,
    estimator: Any,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    X_test: Any = None,
    y_test: Any = None,
    methods: Iterable[str] | None = None,
    candidates: Mapping[str, Any] | None = None,
    cv: Any = 5,
    set_size: int | None = None,
    sample_weight: Any = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence_level: float | None = None,
    pos_label: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    names: tuple[str, str] = NAMES,
    track: Callable[[list[Fit]], Iterable[Fit]] = iter,
) -> Comparison:
    """Compare the ways to turn a classifier into predictions with a high F_β, and choose one.

    Every method is rated on the same rows, none of which its model has seen: the test rows, or
    those that `cv` holds out. Thresholds are tuned on held-out scores of other rows.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, features)
        The rows to learn from, or whatever `estimator` takes.
    y : array-like of shape (n,) or (n, labels)
        Their target: two classes, several, or a 0/1 table of labels (compared by macro F).
    estimator : estimator
        What gives the scores, not fitted; a pipeline brings its preprocessing to every method.
    beta : float, default=1.0
        The weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to compare by: a name, an object of `argmaxf.measures`, or a function. Methods
        that cannot be made for it do not take part, and the error says so where one is named.
    X_test : array-like, frame or sparse matrix of shape (m, features), default=None
        Rows to compare on. Without them methods are compared on the rows that `cv` holds out.
    y_test : array-like of shape (m,) or (m, labels), default=None
        Their target.
    methods : iterable of str, default=None
        Keys of `argmaxf.comparison.METHODS`: "plain", "threshold", "expected", "soft", "margin",
        "cost", "blend", "uncalibrated". By default the first four and the blend.
    candidates : dict of str to estimator, default=None
        Further classifiers to compare, by names that no method of ours has.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out. A share such as 0.2 holds out that part of them once, and the
        classifier that predicts is trained on the others alone.
    set_size : int, default=None
        How many rows will be predicted at a time, where F will be measured on such sets: methods
        are then compared on sets of that size. 1 is a stream: each row is decided alone, as it
        comes, and F is that of all rows.
    sample_weight : array-like of shape (n,), default=None
        What each row counts, in training and in F.
    min_precision : float, default=None
        The least precision to be promised: only methods that can promise take part.
    min_recall : float, default=None
        The least recall to be promised.
    max_selected_rate : float, default=None
        The largest part of the rows that may be predicted positive, promised too. Expected F keeps
        it in every batch.
    confidence_level : float, default=None
        With what probability: over draws of the rows for a tuned threshold, under the model for
        expected F (its `confidence_level`).
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of the sets.
    names : tuple of str, default=("X", "X_test")
        What the rows are called in words and messages.
    track : callable, default=iter
        Goes through the list of model fits, and may show how far they are.

    Returns
    -------
    Comparison
        Where each method stands, the one to use and why; it prints as a table.

    Notes
    -----
    Cost: one fit of the classifier, and one of each method that trains a model of its own, for each
    fold; with test rows one more of the classifier. Everything else is linear in the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> found = compare(X, y, LogisticRegression())
    >>> found.scores[found.chosen] > found.scores["cut at 0.5"]
    True
    """
    labels = Labels.of(y, pos_label)
    label_names = names_of(y, labels)
    if len(labels.classes) < 2:
        raise ValueError(
            f"target {label_names[0]!r} of {names[0]} is always {labels.classes[0]}: "
            "nothing to learn"
        )
    check_consistent_length(X, y)
    if (X_test is None) != (y_test is None):
        given = "X_test" if y_test is None else "y_test"
        raise ValueError(f"X_test and y_test must be given together, got {given} alone")
    if y_test is not None:
        check_consistent_length(X_test, y_test)
    check_count_if_given("set_size", set_size)
    weight = as_weights(sample_weight, np.shape(y)[0])
    promise = (Constraints(min_precision, min_recall, max_selected_rate), confidence_level)
    options = (beta, measure, _plain(labels.positive), cv, n_jobs, random_state)
    recipe = Recipe(*options, *promise).checked()
    trial = Trial(
        X,
        labels.target(y),
        labels,
        weight,
        estimator,
        recipe,
        taking_part(methods, candidates, recipe.chance),
        PlainClassifier(estimator)._fit_params(weight),
        X_test,
        None if y_test is None else labels.target(y_test),
        stream=set_size == 1,
    )
    _check_enough(trial, label_names, names[0])
    if trial.is_test:
        _check_test(trial, label_names, names[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trial.run(track)
        comparison = judge(trial, set_size, label_names, names)
        _look_for_shift(trial, comparison.chosen)
    warned = dict.fromkeys(str(w.message) for w in caught)
    return replace(comparison, notes=(*comparison.notes, *warned))


def names_of(y: Any, labels: Labels) -> tuple[str, ...]:
    """Return what the labels are called: classes, columns of a frame, or the one target."""
    if labels.kind == "multiclass":
        return tuple(map(str, labels.classes))
    if labels.kind == "multilabel-indicator":
        return tuple(map(str, getattr(y, "columns", labels.classes)))
    name = getattr(y, "name", None)
    return (str(labels.positive) if name is None else str(name),)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def _check_enough(trial: Trial, labels: tuple[str, ...], rows: str) -> None:
    """Refuse rows that hold too few of some label for every fold to have one."""
    columns, cv = trial.labels.columns(trial.target), trial.recipe.cv
    n_folds = cv if isinstance(cv, int) else len(trial.splits)
    if len(columns) < 2 * n_folds:
        raise ValueError(
            f"{rows} has {how_many(len(columns), 'row')}; {n_folds} folds need at least "
            f"{2 * n_folds}"
        )
    for name, positive in zip(labels, columns.sum(axis=0).tolist(), strict=True):
        for count, kind in [(positive, "positive"), (len(columns) - positive, "negative")]:
            if count < n_folds:
                raise ValueError(
                    f"{name!r} has {how_many(count, f'{kind} row')} in {rows}, too few for one in "
                    f"each of {n_folds} folds"
                )


def _check_test(trial: Trial, labels: tuple[str, ...], rows: str) -> None:
    """Refuse test rows of unknown classes, and those on which F says nothing."""
    unknown = set(np.unique(trial.rated_target).tolist()) - set(trial.labels.classes.tolist())
    if trial.rated_target.ndim == 1 and unknown:
        value = sorted(map(str, unknown))[0]
        raise ValueError(f"target of {rows} has the class {value!r}, never seen in training")
    for name, positive in zip(labels, trial.truth.sum(axis=0).tolist(), strict=True):
        if not positive:
            raise ValueError(f"{rows} has no positive row of {name!r}: F says nothing there")


def _look_for_shift(trial: Trial, chosen: str) -> None:
    """Warn where the test rows look unlike the training rows, to a model that saw neither."""
    if trial.is_test:
        trial.familiar.warn_if_unlike(trial.X_test, chosen)
