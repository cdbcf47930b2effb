r"""One class for each pixel, with the highest expected mean Dice and a proof, on any device.

The shared-rows decision (docs/background/labels-per-row.md) in few passes over tensors. With a_m
and u_m the nodes of a class, s pixels have f = Σ_m a_m e^{-u_m s} Σ_i π_im: a class is its size and
one number for each node. Where many pixels are positive that is nearly the ratio 2 M / (s + μ) of
means, and pixels take the class with the highest a_c p - b_c, a_c = 2 / (s + μ) and b_c = a_c M /
(s + μ). A damped iteration of this finds the classes, and some steps with the derivatives of f in
the place of a_c p - b_c improve them.

Prices λ on pixels, midway between the two best derivatives, prove how good they are: the optimum is
at most Σ λ + Σ_c max_S [f_c(S) - λ(S)]. With Δ_i(s) = Σ_m a_m e^{-u_m s} π_im a set of s pixels
has, for any ν,

    f_c(S) - λ(S)  ≤  Σ_i max(0, Δ_i(s) - λ_i - ν) + ν s,

which is convex in s, so that values at the ends of a range bound all sizes between them. With the ν
that about s pixels exceed it is nearly the maximum itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf.expected.macro import maximize_expected_macro_f
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import tensors

NO_CLASS = -1
SMALL = 1 << 13  # cells of an image that the decision for arrays solves to the end
MEANS, DERIVATIVES = 10, 2  # steps of the iteration
RANGES, NARROWEST = 24, 0.0015  # of sizes on both sides of one; as part of size and mean


class Classes(NamedTuple):
    """The classes of an image: pixels, nodes, and what the empty set of each is worth."""

    p: Tensor  # classes × pixels
    u: Tensor  # classes × nodes
    x: Tensor
    log_a: Tensor  # log of c ω G / classes
    nodes: tensors.RowNodes
    nothing: Tensor

    @classmethod
    def of(cls, p: Tensor, zero: float) -> Classes:
        """Choose nodes for every size of a class; `zero` is the value of 0/0."""
        count, n = p.shape
        nodes = tensors.RowNodes.of(p, np.ones(count), np.full(count, float(n)), tensors.DICE)
        log_a = nodes.logs(p) + (tensors.DICE.c / count * nodes.weight).log()
        return cls(p, nodes.u, nodes.x_in, log_a, nodes, zero / count * tensors.none_there(p))

    def scale(self, size: Tensor) -> Tensor:
        """a x e^{-u s} of each class, size s of it, and node."""
        return self.x[:, None] * (self.log_a[:, None] - self.u[:, None] * size[:, :, None]).exp()

    def added(self, size: Tensor) -> Tensor:
        """Δ_i(s) of each pixel of each class, s its size."""
        scale = self.scale(size[:, None])[:, 0]
        return tensors.reciprocals(self.p, scale, self.x).mul_(self.p)

    def gains(self, size: Tensor, pi: Tensor) -> Tensor:
        """What each class gains by each pixel: the derivative of its value."""
        size = size.clamp(min=1.0)
        now = (self.log_a - self.u * size[:, None]).exp()
        return self.added(size) - (now * self.u * pi).sum(1)[:, None]


class Labelled(NamedTuple):
    """Labels of all pixels, and what the classes are worth."""

    labels: Tensor
    size: Tensor
    pi: Tensor  # Σ π of each class, for each node
    value: float

    @classmethod
    def of(cls, classes: Classes, labels: Tensor) -> Labelled:
        """Sum up the pixels of each class."""
        own = labels == torch.arange(len(classes.p), device=labels.device)[:, None]
        size, mine = own.sum(1).double(), classes.p.masked_fill(~own, tensors.ABSENT)
        pi = torch.from_numpy(classes.nodes.sums(mine, inside=True)[:, 1]).to(labels.device)
        value = ((classes.log_a - classes.u * size[:, None]).exp() * pi).sum(1)
        worth = torch.where(size > 0, value, classes.nothing)
        return cls(labels, size, pi, float(worth.sum()))


def by_means(p: Tensor, everywhere: bool) -> Tensor:
    """Labels with a high mean of ratios of means."""
    mean, place = p.sum(1, dtype=torch.float64), torch.arange(len(p), device=p.device)[:, None]
    labels, size, mass = p.argmax(0), None, None
    for step in range(MEANS):
        own = labels == place
        new_size, new_mass = own.sum(1).double(), (p * own).sum(1, dtype=torch.float64)
        if size is None or mass is None:
            size, mass = new_size, new_mass
        share = 1.0 if step < 3 else 0.6
        size, mass = torch.lerp(size, new_size, share), torch.lerp(mass, new_mass, share)
        a = 2.0 / (size + mean).clamp(min=1.0)
        top, labels = torch.addcmul(
            -(a * a * mass / 2.0).to(p.dtype)[:, None], a.to(p.dtype)[:, None], p
        ).max(0)
        if not everywhere:
            labels = torch.where(top > 0.0, labels, NO_CLASS)
    return labels


def decide_image(
    p: Tensor, zero: float, everywhere: bool, tol: float
) -> tuple[Tensor, float] | None:
    """Return the class of each pixel of one image (classes × pixels), and a bound on the mean Dice.

    None where the gap stays above `tol`.
    """
    classes = Classes.of(p, zero)
    state = Labelled.of(classes, by_means(p, everywhere))
    best, price, size, pi = None, torch.empty(0), state.size, state.pi
    for _ in range(DERIVATIVES):
        gain = classes.gains(size, pi)
        top, winner = gain.max(0)
        labels = winner if everywhere else torch.where(top > 0.0, winner, NO_CLASS)
        state = Labelled.of(classes, labels)
        if best is None or state.value > best.value:
            best, price = state, prices(gain, winner, everywhere)
        size, pi = torch.lerp(size, state.size, 0.6), torch.lerp(pi, state.pi, 0.6)
    assert best is not None
    bound = float(price.sum()) + highest(classes, price, best.size, tol)
    return None if bound - best.value > tol * bound else (best.labels, max(bound, best.value))


def prices(gain: Tensor, labels: Tensor, everywhere: bool) -> Tensor:
    """Prices midway between the highest two gains; to have no class gains nothing, if allowed."""
    first = gain.amax(0)
    others = gain.scatter(0, labels[None], -torch.inf).amax(0)
    if everywhere:
        second = torch.maximum(others, first - 2.0 * first.abs() - 1e-9)  # if there is no other
    else:
        second = torch.maximum(others.clamp(min=0.0), -first)  # a price is not negative
    return (first + second) / 2.0


def highest(classes: Classes, price: Tensor, size: Tensor, tol: float) -> float:
    """Bound what any sets of the classes can be worth less their prices, all together.

    Sizes are looked at in ranges, which are narrow near the given ones, each with its own ν: the
    item in whose place its middle is, judged by some of the items.
    """
    n, near = classes.p.shape[1], size.clamp(min=1.0)[:, None]
    widest = near + classes.p.sum(1, dtype=torch.float64)[:, None]
    narrowest = NARROWEST * min(1.0, max(tol, 1e-12) / 1e-5) ** 0.5
    sizes = around(near, narrowest * widest, n, RANGES)
    rank = around(near, torch.ones_like(near), n, 4 * RANGES)
    middle = ((sizes[:, 1:] + sizes[:, :-1]) / 2.0).floor()
    order = (classes.added(near[:, 0]) - price).argsort(1, descending=True)
    item = order.gather(1, rank.long() - 1)
    own, x = classes.p.gather(1, item)[:, None, :, None].double(), classes.x[:, None, None]
    worth = (classes.scale(middle)[:, :, None] * own / (1.0 - own + own * x)).sum(3)
    worth, place = (worth - price[item][:, None]).sort(2, descending=True)
    ends = torch.cat([0.0 * near, (rank[:, 1:] + rank[:, :-1]) / 2.0, 0.0 * near + n], 1)
    reached = ends.diff(dim=1)[:, None].expand_as(worth).gather(2, place).cumsum(2)
    reached = (reached >= middle[:, :, None] - 0.5).int().argmax(2, keepdim=True)
    nu = worth.gather(2, reached)[:, :, 0]
    nu = torch.cat([nu[:, :1], nu, nu[:, -1:]], 1)
    over = tensors.kernels().excess(classes.p, classes.scale(sizes), classes.x, price, nu)
    before, after = over[:, :, 0] + nu[:, :-1] * sizes, over[:, :, 1] + nu[:, 1:] * sizes
    each = torch.maximum(after[:, :-1], before[:, 1:]).amax(1)
    return float(torch.maximum(each, classes.nothing).sum())


def around(near: Tensor, least: Tensor, n: int, count: int) -> Tensor:
    """Whole numbers from 1 to n, so many on both sides of given ones, by geometric steps."""
    share = torch.linspace(0.0, 1.0, count, dtype=near.dtype, device=near.device)
    low, high = (least * (end / least).clamp(min=1.0) ** share for end in (near, n - near))
    ends = torch.ones_like(near), near - low.flip(1), near, near + high, 0.0 * near + n
    return torch.cat(ends, 1).round().clamp(1, n)


def assign_classes(
    maps: Tensor, counted: Tensor | None, zero: float, everywhere: bool, tol: float
) -> tensors.Segmentation:
    """Give each pixel of batch × classes × pixels one class, or none where that is allowed.

    Return the decision about each image × class as a row, with the labels of each image, and a
    bound on its mean Dice. Where a pixel may have no class, that is label 0, and classes are from 1
    on. Pixels that do not count are labelled -1. Raises NotAProbability if a value is none.
    """
    labels, bound = torch.full_like(maps[:, 0], NO_CLASS, dtype=torch.int64), []
    first = 0 if everywhere else 1
    for image, pixels in enumerate(maps):
        where = slice(None) if counted is None else counted[image]
        cells, best = pixels[:, where], zero  # of an image whose pixels are all ignored
        if cells.shape[1]:
            tensors.check_range(cells)
            by_array = not tensors.has_triton(cells) or cells.numel() <= SMALL
            found = None if by_array else decide_image(cells, zero, everywhere, tol)
            own, best = found or _decide_array(cells, zero, everywhere, tol)
            labels[image, where] = own + first
        bound.append(best)
    place = torch.arange(first, first + maps.shape[1], device=maps.device)[:, None]
    masks = (labels[:, None] == place).flatten(0, 1)
    rows, proven = maps.flatten(0, 1), torch.tensor(bound, dtype=torch.float64, device=maps.device)
    mean, std = tensors.mask_values(rows, masks, Problem.of(1.0, Dice(), zero))
    lowest = torch.where(masks, rows.double(), torch.inf).amin(1)
    return tensors.Segmentation(masks, mean, std, masks.sum(1), lowest, labels, proven)


def _decide_array(cells: Tensor, zero: float, everywhere: bool, tol: float) -> tuple[Tensor, float]:
    """Return the class of each pixel, and the bound, by the decision for arrays."""
    rule: dict[str, Any] = {"labels_per_row" if everywhere else "max_labels_per_row": 1}
    p = tensors.as_array(cells.cpu()).T.astype(np.float64)
    rule["tol"] = tol if cells.numel() > 4096 else None
    found: Any = maximize_expected_macro_f(p, zero_division=zero, **rule)
    labels = np.where(found.selected.any(1), found.selected.argmax(1), NO_CLASS)
    return torch.from_numpy(labels).to(cells.device), found.bound
