"""Every measure beside F1: time at a million items, and how it grows where every size is looked at.

    python -m benchmarks measures                                    the times
    python -m benchmarks.measures --page --picture measures.png      the example of docs/measures.md

The example is the ninth label of the yeast genes (Mulan; 18 % positive): probabilities of logistic
regression for rows that it was not trained on, and the best set of them for each measure.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from argmaxf import expected_f_curve, maximize_expected_f
from argmaxf.measures import FBeta, GMean, Measure, Tversky, UserDefined, as_measure
from benchmarks.harness import Row, best, best_pair

NAMED = ("fowlkes_mallows", "mcc", "kappa", "balanced_accuracy", "tversky", "jaccard")
SHOWN = ("fbeta", "jaccard", "fowlkes_mallows", "mcc", "kappa", "balanced_accuracy", "gmean")
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#000000")
SIZES = (500, 1_000, 2_000, 4_000)
LABEL = 8


def rows() -> Iterator[Row]:
    p = np.random.default_rng(0).beta(0.5, 5, 1_000_000)
    for name in NAMED:
        ours, other = best_pair(
            partial(maximize_expected_f, p, measure=name), partial(maximize_expected_f, p), 7
        )
        yield Row(f"{name}, n = 1e6", ours, "F1", other, at_most=2.0)
    ours, other = best_pair(
        partial(maximize_expected_f, p, measure="gmean"), partial(maximize_expected_f, p), 3
    )
    yield Row("gmean within its bound, n = 1e6", ours, "F1", other)
    share = UserDefined(lambda tp, k, s, n: tp / np.maximum(np.maximum(k, s), 1.0))
    for measure in (GMean(), Tversky(2.0, 1.0), share):
        yield from growth(measure)


def growth(measure: Measure) -> Iterator[Row]:
    """Time a measure whose every size is looked at, and say how the time grows."""
    before = math.nan
    for n in SIZES:
        p = np.random.default_rng(0).beta(0.5, 5, n)
        ours = best(partial(maximize_expected_f, p, measure=measure), 2)
        other = best(partial(maximize_expected_f, p))
        power = math.log2(ours / before)
        note = "" if math.isnan(power) else f"grows as n^{power:.1f}"
        yield Row(f"{measure}, n = {n:,}", ours, "F1", other, note=note)
        before = ours


def example() -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and held-out probabilities of the example."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from reproduction.datasets import load_mulan

    data = load_mulan("yeast")
    X = np.vstack([np.asarray(part) for part in (data.X_train, data.X_test)])
    y = np.vstack([np.asarray(part) for part in (data.Y_train, data.Y_test)])[:, LABEL]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    return y, cross_val_predict(model, X, y, cv=10, method="predict_proba")[:, 1]


def page(y: np.ndarray, p: np.ndarray) -> Iterator[str]:
    """Yield the rows of the page's table."""
    yield "| measure | best k | threshold | expected | found on the labels | F1 of the same set |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name in SHOWN:
        measure = as_measure(name)
        found = maximize_expected_f(p, measure=measure)
        counts = (y * found.selected).sum(), found.k, y.sum(), y.size
        yield (
            f"| {measure} | {found.k} | {found.threshold:.3f} | {found.expected:.3f} ± "
            f"{found.std:.3f} | {measure.value(*counts):.3f} | {FBeta().value(*counts):.3f} |"
        )


def picture(p: np.ndarray, path: Path) -> None:
    """Draw the expected value of the top k for each measure, as a part of its best."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9.5, 4.2), layout="constrained")
    for i, (name, colour) in enumerate(zip(SHOWN, COLOURS, strict=True)):
        measure = as_measure(name)
        curve, found = (f(p, measure=measure) for f in (expected_f_curve, maximize_expected_f))
        axes.plot(np.arange(1, curve.size), curve[1:] / found.expected, color=colour, lw=1.4)
        axes.plot(found.k, 1.0, "o", color=colour, ms=6, clip_on=False, zorder=3)
        axes.annotate(
            f"{measure}: k = {found.k}, p ≥ {found.threshold:.3f}",
            (found.k, 1.0),
            (1.02, 0.9 - 0.08 * i),
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
        )
    axes.set(
        xscale="log",
        xlim=(10, p.size),
        ylim=(0.3, 1.02),
        xlabel="items selected, the most probable first (k)",
        ylabel="expected value, as part of its best",
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measures", description=__doc__)
    parser.add_argument("--page", action="store_true", help="print the table of docs/measures.md")
    parser.add_argument("--picture", type=Path, help="draw its picture to this file")
    chance = parser.parse_args()
    labels, proba = example()
    if chance.page:
        print("\n".join(page(labels, proba)))
    if chance.picture:
        picture(proba, chance.picture)
