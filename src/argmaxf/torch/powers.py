r"""Sets with many positives: power sums of the pixels stand for all nodes.

Where w = 1 - e^{-bu} is at most 1/128 at every node, as it is with thousands of positives, the
sums over some pixels at all nodes follow from S_j = Σ p^j and V_j = Σ p^j (1 - p) over them:

    Σ log(1 - p w) = -Σ_j w^j S_j / j,    Σ p / (1 - p w) = Σ_j w^{j-1} S_j,
    Σ p (1 - p) / (1 - p w)² = Σ_j j w^{j-1} V_j,

to the last digit with eight powers (14 digits with the seven of V). So a pass reads the pixels and
adds up a few numbers, instead of a product or quotient for each pixel and node.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.constants import every_row, once
from argmaxf.torch.form import NodeTilt, RowForm
from argmaxf.torch.keys import ONE
from argmaxf.torch.passes import COLUMNS, POWERS

FLAT = 2.0**-7
WORTH = 1 << 24  # with fewer pixels, what is between the passes takes longer


def is_flat(p: Tensor, form: RowForm) -> bool:
    """Whether power sums stand for all nodes of all rows, and are worth it."""
    _, b_in, b_out, _, _ = form.coefficients
    return p.numel() >= WORTH and -math.expm1(-max(b_in, b_out) * form.steepest) <= FLAT


@once
def _exponents(device: torch.device) -> Tensor:
    """The numbers from 0 to POWERS."""
    return torch.arange(POWERS + 1, dtype=torch.float64, device=device)


class NodeSeries:
    """What each power sum counts at each node of a tilt, rows × nodes × powers."""

    def __init__(self, tilt: NodeTilt) -> None:
        j = _exponents(tilt.w.device)
        w = tilt.w[:, :, None] ** j
        self.mean = tilt.x[:, :, None] * w[:, :, :-1]
        self.variance = self.mean[:, :, :-1] * j[1:-1]
        self.log = w[:, :, 1:] / -j[1:]

    def log_products(self, s: Tensor) -> Tensor:
        """Σ log(1 - p w)."""
        return _product(self.log, s)

    def means(self, s: Tensor) -> Tensor:
        """Σ π."""
        return _product(self.mean, s)

    def variances(self, v: Tensor) -> Tensor:
        """Σ π (1 - π)."""
        return _product(self.variance, v)


def _product(table: Tensor, sums: Tensor) -> Tensor:
    return torch.bmm(table, sums[:, :, None])[:, :, 0]


class Sums(NamedTuple):
    """The sums of `powers` above a key of each row."""

    key: Tensor
    sums: Tensor


class PowerPasses:
    """The passes of a backend, with sums by powers: see `passes` for what they return.

    The pixels that the search looks closer at first are kept: where it looks at no others, as
    nearly always, the cut is among them, and sums above it need no pass over all pixels.
    """

    def __init__(self, passes: Any, p: Tensor, form: RowForm) -> None:
        self.passes, self.pixels = passes, p
        self.table, self.gather, self.few = passes.table, passes.gather, passes.few
        self.series = {id(form.inside): NodeSeries(form.inside)}
        if not form.one_tilt:
            self.series[id(form.outside)] = NodeSeries(form.outside)
        self.one_tilt = form.one_tilt
        self.all = self._above(every_row(-1, len(p), p.device))
        self.first: Sums | None = None  # above the first pixels looked at closer
        self.kept: Tensor | None = None  # these pixels
        self.cut: Sums | None = None

    def _series(self, tilt: NodeTilt) -> NodeSeries:
        return next(iter(self.series.values())) if self.one_tilt else self.series[id(tilt)]

    def _above(self, key: Tensor) -> Tensor:
        """Sums over all pixels above a key."""
        top = every_row(ONE, len(key), key.device)
        sums: Tensor = self.passes.powers(self.pixels, key, top, True)
        return sums

    def keep(self, p: Tensor, low: Tensor, high: Tensor, most: int) -> Tensor:
        """Return the items with keys in [low, high] of each row in a fixed order, zeros first."""
        kept: Tensor = self.passes.keep(p, low, high, most)
        if self.first is not None and self.first.key is high:
            self.kept = kept
        return kept

    def _above_cut(self, cut: Tensor) -> Tensor:
        """Sums over all pixels above the cut, which is among those kept or above all pixels."""
        if self.cut is None or self.cut.key is not cut:
            if self.kept is None or self.first is None:
                sums = self._above(cut)
            else:
                sums = self.passes.powers(self.kept, cut, self.first.key, True)
                self.first.sums[:, 1].zero_()  # how many are equal to its own key
                sums = torch.where((cut > ONE)[:, None], sums, sums + self.first.sums)
            self.cut = Sums(cut, sums)
        return self.cut.sums

    def log_products(self, p: Tensor, tilt: NodeTilt) -> Tensor:
        """Σ log(1 - p w) over all items of each row, at each node."""
        return self._series(tilt).log_products(self.all[:, 2:COLUMNS])

    def sums_between(
        self,
        p: Tensor,
        low: Tensor,
        high: Tensor,
        inside: NodeTilt,
        outside: NodeTilt,
        b_in: float,
        b_out: float,
    ) -> tuple[Tensor, Tensor | None]:
        """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high]."""
        if self.cut is not None and self.cut.key is low:
            sums = self.cut.sums
        else:
            sums = self.passes.powers(p, low, high, self.first is None)
        if self.first is None:  # the search begins at the top
            self.first = Sums(low, sums)
        elif p is self.pixels:
            self.kept = None  # others are looked at, too
        s = sums[:, 2:COLUMNS]
        ins, out = self._series(inside), self._series(outside)
        if self.one_tilt:
            return ins.means(s), None
        return ins.means(s), ins.log_products(s) - out.log_products(s)

    def spread_sums(
        self, p: Tensor, cut: Tensor, tilt: NodeTilt, weight_in: Tensor, weight_out: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Σ a π and Σ a² π (1 - π) over all items, and how many are above and at the cut.

        Those at the cut count as outside: all as if they were outside, and the difference for those
        above.
        """
        above = self._above_cut(cut)
        a, b = weight_in[:, None], weight_out[:, None]
        less, total, series = a - b, self.all, self._series(tilt)
        s = torch.addcmul(b * total[:, 2:COLUMNS], less, above[:, 2:COLUMNS])
        v = torch.addcmul(b * b * total[:, COLUMNS:], less * (a + b), above[:, COLUMNS:])
        number, equal = above[:, 0], above[:, 1]
        return series.means(s), series.variances(v), torch.stack([number, equal, equal], 1).long()
