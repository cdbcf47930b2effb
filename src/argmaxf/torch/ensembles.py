r"""The best mask under an ensemble: one member is right, pixels are independent given which.

Dice: a mask of k pixels has Σ_i Δ_i(k), the general F maximizer's form (`expected/dependent`), so
that `sizes.best_size` finds the optimum. IoU has no such form: with h_z = E_z[1 / (k + R)], R the
positives left out, a mask has Σ_z π_z h_z Σ_{i in} p_zi, and h_z depends on the mask, too. An
ascent finds a mask that no single pixel can better, and a bound proves how good it is. Since h_z is
highest for the k pixels most probable to member z, H_z(k), and H_z falls with k, masks of
a ≤ k < b pixels have at most the sum of the b - 1 largest Σ_z π_z H_z(a) p_zi.
"""

from __future__ import annotations

import heapq
import math
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
from argmaxf.torch.sizes import ascend, best_size, mark_top
from argmaxf.torch.tensors import Rows, as_array, best_masks, check_range, mask_values

DICE = Dice().coefficients()
SLACK = 1e-12  # a range of sizes is closed where its bound is lower than the best by this part
ENOUGH = 1e-4  # the gap of IoU to stop at
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

    Of equal pixels the first are in the mask.
    """
    members = Members.of(p, weight, zero, DICE)
    nodes = members.nodes
    scale = DICE.c * weight[:, None] * nodes.weight * nodes.logs(p).exp() * nodes.x_in

    def additions(t: float) -> Tensor:
        return reciprocals(p, scale * (-nodes.u * t).exp(), nodes.x_in).mul_(p).sum(0)

    guess, most = float(weight @ p.sum(1, dtype=torch.float64)), float(nodes.most.max())
    k, _ = best_size(additions, p.shape[1], most, round(guess), members.nothing, 0.0, SLACK)
    return mark_top(additions(float(max(k, 1))), k)


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


def flip_gains(members: Members, state: Overlap) -> Tensor:
    """Return what each pixel would gain by joining the mask, or by leaving it."""
    nodes, p, inside = members.nodes, members.p, state.inside[:, None]
    joining = state.scale * (-nodes.u * (state.k + 1)).exp()
    join = reciprocals(p, joining, nodes.x_out).mul_(inside + p).sum(0)
    leaving = state.scale * (-nodes.u * max(state.k - 1, 1)).exp()
    total, tilted = leaving.sum(1)[:, None], (leaving * nodes.w_out).sum(1)[:, None]
    leave = ((total - p * tilted) * (inside - p)).sum(0) if state.k > 1 else 0.0
    gain: Tensor = torch.where(state.chosen, leave, join) - state.value
    return torch.where(gain > SLACK * state.value, gain, 0.0)


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

    def move(state: Overlap, places: Tensor) -> Overlap:
        chosen = state.chosen.clone()
        chosen[places] = ~chosen[places]
        return Overlap.of(members, chosen)

    found = [
        ascend(Overlap.of(members, mask), lambda state: flip_gains(members, state), move, 1e-9)
        for mask in (start, *alone[0], *alone[1])
    ]
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
    by_array = problem.coefficients == DICE and not passes.has_triton(maps)
    decide_set = _set_by_array if by_array else _set_in_place
    found = [decide_set(p, weights, problem) for p in maps.unbind(1)]
    *rows, bound = map(torch.stack, zip(*found, strict=True))
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
