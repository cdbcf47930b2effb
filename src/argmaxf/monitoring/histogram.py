"""Histograms of log-odds: what monitoring needs to know of any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from argmaxf._base.arrays import Floats, Ints

Sizes = tuple[Floats, Ints]  # probabilities, and how many rows have each

PER_UNIT = 64  # bins of log-odds; expected F from them is exact to eight digits
NEAREST = 1e-12  # p = 0 and p = 1 are moved here: a label may contradict them
LOWEST = -int(PER_UNIT * np.log(1e12)) - 1
ALL_BINS = 2 * -LOWEST + 1
ROWS, LABELLED, POSITIVE = 0, 2, 4  # columns of counts; the next one of the first two is Σ p
UNIT = 2.0**-30  # of Σ p: sums of whole numbers are exact, whatever their order


def moved_inside(p: Any) -> Any:
    """Return probabilities, those that are certain moved inside."""
    return np.clip(p, NEAREST, 1.0 - NEAREST)


def log_odds(p: Any) -> Floats:
    """Return the log-odds of probabilities, those that are certain moved inside."""
    found: Floats = logit(moved_inside(p))
    return found


def bins_of(p: Any, per_unit: int = PER_UNIT) -> Ints:
    """Return the bin of each probability, rising."""
    return np.asarray(np.floor(per_unit * log_odds(p)), np.int64) - LOWEST


def binned(p: Floats, count: Any = 1, per_unit: int = PER_UNIT) -> Sizes:
    """Return the mean probability of each bin that holds rows, and how many it holds.

    `count` says how many rows have each probability.
    """
    which = bins_of(p, per_unit)
    size, mass = (np.bincount(which, np.broadcast_to(each, p.shape)) for each in (count, p * count))
    return mass[size > 0] / size[size > 0], size[size > 0].astype(np.int64)


def histograms(
    p: Floats, threshold: float, labels: Any = None, period: Any = 0, periods: int = 1
) -> Floats:
    """Return the histograms of rows by the number of their period, (periods, ALL_BINS, 5).

    Rows that the threshold selects are one bin higher than others, so that no bin holds both.
    Labels are 0, 1 or NaN.
    """
    place, mass = bins_of(p) + (p >= threshold) + ALL_BINS * period, np.rint(p / UNIT)
    columns = [None, mass]
    if labels is not None:
        known = ~np.isnan(labels)
        columns += [known, mass * known, labels == 1]
    found = np.zeros((periods, ALL_BINS, 5))
    for j, column in enumerate(columns):
        found[:, :, j] = np.bincount(place, column, periods * ALL_BINS).reshape(periods, ALL_BINS)
    return found


def sizes_of(table: Floats, which: int = ROWS) -> Sizes:
    """Return the mean probability of each bin that holds such rows, and how many it holds."""
    count, mass = table[table[:, which] > 0, which : which + 2].T
    return np.minimum(mass / count * UNIT, 1.0), count.astype(np.int64)


def as_data(table: Floats) -> dict[str, Any]:
    """Return a histogram as JSON can hold it."""
    bins = np.flatnonzero(table.any(axis=1))
    return {"bins": bins.tolist(), "counts": table[bins].astype(np.int64).tolist()}


def of_data(data: dict[str, Any]) -> Floats:
    """Return a histogram from what JSON holds."""
    table, bins = np.zeros((ALL_BINS, 5)), np.array(data["bins"], np.int64)
    counts = np.array(data["counts"], np.float64).reshape(bins.size, 5)
    rows, mass, labelled, known, positive = counts.T
    sums = (mass * UNIT <= rows) & (known * UNIT <= labelled) & (positive <= labelled)
    different = np.unique(bins).size == bins.size and bins.min(initial=0) >= 0
    whole = (counts >= 0.0) & (counts < 2.0**63) & (counts == np.floor(counts))
    if not (whole.all() and sums.all() and rows.any() and different):
        raise ValueError("a period must have rows in different bins, and no more than there can be")
    table[bins] = counts
    return table
