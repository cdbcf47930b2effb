"""The published algorithms, as readable references: for tests, teaching and the benchmark.

Each returns f_0 … f_n, the expected F_β of the empty set and of the best sets of 1 … n items, with
F = 0 where there is nothing to find and nothing predicted. They take probabilities of independent
labels, in any order; `dembczynski_2011` takes the parameters of a joint distribution.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats
from argmaxf.expected.ties import label_counts


def ye_2012(p: ArrayLike, beta_squared: Fraction | int = 1) -> Floats:
    """Algorithm 1 of Ye, Chai, Lee & Chieu (ICML 2012): O((q + r) n²) for β² = q/r.

    With the paper's errata mended: p sorted descending, line 1 over all n factors, the sum of
    line 4 up to k, and the C[i] of every k computed beforehand (O(n²) memory), since dividing
    polynomials is unstable.
    """
    p = descending(p)
    n = p.size
    q, r = Fraction(beta_squared).as_integer_ratio()
    c = [np.ones(1)]  # c[k][i] = P(S_{1:k} = i)
    for p_k in p:
        c.append(times_label(c[-1], p_k))
    f = np.zeros(n + 1)
    s = q / np.arange(1.0, (q + r) * n + 1.0)  # s[i-1] = s(n, i/q)
    for k in range(n, 0, -1):
        k1 = np.arange(1, k + 1)
        f[k] = (1.0 + r / q) * np.sum(k1 * c[k][1:] * s[r * k + q * k1 - 1])
        size = (q + r) * (k - 1)
        s = (1.0 - p[k - 1]) * s[:size] + p[k - 1] * s[q : size + q]
    return f


def chai_2005(p: ArrayLike, beta: float = 1.0) -> Floats:
    """Sum over the positives inside and outside the set: O(n³) (section 3.2.1; Chai 2005)."""
    p = descending(p)
    return np.array([expected_f_by_counts(p, k, beta * beta) for k in range(p.size + 1)])


def expected_f_by_counts(p: Any, k: int, b2: Any) -> Any:
    """f_k = Σ P(S_{1:k} = k₁) P(S_{k+1:n} = k₂) (1+β²) k₁ / (k + β² (k₁ + k₂)) for sorted p.

    Works in any arithmetic: floats, fractions or decimals.
    """
    inside, outside = label_counts(p[:k], one=1 + 0 * b2), label_counts(p[k:], one=1 + 0 * b2)
    return sum(
        inside[k1] * outside[k2] * (1 + b2) * k1 / (k + b2 * (k1 + k2))
        for k1 in range(1, k + 1)
        for k2 in range(len(outside))
    )


def jansche_2007(p: ArrayLike, beta: float = 1.0) -> Floats:
    """Sum over all (true positives, positives) states, built anew for every k: O(n⁴) (ACL 2007).

    For each k a table of P(T = t, S = s) is filled item by item (a finite-state machine that counts
    both), and F is averaged over its O(n²) states.
    """
    p = descending(p)
    n = p.size
    b2 = beta * beta
    f = np.zeros(n + 1)
    for k in range(1, n + 1):
        states = {(0, 0): 1.0}
        for i in range(n):
            after: dict[tuple[int, int], float] = {}
            for (t, s), mass in states.items():
                hit = (t + (i < k), s + 1)
                after[t, s] = after.get((t, s), 0.0) + mass * (1.0 - p[i])
                after[hit] = after.get(hit, 0.0) + mass * p[i]
            states = after
        f[k] = sum(m * (1.0 + b2) * t / (k + b2 * s) for (t, s), m in states.items())
    return f


def dembczynski_2011(joint: ArrayLike, beta: float = 1.0) -> Floats:
    """The general F maximizer, for labels that depend on each other: O(n³) (NIPS 2011).

    `joint[i, s-1]` is P(y_i = 1, S = s). Δ = P W with W_sk = (1+β²) / (k + β² s); the best set of
    size k is the k largest of column k, and f_k their sum.

    Dembczyński, Waegeman, Cheng & Hüllermeier, "An exact algorithm for F-measure maximization".
    """
    P = np.asarray(joint, dtype=np.float64)
    n, most = P.shape
    k, s, b2 = np.arange(1, n + 1), np.arange(1, most + 1), beta * beta
    delta = P @ ((1.0 + b2) / (k + b2 * s[:, None]))
    largest = -np.sort(-delta, axis=0)
    return np.append(0.0, np.cumsum(largest, axis=0).diagonal())


def lewis_1995(p: ArrayLike, beta: float = 1.0) -> tuple[Floats, Floats]:
    """Bounds on f_0 … f_n in O(n) from the sums of p alone (after Lewis, SIGIR 1995).

    Writing f_k = (1+β²) Σ_{i≤k} p_i E[1/(k + β² (1 + S_{-i}))], Jensen's inequality puts the mean
    of S_{-i} in place of it from below; S_{-i} ≥ 0 bounds it from above, and so does
    f_k ≤ (1+β²) μ / (k + β² μ). The bounds can be loose.
    """
    p = descending(p)
    b2, mean = beta * beta, p.sum()
    k = np.arange(1.0, p.size + 1.0)
    mass = np.cumsum(p)
    low = (1.0 + b2) * mass / (k + b2 * (1.0 + mean))
    high = np.minimum((1.0 + b2) * mass / (k + b2), (1.0 + b2) * mean / (k + b2 * mean))
    return np.concatenate([[0.0], low]), np.concatenate([[0.0], high])


def descending(p: ArrayLike) -> Floats:
    """Return probabilities sorted from the largest."""
    falling: Floats = np.sort(np.asarray(p, dtype=np.float64))[::-1]
    return falling


def times_label(c: Floats, p: float) -> Floats:
    """Multiply a polynomial by p x + (1 - p): one more independent label."""
    product: Floats = np.append((1.0 - p) * c, 0.0) + np.append(0.0, p * c)
    return product
