r"""The best top-k set of independent labels: a band of probabilities, and what is around it.

f_k is the expected value of (c T + s0) / X, X = k + b_in T + b_out R + s1, for the k most probable
items: T and R are the positives in the set and out of it, S all of them, μ = Σ p. The driver
`decide` finds the best k without sorting:

1. Counts in bins, of all items or a sample, give a threshold near the best one. A pass that counts
   and sums what is above it improves it (Dinkelbach's method), as often as needed.
2. A narrow band around the threshold is chosen where hundreds of positives make f_k nearly a ratio
   of means. Elsewhere a wide band goes from p = 1 down to where counts in bins show that no set
   can be the best (`wide_band`).
3. One pass sums up powers of the items below and above the band and copies those in it.
4. Every set that ends in the band is valued by the exact difference to the one before it, and the
   best is taken if it is better than others by more than rounding (`node_kernels.py`).
5. Three inequalities prove that no set ends elsewhere, where the band is narrow.

The driver needs three things of the place where the items are, and a fourth now and then: these are
`Passes`, which know nothing of measures. There are passes over arrays and over streams of batches
(`array_passes.py`) and over data frames. On an NVIDIA GPU the whole driver is a chain of kernels
for rows of items (`torch/triton_rows.py`).

With hundreds of positives f_k is near a ratio of means, which is highest, c v, where the set is
thresholded at t = v / (1 + d v), d = b_out - b_in. docs/background/algorithm.md proves by three
inequalities that no set that ends outside of a narrow band around t is better. With smoothing s0 /
c is added to T and its means, and s1 to X. As long as F is at most 1 / (1 + b_in), every line holds
as it stands, but for the condition of 1., which is Σ (p - t)₊ + (1 - d t) s0 / c ≤ t (b_out μ +
s1).

`narrow_band` makes the band, `is_proven` checks the three. Both ends of
a band lie between levels of equal items, so that all this holds for sets that keep equal items
together, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf.expected import quadrature
from argmaxf.expected.pass_kernels import BINS, ONE
from argmaxf.measures import Coefficients
from argmaxf.problem import Problem

# Eight powers of p w are enough where that is at most FLAT at the node u = STEEPEST / x, x the
# least denominator: at nodes before it w is smaller, and those after it have no weight to speak of.
# Of μ positives the terms left out are some 10⁵ μ (FLAT / STEEPEST)⁹, less than 1e-14.
FLAT, STEEPEST = 2.0**-4, 17.0

LOW_EDGES = ((ONE - np.arange(BINS)) << 48).view(np.float64)
LOW_EDGES[-1] = 0.0  # which the last bin has, too
HIGH_EDGES = np.concatenate([LOW_EDGES[:1], LOW_EDGES[:-1]])
MIDDLES = 0.5 * (LOW_EDGES + HIGH_EDGES)


# Plain numbers need no compiled code
plausible_positives = quadrature.plausible_positives.py_func
least_denominator = quadrature.least_denominator.py_func
denominator_range = quadrature.denominator_range.py_func


class Around(NamedTuple):
    """Sums of powers over the items below and above a band, and its items in ascending order."""

    sums: Floats  # 2 × 9 (`pass_kernels.py`)
    items: Floats | None  # None if there are more than was asked for


class Passes(Protocol):
    """What the band needs of the place where items are.

    Results are on the host, and the same in every run. The first pass raises NotAProbability if a
    value is none.
    """

    n: int  # items, known after the first pass

    def counts(self, sampled: bool = False) -> NDArray[Any]:
        """Count the items in bins; an estimate from a sample will do where that is quicker."""
        ...

    def above(self, cut: float) -> Sequence[float]:
        """Return Σ p, how many items are above a threshold, and their Σ p."""
        ...

    def around(self, low: float, high: float, room: int) -> Around:
        """Return the sums below `low` and above `high`, and the items between.

        Both ends are in the band. No more than `room` items are wanted.
        """
        ...

    def least_above(self, cut: float) -> float:
        """Return the least item above a threshold."""
        ...


class Band(NamedTuple):
    """Where the lowest chosen item is."""

    low: float
    middle: float
    high: float
    first: float  # the least size of a set; negative for a narrow band, which has to be proven


class Found(NamedTuple):
    """The best set."""

    k: int
    threshold: float  # its lowest item; infinite if it is empty
    expected: float
    std: float


def knows(problem: Problem) -> bool:
    """Whether the band can be asked: the measure is a ratio of counts, nothing is guaranteed."""
    return problem.ratio is not None and problem.chance is None


def decide(passes: Passes, problem: Problem, wide: bool = True) -> Found | None:
    """Return the best set; None where the band cannot tell, or limits forbid it.

    A narrow band that is not proven is followed by a wide one, if that is wanted.
    """
    c = problem.coefficients
    band = first_band(passes, c)
    found = _decided(passes, problem, band) if band else False
    if found is False and wide and (band := wide_band(passes, c)):
        found = _decided(passes, problem, band)
    return found if isinstance(found, Found) else None


def _decided(passes: Passes, problem: Problem, band: Band) -> Found | bool | None:
    """Return the best set that ends in a band, with its threshold, as `best_end` does."""
    sums, items = passes.around(band.low, band.high, room(passes.n))
    if items is None:
        return False
    found = best_end(items, sums, band, passes.n, problem)
    if isinstance(found, Found) and found.k and found.threshold == math.inf:
        return found._replace(threshold=passes.least_above(band.high))
    return found


def room(n: int) -> int:
    """Return how many items a band may have: with more of them the grouped search is as fast."""
    return max(1 << 15, min(n // 16, 1 << 18))


def first_band(passes: Passes, c: Coefficients) -> Band | None:
    """Return a narrow band; None where too few are positive."""
    enough, steps = 200.0, 8
    if not 0.0 < c.b_out >= c.b_in:
        return None
    mean, v = guess(passes.counts(sampled=True), c)
    for _ in range(steps if mean >= enough else 0):
        total, k, mass = passes.above(threshold_of(v, c))
        v, band, is_ready = narrow_band(v, passes.n, total, k, mass, c)
        if band is None or is_ready:
            return band
    return None


def near_threshold(passes: Passes, c: Coefficients) -> tuple[float, float] | None:
    """Return where the threshold of more items lies if these are a sample of them.

    That is eight standard errors around its own, at least as far as its band; None where too few
    are positive.
    """
    band = first_band(passes, c)
    if band is None:
        return None
    total, *_ = passes.above(1.0)
    middle = 0.5 * (band.low + band.high)
    width = max(band.high - middle, 8.0 * middle / math.sqrt(total))
    return middle - min(width, 0.9 * middle), middle + width


def threshold_of(v: float, c: Coefficients) -> float:
    """The threshold of a set worth c v: an item above it is worth taking, as p (1 + d v) > v."""
    return float(v / (1.0 + (c.b_out - c.b_in) * v))


def guess(counts: NDArray[Any], c: Coefficients) -> tuple[float, float]:
    """Guess Σ p from counts in bins, and the highest ratio of means of a set over c."""
    k, mass = counts.cumsum(), (counts * MIDDLES).cumsum()
    x = k + (c.b_in - c.b_out) * mass + c.b_out * mass[-1] + c.s1
    # Nothing is worth 0
    return float(mass[-1]), float(((mass + c.s0 / c.c) / np.maximum(x, 1e-300)).max())


def steepest_tilt(x: float, c: Coefficients) -> float:
    """w at the last node that matters where the denominator is at least x."""
    return -math.expm1(-max(c.b_in, c.b_out) * STEEPEST / x)


def margins(
    k: float, mean: float, variance: float, fewest: float, c: Coefficients
) -> tuple[float, float, float, float]:
    """By how much means of ratios and products may differ from those of means.

    As a part of the highest value; for sets inside the top k, and beyond them, of F; and what is
    left of a term given one positive more.
    """
    _, b_in, b_out, _, _ = c
    least, x = least_denominator(0.0, fewest, c), least_denominator(k, fewest, c)
    most = max(b_in, b_out)
    change = max(1.0, b_out / (1.0 + b_in)) * most * variance
    mean_x = x - min(b_in, b_out) * fewest + most * mean  # at most
    kept = (1.0 - b_in / x) * (1.0 - b_out / least)
    value = most * most * variance / least**2
    return value, change * mean_x / (least * x * x), change * mean_x / x**3, kept


def narrow_band(
    v: float, n: int, mean: float, k: float, mass: float, c: Coefficients
) -> tuple[float, Band | None, bool]:
    """Return the worth of the set thresholded at that of v, a band around its own; is it ready?

    It is as wide as the proof needs, and as the threshold is uncertain; ready if that is not much.
    None where too few are positive. The set has k items, whose Σ p is `mass`, `mean` is all Σ p.
    """
    narrowest, for_items = 2.0**-10, 1 << 22  # the least width, and for how many items
    widest, enough = 0.25, 2.0**-8
    _, b_in, b_out, s0, s1 = c
    fewest, _ = plausible_positives(mean, n)
    x = least_denominator(k, fewest, c)
    if not mass > 0.0 or fewest == 0.0 or steepest_tilt(x, c) > FLAT:
        return v, None, False
    if s0 * (1.0 + b_in) > c.c * s1:  # F could be more than 1 / (1 + b_in)
        return v, None, False
    better = (mass + s0 / c.c) / (k + b_in * mass + b_out * (mean - mass) + s1)
    cut, step = threshold_of(better, c), abs(better - v) / better
    value, inside, _, kept = margins(k, mean, mean, fewest, c)
    needed = 4.0 * (value + inside / better + 1.0 - kept)
    needed = max(needed, narrowest * min(1.0, for_items / n))
    width = max(needed, 16.0 * step * step)
    if needed > widest or (b_out - b_in) * cut * (1.0 + needed) >= 1.0:
        return v, None, False
    band = Band(cut * (1.0 - width), cut * (1.0 + 0.5 * width), cut * (1.0 + width), -1.0)
    return better, band, width <= max(needed, enough)


def is_proven(
    band: Band,
    sizes: tuple[float, float, float],
    mass: float,
    mean: float,
    variance: float,
    last: float,
    n: int,
    c: Coefficients,
) -> bool:
    """Whether no set inside the items above a narrow band is better, nor one that goes beyond it.

    `sizes` says how many items are above the band, above its middle, and above its end, `mass` is
    Σ p of the second ones; mean and variance are of all positives, and `last` is the value of all
    items down to the end of the band.
    """
    slack = 1e-9  # inequalities must hold by more than this
    low, middle, high, _ = band
    k, k_middle, k_end = sizes
    d, (fewest, _) = c.b_out - c.b_in, plausible_positives(mean, n)
    value, inside, _, kept = margins(k, mean, variance, fewest, c)
    _, _, beyond, _ = margins(k_end, mean, variance, fewest, c)
    most = middle / (1.0 - d * middle) * (1.0 + value)
    rest = middle * (c.b_out * mean + c.s1) - c.s0 / c.c * (1.0 - d * middle)
    is_bound = mass - middle * k_middle <= rest - slack * middle * c.b_out * mean
    no_less = (most + inside) * (1.0 - high * kept * d) <= high * kept * (1.0 - slack)
    no_more = low <= (last / c.c - beyond) * (1.0 - low * d) * (1.0 - slack)
    return bool((k == 0 or (is_bound and no_less)) and no_more and d * high < 1.0)


def wide_band(passes: Passes, c: Coefficients) -> Band | None:
    """Return a wide band; None if it would be too wide.

    A set that cannot be worth what another one is at least is not the best (`bounds_of_sets`).
    """
    counts, small = passes.counts(), FLAT / 4.0
    used = np.flatnonzero(counts)
    least, most = counts[used] * LOW_EDGES[used], counts[used] * HIGH_EDGES[used]
    worth, bound = quadrature.bounds_of_sets(counts[used], least, most, c)
    may_be = used[bound >= worth.max() * (1.0 - 1e-12)]
    above = int(counts[: may_be[0]].sum())
    first = above + 1.0 if c.s1 == 0.0 else 0.0  # smoothing: the empty set may be the best
    # Items below the band are summed up by powers
    x = least_denominator(first, plausible_positives(float(least.sum()), passes.n)[0], c)
    low = max(min(LOW_EDGES[may_be[-1]], small / max(steepest_tilt(x, c), small)), 5e-324)
    size = int(counts[low <= HIGH_EDGES].sum())
    return Band(low, low, 2.0, first) if size <= room(passes.n) else None


def best_end(
    items: Floats, sums: Floats, band: Band, n: int, problem: Problem
) -> Found | bool | None:
    """Return the best set that ends in a band; False if another one may be better.

    None if several are equally good. Items are in ascending order. An infinite threshold is that of
    the items above the band.
    """
    from argmaxf.expected import node_kernels

    c, narrow, size = problem.coefficients, band.first < 0.0, items.size
    k = round(sums[1, 0] + sums[1, 1])
    mean = float(sums[0, 0] + sums[1, 0] + items.sum())
    if mean == 0.0:
        return None
    least = max(k, 1) if narrow else band.first
    certain = 1.0 if c.s0 == 0.0 else 0.0
    x, most = denominator_range(mean, n, c, least, max(k + size, least), certain)
    if steepest_tilt(x, c) * (1.0 if k > 0 else band.low) > FLAT:
        return False
    is_known = k == 0 and band.low <= FLAT / 2.0 and mean < 700.0
    log_none = -mean
    if is_known:  # log P(S = 0) = Σ log(1 - p)
        everyone = items, 0, size, sums[0], np.ones(1), np.zeros(1)
        log_none = float(node_kernels.sums_at_nodes.compiled(*everyone)[0, 0])
    none = math.exp(log_none) if is_known else 0.0
    first, ratio = int(k == 0) if narrow else int(band.first), tuple(map(float, c))
    given = items, sums, x, most, first, problem.split_ties, none, ratio
    best, f, std, last = node_kernels.decide_band.compiled(*given)
    if best < 0:
        return None
    if narrow:
        upper = items[np.searchsorted(items, band.middle, side="right") :]
        sizes = k, k + upper.size, k + size
        variance = float(sums[0, 2] + sums[1, 2] + (items * (1.0 - items)).sum())
        mass = float(sums[1, 0] + upper.sum())
        if not is_proven(band, sizes, mass, mean, variance, last, n, c):
            return False
    threshold = float(items[size - best]) if best else math.inf
    return _or_nothing(Found(k + best, threshold, f, std), log_none, is_known, problem)


def _or_nothing(found: Found, log_none: float, is_known: bool, problem: Problem) -> Found | None:
    """Return the set, or the empty one where that is better; None in doubt, or outside of limits.

    `log_none` is log P(S = 0), with which the empty set is worth the value of 0/0, or a bound on it
    where it is not known.
    """
    doubt, least_value = 1e-12, 1e-290  # errors of smaller values underflow
    zero, (_, _, b_out, _, s1), f = problem.zero_division, problem.coefficients, found.expected
    if f <= least_value or not problem.least <= found.k <= problem.most:
        return None
    if zero > 0.0 and s1 == 0.0 and problem.least == 0:
        log = 0.0 if b_out == 0.0 else log_none
        chance = math.exp(log)
        if zero * chance >= f * (1.0 - doubt):
            is_better = zero * chance > f * (1.0 + doubt) and (is_known or b_out == 0.0)
            std = zero * math.sqrt(chance * -math.expm1(log))
            return Found(0, math.inf, zero * chance, std) if is_better else None
    return found
