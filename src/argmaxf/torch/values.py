"""Mean and standard deviation of a measure for sets of pixels, and for none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.measures import Coefficients
from argmaxf.torch import host_kernels
from argmaxf.torch.engine import MOST_ROWS
from argmaxf.torch.form import RowForm, by_rows
from argmaxf.torch.pixels import check_range
from argmaxf.torch.series import none_there, of_pixels

NO_POSITIVE = 745.0  # e to minus this is no number above 0


class Chance(NamedTuple):
    """Mean and standard deviation of a measure, for each row."""

    mean: Floats
    std: Floats

    def unless(self, empty: NDArray[np.bool_], other: Chance) -> Chance:
        """Return another one's where the set is empty."""
        return Chance(*(np.where(empty, *pair) for pair in zip(other, self, strict=True)))


def value_and_spread(
    form: RowForm, k: Floats, log_q: Floats, inside: Floats, outside: Floats
) -> Chance:
    """Return mean and spread, given log Q, and Σ π and Σ π (1 - π) in the set and out of it."""
    given = form.nodes, k, log_q, inside, outside, form.ratio
    return Chance(*by_rows(host_kernels.value_rows, k.size, *given, out=np.empty((2, k.size))))


def value_of_nothing(p: Tensor, mean: Floats, c: Coefficients, zero: float) -> Chance:
    """The empty set is worth 0/0 if there is no positive, or none that counts, and else 0."""
    none = np.zeros(mean.size)
    if zero == 0.0:
        return Chance(none, none)
    if c.b_out == 0.0:
        none = none + 1.0
    elif (mean < NO_POSITIVE).any():
        none = none_there(p).cpu().numpy()
    return Chance(zero * none, zero * np.sqrt(none * (1.0 - none)))


def value_of(p: Tensor, chosen: Tensor, c: Coefficients, zero: float) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of a measure for any chosen pixels of each row.

    Makes two copies of the pixels.
    """
    if len(p) > MOST_ROWS:
        parts = zip(torch.split(p, MOST_ROWS), torch.split(chosen, MOST_ROWS), strict=True)
        means, stds = zip(*(value_of(*part, c, zero) for part in parts), strict=True)
        return torch.cat(means), torch.cat(stds)
    check_range(p)
    k, mean = torch.stack([chosen.sum(1), p.sum(1, dtype=torch.float64)]).cpu().numpy()
    first = k if c.s1 > 0.0 else np.maximum(k, 1.0)
    form = RowForm.for_sets(c, mean, p.shape[1], first, k, p.device)
    inside = of_pixels(p.masked_fill(~chosen, 0.0), form.inside).cpu().numpy()
    outside = of_pixels(p.masked_fill(chosen, 0.0), form.outside).cpu().numpy()
    found = value_and_spread(form, k, inside[0] + outside[0], inside[1:], outside[1:])
    if c.s1 == 0.0:
        found = found.unless(k == 0.0, value_of_nothing(p, mean, c, zero))
    expected, std = torch.from_numpy(np.stack(found)).to(p.device)
    return expected, std
