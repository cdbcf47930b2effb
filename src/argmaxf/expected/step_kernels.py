"""Compiled steps from one set to the next, where values of f are too near to be compared.

For measures with one tilt (F_β, Dice) let x_k = k + s1 + b S. One more item changes f by

    f_k - f_{k-1} = c E[(y_k x_{k-1} - T_{k-1} - s0/c) / (x_{k-1} x_k)]
                  = c Σ_m ω (1 - e^{-u}) e^{-u(k-1+s1)} G [gain - loss],
    gain = π_k (b (1 + Σ_{j≠k} π_j) + s1),   loss = Σ_{i<k} (π_i - π_k) + s0/c,

since labels stay independent under the tilt. Neither part cancels within itself, whatever β is, and
what all sets share (items that are certain, the odds of no positive at all) is in neither: among
equal items at the top nothing is lost, and β² → 0 leaves a small gain instead of none. So a step is
known to a part of itself, however small it is beside f.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor
from argmaxf.expected.spread_kernels import tilted_sums

BLOCK = 64  # steps between two fresh evaluations of e^{-uk}
# A step's parts are known to 2e-12 by the nodes, and to 2e-12 by rounding of 16,384 factors of G.
STEP_ERROR = 1e-11


@reordering_kernel
def one_step(p, drop, rank, c, w, x, mean, outer, decay, inverse, excess):
    """Take in the item of a rank, `drop` less probable than the last; return gain and loss.

    `excess` is Σ_{i<k} (π_i - π_k), which grows by (k-1) (π_{k-1} - π_k), and π_{k-1} - π_k =
    x (p_{k-1} - p_k) / ((1 - p_{k-1} w) (1 - p_k w)); `inverse` is 1 / (1 - p w) of the last item.
    """
    a0, a1, a2 = factor(p, 1.0 - p)
    more = (rank - 1) * drop
    gain = 0.0
    loss = 0.0
    for m in range(w.size):
        now = 1.0 / (a0 + a1 * x[m] + a2 * w[m])
        pi = p * x[m] * now
        excess[m] += more * x[m] * inverse[m] * now
        inverse[m] = now
        gain += outer[m] * pi * (c.b_in * (1.0 + (mean[m] - pi)) + c.s1)
        loss += outer[m] * excess[m]
        outer[m] *= decay[m]
    return gain, loss


@kernel
def still_in_doubt(held, ahead, error, since, doubt):
    """Compare sets in doubt with a better one, `since` ahead give or take; return how many stay."""
    stay = 0
    for i in range(held.size):
        if ahead[i] - since >= -(error[i] + doubt):
            held[stay], ahead[stay], error[stay] = held[i], ahead[i] - since, error[i] + doubt
            stay += 1
    return stay


@kernel
def candidates(ascending, first, c, u, weight, log_g, tilts, rivals):
    """Return the best of the rivals, rising numbers of items, and those that may be as good.

    The items above the first are equal to it.
    """
    n = ascending.size
    w, x, _, _ = tilts
    mean, outer = np.empty(u.size), np.empty(u.size)
    tilted_sums(ascending, w, x, mean, np.empty(u.size))
    decay, lost = np.exp(-u), -np.expm1(-u)
    inverse, excess = np.ones(u.size), np.full(u.size, c.s0 / c.c)
    held, ahead, error = np.empty_like(rivals), np.empty(rivals.size), np.empty(rivals.size)
    best, since, doubt = rivals[0], 0.0, 0.0  # f of k is `since` above that of the best
    size, next_rival = 0, 1
    for k in range(first, rivals[-1] + 1):
        if (k - first) % BLOCK == 0:
            for m in range(u.size):
                outer[m] = weight[m] * lost[m] * math.exp(log_g[m] - u[m] * (k - 1 + c.s1))
        p = ascending[n - k]
        drop = ascending[n - k + 1] - p if k > first else 0.0
        gain, loss = one_step(p, drop, k, c, w, x, mean, outer, decay, inverse, excess)
        if k <= rivals[0]:
            continue
        since += gain - loss
        doubt += STEP_ERROR * (gain + loss)
        if k < rivals[next_rival]:
            continue
        next_rival += 1
        if since > doubt:
            size = still_in_doubt(held[:size], ahead, error, since, doubt)
            best, since, doubt = k, 0.0, 0.0
        elif since >= -doubt:
            held[size], ahead[size], error[size] = k, since, doubt
            size += 1
    return best, held[:size]


@kernel
def tell_apart(ascending, first, c, u, weight, log_g, tilts, rivals, f):
    """Compare rivals of one item and more; what is certainly not the best becomes -1 in f.

    Return one that may be the best.
    """
    best, held = candidates(ascending, first, c, u, weight, log_g, tilts, rivals)
    others = f[held]
    f[rivals[rivals != best]] = -1.0
    f[held] = others
    return best
