"""Constraints on a prediction: its least precision and recall, and how much it may select."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

from argmaxf._base.validation import check_choice, check_strictly_between, check_unit_interval


@dataclass(frozen=True)
class Constraints:
    """What is asked of a prediction besides a high F; None where nothing is.

    Attributes
    ----------
    min_precision, min_recall : float or None
        The least precision and recall.
    max_selected_rate : float or None
        The largest part of all rows that may be predicted positive.
    """

    min_precision: float | None = None
    min_recall: float | None = None
    max_selected_rate: float | None = None

    def __post_init__(self) -> None:
        for name, limit in self.given().items():
            check_unit_interval(name, limit)

    @classmethod
    def of(cls, given: Constraints | Mapping[str, float] | None) -> Constraints:
        """Return constraints that may be given by their names."""
        if isinstance(given, Constraints):
            return given
        for name in given or ():
            check_choice("constraints", name, tuple(cls.__dataclass_fields__))
        return cls(**(given or {}))

    def given(self) -> dict[str, float]:
        """Return the constraints that were given, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in named.items() if limit is not None}

    def __str__(self) -> str:
        return ", ".join(
            f"{name}={format_probability(limit)}" for name, limit in self.given().items()
        )


def count_at_rate(rate: float, n: int) -> int:
    """Return how many of n rows are at most a part of them: 29 of 100 for 0.29, not 28."""
    return math.floor(rate * n * (1.0 + 1e-12))  # rounding is no reason to take one less


def format_probability(number: float) -> str:
    """Return a probability in few digits, and in all of them where few would make it 0 or 1."""
    short = f"{number:.12g}"
    return repr(float(number)) if float(short) in (0.0, 1.0) and number != float(short) else short


def format_cost(cost: float, measure: str) -> str:
    """Say what constraints cost, as in "costs 0.02 F1", or that they cost nothing."""
    return f"costs {cost:.4g} {measure}" if cost > 1e-12 else f"costs no {measure}"


def format_level(name: str, number: float, joint: float | None) -> str:
    """Return a named confidence, and that of all segments at once where this is one of them."""
    alone = f"{name} {format_probability(number)}"
    if joint is None:
        return alone
    return f"{alone} ({format_probability(joint)} for all segments at once)"


class ChanceConstraint(NamedTuple):
    """Constraints, and the probability under the model with which they must hold."""

    constraints: Constraints
    confidence_level: float
    joint_confidence_level: float | None = None  # for a segment: that of all segments at once

    @classmethod
    def of(
        cls,
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence_level: float | None = None,
    ) -> ChanceConstraint | None:
        """Check the options of a public function; None where nothing is asked."""
        if min_precision is None and min_recall is None and confidence_level is None:
            return None
        constraints = Constraints(min_precision, min_recall)
        if confidence_level is None:
            raise ValueError(f"{constraints} needs confidence_level, such as 0.95")
        if not constraints.given():
            raise ValueError(
                f"confidence_level={confidence_level} needs min_precision or min_recall"
            )
        why = "0 guarantees nothing, and only certain items reach 1"
        return cls(constraints, check_strictly_between("confidence_level", confidence_level, why))

    def of_each(self, parts: int) -> ChanceConstraint:
        """Return the constraint of each of several independent parts for all to meet it at once."""
        if parts <= 1:
            return self
        each = self.confidence_level ** (1.0 / parts)
        return self._replace(confidence_level=each, joint_confidence_level=self.confidence_level)
