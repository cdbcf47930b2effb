"""Compiled sums of groups on the unit circle: characteristic functions of counts.

The label of an item, turned by x = e^{iθ}, has the factor 1 - p + p x = 1 - p w with w = 1 - x, as
in expected/kernels.py with complex numbers.
"""

from __future__ import annotations

import math

from argmaxf.compiled import kernel


@kernel
def group_logs(count, centre, rest, half, moments, theta, w, x, logs):
    """Fill Σ log(1 - p w) of each group at each θ, from the group's power sums.

    The series is that of summary/kernels.py; |1 - c w|² = 1 - 4 c (1 - c) sin²(θ/2). Of the upper
    groups, p ≥ 1/2, the factors are divided by x first, so that many sure items turn by little.
    """
    for i in range(count.size):
        c, q = centre[i], rest[i]
        s1, s2, s3 = moments[i, 0], moments[i, 1], moments[i, 2]
        s4, s5, s6 = moments[i, 3], moments[i, 4], moments[i, 5]
        for m in range(theta.size):
            z = half[i] * w[m] / (q + c * x[m])
            tail = s3 / 3 + z * (s4 / 4 + z * (s5 / 5 + z * (s6 / 6)))
            short = math.sin(0.5 * theta[m])
            length = 0.5 * math.log1p(-4.0 * c * q * short * short)
            if c < 0.5:
                angle = math.atan2(c * x[m].imag, q + c * x[m].real)
            else:
                angle = math.atan2(-q * x[m].imag, c + q * x[m].real)
            logs[i, m] = count[i] * complex(length, angle) - z * (s1 + z * (s2 / 2 + z * tail))


@kernel
def group_turns(count, centre, rest, half, moments, w, x, pi):
    """Fill Σ p x / (1 - p w) of each group at each θ, from the group's power sums."""
    for i in range(count.size):
        n, h = count[i], half[i]
        c, q = centre[i], rest[i]
        s1, s2, s3 = moments[i, 0], moments[i, 1], moments[i, 2]
        s4, s5, s6 = moments[i, 3], moments[i, 4], moments[i, 5]
        for m in range(w.size):
            inverse = 1.0 / (q + c * x[m])
            z = h * w[m] * inverse
            series = s1 + z * (s2 + z * (s3 + z * (s4 + z * (s5 + z * s6))))
            pi[i, m] = x[m] * inverse * (c * (n + z * series) + h * series)
