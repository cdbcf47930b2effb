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

New rows are a look that tests the period, and the last four periods together, for two changes: the
share of selected rows, and the distribution of all probabilities, by the shares of rows above ten
quantiles of these rows and those of the reference together. All of them are Fisher's exact test,
which is valid given the pooled rows: if nothing has changed, each division of the pooled rows into
reference and new ones is as likely as any other. The smallest of the ten p-values counts tenfold.

New labels are a look with four tests, of the labelled rows of the period and of the four periods
until then together, each of the selected rows and of the others: that the number of positives among
them is a sum of labels with their probabilities (Poisson binomial).
With labels of the reference, the posterior of the calibration is part of that distribution.

A merged monitor tests the merged rows of each period anew, from the first period on, as one monitor
of all rows would have done. Its alarms depend on these rows only, so the bound is α again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import hypergeom

from argmaxf._base import saved
from argmaxf._base.arrays import Floats
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.segments import Segments
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    NotAProbability,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
    check_whole,
)
from argmaxf.empirical.interval import f_interval
from argmaxf.expected.sketch import ProbabilitySketch, groups_of_sketch
from argmaxf.frames.batches import column_batches
from argmaxf.frames.solve import refusing
from argmaxf.frames.table import SEGMENT, P, Table, number
from argmaxf.measures import (
    Interval,
    MeasureLike,
    as_measure,
    measure_as_data,
    measure_of_data,
)
from argmaxf.monitoring.prediction import (
    PredictedF,
    as_labelled,
    count_distribution,
    predicted_from_sizes,
    sizes_of_sketch,
)
from argmaxf.monitoring.recalibration import CalibrationPosterior
from argmaxf.prior import EDGE, most_likely_rate, move_odds, odds_factor

WINDOWS = (1, 4)  # periods that are tested together
MOST_PERIODS = 1000  # of one frame: each holds sketches in memory
LABEL = "argmaxf_label"
# Shares of the pooled rows above which they are counted; positives are rare, so more at the top
SHARES = (0.002, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)


@dataclass(frozen=True, repr=False)
class Period(Shown):
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

    Examples
    --------
    >>> from argmaxf import Monitor
    >>> period = Monitor(0.4, [0.1, 0.2, 0.6, 0.9]).update([0.2, 0.7], period="Monday")
    >>> period.selected, period.alarms
    (1, ())
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


# Whose probabilities are sketched: rows on both sides of the threshold, and labelled rows
SELECTED, OTHERS = "selected", "others"
TP, FP, FN, TN = "true positives", "false positives", "false negatives", "true negatives"
SIDES = {SELECTED: (TP, FP), OTHERS: (FN, TN)}
WORDS = {SELECTED: "selected", OTHERS: "other"}


class _Rows(dict[str, ProbabilitySketch]):
    """The probabilities of some rows as sketches, by name; one that is missing is empty."""

    def __missing__(self, name: str) -> ProbabilitySketch:
        return ProbabilitySketch()

    def add(self, p: Floats, threshold: float, labels: Any = None) -> None:
        """Add rows; labels are 0, 1 or NaN, or None for rows without labels."""
        for side, (hit, miss) in SIDES.items():
            chosen = (p >= threshold) == (side == SELECTED)
            parts = {side: chosen}
            if labels is not None:
                parts |= {hit: chosen & (labels == 1), miss: chosen & (labels == 0)}
            for name, which in parts.items():
                if which.any():
                    self[name] = self[name].update(p[which])

    def __add__(self, other: _Rows) -> _Rows:
        return _Rows({name: self[name] + other[name] for name in {**self, **other}})

    def counts(self, *names: str) -> list[int]:
        """Return how many rows some sketches hold."""
        return [self[name].n for name in names]

    @property
    def all(self) -> ProbabilitySketch:
        return self[SELECTED] + self[OTHERS]

    @property
    def labelled(self) -> _Rows:
        """The labelled rows alone."""
        return _Rows({name: self[name] for name in (TP, FP, FN, TN) if name in self})


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
    measure : str, Measure or callable, default="fbeta"
        The measure to watch.
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
        why = "0 and 1 are not levels of a test"
        self.threshold = check_unit_interval("threshold", threshold)
        self.measure = as_measure(measure, beta)
        self.confidence_level = check_strictly_between("confidence_level", confidence_level, why)
        self.false_alarm_rate = check_strictly_between("false_alarm_rate", false_alarm_rate, why)
        self._rows: dict[str, _Rows] = {}
        self._alarms: dict[str, list[str]] = {}
        self._looks = 0
        rows = _Rows()
        if labels is None:
            p = as_probabilities("reference", reference, ndim=1).astype(np.float64)
            rows.add(p, self.threshold)
        else:
            p, positive = as_labelled("reference", "labels", reference, labels)
            rows.add(p, self.threshold, positive)
        self._refer_to(rows)

    def _refer_to(self, rows: _Rows) -> None:
        """Take rows as the reference, and learn the calibration from those with a label."""
        if not rows[SELECTED].n:
            raise ValueError(
                f"threshold must select some of the {rows.all.n:,} reference rows, got "
                f"{self.threshold:g}, which is above all their probabilities; pass the deployed "
                "threshold, on the scale of the probabilities"
            )
        self._reference, self._posterior = rows, None
        known = [sizes_of_sketch(rows[name]) for name in (TP, FN, FP, TN)]
        counts = rows.counts(TP, FN, FP, TN)
        rate = rows.all.mean_positives / rows.all.n
        if rows.labelled:
            p, weight = (np.concatenate(each) for each in zip(*known, strict=True))
            positive = np.repeat([True, True, False, False], [len(each[0]) for each in known])
            self._posterior = CalibrationPosterior.fit(p, positive, weight=weight)
            rate = sum(counts[:2]) / sum(counts)
        self.rate = min(max(rate, EDGE), 1.0 - EDGE)  # a rate of 0 or 1 cannot be moved

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
        rows = _Rows()
        for batch in p if isinstance(p, Iterator) else [p]:
            probability = as_probabilities("p", batch, ndim=1).astype(np.float64)
            rows.add(probability, self.threshold)
        return self._take(self._name(period), rows)

    def _name(self, period: Any) -> str:
        """Return the name of a period, by default a number that none has."""
        free = (str(i) for i in count(len(self._rows) + 1) if str(i) not in self._rows)
        return next(free) if period is None else str(period)

    @classmethod
    def of_frame(
        cls,
        threshold: float,
        frame: Any,
        column: str,
        *,
        label: str | None = None,
        nulls: str = "raise",
        **options: Any,
    ) -> Monitor:
        """Return a monitor whose reference is a column of a data frame.

        Parameters
        ----------
        threshold : float
            Rows with a probability of at least this are selected.
        frame : frame
            Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
            It is read in batches.
        column : str
            Its column of probabilities.
        label : str, optional
            Its column of labels: 0, 1, and null where a label is not known.
        nulls : {"raise", "drop"}, default="raise"
            ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out.
        **options : object
            Further options of `Monitor`.

        Returns
        -------
        Monitor
        """
        monitor = cls(threshold, [1.0], **options)
        (rows,) = monitor._read(Table.of(frame, column, None, nulls), label)
        monitor._refer_to(rows)
        return monitor

    def update_frame(
        self,
        frame: Any,
        column: str,
        *,
        time: str | None = None,
        every: str | None = None,
        label: str | None = None,
        period: Any = None,
        nulls: str = "raise",
    ) -> list[Period]:
        """Add the rows of a data frame, by default each value of a column of times as a period.

        Parameters
        ----------
        frame : frame
            Any frame Narwhals knows, eager or lazy: pandas, Polars, PyArrow, DuckDB, Dask, PySpark.
            It is read in batches.
        column : str
            Its column of probabilities.
        time : str, optional
            Its column of periods. Each of its values is a period; they are added in their order.
            Without it, all rows are one period.
        every : str, optional
            Length of a period, such as ``"1d"``, ``"1w"`` or ``"1mo"``: times are rounded down to
            it.
        label : str, optional
            Its column of labels: 0, 1, and null where a label is not known yet.
        period : object, optional
            The name of the period, without `time`; by default a new number.
        nulls : {"raise", "drop"}, default="raise"
            ``"raise"`` refuses rows without a probability, ``"drop"`` leaves them out.

        Returns
        -------
        list of Period
            The results for the periods of this frame.

        Examples
        --------
        >>> import polars as pl
        >>> monitor = Monitor(0.5, [0.2, 0.7, 0.1, 0.9])
        >>> frame = pl.DataFrame({"day": [1, 1, 2], "p": [0.3, 0.8, 0.6]})
        >>> [(each.name, each.n) for each in monitor.update_frame(frame, "p", time="day")]
        [('1', 2), ('2', 1)]
        """
        if every is not None and time is None:
            raise ValueError("every needs time, the column of times to round down")
        if time is not None and every is not None:
            frame = _rounded_down(frame, time, every)
        table = Table.of(frame, column, time, nulls)
        if table.segments > MOST_PERIODS:
            raise ValueError(
                f"time must have at most {MOST_PERIODS:,} different values, got "
                f"{table.segments:,} in {time!r}; pass every='1d' or another length of a period"
            )
        found = self._read(table, label)
        if time is None:
            return [self._take(self._name(period), found[0])]
        keys = [key[0] for key in table.python_keys()]
        names = _names(keys)
        return [
            self._take(names[i], found[i]) for i in sorted(range(len(keys)), key=keys.__getitem__)
        ]

    def _read(self, table: Table, label: str | None) -> list[_Rows]:
        """Read a frame once; return the rows of each segment."""
        columns = {P: table.p(table.columns[0])}
        if table.number is not None:
            columns[SEGMENT] = nw.col(table.number)
        if label is not None:
            kind = table.frame.collect_schema().get(label)
            if kind is None or not (kind.is_numeric() or kind == nw.Boolean):
                raise ValueError(f"label must be a column of numbers or booleans, got {label!r}")
            columns[LABEL] = number(label)
        frame = table.frame.select(*(each.alias(name) for name, each in columns.items()))

        def read() -> list[_Rows]:
            rows = [_Rows() for _ in range(table.segments)]
            for arrays in column_batches(frame, list(columns)):
                self._sort_in(rows, dict(zip(columns, arrays, strict=True)), label)
            if not all(rows):
                raise NotAProbability
            return rows

        return refusing(table, 0, read)

    def _sort_in(self, rows: list[_Rows], batch: dict[str, Any], label: str | None) -> None:
        """Add a batch to the rows of its segments."""
        p, labels = batch[P], batch.get(LABEL)
        which = batch.get(SEGMENT, np.zeros(p.size)).astype(np.int64)
        if not (p.min(initial=1.0) >= 0.0 and p.max(initial=0.0) <= 1.0):
            raise NotAProbability
        if labels is not None and (bad := ~np.isnan(labels) & (labels != 0) & (labels != 1)).any():
            raise ValueError(
                f"column {label!r} must hold 0, 1, or nothing where a label is not known, got "
                f"{labels[bad][0]:g}"
            )
        if which.min(initial=0) < 0:
            raise ValueError("the column of times must have a value in every row, got null or NaN")
        parted = Segments.of_numbers(which, len(rows))
        p, labels = parted.sorted(p), None if labels is None else parted.sorted(labels)
        for each, part in zip(rows, parted.slices(), strict=True):
            each.add(p[part], self.threshold, None if labels is None else labels[part])

    def _take(self, name: str, rows: _Rows) -> Period:
        """Add rows to a period and test them; return its results."""
        if not rows:
            raise ValueError(f"period {name!r} must have rows, got none")
        _check_labels(name, self._rows.get(name, _Rows()) + rows)
        self._look(name, rows)
        return self[name]

    def _look(self, name: str, rows: _Rows) -> None:
        """Add rows to a period; raise the alarms of one look at them and one at their labels."""
        new = rows.all.n > 0
        if new and name in self._rows and name != next(reversed(self._rows)):
            raise ValueError(
                f"period {name!r} has ended: rows can be added to the last period, "
                f"{next(reversed(self._rows))!r}, or to a new one"
            )
        self._rows[name] = self._rows.get(name, _Rows()) + rows
        periods = list(self._rows.values())[: list(self._rows).index(name) + 1]
        windows = [sum(periods[-size:], start=_Rows()) for size in WINDOWS if size <= len(periods)]
        if new:
            self._raise(name, [test for each in windows for test in self._changes(each)])
        if rows.labelled:
            pairs = [(each[hit], each[miss]) for each in windows for hit, miss in SIDES.values()]
            tails = [_tail(*pair, self._posterior) for pair in pairs]
            self._raise(name, [("labels against probabilities", tail) for tail in tails])

    def _changes(self, rows: _Rows) -> list[tuple[str, float]]:
        """Return the tests of rows against the reference, and their p-values."""
        counts, before = rows.counts(SELECTED, OTHERS), self._reference.counts(SELECTED, OTHERS)
        return [
            ("share of selected rows", _fisher(counts[0], sum(counts), before[0], sum(before))),
            ("distribution of probabilities", _shares_above(rows.all, self._reference.all)),
        ]

    def _raise(self, name: str, tests: list[tuple[str, float]]) -> None:
        """Count a look, and raise an alarm for each of its tests that fails at its level."""
        self._looks += 1
        level = self.false_alarm_rate / (len(tests) * self._looks * (self._looks + 1))
        said = self._alarms.setdefault(name, [])
        said += dict.fromkeys(what for what, p in tests if p <= level and what not in said)

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
        rows = _Rows()
        probability, positive = as_labelled("p", "labels", p, labels)
        rows.add(probability, self.threshold, positive)
        return self._take(name, rows.labelled)

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

        The merged rows are tested anew, so the false-alarm rate holds for the merged monitor. The
        alarms of its parts stay with the parts.
        """
        if not isinstance(other, Monitor):
            return NotImplemented
        if self._settings() != other._settings():
            raise ValueError(
                "monitors can be merged if they have the same reference, threshold, measure and "
                "levels, got different ones"
            )
        merged = copy(self)
        merged._rows, merged._alarms, merged._looks = {}, {}, 0
        none = _Rows()
        for name in dict.fromkeys([*self._rows, *other._rows]):
            merged._look(name, self._rows.get(name, none) + other._rows.get(name, none))
        return merged

    def _described(self, name: str, rows: _Rows, alarms: Sequence[str]) -> Period:
        """Put together what is known of some rows."""
        chosen, others = sizes_of_sketch(rows[SELECTED]), sizes_of_sketch(rows[OTHERS])
        values, counts = (np.concatenate(each) for each in zip(chosen, others, strict=True))
        posterior, measured = self._posterior, (self.measure, 0.0, self.confidence_level)
        plain = predicted = predicted_from_sizes(chosen, others, None, *measured)
        known = values if posterior is None else posterior.transform(values)
        rate = most_likely_rate(known, counts, self.rate, self.confidence_level)
        factor = float(odds_factor(self.rate, rate.value))
        if posterior is None:
            inside, outside = ((move_odds(p, factor), size) for p, size in (chosen, others))
            after = predicted_from_sizes(inside, outside, None, *measured)
        else:  # recalibrated first, and then moved
            predicted = predicted_from_sizes(chosen, others, posterior, *measured)
            after = predicted_from_sizes(chosen, others, posterior.moved(factor), *measured)
        best, loss = np.nan, np.nan
        with suppress(ValueError):  # a sketch cannot decide every measure
            decision = rows.all.decide(measure=self.measure)
            best, loss = decision.threshold, max(0.0, decision.expected - plain.f.value)
        found = None
        if rows.labelled:
            outcomes = rows.counts(TP, FP, FN, TN)
            truth, guess = (np.repeat(each, outcomes) for each in ([1, 0, 1, 0], [1, 1, 0, 0]))
            level = self.confidence_level
            found = f_interval(truth, guess, measure=self.measure, confidence_level=level)
        return Period(
            name=name,
            n=rows.all.n,
            selected=rows[SELECTED].n,
            predicted=predicted,
            rate=rate,
            predicted_after_shift=after,
            best_threshold=float(best),
            loss=float(loss),
            alarms=tuple(alarms),
            found=found,
        )

    def save(self, path: str | Path) -> None:
        """Write the monitor to a JSON file: numbers and sketches, no code.

        Parameters
        ----------
        path : str or Path
            The file; it is written completely or not at all.
        """
        periods = [
            {"name": name, "alarms": self._alarms[name], "rows": _packed(rows)}
            for name, rows in self._rows.items()
        ]
        data = {**self._settings(), "looks": self._looks, "periods": periods}
        write_whole(Path(path), saved.to_json("monitor", data))

    def _settings(self) -> dict[str, Any]:
        """Return what was set at the start, as JSON has it."""
        return {
            "threshold": self.threshold,
            "measure": measure_as_data(self.measure),
            "confidence_level": self.confidence_level,
            "false_alarm_rate": self.false_alarm_rate,
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
        return saved.from_file(Path(path), "monitor", cls._of_data)

    @classmethod
    def _of_data(cls, data: dict[str, Any]) -> Monitor:
        """Return the monitor of what the file holds."""
        options = {key: data[key] for key in ("confidence_level", "false_alarm_rate")}
        found = cls(data["threshold"], [1.0], measure=measure_of_data(data["measure"]), **options)
        found._looks = check_whole("looks", data["looks"])
        found._refer_to(_unpacked(data["reference"]))
        for period in data["periods"]:
            if (name := str(period["name"])) in found._rows:
                raise ValueError(f"two periods are called {name!r}")
            found._rows[name] = _unpacked(period["rows"])
            _check_labels(name, found._rows[name])
            found._alarms[name] = [str(each) for each in period["alarms"]]
        return found


def _check_labels(name: str, rows: _Rows) -> None:
    """Refuse more labels than there are rows."""
    for side, (hit, miss) in SIDES.items():
        known, there = sum(rows.counts(hit, miss)), rows[side].n
        if known > there:
            raise ValueError(
                f"labels must be of rows of period {name!r}, each labelled once: it has "
                f"{there:,} {WORDS[side]} rows, got {known:,} labels of such rows"
            )


def _fisher(few: float, of: float, reference: float, of_reference: float) -> float:
    """Return the p-value of Fisher's exact test that both shares are equal, two-sided."""
    both = hypergeom(of + of_reference, few + reference, of)
    return min(1.0, 2.0 * float(min(both.cdf(few), both.sf(few - 1))))


def _tail(
    positives: ProbabilitySketch,
    negatives: ProbabilitySketch,
    posterior: CalibrationPosterior | None,
) -> float:
    """Return the two-sided p-value of a number of positives, labels having probabilities p."""
    found, rows = positives.n, positives + negatives
    if rows.n == 0:
        return 1.0
    if posterior is not None:
        return min(1.0, 2.0 * min(posterior.tails(*sizes_of_sketch(rows), found)))
    values, mass = count_distribution(*sizes_of_sketch(rows))
    sides = values <= found, values >= found
    return min(1.0, 2.0 * min(float(mass[side].sum()) for side in sides))


def _shares_above(one: ProbabilitySketch, other: ProbabilitySketch) -> float:
    """Return the p-value of the tests that equal shares of two sets of rows are above quantiles."""
    groups = [groups_of_sketch(each) for each in (one, other)]
    place = -np.unique(-np.concatenate([each.centre for each in groups]))  # falling
    above = [
        np.cumsum(np.bincount(np.searchsorted(-place, -g.centre), g.count, place.size))
        for g in groups
    ]
    (n, m), pooled = (each[-1] for each in above), above[0] + above[1]
    cuts = np.unique(np.searchsorted(pooled, np.multiply(SHARES, n + m)))
    tails = [_fisher(above[0][i], n, above[1][i], m) for i in cuts[cuts < place.size - 1]]
    return min([1.0, *(len(tails) * tail for tail in tails)])


def _packed(rows: _Rows) -> dict[str, str]:
    """Return rows as what JSON can hold."""
    return {name: base64.b64encode(each.to_bytes()).decode() for name, each in rows.items()}


def _unpacked(state: dict[str, str]) -> _Rows:
    """Return rows from what JSON holds."""
    if not set(state) <= {SELECTED, OTHERS, TP, FP, FN, TN}:
        raise ValueError(f"no part of a period is called {sorted(state)[0]!r}")
    rows = _Rows(
        {name: ProbabilitySketch.from_bytes(base64.b64decode(each)) for name, each in state.items()}
    )
    if rows.all.n == 0:
        raise ValueError("periods must have rows")
    return rows


def _rounded_down(frame: Any, time: str, every: str) -> Any:
    """Return a frame with the times of a column rounded down; text is read as times."""
    rows = nw.from_native(frame)
    kind = rows.collect_schema().get(time)
    if kind is None:
        raise ValueError(
            f"the frame has no column {time!r}; it has {rows.collect_schema().names()}"
        )
    column = nw.col(time).str.to_datetime() if kind == nw.String else nw.col(time)
    if not (kind == nw.String or kind.is_temporal()):
        raise ValueError(f"every needs a column of dates or times, got {time!r} of type {kind}")
    return rows.with_columns(column.dt.truncate(every).alias(time)).to_native()


def _names(keys: Sequence[Any]) -> list[str]:
    """Return the names of periods; times are dates where each is at midnight."""
    names = [str(key) for key in keys]
    midnight = " 00:00:00"
    if all(name.endswith(midnight) for name in names):
        return [name.removesuffix(midnight) for name in names]
    return names
