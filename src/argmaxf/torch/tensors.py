r"""Rows of probabilities in tensors: decided, valued and summed up where they are.

On the CPU the decision for arrays is made on the tensor's own memory. On NVIDIA GPUs kernels decide
(`triton_rows`); rows that they cannot decide, and tensors of other devices, are copied to the CPU.
Sums at the nodes of the quadrature are those of compiled loops or of kernels, in double precision
and in a fixed order, so that two runs agree bit for bit.

The functions of arrays call `as_array`, `is_elsewhere`, `in_kind`, `maximize` and `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.arrays import Floats, contiguous, readonly
from argmaxf._base.shown import Shown
from argmaxf._base.validation import NotAProbability, first_bad_probability
from argmaxf.expected import band
from argmaxf.expected.array_passes import ArrayPasses
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.maximize import decide_each_row
from argmaxf.expected.quadrature import denominator_range, reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients, Dice, IoU
from argmaxf.problem import Problem

DICE, IOU = Dice().coefficients(), IoU().coefficients()
KINDS = torch.float64, torch.float32, torch.float16, torch.bfloat16  # that the kernels take
ABSENT = -1.0  # no probability: a pixel that is in no sum


def has_triton(p: Tensor) -> bool:
    """Whether the pixels are on an NVIDIA GPU, and Triton is there."""
    return p.is_cuda and find_spec("triton") is not None


def kernels() -> Any:
    """Return the kernels for NVIDIA GPUs."""
    return import_module("argmaxf.torch.triton_rows")


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation(Shown):
    """Masks for a batch of images, and what to expect of them.

    Attributes
    ----------
    masks : Tensor
        Booleans in the shape of the probabilities: the pixels of each class.
    labels : Tensor
        With `exclusive`: the class of each pixel, -1 where it is ignored; None otherwise. Without
        background, 0 is a pixel of no class, and `masks` has it in none.
    expected : Tensor
        The expected measure of each image × class, in double precision: an estimate of quality that
        needs no labels, as good as the probabilities are calibrated. NaN for a class left out.
    std : Tensor
        The standard deviation of the measure of each image × class under the model.
    k : Tensor
        The number of selected pixels of each image × class.
    threshold : Tensor
        The lowest chosen probability of each image × class; only the first of several pixels equal
        to it may be selected. Infinite if no pixel is selected. For an ensemble it is the lowest
        contribution (Dice; see `JointDecision`) or the lowest mean over the members (IoU).
    bound : Tensor
        With `exclusive`: no labels of an image have a higher `mean`. With an ensemble and
        IoU: no mask of an image × class has a higher expected IoU. None otherwise.

    Examples
    --------
    >>> import torch
    >>> from argmaxf.torch import segment
    >>> found = segment(torch.tensor([[[[0.1, 0.2, 0.45], [0.4, 0.3, 0.05]]]]))
    >>> found.k, found.threshold
    (tensor([[3]]), tensor([[0.3000]], dtype=torch.float64))
    """

    masks: Tensor
    expected: Tensor
    std: Tensor
    k: Tensor
    threshold: Tensor
    labels: Tensor | None = None
    bound: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        """The expected mean over the classes of each image."""
        return self.expected.nanmean(-1)


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor of the CPU as an array: a view, but for types that NumPy does not have."""
    known = tensor.detach().resolve_neg()
    other = known.dtype.is_floating_point and known.dtype not in KINDS[:3]
    return (known.float() if other else known).numpy()


def is_elsewhere(tensor: Tensor) -> bool:
    """Whether a tensor is on another device than the CPU."""
    return tensor.device.type != "cpu"


def in_kind(record: Any, like: Tensor) -> Any:
    """Return a decision, or mean and spread, with tensors in the place of arrays and numbers."""
    if isinstance(record, ExpectedF):
        return ExpectedF(*(_tensor(value, like) for value in record))
    names = ("selected", "k", "threshold", "expected", "std", "bound", "expected_of_columns")
    fields = {name: getattr(record, name, None) for name in names}
    tensors = {name: _tensor(each, like) for name, each in fields.items() if each is not None}
    return replace(record, **tensors)


def _tensor(value: Any, like: Tensor) -> Any:
    return torch.as_tensor(np.asarray(value), device=like.device)


def as_floats(name: str, given: Tensor) -> Tensor:
    """Return a dense tensor as plain numbers that the kernels take: bfloat16 has all of 8 bits."""
    if given.is_complex() or given.layout != torch.strided or given.is_nested:
        odd = f"dtype {given.dtype}" if given.is_complex() else f"layout {given.layout}"
        kind = "a nested one" if given.is_nested else f"one of {odd}"
        raise ValueError(f"{name} must be a dense tensor of real numbers, got {kind}")
    if given.is_meta:
        raise ValueError(f"{name} must hold numbers, got a tensor of the meta device")
    p = given.detach().as_subclass(Tensor).resolve_neg()
    if p.dtype in KINDS:
        return p
    try:
        return p.to(torch.bfloat16 if p.dtype.is_floating_point else torch.float64)
    except (RuntimeError, NotImplementedError):  # two numbers in a byte, say
        raise ValueError(f"{name} must hold numbers of 8 to 64 bits, got {p.dtype}") from None


def check_range(p: Tensor) -> None:
    """Raise NotAProbability if there is one that is none; NaN is the least and the largest."""
    low, high = p.aminmax()
    if not bool((low >= 0.0) & (high <= 1.0)):
        raise NotAProbability


def best_masks(p: Tensor, problem: Problem) -> Segmentation:
    """Decide each row (rows × n, contiguous); raise NotAProbability if a value is none."""
    if not (has_triton(p) and band.knows(problem)):
        return _by_arrays(p, problem)
    return _by_kernels(p, problem)


def _by_arrays(p: Tensor, problem: Problem) -> Segmentation:
    """Decide rows on the CPU."""
    found: Any = in_kind(decide_each_row(as_array(p.cpu()), problem), p)
    return Segmentation(found.selected, found.expected, found.std, found.k, found.threshold)


def _by_kernels(p: Tensor, problem: Problem) -> Segmentation:
    """Decide rows on a GPU; the host waits once, and decides what the band cannot."""
    masks, numbers, on_host = kernels().decide(p, problem)
    status, _, threshold, _, _, extra = on_host.T
    if (status < 0.0).any():
        raise NotAProbability
    rest = np.flatnonzero(status == 0.0).tolist()
    if rest:
        others = _by_arrays(p[rest], problem)
        masks[rest] = others.masks
        values = others.k, others.threshold, others.expected, others.std
        numbers[rest, 1:5] = torch.stack([each.double() for each in values], 1)
    for r in np.flatnonzero((status > 0.0) & (extra > 0.0)).tolist():  # of equal ones the first
        equal = (p[r] == threshold[r]).nonzero()[:, 0]
        masks[r, equal[len(equal) - int(extra[r]) :]] = False
    _, k, lowest, mean, std, _ = numbers.unbind(1)
    return Segmentation(masks, mean, std, k.long(), lowest)


def mask_values(p: Tensor, masks: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of the measure for any mask of each row.

    Makes two copies of the items. Raises NotAProbability if a value is none.
    """
    from argmaxf.expected import node_kernels

    check_range(p)
    c, k = problem.coefficients, masks.sum(1).cpu().numpy().astype(np.float64)
    nodes = RowNodes.of(p, k if c.s1 > 0.0 else np.maximum(k, 1.0), k, c)
    inside = nodes.sums(p.masked_fill(~masks, ABSENT), inside=True)
    outside = nodes.sums(p.masked_fill(masks, ABSENT))
    ratio = type(c)(*map(float, c))
    each_row = zip(k.tolist(), inside, outside, nodes.table, strict=True)
    value = node_kernels.value_and_spread.compiled
    found = [value(*sums, 0.0, table, ratio) for *sums, table in each_row]
    mean, std = torch.tensor(found, dtype=torch.float64, device=p.device).unbind(1)
    if c.s1 == 0.0 and not k.all():
        # The empty set is worth 0/0 if there is no positive, or none that counts, and else 0
        empty = torch.from_numpy(k == 0.0).to(p.device)
        none = torch.ones_like(mean[empty]) if c.b_out == 0.0 else none_there(p[empty])
        mean[empty] = problem.zero_division * none
        std[empty] = problem.zero_division * (none * (1.0 - none)).sqrt()
    return mean, std


def maximize(proba: Tensor, average: str | None, problem: Problem) -> Decision:
    """Decide the tensor, its rows, its columns, or all of its cells, on its own device."""
    p = as_floats("p", proba)
    rows = p.T if average == "macro" else p if average == "samples" else p.reshape(1, -1)
    found = _answered(p, best_masks, rows.contiguous(), problem)
    selected = found.masks.T if average == "macro" else found.masks.view(p.shape)
    each: Any = (found.k, found.threshold, found.expected, found.std)
    if average in (None, "micro"):
        each = [values[0] for values in each]
    decided: Any = selected, *each, problem.beta, rows.shape[1]
    return Decision(*decided)


def evaluate(proba: Tensor, selected: Any, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure for any chosen set."""
    p, chosen = as_floats("p", proba), torch.as_tensor(selected, device=proba.device)
    if p.numel() and (p.dim() != 1 or chosen.shape != p.shape):
        shapes = tuple(p.shape), tuple(chosen.shape)
        raise ValueError(f"p and selected must be of one length, got shapes {shapes}")
    if chosen.dtype != torch.bool and not bool(((chosen == 0) | (chosen == 1)).all()):
        raise ValueError("selected must be booleans, or zeros and ones")
    mean, std = _answered(p, mask_values, p[None], chosen.bool()[None], problem)
    return ExpectedF(mean[0], std[0])


def _answered(p: Tensor, work: Callable[..., Any], *given: Any) -> Any:
    """Do some work on probabilities; name the first value that is none."""
    if p.numel() == 0:
        raise ValueError("p must hold at least one probability, got none")
    try:
        return work(*given)
    except NotAProbability:
        raise first_bad_probability("p", as_array(p.cpu())) from None


class RowNodes(NamedTuple):
    """The nodes for the denominators of sets of each row, and the tilts of a measure at them."""

    table: Floats  # rows × (the six below) × nodes, on the host
    u: Tensor
    weight: Tensor
    w_in: Tensor  # 1 - e^{-bu}
    x_in: Tensor  # e^{-bu}
    w_out: Tensor
    x_out: Tensor

    @classmethod
    def of(cls, p: Tensor, least: Floats, most: Floats, c: Coefficients) -> RowNodes:
        """Return nodes for sets of `least` to `most` pixels of each row; others have weight 0."""
        from argmaxf.expected.node_kernels import tilt

        n, found = float(p.shape[1]), []
        means = p.sum(1, dtype=torch.float64).tolist()
        for first, last, mean in zip(least.tolist(), most.tolist(), means, strict=True):
            u, weight = reciprocal_nodes(*denominator_range(mean, n, c, first, last, 0.0))
            found.append(np.array([u, weight, *tilt(u, c.b_in), *tilt(u, c.b_out)]))
        table = np.zeros((len(p), 6, max(each.shape[1] for each in found)))
        table[:, 3::2] = 1.0
        for row, each in zip(table, found, strict=True):
            row[:, : each.shape[1]] = each
        return cls(table, *torch.from_numpy(table).to(p.device).unbind(1))

    def sums(self, p: Tensor, inside: bool = False) -> Floats:
        """Return `node_sums` of pixels that are outside of a set, or inside."""
        w, x = (self.table[:, 2:4] if inside else self.table[:, 4:]).swapaxes(0, 1)
        return node_sums(p, np.ascontiguousarray(w), np.ascontiguousarray(x))

    def logs(self, p: Tensor) -> Tensor:
        """Return Σ log(1 - p w_out) over the pixels of each row, at each node."""
        return torch.from_numpy(self.sums(p)[:, 0].copy()).to(p.device)


def node_sums(p: Tensor, w: Floats, x: Floats) -> Floats:
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over the pixels of each row at its nodes.

    Rows × 4 × nodes, on the host. Pixels that are ABSENT do not count.
    """
    out = np.zeros((len(p), 4, w.shape[1]))
    if has_triton(p):
        tilts = torch.from_numpy(np.stack([w, x])).to(p.device)
        sums: Floats = kernels().node_sums(p.contiguous(), *tilts.unbind()).cpu().numpy()
        return sums
    from argmaxf.expected import node_kernels

    small = 2.0**-6  # p w at most, of which eight powers are a double's digits
    cut = small / np.maximum(w.max(1), small / 2.0)  # 2 where all pixels are below

    def add(r: int, row: Floats) -> None:
        counted = row[row >= 0.0]
        if counted.size:
            sums, items = ArrayPasses(counted).around(float(cut[r]), 2.0, counted.size)
            assert items is not None
            given = items, 0, items.size, sums[0], w[r], x[r]
            out[r] = node_kernels.sums_at_nodes.compiled(*given)

    _each_row(add, p)
    return out


def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
    if has_triton(p):
        found: Tensor = kernels().reciprocals(p, scale, x)
        return found
    from argmaxf.expected import dependent_kernels

    out = torch.empty(p.shape, dtype=torch.float64)
    nodes = [readonly(each.contiguous().numpy()) for each in (scale, 1.0 - x, x)]

    def fill(r: int, row: Floats) -> None:
        dependent_kernels.reciprocals(row, *(each[r] for each in nodes), out[r].numpy())

    _each_row(fill, p, 16)
    return out


def _each_row(work: Callable[[int, Floats], None], p: Tensor, cost: int = 1) -> None:
    """Do some work on each row as an array; `cost` is that of a pixel, in those of a sum."""

    def rows(part: slice) -> None:
        for r in range(part.start, part.stop):
            work(r, contiguous(p[r].cpu().double().numpy()))

    in_threads(rows, np.arange(len(p) + 1), threads_for(cost * p.numel()))


def none_there(p: Tensor) -> Tensor:
    """P(S = 0) = Π (1 - p) of each row."""
    return torch.log1p(-p.double()).sum(1).exp()
