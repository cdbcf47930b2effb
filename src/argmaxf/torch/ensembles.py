r"""The best mask under an ensemble: one member is right, pixels are independent given which.

Dice: a mask of k pixels has Σ_i Δ_i(k), the general F maximizer's form, which `expected/dependent`
decides on the CPU.

IoU has no such form: with h_z = E_z[1 / (k + R)], R the positives left out, a mask has
Σ_z π_z h_z Σ_{i in} p_zi, and h_z depends on the mask, too. An ascent finds a mask that no single
pixel can better, and a bound proves how good it is. Since h_z is highest for the k pixels most
probable to member z, H_z(k), and H_z falls with k, masks of a ≤ k < b pixels have at most the sum
of the b - 1 largest Σ_z π_z H_z(a) p_zi.
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
from argmaxf.problem import Problem
from argmaxf.torch import tensors

SLACK = 1e-12  # a gain of this part of the value is rounding
ENOUGH = 1e-4  # the gap of IoU to stop at
RANGES = 60  # of sizes looked at, at most, for the bound of IoU


class Members(NamedTuple):
    """The pixels of one image × class as each member of an ensemble sees them."""

    p: Tensor  # members × pixels
    weight: Tensor  # adding up to one
    nodes: tensors.RowNodes
    nothing: float  # what the empty mask is worth


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
        join = tensors.reciprocals(p, joining, nodes.x_out).mul_(inside + p).sum(0)
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
    count, n = p.shape
    every_size = np.ones(count), np.full(count, float(n))
    nodes = tensors.RowNodes.of(p, *every_size, problem.coefficients)
    nothing = problem.zero_division * float(weight @ tensors.none_there(p))
    members = Members(p, weight, nodes, nothing)
    mean = (weight @ p.double()).clamp(0.0, 1.0)[None]
    alone = [
        tensors.best_masks(rows, replace(problem, zero_division=0.0)).masks for rows in (mean, p)
    ]
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


def mixture_masks(maps: Tensor, weights: Floats, problem: Problem) -> tensors.Segmentation:
    """Decide each set of members × sets × pixels under a mixture of the members.

    Return the decision about each set, for IoU with a bound. Raises NotAProbability if a value is
    none.
    """
    tensors.check_range(maps)
    found = [_decide_set(p, weights, problem) for p in maps.unbind(1)]
    each = (torch.stack(field).to(maps.device) for field in zip(*found, strict=True))
    masks, expected, std, k, threshold, bound = each
    proven = bound if problem.coefficients == tensors.IOU else None
    return tensors.Segmentation(masks, expected, std, k, threshold, bound=proven)


def _decide_set(p: Tensor, weights: Floats, problem: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels: Dice as an array, IoU where the pixels are."""
    dice = tensors.in_kind(
        maximize_expected_f_from_mixture(
            tensors.as_array(p.cpu()), weights=weights, zero_division=problem.zero_division
        ),
        torch.empty(0),
    )
    if problem.coefficients == tensors.DICE:
        return dice.selected, dice.expected, dice.std, dice.k, dice.threshold, dice.expected
    p = p.contiguous() if tensors.has_triton(p) else p.cpu().contiguous()
    weight = torch.from_numpy(weights / weights.sum()).to(p.device)
    chosen, lowest, bound = best_iou(p, weight, problem, dice.selected.to(p.device))
    # Mean and standard deviation of each member, put together
    mean, std = tensors.mask_values(p, chosen.expand_as(p), problem)
    total = weight @ mean
    spread = (weight @ (std**2 + (mean - total) ** 2)).sqrt()
    # No rounding may put the bound below the value
    return chosen, total, spread, chosen.sum(), lowest, total.clamp(min=bound)
