"""The best of a family of cost-weighted classifiers, each with its threshold tuned."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from argmaxf.empirical.cost_sensitive import cost_weights, target_grid
from argmaxf.estimators.base import MetaFClassifier, is_constant
from argmaxf.estimators.scores import last_step, weight_parameter
from argmaxf.estimators.threshold import ThresholdFClassifier
from argmaxf.validation import check_beta, check_count, ones_unless


class CostSensitiveFClassifier(MetaFClassifier):
    """Any classifier, trained with the error costs under which it reaches the highest F_β.

    F_β is pseudo-linear: some weighting of the two kinds of error turns maximizing it into ordinary
    weighted classification. For each label the classifier is trained under `n_costs` weightings,
    each gets the exact threshold on out-of-fold scores, and the one with the highest F is kept.

    Parameters
    ----------
    estimator : estimator
        A classifier whose `fit` takes `sample_weight`.
    beta : float, default=1.0
        Weight of recall against precision.
    n_costs : int, default=8
        How many weightings to try. Each costs one training per fold and one on all rows.
    cv : int, splitter or iterable, default=5
        Folds for the out-of-fold scores, as in `ThresholdFClassifier`; None compares and tunes on
        the training scores.
    pos_label : object, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the folds.
    random_state : int or RandomState, default=0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list of ThresholdFClassifier
        The chosen classifier of each label; None for a constant label.
    targets_ : ndarray of shape (n_labels, n_costs)
        The values of t tried: a missed positive costs 1 + β² - t, a negative taken costs t.
    scores_ : ndarray of shape (n_labels, n_costs)
        The F each of them reached on the tuning scores.
    target_ : ndarray of shape (n_labels,)
        The chosen t of each label, NaN for a constant label.

    References
    ----------
    S. Parambath, N. Usunier, Y. Grandvalet (2014). Optimizing F-measures by cost-sensitive
    classification. NIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = CostSensitiveFClassifier(LogisticRegression(), n_costs=4).fit(X, y)
    >>> model.scores_.shape
    (1, 4)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        n_costs: int = 8,
        cv: Any = 5,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.n_costs = n_costs
        self.cv = cv
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the family for each label, and keep the best of it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        check_beta(self.beta)
        check_count("n_costs", self.n_costs)
        _check_takes_weights(self.estimator)
        target, weight = self._read(X, y, sample_weight)
        columns = self._labels.columns(target)
        families = [self._fit_family(X, column, weight) for column in columns.T]
        self.estimators_ = [best for best, _, _ in families]
        self.targets_ = np.array([targets for _, targets, _ in families])
        self.scores_ = np.array([scores for _, _, scores in families])
        chosen = self.scores_.argmax(axis=1)
        constant = np.array([best is None for best in self.estimators_])
        self.target_ = np.where(constant, np.nan, self.targets_[np.arange(len(chosen)), chosen])
        self._sure = np.where(columns.any(axis=0), np.inf, -np.inf)
        self._show_features()
        return self

    def _fit_family(
        self, X: Any, column: NDArray[np.bool_], weight: Any
    ) -> tuple[ThresholdFClassifier | None, NDArray[np.float64], NDArray[np.float64]]:
        """Return the best member for one label, the targets tried, and the F each reached."""
        counted = ones_unless(weight, len(column))
        targets = target_grid(counted @ column / counted.sum(), self.n_costs, beta=self.beta)
        if is_constant(column[counted > 0]):
            return None, targets, np.full(len(targets), np.nan)
        family = [self._fit_member(X, column, weight, target) for target in targets]
        scores = np.array([member.f_ for member in family])
        return family[scores.argmax()], targets, scores

    def _fit_member(self, X: Any, column: Any, weight: Any, target: float) -> ThresholdFClassifier:
        member = CostWeighted(
            self.estimator,
            beta=self.beta,
            cv=self.cv,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        costs = cost_weights(column, target, beta=self.beta, weight=weight)
        return member.fit_under(costs, X, column, weight)

    @staticmethod
    def _n_rows(X: Any) -> int:
        return int(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))

    def _margin(self, X: Any) -> NDArray[np.float64]:
        rows = self._n_rows(X)
        return np.column_stack(
            [
                np.full(rows, sure) if best is None else best.decision_function(X)
                for best, sure in zip(self.estimators_, self._sure, strict=True)
            ]
        )

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of each label's model, under the costs it was trained with.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            The rows, as the classifier takes them.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        check_is_fitted(self)
        rows = self._n_rows(X)
        columns = [
            np.full(rows, float(sure > 0)) if best is None else best.predict_proba(X)[:, 1]
            for best, sure in zip(self.estimators_, self._sure, strict=True)
        ]
        return self._labels.both(np.column_stack(columns))

    def _show_features(self) -> None:
        """Show the features that the wrapped classifier was fitted with."""
        for best in self.estimators_:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(best, name):
                    setattr(self, name, getattr(best, name))


class CostWeighted(ThresholdFClassifier):
    """A `ThresholdFClassifier` that trains under some costs, and counts F without them."""

    def fit_under(self, costs: NDArray[np.float64], X: Any, y: Any, weight: Any) -> Self:
        """Fit with `costs` as the weights of training, and `weight` as those of F."""
        self._costs = costs
        self.fit(X, y, weight)
        del self._costs
        return self

    def _fit_params(self, weight: Any, given: dict[str, Any] | None = None) -> dict[str, Any]:
        params = super()._fit_params(self._costs, given)
        if "sample_weight" not in params:
            raise ValueError(
                f"{type(self.estimator).__name__} must request sample_weight for fit: "
                "set_fit_request(sample_weight=True)"
            )
        return params


def _check_takes_weights(estimator: Any) -> None:
    """Refuse a classifier that cannot be trained under costs."""
    name = type(last_step(estimator)).__name__
    if isinstance(estimator, FrozenEstimator):
        raise ValueError(f"estimator must be trained again for each cost, got a {name}")
    if get_config()["enable_metadata_routing"] or weight_parameter(estimator) is not None:
        return
    raise ValueError(f"estimator must take sample_weight in fit, {name} does not")
