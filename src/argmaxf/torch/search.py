r"""The certified optimum of every row at once: windows of keys, bounds, closer windows.

A window of keys is counted in 510 bins (one pass over the pixels). Bounds on f leave a few bins
open; they are the next window, until its items are few enough to be looked at one by one, or its
bins are single numbers: then f is exact at every border, and inside a run of equal items k is cut
by arithmetic. Rows go down together, each in its own window. Where bounds leave two stretches of
bins apart, one is followed to its end, then the other with what the first one was worth.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import CONTEST, SLACK, Bins, Form, Ladder, State, climb, state_at
from argmaxf.torch.keys import FINEST, ONE, values
from argmaxf.torch.passes import BINS, Window, passes_for

HELD = 16  # items are copied out once they are fewer than 1/HELD of all
PIECES = 256  # a run of equal items is cut into at most this many pieces at a time
TOP = ONE - (1014 << 52)  # the key of 1 - 2^-9
SHIFT = 48  # 16 bins for each power of two: the first window reaches down to 2^-25


class Found(NamedTuple):
    """The best set of each row: its size, its value, and the key of its lowest item."""

    k: Tensor
    f: Tensor
    lowest: Tensor


class Table(NamedTuple):
    """Bins of a window by falling p, and the keys at their ends."""

    size: Tensor
    low: Tensor
    high: Tensor

    @property
    def bins(self) -> Bins:
        """The same with probabilities instead of keys."""
        return Bins(self.size.double(), values(self.low), values(self.high))


def first_window(p: Tensor) -> Window:
    """Return the window of every row that holds all likely thresholds."""
    top = torch.full((len(p),), TOP, dtype=torch.int64, device=p.device)
    return Window(top, torch.full_like(top, max(SHIFT, FINEST[p.dtype])))


def table_of(window: Window, count: Tensor, step: int) -> Table:
    """Return the bins of a window; the first and the last one hold what is outside of it."""
    place = torch.arange(BINS, device=count.device)
    width = torch.ones_like(window.shift) << window.shift
    high = window.top[:, None] - (place - 1) * width[:, None]
    low = high - width[:, None] + step
    high[:, 0], low[:, -1] = ONE, step
    return Table(count, low.clamp(step, ONE), high.clamp(step, ONE))


class Search:
    """The search for the best set of each row of pixels (rows × n)."""

    def __init__(self, p: Tensor, form: Form, log_none: Tensor, reach: Tensor, split: bool) -> None:
        self.p, self.form, self.reach, self.split = p, form, reach, split
        self.passes = passes_for(p)
        self.finest = FINEST[p.dtype]
        k = torch.zeros_like(reach)
        self.start = State(k, torch.full_like(form.u, form.coefficients[3]), log_none)
        none = torch.full((len(p),), ONE + 1, dtype=torch.int64, device=p.device)
        self.found = Found(k, torch.zeros_like(reach), none)
        self.floor = torch.zeros_like(reach)  # some set is known to be worth this much

    def run(self, table: Table) -> Found:
        """Search from the table of the first window."""
        self._explore(table, self.start, torch.full_like(self.found.lowest, ONE))
        return self.found

    def _explore(self, table: Table, start: State, top: Tensor) -> None:
        """Follow every stretch of bins that may hold the optimum, in each row one after another.

        All items with keys above `top` are in `start`.
        """
        bins = table.bins
        ladder = climb(self.form, bins, start, exact=False)
        self.floor = torch.maximum(self.floor, self._useful(ladder).amax(1))
        hot = self._hot(ladder, bins)
        while bool(hot.any()):
            first, stop = self._stretch(hot, ladder.k)
            self._closer(table, ladder, start, top, first, stop)
            place = torch.arange(hot.shape[1], device=hot.device)
            hot &= (place >= stop[:, None]) & self._hot(ladder, bins)

    def _closer(
        self, table: Table, ladder: Ladder, start: State, top: Tensor, first: Tensor, stop: Tensor
    ) -> None:
        """Look closer at the bins from `first` to before `stop` of each row."""
        active = stop > first
        high = torch.where(active, _at(table.high, first), top)
        low = torch.where(active, _at(table.low, stop - 1), high + 1)
        outside = None if self.form.one_tilt else self.form.outside
        pi, ratio = self.passes.sums_between(self.p, high, top, self.form.inside, outside)
        a = start.a + self.form.coefficients[0] * pi
        log_q = (start.log_q + ratio).clamp(max=0.0)  # where rounding took a product to 0
        state = State(_at(ladder.k, first), a, log_q)
        items = int((_at(ladder.k, stop) - state.k).max())
        if items <= self.passes.ITEMS:
            self._exact(self._gathered(low, high, items), state)
            return
        all_items = self.p
        if HELD * items <= self.p.shape[1]:  # from here on only these are read
            self.p = values(self.passes.gather(self.p, low, high, items)).to(self.p.dtype)
        finer = ((high - low).clamp(min=0) // (BINS - 2)).double()
        shift = torch.frexp(finer)[1].long().clamp(min=self.finest)
        table = self._inner_table(Window(high, shift), active)
        if bool((shift == self.finest).all()):
            self._exact(table, state)
        else:
            self._explore(table, state, high)
        self.p = all_items

    def _inner_table(self, window: Window, active: Tensor) -> Table:
        """Count the items of a window; what is outside of it is left out."""
        count, _ = self.passes.count(self.p, window)
        place = torch.arange(BINS, device=count.device)
        inner = (place > 0) & (place < BINS - 1) & active[:, None]
        return table_of(window, torch.where(inner, count, 0), 1 << self.finest)

    def _gathered(self, low: Tensor, high: Tensor, most: int) -> Table:
        """Return the items between two keys, each in a bin of its own."""
        key = self.passes.gather(self.p, low, high, most).sort(1, descending=True).values
        return Table((key > 0).long(), key, key)

    def _exact(self, table: Table, start: State) -> None:
        """Take the best border of bins that are single values; cut runs of equal items."""
        while True:
            bins = table.bins
            ladder = climb(self.form, bins, start, exact=True)
            self._take_best(table, ladder)
            open_runs = self._hot(ladder, bins) & ~ladder.rises & (table.size > 1)
            if not (self.split and bool(open_runs.any())):
                return
            first, stop = _ends(open_runs)
            start = state_at(self.form, bins, start, first)
            table = _cut_runs(table, ladder.k, first, stop)

    def _useful(self, ladder: Ladder) -> Tensor:
        """f at the borders with 0 < k ≤ reach; -1 at others."""
        useful = (ladder.k <= self.reach[:, None]) & (ladder.k > 0)
        return ladder.f.masked_fill(~useful, -1.0)

    def _hot(self, ladder: Ladder, bins: Bins) -> Tensor:
        """Mark the bins that may hold the optimum, at their last item or before it."""
        full = bins.size > 0
        poor = ladder.ceiling < (1.0 - SLACK) * self.floor[:, None]
        beyond = ladder.k[:, :-1] >= self.reach[:, None]
        # A bin in which f only rises is left behind where it goes on rising in the next one.
        behind = ladder.rises & _of_next(full, ladder.rises)
        return full & ~(poor | beyond | ladder.falls | behind)

    def _stretch(self, hot: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return the bins to look at next: all hot ones if their items are few, or one stretch."""
        first, stop = _ends(hot)
        few = _at(k, stop) - _at(k, first) <= self.passes.ITEMS
        place = torch.arange(hot.shape[1], device=hot.device)
        cold = ~hot & (place > first[:, None])
        near = torch.where(cold.any(1), cold.long().argmax(1), hot.shape[1])
        return first, torch.where(few, stop, torch.minimum(near, stop))

    def _take_best(self, table: Table, ladder: Ladder) -> None:
        """Compare the best border with the best so far; exact ties go to the smallest k."""
        closed = table.size == 0
        if not self.split:  # equal items stay on one side
            closed |= _of_next(~closed, table.low) == table.low
        f = self._useful(ladder)[:, 1:].masked_fill(closed, -1.0)
        k = ladder.k[:, 1:]
        top = f.argmax(1)
        at = _as_good(f, k, _at(f, top)[:, None], _at(k, top)[:, None]).long().argmax(1)
        new, old = Found(_at(k, at), _at(f, at), _at(table.low, at)), self.found
        tied = _as_good(new.f, new.k, old.f, old.k) & _as_good(old.f, old.k, new.f, new.k)
        better = (new.f > 0.0) & torch.where(tied, new.k < old.k, new.f > old.f)
        self.found = Found(*(torch.where(better, a, b) for a, b in zip(new, old, strict=True)))
        self.floor = torch.maximum(self.floor, self.found.f)


def _cut_runs(table: Table, k: Tensor, first: Tensor, stop: Tensor) -> Table:
    """Return the runs of equal items from `first` to before `stop` in evenly cut pieces."""
    low, high = _at(k, first)[:, None], _at(k, stop)[:, None]
    even = torch.linspace(0.0, 1.0, PIECES + 1, dtype=torch.float64, device=k.device)
    even = (low + even * (high - low)).round()
    border = torch.cat([torch.minimum(torch.maximum(k, low), high), even], 1).sort(1).values
    run = (torch.searchsorted(k, border[:, 1:].contiguous()) - 1).clamp(min=0)
    key = table.low.gather(1, run)
    return Table(border.diff(dim=1).long(), key, key)


def _as_good(f: Tensor, k: Tensor, other_f: Tensor, other_k: Tensor) -> Tensor:
    """Whether f is at least the other value, up to rounding of the terms that are not shared."""
    unshared = (k - other_k).abs() / torch.maximum(k, other_k).clamp(min=1.0)
    return f >= other_f * (1.0 - CONTEST * unshared)


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
