r"""The number of positives S of any number of items, at the few nodes that linear measures need.

S strays from its mean by some √n. In that window g(S) = a(k, S) is smooth, so that a few values of
it are enough: with s_j Chebyshev's nodes and ℓ_j the polynomials that are 1 at one of them and 0 at
the others,

    E[y_i g(S)] = Σ_j g(s_j) E[y_i ℓ_j(S)],     E[g(S)] = Σ_j g(s_j) E[ℓ_j(S)],

to rounding: g has no singularity but at 0 and n, and the error falls as ρ^{-nodes}, ρ the sum of
half-axes of the ellipse around the window that reaches the nearer one. Where the window is narrow,
the nodes are all its numbers. And from the characteristic function φ of S,

    P(y_i = 1, S = s) = (1/W) Σ_θ e^{-iθs} φ(θ) π_i(θ),   π = p e^{iθ} / (1 - p + p e^{iθ}),

over W equidistant θ, of which some 25 count: |φ| ≤ e^{-v (1 - cos θ)}, v the variance. So the items
of a group are known by Σ π(θ), from the power sums of the summary, and sets by sums over groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from argmaxf._base.arrays import Floats
from argmaxf.expected.groups import MOMENTS, Groups, group_variances
from argmaxf.measures import Linear

INTERPOLATION_NATS = 41.0  # probabilities below e^{-this} are taken for 0
SMALL_VARIANCE = 25.0  # below it all θ count: groups near one half must be single values then
LEAST_MASS = 1e-14  # of one number of positives for the spread
CURVE_BLOCK = 1 << 13  # numbers of a curve that are held at a time, for each of five purposes
MOST_INTERPOLATING = 128  # beyond, the window itself has hardly more numbers

Waves = NDArray[np.complex128]


@dataclass(frozen=True)
class CountDistribution:
    """S of n items at the nodes: `found[j]` is E[T ℓ_j(S)] of a set, T its true positives.

    Where most items are positive T stands for the false positives (`by_false`).
    """

    measure: Linear
    zero_division: float
    n: float
    by_false: bool
    nodes: Floats  # s_j
    mass: Floats  # E[ℓ_j(S)]
    theta: Floats
    waves: Floats  # the transforms of ℓ_j times φ: the real parts, then less the imaginary ones

    @classmethod
    def of(
        cls, groups: Groups, n: float, measure: Linear, zero_division: float
    ) -> CountDistribution:
        """Prepare a measure for items given in groups; those with p = 0 may be in none."""
        mean, s = float(groups.mass.sum()), Spectrum.of(groups, n)
        nodes, basis = _nodes(s.window, mean, n)
        waves = np.fft.rfft(basis, s.turns, axis=1)[:, : s.theta.size].T
        waves = waves * s.turned[:, None] / s.turns
        waves[1:] *= 2.0
        by_false = 2.0 * mean > n
        real = np.concatenate([waves.real, -waves.imag]).T.copy()
        return cls(measure, zero_division, n, by_false, nodes, basis @ s.mass, s.theta, real)

    def found(self, groups: Groups) -> Floats:
        """Return E[T ℓ_j(S)] of the items of each group, (groups, nodes)."""
        return self._at_nodes(self._tilted(groups)[0])

    def parts(self, k: Floats, number: Any = np.float64) -> tuple[Any, Any]:
        """Return a and b for each k, (k, nodes), in numbers of a given type."""
        sizes, s = k.astype(number)[:, None], self.nodes.astype(number)[None, :]
        n, zero = number(self.n), self.zero_division
        a, b = self.measure.parts(sizes, s, n, zero, by_false=self.by_false)
        return a, b

    def values(self, k: Floats, found: Floats) -> Floats:
        """Return the expected value of sets of k items."""
        a, b = self.parts(k)
        value: Floats = np.einsum("ij,ij->i", a, found) + b @ self.mass
        return value

    def curve(self, descending: Floats, scale: bool = False) -> Floats:
        """Return f_0 … f_n of the top k of sorted items, or the size of their terms, in O(n)."""
        f, found = np.empty(descending.size + 1), np.zeros((1, self.nodes.size))
        value, block = self.scale if scale else self.values, max(1, CURVE_BLOCK // found.size)
        f[0] = value(np.zeros(1), found)[0]
        for start in range(0, descending.size, block):
            items = descending[start : start + block]
            found = found[-1] + self._found_each(items).cumsum(axis=0)
            k = np.arange(start + 1.0, start + items.size + 1.0)
            f[start + 1 : start + items.size + 1] = value(k, found)
        return f

    def _found_each(self, items: Floats) -> Floats:
        """Return E[T ℓ_j(S)] of each item; where every count is a node, to full relative digits."""
        from argmaxf.expected import count_kernels

        if self.theta.size:
            return self.found(Groups.of_values(items, np.ones(items.size)))
        found = np.empty((items.size, self.nodes.size))
        count_kernels.tilt_counts(items, self.by_false, self.mass, found)
        return found

    def rises(self, k: Floats, start: Floats, steps: Floats) -> Any:
        """Return how much more each later set of k[1:] items is worth than the first of k[0].

        `start` is what the first set found, `steps` what each later one found beyond. In extended
        precision where the machine has it: neighbours hardly differ.
        """
        a, b = self.parts(k, np.longdouble)
        more = a[1:] * steps + (a[1:] - a[0]) * start + (b[1:] - b[0]) * self.mass
        return more.sum(axis=1)

    def scale(self, k: Floats, found: Floats) -> Floats:
        """Return the size of the terms that the values are sums of."""
        a, b = self.parts(k)
        size: Floats = (np.abs(a * found) + np.abs(b * self.mass)).sum(axis=1)
        return size

    def ceilings(self, k: Floats, after: Floats, *found: Floats) -> Floats:
        """Bound the values of k or more items, none of them better than the first `after` > k.

        The measure rises with true positives and falls with k, so none beats k items among which
        are all the true positives of the larger set. Of several bounds on those, the least counts.
        """
        a, b = self.parts(k)
        rest = b @ self.mass
        if self.by_false:
            rest -= (after - k) * (a @ self.mass)
        sums = [np.einsum("ij,ij->i", a, each) for each in found]
        return np.asarray(rest + np.minimum.reduce(sums))

    def spread(self, chosen: Groups, mean: float) -> float:
        """Return the standard deviation of the measure for a chosen set."""
        at_ends = bool(self.nodes[0] == 0.0 or self.nodes[-1] == self.n)
        likely = (self.mass > LEAST_MASS) | (not at_ends)
        k = np.array([chosen.count.sum()])
        if k[0] == self.n:  # of all items T is S: what the sums below leave of nothing is rounding
            s, mass = self.nodes[likely], self.mass[likely]
            value = self.measure.value(s, self.n, s, self.n, zero_division=self.zero_division)
            return math.sqrt(max(0.0, float(mass @ (value - mean) ** 2)))
        tilted, variance = (each.sum(axis=0) for each in self._tilted(chosen))
        middle = tilted[0].real  # E[T]
        a, b = (part[0] for part in self.parts(k))
        # a T + b - mean = a (T - E[T]) + c: its square has three terms
        away = tilted - middle
        c = a * middle + b - mean
        second, first = self._at_nodes(away * away + variance), self._at_nodes(away)
        if at_ends:  # a differs much from s to s
            a, c, second, first, mass = (each[likely] for each in (a, c, second, first, self.mass))
            around = np.maximum(second - first * first / mass, 0.0)
            square = a * a * around + mass * (a * first / mass + c) ** 2
        else:
            square = a * a * second + 2.0 * a * c * first + c * c * self.mass
        return math.sqrt(max(0.0, float(square.sum())))

    def _at_nodes(self, turned: Waves) -> Floats:
        """Return the expectations of what has these transforms, times each ℓ_j(S)."""
        return np.asarray(np.concatenate([turned.real, turned.imag], axis=-1) @ self.waves.T)

    def _tilted(self, groups: Groups) -> tuple[Waves, Waves]:
        """Return Σ π of each group at each θ, or by false positives Σ (1 - π), and Σ π (1 - π).

        Tilted labels with complex numbers: positives at x are the negatives of 1 - p at 1 / x.
        """
        x = np.exp(1j * self.theta)
        if not self.by_false:
            mirrored = {"centre": groups.rest, "rest": groups.centre, "half": -groups.half}
            groups, x = replace(groups, **mirrored), 1.0 / x
        variance, negative = group_variances(groups, 1.0 - x, x)
        return negative, variance


class Spectrum(NamedTuple):
    """The characteristic function φ of S where it matters, and the probabilities from it.

    `turns` equidistant θ are enough for the counts of the window. S leaves it, and |φ| is beyond
    the last θ kept, below e^{-INTERPOLATION_NATS}.
    """

    window: Floats
    turns: int
    theta: Floats
    turned: Waves  # φ e^{-iθ first}, `first` being the first count of the window
    mass: Floats

    @classmethod
    def of(cls, groups: Groups, n: float) -> Spectrum:
        """Return it for n items given in groups; those with p = 0 may be in none."""
        from argmaxf.expected import count_kernels

        mean, variance = float(groups.mass.sum()), variance_of(groups)
        far = count_kernels.reach(variance, INTERPOLATION_NATS)
        first, last = max(0, math.floor(mean - far)), min(int(n), math.ceil(mean + far))
        window = np.arange(first, last + 1.0)
        turns = _turns(window.size, variance)
        theta = 2.0 * math.pi * np.arange(turns // 2 + 1) / turns
        theta = theta[variance * (1.0 - np.cos(theta)) <= INTERPOLATION_NATS + 4.0]
        upper = float(groups.count[groups.centre >= 0.5].sum())
        turned = np.exp(_logs(groups, theta) + 1j * theta * (upper - first))
        padded = np.zeros(turns // 2 + 1, np.complex128)
        padded[: theta.size] = turned.conj()
        mass = np.maximum(np.fft.irfft(padded, turns)[: window.size], 0.0)
        return cls(window, turns, theta, turned, mass)


def variance_of(groups: Groups) -> float:
    """Return Σ p (1 - p)."""
    c, q, h, moments = groups.centre, groups.rest, groups.half, groups.moments
    each = groups.count * c * q + h * ((q - c) * moments[:, 0] - h * moments[:, 1])
    return float(each.sum())


def needs_values(groups: Groups) -> NDArray[np.bool_]:
    """Mark groups that must be seen as single values: near one half, where few items are unsure."""
    unsure = (groups.high > 1 / 32) & (groups.low < 31 / 32) & ~groups.runs
    return unsure & (variance_of(groups) < SMALL_VARIANCE)


def _turns(size: int, variance: float) -> int:
    """Return how many θ there are: no fewer than numbers in the window.

    Where θ near π count, an odd number, since a label of one half has no π_i at π; else one without
    large factors, which transforms are slow with.
    """
    if variance < SMALL_VARIANCE:
        return size | 1
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def _logs(groups: Groups, theta: Floats) -> Waves:
    """Return Σ log(1 - p w) over all items at each θ, less iθ for each item of upper groups.

    The series is that of group_kernels.py; |1 - c w|² = 1 - c (1 - c) |w|². Of the upper groups,
    p ≥ 1/2, the factors are divided by x first, so that many sure items turn by little.
    """
    x = np.exp(1j * theta)
    c, q = groups.centre[:, None], groups.rest[:, None]
    less, more = np.minimum(c, q), np.maximum(c, q)
    angle = np.where(c < 0.5, 1.0, -1.0) * np.arctan2(less * x.imag, more + less * x.real)
    length = 0.5 * np.log1p(-c * q * np.abs(1.0 - x) ** 2)
    wide = groups.half != 0.0
    z = groups.half[wide, None] * (1.0 - x) / (q[wide] + c[wide] * x)
    tail: Any = np.zeros_like(z)
    for j in range(MOMENTS, 0, -1):
        tail = z * (groups.moments[wide, j - 1, None] / j + tail)
    return np.asarray(groups.count @ (length + 1j * angle) - tail.sum(axis=0))


def _nodes(window: Floats, mean: float, n: float) -> tuple[Floats, Floats]:
    """Return nodes and the polynomials ℓ_j on the window: few, or all its numbers."""
    half = (window[-1] - window[0]) / 2.0
    inside = min(mean, n - mean) / max(half, 0.5)  # the nearer singularity, in half-widths
    size = MOST_INTERPOLATING
    if window[0] > 0 and window[-1] < n and inside > 1.0:
        size = (
            math.ceil(INTERPOLATION_NATS / math.log(inside + math.sqrt(inside * inside - 1.0))) + 3
        )
    if size >= min(window.size, MOST_INTERPOLATING):
        return window, np.eye(window.size)
    return chebyshev_nodes(window, size)


def chebyshev_nodes(values: Floats, size: int) -> tuple[Floats, Floats]:
    """Return Chebyshev's nodes between the first and the last value, and the ℓ_j at the values.

    ℓ_j(x) = (1/J) Σ_m T_m(x_j) T_m(x), the terms with m > 0 twice: at most about 2 anywhere, so
    that the interpolation does not make errors larger.
    """
    middle, half = (values[0] + values[-1]) / 2.0, (values[-1] - values[0]) / 2.0
    angle, m = math.pi * (np.arange(size) + 0.5) / size, np.arange(size)
    at_nodes = np.cos(np.multiply.outer(angle, m)) * np.where(m > 0, 2.0, 1.0) / size
    at_values = chebvander((values - middle) / half, size - 1)
    return middle + half * np.cos(angle), np.einsum("jm,sm->js", at_nodes, at_values)
