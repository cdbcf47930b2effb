"""Ascent by many moves at once: pixels move together where that is better, else fewer of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from torch import Tensor

ROUNDS = 400  # at most; a few dozen are usual


class Valued(Protocol):
    """What is climbed: some choice, and what it is worth."""

    @property
    def value(self) -> float:
        """Its expected value."""
        ...


Choice = TypeVar("Choice", bound=Valued)


def ascend(
    state: Choice,
    gains: Callable[[Choice], Tensor],
    move: Callable[[Choice, Tensor], Choice],
    enough: float,
) -> Choice:
    """Return a state from which no move gains, or all together less than a part of the value.

    `gains` says what each pixel would gain by its best move, all others as they are; `move` makes
    the moves of some pixels. Those that gain most go first, twice as many as last time, and half of
    them stay where together they lose.
    """
    most = None
    for _ in range(ROUNDS):
        gain = gains(state)
        wanted = int((gain > 0.0).sum())
        if wanted == 0 or float(gain.clamp(min=0.0).sum()) <= enough * state.value:
            return state
        order = gain.sort(descending=True, stable=True).indices[:wanted][:most]
        moved = move(state, order)
        while moved.value <= state.value:
            order = order[: len(order) // 2]
            if len(order) == 0:
                return state
            moved = move(state, order)
        state, most = moved, 2 * len(order)
    return state
