r"""The best mask under an ensemble: one member is right, pixels are independent given which.

Dice: a mask of k pixels has Σ_i Δ_i(k), the general F maximizer's form. On the CPU
`expected/dependent` decides, on a GPU `best_dice` in the same way: V(k, t), the sum of the k
largest Δ_i(t), is convex in 1 / (t + shift), shift the most that positives plausibly add to the
denominator, so that chords between two sizes t bound V(k, k) for every size k between them.

IoU has no such form: with h_z = E_z[1 / (k + R)], R the positives left out, a mask has
Σ_z π_z h_z Σ_{i in} p_zi, and h_z depends on the mask, too. An ascent finds a mask that no single
pixel can better, and a bound proves how good it is. Since h_z is highest for the k pixels most
probable to member z, H_z(k), and H_z falls with k, masks of a ≤ k < b pixels have at most the sum
of the b - 1 largest Σ_z π_z H_z(a) p_zi.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.expected.dependent import maximize_expected_f_from_mixture
from argmaxf.measures import Coefficients, Dice
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import RowNodes, none_there, reciprocals
from argmaxf.torch.tensors import Rows, as_array, best_masks, check_range, mask_values

DICE = Dice().coefficients()
SLACK = 1e-12  # a range of sizes is closed where its bound is lower than the best by this part
ENOUGH = 1e-4  # the gap of IoU to stop at
TIE = 1e-13  # contributions that differ by this part of them are equal
RANGES = 60  # of sizes looked at, at most, for the bound of IoU


class Members(NamedTuple):
    """The pixels of one image × class as each member of an ensemble sees them."""

    p: Tensor  # members × pixels
    weight: Tensor  # adding up to one
    nodes: RowNodes
    nothing: float  # what the empty mask is worth

    @classmethod
    def of(cls, p: Tensor, weight: Tensor, zero: float, c: Coefficients) -> Members:
        """Choose nodes for every size of a mask; `zero` is the value of 0/0."""
        members, n = p.shape
        nodes = RowNodes.of(p, np.ones(members), np.full(members, float(n)), c)
        nothing = zero * float(weight @ none_there(p)) if zero > 0.0 else 0.0
        return cls(p, weight, nodes, nothing)


def best_dice(p: Tensor, weight: Tensor, zero: float) -> tuple[Tensor, Tensor]:
    """Return the mask with the highest expected Dice, and the lowest contribution to it.

    Of equal pixels (contributions that agree to 13 digits) the first are in the mask.
    """
    members = Members.of(p, weight, zero, DICE)
    nodes = members.nodes
    scale = DICE.c * weight[:, None] * nodes.weight * nodes.logs(p).exp() * nodes.x_in

    def additions(t: float) -> Tensor:
        return reciprocals(p, scale * (-nodes.u * t).exp(), nodes.x_in).mul_(p).sum(0)

    guess = round(float(weight @ p.sum(1, dtype=torch.float64)))
    most = float(nodes.most.max())
    k = best_size(additions, p.shape[1], most, guess, members.nothing)
    delta = additions(float(max(k, 1)))
    if k == 0:
        return torch.zeros_like(delta, dtype=torch.bool), delta.new_tensor(math.inf)
    cut = delta.sort(descending=True).values[k - 1]
    above, tied = delta > cut + TIE * cut.abs(), (delta - cut).abs() <= TIE * cut.abs()
    chosen = above | (tied & (tied.long().cumsum(0) <= k - above.sum()))
    return chosen, torch.where(chosen, delta, math.inf).amin()


def best_size(
    additions: Callable[[float], Tensor], n: int, shift: float, guess: int, nothing: float
) -> int:
    """Return the size of the best mask; `nothing` is what the empty one is worth.

    `additions` says what each pixel adds to a mask of some size; `guess` is where to look first.
    Ranges of sizes are cut until their chords are below the best value.
    """

    def top_sums(t: int, most: int) -> Tensor:
        return running_sums(additions(float(t)).sort(descending=True).values[:most])

    left, rights = 1, [n]
    held = {t: top_sums(t, n) for t in (1, n)}
    best = max((nothing, 0), *((float(sums[t - 1]), -t) for t, sums in held.items()))
    while rights:
        right, length = rights[-1], rights[-1] - left
        high, k = -math.inf, left
        if length > 1:
            sizes = torch.arange(left + 1, right, device=held[left].device, dtype=torch.float64)
            share = (sizes - left) * (right + shift) / (length * (sizes + shift))
            chord = torch.lerp(held[left][left : right - 1], held[right][left : right - 1], share)
            k += 1 + int(chord.argmax())
            high = float(chord.amax())
        if high <= best[0] * (1.0 - SLACK):
            left, _ = rights.pop(), held.pop(left)
            continue
        margin = max(1, length // 8)
        k = guess if left < guess < right else min(max(k, left + margin), right - margin)
        held[k] = top_sums(k, right)
        best = max(best, (float(held[k][k - 1]), -k))  # of equal ones the smaller
        rights.append(k)
    return -best[1]


def running_sums(x: Tensor) -> Tensor:
    """Return the sums of the first 1, 2, … numbers, in an order that is the same in every run.

    A scan of one long row is cut differently in every run on CUDA; scans of several rows are not.
    """
    side = max(1, math.isqrt(len(x)))
    rows = torch.nn.functional.pad(x, (0, -len(x) % side)).view(-1, side).cumsum(1)
    ends = torch.stack([rows[:, -1]] * 2).cumsum(1)[0]
    rows[1:] += ends[:-1, None]
    return rows.reshape(-1)[: len(x)]


class Overlap(NamedTuple):
    """A mask under a mixture, and what its IoU is made of."""

    chosen: Tensor
    k: int
    inside: Tensor  # Σ p of the mask, for each member
    scale: Tensor  # weight · ω Q at the nodes of each member, Q = Π_{out} (1 - p w)
    value: float

    @classmethod
    def of(cls, members: Members, chosen: Tensor) -> Overlap:
        """Sum up the pixels in and out of a mask."""
        nodes, k = members.nodes, int(chosen.sum())
        inside = (members.p * chosen).sum(1, dtype=torch.float64)
        log_q = nodes.logs(members.p.masked_fill(chosen, 0.0))
        scale = members.weight[:, None] * nodes.weight * log_q.exp()
        value = float((scale * (-nodes.u * k).exp() * inside[:, None]).sum()) if k else 0.0
        return cls(chosen, k, inside, scale, value)

    def gains(self, members: Members) -> Tensor:
        """Return what each pixel would gain by joining the mask, or by leaving it."""
        nodes, p, inside = members.nodes, members.p, self.inside[:, None]
        joining = self.scale * (-nodes.u * (self.k + 1)).exp()
        join = reciprocals(p, joining, nodes.x_out).mul_(inside + p).sum(0)
        leaving = self.scale * (-nodes.u * max(self.k - 1, 1)).exp()
        total, tilted = leaving.sum(1)[:, None], (leaving * nodes.w_out).sum(1)[:, None]
        leave = ((total - p * tilted) * (inside - p)).sum(0) if self.k > 1 else 0.0
        gain: Tensor = torch.where(self.chosen, leave, join) - self.value
        return torch.where(gain > SLACK * self.value, gain, 0.0)


def ascend(members: Members, chosen: Tensor) -> Overlap:
    """Return a mask that no single pixel can better, or all together by a billionth.

    Many pixels move at once: those that gain most go first, twice as many as last time, and half of
    them stay where together they lose.
    """
    state, most = Overlap.of(members, chosen), None
    for _ in range(400):  # a few dozen are usual
        gain = state.gains(members)
        wanted = int((gain > 0.0).sum())
        if wanted == 0 or float(gain.sum()) <= 1e-9 * state.value:
            return state
        order = gain.sort(descending=True, stable=True).indices[:wanted][:most]
        moved = state
        while moved.value <= state.value:
            if len(order) == 0:
                return state
            flipped = state.chosen.clone()
            flipped[order] = ~flipped[order]
            moved, most = Overlap.of(members, flipped), 2 * len(order)
            order = order[: len(order) // 2]
        state = moved
    return state


def best_iou(
    p: Tensor, weight: Tensor, problem: Problem, start: Tensor
) -> tuple[Tensor, Tensor, float]:
    """Return a mask whose expected IoU no single pixel can better, and a bound on all masks.

    The best of several ascents, from a given mask and from the best ones for the mean probabilities
    and for each member; or the empty mask. In between is the lowest mean probability of the mask.
    """
    members = Members.of(p, weight, problem.zero_division, problem.coefficients)
    mean = (weight @ p.double()).clamp(0.0, 1.0)[None]
    alone = [best_masks(rows, replace(problem, zero_division=0.0)).chosen for rows in (mean, p)]
    found = [ascend(members, mask) for mask in (start, *alone[0], *alone[1])]
    best = max(found, key=lambda state: state.value)
    chosen = best.chosen & (best.value > members.nothing)
    lowest = torch.where(chosen, mean[0], math.inf).amin()
    return chosen, lowest, iou_bound(members, max(best.value, members.nothing))


def iou_bound(members: Members, value: float) -> float:
    """Bound the expected IoU of any mask by ranges of sizes, cut where the bound is highest."""
    nodes, n = members.nodes, members.p.shape[1]
    falling, p = members.p.sort(1, descending=True).values, members.p.double()

    def bound(first: int, stop: int, log_q: Tensor) -> float:
        highest = (nodes.weight * (log_q - nodes.u * first).exp()).sum(1)
        score = (members.weight * highest) @ p
        return float(score.topk(stop - 1, sorted=False).values.sum())

    nothing = torch.zeros_like(nodes.u)
    log_q = {1: nodes.logs(falling[:, 1:]) if n > 1 else nothing, n + 1: nothing}
    open_ranges = [(-bound(1, n + 1, log_q[1]), 1, n + 1)]
    for _ in range(RANGES):
        high, first, stop = open_ranges[0]
        if -high <= value * (1.0 + ENOUGH) or stop - first == 1:
            break
        heapq.heappop(open_ranges)  # first: one of its parts may have a bound as high
        middle = min(max(math.isqrt(first * stop), first + 1), stop - 1)
        below = falling[:, middle:stop]
        log_q[middle] = log_q[stop] + (nodes.logs(below) if below.shape[1] else 0.0)
        for low, end in ((first, middle), (middle, stop)):
            heapq.heappush(open_ranges, (-bound(low, end, log_q[low]), low, end))
    return min(max(-open_ranges[0][0], value), 1.0)


def mixture_masks(maps: Tensor, weights: Floats, problem: Problem) -> tuple[Rows, Tensor]:
    """Decide each set of members × sets × pixels under a mixture of the members.

    Return the decision about each set, and a bound on its measure. Raises NotAProbability if a
    value is none.
    """
    check_range(maps)
    in_place = passes.has_triton(maps)
    sets = (maps if in_place else maps.cpu()).unbind(1)
    decide_set = _set_in_place if in_place or problem.coefficients != DICE else _set_by_array
    found = [decide_set(p, weights, problem) for p in sets]
    *rows, bound = (torch.stack(each).to(maps.device) for each in zip(*found, strict=True))
    return Rows(*rows), bound


def _set_by_array(p: Tensor, weights: Floats, problem: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, as an array."""
    zero = problem.zero_division
    found = maximize_expected_f_from_mixture(as_array(p), weights=weights, zero_division=zero)
    values = found.selected, found.k, found.expected, found.std, found.threshold, found.expected
    return tuple(torch.as_tensor(np.asarray(each)) for each in values)


def _set_in_place(p: Tensor, weights: Floats, problem: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, where they are."""
    weight = torch.from_numpy(weights / weights.sum()).to(p.device)
    p, bound = p.contiguous(), 0.0
    chosen, lowest = best_dice(p, weight, problem.zero_division)
    if problem.coefficients != DICE:
        chosen, lowest, bound = best_iou(p, weight, problem, chosen)
    # Mean and standard deviation of each member, put together
    mean, std = mask_values(p, chosen.expand_as(p), problem)
    total = weight @ mean
    spread = (weight @ (std**2 + (mean - total) ** 2)).sqrt()
    # No rounding may put the bound below the value
    return chosen, chosen.sum(), total, spread, lowest, total.clamp(min=bound)
