"""Two models blended: the classifier, and a linear one trained for F."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.recipe import Recipe
from argmaxf.estimators.batches import BatchFClassifier
from argmaxf.estimators.doubts import warn_of_weights, weights_said
from argmaxf.estimators.folds import lonely
from argmaxf.estimators.labels import Labels, constants_said
from argmaxf.estimators.rowwise import SmallBatches
from argmaxf.estimators.wrapping import Training
from argmaxf.measures import MeasureLike


class BlendFClassifier(BatchFClassifier):
    """A classifier that decides for the highest expected F_β by the mean chances of two models.

    The probability of a row is the mean of the classifier's and of those of a linear model trained
    for F (`SoftFClassifier`), each calibrated on rows held out. The two err in different ways: on
    real imbalanced sets their mean was ahead of each of them (docs/choosing.md). As with
    `ExpectedFClassifier`, `predict(X)` decides all rows of X together; `freeze` is for single rows.

    Cost: both models are fitted once for each fold. Parameters of `fit` are passed on to the
    classifier; the linear model gets the weights alone.

    Parameters
    ----------
    estimator : estimator
        The classifier, whose preprocessing, where it ends a pipeline, the linear model shares.
    beta : float, default=1.0
        The weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize: ``"fbeta"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out; a share such as 0.2 holds out that part of them once.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives where it predicts, as for `ExpectedFClassifier`.
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    members_ : list of ExpectedFClassifier
        The classifier and the linear model, calibrated.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        cv: Any = 5,
        deploy_rate: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.cv = cv
        self.deploy_rate = deploy_rate
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        options = (self.pos_label, self.cv, self.n_jobs, self.random_state)
        recipe = Recipe(self.beta, self.measure, *options, deploy_rate=self.deploy_rate)
        models: list[tuple[Any, dict[str, Any]]] = [(self.estimator, rows.params)]
        if not lonely(rows.columns).all():  # scores need rows to be calibrated on
            models.append((METHODS["soft"].make(self.estimator, recipe), {}))
        warn_of_weights(rows.columns, rows.weight, self.deploy_rate)
        with constants_said(), weights_said():
            members = [
                METHODS["expected"]
                .make(model, recipe)
                .fit(rows.X, rows.target, rows.weight, groups=rows.groups, **params)
                for model, params in models
            ]
        self._of(self._labels, members)

    def _of(self, labels: Labels, members: Sequence[Any]) -> Self:
        """Return the blend of classifiers that are fitted already."""
        first = members[0]
        self.members_ = list(members)
        self._labels, self.classes_ = labels, labels.classes
        self._deployed, self.calibrate_ = first._deployed, first.calibrate_
        self._small = SmallBatches()
        self._scorer = Blended([member._scorer for member in members])
        known = [member._reference for member in members]
        self._reference = None if any(p is None for p in known) else np.mean(known, axis=0)
        self.doubt_ = next((m.doubt_ for m in members if m.doubt_ is not None), None)
        self._show([model for member in members for model in member.estimators_])
        return self


@dataclass(frozen=True)
class Blended:
    """Models whose probabilities count alike."""

    members: list[Any]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the models' probabilities, (n, n_columns)."""
        return np.asarray(np.mean([member.predict(X) for member in self.members], axis=0))
