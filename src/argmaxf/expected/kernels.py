"""Compiled primitives that every loop shares: tilts, factors, and the marking of the top k.

Kernels are arrays in, arrays out, without validation, imported when the first one is needed. Every
kernel releases the interpreter lock and takes read-only inputs (`arrays.readonly`), so that one
compiled version serves memory maps, frozen arrays and plain ones. `compiled.py` says how they are
compiled and kept.

The label of an item, tilted by x = e^{-bu}, is positive with probability π = p x / (1 - p w),
w = 1 - x. Loops over items run over the nodes inside, where the compiler vectorizes.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel

LEAST_X = math.exp(-120.0)  # below this a tilted term is lost even times β⁴; keeps 0/0 away


@kernel
def select(p, threshold, ties, out):
    """Mark items above the threshold, and the first `ties` of those equal to it."""
    for i in range(p.size):
        out[i] = p[i] > threshold
        if p[i] == threshold and ties > 0:
            out[i] = True
            ties -= 1
    return ties


@kernel
def tilt(u, b):
    """w = 1 - e^{-bu} and x = e^{-bu}, both to full relative precision; b = β² for F_β."""
    w = np.empty(u.size)
    x = np.empty(u.size)
    for m in range(u.size):
        t = b * u[m]
        if t < 0.7:
            w[m] = -math.expm1(-t)
            x[m] = 1.0 - w[m]
        else:
            x[m] = max(math.exp(-t), LEAST_X)
            w[m] = 1.0 - x[m]
    return w, x


@kernel
def factor(p, q):
    """1 - p w as a + b x + c w, q = 1 - p: nothing cancels for p and w anywhere in [0, 1]."""
    return (1.0, 0.0, -p) if p < 0.5 else (0.0, 1.0, q)


@kernel
def log_factor(p, q, w, x):
    """log(1 - p w) to full relative precision, q = 1 - p."""
    return math.log1p(-p * w) if p * w < 0.5 else math.log(x + q * w)


@kernel
def largest(values, count):
    """Return the `count` ≥ 1 largest values, the least of them first, the others in no order.

    Quickselect, in linear time on average; NumPy's partition takes two seconds to compile.
    """
    rest = values.copy()
    wanted = rest.size - count
    low, high = 0, rest.size - 1
    while low < high:
        pivot = rest[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while rest[left] < pivot:
                left += 1
            while rest[right] > pivot:
                right -= 1
            if left <= right:
                rest[left], rest[right] = rest[right], rest[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return rest[wanted:]


@reordering_kernel
def dot(a, b):
    """Σ a b."""
    total = 0.0
    for m in range(b.size):
        total += a[m] * b[m]
    return total


@kernel
def longest(offsets):
    """How many items the longest of the sets has that lie one after another."""
    most = 0
    for r in range(offsets.size - 1):
        most = max(most, offsets[r + 1] - offsets[r])
    return most
