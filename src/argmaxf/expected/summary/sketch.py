"""The mergeable summary of any number of probabilities, built in one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import (
    NotAProbability,
    as_real_array,
    check_unit_interval,
    first_bad_probability,
    refuse_both_columns,
)
from argmaxf.expected import drive
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.evaluate import value_of_sets
from argmaxf.expected.search import Search
from argmaxf.expected.sources.array import ArraySource
from argmaxf.expected.summary.groups import Groups
from argmaxf.expected.summary.layout import empty_table
from argmaxf.expected.summary.stored import bytes_of_table, table_of_bytes
from argmaxf.expected.summary.tables import groups_of_table
from argmaxf.measures import MeasureLike
from argmaxf.problem import Problem

LEAST = 5e-324  # the smallest probability of all: items with p = 0 are never selected


class ProbabilitySketch:
    """A summary of probabilities: fixed size, merges by addition, answers every β.

    Counts and power sums of the probabilities in 64 groups for each power of two. Expected values
    from it are those of the array to about 1e-13; the exact threshold needs a second look at the
    few items near it, which `maximize_expected_f` and `decide` take themselves.

    Examples
    --------
    >>> a = ProbabilitySketch.from_array([0.05, 0.45, 0.1])
    >>> b = ProbabilitySketch.from_array([0.3, 0.4])
    >>> both = a + b
    >>> both.n, round(both.mean_positives, 10)
    (5, 1.3)
    >>> decision = both.decide()
    >>> decision.k, round(decision.expected, 4)
    (3, 0.4803)
    """

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table = empty_table()

    @classmethod
    def from_array(cls, proba: ArrayLike) -> Self:
        """Summarize an array of any shape.

        Parameters
        ----------
        proba : array-like
            Probabilities of being positive, in any shape; both columns of `predict_proba` are
            refused.

        Returns
        -------
        ProbabilitySketch
            Their summary.
        """
        return cls().update(proba)

    @classmethod
    def from_table(cls, table: Floats) -> Self:
        """Wrap a table of counts and power sums, one row for each group (see kernels).

        Parameters
        ----------
        table : ndarray
            The counts and power sums.

        Returns
        -------
        ProbabilitySketch
            The summary.
        """
        sketch = cls()
        sketch._table += table
        return sketch

    def update(self, proba: ArrayLike) -> Self:
        """Add probabilities; nothing is added if one of them is none. Return the sketch.

        Parameters
        ----------
        proba : array-like
            Probabilities of being positive, in any shape; both columns of `predict_proba` are
            refused.

        Returns
        -------
        ProbabilitySketch
            The sketch itself.
        """
        p = as_real_array("proba", proba)
        refuse_both_columns("proba", p)
        if p.size:
            try:
                self._table += ArraySource(p).sums()
            except NotAProbability:
                raise first_bad_probability("proba", p) from None
        return self

    def merge(self, other: ProbabilitySketch) -> Self:
        """Add the items of another sketch. Return the sketch.

        Parameters
        ----------
        other : ProbabilitySketch
            Another sketch.

        Returns
        -------
        ProbabilitySketch
            The sketch itself.
        """
        if not isinstance(other, ProbabilitySketch):
            raise TypeError(
                f"a sketch can be merged, got {type(other).__name__}; update takes items"
            )
        self._table += other._table
        return self

    def __add__(self, other: object) -> ProbabilitySketch:
        if not isinstance(other, ProbabilitySketch):
            return NotImplemented
        return type(self).from_table(self._table + other._table)

    def __repr__(self) -> str:
        return f"ProbabilitySketch(n={self.n}, mean_positives={self.mean_positives:.6g})"

    @property
    def n(self) -> int:
        """How many probabilities are summarized."""
        return int(self._table[:, 0].sum())

    @property
    def mean_positives(self) -> float:
        """μ = Σ p, the expected number of positives."""
        return float(self.groups().mass.sum())

    @property
    def table(self) -> Floats:
        """The counts and power sums, read-only."""
        view = self._table.view()
        view.flags.writeable = False
        return view

    def groups(self) -> Groups:
        """Return the groups, by falling probability; items with p = 0 are in none."""
        return groups_of_table(self._table)

    def decide(
        self,
        *,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
        ties: str = "split",
    ) -> Decision:
        """Return the best decision that cuts between groups, and the bracket of the exact one.

        `selected` is None. `bracket` holds two thresholds between which the threshold with the
        highest expected F lies for certain.

        Parameters
        ----------
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What to maximize: a name, an object of `argmaxf.measures`, or a function of counts.
        zero_division : float, default=0.0
            F of predicting nothing where there is nothing to find.
        ties : {"split", "together"}, default="split"
            Whether equal probabilities may be parted.

        Returns
        -------
        Decision
            What the summary alone can say.
        """
        if self.n == 0:
            raise ValueError("the sketch must hold at least one probability, got none")
        problem = Problem.of(beta, measure, zero_division, ties)
        search = drive.search(self.groups_with_zeros(), problem)
        found = search.best_border()
        threshold, bracket = _bracket(search)
        k, f, std = found.k, found.f, found.std
        return Decision(None, k, threshold, f, std, problem.beta, self.n, bracket)

    def expected_f(
        self,
        *,
        k: int | None = None,
        threshold: float | None = None,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        zero_division: float = 0.0,
    ) -> ExpectedF:
        """Return mean and standard deviation of F for the top k, or for p ≥ threshold.

        Where the cut falls inside a group (at most 1/64 of its p wide), the group's items are taken
        to be alike: give `k` or `threshold` of a decision for the value of a cut between groups.

        Parameters
        ----------
        k : int, optional
            How many of the most probable items are selected.
        threshold : float, optional
            Instead of `k`: items with at least this probability are selected.
        beta : float, default=1.0
            Weight of recall against precision.
        measure : str, Measure or callable, default="fbeta"
            What to maximize: a name, an object of `argmaxf.measures`, or a function of counts.
        zero_division : float, default=0.0
            F of predicting nothing where there is nothing to find.

        Returns
        -------
        ExpectedF
            Mean and standard deviation.
        """
        problem = Problem.of(beta, measure, zero_division)
        if (k is None) == (threshold is None):
            raise ValueError(f"give either k or threshold, got k={k!r}, threshold={threshold!r}")
        groups = self.groups_with_zeros()
        if threshold is not None:
            size = _count_above(groups, check_unit_interval("threshold", threshold))
        elif k is not None and 0 <= k <= self.n:
            size = float(k)
        else:
            raise ValueError(f"k must lie between 0 and n = {self.n}, got {k!r}")
        return value_of_sets(*_cut(groups, size), problem)

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes: versioned, checksummed, at most half a megabyte."""
        return bytes_of_table(self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch back; bytes cut short, altered or of another version are refused.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        ProbabilitySketch
            The sketch.
        """
        return cls.from_table(table_of_bytes(bytes(data)))

    def groups_with_zeros(self) -> Groups:
        """Return the groups by falling probability, the items with p = 0 as the last one."""
        zeros = self._table[-1, 0]
        last = Groups.of_values(np.zeros(1), np.array([zeros]))
        return Groups.joined([self.groups(), last]) if zeros else self.groups()


def _bracket(search: Search) -> tuple[float, tuple[float, float]]:
    """The threshold of the best cut between groups, and the range that may hold the exact one."""
    found, unsettled = search.best_border(), search.unsettled
    threshold = float(_lowest(found.last)[0]) if found.k else np.inf
    highest = float(found.last.high[0]) if found.k else np.inf
    low = min([threshold, *unsettled.low.tolist()])
    return threshold, (low, max([highest, *unsettled.high.tolist()]))


def _lowest(groups: Groups) -> Floats:
    """The lowest probability that an item of each group may have.

    Groups of t = 1 - p reach from their `low` on without it; zero is in no group but its own.
    """
    above = groups.upper & ~groups.runs
    low = np.where(above, np.nextafter(groups.low, 1.0), groups.low)
    return np.where(groups.high > 0.0, np.maximum(low, LEAST), low)


def _count_above(groups: Groups, threshold: float) -> float:
    """How many items are at least the threshold; inside a group, in proportion."""
    low = _lowest(groups)
    width = np.where(low < groups.high, groups.high - low, 1.0)
    share = np.clip((groups.high - threshold) / width, 0.0, 1.0)
    share = np.where(groups.runs, 0.0, share)
    share[low >= threshold] = 1.0
    return float((share * groups.count).sum())


def _cut(groups: Groups, k: float) -> tuple[Groups, Groups]:
    """Split groups into the top k items and the rest, a group at the cut in proportion."""
    end = np.cumsum(groups.count)
    inside = np.clip(k - (end - groups.count), 0.0, groups.count) / groups.count
    return _scaled(groups, inside), _scaled(groups, 1.0 - inside)


def _scaled(groups: Groups, share: Floats) -> Groups:
    kept = replace(groups, count=groups.count * share, moments=groups.moments * share[:, None])
    return kept[share > 0.0]
