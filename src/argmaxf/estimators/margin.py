"""SVMperf: a linear support vector machine whose loss is 1 - F, its threshold tuned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.empirical.linear_model import LinearModel
from argmaxf.empirical.svmperf import MarginF, fit_margin_f
from argmaxf.estimators.linear import Complaint, LinearFClassifier


def _says_nothing(model: LinearModel) -> bool:
    """Whether weights zero are the optimum; a constant label has them without any training."""
    return isinstance(model, MarginF) and model.converged and not model.coef.any()


class MarginFClassifier(LinearFClassifier):
    """A linear support vector machine for F_β (Joachims 2005, "SVMperf").

    The convex upper bound on 1 - F_β is minimized by cutting planes, to a proven duality gap; then
    the threshold is set to the exact best on the training scores. One model per label.

    The bound is only of use where the classes can be told apart well: where more than about half of
    what any line selects is negative, no line has a better bound than the weights zero, which say
    nothing. That is warned of; `SoftFClassifier` has no such limit.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of recall against precision.
    C : float, default=1.0
        Cost of a loss of F, on the scale of `LinearSVC(loss="hinge")`.
    fit_intercept : bool, default=True
        Whether to add an attribute that is always 1; its weight is penalized as others.
    tol : float, default=1e-3
        End when the duality gap is at most `tol` times the objective.
    max_iter : int, default=5000
        Most planes to lay.
    verbose : bool, default=False
        Print the objective and the gap every 50 planes.
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
        The threshold on the scores; a number for a binary target.
    models_ : list of MarginF
        How training went, for each label: `objective`, `gap`, `n_iter`, `converged`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import f1_score
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = MarginFClassifier().fit(X, y)
    >>> bool(f1_score(y, model.predict(X)) > 0.7)
    True
    """

    _complaints = (
        *LinearFClassifier._complaints,
        Complaint(
            _says_nothing,
            "the classes overlap too much for a margin, for {}: all weights are zero "
            "(SoftFClassifier has no such limit)",
        ),
    )

    def __init__(
        self,
        *,
        beta: float = 1.0,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 5000,
        verbose: bool = False,
        pos_label: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.pos_label = pos_label
        self.n_jobs = n_jobs

    def _fit_label(
        self, X: Any, y: NDArray[np.bool_], weight: NDArray[np.float64] | None
    ) -> MarginF:
        return fit_margin_f(
            X,
            y,
            beta=self.beta,
            C=self.C,
            fit_intercept=self.fit_intercept,
            sample_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=self.verbose,
        )
