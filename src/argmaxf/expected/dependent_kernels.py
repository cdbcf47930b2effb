"""Compiled loops where what an item adds to a set depends on the set's size alone.

Δ_i(t) is what item i adds to a set of t items, V(k, t) the sum of the k largest of them: the best
set of k items is worth V(k, k), and chords of V bound the sizes between two. Labels that depend on
each other have this form (dependent.py), and so have columns whose rows have a price (macro.py).

See node_kernels.py for the conventions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.node_kernels import BLOCK, factor

SLACK = 1e-12  # a bound must lie below the best value by this part of it to close a range
TIE = 1e-13  # values that differ by this part of them are equal
NARROWEST = 8  # a range of sizes is cut at least this part of its length from its ends
IN_BINS, LEAST_SPREAD = 512, 1e-290  # values that are sorted by bins first; between two of them
LAST_TERM = 1e-15  # a series in p ends where what is left is this part of it


class Items(NamedTuple):
    """Items of which Δ_i(t) = Σ_m B_im e^{log_a_m - u_m t} - price_i.

    B is a matrix, or p x / (1 - p w) where the matrix is empty. With `terms` > 0 the latter is
    summed as a series in p of so many terms.
    """

    matrix: Any
    p: Any
    w: Any
    x: Any
    terms: int
    u: Any
    log_a: Any
    price: Any
    shift: float  # V is convex in 1 / (t + shift)


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
def terms_needed(scale, w, x):
    """How many terms the series of Σ_m scale / (1 - p w) in p needs for every p; 0 if too many."""
    left = scale.copy()
    for terms in range(1, w.size + 1):
        left *= w
        if np.sum(left / x) <= LAST_TERM * np.sum(scale):
            return terms
    return 0


@kernel
def make_series(scale, w, terms):
    """Turn the factors of Σ_m scale / (1 - p w) into those of Σ_j p^j Σ_m scale w^j, in place."""
    left = scale.copy()
    for j in range(terms):
        scale[j] = np.sum(left)
        left *= w


@reordering_kernel
def series(p, factors, terms, out):
    """Fill Σ_j factors_j p^j of each item, block after block."""
    for start in range(0, p.size, BLOCK):
        stop = min(start + BLOCK, p.size)
        for i in range(start, stop):
            out[i] = factors[terms - 1]
        for j in range(terms - 2, -1, -1):
            for i in range(start, stop):
                out[i] = out[i] * p[i] + factors[j]


@reordering_kernel
def contributions(t, items, out):
    """Fill Δ_i(t), what each item adds to a set of t items."""
    scale = np.exp(items.log_a - items.u * t)
    if items.matrix.size > 0:
        for i in range(out.size):
            total = 0.0
            for m in range(scale.size):
                total += items.matrix[i, m] * scale[m]
            out[i] = total - items.price[i]
        return
    scale *= items.x
    if items.terms > 0:
        make_series(scale, items.w, items.terms)
        series(items.p, scale, items.terms, out)
    else:
        reciprocals(items.p, scale, items.w, items.x, out)
    for i in range(out.size):
        out[i] = items.p[i] * out[i] - items.price[i]


@kernel
def partition(values, first):
    """Put the largest values from place `first` on, the least of them first, in place.

    Quickselect, in linear time on average; NumPy's partition takes two seconds to compile.
    """
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if first <= right:
            high = right
        elif first >= left:
            low = left
        else:
            break


@kernel
def sort(values):
    """Sort in place, by Shell's method; NumPy's sort takes more than a second to compile.

    Many values are first put into as many bins of one width, which leaves little to sort.
    """
    if values.size > IN_BINS:
        low = values.min()
        spread = max(values.max() - low, LEAST_SPREAD)
        given, scale = values.copy(), (values.size - 1) / spread
        place = np.zeros(values.size + 1, np.int64)
        for value in given:
            place[int((value - low) * scale) + 1] += 1
        place = np.cumsum(place)
        for value in given:
            bin = int((value - low) * scale)
            values[place[bin]] = value
            place[bin] += 1
    gap = values.size
    while gap > 1:
        gap = max(1, gap * 4 // 9)
        for i in range(gap, values.size):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@kernel
def top_sums(t, low, high, items):
    """V(k, t), the sum of the k largest Δ at t, for k = low … high."""
    values = np.empty(items.price.size)
    contributions(float(t), items, values)
    partition(values, values.size - high)
    values = values[values.size - high :]
    partition(values, high - low)
    sort(values[: high - low])
    sums = np.empty(high - low + 1)
    total = 0.0
    lost = 0.0  # what rounding drops is carried along (Kahan)
    for k in range(1, high + 1):
        y = values[high - k] - lost
        longer = total + y
        lost = (longer - total) - y
        total = longer
        if k >= low:
            sums[k - low] = total
    return sums


@kernel
def highest_chord(left, left_sums, left_low, right, right_sums, right_low, shift):
    """The highest bound on V(k, k) strictly between two sizes whose V is known, and where it is.

    V(k, t) is convex in 1 / (t + shift): its chord from one size to the other lies above it.
    """
    highest, where = -np.inf, left
    for k in range(left + 1, right):
        share = (k - left) * (right + shift) / ((right - left) * (k + shift))
        bound = (1.0 - share) * left_sums[k - left_low] + share * right_sums[k - right_low]
        if bound > highest:
            highest, where = bound, k
    return highest, where


@kernel
def far_side(guess, enough, items):
    """A size beyond which no set is worth more than `enough`, and the bound on sets beyond it.

    Δ falls with the size, so that a set of t items or more has at most Σ max(0, Δ_i(t)).
    """
    values = np.empty(items.price.size)
    reach = guess
    while 2 * reach < values.size:
        reach *= 2
        contributions(float(reach), items, values)
        most = 0.0
        for value in values:
            most += max(value, 0.0)
        if most <= enough:
            return reach, most
    return values.size, -np.inf


@kernel
def search(items, guess, nothing, part, slack, f):
    """Fill f[k], the value of the best set of k items, for every k that may be the best.

    What cannot win is -inf; `nothing` is what the empty set is worth, `guess` where to look first.
    Ranges of k are cut until the chords over what remains are at most (1 - part) of the best value,
    plus `slack`. Return a bound on all sets.
    """
    f[0], f[1:] = nothing, -np.inf
    if f.size == 1:
        return nothing
    guess = min(max(guess, 1), f.size - 1)
    near = guess // NARROWEST
    low, high = max(guess - near, 1), min(guess + near, f.size - 1)
    nearby = top_sums(guess, low, high, items)
    best = max(nothing, nearby[guess - low])
    reach, bound = far_side(guess, best * (1.0 - part) + slack, items)
    ends = [1]
    for end in (low, guess, high, reach):
        if end > ends[-1]:
            ends.append(end)
    rights, right_lows, right_sums = [0], [0], [nearby]  # a stack; what is below is not looked at
    for i in range(len(ends) - 1, -1, -1):
        k, left, right = ends[i], ends[max(i - 1, 0)], ends[min(i + 1, len(ends) - 1)]
        is_known = k == guess and left == low and right == high
        rights.append(k)
        right_lows.append(left)
        right_sums.append(nearby if is_known else top_sums(k, left, right, items))
        f[k] = right_sums[-1][k - left]
        best = max(best, f[k])
    left, left_low, left_sums = rights.pop(), right_lows.pop(), right_sums.pop()
    while len(rights) > 1:
        right, right_low, sums = rights[-1], right_lows[-1], right_sums[-1]
        most, k = highest_chord(left, left_sums, left_low, right, sums, right_low, items.shift)
        if right - left < 2 or most <= best * (1.0 - part) + slack:
            bound = max(bound, most)
            left, left_low, left_sums = rights.pop(), right_lows.pop(), right_sums.pop()
            continue
        margin = max(1, (right - left) // NARROWEST)
        k = min(max(k, left + margin), right - margin)
        sums = top_sums(k, left, right, items)
        rights.append(k)
        right_lows.append(left)
        right_sums.append(sums)
        f[k] = sums[k - left]
        best = max(best, f[k])
    return max(bound, best)


@kernel
def smallest_best(f):
    """The smallest size that is as good as the best."""
    least, k = f[np.argmax(f)] * (1.0 - TIE), 0
    while f[k] < least:
        k += 1
    return k


@kernel
def take(k, items, tie, delta, selected):
    """Mark the best set of k items; return the smallest Δ in it.

    Of items whose Δ agree to a part of them the first are taken.
    """
    contributions(float(max(k, 1)), items, delta)
    selected[:] = False
    if k == 0:
        return np.inf
    ordered = delta.copy()
    partition(ordered, delta.size - k)
    cut = ordered[delta.size - k]
    high, low = cut + tie * abs(cut), cut - tie * abs(cut)
    ties = k - np.sum(delta > high)
    smallest = np.inf
    for i in range(delta.size):
        tied = low <= delta[i] <= high
        if delta[i] > high or (tied and ties > 0):
            selected[i] = True
            ties -= tied
            smallest = min(smallest, delta[i])
    return smallest


@kernel
def decide_instances(b, u, shift, guess, nothing, k, delta, threshold, selected):
    """Decide every instance: `nothing` is what the empty set is worth in each."""
    f, none, price = np.empty(b.shape[1] + 1), np.empty(0), np.zeros(b.shape[1])
    for r in range(b.shape[0]):
        items = Items(b[r], none, none, none, 0, u, np.zeros(u.size), price, shift)
        search(items, guess[r], nothing[r], SLACK, 0.0, f)
        k[r] = smallest_best(f)
        threshold[r] = take(k[r], items, TIE, delta[r], selected[r])
