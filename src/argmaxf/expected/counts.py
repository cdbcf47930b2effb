r"""Measures of counts that are no ratio of the family, for sets whose items are at hand.

The numbers of positives inside and outside of a set are independent, so for any measure m

    E[m] = Σ_t Σ_r P(T = t) P(R = r) m(t, k, t + r, n).

Where m rises with tp at fixed k, s and n, exchanging an item for a more probable one never lowers
it, and the best set of k items is the top k; the counts that are looked at anyway are checked for
that. O(n) values of m for each k: O(n²) in all.

A measure that is linear in true positives, a(k, S) T + b(k, S) (see `measures.Linear`), takes
O(n √n) for all k, exact up to rounding:

    f_k = Σ_s a(k, s) E[T_k; S = s] + b(k, s) P(S = s),
    E[T_k; S = s] = Σ_{i≤k} p_i P(S without label i = s - 1).

Where most labels are positive the same is done with false positives: few of them are not lost in
many. Above 16,384 items `count_distribution.py` takes S at a few nodes only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.count_distribution import CountDistribution, Spectrum, needs_values
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.groups import Groups, Source
from argmaxf.measures import GMean, Linear, Measure
from argmaxf.problem import Problem

MOST_ITEMS = 5_000  # of which every size is looked at: some seconds
INTERPOLATED = 1 << 14  # items beyond which counts are not found label by label
BLOCK_OF_VALUES = 1 << 16  # of a measure that are held at a time
RISING = 1e-9  # part of the values by which rounding may make them fall
NEGLIGIBLE = 1e-22  # probabilities below this part of the largest are left out
NO_PREFIXES = np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0))


class PoissonBinomial(NamedTuple):
    """How many of some independent labels are positive: P(`first`), P(`first` + 1), …"""

    first: int
    mass: Floats

    @classmethod
    def of(cls, p: Floats, most: int = INTERPOLATED) -> PoissonBinomial:
        """Return the distribution: label by label, which keeps all digits, for `most` labels.

        Of more it comes from the characteristic function of items in groups, in O(n).
        """
        from argmaxf.expected import count_kernels

        if p.size <= most:
            return cls(*count_kernels.masses(p, *NO_PREFIXES))
        groups = groups_for_counts(p)
        found = Spectrum.of(groups, p.size)
        return cls(int(found.window[0]), found.mass / found.mass.sum())

    @property
    def values(self) -> Floats:
        """The counts."""
        return np.arange(self.first, self.first + self.mass.size, dtype=float)

    def trimmed(self, floor: float) -> PoissonBinomial:
        """Leave out counts at both ends that are not above a probability."""
        kept = np.flatnonzero(self.mass > floor)
        if kept.size == 0:
            return self
        return PoissonBinomial(self.first + int(kept[0]), self.mass[kept[0] : kept[-1] + 1])


def groups_for_counts(p: Floats) -> Groups:
    """Return items in groups that say all about counts: where few are unsure, in part by value."""
    groups = Source(ArrayPasses(p)).table()
    if not needs_values(groups).any():
        return groups
    near_half = (p > 1 / 32) & (p < 31 / 32)
    single = Groups.of_values(*np.unique(p[near_half], return_counts=True))
    return Groups.joined([Source(ArrayPasses(p[~near_half])).table(), single])


def curve_by_counts(descending: Floats, problem: Problem) -> Floats:
    """Return f_0 … f_n of the top k of sorted items."""
    measure, zero = problem.measure, problem.zero_division
    if not isinstance(measure, Linear):
        return general_curve(descending, problem)
    if descending.size > INTERPOLATED:
        groups, n = groups_for_counts(descending), float(descending.size)
        return CountDistribution.of(groups, n, measure, zero).curve(descending)
    return linear_curve(descending, measure, zero)


def value_by_counts(
    chosen: Floats, left: Floats, problem: Problem, mean: float | None = None
) -> ExpectedF:
    """Return mean and standard deviation for any chosen items, given those left out too.

    Where the mean is known only the deviation is computed, to an absolute 1e-20.
    """
    floor = 0.0 if mean is None else NEGLIGIBLE**2
    inside, outside = (PoissonBinomial.of(each).trimmed(floor) for each in (chosen, left))
    size = max(1, BLOCK_OF_VALUES // outside.mass.size)
    blocks = [
        PoissonBinomial(inside.first + i, inside.mass[i : i + size])
        for i in range(0, inside.mass.size, size)
    ]
    k, n = chosen.size, chosen.size + left.size
    if mean is None:
        means = (part.mass @ _values(part, outside, k, n, problem) for part in blocks)
        mean = float(sum(each @ outside.mass for each in means))
    variance = 0.0
    for part in blocks:
        away = _values(part, outside, k, n, problem) - mean
        variance += float(part.mass @ (away * away) @ outside.mass)
    return ExpectedF(mean, math.sqrt(variance))


def value_of_groups(chosen: Groups, rest: Groups, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation for a chosen set, given it and the rest in groups.

    Groups are enough for a measure that is linear in true positives; others need single values.
    """
    everything = Groups.joined([chosen, rest])
    measure = problem.measure
    if isinstance(measure, Linear) and not needs_values(everything).any():
        n = float(everything.count.sum())
        counts = CountDistribution.of(everything, n, measure, problem.zero_division)
        found = counts.found(chosen).sum(axis=0, keepdims=True)
        mean = float(counts.values(np.array([chosen.count.sum()]), found)[0])
        return ExpectedF(mean, counts.spread(chosen, mean))
    if not everything.runs.all():
        raise ValueError(f"{measure} cannot be computed from a sketch here; pass the probabilities")
    inside, outside = (np.repeat(each.centre, each.count.astype(int)) for each in (chosen, rest))
    return value_by_counts(inside, outside, problem)


def refuse_many(n: int, measure: Measure) -> None:
    """Refuse more items than can be looked at size by size."""
    if n > MOST_ITEMS:
        more = "; for one larger array, maximize_expected_f returns a decision and a bound"
        raise ValueError(
            f"the expectation of {measure} is computed for at most {MOST_ITEMS:,} items; got "
            f"{n:,}{more if isinstance(measure, GMean) else ''}"
        )


def general_curve(descending: Floats, problem: Problem) -> Floats:
    """Return f_0 … f_n of the top k of sorted items; refuse a measure that falls with tp."""
    n = descending.size
    refuse_many(n, problem.measure)
    floor = NEGLIGIBLE * min(1.0, float(descending.sum()), float((1.0 - descending).sum()))
    above, below = prefix_counts(descending), prefix_counts(descending[::-1].copy())
    f = np.empty(n + 1)
    for k in range(n + 1):
        inside, outside = above[k].trimmed(floor), below[n - k].trimmed(floor)
        values = _values(inside, outside, k, n, problem)
        _check_rising(values, inside, outside, k, n, problem.measure)
        f[k] = inside.mass @ values @ outside.mass
    return f


def prefix_counts(p: Floats) -> list[PoissonBinomial]:
    """Return the counts of the first 0 … n labels; holds n √n numbers."""
    from argmaxf.expected import count_kernels

    n, full = p.size, count_kernels.FULL
    v = float((p * (1.0 - p)).sum())
    widest = n + 1 if n <= full else max(full, 2 * count_kernels.window(v, v, n)[1]) + 3
    first, size = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    mass = np.zeros((n + 1, min(widest, n + 1)))
    count_kernels.masses(p, first, size, mass)
    return [PoissonBinomial(int(first[k]), mass[k, : size[k]]) for k in range(n + 1)]


def _values(
    inside: PoissonBinomial, outside: PoissonBinomial, k: int, n: int, problem: Problem
) -> Floats:
    """Return the measure for all counts of true positives (rows) and positives left out."""
    t, r = inside.values[:, None], outside.values[None, :]
    zero = problem.zero_division
    values = problem.measure.value(t, float(k), t + r, float(n), zero_division=zero)
    return np.asarray(np.broadcast_to(values, (t.size, r.size)), float)


def _check_rising(
    values: Floats,
    inside: PoissonBinomial,
    outside: PoissonBinomial,
    k: int,
    n: int,
    measure: Measure,
) -> None:
    """Refuse a measure that falls where one more of s positives is found."""
    before, after = values[:-1, 1:], values[1:, :-1]
    falls = after < before - RISING * np.abs(before)
    if not falls.any():
        return
    i, j = map(int, np.argwhere(falls)[0])
    t = inside.first + i
    raise ValueError(
        f"measure must rise with true positives at the same k, s and n, so that the most probable "
        f"items are the best: {measure} falls from {before[i, j]:.6g} at tp={t} to "
        f"{after[i, j]:.6g} at tp={t + 1}, where k={k}, s={t + outside.first + j + 1}, n={n}"
    )


def linear_curve(
    descending: Floats, measure: Linear, zero_division: float, *, scale: bool = False
) -> Floats:
    """Return f_0 … f_n of the top k of sorted items, or the size of the terms that they sum up.

    O(n √n): about 100 operations an item for n = 1,000, 1,000 for n = 100,000.
    """
    n, counts = float(descending.size), PoissonBinomial.of(descending, descending.size)
    by_false, nothing = bool(2.0 * descending.sum() > n), np.empty(0)
    every = (counts.values, counts.mass, nothing, nothing)
    return CountDistribution(measure, zero_division, n, by_false, *every).curve(descending, scale)
