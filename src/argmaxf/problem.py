"""What to maximize under a model of the labels, checked once at the public edge."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from argmaxf._base.validation import check_choice, check_whole, check_zero_division, how_many
from argmaxf.constraints import ChanceConstraint
from argmaxf.measures import (
    MEASURES,
    Coefficients,
    FBeta,
    Linear,
    Measure,
    MeasureLike,
    Ratio,
    as_measure,
)

NO_LIMIT = 2**62  # more items than there can be
FROZEN = frozenset(MEASURES.values())  # measures that are what they are


@dataclass(frozen=True)
class Problem:
    """What to maximize: a measure, the value of 0/0, whether ties may be split, limits."""

    measure: Measure
    zero_division: float
    split_ties: bool
    ratio: Coefficients | None  # of a measure that is a ratio, as floats: what the kernels take
    least: int = 0  # items selected, at least and at most
    most: int = NO_LIMIT
    chance: ChanceConstraint | None = None  # the constraints, and their confidence level

    @classmethod
    def of(
        cls,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
        ties: str = "split",
        min_selected: int | None = None,
        max_selected: int | None = None,
        chance: ChanceConstraint | None = None,
    ) -> Problem:
        """Check the options of a public function; the usual ones are checked once."""
        options = (beta, measure, zero_division, ties, min_selected, max_selected, chance)
        if isinstance(measure, str) or type(measure) in FROZEN:  # others may change
            with suppress(TypeError):  # what cannot be hashed
                return _kept(*options)
        return _checked(*options)

    @property
    def coefficients(self) -> Coefficients:
        """The coefficients of the measure, where only a ratio will do."""
        if self.ratio is None:
            raise ValueError(
                "measure must be a ratio that is linear in the counts (argmaxf.measures.Ratio, no "
                f"coefficient below 0) here, got {self.measure!r}"
            )
        return self.ratio

    @property
    def word(self) -> str:
        """What the value is called where β is known: F, else the name of the measure."""
        plain = isinstance(self.measure, FBeta) and not self.measure.smooth
        return "F" if plain else str(self.measure)

    @property
    def is_linear(self) -> bool:
        """Whether the measure is linear in true positives."""
        return isinstance(self.measure, Linear)

    @property
    def needs_items(self) -> bool:
        """Whether no summary will do: the expectation is found from all counts of the items."""
        return self.ratio is None and not self.is_linear

    @property
    def is_free(self) -> bool:
        """Whether any number of items may be selected."""
        return self.least == 0 and self.most == NO_LIMIT

    @property
    def rises_at_the_top(self) -> bool:
        """Whether f rises among equal items at the top.

        There f_k = E[c k y_1 / x], all labels being alike; k / x rises with every item taken in,
        which adds 1 + (b_in - b_out) y to x ≥ k. Smoothing (s0 > 0) favours the empty set, b_in >
        b_out small ones: nothing is said then, nor of precision (b_out = 0), which stays the same.
        """
        _, b_in, b_out, s0, _ = self.coefficients
        return bool(s0 == 0.0 and b_in <= b_out and b_out > 0.0)

    @property
    def peaks_between_levels(self) -> bool:
        """Whether no set that parts a run of equal items is better than both that do not.

        So it is for F_β and Dice; proof in docs/background/algorithm.md, section 6.
        """
        _, b_in, b_out, _, _ = self.coefficients
        return bool(b_in == b_out > 0.0)

    @property
    def may_split(self) -> bool:
        """Whether the best set may part equal items: for a limit, or as the measure has it."""
        free = self.is_free and self.chance is None
        return self.split_ties and not (free and self.ratio and self.peaks_between_levels)

    def check_reachable(self, positive: int, where: str = "") -> None:
        """Refuse to select more items than there are with a probability above 0, here or there."""
        if self.least > positive:
            raise ValueError(
                f"min_selected={self.least} is more than the {how_many(positive, 'item')} with a "
                f"probability above 0{where}"
            )

    def no_set(self) -> ValueError:
        """Say that equal probabilities on one side leave no set within the limits."""
        return ValueError(
            f"no set of {self.least} to {self.most} items keeps equal probabilities together; "
            "ties='split' may select only some of them"
        )

    @property
    def beta(self) -> float:
        """The β of F_β; 1 for a measure that has none."""
        return float(getattr(self.measure, "beta", 1.0))


def _checked(*options: Any) -> Problem:
    """Return the problem that the options of `Problem.of` state, or say which of them is wrong."""
    beta, measure, zero_division, ties, min_selected, max_selected, chance = options
    goal = as_measure(measure, beta)
    least = 0 if min_selected is None else check_whole("min_selected", min_selected)
    most = NO_LIMIT if max_selected is None else check_whole("max_selected", max_selected)
    if least > most:
        raise ValueError(
            f"min_selected must be at most max_selected, got {min_selected!r} and {max_selected!r}"
        )
    return Problem(
        least=least,
        most=most,
        measure=goal,
        zero_division=check_zero_division(zero_division),
        split_ties=check_choice("ties", ties, ("split", "together")) == "split",
        ratio=goal.checked() if isinstance(goal, Ratio) and not goal.tilts_up else None,
        chance=chance,
    )


_kept = lru_cache(maxsize=256, typed=True)(_checked)
