"""Which approach when: ML^E - ML^δ over positive rate, training size, test size and model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.naive_bayes import GaussianNB

from argmaxf.theory import GaussianMixture
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    represented,
    timed,
)
from reproduction.report import Record, Report, markdown_table, pretty, t_interval
from reproduction.run import Cell, Experiment, Outcome, Plan

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
TRAIN_SIZES = (100, 300, 1000, 3000, 10_000)
TEST_SIZES = (30, 300, 3000)
POOL = 3000  # test examples of one draw, cut into sets of each size
MODELS = {
    "R1": "well specified (R1)",
    "R2": "too flexible (R2)",
    "R0": "no intercept (R0)",
    "NB": "overconfident (naive Bayes,\nevery coordinate twice)",
}
S = 2.0
D = 10


def run_place(rate: float, n_train: int, seeds: int) -> list[dict[str, Any]]:
    """Return, for every seed, model and test size, the mean of F1 by E minus F1 by δ."""
    mixture = GaussianMixture(D=D, S=S, positive_rate=rate)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([7, seed])
        X, y = _sample_both_classes(mixture, n_train, rng)
        X_test, y_test = mixture.sample(POOL, rng)
        for model in MODELS:
            scores = _fit(model, X, y, X_test)
            tuned = by_threshold(scores, y)
            for size in TEST_SIZES:
                sets, labels, cut = (a.reshape(-1, size) for a in (scores.test, y_test, tuned))
                gain = f1(labels, by_expectation(sets)) - f1(labels, cut)
                found.append({"model": model, "size": size, "gain": float(np.mean(gain))})
    return found


def _sample_both_classes(mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Any:
    """Draw until both classes are there: without a positive there is nothing to learn from."""
    while True:
        X, y = mixture.sample(n, rng)
        if 0 < y.sum() < n:
            return X, y


def _fit(model: str, X: Any, y: Any, X_test: Any) -> TrainTestScores:
    if model == "NB":
        with timed("fit"):
            fitted = GaussianNB().fit(np.hstack([X, X]), y)
        parts = (fitted.predict_joint_log_proba(np.hstack([Z, Z])) for Z in (X, X_test))
        return TrainTestScores(*(part[:, 1] - part[:, 0] for part in parts))
    A, B = (represented(Z, model) for Z in (X, X_test))
    return logistic(A, y, B, tol=1e-6)


def cells(plan: Plan) -> list[Cell]:
    """One cell for each positive rate and training size."""
    seeds = plan.repeats(full=30, quick=3)
    return [
        Cell(
            f"{rate}-{n}-{seeds}",
            run_place,
            {"rate": rate, "n_train": n, "seeds": seeds},
            cost=seeds * (0.05 + n / 50_000),
        )
        for rate in RATES
        for n in TRAIN_SIZES
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Average over seeds, with Student's interval for each place of the map."""
    records = []
    for outcome in outcomes:
        for model in MODELS:
            for size in TEST_SIZES:
                gains = [
                    r["gain"] for r in outcome.result if (r["model"], r["size"]) == (model, size)
                ]
                gain = t_interval(gains)
                records.append(
                    {
                        "model": model,
                        "test size": size,
                        "positive rate": outcome.cell.params["rate"],
                        "training size": outcome.cell.params["n_train"],
                        "E-δ": gain.value,
                        "low": gain.low,
                        "high": gain.high,
                        "better": _better(gain.low, gain.high),
                    }
                )
    findings: dict[str, Any] = {"seeds": outcomes[0].cell.params["seeds"]}
    for model in MODELS:
        for size in TEST_SIZES:
            chosen = [r for r in records if (r["model"], r["test size"]) == (model, size)]
            findings[f"{model}, {size}"] = [
                sum(r["better"] == word for r in chosen) for word in ("E", "δ", "")
            ]
            gains = [r["E-δ"] for r in chosen]
            findings[f"{model}, {size}: mean"] = float(np.mean(gains))
            findings[f"{model}, {size}: range"] = (min(gains), max(gains))
    small, large = (findings[f"R1, {size}: mean"] for size in (TEST_SIZES[0], TEST_SIZES[-1]))
    headline = (
        f"with a good model E - δ is {small:+.1f} points on test sets of {TEST_SIZES[0]} and "
        f"{large:+.1f} on {TEST_SIZES[-1]}; without an intercept "
        f"{findings[f'R0, {TEST_SIZES[-1]}: mean']:+.1f}"
    )
    return Report(headline, _text(findings), records, findings, lambda: _draw(records))


def _better(low: float, high: float) -> str:
    return "E" if low > 0 else "δ" if high < 0 else ""


def _text(findings: Any) -> str:
    lines = [
        [
            MODELS[model].replace("\n", " "),
            str(size),
            *map(str, findings[f"{model}, {size}"]),
            f"{findings[f'{model}, {size}: mean']:+.2f}",
        ]
        for model in MODELS
        for size in TEST_SIZES
    ]
    header = ["model", "test set", "ML^E better", "ML^δ better", "no difference", "mean E - δ"]
    return (
        markdown_table(header, lines)
        + f"\n\nPlaces of the map ({len(RATES)} positive rates × {len(TRAIN_SIZES)} training "
        "sizes) where the 95 % interval of the difference in F1 (points) over "
        f"{findings['seeds']} seeds lies above 0, below 0, or holds 0. Mixture of Gaussians, "
        f"D = {D}, S = {S:g}; training sets are drawn until both classes occur.\n\n"
        + _words(findings)
    )


def _words(findings: Any) -> str:
    """Say what the map shows."""
    small, large = TEST_SIZES[0], TEST_SIZES[-1]
    good = findings[f"R1, {small}: range"], findings[f"R1, {large}: range"]
    wrong = findings[f"R0, {large}: range"]
    sure = findings[f"NB, {small}: range"], findings[f"NB, {large}: range"]
    return (
        f"In words: with a good model ML^E is better by up to {good[0][1]:.1f} points on test sets "
        f"of {small}, most where positives are rare, and differs by {good[1][0]:+.1f} to "
        f"{good[1][1]:+.1f} on sets of {large}. A model whose level is wrong (no intercept) costs "
        f"ML^E up to {-wrong[0]:.1f} points, and larger sets make it worse. An overconfident model "
        f"still gains up to {sure[0][1]:.1f} on small sets; on sets of {large}, with enough "
        f"training examples to tune a threshold, it loses up to {-sure[1][0]:.1f}."
    )


def _draw(records: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(9.6, 11), layout="constrained")
    axes = figure.subplots(len(MODELS), len(TEST_SIZES), sharex=True, sharey=True)
    image: Any = None
    for i, model in enumerate(MODELS):
        for j, size in enumerate(TEST_SIZES):
            chosen = [r for r in records if (r["model"], r["test size"]) == (model, size)]
            image = _draw_map(axes[i, j], chosen)
            if i == 0:
                axes[i, j].set_title(f"test sets of {size:,}")
        axes[i, 0].set_ylabel(f"{MODELS[model]}\n\npositive rate")
    for ax in axes[-1]:
        ax.set_xlabel("training examples")
    bar = figure.colorbar(image, ax=axes, shrink=0.5, aspect=40, location="bottom", extend="both")
    bar.set_label(
        f"← {pretty('ML^δ')} better    F1 of {pretty('ML^E')} minus F1 of {pretty('ML^δ')}, points"
        f"    {pretty('ML^E')} better →\nbold: the 95 % interval does not hold 0"
    )
    return figure


def _draw_map(ax: Any, records: Sequence[Record]) -> Any:
    grid = np.array([r["E-δ"] for r in records]).reshape(len(RATES), len(TRAIN_SIZES))
    image = ax.imshow(grid, cmap="RdBu", vmin=-15, vmax=15, origin="lower", aspect="auto")
    for place, r in enumerate(records):
        i, j = divmod(place, len(TRAIN_SIZES))
        ax.text(
            j,
            i,
            f"{r['E-δ']:+.1f}",
            ha="center",
            va="center",
            fontsize=7.5,
            color="white" if abs(r["E-δ"]) > 10 else "black",
            weight="bold" if r["better"] else "normal",
            alpha=1.0 if r["better"] else 0.55,
        )
    ax.set_xticks(range(len(TRAIN_SIZES)), [f"{n:,}" for n in TRAIN_SIZES])
    ax.set_yticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
    ax.grid(visible=False)
    return image


EXPERIMENT = Experiment("map", cells, report)
