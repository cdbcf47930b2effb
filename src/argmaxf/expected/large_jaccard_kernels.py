"""One set of many items under Jaccard (IoU), compiled from end to end, as `large_kernels` for F_β.

f_k = Σ_m e^{-u_m k} ω Q_k M_k, where M_k = Σ_{i≤k} p_i and Q_k = Π_{i>k} (1 - p_i w): both grow
with k (`form.py` with b_in = 0, b_out = 1), so that their values at a group's ends bound f inside.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel
from argmaxf.expected.kernels import factor, tilt
from argmaxf.expected.large_kernels import (
    BAD,
    COLUMNS,
    ROWS,
    SLACK,
    TINY_ROW,
    WIDE,
    alone,
    gathered,
    groups_of,
    stretch,
    useful,
)
from argmaxf.expected.row_kernels import nodes_of, plausible
from argmaxf.expected.spread_kernels import squared_deviation, tilted_sums
from argmaxf.expected.summary.kernels import group_terms, group_variances, summarize

WIDEST = 1 << 16  # items of a band at most
FLUSH = 16  # factors multiplied before a logarithm is taken
HIGHEST = 0.99  # of a band: the product of so many factors 1 - p w must not vanish


@kernel
def least_k(k, mass, best, fewest):
    """The last border with too little inside to be the best: nodes need not reach below it."""
    poor = 1.0
    for g in range(k.size):
        if mass[g] < (1.0 - SLACK) * best * fewest:
            poor = max(poor, k[g])
    return poor


@kernel
def group_bounds(low, high, mass, q, decay, kept, lost, w):
    """A bound on f in a group, and whether f only falls or only rises there.

    Φ_k - Φ_{k-1} = ω Q_{k-1} p / (1 - p w) · (w M_{k-1} + 1), and Q_{k-1} / (1 - p w) = Q_k.
    """
    ceiling = most = least = down = down_most = 0.0
    for m in range(w.size):
        ahead = decay[0, m] * q[1, m]
        behind = decay[1, m] * q[0, m]
        ceiling += ahead * kept[m] * mass[1]
        most += ahead * kept[m] * high * (w[m] * mass[1] + 1.0)
        least += behind * low / (1.0 - low * w[m]) * (w[m] * mass[0] + 1.0)
        down += behind / kept[m] * lost[m] * mass[0]
        down_most += ahead * lost[m] * mass[1]
    return ceiling, most < (1.0 - SLACK) * down, least > (1.0 + SLACK) * down_most


@kernel
def band_of(groups, k, mass, f, q, decay, u, w, reach):
    """Return the groups from the first to after the last that may hold the optimum."""
    size = groups.shape[1]
    kept, lost = np.exp(-u), -np.expm1(-u)
    best = 0.0
    for g in range(1, size + 1):
        if k[g] <= reach:
            best = max(best, f[g])
    is_open, rises = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for g in range(size):
        if k[g] >= reach:
            break
        ends = mass[g : g + 2], q[g : g + 2], decay[g : g + 2]
        ceiling, falls, rises[g] = group_bounds(groups[4, g], groups[5, g], *ends, kept, lost, w)
        is_open[g] = ceiling >= (1.0 - SLACK) * best and not falls
    return stretch(is_open, rises)


@kernel
def best_item(ascending, k0, f0, mass, q, u, w, x, reach, f):
    """Fill f after each item of the band, by exact differences; return the best number, or 0.

    f_{k+1} - f_k = Σ ω Q_k e^{-uk} [e^{-u} p - (1 - e^{-u}) (1 - p) M_k] / (1 - p w); 0 for near
    ties.
    """
    n, nodes = ascending.size, u.size
    kept, lost, log_q = np.exp(-u), -np.expm1(-u), np.log(q)
    outer, product = np.empty(nodes), np.ones(nodes)
    value, top = f0, 0
    f[0] = -1.0
    for i in range(1, n + 1):
        if (i - 1) % FLUSH == 0:
            for m in range(nodes):
                log_q[m] -= math.log(product[m])
                product[m] = 1.0
                outer[m] = math.exp(log_q[m] - u[m] * (k0 + i - 1))
        p = ascending[n - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        step = 0.0
        for m in range(nodes):
            left_out = a0 + a1 * x[m] + a2 * w[m]
            inverse = 1.0 / left_out
            step += outer[m] * inverse * (kept[m] * p - lost[m] * (1.0 - p) * mass)
            outer[m] *= kept[m] * inverse
            product[m] *= left_out
        mass += p
        value += step
        f[i] = value if k0 + i <= reach else -1.0
        if f[i] > f[top]:
            top = i
    return alone(f, top, k0)


@kernel
def spread(groups, moments, pi, ascending, first, stop, best, k, f, u, weight, w, x, log_q):
    """Standard deviation of Jaccard for the groups above a band and the best of its items."""
    size, nodes = groups.shape[1], u.size
    variance, negative = np.empty((size, nodes)), np.empty((size, nodes))
    group_variances(groups[0], groups[1], groups[2], groups[3], moments, w, x, variance, negative)
    pi_in, var_in, pi_out, var_out = np.zeros((4, nodes))
    items = ascending.size
    tilted_sums(ascending[: items - best], w, x, pi_out, var_out)
    chosen, chosen_variance = np.empty((size, 1)), np.empty((size, 1))
    group_variances(
        groups[0], groups[1], groups[2], groups[3], moments, np.zeros(1), np.ones(1),
        chosen_variance, chosen,
    )  # fmt: skip
    for g in range(size):
        if g < first:  # inside of the set labels are not tilted
            pi_in += groups[0, g] - chosen[g, 0]
            var_in += chosen_variance[g, 0]
        elif g >= stop:
            pi_out += pi[g]
            var_out += variance[g]
    for i in range(items - best, items):
        p = ascending[i]
        a0, a1, a2 = factor(p, 1.0 - p)
        pi_in += p
        var_in += p * (1.0 - p)
        for m in range(nodes):
            log_q[m] -= math.log(a0 + a1 * x[m] + a2 * w[m])
    outer = weight * np.exp(log_q - u * k)
    return math.sqrt(squared_deviation(u, outer, -f * k, 1.0, -f, pi_in, var_in, pi_out, var_out))


@kernel
def decide_large(p, c):
    """Return k, the threshold, the expected value and its standard deviation.

    For c = 1, b_in = 0, b_out = 1 and no smoothing. k is BAD or WIDE where there is no answer.
    """
    table = np.zeros((ROWS, COLUMNS))
    if not summarize(p, table):
        return BAD, 0.0, 0.0, 0.0
    rows = np.flatnonzero(table[: TINY_ROW + 1, 0])
    size = rows.size
    if size == 0:
        return WIDE, 0.0, 0.0, 0.0
    groups, moments = np.empty((6, size)), np.empty((size, 6))
    groups_of(table, rows, groups, moments)
    mean, at_least, reach = useful(groups, moments, c)
    fewest, most = plausible(mean, p.size)
    k, mass, f = np.zeros(size + 1), np.zeros(size + 1), np.zeros(size + 1)
    for g in range(size):
        k[g + 1] = k[g] + groups[0, g]
        mass[g + 1] = mass[g] + groups[1, g] * groups[0, g] + groups[3, g] * moments[g, 0]
    u, weight = nodes_of(least_k(k, mass, at_least, fewest), reach + most)
    w, x = tilt(u, 1.0)
    nodes = u.size
    logs, pi = np.empty((size, nodes)), np.empty((size, nodes))
    group_terms(groups[0], groups[1], groups[2], groups[3], moments, w, x, logs, pi)
    log_q = np.zeros((size + 1, nodes))
    for g in range(size - 1, -1, -1):
        log_q[g] = log_q[g + 1] + logs[g]
    q, decay = np.empty((size + 1, nodes)), np.empty((size + 1, nodes))
    for g in range(size + 1):
        for m in range(nodes):
            q[g, m] = weight[m] * math.exp(log_q[g, m])
            decay[g, m] = math.exp(-u[m] * k[g])
            f[g] += decay[g, m] * q[g, m] * mass[g]
    first, stop = band_of(groups, k, mass, f, q, decay, u, w, reach)
    if stop <= first or k[stop] - k[first] > WIDEST:
        return WIDE, 0.0, 0.0, 0.0
    items = np.empty(int(k[stop] - k[first]))
    gathered(p, rows[first], rows[stop - 1], groups[4, stop - 1], groups[5, first], items)
    items.sort()
    if items[items.size - 1] > HIGHEST:
        return WIDE, 0.0, 0.0, 0.0
    values = np.empty(items.size + 1)
    best = best_item(items, k[first], f[first], mass[first], q[first], u, w, x, reach, values)
    if best == 0:
        return WIDE, 0.0, 0.0, 0.0
    chosen, value = int(k[first]) + best, values[best]
    std = spread(
        groups, moments, pi, items, first, stop, best, chosen, value, u, weight, w, x, log_q[first]
    )
    return chosen, items[items.size - best], value, std
