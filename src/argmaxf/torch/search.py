"""The best set of each row among those that end in a band of it, and whether others can be better.

The first set of a row has the pixels above its band, `base` is its value, and every other f is
less that. The pixels of the band are read in order three times: for log Q of the first set, to
climb from set to set, and for the sums over the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.measures import Coefficients
from argmaxf.torch.bands import RowBands, on_device
from argmaxf.torch.engine import items_for
from argmaxf.torch.form import RowForm
from argmaxf.torch.host_kernels import prove
from argmaxf.torch.items import CONTEST, State
from argmaxf.torch.passes import parts_of
from argmaxf.torch.series import of_powers
from argmaxf.torch.stretches import ItemStretch
from argmaxf.torch.values import value_and_spread, value_of_nothing

Stretches = Callable[[], Iterable[ItemStretch]]


class Found(NamedTuple):
    """What `items.take_best` says of each row."""

    k: Tensor  # the size of the best set
    f: Tensor  # its value less that of the first set
    lowest: Tensor  # its lowest pixel
    over: Tensor  # how many of the band are above that
    equal: Tensor  # and how many are equal to it
    upper: Tensor  # how many are above the middle of the band
    mass: Tensor  # Σ p of these
    last: Tensor  # f at the end of the band, less that of the first set


class Answer(NamedTuple):
    """One decision for each row of pixels, on the host."""

    k: Floats
    expected: Floats
    std: Floats
    threshold: Floats  # the lowest chosen probability; infinite where nothing is chosen
    ties: Floats  # how many of the pixels equal to it are chosen
    equal: Floats  # of so many


class RowQuestion(NamedTuple):
    """What is asked of every row."""

    c: Coefficients
    zero: float  # the value of 0/0
    split: bool  # equal pixels may be parted

    @property
    def rises(self) -> bool:
        """Whether f only rises among equal pixels at the top: `smallest_useful_k` for arrays."""
        c = self.c
        return bool(c.s0 == 0.0 and c.b_in <= c.b_out and c.b_out > 0.0)


class BandSearch:
    """The search among the sets of each row that end in its band."""

    def __init__(
        self, p: Tensor, bands: RowBands, stretches: Stretches, chance: RowQuestion
    ) -> None:
        self.p, self.bands, self.stretches, self.chance = p, bands, stretches, chance
        c, n, last = chance.c, p.shape[1], bands.above + bands.size
        self.by = items_for(p)
        self.form = form = RowForm.for_sets(c, bands.mean, n, bands.first, last, p.device)
        _, _, w_in, x_in, w_out, x_out = form.nodes
        self.below = of_powers(bands.sums[:, 0], w_out, x_out)
        self.above = of_powers(bands.sums[:, 1], w_in, x_in)
        log_q, a = on_device(p, self.below[0] + self.above[0], c.c * self.above[1] + c.s0)
        for items, _ in stretches():
            log_q = log_q + self.by.log_products(items, form.outside)
        k, self.size, self.middle = on_device(p, bands.above, bands.size, bands.middle)
        self.start = State(k, a, log_q, torch.zeros_like(k))
        self._climb()

    def _climb(self) -> None:
        """Find f before the band, and the best set that ends in it."""
        start, stretches, by = self.start, iter(self.stretches()), self.by
        items, closed = next(stretches)
        self.base, f = by.climb(self.form, items, start)
        given = self.base, self.size, self.middle
        self.found, several = Found(*by.take_best(items, closed, f, start, *given)), False
        for following, closed in stretches:
            start, items, several = self._after(items, start, f[:, -1]), following, True
            _, f = by.climb(self.form, items, start)
            found = Found(*by.take_best(items, closed, f, start, *given))
            self.found = better_of(self.base, self.found, found)
        if several:  # each of them knows its own pixels only
            low = self.found.lowest.to(items.dtype)[:, None]
            over, equal = (self.p > low).sum(1) - self.start.k, (self.p == low).sum(1)
            self.found = self.found._replace(over=over, equal=equal)

    def _after(self, items: Tensor, start: State, f: Tensor) -> State:
        """Return the state after some items."""
        form, by, k = self.form, self.by, start.k + items.shape[1]
        a = start.a + form.coefficients.c * by.tilted_sums(items, form.inside)[0]
        if form.one_tilt:
            return State(k, a, start.log_q, f)
        log = by.log_products(items, form.inside) - by.log_products(items, form.outside)
        return State(k, a, start.log_q + log, f)

    def answer(self) -> tuple[Answer, NDArray[np.bool_]]:
        """Return the best sets, and whether no set that ends outside of its band is better.

        The empty set is the best where it is worth as much as others.
        """
        bands, c = self.bands, self.chance.c
        nothing = value_of_nothing(self.p, bands.mean, c, self.chance.zero)
        chosen = self._or_nothing(nothing.mean)
        log_q, inside, outside = self._sums(chosen)
        k, base, *others = torch.stack([chosen, self.base, *self.found[2:]]).cpu().numpy()
        low, over, equal, upper, mass, last = others
        value = value_and_spread(self.form, k, log_q, inside, outside)
        if c.s1 == 0.0:
            value = value.unless(k == 0.0, nothing)
        above = (k > 0.0) & np.isinf(low)  # no pixel of the band is chosen
        if above.any():
            low = np.where(above, self._lowest_above(), low)
        some = (k > 0.0) & ~above
        ties, equal = np.where(some, k - bands.above - over, 0.0), np.where(some, equal, 0.0)
        answer = Answer(k, *value, np.where(k > 0.0, low, np.inf), ties, equal)
        return answer, self._proven(upper, mass, base + last)

    def _sums(self, chosen: Tensor) -> tuple[Floats, Floats, Floats]:
        """Return log Q, and Σ π and Σ π (1 - π) over the pixels in the best set and out of it."""
        rank, sums = chosen - self.start.k, []
        for items, _ in self.stretches():
            sums.append(self.by.split_sums(self.form, items, rank))
            rank = rank - items.shape[1]
        found = sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)
        found[0] += self.start.log_q
        total = found.cpu().numpy()
        return total[0], total[1:3] + self.above[1:], total[3:] + self.below[1:]

    def _lowest_above(self) -> Floats:
        """Return the lowest pixel above the band of each row."""
        (high,) = on_device(self.p, self.bands.high)
        lowest = torch.full_like(high, torch.inf)
        for part in parts_of(*self.p.shape):
            p = self.p[:, part].double()
            lowest = torch.minimum(lowest, torch.where(p > high[:, None], p, torch.inf).amin(1))
        found: Floats = lowest.cpu().numpy()
        return found

    def _or_nothing(self, nothing: Floats) -> Tensor:
        """Return the sizes of the best sets, and 0 where the empty one is worth as much."""
        f = self.base + self.found.f
        if self.chance.c.s1 > 0.0:  # the set before a band from the top is the empty one
            worth = torch.where(self.start.k > 0.0, 0.0, self.base)
        else:
            (worth,) = on_device(self.p, nothing)
        return torch.where(f - worth > CONTEST * f, self.found.k, 0.0)

    def _proven(self, upper: Floats, mass: Floats, last: Floats) -> NDArray[np.bool_]:
        """Check it, given how much is above the middle of each band, and f at its end."""
        bands, proven = self.bands, ~self.bands.narrow
        sums, nodes = bands.sums, self.form.nodes
        sizes = np.stack([bands.above, bands.above + upper, bands.above + bands.size])
        # Σ p (1 - p), at most
        variance = sums[:, :, 2].sum(1) + bands.mean - sums[:, :, 0].sum(1)
        steepest = np.maximum(nodes[2].max(1), nodes[4].max(1))
        given = np.stack([sums[:, 1, 0] + mass, bands.mean, variance, last, steepest])
        ratio, n = self.form.ratio, self.p.shape[1]
        prove(sizes, given, n, ratio, np.stack(bands[:3]), proven)
        return proven


def better_of(base: Tensor, old: Found, new: Found) -> Found:
    """Return the better set of each row, of equal ones the smaller one, which is the old one."""
    slack = CONTEST * (new.k - old.k) / new.k.clamp(min=1.0) * (base + new.f)
    better = new.f - old.f > slack.clamp(min=0.0)
    best = (torch.where(better, *pair) for pair in zip(new, old, strict=True))
    return Found(*best)._replace(
        upper=old.upper + new.upper, mass=old.mass + new.mass, last=new.last
    )
