"""Compiled arithmetic with 32 digits, for near ties: a number is an unevaluated sum of two doubles.

The building blocks are those of Dekker (1971) and Knuth: the rounding error of a sum or product of
doubles is a double itself. See ties.py for what is computed, tilt_kernels.py for the conventions.
"""

from __future__ import annotations

import math

from argmaxf._base.compiled import kernel

DEKKER_SPLITTER = 2.0**27 + 1.0
# A product is kept between LEAST_PRODUCT_OF_PAIRS and 1 by powers of two; no factor is smaller
# (ties.py).
LEAST_PRODUCT_OF_PAIRS, RESCALE_PAIR, EXPONENT = 2.0**-300, 2.0**300, -300


@kernel
def two_sum(a, b):
    """a + b as a double and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def two_product(a, b):
    """a b as a double and its rounding error."""
    p = a * b
    t = DEKKER_SPLITTER * a
    a1 = t - (t - a)
    a2 = a - a1
    t = DEKKER_SPLITTER * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@kernel
def add(a, a_low, b, b_low):
    """The sum of two numbers."""
    s, e = two_sum(a, b)
    t, f = two_sum(a_low, b_low)
    s, e = two_sum(s, e + t)
    return two_sum(s, e + f)


@kernel
def times(a, a_low, b, b_low):
    """The product of two numbers."""
    p, e = two_product(a, b)
    return two_sum(p, e + (a * b_low + a_low * b))


@kernel
def over(a, a_low, b, b_low):
    """The quotient of two numbers: a first guess, corrected twice."""
    q1 = a / b
    p, e = times(b, b_low, q1, 0.0)
    r, r_low = add(a, a_low, -p, -e)
    q2 = r / b
    p, e = times(b, b_low, q2, 0.0)
    r, r_low = add(r, r_low, -p, -e)
    q, e = two_sum(q1, q2)
    return add(q, e, r / b, 0.0)


@kernel
def factor(p, w, w_low, x, x_low):
    """1 - p w, without cancellation; 1 - p is exact in doubles for p of at least one half."""
    if p < 0.5:
        a, e = times(w, w_low, p, 0.0)
        return add(1.0, 0.0, -a, -e)
    a, e = times(w, w_low, 1.0 - p, 0.0)
    return add(x, x_low, a, e)


@kernel
def rescaled(q, q_low, scale):
    """Return a product that neither underflows nor overflows, and the power of two it lacks."""
    if q < LEAST_PRODUCT_OF_PAIRS:
        return q * RESCALE_PAIR, q_low * RESCALE_PAIR, scale + EXPONENT
    if q > 1.0:
        return q * LEAST_PRODUCT_OF_PAIRS, q_low * LEAST_PRODUCT_OF_PAIRS, scale - EXPONENT
    return q, q_low, scale


@kernel
def top_values(inside, outside, sizes, nodes, one_tilt, c, c_low, s0, f):
    """Fill f[:, j] = f_k of the top k = sizes[j], rising, in two doubles each.

    f_k = Σ_m ω e^{-u(k+s1)} Q_k A_k, A_k = c Σ_{i≤k} π_i + s0 (integrand.py). For each m, `nodes`
    has the pairs ω e^{-u s1}, e^{-u}, w and x inside, w and x outside. Items are in ascending order
    and may have another probability outside of the set; with one tilt both are the same.
    """
    n = inside.size
    f[:] = 0.0
    for m in range(nodes.shape[0]):
        q, q_low, d, d_low, w, w_low, x, x_low, v, v_low, y, y_low = nodes[m]
        scale = 0
        for p in outside:
            a, e = factor(p, v, v_low, y, y_low)
            q, q_low = times(q, q_low, a, e)
            q, q_low, scale = rescaled(q, q_low, scale)
        t, t_low, j = s0, 0.0, 0
        for k in range(sizes[-1] + 1):
            if k == sizes[j]:
                a, b = times(q, q_low, t, t_low)
                a, b = math.ldexp(a, scale), math.ldexp(b, scale)
                f[0, j], f[1, j] = add(f[0, j], f[1, j], a, b)
                j += 1
            if k == sizes[-1]:
                break
            p = inside[n - 1 - k]
            own, e = factor(p, w, w_low, x, x_low)
            a, b = over(x, x_low, own, e)
            a, b = times(a, b, p, 0.0)
            a, b = times(a, b, c, c_low)
            t, t_low = add(t, t_low, a, b)
            q, q_low = times(q, q_low, d, d_low)
            if not one_tilt:
                a, b = factor(outside[n - 1 - k], v, v_low, y, y_low)
                a, b = over(own, e, a, b)
                q, q_low = times(q, q_low, a, b)
            q, q_low, scale = rescaled(q, q_low, scale)
