"""The reciprocal as a sum of exponentials: the one quadrature behind every expected value.

F is a ratio whose denominator x = k + β²S is a sum over independent labels. Writing

    1/x = ∫₀^∞ e^{-ux} du ≈ Σ_m ω_m e^{-u_m x}

turns the expectation of the ratio into expectations of products, which independence makes easy.
The nodes depend on the range of x alone, so one set of them serves every item and every k, and
since all weights are positive, the relative error on 1/x is a relative error on every E[F].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
SHORT_NODES = np.array(
    [
        0.0014877562433618632,
        0.007897792407582278,
        0.019677572171756127,
        0.037284842877598555,
        0.06145053860578527,
        0.09327158387779658,
        0.1343444189479892,
        0.18694649312972822,
        0.2542661989638333,
        0.34067942989837147,
        0.4520798489201221,
        0.5962894589531909,
        0.7835954829769485,
        1.0274724569832945,
        1.3455615500117193,
        1.7610066205572519,
        2.30430616517051,
        3.0159647367590647,
        3.950502347542293,
        5.1830433350908365,
        6.82147425148191,
        9.03264552194716,
        12.112799337446043,
        16.766735784636946,
    ]
)
SHORT_WEIGHT = np.array(
    [
        0.0038247160162373163,
        0.009037732066462025,
        0.014597003559545976,
        0.020737854222108276,
        0.027774148721669677,
        0.03613099041680632,
        0.04639041286020623,
        0.05934053652668518,
        0.07602275003759797,
        0.0977792595631519,
        0.12631643823527755,
        0.163805449928171,
        0.21303625700502393,
        0.277635974690644,
        0.3623692797099181,
        0.4735609549434699,
        0.6197246301995897,
        0.8125754100174504,
        1.0688340265039264,
        1.4138436339822804,
        1.8898683087058055,
        2.5787089922921274,
        3.6818579661561697,
        5.99647921893825,
    ]
)


class Nodes(NamedTuple):
    """Nodes u and weights ω with 1/x = Σ ω e^{-ux} and 1/x² = Σ ω u e^{-ux} on a range of x."""

    u: NDArray[np.float64]
    weight: NDArray[np.float64]


@kernel
def reciprocal_nodes(low: float, high: float) -> Nodes:
    """Return nodes and weights for every x in [low, high]: 24, or more as log(high/low) grows.

    >>> u, weight = reciprocal_nodes(2.0, 5.0)
    >>> abs(float(weight @ np.exp(-u * 4.0)) - 0.25) < 1e-14
    True
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
    mean: float, n: float, c: Coefficients, least: float, most: float, certain: float = 0.0
) -> tuple[float, float]:
    """Return a range of plausible denominators of sets of `least` to `most` of n items.

    `mean` is the expected number of positives, of which at least `certain` matter: where no item is
    positive the numerator is s0, and if that is 0 only one positive or more has to be in the range.
    """
    fewest, largest = plausible_positives(mean, n)
    low = least_denominator(least, max(fewest, certain), c)
    return low, most + c.s1 + max(c.b_in, c.b_out) * largest
