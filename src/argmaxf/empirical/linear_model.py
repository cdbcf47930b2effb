"""Linear scores X w + b: what training hands over, and the two products it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """A trained score `X @ coef + intercept`.

    `threshold` is the one learned with it, None where it is left to be tuned.
    """

    coef: Vector
    intercept: float = 0.0
    threshold: float | None = None
    n_iter: int = 0
    converged: bool = True


@dataclass(frozen=True)
class Scores:
    """X w + b as a linear map of one vector, w and then b, for dense and sparse X."""

    X: Any
    fit_intercept: bool

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return int(self.X.shape[1]) + self.fit_intercept

    def split(self, parameters: Vector) -> tuple[Vector, float]:
        """Return w and b."""
        d = self.X.shape[1]
        return parameters[:d], float(parameters[d]) if self.fit_intercept else 0.0

    def __call__(self, parameters: Vector) -> Vector:
        """Return X w + b."""
        coef, intercept = self.split(parameters)
        return np.asarray(self.X @ coef + intercept)

    def pull(self, by_score: Vector) -> Vector:
        """Return the transposed product: a derivative in the scores as one in the parameters."""
        by_coef = np.asarray(self._transposed @ by_score)
        return np.append(by_coef, by_score.sum()) if self.fit_intercept else by_coef

    @cached_property
    def _transposed(self) -> Any:
        return self.X.T
