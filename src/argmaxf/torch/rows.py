"""The set with the highest expected value in each row of a tensor of pixels.

A band of probabilities is left in which its lowest pixel must be (`bands`), the pixels around it
are summed up (`series`), and every set that ends in the band is valued (`search`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.measures import Coefficients
from argmaxf.torch.bands import RowBands, bands_of, on_device, whole_rows
from argmaxf.torch.engine import MOST_ROWS, passes_for
from argmaxf.torch.pixels import check_range
from argmaxf.torch.records import MaskValues
from argmaxf.torch.search import Answer, BandSearch, RowQuestion, Stretches
from argmaxf.torch.stretches import falling, one_stretch

SHORT = 1 << 13  # rows of so few pixels are looked at whole
ROOM, PART = 1 << 20, 32  # pixels held in order: so many, or a part of all


class DecidedRows(NamedTuple):
    """What each row of pixels gets, and which of the pixels equal to the threshold are chosen."""

    values: MaskValues
    ties: Floats  # so many of them, the first ones
    equal: Floats  # of so many


def decide(p: Tensor, c: Coefficients, zero_division: float, split: bool = True) -> DecidedRows:
    """Return the best set of each row of pixels (rows × n, contiguous).

    So many pixels are put in order at a time that what is held stays small beside all pixels.
    """
    chance, n = RowQuestion(c, zero_division, split), p.shape[1]
    room = max(ROOM, p.numel() // PART)
    at_once = min(MOST_ROWS, max(1, room // n)) if n <= SHORT else MOST_ROWS
    found: list[Answer] = []
    for part in torch.split(p, at_once):
        found += _decide_short(part, chance) if n <= SHORT else _decide_long(part, chance, room)
    k, *values, ties, equal = map(np.concatenate, zip(*found, strict=True))
    size, expected, std, threshold = on_device(p, k, *values)
    return DecidedRows(MaskValues(size.long(), expected, std, threshold), ties, equal)


def _decide_short(p: Tensor, chance: RowQuestion) -> list[Answer]:
    """Decide rows that are looked at whole."""
    begins = torch.zeros(len(p), dtype=torch.bool, device=p.device)
    stretch = one_stretch(p, begins, chance.split, chance.rises)
    check_range(stretch.items[:, [0, -1]])  # in order, what is no probability is at an end
    return [BandSearch(p, whole_rows(p, chance.c), lambda: [stretch], chance).answer()[0]]


def _decide_long(p: Tensor, chance: RowQuestion, room: int, narrow: bool = True) -> list[Answer]:
    """Decide rows by bands of them; once more by wide ones, where narrow ones are not proven."""
    bands = bands_of(p, chance.c, narrow)
    found: list[Answer] = []
    for part, most in _groups(bands.size.astype(int).tolist(), room):
        pixels, own = p[part], bands.of_rows(part)
        search = BandSearch(pixels, own, _stretches(pixels, own, most, chance, room), chance)
        best, proven = search.answer()
        if proven.all():
            found.append(best)
            continue
        for r in range(len(pixels)):
            row = slice(r, r + 1)
            if proven[r]:
                found.append(Answer(*(each[row] for each in best)))
            else:
                found += _decide_long(pixels[row], chance, room, narrow=False)
    return found


def _groups(sizes: list[int], room: int) -> Iterator[tuple[slice, int]]:
    """Yield rows whose bands can be held together, and how many pixels these have at most."""
    start, most = 0, 0
    for r, size in enumerate(sizes):
        if r > start and max(most, size) * (r + 1 - start) > room:
            yield slice(start, r), most
            start, most = r, 0
        most = max(most, size)
    yield slice(start, len(sizes)), most


def _stretches(p: Tensor, bands: RowBands, most: int, chance: RowQuestion, room: int) -> Stretches:
    """Return what yields the pixels of the bands in order."""
    if most > room:  # of one row
        row, above = p[0], int(bands.above[0])
        return lambda: falling(row, above, most, room, chance.split, chance.rises)
    items = passes_for(p).gather(p, *on_device(p, bands.low, bands.high), max(most, 1))
    begins = torch.from_numpy(bands.above > 0.0).to(p.device)
    stretch = one_stretch(items, begins, chance.split, chance.rises)
    return lambda: [stretch]


def select(p: Tensor, rows: DecidedRows) -> Tensor:
    """Mark the chosen items: those above the threshold, and the first ones equal to it."""
    threshold = rows.values.threshold
    parts = zip(*(torch.split(each, MOST_ROWS) for each in (p, threshold)), strict=True)
    marks = [passes_for(p).at_least(*part) for part in parts]
    chosen: Tensor = marks[0] if len(marks) == 1 else torch.cat(marks)
    if (rows.ties == rows.equal).all():
        return chosen
    threshold = threshold.to(p.dtype)[:, None]
    equal = p == threshold
    last = _place_of(equal, torch.from_numpy(rows.ties).to(p.device))
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
