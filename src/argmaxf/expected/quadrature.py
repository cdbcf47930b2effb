"""The reciprocal as a sum of exponentials: the one quadrature behind every expected value.

F is a ratio whose denominator x = k + β²S is a sum over independent labels. Writing

    1/x = ∫₀^∞ e^{-ux} du ≈ Σ_m ω_m e^{-u_m x}

turns the expectation of the ratio into expectations of products, which independence makes easy.
The nodes depend on the range of x alone, so one set of them serves every item and every k, and
since all weights are positive, the relative error on 1/x is a relative error on every E[F].
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf._base.compiled import kernel
from argmaxf.measures import Coefficients

# The trapezoid rule in v, with u = exp(v - e^{-v}) / high, converges geometrically in 1/STEP.
# With these numbers the error is below 1e-14 for 1/x and 3e-13 for 1/x², on any range of x.
STEP = 0.27
FIRST = -3.45
TAIL = 39.0  # e^{-TAIL} is dropped
WIDEST_LOG = 80.0  # log(TAIL · high / low) at most
RATIO = 160.0  # the short rule holds for high/low up to this
VECTOR_LANES = 8  # nodes come in multiples of this, the width of a vector register

_V = FIRST + STEP * np.arange(
    VECTOR_LANES * math.ceil((WIDEST_LOG - FIRST) / (STEP * VECTOR_LANES))
)
SHAPE = np.exp(_V - np.exp(-_V))
SHAPE_WEIGHT = STEP * SHAPE * (1.0 + np.exp(-_V))

# The best sum of 24 exponentials for x in [1, RATIO], found by tools/short_rule.py: the error is
# below 4e-15 for 1/x and 2e-12 for 1/x². Half as many nodes as the trapezoid rule takes there.
SHORT_RULE = """
    0.0014877562433618632 0.0038247160162373163
    0.007897792407582278 0.009037732066462025
    0.019677572171756127 0.014597003559545976
    0.037284842877598555 0.020737854222108276
    0.06145053860578527 0.027774148721669677
    0.09327158387779658 0.03613099041680632
    0.1343444189479892 0.04639041286020623
    0.18694649312972822 0.05934053652668518
    0.2542661989638333 0.07602275003759797
    0.34067942989837147 0.0977792595631519
    0.4520798489201221 0.12631643823527755
    0.5962894589531909 0.163805449928171
    0.7835954829769485 0.21303625700502393
    1.0274724569832945 0.277635974690644
    1.3455615500117193 0.3623692797099181
    1.7610066205572519 0.4735609549434699
    2.30430616517051 0.6197246301995897
    3.0159647367590647 0.8125754100174504
    3.950502347542293 1.0688340265039264
    5.1830433350908365 1.4138436339822804
    6.82147425148191 1.8898683087058055
    9.03264552194716 2.5787089922921274
    12.112799337446043 3.6818579661561697
    16.766735784636946 5.99647921893825
"""  # nodes and weights
SHORT_NODES, SHORT_WEIGHT = np.array(SHORT_RULE.split(), np.float64).reshape(-1, 2).T.copy()


class Nodes(NamedTuple):
    """Nodes u and weights ω with 1/x = Σ ω e^{-ux} and 1/x² = Σ ω u e^{-ux} on a range of x."""

    u: Floats
    weight: Floats


@kernel
def reciprocal_nodes(low: float, high: float) -> Nodes:
    """Return nodes and weights for every x in [low, high]: 24, or more as log(high/low) grows.

    >>> u, weight = reciprocal_nodes(2.0, 5.0)
    >>> round(float(weight @ np.exp(-u * 4.0)), 13)
    0.25
    """
    if high <= RATIO * low:
        return Nodes(SHORT_NODES / low, SHORT_WEIGHT / low)
    needed = (math.log(TAIL * high / low) - FIRST) / (STEP * VECTOR_LANES)
    size = VECTOR_LANES * math.ceil(needed + 1.0 / VECTOR_LANES)
    return Nodes(SHAPE[:size] / high, SHAPE_WEIGHT[:size] / high)


@kernel
def plausible_positives(mean: float, n: float) -> tuple[float, float]:
    """Return a range that the number of positives leaves with a probability too small to matter.

    Chernoff's bounds: below it with a probability under e^{-40}, above it with one under e^{-30},
    where the nodes still give 1/x to many digits.
    """
    reach = 9.0 * math.sqrt(mean)
    return max(0.0, mean - reach), min(float(n), mean + reach + 20.0)


@kernel
def least_denominator(k: float, positives: float, c: Coefficients) -> float:
    """Return what k + b_in T + b_out R + s1 is at least, for k items or more and so many positives.

    Either all positives count by the smaller coefficient; or k ≥ T, x ≥ (1 + b_in) T + b_out R.
    """
    by_size, by_found = min(c.b_in, c.b_out), min(1.0 + c.b_in, c.b_out)
    return float(c.s1 + max(k + by_size * positives, by_found * positives))


@kernel
def denominator_range(
    mean: float, n: float, c: Coefficients, least: float, most: float, certain: float
) -> tuple[float, float]:
    """Return a range of plausible denominators of sets of `least` to `most` of n items.

    `mean` is the expected number of positives, of which at least `certain` matter: where no item is
    positive the numerator is s0, and if that is 0 only one positive or more has to be in the range.
    """
    fewest, largest = plausible_positives(mean, n)
    low = least_denominator(least, max(fewest, certain), c)
    return low, most + c.s1 + max(c.b_in, c.b_out) * largest


def bounds_of_sets(
    size: NDArray[Any], least: Floats, most: Floats, c: Coefficients
) -> tuple[Floats, Floats]:
    """Bound the values of sets of sorted items that are given in groups by falling probability.

    Returns what the set of all items down to the end of each group is worth at least, and what
    those that end in the group are worth at most. `least` and `most` bound Σ p of each group. With
    M = Σ p of a set, X its denominator and x the least X, by Jensen's inequality and since the
    numerator and X rise together,

        (c M + s0) / (E[X] + b_in)  ≤  f_k  ≤  (c M + s0) (1 + Var X / x²) / E[X].

    f_k is also at most (c M + s0) / (k + s1 + b_in M), since X ≥ k + s1 + b_in T, and at most
    (c μ + s0) / (k + s1 + b μ), b the smaller of b_in and b_out, as a concave function of M.
    """
    _, b_in, b_out, s0, s1 = c
    k, low, high = np.cumsum([size, least, most], axis=1)
    first, mean_low, mean, b = k - size + 1.0, low[-1], high[-1], min(b_in, b_out)
    worth = (c.c * low + s0) / (k + s1 + b_in * (1.0 + high) + b_out * np.abs(mean - high))
    fewest, _ = plausible_positives.py_func(float(mean_low), float(k[-1]))
    x = s1 + np.maximum(first + b * fewest, min(1.0 + b_in, b_out) * fewest)
    inside = high if b_out > b_in else low - least
    mean_x = np.maximum(x, first + s1 + b_out * mean_low - (b_out - b_in) * inside)
    bound = (c.c * high + s0) / mean_x * (1.0 + max(b_in, b_out) ** 2 * mean / x**2)
    bound = np.minimum(bound, (c.c * high + s0) / (first + s1 + b_in * high))
    return worth, np.minimum(bound, (c.c * mean + s0) / (first + s1 + b * mean))
