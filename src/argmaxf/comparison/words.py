"""The choice in words: the verdict, the reason, and what else the data show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.messages import how_many
from argmaxf.comparison.choice import DOUBT, OURS, REACH, Choice, total_error
from argmaxf.empirical.interval import Interval

FEW = 100  # positives below which a tuned threshold is shaky
NOTHING = "There is nothing to compare: no label has both positives and negatives."


def reason(choice: Choice) -> str:
    """Return why the method was chosen."""
    why = _why(choice)
    return why[0].upper() + why[1:]


def _why(choice: Choice) -> str:
    chosen, others = choice.chosen, [name for name in choice.close if name != choice.chosen]
    if chosen == choice.best:
        by = "but by no more than" if others else "by more than"
        return f"{chosen} scored highest, {by} {REACH:.2f} standard errors."
    by, error = f"{choice.behind[chosen]:.4f}", f"{choice.std_error[chosen]:.4f}"
    within = f"no more than {REACH:.2f} standard errors ({error} each)"
    lead = f"{choice.best} scored higher by {by}, {within}"
    if float(by) == 0.0:
        lead = f"{choice.best} and {chosen} scored equal to four digits"
    if chosen not in OURS:
        return f"{lead}; {chosen}, which you added, leads our own choice."
    if chosen != choice.safe:
        return f"{lead}; {chosen} leads {choice.safe}, our usual choice."
    return f"{lead}; of methods so close, {chosen} lost least on real data."


def notes(truth: Bools, proba: Floats | None, choice: Choice) -> Iterator[str]:
    """Say what the data show that the user should know: few positives, bad probabilities."""
    positives = truth.sum(axis=0)
    fewest = int(positives[positives > 0].min())
    if fewest < FEW:
        of = " of the rarest label" if len(positives) > 1 else ""
        only = f"{'is' if fewest == 1 else 'are'} only {how_many(fewest, 'positive')}"
        yield (
            f"There {only}{of}: thresholds, and the scores above, would be others on other rows."
        )
    if proba is None:
        yield "The classifier has no predict_proba; its scores were calibrated for expected F."
    elif choice.trusted:
        yield "The classifier's own probabilities agree with what was held out."
    else:
        yield (
            "The classifier's own probabilities do not agree with what was held out "
            f"({_disagreement(truth, proba)}); calibrate them before you use them for anything "
            "else."
        )


def _disagreement(truth: Bools, proba: Floats) -> str:
    """Return by what probabilities were found off: the number of positives, or single rows."""
    positives = int(truth.sum())
    expected, there = how_many(round(proba.sum()), "positive"), how_many(positives, "positive")
    if total_error(truth, proba) >= DOUBT and expected != there:
        return f"they expect {expected}, there are {positives:,}"
    error, right = np.mean((truth - proba) ** 2), np.mean(proba * (1 - proba))
    return f"their mean squared error is {error:.4g}, and would be {right:.4g} if they were right"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as people list them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    head, last = ", ".join(names[:-1]), names[-1]
    return f"{head} {word} {last}" if head else last


def shown(interval: Interval, form: str = ".3f") -> str:
    """Return a value with its interval.

    >>> shown(Interval(0.25, 0.5, 0.75))
    '0.500 [0.250, 0.750]'
    """
    return f"{interval.value:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def selection(selected: Bools) -> str:
    """Return how much of a table was selected."""
    what = "rows" if selected.shape[1] == 1 else "labels"
    return f"it selects {selected.sum():,} of {selected.size:,} {what}"


def aligned(rows: Sequence[Sequence[Any]], right: Sequence[bool]) -> list[str]:
    """Return rows of cells as lines whose columns stand below each other."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
