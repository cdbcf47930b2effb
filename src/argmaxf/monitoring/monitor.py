r"""Watching a deployed threshold without labels.

Each look at the data, the t-th of the run, is tested at the level α / (t (t + 1)), divided among
its tests. Since Σ_t 1 / (t (t + 1)) = 1, the probability of any false alarm over the whole run is
at most α (union bound): reusing the reference and overlapping windows make the tests dependent,
which the bound allows. docs/monitoring-tutorial.md says what is tested, and what cannot be seen.

Rows are compared with the reference by Fisher's exact test, valid given the pooled rows: if nothing
has changed, each division of them into reference and new ones is as likely as any other. The number
of positives among labels is compared with its distribution, a sum of labels with their
probabilities (Poisson binomial), or the posterior of the calibration where the reference has
labels. A merged monitor tests the merged rows of each period anew, from the first one on, as one
monitor of all rows would have done. Its alarms depend on these rows only, so the bound is α again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import hypergeom

from argmaxf._base import saved
from argmaxf._base.arrays import Floats
from argmaxf._base.atomic_write import write_whole
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.shown import Shown
from argmaxf._base.validation import (
    Unusable,
    as_probabilities,
    check_strictly_between,
    check_unit_interval,
    check_whole,
)
from argmaxf.empirical.interval import interval_of_counts
from argmaxf.expected.groups import Groups
from argmaxf.expected.search import Search
from argmaxf.expected.values import value_of_sets
from argmaxf.frames.engines import engine_of
from argmaxf.frames.table import Table, check_columns, number
from argmaxf.measures import Interval, MeasureLike, as_measure, measure_as_data, measure_of_data
from argmaxf.monitoring import histogram
from argmaxf.monitoring.histogram import ALL_BINS, LABELLED, POSITIVE, ROWS, histograms, sizes_of
from argmaxf.monitoring.prediction import (
    PredictedF,
    as_labelled,
    count_distribution,
    predict_f,
    predicted_from_sizes,
    scores_of,
)
from argmaxf.monitoring.recalibration import CalibrationPosterior
from argmaxf.prior import EDGE, most_likely_rate, odds_factor
from argmaxf.problem import Problem

WINDOWS = (1, 4)  # periods that are tested together
MOST_PERIODS = 1000  # of one frame: each holds a histogram in memory
MIDNIGHT = " 00:00:00"
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
        The threshold with the highest expected F in this period, to about 1 % of its odds.
    loss : float
        How much expected F the deployed threshold loses against it. Both use the recalibrated
        probabilities where the reference has labels. NaN for measures such as G-mean.
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


@with_entries_of(predict_f)
class Monitor(Shown):
    """Monitor a deployed threshold, period by period; experimental.

    `update` takes the probabilities of a period, predicts F without labels, and raises an alarm if
    the period differs from the reference. `add_labels` takes labels that arrive later.
    docs/monitoring.md is the guide.

    Parameters
    ----------
    threshold : float
        Rows with a probability of at least this are selected.
    reference : array-like of shape (n,)
        Probabilities of rows at deployment that were not used in training; later rows are compared
        with them.
    labels : array-like of shape (n,), optional
        The labels of the reference rows, 0/1 or booleans. With labels, the predictions are
        recalibrated and the intervals also cover the calibration error. Without labels, the
        probabilities are assumed to be calibrated.
    beta, measure : as in `predict_f`
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
        self._classifier: Any = None
        self._rows: dict[str, Floats] = {}  # the histogram of each period
        self._alarms: dict[str, list[str]] = {}
        self._looks = 0
        self._refer_to(self._counted("reference", reference, labels))

    def _parts(self) -> Mapping[str, Any]:
        alarms = sum(map(bool, self._alarms.values()))
        known = {"threshold": self.threshold, "measure": self.measure}
        return {"periods": len(self._rows), "with_alarms": alarms} | known

    def _counted(self, name: str, p: Any, labels: Any = None) -> Floats:
        """Check probabilities, and labels where there are any; return their histogram."""
        if labels is None:
            p = as_probabilities(name, p, ndim=1).astype(np.float64)
        else:
            p, labels = as_labelled(name, "labels", p, labels)
        (found,) = histograms(p, self.threshold, labels)
        return np.asarray(found)

    def _refer_to(self, rows: Floats) -> None:
        """Take rows as the reference, and learn the calibration from those with a label."""
        self._reference: Floats = rows
        self._posterior: CalibrationPosterior | None = None
        p, size = sizes_of(rows)
        if not self._sides(rows)[0][:, ROWS].any():
            raise ValueError(
                f"threshold must select some of the {size.sum():,} reference rows, got "
                f"{self.threshold:g}, which is above all their probabilities; pass the deployed "
                "threshold, on the scale of the probabilities"
            )
        if rows[:, LABELLED].any():
            known, count = sizes_of(rows, LABELLED)
            hits = rows[rows[:, LABELLED] > 0, POSITIVE]
            label, weight = np.repeat([True, False], known.size), np.append(hits, count - hits)
            self._posterior = CalibrationPosterior.fit(np.tile(known, 2), label, weight=weight)
        rate = float(np.average(self._calibrated(p), weights=size))
        self.rate = min(max(rate, EDGE), 1.0 - EDGE)  # a rate of 0 or 1 cannot be moved

    def _calibrated(self, p: Floats) -> Floats:
        """Return probabilities as the labels of the reference say, if there are any."""
        return p if self._posterior is None else self._posterior.transform(p)

    def _sides(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the bins of the selected rows, and those of the others."""
        first = int(histogram.bins_of(self.threshold)) + 1
        return rows[first:], rows[:first]

    @classmethod
    def of_classifier(
        cls, classifier: Any, X_reference: Any, y_reference: Any = None, **options: Any
    ) -> Monitor:
        """Return a monitor of a fitted binary classifier that decides each row alone.

        Parameters
        ----------
        classifier : classifier
            What `freeze` returns, or another one with `predict_proba` and a number as `threshold_`.
            Without `predict_proba`, the sigmoid of its `decision_function` is monitored at 0.5.
        X_reference : array-like
            Rows at deployment, not used in training.
        y_reference : array-like, optional
            Their labels; predictions are then recalibrated by them. Needed without `predict_proba`.
        **options : object
            Further options of `Monitor`.

        Returns
        -------
        Monitor
            Its `update` takes the rows X of each period.
        """
        reference, labels = scores_of(classifier, X_reference, y_reference)
        has_probabilities = hasattr(classifier, "predict_proba")
        threshold: Any = getattr(classifier, "threshold_", None) if has_probabilities else 0.5
        if np.ndim(threshold) or threshold is None:
            raise ValueError(
                "classifier must have one threshold_ on its probabilities, got "
                f"{type(classifier).__name__}; freeze() of ExpectedFClassifier returns such a one"
            )
        monitor = cls(float(threshold), reference, labels=labels, **options)
        monitor._classifier = classifier
        return monitor

    def update(self, p: Any, *, period: Any = None) -> Period:
        """Add the rows of a new period, or more of the last one, and test them.

        Each call is one test of the data, and later tests use lower significance levels, so that
        the false-alarm rate holds. To test many batches once, pass them together, as an iterator.

        Parameters
        ----------
        p : array-like of shape (n,), or iterator of such
            Probabilities of its rows, or batches of them. A monitor of a classifier also takes the
            rows X, of shape (n, features).
        period : object, optional
            Its name; by default a new number. The same name as the last one adds rows to it.

        Returns
        -------
        Period
            The results for this period so far.
        """
        rows = np.zeros((ALL_BINS, 5))
        for batch in p if isinstance(p, Iterator) else [p]:
            if self._classifier is not None and np.ndim(batch) == 2:
                batch = scores_of(self._classifier, batch, labelled=False)[0]
            rows += self._counted("p", batch)
        return self._take(period, rows)

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
        if every is not None:
            frame = _rounded_down(frame, time, every)
        table = Table.of(frame, column, time, nulls)
        if table.segments > MOST_PERIODS:
            raise ValueError(
                f"time must have at most {MOST_PERIODS:,} different values, got "
                f"{table.segments:,} in {time!r}; pass every='1d' or another length of a period"
            )
        found = self._read(table, label)
        keys = [key[0] if key else period for key in table.python_keys()]
        names = keys if time is None else [str(key) for key in keys]
        if time is not None and all(name.endswith(MIDNIGHT) for name in names):
            names = [name.removesuffix(MIDNIGHT) for name in names]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return [self._take(names[i], found[i]) for i in order]

    @classmethod
    @with_entries_of(update_frame)
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
        frame, column, label, nulls : as in `update_frame`
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

    def _read(self, table: Table, label: str | None) -> Floats:
        """Read a frame once; return the histogram of each segment."""
        columns = [table.p(table.columns[0]), *table.segment]
        if label is not None:
            kind = table.frame.collect_schema().get(label)
            if kind is None or not (kind.is_numeric() or kind == nw.Boolean):
                raise ValueError(f"label must be a column of numbers or booleans, got {label!r}")
            columns.append(number(label))
        frame = table.frame.select(*(each.alias(f"argmaxf_{i}") for i, each in enumerate(columns)))

        def read() -> Floats:
            found = np.zeros((table.segments, ALL_BINS, 5))
            for p, *more in engine_of(frame).batches(frame):
                labels = None if label is None else more.pop()
                period = more[0] if more else np.zeros(1)
                if not (p.min(initial=1.0) >= 0.0 and p.max(initial=0.0) <= 1.0):
                    raise Unusable
                if period.min(initial=0) < 0:
                    raise ValueError("the column of times must have a value in every row")
                known = np.zeros(0) if labels is None else labels[~np.isnan(labels)]
                if (bad := known[(known != 0) & (known != 1)]).size:
                    raise ValueError(
                        f"column {label!r} must hold 0, 1, or nothing where a label is not known, "
                        f"got {bad[0]:g}"
                    )
                found += histograms(p, self.threshold, labels, period.astype(int), table.segments)
            if not found[:, :, ROWS].any(axis=1).all():
                raise Unusable
            return found

        return table.rows(0).refusing(read)

    def _take(self, period: Any, rows: Floats) -> Period:
        """Add rows to a period and test them; return its results."""
        number = len(self._rows) + 1  # a number that no period has
        while period is None and str(number) in self._rows:
            number += 1
        name = str(number if period is None else period)
        if not rows.any():
            raise ValueError(f"period {name!r} must have rows, got none")
        self._check_labels(name, self._rows.get(name, 0.0) + rows)
        self._look(name, rows)
        return self[name]

    def _check_labels(self, name: str, rows: Floats) -> None:
        """Refuse more labels than there are rows."""
        for which, part in zip(("selected", "other"), self._sides(rows), strict=True):
            there, known = part[:, [ROWS, LABELLED]].sum(axis=0)
            if known > there:
                raise ValueError(
                    f"labels must be of rows of period {name!r}, each labelled once: it has "
                    f"{there:,.0f} {which} rows, got {known:,.0f} labels of such rows"
                )

    def _look(self, name: str, rows: Floats) -> None:
        """Add rows to a period; raise the alarms of one look at them and one at their labels."""
        last, has_rows = next(reversed(self._rows), name), rows[:, ROWS].any()
        if has_rows and name in self._rows and name != last:
            raise ValueError(
                f"period {name!r} has ended: rows can be added to the last period, {last!r}, or to "
                "a new one"
            )
        self._rows[name] = self._rows.get(name, 0.0) + rows
        until = list(self._rows.values())[: list(self._rows).index(name) + 1]
        windows = [np.sum(until[-size:], axis=0) for size in WINDOWS if size <= len(until)]
        looks = [[test for each in windows for test in self._changes(each)]] if has_rows else []
        if rows[:, LABELLED].any():
            sides = [side for each in windows for side in self._sides(each)]
            looks.append([("labels against probabilities", self._tail(side)) for side in sides])
        said = self._alarms.setdefault(name, [])
        for tests in looks:
            self._looks += 1
            level = self.false_alarm_rate / (len(tests) * self._looks * (self._looks + 1))
            said += dict.fromkeys(what for what, p in tests if p <= level and what not in said)

    def _changes(self, rows: Floats) -> list[tuple[str, float]]:
        """Return the tests of rows against the reference, and their p-values.

        The smallest of those of the rows above quantiles of all rows together counts for all.
        """
        both = np.stack([rows[:, ROWS], self._reference[:, ROWS]])
        above = both[:, ::-1].cumsum(axis=1)  # by falling probability
        n, pooled = above[:, -1:], above.sum(axis=0)
        cuts = np.unique(np.searchsorted(pooled, np.multiply(SHARES, n.sum())))
        cuts = cuts[pooled[cuts] < n.sum()]
        selected = ALL_BINS - 1 - (int(histogram.bins_of(self.threshold)) + 1)  # the last such bin
        share, *tails = _fisher(above[:, [selected, *cuts]], n).tolist()
        return [
            ("share of selected rows", share),
            ("distribution of probabilities", min([1.0, *(len(tails) * p for p in tails)])),
        ]

    def _tail(self, rows: Floats) -> float:
        """Return the two-sided p-value of the number of positives among labelled rows."""
        sizes, found = sizes_of(rows, LABELLED), rows[:, POSITIVE].sum()
        if not sizes[0].size:
            return 1.0
        if self._posterior is not None:
            tails = self._posterior.tails(sizes, found)
        else:
            values, mass = count_distribution(sizes)
            tails = mass[values <= found].sum(), mass[values >= found].sum()
        return min(1.0, 2.0 * float(min(tails)))

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
        if str(period) not in self._rows:
            raise ValueError(f"period must be one of those seen, got {period!r}")
        rows = self._counted("p", p, labels)
        rows[:, :LABELLED] = 0.0  # the rows themselves are there already
        return self._take(period, rows)

    @property
    def periods(self) -> list[Period]:
        """All periods so far, in order."""
        return [self[name] for name in self._rows]

    @property
    def reference(self) -> Period:
        """The results for the reference rows."""
        return self._described("reference", self._reference, [])

    def __getitem__(self, name: str) -> Period:
        return self._described(str(name), self._rows[str(name)], self._alarms[str(name)])

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
        for name in dict.fromkeys([*self._rows, *other._rows]):
            parts = [each._rows[name] for each in (self, other) if name in each._rows]
            merged._look(name, np.sum(parts, axis=0))
        return merged

    def _described(self, name: str, rows: Floats, alarms: list[str]) -> Period:
        """Put together what is known of some rows."""
        posterior, measure, level = self._posterior, self.measure, self.confidence_level
        p, size = sizes_of(rows)
        values = self._calibrated(p)
        rate = most_likely_rate(values, size, self.rate, level)
        sides = self._sides(rows)
        predicted, after = (
            predicted_from_sizes(
                [sizes_of(side) for side in sides], posterior, measure, level, factor=factor
            )
            for factor in (1.0, float(odds_factor(self.rate, rate.value)))
        )
        found = None
        if rows[:, LABELLED].any():
            (t, k), (r, m) = (side[:, [POSITIVE, LABELLED]].sum(axis=0) for side in sides)
            counts = np.array([t, k, t + r, k + m])
            found = interval_of_counts(counts, measure, 0.0, (1.0 - level) / 2.0)
        return Period(
            name,
            predicted.n,
            predicted.selected,
            predicted,
            rate,
            after,
            *self._best(p, values, size),
            tuple(alarms),
            found,
        )

    def _best(self, p: Floats, values: Floats, size: Any) -> tuple[float, float]:
        """Return the best threshold on p, and how much more expected F it has than the deployed.

        `values` are the probabilities of the bins, recalibrated.
        """
        values = np.maximum.accumulate(values)[::-1]  # no better row is left out
        groups, deployed = Groups.of_values(values, size[::-1]), p[::-1] >= self.threshold
        with suppress(ValueError):  # of measures that cannot be decided in groups
            search = Search(groups, Problem.of(1.0, self.measure, 0.0, "together"))
            best = search.optimum
            worth = value_of_sets(groups[deployed], groups[~deployed], search.problem).mean
            above = np.cumsum(groups.count) <= best.k
            threshold = float(p[::-1][above].min()) if best.k else np.inf
            return threshold, max(0.0, best.f - worth)
        return np.nan, np.nan

    def save(self, path: str | Path) -> None:
        """Write the monitor to a JSON file: numbers and histograms, no code.

        Parameters
        ----------
        path : str or Path
            The file; it is written completely or not at all.
        """
        periods = [
            {"name": name, "alarms": self._alarms[name], "rows": histogram.as_data(rows)}
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
            "reference": histogram.as_data(self._reference),
        }

    @classmethod
    def load(cls, path: str | Path, classifier: Any = None) -> Monitor:
        """Read a monitor that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        classifier : classifier, optional
            The classifier, if `update` shall take rows X again; it is not in the file.

        Returns
        -------
        Monitor
        """
        monitor = saved.from_file(Path(path), "monitor", cls._of_data)
        monitor._classifier = classifier
        return monitor

    @classmethod
    def _of_data(cls, data: dict[str, Any]) -> Monitor:
        """Return the monitor of what the file holds."""
        options = {key: data[key] for key in ("confidence_level", "false_alarm_rate")}
        found = cls(data["threshold"], [1.0], measure=measure_of_data(data["measure"]), **options)
        found._looks = int(np.int64(check_whole("looks", data["looks"])))
        found._refer_to(histogram.of_data(data["reference"]))
        for period in data["periods"]:
            if (name := str(period["name"])) in found._rows:
                raise ValueError(f"two periods are called {name!r}")
            found._rows[name] = histogram.of_data(period["rows"])
            found._check_labels(name, found._rows[name])
            found._alarms[name] = [str(each) for each in period["alarms"]]
        return found


def _fisher(above: Floats, of: Floats) -> Floats:
    """Return the p-values of Fisher's exact test that two shares are equal, two-sided."""
    both = hypergeom(of.sum(axis=0), above.sum(axis=0), of[0])
    smaller = np.minimum(both.cdf(above[0]), both.sf(above[0] - 1.0))
    return np.asarray(np.minimum(1.0, 2.0 * smaller))


def _rounded_down(frame: Any, time: str | None, every: str) -> Any:
    """Return a frame with the times of a column rounded down; text is read as times."""
    if time is None:
        raise ValueError("every needs time, the column of times to round down")
    rows = nw.from_native(frame)
    check_columns(rows, (), (), [time])
    kind, column = rows.collect_schema()[time], nw.col(time)
    if kind == nw.String:
        column = column.str.to_datetime()
    elif not kind.is_temporal():
        raise ValueError(f"every needs a column of dates or times, got {time!r} of type {kind}")
    return rows.with_columns(column.dt.truncate(every).alias(time)).to_native()
