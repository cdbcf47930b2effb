"""Images as they are given and returned: probabilities, ignored pixels, and masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from argmaxf._base.validation import NotAProbability

KINDS = torch.float64, torch.float32, torch.float16, torch.bfloat16  # that the passes take


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


def shaped(
    probs: Tensor,
    kept: Tensor,
    masks: Tensor,
    k: Tensor,
    expected: Tensor,
    std: Tensor,
    threshold: Tensor,
) -> Segmentation:
    """Put the rows back into the shape of the images; a class left out has no value."""
    masks = masks.view(kept.shape)
    if kept.shape[1] < probs.shape[1]:
        masks = torch.cat([torch.zeros_like(masks[:, :1]), masks], 1)
    return Segmentation(
        masks=masks.view(probs.shape),
        expected=table_of(probs, kept, expected, torch.nan),
        std=table_of(probs, kept, std, torch.nan),
        k=table_of(probs, kept, k, 0),
        threshold=table_of(probs, kept, threshold, torch.inf),
    )


def table_of(probs: Tensor, kept: Tensor, values: Tensor, nothing: float) -> Tensor:
    """Return batch × classes from rows; `nothing` for a class left out."""
    found, left_out = values.view(kept.shape[:2]), probs.shape[1] - kept.shape[1]
    return torch.nn.functional.pad(found, (left_out, 0), value=nothing) if left_out else found


def pixels_of(probs: Tensor, ignore: Tensor | None) -> Tensor:
    """Return batch × classes × pixels; ignored pixels have probability 0, which counts nowhere."""
    check_floating(probs)
    if probs.dim() < 3 or probs.numel() == 0:
        shape = tuple(probs.shape)
        raise ValueError(f"probs must be batch × classes × pixels, none empty; got shape {shape}")
    p = as_floats("probs", probs)
    if ignore is not None:
        p = p.masked_fill(mask_of(ignore, p), 0.0)
    return p.flatten(2).contiguous()


def as_floats(name: str, given: Tensor) -> Tensor:
    """Return a floating-point tensor as one of these types: bfloat16 has all 8-bit numbers."""
    if given.is_meta:
        raise ValueError(f"{name} must hold numbers, got a tensor of the meta device")
    p = given.detach().as_subclass(Tensor).resolve_neg()  # plain numbers, as NumPy takes them
    if p.dtype in KINDS:
        return p
    try:
        return p.to(torch.bfloat16)
    except (RuntimeError, NotImplementedError):  # two numbers in a byte, say
        raise ValueError(f"{name} must hold numbers of 8 to 64 bits, got {p.dtype}") from None


def check_floating(probs: Tensor) -> None:
    """Raise if these are no floating-point numbers in a tensor."""
    if not isinstance(probs, Tensor) or not probs.dtype.is_floating_point:
        kind = probs.dtype if isinstance(probs, Tensor) else type(probs).__name__
        raise ValueError(f"probs must be a tensor of floating-point probabilities, got {kind}")
    if probs.layout != torch.strided or probs.is_nested:
        other = "a nested one" if probs.is_nested else f"one of layout {probs.layout}"
        raise ValueError(f"probs must be a dense tensor, got {other}")


def kept_of(pixels: Tensor, background: bool) -> Tensor:
    """Return the pixels of the classes that count, … × classes × pixels: without the first one."""
    if not background and pixels.shape[-2] < 2:
        raise ValueError("include_background=False needs a class beside class 0, got 1 class")
    return pixels if background else pixels[..., 1:, :]


def check_range(p: Tensor) -> None:
    """Raise NotAProbability if there is one that is none; NaN is the least and the largest."""
    low, high = p.aminmax()
    if not bool((low >= 0.0) & (high <= 1.0)):
        raise NotAProbability


def mask_of(ignore: Tensor, p: Tensor) -> Tensor:
    """Return the ignored pixels in a shape that broadcasts to that of the probabilities."""
    if not isinstance(ignore, Tensor) or ignore.dtype != torch.bool:
        kind = ignore.dtype if isinstance(ignore, Tensor) else type(ignore).__name__
        raise ValueError(f"ignore must be a tensor of booleans, got {kind}")
    if ignore.layout != torch.strided or ignore.device != p.device:
        where = f"{ignore.layout} on {ignore.device}"
        raise ValueError(
            f"ignore must be dense and on the device of probs, {p.device}; got {where}"
        )
    shapes = tuple(p.shape), (p.shape[0], *p.shape[2:]), (p.shape[0], 1, *p.shape[2:])
    if tuple(ignore.shape) not in shapes:
        raise ValueError(
            f"ignore must have shape {shapes[0]}, {shapes[1]} or {shapes[2]}, "
            f"got {tuple(ignore.shape)}"
        )
    mask = ignore.as_subclass(Tensor)
    return mask.unsqueeze(1) if mask.dim() < p.dim() else mask


def counted_of(ignore: Tensor, p: Tensor) -> Tensor:
    """Return the pixels that count, batch × pixels, where classes share them."""
    mask = mask_of(ignore, p).flatten(2)
    if bool((mask != mask[:, :1]).any()):
        raise ValueError("ignore must be the same for all classes where exclusive=True")
    return ~mask[:, 0]


def first_bad(probs: Tensor, ignore: Tensor | None, without: int | None) -> ValueError:
    """Describe the first value that is no probability; called once one is known to exist.

    `without` is the axis of classes, where class 0 does not count.
    """
    p = as_floats("probs", probs)
    bad = ~((p >= 0.0) & (p <= 1.0))
    if ignore is not None:
        bad &= ~mask_of(ignore, p)
    if without is not None:
        bad.select(without, 0).zero_()
    place = tuple(bad.nonzero()[0].tolist())
    value, rounding = float(p[place]), 1e-2  # of sums of weighted ones, in half precision
    hint = "; are these logits? Use sigmoid or softmax first"
    if value != value:
        hint = ""
    elif bool(((p[bad] >= -rounding) & (p[bad] <= 1.0 + rounding)).all()):
        hint = "; if that is rounding, use probs.clamp(0, 1)"
    return ValueError(f"probs must be finite and in [0, 1], got {value!r} at {place}{hint}")
