"""What models said of rows they had not seen, and those models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf.estimators.scores import LabelScorer


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of a classifier, from which a method that wraps it can be made without a fit.

    `scores` has a block of columns for each of `kinds`: probabilities first where there are any,
    and scores to be cut last. `parts` are the rows that each of `models` has not seen.
    """

    estimator: Any
    model: LabelScorer  # fitted on all rows
    models: list[LabelScorer]
    parts: list[NDArray[np.int64]]
    kinds: tuple[str, ...]
    scores: NDArray[np.float64]
    columns: NDArray[np.bool_]
    weight: NDArray[np.float64] | None

    def kind_of(self, method: str) -> str:
        """Return which of `kinds` was given as this method."""
        return self.kinds[-1 if method == "decision_function" else 0]

    def of_kind(self, kind: str) -> NDArray[np.float64]:
        """Return the scores of one kind."""
        width = self.columns.shape[1]
        start = self.kinds.index(kind) * width
        return self.scores[:, start : start + width]
