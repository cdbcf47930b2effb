"""From a summary to the optimum: what is asked, the range of useful k, the search."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.groups import Floats, Groups, group_sums
from argmaxf.expected.measures import FBeta, Jaccard, Measure
from argmaxf.expected.search import Optimum, Source, search
from argmaxf.expected.windows import table_groups
from argmaxf.validation import check_beta, check_choice, check_zero_division

LEAST_BETA, MOST_BETA = 1e-9, 1e9


@dataclass(frozen=True)
class Question:
    """What to maximize: F_β or Jaccard, the value of 0/0, and whether ties may be split."""

    beta: float
    jaccard: bool
    zero_division: float
    split_ties: bool

    @classmethod
    def of(
        cls, beta: float, measure: str, zero_division: float = 0.0, ties: str = "split"
    ) -> Question:
        """Check the options of a public function."""
        value = check_beta(beta)
        if not LEAST_BETA <= value <= MOST_BETA:
            raise ValueError(
                f"beta must lie between {LEAST_BETA:g} and {MOST_BETA:g}, got {beta!r}; beyond, "
                "F is precision or recall to the last digit"
            )
        return cls(
            beta=value,
            jaccard=check_choice("measure", measure, ("fbeta", "jaccard")) == "jaccard",
            zero_division=check_zero_division(zero_division),
            split_ties=check_choice("ties", ties, ("split", "together")) == "split",
        )

    @property
    def b2(self) -> float:
        """β² as the kernels take it; Jaccard's denominator k + R tilts as F1's does."""
        return 1.0 if self.jaccard else self.beta * self.beta

    def measure(self, groups: Groups, reach: float) -> Measure:
        """Prepare the measure for sets of at most `reach` items."""
        return (Jaccard if self.jaccard else FBeta).of(groups, self.b2, reach)


def groups_of_table(table: Floats) -> Groups:
    """Turn the table of a summary into groups; items with p = 0 take part in nothing."""
    from argmaxf.expected import kernels

    rows = np.arange(1, kernels.TINY_ROW)
    kept = rows[table[1 : kernels.TINY_ROW, 0] > 0]
    upper = kept <= kernels.HIGH_ROWS
    key = np.where(upper, kernels.HIGH_BASE + kept - 1, kernels.HIGH_ROWS + kernels.HALF_KEY - kept)
    groups = table_groups(upper, kernels.SHIFT, key, table[kept], None)
    ones, tiny = table[0, 0], table[kernels.TINY_ROW]
    if ones:
        groups = Groups.joined([Groups.of_values(np.ones(1), np.array([ones])), groups])
    if tiny[0]:
        groups = Groups.joined([groups, tiny_group(tiny, kernels.TINY)])
    return groups


def tiny_group(row: Floats, bound: float) -> Groups:
    """The items below a tiny bound, in one group: their sum is all that counts."""
    from argmaxf.expected import kernels

    moments = np.zeros((1, 6))
    moments[0, 0] = row[1]
    one = np.ones(1)
    return Groups(
        count=row[:1],
        centre=0.0 * one,
        rest=one,
        half=bound * one,
        moments=moments,
        low=0.0 * one,
        high=bound * one,
        upper=np.zeros(1, np.bool_),
        shift=np.array([kernels.SHIFT]),
        first=np.zeros(1, np.int64),
        keys=np.array([kernels.LOW_BASE]),
    )


def largest_useful_k(groups: Groups, question: Question) -> float:
    """An upper bound on the best k, by Jensen's inequality from both sides (see kernels)."""
    k, mass = np.cumsum(groups.count), np.cumsum(groups.mass)
    mean, b2 = mass[-1], question.b2
    shared = mean - mass if question.jaccard else b2 * (1.0 + mean)
    best = float((mass / (k + shared)).max())
    if best == 0.0:  # probabilities so small that the bound underflows
        return math.inf
    return float(mean / best - (0.0 if question.jaccard else b2 * mean) + 1.0)


def find_optimum(groups: Groups, question: Question, source: Source | None) -> Optimum:
    """Return the best k of items given in groups; k = 0 competes when 0/0 counts for something."""
    f0, std0 = value_of_nothing(groups, question)
    nothing = Optimum(0, f0, std0, groups[:0], groups[:0])
    if len(groups) == 0:
        return nothing
    k = np.cumsum(groups.count)
    reach = min(largest_useful_k(groups, question), float(k[-1]))
    useful = int(np.searchsorted(k, reach)) + 1
    found = search(
        groups[:useful],
        groups[useful:],
        question.measure(groups, reach),
        source,
        split_ties=question.split_ties,
    )
    return nothing._replace(unsettled=found.unsettled) if f0 >= found.f else found


def lowest_chosen(optimum: Optimum, source: Source) -> float:
    """Return the smallest probability in the chosen set; infinity if nothing is chosen."""
    if optimum.k == 0:
        return math.inf
    if optimum.last.runs[0]:
        return float(optimum.last.centre[0])
    return float(source.subdivide(optimum.last).low[-1])


def value_of_nothing(groups: Groups, question: Question) -> ExpectedF:
    """Mean and standard deviation of F if nothing is selected: 0/0 where nothing is positive.

    P(S = 0) = Π (1 - p); the spread of an indicator is √(P (1 - P)).
    """
    log_none = 0.0
    if len(groups) and groups.centre[0] == 1.0:
        log_none = -math.inf
    elif len(groups):
        log_none = float(group_sums(groups, np.ones(1), np.zeros(1))[0].sum())
    zero = question.zero_division
    spread = math.sqrt(math.exp(log_none) * -math.expm1(log_none))
    return ExpectedF(zero * math.exp(log_none), zero * spread)
