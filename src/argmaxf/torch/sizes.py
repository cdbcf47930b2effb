r"""Two searches for ensembles, on any device.

`best_size` finds the best set where what an item adds depends on the size of the set alone.
Δ_i(t) is what item i adds to a set of t items, and V(k, t) the sum of the k largest Δ_i(t): the
best set of k items has V(k, k). V(k, ·) is convex in 1 / (t + shift), shift the most that positives
plausibly add to the denominator, so that chords between two sizes bound every size between them
(docs/background/labels-per-row.md). `ascend` makes many moves at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Additions = Callable[[float], Tensor]  # t -> Δ_i(t) of every item


class TopSums(NamedTuple):
    """V(k, size) for k = low, low + 1, …, high."""

    size: int
    low: int
    sums: Tensor

    @classmethod
    def of(cls, additions: Additions, size: int, low: int, high: int) -> TopSums:
        """Sort what each item adds to a set of this size."""
        top = additions(float(size)).sort(descending=True).values[:high]
        return cls(size, low, running_sums(top)[low - 1 :])

    def own(self) -> tuple[float, int]:
        """V(size, size), and minus the size: the larger of two is the better, or smaller, set."""
        return float(self.sums[self.size - self.low]), -self.size


def running_sums(x: Tensor) -> Tensor:
    """Return the sums of the first 1, 2, … numbers, in an order that is the same in every run.

    A scan of one long row is cut differently in every run on CUDA; scans of several rows are not.
    """
    side = max(1, math.isqrt(len(x)))
    rows = torch.nn.functional.pad(x, (0, -len(x) % side)).view(-1, side).cumsum(1)
    ends = torch.stack([rows[:, -1]] * 2).cumsum(1)[0]
    rows[1:] += ends[:-1, None]
    return rows.reshape(-1)[: len(x)]


def best_size(
    additions: Additions,
    n: int,
    shift: float,
    guess: int,
    nothing: float,
    slack: float,
    part: float,
) -> tuple[int, float]:
    """Return the size of the best set, and a bound on the value of all sets.

    Ranges of sizes are cut until their chords are low enough: below (1 - part) of the best value
    plus `slack`. `guess` is where to look first, `nothing` what the empty set is worth.
    """
    parts = 8  # a range is cut at least such a part of its length from its ends
    left, rights = TopSums.of(additions, 1, 1, n), [TopSums.of(additions, n, 1, n)]
    best, bound = max((nothing, 0), left.own(), rights[0].own()), -math.inf
    while rights:
        right = rights[-1]
        length = right.size - left.size
        high, k = _highest_chord(left, right, shift)
        if length < 2 or high <= best[0] * (1.0 - part) + slack:
            bound, left = max(bound, high), rights.pop()
            continue
        margin = max(1, length // parts)
        k = min(max(k, left.size + margin), right.size - margin)
        k = guess if left.size < guess < right.size else k
        rights.append(TopSums.of(additions, k, left.size, right.size))
        best = max(best, rights[-1].own())
    return -best[1], max(bound, best[0])


def _highest_chord(left: TopSums, right: TopSums, shift: float) -> tuple[float, int]:
    """Return the highest chord strictly between two sizes, and where it is."""
    first, length = left.size + 1, right.size - left.size - 1
    if length < 1:
        return -math.inf, left.size
    k = torch.arange(first, right.size, device=left.sums.device, dtype=torch.float64)
    share = (k - left.size) * (right.size + shift) / ((length + 1) * (k + shift))
    low, high = (each.sums[first - each.low :][:length] for each in (left, right))
    chord = torch.lerp(low, high, share)
    place = int(chord.argmax())
    return float(chord[place]), first + place


def mark_top(delta: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Mark the k largest, of those that agree to 13 digits the first; return the smallest, too."""
    tie = 1e-13
    if k == 0:
        return torch.zeros_like(delta, dtype=torch.bool), delta.new_tensor(math.inf)
    cut = delta.sort(descending=True).values[k - 1]
    above, tied = delta > cut + tie * cut.abs(), (delta - cut).abs() <= tie * cut.abs()
    chosen = above | (tied & (tied.long().cumsum(0) <= k - above.sum()))
    return chosen, torch.where(chosen, delta, math.inf).amin()


def ascend(
    state: Any,
    gains: Callable[[Any], Tensor],
    move: Callable[[Any, Tensor], Any],
    enough: float,
) -> Any:
    """Return a state from which no move gains, or all together less than a part of its `value`.

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
