"""One class for each pixel: the classes of an image share its pixels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.validation import NotAProbability
from argmaxf.expected.macro import maximize_expected_macro_f
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import engine
from argmaxf.torch.anywhere import mask_values
from argmaxf.torch.exclusive import NO_CLASS, decide_image
from argmaxf.torch.pixels import check_range, counted_of, first_bad, kept_of
from argmaxf.torch.records import MaskValues, Segmentation, shaped
from argmaxf.torch.tensors import as_array


def segment_exclusively(
    probs: Tensor, pixels: Tensor, ignore: Tensor | None, background: bool, zero: float
) -> Segmentation:
    """Give each pixel to one class, or leave it to the background where that has no value."""
    kept = kept_of(pixels, background)
    counted = torch.ones_like(kept[:, 0], dtype=torch.bool)
    if ignore is not None:
        counted = counted_of(ignore, probs)
    labels = torch.full(counted.shape, NO_CLASS, device=probs.device)
    bound = []
    decide_cells = _cells_by_numpy if engine.by_numpy(kept) else decide_image
    for image, where in enumerate(counted):
        cells = kept[image] if ignore is None else kept[image][:, where]
        if cells.shape[1] == 0:  # all pixels are ignored
            bound.append(zero)
            continue
        try:
            check_range(cells)
        except NotAProbability:
            raise first_bad(probs, ignore, None if background else 1) from None
        labels[image, where], best = decide_cells(cells, zero, background)
        bound.append(best)
    place = torch.arange(kept.shape[1], device=probs.device)[:, None]
    rows, chosen = kept.flatten(0, 1), (labels[:, None] == place).flatten(0, 1)
    mean, std = mask_values(rows, chosen, Problem.of(1.0, Dice(), zero))
    lowest = torch.where(chosen, rows.double(), torch.inf).amin(1)
    answer = shaped(probs, kept, MaskValues(chosen.sum(1), mean, std, lowest), chosen)
    labels = (labels if background else labels + 1).masked_fill(~counted, -1)
    proven = torch.tensor(bound, dtype=torch.float64, device=probs.device)
    return replace(
        answer,
        labels=labels.view(probs.shape[0], *probs.shape[2:]),
        bound=torch.maximum(proven, answer.mean),  # no rounding puts it below the value
    )


def _cells_by_numpy(cells: Tensor, zero: float, everywhere: bool) -> tuple[Tensor, float]:
    """Return the class of each pixel, and the bound, by the decision for arrays."""
    rule: dict[str, Any] = {"labels_per_row" if everywhere else "max_labels_per_row": 1}
    p = as_array(cells).T.astype(np.float64)
    found: Any = maximize_expected_macro_f(p, zero_division=zero, **rule)
    labels = np.where(found.selected.any(1), found.selected.argmax(1), NO_CLASS)
    return torch.from_numpy(labels), found.bound
