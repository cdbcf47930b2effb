"""Compiled loops over the sorted items of one set, one by one: its decision.

See kernels.py for the conventions, and form.py for the formulas; `c` are the coefficients of the
measure.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.kernels import tilt
from argmaxf.expected.nodes import plausible_positives, reciprocal_nodes
from argmaxf.expected.product_kernels import log_product
from argmaxf.expected.spread_kernels import top_spread
from argmaxf.expected.step_kernels import tell_apart
from argmaxf.expected.value_kernels import top_values

# Values of f nearer than this are told apart by steps, then in higher precision (see ties.py): it
# is twice their error and more, 1e-14 and half a unit of rounding for each of 16,384 factors.
DOUBT = 4e-12


nodes_of = kernel(reciprocal_nodes)
plausible = kernel(plausible_positives)


@kernel
def largest_useful_k(ascending, mean, c):
    """An upper bound on the best k, by Jensen's inequality from both sides.

    f_k ≥ (c M_k + s0) / (k + s1 + b_in (1 + M_k) + b_out (μ - M_k)),  M_k = Σ_{i≤k} p_i
    f_k ≤ (c μ + s0) / (k + s1 + min(b_in, b_out) μ)
    """
    n = ascending.size
    mass = 0.0
    best = 0.0
    for k in range(1, n + 1):
        mass += ascending[n - k]
        middle = k + c.s1 + c.b_in * (1.0 + mass) + c.b_out * max(0.0, mean - mass)
        best = max(best, (c.c * mass + c.s0) / middle)
    return min(float(n), (c.c * mean + c.s0) / best - c.s1 - min(c.b_in, c.b_out) * mean + 1.0)


@kernel
def smallest_useful_k(ascending, c, most):
    """The first k ≥ 1 that can be the best: among equal items at the top f rises.

    There f_k = E[c k y_1 / x], all labels being alike; k / x rises with every item taken in, which
    adds 1 + (b_in - b_out) y to x ≥ k. Smoothing (s0 > 0) favours the empty set, b_in > b_out small
    ones: nothing is said then, nor of precision (b_out = 0), which stays the same.
    """
    n = ascending.size
    k = 1
    if c.s0 == 0.0 and c.b_in <= c.b_out and c.b_out > 0.0:
        while k < min(n, most) and ascending[n - 1 - k] == ascending[n - 1]:
            k += 1
    return k


@kernel
def row_nodes(n, mean, c, first, reach):
    """Nodes for the top k of n items, k from first to reach, and the tilts inside and outside.

    Where nothing is positive the numerator is s0: if that is 0, only S ≥ 1 has to be within reach.
    """
    fewest, most = plausible(mean, n)
    fewest = max(fewest, 1.0) if c.s0 == 0.0 else fewest
    least = c.s1 + max(first + min(c.b_in, c.b_out) * fewest, min(1.0 + c.b_in, c.b_out) * fewest)
    u, weight = nodes_of(least, reach + c.s1 + max(c.b_in, c.b_out) * most)
    w_in, x_in = tilt(u, c.b_in)
    w_out, x_out = (w_in, x_in) if c.b_in == c.b_out else tilt(u, c.b_out)
    return u, weight, (w_in, x_in, w_out, x_out)


@kernel
def nothing_selected(ascending, mean, c, zero_division):
    """Mean and standard deviation of the measure for the empty set."""
    if c.s1 > 0.0:
        u, weight, tilts = row_nodes(ascending.size, mean, c, 0, 0.0)
        log_g = np.empty(u.size)
        log_product(ascending, tilts[2], tilts[3], log_g)
        f = c.s0 * np.sum(weight * np.exp(log_g - u * c.s1))
        return f, top_spread(ascending, 0, f, c, u, weight, tilts, log_g)
    log_none = 0.0  # log P(S = 0); 0/0 is certain if positives left out do not count
    if zero_division > 0.0 and c.b_out > 0.0:
        for p in ascending:
            log_none += math.log1p(-p)
    spread = zero_division * math.sqrt(math.exp(log_none) * abs(math.expm1(log_none)))
    return zero_division * math.exp(log_none), spread


@kernel
def decide_row(ascending, c, zero_division, split_ties, limits, forced, f):
    """Decide one sorted row: k, its expected value and spread, and how many k look as good.

    `f` gets n + 1 numbers: the values of the sets that look as good, elsewhere -1. With a `forced`
    one of these that is taken. k lies within the two limits; if none there can be, its value is -1.
    """
    n = ascending.size
    mean = 0.0
    for p in ascending:
        mean += p
    f[:] = -1.0
    f[0], std = nothing_selected(ascending, mean, c, zero_division)
    if mean == 0.0:
        return 0, f[0], std, 1
    least, most = limits
    free = least <= 1 and split_ties  # else the best k may lie beyond the useful ones
    reach = largest_useful_k(ascending, mean, c) if free else float(n)
    first = smallest_useful_k(ascending, c, most)
    u, weight, tilts = row_nodes(n, mean, c, first, max(reach, first))
    log_g = np.empty(u.size)
    log_product(ascending, tilts[2], tilts[3], log_g)
    last = top_values(ascending, first, c, u, weight, log_g, tilts, mean, free, f)
    f[:least] = -1.0
    f[most + 1 :] = -1.0
    if not split_ties:
        for j in range(1, last + 1):
            if j < n and ascending[n - j] == ascending[n - j - 1]:
                f[j] = -1.0
    k = np.argmax(f) if forced < 0 else forced
    f[f < f[k] * (1.0 - DOUBT)] = -1.0
    rivals = np.flatnonzero(f > -1.0)
    if forced < 0 and rivals.size > 1 and rivals[-2] > 0 and c.b_in == c.b_out:
        k = tell_apart(ascending, first, c, u, weight, log_g, tilts, rivals[rivals > 0], f)
    if k > 0:
        std = top_spread(ascending, k, f[k], c, u, weight, tilts, log_g)
    return k, f[k], std, np.sum(f > -1.0)
