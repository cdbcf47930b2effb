"""Compiled loops over the items of one set: the standard deviation of the measure.

Every sum is of terms that are not negative, so that nothing cancels.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor
from argmaxf.expected.product_kernels import log_product

LARGE_B = 100.0  # above, 1 - f is summed anew where it is multiplied by b_in


@reordering_kernel
def tilted_sums(items, w, x, pi, variance):
    """Fill Σ π and Σ π (1 - π) over items, for each node; two reciprocals cost one division."""
    pi[:] = 0.0
    variance[:] = 0.0
    for i in range(0, items.size, 2):
        p1 = items[i]
        p2 = items[i + 1] if i + 1 < items.size else 0.0
        a1, b1, c1 = factor(p1, 1.0 - p1)
        a2, b2, c2 = factor(p2, 1.0 - p2)
        pq1, pq2 = p1 * (1.0 - p1), p2 * (1.0 - p2)
        for m in range(w.size):
            f1 = a1 + b1 * x[m] + c1 * w[m]
            f2 = a2 + b2 * x[m] + c2 * w[m]
            inverse = 1.0 / (f1 * f2)
            inverse1 = f2 * inverse
            inverse2 = f1 * inverse
            pi[m] += p1 * inverse1 + p2 * inverse2
            variance[m] += pq1 * inverse1 * inverse1 + pq2 * inverse2 * inverse2
    for m in range(w.size):
        pi[m] *= x[m]
        variance[m] *= x[m]


@kernel
def squared_deviation(u, outer, offset, inside, outside, pi_in, var_in, pi_out, var_out):
    """Var F = E[(a T + b R + offset)² / x²] as a sum of terms that are all ≥ 0: nothing cancels.

    T and R count the positives inside and outside the set, x is the denominator, and a, b and the
    offset make it numerator - f·denominator. Tilted labels stay independent, so the bracket's
    second moment is its variance plus its squared mean, and 1/x² = Σ ω u e^{-ux}.
    """
    total = 0.0
    for m in range(u.size):
        mean = inside * pi_in[m] + outside * pi_out[m] + offset
        variance = inside * inside * var_in[m] + outside * outside * var_out[m]
        total += outer[m] * u[m] * (variance + mean * mean)
    return total


@kernel
def expected_loss(chosen, c, outer, tilts, pi_in, pi_out):
    """1 - f = E[(k - (c - b_in) T + b_out R + s1 - s0) / x], since b_in multiplies it.

    For F_β that is E[(k - T + β² R) / x]: nothing cancels.
    """
    w, x, _, _ = tilts
    total = 0.0
    for m in range(w.size):
        missed = (1.0 - (c.c - c.b_in)) * pi_in[m] + c.b_out * pi_out[m] + (c.s1 - c.s0)
        for p in chosen:
            a0, a1, a2 = factor(p, 1.0 - p)
            missed += (1.0 - p) / (a0 + a1 * x[m] + a2 * w[m])
        total += outer[m] * missed
    return total


@kernel
def none_positive(ascending):
    """P(S = 0) = Π (1 - p); 0 where it is too small to matter."""
    product = 1.0
    for i in range(ascending.size - 1, -1, -1):
        product *= 1.0 - ascending[i]
        if product < 1e-300:
            return 0.0
    return product


@kernel
def top_spread(ascending, k, f, c, u, weight, tilts, log_g):
    """Standard deviation of the measure for the top k of a sorted row."""
    w_in, x_in, w_out, x_out = tilts
    rest, chosen = ascending[: ascending.size - k], ascending[ascending.size - k :]
    pi_in, var_in = np.empty(u.size), np.empty(u.size)
    pi_out, var_out = np.empty(u.size), np.empty(u.size)
    tilted_sums(chosen, w_in, x_in, pi_in, var_in)
    tilted_sums(rest, w_out, x_out, pi_out, var_out)
    log_q = log_g
    if c.b_in != c.b_out:
        log_q, log_rest = np.empty(u.size), np.empty(u.size)
        log_product(chosen, w_in, x_in, log_q)
        log_product(rest, w_out, x_out, log_rest)
        log_q += log_rest
    x = k + c.s1  # the denominator where nothing is positive, which the nodes need not reach
    none, decay = none_positive(ascending), weight * np.exp(-u * x)
    outer = weight * np.exp(log_q - u * x)
    loss = 1.0 - f
    if c.b_in > LARGE_B:
        loss = expected_loss(chosen, c, outer, tilts, pi_in, pi_out)
        loss += none * (x - c.s0) * (1.0 / x - np.sum(decay))
    inside, outside = (c.c - c.b_in) + c.b_in * loss, -f * c.b_out
    offset = c.s0 - f * x
    square = squared_deviation(u, outer, offset, inside, outside, pi_in, var_in, pi_out, var_out)
    return math.sqrt(max(0.0, square + none * offset**2 * (1.0 / x**2 - np.sum(decay * u))))
