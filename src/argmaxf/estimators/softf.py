"""F^δ: a linear-logistic model trained on soft F, its threshold tuned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from argmaxf.empirical.soft_f import SoftF, fit_soft_f
from argmaxf.estimators.linear import LinearFClassifier


class SoftFClassifier(LinearFClassifier):
    """A linear classifier trained to maximize F_β itself (Jansche 2005; F^δ in the paper).

    Training maximizes F_β with each decision replaced by its probability, by L-BFGS from zero; then
    the threshold is set to the exact best on the training scores. One model per label.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        What to train for: ``"fbeta"``, ``"jaccard"``, or a ratio of `argmaxf.measures`.
    standardize : bool, default=True
        Whether to train on features brought to one scale, as the penalty and L-BFGS want them:
        mean 0 and variance 1, sparse ones, and those of a score without intercept, variance 1
        only. Coefficients are those of the features as they are given.
    alpha : float, default=None
        Strength of the penalty α/2 ‖w‖² beside a soft F of at most 1; None is 1/n.
    sharpness : float, default=None
        γ of the steep sigmoid I^γ(p - δ) of section 3.1; its δ is learned with the weights and not
        tuned. The paper found it to overfit. None is soft F itself.
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    penalize_intercept : bool, default=False
        Whether the penalty counts it, as the paper's dummy attribute.
    tol : float, default=1e-4
        End where no slope exceeds `tol` times the soft F reached.
    max_iter : int, default=1000
        Most steps of L-BFGS.
    pos_label : object, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the labels.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the scores.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts of the scores.
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on the scores, which are log-odds; a number for a binary target.
    models_ : list of SoftF
        How training went, for each label: `value` (soft F reached), `n_iter`, `converged`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import f1_score
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = SoftFClassifier().fit(X, y)
    >>> bool(f1_score(y, model.predict(X)) > 0.8)
    True
    """

    def __init__(
        self,
        *,
        beta: float = 1.0,
        measure: Any = "fbeta",
        standardize: bool = True,
        alpha: float | None = None,
        sharpness: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int = 1000,
        pos_label: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.measure = measure
        self.standardize = standardize
        self.alpha = alpha
        self.sharpness = sharpness
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.n_jobs = n_jobs

    def _scale(self, X: Any, weight: Any) -> StandardScaler | None:
        if not self.standardize:
            return None
        centred = self.fit_intercept and not sparse.issparse(X)
        return StandardScaler(with_mean=centred).fit(X, sample_weight=weight)

    def _fit_label(self, X: Any, y: NDArray[np.bool_], weight: NDArray[np.float64] | None) -> SoftF:
        return fit_soft_f(
            X,
            y,
            measure=self._asked(),
            alpha=self.alpha,
            sharpness=self.sharpness,
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.penalize_intercept,
            sample_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
        )
