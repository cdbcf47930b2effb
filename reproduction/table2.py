"""Table 2: rare positives and small test sets, as the caption says and as the numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from argmaxf.theory import GaussianMixture
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    represented,
    soft_f,
)
from reproduction.report import (
    COLOURS,
    Record,
    Report,
    columns,
    draw_printed,
    markdown_table,
    mean_sd,
    pretty,
    published,
    t_interval,
)
from reproduction.run import Cell, Experiment, Outcome, Plan

# Name: distance of the centres, training examples.
SETTINGS: dict[str, tuple[float, int]] = {
    "S=4, Ntr=1000 (as the caption says)": (4.0, 1000),
    "S=2.5, Ntr=3000 (as the numbers say)": (2.5, 3000),
}
SET_SIZE = 100


def run_model(setting: str, trials: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return mean and sd of F1 over many small test sets, all decided with one trained model."""
    S, n_train = SETTINGS[setting]
    mixture = GaussianMixture(S=S, positive_rate=0.05)
    rng = np.random.default_rng([2, seed])
    (X, y), (X_test, y_test) = mixture.sample(n_train, rng), mixture.sample(trials * SET_SIZE, rng)
    sets = y_test.reshape(trials, SET_SIZE)

    def judge(selected: Any) -> tuple[float, float]:
        return mean_sd(f1(sets, selected.reshape(trials, SET_SIZE)))

    def both(name: str, scores: TrainTestScores) -> dict[str, tuple[float, float]]:
        expected, tuned = name.split(", ")
        rows = scores.test.reshape(trials, SET_SIZE)
        return {
            expected: judge(by_expectation(rows)),
            tuned: judge(by_threshold(scores, y)),
        }

    found = both("Truth^E, Truth^δ", TrainTestScores(mixture.log_odds(X), mixture.log_odds(X_test)))
    for r in ("R0", "R1", "R2"):
        A, B = represented(X, r), represented(X_test, r)
        found |= both(f"ML^E {r}, ML^δ {r}", logistic(A, y, B))
        found[f"F^δ {r}"] = judge(by_threshold(soft_f(A, y, B), y))
    return found


def cells(plan: Plan) -> list[Cell]:
    """One cell for each setting and trained model; the paper trained one."""
    trials = 200 if plan.quick else 2000
    return [
        Cell(
            f"{name.split(' ')[0]}{SETTINGS[name][1]}-{seed:02d}-{trials}",
            run_model,
            {"setting": name, "trials": trials, "seed": seed},
            cost=1.5,
        )
        for seed in range(plan.repeats(full=20, quick=2))
        for name in SETTINGS
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Compare both settings with the printed means and deviations."""
    records = [_record(name, column, outcomes) for name in SETTINGS for column in columns("table2")]
    caption, fits = SETTINGS
    findings: dict[str, Any] = {
        "models": len({outcome.cell.params["seed"] for outcome in outcomes}),
        "trials": outcomes[0].cell.params["trials"],
        "cells": len(columns("table2")),
    }
    for label, name in (("caption", caption), ("fits", fits)):
        chosen = [r for r in records if r["setting"] == name]
        findings[f"{label}: cells within 2 sd"] = sum(r["within 2 sd"] for r in chosen)
        findings |= {f"{label}: {r['method']}": (r["mean"], r["sd of mean"]) for r in chosen}
        for a, b in (("ML^E R1", "ML^δ R1"), ("ML^E R2", "ML^δ R2"), ("Truth^E", "Truth^δ")):
            gaps = [o.result[a][0] - o.result[b][0] for o in _of(outcomes, name)]
            findings[f"{label}: {a} - {b}"] = t_interval(gaps)
    headline = (
        f"{findings['fits: cells within 2 sd']} of {findings['cells']} printed means fit S=2.5, "
        f"Ntr=3000; {findings['caption: cells within 2 sd']} fit the caption"
    )
    return Report(headline, _text(records, findings), records, findings, lambda: _draw(records))


def _of(outcomes: Sequence[Outcome], setting: str) -> list[Outcome]:
    return [o for o in outcomes if o.cell.params["setting"] == setting]


def _record(setting: str, column: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Mean over models of the mean and of the sd over test sets; how much models differ."""
    found = [o.result[column] for o in _of(outcomes, setting)]
    mean, sd_of_mean = mean_sd(m for m, _ in found)
    spread, _ = mean_sd(s for _, s in found)
    paper = published("table2", "mean", column)
    return {
        "setting": setting,
        "method": column,
        "mean": mean,
        "sd of mean": sd_of_mean,
        "sd over test sets": spread,
        "paper mean": paper,
        "paper sd": published("table2", "std", column),
        "difference": mean - paper,
        "within 2 sd": abs(mean - paper) <= 2 * sd_of_mean,
    }


def _text(records: Sequence[Record], findings: Any) -> str:
    by_cell = {(r["setting"], r["method"]): r for r in records}
    lines = []
    for method in columns("table2"):
        ours = [by_cell[setting, method] for setting in SETTINGS]
        lines.append(
            [
                method,
                f"{ours[0]['paper mean']:.2f} ({ours[0]['paper sd']:.2f})",
                *(_show(r) for r in ours),
            ]
        )
    return (
        markdown_table(["F1 (%)", "printed", *SETTINGS], lines)
        + f"\n\n{findings['trials']} test sets of {SET_SIZE} for each of {findings['models']} "
        "trained models (the paper trained one): mean ± sd between models (sd over test sets); * "
        "marks a printed mean more than 2 sd between models away.\n\nThe caption's setting cannot "
        "give the printed numbers: Truth^E needs no training and is "
        f"{findings['caption: Truth^E'][0]:.2f} there, not "
        f"{published('table2', 'mean', 'Truth^E'):.2f}. With S=2.5 and Ntr=3000 "
        f"{findings['fits: cells within 2 sd']} of {findings['cells']} printed means are within 2 "
        "sd."
    )


def _show(record: Record) -> str:
    mark = "" if record["within 2 sd"] else " *"
    spread = record["sd over test sets"]
    return f"{record['mean']:.2f} ± {record['sd of mean']:.2f} ({spread:.2f}){mark}"


def _draw(records: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    methods = columns("table2")
    for ax, setting in zip(figure.subplots(1, 2, sharey=True), SETTINGS, strict=True):
        chosen = [r for r in records if r["setting"] == setting]
        for i, r in enumerate(chosen):
            colour = COLOURS[r["method"].split(" ")[0]]
            ax.errorbar(i, r["mean"], yerr=2 * r["sd of mean"], fmt="o", capsize=3, color=colour)
        x, printed = np.arange(len(chosen)) + 0.3, [r["paper mean"] for r in chosen]
        draw_printed(ax, x, printed, label="printed in the paper", zorder=1)
        ax.set_xticks(range(len(methods)), [_tick(m) for m in methods], fontsize="small")
        ax.set_title(setting)
        ax.grid(axis="x", visible=False)
    figure.axes[0].set_ylabel("mean F1 (%), ± 2 sd between models")
    figure.axes[0].legend(loc="lower right")
    return figure


def _tick(method: str) -> str:
    name, _, representation = method.partition(" ")
    return f"{pretty(name)}\n{representation}"


EXPERIMENT = Experiment("table2", cells, report)
