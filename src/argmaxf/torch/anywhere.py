"""The best masks of rows of pixels, and the value of any: as arrays on the CPU, else in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.expected.values import expected_f
from argmaxf.problem import Problem
from argmaxf.torch import engine
from argmaxf.torch.records import MaskValues
from argmaxf.torch.rows import decide, select
from argmaxf.torch.tensors import as_array
from argmaxf.torch.values import value_of

WORK = 64  # an item's value costs about as much as so many items in a pass over an array


def best_masks(rows: Tensor, problem: Problem) -> tuple[MaskValues, Tensor]:
    """Return the decision about each row of pixels, and its masks."""
    if not engine.by_numpy(rows):
        found = decide(rows, problem.coefficients, problem.zero_division)
        return found.values, select(rows, found)
    decision: Any = maximize_expected_f(rows, average="samples", **_options(problem))
    values = MaskValues(decision.k, decision.expected, decision.std, decision.threshold)
    return values, decision.selected


def mask_values(rows: Tensor, chosen: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of the measure for a mask of each row."""
    if not engine.by_numpy(rows):
        return value_of(rows, chosen, problem.coefficients, problem.zero_division)
    p, marks = as_array(rows), chosen.numpy()
    values = torch.empty(len(rows), 2, dtype=torch.float64)

    def work(part: slice) -> None:
        for r in range(part.start, part.stop):
            value = expected_f(p[r], marks[r], **_options(problem))
            values[r] = torch.tensor(value, dtype=torch.float64)

    in_threads(work, len(rows), threads_for(WORK * rows.numel()))
    return values[:, 0], values[:, 1]


def _options(problem: Problem) -> dict[str, Any]:
    """Return a question as the functions for arrays are asked it."""
    return {"measure": problem.measure, "zero_division": problem.zero_division}
