r"""Two searches that classes and members of ensembles share, on any device.

`best_size` finds the best set where what an item adds depends on the size of the set alone.
Δ_i(t) is what item i adds to a set of t items, and V(k, t) the sum of the k largest Δ_i(t): the
best set of k items has V(k, k). V(k, ·) is convex in 1 / (t + shift), shift the most that positives
plausibly add to the denominator, so that chords between two sizes bound every size between them
(docs/shared-rows.md). `ascend` makes many moves at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

Additions = Callable[[float], Tensor]  # t -> Δ_i(t) of every item


class BestSize(NamedTuple):
    """The best value of a set, its size, and a bound on all sets."""

    value: float
    size: int
    bound: float


class Known(NamedTuple):
    """V(k, size) for k = low, low + 1, …"""

    size: int
    low: int
    sums: Tensor

    def at(self, k: int) -> float:
        """One of them."""
        return float(self.sums[k - self.low])


def running_sums(x: Tensor) -> Tensor:
    """Return the sums of the first 1, 2, … numbers, in an order that is the same in every run.

    A scan of one long row is cut differently in every run on CUDA; scans of several rows are not.
    """
    side = max(1, math.isqrt(len(x)))
    rows = torch.nn.functional.pad(x, (0, -len(x) % side)).view(-1, side).cumsum(1)
    ends = torch.stack([rows[:, -1]] * 2).cumsum(1)[0]
    rows[1:] += ends[:-1, None]
    return rows.reshape(-1)[: len(x)]


def top_sums(additions: Additions, size: int, low: int, high: int) -> Known:
    """Return V(k, size) for k = low … high."""
    top = additions(float(size)).sort(descending=True).values[:high]
    return Known(size, low, running_sums(top)[low - 1 :])


def best_size(
    additions: Additions,
    n: int,
    shift: float,
    guess: int,
    nothing: float,
    slack: float,
    part: float,
) -> BestSize:
    """Find the best size by cutting ranges until their chords are low enough.

    Low enough is below (1 - part) of the best value plus `slack`. `guess` is where to look first,
    `nothing` what the empty set is worth.
    """
    guess = min(max(guess, 1), n)
    value = top_sums(additions, guess, guess, guess).at(guess)
    best, size = max((nothing, 0), (value, guess), key=_by_value)
    reach, bound = _far_side(additions, n, guess, best)
    parts = 8  # a range is cut at least such a part of its length from its ends
    left, rights = top_sums(additions, 1, 1, reach), [top_sums(additions, reach, 1, reach)]
    best, size = max((best, size), (left.at(1), 1), (rights[0].at(reach), reach), key=_by_value)
    while rights:
        right = rights[-1]
        high, k = _ceiling(left, right, shift)
        if right.size - left.size < 2 or high <= best * (1.0 - part) + slack:
            bound, left = max(bound, high), rights.pop()
            continue
        margin = max(1, (right.size - left.size) // parts)
        k = min(max(k, left.size + margin), right.size - margin)
        k = guess if left.size < guess < right.size else k
        rights.append(top_sums(additions, k, left.size, right.size))
        best, size = max((best, size), (rights[-1].at(k), k), key=_by_value)
    return BestSize(best, size, max(bound, best))


def _by_value(found: tuple[float, int]) -> tuple[float, int]:
    """Higher values first; of equal ones smaller sets."""
    return found[0], -found[1]


def _far_side(additions: Additions, n: int, guess: int, best: float) -> tuple[int, float]:
    """Return a size beyond which no set is better, and the bound on sets beyond it.

    Δ falls with the size, so that a set of t items or more has at most Σ max(0, Δ_i(t)).
    """
    reach = guess
    while 2 * reach < n:
        reach *= 2
        most = float(additions(float(reach)).clamp(min=0.0).sum())
        if most <= best:
            return reach, most
    return n, -math.inf


def _ceiling(left: Known, right: Known, shift: float) -> tuple[float, int]:
    """Return the highest chord strictly between two sizes, and where it is."""
    first, length = left.size + 1, right.size - left.size - 1
    if length < 1:
        return -math.inf, left.size
    k = torch.arange(first, right.size, device=left.sums.device, dtype=torch.float64)
    share = (k - left.size) * (right.size + shift) / ((length + 1) * (k + shift))
    chord = torch.lerp(
        left.sums[first - left.low :][:length], right.sums[first - right.low :][:length], share
    )
    place = int(chord.argmax())
    return float(chord[place]), first + place


def mark_top(delta: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Mark the k largest, of those that agree to 13 digits the first; return the smallest, too."""
    tie = 1e-13
    if k == 0:
        return torch.zeros_like(delta, dtype=torch.bool), delta.new_tensor(math.inf)
    cut = delta.sort(descending=True).values[k - 1]
    above, tied = delta > cut * (1.0 + tie), delta >= cut * (1.0 - tie)
    tied &= ~above
    chosen = above | (tied & (tied.long().cumsum(0) <= k - above.sum()))
    return chosen, torch.where(chosen, delta, math.inf).amin()


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
    for _ in range(400):  # a few dozen are usual
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
