r"""Rare pixels of a large set, p < 1/64, stand for themselves by their power sums.

Most pixels of most maps are next to certainly not of the class. With S_j = Σ p^j over them,

    Σ log(1 - p w) = -Σ_j w^j S_j / j,    Σ p / (1 - p w) = Σ_j w^{j-1} S_j,
    Σ p (1 - p) / (1 - p w)² = Σ_j j w^{j-1} (S_j - S_{j+1}),

to 14 digits with eight powers (ten for the last): eight numbers in the place of all these pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from argmaxf.torch.passes import BinTable, NodeTilt

BELOW = 1.0 / 64.0
LEAST_KEY = 1017 << 52  # the key of 1/64
POWERS = 8
LARGE = 1 << 24  # a set of so many pixels is parted


class Rare(NamedTuple):
    """S_1, S_2, … of the rare pixels of each row."""

    powers: Tensor

    def log_products(self, tilt: NodeTilt) -> Tensor:
        """Σ log(1 - p w) at each node."""
        j = torch.arange(1, POWERS + 1, device=tilt.w.device)
        return -_series(self.powers / j, tilt.w) * tilt.w

    def spread_sums(self, tilt: NodeTilt, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Σ a π and Σ a² π (1 - π) at each node."""
        j = torch.arange(1, POWERS, device=tilt.w.device)
        mean = weight[:, None] * tilt.x * _series(self.powers, tilt.w)
        steps = j * (self.powers[:, :-1] - self.powers[:, 1:])
        return mean, weight[:, None] ** 2 * tilt.x * _series(steps, tilt.w)


def _series(terms: Tensor, w: Tensor) -> Tensor:
    """Σ_j terms_j w^j."""
    total = torch.zeros_like(w)
    for j in reversed(range(terms.shape[1])):
        total = total * w + terms[:, j : j + 1]
    return total


def is_worth_parting(p: Tensor, table: BinTable) -> bool:
    """Whether it pays to part rare pixels from the others: in one large set, where most are."""
    if len(p) > 1 or p.numel() < LARGE:
        return False
    return 2 * int(table.size[table.high < LEAST_KEY].sum()) >= p.numel()


def part_rare(p: Tensor) -> tuple[Tensor, Rare]:
    """Return the pixels of a single row that are not rare, in their order, and the rare ones."""
    rare = p[p < BELOW].double()
    powers = torch.stack([(rare**j).sum() for j in range(1, POWERS + 1)])
    return p[p >= BELOW][None], Rare(powers[None])
