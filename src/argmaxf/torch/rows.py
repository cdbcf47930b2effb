"""The set with the highest expected value in each row of a tensor of pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch import passes as plain_passes
from argmaxf.torch import tables as plain
from argmaxf.torch.constants import every_row
from argmaxf.torch.engine import engine_for, none_there
from argmaxf.torch.form import RowForm
from argmaxf.torch.keys import FINEST, ONE
from argmaxf.torch.powers import PowerPasses, is_flat
from argmaxf.torch.search import PixelSearch, first_window
from argmaxf.torch.tables import Found
from argmaxf.validation import NotAProbability

LEAST_ROOM = 1 << 27
MOST_ROWS = 1 << 15  # a grid of programs has room for twice as many


class Rows(NamedTuple):
    """One decision for each row of pixels."""

    k: Tensor
    expected: Tensor
    std: Tensor
    threshold: Tensor  # the lowest chosen probability; infinite where nothing is chosen
    ties: Tensor  # how many of the items equal to it are chosen
    equal: Tensor  # of so many


def decide(p: Tensor, coefficients: Any, zero_division: float, split: bool = True) -> Rows:
    """Return the best set of each row of pixels (rows × n, contiguous).

    `coefficients` are the c, b_in, b_out, s0, s1 of a measure. So many rows are decided at a time
    that the tables stay small beside the pixels, or beside 100 MB.
    """
    room = max(LEAST_ROOM, p.element_size() * p.numel() // 2)
    parts = torch.split(p, min(MOST_ROWS, max(1, room // engine_for(p).row_bytes)))
    found = [_decide(part, coefficients, zero_division, split) for part in parts]
    return found[0] if len(found) == 1 else Rows(*map(torch.cat, zip(*found, strict=True)))


def _decide(p: Tensor, coefficients: Any, zero: float, split: bool) -> Rows:
    """Decide some rows, all at once."""
    passes, tables, _ = engine_for(p)
    # 1. Count
    table, bad = passes.table(p, first_window(p), FINEST[p.dtype])
    prepared = tables.prepared(table, coefficients, bad)
    if prepared is None:
        raise NotAProbability
    form, reach = prepared
    if form.is_steep:
        passes = plain_passes
    if is_flat(p, form):
        passes = PowerPasses(passes, p, form)
    # 2. Multiply
    log_none = passes.log_products(p, form.outside)
    # 3. Bound, and 4. look closer
    found = PixelSearch(p, form, log_none, reach, split, passes).run(table)
    found = _or_nothing(p, form, log_none, found, zero)
    # 5. Spread
    weights = _weights(form, found.f)
    log_q, sums = log_none, _spread_sums(p, passes, form, found.lowest, weights)
    if not form.one_tilt:
        above = every_row(ONE, len(p), p.device)
        tilts = form.inside, form.outside, *coefficients[1:3]
        log_q = log_none + passes.sums_between(p, found.lowest, above, *tilts)[1]
    k, std, threshold, ties, equal = tables.finish(form, found, log_q, sums, weights, zero)
    return Rows(k, found.f, std, threshold, ties, equal)


def _spread_sums(p: Tensor, passes: Any, form: RowForm, cut: Tensor, weights: Any) -> Any:
    """Return the sums of `passes.spread_sums`, with each side's own tilt where they differ."""
    a, b = weights
    if form.one_tilt:
        return passes.spread_sums(p, cut, form.inside, a, b)
    none = torch.zeros_like(a)
    mean, variance, counts = passes.spread_sums(p, cut, form.inside, a, none)
    mean_out, variance_out, _ = passes.spread_sums(p, cut, form.outside, none, b)
    return mean + mean_out, variance + variance_out, counts


def _or_nothing(p: Tensor, form: RowForm, log_none: Tensor, found: Found, zero: float) -> Found:
    """Return the empty set instead where it is worth as much."""
    _, _, b_out, s0, s1 = form.coefficients
    if s1 > 0.0:
        value = s0 * form.scale(log_none[:, None]).sum((1, 2))
    elif zero > 0.0:
        value = zero * _nothing_there(p, b_out)
    else:
        return found
    keep = found.f - value > plain.CONTEST * found.f
    return Found(
        torch.where(keep, found.k, 0.0),
        torch.where(keep, found.f, value),
        torch.where(keep, found.lowest, ONE + 1),
    )


def _nothing_there(p: Tensor, b_out: float) -> Tensor:
    """P(S = 0); 1 if positives that are left out do not count."""
    if b_out == 0.0:
        return torch.ones(len(p), dtype=torch.float64, device=p.device)
    return none_there(p)


def value_of(p: Tensor, chosen: Tensor, coefficients: Any, zero: float) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of a measure for any chosen pixels of each row.

    Makes two copies of the pixels.
    """
    passes = engine_for(p).passes
    table, bad = passes.table(p, first_window(p), FINEST[p.dtype])
    k = chosen.sum(1).double()
    prepared = plain.prepared(table, coefficients, bad, k)
    if prepared is None:
        raise NotAProbability
    form, _ = prepared
    c, b_in, b_out, s0, s1 = coefficients
    none = torch.full_like(k, -1, dtype=torch.int64)
    inside, outside = p.masked_fill(~chosen, 0.0), p.masked_fill(chosen, 0.0)
    log_q = passes.log_products(inside, form.inside) + passes.log_products(outside, form.outside)
    tilts = form.inside, form.outside
    pi, _ = passes.sums_between(inside, none, none + ONE + 1, *tilts, b_in, b_in)
    phi = form.weight * (log_q - form.u * (k + s1)[:, None]).exp() * (c * pi + s0)
    f = phi.sum(1)
    if s1 == 0.0:
        f = torch.where(k > 0, f, zero * _nothing_there(p, b_out) if zero > 0.0 else 0.0)
    a, b = _weights(form, f)
    sums = zip(
        passes.spread_sums(inside, none, form.inside, a, a)[:2],
        passes.spread_sums(outside, none, form.outside, b, b)[:2],
        strict=True,
    )
    return f, plain.root_mean(form, k, f, log_q, tuple(x + y for x, y in sums), zero)


def _weights(form: RowForm, f: Tensor) -> tuple[Tensor, Tensor]:
    """What a label inside and outside counts in numerator - f · denominator."""
    c, b_in, b_out, _, _ = form.coefficients
    return c - b_in * f, -b_out * f


def select(p: Tensor, rows: Rows) -> Tensor:
    """Mark the chosen items: those above the threshold, and the first ones equal to it."""
    chosen: Tensor = engine_for(p).passes.at_least(p, rows.threshold)
    if torch.equal(rows.ties, rows.equal):
        return chosen
    threshold = rows.threshold.to(p.dtype)[:, None]
    equal = p == threshold
    last = _place_of(equal, rows.ties)
    place = torch.arange(p.shape[1], device=p.device)
    return (p > threshold) | (equal & (place <= last[:, None]))


def _place_of(flags: Tensor, rank: Tensor) -> Tensor:
    """Return where the flag of a given rank (from 1) is in each row; -1 for rank 0.

    Counted in blocks first: nothing larger than the flags themselves is made.
    """
    n = flags.shape[1]
    size = max(1, int(n**0.5))
    whole = n // size * size
    counts = flags[:, :whole].view(len(flags), -1, size).sum(2)
    counts = torch.cat([counts, flags[:, whole:].sum(1, keepdim=True)], 1).cumsum(1)
    block = (counts < rank[:, None]).sum(1).clamp(max=counts.shape[1] - 1)
    before = torch.where(block > 0, counts.gather(1, (block - 1).clamp(min=0)[:, None])[:, 0], 0)
    place = size * block[:, None] + torch.arange(size, device=flags.device)
    inside = flags.gather(1, place.clamp(max=n - 1)) & (place < n)
    reached = inside.cumsum(1) + before[:, None] >= rank[:, None]
    return torch.where(rank > 0, size * block + reached.long().argmax(1), -1)
