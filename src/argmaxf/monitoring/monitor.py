r"""Watching a deployed threshold without labels.

A monitor compares the probabilities of each period with those at deployment. It sees what changes
the probabilities: another rate of positives, other rows. It cannot see that rows with the same
probability have become positive more or less often: then predicted F is wrong and no alarm is
raised, until labels arrive (`Monitor.add_labels`).

Alarms
------
In period t four tests compare the period, and the last four periods together, with the reference:
Fisher's exact test of the share of selected rows, and the two-sample Kolmogorov–Smirnov test of all
probabilities, whose p-value is bounded by e exp(-2 D² n m / (n + m)) (Wei & Dudley 2012, after
Dvoretzky, Kiefer & Wolfowitz). Each has the level α / (4 t (t + 1)). Since Σ_t 1 / (t (t + 1)) = 1,
the probability of any false alarm over the whole run, however long, is at most α (union bound):
reusing the reference and overlapping windows make the tests dependent, which the bound allows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import hypergeom

from argmaxf._base.arrays import Floats
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.validation import as_labels, as_probabilities, check_unit_interval
from argmaxf.constraints import check_strictly_between
from argmaxf.empirical.interval import Interval, f_interval
from argmaxf.empirical.label_shift import most_likely_rate
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.measures import FBeta, MeasureLike, as_measure
from argmaxf.monitoring.prediction import PredictedF, predicted_from_counts

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
        F, precision, recall and positives of the deployed threshold, with intervals.
    rate : Interval
        The rate of positives if only that rate has changed since deployment.
    best_threshold : float
        The threshold with the highest expected F in this period.
    loss : float
        How much expected F the deployed threshold loses against it.
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

    @property
    def all(self) -> ProbabilitySketch:
        return self.selected + self.others

    @property
    def n(self) -> int:
        return self.selected.n + self.others.n


class Monitor:
    """A deployed threshold, watched period by period.

    Parameters
    ----------
    threshold : float
        Rows with a probability of at least this are selected.
    reference : array-like of shape (n,)
        Probabilities at deployment that the threshold was chosen for, not used in training.
    rate : float, optional
        The rate of positives there; by default the mean of `reference`.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str, Measure or callable, default="fbeta"
        The measure to watch.
    confidence_level : float, default=0.95
        Of the intervals.
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
        rate: float | None = None,
        beta: float = 1.0,
        measure: MeasureLike = "fbeta",
        confidence_level: float = 0.95,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.threshold = check_unit_interval("threshold", threshold)
        self.measure = as_measure(measure, beta)
        why = "neither is a level that a test can have"
        self.confidence_level = check_strictly_between("confidence_level", confidence_level, why)
        self.false_alarm_rate = check_strictly_between("false_alarm_rate", false_alarm_rate, why)
        p = as_probabilities("reference", reference, ndim=1).astype(np.float64)
        self.rate = float(p.mean()) if rate is None else check_unit_interval("rate", rate)
        self._reference = _Rows()
        self._reference.update(p, self.threshold)
        self._rows: dict[str, _Rows] = {}
        self._alarms: dict[str, tuple[str, ...]] = {}

    def update(self, p: ArrayLike, *, period: Any = None) -> Period:
        """Take in the probabilities of a period, or more of the last one.

        Parameters
        ----------
        p : array-like of shape (n,)
            Probabilities of its rows.
        period : object, optional
            Its name; by default the number of the period. The same name as the last one adds rows
            to it.

        Returns
        -------
        Period
            What is known of it so far.
        """
        probability = as_probabilities("p", p, ndim=1).astype(np.float64)
        name = str(len(self._rows) + 1 if period is None else period)
        if name in self._rows and name != next(reversed(self._rows)):
            raise ValueError(
                f"period {name!r} has ended: rows can be added to the last period, "
                f"{next(reversed(self._rows))!r}, or to a new one"
            )
        self._rows.setdefault(name, _Rows()).update(probability, self.threshold)
        self._alarms[name] = self._tested(len(self._rows))
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
            With `found`, the F of the labelled rows and its interval. The labels must be of rows
            drawn at random; for planned ones use `estimate_f`.
        """
        name = str(period)
        if name not in self._rows:
            raise ValueError(f"period must be one of those seen, got {period!r}")
        probability = as_probabilities("p", p, ndim=1)
        positive = as_labels("labels", labels)
        if positive.shape != probability.shape:
            raise ValueError(
                f"labels must hold one label for each of {probability.size} rows, got "
                f"{positive.shape}"
            )
        rows = self._rows[name]
        rows.labelled[0].extend(positive.tolist())
        rows.labelled[1].extend((probability >= self.threshold).tolist())
        return self[name]

    @property
    def periods(self) -> list[Period]:
        """All periods so far, in order."""
        return [self[name] for name in self._rows]

    @property
    def reference(self) -> Period:
        """The same numbers for the reference."""
        return self._described("reference", self._reference, ())

    def __getitem__(self, name: str) -> Period:
        return self._described(name, self._rows[name], self._alarms[name])

    def _described(self, name: str, rows: _Rows, alarms: tuple[str, ...]) -> Period:
        """Put together what is known of some rows."""
        chosen, others = _values(rows.selected), _values(rows.others)
        predicted = predicted_from_counts(chosen, others, self.measure, 0.0, self.confidence_level)
        values, counts = (np.concatenate(each) for each in zip(chosen, others, strict=True))
        rate = most_likely_rate(values, counts, self.rate, self.confidence_level)
        best = rows.all.decide(measure=self.measure)
        truth, guess = rows.labelled
        found = (
            f_interval(truth, guess, measure=self.measure, confidence_level=self.confidence_level)
            if truth
            else None
        )
        loss = max(0.0, float(best.expected) - predicted.f.value)
        threshold = float(best.threshold)
        return Period(
            name, rows.n, rows.selected.n, predicted, rate, threshold, loss, alarms, found
        )

    def _tested(self, t: int) -> tuple[str, ...]:
        """Return the alarms of the last of t periods."""
        level = self.false_alarm_rate / (2 * len(WINDOWS) * t * (t + 1))
        rows = list(self._rows.values())
        said: dict[str, None] = {}
        for size in WINDOWS:
            window = rows[-size:]
            if len(window) < size:
                continue
            few, of = sum(each.selected.n for each in window), sum(each.n for each in window)
            if _fisher(few, of, self._reference.selected.n, self._reference.n) <= level:
                said["share of selected rows"] = None
            if _kolmogorov_smirnov([each.all for each in window], self._reference.all) <= level:
                said["distribution of probabilities"] = None
        return tuple(said)

    def save(self, path: str | Path) -> None:
        """Write the monitor to a JSON file: numbers and sketches, no code.

        Parameters
        ----------
        path : str or Path
            The file, written whole or not at all.
        """
        if not isinstance(self.measure, FBeta):
            raise ValueError(f"only monitors of F can be saved, got {self.measure}")
        state = {
            "format": FORMAT,
            "version": VERSION,
            "threshold": self.threshold,
            "rate": self.rate,
            "beta": self.measure.beta,
            "confidence_level": self.confidence_level,
            "false_alarm_rate": self.false_alarm_rate,
            "reference": _packed(self._reference),
            "periods": [
                {"name": name, "alarms": self._alarms[name], **_packed(rows)}
                for name, rows in self._rows.items()
            ],
        }
        write_whole(Path(path), json.dumps(state, indent=1))

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
                    f"{path} was written by a newer argmaxf (format {state['version']}, known "
                    f"{VERSION}); upgrade argmaxf to read it"
                )
            options = {key: state[key] for key in ("confidence_level", "false_alarm_rate", "rate")}
            found = cls(state["threshold"], [0.5], beta=state["beta"], **options)
            found._reference = _unpacked(state["reference"])
            for period in state["periods"]:
                found._rows[period["name"]] = _unpacked(period)
                found._alarms[period["name"]] = tuple(period["alarms"])
        except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a monitor of argmaxf: {error}") from None
        return found


def _values(sketch: ProbabilitySketch) -> tuple[Floats, Floats]:
    """Return the mean probability of each group of a sketch and its number of rows."""
    groups = groups_of_sketch(sketch)
    return groups.mass / groups.count, groups.count


def _fisher(few: int, of: int, reference: int, of_reference: int) -> float:
    """Return the p-value of Fisher's exact test that both shares are equal, two-sided."""
    both = hypergeom(of + of_reference, few + reference, of)
    return min(1.0, 2.0 * float(min(both.cdf(few), both.sf(few - 1))))


def _kolmogorov_smirnov(some: Sequence[ProbabilitySketch], other: ProbabilitySketch) -> float:
    """Bound the p-value of the two-sample test that all probabilities have one distribution."""
    merged = sum(some[1:], some[0])
    groups = [groups_of_sketch(each) for each in (merged, other)]
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
    truth, guess = state["labelled"]
    return _Rows(selected, others, (truth, guess))
