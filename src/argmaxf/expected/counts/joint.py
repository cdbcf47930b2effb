r"""Any measure of counts, from the joint distribution of true positives and positives left out.

Those inside and outside of a set are independent, so

    E[m] = Σ_t Σ_r P(T = t) P(R = r) m(t, k, t + r, n)

for any function m of the counts. Where it rises with tp at fixed k, s and n, exchanging an item for
a more probable one never lowers it, and the best set of k items is the top k; the counts that are
looked at anyway are checked for it. O(n) values of m for each k: O(n²) in all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.expected.counts.count import FEW, Count
from argmaxf.measures import GMean, Measure

LARGEST = FEW  # items: every size is looked at, some seconds
BLOCK = 1 << 16  # values of a measure that are held at a time
RISING = 1e-9  # part of the values by which rounding may make them fall
LEAST = 1e-22  # odds below this part of the largest are left out


def prefix_counts(p: Floats) -> list[Count]:
    """Return the counts of the first 0 … n labels; holds n √n numbers."""
    from argmaxf.expected.counts import kernels

    n = p.size
    v = float((p * (1.0 - p)).sum())
    widest = n + 1 if n <= kernels.FULL else max(kernels.FULL, 2 * kernels.window(v, v, n)[1]) + 3
    first, size = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    mass = np.zeros((n + 1, min(widest, n + 1)))
    kernels.all_masses(p, first, size, mass)
    return [Count(int(first[k]), mass[k, : size[k]]) for k in range(n + 1)]


def value_of_counts(
    inside: Count, outside: Count, k: int, n: int, measure: Measure, zero_division: float
) -> tuple[float, float]:
    """Return mean and standard deviation of a measure for one set."""
    mean = 0.0
    for part in _blocks(inside, outside):
        values = _values(part, outside, k, n, measure, zero_division)
        mean += float(part.mass @ values @ outside.mass)
    variance = 0.0
    for part in _blocks(inside, outside):
        away = _values(part, outside, k, n, measure, zero_division) - mean
        variance += float(part.mass @ (away * away) @ outside.mass)
    return mean, math.sqrt(variance)


def _blocks(inside: Count, outside: Count) -> Iterator[Count]:
    """Part the counts inside so that a block of values is not large."""
    size = max(1, BLOCK // outside.mass.size)
    for i in range(0, inside.mass.size, size):
        yield Count(inside.first + i, inside.mass[i : i + size])


def joint_curve(descending: Floats, measure: Measure, zero_division: float) -> Floats:
    """Return f_0 … f_n of the top k of sorted items; refuse a measure that falls with tp."""
    n = descending.size
    refuse_many(n, measure)
    f = np.empty(n + 1)
    for k, (inside, outside) in enumerate(_sides(descending)):
        values = _values(inside, outside, k, n, measure, zero_division)
        _check_rising(values, inside, outside, k, n, measure)
        f[k] = inside.mass @ values @ outside.mass
    return f


def refuse_many(n: int, measure: Measure) -> None:
    """Refuse more items than can be looked at size by size."""
    if n > LARGEST:
        more = "; one array of more is decided within a bound by maximize_expected_f"
        raise ValueError(
            f"the expectation of {measure} is found from all counts, for at most {LARGEST:,} "
            f"items; got {n:,}{more if isinstance(measure, GMean) else ''}"
        )


def _sides(descending: Floats) -> Iterator[tuple[Count, Count]]:
    """Yield the counts inside and outside of the top k, for k = 0 … n."""
    inside, outside = prefix_counts(descending), prefix_counts(descending[::-1].copy())
    floor = LEAST * min(1.0, float(descending.sum()), float((1.0 - descending).sum()))
    for top, rest in zip(inside, reversed(outside), strict=True):
        yield _trimmed(top, floor), _trimmed(rest, floor)


def _trimmed(count: Count, floor: float) -> Count:
    """Leave out counts at both ends that have no odds to speak of."""
    kept = np.flatnonzero(count.mass > floor)
    if kept.size == 0:
        return count
    return Count(count.first + int(kept[0]), count.mass[kept[0] : kept[-1] + 1])


def _values(
    inside: Count, outside: Count, k: int, n: int, measure: Measure, zero_division: float
) -> Floats:
    """Return the measure for all counts of true positives (rows) and positives left out."""
    t, r = inside.values[:, None], outside.values[None, :]
    values = measure.value(t, float(k), t + r, float(n), zero_division=zero_division)
    return np.asarray(np.broadcast_to(values, (t.size, r.size)), float)


def _check_rising(
    values: Floats, inside: Count, outside: Count, k: int, n: int, measure: Measure
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
