r"""The certified optimum of every row at once: windows of keys, bounds, closer windows.

A window of keys is counted in 510 bins (one pass over the pixels). Bounds on f leave a few bins
open; they are the next window, until its items are few enough to be looked at one by one, or its
bins are single numbers: then f is exact at every border, and inside a run of equal items k is cut
by arithmetic. Rows go down together, each in its own window. Where bounds leave two stretches of
bins apart, one is followed to its end, then the other with what the first one was worth.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from argmaxf.torch.climb import state_at
from argmaxf.torch.constants import every_row
from argmaxf.torch.engine import engine_for
from argmaxf.torch.form import RowForm, State
from argmaxf.torch.keys import FINEST, ONE
from argmaxf.torch.passes import BinTable, KeyWindow
from argmaxf.torch.tables import Found, Needs, OpenBins

# Of many items those are copied out that are fewer than 1/HELD of all
HELD, LEAST = 16, 1 << 21
# A run of equal items is cut into so many pieces, then twice as many, and so on
PIECES, MOST_PIECES = 256, 4096
TOP = ONE - (1014 << 52)  # the key of 1 - 2^-9
SHIFT = 48  # 16 bins for each power of two: the first window reaches down to 2^-25


def first_window(p: Tensor) -> KeyWindow:
    """Return the window of every row that holds all likely thresholds."""
    shift = max(SHIFT, FINEST[p.dtype])
    return KeyWindow(*(every_row(number, len(p), p.device) for number in (TOP, shift)))


class PixelSearch:
    """The search for the best set of each row of pixels (rows × n).

    The bins of a window inside another one have at most half as many keys, usually a hundredth, and
    a run of equal items is cut in more and more pieces, down to single items, so that the search
    ends.
    """

    def __init__(
        self, p: Tensor, form: RowForm, log_none: Tensor, reach: Tensor, split: bool, passes: Any
    ) -> None:
        self.p, self.form, self.reach, self.split = p, form, reach, split
        self.passes, self.tables = passes, engine_for(p).tables
        self.finest, self.few = FINEST[p.dtype], self.passes.few(len(p), form.one_tilt)
        a = torch.full_like(form.u, form.coefficients[3])
        self.start = State(torch.zeros_like(reach), a, log_none)
        none = torch.full((len(p),), ONE + 1, dtype=torch.int64, device=p.device)
        self.found = Found(torch.zeros_like(reach), torch.zeros_like(reach), none)
        self.floor = torch.zeros_like(reach)  # some set is known to be worth this much

    def run(self, table: BinTable) -> Found:
        """Search from the table of the first window."""
        self._explore(self.p, table, self.start, every_row(ONE, len(self.p), self.p.device))
        return self.found

    def _explore(self, p: Tensor, table: BinTable, start: State, top: Tensor) -> None:
        """Follow every stretch of bins that may hold the optimum, in each row one after another.

        All items with keys above `top` are in `start`, all others that matter in `p`.
        """
        ladder = self.tables.climb(self.form, table, start, exact=False)
        stop = every_row(0, len(top), top.device)
        while True:
            band = self.tables.narrow(
                ladder, table, self.reach, self.floor, stop, top, self.few, self.finest
            )
            needs = Needs.of(band)
            if needs.items == 0:
                return
            self._closer(p, band, needs, start, top)
            if not needs.more:
                return
            stop = torch.maximum(stop, band.stop)

    def _closer(self, p: Tensor, band: OpenBins, needs: Needs, start: State, top: Tensor) -> None:
        """Look closer at the bins of a band.

        Rows with few items in them come to their end here, whatever the others need.
        """
        state = self._state_above(p, band, start, top)
        if needs.few:
            most = min(needs.items, self.few)
            self._one_by_one(self.passes.gather(p, band.few, band.high, most), state)
        if needs.items <= self.few:
            return
        if p.numel() >= LEAST and HELD * needs.items <= p.shape[1]:
            # From here on only these are read
            p = self.passes.keep(p, band.low, band.high, needs.items)
        table, _ = self.passes.table(p, band.window, self.finest, inner=True)
        if needs.finer:
            self._explore(p, table, state, band.high)
        else:
            self._single_values(table, state)

    def _state_above(self, p: Tensor, band: OpenBins, start: State, top: Tensor) -> State:
        """Add what is between the items of `start` and the band."""
        c, b_in, b_out, _, _ = self.form.coefficients
        tilts = self.form.inside, self.form.outside, b_in, b_out
        pi, ratio = self.passes.sums_between(p, band.high, top, *tilts)
        log_q = start.log_q
        if ratio is not None:
            log_q = (log_q + ratio).clamp(max=0.0)  # where rounding took a product to 0
        return State(band.k, torch.add(start.a, pi, alpha=c), log_q)

    def _one_by_one(self, key: Tensor, start: State) -> None:
        """Take the best border of single items."""
        key = key.sort(1, descending=True).values
        table = BinTable((key > 0).long(), key, key)
        ladder = self.tables.climb(self.form, table, start, exact=True, single=True)
        self._take_best(ladder, table)

    def _single_values(self, table: BinTable, start: State) -> None:
        """Take the best border of bins that are single values; cut runs of equal items."""
        pieces = PIECES
        while True:
            ladder = self.tables.climb(self.form, table, start, exact=True)
            first, stop = self._after_the_top(ladder.k, *self._take_best(ladder, table))
            if not (self.split and bool(stop.any())):
                return
            start = state_at(self.form, table, start, first)
            table = _cut_runs(table, ladder.k, first, stop, pieces)
            pieces = min(2 * pieces, MOST_PIECES)

    def _after_the_top(self, k: Tensor, first: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        """Leave out the first run of a row: among equal items at the top f only rises.

        See `row_kernels.smallest_useful_k`. Far from there f may be so flat that no bound tells.
        """
        _, b_in, b_out, s0, _ = self.form.coefficients
        if s0 > 0.0 or b_in > b_out or b_out == 0.0:
            return first, stop
        first = torch.where(k.gather(1, first[:, None])[:, 0] == 0.0, first + 1, first)
        is_open = first < stop
        return torch.where(is_open, first, 0), torch.where(is_open, stop, 0)

    def _take_best(self, ladder: object, table: BinTable) -> Tensor:
        """Compare the best border with the best so far; return which runs are open."""
        runs: Tensor = self.tables.take_best(
            ladder, table, self.reach, self.found, self.floor, self.split
        )
        return runs


def _cut_runs(table: BinTable, k: Tensor, first: Tensor, stop: Tensor, pieces: int) -> BinTable:
    """Return the runs of equal items from `first` to before `stop` in pieces, evenly cut.

    At last only so many items are cut, one by one: they are closed then, so that the search ends.
    """
    low, high = k.gather(1, first[:, None]), k.gather(1, stop[:, None])
    end = torch.minimum(high, low + pieces) if pieces == MOST_PIECES else high
    even = torch.linspace(0.0, 1.0, pieces + 1, dtype=torch.float64, device=k.device)
    even = (low + even * (end - low)).round()
    border = torch.cat([torch.minimum(torch.maximum(k, low), high), even], 1).sort(1).values
    run = (torch.searchsorted(k, border[:, 1:].contiguous()) - 1).clamp(min=0)
    size, key = border.diff(dim=1).long(), table.low.gather(1, run)
    some = size > 0
    order = (~some).long().sort(dim=1, stable=True).indices[:, : int(some.sum(1).amax())]
    size, key = size.gather(1, order), key.gather(1, order)
    return BinTable(size, key, key)
