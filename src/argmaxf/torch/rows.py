"""The set with the highest expected value in each row of a tensor of pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import Form, log_ratio, share
from argmaxf.torch.keys import FINEST, ONE, values
from argmaxf.torch.passes import Tilt, Window, passes_for
from argmaxf.torch.search import Found, Search, Table, first_window, table_of
from argmaxf.validation import NotAProbability

LEAST_ROOM = 1 << 27


class Rows(NamedTuple):
    """One decision for each row of pixels."""

    k: Tensor
    expected: Tensor
    std: Tensor
    threshold: Tensor  # the lowest chosen probability; infinite where nothing is chosen
    ties: Tensor  # how many of the items equal to it are chosen
    equal: Tensor  # of so many


def decide(p: Tensor, coefficients: Any, zero_division: float, *, split: bool = True) -> Rows:
    """Return the best set of each row of pixels (rows × n, contiguous).

    `coefficients` are the c, b_in, b_out, s0, s1 of a measure. So many rows are decided at a time
    that the tables stay small beside the pixels, or beside 100 MB.
    """
    room = max(LEAST_ROOM, p.element_size() * p.numel() // 2)
    parts = torch.split(p, max(1, room // passes_for(p).TABLE))
    found = [_decide(part, coefficients, zero_division, split) for part in parts]
    return Rows(*map(torch.cat, zip(*found, strict=True)))


def _decide(p: Tensor, coefficients: Any, zero_division: float, split: bool) -> Rows:
    """Decide some rows, all at once."""
    passes, window = passes_for(p), first_window(p)
    count, bad = passes.count(p, window)
    if bool(bad.any()):
        raise NotAProbability
    table = table_of(window, count, 1 << FINEST[p.dtype])
    form, reach = prepared(table, coefficients)
    log_none = passes.log_products(p, form.outside)
    found = Search(p, form, log_none, reach, split).run(table)
    found = _or_nothing(p, form, log_none, found, zero_division)
    return _with_spread(p, form, found, log_none, zero_division)


def prepared(table: Table, coefficients: Any, largest: Tensor | None = None) -> tuple[Form, Tensor]:
    """Return the measure at nodes that suit each row, and the largest k that can be best there.

    By Jensen's inequality from both sides (see `expected/form.py`), with the bins' bounds on Σ p.
    The nodes are good up to that k, or to the `largest` of interest.
    """
    c, b_in, b_out, s0, s1 = coefficients
    bins = table.bins
    k = bins.size.cumsum(1)
    low, high = (bins.size * bins.low).cumsum(1), (bins.size * bins.high).cumsum(1)
    mean_low, mean_high, n = low[:, -1], high[:, -1], k[:, -1]
    left = mean_high[:, None] - high
    below = (c * low + s0) / (k + s1 + b_in * (1.0 + high) + b_out * left)
    best = torch.where(k > 0, below, 0.0).amax(1)
    reach = (c * mean_high + s0) / best - s1 - min(b_in, b_out) * mean_low + 1.0
    reach = torch.minimum(reach.nan_to_num(torch.inf), n)
    fewest = (mean_low - 9.0 * mean_low.sqrt()).clamp(min=0.0)
    most = torch.minimum(n, mean_high + 9.0 * mean_high.sqrt() + 20.0)
    least = min(b_in, b_out) * fewest + (s1 if s1 > 0.0 else 1.0)
    high = (reach if largest is None else largest) + 1.0 + s1 + max(b_in, b_out) * most
    return Form.of(coefficients, least, high), reach


def _or_nothing(p: Tensor, form: Form, log_none: Tensor, found: Found, zero: float) -> Found:
    """Return the empty set instead where it is worth as much."""
    _, _, b_out, s0, s1 = form.coefficients
    if s1 > 0.0:
        value = s0 * form.scale(log_none[:, None]).sum((1, 2))
    elif zero > 0.0:
        value = zero * _nothing_there(p, b_out)
    else:
        return found
    keep = found.f > value
    return Found(
        torch.where(keep, found.k, 0.0),
        torch.where(keep, found.f, value),
        torch.where(keep, found.lowest, ONE + 1),
    )


def _nothing_there(p: Tensor, b_out: float) -> Tensor:
    """P(S = 0) = Π (1 - p); 1 if positives that are left out do not count."""
    one = torch.ones(len(p), 1, dtype=torch.float64, device=p.device)
    if b_out == 0.0:
        return one[:, 0]
    log_none: Tensor = passes_for(p).log_products(p, Tilt(one, 0.0 * one))
    return log_none.exp()[:, 0]


def _with_spread(p: Tensor, form: Form, found: Found, log_none: Tensor, zero: float) -> Rows:
    """Add the standard deviation, and how many of the items equal to the lowest are chosen."""
    finest = torch.full_like(found.lowest, FINEST[p.dtype])
    count, _ = passes_for(p).count(p, Window(found.lowest.clamp(max=ONE), finest))
    some = found.k > 0
    equal = torch.where(some, count[:, 1], 0)
    ties = torch.where(some, found.k.long() - count[:, 0], 0)
    a, b = _weights(form, found.f)
    sums = passes_for(p).spread_sums(p, found.lowest, form.inside, form.outside, a, b)
    threshold = values(found.lowest.clamp(max=ONE))[:, None]
    for tilted, weight, size in ((form.inside, a, ties), (form.outside, b, equal - ties)):
        pi = weight[:, None] * (tilted.x[:, None] * share(threshold, tilted))[:, 0]
        variance = pi * weight[:, None] * _rest(threshold, tilted)
        sums = sums[0] + size[:, None] * pi, sums[1] + size[:, None] * variance
    log_q = log_none
    if not form.one_tilt:
        above = torch.full_like(found.lowest, ONE)
        _, ratio = passes_for(p).sums_between(p, found.lowest, above, form.inside, form.outside)
        log_q = log_none + ratio + ties[:, None] * log_ratio(form, threshold)[:, 0]
        log_q = log_q.clamp(max=0.0)
    std = _root_mean(form, found.k, found.f, log_q, sums, zero)
    lowest = torch.where(some, threshold[:, 0], torch.inf)
    return Rows(found.k.long(), found.f, std, lowest, ties, equal)


def value_of(p: Tensor, chosen: Tensor, coefficients: Any, zero: float) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of a measure for any chosen pixels of each row.

    Makes two copies of the pixels.
    """
    passes, window = passes_for(p), first_window(p)
    count, bad = passes.count(p, window)
    if bool(bad.any()):
        raise NotAProbability
    k = chosen.sum(1).double()
    form, _ = prepared(table_of(window, count, 1 << FINEST[p.dtype]), coefficients, k)
    c, _, b_out, s0, s1 = coefficients
    none = torch.full_like(k, -1, dtype=torch.int64)
    inside, outside = p.masked_fill(~chosen, 0.0), p.masked_fill(chosen, 0.0)
    log_q = passes.log_products(inside, form.inside) + passes.log_products(outside, form.outside)
    pi, _ = passes.sums_between(inside, none, none + ONE + 1, form.inside, None)
    phi = form.weight * (log_q - form.u * (k + s1)[:, None]).exp() * (c * pi + s0)
    f = phi.sum(1)
    if s1 == 0.0:
        f = torch.where(k > 0, f, zero * _nothing_there(p, b_out) if zero > 0.0 else 0.0)
    a, b = _weights(form, f)
    sums = zip(
        passes.spread_sums(inside, none, form.inside, form.outside, a, b),
        passes.spread_sums(outside, none + ONE + 2, form.inside, form.outside, a, b),
        strict=True,
    )
    return f, _root_mean(form, k, f, log_q, tuple(x + y for x, y in sums), zero)


def _weights(form: Form, f: Tensor) -> tuple[Tensor, Tensor]:
    """What a label inside and outside counts in numerator - f · denominator."""
    c, b_in, b_out, _, _ = form.coefficients
    return c - b_in * f, -b_out * f


def _root_mean(form: Form, k: Tensor, f: Tensor, log_q: Tensor, sums: Any, zero: float) -> Tensor:
    """√E[(numerator - f · denominator)² / denominator²], with 1/x² = Σ ω u e^{-ux}.

    Under the tilt numerator - f · denominator is a sum of independent labels; its variance and
    squared mean are ≥ 0, so that nothing cancels. The empty set is worth 0/0 or 0.
    """
    _, _, _, s0, s1 = form.coefficients
    mean = sums[0] + (s0 - f * (k + s1))[:, None]
    decay = form.weight * form.u * (log_q - form.u * (k + s1)[:, None]).exp()
    std: Tensor = (decay * (sums[1] + mean * mean)).sum(1).sqrt()
    if s1 > 0.0:
        return std
    none = f / zero if zero > 0.0 else torch.zeros_like(f)
    return torch.where(k > 0, std, zero * (none * (1.0 - none)).clamp(min=0.0).sqrt())


def _rest(p: Tensor, tilted: Tilt) -> Tensor:
    """1 - π = (1 - p) / (1 - p w)."""
    w, x = tilted.w, tilted.x
    return (1.0 - p) / torch.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


def select(p: Tensor, rows: Rows) -> Tensor:
    """Mark the chosen items: those above the threshold, and the first ones equal to it."""
    threshold = rows.threshold.to(p.dtype)[:, None]
    if bool((rows.ties == rows.equal).all()):
        return p >= threshold
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
    starts = torch.arange(0, n, size, device=flags.device)
    counts = torch.stack([part.sum(1) for part in torch.split(flags, size, 1)], 1).cumsum(1)
    block = (counts < rank[:, None]).sum(1).clamp(max=len(starts) - 1)
    before = torch.where(block > 0, counts.gather(1, (block - 1).clamp(min=0)[:, None])[:, 0], 0)
    place = starts[block][:, None] + torch.arange(size, device=flags.device)
    inside = flags.gather(1, place.clamp(max=n - 1)) & (place < n)
    reached = inside.cumsum(1) + before[:, None] >= rank[:, None]
    return torch.where(rank > 0, starts[block] + reached.long().argmax(1), -1)
