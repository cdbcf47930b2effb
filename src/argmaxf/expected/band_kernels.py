r"""Compiled: every set that ends in a band of items, valued by exact differences (see `band.py`).

At each node u (`quadrature.py`) a set has Q = Π_{in} (1 - p w_in) Π_{out} (1 - p w_out),
A = c Σ_{in} π + s0 with π = p x / (1 - p w), and f = Σ ω e^{-u (k + s1)} Q A. Sums over the items
around the band come from sums of their powers (`pass_kernels.py`).
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.pass_kernels import SUMS, add_powers
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.expected.tilt_kernels import (
    BLOCK,
    DECAY,
    IN,
    INSIDE,
    LOG,
    MORE,
    OUT,
    OUTER,
    OUTSIDE,
    PITCH,
    REST,
    RULE,
    SIZE,
    VARIANCE,
    WEIGHT,
    U,
    add_series,
    factor,
    log_products,
    set_rule,
    spread,
    tilted_sums,
)
from argmaxf.measures import Coefficients

GONE = -500.0  # log of what is nothing beside other terms, and still far from underflow
# A step's parts are known to 2e-12 by the nodes, and as well by rounding of 16,384 factors of G.
STEP_ERROR = 1e-11
SMALL_LOG = 2.0**-6  # Σ p w at most, for Σ log(1 - p w) to be a power series


@kernel
def sums_at_nodes(items, start, stop, sums, w, x):
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over items, and others given by their powers.

    Items are in ascending order.
    """
    size, own, scratch = w.size, np.zeros(SUMS), np.zeros((4, 4 * PITCH))
    tilts, logs, series, found = scratch[0], scratch[1], scratch[2], scratch[3]
    for m in range(size):
        tilts[m], tilts[PITCH + m] = w[m], x[m]
    log_products(items[start:stop], tilts, size, logs)
    add_powers(items[start:stop], -1.0, 2.0, own)
    add_series(own, tilts, size, series)
    tilted_sums(items, start, stop, tilts, size, found)
    for m in range(size):  # the logarithm of a product near 1 would lose digits
        found[LOG + m] = series[LOG + m] if w[m] * own[0] < SMALL_LOG else logs[PITCH + m]
    add_series(sums, tilts, size, found)
    out = np.empty((4, size))
    for m in range(size):
        out[0, m], out[1, m] = found[LOG + m], found[m]
        out[2, m], out[3, m] = found[REST + m], found[VARIANCE + m]
    return out


@reordering_kernel
def climb(inside, outside, rule, c, mean, a, log_outer, f, steps, falls):
    """Fill in what each item, taken in after those above it, adds to f, and f with it.

    With A and log(ω Q e^{-u(k+s1)}) of the k items above, which are used up, f_k - f_{k-1} =
    Σ ω Q e^{-u(k-1+s1)} [e^{-u} (g + (r - 1) (A + g)) - (1 - e^{-u}) A]; the item adds g to A and
    multiplies Q by r = (1 - p w_in) / (1 - q w_out). The last term is also what f falls by with an
    item of p = 0. Items may have one probability p inside the set and another, q, outside, both
    ascending. Ends after `mean`, Σ p of small sets, says that no larger set can be better; returns
    the last place filled.
    """
    n, size, best, stop = inside.size, int(rule[SIZE]), 0.0, 0
    outer, lost, apart, logs = np.empty(size), np.empty(size), np.empty(size), np.empty(2 * PITCH)
    above, part = np.empty(size), np.empty(size)  # A of a block's first set, and of its items
    for m in range(size):
        lost[m] = -math.expm1(-rule[U + m])
        small = rule[OUTSIDE + m] < 0.5  # w_out - w_in = x_in - x_out, in full precision
        apart[m] = rule[OUTSIDE + m] - rule[INSIDE + m] if small else 0.0
        apart[m] += 0.0 if small else rule[INSIDE + PITCH + m] - rule[OUTSIDE + PITCH + m]
    for i in range(n):
        if i == stop:  # rounding does not build up beyond a block
            stop = min(i + BLOCK, n)
            for m in range(size):
                outer[m], above[m], part[m] = math.exp(log_outer[m]), a[m], 0.0
                if log_outer[m] < GONE < log_outer[m] + BLOCK * c.b_out * rule[U + m]:
                    stop = i + 1  # what is lost may come back where items left out cost much
            for m in range(size):
                log_outer[m] -= rule[U + m] * (stop - i)
            for items, at, sign in ((inside, INSIDE, 1.0), (outside, OUTSIDE, -1.0)):
                log_products(items[n - stop : n - i], rule[at:], size, logs)
                for m in range(size):
                    log_outer[m] += sign * logs[PITCH + m]
        p, q = inside[n - 1 - i], outside[n - 1 - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        b0, b1, b2 = factor(q, 1.0 - q)
        value = step = fall = 0.0
        for m in range(size):
            x, w_out = rule[INSIDE + PITCH + m], rule[OUTSIDE + m]
            f_in = a0 + a1 * x + a2 * rule[INSIDE + m]
            f_out = b0 + b1 * rule[OUTSIDE + PITCH + m] + b2 * w_out
            inverse = 1.0 / (f_in * f_out)
            gain = c.c * p * x * f_out * inverse
            more = (p * apart[m] + (q - p) * w_out) * f_in * inverse
            now, down = outer[m] * rule[DECAY + m], outer[m] * lost[m] * a[m]
            step += now * (gain + more * (a[m] + gain)) - down
            fall += down
            part[m] += gain
            a[m] = above[m] + part[m]
            outer[m] = now + now * more
            value += outer[m] * a[m]
        f[i + 1], steps[i], falls[i] = value, step, fall
        best = max(best, value)
        if c.c * mean + c.s0 < (i + 2 + c.s1 + min(c.b_in, c.b_out) * mean) * best * (1.0 - 1e-12):
            return i + 1
    return n


@kernel
def may_end(items, k, split):
    """Whether a set may end after the k most probable items: not between equal ones, if asked."""
    n = items.size
    return split or k == 0 or k == n or items[n - k] != items[n - k - 1]


@kernel
def tell_apart(first, last, steps, falls, f):
    """Set f of sets that are certainly not the best to -1, of those that are not; return the best.

    Sets of `first` items to `last` are compared by steps from one to the next, each known to a part
    of its terms. They are summed up from the best set on, so that rounding is in proportion to
    differences.
    """
    best, ahead = -1, np.inf  # f of k is so much above that of the best
    for k in range(first, last + 1):
        ahead += steps[k - 1] if k > first else 0.0
        if f[k] > -1.0 and ahead > 0.0:
            best, ahead = k, 0.0
    ahead = error = 0.0
    for k in range(best + 1, last + 1):
        ahead += steps[k - 1]
        error += STEP_ERROR * falls[k - 1]
        if ahead < -error:
            f[k] = -1.0
    ahead = error = 0.0
    for k in range(best - 1, first - 1, -1):
        ahead -= steps[k]
        error += STEP_ERROR * falls[k]
        if ahead < -error:
            f[k] = -1.0
    return best


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
def sums_of_set(items, cut, sums, rule):
    """Sums at the nodes over the items above a band and from `cut` on, and over all others."""
    tilts = np.empty((4, int(rule[SIZE])))
    for j in range(4):
        for m in range(tilts.shape[1]):
            tilts[j, m] = rule[INSIDE + j * PITCH + m]
    inside = sums_at_nodes(items, cut, items.size, sums[1], tilts[0], tilts[1])
    return inside, sums_at_nodes(items, np.int64(0), cut, sums[0], tilts[2], tilts[3])


@kernel
def decide_band(items, sums, low, high, first, split, none, ratio):
    """Return the best set that ends in a band, given its items in ascending order and sums around.

    Denominators are from `low` to `high`. Sets have `first` items of the band or more. Returns how
    many items of the band are in the best set, -1 if that is in doubt; its mean and spread; and f
    of all items down to the end of the band.
    """
    c = Coefficients(ratio[0], ratio[1], ratio[2], ratio[3], ratio[4])
    rule = set_rule(np.empty(RULE), low, high, c)
    n, k = items.size, np.rint(sums[1, 0] + sums[1, 1])
    inside, outside = sums_of_set(items, n, sums, rule)
    a, log_outer = np.empty(inside.shape[1]), np.empty(inside.shape[1])
    f, steps, falls = np.zeros(n + 1), np.empty(n), np.empty(n)
    for m in range(a.size):
        a[m] = c.c * inside[1, m] + c.s0
        log_outer[m] = math.log(rule[WEIGHT + m]) + inside[0, m] + outside[0, m] - rule[U + m] * k
        f[0] += math.exp(log_outer[m]) * a[m]
    climb(items, items, rule, c, np.inf, a, log_outer, f, steps, falls)
    last = f[n]
    for i in range(n + 1):
        f[i] = 0.0 if i >= first and may_end(items, i, split) else -1.0
    best = tell_apart(first, n, steps, falls, f)
    if best < 0 or np.sum(f > -1.0) > 1:
        return -1, 0.0, 0.0, 0.0
    inside, outside = sums_of_set(items, n - best, sums, rule)
    nodes = reciprocal_nodes(low, high)
    f, std = value_and_spread(k + best, inside, outside, none, nodes, c)
    return best, f, std, last
