"""Lemma 2 and Theorem 3: how far F on n examples is from its limit, and what training loses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from argmaxf._base.validation import (
    check_beta,
    check_count,
    check_unit_interval,
)

MOST = 10**300  # examples: more are beyond doubles


@dataclass(frozen=True)
class Bound:
    """A bound on F, and why it is infinite where it is.

    Attributes
    ----------
    value : float
        The bound, which holds with the probability asked for.
    radius : float
        r(n, η) of the paper.
    limit : float
        The number that the radius must stay below for the bound to say anything.
    reason : str
        Why the bound is infinite, in a sentence; empty where it is not.
    """

    value: float
    radius: float
    limit: float
    reason: str = ""


def deviation_bound(n: int, positive_rate: float, beta: float = 1.0, eta: float = 0.05) -> Bound:
    """Return how far F_β on n examples can be from its limit, but for a chance of η (Lemma 2).

    One fixed classifier, n i.i.d. examples. The bound says something only where
    r = √(ln(6/η)/2n) is below β²π₁/(2(1+β²)); elsewhere it is infinite and `reason` says so.

    Parameters
    ----------
    n : int
        Number of examples.
    positive_rate : float
        Share of positives π₁, above 0 and at most 1.
    beta : float, default=1.0
        Weight of recall against precision.
    eta : float, default=0.05
        Probability with which the bound may fail, between 0 and 1.

    Returns
    -------
    Bound
        The largest difference, and the reason where there is none.

    Examples
    --------
    >>> round(deviation_bound(100_000, positive_rate=0.5).value, 4)
    0.0611
    >>> deviation_bound(1000, positive_rate=0.05).reason
    'n = 1000 is too small: r(n, eta) = 0.0489 must be below 0.0125'
    """
    n, pi, b2, eta = _check_setting(n, positive_rate, beta, eta)
    return _bound(n, math.sqrt(math.log(6.0 / eta) / (2.0 * n)), pi, b2, factor=3.0)


def regret_bound(
    n: int,
    vc_dimension: int,
    positive_rate: float,
    beta: float = 1.0,
    eta: float = 0.05,
) -> Bound:
    """Return how much F_β training for F on n examples can lose, but for a chance of η (Theorem 3).

    Against the best classifier of the same family, of VC dimension d. The bound says something
    only where r̄ = √((ln(12/η) + d ln(2en/d))/n) is below β²π₁/(2(1+β²)); elsewhere it is infinite
    and `reason` says so.

    Parameters
    ----------
    n : int
        Number of training examples.
    vc_dimension : int
        VC dimension d of the family of classifiers; 1 for a threshold on a score.
    positive_rate : float
        Share of positives π₁, above 0 and at most 1.
    beta : float, default=1.0
        Weight of recall against precision.
    eta : float, default=0.05
        Probability with which the bound may fail, between 0 and 1.

    Returns
    -------
    Bound
        The largest loss, and the reason where there is none.

    Examples
    --------
    >>> round(regret_bound(1_000_000, 11, positive_rate=0.5).value, 3)
    0.326
    >>> regret_bound(1000, 11, positive_rate=0.5).value
    inf
    """
    n, pi, b2, eta = _check_setting(n, positive_rate, beta, eta)
    d = check_count("vc_dimension", vc_dimension)
    # The count of labellings, (2en/d)^d, holds from 2n = d on; r̄ is above √2 there already.
    growth = d * math.log(2.0 * math.e * max(n, d / 2.0) / d)
    radius = math.sqrt((math.log(12.0 / eta) + growth) / n)
    return _bound(n, radius, pi, b2, factor=6.0)


def sample_size(
    accuracy: float,
    positive_rate: float,
    beta: float = 1.0,
    eta: float = 0.05,
    *,
    vc_dimension: int | None = None,
) -> int:
    """Return the smallest n whose bound is at most `accuracy`.

    Parameters
    ----------
    accuracy : float
        Difference in F to reach; `math.inf` asks where the bound begins to say anything.
    positive_rate : float
        Share of positives π₁, above 0 and at most 1.
    beta : float, default=1.0
        Weight of recall against precision.
    eta : float, default=0.05
        Probability with which the bound may fail, between 0 and 1.
    vc_dimension : int, optional
        VC dimension of the family of classifiers: Theorem 3's bound. By default it is Lemma 2's.

    Returns
    -------
    int
        The number of examples.

    Examples
    --------
    >>> sample_size(math.inf, positive_rate=0.05)
    15320
    >>> sample_size(0.05, positive_rate=0.5, vc_dimension=11)
    45659935
    """
    accuracy = float(accuracy)
    if not accuracy > 0:
        raise ValueError(f"accuracy must be positive, got {accuracy!r}")

    def enough(n: int) -> bool:
        bound = (
            deviation_bound(n, positive_rate, beta, eta)
            if vc_dimension is None
            else regret_bound(n, vc_dimension, positive_rate, beta, eta)
        )
        return not bound.reason and bound.value <= accuracy

    return _smallest(enough)


def _bound(n: int, radius: float, pi: float, b2: float, *, factor: float) -> Bound:
    """Lemma 2 and Theorem 3: factor·(1+β²)r / (β²π₁ - 2(1+β²)r), where it is positive."""
    limit = b2 * pi / (2.0 * (1.0 + b2))
    if radius < limit:
        value = factor * (1.0 + b2) * radius / (b2 * pi - 2.0 * (1.0 + b2) * radius)
        return Bound(value, radius, limit)
    reason = f"n = {n} is too small: r(n, eta) = {radius:.3g} must be below {limit:.3g}"
    return Bound(math.inf, radius, limit, reason)


def _smallest(enough: Callable[[int], bool]) -> int:
    """Return the smallest n ≥ 1 with enough(n), which stays true once it is."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST:
            raise ValueError("fewer than 1e300 examples must be enough for a bound, got more")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check_setting(
    n: int, positive_rate: float, beta: float, eta: float
) -> tuple[int, float, float, float]:
    if check_count("n", n) > MOST:
        raise ValueError("n must be below 1e300, got more")
    return (
        int(n),
        check_open_rate("positive_rate", positive_rate, closed_above=True),
        check_beta(beta) ** 2,
        check_open_rate("eta", eta),
    )


def check_open_rate(name: str, number: float, *, closed_above: bool = False) -> float:
    """Return a rate above 0 and below 1; with `closed_above` 1 is one, too."""
    value = check_unit_interval(name, number)
    if value == 0.0 or (value == 1.0 and not closed_above):
        raise ValueError(f"{name} must lie in (0, 1{']' if closed_above else ')'}, got {number!r}")
    return value
