r"""One class for each pixel, with the highest expected mean Dice and a proof, on any device.

The shared-rows decision (docs/background/labels-per-row.md) in passes over tensors. With a_m and
u_m the nodes of a class, a set of s pixels has Σ_i Σ_m a_m e^{-u_m s} π_im: a class is its size and
one number for each node. Pixels take the class that gains most by them, many at a time
(`sizes.ascend`); prices on pixels bound what any labels can be worth, and steps along their
subgradient lower the bound.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf.expected.macro import maximize_expected_macro_f
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import ABSENT, RowNodes, node_sums, none_there, pixel_logs, reciprocals
from argmaxf.torch.sizes import ascend, best_size, mark_top
from argmaxf.torch.tensors import Rows, as_array, check_range, mask_values

DICE = Dice().coefficients()
ENOUGH = 1e-6  # the gap to stop at
NO_CLASS = -1


class Classes(NamedTuple):
    """The classes of an image: pixels, nodes, and what the empty set of each is worth."""

    p: Tensor  # classes × pixels
    nodes: RowNodes
    log_a: Tensor  # log of c ω G / classes
    nothing: Tensor
    everywhere: bool  # every pixel has a class, or some may have none

    @classmethod
    def of(cls, p: Tensor, zero: float, everywhere: bool) -> Classes:
        """Prepare the classes of one image; `zero` is the value of 0/0."""
        count, n = p.shape
        nodes = RowNodes.of(p, np.ones(count), np.full(count, float(n)), DICE)
        log_a = pixel_logs(p, nodes) + (DICE.c / count * nodes.weight).log()
        return cls(p, nodes, log_a, zero / count * none_there(p), everywhere)

    def scale(self, size: Tensor) -> Tensor:
        """a e^{-us} at the nodes."""
        return (self.log_a - self.nodes.u * size[:, None]).exp()

    def added(self, c: int, p: Tensor, scale: Tensor) -> Tensor:
        """Σ_m scale_m π_im for some pixels of a class."""
        x = self.nodes.x_in[c]
        return reciprocals(p[None], (scale * x)[None], x[None])[0].mul_(p)


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
        count, n = classes.p.shape
        others = labels != torch.arange(count, device=labels.device)[:, None]
        absent = others.sum(1).double()
        w, x = (each.cpu().numpy() for each in (classes.nodes.w_in, classes.nodes.x_in))
        sums = node_sums(classes.p.masked_fill(others, ABSENT), w, x, absent.cpu().numpy())
        size, pi = n - absent, torch.from_numpy(sums[:, 1].copy()).to(labels.device)
        values = torch.where(size > 0, (classes.scale(size) * pi).sum(1), classes.nothing)
        return cls(labels, size, pi, values, float(values.sum()))


def wishes(classes: Classes, state: Labelled) -> tuple[Tensor, Tensor, Tensor]:
    """Return what each pixel's class gains by it, the best other class, and what that would gain.

    To have no class gains nothing, if that is allowed.
    """
    size, pi, nothing = state.size, state.pi, classes.nothing
    now, joining = classes.scale(size), classes.scale(size + 1.0)
    leaving = torch.where(size[:, None] > 0, classes.scale(size - 1.0), 0.0)
    join = ((joining - now) * pi).sum(1) - torch.where(size == 0, nothing, 0.0)
    stay = ((now - leaving) * pi).sum(1) - torch.where(size == 1, nothing, 0.0)
    stay += 1e-14 * state.values  # a gain of this part is rounding
    kept = torch.zeros(classes.p.shape[1], dtype=torch.float64, device=classes.p.device)
    left = torch.full_like(kept, -math.inf if classes.everywhere else 0.0)
    other = torch.full_like(state.labels, NO_CLASS)
    for c, p in enumerate(classes.p):
        own = state.labels == c
        gain = join[c] + classes.added(c, p, joining[c])
        kept[own] = stay[c] + classes.added(c, p[own], leaving[c])
        better = (gain > left) & ~own
        left = torch.where(better, gain, left)
        other = torch.where(better, c, other)
    return kept, other, left


def improved(classes: Classes, labels: Tensor) -> Labelled:
    """Let pixels move from these labels until together they gain next to nothing."""
    wanted = torch.empty_like(labels)

    def gains(state: Labelled) -> Tensor:
        kept, other, left = wishes(classes, state)
        wanted.copy_(other)
        return left - kept

    def move(state: Labelled, places: Tensor) -> Labelled:
        moved = state.labels.clone()
        moved[places] = wanted[places]
        return Labelled.of(classes, moved)

    state: Labelled = ascend(Labelled.of(classes, labels), gains, move, ENOUGH / 100.0)
    if classes.everywhere and len(classes.p) == 1:
        return state
    # All pixels of a class at once, where it is worth more empty: one alone may not leave
    better_empty = (state.size > 0) & (classes.nothing > state.values)
    for c in better_empty.nonzero()[:, 0].tolist():
        _, other, _ = wishes(classes, state)
        moved = Labelled.of(classes, torch.where(state.labels == c, other, state.labels))
        state = moved if moved.value > state.value else state
    return state


def first_prices(classes: Classes, state: Labelled) -> Tensor:
    """Return prices midway between what each pixel's class gains by it and the best other."""
    kept, _, left = wishes(classes, state)
    price = torch.where(left > -math.inf, (kept + left) / 2.0, kept - kept.abs())
    return torch.where(state.labels == NO_CLASS, 0.0, price)


def prove(
    classes: Classes, price: Tensor, sizes: list[int], slack: float
) -> tuple[float, Tensor, Tensor]:
    """Return a bound on any labels that prices prove, what each class wants, and the excess.

    That is how many classes too few want each pixel. `sizes` has guesses, and gets the best sizes.
    """
    n, u = classes.p.shape[1], classes.nodes.u
    wanted, bound = [], float(price.sum())
    for c, (p, nothing) in enumerate(zip(classes.p, classes.nothing.tolist(), strict=True)):

        def additions(t: float, c: int = c, p: Tensor = p) -> Tensor:
            return classes.added(c, p, (classes.log_a[c] - u[c] * t).exp()) - price

        shift = float(classes.nodes.most[c])
        sizes[c], highest = best_size(additions, n, shift, sizes[c], nothing, slack, 0.0)
        bound += highest
        wanted.append(mark_top(additions(float(max(sizes[c], 1))), sizes[c])[0])
    marks = torch.stack(wanted)
    excess = 1.0 - marks.sum(0).double()
    if not classes.everywhere:  # a pixel that costs nothing may be left without a class
        excess = torch.where((price == 0.0) & (excess > 0.0), 0.0, excess)
    return bound, marks, excess


def decide_image(p: Tensor, zero: float, everywhere: bool) -> tuple[Tensor, float]:
    """Return the class of each pixel of one image (classes × pixels), and a bound on the mean Dice.

    Stops at a gap of 1e-6, or as small a one as price steps make it. Holds about a dozen numbers
    for each pixel, and a copy and a mark for each pixel and class.
    """
    classes = Classes.of(p, zero, everywhere)
    best = improved(classes, p.argmax(0))
    price, bound = first_prices(classes, best), math.inf
    prices, length, failed, halved = price, 1.0, 0, 0
    sizes = best.size.long().tolist()
    slack = ENOUGH / 2.0 * best.value / len(p)
    patience, halvings = 4, 4  # steps that may fail before they are halved, and how often
    for _ in range(60):
        proven, wanted, excess = prove(classes, price, sizes, slack)
        failed = 0 if bound - proven > 0.01 * (proven - best.value) else failed + 1
        if proven < bound:
            bound, prices = proven, price
        if bound - best.value > ENOUGH * bound:
            other = improved(classes, _settled(wanted, best.labels, everywhere))
            best = other if other.value > best.value else best
        is_proven = bound - best.value <= ENOUGH * bound
        if is_proven or halved == halvings or not bool(excess.any()):
            break
        if failed == patience:
            length, failed, halved, price = length / 2.0, 0, halved + 1, prices
        step = length * max(proven - best.value, 0.0)
        price = price - step / float(excess @ excess) * excess
        price = price if everywhere else price.clamp(min=0.0)
    return best.labels, max(bound, best.value)


def _settled(wanted: Tensor, labels: Tensor, everywhere: bool) -> Tensor:
    """Return labels that follow what the classes want; where several want a pixel, the old one.

    A pixel that no class wants keeps its class if it must have one.
    """
    count = wanted.sum(0)
    settled = torch.where(count == 1, wanted.long().argmax(0), labels)
    return settled if everywhere else settled.masked_fill(count == 0, NO_CLASS)


def assign_classes(
    maps: Tensor, counted: Tensor | None, zero: float, everywhere: bool
) -> tuple[Rows, Tensor, Tensor]:
    """Give each pixel of batch × classes × pixels one class, or none where that is allowed.

    Return the decision about each image × class, the labels, and a bound on the mean Dice of each
    image. Pixels that do not count have no class. Raises NotAProbability if a value is none.
    """
    decide = _decide_array if passes.is_on_cpu(maps) else decide_image
    labels, bound = torch.full_like(maps[:, 0], NO_CLASS, dtype=torch.int64), []
    for image, pixels in enumerate(maps):
        where = slice(None) if counted is None else counted[image]
        cells, best = pixels[:, where], zero  # of an image whose pixels are all ignored
        if cells.shape[1]:
            check_range(cells)
            labels[image, where], best = decide(cells, zero, everywhere)
        bound.append(best)
    place = torch.arange(maps.shape[1], device=maps.device)[:, None]
    rows, chosen = maps.flatten(0, 1), (labels[:, None] == place).flatten(0, 1)
    mean, std = mask_values(rows, chosen, Problem.of(1.0, Dice(), zero))
    lowest = torch.where(chosen, rows.double(), torch.inf).amin(1)
    proven = torch.tensor(bound, dtype=torch.float64, device=maps.device)
    return Rows(chosen, chosen.sum(1), mean, std, lowest), labels, proven


def _decide_array(cells: Tensor, zero: float, everywhere: bool) -> tuple[Tensor, float]:
    """Return the class of each pixel, and the bound, by the decision for arrays."""
    rule: dict[str, Any] = {"labels_per_row" if everywhere else "max_labels_per_row": 1}
    p = as_array(cells).T.astype(np.float64)
    found: Any = maximize_expected_macro_f(p, zero_division=zero, **rule)
    labels = np.where(found.selected.any(1), found.selected.argmax(1), NO_CLASS)
    return torch.from_numpy(labels), found.bound
