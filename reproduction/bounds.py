"""Lemma 2 and Theorem 3 beside what happens: how loose the bounds are, and when they begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.measures import FBeta
from argmaxf.theory import GaussianMixture, deviation_bound, regret_bound, sample_size
from reproduction.models import timed
from reproduction.report import Record, Report, markdown_table
from reproduction.run import Cell, Experiment, Outcome, Plan

RATES = (0.01, 0.05, 0.1, 0.3, 0.5, 0.9)
BETAS = (0.5, 1.0, 2.0)
SIZES = tuple(round(10 ** (k / 2)) for k in range(4, 15))  # 100 … 10,000,000
THRESHOLDS = (0.05, 0.2, 0.5, 0.8)  # classifiers P(1|x) > δ, good and bad
S = 2.0
ETA = 0.05
REGRET_SIZES = (100, 1000, 10_000, 100_000)


def run_deviation(rate: float, beta: float, draws: int) -> list[dict[str, float]]:
    """Return the 95 % deviation of F from its limit, and Lemma 2's bound, by n and classifier.

    The four counts of a fixed classifier are multinomial, so no examples need to be drawn.
    """
    mixture = GaussianMixture(S=S, positive_rate=rate)
    rng = np.random.default_rng([5, round(1000 * rate), round(10 * beta)])
    found = []
    for threshold in THRESHOLDS:
        limit, shares = mixture.fbeta(threshold, beta), mixture.confusion(threshold)
        for n in SIZES:
            hit, missed, false, _ = rng.multinomial(n, shares, draws).T
            f = FBeta(beta).value(hit, hit + false, hit + missed)
            deviation = float(np.quantile(np.abs(f - limit), 1.0 - ETA))
            bound = deviation_bound(n, rate, beta, ETA).value
            found.append({"threshold": threshold, "n": n, "deviation": deviation, "bound": bound})
    return found


def run_regret(rate: float, draws: int) -> list[dict[str, float]]:
    """Return the 95 % regret of the best threshold on n examples, and Theorem 3's bound (d = 1)."""
    mixture = GaussianMixture(D=1, S=S, positive_rate=rate)
    best = mixture.optimum().fbeta
    found = []
    for n in REGRET_SIZES:
        lost = []
        for draw in range(draws):
            X, y = mixture.sample(n, np.random.default_rng([6, round(1000 * rate), n, draw]))
            with timed("decide"):
                cut = maximize_empirical_f(y, mixture.posterior(X)).threshold
            lost.append(best - mixture.fbeta(float(np.clip(cut, 0.0, 1.0))))
        bound = regret_bound(n, 1, rate, 1.0, ETA).value
        found.append({"n": n, "regret": float(np.quantile(lost, 1.0 - ETA)), "bound": bound})
    return found


def cells(plan: Plan) -> list[Cell]:
    """One cell for each positive rate and β, and one for each rate of the regret."""
    draws, few = (1000, 10) if plan.quick else (10_000, 100)
    deviations = [
        Cell(
            f"deviation-{rate}-{beta}-{draws}",
            run_deviation,
            {"rate": rate, "beta": beta, "draws": draws},
            cost=0.5,
        )
        for rate in RATES
        for beta in BETAS
    ]
    return deviations + [
        Cell(f"regret-{rate}-{few}", run_regret, {"rate": rate, "draws": few}, cost=few / 25)
        for rate in RATES
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Set the bounds beside the deviations, and list the sample sizes they ask for."""
    records: list[dict[str, Any]] = []
    for outcome in outcomes:
        params = outcome.cell.params
        kind = "Lemma 2" if "beta" in params else "Theorem 3"
        for row in outcome.result:
            seen = row["deviation" if kind == "Lemma 2" else "regret"]
            records.append(
                {
                    "statement": kind,
                    "positive rate": params["rate"],
                    "beta": params.get("beta", 1.0),
                    "threshold": row.get("threshold"),
                    "n": row["n"],
                    "observed": seen,
                    "bound": row["bound"],
                    "observed / bound": seen / row["bound"],
                }
            )
    findings: dict[str, Any] = {"Lemma 2 begins at 0.05": sample_size(math.inf, 0.05)}
    for kind in ("Lemma 2", "Theorem 3"):
        said = [r for r in records if r["statement"] == kind and math.isfinite(r["bound"])]
        findings[f"{kind}: settings where it says something"] = len(said)
        findings[f"{kind}: settings"] = sum(r["statement"] == kind for r in records)
        findings[f"{kind}: largest share"] = max(r["observed / bound"] for r in said)
        findings[f"{kind}: holds"] = all(r["observed / bound"] < 1.0 for r in said)
    share = findings["Lemma 2: largest share"]
    headline = f"Lemma 2 holds and is loose: at most {share:.3f} of it is used"
    return Report(headline, _text(findings), records, findings, lambda: _draw(records))


def _text(findings: Any) -> str:
    lines = [
        [
            f"{rate}",
            f"{sample_size(math.inf, rate):,}",
            f"{sample_size(0.1, rate):,}",
            f"{sample_size(0.01, rate):,}",
            f"{sample_size(0.1, rate, vc_dimension=1):,}",
            f"{sample_size(0.1, rate, vc_dimension=11):,}",
        ]
        for rate in RATES
    ]
    header = [
        "π₁",
        "Lemma 2 begins",
        "Lemma 2 ≤ 0.1",
        "Lemma 2 ≤ 0.01",
        "Theorem 3 ≤ 0.1, d = 1",
        "Theorem 3 ≤ 0.1, d = 11",
    ]
    parts = [
        "{}: says something in {} of {} settings, holds in all of them: {}; the 95 % quantile "
        "observed is at most {:.3g} of the bound.".format(
            kind,
            findings[f"{kind}: settings where it says something"],
            findings[f"{kind}: settings"],
            "yes" if findings[f"{kind}: holds"] else "**no**",
            findings[f"{kind}: largest share"],
        )
        for kind in ("Lemma 2", "Theorem 3")
    ]
    return (
        markdown_table(header, lines)
        + "\n\nThe number of examples the bounds ask for, β = 1 and η = 0.05.\n\n"
        + " ".join(parts)
    )


def _draw(records: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    colours = {0.05: "#0072B2", 0.5: "#E69F00"}
    titles = {
        "Lemma 2": "Lemma 2: |F on n examples - F|",
        "Theorem 3": "Theorem 3: F lost by the tuned threshold",
    }
    for ax, kind in zip(figure.subplots(1, 2, sharey=True), titles, strict=True):
        for rate, colour in colours.items():
            chosen = [
                r
                for r in records
                if r["statement"] == kind
                and r["positive rate"] == rate
                and r["beta"] == 1.0
                and r["threshold"] in (None, 0.5)
            ]
            n = [r["n"] for r in chosen]
            ax.loglog(
                n,
                [r["observed"] for r in chosen],
                "o-",
                ms=3,
                color=colour,
                label=f"95 % quantile observed, π₁ = {rate}",
            )
            fine = np.unique(np.logspace(2, 9, 400).astype(int))
            bound = [_bound(kind, int(k), rate) for k in fine]
            ax.loglog(fine, bound, "--", color=colour, label=f"bound, π₁ = {rate}")
        ax.axhline(1.0, color="black", lw=0.8)
        ax.set_ylim(1e-5, 20)
        ax.set_xlabel("examples n")
        ax.set_title(titles[kind])
    figure.axes[0].annotate("no statement above 1", (1e6, 1.2), fontsize="small")
    figure.axes[0].set_ylabel("difference in F1")
    figure.axes[1].legend(loc="lower left", fontsize="small")
    return figure


def _bound(kind: str, n: int, rate: float) -> float:
    if kind == "Lemma 2":
        return deviation_bound(n, rate, 1.0, ETA).value
    return regret_bound(n, 1, rate, 1.0, ETA).value


EXPERIMENT = Experiment("bounds", cells, report)
