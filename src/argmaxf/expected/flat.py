r"""Sets with many positives: a cut found by sums, one pass of power sums, and a short proof.

With hundreds of positives their number S is known to some percent, and f_k is near a ratio of
means,

    c M_k / (k + b_in M_k + b_out (μ - M_k)),   M_k = Σ_{i≤k} p_i.

That is highest, c v, where the set is cut at t = v / (1 + d v), d = b_out - b_in: a few passes that
count and sum what is above a cut find it (Dinkelbach's method). The optimum is in a narrow band
around t, whose items are looked at one by one between exact sums over all others.

No set elsewhere is better. Let X be the denominator of a set, x what it plausibly is at least, and
F = T / X, which changes by at most g / x with one label. (With smoothing s0 / c is added to T and
M, and s1 to X. As long as F is at most 1 / (1 + b_in), every line holds as it stands, but for the
condition of 1., which is Σ (p - t)₊ + (1 - d t) s0 / c ≤ t (b_out μ + s1). Tensors with smoothing
are decided like this, see `argmaxf/torch/bands.py`, arrays are not.)

1. E[F] ≤ M E[1 / X], since T and X rise together, and E[1 / X] ≤ (1 + Var X / x²) / E[X]. Where
   Σ (p - t)₊ ≤ t b_out μ, no set has M / E[X] above t / (1 - d t). That bounds every f_k.
2. D items more, U of them positive, change f by c E[(U (1 + d F) - F D) / X'], X' the denominator
   with them, F without. Given that one of them is positive, 1 / X' and F keep all but a part
   1 / x, and E[F / X'] is E[F] E[1 / X'] but for sd(F) sd(1 / X') ≤ (g / x) (b / x²) Var S, b the
   larger of b_in and b_out. So with F bounded, D items above a cut that is some parts of 1 / μ
   above t gain, however many: the items above the band are best taken all.
3. Likewise D items below the band lose, whatever follows them.

`flat_kernels.improved` makes the band, `flat_kernels.is_proven` checks the three.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats, contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.threads import CHUNK, threads_for
from argmaxf.measures import Coefficients

Found = tuple[int, float, float, float]  # k, threshold, mean and spread
Each = Callable[[Callable[[Floats], Any]], list[Any]]  # does some work on every chunk

LEAST = 1 << 11  # items: fewer are sooner sorted
AT_ONCE = 1 << 20  # so many items are decided by one compiled loop; more are read in chunks
RUN, RUNS, PART = 16, 128, 128  # a sample has runs of neighbours: so many, or a part of all items


def decide_flat(p: NDArray[Any], c: Coefficients) -> Found | None:
    """Return k, threshold, mean and spread of the best set; None where this is not for p.

    A few passes over p, by several threads where it is long; holds the items of a narrow band.
    """
    from argmaxf.expected import flat_kernels

    items, sample, ratio = contiguous(p[:AT_ONCE]), _sample(p), tuple(c)
    if not flat_kernels.decide_flat.is_ready(items, sample, ratio):
        return None
    if p.size <= AT_ONCE:
        k, threshold, f, std = flat_kernels.decide_flat(items, sample, ratio)
    else:
        k, threshold, f, std = _decide_chunks(p, sample, c)
    if k == flat_kernels.BAD:
        raise NotAProbability
    return (int(k), float(threshold), float(f), float(std)) if k > 0 else None


def _sample(p: NDArray[Any]) -> Floats:
    """Return some items from everywhere."""
    stride = max(min(p.size // RUNS, PART * RUN), RUN)
    runs = p.size // stride
    return contiguous(p[: runs * stride].reshape(runs, stride)[:, :RUN]).reshape(-1)


def _decide_chunks(p: NDArray[Any], sample: Floats, c: Coefficients) -> Any:
    """Do what `flat_kernels.decide_flat` does, chunk by chunk, shared out among threads."""
    from argmaxf.expected import flat_kernels, power_kernels

    with ThreadPoolExecutor(threads_for(p.size)) as pool:

        def each(work: Callable[[Floats], Any]) -> list[Any]:
            starts = range(0, p.size, CHUNK)
            return list(pool.map(lambda i: work(contiguous(p[i : i + CHUNK])), starts))

        band, state = _band_of(p.size, sample, c, each)
        if state != flat_kernels.READY:
            return flat_kernels.BAD if state == flat_kernels.BAD else 0, 0.0, 0.0, 0.0
        count, sizes, below, above, items = _sums_of(band, each)
        if min(sizes) < 0 or sum(sizes) > flat_kernels.ROOM:
            return flat_kernels.UNKNOWN
        near, sums = np.sort(np.concatenate(items)), [np.sum(s, axis=0) for s in (below, above)]
        decided = flat_kernels.decide.compiled(near, sum(count), *sums, p.size, tuple(c), band)
        k, threshold, f, std = decided
        if k > 0 and threshold == 0.0:
            threshold = min(each(lambda chunk: power_kernels.least_above.compiled(chunk, band[2])))
    return k, threshold, f, std


def _band_of(n: int, sample: Floats, c: Coefficients, each: Each) -> Any:
    """Return a band around the cut of the highest ratio of means, and a state."""
    from argmaxf.expected import flat_kernels, power_kernels

    band, state = flat_kernels.NO_BAND, flat_kernels.NOT_FLAT
    v = flat_kernels.guess.compiled(sample, n, tuple(c))
    for _ in range(flat_kernels.STEPS if v > 0.0 else 0):
        cut = flat_kernels.cut_of.py_func(v, c)

        def tally(chunk: Floats, cut: float = cut) -> Any:
            return power_kernels.tally.compiled(chunk, cut)

        tallied = tuple(map(sum, zip(*each(tally), strict=True)))
        v, band, state = flat_kernels.improved.compiled(v, n, tallied, tuple(c))
        if state != flat_kernels.GO_ON:
            break
    return band, state


def _sums_of(band: Any, each: Each) -> Any:
    """Return how many items are above a band and in it, the sums, and its items, of each chunk."""
    from argmaxf.expected.flat_kernels import ROOM
    from argmaxf.expected.power_kernels import FEW, SUMS, summed

    def sums(chunk: Floats) -> Any:
        below, above = np.zeros((2, SUMS))
        items = np.empty(ROOM + FEW)
        k, size = summed.compiled(chunk, band[0], band[2], below, above, items)
        return k, size, below, above, items[: max(size, 0)].copy()

    return zip(*each(sums), strict=True)
