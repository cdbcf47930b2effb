"""argmaxf bounds: Lemma 2 and Theorem 3 as a calculator."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argmaxf.cli.output import JSON_OPTION, console, print_json, print_table

if TYPE_CHECKING:
    from rich.table import Table

    from argmaxf.theory import Bound

MOST = 10_000_000  # rows; a bound that needs more says nothing that could be of use
RATES = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5)


def bounds(
    n: Annotated[int, typer.Option("--n", help="Number of examples.")],
    positive_rate: Annotated[float, typer.Option(help="Share of positives, in (0, 1].")],
    beta: Annotated[float, typer.Option(help="Weight of recall against precision.")] = 1.0,
    eta: Annotated[float, typer.Option(help="Probability that the bound may fail.")] = 0.05,
    vc_dimension: Annotated[
        int, typer.Option(help="VC dimension of the classifiers; 1 for a threshold.")
    ] = 1,
    accuracy: Annotated[float, typer.Option(help="Difference in F to reach.")] = 0.05,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """How far F can be from its limit on n examples, and how many examples a target takes."""
    from argmaxf.theory import deviation_bound, regret_bound  # loads scipy.optimize, .3 s

    lemma = deviation_bound(n, positive_rate, beta, eta)
    theorem = regret_bound(n, vc_dimension, positive_rate, beta, eta)
    needed = {
        rate: _needed(accuracy, rate, beta, eta, vc_dimension)
        for rate in sorted({*RATES, positive_rate})
    }
    if as_json:
        sizes = [{"positive_rate": rate, **sizes} for rate, sizes in needed.items()]
        print_json({"lemma_2": _record(lemma), "theorem_3": _record(theorem), "needed": sizes})
        return
    out = console()
    out.print(f"n = {n:,}, positive rate {positive_rate:g}, β = {beta:g}, η = {eta:g}")
    begins = needed[positive_rate]["lemma_2_begins"]
    close = f"with probability {1.0 - eta:g}, F measured on them is within {{:.3g}} of its limit."
    out.print(_say("Lemma 2", lemma, close, begins))
    lost = f"with it, training for F loses at most {{:.3g}} (VC dimension {vc_dimension})."
    out.print(_say("Theorem 3", theorem, lost, begins))
    print_table(out, _table(needed, accuracy, positive_rate))
    out.print(
        "Both bounds are loose: the experiments in reproduction/ find deviations of about a tenth "
        "of Lemma 2's bound and less than a hundredth of Theorem 3's."
    )


def _needed(
    accuracy: float, rate: float, beta: float, eta: float, vc_dimension: int
) -> dict[str, int]:
    from argmaxf.theory import sample_size

    return {
        "lemma_2_begins": sample_size(math.inf, rate, beta, eta),
        "lemma_2": sample_size(accuracy, rate, beta, eta),
        "theorem_3": sample_size(accuracy, rate, beta, eta, vc_dimension=vc_dimension),
    }


def _record(bound: Bound) -> dict[str, Any]:
    value = bound.value if math.isfinite(bound.value) else None
    return {"bound": value, "reason": bound.reason or None}


def _say(name: str, bound: Bound, meaning: str, begins: int) -> str:
    """Say what a bound means, or why it means nothing for so few examples."""
    if bound.reason:
        return f"{name} says nothing here: it takes at least {min(begins, MOST):,} examples."
    if bound.value >= 1.0:
        return f"{name} says nothing here: F is at most 1, and its bound is {bound.value:.3g}."
    return f"{name}: {meaning.format(bound.value)}"


def _table(needed: dict[float, dict[str, int]], accuracy: float, chosen: float) -> Table:
    from rich.table import Table

    table = Table(title=f"Examples needed for a difference of {accuracy:g}", title_justify="left")
    for name in ("positive rate", "Lemma 2 begins", "Lemma 2", "Theorem 3"):
        table.add_column(name, justify="right")
    for rate, sizes in needed.items():
        style = "bold" if rate == chosen else None
        table.add_row(f"{rate:g}", *map(_size, sizes.values()), style=style)
    return table


def _size(rows: int) -> str:
    """Write a number of rows that somebody might have, or that nobody has."""
    return f"{rows:,}" if rows <= MOST else f"> {MOST:,}"
