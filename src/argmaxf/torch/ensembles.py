"""Ensembles and test-time augmentation: each image × class is decided under a mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import NotAProbability, as_weights, ones_unless
from argmaxf.expected.dependent import maximize_expected_f_from_mixture
from argmaxf.measures import Dice
from argmaxf.problem import Problem
from argmaxf.torch import engine
from argmaxf.torch.mixtures import best_dice, best_iou, mixture_value
from argmaxf.torch.pixels import check_floating, check_range, first_bad, kept_of, pixels_of
from argmaxf.torch.records import MaskValues, Segmentation, shaped, table_of
from argmaxf.torch.tensors import as_array

DICE = Dice().coefficients()


def segment_ensemble(
    probs: Tensor,
    ignore: Tensor | None,
    weights: ArrayLike | None,
    background: bool,
    chance: Problem,
) -> Segmentation:
    """Decide each image × class under a mixture of the ensemble's members."""
    check_floating(probs)
    if probs.dim() < 4 or probs.numel() == 0:
        shape = tuple(probs.shape)
        raise ValueError(
            f"probs must be members × batch × classes × pixels, none empty; got shape {shape}"
        )
    pixels = torch.stack([pixels_of(member, ignore) for member in probs])
    kept = kept_of(pixels, background)
    try:
        check_range(kept)
    except NotAProbability:
        axis = None if background else 2
        raise first_bad(pixels.view(probs.shape), None, axis) from None
    given = ones_unless(as_weights(weights, len(probs), "weights"), len(probs))
    is_dice = chance.coefficients == DICE
    decide_set = _set_by_numpy if is_dice and engine.by_numpy(pixels) else _set_in_place
    found = [decide_set(p, given, chance) for p in kept.flatten(1, 2).unbind(1)]
    chosen, k, mean, std, lowest, bound = map(torch.stack, zip(*found, strict=True))
    answer = shaped(probs[0], kept[0], MaskValues(k, mean, std, lowest), chosen)
    if is_dice:
        return answer
    return replace(answer, bound=table_of(probs[0], kept[0], bound, torch.nan))


def _set_by_numpy(p: Tensor, weights: Floats, chance: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, as an array."""
    zero = chance.zero_division
    found = maximize_expected_f_from_mixture(as_array(p), weights=weights, zero_division=zero)
    values = found.selected, found.k, found.expected, found.std, found.threshold, found.expected
    return tuple(torch.as_tensor(np.asarray(each)) for each in values)


def _set_in_place(p: Tensor, weights: Floats, chance: Problem) -> tuple[Tensor, ...]:
    """Decide one set of pixels, members × pixels, where they are."""
    weight = torch.from_numpy(weights / weights.sum()).to(p.device)
    p = p.contiguous()
    found = best_dice(p, weight, DICE, chance.zero_division)
    if chance.coefficients != DICE:
        found = best_iou(p, weight, chance, found.chosen)
    mean, std = mixture_value(p, weight, found.chosen, chance)
    bound = mean.clamp(min=found.bound)  # that no rounding puts the bound below the value
    return found.chosen, found.chosen.sum(), mean, std, found.lowest, bound
