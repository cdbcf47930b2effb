"""Compiled loops over the sorted items of one set, one by one: its curve, its decision, its spread.

See kernels.py for the conventions, and form.py for the formulas; `c` are the coefficients of the
measure.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor, log_factor, tilt
from argmaxf.expected.nodes import plausible_positives, reciprocal_nodes
from argmaxf.expected.product_kernels import log_product
from argmaxf.expected.step_kernels import tell_apart

BLOCK = 64  # items between two fresh evaluations of e^{-uk}, so that rounding cannot build up
LARGE_B = 100.0  # above, 1 - f is summed anew where it is multiplied by b_in
# Values of f nearer than this are told apart by steps, then in higher precision (see ties.py): it
# is twice their error and more, 1e-14 and half a unit of rounding for each of 16,384 factors.
DOUBT = 4e-12


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


@reordering_kernel
def two_tilt_values(ascending, first, u, weight, log_g, tilts, c, mean, stop_early, f):
    """Fill f[k] for k = first, …, where b_in and b_out differ; return the last k evaluated.

    f_k = Σ_m ω e^{-u(k+s1)} Q_k A_k, A_k = c Σ_{i≤k} π_i + s0. Each step multiplies e^{-uk} Q_k by
    e^{-u} (1 - p_k w_in) / (1 - p_k w_out); after a block it is computed afresh.
    """
    n = ascending.size
    nodes = u.size
    w_in, x_in, w_out, x_out = tilts
    log_outer = np.log(weight) + log_g - u * (c.s1 + first - 1)
    if first > 1:
        p = ascending[-1]
        for m in range(nodes):
            log_in = log_factor(p, 1.0 - p, w_in[m], x_in[m])
            log_out = log_factor(p, 1.0 - p, w_out[m], x_out[m])
            log_outer[m] += (first - 1) * (log_in - log_out)
    outer = np.empty(nodes)
    total = c.s0 + c.c * (first - 1) * tilted(ascending[-1], w_in, x_in)
    lost = np.zeros(nodes)
    block = np.zeros(nodes)
    decay = np.exp(-u)
    logs_in, logs_out = np.empty(nodes), np.empty(nodes)
    best = 0.0
    for start in range(first - 1, n, BLOCK):
        stop = min(start + BLOCK, n)
        carry(total, lost, block)
        for m in range(nodes):
            outer[m] = math.exp(log_outer[m])
        for k in range(start + 1, stop + 1):
            p = ascending[n - k]
            a0, a1, a2 = factor(p, 1.0 - p)
            value = 0.0
            for m in range(nodes):
                f_in = a0 + a1 * x_in[m] + a2 * w_in[m]
                f_out = a0 + a1 * x_out[m] + a2 * w_out[m]
                inverse = 1.0 / (f_in * f_out)
                block[m] += c.c * p * x_in[m] * f_out * inverse
                outer[m] *= decay[m] * f_in * f_in * inverse
                value += outer[m] * (total[m] + block[m])
            f[k] = value
            best = max(best, value)
            if stop_early and no_better(k + 1, mean, c, best):
                return k
        items = ascending[n - stop : n - start]
        log_product(items, w_in, x_in, logs_in)
        log_product(items, w_out, x_out, logs_out)
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
    return two_tilt_values(ascending, first, u, weight, log_g, tilts, c, mean, stop_early, f)


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
    least = first + c.s1 + min(c.b_in, c.b_out) * fewest
    u, weight = nodes_of(least, reach + c.s1 + max(c.b_in, c.b_out) * most)
    w_in, x_in = tilt(u, c.b_in)
    w_out, x_out = (w_in, x_in) if c.b_in == c.b_out else tilt(u, c.b_out)
    return u, weight, (w_in, x_in, w_out, x_out)


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
    spread = zero_division * math.sqrt(math.exp(log_none) * -math.expm1(log_none))
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
    free = least <= 1  # the best k may lie beyond the useful ones only if it has to
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
