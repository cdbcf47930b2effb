"""Tensors given to `maximize_expected_f` and `expected_f`: answers are tensors on their device.

On the CPU the NumPy decision is made on the tensor's own memory. Elsewhere the rows of the tensor
are decided where they are, as `segment` does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argmaxf._base.validation import NotAProbability
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.problem import Problem
from argmaxf.torch.pixels import as_floats
from argmaxf.torch.rows import decide, select
from argmaxf.torch.values import value_of

NUMPYS = torch.float64, torch.float32, torch.float16  # its types of floating-point numbers


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor of the CPU as an array: a view, but for types that NumPy does not have."""
    known = tensor.detach().resolve_neg()
    if known.dtype.is_floating_point and known.dtype not in NUMPYS:
        known = known.float()
    return known.numpy()


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


def maximize(proba: Tensor, average: str | None, problem: Problem) -> Decision:
    """Decide the tensor, its rows, its columns, or all of its cells, on its own device."""
    p = _numbers(proba)
    if average == "macro":
        rows = p.T.contiguous()
    else:
        rows = p.contiguous() if average == "samples" else p.reshape(1, -1)
    if rows.numel() == 0:
        raise ValueError("proba must hold at least one probability, got none")
    try:
        found = decide(rows, problem.coefficients, problem.zero_division, problem.split_ties)
    except NotAProbability:
        raise _first_bad(p) from None
    selected = select(rows, found)
    selected = selected.T if average == "macro" else selected.view(p.shape)
    k, expected, std, threshold = found.values
    values = (k, threshold, expected, std)
    if average in (None, "micro"):
        values = tuple(each[0] for each in values)  # type: ignore[assignment]
    return Decision(selected, *values, problem.beta, rows.shape[1])


def evaluate(proba: Tensor, selected: Any, problem: Problem) -> ExpectedF:
    """Return mean and standard deviation of the measure for any chosen set."""
    p, chosen = _numbers(proba), torch.as_tensor(selected, device=proba.device)
    if p.numel() == 0:
        raise ValueError("proba must hold at least one probability, got none")
    if p.dim() != 1 or chosen.shape != p.shape:
        shapes = tuple(p.shape), tuple(chosen.shape)
        raise ValueError(f"proba and selected must be of one length, got shapes {shapes}")
    if chosen.dtype != torch.bool and not bool(((chosen == 0) | (chosen == 1)).all()):
        raise ValueError("selected must be booleans, or zeros and ones")
    try:
        mean, std = value_of(
            p[None], chosen.bool()[None], problem.coefficients, problem.zero_division
        )
    except NotAProbability:
        raise _first_bad(p) from None
    return ExpectedF(mean[0], std[0])  # type: ignore[arg-type]


def _numbers(proba: Tensor) -> Tensor:
    """Return floating-point numbers that the passes take."""
    if proba.is_complex() or proba.layout != torch.strided:
        kind = proba.dtype if proba.is_complex() else proba.layout
        raise ValueError(f"proba must be a dense tensor of real numbers, got {kind}")
    return as_floats("proba", proba if proba.dtype.is_floating_point else proba.double())


def _first_bad(p: Tensor) -> ValueError:
    """Describe the first value that is no probability; called once one is known to exist."""
    place = tuple((~((p >= 0.0) & (p <= 1.0))).nonzero()[0].tolist())
    at = place if len(place) > 1 else place[0]
    return ValueError(
        f"proba must be finite and in [0, 1], got {float(p[place])!r} at position {at}"
    )
