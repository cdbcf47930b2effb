r"""Measures that are linear in true positives, for sets that are looked at item by item.

With value = a(k, S) T + b(k, S) (see `measures.Linear`) and independent labels,

    f_k = Σ_s a(k, s) E[T_k; S = s] + b(k, s) P(S = s),
    E[T_k; S = s] = Σ_{i≤k} p_i P(S without label i = s - 1),

where S is followed in its window only: O(n √n) time for all k, exact up to rounding. Where most
labels are positive the same is done with false positives: few of them are not lost in many.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats
from argmaxf.measures import Linear

SHARED = 1 << 10  # sets of up to so many items share one table of a and b
BLOCK = 1 << 8  # of larger ones so many k are taken at a time


class Parts(NamedTuple):
    """a and b of consecutive k (rows) and consecutive s (columns)."""

    a: Floats
    b: Floats


@lru_cache(maxsize=8)
def all_parts(measure: Linear, n: int, zero_division: float, by_false: bool) -> Parts:
    """Return a and b of all k and s, for a small n."""
    every = np.arange(n + 1.0)
    k, s = every[:, None], every[None, :]
    return Parts(*measure.parts(k, s, float(n), zero_division, by_false=by_false))


class Values(NamedTuple):
    """A measure of sets of n items, by true or by false positives."""

    measure: Linear
    n: int
    zero_division: float
    by_false: bool = False

    def parts(self, k: slice, first: int, size: int) -> Parts:
        """Return a and b of some k, and of `size` values of s from the first on."""
        if self.n <= SHARED:
            a, b = all_parts(*self)
            s = slice(first, first + size)
            return Parts(a[k, s], b[k, s])
        sizes = np.arange(k.start, k.stop, dtype=float)[:, None]
        s_values = np.arange(first, first + size, dtype=float)[None, :]
        measure, n, zero_division, by_false = self
        return Parts(*measure.parts(sizes, s_values, float(n), zero_division, by_false=by_false))


def linear_curve(
    descending: Floats, measure: Linear, zero_division: float, *, scale: bool = False
) -> Floats:
    """Return f_0 … f_n of the top k of sorted items, or the size of the terms that they sum up.

    O(n √n): about 100 operations an item for n = 1,000, 1,000 for n = 100,000. Holds a and b of 256
    sizes at a time.
    """
    from argmaxf.expected.counts import kernels

    n = descending.size
    by_false = bool(2.0 * descending.sum() > n)
    values = Values(measure, n, zero_division, by_false)
    first, mass = kernels.masses(descending)
    found, rest, f = np.zeros(mass.size), np.empty(mass.size), np.empty(n + 1)
    for start in range(0, n + 1, BLOCK):
        k = slice(start, min(start + BLOCK, n + 1))
        a, b = values.parts(k, first, mass.size)
        if scale:
            a, b = np.abs(a), np.abs(b)
        if start == 0:
            f[0] = kernels.weighed(a[0], b[0], found, mass)
            a, b, k = a[1:], b[1:], slice(1, k.stop)
        items = descending[k.start - 1 : k.stop - 1]
        kernels.linear_values(items, by_false, a, b, mass, found, rest, f[k])
    return f


def linear_spread(
    chosen: Floats, left: Floats, measure: Linear, zero_division: float, mean: float
) -> float:
    """Return the standard deviation for any chosen items and those left out; O(n √n)."""
    from argmaxf.expected.counts import kernels

    n, k = chosen.size + left.size, chosen.size
    (t0, inside), (r0, outside) = kernels.masses(chosen), kernels.masses(left)
    size = inside.size + outside.size - 1
    a, b = Values(measure, n, zero_division).parts(slice(k, k + 1), t0 + r0, size)
    return float(kernels.linear_spread(inside, outside, t0, r0, a[0], b[0], t0 + r0, mean))
