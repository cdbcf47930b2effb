r"""Compiled decisions about sets of sorted items, every k looked at: rows, columns, segments.

The value of the top k is f_k = Σ_m ω e^{-u(k+s1)} Q_k A_k with A_k = c Σ_{i≤k} π_i + s0;
groups.py has the formulas, `c` are the coefficients of the measure. Values nearer than their
error are told apart by steps from one set to the next (`node_kernels.climb`). For measures with one
tilt (F_β, Dice) let x_k = k + s1 + b S. One more item changes f by

    f_k - f_{k-1} = c E[(y_k x_{k-1} - T_{k-1} - s0/c) / (x_{k-1} x_k)]
                  = c Σ_m ω (1 - e^{-u}) e^{-u(k-1+s1)} G [gain - loss],
    gain = π_k (b (1 + Σ_{j≠k} π_j) + s1),   loss = Σ_{i<k} (π_i - π_k) + s0/c,

since labels stay independent under the tilt. Neither part cancels within itself, whatever β is, and
what all sets share (items that are certain, the probability of no positive) is in neither: among
equal items at the top nothing is lost, and β² → 0 leaves a small gain instead of none. So a step is
known to a part of itself, however small it is beside f. What is still in doubt goes to ties.py.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.node_kernels import (
    BLOCK,
    DECAY,
    HIGH,
    IN,
    INSIDE,
    LOW,
    MORE,
    NODE_SUMS,
    OUT,
    OUTER,
    OUTSIDE,
    PITCH,
    RULE,
    SIZE,
    WEIGHT,
    G,
    U,
    climb,
    factor,
    log_products,
    longest,
    may_end,
    none_positive,
    products,
    set_rule,
    spread,
    tell_apart,
    tilted_sums,
    zero_over_zero,
)
from argmaxf.expected.quadrature import RATIO, denominator_range

# Values of f nearer than this are told apart by steps, then in higher precision (see ties.py): it
# is twice their error and more, 1e-14 and half a unit of rounding for each of 16,384 factors.
NEAR_TIE = 4e-12
# A running sum at the nodes, and the part of the block at hand.
SUM, PART = NODE_SUMS, NODE_SUMS + PITCH
WORKSPACE = NODE_SUMS + 2 * PITCH


@kernel
def fit_rule(rule, ascending, mean, c):
    """Make a rule suit all top k of sorted items; leave it as it is if it does.

    A range that the short rule spans begins at a power of two, so that sets of like size share
    their nodes.
    """
    n, certain = float(ascending.size), 1.0 if c.s0 == 0.0 else 0.0
    low, high = denominator_range(mean, n, c, 1.0, n, certain)
    shared = rule[HIGH] == RATIO * rule[LOW]
    if shared and rule[LOW] <= low < 2.0 * rule[LOW] and high <= rule[HIGH]:
        return
    start = 0.5 * math.ldexp(1.0, math.frexp(low)[1])
    if high <= RATIO * start:
        low, high = start, RATIO * start
    if low != rule[LOW] or high != rule[HIGH]:
        set_rule(rule, low, high, c)


@reordering_kernel
def total(p):
    """Σ p."""
    mean = 0.0
    for i in range(p.size):
        mean += p[i]
    return mean


@reordering_kernel
def one_tilt_values(ascending, rule, c, mean, stop_early, work, f):
    """Fill f[k] for k = 1, …, where b_in = b_out = b; return the last k evaluated.

    f_k = Σ_m ω e^{-u(k+s1)} G (c Σ_{i≤k} π_i + s0), with c = 1+β² for F_β. Items go in pairs, since
    two reciprocals cost one division.

    With `stop_early`, end where no larger set can be better. Numerator and denominator X rise
    together, so that f_k ≤ (c M_k + s0) E[1/X_k], M_k = Σ_{i≤k} p_i. From where on
    p_{k+1} (k + s1 + b μ) ≤ M_k + s0/c, this bound falls with every item: its first factor grows by
    at most a part 1 / E[X_k], and the second shrinks by E[1/X²] / E[1/X] ≥ 1 / E[X_k].
    """
    n, size = ascending.size, int(rule[SIZE])
    for m in range(size):
        work[PART + m] = 0.0
        work[SUM + m] = c.s0 / c.c
    best, mass = 0.0, c.s0 / c.c
    for k in range(1, n + 1, 2):
        if k % BLOCK == 1:
            for m in range(size):
                outer = c.c * rule[WEIGHT + m] * work[G + m]
                work[OUTER + m] = outer * math.exp(-rule[U + m] * (k - 1))
                work[SUM + m] += work[PART + m]
                work[PART + m] = 0.0
        p1 = ascending[n - k]
        p2 = ascending[n - k - 1] if k < n else 0.0
        a1, b1, c1 = factor(p1, 1.0 - p1)
        a2, b2, c2 = factor(p2, 1.0 - p2)
        value1 = 0.0
        value2 = 0.0
        reciprocal = 0.0  # c E[1/X] of the larger set
        for m in range(size):
            w, x, decay = rule[INSIDE + m], rule[INSIDE + PITCH + m], rule[DECAY + m]
            f1 = a1 + b1 * x + c1 * w
            f2 = a2 + b2 * x + c2 * w
            inverse = x / (f1 * f2)
            sum1 = work[PART + m] + p1 * f2 * inverse
            sum2 = sum1 + p2 * f1 * inverse
            outer1 = work[OUTER + m] * decay
            outer2 = outer1 * decay
            value1 += outer1 * (work[SUM + m] + sum1)
            value2 += outer2 * (work[SUM + m] + sum2)
            reciprocal += outer2
            work[PART + m] = sum2
            work[OUTER + m] = outer2
        f[k] = value1
        if k < n:
            f[k + 1] = value2
        best = max(best, value1, value2)
        mass += p1 + p2
        if stop_early and mass * reciprocal < best * (1.0 - 1e-12):
            following = ascending[n - k - 2] if k + 1 < n else 0.0
            if following * (k + 1 + c.s1 + c.b_in * mean) <= mass:
                return min(k + 1, n)
    return n


@kernel
def climb_from_none(inside, outside, last, rule, c, mean, f, steps, falls):
    """Fill f[k] for k = 1, …, `last`, and by how much it rises (`climb`), for any measure.

    Returns the last k evaluated: it ends where no larger set can be better, unless `mean`, Σ p
    inside the set, is given as infinite.
    """
    n, size, logs = inside.size, int(rule[SIZE]), np.empty(2 * PITCH)
    log_products(outside, rule[OUTSIDE:], size, logs)
    a, log_outer = np.full(size, c.s0), np.empty(size)
    for m in range(size):
        log_outer[m] = math.log(rule[WEIGHT + m]) + logs[PITCH + m]
    items = inside[n - last :], outside[n - last :]
    return climb(items[0], items[1], rule, c, mean, a, log_outer, f, steps, falls)


@kernel
def top_values(ascending, rule, c, mean, stop_early, work, f):
    """Fill f[k] of the top k for k = 1, …; return the last k evaluated.

    With one tilt `work` keeps G = Π (1 - p w_out).
    """
    if c.b_in != c.b_out:
        n, known = ascending.size, np.empty((2, ascending.size))
        most = mean if stop_early else np.inf
        return climb_from_none(ascending, ascending, n, rule, c, most, f, known[0], known[1])
    if products(ascending, rule[OUTSIDE:], int(rule[SIZE]), work[G:]):
        for m in range(int(rule[SIZE])):
            work[G + m] = math.exp(math.log(work[G + m]) + work[G + PITCH + m])
    return one_tilt_values(ascending, rule, c, mean, stop_early, work, f)


@reordering_kernel
def top_spread(ascending, k, f, c, rule, work):
    """Standard deviation of the measure for the top k of a sorted set, whose G is in `work`."""
    n, size = ascending.size, int(rule[SIZE])
    tilted_sums(ascending, n - k, n, rule[INSIDE:], size, work[IN:])
    tilted_sums(ascending, 0, n - k, rule[OUTSIDE:], size, work[OUT:])
    for m in range(size):
        work[OUTER + m], work[MORE + m] = rule[WEIGHT + m], rule[DECAY + m]
    power = k
    while power > 0:  # e^{-uk} by squaring
        for m in range(size):
            work[OUTER + m] *= work[MORE + m] if power % 2 == 1 else 1.0
            work[MORE + m] *= work[MORE + m]
        power //= 2
    x, missing = k + c.s1, (0.0, 0.0)
    if x < rule[LOW]:  # the denominator where nothing is positive, which the nodes need not reach
        lack, lack_of_square, none = 1.0 / x, 1.0 / (x * x), none_positive(ascending)
        for m in range(size):
            lack -= work[OUTER + m]
            lack_of_square -= work[OUTER + m] * rule[U + m]
        missing = none * lack, none * lack_of_square
    if c.b_in == c.b_out:
        for m in range(size):
            work[OUTER + m] *= work[G + m]
    else:
        logs = np.empty(4 * PITCH)
        log_products(ascending[n - k :], rule[INSIDE:], size, logs)
        log_products(ascending[: n - k], rule[OUTSIDE:], size, logs[2 * PITCH :])
        for m in range(size):
            log_q = logs[PITCH + m] + logs[3 * PITCH + m]
            work[OUTER + m] = rule[WEIGHT + m] * math.exp(log_q - rule[U + m] * k)
    return spread(k, f, c, rule, size, work, missing)


@kernel
def nothing_selected(ascending, mean, c, zero_division, work):
    """Mean and standard deviation of the measure for the empty set."""
    if c.s1 > 0.0:
        certain = 1.0 if c.s0 == 0.0 else 0.0
        low, high = denominator_range(mean, float(ascending.size), c, 0.0, 0.0, certain)
        rule = set_rule(np.empty(RULE), low, high, c)
        log_products(ascending, rule[OUTSIDE:], int(rule[SIZE]), work[G:])
        f = 0.0
        for m in range(int(rule[SIZE])):
            f += c.s0 * rule[WEIGHT + m] * work[G + m]
        return f, top_spread(ascending, 0, f, c, rule, work)
    if zero_division == 0.0:
        return 0.0, 0.0
    log_none = 0.0
    if c.b_out > 0.0:
        for p in ascending:
            log_none += math.log1p(-p)
    return zero_over_zero(zero_division, log_none)


@reordering_kernel
def one_tilt_steps(ascending, c, rule, work, steps, terms):
    """Fill by how much f rises with each item, and the size of its terms; G is in `work`.

    `excess` is Σ_{i<k} (π_i - π_k), which grows by (k-1) (π_{k-1} - π_k), and π_{k-1} - π_k =
    x (p_{k-1} - p_k) / ((1 - p_{k-1} w) (1 - p_k w)).
    """
    n, size = ascending.size, int(rule[SIZE])
    tilted_sums(ascending, 0, n, rule[INSIDE:], size, work[IN:])
    inverse, excess, last = np.ones(size), np.full(size, c.s0 / c.c), 0.0
    for i in range(steps.size):
        if i % BLOCK == 0:
            for m in range(size):
                outer = -rule[WEIGHT + m] * math.expm1(-rule[U + m]) * work[G + m]
                work[OUTER + m] = outer * math.exp(-rule[U + m] * i)
        p = ascending[n - 1 - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        more, last = i * (last - p), p
        gain = 0.0
        loss = 0.0
        for m in range(size):
            x = rule[INSIDE + PITCH + m]
            now = 1.0 / (a0 + a1 * x + a2 * rule[INSIDE + m])
            pi = p * x * now
            excess[m] += more * x * inverse[m] * now
            inverse[m] = now
            gain += work[OUTER + m] * pi * (c.b_in * (1.0 + (work[IN + m] - pi)) + c.s1)
            loss += work[OUTER + m] * excess[m]
            work[OUTER + m] *= rule[DECAY + m]
        steps[i], terms[i] = gain - loss, gain + loss


@kernel
def smallest_useful_k(ascending, c, most):
    """The first k ≥ 1 that can be the best: among equal items at the top f rises.

    There f_k = E[c k y_1 / x], all labels being alike; k / x rises with every item taken in, which
    adds 1 + (b_in - b_out) y to x ≥ k. Where p is small Jaccard rises by p² only, which no decimals
    show. Smoothing (s0 > 0) favours the empty set, b_in > b_out small ones: nothing is said then,
    nor of precision (b_out = 0), which stays the same.
    """
    n, k = ascending.size, 1
    if c.s0 == 0.0 and c.b_in <= c.b_out and c.b_out > 0.0:
        while k < min(n, most) and ascending[n - 1 - k] == ascending[n - 1]:
            k += 1
    return k


@kernel
def near_ties(ascending, c, split_ties, limits, first, last, rule, work, best, f):
    """Leave in f the values of the sets that may be the best, elsewhere -1; return the best k."""
    least = f[best] * (1.0 - NEAR_TIE)
    for j in range(ascending.size + 1):
        is_allowed = limits[0] <= j <= min(limits[1], last) and may_end(ascending, j, split_ties)
        is_allowed &= j == 0 or j >= first
        if not (is_allowed and f[j] >= least):
            f[j] = -1.0
    rivals = np.flatnonzero(f[: ascending.size + 1] > -1.0)
    if rivals.size < 2 or rivals[-2] == 0:
        return best
    n, steps, terms = rivals[-1], np.empty(rivals[-1]), np.empty(rivals[-1])
    if c.b_in == c.b_out:
        one_tilt_steps(ascending, c, rule, work, steps, terms)
    else:
        climb_from_none(ascending, ascending, n, rule, c, np.inf, np.empty(n + 1), steps, terms)
    return tell_apart(1, n, steps, terms, f)


@kernel
def decide_set(ascending, c, zero_division, split_ties, limits, rule, work, f):
    """Decide one sorted set: k, its expected value and spread, and how many k look as good.

    `f` has room for n + 1 numbers; where several k look as good, it gets their values, elsewhere
    -1. k lies within the two limits; if there is none, its value is -1. `rule` has the nodes of the
    last set, used again where they suit this one.
    """
    mean = total(ascending)
    f[0], std = nothing_selected(ascending, mean, c, zero_division, work)
    if mean == 0.0:
        return 0, f[0], std, 1
    least, most = limits
    free = least <= 1 and split_ties  # else the best k may lie beyond the useful ones
    fit_rule(rule, ascending, mean, c)
    first = smallest_useful_k(ascending, c, most)
    last = top_values(ascending, rule, c, mean, free, work, f)
    k, rivals = 0, 1
    top = f[0] if least == 0 else -1.0
    second = -1.0
    for j in range(max(first, least), min(last, most) + 1):
        if split_ties or may_end(ascending, j, split_ties):
            if f[j] > top:
                k, top, second = j, f[j], top
            elif f[j] > second:
                second = f[j]
    if top < 0.0:
        return 0, -1.0, 0.0, 1
    if second >= top * (1.0 - NEAR_TIE):
        k = near_ties(ascending, c, split_ties, limits, first, last, rule, work, k, f)
        rivals = np.sum(f[: ascending.size + 1] > -1.0)
    if k > 0:
        std = top_spread(ascending, k, f[k], c, rule, work)
    return k, f[k], std, rivals


@kernel
def decide_sets(ascending, offsets, c, zero_division, split_ties, limits, k, expected, std, rivals):
    """Decide sets of items that lie one after another, each sorted, set r from offsets[r] on."""
    f, rule, work = np.empty(longest(offsets) + 1), np.zeros(RULE), np.empty(WORKSPACE)
    for r in range(k.size):
        items = ascending[offsets[r] : offsets[r + 1]]
        k[r], expected[r], std[r], rivals[r] = decide_set(
            items, c, zero_division, split_ties, limits, rule, work, f
        )


@kernel
def curve(ascending, c, zero_division, rule, work, f):
    """Fill the expected value f[k] of the top k of one sorted set, for k = 0 … n."""
    mean = total(ascending)
    f[0] = nothing_selected(ascending, mean, c, zero_division, work)[0]
    rule[LOW] = 0.0
    fit_rule(rule, ascending, mean, c)
    top_values(ascending, rule, c, mean, False, work, f)


@kernel
def select_sets(p, offsets, ascending, k, threshold, out):
    """Mark the top k items of every set, of equal ones the first, and fill the lowest of them."""
    for r in range(k.size):
        start, stop = offsets[r], offsets[r + 1]
        cut = last = stop - k[r]
        least = ascending[cut] if cut < stop else np.inf
        while last > start and ascending[last - 1] == least:
            last -= 1
        for i in range(start, stop):
            out[i] = p[i] >= least
        spare, i = cut - last, stop - 1  # items equal to the lowest one that are left out
        while spare > 0:
            if p[i] == least:
                out[i] = False
                spare -= 1
            i -= 1
        threshold[r] = least
