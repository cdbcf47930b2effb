"""Compiled loops over sorted items, one by one: rows of a matrix, and whole curves.

See kernels.py for the conventions.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor, log_factor, select, tilt
from argmaxf.expected.nodes import plausible_positives, reciprocal_nodes

BLOCK = 64  # items between two fresh evaluations of e^{-uk}, so that rounding cannot build up
# A product is multiplied by RESCALE once it is below SMALL: three more factors cannot underflow.
SMALL = 2.0**-400
RESCALE = 2.0**540
LOG_RESCALE = 540.0 * math.log(2.0)
LARGE_B2 = 100.0  # above, 1 - f is summed anew where it is multiplied by β²
CONTEST = 1e-13  # values of f nearer than this are told apart in decimals (see contest.py)


@kernel
def log_product(ascending, w, x, log_g):
    """log G = Σ log(1 - p w) over sorted items, by products that are rescaled before underflow."""
    n = ascending.size
    product = np.ones(w.size)
    log_g[:] = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if ascending[start] == ascending[stop - 1]:
            # Equal values round equally: their product would drift, the logarithm does not.
            p = ascending[start]
            for m in range(w.size):
                log_g[m] += (stop - start) * log_factor(p, 1.0 - p, w[m], x[m])
            continue
        for i in range(start, stop):
            a, b, c = factor(ascending[i], 1.0 - ascending[i])
            for m in range(w.size):
                product[m] *= a + b * x[m] + c * w[m]
            if i % 3 == 2:
                for m in range(w.size):
                    if product[m] < SMALL:
                        product[m] *= RESCALE
                        log_g[m] -= LOG_RESCALE
    for m in range(w.size):
        log_g[m] += math.log(product[m])


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
def fbeta_values(ascending, u, weight, log_g, w, x, b2, mean, stop_early, f):
    """Fill f[k] = E[F_β] of the top k for k = 1, 2, …; return the last k evaluated.

    f_k = (1+β²) Σ_m ω e^{-uk} G Σ_{i≤k} π_i. With `stop_early`, end where Jensen's bound
    (1+β²) μ / (k + β² μ) shows that no larger set can be better. Items go in pairs, since two
    reciprocals cost one division.
    """
    n = ascending.size
    nodes = u.size
    total = np.zeros(nodes)
    lost = np.zeros(nodes)
    block = np.zeros(nodes)
    outer = np.empty(nodes)
    decay = np.exp(-u)
    best = 0.0
    for k in range(1, n + 1, 2):
        if (k - 1) % BLOCK == 0:
            carry(total, lost, block)
            for m in range(nodes):
                outer[m] = (1.0 + b2) * weight[m] * math.exp(log_g[m] - u[m] * (k - 1))
        p1 = ascending[n - k]
        p2 = ascending[n - k - 1] if k < n else 0.0
        a1, b1, c1 = factor(p1, 1.0 - p1)
        a2, d2, c2 = factor(p2, 1.0 - p2)
        value1 = 0.0
        value2 = 0.0
        for m in range(nodes):
            f1 = a1 + b1 * x[m] + c1 * w[m]
            f2 = a2 + d2 * x[m] + c2 * w[m]
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
        if stop_early and (1.0 + b2) * mean < (k + 2 + b2 * mean) * best * (1.0 - 1e-12):
            return min(k + 1, n)
    return n


@reordering_kernel
def jaccard_values(ascending, u, weight, log_g, w, x, mean, stop_early, f):
    """Fill f[k] = E[J] of the top k; return the last k evaluated.

    f_k = M_k Σ_m ω e^{-uk} H_k, M_k = Σ_{i≤k} p_i, H_k = Π_{j>k} (1 - p_j w). Each step multiplies
    by e^{-u} / (1 - p_k w) ≤ 1, so nothing overflows. E[J] ≤ M_k / k ≤ μ / k ends the loop.
    """
    n = ascending.size
    nodes = u.size
    log_outer = np.log(weight) + log_g
    outer = np.empty(nodes)
    best = 0.0
    mass = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for m in range(nodes):
            outer[m] = math.exp(log_outer[m])
        for k in range(start + 1, stop + 1):
            p = ascending[n - k]
            mass += p
            a, b, c = factor(p, 1.0 - p)
            value = 0.0
            for m in range(nodes):
                outer[m] *= x[m] / (a + b * x[m] + c * w[m])
                value += outer[m]
            f[k] = mass * value
            best = max(best, f[k])
            if stop_early and mean < (k + 1) * best * (1.0 - 1e-12):
                return k
        block = ascending[n - stop : n - start]
        log_block = np.empty(nodes)
        log_product(block, w, x, log_block)
        for m in range(nodes):
            log_outer[m] -= log_block[m] + u[m] * (stop - start)
    return n


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
def squared_deviation(u, weight, log_g, k, f, inside, outside, pi_in, var_in, pi_out, var_out):
    """Var F = E[(a T + b R - f k)² / x²] as a sum of terms that are all ≥ 0: nothing cancels.

    T and R count the positives inside and outside the set, x is the denominator, and a and b make
    numerator - f·denominator = a T + b R - f k. Tilted labels stay independent, so the bracket's
    second moment is its variance plus its squared mean, and 1/x² = Σ ω u e^{-ux}.
    """
    total = 0.0
    for m in range(u.size):
        mean = inside * pi_in[m] + outside * pi_out[m] - f * k
        variance = inside * inside * var_in[m] + outside * outside * var_out[m]
        scale = weight[m] * u[m] * math.exp(log_g[m] - u[m] * k)
        total += scale * (variance + mean * mean)
    return total


nodes_of = kernel(reciprocal_nodes)
plausible = kernel(plausible_positives)


@kernel
def largest_useful_k(ascending, mean, b2, jaccard):
    """An upper bound on the best k, by Jensen's inequality from both sides.

    F:  (1+β²) M_k / (k + β² (1 + μ)) ≤ f_k ≤ (1+β²) μ / (k + β² μ)
    J:  M_k / (k + μ - M_k) ≤ f_k ≤ μ / k
    """
    n = ascending.size
    mass = 0.0
    best = 0.0
    for k in range(1, n + 1):
        mass += ascending[n - k]
        below = mass / (k + mean - mass) if jaccard else mass / (k + b2 * (1.0 + mean))
        best = max(best, below)
    return min(float(n), mean / best - (0.0 if jaccard else b2 * mean) + 1.0)


@kernel
def row_nodes(ascending, mean, b2, jaccard, reach):
    """Nodes for the sets of at most `reach` of some sorted items, with w and x there."""
    fewest, most = plausible(mean, ascending.size)
    u, weight = nodes_of(1.0 if jaccard else 1.0 + b2 * fewest, reach + b2 * most)
    w, x = tilt(u, b2)
    return u, weight, w, x


@kernel
def expected_loss(chosen, b2, u, weight, w, x, log_g, pi_out):
    """1 - f = E[(k - T + β² R) / (k + β² S)] without cancellation, since β² multiplies it."""
    total = 0.0
    for m in range(u.size):
        missed = b2 * pi_out[m]
        for p in chosen:
            a, b, c = factor(p, 1.0 - p)
            missed += (1.0 - p) / (a + b * x[m] + c * w[m])
        total += weight[m] * math.exp(log_g[m] - u[m] * chosen.size) * missed
    return total


@kernel
def top_spread(ascending, k, f, b2, jaccard, u, weight, w, x, log_g):
    """Standard deviation of F (or of Jaccard) for the top k of a sorted row."""
    n = ascending.size
    rest, chosen = ascending[: n - k], ascending[n - k :]
    pi_in, var_in = np.empty(u.size), np.empty(u.size)
    pi_out, var_out = np.empty(u.size), np.empty(u.size)
    tilted_sums(rest, w, x, pi_out, var_out)
    if jaccard:  # the labels inside are not in the denominator: no tilt for them
        log_g = np.empty(u.size)
        log_product(rest, w, x, log_g)
        tilted_sums(chosen, np.zeros(u.size), np.ones(u.size), pi_in, var_in)
        inside, outside = 1.0, -f
    else:
        tilted_sums(chosen, w, x, pi_in, var_in)
        loss = 1.0 - f
        if b2 > LARGE_B2:
            loss = expected_loss(chosen, b2, u, weight, w, x, log_g, pi_out)
        inside, outside = 1.0 + b2 * loss, -f * b2
    return math.sqrt(
        squared_deviation(u, weight, log_g, k, f, inside, outside, pi_in, var_in, pi_out, var_out)
    )


@kernel
def decide_row(ascending, b2, jaccard, zero_division, split_ties, forced, f):
    """Decide one sorted row: k, E[F], its standard deviation, and how many k look as good.

    `f` is scratch of n + 1 numbers; what is not competing is -1 there. With `forced` ≥ 0 that k is
    taken and evaluated.
    """
    n = ascending.size
    mean = 0.0
    for p in ascending:
        mean += p
    log_none = 0.0  # log P(S = 0)
    if zero_division > 0.0:
        for p in ascending:
            log_none += math.log1p(-p)
    f[:] = -1.0
    f[0] = zero_division * math.exp(log_none)
    if mean == 0.0:
        return 0, f[0], 0.0, 1
    reach = largest_useful_k(ascending, mean, b2, jaccard)
    u, weight, w, x = row_nodes(ascending, mean, b2, jaccard, reach)
    log_g = np.empty(u.size)
    log_product(ascending, w, x, log_g)
    if jaccard:
        last = jaccard_values(ascending, u, weight, log_g, w, x, mean, True, f)
    else:
        last = fbeta_values(ascending, u, weight, log_g, w, x, b2, mean, True, f)
    if not split_ties:
        for j in range(1, last + 1):
            if j < n and ascending[n - j] == ascending[n - j - 1]:
                f[j] = -1.0
    k = np.argmax(f) if forced < 0 else forced
    rivals = np.sum(f >= f[k] * (1.0 - CONTEST))
    if k == 0:
        std = zero_division * math.sqrt(math.exp(log_none) * -math.expm1(log_none))
    else:
        std = top_spread(ascending, k, f[k], b2, jaccard, u, weight, w, x, log_g)
    return k, f[k], std, rivals


@kernel
def decide_rows(ascending, b2, jaccard, zero_division, split_ties, k, expected, std, rivals):
    """Decide every sorted row."""
    f = np.empty(ascending.shape[1] + 1)
    for r in range(ascending.shape[0]):
        k[r], expected[r], std[r], rivals[r] = decide_row(
            ascending[r], b2, jaccard, zero_division, split_ties, -1, f
        )


@kernel
def select_rows(p, ascending, k, out):
    """Mark the top k of every row."""
    n = p.shape[1]
    for r in range(p.shape[0]):
        if k[r] == 0:
            out[r, :] = False
        else:
            threshold = ascending[r, n - k[r]]
            ties = 0
            for i in range(n - k[r], n):
                ties += ascending[r, i] == threshold
            select(p[r], threshold, ties, out[r])
