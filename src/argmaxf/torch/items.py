r"""What some pixels are at every node, one by one, in plain torch: sums, and values of sets.

`triton_items` has the same for NVIDIA GPUs. Items that are 0 add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import NodeTilt, RowForm, factor, log_ratio, share

ROOM = 1 << 20  # items × nodes held at a time
CONTEST = 1e-13  # a difference of f below this part of the terms that differ counts as a tie


class State(NamedTuple):
    """k, A and log Q of a set (see `form`), and its f less that of the first set."""

    k: Tensor
    a: Tensor
    log_q: Tensor
    f: Tensor


def log_products(items: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ log(1 - p w) over the items of each row, at each node."""
    total = torch.zeros_like(tilt.w)
    for p in _chunks(items, tilt):
        q, far = p[:, :, None] * tilt.w[:, None], factor(p, tilt).log_()
        total += torch.where(q < 0.5, torch.log1p(-q.clamp(max=0.5)), far).sum(1)
    return total


def tilted_sums(items: Tensor, tilt: NodeTilt) -> tuple[Tensor, Tensor]:
    """Σ π and Σ π (1 - π)."""
    mean, variance = torch.zeros_like(tilt.w), torch.zeros_like(tilt.w)
    for p in _chunks(items, tilt):
        inverse = factor(p, tilt).reciprocal_()
        pi = p[:, :, None] * tilt.x[:, None] * inverse
        mean += pi.sum(1)
        variance += pi.mul_(inverse).mul_((1.0 - p)[:, :, None]).sum(1)
    return mean, variance


def reciprocals(items: Tensor, scale: Tensor, tilt: NodeTilt) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each item of each row."""
    found = [(scale[:, None] / factor(p, tilt)).sum(2) for p in _chunks(items, tilt)]
    return torch.cat(found, 1)


def climb(form: RowForm, items: Tensor, start: State) -> tuple[Tensor, Tensor]:
    """Return f at the start, and after each item, the latter less that of the first set.

    The items are by falling p. f is a sum of exact differences, so that neighbouring k are told
    apart even if they differ by less than the last digit of f. With r = (w_out - w_in) p /
    (1 - p w_out), Q grows by 1 + r, and

    f_{k+1} - f_k = Σ ω e^{-u (k + s1)} Q [A (e^{-u} (1 + r) - 1) + e^{-u} (1 + r) c π].
    """
    c, _, _, _, s1 = form.coefficients
    u, weight, gain = form.u[:, None], form.weight[:, None], c * form.inside.x[:, None]
    e, lost = (-u).exp(), torch.expm1(-u)
    k, a, log_q, f = start
    values, base = [], form.weight * (log_q - form.u * (k + s1)[:, None]).exp() * a
    for p in _chunks(items, form.inside):
        added = gain * share(p, form.inside)
        total = added.cumsum(1)
        before = a[:, None] + (total - added)  # so that nothing of a is lost
        place = torch.arange(p.shape[1], dtype=torch.float64, device=p.device)
        log_scale = log_q[:, None] - u * (k[:, None] + place + s1)[:, :, None]
        steps = lost * before + e * added
        if not form.one_tilt:
            log_after, ratio = log_ratio(form, p).cumsum(1), form.pull[:, None]
            ratio = ratio * share(p, form.outside)
            steps += e * ratio * (before + added)
            log_scale[:, 1:] += log_after[:, :-1]
            log_q = log_q + log_after[:, -1]
        scale = log_scale.clamp_(max=0.0).exp_().mul_(weight)  # Q is a product of probabilities
        found = f[:, None] + (scale * steps).sum(2).cumsum(1)
        values.append(found)
        k, a, f = k + p.shape[1], a + total[:, -1], found[:, -1]
    return base.sum(1), torch.cat(values, 1)


def take_best(
    items: Tensor,
    closed: Tensor,
    f: Tensor,
    start: State,
    base: Tensor,
    size: Tensor,
    middle: Tensor,
) -> Tensor:
    """Return the best set that ends where it may: before the first item, or after one.

    That is its size, its f, and its lowest item; then how many items are above that and equal to
    it, how many are above a `middle` and their sum, and f after the last of `size` items.

    Exact ties go to the smallest set. What counts as one grows with the part of their terms that
    two values do not share, 1 - k / k'.
    """
    f = torch.cat([start.f[:, None], f], 1)
    useful = f.masked_fill(closed, -torch.inf)
    top_f, top = useful.max(1, keepdim=True)
    slack = CONTEST * (base[:, None] + top_f) / (start.k[:, None] + top).clamp(min=1.0)
    ahead = top - torch.arange(closed.shape[1], device=items.device)
    at = (useful + slack * ahead >= top_f).byte().argmax(1, keepdim=True)
    d = items.double()
    low = d.gather(1, (at - 1).clamp(min=0)).masked_fill(at == 0, torch.inf)
    upper = torch.where(d > middle[:, None], d, 0.0)
    counts = (d > low).sum(1), (d == low).sum(1), (upper > 0.0).sum(1), upper.sum(1)
    last = f.gather(1, size.clamp(max=items.shape[1]).long()[:, None])[:, 0]
    best = start.k + at[:, 0], useful.gather(1, at)[:, 0], low[:, 0]
    return torch.stack([*best, *counts, last])


def split_sums(form: RowForm, items: Tensor, first: Tensor) -> Tensor:
    """Return sums over the first items of each row, inside, and over the others, outside.

    Σ log (1 - p w_in) / (1 - p w_out) over the first ones, Σ π and Σ π (1 - π) over both.
    """
    inside = torch.arange(items.shape[1], device=items.device) < first[:, None]
    ours, rest = items.masked_fill(~inside, 0.0), items.masked_fill(inside, 0.0)
    log = torch.zeros_like(form.u)
    if not form.one_tilt:
        log = log_products(ours, form.inside) - log_products(ours, form.outside)
    sums = *tilted_sums(ours, form.inside), *tilted_sums(rest, form.outside)
    return torch.stack([log, *sums])


def _chunks(items: Tensor, tilt: NodeTilt) -> Iterator[Tensor]:
    """Yield the items of all rows in double precision, so many that their nodes can be held."""
    for part in torch.split(items, max(1, ROOM // tilt.w.numel()), 1):
        yield part.double()
