"""The best of a family of cost-weighted classifiers, each with its threshold tuned.

F_β is pseudo-linear in its errors. With S positives, FN of them missed and FP negatives taken,

    F_β ≥ t   ⟺   (1 + β² - t) FN + t FP ≤ (1 + β²)(1 - t) S,

so a classifier that minimizes the weighted error on the left for t = max F_β maximizes F_β
(Parambath, Usunier and Grandvalet 2014). That t is not known, but it is one number: some are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn import get_config
from sklearn.frozen import FrozenEstimator

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import check_beta, check_count, ones_unless
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.linear_f import check_fbeta, is_constant
from argmaxf.estimators.meta import MetaFClassifier, route_fit_params
from argmaxf.estimators.scores import TrainingData, last_step, weight_parameter
from argmaxf.estimators.threshold_f import ThresholdFClassifier
from argmaxf.measures import FBeta


@dataclass(eq=False, repr=False)
class CostSensitiveFClassifier(MetaFClassifier):
    """A classifier trained with the error costs that give the highest F_β; experimental.

    F_β is pseudo-linear: some weighting of the two kinds of error turns maximizing it into ordinary
    weighted classification. For each label the classifier is trained under `n_costs` weightings,
    each gets the exact threshold on out-of-fold scores, and the one with the highest F is kept.

    Parameters
    ----------
    estimator : estimator
        A classifier whose `fit` takes `sample_weight`.
    measure : str or FBeta, default="f1"
        The F_β to maximize, such as ``"f2"``.
    n_costs : int, default=8
        How many weightings to try. Each costs one training per fold and one on all rows.
    cv : int, float, splitter object, list of splits or None, default=5
        How rows are held out, as in `ThresholdFClassifier`; None compares and tunes on the training
        scores.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    estimators_ : list of ThresholdFClassifier
        The chosen classifier of each label; None for a constant label.
    targets_ : ndarray of shape (n_labels, n_costs)
        The values of t tried: a missed positive costs 1 + β² - t, a selected negative costs t.
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

    estimator: Any
    _: KW_ONLY
    measure: Any = "f1"
    n_costs: int = 8
    cv: Any = 5
    pos_label: Any = None

    def _fit(self, rows: TrainingData) -> None:
        check_count("n_costs", self.n_costs)
        beta, name = check_fbeta(self._measure()), type(last_step(self.estimator)).__name__
        weight, params = ones_unless(rows.weight, len(rows.columns)), rows.params
        if isinstance(self.estimator, FrozenEstimator):
            raise ValueError(f"estimator must be trained again for each cost, got a {name}")
        routed = get_config()["enable_metadata_routing"]
        if not routed and weight_parameter(self.estimator) is None:
            raise ValueError(f"estimator must take sample_weight in fit, {name} does not")
        if rows.weight is None:
            params = route_fit_params(self, weight, params)
        if "sample_weight" not in params:
            raise ValueError(
                f"{type(self.estimator).__name__} must request sample_weight for fit: "
                "set_fit_request(sample_weight=True)"
            )
        families = [self._fit_family(rows, column, weight, beta) for column in rows.columns.T]
        models, targets, scores = zip(*families, strict=True)
        self.targets_, self.scores_ = np.array(targets), np.array(scores)
        chosen = np.take_along_axis(self.targets_, self.scores_.argmax(axis=1)[:, None], 1)[:, 0]
        self.target_ = np.where([best is None for best in models], np.nan, chosen)
        self._always = rows.columns[weight > 0].any(axis=0)  # positive, of constant labels
        self._show_models(list(models))

    def _fit_family(
        self, rows: TrainingData, column: Bools, weight: Floats, beta: float
    ) -> tuple[ThresholdFClassifier | None, Floats, Floats]:
        """Return the best member for one label, the targets tried, and the F each reached."""
        targets = target_grid(float(weight @ column / weight.sum()), self.n_costs, beta=beta)
        if is_constant(column[weight > 0]):
            return None, targets, np.full(len(targets), np.nan)
        rows, family = replace(rows, labels=Labels.of(column), y=column), []
        for target in targets:  # costs are weights in training only, and not in F
            costs = cost_weights(column, target, beta=beta, weight=rows.weight)
            member = ThresholdFClassifier(self.estimator, measure=self.measure, cv=self.cv)
            params = {**rows.params, "sample_weight": costs}
            family.append(member.learn(member.hold_out(replace(rows, params=params))))
        scores = np.array([member.f_ for member in family])
        return family[scores.argmax()], targets, scores

    def _margin(self, X: Any) -> Floats:
        def read(best: Any) -> Any:
            if self._labels.kind != "multiclass" or best.log_odds_threshold_ is None:
                return best.decision_function(X)
            return logit(best.predict_proba(X)[:, 1]) - best.log_odds_threshold_

        return self._by_label(X, np.where(self._always, np.inf, -np.inf), read)

    def _proba(self, X: Any) -> Floats:
        """Return the probabilities of each label's model, under the costs it was trained with."""
        return self._by_label(X, self._always, lambda best: best.predict_proba(X)[:, 1])

    def _by_label(self, X: Any, certain: Any, read: Callable[[Any], Floats]) -> Floats:
        """Return what is read from each label's model, and the certain value of constant labels."""
        n = int(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))
        pairs = zip(self.estimators_, certain, strict=True)
        columns = [np.full(n, float(c)) if best is None else read(best) for best, c in pairs]
        return np.column_stack(columns)


def target_grid(positive_rate: float, n_costs: int, *, beta: float = 1.0) -> Floats:
    """Return the values of t to try, from 1 down to the F of predicting everything positive.

    The highest F lies between the two. For β = 1 the first value, t = 1, is the unweighted error.

    >>> target_grid(0.2, 3)
    array([1.        , 0.66666667, 0.33333333])
    """
    floor = FBeta(beta).value(positive_rate, 1.0, positive_rate)
    return np.linspace(1.0, floor, check_count("n_costs", n_costs))


def cost_weights(
    y: Bools, target_f: float, *, beta: float = 1.0, weight: Floats | None = None
) -> Floats:
    """Return the weight of each row under the costs of t, scaled to keep the sum of the weights.

    Keeping the sum keeps the meaning of a classifier's own regularization.

    >>> cost_weights(np.array([True, False, False, False]), 0.5)
    array([2.        , 0.66666667, 0.66666667, 0.66666667])
    """
    weight = ones_unless(weight, len(y))
    costs = weight * np.where(y, 1.0 + check_beta(beta) ** 2 - target_f, target_f)
    return np.asarray(costs * (weight.sum() / costs.sum()))
