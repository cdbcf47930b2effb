"""Compiled products over sorted items: log G = Σ log(1 - p w) at each node.

See kernels.py for the conventions.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel
from argmaxf.expected.tilt_kernels import factor, log_factor

BLOCK = 64  # items between two looks at products of small p
# A product is multiplied by RESCALE once it is below SMALL: three more factors cannot underflow.
SMALL = 2.0**-400
RESCALE = 2.0**540
LOG_RESCALE = 540.0 * math.log(2.0)
RARE = 1.0 / 8.0  # four items below this make one factor


@kernel
def rescale(product, log_g):
    """Multiply products that are nearly lost, exactly; their logarithms take note of it."""
    for m in range(product.size):
        if product[m] < SMALL:
            product[m] *= RESCALE
            log_g[m] -= LOG_RESCALE


@kernel
def times_four(p, w, product):
    """Multiply products by 1 - p w of four small p: a polynomial in w by their symmetric sums."""
    sum1, product1 = p[0] + p[1], p[0] * p[1]
    sum2, product2 = p[2] + p[3], p[2] * p[3]
    e1 = sum1 + sum2
    e2 = sum1 * sum2 + (product1 + product2)
    e3 = product1 * sum2 + sum1 * product2
    e4 = product1 * product2
    for m in range(w.size):
        product[m] *= 1.0 - w[m] * (e1 - w[m] * (e2 - w[m] * (e3 - w[m] * e4)))


@kernel
def log_product(ascending, w, x, log_g):
    """log G = Σ log(1 - p w) over sorted items, by products that are rescaled before underflow.

    A block of items below one half cannot lose a product that was just rescaled.
    """
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
        rare = start
        while rare + 4 <= stop and ascending[rare + 3] < RARE:
            times_four(ascending[rare : rare + 4], w, product)
            rare += 4
        for i in range(rare, stop):
            a, b, c = factor(ascending[i], 1.0 - ascending[i])
            for m in range(w.size):
                product[m] *= a + b * x[m] + c * w[m]
            if i % 3 == 2 and ascending[i] >= 0.5:
                rescale(product, log_g)
        rescale(product, log_g)
    for m in range(w.size):
        log_g[m] += math.log(product[m])
