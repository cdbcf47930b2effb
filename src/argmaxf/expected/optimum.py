"""From a summary to the optimum: the value of the empty set, the range of useful k, the search."""

from __future__ import annotations

import math

import numpy as np

from argmaxf.arrays import Floats
from argmaxf.expected.decision import ExpectedF
from argmaxf.expected.form import Form, largest_useful_k
from argmaxf.expected.groups import Groups, group_sums
from argmaxf.expected.search import Optimum, Source, search
from argmaxf.expected.windows import table_groups
from argmaxf.question import Question


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


def find_optimum(groups: Groups, question: Question, source: Source | None) -> Optimum:
    """Return the best k of items given in groups; k = 0 competes when 0/0 counts for something."""
    f0, std0 = value_of_nothing(groups, question)
    nothing = Optimum(0, f0, std0, groups[:0], groups[:0])
    if len(groups) == 0:
        return nothing
    k = np.cumsum(groups.count)
    reach = min(largest_useful_k(groups, question.coefficients), float(k[-1]))
    useful = int(np.searchsorted(k, reach)) + 1
    found = search(
        groups[:useful],
        groups[useful:],
        Form.of(groups, question.coefficients, reach),
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
    """Mean and standard deviation of the measure if nothing is selected.

    With s1 = 0 it is 0/0 where nothing is positive, or always if positives left out do not count.
    P(S = 0) = Π (1 - p); the spread of an indicator is √(P (1 - P)).
    """
    _, _, b_out, s0, s1 = question.coefficients
    if s1 > 0.0:
        form = Form.of(groups, question.coefficients, 0.0)
        mean = s0 * float(form.nodes.weight @ np.exp(form.log_none - form.nodes.u * s1))
        return ExpectedF(mean, form.spread(groups[:0], groups, mean))
    log_none = 0.0
    if len(groups) and b_out > 0.0:
        certain = groups.centre[0] == 1.0
        sums = None if certain else group_sums(groups, np.ones(1), np.zeros(1))
        log_none = -math.inf if sums is None else float(sums[0].sum())
    zero = question.zero_division
    spread = math.sqrt(math.exp(log_none) * -math.expm1(log_none))
    return ExpectedF(zero * math.exp(log_none), zero * spread)
