r"""Compiled: every set that ends in a band of items, valued by exact differences (see `band.py`).

At each node u (`quadrature.py`) a set has Q = Π_{in} (1 - p w_in) Π_{out} (1 - p w_out),
A = c Σ_{in} π + s0 with π = p x / (1 - p w), and f = Σ ω e^{-u (k + s1)} Q A. Sums over the items
around the band come from sums of their powers (`pass_kernels.py`).
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.pass_kernels import POWERS
from argmaxf.expected.tilt_kernels import (
    BLOCK,
    IN,
    MORE,
    OUT,
    OUTER,
    PITCH,
    SERIES_TERMS,
    factor,
    log_products,
    power_sums,
    spread,
    tilted_sums,
)
from argmaxf.measures import Coefficients

SMALL_LOG = 2.0**-6  # Σ p w at most, for Σ log(1 - p w) to be a power series


@kernel
def sums_at_nodes(items, start, stop, sums, w, x):
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over items, and others given by their powers.

    S_j = Σ p^j and V_j = Σ p^j (1 - p) give Σ log(1 - p w) = -Σ_j w^j S_j / j, Σ p / (1 - p w) =
    Σ_j w^{j-1} S_j, Σ (1 - p) / (1 - p w) = Σ_j w^j V_j, Σ p (1 - p) / (1 - p w)² =
    Σ_j j w^{j-1} V_j. Items are in ascending order.
    """
    size = w.size
    tilts, found, out = np.empty(2 * PITCH), np.empty(4 * PITCH), np.empty((4, size))
    for m in range(size):
        tilts[m], tilts[PITCH + m] = w[m], x[m]
    log_products(items[start:stop], tilts, size, found)
    own = np.empty(SERIES_TERMS)
    power_sums(items[start:stop], own)
    for m in range(size):
        if w[m] * own[0] < SMALL_LOG:  # the logarithm of a product near 1 would lose digits
            found[PITCH + m] = 0.0
            for j in range(SERIES_TERMS - 1, -1, -1):
                found[PITCH + m] = w[m] * (found[PITCH + m] - own[j] / (j + 1))
        s, power = sums[0], 1.0  # S_j and w^{j-1}
        log, pi, rest, variance = w[m] * s, s, sums[1], 0.0
        for j in range(1, POWERS):
            v = sums[1 + j]
            variance += j * power * v
            power *= w[m]
            s -= v
            pi += power * s
            rest += power * v
            log += power * w[m] * s / (j + 1)
        out[0, m], out[1, m] = found[PITCH + m] - log, x[m] * pi
        out[2, m], out[3, m] = rest, x[m] * variance
    tilted_sums(items, start, stop, tilts, size, found)
    for j in range(3):
        for m in range(size):
            out[1 + j, m] += found[j * PITCH + m]
    return out


@reordering_kernel
def climb(items, k, a, scale, nodes, c, steps, falls):
    """Fill in what each item, taken in after those above it, adds to f; A and ω Q are used up.

    f_k - f_{k-1} = Σ ω Q e^{-u(k-1)} [e^{-u} (g + (r - 1) (A + g)) - (1 - e^{-u}) A]; the item
    adds g to A and multiplies Q by r = (1 - p w_in) / (1 - p w_out). The last term is also what f
    falls by with an item of p = 0. `k` has s1 in it.
    """
    u, w_in, x_in, w_out, x_out = nodes[0], nodes[2], nodes[3], nodes[4], nodes[5]
    size = u.size
    outer, kept, lost = np.empty(size), np.empty(size), np.empty(size)
    for m in range(size):
        kept[m], lost[m] = math.exp(-u[m]), -math.expm1(-u[m])
    for i in range(items.size):
        if i % BLOCK == 0:
            for m in range(size):
                outer[m] = math.exp(-u[m] * (k + i))
        p = items[items.size - 1 - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        step = fall = 0.0
        for m in range(size):
            gain = c.c * p * x_in[m] / (a0 + a1 * x_in[m] + a2 * w_in[m])
            more = p * (w_out[m] - w_in[m]) / (a0 + a1 * x_out[m] + a2 * w_out[m])
            now = outer[m] * scale[m]
            down = now * lost[m] * a[m]
            step += now * kept[m] * (gain + more * (a[m] + gain)) - down
            fall += down
            a[m] += gain
            scale[m] *= 1.0 + more
            outer[m] *= kept[m]
        steps[i] = step
        falls[i] = fall


@kernel
def may_end(items, i, split):
    """Whether a set may end after the i most probable items of a band: not between equal ones."""
    n = items.size
    return split or i == 0 or i == n or items[n - i] != items[n - i - 1]


@kernel
def clear_best(items, steps, falls, first, split):
    """Return after how many items of a band f is best; -1 if others are too near.

    A difference below some part of the terms that differ is no difference. It is summed up from the
    best set on, so that rounding is in proportion to it.
    """
    doubt = 1e-12 + 1e-16 * steps.size
    top, f, best = -1, 0.0, -np.inf
    for i in range(steps.size + 1):
        f += steps[i - 1] if i > 0 else 0.0
        if i >= first and f > best and may_end(items, i, split):
            top, best = i, f
    f = error = 0.0
    for i in range(top + 1, steps.size + 1):
        f += steps[i - 1]
        error += doubt * falls[i - 1]
        if f >= -error and may_end(items, i, split):
            return -1
    f = error = 0.0
    for i in range(top - 1, first - 1, -1):
        f -= steps[i]
        error += doubt * falls[i]
        if f >= -error and may_end(items, i, split):
            return -1
    return top


@kernel
def value_and_spread(k, inside, outside, none, nodes, c):
    """Mean and standard deviation of the measure for a set of k items.

    `inside` and `outside` have the sums of `sums_at_nodes` over it and over the others, `none` is
    P(S = 0), for which the nodes need not suffice. Above one half f is what the loss leaves of 1.
    """
    u, weight = nodes[0], nodes[1]
    x, own, sums = k + c.s1, c.c - c.b_in, np.empty(MORE)
    f = loss = reach = reach_square = 0.0
    for m in range(u.size):
        decay = weight[m] * math.exp(-u[m] * x)
        reach += decay
        reach_square += decay * u[m]
        outer = weight[m] * math.exp(inside[0, m] + outside[0, m] - u[m] * x)
        sums[OUTER + m] = outer
        for j in range(3):
            sums[IN + j * PITCH + m] = inside[1 + j, m]
            sums[OUT + j * PITCH + m] = outside[1 + j, m]
        f += outer * (c.c * inside[1, m] + c.s0)
        less = inside[2, m] + (1.0 - own) * inside[1, m] + c.b_out * outside[1, m]
        loss += outer * (less + c.s1 - c.s0)
    missing = 0.0, 0.0
    if none > 0.0:
        missing = none * (1.0 / x - reach), none * (1.0 / x**2 - reach_square)
    f = 1.0 - loss - (x - c.s0) * missing[0] if f > 0.5 else f
    return f, spread(k, f, c, u, u.size, sums, missing)


@kernel
def sums_of_set(items, cut, sums, nodes):
    """Sums at the nodes over the items above a band and from `cut` on, and over all others."""
    inside = sums_at_nodes(items, cut, items.size, sums[1], nodes[2], nodes[3])
    return inside, sums_at_nodes(items, np.int64(0), cut, sums[0], nodes[4], nodes[5])


@kernel
def decide_band(items, sums, nodes, first, split, none, ratio):
    """Return the best set that ends in a band, given its items in ascending order and sums around.

    `nodes` has u, ω, and w and x inside and outside. Sets have `first` items of the band or more.
    Returns how many items of the band are in the best set, -1 if that is in doubt; its mean and
    spread; and f of all items down to the end of the band.
    """
    c = Coefficients(ratio[0], ratio[1], ratio[2], ratio[3], ratio[4])
    u, size, k = nodes[0], items.size, np.rint(sums[1, 0] + sums[1, 1])
    inside, outside = sums_of_set(items, size, sums, nodes)
    a, scale, last, is_lost = np.empty(u.size), np.empty(u.size), 0.0, False
    for m in range(u.size):
        a[m] = c.c * inside[1, m] + c.s0
        scale[m] = nodes[1, m] * math.exp(inside[0, m] + outside[0, m])
        last += scale[m] * math.exp(-u[m] * (k + c.s1)) * a[m]
        is_lost |= scale[m] < 1e-290
    if is_lost and c.b_in != c.b_out:  # it may not be lost at the end of the band
        return -1, 0.0, 0.0, 0.0
    steps, falls = np.empty(size), np.empty(size)
    climb(items, k + c.s1, a, scale, nodes, c, steps, falls)
    best = clear_best(items, steps, falls, first, split)
    if best < 0:
        return -1, 0.0, 0.0, 0.0
    for step in steps:
        last += step
    inside, outside = sums_of_set(items, size - best, sums, nodes)
    f, std = value_and_spread(k + best, inside, outside, none, nodes, c)
    return best, f, std, last
