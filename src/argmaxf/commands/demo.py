"""argmaxf demo: a small example, decided and explained."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from rich.markup import escape
from rich.table import Table

from argmaxf import expected_f, maximize_expected_f
from argmaxf.commands.output import JSON_OPTION, console, print_json

# Twelve transactions and a model's probabilities that each is a fraud.
SCORES = {
    "wire to a new account": 0.46,
    "third card in a day": 0.41,
    "gift cards at night": 0.38,
    "login from abroad": 0.33,
    "address changed": 0.21,
    "large round sum": 0.14,
    "new device": 0.09,
    "weekend purchase": 0.05,
    "repeat customer": 0.03,
    "monthly rent": 0.02,
    "groceries": 0.01,
    "bus ticket": 0.01,
}


def demo(as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Decide a small built-in example and explain the answer."""
    p = np.array(list(SCORES.values()))
    decision = maximize_expected_f(p)
    if as_json:
        print_json(
            {
                "k": decision.k,
                "threshold": decision.threshold,
                "expected": decision.expected,
                "std": decision.std,
                "selected": [name for name, s in zip(SCORES, decision.selected, strict=True) if s],
            }
        )
        return
    table = Table(title="Which of these twelve should be flagged as fraud?", title_justify="left")
    table.add_column("transaction")
    table.add_column("P(fraud)", justify="right")
    table.add_column("p ≥ 0.5", justify="center")
    table.add_column("best F1", justify="center")
    for name, score, chosen in zip(SCORES, p, decision.selected, strict=True):
        table.add_row(
            escape(name), f"{score:.2f}", "✓" if score >= 0.5 else "·", "✓" if chosen else "·"
        )
    out = console()
    out.print(table)
    everything = expected_f(p, np.ones(p.size))
    out.print(
        "The threshold 0.5 flags nothing: its F1 is 0. Flagging everything gives an expected F1 of "
        f"{everything.mean:.3f}.\n"
        f"The best set is the top {decision.k}, everything from {decision.threshold:.2f}: "
        f"expected F1 [bold]{decision.expected:.3f}[/bold] ± {decision.std:.3f}.\n"
        f"No other of the {2**p.size:,} possible sets has a higher expected F1."
    )
