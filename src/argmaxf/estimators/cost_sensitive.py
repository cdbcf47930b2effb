"""The best of a family of cost-weighted classifiers, each with its threshold tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import check_count, ones_unless
from argmaxf.empirical.cost_sensitive import cost_weights, target_grid
from argmaxf.estimators.scores import last_step, weight_parameter
from argmaxf.estimators.sides import is_constant
from argmaxf.estimators.threshold import ThresholdFClassifier
from argmaxf.estimators.wrapping import MetaFClassifier, Training


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

    def _fit(self, rows: Training) -> None:
        check_count("n_costs", self.n_costs)
        _check_takes_weights(self.estimator)
        self._fit_params(ones_unless(rows.weight, len(rows.columns)), rows.params)  # or say why not
        families = [self._fit_family(rows, column) for column in rows.columns.T]
        self.estimators_ = [best for best, _, _ in families]
        self.targets_ = np.array([targets for _, targets, _ in families])
        self.scores_ = np.array([scores for _, _, scores in families])
        chosen = self.scores_.argmax(axis=1)
        constant = np.array([best is None for best in self.estimators_])
        self.target_ = np.where(constant, np.nan, self.targets_[np.arange(len(chosen)), chosen])
        self._sure = np.where(rows.columns.any(axis=0), np.inf, -np.inf)
        self._show_features()

    def _fit_family(
        self, rows: Training, column: Bools
    ) -> tuple[ThresholdFClassifier | None, Floats, Floats]:
        """Return the best member for one label, the targets tried, and the F each reached."""
        counted = ones_unless(rows.weight, len(column))
        rate = float(counted @ column / counted.sum())
        targets = target_grid(rate, self.n_costs, beta=self.beta)
        if is_constant(column[counted > 0]):
            return None, targets, np.full(len(targets), np.nan)
        family = [self._fit_member(rows, column, target) for target in targets]
        scores = np.array([member.f_ for member in family])
        return family[scores.argmax()], targets, scores

    def _fit_member(self, rows: Training, column: Bools, target: float) -> ThresholdFClassifier:
        member = CostWeighted(
            self.estimator,
            beta=self.beta,
            cv=self.cv,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        costs = cost_weights(column, target, beta=self.beta, weight=rows.weight)
        return member.fit_under(costs, rows, column)

    def _margin(self, X: Any) -> Floats:
        return self._by_label(X, self._sure, lambda best: best.decision_function(X))

    def _proba(self, X: Any) -> Floats:
        """Return the probabilities of each label's model, under the costs it was trained with."""
        return self._by_label(X, self._sure > 0, lambda best: best.predict_proba(X)[:, 1])

    def _by_label(self, X: Any, sure: Any, read: Callable[[Any], Floats]) -> Floats:
        """Return what is read of each label's model, and of constant labels what is sure."""
        n = int(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))
        pairs = zip(self.estimators_, sure, strict=True)
        columns = [np.full(n, float(s)) if best is None else read(best) for best, s in pairs]
        return np.column_stack(columns)

    def _show_features(self) -> None:
        """Show the features that the wrapped classifier was fitted with."""
        for best in self.estimators_:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(best, name):
                    setattr(self, name, getattr(best, name))


class CostWeighted(ThresholdFClassifier):
    """A `ThresholdFClassifier` that trains under some costs, and counts F without them."""

    def fit_under(self, costs: Floats, rows: Training, column: Bools) -> Self:
        """Fit for one label with `costs` as the weights of training; rows have those of F."""
        self._costs = costs
        self.fit(rows.X, column, rows.weight, groups=rows.groups, **rows.params)
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
