"""The pixels of a band by falling p: of many rows at once, or of one with very many in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.passes import parts_of

WHOLE = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


class ItemStretch(NamedTuple):
    """Pixels of each row by falling p, then zeros, and where no set that counts ends.

    That is said of the place before the first pixel, then of those after each of them.
    """

    items: Tensor
    closed: Tensor


def one_stretch(items: Tensor, begins: Tensor, split: bool, rises: bool) -> ItemStretch:
    """Return pixels of each row in order; `begins` says whether a set may end before them.

    Sets that end among equal pixels count if these may be `split`, but where f only `rises` not
    those that end among the most probable ones of a row.
    """
    items = items.sort(1, descending=True).values
    following = torch.nn.functional.pad(items[:, 1:], (0, 1))
    closed = items == 0.0
    if not split:
        closed |= items == following
    elif rises:
        closed |= (items == following) & (items == items[:, :1]) & ~begins[:, None]
    return ItemStretch(items, torch.cat([~begins[:, None], closed], 1))


def falling(
    row: Tensor, above: int, size: int, room: int, split: bool, rises: bool
) -> Iterator[ItemStretch]:
    """Yield so many pixels of one row after those above, about `room` at a time.

    A stretch ends above a run of equal pixels, which needs no sorting.
    """
    done, begins = above, torch.tensor([above > 0], device=row.device)
    cut = of_rank(row, above) if above else math.inf
    while done < above + size:
        top, cut = cut, of_rank(row, min(done + room, above + size))
        between = row[(row > cut) & (row < top)][None]
        equal = sum(int((row[part] == cut).sum()) for part in parts_of(1, len(row)))
        in_one = not split or (rises and done + between.shape[1] == 0)
        if between.shape[1]:
            yield one_stretch(between, begins, split, rises and done == 0)
            begins = torch.zeros_like(begins)
        for start in range(0, equal, room):
            length = min(room, equal - start)
            closed = torch.full((1, length + 1), in_one, device=row.device)
            closed[:, 0], closed[:, -1] = ~begins, in_one and start + length < equal
            yield ItemStretch(torch.full_like(row[None, :length], cut), closed)
            begins = torch.zeros_like(begins)
        done += between.shape[1] + equal


def of_rank(row: Tensor, rank: int) -> float:
    """Return the pixel of a rank, the highest being the first: the largest with so many not below.

    By halving the bit patterns of numbers from 0 to 1, which are in their order.
    """
    kind = WHOLE[row.dtype]
    low, high = 0, int(torch.ones(1, dtype=row.dtype).view(kind))
    while low < high:
        middle = (low + high + 1) // 2
        number = torch.tensor(middle, dtype=kind).view(row.dtype)
        if int((row >= number.to(row.device)).sum()) >= rank:
            low = middle
        else:
            high = middle - 1
    return float(torch.tensor(low, dtype=kind).view(row.dtype))
