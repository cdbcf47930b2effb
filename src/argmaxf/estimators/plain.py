"""ML^.5: the classifier as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.estimators.wrapping import MetaFClassifier, Training

NEUTRAL = {"predict_proba": 0.5, "decision_function": 0.0}


class PlainClassifier(MetaFClassifier):
    """Any classifier at its own threshold, for every kind of target (ML^.5 in the paper)."""

    def __init__(self, estimator: Any, *, pos_label: Any = None) -> None:
        self.estimator = estimator
        self.pos_label = pos_label

    def _fit(self, rows: Training) -> None:
        params = self._fit_params(rows.weight, rows.all_params())
        self._fit_scorer(rows, params, tuple(NEUTRAL))

    @property
    def threshold_(self) -> float:
        """The threshold on the scores, the same for all labels."""
        return NEUTRAL[self._scorer.method]

    def _margin(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._scorer.predict(X) - self.threshold_)
