"""The paper's computational claim today: Algorithm 1 beside its rivals as n grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from argmaxf.expected.maximize import maximize_expected_f
from reproduction.references import chai_2005, jansche_2007, ye_2012
from reproduction.report import Record, Report, markdown_table, published, rows
from reproduction.run import Cell, Experiment, Outcome, Plan

LINEAR = "argmaxf (linear time)"
ALGORITHMS: dict[str, Callable[[Any], Any]] = {
    "Jansche 2007": lambda p: int(np.argmax(jansche_2007(p))),
    "Chai 2005": lambda p: int(np.argmax(chai_2005(p))),
    "Algorithm 1": lambda p: int(np.argmax(ye_2012(p))),
    LINEAR: lambda p: int(maximize_expected_f(p).k),
}
SIZES = {
    "Jansche 2007": (10, 15, 20, 30, 45, 60),
    "Chai 2005": (20, 40, 80, 120, 180, 260),
    "Algorithm 1": (500, 1000, 2000, 3000, 4500, 6000),
    LINEAR: (1000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
}
SMALLEST_TIME = 0.02  # seconds to repeat a short call over


def run_algorithm(name: str, n: int) -> dict[str, float]:
    """Return the best of five timings of one decision, and the k it found."""
    p = np.random.default_rng([9, n]).beta(0.5, 5.0, n)
    work = ALGORITHMS[name]
    k = work(p)  # also compiles what is compiled
    once = _time(work, p, 1)
    repeats = max(1, round(SMALLEST_TIME / max(once, 1e-9)))
    return {"seconds": min(once, *(_time(work, p, repeats) for _ in range(4))), "k": k}


def _time(work: Callable[[Any], Any], p: Any, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work(p)
    return (time.perf_counter() - start) / repeats


def cells(plan: Plan) -> list[Cell]:
    """One cell for each algorithm and size; a quick look leaves out the two largest of each."""
    return [
        Cell(f"{name.split(' ')[0]}-{n}", run_algorithm, {"name": name, "n": n}, cost=1.0)
        for name, sizes in SIZES.items()
        for n in (sizes[:-2] if plan.quick else sizes)
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Fit the exponents over the larger sizes."""
    records = [
        {
            "algorithm": o.cell.params["name"],
            "n": o.cell.params["n"],
            "seconds": o.result["seconds"],
            "k": o.result["k"],
        }
        for o in outcomes
    ]
    findings: dict[str, Any] = {}
    for name in ALGORITHMS:
        chosen = [r for r in records if r["algorithm"] == name]
        n, seconds = np.log([[r[key] for r in chosen] for key in ("n", "seconds")])
        slope, start = np.polyfit(n[-4:], seconds[-4:], 1)
        findings[f"{name}: exponent"] = float(slope)
        at = np.log(20_000)
        inside = np.interp(at, n, seconds) if at <= n[-1] else start + slope * at
        findings[f"{name}: seconds at n = 20000"] = float(np.exp(inside))
        findings[f"{name}: largest n"] = chosen[-1]["n"]
        findings[f"{name}: seconds at the largest n"] = chosen[-1]["seconds"]
    headline = "time grows as " + ", ".join(
        f"n^{findings[f'{name}: exponent']:.1f} ({name})" for name in ALGORITHMS
    )
    return Report(headline, _text(findings), records, findings, lambda: _draw(records, findings))


def _text(findings: Any) -> str:
    lines = [
        [
            name,
            f"{published('algorithms', name, 'exponent'):.0f}"
            if name in rows("algorithms")
            else "–",
            f"{findings[f'{name}: exponent']:.2f}",
            f"{findings[f'{name}: largest n']:,}",
            _duration(findings[f"{name}: seconds at the largest n"]),
            _duration(findings[f"{name}: seconds at n = 20000"]),
        ]
        for name in ALGORITHMS
    ]
    header = [
        "algorithm",
        "exponent, stated",
        "fitted",
        "largest n",
        "time there",
        "time at n = 20,000",
    ]
    return (
        markdown_table(header, lines)
        + "\n\nOne decision for F1, probabilities from Beta(.5, 5), best of five. The exponent is "
        "fitted over the four largest sizes; the last column extends that line where 20,000 items "
        "were not tried. Algorithm 1 keeps n²/2 numbers, which its times feel as n grows. These "
        "are times: they differ from run to run and from machine to machine."
    )


def _duration(seconds: float) -> str:
    for unit, size in (
        ("years", 31_557_600),
        ("days", 86_400),
        ("hours", 3600),
        ("min", 60),
        ("s", 1),
    ):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1000 * seconds:.3g} ms"


def _draw(records: Sequence[Record], findings: Any) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    colours = ("#CC79A7", "#E69F00", "#0072B2", "#009E73")
    for (name, colour), marker in zip(zip(ALGORITHMS, colours, strict=True), "v^so", strict=True):
        chosen = [r for r in records if r["algorithm"] == name]
        exponent = findings[f"{name}: exponent"]
        ax.loglog(
            [r["n"] for r in chosen],
            [r["seconds"] for r in chosen],
            marker + "-",
            ms=4,
            color=colour,
            label=f"{name}: $n^{{{exponent:.1f}}}$",
        )
    ax.set_xlabel("items n")
    ax.set_ylabel("seconds for one decision")
    ax.legend()
    return figure


EXPERIMENT = Experiment("algorithms", cells, report, alone=True)
