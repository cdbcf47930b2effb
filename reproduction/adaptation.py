"""Section 4.1.2: P(X) changes between training and test, P(Y|X) does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from argmaxf.theory import GaussianMixture
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    with_dummy,
)
from reproduction.report import (
    COLOURS,
    Record,
    Report,
    beside_paper,
    columns,
    draw_printed,
    markdown_table,
    mean_sd,
    pretty,
    published,
)
from reproduction.run import Cell, Experiment, Outcome, Plan

N = 5000


def run_draw(seed: int) -> dict[str, float]:
    """Return F1 of the four methods where all test examples have P(1|x) < 1/2."""
    mixture, rng = GaussianMixture(), np.random.default_rng([4, seed])
    X, y = mixture.sample(N, rng)
    X_test, y_test = sample_unlikely(mixture, N, rng)
    A, B = with_dummy(X), with_dummy(X_test)
    models = {
        "Truth": TrainTestScores(mixture.log_odds(X), mixture.log_odds(X_test)),
        "ML": logistic(A, y, B),
    }
    found = {}
    for name, scores in models.items():
        found[f"{name}^E"] = f1(y_test, by_expectation(scores.test))
        found[f"{name}^δ"] = f1(y_test, by_threshold(scores, y))
    return found


def sample_unlikely(
    mixture: GaussianMixture, n: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return n examples with P(1|x) < 1/2, by rejection."""
    X, y = mixture.sample(4 * n, rng)
    kept = np.flatnonzero(mixture.posterior(X) < 0.5)[:n]
    return X[kept], y[kept]


def cells(plan: Plan) -> list[Cell]:
    """One cell for each seed."""
    seeds = range(plan.repeats(full=60, quick=5))
    return [Cell(f"{seed:02d}", run_draw, {"seed": seed}, cost=0.1) for seed in seeds]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Compare with the four numbers of the text."""
    results = [outcome.result for outcome in outcomes]
    records: list[dict[str, Any]] = []
    for method in columns("adaptation"):
        mean, sd = mean_sd(r[method] for r in results)
        paper = published("adaptation", "F1", method)
        records.append({"method": method, **beside_paper(mean, sd, paper)})
    findings: dict[str, Any] = {
        "seeds": len(results),
        "seeds where E beats δ": sum(
            r["ML^E"] > r["ML^δ"] and r["Truth^E"] > r["Truth^δ"] for r in results
        ),
        **{r["method"]: (r["mean"], r["sd"]) for r in records},
    }
    won = findings["seeds where E beats δ"]
    headline = f"E beats δ on {won} of {len(results)} seeds, as the paper found on one"
    return Report(
        headline, _text(records, findings), records, findings, lambda: _draw(records, results)
    )


def _text(records: Sequence[Record], findings: Any) -> str:
    lines = [
        [
            r["method"],
            f"{r['mean']:.1f} ± {r['sd']:.1f}",
            f"{r['paper']:.0f}",
            "yes" if r["within 2 sd"] else "no",
        ]
        for r in records
    ]
    return (
        markdown_table(["method", "F1 (%), ours", "printed", "within 2 sd"], lines)
        + f"\n\nMean ± sd over {findings['seeds']} seeds, {N} training and {N} test examples. "
        f"Truth^E beats Truth^δ and ML^E beats ML^δ on {findings['seeds where E beats δ']} of "
        f"{findings['seeds']} seeds."
    )


def _draw(records: Sequence[Record], results: Sequence[dict[str, float]]) -> Figure:
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    ax = figure.subplots()
    jitter = np.random.default_rng(0).uniform(-0.15, 0.15, len(results))
    order = ["Truth^E", "ML^E", "Truth^δ", "ML^δ"]
    for i, method in enumerate(order):
        dots: dict[str, Any] = {"ms": 3, "alpha": 0.5, "color": COLOURS[method], "mew": 0}
        ax.plot(i + jitter, [r[method] for r in results], "o", **dots)
        record = next(r for r in records if r["method"] == method)
        ax.hlines(record["mean"], i - 0.3, i + 0.3, color=COLOURS[method], lw=2)
        label = "printed in the paper" if i == 0 else None
        draw_printed(ax, i + 0.3, record["paper"], label=label)
    ax.set_xticks(range(4), [pretty(m) for m in order])
    ax.set_ylabel("F1 (%) where P(1|x) < 1/2")
    ax.set_ylim(bottom=0)
    ax.grid(axis="x", visible=False)
    ax.legend(loc="upper right")
    return figure


EXPERIMENT = Experiment("adaptation", cells, report)
