"""Compiled loops over rows, for what is known of each one on the host: nodes, sums, values."""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.flat_kernels import FLAT, GO_ON, improved, is_proven, ratio_of
from argmaxf.expected.power_kernels import log_series, pi_series
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.expected.spread_kernels import squared_deviation
from argmaxf.expected.tilt_kernels import tilt


@kernel
def improve(v, n, mean, above, ratio, band, state):
    """Improve the bands of the rows that go on, by what is above their cuts."""
    for r in range(v.size):
        if state[r] == GO_ON:
            tallied = 0, mean[r], np.rint(above[r, 0] + above[r, 1]), above[r, 0]
            v[r], ends, state[r] = improved(v[r], n, tallied, ratio)
            for i in range(3):
                band[i, r] = ends[i]


@kernel
def prove(sizes, numbers, n, ratio, band, proven):
    """Check what was taken for granted about the bands of rows that are not known to be proven."""
    c = ratio_of(ratio)
    for r in range(proven.size):
        if not proven[r]:
            mass, mean, variance, last, steepest = numbers[:, r]
            of_row = sizes[0, r], sizes[1, r], sizes[2, r]
            ends = band[0, r], band[1, r], band[2, r]
            proven[r] = steepest <= FLAT and is_proven(
                of_row, mass, mean, variance, last, n, c, ends
            )


@kernel
def fill_nodes(low, high, ratio, first, stop, out):
    """Fill in u, ω, and w and x inside and outside, for the denominators of some rows.

    Rows that need fewer nodes than others get nodes of weight 0 at u = 0.
    """
    for r in range(first, stop):
        u, weight = reciprocal_nodes(low[r], high[r])
        out[0, r, : u.size] = u
        out[1, r, : u.size] = weight
        out[2, r], out[3, r] = tilt(out[0, r], ratio[1])
        out[4, r], out[5, r] = tilt(out[0, r], ratio[2])


@kernel
def sum_powers(sums, w, x, first, stop, out):
    """Fill in Σ log(1 - p w), Σ π and Σ π (1 - π) from the power sums of some rows."""
    for r in range(first, stop):
        out[0, r] = log_series(sums[r], w[r])
        pi, _, variance = pi_series(sums[r], w[r], x[r])
        out[1, r], out[2, r] = pi, variance


@kernel
def value_rows(nodes, k, log_q, inside, outside, ratio, first, stop, out):
    """Fill in f = Σ ω e^{-u (k + s1)} Q A and its standard deviation for some rows.

    `inside` and `outside` have Σ π and Σ π (1 - π) over the pixels in a set and out of it.
    """
    c = ratio_of(ratio)
    for r in range(first, stop):
        u, outer, x = nodes[0, r], np.empty(nodes.shape[2]), k[r] + c.s1
        f = 0.0
        for m in range(u.size):
            outer[m] = nodes[1, r, m] * math.exp(min(log_q[r, m], 0.0) - u[m] * x)
            f += outer[m] * (c.c * inside[0, r, m] + c.s0)
        of = c.s0 - f * x, c.c - c.b_in * f, -c.b_out * f
        square = squared_deviation(
            u, outer, *of, inside[0, r], inside[1, r], outside[0, r], outside[1, r]
        )
        out[0, r], out[1, r] = f, math.sqrt(square)
