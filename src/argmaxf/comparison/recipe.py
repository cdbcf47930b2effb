"""What every method of one comparison is made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argmaxf.constraints import Constraints
from argmaxf.measures import Measure, MeasureLike, as_measure

UNLIMITED = Constraints()


@dataclass(frozen=True)
class Recipe:
    """What every method of one comparison is made with."""

    beta: float = 1.0
    measure: MeasureLike = "fbeta"
    pos_label: Any = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = 0
    constraints: Constraints = UNLIMITED
    confidence_level: float | None = None
    deploy_rate: Any = None  # where it will predict: rates, or "estimate"

    def checked(self) -> Recipe:
        """Return it if it can be followed: a promise says both what and how surely."""
        if (self.confidence_level is None) != (not self.constraints.given()):
            raise ValueError(
                "a promise needs both a constraint and a confidence level, got "
                f"{str(self.constraints) or 'none'} and confidence_level={self.confidence_level}"
            )
        return self

    @property
    def chance(self) -> Measure:
        """The measure to be maximized."""
        return as_measure(self.measure, self.beta)

    @property
    def goal(self) -> dict[str, Any]:
        """What is to be maximized, as the estimators are told."""
        other = {} if self.measure == "fbeta" else {"measure": self.measure}
        return {"beta": self.beta, "pos_label": self.pos_label, **other}

    @property
    def tuning(self) -> dict[str, Any]:
        """How held-out scores come about."""
        return {"cv": self.cv, "n_jobs": self.n_jobs, "random_state": self.random_state}
