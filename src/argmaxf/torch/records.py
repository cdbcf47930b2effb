"""The answer: masks in the shape of the images, and what to expect of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class MaskValues(NamedTuple):
    """What each row of pixels gets besides its mask."""

    k: Tensor
    expected: Tensor
    std: Tensor
    threshold: Tensor


@dataclass(frozen=True, eq=False)
class Segmentation:
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
        How many pixels are chosen for each image × class.
    threshold : Tensor
        The lowest chosen probability of each image × class; of pixels equal to it only the first
        ones may be chosen. Infinite if no pixel is chosen. Of an ensemble, with Dice the lowest
        contribution (see `JointDecision`), with IoU the lowest mean over the members.
    bound : Tensor
        With `exclusive`: no labels of an image have a higher `mean`. With an ensemble and
        IoU: no mask of an image × class has a higher expected IoU. None otherwise.
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
        return self.expected.nanmean(1)


def shaped(probs: Tensor, kept: Tensor, found: MaskValues, masks: Tensor) -> Segmentation:
    """Put the rows back into the shape of the images; a class left out has no value."""
    masks = masks.view(kept.shape)
    if kept.shape[1] < probs.shape[1]:
        masks = torch.cat([torch.zeros_like(masks[:, :1]), masks], 1)
    return Segmentation(
        masks=masks.view(probs.shape),
        expected=table_of(probs, kept, found.expected, torch.nan),
        std=table_of(probs, kept, found.std, torch.nan),
        k=table_of(probs, kept, found.k, 0),
        threshold=table_of(probs, kept, found.threshold, torch.inf),
    )


def table_of(probs: Tensor, kept: Tensor, values: Tensor, nothing: float) -> Tensor:
    """Return batch × classes from rows; `nothing` for a class left out."""
    found, left_out = values.view(kept.shape[:2]), probs.shape[1] - kept.shape[1]
    return torch.nn.functional.pad(found, (left_out, 0), value=nothing) if left_out else found
