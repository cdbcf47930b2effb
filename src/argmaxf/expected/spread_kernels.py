"""Compiled loops over the items of one set: the standard deviation of the measure.

Every sum is of terms that are not negative, so that nothing cancels.
"""

from __future__ import annotations

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.tilt_kernels import factor


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
