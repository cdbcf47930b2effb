r"""Sets with many positives: power sums of the pixels stand for all nodes.

Where w = 1 - e^{-bu} is at most 1/128 at every node, as it is with thousands of positives, the
sums over some pixels at all nodes follow from S_j = Σ p^j and V_j = Σ p^j (1 - p) over them:

    Σ log(1 - p w) = -Σ_j w^j S_j / j,    Σ p / (1 - p w) = Σ_j w^{j-1} S_j,
    Σ p (1 - p) / (1 - p w)² = Σ_j j w^{j-1} V_j,

to the last digit with eight powers (14 digits with the seven of V). So a pass reads the pixels and
adds up a few numbers, instead of a product or quotient for each pixel and node.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import RowForm
from argmaxf.torch.keys import ONE, values
from argmaxf.torch.passes import POWERS, NodeTilt

FLAT = 2.0**-7
WORTH = 1 << 24  # with fewer pixels, what is between the passes takes longer


def is_flat(p: Tensor, form: RowForm) -> bool:
    """Whether power sums stand for all nodes of all rows; few pixels are not asked."""
    if p.numel() < WORTH:
        return False
    return bool(torch.maximum(form.inside.w.amax(), form.outside.w.amax()) <= FLAT)


@functools.lru_cache(maxsize=8)
def _exponents(device: torch.device) -> Tensor:
    """The numbers from 1 to POWERS."""
    return torch.arange(1, POWERS + 1, dtype=torch.float64, device=device)


class NodeSeries:
    """What each power sum counts at each node of a tilt, rows × nodes × powers."""

    def __init__(self, tilt: NodeTilt) -> None:
        j = _exponents(tilt.w.device)
        w = tilt.w[:, :, None]
        self.mean = tilt.x[:, :, None] * w ** (j - 1.0)
        self.variance = (j * self.mean)[:, :, : POWERS - 1]
        self.log = -(w**j) / j

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
    return (table @ sums[:, :, None])[:, :, 0]


class PixelPowers(NamedTuple):
    """How many pixels of each row are between two keys and at the lower one; S_j and V_j."""

    number: Tensor
    equal: Tensor
    s: Tensor
    v: Tensor

    @classmethod
    def of(cls, passes: Any, p: Tensor, low: Tensor, high: Tensor, spread: bool) -> PixelPowers:
        """Read the pixels with keys in (low, high]; V_j only for the `spread`."""
        sums = passes.powers(p, low, high, spread)
        return cls(sums[:, 0], sums[:, 1], sums[:, 2 : 2 + POWERS], sums[:, 2 + POWERS :])

    def below(self, all_pixels: PixelPowers, low: Tensor) -> tuple[Tensor, Tensor]:
        """S_j and V_j of what all pixels have besides these, and besides those at the lower key."""
        p = values(low.clamp(max=ONE))[:, None]
        equal = self.equal[:, None] * p ** _exponents(p.device)
        others = equal[:, :-1] * (1.0 - p)
        return all_pixels.s - self.s - equal, all_pixels.v - self.v - others


class PowerPasses:
    """The passes of a backend, with sums by powers: see `passes` for what they return."""

    def __init__(self, passes: Any, p: Tensor, form: RowForm) -> None:
        self.passes = passes
        self.table, self.gather, self.few = passes.table, passes.gather, passes.few
        self.series = {id(form.inside): NodeSeries(form.inside)}
        if not form.one_tilt:
            self.series[id(form.outside)] = NodeSeries(form.outside)
        self.one_tilt = form.one_tilt
        lowest = torch.full((len(p),), -1, dtype=torch.int64, device=p.device)
        self.all = PixelPowers.of(passes, p, lowest, torch.full_like(lowest, ONE), spread=True)

    def _series(self, tilt: NodeTilt) -> NodeSeries:
        return next(iter(self.series.values())) if self.one_tilt else self.series[id(tilt)]

    def log_products(self, p: Tensor, tilt: NodeTilt) -> Tensor:
        """Σ log(1 - p w) over all items of each row, at each node."""
        return self._series(tilt).log_products(self.all.s)

    def sums_between(
        self,
        p: Tensor,
        low: Tensor,
        high: Tensor,
        inside: NodeTilt,
        outside: NodeTilt,
        b_in: float,
        b_out: float,
    ) -> tuple[Tensor, Tensor]:
        """Σ π, and Σ log (1 - p w_in) / (1 - p w_out), over items whose key is in (low, high]."""
        s = PixelPowers.of(self.passes, p, low, high, spread=False).s
        ins, out = self._series(inside), self._series(outside)
        if self.one_tilt:
            return ins.means(s), torch.zeros_like(inside.w)
        return ins.means(s), ins.log_products(s) - out.log_products(s)

    def spread_sums(
        self, p: Tensor, cut: Tensor, tilt: NodeTilt, weight_in: Tensor, weight_out: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Σ a π and Σ a² π (1 - π) of items whose key is not `cut`; how many are above and at it.

        What is below the cut is what all have, less what is above and at it.
        """
        above = PixelPowers.of(self.passes, p, cut, torch.full_like(cut, ONE), spread=True)
        s, v = above.below(self.all, cut)
        a, b = weight_in[:, None], weight_out[:, None]
        series = self._series(tilt)
        mean = series.means(a * above.s + b * s)
        variance = series.variances(a * a * above.v + b * b * v)
        return mean, variance, torch.stack([above.number, above.equal], 1).long()
