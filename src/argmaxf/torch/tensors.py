"""Rows of probabilities in tensors: decided and valued where they are.

On the CPU the decision for arrays is made on the tensor's own memory. On NVIDIA GPUs kernels decide
(`triton_rows`); rows that they cannot decide, and tensors of other devices, are copied to the CPU.
The functions of arrays call `as_array`, `is_elsewhere`, `in_kind`, `maximize` and `evaluate`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.validation import NotAProbability, first_bad_probability
from argmaxf.expected import band
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.maximize import decide_each_row
from argmaxf.measures import Dice, IoU
from argmaxf.problem import Problem
from argmaxf.torch import passes
from argmaxf.torch.passes import ABSENT, RowNodes, none_there

DICE, IOU = Dice().coefficients(), IoU().coefficients()
KINDS = torch.float64, torch.float32, torch.float16, torch.bfloat16  # that the passes take


class Rows(NamedTuple):
    """The decision about each row: its mask, and what to expect of it."""

    chosen: Tensor
    k: Tensor
    expected: Tensor
    std: Tensor
    threshold: Tensor


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
    """Return a dense tensor as plain numbers that the passes take: bfloat16 has all of 8 bits."""
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


def best_masks(p: Tensor, problem: Problem) -> Rows:
    """Return the decision about each row (rows × n, contiguous).

    Raises NotAProbability if a value is none.
    """
    if not (passes.has_triton(p) and band.knows(problem)):
        return _by_arrays(p, problem)
    return _by_kernels(p, problem)


def _by_arrays(p: Tensor, problem: Problem) -> Rows:
    """Decide rows on the CPU."""
    found: Any = in_kind(decide_each_row(as_array(p.cpu()), problem), p)
    return Rows(found.selected, found.k, found.expected, found.std, found.threshold)


def _by_kernels(p: Tensor, problem: Problem) -> Rows:
    """Decide rows on a GPU; the host waits once, and decides what the band cannot."""
    chosen, numbers, on_host = passes.kernels().decide(p, problem)
    status, _, threshold, _, _, extra = on_host.T
    if (status < 0.0).any():
        raise NotAProbability
    rest = np.flatnonzero(status == 0.0).tolist()
    if rest:
        others = _by_arrays(p[rest], problem)
        chosen[rest] = others.chosen
        values = others.k, others.threshold, others.expected, others.std
        numbers[rest, 1:5] = torch.stack([each.double() for each in values], 1)
    for r in np.flatnonzero((status > 0.0) & (extra > 0.0)).tolist():  # of equal ones the first
        equal = (p[r] == threshold[r]).nonzero()[:, 0]
        chosen[r, equal[len(equal) - int(extra[r]) :]] = False
    _, k, lowest, mean, std, _ = numbers.unbind(1)
    return Rows(chosen, k.long(), mean, std, lowest)


def mask_values(p: Tensor, chosen: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of the measure for any chosen items of each row.

    Makes two copies of the items. Raises NotAProbability if a value is none.
    """
    from argmaxf.expected import band_kernels

    check_range(p)
    c, k = problem.coefficients, chosen.sum(1).cpu().numpy().astype(np.float64)
    nodes = RowNodes.of(p, k if c.s1 > 0.0 else np.maximum(k, 1.0), k, c)
    inside = nodes.sums(p.masked_fill(~chosen, ABSENT), inside=True)
    outside = nodes.sums(p.masked_fill(chosen, ABSENT))
    ratio = type(c)(*map(float, c))
    each_row = zip(k.tolist(), inside, outside, nodes.table, strict=True)
    value = band_kernels.value_and_spread.compiled
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
    if rows.numel() == 0:
        raise ValueError("p must hold at least one probability, got none")
    try:
        found = best_masks(rows.contiguous(), problem)
    except NotAProbability:
        raise first_bad_probability("p", as_array(p.cpu())) from None
    selected = found.chosen.T if average == "macro" else found.chosen.view(p.shape)
    one_set = average in (None, "micro")
    k, expected, std, threshold = (each[0] if one_set else each for each in found[1:])
    decided: Any = selected, k, threshold, expected, std, problem.beta, rows.shape[1]
    return Decision(*decided)


def evaluate(proba: Tensor, selected: Any, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure for any chosen set."""
    p, chosen = as_floats("p", proba), torch.as_tensor(selected, device=proba.device)
    if p.numel() == 0:
        raise ValueError("p must hold at least one probability, got none")
    if p.dim() != 1 or chosen.shape != p.shape:
        shapes = tuple(p.shape), tuple(chosen.shape)
        raise ValueError(f"p and selected must be of one length, got shapes {shapes}")
    if chosen.dtype != torch.bool and not bool(((chosen == 0) | (chosen == 1)).all()):
        raise ValueError("selected must be booleans, or zeros and ones")
    try:
        mean, std = mask_values(p[None], chosen.bool()[None], problem)
    except NotAProbability:
        raise first_bad_probability("p", as_array(p.cpu())) from None
    return ExpectedF(mean[0], std[0])  # type: ignore[arg-type]
