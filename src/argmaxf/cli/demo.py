"""argmaxf demo: the whole story on real data that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argmaxf.cli.output import JSON_OPTION, console

STORY = (
    "[bold]Which of these handwritten digits are a 9?[/bold] {n:,} scans, {rate:.1%} of them "
    "a 9, and naive Bayes.\nWays to label them, each judged on digits that its model was not "
    "trained on:"
)
REPORT = Path("argmaxf-demo.html")


def demo(
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = REPORT,
    beta: Annotated[float, typer.Option(help="How much recall counts against precision.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Compare both approaches on bundled real data with rare positives, and write a report."""
    from argmaxf.cli.answer import Request, answer
    from argmaxf.cli.rare import nines
    from argmaxf.cli.tables import split_like, split_table

    digits = nines(seed)
    half = digits.height // 2
    rows = split_table(digits[:half], ["is_9"], "digits")
    apart = split_like(digits[half:], rows, "digits kept apart")
    if not as_json:
        console().print(STORY.format(rate=rows.y.mean(), n=len(rows.y)))
    command = ["argmaxf", "demo", "--beta", f"{beta:g}", "--seed", str(seed)]
    chance = Request(rows, estimator="nb", beta=beta, seed=seed, apart=apart)
    answer(chance, command, report=report, as_json=as_json)
