"""Compiled loops over the sorted items of one set: the value of every top k.

See kernels.py for the conventions, and form.py for the formulas; `c` are the coefficients of the
measure.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor, log_factor
from argmaxf.expected.product_kernels import log_product

BLOCK = 64  # items between two fresh evaluations of e^{-uk}, so that rounding cannot build up
LOST = -500.0  # log of what is nothing beside other terms, and still far from underflow


@kernel
def carry(total, lost, block):
    """Add a block's sums to the running sums, keeping what rounding drops (Kahan)."""
    for m in range(total.size):
        y = block[m] - lost[m]
        t = total[m] + y
        lost[m] = (t - total[m]) - y
        total[m] = t
        block[m] = 0.0


@reordering_kernel
def one_tilt_values(ascending, first, u, weight, log_g, w, x, c, mean, stop_early, f):
    """Fill f[k] for k = first, …, where b_in = b_out = b; return the last k evaluated.

    f_k = Σ_m ω e^{-u(k+s1)} G (c Σ_{i≤k} π_i + s0), with c = 1+β² for F_β. With `stop_early`, end
    where Jensen's bound (c μ + s0) / (k + s1 + b μ) shows that no larger set can be better. Items
    go in pairs, since two reciprocals cost one division. Those above the first are equal to it.
    """
    n = ascending.size
    nodes = u.size
    total = c.s0 / c.c + (first - 1) * tilted(ascending[-1], w, x)
    lost = np.zeros(nodes)
    block = np.zeros(nodes)
    outer = np.empty(nodes)
    decay = np.exp(-u)
    best = 0.0
    for k in range(first, n + 1, 2):
        if (k - first) % BLOCK == 0:
            carry(total, lost, block)
            for m in range(nodes):
                outer[m] = c.c * weight[m] * math.exp(log_g[m] - u[m] * (k - 1 + c.s1))
        p1 = ascending[n - k]
        p2 = ascending[n - k - 1] if k < n else 0.0
        a1, b1, c1 = factor(p1, 1.0 - p1)
        a2, b2, c2 = factor(p2, 1.0 - p2)
        value1 = 0.0
        value2 = 0.0
        for m in range(nodes):
            f1 = a1 + b1 * x[m] + c1 * w[m]
            f2 = a2 + b2 * x[m] + c2 * w[m]
            inverse = x[m] / (f1 * f2)
            sum1 = block[m] + p1 * f2 * inverse
            sum2 = sum1 + p2 * f1 * inverse
            outer1 = outer[m] * decay[m]
            outer2 = outer1 * decay[m]
            value1 += outer1 * (total[m] + sum1)
            value2 += outer2 * (total[m] + sum2)
            block[m] = sum2
            outer[m] = outer2
        f[k] = value1
        if k < n:
            f[k + 1] = value2
        best = max(best, value1, value2)
        if stop_early and no_better(k + 2, mean, c, best):
            return min(k + 1, n)
    return n


@kernel
def comes_back(log_outer, u, b_out):
    """Whether e^{-uk} Q_k is lost at a node now and may count before the next block.

    So it is where certain items are left out at a high price: each of them taken in multiplies Q by
    up to e^{b_out u}.
    """
    return np.any((log_outer < LOST) & (log_outer + BLOCK * b_out * u > LOST))


@kernel
def step_by_logs(p, q, u, tilts, log_outer, outer):
    """Take an item in: e^{-uk} Q_k by its logarithm, which does not underflow."""
    w_in, x_in, w_out, x_out = tilts
    for m in range(u.size):
        log_in = log_factor(p, 1.0 - p, w_in[m], x_in[m])
        log_outer[m] += log_in - log_factor(q, 1.0 - q, w_out[m], x_out[m]) - u[m]
        outer[m] = math.exp(log_outer[m])


@reordering_kernel
def two_tilt_values(inside, outside, first, u, weight, log_g, tilts, c, mean, stop_early, f):
    """Fill f[k] for k = first, …, where b_in and b_out differ; return the last k evaluated.

    f_k = Σ_m ω e^{-u(k+s1)} Q_k A_k, A_k = c Σ_{i≤k} π_i + s0. Each step multiplies e^{-uk} Q_k by
    e^{-u} (1 - p_k w_in) / (1 - p_k w_out); after a block it is computed afresh. Items may have one
    probability inside the set and another outside, both ascending in the same order: the ends of
    bands (worst_case.py). Then `log_g` is of those outside, `mean` the sum of those inside.
    """
    n = inside.size
    nodes = u.size
    w_in, x_in, w_out, x_out = tilts
    log_outer = np.log(weight) + log_g - u * (c.s1 + first - 1)
    if first > 1:
        p, q = inside[-1], outside[-1]
        for m in range(nodes):
            log_in = log_factor(p, 1.0 - p, w_in[m], x_in[m])
            log_out = log_factor(q, 1.0 - q, w_out[m], x_out[m])
            log_outer[m] += (first - 1) * (log_in - log_out)
    outer = np.empty(nodes)
    total = c.s0 + c.c * (first - 1) * tilted(inside[-1], w_in, x_in)
    lost = np.zeros(nodes)
    block = np.zeros(nodes)
    decay = np.exp(-u)
    logs_in, logs_out = np.empty(nodes), np.empty(nodes)
    best = 0.0
    for start in range(first - 1, n, BLOCK):
        stop = min(start + BLOCK, n)
        carry(total, lost, block)
        by_logs = comes_back(log_outer, u, c.b_out)
        for m in range(nodes):
            outer[m] = math.exp(log_outer[m])
        for k in range(start + 1, stop + 1):
            p, q = inside[n - k], outside[n - k]
            a0, a1, a2 = factor(p, 1.0 - p)
            b0, b1, b2 = factor(q, 1.0 - q)
            if by_logs:
                step_by_logs(p, q, u, tilts, log_outer, outer)
            value = 0.0
            for m in range(nodes):
                f_in = a0 + a1 * x_in[m] + a2 * w_in[m]
                f_out = b0 + b1 * x_out[m] + b2 * w_out[m]
                inverse = 1.0 / (f_in * f_out)
                block[m] += c.c * p * x_in[m] * f_out * inverse
                outer[m] *= 1.0 if by_logs else decay[m] * f_in * f_in * inverse
                value += outer[m] * (total[m] + block[m])
            f[k] = value
            best = max(best, value)
            if stop_early and no_better(k + 1, mean, c, best):
                return k
        if by_logs:
            continue
        log_product(inside[n - stop : n - start], w_in, x_in, logs_in)
        log_product(outside[n - stop : n - start], w_out, x_out, logs_out)
        for m in range(nodes):
            log_outer[m] += logs_in[m] - logs_out[m] - u[m] * (stop - start)
    return n


@kernel
def tilted(p, w, x):
    """π = p x / (1 - p w) of one item, at each node."""
    a0, a1, a2 = factor(p, 1.0 - p)
    return p * x / (a0 + a1 * x + a2 * w)


@kernel
def no_better(k, mean, c, best):
    """Whether Jensen's bound (c μ + s0) / (k + s1 + b μ) leaves k items and more below the best.

    b = min(b_in, b_out); with every positive inside the set, the value is concave in their number.
    """
    return c.c * mean + c.s0 < (k + c.s1 + min(c.b_in, c.b_out) * mean) * best * (1.0 - 1e-12)


@kernel
def top_values(ascending, first, c, u, weight, log_g, tilts, mean, stop_early, f):
    """Fill f[k] of the top k for k = first, …; return the last k evaluated."""
    w, x, _, _ = tilts
    if c.b_in == c.b_out:
        return one_tilt_values(ascending, first, u, weight, log_g, w, x, c, mean, stop_early, f)
    return two_tilt_values(
        ascending, ascending, first, u, weight, log_g, tilts, c, mean, stop_early, f
    )
