"""What is asked of the decision-theoretic wing, checked once at the public edge."""

from __future__ import annotations

from dataclasses import dataclass

from argmaxf.measures import Coefficients, Measure, Ratio, as_measure
from argmaxf.validation import check_choice, check_zero_division


@dataclass(frozen=True)
class Question:
    """What to maximize: a measure, the value of 0/0, and whether ties may be split."""

    measure: Ratio
    zero_division: float
    split_ties: bool
    coefficients: Coefficients  # of the measure, as floats: what the kernels take

    @classmethod
    def of(
        cls,
        beta: float = 1.0,
        measure: str | Measure = "fbeta",
        zero_division: float = 0.0,
        ties: str = "split",
    ) -> Question:
        """Check the options of a public function."""
        asked = _expectable(as_measure(measure, beta))
        return cls(
            measure=asked,
            zero_division=check_zero_division(zero_division),
            split_ties=check_choice("ties", ties, ("split", "together")) == "split",
            coefficients=asked.checked(),
        )

    @property
    def beta(self) -> float:
        """The β of F_β; 1 for a measure that has none."""
        return float(getattr(self.measure, "beta", 1.0))


def _expectable(measure: Measure) -> Ratio:
    """Return a measure whose expectation can be maximized."""
    if not isinstance(measure, Ratio):
        raise ValueError(
            f"measure must be a ratio that is linear in the counts (argmaxf.measures.Ratio) for "
            f"its expectation to be known, got {measure!r}"
        )
    return measure
