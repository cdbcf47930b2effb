r"""Watching a deployed threshold without labels.

A monitor compares the probabilities of each period with those at deployment. It sees what changes
the probabilities: another rate of positives, other rows. It cannot see that rows with the same
probability have become positive more or less often: then predicted F is wrong and no alarm is
raised, until labels arrive (`Monitor.add_labels`).

Alarms
------
Each look at the data, the t-th of the run, is tested at the level α / (t (t + 1)), divided among
its tests. Since Σ_t 1 / (t (t + 1)) = 1, the probability of any false alarm over the whole run,
however long, is at most α (union bound): reusing the reference and overlapping windows make the
tests dependent, which the bound allows.

New rows are a look with four tests, of the period and of the last four periods together: Fisher's
exact test that the share of selected rows is that of the reference, and the two-sample
Kolmogorov–Smirnov test of all probabilities, whose p-value is bounded by
e exp(-2 D² n m / (n + m)) (Wei & Dudley 2012, after Dvoretzky, Kiefer & Wolfowitz).

New labels are a look with two tests, of the labelled rows that are selected and of the others: that
the number of positives among them is a sum of labels with their probabilities (Poisson binomial).
With labels of the reference, the posterior of the calibration is part of that distribution.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import hypergeom

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.validation import (
    as_labels,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
    check_whole,
)
from argmaxf.empirical.interval import f_interval
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.measures import MEASURES, Interval, MeasureLike, Ratio, as_measure
from argmaxf.monitoring.prediction import (
    Count,
    PredictedF,
    learned_calibration,
    predicted_from_counts,
)
from argmaxf.monitoring.recalibration import CalibrationPosterior
from argmaxf.prior import EDGE, check_rate, most_likely_rate, move_odds, odds_factor

WINDOWS = (1, 4)  # periods that are tested together
FORMAT = "argmaxf monitor"
VERSION = 1


@dataclass(frozen=True)
class Period:
    """What is known of one period.

    Attributes
    ----------
    name : str
        The name of the period, as given.
    n, selected : int
        How many rows there are and how many are selected by the deployed threshold.
    predicted : PredictedF
        F, precision, recall and positives of the deployed threshold, with intervals, if the
        probabilities are still right: nothing has changed, or only which rows come (covariate
        shift).
    rate : Interval
        The rate of positives if only that rate has changed since deployment (prior shift).
    predicted_after_shift : PredictedF
        The same as `predicted` under prior shift, the probabilities being moved to `rate`.
    best_threshold : float
        The threshold with the highest expected F in this period.
    loss : float
        How much expected F the deployed threshold loses against it. Both are computed from the
        probabilities as they are, without recalibration.
    alarms : tuple of str
        What differs from the reference, in words; empty where nothing does.
    found : Interval or None
        F of the labelled rows that arrived for this period.
    """

    name: str
    n: int
    selected: int
    predicted: PredictedF
    rate: Interval
    predicted_after_shift: PredictedF
    best_threshold: float
    loss: float
    alarms: tuple[str, ...] = ()
    found: Interval | None = None


@dataclass
class _Rows:
    """The probabilities of some rows as two sketches: selected ones and others."""

    selected: ProbabilitySketch = field(default_factory=ProbabilitySketch)
    others: ProbabilitySketch = field(default_factory=ProbabilitySketch)
    labelled: tuple[list[bool], list[bool]] = field(default_factory=lambda: ([], []))

    def update(self, p: Floats, threshold: float) -> None:
        self.selected.update(p[p >= threshold])
        self.others.update(p[p < threshold])

    def __add__(self, other: _Rows) -> _Rows:
        labelled = [a + b for a, b in zip(self.labelled, other.labelled, strict=True)]
        sketches = self.selected + other.selected, self.others + other.others
        return _Rows(*sketches, (labelled[0], labelled[1]))

    @property
    def all(self) -> ProbabilitySketch:
        return self.selected + self.others

    @property
    def n(self) -> int:
        return self.selected.n + self.others.n


class Monitor:
    """Monitor a deployed threshold, period by period.

    Parameters
    ----------
    threshold : float
        Rows with a probability of at least this are selected.
    reference : array-like of shape (n,)
        Probabilities at deployment that the threshold was chosen for, not used in training.
    labels : array-like of shape (n,), optional
        The labels of the reference rows, 0/1 or booleans. Predictions are then recalibrated, and
        the intervals also cover the calibration error. Without labels the probabilities are assumed
        to be calibrated.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str or Measure, default="fbeta"
        The measure to watch: F, Dice, Jaccard or Tversky.
    confidence_level : float, default=0.95
        Confidence level of the intervals.
    false_alarm_rate : float, default=0.05
        Probability of any alarm over the whole run if nothing changes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(0.4, rng.beta(0.5, 8, size=5_000))
    >>> monitor.update(rng.beta(0.5, 8, size=1_000), period="Monday").alarms
    ()
    >>> monitor.update(rng.beta(0.5, 5, size=1_000), period="Tuesday").alarms
    ('share of selected rows', 'distribution of probabilities')
    """

    def __init__(
        self,
        threshold: float,
        reference: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        confidence_level: float = 0.95,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.threshold = check_unit_interval("threshold", threshold)
        self.measure = as_measure(measure, beta)
        if not isinstance(self.measure, Ratio):
            raise ValueError(
                f"measure of a monitor must be F, Dice, Jaccard or Tversky, got {self.measure}; "
                "use predict_f for other measures"
            )
        why = "0 and 1 are not levels of a test"
        self.confidence_level = check_strictly_between("confidence_level", confidence_level, why)
        self.false_alarm_rate = check_strictly_between("false_alarm_rate", false_alarm_rate, why)
        p = as_probabilities("reference", reference, ndim=1).astype(np.float64)
        self._posterior = None
        if labels is not None:
            self._posterior = learned_calibration(p, labels, ("reference", "labels"))
        rate = float(np.mean(p if labels is None else as_labels("labels", labels)))
        self.rate = min(max(rate, EDGE), 1.0 - EDGE)  # a rate of 0 or 1 cannot be moved
        self._reference = _Rows()
        self._reference.update(p, self.threshold)
        self._rows: dict[str, _Rows] = {}
        self._alarms: dict[str, list[str]] = {}
        self._looks = 0

    @classmethod
    def of_classifier(
        cls, classifier: Any, X_reference: Any, y_reference: Any = None, **options: Any
    ) -> Monitor:
        """Return a monitor of a fitted classifier that decides each row by one threshold.

        Parameters
        ----------
        classifier : classifier
            With `predict_proba` of two classes and a number as `threshold_`: what `freeze` returns.
        X_reference : array-like
            Rows at deployment, not used in training.
        y_reference : array-like, optional
            Their labels; predictions are then recalibrated by them.
        **options : object
            Further options of `Monitor`.

        Returns
        -------
        Monitor
            Pass ``classifier.predict_proba(X)[:, 1]`` of each period to `update`.
        """
        threshold: Any = getattr(classifier, "threshold_", None)
        if np.ndim(threshold) or threshold is None or not hasattr(classifier, "predict_proba"):
            raise ValueError(
                "classifier must have predict_proba and one threshold_, got "
                f"{type(classifier).__name__}; freeze() returns such a classifier"
            )
        labels = None
        if y_reference is not None:
            labels = np.asarray(y_reference) == classifier.classes_[1]
            if not np.isin(y_reference, classifier.classes_).all():
                raise ValueError(
                    f"y_reference must hold the classes {classifier.classes_.tolist()}, got others"
                )
        reference = classifier.predict_proba(X_reference)[:, 1]
        return cls(float(threshold), reference, labels=labels, **options)

    def update(self, p: Any, *, period: Any = None) -> Period:
        """Add the probabilities of a new period, or more of the last one, and test them.

        Each call is one test of the data, and later tests use lower significance levels, so that
        the false-alarm rate holds. To test many batches once, pass them together, as an iterator.

        Parameters
        ----------
        p : array-like of shape (n,), or iterator of such
            Probabilities of its rows, or batches of them.
        period : object, optional
            Its name; by default a new number. The same name as the last one adds rows
            to it.

        Returns
        -------
        Period
            The results for this period so far.
        """
        free = (str(i) for i in count(len(self._rows) + 1) if str(i) not in self._rows)
        name = next(free) if period is None else str(period)
        if name in self._rows and name != next(reversed(self._rows)):
            raise ValueError(
                f"period {name!r} has ended: rows can be added to the last period, "
                f"{next(reversed(self._rows))!r}, or to a new one"
            )
        rows = _Rows()
        for batch in p if isinstance(p, Iterator) else [p]:
            probability = as_probabilities("p", batch, ndim=1).astype(np.float64)
            rows.update(probability, self.threshold)
        if rows.n == 0:
            raise ValueError(f"period {name!r} must have rows, got none")
        self._rows[name] = self._rows[name] + rows if name in self._rows else rows
        self._raise(name, self._tested())
        return self[name]

    def add_labels(self, p: ArrayLike, labels: ArrayLike, *, period: Any) -> Period:
        """Compare the prediction for a period with labels of some of its rows.

        Parameters
        ----------
        p : array-like of shape (m,)
            Probabilities of the labelled rows.
        labels : array-like of shape (m,)
            Their labels, 0/1 or booleans.
        period : object
            The name of the period.

        Returns
        -------
        Period
            With `found`, the F of the labelled rows and its interval, and an alarm where the labels
            contradict the probabilities. The labels must be of rows drawn at random; for planned
            ones use `estimate_f`.
        """
        name = str(period)
        if name not in self._rows:
            raise ValueError(f"period must be one of those seen, got {period!r}")
        probability = as_probabilities("p", p, ndim=1).astype(np.float64)
        positive = as_labels("labels", labels)
        if positive.shape != probability.shape:
            raise ValueError(
                f"labels must hold one label for each of {probability.size} rows, got "
                f"{positive.shape}"
            )
        rows, chosen = self._rows[name], probability >= self.threshold
        rows.labelled[0].extend(positive.tolist())
        rows.labelled[1].extend(chosen.tolist())
        sides = chosen, ~chosen
        tails = [_tail(probability[side], positive[side], self._posterior) for side in sides]
        self._raise(name, [("labels against probabilities", tail) for tail in tails])
        return self[name]

    @property
    def periods(self) -> list[Period]:
        """All periods so far, in order."""
        return [self[name] for name in self._rows]

    @property
    def reference(self) -> Period:
        """The results for the reference rows."""
        return self._described("reference", self._reference, ())

    def __getitem__(self, name: str) -> Period:
        return self._described(name, self._rows[str(name)], self._alarms[str(name)])

    def __add__(self, other: Monitor) -> Monitor:
        """Merge two monitors of one deployed threshold, from different places or times.

        The alarms of both are kept, so a false alarm is up to twice as probable as in each.
        """
        if not isinstance(other, Monitor):
            return NotImplemented
        if self._settings() != other._settings():
            raise ValueError(
                "monitors can be merged if they have the same reference, threshold, measure and "
                "levels, got different ones"
            )
        merged = copy(self)
        names = [*self._rows, *(name for name in other._rows if name not in self._rows)]
        none = _Rows()
        merged._rows = {n: self._rows.get(n, none) + other._rows.get(n, none) for n in names}
        merged._alarms = {
            name: list(dict.fromkeys([*self._alarms.get(name, []), *other._alarms.get(name, [])]))
            for name in names
        }
        merged._looks = self._looks + other._looks
        return merged

    def _described(self, name: str, rows: _Rows, alarms: Sequence[str]) -> Period:
        """Put together what is known of some rows."""
        chosen, others = _values(rows.selected), _values(rows.others)
        values, counts = (np.concatenate(each) for each in zip(chosen, others, strict=True))
        known = values if self._posterior is None else self._posterior.transform(values)
        rate = most_likely_rate(known, counts, self.rate, self.confidence_level)
        best = rows.all.decide(measure=self.measure)
        truth, guess = rows.labelled
        options: Any = {"measure": self.measure, "confidence_level": self.confidence_level}
        posterior, measured = self._posterior, (self.measure, 0.0, self.confidence_level)
        plain = predicted = predicted_from_counts(chosen, others, None, *measured)
        factor = float(odds_factor(self.rate, rate.value))
        moved = [(move_odds(p, factor), size) for p, size in (chosen, others)]
        if posterior is not None:  # recalibrated first, and then moved
            predicted = predicted_from_counts(chosen, others, posterior, *measured)
            moved, posterior = [chosen, others], posterior.moved(factor)
        after = predicted_from_counts(moved[0], moved[1], posterior, *measured)
        return Period(
            name=name,
            n=rows.n,
            selected=rows.selected.n,
            predicted=predicted,
            rate=rate,
            predicted_after_shift=after,
            best_threshold=float(best.threshold),
            loss=max(0.0, float(best.expected) - plain.f.value),
            alarms=tuple(alarms),
            found=f_interval(truth, guess, **options) if truth else None,
        )

    def _tested(self) -> list[tuple[str, float]]:
        """Return the tests of the last period and their p-values."""
        rows = list(self._rows.values())
        found = []
        for size in (size for size in WINDOWS if size <= len(rows)):
            window, reference = _Rows(), self._reference
            for each in rows[-size:]:
                window += each
            share = _fisher(window.selected.n, window.n, reference.selected.n, reference.n)
            distance = _kolmogorov_smirnov(window.all, reference.all)
            found += [
                ("share of selected rows", share),
                ("distribution of probabilities", distance),
            ]
        return found

    def _raise(self, name: str, tests: list[tuple[str, float]]) -> None:
        """Count a look, and raise an alarm for each of its tests that fails at its level."""
        self._looks += 1
        level = self.false_alarm_rate / (len(tests) * self._looks * (self._looks + 1))
        said = self._alarms.setdefault(name, [])
        for what, p_value in tests:
            if p_value <= level and what not in said:
                said.append(what)

    def save(self, path: str | Path) -> None:
        """Write the monitor to a JSON file: numbers and sketches, no code.

        Parameters
        ----------
        path : str or Path
            The file; it is written completely or not at all.
        """
        if type(self.measure) not in MEASURES.values():
            raise ValueError(
                f"measure must be one of argmaxf.measures for a saved monitor, got {self.measure}"
            )
        periods = [
            {"name": name, "alarms": self._alarms[name], **_packed(rows)}
            for name, rows in self._rows.items()
        ]
        state = {**self._settings(), "looks": self._looks, "periods": periods}
        write_whole(Path(path), json.dumps(state, indent=1))

    def _settings(self) -> dict[str, Any]:
        """Return what was set at the start, as JSON has it."""
        posterior = self._posterior
        return {
            "format": FORMAT,
            "version": VERSION,
            "threshold": self.threshold,
            "measure": {"name": self.measure.name, **vars(self.measure)},
            "confidence_level": self.confidence_level,
            "false_alarm_rate": self.false_alarm_rate,
            "rate": self.rate,
            "calibration": None if posterior is None else [each.tolist() for each in posterior],
            "reference": _packed(self._reference),
        }

    @classmethod
    def load(cls, path: str | Path) -> Monitor:
        """Read a monitor that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Monitor
        """
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise KeyError(state["format"])
            if state["version"] > VERSION:
                raise ValueError(
                    f"format {state['version']} is of a newer argmaxf; upgrade argmaxf"
                )
            options = {key: state[key] for key in ("confidence_level", "false_alarm_rate")}
            measure = dict(state["measure"])
            goal = MEASURES[measure.pop("name")](**measure)
            found = cls(state["threshold"], [0.5], measure=goal, **options)
            found.rate = float(check_rate("rate", state["rate"]))
            found._looks = check_whole("looks", state["looks"])
            if state["calibration"] is not None:
                found._posterior = CalibrationPosterior.of_lists(*state["calibration"])
            found._reference = _unpacked(state["reference"])
            for period in state["periods"]:
                name = str(period["name"])
                found._rows[name] = _unpacked(period)
                found._alarms[name] = [str(each) for each in period["alarms"]]
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise ValueError(
                f"{path} is not a monitor that this argmaxf can read: {error}"
            ) from None
        return found


def _values(sketch: ProbabilitySketch) -> tuple[Floats, Floats]:
    """Return the mean probability of each group of a sketch and its number of rows."""
    groups = groups_of_sketch(sketch)
    return groups.mass / groups.count, groups.count


def _fisher(few: int, of: int, reference: int, of_reference: int) -> float:
    """Return the p-value of Fisher's exact test that both shares are equal, two-sided."""
    both = hypergeom(of + of_reference, few + reference, of)
    return min(1.0, 2.0 * float(min(both.cdf(few), both.sf(few - 1))))


def _tail(p: Floats, positive: Bools, posterior: CalibrationPosterior | None) -> float:
    """Return the two-sided p-value of a number of positives, labels having probabilities p."""
    if p.size == 0:
        return 1.0
    found = int(np.count_nonzero(positive))
    if posterior is not None:
        return min(1.0, 2.0 * min(posterior.tails(p, found)))
    possible = Count.of(*np.unique(p, return_counts=True))
    sides = possible.values <= found, possible.values >= found
    return min(1.0, 2.0 * min(float(possible.mass[side].sum()) for side in sides))


def _kolmogorov_smirnov(one: ProbabilitySketch, other: ProbabilitySketch) -> float:
    """Bound the p-value of the two-sample test that all probabilities have one distribution."""
    groups = [groups_of_sketch(each) for each in (one, other)]
    place = np.unique(np.concatenate([each.centre for each in groups]))
    shares = [
        np.cumsum(np.bincount(np.searchsorted(place, g.centre), g.count, place.size))
        for g in groups
    ]
    distance = float(np.max(np.abs(shares[0] / shares[0][-1] - shares[1] / shares[1][-1])))
    n, m = shares[0][-1], shares[1][-1]
    return float(min(1.0, np.e * np.exp(-2.0 * distance**2 * n * m / (n + m))))


def _packed(rows: _Rows) -> dict[str, Any]:
    """Return rows as what JSON can hold."""
    encode = [base64.b64encode(s.to_bytes()).decode() for s in (rows.selected, rows.others)]
    return {"selected": encode[0], "others": encode[1], "labelled": rows.labelled}


def _unpacked(state: dict[str, Any]) -> _Rows:
    """Return rows from what JSON holds."""
    selected, others = (
        ProbabilitySketch.from_bytes(base64.b64decode(state[part]))
        for part in ("selected", "others")
    )
    truth, guess = (
        as_labels("labelled", each or [False])[: len(each)] for each in state["labelled"]
    )
    if selected.n + others.n == 0 or truth.shape != guess.shape or truth.ndim != 1:
        raise ValueError("periods must have rows, and each labelled one a label and a prediction")
    return _Rows(selected, others, (truth.tolist(), guess.tolist()))
