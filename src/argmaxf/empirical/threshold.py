"""The best threshold on given scores, exact over every distinct score (the δ of ML^δ).

A cut selects all items whose score is at least some value; equal scores are never split. F changes
only where a score is passed, so the cuts at the distinct scores, and the empty one, are all there
are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Floats
from argmaxf._base.segments import Segments
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_positives,
    as_scores,
    as_weights,
    check_choice,
    check_not_negative,
    second_column,
)
from argmaxf.constraints import ChanceConstraint
from argmaxf.empirical.cuts import (
    CutProblem,
    Cuts,
    bins_of_scores,
    counted,
    is_reversed,
    mean_cuts,
    smoothed,
    thresholds,
    useful_cuts,
)
from argmaxf.empirical.guarantees import (
    Guarantee,
    GuaranteeError,
    best_guaranteed,
    chance_of_each,
    joint_guarantee,
)
from argmaxf.measures import MeasureLike


@dataclass(frozen=True, repr=False)
class Threshold(Shown):
    """The best threshold: an item is predicted positive if its score is at least `threshold`.

    For `average="macro"` each field is an array with one entry per label, with `by` with one for
    each segment.

    Attributes
    ----------
    threshold : float or ndarray
        Midway between neighbouring scores; above all scores if nothing is selected.
    value : float or ndarray
        F_β, or the chosen measure, at this threshold.
    precision : float or ndarray
        Its precision.
    recall : float or ndarray
        Its recall.
    k : int or ndarray
        How many of the given items it selects.
    guarantee : Guarantee or ndarray or None
        What holds in the population, with what confidence and at what cost; None without one.
    segment : ndarray or None
        With `by`, the segment of each entry, sorted.
    overall : Threshold or None
        With `by`, all rows together, each with the threshold of its segment: their value,
        precision, recall, k and guarantee; its `threshold` is None.
    gap : float
        How much higher the value of the exact best threshold may be: 0, but for the answer of a
        `LabelledSketch`.

    Examples
    --------
    >>> from argmaxf import maximize_empirical_f
    >>> best = maximize_empirical_f([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.8])
    >>> best.threshold, best.precision, best.recall
    (0.25, 0.6666666666666666, 1.0)
    """

    threshold: Any
    value: Any
    precision: Any
    recall: Any
    k: Any
    guarantee: Any = None
    segment: NDArray[Any] | None = None
    overall: Threshold | None = None
    gap: float = field(default=0.0, repr=False)


@dataclass(frozen=True, repr=False)
class Curve(Shown):
    """Precision, recall and F_β at every threshold, from the highest one down.

    Attributes
    ----------
    threshold : ndarray
        An item is selected where its score is at least this.
    precision : ndarray
        Precision at each threshold.
    recall : ndarray
        Recall at each threshold.
    fbeta : ndarray
        F_β at each threshold, or the measure asked for; `value` is the same array.

    Examples
    --------
    >>> from argmaxf import empirical_f_curve
    >>> curve = empirical_f_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.8])
    >>> curve.threshold, curve.recall
    (array([0.8 , 0.7 , 0.5 , 0.25, 0.1 ]), array([0. , 0.5, 0.5, 1. , 1. ]))
    """

    threshold: Floats
    precision: Floats
    recall: Floats
    fbeta: Floats

    @property
    def value(self) -> Floats:
        """The measure at each threshold."""
        return self.fbeta


def maximize_empirical_f(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence_level: float | None = None,
    by: ArrayLike | None = None,
    smoothing: float = 0.0,
    pos_label: Any = None,
) -> Threshold:
    """Return the threshold with the highest F_β on labelled scores, exact over all thresholds.

    With `confidence_level` the constraints are guarantees: they hold for new rows of the population
    from which the labelled rows are independent draws. Without it, they hold on the labelled rows
    only.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels, or other labels with `pos_label`.
    score : array-like of the same shape
        Scores, larger meaning more positive: probabilities, log-odds, margins.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        A name, an object of `argmaxf.measures`, or a function of the counts tp, k, s, n.
    average : {"macro", "micro", "samples"}, optional
        For a table, what F means: `"macro"` finds a threshold for each label separately, `"micro"`
        one for all cells together, `"samples"` one for the highest mean F of the rows.
    sample_weight : array-like of shape (n,), optional
        One weight per row.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.
    min_precision : float, optional
        Consider only thresholds with at least this precision. A threshold that selects nothing has
        the precision `zero_division` (0/0). If no threshold qualifies, that is an error
        (`maximize_expected_f` selects nothing instead). With a large `beta`, such as 1e6, F is
        recall, so ``beta=1e6, min_precision=0.9`` finds the highest recall at precision 0.9.
    min_recall : float, optional
        Consider only thresholds with at least this recall. Without `confidence_level`, every
        threshold qualifies if there are no positives (0/0).
    max_selected_rate : float, optional
        Consider only thresholds that select at most this share of the rows.
    confidence_level : float, optional
        The probability, over draws of the labelled rows, that all constraints hold in the
        population for the returned threshold; with `average="macro"`, for each label separately.
        Rows must be independent, have equal weights, and not be those on which the model was
        trained.
    by : array-like of shape (n,), optional
        The segment of each row. Each segment gets its own threshold, and the constraints hold in
        each. With `confidence_level` they hold in all segments at once, and so for all rows
        together, whose precision, recall and rate are means of those of the segments. Each segment
        is then tested at a higher confidence level: 0.975 for each of two segments if it is 0.95.
    smoothing : float, default=0.0
        If fewer rows than this are positive, the labels are smoothed before the threshold is
        chosen: each is averaged with a logistic curve of the rank of its score. The weight of the
        curve falls from 1 to 0 as the number of positives rises to `smoothing`. For new rows, 50 is
        better than 0 where positives are few (docs/background/studies.md). `value` and the
        constraints are still computed from the labels as given. Each column and each segment is
        smoothed separately, unless a threshold separates its classes. Not with `confidence_level`
        or `average="samples"`.
    pos_label : scalar, optional
        The positive label, if the labels are not 0 and 1; all others are negative.

    Returns
    -------
    Threshold
        The threshold lies midway between neighbouring scores. Of thresholds with equal F, the one
        that selects the fewest rows is returned. If selecting nothing is best, the threshold is
        above all scores.

    Raises
    ------
    GuaranteeError
        If no threshold can be guaranteed; a `ValueError` that says how many labelled rows would be
        enough.
    ValueError
        If no threshold meets the constraints without `confidence_level`; it says what can be
        reached.

    Notes
    -----
    The cost is one sort. Weights, guarantees, and measures that may rise with false positives need
    an argsort; `average="samples"` needs two. A guarantee tests one threshold after another by
    exact binomial tails, from starting points that are fixed in advance
    (docs/background/guarantee-proofs.md has the proof). If a starting point falls among rows with
    equal scores, a fixed shuffle orders these rows.

    Examples
    --------
    >>> best = maximize_empirical_f([0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9])
    >>> best.threshold, best.value, best.k
    (0.25, 0.8571428571428571, 4)
    >>> maximize_empirical_f([0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9], min_precision=0.9)
    Threshold(threshold=0.75, value=0.5, precision=1, recall=0.333333, k=1)

    On these six rows the precision is at least 0.9, but six rows are too few to guarantee it for
    new rows. With 120 rows it can be guaranteed:

    >>> y, score = [0] * 60 + [1] * 60, range(120)
    >>> best = maximize_empirical_f(y, score, min_precision=0.9, confidence_level=0.95)
    >>> best.k, round(best.guarantee.precision_low, 3)
    (60, 0.945)

    Each segment has its own threshold:

    >>> y, score, city = [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], ["Bonn", "Bonn", "Lyon", "Lyon"]
    >>> best = maximize_empirical_f(y, score, by=city)
    >>> best.segment, best.threshold, best.overall.value
    (array(['Bonn', 'Lyon'], dtype='<U4'), array([0.25, 0.75]), 1.0)
    """
    limits = min_precision, min_recall, max_selected_rate
    problem = CutProblem.of(beta, measure, zero_division, *limits, confidence_level)
    kind, names, rows = _read(y_true, score, sample_weight, average, by, pos_label)
    weights = [weight for _, _, weight in rows if weight is not None]
    segments = len(rows) if kind == "segment" else 1
    chance = chance_of_each(
        problem, segments, np.concatenate(weights) if weights else None, average
    )
    if check_not_negative("smoothing", smoothing) and (confidence_level or average == "samples"):
        raise ValueError(
            "smoothing must be 0 with confidence_level or average='samples', got "
            f"{smoothing:g} with {confidence_level=} and {average=}"
        )
    works = (partial(solution, *each, problem, chance, average, smoothing) for each in rows)
    solutions = solve_all(kind, zip(names, works, strict=True))
    if kind == "segment":
        return joined(names, solutions, problem)
    if kind:
        return _stack(solutions)
    found, (y, s, _) = solutions[0].best, rows[0]
    if is_reversed(y.ravel(), s.ravel(), s.ravel() >= found.threshold):
        warnings.warn(
            f"the best threshold selects {found.k} of {s.size} items, because higher scores "
            "have fewer positives: score the other class, or pass it as pos_label",
            stacklevel=2,
        )
    return found


@with_entries_of(maximize_empirical_f)
def empirical_f_curve(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> Curve | list[Curve]:
    """Return precision, recall and F_β of labelled scores for every threshold.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels.
    score, beta, measure, average, sample_weight, zero_division : as in `maximize_empirical_f`

    Returns
    -------
    Curve or list of Curve
        One curve; for `average="macro"` a list with one for each label.

    Notes
    -----
    Cost: one argsort.

    Examples
    --------
    >>> curve = empirical_f_curve([0, 1, 1], [0.2, 0.4, 0.8])
    >>> curve.threshold
    array([0.8, 0.6, 0.3, 0.2])
    >>> curve.fbeta
    array([0.        , 0.66666667, 1.        , 0.8       ])
    """
    problem = CutProblem.of(beta, measure, zero_division)
    _, _, rows = _read(y_true, score, sample_weight, average)
    if average == "samples":
        return curve_of(mean_cuts(*rows[0], problem))
    curves = [curve_of(problem.rated(bins_of_scores(*each))) for each in rows]
    return curves if average == "macro" else curves[0]


def curve_of(cuts: Cuts) -> Curve:
    """Return the curve of some cuts."""
    return Curve(thresholds(cuts.low, cuts.high), cuts.precision, cuts.recall, cuts.value)


def _read(
    y_true: Any,
    score: Any,
    sample_weight: Any,
    average: str | None,
    by: Any = None,
    pos_label: Any = None,
) -> tuple[str | None, NDArray[Any], list[tuple[Any, Any, Any]]]:
    """Check the rows and part them into separate searches: (labels, scores, weights) of each.

    Before them, what they are ("label", "segment", or None for a single one), and their names.
    """
    y, s = as_positives("y_true", y_true, pos_label), as_scores("score", score)
    if y.shape != s.shape:
        hint = second_column("score", s) if y.ndim == 1 else second_column("y_true", y)
        raise ValueError(f"y_true and score must have one shape, got {y.shape} and {s.shape}{hint}")
    if y.size == 0 or y.ndim not in (1, 2):
        raise ValueError(f"y_true must be a non-empty vector or table, got shape {y.shape}")
    weight = as_weights(sample_weight, len(y))
    if by is not None:
        if y.ndim != 1 or average is not None:
            raise ValueError(f"by is for one column of labels, got shape {y.shape} and {average=}")
        segments = Segments.of(by, len(y))
        order = segments.sorted(np.arange(len(y)))
        each = [order[rows] for rows in segments.slices()]
        parts = [counted(y[i], s[i], None if weight is None else weight[i]) for i in each]
        some = [len(y) > 0 for y, _, _ in parts]  # a segment without weight is left out
        return "segment", segments.names[some], list(compress(parts, some))
    y, s, weight = counted(y, s, weight)
    if y.ndim == 2 and check_choice("average", average, ("macro", "micro", "samples")) == "macro":
        columns = np.arange(y.shape[1])
        return "label", columns, [(y[:, j], s[:, j], weight) for j in columns]
    if y.ndim == 1:
        check_choice("average", average, (None,))
    if average == "micro":
        weight = None if weight is None else weight.repeat(y.shape[1])
        y, s = y.ravel(), s.ravel()
    return None, np.arange(1), [(y, s, weight)]


class Solution(NamedTuple):
    """The best cut of some rows, and what it holds."""

    best: Threshold
    counts: Any = None  # true positives, selected, positives, and all rows
    free: Any = None  # with a guarantee: the same of the best cut without


def solution(
    y: Any,
    score: Any,
    weight: Any,
    problem: CutProblem,
    chance: ChanceConstraint | None,
    average: str | None = None,
    smoothing: float = 0.0,
) -> Solution:
    """Return the best cut of some rows."""
    y, score, weight = counted(y, score, weight)
    if chance is not None:
        return solution_at(*best_guaranteed(y, score, chance, problem))
    rate = mean_cuts if average == "samples" else useful_cuts
    judged = cuts = rate(y, score, weight, problem)
    labels = smoothed(y, score, weight, smoothing)
    if labels is not y:
        cuts, judged = (problem.rated(bins_of_scores(each, score, weight)) for each in (y, labels))
        judged = cuts._replace(value=judged.value)
    return solution_at(cuts, problem.best(judged, 0 if weight is None else score.size))


def solution_at(
    cuts: Cuts, i: int, guarantee: Guarantee | None = None, free: Any = None
) -> Solution:
    """Return the best of some cuts."""
    value, precision, recall = map(float, (cuts.value[i], cuts.precision[i], cuts.recall[i]))
    best = Threshold(cuts.threshold(i), value, precision, recall, int(cuts.rows[i]), guarantee)
    return Solution(best, cuts.counts and cuts.held(i), free)


def solve_all(
    kind: str | None, searches: Iterable[tuple[Any, Callable[[], Solution]]]
) -> list[Solution]:
    """Search in all labels or segments; raise what fails as one error that names them."""
    found, failed, number = [], [], 0
    for name, work in searches:
        number += 1
        try:
            found.append(work())
        except ValueError as error:
            failed.append((name, error))
    if not failed:
        return found
    name, first = failed[0]
    message = str(first)
    if kind == "segment" or (kind and number > 1):
        name = name.item() if isinstance(name, np.generic) else name
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        message = f"{kind} {name!r}{others}: {message}"
    if isinstance(first, GuaranteeError):
        rows = [error.rows for _, error in failed if isinstance(error, GuaranteeError)]
        raise GuaranteeError(message, max(rows)) from None
    raise ValueError(message) from None


def joined(names: NDArray[Any], solutions: Sequence[Solution], problem: CutProblem) -> Threshold:
    """Return segments as one, and what all rows have together, each at its segment's threshold."""
    counts = np.sum([each.counts for each in solutions], axis=0)
    rates, guarantee = problem.rates(*counts), None
    if problem.confidence_level is not None:
        free = problem.rates(*np.sum([each.free for each in solutions], axis=0))
        each_has = [each.best.guarantee for each in solutions]
        cost = max(0.0, float(free[0] - rates[0]))
        guarantee = joint_guarantee(each_has, problem.confidence_level, cost)
    k, (value, precision, recall) = sum(each.best.k for each in solutions), map(float, rates)
    overall = Threshold(None, value, precision, recall, k, guarantee)
    return replace(_stack(solutions), segment=names, overall=overall)


def _stack(solutions: Sequence[Solution]) -> Threshold:
    """Return several thresholds as one, each field an array."""
    names = [each.name for each in fields(Threshold)][:6]  # segment and overall are of them all
    columns: dict[str, Any] = {
        name: np.array([getattr(each.best, name) for each in solutions]) for name in names
    }
    return Threshold(**columns)
