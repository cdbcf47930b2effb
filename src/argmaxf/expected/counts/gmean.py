r"""G-mean of more items than all counts can be looked at: a very good set, and a proof how good.

G-mean is √(X Y) with X = T/S and Y = TN/(n-S). For any c > 0, √(X Y) ≤ (X/c + c Y) / 2, and that is
a measure that is linear in true positives, whose optimum over all sets is found exactly. So every c
bounds the expected G-mean of every set. At c = √(E[X] / E[Y]) of its own best set the bound is
least, √(E[X] E[Y]); what that set's E[√(X Y)] lacks of it is about Var(log X - log Y) / 8 of it,
1 part in 8 times the number of positives or so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argmaxf.expected import drive
from argmaxf.expected.counts.search import LinearSearch
from argmaxf.expected.counts.sets import value_by_counts
from argmaxf.expected.decision import Decision
from argmaxf.expected.sources.array import ArraySource
from argmaxf.measures import Linear
from argmaxf.measures.base import others
from argmaxf.question import Question

ROUNDS = 8  # c settles in three or four
SETTLED = 1e-5  # the bound is off by the square of that


@dataclass(frozen=True, eq=False, repr=False)
class BoundedDecision(Decision):
    """A decision whose set is not proven to be the best, and how much better another can be.

    Attributes
    ----------
    bound : float or ndarray
        No set has a higher expected value; one entry for each row or column.
    """

    bound: Any = math.nan


@dataclass(frozen=True)
class Rates(Linear):
    """(X/c + c Y) / 2 for the rates X and Y at which positives and negatives are found."""

    name: ClassVar[str] = "rates"
    c: float = 1.0

    @property
    def title(self) -> str:
        """Both rates, weighed."""
        return "mean of rates"

    def fraction(self, tp: Any, k: Any, s: Any, n: Any) -> tuple[Any, Any]:
        """Return both rates over one denominator."""
        negatives = others(s, n)
        missed = negatives - (k - tp)
        return tp * negatives / self.c + self.c * missed * s, 2 * s * negatives


def decide_gmean(p: NDArray[Any], question: Question) -> BoundedDecision:
    """Return the set that the bound is best for, its expected G-mean, and the bound."""
    source = ArraySource(p)
    x, bound, last = 0.0, math.inf, (math.nan, math.nan)
    for _ in range(ROUNDS):  # x = log c, by secants
        search = drive.decide(source, replace(question, measure=Rates(math.exp(x))))[()]
        bound = min(bound, float(search.optimum.f))
        if search.optimum.k == 0:
            break
        away = _balance(search) - x
        steep = (away - last[1]) / (x - last[0])
        last = x, away
        if abs(away) < SETTLED or steep == 0.0:
            break
        x -= away / (steep if steep < 0.0 else -1.0)
    decision = search.decision(p.size)
    selected = source.select({(): search.cut})
    mean, std = value_by_counts(p[selected].astype(float), p[~selected].astype(float), question)
    fields = replace(decision, selected=selected, expected=mean, std=std)
    return BoundedDecision(**vars(fields), bound=max(bound, mean))


def _balance(search: Any) -> float:
    """Return log √(E[X] / E[Y]) of the best set; (X/c + c Y) / 2 of two c tells both."""
    assert isinstance(search, LinearSearch)
    k, found = np.array([float(search.optimum.k)]), search.chosen()
    one, two = (
        float(replace(search.law, measure=Rates(c)).values(k, found)[0]) for c in (1.0, 2.0)
    )
    y = (4.0 * two - 2.0 * one) / 3.0  # X + Y = 2 one, X/4 + Y = two
    x = 2.0 * one - y
    return 0.5 * math.log(max(x, 1e-300) / max(y, 1e-300))
