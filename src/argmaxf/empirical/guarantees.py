"""Guarantees: constraints on precision, recall and rate that hold in the population.

Rows are independent draws of one population. A guarantee is about the threshold that is chosen:
at the confidence level asked for, over draws of the labelled rows, the constraint holds for new
rows of that population. docs/promises.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binom

from argmaxf._base.messages import how_many
from argmaxf.constraints import Constraints, check_strictly_between, priced, sure
from argmaxf.empirical.ladder import Ints, Passed, Steps, tail, walk
from argmaxf.empirical.rows_needed import MOST_GROWTH, rows_needed


class GuaranteeError(ValueError):
    """No threshold qualifies. `rows` is about how many labelled rows it would take, or infinity."""

    def __init__(self, message: str, rows: float) -> None:
        super().__init__(message)
        self.rows = rows


@dataclass(frozen=True)
class Guarantee:
    """What is guaranteed of a threshold for new rows of the same population.

    Attributes
    ----------
    constraints : Constraints
        The precision and recall it has at least, and the rate of rows it selects at most.
    confidence_level : float
        Probability, over draws of the labelled rows, that all of them hold.
    precision_low, recall_low, rate_high : float or None
        The limits by which they were tested; each is at least as good as its constraint.
    cost : float
        F on the labelled rows given up for the guarantee.
    together : float or None
        Of a segment: the confidence asked for that all segments keep theirs at once, of which
        `confidence_level` is the part of this one.
    """

    constraints: Constraints
    confidence_level: float
    precision_low: float | None
    recall_low: float | None
    rate_high: float | None
    cost: float
    together: float | None = None

    def __str__(self) -> str:
        kept = sure("confidence level", self.confidence_level, self.together)
        return f"{self.constraints} at {kept}, {priced(self.cost)} F"


class Guaranteed(NamedTuple):
    """Cuts that qualify: what they hold, and the level at which their precision was tested."""

    edge: NDArray[Any]
    true: Ints
    false: Ints
    level: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> Guaranteed:
        """Return some of the cuts."""
        return Guaranteed(
            self.edge[chosen], self.true[chosen], self.false[chosen], self.level[chosen]
        )

    def with_more(self, cuts: list[tuple[Any, int, int, float]]) -> Guaranteed:
        """Return these cuts and others, shortest first."""
        columns = [np.append(*each) for each in zip(self, zip(*cuts, strict=True), strict=True)]
        order = np.argsort(columns[1] + columns[2], kind="stable")
        return Guaranteed(*(column[order] for column in columns))


def check_confidence_level(confidence_level: float) -> float:
    """Return a confidence level, which must lie strictly between 0 and 1."""
    return check_strictly_between(
        "confidence_level", confidence_level, "no finite number of rows makes it certain"
    )


def guaranteed_cuts(
    steps: Steps, constraints: Constraints, confidence_level: float, together: float | None = None
) -> Guaranteed:
    """Return the cuts for which all constraints hold with confidence, whichever is then chosen.

    Of cuts that differ in negatives alone, the shortest that qualifies. Raises a `GuaranteeError`
    where there is none. The risk 1 - confidence_level is shared evenly among the constraints;
    `together` is the confidence level of all segments at once, for messages only.
    """
    share = (1.0 - confidence_level) / max(1, len(constraints.given()))
    cuts = _precise(steps, constraints.min_precision, share)
    enough = cuts.true >= least_true(steps, constraints.min_recall, share)
    few = cuts.true + cuts.false <= most_selected(steps, constraints.max_selected_rate, share)
    if not (enough & few).any():
        chance = sure("confidence level", confidence_level, together)
        asked = f"{constraints} cannot be guaranteed at {chance}"
        raise _none_qualifies(asked, steps, constraints, share)
    return cuts.where(enough & few)


def _precise(steps: Steps, limit: float | None, share: float) -> Guaranteed:
    """Return the cuts whose precision is guaranteed, shortest first."""
    if not limit:
        level = np.zeros(steps.true.size)
        return Guaranteed(steps.edge, steps.true, steps.false, level)
    stretches = walk(steps, limit, share)
    level = np.zeros(steps.edge.size)
    for each in stretches:
        np.maximum(level[each.first : each.end], each.level, out=level[each.first : each.end])
    found = Guaranteed(steps.edge, steps.true, steps.false, level).where(level > 0)
    between = [cut for each in stretches for cut in _among_negatives(steps, each, limit)]
    return found.with_more(between) if between else found


def _among_negatives(
    steps: Steps, stretch: Passed, limit: float
) -> Iterator[tuple[Any, int, int, float]]:
    """Yield the first cut of a stretch that starts among negatives, equal scores unsplit."""
    held, above = steps.before(stretch.first)
    if held + above < stretch.rank:
        return
    edge = steps.negative[held - stretch.rank]
    false = steps.negative.size - int(np.searchsorted(steps.negative, edge))
    if tail(held, false, limit) <= stretch.level:
        yield edge, held, false, stretch.level


def least_true(steps: Steps, min_recall: float | None, share: float) -> float:
    """Return how many of the S positives a cut must hold: least j with P(Bin(S, r) ≥ j) ≤ share.

    Recall only grows as the threshold falls, so this one test covers every cut.
    """
    if not min_recall:
        return 0
    positives = int(steps.true[-1]) if steps.true.size else 0
    return math.inf if min_recall == 1 else float(binom.isf(share, positives, min_recall)) + 1


def most_selected(steps: Steps, max_rate: float | None, share: float) -> float:
    """Return how many of the n rows a cut may hold: the most j with P(Bin(n, q) ≤ j) ≤ share."""
    if max_rate is None or max_rate == 1:
        return math.inf
    most = float(binom.ppf(share, steps.n, max_rate))
    return most if binom.cdf(most, steps.n, max_rate) <= share else most - 1


def guarantee_of(
    cuts: Guaranteed,
    i: int,
    steps: Steps,
    constraints: Constraints,
    confidence_level: float,
    cost: float,
) -> Guarantee:
    """Return what is guaranteed of the i-th cut, with the exact limits by which it was tested."""
    share = (1.0 - confidence_level) / max(1, len(constraints.given()))
    true, size = int(cuts.true[i]), int(cuts.true[i] + cuts.false[i])
    positives = int(steps.true[-1])
    precision = float(low_limit(true, size, cuts.level[i])) if constraints.min_precision else None
    recall = float(low_limit(true, positives, share)) if constraints.min_recall else None
    rate = None
    if constraints.max_selected_rate is not None:
        rate = 1.0 - float(low_limit(steps.n - size, steps.n, share))
    return Guarantee(constraints, confidence_level, precision, recall, rate, cost)


class Limits(NamedTuple):
    """The limits by which each distinct score's cut is tested, rising with the score.

    None for a constraint that was not given; of a precision NaN where the walk does not come.
    """

    precision_low: NDArray[np.float64] | None = None
    recall_low: NDArray[np.float64] | None = None
    rate_high: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        y: NDArray[np.bool_],
        score: NDArray[Any],
        constraints: Constraints,
        confidence_level: float | None,
    ) -> Limits:
        """Return the limits of every cut; none of them without a confidence."""
        if confidence_level is None:
            return cls()
        value, count = np.unique(score, return_counts=True)
        size = np.cumsum(count[::-1])[::-1]
        positive = np.sort(score[y])
        true = positive.size - np.searchsorted(positive, value)
        share = (1.0 - confidence_level) / max(1, len(constraints.given()))
        precision = recall = rate = None
        if limit := constraints.min_precision:
            precision = low_limit(true, size, _levels(Steps.of(y, score), size, limit, share))
        if constraints.min_recall:
            recall = low_limit(true, positive.size, share)
        if constraints.max_selected_rate is not None:
            rate = 1.0 - low_limit(y.size - size, y.size, share)
        return cls(precision, recall, rate)


def _levels(steps: Steps, size: Ints, limit: float, share: float) -> NDArray[np.float64]:
    """Return the levels at which the walk tests cuts of these sizes, NaN where it does not come."""
    level = np.full(size.size, np.nan)
    for stretch in walk(steps, limit, share):
        end = stretch.end
        last = steps.n if end == steps.edge.size else int(steps.size[end]) - 1
        here = (size >= stretch.rank) & (size <= last)
        level[here] = np.fmax(level[here], stretch.level)
    return level


def low_limit(true: Any, size: Any, level: Any) -> Any:
    """Return Clopper and Pearson's lower limit of a proportion of `true` in `size`."""
    true, size = np.asarray(true, np.float64), np.asarray(size, np.float64)
    limit = betaincinv(np.maximum(true, 1.0), size - true + 1.0, level)
    return np.where(true > 0, limit, 0.0)[()]


def _none_qualifies(
    chance: str, steps: Steps, constraints: Constraints, share: float
) -> GuaranteeError:
    """Say that no threshold qualifies, and how many labelled rows would do."""
    rows = rows_needed(steps, constraints, share)
    if math.isfinite(rows):
        advice = f"about {_rounded(rows):,} would do, if they are like these"
    else:
        times = f"{MOST_GROWTH:,.0f} times as many like these"
        advice = f"and {times} would not do: no cut of them meets it clearly"
    return GuaranteeError(f"{chance} from {how_many(steps.n, 'labelled row')}; {advice}", rows)


def raise_together(kind: str | None, failed: list[tuple[Any, GuaranteeError]]) -> None:
    """Raise what failed as one error, naming the labels or segments; nothing failed, nothing is."""
    if not failed:
        return
    name, first = failed[0]
    if kind is None:
        raise first
    name = name.item() if isinstance(name, np.generic) else name
    others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    rows = max(error.rows for _, error in failed)
    raise GuaranteeError(f"{kind} {name!r}{others}: {first}", rows)


def _rounded(rows: float) -> int:
    """Return a number of rows to two digits, rounded up: it is an estimate."""
    unit = 10.0 ** (math.floor(math.log10(rows)) - 1)
    return math.ceil(math.ceil(rows / unit) * unit)
