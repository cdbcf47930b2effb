"""Guarantees: constraints on precision, recall and rate that hold in the population.

Rows are independent draws of one population. A guarantee is about the threshold that is chosen:
at the confidence level asked for, over draws of the labelled rows, the constraint holds for new
rows of that population. Precision is tested in a fixed sequence (`fixed_sequence`); recall and rate
only grow as the threshold falls, so that one exact test covers every cut. docs/promises.md has the
proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binom

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.messages import how_many
from argmaxf.constraints import Constraints, check_strictly_between, format_cost, format_level
from argmaxf.empirical.cuts import Cuts, rated
from argmaxf.empirical.fixed_sequence import (
    MOST_GROWTH,
    Passed,
    Steps,
    passed_cuts,
    rows_needed,
    tail,
)
from argmaxf.measures import Measure


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
    joint_confidence_level : float or None
        For a segment: the confidence level of all segments at once, from which `confidence_level`
        of this segment follows.
    """

    constraints: Constraints
    confidence_level: float
    precision_low: float | None
    recall_low: float | None
    rate_high: float | None
    cost: float
    joint_confidence_level: float | None = None

    def __str__(self) -> str:
        level = format_level("confidence level", self.confidence_level, self.joint_confidence_level)
        return f"{self.constraints} at {level}, {format_cost(self.cost)} F"


def check_can_be_guaranteed(
    constraints: Constraints, average: str | None, weight: Any, confidence_level: float
) -> None:
    """Refuse what no guarantee can be given for."""
    why = "no finite number of rows makes it certain"
    check_strictly_between("confidence_level", confidence_level, why)
    if not constraints.given():
        raise ValueError(
            f"confidence_level={confidence_level} needs min_precision, min_recall or "
            "max_selected_rate"
        )
    if average in ("micro", "samples"):
        raise ValueError(
            "confidence_level needs independent items, and the cells of a row are not: average "
            f"must be 'macro', got {average!r}"
        )
    if weight is not None and weight.min() < weight.max():
        raise ValueError(
            "confidence_level needs rows of one weight: its tests count rows, and a weighted share "
            f"of them has no known distribution; got weights from {weight.min():g} to "
            f"{weight.max():g}"
        )


def refuse_groups() -> NoReturn:
    """Refuse a guarantee from rows that depend on each other."""
    raise ValueError(
        "confidence_level needs independent rows, and rows of one group are not: fit on one row of "
        "each group, without groups, or leave out confidence_level"
    )


def best_guaranteed(
    y: Any,
    score: Any,
    constraints: Constraints,
    confidence_level: float,
    measure: Measure,
    zero_division: float,
    joint: float | None = None,
) -> tuple[Cuts, int, Guarantee]:
    """Return the cuts that qualify, which of them is the best, and what is guaranteed of it.

    `joint` is the confidence level of all segments at once, where this is one of them.
    """
    steps = Steps.of(y, score)
    found = guaranteed_cuts(steps, constraints, confidence_level, joint)
    counts = y.sum(), y.size, measure, zero_division
    cuts = rated(found.edge, found.true, found.false, *counts, empty_first=False)
    i = int(np.argmax(cuts.value))
    free = rated(steps.edge, steps.true, steps.false, *counts).value.max(initial=0.0)
    true, size = int(found.true[i]), int(found.true[i] + found.false[i])
    share = _share(constraints, confidence_level)
    held = true, size, steps.positives, steps.n
    limits = _limits_of(*held, found.level[i], constraints, share)
    low, recall, rate = (None if each is None else float(each) for each in limits)
    cost = max(0.0, float(free - cuts.value[i]))
    return cuts, i, Guarantee(constraints, confidence_level, low, recall, rate, cost, joint)


class GuaranteedCuts(NamedTuple):
    """Cuts that qualify: what they hold, and the level at which their precision was tested."""

    edge: NDArray[Any]
    true: Ints
    false: Ints
    level: Floats

    def where(self, chosen: Bools) -> GuaranteedCuts:
        """Return some of the cuts."""
        return GuaranteedCuts(*(np.asarray(column)[chosen] for column in self))

    def with_more(self, cuts: list[tuple[Any, int, int, float]]) -> GuaranteedCuts:
        """Return these cuts and others, shortest first."""
        columns = [np.append(*each) for each in zip(self, zip(*cuts, strict=True), strict=True)]
        order = np.argsort(columns[1] + columns[2], kind="stable")
        return GuaranteedCuts(*(column[order] for column in columns))


def guaranteed_cuts(
    steps: Steps, constraints: Constraints, confidence_level: float, joint: float | None = None
) -> GuaranteedCuts:
    """Return the cuts for which all constraints are guaranteed, whichever is then chosen.

    Of cuts that differ in negatives alone, the shortest that qualifies. Raises a `GuaranteeError`
    where there is none. The risk 1 - confidence_level is shared evenly among the constraints;
    `joint` is the confidence level of all segments at once, for messages only.
    """
    share = _share(constraints, confidence_level)
    cuts = _precise(steps, constraints.min_precision, share)
    enough = cuts.true >= least_true(steps.positives, constraints.min_recall, share)
    few = cuts.true + cuts.false <= most_selected(steps.n, constraints.max_selected_rate, share)
    if not (enough & few).any():
        level = format_level("confidence level", confidence_level, joint)
        rows = rows_needed(steps, constraints, share)
        times = f"and {MOST_GROWTH:,.0f} times as many like these would not do: no cut of them"
        advice = f"{times} meets it clearly"
        if math.isfinite(rows):
            advice = f"about {_rounded(rows):,} would do, if they are like these"
        labelled = how_many(steps.n, "labelled row")
        raise GuaranteeError(
            f"{constraints} cannot be guaranteed at {level} from {labelled}; {advice}", rows
        )
    return cuts.where(enough & few)


def _share(constraints: Constraints, confidence_level: float) -> float:
    """Return the risk of each constraint."""
    return (1.0 - confidence_level) / max(1, len(constraints.given()))


def _precise(steps: Steps, limit: float | None, share: float) -> GuaranteedCuts:
    """Return the cuts whose precision is guaranteed, shortest first."""
    level = np.zeros(steps.edge.size)
    every = GuaranteedCuts(steps.edge, steps.true, steps.false, level)
    if not limit:
        return every
    runs = passed_cuts(steps, limit, share)
    for run in runs:
        np.maximum(level[run.first : run.end], run.level, out=level[run.first : run.end])
    found = every.where(level > 0)
    between = [cut for run in runs for cut in _among_negatives(steps, run, limit)]
    return found.with_more(between) if between else found


def _among_negatives(
    steps: Steps, run: Passed, limit: float
) -> Iterator[tuple[Any, int, int, float]]:
    """Yield the first cut of a run that starts among negatives, equal scores unsplit."""
    held, above = steps.before(run.first)
    if held + above < run.rank:
        return
    edge = steps.negative[held - run.rank]
    false = steps.negative.size - int(np.searchsorted(steps.negative, edge))
    if tail(held, false, limit) <= run.level:
        yield edge, held, false, run.level


def least_true(positives: int, min_recall: float | None, share: float) -> float:
    """Return how many of the S positives a cut must hold: least j with P(Bin(S, r) ≥ j) ≤ share."""
    if not min_recall:
        return 0
    return math.inf if min_recall == 1 else float(binom.isf(share, positives, min_recall)) + 1


def most_selected(n: int, max_rate: float | None, share: float) -> float:
    """Return how many of the n rows a cut may hold: the most j with P(Bin(n, q) ≤ j) ≤ share."""
    if max_rate is None or max_rate == 1:
        return math.inf
    most = float(binom.ppf(share, n, max_rate))
    return most if binom.cdf(most, n, max_rate) <= share else most - 1


class Limits(NamedTuple):
    """The limits by which each distinct score's cut is tested, rising with the score.

    None for a constraint that was not given; of a precision NaN where the test does not come.
    """

    precision_low: Any = None
    recall_low: Any = None
    rate_high: Any = None

    @classmethod
    def of(
        cls,
        y: Bools,
        score: NDArray[Any],
        constraints: Constraints,
        confidence_level: float | None,
    ) -> Limits:
        """Return the limits of every cut; none of them without a confidence level."""
        if confidence_level is None:
            return cls()
        value, count = np.unique(score, return_counts=True)
        size = np.cumsum(count[::-1])[::-1]
        positive = np.sort(score[y])
        true = positive.size - np.searchsorted(positive, value)
        share = _share(constraints, confidence_level)
        level = np.full(size.size, np.nan)
        if limit := constraints.min_precision:
            level = _levels(Steps.of(y, score), size, limit, share)
        return _limits_of(true, size, positive.size, y.size, level, constraints, share)


def _limits_of(
    true: Any,
    size: Any,
    positives: int,
    n: int,
    level: Any,
    constraints: Constraints,
    share: float,
) -> Limits:
    """Return the exact limits by which cuts of so many rows with so many positives are tested."""
    rate_given = constraints.max_selected_rate is not None
    return Limits(
        low_limit(true, size, level) if constraints.min_precision else None,
        low_limit(true, positives, share) if constraints.min_recall else None,
        1.0 - low_limit(n - size, n, share) if rate_given else None,
    )


def _levels(steps: Steps, size: Ints, limit: float, share: float) -> Floats:
    """Return the levels at which cuts of these sizes pass, NaN where the test ended before."""
    level = np.full(size.size, np.nan)
    for run in passed_cuts(steps, limit, share):
        last = steps.n if run.end == steps.edge.size else int(steps.size[run.end]) - 1
        here = (size >= run.rank) & (size <= last)
        level[here] = np.fmax(level[here], run.level)
    return level


def low_limit(true: Any, size: Any, level: Any) -> Any:
    """Return Clopper and Pearson's lower limit of a proportion of `true` in `size`."""
    true, size = np.asarray(true, np.float64), np.asarray(size, np.float64)
    limit = betaincinv(np.maximum(true, 1.0), size - true + 1.0, level)
    return np.where(true > 0, limit, 0.0)[()]


def raise_joined(kind: str | None, failed: list[tuple[Any, GuaranteeError]]) -> None:
    """Raise what failed, if anything did, as one error that names the labels or segments."""
    if not failed:
        return
    name, first = failed[0]
    if kind is None:
        raise first
    name = name.item() if isinstance(name, np.generic) else name
    others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    rows = max(error.rows for _, error in failed)
    raise GuaranteeError(f"{kind} {name!r}{others}: {first}", rows)


def joint_guarantee(guarantees: list[Guarantee], confidence_level: float, cost: float) -> Guarantee:
    """Return what segments that all meet their guarantee have together: the worst of them."""

    def worst(name: str, of: Any) -> float | None:
        limits = [getattr(each, name) for each in guarantees]
        return None if limits[0] is None else of(limits)

    return Guarantee(
        guarantees[0].constraints,
        confidence_level,
        worst("precision_low", min),
        worst("recall_low", min),
        worst("rate_high", max),
        cost,
    )


def _rounded(rows: float) -> int:
    """Return a number of rows to two digits, rounded up: it is an estimate."""
    unit = 10.0 ** (math.floor(math.log10(rows)) - 1)
    return math.ceil(math.ceil(rows / unit) * unit)
