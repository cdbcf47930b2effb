"""What most methods say: a vote between the approaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from argmaxf.comparison.methods import METHODS, Recipe
from argmaxf.comparison.trial import Trial, nothing_to_tell
from argmaxf.estimators.base import MetaFClassifier
from argmaxf.estimators.labels import Labels, constants_said
from argmaxf.measures import MeasureLike


class VoteFClassifier(MetaFClassifier):
    """A classifier that predicts what two of three methods say.

    Tuned threshold, expected F and trained for F err in different ways: where two agree, the third
    is outvoted. On real imbalanced sets their vote was ahead of each of them (docs/choosing.md).

    Cost: the classifier is fitted once for each fold and once on all rows, the linear model trained
    for F once on all rows.

    Parameters
    ----------
    estimator : estimator
        The classifier whose scores the first two decide by, and whose preprocessing, where it ends
        a pipeline, the third shares.
    beta : float, default=1.0
        The weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to maximize: ``"fbeta"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out. A share such as 0.2 holds out that part of them once, and the
        classifier that predicts is trained on the others alone.
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    members_ : list of estimator
        The methods that vote, fitted.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        cv: Any = 5,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.cv = cv
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the methods that vote.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            Rows to learn from, as the classifier takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their target.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, in training and in F.

        Returns
        -------
        VoteFClassifier
            Itself.
        """
        target, weight = self._read(X, y, sample_weight)
        options = (self.pos_label, self.cv, self.n_jobs, self.random_state)
        recipe = Recipe(self.beta, self.measure, *options)
        if nothing_to_tell(self._labels, target, weight):
            with constants_said():
                plain = METHODS["plain"].make(self.estimator, recipe).fit(X, target, weight)
            self._take(plain._scorer, [plain])
            return self
        voters = [METHODS[key] for key in METHODS["vote"].voters]
        common = (X, target, self._labels, weight, self.estimator, recipe)
        trial = Trial(*common, voters, self._fit_params(weight), needs_model=True)
        trial.run(classifier_only=True)
        self._take(trial.model, [trial.fitted(method) for method in trial.methods])
        return self

    def _of(self, labels: Labels, model: Any, members: Sequence[Any]) -> Self:
        """Return the vote of methods that are fitted already."""
        self._labels, self.classes_ = labels, labels.classes
        self._take(model, members)
        return self

    def _take(self, model: Any, members: Sequence[Any]) -> None:
        self._scorer, self.members_ = model, list(members)
        self._show(model.models_)

    def freeze(self, X_reference: Any = None) -> Self:
        """Return the same vote, each member deciding each row alone.

        Parameters
        ----------
        X_reference : array-like, default=None
            Rows like those to come, for the members that decide by a whole batch; by default the
            training rows, as they were held out.

        Returns
        -------
        VoteFClassifier
            Fitted.
        """
        check_is_fitted(self)
        frozen = type(self)(**self.get_params(deep=False))
        members = [m.freeze(X_reference) if hasattr(m, "freeze") else m for m in self.members_]
        return frozen._of(self._labels, self._scorer, members)

    def _margin(self, X: Any) -> NDArray[np.float64]:
        """Return the share of votes above one half; among equal classes the first voter decides."""
        said = [self._labels.columns(member.predict(X)) for member in self.members_]
        return np.asarray(np.mean(said, axis=0) - 0.5 + 1e-9 * (said[0] - 0.5))
