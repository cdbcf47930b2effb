"""Compiled loops where what an item adds to a set depends on the set's size alone.

Δ_i(t) is what item i adds to a set of t items, V(k, t) the sum of the k largest of them: the best
set of k items is worth V(k, k), and chords of V bound the sizes between two. Labels that depend on
each other have this form (dependent.py), and so have columns whose rows have a price (macro.py).

See tilt_kernels.py for the conventions.
"""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.tilt_kernels import factor, largest

CACHED = 256  # items whose rows of B stay in the processor's cache
SLACK = 1e-12  # a bound must lie below the best value by this part of it to close a range
CONTEST = 1e-13  # values nearer than this are told apart in decimals (see dependent.py)


@reordering_kernel
def add_component(p, scale, w, x, b):
    """Add one model of a mixture to B: scale · p / (1 - p w), item by item and node by node."""
    for i in range(p.size):
        v = p[i]
        a0, a1, a2 = factor(v, 1.0 - v)
        for m in range(w.size):
            b[i, m] += scale[m] * v / (a0 + a1 * x[m] + a2 * w[m])


@reordering_kernel
def reciprocals(p, scale, w, x, out):
    """Fill Σ_m scale / (1 - p w) of each item."""
    for i in range(p.size):
        a0, a1, a2 = factor(p[i], 1.0 - p[i])
        total = 0.0
        for m in range(w.size):
            total += scale[m] / (a0 + a1 * x[m] + a2 * w[m])
        out[i] = total


@kernel
def add_draws(samples, decays, weight, b, marginals):
    """Add draws to B and to the marginals, a few items at a time so that their B stays at hand."""
    for start in range(0, samples.shape[1], CACHED):
        stop = min(start + CACHED, samples.shape[1])
        for r in range(samples.shape[0]):
            for i in range(start, stop):
                if samples[r, i]:
                    add_one(decays[r], weight[r], b[i], marginals[i : i + 1])


@kernel
def add_sparse_draws(indptr, indices, data, decays, weight, b, marginals):
    """Add draws given by the rows of a sparse matrix."""
    for r in range(weight.size):
        for j in range(indptr[r], indptr[r + 1]):
            if data[j]:
                i = indices[j]
                add_one(decays[r], weight[r], b[i], marginals[i : i + 1])


@kernel
def add_one(decays, weight, b, marginal):
    """Add a draw to an item that is positive in it."""
    marginal[0] += weight
    for m in range(decays.size):
        b[m] += decays[m]


@reordering_kernel
def contributions(b, decay, out):
    """Δ_i = Σ_m B_im e^{-u_m k}: what each item adds to the expected F of a set of k."""
    for i in range(b.shape[0]):
        total = 0.0
        for m in range(decay.size):
            total += b[i, m] * decay[m]
        out[i] = total


@kernel
def sums_of_largest(values, low, high):
    """The sums of the k largest values, for k = low … high."""
    top = np.sort(values if high == values.size else largest(values, high))
    sums = np.empty(high - low + 1)
    total = 0.0
    lost = 0.0  # what rounding drops is carried along (Kahan)
    for k in range(1, high + 1):
        y = top[high - k] - lost
        longer = total + y
        lost = (longer - total) - y
        total = longer
        if k >= low:
            sums[k - low] = total
    return sums


@kernel
def highest_chord(left, left_sums, left_low, right, right_sums, right_low, shift):
    """The highest bound on V(k, k) strictly between two sizes whose V is known, and where it is.

    V(k, t) is convex in 1 / (t + shift), or in t where the shift is infinite: its chord from one
    size to the other lies above it.
    """
    highest, where = -np.inf, left
    for k in range(left + 1, right):
        bend = 1.0 if shift == np.inf else (right + shift) / (k + shift)
        share = (k - left) / (right - left) * bend
        bound = (1.0 - share) * left_sums[k - left_low] + share * right_sums[k - right_low]
        if bound > highest:
            highest, where = bound, k
    return highest, where


@kernel
def mark_largest(values, k, part, out):
    """Mark the k largest, of those that agree to a part of them the first; return the smallest."""
    out[:] = False
    if k == 0:
        return np.inf
    cut = largest(values, k)[0]
    high, low = cut + part * abs(cut), cut - part * abs(cut)
    ties = k - np.sum(values > high)
    smallest = np.inf
    for i in range(values.size):
        tied = low <= values[i] <= high
        if values[i] > high or (tied and ties > 0):
            out[i] = True
            ties -= tied
            smallest = min(smallest, values[i])
    return smallest


@kernel
def top_sums(b, u, t, low, high):
    """V(k, t), the sum of the k largest Δ at t, for k = low … high."""
    delta = np.empty(b.shape[0])
    contributions(b, np.exp(-u * t), delta)
    return sums_of_largest(delta, low, high)


@kernel
def last_useful_k(b, u, best):
    """The largest k that Σ_i Δ_ik, the most that any set can have at k, leaves open."""
    totals = np.zeros(u.size)
    for i in range(b.shape[0]):
        totals += b[i]
    low, high = 1, b.shape[0]
    while low < high:
        k = (low + high + 1) // 2
        if np.sum(totals * np.exp(-u * k)) >= best * (1.0 - SLACK):
            low = k
        else:
            high = k - 1
    return low


@kernel
def search(b, u, guess, floor, f):
    """Fill f[k], the value of the best set of k items, for every k that may be the best.

    What cannot win is -1. `guess` is where to look first; values below `floor` do not matter.
    Ranges of k are cut in two until the chords over what remains lie below the best value.
    """
    f[1:] = -1.0
    best = max(floor, top_sums(b, u, guess, guess, guess)[0])
    reach = max(guess, last_useful_k(b, u, best))
    left, left_low, left_sums = 1, 1, top_sums(b, u, 1, 1, reach)
    rights = [reach]
    right_lows = [1]
    right_sums = [top_sums(b, u, reach, 1, reach)]
    f[1] = left_sums[0]
    f[reach] = right_sums[0][reach - 1]
    best = max(best, f[1], f[reach])
    while len(rights) > 0:
        right, right_low, sums = rights[-1], right_lows[-1], right_sums[-1]
        bound, k = highest_chord(left, left_sums, left_low, right, sums, right_low, np.inf)
        if right - left < 2 or bound <= 0.0 or bound < best * (1.0 - SLACK):
            left, left_low, left_sums = rights.pop(), right_lows.pop(), right_sums.pop()
            continue
        quarter = max(1, (right - left) // 4)
        k = min(max(k, left + quarter), right - quarter)
        sums = top_sums(b, u, k, left, right)
        rights.append(k)
        right_lows.append(left)
        right_sums.append(sums)
        f[k] = sums[k - left]
        best = max(best, f[k])


@kernel
def decide_instances(b, u, guess, nothing, k, rivals, delta, threshold, selected):
    """Decide every instance: `nothing` is what the empty set is worth in each."""
    f = np.empty(b.shape[1] + 1)
    for r in range(b.shape[0]):
        f[0] = nothing[r]
        search(b[r], u, guess[r], nothing[r], f)
        k[r] = np.argmax(f)
        rivals[r] = np.sum(f >= f[k[r]] * (1.0 - CONTEST))
        take(b[r], u, k[r], delta[r], selected[r], threshold[r : r + 1])


@kernel
def take(b, u, k, delta, selected, threshold):
    """Mark the best set of k items of one instance."""
    contributions(b, np.exp(-u * max(k, 1)), delta)
    threshold[0] = mark_largest(delta, k, CONTEST, selected)
