"""Compiled sums of groups on the unit circle: characteristic functions of counts.

The label of an item, turned by x = e^{iθ}, has the factor 1 - p + p x = 1 - p w with w = 1 - x, as
in expected/tilt_kernels.py with complex numbers.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.tilt_kernels import dot


@kernel
def group_logs(count, centre, rest, half, moments, w, x, logs):
    """Fill Σ log(1 - p w) of each group at each θ, from the group's power sums.

    The series is that of summary/kernels.py; |1 - c w|² = 1 - c (1 - c) |w|². Of the upper groups,
    p ≥ 1/2, the factors are divided by x first, so that many sure items turn by little.
    """
    square = w.real * w.real + w.imag * w.imag
    for i in range(count.size):
        c, q = centre[i], rest[i]
        s1, s2, s3 = moments[i, 0], moments[i, 1], moments[i, 2]
        s4, s5, s6 = moments[i, 3], moments[i, 4], moments[i, 5]
        for m in range(w.size):
            z = half[i] * w[m] / (q + c * x[m])
            tail = s3 / 3 + z * (s4 / 4 + z * (s5 / 5 + z * (s6 / 6)))
            length = 0.5 * math.log1p(-c * q * square[m])
            if c < 0.5:
                angle = math.atan2(c * x[m].imag, q + c * x[m].real)
            else:
                angle = math.atan2(-q * x[m].imag, c + q * x[m].real)
            logs[i, m] = count[i] * complex(length, angle) - z * (s1 + z * (s2 / 2 + z * tail))


@kernel
def inverse(c, q, x):
    """1 / (q + c x)."""
    real, imaginary = q + c * x.real, c * x.imag
    square = 1.0 / (real * real + imaginary * imaginary)
    return complex(real * square, -imaginary * square)


@kernel
def group_found(count, centre, rest, half, moments, w, x, by_false, waves, found):
    """Fill E[T ℓ_j(S)] of each group: Σ π = Σ p x / (1 - p w) at each θ, times the waves.

    By false positives it is Σ (1 - π) = Σ (1 - p) / (1 - p w). Row j of `waves` has the factors of
    the real parts, then those of the imaginary ones.
    """
    size = w.size
    turned = np.empty(2 * size)
    for i in range(count.size):
        n, h = count[i], half[i]
        c, q = centre[i], rest[i]
        s1, s2, s3 = moments[i, 0], moments[i, 1], moments[i, 2]
        s4, s5, s6 = moments[i, 3], moments[i, 4], moments[i, 5]
        for m in range(size):
            inside = inverse(c, q, x[m])
            z = h * w[m] * inside
            series = s1 + z * (s2 + z * (s3 + z * (s4 + z * (s5 + z * s6))))
            if by_false:
                sum_ = inside * (q * (n + z * series) - h * series)
            else:
                sum_ = x[m] * inside * (c * (n + z * series) + h * series)
            turned[m] = sum_.real
            turned[size + m] = sum_.imag
        for j in range(found.shape[1]):
            found[i, j] = dot(turned, waves[j])


@kernel
def turned_sums(count, centre, rest, half, moments, w, x, pi, negative, variance):
    """Fill Σ π, Σ (1 - π) and Σ π (1 - π) over all groups at each θ (see summary/kernels.py)."""
    s = np.empty(8)
    d = np.empty(6)
    pi[:], negative[:], variance[:] = 0.0, 0.0, 0.0
    for i in range(count.size):
        c, q, h = centre[i], rest[i], half[i]
        s[0], s[7] = count[i], 0.0
        s[1:7] = moments[i]
        for j in range(6):
            d[j] = (j + 1) * (c * q * s[j] + h * (q - c) * s[j + 1] - h * h * s[j + 2])
        for m in range(w.size):
            inside = inverse(c, q, x[m])
            z = h * w[m] * inside
            powers = s[1] + z * (s[2] + z * (s[3] + z * (s[4] + z * (s[5] + z * s[6]))))
            whole = s[0] + z * powers
            pi[m] += x[m] * inside * (c * whole + h * powers)
            negative[m] += inside * (q * whole - h * powers)
            series = d[0] + z * (d[1] + z * (d[2] + z * (d[3] + z * (d[4] + z * d[5]))))
            variance[m] += x[m] * inside * inside * series
