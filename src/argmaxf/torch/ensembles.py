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
from numpy.typing import ArrayLike
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import NotAProbability, as_weights, ones_unless
from argmaxf.expected.dependent import maximize_expected_f_from_mixture
from argmaxf.measures import Coefficients, Dice
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import RowNodes, none_there, pixel_logs, reciprocals
from argmaxf.torch.pixels import (
    Segmentation,
    check_floating,
    check_range,
    first_bad,
    kept_of,
    pixels_of,
    shaped,
    table_of,
)
from argmaxf.torch.sizes import ascend, best_size, mark_top
from argmaxf.torch.tensors import as_array, best_masks, mask_values

DICE = Dice().coefficients()

SLACK = 1e-12  # a range of sizes is closed where its bound is lower than the best by this part
ENOUGH = 1e-4  # the gap of IoU to stop at
RANGES = 60  # of sizes looked at, at most, for the bound of IoU


class MixtureMask(NamedTuple):
    """A mask, the lowest contribution in it, and a bound on what any mask is worth."""

    chosen: Tensor
    lowest: Tensor
    bound: float


class Members(NamedTuple):
    """The pixels of one image × class as each member of an ensemble sees them."""

    p: Tensor  # members × pixels
    weight: Tensor  # adding up to one
    nodes: RowNodes
    most: float  # that positives plausibly add to the denominator

    @classmethod
    def of(cls, p: Tensor, weight: Tensor, c: Coefficients) -> Members:
        """Choose nodes for every size of a mask."""
        members, n = p.shape
        nodes = RowNodes.of(p, np.ones(members), np.full(members, float(n)), c)
        return cls(p, weight, nodes, max(c.b_in, c.b_out) * float(nodes.most.max()))

    def nothing_there(self) -> float:
        """P(S = 0)."""
        return float(self.weight @ none_there(self.p))


def mixture_value(
    p: Tensor, weight: Tensor, chosen: Tensor, chance: Problem
) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of a measure: those of each member, put together."""
    mean, std = mask_values(p, chosen.expand_as(p), chance)
    total = weight @ mean
    return total, (weight @ (std**2 + (mean - total) ** 2)).sqrt()


def best_dice(p: Tensor, weight: Tensor, coefficients: Coefficients, zero: float) -> MixtureMask:
    """Return the mask with the highest expected Dice (F_β), of equal pixels the first."""
    members = Members.of(p, weight, coefficients)
    nodes = members.nodes
    g = pixel_logs(p, nodes).exp()
    scale = coefficients.c * weight[:, None] * nodes.weight * g * nodes.inside.x

    def additions(t: float) -> Tensor:
        found = reciprocals(p, scale * (-nodes.u * t).exp(), nodes.inside)
        return found.mul_(p).sum(0)

    guess = round(float(weight @ p.sum(1, dtype=torch.float64)))
    nothing = zero * members.nothing_there() if zero > 0.0 else 0.0
    found = best_size(additions, p.shape[1], members.most, guess, nothing, 0.0, SLACK)
    chosen, lowest = mark_top(additions(float(max(found.size, 1))), found.size)
    return MixtureMask(chosen, lowest, found.value)


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
        log_q = pixel_logs(members.p.masked_fill(chosen, 0.0), nodes)
        scale = members.weight[:, None] * nodes.weight * log_q.exp()
        value = float((scale * (-nodes.u * k).exp() * inside[:, None]).sum()) if k else 0.0
        return cls(chosen, k, inside, scale, value)


def flip_gains(members: Members, state: Overlap) -> Tensor:
    """Return what each pixel would gain by joining the mask, or by leaving it."""
    nodes, p, inside = members.nodes, members.p, state.inside[:, None]
    joining = state.scale * (-nodes.u * (state.k + 1)).exp()
    join = reciprocals(p, joining, nodes.outside).mul_(inside + p).sum(0)
    leaving = state.scale * (-nodes.u * max(state.k - 1, 1)).exp()
    total, tilted = leaving.sum(1)[:, None], (leaving * nodes.outside.w).sum(1)[:, None]
    leave = ((total - p * tilted) * (inside - p)).sum(0) if state.k > 1 else 0.0
    gain: Tensor = torch.where(state.chosen, leave, join) - state.value
    return torch.where(gain > SLACK * state.value, gain, 0.0)


def best_iou(p: Tensor, weight: Tensor, chance: Problem, start: Tensor) -> MixtureMask:
    """Return a mask whose expected IoU no single pixel can better, and a bound on all masks.

    The best of several ascents, from a given mask and from the best ones for the mean probabilities
    and for each member; or the empty mask.
    """
    members = Members.of(p, weight, chance.coefficients)
    mean = (weight @ p.double()).clamp(0.0, 1.0)[None]
    alone = [best_masks(rows, replace(chance, zero_division=0.0))[1] for rows in (mean, p)]

    def move(state: Overlap, places: Tensor) -> Overlap:
        chosen = state.chosen.clone()
        chosen[places] = ~chosen[places]
        return Overlap.of(members, chosen)

    found = [
        ascend(Overlap.of(members, mask), lambda state: flip_gains(members, state), move, 1e-9)
        for mask in (start, *alone[0], *alone[1])
    ]
    best = max(found, key=lambda state: state.value)
    zero = chance.zero_division
    nothing = zero * members.nothing_there() if zero > 0.0 else 0.0
    chosen = best.chosen & (best.value > nothing)
    lowest = torch.where(chosen, mean[0], math.inf).amin()
    return MixtureMask(chosen, lowest, iou_bound(members, max(best.value, nothing)))


def iou_bound(members: Members, value: float) -> float:
    """Bound the expected IoU of any mask by ranges of sizes, cut where the bound is highest."""
    nodes, n = members.nodes, members.p.shape[1]
    falling, p = members.p.sort(1, descending=True).values, members.p.double()

    def log_below(first: int, stop: int, rest: Tensor) -> Tensor:
        """Add the pixels from the first to before the last to a sum over those below."""
        some = falling[:, first:stop]
        return rest + pixel_logs(some, nodes) if some.shape[1] else rest

    def bound(first: int, stop: int, log_q: Tensor) -> float:
        highest = (nodes.weight * (log_q - nodes.u * first).exp()).sum(1)
        return sum_of_largest((members.weight * highest) @ p, stop - 1)

    nothing = torch.zeros_like(nodes.u)
    below = log_below(1, n, nothing)
    open_ranges = [(-bound(1, n + 1, below), 1, n + 1)]
    log_q = {1: below, n + 1: nothing}
    for _ in range(RANGES):
        high, first, stop = open_ranges[0]
        if -high <= value * (1.0 + ENOUGH) or stop - first == 1:
            break
        heapq.heappop(open_ranges)  # first: one of its parts may have a bound as high
        middle = min(max(math.isqrt(first * stop), first + 1), stop - 1)
        log_q[middle] = log_below(middle, stop, log_q[stop])
        for low, end in ((first, middle), (middle, stop)):
            heapq.heappush(open_ranges, (-bound(low, end, log_q[low]), low, end))
    return min(max(-open_ranges[0][0], value), 1.0)


def sum_of_largest(score: Tensor, k: int) -> float:
    """Return the sum of the k largest numbers, without sorting."""
    least = score.kthvalue(len(score) - k + 1).values
    above = score > least
    total = (score * above).sum() + (k - above.sum()) * least
    return float(total)


def segment_ensemble(
    probs: Tensor,
    ignore: Tensor | None,
    weights: ArrayLike | None,
    background: bool,
    chance: Problem,
) -> Segmentation:
    """Decide each image × class under a mixture of the ensemble's members."""
    check_floating(probs)
    if probs.dim() < 4 or probs.numel() == 0:
        shape = tuple(probs.shape)
        raise ValueError(
            f"probs must be members × batch × classes × pixels, none empty; got shape {shape}"
        )
    pixels = torch.stack([pixels_of(member, ignore) for member in probs])
    kept = kept_of(pixels, background)
    try:
        check_range(kept)
    except NotAProbability:
        axis = None if background else 2
        raise first_bad(pixels.view(probs.shape), None, axis) from None
    given = ones_unless(as_weights(weights, len(probs), "weights"), len(probs))
    is_dice = chance.coefficients == DICE
    decide_set = _set_by_numpy if is_dice and passes.is_on_cpu(pixels) else _set_in_place
    found = [decide_set(p, given, chance) for p in kept.flatten(1, 2).unbind(1)]
    chosen, k, mean, std, lowest, bound = map(torch.stack, zip(*found, strict=True))
    answer = shaped(probs[0], kept[0], chosen, k, mean, std, lowest)
    if is_dice:
        return answer
    return replace(answer, bound=table_of(probs[0], kept[0], bound, torch.nan))


def _set_by_numpy(p: Tensor, weights: Floats, chance: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, as an array."""
    zero = chance.zero_division
    found = maximize_expected_f_from_mixture(as_array(p), weights=weights, zero_division=zero)
    values = found.selected, found.k, found.expected, found.std, found.threshold, found.expected
    return tuple(torch.as_tensor(np.asarray(each)) for each in values)


def _set_in_place(p: Tensor, weights: Floats, chance: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, where they are."""
    weight = torch.from_numpy(weights / weights.sum()).to(p.device)
    p = p.contiguous()
    found = best_dice(p, weight, DICE, chance.zero_division)
    if chance.coefficients != DICE:
        found = best_iou(p, weight, chance, found.chosen)
    mean, std = mixture_value(p, weight, found.chosen, chance)
    bound = mean.clamp(min=found.bound)  # that no rounding puts the bound below the value
    return found.chosen, found.chosen.sum(), mean, std, found.lowest, bound
