r"""Which rows to label, and the F that their labels tell.

To learn the F of a decision from few labels, rows are drawn with probability proportional to the
root of their expected squared influence on F (Sawade et al. 2010; Marchant & Rubinstein 2017): with
value F, β² = b and label y, a selected row changes the estimate by (1 + b)(1 - F) if it is positive
and by -F if it is not, a row left out by -b F if it is positive. A part of the draws is uniform, so
that rows which the model takes for certain are looked at, too.

Draws are without replacement, by priority sampling (Duffield, Lund & Thorup 2007): row i has the
priority w_i / u_i, u_i uniform, and the rows of highest priority are drawn. A larger budget only
adds rows, whatever was drawn before.

`estimate_f` learns from the labels how the probabilities are calibrated (`recalibration`), which
does not depend on how rows were drawn, since that depends on p alone. The rows without a label then
have known probabilities, up to the posterior of the calibration, and draws of both give F of all
rows with an interval. Where this may fail, the interval is widened to that of the draw of the rows
alone: the rates of positives among selected rows and among others, from their weighted labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    as_labels,
    as_probabilities,
    check_choice,
    check_count,
    check_strictly_between,
    check_whole,
    check_zero_division,
)
from argmaxf.measures import Interval, Measure, MeasureLike, as_measure
from argmaxf.monitoring.histogram import binned, log_odds
from argmaxf.monitoring.prediction import one_each, predict_f, predicted_from_counts
from argmaxf.monitoring.recalibration import DRAWS, CalibrationPosterior

UNIFORM_SHARE = 0.1  # of the draws
FEWEST = 5  # positives among the labels that coverage needs
FEWEST_OTHERS = 200  # labels that coverage needs where another model selected the rows
TINY = np.finfo(np.float64).tiny
SATURATED, NEAR = 0.5, 0.01  # share of rows of one probability that is so near to 0 or 1


@dataclass(frozen=True, eq=False, repr=False)
class LabelPlan(Shown):
    """Rows to label, drawn so that their labels tell most about F.

    Attributes
    ----------
    indices : ndarray of int
        The rows to label, in the order in which they were drawn. Labels that come in this order may
        end early: the first m rows are the plan for a budget of m.
    weights : ndarray of float
        How many rows each of them stands for: one over the probability of being drawn (estimated as
        in priority sampling). For estimates of your own; `estimate_f` does not need them.
    n : int
        How many rows there are in all.
    measure : Measure
        What is to be estimated.
    p, selected : ndarray
        The probabilities of all rows, and which are selected.
    seed, target : int, str
        Of the draw: its seed, and what the labels are to tell, the value or the threshold.
    labelled : tuple of two ndarray
        The rows whose labels were known before, and their labels.

    Examples
    --------
    >>> from argmaxf import plan_labels
    >>> p = np.linspace(0, 1, 100) ** 3
    >>> plan = plan_labels(p, p >= 0.4, budget=3, random_state=0)
    >>> plan.indices, plan.weights.round(1)
    (array([92, 11, 59]), array([ 8.8, 99. , 16.5]))
    """

    indices: Ints
    weights: Floats
    n: int
    measure: Measure
    p: Floats = field(repr=False)
    selected: Bools = field(repr=False)
    seed: int = field(repr=False)
    target: str = field(repr=False)
    labelled: tuple[Ints, Bools] = field(repr=False)

    def replan(self, labels: ArrayLike, budget: int) -> LabelPlan:
        """Return a plan for `budget` further rows that makes use of the labels at hand.

        The probabilities are recalibrated by the labels first, so that the new rows are drawn where
        they matter now. `estimate_f` of the new plan takes the labels of the new rows alone.

        Parameters
        ----------
        labels : array-like of shape (indices.size,)
            The labels of this plan's rows.
        budget : int
            How many rows to add.

        Returns
        -------
        LabelPlan
        """
        found = replace(self, labelled=self._with(labels), seed=self.seed + 1)
        return _drawn(found, check_count("budget", budget))

    def recalibrate(self, labels: ArrayLike) -> Floats:
        """Return the probabilities of all rows, recalibrated by the labels.

        Parameters
        ----------
        labels : array-like of shape (indices.size,)
            The labels of this plan's rows.

        Returns
        -------
        ndarray of float
            For `maximize_expected_f`, to find the threshold that is best now.
        """
        return self._posterior(*self._with(labels)).transform(self.p, self.selected)

    def _with(self, labels: ArrayLike) -> tuple[Ints, Bools]:
        """Check the labels of this plan; return all rows with a label, and their labels."""
        found = as_labels("labels", labels)
        if found.shape != self.indices.shape:
            raise ValueError(
                f"labels must hold one label for each of the {self.indices.size} rows of the plan, "
                f"got {found.shape[0] if found.ndim == 1 else found.shape}; for fewer labels use "
                "the plan of a smaller budget"
            )
        rows, known = self.labelled
        return np.concatenate([rows, self.indices]), np.concatenate([known, found])

    def _posterior(self, rows: Ints, known: Bools) -> CalibrationPosterior:
        """Return what the labels of some rows say about the calibration."""
        return CalibrationPosterior.fit(self.p[rows], known, self.selected[rows])


@with_entries_of(predict_f)
def plan_labels(
    p: ArrayLike,
    selected: ArrayLike,
    budget: int,
    *,
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    target: str = "value",
    random_state: int | None = None,
) -> LabelPlan:
    """Draw the rows whose labels are most informative about the F of a decision.

    Label the rows `indices` of the plan, and pass the labels and the plan to `estimate_f`.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of being positive, which determine the rows to draw; they need not be
        calibrated.
    selected : array-like of shape (n,)
        Which rows were selected, 0/1 or booleans.
    budget : int
        How many rows to label.
    beta, measure : as in `predict_f`
    target : {"value", "threshold"}, default="value"
        ``"value"`` draws rows that are informative about the F of the decision. ``"threshold"``
        draws rows near the threshold, which show whether another threshold is better.
    random_state : int, optional
        Seed of the draw; a plan with the same seed and a larger budget only adds rows.

    Returns
    -------
    LabelPlan
        With `indices`, the rows to label, and `weights`, one over the probability of being drawn.

    Notes
    -----
    O(n) time and memory.

    References
    ----------
    Sawade, Landwehr & Scheffer, "Active estimation of F-measures", NeurIPS 2010. Marchant &
    Rubinstein, "In search of an entity resolution OASIS", VLDB 2017. Duffield, Lund & Thorup,
    "Priority sampling for estimation of arbitrary subset sums", Journal of the ACM 2007.

    Examples
    --------
    >>> p = np.linspace(0.001, 0.9, 1000) ** 4
    >>> plan = plan_labels(p, p >= 0.3, budget=5, random_state=0)
    >>> plan.indices
    array([855, 921, 850, 269, 935])
    """
    probability = as_probabilities("p", p, ndim=1).astype(np.float64)
    chosen = one_each("selected", selected, probability.size)
    if not chosen.any():
        raise ValueError(
            f"selected must mark at least one of {chosen.size} rows, got none: F of none "
            "selected is known without labels; pass a lower threshold"
        )
    check_choice("target", target, ("value", "threshold"))
    seed: Any = np.random.SeedSequence().entropy
    if random_state is not None:
        seed = check_whole("random_state", random_state)
    rows, known = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    plan = LabelPlan(
        indices=rows,
        weights=np.zeros(0),
        n=probability.size,
        measure=as_measure(measure, beta),
        p=probability,
        selected=chosen,
        seed=seed,
        target=target,
        labelled=(rows, known),
    )
    return _drawn(plan, check_count("budget", budget))


def estimate_f(
    labels: ArrayLike,
    plan: LabelPlan,
    *,
    zero_division: float = 0.0,
    confidence_level: float = 0.95,
) -> Interval:
    """Return the F of a decision from the labels of a plan, with an interval.

    Parameters
    ----------
    labels : array-like of shape (budget,)
        The labels of the rows ``plan.indices``, 0/1 or booleans.
    plan : LabelPlan
        From `plan_labels`.
    zero_division : float, default=0.0
        F if nothing is selected and nothing is positive.
    confidence_level : float, default=0.95
        Probability that the interval holds the F of all rows.

    Returns
    -------
    Interval
        ``low``, ``value`` and ``high``: the F that the decision has on all rows of the plan.
        ``reliable`` is False if the interval may contain F less often than stated: fewer than five
        labels are positive; there are fewer than 200 labels and the rows were not selected by a
        threshold on `p`; the labels contradict the probabilities so much that recalibration cannot
        repair it (the scores carry little information); or more than half of the rows have the same
        probability, near 0 or 1 (saturated scores). The interval is then widened to include one
        that comes from the labels and their weights alone. Label more rows, or draw rows uniformly
        for `f_interval`.

    Notes
    -----
    The labels recalibrate the probabilities, of selected rows and of others (docs/monitoring.md has
    the coverage in simulations).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.1, 3, size=20_000)
    >>> y = rng.random(p.size) < p
    >>> plan = plan_labels(p, p >= 0.3, budget=200, random_state=0)
    >>> f = estimate_f(y[plan.indices], plan)
    >>> print(f"{f.value:.2f} [{f.low:.2f}, {f.high:.2f}]")
    0.46 [0.35, 0.58]
    """
    level = check_strictly_between("confidence_level", confidence_level, "no interval is certain")
    zero = check_zero_division(zero_division)
    if not isinstance(plan, LabelPlan):
        raise ValueError(f"plan must be what plan_labels returned, got {type(plan).__name__}")
    rows, known = plan._with(labels)
    rng = np.random.default_rng(0)
    posterior = plan._posterior(rows, known)
    theta = posterior.draw(rng)
    rest = np.ones(plan.n, np.bool_)
    rest[rows] = False
    sizes, equal = (int(plan.selected.sum()), plan.n), np.full(DRAWS, 1.0 / DRAWS)

    def found(positives: Callable[[Bools, bool], Any]) -> Interval:
        """Return F, given draws of the number of positives among rows without a label."""
        hit, missed = (
            np.count_nonzero(known[plan.selected[rows] == side])
            + positives(rest & (plan.selected == side), side)
            for side in (True, False)
        )
        return predicted_from_counts(hit, missed, equal, *sizes, plan.measure, level, zero).f

    f = found(lambda those, side: posterior.positives(theta, binned(plan.p[those]), rng, side))
    few = np.count_nonzero(known) < FEWEST or (known.size < FEWEST_OTHERS and _by_others(plan))
    doubtful = few or posterior.contradicts or _saturated(plan.p)
    if not doubtful or rows.size == plan.n:
        # The mean of a skewed distribution may lie outside of the interval
        return Interval(f.low, min(max(f.value, f.low), f.high), f.high)
    new = known[known.size - plan.indices.size :]
    drawn = found(lambda those, side: rng.binomial(those.sum(), _rates(plan, new, side, rng)))
    low, high = min(f.low, drawn.low), max(f.high, drawn.high)
    return Interval(low, min(max(f.value, low), high), high, reliable=False)


def _drawn(plan: LabelPlan, size: int) -> LabelPlan:
    """Return a plan of `size` rows of highest priority among those without a label."""
    before, known = plan.labelled
    rows = np.delete(np.arange(plan.n), before)
    if size > rows.size:
        raise ValueError(
            f"budget must be at most the number of rows without a label, {rows.size}, got {size}"
        )
    p = plan._posterior(before, known).transform(plan.p, plan.selected) if known.size else plan.p
    weight = _influence(p, plan.selected, plan.measure, plan.target)[rows]
    weight = (1.0 - UNIFORM_SHARE) * weight / max(weight.sum(), TINY) + UNIFORM_SHARE / rows.size
    priority = weight / np.random.default_rng(plan.seed).random(plan.n)[rows]
    order = np.argsort(-priority, kind="stable")[: size + 1]
    drawn = order[:size]
    # The highest priority that was not drawn is the scale of the probabilities of being drawn
    scale = priority[order[size]] if order.size > size else 0.0
    return replace(plan, indices=rows[drawn], weights=np.maximum(1.0, scale / weight[drawn]))


def _rates(plan: LabelPlan, labels: Bools, side: bool, rng: np.random.Generator) -> Floats:
    """Draw the rate of positives of one side from the weighted labels of its rows alone."""
    own = plan.selected[plan.indices] == side
    weight = plan.weights[own] / max(plan.weights[own].max(initial=0.0), TINY)
    each = weight.sum() / max(np.square(weight).sum(), TINY)  # so many labels of equal weight
    hits, size = each * weight[labels[own]].sum(), each * weight.sum()
    return rng.beta(0.5 + hits, 0.5 + size - hits, DRAWS)


def _by_others(plan: LabelPlan) -> bool:
    """Whether the rows were not selected by a threshold on p."""
    selected = plan.selected
    return bool(plan.p[selected].min(initial=2.0) < plan.p[~selected].max(initial=-1.0))


def _saturated(p: Floats) -> bool:
    """Whether many rows share a probability next to 0 or to 1."""
    ends = [end for end in (p.min(), p.max()) if min(end, 1.0 - end) < NEAR]
    return any(np.count_nonzero(p == end) > max(SATURATED * p.size, 1) for end in ends)


def _influence(p: Floats, selected: Bools, measure: Measure, target: str) -> Floats:
    """Return the root of each row's expected squared influence on what the labels are to tell."""
    if target == "threshold" and not selected.all():
        border = 0.5 * (p[selected].min() + p[~selected].max())
        near = np.exp(-0.5 * (log_odds(p) - log_odds(np.array(border))) ** 2)
        return np.sqrt(p * (1.0 - p)) * near
    counts = np.array([p[selected].sum(), np.count_nonzero(selected), p.sum(), p.size])
    step = 1e-6 * max(counts[1] + counts[2], 1.0)

    def change(side: bool, label: bool) -> float:
        """Return how a measure changes if such a row is counted once more."""
        once = np.array([side and label, side, label, True])
        more = counts + step * once
        return float((measure.value(*more) - measure.value(*counts)) / step)

    squares = [
        (1.0 - p) * change(side, False) ** 2 + p * change(side, True) ** 2 for side in (False, True)
    ]
    return np.sqrt(np.where(selected, squares[1], squares[0]))
