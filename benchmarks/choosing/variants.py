"""Parts of the blend measured one by one: its models, its curves, its decision; one model for all.

`python -m benchmarks.choosing --variants` works on the scores that the study has kept. Families are
in two halves: what looks best on the first is judged on the second.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.estimators.calibration import average_curves, break_ties
from benchmarks.choosing.methods import FOLDS, MODELS, calibrate, f1, isotonic, of_model, ranking
from benchmarks.choosing.scores import Scores, kept
from benchmarks.choosing.sets import RealSet

Pair = tuple[np.ndarray, np.ndarray]  # probabilities of rows while held out, and of test rows
EXACT, BATCH = "exact tuning", "blend, one decision for the batch"


class Bagged:
    """The mean of isotonic curves of 20 bootstrap samples."""

    def fit(self, score: np.ndarray, y: np.ndarray) -> Bagged:
        rng = np.random.default_rng(0)
        draws = [rng.integers(0, len(y), len(y)) for _ in range(20)]
        self.curves = [isotonic().fit(score[rows], y[rows]) for rows in draws]
        return self

    def predict(self, score: np.ndarray) -> np.ndarray:
        return np.mean([curve.predict(score) for curve in self.curves], axis=0)


def one_model(y: np.ndarray, fold: np.ndarray, scores: Scores) -> Pair:
    """Calibrate the model fitted on all rows by the mean of the folds' curves."""
    held_out, _ = calibrate(isotonic, y, fold, scores)
    curves = [isotonic().fit(scores["held out"][fold == k], y[fold == k]) for k in range(FOLDS)]
    return held_out, average_curves(curves, [scores["test"]] * FOLDS, "")


def one_bagged(y: np.ndarray, fold: np.ndarray, scores: Scores) -> Pair:
    """Calibrate the model fitted on all rows by the bagged curve of all held-out scores."""
    held_out, score = np.empty(len(y)), scores["held out"]

    def probability(rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        curve = Bagged().fit(score[rows], y[rows].astype(float))
        return break_ties(np.clip(curve.predict(new), 0.0, 1.0), new)

    for k in range(FOLDS):
        held_out[fold == k] = probability(fold != k, score[fold == k])
    return held_out, probability(fold >= 0, scores["test"])


def test_f1s(found: Scores, model: str) -> dict[str, float]:
    """Return the test F1 of each variant with one model."""
    y, y_test, fold = found["y"], found["y_test"], found["fold"]
    own, linear = ranking(found, model), of_model(found, "soft F")
    logistic = ranking(found, "logistic regression")
    parts = ("held out", "test", "test by folds")
    both = [of_model(found, name) for name in (model, "logistic regression")]
    vote = {part: (both[0][part] + both[1][part]) / 2 for part in parts}

    def batch(pair: Pair) -> float:
        return f1(y_test, np.asarray(maximize_expected_f(pair[1]).selected))

    def fixed(pair: Pair) -> float:
        held_out = pair[0]
        chosen = np.asarray(maximize_expected_f(held_out).selected)
        low, high = held_out[chosen].min(initial=1.0), held_out[~chosen].max(initial=0.0)
        return f1(y_test, pair[1] >= ((low + high) / 2 if chosen.any() else np.inf))

    def tuned(scores: Scores) -> float:
        cut = maximize_empirical_f(y, scores["held out"]).threshold
        return f1(y_test, scores["test"] >= cut)

    def mean(how: Callable[..., Pair], *tables: Scores) -> Pair:
        pairs = [how(y, fold, table) for table in tables]
        return np.mean([p[0] for p in pairs], axis=0), np.mean([p[1] for p in pairs], axis=0)

    def plain(y: Any, fold: Any, scores: Scores) -> Pair:
        return calibrate(isotonic, y, fold, scores)

    def bagged(y: Any, fold: Any, scores: Scores) -> Pair:
        return calibrate(Bagged, y, fold, scores)

    return {
        EXACT: tuned(own),
        "expected F": batch(plain(y, fold, own)),
        "expected F, fixed threshold": fixed(plain(y, fold, own)),
        "expected F, bagged curves": batch(bagged(y, fold, own)),
        "expected F, bagged curves, fixed threshold": fixed(bagged(y, fold, own)),
        "soft vote with logistic regression, exact tuning": tuned(vote),
        "the vote, calibrated, expected F": batch(plain(y, fold, vote)),
        "blend with logistic regression": batch(mean(plain, own, logistic)),
        BATCH: batch(mean(plain, own, linear)),
        "blend, fixed threshold": fixed(mean(plain, own, linear)),
        "blend, bagged curves": batch(mean(bagged, own, linear)),
        "blend, one model of each kind, fixed threshold": fixed(mean(one_model, own, linear)),
        "the same, bagged curve": fixed(mean(one_bagged, own, linear)),
    }


def half(family: str) -> int:
    """Return the half a family is in: 0 to look for what is best, 1 to judge it."""
    return zlib.crc32(family.encode()) % 2


Cell = tuple[str, dict[str, dict[str, float]]]  # of one split: its family, F1 by model and variant


def cells(sets: list[RealSet], folder: Path) -> Iterator[Cell]:
    """Work out every variant on every split."""
    for of, _, found in kept(sets, folder):
        yield of.family, {model: test_f1s(found, model) for model in MODELS}


def report(found: Iterable[Cell]) -> str:
    """Return the tables: against exact tuning, and against the blend, on each half."""
    found = list(found)
    names = list(found[0][1][MODELS[0]])
    tables = []
    for reference, rows in ((EXACT, names[1:]), (BATCH, names[names.index(BATCH) + 1 :])):
        lines = [f"| minus {reference} | {' | '.join(MODELS)} | mean, half 1 | mean, half 2 |"]
        lines.append("| --- |" + " ---: |" * (len(MODELS) + 2))
        for name in rows:
            own = [_difference(found, name, reference, (model,)) for model in MODELS]
            halves = [
                _difference([c for c in found if half(c[0]) == h], name, reference, MODELS)
                for h in (0, 1)
            ]
            lines.append(f"| {name} | {' | '.join([*own, *halves])} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _difference(found: list[Cell], name: str, reference: str, models: tuple[str, ...]) -> str:
    """Return the mean difference in points with its 95 % interval over families."""
    families: dict[str, list[float]] = {}
    for family, f1s in found:
        one = [100 * (f1s[model][name] - f1s[model][reference]) for model in models]
        families.setdefault(family, []).append(float(np.mean(one)))
    values = np.array([np.mean(each) for each in families.values()])
    reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():+.2f} [{values.mean() - reach:+.2f}, {values.mean() + reach:+.2f}]"
