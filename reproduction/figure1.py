"""Figure 1: what a wrong positive rate does to the decision-theoretic approach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import spearmanr

from argmaxf.theory import GaussianMixture, mean_kl
from reproduction.models import by_expectation, f1
from reproduction.report import Record, Report, markdown_table, mean_sd
from reproduction.run import Cell, Experiment, Outcome, Plan

TRUE_RATES = (0.1, 0.5, 0.9)
ASSUMED = (
    *(0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5),
    *(0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99),
)
S = 2.0
N_TEST = 3000


def run_panel(rate: float, seed: int) -> list[tuple[float, float]]:
    """Return 1 - F1 and the mean conditional KL for every assumed positive rate."""
    true = GaussianMixture(S=S, positive_rate=rate)
    X, y = true.sample(N_TEST, np.random.default_rng([3, seed]))
    posterior = true.posterior(X)
    found = []
    for assumed in ASSUMED:
        log_odds = GaussianMixture(S=S, positive_rate=assumed).log_odds(X)
        lost = 1.0 - f1(y, by_expectation(log_odds)) / 100.0
        found.append((lost, mean_kl(posterior, expit(log_odds))))
    return found


def cells(plan: Plan) -> list[Cell]:
    """One cell for each panel and seed."""
    return [
        Cell(f"{rate}-{seed:02d}", run_panel, {"rate": rate, "seed": seed}, cost=0.1)
        for seed in range(plan.repeats(full=20, quick=3))
        for rate in TRUE_RATES
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Average over seeds; judge the correlation and where the loss is most sensitive."""
    records = [
        _record(rate, i, [o.result[i] for o in outcomes if o.cell.params["rate"] == rate])
        for rate in TRUE_RATES
        for i in range(len(ASSUMED))
    ]
    findings: dict[str, Any] = {"seeds": len(outcomes) // len(TRUE_RATES)}
    for rate in TRUE_RATES:
        panel = [r for r in records if r["true rate"] == rate]
        lost, kl = ([r[key] for r in panel] for key in ("1-F1", "KL"))
        findings[f"rank correlation at {rate}"] = float(spearmanr(lost, kl).statistic)
        findings[f"loss for a nat of KL at {rate}"] = _slope(panel)
    ranks = [findings[f"rank correlation at {rate}"] for rate in TRUE_RATES]
    headline = f"1 - F1 follows KL: rank correlation {min(ranks):.2f} to {max(ranks):.2f}"
    return Report(headline, _text(records, findings), records, findings, lambda: _draw(records))


def _record(rate: float, i: int, found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    lost, lost_sd = mean_sd(pair[0] for pair in found)
    kl, kl_sd = mean_sd(pair[1] for pair in found)
    return {
        "true rate": rate,
        "assumed rate": ASSUMED[i],
        "1-F1": lost,
        "1-F1 sd": lost_sd,
        "KL": kl,
        "KL sd": kl_sd,
    }


def _slope(panel: Sequence[Record]) -> float:
    """Least-squares loss of F1 per nat of KL, through the true model, for KL below 0.3."""
    best = min(panel, key=lambda r: r["KL"])
    near = [(r["KL"], r["1-F1"] - best["1-F1"]) for r in panel if r["KL"] < 0.3]
    kl, loss = np.array(near).T
    return float(kl @ loss / (kl @ kl))


def _text(records: Sequence[Record], findings: Any) -> str:
    lines = []
    for assumed in ASSUMED:
        row = [r for r in records if r["assumed rate"] == assumed]
        lines.append([f"{assumed}", *(f"{r['1-F1']:.3f} / {r['KL']:.3f}" for r in row)])
    header = ["assumed π₁", *(f"true π₁ = {rate}" for rate in TRUE_RATES)]
    correlations = ", ".join(f"{findings[f'rank correlation at {r}']:.2f}" for r in TRUE_RATES)
    slopes = ", ".join(f"{findings[f'loss for a nat of KL at {r}']:.2f}" for r in TRUE_RATES)
    return (
        markdown_table(header, lines)
        + f"\n\n1 - F1 / mean conditional KL, means over {findings['seeds']} seeds, S = {S:g}, "
        f"{N_TEST} test examples. Rank correlation of the two curves: {correlations}. "
        f"F1 lost per nat of KL near the truth: {slopes}."
    )


def _draw(records: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(9.5, 3.2), layout="constrained")
    for ax, rate, letter in zip(figure.subplots(1, 3), TRUE_RATES, "abc", strict=True):
        panel = [r for r in records if r["true rate"] == rate]
        x = [r["assumed rate"] for r in panel]
        for key, colour, style in (("1-F1", "#0072B2", "o-"), ("KL", "#D55E00", "s--")):
            mean, sd = (np.array([r[k] for r in panel]) for k in (key, f"{key} sd"))
            ax.plot(x, mean, style, ms=3, color=colour, label=key.replace("-", " - "))
            ax.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, lw=0)
        ax.axvline(rate, color="black", lw=0.8, ls=":")
        ax.annotate(
            "truth",
            (rate, 0.97),
            xycoords=("data", "axes fraction"),
            ha="left" if rate < 0.6 else "right",
            va="top",
            fontsize="small",
            xytext=(3 if rate < 0.6 else -3, 0),
            textcoords="offset points",
        )
        ax.set_title(f"({letter}) true π₁ = {rate}")
        ax.set_xlabel("assumed π₁")
        ax.set_ylim(bottom=0)
    figure.axes[0].legend(loc="upper center")
    return figure


EXPERIMENT = Experiment("figure1", cells, report)
