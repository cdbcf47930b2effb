"""What is given: probabilities in the shape of images, and pixels that count nowhere."""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxf._base.validation import NotAProbability

KINDS = torch.float64, torch.float32, torch.float16, torch.bfloat16  # that the passes take
ROUNDING = 1e-2  # what sums of weighted probabilities may be beyond 0 or 1, in half precision


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
    value = float(p[place])
    hint = "; are these logits? Use sigmoid or softmax first"
    if value != value:
        hint = ""
    elif bool(((p[bad] >= -ROUNDING) & (p[bad] <= 1.0 + ROUNDING)).all()):
        hint = "; if that is rounding, use probs.clamp(0, 1)"
    return ValueError(f"probs must be finite and in [0, 1], got {value!r} at {place}{hint}")
