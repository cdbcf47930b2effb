"""The choice in words: the verdict, the reason, and what else the data show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from argmaxf.comparison.choice import Choice
from argmaxf.comparison.trial import Bools, Floats
from argmaxf.empirical.interval import Interval

RARE = 0.1
NOTHING = "There is nothing to compare: no label has both positives and negatives."


def reason(choice: Choice) -> str:
    """Return why the method was chosen: what is known first, then what was done about it."""
    chosen, others = choice.chosen, [name for name in choice.close if name != choice.chosen]
    if not others:
        return f"{chosen} is used: it scored highest, by more than two standard errors."
    tie = f"Too close to call: any of {listed(choice.close)}."
    if chosen == choice.best:
        return f"{tie} {chosen} is used: none scored higher."
    return (
        f"{tie} {chosen} is used: {choice.best} scored higher by {choice.behind[chosen]:.4f}, less "
        f"than two standard errors (of {choice.std_error[chosen]:.4f} each), and {chosen} is the "
        "safer one on such data."
    )


def notes(truth: Bools, proba: Floats | None, choice: Choice) -> Iterator[str]:
    """Say what the data show that bears on the choice: rare labels, bad probabilities."""
    rate = float(truth[:, truth.any(axis=0)].mean(axis=0).min())
    if rate < RARE:
        yield (
            f"The rarest label is positive in {rate:.1%} of rows: a threshold tuned on few "
            "positives varies, and expected F is the better for it where probabilities are right."
        )
    if proba is None:
        yield "The classifier has no predict_proba, so expected F was not tried: calibrate it."
    elif not choice.trusted:
        yield (
            f"The probabilities are not to be trusted: they expect {proba.sum():,.0f} positives, "
            f"there are {truth.sum():,}. Of methods that score alike, one that does not rest on "
            "them is used. Calibrating the classifier would help expected F."
        )
    else:
        yield "The probabilities agree with what was held out, so expected F can rely on them."


def listed(names: Sequence[str]) -> str:
    """Return names as people list them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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
