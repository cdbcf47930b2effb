"""What is made of tables, in plain torch: nodes, the bins to look at next, the best border, spread.

`triton_tables` has the same for NVIDIA GPUs, with one program for each row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.climb import SLACK, BinLadder, bins_of, climb
from argmaxf.torch.form import NodeTilt, RowForm, log_ratio, plausible, share
from argmaxf.torch.keys import ONE, values
from argmaxf.torch.passes import BINS, BinTable, KeyWindow

__all__ = ["Found", "Needs", "OpenBins", "climb", "finish", "narrow", "prepared", "take_best"]

CONTEST = 1e-13  # a difference of f below this part of the terms that differ counts as a tie


class OpenBins(NamedTuple):
    """The bins of each row to look at next: their keys, and how many items are above them.

    A row with few items is looked at from the key `few` on, one by one, a row with many through a
    closer window; the other rows get keys and windows without items.
    """

    stop: Tensor
    low: Tensor
    high: Tensor
    few: Tensor
    window: KeyWindow
    k: Tensor
    needs: Tensor  # the fields of `Needs` for each row


class Needs(NamedTuple):
    """What the rows need next, asked from the device at once."""

    items: int  # in the bins of a row, at most
    few: bool  # items of some row are few
    finer: bool  # the bins of some row's closer window are no single values
    more: bool  # some row has open bins beyond these

    @classmethod
    def of(cls, band: OpenBins) -> Needs:
        """Ask what any row needs."""
        items, few, finer, more = band.needs.amax(1).tolist()
        return cls(items, bool(few), bool(finer), bool(more))


class Found(NamedTuple):
    """The best set of each row: its size, its value, and the key of its lowest item."""

    k: Tensor
    f: Tensor
    lowest: Tensor


def prepared(
    table: BinTable, coefficients: Any, bad: Tensor, only_k: Tensor | None = None
) -> tuple[RowForm, Tensor] | None:
    """Return the measure at nodes that suit each row, and the largest k that can be best there.

    By Jensen's inequality from both sides (see `expected/form.py`), with the bins' bounds on Σ p.
    The nodes are good up to that k, or for `only_k`. None if there are bad values.
    """
    if bool(bad.any()):
        return None
    c, b_in, b_out, s0, s1 = coefficients
    bins = bins_of(table)
    k = bins.size.cumsum(1)
    low, high = (bins.size * bins.low).cumsum(1), (bins.size * bins.high).cumsum(1)
    mean_low, mean_high, n = low[:, -1], high[:, -1], k[:, -1]
    left = mean_high[:, None] - high
    below = (c * low + s0) / (k + s1 + b_in * (1.0 + high) + b_out * left)
    best = torch.where(k > 0, below, 0.0).amax(1)
    reach = (c * mean_high + s0) / best - s1 - min(b_in, b_out) * mean_low + 1.0
    reach = torch.minimum(reach.nan_to_num(torch.inf), n)
    fewest, most = plausible(mean_low, mean_high, n)
    # A denominator is at least this part of the positives: a k with too small a numerator is poor.
    enough = best * (1.0 - SLACK) * (min(b_out, 1.0 + b_in) * fewest + s1)
    poor = torch.where(c * high + s0 < enough[:, None], k, 0.0).amax(1)
    if only_k is not None:
        reach, poor = only_k, (only_k - 1.0).clamp(min=0.0)
    least = min(b_in, b_out) * fewest + poor + (s1 if s1 > 0.0 else 1.0)
    high = reach + 1.0 + s1 + max(b_in, b_out) * most
    return RowForm.of(coefficients, least, high), reach


def narrow(
    ladder: BinLadder,
    table: BinTable,
    reach: Tensor,
    floor: Tensor,
    after: Tensor,
    top: Tensor,
    few: int,
    finest: int,
) -> OpenBins:
    """Choose the bins from `after` on to look at next: all open ones if few, or one stretch.

    `floor`, what some set is known to be worth, is raised in place. Rows without an open bin get
    keys of which there are none: all items above `top` are known already.
    """
    torch.maximum(floor, _useful(ladder, reach).amax(1), out=floor)
    place = torch.arange(table.size.shape[1], device=floor.device)
    hot = _hot(ladder, table, reach, floor) & (place >= after[:, None])
    first, end = _ends(hot)
    k = _at(ladder.k, first)
    all_few = _at(ladder.k, end) - k <= few
    cold = ~hot & (place > first[:, None])
    near = torch.where(cold.any(1), cold.long().argmax(1), hot.shape[1])
    stop = torch.where(all_few, end, torch.minimum(torch.minimum(near, end), widest(first)))
    some, items = stop > 0, _at(ladder.k, stop) - k
    is_few, is_many = some & (items <= few), items > few
    high = torch.where(some, _at(table.high, first), top)
    low = torch.where(some, _at(table.low, stop - 1), high + 1)
    shift = torch.frexp(((high - low) // (BINS - 2)).double())[1].long().clamp(min=finest)
    shift = torch.where(is_many, shift, finest)
    window = KeyWindow(torch.where(is_many, high, 0), shift)
    needs = torch.stack([items.long(), is_few, shift > finest, end > stop])
    return OpenBins(stop, low, high, torch.where(is_few, low, high + 1), window, k, needs)


def widest(first: Tensor) -> Tensor:
    """Return where a stretch of many items ends at the latest.

    It gets 510 new bins. So that they are narrower than the old ones, it has less than half as many
    of those; the first and the last one, which are of any width, are looked at alone.
    """
    end = torch.where(first == 0, 1, first + BINS // 2 - 1)
    return torch.where(first < BINS - 1, end.clamp(max=BINS - 1), BINS)


def take_best(
    ladder: BinLadder, table: BinTable, reach: Tensor, found: Found, floor: Tensor, split: bool
) -> Tensor:
    """Take the best border into `found` and `floor`; return which runs are open, from and to.

    Exact ties go to the smallest k. A run of equal items is open if f may be best inside of it.
    """
    closed = table.size == 0
    if not split:  # equal items stay on one side
        closed |= _of_next(~closed, table.low) == table.low
    f = _useful(ladder, reach)[:, 1:].masked_fill(closed, -torch.inf)
    k = ladder.k[:, 1:]
    top = f.argmax(1)
    top_f, base = _at(f, top)[:, None], ladder.base[:, None]
    slack = _unshared(k, _at(k, top)[:, None]) * (base + top_f)
    at = (f >= top_f - slack).long().argmax(1)
    new = Found(_at(k, at), ladder.base + _at(f, at), _at(table.low, at))
    slack = _unshared(new.k, found.k) * torch.maximum(new.f, found.f)
    tied = (new.f - found.f).abs() <= slack
    better = (new.f > 0.0) & torch.where(tied, new.k < found.k, new.f > found.f)
    for old, now in zip(found, new, strict=True):
        old.copy_(torch.where(better, now, old))
    torch.maximum(floor, found.f, out=floor)
    runs = _hot(ladder, table, reach, floor) & ~ladder.rises & (table.size > 1)
    return torch.stack(_ends(runs))


def finish(
    form: RowForm, found: Found, log_q: Tensor, sums: Any, weights: Any, zero: float
) -> tuple[Tensor, ...]:
    """Return k, the standard deviation, the threshold, the chosen and the equal items there.

    `sums` are those of `spread_sums`, in which those at the cut are missing or count as outside;
    `log_q` has none of those chosen.
    """
    mean, variance, counts = sums
    some = (found.k > 0)[:, None]
    above, equal, counted = torch.where(some, counts, 0).T
    ties = torch.where(some[:, 0], found.k.long() - above, 0)
    threshold = values(found.lowest.clamp(max=ONE))[:, None]
    for tilted, a, size in (
        (form.inside, weights[0], ties),
        (form.outside, weights[1], equal - ties - counted),
    ):
        pi = a[:, None] * (tilted.x[:, None] * share(threshold, tilted))[:, 0]
        mean = mean + size[:, None] * pi
        variance = variance + size[:, None] * pi * a[:, None] * _rest(threshold, tilted)
    if not form.one_tilt:
        log_q = log_q + ties[:, None] * log_ratio(form, threshold)[:, 0]
    std = root_mean(form, found.k, found.f, log_q.clamp(max=0.0), (mean, variance), zero)
    return found.k.long(), std, torch.where(some[:, 0], threshold[:, 0], torch.inf), ties, equal


def root_mean(form: RowForm, k: Tensor, f: Tensor, log_q: Tensor, sums: Any, zero: float) -> Tensor:
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


def _rest(p: Tensor, tilted: NodeTilt) -> Tensor:
    """1 - π = (1 - p) / (1 - p w)."""
    w, x = tilted.w, tilted.x
    return (1.0 - p) / torch.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


def _useful(ladder: BinLadder, reach: Tensor) -> Tensor:
    """f at the borders with 0 < k ≤ reach; -∞ at others."""
    useful = (ladder.k <= reach[:, None]) & (ladder.k > 0)
    return ladder.f.masked_fill(~useful, -torch.inf)


def _hot(ladder: BinLadder, table: BinTable, reach: Tensor, floor: Tensor) -> Tensor:
    """Mark the bins that may hold the optimum, at their last item or before it."""
    full = table.size > 0
    poor = ladder.ceiling < (1.0 - SLACK) * floor[:, None]
    beyond = ladder.k[:, :-1] >= reach[:, None]
    # A bin in which f only rises is left behind where it goes on rising in the next one.
    behind = ladder.rises & _of_next(full, ladder.rises)
    return full & ~(poor | beyond | ladder.falls | behind)


def _unshared(k: Tensor, other: Tensor) -> Tensor:
    """Which part of their terms two values do not share, times the part that counts as a tie."""
    return CONTEST * (k - other).abs() / torch.maximum(k, other).clamp(min=1.0)


def _at(table: Tensor, place: Tensor) -> Tensor:
    """Return one entry of each row."""
    place = place.clamp(0, table.shape[1] - 1)
    return table[torch.arange(len(table), device=table.device), place]


def _ends(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first flag of each row and one past its last; 0 and 0 if there is none."""
    place = torch.arange(1, flags.shape[1] + 1, device=flags.device)
    return flags.long().argmax(1), (flags * place).amax(1)


def _of_next(full: Tensor, values: Tensor) -> Tensor:
    """Return what the next bin that is not empty has; False or 0 after the last one."""
    size = full.shape[1]
    place = torch.arange(size, device=full.device).expand_as(full)
    nearest = torch.where(full, place, size).flip(1).cummin(1).values.flip(1)
    following = torch.nn.functional.pad(nearest[:, 1:], (0, 1), value=size)
    padded = torch.cat([values, torch.zeros_like(values[:, :1])], 1)
    return padded.gather(1, following)
