"""Compiled loop over items known within bands: one probability inside the set, another outside."""

from __future__ import annotations

import math

import numpy as np

from argmaxf.compiled import kernel, reordering_kernel
from argmaxf.expected.kernels import factor
from argmaxf.expected.product_kernels import log_product
from argmaxf.expected.value_kernels import BLOCK, carry, no_better


@reordering_kernel
def band_values(low, high, u, weight, log_g, tilts, c, mean, f):
    """Fill f[k] for the top k, `low` inside and `high` outside; return the last k evaluated.

    Both ascend in the same order. As in `two_tilt_values`, each step multiplies e^{-uk} Q_k by
    e^{-u} (1 - low_k w_in) / (1 - high_k w_out), and after a block it is computed afresh. `log_g`
    is Σ log(1 - high w_out) and `mean` the sum of `low`.
    """
    n = low.size
    nodes = u.size
    w_in, x_in, w_out, x_out = tilts
    log_outer = np.log(weight) + log_g - u * c.s1
    outer = np.empty(nodes)
    total, lost, block = np.full(nodes, c.s0), np.zeros(nodes), np.zeros(nodes)
    decay = np.exp(-u)
    log_in, log_out = np.empty(nodes), np.empty(nodes)
    best = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        carry(total, lost, block)
        for m in range(nodes):
            outer[m] = math.exp(log_outer[m])
        for k in range(start + 1, stop + 1):
            p = low[n - k]
            a0, a1, a2 = factor(p, 1.0 - p)
            b0, b1, b2 = factor(high[n - k], 1.0 - high[n - k])
            value = 0.0
            for m in range(nodes):
                f_in = a0 + a1 * x_in[m] + a2 * w_in[m]
                f_out = b0 + b1 * x_out[m] + b2 * w_out[m]
                block[m] += c.c * p * x_in[m] / f_in
                outer[m] *= decay[m] * f_in / f_out
                value += outer[m] * (total[m] + block[m])
            f[k] = value
            best = max(best, value)
            if no_better(k + 1, mean, c, best):
                return k
        log_product(low[n - stop : n - start], w_in, x_in, log_in)
        log_product(high[n - stop : n - start], w_out, x_out, log_out)
        for m in range(nodes):
            log_outer[m] += log_in[m] - log_out[m] - u[m] * (stop - start)
    return n


@kernel
def order_by(keys, order):
    """Put `order` in the order of its keys, equal ones as they were; `keys` are moved along.

    Keys are the bit patterns of doubles that are not negative, which grow with them. Each pass
    counts the values of 11 bits, so few that their places stay in the cache, and moves every item
    to its own: six passes, O(n).
    """
    n = keys.size
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    for digit in range(6):
        shift = np.uint64(11 * digit)
        place = np.zeros(2049, np.int64)
        for i in range(n):
            place[((keys[i] >> shift) & np.uint64(2047)) + np.uint64(1)] += 1
        if place.max() == n:  # all are equal here
            continue
        for value in range(2048):
            place[value + 1] += place[value]
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(2047)
            other_keys[place[value]] = keys[i]
            other_order[place[value]] = order[i]
            place[value] += 1
        keys[:] = other_keys
        order[:] = other_order


@kernel
def first_out_of_order(low):
    """Return the first place where sorted bands break the order of their lower ends, or -1."""
    for i in range(1, low.size):
        if low[i] < low[i - 1]:
            return i
    return -1
