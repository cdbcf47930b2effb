"""Linear classifiers trained for F: a linear score for each label, and a threshold on it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import as_weights, refuse_missing
from argmaxf.empirical.soft_f import LinearModel, SoftF, fit_soft_f
from argmaxf.empirical.svmperf import MarginF, fit_margin_f
from argmaxf.estimators.calibration import Calibrated
from argmaxf.estimators.fixed_rule import FixedRule, linear_scorer, margin
from argmaxf.estimators.labels import counted
from argmaxf.estimators.meta import FClassifier, best_thresholds
from argmaxf.measures import FBeta, Measure


class LinearFClassifier(FClassifier):
    """A linear score per label, trained one label at a time, with tuned thresholds.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the scores.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts of the scores.
    """

    models_: list[Any]
    standardize: bool = False
    fit_intercept: bool

    @abstractmethod
    def _fit_label(self, X: Any, y: Bools, weight: Floats | None) -> LinearModel:
        """Return the score trained for one label that has both positives and negatives."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients, then the thresholds, for each label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target. Labels are fitted in parallel
            inside ``joblib.parallel_config(n_jobs=4)``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        refuse_missing("y", y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        weight = as_weights(sample_weight, X.shape[0])
        if weight is not None and not weight.all():  # rows of weight zero count for nothing
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        columns = self._read_target(y).columns(y)
        scaled, scale = X, None
        if self.standardize:
            centred = self.fit_intercept and not sparse.issparse(X)
            scale = StandardScaler(with_mean=centred).fit(X, sample_weight=weight)
            scaled = scale.transform(X)
        models = Parallel()(
            delayed(self._fit_column)(scaled, column, weight) for column in columns.T
        )
        self.models_ = models if scale is None else [_unscaled(model, scale) for model in models]
        self.coef_, self.intercept_, self.n_iter_ = (
            np.array([getattr(model, name) for model in self.models_])
            for name in ("coef", "intercept", "n_iter")
        )
        best = best_thresholds(columns, self._scores(X), weight, self._measure(), "macro")
        pairs = zip(self.models_, best.threshold, strict=True)  # some learn it with the score
        learned = np.array([tuned if m.threshold is None else m.threshold for m, tuned in pairs])
        self.threshold_ = self._for_target(learned)
        linear = linear_scorer(self._labels, self.coef_, self.intercept_)
        member, seen = Calibrated([linear], "decision_function"), counted(columns, weight)
        self._rule = FixedRule(self._labels, [member], learned, seen=seen)
        for found, message, category in self._problems():
            names = [str(n) for n, each in zip(self._labels.names, found, strict=True) if each]
            if names:
                warnings.warn(message.format(", ".join(names)), category, stacklevel=2)
        return self

    def _problems(self) -> list[tuple[list[bool], str, type[Warning]]]:
        """Return what may be wrong: with which models, a message, and the kind of warning."""
        stopped = (
            "training stopped before it converged, for {}: raise max_iter, scale the features, or "
            "regularize more"
        )
        return [([not model.converged for model in self.models_], stopped, ConvergenceWarning)]

    def _options(self) -> dict[str, Any]:
        """Return the options of training; the measure is given in the form that it takes."""
        given: dict[str, Any] = self.get_params(deep=False)
        return {n: v for n, v in given.items() if n not in ("pos_label", "standardize", "measure")}

    def _fit_column(self, X: Any, column: Bools, weight: Any) -> LinearModel:
        if is_constant(column):
            return LinearModel(np.zeros(X.shape[1]), n_iter=1)
        return self._fit_label(X, column, weight)

    def _scores(self, X: Any) -> Floats:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _margin(self, X: Any) -> Floats:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return margin(self._scores(X), self.threshold_)


def _unscaled(model: LinearModel, scale: StandardScaler) -> LinearModel:
    """Return a score of scaled features as one of the features themselves."""
    coef = model.coef / scale.scale_
    shift = coef @ scale.mean_ if scale.with_mean else 0.0
    return replace(model, coef=coef, intercept=model.intercept - float(shift))


def is_constant(column: Bools) -> bool:
    """Whether a label has positives only or negatives only."""
    return bool(column.all() or not column.any())


def check_fbeta(measure: Measure) -> float:
    """Return the β of a measure that must be F_β."""
    if not isinstance(measure, FBeta) or measure.smooth:
        raise ValueError(f"measure must be F_β here, such as 'f1' or 'f2', got {measure!r}")
    return measure.beta


@dataclass(eq=False, repr=False)
class SoftFClassifier(LinearFClassifier):
    """A linear classifier trained to maximize F_β itself (Jansche 2005; F^δ in the paper).

    Training maximizes F_β with each decision replaced by its probability, by L-BFGS from zero; then
    the threshold is set to the exact best on the training scores. One model per label.

    Parameters
    ----------
    measure : str, Measure or callable, default="f1"
        What to train for: F_β such as ``"f2"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    standardize : bool, default=True
        Whether to train on standardized features, as the penalty and L-BFGS need: mean 0 and
        variance 1; variance 1 only for sparse features and without an intercept. Coefficients are
        those of the original features.
    alpha : float, default=None
        Strength of the penalty α/2 ‖w‖² beside a soft F of at most 1; None is 1/n.
    sharpness : float, default=None
        γ of the steep sigmoid I^γ(p - δ) of section 3.1; its δ is learned with the weights and not
        tuned. The paper found it to overfit. None is soft F itself.
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    penalize_intercept : bool, default=False
        Whether the penalty includes it, as the paper's dummy attribute.
    tol : float, default=1e-4
        Stop when no partial derivative exceeds `tol` times the soft F that was reached.
    max_iter : int, default=1000
        Maximum number of steps of L-BFGS.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    coef_, intercept_ : as in `LinearFClassifier`
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on the scores ``X @ coef_.T + intercept_``, which are log-odds;
        `decision_function` is the score minus the threshold.
    models_ : list of SoftF
        How training went, for each label: `value` (soft F reached), `n_iter`, `converged`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import f1_score
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = SoftFClassifier().fit(X, y)
    >>> print(f"{f1_score(y, model.predict(X)):.2f}")
    0.86
    """

    _: KW_ONLY
    measure: Any = "f1"
    standardize: bool = True
    alpha: float | None = None
    sharpness: float | None = None
    fit_intercept: bool = True
    penalize_intercept: bool = False
    tol: float = 1e-4
    max_iter: int = 1000
    pos_label: Any = None

    def _fit_label(self, X: Any, y: Bools, weight: Floats | None) -> SoftF:
        how: dict[str, Any] = {"measure": self._measure(), "sample_weight": weight}
        return fit_soft_f(X, y, **how, **self._options())


@dataclass(eq=False, repr=False)
class MarginFClassifier(LinearFClassifier):
    """A linear support vector machine for F_β (Joachims 2005, "SVMperf"); experimental.

    The convex upper bound on 1 - F_β is minimized by cutting planes, to a proven duality gap; then
    the threshold is set to the exact best on the training scores. One model per label. It needs
    clarabel: ``pip install 'argmaxf[svmperf]'``.

    The bound is only useful where the classes are well separated: where more than about half of
    what any line selects is negative, the optimum is weights of zero. `fit` then warns;
    `SoftFClassifier` has no such limit.

    Parameters
    ----------
    measure : str or FBeta, default="f1"
        The F_β to train for, such as ``"f2"``.
    C : float, default=1.0
        Cost of a loss of F, on the scale of `LinearSVC(loss="hinge")`.
    fit_intercept : bool, default=True
        Whether to add an attribute that is always 1; its weight is penalized as others.
    tol : float, default=1e-3
        Stop when the duality gap is at most `tol` times the objective.
    max_iter : int, default=5000
        Most cutting planes.
    verbose : bool, default=False
        Print the objective and the gap every 50 planes.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    coef_, intercept_ : as in `LinearFClassifier`
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on the scores ``X @ coef_.T + intercept_``; `decision_function` is the score
        minus the threshold.
    models_ : list of MarginF
        How training went, for each label: `objective`, `gap`, `n_iter`, `converged`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import f1_score
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = MarginFClassifier().fit(X, y)
    >>> print(f"{f1_score(y, model.predict(X)):.2f}")
    0.77
    """

    _: KW_ONLY
    measure: Any = "f1"
    C: float = 1.0
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 5000
    verbose: bool = False
    pos_label: Any = None

    def _problems(self) -> list[tuple[list[bool], str, type[Warning]]]:
        zero = [isinstance(m, MarginF) and m.converged and not m.coef.any() for m in self.models_]
        overlap = (
            "the classes overlap too much for a margin, for {}: all weights are zero "
            "(SoftFClassifier has no such limit)"
        )
        return [*super()._problems(), (zero, overlap, UserWarning)]

    def _fit_label(self, X: Any, y: Bools, weight: Floats | None) -> MarginF:
        beta = check_fbeta(self._measure())
        return fit_margin_f(X, y, beta=beta, sample_weight=weight, **self._options())
