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

New labels are a look with four tests, of the labelled rows of the period and of the four periods
until then together, each of the selected rows and of the others: that the number of positives among
them is a sum of labels with their probabilities (Poisson binomial).
With labels of the reference, the posterior of the calibration is part of that distribution.

A merged monitor tests the merged rows of each period anew, from the first period on, as one monitor
of all rows would have done. Its alarms depend on these rows only, so the bound is α again.
"""

from __future__ import annotations

import base64
import json
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

from argmaxf._base.arrays import Floats, Ints
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    DAMAGED,
    NotAProbability,
    as_labels,
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
from argmaxf.measures import MEASURES, Interval, MeasureLike, as_measure
from argmaxf.monitoring.prediction import Count, PredictedF, predicted_from_counts
from argmaxf.monitoring.recalibration import CalibrationPosterior
from argmaxf.prior import EDGE, most_likely_rate, move_odds, odds_factor

WINDOWS = (1, 4)  # periods that are tested together
MOST_PERIODS = 1000  # of one frame: each holds sketches in memory
LABEL = "argmaxf_label"
FORMAT = "argmaxf monitor"
VERSION = 1


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

    def update(self, p: Floats, threshold: float, labels: Any = None) -> None:  # type: ignore[override]
        """Add rows; labels are 0, 1 or NaN, or None for rows without labels."""
        chosen = p >= threshold
        parts = {SELECTED: chosen, OTHERS: ~chosen}
        self._add(p, parts)
        if labels is not None:
            for side, (hit, miss) in SIDES.items():
                self._add(p, {hit: parts[side] & (labels == 1), miss: parts[side] & (labels == 0)})

    def _add(self, p: Floats, parts: dict[str, Any]) -> None:
        for name, which in parts.items():
            if which.any():
                self[name] = self[name].update(p[which])

    def __add__(self, other: _Rows) -> _Rows:
        names = dict.fromkeys([*self, *other])
        return _Rows({name: self[name] + other[name] for name in names})

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
        p = as_probabilities("reference", reference, ndim=1).astype(np.float64)
        rows = _Rows()
        rows.update(p, self.threshold, None if labels is None else _labels_of(labels, p))
        self._refer_to(rows)

    def _refer_to(self, rows: _Rows) -> None:
        """Take rows as the reference, and learn the calibration from those with a label."""
        self._reference, self._posterior = rows, None
        known = [_values(rows[name]) for name in (TP, FN, FP, TN)]
        sizes = rows.counts(TP, FN, FP, TN)
        rate = rows.all.mean_positives / rows.all.n
        if rows.labelled:
            p, weight = (np.concatenate(each) for each in zip(*known, strict=True))
            positive = np.repeat([True, True, False, False], [len(each[0]) for each in known])
            self._posterior = CalibrationPosterior.fit(p, positive, weight=weight)
            rate = sum(sizes[:2]) / sum(sizes)
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
        free = (str(i) for i in count(len(self._rows) + 1) if str(i) not in self._rows)
        name = next(free) if period is None else str(period)
        rows = _Rows()
        for batch in p if isinstance(p, Iterator) else [p]:
            probability = as_probabilities("p", batch, ndim=1).astype(np.float64)
            rows.update(probability, self.threshold)
        return self._take(name, rows)

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
        monitor = cls(threshold, [0.0], **options)
        (rows,) = monitor._rows_of(Table.of(frame, column, None, nulls), label)
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
        names: list[Any] = [period if period is not None else len(self._rows) + 1]
        order: Any = [0]
        found = self._rows_of(table, label)
        if time is not None:
            keys = [key[0] for key in table.python_keys()]
            order = sorted(range(len(keys)), key=keys.__getitem__)
            names = _names(keys)
        return [self._take(str(names[i]), found[i]) for i in order]

    def _rows_of(self, table: Table, label: str | None) -> list[_Rows]:
        """Read a frame once; return the rows of each segment."""
        columns = [table.p(table.columns[0]).alias(P)]
        columns += [nw.col(table.number).alias(SEGMENT)] if table.number else []
        if label is not None:
            kind = table.frame.collect_schema().get(label)
            if kind is None or not (kind.is_numeric() or kind == nw.Boolean):
                raise ValueError(f"label must be a column of numbers or booleans, got {label!r}")
            columns.append(number(label).alias(LABEL))
        names = [P, *([SEGMENT] if table.number else []), *([LABEL] if label else [])]

        def read() -> list[_Rows]:
            rows = [_Rows() for _ in range(table.segments)]
            advance = table.begin() if table.begin else lambda more: None
            for arrays in column_batches(table.frame.select(*columns), names):
                batch = dict(zip(names, arrays, strict=True))
                self._sort_in(rows, batch[P], batch.get(SEGMENT), batch.get(LABEL), label)
                advance(batch[P].size)
            if not all(each.all.n for each in rows):
                raise NotAProbability
            return rows

        return refusing(table, 0, read)

    def _sort_in(
        self, rows: list[_Rows], p: Floats, which: Ints | None, labels: Any, name: str | None
    ) -> None:
        """Add a batch to the rows of its segments."""
        if not (p.min(initial=1.0) >= 0.0 and p.max(initial=0.0) <= 1.0):
            raise NotAProbability
        if labels is not None and not np.all(np.isnan(labels) | (labels == 0) | (labels == 1)):
            bad = labels[~(np.isnan(labels) | (labels == 0) | (labels == 1))][0]
            raise ValueError(
                f"column {name!r} must hold 0, 1, or nothing where a label is not known, got "
                f"{bad:g}"
            )
        if which is None:
            rows[0].update(p, self.threshold, labels)
            return
        if which.min(initial=0) < 0:
            raise ValueError("the column of times must have a value in every row, got null or NaN")
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(rows) + 1))
        for segment in np.flatnonzero(np.diff(ends)):
            part = order[ends[segment] : ends[segment + 1]]
            known = None if labels is None else labels[part]
            rows[segment].update(p[part], self.threshold, known)

    def _take(self, name: str, rows: _Rows) -> Period:
        """Add rows to a period, test them and their labels, and return its results."""
        if not rows:
            raise ValueError(f"period {name!r} must have rows, got none")
        _check_labels(name, self._rows.get(name, _Rows()) + rows)
        self._test(name, rows)
        return self[name]

    def _test(self, name: str, rows: _Rows) -> None:
        """Add rows to a period; raise the alarms of one look at them and one at their labels."""
        new = rows.all.n > 0
        if new and name in self._rows and name != next(reversed(self._rows)):
            raise ValueError(
                f"period {name!r} has ended: rows can be added to the last period, "
                f"{next(reversed(self._rows))!r}, or to a new one"
            )
        self._rows[name] = self._rows.get(name, _Rows()) + rows
        if new:
            self._raise(name, self._tested())
        if rows.labelled:
            self._raise(name, self._labels_tested(name))

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
        rows = _Rows()
        rows.update(probability, self.threshold, _labels_of(labels, probability))
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
            merged._test(name, self._rows.get(name, none) + other._rows.get(name, none))
        return merged

    def _described(self, name: str, rows: _Rows, alarms: Sequence[str]) -> Period:
        """Put together what is known of some rows."""
        chosen, others = _values(rows[SELECTED]), _values(rows[OTHERS])
        values, counts = (np.concatenate(each) for each in zip(chosen, others, strict=True))
        known = values if self._posterior is None else self._posterior.transform(values)
        rate = most_likely_rate(known, counts, self.rate, self.confidence_level)
        posterior, measured = self._posterior, (self.measure, 0.0, self.confidence_level)
        plain = predicted = predicted_from_counts(chosen, others, None, *measured)
        factor = float(odds_factor(self.rate, rate.value))
        moved = [(move_odds(p, factor), size) for p, size in (chosen, others)]
        if posterior is not None:  # recalibrated first, and then moved
            predicted = predicted_from_counts(chosen, others, posterior, *measured)
            moved, posterior = [chosen, others], posterior.moved(factor)
        after = predicted_from_counts(moved[0], moved[1], posterior, *measured)
        best, loss = np.nan, np.nan
        with suppress(ValueError):  # a sketch cannot decide every measure
            decision = rows.all.decide(measure=self.measure)
            best, loss = decision.threshold, max(0.0, decision.expected - plain.f.value)
        labelled = rows.counts(TP, FP, FN, TN)
        options: Any = {"measure": self.measure, "confidence_level": self.confidence_level}
        truth, guess = (np.repeat(each, labelled) for each in ([1, 0, 1, 0], [1, 1, 0, 0]))
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
            found=f_interval(truth, guess, **options) if sum(labelled) else None,
        )

    def _labels_tested(self, name: str) -> list[tuple[str, float]]:
        """Return the tests of a period's labels, and of those of the last periods until then."""
        periods = list(self._rows.values())
        last, found = list(self._rows).index(name) + 1, []
        for size in (size for size in WINDOWS if size <= last):
            window = sum((each.labelled for each in periods[last - size : last]), start=_Rows())
            found += [
                _tail(window[hit], window[miss], self._posterior) for hit, miss in SIDES.values()
            ]
        return [("labels against probabilities", tail) for tail in found]

    def _tested(self) -> list[tuple[str, float]]:
        """Return the tests of the last period and their p-values."""
        periods = list(self._rows.values())
        reference, selected = self._reference.all, self._reference[SELECTED].n
        found = []
        for size in (size for size in WINDOWS if size <= len(periods)):
            window = sum(periods[-size:], start=_Rows())
            rows = window.all
            share = _fisher(window[SELECTED].n, rows.n, selected, reference.n)
            found += [
                ("share of selected rows", share),
                ("distribution of probabilities", _kolmogorov_smirnov(rows, reference)),
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
            {"name": name, "alarms": self._alarms[name], "rows": _packed(rows)}
            for name, rows in self._rows.items()
        ]
        state = {**self._settings(), "looks": self._looks, "periods": periods}
        write_whole(Path(path), json.dumps(state, indent=1))

    def _settings(self) -> dict[str, Any]:
        """Return what was set at the start, as JSON has it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "threshold": self.threshold,
            "measure": {"name": self.measure.name, **vars(self.measure)},
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
            found._looks = check_whole("looks", state["looks"])
            found._refer_to(_unpacked(state["reference"]))
            for period in state["periods"]:
                if (name := str(period["name"])) in found._rows:
                    raise ValueError(f"two periods are called {name!r}")
                found._rows[name] = _unpacked(period["rows"])
                _check_labels(name, found._rows[name])
                found._alarms[name] = [str(each) for each in period["alarms"]]
        except DAMAGED as error:
            raise ValueError(
                f"{path} is not a monitor that this argmaxf can read: {error}"
            ) from None
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


def _values(sketch: ProbabilitySketch) -> tuple[Floats, Floats]:
    """Return the mean probability of each group of a sketch and its number of rows."""
    groups = groups_of_sketch(sketch)
    return groups.mass / groups.count, groups.count


def _fisher(few: int, of: int, reference: int, of_reference: int) -> float:
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
        return min(1.0, 2.0 * min(posterior.tails(*_values(rows), found)))
    possible = Count.of(*_values(rows))
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


def _labels_of(labels: ArrayLike, p: Floats) -> Any:
    """Check labels that belong to some probabilities."""
    found = as_labels("labels", labels)
    if found.shape != p.shape:
        raise ValueError(
            f"labels must hold one label for each of {p.size} rows, got shape {found.shape}"
        )
    return found


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
