"""The best threshold on given scores, exact over every distinct score (the δ of ML^δ).

A cut selects all items whose score is at least some value; equal scores are never split. F changes
only where a score is passed, so the cuts at the distinct scores, and the empty one, are all there
are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.constraints import Constraints
from argmaxf.empirical.cuts import (
    Cuts,
    above,
    between,
    counted,
    every_cut,
    mean_cuts,
    useful_cuts,
)
from argmaxf.empirical.promised import best_promised, check_promisable
from argmaxf.empirical.promises import PromiseError, check_confidence, raise_together
from argmaxf.measures import Measure, as_measure
from argmaxf.validation import (
    as_labels,
    as_scores,
    as_weights,
    check_choice,
    check_zero_division,
    ones_unless,
)

AVERAGES = ("macro", "micro", "samples")
SLACK = 1e-12  # the rounding of weighted sums must not decide whether a constraint is met


@dataclass(frozen=True)
class Threshold:
    """The best cut: an item is predicted positive where its score is at least `threshold`.

    For `average="macro"` each field is an array with one entry per label.

    Attributes
    ----------
    threshold : float or ndarray
        Midway between neighbouring scores; above all of them where nothing is selected.
    value : float or ndarray
        F_β of the cut, or the measure asked for.
    precision : float or ndarray
        Its precision.
    recall : float or ndarray
        Its recall.
    k : int or ndarray
        How many of the given items it selects.
    promise : Promise or ndarray or None
        What holds in the population, with what confidence and at what cost; None without one.
    """

    threshold: Any
    value: Any
    precision: Any
    recall: Any
    k: Any
    promise: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Curve:
    """Precision, recall and F_β for every cut, from the one that selects nothing downwards.

    Attributes
    ----------
    threshold : ndarray
        An item is selected where its score is at least this.
    precision : ndarray
        Precision of each cut.
    recall : ndarray
        Recall of each cut.
    fbeta : ndarray
        F_β of each cut, or the measure asked for; `value` is the same array.
    """

    threshold: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    fbeta: NDArray[np.float64]

    @property
    def value(self) -> NDArray[np.float64]:
        """The measure of each cut."""
        return self.fbeta


def maximize_empirical_f(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    beta: float = 1.0,
    measure: str | Measure = "fbeta",
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence: float | None = None,
) -> Threshold:
    """Return the threshold with the highest F_β on labelled scores, exact over every cut.

    With `confidence` the constraints are promises: they hold for new rows of the population that
    the labelled rows are independent draws of. Without, they are met on the labelled rows alone.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels.
    score : array-like of the same shape
        Scores, larger meaning more positive: probabilities, log-odds, margins.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str or Measure, default="fbeta"
        ``"fbeta"``, ``"jaccard"``, or any object of `argmaxf.measures`: exact for each.
    average : {"macro", "micro", "samples"}, optional
        For a table, what F means: `"macro"` takes each label by itself, `"micro"` all cells
        together, `"samples"` the mean F of the rows.
    sample_weight : array-like of shape (n,), optional
        One weight per row.
    zero_division : float, default=0.0
        F of predicting nothing where there is nothing to find.
    min_precision : float, optional
        Only cuts of at least this precision count. With a large `beta` (1e6, say) F is recall, so
        ``beta=1e6, min_precision=0.9`` asks for the best recall at precision 0.9.
    min_recall : float, optional
        Only cuts of at least this recall count.
    max_selected_rate : float, optional
        Only cuts that select at most this part of the rows count.
    confidence : float, optional
        The probability, over draws of the labelled rows, that all constraints hold in the
        population for the threshold returned; for `average="macro"` for each label by itself. Rows
        must be independent and of one weight, and not those the scores were trained on.

    Returns
    -------
    Threshold
        The threshold lies midway between neighbouring scores. Of cuts with equal F the one that
        selects fewest is returned; where nothing is worth selecting, a threshold above all scores.

    Raises
    ------
    PromiseError
        A `ValueError`, where no threshold qualifies; it says how many labelled rows would do.

    Notes
    -----
    Cost: one sort; an argsort with weights or for a measure that may rise with false positives, two
    for `average="samples"`. A promise tests every cut in turn by exact binomial tails, from starts
    that were fixed beforehand: docs/promises.md has the proof.

    Examples
    --------
    >>> best = maximize_empirical_f([0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9])
    >>> best.threshold, best.value, best.k
    (0.25, 0.8571428571428571, 4)
    >>> maximize_empirical_f([0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9], min_precision=0.9)
    Threshold(threshold=0.75, value=0.5, precision=1.0, recall=0.3333333333333333, k=1)

    On those rows a precision of 0.9 is reached; six rows cannot promise it to others.

    >>> y, score = [0] * 60 + [1] * 60, range(120)
    >>> best = maximize_empirical_f(y, score, min_precision=0.9, confidence=0.95)
    >>> best.k, round(best.promise.precision_low, 3)
    (60, 0.945)
    """
    options = as_measure(measure, beta), check_zero_division(zero_division)
    constraints = Constraints(min_precision, min_recall, max_selected_rate)
    problems = _problems(y_true, score, sample_weight, average)
    if confidence is not None:
        check_promisable(constraints, average, problems[0][2], confidence)
        solved = _each_promised(problems, constraints, check_confidence(confidence), *options)
        return _stack(solved) if average == "macro" else solved[0]
    rate = mean_cuts if average == "samples" else useful_cuts
    found = [
        _best(rate(y, s, weight, *options), s, weight, constraints) for y, s, weight in problems
    ]
    return _stack(found) if average == "macro" else found[0]


def empirical_f_curve(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    beta: float = 1.0,
    measure: str | Measure = "fbeta",
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> Curve | list[Curve]:
    """Return precision, recall and F_β for every cut of labelled scores.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, labels)
        True 0/1 labels.
    score : array-like of the same shape
        Scores, larger meaning more positive: probabilities, log-odds, margins.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str or Measure, default="fbeta"
        ``"fbeta"``, ``"jaccard"``, or any object of `argmaxf.measures`: exact for each.
    average : {"macro", "micro", "samples"}, optional
        For a table, what F means: `"macro"` takes each label by itself, `"micro"` all cells
        together, `"samples"` the mean F of the rows.
    sample_weight : array-like of shape (n,), optional
        One weight per row.
    zero_division : float, default=0.0
        F of predicting nothing where there is nothing to find.

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
    options = as_measure(measure, beta), check_zero_division(zero_division)
    rate = mean_cuts if average == "samples" else every_cut
    curves = [
        _curve(rate(y, s, weight, *options))
        for y, s, weight in _problems(y_true, score, sample_weight, average)
    ]
    return curves if average == "macro" else curves[0]


def _problems(y_true: Any, score: Any, sample_weight: Any, average: str | None) -> list[Any]:
    """Check the items and return the separate searches they ask for: (labels, scores, weights)."""
    y, s = as_labels("y_true", y_true), as_scores("score", score)
    if y.shape != s.shape:
        raise ValueError(f"y_true and score must have one shape, got {y.shape} and {s.shape}")
    if y.size == 0 or y.ndim not in (1, 2):
        raise ValueError(f"y_true must be a non-empty vector or table, got shape {y.shape}")
    y, s, weight = counted(y, s, as_weights(sample_weight, len(y)))
    if y.ndim == 1:
        check_choice("average", average, (None,))
        return [(y, s, weight)]
    if check_choice("average", average, AVERAGES) == "macro":
        return [(y[:, j], s[:, j], weight) for j in range(y.shape[1])]
    if average == "samples":
        return [(y, s, weight)]
    return [(y.ravel(), s.ravel(), None if weight is None else weight.repeat(y.shape[1]))]


def _each_promised(
    problems: list[Any],
    constraints: Constraints,
    confidence: float,
    measure: Measure,
    zero_division: float,
) -> list[Threshold]:
    """Return the best cut of each label for which the constraints hold with confidence."""
    failed: list[tuple[Any, PromiseError]] = []
    found = []
    for label, (y, s, _) in enumerate(problems):
        try:
            cuts, i, promise = best_promised(y, s, constraints, confidence, measure, zero_division)
        except PromiseError as error:
            failed.append((label, error))
        else:
            found.append(replace(_threshold(cuts, i, s), promise=promise))
    raise_together("label" if len(problems) > 1 else None, failed)
    return found


def _best(cuts: Cuts, score: Any, weight: Any, constraints: Constraints) -> Threshold:
    value = cuts.value
    if constraints.given():
        value = np.where(_allowed(cuts, score, weight, constraints), value, -np.inf)
    return _threshold(cuts, int(np.argmax(value)), score)


def _threshold(cuts: Cuts, i: int, score: Any) -> Threshold:
    """Return the i-th cut."""
    precision, recall = cuts.rates(i)
    return Threshold(
        threshold=cuts.threshold(i, score),
        value=float(cuts.value[i]),
        precision=float(precision),
        recall=float(recall),
        k=0 if cuts.selects_none(i) else int(np.count_nonzero(score >= cuts.edge[i])),
    )


def _allowed(cuts: Cuts, score: Any, weight: Any, constraints: Constraints) -> NDArray[np.bool_]:
    """Return which cuts meet the constraints; say what is reachable where none does."""
    precision, recall = cuts.rates(slice(None))
    least_recall, least_precision = constraints.min_recall or 0.0, constraints.min_precision or 0.0
    few = _few_selected(cuts, score, weight, constraints.max_selected_rate)
    found = few & (recall >= least_recall - SLACK)
    _need_some(found, "min_recall", least_recall, recall[few].max())
    both = found & (precision >= least_precision - SLACK)
    _need_some(both, "min_precision", least_precision, precision[found].max())
    return np.asarray(both)


def _few_selected(cuts: Cuts, score: Any, weight: Any, rate: float | None) -> NDArray[np.bool_]:
    """Return which cuts select at most that part of the rows, or of their weight."""
    if rate is None:
        return np.ones(cuts.edge.size, np.bool_)
    flat = np.sort(score, axis=None)
    heavy = ones_unless(weight, len(score)).repeat(score.size // len(score))
    above_it = np.append(np.cumsum(heavy[np.argsort(score, axis=None)][::-1])[::-1], 0.0)
    return np.asarray(above_it[np.searchsorted(flat, cuts.edge)] <= rate * above_it[0] + SLACK)


def _need_some(allowed: Any, name: str, limit: float, reachable: float) -> None:
    if not allowed.any():
        raise ValueError(f"{name}={limit} cannot be reached: the best cut has {reachable:.6g}")


def _curve(cuts: Cuts) -> Curve:
    edges = cuts.edge[1:]
    threshold = np.concatenate([[above(edges[0])], between(edges[1:], edges[:-1]), edges[-1:]])
    return Curve(threshold, *cuts.rates(slice(None)), cuts.value)


def _stack(found: list[Threshold]) -> Threshold:
    columns = {f.name: np.array([getattr(one, f.name) for one in found]) for f in fields(Threshold)}
    return Threshold(**columns)
