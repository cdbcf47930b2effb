"""The record every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MultilabelData:
    """A data set with its published split: attributes X (dense or CSR) and 0/1 labels Y."""

    name: str
    X_train: Any
    Y_train: NDArray[np.int8]
    X_test: Any
    Y_test: NDArray[np.int8]
    features: tuple[str, ...]
    labels: tuple[str, ...]

    def usable(self, at_least: int) -> NDArray[np.intp]:
        """Return the labels with this many positives (the paper's C) in both parts."""
        fewest = np.minimum(self.Y_train.sum(axis=0), self.Y_test.sum(axis=0))
        return np.flatnonzero(fewest >= at_least)
