"""Where the lowest chosen pixel of each row can be: a band of probabilities.

With hundreds of positives a few sums leave a narrow band around the cut, as for arrays
(`expected/flat.py` has the reasons, `host_kernels.prove` checks them). With fewer it begins at the
top, and counts in bins say where it ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import NotAProbability
from argmaxf.expected.flat_kernels import GO_ON, NOT_FLAT, POSITIVES, READY, STEPS, cut_of
from argmaxf.expected.power_kernels import SUMS
from argmaxf.measures import Coefficients
from argmaxf.torch.constants import once
from argmaxf.torch.engine import passes_for
from argmaxf.torch.form import least_denominator, plausible
from argmaxf.torch.host_kernels import improve
from argmaxf.torch.passes import BINS, edges
from argmaxf.torch.series import SMALL

SLACK = 1e-12  # bounds must hold by more than this
TINY = 5e-324  # the least number above 0
TOP = 1.0
SAMPLE, GOLDEN = 2048, (5.0**0.5 - 1.0) / 2.0
STEEPEST = 50.0  # u times the least denominator, at the last node with weight to speak of


class RowBands(NamedTuple):
    """A band of each row: what is below or above it is known to be best left out or taken in."""

    low: Floats
    middle: Floats
    high: Floats
    narrow: NDArray[np.bool_]  # whether that has to be proven; it begins at the top otherwise
    first: Floats  # smaller sets are worse
    above: Floats  # how many pixels are above
    size: Floats  # and how many inside
    mean: Floats  # Σ p of all pixels
    sums: Floats  # those of `passes.around`

    def of_rows(self, part: slice) -> RowBands:
        """Return the bands of some rows."""
        fields: Any = (each[part] for each in self)
        return RowBands(*fields)


def whole_rows(p: Tensor, c: Coefficients) -> RowBands:
    """Return bands that have every pixel."""
    rows, none = len(p), np.zeros(len(p))
    mean = p.sum(1, dtype=torch.float64).cpu().numpy()
    ends, sums = (none + TINY, none, none + TOP), np.zeros((rows, 2, SUMS))
    return RowBands(*ends, none > 0.0, _first(none, c), none, none + p.shape[1], mean, sums)


def _first(poor: Floats, c: Coefficients) -> Floats:
    """Return the least size of sets that count: with smoothing, the empty one may be the best."""
    return poor + 1.0 if c.s1 == 0.0 else 0.0 * poor


def bands_of(p: Tensor, c: Coefficients, narrow: bool = True) -> RowBands:
    """Return a narrow band of each row where there are many positives, else a wide one."""
    passes, n = passes_for(p), p.shape[1]
    v = guess(p, c) if narrow and 0.0 < c.b_out >= c.b_in else np.zeros(len(p))
    state = np.where(v > 0.0, GO_ON, NOT_FLAT)
    band, mean = np.zeros((3, len(p))), np.zeros(len(p))
    for step in range(STEPS):
        going_on = state == GO_ON
        cut = np.where(going_on, cut_of.py_func(v, c), TOP)
        # What is not above the cut is below it; nothing is asked of rows that are ready
        low = np.where(going_on | (step == 0), np.nextafter(cut, 2.0), 0.0)
        sums = passes.around(p, *on_device(p, low, cut)).cpu().numpy()
        if step == 0:
            mean = sums[:, :, 0].sum(1)
            if (np.rint(sums[:, :, :2].sum((1, 2))) < n).any():
                raise NotAProbability
        improve(v, n, mean, sums[:, 1, :2], tuple(map(float, c)), band, state)
        if not (state == GO_ON).any():
            break
    is_narrow, poor = state == READY, np.zeros(len(p))
    if not is_narrow.all():
        ends, poor = wide_ends(passes.bin_counts(p), c)
        band = np.where(is_narrow, band, np.stack([ends, ends, ends + TOP]))
    sums = passes.around(p, *on_device(p, band[0], band[2])).cpu().numpy()
    below, above = np.rint(sums[:, :, :2].sum(2)).T
    first = np.where(is_narrow, np.maximum(above, 1.0), _first(poor, c))
    low, middle, high = band
    return RowBands(low, middle, high, is_narrow, first, above, n - below - above, mean, sums)


def guess(p: Tensor, c: Coefficients) -> Floats:
    """Guess the highest ratio of means from a sample of each row; 0 if too few are positive."""
    n = p.shape[1]
    some = p[:, places(n, p.device)].double().sort(1, descending=True).values
    part, s0 = n / some.shape[1], c.s0 / c.c
    mass, k = some.cumsum(1), ranks(some.shape[1], p.device)
    denominator = torch.add(k, mass, alpha=c.b_in - c.b_out) + (
        c.b_out * mass[:, -1:] + c.s1 / part
    )
    worth = ((mass + s0 / part) / denominator).amax(1)
    found, mean = torch.stack([worth, mass[:, -1]]).cpu().numpy()
    return np.where(part * mean < POSITIVES, 0.0, found)


@once
def ranks(size: int, device: torch.device) -> Tensor:
    """The numbers from 1 on."""
    return torch.arange(1.0, size + 1.0, dtype=torch.float64, device=device)


@once
def places(n: int, device: torch.device) -> Tensor:
    """Some places from everywhere in a row, which meet no pattern that images have."""
    place = torch.arange(min(n, SAMPLE), device=device).double() * GOLDEN
    found: Tensor = place.frac().mul(n).long()
    return found


def on_device(p: Tensor, *numbers: Floats) -> tuple[Tensor, ...]:
    """Return numbers of each row as tensors beside the pixels."""
    return torch.from_numpy(np.stack(numbers)).to(p.device).unbind()


def wide_ends(counts: Tensor, c: Coefficients) -> tuple[Floats, Floats]:
    """Return below which probability nothing is in the best set, and a size that is too small.

    A set that cannot be worth what another one is at least is not the best (`worth_in_bins`).
    """
    low, _ = edges(counts.device)
    best, bound, mean_low = worth_in_bins(counts.double(), c)
    may_be = (counts > 0) & (bound >= best * (1.0 - SLACK))
    first, last = may_be.byte().argmax(1), BINS - 1 - may_be.byte().flip(1).argmax(1)
    above = (counts.cumsum(1) - counts).gather(1, first[:, None])[:, 0]
    end, poor = torch.stack([low[last], above]).cpu().numpy()
    # Pixels below a band are summed up by powers
    x = least_denominator(c, plausible(mean_low, np.inf)[0], _first(poor, c))
    w = -np.expm1(-max(c.b_in, c.b_out) * STEEPEST / x)
    return np.clip(end, TINY, SMALL / np.maximum(w, SMALL)), poor


def worth_in_bins(size: Tensor, c: Coefficients) -> tuple[Tensor, Tensor, Floats]:
    """Return what some set is worth at least, what those that end in a bin are at most, and Σ p.

    With M = Σ p of a set and X its denominator, by Jensen's inequality and by 1. of
    `expected/flat.py`, x the least X,

        (c M + s0) / (E[X] + b_in)  ≤  f_k  ≤  (c M + s0) (1 + Var X / x²) / E[X].

    Counts in bins bound M, and Σ p of all pixels.
    """
    low, high = edges(size.device)
    k, least, most = (torch.cumsum(size * edge, 1) for edge in (torch.ones_like(low), low, high))
    d, mean, above = c.b_out - c.b_in, most[:, -1:], k - size
    value = (c.c * least + c.s0) / (k + c.s1 + c.b_in * (1.0 + most) + c.b_out * (mean - most))
    best = torch.where(k > 0, value, 0.0).amax(1, keepdim=True)
    mean_low = least[:, -1].cpu().numpy()
    (x_of_row,) = on_device(size, least_denominator(c, plausible(mean_low, np.inf)[0], 1.0))
    x = torch.maximum(x_of_row[:, None], above + (c.s1 + 1.0))
    inside = most if d > 0.0 else least - size * low
    mean_x = torch.maximum(x, above + 1.0 + c.s1 + c.b_out * least[:, -1:] - d * inside)
    variance = max(c.b_in, c.b_out) ** 2 * mean
    return best, (c.c * most + c.s0) / mean_x * (1.0 + variance / x**2), mean_low
