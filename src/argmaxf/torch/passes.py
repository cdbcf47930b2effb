r"""The band's passes over rows of a tensor, in plain torch, and sums over rows at the nodes.

See `expected/band.py` for what the passes are for. `triton_passes` has the same for NVIDIA GPUs,
where Triton is installed. Sums are in double precision and in a fixed order, so that two runs agree
bit for bit. The host waits for counts, for sums above a threshold (once or twice), and for sums and
pixels of a band. Two waits would do: with Σ p in each bin the threshold needs no sums of its own,
and pixels can be copied by the launch that sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.arrays import Floats, contiguous, readonly
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import band
from argmaxf.expected.band import Around, Counts
from argmaxf.expected.pass_kernels import BINS, ONE, SUMS
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients

ABSENT = -1.0  # no probability: a pixel that is in no sum


def is_on_cpu(p: Tensor) -> bool:
    """Whether the compiled loops for arrays can have the pixels."""
    return p.device.type == "cpu"


def has_triton(p: Tensor) -> bool:
    """Whether the pixels are on an NVIDIA GPU, and Triton is there."""
    return p.is_cuda and find_spec("triton") is not None


def kernels_for(p: Tensor) -> Any:
    """Return what counts, sums up and gathers pixels: Triton's kernels, or plain torch."""
    return import_module("argmaxf.torch.triton_passes") if has_triton(p) else PlainTorch


class TensorPasses:
    """The passes over rows of a contiguous tensor (`band.Passes`); so many pixels are ABSENT."""

    def __init__(self, p: Tensor, absent: Floats | float = 0.0) -> None:
        self.p, self.absent, self.by = p, absent, kernels_for(p)
        self.rows, self.n = p.shape

    def counts(self, sampled: bool = False) -> Counts:
        """Count the pixels in bins; raise NotAProbability if a value is none."""
        table = self.by.bins(self.p).cpu().numpy()
        if (table.sum(1) != self.n).any():
            raise NotAProbability
        return Counts(table, 1.0)

    def above(self, cut: Floats) -> Floats:
        """Return Σ p, how many pixels are above a threshold, and their Σ p."""
        ends = on_device(self.p, np.nextafter(cut, 2.0), cut)
        sums = self.by.powers(self.p, *ends).cpu().numpy()
        return np.stack([sums[:, :, 0].sum(1), np.rint(sums[:, 1, :2].sum(1)), sums[:, 1, 0]], 1)

    def around(self, low: Floats, high: Floats, room: int) -> Around:
        """Return the sums around a band, and its pixels in ascending order."""
        sums = self.by.powers(self.p, *on_device(self.p, low, high)).cpu().numpy()
        size = (self.n - np.rint(sums[:, :, :2].sum((1, 2))) - self.absent).astype(np.int64)
        fits = size <= room
        size = np.where(fits, size, 0)
        items = np.split(np.empty(0), [0] * (self.rows - 1))
        if size.any():
            first, last = on_device(self.p, np.where(size, low, 2.0), np.where(size, high, 2.0))
            flat = self.by.gather(self.p, first, last, size).double().cpu().numpy()
            items = np.split(flat, np.cumsum(size)[:-1])
        pairs = zip(items, fits, strict=True)
        return Around(sums, [np.sort(each) if fit else None for each, fit in pairs])

    def least_above(self, cut: Floats) -> Floats:
        """Return the least pixel of each row above its threshold."""
        (high,) = on_device(self.p, cut)
        least = torch.full_like(high, torch.inf)
        for d in parts_of(self.p):
            least = torch.minimum(least, torch.where(d > high[:, None], d, torch.inf).amin(1))
        found: Floats = least.cpu().numpy()
        return found


class PlainTorch:
    """What `triton_passes` has, in plain torch."""

    @staticmethod
    def bins(p: Tensor) -> Tensor:
        """Count the pixels of each row in the bins; what is no probability is in none."""
        counts = torch.zeros(len(p) * (BINS + 1), dtype=torch.int64, device=p.device)
        first = (BINS + 1) * torch.arange(len(p), device=p.device)[:, None]
        for d in parts_of(p):
            place = (ONE - (d.abs().view(torch.int64) >> 48)).clamp(0, BINS - 1)
            place.masked_fill_(~((d >= 0.0) & (d <= 1.0)), BINS)
            counts += torch.bincount((place + first).view(-1), minlength=counts.numel())
        return counts.view(len(p), BINS + 1)[:, :BINS]

    @staticmethod
    def powers(p: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Σ p and Σ p^j (1 - p), j = 0 … 7, over the pixels below `low` and above `high`.

        Rows × 2 × 9. What is no probability counts nowhere.
        """
        out = torch.zeros(len(p), 2, SUMS, dtype=torch.float64, device=p.device)
        for d in parts_of(p):
            below, above = (d >= 0.0) & (d < low[:, None]), (d > high[:, None]) & (d <= 1.0)
            for side, there in enumerate((below, above)):
                out[:, side, 0] += torch.where(there, d, 0.0).sum(1)
                term = torch.where(there, 1.0 - d, 0.0)
                for j in range(1, SUMS):
                    out[:, side, j] += term.sum(1)
                    term *= d
        return out

    @staticmethod
    def gather(p: Tensor, low: Tensor, high: Tensor, size: NDArray[np.int64]) -> Tensor:
        """Return the pixels from `low` to `high`, row after row; `size` says how many."""
        found = []
        for r in np.flatnonzero(size).tolist():
            d = p[r].double()
            found.append(p[r][(d >= low[r]) & (d <= high[r])])
        return torch.cat(found)

    @staticmethod
    def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
        """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
        at_once = max(1, (1 << 20) // max(x.numel(), 1))
        found = []
        for part in torch.split(p, at_once, 1):
            d = part.double()[:, :, None]
            found.append((scale[:, None] / torch.addcmul(1.0 - d, d, x[:, None])).sum(2))
        return torch.cat(found, 1)


def parts_of(p: Tensor) -> Iterator[Tensor]:
    """Yield some pixels of all rows after others, in double precision."""
    at_once = 1 << 21
    for part in torch.split(p, max(1, at_once // max(len(p), 1)), 1):
        yield part.double()


def on_device(p: Tensor, *numbers: Floats) -> tuple[Tensor, ...]:
    """Return numbers of each row as tensors beside the pixels."""
    return torch.from_numpy(np.stack(numbers)).to(p.device).unbind()


class RowNodes(NamedTuple):
    """The nodes for the denominators of sets of each row, and the tilts of a measure at them."""

    table: Floats  # rows × (the six below) × nodes, on the host
    most: Floats  # positives that each row plausibly has
    u: Tensor
    weight: Tensor
    w_in: Tensor  # 1 - e^{-bu}
    x_in: Tensor  # e^{-bu}
    w_out: Tensor
    x_out: Tensor

    @classmethod
    def of(cls, p: Tensor, least: Floats, most: Floats, c: Coefficients) -> RowNodes:
        """Return nodes for sets of `least` to `most` pixels of each row; others have weight 0."""
        n, found, positives = p.shape[1], [], []
        means = p.sum(1, dtype=torch.float64).tolist()
        for first, last, mean in zip(least.tolist(), most.tolist(), means, strict=True):
            fewest, largest = band.plausible_positives(mean, n)
            x = band.least_denominator(first, fewest, c)
            found.append(band.nodes_for(x, last, mean, n, c))
            positives.append(largest)
        table = np.zeros((len(p), 6, max(each.shape[1] for each in found)))
        table[:, 3::2] = 1.0
        for row, each in zip(table, found, strict=True):
            row[:, : each.shape[1]] = each
        return cls(table, np.array(positives), *torch.from_numpy(table).to(p.device).unbind(1))


def node_sums(p: Tensor, w: Floats, x: Floats, absent: Floats | float = 0.0) -> Floats:
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over the pixels of each row at its nodes.

    Rows × 4 × nodes, on the host; so many pixels are ABSENT. Those with a large p w are summed up
    one by one; they are few: their p add up to the positives, of which there are few where w is not
    small.
    """
    from argmaxf.expected import band_kernels

    small = 2.0**-6  # p w at most, of which eight powers are a double's digits
    cut = small / np.maximum(w.max(1), small / 2.0)  # 2 where all pixels are below
    sums, items = TensorPasses(p, absent).around(cut, np.full_like(cut, 2.0), p.shape[1])
    out = np.empty((len(p), 4, w.shape[1]))

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            own: Floats = items[r]  # type: ignore[assignment]
            given = own, 0, own.size, sums[r, 0], w[r], x[r]
            out[r] = band_kernels.sums_at_nodes.compiled(*given)

    in_threads(work, len(p), threads_for(sum(each.size for each in items if each is not None)))
    return out


def pixel_logs(p: Tensor, nodes: RowNodes) -> Tensor:
    """Σ log(1 - p w_out) over the pixels of each row, at each node."""
    found = node_sums(p, nodes.table[:, 4].copy(), nodes.table[:, 5].copy())[:, 0]
    return torch.from_numpy(np.ascontiguousarray(found)).to(p.device)


def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
    if not is_on_cpu(p):
        return kernels_for(p).reciprocals(p, scale, x)  # type: ignore[no-any-return]
    from argmaxf.expected import dependent_kernels

    work = 16  # a pixel costs about as much as so many in a pass over an array
    out = torch.empty(p.shape, dtype=torch.float64)
    nodes = [readonly(each.contiguous().numpy()) for each in (scale, 1.0 - x, x)]

    def rows(part: slice) -> None:
        for r in range(part.start, part.stop):
            items = contiguous(p[r].double().numpy())
            dependent_kernels.reciprocals(items, *(each[r] for each in nodes), out[r].numpy())

    in_threads(rows, len(p), threads_for(work * p.numel()))
    return out


def none_there(p: Tensor) -> Tensor:
    """P(S = 0) = Π (1 - p) of each row."""
    log = torch.zeros(len(p), dtype=torch.float64, device=p.device)
    for d in parts_of(p):
        log += torch.log1p(-d).sum(1)
    return log.exp()
