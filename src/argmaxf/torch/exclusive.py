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

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.expected.macro import maximize_expected_macro_f
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import RowNodes, none_there, pixel_logs, reciprocals
from argmaxf.torch.tensors import Rows, as_array, check_range, mask_values

DICE = Dice().coefficients()
NO_CLASS = -1
SMALL = 1 << 13  # cells of an image that the decision for arrays solves to the end
MEANS, DERIVATIVES = 10, 2  # steps of the iteration
MOST_TERMS = 24  # of a power series in p; longer ones are summed node by node
ROUNDS = 8  # of ranges of sizes, each halved where its bound is too high


class Classes(NamedTuple):
    """Some classes of an image: pixels, nodes, and what the empty set of each is worth."""

    p: Tensor  # classes × pixels, in double precision
    u: Tensor  # classes × nodes
    w: Tensor
    x: Tensor
    log_a: Tensor  # log of c ω G / classes
    terms: int  # of a series in p that has the sums over nodes; 0 where it would be long

    def series(self, scale: Tensor) -> Tensor:
        """The coefficients of Σ_m scale_m π_im as a series in p, after the axes of `scale`."""
        w, x = (v if scale.dim() == 2 else v[:, None] for v in (self.w, self.x))
        powers = [scale * x]
        for _ in range(self.terms - 1):
            powers.append(powers[-1] * w)
        return torch.stack([each.sum(-1) for each in powers], -1)

    def added(self, scale: Tensor, p: Tensor) -> Tensor:
        """Σ_m scale_m π_im of pixels of each class."""
        if not self.terms:
            return reciprocals(p, scale * self.x, self.x).mul_(p)
        first, *others = self.series(scale)[:, :, None].flip(1).unbind(1)
        total = first * p
        for each in others:
            total.add_(each).mul_(p)
        return total

    def tilted(self, own: Tensor) -> Tensor:
        """Σ π over the pixels that are in each class, for each node."""
        p = self.p * own
        if not self.terms:
            sums = passes.node_sums(p, self.w.cpu().numpy(), self.x.cpu().numpy())[:, 1]
            return torch.from_numpy(sums.copy()).to(p.device)
        return self.x * self.by_powers(p)

    def by_powers(self, p: Tensor) -> Tensor:
        """Σ_j w^{j-1} Σ p^j."""
        power, factor, total = p, torch.ones_like(self.w), torch.zeros_like(self.w)
        for j in range(self.terms):
            total += factor * power.sum(1)[:, None]
            if j + 1 < self.terms:
                power, factor = power * p, factor * self.w
        return total


def groups_of(d: Tensor) -> tuple[list[Classes], list[int]]:
    """Return the classes of an image, those that are power series first, and their order."""
    count, n = d.shape
    nodes = RowNodes.of(d, np.ones(count), np.full(count, float(n)), DICE)
    steepest = nodes.table[:, 2].max(1) * d.amax(1).cpu().numpy()
    terms = np.ceil(-36.0 / np.log(np.minimum(np.maximum(steepest, 1e-9), 0.999))).astype(int)
    is_short = terms <= MOST_TERMS
    found = []
    for which in (np.flatnonzero(is_short), np.flatnonzero(~is_short)):
        if which.size:
            rows = slice(None) if which.size == count else which.tolist()
            p, given = (
                d[rows],
                RowNodes(nodes.table[which], nodes.most[which], *(v[rows] for v in nodes[2:])),
            )
            log_g = pixel_logs(p, given)
            log_a = log_g + (DICE.c / count * given.weight).log()
            size = int(terms[which].max()) if is_short[which[0]] else 0
            found.append(Classes(p, given.u, given.w_in, given.x_in, log_a, size))
    return found, [*np.flatnonzero(is_short).tolist(), *np.flatnonzero(~is_short).tolist()]


class Labelled(NamedTuple):
    """Labels of all pixels, and what the classes are worth."""

    labels: Tensor
    size: Tensor
    pi: list[Tensor]  # Σ π of each class, for each node, by groups
    value: float

    @classmethod
    def of(cls, groups: list[Classes], labels: Tensor, nothing: Tensor) -> Labelled:
        """Sum up the pixels of each class."""
        own = labels == torch.arange(len(nothing), device=labels.device)[:, None]
        size, pi, values, start = own.sum(1).double(), [], [], 0
        for each in groups:
            here = slice(start, start + len(each.p))
            pi.append(each.tilted(own[here]))
            now = (each.log_a - each.u * size[here, None]).exp()
            values.append((now * pi[-1]).sum(1))
            start = here.stop
        worth = torch.where(size > 0, torch.cat(values), nothing)
        return cls(labels, size, pi, float(worth.sum()))


def derivatives(groups: list[Classes], size: Tensor, pi: list[Tensor]) -> Tensor:
    """What each class gains by each pixel."""
    found, start = [], 0
    for each, own in zip(groups, pi, strict=True):
        now = (each.log_a - each.u * size[start : start + len(each.p), None].clamp(min=1.0)).exp()
        found.append(each.added(now, each.p) - (now * each.u * own).sum(1)[:, None])
        start += len(each.p)
    return found[0] if len(found) == 1 else torch.cat(found)


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
    count = len(p)
    groups, order = groups_of(p.double())
    d = torch.cat([each.p for each in groups])
    nothing = (
        zero / count * none_there(d) if zero else torch.zeros(count, dtype=d.dtype, device=d.device)
    )
    labels = by_means(p[order] if order != list(range(count)) else p, everywhere)
    best = state = Labelled.of(groups, labels, nothing)
    size, pi, best_gain = state.size, state.pi, derivatives(groups, state.size, state.pi)
    gain = best_gain
    for step in range(DERIVATIVES):
        gain = derivatives(groups, size, pi) if step else gain
        top, labels = gain.max(0)
        labels = labels if everywhere else torch.where(top > 0.0, labels, NO_CLASS)
        state = Labelled.of(groups, labels, nothing)
        if step == 0 or state.value > best.value:
            best, best_gain = state, gain
        size = torch.lerp(size, state.size, 0.6)
        pi = [torch.lerp(old, new, 0.6) for old, new in zip(pi, state.pi, strict=True)]
    price = prices(best_gain, everywhere)
    bound, start = float(price.sum()), 0
    slack = 0.7 * tol * best.value / count
    for each in groups:
        here = slice(start, start + len(each.p))
        bound += highest(each, price, best.size[here], nothing[here], slack)
        start = here.stop
    if bound - best.value > tol * bound:
        return None
    back = torch.tensor([*order, NO_CLASS], device=p.device)
    return back[best.labels], max(bound, best.value)


def prices(gain: Tensor, everywhere: bool) -> Tensor:
    """Prices midway between the highest two gains; to have no class gains nothing, if allowed."""
    if len(gain) == 1:
        gain = torch.cat([gain, gain - 2.0 * gain.abs() - 1e-9])
    first, second = gain.topk(2, 0).values
    if not everywhere:
        second = torch.maximum(second.clamp(min=0.0), -first)  # a price is not negative
    middle: Tensor = (first + second) / 2.0
    return middle


def highest(classes: Classes, price: Tensor, size: Tensor, nothing: Tensor, slack: float) -> float:
    """Bound what any sets of some classes can be worth less their prices, all together.

    Sizes are looked at in ranges, each with its own ν, which are finer near the given ones.
    """
    count, n = classes.p.shape
    near = size.cpu().numpy().clip(1, n)
    now = (classes.log_a - classes.u * size.clamp(min=1.0)[:, None]).exp()
    order = (classes.added(now, classes.p) - price).argsort(1, descending=True)
    mean = classes.p.sum(1).cpu().numpy()
    steps = 0.0015 * 1.5 ** np.arange(18)[None] * (near + mean)[:, None]
    ends = np.concatenate([near[:, None] - steps[:, ::-1], near[:, None] + steps], 1)
    ends = np.concatenate([np.ones((count, 1)), ends, np.full((count, 1), float(n))], 1)
    ends = np.sort(np.rint(ends).clip(1, n), 1)
    own = bounds_at(classes, price, order, np.repeat(near[:, None], 2, 1))[:, 0, 1]
    done: Floats = nothing.cpu().numpy()
    enough, is_open = np.maximum(own, done) + slack, np.ones((count, ends.shape[1] - 1), np.bool_)
    for left in reversed(range(ROUNDS)):
        at = bounds_at(classes, price, order, ends)  # classes × ends × (to the left, to the right)
        each = np.where(is_open, np.maximum(at[:, :-1, 1], at[:, 1:, 0]), -math.inf)
        fails = (each > enough[:, None]) & (np.diff(ends, axis=1) > 1.0) & (left > 0)
        done = np.maximum(done, np.where(fails, -math.inf, each).max(1))
        if not fails.any():
            break
        new = np.repeat(near[:, None], 3 * int(fails.sum(1).max()), 1)
        is_open = np.zeros((count, new.shape[1] - 1), np.bool_)
        for c, failing in enumerate(fails):
            first, last = ends[c, :-1][failing], ends[c, 1:][failing]
            halves = np.stack([first, np.floor((first + last) / 2.0), last], 1).ravel()
            new[c, : halves.size] = halves
            is_open[c, : halves.size] = (np.arange(halves.size) % 3 < 2)[: new.shape[1] - 1]
        ends = new
    return float(done.sum())


def bounds_at(classes: Classes, price: Tensor, order: Tensor, ends: Floats) -> Floats:
    """Bound sets of some sizes, by the ν of the range before each and of the range after it."""
    device = price.device
    sizes = torch.from_numpy(ends).to(device)
    middle = ((sizes[:, 1:] + sizes[:, :-1]) / 2.0).floor()
    item = order.gather(1, middle.long() - 1)
    scale = (classes.log_a[:, None] - classes.u[:, None] * middle[:, :, None]).exp()
    own = classes.p.gather(1, item)[:, :, None]
    t = torch.where(
        own < 0.5,
        1.0 - own * classes.w[:, None],
        classes.x[:, None] + (1.0 - own) * classes.w[:, None],
    )
    nu = (scale * own * classes.x[:, None] / t).sum(2) - price[item]
    nu = torch.cat([nu[:, :1], nu, nu[:, -1:]], 1)
    scales = (classes.log_a[:, None] - classes.u[:, None] * sizes[:, :, None]).exp()
    if classes.terms and passes.has_triton(price):
        total = passes.kernels().excess(classes.p, price, classes.series(scales), nu)
    else:
        worth = (classes.added(scale, classes.p).sub_(price) for scale in scales.unbind(1))
        over = [
            torch.stack([(d - nu[:, e + i, None]).clamp_(min=0.0).sum(1) for i in (0, 1)], 1)
            for e, d in enumerate(worth)
        ]
        total = torch.stack(over, 1)
    total = total + torch.stack([nu[:, :-1] * sizes, nu[:, 1:] * sizes], 2)
    return total.cpu().numpy()  # type: ignore[no-any-return]


def assign_classes(
    maps: Tensor, counted: Tensor | None, zero: float, everywhere: bool, tol: float
) -> tuple[Rows, Tensor, Tensor]:
    """Give each pixel of batch × classes × pixels one class, or none where that is allowed.

    Return the decision about each image × class, the labels, and a bound on the mean Dice of each
    image. Pixels that do not count have no class. Raises NotAProbability if a value is none.
    """
    labels, bound = torch.full_like(maps[:, 0], NO_CLASS, dtype=torch.int64), []
    for image, pixels in enumerate(maps):
        where = slice(None) if counted is None else counted[image]
        cells, best = pixels[:, where], zero  # of an image whose pixels are all ignored
        if cells.shape[1]:
            check_range(cells)
            by_array = passes.is_on_cpu(cells) or cells.numel() <= SMALL
            found = None if by_array else decide_image(cells, zero, everywhere, tol)
            labels[image, where], best = found or _decide_array(cells, zero, everywhere, tol)
        bound.append(best)
    place = torch.arange(maps.shape[1], device=maps.device)[:, None]
    rows, chosen = maps.flatten(0, 1), (labels[:, None] == place).flatten(0, 1)
    mean, std = mask_values(rows, chosen, Problem.of(1.0, Dice(), zero))
    lowest = torch.where(chosen, rows.double(), torch.inf).amin(1)
    proven = torch.tensor(bound, dtype=torch.float64, device=maps.device)
    return Rows(chosen, chosen.sum(1), mean, std, lowest), labels, proven


def _decide_array(cells: Tensor, zero: float, everywhere: bool, tol: float) -> tuple[Tensor, float]:
    """Return the class of each pixel, and the bound, by the decision for arrays."""
    rule: dict[str, Any] = {"labels_per_row" if everywhere else "max_labels_per_row": 1}
    p = as_array(cells.cpu()).T.astype(np.float64)
    rule["tol"] = tol if cells.numel() > 4096 else None
    found: Any = maximize_expected_macro_f(p, zero_division=zero, **rule)
    labels = np.where(found.selected.any(1), found.selected.argmax(1), NO_CLASS)
    return torch.from_numpy(labels).to(cells.device), found.bound
