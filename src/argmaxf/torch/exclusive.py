r"""One class for each pixel, with the highest expected mean Dice and a proof, on any device.

The shared-rows decision (docs/shared-rows.md) in passes over tensors. With a_m and u_m the nodes of
a class, a set of s pixels has Σ_i Σ_m a_m e^{-u_m s} π_im: a class is its size and one number for
each node. Pixels take the class that gains most by them, many at a time (`sizes.ascend`); prices on
pixels bound what any labels can be worth, and steps along their subgradient lower the bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.validation import NotAProbability
from argmaxf.expected.macro import maximize_expected_macro_f
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import NodeTilt, RowNodes, factors, none_there, pixel_logs, reciprocals
from argmaxf.torch.pixels import Segmentation, check_range, counted_of, first_bad, kept_of, shaped
from argmaxf.torch.sizes import Additions, ascend, best_size, mark_top
from argmaxf.torch.tensors import as_array, mask_values

ENOUGH = 1e-6  # the gap to stop at
NO_CLASS = -1


class Classes(NamedTuple):
    """The classes of an image: pixels, nodes, and what the empty set of each is worth."""

    p: Tensor  # classes × pixels
    u: Tensor
    tilt: NodeTilt
    log_a: Tensor  # log of c ω G / classes
    nothing: Tensor
    shift: list[float]  # the most positives that each class plausibly has
    everywhere: bool  # every pixel has a class, or some may have none

    @classmethod
    def of(cls, p: Tensor, zero: float, everywhere: bool) -> Classes:
        """Prepare the classes of one image; `zero` is the value of 0/0."""
        (count, n), dice = p.shape, Dice().coefficients()
        nodes = RowNodes.of(p, np.ones(count), np.full(count, float(n)), dice)
        log_a = pixel_logs(p, nodes) + (dice.c / count * nodes.weight).log()
        nothing, most = zero / count * none_there(p), nodes.most.tolist()
        return cls(p, nodes.u, nodes.inside, log_a, nothing, most, everywhere)

    def scale(self, size: Tensor) -> Tensor:
        """a e^{-us} at the nodes."""
        return (self.log_a - self.u * size[:, None]).exp()

    def tilt_of(self, c: int) -> NodeTilt:
        """Return the tilt of one class."""
        return NodeTilt(*(each[c : c + 1] for each in self.tilt))

    def added(self, c: int, p: Tensor, scale: Tensor) -> Tensor:
        """Σ_m scale_m π_im for some pixels of a class."""
        tilt = self.tilt_of(c)
        return reciprocals(p[None], (scale * tilt.x[0])[None], tilt)[0].mul_(p)


def pi_sums(p: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ π = Σ p x / (1 - p w) over the pixels of one row, at each node."""
    total = torch.zeros_like(tilt.w)
    for some, each in factors(p, tilt.x):
        total += (some / each).sum(1)
    return total * tilt.x


class Labelled(NamedTuple):
    """Labels of all pixels, and what each class is worth under them."""

    labels: Tensor
    size: Tensor
    pi: Tensor  # Σ π over each class, for each node
    values: Tensor
    value: float

    @classmethod
    def of(cls, classes: Classes, labels: Tensor) -> Labelled:
        """Sum up the pixels of each class."""
        sums, sizes = [], []
        for c in range(len(classes.p)):
            own = classes.p[c][labels == c][None]
            sizes.append(own.shape[1])
            sums.append(pi_sums(own, classes.tilt_of(c)))
        size, pi = torch.tensor(sizes, device=labels.device).double(), torch.cat(sums)
        values = torch.where(size > 0, (classes.scale(size) * pi).sum(1), classes.nothing)
        return cls(labels, size, pi, values, float(values.sum()))


class Wishes(NamedTuple):
    """For each pixel what its class gains by it, the best other class, and what that would gain."""

    kept: Tensor
    other: Tensor
    left: Tensor


def wishes(classes: Classes, state: Labelled) -> Wishes:
    """Look at every class of every pixel; to have none gains nothing, if that is allowed."""
    size, pi, nothing = state.size, state.pi, classes.nothing
    now, joining = classes.scale(size), classes.scale(size + 1.0)
    leaving = torch.where(size[:, None] > 0, classes.scale(size - 1.0), 0.0)
    join = ((joining - now) * pi).sum(1) - torch.where(size == 0, nothing, 0.0)
    stay = ((now - leaving) * pi).sum(1) - torch.where(size == 1, nothing, 0.0)
    kept = torch.zeros(classes.p.shape[1], dtype=torch.float64, device=classes.p.device)
    left = torch.full_like(kept, -math.inf if classes.everywhere else 0.0)
    other = torch.full_like(state.labels, NO_CLASS)
    for c, p in enumerate(classes.p):
        own = state.labels == c
        gain = join[c] + classes.added(c, p, joining[c])
        kept[own] = stay[c] + classes.added(c, p[own], leaving[c])
        kept[own] += 1e-14 * state.values[c]  # a gain of this part is rounding
        better = (gain > left) & ~own
        left = torch.where(better, gain, left)
        other = torch.where(better, c, other)
    return Wishes(kept, other, left)


def improved(classes: Classes, labels: Tensor) -> Labelled:
    """Let pixels move from these labels until together they gain next to nothing."""
    wanted = torch.empty_like(labels)

    def gains(state: Labelled) -> Tensor:
        kept, other, left = wishes(classes, state)
        wanted.copy_(other)
        return left - kept if len(classes.p) > 1 or not classes.everywhere else 0.0 * kept

    def move(state: Labelled, places: Tensor) -> Labelled:
        moved = state.labels.clone()
        moved[places] = wanted[places]
        return Labelled.of(classes, moved)

    return emptied(classes, ascend(Labelled.of(classes, labels), gains, move, ENOUGH / 100.0))


def emptied(classes: Classes, state: Labelled) -> Labelled:
    """Give away all pixels of a class at once, where it is worth more empty: one alone may not."""
    if classes.everywhere and len(classes.p) == 1:
        return state
    better_empty = (state.size > 0) & (classes.nothing > state.values)
    for c in better_empty.nonzero()[:, 0].tolist():
        other = wishes(classes, state).other
        moved = Labelled.of(classes, torch.where(state.labels == c, other, state.labels))
        state = moved if moved.value > state.value else state
    return state


class Proof(NamedTuple):
    """What prices prove: a bound, what each class wants, and how many too few want each pixel."""

    bound: float
    wanted: Tensor
    excess: Tensor


def first_prices(classes: Classes, state: Labelled) -> Tensor:
    """Return prices midway between what each pixel's class gains by it and the best other."""
    kept, _, left = wishes(classes, state)
    price = torch.where(left > -math.inf, (kept + left) / 2.0, kept - kept.abs())
    return torch.where(state.labels == NO_CLASS, 0.0, price)


def priced(classes: Classes, c: int, price: Tensor) -> Additions:
    """Return what each pixel adds to a class, less its price, as a function of the set's size."""

    def additions(t: float) -> Tensor:
        scale = (classes.log_a[c] - classes.u[c] * t).exp()
        return classes.added(c, classes.p[c], scale) - price

    return additions


def prove(classes: Classes, price: Tensor, sizes: list[int], slack: float) -> Proof:
    """Bound the value of any labels by prices; `sizes` has guesses, and gets the best sizes."""
    count, n = classes.p.shape
    wanted = torch.empty(classes.p.shape, dtype=torch.bool, device=price.device)
    bound = float(price.sum())
    nothing, shift = classes.nothing.tolist(), classes.shift
    for c in range(count):
        additions = priced(classes, c, price)
        found = best_size(additions, n, shift[c], sizes[c], nothing[c], slack, 0.0)
        bound, sizes[c] = bound + found.bound, found.size
        wanted[c] = mark_top(additions(float(max(found.size, 1))), found.size)[0]
    excess = 1.0 - wanted.sum(0).double()
    if not classes.everywhere:  # a pixel that costs nothing may be left without a class
        excess = torch.where((price == 0.0) & (excess > 0.0), 0.0, excess)
    return Proof(bound, wanted, excess)


def decide_image(p: Tensor, zero: float, everywhere: bool) -> tuple[Tensor, float]:
    """Return the class of each pixel of one image (classes × pixels), and a bound on the mean Dice.

    Stops at a gap of 1e-6, or as small a one as price steps make it. Holds about a dozen numbers
    for each pixel, and a mark for each pixel and class.
    """
    classes = Classes.of(p, zero, everywhere)
    best = improved(classes, p.argmax(0))
    price, bound = first_prices(classes, best), math.inf
    prices, length, failed, halved = price, 1.0, 0, 0
    sizes = best.size.long().tolist()
    slack = ENOUGH / 2.0 * best.value / len(p)
    patience, halvings = 4, 4  # steps that may fail before they are halved, and how often
    for _ in range(60):
        proof = prove(classes, price, sizes, slack)
        failed = 0 if bound - proof.bound > 0.01 * (proof.bound - best.value) else failed + 1
        if proof.bound < bound:
            bound, prices = proof.bound, price
        if bound - best.value > ENOUGH * bound:
            other = improved(classes, _settled(proof.wanted, best.labels, everywhere))
            best = other if other.value > best.value else best
        is_proven = bound - best.value <= ENOUGH * bound
        if is_proven or halved == halvings or not bool(proof.excess.any()):
            break
        if failed == patience:
            length, failed, halved, price = length / 2.0, 0, halved + 1, prices
        step = length * max(proof.bound - best.value, 0.0)
        price = price - step / float(proof.excess @ proof.excess) * proof.excess
        price = price if everywhere else price.clamp(min=0.0)
    return best.labels, max(bound, best.value)


def _settled(wanted: Tensor, labels: Tensor, everywhere: bool) -> Tensor:
    """Return labels that follow what the classes want; where several want a pixel, the old one.

    A pixel that no class wants keeps its class if it must have one.
    """
    count = wanted.sum(0)
    settled = torch.where(count == 1, wanted.long().argmax(0), labels)
    return settled if everywhere else settled.masked_fill(count == 0, NO_CLASS)


def segment_exclusively(
    probs: Tensor, pixels: Tensor, ignore: Tensor | None, background: bool, zero: float
) -> Segmentation:
    """Give each pixel to one class, or leave it to the background where that has no value."""
    kept = kept_of(pixels, background)
    counted = torch.ones_like(kept[:, 0], dtype=torch.bool)
    if ignore is not None:
        counted = counted_of(ignore, probs)
    labels = torch.full(counted.shape, NO_CLASS, device=probs.device)
    bound = []
    decide_cells = _decide_array if passes.is_on_cpu(kept) else decide_image
    for image, where in enumerate(counted):
        cells = kept[image] if ignore is None else kept[image][:, where]
        if cells.shape[1] == 0:  # all pixels are ignored
            bound.append(zero)
            continue
        try:
            check_range(cells)
        except NotAProbability:
            raise first_bad(probs, ignore, None if background else 1) from None
        labels[image, where], best = decide_cells(cells, zero, background)
        bound.append(best)
    place = torch.arange(kept.shape[1], device=probs.device)[:, None]
    rows, chosen = kept.flatten(0, 1), (labels[:, None] == place).flatten(0, 1)
    mean, std = mask_values(rows, chosen, Problem.of(1.0, Dice(), zero))
    lowest = torch.where(chosen, rows.double(), torch.inf).amin(1)
    answer = shaped(probs, kept, chosen, chosen.sum(1), mean, std, lowest)
    labels = (labels if background else labels + 1).masked_fill(~counted, -1)
    proven = torch.tensor(bound, dtype=torch.float64, device=probs.device)
    return replace(
        answer,
        labels=labels.view(probs.shape[0], *probs.shape[2:]),
        bound=torch.maximum(proven, answer.mean),  # no rounding puts it below the value
    )


def _decide_array(cells: Tensor, zero: float, everywhere: bool) -> tuple[Tensor, float]:
    """Return the class of each pixel, and the bound, by the decision for arrays."""
    rule: dict[str, Any] = {"labels_per_row" if everywhere else "max_labels_per_row": 1}
    p = as_array(cells).T.astype(np.float64)
    found: Any = maximize_expected_macro_f(p, zero_division=zero, **rule)
    labels = np.where(found.selected.any(1), found.selected.argmax(1), NO_CLASS)
    return torch.from_numpy(labels), found.bound
